//! Random histories, checked version by version against maps: what each version holds, what changed between any two,
//! and what drift says, whatever views, indexes, full images, retention and reopening lie in between.

use std::collections::BTreeMap;
use std::path::Path;

use driftline_core::coverage::{Coverage, Outcome};
use driftline_core::judge::{Judgement, Side, judge, not_checked};
use driftline_core::rule::{Rule, RuleBook, RuleKind, Subject};
use driftline_core::verdict::Status;
use driftline_core::{Origin, ResourceKey, StreamId, Value};
use driftline_store::Store;
use driftline_store::detect::{Pair, Question, Tally};
use driftline_store::draft::Permissions;
use driftline_store::gc::Retention;
use driftline_store::history::Step;
use jiff::SignedDuration;
use proptest::prelude::*;

use crate::support::{EAGER, extent, key, moment, observation, partial, stream};

const KINDS: [&str; 2] = ["A", "B"];
const PLACES: [&str; 2] = ["p", "q"];

#[derive(Clone, Debug)]
enum Action {
    /// What is there (by number of the resource: its value), and which extents are listed only in part.
    Observe {
        world: BTreeMap<u8, u8>,
        partial: [bool; 4],
        by_line: bool,
        /// Listed by one of two backends.
        other_backend: bool,
        /// While it comes in, somebody else keeps only so many versions.
        thin_meanwhile: Option<usize>,
    },
    /// Pin the newest version.
    Pin,
    /// Keep this many versions.
    Thin(usize),
    Reopen,
}

fn any_action() -> impl Strategy<Value = Action> {
    let world = prop::collection::btree_map(0u8..12, 0u8..6, 0..10);
    let cut = prop::array::uniform4(prop::bool::weighted(0.2));
    let thin = prop::option::weighted(0.15, 1usize..4);
    let observe = (world, cut, any::<bool>(), prop::bool::weighted(0.2), thin).prop_map(
        |(world, partial, by_line, other_backend, thin_meanwhile)| Action::Observe {
            world,
            partial,
            by_line,
            other_backend,
            thin_meanwhile,
        },
    );
    let others = prop_oneof![Just(Action::Pin), (1usize..4).prop_map(Action::Thin), Just(Action::Reopen)];
    prop_oneof![observe.clone(), observe.clone(), observe, others]
}

/// One version, as the model knows it: for each resource its value and whether it was seen.
#[derive(Clone, Debug)]
struct Version {
    rows: BTreeMap<ResourceKey, (Value, bool)>,
    coverage: Coverage,
    /// Some of what is not seen was seen by the other backend only.
    mixed: bool,
}

fn resource(number: u8) -> ResourceKey {
    key(KINDS[usize::from(number % 2)], PLACES[usize::from(number / 2 % 2)], &format!("r{number}"))
}

fn value(number: u8) -> Value {
    // Objects within objects and arrays, so that lists of differences are put to use.
    let text = match number {
        0 => r#"{"size":1,"tags":["x","y"],"deep":{"a":{"b":1},"c":null}}"#,
        1 => r#"{"size":2,"tags":["x","y"],"deep":{"a":{"b":1},"c":null}}"#,
        2 => r#"{"size":1,"tags":["y","x"],"deep":{"a":{"b":1},"c":null}}"#,
        3 => r#"{"size":1,"tags":["y","z"],"deep":{"a":{}}}"#,
        4 => r#"{"size":1,"tags":["x","y"],"deep":{"a":{"b":1},"c":null},"approximateMessageCount":7}"#,
        _ => r#"{"deep":5}"#,
    };
    serde_json::from_str(text).unwrap()
}

fn book() -> RuleBook {
    let rule = |path: &str, kind: RuleKind| Rule {
        subject: Subject::default(),
        path: path.parse().unwrap(),
        kind,
        origin: Origin::Builtin,
        reason: "a test says so".into(),
    };
    RuleBook::new(vec![
        rule("/**/approximateMessageCount", RuleKind::Volatile),
        rule("/tags", RuleKind::Unordered),
        rule("/deep/c", RuleKind::Ignore),
        // Gone from `{"deep":5}` is good news; from anything else it is not.
        rule("/deep", RuleKind::Resolved(vec![Value::from(5i64)])),
    ])
}

