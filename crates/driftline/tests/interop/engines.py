"""Asks stores with an engine of others: the SQL that `driftline drift --print-sql` prints, and the documented views.

Usage: engines.py ENGINE < questions.json > answers.json

ENGINE is duckdb, datafusion or spark. The input is a list of {"store", "statement"?, "views"?: true, "at"?: [time],
"of"?: [stream, version]}, and the output a list of answers in the same order. Moments are texts in UTC.
"""

import glob
import importlib.util
import json
import os
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[4]
SQL = ROOT / "examples" / "sql"
MOMENTS = {"since", "taken_at", "committed_at", "set_at", "changed_at", "observed_at"}
VIEWS = {
    "versions": "SELECT * FROM versions",
    "baselines": "SELECT * FROM baselines",
    "changes": "SELECT stream, version, op, count(*) AS n FROM changes GROUP BY stream, version, op",
    "resources": "SELECT stream, version, type, place, id, seen, properties, changed_at FROM resources",
}


def at(expression):
    return f"SELECT stream, version, type, place, id, seen, properties, changed_at FROM resources_at({expression})"


class Duckdb:
    def open(self, store):
        import duckdb

        self.db = duckdb.connect()
        self.db.execute("SET TimeZone = 'UTC'")
        for name in ["log", "history", "versions", "baselines", "changes", "resources_at", "resources"]:
            text = (SQL / "duckdb" / f"{name}.sql").read_text(encoding="utf-8")
            self.db.execute(text.replace("{store}", store.replace("'", "''")))

    def ask(self, statement):
        self.db.execute(f"DESCRIBE {statement}")
        names = [row[0] for row in self.db.fetchall()]
        shown = [f"strftime({name}, '%Y-%m-%dT%H:%M:%S.%fZ') AS {name}" if name in MOMENTS else name for name in names]
        self.db.execute(f"SELECT {', '.join(shown)} FROM ({statement})")
        return [dict(zip(names, row)) for row in self.db.fetchall()]


class Datafusion:
    def open(self, store):
        from deltalake import DeltaTable, QueryBuilder

        self.engine = QueryBuilder().register("history", DeltaTable(store))

    def ask(self, statement):
        found = self.engine.execute(statement).read_all()
        names = [field.name for field in found.schema]
        rows = zip(*(found.column(name).to_pylist() for name in names))
        return [dict(zip(names, row)) for row in rows]


class Spark:
    def __init__(self):
        spec = importlib.util.spec_from_file_location("drift", ROOT / "examples" / "spark" / "drift.py")
        self.example = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(self.example)
        jars = glob.glob(os.path.join(os.environ["DRIFTLINE_TEST_SPARK"], "jars", "*.jar"))
        self.spark = self.example.session(
            jars, spark__master=os.environ.get("DRIFTLINE_SPARK_MASTER", "local[2]"), spark__ui__enabled="false",
            spark__ui__showConsoleProgress="false", spark__driver__bindAddress="127.0.0.1",
            spark__driver__host="127.0.0.1", spark__sql__shuffle__partitions="4",
            spark__databricks__delta__snapshotPartitions="2", spark__log__level="ERROR",
        )

    def open(self, store):
        self.example.open_store(self.spark, store)

    def ask(self, statement):
        found = self.spark.sql(statement)
        shown = [
            f"date_format({name}, \"yyyy-MM-dd'T'HH:mm:ss.SSSSSS'Z'\") AS {name}" if name in MOMENTS else name
            for name in found.columns
        ]
        return [row.asDict() for row in found.selectExpr(*shown).collect()]


def plain(value):
    if hasattr(value, "isoformat"):
        return value.isoformat()
    return value.hex() if isinstance(value, (bytes, bytearray)) else value


def main():
    engine = {"duckdb": Duckdb, "datafusion": Datafusion, "spark": Spark}[sys.argv[1]]()
    answers = []
    for question in json.load(sys.stdin):
        engine.open(question["store"])
        answer = {}
        if "statement" in question:
            answer["findings"] = engine.ask(question["statement"])
        if question.get("views"):
            answer |= {name: engine.ask(statement) for name, statement in VIEWS.items()}
        if "at" in question:
            answer["at"] = engine.ask(at(f"'{question['at']}'"))
        if "of" in question:
            answer["of"] = engine.ask(at(f"'{question['of'][0]}', {question['of'][1]}"))
        answers.append({name: [{key: plain(value) for key, value in row.items()} for row in rows]
                        for name, rows in answer.items()})
    json.dump(answers, sys.stdout)


main()
