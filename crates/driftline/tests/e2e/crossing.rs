//! Questions that go across sources: orphaned records, ownership, drift between two sources; and where documents
//! come from.

#[cfg(feature = "https")]
use std::io::{Read, Write};
#[cfg(feature = "https")]
use std::net::TcpListener;

use serde_json::{Value as Json, json};

use crate::support::Sandbox;

const ACCOUNT: &str = "123456789012";

/// Writes a document and observes it.
fn observe(sandbox: &Sandbox, model: &str, name: &str, document: &Json) {
    let file = format!("{}.json", name.replace('/', "-"));
    sandbox.write(&file, document.to_string());
    sandbox.run(["observe", model, &file, "--name", name, "--account", ACCOUNT]).succeeded();
}

fn scan(resources: &[(&str, &str)]) -> Json {
    let item = |(kind, arn): &(&str, &str)| json!({"arn": arn, "resourceType": kind, "region": "us-east-1", "accountId": ACCOUNT, "tags": {}});
    json!({
        "source": "resource-explorer", "sourceNote": "", "coverage": "full", "region": "us-east-1",
        "fetchedAt": "2026-06-29T10:00:00Z", "resources": resources.iter().map(item).collect::<Vec<_>>(),
        "summary": {}, "unmodeledTypes": [], "truncated": false,
    })
}

fn records(targets: &[(&str, &str, &str)]) -> Json {
    let record = |name: &str, kind: &str, value: &str| {
        json!({
            "zoneId": "Z1", "zoneName": "example.com", "name": name, "type": kind, "ttl": 300, "values": [value],
            "aliasTarget": null,
        })
    };
    let mut all = vec![record("example.com", "SOA", "ns-1.awsdns-01.org. x. 1 7200 900 1209600 86400")];
    all.extend(targets.iter().map(|(name, kind, value)| record(name, kind, value)));
    json!({"fetchedAt": "2026-06-29T10:00:00Z", "accountId": ACCOUNT, "truncated": false, "records": all, "summary": {}})
}

fn statuses(report: &Json) -> Vec<(String, String)> {
    let text = |one: &Json, name: &str| one[name].as_str().unwrap().to_owned();
    report["records"].as_array().unwrap().iter().map(|one| (text(one, "name"), text(one, "status"))).collect()
}

const DANGLING: &[(&str, &str, &str)] = &[
    ("gone.example.com", "CNAME", "ec2-nonexistent.compute-1.amazonaws.com"),
    ("address.example.com", "CNAME", "ec2-203-0-113-10.compute-1.amazonaws.com"),
    ("by-id.example.com", "CNAME", "i-0123456789abcdef0.us-east-1.compute.internal"),
    ("lb.example.com", "CNAME", "web-1234567890.us-east-1.elb.amazonaws.com"),
    ("there.example.com", "CNAME", "api-1234567890.us-east-1.elb.amazonaws.com"),
    ("site.example.com", "CNAME", "site.s3-website-us-east-1.amazonaws.com"),
    ("cdn.example.com", "CNAME", "d111.cloudfront.net"),
    ("far.example.com", "CNAME", "web-1.eu-west-1.elb.amazonaws.com"),
    ("else.example.com", "CNAME", "example.org"),
    ("private.example.com", "A", "10.1.2.3"),
];

