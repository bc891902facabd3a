//! CloudTrail asked of AWS, read from a trail's bucket, and who changed something in a live account.

use std::io::Write;

use serde_json::{Value as Json, json};

use super::Cloud;

const FIXTURE: &str = include_str!("../../../../fake-aws/fixtures/cloudtrail.json");
const SINCE: [&str; 4] = ["--since", "2026-01-01T00:00:00Z", "--until", "2026-01-02T00:00:00Z"];

fn in_pages_of_two() -> String {
    FIXTURE.replace("\"max\": 50", "\"max\": 2")
}

fn observe(cloud: &Cloud, more: &[&str]) -> super::super::support::Ran {
    cloud.run(["observe", "cloudtrail"].iter().chain(&SINCE).chain(more))
}

/// The newest version of each stream: its name, how many events it has, and the spans of which all are known.
fn streams(cloud: &Cloud) -> Vec<(String, u64, Json)> {
    let log = cloud.sandbox.json(["log", "cloudtrail", "--limit", "1"]);
    let one = |version: &Json| {
        (
            version["source"].as_str().unwrap().to_owned(),
            version["resources"].as_u64().unwrap(),
            version["spans"].clone(),
        )
    };
    log["versions"].as_array().unwrap().iter().map(one).collect()
}

#[test]
fn events_are_asked_for_page_by_page_and_region_by_region() {
    let Some(cloud) = Cloud::new() else { return };
    cloud.fixture_file(&in_pages_of_two());
    observe(&cloud, &["--strict", "--region", "eu-west-1,us-east-1"]).succeeded();
    let day = json!([{"from": "2026-01-01T00:00:00Z", "to": "2026-01-02T00:00:00Z"}]);
    let stream = |region: &str| (format!("cloudtrail@{}/{region}", cloud.account), 3, day.clone());
    assert_eq!(streams(&cloud), [stream("eu-west-1"), stream("us-east-1")]);
    assert!(cloud.called()["cloudtrail:LookupEvents"] >= 4, "{:?}", cloud.called());
    // Again, and from files: nothing is there twice.
    observe(&cloud, &["--region", "us-east-1"]).succeeded().prints(&["3 events: 0 new"]);
    // Without a time it goes on where it ended.
    cloud.run(["observe", "cloudtrail", "--region", "us-east-1"]).succeeded().prints(&["3 events: 0 new"]);
    let (_, _, spans) = streams(&cloud).pop().unwrap();
    assert_eq!(spans.as_array().unwrap().len(), 1, "the spans meet: {spans}");
}

#[test]
fn a_trail_that_is_throttled_is_whole_and_one_that_is_denied_is_partial() {
    let Some(cloud) = Cloud::new() else { return };
    cloud.fixture_file(FIXTURE);
    cloud.rules(
        json!([{"match": {"service": "cloudtrail"}, "when": {"probability": 0.3}, "do": {"refuse": "throttle"}}]),
    );
    observe(&cloud, &["--strict"]).succeeded().prints(&["3 events"]);
    let cloud = cloud.with_new_folder();
    let denied = json!({"match": {"service": "cloudtrail", "region": "eu-west-1"}, "do": {"refuse": "deny"}});
    cloud.rules(json!([denied]));
    let ran = observe(&cloud, &["--strict", "--region", "eu-west-1,us-east-1"]).exited(3);
    ran.says(&["eu-west-1", "access denied: cloudtrail:LookupEvents is not allowed"]);
    let known: Vec<(u64, bool)> =
        streams(&cloud).into_iter().map(|(_, events, spans)| (events, spans == json!([]))).collect();
    assert_eq!(known, [(0, true), (3, false)], "of the denied region nothing is known");
    // Cut after the first page: what is newer than its end is known.
    let cloud = cloud.with_new_folder();
    cloud.fixture_file(&in_pages_of_two());
    let later =
        json!({"match": {"operation": "LookupEvents"}, "when": {"later_page": true}, "do": {"refuse": "bad_token"}});
    cloud.rules(json!([later]));
    observe(&cloud, &["--strict"]).exited(3);
    let (_, events, spans) = streams(&cloud).pop().unwrap();
    let known = json!([{"from": "2026-01-01T11:00:01Z", "to": "2026-01-02T00:00:00Z"}]);
    assert_eq!((events, spans), (2, known), "events come newest first");
}