/// What the model makes of an observation on top of the versions before.
fn next(versions: &BTreeMap<u64, Version>, world: &BTreeMap<ResourceKey, Value>, coverage: &Coverage) -> Version {
    let previous = versions.values().next_back();
    let same = previous.is_none_or(|previous| previous.coverage.basis() == coverage.basis());
    let last_of_this = versions.values().rev().find(|version| version.coverage.basis() == coverage.basis());
    let seen_then =
        |key: &ResourceKey| last_of_this.is_some_and(|version| version.rows.get(key).is_some_and(|(_, seen)| *seen));
    let was_mixed = previous.is_some_and(|previous| previous.mixed);
    let mut rows: BTreeMap<ResourceKey, (Value, bool)> =
        world.iter().map(|(key, value)| (key.clone(), (value.clone(), true))).collect();
    for (key, (value, seen)) in previous.into_iter().flat_map(|version| &version.rows) {
        let absence_counts = if same { *seen || !was_mixed } else { seen_then(key) };
        let gone = absence_counts && coverage.is_complete(&key.kind, key.place.as_str());
        if !rows.contains_key(key) && !gone {
            rows.insert(key.clone(), (value.clone(), false));
        }
    }
    let mixed = rows.values().any(|(_, seen)| !seen) && (was_mixed || !same);
    Version { rows, coverage: coverage.clone(), mixed }
}

/// What drift must say, straight from the table.
fn oracle(expected: &Version, live: &Version, book: &RuleBook) -> BTreeMap<ResourceKey, Judgement> {
    let keys: std::collections::BTreeSet<_> = expected.rows.keys().chain(live.rows.keys()).collect();
    let judged = |key: &&ResourceKey| {
        let unseen = |version: &Version| version.rows.get(*key).is_some_and(|(_, seen)| !seen);
        let judgement = if unseen(expected) || unseen(live) {
            Some(not_checked(key.as_ref(), &expected.coverage, &live.coverage))
        } else {
            fn side<'a>(version: &'a Version, key: &ResourceKey) -> Side<'a> {
                Side { value: version.rows.get(key).map(|(value, _)| value), coverage: &version.coverage }
            }
            judge(key.as_ref(), "model", &side(expected, key), &side(live, key), book)
        };
        judgement.map(|judgement| ((*key).clone(), judgement))
    };
    keys.iter().filter_map(judged).collect()
}

struct Run {
    folder: tempfile::TempDir,
    stream: StreamId,
    store: Store,
    versions: BTreeMap<u64, Version>,
    step: u32,
}

