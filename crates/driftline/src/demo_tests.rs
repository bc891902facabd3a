//! The demo's documents have the shapes that their observers write, and the figures of the story.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says where")]

use std::collections::{BTreeMap, BTreeSet};

use driftline_core::{Outcome, ResourceKey, Value};
use driftline_sources::normalize::{Context, Document, Listing, Model};
use jiff::Timestamp;

use crate::demo_data::*;
use crate::demo_documents::{SOURCES, Written, documents};

/// The same instant for every pass: what changes by itself must change even so.
fn written(pass: Pass) -> Vec<Written> {
    documents(pass, Timestamp::UNIX_EPOCH)
}

/// What each stream sees, by its name.
fn observed(pass: Pass) -> BTreeMap<String, Listing> {
    let written = written(pass);
    let mut streams = BTreeMap::new();
    for (model, name) in SOURCES {
        let of = written.iter().filter(|it| it.model == model);
        let of: Vec<Document<'_>> =
            of.map(|it| Document { name: &it.name, bytes: it.text.as_bytes(), written_at: None }).collect();
        let context = Context { source: name.parse().unwrap(), account: Some(ACCOUNT.into()), partition: "aws".into() };
        for listing in model.normalize(&of, &context).unwrap() {
            let scope = listing.scope.as_ref().map(|scope| format!("@{scope}")).unwrap_or_default();
            streams.insert(format!("{name}{scope}"), listing);
        }
    }
    streams
}

#[test]
fn the_account_has_the_size_of_the_story() {
    let baseline = observed(Pass::Baseline);
    let sizes: Vec<_> = baseline.iter().map(|(name, listing)| (name.as_str(), listing.resources.len())).collect();
    let expected = [
        ("adopt/demo", 289),
        ("config/demo", 277),
        ("dns/demo", 114),
        ("event-topology/demo", 192),
        ("inventory/demo", 576),
        ("inventory/demo@scan", 420),
    ];
    assert_eq!(sizes, expected);
    assert_eq!(sizes.iter().map(|(_, size)| size).sum::<usize>(), 1868);
    for (kind, size) in [(SECURITY_GROUP, 47), (RULE, 11), (BUCKET, 67)] {
        let keys = baseline.values().flat_map(|listing| listing.resources.keys()).filter(|key| key.kind == kind.name);
        assert_eq!(keys.count(), size, "{}", kind.name);
    }
}

#[test]
fn nothing_is_wrong_with_the_documents() {
    for pass in [Pass::Baseline, Pass::Unchanged, Pass::Drifted] {
        for (name, listing) in observed(pass) {
            assert_eq!(listing.problems, [], "{name} in {pass:?}");
        }
        assert_eq!(written(pass), written(pass));
        for document in written(pass) {
            assert!(!document.text.to_lowercase().contains("driftline"), "{} has heard of us", document.name);
        }
    }
}

/// Everything that a path leads to; `*` is any element.
fn find<'v>(value: &'v Value, path: &str) -> Vec<&'v Value> {
    let mut found = vec![value];
    for step in path.split('/').skip(1) {
        found = found
            .into_iter()
            .flat_map(|value| match value.as_array() {
                Some(items) if step == "*" => items.iter().collect(),
                _ => value.get(step).into_iter().collect::<Vec<_>>(),
            })
            .collect();
    }
    found
}

/// The members of all objects that a path leads to, which must be the same in all of them.
fn members(document: &Written, path: &str) -> String {
    let value: Value = serde_json::from_str(&document.text).unwrap();
    let mut names = BTreeSet::new();
    for found in find(&value, path) {
        let object = found.as_object().unwrap_or_else(|| panic!("{}: {path} is no object", document.name));
        names.insert(object.keys().map(String::as_str).collect::<Vec<_>>().join(" "));
    }
    assert_eq!(names.len(), 1, "{}: {path} has several shapes, or none: {names:?}", document.name);
    names.pop_first().unwrap()
}

