//! What the store says, in the form that pages are told in.

use std::collections::BTreeMap;

use driftline_core::rule::RuleBook;
use driftline_core::seal::is_sealed;
use driftline_core::verdict::Status;
use driftline_core::{ResourceKey, Severity, StreamId, Value};
use driftline_store::detect::{Drift, Pair};
use driftline_web::model::{Change, Excused, Finding, Summary};
use driftline_web::{Refusal, RefusalKind};
use sha2::{Digest, Sha256};

use crate::drift::entry_of;
use crate::error::{CommandError, CommandResult};
use crate::report::Entry;
use crate::settings::Settings;
use crate::severity::{Counts, Grade, Rater};

/// How many changes of a finding a list tells, and how long a value in it may be.
const CHANGES: usize = 3;
const VALUE: usize = 300;

pub(super) fn refused(kind: RefusalKind, error: impl Into<CommandError>) -> Refusal {
    let (message, hints) = error.into().into_parts();
    Refusal { kind, message, hints }
}

pub(super) fn failed(error: impl Into<CommandError>) -> Refusal {
    refused(RefusalKind::Failed, error)
}

/// Names a finding in links: short, and the same as long as source, type, place and id are.
pub(super) fn finding_id(stream: &str, key: &ResourceKey) -> String {
    let mut hasher = Sha256::new_with_prefix(b"driftline/finding/v1\0");
    for part in [stream, &key.kind, key.place.as_str(), &key.id] {
        hasher.update((part.len() as u64).to_be_bytes());
        hasher.update(part.as_bytes());
    }
    hasher.finalize()[..10].iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A finding as a version shows it.
pub(super) fn ticket(id: &str, version: u64) -> String {
    format!("{id}-{version}")
}

/// What a ticket names.
pub(super) fn parse_ticket(text: &str) -> Option<(&str, u64)> {
    let (id, version) = text.rsplit_once('-')?;
    Some((id, version.parse().ok()?))
}

/// A value with every secret in it hidden.
pub(super) fn json(value: &Value) -> serde_json::Value {
    match value {
        value if is_sealed(value) => "(sealed)".into(),
        Value::Array(items) => items.iter().map(json).collect(),
        Value::Object(members) => members.iter().map(|(name, member)| (name.clone(), json(member))).collect(),
        plain => serde_json::to_value(plain).unwrap_or_default(),
    }
}

/// The same in at most so many bytes; what is longer says so.
fn short(value: &Value) -> serde_json::Value {
    let told = json(value);
    match told.to_string().len() {
        0..=VALUE => told,
        long => format!("({long} bytes; the page of the resource has it)").into(),
    }
}

pub(super) fn change(
    change: &driftline_core::Change,
    grade: Option<&Grade<'_>>,
    value: impl Fn(&Value) -> serde_json::Value,
) -> Change {
    let op = match (&change.expected, &change.actual) {
        (None, _) => "add",
        (_, None) => "remove",
        _ => "replace",
    };
    Change {
        path: change.path.to_string(),
        op,
        baseline: change.expected.as_ref().map(&value),
        current: change.actual.as_ref().map(&value),
        severity: grade.map(|grade| grade.level),
    }
}

pub(super) fn excused(one: &driftline_core::Excused, book: &RuleBook) -> Excused {
    let rule = &book.rules()[one.rule];
    Excused {
        change: change(&one.change, None, json),
        rule: rule.kind.name().to_owned(),
        origin: rule.origin.to_string(),
        reason: rule.reason.clone(),
    }
}

/// What was found, for a list.
pub(super) struct Findings {
    pub listed: Vec<Finding>,
    pub left_out: u64,
    pub summary: Summary,
}

/// Rates everything that was found, and tells the most important of it.
pub(super) fn findings(settings: &Settings, drift: &Drift, pairs: &[Pair], most: usize) -> CommandResult<Findings> {
    let names: BTreeMap<&StreamId, (String, u64)> =
        pairs.iter().map(|pair| (&pair.stream, (pair.stream.to_string(), pair.live))).collect();
    let unnamed = (String::new(), 0);
    let name = |stream: &StreamId| names.get(stream).unwrap_or(&unnamed);
    let mut entries: Vec<(Entry<'_>, u64)> = Vec::with_capacity(drift.findings.len());
    let mut rated: Vec<Entry<'_>> =
        drift.findings.iter().map(|finding| entry_of(finding, &name(&finding.stream).0)).collect();
    Rater::new(&settings.config.severities).rate_all(&mut rated)?;
    let versions = drift.findings.iter().map(|finding| name(&finding.stream).1);
    entries.extend(rated.into_iter().zip(versions));

    let levels = Counts::of(entries.iter().filter_map(|(entry, _)| entry.severity()));
    let level = |level: Severity| levels.get(level) as u64;
    let tally = drift.tally();
    let summary = Summary {
        total: tally.total(),
        in_sync: tally.in_sync,
        drifted: tally.drifted,
        unknown: tally.unknown,
        not_checked: tally.not_checked,
        resolved: entries.iter().filter(|(entry, _)| is_resolved(entry)).count() as u64,
        excused: drift.excused() as u64,
        critical: level(Severity::Critical),
        high: level(Severity::High),
        medium: level(Severity::Medium),
        low: level(Severity::Low),
        info: level(Severity::Info),
        complete_extents: drift.sources.iter().map(|source| source.complete_extents as u64).sum(),
        partial_extents: drift.sources.iter().map(|source| source.partial_extents as u64).sum(),
    };
    let left_out = entries.len().saturating_sub(most);
    if left_out > 0 {
        // What matters least goes first.
        entries.sort_by_key(|(entry, _)| (std::cmp::Reverse(entry.severity()), entry.status == Status::InSync));
        entries.truncate(most);
    }
    entries.sort_by(|(a, _), (b, _)| (a.key, a.source).cmp(&(b.key, b.source)));
    let listed = entries.iter().map(|(entry, version)| finding(entry, *version)).collect();
    Ok(Findings { listed, left_out: left_out as u64, summary })
}

/// Why something is as bad as it is, where there is more to say than that.
pub(super) fn reason(grade: &Grade<'_>) -> Option<String> {
    Some(grade.reason.to_owned()).filter(|reason| !reason.is_empty())
}

fn is_resolved(entry: &Entry<'_>) -> bool {
    entry.kind == Some(driftline_core::DriftKind::Resolved)
}

fn finding(entry: &Entry<'_>, version: u64) -> Finding {
    let id = finding_id(entry.source, entry.key);
    let changes = entry.changes.list();
    let grades = entry.rating.as_ref().map(|rating| rating.changes.as_slice()).unwrap_or_default();
    let told = changes.iter().take(CHANGES).enumerate().map(|(at, one)| change(one, grades.get(at), short));
    Finding {
        ticket: ticket(&id, version),
        id,
        canonical_id: entry.key.id.clone(),
        resource_type: entry.key.kind.clone(),
        place: entry.key.place.to_string(),
        source: entry.source.to_owned(),
        status: entry.status,
        kind: entry.kind,
        severity: entry.severity(),
        severity_reason: entry.rating.as_ref().and_then(|rating| reason(&rating.worst)),
        first_seen: entry.since,
        changes: told.collect(),
        change_count: changes.len(),
        excused_count: entry.excused.len(),
        reason: entry.reason.map(ToOwned::to_owned),
    }
}
