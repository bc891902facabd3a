//! `drift` and `diff`: ask, filter, print, and answer with an exit code.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::sync::Arc;

use driftline_core::judge::{Judgement, Side, judge};
use driftline_core::verdict::{DriftKind, Status};
use driftline_core::{Coverage, Properties, ResourceKey, StreamId, Value};
use driftline_sources::plain::{self, PlainHeader, ReadError, Seen, Sink};
use driftline_store::detect::{Drift, Finding, Pair, Question, SourceReport, Tally};
use driftline_store::{Store, Stream};
use jiff::Timestamp;

use crate::across;
use crate::args::{DiffArgs, DriftArgs, FailOn, PointArgs, ShownArgs, VerdictArgs};
use crate::error::{CommandError, CommandResult};
use crate::exit;
use crate::filter::Filter;
use crate::output::{Format, write_out};
use crate::report::{Changes, Entry, Expected, Report};
use crate::seal::Sealer;
use crate::settings::{DEFAULT_STALE_AFTER, Settings};
use crate::severity::{Counts, Rater};
use crate::statement;
use crate::statement::dialect::Dialect;
use crate::surroundings::text_variable;
use crate::time::{ago, parse_moment};

/// Refuses an engine that is asked for where none is of use. One that only the environment names is for other questions.
fn refuse_engine(args: &DriftArgs) -> CommandResult<()> {
    let named = args.engine.as_deref().filter(|name| text_variable("DRIFTLINE_ENGINE").as_deref() != Some(*name));
    let beside = args.print_sql.map(|_| "--print-sql").or_else(|| args.across.as_ref().map(|_| "--across"));
    match (named, beside) {
        (Some(_), Some(beside)) => Err(CommandError::new(format!("--engine cannot be used with {beside}"))
            .hint("leave it out: this machine answers")),
        _ => Ok(()),
    }
}

pub(crate) fn run(settings: &Settings, args: &DriftArgs) -> CommandResult<u8> {
    refuse_engine(args)?;
    let store = settings.open_store()?;
    let sources = parse_sources(&args.points.source)?;
    if let Some([first, second]) = args.across.as_deref() {
        return across(settings, &store, first, second, args);
    }
    let (question, expected) = ask(settings, &store, args.points.points(), &sources)?;
    for pair in &question.pairs {
        let expected = pair.expected.map_or_else(|| "nothing".to_owned(), |version| format!("v{version}"));
        settings.printer.detail(&format!("{}: v{} against {expected}", pair.stream, pair.live));
    }
    if let Some(dialect) = args.print_sql {
        return print_sql(settings, &store, &question, &expected, dialect);
    }
    let drift = match &args.engine {
        Some(address) => crate::engine::drift(settings, &store, &question, address, &args.engine_timeout)?,
        None => store.drift(&question, &settings.rules.book)?,
    };
    if args.points.at.is_none() && args.points.between.is_none() {
        warn_of_stale(settings, &drift);
    }
    // In-sync resources are only looked up when someone asks for them.
    let everything = args.shown.all || args.shown.filter.is_some();
    let mut in_sync: Vec<(StreamId, ResourceKey)> = Vec::new();
    if everything {
        let judged: BTreeSet<(&StreamId, &ResourceKey)> =
            drift.findings.iter().map(|finding| (&*finding.stream, &finding.key)).collect();
        for pair in &question.pairs {
            let keys = store.keys(&pair.stream, pair.live)?;
            in_sync.extend(
                keys.into_iter()
                    .filter(|key| !judged.contains(&(&pair.stream, key)))
                    .map(|key| (pair.stream.clone(), key)),
            );
        }
    }
    let whole = sources.is_empty() && args.shown.filter.is_none();
    let previous = match settings.printer.prints(Format::Sarif) && args.points.between.is_none() {
        true => Some(store.drift(&one_version_earlier(&store, &question)?, &settings.rules.book)?),
        false => None,
    };
    let answer = Answer { drift: &drift, in_sync: &in_sync, expected, whole, previous: previous.as_ref() };
    let code = finish(settings, answer, &args.shown, args.verdict);
    // The process ends here or soon; giving back tens of thousands of small texts one by one is no use to anyone.
    if !settings.printer.is_heard() {
        std::mem::forget(drift);
    }
    code
}

/// Engines have limits of their own; from here on people meet them.
const LONG_STATEMENT: usize = 1 << 20;