/// Every member that the observers' schemas have.
#[test]
fn every_document_has_the_shape_that_its_observer_writes() {
    const SHAPES: &[(&str, &str, &str)] = &[
        ("adopt-us-east-1", "", "discovered region setupCommands summary truncated workflowCommand"),
        ("adopt-us-east-1", "/summary", "byType totalResources"),
        (
            "adopt-us-east-1",
            "/discovered",
            "dbSubnetGroups internetGateways rdsClusters rdsInstances routeTables secrets securityGroups subnets vpcs",
        ),
        ("adopt-us-east-1", "/discovered/vpcs/*", "cidrBlock isDefault name state tags vpcId"),
        (
            "adopt-us-east-1",
            "/discovered/subnets/*",
            "availabilityZone cidrBlock mapPublicIpOnLaunch name subnetId tags vpcId",
        ),
        ("adopt-us-east-1", "/discovered/internetGateways/*", "attachedVpcIds internetGatewayId name tags"),
        (
            "adopt-us-east-1",
            "/discovered/routeTables/*",
            "associatedSubnets isMain name routeTableId routes tags vpcId",
        ),
        ("adopt-us-east-1", "/discovered/routeTables/*/routes/*", "destination state target"),
        (
            "adopt-us-east-1",
            "/discovered/securityGroups/*",
            "description egressRuleCount groupId groupName ingressRuleCount name tags vpcId",
        ),
        (
            "adopt-us-east-1",
            "/discovered/rdsClusters/*",
            "clusterIdentifier dbSubnetGroup endpoint engine engineVersion members port readerEndpoint status \
             vpcSecurityGroups",
        ),
        (
            "adopt-us-east-1",
            "/discovered/rdsInstances/*",
            "allocatedStorage availabilityZone clusterIdentifier dbInstanceClass dbInstanceIdentifier dbSubnetGroup \
             engine engineVersion multiAz status storageType",
        ),
        ("adopt-us-east-1", "/discovered/dbSubnetGroups/*", "description name status subnetIds vpcId"),
        ("adopt-us-east-1", "/discovered/secrets/*", "arn description lastChangedDate name tags"),
        (
            "inventory-scan",
            "",
            "coverage fetchedAt region resources source sourceNote summary truncated unmodeledTypes",
        ),
        ("inventory-scan", "/resources/*", "accountId arn region resourceType tags"),
        ("inventory-scan", "/summary", "byRegion byType modelableCount total unmodeledCount"),
        ("inventory-scan", "/unmodeledTypes/*", "count hint recommendation resourceType sampleArns"),
        ("inventory-us-east-1", "", "count fetchedAt region resourceType resources"),
        ("inventory-us-east-1", "/resources", "dynamodb ebs ec2 lambda rds"),
        (
            "inventory-us-east-1",
            "/resources/ec2/*",
            "availabilityZone instanceId instanceType launchTime platform state tags",
        ),
        (
            "inventory-us-east-1",
            "/resources/rds/*",
            "allocatedStorage availabilityZone dbInstanceClass dbInstanceId engine engineVersion multiAz status \
             storageType",
        ),
        (
            "inventory-us-east-1",
            "/resources/dynamodb/*",
            "billingMode itemCount readCapacityUnits tableName tableSizeBytes tableStatus writeCapacityUnits",
        ),
        (
            "inventory-us-east-1",
            "/resources/lambda/*",
            "architecture codeSize deadLetterConfig environment ephemeralStorageSize functionName handler \
             lastModified layers memorySize reservedConcurrency runtime timeout tracingConfig vpcConfig",
        ),
        (
            "inventory-us-east-1",
            "/resources/ebs/*",
            "attachments availabilityZone createTime encrypted isAttached size state tags volumeId volumeType",
        ),
        ("config-us-east-1", "", "accountId evaluations fetchedAt region summary"),
        (
            "config-us-east-1",
            "/evaluations/*",
            "accountId annotation complianceType configRuleName evaluatedAt region resourceArn resourceId resourceType",
        ),
        (
            "config-us-east-1",
            "/summary",
            "compliantRules nonCompliantResources nonCompliantRules totalEvaluations totalRules",
        ),
        ("dns-zones", "", "accountId fetchedAt summary truncated zones"),
        ("dns-zones", "/zones/*", "comment id isPrivate name recordCount vpcAssociations"),
        ("dns-zones", "/zones/*/vpcAssociations/*", "vpcId vpcRegion"),
        ("dns-zones", "/summary", "privateZones publicZones totalRecords totalZones"),
        ("dns-records", "", "accountId fetchedAt records summary truncated"),
        ("dns-records", "/records/*", "aliasTarget name ttl type values zoneId zoneName"),
        ("dns-records", "/summary", "byType totalRecords zonesScanned"),
        ("dns-orphans", "", "accountId fetchedAt orphans summary truncated"),
        ("dns-orphans", "/orphans/*", "reason recordName recordType target zoneId zoneName"),
        ("dns-orphans", "/summary", "byReason recordsAnalyzed totalOrphans zonesScanned"),
        ("event-topology-us-east-1", "", "accountId edges fetchedAt nodes region stats truncated"),
        ("event-topology-us-east-1", "/nodes/*", "accountId id isBoundary metadata name region type"),
        ("event-topology-us-east-1", "/edges/*", "attributes from to type"),
        (
            "event-topology-us-east-1",
            "/stats",
            "boundaryNodes connectedComponents edgesByType isolatedNodes maxInDegree maxOutDegree nodesByType \
             totalEdges totalNodes",
        ),
    ];
    for pass in [Pass::Baseline, Pass::Unchanged, Pass::Drifted] {
        let written = written(pass);
        for (name, path, expected) in SHAPES {
            let document = written.iter().find(|document| document.name == *name).unwrap();
            assert_eq!(members(document, path), *expected, "{name}: {path}");
        }
    }
}

