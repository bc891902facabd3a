//! The status of an object: conditions whose times tell when they turned, and differences fit for people.

use driftline_core::seal::is_sealed;
use driftline_core::{Change, Pointer, Value};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

use crate::crd::{DriftField, Status};
use crate::managed::Managed;

pub const READY: &str = "Ready";
pub const SYNCED: &str = "Synced";
pub const DRIFTED: &str = "Drifted";
pub const CHECKED: &str = "DriftChecked";

/// A status has this many differences, and counts the rest.
const MOST_FIELDS: usize = 20;
/// A side of a difference is cut to this many characters of JSON.
const LONGEST_VALUE: usize = 256;
/// An event's note may have 1,024 bytes.
const LONGEST_NOTE: usize = 900;

/// What a condition says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Truth {
    True,
    False,
    Unknown,
}

impl Truth {
    fn text(self) -> &'static str {
        match self {
            Truth::True => "True",
            Truth::False => "False",
            Truth::Unknown => "Unknown",
        }
    }
}

/// A status that is being put together, of one generation at one time.
#[derive(Clone, Debug)]
pub struct Draft {
    pub status: Status,
    generation: Option<i64>,
    now: Timestamp,
}

impl Draft {
    pub fn new(status: Status, generation: Option<i64>, now: Timestamp) -> Self {
        Self { status, generation, now }
    }

    /// Sets a condition. Its time moves only when its status does.
    pub fn set(&mut self, kind: &str, truth: Truth, reason: &str, message: impl Into<String>) {
        let known = self.status.conditions.iter().position(|one| one.type_ == kind);
        let turned = match known {
            Some(at) if self.status.conditions[at].status == truth.text() => {
                self.status.conditions[at].last_transition_time.clone()
            }
            _ => Time(self.now),
        };
        let condition = Condition {
            type_: kind.to_owned(),
            status: truth.text().to_owned(),
            reason: reason.to_owned(),
            message: message.into(),
            observed_generation: self.generation,
            last_transition_time: turned,
        };
        match known {
            Some(at) => self.status.conditions[at] = condition,
            None => self.status.conditions.push(condition),
        }
    }

    pub fn remove(&mut self, kind: &str) {
        self.status.conditions.retain(|one| one.type_ != kind);
    }

    pub fn has(&self, kind: &str) -> bool {
        self.status.conditions.iter().any(|one| one.type_ == kind)
    }

    /// The status, with the time of the check, if anything but that is another than it was.
    pub fn changed_from(mut self, before: Option<&Status>) -> Option<Status> {
        let none = Status::default();
        let before = before.unwrap_or(&none);
        self.status.last_checked.clone_from(&before.last_checked);
        if self.status == *before {
            return None;
        }
        self.status.last_checked = Some(moment(self.now));
        Some(self.status)
    }
}

/// A time as statuses have it.
pub fn moment(at: Timestamp) -> String {
    Timestamp::from_second(at.as_second()).unwrap_or(at).to_string()
}

/// The differences as a status has them, and how many more there are.
pub fn fields<K: Managed>(object: &K, changes: &[Change]) -> (Vec<DriftField>, i64) {
    let shown = changes.iter().take(MOST_FIELDS).map(|change| field(object, change)).collect();
    (shown, i64::try_from(changes.len().saturating_sub(MOST_FIELDS)).unwrap_or(i64::MAX))
}

fn field<K: Managed>(object: &K, change: &Change) -> DriftField {
    let sealed = |value: &Option<Value>| value.as_ref().map(|value| sealed_at(object, &change.path, value));
    let (mut expected, mut actual) = (sealed(&change.expected), sealed(&change.actual));
    if expected.as_ref().is_some_and(is_sealed) || actual.as_ref().is_some_and(is_sealed) {
        expected = expected.map(|_| Value::from("sealed"));
        actual = actual.map(|_| Value::from("changed"));
    }
    DriftField {
        path: change.path.to_string(),
        expected: expected.as_ref().map(shortened),
        actual: actual.as_ref().map(shortened),
    }
}

/// A value at its place, with the secrets in it sealed.
fn sealed_at<K: Managed>(object: &K, path: &Pointer, value: &Value) -> Value {
    if path.is_root() {
        return object.sealed(value);
    }
    let mut around = Value::Object(std::collections::BTreeMap::new());
    path.set(&mut around, Some(value.clone()));
    path.find(&object.sealed(&around)).cloned().unwrap_or_else(|| Value::from("sealed"))
}

fn shortened(value: &Value) -> serde_json::Value {
    let text = value.to_json();
    if text.chars().count() <= LONGEST_VALUE {
        return serde_json::to_value(value).unwrap_or_default();
    }
    let start: String = text.chars().take(LONGEST_VALUE).collect();
    serde_json::Value::String(format!("{start}… ({} more)", text.chars().count() - LONGEST_VALUE))
}

