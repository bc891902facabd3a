//! The permissions that observing takes: exactly the actions that are called, and nothing that changes anything.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::accounts::{self, Reach};
use crate::observer::{Asked, Observer};

/// The actions of some observers, and of finding out where to look: all that a run needs if it looks only at its own
/// account.
pub fn actions<'a>(observers: impl IntoIterator<Item = (Observer, &'a Asked)>, reach: &Reach) -> BTreeSet<String> {
    let mut actions = inside(observers, reach);
    actions.extend(outside(reach));
    actions
}

/// What is asked in each account that is looked at, with the role there.
pub fn inside<'a>(observers: impl IntoIterator<Item = (Observer, &'a Asked)>, reach: &Reach) -> BTreeSet<String> {
    let mut actions: BTreeSet<String> = BTreeSet::from([WHO.to_owned()]);
    for (observer, asked) in observers {
        actions.extend(observer.operations(asked).iter().map(crate::row::Operation::action));
    }
    actions.extend(accounts::operations_inside(reach).iter().map(crate::row::Operation::action));
    actions
}

/// What is asked with the credentials at hand, to find the accounts and enter them.
pub fn outside(reach: &Reach) -> BTreeSet<String> {
    let mut actions: BTreeSet<String> = BTreeSet::from([WHO.to_owned()]);
    actions.extend(accounts::operations_outside(reach).iter().map(crate::row::Operation::action));
    // Another account is looked at with a role in it.
    if reach.names_accounts() {
        actions.insert("sts:AssumeRole".to_owned());
    }
    actions
}

const WHO: &str = "sts:GetCallerIdentity";

/// An IAM policy of these actions. Listings have no resource to be narrowed to.
pub fn policy(actions: &BTreeSet<String>) -> Value {
    json!({
        "Version": "2012-10-17",
        "Statement": [{"Sid": "DriftlineObserve", "Effect": "Allow", "Action": actions, "Resource": "*"}],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_only_reads() {
        let asked = Asked::default();
        let all = actions(Observer::ALL.map(|observer| (observer, &asked)), &Reach::default());
        assert!(all.contains("ec2:DescribeSecurityGroups") && all.contains("s3:GetEncryptionConfiguration"));
        assert!(all.contains("cloudformation:GetResource") && !all.contains("ec2:DescribeRegions"));
        for action in &all {
            let verb = action.split(':').nth(1).unwrap_or_default();
            assert!(["Get", "List", "Describe", "Lookup"].iter().any(|start| verb.starts_with(start)), "{action}");
        }
    }

    #[test]
    fn a_policy_has_what_was_asked_for_and_no_more() {
        let asked = Asked { types: vec!["AWS::SQS::Queue".into()], ..Asked::default() };
        let reach = Reach { all_regions: true, organization: true, ..Reach::default() };
        let some = actions([(Observer::Inventory, &asked)], &reach);
        let expected = [
            "ec2:DescribeRegions",
            "organizations:ListAccounts",
            "sqs:GetQueueAttributes",
            "sqs:ListQueues",
            "sts:AssumeRole",
            "sts:GetCallerIdentity",
        ];
        assert_eq!(some.iter().map(String::as_str).collect::<Vec<_>>(), expected);
    }
}
