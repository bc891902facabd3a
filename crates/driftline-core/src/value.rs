//! JSON values in the one form we compare and hash: object members sorted, numbers by value.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;

use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};

/// How deeply arrays and objects may nest. Deeper input is refused rather than risk the stack.
pub const MAX_DEPTH: usize = 128;

/// A JSON value.
///
/// Not `serde_json::Value`, because two values must be equal exactly when they mean the same (`30` and `30.0`
/// do), and because the order of members must not depend on a feature some other crate switches on.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Value {
    #[default]
    Null,
    Bool(bool),
    Number(Number),
    String(String),
    Array(Vec<Value>),
    Object(BTreeMap<String, Value>),
}

/// A number, by value: an integer that fits 64 bits is exact, everything else is an IEEE double.
#[derive(Clone, Copy, Debug)]
pub struct Number(Repr);

#[derive(Clone, Copy, Debug)]
enum Repr {
    /// Every integer of `i64` and `u64`.
    Integer(i128),
    /// Finite, and never a value that `Integer` can hold.
    Double(f64),
}

/// 2^64 and -2^63: the first doubles beyond the integers we keep exactly.
const INTEGER_END: f64 = 18_446_744_073_709_551_616.0;
const INTEGER_START: f64 = -9_223_372_036_854_775_808.0;

impl Number {
    /// `None` for NaN and the infinities, which JSON cannot say.
    pub fn from_f64(value: f64) -> Option<Self> {
        if !value.is_finite() {
            return None;
        }
        if value.fract() == 0.0 && (INTEGER_START..INTEGER_END).contains(&value) {
            #[expect(clippy::cast_possible_truncation, reason = "whole and within 65 bits, checked above")]
            return Some(Self(Repr::Integer(value as i128)));
        }
        Some(Self(Repr::Double(value)))
    }

    /// The integer, when this number is one that fits 64 bits.
    pub fn as_integer(self) -> Option<i128> {
        match self.0 {
            Repr::Integer(value) => Some(value),
            Repr::Double(_) => None,
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "a double is asked for")]
    pub fn as_f64(self) -> f64 {
        match self.0 {
            Repr::Integer(value) => value as f64,
            Repr::Double(value) => value,
        }
    }
}

impl From<u64> for Number {
    fn from(value: u64) -> Self {
        Self(Repr::Integer(value.into()))
    }
}

impl From<i64> for Number {
    fn from(value: i64) -> Self {
        Self(Repr::Integer(value.into()))
    }
}

impl Ord for Number {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self.0, other.0) {
            (Repr::Integer(a), Repr::Integer(b)) => a.cmp(&b),
            // A double that is no integer never equals one, so comparing as doubles may only tie by rounding;
            // the representation breaks that tie and keeps the order total.
            (Repr::Integer(_), Repr::Double(b)) => self.as_f64().total_cmp(&b).then(Ordering::Less),
            (Repr::Double(a), Repr::Integer(_)) => a.total_cmp(&other.as_f64()).then(Ordering::Greater),
            (Repr::Double(a), Repr::Double(b)) => a.total_cmp(&b),
        }
    }
}

impl PartialOrd for Number {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Number {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Number {}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Repr::Integer(value) => write!(f, "{value}"),
            // `{:?}` is the shortest text that reads back as the same double, and always valid JSON when finite.
            Repr::Double(value) => write!(f, "{value:?}"),
        }
    }
}

impl Value {
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Value::String(text) => Some(text),
            _ => None,
        }
    }

    pub fn as_object(&self) -> Option<&BTreeMap<String, Value>> {
        match self {
            Value::Object(members) => Some(members),
            _ => None,
        }
    }

    pub fn as_array(&self) -> Option<&[Value]> {
        match self {
            Value::Array(items) => Some(items),
            _ => None,
        }
    }

    pub fn get(&self, member: &str) -> Option<&Value> {
        self.as_object()?.get(member)
    }

    /// Compact JSON text, members in key order.
    pub fn to_json(&self) -> String {
        let mut text = String::new();
        write_json(self, &mut text);
        text
    }
}

fn write_json(value: &Value, out: &mut String) {
    use fmt::Write;
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(true) => out.push_str("true"),
        Value::Bool(false) => out.push_str("false"),
        Value::Number(number) => {
            write!(out, "{number}").expect("writing to a String does not fail");
        }
        Value::String(text) => write_json_string(text, out),
        Value::Array(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                write_json(item, out);
            }
            out.push(']');
        }
        Value::Object(members) => {
            out.push('{');
            for (at, (name, member)) in members.iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                write_json_string(name, out);
                out.push(':');
                write_json(member, out);
            }
            out.push('}');
        }
    }
}

