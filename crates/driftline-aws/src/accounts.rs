//! Which accounts and regions are looked at, and with whose credentials.

use std::collections::{BTreeMap, BTreeSet};

use aws_wire::endpoint::Partition;
use aws_wire::{Client, Error, Kind, Role};
use driftline_sources::organization::{is_account, is_parent};
use serde_json::Value;

use crate::organization::{self, Part};
use crate::row::{Operation, Wire};
use crate::run::ask;
use crate::shape::all;

/// Where to look, as it was asked for.
#[derive(Clone, Debug, Default)]
pub struct Reach {
    /// Regions by name; none means the one that is configured.
    pub regions: Vec<String>,
    pub all_regions: bool,
    pub exclude_regions: Vec<String>,
    /// Accounts in which to take on `role_name`.
    pub accounts: Vec<String>,
    /// What whoever named them calls some of them.
    pub names: BTreeMap<String, String>,
    /// Every active account of the organization.
    pub organization: bool,
    /// Every active account beneath these roots or units of the organization.
    pub parents: Vec<String>,
    /// Accounts not to look at, whoever names them.
    pub exclude_accounts: Vec<String>,
    /// The same for everything beneath these roots or units.
    pub exclude_parents: Vec<String>,
    /// A name, or an ARN; `{account}` in it stands for the id of the account.
    pub role_name: Option<String>,
    pub external_id: Option<String>,
}

impl Reach {
    /// Whether other accounts than that of the credentials may be meant.
    pub fn names_accounts(&self) -> bool {
        self.organization || !self.accounts.is_empty() || !self.parents.is_empty()
    }
}

/// Whom the credentials are of: from there every account is entered.
#[derive(Clone, Debug)]
pub struct Hub {
    pub client: Client,
    pub account: String,
    pub partition: &'static str,
}

/// The accounts that were asked for, and what was listed to find them.
#[derive(Clone, Debug, Default)]
pub struct Roster {
    pub accounts: BTreeSet<String>,
    /// What some of them are called.
    pub names: BTreeMap<String, String>,
    pub parts: Vec<Part>,
}

pub const SESSION: &str = "driftline";

/// The role that AWS itself makes in accounts that an organization makes.
pub const STANDARD_ROLE: &str = "OrganizationAccountAccessRole";

const REGIONS: Operation = Operation {
    service: "ec2",
    name: "DescribeRegions",
    wire: Wire::Query { version: "2016-11-15" },
    given: &[],
    action: None,
    lists: &["regionInfo"],
};

/// The operations that finding out takes in each account that is looked at.
pub fn operations_inside(reach: &Reach) -> Vec<Operation> {
    if reach.all_regions { vec![REGIONS] } else { Vec::new() }
}

/// The operations that finding out takes with the credentials at hand.
pub fn operations_outside(reach: &Reach) -> Vec<Operation> {
    let mut operations = Vec::new();
    if reach.organization {
        operations.push(organization::ACCOUNTS);
    }
    if !reach.parents.is_empty() || !reach.exclude_parents.is_empty() {
        operations.extend([organization::BENEATH, organization::UNITS]);
    }
    operations
}

impl Hub {
    pub async fn find(client: &Client) -> Result<Self, Error> {
        let (client, who) = client.identify().await?;
        let partition = Partition::of(client.region()).name;
        Ok(Self { client, account: who.account, partition })
    }

    /// Who is meant. Nothing is entered yet.
    pub async fn roster(&self, reach: &Reach) -> Result<Roster, Error> {
        let mut roster = Roster { accounts: reach.accounts.iter().cloned().collect(), ..Roster::default() };
        let named = reach.parents.iter().chain(&reach.exclude_parents);
        if let Some(wrong) = named.clone().find(|parent| !is_parent(parent)) {
            let message = format!("`{wrong}` is neither a root nor a unit of an organization, like ou-ab12-cd34ef56");
            return Err(Error::of(Kind::Invalid, "", "", message));
        }
        if reach.organization {
            roster.parts.push(Part::whole(&self.client).await?);
        }
        for parent in &reach.parents {
            roster.parts.push(Part::beneath(&self.client, parent, false).await?);
        }
        for parent in &reach.exclude_parents {
            roster.parts.push(Part::beneath(&self.client, parent, true).await?);
        }
        let active = |excluded| {
            let parts = roster.parts.iter().filter(move |part| part.excluded == excluded);
            parts.flat_map(Part::active).map(str::to_owned).collect::<BTreeSet<String>>()
        };
        let (included, excluded) = (active(false), active(true));
        roster.accounts.extend(included);
        if !reach.names_accounts() {
            roster.accounts.insert(self.account.clone());
        }
        let meant = roster.accounts.len();
        roster.accounts.retain(|account| !excluded.contains(account) && !reach.exclude_accounts.contains(account));
        // Quietly looking at nobody would pass for a fleet in which all is well.
        if meant > 0 && roster.accounts.is_empty() {
            let message = "nobody is left to look at: every account that is meant is excluded, too";
            return Err(Error::of(Kind::Invalid, "", "", message));
        }
        if let Some(account) = roster.accounts.iter().find(|account| !is_account(account)) {
            let message = format!("`{account}` is not the id of an account, which has twelve digits");
            return Err(Error::of(Kind::Invalid, "", "", message));
        }
        roster.names = roster.parts.iter().flat_map(Part::names).map(|(id, name)| (id.into(), name.into())).collect();
        roster.names.extend(reach.names.clone());
        Ok(roster)
    }

