//! `observe all`: every configured source; those that ask AWS in many accounts, within bounds that hold for all of them.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::time::Duration;

use serde::Serialize;

use crate::accounts::Shard;
use crate::args::PermissionArgs;
use crate::config::{ConfiguredSource, From as Origin};
use crate::error::{CommandError, CommandResult};
use crate::fleet_args::{AllArgs, Fleet, OVERALL, PER_ACCOUNT, PER_REGION, PER_SERVICE};
use crate::observe::{Extents, JsonLine, Line, exit_code, run_one};
use crate::output::{DIM, GREEN, Page, RED, Show, YELLOW, columns, count, markdown_cell, markdown_table, visible};
use crate::settings::Settings;
use crate::surroundings::{stopwatch, text_variable};
use crate::swept::{AccountRun, Asking, AtOnce, Failure, Lost, Standing, Sweep, Swept};

/// What the number of an Indexed Job of Kubernetes, or of an array job of AWS Batch, is in; both count from 0.
const JOB_INDEX: [&str; 2] = ["JOB_COMPLETION_INDEX", "AWS_BATCH_JOB_ARRAY_INDEX"];

/// Every configured source, whatever happens to the others; the command fails if one of them did.
pub(crate) fn run(settings: &Settings, args: &AllArgs) -> CommandResult<u8> {
    let configured = &settings.config.sources;
    if configured.is_empty() {
        return Err(CommandError::new("no sources are configured")
            .hint("add [[source]] entries with `name` and `file` or `command` to driftline.toml"));
    }
    let index = JOB_INDEX.iter().find_map(|name| text_variable(name));
    let shard = args.shard.as_deref().map(|text| Shard::parse(text, index.as_deref())).transpose()?;
    let sweep = plan(args, &settings.config.fleet, configured, shard);
    if args.dry_run {
        crate::live::plan_all(settings, &sweep)?;
        return Ok(crate::exit::IN_SYNC);
    }
    // What is in no account is done by one of the machines that share the work.
    let others = |source: &&ConfiguredSource| !matches!(source.from, Origin::Live(_));
    let others: Vec<&ConfiguredSource> = match shard {
        Some(shard) if shard.number != 1 => Vec::new(),
        _ => configured.iter().filter(others).collect(),
    };
    let begun = stopwatch();
    let (outcomes, swept) = observe(settings, &others, &sweep, args.permissions);
    let mut report = AllReport { shard, took: begun.elapsed(), ..AllReport::default() };
    let mut losses = Losses::default();
    for (outcome, source) in outcomes.into_iter().zip(&others) {
        match outcome {
            Ok(lines) => {
                report.partial |= lines.iter().any(Line::is_partial);
                report.others.extend(lines);
            }
            Err(error) => losses.tell_source(settings, source.name.as_str(), error),
        }
    }
    report.partial |= swept.is_partial();
    let Swept { lines, accounts, failures, overtaken } = swept;
    for failure in failures {
        losses.tell(settings, &sweep, failure);
    }
    report.lines = lines;
    report.accounts = accounts;
    report.overtaken = overtaken;
    tell_gaps(settings, &report.accounts);
    tell_overtaken(settings, &report.overtaken);
    if sweep.sources.is_empty() && shard.is_some_and(|shard| shard.number != 1) {
        settings
            .printer
            .note("no source asks AWS itself, and the others are the first share's: there was nothing to do");
    }
    let nothing = report.lines.is_empty() && report.others.is_empty();
    // Where nobody was even found, an empty report would look like an empty fleet.
    if losses.is_empty() || !nothing || !report.accounts.is_empty() {
        settings.printer.print(&report)?;
    }
    // The list of the organization, and the word that known things were not looked at, are versions too: that there are
    // some does not mean that anybody was seen.
    let nobody = !report.accounts.is_empty() && report.accounts.values().all(AccountRun::is_unseen);
    if nobody && report.others.is_empty() {
        let error = CommandError::new("nothing was observed: no account could be entered");
        let error = match nothing {
            true => error.hint("nothing was committed"),
            false => error.hint("what is known of them is not checked from now on"),
        };
        return Err(error
            .hint("`driftline observe all --dry-run` tells which role is taken on, and what it and its taker need"));
    }
    match losses.is_empty() {
        true => Ok(exit_code(args.strict, report.partial)),
        false if nothing => Err(CommandError::new("nothing was observed").hint("nothing was committed")),
        false => Err(CommandError::new(format!("{}; the others were committed", losses.told()))),
    }
}

