//! The configuration file, the environment, and where each value came from.

use serde_json::{Value as Json, json};

use crate::support::{COMPLETE, Sandbox, copy_folder, counts, observation, observation_of, resource, thing};

/// A store whose one thing went from `before` to `after`.
fn changed(before: Json, after: Json) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.observe_things(0, &[thing("a", before)]);
    sandbox.run(["baseline", "set"]).succeeded();
    sandbox.observe_things(1, &[thing("a", after)]);
    sandbox
}

#[test]
fn every_configured_source_is_observed() {
    let sandbox = Sandbox::new();
    sandbox.write("one.json", observation_of("one", 0, json!(COMPLETE), &[thing("a", json!({}))]).to_string());
    sandbox.write("two.json", observation_of("two/prod", 0, json!(COMPLETE), &[]).to_string());
    let config = "[[source]]\nname = \"one\"\nfile = \"one.json\"\n\
                  [[source]]\nname = \"two/prod\"\ncommand = [\"cat\", \"two.json\"]\n";
    sandbox.write("driftline.toml", config);
    let told = sandbox.run(["observe", "all"]).succeeded().prints(&["one v1  1 resource", "two/prod v1  0 resources"]);
    assert_eq!(told.err, "");
    assert_eq!(sandbox.json(["observe", "all"])["committed"].as_array().unwrap().len(), 2);
    Sandbox::new().run(["observe", "all"]).refused(&["no sources are configured", "hint: "]);
}

#[test]
fn a_source_that_fails_does_not_take_the_others_with_it() {
    let sandbox = Sandbox::new();
    for name in ["good", "better"] {
        let one = observation_of(name, 0, json!(COMPLETE), &[thing("a", json!({}))]);
        sandbox.write(&format!("{name}.json"), one.to_string());
    }
    sandbox.write("other.json", observation_of("other", 0, json!(COMPLETE), &[]).to_string());
    let config = "[[source]]\nname = \"good\"\nfile = \"good.json\"\n\
                  [[source]]\nname = \"broken\"\ncommand = [\"false\"]\n\
                  [[source]]\nname = \"absent\"\nfile = \"absent.json\"\n\
                  [[source]]\nname = \"someone\"\nfile = \"other.json\"\n\
                  [[source]]\nname = \"better\"\nfile = \"better.json\"\n";
    sandbox.write("driftline.toml", config);
    let ran = sandbox.run(["observe", "all"]).exited(1).prints(&["good v1", "better v1"]);
    let ran =
        ran.says(&["`broken` was not observed", "`absent` was not observed", "`other`, but configured as `someone`"]);
    ran.says(&["3 sources were not observed; the others were committed"]);
    let names: Vec<Json> =
        sandbox.json(["log"])["versions"].as_array().unwrap().iter().map(|one| one["source"].clone()).collect();
    assert_eq!(names, ["better", "good"]);
}

#[test]
fn a_source_that_fails_leaves_the_store_to_those_that_are_starting_it() {
    let source = |name: &str, file: &str| format!("[[source]]\nname = \"{name}\"\nfile = \"{file}.json\"\n");
    // Between the first folder and the first version there is little time; a few tries make it likely to be met.
    let of_good = |at| source(&format!("good{at}"), &format!("good{at}"));
    let of_bad = |at| source(&format!("absent{at}"), "absent") + &source(&format!("someone{at}"), "good0");
    let config: String = (0..6).map(|at| of_bad(at) + &of_good(at)).collect();
    for _ in 0..20 {
        let sandbox = Sandbox::new();
        sandbox.write("driftline.toml", &config);
        for at in 0..6 {
            let one = observation_of(&format!("good{at}"), 0, json!(COMPLETE), &[thing("a", json!({}))]);
            sandbox.write(&format!("good{at}.json"), one.to_string());
        }
        let ran = sandbox.run(["observe", "all"]).exited(1);
        ran.says(&["error: 12 sources were not observed; the others were committed"]);
    }
    // Where all of them fail, nothing is left.
    let sandbox = Sandbox::new();
    sandbox.write("driftline.toml", (0..6).map(of_bad).collect::<String>());
    sandbox.run(["observe", "all"]).refused(&["nothing was observed"]);
    assert!(!sandbox.store().exists());
}

