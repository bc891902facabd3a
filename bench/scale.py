#!/usr/bin/env python3
"""How cost grows with size: commit, drift and store at 10 k to 10 M resources, and a store in S3 beside a folder.

    python3 bench/scale.py                       # up to 1,000,000; about 3 GB of disk
    python3 bench/scale.py --largest 10000000    # 20 GB of disk, a quarter of an hour
    python3 bench/scale.py --s3                  # also a million resources in a bucket of moto, on loopback

The figures of docs/scale.md are its output. Bars are judged where they speak of a size; the exit code is 1 when one
is missed or an answer is wrong.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import run
from run import MB, Cost, Failure, folder_bytes, measure, median_cost, number, say

SIZES = (10_000, 100_000, 1_000_000, 10_000_000)
BUCKET_SIZE = 1_000_000
BARS = {
    (10_000_000, "commit, later version", "CPU-s"): 25,
    (10_000_000, "commit, later version, peak", "MB"): 1500,
    (10_000_000, "drift of neighbours", "CPU-s"): 1,
}


class Scale:
    def __init__(self, options):
        self.work = options.work
        shutil.rmtree(self.work / "scale", ignore_errors=True)
        self.data = self.work / "scale"
        self.data.mkdir(parents=True)
        target = run.build(options.driftline)
        self.driftline = options.driftline or target / "driftline"
        self.generator = target / "driftline-generate"
        self.report = self.data / "report.json"
        self.rows, self.missed, self.wrong = [], [], []

    def row(self, size, what, value, unit):
        bar = BARS.get((size, what, unit))
        if bar is not None and value > bar:
            self.missed.append(f"{what} at {size:,}: {number(value)} {unit}, bar {number(bar)}")
        self.rows.append({"size": size, "what": what, "value": value, "unit": unit, "bar": bar})
        say(f"  {size:>10,} {what}: {number(value)} {unit}")

    def in_store(self, store, *arguments, times=1, env=None):
        return median_cost(times, [self.driftline, "--store", store, *arguments], self.work, env=env)

    def generate(self, size, given):
        if given:
            return given
        folder = self.data / f"estate-{size}"
        measure([self.generator, "--resources", size, "--versions", 3, "--out", folder], self.work)
        return folder


def counts(report):
    with open(report, encoding="utf-8") as file:
        summary = json.load(file)["summary"]
    return {name: summary[name] for name in ("total", "drifted", "unknown", "notChecked")}


def expected(folder):
    estate = json.loads((folder / "estate.json").read_text())
    return {"drifted": estate["mutated"] + estate["removed"], "unknown": estate["added"], "notChecked": 0}


def one_size(scale, size, given):
    folder = scale.generate(size, given)
    store = scale.data / f"store-{size}"
    grown = []
    for at in range(3):
        file = folder / f"v{at}.ndjson"
        cost = scale.in_store(store, "observe", "file", file)
        grown.append(folder_bytes(store))
        if at == 0:
            scale.row(size, "one version as NDJSON", file.stat().st_size / MB, "MB")
            scale.row(size, "commit, first version", cost.cpu, "CPU-s")
            scale.row(size, "commit, first version, peak", cost.peak / MB, "MB")
        if at == 2:
            scale.row(size, "commit, later version", cost.cpu, "CPU-s")
            scale.row(size, "commit, later version, peak", cost.peak / MB, "MB")
    truth = sum(file.stat().st_size for part in ("seg", "_delta_log", "coverage")
                for file in (store / part).rglob("*") if file.is_file())
    scale.row(size, "store, three versions without what is derived", truth / MB, "MB")
    scale.row(size, "store, a later version", (grown[2] - grown[1]) / MB, "MB")
    between = ["drift", "--between", "v2", "v3", "--exit-zero", "-o", f"json={scale.report}"]
    near = scale.in_store(store, *between, times=5)
    told = counts(scale.report)
    scale.row(size, "drift of neighbours", near.cpu, "CPU-s")
    scale.row(size, "drift of neighbours, peak", near.peak / MB, "MB")
    if any(told[name] != value for name, value in expected(folder).items()):
        scale.wrong.append(f"{size:,}: {told}, the generator says {expected(folder)}")
    idle(scale, size, store, folder / "v2.ndjson")
    if size == BUCKET_SIZE:
        return folder, store
    shutil.rmtree(store)
    if not given:
        shutil.rmtree(folder)
    return None


def redate(file, to, taken_at):
    """The same observation, said to be of another time."""
    with open(file, "rb") as old, open(to, "wb") as new:
        header = json.loads(old.readline())
        header["takenAt"] = taken_at
        new.write(json.dumps(header).encode() + b"\n")
        shutil.copyfileobj(old, new, 1 << 20)


def idle(scale, size, store, file):
    """The last version once more, taken a minute later: what does a version without a change write?"""
    again = scale.data / "again.ndjson"
    before = {path: path.stat().st_size for path in store.rglob("*") if path.is_file()}
    redate(file, again, "2037-01-01T00:00:00Z")
    cost = scale.in_store(store, "observe", "file", again)
    written = [path for path in store.rglob("*") if path.is_file() and path not in before]
    scale.row(size, "commit of a version without a change", cost.cpu, "CPU-s")
    scale.row(size, "what it writes", sum(path.stat().st_size for path in written), "bytes")
    again.unlink()
    if sum(path.stat().st_size for path in written) > 2000:
        scale.missed.append(f"a version without a change at {size:,} wrote {[str(path) for path in written]}")


def bucket(scale, folder, local):
    """The same million in a bucket of moto: CPU of ours, and the wall time, beside the folder's."""
    told = subprocess.run([run.ROOT / "scripts" / "aws-env"], capture_output=True, text=True, check=True).stdout
    environment = Path(next(line.split("=", 1)[1].strip("'\"") for line in told.splitlines()
                            if "DRIFTLINE_TEST_AWS=" in line))
    server = subprocess.Popen([environment / "bin" / "moto_server", "-H", "127.0.0.1", "-p", "5599"],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    keys = {"AWS_ACCESS_KEY_ID": "123456789012", "AWS_SECRET_ACCESS_KEY": "x", "AWS_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": "http://127.0.0.1:5599", "DRIFTLINE_CACHE_DIR": str(scale.data / "cache")}
    try:
        make = "import boto3; boto3.client('s3', region_name='us-east-1').create_bucket(Bucket='fleet')"
        for _ in range(60):
            time.sleep(0.5)
            done = subprocess.run([environment / "bin" / "python", "-c", make], env={**os.environ, **keys},
                                  capture_output=True, check=False)
            if done.returncode == 0:
                break
        store = "s3://fleet/drift"
        # The bucket has the bytes that the folder has: they are put there as they are.
        put = ("import boto3, pathlib, sys; s3 = boto3.client('s3'); root = pathlib.Path(sys.argv[1]);"
               "[s3.upload_file(str(f), 'fleet', 'drift/' + str(f.relative_to(root))) for f in root.rglob('*') if f.is_file()]")
        subprocess.run([environment / "bin" / "python", "-c", put, local], env={**os.environ, **keys}, check=True)
        between = ["drift", "--between", "v2", "v3", "--exit-zero", "-o", f"json={scale.report}"]
        here = scale.in_store(local, *between, times=7)
        for name, env in (("with copies on this machine", keys), ("nothing kept here", {**keys, "DRIFTLINE_CACHE_DIR": ""})):
            there = scale.in_store(store, *between, times=7, env=env)
            if any(counts(scale.report)[one] != value for one, value in expected(folder).items()):
                scale.wrong.append(f"S3, {name}: {counts(scale.report)}")
            tell(scale, name, there, here)
        # The key that sealed the secrets lies beside the folder.
        sealed = {**keys, "DRIFTLINE_SEAL_KEY_FILE": f"{local}.key"}
        commits(scale, folder, {"a folder": (local, None), "S3": (store, sealed)})
    finally:
        server.terminate()


def commits(scale, folder, stores):
    """Two later versions of a million as one stream: the first finds nothing on this machine, the second its copies."""
    for turn, (name, source) in enumerate((("nothing kept here yet", "v1"), ("with copies", "v2"))):
        dated = scale.data / "dated.ndjson"
        redate(folder / f"{source}.ndjson", dated, f"2038-01-0{turn + 1}T00:00:00Z")
        for where, (store, env) in stores.items():
            cost = scale.in_store(store, "observe", "file", dated, env=env)
            what = f"commit of a later version into {where}, {name}"
            scale.row(BUCKET_SIZE, what, cost.cpu, "CPU-s")
            scale.row(BUCKET_SIZE, f"{what}, wall", cost.wall, "s")
            scale.row(BUCKET_SIZE, f"{what}, peak", cost.peak / MB, "MB")
        dated.unlink()


def tell(scale, name, there: Cost, here: Cost):
    scale.row(BUCKET_SIZE, f"S3: drift of neighbours, {name}", there.cpu, "CPU-s")
    scale.row(BUCKET_SIZE, f"S3: the same, wall, times that of a folder, {name}", there.wall / here.wall, "times")
    scale.row(BUCKET_SIZE, f"S3: the same, CPU, times that of a folder, {name}", there.cpu / here.cpu, "times")
    if there.cpu > 3 * here.cpu or there.wall > 3 * here.wall:
        scale.missed.append(f"drift over S3, {name}: CPU {there.cpu / here.cpu:.2f}, wall {there.wall / here.wall:.2f} "
                            "times a folder's, bar 3")


def markdown(rows):
    sizes = sorted({row["size"] for row in rows})
    names = list(dict.fromkeys((row["what"], row["unit"]) for row in rows))
    lines = ["| | " + " | ".join(f"{size:,}" for size in sizes) + " |", "|---|" + "---:|" * len(sizes)]
    for name in names:
        found = {row["size"]: row["value"] for row in rows if (row["what"], row["unit"]) == name}
        cells = [number(found[size]) if size in found else "" for size in sizes]
        lines.append(f"| {name[0]}, {name[1]} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main():
    target = Path(os.environ.get("CARGO_TARGET_DIR", run.ROOT / "target"))
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--largest", type=int, default=1_000_000)
    parser.add_argument("--smallest", type=int, default=10_000)
    parser.add_argument("--s3", action="store_true", help="also a million resources in a bucket of moto")
    parser.add_argument("--estate", type=Path, help="three versions that are there already, of the largest size")
    parser.add_argument("--driftline", type=Path, default=None, help="measure this program; it needs the feature bucket")
    parser.add_argument("--work", type=Path, default=target)
    options = parser.parse_args()
    options.work = options.work.resolve() / "driftline-bench"
    scale = Scale(options)
    try:
        for size in [size for size in SIZES if options.smallest <= size <= options.largest]:
            say(f"{size:,} resources")
            kept = one_size(scale, size, options.estate if size == options.largest else None)
            if kept and options.s3:
                bucket(scale, *kept)
            if kept:
                shutil.rmtree(kept[1])
                if kept[0] != options.estate:
                    shutil.rmtree(kept[0])
    except (Failure, subprocess.CalledProcessError) as error:
        say(f"error: {error}")
        print(markdown(scale.rows))
        return 1
    finally:
        shutil.rmtree(scale.data, ignore_errors=True)
    print(markdown(scale.rows))
    print(f"\nload {' '.join(f'{part:.1f}' for part in os.getloadavg())}, {os.cpu_count()} cores, "
          f"{run.first_line(scale.driftline, '--version')}")
    for text in scale.missed + scale.wrong:
        print(f"\n**missed or wrong:** {text}")
    return 1 if scale.missed or scale.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
