//! What the demo observes: the account of the first document, before and after its three interventions.
//!
//! No clock and no chance: the properties of a thing come from dice seeded with its own name, so they are the
//! same in every pass, whatever else is observed and in whichever order.

use std::collections::{BTreeMap, BTreeSet};

use driftline_core::{
    Coverage, Extent, Header, Observation, Outcome, Place, Problem, Properties, Resource, ResourceKey, SourceName,
    Value,
};
use jiff::{SignedDuration, Timestamp};

macro_rules! object {
    ($($member:ident: $value:expr),* $(,)?) => { Value::from([$((stringify!($member), Value::from($value))),*]) };
}

/// Which pass of the story.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pass {
    /// What the account looks like when the baseline is set.
    Baseline,
    /// Nothing happened, yet clocks and counters went on and the pages came in another order.
    Unchanged,
    /// The three interventions, seen while one region was throttled.
    Drifted,
}

/// The five observers' observations of one pass.
pub(crate) fn observations(pass: Pass, taken_at: Timestamp) -> Vec<Observation> {
    let now = Now { pass, taken_at };
    let mut inventory = list(INVENTORY, inventoried, now);
    if pass == Pass::Drifted {
        throttle(&mut inventory);
    }
    [
        ("adopt/demo", list(ADOPT, adopted, now)),
        ("config/demo", list(CONFIG, evaluated, now)),
        ("dns/demo", dns(now)),
        ("event-topology/demo", topology(now)),
        ("inventory/demo", inventory),
    ]
    .map(|(source, listing)| listing.observation(source, now))
    .into()
}

const ACCOUNT: &str = "123456789012";
const REGIONS: [&str; 3] = ["us-east-1", "eu-west-1", "us-west-2"];
const GLOBAL: &str = "global";

/// The region in which the inventory is throttled in the last pass, how many of each type it had listed by then,
/// and what it says of it.
const THROTTLED: &str = "us-west-2";
const LISTED_BEFORE_THE_CUT: usize = 2;
const THROTTLE: &str = "throttled: Rate exceeded (ThrottlingException) after 8 attempts";

/// The stack that the story deploys and tampers with, in the first region; its things are named after it.
const STACK: &str = "drift-state-test";

const SERVICES: [&str; 16] = [
    "checkout", "orders", "payments", "catalog", "search", "identity", "billing", "shipping", "stock", "notify",
    "reports", "media", "pricing", "fraud", "loyalty", "returns",
];

/// A type, and the form of its ids: `{account}`, `{region}`, `{name}`, `{hex}`, `{HEX}` and `{uuid}` are filled in.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Kind {
    name: &'static str,
    id: &'static str,
}

macro_rules! kinds {
    ($($kind:ident = $name:literal, $id:literal;)*) => {
        $(const $kind: Kind = Kind { name: $name, id: $id };)*
    };
}

kinds! {
    BUCKET = "AWS::S3::Bucket", "arn:aws:s3:::{name}-{account}";
    DATABASE = "AWS::RDS::DBInstance", "arn:aws:rds:{region}:{account}:db:{name}";
    FUNCTION = "AWS::Lambda::Function", "arn:aws:lambda:{region}:{account}:function:{name}";
    FUNCTION_LOGS = "AWS::Logs::LogGroup", "arn:aws:logs:{region}:{account}:log-group:/aws/lambda/{name}";
    GATEWAY = "AWS::EC2::InternetGateway", "arn:aws:ec2:{region}:{account}:internet-gateway/igw-{hex}";
    INSTANCE = "AWS::EC2::Instance", "arn:aws:ec2:{region}:{account}:instance/i-{hex}";
    KEY = "AWS::KMS::Key", "arn:aws:kms:{region}:{account}:key/{uuid}";
    QUEUE = "AWS::SQS::Queue", "arn:aws:sqs:{region}:{account}:{name}";
    ROLE = "AWS::IAM::Role", "arn:aws:iam::{account}:role/{name}";
    ROUTE_TABLE = "AWS::EC2::RouteTable", "arn:aws:ec2:{region}:{account}:route-table/rtb-{hex}";
    RULE = "AWS::Events::Rule", "arn:aws:events:{region}:{account}:rule/{name}";
    SECURITY_GROUP = "AWS::EC2::SecurityGroup", "arn:aws:ec2:{region}:{account}:security-group/sg-{hex}";
    SUBNET = "AWS::EC2::Subnet", "arn:aws:ec2:{region}:{account}:subnet/subnet-{hex}";
    TABLE = "AWS::DynamoDB::Table", "arn:aws:dynamodb:{region}:{account}:table/{name}";
    TASK_LOGS = "AWS::Logs::LogGroup", "arn:aws:logs:{region}:{account}:log-group:/ecs/{name}";
    TOPIC = "AWS::SNS::Topic", "arn:aws:sns:{region}:{account}:{name}";
    USER = "AWS::IAM::User", "arn:aws:iam::{account}:user/{name}";
    VOLUME = "AWS::EC2::Volume", "arn:aws:ec2:{region}:{account}:volume/vol-{hex}";
    VPC = "AWS::EC2::VPC", "arn:aws:ec2:{region}:{account}:vpc/vpc-{hex}";
    ZONE = "AWS::Route53::HostedZone", "arn:aws:route53:::hostedzone/Z{HEX}";
}

