//! What is said on the command line, or in the configuration file, about observing AWS itself.

use clap::Args;
use serde::Deserialize;

/// Without documents AWS itself is asked, with the credentials that its own tools would use.
#[derive(Clone, Debug, Default, Args, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub(crate) struct LiveArgs {
    /// The profile to use [default: as AWS's own tools choose].
    #[arg(long, value_name = "NAME", env = "DRIFTLINE_PROFILE", help_heading = LIVE)]
    pub profile: Option<String>,
    /// A region to look at; repeatable [default: the configured one].
    #[arg(long = "region", value_name = "REGION", env = "DRIFTLINE_REGION", value_delimiter = ',', help_heading = LIVE)]
    pub regions: Vec<String>,
    /// Look at every region that the account has enabled.
    #[arg(long, env = "DRIFTLINE_ALL_REGIONS", value_parser = clap::builder::FalseyValueParser::new(), help_heading = LIVE)]
    pub all_regions: bool,
    /// A region not to look at; repeatable.
    #[arg(
        long = "exclude-region",
        value_name = "REGION",
        env = "DRIFTLINE_EXCLUDE_REGION",
        value_delimiter = ',',
        help_heading = LIVE
    )]
    pub exclude_regions: Vec<String>,
    /// A role to take on; repeatable, each with the credentials of the one before.
    #[arg(long = "role-arn", value_name = "ARN", env = "DRIFTLINE_ROLE_ARN", value_delimiter = ',', help_heading = LIVE)]
    pub role_arns: Vec<String>,
    /// The external id that the last role asks for.
    #[arg(long, value_name = "ID", env = "DRIFTLINE_EXTERNAL_ID", help_heading = LIVE)]
    pub external_id: Option<String>,
    /// Accounts to look at, in each of which --role-name is taken on; repeatable.
    #[arg(long, value_name = "ID", env = "DRIFTLINE_ACCOUNTS", value_delimiter = ',', help_heading = LIVE)]
    pub accounts: Vec<String>,
    /// Look at every active account of the organization.
    #[arg(long, env = "DRIFTLINE_ORGANIZATION", value_parser = clap::builder::FalseyValueParser::new(), help_heading = LIVE)]
    pub organization: bool,
    /// The role to take on in other accounts [default: `OrganizationAccountAccessRole`].
    #[arg(long, value_name = "NAME", env = "DRIFTLINE_ROLE_NAME", help_heading = LIVE)]
    pub role_name: Option<String>,
    /// Only these types, e.g. `AWS::SQS::Queue`; repeatable.
    #[arg(long, value_name = "TYPE", env = "DRIFTLINE_TYPES", value_delimiter = ',', help_heading = LIVE)]
    pub types: Vec<String>,
    /// Of inventory: the broad listing of an index instead of each type's own: resource-explorer, config or tag-api.
    #[arg(long, value_name = "INDEX", env = "DRIFTLINE_SCAN", help_heading = LIVE)]
    pub scan: Option<String>,
    /// How often a call is tried before it is given up [default: 8].
    #[arg(long, value_name = "N", env = "DRIFTLINE_ATTEMPTS", value_parser = clap::value_parser!(u32).range(1..=100),
        help_heading = LIVE)]
    pub attempts: Option<u32>,
    /// Make at most this many calls; what is not reached is partial.
    #[arg(long, value_name = "N", env = "DRIFTLINE_MAX_CALLS", help_heading = LIVE)]
    pub max_calls: Option<u64>,
    /// Calls under way at once [default: 16].
    #[arg(long, value_name = "N", env = "DRIFTLINE_CONCURRENCY", help_heading = LIVE)]
    pub concurrency: Option<usize>,
    /// Ask this address instead of AWS's own, as `AWS_ENDPOINT_URL` does.
    #[arg(long, value_name = "URL", env = "DRIFTLINE_ENDPOINT_URL", help_heading = LIVE)]
    pub endpoint_url: Option<String>,
    /// Make no call; print what would be asked, and an IAM policy with exactly the actions for it.
    #[arg(long, env = "DRIFTLINE_DRY_RUN", value_parser = clap::builder::FalseyValueParser::new(), help_heading = LIVE)]
    #[serde(skip)]
    pub dry_run: bool,
    /// Exit with 3 if something could not be looked at.
    #[arg(long, env = "DRIFTLINE_STRICT", value_parser = clap::builder::FalseyValueParser::new(), help_heading = LIVE)]
    #[serde(skip)]
    pub strict: bool,
    /// Of cloudtrail: which events.
    #[arg(skip)]
    pub events: EventArgs,
}

/// Which events of a trail.
#[derive(Clone, Debug, Default, Args, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct EventArgs {
    /// From this time on [default: where what is known ends, and of a place of which nothing is known the last 7 days].
    #[arg(long, value_name = "TIME", env = "DRIFTLINE_SINCE")]
    pub since: Option<String>,
    /// Until this time [default: now].
    #[arg(long, value_name = "TIME", env = "DRIFTLINE_UNTIL")]
    pub until: Option<String>,
    /// Also events that only read.
    #[arg(long, env = "DRIFTLINE_READS", value_parser = clap::builder::FalseyValueParser::new())]
    pub reads: bool,
}

const LIVE: &str = "Asking AWS itself (without documents)";

impl LiveArgs {
    /// Whether anything of it was said that has no meaning beside documents.
    pub(crate) fn is_said(&self) -> bool {
        let texts = [&self.profile, &self.external_id, &self.role_name, &self.scan, &self.endpoint_url];
        let lists = [&self.regions, &self.exclude_regions, &self.role_arns, &self.accounts, &self.types];
        texts.iter().any(|text| text.is_some())
            || lists.iter().any(|list| !list.is_empty())
            || self.all_regions
            || self.organization
            || self.max_calls.is_some()
            || self.attempts.is_some()
            || self.concurrency.is_some()
            || self.dry_run
    }
}
