//! The answers of engines that others wrote, over the store in place, beside our own.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use jiff::Timestamp;
use serde_json::{Value as Json, json};
use sha2::{Digest, Sha256};

use crate::support::{
    PROGRAM, Sandbox, copy_folder, files, observation, observation_of, skip, thing, thing_at, variable,
};
use crate::trail::{event, file};

const ENGINES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/interop/engines.py");
const RANDOM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/interop/random_drift.py");

/// Whichever engine answers: how its Python is found, and what prints its statement.
#[derive(Clone, Copy)]
struct Engine {
    name: &'static str,
    variable: &'static str,
    python: &'static str,
}

const DUCKDB: Engine = Engine { name: "duckdb", variable: "DRIFTLINE_TEST_PYTHON", python: "" };
const DATAFUSION: Engine = Engine { name: "datafusion", variable: "DRIFTLINE_TEST_PYTHON", python: "" };
const SPARK: Engine = Engine { name: "spark", variable: "DRIFTLINE_TEST_SPARK", python: "bin/python" };

/// What an engine answers to a list of questions, in one process: Spark takes long to start.
fn ask(engine: Engine, questions: &[Json]) -> Option<Vec<Json>> {
    let Some(found) = variable(engine.variable) else {
        skip(&format!("{} is not set; `scripts/test` sets it", engine.variable));
        return None;
    };
    let python = if engine.python.is_empty() { found.into() } else { Path::new(&found).join(engine.python) };
    let mut command = Command::new(python);
    command.arg(ENGINES).arg(engine.name).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(json!(questions).to_string().as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}: {}", engine.name, String::from_utf8_lossy(&output.stderr));
    Some(serde_json::from_slice(&output.stdout).unwrap())
}

/// A question about drift: which store, and which points.
struct Asked<'a> {
    sandbox: &'a Sandbox,
    points: &'static [&'static str],
}

impl Asked<'_> {
    fn question(&self, engine: Engine) -> Json {
        let statement = self.sandbox.run(["drift", "--print-sql", engine.name].iter().chain(self.points)).succeeded();
        json!({"store": self.sandbox.store(), "statement": statement.out})
    }

    fn report(&self) -> Json {
        self.sandbox.drift(["--all"].into_iter().chain(self.points.iter().copied()))
    }
}

/// One finding: the line that engines are compared by, and when it began.
type Line = (String, Option<Timestamp>);

fn text(value: &Json) -> &str {
    value.as_str().unwrap_or_default()
}

fn moment(value: &Json) -> Option<Timestamp> {
    value.as_str().map(|text| text.parse().unwrap())
}

fn line(parts: [&Json; 6]) -> String {
    parts.map(text).join("\t")
}

/// What `drift` says, of everything that is not in sync or is only by a rule.
fn ours(report: &Json) -> Vec<Line> {
    let found = report["resources"].as_array().unwrap().iter();
    let told = found.filter(|one| one["status"] != "in_sync" || !one["excused"].as_array().unwrap().is_empty());
    let mut lines: Vec<Line> = told
        .map(|one| {
            let parts = ["resourceType", "place", "canonicalId", "source", "status", "kind"].map(|name| &one[name]);
            (line(parts), moment(&one["firstSeen"]))
        })
        .collect();
    lines.sort();
    lines
}

fn theirs(findings: &Json) -> Vec<Line> {
    let found = findings.as_array().unwrap().iter();
    let mut lines: Vec<Line> = found
        .map(|one| {
            (line(["type", "place", "id", "stream", "status", "kind"].map(|name| &one[name])), moment(&one["since"]))
        })
        .collect();
    lines.sort();
    lines
}

/// The digest by which results are compared: of the lines in bytewise order.
fn digest(lines: &[Line]) -> String {
    let mut sha = Sha256::new();
    for (line, _) in lines {
        sha.update(line.as_bytes());
        sha.update(b"\n");
    }
    sha.finalize().iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
}

fn assert_same(engine: Engine, asked: &[Asked<'_>]) {
    let questions: Vec<Json> = asked.iter().map(|one| one.question(engine)).collect();
    let Some(answers) = ask(engine, &questions) else { return };
    for (one, answer) in asked.iter().zip(answers) {
        let (ours, theirs) = (ours(&one.report()), theirs(&answer["findings"]));
        let first = ours.iter().zip(&theirs).find(|(a, b)| a != b);
        assert!(!ours.is_empty(), "{:?}: there was to be something to find", one.points);
        assert_eq!(ours.len(), theirs.len(), "{} {:?}: {first:?}", engine.name, one.points);
        assert_eq!(first, None, "{} {:?}", engine.name, one.points);
        assert_eq!(digest(&ours), digest(&theirs));
    }
}

/// Text that does not compress, so that full images are written again.
fn noise(at: u32, salt: u32) -> String {
    let mut state = u64::from(at) << 20 | u64::from(salt) | 1;
    (0..12).fold(String::new(), |mut text, _| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        write!(text, "{:016x}", state ^ (state >> 31)).unwrap();
        text
    })
}

