//! Log records: what a commit, a baseline or a retention run did, as Delta Lake actions.
//!
//! Record `n` is the file `_delta_log/<n, 20 digits>.json`, created only if absent: whoever creates it made that
//! step. Delta readers see `add`, `remove` and `txn`; our own part rides in `commitInfo`, which they pass over.
//! Each record holds a digest of itself and of the one before it.

use std::collections::BTreeMap;

use driftline_core::{BaselineName, Nature, Problem, StreamId};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};

use crate::baseline::Accepted;
use crate::check::{Checksums, sha256_hex};
use crate::error::{EVENT_FORMAT, FORMAT, PACK_FORMAT, PLAIN_FORMAT, StoreError};
use crate::segment::DELTA_COLUMNS;

pub(crate) const LOG_FOLDER: &str = "_delta_log";

pub(crate) fn record_path(number: u64) -> String {
    format!("{LOG_FOLDER}/{number:020}.json")
}

/// A file that a record refers to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileRef {
    pub path: String,
    pub size: u64,
    pub rows: u64,
    #[serde(flatten)]
    pub checksums: Checksums,
    /// Where the rows are in a file that several versions share; all of the file otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<Part>,
}

/// Some rows of a file that the change files of several versions were packed into.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// How many rows of other versions come before.
    pub first: u64,
    /// How many rows the whole file has.
    pub of: u64,
}

impl FileRef {
    /// How much of the file's size is its own.
    pub fn weight(&self) -> u64 {
        match self.part {
            None => self.size,
            Some(part) => self.size * self.rows / part.of.max(1),
        }
    }
}

/// How many rows a version changed, by what happened to them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangeCounts {
    pub add: u64,
    pub change: u64,
    pub remove: u64,
    pub unseen: u64,
    pub seen: u64,
}

/// The resources of one type at a version: known, and of those how many were not looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TypeCount {
    pub rows: u64,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unseen: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// One committed observation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct VersionRecord {
    pub stream: StreamId,
    pub version: u64,
    pub taken_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observer: Option<String>,
    /// Names the coverage file; equal coverage has an equal name.
    pub coverage: String,
    pub complete_extents: usize,
    pub partial_extents: usize,
    pub rows: u64,
    pub unseen: u64,
    pub changes: ChangeCounts,
    /// By type; left out when it is that of the version before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub types: Option<BTreeMap<String, TypeCount>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<Problem>,
    /// The rows that changed; none when nothing did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delta: Option<FileRef>,
    /// All rows of this version, where a chain starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<FileRef>,
    /// Sums up every key and content of this version.
    pub digest: String,
    /// In which of several ways its listing was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub basis: Option<String>,
    /// Some of what is carried over was seen in another way, in which alone its absence could be told.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub mixed: bool,
    /// Which key sealed the secrets in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seal_key: Option<String>,
    /// What its resources are. A program that does not know this would call events drift, so it raises the format.
    #[serde(default, skip_serializing_if = "Nature::is_state")]
    pub nature: Nature,
}

/// What retention did to one stream.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Thinned {
    pub dropped: Vec<u64>,
    pub rewritten: Vec<Rewritten>,
    /// The coverage of the versions it dropped, some of which other versions may still name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub coverage: Vec<String>,
}

/// A version that is kept, and now follows another kept version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Rewritten {
    pub version: u64,
    /// What changed since the kept version before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delta: Option<FileRef>,
    /// A full image, if it was given one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<FileRef>,
    pub changes: ChangeCounts,
}

/// One step of the log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "step", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Step {
    Version(Box<VersionRecord>),
    BaselineSet { name: BaselineName, pins: BTreeMap<StreamId, u64>, by: String },
    BaselineAccept { name: BaselineName, accepted: Vec<Accepted> },
    BaselineRemove { name: BaselineName, by: String },
    Thin { streams: BTreeMap<StreamId, Thinned>, removed: Vec<FileRef> },
    Pack { packs: Vec<Packed>, removed: Vec<FileRef> },
}

/// The change files of several versions of a stream, now one file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Packed {
    pub stream: StreamId,
    pub file: FileRef,
    /// The versions whose rows it has, in this order, and how many each has.
    pub versions: Vec<(u64, u64)>,
}

