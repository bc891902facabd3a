//! `query`: SQL over the store, asked here or of a cluster.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::time::Duration;

use driftline_sources::place::account_and_region;
use driftline_sql::error::{Told, size};
use driftline_sql::views::Moment;
use driftline_sql::{
    Allowing, Answer, Asked, Engine, FindingRow, LONGEST, Library, Limits, Named, Opener, SqlError, Stop, library,
    parameters,
};
use driftline_store::Store;

use crate::drift::entry_of;
use crate::error::{CommandError, CommandResult};
use crate::exit;
use crate::output::{BOLD, DIM, Format, Page, Show, columns, markdown_table, short, visible, write_out};
use crate::place::StoreAt;
use crate::query_args::{LimitArgs, QueryArgs, parse_size};
use crate::report::{Changes, Entry, JsonChange, JsonExcused, json_change, json_excused};
use crate::settings::Settings;
use crate::severity::Rater;
use crate::surroundings::leave;
use crate::time::{parse_duration, parse_moment};

/// The forms of an answer.
const FORMATS: [Format; 6] =
    [Format::Table, Format::Json, Format::Ndjson, Format::Csv, Format::Markdown, Format::Parquet];
/// How long a value may be in a table.
const CELL: usize = 100;

pub(crate) fn run(settings: &Settings, args: &QueryArgs) -> CommandResult<u8> {
    if args.list {
        settings.printer.only(&[Format::Table, Format::Json, Format::Ndjson, Format::Markdown])?;
        let library = library(settings)?;
        library.bad().for_each(|told| settings.printer.warn(&told.message));
        settings.printer.print(&Listed(&library))?;
        return Ok(exit::IN_SYNC);
    }
    settings.printer.only(&FORMATS)?;
    let sql = sql(settings, args)?;
    if args.show {
        write_out(format!("{}\n", sql.trim_end()).as_bytes())?;
        return Ok(exit::IN_SYNC);
    }
    let (engine, limits) = (engine(args.engine.as_deref())?, limits(&args.limits, None, "--timeout")?);
    let watch = Signals::watch();
    let answered = ask(settings, &sql, &engine, &limits, &watch.stop);
    watch.done();
    match answered {
        Err(SqlError::Interrupted) => Ok(u8::try_from(watch.signal.load(Ordering::SeqCst)).unwrap_or(exit::ERROR)),
        Err(error) => Err(told(&error, FLAGS)),
        Ok(answer) => {
            if answer.rows() == 0 {
                settings.printer.note("no rows");
            }
            print(settings, &answer)?;
            Ok(exit::IN_SYNC)
        }
    }
}

/// By which flags of `query` more is allowed.
const FLAGS: Allowing =
    Allowing { time: Some("--timeout"), memory: Some("--memory"), spill: Some("--spill"), files: true };

fn library(settings: &Settings) -> CommandResult<Library> {
    Library::load(settings.config.queries.as_deref()).map_err(refused)
}

/// Answers an agent: a few rows, soon, and nothing of what is sealed.
#[cfg(feature = "mcp")]
pub(crate) fn answer(settings: &Settings, sql: &str, rows: usize) -> CommandResult<()> {
    let args = LimitArgs { timeout: "30s".into(), memory: "512MiB".into(), spill: "1GiB".into() };
    let limits = limits(&args, Some(rows), "--timeout")?;
    let answer = asked(settings).and_then(|(asked, opener)| {
        let asked = Asked { masked: true, ..asked };
        driftline_sql::ask(&asked, opener, sql, &Engine::Here, &limits, &Stop::default())
    });
    print(settings, &answer.map_err(|error| told(&error, Allowing::default()))?)
}

/// Prints an answer in the forms that are asked for.
fn print(settings: &Settings, answer: &Answer) -> CommandResult<()> {
    let by_name = settings.printer.is_heard()
        || [Format::Json, Format::Ndjson, Format::Parquet].into_iter().any(|form| settings.printer.prints(form));
    if let Some(name) = answer.name_twice().filter(|_| by_name) {
        return Err(CommandError::new(format!("two columns of the answer are called `{name}`"))
            .hint(format!("give one of them another name, as in a.{name} AS other_{name}")));
    }
    let table = Table { answer, cut: AtomicBool::new(false) };
    settings.printer.print(&table)?;
    if table.cut.load(Ordering::Relaxed) {
        settings
            .printer
            .note(&format!("values longer than {CELL} characters are cut; -o json or -o csv has them whole"));
    }
    Ok(())
}

