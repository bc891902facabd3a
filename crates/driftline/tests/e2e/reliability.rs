//! Killed at any instruction, racing with others, interrupted by errors: no version is lost, none is half.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value as Json, json};

use crate::support::{
    COMPLETE, PROGRAM, Ran, Sandbox, as_lines, copy_folder, files, observation, observation_of, ran, skip, thing,
};

/// System calls that change what is on disk, or make a name for it.
const WRITING: &[&str] = &[
    "write",
    "pwrite64",
    "writev",
    "openat",
    "creat",
    "fsync",
    "fdatasync",
    "link",
    "linkat",
    "rename",
    "renameat",
    "renameat2",
    "unlink",
    "unlinkat",
    "mkdir",
    "mkdirat",
    "rmdir",
    "ftruncate",
    "fallocate",
    "copy_file_range",
    "sendfile",
    "chmod",
    "fchmod",
    "fchmodat",
];

fn has_strace() -> bool {
    let works = Command::new("strace").args(["-o", "/dev/null", "true"]).status().is_ok_and(|status| status.success());
    if !works {
        skip("strace is not here or may not trace, so nothing was killed");
    }
    works
}

/// Which calls of `openat` the program is killed at. Opening a file to read changes nothing on disk, but a kill there
/// is one more moment between two writes.
#[derive(Clone, Copy, PartialEq)]
enum Opens {
    All,
    ToWrite,
}

/// The numbers of the writing system calls, each within its kind, that the program makes when it runs undisturbed.
fn system_calls(sandbox: &Sandbox, arguments: &[&str], opens: Opens) -> BTreeMap<&'static str, Vec<usize>> {
    let trace = sandbox.path("trace");
    let mut command = Command::new("strace");
    sandbox.prepare(command.args(["-f", "-qq", "-o"]).arg(&trace).arg(PROGRAM).args(arguments));
    ran(&command.output().unwrap()).succeeded();
    let text = std::fs::read_to_string(trace).unwrap();
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    let mut calls: BTreeMap<&'static str, Vec<usize>> = BTreeMap::new();
    for line in text.lines() {
        let name = line.split_whitespace().nth(1).and_then(|rest| rest.split('(').next());
        let Some(call) = WRITING.iter().find(|known| Some(**known) == name) else { continue };
        let number = seen.entry(call).or_default();
        *number += 1;
        if *call != "openat"
            || opens == Opens::All
            || ["O_CREAT", "O_WRONLY", "O_RDWR"].iter().any(|flag| line.contains(flag))
        {
            calls.entry(call).or_default().push(*number);
        }
    }
    calls
}

/// Runs the program and lets something happen to its `when`th call of `call`.
fn injected(sandbox: &Sandbox, arguments: &[&str], call: &str, what: &str, when: usize) -> std::process::Output {
    let mut command = Command::new("strace");
    let inject = format!("inject={call}:{what}:when={when}");
    command.args(["-f", "-qq", "-o", "/dev/null", "-e", &format!("trace={call}"), "-e", &inject]);
    sandbox.prepare(command.arg(PROGRAM).args(arguments));
    command.output().unwrap()
}

/// Kills the program before each of its writing system calls, each time on a fresh copy of `folder`.
///
/// `check` gets a sandbox in which the program was killed. Returns how many kills there were, by system call.
fn kill_everywhere(
    folder: &Path,
    arguments: &[&str],
    opens: Opens,
    check: impl Fn(&Sandbox, &str),
) -> BTreeMap<&'static str, usize> {
    let copy = || {
        let sandbox = Sandbox::new();
        copy_folder(folder, &sandbox.path(""));
        sandbox
    };
    let mut kills = BTreeMap::new();
    for (call, numbers) in system_calls(&copy(), arguments, opens) {
        let last = numbers.iter().max().copied().unwrap_or_default();
        for when in numbers {
            let sandbox = copy();
            let output = injected(&sandbox, arguments, call, "signal=SIGKILL", when);
            assert_eq!(output.status.signal(), Some(9), "`{call}` number {when} was not reached");
            *kills.entry(call).or_default() += 1;
            check(&sandbox, &format!("killed before `{call}` number {when}"));
        }
        // One more than there are: it completes.
        ran(&injected(&copy(), arguments, call, "signal=SIGKILL", last + 1000)).succeeded();
    }
    let total: usize = kills.values().sum();
    let told = format!("{total} kills of `driftline {}`: {kills:?}\n", arguments.join(" "));
    let _ = std::io::Write::write_all(&mut std::io::stderr().lock(), told.as_bytes());
    kills
}

