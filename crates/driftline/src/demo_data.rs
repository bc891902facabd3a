//! The account that the demo observes: what is in it, before and after the first document's three interventions.
//!
//! No clock and no chance: the properties of a thing come from dice seeded with its own name, so they are the
//! same in every pass, whatever else is observed and in whichever order. What observers write of it is in
//! `demo_documents.rs`.

use jiff::{SignedDuration, Timestamp};

/// Which pass of the story.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pass {
    /// What the account looks like when the baseline is set.
    Baseline,
    /// Nothing happened, yet clocks and counters went on and the pages came in another order.
    Unchanged,
    /// The three interventions, seen while one listing was cut short.
    Drifted,
}

pub(crate) const ACCOUNT: &str = "123456789012";
pub(crate) const REGIONS: [&str; 3] = ["us-east-1", "eu-west-1", "us-west-2"];
/// Where buckets, users, roles and zones are.
pub(crate) const GLOBAL: &str = "global";

/// The stack that the story deploys and tampers with, in the first region; its things are named after it.
pub(crate) const STACK: &str = "drift-state-test";

const SERVICES: [&str; 16] = [
    "checkout", "orders", "payments", "catalog", "search", "identity", "billing", "shipping", "stock", "notify",
    "reports", "media", "pricing", "fraud", "loyalty", "returns",
];

/// A type, and the form of its ids: `{account}`, `{region}`, `{name}` and some forms of dice are filled in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kind {
    pub name: &'static str,
    id: &'static str,
}

macro_rules! kinds {
    ($($kind:ident = $name:literal, $id:literal;)*) => {
        $(pub(crate) const $kind: Kind = Kind { name: $name, id: $id };)*
    };
}

kinds! {
    BALANCER = "AWS::ElasticLoadBalancingV2::LoadBalancer",
        "arn:aws:elasticloadbalancing:{region}:{account}:loadbalancer/app/{name}/{hex16}";
    BUCKET = "AWS::S3::Bucket", "arn:aws:s3:::{name}-{account}";
    CLUSTER = "AWS::RDS::DBCluster", "arn:aws:rds:{region}:{account}:cluster:{name}";
    DATABASE = "AWS::RDS::DBInstance", "arn:aws:rds:{region}:{account}:db:{name}";
    DATABASE_SUBNETS = "AWS::RDS::DBSubnetGroup", "arn:aws:rds:{region}:{account}:subgrp:{name}";
    FUNCTION = "AWS::Lambda::Function", "arn:aws:lambda:{region}:{account}:function:{name}";
    FUNCTION_LOGS = "AWS::Logs::LogGroup", "arn:aws:logs:{region}:{account}:log-group:/aws/lambda/{name}";
    GATEWAY = "AWS::EC2::InternetGateway", "arn:aws:ec2:{region}:{account}:internet-gateway/igw-{hex}";
    INSTANCE = "AWS::EC2::Instance", "arn:aws:ec2:{region}:{account}:instance/i-{hex}";
    KEY = "AWS::KMS::Key", "arn:aws:kms:{region}:{account}:key/{uuid}";
    QUEUE = "AWS::SQS::Queue", "arn:aws:sqs:{region}:{account}:{name}";
    ROLE = "AWS::IAM::Role", "arn:aws:iam::{account}:role/{name}";
    ROUTE_TABLE = "AWS::EC2::RouteTable", "arn:aws:ec2:{region}:{account}:route-table/rtb-{hex}";
    RULE = "AWS::Events::Rule", "arn:aws:events:{region}:{account}:rule/{name}";
    SECRET = "AWS::SecretsManager::Secret", "arn:aws:secretsmanager:{region}:{account}:secret:{name}-{hex6}";
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

type Words = &'static [&'static str];

