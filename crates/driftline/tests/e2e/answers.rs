//! Questions beyond drift: how the graph changed, and what became of compliance.

use std::fs;

use serde_json::{Value as Json, json};

use crate::support::{COMPLETE, Sandbox, minute, observation_of, thing_at};

const EDGE: &str = "Driftline::Topology::Edge";
const HERE: &str = "aws/1/here";

fn node(id: &str) -> Json {
    thing_at("Node", HERE, id, json!({"name": id}))
}

fn edge(from: &str, to: &str, batch: u64) -> Json {
    let snapshot = json!({"from": from, "to": to, "type": "targets", "attributes": {"batch": batch}});
    thing_at(EDGE, HERE, &format!("{from} -> {to}"), snapshot)
}

fn observe(sandbox: &Sandbox, at: u32, coverage: Json, things: &[Json]) {
    sandbox.observe(&observation_of("events", at, coverage, things)).succeeded();
}

/// A rule with one target gets a second one, the first is set differently, and another edge goes.
fn rewired() -> Sandbox {
    let sandbox = Sandbox::new();
    let nodes = ["rule", "f", "q", "old"].map(node);
    let before = [edge("rule", "f", 1), edge("q", "old", 1)];
    observe(&sandbox, 0, json!(COMPLETE), &[&nodes[..], &before].concat());
    sandbox.run(["baseline", "set"]).succeeded();
    let after = [edge("rule", "f", 2), edge("rule", "q", 1)];
    observe(&sandbox, 1, json!(COMPLETE), &[&nodes[..3], &after].concat());
    sandbox
}

/// What became of each, by name.
fn changes(answer: &Json) -> Vec<String> {
    let text = |one: &Json, name: &str| one[name].as_str().unwrap().to_owned();
    let nodes = answer["nodes"].as_array().unwrap().iter();
    let edges = answer["edges"].as_array().unwrap().iter();
    let edges = edges.map(|one| format!("{}>{} {}", text(one, "from"), text(one, "to"), text(one, "change")));
    nodes.map(|one| format!("{} {}", text(one, "id"), text(one, "change"))).chain(edges).collect()
}

#[test]
fn a_second_target_raises_the_degree_of_a_rule() {
    let sandbox = rewired();
    let answer = sandbox.json(["topology"]);
    assert_eq!(answer["schema"], "driftline.topology/v1");
    assert_eq!(
        changes(&answer),
        ["old removed", "q degree", "rule degree", "q>old removed", "rule>f changed", "rule>q added",]
    );
    assert_eq!(answer["nodes"][2]["outDegree"], json!({"before": 1, "after": 2}));
    assert_eq!(answer["edges"][1]["changes"][0]["path"], "/attributes/batch");
    assert_eq!(answer["edges"][2]["attributes"], json!({"batch": 1}));
    let shape = |side: &str, name: &str| answer[side][name].as_u64().unwrap();
    assert_eq!((shape("before", "nodes"), shape("after", "nodes")), (4, 3));
    assert_eq!((shape("before", "maxOutDegree"), shape("after", "maxOutDegree")), (1, 2));
    assert_eq!((shape("before", "connectedComponents"), shape("after", "connectedComponents")), (2, 1));
    sandbox.run(["topology"]).succeeded().prints(&[
        "outDegree 1 -> 2",
        "+ rule -> q",
        "- q -> old",
        "~ rule -> f",
        "/attributes/batch: 1 -> 2",
        "result: edges 1 added, 1 removed, 1 changed; nodes 0 added, 1 removed, 0 changed; not checked 0 edges",
    ]);
    let lines = sandbox.run(["topology", "-o", "ndjson"]).succeeded().out;
    assert_eq!(lines.lines().count(), 6);
    assert!(lines.lines().all(|line| serde_json::from_str::<Json>(line).is_ok()));
}

