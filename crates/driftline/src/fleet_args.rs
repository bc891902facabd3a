//! What is said about many accounts: on the command line of `observe all` and `fleet`, and in `[fleet]`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use jiff::SignedDuration;
use serde::Deserialize;

use crate::accounts::{Chosen, chosen};
use crate::args::PermissionArgs;
use crate::error::CommandResult;
use crate::live_args::LiveArgs;
use crate::time::parse_duration;

/// Requests on the wire at once when nothing is said: in all, of an account, of one of its regions, of a service there.
pub(crate) const OVERALL: usize = 64;
pub(crate) const PER_ACCOUNT: usize = 16;
pub(crate) const PER_REGION: usize = 8;
pub(crate) const PER_SERVICE: usize = 4;

#[derive(Clone, Debug, Default, Args)]
pub(crate) struct AllArgs {
    /// Accounts in which to run the sources that ask AWS: ids, `org` for every active account of the organization, a
    /// unit of it such as ou-ab12-cd34ef56, or @FILE; repeatable [default: as configured].
    #[arg(long, value_name = "WHICH", env = "DRIFTLINE_ACCOUNTS", value_delimiter = ',', help_heading = MANY)]
    pub accounts: Vec<String>,
    /// Accounts not to look at, beside those that are configured: ids, units or @FILE; repeatable.
    #[arg(long = "exclude-account", value_name = "WHICH", env = "DRIFTLINE_EXCLUDE_ACCOUNT", value_delimiter = ',',
        help_heading = MANY)]
    pub exclude_accounts: Vec<String>,
    /// The role to take on in other accounts: a name, or an ARN with `{account}` in it.
    #[arg(long, visible_alias = "role", value_name = "NAME", env = "DRIFTLINE_ROLE_NAME", help_heading = MANY)]
    pub role_name: Option<String>,
    /// The external id that the role asks for.
    #[arg(long, value_name = "ID", env = "DRIFTLINE_EXTERNAL_ID", help_heading = MANY)]
    pub external_id: Option<String>,
    /// A region to look at; repeatable.
    #[arg(long = "region", value_name = "REGION", env = "DRIFTLINE_REGION", value_delimiter = ',', help_heading = MANY)]
    pub regions: Vec<String>,
    /// Look at every region that an account has enabled.
    #[arg(long, env = "DRIFTLINE_ALL_REGIONS", value_parser = clap::builder::FalseyValueParser::new(), help_heading = MANY)]
    pub all_regions: bool,
    /// A region not to look at, beside those that are configured; repeatable.
    #[arg(long = "exclude-region", value_name = "REGION", env = "DRIFTLINE_EXCLUDE_REGION", value_delimiter = ',',
        help_heading = MANY)]
    pub exclude_regions: Vec<String>,
    /// Do only a share of the work, e.g. 2/5 for the second of five; which accounts that is depends on their ids alone.
    /// `job/5` takes the number from an Indexed Job of Kubernetes or an array job of AWS Batch.
    #[arg(long, value_name = "N/OF", env = "DRIFTLINE_SHARD", help_heading = MANY)]
    pub shard: Option<String>,
    /// Requests on the wire at once, over everything [default: 64].
    #[arg(long, value_name = "N", env = "DRIFTLINE_CONCURRENCY", value_parser = at_least_one, help_heading = MANY)]
    pub concurrency: Option<usize>,
    /// ... of one account [default: 16].
    #[arg(long, value_name = "N", env = "DRIFTLINE_PER_ACCOUNT", value_parser = at_least_one, help_heading = MANY)]
    pub per_account: Option<usize>,
    /// ... of one region of an account [default: 8].
    #[arg(long, value_name = "N", env = "DRIFTLINE_PER_REGION", value_parser = at_least_one, help_heading = MANY)]
    pub per_region: Option<usize>,
    /// ... of one service in one region of an account, which is what AWS counts [default: 4].
    #[arg(long, value_name = "N", env = "DRIFTLINE_PER_SERVICE", value_parser = at_least_one, help_heading = MANY)]
    pub per_service: Option<usize>,
    /// Make at most this many calls in all; what is not reached is partial.
    #[arg(long, value_name = "N", env = "DRIFTLINE_MAX_CALLS", help_heading = MANY)]
    pub max_calls: Option<u64>,
    /// Make no call; print what the sources that ask AWS would ask, and the IAM policies for it: of the role in each
    /// account, and of whoever takes it on.
    #[arg(long, env = "DRIFTLINE_DRY_RUN", value_parser = clap::builder::FalseyValueParser::new(), help_heading = MANY)]
    pub dry_run: bool,
    /// Exit with 3 if something could not be looked at: a listing that was cut, an account that could not be entered.
    #[arg(long, env = "DRIFTLINE_STRICT", value_parser = clap::builder::FalseyValueParser::new())]
    pub strict: bool,
    #[command(flatten)]
    pub permissions: PermissionArgs,
}

