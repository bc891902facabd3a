//! Taking observations in: from files, from programs, from all configured sources.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use driftline_core::{Header, SourceName, StreamId};
use driftline_sources::normalize::Listing;
use driftline_sources::plain::{self, PlainHeader, ReadError, Seen, Sink};
use driftline_store::draft::{Committed, Draft, Permissions};
use driftline_store::{Store, StoreError};
use jiff::Timestamp;
use serde::Serialize;

use crate::args::{Observe, PermissionArgs};
use crate::config::From as Origin;
use crate::error::{CommandError, CommandResult};
use crate::output::{GREEN, Page, Show, count, markdown_cell};
use crate::seal::Sealer;
use crate::settings::Settings;
use crate::surroundings::stopwatch;

pub(crate) fn run(settings: &Settings, command: Observe) -> CommandResult<()> {
    let mut report = Report::default();
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
        Observe::Swamp(args) => return crate::swamp::run(settings, &args),
        Observe::All { permissions } => return observe_all(settings, permissions),
    }
    settings.printer.print(&report)
}

/// Every configured source, whatever happens to the others; the command fails if one of them did.
fn observe_all(settings: &Settings, permissions: PermissionArgs) -> CommandResult<()> {
    if settings.config.sources.is_empty() {
        return Err(CommandError::new("no sources are configured")
            .hint("add [[source]] entries with `name` and `file` or `command` to driftline.toml"));
    }
    let run = |source: &crate::config::ConfiguredSource| match &source.from {
        Origin::File(file) => observe_file(settings, file, permissions, Some(&source.name)),
        Origin::Command(command) => observe_command(settings, command, permissions, Some(&source.name)),
    };
    let outcomes: Vec<CommandResult<Line>> = std::thread::scope(|scope| {
        let threads: Vec<_> = settings.config.sources.iter().map(|source| scope.spawn(move || run(source))).collect();
        let ended = |thread: std::thread::ScopedJoinHandle<'_, CommandResult<Line>>| {
            thread.join().unwrap_or_else(|_| Err(CommandError::new("the observer's thread broke down")))
        };
        threads.into_iter().map(ended).collect()
    });
    let mut report = Report::default();
    let mut failed = 0;
    for (outcome, source) in outcomes.into_iter().zip(&settings.config.sources) {
        match outcome {
            Ok(line) => report.committed.push(line),
            Err(error) => {
                failed += 1;
                settings.printer.error(&error.about(format!("the source `{}` was not observed", source.name)));
            }
        }
    }
    settings.printer.print(&report)?;
    match failed {
        0 => Ok(()),
        1 => Err(CommandError::new("one source was not observed; the others were committed")),
        _ => Err(CommandError::new(format!("{failed} sources were not observed; the others were committed"))),
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
        return commit(settings, io::stdin().lock(), permissions, expected, |_| Ok(())).map_err(about);
    }
    let input = File::open(file).map_err(|error| about(CommandError::new(error.to_string())))?;
    if input.metadata().is_ok_and(|data| data.is_dir()) {
        return Err(about(CommandError::new("it is a folder")));
    }
    commit(settings, BufReader::with_capacity(1 << 20, input), permissions, expected, |_| Ok(())).map_err(about)
}

fn observe_command(
    settings: &Settings,
    command: &[String],
    permissions: PermissionArgs,
    expected: Option<&SourceName>,
) -> CommandResult<Line> {
    let about = |error: CommandError| error.about(format!("cannot observe with `{}`", command.join(" ")));
    let (program, arguments) = command.split_first().ok_or_else(|| CommandError::new("no program was given"))?;
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| about(CommandError::new(format!("`{program}` did not start: {error}"))))?;
    let output = child.stdout.take().expect("its standard output was piped above");
    let outcome = commit(settings, BufReader::with_capacity(1 << 20, output), permissions, expected, |read| {
        // Whatever it printed, a program that failed has not observed. One that we stopped listening to may go on
        // printing and be stopped for that: then what it printed first is the cause.
        let status = if read { child.wait()? } else { wait_a_moment(&mut child)? };
        match status.code() {
            Some(0) => Ok(()),
            None if !read => Ok(()),
            _ => Err(CommandError::new(format!("the program failed ({status}); nothing was committed"))),
        }
    });
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

