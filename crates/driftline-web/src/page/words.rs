//! Words, numbers, times and links: what every view is written with.
//!
//! Text from outside goes through [`shown`] before it is written between tags or read out, so that nothing hides in it
//! and nothing is endless. That it is not markup is seen to by `maud`, which escapes whatever is put into a page.

use std::fmt::Write as _;

use driftline_core::text::{short, visible};
use driftline_core::{DriftKind, Severity, Status};
use jiff::Timestamp;
use maud::{Markup, html};
use serde_json::Value;

/// How many characters of a name, a reason or a value are shown where it stands among others.
pub(super) const TEXT: usize = 300;
/// How many of a value are shown on one line with others.
const BRIEF: usize = 140;
/// How many of a value are shown where one looks at it alone.
pub(super) const VALUE: usize = 4_000;
/// The longest id that fits into a link: servers and proxies refuse addresses of more than some kilobytes.
const LINK: usize = 1_500;

/// Text from outside, bounded, with everything hidden as an escape.
pub(super) fn shown(text: &str) -> String {
    visible(&short(text, TEXT))
}

/// The same with room for more.
pub(super) fn shown_long(text: &str) -> String {
    visible(&short(text, VALUE))
}

/// A text of the program, in which what is between backticks is code.
pub(super) fn prose(text: &str) -> Markup {
    let text = shown_long(text);
    let parts: Vec<&str> = text.split('`').collect();
    html! {
        // A backtick without a partner is just that.
        @if parts.len().is_multiple_of(2) { (text) }
        @else {
            @for (at, part) in parts.iter().enumerate() {
                @if at.is_multiple_of(2) { (part) } @else { code { (part) } }
            }
        }
    }
}

/// Messages begin small, so that they can be part of a longer one; on a page they stand alone.
pub(super) fn sentence(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}

/// `1,870`.
pub(super) fn number(number: impl TryInto<u64>) -> String {
    let digits = number.try_into().unwrap_or(u64::MAX).to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// `1 resource`, `2,000 resources`.
pub(super) fn count(many: impl TryInto<u64>, noun: &str) -> String {
    let many = many.try_into().unwrap_or(u64::MAX);
    format!("{} {noun}{}", number(many), if many == 1 { "" } else { "s" })
}

/// Parts that are not nothing, as a list in words.
pub(super) fn counts(parts: &[(u64, &str)]) -> String {
    let told: Vec<String> =
        parts.iter().filter(|(many, _)| *many > 0).map(|(many, word)| format!("{} {word}", number(*many))).collect();
    told.join(", ")
}

/// Rounded down: all but one of a million is not all.
pub(super) fn percent(part: u64, whole: u64) -> String {
    let thousandths = u128::from(part) * 1_000 / u128::from(whole.max(1));
    format!("{}.{} %", thousandths / 10, thousandths % 10)
}

/// `2026-06-29 10:00 UTC`.
pub(super) fn stamp(at: Timestamp) -> String {
    at.strftime("%Y-%m-%d %H:%M UTC").to_string()
}

/// `3 hours ago`. The script says it in the same words.
pub(super) fn ago(at: Timestamp, now: Timestamp) -> String {
    let seconds = now.duration_since(at).as_secs();
    let (many, unit) = match seconds.unsigned_abs() {
        0..60 => return "just now".to_owned(),
        seconds @ 60..3_600 => (seconds / 60, "minute"),
        seconds @ 3_600..172_800 => (seconds / 3_600, "hour"),
        seconds => (seconds / 86_400, "day"),
    };
    if seconds < 0 { format!("in {}", count(many, unit)) } else { format!("{} ago", count(many, unit)) }
}

/// A moment, absolute and in words.
pub(super) fn when(at: Timestamp, now: Timestamp) -> Markup {
    html! { time datetime=(at) { (stamp(at)) } ", " span data-ago=(at) { (ago(at, now)) } }
}

/// The same where there is little room: in words, the moment itself for whoever points at it and on paper.
pub(super) fn since(at: Timestamp, now: Timestamp) -> Markup {
    html! { time datetime=(at) title=(stamp(at)) { span data-ago=(at) { (ago(at, now)) } span.exact { (stamp(at)) } } }
}

pub(super) fn level(severity: Option<Severity>) -> Markup {
    html! { @if let Some(severity) = severity { span.level.(severity.name()) { (severity.name()) } } }
}

/// What became of a resource, in a word.
pub(super) fn status_word(status: Status, kind: Option<DriftKind>) -> &'static str {
    match (status, kind) {
        (Status::Drifted, Some(DriftKind::Deleted)) => "deleted",
        (Status::Drifted, Some(DriftKind::Modified)) => "modified",
        (Status::Drifted, _) => "drifted",
        (Status::Unknown, _) => "unknown",
        (Status::NotChecked, _) => "not checked",
        (Status::InSync, Some(DriftKind::Resolved)) => "resolved",
        (Status::InSync, _) => "in sync",
    }
}

