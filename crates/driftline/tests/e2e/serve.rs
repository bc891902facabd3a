//! `serve`: the real program on a port of its own, asked as a browser and as a program would ask it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use serde_json::{Value as Json, json};

use crate::support::{Sandbox, observation_of, skip, thing, thing_at, variable};

const READ: &str = "token-for-reading-1234";
const WRITE: &str = "token-for-writing-1234";

/// A server that ends with its test.
struct Served {
    child: Child,
    address: String,
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[derive(Debug)]
struct Answer {
    status: u16,
    head: String,
    body: String,
}

impl Answer {
    fn json(&self) -> Json {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    fn header(&self, name: &str) -> &str {
        let found = self.head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
        found.unwrap_or_default().trim()
    }
}

impl Served {
    fn start(sandbox: &Sandbox, more: &[&str]) -> Self {
        let mut command = sandbox.command(["serve", "--listen", "127.0.0.1:0"]);
        let mut child = command.args(more).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let line = lines.next().unwrap().unwrap();
        std::thread::spawn(move || lines.for_each(drop));
        let address = line.split("http://").nth(1).unwrap_or_else(|| panic!("no address in {line}"));
        Self { child, address: address.trim_end_matches('/').to_owned() }
    }

    fn connect(&self, request: &str) -> TcpStream {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        stream
    }

    fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        let mut request = format!("{method} {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n", self.address);
        for (name, value) in headers {
            request += &format!("{name}: {value}\r\n");
        }
        request += &format!("Content-Length: {}\r\n\r\n{body}", body.len());
        let mut said = Vec::new();
        self.connect(&request).read_to_end(&mut said).unwrap();
        let said = String::from_utf8_lossy(&said).into_owned();
        let (head, body) = said.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer to {path}: {said}"));
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Answer { status, head: head.to_owned(), body: body.to_owned() }
    }

    fn get(&self, path: &str) -> Answer {
        self.ask("GET", path, &[], "")
    }

    fn accept(&self, headers: &[(&str, &str)], acceptance: Json) -> Answer {
        let headers = [&[("Content-Type", "application/json")], headers].concat();
        self.ask("POST", "/api/v1/accept", &headers, &acceptance.to_string())
    }

    fn drift(&self) -> Json {
        self.get("/api/v1/drift").json()
    }
}

/// Three things, of which one changes, one goes and one comes; another source has no baseline.
fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    let things = [thing("one", json!({"size": 1})), thing("two", json!({})), thing("three", json!({}))];
    sandbox.observe_things(1, &things);
    sandbox.run(["baseline", "set"]).succeeded();
    let things = [thing("one", json!({"size": 2})), thing("two", json!({})), thing("four", json!({}))];
    sandbox.observe_things(2, &things);
    sandbox.observe(&observation_of("other", 2, json!("complete"), &[thing("five", json!({}))])).succeeded();
    sandbox
}

const PAGES: [&str; 7] =
    ["/", "/drift", "/resource?id=one", "/topology", "/posture", "/versions", "/compare?from=v1&to=now"];

#[test]
fn every_route_answers() {
    let sandbox = Sandbox::with_demo();
    let served = Served::start(&sandbox, &[]);
    let findings = served.drift();
    let id = findings["findings"][0]["id"].as_str().unwrap();
    for page in ["/", "/drift", &format!("/resource?finding={id}"), "/topology", "/posture", "/versions", "/rules"] {
        let answer = served.get(page);
        assert_eq!(answer.status, 200, "{page}: {}", answer.body);
        assert!(answer.body.starts_with("<!DOCTYPE html>") || answer.body.starts_with("<!doctype html>"), "{page}");
        // All of it, with what it loads, is small.
        assert!(answer.body.len() < 80_000, "{page} has {} bytes", answer.body.len());
        let json = if page == "/" { "/api/v1/overview".to_owned() } else { format!("/api/v1{page}") };
        assert_eq!(served.get(&json).status, 200, "{json}");
    }
    assert_eq!(served.get("/compare?from=baseline:main&to=now").status, 200);
    assert_eq!(served.get("/api/v1/compare?from=v1&to=v2").status, 200);
    for page in ["/compare?from=v1", "/compare?from=soon&to=now", "/topology?from=baseline:none", "/drift?limit=0"] {
        assert_eq!(served.get(page).status, 400, "{page}");
    }
    assert_eq!(served.get("/resource?id=nobody").status, 404);
    assert!(served.get("/metrics").body.contains("driftline_findings{severity=\"high\"}"));
    assert_eq!(served.get("/healthz").status, 200);
    assert_eq!(served.get("/readyz").status, 200);
}