/// The differences in one line: `/enabled: true -> false; /domains/1: "a" -> absent`.
pub fn sentence(fields: &[DriftField], more: i64) -> String {
    let side = |value: &Option<serde_json::Value>| value.as_ref().map_or("absent".to_owned(), ToString::to_string);
    let mut text = String::new();
    for (at, field) in fields.iter().enumerate() {
        let one = format!("{}: {} -> {}", field.path, side(&field.expected), side(&field.actual));
        if text.len() + one.len() > LONGEST_NOTE {
            let left = i64::try_from(fields.len() - at).unwrap_or_default() + more;
            return format!("{text}; and {left} more").trim_start_matches("; ").to_owned();
        }
        if at > 0 {
            text += "; ";
        }
        text += &one;
    }
    if more > 0 {
        text += &format!("; and {more} more");
    }
    text
}

/// A text that fits an event.
pub fn noted(mut text: String) -> String {
    if text.len() > 1_000 {
        let mut end = 1_000;
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.truncate(end);
        text.push('…');
    }
    text
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use crate::crd::{AwsResource, AwsResourceSpec};

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[test]
    fn the_time_of_a_condition_moves_only_with_its_status() {
        let mut draft = Draft::new(Status::default(), Some(1), at("2026-01-01T00:00:00Z"));
        draft.set(SYNCED, Truth::True, "InSync", "");
        let mut draft = Draft::new(draft.status, Some(2), at("2026-01-02T00:00:00Z"));
        draft.set(SYNCED, Truth::True, "InSync", "another message");
        assert_eq!(draft.status.conditions[0].last_transition_time.0, at("2026-01-01T00:00:00Z"));
        draft.set(SYNCED, Truth::False, "DriftDetected", "");
        assert_eq!(draft.status.conditions[0].last_transition_time.0, at("2026-01-02T00:00:00Z"));
        assert_eq!(draft.status.conditions.len(), 1);
    }

    #[test]
    fn a_check_that_finds_nothing_new_writes_nothing() {
        let mut draft = Draft::new(Status::default(), Some(1), at("2026-01-01T00:00:00Z"));
        draft.set(SYNCED, Truth::True, "InSync", "");
        let first = draft.changed_from(None).unwrap();
        assert_eq!(first.last_checked.as_deref(), Some("2026-01-01T00:00:00Z"));
        let mut again = Draft::new(first.clone(), Some(1), at("2026-01-02T00:00:00Z"));
        again.set(SYNCED, Truth::True, "InSync", "");
        assert_eq!(again.changed_from(Some(&first)), None);
    }

    #[test]
    fn a_secret_is_said_to_have_changed_and_never_shown() {
        let properties = serde_json::json!({"MasterUserPassword": "hunter2"});
        let spec = AwsResourceSpec {
            type_name: "AWS::RDS::DBInstance".into(),
            properties: properties.as_object().unwrap().clone(),
            region: None,
            drift_policy: None,
            ignore: Vec::new(),
        };
        let mut object = AwsResource::new("db", spec);
        object.metadata.uid = Some("0e3a3f52-9a54-4c9f-8d0e-0d8c4f5b6a71".into());
        let change = Change {
            path: "/MasterUserPassword".parse().unwrap(),
            expected: Some(Value::from("hunter2")),
            actual: Some(Value::from("hunter3")),
        };
        let (fields, more) = fields(&object, &[change]);
        assert_eq!(more, 0);
        assert_eq!(sentence(&fields, more), r#"/MasterUserPassword: "sealed" -> "changed""#);
        let applied = object.sealed(&object.desired().unwrap()).to_json();
        assert!(!applied.contains("hunter2"), "{applied}");
    }

    #[test]
    fn many_and_long_differences_are_counted_and_cut() {
        let spec = AwsResourceSpec {
            type_name: "AWS::SQS::Queue".into(),
            properties: serde_json::Map::new(),
            region: None,
            drift_policy: None,
            ignore: Vec::new(),
        };
        let object = AwsResource::new("queue", spec);
        let change = |at: usize| Change {
            path: format!("/P{at}").parse().unwrap(),
            expected: Some(Value::from("ä".repeat(2_000).as_str())),
            actual: None,
        };
        let changes: Vec<Change> = (0..50).map(change).collect();
        let (shown, more) = fields(&object, &changes);
        assert_eq!((shown.len(), more), (20, 30));
        let text = sentence(&shown, more);
        assert!(text.len() < 1_000, "{}", text.len());
        assert!(text.ends_with("more"), "{text}");
        assert!(noted("ä".repeat(2_000)).len() < 1_024);
    }
}
