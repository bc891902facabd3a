//! `doctor --determinism`: a normalizer is given the same documents in other orders, other spellings and other
//! pieces, and must make the same of them.

use driftline_sources::normalize::{Context, Document, Listing, Model, NormalizeError};
use driftline_sources::shuffle::{Dice, cut, shuffle_lists, write_shuffled};
use serde_json::Value as Json;

use crate::documents;
use crate::error::{CommandError, CommandResult};
use crate::output::count;
use crate::settings::Settings;
use crate::upkeep::Plain;

/// How often each is tried.
const ROUNDS: u64 = 32;

pub(crate) fn run(settings: &Settings, named: &[String], model: Option<&str>) -> CommandResult<()> {
    let texts = documents::read_all(named)?;
    let context = Context {
        source: "determinism".parse().expect("a good name"),
        account: Some("123456789012".into()),
        partition: "aws".into(),
    };
    let normalize = |model: Model, texts: &[String]| {
        let documents =
            texts.iter().map(|text| Document { name: "document", bytes: text.as_bytes(), written_at: None });
        model.normalize(&documents.collect::<Vec<_>>(), &context)
    };
    let mut originals = Vec::new();
    for text in &texts {
        let original = String::from_utf8(text.bytes.clone())
            .map_err(|_| CommandError::new(format!("`{}` is not UTF-8", text.name)))?;
        originals.push(original);
    }
    let model = match model {
        Some(name) => Model::ALL.into_iter().find(|known| known.name() == name).ok_or_else(|| {
            let names = Model::ALL.map(Model::name).join(", ");
            CommandError::new(format!("`{name}` is not a model")).hint(format!("the models are {names}"))
        })?,
        None => recognise(|model| normalize(model, &originals).map(|listings| resources(&listings)))?,
    };
    // A template may be YAML, which says nothing about whether it comes out the same.
    if model == Model::CloudFormation {
        let is_json = |text: &String| serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok();
        if let Some(at) = originals.iter().position(|text| !is_json(text)) {
            return Err(CommandError::new(format!("`{}` is YAML, and only JSON can be shuffled", texts[at].name))
                .hint("`aws cloudformation get-template` prints JSON"));
        }
    }
    let proof = prove(&originals, |texts| normalize(model, texts)).map_err(|error| {
        error.about(format!("the normalizer of {} is not deterministic on this input", model.name()))
    })?;
    let text = format!(
        "result: {} is deterministic here: {} from {}, the same in {} shuffled orders and {} ways to cut them up",
        model.name(),
        count(proof.resources, "resource"),
        count(texts.len(), "document"),
        proof.shuffles,
        proof.cuts
    );
    let json = serde_json::json!({
        "schema": "driftline.determinism/v1", "deterministic": true, "model": model.name(),
        "documents": texts.len(), "resources": proof.resources, "shuffles": proof.shuffles, "cuts": proof.cuts,
    });
    settings.printer.print(&Plain { json, lines: vec![text] })
}

/// The one model that understands the documents.
fn recognise(normalize: impl Fn(Model) -> Result<usize, NormalizeError>) -> CommandResult<Model> {
    let fitting: Vec<(Model, usize)> =
        Model::ALL.into_iter().filter_map(|model| Some((model, normalize(model).ok()?))).collect();
    match fitting.as_slice() {
        [(model, _)] => Ok(*model),
        [] => Err(CommandError::new("no model understands this document")
            .hint("`--model NAME` tells why a certain one does not")),
        several => {
            let names: Vec<&str> = several.iter().map(|(model, _)| model.name()).collect();
            Err(CommandError::new(format!("several models understand this document: {}", names.join(", ")))
                .hint("`--model NAME` says which one is meant"))
        }
    }
}

fn resources(listings: &[Listing]) -> usize {
    listings.iter().map(|listing| listing.resources.len()).sum()
}

#[derive(Debug, PartialEq, Eq)]
struct Proof {
    resources: usize,
    shuffles: u64,
    cuts: u64,
}

