//! What Prometheus is told: of what is shown, and of the server itself.

use std::sync::atomic::{AtomicI64, AtomicU64};

use driftline_core::Severity;
use jiff::Timestamp;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;

use crate::live::Known;

pub(crate) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Resources {
    source: String,
    status: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Extents {
    source: String,
    outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfSource {
    source: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfSeverity {
    severity: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Requests {
    route: &'static str,
    status: u16,
}

/// What is counted as it happens.
#[derive(Debug)]
pub(crate) struct Metrics {
    requests: Family<Requests, Counter>,
    seconds: Histogram,
    clients: Gauge,
}

impl Default for Metrics {
    fn default() -> Self {
        let buckets = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.25, 0.5, 1.0, 2.5, 10.0];
        Self { requests: Family::default(), seconds: Histogram::new(buckets), clients: Gauge::default() }
    }
}

impl Metrics {
    pub(crate) fn answered(&self, route: &'static str, status: u16, seconds: f64) {
        self.requests.get_or_create(&Requests { route, status }).inc();
        self.seconds.observe(seconds);
    }

    /// Somebody listens to events, until what is returned is dropped.
    pub(crate) fn listening(&self) -> Listening {
        self.clients.inc();
        Listening(self.clients.clone())
    }

    /// Everything as text. What is shown is put together anew, so that a source that is gone is gone here.
    pub(crate) fn text(&self, known: &Known, now: Timestamp, version: &str) -> String {
        let mut registry = Registry::with_prefix("driftline");
        registry.register("build", "The program", Info::new([("version", version.to_owned())]));
        registry.register("http_requests", "Requests answered", self.requests.clone());
        registry.register("http_request_seconds", "How long requests took", self.seconds.clone());
        registry.register("event_clients", "Clients that listen to events", self.clients.clone());
        let current = Gauge::<i64, AtomicI64>::default();
        current.set(i64::from(known.trouble.is_none() && known.edition.is_some()));
        registry.register("up_to_date", "Whether what is shown is what the store holds", current);
        if let Some(edition) = &known.edition {
            let took = Gauge::<f64, AtomicU64>::default();
            took.set(edition.took.as_secs_f64());
            registry.register("snapshot_seconds", "How long computing what is shown took", took);
            let resources = Family::<Resources, Gauge<i64, AtomicI64>>::default();
            let extents = Family::<Extents, Gauge<i64, AtomicI64>>::default();
            let ages = Family::<OfSource, Gauge<f64, AtomicU64>>::default();
            for source in &edition.snapshot.sources {
                let counts = [
                    ("in_sync", source.in_sync),
                    ("drifted", source.drifted),
                    ("unknown", source.unknown),
                    ("not_checked", source.not_checked),
                ];
                for (status, count) in counts {
                    let labels = Resources { source: source.name.clone(), status };
                    resources.get_or_create(&labels).set(count.try_into().unwrap_or(i64::MAX));
                }
                for (outcome, count) in [("complete", source.complete_extents), ("partial", source.partial_extents)] {
                    let labels = Extents { source: source.name.clone(), outcome };
                    extents.get_or_create(&labels).set(count.try_into().unwrap_or(i64::MAX));
                }
                let age = now.duration_since(source.taken_at).as_secs_f64();
                ages.get_or_create(&OfSource { source: source.name.clone() }).set(age);
            }
            registry.register("resources", "Resources by source and status", resources);
            registry.register("extents", "Extents of the newest versions, and how listing them went", extents);
            registry.register("source_age_seconds", "Since a source was last observed", ages);
            let findings = Family::<OfSeverity, Gauge<i64, AtomicI64>>::default();
            let summary = &edition.snapshot.summary;
            for level in Severity::ALL {
                let count = match level {
                    Severity::Critical => summary.critical,
                    Severity::High => summary.high,
                    Severity::Medium => summary.medium,
                    Severity::Low => summary.low,
                    Severity::Info => summary.info,
                };
                let labels = OfSeverity { severity: level.name() };
                findings.get_or_create(&labels).set(count.try_into().unwrap_or(i64::MAX));
            }
            registry.register("findings", "What is drifted or unknown, by severity", findings);
        }
        let mut out = String::new();
        // Writing into a text does not fail.
        let _ = encode(&mut out, &registry);
        out
    }
}

/// Somebody who listens to events.
#[derive(Debug)]
pub(crate) struct Listening(Gauge);

impl Drop for Listening {
    fn drop(&mut self) {
        self.0.dec();
    }
}
