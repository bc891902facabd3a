//! The three-sided verdict: what was declared, what was last applied, and what is live.
//!
//! | generation = observed | spec = live | last applied = live | standing |
//! |---|---|---|---|
//! | yes | yes | · | steady |
//! | no | no | yes | spec change |
//! | no | yes | · | no-op spec change |
//! | yes | no | · | drift |
//! | no | no | no | spec change over drift |
//!
//! The last row is what stored content buys over two generation numbers: both things happened, and both are said.

use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    Steady,
    SpecChange,
    NoOpSpecChange,
    Drift,
    SpecChangeOverDrift,
}

/// What the three sides say, as answers to three questions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sides {
    /// The declaration is the one that was last acted on.
    pub generation_observed: bool,
    /// Nothing that counts differs between declaration and live.
    pub spec_is_live: bool,
    /// Nothing that counts differs between what was last applied and live.
    pub applied_is_live: bool,
}

pub fn standing(sides: Sides) -> Standing {
    match (sides.generation_observed, sides.spec_is_live, sides.applied_is_live) {
        (true, true, _) => Standing::Steady,
        (true, false, _) => Standing::Drift,
        (false, true, _) => Standing::NoOpSpecChange,
        (false, false, true) => Standing::SpecChange,
        (false, false, false) => Standing::SpecChangeOverDrift,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Who acted, asked separately: the user if the declaration is new, someone else if live left what was applied.
    fn oracle(sides: Sides) -> Standing {
        let user_acted = !sides.generation_observed;
        let nothing_to_do = sides.spec_is_live;
        let someone_else_acted = !sides.applied_is_live;
        if nothing_to_do {
            return if user_acted { Standing::NoOpSpecChange } else { Standing::Steady };
        }
        if !user_acted {
            // The declaration stands and live differs from it, whatever was applied last.
            return Standing::Drift;
        }
        if someone_else_acted { Standing::SpecChangeOverDrift } else { Standing::SpecChange }
    }

    #[test]
    fn the_table_agrees_with_the_oracle_on_every_combination() {
        for bits in 0..8 {
            let sides = Sides {
                generation_observed: bits & 1 != 0,
                spec_is_live: bits & 2 != 0,
                applied_is_live: bits & 4 != 0,
            };
            assert_eq!(standing(sides), oracle(sides), "{sides:?}");
        }
    }
}
