//! What a template's functions amount to, as far as that can be known from outside.
//!
//! Nothing is guessed: what cannot be known is [`UNKNOWN`], and so is every text that it is a part of.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use base64::Engine as _;
use driftline_core::Value;

use crate::declared::{UNKNOWN, has_unknown, is_unknown};

/// How deep functions may lead from one to the next: conditions name conditions.
const DEEPEST: u32 = 200;

/// What the functions of a template look things up in.
#[derive(Debug, Default)]
pub(super) struct Scope {
    /// Parameters, pseudo parameters and resources by name, with what a `Ref` of them is.
    pub refs: BTreeMap<String, Value>,
    /// What is known of attributes, by resource and name.
    pub attributes: BTreeMap<(String, String), Value>,
    pub mappings: BTreeMap<String, Value>,
    pub conditions: BTreeMap<String, Value>,
    pub exports: BTreeMap<String, String>,
    /// How the conditions that were asked for turned out; none while one is being asked for.
    pub decided: RefCell<BTreeMap<String, Option<bool>>>,
    pub depth: Cell<u32>,
    /// How many bytes may still come of functions that repeat what is written once.
    pub room: Cell<usize>,
    /// Whether that was not enough.
    pub is_short: Cell<bool>,
}

/// A value that is not known, and why.
pub(super) fn unknown(why: impl Into<String>) -> Value {
    Value::from([(UNKNOWN, Value::from(why.into()))])
}

const TOO_MUCH: &str = "far more would come of this than is written";

/// What a pseudo parameter that takes a member away is called.
const NO_VALUE: &str = "AWS::NoValue";

impl Scope {
    /// The value with its functions resolved; none where it is `AWS::NoValue`.
    pub(super) fn resolve(&self, value: &Value) -> Option<Value> {
        if self.depth.get() >= DEEPEST {
            return Some(unknown("functions lead too deep"));
        }
        self.depth.set(self.depth.get() + 1);
        let resolved = self.resolve_here(value);
        self.depth.set(self.depth.get() - 1);
        resolved
    }

    fn resolve_here(&self, value: &Value) -> Option<Value> {
        match value {
            Value::String(text) if text.contains("{{resolve:") => Some(unknown("a dynamic reference")),
            Value::Array(items) => Some(Value::Array(items.iter().filter_map(|item| self.resolve(item)).collect())),
            Value::Object(members) => {
                let function = members.keys().find(|name| name.starts_with("Fn::"));
                match (members.len(), members.first_key_value(), function) {
                    (1, Some((name, of)), _) if name == "Ref" => self.reference(of),
                    (1, Some((name, of)), Some(_)) => self.call(name, of),
                    (_, _, Some(name)) => Some(unknown(format!("{} among other members", shortened(name)))),
                    _ => {
                        let resolved = members
                            .iter()
                            .filter_map(|(name, member)| self.resolve(member).map(|member| (name.clone(), member)));
                        Some(Value::Object(resolved.collect()))
                    }
                }
            }
            value => Some(value.clone()),
        }
    }

    fn reference(&self, of: &Value) -> Option<Value> {
        match of.as_str() {
            Some(NO_VALUE) => None,
            Some(name) => Some(self.named(name)),
            None => Some(unknown("a Ref of something that is not a name")),
        }
    }

    fn named(&self, name: &str) -> Value {
        match self.refs.get(name) {
            Some(value) => self.copied(value),
            None => unknown(format!("Ref {}", shortened(name))),
        }
    }

    fn attribute(&self, resource: &str, attribute: &str) -> Value {
        match self.attributes.get(&(resource.to_owned(), attribute.to_owned())) {
            Some(value) => self.copied(value),
            None => unknown(format!("GetAtt {}.{}", shortened(resource), shortened(attribute))),
        }
    }

    /// What is written once may be asked for often: there is an end to how much of it is made.
    fn copied(&self, value: &Value) -> Value {
        if self.fits(size(value)) { value.clone() } else { unknown(TOO_MUCH) }
    }

    fn fits(&self, bytes: usize) -> bool {
        match self.room.get().checked_sub(bytes) {
            Some(left) => {
                self.room.set(left);
                true
            }
            None => {
                self.is_short.set(true);
                false
            }
        }
    }

    fn text(&self, text: String) -> Value {
        if self.fits(text.len()) {
            // What was put together may be what no part of it was.
            if text.contains("{{resolve:") { unknown("a dynamic reference") } else { Value::from(text) }
        } else {
            unknown(TOO_MUCH)
        }
    }