/// Reads an observation into the store. `confirm` is told whether reading went well, and asked before anything is
/// committed.
fn commit(
    settings: &Settings,
    input: impl BufRead,
    permissions: PermissionArgs,
    expected: Option<&SourceName>,
    confirm: impl FnOnce(bool) -> CommandResult<()>,
) -> CommandResult<Line> {
    leaving_no_trace(settings, || commit_into(settings, input, permissions, expected, confirm))
}

/// A store that never gets a version leaves no trace.
fn leaving_no_trace<T>(settings: &Settings, commit: impl FnOnce() -> CommandResult<T>) -> CommandResult<T> {
    let existed = settings.store.exists();
    let outcome = commit();
    if outcome.is_err() && !existed {
        // Only folders that are still empty.
        let _ = std::fs::remove_dir(settings.store.join("_delta_log"));
        let _ = std::fs::remove_dir(&settings.store);
    }
    outcome
}

/// Commits what a normalizer made of some documents as the next version of a stream. `written_at` is when they were
/// written down, which counts where they do not say when they were taken.
pub(crate) fn commit_listing(
    settings: &Settings,
    stream: StreamId,
    listing: Listing,
    observer: &str,
    written_at: Option<Timestamp>,
    permissions: PermissionArgs,
) -> CommandResult<Line> {
    let Listing { taken_at, coverage, problems, resources, .. } = listing;
    let header = PlainHeader {
        stream,
        taken_at: taken_at.or(written_at),
        observer: Some(observer.to_owned()),
        coverage: Some(coverage),
        problems,
    };
    leaving_no_trace(settings, || {
        let mut store = Store::create(&settings.store)?;
        let mut intake = Intake::new(settings, None, &mut store);
        intake.header(header)?;
        for (key, found) in &resources {
            let properties = found.properties.as_ref();
            intake.resource(Seen { key: key.as_ref(), properties, sensitive: &found.sensitive, line: &[] })?;
        }
        intake.finish(permissions)
    })
}

fn commit_into(
    settings: &Settings,
    input: impl BufRead,
    permissions: PermissionArgs,
    expected: Option<&SourceName>,
    confirm: impl FnOnce(bool) -> CommandResult<()>,
) -> CommandResult<Line> {
    let mut store = Store::create(&settings.store)?;
    let mut intake = Intake::new(settings, expected, &mut store);
    let outcome = plain::read(input, &mut intake);
    intake.progress.end();
    let confirmed = confirm(outcome.is_ok());
    match (outcome, confirmed) {
        // A program that failed usually also printed something broken: its failure is the cause.
        (_, Err(error)) => return Err(error),
        (Err(ReadError::Sink { place, source }), _) => {
            return Err(match source {
                Refusal::Store(error @ StoreError::Duplicate { .. }) => CommandError::from(error).about(place),
                Refusal::Store(error) => error.into(),
                Refusal::Command(error) => error.about(place),
            });
        }
        (Err(ReadError::Io(error)), _) => return Err(CommandError::because("reading it failed", &error)),
        (Err(ReadError::Malformed { line, column, message }), _) => {
            return Err(
                CommandError::new(format!("line {line}, column {column}: {message}")).hint("nothing was committed")
            );
        }
        (Err(error @ ReadError::Schema { .. }), _) => {
            return Err(CommandError::new(error.to_string())
                .hint("nothing was committed; docs/observation.md describes the format"));
        }
        (Err(error @ ReadError::Empty), _) => {
            return Err(CommandError::new(error.to_string())
                .hint("an observation that found nothing still has a header; docs/observation.md describes it"));
        }
        (Err(error), _) => return Err(CommandError::new(error.to_string())),
        (Ok(()), Ok(())) => {}
    }
    intake.finish(permissions)
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

impl From<Refusal> for CommandError {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Store(error) => error.into(),
            Refusal::Command(error) => error,
        }
    }
}

impl<'s> Intake<'s> {
    fn new(settings: &'s Settings, expected: Option<&'s SourceName>, store: &'s mut Store) -> Self {
        let sealer = Sealer::new(&settings.store, store.catalog().seal_key(), &settings.config.seal);
        let progress = Progress::new(settings.printer.shows_progress());
        Self { settings, expected, stage: Stage::Waiting(store), sealer, progress }
    }

