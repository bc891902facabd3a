//! The first document's experiment, end to end and live.

use std::collections::BTreeSet;

use serde_json::json;

use super::{Cloud, changes, ids_with};
use crate::support::{counts, resource};

const OBSERVERS: [&str; 4] = ["adopt", "inventory", "dns", "event-topology"];

/// Every observer once; each must have seen all that it looked at.
fn observe_all(cloud: &Cloud) {
    for observer in OBSERVERS {
        cloud.run(["observe", observer, "--strict"]).succeeded();
    }
}

#[test]
fn the_experiment_of_the_first_document_finds_its_three_interventions_and_nothing_else() {
    let Some(cloud) = Cloud::new() else { return };
    let ids = cloud.boto3(&["deploy"]);
    assert_eq!(ids.as_object().unwrap().len(), 17, "{ids}");
    let account = &cloud.account;

    observe_all(&cloud);
    cloud.run(["baseline", "set"]).succeeded();
    observe_all(&cloud);
    let report = cloud.run(["-o", "json", "drift", "--strict"]).succeeded().json();
    let [drifted, unknown, not_checked, in_sync] = counts(&report);
    assert_eq!([drifted, unknown, not_checked], [0, 0, 0], "{report:#}");
    assert!(in_sync >= 17, "{in_sync} resources are in sync");

    let text = |name: &str| ids[name].as_str().unwrap();
    cloud.boto3(&["intervene", text("Group"), text("Queue")]);
    observe_all(&cloud);
    let report = cloud.run(["-o", "json", "drift"]).exited(2).json();

    let group = format!("arn:aws:ec2:us-east-1:{account}:security-group/{}", text("Group"));
    let function = format!("arn:aws:lambda:us-east-1:{account}:function:orders");
    let rule = format!("arn:aws:events:us-east-1:{account}:rule/orders");
    let drifted: BTreeSet<String> = [&group, &function, &rule].into_iter().cloned().collect();
    assert_eq!(ids_with(&report, "drifted"), drifted, "{report:#}");
    let unknown = ids_with(&report, "unknown");
    assert_eq!(unknown.len(), 1, "the one new edge: {report:#}");
    assert!(unknown.iter().all(|id| id.contains("orders")), "{unknown:?}");
    assert!(ids_with(&report, "not_checked").is_empty(), "{report:#}");

    let of_group = changes(resource(&report, &group));
    assert!(of_group.contains(&("/ingressRuleCount".to_owned(), json!(0), json!(1))), "{of_group:?}");
    assert!(of_group.iter().any(|(path, ..)| path.starts_with("/ingress/")), "the rule itself: {of_group:?}");
    assert!(of_group.iter().all(|(path, ..)| path.starts_with("/ingress")), "{of_group:?}");
    assert_eq!(changes(resource(&report, &function)), [("/timeout".to_owned(), json!(3), json!(30))]);
    let of_rule = changes(resource(&report, &rule));
    let paths: Vec<&str> = of_rule.iter().map(|(path, ..)| path.as_str()).collect();
    assert_eq!(paths, ["/out/1", "/outDegree"], "{of_rule:?}");
    assert_eq!(of_rule[0].2["to"], format!("arn:aws:sqs:us-east-1:{account}:orders"));
    assert_eq!((&of_rule[1].1, &of_rule[1].2), (&json!(1), &json!(2)));
}

