//! What is shown now: one snapshot for each revision, computed once, while the one before it is still shown.

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::sync::{Notify, watch};

use crate::answers::{Answers, Refusal, RefusalKind};
use crate::drift_query::Facets;
use crate::model::Snapshot;

/// How often it is asked whether there is something new.
const LOOK: Duration = Duration::from_secs(1);
/// How long to wait after something failed.
const PAUSE: Duration = Duration::from_secs(5);
/// What depends on the clock (staleness, windows, rules that expire) is computed again after this.
const OLDEST: SignedDuration = SignedDuration::from_mins(5);

/// A snapshot, and what follows from it.
#[derive(Debug)]
pub(crate) struct Edition {
    pub snapshot: Snapshot,
    pub facets: Arc<Facets>,
    /// Tells one edition from another, even of the same revision.
    pub tag: String,
    /// How long computing it took.
    pub took: Duration,
}

/// What is known at the moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct Known {
    pub edition: Option<Arc<Edition>>,
    /// Why it could not be brought up to date.
    pub trouble: Option<Refusal>,
}

pub(crate) struct Live {
    answers: Arc<dyn Answers>,
    clock: fn() -> Timestamp,
    known: watch::Sender<Known>,
    wake: Notify,
    tell: Arc<dyn Fn(&str) + Send + Sync>,
}

impl Live {
    pub(crate) fn new(
        answers: Arc<dyn Answers>,
        clock: fn() -> Timestamp,
        tell: Arc<dyn Fn(&str) + Send + Sync>,
    ) -> Self {
        Self { answers, clock, known: watch::Sender::new(Known::default()), wake: Notify::new(), tell }
    }

    pub(crate) fn known(&self) -> Known {
        self.known.borrow().clone()
    }

    pub(crate) fn subscribe(&self) -> watch::Receiver<Known> {
        self.known.subscribe()
    }

    /// What is shown, waiting only if there never was anything.
    pub(crate) async fn edition(&self) -> Result<(Arc<Edition>, Option<Refusal>), Refusal> {
        let mut known = self.known.subscribe();
        let waited = known.wait_for(|known| known.edition.is_some() || known.trouble.is_some()).await;
        let known = waited.map_err(|_| failed("the server is stopping"))?.clone();
        match (known.edition, known.trouble) {
            (Some(edition), trouble) => Ok((edition, trouble)),
            (None, trouble) => Err(trouble.unwrap_or_else(|| failed("there is no answer yet"))),
        }
    }

    /// Looks at once, and waits until a revision is shown, though not for ever.
    pub(crate) async fn bring(&self, revision: &str, most: Duration) {
        let mut known = self.known.subscribe();
        self.wake.notify_one();
        let shown = |known: &Known| known.edition.as_ref().is_some_and(|it| it.snapshot.revision == revision);
        let _ = tokio::time::timeout(most, known.wait_for(shown)).await;
    }

    /// Keeps what is shown up to date until the end.
    pub(crate) async fn keep(self: Arc<Self>, mut stop: watch::Receiver<bool>) {
        loop {
            let pause = match self.look().await {
                Ok(()) => LOOK,
                Err(refusal) => {
                    self.report(refusal);
                    PAUSE
                }
            };
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = self.wake.notified() => {}
                _ = stop.wait_for(|stop| *stop) => return,
            }
        }
    }

    /// Something is wrong: it is said once, and shown until it is over.
    fn report(&self, refusal: Refusal) {
        let known = self.known();
        if known.trouble.as_ref().map(|old| &old.message) != Some(&refusal.message) {
            (self.tell)(&format!("the page cannot be brought up to date: {refusal}"));
        }
        self.known.send_replace(Known { trouble: Some(refusal), ..known });
    }

    async fn look(&self) -> Result<(), Refusal> {
        let answers = self.answers.clone();
        let revision = off_the_runtime(move || answers.revision()).await?;
        let known = self.known();
        let current = known.edition.as_ref().is_some_and(|edition| {
            let age = (self.clock)().duration_since(edition.snapshot.computed_at);
            edition.snapshot.revision == revision && !edition.snapshot.unfinished && age < OLDEST
        });
        if current {
            if known.trouble.is_some() {
                self.known.send_replace(Known { trouble: None, ..known });
            }
            return Ok(());
        }
        let answers = self.answers.clone();
        let started = tokio::time::Instant::now();
        let (snapshot, facets) = off_the_runtime(move || {
            let snapshot = answers.snapshot()?;
            let facets = Arc::new(Facets::of(&snapshot.findings));
            Ok((snapshot, facets))
        })
        .await?;
        let tag = format!("{}@{}", snapshot.revision, snapshot.computed_at.as_millisecond());
        let edition = Edition { facets, tag, took: started.elapsed(), snapshot };
        self.known.send_replace(Known { edition: Some(Arc::new(edition)), trouble: None });
        Ok(())
    }
}

pub(crate) fn failed(message: &str) -> Refusal {
    Refusal { kind: RefusalKind::Failed, message: message.to_owned(), hints: Vec::new() }
}

/// Does something that blocks where it may.
pub(crate) async fn off_the_runtime<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Refusal> + Send + 'static,
) -> Result<T, Refusal> {
    match tokio::task::spawn_blocking(work).await {
        Ok(answer) => answer,
        Err(_) => Err(Refusal {
            hints: vec!["this is a mistake in Driftline; its standard error says where".into()],
            ..failed("an answer broke down while it was computed")
        }),
    }
}
