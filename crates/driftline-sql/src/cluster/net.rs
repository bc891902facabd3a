//! What became of each resource between two versions, put together by a cluster. Nothing is judged there.

use std::sync::Arc;

use datafusion::arrow::array::{Array, AsArray, RecordBatch};
use datafusion::arrow::datatypes::Int64Type;
use driftline_core::difference::Told;
use driftline_core::{Place, ResourceKey, StreamId};
use driftline_store::net::{Known, NetRow};
use driftline_store::{Catalog, StoreError};

use crate::error::SqlError;
use crate::history::{DataFile, HistoryTable, Texts};
use crate::objects::Opener;
use crate::query::{Engine, Limits, Stop, run_on};

/// One row for each resource that a change file tells of. `settled` is the last version after which it was as it had been
/// at first: only what came after that counts, and if nothing did, nothing became of it. Where one row is left, what it
/// tells is the answer; where there are more, the first image and the last are compared.
const FOLD: &str = "
WITH told AS (
    SELECT *, first_value(prev_hash) OVER (PARTITION BY type, place, id ORDER BY version) AS first_hash,
              first_value(prev_seen) OVER (PARTITION BY type, place, id ORDER BY version) AS first_seen
    FROM deltas WHERE version > {from} AND version <= {to}
),
since AS (
    SELECT *, max(CASE WHEN (hash IS NULL AND first_hash IS NULL) OR (hash = first_hash AND seen = first_seen)
                       THEN version ELSE 0 END) OVER (PARTITION BY type, place, id) AS settled
    FROM told
),
folded AS (
    SELECT type, place, id,
           count(*) AS counted,
           count(*) FILTER (WHERE version > settled) AS steps,
           min(version) FILTER (WHERE version > settled) AS since,
           first_value(first_hash ORDER BY version) AS was_hash,
           first_value(CAST(first_seen AS INT) ORDER BY version) AS was_seen,
           last_value(hash ORDER BY version) AS is_hash,
           last_value(CAST(seen AS INT) ORDER BY version) AS is_seen,
           first_value(before ORDER BY version) FILTER (WHERE version > settled AND before IS NOT NULL) AS before,
           last_value(after ORDER BY version) FILTER (WHERE version > settled AND after IS NOT NULL) AS after,
           last_value(changes ORDER BY version) FILTER (WHERE version > settled) AS changes,
           last_value(arrays ORDER BY version) FILTER (WHERE version > settled) AS arrays
    FROM since
    GROUP BY type, place, id
)
SELECT type, place, id, counted, since,
       was_hash IS NOT NULL AS was_there, was_seen = 1 AS was_seen,
       is_hash IS NOT NULL AS is_there, is_seen = 1 AS is_seen,
       CASE WHEN was_hash IS NULL OR is_hash IS NULL OR was_hash = is_hash THEN NULL
            WHEN steps = 1 THEN changes ELSE differences(before, after) END AS changes,
       CASE WHEN was_hash IS NULL OR is_hash IS NULL OR was_hash = is_hash THEN NULL
            WHEN steps = 1 THEN arrays ELSE differing_arrays(before, after) END AS arrays
FROM folded
ORDER BY type, place, id";

/// What changed from version `from` to version `to` of a stream, `from` being the earlier, in order of key.
pub fn fold(
    place: &str,
    catalog: &Catalog,
    open: Opener,
    (stream, from, to): (&StreamId, u64, u64),
    address: &str,
    limits: &Limits,
    stop: &Stop,
) -> Result<Vec<NetRow>, SqlError> {
    let mut files = Vec::new();
    for version in catalog.stream(stream).map_err(SqlError::Store)?.between(from, to) {
        files.extend(version.delta.iter().map(|file| DataFile::new(stream, version, file, false, to)));
    }
    if files.is_empty() {
        return Ok(Vec::new());
    }
    let expected: u64 = files.iter().map(DataFile::rows).sum();
    let table = HistoryTable::new(place, files, Texts::Plain);
    let engine = Engine::Ballista(address.to_owned());
    // A file that versions share may have rows of others.
    let fold = FOLD.replace("{from}", &from.to_string()).replace("{to}", &to.to_string());
    let answer = run_on(open, &fold, &engine, limits, stop, move |context| {
        context.register_table("deltas", Arc::new(table)).map(drop)
    })?;
    let mut rows = Vec::with_capacity(answer.rows());
    let mut counted = 0;
    for batch in answer.batches() {
        counted += read(batch, &mut rows).map_err(SqlError::Store)?;
    }
    // A part of the answer that got lost on its way would be drift that nobody is told of.
    if counted != expected || !rows.is_sorted_by(|a: &NetRow, b| a.key < b.key) {
        return Err(SqlError::Cluster {
            address: address.to_owned(),
            what: format!(
                "told of {counted} rows of `{stream}`, and its change files have {expected}; nothing of it is used"
            ),
            hints: vec!["without --engine this machine answers".into()],
        });
    }
    Ok(rows)
}

/// Adds the rows that say something, and returns how many rows of change files all of them stand for.
fn read(batch: &RecordBatch, rows: &mut Vec<NetRow>) -> Result<u64, StoreError> {
    let strange = |reason: &str| StoreError::Damaged { path: "the cluster's answer".into(), reason: reason.into() };
    let column = |name: &str| batch.column_by_name(name).ok_or_else(|| strange(&format!("it has no `{name}`")));
    let text =
        |name: &str| column(name)?.as_string_opt::<i32>().ok_or_else(|| strange(&format!("`{name}` is no text")));
    let number = |name: &str| {
        column(name)?.as_primitive_opt::<Int64Type>().ok_or_else(|| strange(&format!("`{name}` is no number")))
    };
    let flag = |name: &str| column(name)?.as_boolean_opt().ok_or_else(|| strange(&format!("`{name}` is no boolean")));
    let (kinds, places, ids) = (text("type")?, text("place")?, text("id")?);
    let (counts, since) = (number("counted")?, number("since")?);
    let (was_there, was_seen) = (flag("was_there")?, flag("was_seen")?);
    let (is_there, is_seen) = (flag("is_there")?, flag("is_seen")?);
    let (changes, arrays) = (text("changes")?, text("arrays")?);
    let mut counted = 0;
    for row in 0..batch.num_rows() {
        counted += u64::try_from(counts.value(row)).map_err(|_| strange("a count is below zero"))?;
        if since.is_null(row) {
            continue;
        }
        let since = u64::try_from(since.value(row)).map_err(|_| strange("a version is below zero"))?;
        let told = (!changes.is_null(row)).then(|| Told {
            changes: changes.value(row).into(),
            arrays: (!arrays.is_null(row)).then(|| arrays.value(row).into()),
        });
        let key = ResourceKey {
            kind: kinds.value(row).to_owned(),
            place: Place::new(places.value(row)),
            id: ids.value(row).to_owned(),
        };
        let was = Known::new(was_there.value(row), was_seen.value(row));
        let is = Known::new(is_there.value(row), is_seen.value(row));
        rows.push(NetRow::folded(key, was, is, since, told));
    }
    Ok(counted)
}
