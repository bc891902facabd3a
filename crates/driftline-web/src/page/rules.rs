//! *Rules*: what excuses what, and how often.

use maud::{Markup, html};

use super::entry::begin_box;
use super::frame::document;
use super::words::{count, counts, more, number, shown, table};
use crate::context::Context;
use crate::model::{Rule, Snapshot};

/// How many rows each table has.
const ROWS: usize = 120;

pub(super) fn rules(context: &Context<'_>, snapshot: &Snapshot) -> String {
    let own: Vec<&Rule> = snapshot.rules.iter().filter(|rule| rule.own).collect();
    let (used, idle): (Vec<&Rule>, Vec<&Rule>) =
        snapshot.rules.iter().filter(|rule| !rule.own).partition(|rule| rule.uses > 0);
    let expired = own.iter().filter(|rule| rule.expired).count() as u64;
    let unused = own.iter().filter(|rule| rule.uses == 0 && !rule.expired).count() as u64;
    let mut headline = format!("{} excused by rules", count(snapshot.summary.excused, "difference"));
    let wrong = counts(&[(expired, "expired"), (unused, "unused")]);
    if !wrong.is_empty() {
        headline += &format!("; of your own rules {wrong}");
    }
    document(
        context,
        &headline,
        &html! {
            h1 { (headline) }
            p.lead {
                "What a rule excuses is kept and can be seen on the page of each resource. "
                "An expired rule excuses nothing any more."
            }
            (begin_box(snapshot.beginning.as_ref()))
            section aria-labelledby="own" {
                h2 #own { "Your own rules" }
                @if own.is_empty() { p { "There are none. " code { "driftline.toml" } " is where they are written." } }
                @else { (listed("Your own rules", own)) }
            }
            section aria-labelledby="used" {
                h2 #used { "Built in, and excusing something now" }
                @if used.is_empty() { p { "None of them does." } } @else { (listed("Built-in rules in use", used)) }
            }
            @if !idle.is_empty() {
                details {
                    summary { (count(idle.len(), "built-in rule"))
                        @if idle.len() == 1 { " that excuses nothing now" } @else { " that excuse nothing now" } }
                    (listed("Built-in rules without use", idle))
                }
            }
        },
    )
}

fn listed(caption: &str, mut rules: Vec<&Rule>) -> Markup {
    rules.sort_by_key(|rule| (!rule.expired, std::cmp::Reverse(rule.uses)));
    html! {
        (table(caption, &["rule", "#excuses", "about", "reason", "origin", "until"], &html! {
            @for rule in rules.iter().take(ROWS) { (row(rule)) }
        }))
        (more(rules.len(), ROWS, "rules"))
    }
}

fn row(rule: &Rule) -> Markup {
    html! {
        tr {
            th scope="row" {
                (shown(&rule.name))
                @if rule.kind != rule.name { " " span.why { (shown(&rule.kind)) } }
                @if rule.expired { " " span.flag.removed { "expired" } }
                @else if rule.own && rule.uses == 0 { " " span.flag.stale { "unused" } }
            }
            td.n { (number(rule.uses)) }
            td { (shown(&rule.subject)) }
            td { (shown(&rule.reason)) }
            td { (shown(&rule.origin)) @if let Some(owner) = &rule.owner { ", " (shown(owner)) } }
            td { (shown(rule.expires.as_deref().unwrap_or("—"))) }
        }
    }
}