#[test]
fn the_page_says_what_the_command_says() {
    let sandbox = Sandbox::with_demo();
    let served = Served::start(&sandbox, &[]);
    let (page, command) = (served.get("/api/v1/overview").json(), sandbox.drift([]));
    for name in ["total", "inSync", "drifted", "unknown", "notChecked", "excused", "resolved"] {
        assert_eq!(page["summary"][name], command["summary"][name], "{name}");
    }
    for name in ["critical", "high", "medium", "low", "info"] {
        assert_eq!(page["summary"][name], command["summary"]["severity"][name], "{name}");
    }
    let sum = |name: &str| page["sources"].as_array().unwrap().iter().map(|it| it[name].as_u64().unwrap()).sum::<u64>();
    for name in ["inSync", "drifted", "unknown", "notChecked"] {
        assert_eq!(json!(sum(name)), page["summary"][name], "{name} by source");
    }
    let course = page["course"].as_array().unwrap();
    assert_eq!(course.last().unwrap()["drifted"], page["summary"]["drifted"]);
    let listed = served.get("/api/v1/drift?limit=500").json();
    let ids = |list: &Json| -> Vec<String> {
        let all = list.as_array().unwrap().iter().map(|one| one["canonicalId"].as_str().unwrap().to_owned());
        let mut all: Vec<String> = all.collect();
        all.sort();
        all
    };
    assert_eq!(ids(&listed["findings"]), ids(&command["resources"]));
    let velocity = sandbox.json(["velocity"]);
    for one in page["velocity"].as_array().unwrap() {
        let same = &velocity["byResourceType"][one["resourceType"].as_str().unwrap()];
        assert_eq!(one["drifted"], same["driftedCount"]);
        assert_eq!(one["driftRate"], same["driftRate"]);
    }
}

#[test]
fn what_is_accepted_with_a_reason_is_in_the_baseline() {
    let sandbox = sandbox();
    let served = Served::start(&sandbox, &[]);
    let drift = served.drift();
    let tickets: Vec<&str> =
        drift["findings"].as_array().unwrap().iter().map(|finding| finding["ticket"].as_str().unwrap()).collect();
    assert_eq!(tickets.len(), 3, "{drift:#}");
    let done = served.accept(&[], json!({"findings": tickets, "reason": "the move is done", "by": "mara"}));
    assert_eq!((done.status, &done.json()["accepted"]), (200, &json!(3)), "{done:?}");
    // What was asked for after it is what there is after it.
    assert_eq!(served.drift()["total"], 0);
    let shown = sandbox.run(["baseline", "show"]).succeeded();
    shown.prints(&["one", "three", "four", "the move is done", "mara"]);
    assert_eq!(sandbox.drift([])["summary"]["drifted"], 0);
    let again = served.accept(&[], json!({"findings": [tickets[0]], "reason": "once more", "by": "mara"}));
    assert_eq!(again.status, 409, "{again:?}");
}

#[test]
fn a_finding_that_changed_since_it_was_shown_is_not_accepted_unseen() {
    let sandbox = sandbox();
    let served = Served::start(&sandbox, &[]);
    let drift = served.drift();
    let ticket = |id: &str| {
        let found = drift["findings"].as_array().unwrap().iter().find(|finding| finding["canonicalId"] == id);
        found.unwrap()["ticket"].clone()
    };
    let things = [thing("one", json!({"size": 3})), thing("two", json!({})), thing("four", json!({}))];
    sandbox.observe_things(3, &things);
    let other = served.accept(&[], json!({"findings": [ticket("one")], "reason": "seen", "by": "mara"}));
    assert_eq!(other.status, 409, "{other:?}");
    // What another observation left as it was is what was seen.
    let same = served.accept(&[], json!({"findings": [ticket("four"), ticket("three")], "reason": "seen", "by": "m"}));
    assert_eq!(same.status, 200, "{same:?}");
    let drift = sandbox.drift([]);
    assert_eq!((&drift["summary"]["drifted"], &drift["summary"]["unknown"]), (&json!(1), &json!(0)));
}