    fn call(&self, name: &str, of: &Value) -> Option<Value> {
        Some(match name {
            "Fn::If" => return self.choose(of),
            "Fn::GetAtt" => self.get_att(of),
            "Fn::Sub" => self.substitute(of),
            "Fn::Join" => self.join(of),
            "Fn::Select" => self.select(of),
            "Fn::Split" => self.split(of),
            "Fn::FindInMap" => self.find_in_map(of),
            "Fn::Base64" => match self.known_text(of) {
                Ok(text) => self.text(base64::engine::general_purpose::STANDARD.encode(text)),
                Err(why) => why,
            },
            "Fn::ImportValue" => match self.known_text(of) {
                Ok(name) => match self.exports.get(&name) {
                    Some(value) => self.text(value.clone()),
                    None => unknown("an import of another stack's export"),
                },
                Err(why) => why,
            },
            name => unknown(shortened(name)),
        })
    }

    fn choose(&self, of: &Value) -> Option<Value> {
        let Some([Value::String(condition), yes, no]) = of.as_array() else {
            return Some(unknown("an If that is not a condition and two values"));
        };
        match self.condition(condition) {
            Some(true) => self.resolve(yes),
            Some(false) => self.resolve(no),
            None => {
                // It is the same either way.
                let (yes, no) = (self.resolve(yes), self.resolve(no));
                if yes == no { yes } else { Some(unknown(format!("the condition {}", shortened(condition)))) }
            }
        }
    }

    fn get_att(&self, of: &Value) -> Value {
        match of {
            Value::String(text) => match text.split_once('.') {
                Some((resource, attribute)) => self.attribute(resource, attribute),
                None => unknown("a GetAtt without an attribute"),
            },
            Value::Array(items) => match items.as_slice() {
                [Value::String(resource), attribute] => match self.known_text(attribute) {
                    Ok(attribute) => self.attribute(resource, &attribute),
                    Err(why) => why,
                },
                _ => unknown("a GetAtt that is not a resource and an attribute"),
            },
            _ => unknown("a GetAtt that is not a resource and an attribute"),
        }
    }

    fn substitute(&self, of: &Value) -> Value {
        let none = BTreeMap::new();
        let (text, own) = match of {
            Value::String(text) => (text, &none),
            Value::Array(items) => match items.as_slice() {
                [Value::String(text)] => (text, &none),
                [Value::String(text), Value::Object(own)] => (text, own),
                _ => return unknown("a Sub that is not a text and its values"),
            },
            _ => return unknown("a Sub that is not a text and its values"),
        };
        // Each once, however often it is asked for.
        let own: BTreeMap<&str, Option<Value>> =
            own.iter().map(|(name, value)| (name.as_str(), self.resolve(value))).collect();
        let mut whole = String::new();
        let mut rest = text.as_str();
        while let Some((before, after)) = rest.split_once("${") {
            let Some((name, after)) = after.split_once('}') else { break };
            whole.push_str(before);
            rest = after;
            if let Some(literal) = name.strip_prefix('!') {
                whole.extend(["${", literal, "}"]);
                continue;
            }
            let name = name.trim();
            let value = match (own.get(name), name.split_once('.')) {
                (Some(value), _) => value.clone(),
                (None, Some((resource, attribute))) => Some(self.attribute(resource, attribute)),
                (None, None) => self.reference(&Value::from(name)),
            };
            match scalar(value) {
                Ok(part) if self.fits(part.len()) => whole.push_str(&part),
                Ok(_) => return unknown(TOO_MUCH),
                Err(why) => return why,
            }
        }
        whole.push_str(rest);
        self.text(whole)
    }

    fn join(&self, of: &Value) -> Value {
        let Some([Value::String(between), list]) = of.as_array() else {
            return unknown("a Join that is not a text and a list");
        };
        let items = match self.known_list(list) {
            Ok(items) => items,
            Err(why) => return why,
        };
        let mut parts = Vec::new();
        let mut length = 0;
        for item in items {
            match scalar(Some(item)) {
                Ok(part) => parts.push(part),
                Err(why) => return why,
            }
            length += between.len() + parts.last().map_or(0, String::len);
        }
        // Asked before it is made: what stands between may be long.
        if length > self.room.get() {
            self.is_short.set(true);
            return unknown(TOO_MUCH);
        }
        self.text(parts.join(between))
    }

    fn select(&self, of: &Value) -> Value {
        let Some([at, list]) = of.as_array() else { return unknown("a Select that is not a number and a list") };
        let at = match self.known_text(at) {
            Ok(at) => at,
            Err(why) => return why,
        };
        // A list of which one part is not known has others that are.
        let items = match self.known_list(list) {
            Ok(items) => items,
            Err(why) => return why,
        };
        match at.parse::<usize>().ok().and_then(|at| items.into_iter().nth(at)) {
            Some(item) => item,
            None => unknown("a Select of what is not in the list"),
        }
    }

    fn split(&self, of: &Value) -> Value {
        let Some([Value::String(between), text]) = of.as_array() else {
            return unknown("a Split that is not a text and a text");
        };
        match self.known_text(text) {
            Ok(_) if between.is_empty() => unknown("a Split by nothing"),
            Ok(text) => {
                let parts = text.matches(between.as_str()).count() + 1;
                if !self.fits(text.len() + parts * size_of::<Value>()) {
                    return unknown(TOO_MUCH);
                }
                Value::Array(text.split(between.as_str()).map(Value::from).collect())
            }
            Err(why) => why,
        }
    }

