//! A store in a container of Azure's: the same commands, against Azurite, which honours `If-None-Match: *`.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::json;

use super::support::{Ran, Sandbox, observation_of, ran, skip, thing, variable};

const STORE: &str = "az://fleet/drift/prod";

/// Azurite with a container `fleet`; it ends with its standard input.
struct Azurite {
    _process: Child,
    url: String,
    sandbox: Sandbox,
}

impl Azurite {
    fn start() -> Option<Self> {
        let Some(packages) = variable("DRIFTLINE_TEST_AZURITE") else {
            skip("DRIFTLINE_TEST_AZURITE is not set; scripts/test sets it");
            return None;
        };
        let sandbox = Sandbox::new();
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/azurite/start.mjs");
        let mut process = Command::new("node")
            .arg(script)
            .args([&packages, sandbox.path("azurite").as_os_str(), "fleet".as_ref()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut port = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut port).unwrap();
        assert!(!port.is_empty(), "Azurite did not start");
        Some(Self { _process: process, url: format!("http://127.0.0.1:{}", port.trim()), sandbox })
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.sandbox.command(["--store", STORE].iter().chain(arguments));
        command.env("AZURE_STORAGE_USE_EMULATOR", "true").env("AZURITE_BLOB_STORAGE_URL", &self.url);
        command.env("DRIFTLINE_CACHE_DIR", self.sandbox.path("copies"));
        command
    }

    fn run(&self, arguments: &[&str]) -> Ran {
        ran(&self.command(arguments).output().unwrap())
    }

    fn observed(&self, source: &str, minute: u32, timeout: u32) -> String {
        let seen = observation_of(source, minute, json!("complete"), &[thing("a", json!({"timeout": timeout}))]);
        let path = self.sandbox.write(&format!("{}-{minute}.json", source.replace('/', "-")), seen.to_string());
        path.display().to_string()
    }
}

#[test]
fn a_container_of_azure_is_a_store_like_a_folder() {
    let Some(azure) = Azurite::start() else { return };
    azure.run(&["drift"]).refused(&[&format!("there is no store at `{STORE}`")]);
    azure.run(&["observe", "file", &azure.observed("inventory/prod", 1, 3)]).succeeded();
    azure.run(&["baseline", "set"]).succeeded();
    azure.run(&["observe", "file", &azure.observed("inventory/prod", 2, 30)]).succeeded();
    let drift = azure.run(&["-o", "json", "drift"]).exited(2).json();
    assert_eq!(drift["summary"]["drifted"], 1);
    assert_eq!(drift["resources"][0]["changes"][0]["current"], 30);
    for command in [&["log"][..], &["velocity"], &["verify"], &["gc"]] {
        azure.run(command).succeeded();
    }
}

#[test]
fn observers_that_meet_in_a_container_of_azure_lose_nothing() {
    let Some(azure) = Azurite::start() else { return };
    let sources = ["inventory/a", "inventory/b", "inventory/c"];
    for minute in 1..=3 {
        let mut running: Vec<Child> = Vec::new();
        for source in sources {
            let file = azure.observed(source, minute, minute);
            let mut command = azure.command(&["observe", "file", &file]);
            running.push(command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap());
        }
        for child in running {
            ran(&child.wait_with_output().unwrap()).succeeded();
        }
    }
    let log = azure.run(&["-o", "json", "log"]).succeeded().json();
    let versions = log["versions"].as_array().unwrap();
    let mut told: Vec<(String, u64)> = versions
        .iter()
        .map(|one| (one["source"].as_str().unwrap().to_owned(), one["version"].as_u64().unwrap()))
        .collect();
    told.sort();
    let expected: Vec<(String, u64)> =
        sources.iter().flat_map(|source| (1..=3).map(|number| ((*source).to_owned(), number))).collect();
    assert_eq!(told, expected);
    azure.run(&["verify"]).succeeded().prints(&["sound"]);
}
