//! The whole of a resource on both sides, line beside line. What is alike is folded, and there is a bound.

use std::collections::BTreeSet;

use maud::{Markup, html};
use serde_json::Value;

use super::words::{count, more, shown};
use crate::model::View;

/// How many lines are written at all.
const LINES: usize = 200;
/// How many lines that are alike stay beside one that is not.
const AROUND: usize = 3;
/// The largest pair of arrays that is searched for items they have in common.
const ARRAY: usize = 250_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mark {
    Alike,
    Changed,
    Added,
    Removed,
    Excused,
}

impl Mark {
    fn class(self) -> &'static str {
        match self {
            Mark::Alike => "alike",
            Mark::Changed => "changed",
            Mark::Added => "added",
            Mark::Removed => "removed",
            Mark::Excused => "excused",
        }
    }

    fn sign(self) -> &'static str {
        match self {
            Mark::Alike => "",
            Mark::Changed => "~",
            Mark::Added => "+",
            Mark::Removed => "−",
            Mark::Excused => "≈",
        }
    }
}

#[derive(Debug)]
struct Line {
    depth: usize,
    mark: Mark,
    left: Option<String>,
    right: Option<String>,
}

pub(super) fn side_by_side(view: &View) -> Markup {
    let lines = lines(view);
    let listed = &lines[..lines.len().min(LINES)];
    html! {
        div.diff {
            p.why {
                "Left what is expected, right what is there. "
                "~ changed, + only there, − only expected, ≈ excused by a rule."
            }
            @for (folded, part) in parts(listed) {
                @if folded { details { summary { (count(part.len(), "line")) " alike" } (block(part)) } }
                @else { (block(part)) }
            }
            (more(lines.len(), LINES, "lines; the JSON of this page has all"))
        }
    }
}

fn block(lines: &[Line]) -> Markup {
    html! {
        table {
            colgroup { col.sign; col; col; }
            thead { tr { @for head in ["mark", "expected", "now"] { th scope="col" { span.unseen { (head) } } } } }
            tbody {
                @for line in lines {
                    tr.(line.mark.class()) {
                        td.sign {
                            @if line.mark != Mark::Alike {
                                span aria-hidden="true" { (line.mark.sign()) }
                                span.unseen { (line.mark.class()) }
                            }
                        }
                        (side(line.depth, line.left.as_deref()))
                        (side(line.depth, line.right.as_deref()))
                    }
                }
            }
        }
    }
}

fn side(depth: usize, text: Option<&str>) -> Markup {
    html! { td { @if let Some(text) = text { code { (" ".repeat(depth.min(40) * 2)) (shown(text)) } } } }
}

/// The lines in parts: those near a difference, and those between, which are folded where that saves some.
fn parts(lines: &[Line]) -> Vec<(bool, &[Line])> {
    let mut near = vec![false; lines.len()];
    for (at, _) in lines.iter().enumerate().filter(|(_, line)| line.mark != Mark::Alike) {
        near[at.saturating_sub(AROUND)..(at + AROUND + 1).min(lines.len())].fill(true);
    }
    let mut parts: Vec<(bool, std::ops::Range<usize>)> = Vec::new();
    for (at, is_near) in near.iter().enumerate() {
        match parts.last_mut() {
            Some((folded, range)) if *folded != *is_near => range.end = at + 1,
            _ => parts.push((!is_near, at..at + 1)),
        }
    }
    parts.into_iter().map(|(folded, range)| (folded && range.len() > AROUND, &lines[range])).collect()
}

fn lines(view: &View) -> Vec<Line> {
    let counted: BTreeSet<&str> = view.changes.iter().map(|change| change.path.as_str()).collect();
    let excused: BTreeSet<&str> = view.excused.iter().map(|excused| excused.change.path.as_str()).collect();
    let mut walk = Walk { counted, excused, lines: Vec::new() };
    walk.pair(0, "", &mut String::new(), view.expected.as_ref(), view.live.as_ref());
    walk.lines
}

struct Walk<'a> {
    counted: BTreeSet<&'a str>,
    excused: BTreeSet<&'a str>,
    lines: Vec<Line>,
}

