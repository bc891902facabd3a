//! What follows from a physical id: the key of a thing, and those of its attributes that can be no other.

use driftline_core::{ResourceKey, Value};

use crate::aws::{self, Whereabouts};
use crate::normalize::key as key_of;

/// Types whose physical id is the name at the end of their ARN, and whose attribute `Arn` is that ARN.
const NAMED: &[&str] = &[
    "AWS::CloudWatch::Alarm",
    "AWS::DynamoDB::Table",
    "AWS::ECR::Repository",
    "AWS::ECS::Cluster",
    "AWS::EFS::FileSystem",
    "AWS::IAM::Group",
    "AWS::IAM::InstanceProfile",
    "AWS::IAM::Role",
    "AWS::IAM::User",
    "AWS::KMS::Key",
    "AWS::Kinesis::Stream",
    "AWS::KinesisFirehose::DeliveryStream",
    "AWS::Lambda::Function",
    "AWS::S3::Bucket",
    "AWS::SQS::Queue",
];

/// Attributes that are the physical id, if it begins like this.
const SAME: &[(&str, &str, &str)] = &[
    ("AWS::EC2::SecurityGroup", "GroupId", "sg-"),
    ("AWS::EC2::Subnet", "SubnetId", "subnet-"),
    ("AWS::EC2::VPC", "VpcId", "vpc-"),
    ("AWS::ECS::Service", "ServiceArn", "arn:"),
    ("AWS::ElasticLoadBalancingV2::Listener", "ListenerArn", "arn:"),
    ("AWS::ElasticLoadBalancingV2::LoadBalancer", "LoadBalancerArn", "arn:"),
    ("AWS::ElasticLoadBalancingV2::TargetGroup", "TargetGroupArn", "arn:"),
    ("AWS::IAM::ManagedPolicy", "PolicyArn", "arn:"),
    ("AWS::SNS::Topic", "TopicArn", "arn:"),
    ("AWS::StepFunctions::StateMachine", "Arn", "arn:"),
];

/// What a thing is called, where that is known.
fn name<'p>(kind: &str, physical: &'p str, path: Option<&Value>) -> Option<std::borrow::Cow<'p, str>> {
    match kind {
        // The physical id of a queue is its address.
        "AWS::SQS::Queue" => match physical.strip_prefix("https://").or_else(|| physical.strip_prefix("http://")) {
            Some(address) => Some(address.rsplit('/').next()?.into()),
            None => Some(physical.into()),
        },
        "AWS::Events::Rule" => Some(physical.replacen('|', "/", 1).into()),
        // IAM puts the path before the name, and tells only the name.
        "AWS::IAM::Group" | "AWS::IAM::InstanceProfile" | "AWS::IAM::Role" | "AWS::IAM::User" => match path {
            None => Some(physical.into()),
            Some(Value::String(path)) if path.len() <= 512 => {
                Some(format!("{}{physical}", path.strip_prefix('/').unwrap_or(path)).into())
            }
            Some(_) => None,
        },
        _ => Some(physical.into()),
    }
}

/// The key of a resource by its physical id.
pub(super) fn key(kind: &str, physical: &str, path: Option<&Value>, at: Whereabouts<'_>) -> ResourceKey {
    match name(kind, physical, path) {
        Some(name) => aws::resource_key(kind, &name, at),
        // No ARN can be built, and a wrong one would be another thing.
        None => key_of(kind, &at.place(kind), physical),
    }
}

/// The attributes that follow from a physical id.
pub(super) fn known(
    kind: &str,
    physical: &str,
    path: Option<&Value>,
    at: Whereabouts<'_>,
) -> Vec<(&'static str, String)> {
    let same = SAME.iter().filter(|(of, _, lead)| *of == kind && physical.starts_with(lead));
    let mut known: Vec<(&'static str, String)> = same.map(|(_, name, _)| (*name, physical.to_owned())).collect();
    let name = name(kind, physical, path).filter(|name| !name.is_empty() && !aws::is_arn(name));
    if let Some(name) = name
        && NAMED.contains(&kind)
    {
        known.extend(aws::arn(kind, &name, at).map(|arn| ("Arn", arn)));
        if kind == "AWS::SQS::Queue" {
            known.push(("QueueName", name.into_owned()));
        }
    }
    known
}
