//! The twelve types of resource, and what one of each looks like.
//!
//! No template here holds anything that a rule of Driftline could excuse when it changes: no times, no state that
//! comes and goes, no lists that only change order. A mutation is a change that counts, for every engine.

use crate::json::{Part, fill};
use crate::record::Draw;

/// How many mutable attributes a type may have.
pub(crate) const SLOTS: usize = 5;

#[derive(Debug)]
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    /// How many of a hundred resources are of this type.
    pub(crate) share: usize,
    /// Things of a global type have an account and no region.
    pub(crate) regional: bool,
    /// What comes before the id in the ARN; `@` is the region, `#` the account.
    pub(crate) arn: &'static str,
    /// EC2 gives ids (`sg-0…`); where this is empty, the name is the id.
    pub(crate) id_prefix: &'static str,
    /// How many of the slots the type has; each shows in the properties.
    pub(crate) slots: usize,
    pub(crate) properties: fn(&mut Draw<'_>, &mut String),
}

pub(crate) const KINDS: [Kind; 12] = [
    Kind {
        name: "AWS::EC2::SecurityGroup",
        share: 14,
        regional: true,
        arn: "arn:aws:ec2:@:#:security-group/",
        id_prefix: "sg-0",
        slots: 3,
        properties: security_group,
    },
    Kind {
        name: "AWS::EC2::Instance",
        share: 13,
        regional: true,
        arn: "arn:aws:ec2:@:#:instance/",
        id_prefix: "i-0",
        slots: 5,
        properties: instance,
    },
    Kind {
        name: "AWS::EC2::Volume",
        share: 12,
        regional: true,
        arn: "arn:aws:ec2:@:#:volume/",
        id_prefix: "vol-0",
        slots: 4,
        properties: volume,
    },
    Kind {
        name: "AWS::Lambda::Function",
        share: 14,
        regional: true,
        arn: "arn:aws:lambda:@:#:function:",
        id_prefix: "",
        slots: 5,
        properties: function,
    },
    Kind {
        name: "AWS::S3::Bucket",
        share: 5,
        regional: true,
        arn: "arn:aws:s3:::",
        id_prefix: "",
        slots: 5,
        properties: bucket,
    },
    Kind {
        name: "AWS::IAM::Role",
        share: 12,
        regional: false,
        arn: "arn:aws:iam::#:role/",
        id_prefix: "",
        slots: 4,
        properties: role,
    },
    Kind {
        name: "AWS::DynamoDB::Table",
        share: 6,
        regional: true,
        arn: "arn:aws:dynamodb:@:#:table/",
        id_prefix: "",
        slots: 4,
        properties: table,
    },
    Kind {
        name: "AWS::SQS::Queue",
        share: 3,
        regional: true,
        arn: "arn:aws:sqs:@:#:",
        id_prefix: "",
        slots: 5,
        properties: queue,
    },
    Kind {
        name: "AWS::SNS::Topic",
        share: 4,
        regional: true,
        arn: "arn:aws:sns:@:#:",
        id_prefix: "",
        slots: 3,
        properties: topic,
    },
    Kind {
        name: "AWS::Logs::LogGroup",
        share: 10,
        regional: true,
        arn: "arn:aws:logs:@:#:log-group:/svc/",
        id_prefix: "",
        slots: 3,
        properties: log_group,
    },
    Kind {
        name: "AWS::CloudWatch::Alarm",
        share: 3,
        regional: true,
        arn: "arn:aws:cloudwatch:@:#:alarm:",
        id_prefix: "",
        slots: 4,
        properties: alarm,
    },
    Kind {
        name: "AWS::RDS::DBInstance",
        share: 4,
        regional: true,
        arn: "arn:aws:rds:@:#:db:",
        id_prefix: "",
        slots: 5,
        properties: database,
    },
];

const PORTS: [u64; 8] = [22, 80, 443, 3306, 5432, 6379, 8080, 9092];
const RETENTION: [u64; 6] = [7, 14, 30, 90, 180, 365];

