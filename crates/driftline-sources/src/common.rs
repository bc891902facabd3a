//! What two sources say of one thing, on the properties that both have.
//!
//! `cidr_block`, `cidrBlock` and `CidrBlock` are one name. Where names differ by more than their spelling, a table
//! says so. Nothing here decides what counts: both sides are brought into one shape, and compared like any other.

use std::collections::BTreeMap;

use driftline_core::Value;

use crate::declared::{has_unknown, is_unknown};

/// By type: what one source calls a property, and what others call it, both as [`fold`] writes them.
const ALIASES: &[(&str, &str, &str)] = &[
    ("AWS::S3::Bucket", "bucket", "bucketname"),
    ("AWS::EC2::SecurityGroup", "name", "groupname"),
    ("AWS::RDS::DBInstance", "instanceclass", "dbinstanceclass"),
    ("AWS::RDS::DBInstance", "identifier", "dbinstanceidentifier"),
    ("AWS::RDS::DBInstance", "dbinstanceid", "dbinstanceidentifier"),
    ("AWS::RDS::DBInstance", "dbsubnetgroupname", "dbsubnetgroup"),
    ("AWS::RDS::DBCluster", "dbsubnetgroupname", "dbsubnetgroup"),
    ("AWS::RDS::DBCluster", "vpcsecuritygroupids", "vpcsecuritygroups"),
    ("AWS::RDS::DBCluster", "clustermembers", "members"),
    ("AWS::Lambda::Function", "architectures", "architecture"),
    ("AWS::Lambda::Function", "reservedconcurrentexecutions", "reservedconcurrency"),
    ("AWS::DynamoDB::Table", "name", "tablename"),
    ("AWS::DynamoDB::Table", "readcapacity", "readcapacityunits"),
    ("AWS::DynamoDB::Table", "writecapacity", "writecapacityunits"),
    ("AWS::EC2::Instance", "instancestate", "state"),
    ("AWS::EC2::Volume", "type", "volumetype"),
    ("AWS::Route53::RecordSet", "records", "values"),
    ("AWS::SQS::Queue", "visibilitytimeoutseconds", "visibilitytimeout"),
    ("AWS::SQS::Queue", "messageretentionseconds", "messageretentionperiod"),
];

/// Names under which each source keeps what it calls the thing, and what it says of itself. They never compare.
const NOT_PROPERTIES: &[&str] =
    &["id", "arn", "$terraform", "$cloudformation", "timeouts", "region", "accountid", "resourcetype"];

/// Names that mean something else than they say: adopt's `name` is the tag of that name.
const MISLEADING: &[(&str, &str)] = &[("AWS::EC2::SecurityGroup", "name")];

/// A property's name without the spelling that differs between sources.
pub fn fold(name: &str) -> String {
    name.chars().filter(|char| !matches!(char, '_' | '-')).flat_map(char::to_lowercase).collect()
}

/// Both sides cut down to what both have. Paths are written as the second side writes them.
pub fn shared(kind: &str, first: &Value, second: &Value) -> (Value, Value) {
    let (Some(first), Some(second)) = (first.as_object(), second.as_object()) else {
        return (Value::Null, Value::Null);
    };
    let first = names(kind, first, true);
    let second = names(kind, second, false);
    both(&first, &second, &mut |a, b| cut(a, b))
}

type Named<'v> = BTreeMap<String, (&'v str, &'v Value)>;

fn names<'v>(kind: &str, members: &'v BTreeMap<String, Value>, aliases: bool) -> Named<'v> {
    let mut named: Named<'v> = BTreeMap::new();
    for (name, value) in members {
        let folded = fold(name);
        if NOT_PROPERTIES.contains(&folded.as_str()) || says_nothing(value) {
            continue;
        }
        let alias = ALIASES.iter().find(|(of, from, _)| *of == kind && *from == folded);
        let folded = match alias {
            Some((_, _, to)) if aliases || !members.keys().any(|other| fold(other) == *to) => (*to).to_owned(),
            _ if !aliases && MISLEADING.contains(&(kind, folded.as_str())) => continue,
            _ => folded,
        };
        named.insert(folded, (name, value));
    }
    // What is on the thing is its own tags and those it inherits.
    if let Some(all) = named.remove("tagsall") {
        named.insert("tags".into(), all);
    }
    named
}

/// Unset, or unset as an observer writes it.
fn says_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => false,
    }
}

