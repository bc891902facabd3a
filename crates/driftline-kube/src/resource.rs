//! Any resource of AWS as CloudFormation declares it, compared by what the type's schema says.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use driftline_core::seal::{SealKey, is_sealed, seal};
use driftline_core::{Change, Pattern, Pointer, Value};
use driftline_sources::declared::{self, Engine, Options};
use driftline_sources::schema::{self, Facts};
use kube::Resource as _;

use crate::crd::{AwsResource, Ignore, SpecPolicy, Status};
use crate::decision::Policy;
use crate::managed::{Found, IgnoreRule, Kind, Managed};

/// Parses each transform once.
static ENGINE: LazyLock<Engine> = LazyLock::new(Engine::default);

impl Managed for AwsResource {
    const KIND: Kind = Kind::AwsResource;

    fn status(&self) -> Option<&Status> {
        self.status.as_ref()
    }

    fn set_status(&mut self, status: Status) {
        self.status = Some(status);
    }

    fn type_name(&self) -> &str {
        &self.spec.type_name
    }

    fn desired(&self) -> Result<Value, String> {
        let written = &self.spec.type_name;
        match schema::name(written) {
            Some(name) if name == written => {}
            Some(name) => return Err(format!("spec.typeName is `{written}`: AWS writes it `{name}`")),
            None => return Err(format!("spec.typeName is `{written}`, which no schema of AWS describes")),
        }
        let value: Value = serde_json::from_value(serde_json::Value::Object(self.spec.properties.clone()))
            .map_err(|error| format!("spec.properties cannot be read: {error}"))?;
        if let Some(function) = function_in(&value) {
            return Err(format!("spec.properties has `{function}`: functions of templates are not resolved here"));
        }
        Ok(value)
    }

    fn own_policy(&self) -> Option<Policy> {
        self.spec.drift_policy.map(|policy| match policy {
            SpecPolicy::Enforce => Policy::Enforce,
            SpecPolicy::Report => Policy::Report,
            SpecPolicy::Suspend => Policy::Suspend,
        })
    }

    fn own_ignores(&self) -> &[Ignore] {
        &self.spec.ignore
    }

    fn compare(&self, expected: &Value, live: &Value, applied: Option<&Value>, ignore: &[IgnoreRule]) -> Found {
        let none = Facts::default();
        let facts = schema::facts(&self.spec.type_name).unwrap_or(&none);
        let options = Options { heuristics: true, without: &[], transforms: &[], engine: &ENGINE };
        let answer = declared::compare(&self.spec.type_name, expected, live, &options);
        let mut changes: Vec<Change> = answer
            .differences
            .into_iter()
            .map(|one| Change { path: one.path, expected: one.expected, actual: one.actual })
            .collect();
        if let Some(applied) = applied {
            let mut path = Pointer::root();
            withdrawn(&mut path, applied, expected, live, &mut changes);
            for place in places(expected, &facts.write_only) {
                let (wanted, had) = (place.find(expected).cloned(), place.find(applied).cloned());
                let sealed = |value: Option<Value>| value.map(|value| self.sealed_at(&place, value));
                if sealed(wanted.clone()) != sealed(had.clone()) {
                    changes.push(Change { path: place, expected: wanted, actual: had });
                }
            }
        }
        changes.retain(|change| !facts.read_only.iter().any(|pattern| pattern.covers(&change.path)));
        changes.sort();
        changes.dedup_by(|a, b| a.path == b.path);
        let ignored = |change: &Change| ignore.iter().any(|rule| rule.path.covers(&change.path));
        let (kept, changes): (Vec<Change>, Vec<Change>) = changes.into_iter().partition(ignored);
        Found { excused: answer.excused.len() + kept.len(), changes, kept }
    }

