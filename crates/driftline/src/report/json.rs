//! The drift report as JSON: one value, or one a line.

use std::collections::BTreeMap;
use std::io::{self, Write};

use driftline_core::compare::{Change, Excused};
use driftline_core::rule::RuleBook;
use driftline_core::{Severity, Value, difference};
use driftline_sources::place::account_and_region;
use driftline_store::detect::SourceReport;
use jiff::Timestamp;
use serde::Serialize;

use super::{Changes, Entry, Expected, Report};
use crate::observe::Extents;
use crate::severity::{FIRST, Grade, NEXT, plain_changes};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct JsonBaseline<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    set_at: Option<Timestamp>,
    sources: BTreeMap<String, JsonPin>,
}

#[derive(Serialize)]
struct JsonPin {
    version: u64,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct JsonSummary {
    total: u64,
    in_sync: u64,
    drifted: u64,
    unknown: u64,
    not_checked: u64,
    resolved: usize,
    excused: usize,
    drift_rate: f64,
    severity: serde_json::Map<String, serde_json::Value>,
}

#[derive(Serialize)]
pub(crate) struct JsonChange<'a> {
    path: String,
    op: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    baseline: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    current: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    severity: Option<Severity>,
}

#[derive(Serialize)]
pub(crate) struct JsonExcused<'a> {
    path: String,
    rule: &'static str,
    origin: String,
    reason: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    baseline: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    current: Option<&'a Value>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct JsonSource {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    baseline_version: Option<u64>,
    version: u64,
    taken_at: Timestamp,
    extents: Extents,
}

#[derive(Serialize)]
struct JsonRules<'a> {
    unused: &'a [&'a str],
    expired: &'a [&'a str],
}

pub(crate) fn json_change(change: &Change) -> JsonChange<'_> {
    JsonChange {
        path: change.path.to_string(),
        op: difference::operation(change),
        baseline: change.expected.as_ref(),
        current: change.actual.as_ref(),
        severity: None,
    }
}

pub(crate) fn json_excused<'a>(excused: &'a Excused, book: &'a RuleBook) -> JsonExcused<'a> {
    let rule = &book.rules()[excused.rule];
    JsonExcused {
        path: excused.change.path.to_string(),
        rule: rule.kind.name(),
        origin: rule.origin.to_string(),
        reason: &rule.reason,
        baseline: excused.change.expected.as_ref(),
        current: excused.change.actual.as_ref(),
    }
}

/// Members of a JSON object, one after the other.
struct Object<'o> {
    out: &'o mut Vec<u8>,
    first: bool,
}

impl<'o> Object<'o> {
    fn begin(out: &'o mut Vec<u8>) -> Self {
        out.push(b'{');
        Self { out, first: true }
    }

    fn name(&mut self, name: &str) {
        if !std::mem::take(&mut self.first) {
            self.out.push(b',');
        }
        self.out.push(b'"');
        self.out.extend_from_slice(name.as_bytes());
        self.out.extend_from_slice(b"\":");
    }

    fn member(&mut self, name: &str, value: &(impl Serialize + ?Sized)) -> io::Result<()> {
        self.name(name);
        Ok(serde_json::to_writer(&mut *self.out, value)?)
    }

    fn optional(&mut self, name: &str, value: Option<&(impl Serialize + ?Sized)>) -> io::Result<()> {
        value.map_or(Ok(()), |value| self.member(name, value))
    }

    fn end(self) {
        self.out.push(b'}');
    }
}

/// How much of a report is put together before it is handed on.
const CHUNK: usize = 64 * 1024;

