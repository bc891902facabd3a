//! Parameters: values that a query is given by name, `$name`, and that cannot become anything but a value.

use std::collections::BTreeMap;
use std::ops::Range;

use datafusion::sql::sqlparser::tokenizer::{Token, Tokenizer, TokenizerError};

use crate::error::Told;
use crate::extent::DIALECT;
use crate::views::Moment;

/// What a parameter stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Text,
    Number,
    /// As people write one: 2026-06-29T10:00:00Z, 2026-06-29, 2h for two hours ago, now.
    Time,
}

/// One that a query declares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    pub name: String,
    pub kind: Kind,
    /// What it is if nobody says.
    pub default: Option<String>,
    pub about: String,
}

/// The query with a value in the place of each `$name`. What is one is told by who reads SQL, so that nothing inside a
/// text, a quoted name or a comment is taken for one.
pub fn fill(
    sql: &str,
    declared: &[Parameter],
    given: &BTreeMap<String, String>,
    moment: &Moment,
) -> Result<String, Told> {
    let mut out = String::with_capacity(sql.len());
    let mut used: Vec<&str> = Vec::new();
    let mut done = 0;
    for place in places(sql)? {
        let name = &sql[place.start + 1..place.end];
        let value = value(name, declared, given, moment)?;
        out.push_str(&sql[done..place.start]);
        // Two texts side by side would be one.
        if out.ends_with(joins) {
            out.push(' ');
        }
        out.push_str(&value);
        if sql[place.end..].starts_with(joins) {
            out.push(' ');
        }
        used.push(name);
        done = place.end;
    }
    out.push_str(&sql[done..]);
    let known = |name: &String| used.contains(&name.as_str()) || declared.iter().any(|one| one.name == *name);
    match given.keys().find(|name| !known(name)) {
        Some(name) => Err(Told {
            message: format!("the query has no parameter `{name}`"),
            hints: vec![match names(declared, &used) {
                names if names.is_empty() => "it has none; write $name where a value is to stand".to_owned(),
                names => format!("it has {}", names.join(", ")),
            }],
        }),
        None => Ok(out),
    }
}

/// Whether a value must not touch this character.
fn joins(char: char) -> bool {
    char.is_alphanumeric() || matches!(char, '\'' | '"' | '`' | '_' | '$')
}

/// Where in a text each `$name` stands.
fn places(sql: &str) -> Result<Vec<Range<usize>>, Told> {
    let wrong = |error: TokenizerError| Told { message: format!("this is not SQL: {error}"), hints: Vec::new() };
    let tokens = Tokenizer::new(DIALECT, sql).tokenize_with_location().map_err(wrong)?;
    let mut found = tokens.iter().filter(|one| matches!(&one.token, Token::Placeholder(name) if is_parameter(name)));
    let mut next = found.next();
    let mut places = Vec::new();
    // A place is told by line and column, both from 1, and columns are characters.
    let (mut line, mut column, mut start) = (1, 1, None);
    for (at, char) in sql.char_indices().chain(std::iter::once((sql.len(), '\n'))) {
        if let (Some(from), Some(token)) = (start, next)
            && (line, column) >= (token.span.end.line, token.span.end.column)
        {
            places.push(from..at);
            (start, next) = (None, found.next());
        }
        if let Some(token) = next
            && start.is_none()
            && (line, column) >= (token.span.start.line, token.span.start.column)
        {
            start = Some(at);
        }
        (line, column) = if char == '\n' { (line + 1, 1) } else { (line, column + 1) };
    }
    match places.iter().all(|place| is_parameter(&sql[place.clone()])) {
        true => Ok(places),
        false => Err(Told { message: "the parameters of the query cannot be found".into(), hints: Vec::new() }),
    }
}

fn is_parameter(text: &str) -> bool {
    let name = text.strip_prefix('$').unwrap_or_default();
    !name.is_empty() && name.chars().all(|char| char.is_alphanumeric() || char == '_')
}

fn names(declared: &[Parameter], used: &[&str]) -> Vec<String> {
    let mut names: Vec<String> = declared.iter().map(|one| one.name.clone()).collect();
    names.extend(used.iter().map(|name| (*name).to_owned()));
    names.sort();
    names.dedup();
    names
}

