//! `compare`: what was declared against what is live.

use serde_json::{Value as Json, json};

use crate::support::{Sandbox, observation_of};

const ZONE: &str = "AWS::Route53::HostedZone";

fn with_files(declared: &Json, live: &Json) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("declared.json", declared.to_string());
    sandbox.write("live.json", live.to_string());
    sandbox
}

fn compare<'a>(kind: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let mut arguments = vec!["compare", "--type", kind, "declared.json", "live.json"];
    arguments.extend(more);
    arguments
}

#[test]
fn a_difference_is_told_at_its_path_and_an_explained_one_with_what_explains_it() {
    let declared = json!({"DelaySeconds": "20", "RedrivePolicy": {"maxReceiveCount": 10}});
    let live = json!({"DelaySeconds": 20, "RedrivePolicy": {"maxReceiveCount": 12}, "Arn": "x"});
    let sandbox = with_files(&declared, &live);
    let ran = sandbox.run(compare("AWS::SQS::Queue", &[])).exited(2);
    ran.prints(&["~ /RedrivePolicy/maxReceiveCount: 10 -> 12", "/DelaySeconds is the same (schema, spelling)"]);
    sandbox.run(compare("AWS::SQS::Queue", &["--exit-zero"])).succeeded();
    let told = sandbox.run(compare("AWS::SQS::Queue", &["-o", "cfn"])).exited(2).json();
    let drift = &told["StackResourceDrifts"][0];
    assert_eq!(drift["StackResourceDriftStatus"], "MODIFIED");
    let difference = json!([{
        "PropertyPath": "/RedrivePolicy/maxReceiveCount", "ExpectedValue": "10", "ActualValue": "12",
        "DifferenceType": "NOT_EQUAL",
    }]);
    assert_eq!(drift["PropertyDifferences"], difference);
    sandbox.run(["compare", "declared.json", "live.json"]).refused(&["of which type"]);
    sandbox.run(["drift", "-o", "cfn"]).exited(1);
}

#[test]
fn the_transforms_of_the_second_document_work_as_they_are_written_there() {
    let sandbox = with_files(&json!({"Name": "example.com"}), &json!({"Name": "example.com."}));
    sandbox.run(compare(ZONE, &["--no-heuristics"])).succeeded().prints(&["(transform, transform)"]);
    // A type of one's own, without guesses: only a transform explains it.
    sandbox.run(compare("My::Own::Zone", &["--no-heuristics"])).exited(2);
    let schema =
        json!({"typeName": "My::Own::Zone", "propertyTransform": {"/properties/Name": "$join([Name, \".\"])"}});
    sandbox.write("schema.json", schema.to_string());
    sandbox.run(compare("My::Own::Zone", &["--no-heuristics", "--schema", "schema.json"])).succeeded();
    let both = "[[transform]]\ntype = \"My::Own::Zone\"\n\
                propertyTransform = { \"/properties/Name\" = '$join([Name, \".\"]) $OR $join([Name, \"test\"])' }\n";
    sandbox.write("driftline.toml", both);
    for live in ["example.com.", "example.comtest"] {
        sandbox.write("live.json", json!({"Name": live}).to_string());
        sandbox.run(compare("My::Own::Zone", &["--no-heuristics"])).succeeded();
    }
    sandbox.write("live.json", json!({"Name": "example.org."}).to_string());
    sandbox.run(compare("My::Own::Zone", &["--no-heuristics"])).exited(2);
    sandbox.write("driftline.toml", both.replace("$join([Name, \"test\"])", "$join("));
    sandbox.run(compare("My::Own::Zone", &[])).refused(&["[[transform]] 1", "$join("]);
}

#[test]
fn a_batch_answers_every_line_whatever_is_in_it() {
    let sandbox = Sandbox::new();
    let lines = [
        json!({"type": ZONE, "declared": {"Name": "a"}, "live": {"Name": "a."}}).to_string(),
        json!({"type": ZONE, "declared": {"Name": "a"}, "live": {"Name": "b."}}).to_string(),
        json!({"type": ZONE, "declared": {"Name": "a"}, "live": null}).to_string(),
        json!({"type": ZONE, "declared": {"Name": "a"}}).to_string(),
        "nonsense".to_owned(),
    ];
    let ran = sandbox.feed(lines.join("\n").as_bytes(), ["compare", "--batch"]).succeeded();
    let answers: Vec<Json> = ran.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let statuses: Vec<&Json> = answers.iter().map(|answer| &answer["status"]).collect();
    assert_eq!(
        statuses,
        ["IN_SYNC", "MODIFIED", "DELETED", "NOT_CHECKED"]
            .map(Json::from)
            .iter()
            .chain([&Json::Null])
            .collect::<Vec<_>>()
    );
    assert_eq!(answers[0]["excused"][0]["tier"], "transform");
    assert_eq!(answers[1]["differences"][0]["PropertyPath"], "/Name");
    assert!(answers[4]["error"]["message"].as_str().is_some());
}

