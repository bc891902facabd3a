//! `driftline demo`, and what every command says of the store it leaves behind.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value as Json, json};

use crate::support::{Sandbox, counts, files, observation, resource, thing};

const FUNCTION: &str = "arn:aws:lambda:us-east-1:123456789012:function:drift-state-test-fn";
const RULE: &str = "arn:aws:events:us-east-1:123456789012:rule/drift-state-test-rule";
const ALERTS: &str = "arn:aws:sqs:us-east-1:123456789012:drift-state-test-alerts";

fn with_status<'a>(report: &'a Json, status: &str) -> Vec<&'a Json> {
    report["resources"].as_array().unwrap().iter().filter(|one| one["status"] == status).collect()
}

/// A change's path and values, for a list of changes.
fn changes(resource: &Json) -> Vec<(String, Json, Json)> {
    let list = resource["changes"].as_array().unwrap();
    list.iter()
        .map(|one| (one["path"].as_str().unwrap().to_owned(), one["baseline"].clone(), one["current"].clone()))
        .collect()
}

/// What differs from run to run on one machine: how long ago, and where the store is.
fn without_ages(text: &str) -> String {
    let line = |line: &str| match line.find(", since ").or_else(|| line.find(", set ")) {
        Some(at) => format!("{}, [when]{}", &line[..at], if line.ends_with(')') { ")" } else { "" }),
        None => line.to_owned(),
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn the_demo_shows_the_three_interventions_and_nothing_else() {
    let sandbox = Sandbox::new();
    let ran = sandbox.run(["demo"]).succeeded();
    assert_eq!(ran.err, "");
    let results: Vec<&str> = ran.out.lines().filter(|line| line.starts_with("result: ")).collect();
    assert_eq!(results.len(), 2);
    assert!(
        results[0].starts_with("result: 0 drifted, 0 unknown, 0 not checked, 1868 in sync (of 1868)"),
        "{}",
        results[0]
    );
    assert!(results[1].starts_with("result: 3 drifted, 2 unknown, 104 not checked, "), "{}", results[1]);
    insta::assert_snapshot!("demo", without_ages(&ran.out));
}

#[test]
fn the_demo_store_has_exactly_the_interventions_as_drift() {
    let sandbox = Sandbox::with_demo();
    let report = sandbox.drift([]);
    let drifted = with_status(&report, "drifted");
    assert_eq!(drifted.len(), 3, "{drifted:#?}");
    let group = drifted.iter().find(|one| one["resourceType"] == "AWS::EC2::SecurityGroup").unwrap();
    assert_eq!(changes(group), [("/ingressRuleCount".into(), json!(0), json!(1))]);
    assert_eq!(changes(resource(&report, FUNCTION)), [("/timeout".into(), json!(3), json!(30))]);
    let rule = changes(resource(&report, RULE));
    assert!(rule.contains(&("/outDegree".into(), json!(1), json!(2))), "{rule:?}");
    assert!(rule.iter().all(|(path, ..)| path == "/outDegree" || path == "/out/1"), "{rule:?}");
    assert!(drifted.iter().all(|one| one["kind"] == "modified"));

    let unknown: BTreeSet<&str> =
        with_status(&report, "unknown").iter().map(|one| one["canonicalId"].as_str().unwrap()).collect();
    assert_eq!(unknown, BTreeSet::from([ALERTS, &format!("{RULE} -[targets sqs-target]-> {ALERTS}")]));

    let not_checked = with_status(&report, "not_checked");
    assert_eq!(not_checked.len(), 104);
    for one in not_checked {
        assert_eq!(one["source"], "inventory/demo@scan");
        assert!(one["reason"].as_str().unwrap().contains("page limit"), "{one}");
    }
    assert_eq!(counts(&report), [3, 2, 104, 1761]);
}

#[test]
fn the_second_pass_of_the_demo_is_in_sync_although_counters_moved() {
    let sandbox = Sandbox::with_demo();
    let report = sandbox.drift(["--between", "v1", "v2"]);
    assert_eq!(counts(&report), [0, 0, 0, 1868]);
    assert!(report["summary"]["excused"].as_u64().unwrap() > 0, "the pass would be trivial");
}

#[test]
fn the_demo_runs_again_on_its_own_store_with_the_same_outcome() {
    let sandbox = Sandbox::new();
    let first = sandbox.run(["demo"]).succeeded();
    let second = sandbox.run(["demo"]).succeeded();
    assert_eq!(without_ages(&first.out), without_ages(&second.out));
    sandbox.run(["verify"]).succeeded();
}

#[test]
fn the_demo_leaves_a_store_with_other_sources_alone() {
    let sandbox = Sandbox::new();
    sandbox.observe(&observation(0, &[thing("a", json!({}))])).succeeded();
    let before = files(&sandbox.store());
    sandbox.run(["demo"]).refused(&["`test`", "hint: ", "--store"]);
    assert_eq!(files(&sandbox.store()), before);
    // Also when the other source came after a demo.
    let sandbox = Sandbox::with_demo();
    sandbox.observe(&observation(0, &[thing("a", json!({}))])).succeeded();
    let before = files(&sandbox.store());
    sandbox.run(["demo"]).refused(&["`test`"]);
    assert_eq!(files(&sandbox.store()), before);
}

#[test]
fn what_the_demo_says_to_try_next_works() {
    let sandbox = Sandbox::new();
    let told = sandbox.run(["demo", "--store", "here"]).succeeded().out;
    let lines: Vec<&str> = told.lines().filter_map(|line| line.trim().strip_prefix("driftline ")).collect();
    assert!(lines.len() >= 5, "{told}");
    for line in lines {
        // What follows several blanks is an explanation.
        let line = line.split("   ").next().unwrap().replace("<id>", FUNCTION);
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", &format!("\"$0\" {line}"), crate::support::PROGRAM]);
        sandbox.prepare(&mut shell);
        let ran = crate::support::ran(&shell.output().unwrap());
        assert!(
            ran.code == 0 || (ran.code == 2 && [" drift ", " orphans "].iter().any(|word| line.contains(word))),
            "`driftline {line}` fails:\n{}",
            ran.err
        );
    }
}