/// The question as SQL: as it was given, or by its name, with its parameters in place.
fn sql(settings: &Settings, args: &QueryArgs) -> CommandResult<String> {
    let mut given = BTreeMap::new();
    for one in &args.parameters {
        let (name, value) = one.split_once('=').ok_or_else(|| {
            CommandError::new(format!("`{one}` is not a parameter")).hint("write it like --param days=30")
        })?;
        given.insert(name.to_owned(), value.to_owned());
    }
    let text = match (&args.file, args.question.as_deref()) {
        (Some(file), _) if file.as_os_str() == "-" => from_input()?,
        (Some(file), _) => {
            let name = format!("`{}`", file.display());
            let opened = std::fs::File::open(file)
                .map_err(|error| CommandError::because(format!("cannot read {name}"), &error))?;
            read_sql(opened, &name)?
        }
        (None, Some("-")) => from_input()?,
        (None, Some(name)) if library::is_name(name) => named(&library(settings)?, name)?,
        (None, Some(sql)) => sql.to_owned(),
        (None, None) => return Err(CommandError::new("there is no question")),
    };
    if text.trim().is_empty() {
        return Err(CommandError::new("the query is empty").hint("driftline query 'SELECT * FROM versions' is one"));
    }
    let declared = library::declared(&text).map_err(CommandError::new)?;
    parameters::fill(&text, &declared, &given, &moment(settings)).map_err(refused)
}

fn named(library: &Library, name: &str) -> CommandResult<String> {
    match library.get(name) {
        Some(Ok(named)) => Ok(named.sql.clone()),
        Some(Err(told)) => Err(refused(told.clone())),
        None => {
            let error = CommandError::new(format!("there is no query `{name}`"));
            let error = match library.nearest(name) {
                Some(near) => error.hint(format!("did you mean `{near}`?")),
                None => error,
            };
            Err(error.hint("`driftline query --list` shows those there are"))
        }
    }
}

fn from_input() -> CommandResult<String> {
    read_sql(io::stdin().lock(), "the query from standard input")
}

/// The whole of it, or nothing: the beginning of a query is another query.
fn read_sql(from: impl Read, name: &str) -> CommandResult<String> {
    let mut text = String::new();
    let read = from.take(LONGEST as u64 + 1).read_to_string(&mut text);
    read.map_err(|error| CommandError::because(format!("cannot read {name}"), &error))?;
    match text.len() > LONGEST {
        true => Err(CommandError::new(format!("{name} is longer than {}", size(LONGEST as u64)))
            .hint("a query is text; what it is asked of is in the store")),
        false => Ok(text),
    }
}

fn moment(settings: &Settings) -> Moment {
    let now = settings.now;
    Arc::new(move |text| match text {
        "now" => Ok(now),
        text => parse_moment(text, now).map_err(|error| apart(&error)),
    })
}

/// An error of the program on its way through a library that has its own.
fn apart(error: &CommandError) -> Told {
    let text = error.to_string();
    let text = text.strip_prefix("error: ").unwrap_or(&text);
    let (said, hints) = text.split_once("\nhint: ").unwrap_or((text, ""));
    let hints = hints.split("\nhint: ").filter(|hint| !hint.is_empty()).map(ToOwned::to_owned).collect();
    Told { message: said.replace("\n  caused by: ", ": "), hints }
}

fn refused(told: Told) -> CommandError {
    told.hints.into_iter().fold(CommandError::new(told.message), CommandError::hint)
}

pub(crate) fn told(error: &SqlError, allowing: Allowing) -> CommandError {
    match error {
        SqlError::Store(error) => {
            CommandError::new(error.to_string()).hint("`driftline verify` reads everything again")
        }
        other => other.hints(allowing).into_iter().fold(CommandError::new(other.to_string()), CommandError::hint),
    }
}

pub(crate) fn limits(args: &LimitArgs, rows: Option<usize>, timeout: &str) -> CommandResult<Limits> {
    let time = parse_duration(&args.timeout).map_err(|error| error.about(timeout))?;
    let time = Duration::try_from(time).ok().filter(|time| !time.is_zero());
    Ok(Limits {
        time: time.ok_or_else(|| CommandError::new(format!("{timeout} leaves no time at all")))?,
        memory: memory(&args.memory)?,
        spill: parse_size(&args.spill).map_err(|error| error.about("--spill"))?,
        folder: std::env::temp_dir(),
        rows,
    })
}

/// What `--memory` says, if any work can be done with it.
pub(crate) fn memory(text: &str) -> CommandResult<u64> {
    const LEAST: u64 = 16 << 20;
    let memory = parse_size(text).map_err(|error| error.about("--memory"))?;
    match memory < LEAST {
        true => Err(CommandError::new("--memory is too little for any query").hint("16MiB is the least")),
        false => Ok(memory),
    }
}