/// These two have no ARN.
const RECORD: &str = "AWS::Route53::RecordSet";
const EDGE: &str = "Driftline::Topology::Edge";

type Words = &'static [&'static str];

/// One type that an observer lists: how many in each region, or in the account as a whole, and the last words of
/// their names; then the last words of the stack's own, which come on top.
struct Row(Kind, &'static [usize], Words, Words);

/// Their first words are those of [`FLOW`].
const FUNCTION_WORDS: Words = &["handler", "worker", "authorizer", "webhook", "stream", "cron", "resizer"];
const QUEUE_WORDS: Words = &["jobs", "dlq", "audit", "replay"];
const TOPIC_WORDS: Words = &["events", "alarms"];

const INVENTORY: &[Row] = &[
    Row(INSTANCE, &[150, 90, 38], &["web", "app", "batch"], &[]),
    Row(FUNCTION, &[108, 64, 26], FUNCTION_WORDS, &["fn"]),
    Row(BUCKET, &[67], &["assets", "logs", "backups", "uploads", "artifacts"], &[]),
    Row(TABLE, &[44, 26, 10], &["state", "sessions", "events"], &[]),
    Row(KEY, &[40, 24, 8], &["data", "logs", "secrets"], &[]),
    Row(QUEUE, &[62, 38, 20], QUEUE_WORDS, &["queue", "dlq"]),
    Row(TOPIC, &[26, 18, 10], TOPIC_WORDS, &["topic"]),
    Row(FUNCTION_LOGS, &[108, 64, 26], FUNCTION_WORDS, &["fn"]),
    Row(TASK_LOGS, &[32, 16, 2], &["app", "batch"], &[]),
];

/// How many VPCs each region has, apart from the stack's.
const VPCS: [usize; 3] = [6, 4, 3];

const ADOPT: &[Row] = &[
    Row(VPC, &VPCS, &["vpc"], &["vpc"]),
    Row(SUBNET, &[42, 28, 21], &["public", "private", "data"], &["subnet-a", "subnet-b"]),
    Row(GATEWAY, &VPCS, &["igw"], &["igw"]),
    Row(ROUTE_TABLE, &[18, 12, 9], &["public", "private"], &["rtb"]),
    Row(SECURITY_GROUP, &[24, 15, 7], &["web", "app", "db"], &["sg"]),
    Row(DATABASE, &[22, 14, 8], &["db", "replica"], &[]),
];

/// Instances and databases are seen by a second observer here, under the same keys. Buckets, security groups and
/// event rules are seen by one only, so that there are as many of them as in the story, however they are counted.
const CONFIG: &[Row] = &[
    Row(USER, &[84], &["deploy", "ci", "readonly", "backup", "oncall", "support"], &[]),
    Row(ROLE, &[70], &["task", "exec", "build", "audit", "lambda"], &["fn-role"]),
    Row(INSTANCE, &[32, 18, 10], &["web", "app", "batch"], &[]),
    Row(VOLUME, &[22, 12, 6], &["root", "data"], &[]),
    Row(DATABASE, &[12, 6, 4], &["db", "replica"], &[]),
];

/// What Config evaluates, by type.
const COMPLIANCE_RULES: &[(Kind, Words)] = &[
    (USER, &["access-keys-rotated", "iam-user-mfa-enabled", "iam-user-no-policies-check"]),
    (ROLE, &["iam-no-inline-policy-check", "iam-policy-no-statements-with-admin-access"]),
    (INSTANCE, &["ec2-ebs-optimized-instance", "ec2-imdsv2-check", "ec2-instance-no-public-ip"]),
    (VOLUME, &["ec2-volume-inuse-check", "encrypted-volumes"]),
    (DATABASE, &["rds-instance-public-access-check", "rds-multi-az-support", "rds-storage-encrypted"]),
];

/// Zones, and how many names each has beside its own.
const ZONES: [(&str, usize); 4] = [("example.com", 40), ("example.net", 20), (PRIVATE_ZONE, 36), (STACK_ZONE, 0)];
const PRIVATE_ZONE: &str = "internal.example.com";
const STACK_ZONE: &str = "drift-state-test.example.org";
/// An instance that does not exist, which a name in the stack's zone stands for from the first pass on.
const DANGLING: &str = "ec2-203-0-113-10.compute-1.amazonaws.com";

/// Two ends, each a type and the last word of a name, and how the first leads to the second.
struct Step((Kind, &'static str), &'static str, (Kind, &'static str));

/// How events run through a service.
const FLOW: &[Step] = &[
    Step((RULE, "rule"), "targets", (FUNCTION, "handler")),
    Step((TOPIC, "events"), "subscription", (QUEUE, "jobs")),
    Step((QUEUE, "jobs"), "eventSource", (FUNCTION, "worker")),
    Step((QUEUE, "jobs"), "redrive", (QUEUE, "dlq")),
];

/// The services that have events, by region.
const FLOWS: [&[&str]; 3] = [
    &["checkout", "orders", "payments", "catalog", "search", "identity"],
    &["checkout", "orders", "payments"],
    &["checkout"],
];

const STACK_FLOW: &[Step] = &[
    Step((RULE, "rule"), "targets", (FUNCTION, "fn")),
    Step((TOPIC, "topic"), "subscription", (QUEUE, "queue")),
    Step((QUEUE, "queue"), "redrive", (QUEUE, "dlq")),
];

/// The third intervention. No other observer sees this queue.
const ADDED_TARGET: &[Step] = &[Step((RULE, "rule"), "targets", (QUEUE, "alerts"))];

/// The pass, and what its clock says.
#[derive(Clone, Copy)]
struct Now {
    pass: Pass,
    taken_at: Timestamp,
}

/// `SplitMix64`, seeded with a name.
struct Dice(u64);

impl Dice {
    fn of(words: &[&str]) -> Self {
        // FNV-1a; the zero keeps "a", "bc" and "ab", "c" apart.
        let bytes = words.iter().flat_map(|word| word.bytes().chain([0]));
        Self(bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)))
    }

    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.roll() % end
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        let at = self.below(from.len() as u64);
        from[usize::try_from(at).expect("below the length of a slice")]
    }

    fn hex(&mut self) -> String {
        format!("{:016x}{:016x}", self.roll(), self.roll())
    }

    fn date(&mut self) -> String {
        let (year, month, day) = (2023 + self.below(3), 1 + self.below(12), 1 + self.below(28));
        format!("{year}-{month:02}-{day:02}T{:02}:{:02}:00Z", self.below(24), self.below(60))
    }
}

/// Something to be observed. Equal kind, region and name make an equal id, whoever looks.
#[derive(Clone)]
struct Thing {
    kind: Kind,
    region: &'static str,
    name: String,
    /// Its place among the things of its kind and region.
    number: usize,
    now: Now,
}

impl Thing {
    fn dice(&self, about: &str) -> Dice {
        Dice::of(&[self.kind.name, self.region, &self.name, about])
    }

    fn id(&self) -> String {
        let hex = self.dice("id").hex();
        let uuid = format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]);
        let filled = self.kind.id.replace("{account}", ACCOUNT).replace("{region}", self.region);
        let filled = filled.replace("{hex}", &hex[..17]).replace("{HEX}", &hex[..17].to_uppercase());
        filled.replace("{uuid}", &uuid).replace("{name}", &self.name)
    }

    /// What comes after the last of these marks in the id.
    fn id_after(&self, marks: &[char]) -> String {
        self.id().rsplit(marks).next().unwrap_or_default().to_owned()
    }

    /// The id within its type and place: `sg-…`, or the name.
    fn short_id(&self) -> String {
        self.id_after(&['/', ':'])
    }

    /// What someone changed between the passes.
    fn before_and_after(&self, before: u64, after: u64) -> u64 {
        if self.now.pass == Pass::Drifted { after } else { before }
    }

    fn is_of_the_stack(&self) -> bool {
        self.name.starts_with(STACK)
    }

    fn zone(&self) -> String {
        format!("{}{}", self.region, self.dice("zone").pick(&["a", "b", "c"]))
    }

    /// The VPC it lives in, and the second number of that VPC's addresses.
    fn vpc(&self) -> (String, usize) {
        let region = REGIONS.iter().position(|region| *region == self.region).unwrap_or_default();
        let number = if self.is_of_the_stack() { VPCS[region] } else { self.number % VPCS[region] };
        let name = if self.is_of_the_stack() { stack_name("vpc") } else { service_name(number, &["vpc"]) };
        (Thing { kind: VPC, name, ..self.clone() }.short_id(), 16 * region + number)
    }

    fn tags(&self) -> Value {
        if self.is_of_the_stack() {
            return object! { Name: self.name.as_str(), stack: STACK };
        }
        let team = self.name.split('-').next().unwrap_or_default();
        object! { Name: self.name.as_str(), env: self.dice("env").pick(&["prod", "staging"]), team: team }
    }
}

