//! A panic of the engine is an error of one expression, not the end of the program.

use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

use crate::Error;

thread_local! {
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// Runs the engine. What it was doing is dropped whole when it panics, so nothing half done is seen afterwards.
pub(crate) fn guarded<T>(run: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    static HOOK: Once = Once::new();
    // Others on other threads keep the hook they have, and so does everything outside the engine on this one.
    HOOK.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !QUIET.get() {
                before(info);
            }
        }));
    });
    let outer = QUIET.replace(true);
    let outcome = panic::catch_unwind(AssertUnwindSafe(run));
    QUIET.set(outer);
    outcome.unwrap_or_else(|_| Err(Error::coded("U1109", "the engine cannot handle this expression")))
}
