//! What is told: owned, complete, in a fixed order, and without secrets. Whoever fills these in has replaced every
//! sealed value by the text `(sealed)`. The schema of the API is made from these types, so that it cannot say otherwise.

use std::collections::BTreeMap;

use driftline_core::{DriftKind, Severity, Status};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::words;

/// Everything that is true of one revision of the store.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Snapshot {
    pub revision: String,
    pub computed_at: Timestamp,
    /// What everything is held against; without one nothing can be judged, and the page says how to set it.
    pub baseline: Option<Baseline>,
    pub summary: Summary,
    pub sources: Vec<Source>,
    /// Where somebody looked and did not see everything.
    pub gaps: Vec<Gap>,
    pub velocity: Vec<TypeVelocity>,
    /// How much had drifted at each moment at which something was observed, oldest first; at most some dozens.
    pub course: Vec<Moment>,
    /// What is not in sync, and what is only by a rule; by type, place, id and source.
    pub findings: Vec<Finding>,
    /// Findings that are counted and not listed, because there are too many.
    pub left_out: u64,
    pub rules: Vec<Rule>,
    /// What to do first, where there is nothing to judge yet.
    pub beginning: Option<Beginning>,
    /// Not everything was computed in the time there was: it is worth asking again.
    #[serde(skip)]
    pub unfinished: bool,
}

/// There is nothing to judge yet, and what to do about it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Beginning {
    pub headline: String,
    pub text: String,
    pub steps: Vec<Step>,
    /// Only the baseline is missing: the sources are there to be looked at.
    pub only_baseline: bool,
}

/// One thing to do, and the command that does it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Step {
    pub say: String,
    pub command: String,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Baseline {
    pub name: String,
    pub set_at: Timestamp,
    pub accepted: usize,
}

#[derive(Clone, Copy, Debug, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    pub total: u64,
    pub in_sync: u64,
    pub drifted: u64,
    pub unknown: u64,
    pub not_checked: u64,
    pub resolved: u64,
    /// Differences that rules excuse.
    pub excused: u64,
    pub critical: u64,
    pub high: u64,
    pub medium: u64,
    pub low: u64,
    pub info: u64,
    pub complete_extents: u64,
    pub partial_extents: u64,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Source {
    pub name: String,
    pub version: u64,
    pub baseline_version: Option<u64>,
    pub taken_at: Timestamp,
    pub stale: bool,
    pub resources: u64,
    pub in_sync: u64,
    pub drifted: u64,
    pub unknown: u64,
    pub not_checked: u64,
    pub complete_extents: u64,
    pub partial_extents: u64,
    pub problems: Vec<String>,
}

/// A place where something was not checked, and why.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Gap {
    pub source: String,
    pub place: String,
    pub reason: String,
    pub types: BTreeMap<String, u64>,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TypeVelocity {
    pub resource_type: String,
    pub drifted: u64,
    /// How many were compared.
    pub checked: u64,
    pub drift_rate: f64,
    pub unknown: u64,
    pub not_checked: u64,
    pub last24h: u64,
    pub last7d: u64,
    pub last30d: u64,
    /// Why its rate says more about how it is observed than about the infrastructure, if it does.
    pub noisy: Option<String>,
}

#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Moment {
    pub at: Timestamp,
    pub total: u64,
    pub drifted: u64,
    pub unknown: u64,
    pub not_checked: u64,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    /// Names this finding in links and in what is accepted: the same as long as source, type, place and id are.
    pub id: String,
    /// Names it as it is now: what is accepted by it is what was seen.
    pub ticket: String,
    pub canonical_id: String,
    pub resource_type: String,
    pub place: String,
    pub source: String,
    #[schemars(schema_with = "words::status")]
    pub status: Status,
    #[schemars(schema_with = "words::maybe_kind")]
    pub kind: Option<DriftKind>,
    #[schemars(schema_with = "words::maybe_severity")]
    pub severity: Option<Severity>,
    pub severity_reason: Option<String>,
    pub first_seen: Option<Timestamp>,
    /// The first of them; the page of the resource has all.
    pub changes: Vec<Change>,
    pub change_count: usize,
    pub excused_count: usize,
    pub reason: Option<String>,
}

impl Finding {
    /// Whether it can be accepted: there is something that differs from what is expected.
    pub fn is_acceptable(&self) -> bool {
        matches!(self.status, Status::Drifted | Status::Unknown)
    }
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Change {
    pub path: String,
    /// `add`, `remove` or `replace`.
    pub op: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub baseline: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub current: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "words::severity")]
    pub severity: Option<Severity>,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Excused {
    pub change: Change,
    /// What kind of rule, e.g. `volatile`.
    pub rule: String,
    pub origin: String,
    pub reason: String,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Rule {
    pub name: String,
    pub kind: String,
    /// What it is about, in words: type, place, id, source, path.
    pub subject: String,
    pub origin: String,
    pub reason: String,
    pub owner: Option<String>,
    pub expires: Option<String>,
    pub expired: bool,
    /// How many differences it excuses now.
    pub uses: u64,
    /// Whether the user wrote it, so that using nothing is worth a word.
    pub own: bool,
}

/// One resource, as everybody who saw it tells.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Resource {
    pub canonical_id: String,
    pub views: Vec<View>,
    /// Who claims to manage it, and who merely saw it.
    pub claims: Vec<Claim>,
    /// The life of it, newest first.
    pub life: Vec<Event>,
    pub life_left_out: u64,
    pub neighbours: Vec<Neighbour>,
    pub neighbours_left_out: u64,
    /// Why its neighbours are not known, or not all.
    pub neighbours_note: Option<String>,
    /// Who changed it, as far as anybody recorded.
    pub blame: Option<Blame>,
}

