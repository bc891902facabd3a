//! A Ballista cluster of real processes, a scheduler and two executors, asked the same as this machine.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use serde_json::{Value as Json, json};

use crate::support::{Ran, Sandbox, ran};

/// Ends what it started, whatever happens to the test.
struct Node(Child);

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

struct Cluster {
    address: String,
    executors: Vec<Node>,
    _scheduler: Node,
}

/// Starts a node and waits for the line by which it says that it is there.
fn node(sandbox: &Sandbox, arguments: &[&str], begins: &str) -> (Node, String) {
    // What a node that is killed leaves behind goes with the sandbox.
    std::fs::create_dir_all(sandbox.path("tmp")).unwrap();
    let mut command = sandbox.command(arguments);
    command.env("TMPDIR", sandbox.path("tmp"));
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let stderr = child.stderr.take().unwrap();
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(stderr).lines().map_while(Result::ok) {
            let _ = tell.send(line);
        }
    });
    let node = Node(child);
    loop {
        let line = told.recv_timeout(Duration::from_mins(1)).unwrap_or_else(|_| panic!("no `{begins}`"));
        if line.starts_with(begins) {
            return (node, line);
        }
    }
}

impl Cluster {
    fn start(sandbox: &Sandbox) -> Self {
        let (scheduler, line) = node(sandbox, &["engine", "scheduler", "--bind", "127.0.0.1:0"], "scheduler:");
        let address = line.rsplit(' ').next().unwrap().to_owned();
        let executor = |_| {
            let arguments = ["engine", "executor", "--scheduler", &address, "--tasks", "2"];
            node(sandbox, &arguments, "executor:").0
        };
        let executors = (0..2).map(executor).collect();
        Self { address, executors, _scheduler: scheduler }
    }

    fn run(&self, sandbox: &Sandbox, arguments: &[&str]) -> Ran {
        sandbox.run(arguments.iter().copied().chain(["--engine", self.address.as_str()]))
    }
}

/// Things of an estate at a version, a line for each: some change, some go, some come, some go back and forth.
fn estate(version: u32, count: u32) -> String {
    let header = json!({
        "schema": "driftline.observation/v1", "source": "estate", "takenAt": format!("2026-06-01T{version:02}:00:00Z"),
        "coverage": "complete",
    });
    let mut text = format!("{header}\n");
    for thing in 0..count {
        let mark = (thing * 7919 + version * 104_729) % 1000;
        // One in fifty is away now and then; one in a hundred changes; a few swing between two forms.
        if thing % 50 == 0 && (thing / 50 + version).is_multiple_of(3) {
            continue;
        }
        let size = if mark < 10 { version } else { 0 };
        let swing = thing.is_multiple_of(400) && version % 2 == 1;
        let list = if thing.is_multiple_of(97) { json!([version % 4, 1, 2]) } else { json!([1, 2]) };
        let one = json!({
            "canonicalId": format!("thing-{thing:06}"), "resourceType": format!("Kind::{}", thing % 7),
            "account": format!("{:012}", thing % 5), "region": "eu-west-1",
            "snapshot": {"size": size, "swing": swing, "list": list, "text": "x".repeat((thing % 40) as usize)},
        });
        writeln!(text, "{one}").unwrap();
    }
    text
}

fn compared(sandbox: &Sandbox, cluster: &Cluster, more: &[&str]) -> String {
    let arguments = [&["drift", "--exit-zero", "-o", "json"], more].concat();
    let (here, there) = (sandbox.run(&arguments).succeeded(), cluster.run(sandbox, &arguments).succeeded());
    // When it was computed is the one thing that differs.
    let stripped = |ran: &Ran| {
        let text = &ran.out;
        let (before, rest) = text.split_once("\"computedAt\":\"").unwrap();
        format!("{before}\"computedAt\":\"{}", &rest[rest.find('"').unwrap()..])
    };
    assert_eq!(stripped(&there), stripped(&here), "{more:?}");
    assert_eq!(there.err, here.err);
    stripped(&here)
}

const QUESTIONS: [&str; 8] = [
    "SELECT op, count(*) AS n FROM history GROUP BY op ORDER BY op",
    "SELECT type, count(*) AS n, count(DISTINCT id) AS ids FROM resources GROUP BY type ORDER BY type",
    "SELECT stream, version, type, place, id, seen, hash, properties, changed_at FROM resources ORDER BY stream, type, place, id",
    "SELECT version, op, count(*) AS n, min(observed_at) AS at FROM changes GROUP BY version, op ORDER BY version, op",
    "SELECT type, place, id, stream, status, kind, changes FROM findings ORDER BY type, place, id, stream",
    "SELECT stream, version, resources, digest FROM versions ORDER BY stream, version",
    "SELECT c.id, differences(c.before, c.after) AS told FROM changes c JOIN resources r ON r.stream = c.stream AND r.type = c.type \
     AND r.place = c.place AND r.id = c.id WHERE c.op = 'change' ORDER BY c.stream, c.version, c.type, c.place, c.id LIMIT 50",
    "SELECT tag(properties, 'team') AS team, json_get_int(properties, 'ingressRuleCount') AS rules, id FROM resources \
     WHERE type = 'AWS::EC2::SecurityGroup' ORDER BY id",
];

