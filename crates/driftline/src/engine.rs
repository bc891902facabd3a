//! `engine` runs a node of a Ballista cluster; `drift --engine` asks one.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use driftline_core::StreamId;
use driftline_sql::cluster::net::fold;
use driftline_sql::cluster::nodes::{self, Executor};
use driftline_sql::{Allowing, Engine, Limits, Opener, SqlError};
use driftline_store::detect::{Drift, Question};
use driftline_store::{Store, StoreError};

use crate::error::{CommandError, CommandResult};
use crate::output::short;
use crate::place::StoreAt;
use crate::query;
use crate::query_args::{EngineCommand, LimitArgs};
use crate::settings::Settings;
use crate::surroundings::{leave, stopwatch};

pub(crate) fn run(settings: &Settings, command: &EngineCommand) -> CommandResult<()> {
    let printer = settings.printer.clone();
    nodes::listen(printer.is_verbose(), move |level, text| {
        printer.note(&format!("{}: {}", level.to_lowercase(), short(text, 400)));
    });
    let ran = match command {
        EngineCommand::Scheduler { bind } => nodes::scheduler(*bind, opener(), |address| {
            settings.printer.note(&format!("scheduler: ask it with --engine ballista://{address}"));
        }),
        EngineCommand::Executor { scheduler, bind, advertise, tasks, memory } => {
            let Engine::Ballista(scheduler) = query::engine(Some(scheduler))? else {
                return Err(CommandError::new("an executor needs a scheduler"));
            };
            let node = Executor {
                scheduler,
                bind: *bind,
                advertise: advertise.clone(),
                tasks: *tasks,
                memory: query::memory(memory)?,
                folder: std::env::temp_dir(),
            };
            nodes::executor(&node, opener(), |address| {
                settings.printer.note(&format!("executor: on {address}, for the scheduler at {}", node.scheduler));
            })
        }
    };
    ran.map_err(|error| query::told(&error, Allowing::default()))
}

/// Opens stores that others name.
fn opener() -> Opener {
    Arc::new(|place| {
        let missing = |reason: String| StoreError::NotAStore { location: place.to_owned(), reason };
        let at = StoreAt::named(std::path::Path::new(place)).and_then(|at| at.place());
        Store::open(at.map_err(|error| missing(error.message()))?)
    })
}

/// By which flags of `drift` more is allowed to a cluster.
const FLAGS: Allowing = Allowing { time: Some("--engine-timeout"), memory: None, spill: None, files: true };

/// What is left for the next source, when so much time is gone.
fn left(limits: &Limits, gone: Duration) -> Result<Limits, SqlError> {
    match limits.time.saturating_sub(gone) {
        Duration::ZERO => Err(SqlError::Time(limits.time)),
        time => Ok(Limits { time, ..limits.clone() }),
    }
}

/// The drift that this program would find itself. A cluster puts change files together; everything is judged here.
pub(crate) fn drift(
    settings: &Settings,
    store: &Store,
    question: &Question,
    address: &str,
    timeout: &str,
) -> CommandResult<Drift> {
    let Engine::Ballista(address) = query::engine(Some(address))? else {
        return Err(CommandError::new(format!("`{address}` is no cluster")));
    };
    let place = query::place_for(&settings.store)?;
    let args = LimitArgs { timeout: timeout.to_owned(), memory: "4GiB".into(), spill: "0".into() };
    let limits = query::limits(&args, None, "--engine-timeout")?;
    let opener: Opener = {
        let store = store.clone();
        Arc::new(move |_| Ok(store.clone()))
    };
    let mut nets: BTreeMap<(&StreamId, u64, u64), _> = BTreeMap::new();
    // One time for all sources together.
    let (begun, watch) = (stopwatch(), query::Signals::watch());
    for pair in &question.pairs {
        let Some(expected) = pair.expected else { continue };
        let (from, to) = (expected.min(pair.live), expected.max(pair.live));
        let versions = (&pair.stream, from, to);
        let rows = left(&limits, begun.elapsed())
            .and_then(|left| fold(&place, store.catalog(), opener.clone(), versions, &address, &left, &watch.stop));
        let rows = rows.map_err(|error| match error {
            SqlError::Interrupted => leave(watch.heard()),
            SqlError::Time(_) => query::told(&SqlError::Time(limits.time), FLAGS),
            other => query::told(&other, FLAGS),
        });
        nets.insert((&pair.stream, from, to), rows?);
    }
    watch.done();
    let folded = |stream: &StreamId, from: u64, to: u64| {
        let rows = nets.get(&(stream, from, to)).cloned();
        rows.ok_or_else(|| StoreError::NoSuchVersion { stream: stream.clone(), version: to })
    };
    Ok(store.drift_by(question, &settings.rules.book, &folded)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_sources_together_have_one_time() {
        let time = Duration::from_secs(10);
        let limits = Limits { time, memory: 1, spill: 0, folder: std::path::PathBuf::new(), rows: None };
        let of = |seconds| left(&limits, Duration::from_secs(seconds)).map(|left| left.time);
        assert!(matches!(of(0), Ok(left) if left == time));
        assert!(matches!(of(7), Ok(left) if left == Duration::from_secs(3)));
        for gone in [10, 11] {
            assert!(matches!(of(gone), Err(SqlError::Time(whole)) if whole == time));
        }
    }
}
