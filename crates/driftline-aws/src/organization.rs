//! The accounts of an organization, or beneath one of its units: who is to be looked at, and what is kept of that list.

use std::collections::{BTreeMap, BTreeSet};

use aws_wire::{Client, Error, Kind};
use driftline_core::name::ScopeName;
use driftline_core::{Coverage, Extent, Outcome, SourceName, Value as Canonical};
use driftline_sources::aws::{Whereabouts, resource_key};
use driftline_sources::normalize::{Found, Listing};
use driftline_sources::organization::{ACTIVE, EXCLUDED, KIND, SOURCE};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::pass::{BASIS, Pass};
use crate::row::{Given, Operation, Paging, Wire};
use crate::run::pages;
use crate::shape::text_at;

pub(crate) const ACCOUNTS: Operation = Operation {
    service: "organizations",
    name: "ListAccounts",
    wire: Wire::Json { version: "1.1", target: "AWSOrganizationsV20161128" },
    given: &[("MaxResults", Given::Number(20))],
    action: None,
    lists: &[],
};
pub(crate) const BENEATH: Operation = Operation { name: "ListAccountsForParent", ..ACCOUNTS };
pub(crate) const UNITS: Operation = Operation { name: "ListOrganizationalUnitsForParent", ..ACCOUNTS };
const PAGES: Paging = Paging { tokens: &[("NextToken", "NextToken")], more: None };

/// The accounts of a whole organization, or beneath a root or unit of it, by id.
#[derive(Clone, Debug, Default)]
pub struct Part {
    /// The root or unit; the whole organization if none.
    pub parent: Option<String>,
    /// Whether it was listed to be left out.
    pub excluded: bool,
    members: BTreeMap<String, Value>,
}

impl Part {
    /// All accounts of the organization.
    pub(crate) async fn whole(client: &Client) -> Result<Self, Error> {
        let members = of_accounts(listed(client, &ACCOUNTS, "Accounts/*", &[]).await?);
        Ok(Self { members, ..Self::default() })
    }

    /// All accounts beneath a root or unit, at whatever depth.
    pub(crate) async fn beneath(client: &Client, parent: &str, excluded: bool) -> Result<Self, Error> {
        let mut part = Self { parent: Some(parent.to_owned()), excluded, ..Self::default() };
        let mut seen: BTreeSet<String> = BTreeSet::new();
        let mut ahead = vec![parent.to_owned()];
        while let Some(parent) = ahead.pop() {
            if !seen.insert(parent.clone()) {
                continue;
            }
            let of = [("ParentId".to_owned(), Value::from(parent.as_str()))];
            part.members.extend(of_accounts(listed(client, &BENEATH, "Accounts/*", &of).await?));
            let units = listed(client, &UNITS, "OrganizationalUnits/*", &of).await?;
            ahead.extend(units.iter().filter_map(|unit| text_at(unit, "Id")).map(str::to_owned));
        }
        Ok(part)
    }

    /// Accounts that can be looked at: one that is suspended or being closed cannot be entered.
    pub fn active(&self) -> impl Iterator<Item = &str> {
        self.members.iter().filter(|(_, account)| is_active(account)).map(|(id, _)| id.as_str())
    }

    /// What accounts are called.
    pub fn names(&self) -> impl Iterator<Item = (&str, &str)> {
        self.members.iter().filter_map(|(id, account)| Some((id.as_str(), text_at(account, "Name")?)))
    }

