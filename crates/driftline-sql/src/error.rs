//! What can go wrong with a question, each said in words of this program, with what to do next.

use std::time::Duration;

use datafusion::common::SchemaError;
use datafusion::error::DataFusionError;
use driftline_store::StoreError;
use thiserror::Error;

use crate::query::Limits;
use crate::views::VIEWS;

/// A refusal that somebody else worded: the program, or a part of the store.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct Told {
    pub message: String,
    pub hints: Vec<String>,
}

#[derive(Debug, Error)]
pub enum SqlError {
    #[error("{message}")]
    Query { message: String, hints: Vec<String> },
    #[error("only questions can be asked: {what} is refused")]
    NotAQuestion { what: String },
    #[error("there is no view `{name}`")]
    NoView { name: String, hints: Vec<String> },
    #[error("there is no column `{name}`")]
    NoColumn { name: String, hints: Vec<String> },
    #[error("the query is too large to be planned: {reason}")]
    Large { reason: String },
    #[error("the query was not done within {} s", .0.as_secs())]
    Time(Duration),
    #[error("the query needs more than {} of memory", size(*.0))]
    Memory(u64),
    #[error("the result is larger than {}", size(*.0))]
    Result(u64),
    #[error("the query needs more than {} of disk for what does not fit into memory", size(*.0))]
    Spill(u64),
    #[error("interrupted")]
    Interrupted,
    #[error(transparent)]
    Store(StoreError),
    #[error("cannot start: {0}")]
    Start(String),
    #[error("the cluster at `{address}` {what}")]
    Away { address: String, what: String },
    #[error("the cluster at `{address}` {what}")]
    Cluster { address: String, what: String, hints: Vec<String> },
}

/// By which flags more can be allowed to who asks, where there are some.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Allowing {
    pub time: Option<&'static str>,
    pub memory: Option<&'static str>,
    pub spill: Option<&'static str>,
    /// Whether a result can be kept in a file.
    pub files: bool,
}

impl Allowing {
    /// What to do, or else what to allow.
    fn or_more(what: &str, flags: &[Option<&'static str>]) -> Vec<String> {
        let flags: Vec<&str> = flags.iter().flatten().copied().collect();
        vec![match flags.is_empty() {
            true => what.to_owned(),
            false => format!("{what}, or allow more with {}", flags.join(" or ")),
        }]
    }
}

impl SqlError {
    /// What to do next.
    pub fn hints(&self, allowing: Allowing) -> Vec<String> {
        let one = |text: &str| vec![text.to_owned()];
        match self {
            SqlError::Query { hints, .. } | SqlError::NoView { hints, .. } | SqlError::NoColumn { hints, .. } => {
                hints.clone()
            }
            SqlError::Cluster { hints, .. } => hints.clone(),
            SqlError::NotAQuestion { .. } if allowing.files => {
                one("the store is only read; -o csv=FILE or -o parquet=FILE keeps a result")
            }
            SqlError::NotAQuestion { .. } => one("the store is only read"),
            SqlError::Large { .. } => {
                one("IN (…) or VALUES in the place of many ORs or UNIONs is as long and less deep")
            }
            SqlError::Time(_) => Allowing::or_more("ask for less (a stream, a time, a LIMIT)", &[allowing.time]),
            SqlError::Memory(_) => Allowing::or_more("ask for fewer columns or rows", &[allowing.memory]),
            SqlError::Result(_) => Allowing::or_more("ask for fewer columns or rows (LIMIT)", &[allowing.memory]),
            SqlError::Spill(_) => {
                Allowing::or_more("ask for fewer columns or rows", &[allowing.spill, allowing.memory])
            }
            SqlError::Away { .. } => {
                one("`driftline engine scheduler` and `driftline engine executor` start one; without --engine this \
                 machine answers")
            }
            SqlError::Interrupted | SqlError::Store(_) | SqlError::Start(_) => Vec::new(),
        }
    }

    /// The words of `DataFusion` in ours, as far as there are some.
    pub(crate) fn of(error: DataFusionError, limits: &Limits) -> Self {
        // These come wrapped in errors of writers and threads, as text.
        let text = error.to_string();
        if text.contains("used disk space during the spilling process") {
            return SqlError::Spill(limits.spill);
        }
        if text.contains("Resources exhausted") {
            return SqlError::Memory(limits.memory);
        }
        match root(error) {
            DataFusionError::External(cause) => match cause.downcast::<Told>() {
                Ok(told) => SqlError::Query { message: told.message, hints: told.hints },
                Err(cause) => match cause.downcast::<StoreError>() {
                    Ok(error) => SqlError::Store(*error),
                    Err(cause) => query(chain(cause.as_ref())),
                },
            },
            DataFusionError::ResourcesExhausted(_) => SqlError::Memory(limits.memory),
            DataFusionError::SchemaError(error, _) => of_schema(*error),
            DataFusionError::Plan(text) => of_plan(&text),
            DataFusionError::SQL(error, _) => query(format!("this is not SQL: {error}")),
            // What a damaged or missing file of the store is told as.
            DataFusionError::ObjectStore(error) => query(chain(error.as_ref())),
            DataFusionError::ParquetError(error) => query(chain(error.as_ref())),
            DataFusionError::NotImplemented(text) if text.starts_with("Unsupported SQL statement: ") => {
                SqlError::NotAQuestion { what: text.replacen("Unsupported SQL statement: ", "", 1) }
            }
            DataFusionError::NotImplemented(text) => query(format!("not possible here: {text}")),
            other => query(other.strip_backtrace()),
        }
    }
}

#[expect(clippy::needless_pass_by_value, reason = "it is made to be given away")]
fn query(message: String) -> SqlError {
    SqlError::Query { message: message.replace('\n', " "), hints: Vec::new() }
}

/// What is at the bottom of it.
fn root(error: DataFusionError) -> DataFusionError {
    match error {
        DataFusionError::Context(_, inner) | DataFusionError::Diagnostic(_, inner) => root(*inner),
        DataFusionError::Shared(shared) => match std::sync::Arc::try_unwrap(shared) {
            Ok(inner) => root(inner),
            Err(shared) => DataFusionError::Execution(shared.strip_backtrace()),
        },
        DataFusionError::Collection(errors) => {
            errors.into_iter().next().map_or_else(|| DataFusionError::Execution("it failed".into()), root)
        }
        DataFusionError::External(cause) => match cause.downcast::<DataFusionError>() {
            Ok(inner) => root(*inner),
            Err(cause) => DataFusionError::External(cause),
        },
        DataFusionError::ArrowError(error, text) => match *error {
            datafusion::arrow::error::ArrowError::ExternalError(cause) => root(DataFusionError::External(cause)),
            other => DataFusionError::ArrowError(Box::new(other), text),
        },
        other => other,
    }
}

/// Each cause once.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let said = cause.to_string();
        if !text.contains(&said) {
            text = format!("{text}: {said}");
        }
        next = cause.source();
    }
    text
}

