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
        if self.spec.managed_certificate_request.is_some() && !names_certificate(&self.spec.customizations) {
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

fn names_certificate(customizations: &Option<Customizations>) -> bool {
    customizations.as_ref().is_some_and(|them| them.certificate.is_some())
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
