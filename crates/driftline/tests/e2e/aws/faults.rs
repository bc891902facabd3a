//! AWS at its worst: what could not be seen is never called gone, and what could be seen is right.

use serde_json::{Value as Json, json};

use super::{Cloud, ids_with};
use crate::support::{counts, statuses};

const GROUPS: &str = "AWS::EC2::SecurityGroup";

/// Stream, number of resources and digest of each newest version: equal where the same was seen.
fn seen(cloud: &Cloud) -> Vec<(Json, Json, Json)> {
    let log = cloud.sandbox.json(["log"]);
    let versions = log["versions"].as_array().unwrap();
    versions.iter().map(|one| (one["source"].clone(), one["resources"].clone(), one["digest"].clone())).collect()
}

/// An account with a dozen groups, a baseline of them, and a proxy that hands them out in pages of four.
fn twelve_groups() -> Option<(Cloud, Vec<String>)> {
    let cloud = Cloud::new()?;
    let groups = cloud.boto3(&["groups", "12"]);
    let ids = groups.as_array().unwrap().iter().map(|id| id.as_str().unwrap().to_owned()).collect();
    cloud.rules(json!([pages_of_four()]));
    cloud.run(["observe", "adopt", "--strict", "--types", GROUPS]).succeeded();
    cloud.run(["baseline", "set"]).succeeded();
    Some((cloud, ids))
}

fn pages_of_four() -> Json {
    json!({"match": {"operation": "DescribeSecurityGroups"}, "do": {"page": {"size": 4}}})
}

#[test]
fn with_a_third_of_all_calls_throttled_nothing_is_lost() {
    let Some(cloud) = Cloud::new() else { return };
    cloud.boto3(&["deploy"]);
    let observe = |cloud: &Cloud| {
        for observer in ["adopt", "inventory", "dns", "event-topology"] {
            cloud.run(["observe", observer, "--strict", "--max-calls", "200"]).succeeded();
        }
    };
    cloud.proxy.forget_calls();
    observe(&cloud);
    let (expected, calls) = (seen(&cloud), cloud.calls_in_all());
    assert!(expected.iter().any(|(_, resources, _)| resources.as_u64() > Some(5)), "{expected:?}");

    let cloud = cloud.with_new_folder();
    cloud.rules(json!([{"when": {"probability": 0.3}, "do": {"refuse": "throttle"}}]));
    cloud.proxy.forget_calls();
    observe(&cloud);
    assert_eq!(seen(&cloud), expected);
    let throttled = cloud.calls_with("injected throttle");
    assert!(throttled > calls / 10, "only {throttled} of {calls} calls were throttled: the test shows nothing");
    assert_eq!(cloud.calls_in_all(), calls + throttled, "each call was made again once for each time it was refused");
}

#[test]
fn a_region_that_is_denied_is_not_checked_and_the_others_are_right() {
    let Some(cloud) = Cloud::new() else { return };
    let regions = ["eu-central-1", "eu-west-1", "us-east-1"];
    let made: Vec<Json> = regions.iter().map(|region| cloud.boto3_in(region, &["groups", "2"])).collect();
    let observe = ["observe", "adopt", "--region", "eu-central-1,eu-west-1,us-east-1"];
    cloud.run(observe).succeeded();
    cloud.run(["baseline", "set"]).succeeded();

    // One thing really is gone, in a region that answers; one in the region that does not.
    cloud.boto3_in("eu-central-1", &["delete_group", made[0][0].as_str().unwrap()]);
    cloud.boto3_in("eu-west-1", &["delete_group", made[1][0].as_str().unwrap()]);
    cloud.rules(json!([{"match": {"service": "ec2", "region": "eu-west-1"}, "do": {"refuse": "deny"}}]));
    cloud.run(observe).succeeded().says(&["eu-west-1", "access denied", "ec2:DescribeSecurityGroups"]);
    cloud.run(observe.iter().chain(&["--strict"])).exited(3);
    let report = cloud.drift();
    let gone = format!("arn:aws:ec2:eu-central-1:{}:security-group/{}", cloud.account, made[0][0].as_str().unwrap());
    assert_eq!(ids_with(&report, "drifted").into_iter().collect::<Vec<_>>(), [gone], "{report:#}");
    let statuses = statuses(&report);
    let in_region: Vec<_> = statuses.iter().filter(|(id, _)| id.contains(":eu-west-1:")).collect();
    assert!(in_region.len() >= 3, "{in_region:?}");
    assert!(in_region.iter().all(|(_, status)| *status == "not_checked"), "{in_region:?}");
    for (id, status) in &statuses {
        let answered = id.contains(":us-east-1:") || id.contains(":eu-central-1:");
        assert!(!answered || *status != "not_checked", "{id}");
    }
}