/// What one source says of a resource.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct View {
    pub finding_id: String,
    /// Names it as it is now: what is accepted by it is what was seen.
    pub ticket: String,
    pub resource_type: String,
    pub place: String,
    pub source: String,
    #[schemars(schema_with = "words::status")]
    pub status: Status,
    #[schemars(schema_with = "words::maybe_kind")]
    pub kind: Option<DriftKind>,
    #[schemars(schema_with = "words::maybe_severity")]
    pub severity: Option<Severity>,
    pub severity_reason: Option<String>,
    pub baseline_version: Option<u64>,
    pub version: u64,
    pub taken_at: Timestamp,
    pub first_seen: Option<Timestamp>,
    /// How listing its extent went.
    pub extent: String,
    pub reason: Option<String>,
    pub changes: Vec<Change>,
    pub excused: Vec<Excused>,
    /// The whole of it on both sides, where it is there.
    pub expected: Option<Value>,
    pub live: Option<Value>,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Claim {
    pub source: String,
    /// `manages` or `saw`.
    pub role: &'static str,
    /// As what, e.g. a Terraform address or a stack's logical id.
    pub as_what: Option<String>,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Event {
    pub at: Timestamp,
    pub source: String,
    pub version: u64,
    pub what: String,
    pub changes: Vec<Change>,
    pub excused_count: usize,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Neighbour {
    pub canonical_id: String,
    pub resource_type: Option<String>,
    /// `to` if this resource points at it, `from` if it points here.
    pub direction: &'static str,
    pub relation: String,
    /// `added`, `removed`, `changed` or `same`.
    pub state: &'static str,
}

/// Who changed something, and how sure that is.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Blame {
    /// Between which observations it happened.
    pub from: Option<Timestamp>,
    pub to: Option<Timestamp>,
    pub acts: Vec<Act>,
    /// What could not be looked into, and why.
    pub note: Option<String>,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Act {
    pub at: Timestamp,
    pub who: String,
    pub what: String,
    /// How it was done: console, a tool's user agent, a field manager.
    pub how: Option<String>,
    /// From which address.
    pub address: Option<String>,
    /// `certain`, `likely`, `possible`, or `refused` if it was tried and changed nothing.
    pub certainty: String,
    /// Why it is taken for the cause.
    pub why: String,
    pub event_id: Option<String>,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Topology {
    pub from: String,
    pub to: String,
    pub nodes: Vec<Node>,
    pub edges: Vec<Edge>,
    /// The moments between which one can choose, oldest first.
    pub moments: Vec<Timestamp>,
    /// How many nodes and edges there are beyond those listed.
    pub left_out: u64,
    /// The graph as one SVG element without style and script.
    #[serde(skip)]
    pub svg: Option<String>,
    /// Why there is no picture, or what is not in it.
    pub note: Option<String>,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Node {
    pub canonical_id: String,
    pub resource_type: String,
    pub state: &'static str,
    pub in_degree: u64,
    pub out_degree: u64,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Edge {
    pub from: String,
    pub to: String,
    pub relation: String,
    pub state: &'static str,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Posture {
    pub against: String,
    pub rules: Vec<PostureRule>,
    pub violations: Vec<Violation>,
    /// Violations that are counted and not listed, because there are too many.
    pub left_out: u64,
    /// How many were not compliant at each moment, oldest first.
    pub course: Vec<PostureMoment>,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PostureRule {
    pub rule: String,
    pub compliant: u64,
    pub non_compliant: u64,
    pub newly_non_compliant: u64,
    pub resolved: u64,
    pub not_checked: u64,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Violation {
    pub rule: String,
    pub canonical_id: String,
    pub source: String,
    /// `new`, `lasting`, `resolved` or `not_checked`.
    pub turn: String,
    pub since: Option<Timestamp>,
}

#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PostureMoment {
    pub at: Timestamp,
    pub non_compliant: u64,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SourceVersions {
    pub source: String,
    pub versions: Vec<Version>,
    /// Older versions that are not listed.
    pub left_out: u64,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Version {
    pub number: u64,
    pub taken_at: Timestamp,
    pub resources: u64,
    pub added: u64,
    pub changed: u64,
    pub removed: u64,
    pub complete_extents: u64,
    pub partial_extents: u64,
    /// Names of baselines that pin it.
    pub pinned_by: Vec<String>,
}

/// Two points in time, held against each other.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Between {
    pub from: String,
    pub to: String,
    pub summary: Summary,
    pub findings: Vec<Finding>,
    /// Findings that are counted and not listed, because there are too many.
    pub left_out: u64,
}

/// What is to be accepted, by whom and why.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Acceptance {
    /// Tickets of findings.
    #[schemars(length(min = 1, max = 500))]
    pub findings: Vec<String>,
    /// Why; the next person needs it.
    #[schemars(length(min = 1, max = 2000))]
    pub reason: String,
    /// Who accepts it.
    #[schemars(length(min = 1, max = 200))]
    pub by: String,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Accepted {
    pub accepted: usize,
    pub revision: String,
}
