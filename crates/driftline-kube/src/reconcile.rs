//! One object, once: look, decide, carry out, and say when to look again.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use kube::ResourceExt as _;

use crate::cloud::{Cloud, CloudError, Thing};
use crate::cluster::{Cluster, ClusterError, Note};
use crate::context::Context;
use crate::crd::{FINALIZER, Status};
use crate::decision::{Decision, Live, Policy};
use crate::look::{Judged, Sight, judge, look};
use crate::managed::Managed;
use crate::metrics::{KindLabels, Operation, Outcome, ReconcileLabels};
use crate::settings::{RECONCILE_AT, Settings, jittered};
use crate::status::{CHECKED, DRIFTED, Draft, READY, SYNCED, Truth};
use crate::trouble::Trouble;

/// How soon something is looked at again that is on its way.
pub(crate) const POLL: Duration = Duration::from_secs(5);
/// How soon a correction is looked at again.
pub(crate) const VERIFY: Duration = Duration::from_secs(1);
/// Failures that pass are told after this many in a row.
const PATIENCE: u32 = 4;

/// When to look again; `None` when something has to change first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Next(pub Option<Duration>);

/// What one reconcile works with.
pub(crate) struct Work<'c, K, C, W> {
    pub context: &'c Context<C, W>,
    /// Always as it was last written.
    pub object: &'c mut K,
    pub status: Status,
    pub settings: Settings,
    pub now: Timestamp,
}

/// Reconciles an object. Whatever happens is counted, and told where it should be.
pub async fn reconcile<K, C, W>(context: &Context<C, W>, mut object: K, namespace: &BTreeMap<String, String>) -> Next
where
    K: Managed,
    C: Cloud<K>,
    W: Cluster<K>,
{
    let begin = tokio::time::Instant::now();
    let key = key(&object);
    let (next, outcome) = match attempt(context, &mut object, namespace).await {
        Ok(next) => {
            context.succeeded(&key);
            (next, Outcome::Done)
        }
        Err(trouble) => handle(context, &object, namespace, trouble).await,
    };
    let labels = ReconcileLabels { kind: K::KIND, outcome };
    context.metrics.reconciles.get_or_create(&labels).inc();
    let seconds = begin.elapsed().as_secs_f64();
    context.metrics.reconcile_seconds.get_or_create(&KindLabels { kind: K::KIND }).observe(seconds);
    next
}

/// The object's name everywhere.
pub fn key<K: Managed>(object: &K) -> String {
    format!("{}/{}/{}", K::KIND.name(), object.namespace().unwrap_or_default(), object.name_any())
}

async fn attempt<K, C, W>(
    context: &Context<C, W>,
    object: &mut K,
    namespace: &BTreeMap<String, String>,
) -> Result<Next, Trouble>
where
    K: Managed,
    C: Cloud<K>,
    W: Cluster<K>,
{
    let now = (context.clock)();
    let held = object.finalizers().iter().any(|one| one == FINALIZER);
    let deleting = object.meta().deletion_timestamp.is_some();
    if deleting && !held {
        forget(context, object);
        return Ok(Next(None));
    }
    let refused = |reason, message| Trouble::Refused { reason, message };
    let settings = match Settings::of(object, namespace, context.defaults) {
        Ok(settings) => settings,
        // What is deleted is deleted, whatever the annotations say.
        Err(_) if deleting => Settings { policy: Policy::Suspend, ignore: Vec::new(), resync: context.defaults.resync },
        Err(message) => return Err(refused("InvalidSettings", message)),
    };
    let desired = match object.desired() {
        Ok(desired) => desired,
        Err(_) if deleting => driftline_core::Value::Null,
        Err(message) => return Err(refused("InvalidSpec", message)),
    };
    if !held {
        if !context.fence.holds() {
            return Err(Trouble::NotLeader);
        }
        *object = context.cluster.add_finalizer(object).await?;
    }
    let status = object.status().cloned().unwrap_or_default();
    let sight = look(context, object, &status, Some(&desired), false).await?;
    let judged = judge(object, &status, &settings, &desired, &sight);
    let work = Work { context, object, status, settings, now };
    work.carry_out(judged, sight).await
}

