//! Names people give: of sources, of the scopes one source is observed in, and of baselines.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Words that mean something else wherever a name can stand.
const RESERVED: &[(&str, &str)] = &[
    ("latest", "it means the newest version of a source"),
    ("all", "it means every configured source"),
    ("none", "it means no source or baseline at all"),
    ("live", "it means the current side of a comparison"),
    ("baseline", "it means the expected side of a comparison"),
];

const MAX_LENGTH: usize = 100;

#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{name}` cannot be used as a name of a {what}: {reason}")]
pub struct NameError {
    pub what: &'static str,
    pub name: String,
    pub reason: String,
}

/// Lower-case words of letters, digits, `-`, `_` and `.`, joined by `/` where that is allowed.
fn check(what: &'static str, name: &str, slashes: bool) -> Result<(), NameError> {
    let refuse = |reason: String| Err(NameError { what, name: name.to_owned(), reason });
    if name.is_empty() {
        return refuse("it is empty".into());
    }
    if name.len() > MAX_LENGTH {
        return refuse(format!("it is longer than {MAX_LENGTH} bytes"));
    }
    if !slashes && name.contains('/') {
        return refuse("it may not contain `/`".into());
    }
    for word in name.split('/') {
        if word.is_empty() {
            return refuse("it has an empty part around `/`".into());
        }
        if let Some(char) = word.chars().find(|&c| !(c.is_ascii_lowercase() || c.is_ascii_digit() || "-_.".contains(c)))
        {
            return refuse(format!("`{}` is not allowed; use a-z, 0-9, `-`, `_`, `.`", char.escape_default()));
        }
        if !word.starts_with(|c: char| c.is_ascii_alphanumeric()) {
            return refuse(format!("`{word}` must begin with a letter or a digit"));
        }
        if let Some((_, why)) = RESERVED.iter().find(|(reserved, _)| *reserved == word) {
            return refuse(format!("`{word}` is reserved: {why}"));
        }
    }
    Ok(())
}

macro_rules! name {
    ($(#[$doc:meta])* $type:ident, $what:literal, $slashes:literal) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $type(String);

        impl $type {
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $type {
            type Err = NameError;

            fn from_str(name: &str) -> Result<Self, NameError> {
                check($what, name, $slashes)?;
                Ok(Self(name.to_owned()))
            }
        }

        impl TryFrom<String> for $type {
            type Error = NameError;

            fn try_from(name: String) -> Result<Self, NameError> {
                name.parse()
            }
        }

        impl From<$type> for String {
            fn from(name: $type) -> String {
                name.0
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

name!(
    /// A named producer of observations, e.g. `adopt/prod`.
    SourceName, "source", true
);
name!(
    /// What one pass of a source covers when it does not cover all of it, e.g. `us-east-1`.
    ScopeName, "scope", true
);
name!(
    /// A named set of pinned versions, e.g. `main`.
    BaselineName, "baseline", false
);

/// One line of versions: a source, and the scope its passes cover. Streams never wait for each other.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct StreamId {
    pub source: SourceName,
    pub scope: Option<ScopeName>,
}

impl From<SourceName> for StreamId {
    fn from(source: SourceName) -> Self {
        Self { source, scope: None }
    }
}

impl fmt::Display for StreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.scope {
            Some(scope) => write!(f, "{}@{scope}", self.source),
            None => write!(f, "{}", self.source),
        }
    }
}

impl FromStr for StreamId {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        Ok(match text.split_once('@') {
            Some((source, scope)) => Self { source: source.parse()?, scope: Some(scope.parse()?) },
            None => Self { source: text.parse()?, scope: None },
        })
    }
}

impl TryFrom<String> for StreamId {
    type Error = NameError;

    fn try_from(text: String) -> Result<Self, NameError> {
        text.parse()
    }
}

impl From<StreamId> for String {
    fn from(stream: StreamId) -> String {
        stream.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_checked_where_they_are_written() {
        for (name, good) in [
            ("adopt/prod", true),
            ("inventory", true),
            ("a.b-c_d/0", true),
            ("latest", false),
            ("prod/latest", false),
            ("Prod", false),
            ("", false),
            ("a//b", false),
            ("../etc", false),
            ("a b", false),
            ("/a", false),
            ("-a", false),
            ("é", false),
        ] {
            assert_eq!(name.parse::<SourceName>().is_ok(), good, "{name:?}");
        }
        assert!("main/x".parse::<BaselineName>().is_err());
        assert!("latest".parse::<BaselineName>().is_err());
        assert!("adopt/prod@us-east-1".parse::<StreamId>().is_ok());
    }
}
