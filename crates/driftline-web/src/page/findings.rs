//! Findings as rows: on the pages *Drift* and *Compare*, and the newest of them on the overview.

use jiff::Timestamp;
use maud::{Markup, html};

use super::words::{
    breakable, can_be_accepted, class, compact, count, encoded, level, number, resource_link, shown, since, status,
};
use crate::context::Context;
use crate::drift_query::{DriftQuery, Sheet, Sort};
use crate::model::{Change, Finding};

/// How many changes of one resource are in its row; its own page has all.
const CHANGES: usize = 3;

const COLUMNS: [(Sort, &str); 7] = [
    (Sort::Severity, "Severity"),
    (Sort::Status, "Status"),
    (Sort::Id, "Resource and what changed"),
    (Sort::Type, "Type"),
    (Sort::Place, "Place"),
    (Sort::Source, "Source"),
    (Sort::Since, "Since"),
];

/// The rows of one page, with heads that sort. `link` makes the address of the same view with another query.
pub(super) fn table(
    context: &Context<'_>,
    caption: &str,
    query: &DriftQuery,
    sheet: &Sheet<'_>,
    selectable: bool,
    link: &dyn Fn(&DriftQuery) -> String,
) -> Markup {
    html! {
        table.findings {
            caption.unseen { (caption) }
            thead {
                tr {
                    @if selectable {
                        th.pick scope="col" {
                            span.unseen { "Select" }
                            input #all type="checkbox" aria-label="Select every row of this page" hidden;
                        }
                    }
                    @for (sort, name) in COLUMNS {
                        th scope="col" aria-sort=[direction(query, sort)] {
                            a href=(link(&query.sorted_by(sort))) rel="nofollow" {
                                (name)
                                @match direction(query, sort) {
                                    Some("ascending") => { span aria-hidden="true" { " ▲" } }
                                    Some(_) => { span aria-hidden="true" { " ▼" } }
                                    None => {}
                                }
                            }
                        }
                    }
                }
            }
            tbody { @for finding in &sheet.rows { (row(context.now, finding, selectable)) } }
        }
    }
}

fn direction(query: &DriftQuery, sort: Sort) -> Option<&'static str> {
    (query.sort == sort).then_some(if query.descending { "descending" } else { "ascending" })
}

fn row(now: Timestamp, finding: &Finding, selectable: bool) -> Markup {
    html! {
        tr.(class(finding.status)) {
            @if selectable {
                td.pick {
                    @if can_be_accepted(finding.status) {
                        input type="checkbox" name="finding" value=(finding.ticket)
                            aria-label={ "Select " (shown(&finding.canonical_id)) };
                    }
                }
            }
            td.severity data-label="Severity" { (level(finding.severity)) }
            td.word data-label="Status" { (status(finding.status, finding.kind)) }
            th.what scope="row" { (resource_link(&finding.canonical_id, Some(&finding.id))) (told(finding)) }
            td data-label="Type" { (breakable(&finding.resource_type)) }
            td data-label="Place" { (breakable(&finding.place)) }
            td data-label="Source" { (breakable(&finding.source)) }
            td.when data-label="Since" { @if let Some(at) = finding.first_seen { (since(at, now)) } }
        }
    }
}

/// What is different about it, or why nobody knows.
fn told(finding: &Finding) -> Markup {
    let listed = finding.changes.len().min(CHANGES);
    html! {
        @if !finding.changes.is_empty() {
            ul.changes {
                @for one in &finding.changes[..listed] { li { (change(one)) } }
                @if finding.change_count > listed {
                    li.more { "and " (count(finding.change_count - listed, "more change")) }
                }
            }
        }
        @if let Some(reason) = &finding.reason { p.why { (shown(reason)) } }
        @else if let Some(reason) = &finding.severity_reason { p.why { (shown(reason)) } }
        @if finding.excused_count > 0 { p.why { (count(finding.excused_count, "difference")) " excused by rules" } }
    }
}

/// One change on one line: where, what was expected, what is there.
pub(super) fn change(change: &Change) -> Markup {
    let path = if change.path.is_empty() { "(whole resource)".to_owned() } else { shown(&change.path) };
    html! {
        code { (path) } ": "
        @match (&change.baseline, &change.current) {
            (Some(before), Some(after)) if before == after => { (alike(before)) }
            (before, after) => { (side("del", before.as_ref())) " → " (side("ins", after.as_ref())) }
        }
    }
}

