//! Development harness.
#![allow(
    clippy::all,
    clippy::pedantic,
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    clippy::allow_attributes_without_reason
)]
use driftline_core::Value;
use driftline_sources::declared::{Engine, Options, compare};
use std::io::BufRead;
fn main() {
    let heur = std::env::args().any(|a| a == "-h");
    let verbose = std::env::args().any(|a| a == "-v");
    let engine = Engine::default();
    let options = Options { heuristics: heur, transforms: &[], engine: &engine };
    let file = std::fs::File::open("/tmp/dl.jsonl").unwrap();
    let (mut cases, mut false_cases, mut false_findings, mut expected_all, mut kept) = (0, 0, 0, 0, 0);
    for line in std::io::BufReader::new(file).lines() {
        let case: Value = serde_json::from_str(&line.unwrap()).unwrap();
        let kind = case.get("type").unwrap().as_str().unwrap();
        let found = compare(kind, case.get("declared").unwrap(), case.get("live").unwrap(), &options);
        if verbose {
            for e in &found.excused {
                if matches!(e.tier, driftline_sources::declared::Tier::Heuristic) {
                    println!("H {} | {} | {}", e.rule, kind, e.path);
                }
                if std::env::args().any(|a| a == "-t") && matches!(e.tier, driftline_sources::declared::Tier::Transform)
                {
                    println!("T {} | {} | {:?}", kind, e.path, e.detail);
                }
            }
        }
        let expected: Vec<String> = case
            .get("expected")
            .unwrap()
            .as_array()
            .unwrap()
            .iter()
            .map(|e| format!("/{}", e.get("path").unwrap().as_str().unwrap().replace('.', "/")))
            .collect();
        cases += 1;
        let mut bad = Vec::new();
        for d in &found.differences {
            let p = d.path.to_string();
            if !expected.iter().any(|e| p == *e || p.starts_with(&format!("{e}/")) || e.starts_with(&format!("{p}/"))) {
                bad.push(d);
            }
        }
        for e in &expected {
            expected_all += 1;
            if found.differences.iter().any(|d| {
                let p = d.path.to_string();
                p == *e || p.starts_with(&format!("{e}/")) || e.starts_with(&format!("{p}/"))
            }) {
                kept += 1
            } else {
                println!("MISSED {} {} {e}", case.get("case").unwrap().as_str().unwrap(), kind)
            }
        }
        false_findings += bad.len();
        if !bad.is_empty() {
            false_cases += 1;
            if verbose {
                println!("== {} {}", kind, case.get("case").unwrap().as_str().unwrap());
                for d in bad.iter().take(4) {
                    let s = |v: &Option<Value>| {
                        v.as_ref().map_or("-".to_string(), |v| {
                            let j = v.to_json();
                            j.chars().take(140).collect()
                        })
                    };
                    println!("   {} {:?}: {}  =>  {}", d.path, d.what, s(&d.expected), s(&d.actual));
                }
            }
        }
    }
    println!("cases {cases} false cases {false_cases} findings {false_findings} expected {kept}/{expected_all}");
}