/// Observes while every page after the first fails like this, and fails if anything is then called gone.
fn cut_after_the_first_page(cloud: &Cloud, what: &Json, reason: &str) {
    let later = json!({"match": {"service": "ec2"}, "when": {"later_page": true}, "do": what});
    cloud.rules(json!([pages_of_four(), later]));
    cloud.run(["observe", "adopt", "--types", GROUPS]).succeeded().says(&[reason]);
    let report = cloud.drift();
    let [drifted, unknown, not_checked, in_sync] = counts(&report);
    assert_eq!([drifted, unknown], [0, 0], "{what}: {report:#}");
    // Four were seen on the first page; of the others nothing is known.
    assert_eq!([in_sync, not_checked], [4, 9], "{what}: {report:#}");
}

#[test]
fn a_page_that_is_refused_deletes_nothing() {
    let Some((cloud, groups)) = twelve_groups() else { return };
    let bad = "refused: ec2 DescribeSecurityGroups answered InvalidNextToken";
    cut_after_the_first_page(&cloud, &json!({"refuse": "bad_token"}), bad);
    let denied = "access denied: ec2:DescribeSecurityGroups is not allowed";
    cut_after_the_first_page(&cloud, &json!({"refuse": "deny"}), denied);
    // And when all of it can be read again, what is gone is gone.
    cloud.boto3(&["delete_group", &groups[11]]);
    cloud.rules(json!([pages_of_four()]));
    cloud.run(["observe", "adopt", "--strict", "--types", GROUPS]).succeeded();
    assert_eq!(counts(&cloud.drift()), [1, 0, 0, 12]);
}

#[test]
fn a_page_that_breaks_off_at_every_attempt_deletes_nothing() {
    let Some((cloud, _)) = twelve_groups() else { return };
    cut_after_the_first_page(&cloud, &json!("cut_reply"), "unreachable: no connection for ec2 DescribeSecurityGroups");
}

#[test]
fn a_page_that_is_throttled_at_every_attempt_deletes_nothing() {
    let Some((cloud, _)) = twelve_groups() else { return };
    let reason = "throttled: ec2 DescribeSecurityGroups was refused at every attempt";
    cut_after_the_first_page(&cloud, &json!({"refuse": "throttle"}), reason);
}

#[test]
fn an_item_that_comes_on_two_pages_is_one_resource() {
    let Some((cloud, _)) = twelve_groups() else { return };
    let mut rule = pages_of_four();
    rule["do"]["page"]["overlap"] = json!(2);
    cloud.rules(json!([rule]));
    cloud.run(["observe", "adopt", "--strict", "--types", GROUPS]).succeeded();
    assert_eq!(counts(&cloud.drift()), [0, 0, 0, 13]);
}

#[test]
fn a_web_page_with_status_500_is_unavailable_and_not_an_empty_account() {
    let Some((cloud, _)) = twelve_groups() else { return };
    cloud.rules(json!([{"match": {"operation": "DescribeSecurityGroups"}, "do": "html"}]));
    cloud.run(["observe", "adopt", "--types", GROUPS]).succeeded().says(&["unavailable: ec2 DescribeSecurityGroups"]);
    assert_eq!(counts(&cloud.drift()), [0, 0, 13, 0]);
}

#[test]
fn replies_that_are_lost_once_or_late_are_asked_for_again() {
    let Some((cloud, _)) = twelve_groups() else { return };
    for what in
        [json!("lose_reply"), json!("cut_reply"), json!("unreachable"), json!("html"), json!({"refuse": "internal"})]
    {
        let once = json!({"match": {"service": "ec2"}, "when": {"calls": [1, 2, 4]}, "do": what});
        cloud.rules(json!([pages_of_four(), once, {"match": {"service": "ec2"}, "do": {"slow": {"ms": 20}}}]));
        cloud.proxy.forget_calls();
        cloud.run(["observe", "adopt", "--strict", "--types", GROUPS]).succeeded();
        assert_eq!(counts(&cloud.drift()), [0, 0, 0, 13], "{what}");
        let injected: u64 = cloud
            .proxy
            .calls()
            .iter()
            .filter(|one| one.call.outcome.starts_with("injected"))
            .map(|one| one.calls)
            .sum();
        assert_eq!(injected, 3, "{what}");
    }
}

