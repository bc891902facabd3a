//! What was told, to whom, and what is still to be delivered: one journal, so that no crash can part the two.

use std::collections::BTreeMap;
use std::path::Path;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::journal::{Journal, JournalError};
use crate::message::{Event, Finding, Health, Message};

/// A journal that has grown by this much, and to this many times what it says, is written anew.
const GROWTH: u64 = 1 << 20;
const TIMES: u64 = 4;

/// Everything the journal adds up to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    /// Makes delivery ids differ between installations.
    pub nonce: String,
    /// How many messages were ever made.
    pub made: u64,
    pub channels: BTreeMap<String, ChannelState>,
    /// By the order in which they were made.
    pub pending: BTreeMap<u64, Pending>,
    /// What nobody would take.
    pub dead: BTreeMap<u64, Pending>,
}

/// What one channel knows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChannelState {
    /// It was told how things stand; from then on only what changes is told.
    pub begun: bool,
    /// Something was held back during a maintenance window.
    pub held: bool,
    /// By what it is about.
    pub told: BTreeMap<String, Told>,
    /// What the other end calls the thread of something.
    pub threads: BTreeMap<String, String>,
    pub delivered: u64,
    pub last_delivery: Option<Timestamp>,
}

/// What a channel was told of one thing, and what was seen of it since.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Told {
    /// What the last message said: a digest of it, or nothing if it was resolved.
    pub said: Option<String>,
    /// What was last seen; the same as `said` unless it flaps.
    pub seen: Option<String>,
    /// When it changed, lately.
    pub changes: Vec<Timestamp>,
    pub flapping: bool,
    /// It was taken note of without a word.
    pub silent: bool,
    /// As it was when it was last told or seen, for the message that it is resolved.
    pub subject: Subject,
    /// The version of the baseline that it was held against.
    pub expected: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Subject {
    Finding(Finding),
    Source(Health),
}

/// A message on its way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pending {
    pub message: Message,
    pub attempts: u32,
    /// Not before this.
    pub next: Option<Timestamp>,
    pub error: Option<String>,
    /// When it was first tried.
    pub since: Option<Timestamp>,
}

/// What one channel learned in one round.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Update {
    pub begun: bool,
    pub held: bool,
    pub told: BTreeMap<String, Told>,
    pub forget: Vec<String>,
}

/// What a round leads to, as a whole or not at all.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Round {
    pub updates: BTreeMap<String, Update>,
    /// Channel, what it is about, and what is said.
    pub messages: Vec<(String, Option<String>, Event)>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Record {
    State(Box<State>),
    Round(Round),
    Delivered { number: u64, at: Timestamp, thread: Option<String> },
    Failed { number: u64, at: Timestamp, next: Timestamp, error: String },
    Dead { number: u64, at: Timestamp, error: String },
    Retry { numbers: Vec<u64> },
    Drop { numbers: Vec<u64> },
}

/// The open outbox.
#[derive(Debug)]
pub struct Outbox {
    journal: Journal,
    state: State,
    /// How long the journal was when it was last written anew.
    compact: u64,
}

impl Outbox {
    /// Opens it; `nonce` is used if there is none yet.
    pub fn open(path: &Path, nonce: &str) -> Result<Self, JournalError> {
        let (mut journal, records) = Journal::open::<Record>(path)?;
        let mut state = State::default();
        for record in records {
            state.apply(record);
        }
        if state.nonce.is_empty() {
            nonce.clone_into(&mut state.nonce);
            journal.replace(&Record::State(Box::new(state.clone())))?;
        }
        // What it would be if it were written anew now.
        let compact = serde_json::to_string(&state).map_or(0, |text| text.len() as u64);
        let mut outbox = Self { journal, state, compact };
        outbox.compact_if_due()?;
        Ok(outbox)
    }

    /// What it holds now, without opening it: nothing if there is none.
    pub fn peek(path: &Path) -> Result<Option<State>, JournalError> {
        let Some(records) = Journal::peek::<Record>(path)? else { return Ok(None) };
        let mut state = State::default();
        for record in records {
            state.apply(record);
        }
        Ok(Some(state))
    }

    pub fn state(&self) -> &State {
        &self.state
    }

    /// What a round leads to. Once this returns it is durable, and only then may anything be sent.
    pub fn take(&mut self, round: Round) -> Result<(), JournalError> {
        self.write(Record::Round(round))
    }

    pub fn delivered(&mut self, number: u64, at: Timestamp, thread: Option<String>) -> Result<(), JournalError> {
        self.write(Record::Delivered { number, at, thread })
    }

    pub fn failed(&mut self, number: u64, at: Timestamp, next: Timestamp, error: String) -> Result<(), JournalError> {
        self.write(Record::Failed { number, at, next, error })
    }