const PACKED: [&str; 3] = [
    "SELECT version, op, count(*) AS n FROM history GROUP BY version, op ORDER BY version, op",
    "SELECT id, hash, properties, changed_at FROM resources_at('test', 17) ORDER BY id",
    "SELECT version, id, changes FROM changes WHERE version BETWEEN 12 AND 14 ORDER BY version, id",
];

#[test]
fn a_cluster_answers_as_this_machine_does() {
    let sandbox = Sandbox::with_demo();
    let cluster = Cluster::start(&sandbox);
    compared(&sandbox, &cluster, &[]);
    compared(&sandbox, &cluster, &["--all"]);
    compared(&sandbox, &cluster, &["--between", "v3", "v1"]);
    for sql in QUESTIONS {
        let here = sandbox.run(["query", "-o", "csv", sql]).succeeded();
        let there = cluster.run(&sandbox, &["query", "-o", "csv", sql]).succeeded();
        assert_eq!(there.out, here.out, "{sql}");
    }
    for name in ["drift-by-tag", "flapping", "topology-degrees", "account-comparison"] {
        let here = sandbox.run(["query", "-o", "csv", name]).succeeded();
        assert_eq!(cluster.run(&sandbox, &["query", "-o", "csv", name]).succeeded().out, here.out, "{name}");
    }
    // How long things have been different goes by the time that it is.
    let timed = ["query", "-o", "csv", "mean-time-in-drift", "--param", "now=2030-01-01T00:00:00Z"];
    let here = sandbox.run(timed).succeeded();
    assert!(here.out.lines().count() > 1, "{}", here.out);
    assert_eq!(cluster.run(&sandbox, &timed).succeeded().out, here.out);
    // Versions that share a file, of which some are asked for.
    let packed = crate::engines::packed();
    for points in [&[][..], &["--between", "v4", "v17"], &["--between", "v17", "v31"]] {
        compared(&packed, &cluster, points);
    }
    for sql in PACKED {
        let here = packed.run(["query", "-o", "csv", sql]).succeeded();
        let there = cluster.run(&packed, &["query", "-o", "csv", sql]).succeeded();
        assert_eq!(there.out, here.out, "{sql}");
    }
    // What is refused here is refused there.
    cluster.run(&sandbox, &["query", "SELECT * FROM resource"]).refused(&["no view `resource`"]);
    cluster.run(&sandbox, &["query", "COPY (SELECT 1) TO '/tmp/x.csv'"]).refused(&["only questions can be asked"]);
    // What goes wrong there is said in words, and not by the names of types; the cluster itself is there.
    for (sql, words) in [
        ("SELECT version / (version - version) AS x FROM history", "divide by zero"),
        ("SELECT CAST(id AS BIGINT) AS x FROM history", "cast string"),
        ("SELECT array_length(range(0, 2000000000 + version)) AS n FROM history", "an executor needs more memory"),
    ] {
        let ran = cluster.run(&sandbox, &["query", sql]);
        let said = ran.err.to_lowercase();
        assert!(said.contains(words), "{sql}: {}", ran.err);
        for odd in ["error(", "engine scheduler", "job "] {
            assert!(!said.contains(odd), "{odd} in {}", ran.err);
        }
        ran.refused(&["could not do it"]);
    }
    cluster
        .run(&sandbox, &["query", "SELECT count(*) FROM generate_series(1, 10)"])
        .refused(&["rows that a function makes", "without --engine"]);
    // What is told of views is told by who asks.
    for sql in ["SHOW TABLES", "DESCRIBE changes"] {
        let here = sandbox.run(["query", "-o", "csv", sql]).succeeded();
        assert_eq!(
            cluster.run(&sandbox, &["query", "-o", "csv", sql]).succeeded().out.lines().count(),
            here.out.lines().count()
        );
    }
}

/// A question that never ends on its own. The executors have it all to themselves.
const ENDLESS: &str = "SELECT count(*) AS n FROM history a, history b, history c, history d WHERE a.id < b.id AND c.id < d.id \
     AND a.id <> d.id";

#[test]
fn what_nobody_waits_for_any_more_ends_on_the_cluster_too() {
    let sandbox = Sandbox::with_demo();
    let cluster = Cluster::start(&sandbox);
    // Whoever asks next is answered, although its own time is short of what the first one would take.
    let next = |after: &str| {
        let ran = cluster.run(&sandbox, &["query", "-o", "csv", "SELECT count(*) AS n FROM versions"]);
        assert_eq!(ran.code, 0, "{after}: {}", ran.err);
    };
    next("nothing");
    cluster.run(&sandbox, &["query", ENDLESS, "--timeout", "3s"]).refused(&["not done within 3 s", "--timeout"]);
    next("a time that was up");
    let ask = || {
        let mut command = sandbox.command(["query", ENDLESS, "--timeout", "20s", "--engine", &cluster.address]);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        std::thread::sleep(Duration::from_secs(2));
        child
    };
    let end = |child: &Child, signal: &str| {
        let killed = std::process::Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
        assert!(killed.success());
    };
    let child = ask();
    end(&child, "-INT");
    ran(&child.wait_with_output().unwrap()).exited(130);
    next("an interruption");
    // One that cannot take anything back is waited for as long as it would have waited.
    let child = ask();
    end(&child, "-KILL");
    child.wait_with_output().unwrap();
    next("a sudden death");
}

