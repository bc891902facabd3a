//! What `watch` writes to standard error: one line for each thing that happened, for people or for programs.
//! Who and how many, never what: no property of a resource is ever in it.

use std::io::{self, Write};

use jiff::Timestamp;
use serde_json::{Map, Value as Json};

use crate::args::LogFormat;
use crate::output::{Ear, visible};

#[derive(Clone, Copy, Debug)]
pub(crate) struct Log {
    pub format: LogFormat,
    /// Only warnings and errors.
    pub quiet: bool,
    pub clock: fn() -> Timestamp,
}

impl Log {
    pub(crate) fn info(self, what: &str, fields: &[(&str, &str)]) {
        if !self.quiet {
            self.line("info", what, fields);
        }
    }

    pub(crate) fn warn(self, what: &str, fields: &[(&str, &str)]) {
        self.line("warn", what, fields);
    }

    pub(crate) fn error(self, what: &str, fields: &[(&str, &str)]) {
        self.line("error", what, fields);
    }

    fn line(self, level: &str, what: &str, fields: &[(&str, &str)]) {
        let line = written(self.format, (self.clock)(), level, what, fields);
        // Nobody reads the log any more: that is no reason to stop watching.
        let _ = writeln!(io::stderr().lock(), "{line}");
    }
}

fn written(format: LogFormat, at: Timestamp, level: &str, what: &str, fields: &[(&str, &str)]) -> String {
    match format {
        LogFormat::Text => {
            let mut line = format!("{at} {level:<5} {what}");
            for (name, value) in fields {
                let plain = !value.is_empty() && value.chars().all(|char| char.is_ascii_graphic() && char != '"');
                let value = if plain { (*value).to_owned() } else { Json::from(visible(value)).to_string() };
                line += &format!(" {name}={value}");
            }
            line
        }
        LogFormat::Json => {
            let mut members = Map::new();
            for (name, value) in [("time", at.to_string()), ("level", level.to_owned()), ("event", what.to_owned())] {
                members.insert(name.to_owned(), value.into());
            }
            for (name, value) in fields {
                members.insert((*name).to_owned(), (*value).into());
            }
            Json::from(members).to_string()
        }
    }
}

/// Takes what an observation has to say beside its result into the log.
#[derive(Debug)]
pub(crate) struct OfSource {
    pub log: Log,
    pub source: String,
}

impl Ear for OfSource {
    fn hear(&self, level: &'static str, text: &str) {
        let fields = [("source", self.source.as_str()), ("message", text)];
        match level {
            "warn" => self.log.warn("observing", &fields),
            "error" => self.log.error("observing", &fields),
            _ => self.log.info("observing", &fields),
        }
    }

    fn take(&self, _: Vec<u8>) {}
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_one_line_whatever_is_in_it() {
        let at: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let fields = [("source", "a/b"), ("error", "two\nlines \"quoted\""), ("none", "")];
        let text = written(LogFormat::Text, at, "warn", "observed", &fields);
        let expected =
            "2026-01-01T00:00:00Z warn  observed source=a/b error=\"two\\\\u{a}lines \\\"quoted\\\"\" none=\"\"";
        assert_eq!(text, expected);
        let json: Json = serde_json::from_str(&written(LogFormat::Json, at, "warn", "observed", &fields)).unwrap();
        assert_eq!(json["error"], "two\nlines \"quoted\"");
    }
}