/// One type: how many there are in each region, or in the account as a whole, and the last words of their names;
/// then the last words of the stack's own, which come on top.
struct Row(Kind, &'static [usize], Words, Words);

/// Their first words are those of [`FLOW`].
const FUNCTION_WORDS: Words = &["handler", "worker", "authorizer", "webhook"];
const FUNCTIONS: &[usize] = &[62, 34, 18];

const INSTANCE_WORDS: Words = &["web", "app", "batch"];

/// How many VPCs each region has, apart from the stack's.
const VPCS: [usize; 3] = [6, 4, 3];

const ESTATE: &[Row] = &[
    Row(VPC, &VPCS, &["vpc"], &["vpc"]),
    Row(SUBNET, &[42, 28, 21], &["public", "private", "data"], &["subnet-a", "subnet-b"]),
    Row(GATEWAY, &VPCS, &["igw"], &["igw"]),
    Row(ROUTE_TABLE, &[18, 12, 9], &["public", "private"], &["rtb"]),
    Row(SECURITY_GROUP, &[24, 15, 7], &["web", "app", "db"], &["sg"]),
    Row(CLUSTER, &[3, 2, 1], &["cluster"], &[]),
    Row(DATABASE, &[22, 14, 8], &["db", "replica"], &[]),
    Row(DATABASE_SUBNETS, &[4, 3, 2], &["subnets"], &[]),
    Row(SECRET, &[12, 7, 3], &["db-password"], &[]),
    Row(INSTANCE, &[104, 64, 28], INSTANCE_WORDS, &[]),
    Row(VOLUME, &[74, 46, 20], &["root", "data"], &[]),
    Row(TABLE, &[43, 28, 10], &["state", "sessions", "events"], &[]),
    Row(FUNCTION, FUNCTIONS, FUNCTION_WORDS, &["fn"]),
    Row(FUNCTION_LOGS, FUNCTIONS, FUNCTION_WORDS, &["fn"]),
    Row(TASK_LOGS, &[22, 12, 4], &["app", "batch"], &[]),
    Row(BALANCER, &[16, 8, 4], &["alb"], &[]),
    Row(QUEUE, &[34, 22, 17], &["jobs", "dlq", "audit"], &["queue", "dlq"]),
    Row(TOPIC, &[18, 16, 4], &["events", "alarms"], &["topic"]),
    Row(BUCKET, &[67], &["assets", "logs", "backups", "uploads", "artifacts"], &[]),
    Row(KEY, &[33, 19, 6], &["data", "logs", "secrets"], &[]),
    Row(USER, &[84], &["deploy", "ci", "readonly", "backup", "oncall", "support"], &[]),
    Row(ROLE, &[70], &["task", "exec", "build", "audit", "lambda"], &["fn-role"]),
];

/// Zones, and how many names each has beside its own.
pub(crate) const ZONES: [(&str, usize); 4] =
    [("example.com", 40), ("example.net", 20), (PRIVATE_ZONE, 36), (STACK_ZONE, 0)];
pub(crate) const PRIVATE_ZONE: &str = "internal.example.com";
pub(crate) const STACK_ZONE: &str = "drift-state-test.example.org";
/// An instance that does not exist, which a name in the stack's zone stands for from the first pass on.
pub(crate) const DANGLING: &str = "ec2-203-0-113-10.compute-1.amazonaws.com";

/// Two ends, each a type and the last word of a name, and how the first leads to the second.
pub(crate) struct Step(pub (Kind, &'static str), pub &'static str, pub (Kind, &'static str));

/// How events run through a service.
pub(crate) const FLOW: &[Step] = &[
    Step((RULE, "rule"), "targets", (FUNCTION, "handler")),
    Step((TOPIC, "events"), "subscription", (QUEUE, "jobs")),
    Step((QUEUE, "jobs"), "eventSource", (FUNCTION, "worker")),
    Step((QUEUE, "jobs"), "redrive", (QUEUE, "dlq")),
];

/// The services that have events, by region.
pub(crate) const FLOWS: [&[&str]; 3] = [
    &["checkout", "orders", "payments", "catalog", "search", "identity"],
    &["checkout", "orders", "payments"],
    &["checkout"],
];

pub(crate) const STACK_FLOW: &[Step] = &[
    Step((RULE, "rule"), "targets", (FUNCTION, "fn")),
    Step((TOPIC, "topic"), "subscription", (QUEUE, "queue")),
    Step((QUEUE, "queue"), "redrive", (QUEUE, "dlq")),
];

/// The third intervention. The queue is new, too.
pub(crate) const ADDED_TARGET: &[Step] = &[Step((RULE, "rule"), "targets", (QUEUE, "alerts"))];

/// The pass, and what its clock says.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Now {
    pub pass: Pass,
    pub taken_at: Timestamp,
}

impl Now {
    /// As observers write times, so long before the pass.
    pub(crate) fn ago(self, before: SignedDuration) -> String {
        (self.taken_at - before).strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string()
    }
}

/// `SplitMix64`, seeded with a name.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn of(words: &[&str]) -> Self {
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

    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.roll() % end
    }

    pub(crate) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        let at = self.below(from.len() as u64);
        from[usize::try_from(at).expect("below the length of a slice")]
    }

    pub(crate) fn hex(&mut self) -> String {
        format!("{:016x}{:016x}", self.roll(), self.roll())
    }

    pub(crate) fn date(&mut self) -> String {
        let (year, month, day) = (2023 + self.below(3), 1 + self.below(12), 1 + self.below(28));
        format!("{year}-{month:02}-{day:02}T{:02}:{:02}:00.000Z", self.below(24), self.below(60))
    }
}

