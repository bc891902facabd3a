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
        &["shards=5", "strict=true", "gc.extraArgs={--keep=30d}", "sealKey.secretName=seal"],
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
        &["gc.enabled=false"],
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

/// A share that exits with 3 was done; only what did not come to an end is worth another try.
#[test]
fn a_share_with_gaps_is_not_done_all_over_again() {
    let Some(objects) = rendered(&["strict=true", "retries=1"]) else { return };
    let policy: Vec<&str> = objects
        .lines()
        .map(str::trim)
        .skip_while(|line| *line != "podFailurePolicy:")
        .take_while(|line| !line.starts_with("activeDeadlineSeconds"))
        .collect();
    let expected = [
        "podFailurePolicy:",
        "rules:",
        "- action: FailIndex",
        "onExitCodes:",
        "containerName: observer",
        "operator: In",
        "values: [3]",
    ];
    assert_eq!(policy, expected, "{objects}");
    assert!(objects.contains("- name: observer\n"), "the container that the policy names is there");
}

#[test]
fn the_store_is_tidied_unless_somebody_says_otherwise() {
    let Some(objects) = rendered(&[]) else { return };
    assert_eq!(objects.matches("kind: CronJob").count(), 2, "{objects}");
    assert!(objects.contains("- \"gc\"") && objects.contains("[retention]"), "{objects}");
    let Some(objects) = rendered(&["gc.enabled=false"]) else { return };
    assert_eq!(objects.matches("kind: CronJob").count(), 1, "{objects}");
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
