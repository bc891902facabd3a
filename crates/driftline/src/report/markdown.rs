//! A report as Markdown: fits a comment on a pull request, or the summary of a workflow's step.

use driftline_core::severity::Severity;

use super::telling::{Telling, Told};
use crate::output::{markdown_cell, short};

/// What a comment on a pull request may have (GitHub takes 65,536 characters), with room for words around it.
pub(crate) const COMMENT: usize = 60_000;
/// What the end of a page needs: the closing of a list, what was left out, and the result.
const END: usize = 2_000;
/// How many changes of one resource are listed.
const CHANGES: usize = 10;
/// How long an id, a reason or the heading gets. Cells are escaped, and an escape is longer than what it stands for.
const TEXT: usize = 300;

/// A text that stops to grow when it is full.
struct Page {
    text: String,
    room: usize,
}

impl Page {
    /// Adds it if there is room.
    fn push(&mut self, text: &str) -> bool {
        let fits = self.text.len() + text.len() + END <= self.room;
        if fits {
            self.text.push_str(text);
        }
        fits
    }
}

/// The page, in at most this many bytes.
pub(crate) fn page(telling: &Telling<'_>, room: usize) -> String {
    let tally = telling.tally;
    let mut page = Page { text: String::new(), room };
    page.push(&format!("### {} {}\n\n", telling.title, cell(&telling.heading)));
    page.push("| drifted | unknown | not checked | in sync | excused differences |\n|---|---|---|---|---|\n");
    page.push(&format!(
        "| {} | {} | {} | {} | {} |\n\n",
        tally.drifted, tally.unknown, tally.not_checked, tally.in_sync, telling.excused
    ));
    let levels = telling.severities.words();
    if !levels.is_empty() {
        page.push(&format!("**{levels}**\n\n"));
    }
    let stale: Vec<&str> = telling.sources.iter().filter(|one| one.stale).map(|one| one.name.as_str()).collect();
    if !stale.is_empty() {
        page.push(&format!("Stale: {}\n\n", cell(&stale.join(", "))));
    }
    let mut left = telling.limit;
    let mut omitted = 0;
    let worst = Severity::ALL.into_iter().find(|level| telling.severities.get(*level) > 0);
    for level in Severity::ALL {
        let open = Some(level) == worst || level >= Severity::High;
        omitted += section(&mut page, level.name(), open, telling.of(level), &mut left);
    }
    omitted += section(&mut page, "resolved", false, telling.resolved(), &mut left);
    omitted += not_checked(&mut page, telling);
    let mut end = String::new();
    if omitted > 0 {
        end += &format!("… and {omitted} more; `-o html=FILE` and `-o json=FILE` have them.\n\n");
    }
    end += &cell(&telling.result);
    end.push('\n');
    page.text + &end
}

/// One list, and how many of it had no place.
fn section<'t, 'a: 't>(
    page: &mut Page,
    title: &str,
    open: bool,
    list: impl Iterator<Item = &'t Told<'a>>,
    left: &mut usize,
) -> usize {
    let list: Vec<&Told<'_>> = list.collect();
    if list.is_empty() {
        return 0;
    }
    let head = format!(
        "<details{}><summary>{title} ({})</summary>\n\n| | resource | type | source | changes | severity |\n|---|---|---|---|---|---|\n",
        if open { " open" } else { "" },
        list.len()
    );
    if *left == 0 || !page.push(&head) {
        return list.len();
    }
    let mut shown = 0;
    for told in &list {
        if *left == 0 || !page.push(&row(told)) {
            break;
        }
        *left -= 1;
        shown += 1;
    }
    page.text.push_str("\n</details>\n\n");
    list.len() - shown
}

fn row(told: &Told<'_>) -> String {
    let change = |line: &super::telling::Line<'_>| {
        let path = if line.path.is_empty() { "(whole resource)" } else { &line.path };
        cell(&format!("{path}: {} -> {}", line.before, line.after))
    };
    let mut changes = told.changes.iter().take(CHANGES).map(change).collect::<Vec<_>>().join("<br>");
    let more = told.changes.len().saturating_sub(CHANGES);
    if more > 0 {
        changes += &format!("<br>… and {more} more");
    }
    let cells = [told.id, told.kind, told.source].map(cell);
    let level = told.severity.map_or("", Severity::name);
    format!("| {} | {} | {changes} | {level} |\n", told.word(), cells.join(" | "))
}

fn not_checked(page: &mut Page, telling: &Telling<'_>) -> usize {
    let gaps = telling.gaps();
    let total: usize = gaps.iter().map(super::telling::Gap::count).sum();
    if total == 0 {
        return 0;
    }
    let head = format!(
        "<details><summary>not checked ({total})</summary>\n\n| not checked | type | place | source | why |\n|---|---|---|---|---|\n"
    );
    if !page.push(&head) {
        return total;
    }
    let mut shown = 0;
    'groups: for gap in gaps.iter().take(telling.limit) {
        for (kind, number) in &gap.types {
            let cells = [*kind, gap.place, gap.source, gap.reason].map(cell);
            if !page.push(&format!("| {number} | {} |\n", cells.join(" | "))) {
                break 'groups;
            }
            shown += number;
        }
    }
    page.text.push_str("\n</details>\n\n");
    total - shown
}

/// Text for a cell, bounded.
fn cell(text: &str) -> String {
    markdown_cell(&short(text, TEXT))
}
