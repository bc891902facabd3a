//! Files that are not what was written: `verify` finds every one, and nothing rests on them unnoticed.

use std::collections::BTreeMap;

use serde_json::{Value as Json, json};

use crate::support::{Sandbox, assert_untouched, copy_folder, essence, files, observation, thing};

fn things(changed: &[(u32, u32)]) -> Vec<Json> {
    let size = |at: u32| changed.iter().find(|(one, _)| *one == at).map_or(at, |(_, size)| *size);
    (0..40)
        .map(|at| thing(&format!("thing-{at}"), json!({"size": size(at), "name": format!("name of {at}")})))
        .collect()
}

/// A store with two versions, a full image and a change file, and a baseline.
fn stored() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.observe_things(0, &things(&[]));
    sandbox.run(["baseline", "set"]).succeeded();
    sandbox.observe_things(1, &things(&[(3, 99), (5, 98)])[1..]);
    sandbox
}

/// The same store with one byte of one file changed.
fn damaged(whole: &Sandbox, name: &str, at: usize, flip: u8) -> Sandbox {
    let sandbox = Sandbox::new();
    copy_folder(&whole.store(), &sandbox.store());
    let path = sandbox.store().join(name);
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[at] ^= flip;
    std::fs::write(path, bytes).unwrap();
    sandbox
}

/// Offsets spread over a file: its ends, and some between.
fn offsets(length: usize, count: usize) -> Vec<usize> {
    let mut offsets: Vec<usize> = (0..count).map(|at| at * (length - 1) / (count - 1)).collect();
    offsets.dedup();
    offsets
}

fn parquet_files(store: &Sandbox) -> BTreeMap<String, Vec<u8>> {
    let mut found = files(&store.store());
    found.retain(|name, _| name.ends_with(".parquet"));
    found
}

#[test]
fn verify_names_the_damaged_file_and_in_parquet_the_byte() {
    let whole = stored();
    for (name, bytes) in essence(&whole.store()) {
        // A record of the log is tried byte by byte to find the bad one, which takes a moment.
        let count = if name.starts_with("_delta_log") { 6 } else { 12 };
        for at in offsets(bytes.len(), count) {
            for flip in [0x01, 0x80] {
                let sandbox = damaged(&whole, &name, at, flip);
                let ran = sandbox.run(["verify"]).refused(&["damaged", &name]);
                if name.ends_with(".parquet") {
                    ran.says(&[&format!("the first bad byte is byte {at} ")]);
                }
            }
        }
    }
}

#[test]
fn verify_finds_a_file_that_was_cut_or_grew() {
    let whole = stored();
    for (name, bytes) in essence(&whole.store()) {
        for length in [0, 1, bytes.len() / 2, bytes.len() - 1, bytes.len() + 1] {
            let sandbox = Sandbox::new();
            copy_folder(&whole.store(), &sandbox.store());
            let mut other = bytes.clone();
            other.resize(length, b'\n');
            std::fs::write(sandbox.store().join(&name), other).unwrap();
            let ran = sandbox.run(["verify"]);
            assert_eq!(ran.code, 1, "`{name}` has {length} bytes instead of {}, and is called sound", bytes.len());
            ran.refused(&["damaged", &name]);
        }
    }
}