#[test]
fn sources_that_all_have_secrets_can_start_a_store_together() {
    let config: String = (0..6).map(|at| format!("[[source]]\nname = \"s{at}\"\nfile = \"s{at}.json\"\n")).collect();
    // The race is between making the key file and reading it; a few tries make it likely.
    for _ in 0..10 {
        let sandbox = Sandbox::new();
        sandbox.write("driftline.toml", &config);
        for at in 0..6 {
            let mut one = thing("a", json!({"password": "hunter2"}));
            one["sensitive"] = json!(["/password"]);
            let one = observation_of(&format!("s{at}"), 0, json!(COMPLETE), &[one]);
            sandbox.write(&format!("s{at}.json"), one.to_string());
        }
        sandbox.run(["observe", "all"]).succeeded();
    }
}

#[test]
fn each_kind_of_rule_excuses_what_it_says_and_says_so() {
    for (rule, before, after) in [
        ("kind = \"ignore\"\npath = \"/x\"", json!({"x": 1}), json!({"x": {"y": 2}})),
        ("kind = \"volatile\"\npath = \"/**/at\"", json!({"x": [{"at": 1}]}), json!({"x": [{"at": 2}]})),
        ("kind = \"unordered\"\npath = \"/x\"", json!({"x": [1, 2, 3]}), json!({"x": [3, 1, 2]})),
        ("kind = \"default\"\npath = \"/x\"\nvalue = 30", json!({}), json!({"x": 30})),
        ("kind = \"equivalent\"\npath = \"/x\"\nform = \"case\"", json!({"x": "Yes"}), json!({"x": "yES"})),
        ("kind = \"equivalent\"\npath = \"/x\"\nform = \"spelling\"", json!({"x": 30}), json!({"x": "30"})),
        ("kind = \"equivalent\"\npath = \"/x\"\nform = \"empty\"", json!({"x": null}), json!({"x": []})),
        (
            "kind = \"equivalent\"\npath = \"/x\"\nvalues = [\"on\", \"enabled\"]",
            json!({"x": "on"}),
            json!({"x": "enabled"}),
        ),
    ] {
        let sandbox = changed(before, after);
        assert_eq!(counts(&sandbox.drift([])), [1, 0, 0, 0], "{rule}: without it");
        sandbox.write("driftline.toml", format!("[[rule]]\n{rule}\ntype = \"Thing\"\nreason = \"because\"\n"));
        let report = sandbox.drift(["--all"]);
        assert_eq!(counts(&report), [0, 0, 0, 1], "{rule}");
        let excused = &resource(&report, "a")["excused"][0];
        let kind = rule.split('"').nth(1).unwrap();
        let expected = [json!(kind), json!("user: driftline.toml [[rule]] 1"), json!("because")];
        assert_eq!(["rule", "origin", "reason"].map(|name| excused[name].clone()), expected, "{rule}");
        assert_eq!(report["rules"]["unused"], json!([]), "{rule}");
        // The excuse lives at compare time only: what is stored is what was seen.
        std::fs::remove_file(sandbox.path("driftline.toml")).unwrap();
        assert_eq!(counts(&sandbox.drift([])), [1, 0, 0, 0], "{rule}: without it again");
    }
}

#[test]
fn a_rule_speaks_only_of_what_it_names() {
    let sandbox = changed(json!({"x": 1, "y": 1}), json!({"x": 2, "y": 2}));
    for (subject, drifted) in [
        ("type = \"Th*\"", 0),
        ("type = \"Other\"", 1),
        ("place = \"here\"", 0),
        ("place = \"h\"", 1),
        ("id = \"a\"", 0),
        ("id = \"b*\"", 1),
        ("source = \"test\"", 0),
        ("source = \"te\"", 1),
    ] {
        sandbox.write("driftline.toml", format!("[[ignore]]\n{subject}\nreason = \"because\"\n"));
        assert_eq!(counts(&sandbox.drift([]))[0], drifted, "{subject}");
    }
    sandbox.write("driftline.toml", "[[ignore]]\npath = \"/x\"\nreason = \"because\"\n");
    let report = sandbox.drift([]);
    assert_eq!(resource(&report, "a")["changes"].as_array().unwrap().len(), 1);
    assert_eq!(resource(&report, "a")["excused"][0]["path"], "/x");
}

