//! `demo`: the first document's story, told with bundled documents of five observers on a real store.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use driftline_core::StreamId;
use driftline_sources::normalize::{Context, Document, Model};
use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use crate::args::{DemoArgs, DriftArgs, FailOn, PermissionArgs, PointArgs, ShownArgs, VerdictArgs};
use crate::baseline::person;
use crate::demo_data::{ACCOUNT, Pass};
use crate::demo_documents::{SOURCES, documents};
use crate::error::{CommandError, CommandResult};
use crate::output::{Page, Show, write_out};
use crate::settings::{DEFAULT_STORE, Settings};
use crate::{drift, observe, velocity};

/// The observer that the demo's versions name; a store with only those may be replaced by the next demo.
const OBSERVER: &str = "driftline demo";

/// The function whose timeout is raised.
const LAMBDA: &str = "arn:aws:lambda:us-east-1:123456789012:function:drift-state-test-fn";

/// The passes of the story: the folder of their documents, and how many hours ago they were taken.
const PASSES: [(Pass, &str, i64); 3] =
    [(Pass::Baseline, "1-baseline", 26), (Pass::Unchanged, "2-unchanged", 2), (Pass::Drifted, "3-drifted", 0)];

pub(crate) fn run(settings: &Settings, args: &DemoArgs) -> CommandResult<()> {
    match &args.documents {
        Some(folder) => write_documents(settings, folder),
        None => tell(settings),
    }
}

fn tell(settings: &Settings) -> CommandResult<()> {
    make_room(settings)?;
    let [baseline, unchanged, drifted] = PASSES.map(|(pass, _, hours)| (pass, hours_ago(settings, hours)));

    step(settings, "Five observers look at an account: network, inventory, compliance, DNS, events.")?;
    let count = commit(settings, baseline)?;
    step(settings, &format!("{count} resources are stored. What is there now becomes the baseline."))?;
    let mut store = settings.open_store()?;
    let pins = store.catalog().streams().filter_map(|(id, stream)| Some((id.clone(), stream.head()?.number))).collect();
    let name = settings.baseline(None)?;
    store.set_baseline(&name, &pins, &person(), baseline.1)?;

    step(
        settings,
        "\nA day later they look again. Nothing was changed; pages came in another order, counters moved.\n",
    )?;
    commit(settings, unchanged)?;
    if settings.printer.prints_table() {
        drift::run(settings, &drift_args())?;
    }

    step(
        settings,
        "\nThen three things happen: a Lambda timeout is raised, a security group gets a rule, an EventBridge",
    )?;
    step(settings, "rule gets a second target. A bucket that a DNS name points at is made again. And this time the")?;
    step(settings, "inventory's scan stops at its page limit.\n")?;
    commit(settings, drifted)?;
    drift::run(settings, &drift_args())?;

    if !settings.printer.prints_table() {
        return Ok(());
    }
    step(settings, "")?;
    let store = settings.open_store()?;
    settings.printer.print(&velocity::compute(settings, &store, None, &[], settings.now, false)?)?;

    let at = store_flag(settings);
    step(
        settings,
        &format!(
            "\nThe store is in `{}`. Try next:\n\
         \x20 driftline{at} explain {LAMBDA}\n\
         \x20 driftline{at} history {LAMBDA}\n\
         \x20 driftline{at} baseline accept {LAMBDA} --path /timeout --reason 'the batch job needs it'\n\
         \x20 driftline{at} drift --where 'type == \"AWS::Lambda::Function\"' -o json\n\
         \x20 driftline{at} topology\n\
         \x20 driftline{at} posture\n\
         \x20 driftline{at} ownership\n\
         \x20 driftline{at} orphans --at 1h   # before the scan was cut short\n\
         \x20 driftline{at} log\n\
         \x20 driftline{at} verify\n\
         \x20 driftline demo --documents demo-documents   # the documents, to observe them yourself\n\
         Your own infrastructure: `driftline observe --help`.",
            settings.store
        ),
    )
}

fn hours_ago(settings: &Settings, hours: i64) -> Timestamp {
    settings.now - SignedDuration::from_hours(hours)
}

/// How to name this store in another command.
fn store_flag(settings: &Settings) -> String {
    match settings.store.folder() == Some(Path::new(DEFAULT_STORE)) {
        true => String::new(),
        false => format!(" --store {}", quoted(&settings.store.to_string())),
    }
}

