//! Documents made wrong: structure first, then text, then bytes. The same dice make the same ones.

use driftline_sources::shuffle::{Dice, write_shuffled};
use serde_json::{Value as Json, json};

use crate::targets::SEPARATOR;

/// One seed, made wrong in one to four ways.
pub(crate) fn mutant(seeds: &[Vec<u8>], dice: &mut Dice) -> Vec<u8> {
    let mut bytes = dice.pick(seeds).clone();
    for _ in 0..=dice.below(3) {
        bytes = match dice.below(3) {
            0 => change_bytes(bytes, dice.pick::<Vec<u8>>(seeds), dice),
            _ => change_structure(&bytes, seeds, dice),
        };
    }
    bytes
}

/// Makes one of the documents in there wrong, or one of its lines, where these are the documents.
fn change_structure(bytes: &[u8], seeds: &[Vec<u8>], dice: &mut Dice) -> Vec<u8> {
    let between = if bytes.contains(&SEPARATOR) { SEPARATOR } else { b'\n' };
    let mut parts: Vec<Vec<u8>> = match serde_json::from_slice::<Json>(bytes) {
        Ok(_) => vec![bytes.to_vec()],
        Err(_) => bytes.split(|byte| *byte == between).map(<[u8]>::to_vec).collect(),
    };
    let at = dice.below(parts.len());
    if let Ok(mut document) = serde_json::from_slice::<Json>(&parts[at]) {
        let donor = serde_json::from_slice::<Json>(dice.pick::<Vec<u8>>(seeds)).unwrap_or(Json::Null);
        change_node(&mut document, &donor, dice);
        parts[at] = match dice.below(4) {
            0 if between == SEPARATOR || parts.len() == 1 => write_shuffled(&document, dice).into_bytes(),
            1 => repeat_a_member(&document.to_string(), dice).into_bytes(),
            _ => document.to_string().into_bytes(),
        };
    }
    parts.join(&between)
}

/// Walks down to some place and does one thing there.
fn change_node(node: &mut Json, donor: &Json, dice: &mut Dice) {
    let children = match node {
        Json::Object(members) => members.len(),
        Json::Array(items) => items.len(),
        _ => 0,
    };
    if children > 0 && dice.below(5) > 0 {
        let at = dice.below(children);
        match node {
            Json::Object(members) => {
                members.iter_mut().nth(at).into_iter().for_each(|(_, child)| change_node(child, donor, dice));
            }
            Json::Array(items) => change_node(&mut items[at], donor, dice),
            _ => {}
        }
        return;
    }
    match (dice.below(9), &mut *node) {
        (0, Json::Object(members)) => {
            let name = members.keys().nth(dice.below(children)).cloned();
            name.map(|name| members.remove(&name));
        }
        (0, Json::Array(items)) => drop(items.pop()),
        (1, Json::Object(members)) => {
            let name = members.keys().nth(dice.below(children)).cloned().unwrap_or_default();
            let value = members.remove(&name).unwrap_or_default();
            members.insert(other_name(donor, dice), value);
        }
        (1, Json::Array(items)) if !items.is_empty() => {
            let one = items[dice.below(items.len())].clone();
            items.insert(0, one);
        }
        (2, Json::Object(members)) => drop(members.insert(other_name(donor, dice), piece(donor, dice))),
        (2 | 3, Json::Array(items)) => *items = many(items, dice),
        (4, _) => *node = nested(node.take(), dice),
        (5, Json::String(text)) => *text = odd_text(text, dice),
        (6, _) => *node = piece(donor, dice),
        _ => *node = other_value(dice),
    }
}

fn other_value(dice: &mut Dice) -> Json {
    let values = [
        json!(null),
        json!(true),
        json!(false),
        json!(0),
        json!(-1),
        json!(1.5),
        json!(1e308),
        json!(u64::MAX),
        json!(i64::MIN),
        json!(""),
        json!("*"),
        json!("arn:"),
        json!("arn:aws:s3:::"),
        json!("global"),
        json!([]),
        json!({}),
        json!([null]),
        json!([[]]),
        json!({"": null}),
        json!({"value": 1, "type": "x"}),
        json!("\u{0}"),
    ];
    dice.pick(&values).clone()
}

fn odd_text(text: &str, dice: &mut Dice) -> String {
    match dice.below(8) {
        0 => String::new(),
        1 => text.to_uppercase(),
        2 => format!("{text}\u{0}\u{7f}\u{feff}"),
        3 => format!("arn:aws:ec2:{text}::x"),
        4 => format!("{text}\u{301}\u{1f600}/~0~1*"),
        5 => text.chars().skip(1).collect(),
        6 => "x".repeat(1 << dice.below(14)),
        _ => format!("module.{text}[\"a.\\\"{text}"),
    }
}

