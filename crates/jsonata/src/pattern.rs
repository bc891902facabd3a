//! Regular expressions as JavaScript means them, in time that does not depend on the attacker.

use jsonata_core::evaluator::EvaluatorError;

use crate::Error;

/// How large a compiled expression may be: enough for any real one, and compiled in a few milliseconds.
const COMPILED_BYTES: usize = 1 << 20;
/// How often an expression with look-around or back-references may try again before it gives up.
const BACKTRACKS: usize = 100_000;

/// A compiled regular expression literal.
#[derive(Clone, Debug)]
pub(crate) enum Pattern {
    /// Linear in the length of the text, whatever it is.
    Linear(regex::Regex),
    /// For look-around and back-references, which cannot be: it gives up after a number of attempts.
    Backtracking(Box<fancy_regex::Regex>),
}

/// Where a match is, and its groups.
pub(crate) struct Match<'t> {
    pub start: usize,
    pub end: usize,
    pub groups: Vec<Option<&'t str>>,
}

impl Pattern {
    /// Compiles a literal; also gives the text of it that the engine's own functions should use.
    pub(crate) fn compile(source: &str, flags: &str) -> Result<(Self, String), Error> {
        let refused =
            |why: String| Error::coded("U1108", format!("the regular expression /{source}/ cannot be used: {why}"));
        let (text, backtracks) = translate(source).map_err(|why| refused(why.to_owned()))?;
        let (ignore_case, multi_line) = (flags.contains('i'), flags.contains('m'));
        if backtracks {
            let mut builder = fancy_regex::RegexBuilder::new(&text);
            builder.case_insensitive(ignore_case).multi_line(multi_line);
            builder.backtrack_limit(BACKTRACKS).delegate_size_limit(COMPILED_BYTES);
            let compiled = builder.build().map_err(|error| refused(error.to_string()))?;
            return Ok((Self::Backtracking(Box::new(compiled)), text));
        }
        let mut builder = regex::RegexBuilder::new(&text);
        builder.case_insensitive(ignore_case).multi_line(multi_line);
        builder.size_limit(COMPILED_BYTES).dfa_size_limit(COMPILED_BYTES).nest_limit(100);
        let compiled = builder.build().map_err(|error| refused(last_line(&error.to_string())))?;
        Ok((Self::Linear(compiled), text))
    }

    /// The first match at or after this byte.
    pub(crate) fn find<'t>(&self, text: &'t str, from: usize) -> Result<Option<Match<'t>>, EvaluatorError> {
        match self {
            Self::Linear(regex) if regex.captures_len() == 1 => Ok(regex.find_at(text, from).map(|found| Match {
                start: found.start(),
                end: found.end(),
                groups: Vec::new(),
            })),
            Self::Linear(regex) => Ok(regex.captures_at(text, from).and_then(|captures| {
                let whole = captures.get(0)?;
                let groups = captures.iter().skip(1).map(|group| group.map(|it| it.as_str())).collect();
                Some(Match { start: whole.start(), end: whole.end(), groups })
            })),
            Self::Backtracking(regex) => {
                let captures = regex.captures_from_pos(text, from).map_err(|_| {
                    EvaluatorError::EvaluationError("U1108: the regular expression takes too long on this text".into())
                })?;
                Ok(captures.and_then(|captures| {
                    let whole = captures.get(0)?;
                    let groups = captures.iter().skip(1).map(|group| group.map(|it| it.as_str())).collect();
                    Some(Match { start: whole.start(), end: whole.end(), groups })
                }))
            }
        }
    }
}

/// The library draws the expression with a mark; the sentence is what comes last.
fn last_line(text: &str) -> String {
    text.lines().last().unwrap_or(text).trim_start_matches("error: ").to_owned()
}

const DIGIT: &str = "0-9";
const WORD: &str = "0-9A-Za-z_";
const SPACE: &str = r"\t\n\x0B\x0C\r \u{a0}\u{1680}\u{2000}-\u{200a}\u{2028}\u{2029}\u{202f}\u{205f}\u{3000}\u{feff}";