/// As a shell takes it for one word.
fn quoted(text: &str) -> String {
    let plain = |char: char| char.is_ascii_alphanumeric() || "/._-+:@%".contains(char);
    if !text.is_empty() && text.chars().all(plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

fn drift_args() -> DriftArgs {
    DriftArgs {
        engine: None,
        engine_timeout: String::new(),
        points: PointArgs::default(),
        across: None,
        print_sql: None,
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
    let Some(folder) = settings.store.folder() else {
        return Err(CommandError::new(format!("the demo clears its store, and `{}` is a bucket", settings.store))
            .hint("give the demo a folder: driftline demo --store /tmp/driftline-demo"));
    };
    let Some(store) = settings.store_if_any()? else { return Ok(()) };
    let other = store
        .catalog()
        .streams()
        .find(|(_, stream)| stream.versions().any(|version| version.observer.as_deref() != Some(OBSERVER)));
    if let Some((source, _)) = other {
        return Err(CommandError::new(format!(
            "`{}` is a store with the source `{source}` in it, which is no demo's",
            settings.store
        ))
        .hint("give the demo a place of its own: driftline demo --store /tmp/driftline-demo"));
    }
    std::fs::remove_dir_all(folder)
        .map_err(|error| CommandError::because(format!("cannot clear `{}`", settings.store), &error))
}

/// Commits what the five observers wrote in one pass, as `observe` would; returns how many resources that are.
fn commit(settings: &Settings, (pass, taken_at): (Pass, Timestamp)) -> CommandResult<usize> {
    let written = documents(pass, taken_at);
    let mut count = 0;
    for (model, name) in SOURCES {
        let of = written.iter().filter(|document| document.model == model);
        let of: Vec<Document<'_>> =
            of.map(|it| Document { name: &it.name, bytes: it.text.as_bytes(), written_at: Some(taken_at) }).collect();
        let source: driftline_core::SourceName = name.parse().expect("a name written in `SOURCES`");
        let context = Context { source: source.clone(), account: Some(ACCOUNT.into()), partition: "aws".into() };
        let listings = model.normalize(&of, &context).map_err(|error| CommandError::new(error.to_string()))?;
        for mut listing in listings {
            count += listing.resources.len();
            let stream = StreamId { source: source.clone(), scope: listing.scope.take() };
            let permissions = PermissionArgs { allow_empty: false, allow_older: false };
            observe::commit_listing(settings, stream, listing, OBSERVER, permissions)?;
        }
    }
    Ok(count)
}

/// Writes the documents of every pass, and says how to observe them.
fn write_documents(settings: &Settings, folder: &Path) -> CommandResult<()> {
    let cannot = |path: &Path, error: &io::Error| {
        CommandError::because(format!("cannot write the documents to `{}`", path.display()), error)
    };
    let is_empty = match std::fs::read_dir(folder) {
        Ok(mut entries) => entries.next().is_none(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => true,
        Err(error) => return Err(cannot(folder, &error)),
    };
    if !is_empty {
        return Err(CommandError::new(format!("`{}` is not empty", folder.display()))
            .hint("name a folder that is not there yet"));
    }
    let mut written = Written { folder: folder.to_owned(), files: Vec::new(), commands: Vec::new() };
    let at = store_flag(settings);
    for (pass, name, hours) in PASSES {
        let (here, taken_at) = (folder.join(name), hours_ago(settings, hours));
        std::fs::create_dir_all(&here).map_err(|error| cannot(&here, &error))?;
        for document in documents(pass, taken_at) {
            let path = here.join(format!("{}.json", document.name));
            std::fs::write(&path, document.text).map_err(|error| cannot(&path, &error))?;
            written.files.push(path);
        }
        for (model, source) in SOURCES {
            // The program takes the pattern as it is, so a shell need not.
            let pattern = quoted(&here.join(format!("{}-*.json", model.name())).display().to_string());
            let mut command = format!("driftline{at} observe {} {pattern} --name {source}", model.name());
            if matches!(model, Model::Adopt | Model::Inventory) {
                command += &format!(" --account {ACCOUNT}");
            }
            // The only ones that do not say when they were taken.
            if model == Model::Adopt {
                command += &format!(" --taken-at {taken_at}");
            }
            written.commands.push(command);
        }
        written.commands.push(match pass {
            Pass::Baseline => format!("driftline{at} baseline set"),
            Pass::Unchanged | Pass::Drifted => format!("driftline{at} drift"),
        });
    }
    settings.printer.print(&written)
}

struct Written {
    folder: PathBuf,
    files: Vec<PathBuf>,
    commands: Vec<String>,
}

impl Show for Written {
    fn table(&self, page: &mut Page<'_>) -> io::Result<()> {
        writeln!(page, "# {} documents of five observers are in `{}`.", self.files.len(), self.folder.display())?;
        for command in &self.commands {
            writeln!(page, "{command}")?;
        }
        Ok(())
    }

    fn json(&self, out: &mut dyn Write) -> io::Result<()> {
        let all = json!({"schema": "driftline.demo-documents/v1", "files": self.files, "commands": self.commands});
        Ok(serde_json::to_writer_pretty(out, &all)?)
    }

    fn ndjson(&self, out: &mut dyn Write) -> io::Result<()> {
        self.commands.iter().try_for_each(|command| writeln!(out, "{}", json!({ "command": command })))
    }

    fn markdown(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "```sh\n{}\n```", self.commands.join("\n"))
    }
}
