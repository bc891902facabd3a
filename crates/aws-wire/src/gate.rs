//! How many requests are on the wire at once: in all, of one account, of one of its regions, of one service there.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Bounds on requests on the wire. AWS's own limits are of an account, a region and a service; the others keep an
/// account, and this machine, from being flooded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    pub overall: usize,
    pub account: Option<usize>,
    pub region: Option<usize>,
    pub service: Option<usize>,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { overall: 16, account: None, region: None, service: None }
    }
}

/// Narrow gates are forgotten when nobody is in them or before them; beyond this many it is looked for such.
const KEPT: usize = 1024;

#[derive(Debug)]
pub(crate) struct Gates {
    bounds: Bounds,
    overall: Arc<Semaphore>,
    narrow: Mutex<BTreeMap<[String; 3], Weak<Semaphore>>>,
}

impl Gates {
    pub(crate) fn new(bounds: Bounds) -> Self {
        Self { bounds, overall: semaphore(bounds.overall), narrow: Mutex::default() }
    }

    /// Waits before the narrowest gate first, so that whoever waits keeps nobody else from anything wider.
    pub(crate) async fn enter(&self, account: &str, region: &str, service: &str, held: &mut Vec<OwnedSemaphorePermit>) {
        let Bounds { account: of_account, region: of_region, service: of_service, .. } = self.bounds;
        let narrow = [
            (of_service, [account, region, service]),
            (of_region, [account, region, ""]),
            (of_account, [account, "", ""]),
        ];
        for (bound, whose) in narrow {
            if let Some(bound) = bound {
                held.push(through(self.gate(whose, bound)).await);
            }
        }
        held.push(through(self.overall.clone()).await);
    }

    fn gate(&self, whose: [&str; 3], bound: usize) -> Arc<Semaphore> {
        let mut narrow = self.narrow.lock().unwrap_or_else(PoisonError::into_inner);
        if narrow.len() > KEPT {
            narrow.retain(|_, gate| gate.strong_count() > 0);
        }
        let slot = narrow.entry(whose.map(str::to_owned)).or_default();
        slot.upgrade().unwrap_or_else(|| {
            let gate = semaphore(bound);
            *slot = Arc::downgrade(&gate);
            gate
        })
    }
}

fn semaphore(bound: usize) -> Arc<Semaphore> {
    Arc::new(Semaphore::new(bound.clamp(1, Semaphore::MAX_PERMITS)))
}

async fn through(gate: Arc<Semaphore>) -> OwnedSemaphorePermit {
    gate.acquire_owned().await.expect("these semaphores are never closed")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// Enters if that takes no waiting.
    async fn try_enter(gates: &Gates, whose: [&str; 3]) -> Option<Vec<OwnedSemaphorePermit>> {
        let mut held = Vec::new();
        let [account, region, service] = whose;
        let entered = gates.enter(account, region, service, &mut held);
        tokio::time::timeout(Duration::from_millis(1), entered).await.ok()?;
        Some(held)
    }

    #[tokio::test(start_paused = true)]
    async fn each_bound_holds_for_its_own_and_for_nobody_else() {
        let bounds = Bounds { overall: 6, account: Some(4), region: Some(3), service: Some(2) };
        let gates = Gates::new(bounds);
        let rows = [
            (["1", "us-east-1", "ec2"], true),
            (["1", "us-east-1", "ec2"], true),
            (["1", "us-east-1", "ec2"], false), // two of the service
            (["1", "us-east-1", "sqs"], true),
            (["1", "us-east-1", "sns"], false), // three of the region
            (["1", "eu-west-1", "ec2"], true),
            (["1", "eu-west-1", "sqs"], false), // four of the account
            (["2", "us-east-1", "ec2"], true),
            (["2", "us-east-1", "ec2"], true),
            (["3", "us-east-1", "ec2"], false), // six in all
        ];
        let mut all = Vec::new();
        for (whose, enters) in rows {
            let entered = try_enter(&gates, whose).await;
            assert_eq!(entered.is_some(), enters, "{whose:?}");
            all.extend(entered);
        }
        drop(all.pop());
        assert!(try_enter(&gates, ["3", "us-east-1", "ec2"]).await.is_some(), "whoever leaves makes room");
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_waits_before_a_narrow_gate_takes_no_room_from_others() {
        let gates = Gates::new(Bounds { overall: 2, service: Some(1), ..Bounds::default() });
        let first = try_enter(&gates, ["1", "r", "ec2"]).await;
        let mut held = Vec::new();
        let mut waiting = Box::pin(gates.enter("1", "r", "ec2", &mut held));
        assert!(tokio::time::timeout(Duration::from_millis(1), &mut waiting).await.is_err());
        assert!(try_enter(&gates, ["2", "r", "ec2"]).await.is_some());
        drop(first);
        waiting.await;
        assert_eq!(held.len(), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn gates_that_nobody_is_at_are_forgotten() {
        let gates = Gates::new(Bounds { service: Some(1), ..Bounds::default() });
        for account in 0..=KEPT {
            drop(try_enter(&gates, [&account.to_string(), "r", "ec2"]).await);
        }
        let held = try_enter(&gates, ["a", "r", "ec2"]).await;
        drop(try_enter(&gates, ["b", "r", "ec2"]).await);
        assert!(gates.narrow.lock().expect("not poisoned").len() <= 2 && held.is_some());
    }
}
