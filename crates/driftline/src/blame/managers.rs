//! Who wrote a field of a Kubernetes object: the API server keeps a manager for each, in `metadata.managedFields`.

use driftline_core::pointer::Pointer;
use driftline_core::{Span, Value};
use driftline_store::Store;
use jiff::Timestamp;

use super::{Act, Certainty, Turn, Turned, window};
use crate::error::CommandResult;

/// One entry of `managedFields`.
struct Manager<'v> {
    name: &'v str,
    operation: &'v str,
    /// Set where it wrote a part of the object that has an API of its own, such as `status` or `scale`.
    subresource: Option<&'v str>,
    at: Option<Timestamp>,
    fields: &'v Value,
}

pub(super) fn attribute(store: &Store, turn: &mut Turn) -> CommandResult<()> {
    if turn.what == Turned::Deleted {
        turn.notes.push("Kubernetes does not keep who deleted an object; the audit log of its API server does".into());
        return Ok(());
    }
    let found = store.lookup(&turn.stream, turn.versions.1, &turn.key.id)?;
    let Some((_, object)) = found.into_iter().find(|(key, _)| *key == turn.key) else { return Ok(()) };
    let managers = managers(&object);
    if managers.is_empty() {
        turn.notes.push(
            "it was observed without its field managers: a live `driftline observe kubernetes` has them, and so has \
             `kubectl get -o json --show-managed-fields`"
                .into(),
        );
        return Ok(());
    }
    let window = window(turn);
    let mut acts: Vec<Act> = Vec::new();
    let paths: Vec<Pointer> = match turn.what {
        Turned::Modified => turn.changes.iter().map(|change| change.path.clone()).collect(),
        // Whoever wrote first made it.
        _ => Vec::new(),
    };
    for manager in &managers {
        let owned: Vec<String> =
            paths.iter().filter(|path| owns(manager.fields, path, &object)).map(ToString::to_string).collect();
        let in_window = manager.at.zip(window).is_some_and(|(at, window)| is_within(at, window));
        let (certainty, why) = match (owned.is_empty(), in_window) {
            (false, true) => (Certainty::Certain, format!("it owns {} and wrote in that time", owned.join(", "))),
            // What is written through a part with an API of its own, such as `scale`, may have no time.
            (false, false) if manager.at.is_none() => {
                (Certainty::Likely, format!("it owns {}; when it wrote is not recorded", owned.join(", ")))
            }
            (false, false) => (Certainty::Likely, format!("it owns {}", owned.join(", "))),
            // A field that is gone has no owner any more.
            (true, true) => (Certainty::Possible, "it wrote the object in that time".to_owned()),
            (true, false) => continue,
        };
        // It had written when it was observed; that is all that is known then.
        let at = manager.at.unwrap_or(turn.to);
        let part = manager.subresource.map(|part| format!(" of its {part}")).unwrap_or_default();
        acts.push(Act {
            at,
            who: format!("the field manager {}", manager.name),
            what: format!("{}{part}", manager.operation),
            how: how(manager.name).map(ToOwned::to_owned),
            from: None,
            certainty,
            why,
            error: None,
            event_id: None,
        });
    }
    if acts.is_empty() {
        turn.notes.push("none of its field managers owns what changed, or wrote in that time".into());
    }
    turn.acts = acts;
    Ok(())
}

fn is_within(at: Timestamp, window: Span) -> bool {
    window.from <= at && at < window.to
}

fn managers(object: &Value) -> Vec<Manager<'_>> {
    let entries = object.get("metadata").and_then(|metadata| metadata.get("managedFields"));
    let entries = entries.and_then(Value::as_array).unwrap_or_default();
    let text = |entry: &'_ Value, name: &str| -> Option<String> { entry.get(name)?.as_str().map(ToOwned::to_owned) };
    let one = |entry| {
        let entry: &Value = entry;
        Some(Manager {
            name: entry.get("manager")?.as_str()?,
            operation: entry.get("operation").and_then(Value::as_str).unwrap_or("Update"),
            subresource: entry.get("subresource").and_then(Value::as_str).filter(|part| !part.is_empty()),
            at: text(entry, "time").and_then(|time| time.parse().ok()),
            fields: entry.get("fieldsV1")?,
        })
    };
    entries.iter().filter_map(one).collect()
}

