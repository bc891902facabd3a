//! cloud-control: things of any type that Cloud Control lists, in the shape of the type's schema.

use aws_wire::Kind;
use driftline_core::{Problem, Value as Canonical};
use driftline_sources::aws::{canonical_kind, is_arn, resource_key};
use driftline_sources::cloudformation::{physical_key, secrets};
use driftline_sources::normalize::{Found, Listing};
use futures_util::stream::{self, StreamExt};
use serde_json::Value;

use crate::pass::{BASIS, Covered, Here, add_problems, recover};
use crate::row::{Operation, Paging, Wire};
use crate::run::{Listed, ask, pages, reason};
use crate::shape::{at, text_at};

const WIRE: Wire = Wire::Json { version: "1.0", target: "CloudApiService" };

const LIST: Operation = Operation {
    service: "cloudcontrolapi",
    name: "ListResources",
    wire: WIRE,
    given: &[],
    action: Some("cloudformation:ListResources"),
    lists: &[],
};
const GET: Operation = Operation { name: "GetResource", action: Some("cloudformation:GetResource"), ..LIST };

pub(crate) const OPERATIONS: &[Operation] = &[LIST, GET];

const PAGES: Paging = Paging { tokens: &[("NextToken", "NextToken")], more: None };
const SIDE_BY_SIDE: usize = 16;

/// What is listed when nothing is asked for: what most accounts have and no template should lose.
pub(crate) const TYPES: &[&str] = &[
    "AWS::DynamoDB::Table",
    "AWS::EC2::InternetGateway",
    "AWS::EC2::RouteTable",
    "AWS::EC2::SecurityGroup",
    "AWS::EC2::Subnet",
    "AWS::EC2::VPC",
    "AWS::Events::Rule",
    "AWS::IAM::Role",
    "AWS::KMS::Key",
    "AWS::Lambda::Function",
    "AWS::S3::Bucket",
    "AWS::SNS::Topic",
    "AWS::SQS::Queue",
];

pub(crate) async fn observe(here: &Here, kinds: &[String]) -> Listing {
    let mut listing = Listing::default();
    listing.taken_at = Some(here.taken_at);
    let mut covered = Covered::default();
    let mut problems = Vec::new();
    let found = stream::iter(kinds.iter().map(|kind| async move { (kind, of_kind(here, kind).await) }));
    let found: Vec<_> = found.buffered(4).collect().await;
    for (kind, (listed, resources)) in found {
        let kind = canonical_kind(kind);
        covered.add(kind, here.place(kind), listed.outcome());
        problems.extend(listed.problems);
        for (identifier, properties) in resources {
            let text = properties.to_string();
            let Ok(value) = serde_json::from_str::<Canonical>(&text) else { continue };
            let arn = ["Arn", "TopicArn", "QueueArn"].iter().find_map(|name| text_at(&properties, name));
            let key = match arn.filter(|arn| is_arn(arn)) {
                Some(arn) => resource_key(kind, arn, here.whereabouts()),
                None => physical_key(kind, &identifier, &value, here.whereabouts()),
            };
            listing.items += 1;
            let sensitive = secrets(&value, text.len());
            if listing.resources.insert(key.clone(), Found::new(&value, sensitive)).is_some() {
                let message = format!("two things that {kind} lists have this key; the later is kept");
                problems.push(Problem { about: key.id, message });
            }
        }
    }
    recover(&mut listing, &covered, BASIS);
    add_problems(&mut listing, problems);
    listing
}

/// Lists a type, and reads each thing of it: a list is only obliged to have identifiers.
async fn of_kind(here: &Here, kind: &str) -> (Listed, Vec<(String, Value)>) {
    let client = &here.client;
    let more = [("TypeName".to_owned(), Value::from(kind))];
    let mut listed = pages(client, &LIST, Some(&PAGES), "ResourceDescriptions/*", &more, "").await;
    let mut identifiers: Vec<String> =
        listed.items.iter().filter_map(|item| text_at(item, "Identifier")).map(str::to_owned).collect();
    identifiers.sort();
    identifiers.dedup();
    listed.items = Vec::new();
    let answers = stream::iter(identifiers.into_iter().map(|identifier| async move {
        let more =
            [("TypeName".to_owned(), Value::from(kind)), ("Identifier".to_owned(), Value::from(identifier.as_str()))];
        let answer = ask(client, &GET, &more, "").await;
        (identifier, answer)
    }));
    let mut answers = answers.buffered(SIDE_BY_SIDE);
    let mut resources = Vec::new();
    while let Some((identifier, answer)) = answers.next().await {
        match answer.map(|answer| at(&answer, "ResourceDescription/Properties").and_then(opened)) {
            Ok(Some(properties)) => resources.push((identifier, properties)),
            Ok(None) => {
                listed.problems.push(Problem { about: identifier, message: format!("{kind}: it has no properties") });
                listed.cut("malformed: cloudcontrolapi GetResource answered without properties");
            }
            Err(error) if error.kind == Kind::NotFound => {}
            Err(error) => listed.cut(reason(&error, &GET)),
        }
    }
    (listed, resources)
}

/// Properties are JSON in a text.
fn opened(properties: &Value) -> Option<Value> {
    let value = match properties.as_str() {
        Some(text) => serde_json::from_str(text).ok()?,
        None => properties.clone(),
    };
    value.is_object().then_some(value)
}
