#![expect(clippy::unwrap_used, reason = "tests")]

use super::*;

fn number(text: &str) -> VersionNumber {
    text.parse().unwrap()
}

#[test]
fn version_numbers_are_compared_by_value_however_long() {
    let mut numbers = ["99999999999999999999999", "10", "9", "007", "0", "18446744073709551616"].map(number);
    numbers.sort();
    let texts: Vec<String> = numbers.iter().map(ToString::to_string).collect();
    assert_eq!(texts, ["0", "7", "9", "10", "18446744073709551616", "99999999999999999999999"]);
    for bad in ["", "1a", "-1", "+1", "1.0", "٣"] {
        assert!(bad.parse::<VersionNumber>().is_err(), "{bad}");
    }
}

const METADATA: &str = "id: 0b0f9f4e-6a0e-4a0e-8a8e-000000000001\nname: all-us-east-1\nversion: 7\n\
    contentType: application/json\nlifetime: 24h\ngarbageCollection: 5\nstreaming: false\n\
    tags:\n  type: resource\n  specName: discovery\n  modelName: aws-adopt\n\
    ownerDefinition:\n  ownerType: model-method\n  ownerRef: x\n  stepName: discover\n\
    createdAt: '2026-02-06T19:39:15.671Z'\nsize: 2\nchecksum: 44136fa3\n";

#[test]
fn metadata_is_read_with_keys_of_any_future() {
    let metadata = Metadata::parse(&format!("{METADATA}someday:\n  - {{a: 1}}\n")).unwrap();
    assert_eq!(metadata.spec.as_deref(), Some("discovery"));
    assert_eq!(metadata.model_name.as_deref(), Some("aws-adopt"));
    assert_eq!(metadata.step.as_deref(), Some("discover"));
    assert_eq!(metadata.size.as_deref(), Some("2"));
    assert_eq!(metadata.created_at, "2026-02-06T19:39:15.671Z".parse().ok());
    assert_eq!(metadata.lifecycle, Lifecycle::Active);
    let gone = Metadata::parse(&format!("{METADATA}lifecycle: deleted\n")).unwrap();
    assert_eq!(gone.lifecycle, Lifecycle::Deleted);
    let moved = Metadata::parse(&format!("{METADATA}lifecycle: deleted\nrenamedTo: b\n")).unwrap();
    assert_eq!(moved.lifecycle, Lifecycle::RenamedTo("b".into()));
}

#[test]
fn metadata_of_other_types_is_no_reason_to_refuse_it() {
    let text = "version: 99999999999999999999999\nsize: 99999999999999999999999\nchecksum: 12345678\n\
                tags: {type: resource, specName: 7, modelName: true, list: [1, 2]}\ncreatedAt: 2026-02-06T19:39:15Z\n";
    let metadata = Metadata::parse(text).unwrap();
    assert_eq!(metadata.size.as_deref(), Some("99999999999999999999999"));
    assert_eq!(metadata.checksum.as_deref(), Some("12345678"));
    assert_eq!((metadata.spec.as_deref(), metadata.model_name.as_deref()), (Some("7"), Some("true")));
    assert!(metadata.created_at.is_some());
}

#[test]
fn yaml_that_multiplies_or_nests_without_end_is_refused() {
    let mut bomb = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n".to_owned();
    for at in 1..12 {
        let before = format!("*a{},", at - 1).repeat(10);
        bomb += &format!("a{at}: &a{at} [{}]\n", before.trim_end_matches(','));
    }
    assert!(Metadata::parse(&format!("{bomb}tags: {{type: *a11}}\n")).is_err());
    assert!(Metadata::parse(&format!("{bomb}{METADATA}")).is_err());
    assert!(Metadata::parse(&"[".repeat(100_000)).is_err());
    assert!(Metadata::parse(&format!("x: {}", "{a: ".repeat(100_000))).is_err());
    assert!(Metadata::parse(&format!("x: {}", "y".repeat(2 << 20))).is_err());
    for text in ["", "- a", "a: b: c", "\u{0}", "tags: 7", "%YAML 9", "--- a\n--- b"] {
        let _ = Metadata::parse(text);
    }
}

#[test]
fn a_secret_in_broken_yaml_is_not_repeated() {
    let error = Metadata::parse("tags: {password: hunter2\nx: [").unwrap_err();
    assert!(!error.to_string().contains("hunter2"), "{error}");
}

