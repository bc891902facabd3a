//! [JSONata](https://jsonata.org), the query and transformation language for JSON, for expressions that nobody vouches
//! for: every evaluation ends soon, in a value, in nothing, or in an error.
//!
//! The engine is the crate `jsonata-core`. This crate bounds it, keeps it deterministic, and gives its regular
//! expressions the meaning that they have in JavaScript.
//!
//! ```
//! use jsonata::{Expression, Input, Limits, Outcome};
//! use serde_json::json;
//!
//! let limits = Limits::default();
//! let expression = Expression::parse("$lowercase(Name) & '.'", &limits)?;
//! let input = Input::new(&json!({"Name": "Example.COM"}), &limits)?;
//! assert_eq!(expression.evaluate(&input, &[], &limits)?, Outcome::Value(json!("example.com.")));
//! # Ok::<(), jsonata::Error>(())
//! ```

mod error;
mod host;
mod limits;
mod pattern;
mod quiet;
mod rewrite;
mod text;
mod value;

use std::fmt;
use std::sync::Arc;

use jsonata_core::ast::AstNode;
use jsonata_core::evaluator::{Context, Evaluator, EvaluatorOptions};

pub use crate::error::Error;
pub use crate::limits::{Functions, Limits};
pub use crate::value::{Input, Outcome};

use crate::host::{Helper, Host, Patterns};

/// An expression, parsed and checked once. It can be shared between threads, and cloned for little.
#[derive(Clone)]
pub struct Expression {
    node: Arc<AstNode>,
    helpers: Arc<[Helper]>,
    patterns: Arc<Patterns>,
}

impl fmt::Debug for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Expression").field(&self.node).finish()
    }
}

impl Expression {
    /// Refuses what is not the language, what is too long, and functions that are not allowed.
    pub fn parse(text: &str, limits: &Limits) -> Result<Self, Error> {
        if text.len() > limits.expression_bytes {
            let most = limits.expression_bytes;
            return Err(Error::coded("U1105", format!("the expression is longer than {most} bytes")));
        }
        quiet::guarded(|| {
            let node = jsonata_core::parser::parse(text).map_err(|error| Error::told(&error.to_string()))?;
            let rewritten = rewrite::rewrite(node, limits)?;
            Ok(Self {
                node: Arc::new(rewritten.node),
                helpers: rewritten.helpers.into(),
                patterns: Arc::new(rewritten.patterns),
            })
        })
    }

    /// What the expression says of a document; the bindings are variables that it finds set.
    pub fn evaluate(&self, input: &Input, bindings: &[(&str, Input)], limits: &Limits) -> Result<Outcome, Error> {
        quiet::guarded(|| {
            let mut context = Context::new();
            for (name, value) in bindings {
                context.bind((*name).to_owned(), value.0.clone());
            }
            let options = EvaluatorOptions {
                timeout_ms: Some(u64::try_from(limits.time.as_millis()).unwrap_or(u64::MAX)),
                max_stack_depth: Some(limits.depth),
                max_sequence_length: Some(limits.sequence),
                ..EvaluatorOptions::default()
            };
            let mut engine = Evaluator::with_options(context, options);
            let told = |error: jsonata_core::evaluator::EvaluatorError| Error::told(error.message());
            if !self.helpers.is_empty() {
                let host = Host::new(Arc::clone(&self.patterns), limits.clone());
                host.register(&self.helpers, &mut engine).map_err(told)?;
            }
            let result = engine.evaluate(&self.node, &input.0).map_err(told)?;
            value::outcome(&result, limits)
        })
    }
}
