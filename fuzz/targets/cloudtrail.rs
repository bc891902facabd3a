#![no_main]

#[path = "../../crates/driftline-sources/tests/fuzz/targets.rs"]
#[expect(dead_code, reason = "the other targets, and what only the tests ask")]
mod targets;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| targets::fuzz_cloudtrail(bytes));
