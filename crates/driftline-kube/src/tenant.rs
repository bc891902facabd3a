//! A distribution tenant as a document: declared and live in one shape, compared by the core with these rules.
//!
//! What only AWS sets (states of domains, times, names) is not in the document, so it cannot count.

use std::collections::{BTreeMap, BTreeSet};

use driftline_core::compare::compare;
use driftline_core::rule::{Applicable, Subject};
use driftline_core::{Equivalence, Origin, Pattern, Rule, RuleBook, RuleKind, Value};

use crate::crd::{Customizations, DistributionTenant, Status};
use crate::managed::{Found, IgnoreRule, Kind, Managed, Remark};

/// Members of the document by name; also what the cloud adapter writes and reads.
pub mod member {
    pub const DISTRIBUTION: &str = "distributionId";
    pub const CONNECTION_GROUP: &str = "connectionGroupId";
    pub const DOMAINS: &str = "domains";
    pub const ENABLED: &str = "enabled";
    pub const PARAMETERS: &str = "parameters";
    pub const CUSTOMIZATIONS: &str = "customizations";
    pub const MANAGED_CERTIFICATE: &str = "managedCertificateRequest";
    pub const TAGS: &str = "tags";
}

/// These are written and not read back: what is live of them is what was last written.
const NOT_READ: [&str; 2] = [member::MANAGED_CERTIFICATE, member::TAGS];

impl Managed for DistributionTenant {
    const KIND: Kind = Kind::DistributionTenant;

    fn status(&self) -> Option<&Status> {
        self.status.as_ref()
    }

    fn set_status(&mut self, status: Status) {
        self.status = Some(status);
    }

    fn type_name(&self) -> &'static str {
        "AWS::CloudFront::DistributionTenant"
    }

    fn desired(&self) -> Result<Value, String> {
        let spec = &self.spec;
        let mut document = BTreeMap::new();
        document.insert(member::DISTRIBUTION.into(), Value::from(spec.distribution_id.as_str()));
        document.insert(member::DOMAINS.into(), domains(spec.domains.iter().map(|one| one.domain.as_str())));
        document.insert(member::ENABLED.into(), Value::Bool(spec.enabled));
        if let Some(group) = spec.connection_group_id.as_ref().filter(|group| !group.is_empty()) {
            document.insert(member::CONNECTION_GROUP.into(), Value::from(group.as_str()));
        }
        let mut parameters = BTreeMap::new();
        for parameter in &spec.parameters {
            let value = Value::from(parameter.value.as_str());
            if let Some(other) = parameters.insert(parameter.name.clone(), value.clone())
                && other != value
            {
                return Err(format!("spec.parameters has two values for `{}`", parameter.name));
            }
        }
        document.insert(member::PARAMETERS.into(), Value::Object(parameters));
        if let Some(customizations) = &spec.customizations {
            document.insert(member::CUSTOMIZATIONS.into(), customized(customizations));
        }
        if let Some(request) = &spec.managed_certificate_request {
            document.insert(member::MANAGED_CERTIFICATE.into(), as_value(request));
        }
        if !spec.tags.is_empty() {
            let mut tags = BTreeMap::new();
            for tag in &spec.tags {
                if tag.key.starts_with("driftline.dev/") {
                    return Err(format!(
                        "spec.tags has `{}`: tags that begin with driftline.dev/ are the operator's own",
                        tag.key
                    ));
                }
                tags.insert(tag.key.clone(), Value::from(tag.value.clone().unwrap_or_default().as_str()));
            }
            document.insert(member::TAGS.into(), Value::Object(tags));
        }
        Ok(Value::Object(document))
    }

    fn compare(&self, expected: &Value, live: &Value, applied: Option<&Value>, ignore: &[IgnoreRule]) -> Found {
        let mut live = live.clone();
        if let Value::Object(members) = &mut live {
            for name in NOT_READ {
                members.remove(name);
                let written = applied.unwrap_or(expected).get(name).cloned();
                members.extend(written.map(|value| (name.to_owned(), value)));
            }
            // The group was asked for and is no more: that is written once, and then AWS's own choice.
            let withdrawn = applied.is_some_and(|applied| applied.get(member::CONNECTION_GROUP).is_some());
            if expected.get(member::CONNECTION_GROUP).is_none() && !withdrawn {
                members.remove(member::CONNECTION_GROUP);
            }
        }
        let book = rules(expected, ignore);
        let found = compare(expected, &live, &Applicable::all(&book));
        let first_kept = book.rules().len() - ignore.len() - usize::from(keeps_certificate(expected));
        let excused = found.excused.len();
        let kept = found.excused.into_iter().filter(|one| one.rule >= first_kept).map(|one| one.change).collect();
        Found { changes: found.changes, kept, excused }
    }

    fn secrets(&self) -> Vec<Pattern> {
        Vec::new()
    }

    fn sealed(&self, document: &Value) -> Value {
        document.clone()
    }

    fn remarks(&self) -> Vec<Remark> {
        let mut remarks = Vec::new();
        if self.spec.dns.is_some() {
            remarks.push(Remark {
                about: "DNSReady",
                reason: "NotImplemented",
                message: "spec.dns is accepted and not acted on: make the DNS records of the domains yourself",
            });
        }
        if self.spec.managed_certificate_request.is_some() && !names_certificate(self.spec.customizations.as_ref()) {
            remarks.push(Remark {
                about: "CertificateReady",
                reason: "NotFollowed",
                message: "the certificate is requested from CloudFront and an attached one is kept; whether it is \
                    issued is not followed, and attaching it is up to you",
            });
        }
        remarks
    }
}

