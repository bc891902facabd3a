//! What is said on the command line, or in the configuration file, about observing AWS itself.

use clap::Args;
use serde::Deserialize;

use crate::fleet_args::at_least_one;

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
    /// Accounts to look at, in each of which --role-name is taken on: ids, `org` for every active account of the
    /// organization, a unit of it such as ou-ab12-cd34ef56, or @FILE; repeatable.
    #[arg(long, value_name = "WHICH", env = "DRIFTLINE_ACCOUNTS", value_delimiter = ',', help_heading = LIVE)]
    pub accounts: Vec<String>,
    /// Accounts not to look at: ids, units or @FILE; repeatable.
    #[arg(
        long = "exclude-account",
        value_name = "WHICH",
        env = "DRIFTLINE_EXCLUDE_ACCOUNT",
        value_delimiter = ',',
        help_heading = LIVE
    )]
    pub exclude_accounts: Vec<String>,
    /// Look at every active account of the organization.
    #[arg(long, env = "DRIFTLINE_ORGANIZATION", value_parser = clap::builder::FalseyValueParser::new(), help_heading = LIVE)]
    pub organization: bool,
    /// The role to take on in other accounts: a name, or an ARN with `{account}` in it [default:
    /// `OrganizationAccountAccessRole`].
    #[arg(long, visible_alias = "role", value_name = "NAME", env = "DRIFTLINE_ROLE_NAME", help_heading = LIVE)]
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
    /// Requests on the wire at once [default: 16].
    #[arg(long, value_name = "N", env = "DRIFTLINE_CONCURRENCY", value_parser = at_least_one, help_heading = LIVE)]
    pub concurrency: Option<usize>,
    /// ... of one account.
    #[arg(long, value_name = "N", env = "DRIFTLINE_PER_ACCOUNT", value_parser = at_least_one, help_heading = LIVE)]
    pub per_account: Option<usize>,
    /// ... of one region of an account.
    #[arg(long, value_name = "N", env = "DRIFTLINE_PER_REGION", value_parser = at_least_one, help_heading = LIVE)]
    pub per_region: Option<usize>,
    /// ... of one service in one region of an account.
    #[arg(long, value_name = "N", env = "DRIFTLINE_PER_SERVICE", value_parser = at_least_one, help_heading = LIVE)]
    pub per_service: Option<usize>,
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
        let lists = [
            &self.regions,
            &self.exclude_regions,
            &self.role_arns,
            &self.accounts,
            &self.exclude_accounts,
            &self.types,
        ];
        texts.iter().any(|text| text.is_some())
            || lists.iter().any(|list| !list.is_empty())
            || self.all_regions
            || self.organization
            || self.max_calls.is_some()
            || self.attempts.is_some()
            || [self.concurrency, self.per_account, self.per_region, self.per_service].iter().any(Option::is_some)
            || self.dry_run
    }
}