pub(crate) fn engine(named: Option<&str>) -> CommandResult<Engine> {
    let Some(address) = named else { return Ok(Engine::Here) };
    #[cfg(feature = "ballista")]
    if let Some(host) = address.strip_prefix("ballista://").filter(|host| !host.is_empty()) {
        return Ok(Engine::Ballista(host.trim_end_matches('/').to_owned()));
    }
    #[cfg(not(feature = "ballista"))]
    if address.starts_with("ballista://") {
        return Err(CommandError::new("this driftline was built without Ballista")
            .hint("in its source: cargo install --path crates/driftline --features ballista")
            .hint("without --engine this machine answers"));
    }
    Err(CommandError::new(format!("`{address}` is not an engine")).hint("write it like ballista://host:50050"))
}

/// Asks, with the store as it is now.
fn ask(settings: &Settings, sql: &str, engine: &Engine, limits: &Limits, stop: &Stop) -> Result<Answer, SqlError> {
    let (asked, opener) = asked(settings)?;
    driftline_sql::ask(&asked, opener, sql, engine, limits, stop)
}

/// What is asked of: the store as it is now.
fn asked(settings: &Settings) -> Result<(Asked, Opener), SqlError> {
    let store = settings.open_store().map_err(|error| of_program(&error))?;
    let place = place_for(&settings.store).map_err(|error| of_program(&error))?;
    let store = Arc::new(store);
    let opener: Opener = {
        let store = store.clone();
        Arc::new(move |_| Ok(Store::clone(&store)))
    };
    let find = {
        let (store, settings) = (store.clone(), settings.at(settings.now, None));
        Arc::new(move || findings(&settings, &store).map_err(|error| apart(&error)))
    };
    let catalog = store.catalog().clone();
    Ok((Asked { place, catalog, find, moment: moment(settings), masked: false }, opener))
}

fn of_program(error: &CommandError) -> SqlError {
    let Told { message, hints } = apart(error);
    SqlError::Query { message, hints }
}

/// The store by a name that means the same to every process on this machine, or on others that share it.
pub(crate) fn place_for(store: &StoreAt) -> CommandResult<String> {
    let Some(folder) = store.folder() else { return Ok(store.to_string()) };
    let folder = folder.canonicalize()?;
    folder.to_str().map(ToOwned::to_owned).ok_or_else(|| {
        CommandError::new(format!("`{}` cannot be named to an engine: it is not Unicode", folder.display()))
    })
}

/// What `drift` says under the configured baseline and the rules in force.
fn findings(settings: &Settings, store: &Store) -> CommandResult<Vec<FindingRow>> {
    let name = settings.baseline(None)?;
    let drift = store.drift(&store.question(&name, None)?, &settings.rules.book)?;
    let streams: Vec<String> = drift.findings.iter().map(|finding| finding.stream.to_string()).collect();
    let entries = drift.findings.iter().zip(&streams).map(|(finding, stream)| entry_of(finding, stream));
    let mut entries: Vec<Entry<'_>> = entries.collect();
    Rater::new(&settings.config.severities).rate_all(&mut entries)?;
    let row = |entry: &Entry<'_>| {
        let (account, region) = account_and_region(entry.key.place.as_str());
        let excused: Vec<JsonExcused<'_>> =
            entry.excused.iter().map(|one| json_excused(one, &settings.rules.book)).collect();
        Ok(FindingRow {
            baseline: name.to_string(),
            stream: entry.source.to_owned(),
            kind: entry.key.kind.clone(),
            place: entry.key.place.as_str().to_owned(),
            id: entry.key.id.clone(),
            account: account.map(ToOwned::to_owned),
            region: region.map(ToOwned::to_owned),
            status: entry.status.name(),
            how: entry.kind.map(driftline_core::verdict::DriftKind::name),
            since: entry.since,
            changes: match entry.changes {
                Changes::Unread(text) => text.to_owned(),
                Changes::Read(list) => json(&list.iter().map(json_change).collect::<Vec<JsonChange<'_>>>())?,
            },
            excused: json(&excused)?,
            reason: entry.reason.map(ToOwned::to_owned),
            severity: entry.severity().map(|severity| severity.to_string()),
        })
    };
    entries.iter().map(row).collect()
}

fn json(value: &impl serde::Serialize) -> CommandResult<String> {
    serde_json::to_string(value).map_err(|error| CommandError::because("a finding cannot be written", &error))
}

/// The first signal ends the query and lets it tidy up; one after that, or while an answer is printed, ends everything.
pub(crate) struct Signals {
    pub stop: Stop,
    done: Arc<AtomicBool>,
    signal: Arc<AtomicI32>,
}

impl Signals {
    /// The code to end with, if a signal asked for that.
    #[cfg(feature = "ballista")]
    pub(crate) fn heard(&self) -> i32 {
        self.signal.load(Ordering::SeqCst)
    }

    /// From here on a signal ends everything.
    pub(crate) fn done(&self) {
        self.done.store(true, Ordering::SeqCst);
    }

