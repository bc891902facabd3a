//! How many calls are being answered at once: now, and at most so far.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// The most calls that were under way at once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Peaks {
    pub overall: u64,
    pub by_account: BTreeMap<String, u64>,
    /// By account and region.
    pub by_region: BTreeMap<(String, String), u64>,
    /// By account, region and service.
    pub by_service: BTreeMap<(String, String, String), u64>,
}

#[derive(Debug, Default)]
struct Flight {
    now: Peaks,
    most: Peaks,
}

/// Counts calls while they are answered.
#[derive(Debug, Clone, Default)]
pub(crate) struct Flights(Arc<Mutex<Flight>>);

/// A call that is being answered.
#[derive(Debug)]
pub(crate) struct Answering {
    flights: Flights,
    account: String,
    region: String,
    service: String,
}

impl Flights {
    pub(crate) fn begin(&self, account: &str, region: &str, service: &str) -> Answering {
        let of = Answering {
            flights: self.clone(),
            account: account.to_owned(),
            region: region.to_owned(),
            service: service.to_owned(),
        };
        self.with(|flight| {
            let Flight { now, most } = flight;
            let rise = |now: &mut u64, most: &mut u64| {
                *now += 1;
                *most = (*most).max(*now);
            };
            let (account, region, service) = (account.to_owned(), region.to_owned(), service.to_owned());
            let of_region = (account.clone(), region.clone());
            let of_service = (account.clone(), region, service);
            rise(&mut now.overall, &mut most.overall);
            rise(now.by_account.entry(account.clone()).or_default(), most.by_account.entry(account).or_default());
            rise(now.by_region.entry(of_region.clone()).or_default(), most.by_region.entry(of_region).or_default());
            rise(now.by_service.entry(of_service.clone()).or_default(), most.by_service.entry(of_service).or_default());
        });
        of
    }

    pub(crate) fn peaks(&self) -> Peaks {
        let mut peaks = Peaks::default();
        self.with(|flight| peaks = flight.most.clone());
        peaks
    }

    pub(crate) fn forget(&self) {
        self.with(|flight| flight.most = Peaks::default());
    }

    fn with(&self, work: impl FnOnce(&mut Flight)) {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        let (account, region, service) = (self.account.clone(), self.region.clone(), self.service.clone());
        self.flights.with(|Flight { now, .. }| {
            let fall = |count: Option<&mut u64>| {
                if let Some(count) = count {
                    *count = count.saturating_sub(1);
                }
            };
            fall(Some(&mut now.overall));
            fall(now.by_account.get_mut(&account));
            fall(now.by_region.get_mut(&(account.clone(), region.clone())));
            fall(now.by_service.get_mut(&(account, region, service)));
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_at_once_is_kept_of_each() {
        let flights = Flights::default();
        let first = flights.begin("1", "us-east-1", "ec2");
        let second = flights.begin("1", "us-east-1", "sqs");
        drop(first);
        let third = flights.begin("1", "eu-west-1", "ec2");
        let fourth = flights.begin("2", "us-east-1", "ec2");
        drop((second, third, fourth));
        let peaks = flights.peaks();
        assert_eq!((peaks.overall, peaks.by_account["1"], peaks.by_account["2"]), (3, 2, 1));
        assert_eq!(peaks.by_region[&("1".into(), "us-east-1".into())], 2);
        assert_eq!(peaks.by_service[&("1".into(), "us-east-1".into(), "ec2".into())], 1);
        flights.forget();
        drop(flights.begin("1", "us-east-1", "ec2"));
        assert_eq!(flights.peaks().overall, 1);
    }
}
