//! How fast calls go out: a bucket of tokens per account, region and service, bounds on calls under way, and a budget.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;

use crate::gate::{Bounds, Gates};

/// Calls a second that a service takes without complaint, and how many at once after a rest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    pub per_second: f64,
    pub burst: f64,
}

/// What AWS documents, or less where it documents nothing. Route 53 refuses more than five a second per account.
const RATES: &[(&str, Rate)] = &[
    ("ec2", Rate { per_second: 20.0, burst: 50.0 }),
    ("lambda", Rate { per_second: 15.0, burst: 30.0 }),
    ("route53", Rate { per_second: 5.0, burst: 5.0 }),
    ("iam", Rate { per_second: 15.0, burst: 30.0 }),
    ("organizations", Rate { per_second: 5.0, burst: 10.0 }),
    ("cloudformation", Rate { per_second: 10.0, burst: 20.0 }),
    ("cloudcontrolapi", Rate { per_second: 10.0, burst: 20.0 }),
    ("cloudtrail", Rate { per_second: 2.0, burst: 2.0 }),
    ("config", Rate { per_second: 10.0, burst: 20.0 }),
    ("resource-explorer-2", Rate { per_second: 5.0, burst: 10.0 }),
    ("tagging", Rate { per_second: 10.0, burst: 15.0 }),
    ("sqs", Rate { per_second: 100.0, burst: 200.0 }),
    ("s3", Rate { per_second: 100.0, burst: 200.0 }),
];

const OTHERS: Rate = Rate { per_second: 20.0, burst: 40.0 };

pub fn rate_of(service: &str) -> Rate {
    RATES.iter().find(|(name, _)| *name == service).map_or(OTHERS, |(_, rate)| *rate)
}

/// One bucket: it never holds more than its burst, and fills at its rate.
#[derive(Debug)]
pub struct Bucket {
    rate: Rate,
    tokens: f64,
    at: Instant,
}

impl Bucket {
    pub fn new(rate: Rate, now: Instant) -> Self {
        Self { rate, tokens: rate.burst, at: now }
    }

    /// Takes a token and says how long to wait until it is really there. Tokens are promised in the order of asking.
    pub fn take(&mut self, now: Instant) -> Duration {
        let passed = now.saturating_duration_since(self.at).as_secs_f64();
        self.tokens = (self.tokens + passed * self.rate.per_second).min(self.rate.burst) - 1.0;
        self.at = now;
        if self.tokens >= 0.0 {
            return Duration::ZERO;
        }
        Duration::from_secs_f64(-self.tokens / self.rate.per_second)
    }

    /// Whether it has rested long enough to be like one that was never used.
    fn is_full(&self, now: Instant) -> bool {
        let passed = now.saturating_duration_since(self.at).as_secs_f64();
        self.tokens + passed * self.rate.per_second >= self.rate.burst
    }
}

/// What was asked of AWS so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Every attempt, for every attempt is a call that AWS counts.
    pub calls: u64,
    pub throttled: u64,
    pub retried: u64,
}

/// Buckets that are full again are as good as new, so beyond this many they are forgotten.
const KEPT: usize = 4096;

/// What all clients of one run share: how fast and how many at once they ask, and how much in all.
///
/// A pace may be within another: then both hold, and only the outermost has buckets.
#[derive(Debug)]
pub struct Pace {
    within: Option<Arc<Pace>>,
    buckets: Mutex<BTreeMap<(String, String, String), Bucket>>,
    gates: Gates,
    budget: Option<u64>,
    calls: AtomicU64,
    by_account: Mutex<BTreeMap<String, Counts>>,
}

impl Pace {
    pub fn new(bounds: Bounds, budget: Option<u64>) -> Self {
        Self {
            within: None,
            buckets: Mutex::default(),
            gates: Gates::new(bounds),
            budget,
            calls: AtomicU64::new(0),
            by_account: Mutex::default(),
        }
    }

    #[must_use]
    pub fn within(self, outer: Option<Arc<Pace>>) -> Self {
        Self { within: outer, ..self }
    }

    /// This one, and those that it is within.
    fn chain(&self) -> impl Iterator<Item = &Pace> {
        std::iter::successors(Some(self), |pace| pace.within.as_deref())
    }

    /// Counts one call of an account, unless a budget is spent; then says how large it was.
    pub(crate) fn spend(&self, account: &str) -> Result<(), u64> {
        for pace in self.chain() {
            let within = |calls| pace.budget.is_none_or(|budget| calls < budget).then_some(calls + 1);
            let granted = pace.calls.fetch_update(Ordering::Relaxed, Ordering::Relaxed, within);
            granted.map_err(|_| pace.budget.unwrap_or_default())?;
        }
        self.count(account, |counts| counts.calls += 1);
        Ok(())
    }

    pub(crate) fn count_throttle(&self, account: &str) {
        self.count(account, |counts| counts.throttled += 1);
    }

    pub(crate) fn count_retry(&self, account: &str) {
        self.count(account, |counts| counts.retried += 1);
    }

