//! What five observers write of the demo's account, in the shapes that they really write.
//!
//! None of them has heard of drift. Only the normalizers know what these documents mean.

use std::collections::BTreeMap;

use driftline_core::Value;
use driftline_sources::normalize::Model;
use jiff::{SignedDuration, Timestamp};

use crate::demo_data::{
    ACCOUNT, BALANCER, BUCKET, CLUSTER, DATABASE, DATABASE_SUBNETS, FUNCTION, FUNCTION_LOGS, GATEWAY, GLOBAL, INSTANCE,
    KEY, Kind, Now, Pass, QUEUE, REGIONS, ROLE, ROUTE_TABLE, SECRET, SECURITY_GROUP, STACK, SUBNET, TABLE, TASK_LOGS,
    TOPIC, Thing, USER, VOLUME, VPC, ZONES, service_name, things, things_in,
};
use crate::demo_relations::{Zone, graph, orphans_document, records_document, zones_document};

macro_rules! object {
    ($($member:ident: $value:expr),* $(,)?) => {
        driftline_core::Value::from([$((stringify!($member), driftline_core::Value::from($value))),*])
    };
}
pub(crate) use object;

/// A document as its observer wrote it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Written {
    pub model: Model,
    /// Its file's name, without the ending.
    pub name: String,
    pub text: String,
}

/// The observers, each with the name of its source in the demo.
pub(crate) const SOURCES: [(Model, &str); 5] = [
    (Model::Adopt, "adopt/demo"),
    (Model::Inventory, "inventory/demo"),
    (Model::Config, "config/demo"),
    (Model::Dns, "dns/demo"),
    (Model::EventTopology, "event-topology/demo"),
];

/// Everything that the five observers write in one pass.
pub(crate) fn documents(pass: Pass, taken_at: Timestamp) -> Vec<Written> {
    let now = Now { pass, taken_at };
    let mut written = Vec::new();
    let mut write = |model: Model, part: &str, mut document: Value| {
        reorder(&mut document, pass);
        written.push(Written { model, name: format!("{}-{part}", model.name()), text: document.to_json() });
    };
    for region in REGIONS {
        write(Model::Adopt, region, discovery(region, now));
        write(Model::Inventory, region, inventory(region, now));
        write(Model::Config, region, compliance(region, now));
        write(Model::EventTopology, region, graph(region, now));
    }
    write(Model::Inventory, "scan", scan(now));
    let zones: Vec<Zone> = ZONES.iter().map(|(name, hosts)| Zone::new(name, *hosts, now)).collect();
    write(Model::Dns, "zones", zones_document(&zones, now));
    write(Model::Dns, "records", records_document(&zones, now));
    write(Model::Dns, "orphans", orphans_document(&zones, now));
    written
}

/// Pages come in any order. Only the layers of a function have one.
fn reorder(value: &mut Value, pass: Pass) {
    match value {
        Value::Array(items) => {
            let third = items.len() / 3;
            match pass {
                Pass::Baseline => {}
                Pass::Unchanged => items.reverse(),
                Pass::Drifted => items.rotate_left(third),
            }
            for item in items {
                reorder(item, pass);
            }
        }
        Value::Object(members) => {
            for (_, member) in members.iter_mut().filter(|(name, _)| *name != "layers") {
                reorder(member, pass);
            }
        }
        _ => {}
    }
}

pub(crate) fn number(count: usize) -> Value {
    Value::from(count as u64)
}

/// How many there are of each.
pub(crate) fn tally<'a>(names: impl Iterator<Item = &'a str>) -> Value {
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    names.for_each(|name| *counts.entry(name.to_owned()).or_default() += 1);
    Value::Object(counts.into_iter().map(|(name, count)| (name, count.into())).collect())
}

pub(crate) fn fetched(now: Now) -> String {
    now.ago(SignedDuration::ZERO)
}

/// What belongs to the stack has the tags that stacks give.
fn tags(thing: &Thing) -> Value {
    if thing.is_of_the_stack() {
        return Value::from([
            ("Name", thing.name.as_str().into()),
            ("aws:cloudformation:stack-name", STACK.into()),
            ("aws:cloudformation:logical-id", thing.name[STACK.len() + 1..].into()),
        ]);
    }
    let team = thing.name.split('-').next().unwrap_or_default();
    object! { Name: thing.name.as_str(), env: thing.dice("env").pick(&["prod", "staging"]), team: team }
}

