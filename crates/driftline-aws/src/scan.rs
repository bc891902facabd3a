//! The broad listings: everything that an index of AWS's knows, without its configuration. Which index was asked is
//! part of what is said; one never stands in for another.

use driftline_core::SourceName;
use driftline_core::coverage::EVERY;
use driftline_sources::normalize::{Document, Listing, Model, NormalizeError};
use serde_json::{Value, json};

use crate::pass::{Covered, Here, add_problems, recover};
use crate::row::{Given, Operation, Paging, Wire};
use crate::run::{Listed, outcome, pages};
use crate::shape::{all, document, tags, text_at};

/// Who is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Index {
    ResourceExplorer,
    Config,
    Tagging,
}

impl Index {
    pub const ALL: [Index; 3] = [Index::ResourceExplorer, Index::Config, Index::Tagging];

    pub fn name(self) -> &'static str {
        match self {
            Index::ResourceExplorer => "resource-explorer",
            Index::Config => "config",
            Index::Tagging => "tag-api",
        }
    }

    /// What it can see.
    fn reach(self) -> &'static str {
        match self {
            Index::ResourceExplorer => "full",
            Index::Config => "config-tracked",
            Index::Tagging => "tagged-only",
        }
    }

    pub fn operation(self) -> Operation {
        match self {
            Index::ResourceExplorer => EXPLORER,
            Index::Config => SELECT,
            Index::Tagging => TAGGED,
        }
    }

    pub fn basis(self) -> String {
        format!("{} ({})", self.name(), self.reach())
    }
}

/// Not `Search`, which ends after a thousand results. Pages of a thousand get no token, so fewer are asked for.
const EXPLORER: Operation = Operation {
    service: "resource-explorer-2",
    name: "ListResources",
    wire: Wire::RestJson { path: "/ListResources" },
    given: &[],
    action: None,
    lists: &[],
};
const SELECT: Operation = Operation {
    service: "config",
    name: "SelectResourceConfig",
    wire: Wire::Json { version: "1.1", target: "StarlingDoveService" },
    given: &[
        ("Expression", Given::Text("SELECT arn, resourceType, awsRegion, accountId, tags")),
        ("Limit", Given::Number(100)),
    ],
    action: None,
    lists: &[],
};
const TAGGED: Operation = Operation {
    service: "tagging",
    name: "GetResources",
    wire: Wire::Json { version: "1.1", target: "ResourceGroupsTaggingAPI_20170126" },
    given: &[("ResourcesPerPage", Given::Number(100))],
    action: Some("tag:GetResources"),
    lists: &[],
};

const NEXT_TOKEN: Paging = Paging { tokens: &[("NextToken", "NextToken")], more: None };
const PAGINATION_TOKEN: Paging = Paging { tokens: &[("PaginationToken", "PaginationToken")], more: None };

pub async fn observe(here: &Here, source: &SourceName, index: Index) -> Result<Listing, NormalizeError> {
    let client = &here.client;
    let listed: Listed = match index {
        Index::ResourceExplorer => explorer(here).await,
        Index::Config => pages(client, &SELECT, Some(&NEXT_TOKEN), "Results/*", &[], "").await,
        Index::Tagging => pages(client, &TAGGED, Some(&PAGINATION_TOKEN), "ResourceTagMappingList/*", &[], "").await,
    };
    let resources: Vec<Value> = listed.items.iter().filter_map(|item| resource(index, item)).collect();
    let document = here.document(json!({
        "source": index.name(), "coverage": index.reach(), "resources": resources, "truncated": false,
    }));
    let text = document.to_string();
    let documents = [Document { name: index.name(), bytes: text.as_bytes(), written_at: None }];
    let listings = Model::Inventory.normalize(&documents, &here.context(source))?;
    let mut listing = listings.into_iter().next().unwrap_or_default();
    let mut covered = Covered::default();
    covered.add(EVERY, here.place(""), outcome(listed.partial.as_deref()));
    recover(&mut listing, &covered, &index.basis());
    add_problems(&mut listing, listed.problems);
    Ok(listing)
}

