#![expect(clippy::unwrap_used, reason = "tests")]

use driftline_core::seal::{SealKey, seal};
use driftline_core::{Outcome, Pattern, Pointer};
use proptest::prelude::*;

use super::*;
use crate::normalize::Model;

fn context() -> Context {
    Context { source: "terraform/net".parse().unwrap(), account: None, partition: "aws".into() }
}

fn read_all(texts: &[&str]) -> Result<Vec<Listing>, NormalizeError> {
    let documents: Vec<Document<'_>> =
        texts.iter().map(|text| Document { name: "doc", bytes: text.as_bytes(), written_at: None }).collect();
    Model::Terraform.normalize(&documents, &context())
}

fn listing(text: &str) -> Listing {
    read_all(&[text]).unwrap().swap_remove(0)
}

/// A state file with these resources in it.
fn state(resources: &str) -> String {
    format!(
        r#"{{"version":4,"terraform_version":"1.11.4","serial":9,"lineage":"l","outputs":{{}},"resources":[{resources}]}}"#
    )
}

/// One resource of the AWS provider, as a state file has it.
fn resource(kind: &str, name: &str, attributes: &str) -> String {
    format!(
        r#"{{"mode":"managed","type":"{kind}","name":"{name}","provider":"provider[\"registry.terraform.io/hashicorp/aws\"]",
            "instances":[{{"schema_version":0,"attributes":{attributes},"sensitive_attributes":[],"private":"bnVsbA=="}}]}}"#
    )
}

fn keys(listing: &Listing) -> Vec<String> {
    listing.resources.keys().map(|key| format!("{} {} {}", key.kind, key.place, key.id)).collect()
}

fn problems(listing: &Listing) -> Vec<String> {
    listing.problems.iter().map(|problem| format!("{}: {}", problem.about, problem.message)).collect()
}

fn properties(listing: &Listing, id: &str) -> Value {
    let (_, found) = listing.resources.iter().find(|(key, _)| key.id == id).unwrap();
    found.properties.to_value()
}

fn is_sealed(listing: &Listing, id: &str, place: &str) -> bool {
    let (_, found) = listing.resources.iter().find(|(key, _)| key.id == id).unwrap();
    let place: Pointer = place.parse().unwrap();
    assert!(place.find(&found.properties.to_value()).is_some(), "nothing is at {place}");
    found.sensitive.iter().any(|pattern| pattern.covers(&place))
}

fn partial(listing: &Listing) -> Option<String> {
    listing.coverage.iter().find_map(|(_, _, outcome)| match outcome {
        Outcome::Partial { reason } => Some(reason.clone()),
        Outcome::Complete => None,
    })
}

const BUCKET: &str = r#"{"id":"b","bucket":"b","arn":"arn:aws:s3:::b","region":"eu-west-1"}"#;
const VPC: &str = r#"{"id":"vpc-1","arn":"arn:aws:ec2:eu-west-1:123456789012:vpc/vpc-1"}"#;

#[test]
fn terraforms_bucket_is_the_observed_bucket() {
    let text = state(&[resource("aws_s3_bucket", "b", BUCKET), resource("aws_vpc", "v", VPC)].join(","));
    let seen = crate::aws::resource_key(
        "AWS::S3::Bucket",
        "b",
        crate::aws::Whereabouts { partition: "aws", account: Some("123456789012"), region: Some("us-east-1") },
    );
    assert!(listing(&text).resources.contains_key(&seen), "{:?}", keys(&listing(&text)));
}

