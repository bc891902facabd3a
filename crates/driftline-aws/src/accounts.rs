//! Which accounts and regions are looked at, and with whose credentials.

use std::collections::BTreeSet;

use aws_wire::endpoint::Partition;
use aws_wire::{Client, Error, Kind, Role};
use serde_json::Value;

use crate::row::{Given, Operation, Paging, Wire};
use crate::run::{ask, pages};
use crate::shape::{all, text_at};

/// Where to look, as it was asked for.
#[derive(Clone, Debug, Default)]
pub struct Reach {
    /// Regions by name; none means the one that is configured.
    pub regions: Vec<String>,
    pub all_regions: bool,
    pub exclude_regions: Vec<String>,
    /// Accounts in which to take on `role_name`.
    pub accounts: Vec<String>,
    /// Every active account of the organization.
    pub organization: bool,
    pub role_name: Option<String>,
    pub external_id: Option<String>,
}

/// One account, and the regions to look at in it.
#[derive(Clone, Debug)]
pub struct Target {
    pub client: Client,
    pub account: String,
    pub partition: &'static str,
    pub regions: Vec<String>,
}

/// An account that could not be looked at.
#[derive(Clone, Debug)]
pub struct Unreached {
    pub account: String,
    pub error: Error,
}

pub const SESSION: &str = "driftline";

const REGIONS: Operation = Operation {
    service: "ec2",
    name: "DescribeRegions",
    wire: Wire::Query { version: "2016-11-15" },
    given: &[],
    action: None,
    lists: &["regionInfo"],
};
const ACCOUNTS: Operation = Operation {
    service: "organizations",
    name: "ListAccounts",
    wire: Wire::Json { version: "1.1", target: "AWSOrganizationsV20161128" },
    given: &[("MaxResults", Given::Number(20))],
    action: None,
    lists: &[],
};
const PAGES: Paging = Paging { tokens: &[("NextToken", "NextToken")], more: None };

/// The operations that finding out needs.
pub fn operations(reach: &Reach) -> Vec<Operation> {
    let mut operations = Vec::new();
    if reach.all_regions {
        operations.push(REGIONS);
    }
    if reach.organization {
        operations.push(ACCOUNTS);
    }
    operations
}

/// Finds every account and its regions. One that cannot be reached does not keep the others.
pub async fn targets(client: &Client, reach: &Reach) -> Result<(Vec<Target>, Vec<Unreached>), Error> {
    let (client, who) = client.identify().await?;
    let mut targets = Vec::new();
    let mut unreached = Vec::new();
    for account in accounts(&client, &who.account, reach).await? {
        let reached = match account == who.account {
            true => Ok(client.clone()),
            false => enter(&client, &account, reach).await,
        };
        let found = match reached {
            Ok(client) => regions(&client, reach).await.map(|regions| (client, regions)),
            Err(error) => Err(error),
        };
        match found {
            Ok((client, regions)) => {
                let partition = Partition::of(client.region()).name;
                targets.push(Target { client, account, partition, regions });
            }
            Err(error) => unreached.push(Unreached { account, error }),
        }
    }
    Ok((targets, unreached))
}

async fn accounts(client: &Client, own: &str, reach: &Reach) -> Result<Vec<String>, Error> {
    let mut accounts: BTreeSet<String> = reach.accounts.iter().cloned().collect();
    if reach.organization {
        let listed = pages(client, &ACCOUNTS, Some(&PAGES), "Accounts/*", &[], "").await;
        // Half of an organization would silently be the whole.
        if let Some(reason) = listed.partial {
            let message = format!("the accounts of the organization cannot be listed: {reason}");
            return Err(Error::of(Kind::AccessDenied, "organizations", "ListAccounts", message));
        }
        let active = |account: &&Value| text_at(account, "Status") == Some("ACTIVE");
        accounts.extend(listed.items.iter().filter(active).filter_map(|one| text_at(one, "Id")).map(str::to_owned));
    }
    if accounts.is_empty() {
        accounts.insert(own.to_owned());
    }
    if let Some(account) = accounts.iter().find(|account| !is_account(account)) {
        let message = format!("`{account}` is not the id of an account, which has twelve digits");
        return Err(Error::of(Kind::Invalid, "", "", message));
    }
    Ok(accounts.into_iter().collect())
}

async fn enter(client: &Client, account: &str, reach: &Reach) -> Result<Client, Error> {
    let partition = Partition::of(client.region()).name;
    let name = reach.role_name.as_deref().unwrap_or("OrganizationAccountAccessRole");
    let arn =
        if name.starts_with("arn:") { name.to_owned() } else { format!("arn:{partition}:iam::{account}:role/{name}") };
    let role = Role { arn, external_id: reach.external_id.clone(), session_name: SESSION.to_owned() };
    let (client, who) = client.assume(&role).await?.identify().await?;
    // An emulator may take a role for something else than it is.
    if who.account != account {
        let message = format!("the role {} is of the account {}, and not of {account}", role.arn, who.account);
        return Err(Error::of(Kind::Invalid, "sts", "AssumeRole", message));
    }
    Ok(client)
}

async fn regions(client: &Client, reach: &Reach) -> Result<Vec<String>, Error> {
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

fn is_account(id: &str) -> bool {
    id.len() == 12 && id.chars().all(|char| char.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_a_region_or_an_account_is_refused() {
        for good in ["us-east-1", "us-gov-west-1", "eusc-de-east-1"] {
            assert!(is_region(good), "{good}");
        }
        for bad in ["", "US-EAST-1", "us east", "../x", "-a", "latest/x"] {
            assert!(!is_region(bad), "{bad}");
        }
        assert!(is_account("123456789012") && !is_account("12345678901") && !is_account("12345678901a"));
    }
}
