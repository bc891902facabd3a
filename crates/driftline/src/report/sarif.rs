//! A report as SARIF 2.1.0: a result per change, so that each can be followed from run to run.

use driftline_core::severity::Severity;
use driftline_core::verdict::{DriftKind, Status};
use serde_json::{Map, Value as Json, json};
use sha2::{Digest, Sha256};

use super::telling::{Excuse, Line, State, Telling, Told};
use crate::output::visible;

/// How many places that were not checked are told of one by one.
const GAPS: usize = 500;

/// The rules: one for each kind of finding.
const RULES: [(&str, &str, &str, &str); 3] = [
    ("modified", "Modified", "A property differs from what is expected.", "warning"),
    ("deleted", "Deleted", "A resource that is expected is gone.", "error"),
    ("unknown", "Unknown", "A resource is there that is not expected.", "note"),
];
const NOT_CHECKED: &str = "not-checked";

/// The whole log.
pub(super) fn log(telling: &Telling<'_>) -> String {
    let mut results = Vec::new();
    for told in telling.findings.iter().filter(|told| told.is_finding()) {
        match told.changes.is_empty() {
            true => results.push(whole(told)),
            false => results.extend(told.changes.iter().map(|line| changed(told, line))),
        }
    }
    for (of, excuse) in &telling.excuses {
        results.push(suppressed(&telling.excused_of[*of], excuse));
    }
    let rules: Vec<Json> = RULES.iter().map(|(id, name, text, level)| descriptor(id, name, text, level)).collect();
    let text = "A resource could not be compared, because one side did not look.";
    let mut properties = json!({
        "against": telling.exact,
        "summary": {
            "drifted": telling.tally.drifted, "unknown": telling.tally.unknown,
            "notChecked": telling.tally.not_checked, "inSync": telling.tally.in_sync, "excused": telling.excused,
        },
        "severity": telling.severities.json(),
    });
    let unlisted = telling.excused.saturating_sub(telling.excuses.len());
    if unlisted > 0 {
        properties["excusedNotListed"] = unlisted.into();
    }
    let log = json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "driftline",
                "semanticVersion": env!("CARGO_PKG_VERSION"),
                "rules": rules,
                "notifications": [descriptor(NOT_CHECKED, "NotChecked", text, "note")],
            }},
            "invocations": [{
                "executionSuccessful": true,
                "endTimeUtc": telling.now.to_string(),
                "toolExecutionNotifications": notifications(telling),
            }],
            "automationDetails": {"id": format!("driftline/{}/", telling.title.to_lowercase())},
            "columnKind": "unicodeCodePoints",
            "results": results,
            "properties": properties,
        }],
    });
    format!("{log}\n")
}

fn descriptor(id: &str, name: &str, text: &str, level: &str) -> Json {
    json!({
        "id": id, "name": name, "shortDescription": {"text": text}, "defaultConfiguration": {"level": level},
    })
}

fn notifications(telling: &Telling<'_>) -> Vec<Json> {
    let gaps = telling.gaps();
    let one = |text: String, properties: Json| json!({"descriptor": {"id": NOT_CHECKED}, "level": "note", "message": {"text": text}, "properties": properties});
    let mut list: Vec<Json> = gaps
        .iter()
        .take(GAPS)
        .map(|gap| {
            let text = format!("{} in {} not checked: {}", gap.count(), visible(gap.place), visible(gap.reason));
            one(text, json!({"source": gap.source, "place": gap.place, "types": gap.types, "reason": gap.reason}))
        })
        .collect();
    if gaps.len() > GAPS {
        list.push(one(format!("and {} more places not checked", gaps.len() - GAPS), json!({})));
    }
    list
}