    fn secrets(&self) -> Vec<Pattern> {
        let kind = &self.spec.type_name;
        let known = driftline_sources::builtin::secrets().into_iter().filter(|one| one.kind.matches(kind));
        let mut paths: Vec<Pattern> = known.map(|one| one.path).collect();
        paths.extend(schema::facts(kind).into_iter().flat_map(|facts| facts.write_only.iter().cloned()));
        for name in ["Password", "MasterUserPassword", "SecretString", "AuthToken", "PrivateKey", "ClientSecret"] {
            paths.extend(format!("/**/{name}").parse());
        }
        paths
    }

    fn sealed(&self, document: &Value) -> Value {
        let mut value = document.clone();
        let paths = self.secrets();
        // Who may read the status may read the declaration beside it: the seal keeps a secret from spreading to
        // events, logs and stores, not from them. So the object's own UID is key enough.
        let uid = self.meta().uid.as_deref().unwrap_or_default().replace('-', "");
        let mut key = [0; 32];
        for (slot, byte) in key.iter_mut().zip(uid.bytes()) {
            *slot = byte;
        }
        seal(&mut value, &paths.iter().collect::<Vec<_>>(), &SealKey::new(key));
        value
    }
}

impl AwsResource {
    fn sealed_at(&self, place: &Pointer, value: Value) -> Value {
        if is_sealed(&value) {
            return value;
        }
        let mut around = Value::Object(BTreeMap::new());
        place.set(&mut around, Some(value));
        place.find(&self.sealed(&around)).cloned().unwrap_or_default()
    }
}

/// What was applied, is declared no more, and is still there.
fn withdrawn(path: &mut Pointer, applied: &Value, expected: &Value, live: &Value, changes: &mut Vec<Change>) {
    let (Value::Object(applied), Value::Object(expected), Value::Object(live)) = (applied, expected, live) else {
        return;
    };
    for (name, before) in applied {
        let Some(now) = live.get(name) else { continue };
        path.push(name.as_str());
        match expected.get(name) {
            Some(wanted) => withdrawn(path, before, wanted, now, changes),
            None => changes.push(Change { path: path.clone(), expected: None, actual: Some(now.clone()) }),
        }
        path.pop();
    }
}

/// The places of a document that patterns name.
fn places(document: &Value, patterns: &[Pattern]) -> Vec<Pointer> {
    fn walk(value: &Value, path: &mut Pointer, patterns: &[Pattern], found: &mut Vec<Pointer>) {
        if patterns.iter().any(|pattern| pattern.matches(path)) {
            found.push(path.clone());
            return;
        }
        let mut beneath = |segment: String, child: &Value| {
            path.push(segment);
            walk(child, path, patterns, found);
            path.pop();
        };
        match value {
            Value::Object(members) => members.iter().for_each(|(name, child)| beneath(name.clone(), child)),
            Value::Array(items) => items.iter().enumerate().for_each(|(at, child)| beneath(at.to_string(), child)),
            _ => {}
        }
    }
    let mut found = Vec::new();
    walk(document, &mut Pointer::root(), patterns, &mut found);
    found
}

