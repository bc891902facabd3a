//! Carries messages from the outbox to their channels, each channel by itself, until there is nothing more to do.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;

use crate::channel::{Channel, Failure};
use crate::journal::JournalError;
use crate::outbox::{Next, Outbox};
use crate::retry::Schedule;

/// Nobody waits longer than this without looking at the clock again: a machine may have slept.
const LOOK: Duration = Duration::from_secs(30);

/// What became of a delivery, for whoever keeps a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Happened {
    Delivered,
    Again { why: String, next: Timestamp },
    Dead { why: String },
}

/// The outbox, shared by those who fill it and those who empty it.
#[derive(Debug)]
pub struct Courier {
    desk: Mutex<Desk>,
    news: Condvar,
}

#[derive(Debug)]
struct Desk {
    outbox: Outbox,
    /// From then on only what is due before it is sent.
    ending: Option<Timestamp>,
}

impl Courier {
    pub fn new(outbox: Outbox) -> Self {
        Self { desk: Mutex::new(Desk { outbox, ending: None }), news: Condvar::new() }
    }

    /// Does something with the outbox, and lets everybody look at it again.
    pub fn with<T>(&self, act: impl FnOnce(&mut Outbox) -> T) -> T {
        let done = act(&mut self.lock().outbox);
        self.news.notify_all();
        done
    }

    /// Whoever carries ends once nothing is due before this moment.
    pub fn end(&self, at: Timestamp) {
        self.lock().ending = Some(at);
        self.news.notify_all();
    }

    /// Carries the messages of one channel until the end is near. Fails only if the outbox cannot be written: then
    /// nobody knows any more what was sent, and it is sent again, under the same id, by whoever comes next.
    pub fn carry(
        &self,
        channel: &Channel,
        schedule: &Schedule,
        clock: fn() -> Timestamp,
        tell: &dyn Fn(&str, u32, &Happened),
    ) -> Result<(), JournalError> {
        let mut desk = self.lock();
        loop {
            let now = clock();
            let number = match desk.outbox.next(&channel.name, now) {
                Next::Now(number) => number,
                Next::At(next) => {
                    if desk.ending.is_some_and(|end| next > end || now >= end) {
                        return Ok(());
                    }
                    desk = self.wait(desk, Duration::try_from(next.duration_since(now)).unwrap_or_default());
                    continue;
                }
                Next::Never => {
                    if desk.ending.is_some() {
                        return Ok(());
                    }
                    desk = self.wait(desk, LOOK);
                    continue;
                }
            };
            let state = desk.outbox.state();
            let Some(pending) = state.pending.get(&number).cloned() else { continue };
            let known = state.channels.get(&channel.name);
            let thread = pending.message.thread.as_ref();
            let thread = thread.and_then(|about| known.and_then(|known| known.threads.get(about))).cloned();
            drop(desk);
            let outcome = channel.send(&pending.message, thread.as_deref(), now);
            let now = clock();
            desk = self.lock();
            let happened = match outcome {
                Ok(sent) => {
                    desk.outbox.delivered(number, now, sent.thread)?;
                    Happened::Delivered
                }
                Err(Failure::Refused { why }) => {
                    desk.outbox.dead(number, now, why.clone())?;
                    Happened::Dead { why }
                }
                Err(Failure::Later { why, after }) => {
                    let wait = schedule.wait(pending.attempts, after, &pending.message.id);
                    let next = now.checked_add(wait).unwrap_or(Timestamp::MAX);
                    let next = Timestamp::from_millisecond(next.as_millisecond()).unwrap_or(next);
                    let since = pending.since.unwrap_or(now);
                    let given_up = since.checked_add(schedule.give_up).is_ok_and(|last| next > last);
                    if given_up {
                        desk.outbox.dead(number, now, why.clone())?;
                        Happened::Dead { why }
                    } else {
                        desk.outbox.failed(number, now, next, why.clone())?;
                        Happened::Again { why, next }
                    }
                }
            };
            tell(&pending.message.id, pending.attempts + 1, &happened);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Desk> {
        // What is in it is written before it is changed, so that a thread which broke down left it whole.
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'d>(&self, desk: MutexGuard<'d, Desk>, most: Duration) -> MutexGuard<'d, Desk> {
        let waited = self.news.wait_timeout(desk, most.clamp(Duration::from_millis(1), LOOK));
        waited.unwrap_or_else(PoisonError::into_inner).0
    }
}
