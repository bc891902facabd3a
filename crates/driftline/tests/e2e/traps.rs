//! Ways in which the published detector fails on what its observers really write, each with what this one does.
//!
//! Numbered traps are the shortfalls that its published code has; the others follow from the shapes of the documents.
//! What concerns only the tree of a swamp datastore, or Terraform, is tested with those.

use std::collections::BTreeMap;

use serde_json::{Value as Json, json};

use crate::documents::{
    ACCOUNT, RULE_ARN, cname, compliance, discovery, evaluation, function, graph, inventory, node, queue_arn, records,
    rule_node, scan, scanned, target, vpc,
};
use crate::support::{Ran, Sandbox, counts, minute, resource, statuses};

/// Observes documents of one pass as the source `<model>/test`.
fn observe(sandbox: &Sandbox, model: &str, documents: &[Json]) -> Ran {
    let mut arguments = vec!["observe".to_owned(), model.to_owned()];
    for (at, document) in documents.iter().enumerate() {
        let path = sandbox.write(&format!("{model}-{at}.json"), document.to_string());
        arguments.push(path.to_str().unwrap().to_owned());
    }
    arguments.extend(["--name".into(), format!("{model}/test"), "--account".into(), ACCOUNT.into()]);
    sandbox.run(arguments)
}

/// The drift between two passes of a source.
#[track_caller]
fn drift(model: &str, before: &[Json], after: &[Json]) -> Json {
    let sandbox = Sandbox::new();
    observe(&sandbox, model, before).succeeded();
    sandbox.run(["baseline", "set"]).succeeded();
    observe(&sandbox, model, after).succeeded();
    sandbox.drift([])
}

/// Nothing to tell of these many resources.
#[track_caller]
fn in_sync(report: &Json, count: u64) {
    assert_eq!(counts(report), [0, 0, 0, count], "{report:#}");
}

/// All changes of all resources: path, before, after.
fn changes(report: &Json) -> Vec<(&str, &Json, &Json)> {
    let resources = report["resources"].as_array().unwrap().iter();
    let all = resources.flat_map(|one| one["changes"].as_array().unwrap());
    all.map(|change| (change["path"].as_str().unwrap(), &change["baseline"], &change["current"])).collect()
}

fn paths(report: &Json) -> Vec<&str> {
    changes(report).into_iter().map(|(path, ..)| path).collect()
}

fn ids(report: &Json) -> Vec<String> {
    statuses(report).into_keys().collect()
}

/// It puts a source that throws on a list of unavailable ones, and goes on as if it had been asked.
#[test]
fn trap_1_a_source_that_cannot_be_read_is_an_error() {
    let sandbox = Sandbox::new();
    sandbox.run(["observe", "adopt", "gone.json"]).refused(&["`gone.json`"]);
    assert!(!sandbox.store().exists());
    let good = sandbox.write("good.json", discovery("us-east-1", json!({"vpcs": [vpc("vpc-1")]})).to_string());
    let source = |name: &str, file: &str| {
        format!("[[source]]\nname = \"{name}\"\nmodel = \"adopt\"\ndocuments = [\"{file}\"]\naccount = \"{ACCOUNT}\"\n")
    };
    let both = source("adopt/here", good.to_str().unwrap()) + &source("adopt/gone", "gone.json");
    sandbox.write("driftline.toml", both);
    let ran = sandbox.run(["observe", "all"]).exited(1).says(&["`adopt/gone` was not observed"]);
    assert!(ran.out.contains("adopt/here v1"), "the other source suffers: {}", ran.out);
}

/// Reading its own baseline fails, the failure is caught, and everything is new.
#[test]
fn trap_2_an_unreadable_baseline_is_an_error_and_not_an_empty_one() {
    let sandbox = Sandbox::new();
    observe(&sandbox, "adopt", &[discovery("us-east-1", json!({"vpcs": [vpc("vpc-1"), vpc("vpc-2")]}))]).succeeded();
    sandbox.run(["drift"]).refused(&["baseline"]);
    sandbox.run(["baseline", "set"]).succeeded();
    observe(&sandbox, "adopt", &[discovery("us-east-1", json!({"vpcs": [vpc("vpc-1")]}))]).succeeded();
    let answer = sandbox.run(["drift"]).exited(2).out;
    let mut refused = 0;
    for name in crate::support::essence(&sandbox.store()).into_keys() {
        let copy = Sandbox::new();
        crate::support::copy_folder(&sandbox.store(), &copy.store());
        // What is derived from other files must not answer in their place.
        let _ = std::fs::remove_dir_all(copy.store().join("view"));
        std::fs::write(copy.store().join(&name), b"not what was written").unwrap();
        let ran = copy.run(["drift"]);
        match ran.code {
            // A file that the question does not need cannot change the answer.
            2 => assert_eq!(ran.out, answer, "{name}"),
            _ => {
                refused += 1;
                ran.refused(&["hint: "]);
            }
        }
    }
    assert!(refused > 1, "the question needs the baseline and the log");
}