/// A function of a template, which nobody here can resolve.
fn function_in(value: &Value) -> Option<&str> {
    match value {
        Value::Object(members) => {
            let is_function = |name: &str| name.starts_with("Fn::") || name == "Ref";
            match members.iter().next() {
                Some((name, _)) if members.len() == 1 && is_function(name) => Some(name),
                _ => members.values().find_map(function_in),
            }
        }
        Value::Array(items) => items.iter().find_map(function_in),
        _ => None,
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use crate::crd::AwsResourceSpec;

    fn resource(kind: &str, properties: &str) -> AwsResource {
        let spec = AwsResourceSpec {
            type_name: kind.into(),
            properties: serde_json::from_str(properties).unwrap(),
            region: None,
            drift_policy: None,
            ignore: Vec::new(),
        };
        let mut object = AwsResource::new("one", spec);
        object.metadata.uid = Some("0e3a3f52-9a54-4c9f-8d0e-0d8c4f5b6a71".into());
        object
    }

    fn value(text: &str) -> Value {
        serde_json::from_str(text).unwrap()
    }

    fn paths(found: &Found) -> Vec<String> {
        found.changes.iter().map(|change| change.path.to_string()).collect()
    }

    #[test]
    fn only_what_is_declared_is_compared_and_other_forms_are_the_same() {
        let object = resource("AWS::SQS::Queue", r#"{"QueueName":"q","VisibilityTimeout":"60"}"#);
        let desired = object.desired().unwrap();
        let live = value(r#"{"QueueName":"q","VisibilityTimeout":60,"Arn":"arn:aws:sqs:x","DelaySeconds":0}"#);
        assert!(object.compare(&desired, &live, None, &[]).is_same());
        let live = value(r#"{"QueueName":"q","VisibilityTimeout":30}"#);
        assert_eq!(paths(&object.compare(&desired, &live, None, &[])), ["/VisibilityTimeout"]);
    }

    #[test]
    fn a_property_that_is_declared_no_more_is_a_difference_until_it_was_written() {
        let object = resource("AWS::SQS::Queue", r#"{"QueueName":"q"}"#);
        let desired = object.desired().unwrap();
        let applied = value(r#"{"QueueName":"q","DelaySeconds":5}"#);
        let live = value(r#"{"QueueName":"q","DelaySeconds":5,"Arn":"arn:x"}"#);
        assert_eq!(paths(&object.compare(&desired, &live, Some(&applied), &[])), ["/DelaySeconds"]);
        assert!(object.compare(&desired, &live, Some(&desired), &[]).is_same());
    }

    #[test]
    fn what_cannot_be_read_back_is_compared_with_what_was_written_and_kept_sealed() {
        let kind = "AWS::RDS::DBInstance";
        let object = resource(kind, r#"{"DBInstanceIdentifier":"db","MasterUserPassword":"one"}"#);
        let live = value(r#"{"DBInstanceIdentifier":"db"}"#);
        let desired = object.desired().unwrap();
        let applied = object.sealed(&desired);
        assert!(!applied.to_json().contains("one"));
        assert!(object.compare(&desired, &live, Some(&applied), &[]).is_same());
        let changed = resource(kind, r#"{"DBInstanceIdentifier":"db","MasterUserPassword":"two"}"#);
        let found = changed.compare(&changed.desired().unwrap(), &live, Some(&applied), &[]);
        assert_eq!(paths(&found), ["/MasterUserPassword"]);
        let sealed = changed.sealed(&changed.desired().unwrap());
        assert!(!changed.compare(&sealed, &applied, Some(&applied), &[]).is_same());
    }

    #[test]
    fn a_declaration_that_nobody_can_act_on_says_why() {
        for (kind, properties, why) in [
            ("AWS::SQS::Qeue", "{}", "no schema"),
            ("aws::sqs::queue", "{}", "AWS writes it `AWS::SQS::Queue`"),
            ("AWS::SQS::Queue", r#"{"KmsMasterKeyId":{"Ref":"Key"}}"#, "`Ref`"),
            ("AWS::SQS::Queue", r#"{"QueueName":{"Fn::Sub":"${X}"}}"#, "`Fn::Sub`"),
        ] {
            let error = resource(kind, properties).desired().unwrap_err();
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn an_ignored_place_does_not_count_and_is_kept() {
        let object = resource("AWS::SQS::Queue", r#"{"QueueName":"q","VisibilityTimeout":60,"DelaySeconds":1}"#);
        let ignore = IgnoreRule { path: "/DelaySeconds".parse().unwrap(), reason: "x".into(), origin: "spec.ignore" };
        let live = value(r#"{"QueueName":"q","VisibilityTimeout":30,"DelaySeconds":9}"#);
        let desired = object.desired().unwrap();
        let found = object.compare(&desired, &live, None, &[ignore]);
        assert_eq!(paths(&found), ["/VisibilityTimeout"]);
        let written = driftline_core::compare::apply(&desired, &found.kept);
        assert_eq!(written, value(r#"{"QueueName":"q","VisibilityTimeout":60,"DelaySeconds":9}"#));
    }
}