    pub(crate) fn watch() -> Self {
        use signal_hook::consts::{SIGINT, SIGTERM};
        let watch = Self { stop: Stop::default(), done: Arc::default(), signal: Arc::default() };
        if let Ok(mut signals) = signal_hook::iterator::Signals::new([SIGINT, SIGTERM]) {
            let (stop, done, told) = (watch.stop.clone(), watch.done.clone(), watch.signal.clone());
            std::thread::spawn(move || {
                for signal in signals.forever() {
                    let code = if signal == SIGINT { exit::INTERRUPTED } else { exit::TERMINATED };
                    if done.load(Ordering::SeqCst) || told.swap(code, Ordering::SeqCst) != 0 {
                        leave(code);
                    }
                    stop.now();
                }
            });
        }
        watch
    }
}

/// An answer on its way out.
struct Table<'a> {
    answer: &'a Answer,
    cut: AtomicBool,
}

impl Table<'_> {
    /// The heading, and every value as a text that fits.
    fn cells(&self) -> io::Result<Vec<Vec<String>>> {
        let mut rows = vec![self.answer.columns().into_iter().map(|(name, _)| name).collect::<Vec<_>>()];
        for row in self.answer.cells()? {
            let cell = |cell: Option<String>| {
                let text = cell.unwrap_or_default();
                if text.chars().count() > CELL {
                    self.cut.store(true, Ordering::Relaxed);
                }
                short(&text, CELL)
            };
            rows.push(row.into_iter().map(cell).collect());
        }
        Ok(rows)
    }
}

impl Show for Table<'_> {
    fn table(&self, page: &mut Page<'_>) -> io::Result<()> {
        for (at, line) in columns(&self.cells()?, 0).into_iter().enumerate() {
            let line = if at == 0 { page.paint(BOLD, &line) } else { line };
            writeln!(page, "{line}")?;
        }
        Ok(())
    }

    // The whole of it first: half an answer is never printed.
    fn json(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut text = Vec::new();
        self.answer.json(&mut text)?;
        out.write_all(&text)
    }

    fn ndjson(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut text = Vec::new();
        self.answer.ndjson(&mut text)?;
        out.write_all(&text)
    }

    fn markdown(&self, out: &mut dyn Write) -> io::Result<()> {
        markdown_table(&self.cells()?, out)
    }

    fn data(&self, format: Format) -> Option<io::Result<Vec<u8>>> {
        let mut bytes = Vec::new();
        let written = match format {
            Format::Csv => self.answer.csv(&mut bytes),
            Format::Parquet => self.answer.parquet(&mut bytes),
            _ => return None,
        };
        Some(written.map(|()| bytes))
    }
}

/// The queries that have a name.
struct Listed<'a>(&'a Library);

impl Listed<'_> {
    fn values(&self) -> impl Iterator<Item = serde_json::Value> {
        self.0.all().map(|query| {
            let parameter = |one: &parameters::Parameter| {
                serde_json::json!({"name": one.name, "default": one.default, "about": one.about})
            };
            serde_json::json!({
                "name": query.name,
                "title": query.title,
                "tells": query.tells,
                "parameters": query.parameters.iter().map(parameter).collect::<Vec<_>>(),
                "file": query.file,
            })
        })
    }

    fn parameters(query: &Named) -> String {
        let one = |one: &parameters::Parameter| format!("{}={}", one.name, one.default.as_deref().unwrap_or("…"));
        query.parameters.iter().map(one).collect::<Vec<_>>().join(" ")
    }
}

impl Show for Listed<'_> {
    fn table(&self, page: &mut Page<'_>) -> io::Result<()> {
        for query in self.0.all() {
            writeln!(page, "{}  {}", page.paint(BOLD, &query.name), visible(&query.title))?;
            if !query.tells.is_empty() {
                writeln!(page, "    {}", visible(&query.tells))?;
            }
            for one in &query.parameters {
                let default = one.default.as_deref().map(|text| format!("={text}")).unwrap_or_default();
                writeln!(page, "    {}", page.paint(DIM, &format!("--param {}{default}  {}", one.name, one.about)))?;
            }
        }
        writeln!(page, "\nAsk one: driftline query {}", self.0.all().next().map_or("NAME", |query| &query.name))
    }

    fn json(&self, out: &mut dyn Write) -> io::Result<()> {
        let queries: Vec<_> = self.values().collect();
        write!(out, "{}", serde_json::json!({"schema": "driftline.queries/v1", "queries": queries}))
    }

    fn ndjson(&self, out: &mut dyn Write) -> io::Result<()> {
        self.values().try_for_each(|query| writeln!(out, "{query}"))
    }

    fn markdown(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut rows = vec![["query", "tells", "parameters"].map(str::to_owned).to_vec()];
        rows.extend(self.0.all().map(|query| {
            vec![query.name.clone(), format!("{}. {}", query.title, query.tells), Self::parameters(query)]
        }));
        markdown_table(&rows, out)
    }
}
