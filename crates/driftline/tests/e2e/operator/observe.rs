//! `observe kubernetes` against a real cluster.

use std::path::Path;

use serde_json::{Value as Json, json};

use super::cluster::{Cluster, LIMITED_USER, programs, shared};
use crate::support::{Ran, Sandbox, counts, files, resource};

fn deployment(namespace: &str, replicas: u32) -> String {
    format!(
        "{{apiVersion: apps/v1, kind: Deployment, metadata: {{name: web, namespace: {namespace}}}, spec: {{\
         replicas: {replicas}, selector: {{matchLabels: {{app: web}}}}, template: {{metadata: {{labels: {{app: web}}}}, \
         spec: {{containers: [{{name: web, image: 'web:1'}}]}}}}}}}}"
    )
}

fn secret(namespace: &str, password: &str) -> String {
    format!(
        "{{apiVersion: v1, kind: Secret, metadata: {{name: login, namespace: {namespace}}}, stringData: {{password: {password}}}}}"
    )
}

/// Observes with these arguments, as the user of a kubeconfig.
fn observe(sandbox: &Sandbox, kubeconfig: &Path, arguments: &[&str]) -> Ran {
    let kubeconfig = kubeconfig.to_str().unwrap();
    let all: Vec<&str> = ["-o", "json", "observe", "kubernetes"].into_iter().chain(arguments.iter().copied()).collect();
    sandbox.run_with(&[("KUBECONFIG", kubeconfig)], all)
}

fn paths(resource: &Json) -> Vec<&str> {
    resource["changes"].as_array().unwrap().iter().map(|change| change["path"].as_str().unwrap()).collect()
}

#[test]
fn an_untouched_cluster_does_not_drift_and_what_is_changed_does() {
    let Some(programs) = programs() else { return };
    // A cluster of its own: the others make and delete things all the time.
    let cluster = Cluster::start(&programs);
    let namespace = cluster.namespace("shop");
    cluster.kubectl_with(&deployment(&namespace, 2), &["apply"]).succeeded();
    cluster.kubectl_with(&secret(&namespace, "correct-horse"), &["apply"]).succeeded();
    let sandbox = Sandbox::new();
    let seen = observe(&sandbox, &cluster.kubeconfig(), &[]).succeeded().json();
    let line = &seen["committed"][0];
    assert_eq!(line["source"], "kubernetes/test");
    assert!(line["resources"].as_u64().unwrap() > 50, "the API server itself makes roles and more: {line}");
    assert_eq!(line["extents"]["partial"], 0, "{line}");
    sandbox.run(["baseline", "set"]).succeeded();

    observe(&sandbox, &cluster.kubeconfig(), &[]).succeeded();
    let still = sandbox.drift([]);
    assert_eq!(counts(&still)[..3], [0, 0, 0], "{still:#}");

    // What only the server and controllers write is excused, and what somebody decided is not.
    cluster
        .kubectl([
            "patch",
            "deployment",
            "web",
            "-n",
            &namespace,
            "--subresource=status",
            "--type=merge",
            "-p",
            r#"{"status":{"replicas":1,"observedGeneration":1}}"#,
        ])
        .succeeded();
    cluster.kubectl(["scale", "deployment", "web", "-n", &namespace, "--replicas=3"]).succeeded();
    cluster.kubectl_with(&secret(&namespace, "battery-staple"), &["apply"]).succeeded();
    observe(&sandbox, &cluster.kubeconfig(), &[]).succeeded();
    let report = sandbox.drift([]);
    assert_eq!(counts(&report)[..3], [2, 0, 0], "{report:#}");
    let web = resource(&report, &format!("deployment.apps/{namespace}/web"));
    assert_eq!(paths(web), ["/spec/replicas"]);
    assert_eq!(web["changes"][0]["current"], 3);
    let login = resource(&report, &format!("secret/{namespace}/login"));
    assert_eq!(paths(login), ["/data/password"]);

    // The API server knows who wrote the field, though of a scale not when.
    let blame = sandbox.json(["blame", &format!("deployment.apps/{namespace}/web")]);
    let act = &blame["changes"][0]["acts"][0];
    assert_eq!((&act["certainty"], &act["who"]), (&json!("likely"), &json!("the field manager kubectl")), "{blame:#}");
    assert_eq!((&act["what"], &act["how"]), (&json!("Update of its scale"), &json!("kubectl")));

    // Neither the text nor its base64 form is anywhere.
    let stored = files(&sandbox.store());
    for word in ["battery-staple", "correct-horse", "YmF0dGVyeS1zdGFwbGU", "Y29ycmVjdC1ob3JzZQ"] {
        let found = stored.iter().find(|(_, bytes)| bytes.windows(word.len()).any(|part| part == word.as_bytes()));
        assert!(found.is_none(), "{word} is in {:?}", found.map(|(name, _)| name));
        assert!(!report.to_string().contains(word));
    }

    // A namespace that is gone was looked at: what was in it is deleted.
    cluster.kubectl(["delete", "deployment", "web", "-n", &namespace]).succeeded();
    observe(&sandbox, &cluster.kubeconfig(), &[]).succeeded();
    let report = sandbox.drift([]);
    assert_eq!(resource(&report, &format!("deployment.apps/{namespace}/web"))["kind"], "deleted");
}

