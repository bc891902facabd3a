//! A report as one HTML file: no script, nothing loaded, readable on paper, in the dark and by ear.

use std::fmt::Write as _;

use driftline_core::severity::Severity;
use driftline_store::detect::Tally;

use super::telling::{Excuse, Telling, Told};
use crate::output::{count, is_hidden, short};
use crate::time::ago;

/// What findings may take of the five megabytes that a browser opens at once.
const FINDINGS: usize = 4_300_000;
const EXCUSES: usize = 300_000;
/// How many rows the tables of the overview have.
const ROWS: usize = 200;
/// How many changes of one resource are listed.
const CHANGES: usize = 20;
/// How long an id or a reason gets. Ids have no bound of their own.
const TEXT: usize = 400;

const STYLE: &str = include_str!("report.css");

/// The whole page.
pub(super) fn page(telling: &Telling<'_>) -> String {
    let mut out = String::with_capacity(64 * 1024);
    let title = format!("{} {}", telling.title, telling.exact);
    let _ = write!(
        out,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <meta name=\"generator\" content=\"driftline {}\">\n<title>{}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n",
        env!("CARGO_PKG_VERSION"),
        text(&title)
    );
    let _ = write!(
        out,
        "<a class=\"skip\" href=\"#findings\">Skip to the findings</a>\n<header>\n<h1>{}</h1>\n<p>{}. Made <time \
         datetime=\"{now}\">{now}</time>.</p>\n</header>\n<nav aria-label=\"Parts of the report\"><ul>\
         <li><a href=\"#overview\">Overview</a></li><li><a href=\"#findings\">Findings</a></li>\
         <li><a href=\"#not-checked\">Not checked</a></li><li><a href=\"#excused\">Excused</a></li></ul></nav>\n<main>\n",
        text(telling.title),
        text(&telling.exact),
        now = telling.now,
    );
    overview(&mut out, telling);
    findings(&mut out, telling);
    not_checked(&mut out, telling);
    excused(&mut out, telling);
    let _ = write!(out, "</main>\n<footer><p>{}</p></footer>\n</body>\n</html>\n", text(&telling.result));
    out
}

fn overview(out: &mut String, telling: &Telling<'_>) {
    let tally = telling.tally;
    out.push_str("<section aria-labelledby=\"overview\">\n<h2 id=\"overview\">Overview</h2>\n<dl class=\"counts\">\n");
    for (word, number) in [
        ("drifted", tally.drifted),
        ("unknown", tally.unknown),
        ("not checked", tally.not_checked),
        ("in sync", tally.in_sync),
        ("excused differences", telling.excused as u64),
    ] {
        let class = if number > 0 { word.replace(' ', "-") } else { "none".to_owned() };
        let _ = writeln!(out, "<div class=\"{class}\"><dt>{word}</dt><dd>{number}</dd></div>");
    }
    out.push_str("</dl>\n");
    let (checked, total) = telling.checked();
    let _ = write!(out, "<p>{checked} of {} checked", count(total, "resource"));
    if let Some(rate) = percent(checked, total) {
        let _ = write!(out, " ({rate})");
    }
    out.push_str(".</p>\n");
    table(out, "Findings by severity", &["severity", "#findings"], |out| {
        for level in Severity::ALL {
            let _ = writeln!(
                out,
                "<tr><th scope=\"row\">{}</th><td class=\"n\">{}</td></tr>",
                badge(Some(level)),
                telling.severities.get(level)
            );
        }
    });
    sources(out, telling);
    let mut types: Vec<(&str, Tally)> = telling.by_type.iter().map(|(kind, tally)| (*kind, *tally)).collect();
    types.sort_by_key(|(kind, tally)| (std::cmp::Reverse((tally.drifted, tally.unknown, tally.not_checked)), *kind));
    if !types.is_empty() {
        table(out, "By type", &["type", "#drifted", "#unknown", "#not checked", "#in sync"], |out| {
            for (kind, tally) in types.iter().take(ROWS) {
                let _ = write!(out, "<tr><th scope=\"row\">{}</th>", text(kind));
                for number in [tally.drifted, tally.unknown, tally.not_checked, tally.in_sync] {
                    let _ = write!(out, "<td class=\"n\">{number}</td>");
                }
                out.push_str("</tr>\n");
            }
        });
        more(out, types.len(), ROWS, "types");
    }
    out.push_str("</section>\n");
}