/// A `POST` with a body, and only of the region that is looked at: an aggregator knows all of them.
async fn explorer(here: &Here) -> Listed {
    use aws_wire::{Body, Call, Protocol};
    let mut listed = Listed::default();
    let mut token: Option<Value> = None;
    let mut seen = std::collections::BTreeSet::new();
    loop {
        let mut body = json!({
            "MaxResults": 500,
            "Filters": {"FilterString": format!("region:{}", here.region.as_deref().unwrap_or("global"))},
        });
        if let Some(token) = &token {
            body["NextToken"] = token.clone();
        }
        let call = Call::rest("resource-explorer-2", "ListResources", Protocol::RestJson, "POST", "/ListResources");
        let call = Call { body: Body::Json(body), ..call };
        let answer = match here.client.call(&call).await.and_then(|reply| reply.json()) {
            Ok(answer) => answer,
            Err(error) => {
                listed.cut(crate::run::reason(&error, &EXPLORER));
                return listed;
            }
        };
        listed.items.extend(all(&answer, "Resources/*").into_iter().cloned());
        match crate::shape::at(&answer, "NextToken") {
            None => return listed,
            Some(next) if !seen.insert(next.to_string()) => {
                listed.cut("page cut: resource-explorer-2 ListResources handed out a page token twice");
                return listed;
            }
            Some(next) => token = Some(next.clone()),
        }
    }
}

fn resource(index: Index, item: &Value) -> Option<Value> {
    match index {
        Index::ResourceExplorer => {
            let arn = text_at(item, "Arn")?;
            let names =
                all(item, "Properties/*").into_iter().find(|property| text_at(property, "Name") == Some("tags"));
            Some(json!({
                "arn": arn,
                "resourceType": explorer_type(text_at(item, "ResourceType")?),
                "region": text_at(item, "Region"),
                "accountId": text_at(item, "OwningAccountId"),
                "tags": tags(names.and_then(|property| property.get("Data"))),
            }))
        }
        Index::Config => {
            let row = document(item);
            Some(json!({
                "arn": text_at(&row, "arn")?,
                "resourceType": text_at(&row, "resourceType")?,
                "region": text_at(&row, "awsRegion"),
                "accountId": text_at(&row, "accountId"),
                "tags": tags(row.get("tags")),
            }))
        }
        Index::Tagging => {
            let arn = text_at(item, "ResourceARN")?;
            Some(json!({
                "arn": arn,
                "resourceType": type_of_arn(arn),
                "region": arn.split(':').nth(3),
                "accountId": arn.split(':').nth(4),
                "tags": tags(item.get("Tags")),
            }))
        }
    }
}

/// `ec2:security-group` is `AWS::EC2::SecurityGroup`; capitals are put right by whoever knows the type.
fn explorer_type(named: &str) -> String {
    let (service, what) = named.split_once(':').unwrap_or((named, ""));
    let what = what.split('/').next_back().unwrap_or(what);
    let words: String = what.split(['-', '_', ' ']).map(capital).collect();
    let service = match service {
        "elasticloadbalancing" if named.contains("/net/") || named.contains("/app/") => "ElasticLoadBalancingV2".into(),
        "states" => "StepFunctions".to_owned(),
        other => capital(other),
    };
    driftline_sources::aws::canonical_kind(&format!("AWS::{service}::{words}")).to_owned()
}

/// What an ARN says of its type: the service, and what is before the first `/` or `:`.
fn type_of_arn(arn: &str) -> String {
    let mut parts = arn.splitn(6, ':').skip(2);
    let service = parts.next().unwrap_or_default();
    let rest = parts.nth(2).unwrap_or_default();
    let what = rest.split(['/', ':']).next().filter(|what| *what != rest);
    let what = match (service, what) {
        (_, Some(what)) => what,
        ("sqs", None) => "queue",
        ("sns", None) => "topic",
        ("s3", None) => "bucket",
        (_, None) => "resource",
    };
    explorer_type(&format!("{service}:{what}"))
}

fn capital(word: &str) -> String {
    let mut chars = word.chars();
    chars.next().map(|first| first.to_ascii_uppercase().to_string() + chars.as_str()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_called_as_cloudformation_calls_them() {
        for (named, kind) in [
            ("ec2:security-group", "AWS::EC2::SecurityGroup"),
            ("lambda:function", "AWS::Lambda::Function"),
            ("sqs:queue", "AWS::SQS::Queue"),
        ] {
            assert_eq!(explorer_type(named), kind);
        }
        assert_eq!(type_of_arn("arn:aws:sqs:us-east-1:1:q"), "AWS::SQS::Queue");
        assert_eq!(type_of_arn("arn:aws:ec2:us-east-1:1:vpc/vpc-1"), "AWS::EC2::VPC");
        assert_eq!(type_of_arn("arn:aws:s3:::b"), "AWS::S3::Bucket");
    }
}
