//! Comparing two values: every place where they differ, and which of those a rule explains.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use pathfinding::prelude::{Matrix, kuhn_munkres_min};

use crate::pointer::Pointer;
use crate::rule::{Applicable, is_unknown};
use crate::seal::is_sealed;
use crate::value::Value;

/// One place that differs. `None` is absence, which is not the same as `null`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Change {
    pub path: Pointer,
    pub expected: Option<Value>,
    pub actual: Option<Value>,
}

/// A change that a rule explains. It is kept: a rule excuses, it never deletes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Excused {
    pub change: Change,
    /// The number of the rule in the rule book.
    pub rule: usize,
}

/// All differences between two values, in the order of their places.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Comparison {
    pub changes: Vec<Change>,
    pub excused: Vec<Excused>,
}

/// Compares `actual` with what was `expected`.
///
/// Objects are compared member by member, arrays index by index, or as bags where a rule says `unordered`. What
/// is there on one side only is one change, with all that lies beneath it.
pub fn compare(expected: &Value, actual: &Value, rules: &Applicable<'_>) -> Comparison {
    let mut walk = Walk { rules, root: expected, path: Pointer::root(), found: Comparison::default(), bags: 0 };
    walk.values(expected, actual);
    walk.found
}

struct Walk<'a> {
    rules: &'a Applicable<'a>,
    /// All that is expected; a rule may read from it.
    root: &'a Value,
    path: Pointer,
    found: Comparison,
    /// How many unordered arrays we are inside of.
    bags: u32,
}

