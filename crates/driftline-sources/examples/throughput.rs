//! How fast each normalizer is, beside plain JSON parsing of the same bytes in the same run.
//!
//! `cargo run --release -p driftline-sources --example throughput [megabytes]`
#![expect(clippy::print_stdout, clippy::unwrap_used, clippy::disallowed_methods, reason = "a benchmark")]

use std::time::Instant;

use driftline_sources::normalize::{Context, Document, Model};
use serde_json::{Value as Json, json};

/// The program's allocator.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const ROUNDS: usize = 5;

fn main() {
    let megabytes: usize = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(16);
    let context =
        Context { source: "bench".parse().unwrap(), account: Some("123456789012".into()), partition: "aws".into() };
    println!("| normalizer | MB | resources | parsing MB/s | normalizing MB/s | ratio |\n|---|---|---|---|---|---|");
    for model in Model::ALL {
        let text = document(model, megabytes << 20);
        let bytes = text.as_bytes();
        let mut best = [f64::MAX; 2];
        let mut resources = 0;
        // The best of several: these machines are noisy, and both suffer alike.
        for _ in 0..ROUNDS {
            let start = Instant::now();
            let value: Json = serde_json::from_slice(bytes).unwrap();
            best[0] = best[0].min(start.elapsed().as_secs_f64());
            drop(value);
            let start = Instant::now();
            let document = Document { name: "bench", bytes, written_at: None };
            let listings = model.normalize(&[document], &context).unwrap();
            best[1] = best[1].min(start.elapsed().as_secs_f64());
            resources = listings.iter().map(|listing| listing.resources.len()).sum();
        }
        #[expect(clippy::cast_precision_loss, reason = "megabytes")]
        let size = bytes.len() as f64 / 1e6;
        let [parsing, normalizing] = best.map(|seconds| size / seconds);
        println!(
            "| {} | {size:.1} | {resources} | {parsing:.0} | {normalizing:.0} | {:.2} |",
            model.name(),
            parsing / normalizing
        );
    }
}

/// A record of CloudTrail.
fn record(at: usize, account: &str) -> Json {
    json!({
        "eventVersion": "1.11", "eventID": format!("00000000-0000-4000-8000-{at:012}"),
        "eventTime": "2026-06-29T10:00:00Z", "eventName": "AuthorizeSecurityGroupIngress",
        "eventSource": "ec2.amazonaws.com", "awsRegion": "us-east-1", "recipientAccountId": account,
        "readOnly": false, "managementEvent": true, "sourceIPAddress": "192.0.2.1", "userAgent": "aws-cli/2.15",
        "userIdentity": {"type": "IAMUser", "arn": format!("arn:aws:iam::{account}:user/u{}", at % 50)},
        "requestParameters": {"groupId": format!("sg-{at:017x}"), "ipPermissions": {"items": [{"ipProtocol": "tcp"}]}},
        "responseElements": {"requestId": format!("{at:032x}"), "_return": true},
    })
}