fn stack_name(word: &str) -> String {
    format!("{STACK}-{word}")
}

/// The name of the n-th thing: every service has a first word before any has a second.
fn service_name(number: usize, words: &[&str]) -> String {
    let (service, round) = (SERVICES[number % SERVICES.len()], number / SERVICES.len());
    let word = words[round % words.len()];
    match round / words.len() {
        0 => format!("{service}-{word}"),
        again => format!("{service}-{word}-{}", again + 1),
    }
}

/// What one observer says in one pass.
#[derive(Default)]
struct Listing {
    resources: Vec<Resource>,
    coverage: Coverage,
    problems: Vec<Problem>,
}

impl Listing {
    fn cover(&mut self, kind: &str, region: &str, outcome: Outcome) {
        self.coverage.record(Extent { kind: kind.to_owned(), place: place(region) }, outcome);
    }

    fn add(&mut self, kind: &str, region: &str, id: String, properties: &Value) {
        let key = ResourceKey { kind: kind.to_owned(), place: Place::new(place(region)), id };
        self.resources.push(Resource { key, properties: Properties::new(properties) });
    }

    fn observation(mut self, source: &str, now: Now) -> Observation {
        if now.pass == Pass::Unchanged {
            self.resources.reverse();
        }
        let source: SourceName = source.parse().expect("a source name written in `observations`");
        let mut observation = Observation::new(Header {
            stream: source.into(),
            taken_at: now.taken_at,
            observer: Some("driftline demo".into()),
            coverage: self.coverage,
            problems: self.problems,
        });
        for resource in self.resources {
            observation.insert(resource).expect("no two rows make the same id");
        }
        observation
    }
}

