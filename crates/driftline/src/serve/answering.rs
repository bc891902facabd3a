//! The store's answers to what pages ask.
//!
//! Every answer opens the store for itself, so that nothing waits for a snapshot that is being computed; what was
//! judged is kept for as long as its revision is the newest.

use std::collections::VecDeque;
use std::fmt::Debug;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use driftline_core::verdict::Status;
use driftline_core::{BaselineName, RuleBook};
use driftline_store::Store;
use driftline_store::detect::{Drift, Finding, Pair, Question};
use driftline_web::model::{
    Acceptance, Accepted, Between, Posture, Resource, Snapshot, SourceVersions, Topology, Version,
};
use driftline_web::{Answers, Refusal, RefusalKind};

use super::course::Course;
use super::telling::{failed, finding_id, findings, parse_ticket, refused};
use super::{graph, one, snapshot};
use crate::baseline::{self, accepting, values};
use crate::drift::{Points, question};
use crate::error::{CommandError, CommandResult};
use crate::report::Expected;
use crate::settings::Settings;
use crate::surroundings::clock;

/// How many versions of a source are listed.
const VERSIONS: usize = 200;
/// How many differences between two points are listed.
const COMPARED: usize = 20_000;
/// After how many looks a store is opened anew: it may be another one in the same place.
const LOOKS: u32 = 60;

pub(super) struct Answering {
    settings: Mutex<Settings>,
    baseline: Option<String>,
    watched: Mutex<Watched>,
    judged: Mutex<Option<Arc<Judged>>>,
    /// Held by whoever is judging.
    judging: Mutex<()>,
    pub(super) course: Mutex<Course>,
    pub(super) graphs: Recent<Topology>,
    compliance: Recent<Posture>,
    compared: Recent<Between>,
}

/// The store as it was last looked at.
#[derive(Default)]
struct Watched {
    store: Option<Store>,
    looks: u32,
}

/// The answer to the usual question at one revision.
pub(super) struct Judged {
    revision: String,
    pub name: BaselineName,
    /// Streams that the baseline speaks of.
    pub question: Question,
    /// Streams that it does not speak of: nothing in them can be judged.
    pub unpinned: Vec<Pair>,
    pub drift: Drift,
    /// The rules it was judged by; what it excused names them by their place in it.
    pub book: RuleBook,
}

impl Judged {
    /// Whether the versions it speaks of are still there, and the baseline is.
    fn is_there(&self, store: &Store) -> bool {
        let has = |pair: &Pair| {
            let numbers = [pair.expected, Some(pair.live)].into_iter().flatten();
            numbers.into_iter().all(|number| store.catalog().version(&pair.stream, number).is_ok())
        };
        store.catalog().baseline(&self.name).is_ok() && self.question.pairs.iter().chain(&self.unpinned).all(has)
    }
}

/// The last few answers, by what was asked at which revision.
pub(super) struct Recent<T>(Mutex<VecDeque<(String, Arc<T>)>>);

impl<T> Default for Recent<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T> Recent<T> {
    const KEPT: usize = 3;

    pub(super) fn get_or(&self, key: &str, make: impl FnOnce() -> Result<T, Refusal>) -> Result<Arc<T>, Refusal> {
        if let Some((_, found)) = lock(&self.0).iter().find(|(known, _)| known == key) {
            return Ok(found.clone());
        }
        let made = Arc::new(make()?);
        let mut kept = lock(&self.0);
        kept.push_front((key.to_owned(), made.clone()));
        kept.truncate(Self::KEPT);
        Ok(made)
    }
}

/// What a thread that broke down left behind is whole: it is only ever replaced.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A store that is there, with the settings of now.
pub(super) struct Open {
    pub settings: Settings,
    pub store: Store,
    pub revision: String,
    pub stamp: String,
}

impl Answering {
    pub(super) fn new(settings: Settings, baseline: Option<String>) -> Self {
        Self {
            settings: Mutex::new(settings),
            baseline,
            watched: Mutex::default(),
            judged: Mutex::default(),
            judging: Mutex::default(),
            course: Mutex::default(),
            graphs: Recent::default(),
            compliance: Recent::default(),
            compared: Recent::default(),
        }
    }

    pub(super) fn settings(&self) -> Result<Settings, Refusal> {
        lock(&self.settings).again(clock()).map_err(failed)
    }

