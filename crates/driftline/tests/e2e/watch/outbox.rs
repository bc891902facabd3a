//! What is to be told is told, whatever is in the way: refusals, failures, kills at any moment.

use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt;
use std::process::Command;

use serde_json::json;

use super::receiver::{Got, Reply};
use super::{Place, sized};
use crate::support::{PROGRAM, Sandbox, copy_folder, skip};

#[test]
fn what_fails_is_tried_again_under_the_same_id_and_not_before_it_was_asked_to_wait() {
    let place = Place::begun("");
    place.receiver.will_say([Reply(503, "", "down".into()), Reply(429, "Retry-After: 3", String::new())]);
    place.see(&sized(&[("a", 2), ("b", 1), ("c", 1)]));
    let ran = place.once().succeeded().says(&["not delivered yet", "status 503: down", "status 429"]);
    let got = place.receiver.take();
    assert_eq!(got.len(), 3, "{}", ran.err);
    assert!(got.iter().all(|one| one.id() == got[0].id() && one.body == got[0].body));
    let times: Vec<i64> = got.iter().map(|one| one.headers["webhook-timestamp"].parse().unwrap()).collect();
    assert!(times[2] - times[1] >= 3, "{times:?}");
    assert_eq!(place.told(), [""; 0]);
}

#[test]
fn what_cannot_be_delivered_waits_for_the_next_run() {
    let place = Place::begun("");
    place.receiver.will_say((0..10).map(|_| Reply(500, "Retry-After: 60", String::new())));
    place.see(&sized(&[("a", 2), ("b", 2), ("c", 1)]));
    place.once().exited(1).says(&["it waits in the outbox"]);
    let tried = place.receiver.take();
    assert_eq!(tried.len(), 2, "each once");
    let status = place.sandbox.json(["watch", "--status"]);
    assert_eq!(status["waiting"].as_array().unwrap().len(), 2);
    assert_eq!(status["waiting"][0]["attempts"], 1);
    place.sandbox.run(["watch", "--status"]).succeeded().prints(&["2 waiting", "answered with status 500"]);
    // It is not resolved behind anybody's back: what was to be told first is told first.
    place.see(&sized(&[("a", 1), ("b", 2), ("c", 1)]));
    place.once().exited(1);
    assert!(place.receiver.take().is_empty(), "not before it was asked to wait");
    let ids: Vec<String> = tried.iter().map(Got::id).collect();
    place.sandbox.run(["watch", "--retry", &ids.join(",")]).succeeded();
    place.receiver.forget_replies();
    place.once().succeeded();
    let again = place.receiver.take();
    let says: Vec<String> = again.iter().map(Got::says).collect();
    assert_eq!(says, ["new a", "new b", "resolved a"], "in order");
    assert!(ids.iter().all(|id| again.iter().any(|one| one.id() == *id)), "{again:?}");
}

#[test]
fn a_message_that_is_refused_is_a_dead_letter_that_can_be_seen_tried_again_and_dropped() {
    let place = Place::begun("");
    place.receiver.will_say([Reply(422, "", "no_such_field".into()), Reply(400, "", "`2` is no text: size".into())]);
    place.see(&sized(&[("a", 2), ("b", 2), ("c", 1)]));
    let ran = place.once().exited(1).says(&["a dead letter", "status 422: no_such_field"]);
    assert!(!ran.err.contains("no text"), "what a server repeats of what it was sent is not logged: {}", ran.err);
    let got = place.receiver.take();
    assert_eq!(got.len(), 2);
    let shown = place.sandbox.run(["watch", "--status"]).succeeded();
    shown.prints(&["DEAD LETTERS 2", "no_such_field", &got[0].id(), "--retry ID"]);
    place.sandbox.run(["watch", "--retry", "nothing"]).refused(&["there is no message `nothing`"]);
    place.sandbox.run(["watch", "--retry", &got[0].id()]).succeeded().prints(&["1 message"]);
    place.sandbox.run(["watch", "--drop", "all"]).succeeded().prints(&["1 message"]);
    assert_eq!(place.told(), [got[0].says()]);
    assert_eq!(place.sandbox.json(["watch", "--status"])["dead"], json!([]));
}

#[test]
fn a_journal_that_is_damaged_is_said_and_not_forgotten() {
    let place = Place::begun("");
    let path = place.sandbox.path(".driftline.watch/journal");
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[3] ^= 1;
    std::fs::write(&path, &bytes).unwrap();
    place.once().refused(&["is damaged at line 1", "move it away"]);
    assert_eq!(std::fs::read(&path).unwrap(), bytes);
}

/// System calls before which a kill could lose or repeat something.
const CALLS: &[&str] =
    &["write", "fsync", "fdatasync", "ftruncate", "rename", "linkat", "sendto", "recvfrom", "connect", "openat"];

#[test]
fn killed_at_any_system_call_nothing_is_lost_and_nothing_told_twice() {
    let works = Command::new("strace").args(["-o", "/dev/null", "true"]).status().is_ok_and(|status| status.success());
    if !works {
        skip("strace is not here or may not trace, so nothing was killed");
        return;
    }
    let place = Place::begun("");
    place.see(&sized(&[("a", 2), ("d", 1), ("b", 1)]));
    let mut kills: BTreeMap<&str, usize> = BTreeMap::new();
    let mut repeated = 0;
    for call in CALLS {
        for when in 1.. {
            let sandbox = Sandbox::new();
            copy_folder(&place.sandbox.path(""), &sandbox.path(""));
            place.receiver.take();
            let mut command = Command::new("strace");
            let inject = format!("inject={call}:signal=SIGKILL:when={when}");
            command.args(["-f", "-qq", "-o", "/dev/null", "-e", &format!("trace={call}"), "-e", &inject]);
            sandbox.prepare(command.args([PROGRAM, "watch", "--once"]));
            let output = command.output().unwrap();
            let killed = output.status.signal() == Some(9);
            if killed {
                *kills.entry(call).or_default() += 1;
                sandbox.run(["watch", "--once"]).exited_when(0, &format!("after a kill at `{call}` number {when}"));
            }
            let mut by_id: BTreeMap<String, String> = BTreeMap::new();
            let got = place.receiver.take();
            repeated += got.len();
            for one in got {
                let known = by_id.insert(one.id(), one.body.clone());
                assert!(known.is_none_or(|known| known == one.body), "one id, two messages");
            }
            repeated -= by_id.len();
            let mut says: Vec<String> = by_id.values().map(|body| said(body)).collect();
            says.sort();
            assert_eq!(says, ["new a", "new c", "new d"], "killed before `{call}` number {when}");
            // Whoever comes later finds nothing more to tell.
            sandbox.run(["watch", "--once"]).succeeded();
            assert!(place.receiver.take().is_empty(), "killed before `{call}` number {when}");
            if !killed {
                break;
            }
        }
    }
    let told = format!(
        "{} kills of `watch --once`: {kills:?}; {repeated} deliveries came twice, each under its own id\n",
        kills.values().sum::<usize>()
    );
    let _ = std::io::Write::write_all(&mut std::io::stderr().lock(), told.as_bytes());
    for call in ["write", "fdatasync", "sendto", "connect"] {
        assert!(kills.get(call).copied().unwrap_or_default() > 0, "{kills:?}");
    }
    assert!(repeated > 0, "no kill fell between sending and taking note of it");
}

fn said(body: &str) -> String {
    Got { path: String::new(), headers: BTreeMap::new(), body: body.to_owned() }.says()
}