fn sources(out: &mut String, telling: &Telling<'_>) {
    if telling.sources.is_empty() {
        return;
    }
    let heads = ["source", "compared", "observed", "#listed whole", "#listed in part"];
    table(out, "Sources and their freshness", &heads, |out| {
        for source in telling.sources.iter().take(ROWS) {
            let version =
                |number: Option<u64>| number.map_or_else(|| "nothing".to_owned(), |number| format!("v{number}"));
            let compared = format!("{} with {}", version(source.version), version(source.expected));
            let when = source.taken_at.map_or_else(String::new, |at| {
                let stale = if source.stale { " <strong class=\"stale\">stale</strong>" } else { "" };
                format!("<time datetime=\"{at}\">{at}</time>, {}{stale}", text(&ago(at, telling.now)))
            });
            let _ = writeln!(
                out,
                "<tr><th scope=\"row\">{}</th><td>{compared}</td><td>{when}</td><td class=\"n\">{}</td><td class=\"n\">{}</td></tr>",
                text(&source.name),
                source.extents.0,
                source.extents.1
            );
        }
    });
    more(out, telling.sources.len(), ROWS, "sources");
}

fn findings(out: &mut String, telling: &Telling<'_>) {
    out.push_str("<section aria-labelledby=\"findings\">\n<h2 id=\"findings\">Findings</h2>\n");
    let total = telling.findings.iter().filter(|told| told.is_finding()).count();
    if total == 0 {
        out.push_str("<p>Nothing drifted, and nothing is there that was not expected.</p>\n");
    }
    let (start, mut shown) = (out.len(), 0);
    'all: for level in Severity::ALL {
        let list: Vec<&Told<'_>> = telling.of(level).collect();
        if list.is_empty() {
            continue;
        }
        let _ = writeln!(out, "<h3>{level} ({})</h3>", list.len());
        for told in list {
            let article = finding(told);
            if out.len() - start + article.len() > FINDINGS {
                break 'all;
            }
            out.push_str(&article);
            shown += 1;
        }
    }
    if shown < total {
        let _ = writeln!(
            out,
            "<p class=\"more\">… and {} more, for which there is no room in one page; <code>-o json</code> has them \
             all, and <code>--where</code> narrows the question.</p>",
            total - shown
        );
    }
    let resolved: Vec<&Told<'_>> = telling.resolved().collect();
    if !resolved.is_empty() {
        let _ =
            writeln!(out, "<h3>resolved ({})</h3>\n<p>Findings that are gone; good news.</p>\n<ul>", resolved.len());
        for told in resolved.iter().take(ROWS) {
            let _ = writeln!(out, "<li><code>{}</code> {}</li>", text(told.id), text(told.kind));
        }
        out.push_str("</ul>\n");
        more(out, resolved.len(), ROWS, "resolved");
    }
    out.push_str("</section>\n");
}

fn finding(told: &Told<'_>) -> String {
    let mut out = String::with_capacity(1024);
    let _ = write!(
        out,
        "<article>\n<h4>{} <code>{}</code></h4>\n<p>{}, {}",
        badge(told.severity),
        text(told.id),
        told.word(),
        text(told.kind)
    );
    // An ARN tells the place already.
    let is_told = !told.place.is_empty() && told.place.split('/').skip(1).all(|part| told.id.contains(part));
    for part in [told.source, if is_told { "" } else { told.place }].into_iter().filter(|part| !part.is_empty()) {
        let _ = write!(out, ", {}", text(part));
    }
    if let Some(since) = told.since {
        let _ = write!(out, ", since {since}");
    }
    let why = if told.why.is_empty() { String::new() } else { format!(" {}.", text(&sentence(told.why))) };
    let _ = writeln!(out, ".{why}</p>");
    if !told.changes.is_empty() {
        out.push_str(
            "<table><thead><tr><th scope=\"col\">path</th><th scope=\"col\">expected</th><th scope=\"col\">now</th>\
             <th scope=\"col\">severity</th></tr></thead><tbody>\n",
        );
        for line in told.changes.iter().take(CHANGES) {
            let path = if line.path.is_empty() { "(whole resource)" } else { &line.path };
            let _ = writeln!(
                out,
                "<tr><th scope=\"row\">{}</th><td><del>{}</del></td><td><ins>{}</ins></td><td>{}</td></tr>",
                text(path),
                text(&line.before),
                text(&line.after),
                line.severity.map_or("", Severity::name)
            );
        }
        out.push_str("</tbody></table>\n");
        more(&mut out, told.changes.len(), CHANGES, "changes; driftline explain lists all");
    }
    if !told.excuses.is_empty() {
        let _ = writeln!(out, "<details><summary>{} excused</summary>\n<ul>", count(told.excuses.len(), "difference"));
        for excuse in told.excuses.iter().take(CHANGES) {
            let _ = writeln!(out, "<li>{}</li>", excuse_line(excuse));
        }
        out.push_str("</ul></details>\n");
    }
    out.push_str("</article>\n");
    out
}

