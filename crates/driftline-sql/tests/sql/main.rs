//! Views against the store itself: whatever happened, and whichever files it is kept in, both say the same.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says where")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use driftline_core::coverage::Coverage;
use driftline_core::{
    Extent, Header, Nature, Observation, Outcome, Place, Properties, Resource, ResourceKey, StreamId, Value,
};
use driftline_sql::{Allowing, Answer, Asked, Engine, FindingRow, Limits, SqlError, Stop};
use driftline_store::draft::Permissions;
use driftline_store::gc::Retention;
use driftline_store::{Store, Tuning};
use jiff::{SignedDuration, Timestamp};

/// Does everything early, so that small stores use all of it.
const EAGER: Tuning =
    Tuning { snapshot_every: 3, view_rows: 1, index_rows: 1, rebase_bytes: 0, rebase_versions: 4, pack_files: 2 };

fn moment(step: i64) -> Timestamp {
    "2026-01-01T00:00:00Z".parse::<Timestamp>().unwrap() + SignedDuration::from_hours(step)
}

const FLAGS: Allowing =
    Allowing { time: Some("--timeout"), memory: Some("--memory"), spill: Some("--spill"), files: true };

fn stream(name: &str) -> StreamId {
    name.parse().unwrap()
}

fn limits(folder: &std::path::Path) -> Limits {
    Limits { time: Duration::from_mins(2), memory: 256 << 20, spill: 256 << 20, folder: folder.to_owned(), rows: None }
}

fn ask_within(store: &Store, sql: &str, limits: &Limits) -> Result<Answer, SqlError> {
    ask_as(store, sql, limits, false)
}

fn ask_as(store: &Store, sql: &str, limits: &Limits, masked: bool) -> Result<Answer, SqlError> {
    let kept = store.clone();
    let asked = Asked {
        place: "test".into(),
        catalog: store.catalog().clone(),
        find: Arc::new(|| Ok(vec![finding("a"), finding("b")])),
        moment: Arc::new(|text| Ok(text.parse().unwrap())),
        masked,
    };
    driftline_sql::ask(&asked, Arc::new(move |_| Ok(kept.clone())), sql, &Engine::Here, limits, &Stop::default())
}

fn ask(store: &Store, sql: &str) -> Vec<Vec<Option<String>>> {
    let folder = tempfile::tempdir().unwrap();
    let answer = ask_within(store, sql, &limits(folder.path())).unwrap_or_else(|error| panic!("{error}: {sql}"));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is left behind");
    answer.cells().unwrap()
}

fn finding(id: &str) -> FindingRow {
    FindingRow {
        baseline: "main".into(),
        stream: "one".into(),
        kind: "T".into(),
        place: "p".into(),
        id: id.into(),
        account: None,
        region: None,
        status: "drifted",
        how: Some("modified"),
        since: None,
        changes: "[]".into(),
        excused: "[]".into(),
        reason: None,
        severity: None,
    }
}

/// Numbers that are the same on every machine.
struct Chance(u64);

impl Chance {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most
    }
}

