#!/usr/bin/env python3
"""What comparing declared with live costs: the recorded pairs, warm, with ours and with a plain JavaScript program.

    DRIFTLINE_TEST_JSONATA=FOLDER python3 bench/compare/run.py [--rounds N]

FOLDER has npm's jsonata installed (`scripts/test` makes one). Both have the pairs and the facts in memory and every
expression parsed; both apply the rules of the schemas and evaluate the same transforms, without heuristics;
the JavaScript is a little coarser, which the counts of modified pairs show. They take
turns, and the median of each counts. CPU time, not wall time.
"""

import argparse
import json
import statistics
import subprocess
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=200)
    args = parser.parse_args()
    data = next(path for path in (ROOT / "../shared/data", ROOT / "../../shared/data") if path.exists())
    build = ["cargo", "build", "--release", "--quiet", "-p", "driftline-sources", "--example", "compare"]
    built = subprocess.run([*build, "--message-format=json"], check=True, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    told = map(json.loads, built.stdout.splitlines())
    ours = next(one["executable"] for one in told if one.get("executable"))
    runs = {"driftline": [], "JavaScript, npm jsonata": []}
    with tempfile.TemporaryDirectory() as folder:
        pairs, facts = Path(folder, "pairs.jsonl"), Path(folder, "facts.json")
        with pairs.open("wb") as file:
            subprocess.run(["zstd", "-dc", data / "declared_live.jsonl.zst"], check=True, stdout=file)
        with facts.open("wb") as file:
            subprocess.run([ours, pairs, "facts"], check=True, stdout=file)
        commands = [[ours, pairs], ["node", HERE / "compare.mjs", pairs, facts]]
        for _ in range(5):
            for (name, seen), command in zip(runs.items(), commands):
                ran = subprocess.run([*command, str(args.rounds)], check=True, stdout=subprocess.PIPE)
                seen.append(json.loads(ran.stdout))
    print("| | pairs | told as modified | CPU ms a round |\n|---|--:|--:|--:|")
    each = {}
    for name, seen in runs.items():
        each[name] = statistics.median(one["nanoseconds"] for one in seen) / 1e6
        print(f"| {name} | {seen[0]['pairs']:,} | {seen[0]['modified']} | {each[name]:.2f} |")
    first, second = each.values()
    properties = runs["driftline"][0]["properties"]
    print(f"\nratio {first / second:.2f} (the bar is 0.10)")
    print(f"a million declared properties: {first / 1000 / properties * 1_000_000:.2f} CPU-s (the bar is 2)")


if __name__ == "__main__":
    main()
