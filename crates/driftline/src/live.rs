//! Observing AWS itself: who is asked and where, what is committed as it comes, and what a dry run prints.

mod plan;
mod sweep;
mod taking;

use std::sync::{Arc, Mutex};

use aws_wire::retry::Schedule;
use aws_wire::{Bounds, Client, Options, Pace, Role};
use driftline_aws::accounts::{self, SESSION};
use driftline_aws::cloudtrail::Events;
use driftline_aws::scan::Index;
use driftline_aws::{Asked, Hub, Observer, Reach, policy};
use driftline_core::{SourceName, Span};
use driftline_sources::cloudtrail::Event;
use tokio::sync::mpsc;

pub(crate) use plan::{plan, plan_all};

use crate::accounts::chosen;
use crate::args::{IamPolicyArgs, PermissionArgs};
use crate::error::{CommandError, CommandResult};
use crate::live_args::LiveArgs;
use crate::output::write_out;
use crate::settings::Settings;
use crate::surroundings::clock;
use crate::swept::{AccountRun, Asking, AtOnce, Failure, Lost, Observed, Sweep, Swept};
use crate::trail::{FIRST, Times};

use sweep::{Asker, Job};
use taking::{Progress, Taker, not_reached, partial};

const OF_CLOUD_CONTROL: &str =
    "reading through Cloud Control needs the read permissions of each type itself, too; its schema lists them";

/// Answers that wait to be committed. Beyond that asking waits, and memory does not grow.
const WAITING: usize = 4;

/// One source, in whatever accounts and regions it is asked for. Every place that could be looked at is committed as it
/// is done; one failure never loses another's result.
pub(crate) fn observe(
    settings: &Settings,
    observer: &str,
    source: &SourceName,
    args: &LiveArgs,
    permissions: PermissionArgs,
) -> CommandResult<Observed> {
    let at_once = AtOnce {
        overall: args.concurrency.unwrap_or(Bounds::default().overall),
        per_account: args.per_account,
        per_region: args.per_region,
        per_service: args.per_service,
    };
    let sources = vec![Asking { source, observer, args: args.clone() }];
    let sweep = Sweep { sources, at_once, max_calls: None, shard: None, fleet: false, terse: false, permissions };
    let swept = self::sweep(settings, &sweep);
    let partial = swept.is_partial();
    let Swept { lines, accounts, failures: found, .. } = swept;
    let mut failures: Vec<CommandError> =
        accounts.into_values().filter_map(|run| run.unreached).map(|(error, _)| error).collect();
    for Failure { lost, error } in found {
        if matches!(lost, Lost::All | Lost::Source(_)) {
            return Err(error.about(format!("cannot observe {observer}")).hint("nothing was committed"));
        }
        failures.push(error);
    }
    Ok(Observed { lines, failures, partial })
}

/// Many sources, side by side, each in its accounts and regions.
///
/// Asking has a thread and a runtime of its own: the store waits for its files in its own way, and would wait for
/// ever inside of an asynchronous task.
pub(crate) fn sweep(settings: &Settings, sweep: &Sweep<'_>) -> Swept {
    let mut jobs = Vec::new();
    let mut refused = Vec::new();
    for (at, asking) in sweep.sources.iter().enumerate() {
        match job(settings, asking) {
            Ok(job) => jobs.push((at, job)),
            Err(error) => refused.push(Failure { lost: Lost::Source(at), error }),
        }
    }
    let (numbers, jobs): (Vec<usize>, Vec<Job<'_>>) = jobs.into_iter().unzip();
    let progress = Progress::new(settings.printer.shows_progress());
    let pace = Arc::new(Pace::new(sweep::bounds(sweep.at_once), sweep.max_calls));
    let taker = Taker::new(settings, sweep, &jobs, &progress);
    let (tell, told) = mpsc::channel(WAITING);
    let told = Mutex::new(told);
    let asker = Asker { sweep, jobs: &jobs, pace: pace.clone(), now: settings.now, clock, progress: &progress, tell };
    let asked = std::thread::scope(|scope| {
        let asking = scope.spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let runtime = runtime.map_err(|error| CommandError::because("cannot start the network", &error))?;
            runtime.block_on(asker.ask_all());
            Ok(())
        });
        for _ in 0..taker.hands() {
            scope.spawn(|| taker.take(&told));
        }
        asking.join().unwrap_or_else(|_| Err(CommandError::new("the thread that asks AWS broke down")))
    });
    progress.aside(|| {});
    let mut swept = taker.finish();
    for failure in &mut swept.failures {
        failure.lost = match failure.lost {
            Lost::Source(job) => Lost::Source(numbers[job]),
            Lost::Part(job) => Lost::Part(numbers[job]),
            of_none => of_none,
        };
    }
    swept.failures.append(&mut refused);
    swept.failures.extend(asked.err().map(|error: CommandError| Failure { lost: Lost::All, error }));
    // In the order of what they are of, whichever came first.
    swept.failures.sort_by_cached_key(|failure| (failure.lost, failure.error.message()));
    swept.overtaken.sort();
    for (account, counts) in pace.by_account() {
        if let Some(run) = swept.accounts.get_mut(&account) {
            let AccountRun { calls, throttled, .. } = run;
            (*calls, *throttled) = (counts.calls, counts.throttled);
        }
    }
    // In the order of their names, whichever came first.
    swept.lines.sort_by(|a, b| a.source().cmp(b.source()));
    let counts = pace.counts();
    settings.printer.detail(&format!(
        "{} calls to AWS, {} of them throttled, {} tried again",
        counts.calls, counts.throttled, counts.retried
    ));
    swept
}

