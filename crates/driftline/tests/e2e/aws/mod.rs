//! The live observers, against a real emulator of AWS with a proxy in front that makes it worse.
//!
//! One ministack serves all tests of a run: an access key of twelve digits is an account, each test has its own, and
//! accounts do not see each other. The proxy is each test's own, and with it the rules and the counts.

mod buckets;
mod examples;
mod faults;
mod fleet;
mod live;
mod places;
mod policy;
mod stores;
mod trail;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use fake_aws::{Counted, Emulator, Fixture, Proxy, Settings};
use serde_json::Value as Json;

use super::support::{Ran, Sandbox, ran, skip, variable};

/// An account of the emulator, a proxy before it, and a folder to observe it from.
pub(crate) struct Cloud {
    pub(crate) sandbox: Sandbox,
    pub(crate) proxy: Proxy,
    pub(crate) account: String,
    python: PathBuf,
}

/// The environment of `scripts/aws-env`, or nothing, said.
fn environment() -> Option<PathBuf> {
    let found = variable("DRIFTLINE_TEST_AWS").map(PathBuf::from);
    if found.is_none() {
        skip("DRIFTLINE_TEST_AWS is not set; `eval \"$(scripts/aws-env)\"` sets it");
    }
    found
}

/// It ends with the process: nothing drops a static, but the pipe to its keeper closes.
fn ministack(environment: &Path) -> &'static Emulator {
    static ONE: OnceLock<Emulator> = OnceLock::new();
    ONE.get_or_init(|| Emulator::ministack(environment).unwrap())
}

fn moto(environment: &Path) -> &'static Emulator {
    static ONE: OnceLock<Emulator> = OnceLock::new();
    ONE.get_or_init(|| Emulator::moto(environment).unwrap())
}

/// Twelve digits that no other test of this run has.
pub(crate) fn new_account() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(100_000_000_001);
    NEXT.fetch_add(1, Ordering::Relaxed).to_string()
}

impl Cloud {
    /// A new account on ministack; nothing if there is no environment to start it from.
    pub(crate) fn new() -> Option<Self> {
        let environment = environment()?;
        let settings = Settings::before(ministack(&environment).url());
        Some(Self::with(&environment, settings))
    }

    /// The same with everything answered by moto.
    pub(crate) fn of_moto() -> Option<Self> {
        let environment = environment()?;
        let settings = Settings::before(moto(&environment).url());
        Some(Self::with(&environment, settings))
    }

    /// The same on a moto of its own: one moto has one organization, whoever asks.
    pub(crate) fn of_another_moto() -> Option<Self> {
        static ANOTHER: OnceLock<Emulator> = OnceLock::new();
        let environment = environment()?;
        let emulator = ANOTHER.get_or_init(|| Emulator::moto(&environment).unwrap());
        Some(Self::with(&environment, Settings::before(emulator.url())))
    }

    fn with(environment: &Path, settings: Settings) -> Self {
        Self {
            sandbox: Sandbox::new(),
            proxy: Proxy::start(settings).unwrap(),
            account: new_account(),
            python: environment.join("bin/python"),
        }
    }

    /// The same account, looked at from another folder: nothing is stored there yet.
    pub(crate) fn with_new_folder(mut self) -> Self {
        self.sandbox = Sandbox::new();
        self
    }

    /// What the program is told about AWS.
    pub(crate) fn variables(&self) -> Vec<(String, String)> {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        vec![
            pair("AWS_ENDPOINT_URL", &self.proxy.url()),
            pair("AWS_ACCESS_KEY_ID", &self.account),
            pair("AWS_SECRET_ACCESS_KEY", "secret"),
            pair("AWS_REGION", "us-east-1"),
            // Nothing of the machine that tests run on may answer for AWS.
            pair("AWS_EC2_METADATA_DISABLED", "true"),
            pair("HOME", &self.sandbox.path("home").display().to_string()),
        ]
    }

    pub(crate) fn command<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Command {
        let mut command = self.sandbox.command(arguments);
        command.envs(self.variables());
        command
    }

    pub(crate) fn run<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Ran {
        ran(&self.command(arguments).output().unwrap())
    }

    /// Does something in the account with boto3, straight at the emulator's proxy, and gives back the JSON it prints.
    #[track_caller]
    pub(crate) fn boto3(&self, arguments: &[&str]) -> Json {
        self.boto3_in("us-east-1", arguments)
    }

    #[track_caller]
    pub(crate) fn boto3_in(&self, region: &str, arguments: &[&str]) -> Json {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/e2e/aws/cloud.py");
        let mut command = Command::new(&self.python);
        command.arg(script).args(arguments).env_clear();
        command.envs(self.variables()).env("AWS_REGION", region).env("AWS_DEFAULT_REGION", region);
        let done = ran(&command.output().unwrap()).succeeded();
        done.json()
    }

    #[track_caller]
    pub(crate) fn rules(&self, rules: Json) {
        self.proxy.set_rules(serde_json::from_value(rules).unwrap());
    }

    #[track_caller]
    pub(crate) fn fixtures(&self, fixtures: Json) {
        self.proxy.set_fixtures(serde_json::from_value::<Vec<Fixture>>(fixtures).unwrap());
    }

    /// One of the files that come with the proxy.
    #[track_caller]
    pub(crate) fn fixture_file(&self, text: &str) {
        self.proxy.set_fixtures(serde_json::from_str::<fake_aws::fixture::File>(text).unwrap().fixtures);
    }

    /// `service:Operation` of every call since the counts were last forgotten, with how often it was made.
    pub(crate) fn called(&self) -> BTreeMap<String, u64> {
        let mut called = BTreeMap::new();
        for Counted { call, calls } in self.proxy.calls() {
            *called.entry(format!("{}:{}", call.service, call.operation)).or_default() += calls;
        }
        called
    }

    pub(crate) fn calls_with(&self, outcome: &str) -> u64 {
        self.proxy.calls().iter().filter(|one| one.call.outcome == outcome).map(|one| one.calls).sum()
    }

    pub(crate) fn calls_in_all(&self) -> u64 {
        self.proxy.calls().iter().map(|one| one.calls).sum()
    }

    /// Every resource that the newest versions have, as `drift --all` lists them against a baseline.
    pub(crate) fn drift(&self) -> Json {
        self.sandbox.drift(["--all"])
    }
}

/// The ids of a report's resources with this status.
pub(crate) fn ids_with(report: &Json, status: &str) -> BTreeSet<String> {
    let resources = report["resources"].as_array().unwrap();
    let chosen = resources.iter().filter(|one| one["status"] == status);
    chosen.map(|one| one["canonicalId"].as_str().unwrap().to_owned()).collect()
}

/// Path, before and after of each change of a resource.
pub(crate) fn changes(resource: &Json) -> Vec<(String, Json, Json)> {
    let changes = resource["changes"].as_array().unwrap();
    let one = |change: &Json| {
        (change["path"].as_str().unwrap().to_owned(), change["baseline"].clone(), change["current"].clone())
    };
    changes.iter().map(one).collect()
}