#[test]
fn the_two_points_of_topology_are_those_of_drift() {
    let sandbox = rewired();
    for (arguments, edges) in [
        (&["--between", "v1", "v2"][..], 3),
        (&["--between", "v2", "v1"], 3),
        (&["--between", "v1", "v1"], 0),
        (&["--since", &minute(0)], 3),
        (&["--at", &minute(0)], 0),
        (&["--source", "events"], 3),
    ] {
        let answer = sandbox.json(["topology"].iter().chain(arguments));
        assert_eq!(answer["edges"].as_array().unwrap().len(), edges, "{arguments:?}");
    }
    sandbox.run(["topology", "--source", "nobody"]).refused(&["nobody"]);
    sandbox.run(["topology", "--between", "v1", "v2", "--at", "2026-01-01"]).refused(&["--between"]);
    let without = Sandbox::new();
    without.observe_things(0, &[thing_at("Thing", "here", "x", json!({}))]);
    without.run(["baseline", "set"]).succeeded();
    without.run(["topology"]).refused(&["has edges", "hint: "]);
}

#[test]
fn an_edge_in_a_place_that_was_not_listed_whole_is_not_removed() {
    let sandbox = Sandbox::new();
    let all = [node("a"), node("b"), node("c"), edge("a", "b", 1), edge("a", "c", 1)];
    observe(&sandbox, 0, json!(COMPLETE), &all);
    sandbox.run(["baseline", "set"]).succeeded();
    let cut = json!([
        {"type": "Node", "place": HERE, "outcome": "complete"},
        {"type": EDGE, "place": HERE, "outcome": "partial", "reason": "throttled"},
    ]);
    observe(&sandbox, 1, cut, &all[..4]);
    // Then nobody looks at edges at all.
    observe(&sandbox, 2, json!([{"type": "Node", "place": HERE, "outcome": "complete"}]), &all[..3]);
    for (at, missing, reason) in [(1, 1, "partial: throttled"), (2, 2, "did not look there")] {
        let answer = sandbox.json(["topology", "--at", &minute(at)]);
        assert_eq!(changes(&answer), Vec::<String>::new());
        let not_checked = &answer["notChecked"];
        assert_eq!((&not_checked["edges"], &not_checked["nodes"]), (&json!(missing), &json!(0)));
        let told = not_checked["reasons"][0]["reason"].as_str().unwrap();
        assert!(told.starts_with(HERE) && told.ends_with(reason), "{told}");
        assert_eq!(answer["before"]["edges"], answer["after"]["edges"]);
    }
    sandbox.run(["topology"]).succeeded().prints(&["NOT CHECKED", "2 edges, 0 nodes"]);
    // Both sides are blind: the edges are known, and unchecked.
    let blind = sandbox.json(["topology", "--between", "v2", "v3"]);
    assert_eq!((&blind["notChecked"]["edges"], &blind["after"]["edges"]), (&json!(2), &json!(2)));
}

#[test]
fn the_new_target_of_the_story_raises_the_out_degree_of_its_rule_from_one_to_two() {
    let sandbox = Sandbox::with_demo();
    sandbox.run(["topology"]).succeeded().prints(&[
        "rule/drift-state-test-rule  AWS::Events::Rule\n      outDegree 1 -> 2",
        "result: edges 1 added, 0 removed, 0 changed; nodes 1 added, 0 removed, 1 changed; not checked 0 edges",
    ]);
    let before_it_happened = sandbox.json(["topology", "--between", "v1", "v2"]);
    assert_eq!(changes(&before_it_happened), Vec::<String>::new(), "counters that moved are no change");
    let posture = sandbox.json(["posture"]);
    assert_eq!(posture["totals"]["newlyNonCompliant"], 0);
    assert_eq!(posture["totals"]["before"], posture["totals"]["now"]);
}

#[test]
fn what_another_backend_listed_is_neither_new_nor_gone() {
    let sandbox = Sandbox::new();
    let seen_by = |basis: &str, at: u32, things: &[Json]| {
        let mut observation = observation_of("events", at, json!(COMPLETE), things);
        observation["basis"] = json!(basis);
        sandbox.observe(&observation).succeeded();
    };
    seen_by("one", 0, &[node("a"), node("b"), edge("a", "b", 1), user("ana", json!({"mfa": BAD}))]);
    sandbox.run(["baseline", "set"]).succeeded();
    seen_by("other", 1, &[node("a"), node("c"), edge("a", "c", 1), user("ben", json!({"mfa": BAD}))]);
    let answer = sandbox.json(["topology"]);
    assert_eq!(changes(&answer), Vec::<String>::new());
    assert_eq!(answer["notChecked"]["edges"], 2);
    assert!(answer["notChecked"]["reasons"][0]["reason"].as_str().unwrap().contains("another backend"));
    let posture = sandbox.json(["posture", "--fail-on-new"]);
    assert_eq!((&posture["totals"]["notChecked"], &posture["totals"]["newlyFixed"]), (&json!(2), &json!(0)));
}