impl Packed {
    /// Each version with what it now has for a change file.
    pub(crate) fn parts(&self) -> impl Iterator<Item = (u64, FileRef)> {
        let mut first = 0;
        self.versions.iter().map(move |(version, rows)| {
            let part = Part { first, of: self.file.rows };
            first += rows;
            (*version, FileRef { rows: *rows, part: Some(part), ..self.file.clone() })
        })
    }
}

/// Whether a name leads to a file beneath the folder it is looked up in, whatever that folder is.
pub(crate) fn is_plain(path: &str) -> bool {
    path.split('/').all(|part| !part.is_empty() && part != "." && part != "..") && !path.contains(['\\', '\0'])
}

impl Step {
    /// Every file that it names.
    fn files(&self) -> Box<dyn Iterator<Item = &FileRef> + '_> {
        match self {
            Step::Version(version) => Box::new(version.delta.iter().chain(&version.base)),
            Step::Thin { streams, removed } => {
                let rewritten = streams.values().flat_map(|thinned| &thinned.rewritten);
                Box::new(removed.iter().chain(rewritten.flat_map(|version| version.delta.iter().chain(&version.base))))
            }
            Step::Pack { packs, removed } => Box::new(removed.iter().chain(packs.iter().map(|packed| &packed.file))),
            Step::BaselineSet { .. } | Step::BaselineAccept { .. } | Step::BaselineRemove { .. } => {
                Box::new(std::iter::empty())
            }
        }
    }

    fn format(&self) -> u32 {
        match self {
            Step::Version(version) if !version.nature.is_state() => EVENT_FORMAT,
            Step::Pack { .. } => PACK_FORMAT,
            _ => PLAIN_FORMAT,
        }
    }
}

/// A record of the log, read and checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    pub number: u64,
    pub at: Timestamp,
    pub step: Step,
    /// The digest of this record's bytes, which the next record repeats.
    pub check: String,
    /// The digest this record gives for the one before it.
    pub previous: String,
}

#[derive(Deserialize)]
struct CommitInfo {
    driftline: Ours,
}

#[derive(Serialize, Deserialize)]
struct Ours {
    format: u32,
    at: Timestamp,
    previous: String,
    /// Differs between any two writers, so that one whose reply was lost knows its own record again.
    nonce: String,
    check: String,
    #[serde(flatten)]
    step: Step,
}

/// Only the format, for records whose rest we may not understand.
#[derive(Deserialize)]
struct FormatOnly {
    driftline: Format,
}

#[derive(Deserialize)]
struct Format {
    format: u32,
}

/// Stands where the check will be, while it is computed.
const NO_CHECK: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// `changes` is whether the table has other rows afterwards; where they only moved, followers of it pass over it.
fn add_action(file: &FileRef, at: Timestamp, changes: bool) -> Json {
    json!({"add": {
        "path": file.path,
        "partitionValues": {},
        "size": file.size,
        "modificationTime": at.as_millisecond(),
        "dataChange": changes,
        "stats": format!("{{\"numRecords\":{}}}", file.rows),
    }})
}

fn remove_action(file: &FileRef, at: Timestamp, changes: bool) -> Json {
    json!({"remove": {"path": file.path, "deletionTimestamp": at.as_millisecond(), "dataChange": changes}})
}

