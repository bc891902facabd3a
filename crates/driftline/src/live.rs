//! Observing AWS itself: who is asked and where, what is committed as it comes, and what a dry run prints.

use std::io::{self, Write};
use std::sync::mpsc;
use std::time::Duration;

use aws_wire::retry::Schedule;
use aws_wire::{Client, Counts, Options, Role};
use driftline_aws::accounts::{self, SESSION, Unreached};
use driftline_aws::cloudtrail::Events;
use driftline_aws::scan::Index;
use driftline_aws::{Asked, Here, Observer, Pass, Reach, Target, Unit, policy};
use driftline_core::{Outcome, SourceName, Span, StreamId};
use driftline_sources::cloudtrail::Event;
use driftline_sources::normalize::NormalizeError;
use futures_util::stream::{self, StreamExt};
use jiff::Timestamp;
use serde::Serialize;

use crate::args::{IamPolicyArgs, PermissionArgs};
use crate::error::{CommandError, CommandResult};
use crate::live_args::LiveArgs;
use crate::observe::{Line, commit_listing};
use crate::output::{Page, Show, write_out};
use crate::settings::Settings;
use crate::trail::{FIRST, Times};

/// Places that are looked at side by side. What is on the wire is bounded by the client.
const SIDE_BY_SIDE: usize = 16;

/// What came of it: what was committed, and what could not be.
#[derive(Default)]
pub(crate) struct Observed {
    pub lines: Vec<Line>,
    pub failures: Vec<CommandError>,
    pub partial: bool,
}

/// What the thread that asks AWS tells the one that commits.
enum News {
    Unreached(Unreached),
    Looked(Box<Here>, Result<Vec<Pass>, NormalizeError>),
    Progress { done: usize, total: usize, counts: Counts },
}

/// Every place that could be looked at is committed as it is done; one failure never loses another's result.
///
/// Asking has a thread and a runtime of its own: the store waits for its files in its own way, and would wait for
/// ever inside of an asynchronous task.
pub(crate) fn observe(
    settings: &Settings,
    observer: &str,
    source: &SourceName,
    args: &LiveArgs,
    permissions: PermissionArgs,
) -> CommandResult<Observed> {
    let observer = named(observer)?;
    let (asked, reach) = (asked(settings, observer, source, args)?, reach(args));
    let (tell, told) = mpsc::channel();
    let now = settings.now;
    let mut run = Run { settings, observer, source, permissions, observed: Observed::default() };
    let outcome = std::thread::scope(|scope| {
        let asking = scope.spawn(|| {
            let tell = tell;
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let runtime = runtime.map_err(|error| CommandError::because("cannot start the network", &error))?;
            runtime.block_on(ask_all(observer, source, args, &reach, &asked, now, &tell))
        });
        run.take(&told);
        asking.join().unwrap_or_else(|_| Err(CommandError::new("the thread that asks AWS broke down")))
    });
    outcome
        .map_err(|error| error.about(format!("cannot observe {}", observer.name())).hint("nothing was committed"))?;
    // In the order of their names, whichever came first.
    run.observed.lines.sort_by(|a, b| a.source().cmp(b.source()));
    Ok(run.observed)
}

/// Finds every account and region, and looks at all of them side by side.
async fn ask_all(
    observer: Observer,
    source: &SourceName,
    args: &LiveArgs,
    reach: &Reach,
    asked: &Asked,
    now: Timestamp,
    tell: &mpsc::Sender<News>,
) -> CommandResult<()> {
    let refused = |error: aws_wire::Error| CommandError::new(error.to_string());
    let client = Client::load(&options(args)).await.map_err(refused)?;
    let (targets, unreached) = accounts::targets(&client, reach).await.map_err(refused)?;
    // Whoever listens is there until this ends.
    for unreached in unreached {
        let _ = tell.send(News::Unreached(unreached));
    }
    let places = places(observer, asked, &targets, now);
    let total = places.len();
    let looking = stream::iter(places.into_iter().map(|here| async move {
        let passes = observer.observe(&here, source, asked).await;
        (here, passes)
    }));
    let mut looking = looking.buffer_unordered(SIDE_BY_SIDE);
    let mut done = 0;
    loop {
        match tokio::time::timeout(Duration::from_millis(250), looking.next()).await {
            Ok(Some((here, passes))) => {
                done += 1;
                let _ = tell.send(News::Looked(Box::new(here), passes));
            }
            Ok(None) => break,
            Err(_) => {}
        }
        let _ = tell.send(News::Progress { done, total, counts: client.counts() });
    }
    Ok(())
}

