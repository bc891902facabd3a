//! The client that AWS writes, through the proxy, before a real emulator: what the proxy says must be understood as what
//! the service would have said.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says where")]
#![expect(clippy::disallowed_methods, reason = "tests are told by their environment what is installed")]

use std::io::Write;
use std::path::PathBuf;
use std::process::Command;

use fake_aws::fixture::File;
use fake_aws::{Emulator, Proxy, Settings};

#[test]
fn boto3_understands_every_dialect() {
    let Some(environment) = std::env::var_os("DRIFTLINE_TEST_AWS").map(PathBuf::from) else {
        assert!(std::env::var_os("CI").is_none_or(|value| value != "true"), "on CI nothing is skipped");
        let _ = writeln!(std::io::stderr().lock(), "skipped: DRIFTLINE_TEST_AWS is not set; scripts/aws-env makes it");
        return;
    };
    let ministack = Emulator::ministack(&environment).unwrap();
    let moto = Emulator::moto(&environment).unwrap();
    let mut settings = Settings::before(ministack.url());
    settings.emulators.insert("organizations".to_owned(), moto.url().to_owned());
    for text in [
        include_str!("../../fixtures/resource-explorer.json"),
        include_str!("../../fixtures/cloud-control.json"),
        include_str!("../../fixtures/config.json"),
        include_str!("../../fixtures/cloudtrail.json"),
    ] {
        settings.fixtures.extend(serde_json::from_str::<File>(text).unwrap().fixtures);
    }
    let proxy = Proxy::start(settings).unwrap();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/interop/dialects.py");
    let output = Command::new(environment.join("bin/python")).args([script, &proxy.url()]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
    // The script counts what it asserted, so that one that ends early is not taken for one that passed.
    assert!(said.contains("92 checks passed"), "{said}");
}
