//! The store as others see it: Python's `deltalake` and DuckDB read the same rows, and the same state.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde_json::{Value as Json, json};

use crate::support::{Sandbox, observation, observation_of, skip, thing, thing_at, variable};

const READER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/interop/read_store.py");

/// What both readers say of the store; they must agree.
fn read(sandbox: &Sandbox) -> Option<Json> {
    let Some(python) = variable("DRIFTLINE_TEST_PYTHON") else {
        skip("DRIFTLINE_TEST_PYTHON names no Python with tests/interop/requirements.txt installed");
        return None;
    };
    let output = Command::new(python).arg(READER).arg(sandbox.store()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let told: Json = serde_json::from_slice(&output.stdout).unwrap();
    for part in ["rows", "digest", "counts", "state"] {
        assert!(told["deltalake"][part] == told["duckdb"][part], "the readers do not agree on the {part}");
    }
    Some(told)
}

/// Rows by source, version and op, as the readers counted them.
fn counted(told: &Json) -> BTreeMap<(String, u64, String), u64> {
    let text = |value: &Json| value.as_str().unwrap().to_owned();
    let counts = told["deltalake"]["counts"].as_array().unwrap();
    counts
        .iter()
        .map(|one| ((text(&one[0]), one[1].as_u64().unwrap(), text(&one[2])), one[3].as_u64().unwrap()))
        .collect()
}

/// The same, as `driftline log` tells it. Full images are no changes, and the first version is one.
fn logged(sandbox: &Sandbox) -> BTreeMap<(String, u64, String), u64> {
    let mut counts = BTreeMap::new();
    for version in sandbox.json(["log", "--limit", "0"])["versions"].as_array().unwrap() {
        let (source, number) = (version["source"].as_str().unwrap(), version["version"].as_u64().unwrap());
        for (op, count) in version["changes"].as_object().unwrap() {
            let op = if number == 1 && op == "add" { "base" } else { op };
            counts.insert((source.to_owned(), number, op.to_owned()), count.as_u64().unwrap());
        }
    }
    counts.retain(|_, count| *count > 0);
    counts
}

/// Deleted, or a finding that was seen to and has no place in the listing any more.
fn is_gone(one: &Json) -> bool {
    let whole = |excused: &Json| excused["path"] == "";
    one["kind"] == "deleted" || (one["kind"] == "resolved" && one["excused"].as_array().unwrap().iter().any(whole))
}

/// Type, place and id of what `drift --all` says is there now, by source.
fn live(report: &Json) -> BTreeMap<String, BTreeSet<String>> {
    let mut live: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for one in report["resources"].as_array().unwrap().iter().filter(|one| !is_gone(one)) {
        let key = ["resourceType", "place", "canonicalId"].map(|name| one[name].as_str().unwrap());
        live.entry(one["source"].as_str().unwrap().to_owned()).or_default().insert(key.join("\t"));
    }
    live
}

fn keys(state: &Json) -> BTreeMap<String, BTreeSet<String>> {
    let streams = state.as_object().unwrap();
    streams.iter().map(|(name, own)| (name.clone(), own.as_object().unwrap().keys().cloned().collect())).collect()
}

#[test]
fn delta_and_parquet_readers_see_the_rows_that_driftline_tells_of() {
    let sandbox = Sandbox::with_demo();
    let Some(told) = read(&sandbox) else { return };
    assert_eq!(counted(&told), logged(&sandbox));
    assert_eq!(told["deltalake"]["rows"], sandbox.json(["verify"])["rows"]);
}

#[test]
fn the_current_state_can_be_put_together_from_the_rows() {
    let sandbox = Sandbox::with_demo();
    let Some(told) = read(&sandbox) else { return };
    let state = &told["deltalake"]["state"];
    let report = sandbox.drift(["--all"]);
    assert_eq!(keys(state), live(&report));
    for one in report["resources"].as_array().unwrap().iter().filter(|one| !is_gone(one)) {
        let key = ["resourceType", "place", "canonicalId"].map(|name| one[name].as_str().unwrap()).join("\t");
        let found = &state[one["source"].as_str().unwrap()][&key];
        assert_eq!(found["seen"], one["status"] != "not_checked", "{key}");
        let differences = ["changes", "excused"].iter().flat_map(|name| one[name].as_array().unwrap());
        // Elements of a list without an order are named by where the baseline has them.
        let named_alike = |change: &&Json| {
            let mut steps = change["path"].as_str().unwrap().split('/');
            steps.all(|step| step.parse::<usize>().is_err())
        };
        for change in differences.filter(|change| change.get("current").is_some()).filter(named_alike) {
            assert_eq!(found["properties"].pointer(change["path"].as_str().unwrap()), change.get("current"), "{key}");
        }
    }
}

#[test]
fn no_secret_is_in_the_rows_either() {
    let sandbox = Sandbox::with_demo();
    let secret = json!({"environment": {"variables": {"API_TOKEN": "demo-token-1"}}});
    let function = thing_at("AWS::Lambda::Function", "here", "f", secret);
    sandbox.observe(&observation(0, &[function])).succeeded();
    let Some(told) = read(&sandbox) else { return };
    assert!(told["deltalake"]["texts"].as_u64().unwrap() > 100_000, "the images were read");
    assert_eq!(told["deltalake"]["secrets"], 0);
}

/// Things large enough that a full image is written again, with texts that do not compress.
fn large(count: u32, salt: u32) -> Vec<Json> {
    let noise = |at: u32| -> String {
        let mut state = u64::from(at * 1_000 + salt) | 1;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            format!("{:016x}", state ^ (state >> 31))
        };
        (0..60).map(|_| next()).collect()
    };
    (0..count)
        .map(|at| thing(&format!("t{at}"), json!({"noise": noise(at), "at": at, "none": null, "x": [1.5, "é\n"]})))
        .collect()
}

fn assert_state(sandbox: &Sandbox, things: &[Json]) {
    let Some(told) = read(sandbox) else { return };
    let state = told["deltalake"]["state"]["test"].as_object().unwrap();
    assert_eq!(state.len(), things.len());
    for one in things {
        let key = ["resourceType", "place", "canonicalId"].map(|name| one[name].as_str().unwrap()).join("\t");
        assert_eq!(state[&key]["properties"], one["snapshot"], "{key}");
    }
}

#[test]
fn what_was_observed_can_be_read_back_through_renewed_images_and_retention() {
    let sandbox = Sandbox::new();
    let mut last = Vec::new();
    for at in 0..6 {
        last = large(300 + at * 10, at);
        last.remove(3);
        sandbox.observe(&observation(at, &last)).succeeded();
    }
    if let Some(told) = read(&sandbox) {
        let bases = counted(&told).into_keys().filter(|(_, _, op)| op == "base").count();
        assert!(bases > 1, "a full image was to be written again");
    }
    assert_state(&sandbox, &last);
    sandbox.run(["gc", "--keep", "1s", "--keep-last", "3", "--grace", "0s"]).succeeded();
    assert_state(&sandbox, &last);
    let partial = json!([{"type": "Thing", "place": "here", "outcome": "partial", "reason": "throttled"}]);
    sandbox.observe(&observation_of("test", 10, partial, &large(5, 99))).succeeded();
    let Some(told) = read(&sandbox) else { return };
    let state = told["deltalake"]["state"]["test"].as_object().unwrap();
    assert_eq!(state.values().filter(|one| one["seen"] == true).count(), 5);
    assert_eq!(state.len(), last.len() + 1, "what was not looked at is still known");
}
