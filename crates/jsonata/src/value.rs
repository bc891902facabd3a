//! Values on their way in and out, and what they weigh.

use jsonata_core::value::{JArray, JValue, with_stack};
use serde_json::{Map, Number, Value};

use crate::{Error, Limits};

/// A document, converted once, for any number of expressions. It stays on its thread.
#[derive(Clone, Debug)]
pub struct Input(pub(crate) JValue);

/// What an expression says of a document.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// Nothing: a path that leads nowhere, for one. It is not `null`.
    Undefined,
    Value(Value),
}

impl Input {
    /// No document at all.
    pub fn none() -> Self {
        Self(JValue::Undefined)
    }

    /// Refuses what is larger than the limit, as JSON.
    pub fn new(value: &Value, limits: &Limits) -> Result<Self, Error> {
        let mut left = limits.input_bytes;
        let converted = convert(value, &mut left)
            .ok_or_else(|| Error::coded("U1106", format!("the input is larger than {} bytes", limits.input_bytes)))?;
        Ok(Self(converted))
    }
}

/// Takes what a value weighs as JSON, at the least, from what is left.
fn convert(value: &Value, left: &mut usize) -> Option<JValue> {
    let mut take = |bytes: usize| {
        *left = left.checked_sub(bytes)?;
        Some(())
    };
    Some(match value {
        Value::Null => {
            take(4)?;
            JValue::Null
        }
        Value::Bool(it) => {
            take(4)?;
            JValue::Bool(*it)
        }
        Value::Number(it) => {
            take(1)?;
            JValue::Number(it.as_f64().unwrap_or(f64::NAN))
        }
        Value::String(it) => {
            take(it.len() + 2)?;
            JValue::string(it.as_str())
        }
        Value::Array(items) => {
            take(items.len() + 2)?;
            let flat = !items.iter().any(Value::is_array);
            let items = with_stack(|| items.iter().map(|item| convert(item, left)).collect::<Option<Vec<_>>>())?;
            JValue::Array(JArray::new_flat(items, flat))
        }
        Value::Object(members) => {
            take(members.iter().map(|(name, _)| name.len() + 4).sum::<usize>() + 2)?;
            let converted = with_stack(|| {
                members.iter().map(|(name, value)| Some((name.clone(), convert(value, left)?))).collect::<Option<_>>()
            })?;
            JValue::object(converted)
        }
    })
}

/// The result as JSON, in the way of JavaScript's `JSON.stringify`: a number that is none is `null`, a function in a list
/// is `null` and in an object is left out.
pub(crate) fn outcome(value: &JValue, limits: &Limits) -> Result<Outcome, Error> {
    match value {
        JValue::Undefined => return Ok(Outcome::Undefined),
        it if it.is_function() => {
            return Err(Error { code: None, message: "the result is a function, which JSON cannot say".to_owned() });
        }
        _ => {}
    }
    let mut left = limits.output_bytes;
    let converted = json(value, &mut left)
        .ok_or_else(|| Error::coded("U1107", format!("the result is larger than {} bytes", limits.output_bytes)))?;
    Ok(Outcome::Value(converted))
}

fn json(value: &JValue, left: &mut usize) -> Option<Value> {
    let mut take = |bytes: usize| {
        *left = left.checked_sub(bytes)?;
        Some(())
    };
    Some(match value {
        JValue::Bool(it) => {
            take(4)?;
            Value::Bool(*it)
        }
        JValue::Number(it) => {
            take(2)?;
            number(*it)
        }
        JValue::String(it) => {
            take(it.len() + 2)?;
            Value::String(it.to_string())
        }
        JValue::Array(items) => {
            take(items.len() + 2)?;
            Value::Array(with_stack(|| items.iter().map(|item| json(item, left)).collect::<Option<Vec<_>>>())?)
        }
        JValue::Object(members) => {
            take(members.iter().map(|(name, _)| name.len() + 4).sum::<usize>() + 2)?;
            let said = |it: &JValue| !it.is_undefined() && !it.is_function();
            let members = with_stack(|| {
                let members = members.iter().filter(|(_, value)| said(value));
                members.map(|(name, value)| Some((name.clone(), json(value, left)?))).collect::<Option<Map<_, _>>>()
            })?;
            Value::Object(members)
        }
        _ => {
            take(4)?;
            Value::Null
        }
    })
}

