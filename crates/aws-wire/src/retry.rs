//! When to ask again: standard mode, exponential back-off with full jitter, and what the service itself says.

use std::time::Duration;

use crate::error::{Error, Kind};

/// How often and how far apart a call is tried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    pub attempts: u32,
    /// The longest wait before the second attempt; it doubles with each.
    pub base: Duration,
    pub longest: Duration,
    /// A service that asks to wait longer than this is taken as refusing.
    pub patience: Duration,
}

impl Default for Schedule {
    /// Eight attempts: at 30 % throttling, three lose part of most sweeps and eight lose none.
    fn default() -> Self {
        Self {
            attempts: 8,
            base: Duration::from_millis(250),
            longest: Duration::from_secs(20),
            patience: Duration::from_mins(2),
        }
    }
}

impl Schedule {
    /// How long to wait after the failed attempt `attempt` (from 1), or `None` when enough was tried.
    /// `random` is in `0.0..1.0`.
    pub fn wait(&self, attempt: u32, error: &Error, random: f64) -> Option<Duration> {
        if attempt >= self.attempts || !may_pass(error) {
            return None;
        }
        let asked = error.retry_after.unwrap_or_default();
        if asked > self.patience {
            return None;
        }
        let doubled = self.base.saturating_mul(2_u32.saturating_pow(attempt - 1));
        Some(doubled.min(self.longest).mul_f64(random.clamp(0.0, 1.0)).max(asked))
    }
}

/// Whether the same call may succeed a moment later.
fn may_pass(error: &Error) -> bool {
    match error.kind {
        Kind::Throttled | Kind::Timeout => true,
        // A name that does not resolve will not resolve in a second; a broken connection may be made again.
        Kind::Unreachable => error.code.as_deref() != Some("dns"),
        // An operation that the server says it does not have stays away, and what is elsewhere stays there.
        Kind::Unavailable => {
            let stays = |code| crate::error::is_unknown_operation(code) || crate::error::is_redirect(code);
            !error.code.as_deref().is_some_and(stays)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(kind: Kind) -> Error {
        Error::of(kind, "ec2", "DescribeVpcs", "no")
    }

    #[test]
    fn waits_double_up_to_the_longest_and_jitter_spreads_them_whole() {
        let schedule = Schedule::default();
        let waits: Vec<_> = (1..=9).map(|n| schedule.wait(n, &error(Kind::Throttled), 1.0)).collect();
        let millis = |ms| Some(Duration::from_millis(ms));
        let expected: Vec<_> = [250, 500, 1000, 2000, 4000, 8000, 16_000].map(millis).into();
        assert_eq!(waits[..7], expected);
        assert_eq!(waits[7..], [None, None]);
        assert_eq!(schedule.wait(3, &error(Kind::Throttled), 0.0), Some(Duration::ZERO));
        assert_eq!(schedule.wait(3, &error(Kind::Throttled), 0.5), millis(500));
        let many = Schedule { attempts: 50, ..schedule };
        assert_eq!(many.wait(40, &error(Kind::Timeout), 1.0), Some(many.longest));
    }

    #[test]
    fn what_the_service_asks_for_holds_unless_it_is_too_long() {
        let asks = |seconds| Error { retry_after: Some(Duration::from_secs(seconds)), ..error(Kind::Throttled) };
        let schedule = Schedule::default();
        assert_eq!(schedule.wait(1, &asks(7), 0.1), Some(Duration::from_secs(7)));
        assert_eq!(schedule.wait(1, &asks(3600), 0.1), None);
    }

    #[test]
    fn what_will_not_pass_is_not_tried_again() {
        let schedule = Schedule::default();
        for kind in [Kind::AccessDenied, Kind::NotFound, Kind::Invalid, Kind::Credentials, Kind::Budget] {
            assert_eq!(schedule.wait(1, &error(kind), 0.5), None, "{kind:?}");
        }
        let gone = Error { code: Some("InvalidAction".into()), ..error(Kind::Unavailable) };
        assert_eq!(schedule.wait(1, &gone, 0.5), None);
        assert!(schedule.wait(1, &error(Kind::Unavailable), 0.5).is_some());
    }
}