/// Observations of two streams: things come, change, go, come back, and now and then nobody looks at some.
fn lived_in(folder: &std::path::Path, seed: u64, steps: i64) -> Store {
    let mut chance = Chance(seed);
    let mut store = Store::create(folder.join("store")).unwrap().with_tuning(EAGER);
    let mut worlds: BTreeMap<&str, BTreeMap<ResourceKey, u64>> = BTreeMap::new();
    for step in 0..steps {
        let name = if chance.below(3) == 0 { "two" } else { "one" };
        let world = worlds.entry(name).or_default();
        for _ in 0..chance.below(16) {
            let kind = ["A::B", "C::D"][usize::try_from(chance.below(2)).unwrap()];
            let place = ["aws/111111111111/eu-west-1", "k8s/prod"][usize::try_from(chance.below(2)).unwrap()];
            let key =
                ResourceKey { kind: kind.into(), place: Place::new(place), id: format!("id-{}", chance.below(6)) };
            match chance.below(4) {
                0 => drop(world.remove(&key)),
                _ => drop(world.insert(key, chance.below(3))),
            }
        }
        let mut coverage = Coverage::new();
        let mut unseen = Vec::new();
        for kind in ["A::B", "C::D"] {
            for place in ["aws/111111111111/eu-west-1", "k8s/prod"] {
                let whole = step == 0 || chance.below(4) > 0;
                let outcome = if whole { Outcome::Complete } else { Outcome::Partial { reason: "throttled".into() } };
                coverage.record(Extent { kind: kind.into(), place: place.into() }, outcome);
                if !whole {
                    unseen.push((kind, place));
                }
            }
        }
        let header = Header {
            stream: stream(name),
            taken_at: moment(step),
            observer: None,
            coverage,
            problems: Vec::new(),
            nature: Nature::State,
        };
        let mut observation = Observation::new(header);
        for (key, value) in world.iter() {
            if unseen.contains(&(key.kind.as_str(), key.place.as_str())) {
                continue;
            }
            let text = format!(r#"{{"value": {value}, "list": [{value}, 1], "name": "{}"}}"#, key.id);
            let properties = Properties::new(&serde_json::from_str::<Value>(&text).unwrap());
            observation.insert(Resource { key: key.clone(), properties }).unwrap();
        }
        store.commit(&observation, None, Permissions { empty: true, older: true }, moment(step)).unwrap();
    }
    store
}

/// Every row of a version, as the store has it.
fn as_stored(store: &Store, stream: &StreamId, version: u64) -> Vec<Vec<Option<String>>> {
    let unseen = store.unseen_keys(stream, version).unwrap();
    let row = |key: &ResourceKey| {
        let found = store.lookup(stream, version, &key.id).unwrap();
        let (_, value) = found.into_iter().find(|(found, _)| found == key).unwrap();
        let text = |text: &str| Some(text.to_owned());
        let properties: serde_json::Value = serde_json::from_str(&value.to_json()).unwrap();
        vec![
            text(&stream.to_string()),
            text(&version.to_string()),
            text(&key.kind),
            text(key.place.as_str()),
            text(&key.id),
            text(if unseen.contains(key) { "false" } else { "true" }),
            text(&properties.to_string()),
        ]
    };
    store.keys(stream, version).unwrap().iter().map(row).collect()
}

const STATE: &str = "stream, version, type, place, id, seen, properties";
const ORDER: &str = "ORDER BY stream, type, place, id";

fn compared(store: &Store) -> usize {
    let mut versions = 0;
    let mut newest = Vec::new();
    for (id, stream) in store.catalog().streams() {
        for version in stream.versions() {
            let sql = format!("SELECT {STATE} FROM resources_at('{id}', {}) {ORDER}", version.number);
            assert_eq!(ask(store, &sql), as_stored(store, id, version.number), "{id} v{}", version.number);
            versions += 1;
        }
        newest.extend(as_stored(store, id, stream.head().unwrap().number));
    }
    newest.sort();
    assert_eq!(ask(store, &format!("SELECT {STATE} FROM resources {ORDER}")), newest);
    versions
}

#[test]
fn every_version_is_what_the_store_says_before_and_after_retention() {
    for seed in [1, 2] {
        let folder = tempfile::tempdir().unwrap();
        let mut store = lived_in(folder.path(), seed, 14);
        let bases =
            store.catalog().streams().flat_map(|(_, stream)| stream.versions()).filter(|one| one.base.is_some());
        assert!(bases.count() > 3, "chains begin anew");
        assert_eq!(compared(&store), 14);
        let keep = Retention { keep_for: SignedDuration::ZERO, keep_last: 3, grace: SignedDuration::ZERO };
        store.collect(keep, moment(100), false).unwrap();
        assert!(compared(&store) <= 6, "versions were dropped");
    }
}

#[test]
fn a_time_asks_for_what_was_newest_then() {
    let folder = tempfile::tempdir().unwrap();
    let store = lived_in(folder.path(), 3, 12);
    for step in [-1, 0, 5, 11, 50] {
        let mut expected = Vec::new();
        for (id, stream) in store.catalog().streams() {
            if let Some(version) = stream.at(moment(step)) {
                expected.extend(as_stored(&store, id, version.number));
            }
        }
        let at = moment(step);
        for time in [format!("'{at}'"), format!("CAST('{at}' AS TIMESTAMP)"), format!("'{at}'::timestamptz")] {
            assert_eq!(ask(&store, &format!("SELECT {STATE} FROM resources_at({time}) {ORDER}")), expected, "{time}");
        }
    }
}

#[test]
fn a_filter_leaves_the_same_rows_wherever_it_is_applied() {
    let folder = tempfile::tempdir().unwrap();
    let store = lived_in(folder.path(), 4, 12);
    for filter in [
        "type = 'A::B'",
        "id LIKE 'id-1%' AND stream = 'one'",
        "account = '111111111111'",
        "account IS NULL",
        "region = 'eu-west-1' OR place = 'k8s/prod'",
        "NOT seen",
        "json_get_int(properties, 'value') = 2",
        "upper(type) = 'C::D' AND version > 1",
        "stream IN ('two', 'three')",
        "id = (SELECT max(id) FROM changes WHERE op = 'add')",
        "false",
    ] {
        for (columns, from) in
            [(STATE, "resources"), ("id", "resources"), ("stream, id, changed_at", "resources_at('one', 4)")]
        {
            // A number for each row has to be given before any is left out.
            let whole = ask(
                &store,
                &format!(
                    "SELECT {columns} FROM (SELECT *, row_number() OVER (ORDER BY stream, type, place, id) AS n FROM {from}) WHERE {filter} ORDER BY n"
                ),
            );
            let pushed =
                ask(&store, &format!("SELECT {columns} FROM {from} WHERE {filter} ORDER BY stream, type, place, id"));
            assert_eq!(pushed, whole, "{filter}");
        }
    }
    // What was added since the full image is left by a filter as much as what was in it.
    let (id, version) = (stream("one"), store.catalog().stream(&stream("one")).unwrap().head().unwrap().number);
    for kind in ["A::B", "C::D"] {
        let sql = format!("SELECT {STATE} FROM resources WHERE type = '{kind}' AND stream = 'one' {ORDER}");
        let mut expected = as_stored(&store, &id, version);
        expected.retain(|row| row[2].as_deref() == Some(kind));
        assert_eq!(ask(&store, &sql), expected);
    }
    let count = ask(&store, "SELECT count(*) FROM resources");
    assert_eq!(count, ask(&store, "SELECT count(id) FROM resources"));
}

#[test]
fn when_something_last_changed_is_known_beyond_its_full_image() {
    let folder = tempfile::tempdir().unwrap();
    let store = lived_in(folder.path(), 5, 16);
    for (id, stream) in store.catalog().streams() {
        let head = stream.head().unwrap().number;
        let first = stream.versions().next().unwrap();
        // From the history of each, as every change file has it.
        let told = format!(
            "SELECT type, place, id, coalesce(max(observed_at) FILTER (WHERE op IN ('add', 'change')), \
             max(observed_at) FILTER (WHERE version = {0})) AS at FROM history WHERE stream = '{id}' \
             AND (op IN ('add', 'change') OR (op = 'base' AND version = {0})) GROUP BY type, place, id",
            first.number
        );
        let sql = format!(
            "SELECT r.id, r.changed_at, told.at FROM resources_at('{id}', {head}) r JOIN ({told}) told \
             ON told.type = r.type AND told.place = r.place AND told.id = r.id"
        );
        let rows = ask(&store, &sql);
        assert_eq!(rows.len(), as_stored(&store, id, head).len());
        assert!(rows.iter().all(|row| row[1] == row[2]), "{rows:?}");
    }
}

#[test]
fn changes_are_the_rows_of_change_files_and_never_of_full_images() {
    let folder = tempfile::tempdir().unwrap();
    let store = lived_in(folder.path(), 6, 12);
    let (mut add, mut change, mut remove) = (0, 0, 0);
    for version in store.catalog().streams().flat_map(|(_, stream)| stream.versions()).filter(|one| one.delta.is_some())
    {
        add += version.changes.add;
        change += version.changes.change;
        remove += version.changes.remove;
    }
    let counted = ask(&store, "SELECT op, count(*) FROM changes GROUP BY op ORDER BY op");
    let expected: Vec<Vec<Option<String>>> = [("add", add), ("change", change), ("remove", remove)]
        .into_iter()
        .map(|(op, count)| vec![Some(op.to_owned()), Some(count.to_string())])
        .collect();
    assert_eq!(counted, expected);
    // What a change file tells is what our function tells of the images.
    let told =
        ask(&store, "SELECT count(*) FROM changes WHERE op = 'change' AND changes <> differences(before, after)");
    assert_eq!(told, [[Some("0".to_owned())]]);
    let versions = ask(&store, "SELECT sum(added), sum(changed), sum(removed) FROM versions WHERE version > 1");
    assert_eq!(versions, [[Some(add.to_string()), Some(change.to_string()), Some(remove.to_string())]]);
}

#[test]
fn files_that_a_filter_rules_out_are_not_opened() {
    let folder = tempfile::tempdir().unwrap();
    let store = lived_in(folder.path(), 7, 12);
    let plan = |sql: &str| -> String {
        // The last of the plans, in which every file is listed.
        let rows = ask(&store, &format!("EXPLAIN VERBOSE {sql}"));
        let last = rows.into_iter().rfind(|row| row[0].as_deref() == Some("physical_plan"));
        last.unwrap().remove(1).unwrap()
    };
    let files = |sql: &str| plan(sql).matches(".parquet").count();
    let all = files("SELECT id FROM history");
    assert_eq!(all, store.catalog().files().count());
    assert_eq!(files("SELECT id FROM history WHERE stream = 'nobody'"), 0);
    let of = |name: &str| {
        let versions = store.catalog().stream(&stream(name)).unwrap().versions();
        versions.map(|one| (usize::from(one.base.is_some()), usize::from(one.delta.is_some()))).collect::<Vec<_>>()
    };
    let (bases, deltas): (Vec<usize>, Vec<usize>) = of("two").into_iter().unzip();
    assert_eq!(files("SELECT id FROM history WHERE stream = 'two'"), bases.iter().chain(&deltas).sum::<usize>());
    assert_eq!(files("SELECT id FROM history WHERE stream = 'two' AND op = 'base'"), bases.iter().sum::<usize>());
    assert_eq!(files("SELECT id FROM changes WHERE stream = 'two'"), deltas.iter().sum::<usize>());
    assert_eq!(files("SELECT id FROM changes WHERE stream = 'two' AND version = 2"), deltas[1]);
    assert_eq!(files(&format!("SELECT id FROM changes WHERE observed_at > '{}'", moment(50))), 0);
    // A version is read from its chain alone.
    let one = store.catalog().stream(&stream("one")).unwrap();
    for version in one.versions() {
        let (_, _, changes) = one.chain(version.number).unwrap();
        let chain = 1 + changes.into_iter().filter(|version| version.delta.is_some()).count();
        let found = files(&format!("SELECT properties FROM resources_at('one', {})", version.number));
        assert_eq!(found, chain, "v{}", version.number);
    }
}

#[test]
fn what_is_not_a_question_is_refused_and_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let store = lived_in(folder.path(), 8, 3);
    let limits = limits(folder.path());
    for sql in [
        "CREATE TABLE t AS SELECT 1",
        "CREATE VIEW v AS SELECT 1",
        "CREATE EXTERNAL TABLE t STORED AS CSV LOCATION '/etc/passwd'",
        "DROP TABLE history",
        "INSERT INTO history SELECT * FROM history",
        "DELETE FROM history",
        "UPDATE history SET id = 'x'",
        "COPY (SELECT 1) TO '/tmp/x.csv'",
        "SET datafusion.execution.batch_size = 1",
        "PREPARE p AS SELECT 1",
        "BEGIN",
    ] {
        let error = ask_within(&store, sql, &limits).unwrap_err();
        assert!(matches!(error, SqlError::NotAQuestion { .. }), "{sql}: {error:?}");
        assert!(!error.hints(FLAGS).is_empty());
    }
    for (sql, words) in [
        ("SELECT * FROM '/etc/passwd'", "no view"),
        ("SELECT * FROM \"file:///etc/passwd\"", "no view"),
        ("SELECT 1; SELECT 2", "single SQL statement"),
        ("SELEC 1", "this is not SQL"),
    ] {
        let error = ask_within(&store, sql, &limits).unwrap_err();
        assert!(error.to_string().contains(words), "{sql}: {error}");
    }
    for sql in ["EXPLAIN SELECT 1", "SHOW TABLES", "DESCRIBE changes", "EXPLAIN ANALYZE SELECT count(*) FROM history"] {
        ask(&store, sql);
    }
    assert_eq!(store.catalog().records(), Store::open(folder.path().join("store")).unwrap().catalog().records());
}