impl Walk<'_> {
    fn values(&mut self, expected: &Value, actual: &Value) {
        if expected == actual {
            return;
        }
        match (expected, actual) {
            _ if is_sealed(expected) || is_sealed(actual) => self.leaf(Some(expected), Some(actual)),
            _ if is_unknown(expected) || is_unknown(actual) => self.leaf(Some(expected), Some(actual)),
            (Value::Object(left), Value::Object(right)) => {
                let names: BTreeSet<&String> = left.keys().chain(right.keys()).collect();
                for name in names {
                    self.path.push(name.as_str());
                    self.optional(left.get(name), right.get(name));
                    self.path.pop();
                }
            }
            (Value::Array(left), Value::Array(right)) => match self.rules.unordered(&self.path) {
                Some(rule) => self.bag(left, right, rule),
                None => self.list(left, right),
            },
            _ => self.leaf(Some(expected), Some(actual)),
        }
    }

    fn optional(&mut self, expected: Option<&Value>, actual: Option<&Value>) {
        match (expected, actual) {
            (Some(expected), Some(actual)) => self.values(expected, actual),
            (None, None) => {}
            (expected, actual) => self.leaf(expected, actual),
        }
    }

    fn list(&mut self, left: &[Value], right: &[Value]) {
        for at in 0..left.len().max(right.len()) {
            self.path.push(at.to_string());
            self.optional(left.get(at), right.get(at));
            self.path.pop();
        }
    }

    /// A difference that is not looked into further.
    fn leaf(&mut self, expected: Option<&Value>, actual: Option<&Value>) {
        let change = Change { path: self.path.clone(), expected: expected.cloned(), actual: actual.cloned() };
        match self.excusing(expected, actual) {
            Some(rule) => self.found.excused.push(Excused { change, rule }),
            None => self.found.changes.push(change),
        }
    }

    /// The rule that explains this difference. What is on one side only is also explained when every leaf of it is.
    fn excusing(&mut self, expected: Option<&Value>, actual: Option<&Value>) -> Option<usize> {
        if let Some(rule) = self.rules.explaining(self.root, &self.path, expected, actual) {
            return Some(rule);
        }
        let (expected_here, one) = match (expected, actual) {
            (Some(value), None) => (true, value),
            (None, Some(value)) => (false, value),
            _ => return None,
        };
        if is_sealed(one) {
            return None;
        }
        let children: Vec<(String, &Value)> = match one {
            Value::Object(members) => members.iter().map(|(name, value)| (name.clone(), value)).collect(),
            Value::Array(items) => items.iter().enumerate().map(|(at, value)| (at.to_string(), value)).collect(),
            _ => return None,
        };
        let mut first = None;
        for (segment, child) in children {
            self.path.push(segment);
            let rule = if expected_here { self.excusing(Some(child), None) } else { self.excusing(None, Some(child)) };
            self.path.pop();
            first = Some(first.unwrap_or(rule?));
        }
        first
    }

    /// Pairs the elements of two arrays whose order does not count, so that as little as possible differs.
    fn bag(&mut self, left: &[Value], right: &[Value], rule: usize) {
        let (only_left, only_right) = unequal_elements(left, right);
        let pairs = self.pairs(left, right, &only_left, &only_right);
        let paired = self.counted(|walk| walk.paired(left, right, &pairs));
        // Pairing equal elements first is almost always best; where keeping every element at its index leaves
        // fewer changes, it is not, and a rule must never add a change.
        let listed = self.counted(|walk| walk.list(left, right));
        if listed < paired {
            self.list(left, right);
            return;
        }
        if !in_order(&equal_pairs(left, right, &only_left, &only_right), &pairs) {
            let change = Change {
                path: self.path.clone(),
                expected: Some(Value::Array(left.to_vec())),
                actual: Some(Value::Array(right.to_vec())),
            };
            self.found.excused.push(Excused { change, rule });
        }
        self.paired(left, right, &pairs);
    }

    fn paired(&mut self, left: &[Value], right: &[Value], pairs: &[(Option<usize>, Option<usize>)]) {
        for &(l, r) in pairs {
            let at = l.or(r).expect("a pair has at least one side");
            self.path.push(at.to_string());
            self.bags += 1;
            self.optional(l.map(|at| &left[at]), r.map(|at| &right[at]));
            self.bags -= 1;
            self.path.pop();
        }
    }

    /// How many changes would count, without keeping them.
    fn counted(&self, compare: impl FnOnce(&mut Walk<'_>)) -> usize {
        let mut trial = Walk {
            rules: self.rules,
            root: self.root,
            path: self.path.clone(),
            found: Comparison::default(),
            bags: self.bags,
        };
        compare(&mut trial);
        trial.found.changes.len()
    }

    /// The pairs of what is left after equal elements are taken out, ordered by place.
    fn pairs(
        &self,
        left: &[Value],
        right: &[Value],
        only_left: &[usize],
        only_right: &[usize],
    ) -> Vec<(Option<usize>, Option<usize>)> {
        let (n, m) = (only_left.len(), only_right.len());
        // The best pairing needs every pair to be compared. Inside nested bags, and for long ones, that is too
        // much: there, elements are paired in sorted order, whatever the rules say.
        let limit = 64usize >> (2 * self.bags.min(3));
        let mut pairs: Vec<(Option<usize>, Option<usize>)> = if n.max(m) > limit || n == 0 || m == 0 {
            let sorted = |values: &[Value], indices: &[usize]| {
                let mut indices = indices.to_vec();
                indices.sort_by(|&a, &b| values[a].cmp(&values[b]).then(a.cmp(&b)));
                indices
            };
            let (sorted_left, sorted_right) = (sorted(left, only_left), sorted(right, only_right));
            (0..n.max(m)).map(|at| (sorted_left.get(at).copied(), sorted_right.get(at).copied())).collect()
        } else {
            let size = n.max(m);
            let costs = Matrix::from_fn(size, size, |(row, column)| {
                let (l, r) = (only_left.get(row), only_right.get(column));
                let cost = self.counted(|walk| {
                    let at = l.or(r).copied().unwrap_or_default();
                    walk.path.push(at.to_string());
                    walk.bags += 1;
                    walk.optional(l.map(|&at| &left[at]), r.map(|&at| &right[at]));
                });
                i64::try_from(cost).unwrap_or(i64::MAX / 1_000_000)
            });
            let (_, columns) = kuhn_munkres_min(&costs);
            let pair = |(row, column): (usize, usize)| (only_left.get(row).copied(), only_right.get(column).copied());
            columns.into_iter().enumerate().map(pair).collect()
        };
        pairs.sort_by_key(|&(l, r)| (l.is_none(), l, r));
        pairs
    }
}