/// The same expression for Rust, and whether it needs backtracking. What differs in silence is spelled out: JavaScript's
/// `\d`, `\w` and `\b` are ASCII, `.` stops at four kinds of line ends, a class has no classes or operators inside, and
/// a brace that repeats nothing is a brace.
fn translate(source: &str) -> Result<(String, bool), &'static str> {
    let chars: Vec<char> = source.chars().collect();
    let backtracks = needs_backtracking(&chars);
    let mut out = String::with_capacity(source.len() + 16);
    let mut at = 0;
    while let Some(&char) = chars.get(at) {
        at += 1;
        match char {
            '\\' => at = escape(&chars, at, &mut out, Place::Outside { backtracks })?,
            '[' => at = class(&chars, at, &mut out)?,
            '.' => out.push_str(r"[^\n\r\u{2028}\u{2029}]"),
            '(' if chars.get(at) == Some(&'?') => match chars.get(at + 1) {
                Some(':' | '=' | '!' | '<') => out.push('('),
                _ => return Err("`(?` begins no group that JavaScript knows"),
            },
            '{' if !repeats(&chars[at..]) => out.push_str(r"\{"),
            '{' => {
                let end = at + chars[at..].iter().position(|&it| it == '}').unwrap_or(0);
                out.push('{');
                out.extend(&chars[at..=end]);
                at = end + 1;
            }
            '}' | ']' => out.extend(['\\', char]),
            _ => out.push(char),
        }
    }
    Ok((out, backtracks))
}

/// Look-around, or a reference back to a group.
fn needs_backtracking(chars: &[char]) -> bool {
    let mut in_class = false;
    let mut at = 0;
    while let Some(&char) = chars.get(at) {
        match char {
            '\\' => {
                if !in_class && matches!(chars.get(at + 1), Some('1'..='9' | 'k')) {
                    return true;
                }
                at += 1;
            }
            '[' => in_class = true,
            ']' => in_class = false,
            '(' if !in_class && chars.get(at + 1) == Some(&'?') => {
                let about = (chars.get(at + 2), chars.get(at + 3));
                if matches!(about, (Some('=' | '!'), _) | (Some('<'), Some('=' | '!'))) {
                    return true;
                }
            }
            _ => {}
        }
        at += 1;
    }
    false
}

/// Whether `{` goes on as `n}`, `n,}` or `n,m}`.
fn repeats(rest: &[char]) -> bool {
    let Some(end) = rest.iter().position(|&it| it == '}') else { return false };
    let text: String = rest[..end].iter().collect();
    let (low, high) = text.split_once(',').unwrap_or((&text, ""));
    let digits = |it: &str| it.chars().all(|char| char.is_ascii_digit());
    !low.is_empty() && digits(low) && digits(high)
}

fn class(chars: &[char], mut at: usize, out: &mut String) -> Result<usize, &'static str> {
    let negated = chars.get(at) == Some(&'^');
    at += usize::from(negated);
    if chars.get(at) == Some(&']') {
        // `[]` matches nothing and `[^]` anything.
        out.push_str(if negated { r"[\x{0}-\x{10ffff}]" } else { r"[^\x{0}-\x{10ffff}]" });
        return Ok(at + 1);
    }
    out.push_str(if negated { "[^" } else { "[" });
    let is_set = |from: usize| {
        chars.get(from) == Some(&'\\') && matches!(chars.get(from + 1), Some('d' | 'D' | 'w' | 'W' | 's' | 'S'))
    };
    let mut after_set = false;
    let mut after_dash = false;
    while let Some(&char) = chars.get(at) {
        let set = is_set(at);
        let dash = char == '-';
        at += 1;
        match char {
            ']' => {
                out.push(']');
                return Ok(at);
            }
            '\\' => at = escape(chars, at, out, Place::InClass)?,
            // A set cannot be the end of a range: the dash beside it is a dash. Two dashes would be an operator.
            '-' if after_set || after_dash || is_set(at) => out.push_str(r"\-"),
            '[' | '&' | '~' => out.extend(['\\', char]),
            _ => out.push(char),
        }
        (after_set, after_dash) = (set, dash);
    }
    Err("a class is not closed")
}

#[derive(Clone, Copy, PartialEq)]
enum Place {
    Outside { backtracks: bool },
    InClass,
}

