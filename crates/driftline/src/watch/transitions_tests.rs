//! The tables of `transitions.rs`: each row is a round, in one letter for what is seen and a word for what is told.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use driftline_notify::message::{About, DigestCause, Finding, Health};
use driftline_notify::outbox::{ChannelState, Subject, Update};
use jiff::Timestamp;

use super::plan::{Damping, Then};
use super::transitions::{Item, Manner, Seen, compose, derive};

const MINUTES: u64 = 10;

fn at(minute: u64) -> Timestamp {
    Timestamp::from_second(1_750_000_000 + 60 * i64::try_from(minute).unwrap()).unwrap()
}

fn finding(id: &str, severity: &str) -> Subject {
    Subject::Finding(Finding {
        id: id.into(),
        canonical_id: id.into(),
        resource_type: "T".into(),
        place: "here".into(),
        source: "s".into(),
        status: "drifted".into(),
        kind: Some("modified".into()),
        severity: Some(severity.into()),
        severity_reason: None,
        first_seen: None,
        changes: Vec::new(),
        change_count: 0,
    })
}

fn nothing(now: Timestamp) -> Seen {
    Seen {
        now,
        baseline: "main".into(),
        open: BTreeMap::new(),
        unchecked: BTreeSet::new(),
        compared: BTreeMap::from([("s".to_owned(), 1)]),
        unknown_streams: 0,
        accepted: BTreeSet::new(),
        healthy: BTreeSet::new(),
    }
}

fn with(mut seen: Seen, id: &str, digest: &str, wanted: bool) -> Seen {
    let item = Item { digest: digest.into(), subject: finding(id, "high"), expected: Some(1), wanted: vec![wanted] };
    seen.open.insert(id.into(), item);
    seen
}

/// `-` in order, `?` not checked, `!` its stream not compared, any other letter: open in that state.
fn seen(now: Timestamp, letter: char) -> Seen {
    let seen = nothing(now);
    match letter {
        '-' => seen,
        '?' => Seen { unchecked: BTreeSet::from(["x".to_owned()]), ..seen },
        '!' => Seen { compared: BTreeMap::new(), ..seen },
        letter => with(seen, "x", &letter.to_string(), true),
    }
}

fn apply(state: &mut ChannelState, update: Update) {
    (state.begun, state.held) = (update.begun, update.held);
    state.told.extend(update.told);
    for id in update.forget {
        state.told.remove(&id);
    }
}

fn begun() -> ChannelState {
    ChannelState { begun: true, ..ChannelState::default() }
}

/// What is told in each round, ten minutes apart.
fn told(letters: &str, quiet: &dyn Fn(usize) -> Option<Then>) -> Vec<String> {
    let mut state = begun();
    let damping = Damping { limit: 4, window: Duration::from_hours(6), calm: Duration::from_hours(1) };
    let mut all = Vec::new();
    for (round, letter) in letters.chars().enumerate() {
        let now = at(MINUTES * round as u64);
        let (update, turns) = derive(&state, &seen(now, letter), 0, damping, &|_| quiet(round));
        apply(&mut state, update);
        assert!(turns.len() <= 1, "there is one thing only");
        all.push(turns.first().map_or_else(String::new, |(_, turned)| {
            let again = if turned.again { " again" } else { "" };
            format!("{}{again}", turned.event.name())
        }));
    }
    all
}

#[test]
fn only_transitions_are_told_and_never_the_same_twice() {
    for (letters, expected) in [
        ("aaaa", &["new", "", "", ""][..]),
        ("-a-a", &["", "new", "resolved", "new again"]),
        ("abba", &["new", "changed", "", "changed"]),
        ("a--", &["new", "resolved", ""]),
        // What was not looked at is neither resolved nor new again.
        ("a??a", &["new", "", "", ""]),
        ("a!!a", &["new", "", "", ""]),
        ("a?-", &["new", "", "resolved"]),
        ("a?b", &["new", "", "changed"]),
        ("?a", &["", "new"]),
    ] {
        assert_eq!(told(letters, &|_| None), expected, "{letters}");
    }
}