fn of_schema(error: SchemaError) -> SqlError {
    match error {
        SchemaError::FieldNotFound { field, valid_fields } => {
            let known: Vec<String> = valid_fields.iter().map(|column| column.name().to_owned()).collect();
            let mut hints: Vec<String> = nearest(field.name(), &known).into_iter().collect();
            if known.iter().any(|one| one == field.name()) {
                hints = vec![format!("`{}` is a column of another view than `{}`", field.name(), field.flat_name())];
            }
            let mut names: Vec<String> = Vec::new();
            for name in known {
                if !names.contains(&name) {
                    names.push(name);
                }
            }
            if !names.is_empty() {
                hints.push(format!("the columns are {}", names.join(", ")));
            }
            SqlError::NoColumn { name: field.flat_name(), hints }
        }
        SchemaError::AmbiguousReference { field } => SqlError::Query {
            message: format!("`{}` is a column of more than one view here", field.name()),
            hints: vec![format!("write which one is meant, as in changes.{}", field.name())],
        },
        other => query(other.to_string()),
    }
}

fn of_plan(text: &str) -> SqlError {
    let between = |start: &str, end: &str| text.strip_prefix(start)?.split(end).next();
    if let Some(what) =
        text.strip_suffix("not supported").or_else(|| text.split_once(" not supported: ").map(|(_, what)| what))
        && ["DDL", "DML", "Statement"].iter().any(|kind| text.starts_with(kind))
    {
        return SqlError::NotAQuestion { what: what.trim().to_owned() };
    }
    let missing = between("table function '", "' not found").or_else(|| between("table '", "' not found"));
    if let Some(name) = missing {
        let name = name.rsplit('.').next().unwrap_or(name);
        let names = VIEWS.map(|(view, _)| view.trim_end_matches("(…)").to_owned());
        let mut hints: Vec<String> = nearest(name, &names).into_iter().collect();
        hints.push(format!("the views are {}", VIEWS.map(|(view, _)| view).join(", ")));
        return SqlError::NoView { name: name.to_owned(), hints };
    }
    query(text.to_owned())
}

/// A word that may have been meant.
fn nearest(name: &str, known: &[String]) -> Option<String> {
    let name = name.to_lowercase();
    let like = |other: &&String| strsim::jaro_winkler(&name, &other.to_lowercase());
    let best = known.iter().max_by(|a, b| like(a).total_cmp(&like(b)))?;
    (like(&best) > 0.75).then(|| format!("did you mean `{best}`?"))
}

pub(crate) fn no_stream(error: &StoreError, name: &str, known: &[String]) -> Told {
    let mut hints: Vec<String> = nearest(name, known).into_iter().collect();
    hints.push("`SELECT DISTINCT stream FROM versions` lists those there are".into());
    Told { message: error.to_string(), hints }
}

/// A version that a stream has not, or no longer.
pub(crate) fn no_version(error: &StoreError, stream: &str) -> Told {
    let stream = stream.replace('\'', "''");
    let hint = format!("`SELECT version, taken_at FROM versions WHERE stream = '{stream}'` lists those there are");
    Told { message: error.to_string(), hints: vec![hint] }
}

/// `1.0 GiB`
pub fn size(bytes: u64) -> String {
    let units = [("GiB", 1u64 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    match units.iter().find(|(_, unit)| bytes >= *unit) {
        Some((name, unit)) if bytes.is_multiple_of(*unit) => format!("{} {name}", bytes / unit),
        Some((name, unit)) => {
            let tenths = (u128::from(bytes) * 10 / u128::from(*unit)).to_string();
            let (whole, tenth) = tenths.split_at(tenths.len() - 1);
            format!("{whole}.{tenth} {name}")
        }
        None => format!("{bytes} bytes"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_told_as_people_write_them() {
        for (bytes, told) in [(0, "0 bytes"), (1023, "1023 bytes"), (1 << 20, "1 MiB"), (3 << 29, "1.5 GiB")] {
            assert_eq!(size(bytes), told);
        }
    }
}
