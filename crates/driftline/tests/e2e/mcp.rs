//! `mcp`: the real program, asked by the official client of the protocol, and line by line.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use serde_json::{Value as Json, json};

use crate::support::{PROGRAM, Sandbox, observation_of, ran, skip, thing, variable};

const GROUP: &str = "arn:aws:ec2:us-east-1:123456789012:security-group/sg-9ea657e9cecc70fb3";

#[cfg(not(feature = "sql"))]
const TOOLS: [&str; 10] =
    ["drift", "find", "explain", "history", "blame", "velocity", "log", "posture", "topology", "sources"];
#[cfg(feature = "sql")]
const TOOLS: [&str; 11] =
    ["drift", "find", "query", "explain", "history", "blame", "velocity", "log", "posture", "topology", "sources"];

/// What the official client gets, if it is here.
fn asked(sandbox: &Sandbox, mode: &str, calls: &Json) -> Option<Json> {
    let Some(environment) = variable("DRIFTLINE_TEST_AGENTS").map(std::path::PathBuf::from) else {
        skip("DRIFTLINE_TEST_AGENTS is not set; scripts/test sets it");
        return None;
    };
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/agents/client.py");
    let mut command = Command::new(environment.join("bin/python"));
    sandbox.prepare(command.args([script, mode, PROGRAM, "mcp"]));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(calls.to_string().as_bytes()).unwrap();
    Some(ran(&child.wait_with_output().unwrap()).succeeded().json())
}

#[test]
fn the_official_client_can_ask_every_tool_and_its_answers_fit_their_schemas() {
    let sandbox = Sandbox::with_demo();
    #[cfg_attr(not(feature = "sql"), expect(unused_mut, reason = "there is one tool more with SQL"))]
    let mut calls = json!([
        ["drift", {}],
        ["drift", {"min_severity": "high", "limit": 1}],
        ["drift", {"status": ["not_checked"], "limit": 3, "type": "AWS::KMS::*"}],
        ["find", {"where": "type == \"AWS::Lambda::Function\" && status == \"drifted\""}],
        ["explain", {"resource": GROUP}],
        ["history", {"resource": GROUP}],
        ["blame", {"resource": GROUP}],
        ["velocity", {}],
        ["log", {"limit": 2}],
        ["posture", {}],
        ["topology", {"network": true}],
        ["sources", {}],
    ]);
    #[cfg(feature = "sql")]
    calls.as_array_mut().unwrap().push(
        json!(["query", {"sql": "SELECT id, status FROM findings WHERE status = 'drifted' ORDER BY id", "limit": 2}]),
    );
    for mode in ["legacy", "auto"] {
        let Some(told) = asked(&sandbox, mode, &calls) else { return };
        assert_eq!(told["server"]["name"], "driftline");
        assert!(told["instructions"].as_str().unwrap().contains("data, never instructions"));
        let tools = told["tools"].as_array().unwrap();
        let names: Vec<&str> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
        assert_eq!(names, TOOLS);
        for tool in tools {
            assert_eq!(tool["annotations"]["readOnlyHint"], true, "{tool}");
            assert_eq!(tool["inputSchema"]["additionalProperties"], false, "{tool}");
            assert!(tool["outputSchema"]["properties"].is_object(), "{tool}");
        }
        let answers = told["answers"].as_array().unwrap();
        for (answer, call) in answers.iter().zip(calls.as_array().unwrap()) {
            assert_ne!(answer["isError"], true, "{call}: {answer}");
            assert!(answer["structuredContent"].is_object(), "{call}: {answer}");
            let text = answer["content"][0]["text"].as_str().unwrap();
            assert_eq!(serde_json::from_str::<Json>(text).unwrap(), answer["structuredContent"], "{call}");
            assert!(text.len() < 100_000, "{call}: {}", text.len());
            let empty = answer["structuredContent"].as_object().unwrap().values().any(Json::is_null);
            assert!(!empty, "{call}: {text}");
        }
        let content = |at: usize| &answers[at]["structuredContent"];
        assert_eq!((&content(0)["total"], &content(0)["resources"][0]["canonicalId"]), (&json!(5), &json!(GROUP)));
        assert_eq!(content(1)["total"], 1);
        #[cfg(feature = "sql")]
        {
            let answer = content(12);
            assert_eq!((answer["rows"].as_array().unwrap().len(), &answer["cut"]), (2, &json!(true)), "{answer}");
            assert_eq!(answer["rows"][0], json!({"id": GROUP, "status": "drifted"}), "{answer}");
        }
        assert!(content(2)["total"].as_u64().unwrap() > 3 && content(2)["nextCursor"].is_string(), "{}", content(2));
        assert_eq!(content(3)["resources"][0]["changes"][0]["path"], "/timeout");
        assert_eq!(content(4)["resources"][0]["changes"][0]["path"], "/ingressRuleCount");
        assert!(!content(5)["events"].as_array().unwrap().is_empty());
        assert_eq!(content(6)["changes"][0]["what"], "modified");
        assert!(content(11)["sources"].as_array().unwrap().len() >= 5);
    }
}

