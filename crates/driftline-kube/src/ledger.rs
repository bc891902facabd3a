//! What reconciles saw, gathered into observations: one for each interval, of everything that was seen in it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use driftline_core::coverage::{Extent, Outcome};
use driftline_core::{Coverage, Header, Pattern, Place, Properties, ResourceKey, StreamId, Value};
use jiff::Timestamp;

use crate::cloud::Thing;
use crate::managed::Managed;

/// An object, as the ledger knows it: its thing's type, its namespace and its name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    pub type_name: String,
    pub namespace: String,
    pub name: String,
}

impl Entry {
    pub fn of<K: Managed>(object: &K) -> Self {
        let meta = object.meta();
        Self {
            type_name: object.type_name().to_owned(),
            namespace: meta.namespace.clone().unwrap_or_default(),
            name: meta.name.clone().unwrap_or_default(),
        }
    }
}

/// What an object's thing looked like, if it was there: its id, its document, and where that has secrets.
type Sighting = Option<(String, Value, Vec<Pattern>)>;

/// What was seen in one interval. The secrets in it are for its taker to seal.
#[derive(Clone, Debug)]
pub struct Seen {
    pub header: Header,
    pub resources: BTreeMap<ResourceKey, (Properties, Vec<Pattern>)>,
}

/// Sightings since the last observation; cheap to clone.
#[derive(Clone, Debug)]
pub struct Ledger {
    cluster: String,
    stream: StreamId,
    seen: Arc<Mutex<BTreeMap<Entry, Sighting>>>,
}

impl Ledger {
    pub fn new(cluster: &str, stream: StreamId) -> Self {
        Self { cluster: cluster.to_owned(), stream, seen: Arc::default() }
    }

    /// A look at an object's thing.
    pub fn saw<K: Managed>(&self, object: &K, thing: Option<&Thing>) {
        let sighting = thing.map(|thing| {
            let id = thing.arn.clone().unwrap_or_else(|| thing.id.clone());
            (id, thing.document.clone(), object.secrets())
        });
        if let Ok(mut seen) = self.seen.lock() {
            seen.insert(Entry::of(object), sighting);
        }
    }

    /// The object is gone, and its thing with it.
    pub fn forget<K: Managed>(&self, object: &K) {
        if let Ok(mut seen) = self.seen.lock() {
            seen.remove(&Entry::of(object));
        }
    }

    /// What was seen since the last time. `objects` are all there are: a type in a namespace is complete when each of
    /// its objects was seen. `known` are the types and namespaces that ever had one.
    pub fn close(
        &self,
        objects: &BTreeSet<Entry>,
        known: &mut BTreeSet<(String, String)>,
        now: Timestamp,
    ) -> Option<Seen> {
        let seen = std::mem::take(&mut *self.seen.lock().ok()?);
        let mut missing: BTreeMap<(String, String), usize> = BTreeMap::new();
        for entry in objects {
            let extent = (entry.type_name.clone(), entry.namespace.clone());
            *missing.entry(extent.clone()).or_default() += usize::from(!seen.contains_key(entry));
            known.insert(extent);
        }
        // An extent that had objects and has none any more is complete and empty.
        for extent in known.iter() {
            missing.entry(extent.clone()).or_default();
        }
        if missing.is_empty() {
            return None;
        }
        let mut coverage = Coverage::new();
        for ((kind, namespace), count) in missing {
            let outcome = match count {
                0 => Outcome::Complete,
                count => Outcome::Partial { reason: format!("{count} objects were not looked at in this interval") },
            };
            coverage.record(Extent { kind, place: self.place(&namespace) }, outcome);
        }
        let header = Header {
            stream: self.stream.clone(),
            taken_at: now,
            observer: Some("driftline operator".into()),
            coverage,
            problems: Vec::new(),
        };
        let mut resources = BTreeMap::new();
        for (entry, sighting) in seen.into_iter().filter(|(entry, _)| objects.contains(entry)) {
            let Some((id, value, secrets)) = sighting else { continue };
            let place = Place::new(self.place(&entry.namespace));
            let key = ResourceKey { kind: entry.type_name, place, id };
            // Two objects that name one thing are told once: the first in order.
            resources.entry(key).or_insert_with(|| (Properties::new(&value), secrets));
        }
        Some(Seen { header, resources })
    }

    fn place(&self, namespace: &str) -> String {
        format!("k8s/{}/{namespace}", self.cluster)
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use crate::crd::{DistributionTenant, DistributionTenantSpec};
    use crate::decision::Live;

    fn object(name: &str) -> DistributionTenant {
        let mut object = DistributionTenant::new(name, DistributionTenantSpec::default());
        object.metadata.namespace = Some("web".into());
        object
    }

    fn thing(id: &str) -> Thing {
        Thing {
            id: id.into(),
            arn: None,
            etag: None,
            live: Live::Present,
            state: None,
            owner: None,
            document: Value::from([("enabled", Value::Bool(true))]),
        }
    }

    #[test]
    fn a_namespace_is_complete_only_when_each_of_its_objects_was_looked_at() {
        let ledger = Ledger::new("prod", "operator/prod".parse().unwrap());
        let all: BTreeSet<Entry> = ["a", "b"].into_iter().map(|name| Entry::of(&object(name))).collect();
        let mut known = BTreeSet::new();
        let now = "2026-01-01T00:00:00Z".parse().unwrap();
        let kind = "AWS::CloudFront::DistributionTenant";
        ledger.saw(&object("a"), Some(&thing("dt_a")));
        let partial = ledger.close(&all, &mut known, now).unwrap();
        assert!(!partial.header.coverage.is_complete(kind, "k8s/prod/web"));
        assert_eq!(partial.resources.len(), 1);

        ledger.saw(&object("a"), Some(&thing("dt_a")));
        ledger.saw(&object("b"), None);
        let whole = ledger.close(&all, &mut known, now).unwrap();
        assert!(whole.header.coverage.is_complete(kind, "k8s/prod/web"));
        assert_eq!(whole.resources.len(), 1, "what is not there is no resource");

        let empty = ledger.close(&BTreeSet::new(), &mut known, now).unwrap();
        assert!(empty.header.coverage.is_complete(kind, "k8s/prod/web"));
        assert_eq!(empty.resources.len(), 0);
    }
}