#[test]
fn a_name_that_is_not_there_leads_to_one_that_is() {
    let folder = tempfile::tempdir().unwrap();
    let store = lived_in(folder.path(), 9, 3);
    for (sql, message, hint) in [
        ("SELECT * FROM resource", "there is no view `resource`", "did you mean `resources`?"),
        (
            "SELECT * FROM resorces_at('2026-01-01T00:00:00Z')",
            "there is no view `resorces_at`",
            "did you mean `resources_at`?",
        ),
        ("SELECT typ FROM changes", "there is no column `typ`", "did you mean `type`?"),
        (
            "SELECT c.propertys FROM changes c JOIN resources r ON r.id = c.id",
            "there is no column `c.propertys`",
            "did you mean `properties`?",
        ),
        (
            "SELECT id FROM changes JOIN resources ON true",
            "`id` is a column of more than one view here",
            "write which one is meant, as in changes.id",
        ),
        ("SELECT * FROM resources_at('on', 1)", "the source `on` has no versions in this store", "did you mean `one`?"),
    ] {
        let error = ask_within(&store, sql, &limits(folder.path())).unwrap_err();
        assert_eq!(error.to_string(), message, "{sql}: {error:?}");
        assert!(error.hints(FLAGS).iter().any(|one| one == hint), "{sql}: {:?}", error.hints(FLAGS));
    }
    let error = ask_within(&store, "SELECT * FROM resources_at('one', 99)", &limits(folder.path())).unwrap_err();
    assert_eq!(error.to_string(), "the source `one` has no version 99");
    assert!(error.hints(FLAGS)[0].contains("FROM versions WHERE stream = 'one'"), "{:?}", error.hints(FLAGS));
    for version in ["1.9", "'1.9'", "-1", "NULL", "'x'"] {
        let sql = format!("SELECT * FROM resources_at('one', {version})");
        let error = ask_within(&store, &sql, &limits(folder.path())).unwrap_err();
        assert!(error.to_string().contains("or a stream and its version"), "{version}: {error}");
    }
    assert!(ask_within(&store, "SELECT * FROM resources_at('one', '1')", &limits(folder.path())).is_ok());
    let error = ask_within(&store, "SELECT * FROM resources_at()", &limits(folder.path())).unwrap_err();
    assert!(error.to_string().contains("takes a time"), "{error}");
}

