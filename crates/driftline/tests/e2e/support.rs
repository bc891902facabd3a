//! A place of its own for each test, the program run in it, and observations to feed it.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::{Value as Json, json};
use tempfile::TempDir;

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_driftline");

/// A folder for one test; the program runs in it, with nothing of the tester's environment.
pub(crate) struct Sandbox {
    folder: TempDir,
}

/// What a run left: its exit code and what it printed.
#[derive(Debug)]
pub(crate) struct Ran {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Sandbox {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::Builder::new().prefix("driftline-e2e-").tempdir().unwrap() }
    }

    /// A sandbox with the demo's store in it.
    pub(crate) fn with_demo() -> Self {
        let sandbox = Self::new();
        sandbox.run(["demo"]).succeeded();
        sandbox
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn store(&self) -> PathBuf {
        self.path(".driftline")
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path
    }

    /// The program, not started yet.
    pub(crate) fn command<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Command {
        let mut command = Command::new(PROGRAM);
        command.args(arguments);
        self.prepare(&mut command);
        command
    }

    /// Gives any program this sandbox's folder and environment.
    pub(crate) fn prepare(&self, command: &mut Command) {
        command.current_dir(self.folder.path()).env_clear().stdin(Stdio::null());
        command.env("PATH", variable("PATH").unwrap_or_default()).env("USER", "tester");
    }

    pub(crate) fn run<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Ran {
        ran(&self.command(arguments).output().unwrap())
    }

    pub(crate) fn run_with<S: AsRef<OsStr>>(
        &self,
        variables: &[(&str, &str)],
        arguments: impl IntoIterator<Item = S>,
    ) -> Ran {
        ran(&self.command(arguments).envs(variables.iter().copied()).output().unwrap())
    }

    /// Runs the program with bytes on its standard input.
    pub(crate) fn feed<S: AsRef<OsStr>>(&self, input: &[u8], arguments: impl IntoIterator<Item = S>) -> Ran {
        let mut command = self.command(arguments);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut pipe = child.stdin.take().unwrap();
        // A program that has read enough to refuse closes its end; that is its good right.
        let _ = pipe.write_all(input);
        drop(pipe);
        ran(&child.wait_with_output().unwrap())
    }

    /// Commits an observation.
    pub(crate) fn observe(&self, observation: &Json) -> Ran {
        let file = self.write("observation.json", observation.to_string());
        self.run([OsStr::new("observe"), OsStr::new("file"), file.as_os_str()])
    }

    /// Commits these things of the source `test`, all of them, taken at this minute.
    pub(crate) fn observe_things(&self, minute: u32, things: &[Json]) {
        self.observe(&observation(minute, things)).succeeded();
    }

    /// What `drift -o json` says, whatever its exit code.
    pub(crate) fn drift<'a>(&self, more: impl IntoIterator<Item = &'a str>) -> Json {
        self.json(["drift", "--exit-zero"].into_iter().chain(more))
    }

    /// The one JSON value that a command prints.
    pub(crate) fn json<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Json {
        let mut command = self.command(["-o", "json"]);
        ran(&command.args(arguments).output().unwrap()).succeeded().json()
    }
}

pub(crate) fn ran(output: &Output) -> Ran {
    Ran {
        code: exit_code(output.status),
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// The exit code as a shell gives it: 128 and the signal, if it was one.
fn exit_code(status: std::process::ExitStatus) -> i32 {
    use std::os::unix::process::ExitStatusExt;
    status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0))
}

impl Ran {
    #[track_caller]
    pub(crate) fn exited(self, code: i32) -> Self {
        assert_eq!(self.code, code, "stdout:\n{}\nstderr:\n{}", begin(&self.out), begin(&self.err));
        self
    }

    /// The same, said of a moment.
    #[track_caller]
    pub(crate) fn exited_when(self, code: i32, when: &str) -> Self {
        assert_eq!(self.code, code, "{when}\nstdout:\n{}\nstderr:\n{}", begin(&self.out), begin(&self.err));
        self
    }

    #[track_caller]
    pub(crate) fn succeeded(self) -> Self {
        self.exited(0)
    }

    /// It failed as a command should: exit code 1, nothing on stdout, no panic, and these words on stderr.
    #[track_caller]
    pub(crate) fn refused(self, words: &[&str]) -> Self {
        let this = self.exited(1);
        assert!(!this.err.contains("panicked"), "{}", this.err);
        assert!(this.err.starts_with("error: ") || this.err.contains("\nerror: "), "no error line:\n{}", this.err);
        assert_eq!(this.out, "", "a result was printed although the command failed");
        this.says(words)
    }

    /// The same for commands that warn before they fail.
    #[track_caller]
    pub(crate) fn refused_after_warnings(self, words: &[&str]) -> Self {
        assert!(self.err.starts_with("warning: "), "no warning:\n{}", begin(&self.err));
        self.refused(words)
    }

