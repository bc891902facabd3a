//! adopt: what a pure discovery of the network and the databases saw.
//!
//! Specs `discovery` (everything of a region, or of one VPC) and `partial` (one type of it).

use std::collections::{BTreeMap, BTreeSet};

use driftline_core::canonical::Encoder;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::aws::{Whereabouts, resource_key};
use crate::normalize::{
    Context, Document, Listing, NormalizeError, Opened, TRUNCATED, encode, member, open, read, time,
};

/// A list of a discovery, what a partial one calls the type, the type, and the member that names a thing.
const LISTS: &[(&str, &str, &str, &str)] = &[
    ("vpcs", "vpc", "AWS::EC2::VPC", "vpcId"),
    ("subnets", "subnet", "AWS::EC2::Subnet", "subnetId"),
    ("internetGateways", "internet-gateway", "AWS::EC2::InternetGateway", "internetGatewayId"),
    ("natGateways", "nat-gateway", "AWS::EC2::NatGateway", "natGatewayId"),
    ("routeTables", "route-table", "AWS::EC2::RouteTable", "routeTableId"),
    ("securityGroups", "security-group", "AWS::EC2::SecurityGroup", "groupId"),
    ("rdsClusters", "rds-cluster", "AWS::RDS::DBCluster", "clusterIdentifier"),
    ("rdsInstances", "rds-instance", "AWS::RDS::DBInstance", "dbInstanceIdentifier"),
    ("dbSubnetGroups", "db-subnet-group", "AWS::RDS::DBSubnetGroup", "name"),
    ("secrets", "secret", "AWS::SecretsManager::Secret", "arn"),
];

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Raw<'a> {
    region: Option<String>,
    vpc_id: Option<String>,
    #[serde(default)]
    truncated: bool,
    #[serde(borrow)]
    discovered: Option<BTreeMap<&'a str, Vec<&'a RawValue>>>,
    resource_type: Option<String>,
    #[serde(borrow)]
    resources: Option<Vec<&'a RawValue>>,
    account_id: Option<String>,
    fetched_at: Option<String>,
}

pub(crate) fn normalize(documents: &[Document<'_>], context: &Context) -> Result<Vec<Listing>, NormalizeError> {
    let mut listing = Listing::default();
    let mut regions = Regions::default();
    for document in &open(documents)? {
        let raw: Raw<'_> = read(document)?;
        let Some(region) = raw.region.as_deref().filter(|region| !region.is_empty()) else {
            return Err(not_adopt(document, "it has no `region`"));
        };
        listing.taken(time(raw.fetched_at.as_deref()).or(document.written_at));
        let account = raw.account_id.as_deref().or(context.account.as_deref());
        if account.is_none() {
            listing.problem(
                document.name.as_str(),
                "it does not say which account it is of, so its resources have no ARN and meet those of other \
                 sources only by their ids; --account tells",
            );
        }
        let at = Whereabouts { partition: &context.partition, account, region: Some(region) };
        let about = About { at, truncated: raw.truncated };
        regions.seen(region, raw.vpc_id.as_deref());
        match (raw.discovered, raw.resource_type.as_deref(), raw.resources) {
            (Some(lists), ..) => {
                for (name, items) in lists {
                    match LISTS.iter().find(|(list, ..)| *list == name) {
                        Some(list) => take(&mut listing, document, list, &items, &about)?,
                        None => {
                            listing.items += items.len();
                            let message = format!(
                                "`{name}` is not a list this program knows; its {} items are left out",
                                items.len()
                            );
                            listing.problem(document.name.as_str(), message);
                        }
                    }
                }
            }
            (None, Some(kind), Some(items)) => match LISTS.iter().find(|(_, partial, ..)| *partial == kind) {
                Some(list) => take(&mut listing, document, list, &items, &about)?,
                None => return Err(NormalizeError::new(&document.name, format!("adopt has no type `{kind}`"))),
            },
            _ => return Err(not_adopt(document, "it has neither `discovered` nor `resourceType` and `resources`")),
        }
    }
    listing.coverage = std::mem::take(&mut listing.coverage).on_basis(regions.basis());
    Ok(vec![listing])
}

fn not_adopt(document: &Opened<'_>, reason: &str) -> NormalizeError {
    NormalizeError::new(&document.name, format!("this is not a document of adopt: {reason}"))
        .hint("adopt writes `discovery` and `partial` resources; `driftline observe --help` lists the other sources")
}

struct About<'a> {
    at: Whereabouts<'a>,
    truncated: bool,
}

fn take(
    listing: &mut Listing,
    document: &Opened<'_>,
    (_, _, kind, id): &(&str, &str, &str, &str),
    items: &[&RawValue],
    about: &About<'_>,
) -> Result<(), NormalizeError> {
    let mut nameless = 0;
    let mut encoder = Encoder::new();
    for item in items {
        listing.items += 1;
        let properties = encode(document, item, &mut encoder)?;
        match member(properties, id) {
            Some(id) => {
                listing.add_encoded(resource_key(kind, id, about.at), properties, Vec::new(), &document.name)?;
            }
            None => nameless += 1,
        }
    }
    let nameless = listing.nameless(&document.name, kind, id, nameless);
    let reason = about.truncated.then_some(TRUNCATED).or(nameless.as_deref());
    listing.cover_unless(kind, &about.at.place(kind), reason);
    Ok(())
}