/// What was not observed, for another reason than that somebody refused it.
#[derive(Default)]
struct Losses {
    all: bool,
    roster: bool,
    sources: BTreeSet<String>,
    parts: usize,
}

impl Losses {
    fn is_empty(&self) -> bool {
        !self.all && !self.roster && self.sources.is_empty() && self.parts == 0
    }

    fn tell(&mut self, settings: &Settings, sweep: &Sweep<'_>, Failure { lost, error }: Failure) {
        let name = |source: usize| sweep.sources[source].source.as_str();
        let what = match lost {
            Lost::Source(source) => return self.tell_source(settings, name(source), error),
            Lost::All => {
                self.all = true;
                "AWS was not asked".to_owned()
            }
            Lost::Roster => {
                self.roster = true;
                "the list of the organization's accounts was not kept".to_owned()
            }
            Lost::Part(source) => {
                self.parts += 1;
                format!("a part of the source `{}` was not observed", name(source))
            }
        };
        settings.printer.error(&error.about(what));
    }

    fn tell_source(&mut self, settings: &Settings, source: &str, error: CommandError) {
        self.sources.insert(source.to_owned());
        settings.printer.error(&error.about(format!("the source `{source}` was not observed")));
    }

    /// All of it in a sentence.
    fn told(&self) -> String {
        let mut told = Vec::new();
        told.extend(self.all.then(|| "AWS was not asked".to_owned()));
        told.extend(match self.sources.len() {
            0 => None,
            1 => Some("one source was not observed".to_owned()),
            several => Some(format!("{several} sources were not observed")),
        });
        told.extend(match self.parts {
            0 => None,
            1 => Some("one part of a source was not observed".to_owned()),
            several => Some(format!("{several} parts of sources were not observed")),
        });
        told.extend(self.roster.then(|| "the list of the organization's accounts was not kept".to_owned()));
        told.join(", ")
    }
}

/// What a run over the configured sources that ask AWS is to do.
pub(crate) fn plan<'c>(
    args: &AllArgs,
    fleet: &Fleet,
    configured: impl IntoIterator<Item = &'c ConfiguredSource>,
    shard: Option<Shard>,
) -> Sweep<'c> {
    let asking = |source: &'c ConfiguredSource| match &source.from {
        Origin::Live(from) => {
            Some(Asking { source: &source.name, observer: &from.observer, args: from.args.in_fleet(args, fleet) })
        }
        _ => None,
    };
    let bound = |flag: Option<usize>, fleet: Option<usize>, default| flag.or(fleet).unwrap_or(default);
    Sweep {
        sources: configured.into_iter().filter_map(asking).collect(),
        at_once: AtOnce {
            overall: bound(args.concurrency, fleet.concurrency, OVERALL),
            per_account: Some(bound(args.per_account, fleet.per_account, PER_ACCOUNT)),
            per_region: Some(bound(args.per_region, fleet.per_region, PER_REGION)),
            per_service: Some(bound(args.per_service, fleet.per_service, PER_SERVICE)),
        },
        max_calls: args.max_calls.or(fleet.max_calls),
        shard,
        fleet: true,
        terse: true,
        permissions: args.permissions,
    }
}

/// Documents, programs and clusters each on a thread of their own, beside everything that is asked of AWS.
fn observe(
    settings: &Settings,
    others: &[&ConfiguredSource],
    sweep: &Sweep<'_>,
    permissions: PermissionArgs,
) -> (Vec<CommandResult<Vec<Line>>>, Swept) {
    std::thread::scope(|scope| {
        let run = |source: &ConfiguredSource| run_one(settings, source, permissions);
        let threads: Vec<_> = others.iter().map(|source| scope.spawn(move || run(source))).collect();
        let swept = match sweep.sources.is_empty() {
            true => Swept::default(),
            false => crate::live::sweep(settings, sweep),
        };
        let ended = |thread: std::thread::ScopedJoinHandle<'_, CommandResult<Vec<Line>>>| {
            thread.join().unwrap_or_else(|_| Err(CommandError::new("the observer's thread broke down")))
        };
        (threads.into_iter().map(ended).collect(), swept)
    })
}