fn print_sql(
    settings: &Settings,
    store: &Store,
    question: &Question,
    expected: &Expected,
    dialect: Dialect,
) -> CommandResult<u8> {
    let text = statement::print(store, question, expected, &settings.rules.book, dialect)?;
    if text.len() > LONG_STATEMENT {
        settings.printer.warn(&format!(
            "the statement has {} kB, most of it what was looked at and accepted; `--source` makes it shorter",
            text.len() / 1000
        ));
    }
    write_out(text.as_bytes())?;
    Ok(exit::IN_SYNC)
}

fn across(settings: &Settings, store: &Store, first: &str, second: &str, args: &DriftArgs) -> CommandResult<u8> {
    let PointArgs { baseline, source, at, since, between } = &args.points;
    if between.is_some() || since.is_some() || baseline.is_some() || !source.is_empty() {
        return Err(CommandError::new(
            "`--across` names both sides; a baseline, a source or another time has no place beside it",
        )
        .hint("`--at TIME` goes with it: both sources as they were then"));
    }
    let at = at.as_ref().map(|text| parse_moment(text, settings.now)).transpose()?;
    let names = parse_sources(&[first.to_owned(), second.to_owned()])?;
    for name in &names {
        if !store.catalog().streams().any(|(stream, _)| is_named(stream, std::slice::from_ref(name))) {
            return Err(store.catalog().no_state(name).into());
        }
    }
    let (drift, in_sync) = across::drift(settings, store, &names[0], &names[1], at)?;
    let text = format!("across sources: `{second}` against what `{first}` says, on the properties both have");
    let expected = Expected::Versions { text };
    let answer = Answer { drift: &drift, in_sync: &in_sync, expected, whole: false, previous: None };
    finish(settings, answer, &args.shown, args.verdict)
}

/// The same question, asked of the version before the live one of each source that has one since what is expected.
fn one_version_earlier(store: &Store, question: &Question) -> CommandResult<Question> {
    let mut pairs = Vec::new();
    for pair in &question.pairs {
        let versions = store.catalog().stream(&pair.stream)?.versions();
        let before = versions.map(|version| version.number).filter(|number| *number < pair.live).max();
        if let Some(live) = before.filter(|live| pair.expected.is_some_and(|expected| *live >= expected)) {
            pairs.push(Pair { live, ..pair.clone() });
        }
    }
    Ok(Question { pairs, accepted: question.accepted.clone() })
}

/// What nobody has looked at for long is not known to be in sync now.
fn warn_of_stale(settings: &Settings, drift: &Drift) {
    let stale_after = settings.config.stale_after.unwrap_or(DEFAULT_STALE_AFTER);
    for source in &drift.sources {
        if settings.now.duration_since(source.taken_at) > stale_after {
            let age = ago(source.taken_at, settings.now);
            settings.printer.warn(&format!("the source `{}` is stale: it was last observed {age}", source.stream));
        }
    }
}

/// The two points in time that a question is about, as given.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Points<'a> {
    pub baseline: Option<&'a str>,
    pub at: Option<&'a str>,
    pub since: Option<&'a str>,
    pub between: Option<&'a [String]>,
}

impl PointArgs {
    pub(crate) fn points(&self) -> Points<'_> {
        Points {
            baseline: self.baseline.as_deref(),
            at: self.at.as_deref(),
            since: self.since.as_deref(),
            between: self.between.as_deref(),
        }
    }
}

/// The versions to compare, of the sources that are named, with a word about those that cannot be.
pub(crate) fn ask(
    settings: &Settings,
    store: &Store,
    points: Points<'_>,
    sources: &[StreamId],
) -> CommandResult<(Question, Expected)> {
    let (mut question, expected) = question(settings, store, points)?;
    restrict(store, &mut question, sources)?;
    if question.pairs.is_empty() {
        return Err(CommandError::new("there is nothing to compare: no source has a version from that time")
            .hint("`driftline log` lists versions"));
    }
    let absent = store.catalog().streams().filter(|(id, _)| {
        is_named(id, sources) && points.between.is_none() && !question.pairs.iter().any(|pair| pair.stream == **id)
    });
    for (id, _) in absent {
        settings.printer.warn(&format!("the source `{id}` has no version from that time and is no part of the answer"));
    }
    for pair in question.pairs.iter().filter(|pair| pair.expected.is_none()) {
        settings.printer.warn(&format!(
            "the source `{}` has versions, but none that it could be compared with: all of it is not checked",
            pair.stream
        ));
    }
    Ok((question, expected))
}

pub(crate) fn parse_sources(names: &[String]) -> CommandResult<Vec<StreamId>> {
    names
        .iter()
        .map(|name| name.parse().map_err(|error: driftline_core::NameError| CommandError::new(error.to_string())))
        .collect()
}