fn places(observer: Observer, asked: &Asked, targets: &[Target], now: Timestamp) -> Vec<Here> {
    let mut places = Vec::new();
    for target in targets {
        for unit in observer.units(asked) {
            let regions = match unit {
                Unit::Global => vec![None],
                Unit::Regional => target.regions.iter().map(|region| Some(region.clone())).collect(),
            };
            places.extend(regions.into_iter().map(|region| Here {
                client: region.as_deref().map_or_else(|| target.client.clone(), |name| target.client.in_region(name)),
                account: target.account.clone(),
                region,
                partition: target.partition,
                taken_at: now,
            }));
        }
    }
    places
}

fn not_reached(unreached: &Unreached) -> CommandError {
    CommandError::new(unreached.error.to_string()).about(format!("the account {} was not observed", unreached.account))
}

struct Run<'a> {
    settings: &'a Settings,
    observer: Observer,
    source: &'a SourceName,
    permissions: PermissionArgs,
    observed: Observed,
}

impl Run<'_> {
    fn take(&mut self, told: &mpsc::Receiver<News>) {
        let progress = Progress { shown: self.settings.printer.shows_progress() };
        let mut last = Counts::default();
        for news in told {
            match news {
                News::Unreached(unreached) => self.observed.failures.push(not_reached(&unreached)),
                News::Looked(here, passes) => {
                    progress.clear();
                    self.commit(&here, passes);
                }
                News::Progress { done, total, counts } => {
                    last = counts;
                    progress.show(counts, done, total);
                }
            }
        }
        progress.clear();
        self.settings.printer.detail(&format!(
            "{} calls to AWS, {} of them throttled, {} tried again",
            last.calls, last.throttled, last.retried
        ));
    }

    fn commit(&mut self, here: &Here, passes: Result<Vec<Pass>, NormalizeError>) {
        let passes = match passes {
            Ok(passes) => passes,
            Err(error) => {
                let failed = CommandError::new(error.to_string());
                self.observed.failures.push(failed.about(format!("{} was not observed", here.scope())));
                return;
            }
        };
        for pass in passes {
            if let Err(error) = self.commit_one(pass) {
                self.observed.failures.push(error);
            }
        }
    }

    fn commit_one(&mut self, pass: Pass) -> CommandResult<()> {
        let source = match &pass.part {
            Some(part) => format!("{}/{part}", self.source)
                .parse()
                .map_err(|error: driftline_core::NameError| CommandError::new(error.to_string()))?,
            None => self.source.clone(),
        };
        let stream = StreamId { source, scope: Some(pass.scope) };
        for (reason, kinds) in partial(&pass.listing.coverage) {
            self.observed.partial = true;
            self.settings.printer.warn(&format!("{stream}: {}: {reason}", kinds.join(", ")));
        }
        let about = format!("{stream} was not committed");
        let observer = format!("driftline observe {} (live)", self.observer.name());
        let line = commit_listing(self.settings, stream, pass.listing, &observer, self.permissions)
            .map_err(|error| error.about(about))?;
        self.observed.lines.push(line);
        Ok(())
    }
}

/// Reasons why something was not seen whole, each with the types it is of.
fn partial(coverage: &driftline_core::Coverage) -> Vec<(String, Vec<String>)> {
    let mut reasons: std::collections::BTreeMap<String, Vec<String>> = std::collections::BTreeMap::new();
    for (kind, _, outcome) in coverage.iter() {
        if let Outcome::Partial { reason } = outcome {
            let kinds = reasons.entry(reason.clone()).or_default();
            if kinds.last().is_none_or(|last| last != kind) {
                kinds.push(kind.to_owned());
            }
        }
    }
    reasons.into_iter().collect()
}

struct Progress {
    shown: bool,
}

impl Progress {
    fn show(&self, counts: Counts, done: usize, total: usize) {
        if self.shown {
            let throttled =
                if counts.throttled > 0 { format!(", {} throttled", counts.throttled) } else { String::new() };
            let _ = write!(
                io::stderr().lock(),
                "\r\x1b[Kasking AWS: {done} of {total} places done, {} calls{throttled}",
                counts.calls
            );
        }
    }

    fn clear(&self) {
        if self.shown {
            let _ = write!(io::stderr().lock(), "\r\x1b[K");
        }
    }
}

fn named(observer: &str) -> CommandResult<Observer> {
    let names = Observer::ALL.map(Observer::name).join(", ");
    Observer::named(observer).ok_or_else(|| {
        CommandError::new(format!("`{observer}` cannot be observed live"))
            .hint(format!("the live observers are {names}"))
    })
}

