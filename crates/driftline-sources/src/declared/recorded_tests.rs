//! Recorded pairs of what was declared and what is live, where they are at hand; and what is missed when live is
//! changed at random.
#![expect(clippy::unwrap_used, clippy::print_stderr, reason = "tests")]

use std::collections::BTreeMap;

use driftline_core::{Pointer, Value};

use super::{Engine, Found, Options, compare};

/// Type, declared, live, and the places that differ.
type Case = (String, Value, Value, Vec<String>);

/// Recorded cases that lie beside the checkout.
fn recorded() -> Option<Vec<Case>> {
    let bytes = crate::normalize::testing::recorded("declared_live.jsonl.zst")?;
    let text = String::from_utf8(bytes).unwrap();
    let case = |line: &str| {
        let case: Value = serde_json::from_str(line).unwrap();
        let text = |value: &Value, name: &str| value.get(name).and_then(Value::as_str).unwrap().to_owned();
        let expected = case.get("expected").and_then(Value::as_array).unwrap();
        let expected = expected.iter().map(|one| format!("/{}", text(one, "path").replace('.', "/"))).collect();
        let side = |name: &str| case.get(name).unwrap().clone();
        (text(&case, "type"), side("declared"), side("live"), expected)
    };
    Some(text.lines().map(case).collect())
}

/// Whether something is told of a place, above it or beneath it.
fn told(found: &Found, place: &str) -> bool {
    found.differences.iter().any(|difference| overlap(&difference.path.to_string(), place))
}

fn overlap(a: &str, b: &str) -> bool {
    let within = |inner: &str, outer: &str| {
        inner.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    within(a, b) || within(b, a)
}

#[test]
fn equal_things_are_not_called_drifted_and_changed_ones_are() {
    let Some(cases) = recorded() else { return };
    let engine = Engine::default();
    for (heuristics, most) in [(false, 33), (true, 0)] {
        let options = Options { heuristics, without: &[], transforms: &[], engine: &engine };
        let mut noisy = Vec::new();
        for (kind, declared, live, expected) in &cases {
            let found = compare(kind, declared, live, &options);
            for place in expected {
                assert!(told(&found, place), "{kind} {place} is missed");
            }
            let extra = found
                .differences
                .iter()
                .find(|one| !expected.iter().any(|place| overlap(&one.path.to_string(), place)));
            noisy.extend(extra.map(|one| format!("{kind} {}", one.path)));
        }
        assert!(
            noisy.len() <= most,
            "{} of {} cases, with guesses: {heuristics}\n{}",
            noisy.len(),
            cases.len(),
            noisy.join("\n")
        );
    }
}

/// `SplitMix64`, so that a run can be had again.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % end.max(1) as u64).unwrap()
    }
}

/// Places that both sides have alike: leaves, and arrays.
fn places(declared: &Value, live: &Value, at: &Pointer, found: &mut Vec<Pointer>) {
    match (declared, live) {
        (Value::Object(left), Value::Object(right)) => {
            for (name, value) in left {
                if let Some(other) = right.get(name) {
                    places(value, other, &at.child(name.as_str()), found);
                }
            }
        }
        (Value::Array(left), Value::Array(right)) => {
            if left.iter().any(|item| right.contains(item)) {
                found.push(at.clone());
            }
            for (index, (value, other)) in left.iter().zip(right).enumerate() {
                if value == other {
                    places(value, other, &at.child(index.to_string()), found);
                }
            }
        }
        (left, right) if left == right => found.push(at.clone()),
        _ => {}
    }
}

fn change(value: &mut Value, dice: &mut Dice) {
    match value {
        Value::Object(members) => {
            let at = dice.below(members.len());
            match members.values_mut().nth(at) {
                Some(member) => change(member, dice),
                None => drop(members.insert("new".into(), "x".into())),
            }
        }
        Value::Array(items) => match items.len() {
            0 => items.push("new".into()),
            length => change(&mut items[dice.below(length)], dice),
        },
        Value::String(text) => text.push_str("-changed"),
        Value::Number(number) => *value = Value::from(i64::try_from(number.as_integer().unwrap_or(5)).unwrap_or(5) + 1),
        Value::Bool(truth) => *value = Value::Bool(!*truth),
        Value::Null => *value = "changed".into(),
    }
}

#[test]
fn a_change_at_random_is_told_at_its_place() {
    const MUTATIONS: usize = 10_000;
    // Without guesses nothing else may hide a change.
    const BY_DEFINITION: &[&str] = &["write-only", "attribute list", "transform"];
    let Some(cases) = recorded() else { return };
    let engine = Engine::default();
    for (heuristics, least) in [(false, 0.993), (true, 0.99)] {
        let options = Options { heuristics, without: &[], transforms: &[], engine: &engine };
        let (mut dice, mut done, mut missed) = (Dice(7), 0, Vec::new());
        let mut classes: BTreeMap<String, usize> = BTreeMap::new();
        while done < MUTATIONS {
            let (kind, declared, live, _) = &cases[dice.below(cases.len())];
            let mut all = Vec::new();
            places(declared, live, &Pointer::root(), &mut all);
            let Some(at) = all.get(dice.below(all.len())) else { continue };
            let mut changed = at.find(live).unwrap().clone();
            match (&mut changed, at.find(declared).unwrap()) {
                (Value::Array(items), Value::Array(declared)) => {
                    let both: Vec<&Value> = declared.iter().filter(|item| items.contains(item)).collect();
                    let one = both[dice.below(both.len())].clone();
                    if dice.below(2) == 0 {
                        items.remove(items.iter().position(|item| *item == one).unwrap());
                    } else {
                        let mut another = one;
                        change(&mut another, &mut dice);
                        items.push(another);
                    }
                }
                (leaf, _) => change(leaf, &mut dice),
            }
            let mut mutated = live.clone();
            at.set(&mut mutated, Some(changed));
            done += 1;
            let found = compare(kind, declared, &mutated, &options);
            if !told(&found, &at.to_string()) {
                let why = found.excused.iter().filter(|excuse| overlap(&excuse.path.to_string(), &at.to_string()));
                let why: Vec<&str> = why.map(|excuse| excuse.rule).collect();
                missed.push(format!("{kind} {at}: {}", why.join(", ")));
                let known = BY_DEFINITION.iter().find(|class| why.contains(class));
                assert!(heuristics || known.is_some(), "{kind} {at} was changed, and {why:?} hid it");
                *classes.entry(known.map_or_else(|| why.join(", "), ToString::to_string)).or_default() += 1;
            }
        }
        #[expect(clippy::cast_precision_loss, reason = "a share of a few thousand")]
        let recall = 1.0 - missed.len() as f64 / done as f64;
        assert!(recall >= least, "{recall}, with guesses: {heuristics}\n{}", missed.join("\n"));
        eprintln!("of {done} changes {recall} told, with guesses: {heuristics}; missed: {classes:?}");
    }
}