#[test]
fn a_record_is_an_orphan_only_where_everything_that_could_be_its_target_was_listed() {
    let sandbox = Sandbox::new();
    observe(&sandbox, "dns", "dns", &records(DANGLING));
    // Nobody looked: nothing is known, and nothing is an orphan.
    let report = sandbox.json(["orphans"]);
    assert!(statuses(&report).iter().all(|(_, status)| status == "not_checked"), "{report:#}");
    observe(
        &sandbox,
        "inventory",
        "inventory",
        &scan(&[
            ("AWS::EC2::Instance", "arn:aws:ec2:us-east-1:123456789012:instance/i-0000000000000000a"),
            (
                "AWS::ElasticLoadBalancingV2::LoadBalancer",
                "arn:aws:elasticloadbalancing:us-east-1:123456789012:loadbalancer/app/api/50dc6c495c0c9188",
            ),
            ("AWS::S3::Bucket", "arn:aws:s3:::another"),
        ]),
    );
    let ran = sandbox.run(["-o", "json", "orphans"]).exited(2);
    let report = ran.json();
    let found = statuses(&report);
    let expected = [
        ("by-id.example.com", "orphan"),
        // No distribution at all is there.
        ("cdn.example.com", "orphan"),
        // The form of its name is that of no instance.
        ("gone.example.com", "orphan"),
        ("lb.example.com", "orphan"),
        ("site.example.com", "orphan"),
        // An instance is there whose address nobody observed.
        ("address.example.com", "possible"),
        ("far.example.com", "not_checked"),
        ("there.example.com", "found"),
    ];
    assert_eq!(found, expected.map(|(name, status)| (name.to_owned(), status.to_owned())));
    assert_eq!(report["summary"]["orphans"], 5);
    sandbox.run(["orphans"]).exited(2).prints(&["gone.example.com CNAME", "POSSIBLE 1", "NOT CHECKED 1"]);
    sandbox.run(["orphans", "--exit-zero"]).succeeded();
}

#[test]
fn a_truncated_scan_proves_no_orphan() {
    let sandbox = Sandbox::new();
    observe(&sandbox, "dns", "dns", &records(DANGLING));
    let mut cut = scan(&[("AWS::S3::Bucket", "arn:aws:s3:::another")]);
    cut["truncated"] = true.into();
    observe(&sandbox, "inventory", "inventory", &cut);
    let report = sandbox.json(["orphans"]);
    assert!(statuses(&report).iter().all(|(_, status)| status == "not_checked"), "{report:#}");
}

#[test]
fn a_listing_of_tagged_resources_proves_no_orphan() {
    let sandbox = Sandbox::new();
    observe(&sandbox, "dns", "dns", &records(DANGLING));
    let mut tagged = scan(&[("AWS::S3::Bucket", "arn:aws:s3:::another")]);
    tagged["source"] = "tag-api".into();
    tagged["coverage"] = "tagged-only".into();
    observe(&sandbox, "inventory", "inventory", &tagged);
    let report = sandbox.json(["orphans"]);
    assert!(statuses(&report).iter().all(|(_, status)| status == "not_checked"), "{report:#}");
}

fn discovery(cidr: &str) -> Json {
    json!({
        "region": "us-east-1", "truncated": false, "setupCommands": [], "workflowCommand": "", "summary": {},
        "discovered": {
            "vpcs": [
                {"vpcId": "vpc-1", "cidrBlock": cidr, "state": "available", "isDefault": false, "name": "main",
                 "tags": {"Name": "main", "aws:cloudformation:stack-name": "net"}},
                {"vpcId": "vpc-2", "cidrBlock": "10.9.0.0/16", "state": "available", "isDefault": true, "name": "",
                 "tags": {}},
            ],
            "securityGroups": [
                {"groupId": "sg-d", "groupName": "default", "vpcId": "vpc-1", "description": "default VPC security group",
                 "ingressRuleCount": 1, "egressRuleCount": 1, "tags": {}, "name": ""},
                {"groupId": "sg-x", "groupName": "by-hand", "vpcId": "vpc-1", "description": "made by hand",
                 "ingressRuleCount": 1, "egressRuleCount": 1, "tags": {}, "name": ""},
            ],
        },
    })
}

