//! Answers for what no emulator answers, given as data.
//!
//! The files in `fixtures/` are written by hand from the public API references. None is a recording.

use bytes::Bytes;
use serde::Deserialize;
use serde_json::Value as Json;

use crate::dialect::{Answer, Refusal, Said, say, words};
use crate::request::{Asked, Protocol};
use crate::rules::Match;

/// A file of fixtures.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct File {
    /// Where it is from, in words; a file that does not say is refused.
    pub origin: String,
    pub fixtures: Vec<Fixture>,
}

/// One answer, or one listing.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fixture {
    #[serde(rename = "match")]
    pub matching: Match,
    /// Parameters that the request must have, with these values (`{account}` and `{region}` are filled in).
    #[serde(default, rename = "where")]
    pub parameters: std::collections::BTreeMap<String, String>,
    #[serde(flatten)]
    pub content: Content,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Content {
    /// A JSON document.
    Json(Json),
    /// An XML document.
    Xml(String),
    Refuse(Refusal),
    Error(Said),
    Listing(Box<Listing>),
}

/// A listing with the limits that the service really has.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Listing {
    /// The member that holds the items; of an XML listing the texts before and after them.
    #[serde(default)]
    pub items: String,
    #[serde(default)]
    pub head: String,
    #[serde(default)]
    pub tail: String,
    /// Items as they are.
    #[serde(default)]
    pub entries: Vec<Json>,
    /// Items made from one: `{n}`, `{account}` and `{region}` are filled in.
    #[serde(default)]
    pub template: Json,
    #[serde(default)]
    pub count: usize,
    /// Other members; `"$total"` and `"$complete"` are filled in.
    #[serde(default)]
    pub envelope: Json,
    pub page: Limits,
}

/// What a service does at the ends of pages.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// Items on a page if the client does not say.
    pub default: usize,
    /// Items on a page at most.
    pub max: usize,
    /// The parameter of the size, if there is one.
    pub size_in: Option<String>,
    #[serde(default = "next_token")]
    pub token_in: String,
    #[serde(default = "next_token")]
    pub token_out: String,
    /// No more than so many items can be read at all; the rest is silently not there.
    pub cap: Option<usize>,
    /// A page of this size has no token, whatever is left (Resource Explorer `ListResources` at 1,000).
    pub no_token_at: Option<usize>,
    /// Without the size parameter there is no token (SQS `ListQueues`).
    #[serde(default)]
    pub token_needs_size: bool,
}

fn next_token() -> String {
    "NextToken".to_owned()
}

impl Fixture {
    /// The answer to this request, if the fixture is about it.
    pub(crate) fn answer(&self, asked: &Asked, account: &str) -> Option<Answer> {
        let given = |(name, value): (&String, &String)| asked.parameter(name) == Some(fill(value, 0, asked, account));
        if !self.matching.covers(asked, account) || !self.parameters.iter().all(given) {
            return None;
        }
        Some(match &self.content {
            Content::Json(body) => Answer::new(200, json_kind(asked), fill(&body.to_string(), 0, asked, account)),
            Content::Xml(body) => Answer::new(200, "text/xml", fill(body, 0, asked, account)),
            Content::Refuse(refusal) => say(asked, &words(asked, *refusal)),
            Content::Error(said) => say(asked, said),
            Content::Listing(listing) => match listing.page(asked, account) {
                Some(body) if listing.head.is_empty() => Answer::new(200, json_kind(asked), body),
                Some(body) => Answer::new(200, "text/xml", body),
                None => say(asked, &words(asked, Refusal::BadToken)),
            },
        })
    }
}

fn json_kind(asked: &Asked) -> &'static str {
    match asked.protocol {
        Protocol::Json10 => "application/x-amz-json-1.0",
        Protocol::Json11 => "application/x-amz-json-1.1",
        _ => "application/json",
    }
}

/// Fills in what a text leaves open. `{tail:Name}` is what follows the last slash of that parameter of the request.
fn fill(text: &str, n: usize, asked: &Asked, account: &str) -> String {
    let mut filled =
        text.replace("{n}", &n.to_string()).replace("{account}", account).replace("{region}", &asked.region);
    while let Some((before, rest)) = filled.split_once("{tail:") {
        let Some((name, after)) = rest.split_once('}') else { break };
        let value = asked.parameter(name).unwrap_or_default();
        filled = format!("{before}{}{after}", value.rsplit('/').next().unwrap_or_default());
    }
    filled
}

const TOKEN: &str = "fakefixture-";