/// Two of its observers, and itself, write under a name that is refused only when they run.
#[test]
fn trap_3_latest_is_refused_where_it_is_written() {
    let sandbox = Sandbox::new();
    let file = sandbox.write("d.json", discovery("us-east-1", json!({"vpcs": [vpc("vpc-1")]})).to_string());
    let file = file.to_str().unwrap();
    for name in ["latest", "adopt/latest"] {
        sandbox.run(["observe", "adopt", file, "--name", name]).refused(&["`latest` is reserved"]);
    }
    sandbox.run(["observe", "adopt", file, "--account", ACCOUNT]).succeeded();
    sandbox.run(["baseline", "set", "latest"]).refused(&["`latest` is reserved"]);
    sandbox.write("driftline.toml", "[[source]]\nname = \"latest\"\nfile = \"x.json\"\n");
    sandbox.run(["log"]).refused(&["`latest` is reserved", "driftline.toml"]);
}

/// It looks for lists at the top of a discovery, and for ids that databases do not have, and finds nothing.
#[test]
fn trap_4_a_discovery_is_read_where_it_is_nested() {
    let discovered = json!({
        "vpcs": [vpc("vpc-1")],
        "rdsClusters": [{"clusterIdentifier": "c", "engine": "aurora-postgresql"}],
        "rdsInstances": [{"dbInstanceIdentifier": "d", "engine": "postgres"}],
        "dbSubnetGroups": [{"name": "g", "subnetIds": []}],
        "secrets": [{"name": "s", "arn": "arn:aws:secretsmanager:us-east-1:123456789012:secret:s-AbCdEf"}],
    });
    let document = discovery("us-east-1", discovered.clone());
    let sandbox = Sandbox::new();
    observe(&sandbox, "adopt", &[document]).succeeded();
    sandbox.run(["baseline", "set"]).succeeded();
    let here = |rest: &str| format!("arn:aws:{rest}");
    assert_eq!(
        ids(&sandbox.drift(["--all"])),
        [
            here("ec2:us-east-1:123456789012:vpc/vpc-1"),
            here("rds:us-east-1:123456789012:cluster:c"),
            here("rds:us-east-1:123456789012:db:d"),
            here("rds:us-east-1:123456789012:subgrp:g"),
            here("secretsmanager:us-east-1:123456789012:secret:s-AbCdEf"),
        ]
    );
    // The shape that it expects instead is no discovery, and not one that found nothing.
    let mut top = discovered;
    top["region"] = json!("us-east-1");
    observe(&sandbox, "adopt", &[top]).refused(&["not a document of adopt", "hint: "]);
}

/// It looks for `ec2`, `rds`, … in a scan, which is one flat list, and drops tables and functions for want of an ARN.
#[test]
fn trap_5_scans_and_inventories_are_both_read_and_everything_in_them_has_a_key() {
    let sandbox = Sandbox::new();
    let queue = scanned("AWS::SQS::Queue", &queue_arn("q"));
    let all = json!({
        "region": "us-east-1", "resourceType": "all", "count": 6, "fetchedAt": minute(0),
        "resources": {
            "ec2": [{"instanceId": "i-1", "state": "stopped"}], "rds": [{"dbInstanceId": "d"}],
            "dynamodb": [{"tableName": "t"}], "lambda": [function(json!(3))], "s3": [{"bucketName": "b"}],
            "ebs": [{"volumeId": "vol-1"}],
        },
    });
    observe(&sandbox, "inventory", &[scan("resource-explorer", "full", &[queue]), all]).succeeded();
    sandbox.run(["baseline", "set"]).succeeded();
    let report = sandbox.drift(["--all"]);
    in_sync(&report, 7);
    assert_eq!(
        ids(&report),
        [
            "arn:aws:dynamodb:us-east-1:123456789012:table/t",
            "arn:aws:ec2:us-east-1:123456789012:instance/i-1",
            "arn:aws:ec2:us-east-1:123456789012:volume/vol-1",
            "arn:aws:lambda:us-east-1:123456789012:function:f",
            "arn:aws:rds:us-east-1:123456789012:db:d",
            "arn:aws:s3:::b",
            &queue_arn("q"),
        ]
    );
}

