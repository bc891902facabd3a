//! What to do about one object: a pure function of what is declared, what was last applied, what is live, and the
//! policy. Everything else in this crate carries the answer out.
//!
//! docs/operator.md has this table for people.

use std::fmt;
use std::str::FromStr;

use driftline_core::standing::{Sides, Standing, standing};
use serde::Serialize;
use thiserror::Error;

/// What is done about drift. There is no other value, and no default for one that is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Policy {
    /// The declaration wins: what drifted is written again.
    Enforce,
    /// Drift is told and nothing is done about it.
    Report,
    /// Nobody looks for drift.
    Suspend,
}

impl Policy {
    pub const ALL: [Policy; 3] = [Policy::Enforce, Policy::Report, Policy::Suspend];

    pub fn name(self) -> &'static str {
        match self {
            Policy::Enforce => "enforce",
            Policy::Report => "report",
            Policy::Suspend => "suspend",
        }
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{0}` is not a drift policy: write enforce, report or suspend")]
pub struct UnknownPolicy(pub String);

impl FromStr for Policy {
    type Err = UnknownPolicy;

    fn from_str(text: &str) -> Result<Self, UnknownPolicy> {
        Self::ALL.into_iter().find(|policy| policy.name() == text).ok_or_else(|| UnknownPolicy(text.to_owned()))
    }
}

/// What the cloud has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Live {
    /// Nothing.
    Absent,
    /// Something that is still on its way to where it was last sent.
    InProgress,
    /// Something at rest.
    Present,
}

impl Live {
    pub const ALL: [Live; 3] = [Live::Absent, Live::InProgress, Live::Present];
}

/// Everything the decision rests on, as answers to questions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "they are the questions, and the table has a column for each")]
pub struct Situation {
    /// The object is being deleted.
    pub deleting: bool,
    pub live: Live,
    /// The operator made the thing, or took it over: the status has its id.
    pub known: bool,
    /// The declaration is the one that was last acted on.
    pub generation_observed: bool,
    /// Nothing that counts differs between declaration and live. Not asked under suspend.
    pub spec_is_live: bool,
    /// Nothing that counts differs between what was last applied and live. Not asked under suspend.
    pub applied_is_live: bool,
    /// Nothing that counts differs between declaration and what was last applied. Needs no look at the cloud.
    pub spec_is_applied: bool,
    pub policy: Policy,
}

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Decision {
    /// Nothing is left in the cloud: let the object go.
    Release,
    /// Switch the thing off and delete it, a step at a time.
    Dismantle,
    /// The cloud is still working; writing now would rest on a state that is about to change.
    Wait,
    /// There never was such a thing: make it.
    Create,
    /// Someone deleted it, and it is to be there: say so, and make it again.
    Recreate,
    /// Someone deleted it: say so.
    ReportDeletion,
    /// Everything is as declared.
    Settle,
    /// The declaration changed and means the same: take note of it.
    Acknowledge,
    /// The user changed the declaration: write it.
    Apply,
    /// The user changed the declaration, and someone else changed the thing: name what is overwritten, and write.
    ApplyOverDrift,
    /// Someone changed the thing: say so, and write the declaration again.
    Correct,
    /// Someone changed the thing: say so.
    ReportDrift,
    /// Nobody looks: say that.
    Leave,
}

impl Decision {
    /// Whether carrying it out changes something in the cloud.
    pub fn writes(self) -> bool {
        match self {
            Decision::Dismantle
            | Decision::Create
            | Decision::Recreate
            | Decision::Apply
            | Decision::ApplyOverDrift
            | Decision::Correct => true,
            Decision::Release
            | Decision::Wait
            | Decision::ReportDeletion
            | Decision::Settle
            | Decision::Acknowledge
            | Decision::ReportDrift
            | Decision::Leave => false,
        }
    }
}

/// The table. Deletion comes first: it raises the generation, and must not be taken for a change of the declaration.
#[expect(clippy::match_same_arms, reason = "it is a table: its rows are in the order in which they are read")]
pub fn decide(situation: &Situation) -> Decision {
    let sides = Sides {
        generation_observed: situation.generation_observed,
        spec_is_live: situation.spec_is_live,
        applied_is_live: situation.applied_is_live,
    };
    // Under suspend the cloud is not compared: only a declaration that is new, and not only in form, is written.
    let nothing_new = situation.generation_observed || situation.spec_is_applied;
    match (situation.deleting, situation.live, situation.policy) {
        (true, Live::Absent, _) => Decision::Release,
        (true, Live::InProgress, _) => Decision::Wait,
        (true, Live::Present, _) => Decision::Dismantle,

        (false, Live::Absent, _) if !situation.known => Decision::Create,
        (false, Live::Absent, Policy::Enforce) => Decision::Recreate,
        (false, Live::Absent, Policy::Report) if nothing_new => Decision::ReportDeletion,
        (false, Live::Absent, Policy::Suspend) if nothing_new => Decision::Leave,
        (false, Live::Absent, Policy::Report | Policy::Suspend) => Decision::Recreate,

        (false, Live::InProgress | Live::Present, Policy::Suspend) if nothing_new => Decision::Leave,
        (false, Live::InProgress, Policy::Suspend) => Decision::Wait,
        (false, Live::Present, Policy::Suspend) => Decision::Apply,

        (false, live, policy) => match (standing(sides), live, policy) {
            (Standing::Steady, _, _) => Decision::Settle,
            (Standing::NoOpSpecChange, _, _) => Decision::Acknowledge,
            (_, Live::InProgress, _) => Decision::Wait,
            (Standing::SpecChange, _, _) => Decision::Apply,
            (Standing::SpecChangeOverDrift, _, _) => Decision::ApplyOverDrift,
            (Standing::Drift, _, Policy::Enforce) => Decision::Correct,
            (Standing::Drift, _, _) => Decision::ReportDrift,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn every_situation() -> impl Iterator<Item = Situation> {
        Policy::ALL.into_iter().flat_map(|policy| {
            Live::ALL.into_iter().flat_map(move |live| {
                (0u8..64).map(move |bits| Situation {
                    deleting: bits & 1 != 0,
                    known: bits & 2 != 0,
                    generation_observed: bits & 4 != 0,
                    spec_is_live: bits & 8 != 0,
                    applied_is_live: bits & 16 != 0,
                    spec_is_applied: bits & 32 != 0,
                    live,
                    policy,
                })
            })
        })
    }

    /// Asks who wants what, instead of going through a table: the user by the declaration, someone else by what they
    /// did to the thing, and the policy by what it allows.
    fn oracle(at: Situation) -> Decision {
        let thing_is_there = at.live != Live::Absent;
        let looks = at.policy != Policy::Suspend;
        if at.deleting {
            return match (thing_is_there, at.live == Live::InProgress) {
                (false, _) => Decision::Release,
                (_, true) => Decision::Wait,
                (_, false) => Decision::Dismantle,
            };
        }
        if !thing_is_there && !at.known {
            return Decision::Create;
        }
        let edited = !at.generation_observed;
        let user_wants_something =
            if thing_is_there && looks { edited && !at.spec_is_live } else { edited && !at.spec_is_applied };
        let someone_else_acted = if thing_is_there { looks && !at.applied_is_live } else { true };
        let drifted = !thing_is_there || (looks && !edited && !at.spec_is_live);
        if !thing_is_there {
            if user_wants_something || at.policy == Policy::Enforce {
                return Decision::Recreate;
            }
            return if looks { Decision::ReportDeletion } else { Decision::Leave };
        }
        if !user_wants_something && !drifted {
            if !looks {
                return Decision::Leave;
            }
            return if edited { Decision::Acknowledge } else { Decision::Settle };
        }
        if at.live == Live::InProgress {
            return Decision::Wait;
        }
        if user_wants_something {
            return if someone_else_acted { Decision::ApplyOverDrift } else { Decision::Apply };
        }
        if at.policy == Policy::Enforce { Decision::Correct } else { Decision::ReportDrift }
    }

    #[test]
    fn the_table_agrees_with_the_oracle_on_every_combination() {
        assert_eq!(every_situation().count(), 576);
        for situation in every_situation() {
            assert_eq!(decide(&situation), oracle(situation), "{situation:?}");
        }
    }

    #[test]
    fn suspend_does_not_depend_on_what_the_cloud_says_beyond_being_there() {
        for situation in every_situation().filter(|at| at.policy == Policy::Suspend) {
            for (spec_is_live, applied_is_live) in [(false, false), (false, true), (true, false), (true, true)] {
                let other = Situation { spec_is_live, applied_is_live, ..situation };
                assert_eq!(decide(&situation), decide(&other), "{situation:?}");
            }
        }
    }

    #[test]
    fn drift_alone_is_written_only_under_enforce() {
        for situation in every_situation().filter(|at| !at.deleting && at.known && at.generation_observed) {
            assert!(!decide(&situation).writes() || situation.policy == Policy::Enforce, "{situation:?}");
        }
    }

    #[test]
    fn nothing_is_written_while_the_cloud_is_working() {
        for situation in every_situation().filter(|at| at.live == Live::InProgress) {
            assert!(!decide(&situation).writes(), "{situation:?}");
        }
    }

    #[test]
    fn what_is_being_deleted_is_never_written_to_but_to_delete_it() {
        for situation in every_situation().filter(|at| at.deleting) {
            let decision = decide(&situation);
            assert!(!decision.writes() || decision == Decision::Dismantle, "{situation:?}");
        }
    }

    #[test]
    fn a_policy_that_is_not_known_is_an_error_and_never_a_default() {
        assert_eq!("report".parse(), Ok(Policy::Report));
        for text in ["", "Enforce", "enforced", "off", "report "] {
            assert_eq!(text.parse::<Policy>(), Err(UnknownPolicy(text.to_owned())));
        }
    }
}
