//! The examples for Terraform: their policies are those that the program prints, and their files are well formed.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value as Json;

use crate::support::{Sandbox, files, ran, skip, variable};

fn example() -> PathBuf {
    PathBuf::from(variable("CARGO_MANIFEST_DIR").unwrap())
        .join("../../examples/terraform/observer")
        .canonicalize()
        .unwrap()
}

fn json(path: &Path) -> Json {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn the_policies_of_the_example_are_those_that_a_dry_run_prints() {
    let config = example().join("hub/driftline.toml");
    let plan = Sandbox::new().json(["--config", config.to_str().unwrap(), "observe", "all", "--dry-run"]);
    for (file, member) in [("account/observer-policy.json", "policy"), ("hub/caller-policy.json", "callerPolicy")] {
        let command = "driftline --config hub/driftline.toml -o json observe all --dry-run";
        assert!(plan[member] == json(&example().join(file)), "write `{member}` of `{command}` to {file}");
    }
    // Two halves: the role reads and enters nobody; whoever enters reads nothing but who there is.
    let actions = |member: &str| -> BTreeSet<String> {
        let actions = plan[member]["Statement"][0]["Action"].as_array().unwrap().iter();
        actions.map(|action| action.as_str().unwrap().to_owned()).collect()
    };
    let (role, caller) = (actions("policy"), actions("callerPolicy"));
    let both: Vec<&String> = role.intersection(&caller).collect();
    assert_eq!(both, ["sts:GetCallerIdentity"]);
    assert_eq!(
        caller.iter().collect::<Vec<_>>(),
        ["organizations:ListAccounts", "sts:AssumeRole", "sts:GetCallerIdentity"]
    );
    assert!(role.contains("ec2:DescribeRegions") && role.contains("sqs:ListQueues"), "{role:?}");
    // What IAM takes as a managed policy.
    assert!(plan["policy"].to_string().len() <= 6144);
}

#[test]
fn the_example_is_well_formed_and_written_as_terraform_writes_it() {
    let Some(hclfmt) = variable("DRIFTLINE_TEST_HCLFMT") else {
        return skip("DRIFTLINE_TEST_HCLFMT is not set; scripts/test builds what it names");
    };
    let texts = files(&example());
    let written: Vec<&String> = texts.keys().filter(|name| name.split('.').next_back() == Some("tf")).collect();
    assert!(written.len() >= 8, "{written:?}");
    let mut command = Command::new(hclfmt);
    command.args(["-check", "-require-no-change"]).args(&written).current_dir(example());
    ran(&command.output().unwrap()).succeeded();
    // Terraform's own formatter says a little more, where there is one.
    if let Ok(checked) =
        Command::new("terraform").args(["fmt", "-check", "-diff", "-recursive"]).arg(example()).output()
    {
        ran(&checked).succeeded();
    }
}

/// The body of the first block that begins with this line, without the spaces around its lines.
fn block<'t>(text: &'t str, head: &str) -> Vec<&'t str> {
    let mut depth = 0_usize;
    let mut body = Vec::new();
    for line in text.lines().skip_while(|line| line.trim() != head) {
        depth += line.matches(['{', '[']).count();
        depth -= line.matches(['}', ']']).count();
        body.push(line.trim());
        if depth == 0 {
            break;
        }
    }
    body
}

#[test]
fn what_the_example_leaves_in_the_bucket_is_tidied() {
    let read = |name: &str| fs::read_to_string(example().join("hub").join(name)).unwrap();
    // The schedule that packs and drops runs the program as the others do, with what it takes for that.
    let tasks = read("task.tf");
    let gc = block(&tasks, "resource \"aws_scheduler_schedule\" \"gc\" {");
    let command = gc.iter().find_map(|line| line.strip_prefix("command = ")).expect("it runs something");
    let command: Vec<String> = serde_json::from_str(command).unwrap();
    Sandbox::with_demo().run(command).succeeded();
    let role = read("iam.tf");
    assert!(role.contains("s3:DeleteObject"), "gc deletes");
    // What a commit deletes of the derived files is not paid for as long as what one may want back.
    let bucket = read("bucket.tf");
    let rules = block(&bucket, "resource \"aws_s3_bucket_lifecycle_configuration\" \"store\" {");
    let at = rules.iter().position(|line| *line == "prefix = \"${local.prefix}/view/\"").expect("a rule for view/");
    assert_eq!(rules[at..].iter().find(|line| line.starts_with("noncurrent_days")), Some(&"noncurrent_days = 1"));
    let store = "\"s3://${aws_s3_bucket.store.bucket}/${local.prefix}\"";
    assert!(tasks.contains(store) && read("outputs.tf").contains(store), "the prefix is that of the store");
    // Nothing that is current goes by itself.
    assert!(!rules.iter().any(|line| line.split_whitespace().next() == Some("days")), "{rules:?}");
}
