//! What changed between two versions, however far apart, and the derived views that keep it at hand.

use std::collections::BTreeMap;

use driftline_core::difference::{self, Told, differences, retell, tell, undo};
use driftline_core::{Change, Place, ResourceKey, StreamId, Value};

use crate::error::StoreError;
use crate::segment::{Image, Row};
use crate::store::{Store, VIEWS, is_named_after};

/// What one version knows of a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known {
    /// It has no such resource.
    Absent,
    Seen,
    /// Carried over from an earlier version, because this one did not look.
    Unseen,
}

impl Known {
    pub fn new(present: bool, seen: bool) -> Self {
        match (present, seen) {
            (false, _) => Known::Absent,
            (true, true) => Known::Seen,
            (true, false) => Known::Unseen,
        }
    }
}

/// What became of one resource between two versions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetRow {
    pub key: ResourceKey,
    pub was: Known,
    pub is: Known,
    /// The version in which this began.
    pub since: u64,
    /// What differs; `None` where one side is absent or nothing does.
    pub told: Option<Told>,
    /// The earlier image of something that is gone, so that its coming back can be told.
    pub(crate) image: Option<Box<str>>,
}

impl NetRow {
    /// A row that somebody else has put together from the change files between two versions, as [`Fold`] asks for.
    pub fn folded(key: ResourceKey, was: Known, is: Known, since: u64, told: Option<Told>) -> Self {
        Self { key, was, is, since, told, image: None }
    }

    /// What differs, read.
    pub fn differences(&self) -> Result<Vec<Change>, StoreError> {
        let Some(told) = &self.told else { return Ok(Vec::new()) };
        let read = |text: &str| {
            serde_json::from_str::<Value>(text)
                .ok()
                .and_then(|value| difference::from_value(&value))
                .ok_or_else(|| StoreError::damaged(format!("the changes of {}", self.key), "they cannot be read"))
        };
        let arrays = told.arrays.as_deref().map(read).transpose()?.unwrap_or_default();
        Ok(retell(read(&told.changes)?, arrays))
    }

    fn says_something(&self) -> bool {
        self.told.is_some() || self.was != self.is
    }
}

/// Puts the change files between two versions of a stream together, the first before the second: what became of each
/// resource, in order of key. A resource that ended as it began is left out, and what happened after it last was as it
/// began is all that counts.
pub type Fold<'a> = &'a dyn Fn(&StreamId, u64, u64) -> Result<Vec<NetRow>, StoreError>;

impl Store {
    /// What changed from one version to another, where somebody else puts the change files together.
    pub(crate) fn net_by(
        &self,
        stream: &StreamId,
        from: u64,
        to: u64,
        fold: Fold<'_>,
    ) -> Result<Vec<NetRow>, StoreError> {
        self.catalog.version(stream, from)?;
        self.catalog.version(stream, to)?;
        match from > to {
            true => fold(stream, to, from)?.into_iter().map(|row| invert_net(row, to)).collect(),
            false => fold(stream, from, to),
        }
    }

    /// What changed from version `from` to version `to` of a stream, in either direction, in order of key.
    pub fn net(&self, stream: &StreamId, from: u64, to: u64) -> Result<Vec<NetRow>, StoreError> {
        self.catalog.version(stream, from)?;
        self.catalog.version(stream, to)?;
        if from > to {
            return self.net(stream, to, from)?.into_iter().map(|row| invert_net(row, to)).collect();
        }
        let between: Vec<_> = self
            .catalog
            .stream(stream)?
            .between(from, to)
            .filter_map(|version| version.delta.as_ref().map(|delta| (version.number, delta)))
            .collect();
        match between.as_slice() {
            [] => return Ok(Vec::new()),
            // One change file is the answer itself.
            [(number, delta)] => {
                let mut rows = self.read_whole(delta)?.happenings()?;
                for row in &mut rows {
                    row.since = *number;
                }
                return Ok(rows);
            }
            _ => {}
        }
        let last = between.last().map_or(to, |(number, _)| *number);
        if let Some(rows) = self.read_view(stream, from, last)? {
            return Ok(rows);
        }
        let rows: Vec<NetRow> =
            self.fold(stream, from, to)?.into_values().map(|(row, since)| net_row(row, since)).collect();
        if rows.len() >= self.tuning.view_rows {
            self.write_view(stream, from, last, &rows);
        }
        Ok(rows)
    }

