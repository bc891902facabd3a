//! A report as GitHub's workflow commands: annotations on the run.

use driftline_core::severity::Severity;

use super::telling::{Telling, Told};
use crate::output::{count, visible};

/// GitHub shows ten annotations of each level per step, and drops the others without a word.
const MOST: usize = 10;
/// How many changes of one resource an annotation has.
const CHANGES: usize = 10;

/// One line each, the worst first, and the result at the end.
pub(super) fn annotations(telling: &Telling<'_>) -> String {
    let mut out = String::new();
    for (command, levels) in [
        ("error", &[Severity::Critical, Severity::High][..]),
        ("warning", &[Severity::Medium]),
        ("notice", &[Severity::Low, Severity::Info]),
    ] {
        let list: Vec<&Told<'_>> = levels.iter().flat_map(|level| telling.of(*level)).collect();
        // The last place tells of those that have none; what was not checked takes one of the warnings.
        let reserved = usize::from(command == "warning" && telling.tally.not_checked > 0);
        let room = MOST - reserved;
        let shown = if list.len() > room { room - 1 } else { list.len() };
        for told in &list[..shown] {
            out += &annotation(command, &title(told), &message(told));
        }
        if list.len() > shown {
            let text = format!("{} more; the report has them all", list.len() - shown);
            out += &annotation(command, &format!("{} of this level", count(list.len(), "finding")), &text);
        }
    }
    if telling.tally.not_checked > 0 {
        let gaps = telling.gaps();
        let lines: Vec<String> = gaps
            .iter()
            .take(CHANGES)
            .map(|gap| format!("{} in {} ({}): {}", gap.count(), gap.place, gap.source, gap.reason))
            .collect();
        let more = gaps.len().saturating_sub(CHANGES);
        let tail = if more > 0 { format!("\n… and {more} more places") } else { String::new() };
        let title = format!("{} not checked", count(telling.tally.not_checked, "resource"));
        out += &annotation("warning", &title, &(lines.join("\n") + &tail));
    }
    out + &visible(&telling.result) + "\n"
}

fn title(told: &Told<'_>) -> String {
    let level = told.severity.map(|level| format!("{level}: ")).unwrap_or_default();
    format!("{level}{} {}", told.word(), told.kind)
}

fn message(told: &Told<'_>) -> String {
    let mut lines = vec![format!("{} ({}, {})", told.id, told.source, told.place)];
    lines.extend(told.lines(CHANGES));
    lines.join("\n")
}

fn annotation(command: &str, title: &str, message: &str) -> String {
    let message: Vec<String> = message.split('\n').map(visible).collect();
    format!("::{command} title={}::{}\n", property(&visible(title)), data(&message.join("\n")))
}

/// As the runner unescapes what comes after the second `::`.
fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// As the runner unescapes properties.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::annotation;

    #[test]
    fn nothing_in_a_text_begins_another_command() {
        let line = annotation("error", "a,b:c%\n::stop", "x\n::add-mask::y\r%0A\u{1b}");
        assert_eq!(line, "::error title=a%2Cb%3Ac%25\\u{a}%3A%3Astop::x%0A::add-mask::y\\u{d}%250A\\u{1b}\n");
    }
}
