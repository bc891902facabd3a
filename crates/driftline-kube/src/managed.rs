//! What the operator asks of a kind of object: its declaration as a document, and how that compares with live.

use driftline_core::{Change, Pattern, Value};
use kube::core::NamespaceResourceScope;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::crd::{Ignore, Status};
use crate::decision::Policy;

/// The kinds there are. Metrics are labelled with them, so the set is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum Kind {
    DistributionTenant,
    AwsResource,
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Kind::DistributionTenant => "DistributionTenant",
            Kind::AwsResource => "AwsResource",
        }
    }
}

/// A difference that the user says does not count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IgnoreRule {
    pub path: Pattern,
    pub reason: String,
    /// Where it is written: `annotation driftline.dev/ignore` or `spec.ignore`.
    pub origin: &'static str,
}

/// How a thing differs from what is expected of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// What counts, in the order of the places.
    pub changes: Vec<Change>,
    /// What does not count and is to stay as it is when the rest is written.
    pub kept: Vec<Change>,
    /// How many differences a rule explained.
    pub excused: usize,
}

impl Found {
    pub fn is_same(&self) -> bool {
        self.changes.is_empty()
    }
}

/// What a declaration says besides its document: a part of it that is not acted on, or only in part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remark {
    /// The condition's type.
    pub about: &'static str,
    pub reason: &'static str,
    pub message: &'static str,
}

/// A kind of object whose thing lives in the cloud.
pub trait Managed:
    kube::Resource<DynamicType = (), Scope = NamespaceResourceScope>
    + Clone
    + std::fmt::Debug
    + Serialize
    + DeserializeOwned
    + Send
    + Sync
    + 'static
{
    const KIND: Kind;

    fn status(&self) -> Option<&Status>;

    fn set_status(&mut self, status: Status);

    /// The thing's type, as CloudFormation writes it.
    fn type_name(&self) -> &str;

    /// What is declared, as one document; or why it cannot be.
    fn desired(&self) -> Result<Value, String>;

    /// The policy that the declaration itself has.
    fn own_policy(&self) -> Option<Policy> {
        None
    }

    /// The ignore rules that the declaration itself has.
    fn own_ignores(&self) -> &[Ignore] {
        &[]
    }

    /// Compares live with what is expected. `applied` is what was last written: what it had and is expected no more is
    /// a difference, too, where absence otherwise means "not asked for".
    fn compare(&self, expected: &Value, live: &Value, applied: Option<&Value>, ignore: &[IgnoreRule]) -> Found;

    /// Where the document has secrets.
    fn secrets(&self) -> Vec<Pattern>;

    /// The document with every secret in it sealed, so that it can be kept and shown.
    fn sealed(&self, document: &Value) -> Value;

    /// What is declared and not acted on.
    fn remarks(&self) -> Vec<Remark> {
        Vec::new()
    }
}
