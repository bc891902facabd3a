//! The command line, as clap sees it.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use driftline_core::Severity;

use crate::fleet_args::{AllArgs, FleetArgs};
use crate::live_args::{EventArgs, LiveArgs};
use crate::query_args::{EngineCommand, QueryArgs};
use crate::serve_args::ServeArgs;
use crate::statement::dialect::Dialect;

/// Tells you what changed in your infrastructure, and never cries wolf.
///
/// Observations go in, versions are kept, and drift is a query over time. Only `observe` without documents calls your
/// cloud, and it only reads; and `operator`, which writes what a cluster declares.
#[derive(Debug, Parser)]
#[command(name = "driftline", version, max_term_width = 100, arg_required_else_help = true)]
#[command(after_help = "Exit codes: 0 in sync, 1 error, 2 drift (see --fail-on), 3 nothing drifted but something was \
    not checked (with --strict), 130/143 interrupted.\n\nStart with: driftline demo")]
pub(crate) struct Cli {
    #[command(flatten)]
    pub global: Global,
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Args)]
pub(crate) struct Global {
    /// Where versions are kept: a folder, made when it is first written to [default: .driftline].
    #[arg(long, global = true, env = "DRIFTLINE_STORE", value_name = "FOLDER")]
    pub store: Option<PathBuf>,
    /// The configuration file [default: driftline.toml, if it is there].
    #[arg(long, global = true, env = "DRIFTLINE_CONFIG", value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// How to print the result, and where: table, json, ndjson or markdown, with `=FILE` into a file. Repeatable.
    /// `drift`, `diff` and `compare` also have html, sarif, junit and github; `topology` has mermaid, dot and svg;
    /// `query` has csv and parquet.
    #[arg(short, long, global = true, env = "DRIFTLINE_OUTPUT", value_name = "FORMAT[=FILE]", value_delimiter = ',')]
    pub output: Vec<String>,
    /// When to use colour.
    #[arg(long, global = true, env = "DRIFTLINE_COLOR", value_enum, value_name = "WHEN", default_value = "auto")]
    pub color: ColorChoice,
    /// Print the result and errors, nothing else.
    #[arg(short, long, global = true, env = "DRIFTLINE_QUIET", value_parser = clap::builder::FalseyValueParser::new())]
    pub quiet: bool,
    /// Say more about what is being done.
    #[arg(short, long, global = true, env = "DRIFTLINE_VERBOSE", value_parser = clap::builder::FalseyValueParser::new())]
    pub verbose: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ColorChoice {
    Auto,
    Always,
    Never,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// The whole story in one go: observe, baseline, change, drift, velocity. Leaves a store to explore.
    Demo(DemoArgs),
    /// Take one observation and commit it as a new version.
    #[command(subcommand)]
    Observe(Box<Observe>),
    /// Pin, inspect and accept what is expected.
    #[command(subcommand)]
    Baseline(Baseline),
    /// What differs from the baseline now.
    Drift(DriftArgs),
    /// Compare two observation files, without a store.
    Diff(DiffArgs),
    /// What was declared against what is live, as CloudFormation's schemas and property transforms have it.
    Compare(CompareArgs),
    /// Everything about one resource: every change, every excused difference, with rule, origin and reason.
    Explain(ExplainArgs),
    /// How much drifted, by type, now and over the last day, week and month.
    Velocity(VelocityArgs),
    /// The life of a resource: first seen, every change, deleted, reappeared; by which source.
    History(HistoryArgs),
    /// Who changed a resource: each change that a source saw, with what CloudTrail's events, or a cluster's field
    /// managers, tell of that time.
    Blame(BlameArgs),
    /// Who claims what was observed (Terraform, CloudFormation, Kubernetes), and what nobody claims.
    Ownership(OwnershipArgs),
    /// DNS records that point at something which no source has. Exits with 2 if there are some.
    Orphans(OrphansArgs),
    /// How the graph of things that lead to others changed: edges, nodes and degrees.
    Topology(TopologyArgs),
    /// Compliance by rule: what is newly violated, what was fixed, and how many violations there were over time.
    Posture(PostureArgs),
    /// How every account is looked after: when it was last seen, how whole, what drifted, and who is missing.
    Fleet(FleetArgs),
    /// Ask the store in SQL: its resources, changes, findings and versions. Only reads.
    Query(Box<QueryArgs>),
    /// Run a node of a Ballista cluster, for queries and drift that are asked with --engine.
    #[command(subcommand)]
    Engine(EngineCommand),
    /// The versions of all sources, or of one.
    Log(LogArgs),
    /// Read everything in the store again and check every hash.
    Verify,
    /// Drop old versions and the files nobody needs.
    Gc(GcArgs),
    /// Check the store, the configuration and the sources, and say what to do.
    Doctor(DoctorArgs),
    /// Evaluate a JSONata expression, as the property transforms of CloudFormation are written in.
    Jsonata(JsonataArgs),
    /// What AWS's own schemas say of a CloudFormation type, and what follows from that.
    Schema(SchemaArgs),
    /// Print the IAM policy that observing AWS itself needs: exactly the actions that are called, all of them reads.
    IamPolicy(IamPolicyArgs),
    /// Show everything as a web page with a JSON API: overview, drift, resources, topology, posture, versions, rules.
    Serve(ServeArgs),
    /// Run the Kubernetes operator: AWS resources as objects declare them, and what to do when they drift.
    Operator(OperatorArgs),
    /// Observe the configured sources on their schedules, and tell people what changed since they were last told.
    Watch(WatchArgs),
    /// Answer agents over the Model Context Protocol, on standard input and output; a client starts this. Only reads.
    Mcp,
    /// The configuration.
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Print a completion script for a shell.
    Completions { shell: clap_complete::Shell },
}

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct OperatorArgs {
    #[command(subcommand)]
    pub command: Option<OperatorCommand>,
    /// What is done about drift where neither the object nor its namespace says: write it again, tell it, or not look.
    #[arg(long, value_enum, value_name = "POLICY", env = "DRIFTLINE_DRIFT_POLICY", default_value = "enforce")]
    pub drift_policy: DriftPolicy,
    /// How often every object is looked at; `driftline.dev/resync` overrides it.
    #[arg(long, value_name = "TIME", env = "DRIFTLINE_RESYNC", default_value = "5m")]
    pub resync: String,
    /// Only objects in this namespace; repeatable [default: all].
    #[arg(long, short, value_name = "NAMESPACE", env = "DRIFTLINE_NAMESPACE", value_delimiter = ',')]
    pub namespace: Vec<String>,
    /// Where metrics and health are served: /metrics, /healthz, /readyz.
    #[arg(long, value_name = "ADDRESS", env = "DRIFTLINE_LISTEN", default_value = "127.0.0.1:8080")]
    pub listen: std::net::SocketAddr,
    /// Of several operators only one works: who has the lease.
    #[arg(long, env = "DRIFTLINE_LEADER_ELECTION", value_parser = clap::builder::FalseyValueParser::new())]
    pub leader_election: bool,
    /// The lease's name.
    #[arg(long, value_name = "NAME", env = "DRIFTLINE_LEASE_NAME", default_value = "driftline-operator")]
    pub lease_name: String,
    /// The lease's namespace.
    #[arg(long, value_name = "NAMESPACE", env = "DRIFTLINE_LEASE_NAMESPACE", default_value = "default")]
    pub lease_namespace: String,
    /// How many objects are worked on at once.
    #[arg(long, value_name = "N", env = "DRIFTLINE_MAX_CONCURRENT", default_value_t = 8,
        value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub max_concurrent: u16,
    /// The cluster's name in the store [default: as the kubeconfig calls it, or `cluster`].
    #[arg(long, value_name = "NAME", env = "DRIFTLINE_CLUSTER")]
    pub cluster: Option<String>,
    /// The context of the kubeconfig to use [default: its current one, or the cluster that this runs in].
    #[arg(long, value_name = "NAME", env = "DRIFTLINE_CONTEXT")]
    pub context: Option<String>,
    /// The region of AWS [default: as AWS's own configuration says].
    #[arg(long, value_name = "NAME", env = "DRIFTLINE_REGION")]
    pub region: Option<String>,
    /// The profile of AWS's own configuration.
    #[arg(long, value_name = "NAME", env = "DRIFTLINE_PROFILE")]
    pub profile: Option<String>,
    /// Look at every object once, print what would be done, and write nothing, neither to AWS nor to the cluster.
    #[arg(long, env = "DRIFTLINE_DRY_RUN", value_parser = clap::builder::FalseyValueParser::new())]
    pub dry_run: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum OperatorCommand {
    /// Print the custom resource definitions as YAML, for `kubectl apply -f -`.
    Crds,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DriftPolicy {
    Enforce,
    Report,
    Suspend,
}

#[derive(Debug, Args)]
pub(crate) struct WatchArgs {
    /// Run every source once, tell what there is to tell, and end; for cron and pipelines. Exits with 1 if a source
    /// failed or something could not be delivered yet.
    #[arg(long, env = "DRIFTLINE_ONCE", value_parser = clap::builder::FalseyValueParser::new())]
    pub once: bool,
    /// Which baseline to compare with.
    #[arg(long, value_name = "NAME", env = "DRIFTLINE_BASELINE")]
    pub baseline: Option<String>,
    /// Show what waits to be delivered, dead letters, and what each channel was told; do nothing else.
    #[arg(long, env = "DRIFTLINE_STATUS", value_parser = clap::builder::FalseyValueParser::new(),
        conflicts_with_all = ["once", "retry", "drop", "test_notification"])]
    pub status: bool,
    /// Try a dead letter again, or `all` of them; repeatable.
    #[arg(long, value_name = "ID", env = "DRIFTLINE_RETRY", value_delimiter = ',', conflicts_with = "once")]
    pub retry: Vec<String>,
    /// Forget a message that waits or a dead letter; a channel's name stands for everything to it, `all` for all dead
    /// letters. Repeatable.
    #[arg(long, value_name = "ID", env = "DRIFTLINE_DROP", value_delimiter = ',', conflicts_with = "once")]
    pub drop: Vec<String>,
    /// Send a sample to every channel, and do nothing else.
    #[arg(long, env = "DRIFTLINE_TEST_NOTIFICATION", value_parser = clap::builder::FalseyValueParser::new(),
        conflicts_with_all = ["once", "retry", "drop"])]
    pub test_notification: bool,
    /// What jitter is made from; the same number gives the same delays [default: the time].
    #[arg(long, value_name = "N", env = "DRIFTLINE_SEED")]
    pub seed: Option<u64>,
    /// The form of the log on standard error.
    #[arg(long, value_enum, value_name = "FORM", env = "DRIFTLINE_LOG", default_value = "text")]
    pub log: LogFormat,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// Words, and fields as `name=value`.
    Text,
    /// One JSON object a line.
    Json,
}

