//! `blame`: who changed a resource. The window in which a source saw it change, joined with what was done in that time.

mod cloud;
mod managers;
mod show;

use std::collections::BTreeMap;

use driftline_core::compare::Change;
use driftline_core::{ResourceKey, Span, StreamId};
use driftline_store::history::{Event as Happening, What};
use driftline_store::{Store, Stream};
use jiff::{SignedDuration, Timestamp};
use serde::Serialize;

use crate::args::BlameArgs;
use crate::error::{CommandError, CommandResult};
use crate::explain::resolve;
use crate::settings::Settings;

/// Clocks differ, and an observation takes a while after the moment that it is dated with.
const SLACK: SignedDuration = SignedDuration::from_mins(5);

/// Who changed a resource, as far as anybody recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Blame {
    pub id: String,
    /// The whole time that the changes below are of.
    pub from: Option<Timestamp>,
    pub to: Option<Timestamp>,
    /// Each change that a source saw, newest first.
    pub turns: Vec<Turn>,
    /// What could not be looked into, and what to do about it.
    pub note: Option<String>,
}

/// One change of a resource, as one source saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Turn {
    pub stream: StreamId,
    pub key: ResourceKey,
    pub what: Turned,
    pub changes: Vec<Change>,
    /// When it was last seen as it was before, if it was; and when first as it is since.
    pub from: Option<Timestamp>,
    pub to: Timestamp,
    pub versions: (Option<u64>, u64),
    /// What was done meanwhile that may have been it, the surest first.
    pub acts: Vec<Act>,
    pub notes: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Turned {
    New,
    Modified,
    Deleted,
}

impl Turned {
    fn word(self) -> &'static str {
        match self {
            Turned::New => "new",
            Turned::Modified => "modified",
            Turned::Deleted => "deleted",
        }
    }
}

/// How sure it is that an act is the cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Certainty {
    Certain,
    Likely,
    Possible,
    /// It was tried, and refused: it changed nothing.
    Refused,
}

