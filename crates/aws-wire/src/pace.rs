//! How fast calls go out: a bucket of tokens per account, region and service, a bound on calls under way, and a budget.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::Instant;

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
}

/// What was asked of AWS so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Every attempt, for every attempt is a call that AWS counts.
    pub calls: u64,
    pub throttled: u64,
    pub retried: u64,
}

/// What all clients of one run share.
#[derive(Debug)]
pub(crate) struct Pace {
    buckets: Mutex<BTreeMap<(String, String, String), Bucket>>,
    under_way: Semaphore,
    budget: Option<u64>,
    calls: AtomicU64,
    throttled: AtomicU64,
    retried: AtomicU64,
}

impl Pace {
    pub(crate) fn new(concurrency: usize, budget: Option<u64>) -> Self {
        Self {
            buckets: Mutex::default(),
            under_way: Semaphore::new(concurrency.max(1)),
            budget,
            calls: AtomicU64::new(0),
            throttled: AtomicU64::new(0),
            retried: AtomicU64::new(0),
        }
    }

    /// Counts one call, unless the budget is spent.
    pub(crate) fn spend(&self) -> Result<(), u64> {
        let Some(budget) = self.budget else {
            self.calls.fetch_add(1, Ordering::Relaxed);
            return Ok(());
        };
        let within = |calls| (calls < budget).then_some(calls + 1);
        self.calls.fetch_update(Ordering::Relaxed, Ordering::Relaxed, within).map(|_| ()).map_err(|_| budget)
    }

    pub(crate) fn count_throttle(&self) {
        self.throttled.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn count_retry(&self) {
        self.retried.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn counts(&self) -> Counts {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Counts { calls: read(&self.calls), throttled: read(&self.throttled), retried: read(&self.retried) }
    }

    pub(crate) async fn wait_for_token(&self, account: &str, region: &str, service: &str) {
        let now = Instant::now();
        let wait = {
            let mut buckets = self.buckets.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            let key = (account.to_owned(), region.to_owned(), service.to_owned());
            buckets.entry(key).or_insert_with(|| Bucket::new(rate_of(service), now)).take(now)
        };
        if !wait.is_zero() {
            tokio::time::sleep(wait).await;
        }
    }

    /// Held while a request is on the wire, and not while it waits to be tried again.
    pub(crate) async fn enter(&self) -> SemaphorePermit<'_> {
        self.under_way.acquire().await.expect("this semaphore is never closed")
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
        let pace = Pace::new(1, None);
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
        let pace = Pace::new(1, Some(3));
        let granted = (0..10).filter(|_| pace.spend().is_ok()).count();
        assert_eq!((granted, pace.counts().calls), (3, 3));
        assert_eq!(pace.spend(), Err(3));
    }
}
