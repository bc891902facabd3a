//! `engine` runs a node of a Ballista cluster; `drift --engine` asks one.

use std::collections::BTreeMap;
use std::sync::Arc;

use driftline_core::StreamId;
use driftline_sql::cluster::net::fold;
use driftline_sql::cluster::nodes::{self, Executor};
use driftline_sql::{Engine, Opener};
use driftline_store::detect::{Drift, Question};
use driftline_store::{Store, StoreError};

use crate::error::{CommandError, CommandResult};
use crate::output::short;
use crate::place::StoreAt;
use crate::query;
use crate::query_args::{EngineCommand, LimitArgs, parse_size};
use crate::settings::Settings;

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
                memory: parse_size(memory).map_err(|error| error.about("--memory"))?,
                folder: std::env::temp_dir(),
            };
            nodes::executor(&node, opener(), |address| {
                settings.printer.note(&format!("executor: on {address}, for the scheduler at {}", node.scheduler));
            })
        }
    };
    ran.map_err(|error| query::told(&error))
}

/// Opens stores that others name.
fn opener() -> Opener {
    Arc::new(|place| {
        let missing = |reason: String| StoreError::NotAStore { location: place.to_owned(), reason };
        let at = StoreAt::named(std::path::Path::new(place)).and_then(|at| at.place());
        Store::open(at.map_err(|error| missing(error.message()))?)
    })
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
    let limits = query::limits(&args, None)?;
    let opener: Opener = {
        let store = store.clone();
        Arc::new(move |_| Ok(store.clone()))
    };
    let mut nets: BTreeMap<(&StreamId, u64, u64), _> = BTreeMap::new();
    for pair in &question.pairs {
        let Some(expected) = pair.expected else { continue };
        let (from, to) = (expected.min(pair.live), expected.max(pair.live));
        let rows = fold(&place, store.catalog(), opener.clone(), (&pair.stream, from, to), &address, &limits);
        nets.insert((&pair.stream, from, to), rows.map_err(|error| query::told(&error))?);
    }
    let folded = |stream: &StreamId, from: u64, to: u64| {
        let rows = nets.get(&(stream, from, to)).cloned();
        rows.ok_or_else(|| StoreError::NoSuchVersion { stream: stream.clone(), version: to })
    };
    Ok(store.drift_by(question, &settings.rules.book, &folded)?)
}
