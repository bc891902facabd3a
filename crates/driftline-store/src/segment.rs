//! Change files: rows of what changed, each with its image before and after, as Parquet.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use driftline_core::difference::{self, Told};
use driftline_core::key::{GLOBAL, NOWHERE};
use driftline_core::{ContentId, Place, ResourceKey, StreamId, Value};
use jiff::Timestamp;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::column::reader::ColumnReader;
use parquet::column::writer::ColumnWriter;
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::reader::{ChunkReader, FileReader};
use parquet::file::serialized_reader::{ReadOptionsBuilder, SerializedFileReader};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::ColumnPath;

use crate::error::StoreError;
use crate::location::Location;
use crate::log::FileRef;
use crate::net::{Known, NetRow};
use crate::remote::Remote;

/// What a resource looked like at one version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    pub content: ContentId,
    /// Canonical JSON; left out where only the sighting changed and the content did not.
    pub json: Option<Box<str>>,
}

/// What happened to one resource between two versions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    pub key: ResourceKey,
    pub before: Option<Image>,
    pub after: Option<Image>,
    /// Whether it was seen at the earlier version; one that is carried over from an even earlier one was not.
    pub was_seen: bool,
    pub is_seen: bool,
    /// What differs between the two images, where there are two.
    pub told: Option<Told>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    Add,
    Change,
    Remove,
    /// Still known, but this observation did not look where it is.
    Unseen,
    /// Looked at again, and as it was.
    Seen,
    /// Part of a full image of a version; nothing happened.
    Base,
}

impl Op {
    pub fn name(self) -> &'static str {
        match self {
            Op::Add => "add",
            Op::Change => "change",
            Op::Remove => "remove",
            Op::Unseen => "unseen",
            Op::Seen => "seen",
            Op::Base => "base",
        }
    }
}

impl Row {
    /// Fills in what differs between the two images.
    pub(crate) fn tell_changes(&mut self) {
        let text =
            |image: &Option<Image>| -> Option<Value> { serde_json::from_str(image.as_ref()?.json.as_deref()?).ok() };
        self.told = match (text(&self.before), text(&self.after)) {
            (Some(before), Some(after)) => Some(difference::tell(&difference::differences(&before, &after))),
            _ => None,
        };
    }

    /// `None` when the two sides are the same.
    pub fn op(&self) -> Option<Op> {
        match (&self.before, &self.after) {
            (None, None) => None,
            (None, Some(_)) => Some(Op::Add),
            (Some(_), None) => Some(Op::Remove),
            (Some(before), Some(after)) if before.content != after.content => Some(Op::Change),
            _ => match (self.was_seen, self.is_seen) {
                (true, false) => Some(Op::Unseen),
                (false, true) => Some(Op::Seen),
                _ => None,
            },
        }
    }
}

/// The columns, in file order. `docs/store.md` describes them; the Delta schema lists the same.
pub(crate) const SCHEMA: &str = "message change {
    required binary stream (UTF8);
    required int64 version;
    required int64 observed_at (TIMESTAMP(MICROS, true));
    required binary op (UTF8);
    required binary type (UTF8);
    required binary place (UTF8);
    optional binary account (UTF8);
    optional binary region (UTF8);
    required binary id (UTF8);
    optional binary hash;
    optional binary prev_hash;
    required boolean seen;
    required boolean prev_seen;
    optional binary before (UTF8);
    optional binary after (UTF8);
    optional binary changes (UTF8);
    optional binary arrays (UTF8);
}";

/// Name and Delta type of each column.
pub(crate) const DELTA_COLUMNS: [(&str, &str, bool); 17] = [
    ("stream", "string", false),
    ("version", "long", false),
    ("observed_at", "timestamp", false),
    ("op", "string", false),
    ("type", "string", false),
    ("place", "string", false),
    ("account", "string", true),
    ("region", "string", true),
    ("id", "string", false),
    ("hash", "binary", true),
    ("prev_hash", "binary", true),
    ("seen", "boolean", false),
    ("prev_seen", "boolean", false),
    ("before", "string", true),
    ("after", "string", true),
    ("changes", "string", true),
    ("arrays", "string", true),
];

