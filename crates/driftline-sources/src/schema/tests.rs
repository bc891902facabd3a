//! The embedded table as a whole.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::table::embedded;
use super::*;

fn all() -> Vec<&'static Facts> {
    names().map(|name| facts(name).unwrap()).collect()
}

fn texts<T: ToString>(list: &[T]) -> Vec<String> {
    list.iter().map(T::to_string).collect()
}

#[test]
fn every_type_is_read_and_written_back_as_it_is() {
    let records = embedded().check().unwrap();
    assert_eq!(records.len(), 1_884, "1,854 types of us-east-1, and 30 that only other regions have");
    for (name, record) in records {
        assert_eq!(write(&parse(name, record).unwrap()), record, "{name}");
    }
    assert_eq!(pack(origin(), &all().into_iter().cloned().collect::<Vec<_>>()).unwrap(), table::BYTES);
    assert!(origin().starts_with("cfn-lint "), "{}", origin());
}

#[test]
fn every_type_has_a_name_of_its_own_in_any_capitals() {
    for name in names() {
        assert_eq!(super::name(&name.to_lowercase()), Some(name));
        assert_eq!(super::name(&name.to_uppercase()), Some(name));
        assert_eq!(facts(name).unwrap().name, name);
    }
    assert_eq!(super::name("aws::s3::bucket"), Some("AWS::S3::Bucket"));
    for unknown in ["", "AWS", "AWS::S3::Bucke", "AWS::S3::Buckets", "AWS::Serverless::Function", "é"] {
        assert_eq!(super::name(unknown), None);
        assert_eq!(facts(unknown), None);
    }
}

#[test]
fn every_type_has_an_identifier_that_is_a_place() {
    for facts in all() {
        assert!(!facts.primary.is_empty(), "{}", facts.name);
        assert!(
            facts.primary.iter().chain(facts.additional.iter().flatten()).all(|it| !it.is_root()),
            "{}",
            facts.name
        );
    }
}

#[test]
fn every_transform_is_taken_apart() {
    let mut by_parts: BTreeMap<usize, usize> = BTreeMap::new();
    let mut types = 0;
    for facts in all() {
        types += usize::from(!facts.transforms.is_empty());
        for transform in &facts.transforms {
            *by_parts.entry(transform.alternatives.len()).or_default() += 1;
            assert!(transform.alternatives.iter().all(|part| !part.contains("$OR")), "{transform:?}");
            assert_eq!(transform.alternatives.join(" $OR "), transform.expression);
        }
    }
    assert_eq!(types, 110);
    assert_eq!(by_parts, BTreeMap::from([(1, 169), (2, 31), (3, 5), (4, 2)]), "207 transforms, 38 of them with `$OR`");
}

#[test]
#[expect(clippy::disallowed_methods, clippy::print_stderr, reason = "cargo says where the tree is")]
fn transforms_are_those_that_four_copies_of_the_schemas_have() {
    let here = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").unwrap());
    let found = here.ancestors().map(|above| above.join("shared/data/property_transforms.json")).find(|it| it.exists());
    let Some(file) = found else {
        eprintln!("LEFT OUT: shared/data/property_transforms.json is not beside the checkout");
        return;
    };
    let rows: serde_json::Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    let rows = rows["transforms"].as_array().unwrap();
    let (mut same, mut corrected) = (0, 0);
    for row in rows {
        let facts = facts(row["typeName"].as_str().unwrap()).unwrap();
        let expression = row["expression"].as_str().unwrap();
        let path = row["path"].as_str().unwrap().replacen("/properties", "", 1);
        let ours = facts.transforms.iter().find(|it| it.path.to_string() == path);
        match ours {
            Some(ours) if ours.expression == expression => same += 1,
            _ => {
                assert!(
                    facts.corrections.iter().any(|it| ["transform", "pointer"].contains(&it.what.as_str())),
                    "{row}"
                );
                corrected += 1;
            }
        }
    }
    assert_eq!((same, corrected), (207 - 14, 14), "8 misspell icmp, and 6 have a pointer that leads nowhere");
}

