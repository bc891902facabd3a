"""The same estates, at several sizes, by everything that could be asked instead of Driftline.

Every engine is asked one question: which resources differ between two versions, and in what. The counts must agree.
CPU seconds count from the start of the process for Driftline, git and Terraform; the others are favoured: what they
need to start, to import and to load is left out.
"""

import json
import shutil
import statistics
import subprocess
from pathlib import Path

from plot import Line, draw

SIZES = (500, 2_000, 20_000, 200_000, 1_000_000)
HERE = Path(__file__).resolve().parent

# Up to which size an engine is asked: beyond it takes many minutes, or more memory than there is.
MOST = {"deepdiff": 20_000, "jsondiffpatch": 200_000, "git diff": 200_000, "terraform": 500}

WHAT = {
    "drift": "`driftline drift --between`: over the store, process start to written report",
    "diff": "`driftline diff`: two NDJSON files and no store, process start to written report",
    "DuckDB": "FULL OUTER JOIN of two Parquet files, then a recursive diff in Python; warm, median of three",
    "DataFusion": "the same join and diff through DataFusion's Python package; warm, median of three",
    "deepdiff": "`DeepDiff(old, new)` of two dictionaries by id that are in memory",
    "jsondiffpatch": "`diff(old, new)` of two objects by id that are in memory, in node",
    "git diff": "`git diff --no-index` of two sorted, pretty JSON files; lines, not resources",
    "terraform": "`terraform plan -refresh-only` of as many `terraform_data`; it finds nothing to tell, this is its walk",
}


def peers(bench, tools):
    """Asks every engine at every size; gives {engine: {size: CPU seconds}} and the commands' versions."""
    costs = {engine: {} for engine in WHAT}
    for size in [size for size in SIZES if size < bench.resources] + [bench.resources]:
        tools.say(f"peers at {size:,}")
        one_size(bench, tools, size, costs)
    return costs


def one_size(bench, tools, size, costs):
    folder, estate = bench.generate(f"peers-{size}", size, 2, 0.004)
    old, new = folder / "v0.ndjson", folder / "v1.ndjson"
    answers = [("generator", tools.planned(estate))]
    store = bench.data / f"peers-store-{size}"
    for file in (old, new):
        bench.in_store(store, "observe", "file", file)
    ask = ["drift", "--between", "v1", "v2", "--exit-zero", "-o", f"json={bench.report}"]
    costs["drift"][size] = bench.in_store(store, *ask, times=7).cpu
    answers.append(("drift", tools.report(bench)))
    shutil.rmtree(store)
    found = tools.median_cost(3, [bench.driftline, "diff", old, new, "-o", f"json={bench.report}"], bench.work,
                              allowed=(0, 2))
    costs["diff"][size] = found.cpu
    answers.append(("diff", tools.report(bench)))

    tables = [file.with_suffix(".parquet") for file in (old, new)]
    for file, table in zip((old, new), tables):
        bench.child("parquet", file, table)
    rows = bench.work / "changed-rows.ndjson"
    for engine, child in (("DuckDB", "join"), ("DataFusion", "join-datafusion")):
        told = bench.child(child, *tables, rows)
        costs[engine][size] = told["cpu"]
        answers.append((engine, told))

    if size <= MOST["deepdiff"]:
        told = bench.child("deepdiff-lines", old, new)
        costs["deepdiff"][size] = told["cpu"]
        answers.append(("deepdiff", told))
    if size <= MOST["jsondiffpatch"] and bench.node:
        answer = bench.work / "answer.json"
        tools.measure(["node", "--max-old-space-size=8192", HERE / "jsondiffpatch" / "diff.mjs", bench.node, old, new],
                      bench.work, stdout=answer)
        told = json.loads(answer.read_text())
        costs["jsondiffpatch"][size] = told["cpu"]
        answers.append(("jsondiffpatch", told))
    if size <= MOST["git diff"]:
        pretty = [bench.work / name for name in ("old-pretty.json", "new-pretty.json")]
        bench.child("pretty-lines", old, new, *pretty)
        git = ["git", "diff", "--no-index", "--no-color", "--no-ext-diff", *pretty]
        costs["git diff"][size] = tools.median_cost(3, git, bench.work, allowed=(0, 1)).cpu
        for file in pretty:
            file.unlink()
    if size <= MOST["terraform"] and shutil.which("terraform"):
        costs["terraform"][size] = terraform(bench, tools, old, size)
    bench.same(f"peers at {size:,}", *answers)
    shutil.rmtree(folder)