#[test]
fn what_flaps_is_told_once_and_then_as_it_settles() {
    // Four changes are told; at the fifth it flaps; an hour after the last one it is told how it ended.
    let end = told("a-a-a-a--------", &|_| None);
    let expected =
        ["new", "resolved", "new again", "resolved", "flapping", "", "", "", "", "", "", "", "", "settled", ""];
    assert_eq!(end, expected);
    let end = told("a-a-aaaaaaaaaa", &|_| None);
    let expected =
        ["new", "resolved", "new again", "resolved", "flapping", "", "", "", "", "", "new again", "", "", ""];
    assert_eq!(end, expected);
    // Another value in every pass is flapping, too.
    let end = told("abcdefghhhhhhhh", &|_| None);
    let expected = ["new", "changed", "changed", "changed", "flapping", "", "", "", "", "", "", "", "", "changed", ""];
    assert_eq!(end, expected);
}

#[test]
fn what_is_held_is_told_as_it_is_afterwards_and_what_is_dropped_is_not() {
    let window = |then: Then| move |round: usize| (2..5).contains(&round).then_some(then);
    for (letters, held, dropped) in [
        // It came and stayed.
        ("--aaaa", ["", "", "", "", "", "new"], ["", "", "", "", "", ""]),
        // It came and went.
        ("--aa--", ["", "", "", "", "", ""], ["", "", "", "", "", ""]),
        // It went.
        ("aa----", ["new", "", "", "", "", "resolved"], ["new", "", "", "", "", ""]),
        // It came, and was another afterwards: the first that is said of it aloud.
        ("--aaab", ["", "", "", "", "", "new"], ["", "", "", "", "", "new"]),
        // It was told of, became another, and went afterwards.
        ("aabbb-", ["new", "", "", "", "", "resolved"], ["new", "", "", "", "", "resolved"]),
        // It came and stayed until after the window.
        ("--aaa-", ["", "", "", "", "", ""], ["", "", "", "", "", ""]),
    ] {
        assert_eq!(told(letters, &window(Then::Hold)), held, "held: {letters}");
        assert_eq!(told(letters, &window(Then::Drop)), dropped, "dropped: {letters}");
    }
}

#[test]
fn that_something_was_held_is_known_until_it_is_told() {
    let held = |_: &str| Some(Then::Hold);
    let (update, turns) = derive(&begun(), &seen(at(0), 'a'), 0, Damping::default(), &held);
    assert!(update.held && turns.is_empty() && update.told.is_empty());
    let (update, _) = derive(&begun(), &seen(at(0), '-'), 0, Damping::default(), &held);
    assert!(!update.held, "there is nothing to hold");
    // A channel that has not begun still gets its digest of how things stand.
    let (update, _) = derive(&ChannelState::default(), &seen(at(0), 'a'), 0, Damping::default(), &held);
    assert!(!update.begun);
}

#[test]
fn a_channel_hears_the_end_of_what_it_was_told_and_nothing_of_the_rest() {
    let mut state = begun();
    let look = |state: &ChannelState, seen: Seen| derive(state, &seen, 0, Damping::default(), &|_| None);
    let (update, turns) = look(&state, with(nothing(at(0)), "x", "a", false));
    assert!(turns.is_empty() && update.told.is_empty(), "it does not want this one");
    let (update, turns) = look(&state, with(nothing(at(1)), "x", "b", true));
    assert_eq!(turns[0].1.event.name(), "new");
    apply(&mut state, update);
    let (update, turns) = look(&state, with(nothing(at(2)), "x", "c", false));
    assert_eq!(turns[0].1.event.name(), "changed", "it was told of it, so it hears that it is less severe now");
    apply(&mut state, update);
    let (_, turns) = look(&state, nothing(at(3)));
    assert_eq!(turns[0].1.event.name(), "resolved");
}

