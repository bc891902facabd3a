//! What the parameters of a template are, as far as anybody says.

use std::collections::BTreeMap;

use driftline_core::Value;

use super::document::Pass;
use super::resolve::{shortened, unknown};
use crate::normalize::text;

/// What AWS shows of a value that it was told to hide.
const HIDDEN: &str = "****";

/// A parameter of these types names a place in the Parameter Store, and stands for what is there.
const STORED: &str = "AWS::SSM::Parameter::Value<";

pub(super) fn read(pass: &Pass, declared: &BTreeMap<String, Value>, refs: &mut BTreeMap<String, Value>) {
    for (name, parameter) in declared {
        refs.insert(name.clone(), value(pass, name, parameter));
    }
}

fn value(pass: &Pass, name: &str, parameter: &Value) -> Value {
    let label = shortened(name);
    if is_hidden(parameter) {
        return unknown(format!("the parameter {label} is NoEcho"));
    }
    let kind = text(parameter, "Type").unwrap_or("String");
    let stored = kind.strip_prefix(STORED).map(|kind| kind.strip_suffix('>').unwrap_or(kind));
    let given = match pass.parameters.get(name) {
        Some(given) if stored.is_some() => given.resolved.as_ref(),
        Some(given) => Some(&given.value),
        // A template that has a parameter more than its stack is not the one that was deployed.
        None if pass.deployed || stored.is_some() => None,
        None => parameter.get("Default"),
    };
    let given = match given {
        None | Some(Value::Null) => return unknown(format!("the parameter {label}")),
        Some(given) => given,
    };
    if given.as_str() == Some(HIDDEN) {
        return unknown(format!("the parameter {label} is hidden"));
    }
    let kind = stored.unwrap_or(kind);
    match given {
        Value::String(text) if kind == "CommaDelimitedList" || kind.starts_with("List<") => {
            Value::Array(text.split(',').map(|part| Value::from(part.trim())).collect())
        }
        Value::String(_) | Value::Array(_) => given.clone(),
        // However a file writes them, parameters are texts.
        Value::Number(number) => Value::from(number.to_string()),
        Value::Bool(is) => Value::from(is.to_string()),
        _ => unknown(format!("the parameter {label}")),
    }
}

/// Whether nobody is to see it. What is not understood is taken for a yes.
fn is_hidden(parameter: &Value) -> bool {
    match parameter.get("NoEcho") {
        None | Some(Value::Null | Value::Bool(false)) => false,
        Some(Value::String(text)) => !text.eq_ignore_ascii_case("false"),
        Some(_) => true,
    }
}
