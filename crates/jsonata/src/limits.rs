//! How much one expression may ask for.

use std::time::Duration;

use crate::Error;

/// Bounds on an expression and on its evaluation. All of them are always in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How long an evaluation may take. It is looked at between steps, so a step under way is finished first.
    pub time: Duration,
    /// How deep evaluation may nest.
    pub depth: usize,
    /// How many items a result of a path, a range or a mapping may have.
    pub sequence: usize,
    /// How long the text of an expression may be.
    pub expression_bytes: usize,
    /// How large a document or a binding may be, as JSON.
    pub input_bytes: usize,
    /// How large a result may be, as JSON.
    pub output_bytes: usize,
    /// How long a text that an expression puts together may be.
    pub string_bytes: usize,
    /// How large a value may be that an expression puts into another one. A value that is shared counts each time.
    pub value_bytes: usize,
    /// How many bytes of texts and lists one evaluation may put together in all.
    pub built_bytes: usize,
    /// Whether functions that do not give the same answer each time may be used, and `$eval`.
    pub functions: Functions,
}

/// Which functions an expression may name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Functions {
    /// The same input gives the same output: no `$now`, `$millis`, `$random`, `$shuffle`; and no `$eval`, because what
    /// it runs cannot be looked at beforehand.
    Deterministic,
    /// Every function of the language. What `$eval` runs may not build or search texts and lists: it cannot be given
    /// the checks that everything else has.
    All,
}

impl Functions {
    const CHANGING: [&'static str; 5] = ["eval", "millis", "now", "random", "shuffle"];

    pub(crate) fn allow(self, name: &str) -> Result<(), Error> {
        if self == Self::All || !Self::CHANGING.contains(&name) {
            return Ok(());
        }
        Err(Error::coded("U1104", format!("${name} is not allowed here: the same input must give the same output")))
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            time: Duration::from_millis(100),
            depth: 200,
            sequence: 10_000,
            expression_bytes: 64 << 10,
            input_bytes: 1 << 20,
            output_bytes: 1 << 20,
            string_bytes: 1 << 20,
            value_bytes: 16 << 20,
            built_bytes: 32 << 20,
            functions: Functions::Deterministic,
        }
    }
}
