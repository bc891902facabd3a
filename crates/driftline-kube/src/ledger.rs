//! What reconciles saw, gathered into observations: one for each interval, of everything that was seen in it. A thing
//! that was seen in two forms within one interval ends an observation in between: what drifted and was corrected
//! at once is in the history, too.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use driftline_core::coverage::{Extent, Outcome};
use driftline_core::{Coverage, Header, Nature, Pattern, Place, Properties, ResourceKey, StreamId, Value};
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
    seen: Arc<Mutex<Passes>>,
}

/// What was seen since the last time.
#[derive(Debug, Default)]
struct Passes {
    /// Those that ended because a thing was seen in another form, and when.
    ended: Vec<(Timestamp, BTreeMap<Entry, Sighting>)>,
    current: BTreeMap<Entry, Sighting>,
}

impl Ledger {
    pub fn new(cluster: &str, stream: StreamId) -> Self {
        Self { cluster: cluster.to_owned(), stream, seen: Arc::default() }
    }

    /// A look at an object's thing.
    pub fn saw<K: Managed>(&self, object: &K, thing: Option<&Thing>, now: Timestamp) {
        let sighting = thing.map(|thing| {
            let id = thing.arn.clone().unwrap_or_else(|| thing.id.clone());
            (id, thing.document.clone(), object.secrets())
        });
        if let Ok(mut seen) = self.seen.lock() {
            let entry = Entry::of(object);
            if seen.current.get(&entry).is_some_and(|before| *before != sighting) {
                let ended = std::mem::take(&mut seen.current);
                seen.ended.push((now, ended));
            }
            seen.current.insert(entry, sighting);
        }
    }

    /// The object is gone, and its thing with it.
    pub fn forget<K: Managed>(&self, object: &K) {
        if let Ok(mut seen) = self.seen.lock() {
            seen.current.remove(&Entry::of(object));
        }
    }

    /// What was seen since the last time. `objects` are all there are: a type in a namespace is complete when each of
    /// its objects was seen. `known` are the types and namespaces that ever had one.
    pub fn close(
        &self,
        objects: &BTreeSet<Entry>,
        known: &mut BTreeSet<(String, String)>,
        now: Timestamp,
    ) -> Vec<Seen> {
        let Ok(mut seen) = self.seen.lock() else { return Vec::new() };
        let Passes { ended, current } = std::mem::take(&mut *seen);
        drop(seen);
        // What was only looked at in passing says nothing of what is not there any more.
        let mut passes: Vec<Seen> =
            ended.into_iter().filter_map(|(at, seen)| self.pass(seen, objects, &BTreeSet::new(), at)).collect();
        known.extend(objects.iter().map(|entry| (entry.type_name.clone(), entry.namespace.clone())));
        passes.extend(self.pass(current, objects, known, now));
        passes
    }

    fn pass(
        &self,
        seen: BTreeMap<Entry, Sighting>,
        objects: &BTreeSet<Entry>,
        known: &BTreeSet<(String, String)>,
        at: Timestamp,
    ) -> Option<Seen> {
        let mut missing: BTreeMap<(String, String), usize> = BTreeMap::new();
        for entry in objects {
            let extent = (entry.type_name.clone(), entry.namespace.clone());
            *missing.entry(extent).or_default() += usize::from(!seen.contains_key(entry));
        }
        // An extent that had objects and has none any more is complete and empty.
        for extent in known {
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
            taken_at: at,
            observer: Some("driftline operator".into()),
            coverage,
            problems: Vec::new(),
            nature: Nature::State,
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

    fn thing(id: &str, enabled: bool) -> Thing {
        Thing {
            id: id.into(),
            arn: None,
            etag: None,
            live: Live::Present,
            state: None,
            owner: None,
            document: Value::from([("enabled", Value::Bool(enabled))]),
        }
    }

    #[test]
    fn a_namespace_is_complete_only_when_each_of_its_objects_was_looked_at() {
        let ledger = Ledger::new("prod", "operator/prod".parse().unwrap());
        let all: BTreeSet<Entry> = ["a", "b"].into_iter().map(|name| Entry::of(&object(name))).collect();
        let mut known = BTreeSet::new();
        let now = "2026-01-01T00:00:00Z".parse().unwrap();
        let kind = "AWS::CloudFront::DistributionTenant";
        ledger.saw(&object("a"), Some(&thing("dt_a", true)), now);
        let [partial] = &ledger.close(&all, &mut known, now)[..] else { panic!("one pass") };
        assert!(!partial.header.coverage.is_complete(kind, "k8s/prod/web"));
        assert_eq!(partial.resources.len(), 1);

        ledger.saw(&object("a"), Some(&thing("dt_a", true)), now);
        ledger.saw(&object("b"), None, now);
        let [whole] = &ledger.close(&all, &mut known, now)[..] else { panic!("one pass") };
        assert!(whole.header.coverage.is_complete(kind, "k8s/prod/web"));
        assert_eq!(whole.resources.len(), 1, "what is not there is no resource");

        let [empty] = &ledger.close(&BTreeSet::new(), &mut known, now)[..] else { panic!("one pass") };
        assert!(empty.header.coverage.is_complete(kind, "k8s/prod/web"));
        assert_eq!(empty.resources.len(), 0);
    }

    #[test]
    fn what_drifted_and_was_corrected_within_one_interval_is_seen_in_both_forms() {
        let ledger = Ledger::new("prod", "operator/prod".parse().unwrap());
        let all = BTreeSet::from([Entry::of(&object("a"))]);
        let at = |second: i64| Timestamp::from_second(second).unwrap();
        for (second, enabled) in [(1, true), (2, true), (3, false), (4, true)] {
            ledger.saw(&object("a"), Some(&thing("dt_a", enabled)), at(second));
        }
        let passes = ledger.close(&all, &mut BTreeSet::new(), at(9));
        let seen: Vec<(i64, String)> = passes
            .iter()
            .map(|pass| (pass.header.taken_at.as_second(), pass.resources.values().next().unwrap().0.to_json()))
            .collect();
        let form = |enabled: bool| format!(r#"{{"enabled":{enabled}}}"#);
        assert_eq!(seen, [(3, form(true)), (4, form(false)), (9, form(true))]);
        assert!(ledger.close(&BTreeSet::new(), &mut BTreeSet::new(), at(10)).is_empty());
    }
}
