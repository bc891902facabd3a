//! Which findings are asked for, in which order, and which part of them: read from an address, and written into one.
//!
//! The same question always has the same address, so that a link can be kept. A cursor names the row next to it and
//! its place: where the row is still there the next part begins exactly after it, whatever came or went before it.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use driftline_core::{DriftKind, Severity, Status};
use schemars::JsonSchema;
use serde::Serialize;

use crate::context::Problem;
use crate::model::Finding;
use crate::words::STATUSES;

/// How many rows a part has unless asked otherwise, and at most.
pub const USUAL_LIMIT: usize = 40;
pub const MOST_LIMIT: usize = 500;
/// The longest text that is looked for, and the most values of one filter.
const LONGEST: usize = 2_048;
const MOST_VALUES: usize = 100;
/// How many values of a kind are offered to choose from.
const MOST_FACETS: usize = 200;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sort {
    #[default]
    Severity,
    Id,
    Type,
    Place,
    Source,
    Status,
    Since,
}

impl Sort {
    pub const ALL: [Sort; 7] =
        [Sort::Severity, Sort::Id, Sort::Type, Sort::Place, Sort::Source, Sort::Status, Sort::Since];

    pub fn name(self) -> &'static str {
        match self {
            Sort::Severity => "severity",
            Sort::Id => "id",
            Sort::Type => "type",
            Sort::Place => "place",
            Sort::Source => "source",
            Sort::Status => "status",
            Sort::Since => "since",
        }
    }

    /// The worst and the newest come first unless asked otherwise.
    pub fn usually_descends(self) -> bool {
        matches!(self, Sort::Severity | Sort::Since)
    }
}

/// Where a part begins or ends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Cursor {
    #[default]
    Start,
    /// After the finding with this id, which was the `place`-th row (from 1).
    After { id: String, place: usize },
    /// Before the finding with this id, with `place` rows before it.
    Before { id: String, place: usize },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DriftQuery {
    pub source: Vec<String>,
    pub kind: Vec<String>,
    /// This place, and everything in it.
    pub place: Option<String>,
    pub status: Vec<Status>,
    pub severity: Vec<Severity>,
    /// Part of an id, a type, a place, a source, a reason or the path of a change; in any case of letters.
    pub text: Option<String>,
    pub sort: Sort,
    pub descending: bool,
    pub cursor: Cursor,
    pub limit: usize,
}

impl Default for DriftQuery {
    fn default() -> Self {
        Self {
            source: Vec::new(),
            kind: Vec::new(),
            place: None,
            status: Vec::new(),
            severity: Vec::new(),
            text: None,
            sort: Sort::default(),
            descending: true,
            cursor: Cursor::Start,
            limit: USUAL_LIMIT,
        }
    }
}

/// A part of the findings that were asked for.
#[derive(Clone, Debug)]
pub struct Sheet<'a> {
    pub rows: Vec<&'a Finding>,
    /// How many match.
    pub total: usize,
    /// The place of the first row among them, from 1; 0 if there is none.
    pub first: usize,
    pub previous: Option<DriftQuery>,
    pub next: Option<DriftQuery>,
    pub facets: Arc<Facets>,
}

/// What there is to choose from, with how many findings have it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Facets {
    pub sources: Vec<(String, usize)>,
    pub kinds: Vec<(String, usize)>,
    pub places: Vec<(String, usize)>,
    #[schemars(with = "Vec<(String, usize)>")]
    pub statuses: Vec<(Status, usize)>,
    #[schemars(with = "Vec<(String, usize)>")]
    pub severities: Vec<(Severity, usize)>,
    /// Values beyond the most frequent ones, which are not offered.
    pub left_out: usize,
}

impl Facets {
    pub fn of(findings: &[Finding]) -> Self {
        let mut facets = Self::default();
        let mut count = |of: fn(&Finding) -> &str| {
            let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
            for finding in findings {
                *counts.entry(of(finding)).or_default() += 1;
            }
            let mut counts: Vec<(String, usize)> =
                counts.into_iter().map(|(name, count)| (name.to_owned(), count)).collect();
            counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
            facets.left_out += counts.len().saturating_sub(MOST_FACETS);
            counts.truncate(MOST_FACETS);
            counts.sort();
            counts
        };
        let (sources, kinds, places) = (count(|it| &it.source), count(|it| &it.resource_type), count(|it| &it.place));
        let of_status = |status: &Status| findings.iter().filter(|finding| finding.status == *status).count();
        let of_severity = |level: &Severity| findings.iter().filter(|finding| finding.severity == Some(*level)).count();
        let statuses = STATUSES.iter().map(|status| (*status, of_status(status))).filter(|(_, count)| *count > 0);
        let severities = Severity::ALL.iter().map(|level| (*level, of_severity(level))).filter(|(_, count)| *count > 0);
        Self { sources, kinds, places, statuses: statuses.collect(), severities: severities.collect(), ..facets }
    }
}

impl DriftQuery {
    /// Reads the query of an address. What is empty was not asked for; what is not known is refused.
    pub fn parse(raw: &str) -> Result<Self, Problem> {
        Self::parse_except(raw, &[])
    }