/// Whether a stream is one of those named; a source's name stands for all its scopes.
pub(crate) fn is_named(stream: &StreamId, named: &[StreamId]) -> bool {
    named.is_empty() || named.iter().any(|one| stream == one || (one.scope.is_none() && one.source == stream.source))
}

pub(crate) fn restrict(store: &Store, question: &mut Question, named: &[StreamId]) -> CommandResult<()> {
    for one in named {
        if !store.catalog().streams().any(|(stream, _)| is_named(stream, std::slice::from_ref(one))) {
            return Err(store.catalog().no_state(one).into());
        }
    }
    question.pairs.retain(|pair| is_named(&pair.stream, named));
    Ok(())
}

/// The versions to compare, of all sources.
pub(crate) fn question(settings: &Settings, store: &Store, args: Points<'_>) -> CommandResult<(Question, Expected)> {
    let moment = |text: Option<&str>| text.map(|text| parse_moment(text, settings.now)).transpose();
    let at = moment(args.at)?;
    if let Some([a, b]) = args.between {
        if args.at.is_some() || args.since.is_some() {
            return Err(CommandError::new(
                "`--between` names both sides; `--at` and `--since` have no place beside it",
            ));
        }
        let (a, b) = (Point::parse(a, settings.now)?, Point::parse(b, settings.now)?);
        let pairs = pairs_between(store, a, b);
        if pairs.is_empty() {
            return Err(
                CommandError::new("no source has versions at both points").hint("`driftline log` lists versions")
            );
        }
        let text = format!("between {} and {}", a.name(), b.name());
        return Ok((Question { pairs, accepted: Vec::new() }, Expected::Versions { text }));
    }
    if let Some(since) = moment(args.since)? {
        let live = at.map_or(Point::Newest, Point::At);
        let text = format!("since {since}");
        let pairs = pairs_between(store, Point::At(since), live);
        return Ok((Question { pairs, accepted: Vec::new() }, Expected::Versions { text }));
    }
    let name = settings.baseline(args.baseline)?;
    let question = store.question(&name, at)?;
    let set_at = store.catalog().baseline(&name)?.set_at;
    Ok((question, Expected::Baseline { name: name.to_string(), set_at }))
}

/// One end of a comparison.
#[derive(Clone, Copy, Debug)]
enum Point {
    Version(u64),
    At(Timestamp),
    Newest,
}

impl Point {
    fn parse(text: &str, now: Timestamp) -> CommandResult<Self> {
        if let Some(number) = text.strip_prefix('v').and_then(|number| number.parse().ok()) {
            return Ok(Point::Version(number));
        }
        if text == "now" || text == "latest" {
            return Ok(Point::Newest);
        }
        parse_moment(text, now).map(Point::At).map_err(|error| error.hint("a version is written like v3"))
    }

    fn name(self) -> String {
        match self {
            Point::Version(number) => format!("version {number}"),
            Point::At(time) => time.to_string(),
            Point::Newest => "the newest version".into(),
        }
    }

    fn find(self, stream: &Stream) -> Option<u64> {
        match self {
            Point::Version(number) => stream.get(number),
            Point::At(time) => stream.at(time),
            Point::Newest => stream.head(),
        }
        .map(|version| version.number)
    }
}

/// A source that has nothing at the later point is not there; one that has nothing at the earlier was not looked at.
fn pairs_between(store: &Store, expected: Point, live: Point) -> Vec<Pair> {
    let pair = |(id, stream): (&StreamId, &Stream)| {
        let live = live.find(stream)?;
        let expected = expected.find(stream);
        // A version number that only another source has says nothing of this one.
        Some(Pair { stream: id.clone(), expected, live })
    };
    let pairs = store.catalog().streams().filter_map(pair);
    match expected {
        Point::Version(_) => pairs.filter(|pair| pair.expected.is_some()).collect(),
        _ => pairs.collect(),
    }
}

pub(crate) fn entry_of<'a>(finding: &'a Finding, source: &'a str) -> Entry<'a> {
    let Judgement { status, kind, changes, excused, reason } = &finding.judgement;
    Entry {
        key: &finding.key,
        source,
        status: *status,
        kind: *kind,
        since: finding.since,
        changes: finding.unread.as_deref().map_or(Changes::Read(changes), Changes::Unread),
        excused,
        reason: reason.as_deref(),
        rating: None,
    }
}

