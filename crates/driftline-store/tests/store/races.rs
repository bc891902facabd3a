//! Many writers at once: every commit is one version, holds what it was given, and none is lost.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use driftline_core::coverage::{Coverage, Outcome};
use driftline_core::{ResourceKey, Value};
use driftline_store::draft::Permissions;
use driftline_store::{Store, StoreError};

use crate::support::{EAGER, extent, key, moment, observation, partial, stream};

/// What writer `writer` sees in its `turn`: some of what everyone sees, and something only it does.
fn world(writer: u32, turn: u32) -> BTreeMap<ResourceKey, Value> {
    let mut world = BTreeMap::new();
    for shared in 0..6u32 {
        if !(writer + turn + shared).is_multiple_of(3) {
            let size = i64::from((writer * 7 + turn + shared) % 4);
            world.insert(key("Shared", "p", &format!("s{shared}")), Value::from([("size", Value::from(size))]));
        }
    }
    let own = Value::from([("turn", Value::from(i64::from(turn)))]);
    world.insert(key("Own", "q", &format!("w{writer}")), own);
    world
}

fn race(folder: &Path, writers: u32, turns: u32, sources: u32) -> BTreeMap<String, BTreeMap<u64, (u32, u32)>> {
    let outcomes: Vec<(String, u64, (u32, u32))> = std::thread::scope(|scope| {
        let write = |writer: u32| {
            move || {
                let source = format!("source-{}", writer % sources);
                let mut store = Store::create(folder).unwrap().with_tuning(EAGER);
                let mut done = Vec::new();
                for turn in 0..turns {
                    let mut coverage = Coverage::new();
                    coverage.record(extent("Own", "q"), if turn % 5 == 0 { partial() } else { Outcome::Complete });
                    coverage.record(extent("Shared", "p"), Outcome::Complete);
                    let seen = world(writer, turn);
                    // All at one time: who is later is who commits later.
                    let observation = observation(&stream(&source), moment(0), coverage, &seen);
                    let committed = store.commit(&observation, None, Permissions::default(), moment(1)).unwrap();
                    done.push((source.clone(), committed.version, (writer, turn)));
                }
                done
            }
        };
        let threads: Vec<_> = (0..writers).map(|writer| scope.spawn(write(writer))).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    let mut by_source: BTreeMap<String, BTreeMap<u64, (u32, u32)>> = BTreeMap::new();
    for (source, version, who) in outcomes {
        let twice = by_source.entry(source).or_default().insert(version, who);
        assert_eq!(twice, None, "two commits were given one version");
    }
    by_source
}

fn check(folder: &Path, by_source: &BTreeMap<String, BTreeMap<u64, (u32, u32)>>, commits: u32) {
    let store = Store::open(folder).unwrap();
    let mut total = 0;
    for (source, versions) in by_source {
        let stream = stream(source);
        let stored: Vec<u64> =
            store.catalog().stream(&stream).unwrap().versions().map(|version| version.number).collect();
        let expected: Vec<u64> = (1..=versions.len() as u64).collect();
        assert_eq!(stored, expected, "every commit is one version, and they are dense");
        total += versions.len();
        for (number, (writer, turn)) in versions {
            let keys = store.keys(&stream, *number).unwrap();
            let seen: BTreeSet<ResourceKey> = world(*writer, *turn).into_keys().collect();
            // Where it looked at everything it knows exactly what it saw; elsewhere, at least that.
            assert!(seen.is_subset(&keys), "version {number} lost something");
            let extra = |key: &&ResourceKey| !seen.contains(*key) && (key.kind == "Shared" || turn % 5 != 0);
            assert_eq!(keys.iter().find(extra), None, "version {number} has what its writer saw was gone");
        }
        for (number, (writer, turn)) in versions.iter().take(40) {
            for (key, value) in world(*writer, *turn) {
                assert_eq!(store.lookup(&stream, *number, &key.id).unwrap(), [(key, value)], "version {number}");
            }
        }
    }
    assert_eq!(total, commits as usize);
    store.verify().unwrap();
}

#[test]
fn writers_racing_on_one_source_lose_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let by_source = race(&path, 4, 250, 1);
    check(&path, &by_source, 1000);
}

#[test]
fn writers_racing_on_two_sources_lose_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let by_source = race(&path, 4, 250, 2);
    check(&path, &by_source, 1000);
}

#[test]
fn an_observation_older_than_the_newest_is_refused_and_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::create(folder.path().join("store")).unwrap();
    let observe = |store: &mut Store, step: u32| {
        let observation = observation(&stream("s"), moment(step), Coverage::complete(), &world(0, step));
        store.commit(&observation, None, Permissions::default(), moment(9))
    };
    observe(&mut store, 5).unwrap();
    assert!(matches!(observe(&mut store, 4), Err(StoreError::OutOfOrder { .. })));
    assert_eq!(store.catalog().records(), 1);
    observe(&mut store, 5).unwrap();
}