impl<K: Managed, C: Cloud<K>, W: Cluster<K>> Work<'_, K, C, W> {
    async fn carry_out(mut self, judged: Judged, sight: Sight) -> Result<Next, Trouble> {
        let namespace = self.object.namespace().unwrap_or_default();
        let name = self.object.name_any();
        tracing::debug!(kind = K::KIND.name(), namespace, name, decision = ?judged.decision, "decided");
        if sight.pending.is_none() && !judged.situation.deleting {
            if let Some(ledger) = &self.context.ledger {
                ledger.saw(&*self.object, sight.thing.as_ref(), self.now);
            }
            if let (true, Some(thing)) = (sight.foreign, &sight.thing) {
                self.take_over(thing).await?;
            }
        }
        match (judged.decision, sight.thing) {
            (Decision::Release, _) => self.release().await,
            (Decision::Dismantle, Some(thing)) => self.dismantle(thing).await,
            (Decision::Create, _) => self.create(&judged, false).await,
            (Decision::Recreate, _) => self.create(&judged, true).await,
            (Decision::ReportDeletion, _) => self.report_deletion().await,
            (Decision::Settle | Decision::Acknowledge, Some(thing)) => self.settle(&judged, &thing).await,
            (Decision::Apply, Some(thing)) => self.apply(&judged, thing, false).await,
            (Decision::ApplyOverDrift, Some(thing)) => self.apply(&judged, thing, true).await,
            (Decision::Correct, Some(thing)) => self.correct(&judged, thing).await,
            (Decision::ReportDrift, Some(thing)) => self.report(&judged, &thing).await,
            (Decision::Leave, thing) => self.leave(thing.as_ref(), sight.pending).await,
            // The rest is on its way: a request, or a thing that is not at rest.
            (_, thing) => self.wait(&judged, thing.as_ref(), sight.pending).await,
        }
    }

    /// A status to be filled in, with what every reconcile knows.
    pub(crate) fn draft(&self) -> Draft {
        let mut draft = Draft::new(self.status.clone(), self.object.meta().generation, self.now);
        draft.status.handled_reconcile_at = self.object.annotations().get(RECONCILE_AT).cloned();
        remark(&mut draft, &*self.object);
        draft
    }

    /// Writes the status if it says something new. What is read afterwards is what was written.
    pub(crate) async fn write(&mut self, draft: Draft) -> Result<(), Trouble> {
        let Some(status) = draft.changed_from(self.object.status()) else { return Ok(()) };
        if !self.context.fence.holds() {
            return Err(Trouble::NotLeader);
        }
        *self.object = self.context.cluster.write_status(&*self.object, &status).await?;
        self.status = status;
        Ok(())
    }

    pub(crate) async fn tell(&self, warning: bool, reason: &'static str, text: String) {
        self.context.cluster.tell(&*self.object, Note { warning, reason, text }).await;
    }

    /// The next look, when all is well.
    pub(crate) fn resync(&self) -> Next {
        let seed = self.object.uid().unwrap_or_default();
        Next(Some(jittered(self.settings.resync, &seed, self.now.as_millisecond())))
    }

    /// The next look: sooner while the thing is on its way.
    pub(crate) fn next(&self, thing: &Thing) -> Next {
        match thing.live {
            Live::InProgress => Next(Some(POLL.min(self.settings.resync))),
            _ => self.resync(),
        }
    }

    /// Whether the user asked to look now, and nobody has.
    pub(crate) fn asked(&self) -> bool {
        let asked = self.object.annotations().get(RECONCILE_AT);
        asked.is_some() && asked != self.status.handled_reconcile_at.as_ref()
    }

    async fn take_over(&mut self, thing: &Thing) -> Result<(), Trouble> {
        if self.object.uid() != thing.owner {
            self.context.write(Operation::Claim, self.context.cloud.claim(&*self.object, thing)).await?;
        }
        self.tell(false, "Adopted", format!("took over `{}`", thing.arn.as_deref().unwrap_or(&thing.id))).await;
        Ok(())
    }
}

/// Says what is declared and not acted on.
fn remark<K: Managed>(draft: &mut Draft, object: &K) {
    let remarks = object.remarks();
    for about in ["DNSReady", "CertificateReady"] {
        match remarks.iter().find(|remark| remark.about == about) {
            Some(remark) => draft.set(about, Truth::Unknown, remark.reason, remark.message),
            None => draft.remove(about),
        }
    }
}

pub(crate) fn forget<K: Managed, C, W>(context: &Context<C, W>, object: &K) {
    context.metrics.gone(&key(object));
    context.succeeded(&key(object));
    if let Some(ledger) = &context.ledger {
        ledger.forget(object);
    }
}