/// adopt, spec `discovery`. It says neither when nor of which account.
fn discovery(region: &'static str, now: Now) -> Value {
    let list = |kind: Kind| things_in(kind, region, now).iter().map(adopted).collect::<Vec<_>>();
    let lists = [
        ("vpcs", list(VPC)),
        ("subnets", list(SUBNET)),
        ("internetGateways", list(GATEWAY)),
        ("routeTables", list(ROUTE_TABLE)),
        ("securityGroups", list(SECURITY_GROUP)),
        ("rdsClusters", list(CLUSTER)),
        ("rdsInstances", list(DATABASE)),
        ("dbSubnetGroups", list(DATABASE_SUBNETS)),
        ("secrets", list(SECRET)),
    ];
    let vpcs: Vec<String> = things_in(VPC, region, now).iter().map(Thing::short_id).collect();
    let create = |vpc: &String| format!("swamp model create @swamp/aws/ec2/vpc 'adopt-vpc-{}'", &vpc[vpc.len() - 8..]);
    object! {
        region: region, truncated: false,
        setupCommands: vpcs.iter().map(create).collect::<Vec<_>>(),
        workflowCommand: format!("swamp workflow run @webframp/adopt-stack --input vpcId='{}'", vpcs[0]),
        summary: object! {
            totalResources: number(lists.iter().map(|(_, items)| items.len()).sum()),
            byType: Value::from(lists.clone().map(|(name, items)| (name, number(items.len())))),
        },
        discovered: Value::from(lists.map(|(name, items)| (name, Value::Array(items)))),
    }
}

fn adopted(thing: &Thing) -> Value {
    let (name, id, mut dice) = (thing.name.as_str(), thing.short_id(), thing.dice("adopt"));
    let (vpc, net) = thing.vpc();
    let cidr = format!("10.{net}.0.0/16");
    let subnets = || (0..3).map(|at| subnet(thing, at)).collect::<Vec<_>>();
    match thing.kind {
        VPC => object! {
            vpcId: id, cidrBlock: cidr, state: "available", isDefault: false, tags: tags(thing), name: name,
        },
        SUBNET => object! {
            subnetId: id, vpcId: vpc, cidrBlock: format!("10.{net}.{}.0/24", thing.number), name: name,
            availabilityZone: thing.zone(), mapPublicIpOnLaunch: name.ends_with("public"), tags: tags(thing),
        },
        GATEWAY => object! { internetGatewayId: id, attachedVpcIds: vec![vpc], tags: tags(thing), name: name },
        ROUTE_TABLE => {
            let gateway = thing.other(GATEWAY, service_name(thing.number % 3, &["igw"])).short_id();
            // A blackhole for as long as the gateway is away.
            let state = thing.moving("route").pick(&["active", "active", "active", "blackhole"]);
            object! {
                routeTableId: id, vpcId: vpc, isMain: false, tags: tags(thing), name: name,
                associatedSubnets: subnets(),
                routes: vec![
                    object! { destination: cidr, target: "local", state: "active" },
                    object! { destination: "0.0.0.0/0", target: gateway, state: state },
                ],
            }
        }
        SECURITY_GROUP => {
            let ingress = dice.below(7);
            // The second intervention: port 8080 from 10.0.0.0/8.
            let ingress = if thing.is_of_the_stack() { thing.before_and_after(0, 1) } else { ingress };
            object! {
                groupId: id, groupName: name, vpcId: vpc, description: format!("Traffic of {name}"), name: name,
                ingressRuleCount: ingress, egressRuleCount: 1_u64, tags: tags(thing),
            }
        }
        CLUSTER => {
            let members = things_in(DATABASE, thing.region, thing.now);
            let members = members.iter().filter(|member| cluster(member).as_deref() == Some(name));
            let host = |middle: &str| format!("{name}.{middle}c0ffee.{}.rds.amazonaws.com", thing.region);
            object! {
                clusterIdentifier: name, engine: "aurora-postgresql", engineVersion: "16.6", status: status(thing),
                endpoint: host("cluster-"), readerEndpoint: host("cluster-ro-"), port: 5432_u64,
                dbSubnetGroup: service_name(0, &["subnets"]),
                vpcSecurityGroups: ["db", "app"].map(|word| group(thing, word)).to_vec(),
                members: members.map(|member| member.name.clone()).collect::<Vec<_>>(),
            }
        }
        DATABASE => {
            let Value::Object(mut members) = database(thing) else { unreachable!("a database is an object") };
            members.insert("dbInstanceIdentifier".into(), name.into());
            members.insert("clusterIdentifier".into(), cluster(thing).unwrap_or_default().into());
            members.insert("dbSubnetGroup".into(), service_name(0, &["subnets"]).into());
            Value::Object(members)
        }
        DATABASE_SUBNETS => object! {
            name: name, description: format!("Subnets of {name}"), vpcId: vpc, subnetIds: subnets(),
            status: thing.moving("status").pick(&["Complete", "Complete", "Complete", "Modifying"]),
        },
        _ => {
            let rotated =
                thing.now.ago(SignedDuration::from_mins(thing.moving("rotation").below(10_000).cast_signed()));
            let rotated = if thing.number == 0 { Value::Null } else { rotated.into() };
            object! {
                name: name, arn: thing.id(), description: "Rotated by itself", lastChangedDate: rotated,
                tags: tags(thing),
            }
        }
    }
}

