//! Documents of any size: as observers write them, and made so that as much as possible comes of them.
#![expect(clippy::needless_pass_by_value, reason = "documents are put together from parts, and each part is used once")]

use serde_json::{Value as Json, json};

use crate::targets::{self, Target};

/// So many items that they are as long as that together.
fn fill(size: usize, item: impl Fn(usize) -> Json) -> Vec<Json> {
    let mut items = Vec::new();
    let mut length = 0;
    while length < size {
        let item = item(items.len());
        length += item.to_string().len() + 1;
        items.push(item);
    }
    items
}

const ACCOUNT: &str = "123456789012";

/// What an observer would write of an account that large.
pub(crate) fn true_shaped(target: &Target, size: usize) -> Vec<u8> {
    let tags = |at: usize| json!({"Name": format!("thing-{at}"), "team": "payments", "env": "prod"});
    let arn = |at: usize| format!("arn:aws:sqs:us-east-1:{ACCOUNT}:queue-{at}");
    let document = match target.name {
        "adopt" => json!({"region": "us-east-1", "discovered": {"securityGroups": fill(size, |at| json!({
            "groupId": format!("sg-{at:017x}"), "groupName": format!("group-{at}"), "vpcId": "vpc-0123456789abcdef0",
            "description": "Traffic", "ingressRuleCount": at % 7, "egressRuleCount": 1, "tags": tags(at), "name": "",
        }))}}),
        "inventory" => json!({"region": "us-east-1", "resourceType": "ec2", "resources": fill(size, |at| json!({
            "instanceId": format!("i-{at:017x}"), "instanceType": "t3.micro", "state": "running", "platform": null,
            "availabilityZone": "us-east-1a", "tags": tags(at), "launchTime": "2026-06-01T00:00:00Z",
        }))}),
        "config" => json!({"accountId": ACCOUNT, "region": "us-east-1", "evaluations": fill(size, |at| json!({
            "resourceId": format!("i-{:017x}", at / 3), "resourceType": "AWS::EC2::Instance", "resourceArn": null,
            "accountId": ACCOUNT, "region": "us-east-1", "complianceType": "NON_COMPLIANT", "annotation": null,
            "configRuleName": format!("rule-{}", at % 3), "evaluatedAt": "2026-06-29T09:00:00Z",
        }))}),
        "dns" => json!({"accountId": ACCOUNT, "records": fill(size, |at| json!({
            "zoneId": format!("Z{}", at % 50), "zoneName": "example.com", "name": format!("host-{at}.example.com"),
            "type": "CNAME", "ttl": 300, "values": [format!("target-{at}.example.org")], "aliasTarget": null,
        }))}),
        "event_topology" => json!({
            "accountId": ACCOUNT, "region": "us-east-1",
            "nodes": fill(size / 2, |at| json!({
                "id": arn(at), "type": "SQSQueue", "accountId": ACCOUNT, "region": "us-east-1", "isBoundary": false,
                "name": format!("queue-{at}"), "metadata": {"approximateMessageCount": at},
            })),
            "edges": fill(size / 2, |at| json!({
                "from": arn(at / 2), "to": arn(at), "type": "redrive", "attributes": {"maxReceiveCount": 3},
            })),
        }),
        "mapped" => json!({"account": ACCOUNT, "where": {"region": "us-east-1"}, "things": fill(size, |at| json!({
            "id": arn(at), "kind": "AWS::SQS::Queue", "tags": tags(at), "delay": at % 60, "encrypted": true,
        }))}),
        "swamp" => json!({"contentType": "application/json", "size": 3, "tags": {"type": "resource", "specName": "s"},
            "someday": fill(size.min(8 << 10), tags)}),
        "terraform" => json!({"version": 4, "serial": 1, "resources": fill(size, |at| json!({
            "module": format!("module.service[{}]", at % 20), "mode": "managed", "type": "aws_security_group",
            "name": format!("group_{at}"), "provider": "provider[\"registry.terraform.io/hashicorp/aws\"]",
            "instances": [{"schema_version": 1, "attributes": {
                "arn": format!("arn:aws:ec2:us-east-1:{ACCOUNT}:security-group/sg-{at:017x}"), "egress": [],
                "id": format!("sg-{at:017x}"), "name": format!("group-{at}"), "tags": tags(at), "tags_all": tags(at),
                "ingress": [{"from_port": 443, "to_port": 443, "protocol": "tcp", "cidr_blocks": ["10.0.0.0/8"]}],
            }, "sensitive_attributes": []}],
        }))}),
        "cloudtrail" => json!({"Records": fill(size, |at| json!({
            "eventVersion": "1.11", "eventID": format!("00000000-0000-4000-8000-{at:012}"),
            "eventTime": "2026-06-29T10:00:00Z", "eventName": "AuthorizeSecurityGroupIngress",
            "eventSource": "ec2.amazonaws.com", "awsRegion": "us-east-1", "recipientAccountId": ACCOUNT,
            "readOnly": false, "managementEvent": true, "sourceIPAddress": "192.0.2.1", "userAgent": "aws-cli/2.15",
            "userIdentity": {"type": "IAMUser", "arn": format!("arn:aws:iam::{ACCOUNT}:user/u{}", at % 50)},
            "requestParameters": {"groupId": format!("sg-{at:017x}"), "ipPermissions": {"items": [{"ipProtocol": "tcp"}]}},
            "responseElements": {"requestId": format!("{at:032x}"), "_return": true},
        }))}),
        "kubernetes" => json!({"apiVersion": "v1", "kind": "List", "items": fill(size, |at| json!({
            "apiVersion": "v1", "kind": "ConfigMap", "data": {"settings": "a=1"}, "metadata": {
                "name": format!("settings-{at}"), "namespace": format!("team-{}", at % 40), "labels": tags(at),
                "uid": format!("{at:032x}"), "resourceVersion": at.to_string(), "managedFields": [{"manager": "helm"}],
            },
        }))}),
        "cloudformation" => json!({"Resources": fill(size, |at| json!({
            "Type": "AWS::EC2::SecurityGroup", "Properties": {
                "GroupName": {"Fn::Sub": "${AWS::StackName}-group"}, "VpcId": {"Ref": "Vpc"}, "GroupDescription": "Traffic",
                "SecurityGroupIngress": [{"IpProtocol": "tcp", "FromPort": 443, "ToPort": 443, "CidrIp": "10.0.0.0/8"}],
                "Tags": [{"Key": "Name", "Value": format!("thing-{at}")}],
            },
        })).into_iter().enumerate().map(|(at, group)| (format!("Group{at}"), group)).collect::<serde_json::Map<_, _>>()}),
        _ => {
            return lines(
                size,
                |at| json!({"canonicalId": arn(at), "resourceType": "AWS::SQS::Queue", "snapshot": {"tags": tags(at), "at": at}}),
            );
        }
    };
    document.to_string().into_bytes()
}

