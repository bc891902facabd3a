//! *Overview*: what is wrong, how much nobody looked at, and how that came about.

use jiff::Timestamp;
use maud::{Markup, html};

use super::chart::{Band, bar, course};
use super::entry::begin_box;
use super::findings::newest;
use super::frame::document;
use super::words::{breakable, count, counts, more, number, percent, prose, shown, stamp, table, when};
use crate::context::Context;
use crate::model::{Gap, Snapshot, Source, Summary, TypeVelocity};

/// How many rows each table has; the JSON of the page has all.
const ROWS: usize = 15;
const NEWEST: usize = 8;
/// How many moments the table beside the chart lists.
const MOMENTS: usize = 60;

const MOMENT_HEADS: [&str; 5] = ["observed", "#drifted", "#unknown", "#not checked", "#resources"];
const TYPE_HEADS: [&str; 7] = ["type", "drift rate", "#drifted", "#checked", "#24 hours", "#7 days", "#30 days"];

pub(super) fn overview(context: &Context<'_>, snapshot: &Snapshot) -> String {
    let headline = headline(snapshot);
    document(
        context,
        &headline,
        &html! {
            h1 { (prose(&headline)) }
            (standing(context, snapshot))
            (begin_box(snapshot.beginning.as_ref()))
            @if snapshot.baseline.is_some() { (judged(context, snapshot)) }
            @else {
                section aria-labelledby="sources" { h2 #sources { "Sources" } (sources(context.now, &snapshot.sources)) }
            }
        },
    )
}

/// Everything that there is only beside something that is expected.
fn judged(context: &Context<'_>, snapshot: &Snapshot) -> Markup {
    html! {
        (tiles(&snapshot.summary))
        div.columns {
            section aria-labelledby="newest" {
                h2 #newest { "Newest findings" }
                (newest(context.now, &snapshot.findings, NEWEST))
            }
            div {
                section aria-labelledby="sources" { h2 #sources { "Sources" } (sources(context.now, &snapshot.sources)) }
                section aria-labelledby="course" { h2 #course { "Drift over time" } (over_time(snapshot)) }
            }
        }
        section aria-labelledby="velocity" { h2 #velocity { "Velocity by type" } (velocity(&snapshot.velocity)) }
        section aria-labelledby="gaps" { h2 #gaps { "Not checked" } (gaps(&snapshot.gaps, &snapshot.summary)) }
    }
}

/// The first line: what is wrong or that nothing is, and how much was not looked at. Before anything can be judged it
/// is why not.
pub(super) fn headline(snapshot: &Snapshot) -> String {
    snapshot.beginning.as_ref().map_or_else(|| verdict(&snapshot.summary), |beginning| shown(&beginning.headline))
}

fn verdict(summary: &Summary) -> String {
    if summary.total == 0 {
        return "Nothing was observed yet".to_owned();
    }
    let wrong = counts(&[(summary.drifted, "drifted"), (summary.unknown, "unknown")]);
    let wrong = if summary.drifted == 0 && !wrong.is_empty() { format!("Nothing drifted, {wrong}") } else { wrong };
    match (wrong.is_empty(), summary.not_checked) {
        (true, 0) => "Nothing drifted, and everything was checked".to_owned(),
        (true, rest) => format!("Nothing drifted, but {} of {} not checked", number(rest), number(summary.total)),
        (false, 0) => format!("{wrong}; everything was checked"),
        (false, rest) => format!("{wrong}; {} of {} not checked", number(rest), number(summary.total)),
    }
}

/// What the headline is about: how bad, against what, how fresh.
pub(super) fn standing(context: &Context<'_>, snapshot: &Snapshot) -> Markup {
    let summary = &snapshot.summary;
    let severity = counts(&[
        (summary.critical, "critical"),
        (summary.high, "high"),
        (summary.medium, "medium"),
        (summary.low, "low"),
        (summary.info, "info"),
    ]);
    let stale = snapshot.sources.iter().filter(|source| source.stale).count();
    html! {
        p.lead {
            @if !severity.is_empty() { strong { "By severity: " (severity) ". " } }
            @match &snapshot.baseline {
                Some(baseline) => {
                    "Against baseline " code { (shown(&baseline.name)) } ", set " (when(baseline.set_at, context.now))
                    @if baseline.accepted > 0 { ", " (number(baseline.accepted)) " accepted since" }
                    ". "
                }
                None => { "There is no baseline, so nothing can be called drift. " }
            }
            @if stale > 0 {
                strong.stale { (count(stale, "source")) @if stale == 1 { " is" } @else { " are" } " stale" }
                ": what changed there since is not known."
            }
        }
    }
}

fn tiles(summary: &Summary) -> Markup {
    let checked = summary.total.saturating_sub(summary.not_checked);
    let tiles: [(&str, &str, u64, Option<&str>); 5] = [
        ("drifted", "drifted", summary.drifted, Some("/drift?status=drifted")),
        ("unknown", "unknown", summary.unknown, Some("/drift?status=unknown")),
        ("not-checked", "not checked", summary.not_checked, Some("/drift?status=not_checked")),
        ("in-sync", "in sync", summary.in_sync, None),
        ("excused", "excused differences", summary.excused, Some("/rules")),
    ];
    html! {
        dl.counts {
            @for (class, word, many, link) in tiles {
                div.(if many > 0 { class } else { "none" }) {
                    dt { (word) }
                    dd {
                        @match link {
                            Some(link) if many > 0 => { a href=(link) { (number(many)) } }
                            _ => { (number(many)) }
                        }
                    }
                }
            }
        }
        p {
            (number(checked)) " of " (count(summary.total, "resource")) " checked ("
            (percent(checked, summary.total)) "). "
            (number(summary.complete_extents)) " of "
            (count(summary.complete_extents + summary.partial_extents, "extent")) " listed whole"
            @if summary.partial_extents > 0 { ", " (number(summary.partial_extents)) " in part" }
            "."
            @if summary.resolved > 0 { " " (count(summary.resolved, "finding")) " resolved: good news." }
        }
    }
}

fn sources(now: Timestamp, sources: &[Source]) -> Markup {
    html! {
        @if sources.is_empty() { p { "No source was observed yet." } }
        @else {
            ul.sources {
                @for source in sources.iter().take(ROWS * 2) {
                    li.(if source.stale { "stale" } else { "fresh" }) {
                        p.line {
                            strong { (shown(&source.name)) } " "
                            @if source.stale { span.flag.stale { "stale" } " " }
                            "observed " (when(source.taken_at, now))
                        }
                        p.why {
                            "v" (source.version)
                            @match source.baseline_version {
                                Some(version) => { ", held against v" (version) }
                                None => { ", not in the baseline" }
                            }
                            ", " (count(source.resources, "resource"))
                            @let open = counts(&[
                                (source.drifted, "drifted"),
                                (source.unknown, "unknown"),
                                (source.not_checked, "not checked"),
                            ]);
                            @if !open.is_empty() { ", " (open) }
                            ", "
                            (count(source.complete_extents, "extent")) " whole"
                            @if source.partial_extents > 0 {
                                ", " strong.partial { (number(source.partial_extents)) " in part" }
                            }
                        }
                        @if !source.problems.is_empty() {
                            details {
                                summary { (count(source.problems.len(), "problem")) }
                                ul { @for problem in source.problems.iter().take(ROWS) { li { (shown(problem)) } } }
                                (more(source.problems.len(), ROWS, "problems"))
                            }
                        }
                    }
                }
            }
            (more(sources.len(), ROWS * 2, "sources"))
        }
    }
}

fn over_time(snapshot: &Snapshot) -> Markup {
    let course_of = |value: fn(&crate::model::Moment) -> u64| {
        snapshot.course.iter().map(|moment| (moment.at, value(moment))).collect::<Vec<_>>()
    };
    let bands = [
        Band { name: "drifted", class: "drifted", points: course_of(|moment| moment.drifted) },
        Band { name: "unknown", class: "unknown", points: course_of(|moment| moment.unknown) },
        Band { name: "not checked", class: "not-checked", points: course_of(|moment| moment.not_checked) },
    ];
    let listed = &snapshot.course[snapshot.course.len().saturating_sub(MOMENTS)..];
    html! {
        @if snapshot.course.is_empty() {
            p { "There is nothing to draw before a baseline is set and something was observed." }
        }
        @else {
            (course(&bands, snapshot.computed_at))
            @if snapshot.unfinished { p.why { "Not every moment is computed yet; load the page again in a while." } }
            details {
                summary { "The same as a table" }
                (table("Drift over time, the newest first", &MOMENT_HEADS, &html! {
                    @for moment in listed.iter().rev() {
                        tr {
                            th scope="row" { time datetime=(moment.at) { (stamp(moment.at)) } }
                            td.n { (number(moment.drifted)) }
                            td.n { (number(moment.unknown)) }
                            td.n { (number(moment.not_checked)) }
                            td.n { (number(moment.total)) }
                        }
                    }
                }))
                (more(snapshot.course.len(), listed.len(), "moments"))
            }
        }
    }
}

fn velocity(types: &[TypeVelocity]) -> Markup {
    let mut moving: Vec<&TypeVelocity> = types
        .iter()
        .filter(|one| one.drifted + one.unknown + one.last24h + one.last7d + one.last30d > 0 || one.noisy.is_some())
        .collect();
    moving.sort_by(|left, right| {
        right.drift_rate.total_cmp(&left.drift_rate).then_with(|| {
            (right.drifted, right.last30d, &left.resource_type).cmp(&(left.drifted, left.last30d, &right.resource_type))
        })
    });
    let most = moving.iter().map(|one| one.drift_rate).fold(0.0, f64::max);
    let still = types.len() - moving.len();
    html! {
        @if moving.is_empty() { p { "No type has drifted, now or in the last 30 days." } }
        @else {
            (table("How much of each type has drifted, and how much changed lately", &TYPE_HEADS, &html! {
                @for one in moving.iter().take(ROWS) { (type_row(one, most)) }
            }))
            (more(moving.len(), ROWS, "types"))
        }
        @if still > 0 && !moving.is_empty() { p.why { (count(still, "type")) " without any change." } }
    }
}

fn type_row(one: &TypeVelocity, most: f64) -> Markup {
    html! {
        tr {
            th scope="row" {
                (shown(&one.resource_type))
                @if let Some(noisy) = &one.noisy { " " span.flag.noisy { "noisy" } p.why { (shown(noisy)) } }
            }
            td { div.rate { (bar(one.drift_rate, most)) span { (format!("{:.1} %", one.drift_rate * 100.0)) } } }
            @for many in [one.drifted, one.checked, one.last24h, one.last7d, one.last30d] { td.n { (number(many)) } }
        }
    }
}

fn gaps(gaps: &[Gap], summary: &Summary) -> Markup {
    html! {
        @if gaps.is_empty() && summary.not_checked == 0 { p { "Everything was looked at on both sides." } }
        @else if gaps.is_empty() {
            p { (count(summary.not_checked, "resource")) " had no counterpart to be held against." }
        }
        @else {
            p { "One side did not look here. This is never counted as in sync, and never as deleted." }
            (table("Places that were not checked", &["place", "source", "#resources", "types", "why"], &html! {
                @for gap in gaps.iter().take(ROWS) { (gap_row(gap)) }
            }))
            (more(gaps.len(), ROWS, "places"))
        }
    }
}

fn gap_row(gap: &Gap) -> Markup {
    const TYPES: usize = 4;
    html! {
        tr {
            th scope="row" { (breakable(&gap.place)) }
            td { (breakable(&gap.source)) }
            td.n { (number(gap.types.values().sum::<u64>())) }
            td {
                @for (at, (kind, many)) in gap.types.iter().take(TYPES).enumerate() {
                    @if at > 0 { ", " } (shown(kind)) " " (number(*many))
                }
                @if gap.types.len() > TYPES { " and " (number(gap.types.len() - TYPES)) " more" }
            }
            td { (shown(&gap.reason)) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_says_what_is_wrong_and_what_was_not_looked_at() {
        let told = |total, drifted, unknown, not_checked| {
            verdict(&Summary { total, drifted, unknown, not_checked, ..Summary::default() })
        };
        for (line, expected) in [
            (told(0, 0, 0, 0), "Nothing was observed yet"),
            (told(9, 0, 0, 0), "Nothing drifted, and everything was checked"),
            (told(9, 0, 0, 4), "Nothing drifted, but 4 of 9 not checked"),
            (told(9, 3, 0, 0), "3 drifted; everything was checked"),
            (told(9, 0, 2, 0), "Nothing drifted, 2 unknown; everything was checked"),
            (told(1870, 3, 2, 104), "3 drifted, 2 unknown; 104 of 1,870 not checked"),
        ] {
            assert_eq!(line, expected);
        }
    }
}
