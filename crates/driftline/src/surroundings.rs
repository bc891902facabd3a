//! The clock, the environment and the end of the process: read and done here and nowhere else.
#![expect(clippy::disallowed_methods, reason = "this is the one place for them")]

use std::ffi::OsString;
use std::time::Instant;

use jiff::Timestamp;

/// The current time, to the millisecond.
pub(crate) fn clock() -> Timestamp {
    let now = Timestamp::now();
    Timestamp::from_millisecond(now.as_millisecond()).unwrap_or(now)
}

/// For measuring how long something takes.
pub(crate) fn stopwatch() -> Instant {
    Instant::now()
}

/// An environment variable that is set, if only to nothing.
pub(crate) fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name)
}

/// An environment variable that is set to a text that is not empty.
pub(crate) fn text_variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|text| !text.is_empty())
}

/// Ends the process at once.
pub(crate) fn leave(code: i32) -> ! {
    std::process::exit(code)
}