fn place(region: &str) -> String {
    format!("aws/{ACCOUNT}/{region}")
}

fn list(rows: &[Row], seen: fn(&Thing) -> Value, now: Now) -> Listing {
    let mut listing = Listing::default();
    for Row(kind, counts, words, stack) in rows {
        let regions = if counts.len() == 1 { &[GLOBAL] } else { &REGIONS[..] };
        for (at, (region, count)) in regions.iter().zip(*counts).enumerate() {
            listing.cover(kind.name, region, Outcome::Complete);
            let stack = stack.iter().filter(|_| at == 0).map(|word| stack_name(word));
            for (number, name) in (0..*count).map(|number| service_name(number, words)).chain(stack).enumerate() {
                let thing = Thing { kind: *kind, region, name, number, now };
                listing.add(kind.name, region, thing.id(), &seen(&thing));
            }
        }
    }
    listing
}

/// Cuts the listing of one region short, and says so of every type that is listed there.
fn throttle(listing: &mut Listing) {
    let place = place(THROTTLED);
    let mut listed: BTreeMap<String, usize> = BTreeMap::new();
    listing.resources.retain(|resource| {
        let listed = listed.entry(resource.key.kind.clone()).or_default();
        *listed += usize::from(resource.key.place.as_str() == place);
        resource.key.place.as_str() != place || *listed <= LISTED_BEFORE_THE_CUT
    });
    let kinds = listing.coverage.iter().filter(|(_, at, _)| *at == place).map(|(kind, ..)| kind.to_owned());
    for kind in kinds.collect::<Vec<_>>() {
        listing.cover(&kind, THROTTLED, Outcome::Partial { reason: THROTTLE.into() });
    }
    listing.problems.push(Problem { about: place, message: THROTTLE.into() });
}