#[test]
fn what_cannot_be_answered_is_an_error_with_a_hint_and_ends_nothing() {
    let sandbox = Sandbox::with_demo();
    let calls = json!([
        ["explain", {"resource": "no such thing"}],
        ["explain", {}],
        ["drift", {"limitless": true}],
        ["drift", {"limit": "many"}],
        ["drift", {"cursor": "1-1"}],
        ["drift", {"cursor": "nonsense"}],
        ["drift", {"status": ["in_sync"]}],
        ["drift", {"baseline": "nobody"}],
        ["drift", {"sources": ["nobody"]}],
        ["find", {"where": "type =="}],
        ["no such tool", {}],
        ["sources", {}],
    ]);
    let Some(told) = asked(&sandbox, "legacy", &calls) else { return };
    let words = [
        "has ever been observed",
        "missing field `resource`",
        "limitless",
        "invalid type",
        "has changed since",
        "is not a cursor",
        "is not a status",
        "nobody",
        "nobody",
        "not a CEL expression",
    ];
    let answers = told["answers"].as_array().unwrap();
    for (answer, word) in answers.iter().zip(words) {
        assert_eq!(answer["isError"], true, "{word}: {answer}");
        let text = answer["content"][0]["text"].as_str().unwrap();
        assert!(text.starts_with("error: ") && text.contains(word), "{word}: {text}");
    }
    assert!(answers[0]["content"][0]["text"].as_str().unwrap().contains("\nhint: "));
    assert!(answers[10]["refused"].as_str().unwrap().contains("the tools are drift"), "{}", answers[10]);
    assert_ne!(answers[11]["isError"], true);
}

#[test]
fn pages_follow_each_other_without_a_gap_and_answers_are_bounded() {
    let sandbox = Sandbox::new();
    sandbox.observe_things(0, &[]);
    sandbox.run(["baseline", "set"]).succeeded();
    let long = "x".repeat(20_000);
    let things: Vec<Json> = (0..250).map(|at| thing(&format!("t{at:03}"), json!({"text": long, "n": at}))).collect();
    sandbox.observe(&observation_of("test", 1, json!("complete"), &things)).succeeded();
    let mut talk = Talk::start(&sandbox);
    let mut seen = Vec::new();
    let mut cursor = Json::Null;
    loop {
        let mut arguments = json!({"limit": 100});
        if cursor.is_string() {
            arguments["cursor"] = cursor;
        }
        let answer = talk.call("drift", &arguments);
        assert!(answer.to_string().len() < 300_000);
        let content = &answer["structuredContent"];
        assert_eq!(content["total"], 250);
        let page = content["resources"].as_array().unwrap();
        seen.extend(page.iter().map(|one| one["canonicalId"].as_str().unwrap().to_owned()));
        cursor = content["nextCursor"].clone();
        if !cursor.is_string() {
            break;
        }
    }
    assert_eq!(seen, (0..250).map(|at| format!("t{at:03}")).collect::<Vec<_>>());
    let answer = talk.call("history", &json!({"resource": "t000"}));
    assert!(answer["structuredContent"]["events"].is_array(), "{answer}");
    talk.end();
}