fn security_group(draw: &mut Draw<'_>, out: &mut String) {
    const ABOUT: [&str; 4] = [
        "Traffic of the load balancer",
        "Database clients",
        "Façade of the public API",
        "Managed by the platform team",
    ];
    let rules = draw.slot(0, &[1, 2, 3, 4]);
    let open_to = draw.slot(1, &["10.0.0.0/8", "172.16.0.0/12", "0.0.0.0/0", "192.168.0.0/16"]);
    fill!(out, r#"{"groupName":"$","description":"$","vpcId":"$","#, draw.name, draw.of(&ABOUT), &draw.vpc());
    fill!(out, r#""ingressRuleCount":$,"ingress":["#, rules);
    let mut sources = draw.fork();
    for at in 0..rules {
        let port = PORTS[sources.below(PORTS.len())];
        fill!(out, if at == 0 { "" } else { "," });
        fill!(out, r#"{"protocol":"tcp","fromPort":$,"toPort":$,"cidr":"#, port, port);
        if at == 0 {
            fill!(out, r#""$"}"#, open_to);
        } else {
            fill!(out, r#""10.$.$.0/24"}"#, sources.next() & 0xFF, sources.next() & 0xF0);
        }
    }
    fill!(out, r#"],"egress":[{"protocol":"-1","cidr":"0.0.0.0/0"}],"tags":"#);
    tag_list(draw, 2, out);
    out.push('}');
}

fn instance(draw: &mut Draw<'_>, out: &mut String) {
    let size = draw.slot(0, &["t3.medium", "t3.large", "m6i.large", "m6i.xlarge", "c7g.large", "r6i.2xlarge"]);
    let image = draw.shared("ami", 40);
    fill!(out, r#"{"instanceType":"$","imageId":"ami-0$","vpcId":"$","#, size, Part::Hex(image, 16), &draw.vpc());
    fill!(out, r#""subnetId":"subnet-0$","securityGroups":["#, Part::Hex(draw.nearby("subnet", 6), 16));
    let groups = draw.slot(1, &[1, 2, 3]);
    for at in 0..groups {
        let group = draw.neighbour("group", at);
        fill!(out, if at == 0 { r#""sg-0$""# } else { r#","sg-0$""# }, Part::Hex(group, 16));
    }
    fill!(out, r#"],"networkInterface":"eni-0$","monitoring":$,"#, draw.digest(), draw.slot(2, &[false, true]));
    let tokens = draw.slot(3, &["required", "optional"]);
    fill!(out, r#""metadataOptions":{"httpTokens":"$","hopLimit":$},"tags":"#, tokens, draw.of(&[1, 2]));
    tag_list(draw, 4, out);
    out.push('}');
}

fn volume(draw: &mut Draw<'_>, out: &mut String) {
    let (kind, size) = (draw.slot(0, &["gp3", "gp2", "io2"]), draw.slot(1, &[20, 50, 100, 200, 500, 1000]));
    let (iops, encrypted) = (draw.slot(2, &[3000, 4000, 6000, 12000]), draw.of(&[true, true, true, false]));
    fill!(out, r#"{"volumeType":"$","size":$,"iops":$,"throughput":$,"#, kind, size, iops, draw.of(&[125, 250]));
    fill!(out, r#""encrypted":$,"availabilityZone":"$$","#, encrypted, draw.region, draw.zone());
    let key = draw.nearby("key", 3);
    fill!(out, r#""kmsKeyId":"arn:aws:kms:$:$:key/$","#, draw.region, draw.account, Part::Hex(key, 16));
    fill!(out, r#""attachments":[{"instanceId":"i-0$","#, draw.digest());
    fill!(out, r#""device":"$","deleteOnTermination":true}],"tags":"#, draw.of(&["/dev/xvda", "/dev/sdf"]));
    tag_list(draw, 3, out);
    out.push('}');
}

fn function(draw: &mut Draw<'_>, out: &mut String) {
    let runtime = draw.slot(0, &["python3.12", "python3.13", "nodejs22.x", "java21", "provided.al2023"]);
    let handler = draw.of(&["app.handler", "index.handler", "main.lambda_handler", "bootstrap"]);
    let (memory, timeout) = (draw.slot(1, &[128, 256, 512, 1024, 2048]), draw.slot(2, &[3, 10, 30, 60, 300, 900]));
    fill!(
        out,
        r#"{"functionName":"$","runtime":"$","handler":"$","memorySize":$,"#,
        draw.name,
        runtime,
        handler,
        memory
    );
    fill!(out, r#""timeout":$,"role":"arn:aws:iam::$:role/$-exec","#, timeout, draw.account, draw.team);
    fill!(out, r#""codeSha256":"$$$$","#, draw.digest(), draw.digest(), draw.digest(), draw.digest());
    fill!(out, r#""architectures":["$"],"#, draw.of(&["arm64", "x86_64"]));
    let (level, table) = (draw.slot(3, &["INFO", "WARN", "DEBUG"]), draw.nearby("table", 20));
    fill!(
        out,
        r#""environment":{"variables":{"LOG_LEVEL":"$","TABLE":"$-$"}},"tags":"#,
        level,
        draw.team,
        Part::Hex(table, 8)
    );
    tag_map(draw, 4, out);
    out.push('}');
}

fn bucket(draw: &mut Draw<'_>, out: &mut String) {
    fill!(out, r#"{"bucketName":"$","versioning":"$","#, draw.name, draw.slot(0, &["Enabled", "Suspended"]));
    fill!(
        out,
        r#""encryption":{"algorithm":"$","bucketKeyEnabled":$},"#,
        draw.slot(1, &["aws:kms", "AES256"]),
        draw.of(&[true, false])
    );
    fill!(
        out,
        r#""publicAccessBlock":{"blockPublicAcls":true,"ignorePublicAcls":true,"blockPublicPolicy":$,"restrictPublicBuckets":$},"#,
        draw.slot(2, &[true, false]),
        draw.of(&[true, true, false])
    );
    fill!(out, r#""lifecycleRules":[{"id":"expire","enabled":true,"expirationInDays":$}],"#, draw.slot(3, &RETENTION));
    fill!(out, r#""policy":{"Version":"2012-10-17","Statement":[{"Effect":"Deny","Principal":"*","Action":"s3:*","#);
    fill!(
        out,
        r#""Resource":"arn:aws:s3:::$/*","Condition":{"Bool":{"aws:SecureTransport":"false"}}}]},"tags":"#,
        draw.name
    );
    tag_list(draw, 4, out);
    out.push('}');
}

fn role(draw: &mut Draw<'_>, out: &mut String) {
    const MANAGED: [&str; 6] = [
        "AmazonS3ReadOnlyAccess",
        "AWSLambdaBasicExecutionRole",
        "CloudWatchReadOnlyAccess",
        "AmazonSQSFullAccess",
        "AmazonEC2ReadOnlyAccess",
        "SecurityAudit",
    ];
    let service = draw.of(&["lambda", "ec2", "ecs-tasks", "states"]);
    fill!(
        out,
        r#"{"roleName":"$","roleId":"AROA$","maxSessionDuration":$,"#,
        draw.name,
        draw.digest(),
        draw.slot(0, &[3600, 7200, 14400, 43200])
    );
    fill!(out, r#""assumeRolePolicyDocument":{"Version":"2012-10-17","Statement":[{"Effect":"Allow","#);
    fill!(
        out,
        r#""Principal":{"Service":"$.amazonaws.com"},"Action":"sts:AssumeRole"}]},"attachedPolicies":["#,
        service
    );
    let policies = draw.slot(1, &[1, 2, 3]);
    let first = draw.slot(2, &[0, 1, 2, 3, 4, 5]);
    for (at, policy) in MANAGED.iter().cycle().skip(first).take(policies).enumerate() {
        fill!(out, if at == 0 { r#""arn:aws:iam::aws:policy/$""# } else { r#","arn:aws:iam::aws:policy/$""# }, *policy);
    }
    fill!(out, r#"],"tags":"#);
    tag_list(draw, 3, out);
    out.push('}');
}

fn table(draw: &mut Draw<'_>, out: &mut String) {
    fill!(out, r#"{"tableName":"$","billingMode":"$","#, draw.name, draw.slot(0, &["PAY_PER_REQUEST", "PROVISIONED"]));
    fill!(
        out,
        r#""keySchema":[{"attributeName":"pk","keyType":"HASH"},{"attributeName":"$","keyType":"RANGE"}],"#,
        draw.of(&["sk", "at"])
    );
    fill!(
        out,
        r#""provisionedThroughput":{"read":$,"write":$},"#,
        draw.slot(1, &[5, 10, 50, 100]),
        draw.of(&[5, 10, 50])
    );
    fill!(
        out,
        r#""globalSecondaryIndexes":[{"indexName":"by-$","projection":"ALL"}],"#,
        draw.of(&["owner", "status", "date"])
    );
    fill!(
        out,
        r#""pointInTimeRecovery":$,"deletionProtection":$,"tags":"#,
        draw.slot(2, &[true, false]),
        draw.of(&[true, false])
    );
    tag_map(draw, 3, out);
    out.push('}');
}

/// The policy is JSON inside a string, as SQS gives it.
fn queue(draw: &mut Draw<'_>, out: &mut String) {
    fill!(
        out,
        r#"{"queueName":"$","visibilityTimeout":$,"delaySeconds":$,"#,
        draw.name,
        draw.slot(0, &[30, 60, 120, 300]),
        draw.slot(1, &[0, 5, 15])
    );
    fill!(
        out,
        r#""messageRetentionPeriod":$,"redrivePolicy":{"maxReceiveCount":$,"deadLetterTargetArn":"arn:aws:sqs:$:$:$-dlq"},"#,
        draw.slot(2, &[345_600, 86_400, 1_209_600]),
        draw.slot(3, &[3, 5, 10]),
        draw.region,
        draw.account,
        draw.team
    );
    fill!(
        out,
        r#""policy":"{\"Version\":\"2012-10-17\",\"Statement\":[{\"Effect\":\"Allow\",\"Principal\":{\"AWS\":\"$\"},\"Action\":\"sqs:SendMessage\"}]}","#,
        draw.account
    );
    fill!(out, r#""kmsMasterKeyId":"alias/$","tags":"#, draw.team);
    tag_map(draw, 4, out);
    out.push('}');
}

fn topic(draw: &mut Draw<'_>, out: &mut String) {
    fill!(
        out,
        r#"{"topicName":"$","displayName":"$","fifoTopic":false,"#,
        draw.name,
        draw.slot(0, &["Alerts", "Orders", "Events", "Audit"])
    );
    fill!(
        out,
        r#""kmsMasterKeyId":"alias/$","tracingConfig":"$","subscriptions":["#,
        draw.team,
        draw.of(&["Active", "PassThrough"])
    );
    let subscriptions = draw.slot(1, &[1, 2, 3]);
    for at in 0..subscriptions {
        let queue = draw.neighbour("queue", at);
        fill!(out, if at == 0 { "" } else { "," });
        fill!(
            out,
            r#"{"protocol":"sqs","endpoint":"arn:aws:sqs:$:$:$-$"}"#,
            draw.region,
            draw.account,
            draw.team,
            Part::Hex(queue, 8)
        );
    }
    fill!(out, r#"],"tags":"#);
    tag_list(draw, 2, out);
    out.push('}');
}

fn log_group(draw: &mut Draw<'_>, out: &mut String) {
    fill!(out, r#"{"logGroupName":"/svc/$","retentionInDays":$,"#, draw.name, draw.slot(0, &RETENTION));
    fill!(out, r#""logGroupClass":"$","kmsKeyId":"alias/$","#, draw.of(&["STANDARD", "INFREQUENT_ACCESS"]), draw.team);
    fill!(
        out,
        r#""subscriptionFilters":[{"filterName":"to-lake","filterPattern":"$","distribution":"ByLogStream"}],"tags":"#,
        draw.slot(1, &["ERROR", "WARN", "?ERROR ?WARN"])
    );
    tag_map(draw, 2, out);
    out.push('}');
}

fn alarm(draw: &mut Draw<'_>, out: &mut String) {
    let metric = draw.of(&["CPUUtilization", "Errors", "ApproximateAgeOfOldestMessage", "5XXError"]);
    fill!(
        out,
        r#"{"alarmName":"$","namespace":"AWS/$","metricName":"$","#,
        draw.name,
        draw.of(&["EC2", "Lambda", "SQS", "ApiGateway"]),
        metric
    );
    fill!(
        out,
        r#""statistic":"$","period":$,"evaluationPeriods":$,"threshold":$.5,"#,
        draw.of(&["Average", "Sum", "Maximum"]),
        draw.slot(0, &[60, 300, 900]),
        draw.slot(1, &[1, 3, 5]),
        draw.slot(2, &[1, 5, 50, 80, 90])
    );
    fill!(out, r#""comparisonOperator":"GreaterThanThreshold","dimensions":[{"name":"Name","value":"$"}],"#, draw.name);
    fill!(
        out,
        r#""alarmActions":["arn:aws:sns:$:$:$-alerts"],"okActions":[],"tags":"#,
        draw.region,
        draw.account,
        draw.team
    );
    tag_list(draw, 3, out);
    out.push('}');
}

fn database(draw: &mut Draw<'_>, out: &mut String) {
    fill!(
        out,
        r#"{"dbInstanceIdentifier":"$","dbInstanceClass":"$","#,
        draw.name,
        draw.slot(0, &["db.t4g.medium", "db.r6g.large", "db.m6g.xlarge"])
    );
    fill!(
        out,
        r#""engine":"$","engineVersion":"$","allocatedStorage":$,"#,
        draw.of(&["postgres", "aurora-postgresql"]),
        draw.slot(1, &["15.7", "16.3", "16.4", "17.2"]),
        draw.slot(2, &[100, 200, 500, 1000])
    );
    fill!(
        out,
        r#""multiAZ":$,"storageEncrypted":true,"backupRetentionPeriod":$,"#,
        draw.of(&[true, false]),
        draw.slot(3, &[1, 7, 14, 35])
    );
    let group = draw.neighbour("group", 0);
    fill!(
        out,
        r#""vpcSecurityGroups":["sg-0$"],"parameters":{"max_connections":$,"rds.force_ssl":1},"tags":"#,
        Part::Hex(group, 16),
        draw.of(&[100, 200, 500])
    );
    tag_list(draw, 4, out);
    out.push('}');
}

const STAGES: [&str; 4] = ["prod", "staging", "dev", "sandbox"];

/// The last tag changes with `slot`.
fn tag_list(draw: &mut Draw<'_>, slot: usize, out: &mut String) {
    fill!(
        out,
        r#"[{"key":"env","value":"$"},{"key":"team","value":"$"},{"key":"cost","value":"cc-$"}]"#,
        draw.of(&STAGES),
        draw.team,
        draw.slot(slot, &[1100, 1200, 2040, 3310, 4711])
    );
}

fn tag_map(draw: &mut Draw<'_>, slot: usize, out: &mut String) {
    fill!(
        out,
        r#"{"env":"$","team":"$","cost":"cc-$"}"#,
        draw.of(&STAGES),
        draw.team,
        draw.slot(slot, &[1100, 1200, 2040, 3310, 4711])
    );
}
