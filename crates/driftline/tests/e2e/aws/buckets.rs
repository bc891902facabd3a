//! Documents in buckets: an object, everything beneath a prefix, or what a pattern matches.

use std::io::Write;

use serde_json::json;

use super::Cloud;

fn state(cidr: &str, account: &str) -> String {
    json!({"version": 4, "serial": 1, "lineage": "l", "terraform_version": "1.9.0", "outputs": {}, "resources": [{
        "mode": "managed", "type": "aws_vpc", "name": cidr.split('.').nth(1).unwrap(),
        "provider": "provider[\"registry.terraform.io/hashicorp/aws\"]",
        "instances": [{"attributes": {
            "id": format!("vpc-{}", cidr.split('.').nth(1).unwrap()), "cidr_block": cidr,
            "arn": format!("arn:aws:ec2:us-east-1:{account}:vpc/vpc-{}", cidr.split('.').nth(1).unwrap()),
        }}],
    }]})
    .to_string()
}

#[test]
fn states_are_read_from_a_bucket_wherever_it_is() {
    let Some(cloud) = Cloud::new() else { return };
    let bucket = format!("states-{}", cloud.account);
    // The bucket is not in the region that is configured.
    cloud.boto3_in("eu-west-1", &["bucket", &bucket]);
    let one = cloud.sandbox.write("one", state("10.1.0.0/16", &cloud.account)).display().to_string();
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packer.write_all(state("10.2.0.0/16", &cloud.account).as_bytes()).unwrap();
    let two = cloud.sandbox.write("two", packer.finish().unwrap()).display().to_string();
    let keys = ["env/a b+c.tfstate", "env/deep/two.tfstate", "env/", "environment.txt"];
    let pairs = [keys[0], &one, keys[1], &two, keys[2], "/dev/null", keys[3], &one];
    cloud.boto3_in("eu-west-1", &["upload", &bucket].iter().chain(&pairs).copied().collect::<Vec<_>>());
    let observe =
        |key: &str, name: &str| cloud.run(["observe", "terraform", &format!("s3://{bucket}/{key}"), "--name", name]);
    observe(keys[0], "t/object").succeeded().prints(&["t/object v1  1 resource"]);
    observe("env/", "t/prefix").succeeded().prints(&["t/prefix v1  2 resources"]);
    observe("env", "t/folder").succeeded().prints(&["t/folder v1  2 resources"]);
    observe("env/*.tfstate", "t/pattern").succeeded().prints(&["t/pattern v1  1 resource"]);
    observe("nothing", "t/nothing").refused(&["nothing", "there is no such object, and nothing beneath it"]);
    let none = ["observe", "terraform", "s3://no-such-bucket-of-ours/x"];
    cloud.run(none).refused(&["s3://no-such-bucket-of-ours/x", "NoSuchBucket"]);
    cloud.rules(json!([{"match": {"service": "s3"}, "do": {"refuse": "deny"}}]));
    observe(keys[0], "t/denied").refused(&["s3:GetObject"]);
    observe("env/", "t/denied").refused(&["s3:ListBucket"]);
    // A refusal that passes does not lose anything.
    cloud.rules(json!([{"match": {"service": "s3"}, "when": {"calls": [1, 2]}, "do": {"refuse": "throttle"}}]));
    observe("env/", "t/again").succeeded();
}

#[test]
fn a_bucket_in_another_region_is_asked_there() {
    let Some(cloud) = Cloud::new() else { return };
    let there: serde_json::Value = serde_json::from_str(&state("10.1.0.0/16", &cloud.account)).unwrap();
    // Both ways in which S3 says so; no emulator does.
    for (status, code) in [(301, "PermanentRedirect"), (400, "AuthorizationHeaderMalformed")] {
        cloud.fixtures(json!([
            {"match": {"service": "s3", "operation": "GetObject", "region": "us-east-1"},
             "error": {"code": code, "status": status, "message": "it is elsewhere", "region": "eu-central-1"}},
            {"match": {"service": "s3", "operation": "GetObject", "region": "eu-central-1"}, "json": there},
        ]));
        cloud.proxy.forget_calls();
        cloud.run(["observe", "terraform", "s3://somewhere/x.tfstate"]).succeeded().prints(&["1 resource"]);
        assert_eq!(cloud.calls_in_all(), 2, "{code}: asked once here and once there");
    }
    // It says that it is in a third place: nobody is sent around for ever.
    let elsewhere = |here: &str, there: &str| {
        json!({"match": {"service": "s3", "region": here},
            "error": {"code": "PermanentRedirect", "status": 301, "message": "elsewhere", "region": there}})
    };
    cloud.fixtures(json!([elsewhere("us-east-1", "eu-central-1"), elsewhere("eu-central-1", "us-east-1")]));
    cloud.run(["observe", "terraform", "s3://somewhere/x.tfstate"]).refused(&["PermanentRedirect"]);
}
