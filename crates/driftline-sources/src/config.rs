//! config: what AWS Config's rules say, one resource per evaluated resource, with all its verdicts in one map.
//!
//! The order of evaluations cannot matter then, and two rules on one resource cannot be mistaken for each other.

use std::borrow::Cow;
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
struct Raw<'a> {
    fetched_at: Option<String>,
    account_id: Option<String>,
    region: Option<String>,
    truncated: Option<bool>,
    #[serde(borrow)]
    evaluations: Option<Vec<Evaluation<'a>>>,
    rules: Option<serde::de::IgnoredAny>,
}

/// A text, borrowed where the document has it as it is.
type Text<'a> = Option<Cow<'a, str>>;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[derive(Default)]
struct Evaluation<'a> {
    #[serde(borrow)]
    resource_id: Text<'a>,
    #[serde(borrow)]
    resource_type: Text<'a>,
    #[serde(borrow)]
    resource_arn: Text<'a>,
    #[serde(borrow)]
    account_id: Text<'a>,
    #[serde(borrow)]
    region: Text<'a>,
    #[serde(borrow)]
    compliance_type: Text<'a>,
    #[serde(borrow)]
    config_rule_name: Text<'a>,
    #[serde(borrow)]
    annotation: Text<'a>,
    #[serde(borrow)]
    evaluated_at: Text<'a>,
}

/// What is known of one resource while evaluations come in.
struct Evaluated<'a> {
    id: Cow<'a, str>,
    rules: BTreeMap<Cow<'a, str>, Verdict<'a>>,
    document: usize,
}

/// Ordered so that of two evaluations by one rule the later stands, and of two at the same time always the same.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Verdict<'a> {
    evaluated_at: Text<'a>,
    says: Cow<'a, str>,
    annotation: Text<'a>,
}

pub(crate) fn normalize(documents: &[Document<'_>], context: &Context) -> Result<Vec<Listing>, NormalizeError> {
    let mut listing = Listing::default();
    let mut found: BTreeMap<ResourceKey, Evaluated<'_>> = BTreeMap::new();
    let opened = open(documents)?;
    let mut looked: BTreeMap<String, Option<String>> = BTreeMap::new();
    for (number, document) in opened.iter().enumerate() {
        let raw: Raw<'_> = read(document)?;
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
        let mut per_rule: BTreeMap<Cow<'_, str>, usize> = BTreeMap::new();
        let mut places: BTreeSet<String> = BTreeSet::new();
        let account_here =
            filled(raw.account_id.as_deref().map(Cow::from)).or(context.account.as_deref().map(Cow::from));
        let region_here = filled(raw.region.as_deref().map(Cow::from));
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
            let (account, region) = (filled(evaluation.account_id), filled(evaluation.region));
            let at = Whereabouts {
                partition: &context.partition,
                account: account.as_deref().or(account_here.as_deref()),
                region: region.as_deref().or(region_here.as_deref()),
            };
            let arn = filled(evaluation.resource_arn);
            let key = name(&kind, arn.as_deref().unwrap_or(&id), arn.is_some(), at);
            if !places.contains(key.place.as_str()) {
                places.insert(key.place.as_str().to_owned());
            }
            match per_rule.get_mut(&rule) {
                Some(count) => *count += 1,
                None => drop(per_rule.insert(rule.clone(), 1)),
            }
            let one = found.entry(key).or_insert_with(|| Evaluated { id, rules: BTreeMap::new(), document: number });
            let verdict = Verdict {
                evaluated_at: evaluation.evaluated_at,
                says: verdict,
                annotation: filled(evaluation.annotation),
            };
            match one.rules.get_mut(&rule) {
                Some(known) if *known >= verdict => {}
                Some(known) => *known = verdict,
                None => drop(one.rules.insert(rule, verdict)),
            }
        }
        let nameless = listing.nameless(&document.name, "of compliance", "resourceId, type, rule or verdict", nameless);
        let cut: Vec<&str> =
            per_rule.iter().filter(|(_, count)| **count >= MOST_PER_RULE).map(|(rule, _)| &**rule).collect();
        let cut = (!cut.is_empty()).then(|| {
            let reason =
                format!("{} reached the {MOST_PER_RULE} evaluations that the observer reads of a rule", cut.join(", "));
            listing.problem(document.name.as_str(), format!("{reason}; there may be more"));
            reason
        });
        let truncated = raw.truncated.unwrap_or(false).then(|| crate::normalize::TRUNCATED.to_owned());
        let reason = truncated.or(cut).or(nameless);
        // An account in which nothing is non-compliant was looked at, too.
        for kind in ["", "AWS::S3::Bucket"] {
            let at = Whereabouts { partition: "", account: account_here.as_deref(), region: region_here.as_deref() };
            places.insert(at.place(kind));
        }
        for place in places {
            let slot = looked.entry(place).or_default();
            *slot = slot.take().or_else(|| reason.clone());
        }
    }
    for (key, one) in found {
        let value = one.value(&key.kind);
        listing.add(key, &value, Vec::new(), &opened[one.document].name)?;
    }
    for (place, reason) in looked {
        listing.cover_unless(driftline_core::coverage::EVERY, &place, reason.as_deref());
    }
    listing.coverage = std::mem::take(&mut listing.coverage).on_basis(Some(BASIS.into()));
    Ok(vec![listing])
}

