#!/usr/bin/env python3
"""What one evaluation costs, of every alternative of every property transform of AWS on its recorded inputs.

    DRIFTLINE_TEST_JSONATA=FOLDER python3 bench/jsonata/run.py [--rounds N]

FOLDER has npm's jsonata installed (`scripts/test` makes one). Expressions are parsed and documents are converted
beforehand; both engines take turns, and the best round of each counts. CPU time, not wall time.
"""

import argparse
import json
import re
import subprocess
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
OR = re.compile(r"""("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|\s*\$OR\s*""")


def alternatives(text):
    return OR.sub(lambda found: found[1] or "\0", text).split("\0")


def lines(data):
    transforms = json.loads((data / "property_transforms.json").read_text())["transforms"]
    known = {(row["typeName"], row["path"]): alternatives(row["expression"]) for row in transforms}
    packed = data / "property_transform_vectors.json.zst"
    vectors = json.loads(subprocess.run(["zstd", "-dc", packed], check=True, stdout=subprocess.PIPE).stdout)["vectors"]
    for vector in vectors:
        *above, leaf = vector["p"].strip("/").split("/")[1:]
        parent = dict(vector.get("sib", {}))
        if "value" in vector["in"]:
            parent[leaf] = vector["in"]["value"]
        root = parent
        for name in reversed(above):
            root = [root] if name == "*" else {name: root}
        for text, recorded in zip(known[vector["t"], vector["p"]], vector["alts"]):
            for context in recorded:
                yield {"expr": text, "data": parent if context == "parent" else root}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=10)
    args = parser.parse_args()
    data = next(path for path in (ROOT / "../shared/data", ROOT / "../../shared/data") if path.exists())
    build = ["cargo", "build", "--release", "--quiet", "-p", "jsonata", "--example", "throughput", "--message-format=json"]
    built = subprocess.run(build, check=True, cwd=ROOT, stdout=subprocess.PIPE, text=True).stdout.splitlines()
    ours = next(told["executable"] for told in map(json.loads, built) if told.get("executable"))
    best = {}
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
        file.writelines(json.dumps(line) + "\n" for line in lines(data))
        file.flush()
        for _ in range(3):
            for name, command in (("ours", [ours]), ("npm", ["node", Path(__file__).with_name("throughput.mjs")])):
                ran = subprocess.run([*command, file.name, str(args.rounds)], check=True, stdout=subprocess.PIPE)
                told = json.loads(ran.stdout)
                best[name] = min(best.get(name, told), told, key=lambda it: it["nanoseconds"])
    print("| engine | evaluations | values | CPU ns each |\n|---|--:|--:|--:|")
    for name, told in best.items():
        print(f"| {name} | {told['evaluations']} | {told['values']} | {told['nanoseconds']} |")
    print(f"\nnpm takes {best['npm']['nanoseconds'] / best['ours']['nanoseconds']:.1f} times as long")


main()