fn asked(settings: &Settings, observer: Observer, source: &SourceName, args: &LiveArgs) -> CommandResult<Asked> {
    let known = observer.types();
    if !observer.takes_any_type() {
        for kind in &args.types {
            if !known.iter().any(|known| known.eq_ignore_ascii_case(kind)) {
                let error = CommandError::new(format!("{} has no listing of `{kind}`", observer.name()));
                return Err(match known.is_empty() {
                    true => error.hint("it has no types to choose from"),
                    false => error.hint(format!("it lists {}", known.join(", "))),
                });
            }
        }
    }
    let scan = match args.scan.as_deref() {
        None => None,
        Some(_) if observer != Observer::Inventory => {
            return Err(CommandError::new("--scan goes with `observe inventory`"));
        }
        Some(name) => {
            let names = Index::ALL.map(Index::name).join(", ");
            let found = Index::ALL.into_iter().find(|index| index.name() == name);
            Some(found.ok_or_else(|| {
                CommandError::new(format!("`{name}` is not an index of AWS")).hint(format!("the indexes are {names}"))
            })?)
        }
    };
    let events = match observer {
        Observer::CloudTrail => {
            let Times { since, until, known_until } = Times::of(settings, source, &args.events)?;
            Events { reads: args.events.reads, since, until, known_until, first: FIRST, about: None }
        }
        _ => Events::default(),
    };
    Ok(Asked { types: args.types.clone(), scan, events })
}

fn reach(args: &LiveArgs) -> Reach {
    Reach {
        regions: args.regions.clone(),
        all_regions: args.all_regions,
        exclude_regions: args.exclude_regions.clone(),
        accounts: args.accounts.clone(),
        organization: args.organization,
        role_name: args.role_name.clone(),
        external_id: args.external_id.clone(),
    }
}

pub(crate) fn options(args: &LiveArgs) -> Options {
    let last = args.role_arns.len().saturating_sub(1);
    let roles = args.role_arns.iter().enumerate().map(|(at, arn)| Role {
        arn: arn.clone(),
        external_id: args.external_id.clone().filter(|_| at == last),
        session_name: SESSION.to_owned(),
    });
    let standard = Options::default();
    Options {
        profile: args.profile.clone(),
        region: args.regions.first().cloned(),
        endpoint_url: args.endpoint_url.clone(),
        roles: roles.collect(),
        schedule: Schedule { attempts: args.attempts.unwrap_or(standard.schedule.attempts), ..standard.schedule },
        concurrency: args.concurrency.unwrap_or(standard.concurrency),
        budget: args.max_calls,
        user_agent: concat!("driftline/", env!("CARGO_PKG_VERSION")).to_owned(),
        ..standard
    }
}

/// Asks CloudTrail for what is about things of these names within a span. Nothing of it is stored.
pub(crate) fn lookup(
    settings: &Settings,
    profile: Option<&str>,
    account: &str,
    region: &str,
    span: Span,
    names: &[&str],
) -> CommandResult<Vec<Event>> {
    let args =
        LiveArgs { profile: profile.map(str::to_owned), regions: vec![region.to_owned()], ..LiveArgs::default() };
    let reach = Reach { accounts: vec![account.to_owned()], ..reach(&args) };
    let refused = |error: aws_wire::Error| CommandError::new(error.to_string());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| CommandError::because("cannot start the network", &error))?;
    runtime.block_on(async {
        let client = Client::load(&options(&args)).await.map_err(refused)?;
        let (targets, unreached) = accounts::targets(&client, &reach).await.map_err(refused)?;
        if let Some(unreached) = unreached.first() {
            return Err(not_reached(unreached));
        }
        let mut found = Vec::new();
        for here in places(Observer::CloudTrail, &Asked::default(), &targets, settings.now) {
            for name in names {
                let events = Events {
                    since: Some(span.from),
                    until: Some(span.to.min(settings.now)),
                    about: Some((*name).to_owned()),
                    ..Events::default()
                };
                let asked = Asked { events, ..Asked::default() };
                let source: SourceName = "cloudtrail".parse().expect("a good name");
                let passes = Observer::CloudTrail.observe(&here, &source, &asked).await;
                for pass in passes.map_err(|error| CommandError::new(error.to_string()))? {
                    // Half an answer would look like nobody else did it.
                    if let Some((reason, _)) = partial(&pass.listing.coverage).into_iter().next() {
                        return Err(CommandError::new(reason));
                    }
                    found.extend(
                        pass.listing.resources.values().filter_map(|one| Event::of(&one.properties.to_value())),
                    );
                }
            }
        }
        Ok(found)
    })
}

