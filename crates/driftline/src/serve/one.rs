//! One resource: what everybody who saw it says, and its life. Looked up, never by reading everything.

use std::collections::BTreeSet;

use driftline_core::judge::Judgement;
use driftline_core::verdict::Status;
use driftline_core::{Outcome, ResourceKey, StreamId, Value};
use driftline_store::detect::{Finding, Pair, expect};
use driftline_store::history::{Event as Happened, What};
use driftline_web::model::{Act, Blame, Claim, Event, Resource, View};
use driftline_web::{Refusal, RefusalKind};

use super::answering::{Answering, Judged, Open};
use super::graph::neighbours;
use super::telling::{change, excused, failed, finding_id, json, reason, refused, ticket};
use crate::error::{CommandError, CommandResult};
use crate::ownership::{claim_of, tag_claims};
use crate::severity::{About, Rater};

/// How many events and neighbours are told.
const EVENTS: usize = 200;
const NEIGHBOURS: usize = 200;
/// How many other ids are offered.
const SIMILAR: usize = 5;

pub(super) fn resource(answering: &Answering, open: &Open, id: &str) -> Result<Resource, Refusal> {
    let judged = answering.last_judged(open)?;
    let views = views(open, judged.as_deref(), id).map_err(failed)?;
    let (life, life_left_out) = life(open, id).map_err(failed)?;
    if views.is_empty() && life.is_empty() {
        let mut error = CommandError::new(format!("no resource `{id}` has ever been observed"));
        for other in open.store.ids_containing(id, SIMILAR).map_err(failed)? {
            error = error.hint(format!("did you mean `{other}`?"));
        }
        return Err(refused(RefusalKind::NotFound, error.hint("resources are named by their whole id")));
    }
    // A graph that cannot be had takes nothing away from the rest, and is not taken for an empty one.
    let (mut beside, neighbours_note) = match neighbours(answering, id) {
        Ok(found) => found,
        Err(refusal) => (Vec::new(), Some(refusal.message)),
    };
    let neighbours_left_out = beside.len().saturating_sub(NEIGHBOURS) as u64;
    beside.truncate(NEIGHBOURS);
    Ok(Resource {
        canonical_id: id.to_owned(),
        views,
        claims: claims(open, id).map_err(failed)?,
        life,
        life_left_out,
        neighbours: beside,
        neighbours_left_out,
        neighbours_note,
        blame: blame(open, judged.as_deref(), id),
    })
}

/// Who changed it, as far as anybody recorded. Only of what is not as the baseline has it.
fn blame(open: &Open, judged: Option<&Judged>, id: &str) -> Option<Blame> {
    let differs = |finding: &Finding| {
        finding.key.id == id && matches!(finding.judgement.status, Status::Drifted | Status::Unknown)
    };
    let judged = judged.filter(|judged| judged.drift.findings.iter().any(differs))?;
    let told = match crate::blame::of(&open.settings, &open.store, id, judged.name.as_str()) {
        Ok(told) => told,
        // The rest of the page stands; why this part is missing is said in its place.
        Err(error) => return Some(Blame { from: None, to: None, acts: Vec::new(), note: Some(error.to_string()) }),
    };
    let notes: BTreeSet<String> =
        told.note.into_iter().chain(told.turns.iter().flat_map(|turn| turn.notes.iter().cloned())).collect();
    let note = (!notes.is_empty()).then(|| notes.into_iter().collect::<Vec<_>>().join(" "));
    let acts = told.turns.into_iter().flat_map(|turn| turn.acts).map(|act| Act {
        at: act.at,
        who: act.who,
        what: act.what,
        how: act.how,
        address: act.from,
        certainty: act.certainty.word().to_owned(),
        why: act.error.map_or(act.why.clone(), |error| format!("{}; refused: {error}", act.why)),
        event_id: act.event_id,
    });
    let mut acts: Vec<Act> = acts.collect();
    // Two sources that saw the same change were told of the same act.
    let mut known = BTreeSet::new();
    acts.retain(|act| known.insert((act.at, act.event_id.clone(), act.who.clone(), act.what.clone())));
    Some(Blame { from: told.from, to: told.to, acts, note })
}

fn views(open: &Open, judged: Option<&Judged>, id: &str) -> CommandResult<Vec<View>> {
    let mut told = Vec::new();
    let pairs: Vec<Pair> = match judged {
        Some(judged) => judged.question.pairs.iter().chain(&judged.unpinned).cloned().collect(),
        None => {
            let heads = open.store.catalog().streams().filter_map(|(stream, versions)| {
                Some(Pair { stream: stream.clone(), expected: None, live: versions.head()?.number })
            });
            heads.collect()
        }
    };
    for pair in &pairs {
        let live = open.store.lookup(&pair.stream, pair.live, id)?;
        let all = judged.map(|judged| judged.drift.findings.as_slice()).unwrap_or_default();
        let findings = all.iter().filter(|finding| *finding.stream == pair.stream && finding.key.id == id);
        let keys: BTreeSet<ResourceKey> = live
            .iter()
            .map(|(key, _)| key.clone())
            .chain(findings.clone().map(|finding| finding.key.clone()))
            .collect();
        for key in keys {
            let finding = findings.clone().find(|finding| finding.key == key);
            let now = live.iter().find(|(one, _)| *one == key).map(|(_, value)| value);
            told.push(view(open, judged, pair, &key, finding, now)?);
        }
    }
    // What is wrong with it first, whoever says so.
    let order = |status: Status| match status {
        Status::Drifted => 0,
        Status::Unknown => 1,
        Status::NotChecked => 2,
        Status::InSync => 3,
    };
    told.sort_by_key(|view| order(view.status));
    Ok(told)
}

