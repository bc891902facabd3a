//! Packing: small change files become one, and nothing that can be asked has another answer.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use driftline_core::coverage::Coverage;
use driftline_core::rule::RuleBook;
use driftline_core::{ResourceKey, Value};
use driftline_store::detect::{Pair, Question};
use driftline_store::draft::Permissions;
use driftline_store::gc::Retention;
use driftline_store::{Drift, Store, Tuning};
use jiff::SignedDuration;
use serde_json::Value as Json;

use crate::support::{key, moment, observation, stream};

const KEEP_ALL: Retention = Retention {
    keep_for: SignedDuration::from_hours(1_000_000),
    keep_last: 1,
    grace: SignedDuration::from_hours(-1_000_000),
};

/// Forty versions: one thing changes in each but every fifth, one comes and goes.
fn observed(folder: &Path) -> Store {
    let mut store = Store::create(folder).unwrap().with_tuning(Tuning { pack_files: 8, ..Tuning::default() });
    for step in 0..40u32 {
        let mut world: BTreeMap<ResourceKey, Value> = BTreeMap::new();
        for number in 0..20u32 {
            let text = format!("value {}", if number == step % 20 && step % 5 != 0 { step } else { 0 });
            world.insert(key("T", "p", &format!("thing-{number}")), Value::from(text.as_str()));
        }
        if step % 7 == 3 {
            world.insert(key("A", "p", "guest"), Value::from(i64::from(step)));
        }
        let seen = observation(&stream("things"), moment(step), Coverage::complete(), &world);
        store.commit(&seen, None, Permissions { empty: true, older: false }, moment(step)).unwrap();
    }
    store
}

fn drift(store: &Store, expected: u64, live: u64) -> Drift {
    let pair = Pair { stream: stream("things"), expected: Some(expected), live };
    store.drift(&Question { pairs: vec![pair], accepted: Vec::new() }, &RuleBook::default()).unwrap()
}

/// The files that a reader of Delta tables would read, from nothing but the log.
fn delta_files(folder: &Path) -> BTreeSet<String> {
    let mut log: Vec<_> =
        std::fs::read_dir(folder.join("_delta_log")).unwrap().map(|entry| entry.unwrap().path()).collect();
    log.sort();
    let mut files = BTreeSet::new();
    for line in log
        .iter()
        .flat_map(|path| std::fs::read_to_string(path).unwrap().lines().map(ToOwned::to_owned).collect::<Vec<_>>())
    {
        let action: Json = serde_json::from_str(&line).unwrap();
        if let Some(path) = action["remove"]["path"].as_str() {
            assert!(files.remove(path), "it removes `{path}`, which is not there");
        }
        if let Some(path) = action["add"]["path"].as_str() {
            assert!(files.insert(path.to_owned()), "it adds `{path}` twice");
        }
    }
    files
}

fn segments(folder: &Path) -> BTreeSet<String> {
    let files = std::fs::read_dir(folder.join("seg/things")).unwrap();
    files.map(|entry| format!("seg/things/{}", entry.unwrap().file_name().to_str().unwrap())).collect()
}

#[test]
fn many_small_files_become_one_and_every_answer_stays() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = observed(folder.path());
    let spans = [(1, 2), (1, 40), (12, 13), (5, 31), (39, 40), (31, 5)];
    let before: Vec<Drift> = spans.iter().map(|(from, to)| drift(&store, *from, *to)).collect();
    let files = segments(folder.path()).len();
    assert!(files > 35, "{files}");

    assert_eq!(store.collect(KEEP_ALL, moment(50), true).unwrap().packed.1, 1, "a dry run tells");
    assert_eq!(segments(folder.path()).len(), files, "and does nothing");
    let collected = store.collect(KEEP_ALL, moment(50), false).unwrap();
    assert_eq!((collected.packed, collected.dropped.len()), ((files - 1, 1), 0));
    assert_eq!(segments(folder.path()).len(), 2, "the full image and the pack");
    assert_eq!(delta_files(folder.path()), segments(folder.path()));

    for store in [&store, &Store::open(folder.path()).unwrap()] {
        for ((from, to), before) in spans.iter().zip(&before) {
            assert_eq!(&drift(store, *from, *to), before, "{from} to {to}");
        }
        let verified = store.verify().unwrap();
        assert_eq!((verified.versions, verified.orphans), (40, 0));
    }
    let again = store.collect(KEEP_ALL, moment(51), false).unwrap();
    assert_eq!(again.packed, (0, 0), "a pack alone is not worth packing");
}

