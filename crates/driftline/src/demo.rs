//! `demo`: the first document's story, told with bundled observations on a real store.

use driftline_core::{Observation, Properties};
use driftline_store::Store;
use driftline_store::draft::Permissions;
use jiff::SignedDuration;

use crate::args::{DriftArgs, FailOn, ShownArgs, VerdictArgs};
use crate::baseline::person;
use crate::demo_data::{Pass, observations};
use crate::error::{CommandError, CommandResult};
use crate::output::write_out;
use crate::seal::Sealer;
use crate::settings::{DEFAULT_STORE, Settings};
use crate::{drift, velocity};

/// The observer that the demo's versions name; a store with only those may be replaced by the next demo.
const OBSERVER: &str = "driftline demo";

/// The function whose timeout is raised.
const LAMBDA: &str = "arn:aws:lambda:us-east-1:123456789012:function:drift-state-test-fn";

pub(crate) fn run(settings: &Settings) -> CommandResult<()> {
    make_room(settings)?;
    let day_before = settings.now - SignedDuration::from_hours(26);
    let hours_before = settings.now - SignedDuration::from_hours(2);

    let mut store = Store::create(&settings.store)?;
    step(settings, "Five observers look at an account: network, inventory, compliance, DNS, events.")?;
    let count = commit(settings, &mut store, Pass::Baseline, day_before)?;
    step(settings, &format!("{count} resources are stored. What is there now becomes the baseline."))?;
    let pins = store.catalog().streams().filter_map(|(id, stream)| Some((id.clone(), stream.head()?.number))).collect();
    let name = settings.baseline(None)?;
    store.set_baseline(&name, &pins, &person(), day_before)?;

    step(
        settings,
        "\nA day later they look again. Nothing was changed; pages came in another order, counters moved.\n",
    )?;
    commit(settings, &mut store, Pass::Unchanged, hours_before)?;
    if settings.printer.prints_table() {
        drift::run(settings, &drift_args())?;
    }

    step(
        settings,
        "\nThen three things happen: a Lambda timeout is raised, a security group gets a rule, an EventBridge",
    )?;
    step(settings, "rule gets a second target. And while they look, AWS throttles one region.\n")?;
    commit(settings, &mut store, Pass::Drifted, settings.now)?;
    drift::run(settings, &drift_args())?;

    if !settings.printer.prints_table() {
        return Ok(());
    }
    step(settings, "")?;
    settings.printer.print(&velocity::compute(settings, &store, None, &[], settings.now, false)?)?;

    let at = match settings.store == std::path::Path::new(DEFAULT_STORE) {
        true => String::new(),
        false => format!(" --store {}", settings.store.display()),
    };
    step(
        settings,
        &format!(
            "\nThe store is in `{}`. Try next:\n\
         \x20 driftline{at} explain {LAMBDA}\n\
         \x20 driftline{at} history {LAMBDA}\n\
         \x20 driftline{at} baseline accept {LAMBDA} --path /timeout --reason 'the batch job needs it'\n\
         \x20 driftline{at} drift --where 'type == \"AWS::Lambda::Function\"' -o json\n\
         \x20 driftline{at} log\n\
         \x20 driftline{at} verify\n\
         Your own infrastructure: `driftline observe file observation.json` (docs/observation.md).",
            settings.store.display()
        ),
    )
}

fn drift_args() -> DriftArgs {
    DriftArgs {
        baseline: None,
        source: Vec::new(),
        at: None,
        since: None,
        between: None,
        across: None,
        shown: ShownArgs { filter: None, all: false, limit: 50 },
        verdict: VerdictArgs { fail_on: FailOn::Drifted, strict: false, exit_zero: true },
    }
}

/// The story goes where results go, between them; asked for another format, only the last drift report is printed.
fn step(settings: &Settings, text: &str) -> CommandResult<()> {
    if settings.printer.prints_table() { write_out(format!("{text}\n").as_bytes()) } else { Ok(()) }
}

/// Clears away an earlier demo; a store with anything else in it is left alone.
fn make_room(settings: &Settings) -> CommandResult<()> {
    let store = match Store::open(&settings.store) {
        Ok(store) => store,
        Err(driftline_store::StoreError::NoStore { .. }) => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    let other = store
        .catalog()
        .streams()
        .find(|(_, stream)| stream.versions().any(|version| version.observer.as_deref() != Some(OBSERVER)));
    if let Some((source, _)) = other {
        return Err(CommandError::new(format!(
            "`{}` is a store with the source `{source}` in it, which is no demo's",
            settings.store.display()
        ))
        .hint("give the demo a place of its own: driftline demo --store /tmp/driftline-demo"));
    }
    std::fs::remove_dir_all(&settings.store)
        .map_err(|error| CommandError::because(format!("cannot clear `{}`", settings.store.display()), &error))
}

fn commit(settings: &Settings, store: &mut Store, pass: Pass, taken_at: jiff::Timestamp) -> CommandResult<usize> {
    let mut count = 0;
    for observation in observations(pass, taken_at) {
        let mut sealer = Sealer::new(&settings.store, store.catalog().seal_key(), &settings.config.seal);
        let mut header = observation.header.clone();
        header.observer = Some(OBSERVER.to_owned());
        let mut sealed = Observation::new(header);
        for (key, properties) in observation.resources() {
            let properties = Properties::from(sealer.seal(&key.kind, properties.as_ref(), &[])?);
            let resource = driftline_core::Resource { key: key.clone(), properties };
            sealed.insert(resource).map_err(|error| CommandError::new(error.to_string()))?;
        }
        count += sealed.resources().len();
        store.commit(&sealed, sealer.fingerprint().as_deref(), Permissions::default(), settings.now)?;
    }
    Ok(count)
}
