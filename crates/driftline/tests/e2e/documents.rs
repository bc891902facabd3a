//! Small documents in the shapes that observers write.

use serde_json::{Value as Json, json};

use crate::support::minute;

pub(crate) const ACCOUNT: &str = "123456789012";

pub(crate) fn discovery(region: &str, discovered: Json) -> Json {
    json!({
        "region": region, "truncated": false, "discovered": discovered, "setupCommands": [], "workflowCommand": "",
        "summary": {"totalResources": 1, "byType": {}},
    })
}

pub(crate) fn vpc(id: &str) -> Json {
    json!({"vpcId": id, "cidrBlock": "10.0.0.0/16", "state": "available", "isDefault": false, "tags": {}, "name": id})
}

pub(crate) fn scan(source: &str, coverage: &str, resources: &[Json]) -> Json {
    json!({
        "source": source, "sourceNote": "", "coverage": coverage, "region": "us-east-1", "fetchedAt": minute(0),
        "resources": resources, "truncated": false, "unmodeledTypes": [],
        "summary": {"total": 1, "byType": {}, "byRegion": {}, "modelableCount": 1, "unmodeledCount": 0},
    })
}

pub(crate) fn scanned(kind: &str, arn: &str) -> Json {
    json!({"arn": arn, "resourceType": kind, "region": "us-east-1", "accountId": ACCOUNT, "tags": {}})
}

pub(crate) fn queue_arn(name: &str) -> String {
    format!("arn:aws:sqs:us-east-1:{ACCOUNT}:{name}")
}

pub(crate) fn function(timeout: Json) -> Json {
    json!({
        "functionName": "f", "runtime": "python3.13", "memorySize": 128, "timeout": timeout, "codeSize": 10,
        "lastModified": minute(0), "architecture": "arm64", "handler": "index.handler", "vpcConfig": null,
        "layers": [], "environment": null, "ephemeralStorageSize": 512, "deadLetterConfig": null,
        "tracingConfig": "PassThrough", "reservedConcurrency": null,
    })
}

pub(crate) fn inventory(kind: &str, resources: &[Json]) -> Json {
    json!({
        "region": "us-east-1", "resourceType": kind, "resources": resources, "count": resources.len(),
        "fetchedAt": minute(0), "truncated": false,
    })
}

pub(crate) fn evaluation(id: &str, rule: &str, verdict: &str, at: u32) -> Json {
    json!({
        "resourceId": id, "resourceType": "AWS::EC2::Instance", "resourceArn": null, "accountId": ACCOUNT,
        "region": "us-east-1", "complianceType": verdict, "configRuleName": rule, "annotation": null,
        "evaluatedAt": minute(at),
    })
}

pub(crate) fn compliance(evaluations: &[Json]) -> Json {
    json!({
        "fetchedAt": minute(0), "accountId": ACCOUNT, "region": "us-east-1", "evaluations": evaluations,
        "summary": {"totalRules": 2, "compliantRules": 0, "nonCompliantRules": 2, "totalEvaluations": 2,
            "nonCompliantResources": 2},
    })
}

pub(crate) fn node(id: &str, kind: &str, metadata: Json) -> Json {
    let account = if id.starts_with("arn:") { ACCOUNT } else { "unknown" };
    json!({
        "id": id, "type": kind, "accountId": account, "region": "us-east-1", "name": id, "isBoundary": false,
        "metadata": metadata,
    })
}

pub(crate) fn rule_node() -> Json {
    node(RULE, "EventBridgeRule", json!({"state": "ENABLED", "scheduleExpression": null, "hasEventPattern": true}))
}

pub(crate) fn target(to: &str, name: &str) -> Json {
    json!({
        "from": RULE, "to": to, "type": "targets",
        "attributes": {"targetId": name, "retryAttempts": null, "maxEventAge": null},
    })
}

pub(crate) fn graph(nodes: &[Json], edges: &[Json]) -> Json {
    json!({
        "fetchedAt": minute(0), "accountId": ACCOUNT, "region": "us-east-1", "nodes": nodes, "edges": edges,
        "stats": {}, "truncated": false,
    })
}

/// What the observer calls a rule, and what everyone else does.
const RULE: &str = "eventbridge:rule:default/nightly";
pub(crate) const RULE_ARN: &str = "arn:aws:events:us-east-1:123456789012:rule/nightly";

pub(crate) fn records(records: &[Json]) -> Json {
    let authority = json!({
        "zoneId": "Z1", "zoneName": "example.com", "name": "example.com", "type": "SOA", "ttl": 900,
        "values": ["ns-1.example. hostmaster.example. 1 7200 900 1209600 86400"], "aliasTarget": null,
    });
    let records: Vec<&Json> = std::iter::once(&authority).chain(records).collect();
    json!({"fetchedAt": minute(0), "accountId": ACCOUNT, "truncated": false, "records": records, "summary": {}})
}

pub(crate) fn cname(name: &str, target: &str) -> Json {
    json!({
        "zoneId": "Z1", "zoneName": "example.com", "name": name, "type": "CNAME", "ttl": 60, "values": [target],
        "aliasTarget": null,
    })
}