/// It asks for `read_state`, which is a method; the specs are `tf_resource`, one item a resource, and `tf_inventory`.
/// A destroyed resource is never written again: its last item stays, and only the inventory tells that it is gone.
#[test]
fn trap_6_terraform_is_read_by_the_specs_it_writes_and_a_destroyed_resource_is_gone() {
    let bucket = |name: &str| {
        json!({
            "address": format!("aws_s3_bucket.{name}"), "mode": "managed", "type": "aws_s3_bucket", "name": name,
            "providerName": "registry.terraform.io/hashicorp/aws", "dependsOn": [],
            "values": {"arn": format!("arn:aws:s3:::{name}"), "bucket": name, "id": name},
        })
    };
    let inventory = |names: &[&str]| {
        let resource = |name: &&str| {
            json!({
                "address": format!("aws_s3_bucket.{name}"), "type": "aws_s3_bucket", "name": name,
                "providerName": "registry.terraform.io/hashicorp/aws", "module": null,
            })
        };
        let resources: Vec<Json> = names.iter().map(resource).collect();
        json!({"terraformVersion": "1.9.0", "resourceCount": resources.len(), "resources": resources})
    };
    let (kept, destroyed) = (bucket("kept"), bucket("destroyed"));
    let before = [kept.clone(), destroyed.clone(), inventory(&["kept", "destroyed"])];
    let after = [kept, destroyed, inventory(&["kept"])];
    in_sync(&drift("terraform", &before, &before), 2);
    let report = drift("terraform", &before, &after);
    assert_eq!(ids(&report), ["arn:aws:s3:::destroyed"]);
    assert_eq!(report["resources"][0]["kind"], "deleted");
}

/// It sorts by a time that no record has, and so calls every source stale, or takes any record for the newest.
#[test]
fn trap_7_a_source_is_stale_by_the_time_that_its_documents_say() {
    let sandbox = Sandbox::new();
    let mut old = scan("resource-explorer", "full", &[scanned("AWS::SQS::Queue", &queue_arn("q"))]);
    observe(&sandbox, "inventory", &[old.clone()]).succeeded();
    sandbox.run(["doctor"]).prints(&["inventory/test@scan: stale: last observed"]);
    // What was taken earlier is not the newest because it comes later.
    old["fetchedAt"] = json!("2025-12-31T00:00:00Z");
    observe(&sandbox, "inventory", &[old]).refused(&["2025-12-31T00:00:00Z"]);
    let sandbox = Sandbox::new();
    observe(&sandbox, "adopt", &[discovery("us-east-1", json!({"vpcs": [vpc("vpc-1")]}))]).succeeded();
    let told = sandbox.run(["doctor"]).succeeded().out;
    assert!(!told.contains("stale"), "{told}");
}

/// It takes one record of each source, and every region but one is lost.
#[test]
fn trap_8_several_regions_of_adopt_are_all_kept() {
    let regions = ["us-east-1", "eu-west-1", "us-west-2"];
    let documents = regions.map(|region| discovery(region, json!({"vpcs": [vpc("vpc-1"), vpc(region)]})));
    let report = drift("adopt", &documents, &documents);
    in_sync(&report, 6);
    // A region that was not looked at the second time is not deleted.
    let report = drift("adopt", &documents, &documents[..1]);
    assert_eq!(counts(&report), [0, 0, 4, 2]);
    let reason = report["resources"][0]["reason"].as_str().unwrap();
    assert_eq!(reason, "the live observation did not look there");
}

/// It compares the members of a resource as texts, and names only the outermost.
#[test]
fn trap_9_a_change_is_named_at_its_leaf() {
    let group = |zone: &str, size: u32| {
        let mut one = vpc("vpc-1");
        one["tags"] = json!({"a": {"b": {"c": [1, {"size": size}]}}, "zone": zone});
        discovery("us-east-1", json!({"vpcs": [one]}))
    };
    let report = drift("adopt", &[group("a", 1)], &[group("a", 2)]);
    assert_eq!(changes(&report), [("/tags/a/b/c/1/size", &json!(1), &json!(2))]);
    let report = drift("adopt", &[group("a", 1)], &[group("b", 2)]);
    assert_eq!(paths(&report), ["/tags/a/b/c/1/size", "/tags/zone"]);
}