/// One configured source, once.
#[cfg(feature = "notify")]
pub(crate) fn observe_configured(
    settings: &Settings,
    source: &ConfiguredSource,
    permissions: PermissionArgs,
) -> crate::observe::Outcome {
    if let Origin::Live(_) = &source.from {
        let args = AllArgs { permissions, ..AllArgs::default() };
        let sweep = Sweep { terse: false, ..plan(&args, &settings.config.fleet, [source], None) };
        let Swept { lines, accounts, failures, .. } = crate::live::sweep(settings, &sweep);
        let unreached = accounts.into_values().filter_map(|run| run.unreached).map(|(error, _)| error);
        let failures: Vec<CommandError> = failures.into_iter().map(|failure| failure.error).chain(unreached).collect();
        return match failures.len() {
            1 if lines.is_empty() => Err(failures.into_iter().next().expect("there is one")),
            _ => Ok((lines, failures)),
        };
    }
    run_one(settings, source, permissions).map(|lines| (lines, Vec::new()))
}

/// Each reason why something was not looked at, once, with the accounts that it holds for.
fn tell_gaps(settings: &Settings, accounts: &BTreeMap<String, AccountRun>) {
    let mut gaps: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut details: BTreeMap<&str, String> = BTreeMap::new();
    for (account, run) in accounts {
        let unreached = run.unreached.iter().map(|(error, reason)| {
            details.entry(reason).or_insert_with(|| error.message());
            reason
        });
        for reason in unreached.chain(run.reasons.keys()) {
            gaps.entry(reason).or_default().push(account);
        }
    }
    for (reason, accounts) in gaps {
        settings.printer.warn(&format!("{reason} ({}: {})", count(accounts.len(), "account"), some(&accounts)));
        // What AWS itself said has ids of requests in it, so it is said of one.
        if let Some(detail) = details.get(reason) {
            settings.printer.detail(detail);
        }
    }
}

/// Runs that overlap ask AWS for the same things twice; nothing is wrong with what is stored.
fn tell_overtaken(settings: &Settings, streams: &[String]) {
    if !streams.is_empty() {
        let streams: Vec<&str> = streams.iter().map(String::as_str).collect();
        settings.printer.note(&format!(
            "another run looked later and has committed; what this one saw of {} is left out ({})",
            count(streams.len(), "stream"),
            some(&streams)
        ));
    }
}

/// How many of many a line names.
const SOME: usize = 5;

/// The first of them, and how many more there are.
fn some(names: &[&str]) -> String {
    let first = names.iter().take(SOME).copied().collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(SOME) {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}

/// What was committed, and how it went in each account.
#[derive(Default)]
struct AllReport {
    /// What was asked of AWS.
    lines: Vec<Line>,
    /// What was not.
    others: Vec<Line>,
    accounts: BTreeMap<String, AccountRun>,
    /// Streams of which another run committed what it saw later.
    overtaken: Vec<String>,
    partial: bool,
    shard: Option<Shard>,
    took: Duration,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct JsonAccount<'a> {
    account: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    status: Standing,
    /// Why it was not entered, or not seen whole.
    reasons: Vec<&'a str>,
    streams: usize,
    resources: u64,
    extents: Extents,
    calls: u64,
    throttled: u64,
    seconds: f64,
}

/// To the millisecond.
fn seconds(took: Duration) -> f64 {
    (took.as_secs_f64() * 1000.0).round() / 1000.0
}

impl AllReport {
    /// What needs a person first.
    fn ordered(&self) -> Vec<(&str, &AccountRun)> {
        let mut ordered: Vec<(&str, &AccountRun)> =
            self.accounts.iter().map(|(account, run)| (account.as_str(), run)).collect();
        ordered.sort_by_key(|(account, run)| (run.standing(), *account));
        ordered
    }

    fn rows(&self) -> Vec<Vec<String>> {
        let header =
            ["account", "name", "status", "streams", "resources", "extents", "calls", "throttled", "seconds", ""];
        let mut rows = vec![header.map(str::to_owned).to_vec()];
        for (account, run) in self.ordered() {
            let extents = match run.partial {
                0 => run.complete.to_string(),
                partial => format!("{} + {partial} partial", run.complete),
            };
            let unreached = run.unreached.as_ref().map(|(_, reason)| reason.as_str());
            let mut why = unreached.into_iter().chain(run.reasons.keys().map(String::as_str));
            let first = why.next().unwrap_or_default().to_owned();
            let more = why.count();
            rows.push(vec![
                account.to_owned(),
                run.name.clone().unwrap_or_default(),
                run.standing().name().to_owned(),
                run.streams.to_string(),
                run.resources.to_string(),
                extents,
                run.calls.to_string(),
                run.throttled.to_string(),
                format!("{:.1}", run.took.as_secs_f64()),
                if more == 0 { first } else { format!("{first} (and {more} more)") },
            ]);
        }
        rows
    }

    fn result(&self) -> String {
        let with = |standing: Standing| self.accounts.values().filter(|run| run.standing() == standing).count();
        let told: Vec<String> = Standing::ALL
            .into_iter()
            .map(|standing| (with(standing), standing.name()))
            .filter(|(number, _)| *number > 0)
            .map(|(number, name)| format!("{number} {name}"))
            .collect();
        let sum = |of: fn(&AccountRun) -> u64| self.accounts.values().map(of).sum::<u64>();
        format!(
            "{}: {}; {}, {}; {} in {:.1} s{}",
            count(self.accounts.len(), "account"),
            told.join(", "),
            count(self.lines.len(), "stream"),
            count(sum(|run| run.resources), "resource"),
            count(sum(|run| run.calls), "call"),
            self.took.as_secs_f64(),
            self.shard.map_or_else(String::new, |shard| format!("; share {shard}")),
        )
    }

    /// With several accounts their streams are too many to read.
    fn is_fleet(&self) -> bool {
        self.accounts.len() > 1
    }

    fn shown(&self) -> impl Iterator<Item = &Line> {
        let of_aws = if self.is_fleet() { &[] } else { &self.lines[..] };
        self.others.iter().chain(of_aws)
    }

    fn json_accounts(&self) -> Vec<JsonAccount<'_>> {
        self.accounts
            .iter()
            .map(|(account, run)| JsonAccount {
                account,
                name: run.name.as_deref(),
                status: run.standing(),
                reasons: {
                    let unreached = run.unreached.iter().map(|(_, reason)| reason.as_str());
                    unreached.chain(run.reasons.keys().map(String::as_str)).collect()
                },
                streams: run.streams,
                resources: run.resources,
                extents: Extents { complete: run.complete, partial: run.partial },
                calls: run.calls,
                throttled: run.throttled,
                seconds: seconds(run.took),
            })
            .collect()
    }
}