/// Twenty thousand resources in six versions that change an eighth of them each, with everything that verdicts know:
/// renewed images, a partial pass, a second stream, a third that no baseline knows, acceptances, rules.
fn estate() -> Sandbox {
    const COUNT: u32 = 20_000;
    let sandbox = Sandbox::new();
    sandbox.write(
        "driftline.toml",
        "[[ignore]]\ntype = \"Type2\"\npath = \"/noise\"\nreason = \"a test says so\"\n\n\
         [[rule]]\nkind = \"unordered\"\ntype = \"Type3\"\npath = \"/list\"\nreason = \"a test says so\"\n",
    );
    let resource = |at: u32, version: u32| {
        // What changes in a version stays so, and a part of it goes back to what it was after two.
        let changes = |one: &u32| (at + one).is_multiple_of(8) && !(at % 16 == 3 && *one + 2 <= version);
        let salt = (1..=version).rev().find(changes).unwrap_or(0);
        let list =
            if salt.is_multiple_of(2) { json!([1, "two", {"three": 3}]) } else { json!([{"three": 3}, 1, "two"]) };
        let tags = json!({"team": format!("t{}", salt % 3)});
        let snapshot = json!({"at": at, "noise": noise(at, salt), "list": list, "tags": tags});
        let (kind, place) = (format!("Type{}", at % 5), format!("aws/123456789012/r{}", at % 7));
        thing_at(&kind, &place, &format!(r"it's \ ${{env:HOME}} {at}"), snapshot)
    };
    let resources = |version: u32| -> Vec<Json> {
        // Some come and go, and of others those that go stay away.
        let comes_and_goes = |at: &u32| (at + version).is_multiple_of(97) && ![2, 3].contains(&(at % 5));
        let goes = |at: &u32| version > 2 && at % 1_009 == 5;
        (0..COUNT).filter(|at| !comes_and_goes(at) && !goes(at)).map(|at| resource(at, version)).collect()
    };
    for version in 0..6 {
        let coverage = match version {
            4 => json!([{"type": "*", "place": "*", "outcome": "complete"},
                {"type": "Type1", "place": "aws/123456789012/r3", "outcome": "partial", "reason": "throttled"}]),
            _ => json!("complete"),
        };
        let mut seen = resources(version);
        if version == 4 {
            seen.retain(|one| one["resourceType"] != "Type1" || one["place"] != "aws/123456789012/r3");
        }
        sandbox.observe(&observation_of("estate/main", version * 10, coverage, &seen)).succeeded();
        sandbox.observe(&observation_of("estate/small", version * 10, json!("complete"), &seen[..50])).succeeded();
        if version == 0 {
            sandbox.run(["baseline", "set"]).succeeded();
        }
        if version == 3 {
            let report = sandbox.drift([]);
            let drifted = report["resources"].as_array().unwrap().iter().filter(|one| one["kind"] == "modified");
            for (at, one) in drifted.filter(|one| one["source"] == "estate/main").step_by(300).take(6).enumerate() {
                let path: &[&str] = if at.is_multiple_of(2) { &[] } else { &["--path", "/tags/team"] };
                let id = one["canonicalId"].as_str().unwrap();
                sandbox.run([&["baseline", "accept", id, "--reason", "a test says so"], path].concat()).succeeded();
            }
        }
    }
    let written = files(&sandbox.store()).into_keys().filter(|name| name.starts_with("seg/estate/main/")).count();
    assert!(written > 6, "a full image was to be written again");
    sandbox.observe(&observation_of("estate/unknown", 70, json!("complete"), &resources(0)[..30])).succeeded();
    sandbox
}

/// Thirty small versions, of which `gc` made one file, and three after that.
pub(crate) fn packed() -> Sandbox {
    let sandbox = Sandbox::new();
    let things = |at: u32| -> Vec<Json> {
        let number = |n: u32| if n == at % 8 { at } else { n };
        (0..8 + at % 3).map(|n| thing(&format!("t{n}"), json!({"n": number(n), "tags": {"team": n % 2}}))).collect()
    };
    for at in 0..30 {
        sandbox.observe_things(at, &things(at));
        if at == 9 {
            sandbox.run(["baseline", "set"]).succeeded();
        }
    }
    let before = sandbox.drift([]);
    sandbox.run(["gc", "--keep", "10000d", "--grace", "0s"]).succeeded().prints(&["packed 29 files", "into 1"]);
    assert_eq!(before["resources"], sandbox.drift([])["resources"]);
    for at in 30..33 {
        sandbox.observe_things(at, &things(at));
    }
    sandbox
}