impl Certainty {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Certainty::Certain => "certain",
            Certainty::Likely => "likely",
            Certainty::Possible => "possible",
            Certainty::Refused => "refused",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Act {
    pub at: Timestamp,
    pub who: String,
    pub what: String,
    /// How it was done: the console, a tool, a service on someone's behalf, a field manager.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub how: Option<String>,
    /// From which address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    pub certainty: Certainty,
    /// Why it is taken for the cause.
    pub why: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event_id: Option<String>,
}

pub(crate) fn run(settings: &Settings, args: &BlameArgs) -> CommandResult<()> {
    let store = settings.open_store()?;
    let id = resolve(&store, &args.resource)?;
    let blame = ask(settings, &store, &id, args.baseline.as_deref(), args.all, args.live.then_some(args))?;
    settings.printer.print(&show::Told { settings, blame })
}

/// Who changed a resource since the baseline, by what is stored. The id is a whole one.
#[cfg(feature = "web")]
pub(crate) fn of(settings: &Settings, store: &Store, id: &str, baseline: &str) -> CommandResult<Blame> {
    ask(settings, store, id, Some(baseline), false, None)
}

fn ask(
    settings: &Settings,
    store: &Store,
    id: &str,
    baseline: Option<&str>,
    all: bool,
    live: Option<&BlameArgs>,
) -> CommandResult<Blame> {
    let mut blame = changes(settings, store, id, baseline, all)?;
    attribute(settings, store, &mut blame, live)?;
    Ok(blame)
}

/// The changes to explain: those since the baseline, or the last one if there are none, or all.
fn changes(settings: &Settings, store: &Store, id: &str, baseline: Option<&str>, all: bool) -> CommandResult<Blame> {
    let name = settings.baseline(baseline)?;
    let pins = match (store.catalog().baseline(&name), baseline) {
        (Ok(found), _) => Some(&found.pins),
        (Err(error), Some(_)) => return Err(error.into()),
        (Err(_), None) => None,
    };
    let mut lives: BTreeMap<(StreamId, ResourceKey), Vec<Happening>> = BTreeMap::new();
    for event in store.history(id, &settings.rules.book)? {
        lives.entry((event.stream.clone(), event.key.clone())).or_default().push(event);
    }
    if lives.is_empty() {
        return Err(CommandError::new(format!("no resource `{id}` has ever been observed"))
            .hint("resources are named by their id, or a part of it; `driftline drift --all` lists them"));
    }
    let mut turns = Vec::new();
    let mut earlier = false;
    for ((stream, key), events) in lives {
        let mut own = life(store, &stream, &key, &events)?;
        let pin = pins.and_then(|pins| pins.get(&stream)).copied();
        let since: Vec<Turn> = match pin {
            Some(pin) if !all => own.iter().filter(|turn| turn.versions.1 > pin).cloned().collect(),
            _ => own.clone(),
        };
        match since.is_empty() {
            false => turns.extend(since),
            true => {
                earlier |= !own.is_empty();
                turns.extend(own.pop());
            }
        }
    }
    turns.sort_by(|a, b| (b.to, &a.stream, &a.key).cmp(&(a.to, &b.stream, &b.key)));
    let first = turns.iter().filter_map(|turn| turn.from).min();
    let note = match (turns.is_empty(), earlier && turns.iter().all(|turn| is_before(turn, pins))) {
        (true, _) => Some("no source has seen it change: it is as it was when it was first observed".to_owned()),
        (false, true) => Some(format!("nothing changed since the baseline `{name}`; this is the last change before")),
        _ => None,
    };
    let to = turns.iter().map(|turn| turn.to).max();
    Ok(Blame { id: id.to_owned(), from: first, to, turns, note })
}

fn is_before(turn: &Turn, pins: Option<&BTreeMap<StreamId, u64>>) -> bool {
    pins.and_then(|pins| pins.get(&turn.stream)).is_some_and(|pin| turn.versions.1 <= *pin)
}

/// The changes of one resource in one stream, oldest first.
fn life(store: &Store, stream: &StreamId, key: &ResourceKey, events: &[Happening]) -> CommandResult<Vec<Turn>> {
    let versions = store.catalog().stream(stream)?;
    let mut turns = Vec::new();
    // The version from which on nobody looked.
    let mut unseen: Option<u64> = None;
    for event in events {
        let (what, changes) = match &event.what {
            What::Unseen => {
                unseen = unseen.or(Some(event.version));
                continue;
            }
            What::SeenAgain => {
                unseen = None;
                continue;
            }
            What::FirstSeen => (Turned::New, Vec::new()),
            What::Reappeared(found) => (Turned::New, found.changes.clone()),
            What::Deleted => (Turned::Deleted, Vec::new()),
            What::Changed(found) => (Turned::Modified, found.changes.clone()),
        };
        let looked = unseen.take().unwrap_or(event.version);
        // What rules excuse did not happen.
        if what == Turned::Modified && changes.is_empty() {
            continue;
        }
        let before = match what {
            Turned::New => last_without(store, versions, event.version, key)?,
            _ => before(versions, looked),
        };
        // Of what was there when the source first looked nobody knows since when.
        if what == Turned::New
            && before.is_none()
            && versions.versions().next().map(|first| first.number) == Some(event.version)
        {
            continue;
        }
        turns.push(Turn {
            stream: stream.clone(),
            key: key.clone(),
            what,
            changes,
            from: before.map(|(_, at)| at),
            to: event.at,
            versions: (before.map(|(number, _)| number), event.version),
            acts: Vec::new(),
            notes: Vec::new(),
        });
    }
    Ok(turns)
}

fn before(stream: &Stream, version: u64) -> Option<(u64, Timestamp)> {
    let found = stream.versions().rev().find(|one| one.number < version);
    found.map(|one| (one.number, one.taken_at))
}

/// The last version that looked where the resource is, and did not see it.
fn last_without(
    store: &Store,
    stream: &Stream,
    version: u64,
    key: &ResourceKey,
) -> CommandResult<Option<(u64, Timestamp)>> {
    for one in stream.versions().rev().filter(|one| one.number < version) {
        if store.coverage(&one.coverage)?.is_complete(&key.kind, key.place.as_str()) {
            return Ok(Some((one.number, one.taken_at)));
        }
    }
    Ok(None)
}

/// Finds who did it. With `live` AWS itself is asked for what is not stored.
fn attribute(settings: &Settings, store: &Store, blame: &mut Blame, live: Option<&BlameArgs>) -> CommandResult<()> {
    for turn in &mut blame.turns {
        match turn.key.place.as_str().split('/').next() {
            Some("k8s") => managers::attribute(store, turn)?,
            _ => cloud::attribute(settings, store, turn, live)?,
        }
        turn.acts.sort_by(|a, b| {
            (a.certainty, std::cmp::Reverse(a.at), &a.event_id).cmp(&(
                b.certainty,
                std::cmp::Reverse(b.at),
                &b.event_id,
            ))
        });
    }
    Ok(())
}

/// The time in which it must have happened, with some slack; `None` if it has no beginning.
fn window(turn: &Turn) -> Option<Span> {
    let from = turn.from?.checked_sub(SLACK).unwrap_or(Timestamp::MIN);
    Some(Span { from, to: turn.to.checked_add(SLACK).unwrap_or(Timestamp::MAX) })
}
