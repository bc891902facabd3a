//! The chart that observes on a schedule, as helm and a real API server see it.

use super::cluster::shared;
use super::packaging::helm;
use crate::support::Sandbox;

const CHART: &str = "helm/driftline-observer";
const STORE: &str = "store=s3://fleet/drift";

/// The objects of the chart with these values set, beside the store.
fn rendered(values: &[&str]) -> Option<String> {
    let mut arguments = vec!["template", "driftline", CHART, "--namespace", "default", "--set", STORE];
    for value in values {
        arguments.extend(["--set", value]);
    }
    Some(helm(&arguments)?.succeeded().out)
}

#[test]
fn helm_finds_nothing_wrong_with_the_observers_chart() {
    let Some(linted) = helm(&["lint", "--strict", CHART, "--set", STORE]) else { return };
    linted.succeeded();
    for (values, said) in [
        ("store=", "store"),
        ("store=/var/lib/drift", "store"),
        ("shards=0", "shards"),
        ("schedule=soon", "schedule"),
        ("aws.roleArn=my-role", "roleArn"),
        ("cache.sizeLimit=much", "sizeLimit"),
        ("shard=2", "shard"),
    ] {
        let arguments = ["template", "driftline", CHART, "--set", STORE, "--set", values];
        let Some(refused) = helm(&arguments) else { return };
        assert_ne!(refused.code, 0, "{values}");
        assert!(refused.err.contains(said), "{values}: {}", refused.err);
    }
}

#[test]
fn a_real_api_server_takes_the_observers_chart() {
    let Some(cluster) = shared() else { return };
    for values in [
        &[][..],
        &["shards=5", "strict=true", "gc.enabled=true", "gc.extraArgs={--keep=30d}", "sealKey.secretName=seal"],
        &[
            "aws.roleArn=arn:aws:iam::123456789012:role/driftline",
            "serviceAccount.annotations.team=payments",
            "env[0].name=HTTPS_PROXY",
            "env[0].value=http://proxy:3128",
            "nodeSelector.zone=a",
            "extraArgs={-v,--per-service=2}",
            "podAnnotations.team=payments",
        ],
        &["serviceAccount.create=false", "serviceAccount.name=other", "schedule=@hourly", "suspend=true"],
    ] {
        let Some(objects) = rendered(values) else { return };
        let taken = cluster.kubectl_with(&objects, &["apply", "--server-side", "--dry-run=server"]).succeeded();
        assert!(!taken.err.contains("Warning"), "{values:?}: {}", taken.err);
        assert!(taken.out.contains("cronjob.batch/driftline"), "{}", taken.out);
    }
}

/// What the pods are promised to be, whatever the server would also take.
#[test]
fn a_share_is_a_job_of_its_own_that_can_write_nothing_but_its_cache() {
    let Some(objects) = rendered(&["shards=5", "sealKey.secretName=seal"]) else { return };
    for line in [
        "completionMode: Indexed",
        "completions: 5",
        "parallelism: 5",
        "- \"--shard=job/5\"",
        "concurrencyPolicy: Forbid",
        "readOnlyRootFilesystem: true",
        "automountServiceAccountToken: false",
        "restartPolicy: Never",
        "emptyDir:",
        "secretName: seal",
        "value: /var/run/driftline/seal/key",
    ] {
        assert!(objects.contains(line), "`{line}` is not in:\n{objects}");
    }
}

#[cfg(feature = "aws")]
#[test]
fn the_chart_brings_a_configuration_that_the_program_takes() {
    let Some(objects) = rendered(&[]) else { return };
    let (_, text) = objects.split_once("driftline.toml: |\n").unwrap();
    let lines = text.lines().take_while(|line| line.is_empty() || line.starts_with("    "));
    let config: String = lines.map(|line| format!("{}\n", line.trim_start())).collect();
    let sandbox = Sandbox::new();
    sandbox.write("driftline.toml", &config);
    let plan = sandbox.json(["observe", "all", "--dry-run"]);
    assert_eq!(plan["sources"][0]["accounts"], "every active account of the organization", "{config}");
    assert_eq!(plan["sources"][0]["role"], "arn:aws:iam::{account}:role/DriftlineObserver");
    // The same text in the environment is the same configuration.
    let told = sandbox.run_with(
        &[("DRIFTLINE_CONFIG_TEXT", &config), ("DRIFTLINE_ROLE_NAME", "Other")],
        ["-o", "json", "observe", "all", "--dry-run"],
    );
    assert_eq!(told.succeeded().json()["sources"][0]["role"], "arn:aws:iam::{account}:role/Other");
    let wrong = sandbox.run_with(&[("DRIFTLINE_CONFIG_TEXT", "colour = 1")], ["log"]);
    wrong.refused(&["the configuration in DRIFTLINE_CONFIG_TEXT is not usable"]);
}
