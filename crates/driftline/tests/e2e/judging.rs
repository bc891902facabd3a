//! What is drift and what is not: coverage, baselines, acceptances, retention, history.

use serde_json::{Value as Json, json};

use crate::support::{
    COMPLETE, Sandbox, counts, essence, observation, observation_of, resource, statuses, thing, thing_at,
};

/// A store with the baseline `{"size": 1, "name": "n"}` of `a` and `b`, and nothing changed since.
fn pinned() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.observe_things(0, &[small("a", 1), small("b", 1)]);
    sandbox.run(["baseline", "set"]).succeeded();
    sandbox
}

fn small(id: &str, size: u32) -> Json {
    thing(id, json!({"size": size, "name": "n"}))
}

fn accept(sandbox: &Sandbox, more: &[&str]) {
    let arguments = ["baseline", "accept", "--reason", "wanted"];
    sandbox.run(arguments.iter().chain(more)).succeeded().prints(&["accepted"]);
}

#[test]
fn a_listing_cut_short_is_not_a_deletion() {
    let sandbox = Sandbox::new();
    let all =
        [thing("kept", json!({"n": 1})), thing("cut", json!({"n": 1})), thing_at("Other", "here", "other", json!({}))];
    sandbox.observe_things(0, &all);
    sandbox.run(["baseline", "set"]).succeeded();
    let coverage = json!([
        {"type": "Thing", "place": "here", "outcome": "partial", "reason": "page 2 was refused"},
        {"type": "Other", "place": "here", "outcome": "complete"},
    ]);
    sandbox.observe(&observation_of("test", 1, coverage, &[thing("kept", json!({"n": 2}))])).succeeded();
    let report = sandbox.drift([]);
    assert_eq!(resource(&report, "cut")["status"], "not_checked");
    assert!(resource(&report, "cut")["reason"].as_str().unwrap().contains("page 2 was refused"));
    assert_eq!(resource(&report, "kept")["kind"], "modified", "what was seen was seen");
    assert_eq!(resource(&report, "other")["kind"], "deleted", "its extent was listed whole");
    // Seen again, and as it was: nothing happened.
    sandbox.observe_things(2, &all);
    assert_eq!(counts(&sandbox.drift([])), [0, 0, 0, 3]);
}

#[test]
fn what_the_baseline_never_looked_at_is_not_unknown() {
    let sandbox = Sandbox::new();
    let here = json!([{"type": "*", "place": "here", "outcome": "complete"}]);
    sandbox.observe(&observation_of("test", 0, here, &[small("a", 1)])).succeeded();
    sandbox.run(["baseline", "set"]).succeeded();
    let far = thing_at("Thing", "there", "far", json!({}));
    sandbox.observe_things(1, &[small("a", 1), small("new", 1), far]);
    let report = sandbox.drift([]);
    assert_eq!(resource(&report, "far")["status"], "not_checked");
    assert!(resource(&report, "far")["reason"].as_str().unwrap().contains("baseline"), "{report:#}");
    assert_eq!(resource(&report, "new")["status"], "unknown");
}

#[test]
fn a_pass_that_does_not_say_what_it_covers_deletes_nothing() {
    let sandbox = pinned();
    let mut silent = observation(1, &[small("a", 2)]);
    silent.as_object_mut().unwrap().remove("coverage");
    sandbox.observe(&silent).succeeded().says(&["does not say what it covers"]);
    let report = sandbox.drift([]);
    assert_eq!(resource(&report, "b")["status"], "not_checked");
    assert_eq!(resource(&report, "a")["status"], "drifted");
}

#[test]
fn a_source_without_a_baseline_is_not_checked_and_said_so() {
    let sandbox = pinned();
    sandbox.observe(&observation_of("late", 1, json!(COMPLETE), &[small("x", 1), small("y", 1)])).succeeded();
    let ran = sandbox.run(["drift", "--strict", "-o", "json"]).exited(3).says(&["warning: ", "`late`", "not checked"]);
    let report = ran.json();
    assert_eq!(counts(&report), [0, 0, 2, 2]);
    assert_eq!(resource(&report, "x")["source"], "late");
    assert_eq!(counts(&sandbox.drift(["--source", "test"])), [0, 0, 0, 2]);
    sandbox.run(["baseline", "set", "--source", "late"]).succeeded().prints(&["late  v1", "test  v1"]);
    assert_eq!(counts(&sandbox.drift([])), [0, 0, 0, 4]);
}

