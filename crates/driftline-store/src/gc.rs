//! Retention: versions that nobody needs are folded into the next one that is kept, then files are deleted.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use driftline_core::StreamId;
use jiff::{SignedDuration, Timestamp};

use crate::error::StoreError;
use crate::location::Listed;
use crate::log::{self, FileRef, Rewritten, Step, Thinned};
use crate::record::count_changes;
use crate::segment::{Row, Written};
use crate::store::{COVERAGE, PROBES, SEGMENTS, Store, VIEWS, coverage_path};

/// What to keep. The newest version and every version a baseline pins are always kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// Versions taken within this time are kept, and events that happened within it.
    pub keep_for: SignedDuration,
    /// ... and at least this many of the newest.
    pub keep_last: usize,
    /// Files that nothing refers to are only deleted when they are older than this: a commit or a reader may be
    /// using them.
    pub grace: SignedDuration,
}

/// What retention did, or would do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Collected {
    /// How many events of each stream were too old to keep.
    pub forgotten: BTreeMap<StreamId, u64>,
    pub dropped: BTreeMap<StreamId, Vec<u64>>,
    pub pinned: BTreeMap<StreamId, Vec<u64>>,
    pub files_deleted: usize,
    pub bytes_deleted: u64,
    /// Files that nothing refers to but that are too young to delete.
    pub files_waiting: usize,
    /// How many small change files became how many larger ones.
    pub packed: (usize, usize),
}

impl Store {
    pub fn collect(&mut self, retention: Retention, now: Timestamp, dry_run: bool) -> Result<Collected, StoreError> {
        let start = now.checked_sub(retention.keep_for).unwrap_or(Timestamp::MIN);
        let mut collected = Collected::default();
        if dry_run {
            self.plan(retention, now, &mut collected);
            collected.forgotten = self.forgettable(start)?;
            collected.packed = self.packable();
            return Ok(collected);
        }
        let forgotten = self.forget(start, now)?;
        let plan = self.plan(retention, now, &mut collected);
        if !plan.is_empty() {
            self.append(now, |store| {
                let mut again = Collected::default();
                let plan = store.plan(retention, now, &mut again);
                collected = again;
                store.thin(&plan)
            })?;
        }
        let packed = self.pack(now)?;
        self.sweep(retention.grace, now, &mut collected)?;
        collected.packed = packed;
        collected.forgotten = forgotten;
        Ok(collected)
    }

    /// For each stream that loses versions, those it keeps.
    fn plan(
        &self,
        retention: Retention,
        now: Timestamp,
        collected: &mut Collected,
    ) -> BTreeMap<StreamId, BTreeSet<u64>> {
        let start = now.checked_sub(retention.keep_for).unwrap_or(Timestamp::MIN);
        let mut plan = BTreeMap::new();
        for (id, stream) in self.catalog.all_streams() {
            if stream.is_events() {
                // The newest version has every event that is kept; an earlier one could only have those that are not.
                let head = stream.head().map(|head| head.number);
                let dropped: Vec<u64> =
                    stream.versions().map(|version| version.number).filter(|number| Some(*number) != head).collect();
                if !dropped.is_empty() {
                    collected.dropped.insert(id.clone(), dropped);
                    plan.insert(id.clone(), head.into_iter().collect());
                }
                continue;
            }
            let pinned: BTreeSet<u64> =
                self.catalog.baselines().filter_map(|(_, baseline)| baseline.pins.get(id).copied()).collect();
            let newest: BTreeSet<u64> =
                stream.versions().rev().take(retention.keep_last.max(1)).map(|version| version.number).collect();
            let (kept, dropped): (Vec<_>, Vec<_>) = stream.versions().partition(|version| {
                version.taken_at >= start || newest.contains(&version.number) || pinned.contains(&version.number)
            });
            let only_pinned =
                kept.iter().filter(|version| version.taken_at < start && !newest.contains(&version.number));
            let only_pinned: Vec<u64> = only_pinned.map(|version| version.number).collect();
            if !only_pinned.is_empty() {
                collected.pinned.insert(id.clone(), only_pinned);
            }
            if !dropped.is_empty() {
                collected.dropped.insert(id.clone(), dropped.iter().map(|version| version.number).collect());
                plan.insert(id.clone(), kept.iter().map(|version| version.number).collect());
            }
        }
        plan
    }