/// Written member by member, because changes that nobody had to read are copied as they are.
fn write_resource(entry: &Entry<'_>, book: &RuleBook, out: &mut Vec<u8>) -> io::Result<()> {
    let (account, region) = account_and_region(entry.key.place.as_str());
    let mut object = Object::begin(out);
    object.member("canonicalId", &entry.key.id)?;
    object.member("resourceType", &entry.key.kind)?;
    object.member("place", entry.key.place.as_str())?;
    object.optional("account", account)?;
    object.optional("region", region)?;
    object.member("source", entry.source)?;
    object.member("status", &entry.status)?;
    object.optional("kind", entry.kind.as_ref())?;
    let grades = entry.rating.as_ref().map(|rating| rating.changes.as_slice()).unwrap_or_default();
    object.optional("severity", entry.severity().as_ref())?;
    object.optional(
        "severityReason",
        entry.rating.as_ref().map(|rating| rating.worst.reason).filter(|reason| !reason.is_empty()),
    )?;
    object.optional("firstSeen", entry.since.as_ref())?;
    match entry.changes {
        Changes::Unread(text) => {
            object.name("changes");
            write_graded(text, grades, object.out);
        }
        Changes::Read(list) => {
            let graded = |(at, change)| JsonChange {
                severity: grades.get(at).map(|grade: &Grade<'_>| grade.level),
                ..json_change(change)
            };
            object.member("changes", &list.iter().enumerate().map(graded).collect::<Vec<_>>())?;
        }
    }
    let excused: Vec<JsonExcused<'_>> = entry.excused.iter().map(|excused| json_excused(excused, book)).collect();
    object.member("excused", &excused)?;
    object.optional("reason", entry.reason)?;
    object.end();
    Ok(())
}

/// The list with how much each of its members matters; everything else stays as it is, unread.
fn write_graded(text: &str, grades: &[Grade<'_>], out: &mut Vec<u8>) {
    if let Some(parts) = plain_changes(text).filter(|parts| parts.clone().count() == grades.len()) {
        let mut start = FIRST;
        for (part, grade) in parts.zip(grades) {
            // Only the last one still has its end.
            let body = part.strip_suffix("}]").unwrap_or(part);
            for piece in [start, body, ",\"severity\":\"", grade.level.name(), "\""] {
                out.extend_from_slice(piece.as_bytes());
            }
            start = NEXT;
        }
        out.extend_from_slice(b"}]");
        return;
    }
    let mut grades = grades.iter();
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'{' | b'[' if !in_string => depth += 1,
            b'}' | b']' if !in_string => {
                depth -= 1;
                // The end of a member of the outermost list.
                if depth == 1
                    && let Some(grade) = grades.next()
                {
                    out.extend_from_slice(b",\"severity\":\"");
                    out.extend_from_slice(grade.level.name().as_bytes());
                    out.push(b'"');
                }
            }
            _ => {}
        }
        out.push(byte);
    }
}

pub(super) fn write(report: &Report<'_>, out: &mut dyn Write) -> io::Result<()> {
    let (name, set_at) = match &report.expected {
        Expected::Baseline { name, set_at } => (name.as_str(), Some(*set_at)),
        Expected::Versions { text } => (text.as_str(), None),
    };
    let pins = report
        .sources
        .iter()
        .filter_map(|source| Some((source.stream.to_string(), JsonPin { version: source.expected? })));
    let tally = report.tally;
    let summary = JsonSummary {
        total: tally.total(),
        in_sync: tally.in_sync,
        drifted: tally.drifted,
        unknown: tally.unknown,
        not_checked: tally.not_checked,
        resolved: report.resolved().count(),
        excused: report.excused,
        drift_rate: driftline_core::velocity::Rate::new(tally.drifted, tally.checked()).drift_rate,
        severity: report.severities.json(),
    };
    let source = |source: &SourceReport| JsonSource {
        name: source.stream.to_string(),
        baseline_version: source.expected,
        version: source.version,
        taken_at: source.taken_at,
        extents: Extents { complete: source.complete_extents, partial: source.partial_extents },
    };
    let mut buffer = Vec::new();
    let mut whole = Object::begin(&mut buffer);
    whole.member("schema", "driftline.drift/v1")?;
    whole.member("computedAt", &report.now)?;
    whole.member("baseline", &JsonBaseline { name, set_at, sources: pins.collect() })?;
    whole.optional("where", report.filter.as_ref())?;
    whole.member("summary", &summary)?;
    whole.name("resources");
    whole.out.push(b'[');
    for (at, entry) in report.entries.iter().enumerate() {
        if at > 0 {
            whole.out.push(b',');
        }
        write_resource(entry, report.book, whole.out)?;
        if whole.out.len() > CHUNK {
            out.write_all(whole.out)?;
            whole.out.clear();
        }
    }
    whole.out.push(b']');
    whole.member("sources", &report.sources.iter().map(source).collect::<Vec<_>>())?;
    whole.member("rules", &JsonRules { unused: &report.unused_rules, expired: &report.expired_rules })?;
    whole.end();
    out.write_all(&buffer)
}

pub(super) fn write_lines(report: &Report<'_>, out: &mut dyn Write) -> io::Result<()> {
    let mut line = Vec::new();
    for entry in &report.entries {
        line.clear();
        write_resource(entry, report.book, &mut line)?;
        line.push(b'\n');
        out.write_all(&line)?;
    }
    Ok(())
}