fn view(
    open: &Open,
    judged: Option<&Judged>,
    pair: &Pair,
    key: &ResourceKey,
    finding: Option<&Finding>,
    live: Option<&Value>,
) -> CommandResult<View> {
    let version = open.store.catalog().version(&pair.stream, pair.live)?;
    let coverage = open.store.coverage(&version.coverage)?;
    let extent = match coverage.outcome(&key.kind, key.place.as_str()) {
        Some(Outcome::Complete) => "complete".to_owned(),
        Some(Outcome::Partial { reason }) => format!("partial: {reason}"),
        None => "not looked at".to_owned(),
    };
    let source = pair.stream.to_string();
    let judgement = match (finding, judged, pair.expected) {
        (Some(finding), ..) => Judgement { changes: finding.changes(), ..finding.judgement.clone() },
        (None, Some(_), Some(_)) => plain(Status::InSync, None),
        (None, Some(_), None) => plain(Status::NotChecked, Some("the baseline has no version of this source")),
        (None, None, _) => plain(Status::NotChecked, Some("there is no baseline")),
    };
    let about = About { key: key.as_ref(), source: &source, status: judgement.status, kind: judgement.kind };
    let rating = Rater::new(&open.settings.config.severities).rate(&about, &judgement.changes)?;
    let grades = rating.as_ref().map(|rating| rating.changes.as_slice()).unwrap_or_default();
    let expected = match judged {
        Some(judged) => expected(open, judged, pair, key)?,
        None => None,
    };
    // What was judged before a rule was edited names the rules of then.
    let book = judged.map_or(&open.settings.rules.book, |judged| &judged.book);
    let id = finding_id(&source, key);
    let changes = judgement.changes.iter().enumerate().map(|(at, one)| change(one, grades.get(at), json));
    Ok(View {
        ticket: ticket(&id, pair.live),
        finding_id: id,
        resource_type: key.kind.clone(),
        place: key.place.to_string(),
        source,
        status: judgement.status,
        kind: judgement.kind,
        severity: rating.as_ref().map(|rating| rating.worst.level),
        severity_reason: rating.as_ref().and_then(|rating| reason(&rating.worst)),
        baseline_version: pair.expected,
        version: pair.live,
        taken_at: version.taken_at,
        first_seen: finding.and_then(|finding| finding.since),
        extent,
        reason: judgement.reason.clone(),
        changes: changes.collect(),
        excused: judgement.excused.iter().map(|one| excused(one, book)).collect(),
        expected: expected.as_ref().map(json),
        live: live.map(json),
    })
}

fn plain(status: Status, reason: Option<&str>) -> Judgement {
    Judgement { status, kind: None, changes: Vec::new(), excused: Vec::new(), reason: reason.map(ToOwned::to_owned) }
}

/// What the baseline expects: what it pinned, and what was accepted since.
fn expected(open: &Open, judged: &Judged, pair: &Pair, key: &ResourceKey) -> CommandResult<Option<Value>> {
    let Some(version) = pair.expected else { return Ok(None) };
    let accepted: Vec<_> =
        judged.question.accepted.iter().filter(|one| one.stream == pair.stream && one.key == *key).collect();
    let found = open.store.lookup(&pair.stream, version, &key.id)?;
    let pinned = found.into_iter().find(|(one, _)| one == key).map(|(_, value)| value);
    let pinned = accepted.iter().find_map(|one| one.pinned.clone()).or(pinned);
    Ok(expect(pinned, &accepted))
}

/// The life of a resource, newest first.
fn life(open: &Open, id: &str) -> CommandResult<(Vec<Event>, u64)> {
    let events = open.store.history(id, &open.settings.rules.book)?;
    let told = |event: Happened| {
        let what = match &event.what {
            What::FirstSeen => "first seen",
            What::Changed(_) => "changed",
            What::Deleted => "deleted",
            What::Reappeared(_) => "reappeared",
            What::Unseen => "not looked at",
            What::SeenAgain => "seen again",
        };
        let found = match &event.what {
            What::Changed(found) | What::Reappeared(found) => Some(found),
            _ => None,
        };
        Event {
            at: event.at,
            source: event.stream.to_string(),
            version: event.version,
            what: what.to_owned(),
            changes: found
                .map(|found| found.changes.iter().map(|one| change(one, None, json)).collect())
                .unwrap_or_default(),
            excused_count: found.map_or(0, |found| found.excused.len()),
        }
    };
    let left_out = events.len().saturating_sub(EVENTS) as u64;
    Ok((events.into_iter().rev().take(EVENTS).map(told).collect(), left_out))
}

/// Who claims to manage it, and who merely saw it, by what the newest versions say.
fn claims(open: &Open, id: &str) -> CommandResult<Vec<Claim>> {
    let mut told: BTreeSet<(&'static str, String, Option<String>)> = BTreeSet::new();
    let heads: Vec<(&StreamId, u64)> = open
        .store
        .catalog()
        .streams()
        .filter_map(|(stream, versions)| Some((stream, versions.head()?.number)))
        .collect();
    for (stream, version) in heads {
        let name = stream.to_string();
        for (_, value) in open.store.lookup(stream, version, id)? {
            told.insert(match claim_of(&value, &name) {
                Some(claim) => ("manages", name.clone(), Some(format!("{} {}", claim.by, claim.name))),
                None => ("saw", name.clone(), None),
            });
            for claim in tag_claims(&value, &name) {
                told.insert(("manages", name.clone(), Some(format!("{} {} (by its tags)", claim.by, claim.name))));
            }
        }
    }
    Ok(told.into_iter().map(|(role, source, as_what)| Claim { source, role, as_what }).collect())
}