    fn finish(mut self, permissions: PermissionArgs) -> CommandResult<Line> {
        self.progress.end();
        let fingerprint = self.sealer.fingerprint();
        let Stage::Drafting(draft, name) = self.stage else {
            return Err(CommandError::new("the observation has no header"));
        };
        let permissions = Permissions { empty: permissions.allow_empty, older: permissions.allow_older };
        let committed = draft.finish(fingerprint.as_deref(), permissions, self.settings.now)?;
        Ok(Line { source: name, committed })
    }
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
        if header.coverage.is_none() {
            self.settings.printer.warn(&format!(
                "{name} does not say what it covers; what is missing from it will be not_checked, never deleted"
            ));
        }
        let taken_at = header.taken_at.unwrap_or(self.settings.now);
        if taken_at > self.settings.now + Duration::from_mins(5) {
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
        if std::mem::take(&mut self.dirty) {
            let _ = write!(io::stderr().lock(), "\r\x1b[K");
        }
    }
}

/// What a run did: the versions it made, and the streams that needed none.
#[derive(Default)]
pub(crate) struct Report {
    pub committed: Vec<Line>,
    pub unchanged: Vec<Unchanged>,
}

/// One version that was made.
pub(crate) struct Line {
    source: String,
    committed: Committed,
}

/// A stream whose newest version is of what was found again.
#[derive(Serialize)]
pub(crate) struct Unchanged {
    pub source: String,
    pub version: u64,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct JsonLine<'a> {
    source: &'a str,
    version: u64,
    resources: u64,
    not_seen: u64,
    changes: &'a driftline_store::log::ChangeCounts,
    extents: Extents,
    bytes: u64,
}

#[derive(Serialize)]
pub(crate) struct Extents {
    pub complete: usize,
    pub partial: usize,
}

impl Line {
    fn json(&self) -> JsonLine<'_> {
        let committed = &self.committed;
        JsonLine {
            source: &self.source,
            version: committed.version,
            resources: committed.rows,
            not_seen: committed.unseen,
            changes: &committed.changes,
            extents: Extents { complete: committed.complete_extents, partial: committed.partial_extents },
            bytes: committed.bytes,
        }
    }

    fn summary(&self) -> String {
        let committed = &self.committed;
        let changes = &committed.changes;
        let mut text = count(committed.rows, "resource");
        if committed.version > 1 {
            text += &format!(": {} changed, {} new, {} gone", changes.change, changes.add, changes.remove);
        }
        if committed.unseen > 0 {
            text += &format!(", {} not looked at", committed.unseen);
        }
        if committed.partial_extents > 0 {
            let extents = committed.complete_extents + committed.partial_extents;
            text += &format!(" ({} of {extents} extents partial)", committed.partial_extents);
        }
        text
    }
}

impl Show for Report {
    fn table(&self, page: &mut Page<'_>) -> io::Result<()> {
        for line in &self.committed {
            let what = page.paint(GREEN, &format!("{} v{}", line.source, line.committed.version));
            writeln!(page, "{what}  {}", line.summary())?;
        }
        for same in &self.unchanged {
            writeln!(page, "{} v{}  unchanged", same.source, same.version)?;
        }
        Ok(())
    }

    fn json(&self, out: &mut dyn Write) -> io::Result<()> {
        #[derive(Serialize)]
        struct All<'a> {
            schema: &'a str,
            committed: Vec<JsonLine<'a>>,
            #[serde(skip_serializing_if = "<[_]>::is_empty")]
            unchanged: &'a [Unchanged],
        }
        let all = All {
            schema: "driftline.observed/v1",
            committed: self.committed.iter().map(Line::json).collect(),
            unchanged: &self.unchanged,
        };
        Ok(serde_json::to_writer_pretty(out, &all)?)
    }

    fn ndjson(&self, out: &mut dyn Write) -> io::Result<()> {
        for line in &self.committed {
            serde_json::to_writer(&mut *out, &line.json())?;
            writeln!(out)?;
        }
        Ok(())
    }

    fn markdown(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "| source | version | |\n|---|---|---|")?;
        for line in &self.committed {
            writeln!(out, "| {} | {} | {} |", markdown_cell(&line.source), line.committed.version, line.summary())?;
        }
        for same in &self.unchanged {
            writeln!(out, "| {} | {} | unchanged |", markdown_cell(&same.source), same.version)?;
        }
        Ok(())
    }
}