    fn count(&self, account: &str, add: impl Fn(&mut Counts)) {
        for pace in self.chain() {
            let mut counts = pace.by_account.lock().unwrap_or_else(PoisonError::into_inner);
            match counts.get_mut(account) {
                Some(known) => add(known),
                None => add(counts.entry(account.to_owned()).or_default()),
            }
        }
    }

    /// What the credentials of each account asked; under the empty name what was asked before it was known whose they
    /// are.
    pub fn by_account(&self) -> BTreeMap<String, Counts> {
        self.by_account.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn counts(&self) -> Counts {
        let add = |sum: Counts, one: &Counts| Counts {
            calls: sum.calls + one.calls,
            throttled: sum.throttled + one.throttled,
            retried: sum.retried + one.retried,
        };
        self.by_account.lock().unwrap_or_else(PoisonError::into_inner).values().fold(Counts::default(), add)
    }

    pub(crate) async fn wait_for_token(&self, account: &str, region: &str, service: &str) {
        let now = Instant::now();
        let outermost = self.chain().last().unwrap_or(self);
        let wait = {
            let mut buckets = outermost.buckets.lock().unwrap_or_else(PoisonError::into_inner);
            if buckets.len() > KEPT {
                buckets.retain(|_, bucket| !bucket.is_full(now));
            }
            let key = (account.to_owned(), region.to_owned(), service.to_owned());
            buckets.entry(key).or_insert_with(|| Bucket::new(rate_of(service), now)).take(now)
        };
        if !wait.is_zero() {
            tokio::time::sleep(wait).await;
        }
    }

    /// Held while a request is on the wire, and not while it waits to be tried again.
    pub(crate) async fn enter(&self, account: &str, region: &str, service: &str) -> Vec<OwnedSemaphorePermit> {
        let mut held = Vec::new();
        for pace in self.chain() {
            pace.gates.enter(account, region, service, &mut held).await;
        }
        held
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_bucket_gives_its_burst_at_once_and_then_its_rate() {
        let mut now = Instant::now();
        let mut bucket = Bucket::new(Rate { per_second: 5.0, burst: 2.0 }, now);
        let waits: Vec<_> = (0..4).map(|_| bucket.take(now).as_millis()).collect();
        assert_eq!(waits, [0, 0, 200, 400]);
        now += Duration::from_mins(1);
        let waits: Vec<_> = (0..3).map(|_| bucket.take(now).as_millis()).collect();
        assert_eq!(waits, [0, 0, 200], "a long rest does not give more than the burst");
    }

    #[tokio::test(start_paused = true)]
    async fn accounts_regions_and_services_have_their_own_buckets() {
        let pace = Pace::new(Bounds::default(), None);
        let start = Instant::now();
        for _ in 0..5 {
            pace.wait_for_token("1", "us-east-1", "route53").await;
        }
        pace.wait_for_token("2", "us-east-1", "route53").await;
        pace.wait_for_token("1", "eu-west-1", "route53").await;
        assert!(start.elapsed().is_zero());
        pace.wait_for_token("1", "us-east-1", "route53").await;
        assert_eq!(start.elapsed(), Duration::from_millis(200));
    }

    #[test]
    fn a_budget_is_spent_exactly() {
        let pace = Pace::new(Bounds::default(), Some(3));
        let granted = (0..10).filter(|_| pace.spend("1").is_ok()).count();
        assert_eq!((granted, pace.counts().calls), (3, 3));
        assert_eq!(pace.spend("1"), Err(3));
    }

    #[test]
    fn a_pace_within_another_spends_and_counts_in_both() {
        let outer = Arc::new(Pace::new(Bounds::default(), Some(5)));
        let [first, second] =
            [Some(2), None].map(|budget| Pace::new(Bounds::default(), budget).within(Some(outer.clone())));
        assert_eq!((0..4).filter(|_| first.spend("1").is_ok()).count(), 2, "its own budget");
        assert_eq!((0..4).filter(|_| second.spend("2").is_ok()).count(), 3, "what is left of the one for all");
        second.count_throttle("2");
        let of = |calls, throttled| Counts { calls, throttled, retried: 0 };
        assert_eq!(outer.by_account(), BTreeMap::from([("1".to_owned(), of(2, 0)), ("2".to_owned(), of(3, 1))]));
        assert_eq!((first.counts(), second.counts(), outer.counts()), (of(2, 0), of(3, 1), of(5, 1)));
    }

    #[tokio::test(start_paused = true)]
    async fn buckets_that_are_full_again_are_forgotten() {
        let pace = Pace::new(Bounds::default(), None);
        for account in 0..=KEPT {
            pace.wait_for_token(&account.to_string(), "us-east-1", "ec2").await;
        }
        assert_eq!(pace.buckets.lock().expect("not poisoned").len(), KEPT + 1);
        tokio::time::advance(Duration::from_secs(1)).await;
        pace.wait_for_token("new", "us-east-1", "ec2").await;
        assert_eq!(pace.buckets.lock().expect("not poisoned").len(), 1);
    }
}
