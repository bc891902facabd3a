//! Parameters: values that a query is given by name, `$name`, and that cannot become anything but a value.

use std::collections::BTreeMap;

use crate::error::Told;
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

/// The query with a value in the place of each `$name` that is not inside a text, a quoted name or a comment.
pub fn fill(
    sql: &str,
    declared: &[Parameter],
    given: &BTreeMap<String, String>,
    moment: &Moment,
) -> Result<String, Told> {
    let mut out = String::with_capacity(sql.len());
    let mut used: Vec<&str> = Vec::new();
    let mut rest = sql;
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '\'' | '"' => quoted(rest, first),
            '-' if rest.starts_with("--") => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => rest.find("*/").map_or(rest.len(), |end| end + 2),
            '$' => {
                let name = &rest[1..];
                let end = name.find(|char: char| !(char.is_ascii_alphanumeric() || char == '_')).unwrap_or(name.len());
                if end == 0 {
                    1
                } else {
                    let name = &name[..end];
                    out.push_str(&value(name, declared, given, moment)?);
                    used.push(name);
                    rest = &rest[1 + end..];
                    continue;
                }
            }
            other => other.len_utf8(),
        };
        out.push_str(&rest[..length]);
        rest = &rest[length..];
    }
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

fn names(declared: &[Parameter], used: &[&str]) -> Vec<String> {
    let mut names: Vec<String> = declared.iter().map(|one| one.name.clone()).collect();
    names.extend(used.iter().map(|name| (*name).to_owned()));
    names.sort();
    names.dedup();
    names
}

/// How long a quoted text is, its quotes included; a doubled quote is part of it.
fn quoted(text: &str, quote: char) -> usize {
    let mut chars = text.char_indices().skip(1).peekable();
    while let Some((at, char)) = chars.next() {
        if char == quote && chars.next_if(|(_, next)| *next == quote).is_none() {
            return at + 1;
        }
    }
    text.len()
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
            ("SELECT 'open", vec![], "SELECT 'open"),
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
        ] {
            assert_eq!(filled(sql, &given), Err(message.to_owned()));
        }
    }
}
