//! The first document's experiment, replayed with the program: five observers, a baseline, an unchanged pass, three
//! interventions. Only the observers' own documents go in.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::{Value as Json, json};

use crate::support::{Ran, Sandbox, counts, ran, resource};

const ACCOUNT: &str = "123456789012";
const FUNCTION: &str = "arn:aws:lambda:us-east-1:123456789012:function:drift-state-test-fn";
const RULE: &str = "arn:aws:events:us-east-1:123456789012:rule/drift-state-test-rule";
const ALERTS: &str = "arn:aws:sqs:us-east-1:123456789012:drift-state-test-alerts";

const PASSES: [&str; 3] = ["1-baseline", "2-unchanged", "3-drifted"];
const MODELS: [&str; 5] = ["adopt", "inventory", "config", "dns", "event-topology"];

/// When each pass was taken, for documents that do not say.
const HOURS: [&str; 3] = ["26h", "2h", "0h"];

fn with_documents() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.run(["demo", "--documents", "documents"]).succeeded();
    assert!(!sandbox.store().exists(), "nothing else is done");
    sandbox
}

fn files(sandbox: &Sandbox, pass: usize, model: &str) -> Vec<PathBuf> {
    let folder = sandbox.path("documents").join(PASSES[pass]);
    let names = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> =
        names.filter(|path| path.file_name().unwrap().to_str().unwrap().starts_with(model)).collect();
    files.sort();
    files
}

/// Observes a pass, each source's documents in the order that `order` puts them.
fn observe(sandbox: &Sandbox, pass: usize, order: fn(&mut Vec<PathBuf>)) -> BTreeMap<String, Json> {
    let mut committed = BTreeMap::new();
    for model in MODELS {
        let mut files = files(sandbox, pass, model);
        order(&mut files);
        let mut command = sandbox.command(["-o", "json", "observe", model]);
        let name = format!("{model}/exp");
        command.args(&files).args(["--name", &name, "--account", ACCOUNT, "--taken-at", HOURS[pass]]);
        let told = ran(&command.output().unwrap()).succeeded().json();
        for one in told["committed"].as_array().unwrap() {
            committed.insert(one["source"].as_str().unwrap().to_owned(), one.clone());
        }
    }
    committed
}

fn as_they_are(_: &mut Vec<PathBuf>) {}

/// Every change of a resource: path, before, after.
fn changes(one: &Json) -> Vec<(String, Json, Json)> {
    let of = |change: &Json| {
        (change["path"].as_str().unwrap().to_owned(), change["baseline"].clone(), change["current"].clone())
    };
    one["changes"].as_array().unwrap().iter().map(of).collect()
}

fn with_status<'a>(report: &'a Json, status: &str) -> Vec<&'a Json> {
    report["resources"].as_array().unwrap().iter().filter(|one| one["status"] == status).collect()
}

/// What the third pass must come to, however it was brought in.
#[track_caller]
fn is_the_experiments_outcome(report: &Json) {
    assert_eq!(counts(report), [3, 2, 104, 1761]);
    assert_eq!(report["summary"]["total"], 1870);
    let drifted = with_status(report, "drifted");
    assert!(drifted.iter().all(|one| one["kind"] == "modified"));

    // "Baseline had 0. Current has 1. That is the entire diff for that resource."
    let group = drifted.iter().find(|one| one["resourceType"] == "AWS::EC2::SecurityGroup").unwrap();
    assert_eq!(changes(group), [("/ingressRuleCount".into(), json!(0), json!(1))]);
    assert_eq!(group["excused"], json!([]));

    let function = resource(report, FUNCTION);
    assert_eq!(changes(function), [("/timeout".into(), json!(3), json!(30))]);
    assert_eq!(function["excused"][0]["path"], "/lastModified", "it says itself that it was changed");

    // "The test rule's out-degree went from 1 to 2." What it leads to now is told, too.
    let rule = changes(resource(report, RULE));
    let added = json!({
        "to": ALERTS, "type": "targets",
        "attributes": {"targetId": "sqs-target", "retryAttempts": null, "maxEventAge": null},
    });
    assert_eq!(rule, [("/out/1".into(), Json::Null, added), ("/outDegree".into(), json!(1), json!(2))]);

    // "Something appeared that was never declared": the queue, and the way to it.
    let mut unknown: Vec<&str> =
        with_status(report, "unknown").iter().map(|one| one["canonicalId"].as_str().unwrap()).collect();
    unknown.sort_unstable();
    let edge = format!("{RULE} -[targets sqs-target]-> {ALERTS}");
    assert_eq!(unknown, [edge.as_str(), ALERTS]);

    // The pagination boundary: 46 buckets of 67 and all keys were not listed. None of them is called drifted.
    let mut unseen: BTreeMap<&str, usize> = BTreeMap::new();
    for one in with_status(report, "not_checked") {
        *unseen.entry(one["resourceType"].as_str().unwrap()).or_default() += 1;
        assert!(one["source"].as_str().unwrap().ends_with("@scan"), "{one}");
        let reason = "the live listing was partial: the observer stopped at its page limit (truncated)";
        assert_eq!(one["reason"], reason);
    }
    assert_eq!(unseen, BTreeMap::from([("AWS::KMS::Key", 58), ("AWS::S3::Bucket", 46)]));

    // An orphan that is gone is good news, and no deletion.
    let resolved: Vec<&Json> =
        report["resources"].as_array().unwrap().iter().filter(|one| one["kind"] == "resolved").collect();
    assert_eq!(resolved.len(), 1);
    assert_eq!(resolved[0]["resourceType"], "Driftline::Dns::Orphan");
}