    /// All of these words are on stderr.
    #[track_caller]
    pub(crate) fn says(self, words: &[&str]) -> Self {
        for word in words {
            assert!(self.err.contains(word), "`{word}` is not in:\n{}", begin(&self.err));
        }
        self
    }

    #[track_caller]
    pub(crate) fn prints(self, words: &[&str]) -> Self {
        for word in words {
            assert!(self.out.contains(word), "`{word}` is not in:\n{}", begin(&self.out));
        }
        self
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Json {
        serde_json::from_str(&self.out)
            .unwrap_or_else(|error| panic!("not one JSON value ({error}):\n{}", begin(&self.out)))
    }
}

/// Enough of a text to see what it is.
fn begin(text: &str) -> String {
    text.chars().take(2_000).collect()
}

pub(crate) const COMPLETE: &str = "complete";

/// A moment in the past; minutes keep versions in order.
pub(crate) fn minute(minute: u32) -> String {
    format!("2026-01-01T{:02}:{:02}:00Z", minute / 60, minute % 60)
}

/// An observation of the source `test` that saw everything.
pub(crate) fn observation(at: u32, things: &[Json]) -> Json {
    observation_of("test", at, json!(COMPLETE), things)
}

pub(crate) fn observation_of(source: &str, at: u32, coverage: Json, things: &[Json]) -> Json {
    json!({
        "schema": "driftline.observation/v1", "source": source, "takenAt": minute(at),
        "coverage": coverage, "resources": things,
    })
}

/// A resource of the type `Thing`, in the place `here`.
pub(crate) fn thing(id: &str, snapshot: Json) -> Json {
    thing_at("Thing", "here", id, snapshot)
}

pub(crate) fn thing_at(kind: &str, place: &str, id: &str, snapshot: Json) -> Json {
    json!({"canonicalId": id, "resourceType": kind, "place": place, "snapshot": snapshot})
}

/// The same observation as lines: the header, then one resource a line.
pub(crate) fn as_lines(observation: &Json) -> String {
    let mut header = observation.clone();
    let resources = header.as_object_mut().unwrap().remove("resources").unwrap();
    let mut text = format!("{header}\n");
    for resource in resources.as_array().unwrap() {
        text += &format!("{resource}\n");
    }
    text
}

/// The drift report's resource with this id.
#[track_caller]
pub(crate) fn resource<'a>(report: &'a Json, id: &str) -> &'a Json {
    let found = report["resources"].as_array().unwrap().iter().find(|one| one["canonicalId"] == id);
    found.unwrap_or_else(|| panic!("`{id}` is not in {report:#}"))
}

/// `status` of each resource in the report, by id.
pub(crate) fn statuses(report: &Json) -> BTreeMap<String, String> {
    let text = |value: &Json| value.as_str().unwrap().to_owned();
    let resources = report["resources"].as_array().unwrap();
    resources.iter().map(|one| (text(&one["canonicalId"]), text(&one["status"]))).collect()
}

/// Drifted, unknown, not checked, in sync.
pub(crate) fn counts(report: &Json) -> [u64; 4] {
    ["drifted", "unknown", "notChecked", "inSync"].map(|name| report["summary"][name].as_u64().unwrap())
}

/// Every file beneath a folder, by its path in it.
pub(crate) fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        let Ok(entries) = fs::read_dir(&next) else { continue };
        for entry in entries {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(folder).unwrap().to_str().unwrap().to_owned();
                found.insert(name, fs::read(&path).unwrap());
            }
        }
    }
    found
}

/// The files of a store that are not derived from others.
pub(crate) fn essence(store: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = files(store);
    found.retain(|name, _| !name.starts_with("view/"));
    found
}

/// Fails unless a store is, byte for byte, what it was.
#[track_caller]
pub(crate) fn assert_untouched(store: &Path, before: &BTreeMap<String, Vec<u8>>) {
    let after = essence(store);
    let names = |files: &BTreeMap<String, Vec<u8>>| files.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&after), names(before), "the store has other files than before");
    for (name, bytes) in before {
        assert!(after[name] == *bytes, "`{name}` is not as it was");
    }
}

pub(crate) fn copy_folder(from: &Path, to: &Path) {
    for (name, bytes) in files(from) {
        let path = to.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
}

/// What the tester's environment says; the program under test sees none of it.
pub(crate) fn variable(name: &str) -> Option<std::ffi::OsString> {
    std::env::var_os(name)
}

/// Says on stderr that a test could not run here; on CI it must.
#[track_caller]
pub(crate) fn skip(why: &str) {
    assert!(variable("CI").is_none_or(|value| value != "true"), "on CI nothing is skipped: {why}");
    let _ = writeln!(std::io::stderr().lock(), "skipped: {why}");
}

pub(crate) fn is_root() -> bool {
    Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout == b"0\n")
}