    fn thin(&self, plan: &BTreeMap<StreamId, BTreeSet<u64>>) -> Result<Step, StoreError> {
        let mut streams = BTreeMap::new();
        let mut removed: Vec<FileRef> = Vec::new();
        for (id, kept) in plan {
            let stream = self.catalog.stream(id)?;
            let mut thinned = Thinned::default();
            for version in stream.versions().filter(|version| !kept.contains(&version.number)) {
                thinned.dropped.push(version.number);
                thinned.coverage.push(version.coverage.clone());
                removed.extend(version.delta.iter().chain(&version.base).cloned());
            }
            thinned.coverage.sort_unstable();
            thinned.coverage.dedup();
            let mut previous: Option<u64> = None;
            for &number in kept {
                let version = self.catalog.version(id, number)?;
                match previous {
                    // The oldest kept version starts the chain.
                    None => {
                        let base = match version.base {
                            Some(_) => None,
                            None => Some(self.write_full(id, number, &BTreeMap::new(), number, version.taken_at)?),
                        };
                        removed.extend(version.delta.clone());
                        thinned.rewritten.push(Rewritten {
                            version: number,
                            delta: None,
                            base,
                            changes: version.changes,
                        });
                    }
                    Some(previous) if stream.between(previous, number).count() > 1 => {
                        let folded = self.fold(id, previous, number)?;
                        let mut rows: Vec<Row> = folded.into_values().map(|(row, _)| row).collect();
                        rows.iter_mut().for_each(Row::tell_changes);
                        removed.extend(version.delta.clone());
                        let delta = if rows.is_empty() {
                            None
                        } else {
                            let written = rows.iter().filter_map(|row| Written::row(row, number));
                            Some(self.write_segment(id, number, version.taken_at, written, rows.len() as u64)?)
                        };
                        let changes = count_changes(rows.iter());
                        thinned.rewritten.push(Rewritten { version: number, delta, base: None, changes });
                    }
                    Some(_) => {}
                }
                previous = Some(number);
            }
            self.unshare(id, &mut thinned, &removed)?;
            streams.insert(id.clone(), thinned);
        }
        removed.sort_by(|a, b| a.path.cmp(&b.path));
        removed.dedup_by(|a, b| a.path == b.path);
        for file in &mut removed {
            file.part = None;
        }
        Ok(Step::Thin { streams, removed })
    }

    /// A version that shares a file with one that goes gets its rows in a file of its own: whoever reads the table must
    /// not find rows of a version that is no more.
    fn unshare(&self, id: &StreamId, thinned: &mut Thinned, removed: &[FileRef]) -> Result<(), StoreError> {
        let gone: BTreeSet<String> = removed.iter().map(|file| file.path.clone()).collect();
        let told: BTreeSet<u64> =
            thinned.dropped.iter().copied().chain(thinned.rewritten.iter().map(|version| version.version)).collect();
        for version in self.catalog.stream(id)?.versions().filter(|version| !told.contains(&version.number)) {
            let Some(delta) = version.delta.as_ref().filter(|delta| gone.contains(&delta.path)) else { continue };
            let rows = self.read_whole(delta)?.rows()?;
            let written = rows.iter().filter_map(|row| Written::row(row, version.number));
            let own = self.write_segment(id, version.number, version.taken_at, written, delta.rows)?;
            let (delta, base) = (Some(own), None);
            thinned.rewritten.push(Rewritten { version: version.number, delta, base, changes: version.changes });
        }
        thinned.rewritten.sort_by_key(|version| version.version);
        Ok(())
    }

    /// Deletes files that no version refers to and that are older than the grace period.
    fn sweep(&self, grace: SignedDuration, now: Timestamp, collected: &mut Collected) -> Result<(), StoreError> {
        let mut needed: BTreeSet<String> = self.catalog.files().map(|file| file.path.clone()).collect();
        for stream in self.catalog.streams.values() {
            needed.extend(stream.versions().map(|version| coverage_path(&version.coverage)));
        }
        let mut views = BTreeSet::new();
        for listed in self.location.list(&format!("{VIEWS}/net"))? {
            views.insert(listed.path);
        }
        let pins: BTreeSet<(String, u64)> = self
            .catalog
            .baselines()
            .flat_map(|(_, baseline)| baseline.pins.iter().map(|(stream, pin)| (stream.to_string(), *pin)))
            .collect();
        // A view is worth keeping while its start is pinned and its end is still a version.
        let useful = |path: &str| {
            let rest = path.strip_prefix(&format!("{VIEWS}/net/")).unwrap_or(path);
            let Some((stream, file)) = rest.rsplit_once('/') else { return false };
            let mut parts = file.split('-').map(|part| part.parse::<u64>().ok());
            match (parts.next().flatten(), parts.next().flatten()) {
                (Some(from), Some(to)) => {
                    // A view ends at the last version that changed something.
                    let versions = stream.parse().ok().and_then(|id| self.catalog.streams.get(&id));
                    let last = versions.and_then(|all| all.versions().rev().find(|version| version.delta.is_some()));
                    pins.contains(&(stream.to_owned(), from)) && last.is_some_and(|last| last.number == to)
                }
                _ => false,
            }
        };
        let before = now.checked_sub(grace).unwrap_or(Timestamp::MIN);
        // Without grace nobody is waited for, not even who came a moment ago.
        let released = if grace.is_positive() { self.released_since(before)? } else { BTreeSet::new() };
        let (mut gone, mut unnamed) = (Vec::new(), Vec::new());
        for folder in [SEGMENTS, COVERAGE, VIEWS, PROBES] {
            for listed in self.location.list(folder)? {
                let keep = needed.contains(&listed.path)
                    || (views.contains(&listed.path) && useful(&listed.path))
                    || listed.path.starts_with(&format!("{VIEWS}/catalog/"))
                    // A commit replaces its stream's index itself.
                    || listed.path.starts_with(&format!("{VIEWS}/index/"));
                if keep {
                    continue;
                }
                if listed.modified > before || released.contains(&listed.path) {
                    collected.files_waiting += 1;
                    continue;
                }
                collected.files_deleted += 1;
                collected.bytes_deleted += listed.size;
                match folder {
                    COVERAGE => unnamed.push(listed),
                    _ => gone.push(listed.path),
                }
            }
        }
        self.location.delete_all(&gone)?;
        self.delete_coverage(unnamed, collected)?;
        self.sweep_staged(before, collected);
        Ok(())
    }