#[test]
fn an_entry_that_has_expired_excuses_nothing_and_is_reported() {
    let sandbox = changed(json!({"x": 1, "y": 1}), json!({"x": 2, "y": 2}));
    let entry = |path: &str, year: u32| {
        format!("[[ignore]]\npath = \"{path}\"\nreason = \"r\"\nowner = \"sre\"\nexpires = {year}-12-31\n")
    };
    sandbox.write("driftline.toml", entry("/x", 2020) + &entry("/y", 2999));
    let ran = sandbox.run(["drift", "-o", "json"]).exited(2);
    let report = ran.json();
    ran.says(&["warning: driftline.toml [[ignore]] 1 has expired", "owner sre"]);
    let changes = resource(&report, "a")["changes"].as_array().unwrap().clone();
    assert_eq!((changes.len(), &changes[0]["path"]), (1, &json!("/x")));
    assert_eq!(report["rules"]["expired"], json!(["driftline.toml [[ignore]] 1"]));
    sandbox.run(["doctor"]).succeeded().prints(&["[[ignore]] 1 has expired"]);
    assert_eq!(sandbox.run(["drift", "-q"]).exited(2).err, "");
    sandbox.write("driftline.toml", "[[ignore]]\npath = \"/x\"\nreason = \"r\"\nexpires = \"soon\"\n");
    sandbox.run(["drift"]).refused(&["expires"]);
}

#[test]
fn an_entry_that_excuses_nothing_is_reported() {
    let sandbox = changed(json!({"x": 1}), json!({"x": 2}));
    let config = "stale_after = \"36500d\"\n\
                  [[ignore]]\npath = \"/x\"\nreason = \"r\"\n[[ignore]]\npath = \"/nothing\"\nreason = \"r\"\n\
                  [[rule]]\nkind = \"volatile\"\npath = \"/never\"\nreason = \"r\"\n";
    sandbox.write("driftline.toml", config);
    let ran = sandbox.run(["drift", "-o", "json"]).exited(0);
    assert_eq!(ran.json()["rules"]["unused"], json!(["driftline.toml [[rule]] 1", "driftline.toml [[ignore]] 2"]));
    let ran = ran.says(&["driftline.toml [[rule]] 1, driftline.toml [[ignore]] 2 excused nothing"]);
    assert!(!ran.err.contains("[[ignore]] 1 "), "{}", ran.err);
    // Of a part of the question it cannot be said.
    let part = sandbox.run(["drift", "--source", "test", "-o", "json"]).exited(0);
    assert_eq!((part.json()["rules"]["unused"].clone(), part.err.as_str()), (json!([]), ""));
}

#[test]
fn a_rule_that_puts_a_list_in_order_is_used_even_if_something_else_changed() {
    let sandbox = changed(json!({"x": [1, 2, 3]}), json!({"x": [3, 2, 4]}));
    let rule = "[[rule]]\nkind = \"unordered\"\npath = \"/x\"\nreason = \"r\"\n";
    sandbox.write("driftline.toml", rule);
    let report = sandbox.drift([]);
    assert_eq!(resource(&report, "a")["changes"].as_array().unwrap().len(), 1);
    assert_eq!(report["rules"]["unused"], json!([]));
}

