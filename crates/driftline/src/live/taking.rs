//! Committing what is told of AWS while the rest is still being asked, and a word on how it goes.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use aws_wire::{Counts, Error};
use driftline_aws::{Here, Observer, Pass, accounts, organization};
use driftline_core::{Coverage, Extent, Outcome, SourceName, StreamId};
use driftline_sources::normalize::{Listing, NormalizeError};
use driftline_store::Store;
use jiff::Timestamp;
use tokio::sync::mpsc;

use super::sweep::{Job, News};
use crate::error::{CommandError, CommandResult};
use crate::observe::{Line, commit_listing_into, is_of_the_future, warn_of_problems};
use crate::settings::Settings;
use crate::surroundings::stopwatch;
use crate::swept::{AccountRun, Failure, Lost, Sweep, Swept};

/// A commit to a bucket is a few round trips, so several are under way; one to a folder is a few writes.
const INTO_BUCKET: usize = 4;
const INTO_FOLDER: usize = 1;

pub(super) struct Taker<'a> {
    pub settings: &'a Settings,
    pub sweep: &'a Sweep<'a>,
    pub jobs: &'a [Job<'a>],
    pub progress: &'a Progress,
    state: Mutex<State>,
}

/// What a version is of: an account, unless it is the list of them; and what is lost if there comes none of it.
#[derive(Clone, Copy)]
struct Of<'a> {
    account: Option<&'a str>,
    lost: Lost,
}

#[derive(Default)]
struct State {
    swept: Swept,
    begun: BTreeMap<String, Instant>,
}

