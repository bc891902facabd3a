//! Asking AWS in many accounts: who is entered when, and that nobody's failure is another's.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use aws_wire::{Bounds, Client, Error, Pace};
use driftline_aws::accounts::{self, Hub, Roster};
use driftline_aws::{Asked, Here, Observer, Pass, Reach, Unit};
use driftline_core::SourceName;
use driftline_sources::normalize::NormalizeError;
use futures_util::stream::{self, StreamExt};
use jiff::Timestamp;
use tokio::sync::{Semaphore, mpsc};

use super::taking::Progress;
use crate::live_args::LiveArgs;
use crate::swept::{AtOnce, Sweep};

/// Accounts that are entered side by side, and places that are looked at: what is held in memory at once.
const ACCOUNTS: usize = 16;
const PLACES: usize = 16;

/// One source, understood.
pub(super) struct Job<'a> {
    pub observer: Observer,
    pub source: &'a SourceName,
    pub args: &'a LiveArgs,
    pub asked: Asked,
    pub reach: Reach,
}

/// What those who ask tell those who commit.
pub(super) enum News {
    /// Who is in an organization, or beneath a unit of it.
    Listed(Box<Pass>),
    /// So many of these jobs could not even begin.
    Failed {
        jobs: Vec<usize>,
        error: Error,
    },
    /// An account begins; what it is called.
    Begun {
        account: String,
        name: Option<String>,
    },
    /// An account could not be entered, or its regions not be found, for these jobs.
    Unreached {
        account: String,
        jobs: Vec<usize>,
        /// When that was tried.
        at: Timestamp,
        error: Error,
    },
    Looked {
        job: usize,
        here: Box<Here>,
        passes: Result<Vec<Pass>, NormalizeError>,
    },
}

pub(super) fn bounds(at_once: AtOnce) -> Bounds {
    let AtOnce { overall, per_account, per_region, per_service } = at_once;
    Bounds { overall, account: per_account, region: per_region, service: per_service }
}

/// One account, from where it is entered, and which jobs look at it.
struct Visit {
    hub: usize,
    account: String,
    name: Option<String>,
    jobs: Vec<usize>,
}

pub(super) struct Asker<'a> {
    pub sweep: &'a Sweep<'a>,
    pub jobs: &'a [Job<'a>],
    pub pace: Arc<Pace>,
    /// When the run began. Lists of accounts are of this time: by it those of one run are known.
    pub now: Timestamp,
    pub clock: fn() -> Timestamp,
    pub progress: &'a Progress,
    pub tell: mpsc::Sender<News>,
}

