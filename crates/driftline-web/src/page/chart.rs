//! Numbers as pictures. What is drawn is also said in words beside it, and the whole of it is in a table below: a
//! picture is never the only way to know.
//!
//! Geometry is in attributes, since no style may be written into a page. Pictures stretch to the room they have, so no
//! text is in them: it would be stretched, too.

use std::fmt::Write as _;

use jiff::Timestamp;
use maud::{Markup, html};

use super::words::{number, stamp};

const WIDTH: u64 = 1_000;
const HEIGHT: u64 = 40;

/// One number over time.
#[derive(Debug)]
pub(super) struct Band<'a> {
    pub name: &'a str,
    /// In the style sheet.
    pub class: &'a str,
    pub points: Vec<(Timestamp, u64)>,
}

/// Bands below each other on one axis of time that ends at `until`. Each has a scale of its own: three that drifted
/// are not lost beside a hundred that were not checked.
pub(super) fn course(bands: &[Band<'_>], until: Timestamp) -> Markup {
    let start = bands.iter().filter_map(|band| band.points.first()).map(|(at, _)| *at).min();
    html! {
        @if let Some(start) = start {
            div.course {
                @for band in bands { (drawn(band, start, until)) }
                div.axis { time datetime=(start) { (stamp(start)) } time datetime=(until) { (stamp(until)) } }
            }
        }
    }
}

fn drawn(band: &Band<'_>, start: Timestamp, until: Timestamp) -> Markup {
    let most = band.points.iter().map(|(_, value)| *value).max().unwrap_or(0);
    let last = band.points.last().map_or(0, |(_, value)| *value);
    let first = band.points.first().map_or(0, |(_, value)| *value);
    let words = format!("{}: {} at first, {} now, at most {}", band.name, number(first), number(last), number(most));
    let (line, area) = steps(&band.points, most, start, until);
    html! {
        div.band.(band.class) {
            span.name { (band.name) }
            svg viewBox={ "0 -2 " (WIDTH) " " (HEIGHT + 4) } preserveAspectRatio="none" role="img" aria-label=(words) {
                path.area d=(area) {}
                path.line d=(line) {}
            }
            span.value { strong { (number(last)) } " now, at most " (number(most)) }
        }
    }
}

/// A value holds until the next: a line in steps, and what is below it.
fn steps(points: &[(Timestamp, u64)], most: u64, start: Timestamp, until: Timestamp) -> (String, String) {
    let span = millis(start, until).max(1);
    let x = |at: Timestamp| {
        u64::try_from(u128::from(millis(start, at)) * u128::from(WIDTH) / u128::from(span))
            .map_or(WIDTH, |x| x.min(WIDTH))
    };
    let y = |value: u64| {
        HEIGHT - u64::try_from(u128::from(value) * u128::from(HEIGHT) / u128::from(most.max(1))).unwrap_or(HEIGHT)
    };
    let mut line = String::new();
    for (at, value) in points {
        if line.is_empty() {
            let _ = write!(line, "M{} {}", x(*at), y(*value));
        } else {
            let _ = write!(line, "H{}V{}", x(*at), y(*value));
        }
    }
    let Some((first, _)) = points.first() else {
        return (String::new(), String::new());
    };
    let _ = write!(line, "H{WIDTH}");
    let area = format!("{line}V{HEIGHT}H{}Z", x(*first));
    (line, area)
}

fn millis(from: Timestamp, to: Timestamp) -> u64 {
    u64::try_from(to.as_millisecond().saturating_sub(from.as_millisecond())).unwrap_or(0)
}

/// A part of the most there is, as a bar.
pub(super) fn bar(part: f64, most: f64) -> Markup {
    let share = if most > 0.0 { (part / most).clamp(0.0, 1.0) * 100.0 } else { 0.0 };
    // What is there is seen, however little it is.
    let width = if part > 0.0 { share.max(1.0) } else { 0.0 };
    html! {
        svg.bar viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true" {
            rect width=(format!("{width:.1}")) height="10" {}
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn a_value_holds_until_the_next_one_was_observed() {
        let at = |hour: u32| format!("2026-06-29T{hour:02}:00:00Z").parse::<Timestamp>().unwrap();
        let (line, area) = steps(&[(at(0), 0), (at(5), 4), (at(10), 2)], 4, at(0), at(10));
        assert_eq!(line, "M0 40H500V0H1000V20H1000");
        assert_eq!(area, "M0 40H500V0H1000V20H1000V40H0Z");
        let (line, _) = steps(&[(at(3), u64::MAX)], u64::MAX, at(3), at(3));
        assert_eq!(line, "M0 0H1000", "one moment is a line, and the largest number has its place");
        assert_eq!(steps(&[], 0, at(0), at(1)), (String::new(), String::new()));
    }
}