const MANY: &str = "Many accounts (for sources that ask AWS itself; goes before what the configuration says)";

/// A bound of none would wait for ever.
pub(crate) fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("at least 1".to_owned()),
        Ok(number) => Ok(number),
        Err(_) => Err("it is not a number".to_owned()),
    }
}

/// `[fleet]`, as it is written.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct RawFleet {
    accounts: Vec<String>,
    exclude_accounts: Vec<String>,
    role_name: Option<String>,
    external_id: Option<String>,
    regions: Vec<String>,
    all_regions: bool,
    exclude_regions: Vec<String>,
    concurrency: Option<std::num::NonZeroUsize>,
    per_account: Option<std::num::NonZeroUsize>,
    per_region: Option<std::num::NonZeroUsize>,
    per_service: Option<std::num::NonZeroUsize>,
    max_calls: Option<u64>,
    stale_after: Option<String>,
}

/// The accounts that one looks after, and how they are asked.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fleet {
    pub accounts: Vec<String>,
    pub exclude_accounts: Vec<String>,
    pub role_name: Option<String>,
    pub external_id: Option<String>,
    pub regions: Vec<String>,
    pub all_regions: bool,
    pub exclude_regions: Vec<String>,
    pub concurrency: Option<usize>,
    pub per_account: Option<usize>,
    pub per_region: Option<usize>,
    pub per_service: Option<usize>,
    pub max_calls: Option<u64>,
    pub stale_after: Option<SignedDuration>,
}

impl RawFleet {
    /// Files that it names are read when they are needed: they may be written later than the configuration.
    pub(crate) fn resolve(self) -> CommandResult<Fleet> {
        for word in self.accounts.iter().chain(&self.exclude_accounts).filter(|word| !word.starts_with('@')) {
            chosen(std::slice::from_ref(word)).map_err(|error| error.about("[fleet] accounts"))?;
        }
        let stale_after = self.stale_after.as_deref().map(parse_duration).transpose();
        let get = |bound: Option<std::num::NonZeroUsize>| bound.map(std::num::NonZeroUsize::get);
        Ok(Fleet {
            concurrency: get(self.concurrency),
            per_account: get(self.per_account),
            per_region: get(self.per_region),
            per_service: get(self.per_service),
            stale_after: stale_after.map_err(|error| error.about("[fleet] stale_after"))?,
            accounts: self.accounts,
            exclude_accounts: self.exclude_accounts,
            role_name: self.role_name,
            external_id: self.external_id,
            regions: self.regions,
            all_regions: self.all_regions,
            exclude_regions: self.exclude_regions,
            max_calls: self.max_calls,
        })
    }
}

