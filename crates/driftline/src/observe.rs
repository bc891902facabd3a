//! Taking observations in: from files, from programs, from all configured sources.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use driftline_core::{Header, SourceName, StreamId};
use driftline_sources::normalize::{Context, Document, Listing, Model};
use driftline_sources::plain::{self, PlainHeader, ReadError, Seen, Sink};
use driftline_store::draft::{Draft, Permissions};
use driftline_store::{Store, StoreError};
use jiff::Timestamp;

use crate::args::{AboutArgs, Observe, ObserveArgs, PermissionArgs};
use crate::config::{ConfiguredSource, From as Origin};
use crate::error::{CommandError, CommandResult, RUNNING};
use crate::exit;
use crate::live_args::LiveArgs;
pub(crate) use crate::observed::{Extents, JsonLine, Line, Report, Unchanged};
use crate::seal::Sealer;
use crate::settings::Settings;
use crate::surroundings::{clock, stopwatch};
use crate::time::parse_moment;
use crate::{cluster, documents};

pub(crate) fn run(settings: &Settings, command: Observe) -> CommandResult<u8> {
    let mut report = Report::default();
    let mut strict = false;
    match command {
        Observe::File { files, permissions } => {
            for file in &files {
                match observe_file(settings, file, permissions, None) {
                    Ok(line) => report.committed.push(line),
                    Err(error) => {
                        // What was committed before stays committed, and is said.
                        if !report.committed.is_empty() {
                            settings.printer.print(&report)?;
                        }
                        return Err(error);
                    }
                }
            }
        }
        Observe::Command { command, permissions } => {
            report.committed.push(observe_command(settings, &command, permissions, None)?);
        }
        Observe::Adopt(args) => return documents_or_live(settings, Model::Adopt, args),
        Observe::Inventory(args) => return documents_or_live(settings, Model::Inventory, args),
        Observe::Config(args) => return documents_or_live(settings, Model::Config, args),
        Observe::Dns(args) => return documents_or_live(settings, Model::Dns, args),
        Observe::EventTopology(args) => return documents_or_live(settings, Model::EventTopology, args),
        Observe::Terraform(args) => {
            report.committed = documents(settings, Model::Terraform, &args.documents, args.about, args.permissions)?;
        }
        Observe::CloudControl(args) => {
            return live(settings, "cloud-control", args.name.as_deref(), &args.live, args.permissions);
        }
        Observe::CloudFormation(args) => return documents_or_live(settings, Model::CloudFormation, args),
        Observe::CloudTrail(args) => return crate::trail::run(settings, args),
        Observe::Kubernetes(args) => {
            strict = args.strict;
            report.committed = cluster::run(settings, args)?;
        }
        Observe::Swamp(args) => return crate::swamp::run(settings, &args).map(|()| exit::IN_SYNC),
        Observe::All(args) => return crate::observe_all::run(settings, &args),
    }
    settings.printer.print(&report)?;
    Ok(exit_code(strict, report.committed.iter().any(Line::is_partial)))
}

/// What is said of a run in which nothing failed.
pub(crate) fn exit_code(strict: bool, partial: bool) -> u8 {
    if strict && partial { exit::NOT_CHECKED } else { exit::IN_SYNC }
}

/// Documents where some are named; AWS itself where none are.
fn documents_or_live(settings: &Settings, model: Model, args: ObserveArgs) -> CommandResult<u8> {
    if !args.documents.is_empty() {
        if args.live.is_said() {
            return Err(CommandError::new("documents are named, and so is what to ask AWS for")
                .hint("leave out the documents to ask AWS, or the other arguments to read them"));
        }
        let committed = documents(settings, model, &args.documents, args.about, args.permissions)?;
        settings.printer.print(&Report { committed, ..Report::default() })?;
        return Ok(exit::IN_SYNC);
    }
    if args.about.account.is_some() || args.about.taken_at.is_some() {
        return Err(CommandError::new(
            "--account and --taken-at say what documents leave out, and no documents are named",
        )
        .hint("AWS itself says which account it is; --accounts and --role-name look at others"));
    }
    live(settings, model.name(), args.about.name.as_deref(), &args.live, args.permissions)
}

