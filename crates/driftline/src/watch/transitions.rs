//! What became of things since a channel was last told: one pure function, and what is made of its answer.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use driftline_core::Severity;
use driftline_notify::message::{About, Counts, Digest, DigestCause, Event, Turn, Turned};
use driftline_notify::outbox::{ChannelState, Subject, Told, Update};
use jiff::Timestamp;

use super::plan::{Damping, Then};

/// How many things a digest lists.
const LISTED: usize = 20;

/// One thing that is not as it should be.
#[derive(Clone, Debug)]
pub(crate) struct Item {
    /// The same for the same state of it: another value or severity gives another.
    pub digest: String,
    pub subject: Subject,
    /// The version that it was held against.
    pub expected: Option<u64>,
    /// Which channels want to hear of it.
    pub wanted: Vec<bool>,
}

/// Everything that is known at one moment.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub now: Timestamp,
    pub baseline: String,
    pub open: BTreeMap<String, Item>,
    /// Things that nobody could look at.
    pub unchecked: BTreeSet<String>,
    /// The streams that were compared, each with the version of the baseline.
    pub compared: BTreeMap<String, u64>,
    /// Streams that the baseline does not know, so that nothing of them is compared.
    pub unknown_streams: usize,
    /// Things that were accepted on top of the baseline.
    pub accepted: BTreeSet<String>,
    /// Sources that are known to work.
    pub healthy: BTreeSet<String>,
}

enum Sight<'s> {
    Open(&'s Item),
    Fine,
    /// Not looked at: whatever was told still stands.
    Unknown,
}

impl Seen {
    fn sight(&self, id: &str, subject: Option<&Subject>) -> Sight<'_> {
        if let Some(item) = self.open.get(id) {
            return Sight::Open(item);
        }
        let looked = match subject {
            Some(Subject::Finding(finding)) => {
                self.compared.contains_key(&finding.source) && !self.unchecked.contains(id)
            }
            Some(Subject::Source(_)) => self.healthy.contains(id),
            None => false,
        };
        if looked { Sight::Fine } else { Sight::Unknown }
    }

    /// Why something is in order again.
    fn because(&self, id: &str, told: &Told) -> Option<String> {
        let Subject::Finding(finding) = &told.subject else { return None };
        let moved = told.expected.is_some() && self.compared.get(&finding.source).copied() != told.expected;
        Some(
            if self.accepted.contains(id) {
                "accepted"
            } else if moved {
                "baseline"
            } else {
                "back"
            }
            .to_owned(),
        )
    }
}

pub(crate) fn source_of(subject: &Subject) -> &str {
    match subject {
        Subject::Finding(finding) => &finding.source,
        Subject::Source(health) => &health.source,
    }
}

/// What one channel is to be told, and what it then knows. `channel` is its number in [`Item::wanted`].
///
/// Whoever was told of something is told what becomes of it, whatever its severity is by then; what was not looked at is
/// as it was last told.
pub(crate) fn derive(
    state: &ChannelState,
    seen: &Seen,
    channel: usize,
    damping: Damping,
    quiet: &dyn Fn(&str) -> Option<Then>,
) -> (Update, Vec<(String, Turned<Subject>)>) {
    let mut update = Update { begun: state.begun, held: false, ..Update::default() };
    let mut turns = Vec::new();
    let wanted = seen.open.iter().filter(|(_, item)| item.wanted.get(channel) == Some(&true)).map(|(id, _)| id);
    let ids: BTreeSet<&String> = state.told.keys().chain(wanted).collect();
    for id in ids {
        let told = state.told.get(id);
        let item = match seen.sight(id, told.map(|told| &told.subject)) {
            Sight::Unknown => continue,
            Sight::Open(item) => Some(item),
            Sight::Fine => None,
        };
        let Some(subject) = item.map(|item| &item.subject).or(told.map(|told| &told.subject)) else { continue };
        let then = quiet(source_of(subject));
        if then == Some(Then::Hold) {
            // Nothing is taken note of: what is true when the window ends is what will be told.
            let said = told.and_then(|told| told.said.as_deref());
            update.held |= said != item.map(|item| item.digest.as_str());
            continue;
        }
        let (entry, turn) = step(id, told, item, subject, seen, damping, then == Some(Then::Drop));
        if let Some(turned) = turn {
            turns.push((id.clone(), turned));
        }
        if is_over(&entry) {
            if told.is_some() {
                update.forget.push(id.clone());
            }
        } else if told != Some(&entry) {
            update.told.insert(id.clone(), entry);
        }
    }
    update.begun |= !update.held || !turns.is_empty();
    (update, turns)
}

/// Nothing is wrong with it, and nothing was for long enough that it would not be called back again.
fn is_over(entry: &Told) -> bool {
    entry.said.is_none() && entry.seen.is_none() && !entry.flapping && entry.changes.is_empty()
}