impl<'a> Taker<'a> {
    pub(super) fn new(
        settings: &'a Settings,
        sweep: &'a Sweep<'a>,
        jobs: &'a [Job<'a>],
        progress: &'a Progress,
    ) -> Self {
        Self { settings, sweep, jobs, progress, state: Mutex::default() }
    }

    /// How many commit side by side.
    pub(super) fn hands(&self) -> usize {
        if self.settings.store.folder().is_some() { INTO_FOLDER } else { INTO_BUCKET }
    }

    /// Takes what is told until nobody tells anything any more. The store stays open in between: with thousands of
    /// streams, reading what there is would cost more than committing.
    pub(super) fn take(&self, told: &Mutex<mpsc::Receiver<News>>) {
        let mut open = None;
        loop {
            let news = told.lock().unwrap_or_else(PoisonError::into_inner).blocking_recv();
            let Some(news) = news else { break };
            self.take_one(news, &mut open);
        }
    }

    pub(super) fn finish(self) -> Swept {
        self.state.into_inner().unwrap_or_else(PoisonError::into_inner).swept
    }

    fn take_one(&self, news: News, open: &mut Option<Store>) {
        match news {
            News::Begun { account, name } => self.with_account(&account, |run| run.name = name),
            News::Listed(pass) => {
                let of = Of { account: None, lost: Lost::Roster };
                self.commit(open, of, &organization::source(), "organization", *pass);
            }
            News::Failed { jobs, error } => {
                for job in jobs {
                    let of = Of { account: None, lost: Lost::Source(job) };
                    self.failed(of, CommandError::new(error.to_string()));
                }
            }
            News::Unreached { account, jobs, at, error } => {
                let reason = accounts::reason(&error);
                if self.sweep.fleet {
                    self.not_looked_at(open, &account, &jobs, at, &reason);
                }
                let error = not_reached(&account, &error);
                self.with_account(&account, |run| run.unreached = Some((error, reason)));
            }
            News::Looked { job, here, passes } => self.looked(open, job, &here, passes),
        }
    }

    fn looked(&self, open: &mut Option<Store>, at: usize, here: &Here, passes: Result<Vec<Pass>, NormalizeError>) {
        let job = &self.jobs[at];
        let of = Of { account: Some(&here.account), lost: Lost::Part(at) };
        self.with_account(&here.account, |run| run.looked += 1);
        match passes {
            Ok(passes) => {
                for pass in passes {
                    self.commit(open, of, job.source, job.observer.name(), pass);
                }
            }
            Err(error) => {
                let error = CommandError::new(error.to_string()).about(format!("{} was not observed", here.scope()));
                self.failed(of, error);
            }
        }
    }

    fn commit(&self, open: &mut Option<Store>, of: Of<'_>, source: &SourceName, observer: &str, pass: Pass) {
        match named(source, &pass) {
            Ok(stream) => {
                let reasons = partial(&pass.listing.coverage);
                self.commit_as(open, of, stream, pass.listing, observer, &reasons);
            }
            Err(error) => self.failed(of, error),
        }
    }

    fn commit_as(
        &self,
        open: &mut Option<Store>,
        of: Of<'_>,
        stream: StreamId,
        listing: Listing,
        observer: &str,
        reasons: &[(String, Vec<String>)],
    ) {
        let name = stream.to_string();
        let observer = format!("driftline observe {observer} (live)");
        match self.commit_listing(open, stream, listing, &observer, reasons) {
            Ok(line) => self.committed(of.account, line, reasons),
            Err(error) if was_overtaken(&error) => self.overtaken(name),
            Err(error) => self.failed(of, error),
        }
    }

    fn commit_listing(
        &self,
        open: &mut Option<Store>,
        stream: StreamId,
        listing: Listing,
        observer: &str,
        reasons: &[(String, Vec<String>)],
    ) -> CommandResult<Line> {
        let printer = &self.settings.printer;
        self.progress.aside(|| {
            warn_of_problems(self.settings, &stream, &listing);
            for (reason, kinds) in reasons {
                let text = format!("{stream}: {}: {reason}", kinds.join(", "));
                // Of a thousand accounts that lack one permission this would be all there is to read.
                if self.sweep.terse { printer.detail(&text) } else { printer.warn(&text) }
            }
        });
        let about = format!("{stream} was not committed");
        let permissions = self.sweep.permissions;
        commit_listing_into(self.settings, open, stream, listing, observer, permissions)
            .map_err(|error| error.about(about))
    }

    /// What is known of an account that could not be entered was not looked at: it is neither in sync nor gone. Of an
    /// account of which nothing is known there is nothing to say in the store.
    fn not_looked_at(
        &self,
        open: &mut Option<Store>,
        account: &str,
        jobs: &[usize],
        tried_at: Timestamp,
        reason: &str,
    ) {
        for &at in jobs {
            let job = &self.jobs[at];
            let of = Of { account: Some(account), lost: Lost::Part(at) };
            let known = self.known(open, account, job);
            let streams = known.unwrap_or_else(|error| {
                self.failed(of, error);
                Vec::new()
            });
            for (stream, coverage) in streams {
                let mut unseen = Coverage::new();
                let outcome = Outcome::Partial { reason: reason.to_owned() };
                for (kind, place, _) in coverage.iter() {
                    unseen.record(Extent { kind: kind.to_owned(), place: place.to_owned() }, outcome.clone());
                }
                let mut listing = Listing::default();
                listing.taken_at = Some(tried_at);
                listing.coverage = unseen.on_basis(coverage.basis().map(str::to_owned));
                self.commit_as(open, of, stream, listing, job.observer.name(), &[]);
            }
        }
    }

    /// The streams of a job in an account, as far as they are known, with what their newest versions looked at. What
    /// happened is known or is not; nothing can be said of it by not looking.
    fn known(
        &self,
        open: &mut Option<Store>,
        account: &str,
        job: &Job<'_>,
    ) -> CommandResult<Vec<(StreamId, Coverage)>> {
        if open.is_none() {
            *open = self.settings.store_if_any()?;
        }
        let Some(store) = open else { return Ok(Vec::new()) };
        let mut known = Vec::new();
        for (id, stream) in store.catalog().streams().filter(|(id, _)| is_of(id, job, account)) {
            if let Some(head) = stream.head() {
                known.push((id.clone(), store.coverage(&head.coverage)?));
            }
        }
        Ok(known)
    }

    fn with_account(&self, account: &str, change: impl FnOnce(&mut AccountRun)) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let begun = *state.begun.entry(account.to_owned()).or_insert_with(stopwatch);
        let run = state.swept.accounts.entry(account.to_owned()).or_default();
        change(run);
        run.took = begun.elapsed();
    }

    fn committed(&self, account: Option<&str>, line: Line, reasons: &[(String, Vec<String>)]) {
        if let Some(account) = account {
            let done = line.committed();
            self.with_account(account, |run| {
                run.streams += 1;
                run.resources += done.rows;
                run.complete += done.complete_extents;
                run.partial += done.partial_extents;
                for (reason, kinds) in reasons {
                    *run.reasons.entry(reason.clone()).or_default() += kinds.len();
                }
            });
        }
        self.state.lock().unwrap_or_else(PoisonError::into_inner).swept.lines.push(line);
    }

    fn failed(&self, of: Of<'_>, error: CommandError) {
        if let Some(account) = of.account {
            self.with_account(account, |run| run.failures += 1);
        }
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.swept.failures.push(Failure { lost: of.lost, error });
    }

    fn overtaken(&self, stream: String) {
        let text = format!("{stream}: another run looked later and has committed; what this one saw is left out");
        let printer = &self.settings.printer;
        self.progress.aside(|| if self.sweep.terse { printer.detail(&text) } else { printer.note(&text) });
        self.state.lock().unwrap_or_else(PoisonError::into_inner).swept.overtaken.push(stream);
    }
}

