//! What takes more than a path to get from an answer to a document.

use serde_json::{Map, Value, json};

use crate::shape::{all, at, boolean, camel, document, number, tags, text_at};

pub(crate) fn is_deleted(gateway: &Value) -> bool {
    text_at(gateway, "state") == Some("deleted")
}

pub(crate) fn is_terminated(instance: &Value) -> bool {
    text_at(instance, "instanceState/name") == Some("terminated")
}

pub(crate) fn is_of_a_service(interface: &Value) -> bool {
    at(interface, "requesterManaged").map(boolean) == Some(true.into())
}

pub(crate) fn is_main(table: &Value) -> Value {
    Value::Bool(all(table, "associationSet/*/main").into_iter().any(|main| boolean(main) == true))
}

const DESTINATIONS: [&str; 3] = ["destinationCidrBlock", "destinationIpv6CidrBlock", "destinationPrefixListId"];
const TARGETS: [&str; 9] = [
    "gatewayId",
    "natGatewayId",
    "transitGatewayId",
    "vpcPeeringConnectionId",
    "instanceId",
    "networkInterfaceId",
    "egressOnlyInternetGatewayId",
    "localGatewayId",
    "carrierGatewayId",
];

pub(crate) fn routes(table: &Value) -> Value {
    let first = |route: &Value, names: &[&str]| {
        names.iter().find_map(|name| text_at(route, name)).unwrap_or_default().to_owned()
    };
    let mut routes: Vec<(String, String, String)> = all(table, "routeSet/*")
        .into_iter()
        .map(|route| (first(route, &DESTINATIONS), first(route, &TARGETS), first(route, &["state"])))
        .collect();
    routes.sort();
    let object = |(to, by, state)| json!({"destination": to, "target": by, "state": state});
    Value::Array(routes.into_iter().map(object).collect())
}

pub(crate) fn ingress(group: &Value) -> Value {
    rules(group, "ipPermissions/*")
}

pub(crate) fn egress(group: &Value) -> Value {
    rules(group, "ipPermissionsEgress/*")
}

/// Each rule under what it allows: AWS groups rules by protocol and ports, in an order that says nothing.
fn rules(group: &Value, path: &str) -> Value {
    let mut rules = Map::new();
    for permission in all(group, path) {
        let protocol = text_at(permission, "ipProtocol").unwrap_or("-1");
        let ports = match (text_at(permission, "fromPort"), text_at(permission, "toPort")) {
            _ if protocol == "-1" => "all".to_owned(),
            (Some(from), Some(to)) if from == to => format!("{protocol} {from}"),
            (Some(from), Some(to)) => format!("{protocol} {from}-{to}"),
            _ => protocol.to_owned(),
        };
        let peers = [
            ("ipRanges/*", "cidrIp"),
            ("ipv6Ranges/*", "cidrIpv6"),
            ("prefixListIds/*", "prefixListId"),
            ("groups/*", "groupId"),
        ];
        for (list, name) in peers {
            for peer in all(permission, list) {
                let Some(whom) = text_at(peer, name) else { continue };
                let description = text_at(peer, "description").unwrap_or_default();
                rules.insert(format!("{ports} {whom}"), Value::from(description));
            }
        }
    }
    Value::Object(rules)
}

pub(crate) fn attachments(volume: &Value) -> Value {
    let attachment = |found: &Value| {
        json!({
            "instanceId": text_at(found, "instanceId"),
            "device": text_at(found, "device"),
            "state": text_at(found, "status"),
        })
    };
    Value::Array(all(volume, "attachmentSet/*").into_iter().map(attachment).collect())
}

/// A table that says nothing of its billing is of the kind that was the only one.
pub(crate) fn billing_mode(table: &Value) -> Value {
    Value::from(text_at(table, "Table/BillingModeSummary/BillingMode").unwrap_or("PROVISIONED"))
}

pub(crate) fn attribute_definitions(table: &Value) -> Value {
    let pairs = all(table, "Table/AttributeDefinitions/*").into_iter().filter_map(|one| {
        Some((text_at(one, "AttributeName")?.to_owned(), Value::from(text_at(one, "AttributeType")?)))
    });
    Value::Object(pairs.collect())
}

pub(crate) fn architecture(function: &Value) -> Value {
    all(function, "Architectures/*").first().map_or_else(|| Value::from("x86_64"), |first| (*first).clone())
}

/// A function outside of every VPC has the members all the same, and nothing in them.
pub(crate) fn vpc_config(function: &Value) -> Value {
    match at(function, "VpcConfig").filter(|config| text_at(config, "VpcId").is_some()) {
        Some(config) => camel(config),
        None => Value::Null,
    }
}

pub(crate) fn queue_name(queue: &Value) -> Value {
    let url = text_at(queue, "id").unwrap_or_default();
    Value::from(url.rsplit('/').next().unwrap_or(url))
}

pub(crate) fn topic_name(topic: &Value) -> Value {
    let arn = text_at(topic, "TopicArn").unwrap_or_default();
    Value::from(arn.rsplit(':').next().unwrap_or(arn))
}

/// What changes by itself is a measurement and no attribute; what is JSON is opened.
fn attributes(given: &Value, without: &[&str], starting: &[&str]) -> Value {
    let members = given.as_object().into_iter().flatten();
    let kept = members
        .filter(|(name, _)| !without.contains(&name.as_str()) && !starting.iter().any(|start| name.starts_with(start)));
    Value::Object(kept.map(|(name, value)| (crate::shape::camel_name(name), opened(value))).collect())
}

