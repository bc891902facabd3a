//! Every command's contract: exit codes, streams, formats, filters.

use std::fs::File;
use std::io::Read;
use std::process::Stdio;

use serde_json::{Value as Json, json};

use crate::support::{Sandbox, as_lines, counts, observation, observation_of, ran, statuses, thing, thing_at};

/// A store in which `changed` drifted, `new` is unknown, `gone` was deleted, `same` is in sync and `hidden` was
/// not looked at.
fn mixed() -> Sandbox {
    let sandbox = Sandbox::new();
    let before = ["changed", "gone", "same"].map(|id| thing(id, json!({"size": 1, "tags": {"a": "b"}})));
    let hidden = thing_at("Thing", "there", "hidden", json!({"size": 1}));
    let first: Vec<Json> = before.into_iter().chain([hidden]).collect();
    sandbox.observe_things(0, &first);
    sandbox.run(["baseline", "set"]).succeeded();
    let coverage = json!([
        {"type": "*", "place": "here", "outcome": "complete"},
        {"type": "Thing", "place": "there", "outcome": "partial", "reason": "throttled"},
    ]);
    let after = [
        thing("changed", json!({"size": 2, "tags": {"a": "b"}})),
        thing("new", json!({"size": 1})),
        thing("same", json!({"size": 1, "tags": {"a": "b"}})),
    ];
    sandbox.observe(&observation_of("test", 1, coverage, &after)).succeeded();
    sandbox
}

/// A store in which nothing drifted, but something is unknown and something was not looked at.
fn calm() -> Sandbox {
    let sandbox = Sandbox::new();
    let hidden = thing_at("Thing", "there", "hidden", json!({}));
    sandbox.observe_things(0, &[thing("same", json!({})), hidden]);
    sandbox.run(["baseline", "set"]).succeeded();
    let coverage = json!([{"type": "*", "place": "here", "outcome": "complete"}]);
    let after = [thing("same", json!({})), thing("new", json!({}))];
    sandbox.observe(&observation_of("test", 1, coverage, &after)).succeeded();
    sandbox
}

#[test]
fn each_outcome_has_its_exit_code() {
    let drifting = mixed();
    drifting.run(["drift"]).exited(2);
    drifting.run(["drift", "--strict"]).exited(2);
    drifting.run(["drift", "--fail-on", "never"]).exited(0);
    drifting.run(["drift", "--fail-on", "never", "--strict"]).exited(3);
    drifting.run(["drift", "--exit-zero", "--strict"]).exited(0);
    let calm = calm();
    calm.run(["drift"]).exited(0);
    calm.run(["drift", "--fail-on", "unknown"]).exited(2);
    calm.run(["drift", "--strict"]).exited(3);
    calm.run(["drift", "--strict", "--exit-zero"]).exited(0);
    calm.run(["drift", "--where", "id == 'same'", "--strict"]).exited(0);
    Sandbox::new().run(["drift"]).refused(&["there is no store"]);
}

#[test]
fn a_mistyped_command_line_is_an_error_and_never_looks_like_drift() {
    let sandbox = mixed();
    for arguments in [
        &["drift", "--no-such-flag"][..],
        &["drfit"],
        &["drift", "--fail-on", "sometimes"],
        &["baseline", "accept", "changed"],
        &["log", "--limit", "many"],
        &["drift", "--at", "2026-01-01", "--between", "v1", "v2"],
    ] {
        let ran = sandbox.run(arguments);
        assert_eq!((ran.code, ran.out.as_str()), (1, ""), "{arguments:?} exits with the wrong code\n{}", ran.err);
        assert!(ran.err.contains("error: "), "{}", ran.err);
    }
    sandbox.run(["--help"]).succeeded().prints(&["Exit codes:"]);
    sandbox.run(["--version"]).succeeded().prints(&["driftline "]);
}

