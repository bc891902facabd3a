//! YAML as CloudFormation reads it: a tag is the short form of a function, and what a template spells oddly stays the
//! text that it is.

use std::collections::BTreeMap;

use driftline_core::value::MAX_DEPTH;
use driftline_core::{Number, Value};
use granit_parser::{Event, Parser, ScalarStyle, Tag};

/// No template that AWS takes is longer than one megabyte; a listing of a stack may be.
const LONGEST: usize = 8 << 20;

/// How many values aliases may make of a document besides its own.
const MOST_REPEATED: usize = 10_000;

/// Reads one document. The message has no part of the text in it.
pub(super) fn read(text: &str) -> Result<Value, String> {
    if text.len() > LONGEST {
        return Err(format!("it is longer than {LONGEST} bytes"));
    }
    let mut builder = Builder::default();
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| format!("line {}: it is not YAML", error.marker().line()))?;
        builder.take(event).map_err(|message| format!("line {}: {message}", span.start.line()))?;
    }
    builder.whole.ok_or_else(|| "it is empty".to_owned())
}

#[derive(Default)]
struct Builder {
    open: Vec<Open>,
    anchors: BTreeMap<usize, Value>,
    repeated: usize,
    whole: Option<Value>,
}

/// A list or an object that is being read.
struct Open {
    items: Items,
    anchor: usize,
    function: Option<String>,
}

enum Items {
    List(Vec<Value>),
    /// The members, and the name whose value comes next.
    Object(BTreeMap<String, Value>, Option<String>),
}

impl Builder {
    fn take(&mut self, event: Event<'_>) -> Result<(), String> {
        match event {
            Event::DocumentStart(..) if self.whole.is_some() => Err("there is a second document".to_owned()),
            Event::Scalar(text, style, anchor, tag) => {
                let plain = style == ScalarStyle::Plain && tag.is_none();
                let value = if plain { scalar(&text) } else { Value::from(text.into_owned()) };
                let name = function(tag.as_deref())?;
                self.done(called(name, value), anchor)
            }
            Event::SequenceStart(_, anchor, tag) => self.open(Items::List(Vec::new()), anchor, tag.as_deref()),
            Event::MappingStart(_, anchor, tag) => {
                self.open(Items::Object(BTreeMap::new(), None), anchor, tag.as_deref())
            }
            Event::SequenceEnd | Event::MappingEnd => {
                let Some(open) = self.open.pop() else { return Err("something ends that did not begin".to_owned()) };
                let value = match open.items {
                    Items::List(items) => Value::Array(items),
                    Items::Object(members, _) => Value::Object(members),
                };
                self.done(called(open.function, value), open.anchor)
            }
            Event::Alias(anchor) => {
                let Some(value) = self.anchors.get(&anchor) else { return Err("an alias of nothing".to_owned()) };
                self.repeated += count(value);
                if self.repeated > MOST_REPEATED {
                    return Err(format!("its aliases stand for more than {MOST_REPEATED} values"));
                }
                let value = value.clone();
                self.done(value, 0)
            }
            _ => Ok(()),
        }
    }

    fn open(&mut self, items: Items, anchor: usize, tag: Option<&Tag>) -> Result<(), String> {
        // A tag is a level of its own.
        let depth: usize = self.open.iter().map(|open| 1 + usize::from(open.function.is_some())).sum();
        if depth + 2 > MAX_DEPTH {
            return Err(format!("it is nested more than {MAX_DEPTH} levels deep"));
        }
        self.open.push(Open { items, anchor, function: function(tag)? });
        Ok(())
    }

    fn done(&mut self, value: Value, anchor: usize) -> Result<(), String> {
        if anchor != 0 {
            // Kept beside what it is of, so it counts like a repetition.
            self.repeated += count(&value);
            if self.repeated > MOST_REPEATED {
                return Err(format!("its aliases stand for more than {MOST_REPEATED} values"));
            }
            self.anchors.insert(anchor, value.clone());
        }
        let depth = self.open.len();
        match self.open.last_mut().map(|open| &mut open.items) {
            None => self.whole = Some(value),
            Some(_) if depth + levels(&value) > MAX_DEPTH => {
                return Err(format!("it is nested more than {MAX_DEPTH} levels deep"));
            }
            Some(Items::List(items)) => items.push(value),
            Some(Items::Object(members, name)) => match name.take() {
                Some(name) => drop(members.insert(name, value)),
                None => {
                    let key = match value {
                        Value::String(text) => text,
                        Value::Number(number) => number.to_string(),
                        Value::Bool(is) => is.to_string(),
                        _ => return Err("a name is not a text".to_owned()),
                    };
                    if key == "<<" {
                        return Err("hash merges (`<<`) are not known to CloudFormation".to_owned());
                    }
                    if members.contains_key(&key) {
                        return Err("a name appears twice in one object".to_owned());
                    }
                    *name = Some(key);
                }
            },
        }
        Ok(())
    }
}