#[test]
fn the_dangling_record_is_an_orphan() {
    let Some(cloud) = Cloud::new() else { return };
    cloud.boto3(&["deploy"]);
    // ministack has no classic load balancers and answers with the new ones whichever API is asked.
    let none = "<DescribeLoadBalancersResponse><DescribeLoadBalancersResult><LoadBalancerDescriptions/>\
                </DescribeLoadBalancersResult></DescribeLoadBalancersResponse>";
    let classic = json!({"match": {"service": "elasticloadbalancing"}, "where": {"Version": "2012-06-01"}});
    let mut answer = classic.clone();
    answer["xml"] = json!(none);
    cloud.fixtures(json!([answer]));
    observe_all(&cloud);
    let report = cloud.run(["-o", "json", "orphans"]).exited(2).json();
    let records = report["records"].as_array().unwrap();
    let orphans: Vec<_> = records.iter().filter(|record| record["status"] == "orphan").collect();
    assert_eq!(orphans.len(), 1, "{report:#}");
    assert_eq!(orphans[0]["name"], "old.orders.example.com");
    assert_eq!(orphans[0]["target"], "gone-1234567890.us-east-1.elb.amazonaws.com");

    // Where load balancers could not be listed, nobody knows whether it is one.
    let mut refused = classic;
    refused["refuse"] = json!("deny");
    cloud.fixtures(json!([refused]));
    cloud.run(["observe", "inventory"]).succeeded();
    let report = cloud.run(["-o", "json", "orphans"]).succeeded().json();
    assert_eq!(report["summary"]["orphans"], 0, "{report:#}");
    assert_eq!(report["summary"]["notChecked"], 1, "{report:#}");
}

#[test]
fn a_stack_and_its_resources_are_observed() {
    let Some(cloud) = Cloud::new() else { return };
    let ids = cloud.boto3(&["deploy"]);
    observe_all(&cloud);
    cloud.run(["observe", "cloudformation", "--strict"]).succeeded();
    let log = cloud.sandbox.json(["log"]);
    let versions = log["versions"].as_array().unwrap();
    let of = |name: &str| versions.iter().find(|one| one["source"].as_str().unwrap().starts_with(name)).unwrap();
    assert_eq!(of("cloudformation/orders@")["resources"], ids.as_object().unwrap().len());
    // What other observers write in a form of their own is not what the template says, and that is no drift.
    for live in ["adopt", "inventory", "event-topology"] {
        let report = cloud.sandbox.json(["compare", "--declared", "cloudformation/orders", "--live", live, "--all"]);
        let resources = report["resources"].as_array().unwrap();
        assert_eq!(resources.len(), 17, "{report:#}");
        let wrong: Vec<_> =
            resources.iter().filter(|one| one["status"] == "MODIFIED" || one["status"] == "DELETED").collect();
        assert!(wrong.is_empty(), "{live}: {wrong:#?}");
    }
}

#[test]
fn what_a_subscription_lets_through_and_where_failures_go_is_part_of_the_graph() {
    let Some(cloud) = Cloud::new() else { return };
    let made = cloud.boto3(&["deploy"]);
    let observe = ["observe", "event-topology", "--strict"];
    cloud.run(observe).succeeded();
    cloud.run(["baseline", "set"]).succeeded();
    cloud.run(observe).succeeded();
    assert_eq!(crate::support::counts(&cloud.drift())[..3], [0, 0, 0]);
    let dead = made["DeadLetters"].as_str().unwrap();
    let queue = cloud.boto3(&["narrow", made["Subscription"].as_str().unwrap(), dead])["queue"].clone();
    cloud.run(observe).succeeded();
    let report = cloud.drift();
    let text = report.to_string();
    assert!(text.contains("filterPolicy") && text.contains("order"), "{report:#}");
    let function = format!("arn:aws:lambda:us-east-1:{}:function:orders", cloud.account);
    let new: Vec<String> = super::ids_with(&report, "unknown").into_iter().collect();
    assert_eq!(new.len(), 1, "{new:?}");
    assert!(new[0].starts_with(&function) && new[0].ends_with(queue.as_str().unwrap()), "{new:?}");
    // What cannot be read is not gone.
    cloud.rules(serde_json::json!([{"match": {"operation": "GetSubscriptionAttributes"}, "do": {"refuse": "deny"}}]));
    cloud.run(["observe", "event-topology"]).succeeded().says(&["sns:GetSubscriptionAttributes is not allowed"]);
    let gone = cloud.drift()["resources"].as_array().unwrap().iter().filter(|one| one["kind"] == "deleted").count();
    assert_eq!(gone, 0);
}
