//! Streams of events: a pass only adds, nothing in them is drift, and old ones are forgotten.

use driftline_core::coverage::Coverage;
use driftline_core::rule::RuleBook;
use driftline_core::{BaselineName, Nature, Observation, ResourceKey, Span, Value};
use driftline_store::draft::Permissions;
use driftline_store::gc::Retention;
use driftline_store::{Store, StoreError};
use jiff::SignedDuration;

use crate::support::{EAGER, extent, key, moment, observation, partial, stream};

fn event(step: u32, name: &str) -> ResourceKey {
    key("T::Event", "aws/1/us-east-1", &format!("{}/{name}", moment(step)))
}

fn span(from: u32, to: u32) -> Span {
    Span { from: moment(from), to: moment(to) }
}

fn pass(step: u32, events: &[ResourceKey], spans: &[Span]) -> Observation {
    let value = Value::from([("name", Value::from("x"))]);
    let mut made =
        observation(&stream("trail"), moment(step), Coverage::complete(), events.iter().map(|one| (one, &value)));
    made.header.nature = Nature::Events(spans.to_vec());
    made
}

fn state(step: u32, ids: &[&str]) -> Observation {
    let value = Value::from([("a", Value::from(i64::from(step)))]);
    let keys: Vec<ResourceKey> = ids.iter().map(|id| key("T", "p", id)).collect();
    observation(&stream("things"), moment(step), Coverage::complete(), keys.iter().map(|one| (one, &value)))
}

fn commit(store: &mut Store, observation: &Observation) -> Result<driftline_store::Committed, StoreError> {
    store.commit(observation, None, Permissions::default(), observation.header.taken_at)
}

fn ids(store: &Store) -> Vec<String> {
    let name = stream("trail");
    let head = store.catalog().stream(&name).unwrap().head().unwrap().number;
    store.keys(&name, head).unwrap().into_iter().map(|key| key.id.rsplit_once('/').unwrap().1.to_owned()).collect()
}

#[test]
fn a_pass_adds_and_neither_an_empty_one_nor_a_partial_one_takes_away() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::create(folder.path()).unwrap().with_tuning(EAGER);
    commit(&mut store, &pass(5, &[event(1, "a"), event(2, "b")], &[span(0, 3)])).unwrap();
    let again = commit(&mut store, &pass(6, &[event(2, "b"), event(4, "c")], &[span(2, 5)])).unwrap();
    assert_eq!((again.rows, again.unseen, again.changes.add, again.changes.remove), (3, 0, 1, 0));
    commit(&mut store, &pass(7, &[], &[span(7, 8)])).unwrap();
    let mut cut = pass(8, &[event(8, "d")], &[]);
    cut.header.coverage = Coverage::new();
    cut.header.coverage.record(extent("T::Event", "aws/1/us-east-1"), partial());
    commit(&mut store, &cut).unwrap();
    assert_eq!(ids(&store), ["a", "b", "c", "d"]);
    let store = Store::open(folder.path()).unwrap();
    let head = store.catalog().stream(&stream("trail")).unwrap().head().unwrap();
    assert_eq!((head.unseen, head.nature.spans().unwrap()), (0, [span(0, 5), span(7, 8)].as_slice()));
    assert_eq!(store.events_within(&stream("trail"), span(2, 8)).unwrap().len(), 2, "b and c; d is at the end");
    store.verify().unwrap();
}

#[test]
fn events_are_no_part_of_any_question_about_drift() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::create(folder.path()).unwrap();
    commit(&mut store, &state(1, &["x"])).unwrap();
    commit(&mut store, &pass(2, &[event(1, "a")], &[])).unwrap();
    let name: BaselineName = "main".parse().unwrap();
    let pins = store.catalog().streams().map(|(id, stream)| (id.clone(), stream.head().unwrap().number)).collect();
    store.set_baseline(&name, &pins, "me", moment(3)).unwrap();
    commit(&mut store, &pass(4, &[event(3, "b")], &[])).unwrap();
    let question = store.question(&name, None).unwrap();
    assert_eq!(question.pairs.len(), 1);
    let drift = store.drift(&question, &RuleBook::default()).unwrap();
    assert_eq!((drift.tally().total(), drift.findings.len(), drift.sources.len()), (1, 0, 1));
    assert_eq!(store.ids_containing("", 9).unwrap(), ["x"]);
    assert!(store.history(&event(1, "a").id, &RuleBook::default()).unwrap().is_empty());
    let pin = [(stream("trail"), 1)].into();
    assert!(matches!(store.set_baseline(&name, &pin, "me", moment(5)), Err(StoreError::Events(_))));
}