#[test]
fn verify_finds_damage_in_what_is_derived_and_answers_do_not_need_it() {
    let sandbox = Sandbox::new();
    let many = |size: u32| (0..300).map(|at| thing(&format!("t{at}"), json!({"size": size}))).collect::<Vec<_>>();
    sandbox.observe_things(0, &many(0));
    sandbox.run(["baseline", "set"]).succeeded();
    for at in 1..70 {
        sandbox.observe_things(at, &many(at % 5));
    }
    sandbox.drift([]);
    let answer = |sandbox: &Sandbox| sandbox.drift([])["resources"].clone();
    let derived: Vec<String> = files(&sandbox.store()).into_keys().filter(|name| name.starts_with("view/")).collect();
    assert!(derived.iter().any(|name| name.starts_with("view/catalog/")), "{derived:?}");
    assert!(derived.iter().any(|name| name.starts_with("view/net/")), "{derived:?}");
    for name in derived {
        let length = std::fs::metadata(sandbox.store().join(&name)).unwrap().len();
        for at in offsets(usize::try_from(length).unwrap(), 4) {
            let damaged = damaged(&sandbox, &name, at, 0x10);
            damaged.run(["verify"]).refused(&["damaged", &name, "delete it"]);
            assert_eq!(answer(&damaged), answer(&sandbox), "byte {at} of {name}");
            damaged.observe_things(100, &many(7));
        }
        let gone = Sandbox::new();
        copy_folder(&sandbox.store(), &gone.store());
        std::fs::remove_file(gone.store().join(&name)).unwrap();
        gone.run(["verify"]).succeeded();
        assert_eq!(answer(&gone), answer(&sandbox), "without {name}");
    }
}

#[test]
fn verify_misses_no_file() {
    let whole = stored();
    let last = essence(&whole.store()).into_keys().rfind(|name| name.starts_with("_delta_log/")).unwrap();
    for name in essence(&whole.store()).into_keys() {
        // The last record of the log is what makes the last version; without it there is none.
        if name == last {
            continue;
        }
        let sandbox = Sandbox::new();
        copy_folder(&whole.store(), &sandbox.store());
        std::fs::remove_file(sandbox.store().join(&name)).unwrap();
        let ran = sandbox.run(["verify"]);
        assert_eq!(ran.code, 1, "verify does not miss `{name}`");
        ran.refused(&[&name]);
    }
}

#[test]
fn a_commit_over_a_damaged_file_does_not_spread_the_damage() {
    let whole = stored();
    let next = observation(2, &things(&[(3, 97), (5, 98), (7, 96)])[2..]);
    let mut wrong = Vec::new();
    for (name, bytes) in parquet_files(&whole) {
        for at in offsets(bytes.len(), 60) {
            let sandbox = damaged(&whole, &name, at, 0x11);
            let before = essence(&sandbox.store());
            let ran = sandbox.observe(&next);
            if ran.code == 1 {
                ran.refused(&[&name]);
                assert_untouched(&sandbox.store(), &before);
                continue;
            }
            if ran.code != 0 {
                wrong.push(format!("byte {at} of {name}: exit {}", ran.code));
                continue;
            }
            // It was committed. With the file put back from a copy, all must be well.
            std::fs::write(sandbox.store().join(&name), &bytes).unwrap();
            if sandbox.run(["verify"]).code != 0 {
                wrong.push(format!("byte {at} of {name}: it spread"));
            }
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}

#[test]
fn no_answer_rests_on_a_damaged_file() {
    let whole = stored();
    let questions: [&[&str]; 4] = [
        &["drift", "--all", "--exit-zero"],
        &["history", "thing-3"],
        &["explain", "thing-3"],
        &["velocity", "--at", "2026-01-02"],
    ];
    let ask = |sandbox: &Sandbox, question: &[&str]| sandbox.run(["-o", "json"].iter().chain(question));
    let timeless = |mut answer: Json| {
        answer.as_object_mut().unwrap().remove("computedAt");
        answer
    };
    let answers: Vec<Json> = questions.iter().map(|question| timeless(ask(&whole, question).json())).collect();
    let mut wrong = Vec::new();
    for (name, bytes) in parquet_files(&whole) {
        for at in offsets(bytes.len(), 40) {
            let sandbox = damaged(&whole, &name, at, 0x11);
            for (question, answer) in questions.iter().zip(&answers) {
                let ran = ask(&sandbox, question);
                match ran.code {
                    0 if timeless(ran.json()) == *answer => {}
                    1 if ran.err.contains(&name) => {}
                    code => wrong.push(format!("{question:?}, byte {at} of {name}: exit {code}")),
                }
            }
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}