#[test]
fn drift_as_json_keeps_its_contract() {
    let sandbox = Sandbox::with_demo();
    let report = sandbox.drift([]);
    let text = |value: &Json| assert!(value.is_string(), "not a text: {value}");
    assert_eq!(report["schema"], "driftline.drift/v1");
    text(&report["computedAt"]);
    assert_eq!(report["baseline"]["name"], "main");
    assert_eq!(report["baseline"]["sources"]["adopt/demo"], json!({"version": 1}));
    assert_eq!(report["baseline"]["sources"].as_object().unwrap().len(), 6);
    let summary = &report["summary"];
    for name in ["total", "inSync", "drifted", "unknown", "notChecked", "excused"] {
        assert!(summary[name].is_u64(), "{name}");
    }
    assert_eq!(summary["total"], 1870);
    assert!(summary["driftRate"].is_f64());
    let drifted = resource(&report, FUNCTION);
    for (name, value) in [
        ("resourceType", "AWS::Lambda::Function"),
        ("account", "123456789012"),
        ("region", "us-east-1"),
        ("source", "inventory/demo"),
        ("status", "drifted"),
        ("kind", "modified"),
    ] {
        assert_eq!(drifted[name], value, "{name}");
    }
    text(&drifted["firstSeen"]);
    let change = &drifted["changes"][0];
    assert_eq!((&change["path"], &change["baseline"], &change["current"]), (&json!("/timeout"), &json!(3), &json!(30)));
    assert_eq!(drifted["excused"][0]["path"], "/lastModified");
    for (name, extents) in [
        ("inventory/demo", json!({"complete": 15, "partial": 0})),
        ("inventory/demo@scan", json!({"complete": 0, "partial": 4})),
    ] {
        let source = report["sources"].as_array().unwrap().iter().find(|one| one["name"] == name).unwrap();
        assert_eq!((&source["version"], &source["extents"]), (&json!(3), &extents), "{name}");
        text(&source["takenAt"]);
    }

    let all = sandbox.drift(["--all"]);
    assert_eq!(all["resources"].as_array().unwrap().len(), 1870);
    let excused = all["resources"].as_array().unwrap().iter().find(|one| one["excused"] != json!([])).unwrap();
    let excused = &excused["excused"][0];
    assert_eq!((&excused["rule"], &excused["origin"]), (&json!("volatile"), &json!("builtin")));
    text(&excused["path"]);
    text(&excused["reason"]);
}

