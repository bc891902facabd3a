//! How often what was asked, and what came of it.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value as Json;

use crate::dialect::Answer;
use crate::request::{Asked, element};

/// Calls that are alike.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Call {
    pub service: String,
    pub operation: String,
    pub region: String,
    pub account: String,
    /// `ok`; `error CODE` if the emulator or a fixture said no; `injected NAME` if a rule did.
    pub outcome: String,
}

/// The same, counted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Counted {
    #[serde(flatten)]
    pub call: Call,
    pub calls: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Calls {
    counts: BTreeMap<Call, u64>,
}

impl Calls {
    pub(crate) fn count(&mut self, asked: &Asked, account: &str, outcome: String) {
        let call = Call {
            service: asked.service.clone(),
            operation: asked.operation.clone(),
            region: asked.region.clone(),
            account: account.to_owned(),
            outcome,
        };
        *self.counts.entry(call).or_default() += 1;
    }

    pub(crate) fn list(&self) -> Vec<Counted> {
        self.counts.iter().map(|(call, calls)| Counted { call: call.clone(), calls: *calls }).collect()
    }

    pub(crate) fn clear(&mut self) {
        self.counts.clear();
    }
}

/// What an answer that no rule made comes to.
pub(crate) fn outcome(answer: &Answer) -> String {
    if answer.status < 400 {
        return "ok".to_owned();
    }
    let text = String::from_utf8_lossy(&answer.body);
    let in_header = answer.headers.iter().find(|(name, _)| name == "x-amzn-errortype").map(|(_, value)| value.clone());
    let in_json = || Some(serde_json::from_str::<Json>(&text).ok()?.get("__type")?.as_str()?.to_owned());
    let code = in_header.or_else(|| element(&text, "Code").map(str::to_owned)).or_else(in_json);
    // `com.amazonaws.sqs#QueueDoesNotExist:http://…` is `QueueDoesNotExist`.
    let code = code.as_deref().and_then(|code| code.split(':').next()).and_then(|code| code.rsplit('#').next());
    format!("error {}", code.map_or_else(|| answer.status.to_string(), str::to_owned))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_code_of_an_error_is_found_in_every_dialect() {
        let mut rest = Answer::new(404, "application/json", r#"{"message":"no"}"#);
        rest.headers.push(("x-amzn-errortype".to_owned(), "ResourceNotFoundException:http://x".to_owned()));
        let rows = [
            (Answer::new(200, "text/xml", "<Code>no</Code>"), "ok"),
            (Answer::new(400, "text/xml", "<Error><Code>Throttling</Code></Error>"), "error Throttling"),
            (Answer::new(400, "x", r#"{"__type":"com.amazonaws.sqs#QueueDoesNotExist"}"#), "error QueueDoesNotExist"),
            (rest, "error ResourceNotFoundException"),
            (Answer::new(502, "text/html", "<html>"), "error 502"),
        ];
        for (answer, expected) in rows {
            assert_eq!(outcome(&answer), expected);
        }
    }
}
