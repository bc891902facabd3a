//! The observers, and what each of them asks of one account in one region.

use driftline_core::SourceName;
use driftline_sources::normalize::{Model, NormalizeError};
use futures_util::stream::{self, StreamExt};
use serde_json::{Value, json};

use crate::cloudtrail::{self, Events};
use crate::pass::{Covered, Here, Pass, normalized_text};
use crate::row::{Operation, Row};
use crate::run::{Written, outcome, row};
use crate::scan::{self, Index};
use crate::{cloud_control, cloudformation, config, dns, table, topology};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Observer {
    Adopt,
    Inventory,
    Config,
    Dns,
    EventTopology,
    CloudFormation,
    CloudControl,
    CloudTrail,
}

/// What is asked for, besides where.
#[derive(Clone, Debug, Default)]
pub struct Asked {
    /// Types, or all that the observer knows.
    pub types: Vec<String>,
    /// Of inventory: a broad listing of an index instead of each type's own.
    pub scan: Option<Index>,
    /// Of cloudtrail: which events.
    pub events: Events,
}

/// What an observer does in one place at once: its result is one version of a stream, or of several.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unit {
    Regional,
    /// Once for an account.
    Global,
}

impl Observer {
    pub const ALL: [Observer; 8] = [
        Observer::Adopt,
        Observer::Inventory,
        Observer::Config,
        Observer::Dns,
        Observer::EventTopology,
        Observer::CloudFormation,
        Observer::CloudControl,
        Observer::CloudTrail,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Observer::Adopt => "adopt",
            Observer::Inventory => "inventory",
            Observer::Config => "config",
            Observer::Dns => "dns",
            Observer::EventTopology => "event-topology",
            Observer::CloudFormation => "cloudformation",
            Observer::CloudControl => "cloud-control",
            Observer::CloudTrail => "cloudtrail",
        }
    }

    pub fn named(name: &str) -> Option<Observer> {
        Observer::ALL.into_iter().find(|observer| observer.name() == name)
    }

    fn table(self) -> &'static [Row] {
        match self {
            Observer::Adopt => table::ADOPT,
            Observer::Inventory => table::INVENTORY,
            _ => &[],
        }
    }

    /// The types that it lists by itself, or by default.
    pub fn types(self) -> Vec<&'static str> {
        match self {
            Observer::Adopt | Observer::Inventory => self.table().iter().map(|row| row.kind).collect(),
            Observer::CloudControl => cloud_control::TYPES.to_vec(),
            _ => Vec::new(),
        }
    }

    /// Whether `types` may name types that it does not know.
    pub fn takes_any_type(self) -> bool {
        self == Observer::CloudControl
    }

    pub fn units(self, asked: &Asked) -> Vec<Unit> {
        match self {
            Observer::Dns => vec![Unit::Global],
            Observer::Inventory if asked.scan.is_some() => vec![Unit::Regional],
            Observer::Inventory => {
                let any = |global| self.rows(asked).iter().any(|row| row.global == global);
                let units = [(Unit::Regional, any(false)), (Unit::Global, any(true))];
                units.into_iter().filter(|(_, wanted)| *wanted).map(|(unit, _)| unit).collect()
            }
            _ => vec![Unit::Regional],
        }
    }

    fn rows(self, asked: &Asked) -> Vec<&'static Row> {
        let wanted =
            |row: &&Row| asked.types.is_empty() || asked.types.iter().any(|kind| kind.eq_ignore_ascii_case(row.kind));
        self.table().iter().filter(wanted).collect()
    }

    /// Every operation that it may call, but for finding out who and where one is.
    pub fn operations(self, asked: &Asked) -> Vec<Operation> {
        match self {
            Observer::Inventory if asked.scan.is_some() => asked.scan.iter().map(|index| index.operation()).collect(),
            Observer::Adopt | Observer::Inventory => {
                let of_row = |row: &Row| {
                    let follows = row.follow.iter().map(|follow| follow.operation);
                    std::iter::once(row.operation).chain(follows).collect::<Vec<_>>()
                };
                self.rows(asked).into_iter().flat_map(of_row).collect()
            }
            Observer::Config => config::OPERATIONS.to_vec(),
            Observer::Dns => dns::OPERATIONS.to_vec(),
            Observer::EventTopology => topology::OPERATIONS.to_vec(),
            Observer::CloudFormation => cloudformation::OPERATIONS.to_vec(),
            Observer::CloudControl => cloud_control::OPERATIONS.to_vec(),
            Observer::CloudTrail => cloudtrail::OPERATIONS.to_vec(),
        }
    }

    /// Looks. Whatever AWS refuses is in the coverage; an error means that its answers could not be understood.
    pub async fn observe(self, here: &Here, source: &SourceName, asked: &Asked) -> Result<Vec<Pass>, NormalizeError> {
        let listing = match self {
            Observer::Adopt | Observer::Inventory => match asked.scan {
                Some(index) => scan::observe(here, source, index).await?,
                None => return self.observe_rows(here, source, asked).await.map(|pass| vec![pass]),
            },
            Observer::Config => config::observe(here, source).await?,
            Observer::Dns => dns::observe(here, source).await?,
            Observer::EventTopology => topology::observe(here, source).await?,
            Observer::CloudFormation => return cloudformation::observe(here, source).await,
            Observer::CloudControl if asked.types.is_empty() => {
                let all: Vec<String> = cloud_control::TYPES.iter().map(|kind| (*kind).to_owned()).collect();
                cloud_control::observe(here, &all).await
            }
            Observer::CloudControl => cloud_control::observe(here, &asked.types).await,
            Observer::CloudTrail => cloudtrail::observe(here, &asked.events).await?,
        };
        // A broad listing is another listing of the same things, so it is another stream.
        let scope = match asked.scan.filter(|_| self == Observer::Inventory) {
            Some(_) => format!("{}/scan", here.scope()).parse().expect("a scope with one more word"),
            None => here.scope(),
        };
        Ok(vec![Pass { part: None, scope, listing }])
    }

    async fn observe_rows(self, here: &Here, source: &SourceName, asked: &Asked) -> Result<Pass, NormalizeError> {
        let rows: Vec<&Row> = self.rows(asked).into_iter().filter(|row| row.global == here.region.is_none()).collect();
        let client = &here.client;
        let listed = stream::iter(rows.into_iter().map(|one| async move { (one, row(client, one).await) }));
        let mut listed: Vec<(&Row, Written)> = listed.buffered(16).collect().await;
        let mut covered = Covered::default();
        let mut problems = Vec::new();
        for (row, found) in &mut listed {
            covered.add(row.kind, here.place(row.kind), outcome(found.partial.as_deref()));
            problems.append(&mut found.problems);
        }
        let (model, members) = match self {
            Observer::Adopt => (Model::Adopt, "\"discovered\":"),
            _ => (Model::Inventory, "\"resourceType\":\"all\",\"resources\":"),
        };
        let document = written(&here.document(json!({})), members, listed);
        let listing = normalized_text(model, here, source, &document, &covered, problems)?;
        Ok(Pass { part: None, scope: here.scope(), listing })
    }
}

