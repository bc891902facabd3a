//! What Driftline knows of the things it is shown: values that change by themselves, and where secrets are.

use driftline_core::rule::{Glob, Subject};
use driftline_core::seal::SecretPath;
use driftline_core::{Equivalence, Origin, Rule, RuleKind, Value};

use crate::dns::ORPHAN;
use crate::{kubernetes, topology};

/// What a Terraform plan found: drift outside of Terraform, and what it would change.
pub const TERRAFORM_DRIFT: &str = "Terraform::Drift";
pub const TERRAFORM_CHANGE: &str = "Terraform::PlannedChange";

/// Values that change by themselves: type, path, why.
const VOLATILE: &[(&str, &str, &str)] = &[
    ("*", "/**/evaluatedAt", "when a compliance rule last ran is not a state of the resource"),
    ("*", "/annotation/*", "a compliance rule words its annotation anew each time it runs"),
    ("*", "/**/approximateMessageCount", "the number of messages waiting changes with every message"),
    ("AWS::RDS::DBCluster", "/status", "databases go through backups and maintenance by themselves"),
    ("AWS::RDS::DBInstance", "/status", "databases go through backups and maintenance by themselves"),
    ("AWS::RDS::DBSubnetGroup", "/status", "it follows what AWS does with the group"),
    ("AWS::SecretsManager::Secret", "/lastChangedDate", "rotation changes secrets by itself"),
    (
        "AWS::EC2::RouteTable",
        "/routes/*/state",
        "a route is a blackhole while its target is away; the target is watched",
    ),
    ("AWS::EC2::Instance", "/state", "instances start and stop; whether one is there is watched"),
    ("AWS::EC2::Instance", "/launchTime", "it changes with every start"),
    ("AWS::EC2::Volume", "/state", "it follows the attachments, which are watched"),
    ("AWS::EC2::Volume", "/attachments/*/state", "attaching and detaching pass through states"),
    ("AWS::DynamoDB::Table", "/itemCount", "it changes with every write"),
    ("AWS::DynamoDB::Table", "/tableSizeBytes", "it changes with every write"),
    ("AWS::DynamoDB::Table", "/tableStatus", "tables pass through states by themselves"),
    ("AWS::Lambda::Function", "/lastModified", "what was modified is watched itself"),
    ("AWS::Route53::HostedZone", "/recordCount", "the records themselves are watched"),
    ("k8s::*", "/metadata/managedFields", "who last wrote which field; the fields themselves are watched"),
    ("k8s::*", "/metadata/resourceVersion", "it changes with every write; what was written is watched itself"),
    ("k8s::*", "/metadata/generation", "it counts changes of the spec, which is watched itself"),
    ("k8s::*", "/metadata/uid", "an object that was deleted and made anew has another; its content is watched"),
    ("k8s::*", "/metadata/creationTimestamp", "an object that was deleted and made anew has another"),
    ("k8s::*", "/metadata/ownerReferences/*/uid", "it follows an owner that was deleted and made anew"),
    ("k8s::*", "/metadata/selfLink", "a path of the API, which old servers write"),
    ("k8s::*", "/status", "controllers write here what they see and do; what was asked of them is watched"),
    (
        "k8s::*",
        "/metadata/annotations/kubectl.kubernetes.io~1last-applied-configuration",
        "kubectl's copy of what was applied; what it says is watched itself",
    ),
    (
        "k8s::*",
        "/metadata/annotations/deployment.kubernetes.io~1revision",
        "it counts rollouts; what is rolled out is watched itself",
    ),
    ("k8s::coordination.k8s.io/Lease", "/spec", "its holder renews it every few seconds"),
];