#[test]
fn what_cannot_work_is_refused_when_the_file_is_read() {
    let sandbox = changed(json!({"x": 1}), json!({"x": 2}));
    for (text, words) in [
        ("[[ignore]]\nreason = \"r\"\n", &["[[ignore]] 1", "matches everything"][..]),
        ("[[ignore]]\ntype = \"*\"\nplace = \"**\"\npath = \"/**\"\nreason = \"r\"\n", &["matches everything"]),
        ("[[rule]]\nkind = \"ignore\"\npath = \"\"\nreason = \"r\"\n", &["[[rule]] 1", "matches everything"]),
        ("[[rule]]\nkind = \"volatile\"\npath = \"/**\"\nid = \"*\"\nreason = \"r\"\n", &["matches everything"]),
        ("[[ignore]]\npath = \"/x\"\n", &["no `reason`"]),
        ("[[ignore]]\npath = \"x\"\nreason = \"r\"\n", &["not a JSON pointer"]),
        ("[[source]]\nname = \"latest\"\nfile = \"x\"\n", &["`latest` is reserved", "[[source]] 1"]),
        ("[[source]]\nname = \"prod/all\"\nfile = \"x\"\n", &["`all` is reserved"]),
        ("[[source]]\nname = \"Prod\"\nfile = \"x\"\n", &["`P` is not allowed"]),
        ("[[source]]\nname = \"a\"\n", &["either `file`, or `command`, or `model`"]),
        ("[[source]]\nname = \"a\"\nfile = \"x\"\ncommand = [\"y\"]\n", &["either `file`, or `command`, or `model`"]),
        ("baseline = \"live\"\n", &["`live` is reserved"]),
        ("colour = true\n", &["unknown field `colour`", "line 1"]),
        ("[retention]\nforever = true\n", &["unknown field `forever`"]),
        ("[[rule]]\nkind = \"ignor\"\npath = \"/x\"\nreason = \"r\"\n", &["`ignor` is not a kind of rule", "hint: "]),
        ("[[rule]]\nkind = \"default\"\npath = \"/x\"\nreason = \"r\"\n", &["needs `value`"]),
        ("stale_after = \"soon\"\n", &["`stale_after`"]),
        ("= broken", &["driftline.toml", "line 1"]),
    ] {
        sandbox.write("driftline.toml", text);
        for command in ["drift", "log", "verify"] {
            sandbox.run([command]).refused(words).says(&["driftline.toml"]);
        }
    }
    let deep =
        format!("[[rule]]\nkind = \"default\"\npath = \"/x\"\nreason = \"r\"\nvalue = {}", "[".repeat(1_000_000));
    sandbox.write("driftline.toml", deep);
    sandbox.run(["drift"]).refused(&["driftline.toml"]);
    std::fs::remove_file(sandbox.path("driftline.toml")).unwrap();
    sandbox.run(["drift", "--config", "missing.toml"]).refused(&["`missing.toml`"]);
}

fn setting(view: &Json, name: &str) -> (String, String) {
    let found = view["settings"].as_array().unwrap().iter().find(|one| one["name"] == name).unwrap();
    (found["value"].as_str().unwrap().to_owned(), found["from"].as_str().unwrap().to_owned())
}

fn owned(value: &str, from: &str) -> (String, String) {
    (value.to_owned(), from.to_owned())
}

#[test]
fn config_view_tells_where_each_value_came_from() {
    let sandbox = Sandbox::new();
    let view = |variables: &[(&str, &str)], more: &[&str]| -> Json {
        sandbox.run_with(variables, ["config", "view", "-o", "json"].iter().chain(more)).succeeded().json()
    };
    assert_eq!(setting(&view(&[], &[]), "store"), owned(".driftline", "default"));
    assert_eq!(setting(&view(&[], &[]), "baseline"), owned("main", "default"));
    sandbox.write(
        "driftline.toml",
        "store = \"from-file\"\nbaseline = \"filed\"\nstale_after = \"2d\"\n[retention]\nkeep = \"7d\"\nkeep_last = 3\n\
         [[source]]\nname = \"s\"\nfile = \"x.json\"\n[[ignore]]\npath = \"/x\"\nreason = \"because\"\n\
         [[seal]]\ntype = \"Thing\"\npath = \"/password\"\n",
    );
    let filed = view(&[], &[]);
    for (name, value) in [
        ("store", "from-file"),
        ("baseline", "filed"),
        ("stale_after", "2d"),
        ("retention.keep", "7d"),
        ("retention.keep_last", "3"),
    ] {
        assert_eq!(setting(&filed, name), owned(value, "driftline.toml"));
    }
    assert_eq!(setting(&filed, "retention.grace"), owned("1d", "default"));
    let text = filed.to_string();
    assert!(
        text.contains("s from the file x.json") && text.contains("because") && text.contains("/password"),
        "{text}"
    );
    let from_environment = view(&[("DRIFTLINE_STORE", "from-env"), ("DRIFTLINE_BASELINE", "other")], &[]);
    assert_eq!(setting(&from_environment, "store"), owned("from-env", "DRIFTLINE_STORE"));
    assert_eq!(setting(&from_environment, "baseline"), owned("other", "DRIFTLINE_BASELINE"));
    let flagged = view(&[("DRIFTLINE_STORE", "from-env")], &["--store", "from-flag"]);
    assert_eq!(setting(&flagged, "store"), owned("from-flag", "--store"));
    sandbox.run(["config", "view"]).succeeded().prints(&["setting", "store", "from-file", "builtin"]);
}

