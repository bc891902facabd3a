//! CloudTrail from files, and who changed something.

use std::io::Write;

use serde_json::{Value as Json, json};

use crate::support::{Sandbox, counts, observation_of, thing_at};

const PLACE: &str = "aws/123456789012/us-east-1";
const FUNCTION: &str = "AWS::Lambda::Function";

fn arn(name: &str) -> String {
    format!("arn:aws:lambda:us-east-1:123456789012:function:{name}")
}

pub(crate) fn event(number: u32, minute: u32, name: &str, request: Json) -> Json {
    json!({
        "eventVersion": "1.11", "eventID": format!("00000000-0000-4000-8000-{number:012}"),
        "eventTime": crate::support::minute(minute), "eventName": name, "eventSource": "lambda.amazonaws.com",
        "awsRegion": "us-east-1", "recipientAccountId": "123456789012", "readOnly": false, "managementEvent": true,
        "sourceIPAddress": "192.0.2.7", "userAgent": "aws-cli/2.15.0",
        "userIdentity": {"type": "IAMUser", "arn": "arn:aws:iam::123456789012:user/alice", "accountId": "123456789012"},
        "requestParameters": request,
    })
}

pub(crate) fn file(events: &[Json]) -> String {
    json!({ "Records": events }).to_string()
}

fn packed(text: &str) -> Vec<u8> {
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packer.write_all(text.as_bytes()).unwrap();
    packer.finish().unwrap()
}

/// Three functions at minute 0; at minute 60 one has another timeout, one is gone, and one is new.
fn changed() -> Sandbox {
    let sandbox = Sandbox::new();
    let function = |name: &str, timeout: u32| thing_at(FUNCTION, PLACE, &arn(name), json!({"timeout": timeout}));
    let whole = || json!([{"type": FUNCTION, "place": PLACE, "outcome": "complete"}]);
    sandbox
        .observe(&observation_of("inventory", 0, whole(), &[function("checkout", 3), function("reports", 3)]))
        .succeeded();
    sandbox.run(["baseline", "set"]).succeeded();
    sandbox
        .observe(&observation_of("inventory", 60, whole(), &[function("checkout", 30), function("fresh", 3)]))
        .succeeded();
    sandbox
}

fn acts(blame: &Json) -> Vec<(String, String, String)> {
    let text = |value: &Json| value.as_str().unwrap_or_default().to_owned();
    let acts = blame["changes"].as_array().unwrap().iter().flat_map(|change| change["acts"].as_array().unwrap());
    acts.map(|act| (text(&act["certainty"]), text(&act["what"]), text(&act["how"]))).collect()
}