#[test]
fn a_limit_that_is_reached_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let store = lived_in(folder.path(), 10, 3);
    let usual = limits(folder.path());
    let many =
        "SELECT a.value AS x, reverse(CAST(a.value AS TEXT)) AS t FROM generate_series(1, 2000000) a ORDER BY t, x";
    let short = Limits { time: Duration::from_millis(1), ..usual.clone() };
    let error = ask_within(&store, many, &short).unwrap_err();
    assert!(matches!(error, SqlError::Time(_)) && error.hints(FLAGS)[0].contains("--timeout"), "{error:?}");
    let small = Limits { memory: 16 << 20, spill: 0, ..usual.clone() };
    let error = ask_within(&store, many, &small).unwrap_err();
    assert!(matches!(error, SqlError::Memory(_)) && error.hints(FLAGS)[0].contains("--memory"), "{error:?}");
    let wide = "SELECT repeat('x', 1000) AS x, value FROM generate_series(1, 100000)";
    let error = ask_within(&store, wide, &Limits { memory: 32 << 20, ..usual.clone() }).unwrap_err();
    assert!(matches!(error, SqlError::Result(_)) && error.to_string().contains("32 MiB"), "{error:?}");
    // With disk to put it aside, the same sort has room enough.
    let sorted = "SELECT sum(r) AS n FROM (SELECT x, row_number() OVER (ORDER BY t) AS r FROM (SELECT a.value AS x, \
         reverse(CAST(a.value AS TEXT)) AS t FROM generate_series(1, 600000) a))";
    let little = Limits { memory: 24 << 20, spill: 1 << 20, ..usual.clone() };
    let error = ask_within(&store, sorted, &little).unwrap_err();
    assert!(matches!(error, SqlError::Spill(_)) && error.hints(FLAGS)[0].contains("--spill"), "{error:?}");
    let roomy = Limits { memory: 24 << 20, spill: 1 << 30, ..usual };
    assert_eq!(ask_within(&store, sorted, &roomy).unwrap().cells().unwrap(), [[Some("180000300000".to_owned())]]);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "only the store is left");
}

