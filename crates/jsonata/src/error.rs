//! What is wrong with an expression, or with what it was given.

use std::fmt;

/// An error of the language, or of a limit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Error {
    /// `S0101` to `S0599` for syntax, `T…` for types, `D…` for values, `U…` for limits, where the error has one.
    pub code: Option<String>,
    /// The sentence, without the code.
    pub message: String,
}

impl Error {
    /// One of our own. The codes from `U1101` on are not used by the language or its other implementations.
    pub(crate) fn coded(code: &str, message: impl Into<String>) -> Self {
        Self { code: Some(code.to_owned()), message: message.into() }
    }

    /// The engine puts the code somewhere into the message: at the start, or after words of its own.
    pub(crate) fn told(text: &str) -> Self {
        // The one error of the language that the engine gives no code.
        let text = if text == "Unclosed comment" { "S0106: Comment has no closing tag" } else { text };
        let found = (0..text.len()).find(|&at| is_code(&text.as_bytes()[at..]));
        let Some(at) = found else { return Self { code: None, message: text.to_owned() } };
        let message = text[at + 5..].trim_start_matches([':', ' ']);
        let message = if message.is_empty() { text } else { message };
        Self { code: Some(text[at..at + 5].to_owned()), message: message.to_owned() }
    }

    /// Whether the code is this one.
    pub fn is(&self, code: &str) -> bool {
        self.code.as_deref() == Some(code)
    }
}

fn is_code(bytes: &[u8]) -> bool {
    bytes.len() >= 5
        && b"STDU".contains(&bytes[0])
        && bytes[1..5].iter().all(u8::is_ascii_digit)
        && !bytes.get(5).is_some_and(u8::is_ascii_alphanumeric)
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.code {
            Some(code) => write!(f, "{code}: {}", self.message),
            None => f.write_str(&self.message),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Error;

    #[test]
    fn the_code_is_found_wherever_the_engine_puts_it() {
        for (text, code, message) in [
            ("T0410: Argument 1", Some("T0410"), "Argument 1"),
            ("Invalid syntax: T1006: Attempted to", Some("T1006"), "Attempted to"),
            ("Unclosed comment", Some("S0106"), "Comment has no closing tag"),
            ("Invalid regex: é", None, "Invalid regex: é"),
            ("a T12345 and a D10x2", None, "a T12345 and a D10x2"),
        ] {
            let error = Error::told(text);
            assert_eq!((error.code.as_deref(), error.message.as_str()), (code, message), "{text}");
        }
    }
}
