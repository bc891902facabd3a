//! The observers, and what each of them asks of one account in one region.

use driftline_core::SourceName;
use driftline_sources::normalize::{Model, NormalizeError};
use futures_util::stream::{self, StreamExt};
use serde_json::{Map, Value, json};

use crate::pass::{Covered, Here, Pass, normalized};
use crate::row::{Operation, Row};
use crate::run::{Listed, row};
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
}

/// What is asked for, besides where.
#[derive(Clone, Debug, Default)]
pub struct Asked {
    /// Types, or all that the observer knows.
    pub types: Vec<String>,
    /// Of inventory: a broad listing of an index instead of each type's own.
    pub scan: Option<Index>,
}

/// What an observer does in one place at once: its result is one version of a stream, or of several.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unit {
    Regional,
    /// Once for an account.
    Global,
}

impl Observer {
    pub const ALL: [Observer; 7] = [
        Observer::Adopt,
        Observer::Inventory,
        Observer::Config,
        Observer::Dns,
        Observer::EventTopology,
        Observer::CloudFormation,
        Observer::CloudControl,
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
        let listed: Vec<(&Row, Listed)> = listed.buffered(16).collect().await;
        let mut lists = Map::new();
        let mut covered = Covered::default();
        let mut problems = Vec::new();
        for (row, found) in listed {
            covered.add(row.kind, here.place(row.kind), found.outcome());
            problems.extend(found.problems);
            lists.insert(row.list.to_owned(), Value::Array(found.items));
        }
        let (model, members) = match self {
            Observer::Adopt => (Model::Adopt, json!({"discovered": lists})),
            _ => (Model::Inventory, json!({"resourceType": "all", "resources": lists})),
        };
        let document = here.document(members);
        let listing = normalized(model, here, source, &document, &covered, problems)?;
        Ok(Pass { part: None, scope: here.scope(), listing })
    }
}