fn both(
    first: &Named<'_>,
    second: &Named<'_>,
    cut: &mut dyn FnMut(&Value, &Value) -> (Value, Value),
) -> (Value, Value) {
    let mut left = BTreeMap::new();
    let mut right = BTreeMap::new();
    for (folded, (name, theirs)) in second {
        let Some((_, ours)) = first.get(folded) else { continue };
        // What a template could not be resolved to may be what is there.
        let open = |value: &Value| is_unknown(value) || value.as_array().is_some() && has_unknown(value);
        if open(ours) || open(theirs) {
            continue;
        }
        let (ours, theirs) = cut(ours, theirs);
        left.insert((*name).to_owned(), ours);
        right.insert((*name).to_owned(), theirs);
    }
    (Value::Object(left), Value::Object(right))
}

fn cut(first: &Value, second: &Value) -> (Value, Value) {
    match (first, second) {
        (Value::Object(first), Value::Object(second)) => {
            // Maps that people write, such as tags, keep every key; only what the cloud adds by itself goes.
            let own = |members: &BTreeMap<String, Value>| {
                let kept = members.iter().filter(|(name, _)| !name.starts_with("aws:"));
                Value::Object(kept.map(|(name, value)| (name.clone(), value.clone())).collect())
            };
            let shape = |members: &BTreeMap<String, Value>| members.values().all(|value| value.as_str().is_some());
            if shape(first) && shape(second) {
                return (own(first), own(second));
            }
            both(&names("", first, false), &names("", second, false), &mut |a, b| cut(a, b))
        }
        // Terraform writes a block that may come once as a list of one.
        (Value::Array(items), other @ (Value::Object(_) | Value::String(_) | Value::Number(_) | Value::Bool(_)))
            if items.len() == 1 =>
        {
            cut(&items[0], other)
        }
        (other @ (Value::Object(_) | Value::String(_)), Value::Array(items)) if items.len() == 1 => {
            cut(other, &items[0])
        }
        (Value::Array(first), Value::Array(second)) => {
            let sorted = |items: &[Value]| {
                let mut items = items.to_vec();
                if items.iter().all(|item| !matches!(item, Value::Object(_) | Value::Array(_))) {
                    items.sort();
                }
                Value::Array(items)
            };
            (sorted(first), sorted(second))
        }
        // One source's number is another's text.
        (Value::String(text), other @ (Value::Number(_) | Value::Bool(_))) if *text == other.to_json() => {
            (other.clone(), other.clone())
        }
        (other @ (Value::Number(_) | Value::Bool(_)), Value::String(text)) if *text == other.to_json() => {
            (Value::String(text.clone()), Value::String(text.clone()))
        }
        (first, second) => (first.clone(), second.clone()),
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn only_what_both_sources_have_is_held_against_each_other() {
        for (kind, first, second, left, right) in [
            (
                "AWS::EC2::VPC",
                r#"{"id":"vpc-1","cidr_block":"10.0.0.0/8","instance_tenancy":"default","tags":{"a":"1"},"tags_all":{"a":"1","b":"2"}}"#,
                r#"{"vpcId":"vpc-1","cidrBlock":"10.0.0.0/16","name":"x","tags":{"a":"1","b":"2","aws:cloudformation:stack-name":"s"}}"#,
                r#"{"cidrBlock":"10.0.0.0/8","tags":{"a":"1","b":"2"}}"#,
                r#"{"cidrBlock":"10.0.0.0/16","tags":{"a":"1","b":"2"}}"#,
            ),
            (
                "AWS::EC2::SecurityGroup",
                r#"{"name":"web","description":"d"}"#,
                r#"{"groupName":"web","name":"another","description":"d","ingressRuleCount":1}"#,
                r#"{"groupName":"web","description":"d"}"#,
                r#"{"groupName":"web","description":"d"}"#,
            ),
            (
                "AWS::Lambda::Function",
                r#"{"timeout":3,"architectures":["arm64"],"vpc_config":[{"subnet_ids":["b","a"],"extra":1}],"runtime":null}"#,
                r#"{"timeout":30,"architecture":"arm64","vpcConfig":{"subnetIds":["a","b"]},"runtime":"x"}"#,
                r#"{"timeout":3,"architecture":"arm64","vpcConfig":{"subnetIds":["a","b"]}}"#,
                r#"{"timeout":30,"architecture":"arm64","vpcConfig":{"subnetIds":["a","b"]}}"#,
            ),
        ] {
            let value = |text: &str| serde_json::from_str::<Value>(text).unwrap();
            let found = shared(kind, &value(first), &value(second));
            assert_eq!(found, (value(left), value(right)), "{kind}");
        }
    }
}