#[test]
fn a_source_in_several_scopes_is_one_source_with_several_streams() {
    let sandbox = Sandbox::new();
    let scoped = |scope: &str, at: u32, size: u32| {
        let mut one = observation(at, &[small(scope, size)]);
        one["scope"] = json!(scope);
        sandbox.observe(&one).succeeded();
    };
    scoped("east", 0, 1);
    scoped("west", 0, 1);
    sandbox.run(["baseline", "set"]).succeeded().prints(&["test@east  v1", "test@west  v1"]);
    scoped("east", 1, 2);
    assert_eq!(statuses(&sandbox.drift(["--source", "test"])).len(), 1);
    assert_eq!(counts(&sandbox.drift(["--source", "test@west"])), [0, 0, 0, 1]);
    assert_eq!(resource(&sandbox.drift([]), "east")["source"], "test@east");
}

#[test]
fn a_key_is_its_three_parts_and_not_their_text_in_a_row() {
    let sandbox = Sandbox::new();
    let (one, other) = (thing_at("T", "a\0b", "c", json!({})), thing_at("T", "a", "b\0c", json!({})));
    sandbox.observe_things(0, &[one]);
    sandbox.run(["baseline", "set"]).succeeded();
    sandbox.observe_things(1, &[other]);
    assert_eq!(counts(&sandbox.drift([])), [1, 1, 0, 0]);
}

#[test]
fn a_source_named_beneath_another_keeps_its_own_versions() {
    let sandbox = Sandbox::new();
    let things = |size: u32| (0..400).map(|at| small(&format!("t{at}"), size)).collect::<Vec<_>>();
    for source in ["a", "a/b"] {
        sandbox.observe(&observation_of(source, 0, json!(COMPLETE), &things(1))).succeeded();
    }
    sandbox.run(["baseline", "set"]).succeeded();
    for (source, sizes) in [("a", [2, 3, 4]), ("a/b", [5, 6, 7])] {
        for (at, size) in (1..).zip(sizes) {
            sandbox.observe(&observation_of(source, at, json!(COMPLETE), &things(size))).succeeded();
        }
    }
    for (source, size) in [("a", 4), ("a/b", 7)] {
        for _ in 0..2 {
            let report = sandbox.drift(["--source", source]);
            let own: Vec<&Json> =
                report["resources"].as_array().unwrap().iter().filter(|one| one["source"] == source).collect();
            assert_eq!(own.len(), 400, "{source}");
            assert!(own.iter().all(|one| one["changes"][0]["current"] == size), "{source}");
        }
    }
}

