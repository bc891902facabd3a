//! `watch`: what is told, to whom, and that it is told once, whatever happens.

mod channels;
mod outbox;
pub(crate) mod receiver;
mod running;

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::{Value as Json, json};

use crate::support::{COMPLETE, Ran, Sandbox, observation_of, skip, thing, variable};
use receiver::Receiver;

/// A place with one source, a file, and one channel, a webhook.
pub(crate) struct Place {
    pub sandbox: Sandbox,
    pub receiver: Receiver,
    minute: std::cell::Cell<u32>,
}

impl Place {
    /// `more` is added to the configuration.
    pub(crate) fn new(more: &str) -> Self {
        let place = Self { sandbox: Sandbox::new(), receiver: Receiver::start(), minute: std::cell::Cell::new(0) };
        let channel = format!("[[notify]]\nkind = \"webhook\"\nurl = \"{}/hook\"\n", place.receiver.address);
        place.configure(&format!("{channel}{more}"));
        place
    }

    pub(crate) fn configure(&self, more: &str) {
        // Times in tests are long past; only a test about it wants to hear so.
        let text = format!("stale_after = \"5000d\"\n[[source]]\nname = \"test\"\nfile = \"now.json\"\n{more}");
        self.sandbox.write("driftline.toml", text);
    }

    /// What the source sees from now on.
    pub(crate) fn see(&self, things: &[Json]) {
        self.see_as(json!(COMPLETE), things);
    }

    pub(crate) fn see_as(&self, coverage: Json, things: &[Json]) {
        self.minute.set(self.minute.get() + 1);
        let observation = observation_of("test", self.minute.get(), coverage, things);
        self.sandbox.write("now.json", observation.to_string());
    }

    /// Three things, seen and expected; nobody was told anything yet.
    pub(crate) fn with_baseline(more: &str) -> Self {
        let place = Self::new(more);
        place.see(&sized(&[("a", 1), ("b", 1), ("c", 1)]));
        place.sandbox.run(["observe", "all"]).succeeded();
        place.sandbox.run(["baseline", "set"]).succeeded();
        place
    }

    /// The same, with a channel that knows how things stand.
    pub(crate) fn begun(more: &str) -> Self {
        let place = Self::with_baseline(more);
        place.once().succeeded();
        assert!(place.receiver.take().is_empty(), "there was nothing to tell");
        place
    }

    pub(crate) fn once(&self) -> Ran {
        self.sandbox.run(["watch", "--once"])
    }

    /// What one round tells.
    #[track_caller]
    pub(crate) fn told(&self) -> Vec<String> {
        self.once().succeeded();
        self.receiver.take().iter().map(receiver::Got::says).collect()
    }
}

/// Things with a size.
pub(crate) fn sized(sizes: &[(&str, u32)]) -> Vec<Json> {
    sizes.iter().map(|(id, size)| thing(id, json!({"size": size}))).collect()
}

/// The environment with others that the program talks to.
pub(crate) fn agents() -> Option<PathBuf> {
    let found = variable("DRIFTLINE_TEST_AGENTS").map(PathBuf::from);
    if found.is_none() {
        skip("DRIFTLINE_TEST_AGENTS is not set; scripts/test sets it");
    }
    found
}

