//! States that real runs of Terraform wrote, where they are at hand.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value as Json;

use super::types::{Naming, naming};
use crate::normalize::testing::recorded;
use crate::normalize::{Context, Document, Listing, Model};

/// The types of the recorded states that have no row.
const UNMAPPED: [&str; 0] = [];

fn normalized(state: &Json) -> Listing {
    let context = Context { source: "terraform/recorded".parse().unwrap(), account: None, partition: "aws".into() };
    let text = state.to_string();
    let document = Document { name: "recorded", bytes: text.as_bytes(), written_at: None };
    let mut listings = Model::Terraform.normalize(&[document], &context).unwrap();
    assert_eq!(listings.len(), 1);
    listings.swap_remove(0)
}

/// The same state with its resources, and the instances of each, the other way round.
fn reversed(state: &Json) -> Json {
    let mut state = state.clone();
    let resources = state["resources"].as_array_mut().unwrap();
    resources.reverse();
    for resource in resources {
        resource["instances"].as_array_mut().unwrap().reverse();
    }
    state
}

#[test]
#[expect(clippy::print_stderr, reason = "says what was counted, or that nothing was")]
fn recorded_states_are_understood() {
    let Some(lines) = recorded("terraform_states.jsonl.zst") else { return };
    let (mut states, mut resources, mut problems) = (0, 0, BTreeSet::new());
    let mut managed: BTreeMap<String, usize> = BTreeMap::new();
    for line in lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        let case: Json = serde_json::from_slice(line).unwrap();
        let (name, state) = (&case["case"], &case["state"]);
        let listing = normalized(state);
        assert_eq!(listing, normalized(&reversed(state)), "{name}: the order of resources matters");
        let mut instances = 0;
        for resource in state["resources"].as_array().unwrap().iter().filter(|it| it["mode"] == "managed") {
            let kind = resource["type"].as_str().unwrap();
            instances += resource["instances"].as_array().unwrap().len();
            *managed.entry(kind.to_owned()).or_default() += 1;
            let told = listing.problems.iter().any(|problem| problem.about == kind);
            assert!(naming(kind) != Naming::Unknown || told, "{name}: {kind} has neither a row nor a problem");
        }
        assert_eq!(listing.items, instances, "{name}");
        for key in listing.resources.keys() {
            assert!(!key.kind.is_empty() && !key.place.as_str().is_empty() && !key.id.is_empty(), "{name}: {key:?}");
        }
        states += 1;
        resources += listing.resources.len();
        problems.extend(
            listing.problems.into_iter().map(|problem| format!("{name} {}: {}", problem.about, problem.message)),
        );
    }
    let unmapped: Vec<&String> = managed.keys().filter(|kind| naming(kind) == Naming::Unknown).collect();
    eprintln!("{states} states, {} types, {resources} resources; without a row: {unmapped:?}", managed.len());
    for problem in problems {
        eprintln!("{problem}");
    }
    assert!(states > 0);
    assert_eq!(unmapped, UNMAPPED, "write a row for each, or name it above");
}
