//! `schema`: one type, all types, and names that are nearly right.

use serde_json::json;

use crate::support::Sandbox;

#[test]
fn schema_tells_what_is_known_of_a_type_and_what_follows() {
    let sandbox = Sandbox::new();
    let table = sandbox.run(["schema", "aws::route53::hostedzone"]).succeeded();
    table.prints(&[
        "AWS::Route53::HostedZone",
        "named by",
        "/Id",
        "transform",
        "$lowercase($join([Name, \".\"]))",
        "cfn-lint",
    ]);
    let sheet = sandbox.json(["schema", "AWS::Route53::HostedZone", "-o", "json"]);
    assert_eq!(sheet["schema"], "driftline.schema/v1");
    assert_eq!(sheet["type"], "AWS::Route53::HostedZone");
    assert_eq!(sheet["primaryIdentifier"], json!(["/Id"]));
    assert_eq!(sheet["transforms"][0]["alternatives"].as_array().map(Vec::len), Some(4));
    let lines = sandbox.run(["schema", "AWS::Route53::HostedZone", "-o", "ndjson"]).succeeded();
    assert_eq!(lines.out.lines().count(), sheet["rules"].as_array().map_or(0, Vec::len));
    sandbox.run(["schema", "AWS::DynamoDB::Table", "-o", "markdown"]).succeeded().prints(&["not as the schema says"]);
    assert!(!sandbox.store().exists(), "it asks no store");
}

#[test]
fn a_type_without_a_schema_is_refused_with_names_that_are_near() {
    let sandbox = Sandbox::new();
    sandbox
        .run(["schema", "AWS::S3::Buket"])
        .refused(&["no schema for `AWS::S3::Buket`", "did you mean `AWS::S3::Bucket`?"]);
    sandbox.run(["schema", "Custom::Something::Else"]).refused(&["no schema", "--list"]);
    sandbox.run(["schema"]).refused(&["which type?", "--list"]);
}

#[test]
fn all_types_or_those_that_match_are_listed() {
    let sandbox = Sandbox::new();
    let all = sandbox.run(["schema", "--list"]).succeeded();
    assert_eq!(all.out.lines().count(), 1_884);
    let some = sandbox.json(["schema", "--list", "aws::sqs::*", "-o", "json"]);
    assert_eq!(some["types"], json!(["AWS::SQS::Queue", "AWS::SQS::QueueInlinePolicy", "AWS::SQS::QueuePolicy"]));
    sandbox.run(["schema", "--list", "Nobody::*"]).refused(&["no type is called"]);
}