fn subnet(thing: &Thing, at: usize) -> String {
    thing.other(SUBNET, service_name((thing.number + at) % 16, &["public"])).short_id()
}

fn group(thing: &Thing, word: &str) -> String {
    thing.other(SECURITY_GROUP, service_name(0, &[word])).short_id()
}

/// Databases are backed up and looked after by themselves.
fn status(thing: &Thing) -> &'static str {
    thing.moving("status").pick(&["available", "available", "available", "backing-up", "maintenance"])
}

/// The cluster of a database, if it is in one: the first two of each cluster are.
fn cluster(database: &Thing) -> Option<String> {
    let clusters = things_in(CLUSTER, database.region, database.now);
    (database.number < 2 * clusters.len()).then(|| clusters[database.number % clusters.len()].name.clone())
}

/// What adopt and inventory both say of a database.
fn database(thing: &Thing) -> Value {
    let mut dice = thing.dice("database");
    object! {
        dbInstanceClass: dice.pick(&["db.r6g.large", "db.t4g.medium"]), status: status(thing),
        engine: if cluster(thing).is_some() { "aurora-postgresql" } else { "postgres" }, engineVersion: "16.6",
        availabilityZone: thing.zone(), multiAz: dice.pick(&[true, false]), storageType: "gp3",
        allocatedStorage: dice.pick(&[100_u64, 400]),
    }
}

/// inventory, spec `inventory`, instance `all-<region>`. It is asked for volumes and not for buckets: those are in
/// the scan, as they are in the story, and there are as many of them as there, however they are counted.
fn inventory(region: &'static str, now: Now) -> Value {
    let list = |kind: Kind| things_in(kind, region, now).iter().map(inventoried).collect::<Vec<_>>();
    let lists = [
        ("ec2", list(INSTANCE)),
        ("rds", list(DATABASE)),
        ("dynamodb", list(TABLE)),
        ("lambda", list(FUNCTION)),
        ("ebs", list(VOLUME)),
    ];
    object! {
        region: region, resourceType: "all", fetchedAt: fetched(now),
        count: number(lists.iter().map(|(_, items)| items.len()).sum()),
        resources: Value::from(lists.map(|(name, items)| (name, Value::Array(items)))),
    }
}

fn inventoried(thing: &Thing) -> Value {
    let (name, id, mut dice, mut moving) =
        (thing.name.as_str(), thing.short_id(), thing.dice("inventory"), thing.moving("inventory"));
    match thing.kind {
        // Stopped ones are asked for, too.
        INSTANCE => object! {
            instanceId: id, instanceType: dice.pick(&["t3.medium", "m6i.large", "c6g.xlarge", "r6i.2xlarge"]),
            availabilityZone: thing.zone(), platform: Value::Null, tags: tags(thing),
            state: moving.pick(&["running", "running", "running", "stopped"]), launchTime: moving.date(),
        },
        DATABASE => {
            let Value::Object(mut members) = database(thing) else { unreachable!("a database is an object") };
            members.insert("dbInstanceId".into(), name.into());
            Value::Object(members)
        }
        TABLE => object! {
            tableName: name, tableStatus: moving.pick(&["ACTIVE", "ACTIVE", "ACTIVE", "UPDATING"]),
            billingMode: "PAY_PER_REQUEST", readCapacityUnits: Value::Null, writeCapacityUnits: Value::Null,
            itemCount: moving.below(1 << 20), tableSizeBytes: moving.below(1 << 30),
        },
        FUNCTION => function(thing),
        _ => {
            let device = if name.contains("root") { "/dev/xvda" } else { "/dev/sdf" };
            let state = moving.pick(&["attached", "attached", "attached", "busy"]);
            object! {
                volumeId: id, volumeType: "gp3", size: dice.pick(&[8_u64, 100, 500]), state: "in-use",
                availabilityZone: thing.zone(), encrypted: dice.pick(&[true, true, false]), isAttached: true,
                attachments: vec![object! { instanceId: thing.instance().short_id(), device: device, state: state }],
                createTime: dice.date(), tags: tags(thing),
            }
        }
    }
}