/// What `terraform show -json` would print of a plan that makes so much.
pub(crate) fn plan(size: usize) -> Vec<u8> {
    let changes = fill(size, |at| {
        json!({"address": format!("module.service.aws_security_group.group_{at}"), "mode": "managed", "name": "group",
        "type": "aws_security_group", "provider_name": "registry.terraform.io/hashicorp/aws", "change": {
            "actions": ["create"], "before": null, "after": {"description": "Traffic", "name": format!("group-{at}"),
                "ingress": [{"from_port": 443, "to_port": 443, "protocol": "tcp", "cidr_blocks": ["10.0.0.0/8"]}]},
            "after_unknown": {"arn": true, "id": true, "ingress": [{"cidr_blocks": [false]}], "owner_id": true},
            "before_sensitive": false, "after_sensitive": {"ingress": [{"cidr_blocks": [false]}]},
        }})
    });
    json!({"format_version": "1.2", "resource_changes": changes}).to_string().into_bytes()
}

fn lines(size: usize, item: impl Fn(usize) -> Json) -> Vec<u8> {
    let header = json!({"schema": "driftline.observation/v1", "source": "fuzz"});
    let lines = std::iter::once(header).chain(fill(size, item)).map(|line| line.to_string());
    lines.collect::<Vec<_>>().join("\n").into_bytes()
}