#[test]
fn resources_are_listed_in_the_order_of_their_keys() {
    let sandbox = Sandbox::with_demo();
    for more in [vec![], vec!["--all"]] {
        let report = sandbox.drift(more);
        let keys: Vec<[&str; 3]> = report["resources"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| ["resourceType", "place", "canonicalId"].map(|name| one[name].as_str().unwrap()))
            .collect();
        assert!(keys.is_sorted(), "{keys:?}");
    }
}

#[test]
fn the_same_question_has_the_same_bytes_for_an_answer() {
    let sandbox = Sandbox::with_demo();
    let answer = || {
        let mut report = sandbox.drift(["--all"]);
        report.as_object_mut().unwrap().remove("computedAt");
        report.to_string()
    };
    assert_eq!(answer(), answer());
}

#[test]
fn velocity_counts_by_type_now_and_over_time() {
    let sandbox = Sandbox::with_demo();
    let velocity = sandbox.json(["velocity"]);
    let groups = &velocity["byResourceType"]["AWS::EC2::SecurityGroup"];
    assert_eq!((&groups["driftedCount"], &groups["totalCount"]), (&json!(1), &json!(47)));
    assert!((groups["driftRate"].as_f64().unwrap() - 1.0 / 47.0).abs() < 1e-9);
    assert_eq!(velocity["byResourceType"]["AWS::DynamoDB::Table"]["driftedCount"], 0);
    for window in ["last24h", "last7d", "last30d"] {
        let group = &velocity["windows"][window]["AWS::EC2::SecurityGroup"];
        assert_eq!(group["driftedCount"], 1, "{window}");
        assert!(velocity["windows"][window].get("AWS::S3::Bucket").is_none(), "{window}");
    }
    // Long ago nothing had changed yet, but there was nothing to count either.
    sandbox.run(["velocity"]).succeeded().prints(&["AWS::EC2::SecurityGroup                    1        47"]);
    sandbox.run(["velocity", "-o", "markdown"]).succeeded().prints(&["| AWS::EC2::SecurityGroup | 1 | 47 |"]);
}