/// The table's own description, in the first record of a store.
fn opening_actions(at: Timestamp) -> Vec<Json> {
    let fields: Vec<Json> = DELTA_COLUMNS
        .iter()
        .map(|(name, kind, nullable)| json!({"name": name, "type": kind, "nullable": nullable, "metadata": {}}))
        .collect();
    let schema = json!({"type": "struct", "fields": fields});
    vec![
        json!({"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}),
        json!({"metaData": {
            // Every store is its own table; the id only has to differ between stores, and the first commit's time does.
            "id": table_id(at),
            "name": "driftline",
            "format": {"provider": "parquet", "options": {}},
            "schemaString": schema.to_string(),
            "partitionColumns": [],
            "configuration": {"driftline.format": PLAIN_FORMAT.to_string()},
            "createdTime": at.as_millisecond(),
        }}),
    ]
}

fn table_id(at: Timestamp) -> String {
    let hex = sha256_hex(at.to_string().as_bytes());
    format!("{}-{}-4{}-8{}-{}", &hex[..8], &hex[8..12], &hex[13..16], &hex[17..20], &hex[20..32])
}

/// The bytes of a record, and its check.
pub(crate) fn encode(number: u64, at: Timestamp, previous: &str, nonce: &str, step: &Step) -> (Vec<u8>, String) {
    let mut actions = if number == 0 { opening_actions(at) } else { Vec::new() };
    let operation = match step {
        Step::Version(version) => {
            actions.push(json!({"txn": {
                "appId": version.stream, "version": version.version, "lastUpdated": at.as_millisecond(),
            }}));
            actions
                .extend([&version.delta, &version.base].into_iter().flatten().map(|file| add_action(file, at, true)));
            "WRITE"
        }
        Step::Thin { streams, removed } => {
            actions.extend(removed.iter().map(|file| remove_action(file, at, true)));
            for thinned in streams.values() {
                let files = thinned.rewritten.iter().flat_map(|version| version.delta.iter().chain(&version.base));
                actions.extend(files.map(|file| add_action(file, at, true)));
            }
            "DELETE"
        }
        Step::Pack { packs, removed } => {
            actions.extend(removed.iter().map(|file| remove_action(file, at, false)));
            actions.extend(packs.iter().map(|packed| add_action(&packed.file, at, false)));
            "OPTIMIZE"
        }
        _ => "SET TBLPROPERTIES",
    };
    let ours = Ours {
        format: step.format(),
        at,
        previous: previous.to_owned(),
        nonce: nonce.to_owned(),
        check: NO_CHECK.to_owned(),
        step: step.clone(),
    };
    actions.push(json!({"commitInfo": {
        "timestamp": at.as_millisecond(),
        "operation": operation,
        "engineInfo": concat!("driftline/", env!("CARGO_PKG_VERSION")),
        "driftline": ours,
    }}));
    let mut text = String::new();
    for action in &actions {
        text.push_str(&action.to_string());
        text.push('\n');
    }
    let check = sha256_hex(text.as_bytes());
    (text.replace(&check_member(NO_CHECK), &check_member(&check)).into_bytes(), check)
}

fn check_member(check: &str) -> String {
    format!("\"check\":\"{check}\"")
}

/// Reads a record and checks it against its own digest.
pub(crate) fn decode(number: u64, bytes: &[u8], location: &str) -> Result<Record, StoreError> {
    let path = record_path(number);
    let damaged = |reason: String| StoreError::damaged(path.as_str(), reason);
    let text = std::str::from_utf8(bytes)
        .map_err(|error| damaged(format!("the first bad byte is byte {}: not UTF-8", error.valid_up_to())))?;
    let mut ours = None;
    for (at, line) in text.lines().enumerate() {
        let action: BTreeMap<String, &serde_json::value::RawValue> =
            serde_json::from_str(line).map_err(|error| damaged(format!("line {} is not JSON: {error}", at + 1)))?;
        if let Some(info) = action.get("commitInfo") {
            if let Ok(FormatOnly { driftline }) = serde_json::from_str(info.get())
                && driftline.format > FORMAT
            {
                return Err(StoreError::NewerFormat { location: location.to_owned(), found: driftline.format });
            }
            let info: CommitInfo = serde_json::from_str(info.get())
                .map_err(|error| damaged(format!("line {} is not a record of ours: {error}", at + 1)))?;
            ours = Some(info.driftline);
        }
    }
    let ours =
        ours.ok_or_else(|| damaged("it has no record of ours; did another program write to this table?".into()))?;
    let blank = text.replace(&check_member(&ours.check), &check_member(NO_CHECK));
    if sha256_hex(blank.as_bytes()) != ours.check {
        return Err(damaged(match single_bad_byte(blank.as_bytes(), &ours.check) {
            Some(at) => format!("the first bad byte is byte {at}"),
            None => "it does not add up to its own digest".into(),
        }));
    }
    if let Some(path) = ours.step.files().map(|file| &file.path).find(|path| !is_plain(path)) {
        return Err(damaged(format!("`{path}` is no name of a file in a store")));
    }
    Ok(Record { number, at: ours.at, step: ours.step, check: ours.check, previous: ours.previous })
}

/// The one byte whose change explains a wrong digest, for records small enough to try them all.
fn single_bad_byte(bytes: &[u8], check: &str) -> Option<usize> {
    const SMALL: usize = 4096;
    if bytes.len() > SMALL {
        return None;
    }
    let mut bytes = bytes.to_vec();
    (0..bytes.len()).find(|&at| {
        let original = bytes[at];
        let found = (1..=255u8).any(|flip| {
            bytes[at] = original ^ flip;
            sha256_hex(&bytes) == check
        });
        bytes[at] = original;
        found
    })
}