    pub(super) fn name(&self, settings: &Settings) -> Result<BaselineName, Refusal> {
        settings.baseline(self.baseline.as_deref()).map_err(failed)
    }

    /// Changes when the configuration file does: its rules decide what is drift.
    fn stamp(&self) -> String {
        let settings = lock(&self.settings);
        let path = settings.config.path.clone().unwrap_or_else(|| crate::config::FILE_NAME.into());
        let Ok(about) = std::fs::metadata(path) else { return "0".into() };
        let modified = about.modified().ok().and_then(|time| jiff::Timestamp::try_from(time).ok());
        format!("{:x}.{:x}", modified.map_or(0, jiff::Timestamp::as_nanosecond), about.len())
    }

    /// The rules in force are part of it: a rule that expires makes another revision, like one that is edited.
    fn revision_of(stamp: &str, settings: &Settings, store: Option<&Store>) -> String {
        let expired = settings.config.rules.iter().filter(|rule| rule.has_expired(settings.now)).count();
        let stamp = format!("{stamp}.{expired}");
        match store {
            None => format!("none-{stamp}"),
            Some(store) => {
                let tip = store.catalog().tip();
                format!("{}-{}-{stamp}", store.catalog().records(), tip.get(..12).unwrap_or(tip))
            }
        }
    }

    /// The store; nothing if there is none yet.
    pub(super) fn open(&self) -> Result<(Settings, Option<Store>, String, String), Refusal> {
        // Before the file is read: an edit in between then only means another look.
        let stamp = self.stamp();
        let settings = self.settings()?;
        let store = settings.store_if_any().map_err(failed)?;
        let revision = Self::revision_of(&stamp, &settings, store.as_ref());
        Ok((settings, store, revision, stamp))
    }

    pub(super) fn opened(&self) -> Result<Open, Refusal> {
        let (settings, store, revision, stamp) = self.open()?;
        let store = store.ok_or_else(|| {
            let error = CommandError::new("there is no store yet");
            refused(RefusalKind::NotYet, error.hint("`driftline observe file FILE` takes the first observation"))
        })?;
        Ok(Open { settings, store, revision, stamp })
    }

    /// What is drifted, judged once for each revision; nothing without a baseline.
    pub(super) fn judged(&self, open: &Open) -> Result<Option<Arc<Judged>>, Refusal> {
        let name = self.name(&open.settings)?;
        if open.store.catalog().baseline(&name).is_err() {
            return Ok(None);
        }
        // Whoever else wants it waits here rather than judging, too.
        let _judging = lock(&self.judging);
        if let Some(known) = lock(&self.judged).clone().filter(|known| known.revision == open.revision) {
            return Ok(Some(known));
        }
        let all = open.store.question(&name, None).map_err(failed)?;
        let (pinned, unpinned) = all.pairs.into_iter().partition(|pair| pair.expected.is_some());
        let question = Question { pairs: pinned, accepted: all.accepted };
        let drift = open.store.drift(&question, &open.settings.rules.book).map_err(failed)?;
        let (revision, book) = (open.revision.clone(), open.settings.rules.book.clone());
        let judged = Arc::new(Judged { revision, name, question, unpinned, drift, book });
        *lock(&self.judged) = Some(judged.clone());
        Ok(Some(judged))
    }

    /// What was judged last, so that nobody waits for what is being judged now; the first one is waited for.
    pub(super) fn last_judged(&self, open: &Open) -> Result<Option<Arc<Judged>>, Refusal> {
        let name = self.name(&open.settings)?;
        let last = lock(&self.judged).clone().filter(|last| last.name == name && last.is_there(&open.store));
        match last {
            Some(last) => Ok(Some(last)),
            None => self.judged(open),
        }
    }