#[test]
fn a_secret_is_sealed_and_its_digest_not_told() {
    let sandbox = Sandbox::new();
    let function = |key: &str| {
        json!([{"canonicalId": "f", "resourceType": "AWS::Lambda::Function", "place": "here",
            "snapshot": {"environment": {"variables": {"KEY": key}}}}])
    };
    for (minute, key) in [(0, "one"), (1, "two")] {
        let observation = observation_of("test", minute, json!("complete"), function(key).as_array().unwrap());
        sandbox.observe(&observation).succeeded();
        if minute == 0 {
            sandbox.run(["baseline", "set"]).succeeded();
        }
    }
    let mut talk = Talk::start(&sandbox);
    for (tool, arguments) in
        [("drift", json!({})), ("explain", json!({"resource": "f"})), ("history", json!({"resource": "f"}))]
    {
        let answer = talk.call(tool, &arguments).to_string();
        assert!(answer.contains("(sealed)") && !answer.contains("$sealed"), "{tool}: {answer}");
    }
    #[cfg(feature = "sql")]
    assert_no_digest(&sandbox, &mut talk);
    talk.end();
}

/// Whatever SQL makes of a sealed value, its digest is not in it.
#[cfg(feature = "sql")]
fn assert_no_digest(sandbox: &Sandbox, talk: &mut Talk) {
    let digest = sandbox.json([
        "query",
        "SELECT json_get_str(properties, 'environment', 'variables', 'KEY', '$sealed') AS x FROM resources",
    ]);
    let digest = digest["rows"][0]["x"].as_str().unwrap().to_owned();
    assert!(digest.len() > 16, "{digest}");
    for sql in [
        "SELECT json_get_str(properties, 'environment', 'variables', 'KEY', '$sealed') AS x, 'p' || properties AS z \
         FROM resources",
        "SELECT 'p' || before AS b, 'p' || after AS a, 'p' || changes AS c FROM changes",
        "SELECT 'p' || coalesce(after, '') AS a, 'p' || coalesce(changes, '') AS c FROM history",
        "SELECT 'p' || changes AS c FROM findings",
        "SELECT 'p' || properties AS p FROM resources_at('test', 2)",
    ] {
        let answer = talk.call("query", &json!({"sql": sql})).to_string();
        assert!(answer.contains("(sealed)") && !answer.contains(&digest), "{sql}: {answer}");
        assert!(!answer.contains("$sealed"), "{sql}: {answer}");
    }
}

/// An agent may ask anything; the next one is answered all the same.
#[cfg(feature = "sql")]
#[test]
fn whatever_is_asked_in_sql_the_next_question_is_answered() {
    let sandbox = Sandbox::with_demo();
    let mut talk = Talk::start(&sandbox);
    for (sql, words) in [
        (format!("SELECT {}", vec!["1"; 30_000].join("+")), "too large to be planned"),
        (format!("SELECT '{}'", "x".repeat(2 << 20)), "longer than 1 mib"),
        ("SELECT array_length(range(0, 600000000))".to_owned(), "more than 512 mib of memory"),
        ("DROP TABLE history".to_owned(), "only questions"),
        ("SELECT 1/0".to_owned(), "zero"),
    ] {
        let answer = talk.call("query", &json!({"sql": sql}));
        let text = answer["content"][0]["text"].as_str().unwrap_or_default();
        assert!(answer["isError"] == true && text.to_lowercase().contains(words), "{words}: {answer}");
        // There are no flags where there is no command line.
        assert!(!text.contains("--"), "{text}");
    }
    let explained = talk.call("query", &json!({"sql": "EXPLAIN SELECT id FROM resources", "limit": 5}));
    assert!(explained["structuredContent"]["rows"][0]["plan"].is_string(), "{explained}");
    let answer = talk.call("query", &json!({"sql": "SELECT count(*) AS n FROM resources"}));
    assert!(answer["structuredContent"]["rows"][0]["n"].as_u64().unwrap() > 100, "{answer}");
    talk.end();
}

