"""Reads a Driftline store the way others would: as a Delta table, and as the Parquet files that the table lists.

Usage: read_store.py STORE

Prints one JSON object with what each of the two readers found: rows by stream, version and op; a digest of all rows;
and the current state of each stream, put together from its newest full image and the changes after it.
"""

import hashlib
import json
import sys
from collections import Counter

import duckdb
from deltalake import DeltaTable, QueryBuilder

COLUMNS = ["stream", "version", "op", "type", "place", "id", "seen", "before", "after"]


def rows_by_deltalake(table):
    selection = ", ".join(f'"{name}"' for name in COLUMNS)
    found = QueryBuilder().register("store", table).execute(f"SELECT {selection} FROM store").read_all()
    return list(zip(*(found.column(name).to_pylist() for name in COLUMNS)))


def rows_by_duckdb(table):
    selection = ", ".join(f'"{name}"' for name in COLUMNS)
    files = [uri.removeprefix("file://") for uri in table.file_uris()]
    return duckdb.sql(f"SELECT {selection} FROM read_parquet({files!r})").fetchall()


def state(rows):
    """What each stream holds now: every resource with its properties, and whether its last pass saw it."""
    streams = {}
    for row in rows:
        streams.setdefault(row[0], []).append(row)
    states = {}
    for stream, own in streams.items():
        base = max(row[1] for row in own if row[2] == "base")
        current = {}
        for row in own:
            if row[2] == "base" and row[1] == base:
                current["\t".join(row[3:6])] = {"seen": row[6], "properties": json.loads(row[8])}
        changes = sorted((row for row in own if row[2] != "base" and row[1] > base), key=lambda row: row[1])
        for _, _, op, kind, place, name, seen, _, after in changes:
            key = "\t".join((kind, place, name))
            if op == "remove":
                del current[key]
            elif op in ("add", "change"):
                current[key] = {"seen": seen, "properties": json.loads(after)}
            else:
                current[key]["seen"] = seen
        states[stream] = current
    return states


def summary(rows):
    rows = sorted(rows, key=lambda row: json.dumps(row))
    digest = hashlib.sha256()
    for stream, version, op, kind, place, name, _, _, after in rows:
        digest.update(json.dumps([stream, version, op, kind, place, name, after]).encode() + b"\n")
    counts = Counter((row[0], row[1], row[2]) for row in rows)
    return {
        "rows": len(rows),
        "counts": [[*key, count] for key, count in sorted(counts.items())],
        "digest": digest.hexdigest(),
        "state": state(rows),
        "texts": sum(len(row[7] or "") + len(row[8] or "") for row in rows),
        "secrets": sum("demo-token-" in (text or "") for row in rows for text in row[7:9]),
    }


def main():
    table = DeltaTable(sys.argv[1])
    result = {
        "tableVersion": table.version(),
        "files": len(table.file_uris()),
        "deltalake": summary(rows_by_deltalake(table)),
        "duckdb": summary(rows_by_duckdb(table)),
    }
    json.dump(result, sys.stdout)


main()