#[test]
fn an_interrupted_run_exits_with_its_signal_and_commits_nothing() {
    for (signal, code) in [("-INT", 130), ("-TERM", 143)] {
        let sandbox = Sandbox::new();
        let mut command = sandbox.command(["observe", "command", "--", "sh", "-c", "echo started >&2; exec sleep 20"]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut started = [0; 7];
        child.stderr.as_mut().unwrap().read_exact(&mut started).unwrap();
        let id = child.id().to_string();
        std::process::Command::new("kill").args([signal, &id]).status().unwrap();
        // Not `wait_with_output`: the sleeping grandchild holds the pipes open.
        assert_eq!(child.wait().unwrap().code(), Some(code));
        assert!(!sandbox.store().join("seg").exists());
    }
}

#[test]
fn the_answer_can_go_to_several_places_in_several_formats_at_once() {
    let sandbox = mixed();
    let ran = sandbox.run([
        "drift",
        "-o",
        "json=report.json",
        "-o",
        "markdown=report.md",
        "-o",
        "ndjson=lines",
        "-o",
        "table",
    ]);
    let ran = ran.exited(2).prints(&["DRIFTED 2", "result: 2 drifted, 1 unknown, 1 not checked, 1 in sync (of 5)"]);
    assert!(!ran.out.contains('{'), "{}", ran.out);
    let read = |name: &str| std::fs::read_to_string(sandbox.path(name)).unwrap();
    let report: Json = serde_json::from_str(&read("report.json")).unwrap();
    assert_eq!(counts(&report), [2, 1, 1, 1]);
    let lines: Vec<Json> = read("lines").lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(json!(lines), report["resources"]);
    assert!(
        read("report.md").contains("| modified | changed | Thing | test | /size: 1 -&gt; 2 |"),
        "{}",
        read("report.md")
    );
    // The same with commas, as the environment has to write it.
    sandbox.run_with(&[("DRIFTLINE_OUTPUT", "json,markdown=again.md")], ["drift"]).exited(2).json();
    assert_eq!(read("again.md"), read("report.md"));
    let nothing = sandbox.run(["drift", "-o", "json=only.json"]).exited(2);
    assert_eq!(nothing.out, "");

    sandbox.run(["drift", "-o", "json", "-o", "table"]).refused(&["only one output"]);
    sandbox.run(["drift", "-o", "yaml"]).refused(&["`yaml`", "table, json, ndjson and markdown"]);
    sandbox.run(["drift", "-o", "json=no/such/folder/x"]).refused(&["no/such/folder/x"]);
}

#[test]
fn every_command_prints_json_as_one_value_and_ndjson_as_one_a_line() {
    let sandbox = mixed();
    let file = sandbox.write("next.json", observation(2, &[thing("same", json!({}))]).to_string());
    let observe = ["observe", "file", file.to_str().unwrap()];
    for arguments in [
        &["drift"][..],
        &["drift", "--all"],
        &["explain", "changed"],
        &["velocity"],
        &["history", "changed"],
        &["log"],
        &["verify"],
        &["gc", "--dry-run"],
        &["doctor"],
        &["config", "view"],
        &["baseline", "list"],
        &["baseline", "show"],
        &["baseline", "set", "other"],
        &observe,
    ] {
        let run = |format: &str| sandbox.run(arguments.iter().copied().chain(["-o", format]));
        let one = run("json");
        assert!(one.code == 0 || one.code == 2, "{arguments:?}: {}", one.err);
        assert!(one.json().is_object(), "{arguments:?}");
        assert!(one.out.ends_with('\n'));
        for line in run("ndjson").out.lines() {
            serde_json::from_str::<Json>(line).unwrap_or_else(|error| panic!("{arguments:?}: {error} in {line}"));
        }
        assert!(!run("markdown").out.is_empty(), "{arguments:?}");
    }
}

#[test]
fn colour_is_for_terminals_or_on_request_and_never_in_data() {
    let sandbox = mixed();
    let escape = '\u{1b}';
    assert!(!sandbox.run(["drift"]).out.contains(escape));
    assert!(sandbox.run(["drift", "--color", "always"]).out.contains(escape));
    assert!(sandbox.run_with(&[("DRIFTLINE_COLOR", "always")], ["drift"]).out.contains(escape));
    assert!(sandbox.run_with(&[("FORCE_COLOR", "1")], ["drift"]).out.contains(escape));
    assert!(!sandbox.run_with(&[("FORCE_COLOR", "1"), ("NO_COLOR", "1")], ["drift"]).out.contains(escape));
    assert!(!sandbox.run_with(&[("FORCE_COLOR", "1")], ["drift", "--color", "never"]).out.contains(escape));
    for format in ["json", "ndjson", "markdown"] {
        assert!(!sandbox.run(["drift", "--color", "always", "-o", format]).out.contains(escape), "{format}");
    }
    let plain = sandbox.run(["drift"]).out;
    let coloured = sandbox.run(["drift", "--color", "always"]).out;
    assert_eq!(without_escapes(&coloured), plain, "colour adds nothing that is not also a word or a sign");
    assert!(sandbox.run(["explain", "nobody", "--color", "always"]).exited(1).err.contains(escape));
}

fn without_escapes(text: &str) -> String {
    let mut parts = text.split('\u{1b}');
    let mut out = parts.next().unwrap_or_default().to_owned();
    parts.for_each(|part| out.push_str(part.split_once('m').map_or("", |(_, rest)| rest)));
    out
}

#[test]
fn results_go_to_stdout_and_everything_else_to_stderr() {
    let sandbox = Sandbox::new();
    let unsaid = json!({
        "schema": "driftline.observation/v1", "source": "test", "takenAt": "2026-01-01T00:00:00Z",
        "resources": [thing("a", json!({}))],
    });
    let ran = sandbox.observe(&unsaid).succeeded().says(&["warning: ", "does not say what it covers"]);
    assert_eq!(ran.out, "test v1  1 resource\n");
    sandbox.observe(&observation_of("other", 0, json!("complete"), &[])).succeeded();
    sandbox.run(["baseline", "set", "--source", "test"]).succeeded();
    let ran = sandbox.run(["drift"]).exited(0).says(&["warning: the source `other`"]);
    assert!(!ran.out.contains("warning"), "{}", ran.out);

    let quiet = sandbox.run(["drift", "-q"]).exited(0);
    assert_eq!((quiet.err.as_str(), quiet.out), ("", ran.out.clone()));
    assert_eq!(sandbox.run_with(&[("DRIFTLINE_QUIET", "true")], ["drift"]).err, "");
    assert!(!sandbox.run(["-q", "explain", "nobody"]).exited(1).err.is_empty(), "errors are always said");
    // What was accepted is a result, in every format.
    sandbox.observe_things(1, &[thing("a", json!({"x": 1}))]);
    let accepted = sandbox.run(["baseline", "accept", "a", "--reason", "wanted"]).succeeded().prints(&["accepted"]);
    assert_eq!(accepted.err, "");
}

#[test]
fn a_reader_that_leaves_early_is_no_failure_and_a_full_disk_is_one() {
    let sandbox = mixed();
    for arguments in [&["drift", "--exit-zero"][..], &["log"], &["completions", "bash"]] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let left = ran(&sandbox.command(arguments).stdout(writer).stderr(Stdio::piped()).output().unwrap());
        assert!(!left.err.contains("panicked"), "{arguments:?}: {}", left.err);
        assert_eq!(left.code, 0, "{arguments:?}: {}", left.err);
        let full = File::create("/dev/full").unwrap();
        let full = ran(&sandbox.command(arguments).stdout(full).stderr(Stdio::piped()).output().unwrap());
        assert!(!full.err.contains("panicked"), "{arguments:?}: {}", full.err);
        assert_eq!(full.code, 1, "{arguments:?} did not say that its answer was lost");
    }
}