#[test]
fn a_question_can_be_taken_back() {
    let folder = tempfile::tempdir().unwrap();
    let store = lived_in(folder.path(), 11, 2);
    let stop = Stop::default();
    stop.now();
    let asked = Asked {
        place: "test".into(),
        catalog: store.catalog().clone(),
        find: Arc::new(|| Ok(Vec::new())),
        moment: Arc::new(|text| Ok(text.parse().unwrap())),
        masked: false,
    };
    let long = "SELECT count(*) FROM generate_series(1, 100000000) a, generate_series(1, 100000000) b";
    let opener = Arc::new(move |_: &str| Ok(store.clone()));
    let error = driftline_sql::ask(&asked, opener, long, &Engine::Here, &limits(folder.path()), &stop).unwrap_err();
    assert!(matches!(error, SqlError::Interrupted), "{error:?}");
}

#[test]
fn rows_beyond_the_limit_are_left_out_and_that_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let store = lived_in(folder.path(), 12, 2);
    let few = Limits { rows: Some(3), ..limits(folder.path()) };
    let answer = ask_within(&store, "SELECT value FROM generate_series(1, 10)", &few).unwrap();
    assert_eq!((answer.rows(), answer.is_cut()), (3, true));
    let answer = ask_within(&store, "SELECT value FROM generate_series(1, 3)", &few).unwrap();
    assert_eq!((answer.rows(), answer.is_cut()), (3, false));
}

