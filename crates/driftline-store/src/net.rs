//! What changed between two versions, however far apart, and the derived views that keep it at hand.

use std::collections::BTreeMap;

use driftline_core::prune::{prune, restore_before};
use driftline_core::{ResourceKey, StreamId, Value};
use jiff::Timestamp;

use crate::error::StoreError;
use crate::segment::{Image, Row, Segment, Written};
use crate::store::{Store, VIEWS, is_named_after};

/// The rows that differ between two versions, by key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Net {
    pub rows: BTreeMap<ResourceKey, Row>,
    /// The images hold only what differs; see `driftline_core::prune`.
    pub pruned: bool,
}

/// A view is worth its file once reading it saves more than a moment.
const WORTH_A_VIEW: usize = 256;

impl Store {
    /// What changed from version `from` to version `to` of a stream, in either direction.
    pub fn net(&self, stream: &StreamId, from: u64, to: u64) -> Result<Net, StoreError> {
        self.catalog.version(stream, from)?;
        self.catalog.version(stream, to)?;
        if from > to {
            let forward = self.net(stream, to, from)?;
            let rows = forward.rows.into_iter().map(|(key, row)| (key, invert(row, to))).collect();
            return Ok(Net { rows, pruned: forward.pruned });
        }
        if let Some(net) = self.read_view(stream, from, to)? {
            return Ok(net);
        }
        let net = self.fold(stream, from, to)?;
        if net.rows.len() >= WORTH_A_VIEW && to - from > 1 {
            self.write_view(stream, from, to, &net);
        }
        Ok(net)
    }

    /// The same, from the change files alone and with whole images.
    pub(crate) fn fold(&self, stream: &StreamId, from: u64, to: u64) -> Result<Net, StoreError> {
        let mut rows = BTreeMap::new();
        for version in self.catalog.stream(stream)?.between(from, to) {
            let Some(delta) = &version.delta else { continue };
            for mut row in self.read_whole(delta)?.rows()? {
                row.since = version.number;
                follow(&mut rows, row);
            }
        }
        Ok(Net { rows, pruned: false })
    }

    fn view_folder(stream: &StreamId) -> String {
        format!("{VIEWS}/net/{stream}")
    }

    fn read_view(&self, stream: &StreamId, from: u64, to: u64) -> Result<Option<Net>, StoreError> {
        let prefix = format!("{}/{from:010}-{to:010}-", Self::view_folder(stream));
        for listed in self.location.list(&Self::view_folder(stream))? {
            if !listed.path.starts_with(&prefix) {
                continue;
            }
            // Derived: one that is damaged or just gone is made again from the change files.
            let Some(bytes) = self.location.get_if_present(&listed.path)? else { continue };
            if !is_named_after(&listed.path, &bytes) {
                continue;
            }
            let rows = Segment::from_bytes(&listed.path, bytes)?.rows()?;
            let rows = rows.into_iter().map(|row| (row.key.clone(), row)).collect();
            return Ok(Some(Net { rows, pruned: true }));
        }
        Ok(None)
    }

    /// Best effort: without its view an answer takes longer, and is the same.
    fn write_view(&self, stream: &StreamId, from: u64, to: u64, net: &Net) {
        let pruned: Vec<Row> = net.rows.values().map(|row| if net.pruned { row.clone() } else { prune_row(row) }).collect();
        let rows = pruned.iter().filter_map(|row| Written::row(row, row.since));
        let Ok(bytes) = crate::segment::write(stream, Timestamp::UNIX_EPOCH, rows) else { return };
        let digest = &crate::check::sha256_hex(&bytes)[..32];
        let path = format!("{}/{from:010}-{to:010}-{digest}.parquet", Self::view_folder(stream));
        if self.location.put_derived(&path, bytes).is_err() {
            return;
        }
        // Of the views from one version only the newest is asked for; a reader that misses one folds the changes.
        let Ok(listed) = self.location.list(&Self::view_folder(stream)) else { return };
        let same_start = format!("{}/{from:010}-", Self::view_folder(stream));
        for old in listed.iter().filter(|old| old.path.starts_with(&same_start) && old.path < path) {
            let _ = self.location.delete(&old.path);
        }
    }