/// Two rules on one resource are one id twice there, and one of the two is always drifted: 133 in the story.
#[test]
fn trap_10_several_rules_on_one_resource_are_one_resource() {
    let rules = ["a-rule", "b-rule", "c-rule"];
    let evaluations = rules.map(|rule| evaluation("i-1", rule, "NON_COMPLIANT", 0));
    let mut backwards = evaluations.clone();
    backwards.reverse();
    in_sync(&drift("config", &[compliance(&evaluations)], &[compliance(&evaluations)]), 1);
    in_sync(&drift("config", &[compliance(&evaluations)], &[compliance(&backwards)]), 1);
    // One more rule is broken: that is one change, of one path.
    let report = drift("config", &[compliance(&evaluations[..2])], &[compliance(&backwards)]);
    assert_eq!(changes(&report), [("/rules/c-rule", &Json::Null, &json!("NON_COMPLIANT"))]);
    // One that is kept again is good news.
    let report = drift("config", &[compliance(&evaluations)], &[compliance(&evaluations[1..])]);
    in_sync(&report, 1);
    assert_eq!(report["resources"][0]["kind"], "resolved");
}

/// It makes up types such as `AWS::Events::EventBridgeRule` and `AWS::Events::SQSQueue`.
#[test]
fn trap_11_nodes_of_a_graph_have_the_types_that_everyone_uses() {
    let function = format!("arn:aws:lambda:us-east-1:{ACCOUNT}:function:f");
    let topic = format!("arn:aws:sns:us-east-1:{ACCOUNT}:t");
    let nodes = [
        rule_node(),
        node(&queue_arn("q"), "SQSQueue", json!({})),
        node(&topic, "SNSTopic", json!({})),
        node(&function, "Lambda", json!({})),
    ];
    let sandbox = Sandbox::new();
    observe(&sandbox, "event-topology", &[graph(&nodes, &[])]).succeeded();
    sandbox.run(["baseline", "set"]).succeeded();
    let report = sandbox.drift(["--all"]);
    let kinds: BTreeMap<&str, &str> = report["resources"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (one["canonicalId"].as_str().unwrap(), one["resourceType"].as_str().unwrap()))
        .collect();
    let expected = [
        (RULE_ARN, "AWS::Events::Rule"),
        (&function, "AWS::Lambda::Function"),
        (&topic, "AWS::SNS::Topic"),
        (&queue_arn("q"), "AWS::SQS::Queue"),
    ];
    assert_eq!(kinds, BTreeMap::from(expected));
    assert_eq!(resource(&report, RULE_ARN)["account"], ACCOUNT, "the observer says `unknown`");
}

/// A scan has no timeouts; it is in an inventory that is another spec of the same observer.
#[test]
fn trap_12_a_timeout_is_seen_although_no_scan_has_it() {
    let arn = format!("arn:aws:lambda:us-east-1:{ACCOUNT}:function:f");
    let pass = |timeout: u32| {
        let scan = scan("resource-explorer", "full", &[scanned("AWS::Lambda::Function", &arn)]);
        [scan, inventory("lambda", &[function(json!(timeout))])]
    };
    let report = drift("inventory", &pass(3), &pass(30));
    assert_eq!(counts(&report), [1, 0, 0, 1], "each of the two sees it, and one sees it changed");
    assert_eq!(changes(&report), [("/timeout", &json!(3), &json!(30))]);
    let one = resource(&report, &arn);
    assert_eq!((&one["source"], &one["resourceType"]), (&json!("inventory/test"), &json!("AWS::Lambda::Function")));
}

/// Its observer never has an ARN for what it evaluates; the key is `config:<type>:<id>` then, and meets nobody's.
#[test]
fn trap_what_config_evaluates_without_an_arn_meets_what_others_see() {
    let sandbox = Sandbox::new();
    observe(&sandbox, "config", &[compliance(&[evaluation("i-1", "a-rule", "NON_COMPLIANT", 0)])]).succeeded();
    let instance = json!({"instanceId": "i-1", "instanceType": "t3.micro", "state": "stopped"});
    observe(&sandbox, "inventory", &[inventory("ec2", &[instance])]).succeeded();
    sandbox.run(["baseline", "set"]).succeeded();
    let told = sandbox.json(["explain", "arn:aws:ec2:us-east-1:123456789012:instance/i-1"]);
    assert_eq!(told["resources"].as_array().unwrap().len(), 2, "{told:#}");
}