#[test]
fn where_filters_by_type_place_status_and_changes() {
    let sandbox = mixed();
    for (filter, ids) in [
        ("type == 'Thing' && status == 'drifted'", &["changed", "gone"][..]),
        ("place == 'there'", &["hidden"]),
        ("status == 'unknown'", &["new"]),
        ("status == 'in_sync'", &[]),
        ("changes.exists(c, c.path == '/size' && c.current > c.baseline)", &["changed"]),
        ("size(changes) == 1", &["changed"]),
        ("kind == 'deleted'", &["gone"]),
        ("id.startsWith('n')", &["new"]),
        ("source == 'test' && !(status in ['drifted', 'unknown'])", &["hidden"]),
        ("account == '' && region == ''", &["changed", "gone", "hidden", "new"]),
        ("false", &[]),
    ] {
        let report = sandbox.drift(["--where", filter]);
        assert_eq!(statuses(&report).into_keys().collect::<Vec<_>>(), ids, "{filter}");
        assert_eq!(report["where"], filter);
    }
    // The counts and the exit code are those of what is asked for.
    let report = sandbox.drift(["--where", "status == 'in_sync'", "--all"]);
    assert_eq!(counts(&report), [0, 0, 0, 1]);
    sandbox.run(["drift", "--where", "id == 'new'"]).exited(0);
    sandbox.run(["drift", "--where", "id == 'gone'"]).exited(2);
    sandbox.run_with(&[("DRIFTLINE_WHERE", "id == 'new'")], ["drift"]).exited(0);
}

