//! The functions that the rewritten expression calls: checks that hand on what they were given, and replacements for
//! what the engine does without a bound. Their names hold a space, so no expression can spell them.

use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::rc::Rc;
use std::sync::Arc;

use jsonata_core::evaluator::{Evaluator, EvaluatorError};
use jsonata_core::value::{JArray, JValue, with_stack};

use crate::pattern::Pattern;
use crate::rewrite::is_tame;
use crate::value::{text_length, weigh};
use crate::{Error, Limits};

/// One of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Helper {
    /// A value that goes into another one.
    Part,
    /// What becomes a part of a text.
    Text,
    /// What is cut into many.
    Cut,
    /// How long a text is to be.
    Width,
    /// A number that may become a Roman numeral.
    Numeral,
    /// The list of a `$join` with its separator; hands on the list.
    Joined,
    /// What `$eval` is to run.
    Code,
    /// A variable that must not be a function of the language, because it was not looked at how that is called.
    Own,
    /// A value with which no function of the language can do much.
    Small,
    /// A list that has items, or nothing: `$reduce` of an empty list is nothing, which the engine takes for `null`.
    Items,
    /// Whether no argument is a function of the expression's own.
    Plain,
    Distinct,
    Match,
    Replace,
    Contains,
    Split,
}

impl Helper {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Part => "a part",
            Self::Text => "a text",
            Self::Cut => "a cut",
            Self::Width => "a width",
            Self::Numeral => "a numeral",
            Self::Joined => "a list",
            Self::Code => "the code",
            Self::Own => "its own",
            Self::Small => "a small one",
            Self::Items => "some items",
            Self::Plain => "is plain",
            Self::Distinct => "the distinct",
            Self::Match => "to match",
            Self::Replace => "to replace",
            Self::Contains => "to contain",
            Self::Split => "to split",
        }
    }
}

/// The regular expressions of an expression, compiled when it was parsed. There are few, so they are looked through.
#[derive(Clone, Debug, Default)]
pub(crate) struct Patterns(Vec<(String, String, Pattern)>);

impl Patterns {
    pub(crate) fn get(&self, text: &str, flags: &str) -> Option<&Pattern> {
        self.0.iter().find(|(known, with, _)| known == text && with == flags).map(|(.., pattern)| pattern)
    }

    /// Compiles a literal and gives the text under which it is known.
    pub(crate) fn add(&mut self, source: &str, flags: &str) -> Result<String, Error> {
        let (pattern, text) = Pattern::compile(source, flags)?;
        if self.get(&text, flags).is_none() {
            self.0.push((text.clone(), flags.to_owned(), pattern));
        }
        Ok(text)
    }
}

pub(crate) fn failed(code: &str, message: impl std::fmt::Display) -> EvaluatorError {
    EvaluatorError::EvaluationError(format!("{code}: {message}"))
}

/// What the helpers know of one evaluation.
pub(crate) struct Host {
    pub patterns: Arc<Patterns>,
    pub limits: Limits,
    built: Cell<usize>,
    /// Values that were weighed and found light enough, so that a loop does not weigh a list again at every turn. They
    /// are kept, for another value could come to lie where a dropped one was.
    weighed: RefCell<Vec<JValue>>,
}

const REMEMBERED: usize = 8;
/// The largest Roman numeral: a million letters.
const NUMERAL: f64 = 1e9;

impl Host {
    pub(crate) fn new(patterns: Arc<Patterns>, limits: Limits) -> Self {
        Self { patterns, limits, built: Cell::new(0), weighed: RefCell::default() }
    }

    /// Makes the helpers that an expression needs known to the engine.
    pub(crate) fn register(self, helpers: &[Helper], engine: &mut Evaluator) -> Result<(), EvaluatorError> {
        let host = Rc::new(self);
        for helper in helpers.iter().copied() {
            let host = Rc::clone(&host);
            engine.register_fn(helper.name(), move |given: &[JValue]| host.call(helper, given))?;
        }
        Ok(())
    }

