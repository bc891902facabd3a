//! `jsonata`: one expression on one document, or a batch of them.

use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::path::Path;

use jsonata::{Error, Expression, Functions, Input, Limits, Outcome};
use serde_json::{Map, Value, json};

use crate::args::JsonataArgs;
use crate::error::{CommandError, CommandResult};
use crate::output::{delivered, write_out};
use crate::settings::Settings;

/// Whoever types an expression may ask for the time of day; a rule may not. The depth is the one that the language's own
/// tests take for the limit.
fn limits() -> Limits {
    Limits { functions: Functions::All, depth: 302, ..Limits::default() }
}

pub(crate) fn run(settings: &Settings, args: &JsonataArgs) -> CommandResult<()> {
    let Some(expression) = &args.expression else { return batch(args.file.as_deref()) };
    let limits = limits();
    let input = match &args.file {
        Some(path) => Input::new(&document(path, &limits)?, &limits).map_err(|error| failed(&error))?,
        None => Input::none(),
    };
    let mut bindings = Vec::new();
    for text in &args.bind {
        let (name, value) = text
            .split_once('=')
            .ok_or_else(|| CommandError::new(format!("`{text}` binds nothing")).hint("write `--bind name=JSON`"))?;
        let value: Value = serde_json::from_str(value)
            .map_err(|error| CommandError::because(format!("what `{name}` is bound to is not JSON"), &error))?;
        let value = Input::new(&value, &limits).map_err(|error| failed(&error))?;
        bindings.push((name.trim_start_matches('$'), value));
    }
    let evaluated = Expression::parse(expression, &limits).and_then(|it| it.evaluate(&input, &bindings, &limits));
    match evaluated.map_err(|error| failed(&error))? {
        Outcome::Value(value) => write_out(format!("{value}\n").as_bytes()),
        Outcome::Undefined => {
            settings.printer.note("undefined: the expression gives no value for this input");
            Ok(())
        }
    }
}

fn failed(error: &Error) -> CommandError {
    CommandError::new(error.to_string())
}

/// A document larger than the limit is not read further than that.
fn document(path: &Path, limits: &Limits) -> CommandResult<Value> {
    // White space may make a small document longer.
    let most = 4 * limits.input_bytes as u64;
    let mut bytes = Vec::new();
    open(path)?.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(CommandError::new(format!("`{}` is larger than {most} bytes", path.display())));
    }
    serde_json::from_slice(&bytes)
        .map_err(|error| CommandError::because(format!("`{}` is not JSON", path.display()), &error))
}

fn open(path: &Path) -> CommandResult<Box<dyn Read>> {
    if path == Path::new("-") {
        return Ok(Box::new(io::stdin().lock()));
    }
    let file =
        File::open(path).map_err(|error| CommandError::because(format!("cannot read `{}`", path.display()), &error))?;
    Ok(Box::new(file))
}

/// One line in, one line out, whatever is in it.
fn batch(file: Option<&Path>) -> CommandResult<()> {
    let limits = limits();
    let mut lines = BufReader::new(open(file.unwrap_or(Path::new("-")))?);
    let mut out = BufWriter::new(io::stdout().lock());
    let mut line = Vec::new();
    loop {
        line.clear();
        if lines.read_until(b'\n', &mut line)? == 0 {
            break;
        }
        let answer = match answer(&line, &limits) {
            Ok(Outcome::Value(value)) => json!({ "value": value }),
            Ok(Outcome::Undefined) => json!({"undefined": true}),
            Err(error) => json!({"error": {"code": error.code, "message": error.message}}),
        };
        // Whoever feeds a line and waits for its answer gets it.
        delivered(writeln!(out, "{answer}").and_then(|()| out.flush()))?;
    }
    Ok(())
}

fn answer(line: &[u8], limits: &Limits) -> Result<Outcome, Error> {
    let bad = |message: String| Error { code: None, message };
    let line: Map<String, Value> =
        serde_json::from_slice(line).map_err(|error| bad(format!("the line is not a JSON object: {error}")))?;
    let Some(Value::String(text)) = line.get("expr") else {
        return Err(bad("the line has no `expr`, or it is not a text".to_owned()));
    };
    let input = line.get("data").map_or_else(|| Ok(Input::none()), |data| Input::new(data, limits))?;
    let none = Map::new();
    let named = match line.get("bindings") {
        None | Some(Value::Null) => &none,
        Some(Value::Object(members)) => members,
        Some(_) => return Err(bad("`bindings` is not an object".to_owned())),
    };
    let mut bindings = Vec::new();
    for (name, value) in named {
        bindings.push((name.as_str(), Input::new(value, limits)?));
    }
    Expression::parse(text, limits)?.evaluate(&input, &bindings, limits)
}