fn other_name(donor: &Json, dice: &mut Dice) -> String {
    let known = match piece(donor, dice) {
        Json::Object(members) => members.keys().nth(dice.below(members.len())).cloned(),
        _ => None,
    };
    let odd = ["", "*", "**", "/", "~", "\u{0}", "password", "$terraform", "id", "arn", "type", "value"];
    known.filter(|_| dice.below(3) > 0).unwrap_or_else(|| (*dice.pick(&odd)).to_owned())
}

/// Some part of a document.
fn piece(donor: &Json, dice: &mut Dice) -> Json {
    let mut at = donor;
    while dice.below(4) > 0 {
        let next = match at {
            Json::Object(members) => members.values().nth(dice.below(members.len())),
            Json::Array(items) => items.get(dice.below(items.len())),
            _ => None,
        };
        let Some(next) = next else { break };
        at = next;
    }
    at.clone()
}

fn nested(mut value: Json, dice: &mut Dice) -> Json {
    let (objects, levels) = (dice.below(2) == 0, 1 << dice.below(9));
    for _ in 0..levels {
        value = if objects { json!({ "n": value }) } else { json!([value]) };
    }
    value
}

/// Very many of the items, or of something tiny.
fn many(items: &[Json], dice: &mut Dice) -> Vec<Json> {
    let count = 1 << dice.below(9);
    let one = items.get(dice.below(items.len())).cloned();
    match (dice.below(3), one) {
        (0, Some(Json::Object(members))) => (0..count)
            .map(|number| {
                let mut members = members.clone();
                let texts = members.values_mut().filter_map(|value| match value {
                    Json::String(text) => Some(text),
                    _ => None,
                });
                texts.take(1).for_each(|text| text.push_str(&number.to_string()));
                Json::Object(members)
            })
            .collect(),
        (1, Some(one)) => vec![one; count],
        _ => vec![other_value(dice); count],
    }
}

/// `{"a":1` becomes `{"a":1,"a":1`, which no tree of values can hold.
fn repeat_a_member(text: &str, dice: &mut Dice) -> String {
    let starts: Vec<usize> = text.match_indices("{\"").map(|(at, _)| at + 1).collect();
    if starts.is_empty() {
        return text.to_owned();
    }
    let start = *dice.pick(&starts);
    let mut stream = serde_json::Deserializer::from_str(&text[start..]).into_iter::<Json>();
    stream.next();
    let colon = start + stream.byte_offset();
    let mut stream = serde_json::Deserializer::from_str(text.get(colon + 1..).unwrap_or_default()).into_iter::<Json>();
    stream.next();
    let end = colon + 1 + stream.byte_offset();
    format!("{},{}", &text[..end], &text[start..])
}

fn change_bytes(mut bytes: Vec<u8>, other: &[u8], dice: &mut Dice) -> Vec<u8> {
    const ODD: &[&[u8]] = &[
        b"\0",
        b"\x01",
        b"\x7f",
        b"\xff",
        b"\xc3",
        b"\xed\xa0\x80",
        b"\xef\xbb\xbf",
        b"\\ud800",
        b"\\u0000",
        b"\\",
        b"\"",
        b",",
        b":",
        b"[",
        b"]",
        b"{",
        b"}",
        b"[[[[[[[[",
        b"1e999",
        b"-0",
        b"0.1e-400",
        b"-",
        b"1E+2",
        b"340282366920938463463374607431768211456",
        b"\n",
        b"\r\n",
        b"\x1e",
        b"null",
        b"PK\x03\x04",
    ];
    let at = dice.below(bytes.len() + 1);
    match dice.below(7) {
        0 => bytes.truncate(at),
        1 => drop(bytes.splice(at..at, dice.pick(ODD).iter().copied())),
        2 => drop(bytes.drain(at..(at + 1 + dice.below(8)).min(bytes.len()).max(at))),
        3 => {
            // Numbers, as nobody writes them.
            let digit = bytes[at..].iter().position(u8::is_ascii_digit).map(|found| at + found);
            if let Some(digit) = digit {
                bytes.splice(digit..=digit, dice.pick(&ODD[18..24]).iter().copied());
            }
        }
        4 => {
            bytes.truncate(at);
            bytes.extend_from_slice(&other[dice.below(other.len() + 1)..]);
        }
        5 => {
            bytes.push(SEPARATOR);
            bytes.extend_from_slice(other);
        }
        _ => {
            if let Some(byte) = bytes.get_mut(at) {
                *byte ^= 1 << dice.below(8);
            }
        }
    }
    bytes
}

/// The shortest input found that fails in the same way: pieces are left out while it goes on failing.
pub(crate) fn shrink(bytes: &[u8], fails: impl Fn(&[u8]) -> bool) -> Vec<u8> {
    let mut least = bytes.to_vec();
    let mut length = least.len().div_ceil(2);
    while length > 0 {
        let mut at = 0;
        while at < least.len() {
            let end = (at + length).min(least.len());
            let without = [&least[..at], &least[end..]].concat();
            if fails(&without) { least = without } else { at = end }
        }
        length /= 2;
    }
    least
}