impl Evaluated<'_> {
    fn value(&self, kind: &str) -> Value {
        let mut members = BTreeMap::from([
            ("resourceId".to_owned(), Value::from(&*self.id)),
            ("resourceType".to_owned(), Value::from(kind)),
        ]);
        let verdicts = |pick: fn(&Verdict<'_>) -> Option<Value>| {
            Value::Object(self.rules.iter().filter_map(|(rule, one)| Some((rule.to_string(), pick(one)?))).collect())
        };
        members.insert(RULES.into(), verdicts(|one| Some((*one.says).into())));
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

fn filled(text: Text<'_>) -> Text<'_> {
    text.filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use crate::normalize::Model;
    use crate::normalize::testing::{extent, keys, listing, normalize, properties};

    fn evaluation(kind: &str, id: &str, rule: &str, verdict: &str, at: &str) -> String {
        format!(
            r#"{{"resourceId":"{id}","resourceType":"{kind}","resourceArn":null,"accountId":"123456789012","region":"us-east-1","complianceType":"{verdict}","configRuleName":"{rule}","annotation":null,"evaluatedAt":"{at}"}}"#
        )
    }

    fn document(evaluations: &[String]) -> String {
        format!(
            r#"{{"fetchedAt":"2026-06-29T10:00:00Z","accountId":"123456789012","region":"us-east-1","evaluations":[{}],"summary":{{}}}}"#,
            evaluations.join(",")
        )
    }

    #[test]
    fn two_rules_on_one_resource_are_one_resource_with_two_verdicts() {
        let mut all = vec![
            evaluation("AWS::IAM::User", "AIDA1", "mfa", "NON_COMPLIANT", "2026-06-29T09:00:00Z"),
            evaluation("AWS::IAM::User", "AIDA1", "keys", "COMPLIANT", "2026-06-29T08:00:00Z"),
            evaluation("AWS::S3::Bucket", "b", "public", "NON_COMPLIANT", "2026-06-29T08:00:00Z"),
        ];
        let found = listing(Model::Config, &[&document(&all)]);
        assert_eq!(
            keys(&found),
            ["AWS::IAM::User aws/123456789012/global AIDA1", "AWS::S3::Bucket aws/123456789012/global arn:aws:s3:::b",]
        );
        let rules = properties(&found, "AIDA1").get("rules").map(driftline_core::Value::to_json);
        assert_eq!(rules.as_deref(), Some(r#"{"keys":"COMPLIANT","mfa":"NON_COMPLIANT"}"#));
        all.reverse();
        assert_eq!(found, listing(Model::Config, &[&document(&all)]));
    }

    #[test]
    fn of_two_evaluations_by_one_rule_the_later_stands_in_whichever_order() {
        let mut all = vec![
            evaluation("AWS::EC2::Instance", "i-1", "r", "NON_COMPLIANT", "2026-06-29T08:00:00Z"),
            evaluation("AWS::EC2::Instance", "i-1", "r", "COMPLIANT", "2026-06-29T09:00:00Z"),
        ];
        for _ in 0..2 {
            let found = properties(&listing(Model::Config, &[&document(&all)]), "i-1");
            assert_eq!(found.get("rules").map(driftline_core::Value::to_json).as_deref(), Some(r#"{"r":"COMPLIANT"}"#));
            all.reverse();
        }
    }

    #[test]
    fn a_rule_with_as_many_evaluations_as_the_observer_reads_may_have_more() {
        let many = |count: usize| {
            let one = |at: usize| evaluation("AWS::EC2::Instance", &format!("i-{at}"), "r", "NON_COMPLIANT", "x");
            listing(Model::Config, &[&document(&(0..count).map(one).collect::<Vec<_>>())])
        };
        let place = "aws/123456789012/us-east-1";
        assert_eq!(extent(&many(199), "AWS::EC2::Instance", place), "complete");
        assert!(extent(&many(200), "AWS::EC2::Instance", place).contains("200 evaluations"));
        assert_eq!(many(200).problems.len(), 1);
    }

    #[test]
    fn an_account_without_violations_was_looked_at() {
        let found = listing(Model::Config, &[&document(&[])]);
        assert_eq!(extent(&found, "AWS::EC2::Instance", "aws/123456789012/us-east-1"), "complete");
        assert!(normalize(Model::Config, &[r#"{"fetchedAt":"x","region":"r","rules":[]}"#]).is_err(), "a summary");
    }
}
