//! A store in a bucket: the same commands, against a server of S3's protocol that implements conditional writes (moto).

use serde_json::json;

use super::Cloud;

/// An account with a bucket, and the address of a store in it. Names of buckets are everybody's.
fn cloud() -> Option<(Cloud, String)> {
    let cloud = Cloud::of_moto()?;
    let bucket = format!("fleet-{}", cloud.account);
    cloud.boto3(&["bucket", &bucket]);
    Some((cloud, format!("s3://{bucket}/drift/prod")))
}

fn observation(cloud: &Cloud, name: &str, second: u32, timeout: u32) -> String {
    let path = cloud.sandbox.path(name);
    let text = json!({
        "schema": "driftline.observation/v1", "source": "inventory/prod", "takenAt": format!("2026-06-29T10:00:{second:02}Z"),
        "coverage": "complete",
        "resources": [{"canonicalId": "arn:aws:lambda:us-east-1:123456789012:function:f", "resourceType": "AWS::Lambda::Function",
            "account": "123456789012", "region": "us-east-1", "snapshot": {"timeout": timeout}}]});
    std::fs::write(&path, text.to_string()).unwrap();
    path.display().to_string()
}

#[test]
fn every_command_takes_a_bucket_for_a_store() {
    let Some((cloud, store)) = cloud() else { return };
    let run = |arguments: &[&str]| cloud.run(["--store", store.as_str()].iter().chain(arguments));
    let missing = run(&["drift"]);
    assert!(missing.err.contains(&format!("there is no store at `{store}`")), "{}", missing.err);
    run(&["observe", "file", &observation(&cloud, "a.json", 1, 3)]).succeeded();
    run(&["baseline", "set"]).succeeded();
    run(&["observe", "file", &observation(&cloud, "b.json", 2, 30)]).succeeded();
    let drift = run(&["-o", "json", "drift"]);
    assert_eq!(drift.code, 2, "{}", drift.err);
    assert_eq!(
        drift.json()["resources"][0]["changes"][0],
        json!({"path": "/timeout", "op": "replace", "baseline": 3, "current": 30, "severity": "medium"})
    );
    for command in [
        &["log"][..],
        &["history", "function:f"],
        &["explain", "function:f"],
        &["velocity"],
        &["verify"],
        &["doctor"],
        &["gc"],
    ] {
        run(command).succeeded();
    }
    // Nothing of it is on this machine but copies of files that never change.
    assert!(!cloud.sandbox.path(".driftline").exists());
    let other = cloud.with_new_folder();
    let drift = other.run(["--store", &store, "-o", "json", "drift"]);
    assert_eq!(drift.json()["summary"]["drifted"], 1, "another machine sees the same: {}", drift.err);
}

#[test]
fn a_secret_on_its_way_to_a_bucket_needs_a_key_that_everyone_has() {
    let Some((cloud, store)) = cloud() else { return };
    let path = cloud.sandbox.path("secret.json");
    let text = json!({
        "schema": "driftline.observation/v1", "source": "inventory/prod", "takenAt": "2026-06-29T10:00:00Z", "coverage": "complete",
        "resources": [{"canonicalId": "arn:aws:lambda:us-east-1:123456789012:function:f", "resourceType": "AWS::Lambda::Function",
            "account": "123456789012", "region": "us-east-1", "snapshot": {"environment": {"variables": {"PASSWORD": "hunter2"}}}}]});
    std::fs::write(&path, text.to_string()).unwrap();
    let observe = ["--store", &store, "observe", "file", path.to_str().unwrap()];
    let refused = cloud.run(observe);
    assert_eq!(refused.code, 1);
    assert!(
        refused.err.contains("no key to seal them with") && refused.err.contains("DRIFTLINE_SEAL_KEY"),
        "{}",
        refused.err
    );
    let file = cloud.sandbox.path("team.key");
    std::fs::write(&file, "ab".repeat(32)).unwrap();
    let mut command = cloud.command(observe);
    command.env("DRIFTLINE_SEAL_KEY_FILE", &file);
    super::ran(&command.output().unwrap()).succeeded();
    // The same key by its other name is the same key; another one is refused.
    let mut command = cloud.command(observe);
    command.env("DRIFTLINE_SEAL_KEY", "cd".repeat(32));
    let other = super::ran(&command.output().unwrap());
    assert!(other.err.contains("sealed with"), "{}", other.err);
}

#[test]
fn what_is_wrong_with_a_bucket_is_said() {
    let Some((cloud, store)) = cloud() else { return };
    let query = format!("{store}?region=eu");
    for (store, says) in [
        ("s3://nobody-has-this/x", "nobody-has-this"),
        ("s3://", "written like `s3://bucket/prefix`"),
        ("ftp://fleet/x", "cannot be at a `ftp://` address"),
        (query.as_str(), "a query"),
    ] {
        let ran = cloud.run(["--store", store, "observe", "file", &observation(&cloud, "a.json", 1, 3)]);
        assert_eq!(ran.code, 1, "{store}: {}", ran.err);
        assert!(ran.err.contains(says), "{store}: {}", ran.err);
    }
}