/// What is the same in every run: what it is of, never what it was or became.
fn fingerprint(told: &Told<'_>, path: &str) -> String {
    let mut hash = Sha256::new();
    for part in [told.source, told.kind, told.place, told.id, path] {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    hash.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

fn level(severity: Option<Severity>) -> &'static str {
    match severity {
        Some(Severity::Critical | Severity::High) => "error",
        Some(Severity::Medium) => "warning",
        Some(Severity::Low | Severity::Info) | None => "note",
    }
}

fn rank(severity: Severity) -> f64 {
    match severity {
        Severity::Critical => 100.0,
        Severity::High => 80.0,
        Severity::Medium => 50.0,
        Severity::Low => 20.0,
        Severity::Info => 5.0,
    }
}

/// What every result has.
fn result(rule: usize, told: &Told<'_>, path: &str, text: &str) -> Map<String, Json> {
    let name = format!("{}/{}/{}/{}{path}", told.source, told.place, told.kind, told.id);
    let mut location = json!({"name": told.id, "fullyQualifiedName": name, "kind": "resource"});
    if !path.is_empty() {
        location["name"] = path.into();
        location["kind"] = "property".into();
    }
    let mut result = Map::new();
    result.insert("ruleId".into(), RULES[rule].0.into());
    result.insert("ruleIndex".into(), rule.into());
    result.insert("message".into(), json!({"text": text}));
    result.insert("locations".into(), json!([{"logicalLocations": [location]}]));
    result.insert("partialFingerprints".into(), json!({"driftlineFinding/v1": fingerprint(told, path)}));
    result
}

fn properties(told: &Told<'_>, severity: Option<Severity>, why: &str) -> Json {
    let mut properties = json!({
        "status": told.status, "canonicalId": told.id, "resourceType": told.kind, "place": told.place,
        "source": told.source,
    });
    if let Some(drift) = told.drift {
        properties["kind"] = drift.name().into();
    }
    if let Some(severity) = severity {
        properties["severity"] = severity.name().into();
        if !why.is_empty() {
            properties["severityReason"] = why.into();
        }
    }
    if let Some(since) = told.since {
        properties["firstSeen"] = since.to_string().into();
    }
    properties
}

fn graded(mut result: Map<String, Json>, told: &Told<'_>, severity: Option<Severity>, why: &str) -> Map<String, Json> {
    result.insert("level".into(), level(severity).into());
    if let Some(severity) = severity {
        result.insert("rank".into(), rank(severity).into());
    }
    result.insert("properties".into(), properties(told, severity, why));
    result
}

fn with_state(mut result: Map<String, Json>, state: Option<State>) -> Json {
    let word = state.map(|state| match state {
        State::New => "new",
        State::Unchanged => "unchanged",
        State::Updated => "updated",
    });
    if let Some(word) = word {
        result.insert("baselineState".into(), word.into());
    }
    result.into()
}

/// A resource that is gone, or there unexpectedly, or of which no more is known than that it differs.
fn whole(told: &Told<'_>) -> Json {
    let (rule, text) = match (told.status, told.drift) {
        (_, Some(DriftKind::Deleted)) => (1, "is expected, and gone"),
        (Status::Unknown, _) => (2, "is there, and not expected"),
        _ => (0, "differs"),
    };
    let text = format!("{} {} {text} ({})", visible(told.kind), visible(told.id), visible(told.source));
    with_state(graded(result(rule, told, "", &text), told, told.severity, told.why), told.state)
}

fn changed(told: &Told<'_>, line: &Line<'_>) -> Json {
    let (path, before, after) = (visible(&line.path), visible(&line.before), visible(&line.after));
    let text = format!("{} {}: {path}: {before} -> {after}", visible(told.kind), visible(told.id));
    let mut result = graded(result(0, told, &line.path, &text), told, line.severity, line.why);
    if let Some(properties) = result.get_mut("properties") {
        properties["path"] = line.path.as_str().into();
        properties["baseline"] = line.before.as_str().into();
        properties["current"] = line.after.as_str().into();
    }
    with_state(result, line.state)
}

/// A difference that a rule excuses: it is told, and it does not count.
fn suppressed(told: &Told<'_>, excuse: &Excuse) -> Json {
    let (rule, what) = match excuse.path.is_empty() {
        true => (2, String::new()),
        false => (0, format!(": {}: {} -> {}", visible(&excuse.path), visible(&excuse.before), visible(&excuse.after))),
    };
    let text = format!("{} {}{what}", visible(told.kind), visible(told.id));
    let mut result = result(rule, told, &excuse.path, &text);
    result.insert("level".into(), "note".into());
    let why = format!("{} ({}): {}", excuse.rule, excuse.origin, excuse.reason);
    // Accepted, because a rule is a decision that somebody wrote down.
    result.insert(
        "suppressions".into(),
        json!([{"kind": "external", "status": "accepted", "justification": visible(&why)}]),
    );
    let mut properties = properties(told, None, "");
    properties["rule"] = excuse.rule.as_str().into();
    properties["origin"] = excuse.origin.as_str().into();
    result.insert("properties".into(), properties);
    result.into()
}