fn names_certificate(customizations: Option<&Customizations>) -> bool {
    customizations.is_some_and(|them| them.certificate.is_some())
}

/// Whether a certificate that is attached is CloudFront's own doing.
fn keeps_certificate(expected: &Value) -> bool {
    let named = expected.get(member::CUSTOMIZATIONS).and_then(|them| them.get("certificate")).is_some();
    expected.get(member::MANAGED_CERTIFICATE).is_some() && !named
}

fn as_value(part: &impl serde::Serialize) -> Value {
    let json = serde_json::to_value(part).unwrap_or_default();
    serde_json::from_value(json).unwrap_or_default()
}

fn customized(customizations: &Customizations) -> Value {
    let mut value = as_value(customizations);
    if let Value::Object(members) = &mut value
        && let Some(Value::Object(geo)) = members.get_mut("geoRestrictions")
        && let Some(Value::Array(locations)) = geo.get_mut("locations")
    {
        let once: BTreeSet<Value> = locations.drain(..).collect();
        locations.extend(once);
    }
    value
}

/// Domains without repetition; letter case does not make another one. The first spelling stays.
pub fn domains<'a>(all: impl Iterator<Item = &'a str>) -> Value {
    let mut seen = BTreeSet::new();
    Value::Array(all.filter(|domain| seen.insert(domain.to_lowercase())).map(Value::from).collect())
}