/// Values that need the most room in memory for what they need in text.
fn dense(size: usize) -> Vec<(&'static str, Json)> {
    let deep = |_| (0..100).fold(json!(0), |value, _| json!({ "": value }));
    vec![
        ("tiny numbers", fill(size, |_| json!(0)).into()),
        ("tiny lists", fill(size, |_| json!([])).into()),
        ("tiny objects", fill(size, |_| json!({"": 0})).into()),
        ("tiny objects in each other", fill(size, deep).into()),
        (
            "very many members",
            Json::Object(
                fill(size, |at| json!(format!("{at:x}")))
                    .into_iter()
                    .zip(0..)
                    .map(|(name, at)| (name.as_str().unwrap_or_default().to_owned(), json!(at % 10)))
                    .collect(),
            ),
        ),
    ]
}

type Documents = Vec<(Target, String, Vec<u8>)>;

/// Adds one.
fn add(all: &mut Documents, target: Target, what: &str, document: &Json) {
    all.push((target, what.to_owned(), document.to_string().into_bytes()));
}

/// What is long once and used often, what is tiny and there often, and what is dense.
pub(crate) fn documents(size: usize) -> Documents {
    let mut all = Vec::new();
    placed(size, &mut all);
    of_terraform(size, &mut all);
    of_cloudformation(size, &mut all);
    of_kubernetes(size, &mut all);
    of_cloudtrail(size, &mut all);
    of_dense(size, &mut all);
    others(size, &mut all);
    all
}

/// Very many things in one place.
fn placed(size: usize, all: &mut Documents) {
    let mut add = |target: Target, what: &str, document: Json| add(all, target, what, &document);
    let half = size / 2;
    let long = "x".repeat(half);
    let tiny = |name: &str| fill(half, |at| json!({ name: at.to_string() }));

    let longest = "x".repeat(64);
    for (what, region, account) in [
        ("a long region", long.as_str(), "1"),
        ("a long account", "r", long.as_str()),
        ("tiny items", "us-east-1", ACCOUNT),
        ("tiny items of a place as long as it may be", longest.as_str(), longest.as_str()),
    ] {
        let head = |more: Json| {
            let mut document = json!({"region": region, "accountId": account});
            if let (Json::Object(document), Json::Object(more)) = (&mut document, more) {
                document.extend(more);
            }
            document
        };
        add(targets::ADOPT, what, head(json!({"discovered": {"vpcs": tiny("vpcId")}})));
        add(targets::INVENTORY, what, head(json!({"resourceType": "ebs", "resources": tiny("volumeId")})));
        let scanned = fill(half, |at| json!({"arn": at.to_string(), "resourceType": "T", "accountId": at.to_string()}));
        add(targets::INVENTORY, what, head(json!({"source": "s", "resources": scanned})));
        let evaluated = |at: usize| json!({"resourceId": at.to_string(), "resourceType": "T", "complianceType": "C", "configRuleName": "r"});
        add(targets::CONFIG, what, head(json!({"evaluations": fill(half, evaluated)})));
        add(targets::DNS, what, head(json!({"zones": tiny("id")})));
        let records = fill(half, |at| json!({"zoneId": at.to_string(), "name": "n", "type": "A"}));
        add(targets::DNS, what, head(json!({"records": records})));
        let things = fill(half, |at| json!({"id": at.to_string()}));
        let mapped = json!({"account": account, "kind": "T", "where": {"region": region}, "things": things});
        add(targets::MAPPED, what, mapped);
        let edges = fill(half / 2, |at| json!({"from": at.to_string(), "to": "1", "type": "t"}));
        add(targets::EVENT_TOPOLOGY, what, head(json!({"nodes": tiny("id"), "edges": edges})));
    }
}

/// A state with one resource in it.
fn resource(more: Json) -> Json {
    let mut resource = json!({"mode": "managed", "type": "aws_vpc", "name": "n", "instances": []});
    if let (Json::Object(resource), Json::Object(more)) = (&mut resource, more) {
        resource.extend(more);
    }
    json!({"version": 4, "serial": 1, "resources": [resource]})
}

