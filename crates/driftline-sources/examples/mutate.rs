//! Development harness.
#![allow(
    clippy::all,
    clippy::pedantic,
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    clippy::allow_attributes_without_reason
)]
use driftline_core::{Pointer, Value};
use driftline_sources::declared::{Engine, Options, compare};
use std::io::BufRead;
struct Dice(u64);
impl Dice {
    fn roll(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e3779b97f4a7c15);
        let m = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58476d1ce4e5b9);
        let m = (m ^ (m >> 27)).wrapping_mul(0x94d049bb133111eb);
        ((m ^ (m >> 31)) % n.max(1) as u64) as usize
    }
}
fn places(d: &Value, l: &Value, at: Pointer, out: &mut Vec<(Pointer, bool)>) {
    match (d, l) {
        (Value::Object(a), Value::Object(b)) => {
            for (k, v) in a {
                if let Some(w) = b.get(k) {
                    places(v, w, at.child(k.as_str()), out);
                }
            }
        }
        (Value::Array(a), Value::Array(b)) => {
            if !a.is_empty() {
                out.push((at.clone(), true));
            }
            for (i, v) in a.iter().enumerate() {
                if let Some(w) = b.get(i) {
                    if v == w || !matches!(v, Value::Object(_) | Value::Array(_)) && a.len() == 1 {
                        places(v, w, at.child(i.to_string()), out);
                    }
                }
            }
        }
        (a, b) if a == b => out.push((at, false)),
        _ => {}
    }
}
fn main() {
    let heur = std::env::args().any(|a| a == "-h");
    let engine = Engine::default();
    let options = Options { heuristics: heur, transforms: &[], engine: &engine };
    let file = std::fs::File::open("/tmp/dl.jsonl").unwrap();
    let mut dice = Dice(7);
    let (mut all, mut hit) = (0, 0);
    let mut missed = std::collections::BTreeMap::new();
    let cases: Vec<Value> =
        std::io::BufReader::new(file).lines().map(|l| serde_json::from_str(&l.unwrap()).unwrap()).collect();
    while all < 10000 {
        let case = &cases[dice.roll(cases.len())];
        let kind = case.get("type").unwrap().as_str().unwrap();
        let (d, l) = (case.get("declared").unwrap(), case.get("live").unwrap());
        let mut out = Vec::new();
        places(d, l, Pointer::root(), &mut out);
        if out.is_empty() {
            continue;
        }
        let (at, array) = out[dice.roll(out.len())].clone();
        let mut live = l.clone();
        let old = at.find(l).unwrap().clone();
        let (what, new) = match (&old, array) {
            (Value::Array(items), true) => {
                let mut items = items.clone();
                let declared: Vec<Value> =
                    at.find(d).unwrap().as_array().unwrap().iter().filter(|v| items.contains(v)).cloned().collect();
                if declared.is_empty() {
                    continue;
                }
                let one = declared[dice.roll(declared.len())].clone();
                if dice.roll(2) == 0 {
                    let i = items.iter().position(|v| *v == one).unwrap();
                    items.remove(i);
                    ("removed", Value::Array(items))
                } else {
                    let mut e = one;
                    change(&mut e, &mut dice);
                    items.push(e);
                    ("added", Value::Array(items))
                }
            }
            _ => {
                let mut v = old.clone();
                change(&mut v, &mut dice);
                ("value", v)
            }
        };
        if new == old {
            continue;
        }
        at.set(&mut live, Some(new.clone()));
        let before = compare(kind, d, l, &options).differences.len();
        let found = compare(kind, d, &live, &options);
        all += 1;
        let p = at.to_string();
        let ok = found.differences.iter().any(|x| {
            let q = x.path.to_string();
            q == p || q.starts_with(&format!("{p}/")) || p.starts_with(&format!("{q}/"))
        });
        let _ = before;
        if ok {
            hit += 1
        } else {
            let why = found
                .excused
                .iter()
                .filter(|e| {
                    let q = e.path.to_string();
                    q == p || q.starts_with(&format!("{p}/")) || p.starts_with(&format!("{q}/"))
                })
                .map(|e| format!("{:?} {}", e.tier, e.rule))
                .collect::<Vec<_>>()
                .join(",");
            *missed.entry((what, why)).or_insert(Vec::new()) = {
                let mut v: Vec<String> = missed.get(&(what, String::new())).cloned().unwrap_or_default();
                v.truncate(0);
                v
            };
            println!(
                "M {what} | {kind} | {p} | {} -> {} | {}",
                old.to_json().chars().take(50).collect::<String>(),
                new.to_json().chars().take(50).collect::<String>(),
                found
                    .excused
                    .iter()
                    .filter(|e| {
                        let q = e.path.to_string();
                        q == p || q.starts_with(&format!("{p}/")) || p.starts_with(&format!("{q}/"))
                    })
                    .map(|e| format!("{:?} {}", e.tier, e.rule))
                    .collect::<Vec<_>>()
                    .join(",")
            );
        }
    }
    println!("recall {hit}/{all}");
}
fn change(v: &mut Value, dice: &mut Dice) {
    match v {
        Value::Object(m) => {
            let k: Vec<String> = m.keys().cloned().collect();
            if k.is_empty() {
                m.insert("zz".into(), Value::from("x"));
            } else {
                let k = &k[dice.roll(k.len())];
                change(m.get_mut(k).unwrap(), dice);
            }
        }
        Value::Array(a) => {
            if a.is_empty() {
                a.push(Value::from("zz"));
            } else {
                let i = dice.roll(a.len());
                change(&mut a[i], dice);
            }
        }
        Value::String(s) => s.push_str("-mut"),
        Value::Number(n) => *v = Value::Number((n.as_integer().unwrap_or(5) as i64 + 1).into()),
        Value::Bool(b) => *v = Value::Bool(!*b),
        Value::Null => *v = Value::from("mut"),
    }
}