impl Listing {
    /// One page; nothing if the token was not given out here.
    fn page(&self, asked: &Asked, account: &str) -> Option<Bytes> {
        let limits = &self.page;
        let total = self.entries.len() + self.count;
        let reachable = limits.cap.map_or(total, |cap| cap.min(total));
        let start: usize = match asked.parameter(&limits.token_in).filter(|token| !token.is_empty()) {
            None => 0,
            Some(token) => token.strip_prefix(TOKEN)?.parse().ok()?,
        };
        let asked_size = limits.size_in.as_ref().and_then(|name| asked.parameter(name)?.parse::<usize>().ok());
        let size = asked_size.unwrap_or(limits.default).clamp(1, limits.max);
        let end = (start + size).min(reachable);
        let silent = limits.no_token_at == Some(size) || (limits.token_needs_size && asked_size.is_none());
        let token = (end < reachable && !silent).then(|| format!("{TOKEN}{end}"));
        let template = match &self.template {
            Json::String(text) => text.clone(),
            other => other.to_string(),
        };
        let item = |n: usize| match self.entries.get(n) {
            Some(Json::String(text)) if !self.head.is_empty() => fill(text, n, asked, account),
            Some(entry) => fill(&entry.to_string(), n, asked, account),
            None if self.head.is_empty() && self.template.is_string() => {
                Json::String(fill(&template, n, asked, account)).to_string()
            }
            None => fill(&template, n, asked, account),
        };
        let items: Vec<String> = (start.min(end)..end).map(item).collect();
        if !self.head.is_empty() {
            let token = token.map(|token| format!("<{0}>{token}</{0}>", limits.token_out)).unwrap_or_default();
            return Some(Bytes::from(format!(
                "{}{}{}",
                self.head,
                items.concat(),
                self.tail.replace("{token}", &token)
            )));
        }
        let mut members = vec![format!("{}:[{}]", Json::String(self.items.clone()), items.join(","))];
        if let Some(others) = self.envelope.as_object() {
            for (name, value) in others {
                let complete = (reachable == total).to_string();
                let value = value.to_string().replace("\"$total\"", &reachable.to_string());
                let value = fill(&value.replace("\"$complete\"", &complete), 0, asked, account);
                members.push(format!("{}:{value}", Json::String(name.clone())));
            }
        }
        members.extend(token.map(|token| format!("\"{}\":\"{token}\"", limits.token_out)));
        Some(Bytes::from(format!("{{{}}}", members.join(","))))
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::request::tests::ask;

    fn queues(body: &Json) -> Json {
        let fixture: Fixture = serde_json::from_value(json!({
            "match": {"service": "sqs", "operation": "ListQueues"},
            "listing": {
                "items": "QueueUrls", "template": "https://sqs.{region}.amazonaws.com/{account}/q{n}", "count": 1_100,
                "page": {"default": 1_000, "max": 1_000, "size_in": "MaxResults", "token_needs_size": true},
            },
        }))
        .unwrap();
        let asked = ask("sqs", &[("x-amz-target", "AmazonSQS.ListQueues")], "POST", "/", &body.to_string());
        serde_json::from_slice(&fixture.answer(&asked, "1").unwrap().body).unwrap()
    }

    #[test]
    fn queues_are_silently_cut_unless_a_size_is_given() {
        let short = queues(&json!({}));
        assert_eq!(short["QueueUrls"].as_array().unwrap().len(), 1_000);
        assert!(short.get("NextToken").is_none());
        let first = queues(&json!({"MaxResults": 1_000}));
        assert_eq!(first["QueueUrls"][7], "https://sqs.eu-west-1.amazonaws.com/1/q7");
        let rest = queues(&json!({"MaxResults": 1_000, "NextToken": first["NextToken"]}));
        assert_eq!(rest["QueueUrls"].as_array().unwrap().len(), 100);
        assert!(rest.get("NextToken").is_none());
    }

    #[test]
    fn a_search_stops_at_its_cap_and_says_so_only_in_its_count() {
        let file: File = serde_json::from_str(include_str!("../fixtures/resource-explorer.json")).unwrap();
        let mut token = Json::Null;
        let mut seen = 0;
        loop {
            let body = json!({"QueryString": "", "MaxResults": 400, "NextToken": token});
            let asked = ask("resource-explorer-2", &[], "POST", "/Search", &body.to_string());
            let answer = file.fixtures.iter().find_map(|one| one.answer(&asked, "1")).unwrap();
            let body: Json = serde_json::from_slice(&answer.body).unwrap();
            seen += body["Resources"].as_array().unwrap().len();
            assert_eq!(body["Count"], json!({"Complete": false, "TotalResources": 1_000}));
            match body.get("NextToken") {
                Some(next) => token = next.clone(),
                None => break,
            }
        }
        assert_eq!(seen, 1_000);
    }

    #[test]
    fn every_fixture_file_says_that_it_is_written_by_hand() {
        for text in [
            include_str!("../fixtures/resource-explorer.json"),
            include_str!("../fixtures/cloud-control.json"),
            include_str!("../fixtures/config.json"),
            include_str!("../fixtures/cloudtrail.json"),
            include_str!("../fixtures/sqs.json"),
        ] {
            let file: File = serde_json::from_str(text).unwrap();
            assert!(file.origin.starts_with("hand-written"), "{}", file.origin);
            assert!(!file.fixtures.is_empty());
        }
    }
}