#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// Write the documents that the demo observes into this new folder, say how to observe them, and do nothing else.
    #[arg(long, value_name = "FOLDER", env = "DRIFTLINE_DOCUMENTS")]
    pub documents: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Observe {
    /// Read an observation from a file: one JSON object, or NDJSON with a header line. `-` is standard input.
    File {
        /// The files, one after the other.
        #[arg(value_name = "FILE", required = true)]
        files: Vec<PathBuf>,
        #[command(flatten)]
        permissions: PermissionArgs,
    },
    /// Run a program and read the observation it prints. Nothing is committed if it fails.
    Command {
        /// The program and its arguments, after `--`.
        #[arg(value_name = "PROGRAM", required = true, trailing_var_arg = true, allow_hyphen_values = true)]
        command: Vec<String>,
        #[command(flatten)]
        permissions: PermissionArgs,
    },
    /// Networks and databases: asked of AWS, or from documents of adopt: `discovery` and `partial` (VPCs, subnets, gateways, routes, security groups, databases).
    Adopt(ObserveArgs),
    /// What each type's own API says: asked of AWS, or from documents of inventory: `scan` (a broad listing) and `inventory` (what each type's own API says).
    Inventory(ObserveArgs),
    /// What AWS Config's rules say of resources: asked of AWS, or from documents of config-compliance.
    Config(ObserveArgs),
    /// Zones and records: asked of AWS, or from documents of dns-observation (orphans, too).
    Dns(ObserveArgs),
    /// Rules, topics, queues, functions, and what leads where: asked of AWS, or from graphs of event-topology.
    EventTopology(ObserveArgs),
    /// Terraform: state files, and the JSON of `terraform show` for a state or a plan.
    Terraform(DocumentArgs),
    /// CloudFormation: stacks asked of AWS, or a template (JSON or YAML), and what `aws cloudformation describe-stacks`,
    /// `describe-stack-resources`, `list-exports` and `get-template` print; parameters from a file, too.
    #[command(name = "cloudformation")]
    CloudFormation(ObserveArgs),
    /// Ask AWS Cloud Control for things of any type that it lists, in the shape of the type's schema.
    CloudControl(CloudControlArgs),
    /// What was done in an account, by whom: CloudTrail's events, asked of AWS, or from log files (`.json`, `.json.gz`),
    /// folders of them, or a trail's bucket (`s3://bucket/prefix`). Events are never drift; `blame` reads them.
    #[command(name = "cloudtrail")]
    CloudTrail(CloudTrailArgs),
    /// A Kubernetes cluster: its objects as they are now, or as `kubectl get -o json` (or yaml) printed them.
    Kubernetes(KubernetesArgs),
    /// Read a swamp datastore: what its models observed, as far as Driftline or the configuration knows them.
    Swamp(SwampArgs),
    /// Run every source of the configuration file; those that ask AWS also in many accounts.
    All(AllArgs),
}