/// It keeps when a rule last ran as a part of the resource, and all of them drift with every evaluation.
#[test]
fn trap_a_rule_that_ran_again_is_no_drift() {
    let at = |minute| [compliance(&[evaluation("i-1", "a-rule", "NON_COMPLIANT", minute)])];
    let report = drift("config", &at(0), &at(30));
    in_sync(&report, 1);
    assert_eq!(report["summary"]["excused"], 1, "it is excused, and not forgotten");
    let mut worded = at(30);
    worded[0]["evaluations"][0]["annotation"] = json!("This key is 91 days old.");
    in_sync(&drift("config", &at(0), &worded), 1);
}

/// Its observer reads twenty pages of a rule and does not say when that was not all.
#[test]
fn trap_a_rule_with_as_many_evaluations_as_are_read_may_have_more() {
    let many = |ids: std::ops::Range<u32>| {
        let of = ids.map(|id| evaluation(&format!("i-{id}"), "a-rule", "NON_COMPLIANT", 0)).collect::<Vec<_>>();
        [compliance(&of)]
    };
    let report = drift("config", &many(0..201), &many(1..201));
    assert_eq!(counts(&report), [0, 0, 1, 200]);
}

#[test]
fn trap_messages_that_wait_are_no_drift() {
    let waiting = |count: u32| {
        let queue = node(&queue_arn("q"), "SQSQueue", json!({"approximateMessageCount": count}));
        [graph(&[queue], &[])]
    };
    in_sync(&drift("event-topology", &waiting(0), &waiting(4711)), 1);
}

/// Who comes across a queue first decides what is said of it: a list of queues has a count, a target has nothing.
#[test]
fn trap_a_queue_first_seen_as_a_target_is_the_same_queue() {
    let seen = |metadata: Json| {
        let nodes = [rule_node(), node(&queue_arn("q"), "SQSQueue", metadata)];
        [graph(&nodes, &[target(&queue_arn("q"), "t")])]
    };
    in_sync(&drift("event-topology", &seen(json!({"approximateMessageCount": 3})), &seen(json!({}))), 3);
    in_sync(&drift("event-topology", &seen(json!({})), &seen(json!({"approximateMessageCount": 3}))), 3);
}

/// It has no edges: that a rule leads to one more queue which was there already changes nothing.
#[test]
fn trap_a_new_target_that_was_a_node_before_is_seen() {
    let nodes = ["a", "b"].map(|name| node(&queue_arn(name), "SQSQueue", json!({})));
    let nodes = [rule_node(), nodes[0].clone(), nodes[1].clone()];
    let first = target(&queue_arn("b"), "middle");
    // Before and after the other one in any order of names.
    for name in ["a-target", "z-target"] {
        let second = target(&queue_arn("a"), name);
        let report = drift(
            "event-topology",
            &[graph(&nodes, std::slice::from_ref(&first))],
            &[graph(&nodes, &[second.clone(), first.clone()])],
        );
        assert_eq!(counts(&report), [1, 1, 0, 3], "{report:#}");
        let rule = resource(&report, RULE_ARN);
        let changed: Vec<&str> =
            rule["changes"].as_array().unwrap().iter().map(|change| change["path"].as_str().unwrap()).collect();
        assert_eq!(changed.len(), 2, "{rule:#}");
        assert!(changed[0].starts_with("/out/") && !changed[0][5..].contains('/'), "not one element: {changed:?}");
        assert_eq!(changed[1], "/outDegree");
        let edge = format!("{RULE_ARN} -[targets {name}]-> {}", queue_arn("a"));
        assert_eq!(resource(&report, &edge)["status"], "unknown");
    }
}

/// A rule is called by its bus and its name only, and so it is called alike in every region.
#[test]
fn trap_rules_of_one_name_in_two_regions_are_two() {
    let of = |region: &str, state: &str| {
        let mut graph = graph(&[rule_node()], &[]);
        graph["region"] = json!(region);
        graph["nodes"][0]["region"] = json!(region);
        graph["nodes"][0]["metadata"]["state"] = json!(state);
        graph
    };
    let before = [of("us-east-1", "ENABLED"), of("eu-west-1", "ENABLED")];
    let report = drift("event-topology", &before, &[of("us-east-1", "ENABLED"), of("eu-west-1", "DISABLED")]);
    assert_eq!(counts(&report), [1, 0, 0, 1]);
    let rule = "arn:aws:events:eu-west-1:123456789012:rule/nightly";
    assert_eq!(resource(&report, rule)["changes"][0]["path"], "/metadata/state");
}