#[test]
fn baselines_are_set_listed_shown_and_removed() {
    let sandbox = Sandbox::new();
    sandbox.run(["baseline", "set"]).refused(&["there is no store"]);
    sandbox.observe_things(0, &[small("a", 1)]);
    sandbox.run(["baseline", "show"]).refused(&["no baseline `main`", "hint: "]);
    sandbox.run(["baseline", "list"]).succeeded().prints(&["no baselines yet"]);
    sandbox.observe_things(1, &[small("a", 2)]);
    sandbox.run(["baseline", "set", "old", "--version", "1"]).succeeded().prints(&["old", "test  v1"]);
    sandbox.run(["baseline", "set"]).succeeded().prints(&["main", "test  v2"]);
    sandbox.run(["baseline", "set", "then", "--at", "2026-01-01T00:00:30Z"]).succeeded().prints(&["test  v1"]);
    let names: Vec<Json> = sandbox.json(["baseline", "list"])["baselines"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| json!([one["name"], one["pins"]["test"], one["setBy"]]))
        .collect();
    assert_eq!(names, [json!(["main", 2, "tester"]), json!(["old", 1, "tester"]), json!(["then", 1, "tester"])]);
    assert_eq!(counts(&sandbox.drift([])), [0, 0, 0, 1]);
    assert_eq!(counts(&sandbox.drift(["--baseline", "old"])), [1, 0, 0, 0]);
    sandbox.run(["baseline", "remove", "old"]).succeeded();
    sandbox.run(["drift", "--baseline", "old"]).refused(&["no baseline `old`"]);
    sandbox.run(["baseline", "remove", "old"]).refused(&["no baseline `old`"]);
    sandbox.run(["baseline", "set", "--version", "9"]).refused(&["no version 9"]);
    sandbox.run(["baseline", "set", "--source", "nobody"]).refused(&["`nobody`"]);
    sandbox.run(["baseline", "set", "--at", "2020-01-01"]).refused_after_warnings(&["no source has a version"]);
    for name in ["latest", "all", "Main", "a b", "", "../x", "a/b", "live"] {
        sandbox.run(["baseline", "set", name]).refused(&["name of a baseline"]);
    }
}

#[test]
fn an_accepted_resource_is_expected_until_it_changes_again() {
    let sandbox = pinned();
    sandbox.observe_things(1, &[small("a", 2), small("b", 1)]);
    accept(&sandbox, &["a"]);
    assert_eq!(counts(&sandbox.drift([])), [0, 0, 0, 2]);
    let shown = &sandbox.json(["baseline", "show"])["baselines"][0]["accepted"][0];
    assert_eq!(
        (&shown["reason"], &shown["by"], &shown["key"]["id"]),
        (&json!("wanted"), &json!("tester"), &json!("a"))
    );
    assert!(shown["at"].is_string());
    sandbox.run(["baseline", "show"]).succeeded().prints(&["a (test, whole resource)", "wanted (tester, "]);

    sandbox.observe_things(2, &[small("a", 3), small("b", 1)]);
    let change = resource(&sandbox.drift([]), "a")["changes"][0].clone();
    assert_eq!((&change["baseline"], &change["current"]), (&json!(2), &json!(3)), "against what was accepted");
    sandbox.observe_things(3, &[small("a", 1), small("b", 1)]);
    let change = resource(&sandbox.drift([]), "a")["changes"][0].clone();
    assert_eq!((&change["baseline"], &change["current"]), (&json!(2), &json!(1)), "back to the pin is a change, too");
    // Setting the baseline anew ends what was accepted on top of the old pin.
    sandbox.run(["baseline", "set"]).succeeded();
    assert_eq!(counts(&sandbox.drift([])), [0, 0, 0, 2]);
    assert_eq!(sandbox.json(["baseline", "show"])["baselines"][0]["accepted"], json!([]));
}

#[test]
fn one_property_can_be_accepted_without_the_others() {
    let sandbox = pinned();
    let both = thing("a", json!({"size": 2, "name": "m"}));
    sandbox.observe_things(1, &[both, small("b", 1)]);
    accept(&sandbox, &["a", "--path", "/size"]);
    let report = sandbox.drift([]);
    let paths: Vec<&Json> =
        resource(&report, "a")["changes"].as_array().unwrap().iter().map(|one| &one["path"]).collect();
    assert_eq!(paths, ["/name"]);
    accept(&sandbox, &["a", "--path", "/name"]);
    assert_eq!(counts(&sandbox.drift([])), [0, 0, 0, 2]);
    sandbox.observe_things(2, &[small("a", 2), small("b", 1)]);
    let change = resource(&sandbox.drift([]), "a")["changes"][0].clone();
    assert_eq!((&change["path"], &change["baseline"], &change["current"]), (&json!("/name"), &json!("m"), &json!("n")));
    sandbox
        .run(["baseline", "accept", "a", "--path", "/size", "--reason", "x"])
        .refused(&["nothing to accept", "/size"]);
    sandbox.run(["baseline", "accept", "a", "--path", "size", "--reason", "x"]).refused(&["not a JSON pointer"]);
}