/// A state with one resource of one instance.
fn attributes(more: Json) -> Json {
    resource(json!({"instances": [{"attributes": more}]}))
}

/// What is printed of a state with one resource.
fn shown(values: Json, marks: Json) -> Json {
    json!({"format_version": "1.0", "values": {"root_module": {"resources": [{
            "address": "a.b", "mode": "managed", "type": "a", "values": values, "sensitive_values": marks}]}}})
}

/// What is printed of a plan with one change.
fn change(before: Json, after: Json, unknown: Json) -> Json {
    json!({"format_version": "1.0", "resource_changes": [{"address": "a.b", "mode": "managed", "type": "a",
            "change": {"actions": ["update"], "before": before, "after": after, "after_unknown": unknown}}]})
}

/// Names above very many instances, secrets and changes.
/// What is written once and asked for often.
fn of_cloudformation(size: usize, all: &mut Documents) {
    let mut add = |what: &str, document: Json| add(all, targets::CLOUDFORMATION, what, &document);
    let long = "x".repeat(size / 2);
    let thing = |properties: Json| json!({"A": {"Type": "Custom::A", "Properties": properties}});
    let references = |name: &str, size: usize| -> Vec<Json> { (0..size / 16).map(|_| json!({"Ref": name})).collect() };
    let parameters = json!({"P": {"Type": "String", "Default": long}, "L": {"Type": "CommaDelimitedList", "Default": ",".repeat(size / 2)}});
    for name in ["P", "L", "Nobody", "A"] {
        let resources = thing(json!({"X": references(name, size / 2)}));
        add(&format!("very many of {name}"), json!({"Parameters": parameters, "Resources": resources}));
    }
    let subbed = json!({"Fn::Sub": "${P}".repeat(size / 8)});
    add("a long text of long texts", json!({"Parameters": parameters, "Resources": thing(json!({"X": subbed}))}));
    let joined = json!({"Fn::Join": [long, vec![0; size / 4]]});
    add("much between little", json!({"Resources": thing(json!({"X": joined}))}));
    let many: serde_json::Map<String, Json> =
        (0..size / 24).map(|at| (at.to_string(), json!({"Type": "A", "Condition": "C"}))).collect();
    add("very many that may be there", json!({"Resources": many}));
    let tiny: serde_json::Map<String, Json> = (0..size / 16).map(|at| (at.to_string(), json!({"Type": "A"}))).collect();
    add("very many tiny things", json!({"Resources": tiny}));
    let chain: serde_json::Map<String, Json> =
        (0..size / 40).map(|at| (at.to_string(), json!({"Condition": (at + 1).to_string()}))).collect();
    let waits = json!({"A": {"Type": "Custom::A"}, "B": {"Type": "Custom::A", "Condition": "0"}});
    add("a long chain of conditions", json!({"Conditions": chain, "Resources": waits}));
}

/// Requests that name very many things, at any depth, and records without end.
fn of_cloudtrail(size: usize, all: &mut Documents) {
    let record = |at: usize, request: Json| {
        json!({"eventID": at.to_string(), "eventTime": "2026-06-29T10:00:00Z", "eventName": "A", "eventSource": "a",
            "awsRegion": "r", "recipientAccountId": ACCOUNT, "requestParameters": request})
    };
    let named: Vec<Json> = fill(size, |at| json!(format!("i-{at:017x}")));
    let long = "x".repeat(size);
    for (what, request) in [
        ("very many things named", json!({ "ids": named })),
        ("a long name", json!({ "name": long })),
        ("a long member", json!({ long: "i-0123456789abcdef0" })),
    ] {
        add(all, targets::CLOUDTRAIL, what, &json!({"Records": [record(1, request)]}));
    }
    for (what, value) in dense(size) {
        add(all, targets::CLOUDTRAIL, what, &json!({"Records": [record(1, value.clone())]}));
        add(all, targets::CLOUDTRAIL, &format!("{what} as records"), &json!({ "Records": value }));
    }
    let tiny = |size: usize| fill(size, |at| record(at, Json::Null));
    add(all, targets::CLOUDTRAIL, "tiny records", &json!({"Records": tiny(size)}));
    add(all, targets::CLOUDTRAIL, "empty records", &json!({"Records": vec![json!({}); size / 3]}));
    all.push((targets::CLOUDTRAIL, "line by line".to_owned(), "{\"eventID\":1}\n".repeat(size / 14).into_bytes()));
}

