//! What an event names: identifiers in what was asked for and what was answered, and nothing else of it.

use std::collections::BTreeMap;

use driftline_core::Value;

/// How many things of one event are kept.
const MOST: usize = 64;
const LONGEST: usize = 256;

/// Ends of the names of members whose values name things.
const NAMING: [&str; 10] = ["id", "ids", "name", "names", "arn", "arns", "identifier", "identifiers", "url", "urn"];

/// Members that name a thing by the word for it.
const NAMING_WHOLE: [&str; 7] = ["rule", "resource", "bucket", "cluster", "service", "taskdefinition", "loadbalancer"];

/// Words in the names of members that hold, or may hold, what proves who someone is.
const SECRET: [&str; 9] = [
    "password",
    "token",
    "credential",
    "accesskey",
    "privatekey",
    "authorization",
    "signature",
    "cookie",
    "secretstring",
];

/// Members whose insides are written by users, and may hold anything under any name.
const OPAQUE: [&str; 20] = [
    "environment",
    "environmentvariables",
    "variables",
    "userdata",
    "tags",
    "tagset",
    "tagspecificationset",
    "parameters",
    "policy",
    "policydocument",
    "definition",
    "definitionstring",
    "template",
    "templatebody",
    "code",
    "payload",
    "content",
    "headers",
    "secretstring",
    "item",
];

/// Identifiers by the member they were found in; each once, the first in order.
#[derive(Debug, Default)]
pub(super) struct Mentions {
    found: BTreeMap<String, String>,
}

impl Mentions {
    pub(super) fn collect(&mut self, value: &Value) {
        self.walk("", value);
    }

    fn walk(&mut self, member: &str, value: &Value) {
        match value {
            Value::Object(members) => {
                for (name, value) in members {
                    let lower = name.to_ascii_lowercase();
                    let secret = SECRET.iter().any(|word| lower.contains(word));
                    // The id of the request itself names nothing that lasts.
                    if !secret && lower != "requestid" && !OPAQUE.contains(&lower.as_str()) {
                        self.walk(name, value);
                    }
                }
            }
            Value::Array(items) => items.iter().for_each(|item| self.walk(member, item)),
            Value::String(text) => self.text(member, text),
            _ => {}
        }
    }

    fn text(&mut self, member: &str, text: &str) {
        let names = is_arn(text) || is_resource_id(text) || (is_naming(member) && is_identifier(text));
        if !names || text.len() > LONGEST {
            return;
        }
        let known = self.found.get(text);
        // The same thing under several names: which is kept does not depend on the order they came in.
        if known.is_none_or(|known| member < known.as_str()) {
            self.found.insert(text.to_owned(), member.to_owned());
        }
    }

    /// What was found, and how much more there was.
    pub(super) fn told(self) -> Option<(Value, u64)> {
        if self.found.is_empty() {
            return None;
        }
        let more = self.found.len().saturating_sub(MOST) as u64;
        let kept = self.found.into_iter().take(MOST).map(|(text, member)| (text, Value::String(member)));
        Some((Value::Object(kept.collect()), more))
    }
}

/// Names of members are words of an API: what has other characters in it was named by a user.
fn is_naming(member: &str) -> bool {
    if member.is_empty() || !member.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return false;
    }
    let lower = member.to_ascii_lowercase();
    NAMING_WHOLE.contains(&lower.as_str()) || NAMING.iter().any(|end| lower.ends_with(end))
}

fn is_arn(text: &str) -> bool {
    text.starts_with("arn:") && text.splitn(6, ':').count() == 6 && !text.contains(char::is_whitespace)
}

/// `sg-0123456789abcdef0`, `vpc-1a2b3c4d`, wherever it stands.
fn is_resource_id(text: &str) -> bool {
    text.rsplit_once('-').is_some_and(|(kind, hex)| {
        (1..=20).contains(&kind.len())
            && kind.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-')
            && [8, 17].contains(&hex.len())
            && hex.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
    })
}

/// Something that could be a name: short, in one piece, and not a number.
fn is_identifier(text: &str) -> bool {
    // Of addresses only AWS's own: others may hold a password, or be one.
    if let Some((_, rest)) = text.split_once("://") {
        let host = rest.split('/').next().unwrap_or_default();
        if !(host.ends_with(".amazonaws.com") || host.ends_with(".amazonaws.com.cn")) || host.contains('@') {
            return false;
        }
    }
    let fits = |char: char| char.is_ascii_alphanumeric() || "._:/@+=,-#$~".contains(char);
    (1..=LONGEST).contains(&text.len())
        && text.chars().all(fits)
        && !text.bytes().all(|byte| byte.is_ascii_digit() && text.len() < 6)
        && !["true", "false", "null"].contains(&text)
}