fn function(thing: &Thing) -> Value {
    let (name, mut dice) = (thing.name.as_str(), thing.dice("function"));
    let timeout = dice.pick(&[10, 15, 60, 300]);
    // The first intervention.
    let timeout = if thing.is_of_the_stack() { thing.before_and_after(3, 30) } else { timeout };
    // Some are deployed again as they are; the stack's function only with its new timeout.
    let (first, mut again) = (dice.date(), thing.moving("deployed"));
    let modified = match thing.is_of_the_stack() {
        true if thing.now.pass == Pass::Drifted => thing.now.ago(SignedDuration::from_mins(20)),
        false if again.below(4) == 0 => again.date(),
        _ => first,
    };
    let vpc = dice.pick(&[true, false, false]) && !thing.is_of_the_stack();
    let layer = |layer: &str, size: u64| {
        let arn = format!("arn:aws:lambda:{}:{ACCOUNT}:layer:{layer}:{}", thing.region, size % 40);
        object! { arn: arn, codeSize: size }
    };
    let layers = if vpc { vec![layer("tracing", 1_204_331), layer("shared", 88_017)] } else { Vec::new() };
    let network = object! {
        vpcId: thing.vpc().0, subnetIds: (0..2).map(|at| subnet(thing, at)).collect::<Vec<_>>(),
        securityGroupIds: ["app", "web"].map(|word| group(thing, word)).to_vec(),
    };
    object! {
        functionName: name, runtime: dice.pick(&["nodejs22.x", "python3.13"]), handler: "index.handler",
        memorySize: dice.pick(&[128_u64, 256, 512, 1024]), timeout: timeout, codeSize: 20_000 + dice.below(4_000_000),
        lastModified: modified.replace('Z', "+0000"), architecture: dice.pick(&["arm64", "x86_64"]), layers: layers,
        vpcConfig: if vpc { network } else { Value::Null },
        environment: object! { LOG_LEVEL: "[REDACTED]", API_TOKEN: "[REDACTED]" }, ephemeralStorageSize: 512_u64,
        deadLetterConfig: Value::Null, tracingConfig: "PassThrough", reservedConcurrency: Value::Null,
    }
}

/// Types of the scan that no `inventory` document has. A real scan lists those, too; here each thing is in one of
/// the two, so that the figures are those of the story.
const SCANNED: [Kind; 7] = [QUEUE, TOPIC, FUNCTION_LOGS, TASK_LOGS, BALANCER, BUCKET, KEY];

/// How much of the scan is missing when it stops at its page limit: 46 of the 67 buckets, and all keys. The limit is
/// twenty pages; of how many items a page is, is up to the index.
const CUT_OFF: usize = 104;

/// inventory, spec `scan`, instance `result`.
fn scan(now: Now) -> Value {
    let mut scanned: Vec<Thing> = SCANNED.iter().flat_map(|kind| things(*kind, now)).collect();
    let truncated = now.pass == Pass::Drifted;
    if truncated {
        scanned.truncate(scanned.len() - CUT_OFF);
    }
    let item = |thing: &Thing| {
        // The ARN of a bucket has neither; the observer takes the region that it asked for the one, and nothing for the other.
        let global = thing.region == GLOBAL;
        object! {
            arn: thing.id(), resourceType: thing.kind.name, tags: tags(thing),
            region: if global { REGIONS[0] } else { thing.region }, accountId: if global { "" } else { ACCOUNT },
        }
    };
    let items: Vec<Value> = scanned.iter().map(item).collect();
    let is_log = |thing: &&Thing| thing.kind.name == TASK_LOGS.name;
    let logs: Vec<String> = scanned.iter().filter(is_log).map(Thing::id).collect();
    object! {
        source: "resource-explorer", sourceNote: format!("Resource Explorer 2 index queried in {}", REGIONS[0]),
        coverage: "full", region: REGIONS[0], fetchedAt: fetched(now), truncated: truncated,
        summary: object! {
            total: number(items.len()), byType: tally(scanned.iter().map(|thing| thing.kind.name)),
            byRegion: tally(scanned.iter().map(|thing| if thing.region == GLOBAL { REGIONS[0] } else { thing.region })),
            modelableCount: number(items.len() - logs.len()), unmodeledCount: number(logs.len()),
        },
        unmodeledTypes: vec![object! {
            resourceType: TASK_LOGS.name, count: number(logs.len()), sampleArns: logs[..3].to_vec(),
            recommendation: "build-extension", hint: "No swamp extension covers AWS::Logs.",
        }],
        resources: items,
    }
}

