//! The cloud as the operator needs it: find, read, make, change and take away one thing.

use std::fmt;
use std::future::Future;
use std::time::Duration;

use driftline_core::{Change, Value};
use thiserror::Error;

use crate::crd::Pending;
use crate::decision::Live;

/// The tag by which a thing says whose it is: the object's UID.
pub const OWNER_TAG: &str = "driftline.dev/owner";

/// A thing as it was read.
#[derive(Clone, Debug, PartialEq)]
pub struct Thing {
    pub id: String,
    pub arn: Option<String>,
    /// What a write must be conditioned on, where the service has it.
    pub etag: Option<String>,
    /// [`Live::InProgress`] or [`Live::Present`].
    pub live: Live,
    /// The service's own word for that.
    pub state: Option<String>,
    /// The UID of the object that made it, or took it over.
    pub owner: Option<String>,
    pub document: Value,
}

/// How a write went that was accepted.
#[derive(Clone, Debug, PartialEq)]
pub enum Written {
    /// It is done, or on its way, and this is what the service has now.
    Done(Box<Thing>),
    /// The service is working on it, and will tell when asked.
    Pending(Pending),
}

/// How far a request is.
#[derive(Clone, Debug, PartialEq)]
pub enum Progress {
    /// Not done; what to ask after from now on, where that is something else.
    Working(Option<Pending>),
    /// It is done; this is the thing's id, if there is one.
    Done(Option<String>),
    /// It failed, or was never heard of.
    Failed(CloudError),
}

/// One step of taking a thing away.
#[derive(Clone, Debug, PartialEq)]
pub enum Dismantled {
    /// It was switched off.
    Disabled(Box<Thing>),
    Pending(Pending),
    Deleted,
}

/// What kind of failure it is: what follows depends on this and on nothing else. Metrics are labelled with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Fault {
    Throttled,
    /// The service is not there, does not answer, or answers what nobody understands.
    Unavailable,
    /// The thing changed since it was read.
    Precondition,
    /// Something with this name or domain is there already, or an operation on it is under way.
    Conflict,
    AccessDenied,
    Credentials,
    /// The service does not accept the declaration.
    Invalid,
    NotFound,
}

impl Fault {
    pub fn name(self) -> &'static str {
        match self {
            Fault::Throttled => "throttled",
            Fault::Unavailable => "unavailable",
            Fault::Precondition => "precondition",
            Fault::Conflict => "conflict",
            Fault::AccessDenied => "access_denied",
            Fault::Credentials => "credentials",
            Fault::Invalid => "invalid",
            Fault::NotFound => "not_found",
        }
    }

    /// Whether trying again soon is all there is to do, and nobody needs to know.
    pub fn passes(self) -> bool {
        matches!(self, Fault::Throttled | Fault::Unavailable | Fault::Precondition)
    }

    /// The reason that conditions give.
    pub fn reason(self) -> &'static str {
        match self {
            Fault::Throttled => "Throttled",
            Fault::Unavailable => "Unavailable",
            Fault::Precondition => "ChangedMeanwhile",
            Fault::Conflict => "Conflict",
            Fault::AccessDenied => "AccessDenied",
            Fault::Credentials => "CredentialsRefused",
            Fault::Invalid => "InvalidSpec",
            Fault::NotFound => "NotFound",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct CloudError {
    pub fault: Fault,
    /// What the service said; it says the operation, too.
    pub message: String,
    /// The reason that conditions give, where the service's own word says more than [`Fault::reason`].
    pub reason: Option<&'static str>,
    pub retry_after: Option<Duration>,
}

impl CloudError {
    pub fn new(fault: Fault, message: impl fmt::Display) -> Self {
        Self { fault, message: message.to_string(), reason: None, retry_after: None }
    }

    pub fn reason(&self) -> &'static str {
        self.reason.unwrap_or(self.fault.reason())
    }
}

pub type CloudResult<T> = Result<T, CloudError>;

/// What can be done to the things of one kind of object.
pub trait Cloud<K>: Send + Sync {
    /// The thing that goes by the object's name, whoever made it. `None` where names mean nothing.
    fn find(&self, object: &K) -> impl Future<Output = CloudResult<Option<Thing>>> + Send;

    fn read(&self, object: &K, id: &str) -> impl Future<Output = CloudResult<Option<Thing>>> + Send;

    /// What must be remembered before [`Cloud::create`] is called, so that a thing whose making nobody saw the end of
    /// is found again. `None` where [`Cloud::find`] finds it. `nonce` is another one for every call.
    fn intent(&self, object: &K, nonce: &str) -> Option<Pending>;

    fn create(
        &self,
        object: &K,
        intent: Option<&Pending>,
        document: &Value,
    ) -> impl Future<Output = CloudResult<Written>> + Send;

    /// Writes the whole document over `thing`, if it still is as it was read. `changes` are what makes it differ.
    fn update(
        &self,
        object: &K,
        thing: &Thing,
        document: &Value,
        changes: &[Change],
    ) -> impl Future<Output = CloudResult<Written>> + Send;

    /// Marks a thing as the object's.
    fn claim(&self, object: &K, thing: &Thing) -> impl Future<Output = CloudResult<()>> + Send;

    /// One step towards its end: switched off, then deleted.
    fn dismantle(&self, object: &K, thing: &Thing) -> impl Future<Output = CloudResult<Dismantled>> + Send;

    /// How far a request is. A request that is only an intent is made again.
    fn poll(
        &self,
        object: &K,
        pending: &Pending,
        document: Option<&Value>,
    ) -> impl Future<Output = CloudResult<Progress>> + Send;
}