#[test]
fn a_graph_can_be_drawn_and_other_answers_cannot() {
    let sandbox = rewired();
    let outputs = ["-o", "table", "-o", "svg=t.svg", "-o", "dot=t.dot", "-o", "mermaid=t.mmd", "-o", "markdown=t.md"];
    let draw = || {
        sandbox.run(["topology"].iter().chain(&outputs)).succeeded().prints(&["Topology"]);
        ["t.svg", "t.dot", "t.mmd", "t.md"].map(|name| fs::read_to_string(sandbox.path(name)).unwrap())
    };
    let drawn = draw();
    let [svg, dot, mermaid, markdown] = &drawn;
    for word in ["role=\"img\"", "aria-label=", "<title>", "prefers-color-scheme", "- old", "+ targets"] {
        assert!(svg.contains(word), "{word} is not in {svg}");
    }
    assert!(dot.starts_with("digraph topology {") && dot.contains("- old"));
    assert!(mermaid.starts_with("flowchart LR\n") && mermaid.contains("#45; old"));
    assert!(markdown.contains("```mermaid\nflowchart LR\n"));
    assert_eq!(draw()[..3], drawn[..3], "the same graph is drawn in the same bytes");
    evaluate(&sandbox, 2, json!(COMPLETE), &[user("ana", json!({"mfa": BAD}))]);
    for command in ["drift", "velocity", "posture", "log"] {
        let ran = sandbox.run([command, "-q", "-o", "svg=no.svg", "-o", "json"]);
        ran.refused(&["this command has no svg output"]);
        assert!(!sandbox.path("no.svg").exists());
    }
}

#[test]
fn hostile_names_stay_inside_every_format() {
    let sandbox = Sandbox::new();
    let names =
        ["\"];x-->y[\"", "</svg><script>alert(1)</script>", "a --> b\n```", "\u{202e}\u{1b}[2J", "\\\" -> z [\\\""];
    observe(&sandbox, 0, json!(COMPLETE), &[edge("a", "b", 1)]);
    sandbox.run(["baseline", "set"]).succeeded();
    let edges: Vec<Json> = names.iter().map(|name| edge("a", name, 1)).chain([edge("a", "b", 1)]).collect();
    observe(&sandbox, 1, json!(COMPLETE), &edges);
    let drawn = |format: &str| sandbox.run(["topology", "-o", format]).succeeded().out;
    let (svg, dot, mermaid, markdown) = (drawn("svg"), drawn("dot"), drawn("mermaid"), drawn("markdown"));
    assert!(!svg.contains("<script") && svg.matches("</svg>").count() == 1);
    assert_eq!(svg.matches("<g class=\"node ").count(), names.len() + 2);
    assert_eq!(dot.lines().filter(|line| line.starts_with("  n")).count(), names.len() * 2 + 4, "{dot}");
    assert!(mermaid.lines().all(|line| matches!(line.matches('"').count(), 0 | 2)), "{mermaid}");
    assert_eq!(markdown.matches("```").count(), 2, "{markdown}");
    for text in [svg, dot, mermaid] {
        assert!(!text.contains(['\u{202e}', '\u{1b}']));
    }
}