    /// The same, leaving some names to others.
    pub fn parse_except(raw: &str, others: &[&str]) -> Result<Self, Problem> {
        let mut query = Self::default();
        let mut direction = None;
        let mut seen = Vec::new();
        for (name, value) in form_urlencoded::parse(raw.as_bytes()) {
            if others.contains(&&*name) || value.is_empty() {
                continue;
            }
            if value.len() > LONGEST {
                return Err(Problem::bad_question(format!("`{name}` is longer than {LONGEST} bytes")));
            }
            let many = matches!(&*name, "source" | "type" | "status" | "severity");
            if !many && seen.contains(&name) {
                return Err(Problem::bad_question(format!("`{name}` is given twice")));
            }
            match &*name {
                "source" => push(&mut query.source, value.into_owned()),
                "type" => push(&mut query.kind, value.into_owned()),
                "place" => query.place = Some(value.into_owned()),
                "status" => push(&mut query.status, word(&name, &value, &STATUSES, Status::name)?),
                "severity" => push(&mut query.severity, word(&name, &value, &Severity::ALL, Severity::name)?),
                "q" => query.text = Some(value.into_owned()),
                "sort" => query.sort = word(&name, &value, &Sort::ALL, Sort::name)?,
                "dir" => direction = Some(word(&name, &value, &[true, false], direction_name)?),
                "after" | "before" if query.cursor != Cursor::Start => {
                    return Err(Problem::bad_question("`after` and `before` exclude each other"));
                }
                "after" => query.cursor = cursor(&value, |id, place| Cursor::After { id, place })?,
                "before" => query.cursor = cursor(&value, |id, place| Cursor::Before { id, place })?,
                "limit" => {
                    let limit = value.parse().ok().filter(|limit| (1..=MOST_LIMIT).contains(limit));
                    query.limit = limit
                        .ok_or_else(|| Problem::bad_question(format!("`limit` is a number from 1 to {MOST_LIMIT}")))?;
                }
                _ => {
                    return Err(Problem::bad_question(format!("there is no parameter `{}`", crate::text::visible(&name)))
                        .hint("the parameters are source, type, place, status, severity, q, sort, dir, after, before and limit"));
                }
            }
            seen.push(name);
        }
        if query.source.len().max(query.kind.len()) > MOST_VALUES {
            return Err(Problem::bad_question(format!("more than {MOST_VALUES} values of one filter")));
        }
        query.descending = direction.unwrap_or(query.sort.usually_descends());
        Ok(query)
    }

    /// The query of the address that asks this; what is usual is left out, and without a `?`.
    pub fn to_query_string(&self) -> String {
        let mut out = form_urlencoded::Serializer::new(String::new());
        for source in &self.source {
            out.append_pair("source", source);
        }
        for kind in &self.kind {
            out.append_pair("type", kind);
        }
        if let Some(place) = &self.place {
            out.append_pair("place", place);
        }
        for status in &self.status {
            out.append_pair("status", status.name());
        }
        for severity in &self.severity {
            out.append_pair("severity", severity.name());
        }
        if let Some(text) = &self.text {
            out.append_pair("q", text);
        }
        if self.sort != Sort::default() {
            out.append_pair("sort", self.sort.name());
        }
        if self.descending != self.sort.usually_descends() {
            out.append_pair("dir", direction_name(self.descending));
        }
        match &self.cursor {
            Cursor::Start => {}
            Cursor::After { id, place } => drop(out.append_pair("after", &format!("{id}.{place}"))),
            Cursor::Before { id, place } => drop(out.append_pair("before", &format!("{id}.{place}"))),
        }
        if self.limit != USUAL_LIMIT {
            out.append_pair("limit", &self.limit.to_string());
        }
        out.finish()
    }

    /// The same findings from the first on, in another order; asked twice, the other way round.
    #[must_use]
    pub fn sorted_by(&self, sort: Sort) -> Self {
        let descending = if sort == self.sort { !self.descending } else { sort.usually_descends() };
        Self { sort, descending, ..self.from_the_start() }
    }

    #[must_use]
    pub fn from_the_start(&self) -> Self {
        Self { cursor: Cursor::Start, ..self.clone() }
    }

    /// Whether anything is filtered at all.
    pub fn is_filtered(&self) -> bool {
        let none = Self { sort: self.sort, descending: self.descending, limit: self.limit, ..Self::default() };
        self.from_the_start() != none
    }

    pub fn matches(&self, finding: &Finding) -> bool {
        self.matches_with(finding, self.text.as_deref().map(str::to_lowercase).as_deref())
    }

    fn matches_with(&self, finding: &Finding, text: Option<&str>) -> bool {
        let listed = match self.status.as_slice() {
            [] => finding.status != Status::InSync || finding.kind == Some(DriftKind::Resolved),
            wanted => wanted.contains(&finding.status),
        };
        listed
            && (self.source.is_empty() || self.source.contains(&finding.source))
            && (self.kind.is_empty() || self.kind.contains(&finding.resource_type))
            && self.place.as_deref().is_none_or(|place| is_in(&finding.place, place))
            && (self.severity.is_empty() || finding.severity.is_some_and(|level| self.severity.contains(&level)))
            && text.is_none_or(|text| mentions(finding, text))
    }

