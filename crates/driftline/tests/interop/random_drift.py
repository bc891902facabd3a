"""Makes random small stores and asks each of them the same question twice: `driftline drift`, and the SQL that
`driftline drift --print-sql` prints, run by DuckDB and DataFusion on the store in place.

Usage: random_drift.py PROGRAM STORES SEED

Every finding must be the same, or be called undecided by SQL. Prints one JSON object with what was compared.
"""

import json
import os
import random
import subprocess
import sys
import tempfile
from collections import Counter

import duckdb
from deltalake import DeltaTable, QueryBuilder

PROGRAM, STORES, SEED = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])

TYPES = [
    "Thing", "AWS::EC2::RouteTable", "AWS::EC2::Volume", "AWS::RDS::DBCluster", "k8s::core/Pod",
    "k8s::rbac.authorization.k8s.io/ClusterRole", "Driftline::Dns::Orphan", "It's ${env:HOME} \"odd\"\\ty*pe é\n",
]
PLACES = ["aws/111111111111/us-east-1", "aws/111111111111/global", "k8s/prod/default", "-", "o'dd \\place"]
NAMES = ["a", "b", "state", "status", "rules", "routes", "attachments", "evaluatedAt", "current", "metadata", "verbs",
         "od\"d/~n\\ame'é", "0", "**"]
TEXTS = ["x", "y", "X", "É", "é", "1", "true", "", "NON_COMPLIANT", "COMPLIANT", "a,\"current\":1}", "it's \\ {\"path\":\"/a\",\"op\":\"add\"", "line\nbreak\u0001"]
SCALARS = [None, True, False, 0, 1, 2, 30, 1.5, -1, 1e300]


def scalar(rng):
    return rng.choice(SCALARS) if rng.random() < 0.5 else rng.choice(TEXTS)


def value(rng, depth=0):
    roll = rng.random()
    if depth > 2 or roll < 0.5:
        return scalar(rng)
    if roll < 0.72:
        return [value(rng, depth + 1) for _ in range(rng.randrange(4))]
    return {name: value(rng, depth + 1) for name in rng.sample(NAMES, rng.randrange(4))}


def properties(rng, kind):
    made = {name: value(rng) for name in rng.sample(NAMES, rng.randrange(1, 5))}
    if kind.endswith(("RouteTable", "Volume")) or rng.random() < 0.2:
        name = "routes" if kind.endswith("RouteTable") else "attachments"
        made[name] = [{"to": rng.choice("abc"), "state": rng.choice(["on", "off"])} for _ in range(rng.randrange(4))]
    if kind.endswith("ClusterRole"):
        made["rules"] = [{"verbs": rng.sample(["get", "list", "watch"], 2)} for _ in range(rng.randrange(3))]
    elif rng.random() < 0.3:
        made["rules"] = {f"r{at}": rng.choice(["NON_COMPLIANT", "COMPLIANT", "ODD"]) for at in range(rng.randrange(3))}
    if rng.random() < 0.02:
        made["a"] = {"$unknown": "x"}
    return made


def mutate(rng, old, kind):
    """Mostly small changes, so that rules and folds have something to say."""
    if rng.random() < 0.15:
        return properties(rng, kind)
    new = json.loads(json.dumps(old))
    at = new
    for _ in range(3):
        keys = list(at) if isinstance(at, dict) else list(range(len(at)))
        if not keys:
            break
        key = rng.choice(keys)
        if isinstance(at[key], (dict, list)) and rng.random() < 0.7:
            if isinstance(at[key], list) and rng.random() < 0.4:
                rng.shuffle(at[key])
                return new
            at = at[key]
            continue
        roll = rng.random()
        if roll < 0.6:
            at[key] = value(rng, 1)
        elif roll < 0.8:
            at.pop(key)
        elif isinstance(at, dict):
            at[rng.choice(NAMES)] = value(rng, 1)
        else:
            at.append(value(rng, 2))
        break
    return new