    /// Two points as somebody wrote them: `v3`, a time, `now`, `baseline:main`.
    pub(super) fn points(&self, open: &Open, from: &str, to: &str) -> Result<(Question, Expected), Refusal> {
        let bad = |error: CommandError| refused(RefusalKind::BadQuestion, error);
        if to.starts_with("baseline:") {
            return Err(bad(CommandError::new("a baseline is what something is held against")
                .hint("give it as the first of the two points")));
        }
        let Open { settings, store, .. } = open;
        let Some(name) = from.strip_prefix("baseline:") else {
            let between = [from.to_owned(), to.to_owned()];
            return question(settings, store, Points { between: Some(&between), ..Points::default() }).map_err(bad);
        };
        let baseline = Some(name).filter(|name| !name.is_empty()).or(self.baseline.as_deref());
        let newest = matches!(to, "now" | "latest");
        if let Some(version) = to.strip_prefix('v').and_then(|number| number.parse::<u64>().ok()) {
            let (mut question, expected) =
                question(settings, store, Points { baseline, ..Points::default() }).map_err(bad)?;
            let has = |pair: &Pair| store.catalog().version(&pair.stream, version).is_ok();
            question.pairs.retain(has);
            question.pairs.iter_mut().for_each(|pair| pair.live = version);
            if question.pairs.is_empty() {
                let error = CommandError::new(format!("no source has a version {version}"));
                return Err(bad(error.hint("the list of versions has those there are")));
            }
            return Ok((question, expected));
        }
        let at = Some(to).filter(|_| !newest);
        question(settings, store, Points { baseline, at, ..Points::default() }).map_err(bad)
    }

    /// What an answer about two points is kept under: `24h` is another point tomorrow, so the versions it means count.
    fn key(&self, open: &Open, from: Option<&str>, to: Option<&str>) -> String {
        let meant = match (from, to) {
            (None, None) => None,
            _ => self.points(open, from.unwrap_or("baseline:"), to.unwrap_or("now")).ok(),
        };
        let pairs = meant.map(|(question, _)| question.pairs);
        format!("{} {from:?} {to:?} {pairs:?}", open.revision)
    }

    fn compare(&self, open: &Open, from: &str, to: &str) -> Result<Between, Refusal> {
        let (question, expected) = self.points(open, from, to)?;
        let drift = open.store.drift(&question, &open.settings.rules.book).map_err(failed)?;
        let found = findings(&open.settings, &drift, &question.pairs, COMPARED).map_err(failed)?;
        Ok(Between {
            from: match &expected {
                Expected::Baseline { name, .. } => format!("baseline {name}"),
                Expected::Versions { .. } => from.to_owned(),
            },
            to: to.to_owned(),
            summary: found.summary,
            findings: found.listed,
            left_out: found.left_out,
        })
    }

    fn take(&self, acceptance: &Acceptance) -> Result<Accepted, Refusal> {
        let mut open = self.opened()?;
        let Some(judged) = self.judged(&open)? else {
            return Err(refused(RefusalKind::NotYet, CommandError::new("there is no baseline to accept into")));
        };
        let gone = |what: &str| {
            let error = CommandError::new(format!("{what} is no longer as it was shown"));
            refused(RefusalKind::Conflict, error.hint("load the page again, look at what is there now, and repeat"))
        };
        let mut by_id = std::collections::BTreeMap::new();
        for finding in &judged.drift.findings {
            if matches!(finding.judgement.status, Status::Drifted | Status::Unknown) {
                by_id.insert(finding_id(&finding.stream.to_string(), &finding.key), finding);
            }
        }
        let mut chosen: Vec<(&Finding, u64)> = Vec::new();
        for ticket in &acceptance.findings {
            let (id, version) = parse_ticket(ticket).ok_or_else(|| {
                let error = CommandError::new(format!("`{ticket}` is not the ticket of a finding"));
                refused(RefusalKind::BadQuestion, error.hint("take it from `ticket` of a finding"))
            })?;
            chosen.push((*by_id.get(id).ok_or_else(|| gone("one of the findings"))?, version));
        }
        check_unchanged(&open.store, &judged.question, &chosen)
            .map_err(failed)?
            .map_or(Ok(()), |key| Err(gone(&key)))?;
        let findings: Vec<&Finding> = chosen.iter().map(|(finding, _)| *finding).collect();
        let why = baseline::Acceptance { reason: &acceptance.reason, by: &acceptance.by, at: open.settings.now };
        let accepted = accepting(&open.store, &judged.question, &findings, None, &why).map_err(failed)?;
        let count = accepted.len();
        open.store.accept(&judged.name, &accepted, open.settings.now).map_err(failed)?;
        Ok(Accepted { accepted: count, revision: Self::revision_of(&open.stamp, &open.settings, Some(&open.store)) })
    }
}