#[test]
fn config_view_tells_of_retention_from_the_environment() {
    let sandbox = Sandbox::new();
    let variables = [("DRIFTLINE_KEEP", "5d"), ("DRIFTLINE_KEEP_LAST", "4"), ("DRIFTLINE_GRACE", "30m")];
    let view = sandbox.run_with(&variables, ["config", "view", "-o", "json"]).succeeded().json();
    assert_eq!(setting(&view, "retention.keep"), owned("5d", "DRIFTLINE_KEEP"));
    assert_eq!(setting(&view, "retention.keep_last"), owned("4", "DRIFTLINE_KEEP_LAST"));
    assert_eq!(setting(&view, "retention.grace"), owned("30m", "DRIFTLINE_GRACE"));
}

#[test]
fn a_source_that_nobody_has_looked_at_for_long_is_said_to_be_stale() {
    let sandbox = changed(json!({"x": 1}), json!({"x": 2}));
    sandbox.run(["drift"]).exited(2).says(&["the source `test` is stale: it was last observed"]);
    let past = sandbox.run(["drift", "--at", "2026-01-02"]).exited(2);
    assert!(!past.err.contains("stale"), "of the past nothing is stale: {}", past.err);
    sandbox.write("driftline.toml", "stale_after = \"36500d\"");
    assert_eq!(sandbox.run(["drift"]).exited(2).err, "");
}

#[test]
fn a_variable_stands_for_a_flag() {
    let sandbox = changed(json!({"x": 1}), json!({"x": 2}));
    copy_folder(&sandbox.store(), &sandbox.path("elsewhere"));
    std::fs::remove_dir_all(sandbox.store()).unwrap();
    let store = ("DRIFTLINE_STORE", "elsewhere");
    sandbox.run_with(&[store], ["drift"]).exited(2);
    sandbox.run_with(&[store, ("DRIFTLINE_OUTPUT", "json")], ["drift"]).exited(2).json();
    sandbox.run_with(&[store, ("DRIFTLINE_EXIT_ZERO", "true")], ["drift"]).exited(0);
    sandbox.run_with(&[store, ("DRIFTLINE_FAIL_ON", "never")], ["drift"]).exited(0);
    sandbox.run_with(&[store, ("DRIFTLINE_BASELINE", "nobody")], ["drift"]).refused(&["`nobody`"]);
    sandbox.run_with(&[store, ("DRIFTLINE_BASELINE", "nobody")], ["drift", "--baseline", "main"]).exited(2);
    sandbox.write("other.toml", "[[ignore]]\npath = \"/x\"\nreason = \"r\"\n");
    sandbox.run_with(&[store, ("DRIFTLINE_CONFIG", "other.toml")], ["drift"]).exited(0);
    let empty = sandbox.write("empty.json", observation(2, &[]).to_string());
    let observe = ["observe", "file", empty.to_str().unwrap()];
    sandbox.run_with(&[store], observe).refused(&["is empty"]);
    sandbox.run_with(&[store, ("DRIFTLINE_ALLOW_EMPTY", "true")], observe).succeeded();
}

#[test]
fn a_switch_can_be_set_to_one_in_the_environment() {
    let sandbox = changed(json!({"x": 1}), json!({"x": 2}));
    sandbox.write("driftline.toml", "stale_after = \"36500d\"");
    for (name, code) in [("DRIFTLINE_EXIT_ZERO", 0), ("DRIFTLINE_QUIET", 2), ("DRIFTLINE_STRICT", 2)] {
        for value in ["1", "yes", "true"] {
            let ran = sandbox.run_with(&[(name, value)], ["drift"]);
            assert!(ran.code == code && ran.err.is_empty(), "{name}={value}: exit {}\n{}", ran.code, ran.err);
        }
        for value in ["0", "false", "no"] {
            let ran = sandbox.run_with(&[(name, value)], ["drift"]);
            assert!(ran.code == 2 && ran.err.is_empty(), "{name}={value}: exit {}\n{}", ran.code, ran.err);
        }
    }
}

