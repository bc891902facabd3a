//! Exit codes. Terraform's 0/1/2 is what people know; 3 is ours.

/// Nothing to report, or asked to report only.
pub(crate) const IN_SYNC: u8 = 0;
/// The command failed; whatever it printed is not an answer.
pub(crate) const ERROR: u8 = 1;
/// Drift at or above `--fail-on`.
pub(crate) const DRIFT: u8 = 2;
/// No drift, but something was not checked, under `--strict`.
pub(crate) const NOT_CHECKED: u8 = 3;
/// 128 + SIGINT.
pub(crate) const INTERRUPTED: i32 = 130;
/// 128 + SIGTERM.
pub(crate) const TERMINATED: i32 = 143;
