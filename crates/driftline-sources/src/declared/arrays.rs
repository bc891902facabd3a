//! Arrays: in order, as bags, as tags, and as settings among which the service lists its own.

use driftline_core::{Pointer, Value};
use pathfinding::prelude::{Matrix, kuhn_munkres_min};

use super::{ByKey, DifferenceType, Found, Tier, Walk, is_unknown, matches};

/// From how many elements on, pairing every one with every other costs too much.
const MANY: usize = 64;

impl Walk<'_> {
    pub(super) fn arrays(&self, path: &mut Pointer, declared: &[Value], live: &[Value], found: &mut Found) {
        if declared.iter().any(is_unknown) {
            self.partly(path, declared, live, found);
        } else if self.are_tags(path, declared) {
            self.tags(path, declared, live, found);
        } else if self.said.arrays && matches(&self.facts.attribute_lists, path) {
            self.settings(path, declared, live, found);
        } else if self.said.arrays && matches(&self.facts.unordered, path) {
            self.bag(path, declared, live, found);
            found.excuse(path, "unordered", Tier::Schema, None);
        } else {
            self.list(path, declared, live, found);
        }
    }

    /// An unknown element may be any number of those that are there, so only what is known must be among them.
    fn partly(&self, path: &mut Pointer, declared: &[Value], live: &[Value], found: &mut Found) {
        let known: Vec<Value> = declared.iter().filter(|value| !is_unknown(value)).cloned().collect();
        let mut inside = Found::default();
        match self.are_tags(path, &known) {
            true => self.tags(path, &known, live, &mut inside),
            false => self.bag(path, &known, live, &mut inside),
        }
        let here = path.segments().len() + 1;
        inside.differences.retain(|one| one.what != DifferenceType::Add || one.path.segments().len() != here);
        found.differences.append(&mut inside.differences);
        found.excused.append(&mut inside.excused);
        found.excuse(path, "unknown", Tier::Builtin, Some("an element could not be resolved".into()));
    }

    pub(super) fn are_tags(&self, path: &Pointer, declared: &[Value]) -> bool {
        self.facts.tags.as_ref().is_some_and(|tags| tags.matches(path)) || are_tags(declared, path)
    }

    pub(super) fn list(&self, path: &mut Pointer, declared: &[Value], live: &[Value], found: &mut Found) {
        for at in 0..declared.len().max(live.len()) {
            path.push(at.to_string());
            match declared.get(at) {
                Some(value) => self.values(path, value, live.get(at), found),
                None => found.differ(path, None, live.get(at)),
            }
            path.pop();
        }
    }

    /// Pairs elements so that as little as possible differs.
    pub(super) fn bag(&self, path: &mut Pointer, declared: &[Value], live: &[Value], found: &mut Found) {
        for (l, r) in self.pairs(path, declared, live) {
            let at = l.or(r).unwrap_or_default();
            path.push(at.to_string());
            match l {
                Some(l) => self.deeper().values(path, &declared[l], r.map(|r| &live[r]), found),
                None => found.differ(path, None, r.map(|r| &live[r])),
            }
            path.pop();
        }
    }

    fn deeper(&self) -> Self {
        Self { depth: self.depth + 1, ..*self }
    }

    fn pairs(&self, path: &Pointer, declared: &[Value], live: &[Value]) -> Vec<(Option<usize>, Option<usize>)> {
        let mut taken = vec![false; live.len()];
        let mut pairs = Vec::new();
        let mut rest = Vec::new();
        for (l, value) in declared.iter().enumerate() {
            match (0..live.len()).find(|r| !taken[*r] && live[*r] == *value) {
                Some(r) => {
                    taken[r] = true;
                    pairs.push((Some(l), Some(r)));
                }
                None => rest.push(l),
            }
        }
        // What has a name is the same thing as what has the same name.
        if let (Some((name, _)), Some((other, _))) = (by_key(declared), by_key(live))
            && name == other
        {
            rest.retain(|l| {
                let same = |r: &usize| !taken[*r] && live[*r].get(name) == declared[*l].get(name);
                let Some(r) = (0..live.len()).find(same) else { return true };
                taken[r] = true;
                pairs.push((Some(*l), Some(r)));
                false
            });
        }
        let others: Vec<usize> = (0..live.len()).filter(|r| !taken[*r]).collect();
        let size = rest.len().max(others.len());
        if size > MANY >> (2 * self.depth.min(2)) || rest.is_empty() || others.is_empty() {
            pairs.extend((0..size).map(|at| (rest.get(at).copied(), others.get(at).copied())));
        } else {
            let costs = Matrix::from_fn(size, size, |(row, column)| {
                let mut found = Found::default();
                let mut path = path.child("0");
                match (rest.get(row), others.get(column)) {
                    (Some(l), Some(r)) => {
                        self.deeper().values(&mut path, &declared[*l], Some(&live[*r]), &mut found);
                        // As much of a pair as differs; one that has nothing in common is no pair.
                        let all = i64::try_from(size_of(&declared[*l])).unwrap_or(i64::MAX / 1_000_000);
                        i64::try_from(found.differences.len()).unwrap_or(all).min(all) * 1000 / all.max(1)
                    }
                    _ => 1000,
                }
            });
            let (_, columns) = kuhn_munkres_min(&costs);
            for (row, column) in columns.into_iter().enumerate() {
                pairs.push((rest.get(row).copied(), others.get(column).copied()));
            }
        }
        pairs.sort_by_key(|&(l, r)| (l.is_none(), l, r));
        pairs
    }

    /// Tags by key. What AWS puts there itself was never declared.
    fn tags(&self, path: &mut Pointer, declared: &[Value], live: &[Value], found: &mut Found) {
        let (Some((name, left)), Some((_, right))) = (by_key(declared), by_key(live)) else {
            self.bag(path, declared, live, found);
            return;
        };
        for (at, tag) in declared.iter().enumerate() {
            let Some(key) = tag.get(name).and_then(Value::as_str) else { continue };
            path.push(at.to_string());
            self.values(path, tag, right.get(key).copied(), found);
            path.pop();
        }
        for (at, tag) in live.iter().enumerate() {
            let Some(key) = tag.get(name).and_then(Value::as_str) else { continue };
            if !left.contains_key(key) && !key.starts_with("aws:") {
                path.push(at.to_string());
                found.differ(path, None, Some(tag));
                path.pop();
            }
        }
        found.excuse(path, "tags by key", Tier::Builtin, None);
    }

    /// Settings by key; those that only live has are the service's own.
    fn settings(&self, path: &mut Pointer, declared: &[Value], live: &[Value], found: &mut Found) {
        for (at, setting) in declared.iter().enumerate() {
            // What names a setting is every member but its value.
            let named = |other: &&Value| {
                let names = ["Namespace", "OptionName", "ResourceName", "Key", "Name"];
                names.iter().all(|name| setting.get(name).is_none() || setting.get(name) == other.get(name))
            };
            path.push(at.to_string());
            self.values(path, setting, live.iter().find(named), found);
            path.pop();
        }
        found.excuse(path, "attribute list", Tier::Schema, None);
    }
}

