//! What things in AWS are called: types, ARNs and places, as data, so that two observers of one thing meet.

use std::collections::{BTreeMap, HashMap};
use std::sync::LazyLock;

use driftline_core::ResourceKey;
use driftline_core::key::{GLOBAL, NOWHERE};

use crate::normalize::key;
use crate::place::write_place;
use crate::schema;

/// A type by its CloudFormation name, and the ARN of a thing of it: `{p}` partition, `{r}` region, `{a}` account,
/// `{id}` the name or id within its type. Without `{r}` it is global.
const KINDS: &[(&str, &str)] = &[
    ("AWS::ACMPCA::CertificateAuthority", "arn:{p}:acm-pca:{r}:{a}:certificate-authority/{id}"),
    ("AWS::ApiGateway::ApiKey", "arn:{p}:apigateway:{r}::/apikeys/{id}"),
    ("AWS::ApiGateway::ClientCertificate", "arn:{p}:apigateway:{r}::/clientcertificates/{id}"),
    ("AWS::ApiGateway::DomainName", "arn:{p}:apigateway:{r}::/domainnames/{id}"),
    ("AWS::ApiGateway::RestApi", "arn:{p}:apigateway:{r}::/restapis/{id}"),
    ("AWS::ApiGateway::UsagePlan", "arn:{p}:apigateway:{r}::/usageplans/{id}"),
    ("AWS::ApiGateway::VpcLink", "arn:{p}:apigateway:{r}::/vpclinks/{id}"),
    ("AWS::ApiGatewayV2::Api", "arn:{p}:apigateway:{r}::/apis/{id}"),
    ("AWS::ApiGatewayV2::DomainName", "arn:{p}:apigateway:{r}::/domainnames/{id}"),
    ("AWS::ApiGatewayV2::VpcLink", "arn:{p}:apigateway:{r}::/vpclinks/{id}"),
    ("AWS::AppSync::GraphQLApi", "arn:{p}:appsync:{r}:{a}:apis/{id}"),
    ("AWS::Athena::WorkGroup", "arn:{p}:athena:{r}:{a}:workgroup/{id}"),
    ("AWS::Backup::BackupVault", "arn:{p}:backup:{r}:{a}:backup-vault:{id}"),
    ("AWS::Budgets::Budget", "arn:{p}:budgets::{a}:budget/{id}"),
    ("AWS::CertificateManager::Certificate", "arn:{p}:acm:{r}:{a}:certificate/{id}"),
    ("AWS::CloudFormation::Stack", "arn:{p}:cloudformation:{r}:{a}:stack/{id}"),
    ("AWS::CloudFront::CachePolicy", "arn:{p}:cloudfront::{a}:cache-policy/{id}"),
    ("AWS::CloudFront::Distribution", "arn:{p}:cloudfront::{a}:distribution/{id}"),
    ("AWS::CloudFront::Function", "arn:{p}:cloudfront::{a}:function/{id}"),
    ("AWS::CloudFront::CloudFrontOriginAccessIdentity", "arn:{p}:cloudfront::{a}:origin-access-identity/{id}"),
    ("AWS::CloudFront::OriginAccessControl", "arn:{p}:cloudfront::{a}:origin-access-control/{id}"),
    ("AWS::CloudFront::OriginRequestPolicy", "arn:{p}:cloudfront::{a}:origin-request-policy/{id}"),
    ("AWS::CloudFront::ResponseHeadersPolicy", "arn:{p}:cloudfront::{a}:response-headers-policy/{id}"),
    ("AWS::CloudTrail::Trail", "arn:{p}:cloudtrail:{r}:{a}:trail/{id}"),
    ("AWS::CloudWatch::Alarm", "arn:{p}:cloudwatch:{r}:{a}:alarm:{id}"),
    ("AWS::CloudWatch::CompositeAlarm", "arn:{p}:cloudwatch:{r}:{a}:alarm:{id}"),
    ("AWS::CloudWatch::Dashboard", "arn:{p}:cloudwatch::{a}:dashboard/{id}"),
    ("AWS::CloudWatch::MetricStream", "arn:{p}:cloudwatch:{r}:{a}:metric-stream/{id}"),
    ("AWS::CodeBuild::Project", "arn:{p}:codebuild:{r}:{a}:project/{id}"),
    ("AWS::CodeCommit::Repository", "arn:{p}:codecommit:{r}:{a}:{id}"),
    ("AWS::CodeDeploy::Application", "arn:{p}:codedeploy:{r}:{a}:application:{id}"),
    ("AWS::CodeDeploy::DeploymentConfig", "arn:{p}:codedeploy:{r}:{a}:deploymentconfig:{id}"),
    ("AWS::CodePipeline::Pipeline", "arn:{p}:codepipeline:{r}:{a}:{id}"),
    ("AWS::Cognito::IdentityPool", "arn:{p}:cognito-identity:{r}:{a}:identitypool/{id}"),
    ("AWS::Cognito::UserPool", "arn:{p}:cognito-idp:{r}:{a}:userpool/{id}"),
    ("AWS::Config::ConfigRule", "arn:{p}:config:{r}:{a}:config-rule/{id}"),
    ("AWS::DMS::ReplicationInstance", "arn:{p}:dms:{r}:{a}:rep:{id}"),
    ("AWS::DynamoDB::Table", "arn:{p}:dynamodb:{r}:{a}:table/{id}"),
    ("AWS::EC2::CapacityReservation", "arn:{p}:ec2:{r}:{a}:capacity-reservation/{id}"),
    ("AWS::EC2::ClientVpnEndpoint", "arn:{p}:ec2:{r}:{a}:client-vpn-endpoint/{id}"),
    ("AWS::EC2::CustomerGateway", "arn:{p}:ec2:{r}:{a}:customer-gateway/{id}"),
    ("AWS::EC2::DHCPOptions", "arn:{p}:ec2:{r}:{a}:dhcp-options/{id}"),
    ("AWS::EC2::EC2Fleet", "arn:{p}:ec2:{r}:{a}:fleet/{id}"),
    ("AWS::EC2::EIP", "arn:{p}:ec2:{r}:{a}:elastic-ip/{id}"),
    ("AWS::EC2::EgressOnlyInternetGateway", "arn:{p}:ec2:{r}:{a}:egress-only-internet-gateway/{id}"),
    ("AWS::EC2::FlowLog", "arn:{p}:ec2:{r}:{a}:vpc-flow-log/{id}"),
    ("AWS::EC2::Image", "arn:{p}:ec2:{r}::image/{id}"),
    ("AWS::EC2::Instance", "arn:{p}:ec2:{r}:{a}:instance/{id}"),
    ("AWS::EC2::InternetGateway", "arn:{p}:ec2:{r}:{a}:internet-gateway/{id}"),
    ("AWS::EC2::KeyPair", "arn:{p}:ec2:{r}:{a}:key-pair/{id}"),
    ("AWS::EC2::LaunchTemplate", "arn:{p}:ec2:{r}:{a}:launch-template/{id}"),
    ("AWS::EC2::NatGateway", "arn:{p}:ec2:{r}:{a}:natgateway/{id}"),
    ("AWS::EC2::NetworkAcl", "arn:{p}:ec2:{r}:{a}:network-acl/{id}"),
    ("AWS::EC2::NetworkInterface", "arn:{p}:ec2:{r}:{a}:network-interface/{id}"),
    ("AWS::EC2::PlacementGroup", "arn:{p}:ec2:{r}:{a}:placement-group/{id}"),
    ("AWS::EC2::PrefixList", "arn:{p}:ec2:{r}:{a}:prefix-list/{id}"),
    ("AWS::EC2::RouteTable", "arn:{p}:ec2:{r}:{a}:route-table/{id}"),
    ("AWS::EC2::SecurityGroup", "arn:{p}:ec2:{r}:{a}:security-group/{id}"),
    ("AWS::EC2::SecurityGroupRule", "arn:{p}:ec2:{r}:{a}:security-group-rule/{id}"),
    ("AWS::EC2::Snapshot", "arn:{p}:ec2:{r}::snapshot/{id}"),
    ("AWS::EC2::Subnet", "arn:{p}:ec2:{r}:{a}:subnet/{id}"),
    ("AWS::EC2::TransitGateway", "arn:{p}:ec2:{r}:{a}:transit-gateway/{id}"),
    ("AWS::EC2::TransitGatewayAttachment", "arn:{p}:ec2:{r}:{a}:transit-gateway-attachment/{id}"),
    ("AWS::EC2::TransitGatewayRouteTable", "arn:{p}:ec2:{r}:{a}:transit-gateway-route-table/{id}"),
    ("AWS::EC2::VPC", "arn:{p}:ec2:{r}:{a}:vpc/{id}"),
    ("AWS::EC2::VPCEndpoint", "arn:{p}:ec2:{r}:{a}:vpc-endpoint/{id}"),
    ("AWS::EC2::VPCPeeringConnection", "arn:{p}:ec2:{r}:{a}:vpc-peering-connection/{id}"),
    ("AWS::EC2::VPNConnection", "arn:{p}:ec2:{r}:{a}:vpn-connection/{id}"),
    ("AWS::EC2::VPNGateway", "arn:{p}:ec2:{r}:{a}:vpn-gateway/{id}"),
    ("AWS::EC2::Volume", "arn:{p}:ec2:{r}:{a}:volume/{id}"),
    ("AWS::ECR::PublicRepository", "arn:{p}:ecr-public::{a}:repository/{id}"),
    ("AWS::ECR::Repository", "arn:{p}:ecr:{r}:{a}:repository/{id}"),
    ("AWS::ECS::Cluster", "arn:{p}:ecs:{r}:{a}:cluster/{id}"),
    ("AWS::ECS::Service", "arn:{p}:ecs:{r}:{a}:service/{id}"),
    ("AWS::ECS::TaskDefinition", "arn:{p}:ecs:{r}:{a}:task-definition/{id}"),
    ("AWS::EFS::FileSystem", "arn:{p}:elasticfilesystem:{r}:{a}:file-system/{id}"),
    ("AWS::EFS::AccessPoint", "arn:{p}:elasticfilesystem:{r}:{a}:access-point/{id}"),
    ("AWS::EKS::Cluster", "arn:{p}:eks:{r}:{a}:cluster/{id}"),
    ("AWS::EKS::Nodegroup", "arn:{p}:eks:{r}:{a}:nodegroup/{id}"),
    ("AWS::EKS::Addon", "arn:{p}:eks:{r}:{a}:addon/{id}"),
    ("AWS::ElastiCache::ServerlessCache", "arn:{p}:elasticache:{r}:{a}:serverlesscache:{id}"),
    ("AWS::ElastiCache::User", "arn:{p}:elasticache:{r}:{a}:user:{id}"),
    ("AWS::ElastiCache::UserGroup", "arn:{p}:elasticache:{r}:{a}:usergroup:{id}"),
    ("AWS::EMR::Cluster", "arn:{p}:elasticmapreduce:{r}:{a}:cluster/{id}"),
    ("AWS::ElastiCache::CacheCluster", "arn:{p}:elasticache:{r}:{a}:cluster:{id}"),
    ("AWS::ElastiCache::ReplicationGroup", "arn:{p}:elasticache:{r}:{a}:replicationgroup:{id}"),
    ("AWS::ElastiCache::ParameterGroup", "arn:{p}:elasticache:{r}:{a}:parametergroup:{id}"),
    ("AWS::ElastiCache::SubnetGroup", "arn:{p}:elasticache:{r}:{a}:subnetgroup:{id}"),
    ("AWS::ElasticBeanstalk::Application", "arn:{p}:elasticbeanstalk:{r}:{a}:application/{id}"),
    ("AWS::ElasticBeanstalk::Environment", "arn:{p}:elasticbeanstalk:{r}:{a}:environment/{id}"),
    ("AWS::ElasticLoadBalancing::LoadBalancer", "arn:{p}:elasticloadbalancing:{r}:{a}:loadbalancer/{id}"),
    ("AWS::ElasticLoadBalancingV2::Listener", "arn:{p}:elasticloadbalancing:{r}:{a}:listener/{id}"),
    ("AWS::ElasticLoadBalancingV2::ListenerRule", "arn:{p}:elasticloadbalancing:{r}:{a}:listener-rule/{id}"),
    ("AWS::ElasticLoadBalancingV2::LoadBalancer", "arn:{p}:elasticloadbalancing:{r}:{a}:loadbalancer/{id}"),
    ("AWS::ElasticLoadBalancingV2::TargetGroup", "arn:{p}:elasticloadbalancing:{r}:{a}:targetgroup/{id}"),
    ("AWS::Elasticsearch::Domain", "arn:{p}:es:{r}:{a}:domain/{id}"),
    ("AWS::Events::Archive", "arn:{p}:events:{r}:{a}:archive/{id}"),
    ("AWS::Events::EventBus", "arn:{p}:events:{r}:{a}:event-bus/{id}"),
    ("AWS::Events::Rule", "arn:{p}:events:{r}:{a}:rule/{id}"),
    ("AWS::FSx::FileSystem", "arn:{p}:fsx:{r}:{a}:file-system/{id}"),
    ("AWS::Glue::Job", "arn:{p}:glue:{r}:{a}:job/{id}"),
    ("AWS::GuardDuty::Detector", "arn:{p}:guardduty:{r}:{a}:detector/{id}"),
    ("AWS::IAM::Group", "arn:{p}:iam::{a}:group/{id}"),
    ("AWS::IAM::InstanceProfile", "arn:{p}:iam::{a}:instance-profile/{id}"),
    ("AWS::IAM::ManagedPolicy", "arn:{p}:iam::{a}:policy/{id}"),
    ("AWS::IAM::OIDCProvider", "arn:{p}:iam::{a}:oidc-provider/{id}"),
    ("AWS::IAM::Role", "arn:{p}:iam::{a}:role/{id}"),
    ("AWS::IAM::SAMLProvider", "arn:{p}:iam::{a}:saml-provider/{id}"),
    ("AWS::IAM::ServerCertificate", "arn:{p}:iam::{a}:server-certificate/{id}"),
    ("AWS::IAM::User", "arn:{p}:iam::{a}:user/{id}"),
    ("AWS::IoT::Certificate", "arn:{p}:iot:{r}:{a}:cert/{id}"),
    ("AWS::IoT::Policy", "arn:{p}:iot:{r}:{a}:policy/{id}"),
    ("AWS::IoT::Thing", "arn:{p}:iot:{r}:{a}:thing/{id}"),
    ("AWS::IoT::TopicRule", "arn:{p}:iot:{r}:{a}:rule/{id}"),
    ("AWS::KMS::Alias", "arn:{p}:kms:{r}:{a}:{id}"),
    ("AWS::KMS::Key", "arn:{p}:kms:{r}:{a}:key/{id}"),
    ("AWS::Kinesis::Stream", "arn:{p}:kinesis:{r}:{a}:stream/{id}"),
    ("AWS::KinesisFirehose::DeliveryStream", "arn:{p}:firehose:{r}:{a}:deliverystream/{id}"),
    ("AWS::Lambda::EventSourceMapping", "arn:{p}:lambda:{r}:{a}:event-source-mapping:{id}"),
    ("AWS::Lambda::Function", "arn:{p}:lambda:{r}:{a}:function:{id}"),
    ("AWS::Lambda::LayerVersion", "arn:{p}:lambda:{r}:{a}:layer:{id}"),
    ("AWS::Logs::Destination", "arn:{p}:logs:{r}:{a}:destination:{id}"),
    ("AWS::Logs::LogGroup", "arn:{p}:logs:{r}:{a}:log-group:{id}"),
    ("AWS::MSK::Cluster", "arn:{p}:kafka:{r}:{a}:cluster/{id}"),
    ("AWS::AmazonMQ::Broker", "arn:{p}:mq:{r}:{a}:broker:{id}"),
    ("AWS::OpenSearchService::Domain", "arn:{p}:es:{r}:{a}:domain/{id}"),
    ("AWS::RDS::DBCluster", "arn:{p}:rds:{r}:{a}:cluster:{id}"),
    ("AWS::RDS::DBClusterParameterGroup", "arn:{p}:rds:{r}:{a}:cluster-pg:{id}"),
    ("AWS::RDS::DBClusterSnapshot", "arn:{p}:rds:{r}:{a}:cluster-snapshot:{id}"),
    ("AWS::RDS::DBInstance", "arn:{p}:rds:{r}:{a}:db:{id}"),
    ("AWS::RDS::DBParameterGroup", "arn:{p}:rds:{r}:{a}:pg:{id}"),
    ("AWS::RDS::DBSnapshot", "arn:{p}:rds:{r}:{a}:snapshot:{id}"),
    ("AWS::RDS::DBSubnetGroup", "arn:{p}:rds:{r}:{a}:subgrp:{id}"),
    ("AWS::RDS::EventSubscription", "arn:{p}:rds:{r}:{a}:es:{id}"),
    ("AWS::RDS::GlobalCluster", "arn:{p}:rds::{a}:global-cluster:{id}"),
    ("AWS::RDS::OptionGroup", "arn:{p}:rds:{r}:{a}:og:{id}"),
    ("AWS::Redshift::Cluster", "arn:{p}:redshift:{r}:{a}:cluster:{id}"),
    ("AWS::Route53::HealthCheck", "arn:{p}:route53:::healthcheck/{id}"),
    ("AWS::Route53::HostedZone", "arn:{p}:route53:::hostedzone/{id}"),
    ("AWS::S3::AccessPoint", "arn:{p}:s3:{r}:{a}:accesspoint/{id}"),
    ("AWS::S3::Bucket", "arn:{p}:s3:::{id}"),
    ("AWS::SES::ConfigurationSet", "arn:{p}:ses:{r}:{a}:configuration-set/{id}"),
    ("AWS::SES::EmailIdentity", "arn:{p}:ses:{r}:{a}:identity/{id}"),
    ("AWS::SNS::Subscription", "arn:{p}:sns:{r}:{a}:{id}"),
    ("AWS::SNS::Topic", "arn:{p}:sns:{r}:{a}:{id}"),
    ("AWS::SQS::Queue", "arn:{p}:sqs:{r}:{a}:{id}"),
    ("AWS::SSM::Document", "arn:{p}:ssm:{r}:{a}:document/{id}"),
    ("AWS::SSM::Parameter", "arn:{p}:ssm:{r}:{a}:parameter/{id}"),
    ("AWS::SageMaker::NotebookInstance", "arn:{p}:sagemaker:{r}:{a}:notebook-instance/{id}"),
    ("AWS::SecretsManager::Secret", "arn:{p}:secretsmanager:{r}:{a}:secret:{id}"),
    ("AWS::ServiceDiscovery::Service", "arn:{p}:servicediscovery:{r}:{a}:service/{id}"),
    ("AWS::StepFunctions::StateMachine", "arn:{p}:states:{r}:{a}:stateMachine:{id}"),
    ("AWS::WAFv2::IPSet", "arn:{p}:wafv2:{r}:{a}:{id}"),
    ("AWS::WAFv2::WebACL", "arn:{p}:wafv2:{r}:{a}:{id}"),
    ("AWS::XRay::Group", "arn:{p}:xray:{r}:{a}:group/{id}"),
];

