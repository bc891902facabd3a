//! Compares lines of `{"type", "declared", "live"}` over and over, and prints what one pair costs; or prints what the
//! schemas say of their types, so that others can compare them, too: `bench/compare/run.py`.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::io::Write;

use driftline_core::{Pattern, Value};
use driftline_sources::declared::{Engine, Options, compare};
use driftline_sources::schema;
use serde_json::json;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(file), Some(rounds)) = (arguments.next(), arguments.next()) else {
        return Err("usage: compare FILE ROUNDS|facts".into());
    };
    let mut pairs = Vec::new();
    for line in fs::read_to_string(file)?.lines() {
        let Value::Object(mut line) = serde_json::from_str(line)? else { return Err("a line is not an object".into()) };
        let mut side = |name: &str| line.remove(name).ok_or_else(|| format!("a line has no {name}"));
        let (Value::String(kind), declared, live) = (side("type")?, side("declared")?, side("live")?) else {
            return Err("a type is not a text".into());
        };
        pairs.push((kind, declared, live));
    }
    if rounds == "facts" {
        let facts: BTreeMap<&str, _> = pairs.iter().map(|(kind, ..)| (kind.as_str(), facts(kind))).collect();
        return Ok(serde_json::to_writer(std::io::stdout(), &facts)?);
    }
    let engine = Engine::default();
    let options = Options { heuristics: false, without: &[], transforms: &[], engine: &engine };
    let modified = || pairs.iter().filter(|(kind, declared, live)| !same(kind, declared, live, &options)).count();
    // The first round reads facts and parses expressions.
    let mut counted = modified();
    let rounds: u64 = rounds.parse()?;
    let start = spent()?;
    for _ in 0..rounds {
        counted = modified();
    }
    let each = (spent()? - start) / rounds.max(1);
    let properties: usize = pairs.iter().map(|(_, declared, _)| leaves(declared)).sum();
    let told = json!({"nanoseconds": each, "pairs": pairs.len(), "properties": properties, "modified": counted});
    Ok(writeln!(std::io::stdout(), "{told}")?)
}

fn same(kind: &str, declared: &Value, live: &Value, options: &Options<'_>) -> bool {
    compare(kind, declared, live, options).differences.is_empty()
}

fn leaves(value: &Value) -> usize {
    match value {
        Value::Object(members) => members.values().map(leaves).sum(),
        Value::Array(items) => items.iter().map(leaves).sum(),
        _ => 1,
    }
}

fn facts(kind: &str) -> serde_json::Value {
    let Some(facts) = schema::facts(kind) else { return json!({}) };
    let paths = |paths: &[Pattern]| paths.iter().map(ToString::to_string).collect::<Vec<_>>();
    let transforms = facts.transforms.iter().map(|one| json!([one.path.to_string(), one.alternatives]));
    let defaults = facts.defaults.iter().map(|(path, value)| json!([path.to_string(), value]));
    let scalars: Vec<String> = facts.scalars.iter().map(|(path, _)| path.to_string()).collect();
    json!({
        "writeOnly": paths(&facts.write_only),
        "readOnly": paths(&facts.read_only),
        "unordered": paths(&facts.unordered),
        "attributeLists": paths(&facts.attribute_lists),
        "tags": facts.tags.as_ref().map(ToString::to_string),
        "scalars": scalars,
        "notReadBack": paths(&[&facts.create_only[..], &facts.required, &facts.deprecated].concat()),
        "defaults": defaults.collect::<Vec<_>>(),
        "transforms": transforms.collect::<Vec<_>>(),
    })
}

/// Nanoseconds that this thread was on a CPU, counted every few milliseconds. On a busy machine the wall clock tells
/// little.
fn spent() -> Result<u64, Box<dyn Error>> {
    let text = fs::read_to_string("/proc/thread-self/schedstat")?;
    Ok(text.split_whitespace().next().unwrap_or_default().parse()?)
}