/// The indices, on either side, of the elements that have no equal on the other.
fn unequal_elements(left: &[Value], right: &[Value]) -> (Vec<usize>, Vec<usize>) {
    let sorted = |values: &[Value]| {
        let mut indices: Vec<usize> = (0..values.len()).collect();
        indices.sort_by(|&a, &b| values[a].cmp(&values[b]).then(a.cmp(&b)));
        indices
    };
    let (lefts, rights) = (sorted(left), sorted(right));
    let (mut only_left, mut only_right) = (Vec::new(), Vec::new());
    let (mut l, mut r) = (0, 0);
    while l < lefts.len() || r < rights.len() {
        let order = match (lefts.get(l), rights.get(r)) {
            (Some(&a), Some(&b)) => left[a].cmp(&right[b]),
            (Some(_), None) => Ordering::Less,
            _ => Ordering::Greater,
        };
        match order {
            Ordering::Less => only_left.push(lefts[l]),
            Ordering::Greater => only_right.push(rights[r]),
            Ordering::Equal => {}
        }
        l += usize::from(order != Ordering::Greater);
        r += usize::from(order != Ordering::Less);
    }
    only_left.sort_unstable();
    only_right.sort_unstable();
    (only_left, only_right)
}

/// Pairs of equal elements, the first with the first.
fn equal_pairs(left: &[Value], right: &[Value], only_left: &[usize], only_right: &[usize]) -> Vec<(usize, usize)> {
    let rest = |length: usize, only: &[usize], values: &[Value]| {
        let mut indices: Vec<usize> = (0..length).filter(|at| only.binary_search(at).is_err()).collect();
        indices.sort_by(|&a, &b| values[a].cmp(&values[b]).then(a.cmp(&b)));
        indices
    };
    rest(left.len(), only_left, left).into_iter().zip(rest(right.len(), only_right, right)).collect()
}

fn in_order(equal: &[(usize, usize)], pairs: &[(Option<usize>, Option<usize>)]) -> bool {
    let mut all = equal.to_vec();
    all.extend(pairs.iter().filter_map(|&(l, r)| Some((l?, r?))));
    all.sort_unstable();
    all.is_sorted_by_key(|&(_, r)| r)
}

/// The value that `expected` becomes when `changes` happen to it.
///
/// Elements that a bag gained go to its end, so a bag comes out equal as a bag.
pub fn apply(expected: &Value, changes: &[Change]) -> Value {
    let mut value = expected.clone();
    for change in changes.iter().filter(|change| change.expected.is_some() && change.actual.is_some()) {
        change.path.set(&mut value, change.actual.clone());
    }
    // What is taken away shifts the indices of what follows, so everything else comes first, and then the back.
    for change in changes.iter().filter(|change| change.expected.is_none()) {
        let new = change.actual.clone().expect("a change has at least one side");
        append(&mut value, &change.path, new);
    }
    for change in changes.iter().rev().filter(|change| change.actual.is_none()) {
        change.path.set(&mut value, None);
    }
    value
}

fn append(value: &mut Value, path: &Pointer, new: Value) {
    let mut parent = Pointer::root();
    let Some((_, parents)) = path.segments().split_last() else {
        *value = new;
        return;
    };
    for segment in parents {
        parent.push(segment.as_str());
    }
    match parent.find(value) {
        Some(Value::Array(items)) => parent.child(items.len().to_string()).set(value, Some(new)),
        _ => path.set(value, Some(new)),
    };
}

#[cfg(test)]
#[path = "compare_tests.rs"]
mod tests;
