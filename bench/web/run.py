#!/usr/bin/env python3
"""`driftline serve` under load: a million resources, 30,000 findings, fifty clients, one core. See README.md."""

import argparse
import gzip
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CACHE = Path(os.environ.get("DRIFTLINE_CACHE", Path.home() / ".cache" / "driftline"))
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", CACHE / "target"))
CLIENTS = 50
P95_MS, RSS_MB, WEIGHT_KB = 150, 500, 100


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--resources", type=int, default=1_000_000)
    parser.add_argument("--findings", type=int, default=30_000)
    parser.add_argument("--seconds", type=int, default=20, help="how long each page is asked for")
    parser.add_argument("--driftline", type=Path, help="measure this program instead of building one")
    parser.add_argument("--generator", type=Path, help="the program that writes estates")
    parser.add_argument("--store", type=Path, help="a store that an earlier run kept")
    parser.add_argument("--keep", type=Path, help="keep the store here")
    parser.add_argument("--save", type=Path)
    args = parser.parse_args()

    if not args.driftline:
        subprocess.run(["cargo", "build", "--release", "--locked", "-p", "driftline", "-p", "driftline-bench"], cwd=ROOT, check=True)
    program = args.driftline or TARGET / "release" / "driftline"
    generator = args.generator or TARGET / "release" / "driftline-generate"
    load = load_tester()
    work = Path(tempfile.mkdtemp(prefix="driftline-bench-web-"))
    try:
        store = args.store or make_store(program, generator, args, args.keep or work / "store", work)
        results = measure(program.resolve(), load, store.resolve(), args.seconds)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    report(results, args)
    if args.save:
        args.save.write_text(json.dumps(results, indent=2) + "\n")
    sys.exit(1 if results["missed"] else 0)


def load_tester():
    """wrk with its table of latencies: from Debian, where it can be installed."""
    if not shutil.which("wrk") and os.geteuid() == 0 and shutil.which("apt-get"):
        subprocess.run("apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq wrk", shell=True, check=True, stdout=subprocess.DEVNULL)
    return shutil.which("wrk") or sys.exit("wrk is not installed: apt-get install wrk")


def make_store(program, generator, args, store, work):
    """Two versions between which so many resources differ; the first is the baseline."""
    share = args.findings / args.resources
    estate = work / "estate"
    run([generator, "--resources", args.resources, "--versions", 2, "--change", share, "--out", estate])
    files = sorted(estate.rglob("*.ndjson"))
    if len(files) != 2:
        sys.exit(f"two versions were expected in {estate}, not {files}")
    for number, file in enumerate(files):
        run([program, "--store", store, "observe", "file", file])
        if number == 0:
            run([program, "--store", store, "baseline", "set"])
    return store


def run(words):
    subprocess.run([str(word) for word in words], check=True, stdout=subprocess.DEVNULL)


def measure(program, load, store, seconds):
    cores = sorted(os.sched_getaffinity(0))
    server_core, client_cores = str(cores[0]), ",".join(map(str, cores[1:] or cores))
    command = ["taskset", "-c", server_core, str(program), "--store", str(store), "serve", "--listen", "127.0.0.1:0"]
    started = time.monotonic()
    server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        line = server.stderr.readline()
        address = re.search(r"http://\S+?(?=/?$)", line.strip()).group(0)
        results = {"pages": {}, "missed": []}
        overview = json.loads(get(address + "/api/v1/overview")[1])
        results["firstAnswerSeconds"] = round(time.monotonic() - started, 2)
        results["resources"], results["summary"] = overview["summary"]["total"], overview["summary"]
        settle(server.pid)
        results["rssAtRestMB"] = rss(server.pid)
        for page in ["/", "/drift", "/api/v1/drift", "/drift?sort=since&q=role", "/versions", "/rules"]:
            results["pages"][page] = one_page(load, client_cores, address, page, seconds)
        results["uncachedMs"] = uncached(address)
        resource = json.loads(get(address + "/api/v1/drift?limit=5")[1])["findings"]
        results["resourceMs"] = [timed(address + "/resource?finding=" + one["id"]) for one in resource]
        results["rssPeakMB"] = rss(server.pid, "VmHWM")
        results["rssMB"] = rss(server.pid)
    finally:
        server.terminate()
        server.wait(timeout=30)
    for page in ["/", "/drift"]:
        got = results["pages"][page]
        if got["p95ms"] > P95_MS:
            results["missed"].append(f"{page}: p95 {got['p95ms']} ms > {P95_MS} ms")
    for page, got in results["pages"].items():
        if not page.startswith("/api") and got["weightKB"] > WEIGHT_KB:
            results["missed"].append(f"{page}: {got['weightKB']} kB > {WEIGHT_KB} kB")
    if results["rssPeakMB"] > RSS_MB:
        results["missed"].append(f"resident peak {results['rssPeakMB']} MB > {RSS_MB} MB")
    return results


