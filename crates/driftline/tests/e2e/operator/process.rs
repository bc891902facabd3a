//! Programs that run beside a test and never outlive it.

use std::fs::File;
use std::io::Write;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Nothing here takes as long on a machine that works; one that does not is told apart by this.
pub(crate) const PATIENCE: Duration = Duration::from_mins(2);

/// Runs the program and kills it when its own standard input ends, or asks it to end when told; then clears away what
/// is named. The test holds the other end, so whatever becomes of the test, also `kill -9`, its programs go.
const KEEPER: &str = r#"
leave=$1; noted=$2; shift 2
"$@" </dev/null & program=$!
echo $program >"$noted"
while read -r word; do kill -s "$word" $program; done
kill -s KILL $program 2>/dev/null
wait $program 2>/dev/null
# Others may still be writing there.
while [ -n "$leave" ] && ! rm -rf "$leave" 2>/dev/null; do sleep 1; done
"#;

/// A running program.
pub(crate) struct Process {
    name: String,
    log: PathBuf,
    keeper: Child,
    lifeline: Option<ChildStdin>,
}

impl Process {
    /// Starts it; what it prints goes to a file. `leave` is removed when it has ended.
    pub(crate) fn start(command: &Command, log: &Path, leave: Option<&Path>) -> Self {
        let name = Path::new(command.get_program()).file_name().unwrap().to_string_lossy().into_owned();
        let output = File::options().create(true).append(true).open(log).unwrap();
        let mut keeper = Command::new("sh");
        keeper.arg("-c").arg(KEEPER).arg("keeper").arg(leave.unwrap_or(Path::new(""))).arg(noted(log));
        keeper.arg(command.get_program()).args(command.get_args());
        keeper.env_clear().envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        if let Some(folder) = command.get_current_dir() {
            keeper.current_dir(folder);
        }
        keeper.stdin(Stdio::piped()).stdout(output.try_clone().unwrap()).stderr(output);
        let mut keeper = keeper.spawn().unwrap();
        let lifeline = keeper.stdin.take();
        Self { name, log: log.to_owned(), keeper, lifeline }
    }

    /// Ends it at once, as the kernel would.
    pub(crate) fn kill(&mut self) {
        drop(self.lifeline.take());
        let _ = self.keeper.wait();
    }

    /// Sends a signal, e.g. `TERM`.
    pub(crate) fn signal(&mut self, name: &str) {
        let lifeline = self.lifeline.as_mut().unwrap();
        writeln!(lifeline, "{name}").unwrap();
    }

    /// Its number, as the kernel has it.
    pub(crate) fn id(&self) -> u32 {
        eventually("the number of a process", || {
            let text = std::fs::read_to_string(noted(&self.log)).map_err(|error| error.to_string())?;
            text.trim().parse().map_err(|_| text)
        })
    }

    /// What it printed so far.
    pub(crate) fn printed(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(&self.log).unwrap_or_default()).into_owned()
    }

    /// The end of what it printed, for messages.
    pub(crate) fn last_words(&self) -> String {
        let printed = self.printed();
        let lines: Vec<&str> = printed.lines().collect();
        let from = lines.len().saturating_sub(30);
        format!("--- {} ---\n{}", self.name, lines[from..].join("\n"))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if thread::panicking() {
            let _ = writeln!(std::io::stderr().lock(), "{}", self.last_words());
        }
        self.kill();
    }
}

/// Where the number of a process is noted down.
fn noted(log: &Path) -> PathBuf {
    log.with_extension("pid")
}

/// A port of loopback that nobody listens on now.
pub(crate) fn free_port() -> u16 {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port()
}

/// Waits until something holds, and says what it waited for when that does not come.
#[track_caller]
pub(crate) fn eventually<T>(what: &str, mut found: impl FnMut() -> Result<T, String>) -> T {
    let since = Instant::now();
    let mut pause = Duration::from_millis(20);
    loop {
        match found() {
            Ok(found) => return found,
            Err(now) => assert!(since.elapsed() < PATIENCE, "waited {PATIENCE:?} for {what}; last seen:\n{now}"),
        }
        thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(250));
    }
}