def terraform(bench, tools, estate, size):
    """As many resources of Terraform's own kind, with the same properties, applied once; then a refresh-only plan."""
    folder = bench.data / f"terraform-{size}"
    folder.mkdir()
    resources = {}
    with open(estate, encoding="utf-8") as file:
        next(file)
        for at, line in enumerate(file):
            # A template would be looked for in `${`; the properties are text, as they are elsewhere.
            text = json.dumps(json.loads(line)["snapshot"]).replace("${", "$${").replace("%{", "%%{")
            resources[f"r{at}"] = {"input": text}
    (folder / "main.tf.json").write_text(json.dumps({"resource": {"terraform_data": resources}}))
    quiet = {"CHECKPOINT_DISABLE": "1", "TF_IN_AUTOMATION": "1", "TF_CLI_CONFIG_FILE": "/dev/null"}
    where = f"-chdir={folder}"
    tools.measure(["terraform", where, "init", "-no-color"], bench.work, env=quiet)
    tools.measure(["terraform", where, "apply", "-auto-approve", "-no-color", "-parallelism=2"], bench.work, env=quiet)
    plan = ["terraform", where, "plan", "-refresh-only", "-detailed-exitcode", "-no-color"]
    cost = statistics.median(tools.measure(plan, bench.work, env=quiet).cpu for _ in range(3))
    shutil.rmtree(folder)
    return cost


def prepare_node(work, say):
    """jsondiffpatch, pinned and locked, beside the data; `None` where there is no node."""
    if not (shutil.which("node") and shutil.which("npm")):
        say("node and npm are not installed: jsondiffpatch is left out")
        return None
    folder, lock = work / "jsondiffpatch", HERE / "jsondiffpatch" / "package-lock.json"
    done = folder / "done.json"
    if not (done.exists() and done.read_bytes() == lock.read_bytes()):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for name in ("package.json", "package-lock.json"):
            shutil.copy(HERE / "jsondiffpatch" / name, folder)
        subprocess.run(["npm", "ci", "--prefix", folder, "--ignore-scripts", "--no-audit", "--no-fund", "--silent"],
                       check=True)
        shutil.copy(lock, done)
    return folder


def table(costs, number):
    """CPU seconds by engine and size, each with its ratio to Driftline over its store."""
    sizes = sorted(costs["drift"])
    lines = ["| CPU-s | " + " | ".join(f"{size:,}" for size in sizes) + " |", "|---|" + "---:|" * len(sizes)]
    for engine, found in costs.items():
        if not found:
            continue
        cells = []
        for size in sizes:
            if size not in found:
                cells.append("")
                continue
            ratio = found[size] / costs["drift"][size]
            cells.append(f"{number(found[size])} s" + ("" if engine == "drift" else f" ({ratio:,.3g} x)"))
        wins = [size for size in sizes if size in found and found[size] < costs["drift"][size]]
        name = f"**{engine}**" if engine in ("drift", "diff") else engine
        if engine != "drift" and wins:
            name += f", cheaper than `drift` at {', '.join(f'{size:,}' for size in wins)}"
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    lines.append("")
    lines.append("In brackets: times what `drift` takes at that size. Empty: not asked at that size.")
    lines += [f"- {engine}: {what}" for engine, what in WHAT.items() if costs[engine]]
    return "\n".join(lines)


def picture(costs, title):
    lines = [Line(engine, sorted(found.items()), ours=engine in ("drift", "diff")) for engine, found in costs.items()
             if found]
    return draw(title, "resources", "CPU seconds", lines)