/// What is in the store: each version's digest, the drift, the baselines.
fn content(sandbox: &Sandbox) -> Json {
    let mut log = sandbox.json(["log", "--limit", "0"]);
    let versions: Vec<Json> = log["versions"]
        .as_array_mut()
        .unwrap()
        .iter()
        .map(|one| json!([one["source"], one["version"], one["digest"], one["resources"], one["changes"]]))
        .collect();
    let drift = sandbox.drift(["--all"]);
    let baselines = sandbox.json(["baseline", "list"]);
    let pins: Vec<Json> = baselines["baselines"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| json!([one["name"], one["pins"], one["accepted"].as_array().unwrap().len()]))
        .collect();
    json!({"versions": versions, "summary": drift["summary"], "resources": drift["resources"], "pins": pins})
}

fn many(range: std::ops::Range<u32>, size: u32) -> Vec<Json> {
    range.map(|at| thing(&format!("t{at:03}"), json!({"size": if at % 3 == 0 { size } else { 0 }}))).collect()
}

/// A store with a baseline and a version after it, and files with what comes next.
fn stored() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.observe_things(0, &many(0..40, 0));
    sandbox.run(["baseline", "set"]).succeeded();
    sandbox.observe_things(1, &many(0..40, 1));
    sandbox.write("next.ndjson", as_lines(&observation(2, &many(5..45, 2))));
    sandbox
}

/// Whatever moment it was killed at: the store is sound, it holds the old or the new state exactly, and from the
/// old one the same command then leads to the new.
fn survives(before: &Sandbox, arguments: &[&str], opens: Opens) -> BTreeMap<&'static str, usize> {
    let after = Sandbox::new();
    copy_folder(&before.path(""), &after.path(""));
    let old = content(before);
    after.run(arguments).succeeded();
    let new = content(&after);
    kill_everywhere(&before.path(""), arguments, opens, |sandbox, when| {
        sandbox.run(["verify"]).exited_when(0, when);
        let found = content(sandbox);
        let is_old = found == old;
        assert!(is_old || found == new, "{when}: neither the old nor the new state\n{found:#}");
        if is_old {
            sandbox.run(arguments).exited_when(0, when);
            assert_eq!(content(sandbox), new, "{when}: repeated, it comes out otherwise");
            sandbox.run(["verify"]).exited_when(0, when);
        }
    })
}

#[test]
fn a_commit_killed_at_any_system_call_is_there_or_not_at_all() {
    if has_strace() {
        let kills = survives(&stored(), &["observe", "file", "next.ndjson"], Opens::All);
        for call in ["openat", "write", "fsync"] {
            assert!(kills[call] > 2, "{kills:?}");
        }
    }
}

#[test]
fn commits_of_every_shape_survive_being_killed() {
    if !has_strace() {
        return;
    }
    let sandbox = stored();
    let partial = json!([{"type": "*", "place": "*", "outcome": "partial", "reason": "throttled"}]);
    let shapes = [
        ("unchanged", observation(2, &many(0..40, 1))),
        ("partial", observation_of("test", 2, partial, &many(30..60, 3))),
        ("gone", observation(2, &[])),
        ("first", observation_of("other/source", 2, json!(COMPLETE), &many(0..3, 1))),
    ];
    for (name, shape) in shapes {
        sandbox.write(name, shape.to_string());
        survives(&sandbox, &["observe", "file", "--allow-empty", name], Opens::ToWrite);
    }
}

#[test]
fn a_commit_that_keeps_views_and_indexes_survives_being_killed_too() {
    if !has_strace() {
        return;
    }
    let sandbox = Sandbox::new();
    let all = |size: u32| (0..300).map(|at| thing(&format!("t{at}"), json!({"size": size}))).collect::<Vec<_>>();
    sandbox.observe_things(0, &all(0));
    sandbox.run(["baseline", "set"]).succeeded();
    // The next record is the 64th, after which the log is summed up.
    for at in 1..62 {
        sandbox.observe_things(at, &all(at % 2)[..if at < 60 { 1 } else { 300 }]);
    }
    sandbox.write("next.ndjson", as_lines(&observation(90, &all(5))));
    let views = |sandbox: &Sandbox| files(&sandbox.store()).keys().filter(|name| name.starts_with("view/")).count();
    let kills = survives(&sandbox, &["observe", "file", "next.ndjson"], Opens::ToWrite);
    sandbox.run(["observe", "file", "next.ndjson"]).succeeded();
    assert!(views(&sandbox) >= 2, "the commit was to write views");
    assert!(kills.values().sum::<usize>() > 20, "{kills:?}");
}