def rules(rng):
    """A rule book: every kind that the file knows."""
    paths = ["/a", "/b", "/**/a", "/*/b", "/rules/*", "/routes", "/**", "/a/**/b", "/attachments/*/to", "/state",
             "/b/0", "/metadata/*", "/od\"d~1~0n\\ame'é"]
    text = ""
    for _ in range(rng.randrange(5)):
        kind = rng.choice(["ignore", "volatile", "unordered", "default", "equivalent"])
        fields = {"kind": kind, "path": rng.choice(paths), "reason": "a test says so"}
        for name, choices in (
            ("type", ["Thing", "AWS::*", "*", "k8s::*", "It's*", "*e"]), ("place", ["aws/*", "-", "o'dd*"]),
            ("id", ["r1*", "*3"]), ("source", ["s/one", "s/*"]),
        ):
            if rng.random() < 0.25:
                fields[name] = rng.choice(choices)
        # One that matches everything is refused.
        if kind in ("ignore", "volatile") and fields.get("type", "*") == "*":
            fields["type"] = rng.choice(["Thing", "AWS::*", "It's*"])
        extra = ""
        if kind == "default":
            extra = f"value = {json.dumps(rng.choice([0, 1, True, 'x', '']))}\n"
        elif kind == "equivalent":
            form = rng.choice(["case", "spelling", "empty", None])
            extra = f'form = "{form}"\n' if form else "values = [1, 'x', true]\n"
        lines = "".join(f"{name} = {json.dumps(text, ensure_ascii=False)}\n" for name, text in fields.items())
        text += f"[[rule]]\n{lines}{extra}\n"
    if rng.random() < 0.4:
        text += f'[[ignore]]\ntype = {json.dumps(rng.choice(TYPES[:5]))}\nplace = "aws/*"\nreason = "a test says so"\n'
    return text


def coverage(rng, keys):
    if rng.random() < 0.5:
        return "complete"
    extents, named = [], set()
    for kind, place, _ in keys:
        kind, place = (rng.choice([kind, kind, "*"]), rng.choice([place, place, "*"]))
        if (kind, place) in named or rng.random() < 0.2:
            continue
        named.add((kind, place))
        if rng.random() < 0.75:
            extents.append({"type": kind, "place": place, "outcome": "complete"})
        else:
            extents.append({"type": kind, "place": place, "outcome": "partial", "reason": "throttled"})
    return extents


