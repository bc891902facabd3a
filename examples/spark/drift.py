"""Asks a Driftline store for drift with Spark, in place: nothing is exported, and no code of Driftline runs.

    driftline drift --print-sql spark > drift.sql
    spark-submit --packages io.delta:delta-spark_4.1_2.13:4.3.1 examples/spark/drift.py .driftline drift.sql

The store may be a folder, or an address that Spark can read (`s3a://bucket/prefix` with `hadoop-aws` among the
packages). Without the second argument there is a word on each view, and SQL can be given with `--sql`.

    --write PATH     also write the result there, as Parquet
    --sql STATEMENT  run this over the views instead
"""

import argparse
import hashlib
import pathlib

VIEWS = pathlib.Path(__file__).resolve().parent.parent / "sql" / "spark"

# In the order in which one uses the other.
NAMES = ["log", "versions", "baselines", "changes", "resources_at", "resources"]


def session(jars=None, **settings):
    """A session that reads Delta Lake. Few partitions: what changed is small."""
    from pyspark.sql import SparkSession

    builder = (
        SparkSession.builder.appName("driftline")
        .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
        .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
        .config("spark.sql.session.timeZone", "UTC")
    )
    if jars:
        builder = builder.config("spark.jars", ",".join(jars))
    for name, value in settings.items():
        builder = builder.config(name.replace("__", "."), value)
    return builder.getOrCreate()


def open_store(spark, store):
    """Registers the table `history` and the views of examples/sql/spark over a store."""
    spark.read.format("delta").load(store).createOrReplaceTempView("history")
    for name in NAMES:
        statement = (VIEWS / f"{name}.sql").read_text(encoding="utf-8")
        # It stands between backticks there; two of them are one.
        spark.sql(statement.replace("{store}", store.replace("`", "``")))


def canonical(rows):
    """The result as lines in one order, and the digest by which two engines are compared."""
    parts = (
        (row["type"], row["place"], row["id"], row["stream"], row["status"], row["kind"] or "") for row in rows
    )
    lines = sorted("\t".join(part).encode() for part in parts)
    return lines, hashlib.sha256(b"".join(line + b"\n" for line in lines)).hexdigest()


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("store")
    arguments.add_argument("statement", nargs="?", type=pathlib.Path, help="what `drift --print-sql spark` printed")
    arguments.add_argument("--sql")
    arguments.add_argument("--write")
    given = arguments.parse_args()
    spark = session()
    try:
        answer(spark, given)
    finally:
        spark.stop()


def answer(spark, given):
    spark.sparkContext.setLogLevel("ERROR")
    open_store(spark, given.store)
    if given.statement is None and given.sql is None:
        for name in ["history", "versions", "baselines", "changes", "resources"]:
            print(f"{name}: {', '.join(spark.table(name).columns)}")
        print("resources_at(time) and resources_at(stream, version): the columns of resources")
        return
    found = spark.sql(given.sql if given.sql else given.statement.read_text(encoding="utf-8"))
    if given.write:
        found.write.mode("overwrite").parquet(given.write)
        found = spark.read.parquet(given.write)
    if given.sql:
        found.show(1000, truncate=False)
        return
    rows = found.collect()
    counts = {}
    for row in rows:
        counts[row["status"]] = counts.get(row["status"], 0) + 1
        if row["status"] != "in_sync":
            print(row["status"], row["kind"] or "", row["stream"], row["type"], row["place"], row["id"],
                  row["reason"] or "", sep="\t")
    print(f"result: {', '.join(f'{count} {status}' for status, count in sorted(counts.items())) or 'nothing'}")
    print(f"digest of the ordered result: {canonical(rows)[1]}")


if __name__ == "__main__":
    main()
