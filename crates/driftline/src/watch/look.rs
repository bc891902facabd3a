//! What is true now: drift against the baseline, as things that can be told.

use std::collections::{BTreeMap, BTreeSet};

use driftline_core::verdict::Status;
use driftline_core::{ResourceKey, StreamId};
use driftline_notify::message::{Change, Finding, Health};
use driftline_notify::outbox::Subject;
use driftline_store::{Store, StoreError};
use sha2::{Digest as _, Sha256};

use super::log::Log;
use super::plan::{Notify, speaks_of};
use super::transitions::{Item, Seen};
use crate::drift::entry_of;
use crate::error::{CommandError, CommandResult};
use crate::report::Entry;
use crate::report::telling::sides;
use crate::settings::{DEFAULT_STALE_AFTER, Settings};
use crate::severity::Rater;
use crate::time::ago;

/// How many changes of a finding are told one by one.
const CHANGES: usize = 10;

/// How each source did when it was last run, as far as it was.
pub(crate) type Runs = BTreeMap<String, Option<String>>;

/// Everything there is to know, and what kept us from comparing, if something did.
pub(crate) fn look(
    settings: &Settings,
    baseline: Option<&str>,
    runs: &Runs,
    channels: &[Notify],
    log: Log,
) -> CommandResult<(Seen, Option<CommandError>)> {
    let name = settings.baseline(baseline)?;
    let mut seen = Seen {
        now: settings.now,
        baseline: name.to_string(),
        open: BTreeMap::new(),
        unchecked: BTreeSet::new(),
        compared: BTreeMap::new(),
        unknown_streams: 0,
        accepted: BTreeSet::new(),
        healthy: BTreeSet::new(),
    };
    let opened =
        Store::open(settings.store.place()?).and_then(|store| store.question(&name, None).map(|asked| (store, asked)));
    let trouble = match opened {
        Ok((store, question)) => {
            let drift = store.drift(&question, &settings.rules.book)?;
            seen.accepted = question.accepted.iter().map(|one| finding_id(&one.stream.to_string(), &one.key)).collect();
            compare(settings, &drift, channels, log, &mut seen);
            stale(settings, &drift, runs, channels, &mut seen);
            None
        }
        // There is nothing to compare with yet; that a source fails is worth telling all the same.
        Err(error @ (StoreError::NoStore { .. } | StoreError::NoSuchBaseline(_))) => Some(CommandError::from(error)),
        Err(error) => return Err(error.into()),
    };
    for (source, failed) in runs {
        let id = health_id("failing", source);
        match failed {
            None => {
                seen.healthy.insert(id);
            }
            Some(reason) => {
                seen.open.insert(id.clone(), health(id, source, "failing", reason, channels));
            }
        }
    }
    Ok((seen, trouble))
}

fn compare(
    settings: &Settings,
    drift: &driftline_store::detect::Drift,
    channels: &[Notify],
    log: Log,
    seen: &mut Seen,
) {
    let names: BTreeMap<&StreamId, String> =
        drift.sources.iter().map(|source| (&source.stream, source.stream.to_string())).collect();
    let name = |stream: &StreamId| names.get(stream).map_or("", String::as_str);
    let mut expected = BTreeMap::new();
    for source in &drift.sources {
        match source.expected {
            Some(version) => {
                seen.compared.insert(source.stream.to_string(), version);
                expected.insert(source.stream.to_string(), version);
            }
            None => seen.unknown_streams += 1,
        }
    }
    let mut entries: Vec<Entry<'_>> =
        drift.findings.iter().map(|finding| entry_of(finding, name(&finding.stream))).collect();
    let rater = Rater::new(&settings.config.severities);
    if rater.rate_all(&mut entries).is_err() {
        // One entry of the user's that cannot be answered must not keep everything else from being told.
        for entry in &mut entries {
            if let Err(error) = rater.rate_all(std::slice::from_mut(entry)) {
                let fields = [("error", error.root())];
                log.error("a severity could not be told, so it is taken for bad enough", &fields);
            }
        }
    }
    for entry in &entries {
        let id = finding_id(entry.source, entry.key);
        match entry.status {
            Status::InSync => {}
            Status::NotChecked => {
                seen.unchecked.insert(id);
            }
            Status::Drifted | Status::Unknown => {
                let wanted = channels.iter().map(|channel| wants(channel, entry, log)).collect();
                let expected = expected.get(entry.source).copied();
                let (digest, finding) = finding(&id, entry);
                seen.open.insert(id, Item { digest, subject: Subject::Finding(finding), expected, wanted });
            }
        }
    }
}