/// A list of keys and values under a name that says tags.
fn are_tags(items: &[Value], path: &Pointer) -> bool {
    let named = path.segments().last().is_some_and(|name| name.ends_with("Tags") || name == "TagList");
    let tag = |item: &Value| {
        item.as_object().is_some_and(|members| members.contains_key("Key") && members.contains_key("Value"))
    };
    named && !items.is_empty() && items.iter().all(tag)
}

/// How many leaves a value has.
pub(super) fn size_of(value: &Value) -> usize {
    match value {
        Value::Object(members) => members.values().map(size_of).sum::<usize>().max(1),
        Value::Array(items) => items.iter().map(size_of).sum::<usize>().max(1),
        _ => 1,
    }
}

/// Members that name an element of a list, the most telling first.
const KEYS: &[&str] = &[
    "Key",
    "Name",
    "Id",
    "OptionName",
    "ParameterName",
    "RuleName",
    "AttributeName",
    "IndexName",
    "ParameterKey",
    "PolicyName",
    "TagKey",
    "Sid",
    "Type",
    "Namespace",
];

/// The elements by the first member that names every one of them and no two alike.
pub(super) fn by_key(items: &[Value]) -> Option<(&'static str, ByKey<'_>)> {
    KEYS.iter().find_map(|name| {
        let mut named = ByKey::new();
        for item in items {
            let key = item.get(name).and_then(Value::as_str)?;
            if named.insert(key, item).is_some() {
                return None;
            }
        }
        Some((*name, named))
    })
}