fn state() -> Json {
    let resource = |module: Json, kind: &str, name: &str, attributes: Json| {
        json!({
            "module": module, "mode": "managed", "type": kind, "name": name,
            "provider": "provider[\"registry.terraform.io/hashicorp/aws\"]",
            "instances": [{"schema_version": 1, "attributes": attributes, "sensitive_attributes": []}],
        })
    };
    let mut vpc = resource(
        json!("module.net"),
        "aws_vpc",
        "main",
        json!({"arn": "arn:aws:ec2:us-east-1:123456789012:vpc/vpc-1", "id": "vpc-1", "cidr_block": "10.0.0.0/16",
               "tags": {"Name": "main"}, "tags_all": {"Name": "main"}}),
    );
    let mut gone = resource(
        json!(null),
        "aws_security_group",
        "gone",
        json!({"arn": "arn:aws:ec2:us-east-1:123456789012:security-group/sg-gone", "id": "sg-gone", "name": "gone"}),
    );
    for one in [&mut vpc, &mut gone] {
        let members = one.as_object_mut().unwrap();
        if members["module"].is_null() {
            members.remove("module");
        }
    }
    json!({"version": 4, "terraform_version": "1.9.0", "serial": 3, "lineage": "x", "outputs": {}, "resources": [vpc, gone]})
}

#[test]
fn two_sources_meet_on_the_things_and_properties_they_share() {
    let sandbox = Sandbox::new();
    observe(&sandbox, "adopt", "adopt/prod", &discovery("10.0.0.0/16"));
    observe(&sandbox, "terraform", "terraform/network", &state());
    let across = ["--across", "terraform/network", "adopt/prod"];
    let report = sandbox.drift(across);
    let said = |report: &Json| -> Vec<(String, String)> {
        let text = |one: &Json, name: &str| one[name].as_str().unwrap().to_owned();
        let resources = report["resources"].as_array().unwrap();
        resources.iter().map(|one| (text(one, "canonicalId"), text(one, "status"))).collect()
    };
    let arn = |id: &str| format!("arn:aws:ec2:us-east-1:123456789012:{id}");
    let mut expected = vec![
        (arn("security-group/sg-d"), "unknown".to_owned()),
        (arn("security-group/sg-gone"), "drifted".to_owned()),
        (arn("security-group/sg-x"), "unknown".to_owned()),
        (arn("vpc/vpc-2"), "unknown".to_owned()),
    ];
    assert_eq!(said(&report), expected, "{report:#}");
    observe(&sandbox, "adopt", "adopt/prod", &discovery("10.0.0.0/24"));
    let report = sandbox.drift(across);
    expected.insert(3, (arn("vpc/vpc-1"), "drifted".to_owned()));
    assert_eq!(said(&report), expected, "{report:#}");
    let vpc = &report["resources"][3];
    let change = json!({
        "path": "/cidrBlock", "op": "replace", "baseline": "10.0.0.0/16", "current": "10.0.0.0/24", "severity": "medium",
    });
    assert_eq!(vpc["changes"], json!([change]));
    sandbox.run(["drift", "--across", "terraform/network", "terraform/network"]).refused(&["against itself"]);
    sandbox.run(["drift", "--across", "terraform/network", "nobody"]).refused(&["nobody"]);
}

#[test]
fn everything_observed_has_its_owners_or_is_unclaimed() {
    let sandbox = Sandbox::new();
    observe(&sandbox, "adopt", "adopt/prod", &discovery("10.0.0.0/16"));
    observe(&sandbox, "terraform", "terraform/network", &state());
    let report = sandbox.json(["ownership"]);
    let summary = &report["summary"];
    assert_eq!(
        [&summary["observed"], &summary["claimed"], &summary["children"], &summary["unclaimed"], &summary["missing"]],
        [&json!(4), &json!(1), &json!(1), &json!(2), &json!(1)],
        "{report:#}"
    );
    assert_eq!(summary["coverage"], 0.5);
    let vpc = report["resources"]
        .as_array()
        .unwrap()
        .iter()
        .find(|one| one["canonicalId"].as_str().unwrap().ends_with("vpc-1"));
    let claims = &vpc.unwrap()["claimedBy"];
    assert_eq!(claims[0]["by"], "cloudformation");
    assert_eq!(claims[0]["as"], "net");
    assert_eq!(claims[1]["as"], "module.net.aws_vpc.main");
    assert_eq!(claims[1]["module"], "module.net");
    sandbox.run(["ownership"]).succeeded().prints(&["UNCLAIMED 2", "MISSING 1", "50.0 %", "by more than one"]);
}