/// The rules; those by which a live value stays come last.
fn rules(expected: &Value, ignore: &[IgnoreRule]) -> RuleBook {
    let rule = |path: &str, kind: RuleKind, reason: &str| Rule {
        subject: Subject::default(),
        path: path.parse().expect("the paths below are patterns"),
        kind,
        origin: Origin::Builtin,
        reason: reason.to_owned(),
    };
    let empty = || RuleKind::Equivalent(Equivalence::Empty);
    let case = || RuleKind::Equivalent(Equivalence::Case);
    let mut rules = vec![
        rule("/domains", RuleKind::Unordered, "domains have no order"),
        rule("/domains/*", case(), "domain names have no letter case"),
        rule("/parameters", empty(), "no parameters are no parameters"),
        rule("/customizations", empty(), "no customizations are no customizations"),
        rule("/customizations/*", empty(), "an empty customization customizes nothing"),
        rule("/customizations/geoRestrictions/locations", RuleKind::Unordered, "locations have no order"),
        rule("/customizations/geoRestrictions/locations", empty(), "no locations are no locations"),
        rule("/customizations/webAcl/arn", empty(), "an empty ARN names nothing"),
        rule("/tags", empty(), "no tags are no tags"),
    ];
    if keeps_certificate(expected) {
        let reason = "the certificate that CloudFront manages";
        rules.push(rule("/customizations/certificate", RuleKind::Ignore, reason));
    }
    rules.extend(ignore.iter().map(|one| Rule {
        subject: Subject::default(),
        path: one.path.clone(),
        kind: RuleKind::Ignore,
        origin: Origin::User(one.origin.to_owned()),
        reason: one.reason.clone(),
    }));
    RuleBook::new(rules)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn tenant(spec: serde_json::Value) -> DistributionTenant {
        DistributionTenant::new("acme", serde_json::from_value(spec).unwrap())
    }

    fn full() -> serde_json::Value {
        serde_json::json!({
            "distributionId": "E1", "connectionGroupId": "cg_1",
            "domains": [{"domain": "a.example.com"}, {"domain": "b.example.com"}],
            "parameters": [{"name": "one", "value": "1"}, {"name": "two", "value": "2"}],
            "customizations": {
                "webAcl": {"action": "override", "arn": "arn:1"},
                "certificate": {"arn": "arn:aws:acm:us-east-1:1:certificate/c"},
                "geoRestrictions": {"restrictionType": "whitelist", "locations": ["DE", "FR"]}
            }
        })
    }

    /// The places in which the second differs from the first.
    fn differing(declared: &serde_json::Value, live: &serde_json::Value) -> Vec<String> {
        let object = tenant(declared.clone());
        let live = tenant(live.clone()).desired().unwrap();
        let found = object.compare(&object.desired().unwrap(), &live, None, &[]);
        found.changes.iter().map(|change| change.path.to_string()).collect()
    }

    #[test]
    fn every_field_that_the_page_names_is_compared() {
        for (pointer, value, path) in [
            ("/enabled", serde_json::json!(false), "/enabled"),
            ("/distributionId", serde_json::json!("E2"), "/distributionId"),
            ("/connectionGroupId", serde_json::json!("cg_2"), "/connectionGroupId"),
            ("/domains/1/domain", serde_json::json!("c.example.com"), "/domains/1"),
            ("/parameters/0/value", serde_json::json!("3"), "/parameters/one"),
            ("/customizations/webAcl/action", serde_json::json!("disable"), "/customizations/webAcl/action"),
            ("/customizations/webAcl/arn", serde_json::json!("arn:2"), "/customizations/webAcl/arn"),
            ("/customizations/certificate/arn", serde_json::json!("arn:3"), "/customizations/certificate/arn"),
            (
                "/customizations/geoRestrictions/restrictionType",
                serde_json::json!("blacklist"),
                "/customizations/geoRestrictions/restrictionType",
            ),
            (
                "/customizations/geoRestrictions/locations/0",
                serde_json::json!("IT"),
                "/customizations/geoRestrictions/locations/0",
            ),
        ] {
            let mut live = full();
            live["enabled"] = serde_json::json!(true);
            *live.pointer_mut(pointer).unwrap() = value;
            assert_eq!(differing(&full(), &live), [path], "{pointer}");
        }
    }

    #[test]
    fn what_means_the_same_is_no_difference() {
        let mut live = full();
        live["domains"] = serde_json::json!([
            {"domain": "B.example.com"}, {"domain": "a.EXAMPLE.com"}, {"domain": "b.example.com"}
        ]);
        live["parameters"] = serde_json::json!([{"name": "two", "value": "2"}, {"name": "one", "value": "1"}]);
        live["customizations"]["geoRestrictions"]["locations"] = serde_json::json!(["FR", "DE", "FR"]);
        assert_eq!(differing(&full(), &live), Vec::<String>::new());
        let bare = serde_json::json!({"distributionId": "E1", "domains": [{"domain": "a"}]});
        for (name, value) in [
            ("customizations", serde_json::json!({})),
            ("parameters", serde_json::json!([])),
            ("connectionGroupId", serde_json::json!("cg_default")),
            ("tags", serde_json::json!([])),
        ] {
            let mut live = bare.clone();
            live[name] = value;
            assert_eq!(differing(&bare, &live), Vec::<String>::new(), "{name}");
        }
    }

    #[test]
    fn a_missing_parameter_is_not_an_empty_one_and_two_values_are_no_declaration() {
        let mut live = full();
        live["parameters"] = serde_json::json!([{"name": "one", "value": "1"}]);
        assert_eq!(differing(&full(), &live), ["/parameters/two"]);
        let mut twice = full();
        twice["parameters"] = serde_json::json!([{"name": "one", "value": "1"}, {"name": "one", "value": "2"}]);
        assert!(tenant(twice).desired().unwrap_err().contains("two values for `one`"));
    }

    #[test]
    fn what_was_declared_and_is_no_more_is_written_once() {
        let bare = tenant(serde_json::json!({"distributionId": "E1", "domains": [{"domain": "a"}]}));
        let with_group = serde_json::json!({
            "distributionId": "E1", "domains": [{"domain": "a"}], "connectionGroupId": "cg_1",
            "tags": [{"key": "team", "value": "web"}]
        });
        let applied = tenant(with_group).desired().unwrap();
        let found = bare.compare(&bare.desired().unwrap(), &applied, Some(&applied), &[]);
        let paths: Vec<String> = found.changes.iter().map(|change| change.path.to_string()).collect();
        assert_eq!(paths, ["/connectionGroupId", "/tags"]);
        let desired = bare.desired().unwrap();
        assert!(bare.compare(&desired, &applied, Some(&desired), &[]).is_same());
    }

    #[test]
    fn a_certificate_that_cloudfront_manages_is_kept() {
        let object = tenant(serde_json::json!({
            "distributionId": "E1", "domains": [{"domain": "a"}],
            "managedCertificateRequest": {"validationTokenHost": "cloudfront"}
        }));
        let mut live = object.desired().unwrap();
        let attached = serde_json::from_str(r#"{"certificate": {"arn": "arn:managed"}}"#).unwrap();
        if let Value::Object(members) = &mut live {
            members.insert(member::CUSTOMIZATIONS.into(), attached);
        }
        let found = object.compare(&object.desired().unwrap(), &live, None, &[]);
        assert!(found.is_same());
        let written = driftline_core::compare::apply(&object.desired().unwrap(), &found.kept);
        assert!(written.to_json().contains("arn:managed"), "{}", written.to_json());
    }
}
