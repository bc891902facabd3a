//! Looking at one object and its thing: everything that the decision rests on, without changing anything.

use driftline_core::compare::apply;
use driftline_core::{Change, Value};
use kube::ResourceExt as _;

use crate::cloud::{Cloud, CloudError, Fault, Progress, Thing};
use crate::context::Context;
use crate::crd::{Pending, Status};
use crate::decision::{Decision, Live, Situation, decide};
use crate::managed::{Found, Managed};
use crate::metrics::Operation;
use crate::settings::{ADOPT, Settings};
use crate::trouble::Trouble;

/// A request that was remembered and perhaps never made has a token that begins so.
pub const INTENT: &str = "intent:";

/// What was found of a thing.
#[derive(Clone, Debug)]
pub struct Sight {
    pub thing: Option<Thing>,
    /// A request that AWS is still working on.
    pub pending: Option<Pending>,
    /// It was not made by this operator for this object, and the object says to take it over.
    pub foreign: bool,
}

/// All there is to know about an object, and what follows.
#[derive(Clone, Debug)]
pub struct Judged {
    pub situation: Situation,
    pub decision: Decision,
    /// How live differs from what is declared.
    pub found: Found,
    /// How live differs from what was last applied: what someone else did.
    pub others: Vec<Change>,
    /// What is to be written: the declaration, with what is ignored as it is.
    pub document: Value,
}

pub async fn look<K: Managed, C: Cloud<K>, W>(
    context: &Context<C, W>,
    object: &K,
    status: &Status,
    desired: Option<&Value>,
    read_only: bool,
) -> Result<Sight, Trouble> {
    let mut id = status.id.clone();
    if let Some(pending) = &status.pending {
        let working = Sight { thing: None, pending: Some(pending.clone()), foreign: false };
        if read_only && pending.token.starts_with(INTENT) {
            return Ok(working);
        }
        match context.call(Operation::Poll, context.cloud.poll(object, pending, desired)).await? {
            Progress::Working(other) => return Ok(Sight { pending: other.or(working.pending), ..working }),
            Progress::Done(made) => id = made.or(id),
            Progress::Failed(error) => return Err(Trouble::Ended(error)),
        }
    }
    if let Some(id) = &id
        && let Some(thing) = context.call(Operation::Read, context.cloud.read(object, id)).await?
    {
        return Ok(Sight { thing: Some(thing), pending: None, foreign: false });
    }
    // Nothing goes by the id, or there is none yet; something may go by the name. A thing that was made and never
    // written down is found so.
    let Some(thing) = context.call(Operation::Find, context.cloud.find(object)).await? else {
        return Ok(Sight { thing: None, pending: None, foreign: false });
    };
    let asked_for = object.annotations().get(ADOPT);
    if status.id.is_none() && asked_for == Some(&thing.id) {
        return Ok(Sight { thing: Some(thing), pending: None, foreign: true });
    }
    if thing.owner.is_some() && thing.owner == object.uid() {
        return Ok(Sight { thing: Some(thing), pending: None, foreign: false });
    }
    if object.meta().deletion_timestamp.is_some() {
        return Ok(Sight { thing: None, pending: None, foreign: false });
    }
    Err(Trouble::Refused {
        reason: "NotOurs",
        message: format!(
            "`{}` is there already and was not made for this object{}; to take it over, set the annotation {ADOPT}: {}",
            thing.arn.as_deref().unwrap_or(&thing.id),
            thing.owner.as_ref().map(|owner| format!(" (its owner is {owner})")).unwrap_or_default(),
            thing.id,
        ),
    })
}

/// Puts the questions, and decides.
pub fn judge<K: Managed>(object: &K, status: &Status, settings: &Settings, desired: &Value, sight: &Sight) -> Judged {
    let applied: Option<Value> = status.last_applied.clone().and_then(|json| serde_json::from_value(json).ok());
    let compares = settings.policy != crate::decision::Policy::Suspend;
    let (mut found, mut others) = (Found::default(), Vec::new());
    // What a write rests on is compared under every policy; only the answer is not asked for under suspend.
    if let Some(thing) = &sight.thing {
        found = object.compare(desired, &thing.document, applied.as_ref(), &settings.ignore);
        // Of a thing that was taken over nothing was ever applied: what was told to have drifted is what others did.
        if applied.is_none() && status.drift.is_some() && compares {
            others.clone_from(&found.changes);
        }
        if let Some(applied) = applied.as_ref().filter(|_| compares) {
            others = object.compare(applied, &object.sealed(&thing.document), None, &settings.ignore).changes;
        }
    }
    let spec_is_applied = applied.as_ref().is_some_and(|applied| {
        object.compare(&object.sealed(desired), applied, Some(applied), &settings.ignore).is_same()
    });
    let live = match (&sight.pending, &sight.thing) {
        (Some(_), _) => Live::InProgress,
        (None, Some(thing)) => thing.live,
        (None, None) => Live::Absent,
    };
    let generation = object.meta().generation;
    let situation = Situation {
        deleting: object.meta().deletion_timestamp.is_some(),
        live,
        known: status.id.is_some(),
        // Nobody changed the declaration of a thing that is taken over: where it differs, it drifted.
        generation_observed: sight.foreign || (generation.is_some() && generation == status.observed_generation),
        spec_is_live: sight.thing.is_some() && sight.pending.is_none() && found.is_same(),
        applied_is_live: others.is_empty(),
        spec_is_applied,
        policy: settings.policy,
    };
    let document = apply(desired, &found.kept);
    Judged { situation, decision: decide(&situation), found, others, document }
}

impl From<CloudError> for Trouble {
    fn from(error: CloudError) -> Self {
        Trouble::Cloud(error)
    }
}

/// Whether an answer to making a thing says that it is there already.
pub fn is_there_already(error: &CloudError) -> bool {
    error.fault == Fault::Conflict
}