    /// Deletes coverage that nothing names. Equal coverage is one file: a commit that is under way may have found it
    /// and name it any moment. Then it is put back here, or by that commit, which looks again when its record is there.
    fn delete_coverage(&self, files: Vec<Listed>, collected: &mut Collected) -> Result<(), StoreError> {
        if files.is_empty() {
            return Ok(());
        }
        let mut deleted: Vec<(Listed, Bytes)> = Vec::new();
        let named = self.coverage_by_now()?;
        for file in files {
            if named.contains(&file.path) {
                (collected.files_deleted, collected.bytes_deleted) =
                    (collected.files_deleted - 1, collected.bytes_deleted - file.size);
            } else if let Some(bytes) = self.location.get_if_present(&file.path)? {
                self.location.delete(&file.path)?;
                deleted.push((file, bytes));
            }
        }
        let named = self.coverage_by_now()?;
        for (file, bytes) in deleted.into_iter().filter(|(file, _)| named.contains(&file.path)) {
            self.location.put_own(&file.path, bytes)?;
            (collected.files_deleted, collected.bytes_deleted) =
                (collected.files_deleted - 1, collected.bytes_deleted - file.size);
        }
        Ok(())
    }

    /// The coverage that some version names, those included that came since this began.
    fn coverage_by_now(&self) -> Result<BTreeSet<String>, StoreError> {
        let mut latest = self.clone();
        latest.refresh()?;
        let versions = latest.catalog.streams.values().flat_map(crate::catalog::Stream::versions);
        Ok(versions.map(|version| coverage_path(&version.coverage)).collect())
    }

    /// Files that were needed until after a time: whoever had read the log by then may still open them, however old
    /// the files themselves are. When a record came is what the place says: its writer's clock may be wrong, and it
    /// may have begun long before.
    fn released_since(&self, time: Timestamp) -> Result<BTreeSet<String>, StoreError> {
        let mut released = BTreeSet::new();
        let mut end = self.catalog.next;
        while end > 0 {
            let first = end - self.location.at_once(end);
            let records = self.location.records(first, end - first)?;
            end = first;
            let mut older = false;
            for ((bytes, came), number) in records.iter().zip(first..) {
                if *came <= time {
                    older = true;
                    continue;
                }
                match log::decode(number, bytes, &self.name())?.step {
                    Step::Thin { streams, removed } => {
                        released.extend(removed.into_iter().map(|file| file.path));
                        let coverage = streams.into_values().flat_map(|one| one.coverage);
                        released.extend(coverage.map(|name| coverage_path(&name)));
                    }
                    Step::Pack { removed, .. } => released.extend(removed.into_iter().map(|file| file.path)),
                    _ => {}
                }
            }
            if older {
                break;
            }
        }
        Ok(released)
    }

    /// Half-written files that a killed commit left: `object_store` stages a put beside its target as `name#n`.
    fn sweep_staged(&self, before: Timestamp, collected: &mut Collected) {
        let mut folders: Vec<_> = self.location.place().folder().map(ToOwned::to_owned).into_iter().collect();
        while let Some(folder) = folders.pop() {
            let Ok(entries) = std::fs::read_dir(&folder) else { continue };
            for entry in entries.flatten() {
                let Ok(data) = entry.metadata() else { continue };
                if data.is_dir() {
                    folders.push(entry.path());
                    continue;
                }
                let name = entry.file_name().to_string_lossy().into_owned();
                let staged = name.rsplit_once('#').is_some_and(|(_, n)| n.bytes().all(|byte| byte.is_ascii_digit()));
                let old = data
                    .modified()
                    .ok()
                    .and_then(|time| Timestamp::try_from(time).ok())
                    .is_some_and(|time| time <= before);
                if staged && old && std::fs::remove_file(entry.path()).is_ok() {
                    collected.files_deleted += 1;
                    collected.bytes_deleted += data.len();
                }
            }
        }
    }
}
