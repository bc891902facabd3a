//! config: what AWS Config's rules say, one resource per evaluated resource, with all its verdicts in one map.
//!
//! The order of evaluations cannot matter then, and two rules on one resource cannot be mistaken for each other.

use std::collections::{BTreeMap, BTreeSet};

use driftline_core::{ResourceKey, Value};
use serde::Deserialize;

use crate::aws::{Whereabouts, canonical_kind, resource_key};
use crate::normalize::{Context, Document, Listing, NormalizeError, key, open, read, time};

/// Where the verdicts of a resource are.
pub const RULES: &str = "rules";

/// A listing of what rules have evaluated has not seen everything that there is.
const BASIS: &str = "rule evaluations";

/// The observer reads twenty pages of ten evaluations a rule, and does not say when that was not all.
const MOST_PER_RULE: usize = 200;

/// Types whose things Config calls by the same name as their ARNs do.
const NAMED_ALIKE: &[&str] = &[
    "AWS::EC2::",
    "AWS::S3::Bucket",
    "AWS::Lambda::Function",
    "AWS::DynamoDB::Table",
    "AWS::KMS::Key",
    "AWS::Route53::HostedZone",
    "AWS::CloudWatch::Alarm",
    "AWS::CloudFront::Distribution",
    "AWS::ECR::Repository",
];

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Raw {
    fetched_at: Option<String>,
    account_id: Option<String>,
    region: Option<String>,
    truncated: Option<bool>,
    evaluations: Option<Vec<Evaluation>>,
    rules: Option<serde::de::IgnoredAny>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Evaluation {
    resource_id: Option<String>,
    resource_type: Option<String>,
    resource_arn: Option<String>,
    account_id: Option<String>,
    region: Option<String>,
    compliance_type: Option<String>,
    config_rule_name: Option<String>,
    annotation: Option<String>,
    evaluated_at: Option<String>,
}

/// What is known of one resource while evaluations come in.
#[derive(Default)]
struct Evaluated {
    members: BTreeMap<String, Value>,
    rules: BTreeMap<String, Verdict>,
    document: String,
}

/// Ordered so that of two evaluations by one rule the later stands, and of two at the same time always the same.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Verdict {
    evaluated_at: Option<String>,
    verdict: String,
    annotation: Option<String>,
}

pub(crate) fn normalize(documents: &[Document<'_>], context: &Context) -> Result<Vec<Listing>, NormalizeError> {
    let mut listing = Listing::default();
    let mut found: BTreeMap<ResourceKey, Evaluated> = BTreeMap::new();
    let mut looked: BTreeMap<String, Option<String>> = BTreeMap::new();
    for document in &open(documents)? {
        let raw: Raw = read(document)?;
        let Some(evaluations) = raw.evaluations else {
            let what = if raw.rules.is_some() {
                "a summary of rules has no resources in it"
            } else {
                "it has no `evaluations`"
            };
            return Err(NormalizeError::new(&document.name, format!("this is not a compliance document: {what}"))
                .hint("config-compliance writes a `compliance` resource; that is the one to observe"));
        };
        listing.taken(time(raw.fetched_at.as_deref()).or(document.written_at));
        let mut per_rule: BTreeMap<String, usize> = BTreeMap::new();
        let mut places = BTreeSet::new();
        let mut nameless = 0;
        for evaluation in evaluations {
            listing.items += 1;
            let (Some(id), Some(kind), Some(rule), Some(verdict)) = (
                filled(evaluation.resource_id),
                filled(evaluation.resource_type),
                filled(evaluation.config_rule_name),
                filled(evaluation.compliance_type),
            ) else {
                nameless += 1;
                continue;
            };
            let account = filled(evaluation.account_id).or_else(|| filled(raw.account_id.clone()));
            let account = account.or_else(|| context.account.clone());
            let region = filled(evaluation.region).or_else(|| filled(raw.region.clone()));
            let at =
                Whereabouts { partition: &context.partition, account: account.as_deref(), region: region.as_deref() };
            let arn = filled(evaluation.resource_arn);
            let key = name(&kind, arn.as_deref().unwrap_or(&id), arn.is_some(), at);
            places.insert(key.place.as_str().to_owned());
            *per_rule.entry(rule.clone()).or_default() += 1;
            let one = found.entry(key).or_default();
            one.document.clone_from(&document.name);
            one.members.insert("resourceId".into(), id.into());
            one.members.insert("resourceType".into(), canonical_kind(&kind).into());
            let verdict =
                Verdict { evaluated_at: evaluation.evaluated_at, verdict, annotation: filled(evaluation.annotation) };
            match one.rules.get_mut(&rule) {
                Some(known) if *known >= verdict => {}
                Some(known) => *known = verdict,
                None => drop(one.rules.insert(rule, verdict)),
            }
        }
        let nameless = listing.nameless(&document.name, "of compliance", "resourceId, type, rule or verdict", nameless);
        let cut: Vec<&str> =
            per_rule.iter().filter(|(_, count)| **count >= MOST_PER_RULE).map(|(rule, _)| rule.as_str()).collect();
        let cut = (!cut.is_empty()).then(|| {
            let reason =
                format!("{} reached the {MOST_PER_RULE} evaluations that the observer reads of a rule", cut.join(", "));
            listing.problem(document.name.as_str(), format!("{reason}; there may be more"));
            reason
        });
        let truncated = raw.truncated.unwrap_or(false).then(|| crate::normalize::TRUNCATED.to_owned());
        let reason = truncated.or(cut).or(nameless);
        // An account in which nothing is non-compliant was looked at, too.
        let account = filled(raw.account_id).or_else(|| context.account.clone());
        for kind in ["", "AWS::S3::Bucket"] {
            let at = Whereabouts { partition: "", account: account.as_deref(), region: raw.region.as_deref() };
            places.insert(at.place(kind));
        }
        for place in places {
            let slot = looked.entry(place).or_default();
            *slot = slot.take().or_else(|| reason.clone());
        }
    }
    for (key, one) in found {
        let value = one.value();
        listing.add(key, &value, Vec::new(), &one.document)?;
    }
    for (place, reason) in looked {
        listing.cover_unless(driftline_core::coverage::EVERY, &place, reason.as_deref());
    }
    listing.coverage = std::mem::take(&mut listing.coverage).on_basis(Some(BASIS.into()));
    Ok(vec![listing])
}

impl Evaluated {
    fn value(&self) -> Value {
        let mut members = self.members.clone();
        let verdicts = |pick: fn(&Verdict) -> Option<Value>| {
            Value::Object(self.rules.iter().filter_map(|(rule, one)| Some((rule.clone(), pick(one)?))).collect())
        };
        members.insert(RULES.into(), verdicts(|one| Some(one.verdict.as_str().into())));
        members.insert("evaluatedAt".into(), verdicts(|one| one.evaluated_at.as_deref().map(Value::from)));
        members.insert("annotation".into(), verdicts(|one| one.annotation.as_deref().map(Value::from)));
        Value::Object(members)
    }
}

/// Config's name for a thing is often not the one in its ARN; an ARN made of such a name would be of nothing.
fn name(kind: &str, id: &str, is_arn: bool, at: Whereabouts<'_>) -> ResourceKey {
    let kind = canonical_kind(kind);
    let alike = NAMED_ALIKE.iter().any(|known| kind == *known || (known.ends_with("::") && kind.starts_with(known)));
    if is_arn || alike || crate::aws::is_arn(id) { resource_key(kind, id, at) } else { key(kind, &at.place(kind), id) }
}

fn filled(text: Option<String>) -> Option<String> {
    text.filter(|text| !text.is_empty())
}