/// By the type's name in small letters: observers disagree about capitals.
static BY_NAME: LazyLock<BTreeMap<String, usize>> =
    LazyLock::new(|| KINDS.iter().enumerate().map(|(at, (name, _))| (name.to_lowercase(), at)).collect());

/// Most are written as they should be.
static EXACT: LazyLock<HashMap<&str, usize>> =
    LazyLock::new(|| KINDS.iter().enumerate().map(|(at, (name, _))| (*name, at)).collect());

fn find(kind: &str) -> Option<usize> {
    EXACT.get(kind).or_else(|| BY_NAME.get(&kind.to_lowercase())).copied()
}

/// The type as CloudFormation writes it, however an observer did. A type that has no schema and is not in the table
/// above stays as it is.
pub fn canonical_kind(kind: &str) -> &str {
    match find(kind) {
        Some(at) => KINDS[at].0,
        None => schema::name(kind).unwrap_or(kind),
    }
}

fn template(kind: &str) -> Option<&'static str> {
    find(kind).map(|at| KINDS[at].1)
}

/// Whether a thing of this type is found in every region and in none.
pub fn is_global(kind: &str) -> bool {
    template(kind).is_some_and(|template| !template.contains("{r}"))
}

/// Where something was seen, as far as that is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Whereabouts<'a> {
    pub partition: &'a str,
    pub account: Option<&'a str>,
    pub region: Option<&'a str>,
}