    /// The rows of all change files between two versions made one, with whole images and the version each began in.
    pub(crate) fn fold(
        &self,
        stream: &StreamId,
        from: u64,
        to: u64,
    ) -> Result<BTreeMap<ResourceKey, (Row, u64)>, StoreError> {
        let mut rows: BTreeMap<ResourceKey, (Row, u64)> = BTreeMap::new();
        for version in self.catalog.stream(stream)?.between(from, to) {
            let Some(delta) = &version.delta else { continue };
            self.read_whole(delta)?.each_row(|row, _| {
                match rows.remove(&row.key) {
                    None => {
                        rows.insert(row.key.clone(), (row, version.number));
                    }
                    Some((earlier, since)) => {
                        if let Some(both) = follow(earlier, row) {
                            rows.insert(both.key.clone(), (both, since));
                        }
                    }
                }
                Ok(())
            })?;
        }
        Ok(rows)
    }

    fn view_folder(stream: &StreamId) -> String {
        format!("{VIEWS}/net/{stream}")
    }

    fn read_view(&self, stream: &StreamId, from: u64, to: u64) -> Result<Option<Vec<NetRow>>, StoreError> {
        let versions = self.catalog.stream(stream)?;
        let prefix = format!("{}/{from:010}-{to:010}-", Self::view_folder(stream));
        for listed in self.location.list(&Self::view_folder(stream))? {
            if !listed.path.starts_with(&prefix) {
                continue;
            }
            // Derived: one that is damaged or just gone is made again from the change files.
            let Some(bytes) = self.location.get_if_present(&listed.path)? else { continue };
            // Retention may have folded the versions into others in which its changes began.
            let stands = |rows: &Vec<NetRow>| rows.iter().all(|row| versions.get(row.since).is_some());
            if is_named_after(&listed.path, &bytes)
                && let Some(rows) = decode_view(&bytes).filter(stands)
            {
                return Ok(Some(rows));
            }
        }
        Ok(None)
    }

    /// Best effort: without its view an answer takes longer, and is the same.
    fn write_view(&self, stream: &StreamId, from: u64, to: u64, rows: &[NetRow]) {
        let bytes = encode_view(rows);
        let digest = &crate::check::sha256_hex(&bytes)[..32];
        let path = format!("{}/{from:010}-{to:010}-{digest}.tsv.zst", Self::view_folder(stream));
        if self.location.put_derived(&path, bytes).is_err() {
            return;
        }
        // Of the views from one version only the newest is asked for; a reader that misses one folds the changes.
        let Ok(listed) = self.location.list(&Self::view_folder(stream)) else { return };
        let same_start = format!("{}/{from:010}-", Self::view_folder(stream));
        let until = format!("{same_start}{to:010}.");
        let replaced = |old: &str| old.starts_with(&same_start) && old < until.as_str() && old != path;
        for old in listed.iter().filter(|old| replaced(&old.path)) {
            let _ = self.location.delete(&old.path);
        }
    }

