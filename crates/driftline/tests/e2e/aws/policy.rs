//! What a run is allowed to do, what it does, and how it stops.

use std::collections::BTreeSet;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::{Value as Json, json};

use super::Cloud;
use crate::support::ran;

fn actions(policy: &Json) -> BTreeSet<String> {
    let statements = policy["Statement"].as_array().unwrap();
    let actions = statements.iter().flat_map(|statement| statement["Action"].as_array().unwrap());
    actions.map(|action| action.as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_dry_run_asks_nothing_and_its_policy_is_what_a_run_uses() {
    let Some(cloud) = Cloud::new() else { return };
    cloud.boto3(&["deploy"]);
    cloud.boto3(&["one_of_each"]);
    for observer in ["adopt", "inventory", "dns", "event-topology", "cloudformation"] {
        cloud.proxy.forget_calls();
        let plan = cloud.run(["-o", "json", "observe", observer, "--dry-run"]).succeeded().json();
        assert_eq!(cloud.calls_in_all(), 0, "a dry run made calls: {:?}", cloud.called());
        assert!(!cloud.sandbox.store().exists() || observer != "adopt", "a dry run made a store");
        cloud.run(["observe", observer, "--strict"]).succeeded();
        let used: BTreeSet<String> = cloud
            .proxy
            .calls()
            .iter()
            .map(|one| fake_aws::dialect::iam_action(&one.call.service, &one.call.operation))
            .collect();
        assert_eq!(actions(&plan["policy"]), used, "{observer}");
    }
}

#[test]
fn an_observer_only_reads() {
    let Some(cloud) = Cloud::new() else { return };
    cloud.boto3(&["deploy"]);
    cloud.proxy.forget_calls();
    for observer in ["adopt", "inventory", "dns", "event-topology", "cloudformation"] {
        cloud.run(["observe", observer]).succeeded();
    }
    let called = cloud.called();
    assert!(called.len() > 20, "{called:?}");
    for operation in called.keys() {
        let verb = operation.split(':').nth(1).unwrap();
        assert!(["Get", "List", "Describe"].iter().any(|read| verb.starts_with(read)), "{operation}");
    }
}

#[test]
fn an_interrupted_run_commits_nothing_half() {
    let Some(cloud) = Cloud::new() else { return };
    cloud.boto3(&["groups", "12"]);
    let page = json!({"match": {"operation": "DescribeSecurityGroups"}, "do": {"page": {"size": 4}}});
    cloud.rules(json!([page]));
    cloud.run(["observe", "adopt", "--strict"]).succeeded();
    cloud.run(["baseline", "set"]).succeeded();
    let before = cloud.sandbox.json(["log"]);

    let never = json!({"match": {"service": "ec2"}, "when": {"later_page": true}, "do": {"slow": {"ms": 60_000}}});
    cloud.rules(json!([page, never]));
    cloud.proxy.forget_calls();
    let mut command = cloud.command(["observe", "adopt"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // The first page has been answered and the second is being waited for.
    while !cloud.called().contains_key("ec2:DescribeSecurityGroups") {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    ran(&child.wait_with_output().unwrap()).exited(130);
    assert_eq!(cloud.sandbox.json(["log"]), before, "nothing was committed");
    cloud.sandbox.run(["verify"]).succeeded();
}