pub(crate) fn script(name: &str) -> String {
    format!("{}/tests/agents/{name}", env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn only_what_changes_is_told_and_never_the_same_twice() {
    let place = Place::begun("");
    for (sizes, told) in [
        (&[("a", 1), ("b", 1), ("c", 1)][..], &[][..]),
        (&[("a", 2), ("b", 1), ("c", 1)], &["new a"]),
        (&[("a", 2), ("b", 1), ("c", 1)], &[]),
        (&[("a", 3), ("b", 1), ("c", 1)], &["changed a"]),
        (&[("a", 3), ("b", 1), ("d", 1)], &["new c", "new d"]),
        (&[("a", 1), ("b", 1), ("c", 1)], &["resolved a", "resolved c", "resolved d"]),
        (&[("a", 1), ("b", 1), ("c", 1)], &[]),
    ] {
        place.see(&sized(sizes));
        let mut found = place.told();
        found.sort();
        assert_eq!(found, told, "{sizes:?}");
    }
}

#[test]
fn what_was_not_checked_is_neither_resolved_nor_new() {
    let place = Place::begun("");
    // One is modified, one is gone, one is not expected.
    place.see(&sized(&[("a", 2), ("c", 1), ("d", 1)]));
    let mut first = place.told();
    first.sort();
    assert_eq!(first, ["new a", "new b", "new d"]);
    let partial = json!([{"type": "*", "place": "*", "outcome": "partial", "reason": "throttled"}]);
    place.see_as(partial, &sized(&[("c", 1)]));
    assert_eq!(place.told(), [""; 0], "nobody looked");
    let elsewhere = json!([{"type": "Other", "place": "*", "outcome": "complete"}]);
    place.see_as(elsewhere, &[crate::support::thing_at("Other", "here", "x", json!({}))]);
    let told = place.told();
    assert!(!told.iter().any(|line| line.starts_with("resolved")), "{told:?}");
    place.see(&sized(&[("a", 2), ("c", 1), ("d", 1)]));
    let told = place.told();
    assert!(told.iter().all(|line| !line.ends_with(['a', 'b', 'd'])), "they were told of before: {told:?}");
    place.see(&sized(&[("a", 1), ("b", 1), ("c", 1)]));
    let told = place.told();
    for line in ["resolved a", "resolved b", "resolved d"] {
        assert!(told.contains(&line.to_owned()), "{told:?}");
    }
}

#[test]
fn the_first_time_and_a_storm_are_one_bounded_message() {
    let place = Place::with_baseline("");
    let many: Vec<Json> = (0..10_000).map(|at| thing(&format!("t{at:05}"), json!({"size": at}))).collect();
    place.see(&many);
    place.once().succeeded();
    let got = place.receiver.take();
    assert_eq!(got.iter().map(receiver::Got::says).collect::<Vec<_>>(), ["digest"]);
    let event = got[0].json();
    assert_eq!((&event["subject"], &event["cause"]), (&Json::Null, &json!("first")));
    assert_eq!(event["counts"]["new"], 10_003);
    assert_eq!((event["findings"].as_array().unwrap().len(), &event["more"]), (20, &json!(9_983)));
    assert!(got[0].body.len() < 30_000, "{}", got[0].body.len());
    assert_eq!(place.told(), [""; 0], "everything was told of");
    place.see(&many[..5_000]);
    place.once().succeeded();
    let event = place.receiver.take()[0].json();
    assert_eq!((&event["cause"], &event["counts"]["resolved"]), (&json!("storm"), &json!(5_000)));
}

#[test]
fn accepting_and_setting_the_baseline_anew_resolve_and_say_so() {
    let place = Place::begun("");
    place.see(&sized(&[("a", 2), ("b", 2), ("c", 1)]));
    place.once().succeeded();
    place.receiver.take();
    place.sandbox.run(["baseline", "accept", "a", "--reason", "wanted"]).succeeded();
    place.once().succeeded();
    let because = |place: &Place| {
        let got = place.receiver.take();
        got.iter().map(|one| (one.says(), one.json()["because"].clone())).collect::<Vec<_>>()
    };
    assert_eq!(because(&place), [("resolved a".to_owned(), json!("accepted"))]);
    place.sandbox.run(["baseline", "set"]).succeeded();
    place.once().succeeded();
    assert_eq!(because(&place), [("resolved b".to_owned(), json!("baseline"))]);
}

#[test]
fn a_channel_hears_what_it_asked_for() {
    let all = Receiver::start();
    let more = format!(
        "min_severity = \"high\"\n[[notify]]\nname = \"some\"\nkind = \"webhook\"\nurl = \"{}/x\"\nwhere = 'id != \"b\"'\nsources = [\"t*\"]\n",
        all.address
    );
    let place = Place::begun(&more);
    // Something that is gone is high, something that changed is not.
    place.see(&sized(&[("a", 2), ("b", 2)]));
    assert_eq!(place.told(), ["new c"]);
    let mut some: Vec<String> = all.take().iter().map(receiver::Got::says).collect();
    some.sort();
    assert_eq!(some, ["new a", "new c"]);
}

#[test]
fn a_source_that_fails_is_told_once_and_keeps_nobody_from_telling() {
    let place = Place::begun("");
    let text = std::fs::read_to_string(place.sandbox.path("driftline.toml")).unwrap();
    let other = "[[source]]\nname = \"other\"\ncommand = [\"./other\", \"--password\", \"hunter2\"]\n";
    place.sandbox.write("driftline.toml", format!("{text}{other}"));
    let script = |text: &str| {
        let path = place.sandbox.write("other", text);
        std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    };
    let fails = "#!/bin/sh\necho oh no >&2\nexit 3\n";
    script(fails);
    place.see(&sized(&[("a", 2), ("b", 1), ("c", 1)]));
    let ran = place.once().exited(1);
    assert!(!ran.err.contains("hunter2"), "{}", ran.err);
    let got = place.receiver.take();
    let mut told: Vec<String> = got.iter().map(receiver::Got::says).collect();
    told.sort();
    assert_eq!(told, ["new a", "new source other"]);
    let failure = got.iter().find(|one| one.says() == "new source other").unwrap();
    let reason = failure.json()["subject"]["reason"].clone();
    assert!(reason.as_str().unwrap().contains("exit status: 3"), "{reason}");
    assert!(!failure.body.contains("hunter2"), "{}", failure.body);
    place.once().exited(1);
    assert!(place.receiver.take().is_empty(), "it was told of");
    let works = observation_of("other", 1, json!(COMPLETE), &[]);
    script(&format!("#!/bin/sh\nprintf '%s' '{works}'\n"));
    assert_eq!(place.told(), ["resolved source other"]);
}

#[test]
fn a_stale_source_is_told_once() {
    let place = Place::begun("");
    let text = std::fs::read_to_string(place.sandbox.path("driftline.toml")).unwrap();
    place.sandbox.write("driftline.toml", text.replace("5000d", "1h"));
    assert_eq!(place.told(), ["new source test"]);
    assert_eq!(place.told(), [""; 0]);
}

#[test]
fn without_a_baseline_nothing_is_compared_and_that_is_an_error() {
    let place = Place::new("");
    place.see(&sized(&[("a", 1)]));
    place.once().exited(1).says(&["nothing could be compared", "main"]);
    assert!(place.receiver.take().is_empty());
}

#[test]
fn a_maintenance_window_holds_what_would_be_told_and_ends_in_one_message() {
    let quiet = "[[watch.quiet]]\nfrom = \"00:00\"\nto = \"00:00\"\n";
    let place = Place::begun("");
    let text = std::fs::read_to_string(place.sandbox.path("driftline.toml")).unwrap();
    place.sandbox.write("driftline.toml", format!("{text}{quiet}"));
    place.see(&sized(&[("a", 2), ("b", 2), ("c", 1)]));
    assert_eq!(place.told(), [""; 0]);
    place.see(&sized(&[("a", 3), ("b", 1), ("c", 2)]));
    assert_eq!(place.told(), [""; 0]);
    place.sandbox.run(["watch", "--status"]).succeeded().prints(&["held until a maintenance window ends"]);
    place.sandbox.write("driftline.toml", text);
    place.once().succeeded();
    let got = place.receiver.take();
    assert_eq!(got.len(), 1);
    let event = got[0].json();
    assert_eq!((&event["cause"], &event["counts"]["new"]), (&json!("quiet"), &json!(2)));
}

#[test]
fn no_property_and_no_secret_is_in_a_log_line_and_a_sealed_value_is_in_no_message() {
    let place = Place::with_baseline("secret_env = \"HOOK_SECRET\"\n");
    let secret = |value: &str| {
        json!({"canonicalId": "f", "resourceType": "AWS::Lambda::Function", "place": "here",
            "snapshot": {"environment": {"variables": {"KEY": value}}, "note": format!("note-{value}")}})
    };
    place.see(&[secret("tops3cret-one")]);
    let run = |arguments: &[&str]| {
        place.sandbox.run_with(&[("HOOK_SECRET", "a secret of 16 bytes at least")], arguments.iter().copied())
    };
    let first = run(&["watch", "--once", "--log", "json"]).succeeded();
    for line in first.err.lines() {
        let line: BTreeMap<String, Json> = serde_json::from_str(line).unwrap();
        assert!(line.contains_key("time") && line.contains_key("event"), "{line:?}");
    }
    run(&["baseline", "set"]).succeeded();
    place.see(&[secret("tops3cret-two")]);
    place.receiver.take();
    let second = run(&["watch", "--once"]).succeeded();
    let got = place.receiver.take();
    let told = got.iter().find(|one| one.says() == "changed f").unwrap();
    assert!(told.body.contains("(sealed)") && told.body.contains("note-tops3cret-two"), "{}", told.body);
    assert!(!told.body.contains("\"tops3cret") && !told.body.contains("$sealed"), "{}", told.body);
    for text in [&first.err, &second.err] {
        assert!(!text.contains("tops3cret") && !text.contains("16 bytes"), "{text}");
    }
    let kept = std::fs::read_to_string(place.sandbox.path(".driftline.watch/journal")).unwrap();
    assert!(!kept.contains("16 bytes at least"), "the secret of the channel is kept nowhere");
    // Whoever has the secret can check the signature, with a library of somebody else's.
    if let Some(python) = agents() {
        let mut command = std::process::Command::new(python.join("bin/python"));
        command.args([script("webhook.py"), format!("whsec_{}", encoded("a secret of 16 bytes at least"))]);
        let mut child = command
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let given = json!({"headers": told.headers, "body": told.body}).to_string();
        std::io::Write::write_all(&mut child.stdin.take().unwrap(), given.as_bytes()).unwrap();
        crate::support::ran(&child.wait_with_output().unwrap()).succeeded().prints(&["good"]);
    }
}

fn encoded(text: &str) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(text)
}

#[test]
fn a_channel_can_be_tried_out() {
    let place = Place::new("[[notify]]\nname = \"gone\"\nkind = \"webhook\"\nurl = \"http://127.0.0.1:9/x\"\n");
    let ran = place.sandbox.run(["watch", "--test-notification"]).exited(1);
    ran.prints(&["webhook (webhook): delivered", "gone (webhook): "]).says(&["1 channel could not be told"]);
    assert_eq!(place.receiver.take()[0].says(), "test");
    let unset = Place::new("secret_env = \"NOT_SET\"\n");
    unset.once().refused(&["the channel `webhook`", "`NOT_SET` is not set"]);
}