    /// Keeps the view from every baseline up to date with a version that was just committed.
    pub(crate) fn follow_views(&self, stream: &StreamId, previous: u64, number: u64, rows: &[Row]) {
        let Ok(versions) = self.catalog.stream(stream) else { return };
        let mut pins: Vec<u64> =
            self.catalog.baselines.values().filter_map(|baseline| baseline.pins.get(stream).copied()).collect();
        pins.sort_unstable();
        pins.dedup();
        for pin in pins.into_iter().filter(|pin| *pin <= previous) {
            let changed = versions.between(pin, previous).filter(|version| version.delta.is_some()).count();
            // The next change file alone is the answer until there is a second one.
            if changed == 0 || rows.is_empty() {
                continue;
            }
            let Ok(earlier) = self.net(stream, pin, previous) else { continue };
            if earlier.len() + rows.len() < self.tuning.view_rows {
                continue;
            }
            // A lone change file has no images of what is gone; folding has.
            let rows = match changed {
                1 => match self.fold(stream, pin, number) {
                    Ok(folded) => folded.into_values().map(|(row, since)| net_row(row, since)).collect(),
                    Err(_) => continue,
                },
                _ => follow_net(earlier, rows, number),
            };
            self.write_view(stream, pin, number, &rows);
        }
    }
}