    fn call(&self, helper: Helper, given: &[JValue]) -> Result<JValue, EvaluatorError> {
        let first = given.first().unwrap_or(&JValue::Undefined);
        let rest = given.get(1..).unwrap_or_default();
        match helper {
            Helper::Part => self.part(first)?,
            Helper::Text => self.text(first)?,
            Helper::Cut => self.cut(first)?,
            Helper::Width => self.width(first)?,
            Helper::Numeral if matches!(first, JValue::Number(it) if it.abs() > NUMERAL) => {
                return Err(failed("U1101", format!("a number above {NUMERAL} cannot be spelled here")));
            }
            Helper::Joined => self.joined(first, rest.first())?,
            Helper::Code => self.code(first)?,
            Helper::Own if matches!(first, JValue::Builtin { .. }) => {
                return Err(failed(
                    "U1104",
                    "a function of the language cannot be passed on where its name is a variable",
                ));
            }
            Helper::Small => Self::small(first)?,
            Helper::Items if matches!(first, JValue::Array(items) if items.is_empty()) => return Ok(JValue::Undefined),
            Helper::Items | Helper::Numeral | Helper::Own => {}
            Helper::Plain => {
                let own = |it: &JValue| matches!(it, JValue::Lambda(_) | JValue::Builtin { .. });
                return Ok(JValue::Bool(!given.iter().any(own)));
            }
            Helper::Distinct => return Ok(distinct(first)),
            Helper::Match => return self.matching(first, rest),
            Helper::Replace => return self.replacing(first, rest),
            Helper::Contains => return self.containing(first, rest),
            Helper::Split => return self.splitting(first, rest),
        }
        Ok(first.clone())
    }

    /// A text of this length may be.
    pub(crate) fn fits(&self, length: usize) -> Result<(), EvaluatorError> {
        let most = self.limits.string_bytes;
        if length <= most { Ok(()) } else { Err(failed("U1101", format!("a text would be longer than {most} bytes"))) }
    }

    /// So many bytes are being put together.
    pub(crate) fn build(&self, bytes: usize) -> Result<(), EvaluatorError> {
        let built = self.built.get().saturating_add(bytes);
        self.built.set(built);
        let most = self.limits.built_bytes;
        if built <= most {
            return Ok(());
        }
        Err(failed("U1103", format!("the expression puts together more than {most} bytes")))
    }

    fn part(&self, value: &JValue) -> Result<(), EvaluatorError> {
        match value {
            JValue::Array(items) => self.build(items.len() * size_of::<JValue>())?,
            JValue::Object(_) => {}
            _ => return Ok(()),
        }
        let mut weighed = self.weighed.borrow_mut();
        if weighed.iter().any(|known| is_same(known, value)) {
            return Ok(());
        }
        let mut left = self.limits.value_bytes;
        if !weigh(value, &mut left) {
            let most = self.limits.value_bytes;
            return Err(failed("U1102", format!("a value would be larger than {most} bytes")));
        }
        if weighed.len() == REMEMBERED {
            weighed.remove(0);
        }
        weighed.push(value.clone());
        Ok(())
    }

    fn text(&self, value: &JValue) -> Result<(), EvaluatorError> {
        let most = self.limits.string_bytes;
        let Some(length) = text_length(value, most) else { return self.fits(most + 1) };
        self.build(length)
    }

    fn cut(&self, value: &JValue) -> Result<(), EvaluatorError> {
        let JValue::String(text) = value else { return Ok(()) };
        self.build(text.len().saturating_mul(32))
    }

