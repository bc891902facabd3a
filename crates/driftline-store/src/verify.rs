//! Reading everything again and checking that it adds up.

use std::collections::{BTreeMap, BTreeSet};

use driftline_core::{ContentId, Properties, ResourceKey, Value};

use crate::catalog::Catalog;
use crate::error::StoreError;
use crate::index::is_index_named_after;
use crate::location::Location;
use crate::log;
use crate::pack::LastPack;
use crate::segment::{Image, Row};
use crate::store::{COVERAGE, StateDigest, Store, VIEWS, decode_coverage, is_named_after};

/// What was read, when all of it was good.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verified {
    pub records: u64,
    pub versions: usize,
    pub files: usize,
    pub bytes: u64,
    pub rows: u64,
    /// Files that no version refers to, left by a commit that was cut off; harmless, and `gc` deletes them.
    pub orphans: usize,
}

impl Store {
    /// Re-reads every file of the store and recomputes every hash; the first thing that is wrong is the error.
    pub fn verify(&self) -> Result<Verified, StoreError> {
        // Copies on this machine say nothing of what is there.
        let location = self.location.without_copies();
        let catalog = self.catalog.clone();
        Store { location, catalog, tuning: self.tuning, packs: LastPack::default() }.verify_all()
    }

    fn verify_all(&self) -> Result<Verified, StoreError> {
        let mut verified = Verified::default();
        let catalog = replay(&self.location, &self.name(), &mut verified)?;
        let mut named = BTreeSet::new();
        for file in catalog.files() {
            if !named.insert(file.path.clone()) {
                continue;
            }
            let bytes = self.location.get(&file.path)?;
            file.checksums
                .verify(&bytes, file.size)
                .map_err(|reason| StoreError::damaged(file.path.as_str(), reason))?;
            verified.files += 1;
            verified.bytes += file.size;
        }
        for listed in self.location.list(COVERAGE)? {
            let bytes = self.location.get(&listed.path)?;
            let name = listed.path.trim_start_matches(COVERAGE).trim_start_matches('/').trim_end_matches(".json.zst");
            decode_coverage(&listed.path, name, &bytes)?;
            verified.files += 1;
            verified.bytes += listed.size;
            named.insert(listed.path);
        }
        for listed in self.location.list(VIEWS)? {
            let Some(bytes) = self.location.get_if_present(&listed.path)? else { continue };
            if !is_named_after(&listed.path, &bytes) && !is_index_named_after(&listed.path, &bytes) {
                return Err(StoreError::damaged(
                    listed.path,
                    "it does not add up to its name; it is derived: delete it",
                ));
            }
            verified.files += 1;
            verified.bytes += listed.size;
        }
        for (id, stream) in catalog.all_streams() {
            for version in stream.versions() {
                let path = crate::store::coverage_path(&version.coverage);
                if !named.contains(&path) {
                    return Err(StoreError::damaged(path, "the file is missing"));
                }
            }
            let mut state: BTreeMap<ResourceKey, (ContentId, bool)> = BTreeMap::new();
            let mut digest = StateDigest::default();
            for version in stream.versions() {
                if let Some(delta) = &version.delta {
                    self.read_whole(delta)?.each_row(|row, _| {
                        verified.rows += 1;
                        check_row(&row, &delta.path)?;
                        step(&mut state, &mut digest, row, &delta.path)
                    })?;
                }
                if let Some(base) = &version.base {
                    let follows = version.delta.is_some() || !state.is_empty();
                    let mut full = BTreeMap::new();
                    let mut full_digest = StateDigest::default();
                    self.read_whole(base)?.each_row(|row, _| {
                        verified.rows += 1;
                        check_row(&row, &base.path)?;
                        step(&mut full, &mut full_digest, Row { before: None, ..row }, &base.path)
                    })?;
                    if follows && full != state {
                        let reason = "the full image is not what the changes before it add up to";
                        return Err(StoreError::damaged(base.path.as_str(), reason));
                    }
                    (state, digest) = (full, full_digest);
                }
                if digest.to_string() != version.digest {
                    return Err(StoreError::damaged(
                        format!("version {} of {id}", version.number),
                        "its resources do not add up to its digest",
                    ));
                }
                verified.versions += 1;
            }
        }
        verified.orphans =
            self.location.list(crate::store::SEGMENTS)?.iter().filter(|listed| !named.contains(&listed.path)).count();
        Ok(verified)
    }
}

fn replay(location: &Location, name: &str, verified: &mut Verified) -> Result<Catalog, StoreError> {
    let mut catalog = Catalog::default();
    loop {
        while let Some(bytes) = location.get_if_present(&log::record_path(catalog.next))? {
            catalog.apply(log::decode(catalog.next, &bytes, name)?)?;
            verified.records += 1;
            verified.bytes += bytes.len() as u64;
            verified.files += 1;
        }
        let listed = location.list(log::LOG_FOLDER)?;
        let Some(beyond) = listed.get(usize::try_from(catalog.next).unwrap_or(usize::MAX)) else { break };
        // Records are added in order: one that came since the last look is there now, a lost one is not.
        let path = log::record_path(catalog.next);
        if !location.exists(&path)? {
            return Err(StoreError::damaged(path, format!("it is missing, but `{}` is there", beyond.path)));
        }
    }
    Ok(catalog)
}

/// Lets a row happen to the state of a version.
fn step(
    state: &mut BTreeMap<ResourceKey, (ContentId, bool)>,
    digest: &mut StateDigest,
    row: Row,
    path: &str,
) -> Result<(), StoreError> {
    let before = row.before.as_ref().map(|image| image.content);
    if state.get(&row.key).map(|(content, _)| *content) != before {
        let reason = format!("{} does not change from what the version before it has", row.key);
        return Err(StoreError::damaged(path, reason));
    }
    if let Some(before) = before {
        digest.remove(&row.key, before);
    }
    match row.after {
        Some(after) => {
            digest.add(&row.key, after.content);
            state.insert(row.key, (after.content, row.is_seen));
        }
        None => {
            state.remove(&row.key);
        }
    }
    Ok(())
}

fn check_row(row: &Row, path: &str) -> Result<(), StoreError> {
    let check = |image: &Option<Image>| -> Result<(), StoreError> {
        let Some(Image { content, json: Some(json) }) = image else { return Ok(()) };
        let value: Value = serde_json::from_str(json).map_err(|error| StoreError::damaged(path, error))?;
        if Properties::new(&value).id() != *content {
            return Err(StoreError::damaged(path, format!("the image of {} does not have its content id", row.key)));
        }
        Ok(())
    };
    check(&row.before)?;
    check(&row.after)?;
    let mut again = Row { told: None, ..row.clone() };
    again.tell_changes();
    if again.told != row.told {
        return Err(StoreError::damaged(path, format!("what is told of {} is not what its images differ in", row.key)));
    }
    Ok(())
}
