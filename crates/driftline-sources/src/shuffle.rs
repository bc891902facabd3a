//! The same document, written otherwise: in another order, in another spelling, in pieces. A normalizer must make the
//! same of it; `doctor --determinism` and the fuzz targets ask.

use std::collections::BTreeSet;

use serde_json::Value as Json;

/// `SplitMix64`: the same rounds each time, so that what fails once fails again.
#[derive(Clone, Debug)]
pub struct Dice(pub u64);

impl Dice {
    pub fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % end.max(1) as u64).expect("below a usize")
    }

    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            let other = self.below(last + 1);
            items.swap(last, other);
        }
    }

    /// One of them; there must be one.
    pub fn pick<'i, T>(&mut self, items: &'i [T]) -> &'i T {
        &items[self.below(items.len())]
    }
}

/// Puts lists of objects into another order: those that are listings, and not those that are inside of an item.
pub fn shuffle_lists(value: &mut Json, dice: &mut Dice) {
    match value {
        // In a template order counts: there are no listings in it.
        Json::Object(members) if members.contains_key("Resources") => {}
        Json::Object(members) => members.iter_mut().for_each(|(_, member)| shuffle_lists(member, dice)),
        Json::Array(items) if items.iter().all(Json::is_object) => dice.shuffle(items),
        _ => {}
    }
}

/// The document in two, each with a part of every listing. A state of Terraform is one whole and stays it, and so
/// does a template or a stack.
pub fn cut(document: &Json, dice: &mut Dice) -> Vec<Json> {
    fn split(value: &Json, dice: &mut Dice) -> (Json, Json) {
        match value {
            Json::Object(members) => {
                let (mut left, mut right) = (serde_json::Map::new(), serde_json::Map::new());
                for (name, member) in members {
                    let (a, b) = split(member, dice);
                    left.insert(name.clone(), a);
                    right.insert(name.clone(), b);
                }
                (left.into(), right.into())
            }
            Json::Array(items) if !items.is_empty() && items.iter().all(Json::is_object) => {
                let at = dice.below(items.len() + 1);
                let mut left = items[..at].to_vec();
                // Weighted record sets of one name and type are one record, which no observer tears apart.
                let begun: BTreeSet<String> = left.iter().filter_map(record_name).collect();
                let (same, right): (Vec<Json>, Vec<Json>) = items[at..]
                    .iter()
                    .cloned()
                    .partition(|item| record_name(item).is_some_and(|name| begun.contains(&name)));
                left.extend(same);
                (left.into(), right.into())
            }
            other => (other.clone(), other.clone()),
        }
    }
    let one_whole = ["terraform_version", "format_version", "serial", "address", "Resources", "TemplateBody", "Stacks"];
    if one_whole.iter().any(|member| document.get(member).is_some()) {
        return vec![document.clone()];
    }
    let (left, right) = split(document, dice);
    vec![left, right]
}

/// What tells one DNS record from the others.
fn record_name(item: &Json) -> Option<String> {
    let parts = ["zoneId", "name", "type"].map(|name| item.get(name).and_then(Json::as_str));
    let [Some(zone), Some(name), Some(kind)] = parts else { return None };
    Some(format!("{zone} {name} {kind}"))
}

/// JSON text with members in any order, on one line or many.
pub fn write_shuffled(value: &Json, dice: &mut Dice) -> String {
    fn write(value: &Json, space: &str, dice: &mut Dice, out: &mut String) {
        match value {
            Json::Object(members) => {
                let mut members: Vec<_> = members.iter().collect();
                dice.shuffle(&mut members);
                out.push('{');
                for (at, (name, member)) in members.into_iter().enumerate() {
                    out.push_str(if at > 0 { "," } else { "" });
                    out.push_str(space);
                    out.push_str(&Json::from(name.as_str()).to_string());
                    out.push(':');
                    write(member, space, dice, out);
                }
                out.push_str(space);
                out.push('}');
            }
            Json::Array(items) => {
                out.push('[');
                for (at, item) in items.iter().enumerate() {
                    out.push_str(if at > 0 { "," } else { "" });
                    out.push_str(space);
                    write(item, space, dice, out);
                }
                out.push(']');
            }
            other => out.push_str(&other.to_string()),
        }
    }
    let mut out = String::new();
    let space = ["", "\n  "][dice.below(2)];
    write(value, space, dice, &mut out);
    out
}
