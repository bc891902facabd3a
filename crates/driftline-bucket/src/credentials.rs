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
        let keys = self
            .chain
            .keys()
            .await
            .map_err(|error| object_store::Error::Unauthenticated { path: String::new(), source: Box::new(error) })?;
        Ok(Arc::new(AwsCredential {
            key_id: keys.access_key_id,
            secret_key: keys.secret_access_key,
            token: keys.session_token,
        }))
    }
}