impl Run {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::create(folder.path().join("store")).unwrap().with_tuning(EAGER);
        Self { folder, stream: stream("model"), store, versions: BTreeMap::new(), step: 0 }
    }

    fn act(&mut self, action: &Action) {
        self.step += 1;
        let now = moment(self.step);
        match action {
            Action::Observe { world, partial: cut, by_line, other_backend, thin_meanwhile } => {
                let world: BTreeMap<ResourceKey, Value> = world
                    .iter()
                    .map(|(number, number_of_value)| (resource(*number), value(*number_of_value)))
                    .collect();
                let mut coverage = Coverage::new().on_basis(other_backend.then(|| "other".to_owned()));
                for (at, cut) in cut.iter().enumerate() {
                    let outcome = if *cut { partial() } else { Outcome::Complete };
                    coverage.record(extent(KINDS[at % 2], PLACES[at / 2]), outcome);
                }
                let version = next(&self.versions, &world, &coverage);
                let newest = self.versions.keys().next_back().copied().unwrap_or(0);
                let committed = self.commit(&world, coverage, *by_line, *thin_meanwhile, now);
                assert_eq!(committed, newest + 1);
                self.versions.insert(committed, version);
            }
            Action::Pin => {
                if let Some(newest) = self.versions.keys().next_back() {
                    let pins = BTreeMap::from([(self.stream.clone(), *newest)]);
                    self.store.set_baseline(&"main".parse().unwrap(), &pins, "test", now).unwrap();
                }
            }
            Action::Thin(keep) => {
                let retention = Retention {
                    keep_for: SignedDuration::ZERO,
                    keep_last: *keep,
                    grace: SignedDuration::from_hours(-1_000_000),
                };
                let collected = self.store.collect(retention, now, false).unwrap();
                for dropped in collected.dropped.get(&self.stream).into_iter().flatten() {
                    self.versions.remove(dropped).unwrap();
                }
            }
            Action::Reopen => {
                self.store = Store::open(self.folder.path().join("store")).unwrap().with_tuning(EAGER);
            }
        }
    }

    fn commit(
        &mut self,
        world: &BTreeMap<ResourceKey, Value>,
        coverage: Coverage,
        by_line: bool,
        thin_meanwhile: Option<usize>,
        now: jiff::Timestamp,
    ) -> u64 {
        let permissions = Permissions { empty: true, older: false };
        if !by_line && thin_meanwhile.is_none() {
            let observation = observation(&self.stream, now, coverage, world);
            return self.store.commit(&observation, None, permissions, now).unwrap().version;
        }
        let header = observation(&self.stream, now, coverage, []).header;
        let reader = by_line.then(|| "test reader".to_owned());
        let mut draft = self.store.draft(header, reader).unwrap();
        let lines: Vec<String> = world.iter().map(|(key, value)| format!("{key} {}", value.to_json())).collect();
        let bytes: Vec<&[u8]> = lines.iter().map(String::as_bytes).collect();
        let mut known = Vec::new();
        draft.known(&bytes, &mut known);
        for (((key, value), known), line) in world.iter().zip(known).zip(bytes) {
            if !known {
                draft.push(key.as_ref(), driftline_core::Properties::new(value).as_ref(), line).unwrap();
            }
        }
        if let Some(keep_last) = thin_meanwhile {
            let mut other = Store::open(self.folder.path().join("store")).unwrap().with_tuning(EAGER);
            // The files stay: whoever reads them now may need them.
            let grace = SignedDuration::from_hours(1_000_000);
            let collected =
                other.collect(Retention { keep_for: SignedDuration::ZERO, keep_last, grace }, now, false).unwrap();
            for dropped in collected.dropped.get(&self.stream).into_iter().flatten() {
                self.versions.remove(dropped).unwrap();
            }
        }
        draft.finish(None, permissions, now).unwrap().version
    }

    fn check(&self) {
        let book = book();
        for (number, version) in &self.versions {
            let keys: Vec<ResourceKey> = self.store.keys(&self.stream, *number).unwrap().into_iter().collect();
            assert_eq!(keys, version.rows.keys().cloned().collect::<Vec<_>>(), "version {number}");
            for key in &keys {
                let found = self.store.lookup(&self.stream, *number, &key.id).unwrap();
                assert_eq!(found, [(key.clone(), version.rows[key].0.clone())], "version {number}");
            }
            let found = self.store.catalog().version(&self.stream, *number).unwrap();
            assert_eq!(found.rows, version.rows.len() as u64);
            assert_eq!(found.unseen, version.rows.values().filter(|(_, seen)| !seen).count() as u64);
            let unseen = version.rows.iter().filter(|(_, (_, seen))| !seen).map(|(key, _)| key.clone()).collect();
            assert_eq!(self.store.unseen_keys(&self.stream, *number).unwrap(), unseen, "version {number}");
            let whole: BTreeMap<ResourceKey, Value> =
                version.rows.iter().map(|(key, (value, _))| (key.clone(), value.clone())).collect();
            assert_eq!(self.store.resources(&self.stream, *number, |_| true).unwrap(), whole, "version {number}");
            let mut replayed: BTreeMap<ResourceKey, Value> = BTreeMap::new();
            let step = |step: Step<'_>| match step {
                Step::Is(_, key, json) => drop(replayed.insert(key.clone(), serde_json::from_str(json).unwrap())),
                Step::Gone(key) => drop(replayed.remove(key)),
                Step::Version(_) => {}
            };
            self.store.replay(&self.stream, *number, step).unwrap();
            assert_eq!(replayed, whole, "what happened up to version {number} adds up to it");
        }
        // What is derived may be deleted, and the answers are the same, down to when each drift began.
        let copy = tempfile::tempdir().unwrap();
        copy_without_views(&self.folder.path().join("store"), copy.path());
        let bare = Store::open(copy.path()).unwrap();
        for (from, expected) in &self.versions {
            for (to, live) in &self.versions {
                let question = Question {
                    pairs: vec![Pair { stream: self.stream.clone(), expected: Some(*from), live: *to }],
                    accepted: Vec::new(),
                };
                let drift = self.store.drift(&question, &book).unwrap();
                assert_eq!(drift, bare.drift(&question, &book).unwrap(), "{from} to {to} without what is derived");
                let answers = oracle(expected, live, &book);
                let mut tally = Tally::default();
                for judgement in answers.values() {
                    tally.add(judgement.status);
                }
                assert_eq!(drift.tally(), tally, "{from} to {to}");
                let told: BTreeMap<ResourceKey, Judgement> = drift
                    .findings
                    .iter()
                    .map(|finding| {
                        let judgement = Judgement { changes: finding.changes(), ..finding.judgement.clone() };
                        (finding.key.clone(), judgement)
                    })
                    .collect();
                let noteworthy: BTreeMap<ResourceKey, Judgement> = answers
                    .into_iter()
                    .filter(|(_, judgement)| judgement.status != Status::InSync || !judgement.excused.is_empty())
                    .collect();
                assert_eq!(told, noteworthy, "{from} to {to}");
            }
        }
        self.store.verify().unwrap();
    }
}