/// What would be asked, without asking.
pub(crate) fn plan(settings: &Settings, observer: &str, source: &SourceName, args: &LiveArgs) -> CommandResult<()> {
    let observer = named(observer)?;
    let (asked, reach) = (asked(settings, observer, source, args)?, reach(args));
    let some = |list: &[String], none: &str| if list.is_empty() { none.to_owned() } else { list.join(", ") };
    let regions = match (args.all_regions, observer.units(&asked).contains(&Unit::Regional)) {
        (_, false) => "none: it is the same in all of them".to_owned(),
        (true, true) => "every region that is enabled".to_owned(),
        (false, true) => some(&args.regions, "the configured one"),
    };
    let accounts = match args.organization {
        true => "every active account of the organization".to_owned(),
        false => some(&args.accounts, "the one that the credentials are of"),
    };
    let operations = observer.operations(&asked);
    let mut calls: Vec<String> = operations.iter().map(|one| format!("{} {}", one.service, one.name)).collect();
    calls.sort();
    calls.dedup();
    let actions = policy::actions([(observer, &asked)], &reach);
    settings.printer.print(&Plan {
        schema: "driftline.plan/v1",
        observer: observer.name(),
        source: source.to_string(),
        accounts,
        regions,
        excluded: args.exclude_regions.clone(),
        types: if asked.scan.is_some() { Vec::new() } else { types(observer, &asked) },
        calls,
        policy: policy::policy(&actions),
    })
}

fn types(observer: Observer, asked: &Asked) -> Vec<String> {
    match asked.types.is_empty() {
        true => observer.types().into_iter().map(str::to_owned).collect(),
        false => asked.types.clone(),
    }
}

#[derive(Serialize)]
struct Plan {
    schema: &'static str,
    observer: &'static str,
    source: String,
    accounts: String,
    regions: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    excluded: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    types: Vec<String>,
    calls: Vec<String>,
    policy: serde_json::Value,
}

impl Plan {
    fn lines(&self) -> Vec<(&'static str, String)> {
        let mut lines = vec![
            ("source", self.source.clone()),
            ("accounts", self.accounts.clone()),
            ("regions", self.regions.clone()),
        ];
        if !self.excluded.is_empty() {
            lines.push(("but not", self.excluded.join(", ")));
        }
        if !self.types.is_empty() {
            lines.push(("types", self.types.join(", ")));
        }
        lines.push(("calls", self.calls.join(", ")));
        lines
    }

    fn policy(&self) -> String {
        serde_json::to_string_pretty(&self.policy).unwrap_or_default()
    }
}

impl Show for Plan {
    fn table(&self, page: &mut Page<'_>) -> io::Result<()> {
        writeln!(page, "{} would ask (nothing was asked):", self.observer)?;
        for (name, text) in self.lines() {
            writeln!(page, "  {name:<9} {text}")?;
        }
        writeln!(page, "\nThe IAM policy for it:\n{}", self.policy())
    }

    fn json(&self, out: &mut dyn Write) -> io::Result<()> {
        Ok(serde_json::to_writer_pretty(out, self)?)
    }

    fn ndjson(&self, out: &mut dyn Write) -> io::Result<()> {
        serde_json::to_writer(&mut *out, self)?;
        writeln!(out)
    }

    fn markdown(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "| {} | |\n|---|---|", self.observer)?;
        for (name, text) in self.lines() {
            writeln!(out, "| {name} | {} |", crate::output::markdown_cell(&text))?;
        }
        writeln!(out, "\n```json\n{}\n```", self.policy())
    }
}

/// The policy alone, ready to be attached.
pub(crate) fn iam_policy(settings: &Settings, args: &IamPolicyArgs) -> CommandResult<()> {
    let observers: Vec<Observer> = match args.observers.is_empty() {
        true => Observer::ALL.to_vec(),
        false => args.observers.iter().map(|name| named(name)).collect::<CommandResult<_>>()?,
    };
    let asked = Asked { types: args.types.clone(), ..Asked::default() };
    let reach = Reach { all_regions: args.all_regions, organization: args.organization, ..Reach::default() };
    let actions = policy::actions(observers.iter().map(|observer| (*observer, &asked)), &reach);
    if observers.contains(&Observer::CloudControl) {
        settings.printer.note(
            "reading through Cloud Control needs the read permissions of each type itself, too; its schema lists them",
        );
    }
    let text = serde_json::to_string_pretty(&policy::policy(&actions)).unwrap_or_default() + "\n";
    write_out(text.as_bytes())
}