#[test]
fn an_observation_that_lands_is_told_to_those_who_listen() {
    let sandbox = sandbox();
    let served = Served::start(&sandbox, &[]);
    let first = served.drift()["revision"].clone();
    let listening = served.connect(&format!("GET /events HTTP/1.1\r\nHost: {}\r\n\r\n", served.address));
    let mut lines = BufReader::new(listening).lines().map_while(Result::ok);
    let mut next = || {
        let data = lines.by_ref().find_map(|line| line.strip_prefix("data: ").map(ToOwned::to_owned)).unwrap();
        serde_json::from_str::<Json>(&data).unwrap()["revision"].clone()
    };
    assert_eq!(next(), first);
    sandbox.observe_things(3, &[thing("one", json!({"size": 1})), thing("two", json!({})), thing("three", json!({}))]);
    let second = next();
    assert_ne!(second, first);
    let drift = served.drift();
    assert_eq!((&drift["revision"], &drift["total"]), (&second, &json!(0)));
    // A rule that is written while the server runs counts, too.
    sandbox.observe_things(4, &[thing("one", json!({"size": 9})), thing("two", json!({})), thing("three", json!({}))]);
    next();
    assert_eq!(served.drift()["total"], 1);
    sandbox.write("driftline.toml", "[[ignore]]\npath = \"/size\"\nreason = \"it breathes\"\n");
    next();
    assert_eq!(served.drift()["total"], 0);
}

#[test]
fn nothing_to_show_is_a_page_that_says_what_to_do() {
    let sandbox = Sandbox::new();
    let served = Served::start(&sandbox, &[]);
    for page in PAGES {
        let answer = served.get(page);
        assert_eq!(answer.status, 200, "{page}");
        assert!(answer.body.contains("driftline observe"), "{page}: {}", answer.body);
    }
    assert_eq!(served.drift()["total"], 0);
    let listening = served.connect(&format!("GET /events HTTP/1.1\r\nHost: {}\r\n\r\n", served.address));
    let mut news = BufReader::new(listening).lines().map_while(Result::ok).filter(|line| line.starts_with("data:"));
    news.next().unwrap();
    sandbox.observe_things(1, &[thing("one", json!({}))]);
    news.next().unwrap();
    for page in ["/", "/drift", "/topology", "/posture", "/versions", "/rules", "/resource?id=one"] {
        assert_eq!(served.get(page).status, 200, "{page}");
    }
    assert!(served.get("/").body.contains("driftline baseline set"));
    sandbox.run(["baseline", "set"]).succeeded();
    news.next().unwrap();
    assert_eq!(served.get("/api/v1/overview").json()["summary"]["inSync"], 1);
}

#[test]
fn a_resource_is_told_with_its_life_and_what_is_expected() {
    let sandbox = sandbox();
    let served = Served::start(&sandbox, &[]);
    let one = served.get("/api/v1/resource?id=one").json();
    let view = &one["views"][0];
    assert_eq!(
        (&view["status"], &view["expected"], &view["live"]),
        (&json!("drifted"), &json!({"size": 1}), &json!({"size": 2}))
    );
    let life: Vec<&str> = one["life"].as_array().unwrap().iter().map(|event| event["what"].as_str().unwrap()).collect();
    assert_eq!(life, ["changed", "first seen"]);
    assert_eq!(one["claims"][0], json!({"source": "test", "role": "saw", "asWhat": null}));
    let gone = served.get("/api/v1/resource?id=three").json();
    assert_eq!((&gone["views"][0]["kind"], &gone["views"][0]["live"]), (&json!("deleted"), &Json::Null));
    // The baseline does not speak of this source.
    let five = served.get("/api/v1/resource?id=five").json();
    assert_eq!(five["views"][0]["status"], "not_checked");
    let overview = served.get("/api/v1/overview").json();
    assert_eq!(overview["summary"]["notChecked"], 1);
    assert!(overview["gaps"].to_string().contains("the baseline has no version of this source"));
}

#[test]
fn secrets_are_on_no_page() {
    let sandbox = Sandbox::new();
    let function = |secret: &str| {
        let snapshot = json!({"environment": {"variables": {"PASSWORD": secret}}, "timeout": 3});
        thing_at(
            "AWS::Lambda::Function",
            "aws/123456789012/us-east-1",
            "arn:aws:lambda:us-east-1:123456789012:function:f",
            snapshot,
        )
    };
    sandbox
        .write("driftline.toml", "[[seal]]\ntype = \"AWS::Lambda::Function\"\npath = \"/environment/variables/*\"\n");
    sandbox.observe_things(1, &[function("hunter2-old")]);
    sandbox.run(["baseline", "set"]).succeeded();
    sandbox.observe_things(2, &[function("hunter2-new")]);
    let served = Served::start(&sandbox, &[]);
    let drift = served.drift();
    assert_eq!(drift["total"], 1, "{drift:#}");
    let id = drift["findings"][0]["id"].as_str().unwrap();
    for page in [
        "/".to_owned(),
        "/drift".into(),
        "/api/v1/drift".into(),
        format!("/resource?finding={id}"),
        format!("/api/v1/resource?finding={id}"),
        "/compare?from=v1&to=now".into(),
        "/api/v1/compare?from=v1&to=now".into(),
    ] {
        let body = served.get(&page).body;
        assert!(!body.contains("hunter2") && !body.contains("$sealed"), "{page}: {body}");
    }
    assert!(served.get(&format!("/api/v1/resource?finding={id}")).body.contains("(sealed)"));
}