#[test]
fn duckdb_and_datafusion_find_the_same_drift_in_the_demo_and_in_an_estate() {
    let (demo, estate, packed) = (Sandbox::with_demo(), estate(), packed());
    let asked = [
        Asked { sandbox: &packed, points: &[] },
        Asked { sandbox: &packed, points: &["--between", "v4", "v17"] },
        Asked { sandbox: &demo, points: &[] },
        Asked { sandbox: &demo, points: &["--between", "v1", "v2"] },
        Asked { sandbox: &estate, points: &[] },
        Asked { sandbox: &estate, points: &["--between", "v5", "v2", "--source", "estate/main"] },
    ];
    assert_same(DUCKDB, &asked);
    assert_same(DATAFUSION, &asked);
}

#[test]
fn spark_finds_the_same_drift_and_has_the_same_views() {
    let (demo, estate, packed) = (Sandbox::with_demo(), estate(), packed());
    let asked = [
        Asked { sandbox: &packed, points: &[] },
        Asked { sandbox: &demo, points: &[] },
        Asked { sandbox: &estate, points: &[] },
        Asked { sandbox: &estate, points: &["--at", "2026-01-01T00:45:00Z"] },
    ];
    let viewed = viewed();
    // One session for all: what is asked of views comes last.
    let mut questions: Vec<Json> = asked.iter().map(|one| one.question(SPARK)).collect();
    let odd = viewed.path("it's another");
    copy_folder(&viewed.store(), &odd);
    let mut views = views_of(&viewed);
    views["store"] = json!(odd);
    questions.push(views);
    let Some(mut answers) = ask(SPARK, &questions) else { return };
    assert_views(&viewed, &answers.pop().unwrap());
    for (one, answer) in asked.iter().zip(answers) {
        let (ours, theirs) = (ours(&one.report()), theirs(&answer["findings"]));
        assert_eq!(ours.iter().zip(&theirs).find(|(a, b)| a != b), None, "{:?}", one.points);
        assert_eq!((ours.len(), digest(&ours)), (theirs.len(), digest(&theirs)), "{:?}", one.points);
        assert!(!ours.is_empty(), "{:?}: there was to be something to find", one.points);
    }
}

/// A store with everything that views must be right about: retention, baselines that were removed and set anew, a
/// pass that saw little, names with quotes, events, which are no state.
fn viewed() -> Sandbox {
    let sandbox = Sandbox::new();
    for at in 0..6 {
        let things: Vec<Json> = (0..5 + at)
            .filter(|n| n % 4 != at % 4)
            .map(|n| thing(&format!("it's {n}"), json!({"n": n / 2 + at / 2})))
            .collect();
        sandbox.observe_things(at, &things);
        if at == 2 {
            sandbox.run(["baseline", "set"]).succeeded();
            sandbox.run(["baseline", "set", "old"]).succeeded();
        }
    }
    sandbox.run(["baseline", "remove", "old"]).succeeded();
    sandbox.run(["baseline", "set", "later"]).succeeded();
    let partial = json!([{"type": "Thing", "place": "here", "outcome": "partial", "reason": "throttled"}]);
    sandbox
        .observe(&observation_of("other", 20, json!("complete"), &[thing("x", json!({"a": 1})), thing("y", json!({}))]))
        .succeeded();
    sandbox.observe(&observation_of("other", 21, partial, &[thing("x", json!({"a": 2}))])).succeeded();
    sandbox.run(["baseline", "set", "later", "--source", "other"]).succeeded();
    sandbox.run(["gc", "--keep", "1s", "--keep-last", "2", "--grace", "0s"]).succeeded();
    sandbox.observe(&observation(30, &[thing("new", json!({"text": "a\"b\\c\n"}))])).succeeded();
    for at in 1..3 {
        let events: Vec<Json> =
            (0..at).map(|number| event(number, 40 + number, "UpdateFunctionCode", json!({}))).collect();
        sandbox.write("trail.json", file(&events));
        sandbox.run(["observe", "cloudtrail", "trail.json"]).succeeded();
    }
    sandbox
}