#[test]
fn each_kind_of_naming_makes_the_key_that_others_make() {
    let here = |rest: &str| format!("aws/123456789012/{rest}");
    for (kind, attributes, place, expected, id) in [
        (
            "aws_default_vpc",
            r#"{"id":"vpc-2","arn":"arn:aws:ec2:eu-west-1:123456789012:vpc/vpc-2"}"#,
            here("eu-west-1"),
            "AWS::EC2::VPC",
            "arn:aws:ec2:eu-west-1:123456789012:vpc/vpc-2",
        ),
        // No ARN of its own: built where its neighbours are.
        (
            "aws_nat_gateway",
            r#"{"id":"nat-1"}"#,
            here("eu-west-1"),
            "AWS::EC2::NatGateway",
            "arn:aws:ec2:eu-west-1:123456789012:natgateway/nat-1",
        ),
        (
            "aws_ebs_volume",
            r#"{"id":"vol-1","availability_zone":"us-west-2-lax-1a"}"#,
            here("us-west-2"),
            "AWS::EC2::Volume",
            "arn:aws:ec2:us-west-2:123456789012:volume/vol-1",
        ),
        (
            "aws_cloudwatch_log_group",
            r#"{"id":"/a","name":"/a","arn":"arn:aws:logs:eu-west-1:123456789012:log-group:/a:*"}"#,
            here("eu-west-1"),
            "AWS::Logs::LogGroup",
            "arn:aws:logs:eu-west-1:123456789012:log-group:/a",
        ),
        (
            "aws_ecs_service",
            r#"{"id":"arn:aws:ecs:eu-west-1:123456789012:service/c/s","name":"s"}"#,
            here("eu-west-1"),
            "AWS::ECS::Service",
            "arn:aws:ecs:eu-west-1:123456789012:service/c/s",
        ),
        (
            "aws_api_gateway_resource",
            r#"{"id":"r1","rest_api_id":"api"}"#,
            here("eu-west-1"),
            "AWS::ApiGateway::Resource",
            "api|r1",
        ),
        (
            "aws_route53_zone",
            r#"{"id":"Z1","zone_id":"Z1"}"#,
            here("global"),
            "AWS::Route53::HostedZone",
            "arn:aws:route53:::hostedzone/Z1",
        ),
        (
            "aws_route53_record",
            r#"{"id":"Z1_w_A","zone_id":"Z1","name":"w","fqdn":"W.Example.com.","type":"A","set_identifier":""}"#,
            here("global/Z1"),
            "AWS::Route53::RecordSet",
            "Z1/w.example.com/A",
        ),
        (
            "aws_route53_record",
            r#"{"id":"x","zone_id":"Z1","name":"\\052.example.com","type":"A","set_identifier":"blue"}"#,
            here("global/Z1"),
            "AWS::Route53::RecordSet",
            "Z1/*.example.com/A/blue",
        ),
        ("aws_s3_bucket_policy", r#"{"id":"b","bucket":"b"}"#, here("global"), "aws_s3_bucket_policy", "b"),
        (
            "aws_lambda_permission",
            r#"{"id":"Allow","function_name":"f","qualifier":""}"#,
            here("eu-west-1"),
            "aws_lambda_permission",
            "f/Allow",
        ),
        ("random_pet", r#"{"id":"cat"}"#, "terraform/net".to_owned(), "random_pet", "random_pet.x"),
    ] {
        let text = state(&[resource(kind, "x", attributes), resource("aws_vpc", "v", VPC)].join(","));
        let listing = listing(&text);
        let expected = format!("{expected} {place} {id}");
        assert!(keys(&listing).contains(&expected), "{kind}: {:?}", keys(&listing));
        assert_eq!(problems(&listing), [""; 0], "{kind}");
    }
}

#[test]
fn a_type_without_mapping_is_a_visible_problem() {
    let three = ["a", "b", "c"].map(|name| resource("aws_new_thing", name, r#"{"id":"x"}"#)).join(",");
    let listing = listing(&state(&three));
    assert_eq!(keys(&listing)[0], "aws_new_thing terraform/net aws_new_thing.a");
    assert_eq!(
        problems(&listing),
        ["aws_new_thing: no mapping for this type: 3 resources are followed by their Terraform address and cannot \
          meet what other sources saw"]
    );
}

#[test]
fn an_account_or_a_region_is_not_guessed_when_neighbours_disagree() {
    let nat = resource("aws_nat_gateway", "n", r#"{"id":"nat-1"}"#);
    let other = resource("aws_vpc", "w", r#"{"id":"vpc-2","arn":"arn:aws:ec2:us-east-1:123456789012:vpc/vpc-2"}"#);
    let listing = listing(&state(&[nat.clone(), resource("aws_vpc", "v", VPC), other.clone()].join(",")));
    assert!(
        keys(&listing).contains(&"AWS::EC2::NatGateway aws/123456789012/- nat-1".to_owned()),
        "{:?}",
        keys(&listing)
    );
    assert!(problems(&listing)[0].starts_with("aws_nat_gateway: the account or the region is not known"));
    // Another configuration of the provider has no say.
    let aliased = other.replace(r#"aws\"]""#, r#"aws\"].east""#);
    let listing = super::tests::listing(&state(&[nat, resource("aws_vpc", "v", VPC), aliased].join(",")));
    assert!(keys(&listing).iter().any(|key| key.ends_with(":natgateway/nat-1")), "{:?}", keys(&listing));
    assert_eq!(
        properties(&listing, "arn:aws:ec2:us-east-1:123456789012:vpc/vpc-2").get(ABOUT).unwrap().to_json(),
        r#"{"address":"aws_vpc.w","alias":"east","module":null,"provider":"registry.terraform.io/hashicorp/aws","type":"aws_vpc"}"#
    );
}

#[test]
fn the_context_tells_the_account_that_nothing_else_tells() {
    let text = state(&resource("aws_s3_bucket", "b", BUCKET));
    let document = Document { name: "doc", bytes: text.as_bytes(), written_at: None };
    let told = Context { account: Some("999999999999".into()), ..context() };
    let listing = Model::Terraform.normalize(&[document], &told).unwrap().swap_remove(0);
    assert_eq!(keys(&listing), ["AWS::S3::Bucket aws/999999999999/global arn:aws:s3:::b"]);
    assert_eq!(problems(&listing), [""; 0]);
    // A bucket's ARN is all there is, and still it is nobody's.
    let untold = super::tests::listing(&text);
    assert_eq!(keys(&untold), ["AWS::S3::Bucket aws/-/global arn:aws:s3:::b"]);
    assert!(problems(&untold)[0].starts_with("aws_s3_bucket: the account or the region is not known: 1 resource is"));
}

/// What Terraform 1.11.4 wrote for these, cut down.
const DATA_STATE: &str = r#"{"mode":"managed","type":"terraform_data","name":"c",
    "provider":"provider[\"terraform.io/builtin/terraform\"]","instances":[{"index_key":0,"schema_version":0,
    "attributes":{"id":"1","input":{"value":{"a":[1,"s3cr3t",{"k/*":"deep"}],"n":0},"type":["object",{"a":["tuple",
    ["number","string",["object",{"k/*":"string"}]]],"n":"number"}]},"output":{"value":{"a":[1,"s3cr3t",{"k/*":"deep"}],
    "n":0},"type":["object",{"a":["tuple",["number","string",["object",{"k/*":"string"}]]],"n":"number"}]},
    "triggers_replace":null},"sensitive_attributes":[[{"type":"get_attr","value":"input"},{"type":"get_attr","value":"a"},
    {"type":"index","value":{"value":1,"type":"number"}}],[{"type":"get_attr","value":"input"},{"type":"get_attr",
    "value":"a"},{"type":"index","value":{"value":2,"type":"number"}},{"type":"get_attr","value":"k/*"}]]}]},
    {"module":"module.net[\"%%{b}\"].module.in","mode":"managed","type":"terraform_data","name":"one",
    "provider":"provider[\"terraform.io/builtin/terraform\"]","instances":[{"index_key":"é\"${x}","status":"tainted",
    "schema_version":0,"attributes":{"id":"2","input":{"value":"x","type":"string"},"output":{"value":"x","type":"string"},
    "triggers_replace":null},"sensitive_attributes":[]}]},
    {"mode":"data","type":"terraform_remote_state","name":"r","provider":"provider[\"terraform.io/builtin/terraform\"]",
    "instances":[{"schema_version":0,"attributes":{}}]}"#;

const DATA_SHOWN: &str = r#"{"format_version":"1.0","terraform_version":"1.11.4","values":{"outputs":{},"root_module":{
    "resources":[{"address":"terraform_data.c[0]","mode":"managed","type":"terraform_data","name":"c","index":0,
    "provider_name":"terraform.io/builtin/terraform","schema_version":0,"values":{"id":"1","input":{"a":[1,"s3cr3t",
    {"k/*":"deep"}],"n":0},"output":{"a":[1,"s3cr3t",{"k/*":"deep"}],"n":0},"triggers_replace":null},"sensitive_values":
    {"input":{"a":[false,true,{"k/*":true}]},"output":{"a":[false,false,{}]}}},{"address":"data.terraform_remote_state.r",
    "mode":"data","type":"terraform_remote_state","name":"r","provider_name":"terraform.io/builtin/terraform",
    "values":{}}],"child_modules":[{"address":"module.net[\"%%{b}\"]","child_modules":[{"resources":[{
    "address":"module.net[\"%%{b}\"].module.in.terraform_data.one[\"é\\\"$${x}\"]","mode":"managed","type":"terraform_data",
    "name":"one","index":"é\"${x}","provider_name":"terraform.io/builtin/terraform","schema_version":0,"values":{"id":"2",
    "input":"x","output":"x","triggers_replace":null},"sensitive_values":{},"tainted":true}],
    "address":"module.net[\"%%{b}\"].module.in"}]}]}}}"#;

#[test]
fn a_state_file_and_what_terraform_shows_of_it_are_one_listing() {
    let (file, shown) = (listing(&state(DATA_STATE)), listing(DATA_SHOWN));
    assert_eq!(file, shown);
    assert_eq!(file.items, 2, "a data source is no item");
    assert_eq!(file.coverage.basis(), Some("terraform state"));
    assert!(file.coverage.is_complete("anything", "anywhere"));
    assert_eq!(
        keys(&file),
        [
            r#"terraform_data terraform/net module.net["%%{b}"].module.in.terraform_data.one["é\"$${x}"]"#,
            "terraform_data terraform/net terraform_data.c[0]",
        ]
    );
    let one = properties(&file, r#"module.net["%%{b}"].module.in.terraform_data.one["é\"$${x}"]"#);
    assert_eq!(one.get("input"), Some(&Value::from("x")));
    assert_eq!(
        one.get(ABOUT).unwrap().to_json(),
        r#"{"address":"module.net[\"%%{b}\"].module.in.terraform_data.one[\"é\\\"$${x}\"]","#.to_owned()
            + r#""module":"module.net[\"%%{b}\"].module.in","provider":"terraform.io/builtin/terraform","#
            + r#""tainted":true,"type":"terraform_data"}"#
    );
}

#[test]
fn marked_values_are_named_to_be_sealed_and_nothing_else_is() {
    for text in [state(DATA_STATE), DATA_SHOWN.to_owned()] {
        let listing = listing(&text);
        for (place, sealed) in [
            ("/input/a/1", true),
            ("/input/a/2/k~1*", true),
            // Terraform does not mark what it repeats, and prints it.
            ("/output/a/1", true),
            ("/output/a/2/k~1*", true),
            ("/input/a/0", false),
            ("/input/n", false),
            ("/id", false),
            ("/$terraform/address", false),
        ] {
            assert_eq!(is_sealed(&listing, "terraform_data.c[0]", place), sealed, "{place}");
        }
    }
}

#[test]
fn no_secret_survives_sealing() {
    let key = SealKey::new([7; 32]);
    let secrets = ["s3cr3t", "deep", "\"old\"", "\"new\"", "t0ken"];
    let swamp = TF_RESOURCE.replace("\"t\"", "\"t0ken\"");
    for text in [&state(DATA_STATE), DATA_SHOWN, PLAN, &swamp] {
        assert!(secrets.iter().any(|secret| text.contains(secret)));
        for found in read_all(&[text]).unwrap().iter().flat_map(|listing| listing.resources.values()) {
            let mut properties = found.properties.to_value();
            seal(&mut properties, &found.sensitive.iter().collect::<Vec<_>>(), &key);
            let json = properties.to_json();
            assert!(!secrets.iter().any(|secret| json.contains(secret)), "{json}");
        }
    }
}

#[test]
fn a_mark_that_is_not_understood_seals_the_whole_resource() {
    let odd = resource("aws_vpc", "v", VPC)
        .replace(r#""sensitive_attributes":[]"#, r#""sensitive_attributes":[[{"type":"new"}]]"#);
    let listing = listing(&state(&odd));
    let id = "arn:aws:ec2:eu-west-1:123456789012:vpc/vpc-1";
    assert!(is_sealed(&listing, id, "/id") && is_sealed(&listing, id, "/arn"));
    assert!(!is_sealed(&listing, id, "/$terraform/address"));
    assert!(problems(&listing)[0].contains("all of it is sealed"));
}

#[test]
fn secrets_that_an_old_terraform_did_not_mark_are_sealed_all_the_same() {
    for (kind, attributes, place) in [
        ("aws_db_instance", r#"{"id":"d","identifier":"d","password":"p"}"#, "/password"),
        (
            "aws_ssm_parameter",
            r#"{"id":"d","value":"p","arn":"arn:aws:ssm:eu-west-1:123456789012:parameter/d"}"#,
            "/value",
        ),
        ("aws_mq_broker", r#"{"id":"d","user":[{"password":"p"}]}"#, "/user/0/password"),
        ("random_password", r#"{"result":"p"}"#, "/result"),
        ("aws_new_thing", r#"{"settings":[{"admin_password":"p"}]}"#, "/settings/0/admin_password"),
    ] {
        let listing = listing(&state(&resource(kind, "x", attributes)));
        let id = listing.resources.keys().next().unwrap().id.clone();
        assert!(is_sealed(&listing, &id, place), "{kind}");
    }
    // Terraform 0.11 kept leaves only, and versions before 0.14 no marks at all.
    let flat = resource(
        "aws_lambda_function",
        "f",
        r#"{"environment.0.variables.K":"v","function_name":"f","db_password":"p"}"#,
    )
    .replace("\"attributes\"", "\"attributes_flat\"")
    .replace(r#""sensitive_attributes":[],"#, "");
    let listing = listing(&state(&flat));
    let id = listing.resources.keys().next().unwrap().id.clone();
    assert!(is_sealed(&listing, &id, "/environment.0.variables.K") && is_sealed(&listing, &id, "/db_password"));
    assert!(!is_sealed(&listing, &id, "/function_name"));
}

#[test]
fn a_thing_imported_twice_is_kept_once_and_the_other_address_is_told() {
    let (a, b) = (resource("aws_vpc", "a", VPC), resource("aws_vpc", "b", VPC));
    let one = listing(&state(&format!("{a},{b}")));
    assert_eq!(one, listing(&state(&format!("{b},{a}"))));
    assert_eq!(keys(&one).len(), 1);
    let id = "arn:aws:ec2:eu-west-1:123456789012:vpc/vpc-1";
    assert_eq!(properties(&one, id).get(ABOUT).unwrap().get("address"), Some(&Value::from("aws_vpc.a")));
    assert_eq!(problems(&one), [format!("aws_vpc.a: {id} is also `aws_vpc.b`; only the first is kept")]);
}

#[test]
fn a_problem_stays_short_however_many_it_is_about() {
    let many: Vec<String> = (10..99).map(|at| resource("aws_vpc", &format!("v{at}"), VPC)).collect();
    let told = problems(&listing(&state(&many.join(","))));
    assert!(
        told[0].ends_with("`aws_vpc.v11`, `aws_vpc.v12`, `aws_vpc.v13` and 85 more; only the first is kept"),
        "{told:?}"
    );
}

#[test]
fn states_of_one_source_are_one_listing() {
    let (a, b) = (state(&resource("aws_vpc", "v", VPC)), state(&resource("random_pet", "b", r#"{"id":"cat"}"#)));
    let both = read_all(&[&a, &b, &a]).unwrap();
    assert_eq!(both.len(), 1);
    assert_eq!(both[0].resources.len(), 2);
    assert_eq!(problems(&both[0]), [""; 0], "the same thing twice is no problem");
    assert_eq!(both, read_all(&[&b, &a, &a]).unwrap());

    let other = state(&resource("aws_vpc", "v", &VPC.replace("\"id\"", "\"new\":1,\"id\"")));
    let differing = read_all(&[&a, &other]).unwrap();
    assert_eq!(differing, read_all(&[&other, &a]).unwrap());
    assert!(problems(&differing[0])[0].starts_with("aws_vpc.v: several documents have it"));
}

#[test]
fn what_is_left_out_is_not_taken_for_gone() {
    let text = state(&[resource("aws_vpc", "a", "[1]"), resource("aws_vpc", "v", VPC)].join(","));
    let listing = listing(&text);
    assert_eq!((listing.items, listing.resources.len()), (2, 1));
    assert_eq!(partial(&listing).as_deref(), Some("some resources could not be read"));
    assert_eq!(problems(&listing), ["aws_vpc.a: its attributes are not an object; it is left out"]);
    assert!(read_all(&[&state(&resource("aws_vpc", "a", "[1]"))]).is_err(), "nothing was understood");
}

#[test]
fn a_deposed_object_is_a_thing_of_its_own() {
    let deposed = r#","deposed":"00ab","#;
    let one = resource("aws_new_thing", "v", VPC).replace(r#","attributes""#, &format!("{deposed}\"attributes\""));
    let listing = listing(&state(&[one, resource("aws_new_thing", "v", VPC)].join(",")));
    assert_eq!(
        listing.resources.keys().map(|key| key.id.as_str()).collect::<Vec<_>>(),
        ["aws_new_thing.v", "aws_new_thing.v (deposed 00ab)"]
    );
    let about = properties(&listing, "aws_new_thing.v (deposed 00ab)");
    assert_eq!(about.get(ABOUT).unwrap().get("deposed"), Some(&Value::from("00ab")));
    assert_eq!(about.get(ABOUT).unwrap().get("address"), Some(&Value::from("aws_new_thing.v")));
}

#[test]
fn an_empty_state_is_an_empty_listing() {
    for text in [
        state(""),
        r#"{"format_version":"1.0"}"#.to_owned(),
        r#"{"format_version":"0.2","terraform_version":"1.0.0"}"#.to_owned(),
    ] {
        let listing = listing(&text);
        assert!(listing.resources.is_empty() && listing.coverage.is_complete("a", "b"), "{text}");
    }
}

#[test]
fn what_is_no_terraform_document_is_refused_with_what_it_looks_like() {
    for (text, message) in [
        (r#"{"version":3,"serial":1,"modules":[]}"#, "it is a state of version 3; version 4 is read"),
        (r#"{"version":5,"serial":1,"resources":[]}"#, "it is a state of version 5, newer than version 4"),
        (r#"{"version":"4","resources":[]}"#, "its `version` is not a whole number"),
        (r#"{"version":4,"serial":1}"#, "it is a state of version 4 without `resources`"),
        (r#"{"format_version":"2.0","values":{}}"#, "its format version is `2.0`; 0 and 1 are known"),
        (r#"{"format_version":1}"#, "its `format_version` is not a text"),
        (
            r#"{"format_version":"1.0","provider_schemas":{}}"#,
            "it is a JSON object with members such as `format_version`, `provider_schemas`, and nothing that Terraform \
             or swamp writes",
        ),
        ("{}", "it is a JSON object with no members, and nothing that Terraform or swamp writes"),
        ("[]", "it is not a JSON object"),
        (r#"{"meta":{},"encrypted_data":"x"}"#, "it is an encrypted state"),
        (r#"{"value":1,"type":"number","sensitive":false}"#, "there are outputs here, and no resources"),
        ("PK\u{3}\u{4}", "it is a saved plan in Terraform's own form"),
    ] {
        let error = read_all(&[text]).unwrap_err();
        assert_eq!(error.message, message, "{text}");
    }
    let bad_index = state(DATA_STATE).replace(r#""index_key":0"#, r#""index_key":true"#);
    assert_eq!(
        read_all(&[&bad_index]).unwrap_err().message,
        "an index of `terraform_data.c` is neither number nor text"
    );
    let secret = state(&resource("aws_vpc", "v", r#"{"password":"hunter2""#));
    assert!(!read_all(&[&secret]).unwrap_err().to_string().contains("hunter2"));
}

const TF_RESOURCE: &str = r#"{"address":"ADDRESS","mode":"managed","type":"aws_vpc","name":"v",
    "providerName":"registry.terraform.io/hashicorp/aws","values":{"id":"ID",
    "arn":"arn:aws:ec2:eu-west-1:123456789012:vpc/ID","api_token":"t"},"dependsOn":[]}"#;

fn tf_resource(address: &str, id: &str) -> String {
    TF_RESOURCE.replace("ADDRESS", address).replace("ID", id)
}

#[test]
fn swamps_resources_without_an_inventory_prove_no_absence() {
    let resources =
        read_all(&[&tf_resource("aws_vpc.a", "vpc-1"), &tf_resource("module.m.aws_vpc.b", "vpc-2")]).unwrap();
    assert_eq!(resources[0].resources.len(), 2);
    assert_eq!(partial(&resources[0]).as_deref(), Some("no tf_inventory tells which of these still exist"));
    let id = "arn:aws:ec2:eu-west-1:123456789012:vpc/vpc-1";
    assert!(is_sealed(&resources[0], id, "/api_token"), "nothing is marked, so names are taken at their word");
    assert!(problems(&resources[0])[0].starts_with("tf_resource: these documents do not mark what is sensitive"));
}

#[test]
fn what_the_last_run_did_not_find_is_a_leftover() {
    let inventory = r#"{"terraformVersion":"1.9","resourceCount":2,"resources":[{"address":"aws_vpc.a","type":"aws_vpc",
        "name":"a","providerName":"p","module":null},{"address":"data.aws_region.r","type":"aws_region","name":"r",
        "providerName":"p","module":null}]}"#;
    let (a, b) = (tf_resource("aws_vpc.a", "vpc-1"), tf_resource("aws_vpc.b", "vpc-2"));
    let data = r#"{"address":"data.aws_region.r","mode":"data","type":"aws_region","name":"r","providerName":"p","values":{}}"#;
    let output = r#"{"value":"x","type":"string","sensitive":false}"#;
    let listings = read_all(&[&a, &b, data, output, inventory]).unwrap();
    assert_eq!(listings.len(), 1);
    assert_eq!(listings[0].resources.len(), 1);
    assert_eq!(partial(&listings[0]), None);
    assert!(problems(&listings[0])[0].starts_with("aws_vpc.b: the last run did not find it"));
    assert_eq!(listings, read_all(&[inventory, output, data, &b, &a]).unwrap());

    let missing = read_all(&[inventory, &b]).unwrap();
    assert_eq!(partial(&missing[0]).as_deref(), Some("1 of the addresses in tf_inventory have no tf_resource"));
    let empty = read_all(&[r#"{"terraformVersion":"1.9","resourceCount":0,"resources":[]}"#]).unwrap();
    assert!(empty[0].resources.is_empty() && partial(&empty[0]).is_none());
}

#[test]
fn an_inventory_says_nothing_of_what_was_written_after_it() {
    let inventory = r#"{"terraformVersion":"1.9","resourceCount":0,"resources":[]}"#;
    let later = tf_resource("aws_vpc.a", "vpc-1");
    let at = |text: &str| Some(text.parse().unwrap());
    let documents = [
        Document { name: "i", bytes: inventory.as_bytes(), written_at: at("2026-01-01T00:00:00Z") },
        Document { name: "r", bytes: later.as_bytes(), written_at: at("2026-01-02T00:00:00Z") },
    ];
    let listing = Model::Terraform.normalize(&documents, &context()).unwrap().swap_remove(0);
    assert_eq!(listing.resources.len(), 1);
    assert!(partial(&listing).is_some());
    assert_eq!(listing.taken_at, at("2026-01-02T00:00:00Z"));
}

/// A plan in the form of Terraform 1.11.4, format version 1.2.
const PLAN: &str = r#"{"format_version":"1.2","terraform_version":"1.11.4","timestamp":"2026-11-15T12:04:11Z",
    "applyable":true,"complete":true,"errored":false,"planned_values":{"root_module":{}},
    "prior_state":{"format_version":"1.0","values":{"root_module":{"resources":[
      {"address":"aws_db_instance.d","mode":"managed","type":"aws_db_instance","name":"d","provider_name":"aws",
       "values":{"id":"d","identifier":"d","arn":"arn:aws:rds:eu-west-1:123456789012:db:d","size":20,"password":"new"},
       "sensitive_values":{"password":true}}]}}},
    "resource_drift":[{"address":"aws_db_instance.d","mode":"managed","type":"aws_db_instance","name":"d",
      "provider_name":"aws","change":{"actions":["update"],
      "before":{"id":"d","identifier":"d","size":10,"password":"old","tags":{"a/b":"1"}},
      "after":{"id":"d","identifier":"d","size":20,"password":"new","tags":{}},
      "after_unknown":{},"before_sensitive":{},"after_sensitive":{"password":true}}}],
    "resource_changes":[
      {"address":"aws_db_instance.d","mode":"managed","type":"aws_db_instance","name":"d","provider_name":"aws",
       "change":{"actions":["delete","create"],"before":{"id":"d","identifier":"d","size":20,"list":[1,{"x":1}]},
       "after":{"identifier":"d","size":30,"list":[1,{"x":null}],"none":null},
       "after_unknown":{"id":true,"list":[false,{"y":true}]},"before_sensitive":{"list":[false,true]},"after_sensitive":{}}},
      {"address":"aws_vpc.new","mode":"managed","type":"aws_vpc","name":"new","provider_name":"aws",
       "change":{"actions":["create"],"before":null,"after":{"cidr":"10.0.0.0/8"},"after_unknown":{"id":true},
       "before_sensitive":false,"after_sensitive":{}}},
      {"address":"aws_vpc.gone","mode":"managed","type":"aws_vpc","name":"gone","provider_name":"aws","deposed":"00ab",
       "change":{"actions":["delete"],"before":{"id":"vpc-9","tags":{"k":"v"}},"after":null,"after_unknown":{},
       "before_sensitive":{},"after_sensitive":false}},
      {"address":"aws_vpc.same","mode":"managed","type":"aws_vpc","name":"same","provider_name":"aws",
       "change":{"actions":["no-op"],"before":{},"after":{},"after_unknown":{}}},
      {"address":"data.aws_region.r","mode":"data","type":"aws_region","name":"r","provider_name":"aws",
       "change":{"actions":["read"],"before":null,"after":{},"after_unknown":{}}}]}"#;

#[test]
fn a_plan_keeps_what_drifted_apart_from_what_it_would_do() {
    let listings = read_all(&[PLAN]).unwrap();
    let [prior, plan] = listings.as_slice() else { panic!("two listings") };
    assert_eq!(
        keys(prior),
        ["AWS::RDS::DBInstance aws/123456789012/eu-west-1 arn:aws:rds:eu-west-1:123456789012:db:d"]
    );
    assert_eq!(prior.taken_at, Some("2026-11-15T12:04:11Z".parse().unwrap()));
    assert_eq!(plan.scope.as_ref().map(ToString::to_string).as_deref(), Some("plan"));
    assert_eq!(
        keys(plan),
        [
            "Terraform::Drift terraform/net aws_db_instance.d",
            "Terraform::PlannedChange terraform/net aws_db_instance.d",
            "Terraform::PlannedChange terraform/net aws_vpc.gone (deposed 00ab)",
            "Terraform::PlannedChange terraform/net aws_vpc.new",
        ]
    );
    assert!(plan.coverage.is_complete("Terraform::Drift", "terraform/net"));
    assert!(!plan.coverage.is_complete("AWS::EC2::VPC", "aws/123456789012/eu-west-1"));

    let shown: Vec<String> = plan.resources.values().map(|found| found.properties.to_value().to_json()).collect();
    assert_eq!(
        shown,
        [
            r#"{"actions":["update"],"address":"aws_db_instance.d","changes":{"/password":{"after":"new","before":"old"},"#
                .to_owned()
                + r#""/size":{"after":20,"before":10},"/tags/a~1b":{"before":"1"}},"#
                + r#""key":"arn:aws:rds:eu-west-1:123456789012:db:d","type":"aws_db_instance"}"#,
            r#"{"actions":["delete","create"],"address":"aws_db_instance.d","changes":{"/id":{"after":{"$unknown":true},"before":"d"},"#
                .to_owned()
                + r#""/list/1/x":{"after":null,"before":1},"/list/1/y":{"after":{"$unknown":true}},"/size":{"after":30,"before":20}},"#
                + r#""key":"arn:aws:rds:eu-west-1:123456789012:db:d","type":"aws_db_instance"}"#,
            r#"{"actions":["delete"],"address":"aws_vpc.gone","changes":{"/id":{"before":"vpc-9"},"/tags":{"before":{"k":"v"}}},"#
                .to_owned()
                + r#""key":"arn:aws:ec2:eu-west-1:123456789012:vpc/vpc-9","type":"aws_vpc"}"#,
            r#"{"actions":["create"],"address":"aws_vpc.new","changes":{"/cidr":{"after":"10.0.0.0/8"},"/id":{"after":{"$unknown":true}}},"type":"aws_vpc"}"#
                .to_owned(),
        ]
    );
}

#[test]
fn a_secret_in_a_plan_is_sealed_on_both_sides() {
    let listings = read_all(&[PLAN]).unwrap();
    let sealed: Vec<Vec<Pattern>> = listings[1].resources.values().map(|found| found.sensitive.clone()).collect();
    assert_eq!(
        sealed,
        [
            // Marked on one side only, and by nature.
            vec![
                Pattern::exactly(["changes", "/password", "after"]),
                Pattern::exactly(["changes", "/password", "before"])
            ],
            // The mark is on what holds it; what is not known yet needs no seal.
            vec![
                Pattern::exactly(["changes", "/list/1/x", "after"]),
                Pattern::exactly(["changes", "/list/1/x", "before"])
            ],
            vec![],
            vec![],
        ]
    );
}

#[test]
fn a_plan_that_broke_off_is_partial() {
    for (text, reason) in [
        (PLAN.replace(r#""errored":false"#, r#""errored":true"#), "the plan ended in an error"),
        (PLAN.replace(r#""complete":true"#, r#""complete":false"#), "the plan is not complete"),
    ] {
        for listing in read_all(&[&text]).unwrap() {
            assert!(partial(&listing).unwrap().starts_with(reason));
        }
    }
}

#[test]
fn a_plan_of_nothing_yet_has_no_listing_of_a_state() {
    let listings = read_all(&[r#"{"format_version":"1.2","planned_values":{},"resource_changes":[]}"#]).unwrap();
    assert_eq!(listings.len(), 1);
    assert_eq!(listings[0].scope.as_ref().map(ToString::to_string).as_deref(), Some("plan"));
}

proptest! {
    /// Documents that are nearly right reach every corner of the code; whatever they mean, nothing may panic.
    #[test]
    fn no_document_makes_it_panic(
        which in 0..4_usize,
        cuts in prop::collection::vec((any::<prop::sample::Index>(), 0..40_usize, 0..10_usize), 1..4),
    ) {
        const PIECES: [&str; 10] = ["", "null", "true", "\"\"", "-1e9", "[]", "{}", "[[{}]]", ",", "\"module.[\\\"\""];
        let mut text = [state(DATA_STATE), DATA_SHOWN.to_owned(), PLAN.to_owned(), tf_resource("a.b", "c")][which].clone();
        for (at, length, piece) in cuts {
            // At the start of a value, so that most of the documents can still be read.
            let starts: Vec<usize> = text.match_indices([':', ',', '[']).map(|(at, _)| at + 1).collect();
            let start = if starts.is_empty() { 0 } else { starts[at.index(starts.len())] };
            let rest = text[start..].find([',', '}', ']']).map_or(text.len(), |end| start + end);
            let end = if length > 30 { rest } else { text.floor_char_boundary((start + length).min(text.len())).max(start) };
            text.replace_range(start..end, PIECES[piece]);
        }
        let _ = read_all(&[&text]);
    }
}