/// Names of a list that all of its items take over, and YAML that repeats itself.
fn of_kubernetes(size: usize, all: &mut Documents) {
    let tiny = |size: usize| fill(size, |at| json!({"metadata": {"name": at.to_string()}}));
    let long = "x".repeat(size / 2);
    for (what, kind, version) in [
        ("a long kind", format!("{long}List"), "v1".to_owned()),
        ("a long version", "PodList".to_owned(), format!("{long}/v1")),
        ("names as long as they may be", format!("{}List", "x".repeat(252)), format!("{}/v1", "y".repeat(253))),
    ] {
        let list = json!({"kind": kind, "apiVersion": version, "items": tiny(size / 2)});
        add(all, targets::KUBERNETES, what, &list);
    }
    let object = |value: Json| json!({"apiVersion": "v1", "kind": "A", "metadata": {"name": "a"}, "x": value});
    for (what, value) in dense(size) {
        add(all, targets::KUBERNETES, what, &object(value.clone()));
        add(all, targets::KUBERNETES, &format!("{what} as items"), &json!({"kind": "List", "items": value}));
    }
    let bomb: String =
        (1..12).map(|at| format!("a{at}: &a{at} [{}]\n", vec![format!("*a{}", at - 1); 9].join(","))).collect();
    let documents: Vec<(&str, String)> = vec![
        ("aliases of aliases", format!("a0: &a0 lol\n{bomb}")),
        ("very many documents", "---\n{}\n".repeat(size / 7)),
        ("a long list of lists", format!("kind: List\nitems:\n{}", "- []\n".repeat(size / 5))),
    ];
    for (what, text) in documents {
        all.push((targets::KUBERNETES, what.to_owned(), text.into_bytes()));
    }
}

fn of_terraform(size: usize, all: &mut Documents) {
    let mut add = |target: Target, what: &str, document: Json| add(all, target, what, &document);
    let half = size / 2;
    let long = "x".repeat(half);
    let instances = fill(half, |at| json!({ "index_key": at }));
    for name in ["name", "module", "type", "provider"] {
        let state = resource(json!({name: long, "instances": instances}));
        add(targets::TERRAFORM, &format!("a long {name} of many instances"), state);
    }
    let passwords = |count: usize| -> Json {
        (0..count).map(|at| (format!("{at:x}password"), json!("x"))).collect::<serde_json::Map<_, _>>().into()
    };
    add(targets::TERRAFORM, "secrets beneath a long name", attributes(json!({long.as_str(): passwords(half / 18)})));
    let deep = (0..100).fold(passwords(size / 18), |value, _| json!({ "n": value }));
    add(targets::TERRAFORM, "secrets far down", attributes(deep));
    let numbers = |size: usize| Json::from(fill(size, |_| json!(0)));
    let marks = |size: usize| Json::from(fill(size, |_| json!(true)));
    let marked = shown(json!({long.as_str(): numbers(half / 4)}), json!({long.as_str(): marks(half)}));
    add(targets::TERRAFORM, "marks beneath a long name", marked);
    let ones = |size: usize| Json::from(fill(size, |_| json!(1)));
    let leaves = change(json!({long.as_str(): numbers(half / 2)}), json!({long.as_str(): ones(half / 2)}), json!({}));
    add(targets::TERRAFORM, "changes beneath a long name", leaves);
    add(targets::TERRAFORM, "very many changes", change(numbers(half), ones(half), json!({})));
    add(targets::TERRAFORM, "very much that is not known", change(json!(null), json!(null), marks(size)));
}