    /// The list as a version of a stream. Addresses of mailboxes are not kept: who is in the fleet is told without them.
    pub fn pass(&self, own: &str, partition: &'static str, taken_at: Timestamp) -> Pass {
        let arn = |account: &Value| text_at(account, "Arn").map(str::to_owned);
        let manager = self.members.values().find_map(|account| {
            let arn = arn(account)?;
            arn.split(':').nth(4).filter(|manager| !manager.is_empty()).map(str::to_owned)
        });
        let manager = manager.as_deref().unwrap_or(own);
        let whereabouts = Whereabouts { partition, account: Some(manager), region: None };
        let mut listing = Listing::default();
        listing.taken_at = Some(taken_at);
        for (id, account) in &self.members {
            let arn = arn(account).unwrap_or_else(|| format!("arn:{partition}:organizations::{manager}:account/{id}"));
            let kept = json!({
                "id": id, "name": account.get("Name"), "state": state(account), "joinedMethod": account.get("JoinedMethod"),
            });
            let Ok(value) = serde_json::from_str::<Canonical>(&kept.to_string()) else { continue };
            listing.items += 1;
            listing.resources.insert(resource_key(KIND, &arn, whereabouts), Found::new(&value, Vec::new()));
        }
        let mut coverage = Coverage::new();
        let place = whereabouts.place(KIND);
        coverage.record(Extent { kind: KIND.to_owned(), place }, Outcome::Complete);
        // Who is beneath a unit is not who there is.
        let basis = self.parent.as_ref().map_or_else(|| BASIS.to_owned(), |parent| format!("beneath {parent}"));
        listing.coverage = coverage.on_basis(Some(basis));
        Pass { part: None, scope: self.scope(manager), listing }
    }

    fn scope(&self, manager: &str) -> ScopeName {
        let of = self.parent.as_deref().unwrap_or(driftline_core::key::GLOBAL);
        let scope = match self.excluded {
            true => format!("{manager}/{of}/{EXCLUDED}"),
            false => format!("{manager}/{of}"),
        };
        scope.parse().expect("accounts are digits; roots and units were checked")
    }
}

/// The source that lists of accounts are kept as.
pub fn source() -> SourceName {
    SOURCE.parse().expect("a good name")
}

fn of_accounts(listed: Vec<Value>) -> BTreeMap<String, Value> {
    listed.into_iter().filter_map(|account| Some((text_at(&account, "Id")?.to_owned(), account))).collect()
}

/// `State` takes the place of `Status`, which AWS gives up.
fn state(account: &Value) -> Option<&str> {
    text_at(account, "State").or_else(|| text_at(account, "Status"))
}

/// One of which nothing is said is tried: entering it tells.
fn is_active(account: &Value) -> bool {
    state(account).is_none_or(|state| state == ACTIVE)
}

async fn listed(
    client: &Client,
    operation: &Operation,
    items: &str,
    more: &[(String, Value)],
) -> Result<Vec<Value>, Error> {
    let listed = pages(client, operation, Some(&PAGES), items, more, "").await;
    match listed.partial {
        None => Ok(listed.items),
        // Half of an organization would silently be the whole.
        Some(reason) => {
            let message = format!("the accounts of the organization cannot be listed: {reason}");
            Err(Error::of(Kind::AccessDenied, "organizations", operation.name, message))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_accounts_is_kept_without_mailboxes_and_says_what_it_is_a_list_of() {
        let account = |id: &str, state: &str| {
            json!({"Id": id, "Name": format!("of {id}"), "Email": "who@example.com", "State": state,
                "Arn": format!("arn:aws:organizations::999999999999:account/o-ab/{id}")})
        };
        let members = of_accounts(vec![account("111111111111", "ACTIVE"), account("222222222222", "SUSPENDED")]);
        let part = Part { parent: Some("ou-ab12-cd34ef56".into()), excluded: false, members };
        assert_eq!(part.active().collect::<Vec<_>>(), ["111111111111"]);
        let pass = part.pass("888888888888", "aws", Timestamp::UNIX_EPOCH);
        assert_eq!(pass.scope.as_str(), "999999999999/ou-ab12-cd34ef56");
        assert_eq!(pass.listing.coverage.basis(), Some("beneath ou-ab12-cd34ef56"));
        assert!(pass.listing.coverage.is_complete(KIND, "aws/999999999999/global"));
        let texts: Vec<String> =
            pass.listing.resources.values().map(|found| found.properties.to_value().to_string()).collect();
        assert_eq!(texts.len(), 2);
        assert!(texts[1].contains("SUSPENDED") && !texts.concat().contains('@'), "{texts:?}");
    }
}