#[test]
fn commits_go_on_after_packing_and_packs_are_packed_when_there_are_enough() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = observed(folder.path());
    store.collect(KEEP_ALL, moment(50), false).unwrap();
    for step in 60..75u32 {
        let world = BTreeMap::from([(key("T", "p", "thing-0"), Value::from(i64::from(step)))]);
        let seen = observation(&stream("things"), moment(step), Coverage::complete(), &world);
        let committed = store.commit(&seen, None, Permissions::default(), moment(step)).unwrap();
        assert_eq!(committed.version, u64::from(step) - 19);
    }
    let far = drift(&store, 20, 55);
    let collected = store.collect(KEEP_ALL, moment(80), false).unwrap();
    assert_eq!(collected.packed, (15, 1), "what is new, and not the pack again");
    assert_eq!(drift(&Store::open(folder.path()).unwrap(), 20, 55), far);
    assert_eq!(store.verify().unwrap().versions, 55);
    for round in 0..6 {
        for step in 0..8u32 {
            let step = 80 + round * 8 + step;
            let world = BTreeMap::from([(key("T", "p", "thing-0"), Value::from(i64::from(step)))]);
            let seen = observation(&stream("things"), moment(step), Coverage::complete(), &world);
            store.commit(&seen, None, Permissions::default(), moment(step)).unwrap();
        }
        let packed = store.collect(KEEP_ALL, moment(88 + round * 8), false).unwrap().packed;
        assert_eq!(packed, (8, 1), "round {round}");
    }
    let collected = store.collect(KEEP_ALL, moment(200), false).unwrap();
    assert_eq!(collected.packed, (8, 1), "eight packs are enough");
    assert_eq!(drift(&Store::open(folder.path()).unwrap(), 20, 55), far);
    assert_eq!(store.verify().unwrap().versions, 103);
}

#[test]
fn what_retention_drops_is_no_longer_in_any_file_of_the_table() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = observed(folder.path());
    store.collect(KEEP_ALL, moment(50), false).unwrap();
    let pins = BTreeMap::from([(stream("things"), 12)]);
    store.set_baseline(&"main".parse().unwrap(), &pins, "test", moment(51)).unwrap();
    let before: Vec<Drift> = [(12, 36), (36, 37), (12, 40)].iter().map(|(a, b)| drift(&store, *a, *b)).collect();
    let retention = Retention { keep_for: SignedDuration::ZERO, keep_last: 5, ..KEEP_ALL };
    let collected = store.collect(retention, moment(52), false).unwrap();
    assert_eq!(collected.dropped[&stream("things")].len(), 34);
    let after: Vec<Drift> = [(12, 36), (36, 37), (12, 40)].iter().map(|(a, b)| drift(&store, *a, *b)).collect();
    for (before, after) in before.iter().zip(&after) {
        let told =
            |drift: &Drift| drift.findings.iter().map(|one| (one.key.clone(), one.changes())).collect::<Vec<_>>();
        assert_eq!(told(before), told(after));
    }
    assert_eq!(delta_files(folder.path()), segments(folder.path()));
    let kept = store.catalog().stream(&stream("things")).unwrap();
    assert!(kept.versions().all(|version| version.delta.as_ref().is_none_or(|delta| delta.part.is_none())));
    assert_eq!(store.verify().unwrap().versions, 6);
}