/// What follows from trouble. What passes is tried again without a word, until it has been too often.
async fn handle<K, C, W>(
    context: &Context<C, W>,
    object: &K,
    namespace: &BTreeMap<String, String>,
    trouble: Trouble,
) -> (Next, Outcome)
where
    K: Managed,
    C: Cloud<K>,
    W: Cluster<K>,
{
    let key = key(object);
    let soon = Duration::from_millis(500);
    let again = |after: Duration| Next(Some(jittered(after, &key, (context.clock)().as_millisecond())));
    match trouble {
        // The next look is at what is there then.
        Trouble::Cluster(ClusterError::Conflict) => (again(soon), Outcome::Retried),
        Trouble::Cluster(ClusterError::Gone) => {
            forget(context, object);
            (Next(None), Outcome::Done)
        }
        Trouble::NotLeader => (again(POLL), Outcome::Retried),
        Trouble::Cluster(ClusterError::Other(message)) => {
            let times = context.failed(&key);
            tracing::warn!(object = key, times, message, "the API server did not take a write");
            (again(backoff(soon, times, Duration::from_secs(30))), Outcome::Failed)
        }
        Trouble::Cloud(error) if error.fault.passes() => {
            let times = context.failed(&key);
            tracing::debug!(object = key, times, fault = error.fault.name(), "trying again");
            let after = backoff(Duration::from_secs(1), times, Duration::from_mins(1));
            let after = after.max(error.retry_after.unwrap_or_default());
            if times >= PATIENCE {
                not_checked(context, object, &error).await;
                return (again(after), Outcome::Failed);
            }
            (again(after), Outcome::Retried)
        }
        Trouble::Cloud(error) => {
            let (reason, message) = (error.reason(), error.message);
            (refuse(context, object, namespace, reason, message, false, &again).await, Outcome::Refused)
        }
        Trouble::Ended(error) => {
            let (reason, message) = (error.reason(), error.message);
            (refuse(context, object, namespace, reason, message, true, &again).await, Outcome::Refused)
        }
        Trouble::Refused { reason, message } => {
            (refuse(context, object, namespace, reason, message, false, &again).await, Outcome::Refused)
        }
    }
}

pub(crate) fn backoff(first: Duration, times: u32, longest: Duration) -> Duration {
    first.saturating_mul(1 << times.saturating_sub(1).min(16)).min(longest)
}

/// Says that nobody could look. What was known stays as it is.
async fn not_checked<K: Managed, C: Cloud<K>, W: Cluster<K>>(context: &Context<C, W>, object: &K, error: &CloudError) {
    let now = (context.clock)();
    let mut draft = Draft::new(object.status().cloned().unwrap_or_default(), object.meta().generation, now);
    draft.set(CHECKED, Truth::False, error.reason(), format!("AWS could not be asked: {}", error.message));
    if let Some(status) = draft.changed_from(object.status())
        && context.fence.holds()
    {
        tracing::warn!(object = key(object), error = error.message, "AWS cannot be asked");
        if let Err(error) = context.cluster.write_status(object, &status).await {
            tracing::debug!(object = key(object), %error, "the status was not written");
        }
    }
}

/// Says why nothing can be done, once, and looks again later.
async fn refuse<K: Managed, C: Cloud<K>, W: Cluster<K>>(
    context: &Context<C, W>,
    object: &K,
    namespace: &BTreeMap<String, String>,
    reason: &'static str,
    message: String,
    ended: bool,
    again: &impl Fn(Duration) -> Next,
) -> Next {
    let times = context.failed(&key(object));
    let resync = Settings::of(object, namespace, context.defaults).map_or(context.defaults.resync, |one| one.resync);
    let next = again(backoff(POLL, times, Duration::from_mins(10)).min(resync.max(POLL)));
    let now = (context.clock)();
    let before = object.status().cloned().unwrap_or_default();
    let was =
        before.conditions.iter().find(|one| one.type_ == READY).map(|one| (one.reason.clone(), one.message.clone()));
    let mut draft = Draft::new(before, object.meta().generation, now);
    remark(&mut draft, object);
    draft.set(READY, Truth::False, reason, message.as_str());
    draft.set(CHECKED, Truth::False, reason, "nothing was compared: see the condition Ready");
    if draft.status.observed_generation != object.meta().generation {
        draft.set(SYNCED, Truth::False, reason, "the declaration is not in AWS: see the condition Ready");
    }
    if !draft.has(DRIFTED) {
        draft.set(DRIFTED, Truth::Unknown, reason, "nothing was compared: see the condition Ready");
    }
    if ended {
        draft.status.pending = None;
    }
    let Some(status) = draft.changed_from(object.status()) else { return next };
    if !context.fence.holds() {
        return next;
    }
    tracing::warn!(object = key(object), reason, message, "refused");
    match context.cluster.write_status(object, &status).await {
        Ok(object) if was != Some((reason.to_owned(), message.clone())) => {
            context.cluster.tell(&object, Note { warning: true, reason, text: message }).await;
        }
        Ok(_) => {}
        // A finalizer that was added a moment ago makes the object another one; the next look writes it.
        Err(ClusterError::Conflict) => return Next(Some(Duration::from_millis(500))),
        Err(error) => tracing::debug!(object = key(object), %error, "the status was not written"),
    }
    next
}
