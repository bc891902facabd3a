//! What explains a difference, and what does not.
#![expect(clippy::unwrap_used, reason = "tests")]

use driftline_core::Value;

use super::{Engine, Found, Options, Tier, compare};
use crate::schema::{Transform, alternatives};

fn found(kind: &str, declared: &str, live: &str, heuristics: bool) -> Found {
    found_with(kind, declared, live, heuristics, &[])
}

fn found_with(kind: &str, declared: &str, live: &str, heuristics: bool, transforms: &[Transform]) -> Found {
    let read = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    let engine = Engine::default();
    compare(kind, &read(declared), &read(live), &Options { heuristics, without: &[], transforms, engine: &engine })
}

fn paths(found: &Found) -> Vec<String> {
    found.differences.iter().map(|difference| format!("{} {:?}", difference.path, difference.what)).collect()
}

/// Declared and live of a type, and what is told without guesses and with them.
#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn each_rule_explains_what_it_says_and_nothing_else() {
    let queue = "AWS::SQS::Queue";
    let nothing: &[&str] = &[];
    for (kind, declared, live, strict, usual) in [
        (queue, r#"{"DelaySeconds":"30"}"#, r#"{"DelaySeconds":30,"Arn":"x"}"#, nothing, nothing),
        (
            queue,
            r#"{"DelaySeconds":30}"#,
            r#"{"DelaySeconds":31}"#,
            &["/DelaySeconds NotEqual"],
            &["/DelaySeconds NotEqual"],
        ),
        (queue, r#"{"DelaySeconds":30}"#, "{}", &["/DelaySeconds Remove"], &["/DelaySeconds Remove"]),
        (
            queue,
            r#"{"RedrivePolicy":{"maxReceiveCount":3}}"#,
            r#"{"RedrivePolicy":"{\"maxReceiveCount\": 3}"}"#,
            nothing,
            nothing,
        ),
        (
            queue,
            r#"{"Tags":[{"Key":"a","Value":"1"}]}"#,
            r#"{"Tags":[{"Key":"aws:x","Value":"y"},{"Key":"a","Value":"1"}]}"#,
            nothing,
            nothing,
        ),
        (
            queue,
            r#"{"Tags":[{"Key":"a","Value":"1"}]}"#,
            r#"{"Tags":[{"Key":"a","Value":"2"},{"Key":"b","Value":"1"}]}"#,
            &["/Tags/0/Value NotEqual", "/Tags/1 Add"],
            &["/Tags/0/Value NotEqual", "/Tags/1 Add"],
        ),
        (
            queue,
            r#"{"DelaySeconds":{"$unknown":"Ref"},"QueueName":"{{resolve:ssm:x}}","KmsMasterKeyId":"****"}"#,
            r#"{"DelaySeconds":1,"QueueName":"q","KmsMasterKeyId":"k"}"#,
            nothing,
            nothing,
        ),
        (queue, r#"{"KmsMasterKeyId":""}"#, "{}", nothing, nothing),
        // What a source says besides the properties is not asked for.
        (queue, r#"{"$cloudformation":{"stack":"s"},"DelaySeconds":1}"#, r#"{"DelaySeconds":1}"#, nothing, nothing),
        // An element that is not known may be any of those that are there, or several.
        ("My::Thing", r#"{"Ids":[{"$unknown":""},"a"]}"#, r#"{"Ids":["a","b","c"]}"#, nothing, nothing),
        (
            "My::Thing",
            r#"{"Ids":["a",{"$unknown":""}]}"#,
            r#"{"Ids":["b"]}"#,
            &["/Ids/0 NotEqual"],
            &["/Ids/0 NotEqual"],
        ),
        (
            queue,
            r#"{"Tags":[{"$unknown":""},{"Key":"a","Value":"1"}]}"#,
            r#"{"Tags":[{"Key":"b","Value":"1"},{"Key":"a","Value":"2"}]}"#,
            &["/Tags/0/Value NotEqual"],
            &["/Tags/0/Value NotEqual"],
        ),
        (
            "AWS::SQS::QueuePolicy",
            r#"{"PolicyDocument":{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"sqs:*","Resource":{"$unknown":""}}]}}"#,
            r#"{"PolicyDocument":{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"sqs:*","Resource":"arn:x"}]}}"#,
            nothing,
            nothing,
        ),
        (
            "AWS::SQS::QueuePolicy",
            r#"{"PolicyDocument":{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"sqs:*","Resource":{"$unknown":""}}]}}"#,
            r#"{"PolicyDocument":{"Version":"2012-10-17","Statement":[{"Effect":"Deny","Action":"sqs:*","Resource":"arn:x"}]}}"#,
            &["/PolicyDocument/Statement/0/Effect NotEqual"],
            &["/PolicyDocument/Statement/0/Effect NotEqual"],
        ),
        // Seeds of the second document.
        ("AWS::Route53::HostedZone", r#"{"Name":"example.com"}"#, r#"{"Name":"example.com."}"#, nothing, nothing),
        (
            "AWS::Route53::HostedZone",
            r#"{"Name":"example.com"}"#,
            r#"{"Name":"example.org."}"#,
            &["/Name NotEqual"],
            &["/Name NotEqual"],
        ),
        // Never read back, whatever it is.
        ("AWS::RDS::DBInstance", r#"{"MasterUserPassword":"x"}"#, r#"{"MasterUserPassword":"y"}"#, nothing, nothing),
        // A transform whose result is a pattern.
        ("AWS::RDS::DBInstance", r#"{"EngineVersion":"8.0"}"#, r#"{"EngineVersion":"8.0.45"}"#, nothing, nothing),
        (
            "AWS::RDS::DBInstance",
            r#"{"EngineVersion":"8.0"}"#,
            r#"{"EngineVersion":"5.7.44"}"#,
            &["/EngineVersion NotEqual"],
            &["/EngineVersion NotEqual"],
        ),
        (
            "AWS::Lambda::Function",
            r#"{"VpcConfig":{"SubnetIds":["a","b"]}}"#,
            r#"{"VpcConfig":{"SubnetIds":["b","a"]}}"#,
            nothing,
            nothing,
        ),
        (
            "AWS::Lambda::Function",
            r#"{"Layers":["a","b"]}"#,
            r#"{"Layers":["b","a"]}"#,
            &["/Layers/0 NotEqual", "/Layers/1 NotEqual"],
            nothing,
        ),
        // Guesses.
        (
            "AWS::Batch::ComputeEnvironment",
            r#"{"Type":"managed"}"#,
            r#"{"Type":"MANAGED"}"#,
            &["/Type NotEqual"],
            nothing,
        ),
        (
            "AWS::Synthetics::Canary",
            r#"{"Schedule":{"Expression":"rate(60 minutes)"}}"#,
            r#"{"Schedule":{"Expression":"rate(1 hour)"}}"#,
            &["/Schedule/Expression NotEqual"],
            nothing,
        ),
        (
            "AWS::EC2::SecurityGroup",
            r#"{"SecurityGroupIngress":[]}"#,
            r#"{"SecurityGroupIngress":[{"CidrIp":"0.0.0.0/0"}]}"#,
            &["/SecurityGroupIngress/0 Add"],
            &["/SecurityGroupIngress/0 Add"],
        ),
        (
            "AWS::EC2::SecurityGroup",
            r#"{"SecurityGroupIngress":[{"CidrIp":"10.0.0.0/8","IpProtocol":"tcp","FromPort":1,"ToPort":1}]}"#,
            r#"{"SecurityGroupIngress":[{"CidrIp":"10.0.0.0/8","IpProtocol":"tcp","FromPort":1,"ToPort":1},{"CidrIp":"0.0.0.0/0","IpProtocol":"tcp","FromPort":22,"ToPort":22}]}"#,
            &["/SecurityGroupIngress/1 Add"],
            &["/SecurityGroupIngress/1 Add"],
        ),
    ] {
        assert_eq!(paths(&found(kind, declared, live, false)), strict, "{kind} {declared} {live}");
        assert_eq!(paths(&found(kind, declared, live, true)), usual, "{kind} {declared} {live}, with guesses");
    }
}

#[test]
fn equal_policies_are_equal_in_any_form_and_a_change_is_told_where_it_was_declared() {
    let kind = "AWS::IAM::ManagedPolicy";
    let declared = r#"{"PolicyDocument":{"Version":"2012-10-17","Statement":[{"Sid":"","Effect":"Allow","Action":["s3:GetObject","S3:PutObject"],"Resource":"*","Principal":{"AWS":"arn:aws:iam::123456789012:root"},"Condition":{"Bool":{"aws:SecureTransport":true}}},{"Effect":"Deny","Action":"s3:DeleteObject","Resource":"*"}]}}"#;
    let same = r#"{"PolicyDocument":"{\"Statement\":[{\"Effect\":\"Deny\",\"Action\":[\"s3:DeleteObject\"],\"Resource\":[\"*\"]},{\"Effect\":\"Allow\",\"Action\":[\"s3:PutObject\",\"s3:GetObject\"],\"Resource\":[\"*\"],\"Principal\":{\"AWS\":\"123456789012\"},\"Condition\":{\"Bool\":{\"aws:securetransport\":\"true\"}}}],\"Version\":\"2012-10-17\"}"}"#;
    assert_eq!(paths(&found(kind, declared, same, false)), Vec::<String>::new());
    let wider = same.replace("s3:DeleteObject", "s3:DeleteBucket");
    assert_eq!(paths(&found(kind, declared, &wider, true)), ["/PolicyDocument/Statement/1/Action NotEqual"]);
    let more = same.replace(r#"[\"s3:PutObject\""#, r#"[\"s3:*\",\"s3:PutObject\""#);
    assert_eq!(paths(&found(kind, declared, &more, true)), ["/PolicyDocument/Statement/0/Action/0 Add"]);
}

#[test]
fn a_transform_of_the_users_is_tried_in_order_and_says_which_one_matched() {
    let expression = "$join([Name, \".\"]) $OR $join([Name, \"test\"])";
    let own = [Transform {
        path: "/Name".parse().unwrap(),
        expression: expression.into(),
        alternatives: alternatives(expression),
        source: "test".into(),
    }];
    for (live, told) in [("a.", Some("alternative 1")), ("atest", Some("alternative 2")), ("b.", None)] {
        let found = found_with("My::Own::Zone", r#"{"Name":"a"}"#, &format!(r#"{{"Name":"{live}"}}"#), false, &own);
        let detail = found.excused.first().and_then(|excuse| excuse.detail.clone());
        assert_eq!(detail.as_deref().map(|text| &text[..13]), told, "{live}");
        assert_eq!(found.differences.is_empty(), told.is_some());
        assert!(found.excused.iter().all(|excuse| excuse.tier == Tier::Transform));
    }
}

#[test]
fn every_guess_has_a_name_that_is_listed_and_can_be_switched_off() {
    let (declared, live) = (Value::from([("Type", "managed".into())]), Value::from([("Type", "MANAGED".into())]));
    let engine = Engine::default();
    let kind = "AWS::Batch::ComputeEnvironment";
    let with = |without: &[String]| {
        compare(kind, &declared, &live, &Options { heuristics: true, without, transforms: &[], engine: &engine })
    };
    let rule = with(&[]).excused[0].rule;
    assert!(super::GUESSES.iter().any(|(name, _)| *name == rule));
    assert_eq!(with(&["case".into()]).differences.len(), 1);
    // The names in the code are those of the list.
    let code = include_str!("guess.rs");
    for name in code.split("Some(\"").skip(1).chain(code.split("then_some(\"").skip(1)) {
        let name = name.split('"').next().unwrap();
        let listed = super::GUESSES.iter().any(|(known, _)| *known == name);
        assert!(listed || name.contains("SecurityGroupId"), "{name}");
    }
}