/// Which regions were looked at as a whole, and in which only some VPCs.
#[derive(Default)]
struct Regions {
    whole: BTreeSet<String>,
    vpcs: BTreeMap<String, BTreeSet<String>>,
}

impl Regions {
    fn seen(&mut self, region: &str, vpc: Option<&str>) {
        match vpc.filter(|vpc| !vpc.is_empty()) {
            None => drop(self.whole.insert(region.to_owned())),
            Some(vpc) => drop(self.vpcs.entry(region.to_owned()).or_default().insert(vpc.to_owned())),
        }
    }

    /// A discovery of some VPCs is no discovery of their region, and one of other VPCs is another one.
    fn basis(&self) -> Option<String> {
        let limited = self.vpcs.iter().filter(|(region, _)| !self.whole.contains(*region));
        let limited: Vec<String> = limited
            .map(|(region, vpcs)| {
                format!("{region}: {}", vpcs.iter().map(String::as_str).collect::<Vec<_>>().join(", "))
            })
            .collect();
        (!limited.is_empty()).then(|| format!("only the VPCs {}", limited.join("; ")))
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use crate::normalize::Model;
    use crate::normalize::testing::{extent, keys, listing, normalize};

    const EAST: &str = r#"{"region":"us-east-1","truncated":false,"discovered":{"vpcs":[{"vpcId":"vpc-1","cidrBlock":"10.0.0.0/16"}],"rdsClusters":[{"clusterIdentifier":"c"}],"rdsInstances":[{"dbInstanceIdentifier":"d"}],"secrets":[{"name":"s","arn":"arn:aws:secretsmanager:us-east-1:123456789012:secret:s-AbCdEf"}],"subnets":[]}}"#;
    const WEST: &str = r#"{"region":"us-west-2","truncated":true,"discovered":{"vpcs":[{"vpcId":"vpc-2"}]}}"#;

    #[test]
    fn several_regions_are_one_listing_and_none_is_lost() {
        let found = listing(Model::Adopt, &[EAST, WEST]);
        assert_eq!(
            keys(&found),
            [
                "AWS::EC2::VPC aws/123456789012/us-east-1 arn:aws:ec2:us-east-1:123456789012:vpc/vpc-1",
                "AWS::EC2::VPC aws/123456789012/us-west-2 arn:aws:ec2:us-west-2:123456789012:vpc/vpc-2",
                "AWS::RDS::DBCluster aws/123456789012/us-east-1 arn:aws:rds:us-east-1:123456789012:cluster:c",
                "AWS::RDS::DBInstance aws/123456789012/us-east-1 arn:aws:rds:us-east-1:123456789012:db:d",
                "AWS::SecretsManager::Secret aws/123456789012/us-east-1 arn:aws:secretsmanager:us-east-1:123456789012:secret:s-AbCdEf",
            ]
        );
        assert_eq!(
            extent(&found, "AWS::EC2::Subnet", "aws/123456789012/us-east-1"),
            "complete",
            "an empty list is a list"
        );
        assert_eq!(extent(&found, "AWS::EC2::RouteTable", "aws/123456789012/us-east-1"), "", "no list is no list");
        assert!(extent(&found, "AWS::EC2::VPC", "aws/123456789012/us-west-2").contains("truncated"));
    }

    #[test]
    fn a_discovery_of_one_vpc_is_not_one_of_its_region() {
        let one = r#"{"region":"us-east-1","vpcId":"vpc-1","discovered":{"vpcs":[{"vpcId":"vpc-1","cidrBlock":"10.0.0.0/16"}]}}"#;
        assert_eq!(listing(Model::Adopt, &[one]).coverage.basis(), Some("only the VPCs us-east-1: vpc-1"));
        assert_eq!(listing(Model::Adopt, &[one, EAST]).coverage.basis(), None, "the region was looked at, too");
    }

    #[test]
    fn one_type_alone_is_read_as_well() {
        let partial = r#"{"region":"us-east-1","resourceType":"security-group","resources":[{"groupId":"sg-1"}],"count":1,"truncated":false,"fetchedAt":"2026-06-29T10:00:00Z"}"#;
        let found = listing(Model::Adopt, &[partial]);
        assert_eq!(found.taken_at, Some("2026-06-29T10:00:00Z".parse().unwrap()));
        assert!(keys(&found)[0].ends_with("security-group/sg-1"));
    }

    #[test]
    fn what_has_no_id_is_told_and_what_is_told_twice_differently_is_refused() {
        let found = listing(Model::Adopt, &[r#"{"region":"r","discovered":{"vpcs":[{"vpcId":""},{"vpcId":"v"}]}}"#]);
        assert_eq!(extent(&found, "AWS::EC2::VPC", "aws/123456789012/r"), "1 item AWS::EC2::VPC without `vpcId`");
        assert_eq!(found.problems.len(), 1);
        let error = normalize(Model::Adopt, &[EAST, &EAST.replace("10.0.0.0/16", "10.0.0.0/8")]).unwrap_err();
        assert!(
            error.to_string().contains("document 2") && error.to_string().contains("also in document 1"),
            "{error}"
        );
        assert!(normalize(Model::Adopt, &[r#"{"region":"r","discovered":{"vpcs":[{"vpcId":""}]}}"#]).is_err());
        assert!(
            normalize(Model::Adopt, &[r#"{"region":"r","vpcs":[{"vpcId":"v"}]}"#]).is_err(),
            "that is no discovery"
        );
    }
}