#[test]
fn explain_tells_the_change_the_versions_and_the_excuses() {
    let sandbox = Sandbox::with_demo();
    let ran = sandbox.run(["explain", FUNCTION]).succeeded();
    insta::assert_snapshot!(explained(&ran.out), @"
    arn:aws:lambda:us-east-1:123456789012:function:drift-state-test-fn

    AWS::Lambda::Function in aws/123456789012/us-east-1, seen by event-topology/demo: in_sync
      baseline `main` has v1; live is v3, taken [when]; its extent was listed: partial: the observer sees these only where an edge begins or ends
      nothing differs

    AWS::Lambda::Function in aws/123456789012/us-east-1, seen by inventory/demo: drifted (modified)
      baseline `main` has v1; live is v3, taken [when]; its extent was listed: complete
      differs since [when]
      ~ /timeout: 3 -> 30
      excused /lastModified: [when]
          rule volatile at `/lastModified`, builtin: what was modified is watched itself
    ");
    let told = sandbox.json(["explain", RULE]);
    let section = &told["resources"][0];
    assert_eq!(
        (&section["status"], &section["baselineVersion"], &section["version"]),
        (&json!("drifted"), &json!(1), &json!(3))
    );
    assert_eq!(section["extent"], "complete");
    let unseen = with_status(&sandbox.drift([]), "not_checked")[0]["canonicalId"].as_str().unwrap().to_owned();
    sandbox.run(["explain", &unseen]).succeeded().prints(&["not_checked", "page limit"]);
    let all = sandbox.drift(["--all"]);
    let excused = all["resources"].as_array().unwrap().iter().find(|one| one["excused"] != json!([])).unwrap();
    sandbox
        .run(["explain", excused["canonicalId"].as_str().unwrap()])
        .succeeded()
        .prints(&["in_sync", "excused", "volatile", "builtin"]);
    sandbox.run(["explain", "no-such-thing"]).refused(&["`no-such-thing`", "hint: "]);
    sandbox.run(["explain", "drift-state-test"]).refused(&["did you mean"]);
}

fn explained(text: &str) -> String {
    let line = |line: &str| match (line.find(", taken "), line.find("; its extent"), line.find("differs since ")) {
        (Some(from), Some(to), _) => format!("{}, taken [when]{}", &line[..from], &line[to..]),
        (_, _, Some(at)) => format!("{}differs since [when]", &line[..at]),
        _ if line.contains("excused /lastModified: ") => "  excused /lastModified: [when]".to_owned(),
        _ => line.to_owned(),
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn history_tells_the_life_of_a_resource() {
    let sandbox = Sandbox::with_demo();
    let life = sandbox.json(["history", FUNCTION]);
    assert_eq!(life["canonicalId"], FUNCTION);
    let of = |source: &str| -> Vec<&Json> {
        life["events"].as_array().unwrap().iter().filter(|event| event["source"] == source).collect()
    };
    let brief = |event: &&Json| (event["event"].clone(), event["version"].clone());
    let inventory = of("inventory/demo");
    let expected = [(json!("first_seen"), json!(1)), (json!("changed"), json!(3))];
    assert_eq!(inventory.iter().map(brief).collect::<Vec<_>>(), expected);
    assert_eq!(inventory[1]["changes"][0]["path"], "/timeout");
    // Two observers see this function; each tells what it saw.
    assert_eq!(of("event-topology/demo").iter().map(brief).collect::<Vec<_>>(), expected[..1]);
    sandbox.run(["history", ALERTS]).succeeded().prints(&["first seen", "event-topology/demo v3"]);
}

#[test]
fn log_verify_and_doctor_speak_of_the_demo_store() {
    let sandbox = Sandbox::with_demo();
    let log = sandbox.json(["log"]);
    let versions = log["versions"].as_array().unwrap();
    assert_eq!(versions.len(), 18);
    let scan = versions.iter().find(|one| one["source"] == "inventory/demo@scan" && one["version"] == 3).unwrap();
    assert_eq!((&scan["resources"], &scan["notSeen"]), (&json!(420), &json!(104)));
    assert_eq!((&scan["changes"]["change"], &scan["changes"]["remove"]), (&json!(0), &json!(0)));
    assert_eq!(sandbox.json(["log", "adopt/demo", "--limit", "1"])["versions"].as_array().unwrap().len(), 1);
    sandbox.run(["log", "nobody"]).refused(&["`nobody`", "no versions"]);

    let verified = sandbox.json(["verify"]);
    assert_eq!(
        (&verified["sound"], &verified["versions"], &verified["orphans"]),
        (&json!(true), &json!(18), &json!(0))
    );
    assert_eq!(verified["files"], files(&sandbox.store()).len(), "every file was read");
    sandbox.run(["doctor"]).succeeded().prints(&["ok      store: ", "notice  inventory/demo@scan: 4 of 4", " 0 bad"]);
    let checks = sandbox.json(["doctor"]);
    assert!(checks["checks"].as_array().unwrap().iter().all(|check| check["health"] != "bad"));
}

/// The inventory can be told not to redact what functions are given.
#[test]
fn no_secret_reaches_the_store_or_a_report() {
    let sandbox = Sandbox::new();
    let observe = |secret: &str| {
        let function =
            json!({"functionName": "f", "timeout": 3, "environment": {"API_TOKEN": secret, "LEVEL": "info"}});
        let document = json!({
            "region": "us-east-1", "resourceType": "lambda", "resources": [function], "count": 1, "truncated": false,
        });
        let file = sandbox.write("lambda-us-east-1.json", document.to_string());
        let file = file.to_str().unwrap();
        sandbox.run(["observe", "inventory", file, "--account", "123456789012"]).succeeded();
    };
    observe("demo-token-1");
    sandbox.run(["baseline", "set"]).succeeded();
    observe("demo-token-2");
    let has = |bytes: &[u8]| bytes.windows(11).any(|window| window == b"demo-token-");
    for (name, bytes) in files(&sandbox.store()) {
        assert!(!has(&bytes), "a secret is in `{name}`");
    }
    let function = "arn:aws:lambda:us-east-1:123456789012:function:f";
    let told = sandbox.run(["drift"]).exited(2).prints(&["/environment/API_TOKEN: a sealed value changed"]);
    let history = sandbox.run(["history", function, "-o", "json"]).succeeded();
    let explained = sandbox.run(["explain", function]).succeeded();
    assert!([told, history, explained].iter().all(|ran| !has(ran.out.as_bytes())));
    let key = std::fs::metadata(sandbox.path(".driftline.key")).unwrap();
    assert_eq!(key.permissions().mode() & 0o777, 0o600);
}

#[test]
fn the_demo_as_json_is_one_json_value_too() {
    let sandbox = Sandbox::new();
    sandbox.run(["demo", "-o", "json"]).succeeded().json();
}