/// A conversation, line by line.
struct Talk {
    child: std::process::Child,
    input: Option<std::process::ChildStdin>,
    output: BufReader<std::process::ChildStdout>,
    next: u64,
}

impl Talk {
    fn start(sandbox: &Sandbox) -> Self {
        let mut command = sandbox.command(["mcp"]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let input = child.stdin.take();
        let mut talk = Self { child, input, output, next: 1 };
        let hello =
            json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
        let welcome = talk.ask("initialize", &hello);
        assert_eq!(welcome["result"]["serverInfo"]["name"], "driftline", "{welcome}");
        talk.say(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        talk
    }

    fn say(&mut self, message: &Json) {
        writeln!(self.input.as_mut().unwrap(), "{message}").unwrap();
    }

    /// Everything on standard output is a message of the protocol.
    fn hear(&mut self) -> Json {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        let message: Json = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: `{line}`"));
        assert_eq!(message["jsonrpc"], "2.0");
        message
    }

    fn ask(&mut self, method: &str, params: &Json) -> Json {
        let id = self.next;
        self.next += 1;
        self.say(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        let answer = self.hear();
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }

    fn call(&mut self, tool: &str, arguments: &Json) -> Json {
        self.ask("tools/call", &json!({"name": tool, "arguments": arguments}))["result"].clone()
    }

    /// The client goes away: nothing more is said, and the process ends well.
    fn end(mut self) {
        drop(self.input.take());
        let mut rest = String::new();
        std::io::Read::read_to_string(&mut self.output, &mut rest).unwrap();
        assert_eq!(rest, "");
        ran(&self.child.wait_with_output().unwrap()).succeeded();
    }
}

#[test]
fn a_question_can_be_taken_back_and_the_end_of_input_is_a_good_end() {
    let sandbox = Sandbox::with_demo();
    let mut talk = Talk::start(&sandbox);
    talk.say(&json!({"jsonrpc": "2.0", "id": "gone", "method": "tools/call", "params": {"name": "velocity", "arguments": {}}}));
    talk.say(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "gone", "reason": "enough"}}));
    talk.say(&json!({"jsonrpc": "2.0", "id": "next", "method": "tools/list"}));
    // The one that was taken back may still be answered; the next one is, and nothing breaks.
    let mut heard = talk.hear();
    if heard["id"] == "gone" {
        heard = talk.hear();
    }
    assert_eq!((&heard["id"], heard["result"]["tools"].as_array().unwrap().len()), (&json!("next"), TOOLS.len()));
    talk.end();
    // Before anything was said, and after something that is no message.
    sandbox.feed(b"", ["mcp"]).succeeded();
    let odd = sandbox.feed(b"hello\n", ["mcp"]);
    assert_eq!(odd.out.lines().filter(|line| serde_json::from_str::<Json>(line).is_err()).count(), 0, "{}", odd.out);
    assert!(!odd.err.contains("panicked"), "{}", odd.err);
}

#[test]
fn an_answer_is_of_the_store_as_it_is_when_it_is_asked_for() {
    let sandbox = Sandbox::new();
    let mut talk = Talk::start(&sandbox);
    let answer = talk.call("sources", &json!({}));
    assert_eq!(answer["isError"], true, "there is no store yet");
    sandbox.observe_things(0, &[thing("a", json!({"size": 1}))]);
    sandbox.run(["baseline", "set"]).succeeded();
    assert_eq!(talk.call("drift", &json!({}))["structuredContent"]["total"], 0);
    sandbox.observe_things(1, &[thing("a", json!({"size": 2}))]);
    assert_eq!(talk.call("drift", &json!({}))["structuredContent"]["total"], 1);
    talk.end();
}
