//! *Posture*: what compliance rules say, and what became of that.

use maud::{Markup, html};

use super::chart::{Band, course};
use super::frame::document;
use super::words::{counts, more, number, resource_link, shown, stamp, table, when};
use crate::context::Context;
use crate::model::{Posture, PostureRule, Violation};

/// How many rows each table has.
const ROWS: usize = 80;

const RULE_HEADS: [&str; 6] = ["rule", "#new", "#non-compliant", "#resolved", "#not checked", "#compliant"];
const VIOLATION_HEADS: [&str; 5] = ["what became of it", "resource", "rule", "source", "since"];

pub(super) fn posture(context: &Context<'_>, posture: &Posture) -> String {
    let headline = headline(posture);
    document(
        context,
        &headline,
        &html! {
            h1 { (headline) }
            @if posture.rules.is_empty() {
                p.lead {
                    "No source tells what compliance rules say. "
                    code { "driftline observe config" } " reads what AWS Config does."
                }
            } @else {
                p.lead { "Held against " strong { (shown(&posture.against)) } "." }
                section aria-labelledby="rules" { h2 #rules { "By rule, the worst first" } (rules(&posture.rules)) }
                section aria-labelledby="violations" {
                    h2 #violations { "Violations" }
                    (violations(context, posture))
                }
                section aria-labelledby="course" { h2 #course { "Over time" } (over_time(context, posture)) }
            }
        },
    )
}

fn headline(posture: &Posture) -> String {
    let sum = |of: fn(&PostureRule) -> u64| posture.rules.iter().map(of).sum::<u64>();
    if posture.rules.is_empty() {
        return "Nothing is known about compliance".to_owned();
    }
    let all = sum(|rule| rule.non_compliant);
    let new = sum(|rule| rule.newly_non_compliant);
    let rest = counts(&[
        (new, "of them new"),
        (sum(|rule| rule.resolved), "resolved"),
        (sum(|rule| rule.not_checked), "not checked"),
    ]);
    let first = if all == 0 { "Nothing is non-compliant".to_owned() } else { format!("{} non-compliant", number(all)) };
    let first = if all > 0 && new == 0 { format!("{first}, none of them new") } else { first };
    if rest.is_empty() { first } else { format!("{first}; {rest}") }
}

fn rules(rules: &[PostureRule]) -> Markup {
    let mut sorted: Vec<&PostureRule> = rules.iter().collect();
    sorted.sort_by_key(|rule| std::cmp::Reverse((rule.newly_non_compliant, rule.non_compliant, rule.not_checked)));
    html! {
        (table("Compliance by rule, the worst first", &RULE_HEADS, &html! {
            @for rule in sorted.iter().take(ROWS) {
                tr {
                    th scope="row" { (shown(&rule.rule)) }
                    td.n {
                        @if rule.newly_non_compliant > 0 { strong.bad { (number(rule.newly_non_compliant)) } }
                        @else { "0" }
                    }
                    @for many in [rule.non_compliant, rule.resolved, rule.not_checked, rule.compliant] {
                        td.n { (number(many)) }
                    }
                }
            }
        }))
        (more(rules.len(), ROWS, "rules"))
    }
}

/// What is new, resolved or not checked is listed; what lasts is folded where there is anything else to look at.
fn violations(context: &Context<'_>, posture: &Posture) -> Markup {
    let rank = |violation: &&Violation| match violation.turn.as_str() {
        "new" => 0,
        "not_checked" => 1,
        _ => 2,
    };
    let mut sorted: Vec<&Violation> = posture.violations.iter().collect();
    sorted.sort_by_key(rank);
    let (lasting, turned): (Vec<&Violation>, Vec<&Violation>) =
        sorted.into_iter().partition(|violation| violation.turn == "lasting");
    html! {
        @if turned.is_empty() { p { "None of them is new, and none was resolved." } }
        @else { (listed(context, "Violations, the new ones first", &turned)) }
        @if !lasting.is_empty() {
            details {
                summary { (number(lasting.len())) " that last" }
                (listed(context, "Violations that last", &lasting))
            }
        }
        @if posture.left_out > 0 { p.more { (number(posture.left_out)) " more are counted and not listed." } }
    }
}

fn listed(context: &Context<'_>, caption: &str, violations: &[&Violation]) -> Markup {
    html! {
        (table(caption, &VIOLATION_HEADS, &html! {
            @for violation in violations.iter().take(ROWS) {
                tr {
                    td { (turn(&violation.turn)) }
                    th scope="row" { (resource_link(&violation.canonical_id, None)) }
                    td { (shown(&violation.rule)) }
                    td { (shown(&violation.source)) }
                    td.when { @if let Some(at) = violation.since { (when(at, context.now)) } }
                }
            }
        }))
        (more(violations.len(), ROWS, "violations; the JSON of this page has them"))
    }
}

fn turn(turn: &str) -> Markup {
    html! {
        @match turn {
            "new" => { span.flag.removed { "! new" } }
            "lasting" => { span.flag { "lasting" } }
            "resolved" => { span.flag.added { "✓ resolved" } }
            "not_checked" => { span.flag.unchecked { "? not checked" } }
            other => { span.flag { (shown(other)) } }
        }
    }
}

fn over_time(context: &Context<'_>, posture: &Posture) -> Markup {
    let points = posture.course.iter().map(|moment| (moment.at, moment.non_compliant)).collect();
    html! {
        @if posture.course.is_empty() { p { "There is only what is known now." } }
        @else {
            (course(&[Band { name: "non-compliant", class: "drifted", points }], context.now))
            details {
                summary { "The same as a table" }
                (table("Violations over time, the newest first", &["observed", "#non-compliant"], &html! {
                    @for moment in posture.course.iter().rev().take(ROWS) {
                        tr {
                            th scope="row" { time datetime=(moment.at) { (stamp(moment.at)) } }
                            td.n { (number(moment.non_compliant)) }
                        }
                    }
                }))
                (more(posture.course.len(), ROWS, "moments"))
            }
        }
    }
}