#[test]
fn links_between_network_resources_are_edges_when_asked_for() {
    let sandbox = Sandbox::new();
    let arn = |rest: &str| format!("arn:aws:ec2:us-east-1:123456789012:{rest}");
    let at = |kind: &str, id: &str, snapshot: Json| thing_at(kind, "aws/123456789012/us-east-1", id, snapshot);
    let network = |vpc: &str| {
        vec![
            at("AWS::EC2::VPC", &arn("vpc/vpc-1"), json!({})),
            at("AWS::EC2::VPC", &arn("vpc/vpc-2"), json!({})),
            at("AWS::EC2::Subnet", &arn("subnet/subnet-1"), json!({"vpcId": vpc})),
            at(
                "AWS::EC2::RouteTable",
                &arn("route-table/rtb-1"),
                json!({"vpcId": "vpc-1", "associatedSubnets": ["subnet-1"]}),
            ),
            at("AWS::EC2::Volume", &arn("volume/vol-1"), json!({"attachments": [{"instanceId": "i-unlisted"}]})),
            at("AWS::IAM::User", "arn:aws:iam::123456789012:user/u", json!({})),
        ]
    };
    sandbox.observe(&observation_of("adopt", 0, json!(COMPLETE), &network("vpc-1"))).succeeded();
    sandbox.run(["baseline", "set"]).succeeded();
    sandbox.observe(&observation_of("adopt", 1, json!(COMPLETE), &network("vpc-2"))).succeeded();
    sandbox.run(["topology"]).refused(&["has edges", "--network"]);
    let answer = sandbox.json(["topology", "--network"]);
    let (subnet, old, new) = (arn("subnet/subnet-1"), arn("vpc/vpc-1"), arn("vpc/vpc-2"));
    let found = changes(&answer);
    assert!(found.contains(&format!("{subnet}>{old} removed")), "{found:#?}");
    assert!(found.contains(&format!("{subnet}>{new} added")), "{found:#?}");
    assert_eq!(answer["after"]["edges"], 4);
    assert_eq!(answer["after"]["nodes"], 6, "five that were listed, one that is only named, and no user");
    let all = sandbox.json(["topology", "--network", "--all"]);
    let named = all["edges"].as_array().unwrap().iter().find(|edge| edge["from"] == arn("volume/vol-1")).unwrap();
    assert_eq!(named["to"], arn("instance/i-unlisted"));
}

fn user(id: &str, rules: Json) -> Json {
    thing_at("AWS::IAM::User", "aws/1/global", id, json!({"name": id, "rules": rules}))
}

const BAD: &str = "NON_COMPLIANT";
const GOOD: &str = "COMPLIANT";

fn evaluate(sandbox: &Sandbox, at: u32, coverage: Json, things: &[Json]) {
    sandbox.observe(&observation_of("config", at, coverage, things)).succeeded();
}

/// `ana` gets a second violation, `ben` is cured, `cleo` stays as she is.
fn evaluated() -> Sandbox {
    let sandbox = Sandbox::new();
    let cleo = user("cleo", json!({"mfa": BAD}));
    evaluate(
        &sandbox,
        0,
        json!(COMPLETE),
        &[user("ana", json!({"mfa": GOOD})), user("ben", json!({"mfa": BAD})), cleo.clone()],
    );
    sandbox.run(["baseline", "set"]).succeeded();
    let ana = user("ana", json!({"mfa": BAD, "keys": BAD, "age": "NOT_APPLICABLE"}));
    evaluate(&sandbox, 1, json!(COMPLETE), &[ana.clone(), user("ben", json!({"mfa": BAD})), cleo.clone()]);
    evaluate(&sandbox, 2, json!(COMPLETE), &[ana, user("ben", json!({})), cleo]);
    sandbox
}

fn violations(list: &Json) -> Vec<String> {
    let text = |one: &Json, name: &str| one[name].as_str().unwrap_or_default().to_owned();
    let each = list.as_array().unwrap().iter();
    each.map(|one| {
        format!("{} {} {}", text(one, "rule"), text(one, "canonicalId"), text(one, "since")).trim().to_owned()
    })
    .collect()
}

#[test]
fn posture_says_what_is_newly_violated_and_since_when_and_what_was_fixed() {
    let sandbox = evaluated();
    let answer = sandbox.json(["posture"]);
    assert_eq!(answer["schema"], "driftline.posture/v1");
    assert_eq!(
        violations(&answer["newlyNonCompliant"]),
        [format!("keys ana {}", minute(1)), format!("mfa ana {}", minute(1))]
    );
    assert_eq!(violations(&answer["newlyFixed"]), ["mfa ben"]);
    assert_eq!(answer["stillNonCompliant"]["count"], 1);
    assert_eq!(answer["stillNonCompliant"]["oldest"]["canonicalId"], "cleo");
    assert_eq!(answer["stillNonCompliant"]["oldest"]["since"], minute(0));
    let mfa = answer["rules"].as_array().unwrap().iter().find(|rule| rule["rule"] == "mfa").unwrap();
    assert_eq!(mfa["before"], json!({"compliant": 1, "nonCompliant": 2, "other": 0}));
    assert_eq!(mfa["now"], json!({"compliant": 0, "nonCompliant": 2, "other": 0}));
    assert_eq!(answer["totals"]["now"], json!({"compliant": 0, "nonCompliant": 3, "other": 1}));
    sandbox.run(["posture"]).succeeded().prints(&[
        "NEW 2",
        "+ keys  ana",
        "FIXED 1",
        "- mfa  ben",
        "result: 2 newly non-compliant, 1 fixed, 1 still non-compliant, 0 not checked; 3 non-compliant now, 2 before",
    ]);
    let lines = sandbox.run(["posture", "-o", "ndjson"]).succeeded().out;
    assert_eq!(lines.lines().count(), 3, "one line a rule");
    sandbox
        .run(["posture", "-o", "markdown"])
        .succeeded()
        .prints(&["| newly non-compliant | resource |", "| keys | ana |"]);
}