/// What was found, before it is filtered and printed.
struct Answer<'a> {
    drift: &'a Drift,
    in_sync: &'a [(StreamId, ResourceKey)],
    expected: Expected,
    /// Nothing was left out of the question, so that a rule which excused nothing is of no use.
    whole: bool,
    /// The same question one version earlier.
    previous: Option<&'a Drift>,
}

fn finish(settings: &Settings, answer: Answer<'_>, shown: &ShownArgs, verdict: VerdictArgs) -> CommandResult<u8> {
    let Answer { drift, in_sync, expected, whole, previous } = answer;
    let filter = shown.filter.as_deref().map(Filter::new).transpose()?;
    let names: BTreeMap<&StreamId, String> =
        drift.sources.iter().map(|source| (&source.stream, source.stream.to_string())).collect();
    let name = |stream: &StreamId| names.get(stream).map_or("", String::as_str);
    let mut entries: Vec<Entry<'_>> =
        drift.findings.iter().map(|finding| entry_of(finding, name(&finding.stream))).collect();
    entries.extend(in_sync.iter().map(|(stream, key)| Entry {
        key,
        source: name(stream),
        status: Status::InSync,
        kind: None,
        since: None,
        changes: Changes::Read(&[]),
        excused: &[],
        reason: None,
        rating: None,
    }));
    Rater::new(&settings.config.severities).rate_all(&mut entries)?;
    let mut tally = drift.tally();
    let mut by_type = drift.by_type.clone();
    let mut excused = drift.excused();
    if let Some(filter) = &filter {
        let mut kept = Vec::with_capacity(entries.len());
        for entry in entries {
            if filter.matches(&entry)? {
                kept.push(entry);
            }
        }
        entries = kept;
        tally = Tally::default();
        by_type = BTreeMap::new();
        for entry in &entries {
            tally.add(entry.status);
            by_type.entry(entry.key.kind.clone()).or_default().add(entry.status);
        }
        excused = entries.iter().map(|entry| entry.excused.len()).sum();
    }
    let mut only_excused = Vec::new();
    if !shown.all {
        let listed = |entry: &Entry<'_>| entry.status != Status::InSync || entry.kind == Some(DriftKind::Resolved);
        (entries, only_excused) = entries.into_iter().partition(listed);
        only_excused.retain(|entry| !entry.excused.is_empty());
    }
    let severities = Counts::of(entries.iter().filter_map(Entry::severity));
    entries.sort_by(|a, b| (a.key, a.source).cmp(&(b.key, b.source)));
    let unused = match whole {
        true => settings.rules.unused(&settings.config, &drift.rule_uses),
        false => Vec::new(),
    };
    let expired: Vec<_> = settings.config.rules.iter().filter(|rule| rule.has_expired(settings.now)).collect();
    for rule in &expired {
        let owner = rule.owner.as_ref().map(|owner| format!(", owner {owner}")).unwrap_or_default();
        settings.printer.warn(&format!("{} has expired and no longer excuses anything{owner}", rule.name));
    }
    if !unused.is_empty() {
        let names: Vec<&str> = unused.iter().map(|rule| rule.name.as_str()).collect();
        settings.printer.note(&format!("note: {} excused nothing", names.join(", ")));
    }
    let report = Report {
        now: settings.now,
        expected,
        entries,
        tally,
        excused,
        sources: &drift.sources,
        book: &settings.rules.book,
        limit: shown.limit,
        all: shown.all,
        unused_rules: unused.iter().map(|rule| rule.name.as_str()).collect(),
        expired_rules: expired.iter().map(|rule| rule.name.as_str()).collect(),
        filter: shown.filter.clone(),
        severities,
        by_type,
        only_excused,
        previous,
        fail_on: verdict.fail_on,
        stale_after: settings.config.stale_after.unwrap_or(DEFAULT_STALE_AFTER),
    };
    settings.printer.print(&report)?;
    Ok(exit_code(tally, severities, verdict))
}

fn exit_code(tally: Tally, severities: Counts, verdict: VerdictArgs) -> u8 {
    let fails = match verdict.fail_on {
        FailOn::Drifted => tally.drifted > 0,
        FailOn::Unknown => tally.drifted > 0 || tally.unknown > 0,
        FailOn::Never => false,
        FailOn::Critical | FailOn::High | FailOn::Medium | FailOn::Low => {
            verdict.fail_on.severity().is_some_and(|level| severities.reaches(level))
        }
    };
    match () {
        () if verdict.exit_zero => exit::IN_SYNC,
        () if fails => exit::DRIFT,
        () if verdict.strict && tally.not_checked > 0 => exit::NOT_CHECKED,
        () => exit::IN_SYNC,
    }
}