#[test]
fn an_element_that_was_added_or_taken_away_can_be_accepted() {
    let sandbox = Sandbox::new();
    let listed = |items: Json| sandbox_thing("a", &items);
    sandbox.observe_things(0, &[listed(json!(["x", "y"]))]);
    sandbox.run(["baseline", "set"]).succeeded();
    sandbox.observe_things(1, &[listed(json!(["x", "y", "z"]))]);
    accept(&sandbox, &["a", "--path", "/items/2"]);
    assert_eq!(counts(&sandbox.drift([])), [0, 0, 0, 1]);
    sandbox.observe_things(2, &[listed(json!(["x"]))]);
    assert_eq!(counts(&sandbox.drift([])), [1, 0, 0, 0]);
    accept(&sandbox, &["a", "--path", "/items"]);
    assert_eq!(counts(&sandbox.drift([])), [0, 0, 0, 1]);
    sandbox.observe_things(3, &[thing("a", json!({}))]);
    accept(&sandbox, &["a", "--path", "/items"]);
    assert_eq!(counts(&sandbox.drift([])), [0, 0, 0, 1], "its absence is what is expected now");
}

fn sandbox_thing(id: &str, items: &Json) -> Json {
    thing(id, json!({"items": items}))
}

#[test]
fn an_element_of_an_unordered_list_is_accepted_as_drift_names_it() {
    let sandbox = Sandbox::new();
    let rule = "[[rule]]\nkind = \"unordered\"\ntype = \"Thing\"\npath = \"/items\"\nreason = \"a set\"\n";
    sandbox.write("driftline.toml", rule);
    sandbox.observe_things(0, &[sandbox_thing("a", &json!(["x", "y", "z"]))]);
    sandbox.run(["baseline", "set"]).succeeded();
    sandbox.observe_things(1, &[sandbox_thing("a", &json!(["z", "x", "new"]))]);
    let report = sandbox.drift([]);
    let change = &resource(&report, "a")["changes"][0];
    assert_eq!((&change["baseline"], &change["current"]), (&json!("y"), &json!("new")));
    accept(&sandbox, &["a", "--path", change["path"].as_str().unwrap()]);
    let after = sandbox.drift([]);
    assert_eq!(counts(&after), [0, 0, 0, 1], "{}", after["resources"][0]["changes"]);
}

#[test]
fn what_is_new_and_what_is_gone_can_be_accepted() {
    let sandbox = pinned();
    sandbox.observe_things(1, &[small("a", 1), small("c", 1)]);
    accept(&sandbox, &["b", "c"]);
    assert_eq!(counts(&sandbox.drift([])), [0, 0, 0, 2]);
    sandbox.observe_things(2, &[small("a", 1), small("b", 1), small("c", 1)]);
    assert_eq!(resource(&sandbox.drift([]), "b")["status"], "unknown", "its absence was accepted, and it is back");
    sandbox.observe_things(3, &[small("a", 1)]);
    assert_eq!(resource(&sandbox.drift([]), "c")["kind"], "deleted", "its presence was accepted, and it is gone");
    sandbox.observe_things(4, &[small("a", 1), small("c", 2)]);
    let change = resource(&sandbox.drift([]), "c")["changes"][0].clone();
    assert_eq!((&change["baseline"], &change["current"]), (&json!(1), &json!(2)));
}

