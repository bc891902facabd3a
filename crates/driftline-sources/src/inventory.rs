//! inventory: broad listings (`scan`), and what each type's own API says of its things (`inventory`).
//!
//! The two see the same things with different properties, so they are two streams: `<source>@scan` and `<source>`.

use std::collections::BTreeSet;

use driftline_core::canonical::Encoder;
use driftline_core::{Outcome, Value};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::aws::{Whereabouts, canonical_kind, is_arn, resource_key};
use crate::normalize::{
    Context, Document, Listing, Lists, NormalizeError, Opened, TRUNCATED, encode, member, open, place_part, read, text,
    time, value,
};

/// The scope of the broad listings.
pub const SCAN: &str = "scan";

/// What a scan says of its reach when it sees everything.
const FULL: &str = "full";

/// What an inventory calls a type, the type, the member that names a thing, and how many the observer lists at most
/// without saying that it stopped there (ten pages).
const TYPES: &[(&str, &str, &str, usize)] = &[
    ("ec2", "AWS::EC2::Instance", "instanceId", 10_000),
    ("rds", "AWS::RDS::DBInstance", "dbInstanceId", 1_000),
    ("dynamodb", "AWS::DynamoDB::Table", "tableName", 1_000),
    ("lambda", "AWS::Lambda::Function", "functionName", 500),
    ("s3", "AWS::S3::Bucket", "bucketName", usize::MAX),
    ("ebs", "AWS::EC2::Volume", "volumeId", 10_000),
    // These are only observed live, where nothing stops at a number.
    ("sqs", "AWS::SQS::Queue", "queueName", usize::MAX),
    ("sns", "AWS::SNS::Topic", "topicName", usize::MAX),
    ("kms", "AWS::KMS::Key", "keyId", usize::MAX),
    ("addresses", "AWS::EC2::EIP", "allocationId", usize::MAX),
    ("networkInterfaces", "AWS::EC2::NetworkInterface", "networkInterfaceId", usize::MAX),
    ("distributions", "AWS::CloudFront::Distribution", "distributionId", usize::MAX),
    ("loadBalancers", "AWS::ElasticLoadBalancingV2::LoadBalancer", "loadBalancerName", usize::MAX),
    ("roles", "AWS::IAM::Role", "roleName", usize::MAX),
    ("users", "AWS::IAM::User", "userName", usize::MAX),
    ("groups", "AWS::IAM::Group", "iamGroupName", usize::MAX),
    ("policies", "AWS::IAM::ManagedPolicy", "policyName", usize::MAX),
];

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Raw<'a> {
    region: Option<String>,
    fetched_at: Option<String>,
    account_id: Option<String>,
    source: Option<String>,
    source_note: Option<String>,
    coverage: Option<String>,
    resource_type: Option<String>,
    truncated: Option<bool>,
    #[serde(borrow)]
    resources: Option<&'a RawValue>,
}

/// One resource of a scan.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Scanned {
    arn: Option<String>,
    resource_type: Option<String>,
    region: Option<String>,
    account_id: Option<String>,
}