#[test]
fn what_may_not_be_listed_is_not_checked_and_the_verb_is_named() {
    let Some(cluster) = shared() else { return };
    let namespace = cluster.namespace("allowed");
    let other = cluster.namespace("closed");
    for namespace in [&namespace, &other] {
        cluster.kubectl_with(&deployment(namespace, 1), &["apply"]).succeeded();
    }
    let user = format!("--user={LIMITED_USER}");
    let role = ["create", "role", "lister", "--verb=list", "--resource=deployments.apps", "-n", &namespace];
    cluster.kubectl(role).succeeded();
    cluster.kubectl(["create", "rolebinding", "lister", "--role=lister", &user, "-n", &namespace]).succeeded();

    let sandbox = Sandbox::new();
    let kubeconfig = cluster.limited_kubeconfig();
    let ran = observe(&sandbox, &kubeconfig, &["--kind", "deploy", "-n", &namespace, "-n", &other]).succeeded();
    let ran = ran.says(&["`list` of `deployments.apps`", &other, "forbidden"]);
    let line = &ran.json()["committed"][0];
    assert_eq!(
        (&line["resources"], &line["extents"]["complete"], &line["extents"]["partial"]),
        (&1.into(), &1.into(), &1.into())
    );

    // Whoever may see it all had seen both: the one that is out of sight is not gone.
    let sandbox = Sandbox::new();
    let both = ["--kind", "deployments.apps", "-n", &namespace, "-n", &other];
    observe(&sandbox, &cluster.kubeconfig(), &both).succeeded();
    sandbox.run(["baseline", "set"]).succeeded();
    cluster.kubectl(["delete", "deployment", "web", "-n", &namespace]).succeeded();
    cluster.kubectl(["delete", "deployment", "web", "-n", &other]).succeeded();
    // The one of them has no right to read the identity of the cluster, so it is another way of listing.
    observe(&sandbox, &cluster.kubeconfig(), &["--kind", "deployments.apps", "-n", &namespace, "--allow-empty"])
        .succeeded();
    let report = sandbox.drift([]);
    assert_eq!(resource(&report, &format!("deployment.apps/{namespace}/web"))["kind"], "deleted");
    assert_eq!(resource(&report, &format!("deployment.apps/{other}/web"))["status"], "not_checked");
}

#[test]
fn a_long_list_is_read_page_by_page() {
    let Some(cluster) = shared() else { return };
    let namespace = cluster.namespace("pages");
    let maps: Vec<String> = (0..620)
        .map(|at| format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: map-{at}, namespace: {namespace}}}\n"))
        .collect();
    cluster.kubectl_with(&maps.join("---\n"), &["create"]).succeeded();
    let sandbox = Sandbox::new();
    let ran =
        observe(&sandbox, &cluster.kubeconfig(), &["--kind", "cm", "-n", &namespace, "--cluster", "big"]).succeeded();
    let line = &ran.json()["committed"][0];
    assert_eq!((&line["source"], &line["resources"]), (&"kubernetes/big".into(), &620.into()));

    // And the same, as kubectl prints it.
    let listed = cluster.kubectl(["get", "configmaps", "-n", &namespace, "-o", "json"]).succeeded();
    let file = sandbox.write("list.json", &listed.out);
    let ran = observe(
        &sandbox,
        &cluster.kubeconfig(),
        &[file.to_str().unwrap(), "-n", &namespace, "--cluster", "big", "--name", "printed"],
    );
    assert_eq!(ran.succeeded().json()["committed"][0]["resources"], 620);
    let across = sandbox.json(["drift", "--across", "kubernetes/big", "printed", "--exit-zero"]);
    assert_eq!(across["summary"]["drifted"], 0, "{across:#}");
}

#[test]
fn a_cluster_that_cannot_be_asked_is_an_error_that_says_what_to_do() {
    let Some(cluster) = shared() else { return };
    let sandbox = Sandbox::new();
    observe(&sandbox, Path::new("nowhere"), &[]).refused(&["cannot observe kubernetes", "KUBECONFIG"]);
    observe(&sandbox, &cluster.kubeconfig(), &["--context", "other"]).refused(&["other", "get-contexts"]);
    observe(&sandbox, &cluster.kubeconfig(), &["--kind", "unicorns"]).refused(&["unicorns", "kubectl api-resources"]);
    let text = std::fs::read_to_string(cluster.kubeconfig()).unwrap();
    let nobody = text
        .replace("admin-token", "another")
        .replace("certificates/", &format!("{}/certificates/", cluster.kubeconfig().parent().unwrap().display()));
    let nobody = sandbox.write("nobody.kubeconfig", nobody);
    observe(&sandbox, &nobody, &[]).refused(&["does not know who is asking", "kubectl auth whoami"]);
    assert!(!sandbox.store().exists());
}
