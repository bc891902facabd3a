//! A short run of the fuzz targets: every seed, cut at every byte, and some thousand mutants of them, always the same.
//!
//! `DRIFTLINE_FUZZ_ITERATIONS=100000 cargo test -p driftline-sources --test fuzz` tries longer; `scripts/fuzz` lets
//! coverage guide it.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use driftline_sources::normalize::Listing;
use driftline_sources::shuffle::{Dice, shuffle_lists, write_shuffled};
use serde_json::Value as Json;

mod hostile;
mod mutate;
mod targets;

use targets::{SEPARATOR, Target};

/// Mutants for each target.
const ITERATIONS: u64 = 500;

/// Seeds up to this size are cut at every byte.
const CUT: usize = 1200;

/// One at a time: all count their memory in one place.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

#[expect(clippy::disallowed_methods, reason = "a test is told by its environment")]
fn iterations() -> u64 {
    std::env::var("DRIFTLINE_FUZZ_ITERATIONS").map_or(ITERATIONS, |text| text.parse().unwrap())
}

/// Asked for at run time: a target folder that several clones share may hold a test built in another one.
#[expect(clippy::disallowed_methods, reason = "cargo says where the tree is")]
fn seeds(target: &Target) -> Vec<Vec<u8>> {
    let folder = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").unwrap()).join("tests/fuzz/corpus");
    let files = std::fs::read_dir(folder.join(target.name)).unwrap();
    let mut files: Vec<PathBuf> = files.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(!files.is_empty(), "{} has no seeds", target.name);
    files.iter().map(|file| std::fs::read(file).unwrap()).collect()
}

/// What is wrong with what comes of these bytes, if something is.
fn failure(fuzz: fn(&[u8]), bytes: &[u8]) -> Option<String> {
    let panic = catch_unwind(AssertUnwindSafe(|| fuzz(bytes))).err()?;
    let text = panic.downcast_ref::<String>().cloned();
    Some(text.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string)).unwrap_or_default())
}

fn try_one(fuzz: fn(&[u8]), bytes: &[u8], origin: &str) {
    if let Some(reason) = failure(fuzz, bytes) {
        let least = mutate::shrink(bytes, |bytes| failure(fuzz, bytes).is_some());
        panic!("{origin}: {reason}\nthe least input that fails: \"{}\"", least.escape_ascii());
    }
}

/// Tables that are made once are no part of what an input needs.
fn warm(target: &Target, seeds: &[Vec<u8>]) {
    for seed in seeds {
        target.measure(seed);
    }
}

/// The smoke run of one target.
fn smoke(target: &Target, fuzz: fn(&[u8])) {
    let _alone = alone();
    let seeds = seeds(target);
    warm(target, &seeds);
    for (number, seed) in seeds.iter().enumerate() {
        try_one(fuzz, seed, &format!("seed {number}"));
        let ends = if seed.len() <= CUT { 0..seed.len() } else { 0..0 };
        ends.for_each(|end| try_one(fuzz, &seed[..end], &format!("seed {number} cut at byte {end}")));
    }
    for iteration in 0..iterations() {
        let mutant = mutate::mutant(&seeds, &mut Dice(iteration));
        try_one(fuzz, &mutant, &format!("iteration {iteration}"));
    }
}

#[test]
fn adopt_stands_any_bytes() {
    smoke(&targets::ADOPT, targets::fuzz_adopt);
}

#[test]
fn inventory_stands_any_bytes() {
    smoke(&targets::INVENTORY, targets::fuzz_inventory);
}

#[test]
fn config_stands_any_bytes() {
    smoke(&targets::CONFIG, targets::fuzz_config);
}

#[test]
fn dns_stands_any_bytes() {
    smoke(&targets::DNS, targets::fuzz_dns);
}

#[test]
fn event_topology_stands_any_bytes() {
    smoke(&targets::EVENT_TOPOLOGY, targets::fuzz_event_topology);
}

#[test]
fn terraform_stands_any_bytes() {
    smoke(&targets::TERRAFORM, targets::fuzz_terraform);
}

#[test]
fn cloudformation_stands_any_bytes() {
    smoke(&targets::CLOUDFORMATION, targets::fuzz_cloudformation);
}