class Case:
    def __init__(self, folder, seed):
        self.rng, self.folder, self.minute = random.Random(seed), folder, 0
        self.store = os.path.join(folder, ".driftline")

    def run(self, *arguments, check=True):
        environment = {"PATH": os.environ["PATH"], "USER": "tester"}
        done = subprocess.run([PROGRAM, *arguments], cwd=self.folder, env=environment, capture_output=True)
        if check and done.returncode != 0:
            raise SystemExit(f"{arguments}: {done.stderr.decode()}")
        return done.stdout.decode()

    def observe(self, source, scope, state, keys, basis):
        self.minute += 1
        # Now and then one that was taken before what is known already.
        at = self.rng.randrange(1, self.minute + 1) if self.rng.random() < 0.2 else self.minute
        header = {
            "schema": "driftline.observation/v1", "source": source, "coverage": coverage(self.rng, keys),
            "takenAt": f"2026-01-01T{at // 60:02}:{at % 60:02}:00.123456Z",
            "resources": [
                {"canonicalId": name, "resourceType": kind, "place": place, "snapshot": state[kind, place, name]}
                for kind, place, name in keys if (kind, place, name) in state and self.rng.random() < 0.93
            ],
        }
        if scope:
            header["scope"] = scope
        if basis:
            header["basis"] = basis
        path = os.path.join(self.folder, "observation.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(header, file)
        self.run("observe", "file", path, "--allow-older", check=False)

    def make(self):
        rng = self.rng
        with open(os.path.join(self.folder, "driftline.toml"), "w", encoding="utf-8") as file:
            file.write(rules(rng))
        streams = [("s/one", None), ("s/two", "part")][: rng.choice([1, 1, 2])]
        keys = {stream: sorted({(rng.choice(TYPES), rng.choice(PLACES), f"r{at}") for at in range(25)}) for stream in streams}
        states = {stream: {key: properties(rng, key[0]) for key in keys[stream] if rng.random() < 0.8} for stream in streams}
        past = {stream: dict(state) for stream, state in states.items()}
        versions = rng.randrange(2, 7)
        pinned = rng.randrange(1, versions)
        for version in range(versions):
            for stream in streams:
                state = states[stream]
                for key in keys[stream]:
                    roll = rng.random()
                    if version and roll < 0.35 and key in state:
                        state[key] = mutate(rng, state[key], key[0])
                    elif version and roll < 0.42:
                        state.pop(key, None)
                    elif version and roll < 0.5:
                        state[key] = past[stream].get(key) or properties(rng, key[0])
                self.observe(*stream, state, keys[stream], rng.choice([None] * 9 + ["another"]))
            if version + 1 == pinned:
                names = ["--source", "s/one"] if rng.random() < 0.2 else []
                self.run("baseline", "set", *names)
            if version >= pinned and rng.random() < 0.7:
                self.accept()
        if rng.random() < 0.3:
            self.run("gc", "--keep", "1s", "--keep-last", str(rng.randrange(1, 3)), "--grace", "0s")

    def accept(self):
        found = [one for one in self.drift([]) if one["status"] in ("drifted", "unknown")]
        for one in self.rng.sample(found, min(2, len(found))):
            path = []
            if one["changes"] and self.rng.random() < 0.6:
                path = ["--path", self.rng.choice(one["changes"])["path"]]
            arguments = ["baseline", "accept", one["canonicalId"], *path, "--reason", "a test says so"]
            self.run(*arguments, check=False)

    def drift(self, points):
        return json.loads(self.run("-o", "json", "drift", "--all", "--exit-zero", *points))["resources"]

    def statement(self, engine, points):
        return self.run("drift", "--print-sql", engine, *points)


def ours(found):
    rows = {}
    for one in found:
        if one["status"] == "in_sync" and not one["excused"]:
            continue
        key = (one["resourceType"], one["place"], one["canonicalId"], one["source"])
        since = one.get("firstSeen")
        rows[key] = (one["status"], one.get("kind"), one.get("account"), one.get("region"), moment(since))
    return rows


def moment(text):
    """A moment as microseconds would be written, whoever wrote it."""
    if text is None:
        return None
    text = str(text).replace("T", " ").replace("Z", "").replace("+00:00", "").removesuffix("+00")
    head, _, fraction = text.partition(".")
    return f"{head}.{fraction.ljust(6, '0')[:6]}"


def theirs(rows):
    found = {}
    for row in rows:
        key = (row["type"], row["place"], row["id"], row["stream"])
        if key in found:
            raise SystemExit(f"{key} is answered twice")
        found[key] = (row["status"], row["kind"], row["account"], row["region"], moment(row["since"]), row["reason"])
    order = [tuple(part.encode() for part in key) for key in found]
    if order != sorted(order):
        raise SystemExit("the rows are not in order of key")
    return found


def by_duckdb(table, statement):
    db = duckdb.connect()
    db.execute("SET TimeZone = 'UTC'")
    files = [uri.removeprefix("file://") for uri in table.file_uris()]
    db.read_parquet(files).create_view("history")
    # As text, so that no package for time zones is needed.
    db.execute(f"SELECT * REPLACE (CAST(since AS VARCHAR) AS since) FROM ({statement})")
    names = [column[0] for column in db.description]
    return [dict(zip(names, row)) for row in db.fetchall()]


def by_datafusion(table, statement):
    found = QueryBuilder().register("history", table).execute(statement).read_all()
    names = [field.name for field in found.schema]
    return [dict(zip(names, row)) for row in zip(*(found.column(name).to_pylist() for name in names))]


def compare(case, points, engine, run, counts, seed):
    expected = ours(case.drift(points))
    found = theirs(run(DeltaTable(case.store), case.statement(engine, points)))
    for key in sorted(expected.keys() | found.keys()):
        one, other = expected.get(key), found.get(key)
        if other and other[0] == "undecided" and one and one[0] in ("drifted", "in_sync", "not_checked") and other[5]:
            counts[f"{engine} undecided"] += 1
            counts["why: " + other[5]] += 1
            continue
        if one is None or other is None or one != other[:5]:
            raise SystemExit(f"seed {seed}, {engine}, {points}: {key}: drift says {one}, SQL says {other}")
        counts[f"{engine} {one[0]} {one[1] or ''}".strip()] += 1


def main():
    counts = Counter()
    for seed in range(SEED, SEED + STORES):
        with tempfile.TemporaryDirectory(prefix="driftline-random-") as folder:
            case = Case(folder, seed)
            case.make()
            questions = [[], ["--between", "v1", "v2"], ["--between", "v2", "v1"], ["--source", "s/one"]]
            questions.append(["--at", f"2026-01-01T00:{case.rng.randrange(1, case.minute + 1):02}:30Z"])
            for points in questions:
                if json.loads(case.run("-o", "json", "drift", *points, check=False) or "null") is None:
                    continue
                counts["questions"] += 1
                compare(case, points, "duckdb", by_duckdb, counts, seed)
                if seed % 8 == 0:
                    compare(case, points, "datafusion", by_datafusion, counts, seed)
        counts["stores"] += 1
    json.dump(counts, sys.stdout, indent=1, sort_keys=True)


main()