#[test]
fn what_two_observers_see_has_one_key() {
    let baseline = observed(Pass::Baseline);
    let has = |stream: &str, key: &ResourceKey| baseline[stream].resources.contains_key(key);
    let shared = |streams: &[&str], kinds: &[Kind], by: &[&str]| {
        for key in streams.iter().flat_map(|stream| baseline[*stream].resources.keys()) {
            if kinds.iter().any(|kind| kind.name == key.kind) {
                assert!(by.iter().any(|stream| has(stream, key)), "{key} is seen by one only");
            }
        }
    };
    shared(&["event-topology/demo"], &[FUNCTION], &["inventory/demo"]);
    shared(&["event-topology/demo"], &[QUEUE, TOPIC], &["inventory/demo@scan"]);
    shared(&["inventory/demo@scan"], &[QUEUE, TOPIC], &["event-topology/demo"]);
    shared(&["config/demo"], &[INSTANCE, VOLUME], &["inventory/demo"]);
    shared(&["adopt/demo"], &[DATABASE], &["inventory/demo"]);
    // Config calls these by names that nobody else knows, and no ARN is made of such a name.
    let config = baseline["config/demo"].resources.keys();
    assert!(config.filter(|key| key.kind == DATABASE.name).all(|key| key.id.starts_with("db-")));
}

/// The published detector takes an evaluation for a resource, and so finds these drifted while nothing happens.
#[test]
fn a_detector_that_counts_evaluations_would_find_the_133_of_the_story() {
    let evaluations: usize = written(Pass::Baseline)
        .iter()
        .filter(|document| document.model == Model::Config)
        .map(|it| serde_json::from_str::<serde_json::Value>(&it.text).unwrap()["evaluations"].as_array().unwrap().len())
        .sum();
    assert_eq!(evaluations - observed(Pass::Baseline)["config/demo"].resources.len(), 133);
}

#[test]
fn only_the_scan_is_cut_and_it_says_so() {
    let (before, after) = (observed(Pass::Baseline), observed(Pass::Drifted));
    let cut = before["inventory/demo@scan"].resources.len() - after["inventory/demo@scan"].resources.len();
    assert_eq!(cut, 104);
    for (name, listing) in &after {
        for (kind, place, outcome) in listing.coverage.iter() {
            // Functions and endpoints are only seen as ends of edges, whatever the pass.
            let was = before[name].coverage.outcome(kind, place);
            assert_eq!(was != Some(outcome), name == "inventory/demo@scan", "{name}: {kind} in {place}");
        }
    }
    let listing = &before["inventory/demo"];
    assert!(listing.coverage.iter().all(|(_, _, outcome)| *outcome == Outcome::Complete), "{:?}", listing.coverage);
}

/// An order of documents or items that meant something would be seen here.
#[test]
fn the_unchanged_pass_is_in_another_order_and_means_the_same() {
    let (before, after) = (observed(Pass::Baseline), observed(Pass::Unchanged));
    let keys = |streams: &BTreeMap<String, Listing>| {
        streams.iter().map(|(name, it)| (name.clone(), it.resources.keys().cloned().collect())).collect()
    };
    let (before_keys, after_keys): (BTreeMap<_, Vec<_>>, BTreeMap<_, Vec<_>>) = (keys(&before), keys(&after));
    assert_eq!(before_keys, after_keys);
    for (one, other) in written(Pass::Baseline).iter().zip(&written(Pass::Unchanged)) {
        assert_eq!(one.name, other.name);
        assert_ne!(one.text, other.text, "{}", one.name);
    }
    // The observer of events tells how many messages wait only of queues that it did not meet before as a target.
    let counted = |streams: &BTreeMap<String, Listing>| {
        let found = streams["event-topology/demo"].resources.values().map(|found| found.properties.to_value());
        found.filter(|value| !find(value, "/metadata/approximateMessageCount").is_empty()).count()
    };
    assert_ne!(counted(&before), counted(&after), "the trap is not set");
}