/// Serves one document, once for each connection.
#[cfg(feature = "https")]
fn serve(body: &'static str, times: usize) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming().take(times) {
            let mut stream = stream.unwrap();
            let mut request = [0; 4096];
            let read = stream.read(&mut request).unwrap();
            let allowed = String::from_utf8_lossy(&request[..read]).to_lowercase().contains("authorization: bearer x");
            let (status, body) = if allowed { ("200 OK", body) } else { ("401 Unauthorized", "") };
            write!(stream, "HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len())
                .unwrap();
        }
    });
    port
}

#[test]
#[cfg(feature = "https")]
fn a_document_is_read_from_an_address_and_a_refusal_says_what_to_do() {
    const DOCUMENT: &str = r#"{"region":"us-east-1","truncated":false,"discovered":{"vpcs":[{"vpcId":"vpc-1","cidrBlock":"10.0.0.0/16"}]}}"#;
    let sandbox = Sandbox::new();
    let port = serve(DOCUMENT, 2);
    let address = format!("http://127.0.0.1:{port}/adopt.json?signature=secret");
    let ran = sandbox.run(["observe", "adopt", &address]).refused(&["status 401", "DRIFTLINE_HTTP_AUTHORIZATION"]);
    assert!(!ran.err.contains("secret"), "{}", ran.err);
    sandbox.run_with(&[("DRIFTLINE_HTTP_AUTHORIZATION", "Bearer x")], ["observe", "adopt", &address]).succeeded();
    sandbox.run(["observe", "adopt", "http://example.com/x"]).refused(&["plain http"]);
    // Nobody of this machine may answer for AWS: there are no credentials, or there is no such feature.
    let alone = [("AWS_EC2_METADATA_DISABLED", "true"), ("AWS_REGION", "us-east-1"), ("HOME", "/nonexistent")];
    sandbox.run_with(&alone, ["observe", "adopt", "s3://bucket/key"]).refused(&["`s3://bucket/key`"]);
    sandbox.run(["observe", "adopt", "gs://bucket/key"]).refused(&["in a bucket"]);
    sandbox.run(["observe", "adopt", "nothing-*.json"]).refused(&["no file matches"]);
}

#[test]
fn a_type_that_changes_in_every_pass_is_flagged_as_noisy() {
    let sandbox = Sandbox::new();
    let thing =
        |kind: &str, id: &str, size: u32| json!({"canonicalId": id, "resourceType": kind, "snapshot": {"size": size}});
    for pass in 0..6 {
        let things = [thing("Calm", "a", 1), thing("Restless", "b", pass % 2), thing("Restless", "c", pass % 2)];
        sandbox.observe_things(pass, &things);
        if pass == 0 {
            sandbox.run(["baseline", "set"]).succeeded();
        }
    }
    let at = ["--at", "2026-01-01T23:59:00Z"];
    let velocity = sandbox.json(["velocity"].into_iter().chain(at));
    let noisy = &velocity["byResourceType"]["Restless"]["noisy"];
    assert_eq!([&noisy["passes"], &noisy["noisyPasses"]], [&json!(5), &json!(5)], "{velocity:#}");
    assert!(noisy["returnedRate"].as_f64().unwrap() > 0.7, "{noisy}");
    assert!(velocity["byResourceType"]["Calm"].get("noisy").is_none());
    sandbox.run(["velocity"].into_iter().chain(at)).succeeded().prints(&["Restless (noisy)", "doctor --determinism"]);
}

#[test]
fn a_normalizer_is_proved_deterministic_on_a_document() {
    let sandbox = Sandbox::new();
    sandbox.write("graph.json", discovery("10.0.0.0/16").to_string());
    let ran = sandbox.json(["doctor", "--determinism", "graph.json"]);
    assert_eq!([&ran["model"], &ran["resources"], &ran["deterministic"]], [&json!("adopt"), &json!(4), &json!(true)]);
    sandbox.write("nonsense.json", "{}");
    sandbox.run(["doctor", "--determinism", "nonsense.json"]).refused(&["no model understands"]);
    sandbox.run(["doctor", "--determinism", "nonsense.json", "--model", "dns"]).refused(&["neither `zones`"]);
}
