//! `$match`, `$replace`, `$contains` and `$split` with regular expressions that were compiled beforehand, and results
//! that stay within the limits. They follow jsonata-js step by step.

use std::borrow::Cow;
use std::convert::Infallible;

use jsonata_core::evaluator::EvaluatorError;
use jsonata_core::functions::string::substitute_capture_groups;
use jsonata_core::value::JValue;

use crate::host::{Host, failed};
use crate::pattern::{Match, Pattern};

/// What an argument may be.
#[derive(Clone, Copy)]
struct Kind {
    /// The letters of the language's signatures.
    letters: &'static str,
    optional: bool,
}

const TEXT: Kind = Kind { letters: "s", optional: true };
const MATCHER: Kind = Kind { letters: "sf", optional: false };
const REGEX: Kind = Kind { letters: "f", optional: false };
const COUNT: Kind = Kind { letters: "n", optional: true };

fn letter(value: &JValue) -> char {
    match value {
        JValue::Null => 'l',
        JValue::Bool(_) => 'b',
        JValue::Number(_) => 'n',
        JValue::String(_) => 's',
        JValue::Array(_) => 'a',
        JValue::Object(_) => 'o',
        JValue::Undefined => 'm',
        _ => 'f',
    }
}

/// Which argument is which, as a signature says: the first is the context where it was left out.
fn bind<'a, const N: usize>(
    name: &str,
    kinds: [Kind; N],
    context: &'a JValue,
    given: &'a [JValue],
) -> Result<[Option<&'a JValue>; N], EvaluatorError> {
    fn fit(kinds: &[Kind], letters: &[char], taken: &mut Vec<bool>) -> bool {
        let Some(kind) = kinds.first() else { return letters.is_empty() };
        if letters.first().is_some_and(|it| *it == 'm' || kind.letters.contains(*it)) {
            taken.push(true);
            if fit(&kinds[1..], &letters[1..], taken) {
                return true;
            }
            taken.pop();
        }
        if kind.optional {
            taken.push(false);
            if fit(&kinds[1..], letters, taken) {
                return true;
            }
            taken.pop();
        }
        false
    }
    let letters: Vec<char> = given.iter().map(letter).collect();
    let mut taken = Vec::with_capacity(N);
    if !fit(&kinds, &letters, &mut taken) {
        let at = letters.iter().zip(kinds).position(|(it, kind)| *it != 'm' && !kind.letters.contains(*it));
        let at = at.unwrap_or(given.len().min(N)) + 1;
        return Err(failed("T0410", format!("Argument {at} of function {name} does not match function signature")));
    }
    let mut given = given.iter();
    let mut bound = [None; N];
    for (slot, taken) in bound.iter_mut().zip(taken) {
        if taken {
            *slot = given.next();
        }
    }
    if bound[0].is_none() {
        if !matches!(letter(context), 's' | 'm') {
            return Err(failed(
                "T0411",
                format!("Context value is not a compatible type with argument 1 of function {name}"),
            ));
        }
        bound[0] = Some(context);
    }
    Ok(bound)
}

/// How many, if a number says so.
fn limit(count: Option<&JValue>, code: &str, name: &str) -> Result<Option<f64>, EvaluatorError> {
    match count {
        Some(JValue::Number(it)) if *it < 0.0 => {
            Err(failed(code, format!("The last argument of function {name} must evaluate to a positive number")))
        }
        Some(JValue::Number(it)) => Ok(Some(*it)),
        _ => Ok(None),
    }
}

fn is_reached(count: usize, limit: Option<f64>) -> bool {
    #[expect(clippy::cast_precision_loss, reason = "texts are far shorter")]
    limit.is_some_and(|limit| count as f64 >= limit)
}

/// The matches of a text, one after the other. All but the first must not be empty: they would never end.
struct Matches<'p, 't> {
    pattern: &'p Pattern,
    text: &'t str,
    from: Option<usize>,
}

impl<'t> Matches<'_, 't> {
    fn next(&mut self) -> Result<Option<Match<'t>>, EvaluatorError> {
        if self.from.is_some_and(|from| from >= self.text.len()) {
            return Ok(None);
        }
        let found = self.pattern.find(self.text, self.from.unwrap_or(0))?;
        match &found {
            Some(it) if it.start == it.end && self.from.is_some() => {
                return Err(failed("D1004", "Regular expression matches zero length string"));
            }
            Some(it) => self.from = Some(it.end),
            None => self.from = Some(self.text.len()),
        }
        Ok(found)
    }
}

impl Host {
    fn matches<'p, 't>(&'p self, pattern: &JValue, text: &'t str) -> Result<Matches<'p, 't>, EvaluatorError> {
        let JValue::Regex { pattern, flags } = pattern else {
            return Err(failed("T1010", "The matcher function must be written in place, or be in a variable"));
        };
        let pattern = self
            .patterns
            .get(pattern, flags)
            .ok_or_else(|| failed("U1108", format!("the regular expression /{pattern}/ is not known")))?;
        Ok(Matches { pattern, text, from: None })
    }