impl Whereabouts<'_> {
    /// The place of things of a type that are here.
    pub fn place(&self, kind: &str) -> String {
        let region = match self.region {
            _ if is_global(kind) => GLOBAL,
            Some(region) => region,
            // A thing of a type that has regions is in one, known or not.
            None if template(kind).is_some() => NOWHERE,
            None => GLOBAL,
        };
        format!("aws/{}/{region}", self.account.unwrap_or(NOWHERE))
    }
}

/// The ARN of a thing, where it can be built.
pub fn arn(kind: &str, id: &str, at: Whereabouts<'_>) -> Option<String> {
    let mut rest = template(kind)?;
    let mut arn = String::with_capacity(rest.len() + id.len() + 32);
    while let Some((before, after)) = rest.split_once('{') {
        let (name, after) = after.split_once('}')?;
        arn.push_str(before);
        arn.push_str(match name {
            "p" => at.partition,
            "r" => at.region?,
            "a" => at.account?,
            _ => id,
        });
        rest = after;
    }
    arn.push_str(rest);
    Some(arn)
}

/// The key of a thing that was seen under a name or an ARN: by its ARN where there is one or one can be built, and
/// by its name where not.
pub fn resource_key(kind: &str, id: &str, at: Whereabouts<'_>) -> ResourceKey {
    let kind = canonical_kind(kind);
    // The ARN of an Auto Scaling group has a part that only AWS knows; its name is enough.
    let id = match (kind, id.rsplit_once(":autoScalingGroupName/")) {
        ("AWS::AutoScaling::AutoScalingGroup", Some((_, name))) if is_arn(id) => {
            let mut parts = id.splitn(6, ':').skip(3);
            let mut part = || parts.next().filter(|part| !part.is_empty());
            let at = Whereabouts { region: part().or(at.region), account: part().or(at.account), ..at };
            return key(kind, &at.place(kind), name);
        }
        _ => id,
    };
    if is_arn(id) {
        let mut parts = id.splitn(6, ':').skip(3);
        let mut part = || parts.next().filter(|part| !part.is_empty());
        let (region, account) = (part(), part());
        // An ARN without a region is of something global, whichever region was asked.
        let known = Whereabouts { account: account.or(at.account), region, ..at };
        return key(kind, &known.place(kind), id);
    }
    key(kind, &at.place(kind), &arn(kind, id, at).unwrap_or_else(|| id.to_owned()))
}