pub(crate) fn live(
    settings: &Settings,
    observer: &str,
    name: Option<&str>,
    args: &LiveArgs,
    permissions: PermissionArgs,
) -> CommandResult<u8> {
    let name = name.unwrap_or(observer);
    let source = name.parse().map_err(|error: driftline_core::NameError| CommandError::new(error.to_string()))?;
    if args.dry_run {
        crate::live::plan(settings, observer, &source, args)?;
        return Ok(exit::IN_SYNC);
    }
    let observed = crate::live::observe(settings, observer, &source, args, permissions)?;
    for failure in &observed.failures {
        settings.printer.error(failure);
    }
    let nothing = observed.lines.is_empty();
    settings.printer.print(&Report { committed: observed.lines, ..Report::default() })?;
    match observed.failures.len() {
        0 => Ok(exit_code(args.strict, observed.partial)),
        _ if nothing => Err(CommandError::new("nothing was observed").hint("nothing was committed")),
        1 => Err(CommandError::new("one part was not observed; the others were committed")),
        several => Err(CommandError::new(format!("{several} parts were not observed; the others were committed"))),
    }
}

fn documents(
    settings: &Settings,
    model: Model,
    named: &[String],
    args: AboutArgs,
    permissions: PermissionArgs,
) -> CommandResult<Vec<Line>> {
    let taken_at = args.taken_at.as_ref().map(|text| parse_moment(text, settings.now)).transpose()?;
    let name = args.name.as_deref().unwrap_or(model.name());
    let source = name.parse().map_err(|error: driftline_core::NameError| CommandError::new(error.to_string()))?;
    let context = Context { source, account: args.account, partition: args.partition };
    observe_documents(settings, model, named, &context, taken_at, permissions)
}

/// Normalizes the documents of one pass and commits what they amount to.
fn observe_documents(
    settings: &Settings,
    model: Model,
    named: &[String],
    context: &Context,
    taken_at: Option<Timestamp>,
    permissions: PermissionArgs,
) -> CommandResult<Vec<Line>> {
    let texts = documents::read_all(named)?;
    let documents: Vec<Document<'_>> =
        texts.iter().map(|text| Document { name: &text.name, bytes: &text.bytes, written_at: None }).collect();
    let listings = model.normalize(&documents, context).map_err(|error| {
        let refused = CommandError::new(error.to_string()).about(format!("cannot observe {}", model.name()));
        match error.hint {
            Some(hint) => refused.hint(hint),
            None => refused,
        }
        .hint("nothing was committed")
    })?;
    let observer = format!("driftline observe {}", model.name());
    let mut lines = Vec::new();
    for mut listing in listings {
        listing.taken_at = listing.taken_at.or(taken_at);
        let stream = StreamId { source: context.source.clone(), scope: listing.scope.take() };
        lines.push(commit_listing(settings, stream, listing, &observer, permissions)?);
    }
    Ok(lines)
}

/// Commits what a normalizer made as the next version of a stream.
pub(crate) fn commit_listing(
    settings: &Settings,
    stream: StreamId,
    listing: Listing,
    observer: &str,
    permissions: PermissionArgs,
) -> CommandResult<Line> {
    warn_of_problems(settings, &stream, &listing);
    commit_listing_into(settings, &mut None, stream, listing, observer, permissions)
}

pub(crate) fn warn_of_problems(settings: &Settings, stream: &StreamId, listing: &Listing) {
    for problem in &listing.problems {
        settings.printer.warn(&format!("{stream}: {}: {}", problem.about, problem.message));
    }
}

/// The same into a store that is open, if it is, and stays open.
pub(crate) fn commit_listing_into(
    settings: &Settings,
    open: &mut Option<Store>,
    stream: StreamId,
    listing: Listing,
    observer: &str,
    permissions: PermissionArgs,
) -> CommandResult<Line> {
    commit_to(
        settings,
        open,
        permissions,
        None,
        |_| Ok(()),
        |intake| {
            let header = PlainHeader {
                stream,
                taken_at: listing.taken_at,
                observer: Some(observer.to_owned()),
                coverage: Some(listing.coverage),
                problems: listing.problems,
                nature: listing.nature,
            };
            intake.header(header)?;
            // Let go of one by one: the draft has its own form of them.
            for (key, found) in listing.resources {
                let (key, properties) = (key.as_ref(), found.properties.as_ref());
                intake.resource(Seen { key, properties, sensitive: &found.sensitive, line: &[] })?;
            }
            Ok(())
        },
    )
}