/// An integer stays one as long as a double holds it exactly.
#[expect(clippy::cast_possible_truncation, reason = "it is whole, and small enough")]
fn number(it: f64) -> Value {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if it.fract() == 0.0 && it.abs() < EXACT {
        return Value::Number(Number::from(it as i64));
    }
    Number::from_f64(it).map_or(Value::Null, Value::Number)
}

/// What a list item or a member costs, beside its text.
const ITEM: usize = 16;

/// Takes the weight of a value from what is left. What is shared is counted each time: a list of a list of a list, each
/// of the same ten, is small in memory and endless for whoever walks it.
pub(crate) fn weigh(value: &JValue, left: &mut usize) -> bool {
    let mut take = |bytes: usize| match left.checked_sub(bytes) {
        Some(rest) => {
            *left = rest;
            true
        }
        None => false,
    };
    match value {
        JValue::String(it) => take(ITEM + it.len()),
        JValue::Array(items) => {
            take(ITEM * (1 + items.len()))
                && with_stack(|| items.iter().all(|item| is_light(item) || weigh(item, left)))
        }
        JValue::Object(members) => {
            take(ITEM)
                && with_stack(|| {
                    members.iter().all(|(name, value)| match left.checked_sub(ITEM + name.len()) {
                        Some(rest) => {
                            *left = rest;
                            is_light(value) || weigh(value, left)
                        }
                        None => false,
                    })
                })
        }
        _ => take(ITEM),
    }
}

fn is_light(value: &JValue) -> bool {
    !matches!(value, JValue::String(_) | JValue::Array(_) | JValue::Object(_))
}

/// An upper bound of the length of a value as text, if that is within the limit.
pub(crate) fn text_length(value: &JValue, limit: usize) -> Option<usize> {
    match value {
        JValue::String(it) => Some(it.len()).filter(|length| *length <= limit),
        JValue::Array(_) | JValue::Object(_) => {
            let mut left = limit;
            json_length(value, 0, &mut left).then(|| limit - left)
        }
        _ => Some(24),
    }
}

fn json_length(value: &JValue, depth: usize, left: &mut usize) -> bool {
    let mut take = |bytes: usize| match left.checked_sub(bytes) {
        Some(rest) => {
            *left = rest;
            true
        }
        None => false,
    };
    let quoted = |text: &str| text.len() + 2 + text.bytes().filter(|byte| matches!(byte, b'"' | b'\\' | 0..32)).count();
    match value {
        JValue::String(it) => take(quoted(it)),
        JValue::Number(_) => take(1),
        JValue::Array(items) => {
            // Indented, each item stands on a line of its own.
            take((items.len() + 1) * (2 * depth + 3))
                && with_stack(|| items.iter().all(|item| json_length(item, depth + 1, left)))
        }
        JValue::Object(members) => {
            take((members.len() + 1) * (2 * depth + 3))
                && with_stack(|| {
                    members.iter().all(|(name, value)| {
                        left.checked_sub(quoted(name) + 2).is_some_and(|rest| {
                            *left = rest;
                            json_length(value, depth + 1, left)
                        })
                    })
                })
        }
        _ => take(4),
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_goes_in_comes_out() {
        let value = json!({"a": [1, -2.5, 9_007_199_254_740_991_i64, null, true, "é"], "b": {"c": {}}, "d": []});
        let limits = Limits::default();
        let input = Input::new(&value, &limits).unwrap();
        assert_eq!(outcome(&input.0, &limits).unwrap(), Outcome::Value(value));
    }

    #[test]
    fn numbers_beyond_a_double_and_numbers_that_are_none_come_out_as_javascript_prints_them() {
        for (given, expected) in [
            (-0.0, json!(0)),
            (f64::NAN, json!(null)),
            (f64::INFINITY, json!(null)),
            (1e300, json!(1e300)),
            (9_007_199_254_740_993.0, json!(9_007_199_254_740_992.0)),
        ] {
            assert_eq!(number(given), expected);
        }
    }

    #[test]
    fn a_small_value_that_is_shared_over_and_over_is_found_to_be_large() {
        let mut value = JValue::from("x");
        for _ in 0..60 {
            value = JValue::array(vec![value.clone(), value]);
        }
        let mut left = 1 << 20;
        assert!(!weigh(&value, &mut left));
        assert_eq!(text_length(&value, 1 << 20), None);
        assert!(outcome(&value, &Limits::default()).unwrap_err().is("U1107"));
    }
}
