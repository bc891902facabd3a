//! The JSON of the views that is not simply what was told.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use crate::context::Asked;
use crate::drift_query::{DriftQuery, Facets, Sheet};
use crate::model::{
    Baseline, Beginning, Between, Finding, Gap, Moment, Rule, Snapshot, Source, SourceVersions, Summary, TypeVelocity,
};

/// How things stand.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Overview<'a> {
    revision: &'a str,
    computed_at: Timestamp,
    baseline: Option<&'a Baseline>,
    summary: &'a Summary,
    sources: &'a [Source],
    gaps: &'a [Gap],
    velocity: &'a [TypeVelocity],
    course: &'a [Moment],
    beginning: Option<&'a Beginning>,
}

impl<'a> Overview<'a> {
    pub(crate) fn of(snapshot: &'a Snapshot) -> Self {
        Self {
            revision: &snapshot.revision,
            computed_at: snapshot.computed_at,
            baseline: snapshot.baseline.as_ref(),
            summary: &snapshot.summary,
            sources: &snapshot.sources,
            gaps: &snapshot.gaps,
            velocity: &snapshot.velocity,
            course: &snapshot.course,
            beginning: snapshot.beginning.as_ref(),
        }
    }
}

/// A part of the findings.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DriftAnswer<'a> {
    revision: &'a str,
    computed_at: Timestamp,
    baseline: Option<&'a Baseline>,
    summary: &'a Summary,
    /// How many match.
    total: usize,
    /// The place of the first among them, from 1; 0 if there is none.
    first: usize,
    findings: Vec<&'a Finding>,
    /// The address of the part before, and of the one after.
    previous: Option<String>,
    next: Option<String>,
    /// Findings that are counted and not listed at all, because there are too many.
    left_out: u64,
    facets: &'a Facets,
}

impl<'a> DriftAnswer<'a> {
    pub(crate) fn of(snapshot: &'a Snapshot, sheet: &'a Sheet<'a>) -> Self {
        let address = |query: &DriftQuery| format!("/api/v1/drift?{}", query.to_query_string());
        Self {
            revision: &snapshot.revision,
            computed_at: snapshot.computed_at,
            baseline: snapshot.baseline.as_ref(),
            summary: &snapshot.summary,
            total: sheet.total,
            first: sheet.first,
            findings: sheet.rows.clone(),
            previous: sheet.previous.as_ref().map(address),
            next: sheet.next.as_ref().map(address),
            left_out: snapshot.left_out,
            facets: &sheet.facets,
        }
    }
}

/// Two points in time, held against each other, and a part of what differs.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CompareAnswer<'a> {
    from: &'a str,
    to: &'a str,
    summary: &'a Summary,
    total: usize,
    first: usize,
    findings: Vec<&'a Finding>,
    previous: Option<String>,
    next: Option<String>,
    left_out: u64,
}

impl<'a> CompareAnswer<'a> {
    pub(crate) fn of(asked: &Asked, between: &'a Between, sheet: &Sheet<'a>) -> Self {
        let address = |query: &DriftQuery| {
            let mut out = form_urlencoded::Serializer::new(String::from("/api/v1/compare?"));
            for (name, value) in [("from", &asked.from), ("to", &asked.to)] {
                out.append_pair(name, value.as_deref().unwrap_or_default());
            }
            format!("{}&{}", out.finish(), query.to_query_string())
        };
        Self {
            from: &between.from,
            to: &between.to,
            summary: &between.summary,
            total: sheet.total,
            first: sheet.first,
            findings: sheet.rows.clone(),
            previous: sheet.previous.as_ref().map(address),
            next: sheet.next.as_ref().map(address),
            left_out: between.left_out,
        }
    }
}

/// The versions of every source, newest first.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct VersionsAnswer {
    pub sources: Vec<SourceVersions>,
}

/// What excuses what.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct RulesAnswer<'a> {
    pub revision: &'a str,
    pub rules: &'a [Rule],
}