    pub fn dead(&mut self, number: u64, at: Timestamp, error: String) -> Result<(), JournalError> {
        self.write(Record::Dead { number, at, error })
    }

    /// Dead letters are tried again, and what waits is tried at once.
    pub fn retry(&mut self, numbers: Vec<u64>) -> Result<(), JournalError> {
        self.write(Record::Retry { numbers })
    }

    /// Forgets messages; what they would have told stays told.
    pub fn drop_messages(&mut self, numbers: Vec<u64>) -> Result<(), JournalError> {
        self.write(Record::Drop { numbers })
    }

    /// The next message that may be sent on a channel now, or when there will be one.
    pub fn next(&self, channel: &str, now: Timestamp) -> Next {
        let mut soonest: Option<Timestamp> = None;
        let mut waiting: Vec<&str> = Vec::new();
        let mut earlier = false;
        for (number, pending) in self.state.pending.iter().filter(|(_, one)| one.message.channel == channel) {
            // A digest speaks of many things: it waits for what was said before, and what comes after waits for it.
            let digest = pending.message.thread.is_none();
            if digest && earlier {
                break;
            }
            earlier = true;
            // What is said of one thing stays in order.
            if let Some(thread) = &pending.message.thread {
                if waiting.contains(&thread.as_str()) {
                    continue;
                }
                waiting.push(thread);
            }
            match pending.next {
                Some(next) if next > now => {
                    soonest = Some(soonest.map_or(next, |known| known.min(next)));
                    if digest {
                        break;
                    }
                }
                _ => return Next::Now(*number),
            }
        }
        soonest.map_or(Next::Never, Next::At)
    }

    fn write(&mut self, record: Record) -> Result<(), JournalError> {
        self.journal.append(&record)?;
        self.state.apply(record);
        // The record is there. That there was no room for tidying up is no reason to disbelieve it; a journal that broke
        // over it says so at the next record.
        let _ = self.compact_if_due();
        Ok(())
    }

    fn compact_if_due(&mut self) -> Result<(), JournalError> {
        let grown = self.journal.length().saturating_sub(self.compact);
        if grown < GROWTH || self.journal.length() < self.compact.saturating_mul(TIMES) {
            return Ok(());
        }
        self.journal.replace(&Record::State(Box::new(self.state.clone())))?;
        self.compact = self.journal.length();
        Ok(())
    }
}

/// What there is to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    Now(u64),
    At(Timestamp),
    Never,
}

impl State {
    fn apply(&mut self, record: Record) {
        match record {
            Record::State(state) => *self = *state,
            Record::Round(round) => self.apply_round(round),
            Record::Delivered { number, at, thread } => {
                let Some(pending) = self.pending.remove(&number) else { return };
                let channel = self.channels.entry(pending.message.channel).or_default();
                channel.delivered += 1;
                channel.last_delivery = Some(at);
                if let (Some(about), Some(handle)) = (pending.message.thread, thread) {
                    channel.threads.entry(about).or_insert(handle);
                }
            }
            Record::Failed { number, at, next, error } => {
                if let Some(pending) = self.pending.get_mut(&number) {
                    pending.attempts += 1;
                    pending.since.get_or_insert(at);
                    pending.next = Some(next);
                    pending.error = Some(error);
                }
            }
            Record::Dead { number, at, error } => {
                if let Some(mut pending) = self.pending.remove(&number) {
                    pending.attempts += 1;
                    pending.since.get_or_insert(at);
                    pending.next = None;
                    pending.error = Some(error);
                    self.dead.insert(number, pending);
                }
            }
            Record::Retry { numbers } => {
                for number in numbers {
                    if let Some(pending) = self.dead.remove(&number).or_else(|| self.pending.remove(&number)) {
                        self.pending.insert(number, Pending { attempts: 0, next: None, since: None, ..pending });
                    }
                }
            }
            Record::Drop { numbers } => {
                for number in numbers {
                    self.dead.remove(&number);
                    self.pending.remove(&number);
                }
            }
        }
    }

    fn apply_round(&mut self, round: Round) {
        for (name, update) in round.updates {
            let channel = self.channels.entry(name).or_default();
            (channel.begun, channel.held) = (update.begun, update.held);
            channel.told.extend(update.told);
            for id in update.forget {
                channel.told.remove(&id);
                channel.threads.remove(&id);
            }
        }
        for (channel, thread, event) in round.messages {
            self.made += 1;
            let id = delivery_id(&self.nonce, self.made);
            let message = Message { id, channel, thread, event };
            let pending = Pending { message, attempts: 0, next: None, error: None, since: None };
            self.pending.insert(self.made, pending);
        }
    }
}