/// What the inventory sees of a thing.
fn inventoried(thing: &Thing) -> Value {
    let (name, id, mut dice) = (thing.name.as_str(), thing.short_id(), thing.dice("inventory"));
    match thing.kind {
        FUNCTION => function(thing),
        INSTANCE => object! {
            instanceId: id, instanceType: dice.pick(&["t3.medium", "m6i.large", "c6g.xlarge", "r6i.2xlarge"]),
            state: dice.pick(&["running", "running", "running", "stopped"]), availabilityZone: thing.zone(),
            platform: Value::Null, launchTime: dice.date(), tags: thing.tags(),
        },
        BUCKET => object! {
            bucketName: id, creationDate: dice.date(), bucketRegion: dice.pick(&REGIONS), encryption: "AES256",
            versioning: dice.pick(&["Enabled", "Suspended"]), blockPublicAccess: true,
        },
        TABLE => object! {
            tableName: name, tableStatus: "ACTIVE", billingMode: "PAY_PER_REQUEST", readCapacityUnits: Value::Null,
            writeCapacityUnits: Value::Null, deletionProtectionEnabled: dice.pick(&[true, false]),
        },
        KEY => object! {
            keyId: id, aliases: vec![format!("alias/{name}")], keyState: "Enabled", keySpec: "SYMMETRIC_DEFAULT",
            keyRotationEnabled: dice.pick(&[true, true, true, false]),
        },
        QUEUE => object! {
            queueName: name, visibilityTimeout: dice.pick(&[30_u64, 60, 300]), fifoQueue: false,
            messageRetentionPeriod: dice.pick(&[345_600_u64, 1_209_600]), sqsManagedSseEnabled: true,
        },
        TOPIC => object! { topicName: name, displayName: "", fifoTopic: false, kmsMasterKeyId: "alias/aws/sns" },
        _ => object! {
            logGroupName: thing.id_after(&[':']), retentionInDays: dice.pick(&[7_u64, 30, 90, 365]),
            logGroupClass: "STANDARD", kmsKeyId: Value::Null,
        },
    }
}

fn function(thing: &Thing) -> Value {
    let (name, mut dice) = (thing.name.as_str(), thing.dice("function"));
    let timeout = dice.pick(&[10, 15, 60, 300]);
    // The first intervention.
    let timeout = if thing.is_of_the_stack() { thing.before_and_after(3, 30) } else { timeout };
    object! {
        functionName: name, runtime: dice.pick(&["nodejs22.x", "python3.13"]), handler: "index.handler",
        memorySize: dice.pick(&[128_u64, 256, 512, 1024]), timeout: timeout, codeSize: 20_000 + dice.below(4_000_000),
        architecture: dice.pick(&["arm64", "x86_64"]), vpcConfig: Value::Null, layers: Value::Array(Vec::new()),
        environment: object! { variables: object! {
            LOG_LEVEL: "info", SERVICE: name, API_TOKEN: format!("demo-token-{}", dice.hex()),
        } },
    }
}

/// What adopt sees of a thing.
fn adopted(thing: &Thing) -> Value {
    let (name, id, mut dice) = (thing.name.as_str(), thing.short_id(), thing.dice("adopt"));
    let (vpc, net) = thing.vpc();
    let cidr = format!("10.{net}.0.0/16");
    match thing.kind {
        VPC => object! {
            vpcId: id, cidrBlock: cidr, state: "available", isDefault: false, tags: thing.tags(), name: name,
        },
        SUBNET => object! {
            subnetId: id, vpcId: vpc, cidrBlock: format!("10.{net}.{}.0/24", thing.number), name: name,
            availabilityZone: thing.zone(), mapPublicIpOnLaunch: name.ends_with("public"), tags: thing.tags(),
        },
        GATEWAY => object! { internetGatewayId: id, attachedVpcIds: vec![vpc], tags: thing.tags(), name: name },
        ROUTE_TABLE => object! {
            routeTableId: id, vpcId: vpc, isMain: false, associatedSubnets: Value::Array(Vec::new()), name: name,
            routes: vec![object! { destination: cidr, target: "local", state: "active" }], tags: thing.tags(),
        },
        SECURITY_GROUP => {
            let ingress = dice.below(7);
            // The second intervention: port 8080 from 10.0.0.0/8.
            let ingress = if thing.is_of_the_stack() { thing.before_and_after(0, 1) } else { ingress };
            object! {
                groupId: id, groupName: name, vpcId: vpc, description: format!("Traffic of {name}"), name: name,
                ingressRuleCount: ingress, egressRuleCount: 1_u64, tags: thing.tags(),
            }
        }
        _ => object! {
            dbInstanceIdentifier: name, dbInstanceClass: dice.pick(&["db.r6g.large", "db.t4g.medium"]),
            engine: "postgres", engineVersion: "16.6", status: "available", availabilityZone: thing.zone(),
            multiAz: dice.pick(&[true, false]), storageType: "gp3", allocatedStorage: dice.pick(&[100_u64, 400]),
        },
    }
}