#[test]
fn setting_a_baseline_and_accepting_survive_being_killed() {
    if has_strace() {
        survives(&stored(), &["baseline", "set", "main"], Opens::All);
        survives(&stored(), &["baseline", "accept", "t003", "t006", "--reason", "wanted"], Opens::ToWrite);
    }
}

#[test]
fn retention_killed_at_any_system_call_loses_nothing_that_is_kept() {
    if !has_strace() {
        return;
    }
    let sandbox = stored();
    for at in 2..8 {
        sandbox.observe_things(at, &many(at..45, at));
    }
    let arguments = ["gc", "--keep", "1s", "--keep-last", "2", "--grace", "0s"];
    let before = content(&sandbox);
    let kept = |content: &Json| {
        let mut resources = content["resources"].clone();
        resources.as_array_mut().unwrap().iter_mut().for_each(|one| {
            one.as_object_mut().unwrap().remove("firstSeen");
        });
        json!([content["summary"], resources, content["pins"]])
    };
    kill_everywhere(&sandbox.path(""), &arguments, Opens::All, |killed, when| {
        killed.run(["verify"]).exited_when(0, when);
        assert_eq!(kept(&content(killed)), kept(&before), "{when}");
        killed.run(arguments).exited_when(0, when);
        killed.run(["verify"]).exited_when(0, when);
        assert_eq!(kept(&content(killed)), kept(&before), "{when}");
        let versions = killed.json(["log"])["versions"].as_array().unwrap().len();
        assert_eq!(versions, 3, "{when}: the pinned one and the newest two");
    });
}

#[test]
fn the_first_commit_with_secrets_can_be_repeated_wherever_it_was_killed() {
    if !has_strace() {
        return;
    }
    let sandbox = Sandbox::new();
    let mut secret = thing("a", json!({"password": "hunter2"}));
    secret["sensitive"] = json!(["/password"]);
    sandbox.write("next.json", observation(0, &[secret]).to_string());
    let arguments = ["observe", "file", "next.json"];
    kill_everywhere(&sandbox.path(""), &arguments, Opens::All, |killed, when| {
        killed.run(arguments).exited_when(0, when);
        killed.run(["verify"]).exited_when(0, when);
    });
}

#[test]
fn a_checkup_that_is_killed_leaves_a_store_that_is_sound() {
    if has_strace() {
        kill_everywhere(&stored().path(""), &["doctor"], Opens::ToWrite, |killed, when| {
            killed.run(["verify"]).exited_when(0, when);
        });
    }
}

#[test]
fn a_write_that_fails_leaves_the_version_before_and_no_litter() {
    if !has_strace() {
        return;
    }
    let sandbox = stored();
    let arguments = ["observe", "file", "next.ndjson"];
    let copy = || {
        let copy = Sandbox::new();
        copy_folder(&sandbox.path(""), &copy.path(""));
        copy
    };
    let (old, files_before) = (content(&sandbox), files(&sandbox.store()));
    let mut wrong = BTreeSet::new();
    let mut failures = 0;
    let errors =
        [("write", "ENOSPC"), ("fsync", "EIO"), ("link", "ENOSPC"), ("linkat", "ENOSPC"), ("openat", "ENOSPC")];
    for (call, error) in errors {
        for when in system_calls(&copy(), &arguments, Opens::ToWrite).remove(call).unwrap_or_default() {
            let failed = copy();
            let ran = ran(&injected(&failed, &arguments, call, &format!("error={error}"), when));
            let when = format!("{error} at `{call}` number {when}");
            assert!(!ran.err.contains("panicked"), "{when}: {}", ran.err);
            failed.run(["verify"]).exited_when(0, &when);
            // What is only derived may fail to be written; and what was done is done, told or not.
            if ran.code == 0 || ran.err.contains("standard output") {
                continue;
            }
            failures += 1;
            assert_eq!(ran.code, 1, "{when}");
            if content(&failed) != old {
                wrong.insert(format!("{when}: it says it failed, but the version is there"));
            } else if files(&failed.store()).keys().any(|name| !files_before.contains_key(name)) {
                wrong.insert(format!("{when}: files were left behind"));
            }
            failed.run(arguments).exited_when(0, &when);
        }
    }
    assert!(failures > 2, "{failures}");
    assert_eq!(wrong, BTreeSet::new());
}