#[test]
fn a_region_that_is_not_enabled_is_said_to_be_just_that() {
    let Some(cloud) = Cloud::new() else { return };
    cloud.rules(json!([{"match": {"region": "ap-east-1"}, "do": {"refuse": "region_disabled"}}]));
    let ran = cloud.run(["observe", "adopt", "--region", "us-east-1,ap-east-1", "--types", GROUPS]).succeeded();
    ran.says(&["ap-east-1", "region disabled"]);
}

#[test]
fn credentials_that_have_run_out_commit_nothing() {
    let Some((cloud, _)) = twelve_groups() else { return };
    let before = seen(&cloud);
    cloud.rules(json!([{"do": {"refuse": "expired_credentials"}}]));
    cloud.run(["observe", "adopt"]).refused(&["ExpiredToken"]);
    assert_eq!(seen(&cloud), before);
}

#[test]
fn more_than_a_thousand_queues_are_all_seen() {
    let Some(cloud) = Cloud::new() else { return };
    cloud.boto3(&["queues", "1100"]);
    let observe = ["observe", "inventory", "--strict", "--types", "AWS::SQS::Queue"];
    cloud.proxy.forget_calls();
    cloud.run(observe).succeeded();
    assert_eq!(cloud.called()["sqs:ListQueues"], 2, "one call would have shown a thousand and said nothing");
    cloud.run(["baseline", "set"]).succeeded();
    assert_eq!(counts(&cloud.drift()), [0, 0, 0, 1_100]);

    // The last one is on the second page. If that page fails, it is not gone; if it comes, it is.
    cloud.boto3(&["delete_queue", "queue-01099"]);
    cloud.rules(
        json!([{"match": {"operation": "ListQueues"}, "when": {"later_page": true}, "do": {"refuse": "bad_token"}}]),
    );
    cloud.run(["observe", "inventory", "--types", "AWS::SQS::Queue"]).succeeded();
    assert_eq!(counts(&cloud.drift()), [0, 0, 100, 1_000]);
    cloud.rules(json!([]));
    cloud.run(observe).succeeded();
    assert_eq!(counts(&cloud.drift()), [1, 0, 0, 1_099]);
}

#[test]
fn resource_explorer_is_read_past_a_thousand() {
    let Some(cloud) = Cloud::new() else { return };
    cloud.fixture_file(include_str!("../../../../fake-aws/fixtures/resource-explorer.json"));
    cloud.run(["observe", "inventory", "--scan", "resource-explorer", "--strict"]).succeeded();
    assert_eq!(seen(&cloud)[0].1, 1_500);
    assert!(!cloud.called().contains_key("resource-explorer-2:Search"), "it ends after a thousand");
}

#[test]
fn cloud_control_is_listed_and_read_one_by_one() {
    let Some(cloud) = Cloud::new() else { return };
    cloud.fixture_file(include_str!("../../../../fake-aws/fixtures/cloud-control.json"));
    // The third is gone between the list and the look: it is not there, and that is no failure.
    cloud.run(["observe", "cloud-control", "--types", "AWS::SQS::Queue", "--strict"]).succeeded();
    assert_eq!(seen(&cloud)[0].1, 2);
    assert_eq!(cloud.called()["cloudcontrolapi:GetResource"], 3);
}

#[test]
fn every_verdict_of_config_is_read_and_one_that_is_refused_resolves_nothing() {
    let Some(cloud) = Cloud::new() else { return };
    cloud.fixture_file(include_str!("../../../../fake-aws/fixtures/config.json"));
    cloud.run(["observe", "config", "--strict"]).succeeded();
    assert_eq!(seen(&cloud)[0].1, 130);
    cloud.run(["baseline", "set"]).succeeded();
    cloud.rules(json!([{"match": {"operation": "GetComplianceDetailsByConfigRule"}, "when": {"later_page": true}, "do": {"refuse": "bad_token"}}]));
    cloud.run(["observe", "config"]).succeeded();
    let [drifted, unknown, not_checked, _] = counts(&cloud.drift());
    assert_eq!([drifted, unknown, not_checked], [0, 0, 130]);
}

#[test]
fn a_budget_of_calls_is_kept_and_what_it_does_not_reach_is_not_gone() {
    let Some((cloud, _)) = twelve_groups() else { return };
    cloud.proxy.forget_calls();
    cloud.run(["observe", "adopt", "--types", GROUPS, "--max-calls", "3"]).succeeded().says(&["budget"]);
    assert!(cloud.calls_in_all() <= 3, "{:?}", cloud.called());
    assert_eq!(counts(&cloud.drift())[0], 0);
}