fn views_of(sandbox: &Sandbox) -> Json {
    json!({"store": sandbox.store(), "views": true, "at": "2026-01-01T00:20:30Z", "of": ["test", 3]})
}

fn number(value: &Json) -> u64 {
    value.as_u64().unwrap()
}

fn list(value: &Json) -> &[Json] {
    value.as_array().unwrap()
}

/// Members of a row, each as text: texts as they are, moments as microseconds, everything else as JSON.
fn told(row: &Json, names: &[&str]) -> Vec<String> {
    let one = |name: &&str| match row.pointer(&format!("/{name}")).unwrap_or(&Json::Null) {
        Json::String(text) => {
            text.parse().map_or_else(|_| text.clone(), |at: Timestamp| at.as_microsecond().to_string())
        }
        Json::Array(items) => items.len().to_string(),
        other => other.to_string(),
    };
    names.iter().map(one).collect()
}

fn assert_views(sandbox: &Sandbox, answer: &Json) {
    let log = sandbox.json(["log", "--limit", "0"]);
    assert_versions(list(&log["versions"]), list(&answer["versions"]));
    assert_baselines(list(&sandbox.json(["baseline", "list"])["baselines"]), list(&answer["baselines"]));
    assert_changes(list(&log["versions"]), list(&answer["changes"]));
    assert_resources(answer);
}

fn assert_versions(log: &[Json], rows: &[Json]) {
    let logged = [
        "source",
        "nature",
        "version",
        "takenAt",
        "committedAt",
        "observer",
        "resources",
        "notSeen",
        "changes/add",
        "changes/change",
        "changes/remove",
        "extents/complete",
        "extents/partial",
        "problems",
        "digest",
    ];
    let viewed = [
        "stream",
        "nature",
        "version",
        "taken_at",
        "committed_at",
        "observer",
        "resources",
        "unseen",
        "added",
        "changed",
        "removed",
        "complete_extents",
        "partial_extents",
        "problems",
        "digest",
    ];
    let expected: BTreeSet<Vec<String>> = log.iter().map(|one| told(one, &logged)).collect();
    assert_eq!(rows.iter().map(|one| told(one, &viewed)).collect::<BTreeSet<_>>(), expected);
    assert_eq!(rows.len(), log.len());
    assert!(log.len() < 11, "retention was to drop some");
    assert_eq!(log.iter().filter(|one| one["nature"] == "events").count(), 2);
}

fn assert_baselines(listed: &[Json], rows: &[Json]) {
    let mut pins = BTreeSet::new();
    for one in listed {
        for (stream, version) in one["pins"].as_object().unwrap() {
            let row = json!({"name": one["name"], "stream": stream, "version": version, "set_at": one["setAt"]});
            pins.insert(told(&row, &["name", "stream", "version", "set_at"]));
        }
    }
    let found: BTreeSet<_> = rows.iter().map(|one| told(one, &["name", "stream", "version", "set_at"])).collect();
    assert_eq!((found, rows.len()), (pins.clone(), pins.len()));
}

/// Counted as `log` counts them, apart from full images, which are no changes.
fn assert_changes(log: &[Json], rows: &[Json]) {
    let mut firsts: BTreeMap<&str, u64> = BTreeMap::new();
    for one in log {
        let first = firsts.entry(text(&one["source"])).or_insert(u64::MAX);
        *first = number(&one["version"]).min(*first);
    }
    let mut counted = BTreeMap::new();
    let state = log.iter().filter(|one| one["nature"] == "state");
    for one in state.filter(|one| number(&one["version"]) > firsts[text(&one["source"])]) {
        for op in ["add", "change", "remove"] {
            counted.insert((text(&one["source"]), number(&one["version"]), op), number(&one["changes"][op]));
        }
    }
    counted.retain(|_, count| *count > 0);
    let key = |one: &'_ Json| (text(&one["stream"]).to_owned(), number(&one["version"]), text(&one["op"]).to_owned());
    let found: BTreeMap<_, _> = rows.iter().map(|one| (key(one), number(&one["n"]))).collect();
    let counted: BTreeMap<_, _> = counted
        .into_iter()
        .map(|((stream, version, op), n)| ((stream.to_owned(), version, op.to_owned()), n))
        .collect();
    assert_eq!(found, counted);
}

