#![expect(clippy::unwrap_used, reason = "tests")]

use driftline_core::Value;

use crate::normalize::testing::{listing, normalize};
use crate::normalize::{Listing, Model, NormalizeError};

const STACK: &str = r#"{"Stacks":[{"StackName":"app",
    "StackId":"arn:aws:cloudformation:eu-west-1:111122223333:stack/app/1234","NotificationARNs":["arn:n"],
    "Parameters":[{"ParameterKey":"Env","ParameterValue":"prod"},{"ParameterKey":"Zones","ParameterValue":"a, b"},
        {"ParameterKey":"Secret","ParameterValue":"****"},{"ParameterKey":"Hidden","ParameterValue":"****"},
        {"ParameterKey":"Ami","ParameterValue":"/ami/latest","ResolvedValue":"ami-1"}],
    "Tags":[{"Key":"team","Value":"payments"},{"Key":"own","Value":"no"}]}]}"#;

const RESOURCES: &str = r#"{"StackResources":[
    {"StackName":"app","LogicalResourceId":"Thing","PhysicalResourceId":"thing-1","ResourceType":"Custom::Thing","ResourceStatus":"CREATE_COMPLETE"},
    {"LogicalResourceId":"Bucket","PhysicalResourceId":"bucket-1","ResourceType":"AWS::S3::Bucket","ResourceStatus":"CREATE_COMPLETE"},
    {"LogicalResourceId":"Role","PhysicalResourceId":"role-1","ResourceType":"AWS::IAM::Role","ResourceStatus":"CREATE_COMPLETE"},
    {"LogicalResourceId":"Both","PhysicalResourceId":"a|b","ResourceType":"Custom::Both","ResourceStatus":"CREATE_COMPLETE"},
    {"LogicalResourceId":"Queue","PhysicalResourceId":"https://sqs.eu-west-1.amazonaws.com/111122223333/queue-1","ResourceType":"AWS::SQS::Queue","ResourceStatus":"CREATE_COMPLETE"},
    {"LogicalResourceId":"Gone","PhysicalResourceId":"gone-1","ResourceType":"Custom::Gone","ResourceStatus":"DELETE_COMPLETE"}]}"#;

const EXPORTS: &str = r#"{"Exports":[{"Name":"net-vpc","Value":"vpc-9"}]}"#;

/// A template in YAML whose resource `Thing` has this for its property `P`.
fn template(property: &str) -> String {
    let head = r"
Parameters:
  Env: {Type: String, Default: dev}
  Zones: {Type: CommaDelimitedList}
  Secret: {Type: String, NoEcho: true, Default: hunter2}
  Hidden: {Type: String, Default: hunter2}
  Late: {Type: String, Default: late}
  Ami: {Type: 'AWS::SSM::Parameter::Value<AWS::EC2::Image::Id>'}
Mappings:
  Sizes: {prod: {size: 3, names: [x, y]}}
Conditions:
  IsProd: !Equals [!Ref Env, prod]
  IsDev: !Not [!Condition IsProd]
  Both: !And [!Condition IsProd, !Equals ['true', true]]
  Either: !Or [!Condition IsDev, !Condition Unsure]
  Unsure: !Equals [!Ref Secret, x]
  Surely: !Or [!Condition IsProd, !Condition Unsure]
  Never: !And [!Condition IsDev, !Condition Unsure]
  Loop: !Not [!Condition Loop]
Resources:
  Bucket: {Type: 'AWS::S3::Bucket'}
  Role: {Type: 'AWS::IAM::Role', Properties: {Path: !Sub '/${Env}/'}}
  Both: {Type: 'Custom::Both'}
  Queue: {Type: 'AWS::SQS::Queue'}
  Gone: {Type: 'Custom::Gone'}
  Thing:
    Type: Custom::Thing
    Properties:
      P: ";
    format!("{}{property}\n", head.trim_start())
}

fn property(listing: &Listing) -> Option<String> {
    let (_, found) = listing.resources.iter().find(|(key, _)| key.kind == "Custom::Thing").unwrap();
    found.properties.as_ref().to_value().get("P").map(Value::to_json)
}

