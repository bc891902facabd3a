//! config: what AWS Config's rules say of resources.

use driftline_core::SourceName;
use driftline_core::coverage::EVERY;
use driftline_sources::normalize::{Listing, Model, NormalizeError};
use futures_util::stream::{self, StreamExt};
use serde_json::{Value, json};

use crate::pass::{Covered, Here, normalized};
use crate::row::{Given, Operation, Paging, Wire};
use crate::run::{Listed, outcome, pages};
use crate::shape::{at, text_at};

const CONFIG: Wire = Wire::Json { version: "1.1", target: "StarlingDoveService" };

const fn operation(name: &'static str, given: &'static [(&'static str, Given)]) -> Operation {
    Operation { service: "config", name, wire: CONFIG, given, action: None, lists: &[] }
}

const RULES: Operation = operation("DescribeConfigRules", &[]);
/// Of what complies nothing is kept, as with the observer that writes files: an entry that is gone is fixed.
const DETAILS: Operation = operation(
    "GetComplianceDetailsByConfigRule",
    &[("ComplianceTypes", Given::Texts(&["NON_COMPLIANT"])), ("Limit", Given::Number(100))],
);

pub(crate) const OPERATIONS: &[Operation] = &[RULES, DETAILS];

const PAGES: Paging = Paging { tokens: &[("NextToken", "NextToken")], more: None };
const SIDE_BY_SIDE: usize = 8;

/// The listing is of rules' verdicts, and not of what there is.
const BASIS: &str = "rule evaluations";

pub(crate) async fn observe(here: &Here, source: &SourceName) -> Result<Listing, NormalizeError> {
    let client = &here.client;
    let mut rules = pages(client, &RULES, Some(&PAGES), "ConfigRules/*", &[], "").await;
    let names: Vec<String> =
        rules.items.iter().filter_map(|rule| text_at(rule, "ConfigRuleName")).map(str::to_owned).collect();
    let details = stream::iter(names.into_iter().map(|name| async move {
        let more = [("ConfigRuleName".to_owned(), Value::from(name.as_str()))];
        (name, pages(client, &DETAILS, Some(&PAGES), "EvaluationResults/*", &more, "").await)
    }));
    let details: Vec<(String, Listed)> = details.buffered(SIDE_BY_SIDE).collect().await;
    let mut evaluations = Vec::new();
    for (rule, found) in details {
        evaluations.extend(found.items.iter().filter_map(|result| evaluation(result, &rule, here)));
        if let Some(reason) = found.partial {
            rules.cut(format!("{reason} (the rule {rule})"));
        }
    }
    // A verdict that is missing means that it was resolved. Where one could not be read, nothing is said of any.
    if rules.partial.is_some() {
        evaluations.clear();
    }
    let mut covered = Covered::default();
    for kind in ["", "AWS::S3::Bucket"] {
        covered.add(EVERY, here.place(kind), outcome(rules.partial.as_deref()));
    }
    let document = here.document(json!({"evaluations": evaluations}));
    let mut listing = normalized(Model::Config, here, source, &document, &covered, rules.problems)?;
    listing.coverage = std::mem::take(&mut listing.coverage).on_basis(Some(BASIS.to_owned()));
    Ok(listing)
}

/// A rule that has not found anything yet may answer with a row that names no resource.
fn evaluation(result: &Value, rule: &str, here: &Here) -> Option<Value> {
    let of = at(result, "EvaluationResultIdentifier/EvaluationResultQualifier")?;
    let (id, kind) = (text_at(of, "ResourceId")?, text_at(of, "ResourceType")?);
    Some(json!({
        "resourceId": id,
        "resourceType": kind,
        "accountId": here.account,
        "region": here.region,
        "complianceType": text_at(result, "ComplianceType")?,
        "configRuleName": text_at(of, "ConfigRuleName").unwrap_or(rule),
        "annotation": text_at(result, "Annotation"),
        "evaluatedAt": at(result, "ResultRecordedTime").map(ToString::to_string),
    }))
}
