//! `observe all` in many accounts: within bounds, whoever fails, in shares, and with the same result.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Stdio;

use jiff::Timestamp;
use serde_json::{Value as Json, json};

use super::{Cloud, ids_with, new_account};
use crate::support::{Ran, ran};

const REGIONS: [&str; 3] = ["ap-southeast-2", "eu-west-1", "us-east-1"];

/// Two sources that share services, so that only a pace they share keeps the bounds.
const SOURCES: &str = r#"
    [[source]]
    name = "inventory"
    model = "inventory"
    aws = { types = ["AWS::SQS::Queue", "AWS::SNS::Topic", "AWS::DynamoDB::Table"], attempts = 3 }

    [[source]]
    name = "again"
    model = "inventory"
    aws = { types = ["AWS::SQS::Queue"], attempts = 3 }
"#;

/// Accounts with other queues in each of the regions; the own one among them.
fn accounts(cloud: &Cloud, number: usize, regions: &[&str]) -> Vec<String> {
    let mut accounts = vec![cloud.account.clone()];
    accounts.extend(std::iter::repeat_with(new_account).take(number - 1));
    cloud.boto3(&["spread", &accounts.join(","), &regions.join(",")]);
    cloud.sandbox.write("driftline.toml", SOURCES);
    cloud.sandbox.write("accounts.txt", format!("# ours\n{}\n", accounts.join(" some name\n")));
    cloud.proxy.forget_calls();
    accounts.sort();
    accounts
}

fn observe(cloud: &Cloud, more: &[&str]) -> Ran {
    let mut arguments = vec!["-o", "json", "observe", "all", "--accounts", "@accounts.txt"];
    arguments.extend(more);
    cloud.run(arguments)
}

fn digests(log: &Json) -> BTreeMap<String, Json> {
    let versions = log["versions"].as_array().unwrap().iter();
    versions.map(|one| (one["source"].as_str().unwrap().to_owned(), one["digest"].clone())).collect()
}

/// An organization that the own account manages, with these accounts in it.
fn organization(cloud: &Cloud, accounts: &[String]) {
    let member = |id: &String| {
        let arn = format!("arn:aws:organizations::{}:account/o-ab12cd34/{id}", cloud.account);
        json!({"Id": id, "Name": format!("team {id}"), "Status": "ACTIVE", "Arn": arn})
    };
    let members: Vec<Json> = accounts.iter().map(member).collect();
    cloud.fixtures(json!([{"match": {"operation": "ListAccounts"}, "json": {"Accounts": members}}]));
}

/// Commits what somebody saw of a stream so many minutes from now.
fn seen_later(cloud: &Cloud, source: &str, scope: &str, minutes: u32) {
    let date = ["-u", "-d", &format!("+{minutes} minutes"), "+%Y-%m-%dT%H:%M:%SZ"];
    let date = std::process::Command::new("date").args(date).output().unwrap();
    let observation = json!({"schema": "driftline.observation/v1", "source": source, "scope": scope,
        "takenAt": String::from_utf8(date.stdout).unwrap().trim(), "coverage": "complete",
        "resources": [{"canonicalId": "thing", "resourceType": "Thing", "place": "here", "snapshot": {}}]});
    cloud.sandbox.observe(&observation).succeeded();
}

/// A time of the newest version of a stream, as the log has it.
fn newest(cloud: &Cloud, stream: &str, time: &str) -> Timestamp {
    let log = cloud.sandbox.json(["log", "--limit", "0"]);
    let of_stream = log["versions"].as_array().unwrap().iter().filter(|one| one["source"] == stream);
    let newest = of_stream.max_by_key(|one| one["version"].as_u64()).unwrap();
    newest[time].as_str().unwrap().parse().unwrap()
}

