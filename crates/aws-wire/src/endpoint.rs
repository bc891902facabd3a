//! Where a service is to be found, and under which name and region it wants to be signed for.

/// A set of regions under one roof.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Partition {
    /// As in an ARN: `aws`, `aws-cn`.
    pub name: &'static str,
    pub suffix: &'static str,
    dual_stack: &'static str,
    /// Where the services without regions are signed for.
    pub home: &'static str,
}

const PARTITIONS: &[(&str, Partition)] = &[
    (
        "cn-",
        Partition {
            name: "aws-cn",
            suffix: "amazonaws.com.cn",
            dual_stack: "api.amazonwebservices.com.cn",
            home: "cn-northwest-1",
        },
    ),
    (
        "us-gov-",
        Partition { name: "aws-us-gov", suffix: "amazonaws.com", dual_stack: "api.aws", home: "us-gov-west-1" },
    ),
    (
        "us-iso-",
        Partition { name: "aws-iso", suffix: "c2s.ic.gov", dual_stack: "api.aws.ic.gov", home: "us-iso-east-1" },
    ),
    (
        "us-isob-",
        Partition { name: "aws-iso-b", suffix: "sc2s.sgov.gov", dual_stack: "api.aws.scloud", home: "us-isob-east-1" },
    ),
    (
        "eu-isoe-",
        Partition {
            name: "aws-iso-e",
            suffix: "cloud.adc-e.uk",
            dual_stack: "api.cloud-aws.adc-e.uk",
            home: "eu-isoe-west-1",
        },
    ),
    (
        "us-isof-",
        Partition {
            name: "aws-iso-f",
            suffix: "csp.hci.ic.gov",
            dual_stack: "api.aws.hci.ic.gov",
            home: "us-isof-south-1",
        },
    ),
    (
        "eusc-",
        Partition {
            name: "aws-eusc",
            suffix: "amazonaws.eu",
            dual_stack: "api.amazonwebservices.eu",
            home: "eusc-de-east-1",
        },
    ),
    ("", Partition { name: "aws", suffix: "amazonaws.com", dual_stack: "api.aws", home: "us-east-1" }),
];

impl Partition {
    pub fn of(region: &str) -> Partition {
        let found = PARTITIONS.iter().find(|(start, _)| region.starts_with(start));
        found.expect("the last entry fits every region").1
    }
}

/// How a service is called by those who configure endpoints (`AWS_ENDPOINT_URL_EVENTBRIDGE`), where that is not its
/// name in the signature.
const SERVICE_IDS: &[(&str, &str)] = &[
    ("acm", "ACM"),
    ("autoscaling", "Auto Scaling"),
    ("cloudcontrolapi", "CloudControl"),
    ("config", "Config Service"),
    ("elasticfilesystem", "EFS"),
    ("elasticloadbalancing", "Elastic Load Balancing v2"),
    ("es", "OpenSearch"),
    ("events", "EventBridge"),
    ("logs", "CloudWatch Logs"),
    ("monitoring", "CloudWatch"),
    ("resource-explorer-2", "Resource Explorer 2"),
    ("route53", "Route 53"),
    ("secretsmanager", "Secrets Manager"),
    ("states", "SFN"),
    ("tagging", "Resource Groups Tagging API"),
];

pub(crate) fn service_id(service: &str) -> &str {
    SERVICE_IDS.iter().find(|(name, _)| *name == service).map_or(service, |(_, id)| id)
}

/// Services that have one address for a whole partition.
const GLOBAL: &[&str] = &["iam", "route53", "organizations", "cloudfront"];

pub fn is_global(service: &str) -> bool {
    GLOBAL.contains(&service)
}

