//! Lines that are known again: the index may be of an earlier version, or of files that are no more.

use std::collections::BTreeMap;
use std::path::Path;

use driftline_core::coverage::Coverage;
use driftline_core::{Properties, ResourceKey, Value};
use driftline_store::draft::{Committed, Permissions};
use driftline_store::gc::Retention;
use driftline_store::{Store, Tuning};
use jiff::SignedDuration;

use crate::support::{key, moment, observation, stream};

type World = BTreeMap<ResourceKey, Value>;

fn thing(number: u32) -> ResourceKey {
    key("T", "p", &format!("thing-{number:03}"))
}

fn world(count: u32) -> World {
    let value = |number: u32| serde_json::from_str(&format!(r#"{{"n":{number},"text":"{number:0200}"}}"#)).unwrap();
    (0..count).map(|number| (thing(number), value(number))).collect()
}

/// With an index from the first resource on, and full images as rare as they usually are.
fn open(folder: &Path) -> Store {
    Store::create(folder).unwrap().with_tuning(Tuning { index_rows: 1, ..Tuning::default() })
}

fn whole(store: &mut Store, step: u32, world: &World) -> Committed {
    let seen = observation(&stream("things"), moment(step), Coverage::complete(), world);
    store.commit(&seen, None, Permissions::default(), moment(step)).unwrap()
}

/// Commits line by line; also how many lines were known. `meanwhile` happens before the end.
fn by_line(store: &mut Store, step: u32, world: &World, meanwhile: impl FnOnce()) -> (Committed, usize) {
    let header = observation(&stream("things"), moment(step), Coverage::complete(), []).header;
    let mut draft = store.draft(header, Some("a reader".into())).unwrap();
    let lines: Vec<String> = world.iter().map(|(key, value)| format!("{key} {}", value.to_json())).collect();
    let lines: Vec<&[u8]> = lines.iter().map(String::as_bytes).collect();
    let mut known = Vec::new();
    draft.known(&lines, &mut known);
    for (((key, value), known), line) in world.iter().zip(&known).zip(lines) {
        if !known {
            draft.push(key.as_ref(), Properties::new(value).as_ref(), line).unwrap();
        }
    }
    meanwhile();
    let committed = draft.finish(None, Permissions::default(), moment(step)).unwrap();
    (committed, known.into_iter().filter(|known| *known).count())
}

fn check(store: &Store, versions: &BTreeMap<u64, World>) {
    for (number, world) in versions {
        assert_eq!(&store.resources(&stream("things"), *number, |_| true).unwrap(), world, "version {number}");
    }
    store.verify().unwrap();
}

#[test]
fn an_index_of_an_earlier_version_serves_with_what_changed_since() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = open(folder.path());
    let mut now = world(60);
    let mut versions = BTreeMap::new();
    by_line(&mut store, 1, &now, || {});
    versions.insert(1, now.clone());
    // Nobody reads lines, so the index stays where it is: one changed, one gone, one new; then again.
    for (step, gone, changed, new) in [(2, 2, 1, 60), (3, 60, 1, 2)] {
        now.remove(&thing(gone));
        now.insert(thing(changed), Value::from(i64::from(step)));
        now.insert(thing(new), Value::from(-i64::from(step)));
        whole(&mut store, step, &now);
        versions.insert(u64::from(step), now.clone());
    }
    now.insert(thing(3), Value::from(4i64));
    now.remove(&thing(4));
    let (committed, known) = by_line(&mut store, 4, &now, || {});
    versions.insert(4, now.clone());
    let changes = committed.changes;
    assert_eq!((changes.add, changes.change, changes.remove), (0, 1, 1));
    assert_eq!(
        known,
        60 - 4,
        "all but the one that changed, the one that is gone, and the two whose line is not known"
    );
    let (committed, known) = by_line(&mut store, 5, &now, || {});
    versions.insert(5, now.clone());
    assert_eq!(committed.changes, driftline_store::log::ChangeCounts::default());
    assert_eq!(known, 59, "now all of them");
    check(&store, &versions);
}

#[test]
fn retention_while_an_observation_comes_in_moves_no_rows() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = open(folder.path());
    let mut now = world(60);
    by_line(&mut store, 1, &now, || {});
    now.remove(&thing(0));
    by_line(&mut store, 2, &now, || {});
    now.insert(thing(9), Value::from(3i64));
    by_line(&mut store, 3, &now, || {});
    now.insert(thing(10), Value::from(4i64));
    let mut versions = BTreeMap::new();
    by_line(&mut store, 4, &now, || {
        let hour = SignedDuration::from_hours(1);
        let retention = Retention { keep_for: SignedDuration::ZERO, keep_last: 1, grace: hour };
        let collected = Store::open(folder.path()).unwrap().collect(retention, moment(4), false).unwrap();
        assert_eq!(collected.dropped[&stream("things")], [1, 2]);
    });
    versions.insert(4, now.clone());
    // What the next one says of its resources is what they were.
    now.insert(thing(20), Value::from(5i64));
    now.remove(&thing(30));
    let (committed, _) = by_line(&mut store, 5, &now, || {});
    versions.insert(5, now.clone());
    assert_eq!((committed.changes.change, committed.changes.remove), (1, 1));
    check(&store, &versions);
    let fresh = Store::open(folder.path()).unwrap();
    let told = fresh.net(&stream("things"), 4, 5).unwrap();
    assert_eq!(told.iter().map(|row| row.key.clone()).collect::<Vec<_>>(), [thing(20), thing(30)]);
}