/// A document with the lists of rows in it, put together as text; each list is let go of as it is written.
fn written(head: &Value, members: &str, lists: Vec<(&Row, Written)>) -> String {
    let head = head.to_string();
    let of_items: usize = lists.iter().flat_map(|(_, list)| &list.items).map(|item| item.len() + 1).sum();
    let mut text = String::with_capacity(head.len() + members.len() + of_items + 64 * lists.len());
    text.push_str(head.strip_suffix('}').unwrap_or(&head));
    text.push(',');
    text.push_str(members);
    text.push('{');
    for (nth, (row, list)) in lists.into_iter().enumerate() {
        if nth > 0 {
            text.push(',');
        }
        text.push_str(&Value::from(row.list).to_string());
        text.push_str(":[");
        for (nth, item) in list.items.into_iter().enumerate() {
            if nth > 0 {
                text.push(',');
            }
            text.push_str(&item);
        }
        text.push(']');
    }
    text.push_str("}}");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_put_together_as_text_is_the_document() {
        let items = |texts: &[&str]| Written {
            items: texts.iter().map(|text| Box::from(*text)).collect(),
            ..Written::default()
        };
        let lists = vec![
            (&table::ADOPT[0], items(&["{\"vpcId\":\"a\"}", "{\"vpcId\":\"b\"}"])),
            (&table::ADOPT[1], items(&[])),
        ];
        let text = written(&json!({"accountId": "1"}), "\"discovered\":", lists);
        let expected = json!({
            "accountId": "1", "discovered": {"vpcs": [{"vpcId": "a"}, {"vpcId": "b"}], "subnets": []},
        });
        assert_eq!(serde_json::from_str::<Value>(&text).expect("JSON"), expected);
    }
}