fn not_checked(out: &mut String, telling: &Telling<'_>) {
    out.push_str("<section aria-labelledby=\"not-checked\">\n<h2 id=\"not-checked\">Not checked</h2>\n");
    let gaps = telling.gaps();
    if gaps.is_empty() {
        out.push_str("<p>Everything was looked at on both sides.</p>\n");
    } else {
        out.push_str("<p>One side did not look. This is never counted as in sync.</p>\n");
        let heads = ["place", "source", "#resources", "types", "why"];
        table(out, "Places that were not checked", &heads, |out| {
            for gap in gaps.iter().take(ROWS) {
                let types: Vec<String> = gap.types.iter().map(|(kind, number)| format!("{kind} {number}")).collect();
                let _ = writeln!(
                    out,
                    "<tr><th scope=\"row\">{}</th><td>{}</td><td class=\"n\">{}</td><td>{}</td><td>{}</td></tr>",
                    text(gap.place),
                    text(gap.source),
                    gap.count(),
                    text(&types.join(", ")),
                    text(gap.reason)
                );
            }
        });
        more(out, gaps.len(), ROWS, "places");
    }
    out.push_str("</section>\n");
}

fn excused(out: &mut String, telling: &Telling<'_>) {
    out.push_str("<section aria-labelledby=\"excused\">\n<h2 id=\"excused\">Excused</h2>\n");
    let _ = writeln!(out, "<p>{} excused by rules.</p>", count(telling.excused, "difference"));
    let start = out.len();
    let mut shown = 0;
    if !telling.excuses.is_empty() {
        out.push_str("<details><summary>Differences, each with its rule</summary>\n<ul>\n");
        for (of, excuse) in &telling.excuses {
            let line = format!("<li><code>{}</code> {}</li>\n", text(telling.excused_of[*of].id), excuse_line(excuse));
            if out.len() - start + line.len() > EXCUSES {
                break;
            }
            out.push_str(&line);
            shown += 1;
        }
        out.push_str("</ul></details>\n");
    }
    more(out, telling.excused, shown, "excused differences");
    out.push_str("</section>\n");
}

fn excuse_line(excuse: &Excuse) -> String {
    let what = match (excuse.path.is_empty(), excuse.before.is_empty() && excuse.after.is_empty()) {
        (true, _) => "as a whole".to_owned(),
        (false, true) => format!("<code>{}</code>", text(&excuse.path)),
        (false, false) => {
            format!("<code>{}</code>: {} → {}", text(&excuse.path), text(&excuse.before), text(&excuse.after))
        }
    };
    format!("{what}. Rule {} ({}): {}", text(&excuse.rule), text(&excuse.origin), text(&excuse.reason))
}

/// A table with a caption; `#` marks the heads of columns with numbers.
fn table(out: &mut String, caption: &str, heads: &[&str], rows: impl FnOnce(&mut String)) {
    let _ = write!(
        out,
        "<div class=\"wide\" role=\"region\" aria-label=\"{caption}\" tabindex=\"0\"><table><caption>{caption}</caption><thead><tr>"
    );
    for head in heads {
        let (class, head) = head.strip_prefix('#').map_or(("", *head), |head| (" class=\"n\"", head));
        let _ = write!(out, "<th scope=\"col\"{class}>{head}</th>");
    }
    out.push_str("</tr></thead><tbody>\n");
    rows(out);
    out.push_str("</tbody></table></div>\n");
}

fn more(out: &mut String, total: usize, shown: usize, what: &str) {
    if total > shown {
        let _ = writeln!(out, "<p class=\"more\">… and {} more {what}.</p>", total - shown);
    }
}

fn badge(level: Option<Severity>) -> String {
    level.map(|level| format!("<span class=\"level {level}\">{level}</span>")).unwrap_or_default()
}

fn sentence(text: &str) -> String {
    let mut chars = text.trim_end_matches('.').chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}

fn percent(part: u64, whole: u64) -> Option<String> {
    // Rounded down: all but one of a million is not all.
    (whole > 0).then(|| part * 1_000 / whole).map(|thousandths| format!("{}.{} %", thousandths / 10, thousandths % 10))
}

/// Text from outside: nothing in it is markup, nothing in it is hidden, and it has a bound. It only ever stands between
/// tags, where quotes are just quotes; no attribute has anything in it that is not ours.
fn text(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for char in short(text, TEXT).chars() {
        match char {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            char if is_hidden(char) => out.extend(char.escape_unicode()),
            char => out.push(char),
        }
    }
    out
}
