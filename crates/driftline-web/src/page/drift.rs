//! *Drift* and *Compare*: findings that can be filtered, sorted, leafed through and, where that is allowed, accepted.

use driftline_core::{Severity, Status};
use maud::{Markup, html};

use super::entry::begin_box;
use super::findings::{accept_fields, cannot_accept, compare_link, pager, table};
use super::frame::document;
use super::overview::{headline, standing};
use super::words::{can_be_accepted, class, count, counts, number, prose, shown, status_word};
use crate::context::{Asked, Context};
use crate::drift_query::{DriftQuery, Facets, Sheet};
use crate::model::{Between, Snapshot};

/// How many choices a field offers. What is not offered can still be typed.
const CHOICES: usize = 100;

pub(super) fn drift(context: &Context<'_>, snapshot: &Snapshot, query: &DriftQuery, sheet: &Sheet<'_>) -> String {
    let headline = headline(snapshot);
    let link = |query: &DriftQuery| address("/drift", query);
    let selectable = context.may_write && sheet.rows.iter().any(|finding| can_be_accepted(finding.status));
    document(
        context,
        &headline,
        &html! {
            h1 { (prose(&headline)) }
            (standing(context, snapshot))
            (begin_box(snapshot.beginning.as_ref()))
            (quick(query, &sheet.facets, &link))
            (filters("/drift", &[], query, &sheet.facets))
            (left_out(snapshot.left_out))
            @if sheet.rows.is_empty() && snapshot.baseline.is_none() {
                p.empty { "Without a baseline there are no findings." }
            }
            @else if sheet.rows.is_empty() { (nothing(query, "/drift")) }
            @else if selectable {
                form.select method="post" action="/accept" {
                    (rows(context, query, sheet, true, &link))
                    fieldset.accept {
                        legend { "Accept what is selected" }
                        (accept_fields(context, "", context.who.unwrap_or_default(), context.url))
                        button type="submit" { "Accept" span #chosen {} }
                        p.why {
                            "What is accepted is expected from now on, as it is now. "
                            code { "driftline baseline show" } " lists it with who, when and why."
                        }
                    }
                }
            }
            @else { (rows(context, query, sheet, false, &link)) (cannot_accept(context)) }
        },
    )
}

pub(super) fn compare(
    context: &Context<'_>,
    asked: &Asked,
    between: &Between,
    query: &DriftQuery,
    sheet: &Sheet<'_>,
) -> String {
    let summary = &between.summary;
    let changed = counts(&[(summary.drifted, "drifted"), (summary.unknown, "unknown")]);
    let headline = match (changed.is_empty(), summary.not_checked) {
        (true, 0) => "No change between the two".to_owned(),
        (true, rest) => {
            format!("No change between the two, but {} of {} not checked", number(rest), number(summary.total))
        }
        (false, 0) => format!("{changed} between the two"),
        (false, rest) => {
            format!("{changed} between the two; {} of {} not checked", number(rest), number(summary.total))
        }
    };
    let (from, to) = (asked.from.as_deref().unwrap_or_default(), asked.to.as_deref().unwrap_or_default());
    let link = |query: &DriftQuery| compare_link(from, to, query);
    document(
        context,
        &headline,
        &html! {
            h1 { (headline) }
            p.lead {
                "From " strong { (shown(&between.from)) } " to " strong { (shown(&between.to)) } ". "
                "Deleted is what the first has and the second does not; unknown is what only the second has. "
                a href="/versions" { "Other points in time" }
            }
            (quick(query, &sheet.facets, &link))
            (filters("/compare", &[("from", from), ("to", to)], query, &sheet.facets))
            (left_out(between.left_out))
            @if sheet.rows.is_empty() { (nothing(query, &link(&DriftQuery::default()))) }
            @else { (rows(context, query, sheet, false, &link)) }
        },
    )
}

fn left_out(many: u64) -> Markup {
    html! {
        @if many > 0 {
            p.warning {
                (count(many, "finding")) " more than a page can keep: counted above, and not listed here. "
                code { "driftline drift --where" } " narrows the question."
            }
        }
    }
}

fn address(path: &str, query: &DriftQuery) -> String {
    let query = query.to_query_string();
    if query.is_empty() { path.to_owned() } else { format!("{path}?{query}") }
}

fn rows(
    context: &Context<'_>,
    query: &DriftQuery,
    sheet: &Sheet<'_>,
    selectable: bool,
    link: &dyn Fn(&DriftQuery) -> String,
) -> Markup {
    html! {
        div.wide role="region" aria-label="Findings" tabindex="0" {
            (table(context, "Findings", query, sheet, selectable, link))
        }
        (pager(sheet, link))
    }
}

/// One click for what is asked most: a status or a severity, with how many there are.
fn quick(query: &DriftQuery, facets: &Facets, link: &dyn Fn(&DriftQuery) -> String) -> Markup {
    let fresh = |change: &dyn Fn(&mut DriftQuery)| {
        let mut other = query.from_the_start();
        change(&mut other);
        link(&other)
    };
    html! {
        nav.quick aria-label="Findings by status and severity" {
            ul {
                @for (status, many) in &facets.statuses {
                    @let on = query.status == [*status];
                    li { a.(class(*status)) aria-current=[on.then_some("true")]
                        href=(fresh(&|other| other.status = if on { Vec::new() } else { vec![*status] })) {
                        (status_name(*status)) " " strong { (number(*many)) }
                    } }
                }
                @for (severity, many) in &facets.severities {
                    @let on = query.severity == [*severity];
                    li { a.(severity.name()) aria-current=[on.then_some("true")]
                        href=(fresh(&|other| other.severity = if on { Vec::new() } else { vec![*severity] })) {
                        (severity.name()) " " strong { (number(*many)) }
                    } }
                }
            }
        }
    }
}

fn status_name(status: Status) -> &'static str {
    if status == Status::InSync { "excused or resolved" } else { status_word(status, None) }
}