/// Commits what the operator saw as the next version of its stream.
#[cfg(feature = "kube")]
pub(crate) fn commit_seen(settings: &Settings, seen: driftline_kube::ledger::Seen) -> CommandResult<Line> {
    // Objects may all have been deleted: a namespace that was seen whole and has none is no mistake.
    let permissions = PermissionArgs { allow_empty: true, allow_older: false };
    let header = PlainHeader {
        stream: seen.header.stream,
        taken_at: Some(seen.header.taken_at),
        observer: seen.header.observer,
        coverage: Some(seen.header.coverage),
        problems: seen.header.problems,
        nature: seen.header.nature,
    };
    commit(
        settings,
        permissions,
        None,
        |_| Ok(()),
        |intake| {
            intake.header(header)?;
            for (key, (properties, sensitive)) in &seen.resources {
                let (key, properties) = (key.as_ref(), properties.as_ref());
                intake.resource(Seen { key, properties, sensitive, line: &[] })?;
            }
            Ok(())
        },
    )
}

/// What was committed of a source, and what of it could not be.
#[cfg(feature = "notify")]
pub(crate) type Outcome = CommandResult<(Vec<Line>, Vec<CommandError>)>;

pub(crate) fn run_one(
    settings: &Settings,
    source: &ConfiguredSource,
    permissions: PermissionArgs,
) -> CommandResult<Vec<Line>> {
    match &source.from {
        Origin::File(file) => observe_file(settings, file, permissions, Some(&source.name)).map(|line| vec![line]),
        Origin::Command(command) => {
            observe_command(settings, command, permissions, Some(&source.name)).map(|line| vec![line])
        }
        Origin::Documents(from) if from.model == Model::CloudTrail => {
            crate::trail::from_logs(settings, &source.name, &from.named, false, &LiveArgs::default(), permissions)
        }
        Origin::Documents(from) => {
            let (account, partition) = (from.account.clone(), from.partition.clone());
            let context = Context { source: source.name.clone(), account, partition };
            observe_documents(settings, from.model, &from.named, &context, None, permissions)
        }
        Origin::Live(_) => Err(CommandError::new("AWS itself is asked elsewhere")),
        Origin::Kubernetes(objects) => {
            cluster::observe(settings, Some(&source.name), objects, None, permissions).map(|line| vec![line])
        }
    }
}

fn observe_file(
    settings: &Settings,
    file: &Path,
    permissions: PermissionArgs,
    expected: Option<&SourceName>,
) -> CommandResult<Line> {
    let name = if file == Path::new("-") { "standard input".to_owned() } else { format!("`{}`", file.display()) };
    let about = |error: CommandError| error.about(format!("cannot observe {name}"));
    if file == Path::new("-") {
        return commit(settings, permissions, expected, |_| Ok(()), |intake| read(io::stdin().lock(), intake))
            .map_err(about);
    }
    let input = File::open(file).map_err(|error| about(CommandError::new(error.to_string())))?;
    if input.metadata().is_ok_and(|data| data.is_dir()) {
        return Err(about(CommandError::new("it is a folder")));
    }
    let input = BufReader::with_capacity(1 << 20, input);
    commit(settings, permissions, expected, |_| Ok(()), |intake| read(input, intake)).map_err(about)
}

fn observe_command(
    settings: &Settings,
    command: &[String],
    permissions: PermissionArgs,
    expected: Option<&SourceName>,
) -> CommandResult<Line> {
    let about = |error: CommandError| error.about(format!("{RUNNING}{}`", command.join(" ")));
    let (program, arguments) = command.split_first().ok_or_else(|| CommandError::new("no program was given"))?;
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| about(CommandError::new(format!("`{program}` did not start: {error}"))))?;
    let output = child.stdout.take().expect("its standard output was piped above");
    let output = BufReader::with_capacity(1 << 20, output);
    let confirm = |read| {
        // Whatever it printed, a program that failed has not observed. One that we stopped listening to may go on
        // printing and be stopped for that: then what it printed first is the cause.
        let status = if read { child.wait()? } else { wait_a_moment(&mut child)? };
        match status.code() {
            Some(0) => Ok(()),
            None if !read => Ok(()),
            _ => Err(CommandError::new(format!("the program failed ({status}); nothing was committed"))),
        }
    };
    let outcome = commit(settings, permissions, expected, confirm, |intake| read(output, intake));
    if outcome.is_err() {
        let _ = child.kill();
        let _ = child.wait();
    }
    outcome.map_err(about)
}