/// Whether a set of fields has the one at a path, or a whole that it is part of.
fn owns(fields: &Value, path: &Pointer, object: &Value) -> bool {
    let mut fields = fields;
    let mut at = Some(object);
    for token in path.segments() {
        let members = match fields.as_object() {
            Some(members) if !members.is_empty() => members,
            // A leaf: what is below was written as one.
            _ => return true,
        };
        let next = match at {
            Some(Value::Array(items)) => {
                let item = token.parse::<usize>().ok().and_then(|number| items.get(number));
                at = item;
                item.and_then(|item| members.iter().find(|(name, _)| is_item(name, item)).map(|(_, below)| below))
            }
            here => {
                at = here.and_then(|value| value.get(token));
                members.get(&format!("f:{token}"))
            }
        };
        match next {
            Some(below) => fields = below,
            None => return false,
        }
    }
    true
}

/// Whether `k:{"name":"web"}` or `v:"finalizer"` stands for an item of a list.
fn is_item(name: &str, item: &Value) -> bool {
    let Some((kind, text)) = name.split_once(':') else { return false };
    let Ok(said) = serde_json::from_str::<Value>(text) else { return false };
    match kind {
        "v" => said == *item,
        "k" => said
            .as_object()
            .is_some_and(|keys| !keys.is_empty() && keys.iter().all(|(name, value)| item.get(name) == Some(value))),
        _ => false,
    }
}

/// What is known by its name.
fn how(manager: &str) -> Option<&'static str> {
    const KNOWN: [(&str, &str); 12] = [
        ("kubectl-edit", "kubectl edit"),
        ("kubectl-client-side-apply", "kubectl apply"),
        ("kubectl-last-applied", "kubectl apply"),
        ("kubectl-patch", "kubectl patch"),
        ("kubectl-scale", "kubectl scale"),
        ("kubectl-rollout", "kubectl rollout"),
        ("kubectl-set", "kubectl set"),
        ("kubectl-create", "kubectl create"),
        ("kubectl", "kubectl"),
        ("helm", "Helm"),
        ("argocd", "Argo CD"),
        ("kustomize-controller", "Flux"),
    ];
    KNOWN.iter().find(|(start, _)| manager.to_ascii_lowercase().starts_with(start)).map(|(_, tool)| *tool)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_owned_by_whoever_wrote_it_or_the_whole_it_is_part_of() {
        let object: Value = serde_json::from_str(
            r#"{"spec":{"replicas":3,"template":{"containers":[{"name":"side","image":"s"},{"name":"web","image":"w"}]},
                "atomic":{"a":{"b":1}}},"metadata":{"finalizers":["x/y"],"labels":{"a/b":"c"}}}"#,
        )
        .unwrap();
        let fields: Value = serde_json::from_str(
            r#"{"f:spec":{"f:replicas":{},"f:template":{"f:containers":{"k:{\"name\":\"web\"}":{".":{},"f:image":{}}}},
                "f:atomic":{}},"f:metadata":{"f:finalizers":{"v:\"x/y\"":{}},"f:labels":{"f:a/b":{}}}}"#,
        )
        .unwrap();
        for (path, expected) in [
            ("/spec/replicas", true),
            ("/spec/template/containers/1/image", true),
            ("/spec/template/containers/0/image", false),
            ("/spec/template/containers/7/image", false),
            ("/spec/atomic/a/b", true),
            ("/spec/other", false),
            ("/metadata/finalizers/0", true),
            ("/metadata/labels/a~1b", true),
        ] {
            assert_eq!(owns(&fields, &path.parse().unwrap(), &object), expected, "{path}");
        }
    }
}
