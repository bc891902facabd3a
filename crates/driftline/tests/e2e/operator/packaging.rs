//! The chart, as helm and a real API server see it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::cluster::shared;
use crate::support::{Ran, files, ran, skip, variable};

const NAMESPACE: &str = "driftline-system";

pub(crate) fn deploy() -> PathBuf {
    PathBuf::from(variable("CARGO_MANIFEST_DIR").unwrap()).join("../../deploy").canonicalize().unwrap()
}

pub(crate) fn helm(arguments: &[&str]) -> Option<Ran> {
    let Some(helm) = variable("DRIFTLINE_TEST_HELM") else {
        skip("DRIFTLINE_TEST_HELM is not set; scripts/kube-env helm makes what it names");
        return None;
    };
    let home = tempfile::tempdir().unwrap();
    let mut command = Command::new(helm);
    command.args(arguments).current_dir(deploy()).env_clear().env("HOME", home.path());
    Some(ran(&command.output().unwrap()))
}

/// The objects of the chart with these values set.
pub(crate) fn rendered(values: &[&str]) -> Option<String> {
    let mut arguments = vec!["template", "driftline", "helm/driftline", "--namespace", NAMESPACE];
    for value in values {
        arguments.extend(["--set", value]);
    }
    Some(helm(&arguments)?.succeeded().out)
}

fn yaml_files(folder: &Path) -> BTreeMap<String, String> {
    let found: BTreeMap<String, String> =
        files(folder).into_iter().map(|(name, bytes)| (name, String::from_utf8(bytes).unwrap())).collect();
    assert!(!found.is_empty(), "nothing is in {}", folder.display());
    found
}

#[test]
fn the_chart_has_the_definitions_that_are_committed() {
    let (ours, of_chart) = (yaml_files(&deploy().join("crds")), yaml_files(&deploy().join("helm/driftline/crds")));
    assert!(ours == of_chart, "copy deploy/crds to deploy/helm/driftline/crds");
}

#[test]
fn helm_finds_nothing_wrong_with_the_chart() {
    let Some(linted) = helm(&["lint", "--strict", "helm/driftline"]) else { return };
    linted.succeeded();
    for (values, said) in [
        ("operator.driftPolicy=yes", "driftPolicy"),
        ("operator.resync=soon", "resync"),
        ("image.repository=", "repository"),
        ("replica=2", "replica"),
        ("aws.roleArn=my-role", "roleArn"),
    ] {
        let Some(refused) = helm(&["template", "driftline", "helm/driftline", "--set", values]) else { return };
        assert_ne!(refused.code, 0, "{values}");
        assert!(refused.err.contains(said), "{values}: {}", refused.err);
    }
}

#[test]
fn the_plain_manifests_are_what_the_chart_makes() {
    let Some(rendered) = rendered(&[]) else { return };
    let committed = fs::read_to_string(deploy().join("manifests/operator.yaml")).unwrap();
    assert!(
        rendered == committed,
        "in deploy: helm template driftline helm/driftline --namespace {NAMESPACE} > manifests/operator.yaml"
    );
}

#[test]
fn a_real_api_server_takes_the_manifests_and_the_chart() {
    let Some(cluster) = shared() else { return };
    let deploy = deploy();
    let apply = |path: &str, more: &[&str]| {
        let path = deploy.join(path);
        let arguments = [&["apply", "--server-side", "-f", path.to_str().unwrap()], more].concat();
        cluster.kubectl_all(&arguments)
    };
    apply("crds", &[]).succeeded();
    apply("manifests/namespace.yaml", &[]).succeeded();
    let taken = apply("manifests/operator.yaml", &["--dry-run=server"]).succeeded();
    assert!(!taken.err.contains("Warning"), "{}", taken.err);
    assert!(taken.out.contains("deployment.apps/driftline"), "{}", taken.out);
    for values in [
        &["operator.namespaces={driftline-system,default}"][..],
        &["leaderElection.enabled=false", "metrics.service=false", "serviceAccount.create=false", "rbac.create=false"],
        &[
            "aws.roleArn=arn:aws:iam::123456789012:role/driftline",
            "serviceAccount.annotations.team=payments",
            "env[0].name=HTTPS_PROXY",
            "env[0].value=http://proxy:3128",
            "nodeSelector.zone=a",
            "operator.extraArgs={-v}",
        ],
    ] {
        let Some(objects) = rendered(values) else { return };
        cluster.kubectl_with(&objects, &["apply", "--server-side", "--dry-run=server"]).succeeded();
    }
}