/// Whether the store has what somebody saw later: then what was seen earlier is not missed. A version from the future
/// is no such thing but a clock that is wrong, and nothing could be committed until it is over.
fn was_overtaken(error: &CommandError) -> bool {
    error.newest().is_some_and(|newest| !is_of_the_future(newest))
}

/// The stream of a pass.
fn named(source: &SourceName, pass: &Pass) -> CommandResult<StreamId> {
    let source = match &pass.part {
        Some(part) => format!("{source}/{part}")
            .parse()
            .map_err(|error: driftline_core::NameError| CommandError::new(error.to_string()))?,
        None => source.clone(),
    };
    Ok(StreamId { source, scope: Some(pass.scope.clone()) })
}

/// Whether a stream is one that this job would have made a version of in this account.
fn is_of(stream: &StreamId, job: &Job<'_>, account: &str) -> bool {
    let (source, ours) = (stream.source.as_str(), job.source.as_str());
    // Each stack is a source of its own beneath the one that lists them.
    let is_part = || {
        job.observer == Observer::CloudFormation && source.strip_prefix(ours).is_some_and(|rest| rest.starts_with('/'))
    };
    let is_source = source == ours || is_part();
    let Some(scope) = stream.scope.as_ref().filter(|_| is_source) else { return false };
    let mut parts = scope.as_str().split('/');
    let (whose, region, scan) = (parts.next(), parts.next().unwrap_or_default(), parts.next() == Some("scan"));
    let reach = &job.reach;
    let meant = region == driftline_core::key::GLOBAL
        || reach.all_regions
        || reach.regions.is_empty()
        || reach.regions.iter().any(|name| name == region);
    let excluded = reach.exclude_regions.iter().any(|name| name == region);
    whose == Some(account) && meant && !excluded && scan == job.asked.scan.is_some()
}

/// Reasons why something was not seen whole, each with the types it is of.
pub(super) fn partial(coverage: &Coverage) -> Vec<(String, Vec<String>)> {
    let mut reasons: BTreeMap<String, Vec<String>> = BTreeMap::new();
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

pub(super) fn not_reached(account: &str, error: &Error) -> CommandError {
    CommandError::new(error.to_string()).about(format!("the account {account} was not observed"))
}

/// A line on the terminal that is written again and again, and makes room for whatever else is to be said.
pub(super) struct Progress {
    shown: bool,
    line: Mutex<bool>,
}

impl Progress {
    pub(super) fn new(shown: bool) -> Self {
        Self { shown, line: Mutex::new(false) }
    }

    pub(super) fn show(&self, counts: Counts, done: usize, total: usize) {
        if self.shown
            && let Ok(mut line) = self.line.try_lock()
        {
            let throttled =
                if counts.throttled > 0 { format!(", {} throttled", counts.throttled) } else { String::new() };
            let accounts = if total == 1 { "account" } else { "accounts" };
            let text =
                format!("\r\x1b[Kasking AWS: {done} of {total} {accounts} done, {} calls{throttled}", counts.calls);
            let _ = io::stderr().lock().write_all(text.as_bytes());
            *line = true;
        }
    }

    /// Says something with the line out of the way.
    pub(super) fn aside(&self, say: impl FnOnce()) {
        let mut line = self.line.lock().unwrap_or_else(PoisonError::into_inner);
        if std::mem::take(&mut *line) {
            let _ = io::stderr().lock().write_all(b"\r\x1b[K");
        }
        say();
    }
}