#[test]
fn a_plan_and_what_a_view_has_can_be_asked_for_within_a_few_rows() {
    let folder = tempfile::tempdir().unwrap();
    let store = lived_in(folder.path(), 14, 2);
    let few = Limits { rows: Some(3), ..limits(folder.path()) };
    for sql in ["EXPLAIN SELECT id FROM resources", "EXPLAIN ANALYZE SELECT id FROM resources"] {
        let answer = ask_within(&store, sql, &few).unwrap_or_else(|error| panic!("{sql}: {error}"));
        assert!((1..=3).contains(&answer.rows()), "{sql}");
    }
    let answer = ask_within(&store, "DESCRIBE resources", &few).unwrap();
    assert_eq!((answer.rows(), answer.is_cut()), (3, true));
}

#[test]
fn what_would_be_too_deep_to_plan_is_refused_and_nothing_breaks() {
    let folder = tempfile::tempdir().unwrap();
    let store = lived_in(folder.path(), 15, 1);
    let doubled = (1..30).fold("WITH c0 AS (SELECT 1 AS x)".to_owned(), |sql, at| {
        format!("{sql}, c{at} AS (SELECT a.x FROM c{0} a, c{0} b)", at - 1)
    });
    for (sql, words) in [
        (format!("SELECT {}", vec!["1"; 30_000].join("+")), "steps down"),
        (vec!["SELECT 1"; 2_000].join(" UNION ALL "), "SELECTs and tables"),
        (format!("{doubled} SELECT count(*) FROM c29"), "as often as it is used"),
    ] {
        let error = ask_within(&store, &sql, &limits(folder.path())).unwrap_err();
        assert!(matches!(&error, SqlError::Large { reason } if reason.contains(words)), "{words}: {error}");
        assert!(!error.hints(Allowing::default()).is_empty());
    }
    let many: Vec<String> = (0..50_000).map(|at| format!("'id-{at}'")).collect();
    ask(&store, &format!("SELECT id FROM resources WHERE id IN ({})", many.join(",")));
}

#[test]
fn a_function_that_makes_much_of_little_is_within_the_limit_too() {
    let folder = tempfile::tempdir().unwrap();
    let store = lived_in(folder.path(), 16, 1);
    let small = Limits { memory: 32 << 20, ..limits(folder.path()) };
    for sql in [
        "SELECT array_length(range(0, 60000000)) AS n",
        "SELECT array_length(generate_series(value, value + 60000000)) AS n FROM generate_series(1, 2)",
        "SELECT array_length(range(DATE '0001-01-01', DATE '9999-01-01', INTERVAL '1 day')) + \
         array_length(range(TIMESTAMP '2026-01-01', TIMESTAMP '2027-01-01', INTERVAL '1 second')) AS n",
        "SELECT length(repeat('x', 100000000)) AS n",
        "SELECT length(repeat(stream, 40000000)) AS n FROM versions",
        "SELECT length(lpad('x', 100000000)) AS n",
        "SELECT length(rpad('x', 10000000, 'ü')) AS n",
        "SELECT length(replace(repeat('a', 10000), 'a', repeat('b', 10000))) AS n",
        "SELECT length(regexp_replace(repeat('a', 10000), 'a', repeat('b', 10000), 'g')) AS n",
        "SELECT array_length(array_repeat('some text', 100000000)) AS n",
        "SELECT array_length(list_resize([1], 1000000000, 0)) AS n",
    ] {
        let error = ask_within(&store, sql, &small).unwrap_err();
        assert!(matches!(error, SqlError::Memory(_)), "{sql}: {error}");
        // Nobody is told of a flag that he does not have.
        assert_eq!(error.hints(Allowing::default()), ["ask for fewer columns or rows"]);
    }
    let usual = [
        ("array_length(range(5, 0, -2))", "3"),
        ("array_length(generate_series(DATE '2026-01-01', DATE '2026-12-01', INTERVAL '1 month'))", "12"),
        ("length(repeat('ab', 1000))", "2000"),
        ("lpad('x', 3, 'ü')", "üüx"),
        ("replace('aXa', 'a', 'bb')", "bbXbb"),
        ("regexp_replace('aXa', 'a', 'bb', 'g')", "bbXbb"),
        ("array_length(array_repeat(1, 3))", "3"),
        ("array_length(array_resize([1], 4, 0))", "4"),
    ];
    for (sql, expected) in usual {
        assert_eq!(ask(&store, &format!("SELECT {sql}")), [[Some(expected.to_owned())]], "{sql}");
    }
}