fn copy_without_views(from: &Path, to: &Path) {
    for entry in std::fs::read_dir(from).unwrap() {
        let (entry, name) = entry.map(|entry| (entry.path(), entry.file_name())).unwrap();
        if entry.is_dir() && name != "view" {
            std::fs::create_dir(to.join(&name)).unwrap();
            copy_without_views(&entry, &to.join(&name));
        } else if entry.is_file() {
            std::fs::copy(&entry, to.join(&name)).unwrap();
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, max_shrink_iters: 400, ..ProptestConfig::default() })]

    #[test]
    fn every_version_and_every_drift_is_what_the_model_says(actions in prop::collection::vec(any_action(), 1..12)) {
        let mut run = Run::new();
        for action in &actions {
            run.act(action);
        }
        run.check();
    }
}

#[test]
fn the_same_observation_in_any_order_makes_the_same_bytes() {
    let digest = |order: &[u8]| {
        let folder = tempfile::tempdir().unwrap();
        let mut store = Store::create(folder.path().join("store")).unwrap();
        for step in 1..3u32 {
            let header = observation(&stream("model"), moment(step), Coverage::complete(), []).header;
            let mut draft = store.draft(header, None).unwrap();
            for number in order {
                let value = value((number + u8::try_from(step).unwrap()) % 6);
                draft.push(resource(*number).as_ref(), driftline_core::Properties::new(&value).as_ref(), &[]).unwrap();
            }
            draft.finish(None, Permissions::default(), moment(step)).unwrap();
        }
        let stream = store.catalog().stream(&stream("model")).unwrap();
        let files: Vec<String> = stream
            .versions()
            .flat_map(|version| version.delta.iter().chain(&version.base))
            .map(|file| file.checksums.sha256.clone())
            .collect();
        let digests: Vec<String> = stream.versions().map(|version| version.digest.clone()).collect();
        (files, digests)
    };
    assert_eq!(digest(&[0, 1, 2, 3, 4, 5, 6, 7]), digest(&[7, 3, 1, 0, 2, 6, 5, 4]));
}

/// The backends of one source see different things: what only one of them sees is neither deleted nor new.
#[test]
fn a_switch_of_backend_deletes_nothing_and_a_switch_back_tells_what_is_gone() {
    let mut run = Run::new();
    let observe = |world: &[u8], other_backend: bool| Action::Observe {
        world: world.iter().map(|number| (*number, 0)).collect(),
        partial: [false; 4],
        by_line: false,
        other_backend,
        thin_meanwhile: None,
    };
    // All, then only some (twice), then all again but for one.
    for action in [observe(&[0, 1, 2, 3], false), observe(&[0], true), observe(&[0], true), observe(&[0, 1, 2], false)]
    {
        run.act(&action);
    }
    run.check();
    let counts = |number: u64| {
        let version = run.store.catalog().version(&run.stream, number).unwrap();
        (version.rows, version.unseen, version.changes.remove)
    };
    assert_eq!([1, 2, 3, 4].map(counts), [(4, 0, 0), (4, 3, 0), (4, 3, 0), (3, 0, 1)]);
}