/// The region that a call is signed for.
pub fn signing_region<'r>(service: &str, region: &'r str) -> &'r str {
    if !is_global(service) {
        return region;
    }
    let partition = Partition::of(region);
    match (partition.name, service) {
        ("aws-cn", "iam") => "cn-north-1",
        _ => partition.home,
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Variant {
    pub fips: bool,
    pub dual_stack: bool,
}

/// The address of a service in a region, without a path.
pub(crate) fn address(service: &str, region: &str, variant: Variant) -> String {
    let partition = Partition::of(region);
    let suffix = partition.suffix;
    if is_global(service) {
        let home = signing_region(service, region);
        return match (partition.name, service) {
            ("aws", "organizations") => format!("https://organizations.{home}.{suffix}"),
            ("aws", _) if variant.fips => format!("https://{service}-fips.{suffix}"),
            ("aws", _) => format!("https://{service}.{suffix}"),
            ("aws-us-gov", "iam" | "route53") => format!("https://{service}.us-gov.{suffix}"),
            ("aws-cn", "route53") => format!("https://route53.{suffix}"),
            _ => format!("https://{service}.{home}.{suffix}"),
        };
    }
    let name = if variant.fips { format!("{service}-fips") } else { service.to_owned() };
    match (variant.dual_stack, service) {
        (true, "s3") => format!("https://{name}.dualstack.{region}.{suffix}"),
        (true, _) => format!("https://{name}.{region}.{}", partition.dual_stack),
        (false, _) => format!("https://{name}.{region}.{suffix}"),
    }
}

/// Whether an address is one of AWS's own, whose limits are known. An emulator has none.
pub(crate) fn is_aws(address: &str) -> bool {
    let host = address.split("://").nth(1).unwrap_or(address).split(['/', ':']).next().unwrap_or_default();
    PARTITIONS
        .iter()
        .flat_map(|(_, partition)| [partition.suffix, partition.dual_stack])
        .any(|suffix| host.strip_suffix(suffix).is_some_and(|before| before.ends_with('.')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_follow_partition_and_kind_of_service() {
        let plain = Variant::default();
        for (service, region, expected) in [
            ("ec2", "eu-west-1", "https://ec2.eu-west-1.amazonaws.com"),
            ("sqs", "cn-north-1", "https://sqs.cn-north-1.amazonaws.com.cn"),
            ("iam", "eu-west-1", "https://iam.amazonaws.com"),
            ("iam", "cn-northwest-1", "https://iam.cn-north-1.amazonaws.com.cn"),
            ("iam", "us-gov-east-1", "https://iam.us-gov.amazonaws.com"),
            ("route53", "ap-southeast-2", "https://route53.amazonaws.com"),
            ("organizations", "eu-west-1", "https://organizations.us-east-1.amazonaws.com"),
            ("organizations", "cn-north-1", "https://organizations.cn-northwest-1.amazonaws.com.cn"),
            ("s3", "us-east-1", "https://s3.us-east-1.amazonaws.com"),
            ("events", "eusc-de-east-1", "https://events.eusc-de-east-1.amazonaws.eu"),
        ] {
            assert_eq!(address(service, region, plain), expected);
        }
        assert_eq!(signing_region("route53", "eu-west-1"), "us-east-1");
        assert_eq!(signing_region("ec2", "eu-west-1"), "eu-west-1");
        assert_eq!(signing_region("iam", "us-gov-east-1"), "us-gov-west-1");
    }

    #[test]
    fn variants_change_the_host() {
        let fips = Variant { fips: true, dual_stack: false };
        assert_eq!(address("ec2", "us-east-1", fips), "https://ec2-fips.us-east-1.amazonaws.com");
        let both = Variant { fips: true, dual_stack: true };
        assert_eq!(address("ec2", "us-east-1", both), "https://ec2-fips.us-east-1.api.aws");
        let dual = Variant { fips: false, dual_stack: true };
        assert_eq!(address("s3", "us-east-1", dual), "https://s3.dualstack.us-east-1.amazonaws.com");
    }

    #[test]
    fn an_emulator_is_not_aws() {
        assert!(is_aws("https://vpce-1.ec2.eu-west-1.vpce.amazonaws.com:443/x"));
        for other in
            ["http://127.0.0.1:4566", "http://localhost", "https://evilamazonaws.com", "http://emulator/api.aws"]
        {
            assert!(!is_aws(other), "{other}");
        }
    }
}
