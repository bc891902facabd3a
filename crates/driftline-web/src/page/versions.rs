//! *Versions*: what was observed when, and any two points in time to be compared.

use std::collections::BTreeSet;

use jiff::Timestamp;
use maud::{Markup, html};

use super::findings::compare_link;
use super::frame::document;
use super::words::{count, more, number, shown, stamp, table, when};
use crate::context::Context;
use crate::drift_query::DriftQuery;
use crate::model::{SourceVersions, Version};

/// How many versions of one source are listed, and of all sources together.
const ROWS: usize = 20;
const ALL_ROWS: usize = 200;
/// How many points in time are offered.
const POINTS: usize = 100;

const HEADS: [&str; 9] =
    ["version", "observed", "#resources", "#added", "#changed", "#removed", "#extents whole", "#in part", "compare"];

pub(super) fn versions(context: &Context<'_>, sources: &[SourceVersions]) -> String {
    let all: u64 = sources.iter().map(|source| source.versions.len() as u64 + source.left_out).sum();
    let headline =
        match sources.iter().filter_map(|source| source.versions.first()).map(|version| version.taken_at).max() {
            None => "Nothing was observed yet".to_owned(),
            Some(newest) => format!(
                "{} of {}; the newest {}",
                count(all, "version"),
                count(sources.len(), "source"),
                super::words::ago(newest, context.now)
            ),
        };
    let each = (ALL_ROWS / sources.len().max(1)).clamp(3, ROWS);
    document(
        context,
        &headline,
        &html! {
            h1 { (headline) }
            @if !sources.is_empty() { (chooser(sources)) }
            @for (at, source) in sources.iter().take(ALL_ROWS).enumerate() { (log(context, at, source, each)) }
            (more(sources.len(), ALL_ROWS, "sources"))
        },
    )
}

/// Any two points in time. A text field, since a point may be anything: a time, a version, a baseline.
fn chooser(sources: &[SourceVersions]) -> Markup {
    let moments: BTreeSet<Timestamp> =
        sources.iter().flat_map(|source| source.versions.iter().map(|version| version.taken_at)).collect();
    let names: BTreeSet<&String> =
        sources.iter().flat_map(|source| source.versions.iter().flat_map(|version| &version.pinned_by)).collect();
    let before = moments.iter().rev().nth(1).map(Timestamp::to_string);
    html! {
        section aria-labelledby="compare" {
            h2 #compare { "Compare two points in time" }
            form.points method="get" action="/compare" {
                @let before = before.as_deref().unwrap_or_default();
                @for (name, label, value) in [("from", "From", before), ("to", "To", "now")] {
                    div {
                        label for=(name) { (label) }
                        input id=(name) name=(name) required list="moments" autocomplete="off" value=(value);
                    }
                }
                datalist #moments {
                    option value="now" {}
                    @for name in names { option value={ "baseline:" (name) } {} }
                    @for at in moments.iter().rev().take(POINTS) { option value=(at) { (stamp(*at)) } }
                }
                button type="submit" { "Compare" }
            }
            p.why {
                "A point is a time (" code { "2026-06-29T10:00:00Z" } ", " code { "2026-06-29" } ", "
                code { "24h" } " for a day ago), a version (" code { "v3" } "), " code { "now" }
                ", or a baseline (" code { "baseline:main" } ")."
            }
        }
    }
}

fn log(context: &Context<'_>, at: usize, source: &SourceVersions, most: usize) -> Markup {
    let id = format!("source-{at}");
    let all = source.versions.len().saturating_add(usize::try_from(source.left_out).unwrap_or(usize::MAX));
    html! {
        section aria-labelledby=(id) {
            h2 id=(id) { (shown(&source.source)) }
            (table("Versions, the newest first", &HEADS, &html! {
                @for (place, version) in source.versions.iter().take(most).enumerate() {
                    (row(context, version, source.versions.get(place + 1)))
                }
            }))
            (more(all, source.versions.len().min(most), "versions; driftline log lists all"))
        }
    }
}

fn row(context: &Context<'_>, version: &Version, before: Option<&Version>) -> Markup {
    let link = |from: Timestamp, to: &str| compare_link(&from.to_string(), to, &DriftQuery::default());
    html! {
        tr {
            th scope="row" {
                "v" (version.number)
                @for name in &version.pinned_by { " " span.flag { "baseline " (shown(name)) } }
            }
            td.when { (when(version.taken_at, context.now)) }
            td.n { (number(version.resources)) }
            @for many in [version.added, version.changed, version.removed, version.complete_extents] {
                td.n { (number(many)) }
            }
            td.n {
                @if version.partial_extents > 0 { strong.partial { (number(version.partial_extents)) } }
                @else { "0" }
            }
            td.when {
                @if let Some(before) = before {
                    a href=(link(before.taken_at, &version.taken_at.to_string())) { "with v" (before.number) } " "
                }
                a href=(link(version.taken_at, "now")) { "with now" }
            }
        }
    }
}