pub(crate) fn write_json_string(text: &str, out: &mut String) {
    use fmt::Write;
    out.push('"');
    let mut plain = 0;
    for (at, byte) in text.bytes().enumerate() {
        let escape = match byte {
            b'"' => "\\\"",
            b'\\' => "\\\\",
            b'\n' => "\\n",
            b'\r' => "\\r",
            b'\t' => "\\t",
            0x08 => "\\b",
            0x0c => "\\f",
            0x00..=0x1f => "",
            _ => continue,
        };
        out.push_str(&text[plain..at]);
        if escape.is_empty() {
            write!(out, "\\u{byte:04x}").expect("writing to a String does not fail");
        } else {
            out.push_str(escape);
        }
        plain = at + 1;
    }
    out.push_str(&text[plain..]);
    out.push('"');
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_json())
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Value::String(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Value::String(text)
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Value::Bool(value)
    }
}

impl From<i64> for Value {
    fn from(value: i64) -> Self {
        Value::Number(value.into())
    }
}

impl From<u64> for Value {
    fn from(value: u64) -> Self {
        Value::Number(value.into())
    }
}

impl<T: Into<Value>> From<Vec<T>> for Value {
    fn from(items: Vec<T>) -> Self {
        Value::Array(items.into_iter().map(Into::into).collect())
    }
}

impl<K: Into<String>, const N: usize> From<[(K, Value); N]> for Value {
    fn from(members: [(K, Value); N]) -> Self {
        Value::Object(members.into_iter().map(|(name, value)| (name.into(), value)).collect())
    }
}

impl Serialize for Number {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Repr::Integer(value) => match (i64::try_from(value), u64::try_from(value)) {
                (Ok(value), _) => serializer.serialize_i64(value),
                (_, Ok(value)) => serializer.serialize_u64(value),
                _ => serializer.serialize_f64(self.as_f64()),
            },
            Repr::Double(value) => serializer.serialize_f64(value),
        }
    }
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Value::Null => serializer.serialize_unit(),
            Value::Bool(value) => serializer.serialize_bool(*value),
            Value::Number(number) => number.serialize(serializer),
            Value::String(text) => serializer.serialize_str(text),
            Value::Array(items) => {
                let mut seq = serializer.serialize_seq(Some(items.len()))?;
                for item in items {
                    seq.serialize_element(item)?;
                }
                seq.end()
            }
            Value::Object(members) => {
                let mut map = serializer.serialize_map(Some(members.len()))?;
                for (name, member) in members {
                    map.serialize_entry(name, member)?;
                }
                map.end()
            }
        }
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        de::DeserializeSeed::deserialize(Seed { depth: MAX_DEPTH }, deserializer)
    }
}

/// Carries the depth that is left, so that a parser without a limit of its own is safe too.
#[derive(Clone, Copy)]
struct Seed {
    depth: usize,
}

impl Seed {
    fn deeper<E: de::Error>(self) -> Result<Self, E> {
        match self.depth.checked_sub(1) {
            Some(depth) => Ok(Self { depth }),
            None => Err(E::custom(too_deep())),
        }
    }
}

pub(crate) fn too_deep() -> String {
    format!("arrays and objects nest more than {MAX_DEPTH} levels deep")
}

impl<'de> de::DeserializeSeed<'de> for Seed {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seed {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value).map(Value::Number).ok_or_else(|| E::custom("a number that is not finite"))
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(Value::String(text.to_owned()))
    }

    fn visit_string<E>(self, text: String) -> Result<Value, E> {
        Ok(Value::String(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let inner = self.deeper()?;
        let mut items = Vec::new();
        while let Some(item) = seq.next_element_seed(inner)? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let inner = self.deeper()?;
        let mut members = BTreeMap::new();
        while let Some(name) = map.next_key::<String>()? {
            let value = map.next_value_seed(inner)?;
            if members.contains_key(&name) {
                return Err(de::Error::custom(format!("the member `{name}` appears twice in one object")));
            }
            members.insert(name, value);
        }
        Ok(Value::Object(members))
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn parse(text: &str) -> Value {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn numbers_are_equal_by_value_and_strings_are_not_numbers() {
        for (a, b, equal) in [
            ("30", "30.0", true),
            ("30", "3e1", true),
            ("-0.0", "0", true),
            ("30", "\"30\"", false),
            ("0.1", "0.10", true),
            ("9007199254740993", "9007199254740992", false),
            ("18446744073709551615", "18446744073709551614", false),
            ("1e300", "1.0e300", true),
            ("null", "false", false),
        ] {
            assert_eq!(parse(a) == parse(b), equal, "{a} == {b}");
        }
    }

    #[test]
    fn text_survives_a_round_trip() {
        for text in
            [r#"{"a":[1,-2,0.5,1e300,18446744073709551615,null,true],"b":{"":"\u0001\"\\\n é"}}"#, "[]", "{}", r#""""#]
        {
            let value = parse(text);
            assert_eq!(parse(&value.to_json()), value, "{text}");
            assert_eq!(serde_json::from_str::<Value>(&serde_json::to_string(&value).unwrap()).unwrap(), value);
        }
    }

    #[test]
    fn a_member_given_twice_is_refused() {
        let error = serde_json::from_str::<Value>(r#"{"a":1,"a":1}"#).unwrap_err().to_string();
        assert!(error.contains("`a` appears twice"), "{error}");
    }
}