def get(url, encoding="identity"):
    request = urllib.request.Request(url, headers={"Accept-Encoding": encoding})
    with urllib.request.urlopen(request, timeout=600) as response:
        return response.headers, response.read()


def timed(url):
    started = time.monotonic()
    get(url)
    return round((time.monotonic() - started) * 1000, 1)


def uncached(address):
    """Addresses that nobody asked for before, one after the other."""
    times = sorted(timed(f"{address}/drift?q=arn%3A{number}") for number in range(40))
    return {"median": times[20], "p95": times[37]}


def settle(pid):
    """Waits until what is computed in the background is done."""
    def busy():
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        return int(fields[11]) + int(fields[12])
    before, quiet = busy(), 0
    while quiet < 3:
        time.sleep(1)
        now = busy()
        quiet = quiet + 1 if now - before <= 5 else 0
        before = now


def rss(pid, name="VmRSS"):
    text = Path(f"/proc/{pid}/status").read_text()
    return round(int(re.search(rf"{name}:\s+(\d+)", text).group(1)) * 1024 / 1e6, 1)


def one_page(load, cores, address, page, seconds):
    script = Path(__file__).with_name("latency.lua")
    command = ["taskset", "-c", cores, load, "-t1", f"-c{CLIENTS}", f"-d{seconds}s", "-s", str(script), "-H", "Accept-Encoding: gzip", address + page]
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    found = json.loads(re.search(r"^RESULT (.*)$", out, re.M).group(1))
    if found["errors"]:
        sys.exit(f"{page}: {found}\n{out}")
    _, body = get(address + page)
    _, zipped = get(address + page, "gzip")
    weight = len(body)
    if not page.startswith("/api"):
        for asset in sorted(set(re.findall(rb'(?:href|src)="(/assets/[^"]+)"', body))):
            weight += len(get(address + asset.decode())[1])
    found["weightKB"] = round(weight / 1000, 1)
    found["zippedKB"] = round(len(zipped) / 1000, 1)
    assert gzip.decompress(zipped)[:15].lower() in (b"<!doctype html>", body[:15].lower())
    return found


def report(results, args):
    print(f"{results['resources']:,} resources, {results['summary']['drifted'] + results['summary']['unknown']:,} drifted or unknown; "
          f"{CLIENTS} clients, server on one core, {args.seconds} s each\n")
    print("| page | requests/s | p50 ms | p95 ms | p99 ms | all of it kB | gzip kB |\n|---|---|---|---|---|---|---|")
    for page, got in results["pages"].items():
        print(f"| `{page}` | {got['rps']:,} | {got['p50ms']} | {got['p95ms']} | {got['p99ms']} | {got['weightKB']} | {got['zippedKB']} |")
    print(f"\nfirst answer after {results['firstAnswerSeconds']} s; a page that nobody asked for before {results['uncachedMs']['median']} ms "
          f"(p95 {results['uncachedMs']['p95']} ms); the page of a resource {results['resourceMs']} ms")
    print(f"resident {results['rssAtRestMB']} MB at rest, {results['rssMB']} MB after, peak {results['rssPeakMB']} MB")
    print("\n".join(f"MISSED {line}" for line in results["missed"]) or "every bar is met")


if __name__ == "__main__":
    main()