#[test]
fn every_flag_has_its_variable() {
    let sandbox = Sandbox::new();
    let mut without = Vec::new();
    for command in [
        &["demo"][..],
        &["observe", "file"],
        &["baseline", "set"],
        &["baseline", "accept"],
        &["drift"],
        &["diff"],
        &["explain"],
        &["velocity"],
        &["history"],
        &["log"],
        &["gc"],
    ] {
        let help = sandbox.run(command.iter().copied().chain(["--help"])).succeeded().out;
        let options = help.split("Options:").nth(1).unwrap();
        // Each flag with all that is said of it, in one line.
        let mut flags: Vec<String> = Vec::new();
        for line in options.lines().map(str::trim) {
            match flags.last_mut() {
                Some(last) if !line.starts_with('-') || line.starts_with("- ") => *last += &format!(" {line}"),
                _ => flags.push(line.to_owned()),
            }
        }
        assert!(flags.len() > 5, "{help}");
        let name =
            |flag: &String| flag.split("--").nth(1).unwrap_or_default().split([' ', '=']).next().unwrap().to_owned();
        let missing = flags.iter().filter(|flag| !flag.contains("[env: DRIFTLINE_")).map(name);
        let missing = missing.filter(|name| !["", "help", "version"].contains(&name.as_str()));
        without.extend(missing.map(|name| format!("{} --{name}", command.join(" "))));
    }
    assert_eq!(without, Vec::<String>::new(), "these flags have no DRIFTLINE_ variable");
}

#[test]
fn a_configured_secret_is_sealed() {
    let sandbox = Sandbox::new();
    sandbox.write("driftline.toml", "[[seal]]\ntype = \"Thing\"\npath = \"/**/password\"\n");
    let secret = |text: &str| thing("a", json!({"deep": [{"password": text}], "n": 1}));
    sandbox.observe_things(0, &[secret("hunter2")]);
    sandbox.run(["baseline", "set"]).succeeded();
    sandbox.observe_things(1, &[secret("hunter2")]);
    assert_eq!(counts(&sandbox.drift([])), [0, 0, 0, 1], "the same secret has the same digest");
    sandbox.observe_things(2, &[secret("hunter3")]);
    let report = sandbox.drift([]);
    assert_eq!(resource(&report, "a")["changes"][0]["path"], "/deep/0/password");
    assert!(!report.to_string().contains("hunter"), "{report}");
    sandbox.run(["drift"]).exited(2).prints(&["/deep/0/password: a sealed value changed"]);
}

#[test]
fn the_key_lies_beside_the_store_and_never_in_it() {
    for store in ["kept", "kept/", "deep/er/kept", "."] {
        let sandbox = Sandbox::new();
        let folder = sandbox.path("work");
        std::fs::create_dir(&folder).unwrap();
        let mut one = thing("a", json!({"password": "hunter2"}));
        one["sensitive"] = json!(["/password"]);
        let file = sandbox.write("o.json", observation(0, &[one]).to_string());
        let mut command = sandbox.command(["--store", store, "observe", "file", file.to_str().unwrap()]);
        crate::support::ran(&command.current_dir(&folder).output().unwrap()).succeeded();
        let inside = crate::support::files(&folder.join(store));
        assert!(!inside.keys().any(|name| name.contains(".key")), "--store {store}: {:?}", inside.keys());
    }
}

#[test]
fn a_store_whose_key_is_lost_is_not_sealed_with_another() {
    let sandbox = Sandbox::new();
    let secret = |at: u32| {
        let mut one = thing("a", json!({"password": "hunter2"}));
        one["sensitive"] = json!(["/password"]);
        observation(at, &[one])
    };
    sandbox.observe(&secret(0)).succeeded();
    let key = std::fs::read(sandbox.path(".driftline.key")).unwrap();
    std::fs::remove_file(sandbox.path(".driftline.key")).unwrap();
    let before = crate::support::essence(&sandbox.store());
    sandbox.observe(&secret(1)).refused(&["sealed with the key", "hint: "]);
    sandbox.run(["doctor"]).exited(1).prints(&["bad     seal key"]);
    let other = "11".repeat(32);
    let file = sandbox.path("observation.json");
    let observe = ["observe", "file", file.to_str().unwrap()];
    sandbox.run_with(&[("DRIFTLINE_SEAL_KEY", &other)], observe).refused(&["sealed with another key"]);
    sandbox.run_with(&[("DRIFTLINE_SEAL_KEY", "short")], observe).refused(&["64 hex digits"]);
    crate::support::assert_untouched(&sandbox.store(), &before);
    let key = String::from_utf8(key).unwrap();
    sandbox.run_with(&[("DRIFTLINE_SEAL_KEY", key.trim())], observe).succeeded().prints(&["0 changed"]);
}