#[test]
fn the_policy_and_the_plan_know_the_trail() {
    let Some(cloud) = Cloud::new() else { return };
    cloud.fixture_file(FIXTURE);
    let plan = cloud.run(["-o", "json", "observe", "cloudtrail", "--dry-run"]).succeeded().json();
    assert_eq!(cloud.calls_in_all(), 0);
    let actions = json!(["cloudtrail:LookupEvents", "sts:GetCallerIdentity"]);
    assert_eq!(plan["policy"]["Statement"][0]["Action"], actions);
    assert!(!cloud.sandbox.store().exists());
    cloud.run(["iam-policy", "cloudtrail"]).succeeded().prints(&["cloudtrail:LookupEvents"]);
    observe(&cloud, &["--types", "AWS::SQS::Queue"]).refused(&["has no listing of"]);
}

/// A log file as a trail writes it, packed.
fn log(cloud: &Cloud, region: &str, id: u32, at: &str, function: &str) -> Vec<u8> {
    let record = json!({
        "eventVersion": "1.11", "eventID": format!("00000000-0000-4000-8000-{id:012}"), "eventTime": at,
        "eventName": "UpdateFunctionConfiguration20150331v2", "eventSource": "lambda.amazonaws.com",
        "awsRegion": region, "recipientAccountId": cloud.account, "readOnly": false, "managementEvent": true,
        "userIdentity": {"type": "AssumedRole", "arn": format!("arn:aws:sts::{}:assumed-role/deploy/ci", cloud.account)},
        "userAgent": "APN/1.0 HashiCorp/1.0 Terraform/1.9.0", "requestParameters": {"functionName": function},
    });
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packer.write_all(json!({"Records": [record]}).to_string().as_bytes()).unwrap();
    packer.finish().unwrap()
}

#[test]
fn the_files_of_a_trail_are_read_from_its_bucket_by_day() {
    let Some(cloud) = Cloud::new() else { return };
    let bucket = format!("trail-{}", cloud.account);
    cloud.boto3_in("eu-west-1", &["bucket", &bucket]);
    let root = format!("org/AWSLogs/o-abc123/{}/CloudTrail", cloud.account);
    let mut upload = vec!["upload".to_owned(), bucket.clone()];
    for (id, region, day, at) in [
        (1, "us-east-1", "2026/01/01", "2026-01-01T10:00:00Z"),
        (2, "us-east-1", "2026/01/02", "2026-01-02T10:00:00Z"),
        (3, "us-east-1", "2025/12/01", "2025-12-01T10:00:00Z"),
        (4, "eu-west-1", "2026/01/01", "2026-01-01T11:00:00Z"),
    ] {
        let file = cloud.sandbox.write(&format!("{id}.json.gz"), log(&cloud, region, id, at, "orders"));
        upload.push(format!("{root}/{region}/{day}/{id}.json.gz"));
        upload.push(file.display().to_string());
    }
    // Beside them lies what is none of them.
    let junk = cloud.sandbox.write("junk", "junk").display().to_string();
    for key in ["org/AWSLogs/x/vpcflowlogs/a.json.gz", "org/readme.txt", "backup/AWSLogs/b.json"] {
        upload.extend([key.to_owned(), junk.clone()]);
    }
    upload.extend([format!("{root}-Digest/us-east-1/2026/01/01/d.json.gz"), junk]);
    let upload: Vec<&str> = upload.iter().map(String::as_str).collect();
    cloud.boto3_in("eu-west-1", &upload);
    cloud.proxy.forget_calls();
    let address = format!("s3://{bucket}/org");
    let read = ["observe", "cloudtrail", &address, "--since", "2026-01-01", "--until", "2026-01-03", "--strict"];
    cloud.run(read).succeeded().prints(&["eu-west-1 v1  1 event", "us-east-1 v1  2 events"]);
    let listed = cloud.called();
    assert_eq!(listed["s3:GetObject"], 3, "the day outside was not read: {listed:?}");
    let spans = json!([{"from": "2026-01-01T00:00:00Z", "to": "2026-01-03T00:00:00Z"}]);
    assert!(streams(&cloud).iter().all(|(_, _, known)| *known == spans), "{:?}", streams(&cloud));
    cloud.run(read).succeeded().prints(&["us-east-1 v2  2 events: 0 new"]);
    // One file that cannot be had: the others count, and nothing is vouched for.
    let cloud = cloud.with_new_folder();
    let refused = json!({"match": {"operation": "GetObject"}, "when": {"calls": [1]}, "do": {"refuse": "deny"}});
    cloud.rules(json!([refused]));
    cloud.run(read).exited(3).says(&["access denied: s3:GetObject is not allowed"]);
    assert!(streams(&cloud).iter().all(|(_, _, known)| *known == json!([])), "{:?}", streams(&cloud));
    cloud.rules(json!([]));
    cloud.run(["observe", "cloudtrail", &format!("s3://{bucket}/elsewhere")]).refused(&["no files of a trail"]);
}