#[test]
fn what_is_known_of_types_that_people_have() {
    let bucket = facts("AWS::S3::Bucket").unwrap();
    assert_eq!(texts(&bucket.primary), ["/BucketName"]);
    assert_eq!(bucket.tags.as_ref().unwrap().to_string(), "/Tags");
    assert!(texts(&bucket.read_only).contains(&"/Arn".to_owned()));
    assert!(bucket.readable);

    let function = facts("AWS::Lambda::Function").unwrap();
    assert!(texts(&function.write_only).contains(&"/Code/ZipFile".to_owned()));
    assert!(texts(&function.create_only).contains(&"/FunctionName".to_owned()));
    let timeout = function.scalars.iter().find(|(path, _)| path.to_string() == "/Timeout").unwrap();
    assert_eq!(timeout.1, Scalar::Integer);

    let role = facts("AWS::IAM::Role").unwrap();
    assert_eq!(texts(&role.policies), ["/AssumeRolePolicyDocument", "/Policies/*/PolicyDocument"]);
    assert!(role.policies.iter().all(|path| role.documents.contains(path)));
    let defaults: Vec<String> =
        role.defaults.iter().map(|(path, value)| format!("{path} {}", value.to_json())).collect();
    assert_eq!(defaults, ["/Path \"/\""]);

    let zone = facts("AWS::Route53::HostedZone").unwrap();
    assert_eq!(zone.transforms[0].alternatives.len(), 4);
    assert_eq!(zone.transforms[0].source, "cfn-lint 1.58.0");

    let listener = facts("AWS::ElasticLoadBalancingV2::Listener").unwrap();
    assert_eq!(texts(&listener.attribute_lists), ["/ListenerAttributes"]);
}

#[test]
fn a_statement_in_a_statement_has_what_a_statement_has() {
    let group = facts("AWS::WAFv2::RuleGroup").unwrap();
    let deep =
        "/Rules/0/Statement/RateBasedStatement/ScopeDownStatement/AndStatement/Statements/1/NotStatement/Statement";
    for prefix in ["/Rules/0/Statement", deep] {
        let place: Pointer = format!("{prefix}/SizeConstraintStatement/Size").parse().unwrap();
        let number = group.scalars.iter().find(|(path, _)| path.matches(&place));
        assert!(number.is_some(), "{place}");
    }
}

#[test]
fn known_errors_of_the_schemas_are_corrected_and_say_why() {
    for (kind, path, unordered) in [
        ("AWS::DynamoDB::Table", "/AttributeDefinitions", true),
        ("AWS::CloudFront::Distribution", "/DistributionConfig/DefaultCacheBehavior/AllowedMethods", true),
        ("AWS::Lambda::Function", "/VpcConfig/SubnetIds", true),
        ("AWS::Lambda::Function", "/VpcConfig/SecurityGroupIds", true),
        ("AWS::WAFv2::IPSet", "/Addresses", true),
        ("AWS::AppSync::Resolver", "/PipelineConfig/Functions", false),
        ("AWS::SSMContacts::Plan", "/Stages", false),
        ("AWS::Scheduler::Schedule", "/Target/EcsParameters/PlacementStrategy", false),
    ] {
        let facts = facts(kind).unwrap();
        let path: Pattern = path.parse().unwrap();
        assert_eq!(facts.unordered.contains(&path), unordered, "{kind} {path}");
        let correction = facts.corrections.iter().find(|it| it.path == path).unwrap();
        assert_eq!(correction.what, if unordered { "+unordered" } else { "-unordered" });
        assert!(!correction.reason.is_empty());
    }
    let duration = &facts("AWS::SimSpaceWeaver::Simulation").unwrap().transforms[0];
    assert_eq!(duration.path.to_string(), "/MaximumDuration");
    let policy = &facts("AWS::Events::EventBusPolicy").unwrap().transforms[0];
    assert!(policy.source.contains("pulumi"), "{}", policy.source);
    for facts in all() {
        assert!(facts.transforms.iter().all(|it| !it.expression.contains("imcp")), "{}", facts.name);
    }
}

#[test]
fn a_damaged_table_is_refused() {
    let good = table::BYTES;
    assert!(Table::new(good).unwrap().check().is_ok());
    assert!(Table::new(&[]).is_err());
    assert!(Table::new(&good[..100]).is_err());
    assert!(Table::new(&good[..good.len() - 1]).is_ok_and(|table| table.check().is_err()), "read only when asked for");
    let other = zstd::bulk::compress(b"driftline schemas 2: x\n", 1).unwrap();
    assert!(Table::new(&other).is_err());
}
