//! What the operator counts and measures. Every label is from a closed set.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use jiff::Timestamp;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

use crate::cloud::Fault;
use crate::decision::Policy;
use crate::managed::Kind;

/// A label whose value is a name from a closed set.
macro_rules! named {
    ($type:ident, $get:expr) => {
        impl EncodeLabelValue for $type {
            fn encode(&self, encoder: &mut prometheus_client::encoding::LabelValueEncoder<'_>) -> std::fmt::Result {
                let get: fn(&$type) -> &'static str = $get;
                EncodeLabelValue::encode(&get(self), encoder)
            }
        }
    };
}

named!(Kind, |kind| kind.name());
named!(Policy, |policy| policy.name());

/// How a reconcile ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    Done,
    /// It is tried again soon, and nobody needs to know.
    Retried,
    /// The object's conditions say why.
    Refused,
    Failed,
}

named!(Outcome, |outcome| match outcome {
    Outcome::Done => "done",
    Outcome::Retried => "retried",
    Outcome::Refused => "refused",
    Outcome::Failed => "failed",
});

/// What became of drift.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DriftOutcome {
    Detected,
    Corrected,
    /// A change of the declaration wrote over it.
    Overwritten,
    /// It is back although it was corrected.
    NotSticking,
    /// It went away by itself.
    Gone,
}

named!(DriftOutcome, |outcome| match outcome {
    DriftOutcome::Detected => "detected",
    DriftOutcome::Corrected => "corrected",
    DriftOutcome::Overwritten => "overwritten",
    DriftOutcome::NotSticking => "not_sticking",
    DriftOutcome::Gone => "gone",
});

/// What was written to Kubernetes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Written {
    Finalizer,
    Status,
    Event,
    Lease,
}

named!(Written, |what| match what {
    Written::Finalizer => "finalizer",
    Written::Status => "status",
    Written::Event => "event",
    Written::Lease => "lease",
});

/// What was asked of AWS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    Find,
    Read,
    Create,
    Update,
    Claim,
    Dismantle,
    Poll,
}

named!(Operation, |operation| match operation {
    Operation::Find => "find",
    Operation::Read => "read",
    Operation::Create => "create",
    Operation::Update => "update",
    Operation::Claim => "claim",
    Operation::Dismantle => "dismantle",
    Operation::Poll => "poll",
});

/// How a call to AWS ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CallOutcome {
    Ok,
    Fault(Fault),
}