#[test]
fn each_kind_of_change_is_joined_with_what_was_done_in_its_window() {
    let sandbox = changed();
    let events = [
        event(1, 30, "UpdateFunctionConfiguration20150331v2", json!({"functionName": "checkout"})),
        event(2, 31, "DeleteFunction20150331", json!({"functionName": arn("reports")})),
        event(3, 32, "CreateFunction20150331", json!({"functionName": "fresh"})),
        // After the window, refused, and of a thing that is only called the same.
        event(4, 5 * 60, "UpdateFunctionConfiguration20150331v2", json!({"functionName": "checkout"})),
        {
            let mut refused =
                event(5, 20, "UpdateFunctionConfiguration20150331v2", json!({"functionName": "checkout"}));
            refused["errorCode"] = json!("AccessDenied");
            refused
        },
        {
            let mut other = event(6, 21, "CreateTopic", json!({"name": "checkout"}));
            other["eventSource"] = json!("sns.amazonaws.com");
            other
        },
    ];
    sandbox.write("logs/one.json.gz", packed(&file(&events[..3])));
    sandbox.write("logs/deeper/two.json", file(&events[2..]));
    sandbox.write("logs/CloudTrail-Digest/three.json.gz", b"not a log file");
    let ran = sandbox.run([
        "observe",
        "cloudtrail",
        "logs",
        "--since",
        "2026-01-01T00:00:00Z",
        "--until",
        "2026-01-03T00:00:00Z",
        "--whole",
    ]);
    ran.succeeded().prints(&["cloudtrail@123456789012/us-east-1 v1  6 events"]).says(&["7 records in 2 files"]);

    let update = "UpdateFunctionConfiguration20150331v2 (lambda)";
    let told = |certainty: &str, what: &str| (certainty.to_owned(), what.to_owned(), "the AWS CLI".to_owned());
    let blame = sandbox.json(["blame", "checkout"]);
    assert_eq!(acts(&blame), [told("certain", update), told("refused", update)], "{blame:#}");
    let change = &blame["changes"][0];
    assert_eq!((&change["from"], &change["to"]), (&json!("2026-01-01T00:00:00Z"), &json!("2026-01-01T01:00:00Z")));
    assert_eq!(change["changes"][0]["path"], "/timeout");
    assert_eq!(change["notes"], json!([]), "everything of that time is known");
    let gone = sandbox.json(["blame", "reports"]);
    assert_eq!(
        (acts(&gone), &gone["changes"][0]["what"]),
        (vec![told("certain", "DeleteFunction20150331 (lambda)")], &json!("deleted"))
    );
    let fresh = sandbox.json(["blame", "fresh"]);
    assert_eq!(
        (acts(&fresh), &fresh["changes"][0]["what"]),
        (vec![told("certain", "CreateFunction20150331 (lambda)")], &json!("new"))
    );
    sandbox.run(["blame", "checkout"]).succeeded().prints(&[
        "modified between v1 at 2026-01-01T00:00:00Z and v2",
        "user/alice",
        "from 192.0.2.7",
        "refused with AccessDenied",
    ]);
    sandbox.run(["blame", "checkout", "-o", "markdown"]).succeeded().prints(&["### Who changed", "| certain |"]);
}

#[test]
fn events_change_no_answer_about_drift() {
    let sandbox = changed();
    let answers = |sandbox: &Sandbox| -> Vec<Json> {
        let mut drift = sandbox.drift(["--all"]);
        drift["computedAt"] = Json::Null;
        vec![drift, sandbox.json(["velocity", "--at", "2026-01-02"]), sandbox.json(["ownership"])]
    };
    let before = answers(&sandbox);
    sandbox
        .write("log.json", file(&[event(1, 30, "UpdateFunctionConfiguration", json!({"functionName": "checkout"}))]));
    sandbox.run(["observe", "cloudtrail", "log.json"]).succeeded();
    assert_eq!(answers(&sandbox), before);
    assert_eq!(counts(&before[0]), [2, 1, 0, 0]);
    // A baseline of everything does not pin them, and one of them alone is refused.
    sandbox.run(["baseline", "set"]).succeeded();
    let pinned = sandbox.json(["baseline", "show"]).to_string();
    assert!(pinned.contains("inventory") && !pinned.contains("cloudtrail"), "{pinned}");
    for refused in [vec!["baseline", "set", "--source", "cloudtrail"], vec!["drift", "--source", "cloudtrail"]] {
        sandbox.run(refused).refused(&["`cloudtrail` holds events, and not the state of things"]);
    }
    sandbox.run(["doctor"]).succeeded().prints(&["cloudtrail@123456789012/us-east-1", "1 event"]);
    let log = sandbox.json(["log", "cloudtrail"]);
    assert_eq!((&log["versions"][0]["nature"], &log["versions"][0]["resources"]), (&json!("events"), &json!(1)));
    sandbox.run(["verify"]).succeeded();
}

