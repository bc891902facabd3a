//! *Resource*: one thing, as everybody who saw it tells.

use driftline_core::Status;
use maud::{Markup, html};
use serde_json::Value;

use super::diff::side_by_side;
use super::findings::{accept_fields, cannot_accept, change};
use super::frame::document;
use super::words::{
    breakable, can_be_accepted, class, count, level, more, number, prose, resource_link, sentence, shown, shown_long,
    status, status_word, table, when,
};
use crate::context::Context;
use crate::model::{Blame, Change, Claim, Excused, Resource, View};

/// How many rows each part has.
const ROWS: usize = 100;
/// How many changes an event of its life lists.
const EVENT_CHANGES: usize = 5;
/// A value longer than this is folded.
const FOLD: usize = 160;

pub(super) fn resource(context: &Context<'_>, resource: &Resource) -> String {
    let headline = headline(resource);
    document(
        context,
        &headline,
        &html! {
            h1 { (headline) }
            p.lead.id { (breakable(&resource.canonical_id)) }
            @for view in &resource.views { (seen(context, view)) }
            (accept(context, resource))
            @if let Some(blame) = &resource.blame { (changed_by(context, blame)) }
            div.columns {
                section aria-labelledby="claims" { h2 #claims { "Who claims it" } (claims(&resource.claims)) }
                section aria-labelledby="neighbours" {
                    h2 #neighbours { "Neighbours" }
                    (neighbours(resource))
                }
            }
            section aria-labelledby="life" { h2 #life { "Its life" } (life(context, resource)) }
        },
    )
}

/// What is wrong with it, by whoever says the worst of it.
fn headline(resource: &Resource) -> String {
    let rank = |view: &&View| {
        let status = match view.status {
            Status::Drifted => 3,
            Status::Unknown => 2,
            Status::NotChecked => 1,
            Status::InSync => 0,
        };
        (status, view.severity, view.changes.len())
    };
    let Some(worst) = resource.views.iter().max_by_key(rank) else {
        return "Not seen by any source now".to_owned();
    };
    let word = status_word(worst.status, worst.kind);
    let mut line = word[..1].to_uppercase() + &word[1..];
    if let Some(severity) = worst.severity {
        line += &format!(", {severity}");
    }
    if !worst.changes.is_empty() {
        line += &format!(": {}", count(worst.changes.len(), "change"));
    }
    line + ". " + &shown(&worst.resource_type)
}

fn seen(context: &Context<'_>, view: &View) -> Markup {
    let id = format!("by-{}", view.finding_id);
    html! {
        section.view.(class(view.status)) aria-labelledby=(id) {
            h2 id=(id) {
                (status(view.status, view.kind)) " " (level(view.severity)) " as " (shown(&view.source)) " sees it"
            }
            @if let Some(reason) = &view.reason { p.reason { (shown_long(reason)) } }
            @if let Some(reason) = &view.severity_reason { p.why { (shown_long(reason)) } }
            (changes(view))
            (excused(&view.excused))
            (whole(view))
            dl.facts {
                (fact("Type", &html! { (shown(&view.resource_type)) }))
                (fact("Place", &html! { (shown(&view.place)) }))
                (fact("Observed", &html! { (when(view.taken_at, context.now)) ", v" (view.version) }))
                (fact("Held against", &html! {
                    @match view.baseline_version {
                        Some(version) => { "v" (version) }
                        None => { "nothing: the baseline does not have this source" }
                    }
                }))
                @if let Some(at) = view.first_seen { (fact("Since", &when(at, context.now))) }
                (fact("Listing", &html! { (shown(&view.extent)) }))
            }
        }
    }
}

fn fact(name: &str, value: &Markup) -> Markup {
    html! { div { dt { (name) } dd { (value) } } }
}

fn changes(view: &View) -> Markup {
    html! {
        @if !view.changes.is_empty() {
            div.sides {
                (table("What changed", &["path", "expected", "now", "severity"], &html! {
                    @for change in view.changes.iter().take(ROWS) { (change_row(change)) }
                }))
            }
            (more(view.changes.len(), ROWS, "changes; the JSON of this page has all"))
        } @else if view.status == Status::InSync && view.excused.is_empty() {
            p { "Exactly as expected." }
        }
    }
}

fn change_row(change: &Change) -> Markup {
    let sealed = change.baseline.is_some() && change.baseline == change.current;
    html! {
        tr {
            th scope="row" {
                code { @if change.path.is_empty() { "(whole resource)" } @else { (breakable(&change.path)) } }
            }
            td data-label="expected" { del { (value(change.baseline.as_ref())) } }
            td data-label="now" { ins { (value(change.current.as_ref())) } @if sealed { " (another one)" } }
            td data-label="severity" { (level(change.severity)) }
        }
    }
}

/// A value; a long one is folded.
fn value(value: Option<&Value>) -> Markup {
    let Some(value) = value else {
        return html! { span.absent { "absent" } };
    };
    let line = value.to_string();
    if line.chars().count() <= FOLD {
        return html! { (shown_long(&line)) };
    }
    let pretty = serde_json::to_string_pretty(value).unwrap_or(line.clone());
    html! {
        details {
            summary { (shown_long(&line.chars().take(FOLD).collect::<String>())) "…" }
            pre tabindex="0" { @for part in pretty.lines().take(ROWS * 2) { (shown_long(part)) "\n" } }
            (more(pretty.lines().count(), ROWS * 2, "lines"))
        }
    }
}

fn excused(excused: &[Excused]) -> Markup {
    html! {
        @if !excused.is_empty() {
            details {
                summary { (count(excused.len(), "difference")) " excused by rules" }
                (table("Excused differences", &["difference", "rule", "origin", "reason"], &html! {
                    @for one in excused.iter().take(ROWS) {
                        tr {
                            th scope="row" { (change(&one.change)) }
                            td { (shown(&one.rule)) }
                            td { (shown(&one.origin)) }
                            td { (shown(&one.reason)) }
                        }
                    }
                }))
                (more(excused.len(), ROWS, "excused differences"))
            }
        }
    }
}

fn whole(view: &View) -> Markup {
    html! {
        @if view.expected.is_some() || view.live.is_some() {
            details {
                summary { "The whole of it, side by side" }
                (side_by_side(view))
            }
        }
    }
}

fn accept(context: &Context<'_>, resource: &Resource) -> Markup {
    let open: Vec<&View> = resource.views.iter().filter(|view| can_be_accepted(view.status)).collect();
    html! {
        @if !open.is_empty() && context.may_write {
            form.select method="post" action="/accept" {
                @if let [only] = open.as_slice() {
                    input type="hidden" name="finding" value=(only.ticket);
                }
                fieldset.accept {
                    legend { "Accept this as expected" }
                    @if open.len() > 1 {
                        div.which {
                            @for view in &open {
                                label {
                                    input type="checkbox" name="finding" value=(view.ticket) checked;
                                    " as " (shown(&view.source)) " sees it"
                                }
                            }
                        }
                    }
                    (accept_fields(context, "", context.who.unwrap_or_default(), context.url))
                    button type="submit" { "Accept" }
                }
            }
        } @else if !open.is_empty() { (cannot_accept(context)) }
    }
}

fn changed_by(context: &Context<'_>, blame: &Blame) -> Markup {
    html! {
        section aria-labelledby="blame" {
            h2 #blame { "Who changed it" }
            @match (blame.from, blame.to) {
                (Some(from), Some(to)) => {
                    p { "Between " (when(from, context.now)) " and " (when(to, context.now)) "." }
                }
                (None, Some(to)) => { p { "Before " (when(to, context.now)) "." } }
                (Some(from), None) => { p { "After " (when(from, context.now)) "." } }
                (None, None) => {}
            }
            @if blame.acts.is_empty() { p { "Nobody is on record." } }
            @else {
                (table("What is on record of that time", &["when", "who", "what", "how", "how sure", "event"], &html! {
                    @for act in blame.acts.iter().take(ROWS) {
                        tr {
                            td.when { (when(act.at, context.now)) }
                            th scope="row" { (shown(&act.who)) }
                            td { (shown(&act.what)) }
                            td {
                                (shown(act.how.as_deref().unwrap_or_default()))
                                @if let Some(address) = &act.address { " from " (shown(address)) }
                            }
                            td { (shown(&act.certainty)) ": " (shown(&act.why)) }
                            td { (shown(act.event_id.as_deref().unwrap_or_default())) }
                        }
                    }
                }))
                (more(blame.acts.len(), ROWS, "acts"))
            }
            @if let Some(note) = &blame.note { p.why { (prose(&sentence(note))) } }
        }
    }
}

fn claims(claims: &[Claim]) -> Markup {
    let managed = claims.iter().any(|claim| claim.role == "manages");
    html! {
        @if !managed { p { "Nobody claims to manage it." } }
        ul {
            @for claim in claims.iter().take(ROWS) {
                li {
                    strong { (shown(&claim.source)) }
                    @if claim.role == "manages" { " manages it" } @else { " saw it" }
                    @if let Some(what) = &claim.as_what { " as " code { (shown(what)) } }
                }
            }
        }
        (more(claims.len(), ROWS, "claims"))
    }
}

fn neighbours(resource: &Resource) -> Markup {
    let neighbours = resource.neighbours.as_slice();
    html! {
        @if let Some(note) = &resource.neighbours_note { p.why { (prose(&sentence(note))) } }
        @if neighbours.is_empty() {
            @if resource.neighbours_note.is_none() {
                p { "No source knows of anything that leads to it or that it leads to." }
            }
        } @else {
            ul.neighbours {
                @for one in neighbours.iter().take(ROWS) {
                    li {
                        @if one.direction == "to" { "leads to " } @else { "comes from " }
                        (resource_link(&one.canonical_id, None))
                        span.why {
                            " (" (shown(&one.relation))
                            @if let Some(kind) = &one.resource_type { ", " (shown(kind)) }
                            ")"
                        }
                        @if one.state != "same" { " " span.flag.(one.state) { (one.state) } }
                    }
                }
            }
            (more(neighbours.len() + left_out(resource.neighbours_left_out), ROWS, "neighbours"))
        }
    }
}

/// As a number of rows.
fn left_out(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

fn life(context: &Context<'_>, resource: &Resource) -> Markup {
    let events = resource.life.as_slice();
    html! {
        @if events.is_empty() { p { "No version has it." } }
        @else {
            ol.life {
                @for event in events.iter().take(ROWS) {
                    li {
                        p.line {
                            (when(event.at, context.now)) ": " strong { (shown(&event.what)) }
                            " (" (shown(&event.source)) " v" (event.version) ")"
                        }
                        @if !event.changes.is_empty() {
                            ul.changes {
                                @for one in event.changes.iter().take(EVENT_CHANGES) { li { (change(one)) } }
                                @if event.changes.len() > EVENT_CHANGES {
                                    li.more { "and " (count(event.changes.len() - EVENT_CHANGES, "more change")) }
                                }
                            }
                        }
                        @if event.excused_count > 0 { p.why { (number(event.excused_count)) " more excused by rules" } }
                    }
                }
            }
            (more(events.len() + left_out(resource.life_left_out), ROWS, "events"))
        }
    }
}