#[test]
fn a_filter_that_cannot_be_answered_is_an_error() {
    let sandbox = mixed();
    for (filter, words) in [
        ("type ==", &["`--where 'type =='`", "not a CEL expression", "hint: "][..]),
        ("typo == 'Thing'", &["typo", "type, place, account"]),
        ("size(changes)", &["not true or false"]),
        ("changes[7].path == '/size'", &["cannot be answered for"]),
        ("", &["`--where ''`"]),
    ] {
        sandbox.run(["drift", "--where", filter]).refused(words);
    }
    let deep = format!("{}true{}", "(".repeat(20_000), ")".repeat(20_000));
    let ran = sandbox.run(["drift", "--where", &deep]);
    assert_eq!(ran.code, 1, "{}", &ran.err[..ran.err.len().min(500)]);
}

#[test]
fn a_table_lists_as_many_as_the_limit_says_and_tells_of_the_rest() {
    let sandbox = Sandbox::new();
    let things = |size: u32| (0..30).map(|at| thing(&format!("t{at:02}"), json!({"size": size}))).collect::<Vec<_>>();
    sandbox.observe_things(0, &things(1));
    sandbox.run(["baseline", "set"]).succeeded();
    sandbox.observe_things(1, &things(2));
    sandbox.run(["drift", "--limit", "10"]).exited(2).prints(&["DRIFTED 30", "and 20 more"]);
    let all = sandbox.run(["drift", "--limit", "0"]).exited(2).prints(&["t29"]);
    assert!(!all.out.contains("more ("));
    sandbox.run(["drift", "--limit", "10", "-o", "markdown"]).exited(2).prints(&["and 20 more"]);
    assert_eq!(sandbox.drift(["--limit", "10"])["resources"].as_array().unwrap().len(), 30);
}

#[test]
fn completions_are_printed_for_each_shell() {
    let sandbox = Sandbox::new();
    for (shell, words) in [
        ("bash", &["_driftline()", "complete -F _driftline"][..]),
        ("zsh", &["#compdef driftline"]),
        ("fish", &["complete -c driftline"]),
    ] {
        let ran =
            sandbox.run(["completions", shell]).succeeded().prints(words).prints(&["baseline", "fail-on", "velocity"]);
        assert_eq!(ran.err, "");
    }
    // A shell must be able to read its own.
    let script = sandbox.write("completions.bash", sandbox.run(["completions", "bash"]).out);
    let status = std::process::Command::new("bash").arg("-n").arg(script).status();
    assert!(status.is_ok_and(|status| status.success()));
}