#[test]
fn what_is_told_twice_or_not_again_is_there_once() {
    let sandbox = Sandbox::new();
    let events: Vec<Json> = (0..4).map(|n| event(n, n, "CreateFunction", json!({"functionName": "f"}))).collect();
    let looked: Vec<Json> = events.iter().map(|one| json!({"CloudTrailEvent": one.to_string()})).collect();
    sandbox.write("a.json", file(&events[..2]));
    sandbox.write("b.json", file(&events[1..3]));
    sandbox.write("looked.json", json!({ "Events": looked[2..] }).to_string());
    sandbox.run(["observe", "cloudtrail", "a.json"]).succeeded().prints(&["v1  2 events"]);
    sandbox.run(["observe", "cloudtrail", "b.json", "looked.json"]).succeeded().prints(&["v2  4 events: 2 new"]);
    sandbox.run(["observe", "cloudtrail", "?.json"]).succeeded().prints(&["v3  4 events: 0 new"]);
    // And the same from the configuration.
    let config = "[[source]]\nname = \"cloudtrail\"\nmodel = \"cloudtrail\"\ndocuments = [\"*.json\"]\n";
    sandbox.write("driftline.toml", config);
    sandbox.run(["observe", "all"]).succeeded().prints(&["v4  4 events: 0 new"]);
}

#[test]
fn what_is_not_known_of_a_window_is_said_with_what_to_do() {
    let sandbox = changed();
    let note = |sandbox: &Sandbox| sandbox.json(["blame", "checkout"])["changes"][0]["notes"].to_string();
    assert!(note(&sandbox).contains("no events of 123456789012/us-east-1 are stored"), "{}", note(&sandbox));
    let other = event(2, 10, "TagResource", json!({"resource": arn("other")}));
    let update = event(1, 30, "UpdateFunctionConfiguration", json!({"functionName": "checkout"}));
    sandbox.write("log.json", file(&[other, update]));
    sandbox.run(["observe", "cloudtrail", "log.json"]).succeeded();
    let told = note(&sandbox);
    assert!(told.contains("not every event of 123456789012/us-east-1 from 2026-01-01T00:00:00Z"), "{told}");
    assert_eq!(acts(&sandbox.json(["blame", "checkout"])).len(), 1, "what is known is told all the same");
    let whole = ["observe", "cloudtrail", "log.json", "--whole", "--since", "2026-01-01", "--until"];
    sandbox.run(whole.iter().chain(&["2026-01-01T00:20:00Z"])).succeeded();
    assert!(note(&sandbox).contains("from 2026-01-01T00:20:00Z to 2026-01-01T01:00:00Z"), "{}", note(&sandbox));
    sandbox.run(whole.iter().chain(&["2026-01-02"])).succeeded();
    assert_eq!(note(&sandbox), "[]");
    // Nobody did what nobody is known to have done.
    let gone = sandbox.json(["blame", "reports"])["changes"][0]["notes"].to_string();
    assert!(gone.contains("every write of that time is known, and none names it"), "{gone}");
}

#[test]
fn nasty_log_files_are_refused_or_told_and_lose_nothing() {
    let sandbox = Sandbox::new();
    sandbox.write("bomb.json.gz", packed(&" ".repeat(300 << 20)));
    sandbox.run(["observe", "cloudtrail", "bomb.json.gz"]).refused(&["unpacks to more than", "nothing was committed"]);
    for (name, bytes) in [
        ("cut.json.gz", &packed("{}")[..8]),
        ("list.json", b"[]"),
        ("other.json", b"{}"),
        ("latin.json", b"{\"\xff\":1}"),
    ] {
        sandbox.write(name, bytes);
        sandbox.run(["observe", "cloudtrail", name]).refused(&[name]);
    }
    assert!(!sandbox.store().exists());
    sandbox.run(["observe", "cloudtrail", "nowhere"]).refused(&["nowhere"]);
    sandbox.write("logs/good.json", file(&[event(1, 1, "CreateFunction", json!({"functionName": "f"}))]));
    sandbox.write("logs/bad.json", "{\"Records\":[{\"eventID\":\"hunter2\"}]}");
    sandbox.write("logs/worse.json.gz", b"\x1f\x8bhunter2");
    let ran = sandbox.run(["observe", "cloudtrail", "logs", "--strict"]).exited(3);
    let ran = ran.prints(&["1 event"]).says(&["logs/bad.json: 1 record could not be understood", "logs/worse.json.gz"]);
    assert!(!ran.err.contains("hunter2"), "{}", ran.err);
    sandbox.run(["verify"]).succeeded();
}

