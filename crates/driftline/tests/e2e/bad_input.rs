//! What the program must refuse: each time exit 1, words on what and where, and the store as it was.

use std::io::Write as _;
use std::path::Path;
use std::process::Command;

use serde_json::{Value as Json, json};

use crate::support::{
    Ran, Sandbox, as_lines, assert_untouched, counts, essence, files, is_root, observation, observation_of, ran, skip,
    thing,
};

/// A store with two versions and a baseline.
fn stored() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.observe_things(0, &[thing("a", json!({"n": 1})), thing("b", json!({"n": 1}))]);
    sandbox.run(["baseline", "set"]).succeeded();
    sandbox.observe_things(10, &[thing("a", json!({"n": 2})), thing("b", json!({"n": 1}))]);
    sandbox
}

/// Feeds bytes to a store that has versions, from a file and through a pipe; it must be as it was.
#[track_caller]
fn refused_here(input: impl AsRef<[u8]>, words: &[&str]) -> Ran {
    let sandbox = stored();
    let before = essence(&sandbox.store());
    let file = sandbox.write("bad", &input);
    let ran = sandbox.run(["observe", "file", file.to_str().unwrap()]).refused(words).says(&[file.to_str().unwrap()]);
    assert_untouched(&sandbox.store(), &before);
    sandbox.feed(input.as_ref(), ["observe", "file", "-"]).refused(words).says(&["standard input"]);
    assert_untouched(&sandbox.store(), &before);
    ran
}

/// The same, and no store is begun with it either.
#[track_caller]
fn refused(input: impl AsRef<[u8]>, words: &[&str]) -> Ran {
    let fresh = Sandbox::new();
    fresh.feed(input.as_ref(), ["observe", "file", "-"]).refused(words);
    assert!(!fresh.store().exists(), "a store was begun: {:?}", files(&fresh.store()).keys());
    refused_here(input, words)
}

const HEADER: &str =
    r#"{"schema":"driftline.observation/v1","source":"test","takenAt":"2026-01-01T00:20:00Z","coverage":"complete""#;

fn lines(rest: &str) -> String {
    format!("{HEADER}}}\n{rest}")
}

fn object(resources: &str) -> String {
    format!("{HEADER},\n \"resources\": [\n{resources}\n]}}")
}

const GOOD: &str = r#"{"canonicalId":"x","resourceType":"Thing","place":"here","snapshot":{}}"#;

#[test]
fn malformed_json_is_named_with_line_and_column() {
    // In the form of one object.
    refused(object(&format!("{GOOD},\n{{\"canonicalId\": tru}}")), &["line 4, column 20"]);
    refused(object(&format!("{GOOD},\n{{\"canonicalId\":\"y\" \"resourceType\"}}")), &["line 4, column "]);
    refused(object(&format!("{GOOD},")), &["line ", "column "]);
    refused(&object(GOOD)[..180], &["line 3, column "]);
    refused(format!("{HEADER},\n\"resources\": 7}}"), &["line 2, column "]);
    refused(format!("{HEADER},\n\"resources\": {{}}}}"), &["line 2, column "]);
    refused(format!("{}\n{{}}", object(GOOD)), &["line 5", "column 1"]);
    refused(format!("{}\n\n x", object(GOOD).replace('\n', "")), &["line 3", "more after the end"]);
    // In the form of lines.
    refused(lines(&format!("{GOOD}\n{{\"canonicalId\":\"y\",}}\n")), &["line 3, column 20"]);
    refused(lines(&format!("{GOOD}\n\n   not json\n")), &["line 4, column "]);
    refused(lines(&GOOD[..30]), &["line 2, column "]);
    refused(lines(&format!("{GOOD}{GOOD}")), &["line 2, column "]);
    refused("{\"schema\": nonsense", &["line 1, column "]);
    refused("\n\n[1, 2]", &["line 3, column "]);
    refused("7", &["line 1, column 1"]);
    refused("<html><body>502 Bad Gateway</body></html>", &["line 1, column 1"]);
    refused("null", &["line 1, column "]);
}