pub(crate) fn normalize(documents: &[Document<'_>], context: &Context) -> Result<Vec<Listing>, NormalizeError> {
    let mut scan = Scan::default();
    let mut attributes: Option<Listing> = None;
    for document in &open(documents)? {
        let raw: Raw<'_> = read(document)?;
        let here = Whereabouts {
            account: place_part(document, "accountId", raw.account_id.as_deref())?.or(context.account.as_deref()),
            region: place_part(document, "region", raw.region.as_deref())?.filter(|region| *region != "global"),
            partition: &context.partition,
        };
        let Some(resources) = raw.resources else { return Err(not_inventory(document, "it has no `resources`")) };
        match (&raw.source, &raw.resource_type) {
            (Some(source), _) => {
                let items: Vec<&RawValue> = list(document, resources)?;
                scan.take(document, &raw, source, &items, here)?;
            }
            (None, Some(_)) => {
                let listing = attributes.get_or_insert_default();
                take_attributes(listing, document, &raw, resources, here)?;
            }
            (None, None) => {
                return Err(not_inventory(document, "it has neither `source`, as a scan has, nor `resourceType`"));
            }
        }
    }
    Ok(attributes.into_iter().chain(scan.finish()).collect())
}

fn not_inventory(document: &Opened<'_>, reason: &str) -> NormalizeError {
    NormalizeError::new(&document.name, format!("this is not a document of inventory: {reason}"))
        .hint("inventory writes `scan` and `inventory` resources; `scanDiff` is its own answer and not an observation")
}

fn list<'a>(document: &Opened<'_>, raw: &'a RawValue) -> Result<Vec<&'a RawValue>, NormalizeError> {
    serde_json::from_str(raw.get()).map_err(|error| NormalizeError::json(&document.name, &error))
}

/// The broad listing: all documents of a pass together, made by one backend.
#[derive(Default)]
struct Scan {
    listing: Option<Listing>,
    backends: BTreeSet<String>,
}

impl Scan {
    fn take(
        &mut self,
        document: &Opened<'_>,
        raw: &Raw<'_>,
        source: &str,
        items: &[&RawValue],
        here: Whereabouts<'_>,
    ) -> Result<(), NormalizeError> {
        let listing = self.listing.get_or_insert_with(|| Listing::scoped(SCAN));
        listing.taken(time(raw.fetched_at.as_deref()).or(document.written_at));
        self.backends.insert(basis(source, raw.coverage.as_deref()));
        // Every scan has a note. Of one that sees everything it tells only which index was asked.
        let sees_less = raw.coverage.as_deref() != Some(FULL);
        if let Some(note) = raw.source_note.as_deref().filter(|note| sees_less && !note.is_empty()) {
            listing.problem(source, note);
        }
        let mut places = BTreeSet::new();
        let mut accounts: BTreeSet<Option<String>> = BTreeSet::new();
        let mut nameless = 0;
        let mut encoder = Encoder::new();
        for item in items {
            listing.items += 1;
            let known: Scanned =
                serde_json::from_str(item.get()).map_err(|error| NormalizeError::json(&document.name, &error))?;
            let filled = |text: Option<String>| text.filter(|text| !text.is_empty());
            let (Some(arn), Some(kind)) = (filled(known.arn), filled(known.resource_type)) else {
                nameless += 1;
                continue;
            };
            let account = known.account_id.filter(|account| !account.is_empty());
            let account = account.or_else(|| here.account.map(ToOwned::to_owned));
            let region = known.region.as_deref().filter(|region| !region.is_empty() && *region != "global");
            let at = Whereabouts { account: account.as_deref(), region, ..here };
            let key = resource_key(&kind, &arn, at);
            places.insert(key.place.as_str().to_owned());
            accounts.insert(account);
            let properties = encode(document, item, &mut encoder)?;
            if canonical_kind(&kind) == kind {
                listing.add_encoded(key, properties, Vec::new(), &document.name)?;
                continue;
            }
            // The type is part of the key, as CloudFormation writes it; how this backend wrote it is not a state.
            let mut value = properties.to_value();
            if let Value::Object(members) = &mut value {
                members.insert("resourceType".into(), canonical_kind(&kind).into());
            }
            listing.add(key, &value, Vec::new(), &document.name)?;
        }
        let nameless = listing.nameless(&document.name, "of a scan", "arn or resourceType", nameless);
        let reason = raw.truncated.unwrap_or(false).then_some(TRUNCATED).or(nameless.as_deref());
        // The region that was asked was looked at even if nothing is there.
        if here.region.is_some() {
            if accounts.is_empty() {
                accounts.insert(here.account.map(ToOwned::to_owned));
            }
            for account in &accounts {
                places.insert(Whereabouts { account: account.as_deref(), ..here }.place(""));
            }
        }
        for place in places {
            listing.cover_unless(driftline_core::coverage::EVERY, &place, reason);
        }
        Ok(())
    }

    fn finish(self) -> Option<Listing> {
        let mut listing = self.listing?;
        let basis = self.backends.into_iter().collect::<Vec<_>>().join(" + ");
        listing.coverage = listing.coverage.on_basis(Some(basis));
        Some(listing)
    }
}

/// Another backend, or the same with other reach, sees other things: its listing is another listing.
fn basis(source: &str, coverage: Option<&str>) -> String {
    format!("{source} ({})", coverage.unwrap_or("reach not said"))
}

/// Whether a listing on this basis would have everything that there is.
pub fn sees_everything(basis: Option<&str>) -> bool {
    basis.is_none_or(|basis| basis.split(" + ").all(|one| one.ends_with(&format!("({FULL})"))))
}

fn take_attributes(
    listing: &mut Listing,
    document: &Opened<'_>,
    raw: &Raw<'_>,
    resources: &RawValue,
    at: Whereabouts<'_>,
) -> Result<(), NormalizeError> {
    listing.taken(time(raw.fetched_at.as_deref()).or(document.written_at));
    if at.account.is_none() {
        listing.problem(
            document.name.as_str(),
            "it does not say which account it is of, so its resources have no ARN and meet those of other sources \
             only by their ids; --account tells",
        );
    }
    if resources.get().trim_start().starts_with('{') {
        let Lists(lists) =
            serde_json::from_str(resources.get()).map_err(|error| NormalizeError::json(&document.name, &error))?;
        for (name, items) in lists {
            match TYPES.iter().find(|(short, ..)| *short == name) {
                Some(known) => take_type(listing, document, known, &items, at, None)?,
                None => {
                    listing.items += items.len();
                    let message =
                        format!("`{name}` is not a list this program knows; its {} items are left out", items.len());
                    listing.problem(document.name.as_str(), message);
                }
            }
        }
        return Ok(());
    }
    let items = list(document, resources)?;
    let named = raw.resource_type.as_deref().unwrap_or_default();
    let by_name = TYPES.iter().find(|(short, kind, ..)| {
        short.eq_ignore_ascii_case(named) || kind.eq_ignore_ascii_case(named) || kind_of_words(named) == Some(kind)
    });
    let by_item = || {
        let first = value(document, items.first()?).ok()?;
        TYPES.iter().rev().find(|(_, _, id, _)| text(&first, id).is_some())
    };
    match by_name.or_else(by_item) {
        Some(known) => take_type(listing, document, known, &items, at, raw.truncated),
        None => {
            listing.items += items.len();
            let message = format!("`{named}` is not a type this program knows; its {} items are left out", items.len());
            listing.problem(document.name.as_str(), message);
            Ok(())
        }
    }
}

/// Observers also write the type in words: `ec2-instances`, `s3_buckets`.
fn kind_of_words(name: &str) -> Option<&'static str> {
    let first = name.split(['-', '_', ' ']).next()?;
    TYPES.iter().find(|(short, ..)| short.eq_ignore_ascii_case(first)).map(|(_, kind, ..)| *kind)
}