#[test]
fn two_files_are_compared_without_a_store() {
    let sandbox = Sandbox::new();
    let a = sandbox.write("a.json", observation(0, &[thing("x", json!({"n": 1})), thing("y", json!({}))]).to_string());
    let b = sandbox.write("b.json", as_lines(&observation(1, &[thing("x", json!({"n": 2})), thing("z", json!({}))])));
    let (a, b) = (a.to_str().unwrap(), b.to_str().unwrap());
    let report = sandbox.run(["diff", a, b, "-o", "json"]).exited(2).json();
    let expected = [("x", "drifted"), ("y", "drifted"), ("z", "unknown")];
    assert_eq!(statuses(&report), expected.map(|(id, status)| (id.to_owned(), status.to_owned())).into());
    sandbox.run(["diff", a, a]).exited(0).prints(&["0 drifted", "2 in sync"]);
    sandbox.run(["diff", a, b, "--fail-on", "never"]).exited(0);
    sandbox.run(["diff", a, b, "--where", "id == 'z'"]).exited(0);
    sandbox.run(["diff", a, "missing.json"]).refused(&["`missing.json`"]);
    sandbox.run(["diff", a, "."]).refused(&["`.`"]);
    assert!(!sandbox.store().exists());
}

#[test]
fn a_file_that_names_one_thing_twice_cannot_be_compared() {
    let sandbox = Sandbox::new();
    let twice = sandbox.write("a.json", as_lines(&observation(0, &[thing("x", json!({})), thing("x", json!({}))])));
    let twice = twice.to_str().unwrap();
    sandbox.run(["diff", twice, twice]).refused(&["`x`", "twice", "line 3"]);
}