fn prove(
    originals: &[String],
    normalize: impl Fn(&[String]) -> Result<Vec<Listing>, NormalizeError>,
) -> CommandResult<Proof> {
    let failed = |error: NormalizeError| CommandError::new(error.to_string());
    let expected = normalize(originals).map_err(failed)?;
    let mut parsed = Vec::new();
    for original in originals {
        let value: Json = serde_json::from_str(original)
            .map_err(|error| CommandError::new(format!("it is not one JSON document: {error}")))?;
        parsed.push(value);
    }
    let mut cuts = 0;
    for round in 0..ROUNDS {
        let mut dice = Dice(round);
        let mut documents = parsed.clone();
        dice.shuffle(&mut documents);
        for document in &mut documents {
            shuffle_lists(document, &mut dice);
        }
        let write = |documents: &[Json], dice: &mut Dice| -> Vec<String> {
            documents.iter().map(|document| write_shuffled(document, dice)).collect()
        };
        let found = normalize(&write(&documents, &mut dice)).map_err(failed)?;
        compare(&expected, &found, true).map_err(|what| CommandError::new(what).about("given in another order"))?;
        let pieces: Vec<Json> = documents.iter().flat_map(|document| cut(document, &mut dice)).collect();
        if pieces.len() > documents.len() {
            cuts += 1;
            let found = normalize(&write(&pieces, &mut dice)).map_err(failed)?;
            // What a document vouches for, its pieces need not.
            compare(&expected, &found, false).map_err(|what| CommandError::new(what).about("given in pieces"))?;
        }
    }
    Ok(Proof { resources: resources(&expected), shuffles: ROUNDS, cuts })
}

fn compare(expected: &[Listing], found: &[Listing], wholly: bool) -> Result<(), String> {
    if expected.len() != found.len() {
        return Err(format!("{} listings came out, and {} before", found.len(), expected.len()));
    }
    for (expected, found) in expected.iter().zip(found) {
        let properties = |listing: &Listing, key| listing.resources.get(key).map(|found| found.properties.clone());
        for key in expected.resources.keys().chain(found.resources.keys()) {
            if properties(expected, key) != properties(found, key) {
                return Err(format!("`{}` ({}) comes out otherwise", key.id, key.kind));
            }
        }
        if wholly && expected.coverage != found.coverage {
            return Err("what it covers comes out otherwise".into());
        }
    }
    Ok(())
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    const GRAPH: &str = r#"{"accountId":"1","region":"r","nodes":[{"id":"a","type":"SNSTopic"},{"id":"b","type":"SQSQueue"},{"id":"c","type":"SQSQueue"}],"edges":[{"from":"a","to":"b","type":"subscription"},{"from":"a","to":"c","type":"subscription"}]}"#;

    fn normalize(texts: &[String]) -> Result<Vec<Listing>, NormalizeError> {
        let context = Context { source: "x".parse().unwrap(), account: None, partition: "aws".into() };
        let documents: Vec<Document<'_>> =
            texts.iter().map(|text| Document { name: "d", bytes: text.as_bytes(), written_at: None }).collect();
        Model::EventTopology.normalize(&documents, &context)
    }

    #[test]
    fn a_normalizer_that_does_not_care_for_order_is_proved_deterministic() {
        let proof = prove(&[GRAPH.to_owned()], normalize).unwrap();
        assert_eq!(proof, Proof { resources: 5, shuffles: ROUNDS, cuts: ROUNDS });
    }

    #[test]
    fn a_normalizer_that_takes_what_comes_first_is_found_out() {
        // Like the published extension: of several the first record counts.
        let first_wins = |texts: &[String]| {
            let mut listings = normalize(texts)?;
            let at = |id: &str| texts[0].find(&format!("\"id\":\"{id}\"")).unwrap_or(usize::MAX);
            if at("b") < at("c") {
                listings[0].resources.pop_last();
            }
            Ok(listings)
        };
        let error = prove(&[GRAPH.to_owned()], first_wins).unwrap_err().to_string();
        assert!(error.contains("comes out otherwise"), "{error}");
    }
}
