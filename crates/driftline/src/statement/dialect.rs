//! How three engines want the same things written.

use clap::ValueEnum;
use driftline_core::rule::Glob;
use jiff::Timestamp;

/// An engine whose SQL is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Dialect {
    /// Spark 4, with Delta Lake.
    Spark,
    Duckdb,
    /// Also what the Python package `deltalake` brings.
    Datafusion,
}

/// What stands between parts of a text while it is taken apart. JSON never has them as they are.
pub(crate) const BETWEEN_CHANGES: &str = "chr(31)";
pub(crate) const BETWEEN_PARTS: &str = "chr(30)";

impl Dialect {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Dialect::Spark => "spark",
            Dialect::Duckdb => "duckdb",
            Dialect::Datafusion => "datafusion",
        }
    }

    pub(crate) fn engine(self) -> &'static str {
        match self {
            Dialect::Spark => "Spark",
            Dialect::Duckdb => "DuckDB",
            Dialect::Datafusion => "DataFusion",
        }
    }

    /// A text. Spark reads backslashes in it, and puts the values of variables into `${…}`; the others do not.
    pub(crate) fn text(self, text: &str) -> String {
        match self {
            Dialect::Spark => {
                let escaped = text.replace('\\', r"\\").replace('\'', r"\'");
                format!("'{}'", escaped.replace("${", r"$\{"))
            }
            Dialect::Duckdb | Dialect::Datafusion => format!("'{}'", text.replace('\'', "''")),
        }
    }

    pub(crate) fn text_type(self) -> &'static str {
        match self {
            Dialect::Spark => "STRING",
            Dialect::Duckdb | Dialect::Datafusion => "VARCHAR",
        }
    }

    pub(crate) fn moment_type(self) -> &'static str {
        match self {
            Dialect::Duckdb => "TIMESTAMPTZ",
            Dialect::Spark | Dialect::Datafusion => "TIMESTAMP",
        }
    }

    pub(crate) fn moment(self, moment: Timestamp) -> String {
        match self {
            Dialect::Spark => format!("CAST('{moment}' AS TIMESTAMP)"),
            Dialect::Duckdb => format!("CAST('{moment}' AS TIMESTAMPTZ)"),
            Dialect::Datafusion => format!("arrow_cast('{moment}', 'Timestamp(Microsecond, Some(\"UTC\"))')"),
        }
    }

    /// A content id as small hex digits.
    pub(crate) fn hex(self, bytes: &str) -> String {
        match self {
            Dialect::Spark | Dialect::Duckdb => format!("lower(hex({bytes}))"),
            Dialect::Datafusion => format!("encode({bytes}, 'hex')"),
        }
    }

    /// Whether a regular expression is found in a text.
    pub(crate) fn matches(self, text: &str, expression: &str) -> String {
        let function = match self {
            Dialect::Spark | Dialect::Datafusion => "regexp_like",
            Dialect::Duckdb => "regexp_matches",
        };
        format!("{function}({text}, {})", self.text(expression))
    }

    /// Every match replaced by the results of expressions; `{1}` and `{2}` stand for the groups.
    pub(crate) fn replace(self, text: &str, expression: &str, parts: &[&str]) -> String {
        let part = |part: &&str| match (*part, self) {
            ("{1}", Dialect::Spark) => "'$1'".to_owned(),
            ("{2}", Dialect::Spark) => "'$2'".to_owned(),
            ("{1}", _) => "'\\1'".to_owned(),
            ("{2}", _) => "'\\2'".to_owned(),
            (other, _) => other.to_owned(),
        };
        let with = parts.iter().map(part).collect::<Vec<_>>().join(" || ");
        match self {
            Dialect::Spark => format!("regexp_replace({text}, {}, {with})", self.text(expression)),
            _ => format!("regexp_replace({text}, {}, {with}, 'g')", self.text(expression)),
        }
    }

    /// Every match taken out, of an expression whose middle is a column.
    pub(crate) fn replace_by(self, text: &str, (before, after): (String, String), column: &str) -> String {
        match self {
            Dialect::Spark => format!("regexp_replace({text}, {before} || {column} || {after}, '')"),
            _ => format!("regexp_replace({text}, {before} || {column} || {after}, '', 'g')"),
        }
    }

    pub(crate) fn split(self, text: &str, at: &str) -> String {
        match self {
            Dialect::Spark => format!("split({text}, {at})"),
            Dialect::Duckdb => format!("string_split({text}, {at})"),
            Dialect::Datafusion => format!("string_to_array({text}, {at})"),
        }
    }

    pub(crate) fn explode(self, list: &str) -> String {
        match self {
            Dialect::Spark => format!("explode({list})"),
            _ => format!("unnest({list})"),
        }
    }

    /// A list of texts, sorted and made one text.
    pub(crate) fn sorted(self, list: &str) -> String {
        match self {
            Dialect::Spark => format!("array_join(array_sort({list}), chr(31))"),
            Dialect::Duckdb => format!("array_to_string(list_sort({list}), chr(31))"),
            Dialect::Datafusion => format!("array_to_string(array_sort({list}), chr(31))"),
        }
    }

    /// The regular expression of a text in JSON, quotes included. Java's engine runs out of stack on a long text
    /// unless it is told not to come back.
    pub(crate) fn json_text(self) -> &'static str {
        match self {
            Dialect::Spark => r#""[^"\\]*+(?:\\.[^"\\]*+)*+""#,
            _ => r#""[^"\\]*(?:\\.[^"\\]*)*""#,
        }
    }

    /// The same without the quotes, as a group.
    pub(crate) fn json_text_inside(self) -> String {
        let whole = self.json_text();
        format!("\"({})\"", &whole[1..whole.len() - 1])
    }

    /// The regular expression of an array or object in JSON that is nested at most so deep.
    pub(crate) fn json_nested(self, depth: usize) -> String {
        let (more, loops) = match self {
            Dialect::Spark => ("++", "*+"),
            _ => ("+", "*"),
        };
        let plain = format!("[^\"{{}}\\[\\]]{more}|{}", self.json_text());
        (0..depth).fold(String::new(), |inner, _| {
            let or = if inner.is_empty() { String::new() } else { format!("|{inner}") };
            format!("[{{\\[](?:{plain}{or}){loops}[}}\\]]")
        })
    }
}

