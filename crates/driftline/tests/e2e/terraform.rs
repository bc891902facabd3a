//! A real `terraform`, where there is one: it makes a state, changes it, and we see exactly that.

use std::io::Write;
use std::process::Command;

use serde_json::{Value as Json, json};

use crate::support::Sandbox;

const CONFIGURATION: &str = r#"
variable "size" { default = 1 }
variable "secret" {
  default   = "hunter2"
  sensitive = true
}
resource "terraform_data" "plain" { input = { size = var.size } }
resource "terraform_data" "many" {
  count = 2
  input = "n${count.index}"
}
resource "terraform_data" "named" {
  for_each = toset(["a b", "c/d"])
  input    = each.key
}
resource "terraform_data" "hidden" { input = var.secret }
"#;

/// Runs `terraform` in the sandbox; `None` where there is none.
fn terraform(sandbox: &Sandbox, arguments: &[&str]) -> Option<String> {
    let mut command = Command::new("terraform");
    sandbox.prepare(command.args(arguments));
    // Nothing of the tester's: no plug-ins, no account, no questions.
    command.env("HOME", sandbox.path("")).env("TF_IN_AUTOMATION", "1").env("CHECKPOINT_DISABLE", "1");
    let output = command.output().ok()?;
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// A sandbox with a state that terraform made.
fn applied() -> Option<Sandbox> {
    let sandbox = Sandbox::new();
    sandbox.write("main.tf", CONFIGURATION);
    if terraform(&sandbox, &["init", "-input=false", "-no-color"]).is_none() {
        let _ = writeln!(std::io::stderr(), "left out: there is no `terraform` on this machine");
        return None;
    }
    terraform(&sandbox, &["apply", "-auto-approve", "-no-color"]);
    Some(sandbox)
}

fn ids(report: &Json) -> Vec<(String, String)> {
    let text = |one: &Json, name: &str| one[name].as_str().unwrap_or_default().to_owned();
    let resources = report["resources"].as_array().unwrap();
    resources.iter().map(|one| (text(one, "canonicalId"), text(one, "kind"))).collect()
}

#[test]
fn what_terraform_changed_in_its_state_is_the_drift_and_nothing_else() {
    let Some(sandbox) = applied() else { return };
    let observe = ["observe", "terraform", "terraform.tfstate", "--name", "terraform/test"];
    sandbox.run(observe).succeeded();
    sandbox.run(["baseline", "set"]).succeeded();
    sandbox.run(observe).succeeded();
    assert_eq!(ids(&sandbox.drift([])), [], "the same state twice");
    terraform(&sandbox, &["apply", "-auto-approve", "-no-color", "-var", "size=2"]);
    terraform(&sandbox, &["state", "rm", "terraform_data.many[1]"]);
    sandbox.run(observe).succeeded();
    let report = sandbox.drift([]);
    let expected = [("terraform_data.many[1]", "deleted"), ("terraform_data.plain", "modified")];
    assert_eq!(ids(&report), expected.map(|(id, kind)| (id.to_owned(), kind.to_owned())));
    let paths: Vec<&Json> =
        report["resources"][1]["changes"].as_array().unwrap().iter().map(|one| &one["path"]).collect();
    assert_eq!(paths, ["/input/size", "/output/size"]);
    // A changed secret is seen to have changed, and nothing shows to what.
    terraform(&sandbox, &["apply", "-auto-approve", "-no-color", "-var", "size=2", "-var", "secret=hunter3"]);
    sandbox.run(observe).succeeded();
    let ran = sandbox.run(["drift", "-o", "json"]).exited(2);
    assert!(ran.out.contains("terraform_data.hidden") && !ran.out.contains("hunter"), "{}", ran.out);
}

#[test]
fn addresses_are_those_that_terraform_lists_whichever_form_the_state_comes_in() {
    let Some(sandbox) = applied() else { return };
    let listed = terraform(&sandbox, &["state", "list"]).unwrap();
    sandbox.write("show.json", terraform(&sandbox, &["show", "-json"]).unwrap());
    sandbox.run(["observe", "terraform", "terraform.tfstate", "--name", "terraform/a"]).succeeded();
    sandbox.run(["observe", "terraform", "show.json", "--name", "terraform/b"]).succeeded();
    for source in ["terraform/a", "terraform/b"] {
        sandbox.run(["baseline", "set", "--source", source]).succeeded();
        let report = sandbox.drift(["--all", "--source", source]);
        let mut found: Vec<String> = ids(&report).into_iter().map(|(id, _)| id).collect();
        let mut expected: Vec<&str> = listed.lines().collect();
        found.sort();
        expected.sort_unstable();
        assert_eq!(found, expected, "{source}");
    }
}

#[test]
fn a_plan_tells_what_is_there_apart_from_what_it_would_change() {
    let Some(sandbox) = applied() else { return };
    terraform(&sandbox, &["plan", "-out", "plan", "-no-color", "-var", "size=3"]);
    sandbox.write("plan.json", terraform(&sandbox, &["show", "-json", "plan"]).unwrap());
    let observed = sandbox.json(["observe", "terraform", "plan.json", "--name", "terraform/test"]);
    let sources: Vec<&Json> = observed["committed"].as_array().unwrap().iter().map(|one| &one["source"]).collect();
    assert_eq!(sources, ["terraform/test", "terraform/test@plan"]);
    sandbox.run(["baseline", "set"]).succeeded();
    let report = sandbox.drift(["--all"]);
    let planned: Vec<&Json> = report["resources"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|one| one["resourceType"] == "Terraform::PlannedChange")
        .map(|one| &one["canonicalId"])
        .collect();
    assert_eq!(planned, ["terraform_data.plain"]);
    // Applied, the plan has nothing left to do: that is good news, and no drift.
    terraform(&sandbox, &["apply", "-auto-approve", "-no-color", "-var", "size=3"]);
    terraform(&sandbox, &["plan", "-out", "plan", "-no-color", "-var", "size=3"]);
    sandbox.write("plan.json", terraform(&sandbox, &["show", "-json", "plan"]).unwrap());
    sandbox.run(["observe", "terraform", "plan.json", "--name", "terraform/test", "--allow-empty"]).succeeded();
    let report = sandbox.drift([]);
    assert_eq!(report["summary"]["resolved"], 1, "{report:#}");
    assert_eq!(
        ids(&report),
        [("terraform_data.plain", "resolved"), ("terraform_data.plain", "modified")]
            .map(|(id, kind)| (id.to_owned(), kind.to_owned()))
    );
    assert_eq!(report["summary"]["drifted"], json!(1));
}
