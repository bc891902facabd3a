#!/usr/bin/env python3
"""Measures Driftline, its peers and the machine's own limits in one run, and judges the bars. See README.md.

This process stays small on purpose: Linux counts the memory of the parent before `exec` into the peak of a child, so
everything that loads data runs as a child (`run.py child ...`, at the end of this file).
"""

import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

import peers

ROOT = Path(__file__).resolve().parent.parent
REQUIREMENTS = ROOT / "bench" / "requirements.txt"
FULL_SIZE = 1_000_000
FILE_SIZE = 20_000
SMALL_SIZE = 2_000
VERSIONS = 10
SOURCE = "bench/estate"
MB = 1e6


class Failure(Exception):
    """The run cannot go on: a command failed."""


# --- measuring ------------------------------------------------------------------------------------------------------


class Cost:
    """What one child cost: CPU seconds (user and system, all threads), peak resident bytes, wall seconds."""

    def __init__(self, cpu, peak, wall):
        self.cpu, self.peak, self.wall = cpu, peak, wall


def measure(argv, work, allowed=(0,), stdout=os.devnull, env=None):
    """Runs one command with `work` as its folder, so that no configuration file is met by chance."""
    argv = [str(part) for part in argv]
    errors = work / "stderr.txt"
    # Nothing that this shell happens to have set may steer Driftline or git.
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("DRIFTLINE_", "GIT_"))}
    clean.update({"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "NO_COLOR": "1"}, **(env or {}))
    started = time.monotonic()
    with open(stdout, "wb") as out, open(errors, "wb") as err:
        child = subprocess.Popen(argv, cwd=work, stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=clean)
        _, status, usage = os.wait4(child.pid, 0)
    wall = time.monotonic() - started
    child.returncode = code = os.waitstatus_to_exitcode(status)
    if code not in allowed:
        tail = errors.read_text(errors="replace")[-2000:]
        raise Failure(f"exit code {code} from: {' '.join(argv)}\n{tail}")
    return Cost(usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024, wall)


def median_cost(times, argv, work, **options):
    costs = [measure(argv, work, **options) for _ in range(times)]
    return Cost(*(statistics.median(getattr(cost, name) for cost in costs) for name in ("cpu", "peak", "wall")))


def folder_bytes(folder):
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def say(text):
    print(text, file=sys.stderr, flush=True)


# --- what is measured with ------------------------------------------------------------------------------------------


class Bench:
    """The programs, the folder to work in, and the rows of the table so far."""

    def __init__(self, options):
        self.work = options.work
        self.resources = options.resources
        self.work.mkdir(parents=True, exist_ok=True)
        self.data = self.work / "data"
        shutil.rmtree(self.data, ignore_errors=True)
        self.data.mkdir()
        self.report = self.data / "report.json"
        self.python = prepare_venv(self.work)
        self.node = peers.prepare_node(self.work, say)
        target = build(options.driftline)
        self.driftline = options.driftline or target / "driftline"
        self.generator = target / "driftline-generate"
        self.rows = []
        self.wrong = []

    def generate(self, name, resources, versions, change, form="ndjson"):
        folder = self.data / name
        say(f"generating {versions} versions of {resources:,} resources, {change:.2%} change, as {form}")
        measure([self.generator, "--resources", resources, "--versions", versions, "--change", change,
                 "--form", form, "--out", folder], self.work)
        return folder, json.loads((folder / "estate.json").read_text())

    def in_store(self, store, *arguments, times=1, **options):
        return median_cost(times, [self.driftline, "--store", store, *arguments], self.work, **options)

    def child(self, *arguments):
        """Runs one of the children below and gives what it says."""
        answer = self.work / "answer.json"
        measure([self.python, Path(__file__).resolve(), "child", *arguments], self.work, stdout=answer)
        return json.loads(answer.read_text())

    def row(self, what, value, unit="CPU-s", bar=None, at=None, floor=None, peer=None):
        """`bar` is (operator, number), judged when the run has the size `at`; floor and peer are (name, number)."""
        judged = bar is not None and at in (None, self.resources)
        met = None
        if judged:
            met = value <= bar[1] if bar[0] == "<=" else value >= bar[1]
        self.rows.append({"what": what, "value": value, "unit": unit, "bar": bar, "at": at, "met": met,
                          "floor": floor, "peer": peer})
        say(f"  {what}: {number(value)} {unit}{' MISSED' if met is False else ''}")

    def same(self, what, *answers):
        """Every engine must give the same counts of modified, deleted and unknown."""
        counts = [(name, {key: found[key] for key in ("modified", "deleted", "unknown")}) for name, found in answers]
        if any(found != counts[0][1] for _, found in counts):
            self.wrong.append(f"{what}: " + "; ".join(f"{name} {found}" for name, found in counts))
            say(f"  WRONG {self.wrong[-1]}")


def planned(estate):
    """What the generator says a version changed, in the words of a report."""
    return {"modified": estate["mutated"], "deleted": estate["removed"], "unknown": estate["added"]}


def prepare_venv(work):
    python = work / "venv" / "bin" / "python"
    stamp = work / "venv" / "requirements.txt"
    wanted = REQUIREMENTS.read_bytes()
    if not (stamp.exists() and stamp.read_bytes() == wanted):
        say("making a virtual environment for the peers")
        subprocess.run([sys.executable, "-m", "venv", "--clear", work / "venv"], check=True, stdout=sys.stderr)
        subprocess.run([python, "-m", "pip", "install", "--quiet", "-r", REQUIREMENTS], check=True, stdout=sys.stderr)
        stamp.write_bytes(wanted)
    return python


def build(driftline):
    packages = ["-p", "driftline-bench"] + ([] if driftline else ["-p", "driftline"])
    subprocess.run(["cargo", "build", "--release", *packages], cwd=ROOT, check=True, stdout=sys.stderr)
    told = subprocess.run(["cargo", "metadata", "--format-version", "1", "--no-deps"], cwd=ROOT, check=True,
                          capture_output=True)
    return Path(json.loads(told.stdout)["target_directory"]) / "release"


# --- the measurements -----------------------------------------------------------------------------------------------


def commits_and_drift(bench):
    """Ten versions of the estate; then drift of neighbours, from afar, and with the view of a baseline."""
    size = bench.resources
    # One version more than is measured first: it is committed last, with a baseline to keep up.
    folder, estate = bench.generate("busy", size, VERSIONS + 1, 0.004)
    files = [folder / f"v{version}.ndjson" for version in range(VERSIONS + 1)]
    limits = physical_limits(bench, files[0])
    pair, far = parquet_pairs(bench, files)

    say("committing")
    store = bench.data / "store"
    costs, grown = [], []
    for file in files[:VERSIONS]:
        before = folder_bytes(store) if store.exists() else 0
        costs.append(bench.in_store(store, "observe", "file", file))
        grown.append((folder_bytes(store) - before) / MB)
    later = [cost.cpu for cost in costs[1:]]
    floor = ("read + SHA-256", limits["read"] + limits["sha256"])
    whole = ("Parquet by DuckDB", pair["bytes"] / MB)
    loading = ("DuckDB, NDJSON to Parquet", pair["loading"])
    bench.row("commit, first version", costs[0].cpu, floor=floor, peer=loading)
    bench.row("commit, first version, peak", costs[0].peak / MB, "MB")
    bench.row("commit, later version (median)", statistics.median(later), bar=("<=", 2.0), at=FULL_SIZE, floor=floor,
              peer=loading)
    bench.row("the same against read + parse + SHA-256", statistics.median(later),
              floor=("read + parse + SHA-256", limits["parse"] + limits["sha256"]))
    bench.row("commit, later version, peak (highest)", max(cost.peak for cost in costs[1:]) / MB, "MB",
              bar=("<=", 400), at=FULL_SIZE)
    bench.row("store, first version", grown[0], "MB", peer=whole)
    bench.row("store, each later version (largest)", max(grown[1:]), "MB", bar=("<=", 1.0), at=FULL_SIZE, peer=whole)
    bench.row("store, ten versions", sum(grown), "MB", bar=("<=", 150), at=FULL_SIZE,
              peer=("ten times Parquet", 10 * pair["bytes"] / MB))

    say("drift between neighbours")
    neighbours = neighbour_drift(bench, store, VERSIONS - 1, VERSIONS, "neighbour drift, 0.4 %", pair, bar=0.06)
    bench.row("neighbour drift, DuckDB / Driftline", pair["cpu"] / neighbours, "times", bar=(">=", 15), at=FULL_SIZE)
    bench.same("neighbours", ("generator", planned(estate)), ("Driftline", report(bench)), ("DuckDB", pair))

    say("drift from a baseline nine versions back")
    baseline_drift(bench, store, far)
    view_after_commit(bench, files)

    calm, calm_estate = bench.generate("calm", size, 3, 0.0004)
    quiet = duckdb_pair(bench, calm / "v1.ndjson", calm / "v2.ndjson")
    quiet_store = bench.data / "calm-store"
    for version in range(3):
        bench.in_store(quiet_store, "observe", "file", calm / f"v{version}.ndjson")
    less = neighbour_drift(bench, quiet_store, 2, 3, "neighbour drift, 0.04 %", quiet)
    bench.same("neighbours, 0.04 %", ("generator", planned(calm_estate)), ("Driftline", report(bench)), ("DuckDB", quiet))
    bench.row("neighbour drift, 0.04 % / 0.4 %", less / neighbours, "of it", bar=("<=", 1 / 3), at=FULL_SIZE)


def neighbour_drift(bench, store, old, new, what, peer, bar=None):
    """Leaves the report where `report` finds it; gives the CPU seconds of the JSON one."""
    between = ["drift", "--between", f"v{old}", f"v{new}", "--exit-zero"]
    found = bench.in_store(store, *between, "-o", f"json={bench.report}", times=7)
    table = bench.in_store(store, *between, "-o", "table", times=7)
    bar = bar and ("<=", bar)
    floor = ("parse the changed rows", peer["floor"])
    duckdb = ("DuckDB FULL OUTER JOIN", peer["cpu"])
    bench.row(f"{what}, json", found.cpu, bar=bar, at=FULL_SIZE, floor=floor, peer=duckdb)
    bench.row(f"{what}, table", table.cpu, bar=bar, at=FULL_SIZE, floor=floor, peer=duckdb)
    bench.row(f"{what}, peak", found.peak / MB, "MB", peer=("DuckDB", peer["peak"] / MB))
    return found.cpu


def baseline_drift(bench, store, far):
    """Each round on a fresh copy of the store, so that the first time is a first time."""
    rounds = []
    ask = ["drift", "--baseline", "main", "--exit-zero", "-o"]
    answer = f"json={bench.report}"
    for turn in range(3):
        copy = bench.data / f"copy-{turn}"
        shutil.copytree(store, copy)
        key = store.with_name(store.name + ".key")
        if key.exists():
            shutil.copy(key, copy.with_name(copy.name + ".key"))
        pin = bench.in_store(copy, "baseline", "set", "main", "--source", SOURCE, "--version", 1)
        first = bench.in_store(copy, *ask, answer)
        bench.same("from version 1, first time", ("Driftline", report(bench)), ("DuckDB", far))
        second = bench.in_store(copy, *ask, answer, times=3)
        bench.same("from version 1, second time", ("Driftline", report(bench)), ("DuckDB", far))
        rounds.append((pin.cpu, first.cpu, second.cpu, bench.in_store(copy, *ask, "table", times=3).cpu))
    pin, first, second, table = (statistics.median(column) for column in zip(*rounds))
    floor = ("parse the changed rows", far["floor"])
    duckdb = ("DuckDB FULL OUTER JOIN", far["cpu"])
    bench.row("pinning a baseline on version 1", pin)
    bench.row("drift nine versions back, first time, json", first, bar=("<=", 0.5), at=FULL_SIZE, floor=floor, peer=duckdb)
    bench.row("drift nine versions back, with view, json", second, bar=("<=", 0.06), at=FULL_SIZE, floor=floor, peer=duckdb)
    bench.row("drift nine versions back, with view, table", table, bar=("<=", 0.06), at=FULL_SIZE, floor=floor, peer=duckdb)


def view_after_commit(bench, files):
    """What the view costs the commit that keeps it up, and that it is right afterwards."""
    copy = bench.data / "copy-0"
    commit = bench.in_store(copy, "observe", "file", files[VERSIONS])
    bench.row("commit, later version, a baseline's view kept up", commit.cpu, bar=("<=", 2.0), at=FULL_SIZE)
    ask = ["drift", "--baseline", "main", "--exit-zero", "-o", f"json={bench.report}"]
    bench.row("drift from the baseline after that commit", bench.in_store(copy, *ask).cpu)
    newest = duckdb_pair(bench, files[0], files[VERSIONS])
    bench.same("from version 1, after one more commit", ("Driftline", report(bench)), ("DuckDB", newest))


def report(bench):
    """What Driftline's last report says; it may leave nothing unchecked, for every extent is complete."""
    found = bench.child("count-report", bench.report)
    # So that the next answer cannot be this one.
    bench.report.unlink()
    return found


def parquet_pairs(bench, files):
    say("DuckDB")
    return (duckdb_pair(bench, files[VERSIONS - 2], files[VERSIONS - 1]),
            duckdb_pair(bench, files[0], files[VERSIONS - 1]))


def duckdb_pair(bench, old, new):
    """The full join of two versions, and what parsing the rows it finds costs by itself."""
    rows = bench.work / "changed-rows.ndjson"
    loading = []
    for file in (old, new):
        if not file.with_suffix(".parquet").exists():
            loading.append(bench.child("parquet", file, file.with_suffix(".parquet"))["cpu"])
    pair = bench.child("join", old.with_suffix(".parquet"), new.with_suffix(".parquet"), rows)
    pair["loading"] = statistics.median(loading) if loading else None
    pair["bytes"] = new.with_suffix(".parquet").stat().st_size
    pair["floor"] = median_cost(5, [bench.generator, "parse-floor", rows], bench.work).cpu
    return pair


def physical_limits(bench, file):
    """What the bytes of one version cost when nothing is done with them."""
    say("physical limits")
    measure(["cat", file], bench.work)
    read = median_cost(3, ["cat", file], bench.work).cpu
    # The digest reads as well; reading is taken off, so that the parts can be added.
    sha256 = max(0.0, bench.child("sha256", file)["cpu"] - read)
    parse = median_cost(3, [bench.generator, "parse-floor", file], bench.work).cpu
    skip = median_cost(3, [bench.generator, "parse-floor", "--skip", file], bench.work).cpu
    bench.row("limit: read one version (cat)", read)
    bench.row("limit: SHA-256 of its bytes", sha256)
    bench.row("limit: read and parse it (sonic-rs, values)", parse)
    bench.row("limit: read and skip through it (sonic-rs, lazy)", skip)
    bench.row("one version as NDJSON", file.stat().st_size / MB, "MB")
    return {"read": read, "sha256": sha256, "parse": parse}


def two_files(bench):
    """Two JSON files to a report, with no store; against deepdiff and git."""
    folder, estate = bench.generate("files", FILE_SIZE, 2, 0.004, form="json")
    lines, _ = bench.generate("files-lines", FILE_SIZE, 2, 0.004)
    old, new = folder / "v0.json", folder / "v1.json"
    # Exit code 2 is "drift found".
    found = median_cost(5, [bench.driftline, "diff", old, new, "-o", f"json={bench.report}"], bench.work, allowed=(0, 2))
    table = median_cost(5, [bench.driftline, "diff", old, new, "-o", "table"], bench.work, allowed=(0, 2))
    floor = ("read + parse both", sum(
        median_cost(3, [bench.generator, "parse-floor", lines / f"v{at}.ndjson"], bench.work).cpu for at in (0, 1)))
    say("deepdiff (takes a while)")
    deep = bench.child("deepdiff", old, new)
    pretty = [bench.work / name for name in ("old-pretty.json", "new-pretty.json")]
    bench.child("pretty", old, new, *pretty)
    git = measure(["git", "diff", "--no-index", "--no-color", "--no-ext-diff", *pretty], bench.work, allowed=(0, 1))
    bench.row("20,000 resources, two files, json", found.cpu, bar=("<=", 0.3), floor=floor, peer=("deepdiff", deep["cpu"]))
    bench.row("20,000 resources, two files, table", table.cpu, bar=("<=", 0.3), floor=floor,
              peer=("git diff, sorted pretty JSON", git.cpu))
    bench.row("20,000 resources, deepdiff / Driftline", deep["cpu"] / found.cpu, "times", bar=(">=", 50))
    bench.row("20,000 resources, two files, peak", found.peak / MB, "MB", peer=("deepdiff", deep["peak"] / MB))
    bench.same("two files", ("generator", planned(estate)), ("Driftline", report(bench)), ("deepdiff", deep))


def start_up(bench):
    floor = ("a process that prints help", median_cost(21, [bench.generator, "--help"], bench.work).cpu)
    helped = median_cost(21, [bench.driftline, "--help"], bench.work)
    bench.row("driftline --help", helped.cpu, bar=("<=", 0.05), floor=floor)
    folder, estate = bench.generate("small", SMALL_SIZE, 2, 0.004)
    store = bench.data / "small-store"
    bench.in_store(store, "observe", "file", folder / "v0.ndjson")
    bench.in_store(store, "baseline", "set", "main", "--source", SOURCE, "--version", 1)
    bench.in_store(store, "observe", "file", folder / "v1.ndjson")
    ask = ["drift", "--baseline", "main", "--exit-zero", "-o"]
    found = bench.in_store(store, *ask, f"json={bench.report}", times=11)
    table = bench.in_store(store, *ask, "table", times=11)
    bench.row("drift over 2,000 resources, json", found.cpu, bar=("<=", 0.05), floor=floor)
    bench.row("drift over 2,000 resources, table", table.cpu, bar=("<=", 0.05), floor=floor)
    bench.same("2,000 resources", ("generator", planned(estate)), ("Driftline", report(bench)))


# --- telling --------------------------------------------------------------------------------------------------------


def number(value):
    if value == 0 or abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.{2 if abs(value) >= 1 else 3}f}"


def markdown(rows):
    lines = ["| what | value | bar | physical limit | ratio | peer | ratio |", "|---|---:|---|---|---:|---|---:|"]
    for row in rows:
        bar = ""
        if row["bar"]:
            operator, limit = row["bar"]
            bar = {"<=": "≤ ", ">=": "≥ "}[operator] + number(limit)
            bar += {True: ", met", False: ", **missed**", None: f" (judged at {row['at'] or 0:,})"}[row["met"]]
        told = [row["what"], f"{number(row['value'])} {row['unit']}", bar]
        for side, ratio in (("floor", lambda other: row["value"] / other), ("peer", lambda other: other / row["value"])):
            name, other = row[side] or (None, None)
            known = other is not None and min(other, row["value"]) > 0
            told += [f"{number(other)} ({name})", f"{number(ratio(other))} x"] if known else ["", ""]
        lines.append("| " + " | ".join(told) + " |")
    lines.append("")
    lines.append("First ratio: value / physical limit. Second ratio: peer / value. MB are 10^6 bytes.")
    return "\n".join(lines)


def first_line(*argv):
    try:
        told = subprocess.run([str(part) for part in argv], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return told.splitlines()[0] if told else "unknown"


def machine(bench):
    cpu, memory = platform.processor() or "unknown", "unknown"
    try:
        facts = Path("/proc/cpuinfo").read_text()
        cpu = next(line.split(":", 1)[1].strip() for line in facts.splitlines() if line.startswith("model name"))
        memory = f"{int(Path('/proc/meminfo').read_text().split()[1]) / 1e6:.0f} GB"
    except (OSError, StopIteration, ValueError):
        pass
    return {
        "cpu": cpu, "cores": os.cpu_count(), "memory": memory, "system": f"{platform.system()} {platform.release()}",
        "load": " ".join(f"{part:.1f}" for part in os.getloadavg()),
        "commit": first_line("git", "-C", ROOT, "describe", "--always", "--dirty", "--abbrev=12"),
        "driftline": first_line(bench.driftline, "--version"), "rustc": first_line("rustc", "--version"),
        "git": first_line("git", "--version"), "node": first_line("node", "--version"),
        "terraform": first_line("terraform", "version"), "jsondiffpatch": locked_version(), "python": platform.python_version(), **bench.child("versions"),
    }


def locked_version():
    lock = json.loads((ROOT / "bench" / "jsondiffpatch" / "package-lock.json").read_text())
    return lock["packages"]["node_modules/jsondiffpatch"]["version"]


def parse_arguments():
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    parser = argparse.ArgumentParser(description="Measures Driftline, its peers and the limits of this machine.")
    parser.add_argument("--resources", type=int, default=None, help=f"size of the large estate ({FULL_SIZE})")
    parser.add_argument("--quick", action="store_true", help=f"the large estate has {FILE_SIZE} resources")
    parser.add_argument("--work", type=Path, default=target,
                        help="where to make the folder driftline-bench, for data and peers")
    parser.add_argument("--driftline", type=Path, default=None, help="measure this program instead of building one")
    parser.add_argument("--save", type=Path, default=None, metavar="FILE", help="write the results as JSON")
    parser.add_argument("--plot", type=Path, default=None, metavar="FILE", help="draw the peers at all sizes as SVG")
    parser.add_argument("--only-peers", action="store_true", help="leave out the bars, the limits and the long history")
    parser.add_argument("--keep", action="store_true", help="leave estates and stores in the work folder")
    options = parser.parse_args()
    options.resources = options.resources or (FILE_SIZE if options.quick else FULL_SIZE)
    # A folder of its own: what is in it is replaced without asking.
    options.work = options.work.resolve() / "driftline-bench"
    options.driftline = options.driftline and options.driftline.resolve()
    return options


def main():
    options = parse_arguments()
    bench = None
    try:
        bench = Bench(options)
        about = machine(bench)
        parts = [] if options.only_peers else [start_up, two_files, commits_and_drift]
        for part in parts:
            part(bench)
        costs = peers.peers(bench, sys.modules[__name__])
    except (Failure, subprocess.CalledProcessError) as error:
        say(f"error: {error}")
        if bench and bench.rows:
            print(markdown(bench.rows))
        return 1
    finally:
        if bench and not options.keep:
            shutil.rmtree(bench.data, ignore_errors=True)
    if bench.rows:
        print(markdown(bench.rows) + "\n")
    print(peers.table(costs, number))
    if options.plot:
        title = "CPU seconds to tell what differs between two versions (0.4 % changed)"
        options.plot.write_text(peers.picture(costs, title))
    print("\n" + " · ".join(f"{name} {value}" for name, value in about.items()))
    missed = [row["what"] for row in bench.rows if row["met"] is False]
    for text in bench.wrong:
        print(f"\n**wrong:** {text}")
    print(f"\n{len(missed)} bars missed, {len(bench.wrong)} answers wrong.")
    if options.save:
        saved = {"machine": about, "resources": options.resources, "rows": bench.rows, "peers": costs,
                 "wrong": bench.wrong}
        options.save.write_text(json.dumps(saved, indent=1, ensure_ascii=False) + "\n")
    return 1 if missed or bench.wrong else 0


# --- children: what loads data. CPU seconds are those of the work alone, without starting Python: it favours the peer --


def child_parquet(source, target):
    """One version, sorted and compressed as DuckDB's users would keep it."""
    import duckdb

    started = time.process_time()
    connection = duckdb.connect()
    connection.execute(f"""
        COPY (
            SELECT "canonicalId" AS id, "resourceType" AS type, account, region, "snapshot"::VARCHAR AS properties
            FROM read_json('{source}', format = 'newline_delimited', columns = {{
                canonicalId: 'VARCHAR', resourceType: 'VARCHAR', account: 'VARCHAR', region: 'VARCHAR',
                "snapshot": 'JSON'}})
            WHERE "canonicalId" IS NOT NULL -- the header line has none
            ORDER BY type, account, region, id
        ) TO '{target}' (FORMAT parquet, COMPRESSION zstd)""")
    return {"cpu": time.process_time() - started}


def child_join(old, new, rows_file):
    """Which rows differ, and in what; the median of three, all in one warm process."""
    import duckdb

    connection = duckdb.connect()
    return joined(rows_file, lambda: connection.execute(f"""
            SELECT coalesce(a.id, b.id), a.properties, b.properties
            FROM '{old}' a FULL OUTER JOIN '{new}' b ON a.id = b.id
            WHERE a.properties IS DISTINCT FROM b.properties""").fetchall())


def child_join_datafusion(old, new, rows_file):
    """The same with DataFusion by itself."""
    from datafusion import SessionContext

    context = SessionContext()
    for name, file in (("a", old), ("b", new)):
        context.register_parquet(name, file)

    def ask():
        found = context.sql("""
            SELECT coalesce(a.id, b.id) AS id, a.properties AS old, b.properties AS new
            FROM a FULL OUTER JOIN b ON a.id = b.id
            WHERE a.properties IS DISTINCT FROM b.properties""").to_pydict()
        return list(zip(found["id"], found["old"], found["new"]))

    return joined(rows_file, ask)


def joined(rows_file, ask):
    spent = []
    for _ in range(3):
        started = time.process_time()
        rows = ask()
        attributes = 0
        for _, before, after in rows:
            if before is not None and after is not None:
                attributes += sum(1 for _ in differences("", json.loads(before), json.loads(after)))
        spent.append(time.process_time() - started)
    with open(rows_file, "w", encoding="utf-8") as out:
        for _, before, after in rows:
            out.writelines(f"{side}\n" for side in (before, after) if side is not None)
    deleted = sum(after is None for _, _, after in rows)
    unknown = sum(before is None for _, before, _ in rows)
    return {"cpu": statistics.median(spent), "peak": own_peak(), "attributes": attributes,
            "modified": len(rows) - deleted - unknown, "deleted": deleted, "unknown": unknown}


def differences(path, left, right):
    """Where two JSON values differ, down to the leaves; lists by position."""
    if isinstance(left, dict) and isinstance(right, dict):
        for name in sorted(left.keys() | right.keys()):
            if name not in left or name not in right:
                yield f"{path}/{name}"
            else:
                yield from differences(f"{path}/{name}", left[name], right[name])
    elif isinstance(left, list) and isinstance(right, list):
        for at in range(max(len(left), len(right))):
            if at >= len(left) or at >= len(right):
                yield f"{path}/{at}"
            else:
                yield from differences(f"{path}/{at}", left[at], right[at])
    elif left != right or isinstance(left, bool) != isinstance(right, bool):
        yield path


def load_by_id(path):
    with open(path, encoding="utf-8") as file:
        return {resource["canonicalId"]: resource for resource in json.load(file)["resources"]}


def load_lines(path):
    with open(path, encoding="utf-8") as file:
        return {resource["canonicalId"]: resource["snapshot"]
                for resource in map(json.loads, file) if "canonicalId" in resource}


def child_deepdiff_lines(old, new):
    return deepdiff(load_lines(old), load_lines(new))


def child_deepdiff(old, new):
    return deepdiff(load_by_id(old), load_by_id(new))


def deepdiff(old, new):
    from deepdiff import DeepDiff

    started = time.process_time()
    found = DeepDiff(old, new, ignore_order=False)
    cpu = time.process_time() - started
    deleted, unknown = old.keys() - new.keys(), new.keys() - old.keys()
    modified = set(found.affected_root_keys) - deleted - unknown
    return {"cpu": cpu, "peak": own_peak(), "modified": len(modified), "deleted": len(deleted), "unknown": len(unknown)}


def child_pretty(old, new, old_pretty, new_pretty):
    for source, target in ((old, old_pretty), (new, new_pretty)):
        with open(target, "w", encoding="utf-8") as file:
            json.dump(load_by_id(source), file, indent=1, sort_keys=True, ensure_ascii=False)
    return {}


def child_pretty_lines(old, new, old_pretty, new_pretty):
    for source, target in ((old, old_pretty), (new, new_pretty)):
        with open(target, "w", encoding="utf-8") as file:
            json.dump(load_lines(source), file, indent=1, sort_keys=True, ensure_ascii=False)
    return {}


def child_sha256(path):
    import hashlib

    spent = []
    for _ in range(3):
        started = time.process_time()
        with open(path, "rb") as file:
            hashlib.file_digest(file, "sha256")
        spent.append(time.process_time() - started)
    return {"cpu": statistics.median(spent)}


def child_count_report(path):
    with open(path, encoding="utf-8") as file:
        drift = json.load(file)
    found = {"modified": 0, "deleted": 0, "unknown": 0, "not_checked": 0}
    for resource in drift["resources"]:
        found[resource["kind"] if resource["status"] == "drifted" else resource["status"]] += 1
    summary = drift["summary"]
    told = (summary["drifted"], summary["unknown"], summary["notChecked"])
    if found["not_checked"] or told != (found["modified"] + found["deleted"], found["unknown"], 0):
        raise SystemExit(f"unchecked resources, or a summary that does not fit the list: {summary}, listed {found}")
    return found


def child_versions():
    import datafusion
    import deepdiff
    import duckdb

    return {"duckdb": duckdb.__version__, "datafusion": datafusion.__version__, "deepdiff": deepdiff.__version__}


def own_peak():
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


if __name__ == "__main__":
    if sys.argv[1:2] == ["child"]:
        chosen = globals()["child_" + sys.argv[2].replace("-", "_")]
        print(json.dumps(chosen(*sys.argv[3:])))
    else:
        sys.exit(main())