#[test]
fn accepting_needs_a_drift_and_a_reason() {
    let sandbox = pinned();
    sandbox.observe_things(1, &[small("a", 2), small("b", 1)]);
    sandbox.run(["baseline", "accept", "a", "--reason", " "]).refused(&["reason"]);
    sandbox.run(["baseline", "accept", "b", "--reason", "x"]).refused(&["nothing to accept", "`b`"]);
    sandbox.run(["baseline", "accept", "nobody", "--reason", "x"]).refused(&["`nobody`", "hint: "]);
    sandbox.run(["baseline", "accept", "a", "nobody", "--reason", "x"]).refused(&["`nobody`"]);
    sandbox.run(["baseline", "accept", "a", "--baseline", "other", "--reason", "x"]).refused(&["no baseline `other`"]);
    assert_eq!(counts(&sandbox.drift([])), [1, 0, 0, 1], "nothing of a refused command is kept");
    // Accepting the same again, and a path after the whole, leaves one word on each place.
    accept(&sandbox, &["a"]);
    sandbox.observe_things(2, &[small("a", 3), small("b", 1)]);
    accept(&sandbox, &["a"]);
    assert_eq!(sandbox.json(["baseline", "show"])["baselines"][0]["accepted"].as_array().unwrap().len(), 1);
}

/// Ten versions a minute apart: `a` changes in each, `b` once, `c` comes and goes.
fn ten_versions() -> Sandbox {
    let sandbox = Sandbox::new();
    for at in 0..10 {
        let mut things = vec![small("a", at), small("b", u32::from(at > 4))];
        if at % 3 == 1 {
            things.push(small("c", at));
        }
        sandbox.observe_things(at, &things);
        if at == 1 {
            sandbox.run(["baseline", "set"]).succeeded();
        }
    }
    sandbox
}

fn collect(sandbox: &Sandbox, more: &[&str]) -> Json {
    sandbox.json(["gc", "--keep", "1s", "--keep-last", "2", "--grace", "0s"].iter().chain(more))
}

fn versions(sandbox: &Sandbox) -> Vec<u64> {
    let log = sandbox.json(["log", "--limit", "0"]);
    log["versions"].as_array().unwrap().iter().map(|one| one["version"].as_u64().unwrap()).collect()
}

#[test]
fn retention_keeps_the_newest_and_the_pinned_versions_and_their_drift() {
    let sandbox = ten_versions();
    let before = (essence(&sandbox.store()), answer(&sandbox, &[]), answer(&sandbox, &["--between", "v9", "v10"]));
    let planned = collect(&sandbox, &["--dry-run"]);
    assert_eq!(planned["dropped"]["test"], json!([1, 3, 4, 5, 6, 7, 8]));
    assert_eq!(planned["pinned"]["test"], json!([2]));
    assert!(essence(&sandbox.store()) == before.0, "a dry run changes nothing");
    let done = collect(&sandbox, &[]);
    assert_eq!(done["dropped"], planned["dropped"]);
    assert!(done["filesDeleted"].as_u64().unwrap() > 0);
    assert_eq!(versions(&sandbox), [10, 9, 2]);
    assert_eq!(answer(&sandbox, &[]), before.1);
    assert_eq!(answer(&sandbox, &["--between", "v9", "v10"]), before.2);
    sandbox.run(["drift", "--between", "v3", "v10"]).refused(&["no source has versions"]);
    sandbox.run(["verify"]).succeeded().prints(&["3 versions"]);
    assert_eq!(collect(&sandbox, &[])["dropped"], json!({}), "a second run finds nothing");
    // Life goes on.
    sandbox.observe_things(11, &[small("a", 11)]);
    assert_eq!(versions(&sandbox), [11, 10, 9, 2]);
    sandbox.run(["verify"]).succeeded();
}

/// What `drift` says of resources; when each began to differ is not asked, since versions between may be gone.
fn answer(sandbox: &Sandbox, more: &[&str]) -> Json {
    let mut report = sandbox.drift(["--all"].iter().chain(more).copied());
    for one in report["resources"].as_array_mut().unwrap() {
        one.as_object_mut().unwrap().remove("firstSeen");
    }
    json!([report["summary"], report["resources"]])
}

#[test]
fn an_unpinned_version_is_not_kept_and_the_store_gets_smaller() {
    let sandbox = ten_versions();
    sandbox.run(["baseline", "remove", "main"]).succeeded();
    let size = || essence(&sandbox.store()).iter().filter(|(name, _)| name.starts_with("seg/")).count();
    let before = size();
    collect(&sandbox, &[]);
    assert_eq!(versions(&sandbox), [10, 9]);
    assert!(size() < before);
    sandbox.run(["verify"]).succeeded();
}