#[test]
fn two_sources_are_compared_on_what_the_first_declares() {
    let sandbox = Sandbox::new();
    let thing =
        |id: &str, snapshot: Json| json!({"canonicalId": id, "resourceType": "AWS::SQS::Queue", "snapshot": snapshot});
    let observe = |source: &str, coverage: Json, things: &[Json]| {
        let observation = json!({
            "schema": "driftline.observation/v1", "source": source, "takenAt": "2026-01-01T00:00:00Z",
            "coverage": coverage, "resources": things,
        });
        sandbox.observe(&observation).succeeded();
    };
    let arn = |name: &str| format!("arn:aws:sqs:us-east-1:123456789012:{name}");
    observe(
        "declared",
        json!("complete"),
        &[
            thing(&arn("a"), json!({"DelaySeconds": 1})),
            thing(&arn("b"), json!({"DelaySeconds": 1})),
            thing(&arn("c"), json!({"DelaySeconds": 1})),
        ],
    );
    let live = [thing(&arn("a"), json!({"DelaySeconds": 1, "Extra": 1})), thing(&arn("b"), json!({"DelaySeconds": 2}))];
    observe("seen", json!("complete"), &live);
    let report = sandbox.json(["compare", "--declared", "declared", "--live", "seen", "--exit-zero"]);
    let statuses: Vec<&Json> = report["resources"].as_array().unwrap().iter().map(|one| &one["status"]).collect();
    assert_eq!(statuses, ["IN_SYNC", "MODIFIED", "DELETED"]);
}

#[test]
fn a_live_source_with_a_form_of_its_own_is_not_compared_name_by_name() {
    let sandbox = Sandbox::new();
    let id = "arn:aws:lambda:us-east-1:123456789012:function:f";
    for (source, snapshot) in
        [("declared", json!({"Handler": "a.b", "Timeout": 3})), ("seen", json!({"handler": "a.b", "timeout": 3}))]
    {
        let function = json!({"canonicalId": id, "resourceType": "AWS::Lambda::Function", "snapshot": snapshot});
        sandbox.observe(&observation_of(source, 0, json!("complete"), &[function])).succeeded();
    }
    let report = sandbox.json(["compare", "--declared", "declared", "--live", "seen"]);
    let one = &report["resources"][0];
    assert_eq!(one["status"], "NOT_CHECKED", "{report:#}");
    assert_eq!(one["differences"], json!([]));
    assert!(one["reason"].as_str().unwrap().contains("observe cloud-control --types AWS::Lambda::Function"), "{one}");
}

#[test]
fn a_transform_of_ones_own_holds_in_drift_of_any_source() {
    let sandbox = Sandbox::new();
    let zone = |name: &str, suffix: &str| json!({"canonicalId": "z", "resourceType": "My::Zone", "snapshot": {"Name": name, "Suffix": suffix, "Deep": {"A": 1}}});
    sandbox.observe_things(0, &[zone("example.com", ".")]);
    sandbox.run(["baseline", "set"]).succeeded();
    sandbox.observe_things(1, &[zone("example.com.", ".")]);
    sandbox.run(["drift"]).exited(2);
    // It reads another property, which did not change and so is not among what differs.
    let config = "stale_after = \"36500d\"\n[[transform]]\ntype = \"My::Zone\"\n\
                  propertyTransform = { \"/properties/Name\" = '$lowercase(Name) $OR Name & Suffix' }\n";
    sandbox.write("driftline.toml", config);
    let report = sandbox.run(["drift", "-o", "json", "--all"]).succeeded().json();
    let excused = &report["resources"][0]["excused"][0];
    assert_eq!([&excused["path"], &excused["rule"]], [&json!("/Name"), &json!("transform")], "{report:#}");
    sandbox.run(["explain", "z"]).succeeded().prints(&["the same in another form", "[[transform]] 1"]);
    sandbox.observe_things(2, &[zone("example.org.", ".")]);
    let report = sandbox.drift([]);
    assert_eq!(report["resources"][0]["changes"][0]["path"], "/Name");
}

#[test]
fn a_guess_can_be_switched_off_by_name_by_type_or_altogether() {
    let kind = "AWS::Batch::ComputeEnvironment";
    let sandbox = with_files(&json!({"Type": "managed"}), &json!({"Type": "MANAGED"}));
    sandbox.run(compare(kind, &[])).succeeded().prints(&["(heuristic, case)"]);
    sandbox.run(compare(kind, &["--no-heuristics"])).exited(2);
    for config in ["without = [\"case\"]", "not_for = [\"AWS::Batch::*\"]"] {
        sandbox.write("driftline.toml", format!("[heuristics]\n{config}\n"));
        sandbox.run(compare(kind, &[])).exited(2);
    }
    sandbox.write("driftline.toml", "[heuristics]\nwithout = [\"cas\"]\n");
    sandbox.run(compare(kind, &[])).refused(&["`cas` is not a heuristic", "--list-heuristics"]);
    let none = Sandbox::new();
    none.run(["compare", "--list-heuristics"]).succeeded().prints(&["case", "version prefix"]);
}