#[test]
fn why_it_is_resolved_is_said() {
    let mut state = begun();
    let look = |state: &ChannelState, seen: Seen| derive(state, &seen, 0, Damping::default(), &|_| None);
    let (update, _) = look(&state, with(nothing(at(0)), "x", "a", true));
    apply(&mut state, update);
    let accepted = Seen { accepted: BTreeSet::from(["x".to_owned()]), ..nothing(at(1)) };
    let moved = Seen { compared: BTreeMap::from([("s".to_owned(), 2)]), ..nothing(at(1)) };
    for (seen, because) in [(nothing(at(1)), "back"), (accepted, "accepted"), (moved, "baseline")] {
        let (_, turns) = look(&state, seen);
        assert_eq!(turns[0].1.because.as_deref(), Some(because));
    }
}

#[test]
fn a_source_that_fails_is_told_once_and_that_it_works_again_only_when_it_does() {
    let health = Health { id: "failing:s".into(), source: "s".into(), trouble: "failing".into(), reason: "no".into() };
    let item = |reason: &str| Item {
        digest: "failing".into(),
        subject: Subject::Source(Health { reason: reason.into(), ..health.clone() }),
        expected: None,
        wanted: vec![true],
    };
    let failing = |minute, reason: &str| {
        let mut seen = nothing(at(minute));
        seen.open.insert("failing:s".into(), item(reason));
        seen
    };
    let working = |minute| Seen { healthy: BTreeSet::from(["failing:s".to_owned()]), ..nothing(at(minute)) };
    let mut state = begun();
    let mut words = Vec::new();
    for seen in [failing(0, "no"), failing(1, "other words"), nothing(at(2)), working(3), working(4)] {
        let (update, turns) = derive(&state, &seen, 0, Damping::default(), &|_| None);
        apply(&mut state, update);
        words.push(turns.first().map_or("", |(_, turned)| turned.event.name()));
    }
    assert_eq!(words, ["new", "", "", "resolved", ""]);
}

#[test]
fn what_was_resolved_long_ago_is_forgotten() {
    let mut state = begun();
    for (minute, letter) in [(0, 'a'), (1, '-'), (30, '-'), (361, '-'), (362, '-')] {
        let (update, _) = derive(&state, &seen(at(minute), letter), 0, Damping::default(), &|_| None);
        apply(&mut state, update);
        assert_eq!(state.told.is_empty(), minute >= 361, "after {minute} minutes");
    }
}

fn turns(number: usize) -> Vec<(String, driftline_notify::message::Turned<Subject>)> {
    let mut seen = nothing(at(0));
    for one in 0..number {
        seen = with(seen, &format!("f{one:05}"), "a", true);
    }
    derive(&begun(), &seen, 0, Damping::default(), &|_| None).1
}

#[test]
fn a_first_time_a_storm_a_window_and_a_channel_without_threads_are_one_message() {
    let usual = Manner { first: false, held: false, threads: true, at_most: 20 };
    for (number, manner, expected) in [
        (0, Manner { first: true, ..usual }, (0, None)),
        (1, usual, (1, None)),
        (20, usual, (20, None)),
        (21, usual, (1, Some(DigestCause::Storm))),
        (10_000, usual, (1, Some(DigestCause::Storm))),
        (10_000, Manner { first: true, ..usual }, (1, Some(DigestCause::First))),
        (1, Manner { first: true, ..usual }, (1, Some(DigestCause::First))),
        (1, Manner { held: true, ..usual }, (1, None)),
        (2, Manner { held: true, ..usual }, (1, Some(DigestCause::Quiet))),
        (1, Manner { threads: false, ..usual }, (1, None)),
        (2, Manner { threads: false, ..usual }, (1, Some(DigestCause::Round))),
    ] {
        let messages = compose(turns(number), manner, at(0), "main");
        let cause = messages.first().and_then(|(_, event)| match &event.about {
            About::Digest(digest) => Some(digest.cause),
            _ => None,
        });
        assert_eq!((messages.len(), cause), expected, "{number} {manner:?}");
        if let Some((_, event)) = messages.first() {
            let size = serde_json::to_string(event).unwrap().len();
            assert!(size < 20_000, "{size}");
        }
        if let Some(About::Digest(digest)) = messages.first().map(|(_, event)| &event.about) {
            assert_eq!(digest.findings.len() + digest.more, number);
            assert_eq!((digest.counts.new, digest.severities["high"]), (number, number));
        }
    }
}
