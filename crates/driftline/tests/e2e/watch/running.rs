//! As a process that stays: schedules, signals, a lock that dies with it.

use std::process::{Child, Stdio};
use std::time::Duration;

use serde_json::json;

use super::receiver::Got;
use super::{Place, sized};
use crate::support::{COMPLETE, observation_of, ran};

/// A watching process that never outlives its test.
struct Watcher(Option<Child>);

impl Watcher {
    fn start(place: &Place, arguments: &[&str]) -> Self {
        let mut command = place.sandbox.command(["watch"].iter().chain(arguments));
        Self(Some(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()))
    }

    fn signal(&self, name: &str) {
        let id = self.0.as_ref().unwrap().id().to_string();
        assert!(std::process::Command::new("kill").args(["-s", name, &id]).status().unwrap().success());
    }

    fn end(mut self) -> crate::support::Ran {
        ran(&self.0.take().unwrap().wait_with_output().unwrap())
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Waits until something holds; a minute is for ever.
#[track_caller]
fn until(what: &str, holds: impl Fn() -> bool) {
    for _ in 0..600 {
        if holds() {
            return;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    panic!("{what} did not happen within a minute");
}

#[test]
fn it_goes_on_observing_and_telling_until_it_is_told_to_end() {
    let place = Place::begun("[watch]\nevery = \"1s\"\njitter = \"0s\"\n");
    let watcher = Watcher::start(&place, &["--seed", "1"]);
    until("the first round", || place.sandbox.path(".driftline.watch/journal").exists());
    for (sizes, told) in
        [(&[("a", 2), ("b", 1), ("c", 1)][..], "new a"), (&[("a", 1), ("b", 1), ("c", 1)], "resolved a")]
    {
        place.see(&sized(sizes));
        until(told, || place.receiver.got().iter().any(|one| one.says() == told));
    }
    // Another one refuses, and what this one does can be looked at.
    place.once().refused(&["another `driftline watch` is at work"]);
    place.sandbox.run(["watch", "--status"]).succeeded().prints(&["2 delivered"]);
    watcher.signal("TERM");
    let ended = watcher.end().exited(0);
    assert!(ended.err.contains("info  compared") && ended.err.contains("info  ended"), "{}", ended.err);
    let says: Vec<String> = place.receiver.take().iter().map(Got::says).collect();
    assert_eq!(says, ["new a", "resolved a"]);
}

#[test]
fn a_lock_dies_with_its_process() {
    let place = Place::begun("[watch]\nevery = \"1h\"\n");
    let watcher = Watcher::start(&place, &[]);
    // Once it has observed, it holds the lock.
    let versions = || place.sandbox.json(["log"])["versions"].as_array().unwrap().len();
    let before = 2;
    until("an observation", || versions() > before);
    watcher.signal("KILL");
    assert_eq!(watcher.end().code, 137);
    place.once().succeeded();
}

#[test]
fn told_to_end_it_finishes_what_is_under_way() {
    let place = Place::begun("[watch]\nevery = \"1h\"\n");
    let seen = observation_of("test", 50, json!(COMPLETE), &sized(&[("a", 2), ("b", 1), ("c", 1)]));
    place.sandbox.write("seen.json", seen.to_string());
    let script = place.sandbox.write("slow", "#!/bin/sh\ntouch begun\nsleep 2\ncat seen.json\n");
    std::fs::set_permissions(script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let text = std::fs::read_to_string(place.sandbox.path("driftline.toml")).unwrap();
    place.sandbox.write("driftline.toml", text.replace("file = \"now.json\"", "command = [\"./slow\"]"));
    let watcher = Watcher::start(&place, &[]);
    until("the observation", || place.sandbox.path("begun").exists());
    watcher.signal("TERM");
    let ended = watcher.end().exited(0);
    assert!(ended.err.contains("what is under way is finished first"), "{}", ended.err);
    let says: Vec<String> = place.receiver.take().iter().map(Got::says).collect();
    assert_eq!(says, ["new a"]);
}

#[test]
fn a_program_that_is_ended_together_with_the_watch_has_not_failed() {
    let place = Place::begun("[watch]\nevery = \"1h\"\n");
    let script = place.sandbox.write("slow", "#!/bin/sh\ntouch begun\nexec sleep 30\n");
    std::fs::set_permissions(script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let text = std::fs::read_to_string(place.sandbox.path("driftline.toml")).unwrap();
    place.sandbox.write("driftline.toml", text.replace("file = \"now.json\"", "command = [\"./slow\"]"));
    let mut command = place.sandbox.command(["watch"]);
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let group = format!("-{}", child.id());
    let watcher = Watcher(Some(child));
    until("the observation", || place.sandbox.path("begun").exists());
    assert!(std::process::Command::new("kill").args(["-s", "TERM", "--", &group]).status().unwrap().success());
    let ended = watcher.end().exited(0);
    assert!(ended.err.contains("not observed"), "{}", ended.err);
    assert!(place.receiver.take().is_empty(), "nobody was told that it failed");
}

#[test]
fn no_more_sources_run_at_once_than_are_allowed_and_all_of_them_do() {
    let place = Place::begun("");
    let script = place.sandbox.write(
        "one",
        "#!/bin/sh\nmkdir running/$1 && ls running | wc -l >> most\nsleep 0.2\nrmdir running/$1\n\
         printf '{\"schema\": \"driftline.observation/v1\", \"source\": \"%s\", \"coverage\": \"complete\", \"resources\": []}' $1\n",
    );
    std::fs::set_permissions(script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    std::fs::create_dir(place.sandbox.path("running")).unwrap();
    let mut text = std::fs::read_to_string(place.sandbox.path("driftline.toml")).unwrap();
    for at in 0..6 {
        text += &format!("[[source]]\nname = \"s{at}\"\ncommand = [\"./one\", \"s{at}\"]\n");
    }
    place.sandbox.write("driftline.toml", format!("{text}[watch]\nat_once = 2\n"));
    place.once().succeeded();
    let most = std::fs::read_to_string(place.sandbox.path("most")).unwrap();
    let most: Vec<u32> = most.lines().map(|line| line.trim().parse().unwrap()).collect();
    assert_eq!(most.len(), 6);
    assert!(most.iter().all(|running| *running <= 2), "{most:?}");
}