/// What Config evaluates: a type, how many of it in each region, and the rules that they break.
struct Evaluated(Kind, &'static [usize], [&'static str; 2]);

const EVALUATED: &[Evaluated] = &[
    Evaluated(USER, &[84], ["access-keys-rotated", "iam-user-mfa-enabled"]),
    Evaluated(ROLE, &[71], ["iam-no-inline-policy-check", "iam-policy-no-statements-with-admin-access"]),
    Evaluated(INSTANCE, &[32, 18, 10], ["ec2-imdsv2-check", "ec2-instance-no-public-ip"]),
    Evaluated(VOLUME, &[22, 12, 6], ["ec2-volume-inuse-check", "encrypted-volumes"]),
    Evaluated(DATABASE, &[12, 6, 4], ["rds-multi-az-support", "rds-storage-encrypted"]),
];

/// How many resources break two rules. To take each evaluation for a resource, and its id for a key, finds as many
/// of them drifted while nothing happens: the 133 of the story.
const TWICE: usize = 133;

/// Every evaluated thing with the rules that it breaks.
fn evaluated(now: Now) -> Vec<(Thing, Vec<&'static str>)> {
    let mut all = Vec::new();
    for Evaluated(kind, counts, rules) in EVALUATED {
        for thing in things(*kind, now) {
            let region = REGIONS.iter().position(|region| *region == thing.region).unwrap_or_default();
            if thing.number < counts[region] {
                all.push((thing, rules.to_vec()));
            }
        }
    }
    // Evenly spread over all.
    let count = all.len();
    for (at, (_, rules)) in all.iter_mut().enumerate() {
        let second = (at + 1) * TWICE / count > at * TWICE / count;
        rules.truncate(1 + usize::from(second));
    }
    all
}

/// config-compliance, spec `compliance`. What is global is evaluated in the first region.
fn compliance(region: &'static str, now: Now) -> Value {
    let mut rules: BTreeMap<&str, Vec<Value>> = BTreeMap::new();
    for (thing, broken) in evaluated(now) {
        if (if thing.region == GLOBAL { REGIONS[0] } else { thing.region }) != region {
            continue;
        }
        for rule in broken {
            let mut moving = thing.moving(rule);
            let evaluated_at = now.ago(SignedDuration::from_millis(moving.below(3_600_000).cast_signed()));
            let annotation = format!("Found again by evaluation {:06x}.", moving.below(1 << 24));
            rules.entry(rule).or_default().push(object! {
                resourceId: config_id(&thing), resourceType: thing.kind.name, resourceArn: Value::Null,
                accountId: ACCOUNT, region: region, complianceType: "NON_COMPLIANT", configRuleName: rule,
                annotation: if thing.number % 2 == 0 { Value::Null } else { annotation.into() },
                evaluatedAt: evaluated_at,
            });
        }
    }
    let evaluations: usize = rules.values().map(Vec::len).sum();
    object! {
        fetchedAt: fetched(now), accountId: ACCOUNT, region: region,
        summary: object! {
            totalRules: number(rules.len()), compliantRules: 0_u64, nonCompliantRules: number(rules.len()),
            totalEvaluations: number(evaluations), nonCompliantResources: number(evaluations),
        },
        evaluations: rules.into_values().flatten().collect::<Vec<_>>(),
    }
}

/// Config has names of its own for users, roles and databases.
fn config_id(thing: &Thing) -> String {
    let own = thing.dice("config").hex().to_uppercase();
    match thing.kind {
        USER => format!("AIDA{}", &own[..17]),
        ROLE => format!("AROA{}", &own[..17]),
        DATABASE => format!("db-{}", &own[..26]),
        _ => thing.short_id(),
    }
}