fn value(
    name: &str,
    declared: &[Parameter],
    given: &BTreeMap<String, String>,
    moment: &Moment,
) -> Result<String, Told> {
    let parameter = declared.iter().find(|one| one.name == name);
    let text = given.get(name).or_else(|| parameter?.default.as_ref()).ok_or_else(|| Told {
        message: format!("the query needs a value for `{name}`"),
        hints: vec![format!("give it with --param {name}=VALUE")],
    })?;
    match parameter.map_or(Kind::Text, |one| one.kind) {
        Kind::Text => Ok(format!("'{}'", text.replace('\'', "''"))),
        Kind::Time => Ok(format!("CAST('{}' AS TIMESTAMPTZ)", moment(text)?)),
        Kind::Number => match text.parse::<f64>() {
            Ok(number) if number.is_finite() && text.bytes().all(|byte| b"0123456789.-".contains(&byte)) => {
                Ok(format!("({text})"))
            }
            _ => Err(Told { message: format!("`{name}` is a number, and `{text}` is none"), hints: Vec::new() }),
        },
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn filled(sql: &str, given: &[(&str, &str)]) -> Result<String, String> {
        let number =
            Parameter { name: "n".into(), kind: Kind::Number, default: Some("7".into()), about: String::new() };
        let given = given.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let time = Parameter { name: "t".into(), kind: Kind::Time, default: None, about: String::new() };
        let moment: Moment = std::sync::Arc::new(|text| {
            text.parse().map_err(|_| Told { message: format!("`{text}` is not a time"), hints: Vec::new() })
        });
        fill(sql, &[number, time], &given, &moment).map_err(|told| told.message)
    }

    #[test]
    fn a_value_stays_a_value_and_only_names_are_replaced() {
        for (sql, given, expected) in [
            ("SELECT $a", vec![("a", "x' OR '1'='1")], "SELECT 'x'' OR ''1''=''1'"),
            (
                "SELECT $n, '$a', \"$a\", /* $a */ 1 -- $a\n, $a",
                vec![("a", "ü")],
                "SELECT (7), '$a', \"$a\", /* $a */ 1 -- $a\n, 'ü'",
            ),
            ("SELECT 'it''s $a' || $a", vec![("a", "b")], "SELECT 'it''s $a' || 'b'"),
            ("SELECT $n", vec![("n", "-2.5")], "SELECT (-2.5)"),
            ("SELECT $t", vec![("t", "2026-06-29T10:00:00Z")], "SELECT CAST('2026-06-29T10:00:00Z' AS TIMESTAMPTZ)"),
            ("SELECT '$' || $", vec![], "SELECT '$' || $"),
            // A quote that does not end a text, a comment in a comment, a text between dollars.
            (r"SELECT E'\'' || ' $a ' || $a", vec![("a", "b")], r"SELECT E'\'' || ' $a ' || 'b'"),
            ("/* /* */ $a */ SELECT $a", vec![("a", "b")], "/* /* */ $a */ SELECT 'b'"),
            ("SELECT $$ $a $$ || $t$ $a $t$ || $a", vec![("a", "b")], "SELECT $$ $a $$ || $t$ $a $t$ || 'b'"),
            ("SELECT 'x'$a'y'", vec![("a", "b")], "SELECT 'x' 'b' 'y'"),
            ("SELECT 'ü',\n  \"ö\", $a\n\n,$a", vec![("a", "ä")], "SELECT 'ü',\n  \"ö\", 'ä'\n\n,'ä'"),
            ("SELECT $a", vec![("a", r"\' OR 1")], r"SELECT '\'' OR 1'"),
            ("SELECT ($a)", vec![("a", "b")], "SELECT ('b')"),
        ] {
            assert_eq!(filled(sql, &given).unwrap(), expected);
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        for (sql, given, message) in [
            ("SELECT $a", vec![], "the query needs a value for `a`"),
            ("SELECT 1", vec![("a", "b")], "the query has no parameter `a`"),
            ("SELECT $n", vec![("n", "1); DROP")], "`n` is a number, and `1); DROP` is none"),
            ("SELECT $t", vec![("t", "soon")], "`soon` is not a time"),
            ("SELECT $n", vec![("n", "")], "`n` is a number, and `` is none"),
            ("SELECT 'open $a", vec![], "this is not SQL: Unterminated string literal at Line: 1, Column: 8"),
        ] {
            assert_eq!(filled(sql, &given), Err(message.to_owned()));
        }
    }
}