fn of_dense(size: usize, all: &mut Documents) {
    let mut add = |target: Target, what: &str, document: Json| add(all, target, what, &document);
    for (what, value) in dense(size) {
        add(targets::ADOPT, what, json!({"region": "r", "discovered": {"vpcs": [{"vpcId": "v", "x": value}]}}));
        add(targets::ADOPT, &format!("{what} as items"), json!({"region": "r", "discovered": {"vpcs": value}}));
        add(targets::INVENTORY, what, json!({"resourceType": "s3", "resources": [{"bucketName": "b", "x": value}]}));
        add(targets::INVENTORY, &format!("{what} as items"), json!({"resourceType": "s3", "resources": value}));
        let scanned = json!([{"arn": "a", "resourceType": "aws::s3::bucket", "x": value}]);
        add(targets::INVENTORY, &format!("{what} in a scan"), json!({"source": "s", "resources": scanned}));
        add(targets::CONFIG, what, json!({"evaluations": [{"x": value}]}));
        add(targets::CONFIG, &format!("{what} as items"), json!({"evaluations": value}));
        add(targets::DNS, what, json!({"zones": [{"id": "z", "x": value}]}));
        let same = json!({"zoneId": "z", "name": "n", "type": "A", "x": value});
        add(
            targets::DNS,
            &format!("{what} in one of two"),
            json!({"records": [same, {"zoneId": "z", "name": "n", "type": "A"}]}),
        );
        add(targets::EVENT_TOPOLOGY, what, json!({"nodes": [{"id": "n", "x": value}], "edges": []}));
        let edge = json!({"from": "n", "to": "m", "type": "t", "attributes": {"x": value}});
        add(targets::EVENT_TOPOLOGY, &format!("{what} in an edge"), json!({"nodes": [{"id": "n"}], "edges": [edge]}));
        add(targets::TERRAFORM, what, attributes(json!({"id": "i", "x": value})));
        add(targets::TERRAFORM, &format!("{what} as marks"), shown(json!({"x": 1}), json!({"x": value})));
        add(targets::TERRAFORM, &format!("{what} in a change"), change(json!({"x": value}), json!(null), json!({})));
        add(targets::MAPPED, what, json!({"things": [{"id": "i", "kind": "T", "x": value}]}));
        add(targets::MAPPED, &format!("{what} as items"), json!({"things": value}));
        add(targets::SWAMP, what, json!({ "x": value }));
        add(
            targets::PLAIN,
            what,
            json!({"schema": "driftline.observation/v1", "source": "s", "resources": [
            {"canonicalId": "i", "resourceType": "T", "snapshot": {"x": value}}]}),
        );
    }
}

fn others(size: usize, all: &mut Documents) {
    let mut add_json = |target: Target, what: &str, document: Json| add(all, target, what, &document);
    let half = size / 2;
    let rule = "r".repeat(half / 200);
    let places = fill(half, |at| {
        json!({"resourceId": "i", "resourceType": "T", "complianceType": "C",
        "configRuleName": if at < 200 { rule.as_str() } else { "r" }, "region": at.to_string()})
    });
    add_json(targets::CONFIG, "a long rule that is cut, in many places", json!({"evaluations": places}));
    let sets = fill(size, |_| json!({"zoneId": "Z", "name": "n", "type": "A"}));
    add_json(targets::DNS, "one record very often", json!({"records": sets}));

    let patterns = json!({"schema": "driftline.observation/v1", "source": "s", "resources": [
        {"canonicalId": "i", "resourceType": "T", "snapshot": {}, "sensitive": fill(size, |_| json!("/"))}]});
    add_json(targets::PLAIN, "very many patterns", patterns);
    add_json(targets::SWAMP, "very many tags", json!({"tags": dense(size).remove(4).1}));
    add_json(targets::SWAMP, "very many exclusions", json!({"datastore": {"exclude": fill(size, |_| json!("")) }}));
    let bomb: String =
        (1..12).map(|at| format!("a{at}: &a{at} [{}]\n", vec![format!("*a{}", at - 1); 9].join(","))).collect();
    all.push((
        targets::SWAMP,
        "aliases of aliases".into(),
        format!("a0: &a0 lol\n{bomb}tags: {{type: *a11}}\n").into_bytes(),
    ));
    all.push((
        targets::PLAIN,
        "one long line".into(),
        lines(size, |_| json!({"canonicalId": "x".repeat(size), "resourceType": "T", "snapshot": {}})),
    ));
}
