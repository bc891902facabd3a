//! Many accounts and regions: side by side as one at a time, and nobody's failure is another's.

use std::collections::BTreeMap;

use serde_json::{Value as Json, json};

use super::{Cloud, new_account};

const REGIONS: [&str; 3] = ["ap-southeast-2", "eu-west-1", "us-east-1"];

/// The digest of the newest version of each stream.
fn digests(cloud: &Cloud) -> BTreeMap<String, Json> {
    let log = cloud.sandbox.json(["log", "--limit", "0"]);
    let versions = log["versions"].as_array().unwrap().iter();
    versions.map(|one| (one["source"].as_str().unwrap().to_owned(), one["digest"].clone())).collect()
}

/// Two accounts, each with other things in each of three regions.
fn two_accounts() -> Option<(Cloud, [String; 2])> {
    let mut cloud = Cloud::new()?;
    let own = cloud.account.clone();
    let other = new_account();
    for (nth, account) in [&own, &other].into_iter().enumerate() {
        cloud.account.clone_from(account);
        for (at, region) in REGIONS.iter().enumerate() {
            cloud.boto3_in(region, &["groups", &(1 + 3 * nth + at).to_string()]);
        }
    }
    cloud.account.clone_from(&own);
    Some((cloud, [own, other]))
}

#[test]
fn two_accounts_in_three_regions_side_by_side_are_what_they_are_one_at_a_time() {
    let Some((cloud, accounts)) = two_accounts() else { return };
    let both = accounts.join(",");
    let observe = ["observe", "adopt", "--strict", "--accounts", &both, "--region", &REGIONS.join(",")];
    cloud.run(observe).succeeded();
    let together = digests(&cloud);
    assert_eq!(together.len(), 6, "{together:?}");

    let cloud = cloud.with_new_folder();
    for account in &accounts {
        for region in REGIONS {
            let one = ["observe", "adopt", "--strict", "--accounts", account, "--region", region, "--concurrency", "1"];
            cloud.run(one).succeeded();
        }
    }
    assert_eq!(digests(&cloud), together);
    let distinct: std::collections::BTreeSet<String> = together.values().map(Json::to_string).collect();
    assert_eq!(distinct.len(), 6, "all places had other things in them, so that mixing them up would show");
    let called: std::collections::BTreeSet<String> =
        cloud.proxy.calls().into_iter().filter(|one| one.call.service == "ec2").map(|one| one.call.account).collect();
    assert!(accounts.iter().all(|account| called.contains(account)), "{called:?}");
}

#[test]
fn an_account_that_cannot_be_entered_does_not_keep_the_others() {
    let Some((cloud, [own, other])) = two_accounts() else { return };
    cloud.rules(json!([{"match": {"operation": "AssumeRole"}, "do": {"refuse": "deny"}}]));
    let both = format!("{own},{other}");
    let ran = cloud.run(["observe", "adopt", "--accounts", &both, "--region", "us-east-1"]);
    let ran = ran.exited(1).says(&[&format!("the account {other} was not observed"), "sts:AssumeRole"]);
    assert!(!ran.err.contains("panicked"), "{}", ran.err);
    let streams: Vec<String> = digests(&cloud).into_keys().collect();
    assert_eq!(streams.len(), 1, "{streams:?}");
    assert!(streams[0].contains(&own), "{streams:?}");
}

#[test]
fn every_account_of_an_organization_is_observed() {
    let Some(cloud) = Cloud::of_moto() else { return };
    let accounts = cloud.boto3(&["organization", "one", "two", "three"]);
    let accounts: Vec<&str> = accounts.as_array().unwrap().iter().map(|id| id.as_str().unwrap()).collect();
    assert_eq!(accounts.len(), 4);
    // Two to a page, so that an organization is more than one.
    cloud.rules(json!([{"match": {"operation": "ListAccounts"}, "do": {"page": {"size": 2}}}]));
    cloud.run(["observe", "adopt", "--strict", "--organization", "--types", "AWS::EC2::VPC"]).succeeded();
    let streams: Vec<String> = digests(&cloud).into_keys().collect();
    assert_eq!(streams.len(), 4, "{streams:?}");
    for account in &accounts {
        assert!(streams.iter().any(|stream| stream.contains(account)), "{account} is not in {streams:?}");
    }
    // Half of an organization must not pass for the whole.
    cloud.rules(json!([
        {"match": {"operation": "ListAccounts"}, "do": {"page": {"size": 2}}},
        {"match": {"operation": "ListAccounts"}, "when": {"later_page": true}, "do": {"refuse": "bad_token"}},
    ]));
    cloud.run(["observe", "adopt", "--organization"]).refused(&["organization"]);
}

