//! The queries that ship, each on an estate so small that the answer can be worked out by hand.

use serde_json::{Value as Json, json};

use crate::support::Sandbox;

const ORIGIN: &str = "2026-06-01T00:00:00Z";

/// Hours after the first of June.
fn at(hour: i64) -> String {
    (ORIGIN.parse::<jiff::Timestamp>().unwrap() + jiff::SignedDuration::from_hours(hour)).to_string()
}

fn seen(source: &str, hour: i64, things: &[(&str, &str, &str, Json)]) -> Json {
    let resources: Vec<Json> = things
        .iter()
        .map(|(kind, account, id, snapshot)| {
            json!({"canonicalId": id, "resourceType": kind, "account": account, "region": "eu-west-1", "snapshot": snapshot})
        })
        .collect();
    json!({"schema": "driftline.observation/v1", "source": source, "takenAt": at(hour), "coverage": "complete", "resources": resources})
}

/// The rows of a named query, as lists of values.
fn rows(sandbox: &Sandbox, arguments: &[&str]) -> Vec<Vec<Json>> {
    let answer = sandbox.json(["query"].iter().chain(arguments));
    let columns: Vec<&str> =
        answer["columns"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
    let row = |row: &Json| columns.iter().map(|column| row[*column].clone()).collect();
    answer["rows"].as_array().unwrap().iter().map(row).collect()
}

fn lists(rows: Json) -> Vec<Vec<Json>> {
    rows.as_array().unwrap().iter().map(|row| row.as_array().unwrap().clone()).collect()
}

const ONE: &str = "111111111111";
const TWO: &str = "222222222222";

/// Two accounts over ten hours. The baseline is what is there at hour 0.
///
/// - `web` (team red) is changed at 2, back at 4, changed at 6: open since 6, closed once after 2 hours.
/// - `db` (team blue, its tags in a list) is removed at 4.
/// - `new` (no tags) comes at 6.
/// - `flap` (team red) is changed at 2, back at 4, changed at 6, back at 8: closed twice, 2 hours each.
/// - `calm` (team blue) never changes; it is in the other account.
fn estate() -> Sandbox {
    let sandbox = Sandbox::new();
    let web = |size: u32| ("App", ONE, "web", json!({"size": size, "tags": {"team": "red"}}));
    let db = ("Db", ONE, "db", json!({"Tags": [{"Key": "team", "Value": "blue"}]}));
    let new = ("App", ONE, "new", json!({"size": 1}));
    let flap = |on: bool| ("App", ONE, "flap", json!({"on": on, "tags": {"team": "red"}}));
    let calm =
        ("App", TWO, "calm", json!({"tags": {"team": "blue"}, "text": "the largest of them all, by far: 0123456789"}));
    let step = |hour: i64, things: &[(&str, &str, &str, Json)]| {
        sandbox.observe(&seen("app", hour, things)).succeeded();
    };
    step(0, &[web(1), db.clone(), flap(false), calm.clone()]);
    sandbox.run(["baseline", "set"]).succeeded();
    step(2, &[web(2), db, flap(true), calm.clone()]);
    step(4, &[web(1), flap(false), calm.clone()]);
    step(6, &[web(3), new.clone(), flap(true), calm.clone()]);
    step(8, &[web(3), new, flap(false), calm]);
    sandbox
}

#[test]
fn drift_by_type_and_by_tag() {
    let sandbox = estate();
    // App: web drifted, new unknown; flap is back. Db: gone.
    assert_eq!(rows(&sandbox, &["drift-by-type"]), lists(json!([["App", 4, 1, 1, 0], ["Db", 0, 1, 0, 0]])));
    // blue: calm is there, db is gone; red: web and flap; none: new.
    assert_eq!(
        rows(&sandbox, &["drift-by-tag"]),
        lists(json!([["blue", 1, 1, 0, 0], ["red", 2, 1, 0, 0], ["(none)", 1, 0, 1, 0]]))
    );
    assert_eq!(rows(&sandbox, &["drift-by-tag", "--param", "tag=owner"]), lists(json!([["(none)", 4, 2, 1, 0]])));
}

#[test]
fn what_goes_back_and_forth() {
    let sandbox = estate();
    let since = format!("since={ORIGIN}");
    let place = "aws/111111111111/eu-west-1";
    assert_eq!(
        rows(&sandbox, &["flapping", "--param", &since]),
        lists(json!([["app", "App", place, "flap", 3, "2026-06-01T08:00:00Z"]])),
        "back at 4, on again at 6, back at 8"
    );
    assert_eq!(
        rows(&sandbox, &["flapping", "--param", &since, "--param", "times=1"]),
        lists(json!([
            ["app", "App", place, "flap", 3, "2026-06-01T08:00:00Z"],
            ["app", "App", place, "web", 1, "2026-06-01T04:00:00Z"]
        ]))
    );
    let later = format!("since={}", at(7));
    assert_eq!(rows(&sandbox, &["flapping", "--param", &later, "--param", "times=1"]).len(), 1, "only that at 8");
}

#[test]
fn how_long_things_were_in_drift() {
    let sandbox = estate();
    let now = format!("now={}", at(10));
    // App, open: web and new since 6, 4 hours each. Closed: web 2, flap 2 and 2. Mean (4+4+2+2+2)/5 = 2.8.
    // Db, open: db since 4, 6 hours.
    assert_eq!(
        rows(&sandbox, &["mean-time-in-drift", "--param", &now]),
        lists(json!([["Db", 1, 0, 6.0, 6.0], ["App", 2, 3, 2.8, 4.0]]))
    );
    let oldest = rows(&sandbox, &["oldest-unresolved", "--param", &now]);
    let told: Vec<_> = oldest
        .iter()
        .map(|row| (row[0].clone(), row[1].clone(), row[3].clone(), row[4].clone(), row[7].clone()))
        .collect();
    assert_eq!(
        told,
        [
            (json!("2026-06-01T04:00:00Z"), json!(6.0), json!("drifted"), json!("deleted"), json!("db")),
            (json!("2026-06-01T06:00:00Z"), json!(4.0), json!("unknown"), Json::Null, json!("new")),
            (json!("2026-06-01T06:00:00Z"), json!(4.0), json!("drifted"), json!("modified"), json!("web")),
        ]
    );
    assert_eq!(rows(&sandbox, &["oldest-unresolved", "--param", "limit=1"]).len(), 1);
}

#[test]
fn accounts_days_sizes_and_sources() {
    let sandbox = estate();
    // App: 3 in one account, 1 in the other, so the median is 2; Db: 0 and 0 now, so it is not listed.
    assert_eq!(
        rows(&sandbox, &["account-comparison"]),
        lists(json!([["App", ONE, 3, 2.0, 1], ["App", TWO, 1, 2.0, 0]]))
    );
    assert_eq!(rows(&sandbox, &["account-comparison", "--param", "type=Db%"]), lists(json!([])));
    // At 2: web, flap. At 4: web, flap, db gone. At 6: web, flap, new. At 8: flap.
    let since = format!("since={ORIGIN}");
    assert_eq!(
        rows(&sandbox, &["changes-by-day", "--param", &since]),
        lists(json!([["2026-06-01T00:00:00Z", 1, 7, 1]]))
    );
    let biggest = rows(&sandbox, &["biggest-resources", "--param", "limit=1"]);
    assert_eq!((&biggest[0][3], &biggest[0][5]), (&json!("calm"), &json!("2026-06-01T00:00:00Z")));
    let now = format!("now={}", at(10));
    assert_eq!(
        rows(&sandbox, &["stale-sources", "--param", &now]),
        lists(json!([["app", 5, "2026-06-01T08:00:00Z", 2.0, 4, 0, 0]]))
    );
    assert_eq!(rows(&sandbox, &["stale-sources", "--param", &now, "--param", "hours=3"]), lists(json!([])));
}

#[test]
fn degrees_in_the_graph_of_events() {
    // The demo gives one rule a second target.
    let sandbox = Sandbox::with_demo();
    let rule = "arn:aws:events:us-east-1:123456789012:rule/drift-state-test-rule";
    let queue = "arn:aws:sqs:us-east-1:123456789012:drift-state-test-alerts";
    assert_eq!(rows(&sandbox, &["topology-degrees"]), lists(json!([[rule, 0, 0, 1, 2], [queue, 0, 1, 0, 0]])));
}

#[test]
fn queries_are_listed_shown_and_added_to() {
    let sandbox = estate();
    let listed = sandbox.run(["query", "--list"]).succeeded();
    for words in ["flapping  Resources that go back and forth", "--param times=2", "driftline query "] {
        assert!(listed.out.contains(words), "{}", listed.out);
    }
    let listed = sandbox.json(["query", "--list"]);
    for query in listed["queries"].as_array().unwrap() {
        let name = query["name"].as_str().unwrap();
        // Every one of them runs on any store, as it is.
        sandbox.run(["query", name]).succeeded();
    }
    let shown = sandbox.run(["query", "--show", "biggest-resources", "--param", "limit=7"]).succeeded();
    assert!(shown.out.contains("LIMIT (7)"), "{}", shown.out);
    sandbox.write("driftline.toml", "[query]\nfolder = \"queries\"\n");
    sandbox.run(["query", "--list"]).refused(&["cannot read the folder of queries `queries`", "[query] folder"]);
    sandbox.write("queries/mine.sql", "-- title: Mine\n-- tells: How many.\nSELECT count(*) AS n FROM resources");
    assert_eq!(rows(&sandbox, &["mine"]), lists(json!([[4]])));
    sandbox.write("queries/bad.sql", "SELECT 1");
    sandbox.run(["query", "bad"]).refused(&["bad.sql", "-- title"]);
    assert_eq!(rows(&sandbox, &["mine"]), lists(json!([[4]])));
}