const OP: usize = 3;
const TYPE: usize = 4;
const PLACE: usize = 5;
const ID: usize = 8;
const HASH: usize = 9;
const PREV_HASH: usize = 10;
const SEEN: usize = 11;
const PREV_SEEN: usize = 12;
const BEFORE: usize = 13;
const AFTER: usize = 14;
const CHANGES: usize = 15;
const ARRAYS: usize = 16;

/// Rows in one row group: small enough that reading one column of it stays in cache, large enough for dictionaries.
pub(crate) const GROUP: usize = 64 * 1024;

/// A row as it is written: borrowed, so that a million of them need no copies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Written<'a> {
    pub op: Op,
    pub version: u64,
    pub kind: &'a str,
    pub place: &'a str,
    pub id: &'a str,
    pub hash: Option<ContentId>,
    pub prev_hash: Option<ContentId>,
    pub seen: bool,
    pub prev_seen: bool,
    pub before: Option<&'a str>,
    pub after: Option<&'a str>,
    pub told: Option<&'a Told>,
}

impl<'a> Written<'a> {
    pub(crate) fn row(row: &'a Row, version: u64) -> Option<Self> {
        Some(Self {
            op: row.op()?,
            version,
            kind: &row.key.kind,
            place: row.key.place.as_str(),
            id: &row.key.id,
            hash: row.after.as_ref().map(|image| image.content),
            prev_hash: row.before.as_ref().map(|image| image.content),
            seen: row.is_seen,
            prev_seen: row.was_seen,
            before: row.before.as_ref().and_then(|image| image.json.as_deref()),
            after: row.after.as_ref().and_then(|image| image.json.as_deref()),
            told: row.told.as_ref(),
        })
    }
}