#[test]
fn the_experiment_of_the_first_document() {
    let sandbox = with_documents();
    let first = observe(&sandbox, 0, as_they_are);
    let resources: u64 = first.values().map(|one| one["resources"].as_u64().unwrap()).sum();
    assert_eq!(resources, 1868);
    sandbox.run(["baseline", "set"]).succeeded();
    assert_eq!(counts(&sandbox.drift([])), [0, 0, 0, 1868]);

    // Every list in another order, every counter moved, everything evaluated anew.
    let second = observe(&sandbox, 1, as_they_are);
    let differing: u64 = second.values().map(|one| one["changes"]["change"].as_u64().unwrap()).sum();
    assert!(differing > 800, "only {differing} resources differ at all: the pass would prove nothing");
    let report = sandbox.drift([]);
    assert_eq!(counts(&report), [0, 0, 0, 1868]);
    assert!(report["summary"]["excused"].as_u64().unwrap() > differing);
    let velocity = sandbox.json(["velocity"]);
    for (kind, total) in [("AWS::EC2::SecurityGroup", 47), ("AWS::Events::Rule", 11), ("AWS::S3::Bucket", 67)] {
        let rate = &velocity["byResourceType"][kind];
        assert_eq!((&rate["driftedCount"], &rate["totalCount"]), (&json!(0), &json!(total)), "{kind}");
    }
    the_dangling_name_is_found(&sandbox);

    observe(&sandbox, 2, as_they_are);
    is_the_experiments_outcome(&sandbox.drift([]));
    the_velocity_surface(&sandbox);
    the_life_of_the_function(&sandbox);
    // The bucket that the scan did not reach may be there again: not listed is not gone.
    let orphans = sandbox.json(["orphans"]);
    assert_eq!(orphans["summary"], json!({"total": 65, "orphans": 0, "possible": 0, "notChecked": 3, "found": 62}));
    sandbox.run(["verify"]).succeeded();
}

/// In the first document 105 of the inventory and 69 % of the buckets drift. Of the same documents, none.
fn the_velocity_surface(sandbox: &Sandbox) {
    let velocity = sandbox.json(["velocity"]);
    for (kind, drifted, checked, unseen) in [
        ("AWS::EC2::SecurityGroup", 1, 47, 0),
        ("AWS::Events::Rule", 1, 11, 0),
        // 115 functions, of which 21 are also seen as ends of edges.
        ("AWS::Lambda::Function", 1, 136, 0),
        ("AWS::S3::Bucket", 0, 21, 46),
    ] {
        let rate = &velocity["byResourceType"][kind];
        assert_eq!((&rate["driftedCount"], &rate["totalCount"]), (&json!(drifted), &json!(checked)), "{kind}");
        assert_eq!(rate["notCheckedCount"], unseen, "{kind}");
        let expected = f64::from(drifted) / f64::from(checked);
        assert!((rate["driftRate"].as_f64().unwrap() - expected).abs() < 1e-9, "{kind}");
    }
    let day = velocity["windows"]["last24h"].as_object().unwrap();
    let changed: Vec<&String> =
        day.iter().filter(|(_, window)| window["driftedCount"] != 0).map(|(kind, _)| kind).collect();
    assert_eq!(changed, ["AWS::EC2::SecurityGroup", "AWS::Events::Rule", "AWS::Lambda::Function"]);
}

/// The observer of DNS does not know instances, and says nothing of this name. The instance that it stands for would
/// have the address 203.0.113.10; everything that could have it was listed and nothing is known to, but inventories
/// list instances without their addresses. So it is possible that it points at nothing, and not certain.
fn the_dangling_name_is_found(sandbox: &Sandbox) {
    let orphans = sandbox.run(["-o", "json", "orphans"]).exited(2).json();
    let of = |name: &str| {
        let found = orphans["records"].as_array().unwrap().iter().find(|one| one["name"] == name);
        found.map(|one| one["status"].as_str().unwrap().to_owned())
    };
    assert_eq!(of("app.drift-state-test.example.org").as_deref(), Some("possible"));
    // Balancers and buckets have names: that these are not there is certain.
    assert_eq!(of("old-api.example.com").as_deref(), Some("orphan"));
    assert_eq!(of("downloads.example.net").as_deref(), Some("orphan"));
    assert_eq!(orphans["summary"], json!({"total": 65, "orphans": 2, "possible": 1, "notChecked": 0, "found": 62}));
}