impl Show for AllReport {
    fn table(&self, page: &mut Page<'_>) -> io::Result<()> {
        for line in self.shown() {
            let what = page.paint(GREEN, &format!("{} v{}", line.source(), line.committed().version));
            writeln!(page, "{what}  {}", line.summary())?;
        }
        if self.is_fleet() {
            let lines = columns(&self.rows(), 0);
            let standings =
                std::iter::once(None).chain(self.ordered().into_iter().map(|(_, run)| Some(run.standing())));
            for (line, standing) in lines.iter().zip(standings) {
                let line = match standing {
                    None => page.paint(DIM, line),
                    Some(Standing::Unreached | Standing::Failed) => page.paint(RED, line),
                    Some(Standing::Partial) => page.paint(YELLOW, line),
                    Some(Standing::Observed) => visible(line),
                };
                writeln!(page, "{line}")?;
            }
            writeln!(page, "result: {}", self.result())?;
        }
        Ok(())
    }

    fn json(&self, out: &mut dyn Write) -> io::Result<()> {
        #[derive(Serialize)]
        struct All<'a> {
            schema: &'a str,
            committed: Vec<JsonLine<'a>>,
            accounts: Vec<JsonAccount<'a>>,
            #[serde(skip_serializing_if = "<[_]>::is_empty")]
            overtaken: &'a [String],
            #[serde(skip_serializing_if = "Option::is_none")]
            shard: Option<String>,
            seconds: f64,
        }
        let all = All {
            schema: "driftline.observed/v1",
            committed: self.others.iter().chain(&self.lines).map(Line::json).collect(),
            accounts: self.json_accounts(),
            overtaken: &self.overtaken,
            shard: self.shard.map(|shard| shard.to_string()),
            seconds: seconds(self.took),
        };
        Ok(serde_json::to_writer_pretty(out, &all)?)
    }

    fn ndjson(&self, out: &mut dyn Write) -> io::Result<()> {
        for line in self.others.iter().chain(&self.lines) {
            serde_json::to_writer(&mut *out, &line.json())?;
            writeln!(out)?;
        }
        Ok(())
    }

    fn markdown(&self, out: &mut dyn Write) -> io::Result<()> {
        if self.shown().next().is_some() {
            writeln!(out, "| source | version | |\n|---|---|---|")?;
        }
        for line in self.shown() {
            writeln!(out, "| {} | {} | {} |", markdown_cell(line.source()), line.committed().version, line.summary())?;
        }
        if self.is_fleet() {
            markdown_table(&self.rows(), out)?;
            writeln!(out, "\n{}", markdown_cell(&self.result()))?;
        }
        Ok(())
    }
}