pub fn is_arn(id: &str) -> bool {
    id.starts_with("arn:") && id.splitn(6, ':').count() == 6
}

/// What a key's id is within its type: the name that an ARN ends in, taken apart as the type's ARNs are.
pub fn local_id<'k>(kind: &str, id: &'k str) -> &'k str {
    if !is_arn(id) {
        return id;
    }
    let rest = id.splitn(6, ':').nth(5).unwrap_or(id);
    let lead = template(kind).and_then(|template| template.splitn(6, ':').nth(5)).unwrap_or("{id}");
    let lead = lead.split("{id}").next().unwrap_or_default();
    if let Some(name) = rest.strip_prefix(lead) {
        return name;
    }
    rest
}

/// The account and region that an ARN names.
pub fn place_of_arn(arn: &str) -> String {
    let mut place = String::new();
    write_place(None, None, arn, &mut place);
    place
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: Whereabouts<'static> =
        Whereabouts { partition: "aws", account: Some("123456789012"), region: Some("us-east-1") };

    #[test]
    fn the_table_is_in_shape() {
        for (name, template) in KINDS {
            assert_eq!(template.matches("{id}").count(), 1, "{name}");
            assert!(template.splitn(6, ':').count() == 6, "{name}");
        }
        assert_eq!(BY_NAME.len(), KINDS.len(), "a type is in the table twice");
    }

    #[test]
    fn types_are_written_as_their_schemas_are() {
        for (name, _) in KINDS {
            assert!(schema::name(name).is_none_or(|schema| schema == *name), "{name}");
        }
        assert_eq!(canonical_kind("aws::ec2::vpc"), "AWS::EC2::VPC");
        assert_eq!(canonical_kind("AWS::Ec2::Vpccidrblock"), "AWS::EC2::VPCCidrBlock");
        assert_eq!(canonical_kind("aws::ec2::snapshot"), "AWS::EC2::Snapshot", "it has no schema");
        assert_eq!(canonical_kind("Custom::thing"), "Custom::thing");
    }

    #[test]
    fn one_thing_has_one_key_whoever_saw_it() {
        let by_id = resource_key("AWS::EC2::VPC", "vpc-1", HERE);
        let by_arn =
            resource_key("AWS::Ec2::Vpc", "arn:aws:ec2:us-east-1:123456789012:vpc/vpc-1", Whereabouts::default());
        assert_eq!(by_id, by_arn);
        let bucket = resource_key("AWS::S3::Bucket", "arn:aws:s3:::b", HERE);
        assert_eq!(bucket.place.as_str(), "aws/123456789012/global");
        assert_eq!(bucket, resource_key("AWS::S3::Bucket", "b", HERE));
        let elsewhere = Whereabouts { region: Some("eu-west-1"), ..HERE };
        assert_eq!(bucket, resource_key("AWS::S3::Bucket", "b", elsewhere), "a bucket has no region");
    }

    #[test]
    fn without_an_account_no_arn_is_made_up() {
        let at = Whereabouts { account: None, ..HERE };
        let key = resource_key("AWS::EC2::VPC", "vpc-1", at);
        assert_eq!((key.id.as_str(), key.place.as_str()), ("vpc-1", "aws/-/us-east-1"));
    }

    #[test]
    fn the_name_in_an_arn_is_found_again() {
        for (kind, id) in [
            ("AWS::EC2::VPC", "vpc-1"),
            ("AWS::Lambda::Function", "f"),
            ("AWS::Events::Rule", "bus/rule"),
            ("AWS::S3::Bucket", "b"),
            ("AWS::SSM::Parameter", "a/b"),
        ] {
            let arn = arn(kind, id, HERE).unwrap_or_default();
            assert_eq!(local_id(kind, &arn), id, "{arn}");
        }
        assert_eq!(local_id("AWS::Who::Knows", "arn:aws:who:us-east-1:1:thing/x"), "thing/x");
    }
}