/// Something to be observed. Equal kind, region and name make an equal id, whoever looks.
#[derive(Clone, Debug)]
pub(crate) struct Thing {
    pub kind: Kind,
    pub region: &'static str,
    pub name: String,
    /// Its place among the things of its kind and region.
    pub number: usize,
    pub now: Now,
}

impl Thing {
    pub(crate) fn new(kind: Kind, region: &'static str, name: impl Into<String>, now: Now) -> Self {
        Self { kind, region, name: name.into(), number: 0, now }
    }

    /// What stays as it is.
    pub(crate) fn dice(&self, about: &str) -> Dice {
        Dice::of(&[self.kind.name, self.region, &self.name, about])
    }

    /// What changes by itself from pass to pass.
    pub(crate) fn moving(&self, about: &str) -> Dice {
        Dice::of(&[self.kind.name, self.region, &self.name, about, &format!("{:?}", self.now.pass)])
    }

    pub(crate) fn id(&self) -> String {
        let hex = self.dice("id").hex();
        let uuid = format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]);
        let filled = self.kind.id.replace("{account}", ACCOUNT).replace("{region}", self.region);
        let filled = filled.replace("{hex}", &hex[..17]).replace("{HEX}", &hex[..17].to_uppercase());
        let filled = filled.replace("{hex16}", &hex[..16]).replace("{hex6}", &hex[..6]);
        filled.replace("{uuid}", &uuid).replace("{name}", &self.name)
    }

    /// The id within its type and place: `sg-…`, or the name.
    pub(crate) fn short_id(&self) -> String {
        self.id().rsplit(['/', ':']).next().unwrap_or_default().to_owned()
    }

    /// What someone changed between the passes.
    pub(crate) fn before_and_after(&self, before: u64, after: u64) -> u64 {
        if self.now.pass == Pass::Drifted { after } else { before }
    }

    pub(crate) fn is_of_the_stack(&self) -> bool {
        self.name.starts_with(STACK)
    }

    pub(crate) fn zone(&self) -> String {
        format!("{}{}", self.region, self.dice("zone").pick(&["a", "b", "c"]))
    }

    /// Another thing of the same region.
    pub(crate) fn other(&self, kind: Kind, name: impl Into<String>) -> Thing {
        Thing { kind, name: name.into(), ..self.clone() }
    }

    /// The instance of the same number, of which there are more than of anything that is attached to one.
    pub(crate) fn instance(&self) -> Thing {
        self.other(INSTANCE, service_name(self.number, INSTANCE_WORDS))
    }

    /// The VPC it lives in, and the second number of that VPC's addresses.
    pub(crate) fn vpc(&self) -> (String, usize) {
        let region = REGIONS.iter().position(|region| *region == self.region).unwrap_or_default();
        let number = if self.is_of_the_stack() { VPCS[region] } else { self.number % VPCS[region] };
        let name = if self.is_of_the_stack() { stack_name("vpc") } else { service_name(number, &["vpc"]) };
        (self.other(VPC, name).short_id(), 16 * region + number)
    }
}

pub(crate) fn stack_name(word: &str) -> String {
    format!("{STACK}-{word}")
}

/// The name of the n-th thing: every service has a first word before any has a second.
pub(crate) fn service_name(number: usize, words: &[&str]) -> String {
    let (service, round) = (SERVICES[number % SERVICES.len()], number / SERVICES.len());
    let word = words[round % words.len()];
    match round / words.len() {
        0 => format!("{service}-{word}"),
        again => format!("{service}-{word}-{}", again + 1),
    }
}

/// Everything of a kind in the account, region by region.
pub(crate) fn things(kind: Kind, now: Now) -> Vec<Thing> {
    let mut things = Vec::new();
    for Row(_, counts, words, stack) in ESTATE.iter().filter(|row| row.0 == kind) {
        let regions = if counts.len() == 1 { &[GLOBAL] } else { &REGIONS[..] };
        for (at, (region, count)) in regions.iter().zip(*counts).enumerate() {
            let stack = stack.iter().filter(|_| at == 0).map(|word| stack_name(word));
            let names = (0..*count).map(|number| service_name(number, words)).chain(stack);
            things.extend(names.enumerate().map(|(number, name)| Thing { kind, region, name, number, now }));
        }
    }
    things
}

pub(crate) fn things_in(kind: Kind, region: &str, now: Now) -> Vec<Thing> {
    let mut things = things(kind, now);
    things.retain(|thing| thing.region == region);
    things
}