/// The sign that tables of the program print before it.
fn status_sign(status: Status, kind: Option<DriftKind>) -> &'static str {
    match (status, kind) {
        (Status::Drifted, Some(DriftKind::Deleted)) => "−",
        (Status::Drifted, _) => "~",
        (Status::Unknown, _) => "+",
        (Status::NotChecked, _) => "?",
        (Status::InSync, Some(DriftKind::Resolved)) => "✓",
        (Status::InSync, _) => "=",
    }
}

pub(super) fn status(status: Status, kind: Option<DriftKind>) -> Markup {
    html! {
        span.status.(class(status)) {
            span.sign aria-hidden="true" { (status_sign(status, kind)) } " " (status_word(status, kind))
        }
    }
}

/// The name of a status in the style sheet.
pub(super) fn class(status: Status) -> &'static str {
    match status {
        Status::Drifted => "drifted",
        Status::Unknown => "unknown",
        Status::NotChecked => "not-checked",
        Status::InSync => "in-sync",
    }
}

/// Whether somebody can take it as expected: there must be something that was seen and is not.
pub(super) fn can_be_accepted(status: Status) -> bool {
    matches!(status, Status::Drifted | Status::Unknown)
}

/// An id as a link to its resource.
pub(super) fn resource_link(id: &str, finding: Option<&str>) -> Markup {
    let href = match (id.len() <= LINK, finding) {
        (true, _) => Some(format!("/resource?id={}", encoded(id))),
        (false, Some(finding)) => Some(format!("/resource?finding={}", encoded(finding))),
        (false, None) => None,
    };
    html! {
        @match href {
            Some(href) => { a.id href=(href) { (breakable(id)) } }
            None => { span.id { (breakable(id)) } " (too long for a link; " code { "driftline explain" } " takes it)" }
        }
    }
}

/// An id that may be broken after what separates its parts, rather than anywhere.
pub(super) fn breakable(id: &str) -> Markup {
    let id = shown(id);
    html! {
        @for part in id.split_inclusive([':', '/']) { (part) wbr; }
    }
}

/// For the value of a parameter in an address.
pub(super) fn encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' | b':' => {
                out.push(char::from(byte));
            }
            byte => {
                let _ = write!(out, "%{byte:02X}");
            }
        }
    }
    out
}

/// A value on one line, beside others.
pub(super) fn compact(value: &Value) -> String {
    visible(&short(&value.to_string(), BRIEF))
}

/// `… and 12 more types.`
pub(super) fn more(total: usize, listed: usize, what: &str) -> Markup {
    html! { @if total > listed { p.more { "… and " (number(total - listed)) " more " (what) "." } } }
}

/// A table that may be wider than the screen: it scrolls by itself, also by keyboard. `#` marks the heads of columns
/// with numbers. The caption is for those who do not see the heading above it.
pub(super) fn table(caption: &str, heads: &[&str], rows: &Markup) -> Markup {
    html! {
        div.wide role="region" aria-label=(caption) tabindex="0" {
            table {
                caption.unseen { (caption) }
                thead {
                    tr {
                        @for head in heads {
                            @match head.strip_prefix('#') {
                                Some(head) => { th.n scope="col" { (head) } }
                                None => { th scope="col" { (head) } }
                            }
                        }
                    }
                }
                tbody { (rows) }
            }
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_times_are_written_for_people() {
        for (value, text) in [(0, "0"), (999, "999"), (1_000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(number(value), text);
        }
        assert_eq!(percent(999_999, 1_000_000), "99.9 %");
        assert_eq!(percent(0, 0), "0.0 %");
        let now: Timestamp = "2026-06-29T10:00:00Z".parse().unwrap();
        for (at, words) in [
            ("2026-06-29T09:59:30Z", "just now"),
            ("2026-06-29T09:59:00Z", "1 minute ago"),
            ("2026-06-28T10:00:00Z", "24 hours ago"),
            ("2026-06-19T10:00:00Z", "10 days ago"),
            ("2026-06-29T13:00:00Z", "in 3 hours"),
        ] {
            assert_eq!(ago(at.parse().unwrap(), now), words);
        }
        assert_eq!(stamp(now), "2026-06-29 10:00 UTC");
    }

    #[test]
    fn what_is_between_backticks_is_code() {
        assert_eq!(prose("run `a <b>` now").into_string(), "run <code>a &lt;b&gt;</code> now");
        assert_eq!(prose("it`s <b>").into_string(), "it`s &lt;b&gt;");
        assert_eq!(sentence("there is no `main`"), "There is no `main`");
        assert_eq!(sentence(""), "");
    }

    #[test]
    fn a_link_has_nothing_in_it_that_ends_it() {
        assert_eq!(encoded("arn:aws:s3:::a/b"), "arn:aws:s3:::a/b");
        assert_eq!(encoded("a b&c=d#e?f%\"<\n\u{202e}"), "a%20b%26c%3Dd%23e%3Ff%25%22%3C%0A%E2%80%AE");
        let long = "x".repeat(LINK + 1);
        assert!(resource_link(&long, Some("f1")).into_string().contains("/resource?finding=f1"));
        assert!(!resource_link(&long, None).into_string().contains("href"));
    }
}