#[test]
fn what_a_malformed_error_looks_like() {
    let ran = refused(lines(&format!("{GOOD}\n{{\"canonicalId\":\"y\",}}\n")), &[]);
    let file = ran.err.split('`').nth(1).unwrap().to_owned();
    insta::assert_snapshot!(ran.err.replace(&file, "[file]"), @"
    error: cannot observe `[file]`
      caused by: line 3, column 20: JSON has a comma after the last value in an array or object
    hint: nothing was committed
    ");
}

#[test]
fn an_error_message_never_quotes_the_input() {
    let secret = "hunter2";
    for text in [
        lines(&format!("{{\"canonicalId\":\"x\",\"snapshot\":{{\"password\":\"{secret}\" oops}}}}")),
        object(&format!("{{\"canonicalId\":\"x\",\"snapshot\":{{\"password\":\"{secret}\" oops}}}}")),
        lines(&format!("{{\"canonicalId\":\"x\",\"resourceType\":\"T\",\"snapshot\":\"{secret}\"}}")),
    ] {
        let ran = refused(&text, &["line "]);
        assert!(!ran.err.contains(secret), "{}", ran.err);
    }
}

#[test]
fn a_resource_that_lacks_something_is_named_with_its_line() {
    for (resource, words) in [
        (r#"{"resourceType":"T","snapshot":{}}"#, &["line 3", "`canonicalId`"][..]),
        (r#"{"canonicalId":"","resourceType":"T","snapshot":{}}"#, &["line 3", "`canonicalId`"]),
        (r#"{"canonicalId":"x","snapshot":{}}"#, &["line 3", "`resourceType`"]),
        (r#"{"canonicalId":"x","resourceType":"T"}"#, &["line 3", "`snapshot`"]),
        (r#"{"canonicalId":"x","resourceType":"T","snapshot":[1]}"#, &["line 3", "`snapshot`"]),
        (r#"{"canonicalId":"x","resourceType":"T","snapshot":null}"#, &["line 3", "`snapshot`"]),
        (r#"{"canonicalId":7,"resourceType":"T","snapshot":{}}"#, &["line 3"]),
        (r#"{"canonicalId":"x","resourceType":"T","snapshot":{},"extra":1}"#, &["line 3", "extra"]),
        (r#"{"canonicalId":"x","resourceType":"T","snapshot":{},"sensitive":["no pointer"]}"#, &["line 3", "pointer"]),
        (r#"["canonicalId"]"#, &["line 3"]),
        (r#"{"canonicalId":"x","resourceType":"T","snapshot":{"n":1e999}}"#, &["line 3"]),
        (r#"{"canonicalId":"x","resourceType":"T","snapshot":{"a":1,"a":2}}"#, &["line 3"]),
    ] {
        refused(lines(&format!("{GOOD}\n{resource}\n")), words);
        let words: Vec<&str> = words.iter().map(|word| if *word == "line 3" { "line 4" } else { word }).collect();
        refused(object(&format!("{GOOD},\n{resource}")), &words);
    }
}

#[test]
fn a_member_that_comes_twice_is_refused() {
    for twice in [
        r#"{"canonicalId":"x","canonicalId":"y","resourceType":"T","snapshot":{}}"#,
        r#"{"canonicalId":"y","resourceType":"T","snapshot":{"a":1},"snapshot":{"b":2}}"#,
        r#"{"canonicalId":"y","resourceType":"T","sensitive":["/p"],"sensitive":[],"snapshot":{"p":1}}"#,
    ] {
        refused(lines(&format!("{GOOD}\n{twice}\n")), &["line 3"]);
    }
    refused(lines(GOOD).replace("\"source\"", "\"source\":\"a\",\"source\""), &["line 1", "source"]);
}

#[test]
fn another_schema_version_is_refused_and_both_are_named() {
    for form in [object(GOOD), lines(GOOD)] {
        refused(
            form.replace("observation/v1", "observation/v2"),
            &["`driftline.observation/v2`", "`driftline.observation/v1`"],
        );
        refused(form.replace("driftline.observation/v1", ""), &["schema"]);
        refused(form.replace("\"schema\":\"driftline.observation/v1\",", ""), &["`schema`", "line "]);
        refused(form.replace("\"takenAt\"", "\"takenat\""), &["takenat", "line 1"]);
        refused(form.replace("2026-01-01T00:20:00Z", "yesterday"), &["line 1", "column"]);
        refused(form.replace("\"complete\"", "\"everything\""), &["`everything`", "line 1"]);
        let extent = r#"[{"type":"T","place":"p","outcome":"done"}]"#;
        refused(form.replace("\"complete\"", extent), &["`done`", "line 1"]);
    }
}

#[test]
fn a_key_that_comes_twice_is_refused_and_both_places_are_named() {
    let other = GOOD.replace("\"x\"", "\"y\"");
    let again = GOOD.replace("{}", "{\"n\":2}");
    refused(lines(&format!("{GOOD}\n{other}\n{again}\n")), &["`x`", "Thing", "here", "resource 1", "resource 3"]);
    refused(object(&format!("{GOOD},\n{other},\n{again}")), &["`x`", "Thing", "here", "resource 1", "resource 3"]);
    // Of something the store knows, and something it does not; unchanged, and changed.
    let known = GOOD.replace("\"x\"", "\"a\"");
    let known_as_is = known.replace("{}", "{\"n\":2}");
    refused(lines(&format!("{known_as_is}\n{other}\n{known_as_is}\n")), &["`a`", "resource 1", "resource 3"]);
    refused(lines(&format!("{known_as_is}\n{known}\n")), &["`a`", "resource 1", "resource 2"]);
    refused(lines(&format!("{known}\n{known_as_is}\n")), &["`a`", "resource 1", "resource 2"]);
    // The same id in another place or of another type is another thing.
    let sandbox = stored();
    let text = format!("{GOOD}\n{}\n{}\n", GOOD.replace("here", "there"), GOOD.replace("Thing", "Other"));
    sandbox.feed(lines(&text).as_bytes(), ["observe", "file", "-"]).succeeded();
}

#[test]
fn a_bad_line_among_many_known_ones_is_named() {
    let sandbox = Sandbox::new();
    let resource = |at: usize| GOOD.replace("\"x\"", &format!("\"x{at}\"")).replace("{}", &format!("{{\"n\":{at}}}"));
    // Enough that lines are known again by their bytes, and that they come in several pieces.
    let all: Vec<String> = (0..20_000).map(resource).collect();
    let feed = |lines_of: &[String]| sandbox.feed(lines(&lines_of.join("\n")).as_bytes(), ["observe", "file", "-"]);
    feed(&all).succeeded().prints(&["20000 resources"]);
    feed(&all).succeeded().prints(&["0 changed, 0 new, 0 gone"]);
    let before = essence(&sandbox.store());
    let with = |at: usize, line: &str| {
        let mut lines = all.clone();
        lines[at] = line.to_owned();
        lines
    };
    feed(&with(17_654, "{\"canonicalId\": oops}")).refused(&["line 17656, column "]);
    feed(&with(19_999, &all[3])).refused(&["`x3`", "resource 4", "resource 20000"]);
    feed(&with(3, &all[19_999])).refused(&["`x19999`", "resource 4", "resource 20000"]);
    feed(&with(9, &all[3].replace("3}", "7}"))).refused(&["`x3`", "resource 4", "resource 10"]);
    assert_untouched(&sandbox.store(), &before);
    feed(&with(9, &resource(9).replace("9}", "8}"))).succeeded().prints(&["1 changed, 0 new, 0 gone"]);
    feed(&all[1..]).succeeded().prints(&["1 changed, 0 new, 1 gone"]);
    sandbox.run(["verify"]).succeeded();
}

#[test]
fn an_empty_observation_that_calls_nothing_gone_is_welcome() {
    let sandbox = Sandbox::new();
    let other = json!({"type": "Other", "place": "here", "outcome": "complete"});
    let complete = json!([{"type": "Thing", "place": "here", "outcome": "complete"}, other]);
    let denied = json!([{"type": "Thing", "place": "here", "outcome": "partial", "reason": "access denied"}, other]);
    let seen = [thing("a", json!({})), thing("b", json!({}))];
    sandbox.observe(&observation_of("test", 0, complete.clone(), &seen)).succeeded();
    // Nothing of the other type was ever there, and things could not be listed: that is no empty account.
    sandbox.observe(&observation_of("test", 1, denied, &[])).succeeded().prints(&["0 gone", "2 not looked at"]);
    sandbox.observe(&observation_of("test", 2, complete, &[])).refused(&["is empty"]);
}

#[test]
fn an_empty_observation_after_a_full_one_needs_a_word() {
    for form in [lines(""), object("")] {
        refused_here(&form, &["`test` is empty", "version 2 has 2 resources", "--allow-empty"]);
    }
    let sandbox = stored();
    sandbox.feed(lines("").as_bytes(), ["observe", "file", "-", "--allow-empty"]).succeeded().prints(&["2 gone"]);
    assert_eq!(counts(&sandbox.drift([])), [2, 0, 0, 0]);
    sandbox.feed(lines("").as_bytes(), ["observe", "file", "-"]).succeeded();
    // One that could look nowhere is no broken observer, and deletes nothing.
    let sandbox = stored();
    let partial = json!([{"type": "*", "place": "*", "outcome": "partial", "reason": "access denied"}]);
    sandbox.observe(&observation_of("test", 20, partial, &[])).succeeded();
    assert_eq!(counts(&sandbox.drift([])), [0, 0, 2, 0]);
}

#[test]
fn nothing_at_all_is_no_observation() {
    refused("", &["empty"]);
    refused("\n  \n\n", &["empty"]);
    refused("{}", &["line 1", "schema"]);
}

#[test]
fn a_header_alone_and_no_word_on_coverage_delete_nothing() {
    let silent = lines("").replace(",\"coverage\":\"complete\"", "");
    let sandbox = stored();
    let before = sandbox.drift([])["summary"]["drifted"].clone();
    sandbox
        .feed(silent.as_bytes(), ["observe", "file", "-"])
        .succeeded()
        .says(&["warning: ", "does not say what it covers"]);
    assert_eq!((before, counts(&sandbox.drift([]))), (json!(1), [0, 0, 2, 0]));
}

#[test]
fn a_reserved_or_unusable_name_is_refused() {
    for name in
        ["latest", "all", "none", "live", "baseline", "prod/latest", "Prod", "", "a//b", "../../etc", "a b", "é", "-x"]
    {
        refused(lines(GOOD).replace("\"test\"", &json!(name).to_string()), &["cannot be used as a name of a source"]);
    }
    refused(lines(GOOD).replace("\"test\"", &json!("x".repeat(101)).to_string()), &["longer than 100"]);
    refused(lines(GOOD).replace("\"source\"", "\"scope\":\"All\",\"source\""), &["name of a scope"]);
}

#[test]
fn a_clock_that_went_backwards_is_refused() {
    let older = lines(GOOD).replace("00:20", "00:05");
    refused_here(
        &older,
        &["`test` was taken at 2026-01-01T00:05:00Z", "before version 2 (2026-01-01T00:10:00Z)", "--allow-older"],
    );
    let sandbox = stored();
    sandbox.feed(older.as_bytes(), ["observe", "file", "-", "--allow-older"]).succeeded().prints(&["test v3"]);
    let ran = sandbox.feed(lines(GOOD).replace("2026", "2099").as_bytes(), ["observe", "file", "-"]).succeeded();
    ran.says(&["warning: ", "in the future"]);
}

#[test]
fn broken_text_is_named_with_its_place() {
    let broken = |text: String| {
        text.replace("\"x\"", "\"?\"")
            .into_bytes()
            .iter()
            .map(|b| if *b == b'?' { 0xff } else { *b })
            .collect::<Vec<u8>>()
    };
    refused(broken(lines(GOOD)), &["line 2, column 17", "UTF-8"]);
    refused(broken(object(GOOD)), &["line 3, column 17", "UTF-8"]);
    refused(broken(lines(GOOD).replace("\"test\"", "\"x\"")), &["line 1, column ", "UTF-8"]);
    refused(lines(GOOD).replace("\"x\"", "\"\\ud800\""), &["line 2"]);
    refused(b"\x1f\x8b\x08\x00\x00\x00\x00\x00".as_slice(), &["line 1, column 2"]);
}

#[test]
fn a_program_that_fails_or_prints_something_else_commits_nothing() {
    let sandbox = stored();
    let good = sandbox.write("good.json", as_lines(&observation(20, &[thing("a", json!({}))])));
    let good = good.to_str().unwrap();
    let before = essence(&sandbox.store());
    let shell = |script: &str| sandbox.run(["observe", "command", "--", "sh", "-c", script]);
    shell(&format!("cat {good}; exit 3")).refused(&["the program failed (exit status: 3)", "nothing was committed"]);
    shell(&format!("cat {good}; kill -9 $$")).refused(&["the program failed (signal: 9"]);
    shell("echo not json").refused(&["line 1, column"]);
    shell("exit 0").refused(&["empty"]);
    shell("echo started; exit 7").refused(&["exit status: 7"]);
    shell(&format!("head -c 150 {good}")).refused(&["line "]);
    sandbox.run(["observe", "command", "--", "/no/such/program"]).refused(&["`/no/such/program` did not start"]);
    assert_untouched(&sandbox.store(), &before);
}

#[test]
fn a_program_that_prints_on_after_an_error_is_told_of_the_error() {
    let sandbox = stored();
    // `yes` is ended by the pipe that nobody reads any more; that is our doing and not what went wrong.
    let ran = sandbox.run(["observe", "command", "--", "sh", "-c", "echo '{garbage'; exec yes"]);
    ran.refused(&["line 1, column 2"]);
}

#[test]
fn files_that_are_none_are_named() {
    let sandbox = stored();
    sandbox.run(["observe", "file", "missing.json"]).refused(&["`missing.json`", "No such file"]);
    sandbox.run(["observe", "file", "."]).refused(&["`.`", "folder"]);
}

/// Very deep input, not kept in memory twice.
fn deep(before: &str, open: &str, count: usize) -> Vec<u8> {
    let mut text = before.as_bytes().to_vec();
    text.extend(open.as_bytes().iter().copied().cycle().take(open.len() * count));
    text
}

#[test]
fn a_hundred_megabytes_of_nested_arrays_are_refused() {
    let snapshot = lines(r#"{"canonicalId":"x","resourceType":"T","snapshot":{"a":"#);
    for (before, words) in [
        ("", &["line 1, column "][..]),
        (snapshot.as_str(), &["line 2, column "]),
        (&format!("{HEADER},\"resources\":"), &["line 1, column "]),
        (&object(r#"{"canonicalId":"x","resourceType":"T","snapshot":{"a":"#).replace("\n]}", ""), &["line "]),
    ] {
        let sandbox = stored();
        let stored = essence(&sandbox.store());
        let file = sandbox.write("deep", deep(before, "[", 100_000_000));
        let ran = sandbox.run(["observe", "file", file.to_str().unwrap()]).refused(words);
        assert!(ran.err.len() < 2_000, "the message is {} bytes long", ran.err.len());
        assert_untouched(&sandbox.store(), &stored);
    }
}

#[test]
fn deep_nesting_is_refused_wherever_a_value_can_stand() {
    let sandbox = stored();
    let before = essence(&sandbox.store());
    let resource = |rest: &str| lines(&format!("{{\"canonicalId\":\"x\",\"resourceType\":\"T\",{rest}"));
    for start in [
        "{\"schema\":".to_owned(),
        format!("{HEADER},\"problems\":"),
        format!("{HEADER},\"observer\":"),
        format!("{HEADER},\"nobody knows\":"),
        HEADER.replace("\"complete\"", ""),
        lines(""),
        lines("{\"canonicalId\":"),
        resource("\"account\":"),
        resource("\"sensitive\":"),
        resource("\"source\":"),
        resource("\"nobody knows\":"),
        resource("\"snapshot\":"),
        object("{\"canonicalId\":").replace("\n]}", ""),
        object("{\"canonicalId\":\"x\",\"nobody knows\":").replace("\n]}", ""),
    ] {
        for open in ["[", "{\"a\":"] {
            let bytes = deep(&start, open, 1_000_000);
            let ran = sandbox.feed(&bytes, ["observe", "file", "-"]);
            assert_eq!(ran.code, 1, "{open} after {start}: {}", ran.err);
            ran.refused(&["line "]);
            // Closed properly it is no better.
            let close = if open == "[" { "]" } else { "}" };
            let whole = [bytes, deep(if open == "[" { "" } else { "1" }, close, 1_000_000)].concat();
            assert_eq!(sandbox.feed(&whole, ["observe", "file", "-"]).code, 1, "{open} after {start}, closed");
        }
    }
    assert_untouched(&sandbox.store(), &before);
}

/// Puts other bytes into a file of the store.
fn replace(path: &Path, from: &str, to: &str) {
    let text = std::fs::read_to_string(path).unwrap();
    assert!(text.contains(from), "{text}");
    std::fs::write(path, text.replacen(from, to, 1)).unwrap();
}

fn last_record(store: &Path) -> String {
    let log: Vec<String> = files(store).into_keys().filter(|name| name.starts_with("_delta_log/")).collect();
    log.last().unwrap().clone()
}

#[test]
fn a_store_of_a_newer_format_is_neither_written_nor_read() {
    let sandbox = stored();
    replace(&sandbox.store().join(last_record(&sandbox.store())), "\"format\":1", "\"format\":4");
    let before = files(&sandbox.store());
    let words = ["format 4", "knows format 3", "hint: "];
    sandbox.observe(&observation(30, &[thing("a", json!({}))])).refused(&words);
    for command in [&["drift"][..], &["log"], &["verify"], &["baseline", "set"], &["gc"], &["demo"], &["explain", "a"]]
    {
        sandbox.run(command).refused(&words);
    }
    assert_eq!(files(&sandbox.store()), before);
}

#[test]
fn a_newer_format_is_noticed_behind_a_summary_of_the_log() {
    let sandbox = Sandbox::new();
    for at in 0..64 {
        sandbox.observe_things(at, &[thing("a", json!({"n": at}))]);
    }
    let summaries = files(&sandbox.store()).into_keys().filter(|name| name.starts_with("view/catalog/")).count();
    assert_eq!(summaries, 1, "the log is summed up after 64 records");
    replace(&sandbox.store().join(last_record(&sandbox.store())), "\"format\":1", "\"format\":4");
    let before = files(&sandbox.store());
    sandbox.observe(&observation(100, &[thing("a", json!({}))])).refused(&["format 4"]);
    assert_eq!(files(&sandbox.store()), before);
}

#[test]
fn a_place_that_is_no_store_is_left_alone() {
    let sandbox = Sandbox::new();
    let file = sandbox.write("good.json", observation(0, &[thing("a", json!({}))]).to_string());
    let observe = |store: &str| sandbox.run(["--store", store, "observe", "file", file.to_str().unwrap()]);
    sandbox.write("a-file", "not a store");
    observe("a-file").refused(&["`a-file` is not a store", "a file", "hint: "]);
    sandbox.run(["--store", "a-file", "drift"]).refused(&["`a-file` is not a store"]);
    sandbox.run(["--store", "a-file", "demo"]).refused(&["`a-file` is not a store"]);
    sandbox.write("photos/cat.jpg", "meow");
    observe("photos").refused(&["`photos` is not a store", "other things"]);
    sandbox.run(["--store", "photos", "demo"]).refused(&["`photos` is not a store"]);
    sandbox.run(["--store", "photos", "verify"]).refused(&["`photos` is not a store"]);
    assert_eq!(files(&sandbox.path("photos")).len(), 1);
    observe("a-file/beneath").refused(&["a-file/beneath"]);
    sandbox.run(["--store", "nowhere", "drift"]).refused(&["no store at `nowhere`", "hint: "]);
    assert!(!sandbox.path("nowhere").exists());
    observe("ftp://bucket/x").refused(&["`ftp://`", "s3://bucket/prefix"]);
    // A Delta table of someone else's is not ours either.
    sandbox.write("table/_delta_log/00000000000000000000.json", "{\"protocol\":{\"minReaderVersion\":1}}\n");
    let before = files(&sandbox.path("table"));
    observe("table").refused(&["00000000000000000000.json", "another program"]);
    assert_eq!(files(&sandbox.path("table")), before);
    std::fs::create_dir(sandbox.path("empty")).unwrap();
    observe("empty").succeeded();
}

/// A file system of its own for a test, gone with it.
struct Mounted<'s>(&'s Path);

impl<'s> Mounted<'s> {
    fn new(path: &'s Path, size: usize) -> Option<Self> {
        std::fs::create_dir_all(path).unwrap();
        let options = format!("size={size}");
        let mount = Command::new("mount").args(["-t", "tmpfs", "-o", &options, "driftline-e2e"]).arg(path).output();
        mount.is_ok_and(|output| output.status.success()).then_some(Self(path))
    }

    fn make_read_only(&self) {
        let status = Command::new("mount").args(["-o", "remount,ro"]).arg(self.0).status().unwrap();
        assert!(status.success());
    }
}

impl Drop for Mounted<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0).status();
    }
}

/// Two observations that need some room: many things, and the same with many changes.
fn roomy(sandbox: &Sandbox) -> [std::path::PathBuf; 2] {
    let noise = |at: u32, version: u32| format!("{:x}", u128::from(at * 7 + version).pow(5) * 0x9e37_79b9_7f4a_7c15);
    let things = |version: u32| -> Vec<Json> {
        (0..300).map(|at| thing(&format!("t{at}"), json!({"n": noise(at, version), "at": at}))).collect()
    };
    [0, 1].map(|version| {
        let text = observation(version, &things(version)).to_string();
        sandbox.write(&format!("v{version}.json"), text)
    })
}

#[test]
fn a_full_disk_leaves_the_store_as_it_was() {
    let sandbox = Sandbox::new();
    let [first, second] = roomy(&sandbox);
    let folder = sandbox.path("disk");
    let Some(probe) = Mounted::new(&folder, 1 << 20) else {
        skip("mounting a small file system is not permitted; the limit on file sizes is tested instead");
        return;
    };
    let store = folder.join("store");
    let observe =
        |file: &Path| sandbox.run(["--store", store.to_str().unwrap(), "observe", "file", file.to_str().unwrap()]);
    observe(&first).succeeded();
    let used = files(&folder).values().map(|bytes| bytes.len().div_ceil(4096) * 4096).sum::<usize>();
    drop(probe);
    let (mut refusals, mut commits) = (0, 0);
    // From a disk on which not even the first version fits to one on which both do, a page at a time.
    for pages in (used / 4096 - 2)..(used / 4096 + 24) {
        let mounted = Mounted::new(&folder, pages * 4096).unwrap();
        if observe(&first).code != 0 {
            continue;
        }
        let before = essence(&store);
        let ran = observe(&second);
        if ran.code == 0 {
            commits += 1;
        } else {
            refusals += 1;
            let ran = ran.refused(&["No space left on device"]);
            assert!(ran.err.contains("store"), "{}", ran.err);
            assert_untouched(&store, &before);
        }
        sandbox.run(["--store", store.to_str().unwrap(), "verify"]).succeeded();
        drop(mounted);
    }
    assert!(refusals > 2 && commits > 2, "{refusals} refusals, {commits} commits");
}

#[test]
fn a_limit_on_file_sizes_leaves_the_store_as_it_was() {
    let sandbox = Sandbox::new();
    let [first, second] = roomy(&sandbox);
    sandbox.run(["observe", "file", first.to_str().unwrap()]).succeeded();
    let before = essence(&sandbox.store());
    let mut refusals = 0;
    for blocks in [0, 1, 2, 4, 8, 16] {
        let script = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$0\" observe file {}", second.display());
        let mut shell = Command::new("bash");
        shell.args(["-c", &script, crate::support::PROGRAM]);
        sandbox.prepare(&mut shell);
        let ran = ran(&shell.output().unwrap());
        if ran.code == 0 {
            break;
        }
        refusals += 1;
        ran.refused(&["File too large"]);
        assert_untouched(&sandbox.store(), &before);
    }
    assert!(refusals > 0);
    sandbox.run(["verify"]).succeeded();
}

#[test]
fn a_read_only_place_can_be_read_and_not_written() {
    let sandbox = stored();
    let file = sandbox.write("next.json", observation(30, &[thing("a", json!({}))]).to_string());
    let folder = sandbox.path("disk");
    let store = folder.join("store");
    let at = |arguments: &[&str]| sandbox.run(["--store", store.to_str().unwrap()].iter().chain(arguments));
    let mounted = if is_root() {
        let Some(mounted) = Mounted::new(&folder, 1 << 20) else {
            skip("mounting is not permitted, and root may write everywhere");
            return;
        };
        crate::support::copy_folder(&sandbox.store(), &store);
        mounted.make_read_only();
        Some(mounted)
    } else {
        crate::support::copy_folder(&sandbox.store(), &store);
        Command::new("chmod").args(["-R", "a-w"]).arg(&folder).status().unwrap();
        None
    };
    let before = files(&store);
    at(&["observe", "file", file.to_str().unwrap()]).refused(&["store", "hint: "]);
    at(&["baseline", "set"]).refused(&["store"]);
    at(&["drift"]).exited(2);
    for command in [&["log"][..], &["verify"], &["history", "a"], &["velocity"], &["explain", "a"]] {
        at(command).succeeded();
    }
    at(&["doctor"]).succeeded().prints(&["notice  store: cannot be written to"]);
    assert_eq!(files(&store), before);
    drop(mounted);
    let _ = Command::new("chmod").args(["-R", "u+w"]).arg(&folder).status();
}

#[test]
fn a_store_that_fails_to_begin_can_begin_later() {
    let sandbox = Sandbox::new();
    let mut child = sandbox.command(["observe", "file", "-"]).stdin(std::process::Stdio::piped()).spawn().unwrap();
    let mut pipe = child.stdin.take().unwrap();
    pipe.write_all(HEADER.as_bytes()).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    sandbox.observe(&observation(0, &[thing("a", json!({}))])).succeeded();
    sandbox.run(["verify"]).succeeded();
}