fn job<'a>(settings: &Settings, asking: &'a Asking<'_>) -> CommandResult<Job<'a>> {
    let Asking { source, observer, args } = asking;
    let observer = named(observer)?;
    let asked = asked(settings, observer, source, args)?;
    Ok(Job { observer, source, args, asked, reach: reach(args)? })
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

fn reach(args: &LiveArgs) -> CommandResult<Reach> {
    let meant = chosen(&args.accounts)?;
    let excluded = chosen(&args.exclude_accounts)?;
    if excluded.organization {
        return Err(CommandError::new("excluding the whole organization leaves nobody to look at"));
    }
    Ok(Reach {
        regions: args.regions.clone(),
        all_regions: args.all_regions,
        exclude_regions: args.exclude_regions.clone(),
        accounts: meant.ids.into_iter().collect(),
        names: meant.names,
        organization: args.organization || meant.organization,
        parents: meant.parents.into_iter().collect(),
        exclude_accounts: excluded.ids.into_iter().collect(),
        exclude_parents: excluded.parents.into_iter().collect(),
        role_name: args.role_name.clone(),
        external_id: args.external_id.clone(),
    })
}

pub(crate) fn options(args: &LiveArgs) -> Options {
    let last = args.role_arns.len().saturating_sub(1);
    let roles = args.role_arns.iter().enumerate().map(|(at, arn)| Role {
        arn: arn.clone(),
        external_id: args.external_id.clone().filter(|_| at == last),
        session_name: SESSION.to_owned(),
    });
    let standard = Options::default();
    let bounds = Bounds {
        overall: args.concurrency.unwrap_or(standard.bounds.overall),
        account: args.per_account,
        region: args.per_region,
        service: args.per_service,
    };
    Options {
        profile: args.profile.clone(),
        region: args.regions.first().cloned(),
        endpoint_url: args.endpoint_url.clone(),
        roles: roles.collect(),
        schedule: Schedule { attempts: args.attempts.unwrap_or(standard.schedule.attempts), ..standard.schedule },
        bounds,
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
    let reach = Reach { accounts: vec![account.to_owned()], ..reach(&args)? };
    let refused = |error: aws_wire::Error| CommandError::new(error.to_string());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| CommandError::because("cannot start the network", &error))?;
    runtime.block_on(async {
        let client = Client::load(&options(&args)).await.map_err(refused)?;
        let hub = Hub::find(&client).await.map_err(refused)?;
        let inside = hub.enter(account, &reach).await.map_err(|error| not_reached(account, &error))?;
        let regions = accounts::regions(&inside, &reach).await.map_err(refused)?;
        let mut found = Vec::new();
        let (observer, asked) = (Observer::CloudTrail, Asked::default());
        for here in sweep::places_of(observer, &asked, &inside, account, hub.partition, &regions, settings.now) {
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
        settings.printer.note(OF_CLOUD_CONTROL);
    }
    let text = serde_json::to_string_pretty(&policy::policy(&actions)).unwrap_or_default() + "\n";
    write_out(text.as_bytes())
}
