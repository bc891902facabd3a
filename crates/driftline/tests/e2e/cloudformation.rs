//! A template and its stack, against what is live.

use serde_json::{Value as Json, json};

use crate::support::Sandbox;

const TEMPLATE: &str = r"
Parameters:
  Delay: {Type: Number, Default: 5}
  Token: {Type: String, NoEcho: true, Default: hunter2}
Resources:
  Dead:
    Type: AWS::SQS::Queue
  Jobs:
    Type: AWS::SQS::Queue
    Properties:
      QueueName: !Sub '${AWS::StackName}-jobs'
      DelaySeconds: !Ref Delay
      VisibilityTimeout: 30
      KmsMasterKeyId: !ImportValue shared-key
      RedrivePolicy:
        deadLetterTargetArn: !GetAtt Dead.Arn
        maxReceiveCount: 3
      Tags: [{Key: token, Value: !Ref Token}]
  Topic:
    Type: AWS::SNS::Topic
";

const STACK: &str = "arn:aws:cloudformation:us-east-1:123456789012:stack/app/1";

fn queue(name: &str) -> String {
    format!("arn:aws:sqs:us-east-1:123456789012:{name}")
}

fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    let address = |name: &str| format!("https://sqs.us-east-1.amazonaws.com/123456789012/{name}");
    sandbox.write("template.yaml", TEMPLATE);
    let parameters = json!([
        {"ParameterKey": "Delay", "ParameterValue": "10"}, {"ParameterKey": "Token", "ParameterValue": "****"},
    ]);
    let stack = json!({"StackName": "app", "StackId": STACK, "Parameters": parameters,
        "Tags": [{"Key": "team", "Value": "payments"}]});
    sandbox.write("stack.json", json!({"Stacks": [stack]}).to_string());
    let resource = |logical: &str, kind: &str, physical: String| {
        json!({"StackName": "app", "StackId": STACK, "LogicalResourceId": logical, "PhysicalResourceId": physical,
            "ResourceType": kind, "ResourceStatus": "CREATE_COMPLETE"})
    };
    let resources = [
        resource("Dead", "AWS::SQS::Queue", address("app-dead")),
        resource("Jobs", "AWS::SQS::Queue", address("app-jobs")),
        resource("Topic", "AWS::SNS::Topic", "arn:aws:sns:us-east-1:123456789012:app".to_owned()),
    ];
    sandbox.write("resources.json", json!({"StackResources": resources}).to_string());
    let live =
        |id: &str, kind: &str, snapshot: Json| json!({"canonicalId": id, "resourceType": kind, "snapshot": snapshot});
    let jobs = json!({
        "QueueName": "app-jobs", "DelaySeconds": 10, "VisibilityTimeout": 45, "KmsMasterKeyId": "alias/shared",
        "RedrivePolicy": {"deadLetterTargetArn": queue("app-dead"), "maxReceiveCount": 3},
        "Tags": [{"Key": "team", "Value": "payments"}, {"Key": "token", "Value": "s3cret"},
            {"Key": "aws:cloudformation:stack-name", "Value": "app"}],
    });
    let things = [
        live(&queue("app-dead"), "AWS::SQS::Queue", json!({"QueueName": "app-dead"})),
        live(&queue("app-jobs"), "AWS::SQS::Queue", jobs),
    ];
    let observation = json!({"schema": "driftline.observation/v1", "source": "seen", "coverage": "complete",
        "takenAt": "2026-01-01T00:00:00Z", "resources": things});
    sandbox.observe(&observation).succeeded();
    let documents = ["template.yaml", "stack.json", "resources.json", "--name", "cloudformation/app"];
    sandbox.run(["observe", "cloudformation"].iter().chain(&documents)).succeeded().prints(&["3 resources"]);
    sandbox
}

#[test]
fn what_changed_since_the_template_was_deployed_is_found_and_the_unknown_is_not_drift() {
    let sandbox = sandbox();
    let compare = ["compare", "--declared", "cloudformation/app", "--live", "seen"];
    sandbox.run(compare).exited(2);
    let report = sandbox.json(compare.iter().chain(&["--exit-zero"]));
    let resources = report["resources"].as_array().unwrap();
    let of = |end: &str| resources.iter().find(|one| one.to_string().contains(end)).unwrap();
    let jobs = resources.iter().find(|one| one["status"] == "MODIFIED").unwrap();
    let differences = jobs["differences"].as_array().unwrap();
    assert_eq!(differences.len(), 1, "{differences:?}");
    assert!(differences[0].to_string().contains("VisibilityTimeout"), "{differences:?}");
    let unknown: Vec<&Json> =
        jobs["excused"].as_array().unwrap().iter().filter(|one| one["rule"] == "unknown").collect();
    assert_eq!(unknown.len(), 2, "{jobs}");
    assert_eq!(of("123456789012:app-dead\"")["status"], "IN_SYNC");
    assert_eq!(of("sns:us-east-1")["status"], "DELETED");
    let counts: Vec<&Json> = resources.iter().map(|one| &one["status"]).collect();
    assert_eq!(counts.len(), 3);
}

#[test]
fn a_template_claims_what_its_stack_made_and_keeps_no_secret() {
    let sandbox = sandbox();
    let owned = sandbox.json(["ownership", "--all"]).to_string();
    assert!(owned.contains("app/Jobs") && owned.contains("\"cloudformation\""), "{owned}");
    sandbox.run(["drift", "--across", "cloudformation/app", "seen", "--exit-zero"]).succeeded();
    let shown = sandbox.json(["drift", "--across", "cloudformation/app", "seen", "--exit-zero"]).to_string();
    assert!(!shown.contains("$unknown") && !shown.contains("KmsMasterKeyId"), "{shown}");
    assert!(!owned.contains("hunter2") && !shown.contains("hunter2"));
    sandbox.run(["observe", "cloudformation", "stack.json"]).refused(&["there is no template"]);
    sandbox.run(["doctor", "--determinism", "template.yaml"]).refused(&["only JSON can be shuffled"]);
    sandbox.write("template.json", json!({"TemplateBody": TEMPLATE}).to_string());
    let documents = ["template.json", "stack.json", "resources.json"];
    sandbox.run(["doctor", "--determinism"].iter().chain(&documents)).succeeded().prints(&["is deterministic"]);
}