fn step(
    id: &str,
    told: Option<&Told>,
    item: Option<&Item>,
    subject: &Subject,
    seen: &Seen,
    damping: Damping,
    drop: bool,
) -> (Told, Option<Turned<Subject>>) {
    let current = item.map(|item| item.digest.clone());
    let mut entry = told.cloned().unwrap_or_else(|| Told {
        said: None,
        seen: None,
        changes: Vec::new(),
        flapping: false,
        silent: false,
        subject: subject.clone(),
        expected: None,
    });
    let age = |moment: &Timestamp| std::time::Duration::try_from(seen.now.duration_since(*moment)).unwrap_or_default();
    entry.changes.retain(|moment| age(moment) < damping.window.max(damping.calm));
    if entry.seen != current {
        entry.changes.push(seen.now);
        entry.seen.clone_from(&current);
    }
    let lately = entry.changes.iter().filter(|moment| age(moment) < damping.window).count();
    let differs = entry.said != current;
    let turn = if entry.flapping {
        let calm = entry.changes.last().is_none_or(|last| age(last) >= damping.calm);
        entry.flapping = !calm;
        match (calm, differs) {
            (false, _) => None,
            (true, true) => turn_of(entry.said.as_deref(), current.as_deref()),
            (true, false) => Some(Turn::Settled),
        }
    } else if differs && lately > damping.limit {
        entry.flapping = true;
        Some(Turn::Flapping)
    } else {
        turn_of(entry.said.as_deref(), current.as_deref()).filter(|_| differs)
    };
    let because = (turn == Some(Turn::Resolved)).then(|| seen.because(id, &entry)).flatten();
    if let Some(item) = item {
        entry.subject = item.subject.clone();
        entry.expected = item.expected;
    }
    // Of what was never said aloud, the first word is that it is there.
    let silent = std::mem::take(&mut entry.silent);
    let turn = match turn {
        Some(Turn::Resolved | Turn::Settled) if silent => {
            entry.said = None;
            None
        }
        Some(Turn::Changed) if silent => Some(Turn::New),
        None => {
            entry.silent = silent;
            None
        }
        turn => turn,
    };
    if !matches!(turn, None | Some(Turn::Flapping)) || (silent && item.is_none()) {
        entry.said.clone_from(&current);
    }
    if drop && turn.is_some() {
        entry.said.clone_from(&current);
        entry.flapping = false;
        // Whoever heard of it before will want to hear its end.
        let heard = told.is_some_and(|told| told.said.is_some() && !told.silent);
        entry.silent = current.is_some() && !heard;
        return (entry, None);
    }
    let turned = turn.map(|event| Turned {
        event,
        again: event == Turn::New && told.is_some_and(|told| !told.silent && told.said.is_none()),
        because,
        changes_lately: (event == Turn::Flapping).then_some(lately),
        subject: entry.subject.clone(),
    });
    (entry, turned)
}

fn turn_of(said: Option<&str>, current: Option<&str>) -> Option<Turn> {
    match (said, current) {
        (None, Some(_)) => Some(Turn::New),
        (Some(before), Some(after)) if before != after => Some(Turn::Changed),
        (Some(_), None) => Some(Turn::Resolved),
        _ => None,
    }
}

/// How the turns of a round are told on a channel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Manner {
    /// It is told for the first time.
    pub first: bool,
    /// Things were held back until now.
    pub held: bool,
    /// Each thing can have a thread of its own.
    pub threads: bool,
    pub at_most: usize,
}

/// One message for each turn, or one for all of them.
pub(crate) fn compose(
    mut turns: Vec<(String, Turned<Subject>)>,
    manner: Manner,
    now: Timestamp,
    baseline: &str,
) -> Vec<(Option<String>, Event)> {
    let event = |about| Event { at: now, baseline: baseline.to_owned(), about };
    // The worst first, then by name: the order is the same each time, and means something to people.
    turns.sort_by(|(_, a), (_, b)| order(a).cmp(&order(b)));
    let cause = match turns.len() {
        0 => return Vec::new(),
        _ if manner.first => Some(DigestCause::First),
        several if several > manner.at_most => Some(DigestCause::Storm),
        several if several > 1 && manner.held => Some(DigestCause::Quiet),
        several if several > 1 && !manner.threads => Some(DigestCause::Round),
        _ => None,
    };
    match cause {
        Some(cause) => vec![(None, event(About::Digest(Box::new(digest(turns, cause)))))],
        None => turns.into_iter().map(|(id, turned)| (Some(id), event(about(turned)))).collect(),
    }
}

/// Sources before findings, bad before good, then by name.
fn order(turned: &Turned<Subject>) -> (Reverse<Option<Severity>>, &str, &str, &str) {
    match &turned.subject {
        Subject::Source(health) => (Reverse(Some(Severity::Critical)), "", &health.source, &health.trouble),
        Subject::Finding(finding) => {
            let level = finding.severity.as_deref().and_then(|level| level.parse().ok());
            let level = level.filter(|_| turned.event != Turn::Resolved);
            (Reverse(level), &finding.resource_type, &finding.canonical_id, &finding.source)
        }
    }
}

fn about(turned: Turned<Subject>) -> About {
    let Turned { event, again, because, changes_lately, subject } = turned;
    match subject {
        Subject::Finding(subject) => About::Finding(Turned { event, again, because, changes_lately, subject }),
        Subject::Source(subject) => About::Source(Turned { event, again, because, changes_lately, subject }),
    }
}

fn digest(turns: Vec<(String, Turned<Subject>)>, cause: DigestCause) -> Digest {
    let mut counts = Counts::default();
    let mut severities: BTreeMap<String, usize> = BTreeMap::new();
    let (mut findings, mut sources) = (Vec::new(), Vec::new());
    let all = turns.len();
    for (_, turned) in turns {
        counts.add(turned.event);
        match about(turned) {
            About::Finding(finding) => {
                if let Some(level) = finding.subject.severity.as_ref().filter(|_| finding.event != Turn::Resolved) {
                    *severities.entry(level.clone()).or_default() += 1;
                }
                findings.push(finding);
            }
            About::Source(health) => sources.push(health),
            About::Digest(_) | About::Test => {}
        }
    }
    sources.truncate(LISTED);
    findings.truncate(LISTED - sources.len());
    let more = all - findings.len() - sources.len();
    Digest { cause, counts, severities, findings, sources, more }
}