#[test]
fn retention_forgets_old_events() {
    let sandbox = changed();
    sandbox
        .write("log.json", file(&[event(1, 30, "UpdateFunctionConfiguration", json!({"functionName": "checkout"}))]));
    sandbox.run(["observe", "cloudtrail", "log.json"]).succeeded();
    sandbox.run(["gc", "--keep", "1d", "--dry-run"]).succeeded().prints(&["would forget 1 event"]);
    assert_eq!(acts(&sandbox.json(["blame", "checkout"])).len(), 1);
    sandbox.run(["gc", "--keep", "1d", "--grace", "0s"]).succeeded().prints(&["forgot 1 event"]);
    assert_eq!(acts(&sandbox.json(["blame", "checkout"])).len(), 0);
    for (path, bytes) in crate::support::files(&sandbox.store()) {
        let held = path.starts_with("data/") && bytes.windows(5).any(|part| part == b"alice");
        assert!(!held, "{path} still has it");
    }
    sandbox.run(["verify"]).succeeded();
}

#[test]
fn a_field_of_a_cluster_is_blamed_on_its_manager() {
    let sandbox = Sandbox::new();
    let deployment = |replicas: u32, image: &str, managers: Json| {
        json!({"apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "web", "namespace": "shop", "managedFields": managers},
            "spec": {"replicas": replicas, "template": {"spec": {"containers": [{"name": "web", "image": image}]}}}})
        .to_string()
    };
    let manager = |name: &str, time: &str, fields: Json| json!({"manager": name, "operation": "Update", "time": time, "fieldsType": "FieldsV1", "fieldsV1": fields});
    let image =
        json!({"f:spec": {"f:template": {"f:spec": {"f:containers": {"k:{\"name\":\"web\"}": {"f:image": {}}}}}}});
    let replicas = json!({"f:spec": {"f:replicas": {}}});
    let helm = manager("helm", "2026-01-01T00:00:00Z", image);
    sandbox.write("a.json", deployment(2, "web:1", json!([helm])));
    let hand = manager("kubectl-scale", "2026-01-01T00:30:00Z", replicas.clone());
    sandbox.write("b.json", deployment(5, "web:1", json!([helm, hand])));
    let later = manager("kubectl-scale", "2026-01-01T02:30:00Z", replicas);
    sandbox.write("c.json", deployment(5, "web:1", json!([helm, later])));
    let observe = |name: &str, at: &str| {
        let file = sandbox.path(name).display().to_string();
        let about = ["--cluster", "prod", "-A", "--taken-at", at];
        sandbox.run(["observe", "kubernetes", &file].iter().chain(&about)).succeeded();
    };
    observe("a.json", "2026-01-01T00:10:00Z");
    sandbox.run(["baseline", "set"]).succeeded();
    observe("b.json", "2026-01-01T01:00:00Z");
    let blame = sandbox.json(["blame", "web"]);
    let told = ("certain".to_owned(), "Update".to_owned(), "kubectl scale".to_owned());
    assert_eq!(acts(&blame), [told], "{blame:#}");
    assert_eq!(blame["changes"][0]["acts"][0]["who"], "the field manager kubectl-scale");
    assert_eq!(blame["changes"][0]["changes"].as_array().unwrap().len(), 1, "managers themselves are no change");
    // Who wrote last is no drift, and no change to be blamed on anybody.
    observe("c.json", "2026-01-01T03:00:00Z");
    assert_eq!(sandbox.json(["blame", "web"])["changes"].as_array().unwrap().len(), 1);
}

#[test]
fn an_address_in_a_bucket_without_a_bucket_is_refused() {
    let sandbox = Sandbox::new();
    sandbox.run(["observe", "terraform", "s3:///x"]).refused(&["s3:///x"]);
    sandbox.run(["observe", "terraform", "gs://bucket/x"]).refused(&["cannot be read"]);
}