impl Walk<'_> {
    /// Two values that stand at the same place, behind the same name.
    fn pair(&mut self, depth: usize, name: &str, path: &mut String, left: Option<&Value>, right: Option<&Value>) {
        match (left, right) {
            (Some(Value::Object(left)), Some(Value::Object(right))) => {
                self.both(depth, format!("{name}{{"));
                let keys: BTreeSet<&String> = left.keys().chain(right.keys()).collect();
                for key in keys {
                    let name = format!("{}: ", Value::String(key.clone()));
                    self.below(path, &key.replace('~', "~0").replace('/', "~1"), |walk, path| {
                        walk.pair(depth + 1, &name, path, left.get(key), right.get(key));
                    });
                }
                self.both(depth, "}".to_owned());
            }
            (Some(Value::Array(left)), Some(Value::Array(right))) => {
                self.both(depth, format!("{name}["));
                for (left, right) in aligned(left, right) {
                    let at = right.or(left).map_or(0, |(at, _)| at);
                    let (left, right) = (left.map(|(_, value)| value), right.map(|(_, value)| value));
                    self.below(path, &at.to_string(), |walk, path| walk.pair(depth + 1, "", path, left, right));
                }
                self.both(depth, "]".to_owned());
            }
            (left, right) => self.different(depth, name, path, left, right),
        }
    }

    fn below(&mut self, path: &mut String, key: &str, then: impl FnOnce(&mut Self, &mut String)) {
        let length = path.len();
        path.push('/');
        path.push_str(key);
        then(self, path);
        path.truncate(length);
    }

    fn both(&mut self, depth: usize, text: String) {
        self.lines.push(Line { depth, mark: Mark::Alike, left: Some(text.clone()), right: Some(text) });
    }

    fn different(&mut self, depth: usize, name: &str, path: &str, left: Option<&Value>, right: Option<&Value>) {
        let written = |value: Option<&Value>| -> Vec<String> {
            let text = value.map(|value| format!("{name}{}", serde_json::to_string_pretty(value).unwrap_or_default()));
            text.map(|text| text.lines().map(str::to_owned).collect()).unwrap_or_default()
        };
        // Two sealed values look alike, and that one of them changed is known from the list of changes alone.
        let alike = left == right && !self.counted.contains(path) && !self.excused.contains(path);
        let mark = match (left, right) {
            _ if alike => Mark::Alike,
            _ if self.is_excused(path) => Mark::Excused,
            (Some(_), None) => Mark::Removed,
            (None, Some(_)) => Mark::Added,
            _ => Mark::Changed,
        };
        let (left, right) = (written(left), written(right));
        let (mut left, mut right) = (left.into_iter(), right.into_iter());
        loop {
            let (left, right) = (left.next(), right.next());
            if left.is_none() && right.is_none() {
                break;
            }
            self.lines.push(Line { depth, mark, left, right });
        }
    }

    /// Whether a rule explains what differs here, and nothing here counts.
    fn is_excused(&self, path: &str) -> bool {
        let touches = |paths: &BTreeSet<&str>| paths.iter().any(|one| is_below(path, one) || is_below(one, path));
        touches(&self.excused) && !touches(&self.counted)
    }
}

/// Whether a path is another one or leads on from it.
fn is_below(path: &str, above: &str) -> bool {
    path.strip_prefix(above).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

type Item<'a> = Option<(usize, &'a Value)>;

/// Items that both arrays have stand beside each other, in order; between them, what is left stands side by side.
fn aligned<'a>(left: &'a [Value], right: &'a [Value]) -> Vec<(Item<'a>, Item<'a>)> {
    let common = if left.len().saturating_mul(right.len()) <= ARRAY { common(left, right) } else { Vec::new() };
    let mut pairs = Vec::new();
    let (mut from_left, mut from_right) = (0, 0);
    for (to_left, to_right) in common.into_iter().chain([(left.len(), right.len())]) {
        let (rest_left, rest_right) = (from_left..to_left, from_right..to_right);
        for at in 0..rest_left.len().max(rest_right.len()) {
            let item = |range: &std::ops::Range<usize>, values: &'a [Value]| {
                range.clone().nth(at).map(|place| (place, &values[place]))
            };
            pairs.push((item(&rest_left, left), item(&rest_right, right)));
        }
        if to_left < left.len() && to_right < right.len() {
            pairs.push((Some((to_left, &left[to_left])), Some((to_right, &right[to_right]))));
        }
        (from_left, from_right) = (to_left + 1, to_right + 1);
    }
    pairs
}

/// The places of a longest common subsequence.
fn common(left: &[Value], right: &[Value]) -> Vec<(usize, usize)> {
    let mut best = vec![vec![0_u32; right.len() + 1]; left.len() + 1];
    for at in (0..left.len()).rev() {
        for other in (0..right.len()).rev() {
            best[at][other] = if left[at] == right[other] {
                best[at + 1][other + 1] + 1
            } else {
                best[at + 1][other].max(best[at][other + 1])
            };
        }
    }
    let (mut at, mut other, mut found) = (0, 0, Vec::new());
    while at < left.len() && other < right.len() {
        if left[at] == right[other] {
            found.push((at, other));
            (at, other) = (at + 1, other + 1);
        } else if best[at + 1][other] >= best[at][other + 1] {
            at += 1;
        } else {
            other += 1;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn told(expected: &Value, live: &Value) -> Vec<String> {
        let mut walk = Walk { counted: BTreeSet::new(), excused: BTreeSet::from(["/seen"]), lines: Vec::new() };
        walk.pair(0, "", &mut String::new(), Some(expected), Some(live));
        let text = |side: &Option<String>| side.clone().unwrap_or_default();
        let changed = walk.lines.iter().filter(|line| line.mark != Mark::Alike);
        changed.map(|line| format!("{} {} | {}", line.mark.sign(), text(&line.left), text(&line.right))).collect()
    }

    #[test]
    fn what_differs_stands_side_by_side() {
        let expected = json!({"a": 1, "gone": {"x": 1}, "list": [1, 2, 3], "seen": "monday", "same": [{"deep": null}]});
        let live = json!({"a": 2, "list": [1, 3, 4], "new": true, "seen": "friday", "same": [{"deep": null}]});
        assert_eq!(
            told(&expected, &live),
            [
                "~ \"a\": 1 | \"a\": 2",
                "− \"gone\": { | ",
                "−   \"x\": 1 | ",
                "− } | ",
                "− 2 | ",
                "+  | 4",
                "+  | \"new\": true",
                "≈ \"seen\": \"monday\" | \"seen\": \"friday\"",
            ]
        );
    }

    #[test]
    fn what_is_alike_is_folded_and_nothing_is_lost() {
        let line = |mark| Line { depth: 0, mark, left: None, right: None };
        let mut all: Vec<Line> = (0..40).map(|_| line(Mark::Alike)).collect();
        all[20] = line(Mark::Changed);
        let parts = parts(&all);
        assert_eq!(
            parts.iter().map(|(folded, part)| (*folded, part.len())).collect::<Vec<_>>(),
            [(true, 17), (false, 7), (true, 16)]
        );
        assert!(super::parts(&[]).is_empty());
    }
}