/// Versions whose order is not that of their times, as `--allow-older` makes them.
#[test]
fn what_changed_last_is_told_by_the_version_and_not_by_the_time() {
    let folder = tempfile::tempdir().unwrap();
    for tuning in [EAGER, Tuning { rebase_versions: 100, ..EAGER }] {
        let home = tempfile::tempdir_in(folder.path()).unwrap();
        let mut store = Store::create(home.path().join("store")).unwrap().with_tuning(tuning);
        for (version, hour) in [(1, 10), (2, 12), (3, 11), (4, 13), (5, 14), (6, 15)] {
            let header = Header {
                stream: stream("one"),
                taken_at: moment(hour),
                observer: None,
                coverage: Coverage::complete(),
                problems: Vec::new(),
                nature: Nature::State,
            };
            let mut observation = Observation::new(header);
            for (id, value) in [("a", version.min(3)), ("b", 0), ("c", version)] {
                let key = ResourceKey { kind: "T".into(), place: Place::new("p"), id: id.into() };
                let text = format!(r#"{{"value": {value}}}"#);
                let properties = Properties::new(&serde_json::from_str::<Value>(&text).unwrap());
                observation.insert(Resource { key, properties }).unwrap();
            }
            store.commit(&observation, None, Permissions { empty: true, older: true }, moment(20)).unwrap();
        }
        let told = |hours: [i64; 3]| {
            let at = |(id, hour): (&str, i64)| vec![Some(id.to_owned()), Some(moment(hour).to_string())];
            ["a", "b", "c"].into_iter().zip(hours).map(at).collect::<Vec<_>>()
        };
        for (version, hours) in [(2, [12, 10, 12]), (3, [11, 10, 11]), (4, [11, 10, 13]), (6, [11, 10, 15])] {
            let sql = format!("SELECT id, changed_at FROM resources_at('one', {version}) ORDER BY id");
            assert_eq!(ask(&store, &sql), told(hours), "v{version}");
        }
        assert_eq!(ask(&store, "SELECT id, changed_at FROM resources ORDER BY id"), told([11, 10, 15]));
    }
}

/// Of what is sealed not even the digest can be seen, or asked about, by who may not.
#[test]
fn a_digest_cannot_be_reached_where_it_is_masked() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::create(folder.path().join("store")).unwrap().with_tuning(EAGER);
    for (step, digest) in [(0, "aaaa1111"), (1, "bbbb2222")] {
        let header = Header {
            stream: stream("one"),
            taken_at: moment(step),
            observer: None,
            coverage: Coverage::complete(),
            problems: Vec::new(),
            nature: Nature::State,
        };
        let mut observation = Observation::new(header);
        let text =
            format!(r#"{{"list": [{{"$sealed": "{digest}"}}], "password": {{"$sealed": "{digest}"}}, "n": {step}}}"#);
        let key = ResourceKey { kind: "T".into(), place: Place::new("p"), id: "a".into() };
        let properties = Properties::new(&serde_json::from_str::<Value>(&text).unwrap());
        observation.insert(Resource { key, properties }).unwrap();
        store.commit(&observation, None, Permissions { empty: true, older: true }, moment(step)).unwrap();
    }
    for sql in [
        "SELECT json_get_str(properties, 'password', '$sealed') AS x, 'p' || properties AS z FROM resources",
        "SELECT substr(properties, 1, 30) AS x, properties->'password' AS y FROM resources_at('one', 1)",
        "SELECT before, after, changes, reverse(after) AS r FROM changes",
        "SELECT * FROM history",
        "SELECT string_agg(after, '') AS x, string_agg(changes, '') AS c, string_agg(arrays, '') AS a FROM history",
        "SELECT id, properties FROM resources WHERE properties LIKE '%aaaa1111%' OR properties LIKE '%bbbb2222%'",
        "SELECT id FROM changes WHERE after LIKE '%bbbb%'",
    ] {
        let seen = |masked: bool| {
            let answer =
                ask_as(&store, sql, &limits(folder.path()), masked).unwrap_or_else(|error| panic!("{error}: {sql}"));
            format!("{:?}", answer.cells().unwrap())
        };
        let (open, masked) = (seen(false), seen(true));
        let digests = ["aaaa1111", "bbbb2222", "1111aaaa", "2222bbbb"];
        assert!(!digests.iter().any(|digest| masked.contains(digest)), "{sql}: {masked}");
        assert_ne!(open, masked, "{sql}");
        assert!(masked == "[]" || masked.contains("(sealed)") || masked.contains(")delaes("), "{sql}: {masked}");
    }
    let rows = ask_as(&store, "SELECT json_get_int(properties, 'n') FROM resources", &limits(folder.path()), true);
    assert_eq!(rows.unwrap().cells().unwrap(), [[Some("1".to_owned())]]);
}

#[test]
fn findings_are_asked_for_only_by_who_names_them() {
    let folder = tempfile::tempdir().unwrap();
    let store = lived_in(folder.path(), 13, 2);
    let asked = |sql: &str| {
        let kept = store.clone();
        let asked = Asked {
            place: "test".into(),
            catalog: store.catalog().clone(),
            find: Arc::new(|| {
                Err(driftline_sql::error::Told { message: "no baseline".into(), hints: vec!["set one".into()] })
            }),
            moment: Arc::new(|text| Ok(text.parse().unwrap())),
            masked: false,
        };
        driftline_sql::ask(
            &asked,
            Arc::new(move |_| Ok(kept.clone())),
            sql,
            &Engine::Here,
            &limits(folder.path()),
            &Stop::default(),
        )
    };
    assert!(asked("SELECT * FROM versions").is_ok());
    let error = asked("SELECT * FROM findings").unwrap_err();
    assert_eq!((error.to_string(), error.hints(FLAGS)), ("no baseline".to_owned(), vec!["set one".to_owned()]));
    assert_eq!(ask(&store, "SELECT id, kind FROM findings ORDER BY id")[1][0].as_deref(), Some("b"));
}

#[test]
fn a_damaged_file_is_an_error_that_names_it() {
    let folder = tempfile::tempdir().unwrap();
    let store = lived_in(folder.path(), 14, 3);
    let file = store.catalog().files().next().unwrap();
    let path = folder.path().join("store").join(&file.path);
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[100] ^= 1;
    std::fs::write(&path, &bytes).unwrap();
    let error = ask_within(&store, "SELECT * FROM history", &limits(folder.path())).unwrap_err().to_string();
    assert!(error.contains(&file.path) && error.contains("damaged"), "{error}");
    std::fs::remove_file(&path).unwrap();
    let error = ask_within(&store, "SELECT * FROM history", &limits(folder.path())).unwrap_err().to_string();
    assert!(error.contains(&file.path), "{error}");
}

#[test]
fn an_answer_is_the_same_in_every_form() {
    let folder = tempfile::tempdir().unwrap();
    let store = lived_in(folder.path(), 15, 2);
    let sql = "SELECT 1 AS n, 'a,\"b\"' AS t, CAST(NULL AS TEXT) AS nothing, CAST('2026-01-01T00:00:00Z' AS TIMESTAMPTZ) AS at, \
               true AS yes, decode('ff00', 'hex') AS raw UNION ALL SELECT 2, 'ü', 'x', NULL, false, NULL ORDER BY n";
    let answer = ask_within(&store, sql, &limits(folder.path())).unwrap();
    let written = |write: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = Vec::new();
        write(&mut bytes);
        bytes
    };
    let json: serde_json::Value = serde_json::from_slice(&written(&|out| answer.json(out).unwrap())).unwrap();
    assert_eq!(json["schema"], "driftline.query/v1");
    assert_eq!(json["columns"][0], serde_json::json!({"name": "n", "type": "bigint"}));
    assert_eq!(json["rows"][0]["t"], "a,\"b\"");
    assert_eq!(json["rows"][0]["at"], "2026-01-01T00:00:00Z");
    assert_eq!(json["rows"][0]["raw"], "ff00");
    assert_eq!((&json["rows"][0]["nothing"], &json["rows"][1]["nothing"]), (&serde_json::Value::Null, &"x".into()));
    let lines = String::from_utf8(written(&|out| answer.ndjson(out).unwrap())).unwrap();
    let lines: Vec<serde_json::Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(serde_json::Value::from(lines), json["rows"]);
    let csv = String::from_utf8(written(&|out| answer.csv(out).unwrap())).unwrap();
    assert_eq!(csv, "n,t,nothing,at,yes,raw\n1,\"a,\"\"b\"\"\",,2026-01-01T00:00:00Z,true,ff00\n2,ü,x,,false,\n");
    let parquet = written(&|out| answer.parquet(out).unwrap());
    assert_eq!(&parquet[..4], b"PAR1");
    let none = ask_within(&store, "SELECT id, version FROM history WHERE false", &limits(folder.path())).unwrap();
    assert_eq!(written(&|out| none.csv(out).unwrap()), b"id,version\n");
    assert_eq!(written(&|out| none.ndjson(out).unwrap()), b"");
    let twice = ask_within(
        &store,
        "SELECT a.id, b.id FROM resources a JOIN resources b ON a.id = b.id",
        &limits(folder.path()),
    );
    assert_eq!(twice.unwrap().name_twice(), Some("id"));
}