#[test]
fn a_stack_that_cannot_be_read_is_not_checked_and_the_others_are_right() {
    let Some(cloud) = Cloud::new() else { return };
    cloud.boto3(&["deploy"]);
    cloud.run(["observe", "cloudformation", "--strict"]).succeeded();
    cloud.run(["baseline", "set"]).succeeded();
    let before = cloud.drift();
    let in_sync = counts(&before)[3];
    assert!(in_sync > 10, "{before:#}");
    cloud.rules(json!([{"match": {"operation": "GetTemplate"}, "do": {"refuse": "deny"}}]));
    let observe = ["observe", "cloudformation"];
    cloud.run(observe).succeeded().says(&["access denied: cloudformation:GetTemplate is not allowed"]);
    cloud.run(observe.iter().chain(&["--strict"])).exited(3);
    // The stack itself was listed; what it declares was not looked at, and is not gone.
    let [drifted, unknown, not_checked, still] = counts(&cloud.drift());
    assert_eq!([drifted, unknown, not_checked, still], [0, 0, in_sync - 1, 1]);
    cloud.rules(json!([{"match": {"operation": "ListExports"}, "do": {"refuse": "deny"}}]));
    cloud.run(observe).succeeded().says(&["exports: access denied: cloudformation:ListExports is not allowed"]);
    assert_eq!(counts(&cloud.drift()), [0, 0, 0, in_sync]);
}

#[test]
fn a_call_is_tried_as_often_as_is_asked_for() {
    let Some(cloud) = Cloud::new() else { return };
    cloud.rules(json!([{"match": {"service": "ec2"}, "do": {"refuse": "throttle"}}]));
    for attempts in ["1", "3"] {
        cloud.proxy.forget_calls();
        let observe = ["observe", "adopt", "--types", "AWS::EC2::VPC", "--attempts", attempts];
        cloud.run(observe).succeeded().says(&["throttled: ec2 DescribeVpcs was refused at every attempt"]);
        assert_eq!(cloud.called()["ec2:DescribeVpcs"].to_string(), attempts);
    }
    cloud.run(["observe", "adopt", "--attempts", "0"]).exited(1);
}

#[test]
fn an_index_that_knows_less_makes_nothing_gone() {
    let Some(cloud) = Cloud::new() else { return };
    let arn = |name: &str| format!("arn:aws:sqs:us-east-1:{{account}}:{name}");
    let row = |name: &str| {
        json!({"arn": arn(name), "resourceType": "AWS::SQS::Queue", "awsRegion": "us-east-1", "accountId": "{account}",
            "tags": [{"key": "team", "value": "ops"}]})
        .to_string()
    };
    let tagged = json!({"ResourceARN": arn("one"), "Tags": [{"Key": "team", "Value": "ops"}]});
    let page = |size: u32, token: &str| json!({"default": size, "max": 100, "size_in": token});
    let mut of_tags = page(100, "ResourcesPerPage");
    of_tags["token_in"] = json!("PaginationToken");
    of_tags["token_out"] = json!("PaginationToken");
    cloud.fixtures(json!([
        {"match": {"service": "config", "operation": "SelectResourceConfig"},
         "listing": {"items": "Results", "entries": [row("one"), row("two"), row("three")], "page": page(2, "")}},
        {"match": {"service": "tagging", "operation": "GetResources"},
         "listing": {"items": "ResourceTagMappingList", "entries": [tagged], "page": of_tags}},
    ]));
    let scan = |index: &str| cloud.run(["observe", "inventory", "--scan", index, "--strict"]).succeeded();
    scan("config");
    cloud.run(["baseline", "set"]).succeeded();
    assert_eq!(seen(&cloud)[0].1, 3);
    assert_eq!(cloud.called()["config:SelectResourceConfig"], 2, "{:?}", cloud.called());
    // Two queues have no tags: the tagging API has never heard of them.
    scan("tag-api");
    let [drifted, unknown, not_checked, _] = counts(&cloud.drift());
    assert_eq!([drifted, unknown, not_checked], [0, 0, 2], "what the other index has never heard of is not gone");
    scan("config");
    assert_eq!(counts(&cloud.drift()), [0, 0, 0, 3]);
    cloud.run(["observe", "inventory", "--scan", "guess"]).refused(&["resource-explorer, config, tag-api"]);
}
