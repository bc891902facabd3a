//! Carrying decisions out. What is about to be overwritten is told before the write, and success only after it.

use std::time::Duration;

use driftline_core::Change;
use jiff::Timestamp;

use crate::cloud::{Cloud, Dismantled, Thing, Written};
use crate::cluster::Cluster;
use crate::crd::{Corrections, Drift, DriftField, Overwritten, Pending};
use crate::decision::{Live, Policy};
use crate::look::{Judged, is_there_already};
use crate::managed::Managed;
use crate::metrics::{DriftLabels, DriftOutcome, Operation};
use crate::reconcile::{Next, POLL, VERIFY, Work, backoff, forget, key};
use crate::status::{CHECKED, DRIFTED, Draft, READY, SYNCED, Truth, fields, moment, sentence};
use crate::trouble::Trouble;

/// The second correction in a row waits this long, the third twice as long, and so on.
const FIRST_PAUSE: Duration = Duration::from_secs(30);
const LONGEST_PAUSE: Duration = Duration::from_hours(1);

impl<K: Managed, C: Cloud<K>, W: Cluster<K>> Work<'_, K, C, W> {
    pub(crate) async fn release(self) -> Result<Next, Trouble> {
        if !self.context.fence.holds() {
            return Err(Trouble::NotLeader);
        }
        self.context.cluster.remove_finalizer(&*self.object).await?;
        forget(self.context, &*self.object);
        Ok(Next(None))
    }

    pub(crate) async fn dismantle(mut self, mut thing: Thing) -> Result<Next, Trouble> {
        loop {
            let mut draft = self.draft();
            draft.status.id = Some(thing.id.clone());
            draft.status.pending = None;
            draft.set(READY, Truth::False, "Deleting", "the object is being deleted, and its resource with it");
            self.write(draft).await?;
            let cloud = &self.context.cloud;
            match self.context.write(Operation::Dismantle, cloud.dismantle(&*self.object, &thing)).await? {
                Dismantled::Deleted => {
                    self.tell(false, "Deleted", format!("deleted `{}`", name_of(&thing))).await;
                    return self.release().await;
                }
                Dismantled::Pending(pending) => {
                    let mut draft = self.draft();
                    draft.status.pending = Some(pending);
                    self.write(draft).await?;
                    return Ok(Next(Some(POLL)));
                }
                Dismantled::Disabled(disabled) => {
                    self.tell(false, "Disabling", format!("switched off `{}` before deleting it", name_of(&thing)))
                        .await;
                    if disabled.live == Live::InProgress {
                        let mut draft = self.draft();
                        draft.status.tenant_status.clone_from(&disabled.state);
                        draft.set(READY, Truth::False, "Disabling", "waiting until AWS has switched it off everywhere");
                        self.write(draft).await?;
                        return Ok(Next(Some(POLL)));
                    }
                    thing = *disabled;
                }
            }
        }
    }

    pub(crate) async fn create(mut self, judged: &Judged, again: bool) -> Result<Next, Trouble> {
        if again {
            let (fields, more) = (vec![gone_field(&*self.object)], 0);
            let text = "someone deleted it; it is made again".to_owned();
            self.detected("ExternalDeletion", fields, more, Some(text)).await?;
        }
        let nonce = format!("{}-{}", self.object.meta().generation.unwrap_or_default(), self.now.as_millisecond());
        let intent = self.context.cloud.intent(&*self.object, &nonce);
        if let Some(intent) = &intent {
            let mut draft = self.draft();
            draft.status.pending = Some(intent.clone());
            draft.set(READY, Truth::False, "Creating", "AWS is asked to make it");
            self.write(draft).await?;
        }
        let cloud = &self.context.cloud;
        let made =
            self.context.write(Operation::Create, cloud.create(&*self.object, intent.as_ref(), &judged.document)).await;
        let written = match made {
            // An answer that was lost may have been a good one: then the thing is there, and it is ours.
            Err(Trouble::Cloud(error)) if is_there_already(&error) && intent.is_none() => {
                match self.context.call(Operation::Find, cloud.find(&*self.object)).await? {
                    Some(thing) if thing.owner.is_some() && thing.owner == self.object.meta().uid => {
                        Written::Done(Box::new(thing))
                    }
                    _ => return Err(Trouble::Cloud(error)),
                }
            }
            Err(Trouble::Cloud(error)) if intent.is_some() && !error.fault.passes() => {
                return Err(Trouble::Ended(error));
            }
            other => other?,
        };
        let mut draft = self.draft();
        draft.status.last_applied = self.sealed(judged);
        draft.status.observed_generation = self.object.meta().generation;
        let next = match &written {
            Written::Done(thing) => {
                self.in_sync(&mut draft, thing);
                draft.status.pending = None;
                self.next(thing)
            }
            Written::Pending(pending) => {
                draft.status.pending = Some(pending.clone());
                draft.set(READY, Truth::False, "Creating", "AWS is making it");
                draft.set(SYNCED, Truth::False, "UpdatePending", "AWS is making it");
                Next(Some(VERIFY))
            }
        };
        self.write(draft).await?;
        if let Written::Done(thing) = &written {
            let reason = if again { "Recreated" } else { "Created" };
            self.tell(false, reason, format!("made `{}`", name_of(thing))).await;
        }
        if again {
            self.count(DriftOutcome::Corrected);
        }
        self.checked(None);
        Ok(next)
    }

    pub(crate) async fn report_deletion(mut self) -> Result<Next, Trouble> {
        let fields = vec![gone_field(&*self.object)];
        let text = "someone deleted it; under report it is not made again".to_owned();
        self.detected("ExternalDeletion", fields, 0, Some(text)).await?;
        Ok(self.resync())
    }

    pub(crate) async fn settle(mut self, judged: &Judged, thing: &Thing) -> Result<Next, Trouble> {
        let had_drift = self.status.drift.is_some();
        let mut draft = self.draft();
        self.in_sync(&mut draft, thing);
        draft.status.pending = None;
        draft.status.observed_generation = self.object.meta().generation;
        draft.status.corrections = None;
        // What is live is what is declared: whether it was written or found so makes no difference any more.
        if !judged.situation.spec_is_applied {
            draft.status.last_applied = self.sealed(judged);
        }
        self.write(draft).await?;
        if had_drift {
            self.count(DriftOutcome::Gone);
            self.tell(false, "InSync", "what had drifted is as declared again".to_owned()).await;
        }
        self.checked(None);
        Ok(self.next(thing))
    }

    pub(crate) async fn apply(mut self, judged: &Judged, thing: Thing, over_drift: bool) -> Result<Next, Trouble> {
        let (lost, lost_more) = fields(&*self.object, &judged.others);
        if over_drift {
            let text = format!(
                "a change of the declaration writes over what someone else changed: {}",
                sentence(&lost, lost_more)
            );
            self.detected("DriftOverwritten", lost.clone(), lost_more, Some(text)).await?;
        }
        let written = self.update(judged, &thing).await?;
        let mut draft = self.draft();
        draft.status.last_applied = self.sealed(judged);
        draft.status.observed_generation = self.object.meta().generation;
        if over_drift {
            draft.status.overwritten = Some(Overwritten { at: moment(self.now), fields: lost, more: lost_more });
        }
        let (done, next) = self.after_write(&mut draft, &written);
        self.write(draft).await?;
        let (fields, more) = fields(&*self.object, &judged.found.changes);
        if over_drift {
            self.count(DriftOutcome::Overwritten);
        }
        if done {
            self.tell(
                false,
                "Updated",
                format!("wrote the changed declaration (declared -> before): {}", sentence(&fields, more)),
            )
            .await;
        }
        self.checked(None);
        Ok(next)
    }

    pub(crate) async fn correct(mut self, judged: &Judged, thing: Thing) -> Result<Next, Trouble> {
        let (fields, more) = fields(&*self.object, &judged.found.changes);
        let attempts = self.status.corrections.as_ref().map_or(0, |them| them.attempts);
        let due = self.status.corrections.as_ref().and_then(|them| them.next.parse::<Timestamp>().ok());
        if let Some(due) = due.filter(|due| *due > self.now && !self.asked()) {
            return self.hold(&thing, fields, more, attempts, due).await;
        }
        let text = sentence(&fields, more);
        self.detected("DriftDetected", fields, more, None).await?;
        let written = self.update(judged, &thing).await?;
        let mut draft = self.draft();
        let attempts = attempts + 1;
        let pause = backoff(FIRST_PAUSE, u32::try_from(attempts).unwrap_or(u32::MAX), LONGEST_PAUSE);
        let next = self.now.checked_add(pause).unwrap_or(self.now);
        draft.status.corrections = Some(Corrections { attempts, last: moment(self.now), next: moment(next) });
        draft.status.last_applied = self.sealed(judged);
        draft.status.observed_generation = self.object.meta().generation;
        let (done, after) = self.after_write(&mut draft, &written);
        self.write(draft).await?;
        if done {
            self.count(DriftOutcome::Corrected);
            self.tell(false, "DriftCorrected", format!("wrote the declaration again; it was: {text}")).await;
        } else {
            self.count(DriftOutcome::NotSticking);
            let text = format!("AWS accepted the write and still has: {text}");
            self.tell(true, "CorrectionNotSticking", text).await;
        }
        self.checked(None);
        Ok(Next(after.0.map(|after| after.min(VERIFY))))
    }

    /// A correction that did not stick is not tried again at once: it says so, and waits longer each time.
    async fn hold(
        mut self,
        thing: &Thing,
        fields: Vec<DriftField>,
        more: i64,
        attempts: i64,
        due: Timestamp,
    ) -> Result<Next, Trouble> {
        let is_news = !self.status.conditions.iter().any(|one| one.reason == "CorrectionNotSticking");
        let text = format!(
            "corrected {attempts} times and different again: {}; the next correction is not before {}",
            sentence(&fields, more),
            moment(due)
        );
        let mut draft = self.draft();
        Self::seen(&mut draft, thing);
        self.drifting(&mut draft, fields, more);
        draft.set(SYNCED, Truth::False, "CorrectionNotSticking", text.as_str());
        draft.set(DRIFTED, Truth::True, "CorrectionNotSticking", text.as_str());
        draft.set(CHECKED, Truth::True, "Checked", "live was compared with the declaration");
        self.write(draft).await?;
        if is_news {
            self.count(DriftOutcome::NotSticking);
            self.tell(true, "CorrectionNotSticking", text).await;
        }
        self.checked(self.since());
        let wait = u64::try_from(due.duration_since(self.now).as_secs()).unwrap_or_default() + 1;
        Ok(Next(Some(Duration::from_secs(wait).min(self.settings.resync.max(VERIFY)))))
    }

    pub(crate) async fn report(mut self, judged: &Judged, thing: &Thing) -> Result<Next, Trouble> {
        let (fields, more) = fields(&*self.object, &judged.found.changes);
        self.status.id = Some(thing.id.clone());
        self.status.arn.clone_from(&thing.arn);
        self.status.e_tag.clone_from(&thing.etag);
        self.status.tenant_status.clone_from(&thing.state);
        self.status.pending = None;
        // What was taken over is not of another generation: the next look must not take it for a changed declaration.
        self.status.observed_generation = self.object.meta().generation;
        self.detected("DriftDetected", fields, more, None).await?;
        Ok(self.next(thing))
    }

    pub(crate) async fn leave(mut self, thing: Option<&Thing>, pending: Option<Pending>) -> Result<Next, Trouble> {
        let mut draft = self.draft();
        let working = pending.is_some();
        draft.status.pending = pending;
        if let Some(thing) = thing {
            Self::seen(&mut draft, thing);
        }
        draft.status.observed_generation = self.object.meta().generation;
        draft.status.drift = None;
        draft.status.corrections = None;
        suspended(&mut draft);
        self.write(draft).await?;
        self.context.metrics.seen(&key(&*self.object), K::KIND);
        match (working, thing) {
            (true, _) => Ok(Next(Some(POLL))),
            (_, Some(thing)) => Ok(self.next(thing)),
            _ => Ok(self.resync()),
        }
    }

    pub(crate) async fn wait(
        mut self,
        judged: &Judged,
        thing: Option<&Thing>,
        pending: Option<Pending>,
    ) -> Result<Next, Trouble> {
        let mut draft = self.draft();
        draft.status.pending = pending;
        if let Some(thing) = thing {
            draft.status.id = Some(thing.id.clone());
            draft.status.tenant_status.clone_from(&thing.state);
            draft.status.e_tag.clone_from(&thing.etag);
        }
        let reason = match (judged.situation.deleting, thing) {
            (true, Some(_)) => "Disabling",
            (true, None) => "Deleting",
            (false, None) if !judged.situation.known => "Creating",
            (false, _) => "Deploying",
        };
        draft.set(READY, Truth::False, reason, "AWS is working on it");
        if !judged.situation.deleting && !judged.situation.spec_is_live {
            draft.set(SYNCED, Truth::False, "UpdatePending", "what is declared is written when AWS is done");
        }
        self.write(draft).await?;
        Ok(Next(Some(POLL.min(self.settings.resync))))
    }

    async fn update(&self, judged: &Judged, thing: &Thing) -> Result<Written, Trouble> {
        let cloud = &self.context.cloud;
        let update = cloud.update(&*self.object, thing, &judged.document, &judged.found.changes);
        self.context.write(Operation::Update, update).await
    }

    /// What a write that was accepted means: whether live now is as declared, and when to look again.
    fn after_write(&self, draft: &mut Draft, written: &Written) -> (bool, Next) {
        match written {
            Written::Pending(pending) => {
                draft.status.pending = Some(pending.clone());
                draft.set(READY, Truth::False, "Deploying", "AWS is working on it");
                draft.set(SYNCED, Truth::False, "UpdatePending", "AWS is working on it");
                (true, Next(Some(VERIFY)))
            }
            Written::Done(thing) => {
                let applied: Option<driftline_core::Value> =
                    draft.status.last_applied.clone().and_then(|json| serde_json::from_value(json).ok());
                let left = self.object.desired().ok().map_or(Vec::new(), |desired| {
                    self.object.compare(&desired, &thing.document, applied.as_ref(), &self.settings.ignore).changes
                });
                if left.is_empty() {
                    self.in_sync(draft, thing);
                    return (true, self.next(thing));
                }
                let (shown, more) = fields(&*self.object, &left);
                let text = format!("AWS accepted the write and still has: {}", sentence(&shown, more));
                Self::seen(draft, thing);
                self.drifting(draft, shown, more);
                draft.set(SYNCED, Truth::False, "CorrectionNotSticking", text.as_str());
                draft.set(DRIFTED, Truth::True, "CorrectionNotSticking", text);
                draft.set(CHECKED, Truth::True, "Checked", "live was compared with the declaration");
                (false, Next(Some(VERIFY)))
            }
        }
    }

    /// Puts drift into the status, and tells of it if it is another than was told.
    async fn detected(
        &mut self,
        reason: &'static str,
        fields: Vec<DriftField>,
        more: i64,
        text: Option<String>,
    ) -> Result<(), Trouble> {
        let is_news = self
            .object
            .status()
            .and_then(|status| status.drift.as_ref())
            .is_none_or(|drift| drift.fields != fields || drift.more != more)
            || !self.object.status().is_some_and(|status| {
                let same = |told: &str| told == reason || told == "CorrectionNotSticking";
                status.conditions.iter().any(|one| one.type_ == DRIFTED && same(&one.reason))
            });
        let text = text.unwrap_or_else(|| sentence(&fields, more));
        let mut draft = self.draft();
        self.drifting(&mut draft, fields, more);
        draft.set(SYNCED, Truth::False, "DriftDetected", text.as_str());
        draft.set(DRIFTED, Truth::True, reason, text.as_str());
        draft.set(CHECKED, Truth::True, "Checked", "live was compared with the declaration");
        if reason == "ExternalDeletion" {
            draft.set(READY, Truth::False, reason, text.as_str());
        } else if draft.status.tenant_status.as_deref() != Some("InProgress") {
            draft.set(READY, Truth::True, "Deployed", "it is there");
        }
        self.write(draft).await?;
        self.checked(self.since());
        if is_news {
            self.count(DriftOutcome::Detected);
            self.tell(true, reason, text).await;
        }
        Ok(())
    }

    fn drifting(&self, draft: &mut Draft, fields: Vec<DriftField>, more: i64) {
        let first_detected = self.status.drift.as_ref().map(|drift| drift.first_detected.clone());
        let first_detected = first_detected.unwrap_or_else(|| moment(self.now));
        draft.status.drift_detected = Some(true);
        draft.status.drift = Some(Drift { first_detected, fields, more });
    }

    fn since(&self) -> Option<Timestamp> {
        self.status.drift.as_ref().and_then(|drift| drift.first_detected.parse().ok()).or(Some(self.now))
    }

    fn checked(&self, drifting_since: Option<Timestamp>) {
        self.context.metrics.checked(&key(&*self.object), K::KIND, self.now, drifting_since);
    }

    fn count(&self, outcome: DriftOutcome) {
        let labels = DriftLabels { kind: K::KIND, policy: self.settings.policy, outcome };
        self.context.metrics.drift.get_or_create(&labels).inc();
    }

    fn sealed(&self, judged: &Judged) -> Option<serde_json::Value> {
        serde_json::to_value(self.object.sealed(&judged.document)).ok()
    }

    /// What a thing says of itself.
    fn seen(draft: &mut Draft, thing: &Thing) {
        draft.status.id = Some(thing.id.clone());
        draft.status.arn.clone_from(&thing.arn);
        draft.status.e_tag.clone_from(&thing.etag);
        draft.status.tenant_status.clone_from(&thing.state);
        match thing.live {
            Live::InProgress => draft.set(READY, Truth::False, "Deploying", "AWS is working on it"),
            _ => draft.set(READY, Truth::True, "Deployed", "it is there"),
        }
    }

    /// Live is as declared.
    fn in_sync(&self, draft: &mut Draft, thing: &Thing) {
        Self::seen(draft, thing);
        draft.status.drift = None;
        draft.set(SYNCED, Truth::True, "InSync", "what is declared is in AWS");
        if self.settings.policy == Policy::Suspend {
            suspended(draft);
            return;
        }
        draft.status.drift_detected = Some(false);
        draft.set(DRIFTED, Truth::False, "NoDrift", "live is as declared");
        draft.set(CHECKED, Truth::True, "Checked", "live was compared with the declaration");
    }
}

fn name_of(thing: &Thing) -> &str {
    thing.arn.as_deref().unwrap_or(&thing.id)
}

/// The difference that a deletion is: all of it.
fn gone_field<K: Managed>(object: &K) -> DriftField {
    let whole = Change { path: driftline_core::Pointer::root(), expected: object.desired().ok(), actual: None };
    let (mut shown, _) = fields(object, &[whole]);
    shown.pop().unwrap_or(DriftField { path: String::new(), expected: None, actual: None })
}

/// Nobody looks. The acknowledgment is the one that the original gives; `DriftChecked` says that it is no finding.
fn suspended(draft: &mut Draft) {
    const WHY: &str = "the policy is suspend: live is not compared with the declaration";
    draft.status.drift_detected = Some(true);
    draft.set(CHECKED, Truth::False, "Suspended", WHY);
    draft.set(DRIFTED, Truth::Unknown, "Suspended", "the policy is suspend: nobody looks");
}