    /// The engine says better than we could what is wrong with a text that is not an expression.
    fn code(&self, value: &JValue) -> Result<(), EvaluatorError> {
        let JValue::String(text) = value else { return Ok(()) };
        if text.len() > self.limits.expression_bytes {
            return Err(failed("U1105", "what $eval is to run is too long"));
        }
        let tame = jsonata_core::parser::parse(text).map_or(true, |node| is_tame(node, &self.limits));
        if tame {
            return Ok(());
        }
        Err(failed("U1104", "what $eval runs may not build or search texts and lists; write it in place"))
    }

    fn small(value: &JValue) -> Result<(), EvaluatorError> {
        const MOST: usize = 1_000;
        let small = match value {
            JValue::Number(it) => it.abs() <= NUMERAL / 1e3,
            it => weigh(it, &mut (16 * MOST)),
        };
        if small {
            Ok(())
        } else {
            Err(failed("U1102", "a value is too large for a function with the name of a variable"))
        }
    }

    fn width(&self, value: &JValue) -> Result<(), EvaluatorError> {
        let JValue::Number(width) = value else { return Ok(()) };
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it stops at the ends")]
        let width = width.abs() as usize;
        // A character may take four bytes.
        let length = width.saturating_mul(4);
        self.fits(length)?;
        self.build(length)
    }

    fn joined(&self, list: &JValue, separator: Option<&JValue>) -> Result<(), EvaluatorError> {
        let JValue::Array(items) = list else { return Ok(()) };
        let separator = separator.and_then(JValue::as_str).map_or(0, str::len);
        let texts = items.iter().map(|item| item.as_str().map_or(0, str::len));
        let length = texts.fold(separator.saturating_mul(items.len()), usize::saturating_add);
        self.fits(length)?;
        self.build(length)
    }
}

fn is_same(one: &JValue, other: &JValue) -> bool {
    match (one, other) {
        (JValue::Array(one), JValue::Array(other)) => JArray::ptr_eq(one, other),
        (JValue::Object(one), JValue::Object(other)) => Rc::ptr_eq(one, other),
        _ => false,
    }
}

/// `$distinct`, which the engine does by comparing everything with everything.
fn distinct(value: &JValue) -> JValue {
    let JValue::Array(items) = value else { return value.clone() };
    if items.len() <= 1 {
        return value.clone();
    }
    let mut seen = HashSet::new();
    let kept = items.iter().filter(|item| key(item).is_none_or(|key| seen.insert(key))).cloned().collect();
    JValue::Array(items.with_items(kept))
}

/// What two values share exactly when they are equal. A function has none: it equals nothing else.
fn key(value: &JValue) -> Option<Key> {
    match value {
        // `0` and `-0` are equal.
        JValue::Number(it) => Some(Key::Number((it + 0.0).to_bits())),
        JValue::String(it) => Some(Key::Text(Rc::clone(it))),
        _ => {
            let mut out = String::new();
            write_key(value, &mut out)?;
            Some(Key::Other(out))
        }
    }
}

#[derive(PartialEq, Eq, Hash)]
enum Key {
    Number(u64),
    Text(Rc<str>),
    Other(String),
}

fn write_key(value: &JValue, out: &mut String) -> Option<()> {
    match value {
        JValue::Null => out.push('l'),
        JValue::Undefined => out.push('m'),
        JValue::Bool(it) => out.push(if *it { 't' } else { 'f' }),
        JValue::Number(it) => out.push_str(&format!("n{:x}", (it + 0.0).to_bits())),
        JValue::String(it) => out.push_str(&format!("s{}:{it}", it.len())),
        JValue::Array(items) => {
            out.push_str(&format!("a{}:", items.len()));
            with_stack(|| items.iter().try_for_each(|item| write_key(item, out)))?;
        }
        JValue::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_unstable_by_key(|(name, _)| *name);
            out.push_str(&format!("o{}:", members.len()));
            with_stack(|| {
                members.iter().try_for_each(|(name, value)| {
                    out.push_str(&format!("{}:{name}", name.len()));
                    write_key(value, out)
                })
            })?;
        }
        _ => return None,
    }
    Some(())
}