#[test]
fn drift_of_a_larger_estate_is_the_same_byte_for_byte_even_when_an_executor_dies() {
    let sandbox = Sandbox::new();
    for version in 0..8 {
        sandbox.feed(estate(version, 20_000).as_bytes(), ["observe", "file", "-"]).succeeded();
        if version == 0 {
            sandbox.run(["baseline", "set"]).succeeded();
        }
    }
    let mut cluster = Cluster::start(&sandbox);
    let whole = compared(&sandbox, &cluster, &[]);
    let whole: Json = serde_json::from_str(&whole).unwrap();
    assert!(whole["summary"]["drifted"].as_u64().unwrap() > 300, "{}", whole["summary"]);
    compared(&sandbox, &cluster, &["--between", "v2", "v7"]);
    compared(&sandbox, &cluster, &["--between", "v7", "v3"]);
    let here = sandbox.run(["drift", "--exit-zero", "-o", "ndjson"]).succeeded();
    // One of the two is killed while the cluster is at work. The answer is whole, or there is none.
    let mut asking = sandbox.command([
        "drift",
        "--exit-zero",
        "-o",
        "ndjson",
        "--engine-timeout",
        "30s",
        "--engine",
        &cluster.address,
    ]);
    let asking = asking.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(300));
    drop(cluster.executors.pop());
    let answer = ran(&asking.wait_with_output().unwrap());
    match answer.code {
        0 => assert_eq!(without_time(&answer.out), without_time(&here.out)),
        _ if answer.err.contains("not done within 30 s") => drop(answer.refused(&["--engine-timeout"])),
        _ => drop(answer.refused(&["the cluster at", "could not do it"])),
    }
    // With the one that is left, sooner or later, everything is there again.
    let mut last = None;
    for _ in 0..30 {
        let answer = cluster.run(&sandbox, &["drift", "--exit-zero", "-o", "ndjson"]);
        if answer.code == 0 {
            last = Some(answer);
            break;
        }
        std::thread::sleep(Duration::from_secs(2));
    }
    let last = last.expect("one executor is enough");
    assert_eq!(without_time(&last.out), without_time(&here.out));
}

fn without_time(lines: &str) -> String {
    let strip = |line: &str| match line.split_once("\"computedAt\":\"") {
        Some((before, rest)) => format!("{before}{}", rest.split_once('"').map_or("", |(_, rest)| rest)),
        None => line.to_owned(),
    };
    lines.lines().map(strip).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_cluster_that_is_away_is_said_to_be_and_so_is_one_without_executors() {
    let sandbox = Sandbox::with_demo();
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let away = format!("ballista://{free}");
    sandbox.run(["query", "SELECT 1", "--engine", &away]).refused(&["cannot be reached", "driftline engine scheduler"]);
    sandbox.run(["drift", "--engine", &away]).refused(&["cannot be reached", "without --engine"]);
    sandbox.run(["engine", "executor", "--scheduler", &away]).refused(&["cannot be reached"]);
    let executor = ["engine", "executor", "--scheduler", &away, "--memory", "0"];
    sandbox.run(executor).refused(&["--memory is too little", "16MiB"]);
    // What the environment names is for questions that can be asked there.
    let named = [("DRIFTLINE_ENGINE", away.as_str())];
    sandbox.run_with(&named, ["drift", "--print-sql", "duckdb"]).succeeded().prints(&["WITH"]);
    sandbox.run_with(&named, ["drift", "--exit-zero", "--across", "adopt/demo", "inventory/demo"]).succeeded();
    for beside in [&["--print-sql", "duckdb"][..], &["--across", "adopt/demo", "inventory/demo"]] {
        let arguments = [&["drift", "--engine", &away], beside].concat();
        sandbox.run(&arguments).refused(&["--engine cannot be used with", beside[0]]);
    }
    sandbox.run(["query", "SELECT 1", "--engine", "spark://x"]).refused(&["not an engine", "ballista://host:50050"]);
    let (_scheduler, line) = node(&sandbox, &["engine", "scheduler", "--bind", "127.0.0.1:0"], "scheduler:");
    let address = line.rsplit(' ').next().unwrap();
    sandbox
        .run(["query", "SELECT count(*) FROM history", "--engine", address, "--timeout", "5s"])
        .refused(&["not done within 5 s", "--timeout"]);
    // All sources together have that long, and the flag is the one that there is.
    let drift = ["drift", "--engine", address, "--engine-timeout", "4s"];
    let ran = sandbox.run(drift).refused(&["not done within 4 s", "--engine-timeout"]);
    assert!(!ran.err.contains("--timeout,") && !ran.err.contains("--memory"), "{}", ran.err);
    sandbox.run(["drift", "--engine", address, "--engine-timeout", "0s"]).refused(&["--engine-timeout leaves no time"]);
}
