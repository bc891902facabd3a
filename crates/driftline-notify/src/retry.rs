//! When to try again.

use std::time::Duration;

use sha2::{Digest as _, Sha256};

/// How long messages are tried, and how long is waited in between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schedule {
    pub first: Duration,
    pub longest: Duration,
    /// After this long a message is a dead letter.
    pub give_up: Duration,
}

impl Default for Schedule {
    fn default() -> Self {
        Self { first: Duration::from_secs(2), longest: Duration::from_mins(15), give_up: Duration::from_hours(24) }
    }
}

impl Schedule {
    /// How long to wait after so many attempts: twice as long each time, and somewhere in the second half of that, so
    /// that many messages do not come back at one moment. What the other end asks for is waited for at least.
    pub fn wait(&self, attempts: u32, asked: Option<Duration>, seed: &str) -> Duration {
        let doubled = self.first.saturating_mul(1_u32.checked_shl(attempts.min(31)).unwrap_or(u32::MAX));
        let most = doubled.min(self.longest);
        let own = most / 2 + most.mul_f64(fraction(&format!("{seed}\0{attempts}")) / 2.0);
        asked.map_or(own, |asked| asked.max(own))
    }
}

/// A number in `0.0..1.0` that depends on a text alone.
pub fn fraction(seed: &str) -> f64 {
    let hash = Sha256::digest(seed.as_bytes());
    let number = u32::from_be_bytes([hash[0], hash[1], hash[2], hash[3]]);
    f64::from(number) / (f64::from(u32::MAX) + 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_to_a_limit_are_spread_and_never_shorter_than_asked() {
        let schedule = Schedule::default();
        let wait = |attempts, asked, seed| schedule.wait(attempts, asked, seed);
        for attempts in 0..80 {
            let doubled = schedule.first.saturating_mul(1 << attempts.min(20)).min(schedule.longest);
            let found = wait(attempts, None, "a");
            assert!(found >= doubled / 2 && found <= doubled, "{attempts}: {found:?}");
            assert_eq!(found, wait(attempts, None, "a"), "the same seed, the same wait");
        }
        assert_ne!(wait(5, None, "a"), wait(5, None, "b"));
        assert_eq!(wait(0, Some(Duration::from_mins(30)), "a"), Duration::from_mins(30));
        assert!(wait(3, Some(Duration::ZERO), "a") >= schedule.first);
    }
}
