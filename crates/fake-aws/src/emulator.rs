//! Emulators as processes: started on loopback and a free port, gone when their owner is, however it ends.
//!
//! What was found by trying them, and matters to who writes tests (ministack 1.5.33, moto 5.2.5):
//! - ministack listens on every address unless `BIND_HOST` says otherwise, and its MQTT listener on port 8883 of every
//!   address *even then*: `IOT_MTLS_ENABLED=0` turns it off.
//! - ministack takes an access key of twelve digits for the account, so tests that use different ones do not see each
//!   other. moto does not: there an account is reached by `AssumeRole` alone. Both accept any role.
//! - EC2 listings are never paged (both), nor CloudFront tenants (ministack): `page` rules do that.
//! - SQS `ListQueues` without `MaxResults` stops at 1,000 without a token in both, as in AWS.
//! - CloudFront tenants (ministack only): a stale `If-Match` is 412 `PreconditionFailed`, a name taken is
//!   `EntityAlreadyExists`, a domain taken `CNAMEAlreadyExists`, an enabled one is not deleted (`ResourceNotDisabled`),
//!   and the status is `Deployed` at once: `in_progress` rules do that.
//! - Resource Explorer is answered by neither, Cloud Control lists only what it created itself, Config evaluates
//!   nothing, `CloudTrail` is empty: fixtures.
//! - moto answers what it does not implement with an HTML page and status 500.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

#[derive(Debug, thiserror::Error)]
pub enum EmulatorError {
    #[error("cannot start {program}")]
    Start {
        program: String,
        #[source]
        source: std::io::Error,
    },
    #[error("{program} did not come up; what it said is in {log}")]
    NotUp { program: String, log: String },
    #[error("no place for the log of {program}")]
    Log {
        program: String,
        #[source]
        source: std::io::Error,
    },
}

/// A running emulator; dropping it ends it.
#[derive(Debug)]
pub struct Emulator {
    url: String,
    // The keeper ends when its standard input does: on drop, and also if this process is killed.
    keeper: Child,
    log: tempfile::NamedTempFile,
}

/// Starts the emulator, waits until it answers, prints its address, and ends it when standard input ends.
const KEEPER: &str = include_str!("../emulators/keep.py");

impl Emulator {
    /// ministack of the environment that `scripts/aws-env` makes.
    pub fn ministack(environment: &Path) -> Result<Self, EmulatorError> {
        Self::start(environment, "ministack")
    }

    /// moto of the same environment.
    pub fn moto(environment: &Path) -> Result<Self, EmulatorError> {
        Self::start(environment, "moto_server")
    }

    fn start(environment: &Path, program: &str) -> Result<Self, EmulatorError> {
        let log = tempfile::Builder::new()
            .prefix(&format!("{program}-"))
            .suffix(".log")
            .tempfile()
            .map_err(|source| EmulatorError::Log { program: program.to_owned(), source })?;
        let output = log.reopen().map_err(|source| EmulatorError::Log { program: program.to_owned(), source })?;
        let mut keeper = Command::new(environment.join("bin/python"))
            .args(["-c", KEEPER, program])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(output)
            .spawn()
            .map_err(|source| EmulatorError::Start { program: program.to_owned(), source })?;
        let mut url = String::new();
        let said = keeper.stdout.take().map(|pipe| BufReader::new(pipe).read_line(&mut url));
        if !matches!(said, Some(Ok(1..))) {
            let _ = keeper.kill();
            let _ = keeper.wait();
            let path = log.path().display().to_string();
            // It is wanted now: the error points at it.
            let _ = log.keep();
            return Err(EmulatorError::NotUp { program: program.to_owned(), log: path });
        }
        Ok(Self { url: url.trim().to_owned(), keeper, log })
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    /// Where its output goes.
    pub fn log(&self) -> &Path {
        self.log.path()
    }
}

impl Drop for Emulator {
    fn drop(&mut self) {
        drop(self.keeper.stdin.take());
        let _ = self.keeper.wait();
    }
}