/// Gives a program that nobody listens to any more a moment to end by itself.
fn wait_a_moment(child: &mut Child) -> io::Result<ExitStatus> {
    for _ in 0..100 {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    child.kill()?;
    child.wait()
}

/// Takes an observation into the store as `feed` tells it. `confirm` is told whether that went well, and asked
/// before anything is committed.
fn commit(
    settings: &Settings,
    permissions: PermissionArgs,
    expected: Option<&SourceName>,
    confirm: impl FnOnce(bool) -> CommandResult<()>,
    feed: impl FnOnce(&mut Intake<'_>) -> Result<(), Refusal>,
) -> CommandResult<Line> {
    commit_to(settings, &mut None, permissions, expected, confirm, feed)
}

/// The same into a store that may be open already, and stays open as long as all goes well.
fn commit_to(
    settings: &Settings,
    open: &mut Option<Store>,
    permissions: PermissionArgs,
    expected: Option<&SourceName>,
    confirm: impl FnOnce(bool) -> CommandResult<()>,
    feed: impl FnOnce(&mut Intake<'_>) -> Result<(), Refusal>,
) -> CommandResult<Line> {
    let _committing = Committing::begin(settings.store.folder());
    let mut store = match open.take() {
        Some(store) => store,
        None => settings.create_store()?,
    };
    let outcome = commit_into(settings, &mut store, permissions, expected, confirm, feed);
    if outcome.is_ok() {
        *open = Some(store);
    }
    outcome
}

/// Commits of this process that are under way, and the folder that they made, if there was none.
static UNDER_WAY: Mutex<(usize, Option<PathBuf>)> = Mutex::new((0, None));

/// A commit that is under way. A store that never got a version leaves no trace; but only the last one out may tidy up,
/// or one that fails would take the folder away from beneath another that is making its first version.
struct Committing;

impl Committing {
    fn begin(folder: Option<&Path>) -> Self {
        let mut under_way = UNDER_WAY.lock().unwrap_or_else(PoisonError::into_inner);
        let (number, made) = &mut *under_way;
        *number += 1;
        if let Some(folder) = folder.filter(|folder| !folder.exists()) {
            *made = Some(folder.to_owned());
        }
        Self
    }
}

impl Drop for Committing {
    fn drop(&mut self) {
        let mut under_way = UNDER_WAY.lock().unwrap_or_else(PoisonError::into_inner);
        let (number, made) = &mut *under_way;
        *number -= 1;
        if *number == 0
            && let Some(folder) = made.take()
        {
            // Only folders that are still empty: one with a version in it stays.
            let _ = std::fs::remove_dir(folder.join("_delta_log"));
            let _ = std::fs::remove_dir(folder);
        }
    }
}

/// Reads a plain observation.
fn read(input: impl BufRead, intake: &mut Intake<'_>) -> Result<(), Refusal> {
    plain::read(input, intake).map_err(|error| match error {
        ReadError::Sink { place, source: Refusal::Store(error @ StoreError::Duplicate { .. }) } => {
            Refusal::Command(CommandError::from(error).about(place))
        }
        ReadError::Sink { source: Refusal::Store(error), .. } => Refusal::Store(error),
        ReadError::Sink { place, source: Refusal::Command(error) } => Refusal::Command(error.about(place)),
        ReadError::Io(error) => Refusal::Command(CommandError::because("reading it failed", &error)),
        ReadError::Malformed { line, column, message } => Refusal::Command(
            CommandError::new(format!("line {line}, column {column}: {message}")).hint("nothing was committed"),
        ),
        error @ ReadError::Schema { .. } => Refusal::Command(
            CommandError::new(error.to_string())
                .hint("nothing was committed; docs/observation.md describes the format"),
        ),
        error @ ReadError::Empty => Refusal::Command(
            CommandError::new(error.to_string())
                .hint("an observation that found nothing still has a header; docs/observation.md describes it"),
        ),
        error => Refusal::Command(CommandError::new(error.to_string())),
    })
}

fn commit_into(
    settings: &Settings,
    store: &mut Store,
    permissions: PermissionArgs,
    expected: Option<&SourceName>,
    confirm: impl FnOnce(bool) -> CommandResult<()>,
    feed: impl FnOnce(&mut Intake<'_>) -> Result<(), Refusal>,
) -> CommandResult<Line> {
    let sealer = Sealer::new(&settings.store, store.catalog().seal_key(), &settings.config.seal);
    let mut intake = Intake {
        settings,
        expected,
        stage: Stage::Waiting(store),
        sealer,
        progress: Progress::new(settings.printer.shows_progress()),
    };
    let outcome = feed(&mut intake);
    intake.progress.end();
    // A program that failed usually also printed something broken: its failure is the cause.
    confirm(outcome.is_ok())?;
    outcome.map_err(|refusal| match refusal {
        Refusal::Store(error) => error.into(),
        Refusal::Command(error) => error,
    })?;
    let fingerprint = intake.sealer.fingerprint();
    let Stage::Drafting(draft, name) = intake.stage else {
        return Err(CommandError::new("the observation has no header"));
    };
    let permissions = Permissions { empty: permissions.allow_empty, older: permissions.allow_older };
    // Not when the run began: a run over many accounts goes on committing for an hour.
    let committed = draft.finish(fingerprint.as_deref(), permissions, clock())?;
    Ok(Line::new(name, committed))
}

enum Stage<'s> {
    Waiting(&'s mut Store),
    Drafting(Box<Draft<'s>>, String),
    Failed,
}

struct Intake<'s> {
    settings: &'s Settings,
    expected: Option<&'s SourceName>,
    stage: Stage<'s>,
    sealer: Sealer,
    progress: Progress,
}

enum Refusal {
    Store(StoreError),
    Command(CommandError),
}

impl Sink for Intake<'_> {
    type Error = Refusal;

    fn header(&mut self, header: PlainHeader) -> Result<(), Refusal> {
        let name = header.stream.to_string();
        if let Some(expected) = self.expected
            && *expected != header.stream.source
        {
            let message = format!("it is of the source `{}`, but configured as `{expected}`", header.stream.source);
            return Err(Refusal::Command(CommandError::new(message)));
        }
        if header.coverage.is_none() && header.nature.is_state() {
            self.settings.printer.warn(&format!(
                "{name} does not say what it covers; what is missing from it will be not_checked, never deleted"
            ));
        }
        let taken_at = header.taken_at.unwrap_or(self.settings.now);
        if is_of_the_future(taken_at) {
            self.settings
                .printer
                .warn(&format!("{name} was taken at {taken_at}, which is in the future: is a clock wrong?"));
        }
        let header = Header {
            stream: header.stream,
            taken_at,
            observer: header.observer,
            coverage: header.coverage.unwrap_or_default(),
            problems: header.problems,
            nature: header.nature,
        };
        match std::mem::replace(&mut self.stage, Stage::Failed) {
            Stage::Waiting(store) => {
                let draft = store.draft(header, Some(self.sealer.reader())).map_err(Refusal::Store)?;
                self.stage = Stage::Drafting(Box::new(draft), name);
                Ok(())
            }
            _ => Err(Refusal::Command(CommandError::new("a second header"))),
        }
    }

    fn known(&mut self, lines: &[&[u8]], answers: &mut Vec<bool>) {
        match &mut self.stage {
            Stage::Drafting(draft, _) => {
                draft.known(lines, answers);
                self.progress.show(draft.count());
            }
            _ => answers.resize(lines.len(), false),
        }
    }

    fn resource(&mut self, seen: Seen<'_>) -> Result<(), Refusal> {
        let Stage::Drafting(draft, _) = &mut self.stage else {
            return Err(Refusal::Command(CommandError::new("a resource before the header")));
        };
        let properties = self.sealer.seal(seen.key.kind, seen.properties, seen.sensitive).map_err(Refusal::Command)?;
        draft.push(seen.key, properties, seen.line).map_err(Refusal::Store)?;
        self.progress.show(draft.count());
        Ok(())
    }
}

/// Whether nobody can have looked at this time yet. Clocks differ a little.
pub(crate) fn is_of_the_future(taken_at: Timestamp) -> bool {
    taken_at > clock() + Duration::from_mins(5)
}

/// Counts on a terminal, a few times a second.
struct Progress {
    shown: bool,
    next: u32,
    last: Instant,
    dirty: bool,
}

impl Progress {
    fn new(shown: bool) -> Self {
        Self { shown, next: 4096, last: stopwatch(), dirty: false }
    }

    fn show(&mut self, count: u32) {
        if !self.shown || count < self.next {
            return;
        }
        self.next = count + 4096;
        if self.last.elapsed() > Duration::from_millis(200) {
            self.last = stopwatch();
            self.dirty = true;
            let _ = write!(io::stderr().lock(), "\robserving: {count} resources");
        }
    }

    fn end(&mut self) {
        if self.dirty {
            let _ = write!(io::stderr().lock(), "\r\x1b[K");
        }
    }
}