#[test]
fn every_spec_of_the_six_models_has_its_place() {
    use Recognised::{As, Copy, NotNeeded, Unknown};
    for (model_type, spec, name, expected) in [
        ("@webframp/aws/adopt", "discovery", "all-us-east-1", As(Model::Adopt)),
        ("@acme/aws/adopt", "partial", "vpcs-us-east-1", As(Model::Adopt)),
        ("@webframp/aws/adopt", "stackPlan", "plan-x", NotNeeded),
        ("@webframp/aws/inventory", "scan", "result", As(Model::Inventory)),
        ("@webframp/aws/inventory", "scan", "diff-baseline", Copy),
        ("@webframp/aws/inventory", "inventory", "all-us-east-1", As(Model::Inventory)),
        ("@webframp/aws/inventory", "scanDiff", "diff", NotNeeded),
        ("@webframp/aws/config-compliance", "compliance", "x", As(Model::Config)),
        ("@webframp/aws/config-compliance", "summary", "rules", NotNeeded),
        ("@webframp/aws/dns-observation", "orphans", "x", As(Model::Dns)),
        ("@webframp/aws/dns-observation", "records", "record-scan", As(Model::Dns)),
        ("@webframp/aws/dns-observation", "zones", "x", As(Model::Dns)),
        ("@webframp/aws/event-topology", "graph", "topology", As(Model::EventTopology)),
        ("@webframp/aws/event-topology", "analysis", "analysis", NotNeeded),
        ("@webframp/terraform", "tf_resource", "aws_vpc.main", As(Model::Terraform)),
        ("@webframp/terraform", "tf_inventory", "inventory", As(Model::Terraform)),
        ("@webframp/terraform", "tf_output", "all", NotNeeded),
        ("@webframp/aws/adopt", "someday", "x", Unknown),
        ("@webframp/pets/adopt", "discovery", "x", Unknown),
        ("keeb/shell", "result", "x", Unknown),
    ] {
        assert_eq!(recognise(model_type, Some(spec), name), expected, "{model_type} {spec}");
    }
    assert_eq!(recognise("@webframp/aws/adopt", None, "x"), Unknown);
    assert_eq!(type_path("AWS::EC2::VPC"), "aws/ec2/vpc");
    assert_eq!(type_path("/@Webframp//aws.adopt/ "), "@webframp/aws/adopt");
}

#[test]
fn what_the_command_line_printed_is_taken_apart() {
    let get = r#"{"id":"1","name":"all-us-east-1","modelId":"m","modelName":"aws-adopt","modelType":"@webframp/aws/adopt",
        "version":7,"contentType":"application/json","tags":{"type":"resource","specName":"discovery"},
        "ownerDefinition":{"stepName":"s"},"createdAt":"2026-02-06T19:39:15.671Z","content":{"region":"us-east-1"}}"#;
    let found = unwrap("f", get).unwrap().unwrap();
    let [item] = &found.items[..] else { panic!("{found:?}") };
    assert_eq!(item.content, r#"{"region":"us-east-1"}"#);
    assert_eq!((item.spec.as_deref(), item.step.as_deref()), (Some("discovery"), Some("s")));
    assert_eq!(item.version, Some(number("7")));
    let long = get.replace(":7,", ":99999999999999999999999,");
    let long = unwrap("f", &long).unwrap().unwrap();
    assert_eq!(long.items[0].version, Some(number("99999999999999999999999")));
    assert!(!found.limited);
    let query = format!(r#"{{"predicate":"true","results":[{get},{get}],"total":3,"limited":true}}"#);
    let found = unwrap("f", &query).unwrap().unwrap();
    assert_eq!((found.items.len(), found.limited), (2, true));
    let empty = unwrap("f", r#"{"results":[],"total":0,"limited":false}"#).unwrap().unwrap();
    assert!(empty.items.is_empty() && !empty.limited);
}

#[test]
fn records_without_their_content_are_an_error_and_not_nothing() {
    for text in [
        r#"{"results":[{"name":"x"}],"total":1,"limited":false}"#,
        r#"{"results":["x", 7],"total":2,"limited":false}"#,
        r#"{"name":"x","modelName":"m","contentType":"application/json"}"#,
    ] {
        let error = unwrap("f", text).unwrap_err();
        assert!(error.to_string().contains("no `content`"), "{error}");
    }
}

#[test]
fn an_ordinary_document_is_let_be_after_a_look_at_its_first_names() {
    for text in [
        "[]",
        "",
        "nonsense",
        "{}",
        r#"{"version":4,"terraform_version":"1.9", broken"#,
        r#"{"region":"us-east-1", broken"#,
        r#"{"fetchedAt":"x","results":[],"total":1}"#,
        r#"{"results":[]}"#,
        r#"{"results":{"a":1},"total":1}"#,
        r#"{"content":"a page","title":"b"}"#,
        r#"{"name":"x","id":1}"#,
    ] {
        assert!(unwrap("f", text).unwrap().is_none(), "{text}");
    }
    let deep = format!(r#"{{"modelName":"m","contentType":"application/json","content":{}"#, "[".repeat(1_000_000));
    assert!(unwrap("f", &deep).is_err());
}

#[test]
fn data_stays_in_the_repository_where_the_datastore_leaves_it_out() {
    for (yaml, expected) in [
        ("{}", true),
        ("directories: [data, outputs]", true),
        ("directories: [outputs]", false),
        ("exclude: [data/]", false),
        ("exclude: ['data/**', '!data']", true),
        ("exclude: ['*.log', logs]", true),
        ("exclude: ['*']", false),
        ("exclude: ['data/*.tmp']", true),
    ] {
        let store: Datastore = super::yaml(yaml).unwrap();
        assert_eq!(store.holds_data(), expected, "{yaml}");
    }
}