#[test]
fn every_function_is_resolved_alike_in_both_spellings() {
    for (short, long, expected) in [
        ("!Ref Env", r#"{"Ref":"Env"}"#, r#""prod""#),
        ("!Ref Zones", r#"{"Ref":"Zones"}"#, r#"["a","b"]"#),
        ("!Ref Ami", r#"{"Ref":"Ami"}"#, r#""ami-1""#),
        ("!Ref Bucket", r#"{"Ref":"Bucket"}"#, r#""bucket-1""#),
        ("!Ref AWS::Region", r#"{"Ref":"AWS::Region"}"#, r#""eu-west-1""#),
        ("!Ref AWS::NotificationARNs", r#"{"Ref":"AWS::NotificationARNs"}"#, r#"["arn:n"]"#),
        ("!GetAtt Bucket.Arn", r#"{"Fn::GetAtt":["Bucket","Arn"]}"#, r#""arn:aws:s3:::bucket-1""#),
        ("!GetAtt [Role, Arn]", r#"{"Fn::GetAtt":"Role.Arn"}"#, r#""arn:aws:iam::111122223333:role/prod/role-1""#),
        ("!GetAtt Queue.Arn", r#"{"Fn::GetAtt":["Queue","Arn"]}"#, r#""arn:aws:sqs:eu-west-1:111122223333:queue-1""#),
        (
            "!Sub '${Env}-${AWS::AccountId}.${AWS::URLSuffix}'",
            r#"{"Fn::Sub":"${Env}-${AWS::AccountId}.${AWS::URLSuffix}"}"#,
            r#""prod-111122223333.amazonaws.com""#,
        ),
        ("!Sub '${!Env}/${Bucket.Arn}'", r#"{"Fn::Sub":"${!Env}/${Bucket.Arn}"}"#, r#""${Env}/arn:aws:s3:::bucket-1""#),
        (
            "!Sub ['${a}${Env}', {a: !Ref AWS::StackName}]",
            r#"{"Fn::Sub":["${a}${Env}",{"a":{"Ref":"AWS::StackName"}}]}"#,
            r#""appprod""#,
        ),
        ("!Join ['-', [!Ref Env, 1, true]]", r#"{"Fn::Join":["-",[{"Ref":"Env"},1,true]]}"#, r#""prod-1-true""#),
        ("!Join ['', !Ref Zones]", r#"{"Fn::Join":["",{"Ref":"Zones"}]}"#, r#""ab""#),
        ("!Select [1, !Ref Zones]", r#"{"Fn::Select":["1",{"Ref":"Zones"}]}"#, r#""b""#),
        ("!Split [',', 'a,b']", r#"{"Fn::Split":[",","a,b"]}"#, r#"["a","b"]"#),
        ("!Select [0, [!Ref Env, !Ref Secret]]", r#"{"Fn::Select":[0,[{"Ref":"Env"},{"Ref":"Secret"}]]}"#, r#""prod""#),
        ("!If [IsProd, 1, 2]", r#"{"Fn::If":["IsProd",1,2]}"#, "1"),
        ("!If [IsDev, 1, 2]", r#"{"Fn::If":["IsDev",1,2]}"#, "2"),
        ("!If [Both, 1, 2]", r#"{"Fn::If":["Both",1,2]}"#, "1"),
        ("!If [Surely, 1, 2]", r#"{"Fn::If":["Surely",1,2]}"#, "1"),
        ("!If [Never, 1, 2]", r#"{"Fn::If":["Never",1,2]}"#, "2"),
        ("!If [Unsure, 1, 1]", r#"{"Fn::If":["Unsure",1,1]}"#, "1"),
        ("!FindInMap [Sizes, !Ref Env, size]", r#"{"Fn::FindInMap":["Sizes",{"Ref":"Env"},"size"]}"#, "3"),
        (
            "!FindInMap [Sizes, no, size, {DefaultValue: 4}]",
            r#"{"Fn::FindInMap":["Sizes","no","size",{"DefaultValue":4}]}"#,
            "4",
        ),
        ("!Base64 hello", r#"{"Fn::Base64":"hello"}"#, r#""aGVsbG8=""#),
        ("!ImportValue net-vpc", r#"{"Fn::ImportValue":"net-vpc"}"#, r#""vpc-9""#),
        ("[1, !Ref AWS::NoValue, 2]", r#"[1,{"Ref":"AWS::NoValue"},2]"#, "[1,2]"),
        ("{a: !Ref AWS::NoValue, b: 1}", r#"{"a":{"Ref":"AWS::NoValue"},"b":1}"#, r#"{"b":1}"#),
        ("{a: !If [IsProd, !Ref AWS::NoValue, 1]}", r#"{"a":{"Fn::If":["IsProd",{"Ref":"AWS::NoValue"},1]}}"#, "{}"),
        (
            "{Condition: {StringEquals: {a: b}}}",
            r#"{"Condition":{"StringEquals":{"a":"b"}}}"#,
            r#"{"Condition":{"StringEquals":{"a":"b"}}}"#,
        ),
    ] {
        let yaml = listing(Model::CloudFormation, &[&template(short), STACK, RESOURCES, EXPORTS]);
        let json = listing(Model::CloudFormation, &[&template(long), STACK, RESOURCES, EXPORTS]);
        assert_eq!(property(&yaml).as_deref(), Some(expected), "{short}");
        assert_eq!(property(&json).as_deref(), Some(expected), "{long}");
    }
    let none = listing(Model::CloudFormation, &[&template("!Ref AWS::NoValue"), STACK, RESOURCES]);
    assert_eq!(property(&none), None);
}

#[test]
fn what_cannot_be_resolved_is_unknown_and_so_is_what_it_is_a_part_of() {
    for unknown in [
        "!Ref Secret",
        "!Ref Hidden",
        "!Ref Late",
        "!Ref Nobody",
        "!Ref Gone",
        "!Ref Both",
        "!GetAtt Bucket.DomainName",
        "!GetAtt Gone.Arn",
        "!Sub 'a${Secret}'",
        "!Sub '${Zones}'",
        "!Join ['-', [a, !Ref Secret]]",
        "!Split ['-', !Ref Secret]",
        "!Select [0, !Split ['-', !Sub 'x-${Secret}']]",
        "!Select [9, [a]]",
        "!If [Unsure, 1, 2]",
        "!If [Either, 1, 2]",
        "!If [Loop, 1, 2]",
        "!If [Nowhere, 1, 2]",
        "!FindInMap [Sizes, !Ref Secret, size]",
        "!FindInMap [Sizes, no, size]",
        "!Base64 {Ref: Secret}",
        "!ImportValue other",
        "!Cidr ['10.0.0.0/16', 1, 8]",
        "!GetAZs ''",
        "!Transform {Name: AWS::Include}",
        "!ToJsonString {a: 1}",
        "'{{resolve:secretsmanager:x}}'",
        "!Join ['', ['{{resol', 've:ssm:x}}']]",
    ] {
        let found = listing(Model::CloudFormation, &[&template(unknown), STACK, RESOURCES, EXPORTS]);
        let found = property(&found).unwrap_or_default();
        assert!(found.starts_with(r#"{"$unknown":"#), "{unknown}: {found}");
    }
}

#[test]
fn what_nobody_may_see_is_nowhere() {
    let parameters = r#"[{"ParameterKey":"Secret","ParameterValue":"hunter2"}]"#;
    let uses = "[!Ref Secret, !Sub 'x${Secret}', !If [Unsure, !Ref Secret, a], !Base64 {Ref: Secret}]";
    let found = listing(Model::CloudFormation, &[&template(uses), parameters, RESOURCES]);
    assert!(!format!("{found:?}").contains("hunter2"));
    for found in found.resources.values() {
        assert!(!found.properties.to_json().contains("hunter"));
    }
}

#[test]
fn without_a_stack_defaults_hold_and_with_a_file_its_values() {
    let texts = |more: &[&str]| {
        let template = template("[!Ref Env, !Ref Late]");
        let mut texts = vec![template.as_str()];
        texts.extend(more);
        property(&listing(Model::CloudFormation, &texts)).unwrap()
    };
    assert_eq!(texts(&[]), r#"["dev","late"]"#);
    assert_eq!(texts(&[r#"{"Parameters":{"Env":"test"}}"#]), r#"["test","late"]"#);
    let file = r#"[{"ParameterKey":"Env","ParameterValue":"test"}]"#;
    assert!(texts(&[file, STACK]).starts_with(r#"["prod",{"$unknown""#));
    assert_eq!(texts(&[file, STACK]), texts(&[STACK, file]), "the stack goes first");
}

#[test]
fn resources_are_there_as_their_conditions_say() {
    let text = "
Parameters: {Secret: {Type: String, NoEcho: 'true'}}
Conditions: {Yes: !Equals [1, '1'], No: !Equals [1, 2], Unsure: !Equals [!Ref Secret, x]}
Resources:
  A: {Type: 'Custom::A', Condition: Yes}
  B: {Type: 'Custom::B', Condition: No}
  C: {Type: 'Custom::C', Condition: Unsure}
  D: {Type: 'Custom::D'}
";
    let found = listing(Model::CloudFormation, &[text]);
    let kinds: Vec<&str> = found.resources.keys().map(|key| key.kind.as_str()).collect();
    assert_eq!(kinds, ["Custom::A", "Custom::D"]);
    assert!(found.problems.iter().any(|problem| problem.about == "C"), "{:?}", found.problems);
    assert_eq!(found.coverage.counts(), (0, 1), "what was left out is not gone");
    let whole = listing(Model::CloudFormation, &["Resources: {A: {Type: 'Custom::A'}}"]);
    assert_eq!((whole.coverage.counts(), whole.coverage.basis()), ((1, 0), Some(super::BASIS)));
}

#[test]
fn things_are_called_what_other_sources_call_them() {
    let found = listing(Model::CloudFormation, &[&template("1"), STACK, RESOURCES]);
    let keys: Vec<String> = found.resources.keys().map(|key| format!("{} {}", key.place, key.id)).collect();
    for expected in [
        "aws/111122223333/global arn:aws:s3:::bucket-1",
        "aws/111122223333/global arn:aws:iam::111122223333:role/prod/role-1",
        "aws/111122223333/eu-west-1 arn:aws:sqs:eu-west-1:111122223333:queue-1",
        "cloudformation/test Gone",
    ] {
        assert!(keys.iter().any(|key| key == expected), "{expected}: {keys:?}");
    }
    assert!(found.problems.iter().any(|problem| problem.about == "Gone"));
    let claims: Vec<String> = found
        .resources
        .values()
        .map(|found| found.properties.to_json())
        .filter(|json| json.contains("Thing"))
        .collect();
    assert_eq!(claims, [r#"{"$cloudformation":{"logicalId":"Thing","stack":"app"},"P":1}"#]);
}

#[test]
fn what_the_stack_made_of_another_type_is_another_thing() {
    let resources =
        r#"{"StackResources":[{"LogicalResourceId":"A","PhysicalResourceId":"b","ResourceType":"AWS::S3::Bucket"}]}"#;
    let template = "Resources: {A: {Type: 'AWS::SNS::Topic', Properties: {P: !Ref A}}}";
    let found = listing(Model::CloudFormation, &[template, STACK, resources]);
    let (key, found) = found.resources.iter().next().unwrap();
    assert_eq!((key.place.as_str(), key.id.as_str()), ("cloudformation/test", "A"));
    assert!(found.properties.to_json().contains("$unknown"));
}

#[test]
fn a_secret_by_its_name_is_sealed() {
    let template = "Resources: {A: {Type: 'AWS::RDS::DBInstance', Properties: {MasterUserPassword: hunter2}}}";
    let found = listing(Model::CloudFormation, &[template]);
    let sensitive: Vec<String> =
        found.resources.values().flat_map(|found| &found.sensitive).map(ToString::to_string).collect();
    assert_eq!(sensitive, ["/MasterUserPassword"]);
}

#[test]
fn the_tags_of_a_stack_are_on_what_has_tags() {
    let text = "
Resources:
  A: {Type: 'AWS::SQS::Queue', Properties: {Tags: [{Key: own, Value: 'yes'}]}}
  B: {Type: 'AWS::SSM::Parameter', Properties: {Tags: {own: 'yes'}}}
  C: {Type: 'AWS::SQS::Queue'}
  D: {Type: 'AWS::SQS::Queue', Properties: {Tags: !GetAtt X.Y}}
";
    let found = listing(Model::CloudFormation, &[text, STACK]);
    let tags = |id: &str| {
        let (_, found) = found.resources.iter().find(|(key, _)| key.id == id).unwrap();
        found.properties.as_ref().to_value().get("Tags").map(Value::to_json)
    };
    assert_eq!(tags("A").unwrap(), r#"[{"Key":"own","Value":"yes"},{"Key":"team","Value":"payments"}]"#);
    assert_eq!(tags("B").unwrap(), r#"{"own":"yes","team":"payments"}"#);
    assert_eq!(tags("C"), None);
    assert!(tags("D").unwrap().contains("$unknown"));
}

#[test]
fn a_template_may_come_as_aws_prints_it() {
    let body = template("!Ref Env");
    let printed = Value::from([("TemplateBody", Value::from(body.as_str()))]).to_json();
    let json = r#"{"TemplateBody":{"Resources":{"Thing":{"Type":"Custom::Thing","Properties":{"P":1}}}}}"#;
    assert_eq!(property(&listing(Model::CloudFormation, &[&printed, STACK])).unwrap(), r#""prod""#);
    assert_eq!(property(&listing(Model::CloudFormation, &[json])).unwrap(), "1");
    let summaries = r#"{"StackResourceSummaries":[{"LogicalResourceId":"Thing","PhysicalResourceId":"t","ResourceType":"Custom::Thing"}]}"#;
    let found = listing(Model::CloudFormation, &[json, summaries]);
    assert_eq!(found.resources.keys().next().unwrap().id, "t");
}

#[test]
fn what_is_not_one_template_is_refused() {
    let refused = |texts: &[&str]| -> NormalizeError { normalize(Model::CloudFormation, texts).unwrap_err() };
    let one = "Resources: {A: {Type: 'Custom::A'}}";
    let two = r#"{"Stacks":[{"StackName":"a"},{"StackName":"b"}]}"#;
    for (texts, expected) in [
        (vec![STACK], "there is no template"),
        (vec![one, one], "so is document 1"),
        (vec![one, two], "2 stacks"),
        (vec![one, STACK, r#"{"StackResources":[{"StackName":"other"}]}"#], "another stack"),
        (vec![one, r#"{"Foo":1}"#], "neither a template"),
        (vec!["Resources: []"], "no object"),
        (vec!["Resources: ["], "not YAML"),
        (vec!["just text"], "neither a template"),
    ] {
        let error = refused(&texts).to_string();
        assert!(error.contains(expected), "{expected}: {error}");
    }
}

#[test]
fn a_transform_makes_resources_that_are_not_in_the_template() {
    let text = "Transform: AWS::Serverless-2016-10-31\nResources: {A: {Type: 'AWS::Serverless::Function'}}";
    let found = listing(Model::CloudFormation, &[text]);
    assert_eq!(found.coverage.counts(), (0, 1));
    assert!(found.problems.iter().any(|problem| problem.message.contains("Processed")));
}

#[test]
fn little_that_repeats_itself_does_not_become_much() {
    let long = "x".repeat(20_000);
    let many = vec!["!Ref Long"; 2_000].join(",");
    let text = format!(
        "Parameters: {{Long: {{Type: String, Default: {long}}}}}\nResources: {{A: {{Type: 'Custom::A', Properties: {{P: [{many}]}}}}}}"
    );
    let found = listing(Model::CloudFormation, &[&text]);
    let json = found.resources.values().next().unwrap().properties.to_json();
    assert!(json.len() < text.len() * 24, "{}", json.len());
    assert!(found.problems.iter().any(|problem| problem.message.contains("far more")), "{:?}", found.problems);
    for innermost in ["!Ref AWS::Partition", "''"] {
        let mut nested = innermost.to_owned();
        for _ in 0..30 {
            nested = format!("!Sub ['${{a}}${{a}}${{a}}${{a}}', {{a: {nested}}}]");
        }
        let text = format!("Resources: {{A: {{Type: 'Custom::A', Properties: {{P: {nested}}}}}}}");
        let found = listing(Model::CloudFormation, &[&text]);
        assert!(found.resources.values().next().unwrap().properties.to_json().len() < 1 << 20);
    }
}