#[test]
fn posture_exits_with_two_only_when_asked_to_fail_on_something_new() {
    let sandbox = evaluated();
    sandbox.run(["posture"]).exited(0);
    sandbox.run(["posture", "--fail-on-new"]).exited(2);
    sandbox.run(["posture", "--fail-on-new", "--at", &minute(0)]).exited(0);
    sandbox.run(["posture", "--fail-on-new", "--since", &minute(1)]).exited(0);
    sandbox.run(["posture", "--fail-on-new", "--rule", "a*"]).exited(0);
    sandbox.run(["posture", "--fail-on-new", "--rule", "k*"]).exited(2);
    sandbox.run(["posture", "--rule", "nothing"]).refused(&["no rule is called `nothing`"]);
}

#[test]
fn the_course_over_time_has_a_point_for_every_version() {
    let sandbox = evaluated();
    // The observations are of a past January; the window is asked for.
    let answer = sandbox.json(["posture", "--since", &minute(0), "--at", &minute(2)]);
    let points = answer["series"].as_array().unwrap().iter();
    let points: Vec<(u64, u64)> =
        points.map(|one| (one["version"].as_u64().unwrap(), one["total"].as_u64().unwrap())).collect();
    assert_eq!(points, [(1, 2), (2, 4), (3, 3)]);
    sandbox
        .run(["posture", "--since", &minute(0)])
        .succeeded()
        .prints(&["over time: ▅█▇  2 -> 3 non-compliant in 3 versions"]);
}

#[test]
fn a_verdict_missing_from_a_listing_cut_short_was_not_fixed() {
    let sandbox = Sandbox::new();
    evaluate(
        &sandbox,
        0,
        json!(COMPLETE),
        &[user("ana", json!({"mfa": BAD, "keys": BAD})), user("ben", json!({"mfa": BAD}))],
    );
    sandbox.run(["baseline", "set"]).succeeded();
    let cut = json!([{"type": "*", "place": "aws/1/global", "outcome": "partial", "reason": "throttled"}]);
    evaluate(&sandbox, 1, cut, &[user("ana", json!({"mfa": BAD}))]);
    let answer = sandbox.json(["posture", "--fail-on-new"]);
    assert_eq!(violations(&answer["newlyFixed"]), Vec::<String>::new());
    let unchecked: Vec<&str> =
        answer["notChecked"].as_array().unwrap().iter().map(|one| one["canonicalId"].as_str().unwrap()).collect();
    assert_eq!(unchecked, ["ana", "ben"]);
    assert_eq!(answer["notChecked"][0]["reason"], "the live listing was partial: throttled");
    sandbox.run(["posture"]).succeeded().prints(&["NOT CHECKED 2"]);
}

#[test]
fn a_source_that_the_baseline_does_not_know_is_not_new_in_any_answer() {
    let sandbox = Sandbox::new();
    sandbox.observe_things(0, &[thing_at("Thing", "here", "x", json!({}))]);
    sandbox.run(["baseline", "set"]).succeeded();
    observe(&sandbox, 1, json!(COMPLETE), &[node("a"), node("b"), edge("a", "b", 1)]);
    evaluate(&sandbox, 1, json!(COMPLETE), &[user("ana", json!({"mfa": BAD}))]);
    let topology = sandbox.json(["topology"]);
    assert_eq!(changes(&topology), Vec::<String>::new());
    assert_eq!(topology["notChecked"]["edges"], 1);
    let posture = sandbox.json(["posture", "--fail-on-new"]);
    assert_eq!(posture["totals"]["newlyNonCompliant"], 0);
    assert_eq!(posture["totals"]["notChecked"], 1);
}