    fn find_in_map(&self, of: &Value) -> Value {
        let (names, default) = match of.as_array() {
            Some([map, first, second]) => ([map, first, second], None),
            Some([map, first, second, Value::Object(more)]) => ([map, first, second], more.get("DefaultValue")),
            _ => return unknown("a FindInMap that is not a map and two names"),
        };
        let mut at: Option<&Value> = None;
        for (number, name) in names.into_iter().enumerate() {
            let name = match self.known_text(name) {
                Ok(name) => name,
                Err(why) => return why,
            };
            at = if number == 0 { self.mappings.get(&name) } else { at.and_then(|at| at.get(&name)) };
        }
        match (at, default) {
            (Some(value), _) => self.copied(value),
            (None, Some(default)) => self.resolve(default).unwrap_or_else(|| unknown("a default of nothing")),
            (None, None) => unknown("a FindInMap of what is not in the map"),
        }
    }

    fn known_text(&self, value: &Value) -> Result<String, Value> {
        scalar(self.resolve(value))
    }

    /// The items of a list, some of which may be unknown.
    fn known_list(&self, value: &Value) -> Result<Vec<Value>, Value> {
        match self.resolve(value) {
            Some(Value::Array(items)) => Ok(items),
            Some(value) if is_unknown(&value) => Err(value),
            _ => Err(unknown("what is not a list")),
        }
    }

    /// Whether a condition holds, if that can be known.
    pub(super) fn condition(&self, name: &str) -> Option<bool> {
        if let Some(decided) = self.decided.borrow().get(name) {
            return *decided;
        }
        let of = self.conditions.get(name)?;
        // A condition that leads back to itself is never decided.
        self.decided.borrow_mut().insert(name.to_owned(), None);
        let holds = self.holds(of);
        self.decided.borrow_mut().insert(name.to_owned(), holds);
        holds
    }

    fn holds(&self, of: &Value) -> Option<bool> {
        if self.depth.get() >= DEEPEST {
            return None;
        }
        self.depth.set(self.depth.get() + 1);
        let holds = self.holds_here(of);
        self.depth.set(self.depth.get() - 1);
        holds
    }

    fn holds_here(&self, of: &Value) -> Option<bool> {
        let members = of.as_object().filter(|members| members.len() == 1)?;
        let (name, of) = members.first_key_value()?;
        match (name.as_str(), of) {
            ("Condition", Value::String(name)) => self.condition(name),
            ("Fn::Not", Value::Array(items)) if items.len() == 1 => self.holds(&items[0]).map(|holds| !holds),
            ("Fn::And", Value::Array(items)) => self.all(items, false),
            ("Fn::Or", Value::Array(items)) => self.all(items, true),
            ("Fn::Equals", Value::Array(items)) if items.len() == 2 => {
                let [left, right] = [0, 1].map(|at| self.resolve(&items[at]));
                let (left, right) = (left?, right?);
                if has_unknown(&left) || has_unknown(&right) {
                    return None;
                }
                Some(match (scalar(Some(left.clone())), scalar(Some(right.clone()))) {
                    // `true` and "true" are the same to CloudFormation.
                    (Ok(left), Ok(right)) => left == right,
                    _ => left == right,
                })
            }
            _ => None,
        }
    }

    /// Whether one of them is `decisive`, or none; nothing if that hangs on one that is not known.
    fn all(&self, items: &[Value], decisive: bool) -> Option<bool> {
        let found: Vec<Option<bool>> = items.iter().map(|item| self.holds(item)).collect();
        if found.contains(&Some(decisive)) {
            Some(decisive)
        } else if found.contains(&None) {
            None
        } else {
            Some(!decisive)
        }
    }
}

/// The text of what is a text, a number or a truth value; what is unknown stays that.
fn scalar(value: Option<Value>) -> Result<String, Value> {
    match value {
        Some(Value::String(text)) => Ok(text),
        Some(Value::Number(number)) => Ok(number.to_string()),
        Some(Value::Bool(is)) => Ok(is.to_string()),
        Some(value) if is_unknown(&value) => Err(value),
        _ => Err(unknown("what is not a text")),
    }
}

/// About how many bytes a value takes.
fn size(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len() + size_of::<Value>(),
        Value::Array(items) => items.iter().map(size).sum::<usize>() + size_of::<Value>(),
        Value::Object(members) => {
            members.iter().map(|(name, member)| name.len() + size(member)).sum::<usize>() + size_of::<Value>()
        }
        _ => size_of::<Value>(),
    }
}

/// A name for a message: no longer than names are.
pub(super) fn shortened(name: &str) -> String {
    name.chars().take(255).collect()
}