/// What Config says of a thing: all rules in one map, so that the order of evaluations cannot matter.
fn evaluated(thing: &Thing) -> Value {
    let rules = COMPLIANCE_RULES.iter().filter(|(kind, _)| *kind == thing.kind).flat_map(|(_, rules)| *rules);
    let verdict = |rule| thing.dice(rule).pick(&["COMPLIANT", "COMPLIANT", "COMPLIANT", "NON_COMPLIANT"]);
    let verdicts = rules.map(|rule| ((*rule).to_owned(), verdict(rule).into())).collect();
    // Later passes evaluate anew: even at the same instant, the time is another one.
    let age = thing.dice("age").below(3_600_000) + thing.now.pass as u64;
    let evaluated_at = thing.now.taken_at - SignedDuration::from_millis(age.cast_signed());
    object! {
        resourceId: thing.short_id(), resourceType: thing.kind.name, resourceArn: thing.id(), accountId: ACCOUNT,
        region: thing.region, rules: Value::Object(verdicts), evaluatedAt: evaluated_at.to_string(),
    }
}

fn dns(now: Now) -> Listing {
    let mut listing = Listing::default();
    listing.cover(ZONE.name, GLOBAL, Outcome::Complete);
    listing.cover(RECORD, GLOBAL, Outcome::Complete);
    for (name, hosts) in ZONES {
        let zone = Thing { kind: ZONE, region: GLOBAL, name: name.to_owned(), number: 0, now };
        let (zone_id, records) = (zone.short_id(), records(&zone, hosts));
        let properties = object! {
            id: zone_id.as_str(), name: name, isPrivate: name == PRIVATE_ZONE, recordCount: records.len() as u64,
            comment: Value::Null,
        };
        listing.add(ZONE.name, GLOBAL, zone.id(), &properties);
        for (host, kind, target) in records {
            let orphan = object! { target: target.as_str(), reason: "cname_target_instance_not_found" };
            let orphan = if target == DANGLING { orphan } else { Value::Null };
            let properties = object! {
                zoneId: zone_id.as_str(), zoneName: name, name: host.as_str(), type: kind, ttl: 300_u64,
                values: vec![target], aliasTarget: Value::Null, orphan: orphan,
            };
            listing.add(RECORD, GLOBAL, format!("{zone_id}/{host}/{kind}"), &properties);
        }
    }
    listing
}

/// The records of a zone: name, type, target.
fn records(zone: &Thing, hosts: usize) -> Vec<(String, &'static str, String)> {
    let server = "ns-1.awsdns-01.org.";
    let authority = format!("{server} awsdns-hostmaster.amazon.com. 1 7200 900 1209600 86400");
    let mut records = vec![(zone.name.clone(), "NS", server.to_owned()), (zone.name.clone(), "SOA", authority)];
    if zone.name == STACK_ZONE {
        records.push((format!("app.{STACK_ZONE}"), "CNAME", DANGLING.to_owned()));
    }
    let net = if zone.name == PRIVATE_ZONE { "10.0.0" } else { "203.0.113" };
    for host in (0..hosts).map(|number| service_name(number, &["api", "www", "admin"])) {
        let mut dice = zone.dice(&host);
        let balancer = format!("{host}-{}.{}.elb.amazonaws.com", dice.below(1 << 30), dice.pick(&REGIONS));
        let address = format!("{net}.{}", 1 + dice.below(254));
        let (kind, target) = if dice.below(3) == 0 { ("CNAME", balancer) } else { ("A", address) };
        records.push((format!("{host}.{}", zone.name), kind, target));
    }
    records
}

