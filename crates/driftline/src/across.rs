//! `drift --across`: what two sources say of the same things, on the properties that both have.

use std::collections::BTreeSet;
use std::sync::Arc;

use driftline_core::compare::compare;
use driftline_core::judge::Judgement;
use driftline_core::verdict::{DriftKind, Status};
use driftline_core::{Coverage, ResourceKey, StreamId, Value};
use driftline_sources::{common, identity};
use driftline_store::Store;
use driftline_store::detect::{Drift, Finding, SourceReport};
use jiff::Timestamp;

use crate::error::{CommandError, CommandResult};
use crate::settings::Settings;
use crate::survey::{self, Surveyed, is_a_thing, survey};

/// Which of the two sides, and where on it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Seen {
    First(usize),
    Second(usize),
}

/// Holds the second source against what the first says.
pub(crate) fn drift(
    settings: &Settings,
    store: &Store,
    first: &StreamId,
    second: &StreamId,
    at: Option<Timestamp>,
) -> CommandResult<(Drift, Vec<(StreamId, ResourceKey)>)> {
    let side = |named: &StreamId| -> CommandResult<Vec<Surveyed>> {
        let found = survey(store, std::slice::from_ref(named), at)?;
        if found.is_empty() {
            return Err(CommandError::new(format!("the source `{named}` has no version from that time"))
                .hint("`driftline log` lists sources and their versions"));
        }
        Ok(found)
    };
    let (first, second) = (side(first)?, side(second)?);
    if first.iter().any(|one| second.iter().any(|other| other.stream == one.stream)) {
        return Err(CommandError::new("a source cannot be held against itself").hint("name two different sources"));
    }
    let keys = |surveyed: &[Surveyed], seen: fn(usize) -> Seen| -> Vec<(ResourceKey, Seen)> {
        let things = surveyed.iter().enumerate().flat_map(|(at, one)| one.resources.keys().map(move |key| (at, key)));
        things.filter(|(_, key)| is_a_thing(&key.kind)).map(|(at, key)| (key.clone(), seen(at))).collect()
    };
    let all = keys(&first, Seen::First).into_iter().chain(keys(&second, Seen::Second));
    let mut drift = Drift::default();
    let mut in_sync = Vec::new();
    let mut shares = 0;
    for thing in identity::things(all) {
        let of = |wanted: fn(Seen) -> Option<usize>| -> Vec<(&ResourceKey, usize)> {
            thing.iter().filter_map(|(key, seen)| wanted(*seen).map(|at| (key, at))).collect()
        };
        let ours = of(|seen| if let Seen::First(at) = seen { Some(at) } else { None });
        let theirs = of(|seen| if let Seen::Second(at) = seen { Some(at) } else { None });
        let mut say = |stream: &StreamId, key: &ResourceKey, judgement: Judgement| {
            drift.by_type.entry(key.kind.clone()).or_default().add(judgement.status);
            if judgement.status == Status::InSync && judgement.excused.is_empty() {
                in_sync.push((stream.clone(), key.clone()));
                return;
            }
            let stream = Arc::new(stream.clone());
            drift.findings.push(Finding { stream, key: key.clone(), judgement, since: None, unread: None });
        };
        match (ours.first(), theirs.as_slice()) {
            (Some((_, _)), [_, ..]) => {
                for (key, at) in &theirs {
                    let (theirs, stream) = (&second[*at].resources[*key], &second[*at].stream);
                    for (our_key, at) in &ours {
                        let ours = &first[*at].resources[*our_key];
                        let (expected, live) = common::shared(&key.kind, ours, theirs);
                        shares += expected.as_object().map_or(0, std::collections::BTreeMap::len);
                        say(stream, key, compared(settings, key, stream, &expected, &live));
                    }
                }
            }
            (Some((key, at)), []) => {
                let why = survey::unseen(second.iter(), &key.kind, key.place.as_str(), survey::sees_everything);
                let judgement = match why {
                    None => judged(Status::Drifted, Some(DriftKind::Deleted), None),
                    Some(why) => judged(Status::NotChecked, None, Some(why)),
                };
                say(&first[*at].stream, key, judgement);
            }
            (None, theirs) => {
                let Some((key, at)) = theirs.first() else { continue };
                let why = survey::unseen(first.iter(), &key.kind, key.place.as_str(), tells_all);
                let judgement = match why {
                    None => judged(Status::Unknown, None, None),
                    Some(why) => judged(Status::NotChecked, None, Some(why)),
                };
                say(&second[*at].stream, key, judgement);
            }
        }
    }
    if shares == 0 {
        settings.printer.warn("the two sources have no property of the same thing in common");
    }
    for finding in &drift.findings {
        for excused in &finding.judgement.excused {
            *drift.rule_uses.entry(excused.rule).or_default() += 1;
        }
    }
    drift.findings.sort_by(|a, b| (&a.key, &a.stream).cmp(&(&b.key, &b.stream)));
    let mut told = BTreeSet::new();
    for one in first.iter().chain(&second).filter(|one| told.insert(one.stream.clone())) {
        let (complete_extents, partial_extents) = one.coverage.counts();
        drift.sources.push(SourceReport {
            stream: one.stream.clone(),
            expected: first.iter().any(|first| first.stream == one.stream).then_some(one.version),
            version: one.version,
            taken_at: one.taken_at,
            complete_extents,
            partial_extents,
        });
    }
    Ok((drift, in_sync))
}

/// A state or a template lists all that it manages: what is not in it, it does not manage.
fn tells_all(coverage: &Coverage) -> bool {
    let managed = [driftline_sources::terraform::BASIS, driftline_sources::cloudformation::BASIS];
    survey::sees_everything(coverage) || coverage.basis().is_some_and(|basis| managed.contains(&basis))
}

fn compared(settings: &Settings, key: &ResourceKey, stream: &StreamId, expected: &Value, live: &Value) -> Judgement {
    let found = compare(expected, live, &settings.rules.book.applicable(key.as_ref(), stream.source.as_str()));
    let (status, kind) = match found.changes.is_empty() {
        true => (Status::InSync, None),
        false => (Status::Drifted, Some(DriftKind::Modified)),
    };
    Judgement { status, kind, changes: found.changes, excused: found.excused, reason: None }
}

fn judged(status: Status, kind: Option<DriftKind>, reason: Option<String>) -> Judgement {
    Judgement { status, kind, changes: Vec::new(), excused: Vec::new(), reason }
}
