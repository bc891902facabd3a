//! What a DNS record points at: which types could be there, in which region, and by what they would be known.

use std::net::IpAddr;

use crate::dns::host;

/// What a target would be known by.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Known {
    /// Its id or name within its type.
    Id(String),
    /// An address or a host name, which its properties would have.
    Address(String),
    /// By nothing: the name has the form of no such thing.
    Nothing,
}

/// What a record may point at.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Target {
    /// In words.
    pub what: &'static str,
    /// Every type that could be it.
    pub kinds: &'static [&'static str],
    pub region: Option<String>,
    pub known: Known,
}

const INSTANCES: &[&str] = &["AWS::EC2::Instance", "AWS::EC2::EIP", "AWS::EC2::NetworkInterface"];
const BALANCERS: &[&str] = &["AWS::ElasticLoadBalancingV2::LoadBalancer", "AWS::ElasticLoadBalancing::LoadBalancer"];
const DISTRIBUTIONS: &[&str] = &["AWS::CloudFront::Distribution"];
const BUCKETS: &[&str] = &["AWS::S3::Bucket"];
const APIS: &[&str] = &["AWS::ApiGateway::RestApi", "AWS::ApiGatewayV2::Api"];

/// What the target of a record is, if it is something that an observer of the cloud could see. `name` is the record's
/// own name: an alias to a website endpoint means the bucket of that name.
pub fn classify(target: &str, name: &str) -> Option<Target> {
    let target = host(target);
    if let Ok(address) = target.parse::<IpAddr>() {
        return is_public(address).then(|| Target {
            what: "an address",
            kinds: INSTANCES,
            region: None,
            known: Known::Address(target.clone()),
        });
    }
    let labels: Vec<&str> = target.split('.').collect();
    match labels.as_slice() {
        [first, middle @ .., "amazonaws", "com"] | [first, middle @ .., "amazonaws", "com", "cn"] => {
            aws(first, middle, &target, name)
        }
        [.., "cloudfront", "net"] => Some(Target {
            what: "a distribution",
            kinds: DISTRIBUTIONS,
            region: None,
            known: Known::Address(target.clone()),
        }),
        [first, rest @ ..] if rest.last() == Some(&"internal") => Some(instance(first, private_region(rest), &target)),
        _ => None,
    }
}

fn private_region(rest: &[&str]) -> Option<String> {
    match rest {
        ["ec2", "internal"] => Some("us-east-1".into()),
        [region, "compute", "internal"] => Some((*region).to_owned()),
        _ => None,
    }
}

fn aws(first: &str, middle: &[&str], target: &str, name: &str) -> Option<Target> {
    let balancer = |region: &str| {
        let label = first.strip_prefix("dualstack.").unwrap_or(first);
        Some(Target {
            what: "a load balancer",
            kinds: BALANCERS,
            region: Some(region.to_owned()),
            known: Known::Id(balancer_name(label).to_owned()),
        })
    };
    let bucket = |name: String| Some(Target { what: "a bucket", kinds: BUCKETS, region: None, known: Known::Id(name) });
    match middle {
        ["compute-1"] => Some(instance(first, Some("us-east-1".into()), target)),
        [region, "compute"] => Some(instance(first, Some((*region).to_owned()), target)),
        [region, "elb"] | ["elb", region] => balancer(region),
        // `dualstack.name-1.us-east-1.elb`
        [label, region, "elb"] if first == "dualstack" => Some(Target {
            what: "a load balancer",
            kinds: BALANCERS,
            region: Some((*region).to_owned()),
            known: Known::Id(balancer_name(label).to_owned()),
        }),
        ["execute-api", region] => Some(Target {
            what: "an API",
            kinds: APIS,
            region: Some((*region).to_owned()),
            known: Known::Id(first.to_owned()),
        }),
        // An alias to a website endpoint: the bucket is called like the record.
        [] | [_] if first.starts_with("s3-website") => bucket(host(name)),
        _ => {
            // `bucket.s3.amazonaws.com`, `my.bucket.s3-website.eu-central-1.amazonaws.com`
            let all: Vec<&str> = std::iter::once(first).chain(middle.iter().copied()).collect();
            let at = all.iter().position(|label| *label == "s3" || label.starts_with("s3-"))?;
            (at > 0).then(|| all[..at].join(".")).and_then(bucket)
        }
    }
}