#[test]
fn secrets_are_compared_but_not_shown_when_files_are_compared() {
    let sandbox = Sandbox::new();
    let function = |secret: &str| {
        let snapshot = json!({"environment": {"variables": {"TOKEN": secret}}});
        observation(0, &[thing_at("AWS::Lambda::Function", "here", "f", snapshot)]).to_string()
    };
    let a = sandbox.write("a.json", function("hunter2"));
    let b = sandbox.write("b.json", function("hunter3"));
    for format in ["table", "json", "markdown", "html", "sarif", "junit", "github"] {
        let ran = sandbox.run(["diff", a.to_str().unwrap(), b.to_str().unwrap(), "-o", format]).exited(2);
        assert!(ran.out.contains("TOKEN") && !ran.out.contains("hunter"), "{}", ran.out);
    }
    let ran = sandbox.run(["diff", a.to_str().unwrap(), b.to_str().unwrap()]);
    insta::assert_snapshot!(ran.out.replace(sandbox.path("").to_str().unwrap(), ""), @"
    Drift between `a.json` and `b.json`

    DRIFTED 1  modified or deleted: 1 medium
      ~ f  AWS::Lambda::Function (medium, test, here)
          /environment/variables/TOKEN: a sealed value changed

    result: 1 drifted, 0 unknown, 0 not checked, 0 in sync (of 1)
    ");
}

#[test]
fn a_program_that_prints_an_observation_is_an_observer() {
    let sandbox = Sandbox::new();
    let file = sandbox.write("o.json", observation(0, &[thing("a", json!({}))]).to_string());
    let ran = sandbox.run(["observe", "command", "--", "cat", file.to_str().unwrap()]).succeeded();
    assert_eq!(ran.out, "test v1  1 resource\n");
    let lines = sandbox.write("o.ndjson", as_lines(&observation(1, &[thing("a", json!({"n": 1}))])));
    let told = sandbox.json(["observe", "command", "cat", lines.to_str().unwrap()]);
    assert_eq!((&told["committed"][0]["version"], &told["committed"][0]["changes"]["change"]), (&json!(2), &json!(1)));
    let text = observation(2, &[]).to_string();
    sandbox.feed(text.as_bytes(), ["observe", "file", "--allow-empty", "-"]).succeeded().prints(&["test v3"]);
}

#[test]
fn several_files_are_observed_in_one_go() {
    let sandbox = Sandbox::new();
    let a = sandbox.write("a.json", observation_of("a", 0, json!("complete"), &[thing("x", json!({}))]).to_string());
    let b = sandbox.write("b.json", observation_of("b", 0, json!("complete"), &[]).to_string());
    let both = ["observe", "file", a.to_str().unwrap(), b.to_str().unwrap()];
    sandbox.run(both).succeeded().prints(&["a v1  1 resource", "b v1  0 resources"]);
    // What was committed is told although a later file is bad.
    let ran = sandbox.run(["observe", "file", b.to_str().unwrap(), "missing.json"]).exited(1).says(&["`missing.json`"]);
    assert!(ran.out.contains("b v2") || ran.err.contains("b v2"), "v2 of `b` was committed in silence:\n{}", ran.err);
}

#[test]
fn each_time_of_a_question_means_the_version_that_was_newest_then() {
    let sandbox = Sandbox::new();
    for (at, size) in [(0, 1), (10, 2), (20, 3)] {
        sandbox.observe_things(at, &[thing("a", json!({"size": size}))]);
    }
    sandbox.run(["baseline", "set", "--version", "1"]).succeeded();
    let values = |more: &[&str]| {
        let report = sandbox.drift(more.iter().copied());
        let change = &report["resources"][0]["changes"][0];
        [change["baseline"].clone(), change["current"].clone()]
    };
    assert_eq!(values(&[]), [json!(1), json!(3)]);
    assert_eq!(values(&["--at", "2026-01-01T00:15:00Z"]), [json!(1), json!(2)]);
    assert_eq!(values(&["--since", "2026-01-01T00:15:00Z"]), [json!(2), json!(3)]);
    assert_eq!(values(&["--since", "2026-01-01T00:05:00Z", "--at", "2026-01-01T00:12:00Z"]), [json!(1), json!(2)]);
    assert_eq!(values(&["--between", "v2", "v3"]), [json!(2), json!(3)]);
    assert_eq!(values(&["--between", "v3", "v1"]), [json!(3), json!(1)]);
    assert_eq!(values(&["--between", "v1", "latest"]), [json!(1), json!(3)]);
    assert_eq!(values(&["--between", "2026-01-01T00:00:00Z", "2026-01-02"]), [json!(1), json!(3)]);
    assert_eq!(counts(&sandbox.drift(["--at", "2026-01-01T00:05:00Z"])), [0, 0, 0, 1]);
    assert_eq!(counts(&sandbox.drift(["--since", "1h"])), [0, 0, 0, 1], "nothing happened lately");
    sandbox.run(["drift", "--between", "v7", "v8"]).refused(&["no source has versions"]);
    sandbox.run(["drift", "--at", "yesterday-ish"]).refused(&["`yesterday-ish` is not a time", "hint: "]);
    sandbox.run(["drift", "--source", "nobody"]).refused(&["`nobody`"]);
    sandbox.run(["drift", "--baseline", "nobody"]).refused(&["no baseline `nobody`", "baseline set nobody"]);
}

#[test]
fn a_time_before_everything_is_not_in_sync() {
    let sandbox = Sandbox::new();
    sandbox.observe_things(0, &[thing("a", json!({}))]);
    sandbox.run(["baseline", "set"]).succeeded();
    let ran = sandbox.run(["drift", "--at", "2020-01-01", "--strict"]);
    assert_ne!(ran.code, 0, "nothing was compared, yet the answer is `in sync`:\n{}", ran.out);
}

#[test]
fn a_store_can_have_any_name_that_a_folder_can_have() {
    let sandbox = Sandbox::new();
    for store in ["with blanks", "per%20cent", "#1", "é", "[a]{b}?*", "deep/er", "trailing/", "./dotted/../other"] {
        let at = |arguments: &[&str]| sandbox.run(["--store", store].iter().chain(arguments));
        for minute in 0..2 {
            let file = sandbox.write("o.json", observation(minute, &[thing("a", json!({"n": minute}))]).to_string());
            at(&["observe", "file", file.to_str().unwrap()]).succeeded();
            if minute == 0 {
                at(&["baseline", "set"]).succeeded();
            }
        }
        at(&["drift"]).exited(2);
        at(&["gc", "--keep", "1s", "--keep-last", "1", "--grace", "0s"]).succeeded();
        at(&["verify"]).succeeded();
    }
}
