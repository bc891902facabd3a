//! The rounds: sources run when they are due, side by side; what they find is compared and told.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use driftline_notify::channel::Channel;
use driftline_notify::outbox::{ChannelState, Round};
use driftline_notify::retry;
use driftline_notify::{Courier, Happened, JournalError};
use jiff::Timestamp;
use signal_hook::consts::{SIGINT, SIGTERM};

use super::keep::{self, refused};
use super::log::{Log, OfSource};
use super::look::{Runs, look};
use super::schedule::Schedule;
use super::transitions::{Manner, compose, derive};
use super::{channels, transitions};
use crate::args::{PermissionArgs, WatchArgs};
use crate::config::ConfiguredSource;
use crate::error::{CommandError, CommandResult};
use crate::exit;
use crate::observe::{Line, Outcome};
use crate::observe_all::observe_configured;
use crate::settings::Settings;
use crate::surroundings::{clock, leave};

/// How long is waited, at the end, for what could not be delivered at once.
const LAST_TRIES: Duration = Duration::from_secs(10);
/// How long after a program failed a signal may come that was meant for both of us.
const SIGNAL_AFTER: Duration = Duration::from_millis(200);
/// How long nothing may be looked at: windows end, and things go stale, without anything happening.
const LOOK: Duration = Duration::from_mins(1);

pub(crate) fn run(settings: &Settings, args: &WatchArgs) -> CommandResult<u8> {
    if args.status {
        return keep::status(settings).map(|()| exit::IN_SYNC);
    }
    if !args.retry.is_empty() || !args.drop.is_empty() {
        return keep::decide(settings, &args.retry, &args.drop).map(|()| exit::IN_SYNC);
    }
    if args.test_notification {
        return keep::try_out(settings).map(|()| exit::IN_SYNC);
    }
    if settings.config.sources.is_empty() && settings.config.notify.is_empty() {
        return Err(CommandError::new("there is nothing to watch and nobody to tell")
            .hint("add [[source]] and [[notify]] entries to driftline.toml; docs/watch.md has examples"));
    }
    // Whatever cannot work is said before anything is done.
    settings.baseline(args.baseline.as_deref())?;
    let channels = settings.config.notify.iter().map(channels::open).collect::<CommandResult<Vec<Channel>>>()?;
    let _lock = keep::lock(&settings.store)?;
    let courier = Courier::new(keep::open(&settings.store)?);
    let log = Log { format: args.log, quiet: settings.printer.is_quiet(), clock };
    let watching = Watching { settings, args, channels, courier, log };
    watching.run()
}

/// What the threads tell the one that decides.
enum News {
    Observed { at: usize, took: Duration, outcome: Outcome },
    Signal(i32),
    Broken(JournalError),
}

struct Watching<'a> {
    settings: &'a Settings,
    args: &'a WatchArgs,
    channels: Vec<Channel>,
    courier: Courier,
    log: Log,
}

/// What is known while it runs.
#[derive(Default)]
struct Progress {
    runs: Runs,
    running: usize,
    /// How many sources were run.
    done: usize,
    signal: Option<i32>,
    failed: bool,
    looked: Option<Timestamp>,
    /// Something was observed since it was last compared.
    news: bool,
    /// Sources that failed just now.
    failing: Vec<String>,
}