    /// Takes on the role in an account.
    pub async fn enter(&self, account: &str, reach: &Reach) -> Result<Client, Error> {
        match account == self.account {
            true => Ok(self.client.clone()),
            false => enter(&self.client, account, reach).await,
        }
    }
}

async fn enter(client: &Client, account: &str, reach: &Reach) -> Result<Client, Error> {
    let arn = role_arn(Partition::of(client.region()).name, account, reach.role_name.as_deref());
    let role = Role { arn, external_id: reach.external_id.clone(), session_name: SESSION.to_owned() };
    let (client, who) = client.assume(&role).await?.identify().await?;
    // An emulator may take a role for something else than it is.
    if who.account != account {
        let message = format!("the role {} is of the account {}, and not of {account}", role.arn, who.account);
        return Err(Error::of(Kind::Invalid, "sts", "AssumeRole", message));
    }
    Ok(client)
}

/// Why an account was not looked at, in words that are the same each time it happens.
pub fn reason(error: &Error) -> String {
    let what = format!("{} {}", error.service, error.operation);
    let why = match error.kind {
        Kind::AccessDenied if &*error.operation == "AssumeRole" => {
            "access denied: sts:AssumeRole is not allowed".into()
        }
        Kind::AccessDenied => format!("access denied: {what} is not allowed"),
        Kind::Throttled => format!("throttled: {what} was refused at every attempt"),
        Kind::Timeout => format!("time-out: {what} did not answer in time"),
        Kind::Budget => "budget: the calls that this run may make were spent".into(),
        Kind::Unreachable => format!("unreachable: no connection for {what}"),
        Kind::Credentials => format!("credentials: {what} refused them"),
        _ => format!("refused: {what} answered {}", error.code.as_deref().unwrap_or("an error")),
    };
    format!("account not entered: {why}")
}

/// The role that is taken on in an account.
pub fn role_arn(partition: &str, account: &str, named: Option<&str>) -> String {
    let name = named.unwrap_or(STANDARD_ROLE).replace("{account}", account);
    if name.starts_with("arn:") { name } else { format!("arn:{partition}:iam::{account}:role/{name}") }
}

/// The regions of an account that are to be looked at.
pub async fn regions(client: &Client, reach: &Reach) -> Result<Vec<String>, Error> {
    let mut regions: BTreeSet<String> = reach.regions.iter().cloned().collect();
    if reach.all_regions {
        let answer = ask(client, &REGIONS, &[], "").await?;
        regions
            .extend(all(&answer, "regionInfo/*/regionName").into_iter().filter_map(Value::as_str).map(str::to_owned));
    }
    if regions.is_empty() {
        regions.insert(client.region().to_owned());
    }
    regions.retain(|region| !reach.exclude_regions.contains(region));
    if let Some(region) = regions.iter().find(|region| !is_region(region)) {
        return Err(Error::of(Kind::Invalid, "", "", format!("`{region}` is not the name of a region")));
    }
    Ok(regions.into_iter().collect())
}

/// Names become parts of streams and addresses: what cannot be one is refused before anything is asked.
fn is_region(name: &str) -> bool {
    let fits = |char: char| char.is_ascii_lowercase() || char.is_ascii_digit() || char == '-';
    name.starts_with(|first: char| first.is_ascii_lowercase()) && name.len() <= 40 && name.chars().all(fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_role_is_named_once_for_all_accounts() {
        for (named, arn) in [
            (None, "arn:aws:iam::123456789012:role/OrganizationAccountAccessRole"),
            (Some("audit/Reader"), "arn:aws:iam::123456789012:role/audit/Reader"),
            (Some("reader-{account}"), "arn:aws:iam::123456789012:role/reader-123456789012"),
            (Some("arn:aws:iam::{account}:role/x"), "arn:aws:iam::123456789012:role/x"),
        ] {
            assert_eq!(role_arn("aws", "123456789012", named), arn);
        }
    }

    #[test]
    fn what_cannot_be_a_region_is_refused() {
        for good in ["us-east-1", "us-gov-west-1", "eusc-de-east-1"] {
            assert!(is_region(good), "{good}");
        }
        for bad in ["", "US-EAST-1", "us east", "../x", "-a", "latest/x"] {
            assert!(!is_region(bad), "{bad}");
        }
    }
}
