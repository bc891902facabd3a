//! Evaluates lines of `{"expr", "data"}` over and over, and prints what one evaluation costs: `bench/jsonata/run.py`.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::io::Write;

use jsonata::{Expression, Input, Limits};
use serde_json::Value;

fn main() -> Result<(), Box<dyn Error>> {
    let limits = Limits::default();
    let mut arguments = std::env::args().skip(1);
    let (Some(file), Some(rounds)) = (arguments.next(), arguments.next()) else {
        return Err("usage: throughput FILE ROUNDS".into());
    };
    let lines = fs::read_to_string(file)?;
    let mut expressions: BTreeMap<String, Expression> = BTreeMap::new();
    let mut cases = Vec::new();
    for line in lines.lines() {
        let line: Value = serde_json::from_str(line)?;
        let text = line["expr"].as_str().unwrap_or_default();
        if !expressions.contains_key(text) {
            expressions.insert(text.to_owned(), Expression::parse(text, &limits)?);
        }
        cases.push((expressions[text].clone(), Input::new(&line["data"], &limits)?));
    }
    let mut best = u64::MAX;
    let mut values = 0;
    for _ in 0..rounds.parse::<u32>()? {
        let start = spent()?;
        values = cases.iter().filter(|(expression, input)| expression.evaluate(input, &[], &limits).is_ok()).count();
        best = best.min(spent()? - start);
    }
    let each = best / cases.len() as u64;
    writeln!(std::io::stdout(), "{{\"nanoseconds\": {each}, \"evaluations\": {}, \"values\": {values}}}", cases.len())?;
    Ok(())
}

/// Nanoseconds that this thread was on a CPU. On a busy machine the wall clock tells little.
fn spent() -> Result<u64, Box<dyn Error>> {
    let text = fs::read_to_string("/proc/thread-self/schedstat")?;
    Ok(text.split_whitespace().next().unwrap_or_default().parse()?)
}