/// Its observer stops at 500 queues and does not say so.
#[test]
fn trap_as_many_queues_as_are_listed_at_most_may_not_be_all() {
    let queues = |names: std::ops::Range<u32>| {
        let nodes: Vec<Json> = names.map(|at| node(&queue_arn(&format!("q{at}")), "SQSQueue", json!({}))).collect();
        [graph(&nodes, &[])]
    };
    let report = drift("event-topology", &queues(0..501), &queues(1..501));
    assert_eq!(counts(&report), [0, 0, 1, 500]);
    let report = drift("event-topology", &queues(0..20), &queues(1..20));
    assert_eq!(counts(&report), [1, 0, 0, 19], "while of a few, one that is gone is gone");
}

/// Weighted and latency records share zone, name and type, and the observer leaves out what tells them apart.
#[test]
fn trap_weighted_records_are_kept_apart_by_what_they_point_at() {
    let weighted = |targets: &[&str]| {
        let of: Vec<Json> = targets.iter().map(|target| cname("www.example.com", target)).collect();
        [records(&of)]
    };
    let before = weighted(&["a.example.net", "b.example.net"]);
    in_sync(&drift("dns", &before, &weighted(&["b.example.net", "a.example.net"])), 2);
    let report = drift("dns", &before, &weighted(&["a.example.net", "c.example.net"]));
    assert_eq!(counts(&report), [1, 0, 0, 1]);
    assert_eq!(paths(&report), ["/sets/b.example.net", "/sets/c.example.net"]);
    // The values of one set have no order either.
    let valued = |values: [[&str; 2]; 2]| {
        let set = |values: [&str; 2]| {
            let mut set = cname("www.example.com", "");
            set["values"] = json!(values);
            set
        };
        [records(&values.map(set))]
    };
    let before = valued([["10.0.0.1", "10.0.0.2"], ["10.0.0.3", "10.0.0.4"]]);
    in_sync(&drift("dns", &before, &valued([["10.0.0.4", "10.0.0.3"], ["10.0.0.2", "10.0.0.1"]])), 2);
}

/// It takes an orphan that is fixed for a resource that is missing.
#[test]
fn trap_an_orphan_that_is_gone_is_good_news() {
    let orphans = |names: &[&str]| {
        let orphan = |name: &&str| {
            json!({"zoneId": "Z1", "zoneName": "example.com", "recordName": name, "recordType": "CNAME",
                "target": "gone-1.us-east-1.elb.amazonaws.com", "reason": "cname_target_elb_not_found"})
        };
        let orphans: Vec<Json> = names.iter().map(orphan).collect();
        [json!({"fetchedAt": minute(0), "accountId": ACCOUNT, "truncated": false, "orphans": orphans, "summary": {}})]
    };
    let report = drift("dns", &orphans(&["a.example.com", "b.example.com"]), &orphans(&["a.example.com"]));
    in_sync(&report, 2);
    assert_eq!(report["resources"][0]["kind"], "resolved");
    // One that is new is something new.
    let report = drift("dns", &orphans(&["a.example.com"]), &orphans(&["a.example.com", "b.example.com"]));
    assert_eq!(counts(&report), [0, 1, 0, 1]);
}

/// It compares a scan by one backend with a scan by another that sees less, and everything else is missing.
#[test]
fn trap_a_scan_by_another_backend_deletes_nothing() {
    let items = ["a", "b", "c"].map(|name| scanned("AWS::SQS::Queue", &queue_arn(name)));
    let full = [scan("resource-explorer", "full", &items)];
    let tagged = [scan("tag-api", "tagged-only", &items[..1])];
    let report = drift("inventory", &full, &tagged);
    assert_eq!(counts(&report), [0, 0, 2, 1]);
    let reason = report["resources"][0]["reason"].as_str().unwrap();
    assert!(reason.contains("another backend: tag-api (tagged-only)"), "{reason}");
    // And the other way round nothing is new.
    let report = drift("inventory", &tagged, &full);
    assert_eq!(counts(&report), [0, 0, 2, 1]);
}

/// The backends do not agree on capitals.
#[test]
fn trap_a_type_in_other_capitals_is_the_same_type() {
    let group = format!("arn:aws:ec2:us-east-1:{ACCOUNT}:security-group/sg-1");
    let by = |kind: &str| [scan("resource-explorer", "full", &[scanned(kind, &group)])];
    in_sync(&drift("inventory", &by("AWS::EC2::SecurityGroup"), &by("AWS::Ec2::SecurityGroup")), 1);
}