fn filters(action: &str, kept: &[(&str, &str)], query: &DriftQuery, facets: &Facets) -> Markup {
    let narrowed = !query.source.is_empty()
        || !query.kind.is_empty()
        || query.place.is_some()
        || query.status.len() > 1
        || query.severity.len() > 1;
    let defaults = DriftQuery::default();
    html! {
        form.filters method="get" action=(action) role="search" aria-label="Filter the findings" {
            @for (name, value) in kept { input type="hidden" name=(name) value=(value); }
            @if query.sort != defaults.sort { input type="hidden" name="sort" value=(query.sort.name()); }
            @if query.descending != query.sort.usually_descends() {
                input type="hidden" name="dir" value=(if query.descending { "desc" } else { "asc" });
            }
            @if query.limit != defaults.limit { input type="hidden" name="limit" value=(query.limit); }
            div.search {
                label for="q" { "Search" }
                input #q type="search" name="q" placeholder="id, type, place, path, reason"
                    value=(query.text.as_deref().unwrap_or_default());
                button type="submit" { "Filter" }
                @if *query != defaults { a href=(clear(action, kept)) { "Clear" } }
            }
            details open[narrowed] {
                summary { "More filters" }
                div.fields {
                    (choice("source", "Source", &query.source, &facets.sources))
                    (choice("type", "Type", &query.kind, &facets.kinds))
                    (choice("place", "Place", query.place.as_slice(), &facets.places))
                    fieldset {
                        legend { "Status" }
                        @for status in [Status::Drifted, Status::Unknown, Status::NotChecked, Status::InSync] {
                            (tick("status", status.name(), status_name(status), query.status.contains(&status)))
                        }
                    }
                    fieldset {
                        legend { "Severity" }
                        @for severity in Severity::ALL {
                            (tick("severity", severity.name(), severity.name(), query.severity.contains(&severity)))
                        }
                    }
                }
            }
        }
    }
}

fn tick(name: &str, value: &str, word: &str, is_set: bool) -> Markup {
    html! { label { input type="checkbox" name=(name) value=(value) checked[is_set]; " " (word) } }
}

fn clear(action: &str, kept: &[(&str, &str)]) -> String {
    match kept {
        [(_, from), (_, to)] => compare_link(from, to, &DriftQuery::default()),
        _ => action.to_owned(),
    }
}

/// A field with what there is to choose from; where that is too much to list, it can be typed.
fn choice(name: &str, label: &str, chosen: &[String], facet: &[(String, usize)]) -> Markup {
    let id = format!("filter-{name}");
    let missing = |one: &&String| !facet.iter().any(|(value, _)| value == *one);
    html! {
        div {
            label for=(id) { (label) }
            @if facet.len() > CHOICES && chosen.len() <= 1 {
                @let typed = chosen.first().map(String::as_str).unwrap_or_default();
                input id=(id) name=(name) list={ (id) "-list" } value=(typed);
                datalist id={ (id) "-list" } {
                    @for (value, _) in facet.iter().take(CHOICES) { option value=(value) {} }
                }
            } @else {
                select id=(id) name=(name) {
                    option value="" { "any" }
                    @for value in chosen.iter().filter(missing) { option value=(value) selected { (shown(value)) } }
                    @for (value, many) in facet.iter().take(CHOICES) {
                        option value=(value) selected[chosen.contains(value)] {
                            (shown(value)) " (" (number(*many)) ")"
                        }
                    }
                }
            }
        }
    }
}

fn nothing(query: &DriftQuery, all: &str) -> Markup {
    html! {
        @if query.is_filtered() { p.empty { "No finding matches. " a href=(all) { "Show all findings" } } }
        @else { p.empty { "There is nothing to list: everything that was looked at is as expected." } }
    }
}