/// Arrays whose order is chance: type, path, why.
const UNORDERED: &[(&str, &str, &str)] = &[
    ("AWS::EC2::InternetGateway", "/attachedVpcIds", "a set of VPCs"),
    ("AWS::EC2::RouteTable", "/routes", "AWS matches routes by prefix, not by order"),
    ("AWS::EC2::RouteTable", "/associatedSubnets", "a set of subnets"),
    ("AWS::RDS::DBCluster", "/vpcSecurityGroups", "a set of security groups"),
    ("AWS::RDS::DBCluster", "/members", "a set of instances"),
    ("AWS::RDS::DBSubnetGroup", "/subnetIds", "a set of subnets"),
    ("AWS::Lambda::Function", "/vpcConfig/subnetIds", "a set of subnets"),
    ("AWS::Lambda::Function", "/vpcConfig/securityGroupIds", "a set of security groups"),
    ("AWS::EC2::Volume", "/attachments", "a set of attachments"),
    ("AWS::Route53::HostedZone", "/vpcAssociations", "a set of VPCs"),
    ("AWS::Route53::RecordSet", "/values", "DNS hands out the values of a record in any order"),
    ("AWS::Route53::RecordSet", "/sets/*/values", "DNS hands out the values of a record in any order"),
    ("k8s::*", "/metadata/finalizers", "a set of names"),
    ("k8s::*", "/metadata/ownerReferences", "a set of owners"),
    ("k8s::rbac.authorization.k8s.io/*Role", "/rules", "what is allowed is the sum of the rules"),
    ("k8s::rbac.authorization.k8s.io/*Role", "/rules/*/verbs", "a set of verbs"),
    ("k8s::rbac.authorization.k8s.io/*Role", "/rules/*/resources", "a set of resources"),
    ("k8s::rbac.authorization.k8s.io/*Role", "/rules/*/apiGroups", "a set of groups"),
    ("k8s::rbac.authorization.k8s.io/*RoleBinding", "/subjects", "a set of subjects"),
];

/// What Config says of a resource. An entry that is gone is fixed, or its rule is complied with everywhere: the
/// observer leaves both out.
const VERDICTS: [&str; 4] = ["NON_COMPLIANT", "COMPLIANT", "NOT_APPLICABLE", "INSUFFICIENT_DATA"];

/// Rules that are in force without being asked for.
pub fn rules() -> Vec<Rule> {
    let rule = |kind: &str, path: &str, what: RuleKind, reason: &str| Rule {
        subject: Subject { kind: Some(Glob::new(kind)), ..Subject::default() },
        path: path.parse().expect("a pattern written above"),
        kind: what,
        origin: Origin::Builtin,
        reason: reason.to_owned(),
    };
    let volatile = VOLATILE.iter().map(|(kind, path, reason)| rule(kind, path, RuleKind::Volatile, reason));
    let unordered = UNORDERED.iter().map(|(kind, path, reason)| rule(kind, path, RuleKind::Unordered, reason));
    let edges = topology::node_kinds().map(|kind| rule(kind, "/out", RuleKind::Unordered, "a set of edges"));
    let verdicts = RuleKind::Resolved(VERDICTS.iter().map(|verdict| Value::from(*verdict)).collect());
    let resolved = [
        rule(
            "*",
            "/**",
            RuleKind::Equivalent(Equivalence::Unknown),
            "one side could not be resolved, so nothing can be said of it",
        ),
        rule("*", "/rules/*", verdicts, "the observer lists what does not comply; what is gone from its list does"),
        rule(
            ORPHAN,
            "",
            RuleKind::Resolved(Vec::new()),
            "a record that points at nothing is gone or points at something again",
        ),
        rule(TERRAFORM_DRIFT, "", RuleKind::Resolved(Vec::new()), "Terraform no longer sees this drift"),
        rule(TERRAFORM_CHANGE, "", RuleKind::Resolved(Vec::new()), "Terraform no longer plans this change"),
    ];
    volatile.chain(unordered).chain(edges).chain(resolved).collect()
}

/// What Driftline seals unasked.
pub fn secrets() -> Vec<SecretPath> {
    const PATHS: &[(&str, &str)] =
        &[("AWS::Lambda::Function", "/environment/variables/*"), ("AWS::Lambda::Function", "/Environment/Variables/*")];
    let path = |(kind, path): &(&str, &str)| SecretPath {
        kind: Glob::new(*kind),
        path: path.parse().expect("a pattern written above"),
    };
    let secret = kubernetes::SECRET_PATHS.iter().map(|path| ("k8s::core/Secret", *path));
    PATHS.iter().copied().chain(secret).map(|one| path(&one)).collect()
}