fn opened(value: &Value) -> Value {
    match value.as_str() {
        Some(text) if text.starts_with(['{', '[']) => document(value),
        _ => boolean(&number(value)),
    }
}

pub(crate) fn queue_attributes(queue: &Value) -> Value {
    let given = at(queue, "Attributes").cloned().unwrap_or_default();
    attributes(&given, &["QueueArn", "CreatedTimestamp", "LastModifiedTimestamp"], &["ApproximateNumberOf"])
}

/// SNS hands attributes out as a list of entries.
pub(crate) fn topic_attributes(topic: &Value) -> Value {
    let given = at(topic, "Attributes").map_or(Value::Null, entries);
    attributes(&given, &["TopicArn", "Owner"], &["Subscriptions"])
}

/// `<entry><key>…</key><value>…</value></entry>`, one or many, as an object.
pub(crate) fn entries(attributes: &Value) -> Value {
    let listed = match attributes.get("entry") {
        Some(Value::Array(entries)) => entries.as_slice(),
        Some(one) => std::slice::from_ref(one),
        None => attributes.as_array().map_or(&[][..], Vec::as_slice),
    };
    tags(Some(&Value::Array(listed.to_vec())))
}

pub(crate) fn encryption(bucket: &Value) -> Value {
    let rule = all(bucket, "Encryption/*").into_iter().next();
    let Some(rule) = rule.or_else(|| at(bucket, "Encryption").filter(|rule| rule.is_object())) else {
        return Value::Null;
    };
    json!({
        "algorithm": text_at(rule, "ApplyServerSideEncryptionByDefault/SSEAlgorithm"),
        "kmsKeyId": text_at(rule, "ApplyServerSideEncryptionByDefault/KMSMasterKeyID"),
        "bucketKeyEnabled": at(rule, "BucketKeyEnabled").map(boolean),
    })
}

pub(crate) fn public_access_block(bucket: &Value) -> Value {
    let members = at(bucket, "PublicAccessBlock").and_then(Value::as_object);
    members.map_or(Value::Null, |members| {
        let pairs = members.iter().map(|(name, value)| (crate::shape::camel_name(name), boolean(value)));
        Value::Object(pairs.collect())
    })
}

pub(crate) fn trust_policy(role: &Value) -> Value {
    at(role, "AssumeRolePolicyDocument").map_or(Value::Null, document)
}

fn inline(of: &Value, list: &str) -> Value {
    let policies = all(of, list).into_iter().filter_map(|policy| {
        let name = text_at(policy, "PolicyName")?;
        Some((name.to_owned(), at(policy, "PolicyDocument").map_or(Value::Null, document)))
    });
    Value::Object(policies.collect())
}

pub(crate) fn role_policies(role: &Value) -> Value {
    inline(role, "RolePolicyList/*")
}

pub(crate) fn user_policies(user: &Value) -> Value {
    inline(user, "UserPolicyList/*")
}

pub(crate) fn group_policies(group: &Value) -> Value {
    inline(group, "GroupPolicyList/*")
}

pub(crate) fn default_document(policy: &Value) -> Value {
    let versions = all(policy, "PolicyVersionList/*");
    let in_force =
        versions.into_iter().find(|version| at(version, "IsDefaultVersion").map(boolean) == Some(true.into()));
    in_force.and_then(|version| at(version, "Document")).map_or(Value::Null, document)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_of_a_group_is_told_by_what_it_allows() {
        let group = json!({"ipPermissions": [
            {"ipProtocol": "tcp", "fromPort": "443", "toPort": "443",
             "ipRanges": [{"cidrIp": "0.0.0.0/0", "description": "web"}, {"cidrIp": "10.0.0.0/8"}], "groups": ""},
            {"ipProtocol": "-1", "groups": [{"groupId": "sg-1"}], "ipRanges": ""},
            {"ipProtocol": "udp", "fromPort": "1", "toPort": "9", "ipv6Ranges": [{"cidrIpv6": "::/0"}]},
        ]});
        let expected =
            json!({"tcp 443 0.0.0.0/0": "web", "tcp 443 10.0.0.0/8": "", "all sg-1": "", "udp 1-9 ::/0": ""});
        assert_eq!(ingress(&group), expected);
        assert_eq!(egress(&group), json!({}));
    }

    #[test]
    fn measurements_are_no_attributes() {
        let queue = json!({"Attributes": {"ApproximateNumberOfMessages": "7", "VisibilityTimeout": "30",
            "RedrivePolicy": "{\"maxReceiveCount\":5}", "CreatedTimestamp": "1"}});
        let expected = json!({"visibilityTimeout": 30, "redrivePolicy": {"maxReceiveCount": 5}});
        assert_eq!(queue_attributes(&queue), expected);
        let topic = json!({"Attributes": {"entry": [{"key": "SubscriptionsConfirmed", "value": "1"},
            {"key": "DisplayName", "value": "x"}]}});
        assert_eq!(topic_attributes(&topic), json!({"displayName": "x"}));
    }

    #[test]
    fn routes_are_told_by_where_they_lead() {
        let table = json!({"routeSet": [
            {"destinationCidrBlock": "10.0.0.0/16", "gatewayId": "local", "state": "active"},
            {"destinationCidrBlock": "0.0.0.0/0", "natGatewayId": "nat-1", "state": "active"},
        ], "associationSet": [{"main": "true"}]});
        assert_eq!(routes(&table)[0], json!({"destination": "0.0.0.0/0", "target": "nat-1", "state": "active"}));
        assert_eq!(is_main(&table), json!(true));
    }
}