fn wants(channel: &Notify, entry: &Entry<'_>, log: Log) -> bool {
    let of_source = channel.sources.is_empty() || channel.sources.iter().any(|glob| speaks_of(glob, entry.source));
    let is_bad = channel.min_severity.is_none_or(|level| entry.severity().is_none_or(|found| found >= level));
    // What cannot be answered is told: a message too many is better than one that never came.
    let matches = channel.filter.as_ref().is_none_or(|filter| {
        filter.matches(entry).unwrap_or_else(|error| {
            let fields = [("channel", channel.name.as_str()), ("error", error.root())];
            log.error("a `where` could not be answered, so it is taken for a yes", &fields);
            true
        })
    });
    of_source && is_bad && matches
}

fn finding(id: &str, entry: &Entry<'_>) -> (String, Finding) {
    let changes = entry.changes.list();
    let severity = entry.severity().map(|level| level.name().to_owned());
    let mut hasher = Sha256::new();
    let mut part = |text: &str| {
        hasher.update(text.len().to_le_bytes());
        hasher.update(text.as_bytes());
    };
    part(entry.status.name());
    part(entry.kind.map_or("", |kind| kind.name()));
    part(severity.as_deref().unwrap_or_default());
    for change in changes.iter() {
        part(&change.path.to_string());
        for side in [&change.expected, &change.actual] {
            part(&side.as_ref().map(driftline_core::Value::to_json).unwrap_or_default());
        }
    }
    let digest = hex(&hasher.finalize()[..16]);
    let grades = entry.rating.as_ref().map(|rating| rating.changes.as_slice()).unwrap_or_default();
    let told = changes.iter().enumerate().take(CHANGES).map(|(at, change)| {
        let (before, after) = sides(change.expected.as_ref(), change.actual.as_ref());
        let severity = grades.get(at).map(|grade| grade.level.name().to_owned());
        Change { path: change.path.to_string(), before, after, severity }
    });
    let reason = entry.rating.as_ref().map(|rating| rating.worst.reason).filter(|reason| !reason.is_empty());
    let finding = Finding {
        id: id.to_owned(),
        canonical_id: entry.key.id.clone(),
        resource_type: entry.key.kind.clone(),
        place: entry.key.place.as_str().to_owned(),
        source: entry.source.to_owned(),
        status: entry.status.name().to_owned(),
        kind: entry.kind.map(|kind| kind.name().to_owned()),
        severity,
        severity_reason: reason.map(ToOwned::to_owned),
        first_seen: entry.since,
        changes: told.collect(),
        change_count: changes.len(),
    };
    (digest, finding)
}

/// Streams that nobody looked at for long; those whose source fails were told of already.
fn stale(
    settings: &Settings,
    drift: &driftline_store::detect::Drift,
    runs: &Runs,
    channels: &[Notify],
    seen: &mut Seen,
) {
    let limit = settings.config.stale_after.unwrap_or(DEFAULT_STALE_AFTER);
    for source in &drift.sources {
        let name = source.stream.to_string();
        let fails = runs.iter().any(|(run, failed)| failed.is_some() && *run == source.stream.source.to_string());
        // Its first look since this began is still to come.
        let own = source.stream.source.to_string();
        let awaited = !runs.contains_key(&own) && settings.config.sources.iter().any(|one| one.name.to_string() == own);
        let id = health_id("stale", &name);
        if settings.now.duration_since(source.taken_at) <= limit {
            seen.healthy.insert(id);
        } else if !fails && !awaited {
            let reason = format!("it was last observed {} ({})", ago(source.taken_at, settings.now), source.taken_at);
            seen.open.insert(id.clone(), health(id, &name, "stale", &reason, channels));
        }
    }
}

/// Being in trouble is one state, whatever the words for it are this time.
fn health(id: String, source: &str, trouble: &str, reason: &str, channels: &[Notify]) -> Item {
    let wants = |channel: &Notify| {
        let of_source = channel.sources.is_empty() || channel.sources.iter().any(|glob| speaks_of(glob, source));
        channel.health && of_source
    };
    let subject = Health {
        id,
        source: source.to_owned(),
        trouble: trouble.to_owned(),
        reason: crate::output::short(reason, 300),
    };
    Item {
        digest: trouble.to_owned(),
        subject: Subject::Source(subject),
        expected: None,
        wanted: channels.iter().map(wants).collect(),
    }
}

fn health_id(trouble: &str, source: &str) -> String {
    format!("{trouble}:{source}")
}

/// The same as long as source, type, place and id are.
fn finding_id(stream: &str, key: &ResourceKey) -> String {
    let mut hasher = Sha256::new();
    for part in [stream, &key.kind, key.place.as_str(), &key.id] {
        hasher.update(part.len().to_le_bytes());
        hasher.update(part.as_bytes());
    }
    hex(&hasher.finalize()[..16])
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
