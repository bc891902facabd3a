//! `--where`: a CEL expression over one resource.

use std::collections::HashMap;
use std::sync::Arc;

use cel::objects::Key;
use cel::{Context, Env, Program, Value as Cel};
use driftline_core::Value;

use crate::error::{CommandError, CommandResult};
use crate::output::short;
use crate::report::Entry;

pub(crate) struct Filter {
    env: Arc<Env>,
    program: Program,
    text: String,
}

impl std::fmt::Debug for Filter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Filter({})", self.text)
    }
}

impl Filter {
    pub(crate) fn new(text: &str) -> CommandResult<Self> {
        let env = Arc::new(Env::stdlib());
        let program = compile(&env, text).map_err(|error| {
            error
                .about(format!("`--where '{text}'` is not a CEL expression"))
                .hint("example: --where 'type == \"AWS::Lambda::Function\" && status == \"drifted\"'")
        })?;
        Ok(Self { env, program, text: text.to_owned() })
    }

    pub(crate) fn matches(&self, entry: &Entry<'_>) -> CommandResult<bool> {
        let mut context = Context::with_env(self.env.clone());
        let text = |text: &str| Cel::String(Arc::new(text.to_owned()));
        let (account, region) = driftline_sources::place::account_and_region(entry.key.place.as_str());
        context.add_variable_from_value("type", text(&entry.key.kind));
        context.add_variable_from_value("place", text(entry.key.place.as_str()));
        context.add_variable_from_value("id", text(&entry.key.id));
        context.add_variable_from_value("account", text(account.unwrap_or_default()));
        context.add_variable_from_value("region", text(region.unwrap_or_default()));
        context.add_variable_from_value("source", text(entry.source));
        context.add_variable_from_value("status", text(entry.status.name()));
        context.add_variable_from_value("kind", text(entry.kind.map_or("", |kind| kind.name())));
        context.add_variable_from_value("severity", text(entry.severity().map_or("", driftline_core::Severity::name)));
        let changes = entry.changes.list();
        let levels = entry.rating.as_ref().map(|rating| rating.changes.as_slice()).unwrap_or_default();
        let changes = changes.iter().enumerate().map(|(at, change)| {
            let mut members: HashMap<Key, Cel> = HashMap::new();
            if let Some(grade) = levels.get(at) {
                members.insert("severity".into(), text(grade.level.name()));
            }
            members.insert("path".into(), text(&change.path.to_string()));
            for (name, value) in [("baseline", &change.expected), ("current", &change.actual)] {
                if let Some(value) = value {
                    members.insert(name.into(), to_cel(value));
                }
            }
            Cel::Map(members.into())
        });
        context.add_variable_from_value("changes", Cel::List(Arc::new(changes.collect())));
        let excused = entry.excused.iter().map(|one| {
            let members: HashMap<Key, Cel> = HashMap::from([("path".into(), text(&one.change.path.to_string()))]);
            Cel::Map(members.into())
        });
        context.add_variable_from_value("excused", Cel::List(Arc::new(excused.collect())));
        let failed = |what: String| {
            CommandError::new(what)
                .about(format!("`--where '{}'` cannot be answered for {}", self.text, entry.key))
                .hint("the names are type, place, account, region, id, source, status, kind, severity, changes and excused")
        };
        match self.program.execute(&context) {
            Ok(Cel::Bool(answer)) => Ok(answer),
            Ok(other) => Err(failed(format!("it gives a value of type {}, not true or false", other.type_of()))),
            Err(error) => Err(failed(error.to_string())),
        }
    }
}

/// An expression, or where it stops to be one.
pub(crate) fn compile(env: &Arc<Env>, text: &str) -> CommandResult<Program> {
    // The parser lists every token it would have taken; the first line says where it stopped.
    env.compile(text)
        .map_err(|error| CommandError::new(short(error.to_string().lines().next().unwrap_or_default(), 160)))
}

pub(crate) fn to_cel(value: &Value) -> Cel {
    match value {
        Value::Null => Cel::Null,
        Value::Bool(value) => Cel::Bool(*value),
        Value::Number(number) => match number.as_integer() {
            Some(integer) => match (i64::try_from(integer), u64::try_from(integer)) {
                (Ok(integer), _) => Cel::Int(integer),
                (_, Ok(integer)) => Cel::UInt(integer),
                _ => Cel::Float(number.as_f64()),
            },
            None => Cel::Float(number.as_f64()),
        },
        Value::String(text) => Cel::String(Arc::new(text.clone())),
        Value::Array(items) => Cel::List(Arc::new(items.iter().map(to_cel).collect())),
        Value::Object(members) => {
            let members: HashMap<Key, Cel> =
                members.iter().map(|(name, member)| (name.as_str().into(), to_cel(member))).collect();
            Cel::Map(members.into())
        }
    }
}