named!(CallOutcome, |outcome| match outcome {
    CallOutcome::Ok => "ok",
    CallOutcome::Fault(fault) => fault.name(),
});

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct ReconcileLabels {
    pub kind: Kind,
    pub outcome: Outcome,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct KindLabels {
    pub kind: Kind,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct DriftLabels {
    pub kind: Kind,
    pub policy: Policy,
    pub outcome: DriftOutcome,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct WriteLabels {
    pub what: Written,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct CallLabels {
    pub operation: Operation,
    pub outcome: CallOutcome,
}

/// When an object was last looked at, and since when it drifts.
#[derive(Clone, Copy, Debug)]
struct Watched {
    kind: Kind,
    checked: Option<Timestamp>,
    drifting_since: Option<Timestamp>,
}

/// All of them; cheap to clone.
#[derive(Clone, Debug)]
pub struct Metrics {
    registry: Arc<Mutex<Registry>>,
    watched: Arc<Mutex<BTreeMap<String, Watched>>>,
    pub reconciles: Family<ReconcileLabels, Counter>,
    pub reconcile_seconds: Family<KindLabels, Histogram, fn() -> Histogram>,
    pub drift: Family<DriftLabels, Counter>,
    drift_seconds: Family<KindLabels, Histogram, fn() -> Histogram>,
    pub kubernetes_writes: Family<WriteLabels, Counter>,
    pub call_seconds: Family<CallLabels, Histogram, fn() -> Histogram>,
    pub aws_writes: Counter,
    pub leader: Gauge,
    objects: Family<KindLabels, Gauge>,
    drifting: Family<KindLabels, Gauge>,
    oldest_drift: Family<KindLabels, Gauge>,
    oldest_check: Family<KindLabels, Gauge>,
}

fn short() -> Histogram {
    Histogram::new(exponential_buckets(0.001, 2.5, 13))
}

fn long() -> Histogram {
    Histogram::new(exponential_buckets(1.0, 4.0, 10))
}

impl Default for Metrics {
    fn default() -> Self {
        let short: fn() -> Histogram = short;
        let long: fn() -> Histogram = long;
        let metrics = Self {
            registry: Arc::default(),
            watched: Arc::default(),
            reconciles: Family::default(),
            reconcile_seconds: Family::new_with_constructor(short),
            drift: Family::default(),
            drift_seconds: Family::new_with_constructor(long),
            kubernetes_writes: Family::default(),
            call_seconds: Family::new_with_constructor(short),
            aws_writes: Counter::default(),
            leader: Gauge::default(),
            objects: Family::default(),
            drifting: Family::default(),
            oldest_drift: Family::default(),
            oldest_check: Family::default(),
        };
        let mut registry = Registry::with_prefix("driftline_operator");
        registry.register("reconciles", "Reconciles, by how they ended", metrics.reconciles.clone());
        registry.register("reconcile_duration_seconds", "How long a reconcile took", metrics.reconcile_seconds.clone());
        registry.register("drift", "Drift, by policy and what became of it", metrics.drift.clone());
        registry.register(
            "drift_duration_seconds",
            "How long drift lasted that has ended",
            metrics.drift_seconds.clone(),
        );
        registry.register("kubernetes_writes", "Writes to the API server", metrics.kubernetes_writes.clone());
        registry.register("aws_writes", "Writes to AWS", metrics.aws_writes.clone());
        registry.register("aws_call_duration_seconds", "How long a call to AWS took", metrics.call_seconds.clone());
        registry.register("leader", "Whether this process does the work", metrics.leader.clone());
        registry.register("objects", "Objects that were looked at", metrics.objects.clone());
        registry.register("drifting_objects", "Objects that drift", metrics.drifting.clone());
        registry.register(
            "oldest_drift_seconds",
            "How long the oldest drift has been there",
            metrics.oldest_drift.clone(),
        );
        let about = "When the object that was not checked for the longest time was last checked";
        registry.register("oldest_check_timestamp_seconds", about, metrics.oldest_check.clone());
        if let Ok(mut slot) = metrics.registry.lock() {
            *slot = registry;
        }
        metrics
    }
}

impl Metrics {
    /// An object was compared with live, and drifts since then, or does not.
    pub fn checked(&self, key: &str, kind: Kind, at: Timestamp, drifting_since: Option<Timestamp>) {
        let Ok(mut watched) = self.watched.lock() else { return };
        let before = watched.insert(key.to_owned(), Watched { kind, checked: Some(at), drifting_since });
        if let (Some(since), None) = (before.and_then(|before| before.drifting_since), drifting_since) {
            self.drift_seconds.get_or_create(&KindLabels { kind }).observe(at.duration_since(since).as_secs_f64());
        }
    }

    /// An object is there, and nobody compares it.
    pub fn seen(&self, key: &str, kind: Kind) {
        if let Ok(mut watched) = self.watched.lock() {
            watched.insert(key.to_owned(), Watched { kind, checked: None, drifting_since: None });
        }
    }

    pub fn gone(&self, key: &str) {
        if let Ok(mut watched) = self.watched.lock() {
            watched.remove(key);
        }
    }

    /// In the text format of `OpenMetrics`.
    pub fn text(&self, now: Timestamp) -> String {
        if let Ok(watched) = self.watched.lock() {
            for kind in [Kind::DistributionTenant, Kind::AwsResource] {
                let labels = KindLabels { kind };
                let of_kind = || watched.values().filter(|one| one.kind == kind);
                let count = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
                self.objects.get_or_create(&labels).set(count(of_kind().count()));
                let since = || of_kind().filter_map(|one| one.drifting_since);
                self.drifting.get_or_create(&labels).set(count(since().count()));
                let age = since().min().map_or(0, |since| now.duration_since(since).as_secs());
                self.oldest_drift.get_or_create(&labels).set(age);
                let checked = of_kind().filter_map(|one| one.checked).min();
                self.oldest_check.get_or_create(&labels).set(checked.map_or(0, Timestamp::as_second));
            }
        }
        let mut text = String::new();
        if let Ok(registry) = self.registry.lock()
            && encode(&mut text, &registry).is_err()
        {
            text.clear();
        }
        text
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn what_was_counted_is_told_with_names_from_closed_sets() {
        let metrics = Metrics::default();
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        let since = at("2026-01-01T00:00:00Z");
        let kind = Kind::DistributionTenant;
        let labels = DriftLabels { kind, policy: Policy::Report, outcome: DriftOutcome::Detected };
        metrics.drift.get_or_create(&labels).inc();
        metrics.checked("a", kind, since, Some(since));
        metrics.checked("b", kind, at("2026-01-01T00:00:30Z"), None);
        let text = metrics.text(at("2026-01-01T00:01:00Z"));
        for line in [
            r#"driftline_operator_drift_total{kind="DistributionTenant",policy="report",outcome="detected"} 1"#,
            r#"driftline_operator_drifting_objects{kind="DistributionTenant"} 1"#,
            r#"driftline_operator_oldest_drift_seconds{kind="DistributionTenant"} 60"#,
            r#"driftline_operator_oldest_check_timestamp_seconds{kind="DistributionTenant"} 1767225600"#,
        ] {
            assert!(text.lines().any(|one| one == line), "no `{line}` in:\n{text}");
        }
        metrics.checked("a", kind, at("2026-01-01T00:02:00Z"), None);
        let text = metrics.text(at("2026-01-01T00:02:00Z"));
        let sum = r#"driftline_operator_drift_duration_seconds_sum{kind="DistributionTenant"} 120.0"#;
        assert!(text.lines().any(|one| one == sum), "{text}");
    }
}
