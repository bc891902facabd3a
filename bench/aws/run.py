#!/usr/bin/env python3
"""Observing AWS, measured: Driftline beside a plain boto3 script and cloud-custodian, against the same emulator in the
same run; and the memory of a listing of 50,000. See README.md."""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
CACHE = Path(os.environ.get("DRIFTLINE_CACHE", Path.home() / ".cache" / "driftline"))
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", CACHE / "target"))
OBSERVERS = ["adopt", "inventory", "dns", "event-topology"]
MB = 1e6


class Cost:
    """What some children cost: CPU seconds of all their threads, wall seconds, the largest resident peak; and what the
    emulator worked meanwhile."""

    def __init__(self, cpu, wall, peak, emulator):
        self.cpu, self.wall, self.peak, self.emulator = cpu, wall, peak, emulator


def measure(commands, work, env, emulator, allowed=(0,)):
    cpu = wall = peak = 0.0
    before = busy(emulator)
    for argv in commands:
        started = time.monotonic()
        with open(work / "stdout.txt", "ab") as out, open(work / "stderr.txt", "wb") as err:
            child = subprocess.Popen([str(word) for word in argv], cwd=work, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=err)
            _, status, usage = os.wait4(child.pid, 0)
        wall += time.monotonic() - started
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode not in allowed:
            sys.exit(f"exit code {child.returncode} from {' '.join(map(str, argv))}\n{(work / 'stderr.txt').read_text()[-2000:]}")
        cpu += usage.ru_utime + usage.ru_stime
        peak = max(peak, usage.ru_maxrss * 1024)
    return Cost(cpu, wall, peak, busy(emulator) - before)


def busy(pid):
    """CPU seconds that a process has had."""
    if pid is None:
        return 0.0
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def medians(times, make, *rest, **options):
    costs = [measure(make(nth), *rest, **options) for nth in range(times)]
    return Cost(*(statistics.median(getattr(cost, name) for cost in costs) for name in ("cpu", "wall", "peak", "emulator")))


def say(text):
    print(text, file=sys.stderr, flush=True)


def environment(requirements, folder):
    """A Python environment of these pins, made if it is not there."""
    if (folder / "requirements.txt").exists() and (folder / "requirements.txt").read_text() == requirements.read_text():
        return folder
    say(f"making {folder}")
    subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
    subprocess.run([folder / "bin/python", "-m", "pip", "install", "--quiet", "--no-deps", "-r", requirements], check=True)
    shutil.copy(requirements, folder / "requirements.txt")
    return folder


def build(program, *flags):
    say(f"building {program}")
    subprocess.run(["cargo", "build", "--quiet", "--locked", "-p", program, *flags], cwd=ROOT, check=True)