/// Two files, no store.
pub(crate) fn diff(settings: &Settings, args: &DiffArgs) -> CommandResult<u8> {
    let sealer = Sealer::for_once(&settings.config.seal)?;
    let expected = read_file(settings, &args.expected, sealer.clone())?;
    let live = read_file(settings, &args.live, sealer)?;
    if expected.stream != live.stream {
        settings.printer.warn(&format!("the first file is of `{}`, the second of `{}`", expected.stream, live.stream));
    }
    let mut drift = Drift::default();
    let shared = Arc::new(live.stream.clone());
    let keys: BTreeSet<&ResourceKey> = expected.resources.keys().chain(live.resources.keys()).collect();
    let mut in_sync = Vec::new();
    for key in keys {
        let (before, after) = (expected.resources.get(key), live.resources.get(key));
        if before.is_some() && before == after {
            drift.by_type.entry(key.kind.clone()).or_default().add(Status::InSync);
            if args.shown.all || args.shown.filter.is_some() {
                in_sync.push((live.stream.clone(), key.clone()));
            }
            continue;
        }
        let value = |properties: Option<&Properties>| properties.map(Properties::to_value);
        let (before, after): (Option<Value>, Option<Value>) = (value(before), value(after));
        let sides = (
            Side { value: before.as_ref(), coverage: &expected.coverage },
            Side { value: after.as_ref(), coverage: &live.coverage },
        );
        let source = live.stream.source.as_str();
        let Some(judgement) = judge(key.as_ref(), source, &sides.0, &sides.1, &settings.rules.book) else { continue };
        drift.by_type.entry(key.kind.clone()).or_default().add(judgement.status);
        for excused in &judgement.excused {
            *drift.rule_uses.entry(excused.rule).or_default() += 1;
        }
        let finding = Finding { stream: shared.clone(), key: key.clone(), judgement, since: None, unread: None };
        drift.findings.push(finding);
    }
    let (complete_extents, partial_extents) = live.coverage.counts();
    drift.sources.push(SourceReport {
        stream: live.stream,
        expected: Some(1),
        version: 2,
        taken_at: live.taken_at,
        complete_extents,
        partial_extents,
    });
    let text = format!("between `{}` and `{}`", args.expected.display(), args.live.display());
    let (expected, whole) = (Expected::Versions { text }, args.shown.filter.is_none());
    let answer = Answer { drift: &drift, in_sync: &in_sync, expected, whole, previous: None };
    finish(settings, answer, &args.shown, args.verdict)
}

/// An observation in memory.
struct InMemory<'s> {
    settings: &'s Settings,
    stream: StreamId,
    taken_at: Timestamp,
    coverage: Coverage,
    resources: BTreeMap<ResourceKey, Properties>,
    sealer: Sealer,
}

impl Sink for InMemory<'_> {
    type Error = CommandError;

    fn header(&mut self, header: PlainHeader) -> CommandResult<()> {
        self.stream = header.stream;
        self.taken_at = header.taken_at.unwrap_or(self.settings.now);
        self.coverage = header.coverage.unwrap_or_default();
        Ok(())
    }

    fn resource(&mut self, seen: Seen<'_>) -> CommandResult<()> {
        let key = ResourceKey::from(seen.key);
        let properties = self.sealer.seal(seen.key.kind, seen.properties, seen.sensitive)?.into();
        if let Some(_first) = self.resources.insert(key, properties) {
            return Err(CommandError::new(format!(
                "`{}` ({} in {}) is given twice",
                seen.key.id, seen.key.kind, seen.key.place
            )));
        }
        Ok(())
    }
}

fn read_file<'s>(settings: &'s Settings, path: &Path, sealer: Sealer) -> CommandResult<InMemory<'s>> {
    let about = |error: CommandError| error.about(format!("cannot read `{}`", path.display()));
    let file = File::open(path).map_err(|error| about(CommandError::new(error.to_string())))?;
    let mut sink = InMemory {
        settings,
        stream: "unnamed".parse::<StreamId>().expect("a good name"),
        taken_at: settings.now,
        coverage: Coverage::new(),
        resources: BTreeMap::new(),
        sealer,
    };
    match plain::read(BufReader::with_capacity(1 << 20, file), &mut sink) {
        Ok(()) => Ok(sink),
        Err(ReadError::Sink { place, source }) => Err(about(source.about(place))),
        Err(error) => Err(about(CommandError::new(error.to_string()))),
    }
}