impl Fleet {
    /// What is in force of it: name, value, and whether somebody said so.
    pub(crate) fn told(&self) -> Vec<(&'static str, String, bool)> {
        let said = [
            ("fleet.accounts", self.accounts.join(", ")),
            ("fleet.exclude_accounts", self.exclude_accounts.join(", ")),
            ("fleet.role_name", self.role_name.clone().unwrap_or_default()),
            ("fleet.regions", if self.all_regions { "all".to_owned() } else { self.regions.join(", ") }),
            ("fleet.exclude_regions", self.exclude_regions.join(", ")),
        ];
        let bounds = [
            ("fleet.concurrency", self.concurrency, OVERALL),
            ("fleet.per_account", self.per_account, PER_ACCOUNT),
            ("fleet.per_region", self.per_region, PER_REGION),
            ("fleet.per_service", self.per_service, PER_SERVICE),
        ];
        let said = said.into_iter().filter(|(_, value)| !value.is_empty()).map(|(name, value)| (name, value, true));
        let bounds = bounds
            .into_iter()
            .map(|(name, bound, default)| (name, bound.unwrap_or(default).to_string(), bound.is_some()));
        let told: Vec<_> = said.chain(bounds).collect();
        // Whoever has no fleet need not read of it.
        if told.iter().any(|(_, _, given)| *given) { told } else { Vec::new() }
    }

    pub(crate) fn chosen(&self) -> CommandResult<Chosen> {
        chosen(&self.accounts).map_err(|error| error.about("[fleet] accounts"))
    }

    pub(crate) fn excluded(&self) -> CommandResult<Chosen> {
        chosen(&self.exclude_accounts).map_err(|error| error.about("[fleet] exclude_accounts"))
    }
}

fn first<T: Clone>(lists: [&[T]; 2]) -> Vec<T> {
    lists.into_iter().find(|list| !list.is_empty()).unwrap_or_default().to_vec()
}

/// What somebody excludes stays excluded, whoever excludes more.
fn joined(lists: [&[String]; 3]) -> Vec<String> {
    let mut all = Vec::new();
    for word in lists.into_iter().flatten() {
        if !all.contains(word) {
            all.push(word.clone());
        }
    }
    all
}

impl LiveArgs {
    /// What a source is asked for in a run over the fleet: as the command line says, then the source itself, then
    /// `[fleet]`. What is not to be looked at is whatever any of them says.
    pub(crate) fn in_fleet(&self, flags: &AllArgs, fleet: &Fleet) -> LiveArgs {
        let or = |flag: &Option<String>, own: &Option<String>, fleet: &Option<String>| {
            flag.clone().or_else(|| own.clone()).or_else(|| fleet.clone())
        };
        // Accounts are one choice, and regions another: half of each would be neither.
        let own_accounts = self.organization || !self.accounts.is_empty();
        let organization = flags.accounts.is_empty() && self.organization;
        let accounts = match own_accounts {
            true => first([&flags.accounts, &self.accounts]),
            false => first([&flags.accounts, &fleet.accounts]),
        };
        let choices = [
            (&flags.regions, flags.all_regions),
            (&self.regions, self.all_regions),
            (&fleet.regions, fleet.all_regions),
        ];
        let (regions, all_regions) = choices
            .into_iter()
            .find(|(regions, all)| *all || !regions.is_empty())
            .map_or((Vec::new(), false), |(regions, all)| (regions.clone(), all));
        LiveArgs {
            accounts,
            organization,
            exclude_accounts: joined([&flags.exclude_accounts, &self.exclude_accounts, &fleet.exclude_accounts]),
            role_name: or(&flags.role_name, &self.role_name, &fleet.role_name),
            external_id: or(&flags.external_id, &self.external_id, &fleet.external_id),
            regions,
            all_regions,
            exclude_regions: joined([&flags.exclude_regions, &self.exclude_regions, &fleet.exclude_regions]),
            ..self.clone()
        }
    }
}

/// How rows of `fleet` are made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum By {
    #[default]
    Account,
    Region,
    Source,
}

/// What makes `fleet` exit with 2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FleetFailOn {
    /// Something was last looked at too long ago.
    Stale,
    /// Something was not listed whole.
    Partial,
    /// An account that is expected was never looked at.
    Missing,
    /// Something is modified or deleted.
    Drifted,
}