    /// The part of the findings that is asked for.
    pub fn apply<'a>(&self, findings: &'a [Finding], facets: Arc<Facets>) -> Sheet<'a> {
        let text = self.text.as_deref().map(str::to_lowercase);
        let mut all: Vec<&Finding> =
            findings.iter().filter(|finding| self.matches_with(finding, text.as_deref())).collect();
        // Findings come in the order of their keys, and a stable sort keeps it where they are alike.
        all.sort_by(|a, b| self.compare(a, b));
        let total = all.len();
        let position = |id: &str| all.iter().position(|finding| finding.id == id);
        let (mut start, mut end) = match &self.cursor {
            Cursor::Start => (0, self.limit),
            Cursor::After { id, place } => {
                let start = position(id).map_or(*place, |at| at + 1);
                (start, start.saturating_add(self.limit))
            }
            Cursor::Before { id, place } => match position(id).unwrap_or(*place).min(total) {
                // Nothing is before it any more: the first rows there are.
                0 => (0, self.limit),
                end => (end.saturating_sub(self.limit), end),
            },
        };
        if start >= total {
            // What followed is gone: the last rows there are.
            start = total.saturating_sub(self.limit);
            end = total;
        }
        end = end.min(total);
        let rows: Vec<&Finding> = all[start..end].to_vec();
        let at = |cursor: Cursor| Self { cursor, ..self.clone() };
        let previous = rows.first().filter(|_| start > 0).map(|first| match start == self.limit {
            true => at(Cursor::Start),
            false => at(Cursor::Before { id: first.id.clone(), place: start }),
        });
        let next = rows.last().filter(|_| end < total);
        let next = next.map(|last| at(Cursor::After { id: last.id.clone(), place: end }));
        Sheet { first: if rows.is_empty() { 0 } else { start + 1 }, rows, total, previous, next, facets }
    }

    fn compare(&self, a: &Finding, b: &Finding) -> Ordering {
        let directed = |ordering: Ordering| if self.descending { ordering.reverse() } else { ordering };
        match self.sort {
            Sort::Severity => some_first(a.severity, b.severity, directed),
            Sort::Since => some_first(a.first_seen, b.first_seen, directed),
            Sort::Id => directed(a.canonical_id.cmp(&b.canonical_id)),
            Sort::Type => directed(a.resource_type.cmp(&b.resource_type)),
            Sort::Place => directed(a.place.cmp(&b.place)),
            Sort::Source => directed(a.source.cmp(&b.source)),
            Sort::Status => directed(rank(a.status).cmp(&rank(b.status))),
        }
    }
}

/// What has no such value comes last, either way round.
fn some_first<T: Ord>(a: Option<T>, b: Option<T>, directed: impl Fn(Ordering) -> Ordering) -> Ordering {
    match (a, b) {
        (Some(a), Some(b)) => directed(a.cmp(&b)),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => Ordering::Equal,
    }
}

fn rank(status: Status) -> usize {
    STATUSES.iter().position(|one| *one == status).unwrap_or(STATUSES.len())
}

fn is_in(place: &str, outer: &str) -> bool {
    let outer = outer.trim_end_matches('/');
    place.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn mentions(finding: &Finding, text: &str) -> bool {
    let has = |of: &str| of.to_lowercase().contains(text);
    has(&finding.canonical_id)
        || has(&finding.resource_type)
        || has(&finding.place)
        || has(&finding.source)
        || finding.reason.as_deref().is_some_and(has)
        || finding.changes.iter().any(|change| has(&change.path))
}

fn push<T: PartialEq>(to: &mut Vec<T>, value: T) {
    if !to.contains(&value) {
        to.push(value);
    }
}

fn direction_name(descending: bool) -> &'static str {
    if descending { "desc" } else { "asc" }
}

fn word<T: Copy>(name: &str, value: &str, known: &[T], of: impl Fn(T) -> &'static str) -> Result<T, Problem> {
    known.iter().copied().find(|one| of(*one) == value).ok_or_else(|| {
        let words: Vec<&str> = known.iter().map(|one| of(*one)).collect();
        Problem::bad_question(format!("`{name}` is one of {}", words.join(", ")))
    })
}

fn cursor(value: &str, make: impl Fn(String, usize) -> Cursor) -> Result<Cursor, Problem> {
    let parsed = value.rsplit_once('.').and_then(|(id, place)| {
        let is_id = !id.is_empty() && id.len() <= 64 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
        Some((is_id.then(|| id.to_owned())?, place.parse().ok()?))
    });
    let (id, place) = parsed.ok_or_else(|| {
        Problem::bad_question("the cursor cannot be read").hint("take it from `next` or `previous` of an answer")
    })?;
    Ok(make(id, place))
}

#[cfg(test)]
#[path = "drift_query_tests.rs"]
mod tests;
