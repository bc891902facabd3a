//! `/_fake/…`: how a test in another process talks to the proxy.

use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde_json::json;

use crate::dialect::Answer;
use crate::fixture::Fixture;
use crate::proxy::{Shared, now};
use crate::rules::Rule;

pub(crate) fn answer(shared: &Shared, method: &str, path: &str, body: &Bytes) -> Answer {
    let done = || Answer::new(200, "application/json", json!({"ok": true}).to_string());
    match (method, path) {
        ("GET", "/_fake/health") => done(),
        ("GET", "/_fake/calls") => {
            let calls = shared.state().calls.list();
            match serde_json::to_vec(&calls) {
                Ok(body) => Answer::new(200, "application/json", body),
                Err(error) => refused(&error.to_string()),
            }
        }
        ("DELETE", "/_fake/calls") => {
            shared.state().calls.clear();
            done()
        }
        ("PUT", "/_fake/rules") => given(body, |rules: Vec<Rule>| shared.state().rules.replace(rules, now())),
        ("POST", "/_fake/rules") => given(body, |rule: Rule| shared.state().rules.add(rule, now())),
        ("DELETE", "/_fake/rules") => {
            shared.state().rules.replace(Vec::new(), now());
            done()
        }
        ("PUT", "/_fake/fixtures") => given(body, |fixtures: Vec<Fixture>| shared.state().fixtures = fixtures),
        ("DELETE", "/_fake/fixtures") => {
            shared.state().fixtures.clear();
            done()
        }
        _ => Answer::new(
            404,
            "text/plain",
            format!(
                "{method} {path} is not one of: GET /_fake/health, GET and DELETE \
            /_fake/calls, PUT, POST and DELETE /_fake/rules, PUT and DELETE /_fake/fixtures\n"
            ),
        ),
    }
}

fn given<T: DeserializeOwned>(body: &[u8], take: impl FnOnce(T)) -> Answer {
    match serde_json::from_slice(body) {
        Ok(value) => {
            take(value);
            Answer::new(200, "application/json", json!({"ok": true}).to_string())
        }
        Err(error) => refused(&error.to_string()),
    }
}

fn refused(why: &str) -> Answer {
    Answer::new(400, "text/plain", format!("{why}\n"))
}