/// The accounts of a report with this status.
fn with_status(report: &Json, status: &str) -> Vec<String> {
    let accounts = report["accounts"].as_array().unwrap().iter();
    accounts.filter(|one| one["status"] == status).map(|one| one["account"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn forty_accounts_in_three_regions_stay_within_every_bound_and_come_out_the_same() {
    let Some(cloud) = Cloud::new() else { return };
    let accounts = accounts(&cloud, 40, &REGIONS);
    // Late answers, so that whoever may ask does so while others wait.
    cloud.rules(json!([{"do": {"slow": {"ms": 25}}}]));
    let regions = REGIONS.join(",");
    let bounds = ["--concurrency", "12", "--per-account", "4", "--per-region", "3", "--per-service", "2"];
    let report = observe(&cloud, &[&["--strict", "--region", &regions], &bounds[..]].concat()).succeeded().json();
    let peaks = cloud.proxy.peaks();
    let most = |peaks: &mut dyn Iterator<Item = u64>| peaks.max().unwrap();
    let of_services = most(&mut peaks.by_service.values().copied());
    let of_regions = most(&mut peaks.by_region.values().copied());
    let of_accounts = most(&mut peaks.by_account.values().copied());
    assert!(of_services <= 2 && of_regions <= 3 && of_accounts <= 4 && peaks.overall <= 12, "{peaks:?}");
    // It is the bounds that hold it back: there is more to ask than they let through.
    assert!(of_services == 2 && of_regions >= 2 && of_accounts >= 3 && peaks.overall >= 8, "{peaks:?}");

    assert_eq!(with_status(&report, "observed"), accounts);
    let one = report["accounts"].as_array().unwrap().iter().find(|one| one["account"] == accounts[1]).unwrap();
    assert_eq!((&one["streams"], &one["name"]), (&json!(6), &json!("some name")));
    assert!(one["calls"].as_u64().unwrap() >= 12 && one["resources"].as_u64().unwrap() > 0, "{one}");
    let together = digests(&cloud.sandbox.json(["log", "--limit", "0"]));
    assert_eq!(together.len(), 40 * 3 * 2);

    cloud.rules(json!([]));
    for concurrency in ["1", "16"] {
        let folder = cloud.sandbox.path(&format!("store-{concurrency}"));
        let folder = folder.to_str().unwrap();
        let more = ["--strict", "--region", &regions, "--concurrency", concurrency, "--store", folder];
        observe(&cloud, &more).succeeded();
        let alone = digests(&cloud.sandbox.json(["log", "--limit", "0", "--store", folder]));
        assert_eq!(alone, together, "with --concurrency {concurrency}");
    }
}

#[test]
fn an_account_that_is_refused_and_one_that_is_throttled_are_said_and_stop_nobody() {
    let Some(cloud) = Cloud::new() else { return };
    let accounts = accounts(&cloud, 5, &["us-east-1"]);
    observe(&cloud, &["--strict"]).succeeded();
    cloud.run(["baseline", "set"]).succeeded();

    // The second role is refused, and the own account gets no answer about queues.
    let own = cloud.account.clone();
    let rules = json!([
        {"match": {"operation": "AssumeRole"}, "when": {"calls": [2]}, "do": {"refuse": "deny"}},
        {"match": {"service": "sqs", "account": own}, "do": {"refuse": "throttle"}},
    ]);
    cloud.rules(rules.clone());
    let ran = observe(&cloud, &[]).succeeded();
    let ran =
        ran.says(&["account not entered: access denied: sts:AssumeRole is not allowed", "throttled: sqs ListQueues"]);
    let report = ran.json();
    let refused = with_status(&report, "unreached");
    assert_eq!((refused.len(), with_status(&report, "partial")), (1, vec![own.clone()]));
    assert_eq!(with_status(&report, "observed").len(), 3);

    // What is known of the two is neither in sync nor gone.
    let drift = cloud.drift();
    for (account, reason) in [(&refused[0], "account not entered: access denied"), (&own, "throttled: sqs ListQueues")]
    {
        let of = |one: &&Json| one["account"] == **account;
        let resources = drift["resources"].as_array().unwrap().iter().filter(of);
        let queues: Vec<&Json> = resources.filter(|one| one["resourceType"] == "AWS::SQS::Queue").collect();
        assert!(!queues.is_empty());
        for queue in queues {
            assert_eq!(queue["status"], "not_checked", "{queue}");
            assert!(queue["reason"].as_str().unwrap().contains(reason), "{queue}");
        }
    }
    assert!(ids_with(&drift, "drifted").is_empty() && !ids_with(&drift, "in_sync").is_empty());
    let fleet = cloud.run(["-o", "json", "fleet", "--expect", "accounts.txt"]).succeeded().json();
    let first: BTreeSet<&str> =
        fleet["accounts"].as_array().unwrap()[..2].iter().map(|one| one["account"].as_str().unwrap()).collect();
    assert_eq!(first, BTreeSet::from([own.as_str(), refused[0].as_str()]), "who needs a person stands first");
    assert_eq!(
        fleet["summary"]["by"],
        json!({"missing": 0, "stale": 0, "partial": 2, "drifted": 0, "not_checked": 0, "unknown": 0, "in_sync": 3})
    );

    cloud.rules(rules);
    observe(&cloud, &["--strict"]).exited(3);
    // Nobody at all is an error, and leaves nothing behind.
    cloud.rules(json!([{"match": {"service": "sts"}, "do": {"refuse": "deny"}}]));
    observe(&cloud, &["--store", "other"]).refused(&["was not observed", "sts"]);
    assert!(!cloud.sandbox.path("other").exists());
    // Seen again, all is as it was.
    cloud.rules(json!([]));
    observe(&cloud, &["--strict"]).succeeded();
    assert_eq!(cloud.drift()["summary"]["notChecked"], 0);
    assert_eq!(accounts.len(), 5);
}

#[test]
fn credentials_that_expire_in_one_account_are_its_own_trouble() {
    let Some(cloud) = Cloud::new() else { return };
    let accounts = accounts(&cloud, 4, &["us-east-1"]);
    let expired = accounts.iter().find(|account| **account != cloud.account).unwrap();
    cloud.rules(json!([{"match": {"account": expired}, "do": {"refuse": "expired_credentials"}}]));
    let report = observe(&cloud, &[]).succeeded().says(&["credentials"]).json();
    assert_eq!((with_status(&report, "unreached"), with_status(&report, "observed").len()), (vec![expired.clone()], 3));
    // A budget that is spent leaves the rest for the next time, and says so.
    cloud.rules(json!([]));
    let spent = observe(&cloud, &["--max-calls", "12"]).succeeded().says(&["budget"]).json();
    let calls: u64 = spent["accounts"].as_array().unwrap().iter().map(|one| one["calls"].as_u64().unwrap()).sum();
    assert!(calls <= 12, "{calls}");
}

#[test]
fn two_shares_side_by_side_fill_one_bucket_with_what_one_run_sees() {
    let Some(cloud) = Cloud::of_moto() else { return };
    let bucket = format!("fleet-{}", cloud.account);
    cloud.boto3(&["bucket", &bucket]);
    let accounts = accounts(&cloud, 8, &["eu-west-1", "us-east-1"]);
    let store = format!("s3://{bucket}/drift");
    let regions = ["--region", "eu-west-1,us-east-1"];
    let start = |shard: &str| {
        let arguments =
            ["-o", "json", "--store", &store, "observe", "all", "--accounts", "@accounts.txt", "--shard", shard];
        let mut command = cloud.command(arguments.iter().chain(&regions));
        command
            .env("JOB_COMPLETION_INDEX", "1")
            .env("DRIFTLINE_CACHE_DIR", cloud.sandbox.path(&shard.replace('/', "-")));
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let shares = ["1/2", "job/2"].map(start).map(|child| ran(&child.wait_with_output().unwrap()).succeeded().json());
    let [first, second] = &shares.clone().map(|report| with_status(&report, "observed"));
    assert_eq!(shares[1]["shard"], "2/2", "the index of a job counts from 0");
    let mut all: Vec<String> = first.iter().chain(second).cloned().collect();
    all.sort();
    assert_eq!(all, accounts, "each account is in exactly one share");
    assert!(!first.is_empty() && !second.is_empty());

    let log = cloud.run(["-o", "json", "--store", &store, "log", "--limit", "0"]).succeeded().json();
    observe(&cloud, &regions).succeeded();
    assert_eq!(digests(&log), digests(&cloud.sandbox.json(["log", "--limit", "0"])));
    assert_eq!(digests(&log).len(), 8 * 2 * 2);
    cloud.run(["--store", &store, "verify"]).succeeded();
    let fleet = cloud.run(["-o", "json", "--store", &store, "fleet", "--expect", "accounts.txt"]).succeeded().json();
    assert_eq!(fleet["summary"]["by"]["missing"], 0);
    assert_eq!(fleet["summary"]["rows"], 8);
}

#[test]
fn an_organization_is_kept_so_that_whoever_was_never_seen_is_missed() {
    let Some(cloud) = Cloud::of_another_moto() else { return };
    let ids = cloud.boto3(&["organization", "shop", "pay", "lab-one", "lab-two"]);
    let ids: Vec<&str> = ids.as_array().unwrap().iter().map(|id| id.as_str().unwrap()).collect();
    let labs = cloud.boto3(&["unit", "labs", ids[3], ids[4]]);
    let labs = labs.as_str().unwrap();
    cloud.sandbox.write(
        "driftline.toml",
        format!("[fleet]\naccounts = [\"org\"]\nexclude_accounts = [\"{labs}\"]\nrole_name = \"Reader\"\n{SOURCES}"),
    );
    cloud.proxy.forget_calls();
    cloud.rules(json!([{"match": {"operation": "AssumeRole"}, "when": {"calls": [1]}, "do": {"refuse": "deny"}}]));
    let report = cloud.run(["-o", "json", "observe", "all"]).succeeded().json();
    let unreached = with_status(&report, "unreached");
    assert_eq!((unreached.len(), with_status(&report, "observed").len()), (1, 2), "{report}");
    assert!(unreached[0] == ids[1] || unreached[0] == ids[2], "{unreached:?}");
    let fleet = cloud.run(["-o", "json", "fleet"]).succeeded().json();
    let missing = &fleet["accounts"][0];
    assert_eq!((&missing["account"], &missing["status"]), (&json!(unreached[0]), &json!("missing")));
    assert!(missing["name"] == "shop" || missing["name"] == "pay", "{missing}");
    assert_eq!(fleet["summary"]["rows"], 3, "those beneath the excluded unit are not expected");
    cloud.run(["fleet", "--fail-on", "missing"]).exited(2);

    // Only a unit, whatever is beneath it; and the same of one observer.
    cloud.rules(json!([]));
    // What is excluded in the file stays excluded, whatever the command line excludes besides.
    let only = ["observe", "all", "--accounts", labs, "--exclude-account", ids[4]];
    cloud.run(only).refused(&["nobody is left to look at: every account that is meant is excluded, too"]);
    let config = format!("[fleet]\naccounts = [\"org\"]\nrole_name = \"Reader\"\n{SOURCES}");
    cloud.sandbox.write("driftline.toml", config);
    cloud.run(only).succeeded();
    let streams = digests(&cloud.sandbox.json(["log", "--limit", "0"]));
    assert!(streams.keys().any(|stream| stream.contains(ids[3])), "{streams:?}");
    assert!(!streams.keys().any(|stream| stream.contains(ids[4])), "{streams:?}");
    assert!(streams.contains_key(&format!("organization@{}/{labs}", ids[0])), "{streams:?}");
    let other = cloud.sandbox.path("other");
    let one =
        ["observe", "inventory", "--types", "AWS::SQS::Queue", "--accounts", labs, "--store", other.to_str().unwrap()];
    cloud.run(one).succeeded();
    let streams = digests(&cloud.sandbox.json(["log", "--store", other.to_str().unwrap()]));
    assert_eq!(streams.len(), 2, "{streams:?}");
    // An account that is new is drift of the organization itself.
    cloud.run(["baseline", "set"]).succeeded();
    cloud.boto3(&["account", "new"]);
    cloud.run(["observe", "all"]).succeeded();
    let drift = cloud.drift();
    let new: Vec<&Json> =
        drift["resources"].as_array().unwrap().iter().filter(|one| one["status"] == "unknown").collect();
    assert!(new.iter().any(|one| one["resourceType"] == "AWS::Organizations::Account"), "{new:?}");
}

#[test]
fn that_nobody_could_be_entered_is_an_error_whoever_was_listed_and_whatever_is_known() {
    let Some(cloud) = Cloud::new() else { return };
    let accounts = accounts(&cloud, 3, &["us-east-1"]);
    let others: Vec<&str> = accounts.iter().map(String::as_str).filter(|one| *one != cloud.account).collect();
    organization(&cloud, &accounts);
    let refused = json!([{"match": {"operation": "AssumeRole"}, "do": {"refuse": "deny"}}]);
    let nobody = "nothing was observed: no account could be entered";
    let all = |more: &[&str]| cloud.run(["-o", "json", "observe", "all"].iter().chain(more));
    // The organization, for the first time: its list is kept, and nobody was seen.
    cloud.rules(refused.clone());
    let ran = all(&["--accounts", "org", "--exclude-account", &cloud.account]).exited(1).says(&[nobody]);
    assert_eq!(with_status(&ran.json(), "unreached"), others);
    let streams = digests(&cloud.sandbox.json(["log", "--limit", "0"]));
    assert_eq!(streams.into_keys().collect::<Vec<_>>(), [format!("organization@{}/global", cloud.account)]);
    // An account that is known: that it was not looked at is kept, too.
    cloud.rules(json!([]));
    all(&["--accounts", others[0]]).succeeded();
    cloud.run(["baseline", "set"]).succeeded();
    cloud.rules(refused);
    all(&["--accounts", others[0]]).exited(1).says(&[nobody, "what is known of them is not checked from now on"]);
    assert_eq!(ids_with(&cloud.drift(), "in_sync").len(), accounts.len(), "only the list is as it was");
    // Somebody is enough, and so is something that is in no account.
    all(&["--accounts", "org"]).succeeded();
    let plain =
        json!({"schema": "driftline.observation/v1", "source": "plain", "coverage": "complete", "resources": []});
    cloud.sandbox.write("plain.json", plain.to_string());
    let config = format!("{SOURCES}\n[[source]]\nname = \"plain\"\nfile = \"plain.json\"\n");
    cloud.sandbox.write("driftline.toml", config);
    all(&["--accounts", others[0]]).succeeded().says(&["account not entered"]);
}

#[test]
fn what_another_run_saw_later_is_left_as_it_is_and_a_clock_that_is_wrong_is_said() {
    let Some(cloud) = Cloud::new() else { return };
    let accounts = accounts(&cloud, 2, &["us-east-1"]);
    let scope = format!("{}/us-east-1", cloud.account);
    seen_later(&cloud, "inventory", &scope, 2);
    let overtaken = format!("inventory@{scope}");
    let ran = observe(&cloud, &["--strict"]).succeeded();
    let ran = ran.says(&["another run looked later and has committed; what this one saw of 1 stream is left out"]);
    let report = ran.json();
    assert_eq!((&report["overtaken"], with_status(&report, "observed")), (&json!([overtaken]), accounts));
    let versions = |stream: &str| {
        let log = cloud.sandbox.json(["log", "--limit", "0"]);
        log["versions"].as_array().unwrap().iter().filter(|one| one["source"] == stream).count()
    };
    assert_eq!((versions(&overtaken), versions(&format!("again@{scope}"))), (1, 1));
    // The same of one observer alone.
    let one = cloud.run(["observe", "inventory", "--types", "AWS::SQS::Queue"]).succeeded();
    one.says(&[&format!("{overtaken}: another run looked later")]);
    assert_eq!(versions(&overtaken), 1);
    // Nobody can have looked tomorrow. That is of a part of one source, and of nobody else's.
    seen_later(&cloud, "again", &scope, 24 * 60);
    let ran = observe(&cloud, &[]).exited(1).says(&[
        "error: a part of the source `again` was not observed",
        &format!("again@{scope} was not committed"),
        "check the observer's clock",
        "error: one part of a source was not observed; the others were committed",
    ]);
    assert!(!ran.err.contains("error: the source") && !ran.err.contains("`inventory`"), "{}", ran.err);
    assert_eq!(with_status(&ran.json(), "failed"), std::slice::from_ref(&cloud.account));
    // The list of accounts is of no source.
    organization(&cloud, std::slice::from_ref(&cloud.account));
    seen_later(&cloud, "organization", &format!("{}/global", cloud.account), 24 * 60);
    let config = SOURCES.replace("name = \"again\"", "name = \"more\"");
    cloud.sandbox.write("driftline.toml", config);
    let ran = cloud.run(["observe", "all", "--accounts", "org"]).exited(1);
    let ran = ran.says(&["error: the list of the organization's accounts was not kept"]);
    assert!(!ran.err.contains("of the source") && !ran.err.contains("error: the source"), "{}", ran.err);
}

#[test]
fn a_place_is_seen_at_the_time_at_which_looking_at_it_began() {
    let Some(cloud) = Cloud::new() else { return };
    let accounts = accounts(&cloud, 2, &["us-east-1"]);
    let other = accounts.iter().find(|account| **account != cloud.account).unwrap();
    let [own, other] = [&cloud.account, other].map(|account| format!("inventory@{account}/us-east-1"));
    let late = |operation: &str| json!({"match": {"operation": operation}, "do": {"slow": {"ms": 100}}});
    cloud.rules(json!([late("AssumeRole")]));
    observe(&cloud, &["--strict"]).succeeded();
    // Nothing holds up the own account, and a role the other.
    let seen = newest(&cloud, &other, "takenAt");
    assert!(newest(&cloud, &own, "takenAt") < seen, "{seen}");
    assert!(newest(&cloud, &other, "committedAt") >= seen, "{seen}");
    // That an account could not be entered is of when it was tried; the list is of when the run began.
    organization(&cloud, &accounts);
    cloud.rules(json!([
        late("GetCallerIdentity"),
        {"match": {"operation": "AssumeRole"}, "do": {"refuse": "deny"}},
    ]));
    cloud.run(["observe", "all", "--accounts", "org"]).succeeded();
    let began = newest(&cloud, &format!("organization@{}/global", cloud.account), "takenAt");
    let tried = newest(&cloud, &other, "takenAt");
    assert!(seen < began && began < tried, "{seen} {began} {tried}");
}