#[test]
fn other_addresses_need_a_token_and_tokens_are_kept_apart() {
    let sandbox = sandbox();
    sandbox.run(["serve", "--listen", "0.0.0.0:0"]).refused(&["there is no token", "--token-file", "--auth none"]);
    // A name is how a proxy is told of, and behind a proxy is everybody.
    sandbox.run(["serve", "--host", "drift.example.com"]).refused(&["`drift.example.com`", "there is no token"]);
    let read = sandbox.write("read", READ);
    let write = sandbox.write("write", WRITE);
    let (read, write) = (read.to_str().unwrap(), write.to_str().unwrap());
    let short = sandbox.write("short", "secret");
    let refused = sandbox.run(["serve", "--token-file", short.to_str().unwrap()]).refused(&["at least 16"]);
    assert!(!refused.err.contains("secret"));
    sandbox.run(["serve", "--token-file", read, "--write-token-file", read]).refused(&["the same"]);
    sandbox.run(["serve", "--token-file", read, "--auth", "none"]).refused(&["--auth none"]);
    sandbox.run(["serve", "--token-file", "nowhere"]).refused(&["cannot read the token file"]);
    sandbox.run(["serve", "--listen", "192.0.2.1:1", "--auth", "none"]).refused(&["cannot listen"]);

    let served = Served::start(&sandbox, &["--token-file", read, "--write-token-file", write]);
    assert_eq!(served.get("/drift").header("location"), "/sign-in?next=%2Fdrift");
    assert_eq!(served.get("/api/v1/drift").status, 401);
    let bearer = |token: &str| format!("Bearer {token}");
    let (reader, writer) = (bearer(READ), bearer(WRITE));
    let drift = served.ask("GET", "/api/v1/drift", &[("Authorization", &reader)], "").json();
    let accept = json!({"findings": [drift["findings"][0]["ticket"]], "reason": "r", "by": "b"});
    assert_eq!(served.accept(&[], accept.clone()).status, 401);
    assert_eq!(served.accept(&[("Authorization", &reader)], accept.clone()).status, 403);
    assert_eq!(served.accept(&[("Authorization", &writer)], accept).status, 200);

    let from_environment = |variables: &[(&str, &str)], more: &[&str]| {
        let ran = sandbox.run_with(variables, ["serve", "--listen", "192.0.2.1:1"].iter().chain(more));
        ran.refused(&["cannot listen"])
    };
    from_environment(&[("DRIFTLINE_TOKEN", READ), ("DRIFTLINE_WRITE_TOKEN", WRITE)], &[]);
    sandbox.run_with(&[("DRIFTLINE_TOKEN", READ)], ["serve", "--token-file", read]).refused(&["one of the two"]);
}

#[test]
fn a_server_that_only_reads_writes_nothing() {
    let sandbox = sandbox();
    let served = Served::start(&sandbox, &["--read-only"]);
    let drift = served.drift();
    let accept = json!({"findings": [drift["findings"][0]["ticket"]], "reason": "r", "by": "b"});
    let refused = served.accept(&[], accept);
    assert!(refused.status == 403 && refused.body.contains("--read-only"), "{refused:?}");
    assert!(!served.get("/drift").body.contains("action=\"/accept\""));
    assert!(sandbox.drift([])["summary"]["drifted"].as_u64().unwrap() > 0);
}

#[test]
fn a_signal_ends_the_server_and_the_next_one_knows_as_much() {
    let sandbox = sandbox();
    let mut before = Served::start(&sandbox, &[]);
    let drift = before.drift();
    let listening = before.connect(&format!("GET /events HTTP/1.1\r\nHost: {}\r\n\r\n", before.address));
    let mut lines = BufReader::new(listening).lines().map_while(Result::ok);
    assert!(lines.any(|line| line.starts_with("data:")));
    let pid = before.child.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    assert!(lines.any(|line| line == "event: bye"));
    assert_eq!(before.child.wait().unwrap().code(), Some(0));
    let after = Served::start(&sandbox, &[]).drift();
    for name in ["revision", "total", "findings", "summary"] {
        assert_eq!(drift[name], after[name], "{name}");
    }
}