/// The same for the same message, whatever happens in between.
fn delivery_id(nonce: &str, number: u64) -> String {
    let mut hasher = Sha256::new();
    hasher.update(format!("driftline delivery\0{nonce}\0{number}"));
    hasher.finalize()[..16].iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use crate::message::About;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_750_000_000 + second).unwrap()
    }

    fn round(messages: &[(&str, Option<&str>)]) -> Round {
        let event = Event { at: at(0), baseline: "main".into(), about: About::Test };
        let owned = |(channel, thread): &(&str, Option<&str>)| {
            ((*channel).to_owned(), thread.map(str::to_owned), event.clone())
        };
        Round { messages: messages.iter().map(owned).collect(), ..Round::default() }
    }

    #[test]
    fn what_was_written_is_there_after_opening_again_and_ids_stay() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        let mut outbox = Outbox::open(&path, "n").unwrap();
        outbox.take(round(&[("a", Some("x")), ("a", None), ("b", None)])).unwrap();
        outbox.failed(1, at(1), at(5), "no".into()).unwrap();
        outbox.delivered(2, at(2), None).unwrap();
        outbox.dead(3, at(3), "never".into()).unwrap();
        let before = outbox.state().clone();
        drop(outbox);
        let outbox = Outbox::open(&path, "another").unwrap();
        assert_eq!(*outbox.state(), before);
        assert_eq!(before.channels["a"].delivered, 1);
        assert_eq!(before.dead[&3].error.as_deref(), Some("never"));
        assert_eq!(before.pending[&1].attempts, 1);
        assert_ne!(before.pending[&1].message.id, before.dead[&3].message.id);
    }

    #[test]
    fn a_digest_keeps_its_place_among_what_it_speaks_of() {
        let folder = tempfile::tempdir().unwrap();
        let mut outbox = Outbox::open(&folder.path().join("journal"), "n").unwrap();
        outbox.take(round(&[("a", Some("x")), ("a", None), ("a", Some("x"))])).unwrap();
        outbox.failed(1, at(1), at(50), "no".into()).unwrap();
        assert_eq!(outbox.next("a", at(2)), Next::At(at(50)), "the digest waits for what was said before it");
        outbox.delivered(1, at(51), None).unwrap();
        outbox.failed(2, at(52), at(90), "no".into()).unwrap();
        assert_eq!(outbox.next("a", at(60)), Next::At(at(90)), "what comes after the digest waits for it");
    }

    #[test]
    fn one_thing_is_told_in_order_and_another_does_not_wait_for_it() {
        let folder = tempfile::tempdir().unwrap();
        let mut outbox = Outbox::open(&folder.path().join("journal"), "n").unwrap();
        outbox.take(round(&[("a", Some("x")), ("a", Some("x")), ("a", Some("y")), ("b", None)])).unwrap();
        assert_eq!(outbox.next("a", at(0)), Next::Now(1));
        outbox.failed(1, at(0), at(60), "no".into()).unwrap();
        assert_eq!(outbox.next("a", at(1)), Next::Now(3), "the second of x waits for the first");
        outbox.delivered(3, at(1), None).unwrap();
        assert_eq!(outbox.next("a", at(1)), Next::At(at(60)));
        assert_eq!(outbox.next("a", at(60)), Next::Now(1));
        outbox.delivered(1, at(60), Some("ts".into())).unwrap();
        assert_eq!(outbox.state().channels["a"].threads["x"], "ts");
        assert_eq!(outbox.next("a", at(60)), Next::Now(2));
        assert_eq!(outbox.next("c", at(60)), Next::Never);
    }

    #[test]
    fn a_dead_letter_can_be_tried_again_or_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let mut outbox = Outbox::open(&folder.path().join("journal"), "n").unwrap();
        outbox.take(round(&[("a", None), ("a", None)])).unwrap();
        outbox.dead(1, at(0), "no".into()).unwrap();
        outbox.dead(2, at(0), "no".into()).unwrap();
        assert_eq!(outbox.next("a", at(0)), Next::Never);
        outbox.retry(vec![1]).unwrap();
        outbox.drop_messages(vec![2]).unwrap();
        assert_eq!(outbox.next("a", at(0)), Next::Now(1));
        assert!(outbox.state().dead.is_empty());
    }

    #[test]
    fn a_journal_that_has_grown_is_written_anew_and_says_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        let mut outbox = Outbox::open(&path, "n").unwrap();
        let error = "x".repeat(10_000);
        outbox.take(round(&[("a", None)])).unwrap();
        let mut longest = 0;
        for second in 0..300 {
            outbox.failed(1, at(second), at(second), error.clone()).unwrap();
            longest = longest.max(std::fs::metadata(&path).unwrap().len());
        }
        assert!(longest < 3 * GROWTH, "{longest}");
        let before = outbox.state().clone();
        drop(outbox);
        assert_eq!(*Outbox::open(&path, "n").unwrap().state(), before);
        assert_eq!(before.pending[&1].attempts, 300);
    }
}