fn properties() -> WriterProperties {
    let plain = |name: &str| ColumnPath::from(name);
    let mut builder = WriterProperties::builder()
        .set_created_by(concat!("driftline ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(3).expect("3 is a zstd level")))
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_data_page_size_limit(256 * 1024)
        .set_write_batch_size(64);
    builder = builder
        .set_column_dictionary_enabled(plain("id"), false)
        .set_column_encoding(plain("id"), Encoding::DELTA_BYTE_ARRAY)
        .set_column_data_page_row_count_limit(plain("id"), 2048);
    for name in ["hash", "prev_hash"] {
        builder = builder
            .set_column_dictionary_enabled(plain(name), false)
            .set_column_compression(plain(name), Compression::UNCOMPRESSED)
            .set_column_statistics_enabled(plain(name), EnabledStatistics::None);
    }
    for name in ["before", "after", "changes", "arrays"] {
        // Pages are what single images are read by: a small page is little to unpack for one row.
        builder = builder
            .set_column_dictionary_enabled(plain(name), false)
            .set_column_data_page_size_limit(plain(name), 32 * 1024)
            .set_column_statistics_enabled(plain(name), EnabledStatistics::None);
    }
    builder.build()
}

/// Writes rows, which must be sorted by key, into the bytes of one file.
pub(crate) fn write<'a>(
    stream: &StreamId,
    observed_at: Timestamp,
    rows: impl Iterator<Item = Written<'a>>,
) -> Result<Vec<u8>, StoreError> {
    let mut writer = Writer::new(stream, Times::Once(observed_at))?;
    let mut rows = rows.peekable();
    let mut group: Vec<Written<'a>> = Vec::new();
    while rows.peek().is_some() {
        group.clear();
        group.extend(rows.by_ref().take(GROUP));
        writer.group(&group)?;
    }
    writer.finish()
}

/// A change file in the making, one row group at a time.
pub(crate) struct Writer {
    inner: SerializedFileWriter<Vec<u8>>,
    stream: String,
    times: Times,
}

/// When the rows of a file were observed.
#[derive(Clone, Debug)]
pub(crate) enum Times {
    /// All in one pass.
    Once(Timestamp),
    /// By version.
    Each(BTreeMap<u64, Timestamp>),
}

impl Times {
    fn of(&self, version: u64) -> i64 {
        let time = match self {
            Times::Once(time) => *time,
            Times::Each(times) => times[&version],
        };
        time.as_microsecond()
    }
}

impl Writer {
    pub(crate) fn new(stream: &StreamId, times: Times) -> Result<Self, StoreError> {
        let schema = Arc::new(parse_message_type(SCHEMA).map_err(StoreError::Parquet)?);
        let inner =
            SerializedFileWriter::new(Vec::new(), schema, Arc::new(properties())).map_err(StoreError::Parquet)?;
        Ok(Self { inner, stream: stream.to_string(), times })
    }

    pub(crate) fn group(&mut self, rows: &[Written<'_>]) -> Result<(), StoreError> {
        if rows.is_empty() {
            return Ok(());
        }
        let mut columns = self.inner.next_row_group().map_err(StoreError::Parquet)?;
        write_group(&mut columns, &self.stream, &self.times, rows).map_err(StoreError::Parquet)?;
        columns.close().map_err(StoreError::Parquet)?;
        Ok(())
    }

    pub(crate) fn finish(self) -> Result<Vec<u8>, StoreError> {
        self.inner.into_inner().map_err(StoreError::Parquet)
    }
}

fn write_group(
    group: &mut SerializedRowGroupWriter<'_, Vec<u8>>,
    stream: &str,
    times: &Times,
    rows: &[Written<'_>],
) -> Result<(), ParquetError> {
    let text = |text: &str| ByteArray::from(text.as_bytes().to_vec());
    let stream = text(stream);
    required::<ByteArrayType>(group, rows, |_| stream.clone())?;
    required::<Int64Type>(group, rows, |row| row.version.cast_signed())?;
    required::<Int64Type>(group, rows, |row| times.of(row.version))?;
    required::<ByteArrayType>(group, rows, |row| ByteArray::from(row.op.name()))?;
    required::<ByteArrayType>(group, rows, |row| text(row.kind))?;
    required::<ByteArrayType>(group, rows, |row| text(row.place))?;
    optional(group, rows, |row| part(row.place, 1).map(text))?;
    optional(group, rows, |row| part(row.place, 2).map(text))?;
    required::<ByteArrayType>(group, rows, |row| text(row.id))?;
    optional(group, rows, |row| row.hash.map(|id| ByteArray::from(id.0.to_vec())))?;
    optional(group, rows, |row| row.prev_hash.map(|id| ByteArray::from(id.0.to_vec())))?;
    required::<BoolType>(group, rows, |row| row.seen)?;
    required::<BoolType>(group, rows, |row| row.prev_seen)?;
    optional(group, rows, |row| row.before.map(text))?;
    optional(group, rows, |row| row.after.map(text))?;
    optional(group, rows, |row| row.told.map(|told| text(&told.changes)))?;
    optional(group, rows, |row| row.told?.arrays.as_deref().map(text))
}

/// The second part of a place is an account, a cluster or the like, and the third a region or namespace in it.
fn part(place: &str, number: usize) -> Option<&str> {
    place.split('/').nth(number).filter(|part| *part != NOWHERE && *part != GLOBAL)
}

/// How many values are handed over at once: enough to be fast, few enough that a column is never held twice.
const BATCH: usize = 1024;

fn required<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, Vec<u8>>,
    rows: &[Written<'_>],
    value: impl Fn(&Written<'_>) -> T::T,
) -> Result<(), ParquetError> {
    let mut column = group.next_column()?.expect("as many columns as the schema has");
    for batch in rows.chunks(BATCH) {
        let values: Vec<T::T> = batch.iter().map(&value).collect();
        column.typed::<T>().write_batch(&values, None, None)?;
    }
    column.close()
}

fn optional(
    group: &mut SerializedRowGroupWriter<'_, Vec<u8>>,
    rows: &[Written<'_>],
    value: impl Fn(&Written<'_>) -> Option<ByteArray>,
) -> Result<(), ParquetError> {
    let mut column = group.next_column()?.expect("as many columns as the schema has");
    for batch in rows.chunks(BATCH) {
        let values: Vec<Option<ByteArray>> = batch.iter().map(&value).collect();
        let levels: Vec<i16> = values.iter().map(|value| i16::from(value.is_some())).collect();
        let values: Vec<ByteArray> = values.into_iter().flatten().collect();
        match column.untyped() {
            ColumnWriter::ByteArrayColumnWriter(writer) => writer.write_batch(&values, Some(&levels), None)?,
            _ => return Err(ParquetError::General("an optional column is not of bytes".into())),
        };
    }
    column.close()
}

/// A change file that is open for reading.
pub(crate) struct Segment {
    reader: Box<dyn FileReader>,
    path: String,
    /// The rows of the file's only row group that are meant; all rows of the file without.
    window: Option<Range<usize>>,
}

impl std::fmt::Debug for Segment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Segment({})", self.path)
    }
}

/// The key columns of one row, as read.
#[derive(Debug)]
pub(crate) struct KeyColumns {
    pub kind: ByteArray,
    pub place: ByteArray,
    pub id: ByteArray,
}

impl KeyColumns {
    pub(crate) fn to_key(&self, path: &str) -> Result<ResourceKey, StoreError> {
        Ok(ResourceKey {
            kind: utf8(&self.kind, path)?.to_owned(),
            place: Place::new(utf8(&self.place, path)?),
            id: utf8(&self.id, path)?.to_owned(),
        })
    }
}

fn utf8<'a>(bytes: &'a ByteArray, path: &str) -> Result<&'a str, StoreError> {
    std::str::from_utf8(bytes.data()).map_err(|error| StoreError::damaged(path, error))
}

fn told(changes: Option<&ByteArray>, arrays: Option<&ByteArray>, path: &str) -> Result<Option<Told>, StoreError> {
    let Some(changes) = changes else { return Ok(None) };
    let arrays = arrays.map(|text| utf8(text, path).map(Into::into)).transpose()?;
    Ok(Some(Told { changes: utf8(changes, path)?.into(), arrays }))
}

fn content(bytes: &ByteArray, path: &str) -> Result<ContentId, StoreError> {
    bytes.data().try_into().map(ContentId).map_err(|_| StoreError::damaged(path, "a hash is not 16 bytes long"))
}

impl Segment {
    /// Opens a file whose bytes are at hand.
    pub(crate) fn from_bytes(file: &FileRef, bytes: Bytes) -> Result<Self, StoreError> {
        Self::open_reader(file, bytes)
    }

    /// Opens a file of which only what is asked for will be read.
    pub(crate) fn open(location: &Location, file: &FileRef) -> Result<Self, StoreError> {
        Self::open_reader(file, Remote::new(location.clone(), file.clone()))
    }

    fn open_reader(file: &FileRef, chunks: impl ChunkReader + 'static) -> Result<Self, StoreError> {
        let path = file.path.as_str();
        let options = ReadOptionsBuilder::new().with_page_index().build();
        let reader = SerializedFileReader::new_with_options(chunks, options)
            .map_err(|error| StoreError::damaged(path, error))?;
        let window = match file.part {
            None => None,
            Some(part) => {
                let all = reader.metadata().file_metadata().num_rows();
                let wanted = usize::try_from(part.first).ok().zip(usize::try_from(part.first + file.rows).ok());
                match wanted {
                    Some((first, end)) if reader.num_row_groups() == 1 && end <= usize::try_from(all).unwrap_or(0) => {
                        Some(first..end)
                    }
                    _ => return Err(StoreError::damaged(path, "it has not the rows that the log says")),
                }
            }
        };
        Ok(Self { reader: Box::new(reader), path: path.to_owned(), window })
    }

    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    fn groups(&self) -> usize {
        self.reader.num_row_groups()
    }

    fn group_rows(&self, group: usize) -> usize {
        if let Some(window) = &self.window {
            return window.len();
        }
        usize::try_from(self.reader.metadata().row_group(group).num_rows()).unwrap_or(0)
    }

    /// How many rows of other versions come before those that are meant.
    fn skipped(&self) -> usize {
        self.window.as_ref().map_or(0, |window| window.start)
    }

    fn column(&self, group: usize, column: usize) -> Result<ColumnReader, ParquetError> {
        self.reader.get_row_group(group)?.get_column_reader(column)
    }

    fn damaged(&self, error: impl std::fmt::Display) -> StoreError {
        StoreError::damaged(self.path.as_str(), error)
    }

    /// The values of a column at `rows` (ascending, within the group); all of them without `rows`.
    fn bytes(&self, group: usize, column: usize, rows: Option<&[usize]>) -> Result<Vec<Option<ByteArray>>, StoreError> {
        let read = || -> Result<Vec<Option<ByteArray>>, ParquetError> {
            let ColumnReader::ByteArrayColumnReader(mut reader) = self.column(group, column)? else {
                return Err(ParquetError::General("a column is not of bytes".into()));
            };
            reader.skip_records(self.skipped())?;
            let total = self.group_rows(group);
            let mut out = Vec::with_capacity(rows.map_or(total, <[usize]>::len));
            let (mut values, mut levels) = (Vec::new(), Vec::new());
            let mut read = |reader: &mut parquet::column::reader::ColumnReaderImpl<ByteArrayType>, count: usize| {
                values.clear();
                levels.clear();
                let (records, got, _) = reader.read_records(count, Some(&mut levels), None, &mut values)?;
                if records != count {
                    return Err(ParquetError::General("a column is shorter than its row group".into()));
                }
                let mut values = values.drain(..);
                if got == records {
                    out.extend(values.map(Some));
                } else {
                    out.extend(levels.iter().map(|level| if *level > 0 { values.next() } else { None }));
                }
                Ok(())
            };
            match rows {
                None => read(&mut reader, total)?,
                Some(rows) => {
                    let mut at = 0;
                    for &row in rows {
                        if row > at {
                            reader.skip_records(row - at)?;
                        }
                        read(&mut reader, 1)?;
                        at = row + 1;
                    }
                }
            }
            Ok(out)
        };
        read().map_err(|error| self.damaged(error))
    }

    fn required_bytes(
        &self,
        group: usize,
        column: usize,
        rows: Option<&[usize]>,
    ) -> Result<Vec<ByteArray>, StoreError> {
        let values = self.bytes(group, column, rows)?;
        values.into_iter().map(|value| value.ok_or_else(|| self.damaged("a required column has a gap"))).collect()
    }

    fn bools(&self, group: usize, column: usize) -> Result<Vec<bool>, StoreError> {
        let read = || -> Result<Vec<bool>, ParquetError> {
            let ColumnReader::BoolColumnReader(mut reader) = self.column(group, column)? else {
                return Err(ParquetError::General("a column is not of truth values".into()));
            };
            reader.skip_records(self.skipped())?;
            let mut values = Vec::new();
            reader.read_records(self.group_rows(group), None, None, &mut values)?;
            Ok(values)
        };
        read().map_err(|error| self.damaged(error))
    }

    /// Calls `each` with (row number, key, content id, seen) of every row, image by image unread.
    pub(crate) fn keys(
        &self,
        mut each: impl FnMut(u32, &KeyColumns, Option<ContentId>, bool) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let mut first = 0u32;
        for group in 0..self.groups() {
            let kinds = self.required_bytes(group, TYPE, None)?;
            let places = self.required_bytes(group, PLACE, None)?;
            let ids = self.required_bytes(group, ID, None)?;
            let hashes = self.bytes(group, HASH, None)?;
            let seen = self.bools(group, SEEN)?;
            let columns = kinds.into_iter().zip(places).zip(ids).zip(hashes).zip(seen);
            for ((((kind, place), id), hash), seen) in columns {
                let hash = hash.map(|hash| content(&hash, &self.path)).transpose()?;
                each(first, &KeyColumns { kind, place, id }, hash, seen)?;
                first += 1;
            }
        }
        Ok(())
    }

    /// The keys of the given rows (ascending).
    pub(crate) fn pick_keys(&self, rows: &[u32]) -> Result<Vec<KeyColumns>, StoreError> {
        self.by_group(rows, |group, inside| {
            let kinds = self.required_bytes(group, TYPE, Some(inside))?;
            let places = self.required_bytes(group, PLACE, Some(inside))?;
            let ids = self.required_bytes(group, ID, Some(inside))?;
            let keys = kinds.into_iter().zip(places).zip(ids);
            Ok(keys.map(|((kind, place), id)| KeyColumns { kind, place, id }).collect())
        })
    }

    /// The images before or after, of the given rows (ascending); none where a row only tells whether it was seen.
    pub(crate) fn pick_sides(&self, rows: &[u32], before: bool) -> Result<Vec<Option<Box<str>>>, StoreError> {
        self.by_group(rows, |group, inside| {
            let images = self.bytes(group, if before { BEFORE } else { AFTER }, Some(inside))?;
            let image = |text: Option<ByteArray>| text.map(|text| utf8(&text, &self.path).map(Into::into)).transpose();
            images.into_iter().map(image).collect()
        })
    }

    /// The images after, of the given rows (ascending).
    pub(crate) fn pick_images(&self, rows: &[u32]) -> Result<Vec<Box<str>>, StoreError> {
        self.by_group(rows, |group, inside| {
            let images = self.bytes(group, AFTER, Some(inside))?;
            let image = |text: Option<ByteArray>| match text {
                Some(text) => utf8(&text, &self.path).map(Into::into),
                None => Err(self.damaged("a row has no image")),
            };
            images.into_iter().map(image).collect()
        })
    }

    /// What happened to each resource: key, sightings, and what differs. Of images only those of what is gone.
    pub(crate) fn happenings(&self) -> Result<Vec<NetRow>, StoreError> {
        let mut out = Vec::new();
        for group in 0..self.groups() {
            let kinds = self.required_bytes(group, TYPE, None)?;
            let places = self.required_bytes(group, PLACE, None)?;
            let ids = self.required_bytes(group, ID, None)?;
            let hashes = self.bytes(group, HASH, None)?;
            let prev_hashes = self.bytes(group, PREV_HASH, None)?;
            let seen = self.bools(group, SEEN)?;
            let prev_seen = self.bools(group, PREV_SEEN)?;
            let changes = self.bytes(group, CHANGES, None)?;
            let arrays = self.bytes(group, ARRAYS, None)?;
            // What is gone is told with what it was.
            let gone: Vec<usize> = (0..ids.len()).filter(|&at| hashes[at].is_none()).collect();
            let images = match gone.is_empty() {
                true => Vec::new(),
                false => self.bytes(group, BEFORE, Some(&gone))?,
            };
            let mut images = gone.iter().copied().zip(images).peekable();
            for at in 0..ids.len() {
                let image = images.next_if(|(row, _)| *row == at).and_then(|(_, image)| image);
                out.push(NetRow {
                    key: ResourceKey {
                        kind: utf8(&kinds[at], &self.path)?.to_owned(),
                        place: Place::new(utf8(&places[at], &self.path)?),
                        id: utf8(&ids[at], &self.path)?.to_owned(),
                    },
                    was: Known::new(prev_hashes[at].is_some(), prev_seen[at]),
                    is: Known::new(hashes[at].is_some(), seen[at]),
                    since: 0,
                    told: told(changes[at].as_ref(), arrays[at].as_ref(), &self.path)?,
                    image: image.map(|image| utf8(&image, &self.path).map(Into::into)).transpose()?,
                });
            }
        }
        Ok(out)
    }

    /// Reads the given rows (ascending) row group by row group.
    fn by_group<T>(
        &self,
        rows: &[u32],
        mut read: impl FnMut(usize, &[usize]) -> Result<Vec<T>, StoreError>,
    ) -> Result<Vec<T>, StoreError> {
        let mut out = Vec::with_capacity(rows.len());
        let mut rest = rows;
        let mut first = 0;
        for group in 0..self.groups() {
            let count = self.group_rows(group);
            let here = rest.partition_point(|&row| (row as usize) < first + count);
            let inside: Vec<usize> = rest[..here].iter().map(|&row| row as usize - first).collect();
            rest = &rest[here..];
            first += count;
            if !inside.is_empty() {
                out.extend(read(group, &inside)?);
            }
        }
        Ok(out)
    }

    /// The rows whose id is `id`, whatever their type and place.
    pub(crate) fn find_id(&self, wanted: &str) -> Result<Vec<u32>, StoreError> {
        let mut found = Vec::new();
        let mut first = 0;
        for group in 0..self.groups() {
            for (at, id) in self.required_bytes(group, ID, None)?.iter().enumerate() {
                if id.data() == wanted.as_bytes() {
                    found.push(first + u32::try_from(at).expect("a row group is small"));
                }
            }
            first += u32::try_from(self.group_rows(group)).expect("a row group is small");
        }
        Ok(found)
    }

    /// Every row with everything in it.
    pub(crate) fn rows(&self) -> Result<Vec<Row>, StoreError> {
        let mut out = Vec::new();
        self.each_row(|row, _| {
            out.push(row);
            Ok(())
        })?;
        Ok(out)
    }

    /// Every row in turn, with whether it is part of a full image; one row group is in memory at a time.
    pub(crate) fn each_row(&self, mut each: impl FnMut(Row, bool) -> Result<(), StoreError>) -> Result<(), StoreError> {
        for group in 0..self.groups() {
            for (row, base) in self.group_of_rows(group, None)? {
                each(row, base)?;
            }
        }
        Ok(())
    }

    /// Rows at the given numbers (ascending), each with whether it is part of a full image.
    pub(crate) fn rows_at(&self, rows: &[u32]) -> Result<Vec<(Row, bool)>, StoreError> {
        self.by_group(rows, |group, inside| self.group_of_rows(group, Some(inside)))
    }

    fn group_of_rows(&self, group: usize, rows: Option<&[usize]>) -> Result<Vec<(Row, bool)>, StoreError> {
        let choose = |all: Vec<bool>| match rows {
            Some(rows) => rows.iter().map(|&row| all[row]).collect(),
            None => all,
        };
        let ops = self.required_bytes(group, OP, rows)?;
        let kinds = self.required_bytes(group, TYPE, rows)?;
        let places = self.required_bytes(group, PLACE, rows)?;
        let ids = self.required_bytes(group, ID, rows)?;
        let hashes = self.bytes(group, HASH, rows)?;
        let prev_hashes = self.bytes(group, PREV_HASH, rows)?;
        let seen = choose(self.bools(group, SEEN)?);
        let prev_seen = choose(self.bools(group, PREV_SEEN)?);
        let befores = self.bytes(group, BEFORE, rows)?;
        let afters = self.bytes(group, AFTER, rows)?;
        let changes = self.bytes(group, CHANGES, rows)?;
        let arrays = self.bytes(group, ARRAYS, rows)?;
        let image = |hash: &Option<ByteArray>, text: &Option<ByteArray>| -> Result<Option<Image>, StoreError> {
            let Some(hash) = hash else { return Ok(None) };
            let json = text.as_ref().map(|text| utf8(text, &self.path).map(Into::into)).transpose()?;
            Ok(Some(Image { content: content(hash, &self.path)?, json }))
        };
        (0..ids.len())
            .map(|at| {
                let row = Row {
                    key: ResourceKey {
                        kind: utf8(&kinds[at], &self.path)?.to_owned(),
                        place: Place::new(utf8(&places[at], &self.path)?),
                        id: utf8(&ids[at], &self.path)?.to_owned(),
                    },
                    before: image(&prev_hashes[at], &befores[at])?,
                    after: image(&hashes[at], &afters[at])?,
                    was_seen: prev_seen[at],
                    is_seen: seen[at],
                    told: told(changes[at].as_ref(), arrays[at].as_ref(), &self.path)?,
                };
                Ok((row, ops[at].data() == Op::Base.name().as_bytes()))
            })
            .collect()
    }
}