    pub(crate) fn matching(&self, context: &JValue, given: &[JValue]) -> Result<JValue, EvaluatorError> {
        let [text, pattern, count] = bind("match", [TEXT, REGEX, COUNT], context, given)?;
        let (Some(JValue::String(text)), Some(pattern)) = (text, pattern) else { return Ok(JValue::Undefined) };
        let limit = limit(count, "D3040", "match")?;
        let mut all = Vec::new();
        if is_reached(0, limit) {
            return Ok(JValue::sequence(all));
        }
        let mut matches = self.matches(pattern, text)?;
        let (mut counted, mut units) = (0, 0);
        while let Some(found) = matches.next()? {
            units += text[counted..found.start].encode_utf16().count();
            counted = found.start;
            self.build(64 + found.end - found.start)?;
            let groups = found.groups.iter().map(|group| group.map_or(JValue::Undefined, JValue::from)).collect();
            let members = [
                ("match".to_owned(), JValue::from(&text[found.start..found.end])),
                ("index".to_owned(), JValue::from(units)),
                ("groups".to_owned(), JValue::array(groups)),
            ];
            all.push(JValue::object(members.into_iter().collect()));
            if all.len() > self.limits.sequence {
                let most = self.limits.sequence;
                return Err(failed("D2015", format!("The maximum sequence length of {most} was exceeded.")));
            }
            if is_reached(all.len(), limit) {
                // The next match is looked for, and may be an error, even when it is one too many.
                matches.next()?;
                break;
            }
        }
        Ok(JValue::sequence(all))
    }

    pub(crate) fn replacing(&self, context: &JValue, given: &[JValue]) -> Result<JValue, EvaluatorError> {
        let [text, pattern, replacement, count] = bind("replace", [TEXT, MATCHER, MATCHER, COUNT], context, given)?;
        let Some(JValue::String(text)) = text else { return Ok(JValue::Undefined) };
        if matches!(pattern, Some(JValue::String(it)) if it.is_empty()) {
            return Err(failed("D3010", "Second argument of replace function cannot be an empty string"));
        }
        let limit = limit(count, "D3011", "replace")?;
        if is_reached(0, limit) {
            return Ok(JValue::from(text.clone()));
        }
        let mut out = String::new();
        let mut position = 0;
        let mut done = 0;
        let replacement = match replacement {
            Some(JValue::String(it)) => Some(&**it),
            _ => None,
        };
        match pattern {
            Some(JValue::String(pattern)) => {
                // JavaScript adds `undefined` to a text, and does not ask further.
                let replacement = replacement.unwrap_or("undefined");
                while let Some(found) = text[position..].find(&**pattern).filter(|_| !is_reached(done, limit)) {
                    out.push_str(&text[position..position + found]);
                    out.push_str(replacement);
                    position += found + pattern.len();
                    done += 1;
                    self.fits(out.len())?;
                }
            }
            Some(pattern) => {
                let mut matches = self.matches(pattern, text)?;
                while let Some(found) = matches.next()?.filter(|_| !is_reached(done, limit)) {
                    let Some(replacement) = replacement else {
                        return Err(failed("D3012", "Attempted to replace a matched string with a non-string value"));
                    };
                    out.push_str(&text[position..found.start]);
                    let whole = &text[found.start..found.end];
                    // Each `$` stands for the match or a part of it.
                    let dollars = replacement.bytes().filter(|byte| *byte == b'$').count();
                    self.build(32)?;
                    self.fits(replacement.len().saturating_add(dollars.saturating_mul(whole.len())))?;
                    let groups = &found.groups;
                    let replaced = substitute_capture_groups(&mut out, replacement, whole, groups.len(), |group| {
                        Ok::<_, Infallible>(groups[group].map(Cow::Borrowed))
                    });
                    let Ok(()) = replaced;
                    position = found.end;
                    done += 1;
                    self.fits(out.len())?;
                }
            }
            None => return Ok(JValue::Undefined),
        }
        out.push_str(&text[position..]);
        self.fits(out.len())?;
        self.build(out.len())?;
        Ok(JValue::from(out))
    }

    pub(crate) fn containing(&self, context: &JValue, given: &[JValue]) -> Result<JValue, EvaluatorError> {
        let [text, pattern] = bind("contains", [TEXT, MATCHER], context, given)?;
        let (Some(JValue::String(text)), Some(pattern)) = (text, pattern) else { return Ok(JValue::Undefined) };
        Ok(JValue::Bool(self.matches(pattern, text)?.next()?.is_some()))
    }

    pub(crate) fn splitting(&self, context: &JValue, given: &[JValue]) -> Result<JValue, EvaluatorError> {
        let [text, pattern, count] = bind("split", [TEXT, MATCHER, COUNT], context, given)?;
        let (Some(JValue::String(text)), Some(pattern)) = (text, pattern) else { return Ok(JValue::Undefined) };
        let limit = limit(count, "D3020", "split")?;
        let mut parts = Vec::new();
        let mut start = 0;
        if !is_reached(0, limit) {
            let mut matches = self.matches(pattern, text)?;
            while let Some(found) = matches.next()?.filter(|_| !is_reached(parts.len(), limit)) {
                self.build(64)?;
                parts.push(JValue::from(&text[start..found.start]));
                start = found.end;
            }
            if !is_reached(parts.len(), limit) {
                parts.push(JValue::from(&text[start..]));
            }
        }
        Ok(JValue::array(parts))
    }
}
