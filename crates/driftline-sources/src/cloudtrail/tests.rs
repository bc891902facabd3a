#![expect(clippy::unwrap_used, reason = "tests")]
#![expect(clippy::needless_pass_by_value, reason = "`json!` makes values to be given away")]

use std::collections::BTreeMap;

use driftline_core::{Nature, Outcome, Span, Value};
use serde_json::{Value as Json, json};

use super::{Asked, EVENT, Event, Known, Trail, Whose};
use crate::normalize::testing::{extent, keys, normalize, properties};
use crate::normalize::{Listing, Model};

const SECRETS: [&str; 7] =
    ["hunter2", "eyJhbGciOi", "AKIAIOSFODNN7EXAMPLE", "tag-secret", "env-secret", "FwoGZXIvYXdz", "sk_live_51"];

fn record(id: &str) -> Json {
    json!({
        "eventVersion": "1.11", "eventID": id, "eventTime": "2026-01-01T10:00:00Z", "eventName": "CreateSecurityGroup",
        "eventSource": "ec2.amazonaws.com", "awsRegion": "us-east-1", "recipientAccountId": "123456789012",
        "readOnly": false, "managementEvent": true, "eventType": "AwsApiCall",
        "sourceIPAddress": "192.0.2.1", "userAgent": "APN/1.0 HashiCorp/1.0 Terraform/1.9.0 aws-sdk-go-v2/1.30",
        "userIdentity": {
            "type": "AssumedRole", "arn": "arn:aws:sts::123456789012:assumed-role/deploy/alice",
            "principalId": "AROA:alice", "accountId": "123456789012", "accessKeyId": "AKIAIOSFODNN7EXAMPLE",
            "sessionContext": {"sessionIssuer": {"type": "Role", "arn": "arn:aws:iam::123456789012:role/deploy"}},
        },
        "requestParameters": {
            "groupName": "web", "groupDescription": "hunter2 is here", "vpcId": "vpc-0123456789abcdef0",
            "masterUserPassword": "hunter2", "clientToken": "eyJhbGciOi",
            "environment": {"variables": {"dbName": "env-secret"}}, "STRIPE_ID": "sk_live_51",
            "tagSpecificationSet": {"items": [{"tags": [{"key": "id", "name": "tag-secret"}]}]},
            "nested": [{"targets": {"note": "arn:aws:sqs:us-east-1:123456789012:orders"}}],
        },
        "responseElements": {
            "requestId": "ffffffff-1111-2222-3333-444444444444", "groupId": "sg-0123456789abcdef0",
            "credentials": {"sessionToken": "FwoGZXIvYXdz", "accessKeyId": "AKIAIOSFODNN7EXAMPLE"},
        },
        "resources": [{"ARN": "arn:aws:s3:::logs", "type": "AWS::S3::Bucket"}],
    })
}

fn with(id: &str, members: Json) -> Json {
    let mut record = record(id);
    for (name, value) in members.as_object().unwrap() {
        record[name] = value.clone();
    }
    record
}

fn file(records: &[Json]) -> String {
    json!({ "Records": records }).to_string()
}

fn looked(records: &[Json]) -> String {
    let events: Vec<Json> = records
        .iter()
        .map(|one| json!({"EventId": one["eventID"], "EventTime": 1.0, "CloudTrailEvent": one.to_string()}))
        .collect();
    json!({ "Events": events, "NextToken": "t" }).to_string()
}

fn read(texts: &[&str], asked: Asked) -> (Vec<Listing>, super::Counts) {
    let mut trail = Trail::new(asked);
    for text in texts {
        trail.document("a file", text.as_bytes()).unwrap();
    }
    let counts = trail.counts();
    (trail.listings(&BTreeMap::new()).unwrap(), counts)
}