/// Commits from several processes at once; each says how many of its commits succeeded, and with what.
fn race(sandbox: &Sandbox, writers: u32, commits: u32, source: impl Fn(u32) -> String + Sync) -> Vec<BTreeSet<String>> {
    std::thread::scope(|scope| {
        let write = |writer: u32| {
            let source = source(writer);
            let mut done = BTreeSet::new();
            for commit in 0..commits {
                let mark = format!("{writer}-{commit}");
                let things = [thing("shared", json!({"mark": mark})), thing(&mark, json!({}))];
                let coverage = json!([{"type": "Thing", "place": "elsewhere", "outcome": "complete"}]);
                let file =
                    sandbox.write(&format!("o-{mark}.json"), observation_of(&source, 0, coverage, &things).to_string());
                let ran = sandbox.run(["observe", "file", file.to_str().unwrap()]);
                assert_eq!(ran.code, 0, "{}", ran.err);
                done.insert(mark);
            }
            done
        };
        let threads: Vec<_> = (0..writers).map(|writer| scope.spawn(move || write(writer))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

/// The versions of a source, and the marks that its shared thing ever had.
fn outcome(sandbox: &Sandbox, source: &str) -> (Vec<u64>, BTreeSet<String>) {
    let log = sandbox.json(["log", source, "--limit", "0"]);
    let mut versions: Vec<u64> =
        log["versions"].as_array().unwrap().iter().map(|one| one["version"].as_u64().unwrap()).collect();
    versions.reverse();
    let mut marks = BTreeSet::new();
    for event in
        sandbox.json(["history", "shared"])["events"].as_array().unwrap().iter().filter(|one| one["source"] == source)
    {
        for change in event["changes"].as_array().into_iter().flatten() {
            marks
                .extend(["baseline", "current"].iter().filter_map(|side| change[side].as_str().map(ToOwned::to_owned)));
        }
    }
    (versions, marks)
}

/// Runs commands in a loop until told to stop; none may ever fail.
fn read_meanwhile(sandbox: &Sandbox, stop: &AtomicBool, commands: &[&[&str]]) -> usize {
    let mut reads = 0;
    while !stop.load(Ordering::Relaxed) {
        for command in commands {
            let ran: Ran = sandbox.run(command.iter());
            assert!(ran.code == 0 || ran.code == 2, "{command:?} failed while others wrote:\n{}", ran.err);
            reads += 1;
        }
    }
    reads
}

#[test]
fn writers_racing_on_one_source_lose_nothing() {
    let sandbox = Sandbox::new();
    let done: BTreeSet<String> = race(&sandbox, 2, 40, |_| "test".into()).into_iter().flatten().collect();
    let (versions, marks) = outcome(&sandbox, "test");
    assert_eq!(versions, (1..=80).collect::<Vec<_>>());
    assert_eq!(marks, done);
    sandbox.run(["verify"]).succeeded();
}

#[test]
fn writers_racing_on_two_sources_lose_nothing() {
    let sandbox = Sandbox::new();
    let done = race(&sandbox, 2, 40, |writer| format!("test/{writer}"));
    for (writer, done) in done.into_iter().enumerate() {
        let (versions, marks) = outcome(&sandbox, &format!("test/{writer}"));
        assert_eq!(versions, (1..=40).collect::<Vec<_>>());
        assert_eq!(marks, done);
    }
    sandbox.run(["verify"]).succeeded();
}

#[test]
fn four_writers_and_their_readers_get_along() {
    let sandbox = Sandbox::new();
    sandbox
        .observe(&observation_of("test", 0, json!(COMPLETE), &[thing("shared", json!({"mark": "start"}))]))
        .succeeded();
    sandbox.run(["baseline", "set"]).succeeded();
    let stop = AtomicBool::new(false);
    let (done, reads) = std::thread::scope(|scope| {
        let drift = scope.spawn(|| read_meanwhile(&sandbox, &stop, &[&["drift", "-q"], &["history", "shared"]]));
        let log = scope.spawn(|| read_meanwhile(&sandbox, &stop, &[&["log"], &["verify"]]));
        let done = race(&sandbox, 4, 50, |_| "test".into());
        stop.store(true, Ordering::Relaxed);
        (done, drift.join().unwrap() + log.join().unwrap())
    });
    let mut done: BTreeSet<String> = done.into_iter().flatten().collect();
    done.insert("start".into());
    let (versions, marks) = outcome(&sandbox, "test");
    assert_eq!(versions, (1..=201).collect::<Vec<_>>());
    assert_eq!(marks, done);
    assert!(reads > 10, "{reads}");
    sandbox.run(["verify"]).succeeded();
}

#[test]
fn writers_that_are_killed_do_not_stop_the_others() {
    let sandbox = Sandbox::new();
    sandbox.observe_things(0, &[thing("shared", json!({"mark": "start"}))]);
    let write = |writer: u32| {
        let mut done = BTreeSet::new();
        for commit in 0..25_u32 {
            let mark = format!("{writer}-{commit}");
            let things = [thing("shared", json!({"mark": mark}))];
            let file = sandbox.write(&format!("o-{mark}.json"), observation(0, &things).to_string());
            let mut child = sandbox.command(["-q", "observe", "file", file.to_str().unwrap()]);
            let mut child = child.stdout(Stdio::null()).spawn().unwrap();
            if writer.is_multiple_of(2) {
                // Some moment or other within a commit.
                std::thread::sleep(std::time::Duration::from_micros(u64::from(commit * 397 % 4_000) + 4_000));
                child.kill().unwrap();
            }
            if child.wait().unwrap().success() {
                done.insert(mark);
            }
        }
        done
    };
    let done: Vec<BTreeSet<String>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|writer| scope.spawn(move || write(writer))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(done[1].len() + done[3].len(), 50, "who was not killed was not disturbed");
    let (versions, marks) = outcome(&sandbox, "test");
    assert!(versions.iter().copied().eq(1..=versions.len() as u64), "{versions:?}");
    for done in done.into_iter().flatten() {
        assert!(marks.contains(&done), "the commit of {done} was lost");
    }
    sandbox.run(["verify"]).succeeded();
}

#[test]
fn retention_and_baselines_race_with_commits_and_readers() {
    let sandbox = Sandbox::new();
    sandbox
        .observe(&observation_of("test", 0, json!(COMPLETE), &[thing("shared", json!({"mark": "start"}))]))
        .succeeded();
    sandbox.run(["baseline", "set"]).succeeded();
    let stop = AtomicBool::new(false);
    let others: [&[&str]; 3] =
        [&["gc", "--keep", "1s", "--keep-last", "3"], &["baseline", "set", "other"], &["drift", "-q"]];
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| read_meanwhile(&sandbox, &stop, &others));
        race(&sandbox, 2, 30, |_| "test".into());
        stop.store(true, Ordering::Relaxed);
        assert!(reader.join().unwrap() > 3);
    });
    sandbox.run(["verify"]).succeeded();
    let log = sandbox.json(["log"]);
    assert_eq!(log["versions"][0]["version"], 61);
}

#[test]
fn verify_is_not_alarmed_by_a_commit_that_comes_while_it_looks() {
    if !has_strace() {
        return;
    }
    let sandbox = stored();
    let trace = sandbox.path("trace");
    let mut command = Command::new("strace");
    sandbox.prepare(command.args(["-f", "-qq", "-e", "trace=openat", "-o"]).arg(&trace).arg(PROGRAM).arg("verify"));
    ran(&command.output().unwrap()).succeeded();
    // It has read the log to its end, and is about to list it.
    let text = std::fs::read_to_string(&trace).unwrap();
    let folder = text.lines().position(|line| line.contains("_delta_log\", ")).unwrap() + 1;
    let mut command = Command::new("strace");
    let delay = format!("inject=openat:delay_enter=2s:when={folder}");
    command.args(["-f", "-qq", "-o", "/dev/null", "-e", "trace=openat", "-e", &delay, PROGRAM, "verify"]);
    sandbox.prepare(&mut command);
    let verify = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    std::thread::sleep(std::time::Duration::from_millis(700));
    sandbox.run(["observe", "file", "next.ndjson"]).succeeded();
    ran(&verify.wait_with_output().unwrap()).succeeded();
}

#[test]
fn a_reader_started_before_a_commit_gets_one_answer() {
    let sandbox = stored();
    let readers: Vec<_> = (0..8)
        .map(|_| {
            sandbox.command(["drift", "-o", "json"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
        })
        .collect();
    sandbox.run(["observe", "file", "next.ndjson"]).succeeded();
    for reader in readers {
        let report = ran(&reader.wait_with_output().unwrap()).exited(2).json();
        let version = report["sources"][0]["version"].as_u64().unwrap();
        let drifted = report["summary"]["drifted"].as_u64().unwrap();
        assert!([(2, 14), (3, 17)].contains(&(version, drifted)), "version {version} with {drifted} drifted");
    }
}
