//! What a plan says: what changed behind Terraform's back, and what Terraform would do. The two are kept apart.

use std::collections::{BTreeMap, BTreeSet};

use driftline_core::{Pattern, Pointer, Value};
use serde_json::value::RawValue;

use super::document::Entry;
use super::naming::{Electorate, Standing, local_place, name};
use super::secret::{self, Path};
use super::{Candidate, Gathering};
use crate::normalize::{Context, Found, NormalizeError, Opened, key, value};

/// What changed since Terraform last looked.
pub(super) const DRIFT: &str = "Terraform::Drift";
/// What Terraform would do.
pub(super) const PLANNED: &str = "Terraform::PlannedChange";

/// Stands for a value that is known only once the plan was carried out.
const UNKNOWN: &str = "$unknown";

/// Takes in one entry of a plan.
pub(super) fn take(
    gathering: &mut Gathering,
    kind: &str,
    entry: &Entry<'_>,
    document: &Opened<'_>,
    electorate: &Electorate,
    context: &Context,
) -> Result<(), NormalizeError> {
    let part = |raw: Option<&RawValue>| raw.map(|raw| value(document, raw)).transpose();
    let (before, after) = (part(entry.change.before)?, part(entry.change.after)?);
    let unknown = part(entry.change.after_unknown)?;
    let mut secrets = Secrets::default();
    for (side, marks) in
        [(before.as_ref(), part(entry.change.before_sensitive)?), (after.as_ref(), part(entry.change.after_sensitive)?)]
    {
        secrets.add(&entry.kind, side, marks.as_ref());
    }
    let mut leaves = BTreeMap::new();
    differences(before.as_ref(), after.as_ref(), unknown.as_ref(), &Pointer::root(), &mut leaves);

    let mut sensitive = Vec::new();
    for (pointer, leaf) in &leaves {
        if secrets.reach(pointer.segments()) {
            let sides = leaf.as_object().into_iter().flatten().filter(|(_, value)| !is_unknown(value));
            sensitive.extend(sides.map(|(side, _)| Pattern::exactly(["changes", &pointer.to_string(), side])));
        }
    }
    let changes = leaves.into_iter().map(|(pointer, leaf)| (pointer.to_string(), leaf)).collect();
    let mut properties = BTreeMap::from([
        ("address".to_owned(), Value::from(entry.address.as_str())),
        ("type".to_owned(), Value::from(entry.kind.as_str())),
        ("actions".to_owned(), Value::from(entry.change.actions.clone())),
        ("changes".to_owned(), Value::Object(changes)),
    ]);
    // What is about to be made has no id yet.
    if let Some(attributes) = before.as_ref().or(after.as_ref()) {
        let named = name(&entry.kind, &entry.address, attributes, electorate.get(&entry.provider_name), context);
        if named.standing == Standing::Good && named.key.id != entry.address {
            properties.insert("key".to_owned(), Value::from(named.key.id));
        }
    }
    let label = super::label(&entry.address, entry.deposed.as_deref());
    let found = Found::new(&Value::Object(properties), sensitive);
    let key = key(kind, &local_place(context), &label);
    gathering.add(key, Candidate { label, found, kind: entry.kind.clone(), standing: Standing::Good });
    Ok(())
}

/// Where the secrets of both sides are: what is secret on one side is not shown on the other.
#[derive(Default)]
struct Secrets(BTreeSet<Path>);

impl Secrets {
    fn add(&mut self, kind: &str, side: Option<&Value>, marks: Option<&Value>) {
        if let Some(value) = side {
            self.0.extend(secret::by_nature(kind, value));
            self.0.extend(secret::by_name(value));
        }
        self.0.extend(secret::with_echoes(kind, marks.map(secret::mirrored).unwrap_or_default()));
    }

    /// Whether a secret is at this place, above it or beneath it.
    fn reach(&self, place: &[String]) -> bool {
        self.0.iter().any(|path| place.starts_with(path) || path.starts_with(place))
    }
}

fn is_unknown(value: &Value) -> bool {
    value.as_object().is_some_and(|members| members.len() == 1 && members.contains_key(UNKNOWN))
}

/// Collects the leaves that differ, each with what is there on either side.
fn differences(
    before: Option<&Value>,
    after: Option<&Value>,
    unknown: Option<&Value>,
    place: &Pointer,
    out: &mut BTreeMap<Pointer, Value>,
) {
    let unknown = unknown.filter(|unknown| any_true(unknown));
    if unknown == Some(&Value::Bool(true)) {
        let after = Value::from([(UNKNOWN, Value::from(true))]);
        let before = before.map(|before| ("before".to_owned(), before.clone()));
        let leaf = before.into_iter().chain([("after".to_owned(), after)]).collect();
        out.insert(place.clone(), Value::Object(leaf));
        return;
    }
    if before == after && unknown.is_none() {
        return;
    }
    let is_nothing = |side: Option<&Value>| matches!(side, None | Some(Value::Null));
    let holds = |side: Option<&Value>| matches!(side, Some(Value::Object(_) | Value::Array(_)));
    // What is made or destroyed whole is shown attribute by attribute, and so is what is partly not known yet.
    let opens = |side: Option<&Value>| holds(side) || (is_nothing(side) && (place.is_root() || unknown.is_some()));
    let same_shape = !matches!(
        (before, after),
        (Some(Value::Object(_)), Some(Value::Array(_))) | (Some(Value::Array(_)), Some(Value::Object(_)))
    );
    if same_shape && opens(before) && opens(after) && (holds(before) || holds(after) || unknown.is_some()) {
        let names: BTreeSet<String> = [before, after, unknown].into_iter().flatten().flat_map(children).collect();
        for name in names {
            let step = Pointer::root().child(name.as_str());
            let [before, after, unknown] = [before, after, unknown].map(|side| step.find(side?));
            differences(before, after, unknown, &place.child(name), out);
        }
        return;
    }
    // To Terraform a missing attribute is a null one.
    if is_nothing(before) && is_nothing(after) {
        return;
    }
    let sides = [("before", before), ("after", after)];
    let leaf = sides.into_iter().filter_map(|(name, side)| side.map(|side| (name.to_owned(), side.clone()))).collect();
    out.insert(place.clone(), Value::Object(leaf));
}

fn children(value: &Value) -> Vec<String> {
    match value {
        Value::Object(members) => members.keys().cloned().collect(),
        Value::Array(items) => (0..items.len()).map(|at| at.to_string()).collect(),
        _ => Vec::new(),
    }
}

fn any_true(value: &Value) -> bool {
    match value {
        Value::Bool(flag) => *flag,
        Value::Object(members) => members.values().any(any_true),
        Value::Array(items) => items.iter().any(any_true),
        _ => false,
    }
}