#[test]
fn of_an_event_is_kept_who_did_what_to_what_and_no_secret() {
    let listings = normalize(Model::CloudTrail, &[&file(&[record("a")])]).unwrap();
    assert_eq!(keys(&listings[0]), ["CloudTrail::Event aws/123456789012/us-east-1 2026-01-01T10:00:00Z/a"]);
    assert_eq!(listings[0].scope.as_ref().unwrap().to_string(), "123456789012/us-east-1");
    assert_eq!(listings[0].nature, Nature::Events(Vec::new()));
    let kept = properties(&listings[0], "/a");
    let text = kept.to_json();
    for secret in SECRETS {
        assert!(!text.contains(secret), "{secret} is in {text}");
    }
    let mentions: Vec<(&str, &str)> = kept
        .get("mentions")
        .and_then(Value::as_object)
        .unwrap()
        .iter()
        .map(|(value, member)| (value.as_str(), member.as_str().unwrap()))
        .collect();
    let expected = [
        ("arn:aws:sqs:us-east-1:123456789012:orders", "note"),
        ("sg-0123456789abcdef0", "groupId"),
        ("vpc-0123456789abcdef0", "vpcId"),
        ("web", "groupName"),
    ];
    assert_eq!(mentions, expected);
    let event = Event::of(&kept).unwrap();
    assert_eq!(event.who, "arn:aws:sts::123456789012:assumed-role/deploy/alice");
    assert_eq!((event.service.as_str(), event.how().as_deref()), ("ec2", Some("Terraform")));
    assert_eq!(event.resources, ["arn:aws:s3:::logs"]);
    assert!(text.contains(r#""accessKey":"MPLE""#) && !text.contains("hunter2"), "{text}");
}

#[test]
fn one_event_told_by_files_and_by_a_lookup_is_one_event() {
    let (a, b) = (record("a"), record("b"));
    let texts = [file(&[a.clone(), b.clone()]), looked(&[b.clone(), a.clone()]), format!("{a}\n{b}\n"), a.to_string()];
    let all: Vec<&str> = texts.iter().map(String::as_str).collect();
    let (listings, counts) = read(&all, Asked::default());
    assert_eq!((listings[0].resources.len(), counts.records, counts.again), (2, 7, 5));
    for text in &texts[..3] {
        assert_eq!(read(&[text], Asked::default()).0, listings, "{text:.40}");
    }
    // Told differently, the order does not decide.
    let fuller = with("a", json!({"errorCode": "Client.UnauthorizedOperation"}));
    let (one, other) = (file(&[a.clone(), fuller.clone()]), file(&[fuller, a]));
    assert_eq!(read(&[&one], Asked::default()).0, read(&[&other], Asked::default()).0);
}

#[test]
fn each_account_and_region_is_a_stream_of_its_own() {
    let texts = file(&[
        record("a"),
        with("b", json!({"awsRegion": "eu-west-1"})),
        with("c", json!({"recipientAccountId": "210987654321"})),
    ]);
    let (listings, _) = read(&[&texts], Asked::default());
    let scopes: Vec<String> = listings.iter().map(|one| one.scope.as_ref().unwrap().to_string()).collect();
    assert_eq!(scopes, ["123456789012/eu-west-1", "123456789012/us-east-1", "210987654321/us-east-1"]);
    assert!(extent(&listings[0], EVENT, "aws/123456789012/eu-west-1").contains("do not say whether they are all"));
}

#[test]
fn what_only_reads_or_is_no_management_is_left_out_unless_asked_for() {
    let bare = |id: &str, name: &str| {
        let mut one = with(id, json!({"eventName": name}));
        one.as_object_mut().unwrap().remove("readOnly");
        one
    };
    let text = file(&[
        with("read", json!({"readOnly": true})),
        with("said", json!({"readOnly": "true"})),
        bare("old", "DescribeVpcs"),
        bare("written", "DeleteVpc"),
        with("data", json!({"managementEvent": false})),
        with("insight", json!({"managementEvent": null, "eventCategory": "Insight"})),
        with("failed", json!({"errorCode": "AccessDenied"})),
        with("early", json!({"eventTime": "2025-12-31T00:00:00Z"})),
    ]);
    let span = |from: &str, to: &str| Span { from: from.parse().unwrap(), to: to.parse().unwrap() };
    let within = Some(span("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"));
    let (listings, counts) = read(&[&text], Asked { within, reads: false });
    assert_eq!((counts.reads, counts.data, counts.outside), (3, 2, 1));
    let ids: Vec<String> = listings[0].resources.keys().map(|key| key.id.split('/').nth(1).unwrap().into()).collect();
    assert_eq!(ids, ["failed", "written"]);
    assert_eq!(Event::of(&properties(&listings[0], "failed")).unwrap().error.as_deref(), Some("AccessDenied"));
    let (all, _) = read(&[&text], Asked { within: None, reads: true });
    assert_eq!(all[0].resources.len(), 6);
}

#[test]
fn records_that_cannot_be_understood_are_told_and_take_back_what_was_vouched_for() {
    let mut nasty = vec![record("a")];
    for (nth, (member, value)) in [
        ("eventID", json!("../../x")),
        ("eventTime", json!("yesterday")),
        ("awsRegion", json!("../etc")),
        ("recipientAccountId", json!("12")),
        ("eventName", json!(7)),
        ("eventSource", json!(null)),
    ]
    .into_iter()
    .enumerate()
    {
        nasty.push(with(&format!("n{nth}"), json!({ member: value })));
    }
    nasty.push(json!("text"));
    nasty.push(json!([1, 2]));
    let mut trail = Trail::new(Asked::default());
    trail.document("bad.json", file(&nasty).as_bytes()).unwrap();
    let whose = Whose { account: "123456789012".into(), region: "us-east-1".into() };
    let spans =
        vec![Span { from: "2026-01-01T00:00:00Z".parse().unwrap(), to: "2026-01-02T00:00:00Z".parse().unwrap() }];
    let known = BTreeMap::from([(whose, Known { outcome: Outcome::Complete, spans })]);
    let listing = trail.listings(&known).unwrap().remove(0);
    assert_eq!((listing.resources.len(), listing.nature.clone()), (1, Nature::Events(Vec::new())));
    assert!(extent(&listing, EVENT, "aws/123456789012/us-east-1").starts_with("8 records could not be understood"));
    assert_eq!(listing.problems.len(), 1);
    for bad in ["[]", "", "{}", "nonsense", "{\"Records\":3}", "{\"Records\":[", "\u{0}"] {
        assert!(Trail::new(Asked::default()).document("x", bad.as_bytes()).is_err(), "{bad:?}");
    }
    let error = normalize(Model::CloudTrail, &[r#"{"Records":[{"eventID":"hunter2"}]}"#]).unwrap_err().to_string();
    assert!(error.contains("none of its 1 records") && !error.contains("hunter2"), "{error}");
}

#[test]
fn what_an_event_names_is_bounded() {
    let many: Vec<String> = (0..500).map(|n| format!("i-{n:017x}")).collect();
    let long = "x".repeat(100_000);
    let text = file(&[with(
        "a",
        json!({"requestParameters": {"instanceIds": many, "name": long}, "userAgent": long, "errorCode": long}),
    )]);
    let (listings, _) = read(&[&text], Asked::default());
    let kept = properties(&listings[0], "/a");
    assert_eq!(kept.get("mentions").and_then(Value::as_object).unwrap().len(), 64);
    assert_eq!(kept.get("moreMentions"), Some(&Value::from(437_u64)));
    assert!(kept.to_json().len() < 6000, "{}", kept.to_json().len());
}

#[test]
fn how_it_was_done_is_told_in_a_few_words() {
    for (members, how) in [
        (json!({"userAgent": "aws-cli/2.15.0 Python/3.11 botocore/2"}), "the AWS CLI"),
        (json!({"userAgent": "Boto3/1.34 md/Botocore#1.34"}), "boto3"),
        (json!({"userAgent": "aws-sdk-go-v2/1.30 os/linux"}), "an AWS SDK"),
        (json!({"userAgent": "[S3Console/0.4]"}), "the console"),
        (json!({"userAgent": "Mozilla/5.0", "sessionCredentialFromConsole": "true"}), "the console"),
        (json!({"userAgent": "console.amazonaws.com"}), "the console"),
        (json!({"userAgent": "curl/8.0"}), "curl/8.0"),
        (
            json!({"sourceIPAddress": "cloudformation.amazonaws.com", "userAgent": "cloudformation.amazonaws.com"}),
            "CloudFormation, on their behalf",
        ),
        (json!({"sourceIPAddress": "autoscaling.amazonaws.com"}), "the service autoscaling, on their behalf"),
    ] {
        let (listings, _) = read(&[&file(&[with("a", members.clone())])], Asked::default());
        assert_eq!(Event::of(&properties(&listings[0], "/a")).unwrap().how().as_deref(), Some(how), "{members}");
    }
    let root = with("a", json!({"userIdentity": {"type": "AWSService", "invokedBy": "eks.amazonaws.com"}}));
    let (listings, _) = read(&[&file(&[root])], Asked::default());
    assert_eq!(Event::of(&properties(&listings[0], "/a")).unwrap().who, "eks.amazonaws.com");
}