/// The first of the findings whose resource is another than in the version that was shown.
fn check_unchanged(store: &Store, question: &Question, chosen: &[(&Finding, u64)]) -> CommandResult<Option<String>> {
    for pair in &question.pairs {
        let mut versions: Vec<u64> = chosen.iter().map(|(_, version)| *version).collect();
        versions.sort_unstable();
        versions.dedup();
        for version in versions.into_iter().filter(|version| *version != pair.live) {
            let of = |(finding, seen): &&(&Finding, u64)| *finding.stream == pair.stream && *seen == version;
            let findings: Vec<&Finding> = chosen.iter().filter(of).map(|(finding, _)| *finding).collect();
            if findings.is_empty() {
                continue;
            }
            if store.catalog().version(&pair.stream, version).is_err() {
                return Ok(Some(findings[0].key.id.clone()));
            }
            let (seen, live) = (
                values(store, &pair.stream, Some(version), &findings)?,
                values(store, &pair.stream, Some(pair.live), &findings)?,
            );
            let other = findings.iter().find(|finding| seen.get(&finding.key) != live.get(&finding.key));
            if let Some(finding) = other {
                return Ok(Some(format!("`{}`", finding.key.id)));
            }
        }
    }
    Ok(None)
}

impl Answers for Answering {
    fn revision(&self) -> Result<String, Refusal> {
        let mut watched = lock(&self.watched);
        watched.looks += 1;
        let stamp = self.stamp();
        let settings = self.settings()?;
        let there = settings.store.folder().is_none_or(std::path::Path::exists);
        let fresh = watched.looks < LOOKS && there;
        // Usually one file that is not there yet is all that is looked for.
        let current = fresh && watched.store.as_mut().is_some_and(|store| store.refresh().is_ok());
        if !current {
            watched.looks = 0;
            watched.store = settings.store_if_any().map_err(failed)?;
        }
        Ok(Self::revision_of(&stamp, &settings, watched.store.as_ref()))
    }

    fn snapshot(&self) -> Result<Snapshot, Refusal> {
        snapshot::take(self)
    }

    fn resource(&self, id: &str) -> Result<Resource, Refusal> {
        one::resource(self, &self.opened()?, id)
    }

    fn topology(&self, from: Option<&str>, to: Option<&str>) -> Result<Arc<Topology>, Refusal> {
        let open = self.opened()?;
        let key = self.key(&open, from, to);
        self.graphs.get_or(&key, || graph::topology(self, &open, from, to))
    }

    fn posture(&self) -> Result<Arc<Posture>, Refusal> {
        let open = self.opened()?;
        // Its course ends now, and begins so many days ago.
        let day = open.settings.now.to_zoned(jiff::tz::TimeZone::UTC).date();
        self.compliance.get_or(&format!("{} {day}", open.revision), || graph::posture(self, &open))
    }

    fn versions(&self) -> Result<Vec<SourceVersions>, Refusal> {
        let (_, store, ..) = self.open()?;
        let Some(store) = store else { return Ok(Vec::new()) };
        let catalog = store.catalog();
        let told = catalog.streams().map(|(id, stream)| {
            let pinned_by = |number: u64| {
                let pins = catalog.baselines().filter(|(_, baseline)| baseline.pins.get(id) == Some(&number));
                pins.map(|(name, _)| name.to_string()).collect()
            };
            let version = |version: &driftline_store::Version| Version {
                number: version.number,
                taken_at: version.taken_at,
                resources: version.rows,
                added: version.changes.add,
                changed: version.changes.change,
                removed: version.changes.remove,
                complete_extents: version.complete_extents as u64,
                partial_extents: version.partial_extents as u64,
                pinned_by: pinned_by(version.number),
            };
            let all = stream.versions().count();
            SourceVersions {
                source: id.to_string(),
                versions: stream.versions().rev().take(VERSIONS).map(version).collect(),
                left_out: all.saturating_sub(VERSIONS) as u64,
            }
        });
        Ok(told.collect())
    }

    fn between(&self, from: &str, to: &str) -> Result<Arc<Between>, Refusal> {
        let open = self.opened()?;
        let key = self.key(&open, Some(from), Some(to));
        self.compared.get_or(&key, || self.compare(&open, from, to))
    }

    fn accept(&self, acceptance: &Acceptance) -> Result<Accepted, Refusal> {
        self.take(acceptance)
    }
}

impl Debug for Answering {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Answering").finish_non_exhaustive()
    }
}