    /// Keeps the view from every baseline up to date with a version that was just committed.
    pub(crate) fn follow_views(&self, stream: &StreamId, previous: u64, number: u64, rows: &[Row]) {
        let mut pins: Vec<u64> =
            self.catalog.baselines.values().filter_map(|baseline| baseline.pins.get(stream).copied()).collect();
        pins.sort_unstable();
        pins.dedup();
        for pin in pins.into_iter().filter(|pin| *pin <= previous) {
            let mut net = match self.read_view(stream, pin, previous) {
                Ok(Some(net)) => net,
                _ if pin == previous => Net { rows: BTreeMap::new(), pruned: true },
                _ => continue,
            };
            for row in rows {
                follow_pruned(&mut net.rows, row);
            }
            if net.rows.len() >= WORTH_A_VIEW {
                self.write_view(stream, pin, number, &net);
            }
        }
    }
}

/// Lets a later row happen after what is there.
pub(crate) fn follow(rows: &mut BTreeMap<ResourceKey, Row>, later: Row) {
    let Some(earlier) = rows.get_mut(&later.key) else {
        rows.insert(later.key.clone(), later);
        return;
    };
    earlier.before = with_text_of(earlier.before.take(), later.before.as_ref());
    earlier.after = with_text_of(later.after, earlier.after.as_ref());
    earlier.is_seen = later.is_seen;
    if earlier.op().is_none() {
        rows.remove(&later.key);
    }
}

/// Fills in the text of an image from another of the same content.
fn with_text_of(image: Option<Image>, other: Option<&Image>) -> Option<Image> {
    let mut image = image?;
    if image.json.is_none()
        && let Some(other) = other
        && other.content == image.content
    {
        image.json.clone_from(&other.json);
    }
    Some(image)
}

/// The same on pruned rows; `later` has whole images.
fn follow_pruned(rows: &mut BTreeMap<ResourceKey, Row>, later: &Row) {
    let Some(earlier) = rows.remove(&later.key) else {
        rows.insert(later.key.clone(), prune_row(later));
        return;
    };
    let mut row = later.clone();
    row.since = earlier.since;
    row.was_seen = earlier.was_seen;
    row.before = match (&earlier.before, &earlier.after, &later.before) {
        // The middle image is whole in `later`; what the view left out of the first one is the same in both.
        (Some(first), Some(middle), Some(whole)) => match (text(first), text(middle), text(whole)) {
            (Some(first_text), Some(middle_text), Some(whole_text)) => {
                let restored = restore_before(&whole_text, &first_text, &middle_text);
                Some(Image { content: first.content, json: Some(restored.to_json().into()) })
            }
            // Only sightings changed on the way, so the first image is the one in the middle.
            _ => Some(Image { content: first.content, json: first.json.clone().or_else(|| whole.json.clone()) }),
        },
        (first, _, _) => first.clone(),
    };
    // A row that only was, or was not, seen has no text; the row before it does, pruned or not.
    if let (Some(after), Some(middle)) = (&mut row.after, &earlier.after)
        && after.json.is_none()
        && after.content == middle.content
    {
        let mut kept = earlier.clone();
        kept.is_seen = later.is_seen;
        if kept.op().is_some() {
            rows.insert(kept.key.clone(), kept);
        }
        return;
    }
    if row.op().is_some() {
        rows.insert(row.key.clone(), prune_row(&row));
    }
}

fn text(image: &Image) -> Option<Value> {
    serde_json::from_str(image.json.as_deref()?).ok()
}

fn prune_row(row: &Row) -> Row {
    let mut pruned = row.clone();
    if let (Some(before), Some(after)) = (&mut pruned.before, &mut pruned.after)
        && let (Some(left), Some(right)) = (text(before), text(after))
    {
        let (left, right) = prune(&left, &right);
        before.json = Some(left.to_json().into());
        after.json = Some(right.to_json().into());
    }
    pruned
}

pub(crate) fn invert(row: Row, since: u64) -> Row {
    Row { before: row.after, after: row.before, was_seen: row.is_seen, is_seen: row.was_seen, key: row.key, since }
}