/// What was observed last, at a version that is kept, and at a time.
fn assert_resources(answer: &Json) {
    let keys = |rows: &Json| -> BTreeSet<String> {
        list(rows).iter().map(|one| format!("{} {}", text(&one["stream"]), text(&one["id"]))).collect()
    };
    assert_eq!(keys(&answer["resources"]), BTreeSet::from(["test new", "other x", "other y"].map(str::to_owned)));
    for one in list(&answer["resources"]) {
        let properties: Json = serde_json::from_str(text(&one["properties"])).unwrap();
        let (expected, seen, minute) = match text(&one["id"]) {
            "new" => (json!({"text": "a\"b\\c\n"}), true, 30),
            "x" => (json!({"a": 2}), true, 21),
            _ => (json!({}), false, 20),
        };
        assert_eq!((properties, &one["seen"]), (expected, &json!(seen)), "{one}");
        assert_eq!(moment(&one["changed_at"]), crate::support::minute(minute).parse().ok(), "{one}");
    }
    let of: BTreeSet<String> = (0..7).filter(|n| n % 4 != 2).map(|n| format!("test it's {n}")).collect();
    assert_eq!(keys(&answer["of"]), of);
    let mut at: BTreeSet<String> = (0..10).filter(|n| n % 4 != 1).map(|n| format!("test it's {n}")).collect();
    at.extend(["other x", "other y"].map(str::to_owned));
    assert_eq!(keys(&answer["at"]), at);
}

/// Versions that were taken in another order than they were told: the second change is the older one.
fn out_of_order() -> Sandbox {
    let sandbox = Sandbox::new();
    for (at, n) in [(0, 1), (120, 2), (60, 3)] {
        let file = sandbox.write("o.json", observation(at, &[thing("a", json!({"n": n}))]).to_string());
        sandbox.run(["observe", "file", file.to_str().unwrap(), "--allow-older"]).succeeded();
        if at == 0 {
            sandbox.run(["baseline", "set"]).succeeded();
        }
    }
    sandbox
}

#[test]
fn the_order_of_versions_holds_where_that_of_times_is_another() {
    let sandbox = out_of_order();
    let since = sandbox.drift([])["resources"][0]["firstSeen"].clone();
    assert_eq!(since, crate::support::minute(120));
    let asked = [Asked { sandbox: &sandbox, points: &[] }];
    assert_same(DUCKDB, &asked);
    assert_same(DATAFUSION, &asked);
    let Some(answers) = ask(DUCKDB, &[views_of(&sandbox)]) else { return };
    let changed = moment(&answers[0]["resources"][0]["changed_at"]);
    assert_eq!(changed, crate::support::minute(60).parse().ok());
}

#[test]
fn duckdb_has_the_same_views() {
    let sandbox = viewed();
    let Some(answers) = ask(DUCKDB, &[views_of(&sandbox)]) else { return };
    assert_views(&sandbox, &answers[0]);
}

#[test]
fn what_a_statement_cannot_honour_is_refused() {
    let sandbox = Sandbox::with_demo();
    for more in [&["--where", "true"][..], &["--all"], &["--strict"], &["--across", "adopt/demo", "dns/demo"]] {
        sandbox
            .run([&["drift", "--print-sql", "spark"], more].concat())
            .refused(&["--print-sql", "cannot be used with"]);
    }
    let odd = thing_at("a\0b", "here", "x", json!({}));
    let coverage = json!([{"type": "a\0b", "place": "here", "outcome": "complete"}]);
    sandbox.observe(&observation_of("odd", 0, coverage, &[odd])).succeeded();
    sandbox.run(["baseline", "set"]).succeeded();
    sandbox.run(["drift", "--print-sql", "duckdb"]).refused(&["U+0000", "answers without SQL"]);
}

/// Hundreds of small stores, each with another history, coverage and rule book.
#[test]
fn printed_sql_agrees_with_drift_on_random_stores_or_says_that_it_cannot_decide() {
    let Some(python) = variable("DRIFTLINE_TEST_PYTHON") else {
        skip("DRIFTLINE_TEST_PYTHON names no Python with tests/interop/requirements.txt installed");
        return;
    };
    let stores =
        variable("DRIFTLINE_RANDOM_STORES").map_or_else(|| "16".to_owned(), |text| text.into_string().unwrap());
    let output = Command::new(python).arg(RANDOM).args([PROGRAM, &stores, "1"]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let counts: BTreeMap<String, u64> = serde_json::from_slice(&output.stdout).unwrap();
    for status in ["drifted modified", "drifted deleted", "unknown", "not_checked", "in_sync"] {
        assert!(counts[&format!("duckdb {status}")] > 10, "{counts:?}");
    }
    let decided: u64 = counts
        .iter()
        .filter(|(name, _)| name.starts_with("duckdb ") && !name.contains("undecided"))
        .map(|(_, count)| count)
        .sum();
    assert!(counts["duckdb undecided"] * 5 < decided, "too little is decided: {counts:?}");
}