impl Watching<'_> {
    fn sources(&self) -> &[ConfiguredSource] {
        &self.settings.config.sources
    }

    fn run(&self) -> CommandResult<u8> {
        let (tell, told) = mpsc::channel();
        let dead_before = self.courier.with(|outbox| outbox.state().dead.len());
        let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM])
            .map_err(|error| CommandError::because("cannot listen for signals", &error))?;
        let listening = signals.handle();
        let (sources, channels) = (self.sources().len().to_string(), self.channels.len().to_string());
        self.log.info("watching", &[("sources", sources.as_str()), ("channels", channels.as_str())]);
        if self.channels.is_empty() {
            self.log.warn("nobody is told: no [[notify]] is configured", &[]);
        }
        let schedule = retry::Schedule {
            give_up: self.settings.config.watch.give_up_after.unwrap_or(retry::Schedule::default().give_up),
            ..retry::Schedule::default()
        };
        let outcome = std::thread::scope(|scope| {
            let tell_signal = tell.clone();
            scope.spawn(move || {
                for (earlier, signal) in signals.forever().enumerate() {
                    if earlier > 0 {
                        leave(if signal == SIGINT { exit::INTERRUPTED } else { exit::TERMINATED });
                    }
                    let _ = tell_signal.send(News::Signal(signal));
                }
            });
            let carry = |channel| {
                let tell = tell.clone();
                scope.spawn(move || {
                    let log = |id: &str, attempts: u32, happened: &Happened| {
                        self.log_delivery(channel, id, attempts, happened);
                    };
                    if let Err(error) = self.courier.carry(channel, &schedule, clock, &log) {
                        let _ = tell.send(News::Broken(error));
                    }
                })
            };
            let carriers: Vec<_> = self.channels.iter().map(carry).collect();
            let outcome = self.rounds(scope, &tell, &told);
            let until = clock().checked_add(LAST_TRIES).unwrap_or(Timestamp::MAX);
            self.courier.end(if outcome.is_ok() { until } else { clock() });
            for carrier in carriers {
                let _ = carrier.join();
            }
            listening.close();
            outcome
        });
        let mut progress = outcome?;
        // What broke while the last messages were carried.
        for news in told.try_iter() {
            if let News::Broken(error) = news {
                return Err(refused(&error));
            }
        }
        let (waiting, dead) = self.courier.with(|outbox| (outbox.state().pending.len(), outbox.state().dead.len()));
        progress.failed |= dead > dead_before;
        if waiting > 0 {
            let waiting = waiting.to_string();
            self.log
                .warn("not everything could be delivered; it waits in the outbox", &[("messages", waiting.as_str())]);
            progress.failed = true;
        }
        self.log.info("ended", &[]);
        Ok(match (self.args.once, progress.signal) {
            (true, Some(SIGINT)) => 130,
            (true, Some(_)) => 143,
            (true, None) if progress.failed => exit::ERROR,
            // Told to end, it ended in good order.
            _ => exit::IN_SYNC,
        })
    }

    fn rounds<'scope, 'env>(
        &'env self,
        scope: &'scope std::thread::Scope<'scope, 'env>,
        tell: &mpsc::Sender<News>,
        told: &mpsc::Receiver<News>,
    ) -> CommandResult<Progress> {
        let watch = &self.settings.config.watch;
        let of = |source: &ConfiguredSource| (source.name.to_string(), source.every.unwrap_or(watch.every));
        let seed = self.args.seed.unwrap_or_else(|| u64::try_from(clock().as_millisecond()).unwrap_or_default());
        let mut schedule = Schedule::new(self.sources().iter().map(of), watch.jitter, seed, clock());
        let mut progress = Progress::default();
        loop {
            let now = clock();
            let ending = progress.signal.is_some();
            let all_started = self.args.once && progress.done + progress.running >= self.sources().len();
            while !ending && !all_started && progress.running < watch.at_once {
                let Some(at) = schedule.start(now) else { break };
                progress.running += 1;
                self.start(scope, at, tell.clone());
                if self.args.once && progress.done + progress.running >= self.sources().len() {
                    break;
                }
            }
            let idle = progress.running == 0;
            let finished = idle && (ending || (self.args.once && progress.done >= self.sources().len()));
            // With `--once` everything is compared when all of it was observed; otherwise as it comes.
            let due =
                progress.looked.is_none_or(|last| now.duration_since(last) >= LOOK.try_into().unwrap_or_default());
            if finished || (!self.args.once && (progress.news || (due && progress.looked.is_some()))) {
                let news = std::mem::take(&mut progress.news);
                progress.looked = Some(now);
                if let Err(error) = self.compare_and_tell(&progress.runs, news) {
                    progress.failed = true;
                    self.log.error("nothing could be compared", &[("error", error.line().as_str())]);
                }
            }
            if finished {
                return Ok(progress);
            }
            if progress.looked.is_none() && idle && self.sources().is_empty() {
                progress.news = true;
                continue;
            }
            let wait = match (ending, schedule.next()) {
                (false, Some(next)) if progress.running < watch.at_once => {
                    Duration::try_from(next.duration_since(clock())).unwrap_or_default().min(LOOK)
                }
                _ => LOOK,
            };
            match told.recv_timeout(wait) {
                Ok(news) => self.take(news, &mut schedule, &mut progress)?,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Err(CommandError::new("every thread has ended")),
            }
            // What came at the same time is told together. Whoever ends us often ends the programs that we run as well;
            // that they fail then is no news.
            let mut patience = if progress.failing.is_empty() { Duration::ZERO } else { SIGNAL_AFTER };
            while let Ok(news) = told.recv_timeout(patience) {
                self.take(news, &mut schedule, &mut progress)?;
                patience = Duration::ZERO;
            }
            let failing = std::mem::take(&mut progress.failing);
            if progress.signal.is_some() {
                progress.runs.retain(|name, _| !failing.contains(name));
            }
        }
    }

    fn start<'scope, 'env>(
        &'env self,
        scope: &'scope std::thread::Scope<'scope, 'env>,
        at: usize,
        tell: mpsc::Sender<News>,
    ) {
        let source = &self.sources()[at];
        scope.spawn(move || {
            let begun = crate::surroundings::stopwatch();
            let ear = OfSource { log: self.log, source: source.name.to_string() };
            let settings = self.settings.at(clock(), Some(Arc::new(ear)));
            let permissions = PermissionArgs { allow_empty: false, allow_older: false };
            let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                observe_configured(&settings, source, permissions)
            }));
            let outcome = outcome.unwrap_or_else(|_| Err(CommandError::new("the observer's thread broke down")));
            let _ = tell.send(News::Observed { at, took: begun.elapsed(), outcome });
        });
    }

    fn take(&self, news: News, schedule: &mut Schedule, progress: &mut Progress) -> CommandResult<()> {
        match news {
            News::Observed { at, took, outcome } => {
                schedule.finished(at, clock());
                progress.running -= 1;
                progress.done += 1;
                progress.news = true;
                let name = self.sources()[at].name.to_string();
                let failed = self.log_observed(&name, took, outcome);
                if failed.is_some() {
                    progress.failed = true;
                    progress.failing.push(name.clone());
                }
                progress.runs.insert(name, failed);
                Ok(())
            }
            News::Signal(signal) => {
                progress.signal = Some(signal);
                let running = progress.running.to_string();
                self.log.info("ending; what is under way is finished first", &[("running", running.as_str())]);
                Ok(())
            }
            News::Broken(error) => Err(refused(&error)),
        }
    }

    /// Compares what is known now, keeps what follows from it, and hands it to those who deliver.
    fn compare_and_tell(&self, runs: &Runs, news: bool) -> CommandResult<()> {
        let settings = self.settings.at(clock(), None);
        let config = &settings.config;
        let (seen, trouble) = look(&settings, self.args.baseline.as_deref(), runs, &config.notify, self.log)?;
        let quiet = |source: &str| config.watch.quiet(source, seen.now);
        let told = self.courier.with(|outbox| {
            let mut round = Round::default();
            let nothing = ChannelState::default();
            for (at, notify) in config.notify.iter().enumerate() {
                let state = outbox.state().channels.get(&notify.name).unwrap_or(&nothing);
                let (update, turns) = derive(state, &seen, at, config.watch.damping, &quiet);
                let manner = Manner {
                    first: !state.begun,
                    held: state.held,
                    threads: self.channels.get(at).is_none_or(Channel::has_threads),
                    at_most: notify.at_most,
                };
                let changed = (update.begun, update.held) != (state.begun, state.held);
                for (thread, event) in compose(turns, manner, seen.now, &seen.baseline) {
                    round.messages.push((notify.name.clone(), thread, event));
                }
                if changed || !update.told.is_empty() || !update.forget.is_empty() {
                    round.updates.insert(notify.name.clone(), update);
                }
            }
            let messages = round.messages.len();
            if round != Round::default() {
                outbox.take(round)?;
            }
            Ok(messages)
        });
        let messages = told.map_err(|error| refused(&error))?;
        // Nobody wants a line a minute about nothing.
        if !news && messages == 0 {
            return trouble.map_or(Ok(()), Err);
        }
        let counts = counts(&seen);
        let fields: Vec<(&str, &str)> = counts.iter().map(|(name, number)| (*name, number.as_str())).collect();
        let messages = messages.to_string();
        self.log.info("compared", &[fields.as_slice(), &[("messages", messages.as_str())]].concat());
        trouble.map_or(Ok(()), Err)
    }

    /// Why a source failed, if it did.
    fn log_observed(&self, name: &str, took: Duration, outcome: Outcome) -> Option<String> {
        let took = format!("{:.1}s", took.as_secs_f64());
        let (lines, errors) = match outcome {
            Ok(done) => done,
            Err(error) => (Vec::new(), vec![error]),
        };
        for line in &lines {
            self.log_line(line, &took);
        }
        for error in &errors {
            self.log
                .error("not observed", &[("source", name), ("error", error.line().as_str()), ("took", took.as_str())]);
        }
        let first = errors.first()?.root().to_owned();
        Some(match (errors.len(), lines.is_empty()) {
            (1, true) => first,
            (1, false) => format!("a part of it was not observed: {first}"),
            (several, _) => format!("{several} parts of it were not observed; the first: {first}"),
        })
    }

    fn log_line(&self, line: &Line, took: &str) {
        let facts = line.facts();
        let mut fields: Vec<(&str, &str)> = vec![("source", line.source())];
        fields.extend(facts.iter().map(|(name, value)| (*name, value.as_str())));
        fields.push(("took", took));
        self.log.info("observed", &fields);
    }

    fn log_delivery(&self, channel: &Channel, id: &str, attempts: u32, happened: &Happened) {
        let attempts = attempts.to_string();
        let fields = [("channel", channel.name.as_str()), ("delivery", id), ("attempts", attempts.as_str())];
        match happened {
            Happened::Delivered => self.log.info("delivered", &fields),
            Happened::Again { why, next } => {
                let next = next.to_string();
                let more = [("error", why.as_str()), ("next", next.as_str())];
                self.log.warn("not delivered yet", &[&fields[..], &more].concat());
            }
            Happened::Dead { why } => {
                self.log.error("a dead letter", &[&fields[..], &[("error", why.as_str())]].concat());
            }
        }
    }
}

fn counts(seen: &transitions::Seen) -> BTreeMap<&'static str, String> {
    let health = |item: &&transitions::Item| matches!(item.subject, driftline_notify::outbox::Subject::Source(_));
    let troubled = seen.open.values().filter(health).count();
    BTreeMap::from([
        ("findings", (seen.open.len() - troubled).to_string()),
        ("not_checked", seen.unchecked.len().to_string()),
        ("sources_in_trouble", troubled.to_string()),
        ("streams", seen.compared.len().to_string()),
        ("streams_not_in_baseline", seen.unknown_streams.to_string()),
    ])
}