/// From, how, to.
type Edge = (Thing, &'static str, Thing);

fn topology(now: Now) -> Listing {
    let mut listing = Listing::default();
    for region in REGIONS {
        for kind in [RULE.name, TOPIC.name, QUEUE.name, FUNCTION.name, EDGE] {
            listing.cover(kind, region, Outcome::Complete);
        }
    }
    let edges = edges(now);
    let nodes: BTreeMap<_, _> = edges.iter().flat_map(|(from, _, to)| [(from.id(), from), (to.id(), to)]).collect();
    for (id, node) in nodes {
        let properties = node_properties(node, &edges);
        listing.add(node.kind.name, node.region, id, &properties);
    }
    for (from, how, to) in &edges {
        let (from_id, to_id) = (from.id(), to.id());
        let id = format!("{from_id} -> {to_id}");
        let properties = object! { from: from_id, to: to_id, type: *how, attributes: edge_attributes(how, to) };
        listing.add(EDGE, from.region, id, &properties);
    }
    listing
}

fn edges(now: Now) -> Vec<Edge> {
    let mut edges = Vec::new();
    let mut follow = |region, service: &str, steps: &[Step]| {
        let end = |(kind, word)| Thing { kind, region, name: format!("{service}-{word}"), number: 0, now };
        edges.extend(steps.iter().map(|Step(from, how, to)| (end(*from), *how, end(*to))));
    };
    for (region, services) in REGIONS.into_iter().zip(FLOWS) {
        for service in services {
            follow(region, service, FLOW);
        }
    }
    follow(REGIONS[0], STACK, STACK_FLOW);
    if now.pass == Pass::Drifted {
        follow(REGIONS[0], STACK, ADDED_TARGET);
    }
    edges
}

fn node_properties(node: &Thing, edges: &[Edge]) -> Value {
    let (id, mut dice) = (node.id(), node.dice("messages"));
    let out: BTreeSet<String> = edges.iter().filter(|(from, ..)| from.id() == id).map(|(.., to)| to.id()).collect();
    let into = edges.iter().filter(|(.., to)| to.id() == id).count();
    let waiting = dice.below(200) + node.now.pass as u64 * (1 + dice.below(20));
    let metadata = match node.kind {
        RULE => object! { state: "ENABLED", scheduleExpression: Value::Null, hasEventPattern: true },
        QUEUE => object! { approximateMessageCount: waiting },
        _ => Value::Object(BTreeMap::new()),
    };
    object! {
        name: node.name.as_str(), accountId: ACCOUNT, region: node.region, isBoundary: false, metadata: metadata,
        inDegree: into as u64, outDegree: out.len() as u64, outEdges: out.into_iter().collect::<Vec<_>>(),
    }
}

fn edge_attributes(how: &str, to: &Thing) -> Value {
    match how {
        "targets" if to.kind == QUEUE => object! { targetId: "sqs-target", retryAttempts: Value::Null },
        "targets" => object! { targetId: "lambda-target", retryAttempts: Value::Null },
        "subscription" => object! { protocol: "sqs", isInternal: true },
        "redrive" => object! { maxReceiveCount: 5_u64 },
        _ => object! { state: "Enabled", batchSize: 10_u64 },
    }
}

#[cfg(test)]
mod tests {
    use driftline_core::judge::{Side, judge};
    use driftline_core::{RuleBook, Status};

    use super::*;

    /// The same instant for every pass: what changes by itself must change even so.
    fn observed(pass: Pass) -> Vec<Observation> {
        observations(pass, Timestamp::UNIX_EPOCH)
    }

    /// What Driftline's own rules say of a later pass against the baseline, and of how many resources.
    fn findings(later: Pass) -> BTreeMap<String, usize> {
        let book = RuleBook::new(driftline_sources::builtin::rules());
        let mut findings = BTreeMap::new();
        for (baseline, live) in observed(Pass::Baseline).iter().zip(&observed(later)) {
            for key in baseline.resources().chain(live.resources()).map(|(key, _)| key).collect::<BTreeSet<_>>() {
                let [expected, actual] = [baseline, live].map(|side| side.get(key).map(Properties::to_value));
                let expected = Side { value: expected.as_ref(), coverage: &baseline.header.coverage };
                let actual = Side { value: actual.as_ref(), coverage: &live.header.coverage };
                let found = judge(key.as_ref(), live.header.stream.source.as_str(), &expected, &actual, &book);
                let found = found.expect("it is on one side at least");
                let mut tell = |text: String| *findings.entry(text).or_default() += 1;
                match found.status {
                    Status::InSync => {}
                    Status::NotChecked => tell(format!("not checked: {} {}", live.header.stream, key.place)),
                    Status::Unknown | Status::Drifted => tell(format!("{:?}: {key}", found.status)),
                }
                let text = |value: Option<Value>| value.map_or("nothing".into(), |value| value.to_json());
                found.excused.into_iter().for_each(|it| tell(format!("excused: {}", it.change.path)));
                for it in found.changes {
                    tell(format!("changed: {}, {} -> {}", it.path, text(it.expected), text(it.actual)));
                }
            }
        }
        findings
    }

    const EXCUSED: [(&str, usize); 2] =
        [("excused: /evaluatedAt", 277), ("excused: /metadata/approximateMessageCount", 22)];

    fn check(later: Pass, expected: &[(&str, usize)]) {
        let expected = EXCUSED.iter().chain(expected).map(|(text, count)| ((*text).to_owned(), *count));
        assert_eq!(findings(later), expected.collect());
    }

    #[test]
    fn the_account_has_the_size_of_the_story() {
        let baseline = observed(Pass::Baseline);
        let sizes: Vec<_> = baseline.iter().map(|it| (it.header.stream.to_string(), it.resources().len())).collect();
        let expected = [
            ("adopt/demo", 252),
            ("config/demo", 277),
            ("dns/demo", 109),
            ("event-topology/demo", 108),
            ("inventory/demo", 1122),
        ];
        assert_eq!(sizes, expected.map(|(source, size)| (source.to_owned(), size)));
        assert_eq!(sizes.iter().map(|(_, size)| size).sum::<usize>(), 1868);
        for (kind, size) in [(SECURITY_GROUP, 47), (RULE, 11), (BUCKET, 67)] {
            let keys = baseline.iter().flat_map(Observation::resources).filter(|(key, _)| key.kind == kind.name);
            assert_eq!(keys.count(), size, "{}", kind.name);
        }
    }

    #[test]
    fn the_same_pass_is_the_same_observation() {
        for pass in [Pass::Baseline, Pass::Unchanged, Pass::Drifted] {
            assert_eq!(observed(pass), observed(pass));
        }
    }

    #[test]
    fn what_two_observers_see_has_one_key() {
        let [adopt, config, _, topology, inventory] = &observed(Pass::Baseline)[..] else { panic!("five observers") };
        for (key, _) in config.resources().chain(topology.resources()) {
            let shared = [INSTANCE, DATABASE, FUNCTION, QUEUE, TOPIC].iter().any(|kind| kind.name == key.kind);
            assert_eq!(inventory.get(key).or(adopt.get(key)).is_some(), shared, "{key}");
        }
    }

    #[test]
    fn while_nothing_happens_only_clocks_and_counters_go_on() {
        check(Pass::Unchanged, &[]);
        let headers = |pass| observed(pass).into_iter().map(|it| it.header).collect::<Vec<_>>();
        assert_eq!(headers(Pass::Baseline), headers(Pass::Unchanged));
    }

    #[test]
    fn three_interventions_and_a_throttled_region_are_all_there_is_to_tell() {
        let rule = "arn:aws:events:us-east-1:123456789012:rule/drift-state-test-rule";
        let alerts = "arn:aws:sqs:us-east-1:123456789012:drift-state-test-alerts";
        let name = stack_name("sg");
        let now = Now { pass: Pass::Drifted, taken_at: Timestamp::UNIX_EPOCH };
        let group = Thing { kind: SECURITY_GROUP, region: REGIONS[0], name, number: 0, now }.id();
        let expected = [
            &format!("Drifted: {group}"),
            "changed: /ingressRuleCount, 0 -> 1",
            "Drifted: arn:aws:lambda:us-east-1:123456789012:function:drift-state-test-fn",
            "changed: /timeout, 3 -> 30",
            &format!("Drifted: {rule}"),
            "changed: /outDegree, 1 -> 2",
            &format!("changed: /outEdges/1, nothing -> \"{alerts}\""),
            &format!("Unknown: {alerts}"),
            &format!("Unknown: {rule} -> {alerts}"),
        ];
        let not_checked = ("not checked: inventory/demo aws/123456789012/us-west-2", 126);
        check(Pass::Drifted, &[&expected.map(|text| (text, 1))[..], &[not_checked]].concat());
    }

    #[test]
    fn the_throttled_region_says_so() {
        for live in observed(Pass::Drifted) {
            let throttled = live.header.stream.source.as_str() == "inventory/demo";
            let problem = Problem { about: place(THROTTLED), message: THROTTLE.into() };
            assert_eq!(live.header.problems, if throttled { vec![problem] } else { vec![] });
            for (kind, at, outcome) in live.header.coverage.iter() {
                let cut = throttled && at == place(THROTTLED);
                assert_eq!(*outcome != Outcome::Complete, cut, "{kind} in {at}");
            }
        }
    }
}