impl Asker<'_> {
    /// Finds every account, enters them side by side, and looks at all of their places.
    pub(super) async fn ask_all(&self) {
        let (hubs, visits) = self.visits().await;
        let total = visits.len();
        let places = Semaphore::new(PLACES);
        let (hubs, places) = (&hubs, &places);
        let visits = visits.into_iter().map(|visit| async move { self.visit(&hubs[visit.hub], &visit, places).await });
        let mut visiting = stream::iter(visits).buffer_unordered(ACCOUNTS);
        let mut done = 0;
        loop {
            match tokio::time::timeout(Duration::from_millis(250), visiting.next()).await {
                Ok(Some(())) => done += 1,
                Ok(None) => break,
                Err(_) => {}
            }
            self.progress.show(self.pace.counts(), done, total);
        }
    }

    /// Whoever listens is there until the asking ends.
    async fn tell(&self, news: News) {
        let _ = self.tell.send(news).await;
    }

    /// Jobs that go with the same credentials enter an account once, together.
    async fn visits(&self) -> (Vec<Hub>, Vec<Visit>) {
        let mut groups: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (at, job) in self.jobs.iter().enumerate() {
            groups.entry(credentials(job.args)).or_default().push(at);
        }
        let mut hubs = Vec::new();
        let mut visits: BTreeMap<(String, usize), Visit> = BTreeMap::new();
        let mut listed: BTreeSet<String> = BTreeSet::new();
        for jobs in groups.into_values() {
            let hub = match self.hub(self.jobs[jobs[0]].args).await {
                Ok(hub) => hub,
                Err(error) => {
                    self.tell(News::Failed { jobs, error }).await;
                    continue;
                }
            };
            let mut rosters: BTreeMap<String, Result<Roster, Error>> = BTreeMap::new();
            for at in jobs {
                let reach = &self.jobs[at].reach;
                let roster = match rosters.entry(choice(reach)) {
                    Entry::Occupied(known) => known.into_mut(),
                    Entry::Vacant(unknown) => unknown.insert(hub.roster(reach).await),
                };
                match roster {
                    Err(error) => self.tell(News::Failed { jobs: vec![at], error: error.clone() }).await,
                    Ok(roster) => {
                        self.keep(&hub, roster, &mut listed).await;
                        for account in &roster.accounts {
                            if self.sweep.shard.is_none_or(|shard| shard.has(account)) {
                                let visit = visits.entry((account.clone(), hubs.len())).or_insert_with(|| Visit {
                                    hub: hubs.len(),
                                    account: account.clone(),
                                    name: roster.names.get(account).cloned(),
                                    jobs: Vec::new(),
                                });
                                visit.jobs.push(at);
                            }
                        }
                    }
                }
            }
            hubs.push(hub);
        }
        (hubs, visits.into_values().collect())
    }

    async fn hub(&self, args: &LiveArgs) -> Result<Hub, Error> {
        let mut options = super::options(args);
        // What the run may do at once holds for all clients together; what a source says of itself, for it.
        options.bounds.overall = args.concurrency.unwrap_or(usize::MAX);
        options.pace = Some(self.pace.clone());
        Hub::find(&Client::load(&options).await?).await
    }

    /// Who is in an organization is kept once, by the first of the machines that share the work.
    async fn keep(&self, hub: &Hub, roster: &Roster, listed: &mut BTreeSet<String>) {
        if !self.sweep.fleet || self.sweep.shard.is_some_and(|shard| shard.number != 1) {
            return;
        }
        for part in &roster.parts {
            let pass = part.pass(&hub.account, hub.partition, self.now);
            if listed.insert(pass.scope.to_string()) {
                self.tell(News::Listed(Box::new(pass))).await;
            }
        }
    }

    async fn visit(&self, hub: &Hub, visit: &Visit, places: &Semaphore) {
        let account = &visit.account;
        self.tell(News::Begun { account: account.clone(), name: visit.name.clone() }).await;
        let begun = (self.clock)();
        let unreached = |jobs, error| News::Unreached { account: account.clone(), jobs, at: begun, error };
        // The role is of the credentials, which all of these jobs share.
        let client = match hub.enter(account, &self.jobs[visit.jobs[0]].reach).await {
            Ok(client) => client,
            Err(error) => return self.tell(unreached(visit.jobs.clone(), error)).await,
        };
        let mut looks = Vec::new();
        let mut known: BTreeMap<_, Result<Vec<String>, Error>> = BTreeMap::new();
        for &at in &visit.jobs {
            let job = &self.jobs[at];
            let reach = &job.reach;
            let asked_for = (&reach.regions, reach.all_regions, &reach.exclude_regions);
            let regions = match known.entry(asked_for) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(unknown) => unknown.insert(accounts::regions(&client, reach).await),
            };
            match regions {
                Ok(regions) => {
                    let places = places_of(job.observer, &job.asked, &client, account, hub.partition, regions, begun);
                    looks.extend(places.into_iter().map(|here| (at, here)));
                }
                Err(error) => self.tell(unreached(vec![at], error.clone())).await,
            }
        }
        let looking = looks.into_iter().map(|(job, mut here)| async move {
            let _place = places.acquire().await.expect("this semaphore is never closed");
            // A place may wait for its turn for most of an hour. What changed in that time was seen, and who changed it
            // is looked for before the time that the version is of.
            here.taken_at = (self.clock)();
            let Job { observer, source, asked, .. } = &self.jobs[job];
            let passes = observer.observe(&here, source, asked).await;
            // The place is held until somebody has taken this, or asking would go on while answers pile up.
            self.tell(News::Looked { job, here: Box::new(here), passes }).await;
        });
        stream::iter(looking).buffer_unordered(PLACES).collect::<Vec<()>>().await;
    }
}

/// Every place that an observer looks at in an account.
pub(super) fn places_of(
    observer: Observer,
    asked: &Asked,
    client: &Client,
    account: &str,
    partition: &'static str,
    regions: &[String],
    now: Timestamp,
) -> Vec<Here> {
    let mut places = Vec::new();
    for unit in observer.units(asked) {
        let regions = match unit {
            Unit::Global => vec![None],
            Unit::Regional => regions.iter().map(|region| Some(region.clone())).collect(),
        };
        places.extend(regions.into_iter().map(|region| Here {
            client: region.as_deref().map_or_else(|| client.clone(), |name| client.in_region(name)),
            account: account.to_owned(),
            region,
            partition,
            taken_at: now,
        }));
    }
    places
}

/// What must be the same for two sources to use one client, and to enter an account together.
fn credentials(args: &LiveArgs) -> String {
    let LiveArgs { profile, role_arns, external_id, role_name, endpoint_url, regions, .. } = args;
    let LiveArgs { attempts, max_calls, concurrency, per_account, per_region, per_service, .. } = args;
    let whose = (profile, role_arns, external_id, role_name, endpoint_url, regions.first());
    format!("{whose:?} {:?}", (attempts, max_calls, concurrency, per_account, per_region, per_service))
}

/// What must be the same for two sources to mean the same accounts.
fn choice(reach: &Reach) -> String {
    let Reach { accounts, organization, parents, exclude_accounts, exclude_parents, .. } = reach;
    format!("{:?}", (accounts, organization, parents, exclude_accounts, exclude_parents))
}