/// Load balancers get a number after their name, and internal ones a word before it.
fn balancer_name(label: &str) -> &str {
    let label = label.strip_prefix("internal-").unwrap_or(label);
    match label.rsplit_once('-') {
        Some((name, number)) if !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_hexdigit()) => name,
        _ => label,
    }
}

fn instance(label: &str, region: Option<String>, target: &str) -> Target {
    let known = if label.starts_with("i-") {
        Known::Id(label.to_owned())
    } else {
        let address = label.strip_prefix("ec2-").or_else(|| label.strip_prefix("ip-"));
        let address = address.map(|address| address.replace('-', ".")).filter(|text| text.parse::<IpAddr>().is_ok());
        match address {
            Some(_) => Known::Address(target.to_owned()),
            None => Known::Nothing,
        }
    };
    Target { what: "an instance", kinds: INSTANCES, region, known }
}

/// The address that the name of an instance is made of.
pub fn address_in(target: &str) -> Option<String> {
    let label = target.split('.').next()?;
    let address = label.strip_prefix("ec2-").or_else(|| label.strip_prefix("ip-"))?.replace('-', ".");
    address.parse::<IpAddr>().ok().map(|_| address)
}

fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => {
            let shared = v4.octets()[0] == 100 && (64..128).contains(&v4.octets()[1]);
            !(v4.is_private()
                || v4.is_loopback()
                || v4.is_link_local()
                || v4.is_unspecified()
                || v4.is_broadcast()
                || shared)
        }
        IpAddr::V6(v6) => {
            let unique_local = v6.segments()[0] & 0xfe00 == 0xfc00;
            !(v6.is_loopback() || v6.is_unspecified() || unique_local)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_told_apart() {
        let found = |target: &str| {
            classify(target, "www.example.com").map(|target| {
                let known = match target.known {
                    Known::Id(id) => format!("id {id}"),
                    Known::Address(address) => format!("address {address}"),
                    Known::Nothing => "nothing".into(),
                };
                format!("{}, {}, {known}", target.what, target.region.unwrap_or_else(|| "anywhere".into()))
            })
        };
        for (target, expected) in [
            (
                "ec2-203-0-113-10.compute-1.amazonaws.com",
                "an instance, us-east-1, address ec2-203-0-113-10.compute-1.amazonaws.com",
            ),
            ("ec2-nonexistent.eu-west-1.compute.amazonaws.com.", "an instance, eu-west-1, nothing"),
            ("i-0123456789abcdef0.eu-west-1.compute.internal", "an instance, eu-west-1, id i-0123456789abcdef0"),
            ("my-app-1234567890.us-east-1.elb.amazonaws.com", "a load balancer, us-east-1, id my-app"),
            ("dualstack.my-app-1234567890.us-east-1.elb.amazonaws.com", "a load balancer, us-east-1, id my-app"),
            ("internal-my-app-1234567890.us-east-1.elb.amazonaws.com", "a load balancer, us-east-1, id my-app"),
            ("net-0a1b2c3d.elb.us-east-1.amazonaws.com", "a load balancer, us-east-1, id net"),
            ("D123.cloudfront.net", "a distribution, anywhere, address d123.cloudfront.net"),
            ("my.bucket.s3.amazonaws.com", "a bucket, anywhere, id my.bucket"),
            ("b.s3-website-us-east-1.amazonaws.com", "a bucket, anywhere, id b"),
            ("b.s3-website.eu-central-1.amazonaws.com", "a bucket, anywhere, id b"),
            ("b.s3.eu-west-1.amazonaws.com", "a bucket, anywhere, id b"),
            ("s3-website-us-east-1.amazonaws.com", "a bucket, anywhere, id www.example.com"),
            ("s3-website.eu-central-1.amazonaws.com", "a bucket, anywhere, id www.example.com"),
            ("abc.execute-api.us-east-1.amazonaws.com", "an API, us-east-1, id abc"),
            ("203.0.113.9", "an address, anywhere, address 203.0.113.9"),
        ] {
            assert_eq!(found(target).as_deref(), Some(expected), "{target}");
        }
        for target in ["10.0.0.1", "example.org", "", ".", "fd00::1", "amazonaws.com", "100.64.1.1"] {
            assert_eq!(found(target), None, "{target}");
        }
    }
}