/// A text as part of a regular expression.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for char in text.chars() {
        if "\\.+*?()|[]{}^$".contains(char) {
            out.push('\\');
        }
        out.push(char);
    }
    out
}

/// A condition that a text matches a glob; `None` where every text does.
pub(crate) fn glob(dialect: Dialect, column: &str, glob: &Glob) -> Option<String> {
    if glob.matches_everything() && !glob.as_str().is_empty() {
        return None;
    }
    if !glob.as_str().contains('*') {
        return Some(format!("{column} = {}", dialect.text(glob.as_str())));
    }
    let parts: Vec<String> = glob.as_str().split('*').map(escape).collect();
    Some(dialect.matches(column, &format!("\\A{}\\z", parts.join("(?s:.*)"))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_quoted_as_each_engine_reads_them() {
        for (text, spark, others) in [
            ("plain", r"'plain'", r"'plain'"),
            ("it's", r"'it\'s'", r"'it''s'"),
            (r"a\b", r"'a\\b'", r"'a\b'"),
            (r"\'", r"'\\\''", r"'\'''"),
            ("${env:HOME}", r"'$\{env:HOME}'", "'${env:HOME}'"),
        ] {
            assert_eq!(Dialect::Spark.text(text), spark);
            assert_eq!(Dialect::Duckdb.text(text), others);
            assert_eq!(Dialect::Datafusion.text(text), others);
        }
    }

    #[test]
    fn a_glob_is_a_condition_unless_it_takes_everything() {
        let condition = |text: &str| glob(Dialect::Duckdb, "type", &Glob::new(text));
        assert_eq!(condition("*"), None);
        assert_eq!(condition("**"), None);
        assert_eq!(condition("").as_deref(), Some("type = ''"));
        assert_eq!(condition("It's").as_deref(), Some("type = 'It''s'"));
        assert_eq!(condition("A.B*").as_deref(), Some(r"regexp_matches(type, '\AA\.B(?s:.*)\z')"));
    }
}
