//! Whose calls these are: credentials kept until they are about to expire, and roles assumed on top of them.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use aws_credential_types::Credentials;
use aws_credential_types::provider::{ProvideCredentials, SharedCredentialsProvider};
use aws_smithy_async::time::SharedTimeSource;
use tokio::sync::Mutex;

use crate::call::Call;
use crate::client::Client;
use crate::error::{Error, Kind};

/// Renewed this long before they expire, so that no call is made with credentials that expire under way.
const MARGIN: Duration = Duration::from_mins(5);

/// A role to take on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Role {
    pub arn: String,
    pub external_id: Option<String>,
    pub session_name: String,
}

impl Role {
    pub fn account(&self) -> Option<&str> {
        self.arn.split(':').nth(4).filter(|account| !account.is_empty())
    }
}

/// Whom AWS takes the caller for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallerIdentity {
    pub account: String,
    pub arn: String,
}

/// What a request is signed with. It is never shown.
#[derive(Clone)]
pub struct Keys {
    pub access_key_id: String,
    pub secret_access_key: String,
    pub session_token: Option<String>,
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Keys")
    }
}

pub(crate) enum Origin {
    Chain(SharedCredentialsProvider),
    Assumed(Box<Client>, Role),
}

pub(crate) struct Identity {
    origin: Origin,
    kept: Mutex<Option<Credentials>>,
    time: SharedTimeSource,
    /// A signed call was accepted.
    trusted: AtomicBool,
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let origin = match &self.origin {
            Origin::Chain(_) => "the default chain".to_owned(),
            Origin::Assumed(_, role) => role.arn.clone(),
        };
        f.debug_struct("Identity").field("origin", &origin).finish_non_exhaustive()
    }
}

impl Identity {
    pub(crate) fn new(origin: Origin, time: SharedTimeSource) -> Arc<Self> {
        Arc::new(Self { origin, kept: Mutex::new(None), time, trusted: AtomicBool::new(false) })
    }

    pub(crate) fn is_trusted(&self) -> bool {
        self.trusted.load(Ordering::Relaxed)
    }

    pub(crate) fn trust(&self) {
        self.trusted.store(true, Ordering::Relaxed);
    }

    /// One caller fetches, the others wait for what it gets.
    pub(crate) async fn credentials(&self) -> Result<Credentials, Error> {
        let mut kept = self.kept.lock().await;
        let soon = self.time.now() + MARGIN;
        if let Some(credentials) = &*kept
            && credentials.expiry().is_none_or(|expiry| expiry > soon)
        {
            return Ok(credentials.clone());
        }
        let fresh = match &self.origin {
            Origin::Chain(provider) => provider.provide_credentials().await.map_err(|error| {
                let message = format!("no AWS credentials: {}", with_causes(&error));
                Error::of(Kind::Credentials, "", "", message)
            })?,
            Origin::Assumed(parent, role) => assume(parent, role).await?,
        };
        *kept = Some(fresh.clone());
        Ok(fresh)
    }

    /// After a service refused them as expired.
    pub(crate) async fn forget(&self) {
        *self.kept.lock().await = None;
    }
}

async fn assume(parent: &Client, role: &Role) -> Result<Credentials, Error> {
    let mut form =
        vec![("RoleArn".to_owned(), role.arn.clone()), ("RoleSessionName".to_owned(), role.session_name.clone())];
    form.extend(role.external_id.iter().map(|id| ("ExternalId".to_owned(), id.clone())));
    let call = Call::query("sts", "2011-06-15", "AssumeRole", form);
    // Boxed, for assuming a role is itself a call with credentials.
    let reply = Box::pin(parent.call(&call)).await.map_err(|mut error| {
        error.message = format!("cannot assume {}: {}", role.arn, error.message).into();
        error
    })?;
    let xml = reply.xml()?;
    let found = xml.find("Credentials");
    let text = |name: &str| {
        let text = found.and_then(|found| found.text_at(name)).filter(|text| !text.is_empty());
        text.ok_or_else(|| reply.malformed(&format!("it has no `{name}`")))
    };
    let expiry = aws_smithy_types::DateTime::from_str(
        text("Expiration")?,
        aws_smithy_types::date_time::Format::DateTimeWithOffset,
    );
    let expiry = expiry.map_err(|error| reply.malformed(&error.to_string()))?;
    let expiry = expiry.try_into().map_err(|_| reply.malformed("its `Expiration` is out of range"))?;
    let token = text("SessionToken")?.to_owned();
    Ok(Credentials::new(text("AccessKeyId")?, text("SecretAccessKey")?, Some(token), Some(expiry), "AssumeRole"))
}

/// The chain wraps its reasons in several layers; the innermost is the one that helps.
pub(crate) fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        let said = inner.to_string();
        if !text.contains(&said) {
            text += &format!(": {said}");
        }
        cause = inner.source();
    }
    text
}