/// What follows a backslash.
fn escape(chars: &[char], at: usize, out: &mut String, place: Place) -> Result<usize, &'static str> {
    let Some(&char) = chars.get(at) else { return Err("it ends in a backslash") };
    let mut set = |members: &str, negated: bool| {
        let (open, close) = match (place, negated) {
            (Place::InClass, false) => ("", ""),
            (_, false) => ("[", "]"),
            (_, true) => ("[^", "]"),
        };
        out.extend([open, members, close]);
    };
    let hex = |digits: usize| -> Option<u32> {
        let text: String = chars.get(at + 1..at + 1 + digits)?.iter().collect();
        u32::from_str_radix(&text, 16).ok()
    };
    match (char, place) {
        ('d' | 'D', _) => set(DIGIT, char == 'D'),
        ('w' | 'W', _) => set(WORD, char == 'W'),
        ('s' | 'S', _) => set(SPACE, char == 'S'),
        ('b', Place::InClass) => out.push_str(r"\x08"),
        // The engine that backtracks knows only Unicode's boundaries, and can look around instead.
        ('b', Place::Outside { backtracks: true }) => {
            out.push_str(&format!("(?:(?<=[{WORD}])(?![{WORD}])|(?<![{WORD}])(?=[{WORD}]))"));
        }
        ('B', Place::Outside { backtracks: true }) => {
            out.push_str(&format!("(?:(?<=[{WORD}])(?=[{WORD}])|(?<![{WORD}])(?![{WORD}]))"));
        }
        ('b', Place::Outside { .. }) => out.push_str(r"(?-u:\b)"),
        ('B', Place::Outside { .. }) => out.push_str(r"(?-u:\B)"),
        ('0', _) => out.push_str(r"\x00"),
        ('1'..='9' | 'k', Place::Outside { .. }) | ('n' | 'r' | 't' | 'f' | 'v', _) => out.extend(['\\', char]),
        ('x' | 'u', _) => {
            let digits = if char == 'x' { 2 } else { 4 };
            match hex(digits) {
                Some(code) if char::from_u32(code).is_some() => {
                    out.push_str(&format!(r"\x{{{code:x}}}"));
                    return Ok(at + 1 + digits);
                }
                Some(_) => return Err("half of a surrogate pair is no character"),
                None => out.push(char),
            }
        }
        ('c', _) if chars.get(at + 1).is_some_and(char::is_ascii_alphabetic) => {
            out.push_str(&format!(r"\x{:02x}", u32::from(chars[at + 1]) % 32));
            return Ok(at + 2);
        }
        // A letter that means nothing is itself, and so is a sign.
        _ => {
            if char.is_ascii_punctuation() {
                out.push('\\');
            }
            out.push(char);
        }
    }
    Ok(at + 1)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::Pattern;

    fn found(source: &str, flags: &str, text: &str) -> Option<String> {
        let (pattern, _) = Pattern::compile(source, flags).unwrap();
        pattern.find(text, 0).unwrap().map(|found| text[found.start..found.end].to_owned())
    }

    #[test]
    fn expressions_mean_what_they_mean_in_javascript() {
        for (source, flags, text, expected) in [
            (r"\d+", "", "x٣٤12", Some("12")),
            (r"\w+", "", "é_a1é", Some("_a1")),
            (r"\bb", "", "éb", Some("b")),
            (r"\s", "", "a\u{feff}", Some("\u{feff}")),
            ("a.b", "", "a\rb", None),
            ("^b$", "m", "a\nb\nc", Some("b")),
            ("b$", "", "b\n", None),
            ("ABC", "i", "xabc", Some("abc")),
            (r"[a-z0-9-_]+", "", "A-z_9!", Some("-z_9")),
            (r"[\w-.]+", "", "!a-.b!", Some("a-.b")),
            (r"[[]x[&&]", "", "[x&", Some("[x&")),
            ("a{,2}|b{2}|{", "", "xbb", Some("bb")),
            ("a{", "", "a{", Some("a{")),
            (r"arn:\/key\-", "", "arn:/key-", Some("arn:/key-")),
            ("[^]", "", "\n", Some("\n")),
            ("[]|b", "", "ab", Some("b")),
            (r"\u0041\x42\cI\a", "", "AB\ta", Some("AB\ta")),
            (r"(a)b\1", "", "xaba", Some("aba")),
            (r"a(?!b).", "", "abac", Some("ac")),
            (r"(?<=x)\bé", "", "xé", Some("é")),
            (r"(?=.)a\B", "", "aé ab", Some("a")),
            (r"(?<n>a)\k<n>", "", "baa", Some("aa")),
        ] {
            assert_eq!(found(source, flags, text).as_deref(), expected, "/{source}/{flags} on {text:?}");
        }
    }

    #[test]
    fn an_expression_that_would_take_too_much_is_refused_before_it_runs() {
        for source in ["((a{1000}){1000}){1000}", "(a{9000}){9000}", "(?i)a", "(", "[a", r"a\", r"\ud800"] {
            assert!(Pattern::compile(source, "").unwrap_err().is("U1108"), "/{source}/");
        }
    }

    #[test]
    fn a_search_that_tries_again_too_often_gives_up() {
        let (pattern, _) = Pattern::compile(r"(?=(a+))(?:a|aa)+\1$b", "").unwrap();
        assert!(pattern.find(&"a".repeat(60), 0).is_err());
    }
}
