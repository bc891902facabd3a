//! The credentials of AWS's own chain, for a client that is not AWS's.

use std::sync::Arc;

use async_trait::async_trait;
use object_store::CredentialProvider;
use object_store::aws::AwsCredential;

/// Asks the chain each time; it keeps what is still good and renews what is not.
#[derive(Debug)]
pub(crate) struct FromChain {
    chain: aws_wire::Client,
}

impl FromChain {
    pub(crate) fn new(chain: aws_wire::Client) -> Self {
        Self { chain }
    }
}

#[async_trait]
impl CredentialProvider for FromChain {
    type Credential = AwsCredential;

    async fn get_credential(&self) -> object_store::Result<Arc<AwsCredential>> {
        let keys = self.chain.keys().await.map_err(failed)?;
        Ok(Arc::new(AwsCredential {
            key_id: keys.access_key_id,
            secret_key: keys.secret_access_key,
            token: keys.session_token,
        }))
    }
}

/// What may pass is told as such, and tried again like any other request; what is refused is refused for good.
fn failed(error: aws_wire::Error) -> object_store::Error {
    use aws_wire::Kind;
    match error.kind {
        Kind::Throttled | Kind::Unavailable | Kind::Timeout | Kind::Unreachable => {
            object_store::Error::Generic { store: "S3", source: Box::new(error) }
        }
        _ => object_store::Error::Unauthenticated { path: String::new(), source: Box::new(error) },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_may_pass_is_tried_again() {
        let told = |kind| failed(aws_wire::Error::of(kind, "sts", "AssumeRole", "it did not work"));
        for kind in [aws_wire::Kind::Unreachable, aws_wire::Kind::Throttled, aws_wire::Kind::Timeout] {
            assert!(matches!(told(kind), object_store::Error::Generic { .. }), "{kind:?}");
        }
        for kind in [aws_wire::Kind::Credentials, aws_wire::Kind::AccessDenied, aws_wire::Kind::Invalid] {
            assert!(matches!(told(kind), object_store::Error::Unauthenticated { .. }), "{kind:?}");
        }
    }
}