fn the_life_of_the_function(sandbox: &Sandbox) {
    let life = sandbox.json(["history", FUNCTION]);
    let events: Vec<(&str, &str, u64)> = life["events"]
        .as_array()
        .unwrap()
        .iter()
        .map(|event| {
            let text = |name: &str| event[name].as_str().unwrap();
            (text("source"), text("event"), event["version"].as_u64().unwrap())
        })
        .collect();
    let expected =
        [("event-topology/exp", "first_seen", 1), ("inventory/exp", "first_seen", 1), ("inventory/exp", "changed", 3)];
    assert_eq!(events, expected);
    let change = &life["events"][2]["changes"][0];
    assert_eq!((&change["path"], &change["baseline"], &change["current"]), (&json!("/timeout"), &json!(3), &json!(30)));
}

/// The commands that the demo prints are enough, in a shell, as they are.
#[test]
fn the_commands_that_come_with_the_documents_replay_the_experiment() {
    let sandbox = Sandbox::new();
    let told = sandbox.run(["demo", "--documents", "it's here", "--store", "a store"]).succeeded().out;
    let script = told.replace("\ndriftline ", &format!("\n{} ", crate::support::PROGRAM));
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", &script]);
    sandbox.prepare(&mut shell);
    let ran: Ran = ran(&shell.output().unwrap());
    // The last command finds drift.
    let ran = ran.exited(2).prints(&["result: 0 drifted, 0 unknown, 0 not checked, 1868 in sync (of 1868)"]);
    ran.prints(&["result: 3 drifted, 2 unknown, 104 not checked, 1761 in sync (of 1870)"]);
    is_the_experiments_outcome(&sandbox.drift(["--store", "a store"]));
}

#[test]
fn the_experiment_from_a_configuration_file() {
    let sandbox = with_documents();
    let mut configuration = String::new();
    for model in MODELS {
        configuration += &format!(
            "[[source]]\nname = \"{model}/exp\"\nmodel = \"{model}\"\ndocuments = [\"now/{model}-*.json\"]\n\
             account = \"{ACCOUNT}\"\n\n"
        );
    }
    sandbox.write("driftline.toml", configuration);
    for (at, pass) in PASSES.iter().enumerate() {
        let _ = std::fs::remove_dir_all(sandbox.path("now"));
        crate::support::copy_folder(&sandbox.path("documents").join(pass), &sandbox.path("now"));
        sandbox.run(["observe", "all"]).succeeded();
        match at {
            0 => drop(sandbox.run(["baseline", "set"]).succeeded()),
            1 => assert_eq!(counts(&sandbox.drift([])), [0, 0, 0, 1868]),
            _ => is_the_experiments_outcome(&sandbox.drift([])),
        }
    }
}

/// The same documents in any order are the same version: nothing is added, changed or gone, not even by a rule's leave.
#[test]
fn the_order_of_documents_changes_nothing() {
    let sandbox = with_documents();
    let first = observe(&sandbox, 0, as_they_are);
    let backwards = |files: &mut Vec<PathBuf>| files.reverse();
    // The program sorts names; so the last one is called first.
    let renamed = |files: &mut Vec<PathBuf>| {
        for (at, file) in files.iter_mut().rev().enumerate() {
            let name = file.with_file_name(format!("{at}.json"));
            std::fs::copy(&file, &name).unwrap();
            *file = name;
        }
    };
    for order in [backwards, renamed] {
        for (source, again) in observe(&sandbox, 0, order) {
            assert_eq!(
                again["changes"],
                json!({"add": 0, "change": 0, "remove": 0, "unseen": 0, "seen": 0}),
                "{source}"
            );
            for name in ["resources", "notSeen", "extents"] {
                assert_eq!(again[name], first[&source][name], "{name} of {source}");
            }
        }
    }
}

/// Shuffled and cut up in many ways, each source's documents of each pass come to the same.
#[test]
fn the_normalizers_are_deterministic_on_the_experiments_documents() {
    let sandbox = with_documents();
    for pass in 0..PASSES.len() {
        for model in MODELS {
            let mut command = sandbox.command(["doctor", "--determinism"]);
            command.args(files(&sandbox, pass, model));
            ran(&command.output().unwrap()).succeeded().prints(&[&format!("{model} is deterministic here")]);
        }
    }
}

#[test]
fn documents_are_written_to_a_new_folder_only() {
    let sandbox = Sandbox::new();
    sandbox.write("full/of/things", "precious");
    sandbox.run(["demo", "--documents", "full"]).refused(&["`full` is not empty", "hint: "]);
    sandbox.write("a-file", "");
    sandbox.run(["demo", "--documents", "a-file"]).refused(&["`a-file`"]);
    std::fs::create_dir(sandbox.path("empty")).unwrap();
    let told = sandbox.run(["demo", "--documents", "empty", "-o", "json"]).succeeded().json();
    assert_eq!(told["files"].as_array().unwrap().len(), 48);
    assert!(!sandbox.store().exists());
}