#[test]
fn all_regions_are_those_that_the_account_has_but_for_the_excluded() {
    let Some(cloud) = Cloud::new() else { return };
    let regions = "<DescribeRegionsResponse><requestId>r</requestId><regionInfo>\
        <item><regionName>us-east-1</regionName><regionEndpoint>ec2.us-east-1.amazonaws.com</regionEndpoint></item>\
        <item><regionName>eu-west-1</regionName><regionEndpoint>ec2.eu-west-1.amazonaws.com</regionEndpoint></item>\
        <item><regionName>eu-north-1</regionName><regionEndpoint>ec2.eu-north-1.amazonaws.com</regionEndpoint></item>\
        </regionInfo></DescribeRegionsResponse>";
    cloud.fixtures(json!([{"match": {"operation": "DescribeRegions"}, "xml": regions}]));
    let observe = ["observe", "adopt", "--all-regions", "--exclude-region", "eu-north-1", "--types", "AWS::EC2::VPC"];
    cloud.run(observe).succeeded();
    let streams: Vec<String> = digests(&cloud).into_keys().collect();
    assert_eq!(streams.len(), 2, "{streams:?}");
    assert!(streams[0].contains("eu-west-1") && streams[1].contains("us-east-1"), "{streams:?}");
}

#[test]
fn each_service_may_have_an_endpoint_of_its_own() {
    let Some(cloud) = Cloud::new() else { return };
    let proxy = cloud.proxy.url();
    let observe = ["observe", "adopt", "--strict", "--types", "AWS::EC2::VPC"];
    let mut command = cloud.command(observe);
    // Nothing listens there: whatever does not use the endpoint of its service fails.
    command.env("AWS_ENDPOINT_URL", "http://127.0.0.1:1");
    command.env("AWS_ENDPOINT_URL_EC2", &proxy).env("AWS_ENDPOINT_URL_STS", &proxy);
    crate::support::ran(&command.output().unwrap()).succeeded();
    assert_eq!(cloud.called().into_keys().collect::<Vec<_>>(), ["ec2:DescribeVpcs", "sts:GetCallerIdentity"]);
}

#[test]
fn roles_are_taken_on_one_after_the_other_and_the_last_gets_the_external_id() {
    let Some(cloud) = Cloud::of_moto() else { return };
    let (first, last) = (new_account(), new_account());
    let chain = format!("arn:aws:iam::{first}:role/jump,arn:aws:iam::{last}:role/read");
    let observe =
        ["observe", "adopt", "--types", "AWS::EC2::VPC", "--role-arn", &chain, "--external-id", "shared-word"];
    cloud.run(observe).succeeded();
    let streams: Vec<String> = digests(&cloud).into_keys().collect();
    assert_eq!(streams, [format!("adopt@{last}/us-east-1")]);
    assert_eq!(cloud.called()["sts:AssumeRole"], 2);
    cloud.rules(json!([{"match": {"operation": "AssumeRole"}, "when": {"calls": [2]}, "do": {"refuse": "deny"}}]));
    cloud.run(observe).refused(&[&format!("cannot assume arn:aws:iam::{last}:role/read"), "nothing was committed"]);
}

#[test]
fn what_the_configuration_lists_is_observed_and_its_gaps_decide_the_exit_code() {
    let Some(cloud) = Cloud::new() else { return };
    cloud.boto3(&["groups", "2"]);
    let config = r#"
        [[source]]
        name = "adopt/own"
        model = "adopt"
        aws = { regions = ["us-east-1", "eu-west-1"], types = ["AWS::EC2::SecurityGroup"], attempts = 2 }

        [[source]]
        name = "inventory/own"
        model = "inventory"
        aws = { types = ["AWS::SQS::Queue"] }

        [[source]]
        name = "trail"
        model = "cloudtrail"
        aws = { events = { since = "2026-01-01", until = "2026-01-02" } }
    "#;
    cloud.sandbox.write("driftline.toml", config);
    cloud.fixture_file(include_str!("../../../../fake-aws/fixtures/cloudtrail.json"));
    cloud.run(["observe", "all", "--strict"]).succeeded();
    let account = &cloud.account;
    let expected = [
        format!("adopt/own@{account}/eu-west-1"),
        format!("adopt/own@{account}/us-east-1"),
        format!("inventory/own@{account}/us-east-1"),
        format!("trail@{account}/us-east-1"),
    ];
    assert_eq!(digests(&cloud).into_keys().collect::<Vec<_>>(), expected);
    cloud.rules(json!([{"match": {"service": "ec2", "region": "eu-west-1"}, "do": {"refuse": "deny"}}]));
    cloud.run(["observe", "all"]).succeeded().says(&["access denied: ec2:DescribeSecurityGroups"]);
    cloud.run(["observe", "all", "--strict"]).exited(3);
}