#[derive(Debug, Args)]
pub(crate) struct SwampArgs {
    /// A swamp repository, a datastore, its `data` folder, or what `swamp data get|query --json` printed.
    #[arg(value_name = "PATH")]
    pub path: PathBuf,
    /// Replay every version that is there, oldest first, each as of its own time.
    #[arg(long, env = "DRIFTLINE_ALL_VERSIONS", value_parser = clap::builder::FalseyValueParser::new())]
    pub all_versions: bool,
    /// Only models whose name or type matches, with `*` for any run of characters; repeatable.
    #[arg(long, value_name = "GLOB", env = "DRIFTLINE_MODEL", value_delimiter = ',')]
    pub model: Vec<String>,
    /// The account that was looked at, where the data does not say.
    #[arg(long, value_name = "ID", env = "DRIFTLINE_ACCOUNT")]
    pub account: Option<String>,
    /// The partition that was looked at: aws, aws-cn or aws-us-gov.
    #[arg(long, value_name = "NAME", env = "DRIFTLINE_PARTITION", default_value = "aws")]
    pub partition: String,
    #[command(flatten)]
    pub permissions: PermissionArgs,
}

/// Documents of a pass, or none: then AWS itself is asked.
#[derive(Clone, Debug, Args)]
pub(crate) struct ObserveArgs {
    /// The documents of one pass: files, patterns such as `out/*.json`, `https://` or `s3://` addresses, or `-`. Without any,
    /// AWS itself is asked.
    #[arg(value_name = "DOCUMENT")]
    pub documents: Vec<String>,
    #[command(flatten)]
    pub about: AboutArgs,
    #[command(flatten)]
    pub live: LiveArgs,
    #[command(flatten)]
    pub permissions: PermissionArgs,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct CloudControlArgs {
    /// What the source is called [default: cloud-control].
    #[arg(long, value_name = "SOURCE", env = "DRIFTLINE_NAME")]
    pub name: Option<String>,
    #[command(flatten)]
    pub live: LiveArgs,
    #[command(flatten)]
    pub permissions: PermissionArgs,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct CloudTrailArgs {
    /// Log files, folders of them, patterns, `s3://` prefixes, what `aws cloudtrail lookup-events` printed, or `-`.
    /// Without any, AWS itself is asked.
    #[arg(value_name = "LOG")]
    pub logs: Vec<String>,
    /// What the source is called [default: cloudtrail].
    #[arg(long, value_name = "SOURCE", env = "DRIFTLINE_NAME")]
    pub name: Option<String>,
    #[command(flatten)]
    pub events: EventArgs,
    /// Of log files: they are all that the trail wrote from --since to --until.
    #[arg(long, env = "DRIFTLINE_WHOLE", value_parser = clap::builder::FalseyValueParser::new(),
        requires_all = ["logs", "since", "until"])]
    pub whole: bool,
    #[command(flatten)]
    pub live: LiveArgs,
    #[command(flatten)]
    pub permissions: PermissionArgs,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct IamPolicyArgs {
    /// The observers that it is for [default: all].
    #[arg(value_name = "OBSERVER")]
    pub observers: Vec<String>,
    /// Only these types; repeatable.
    #[arg(long, value_name = "TYPE", env = "DRIFTLINE_TYPES", value_delimiter = ',')]
    pub types: Vec<String>,
    /// With what --all-regions needs.
    #[arg(long, env = "DRIFTLINE_ALL_REGIONS", value_parser = clap::builder::FalseyValueParser::new())]
    pub all_regions: bool,
    /// With what --organization needs.
    #[arg(long, env = "DRIFTLINE_ORGANIZATION", value_parser = clap::builder::FalseyValueParser::new())]
    pub organization: bool,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct DocumentArgs {
    /// The documents of one pass: files, patterns such as `out/*.json`, `https://` or `s3://` addresses, or `-`.
    #[arg(value_name = "DOCUMENT", required = true)]
    pub documents: Vec<String>,
    #[command(flatten)]
    pub about: AboutArgs,
    #[command(flatten)]
    pub permissions: PermissionArgs,
}

/// What documents do not say themselves.
#[derive(Clone, Debug, Args)]
pub(crate) struct AboutArgs {
    /// What the source is called, e.g. `adopt/prod` [default: the kind of document].
    #[arg(long, value_name = "SOURCE", env = "DRIFTLINE_NAME")]
    pub name: Option<String>,
    /// The AWS account they are of, where they do not say so.
    #[arg(long, value_name = "ID", env = "DRIFTLINE_ACCOUNT")]
    pub account: Option<String>,
    /// The AWS partition.
    #[arg(long, value_name = "NAME", default_value = "aws", env = "DRIFTLINE_PARTITION")]
    pub partition: String,
    /// When they were taken, where they do not say so [default: now].
    #[arg(long, value_name = "TIME", env = "DRIFTLINE_TAKEN_AT")]
    pub taken_at: Option<String>,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct KubernetesArgs {
    /// Lists that were written before: files, patterns, `https://` or `s3://` addresses, or `-`. Without any, the cluster is asked.
    #[arg(value_name = "DOCUMENT")]
    pub documents: Vec<String>,
    /// What the source is called [default: `kubernetes/` and the cluster's name].
    #[arg(long, value_name = "SOURCE", env = "DRIFTLINE_NAME")]
    pub name: Option<String>,
    /// The cluster's name, as it is to be part of places [default: as the kubeconfig calls it].
    #[arg(long, value_name = "NAME", env = "DRIFTLINE_CLUSTER")]
    pub cluster: Option<String>,
    /// The context of the kubeconfig to use [default: its current one].
    #[arg(long, value_name = "NAME", env = "DRIFTLINE_CONTEXT")]
    pub context: Option<String>,
    /// Only this namespace; repeatable. Of documents it says that they are whole for it.
    #[arg(long, short, value_name = "NAMESPACE", env = "DRIFTLINE_NAMESPACE", value_delimiter = ',')]
    pub namespace: Vec<String>,
    /// Every namespace, as a cluster is asked for unless told otherwise. Of documents it says that they are whole.
    #[arg(long, short = 'A', env = "DRIFTLINE_ALL_NAMESPACES", value_parser = clap::builder::FalseyValueParser::new())]
    pub all_namespaces: bool,
    /// Only this kind, as kubectl names it (`deployments.apps`, `secrets`); repeatable [default: all but a few].
    #[arg(long, value_name = "KIND", env = "DRIFTLINE_KIND", value_delimiter = ',')]
    pub kind: Vec<String>,
    /// Also objects that a controller made of another one, such as the pods of a deployment.
    #[arg(long, env = "DRIFTLINE_OWNED", value_parser = clap::builder::FalseyValueParser::new())]
    pub owned: bool,
    /// When documents were taken [default: now].
    #[arg(long, value_name = "TIME", env = "DRIFTLINE_TAKEN_AT", requires = "documents")]
    pub taken_at: Option<String>,
    /// Exit with 3 if something could not be looked at.
    #[arg(long, env = "DRIFTLINE_STRICT", value_parser = clap::builder::FalseyValueParser::new())]
    pub strict: bool,
    #[command(flatten)]
    pub permissions: PermissionArgs,
}

#[derive(Clone, Copy, Debug, Default, Args)]
pub(crate) struct PermissionArgs {
    /// Commit an observation without resources although the one before had some.
    #[arg(long, env = "DRIFTLINE_ALLOW_EMPTY", value_parser = clap::builder::FalseyValueParser::new())]
    pub allow_empty: bool,
    /// Commit an observation that was taken before the newest one.
    #[arg(long, env = "DRIFTLINE_ALLOW_OLDER", value_parser = clap::builder::FalseyValueParser::new())]
    pub allow_older: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Baseline {
    /// Pin the newest version of every source (or of some) as what is expected.
    Set {
        /// The baseline's name [default: main, or the configuration's].
        name: Option<String>,
        /// Only this source; repeatable. The other sources stay pinned as they are.
        #[arg(long, value_name = "SOURCE", env = "DRIFTLINE_SOURCE", value_delimiter = ',')]
        source: Vec<String>,
        /// This version instead of the newest; needs exactly one --source unless there is only one.
        #[arg(long, value_name = "N", env = "DRIFTLINE_PIN_VERSION")]
        version: Option<u64>,
        /// The versions that were the newest at this time.
        #[arg(long, value_name = "TIME", env = "DRIFTLINE_AT")]
        at: Option<String>,
    },
    /// All baselines.
    List,
    /// One baseline: what it pins, and what was accepted.
    Show { name: Option<String> },
    /// Take what is live as expected, for a resource or one of its properties.
    Accept {
        /// The resource's id, as `drift` prints it; repeatable.
        #[arg(value_name = "RESOURCE", required = true)]
        resources: Vec<String>,
        /// Only this property: a JSON pointer, as `drift` prints it.
        #[arg(long, value_name = "POINTER", env = "DRIFTLINE_PATH")]
        path: Option<String>,
        /// Why; it is kept.
        #[arg(long, value_name = "TEXT", env = "DRIFTLINE_REASON")]
        reason: String,
        /// Which baseline.
        #[arg(long, value_name = "NAME", env = "DRIFTLINE_BASELINE")]
        baseline: Option<String>,
        /// Only as this source sees it.
        #[arg(long, value_name = "SOURCE", env = "DRIFTLINE_SOURCE")]
        source: Option<String>,
    },
    /// Forget a baseline. Versions stay.
    Remove { name: String },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FailOn {
    /// Something is modified or deleted.
    Drifted,
    /// ... or is there that was not in the baseline.
    Unknown,
    /// Never exit with 2.
    Never,
    /// Something modified, deleted or new is of this severity, or of a higher one.
    Critical,
    High,
    Medium,
    Low,
}

impl FailOn {
    /// The severity that is asked for, if one is.
    pub(crate) fn severity(self) -> Option<Severity> {
        match self {
            FailOn::Drifted | FailOn::Unknown | FailOn::Never => None,
            FailOn::Critical => Some(Severity::Critical),
            FailOn::High => Some(Severity::High),
            FailOn::Medium => Some(Severity::Medium),
            FailOn::Low => Some(Severity::Low),
        }
    }
}

/// The sources that a question is about, and its two points in time.
#[derive(Debug, Default, Args)]
pub(crate) struct PointArgs {
    /// Which baseline to compare with.
    #[arg(long, value_name = "NAME", env = "DRIFTLINE_BASELINE")]
    pub baseline: Option<String>,
    /// Only this source; repeatable.
    #[arg(long, value_name = "SOURCE", env = "DRIFTLINE_SOURCE", value_delimiter = ',')]
    pub source: Vec<String>,
    /// The live side as it was at this time: `2026-06-29`, `2026-06-29T10:00:00Z`, or `2h` for two hours ago.
    #[arg(long, value_name = "TIME", env = "DRIFTLINE_AT")]
    pub at: Option<String>,
    /// What was live at this time, instead of a baseline, is what is expected.
    #[arg(long, value_name = "TIME", env = "DRIFTLINE_SINCE")]
    pub since: Option<String>,
    /// Compare two versions (`v3 v5`) or two times.
    #[arg(long, num_args = 2, value_names = ["A", "B"], env = "DRIFTLINE_BETWEEN", value_delimiter = ',')]
    pub between: Option<Vec<String>>,
}

#[derive(Debug, Args)]
pub(crate) struct DriftArgs {
    #[command(flatten)]
    pub points: PointArgs,
    /// What the first source says is expected of what the second sees: on the properties both have of the same things.
    #[arg(long, num_args = 2, value_names = ["SOURCE", "SOURCE"], env = "DRIFTLINE_ACROSS", value_delimiter = ',')]
    pub across: Option<Vec<String>>,
    /// Print, instead of an answer, one SQL statement that computes it over the table `history` of the store.
    #[arg(
        long,
        value_enum,
        value_name = "ENGINE",
        env = "DRIFTLINE_PRINT_SQL",
        conflicts_with_all = ["across", "filter", "all", "strict"]
    )]
    pub print_sql: Option<Dialect>,
    /// Let a Ballista cluster find what changed: ballista://host:port of its scheduler. The answer is the same.
    #[arg(long, value_name = "ADDRESS", env = "DRIFTLINE_ENGINE")]
    pub engine: Option<String>,
    /// How long to wait for the cluster.
    #[arg(long, value_name = "TIME", env = "DRIFTLINE_ENGINE_TIMEOUT", default_value = "10m")]
    pub engine_timeout: String,
    #[command(flatten)]
    pub shown: ShownArgs,
    #[command(flatten)]
    pub verdict: VerdictArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ShownArgs {
    /// Only resources for which this CEL expression is true; it sees type, place, account, region, id, source,
    /// status, kind, severity, changes and excused. Example: `type.startsWith("AWS::EC2::") && status == "drifted"`
    #[arg(long = "where", value_name = "CEL", env = "DRIFTLINE_WHERE")]
    pub filter: Option<String>,
    /// List what is in sync, too, and every excused difference.
    #[arg(long, env = "DRIFTLINE_ALL", value_parser = clap::builder::FalseyValueParser::new())]
    pub all: bool,
    /// How many resources of each status a table or Markdown lists; 0 for all.
    #[arg(long, value_name = "N", default_value_t = 50, env = "DRIFTLINE_LIMIT")]
    pub limit: usize,
}

#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct VerdictArgs {
    /// What makes the exit code 2.
    #[arg(long, value_enum, value_name = "WHAT", default_value = "drifted", env = "DRIFTLINE_FAIL_ON")]
    pub fail_on: FailOn,
    /// Exit with 3 when nothing drifted but something was not checked.
    #[arg(long, env = "DRIFTLINE_STRICT", value_parser = clap::builder::FalseyValueParser::new())]
    pub strict: bool,
    /// Exit with 0 whatever was found.
    #[arg(long, env = "DRIFTLINE_EXIT_ZERO", value_parser = clap::builder::FalseyValueParser::new())]
    pub exit_zero: bool,
}

#[derive(Debug, Args)]
pub(crate) struct DiffArgs {
    /// What is expected.
    pub expected: PathBuf,
    /// What is live.
    pub live: PathBuf,
    #[command(flatten)]
    pub shown: ShownArgs,
    #[command(flatten)]
    pub verdict: VerdictArgs,
}

#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch on the command line")]
pub(crate) struct CompareArgs {
    /// What was declared of a resource, and what is live: two JSON files with its properties.
    #[arg(value_name = "FILE", num_args = 0..=2)]
    pub files: Vec<PathBuf>,
    /// Their CloudFormation type.
    #[arg(long = "type", value_name = "TYPE", env = "DRIFTLINE_TYPE")]
    pub r#type: Option<String>,
    /// The source that declares.
    #[arg(long, value_name = "SOURCE", env = "DRIFTLINE_DECLARED", requires = "live")]
    pub declared: Option<String>,
    /// The source that sees.
    #[arg(long, value_name = "SOURCE", env = "DRIFTLINE_LIVE", requires = "declared")]
    pub live: Option<String>,
    /// NDJSON of `{"type", "declared", "live"}`, from a file or standard input; one line of answer for each.
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-", env = "DRIFTLINE_COMPARE_BATCH")]
    pub batch: Option<PathBuf>,
    /// Let no guess explain a difference: only schemas, transforms, and what means the same in every type.
    #[arg(long, env = "DRIFTLINE_NO_HEURISTICS", value_parser = clap::builder::FalseyValueParser::new())]
    pub no_heuristics: bool,
    /// List the guesses, and do nothing else. `[heuristics]` in driftline.toml switches single ones off.
    #[arg(long, env = "DRIFTLINE_LIST_HEURISTICS", value_parser = clap::builder::FalseyValueParser::new())]
    pub list_heuristics: bool,
    /// A resource schema with transforms of your own (`propertyTransform`); repeatable.
    #[arg(long, value_name = "FILE", env = "DRIFTLINE_SCHEMA", value_delimiter = ',')]
    pub schema: Vec<PathBuf>,
    /// List what is in sync and what was explained, too.
    #[arg(long, env = "DRIFTLINE_ALL", value_parser = clap::builder::FalseyValueParser::new())]
    pub all: bool,
    /// Exit with 0 whatever was found.
    #[arg(long, env = "DRIFTLINE_EXIT_ZERO", value_parser = clap::builder::FalseyValueParser::new())]
    pub exit_zero: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// The resource's id, as `drift` prints it, or a part of it that only one has.
    pub resource: String,
    #[arg(long, value_name = "NAME", env = "DRIFTLINE_BASELINE")]
    pub baseline: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct VelocityArgs {
    #[arg(long, value_name = "NAME", env = "DRIFTLINE_BASELINE")]
    pub baseline: Option<String>,
    /// Only this source; repeatable.
    #[arg(long, value_name = "SOURCE", env = "DRIFTLINE_SOURCE", value_delimiter = ',')]
    pub source: Vec<String>,
    /// The end of the time windows [default: now].
    #[arg(long, value_name = "TIME", env = "DRIFTLINE_AT")]
    pub at: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct TopologyArgs {
    #[command(flatten)]
    pub points: PointArgs,
    /// Also the network: subnets in VPCs, route tables of subnets, functions in subnets, and so on.
    #[arg(long, env = "DRIFTLINE_NETWORK", value_parser = clap::builder::FalseyValueParser::new())]
    pub network: bool,
    /// List and draw everything, not only what changed and what is next to it.
    #[arg(long, env = "DRIFTLINE_ALL", value_parser = clap::builder::FalseyValueParser::new())]
    pub all: bool,
}

#[derive(Debug, Args)]
pub(crate) struct PostureArgs {
    /// Which baseline to compare with.
    #[arg(long, value_name = "NAME", env = "DRIFTLINE_BASELINE")]
    pub baseline: Option<String>,
    /// Only this source; repeatable.
    #[arg(long, value_name = "SOURCE", env = "DRIFTLINE_SOURCE", value_delimiter = ',')]
    pub source: Vec<String>,
    /// What is now as it was at this time.
    #[arg(long, value_name = "TIME", env = "DRIFTLINE_AT")]
    pub at: Option<String>,
    /// Compare with this time, instead of a baseline; the course over time begins there, too.
    #[arg(long, value_name = "TIME", env = "DRIFTLINE_SINCE")]
    pub since: Option<String>,
    /// Only rules with such a name; `*` stands for anything.
    #[arg(long, value_name = "GLOB", env = "DRIFTLINE_RULE")]
    pub rule: Option<String>,
    /// Exit with 2 when something is newly non-compliant.
    #[arg(long, env = "DRIFTLINE_FAIL_ON_NEW", value_parser = clap::builder::FalseyValueParser::new())]
    pub fail_on_new: bool,
}

#[derive(Debug, Args)]
pub(crate) struct HistoryArgs {
    /// The resource's id, as `drift` prints it, or a part of it that only one has.
    pub resource: String,
}

#[derive(Debug, Args)]
pub(crate) struct BlameArgs {
    /// The resource's id, as `drift` prints it, or a part of it that only one has.
    pub resource: String,
    /// Changes since this baseline.
    #[arg(long, value_name = "NAME", env = "DRIFTLINE_BASELINE")]
    pub baseline: Option<String>,
    /// Every change of its life, not only those since the baseline.
    #[arg(long, env = "DRIFTLINE_ALL", value_parser = clap::builder::FalseyValueParser::new())]
    pub all: bool,
    /// Ask AWS itself for events of that time and of this resource that are not stored. Nothing is stored by it.
    #[arg(long, env = "DRIFTLINE_ASK_LIVE", value_parser = clap::builder::FalseyValueParser::new())]
    pub live: bool,
    /// The profile to ask AWS with [default: as AWS's own tools choose].
    #[arg(long, value_name = "NAME", env = "DRIFTLINE_PROFILE", requires = "live")]
    pub profile: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct OwnershipArgs {
    /// Only what these sources say; repeatable.
    #[arg(long, value_name = "SOURCE", env = "DRIFTLINE_SOURCE", value_delimiter = ',')]
    pub source: Vec<String>,
    /// As it was at this time.
    #[arg(long, value_name = "TIME", env = "DRIFTLINE_AT")]
    pub at: Option<String>,
    /// List what is claimed, too.
    #[arg(long, env = "DRIFTLINE_ALL", value_parser = clap::builder::FalseyValueParser::new())]
    pub all: bool,
    /// How many resources of each kind a table or Markdown lists; 0 for all.
    #[arg(long, value_name = "N", default_value_t = 50, env = "DRIFTLINE_LIMIT")]
    pub limit: usize,
}

#[derive(Debug, Args)]
pub(crate) struct OrphansArgs {
    /// As it was at this time.
    #[arg(long, value_name = "TIME", env = "DRIFTLINE_AT")]
    pub at: Option<String>,
    /// List records whose target was found, too.
    #[arg(long, env = "DRIFTLINE_ALL", value_parser = clap::builder::FalseyValueParser::new())]
    pub all: bool,
    /// How many records of each kind a table or Markdown lists; 0 for all.
    #[arg(long, value_name = "N", default_value_t = 50, env = "DRIFTLINE_LIMIT")]
    pub limit: usize,
    /// Exit with 0 whatever was found.
    #[arg(long, env = "DRIFTLINE_EXIT_ZERO", value_parser = clap::builder::FalseyValueParser::new())]
    pub exit_zero: bool,
}

#[derive(Debug, Args)]
pub(crate) struct LogArgs {
    /// Only this source.
    pub source: Option<String>,
    /// How many versions of each source, the newest first; 0 for all.
    #[arg(long, value_name = "N", default_value_t = 20, env = "DRIFTLINE_LOG_LIMIT")]
    pub limit: usize,
}

#[derive(Debug, Args)]
pub(crate) struct GcArgs {
    /// Keep versions taken within this time, e.g. `30d`.
    #[arg(long, value_name = "TIME", env = "DRIFTLINE_KEEP")]
    pub keep: Option<String>,
    /// Keep at least this many of the newest versions of each source.
    #[arg(long, value_name = "N", env = "DRIFTLINE_KEEP_LAST")]
    pub keep_last: Option<usize>,
    /// Leave files that nothing refers to for this long: a commit or a reader may be using them.
    #[arg(long, value_name = "TIME", env = "DRIFTLINE_GRACE")]
    pub grace: Option<String>,
    /// Only say what would be dropped.
    #[arg(long, env = "DRIFTLINE_DRY_RUN", value_parser = clap::builder::FalseyValueParser::new())]
    pub dry_run: bool,
}

#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// Prove that these documents come out the same in whatever order and pieces they come; nothing else is checked.
    #[arg(long, value_name = "DOCUMENT", num_args = 1.., env = "DRIFTLINE_DETERMINISM", value_delimiter = ',')]
    pub determinism: Vec<String>,
    /// Which model the documents are of [default: the one that understands them].
    #[arg(long, value_name = "MODEL", env = "DRIFTLINE_MODEL", requires = "determinism")]
    pub model: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct JsonataArgs {
    /// The expression.
    #[arg(short = 'e', long = "expression", value_name = "EXPR", allow_hyphen_values = true)]
    #[arg(required_unless_present = "batch", conflicts_with = "batch", env = "DRIFTLINE_EXPRESSION")]
    pub expression: Option<String>,
    /// The JSON to evaluate it on; `-` is standard input. Without it there is no input.
    #[arg(value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// A variable that the expression finds set, e.g. `limit=3`; repeatable.
    #[arg(long, value_name = "NAME=JSON", conflicts_with = "batch", env = "DRIFTLINE_BIND")]
    pub bind: Vec<String>,
    /// Evaluate one line after the other, `{"expr", "data", "bindings"}`, from FILE or standard input.
    #[arg(long, env = "DRIFTLINE_BATCH", value_parser = clap::builder::FalseyValueParser::new())]
    pub batch: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SchemaArgs {
    /// The type, in any capitals, e.g. `AWS::S3::Bucket`; with --list a pattern such as `AWS::S3::*`.
    #[arg(value_name = "TYPE")]
    pub kind: Option<String>,
    /// List the types that have a schema.
    #[arg(long, env = "DRIFTLINE_LIST", value_parser = clap::builder::FalseyValueParser::new())]
    pub list: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// The effective values, and where each came from.
    View,
}