#[test]
fn schemathesis_finds_no_answer_that_the_document_does_not_tell_of() {
    let Some(program) = variable("DRIFTLINE_TEST_SCHEMATHESIS") else {
        skip("DRIFTLINE_TEST_SCHEMATHESIS names no schemathesis");
        return;
    };
    let sandbox = Sandbox::with_demo();
    let served = Served::start(&sandbox, &[]);
    let mut command = Command::new(program);
    sandbox.prepare(&mut command);
    command.env("HOME", sandbox.path(""));
    command.args(["run", &format!("http://{}/api/v1/openapi.json", served.address)]);
    command.args(["--phases", "examples,coverage,fuzzing", "--max-examples", "40", "--seed", "7", "--no-color"]);
    command.args(["--checks", "not_a_server_error,status_code_conformance,content_type_conformance"]);
    command.args(["--checks", "response_schema_conformance,response_headers_conformance"]);
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
}

#[test]
fn the_page_of_a_resource_says_who_changed_it_or_what_is_not_known() {
    let sandbox = Sandbox::new();
    let arn = "arn:aws:lambda:us-east-1:123456789012:function:checkout";
    let place = "aws/123456789012/us-east-1";
    for (minute, timeout) in [(0, 3), (60, 30)] {
        let function = thing_at("AWS::Lambda::Function", place, arn, json!({"timeout": timeout}));
        sandbox.observe(&observation_of("inventory", minute, json!("complete"), &[function])).succeeded();
        if minute == 0 {
            sandbox.run(["baseline", "set"]).succeeded();
        }
    }
    let served = Served::start(&sandbox, &[]);
    let path = format!("/api/v1/resource?id={arn}");
    let blame = served.get(&path).json()["blame"].clone();
    assert_eq!(blame["acts"], json!([]));
    assert!(blame["note"].as_str().unwrap().contains("driftline observe cloudtrail"), "{blame}");
    assert!(served.get(&format!("/resource?id={arn}")).body.contains("Nobody is on record"));
    drop(served);

    let event = json!({
        "eventVersion": "1.11", "eventID": "00000000-0000-4000-8000-000000000001",
        "eventTime": crate::support::minute(30), "eventName": "UpdateFunctionConfiguration20150331v2",
        "eventSource": "lambda.amazonaws.com", "awsRegion": "us-east-1", "recipientAccountId": "123456789012",
        "readOnly": false, "managementEvent": true, "sourceIPAddress": "192.0.2.7", "userAgent": "aws-cli/2.15.0",
        "userIdentity": {"type": "IAMUser", "arn": "arn:aws:iam::123456789012:user/alice", "accountId": "123456789012"},
        "requestParameters": {"functionName": "checkout"},
    });
    let file = sandbox.write("trail.json", json!({"Records": [event]}).to_string());
    sandbox.run(["observe", "cloudtrail", file.to_str().unwrap()]).succeeded();
    let served = Served::start(&sandbox, &[]);
    let act = served.get(&path).json()["blame"]["acts"][0].clone();
    assert!(act["who"].as_str().unwrap().contains("alice"), "{act}");
    assert_eq!((&act["certainty"], &act["address"]), (&json!("certain"), &json!("192.0.2.7")), "{act}");
    let page = served.get(&format!("/resource?id={arn}")).body;
    assert!(page.contains("alice") && page.contains("UpdateFunctionConfiguration"), "{page}");
}

#[test]
fn a_rule_that_is_gone_no_longer_names_what_it_excused() {
    let sandbox = Sandbox::new();
    for (minute, size) in [(0, 1), (60, 2)] {
        sandbox.observe(&observation_of("inventory", minute, json!("complete"), &[thing("a", json!({"size": size}))]));
        if minute == 0 {
            sandbox.run(["baseline", "set"]).succeeded();
        }
    }
    let rule = |reason: &str| format!("[[ignore]]\npath = \"/size\"\nreason = \"{reason}\"\n");
    sandbox.write("driftline.toml", rule("it grows by itself"));
    let served = Served::start(&sandbox, &[]);
    let of = || served.get("/api/v1/resource?id=a").json()["views"][0].clone();
    let first = of();
    assert_eq!((&first["status"], &first["excused"][0]["reason"]), (&json!("in_sync"), &json!("it grows by itself")));
    // Without it the numbers of rules mean others; what is told meanwhile must still be right.
    sandbox.write("driftline.toml", "");
    for _ in 0..600 {
        let view = of();
        match view["status"].as_str() {
            Some("drifted") => return,
            _ => assert_eq!(view["excused"][0]["reason"], "it grows by itself", "{view}"),
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    panic!("the edited rule was never noticed");
}