def started(argv, env=None):
    """A process that prints its address and stays until its standard input is closed."""
    process = subprocess.Popen([str(word) for word in argv], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    address = process.stdout.readline().strip()
    if not address:
        sys.exit(f"{argv[0]} did not come up")
    return process, address


def stop(process):
    process.stdin.close()
    process.wait()


def calls(proxy):
    with urllib.request.urlopen(proxy + "/_fake/calls") as reply:
        return sum(one["calls"] for one in json.load(reply))


def listing_of(count):
    """A fixture: so many security groups, in EC2's own form, a thousand to a page."""
    rule = "<item><ipProtocol>tcp</ipProtocol><fromPort>{}</fromPort><toPort>{}</toPort><groups/><ipRanges><item><cidrIp>10.{}.0.0/16</cidrIp><description>bench</description></item></ipRanges><ipv6Ranges/><prefixListIds/></item>"
    rules = "".join(rule.format(port, port, port % 250) for port in (22, 443, 8080))
    tags = "".join(f"<item><key>{key}</key><value>{value}</value></item>" for key, value in [("Name", "group {n}"), ("team", "ops"), ("env", "prod")])
    item = (
        "<item><ownerId>{account}</ownerId><groupId>sg-{n}</groupId><groupName>group-{n}</groupName><groupDescription>made by a bench</groupDescription><vpcId>vpc-1</vpcId>"
        f"<ipPermissions>{rules}</ipPermissions><ipPermissionsEgress>{rule.format(-1, -1, 0)}</ipPermissionsEgress><tagSet>{tags}</tagSet></item>"
    )
    return {
        "origin": "hand-written from the public API reference of Amazon EC2; not a recording",
        "fixtures": [{
            "match": {"service": "ec2", "operation": "DescribeSecurityGroups"},
            "listing": {
                "head": "<DescribeSecurityGroupsResponse xmlns=\"http://ec2.amazonaws.com/doc/2016-11-15/\"><requestId>r</requestId><securityGroupInfo>",
                "tail": "</securityGroupInfo>{token}</DescribeSecurityGroupsResponse>",
                "template": item,
                "count": count,
                "page": {"default": 1000, "max": 1000, "size_in": "MaxResults", "token_out": "nextToken"},
            },
        }],
    }


def main():
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--driftline", type=Path, help="measure this program instead of building one")
    arguments.add_argument("--queues", type=int, default=1000)
    arguments.add_argument("--groups", type=int, default=300)
    arguments.add_argument("--functions", type=int, default=50)
    arguments.add_argument("--large", type=int, default=50_000, help="size of the listing whose memory is measured")
    arguments.add_argument("--times", type=int, default=3)
    arguments.add_argument("--without-custodian", action="store_true")
    arguments = arguments.parse_args()

    python = environment(ROOT / "crates/fake-aws/emulators/requirements.txt", CACHE / "aws") / "bin/python"
    driftline = arguments.driftline
    if driftline is None:
        build("driftline", "--release")
        driftline = TARGET / "release/driftline"
    driftline = driftline.resolve()
    build("fake-aws")

    work = Path(tempfile.mkdtemp(prefix="driftline-bench-aws-"))
    keeper, emulator = started([python, "-c", (ROOT / "crates/fake-aws/emulators/keep.py").read_text(), "ministack"])
    pid = int(Path(f"/proc/{keeper.pid}/task/{keeper.pid}/children").read_text().split()[0])
    proxy, counting = started([TARGET / "debug/fake-aws", "--emulator", emulator])
    try:
        env = {
            "PATH": os.environ["PATH"], "HOME": str(work), "AWS_ACCESS_KEY_ID": "111111111111", "AWS_SECRET_ACCESS_KEY": "x",
            "AWS_REGION": "us-east-1", "AWS_DEFAULT_REGION": "us-east-1", "AWS_EC2_METADATA_DISABLED": "true", "NO_COLOR": "1",
            "AWS_ENDPOINT_URL": emulator,
        }
        say("filling the account")
        subprocess.run([python, HERE / "seed.py", str(arguments.queues), str(arguments.groups), str(arguments.functions)], env=env, check=True)

        ours = lambda nth: [[driftline, "--store", work / f"store-{nth}", "observe", name, "--strict"] for name in OBSERVERS]
        plain = lambda nth: [[python, HERE / "plain.py"]]
        rows = [("driftline", medians(arguments.times, ours, work, env, pid)), ("boto3, a plain script", medians(arguments.times, plain, work, env, pid))]
        if not arguments.without_custodian:
            custodian = environment(HERE / "requirements.txt", CACHE / "aws-bench") / "bin/custodian"
            theirs = lambda nth: [[custodian, "run", "--cache-period", "0", "-s", work / f"custodian-{nth}", HERE / "policies.yml"]]
            rows.append(("cloud-custodian", medians(1, theirs, work, env, pid)))

        # The same once more through the proxy, only to count the calls.
        counted = {}
        for name, make in [("driftline", ours), ("boto3, a plain script", plain)]:
            before = calls(counting)
            measure(make("counted"), work, env | {"AWS_ENDPOINT_URL": counting}, None)
            counted[name] = calls(counting) - before

        print(f"\n| against ministack: {arguments.queues} queues, {arguments.groups} groups, {arguments.functions} functions with rule and topic | CPU s | wall s | emulator's CPU s | peak MB | calls | CPU against driftline |\n|---|---|---|---|---|---|---|")
        first = rows[0][1]
        for name, cost in rows:
            print(f"| {name} | {cost.cpu:.2f} | {cost.wall:.2f} | {cost.emulator:.2f} | {cost.peak / MB:.0f} | {counted.get(name, '')} | {cost.cpu / first.cpu:.1f} x |")
        print(f"\ndriftline's wall time is {first.wall / first.emulator:.2f} times the emulator's own CPU time; its CPU is {first.cpu / rows[1][1].cpu:.3f} of the plain script's.")

        file = work / "large.json"
        file.write_text(json.dumps(listing_of(arguments.large)))
        large, address = started([TARGET / "debug/fake-aws", "--emulator", emulator, "--fixtures", file])
        observe = lambda nth: [[driftline, "--store", work / f"large-{nth}", "observe", "adopt", "--strict", "--types", "AWS::EC2::SecurityGroup"]]
        cost = medians(1, observe, work, env | {"AWS_ENDPOINT_URL": address}, None)
        again = measure(observe(0), work, env | {"AWS_ENDPOINT_URL": address}, None)
        stop(large)
        log = json.loads(subprocess.run([driftline, "--store", work / "large-0", "-o", "json", "log"], env=env, cwd=work, check=True, capture_output=True).stdout)
        seen = log["versions"][0]["resources"]
        if seen != arguments.large:
            sys.exit(f"{seen} resources were committed, and not {arguments.large}")
        print(f"\nA listing of {arguments.large} security groups in one region: {cost.cpu:.2f} s CPU, {cost.wall:.2f} s wall, peak {cost.peak / MB:.0f} MB; again, on top of the first: {again.cpu:.2f} s CPU, peak {again.peak / MB:.0f} MB.")
    finally:
        stop(proxy)
        stop(keeper)
        shutil.rmtree(work, ignore_errors=True)


main()