/// It takes what a listing that stopped early did not reach for missing: 104 of the story, 69 % of the buckets.
#[test]
fn trap_what_a_truncated_listing_does_not_show_is_not_deleted() {
    let items = ["a", "b", "c"].map(|name| scanned("AWS::SQS::Queue", &queue_arn(name)));
    let whole = [scan("resource-explorer", "full", &items)];
    let mut cut = [scan("resource-explorer", "full", &items[..1])];
    cut[0]["truncated"] = json!(true);
    let report = drift("inventory", &whole, &cut);
    assert_eq!(counts(&report), [0, 0, 2, 1]);
    assert!(report["resources"][0]["reason"].as_str().unwrap().contains("page limit"));
    // What the baseline did not reach is not new either.
    assert_eq!(counts(&drift("inventory", &cut, &whole)), [0, 0, 2, 1]);
    // The same of a discovery, a graph and a list of records.
    let found = |ids: &[&str], truncated: bool| {
        let vpcs: Vec<Json> = ids.iter().map(|id| vpc(id)).collect();
        let mut document = discovery("us-east-1", json!({ "vpcs": vpcs }));
        document["truncated"] = json!(truncated);
        [document]
    };
    let report = drift("adopt", &found(&["vpc-1", "vpc-2"], false), &found(&["vpc-1"], true));
    assert_eq!(counts(&report), [0, 0, 1, 1]);
    let queues = ["a", "b"].map(|name| node(&queue_arn(name), "SQSQueue", json!({})));
    let mut cut = graph(&queues[..1], &[]);
    cut["truncated"] = json!(true);
    assert_eq!(counts(&drift("event-topology", &[graph(&queues, &[])], &[cut])), [0, 0, 1, 1]);
    let names = ["a.example.com", "b.example.com"].map(|name| cname(name, "example.net"));
    let mut cut = records(&names[..1]);
    cut["truncated"] = json!(true);
    assert_eq!(counts(&drift("dns", &[records(&names)], &[cut])), [0, 0, 1, 2]);
}

/// A listing that was not cut is a fact, though.
#[test]
fn trap_what_a_whole_listing_does_not_show_is_deleted() {
    let items = ["a", "b"].map(|name| scanned("AWS::SQS::Queue", &queue_arn(name)));
    let of = |items: &[Json]| [scan("resource-explorer", "full", items)];
    let report = drift("inventory", &of(&items), &of(&items[..1]));
    assert_eq!(counts(&report), [1, 0, 0, 1]);
    assert_eq!(resource(&report, &queue_arn("b"))["kind"], "deleted");
}

/// It sorts every list, so an order that means something can change unseen.
#[test]
fn trap_only_lists_without_an_order_are_compared_without_it() {
    let with = |layers: [&str; 2], subnets: [&str; 2]| {
        let mut one = function(json!(3));
        let layer = |name: &str| json!({"arn": format!("arn:aws:lambda:us-east-1:1:layer:{name}:1"), "codeSize": 1});
        one["layers"] = json!(layers.map(layer));
        one["vpcConfig"] = json!({"vpcId": "vpc-1", "subnetIds": subnets, "securityGroupIds": []});
        [inventory("lambda", &[one])]
    };
    let before = with(["a", "b"], ["subnet-1", "subnet-2"]);
    in_sync(&drift("inventory", &before, &with(["a", "b"], ["subnet-2", "subnet-1"])), 1);
    let report = drift("inventory", &before, &with(["b", "a"], ["subnet-1", "subnet-2"]));
    assert_eq!(paths(&report), ["/layers/0/arn", "/layers/1/arn"]);
}

/// There, what is null, what is absent and what was never there are one.
#[test]
fn trap_null_is_not_absent() {
    let mut without = function(json!(3));
    without.as_object_mut().unwrap().remove("deadLetterConfig");
    let (with, without) = ([inventory("lambda", &[function(json!(3))])], [inventory("lambda", &[without])]);
    let report = drift("inventory", &with, &without);
    assert_eq!(paths(&report), ["/deadLetterConfig"]);
    assert_eq!(counts(&drift("inventory", &without, &with)), [1, 0, 0, 0]);
}

/// A number is what it amounts to, and a text is no number.
#[test]
fn trap_one_is_not_the_text_one() {
    let with = |timeout: Json| [inventory("lambda", &[function(timeout)])];
    let report = drift("inventory", &with(json!(1)), &with(json!("1")));
    assert_eq!(changes(&report), [("/timeout", &json!(1), &json!("1"))]);
    in_sync(&drift("inventory", &with(json!(1)), &with(json!(1.0))), 1);
}