fn take_type(
    listing: &mut Listing,
    document: &Opened<'_>,
    (_, kind, id, most): &(&str, &str, &str, usize),
    items: &[&RawValue],
    at: Whereabouts<'_>,
    truncated: Option<bool>,
) -> Result<(), NormalizeError> {
    let mut nameless = 0;
    let mut stopped = false;
    let mut encoder = Encoder::new();
    for item in items {
        listing.items += 1;
        let properties = encode(document, item, &mut encoder)?;
        stopped |= member(properties, "state").is_some_and(|state| state != "running");
        let arn = member(properties, "arn").filter(|arn| is_arn(arn));
        match arn.or_else(|| member(properties, id)) {
            Some(id) => {
                // An observer may have been told not to redact what functions are given.
                let secrets = match *kind {
                    "AWS::Lambda::Function" => vec!["/environment/*".parse().expect("a pattern")],
                    _ => Vec::new(),
                };
                listing.add_encoded(resource_key(kind, id, at), properties, secrets, &document.name)?;
            }
            None => nameless += 1,
        }
    }
    let nameless = listing.nameless(&document.name, kind, id, nameless);
    let reason = match truncated {
        Some(true) => Some(TRUNCATED),
        None if items.len() >= *most => {
            Some("as many as the observer lists at most, and it does not say that it stopped")
        }
        // A stopped instance is not a deleted one.
        _ if *kind == "AWS::EC2::Instance" && !stopped => {
            Some("the observer lists running instances only, unless it is told to include stopped ones")
        }
        _ => nameless.as_deref(),
    };
    let outcome = reason.map_or(Outcome::Complete, |reason| Outcome::Partial { reason: reason.to_owned() });
    listing.cover(kind, &at.place(kind), outcome);
    Ok(())
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::sees_everything;
    use crate::normalize::Model;
    use crate::normalize::testing::{extent, keys, listing, normalize, properties};

    const PLACE: &str = "aws/123456789012/us-east-1";

    fn scan(source: &str, coverage: &str, kind: &str) -> String {
        format!(
            r#"{{"source":"{source}","coverage":"{coverage}","region":"us-east-1","fetchedAt":"2026-06-29T10:00:00Z","resources":[{{"arn":"arn:aws:ec2:us-east-1:123456789012:vpc/vpc-1","resourceType":"{kind}","region":"us-east-1","accountId":"123456789012","tags":{{}}}},{{"arn":"arn:aws:s3:::b","resourceType":"AWS::S3::Bucket","region":"us-east-1","accountId":"123456789012","tags":{{}}}}],"truncated":false}}"#
        )
    }

    #[test]
    fn a_scan_has_its_backend_as_basis_and_types_in_their_own_capitals() {
        let found = listing(Model::Inventory, &[&scan("tag-api", "tagged-only", "AWS::Ec2::Vpc")]);
        assert_eq!(found.scope.as_ref().unwrap().as_str(), "scan");
        assert_eq!(found.coverage.basis(), Some("tag-api (tagged-only)"));
        assert_eq!(
            keys(&found),
            [
                "AWS::EC2::VPC aws/123456789012/us-east-1 arn:aws:ec2:us-east-1:123456789012:vpc/vpc-1",
                "AWS::S3::Bucket aws/123456789012/global arn:aws:s3:::b",
            ]
        );
        let other = listing(Model::Inventory, &[&scan("resource-explorer", "full", "AWS::EC2::VPC")]);
        assert_eq!(found.resources, other.resources, "how a backend spells a type is not a state");
        assert_eq!(extent(&other, "AWS::SQS::Queue", PLACE), "complete", "every type was asked for");
        assert!(sees_everything(other.coverage.basis()) && !sees_everything(found.coverage.basis()));
        let cut = scan("resource-explorer", "full", "AWS::EC2::VPC").replace("false", "true");
        assert!(extent(&listing(Model::Inventory, &[&cut]), "AWS::SQS::Queue", PLACE).contains("truncated"));
    }

    #[test]
    fn attributes_and_a_scan_of_the_same_things_are_two_streams() {
        let lambda = r#"{"region":"us-east-1","resourceType":"lambda","resources":[{"functionName":"f","timeout":3,"environment":{"K":"hunter2"}}],"count":1,"fetchedAt":"2026-06-29T10:00:00Z","truncated":false}"#;
        let listings =
            normalize(Model::Inventory, &[lambda, &scan("config", "config-tracked", "AWS::EC2::VPC")]).unwrap();
        let scopes: Vec<_> = listings
            .iter()
            .map(|listing| listing.scope.as_ref().map(driftline_core::name::ScopeName::as_str))
            .collect();
        assert_eq!(scopes, [None, Some("scan")]);
        let (key, function) = listings[0].resources.first_key_value().unwrap();
        assert_eq!(key.id, "arn:aws:lambda:us-east-1:123456789012:function:f");
        assert_eq!(function.sensitive[0].to_string(), "/environment/*");
        assert_eq!(extent(&listings[0], "AWS::Lambda::Function", PLACE), "complete");
    }

    #[test]
    fn a_stopped_instance_is_not_a_deleted_one() {
        let all = |state: &str| {
            format!(
                r#"{{"region":"us-east-1","resourceType":"all","resources":{{"ec2":[{{"instanceId":"i-1","state":"running"}},{{"instanceId":"i-2","state":"{state}"}}],"rds":[],"s3":[{{"bucketName":"b"}}]}},"count":3}}"#
            )
        };
        let running = listing(Model::Inventory, &[&all("running")]);
        assert!(extent(&running, "AWS::EC2::Instance", PLACE).contains("running instances only"));
        assert_eq!(extent(&running, "AWS::RDS::DBInstance", PLACE), "complete");
        assert_eq!(extent(&running, "AWS::S3::Bucket", "aws/123456789012/global"), "complete");
        assert_eq!(extent(&running, "AWS::EC2::Volume", PLACE), "", "it was not asked for volumes");
        assert_eq!(extent(&listing(Model::Inventory, &[&all("stopped")]), "AWS::EC2::Instance", PLACE), "complete");
        assert_eq!(properties(&running, "i-1").get("state").unwrap().as_str(), Some("running"));
    }

    #[test]
    fn as_many_as_the_observer_lists_at_most_may_not_be_all() {
        let functions: Vec<String> = (0..500).map(|at| format!(r#"{{"functionName":"f{at}"}}"#)).collect();
        let all = format!(
            r#"{{"region":"us-east-1","resourceType":"all","resources":{{"lambda":[{}]}}}}"#,
            functions.join(",")
        );
        let found = listing(Model::Inventory, &[&all]);
        assert!(extent(&found, "AWS::Lambda::Function", PLACE).contains("at most"));
    }

    #[test]
    fn an_answer_of_the_observer_is_not_an_observation() {
        let error =
            normalize(Model::Inventory, &[r#"{"newResources":[],"removedResources":[],"summary":{}}"#]).unwrap_err();
        assert!(error.hint.unwrap().contains("scanDiff"));
    }

    /// Every scan has a note; only that of a lesser one is worth a warning.
    #[test]
    fn a_note_is_a_problem_where_the_scan_sees_less_than_everything() {
        let problems = |source: &str, coverage: &str| {
            let scan = scan(source, coverage, "AWS::EC2::VPC").replacen('{', r#"{"sourceNote":"asked us-east-1","#, 1);
            listing(Model::Inventory, &[&scan]).problems.len()
        };
        assert_eq!(problems("resource-explorer", "full"), 0);
        assert_eq!(problems("config", "config-tracked"), 1);
        assert_eq!(problems("tag-api", "tagged-only"), 1);
    }
}