/// A true-shaped document of about a size.
fn document(model: Model, size: usize) -> String {
    let many = |item: &dyn Fn(usize) -> Json| -> Vec<Json> {
        let count = size / item(0).to_string().len().max(1);
        (0..count).map(item).collect()
    };
    let account = "123456789012";
    let tags = |at: usize| json!({"Name": format!("thing-{at}"), "team": "payments", "env": "prod"});
    let document = match model {
        Model::Adopt => json!({
            "region": "us-east-1", "truncated": false, "setupCommands": [], "workflowCommand": "",
            "discovered": {"securityGroups": many(&|at| json!({
                "groupId": format!("sg-{at:017x}"), "groupName": format!("group-{at}"), "vpcId": "vpc-0123456789abcdef0",
                "description": "Traffic of the service", "ingressRuleCount": at % 7, "egressRuleCount": 1,
                "tags": tags(at), "name": format!("thing-{at}"),
            }))},
        }),
        Model::Inventory => json!({
            "region": "us-east-1", "resourceType": "lambda", "fetchedAt": "2026-06-29T10:00:00Z", "truncated": false,
            "resources": many(&|at| json!({
                "functionName": format!("function-{at}"), "runtime": "nodejs22.x", "memorySize": 512, "timeout": 30,
                "codeSize": 123_456 + at, "lastModified": "2026-06-01T00:00:00Z", "architecture": "arm64",
                "handler": "index.handler", "vpcConfig": {"vpcId": "vpc-1", "subnetIds": ["subnet-1", "subnet-2"], "securityGroupIds": ["sg-1"]},
                "layers": [], "environment": {"LOG_LEVEL": "[REDACTED]"}, "ephemeralStorageSize": 512,
                "deadLetterConfig": null, "tracingConfig": null, "reservedConcurrency": null,
            })),
        }),
        Model::Config => json!({
            "fetchedAt": "2026-06-29T10:00:00Z", "accountId": account, "region": "us-east-1",
            "evaluations": many(&|at| json!({
                "resourceId": format!("i-{:017x}", at / 3), "resourceType": "AWS::EC2::Instance", "resourceArn": null,
                "accountId": account, "region": "us-east-1", "complianceType": "NON_COMPLIANT",
                "configRuleName": format!("rule-{}", at % 3), "annotation": null, "evaluatedAt": "2026-06-29T09:00:00Z",
            })),
        }),
        Model::CloudTrail => json!({ "Records": many(&|at| record(at, account)) }),
        Model::Kubernetes => json!({
            "apiVersion": "v1", "kind": "List", "items": many(&|at| json!({
                "apiVersion": "v1", "kind": "ConfigMap", "data": {"settings": "a=1"}, "metadata": {
                    "name": format!("settings-{at}"), "namespace": format!("team-{}", at % 40), "labels": tags(at),
                    "uid": format!("{at:032x}"), "resourceVersion": at.to_string(), "managedFields": [{"manager": "helm"}],
                },
            })),
        }),
        Model::Dns => json!({
            "fetchedAt": "2026-06-29T10:00:00Z", "accountId": account, "truncated": false,
            "records": many(&|at| json!({
                "zoneId": format!("Z{}", at % 50), "zoneName": "example.com", "name": format!("host-{at}.example.com"),
                "type": if at < 50 { "SOA" } else { "CNAME" }, "ttl": 300, "values": [format!("target-{at}.example.org")],
                "aliasTarget": null,
            })),
        }),
        Model::EventTopology => {
            let arn = |at: usize| format!("arn:aws:sqs:us-east-1:{account}:queue-{at}");
            let half = size / 2;
            let count = half / 260;
            let nodes: Vec<Json> = (0..count)
                .map(|at| {
                    json!({
                        "id": arn(at), "type": "SQSQueue", "accountId": account, "region": "us-east-1",
                        "name": format!("queue-{at}"), "isBoundary": false, "metadata": {"approximateMessageCount": at},
                    })
                })
                .collect();
            let edges: Vec<Json> = (1..count)
                .map(|at| {
                    json!({
                        "from": arn(at / 2), "to": arn(at), "type": "redrive", "attributes": {"maxReceiveCount": 3},
                    })
                })
                .collect();
            json!({"fetchedAt": "2026-06-29T10:00:00Z", "accountId": account, "region": "us-east-1", "nodes": nodes, "edges": edges})
        }
        Model::CloudFormation => {
            let groups = (0..size / 400).map(|at| {
                let group = json!({"Type": "AWS::EC2::SecurityGroup", "Properties": {
                    "GroupDescription": "Traffic of the service", "GroupName": {"Fn::Sub": "${AWS::StackName}-group"},
                    "SecurityGroupIngress": [{"IpProtocol": "tcp", "FromPort": 443, "ToPort": 443, "CidrIp": "10.0.0.0/8"}],
                    "VpcId": {"Ref": "Vpc"}, "Tags": [{"Key": "Name", "Value": format!("thing-{at}")}],
                }});
                (format!("Group{at}"), group)
            });
            json!({"Resources": groups.collect::<serde_json::Map<_, _>>()})
        }
        Model::Terraform => json!({
            "version": 4, "terraform_version": "1.9.0", "serial": 1, "lineage": "x", "outputs": {},
            "resources": many(&|at| json!({
                "module": format!("module.service[{}]", at % 20), "mode": "managed", "type": "aws_security_group",
                "name": format!("group_{at}"), "provider": "provider[\"registry.terraform.io/hashicorp/aws\"]",
                "instances": [{"schema_version": 1, "attributes": {
                    "arn": format!("arn:aws:ec2:us-east-1:{account}:security-group/sg-{at:017x}"), "id": format!("sg-{at:017x}"),
                    "description": "Traffic of the service", "egress": [], "ingress": [{"from_port": 443, "to_port": 443, "protocol": "tcp", "cidr_blocks": ["10.0.0.0/8"]}],
                    "name": format!("group-{at}"), "vpc_id": "vpc-0123456789abcdef0", "tags": tags(at), "tags_all": tags(at),
                }, "sensitive_attributes": []}],
            })),
        }),
    };
    document.to_string()
}