#[test]
fn what_was_accepted_outlives_retention() {
    let sandbox = pinned();
    sandbox.observe_things(1, &[small("a", 2), small("c", 1)]);
    accept(&sandbox, &["a", "b", "c"]);
    for at in 2..8 {
        sandbox.observe_things(at, &[small("a", at), small("c", 1)]);
    }
    sandbox.observe_things(8, &[small("a", 2), small("c", 1)]);
    let before = answer(&sandbox, &[]);
    assert_eq!(before[0]["drifted"], 0);
    collect(&sandbox, &[]);
    assert_eq!(answer(&sandbox, &[]), before);
    sandbox.observe_things(9, &[small("a", 1), small("b", 1), small("c", 1)]);
    let report = sandbox.drift([]);
    assert_eq!(resource(&report, "a")["changes"][0]["baseline"], 2);
    assert_eq!(resource(&report, "b")["status"], "unknown");
}

#[test]
fn files_that_may_be_in_use_stay_for_the_grace_period() {
    let sandbox = ten_versions();
    let waiting = sandbox.json(["gc", "--keep", "1s", "--keep-last", "2"]);
    assert_eq!(waiting["filesDeleted"], 0);
    assert!(waiting["filesWaiting"].as_u64().unwrap() > 0);
    assert!(collect(&sandbox, &[])["filesDeleted"].as_u64().unwrap() > 0);
    sandbox.run(["gc", "--keep", "soon"]).refused(&["`soon`", "hint: "]);
}

#[test]
fn a_file_that_was_needed_until_now_stays_for_the_grace_period_too() {
    let sandbox = ten_versions();
    // Written long ago, but a reader that has just read the log may still open them.
    let folder = sandbox.store().join("seg/test");
    let files = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    let touched = std::process::Command::new("touch").args(["-d", "3 days ago"]).args(files).status().unwrap();
    assert!(touched.success());
    let collected = sandbox.json(["gc", "--keep", "1s", "--keep-last", "2", "--grace", "1d"]);
    assert_eq!(collected["dropped"]["test"].as_array().unwrap().len(), 7);
    assert_eq!(collected["filesDeleted"], 0, "files were deleted under the feet of whoever reads them");
    assert!(collect(&sandbox, &[])["filesDeleted"].as_u64().unwrap() > 0);
}

#[test]
fn a_life_has_a_first_sight_changes_an_end_and_a_return() {
    let sandbox = Sandbox::new();
    let partial = json!([{"type": "*", "place": "here", "outcome": "partial", "reason": "throttled"}]);
    sandbox.observe_things(0, &[small("b", 1)]);
    sandbox.observe_things(1, &[small("b", 1), small("a", 1)]);
    sandbox.observe_things(2, &[small("b", 1), small("a", 2)]);
    sandbox.observe(&observation_of("test", 3, partial, &[small("b", 1)])).succeeded();
    sandbox.observe_things(4, &[small("b", 1), small("a", 2)]);
    sandbox.observe_things(5, &[small("b", 1)]);
    sandbox.observe_things(6, &[small("b", 1), small("a", 3)]);
    let life = sandbox.json(["history", "a"]);
    let events: Vec<Json> =
        life["events"].as_array().unwrap().iter().map(|one| json!([one["version"], one["event"]])).collect();
    let expected = [
        json!([2, "first_seen"]),
        json!([3, "changed"]),
        json!([4, "not_looked_at"]),
        json!([5, "seen_again"]),
        json!([6, "deleted"]),
        json!([7, "reappeared"]),
    ];
    assert_eq!(events, expected);
    assert_eq!(life["events"][5]["changes"][0]["current"], 3);
    sandbox.observe_things(7, &[small("b", 1)]);
    sandbox.run(["history", "a"]).succeeded().prints(&["first seen", "reappeared", "deleted", "/size: 1 -> 2"]);
    sandbox.run(["history", "nobody"]).refused(&["`nobody`", "hint: "]);
}