#[derive(Debug, Args)]
pub(crate) struct FleetArgs {
    /// A row for each account, for each of its regions, or for each source in it.
    #[arg(long, value_enum, value_name = "WHAT", default_value = "account", env = "DRIFTLINE_BY")]
    pub by: By,
    /// A file of the accounts that there should be: one a line with its name behind it, or what `aws organizations
    /// list-accounts` prints [default: `[fleet] accounts`, and the organization as it was last listed].
    #[arg(long, value_name = "FILE", env = "DRIFTLINE_EXPECT")]
    pub expect: Option<PathBuf>,
    /// Accounts that nobody expects, beside those that are configured: ids, units or @FILE; repeatable.
    #[arg(long = "exclude-account", value_name = "WHICH", env = "DRIFTLINE_EXCLUDE_ACCOUNT", value_delimiter = ',')]
    pub exclude_accounts: Vec<String>,
    /// What was last looked at longer ago than this is stale [default: as configured, or 24h].
    #[arg(long, value_name = "TIME", env = "DRIFTLINE_STALE_AFTER")]
    pub stale_after: Option<String>,
    /// Which baseline to compare with.
    #[arg(long, value_name = "NAME", env = "DRIFTLINE_BASELINE")]
    pub baseline: Option<String>,
    /// Only this source; repeatable.
    #[arg(long, value_name = "SOURCE", env = "DRIFTLINE_SOURCE", value_delimiter = ',')]
    pub source: Vec<String>,
    /// What makes the exit code 2; repeatable.
    #[arg(long, value_enum, value_name = "WHAT", env = "DRIFTLINE_FLEET_FAIL_ON", value_delimiter = ',')]
    pub fail_on: Vec<FleetFailOn>,
    /// How many rows a table or Markdown has; 0 for all.
    #[arg(long, value_name = "N", default_value_t = 50, env = "DRIFTLINE_LIMIT")]
    pub limit: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_goes_before_what_a_source_has_and_that_before_the_fleet() {
        let words = |word: &str| vec![word.to_owned()];
        let fleet = Fleet {
            accounts: words("org"),
            all_regions: true,
            role_name: Some("of-fleet".into()),
            external_id: Some("e".into()),
            ..Fleet::default()
        };
        let plain = LiveArgs::default().in_fleet(&AllArgs::default(), &fleet);
        assert_eq!(
            (plain.accounts, plain.all_regions, plain.role_name.as_deref()),
            (words("org"), true, Some("of-fleet"))
        );

        let own = LiveArgs {
            organization: true,
            regions: words("eu-west-1"),
            role_name: Some("own".into()),
            ..LiveArgs::default()
        };
        let kept = own.in_fleet(&AllArgs::default(), &fleet);
        assert!(kept.organization && kept.accounts.is_empty() && !kept.all_regions);
        assert_eq!((kept.regions, kept.role_name.as_deref()), (words("eu-west-1"), Some("own")));
        assert_eq!(kept.external_id.as_deref(), Some("e"));

        let flags = AllArgs { accounts: words("111111111111"), all_regions: true, ..AllArgs::default() };
        let told = own.in_fleet(&flags, &fleet);
        assert!(!told.organization && told.all_regions && told.regions.is_empty());
        assert_eq!(told.accounts, words("111111111111"));
    }

    #[test]
    fn what_anybody_excludes_is_excluded_whoever_excludes_more() {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let fleet = Fleet {
            exclude_accounts: words(&["ou-ab12-5andb0x5", "111111111111"]),
            exclude_regions: words(&["me-south-1"]),
            ..Fleet::default()
        };
        let own = LiveArgs {
            exclude_accounts: words(&["222222222222"]),
            exclude_regions: words(&["af-south-1"]),
            ..LiveArgs::default()
        };
        let flags = AllArgs {
            exclude_accounts: words(&["333333333333", "111111111111"]),
            exclude_regions: words(&["me-south-1"]),
            ..AllArgs::default()
        };
        let told = own.in_fleet(&flags, &fleet);
        assert_eq!(told.exclude_accounts, words(&["333333333333", "111111111111", "222222222222", "ou-ab12-5andb0x5"]));
        assert_eq!(told.exclude_regions, words(&["me-south-1", "af-south-1"]));
    }
}