/// Two values that are shown alike and differ: sealed, or too long to be shown here.
pub(super) fn alike(value: &serde_json::Value) -> String {
    match value.as_str() {
        Some("(sealed)") => "a sealed value changed".to_owned(),
        Some(text) => format!("changed {}", shown(text)),
        None => format!("changed {}", compact(value)),
    }
}

fn side(element: &str, value: Option<&serde_json::Value>) -> Markup {
    html! {
        @match (element, value) {
            (_, None) => { span.absent { "absent" } }
            ("del", Some(value)) => { del { (compact(value)) } }
            (_, Some(value)) => { ins { (compact(value)) } }
        }
    }
}

/// `Showing 51–100 of 123 findings`, and the ways to the neighbours.
pub(super) fn pager(sheet: &Sheet<'_>, link: &dyn Fn(&DriftQuery) -> String) -> Markup {
    html! {
        nav.pager aria-label="Pages" {
            p { (position(sheet)) }
            @if let Some(previous) = &sheet.previous { a rel="prev" href=(link(previous)) { "← Previous" } }
            @if let Some(next) = &sheet.next { a rel="next" href=(link(next)) { "Next →" } }
        }
    }
}

pub(super) fn position(sheet: &Sheet<'_>) -> String {
    if sheet.rows.len() == sheet.total {
        return count(sheet.total, "finding");
    }
    let last = sheet.first + sheet.rows.len().saturating_sub(1);
    format!("{}–{} of {}", number(sheet.first), number(last), count(sheet.total, "finding"))
}

/// The newest few: what a page on a wall is looked at for.
pub(super) fn newest(now: Timestamp, findings: &[Finding], most: usize) -> Markup {
    let mut open: Vec<&Finding> = findings.iter().filter(|finding| can_be_accepted(finding.status)).collect();
    open.sort_by_key(|finding| {
        (std::cmp::Reverse(finding.first_seen), std::cmp::Reverse(finding.severity), &finding.canonical_id)
    });
    html! {
        @if open.is_empty() {
            p { "Nothing drifted, and nothing is there that was not expected." }
        } @else {
            ol.newest {
                @for finding in open.iter().take(most) {
                    li.(class(finding.status)) {
                        p.line {
                            (level(finding.severity)) " " (status(finding.status, finding.kind)) " "
                            (resource_link(&finding.canonical_id, Some(&finding.id)))
                        }
                        p.why {
                            (shown(&finding.resource_type)) ", " (shown(&finding.source))
                            @if let Some(at) = finding.first_seen { ", since " (since(at, now)) }
                        }
                        @if let Some(first) = finding.changes.first() {
                            p.line {
                                (change(first))
                                @if finding.change_count > 1 {
                                    span.more { ", and " (count(finding.change_count - 1, "more change")) }
                                }
                            }
                        }
                    }
                }
            }
            @if open.len() > most { p { a href="/drift" { "All " (count(open.len(), "finding")) } } }
        }
    }
}

/// The form that takes findings as expected. Its fields may stand around a table of them.
pub(super) fn accept_fields(context: &Context<'_>, reason: &str, by: &str, back: &str) -> Markup {
    html! {
        input type="hidden" name="csrf" value=(context.csrf);
        input type="hidden" name="back" value=(back);
        label.reason {
            span { "Reason" }
            input name="reason" required maxlength="1000" autocomplete="off" value=(reason)
                placeholder="Why is this expected from now on?";
        }
        label.by { span { "Your name" } input name="by" required maxlength="100" autocomplete="username" value=(by); }
    }
}

/// Said where the form would be.
pub(super) fn cannot_accept(context: &Context<'_>) -> Markup {
    html! {
        @if let Some(why) = context.why_not_write { p.why { "Nothing can be accepted here: " (shown(why)) } }
    }
}

/// The same view of two points in time with another query.
pub(super) fn compare_link(from: &str, to: &str, query: &DriftQuery) -> String {
    let query = query.to_query_string();
    let and = if query.is_empty() { "" } else { "&" };
    format!("/compare?from={}&to={}{and}{query}", encoded(from), encoded(to))
}