/// Names that try to speak to the terminal, to break out of a table, or to be long.
fn hostile() -> Vec<String> {
    vec![
        "red \u{1b}[31m text\u{1b}[0m".into(),
        "bell \u{7} and back\u{8}\u{8}space".into(),
        "two\nlines\r\nresult: 0 drifted".into(),
        "a | b `c` <script>alert(1)</script> *d* [e](f)".into(),
        "csi \u{9b}2J".into(),
        format!("long {}", "x".repeat(10_000)),
    ]
}

/// Every one of them is drifted, in a type and at a place and path that are no better.
fn with_hostile_names() -> Sandbox {
    let sandbox = Sandbox::new();
    let things = |size: u32| -> Vec<Json> {
        let named =
            |name: &String| thing_at(&format!("Kind {name}"), &format!("place {name}"), name, json!({name: size}));
        hostile().iter().map(named).collect()
    };
    sandbox.observe_things(0, &things(1));
    sandbox.run(["baseline", "set"]).succeeded();
    sandbox.observe_things(1, &things(2));
    sandbox
}

/// Runs a command in the formats for people, and looks for what must not be in them.
#[track_caller]
fn assert_harmless(sandbox: &Sandbox, arguments: &[&str]) {
    for format in ["table", "markdown"] {
        let ran = sandbox.run(arguments.iter().copied().chain(["-o", format]));
        assert!(ran.code == 0 || ran.code == 2, "{}", ran.err);
        let sent = ran.out.chars().find(|char| char.is_control() && *char != '\n');
        assert_eq!(sent, None, "{arguments:?} as {format} sends a control character");
        assert!(!ran.out.lines().any(|line| line == "result: 0 drifted"), "{arguments:?} as {format}: a forged line");
        if format == "markdown" {
            assert!(!ran.out.contains("<script>"), "{arguments:?}");
            let rows = ran.out.lines().filter(|line| line.starts_with("| ") && line.contains("&lt;script"));
            rows.for_each(|row| assert!(row.contains("a \\| b"), "a cell ends early: {row}"));
        }
    }
}

#[test]
fn hostile_names_reach_no_terminal_and_break_no_table() {
    let sandbox = with_hostile_names();
    let report = sandbox.drift([]);
    assert_eq!(counts(&report), [6, 0, 0, 0]);
    for name in hostile() {
        assert_eq!(resource(&report, &name)["status"], "drifted", "JSON has the name as it is");
    }
    for arguments in [&["drift"][..], &["drift", "--all"], &["log"], &["velocity"], &["doctor"], &["baseline", "show"]]
    {
        assert_harmless(&sandbox, arguments);
    }
    for name in hostile() {
        assert_harmless(&sandbox, &["history", &name]);
    }
    let names = hostile();
    let mut arguments = vec!["baseline", "accept", "--reason", "x\u{1b}[31m"];
    arguments.extend(names.iter().map(String::as_str));
    let ran = sandbox.run(arguments).succeeded();
    assert!(!ran.err.chars().any(|char| char.is_control() && char != '\n'), "{}", ran.err);
    assert_harmless(&sandbox, &["baseline", "show"]);
    assert_eq!(counts(&sandbox.drift([])), [0, 0, 0, 6]);
}

#[test]
fn hostile_names_are_explained_without_doing_harm() {
    let sandbox = with_hostile_names();
    for name in hostile() {
        assert_harmless(&sandbox, &["explain", &name]);
    }
}

#[test]
fn a_hostile_name_forges_no_line_of_an_error() {
    let sandbox = Sandbox::new();
    let forged = "x\nhint: \u{1b}[31mrun something";
    let ran = sandbox.observe(&observation(0, &[thing(forged, json!({})), thing(forged, json!({}))]));
    let ran = ran.refused(&["twice"]);
    assert!(!ran.err.contains('\u{1b}'), "{}", ran.err);
    assert!(!ran.err.lines().any(|line| line.starts_with("hint: ") && line.contains("run something")), "{}", ran.err);
}