/// Two rows of one resource, one after the other, as one; `None` when together they change nothing.
pub(crate) fn follow(earlier: Row, later: Row) -> Option<Row> {
    let before = with_text_of(earlier.before, later.before.as_ref());
    let after = with_text_of(later.after, earlier.after.as_ref());
    let both = Row { key: later.key, before, after, was_seen: earlier.was_seen, is_seen: later.is_seen, told: None };
    both.op().is_some().then_some(both)
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

/// A row with whole images, as what became of the resource.
fn net_row(mut row: Row, since: u64) -> NetRow {
    let changed = match (&row.before, &row.after) {
        (Some(before), Some(after)) => before.content != after.content,
        _ => false,
    };
    if !changed {
        row.told = None;
    } else if row.told.is_none() {
        row.tell_changes();
    }
    NetRow {
        was: Known::new(row.before.is_some(), row.was_seen),
        is: Known::new(row.after.is_some(), row.is_seen),
        since,
        told: row.told,
        image: if row.after.is_none() { row.before.and_then(|image| image.json) } else { None },
        key: row.key,
    }
}

fn parse(text: Option<&str>) -> Option<Value> {
    serde_json::from_str(text?).ok()
}

/// Lets rows with whole images happen after what is there; both are in order of key, and so is the result.
fn follow_net(earlier: Vec<NetRow>, rows: &[Row], number: u64) -> Vec<NetRow> {
    let mut out = Vec::with_capacity(earlier.len() + rows.len());
    let mut rows = rows.iter().peekable();
    for row in earlier {
        while let Some(new) = rows.next_if(|new| new.key < row.key) {
            out.push(net_row(new.clone(), number));
        }
        match rows.next_if(|new| new.key == row.key) {
            None => out.push(row),
            Some(new) => out.extend(follow_one(row, new)),
        }
    }
    out.extend(rows.map(|new| net_row(new.clone(), number)));
    out
}

fn follow_one(earlier: NetRow, later: &Row) -> Option<NetRow> {
    let is = Known::new(later.after.is_some(), later.is_seen);
    let text = |image: &Option<Image>| parse(image.as_ref().and_then(|image| image.json.as_deref()));
    // The first image: what the later row starts from, with what differed until then undone.
    let first = match (earlier.was, earlier.is) {
        (Known::Absent, _) => None,
        (_, Known::Absent) => parse(earlier.image.as_deref()),
        _ => text(&later.before).and_then(|middle| Some(undo(&middle, &earlier.differences().ok()?))),
    };
    let row = match (&first, text(&later.after)) {
        (Some(first), Some(last)) => {
            let found = differences(first, &last);
            let told = (!found.is_empty()).then(|| tell(&found));
            NetRow { is, told, image: None, ..earlier }
        }
        (Some(first), None) if is == Known::Absent => {
            NetRow { is, told: None, image: Some(first.to_json().into()), ..earlier }
        }
        // New since, whatever became of it; or only its sighting changed.
        _ => NetRow { is, ..earlier },
    };
    row.says_something().then_some(row)
}

fn invert_net(row: NetRow, since: u64) -> Result<NetRow, StoreError> {
    let told = row.told.is_some().then(|| row.differences()).transpose()?.map(|changes| {
        let swapped: Vec<Change> = changes
            .into_iter()
            .map(|change| Change { expected: change.actual, actual: change.expected, path: change.path })
            .collect();
        tell(&swapped)
    });
    Ok(NetRow { was: row.is, is: row.was, since, told, image: None, key: row.key })
}

/// One line a row: type, place and id as JSON texts, sightings, version, changes, arrays, image; tabs between them, which
/// JSON never has inside a text.
fn encode_view(rows: &[NetRow]) -> Vec<u8> {
    let mut text = String::from(VIEW_FORMAT);
    for row in rows {
        for part in [&row.key.kind, row.key.place.as_str(), &row.key.id] {
            text.push_str(&serde_json::to_string(part).expect("texts can be written as JSON"));
            text.push('\t');
        }
        text.push(sighting(row.was));
        text.push(sighting(row.is));
        text.push('\t');
        text.push_str(&row.since.to_string());
        text.push('\t');
        text.push_str(row.told.as_ref().map_or("", |told| &told.changes));
        text.push('\t');
        text.push_str(row.told.as_ref().and_then(|told| told.arrays.as_deref()).unwrap_or(""));
        text.push('\t');
        text.push_str(row.image.as_deref().unwrap_or(""));
        text.push('\n');
    }
    zstd::bulk::compress(text.as_bytes(), 3).expect("compressing memory to memory does not fail")
}

const VIEW_FORMAT: &str = "driftline net view 1\n";

fn sighting(known: Known) -> char {
    match known {
        Known::Absent => 'a',
        Known::Seen => 's',
        Known::Unseen => 'u',
    }
}

/// `None` when these are not the bytes of a view.
fn decode_view(bytes: &[u8]) -> Option<Vec<NetRow>> {
    // The frame says how much it unpacks to; that much is made room for once.
    let size = zstd::zstd_safe::get_frame_content_size(bytes).ok()??;
    let text = zstd::bulk::decompress(bytes, usize::try_from(size).ok().filter(|size| *size < MOST)?).ok()?;
    let text = std::str::from_utf8(&text).ok()?.strip_prefix(VIEW_FORMAT)?;
    let mut rows = Vec::new();
    let mut start = 0;
    for end in memchr::memchr_iter(b'\n', text.as_bytes()) {
        rows.push(decode_view_row(&text[start..end])?);
        start = end + 1;
    }
    (start == text.len()).then_some(rows)
}

/// No view unpacks to more than this.
const MOST: usize = 8 << 30;

fn decode_view_row(line: &str) -> Option<NetRow> {
    let mut start = 0;
    let mut parts = memchr::memchr_iter(b'\t', line.as_bytes()).chain(std::iter::once(line.len())).map(|end| {
        let part = &line[start..end];
        start = end + 1;
        part
    });
    let mut string = || -> Option<String> {
        let part = parts.next()?;
        match part.strip_prefix('"')?.strip_suffix('"')? {
            plain if !plain.contains('\\') => Some(plain.to_owned()),
            _ => serde_json::from_str(part).ok(),
        }
    };
    let key = ResourceKey { kind: string()?, place: Place::new(string()?), id: string()? };
    let known = |byte: u8| match byte {
        b'a' => Some(Known::Absent),
        b's' => Some(Known::Seen),
        b'u' => Some(Known::Unseen),
        _ => None,
    };
    let [was, is] = parts.next()?.as_bytes().try_into().ok()?;
    let since = parts.next()?.parse().ok()?;
    let mut text = || parts.next().map(|part| (!part.is_empty()).then(|| part.into()));
    let (changes, arrays, image) = (text()?, text()?, text()?);
    let told = changes.map(|changes| Told { changes, arrays });
    Some(NetRow { key, was: known(was)?, is: known(is)?, since, told, image })
}

pub(crate) fn invert(row: Row) -> Row {
    Row { before: row.after, after: row.before, was_seen: row.is_seen, is_seen: row.was_seen, key: row.key, told: None }
}