#[test]
fn cloudtrail_stands_any_bytes() {
    smoke(&targets::CLOUDTRAIL, targets::fuzz_cloudtrail);
}

#[test]
fn kubernetes_stands_any_bytes() {
    smoke(&targets::KUBERNETES, targets::fuzz_kubernetes);
}

#[test]
fn a_mapping_stands_any_bytes() {
    smoke(&targets::MAPPED, targets::fuzz_mapped);
}

#[test]
fn the_files_of_a_datastore_stand_any_bytes() {
    smoke(&targets::SWAMP, targets::fuzz_swamp);
}

#[test]
fn a_plain_observation_stands_any_bytes() {
    smoke(&targets::PLAIN, targets::fuzz_plain);
}

#[test]
fn every_seed_is_understood() {
    let _alone = alone();
    for target in targets::ALL {
        let understood = seeds(&target).iter().filter(|seed| target.measure(seed).1 > 0).count();
        // One seed of config is what is not an observation.
        assert!(understood + 1 >= seeds(&target).len(), "{}", target.name);
    }
}

/// All that a listing says; which document something came in is for messages.
fn faces(listings: &[Listing]) -> Vec<String> {
    let face = |listing: &Listing| {
        let resources =
            listing.resources.iter().map(|(key, found)| (key, found.properties.to_json(), &found.sensitive));
        let resources: Vec<_> = resources.collect();
        let Listing { scope, taken_at, coverage, problems, items, .. } = listing;
        format!("{scope:?} {taken_at:?} {coverage:?} {problems:?} {items} {resources:?}")
    };
    listings.iter().map(face).collect()
}

#[test]
fn another_order_of_the_same_document_is_the_same_listing() {
    let _alone = alone();
    for target in targets::ALL {
        for (number, seed) in seeds(&target).iter().enumerate() {
            let Some(Ok(expected)) = target.listings(seed) else { continue };
            // A template may be YAML, and only JSON is written otherwise here.
            if seed.split(|byte| *byte == SEPARATOR).any(|part| serde_json::from_slice::<Json>(part).is_err()) {
                continue;
            }
            for round in 0..16 {
                let mut dice = Dice(round);
                let write = |part: &[u8]| {
                    let mut document: Json = serde_json::from_slice(part).unwrap();
                    shuffle_lists(&mut document, &mut dice);
                    write_shuffled(&document, &mut dice).into_bytes()
                };
                let parts: Vec<Vec<u8>> = seed.split(|byte| *byte == SEPARATOR).map(write).collect();
                let found = target.listings(&parts.join(&SEPARATOR)).unwrap().unwrap();
                assert_eq!(faces(&found), faces(&expected), "{}, seed {number}, round {round}", target.name);
            }
        }
    }
}

/// Says of each document that needs more than so many times itself, how much it needs.
fn too_large(
    documents: impl IntoIterator<Item = (Target, String, Vec<u8>)>,
    times: impl Fn(&Target) -> usize,
) -> Vec<String> {
    let mut found = Vec::new();
    for (target, what, document) in documents {
        warm(&target, &seeds(&target));
        let (peak, resources) = target.measure(&document);
        if peak > times(&target) * document.len() + target.apart {
            let times = peak / document.len();
            found.push(format!(
                "{}, {what}: {times} times {} bytes, {resources} resources",
                target.name,
                document.len()
            ));
        }
    }
    found
}

#[test]
fn memory_is_a_small_multiple_of_the_input() {
    let _alone = alone();
    let mut documents: Vec<(Target, String, Vec<u8>)> = targets::ALL
        .map(|target| (target, "as observers write it".to_owned(), hostile::true_shaped(&target, 512 << 10)))
        .to_vec();
    documents.push((targets::TERRAFORM, "a plan".into(), hostile::plan(512 << 10)));
    for (target, what, document) in &documents {
        let least = if target.name == "swamp" { 1 } else { 100 };
        assert!(target.measure(document).1 >= least, "{}, {what}", target.name);
    }
    assert_eq!(too_large(documents, |target| target.times), [""; 0]);
}

#[test]
fn what_is_made_to_need_much_needs_no_more_than_a_multiple_of_the_input() {
    let _alone = alone();
    assert_eq!(too_large(hostile::documents(96 << 10), |target| target.worst), [""; 0]);
}