/// It drops what has an empty id without a word; and a missing value of AWS is an empty text in these documents.
#[test]
fn trap_what_has_no_id_is_told_and_nothing_is_deleted_on_its_account() {
    let of = |vpcs: Json| discovery("us-east-1", json!({ "vpcs": vpcs }));
    let sandbox = Sandbox::new();
    observe(&sandbox, "adopt", &[of(json!([vpc("vpc-1"), vpc("vpc-2")]))]).succeeded();
    sandbox.run(["baseline", "set"]).succeeded();
    let nameless = of(json!([vpc("vpc-1"), vpc(""), {"vpcId": null}]));
    observe(&sandbox, "adopt", &[nameless]).succeeded().says(&["warning: ", "2 items AWS::EC2::VPC without `vpcId`"]);
    assert_eq!(counts(&sandbox.drift([])), [0, 0, 1, 1], "one of the two may be vpc-2");
    // Nothing but such items is a misunderstanding.
    observe(&sandbox, "adopt", &[of(json!([vpc("")]))]).refused(&["none of its 1 items could be understood"]);
}

/// It puts the observer into the id, and one VPC is as many resources as there are sources.
#[test]
fn trap_the_observer_is_no_part_of_an_id() {
    let sandbox = Sandbox::new();
    let arn = format!("arn:aws:ec2:us-east-1:{ACCOUNT}:vpc/vpc-1");
    observe(&sandbox, "adopt", &[discovery("us-east-1", json!({"vpcs": [vpc("vpc-1")]}))]).succeeded();
    observe(&sandbox, "inventory", &[scan("resource-explorer", "full", &[scanned("AWS::EC2::VPC", &arn)])]).succeeded();
    let life = sandbox.json(["history", &arn]);
    let sources: Vec<&str> =
        life["events"].as_array().unwrap().iter().map(|event| event["source"].as_str().unwrap()).collect();
    // By time: the scan says when it was taken.
    assert_eq!(sources, ["inventory/test@scan", "adopt/test"]);
}

/// It says of what is missing that it is so since now, every time it is asked.
#[test]
fn trap_the_time_of_a_deletion_does_not_move() {
    let sandbox = Sandbox::new();
    let at = |minute_of: u32, names: &[&str]| {
        let items: Vec<Json> = names.iter().map(|name| scanned("AWS::SQS::Queue", &queue_arn(name))).collect();
        let mut document = scan("resource-explorer", "full", &items);
        document["fetchedAt"] = json!(minute(minute_of));
        observe(&sandbox, "inventory", &[document]).succeeded();
    };
    at(0, &["a", "b"]);
    sandbox.run(["baseline", "set"]).succeeded();
    at(1, &["a"]);
    at(2, &["a"]);
    at(3, &["a", "c"]);
    assert_eq!(resource(&sandbox.drift([]), &queue_arn("b"))["firstSeen"], minute(1));
}

/// It records only that something drifts, and not that it drifts in another way.
#[test]
fn trap_every_change_is_history_also_of_what_has_drifted_before() {
    let sandbox = Sandbox::new();
    for (at, timeout) in [3, 30, 60, 3].into_iter().enumerate() {
        let mut document = inventory("lambda", &[function(json!(timeout))]);
        document["fetchedAt"] = json!(minute(u32::try_from(at).unwrap()));
        observe(&sandbox, "inventory", &[document]).succeeded();
    }
    let life = sandbox.json(["history", &format!("arn:aws:lambda:us-east-1:{ACCOUNT}:function:f")]);
    let seen: Vec<&Json> =
        life["events"].as_array().unwrap().iter().map(|event| &event["changes"][0]["current"]).collect();
    assert_eq!(seen, [&Json::Null, &json!(30), &json!(60), &json!(3)]);
}

/// It keeps timelines under a short hash; `Aa` and `BB` have the same, and get one life together.
#[test]
fn trap_two_names_with_one_hash_have_two_lives() {
    let sandbox = Sandbox::new();
    for names in [&["Aa", "BB"][..], &["Aa"]] {
        let items: Vec<Json> = names.iter().map(|name| scanned("AWS::SQS::Queue", &queue_arn(name))).collect();
        observe(&sandbox, "inventory", &[scan("resource-explorer", "full", &items)]).succeeded();
    }
    let events = |name: &str| sandbox.json(["history", &queue_arn(name)])["events"].as_array().unwrap().len();
    assert_eq!((events("Aa"), events("BB")), (1, 2));
}