/// The function that a tag is short for.
fn function(tag: Option<&Tag>) -> Result<Option<String>, String> {
    let Some(tag) = tag else { return Ok(None) };
    if tag.handle() != "!" {
        return match tag.core_suffix() {
            Some("str" | "map" | "seq" | "int" | "float" | "bool" | "null") => Ok(None),
            _ => Err("a tag is of a kind that CloudFormation does not know".to_owned()),
        };
    }
    match tag.suffix() {
        "" => Ok(None),
        name @ ("Ref" | "Condition") => Ok(Some(name.to_owned())),
        name if name.len() <= 32 && name.chars().all(|char| char.is_ascii_alphanumeric()) => {
            Ok(Some(format!("Fn::{name}")))
        }
        _ => Err("a tag is not the name of a function".to_owned()),
    }
}

fn called(function: Option<String>, value: Value) -> Value {
    let Some(function) = function else { return value };
    let value = match value {
        Value::String(text) if function == "Fn::GetAtt" => match text.split_once('.') {
            Some((resource, attribute)) => Value::from(vec![resource, attribute]),
            None => Value::String(text),
        },
        value => value,
    };
    Value::from([(function, value)])
}

/// A plain scalar. A number only where it is spelled as JSON spells it: `012345678901` is an account and `1.10` a
/// version, and both would be lost. So would `yes`, and a date.
fn scalar(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Value::Null,
        "true" | "True" | "TRUE" => return Value::from(true),
        "false" | "False" | "FALSE" => return Value::from(false),
        _ => {}
    }
    let number = text.parse::<i64>().map(Number::from).ok();
    let number = number.or_else(|| text.parse().ok().and_then(Number::from_f64));
    match number {
        Some(number) if number.to_string() == text => Value::Number(number),
        _ => Value::from(text),
    }
}

fn count(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(count).sum::<usize>(),
        Value::Object(members) => 1 + members.values().map(count).sum::<usize>(),
        Value::String(text) => 1 + text.len() / 64,
        _ => 1,
    }
}

fn levels(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(levels).max().unwrap_or(0),
        Value::Object(members) => 1 + members.values().map(levels).max().unwrap_or(0),
        _ => 0,
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn scalars_are_read_as_they_are_meant() {
        for (text, expected) in [
            ("a: 012345678901", r#"{"a":"012345678901"}"#),
            ("a: 1.10", r#"{"a":"1.10"}"#),
            ("a: 30", r#"{"a":30}"#),
            ("a: -1.5", r#"{"a":-1.5}"#),
            ("a: 2012-10-17", r#"{"a":"2012-10-17"}"#),
            ("a: yes\nb: off", r#"{"a":"yes","b":"off"}"#),
            ("a: true\nb: ~\nc:", r#"{"a":true,"b":null,"c":null}"#),
            ("a: \"30\"\nb: !!str 30", r#"{"a":"30","b":"30"}"#),
            ("a: &x [1]\nb: *x", r#"{"a":[1],"b":[1]}"#),
            ("a: !Ref b", r#"{"a":{"Ref":"b"}}"#),
            ("a: !GetAtt b.c.d", r#"{"a":{"Fn::GetAtt":["b","c.d"]}}"#),
            ("a: !Condition b", r#"{"a":{"Condition":"b"}}"#),
            ("a: !Join ['', [!Ref b, c]]", r#"{"a":{"Fn::Join":["",[{"Ref":"b"},"c"]]}}"#),
            ("a: !If\n  - b\n  - !Sub '${c}'\n  - 1", r#"{"a":{"Fn::If":["b",{"Fn::Sub":"${c}"},1]}}"#),
        ] {
            assert_eq!(read(text).unwrap().to_json(), expected, "{text}");
        }
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        let deep = "[".repeat(300);
        let bomb: String = (1..30).map(|at| format!("a{at}: &a{at} [*a{0}, *a{0}]\n", at - 1)).collect();
        let bomb = format!("a0: &a0 [1]\n{bomb}");
        let texts = ["a: 1\na: 2", "a: [", "a: 1\n---\nb: 2", "[a]: 1", "a: {<<: b}", "a: !!binary x", &deep, &bomb];
        for text in texts {
            assert!(read(text).is_err(), "{}", &text[..text.len().min(40)]);
        }
    }
}