#[test]
fn what_happened_and_how_things_are_do_not_follow_one_another() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::create(folder.path()).unwrap();
    commit(&mut store, &pass(1, &[event(1, "a")], &[])).unwrap();
    let mut other = pass(2, &[event(1, "b")], &[]);
    other.header.nature = Nature::State;
    assert!(matches!(commit(&mut store, &other), Err(StoreError::OtherNature { .. })));
    let timeless = pass(3, &[key("T::Event", "p", "no-time/x")], &[]);
    assert!(matches!(commit(&mut store, &timeless), Err(StoreError::Timeless { .. })));
    assert_eq!(ids(&store), ["a"]);
}

#[test]
fn two_writers_of_events_keep_each_others() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::create(folder.path()).unwrap().with_tuning(EAGER);
    commit(&mut store, &pass(1, &[event(0, "a")], &[span(0, 1)])).unwrap();
    let ours = pass(3, &[event(1, "b"), event(2, "c")], &[span(1, 3)]);
    let mut draft = store.draft(ours.header.clone(), None).unwrap();
    for (key, properties) in ours.resources() {
        draft.push(key.as_ref(), properties.as_ref(), &[]).unwrap();
    }
    let mut other = Store::open(folder.path()).unwrap();
    commit(&mut other, &pass(2, &[event(1, "b"), event(1, "theirs")], &[span(0, 2)])).unwrap();
    draft.finish(None, Permissions::default(), moment(3)).unwrap();
    assert_eq!(ids(&store), ["a", "b", "theirs", "c"]);
    let head = store.catalog().stream(&stream("trail")).unwrap().head().unwrap();
    assert_eq!((head.number, head.unseen, head.nature.spans().unwrap()), (3, 0, [span(0, 3)].as_slice()));
    store.verify().unwrap();
}

#[test]
fn retention_forgets_events_by_their_age_and_keeps_the_rest_in_one_version() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::create(folder.path()).unwrap().with_tuning(EAGER);
    commit(&mut store, &state(1, &["x"])).unwrap();
    commit(&mut store, &pass(5, &[event(1, "a"), event(4, "b")], &[span(0, 5)])).unwrap();
    commit(&mut store, &pass(9, &[event(8, "c")], &[span(5, 9)])).unwrap();
    let retention =
        Retention { keep_for: SignedDuration::from_hours(6), keep_last: 5, grace: SignedDuration::from_secs(0) };
    let planned = store.collect(retention, moment(9), true).unwrap();
    assert_eq!((planned.forgotten[&stream("trail")], ids(&store).len()), (1, 3), "a dry run changes nothing");
    let done = store.collect(retention, moment(9), false).unwrap();
    assert_eq!(done.forgotten[&stream("trail")], 1);
    assert_eq!(ids(&store), ["b", "c"]);
    let trail = store.catalog().stream(&stream("trail")).unwrap();
    assert_eq!(trail.versions().count(), 1);
    assert_eq!(trail.head().unwrap().nature.spans().unwrap(), [span(3, 9)]);
    store.verify().unwrap();
    // And it goes on from there.
    commit(&mut store, &pass(10, &[event(9, "d"), event(8, "c")], &[])).unwrap();
    assert_eq!(ids(&store), ["b", "c", "d"]);
    store.verify().unwrap();
}

#[test]
fn only_a_store_with_events_has_the_newer_format() {
    let formats = |folder: &std::path::Path| -> Vec<String> {
        let mut paths: Vec<_> =
            std::fs::read_dir(folder.join("_delta_log")).unwrap().map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        let text = |path: &std::path::PathBuf| std::fs::read_to_string(path).unwrap();
        let format = |text: String| text.split("\"format\":").last().unwrap().chars().take(1).collect();
        paths.iter().map(text).map(format).collect()
    };
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::create(folder.path()).unwrap().with_tuning(EAGER);
    commit(&mut store, &state(1, &["x"])).unwrap();
    commit(&mut store, &pass(2, &[event(1, "a")], &[])).unwrap();
    commit(&mut store, &state(3, &["x"])).unwrap();
    assert_eq!(formats(folder.path()), ["1", "2", "1"]);
    // The sum of the log, which a program reads instead of it, cannot be read by one that does not know events.
    let sums: Vec<_> = std::fs::read_dir(folder.path().join("view/catalog")).unwrap().collect();
    assert_eq!(sums.len(), 1);
    let text = std::fs::read_to_string(sums[0].as_ref().unwrap().path()).unwrap();
    assert!(text.starts_with("{\"format\":2,\"catalog\":{\"next\":3"), "{text:.80}");
    assert_eq!(ids(&Store::open(folder.path()).unwrap()), ["a"]);
}