#[test]
fn a_live_account_tells_who_changed_a_function() {
    let Some(cloud) = Cloud::new() else { return };
    let made = cloud.boto3(&["deploy"]);
    cloud.run(["observe", "inventory", "--types", "AWS::Lambda::Function"]).succeeded();
    cloud.run(["baseline", "set"]).succeeded();
    cloud.boto3(&["intervene", made["Group"].as_str().unwrap(), made["Queue"].as_str().unwrap()]);
    cloud.run(["observe", "inventory", "--types", "AWS::Lambda::Function"]).succeeded();
    let id = format!("arn:aws:lambda:us-east-1:{}:function:orders", cloud.account);
    let blame = cloud.sandbox.json(["blame", &id]);
    assert!(blame["changes"][0]["notes"].to_string().contains("about 15 minutes"), "{blame:#}");
    // What AWS would answer: no emulator records what is done to it.
    let at = blame["changes"][0]["from"].as_str().unwrap().to_owned();
    let event = json!({
        "eventVersion": "1.11", "eventID": "00000000-0000-4000-8000-000000000099", "eventTime": at,
        "eventName": "UpdateFunctionConfiguration20150331v2", "eventSource": "lambda.amazonaws.com",
        "awsRegion": "us-east-1", "recipientAccountId": cloud.account, "readOnly": false, "managementEvent": true,
        "userIdentity": {"type": "IAMUser", "arn": format!("arn:aws:iam::{}:user/bob", cloud.account)},
        "userAgent": "Boto3/1.34", "sourceIPAddress": "192.0.2.9", "requestParameters": {"functionName": "orders"},
    });
    let answer = json!({"Events": [{"EventId": "x", "EventTime": 1.0, "CloudTrailEvent": event.to_string()}]});
    cloud.fixtures(json!([{"match": {"service": "cloudtrail", "operation": "LookupEvents"}, "json": answer}]));
    let blame = cloud.run(["-o", "json", "blame", &id, "--live"]).succeeded().json();
    let act = &blame["changes"][0]["acts"][0];
    assert_eq!((&act["certainty"], &act["how"]), (&json!("certain"), &json!("boto3")), "{blame:#}");
    assert_eq!(act["who"], format!("arn:aws:iam::{}:user/bob", cloud.account));
    assert!(!cloud.sandbox.json(["log"]).to_string().contains("cloudtrail"), "nothing of it was stored");
    cloud.rules(json!([{"match": {"service": "cloudtrail"}, "do": {"refuse": "deny"}}]));
    let blame = cloud.run(["-o", "json", "blame", &id, "--live"]).succeeded().json();
    let notes = blame["changes"][0]["notes"].to_string();
    assert!(notes.contains("AWS itself could not be asked") && notes.contains("cloudtrail:LookupEvents"), "{notes}");
}
