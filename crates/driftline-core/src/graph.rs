//! How a graph changed: nodes, edges and degrees, between two observations that each know what they looked at.
//!
//! What is a node and what is an edge is told by the caller: edges are resources of one type, or links that a
//! property of a resource names.

use std::collections::{BTreeMap, BTreeSet};

use crate::compare::Change;
use crate::judge::{self, judge};
use crate::key::ResourceKey;
use crate::observation::Pass;
use crate::rule::RuleBook;
use crate::value::Value;
use crate::verdict::Status;

/// What became of a node or an edge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    Same,
    Added,
    Removed,
    Changed(Vec<Change>),
    /// One of the two sides did not look: where, and why.
    NotChecked(String),
}

impl Fate {
    pub fn name(&self) -> &'static str {
        match self {
            Fate::Same => "same",
            Fate::Added => "added",
            Fate::Removed => "removed",
            Fate::Changed(_) => "changed",
            Fate::NotChecked(_) => "not_checked",
        }
    }

    /// Whether it counts before, and after. What was not checked counts on both sides: it is neither new nor gone.
    fn counts(&self) -> [bool; 2] {
        match self {
            Fate::Added => [false, true],
            Fate::Removed => [true, false],
            Fate::Same | Fate::Changed(_) | Fate::NotChecked(_) => [true, true],
        }
    }

    pub fn is_change(&self) -> bool {
        matches!(self, Fate::Added | Fate::Removed | Fate::Changed(_))
    }

    /// Two words on one thing, by two observers that both know it.
    ///
    /// Whoever saw it on both sides is right about its being there. Who saw it come while the other saw it go has
    /// taken it over. And who could not look cannot be outvoted by someone who did not find it.
    #[must_use]
    fn and(self, other: Fate) -> Fate {
        match (self, other) {
            (Fate::Changed(mut all), Fate::Changed(more)) => {
                all.extend(more);
                Fate::Changed(all)
            }
            (changed @ Fate::Changed(_), _) | (_, changed @ Fate::Changed(_)) => changed,
            (Fate::Same, _) | (_, Fate::Same) | (Fate::Added, Fate::Removed) | (Fate::Removed, Fate::Added) => {
                Fate::Same
            }
            (not_checked @ Fate::NotChecked(_), _) | (_, not_checked @ Fate::NotChecked(_)) => not_checked,
            (one, _) => one,
        }
    }
}

/// An edge's name. Two edges of one type between the same nodes differ by `id`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct EdgeId {
    pub from: String,
    pub to: String,
    pub kind: String,
    pub id: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Its type; `None` for the end of an edge that nobody listed.
    pub kind: Option<String>,
    pub fate: Fate,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edge {
    pub fate: Fate,
    pub attributes: Option<Value>,
}

/// Both graphs and what lies between them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GraphDiff {
    pub nodes: BTreeMap<String, Node>,
    pub edges: BTreeMap<EdgeId, Edge>,
}

/// A property by which a resource of one type names others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    pub kind: &'static str,
    /// Member names with `/` before each; `*` stands for every item of an array.
    pub path: &'static str,
    pub edge: &'static str,
    /// The type of what is named.
    pub target: &'static str,
}

/// Which resources are edges, which are nodes, and which properties are links.
pub struct Reading<'a> {
    /// The type of resources that are edges: `from`, `to`, `type` and `attributes` are their properties.
    pub edge_kind: &'a str,
    pub is_node: &'a dyn Fn(&ResourceKey) -> bool,
    pub links: &'a [Link],
    /// The id of what a link's text names, seen from the resource that has the link.
    pub resolve: &'a dyn Fn(&ResourceKey, &Link, &str) -> String,
}

impl std::fmt::Debug for Reading<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reading")
            .field("edge_kind", &self.edge_kind)
            .field("links", &self.links)
            .finish_non_exhaustive()
    }
}

impl GraphDiff {
    /// Adds what two observations of a source say. Observations of several sources make one graph.
    pub fn add(&mut self, source: &str, before: Pass<'_>, after: Pass<'_>, reading: &Reading<'_>, book: &RuleBook) {
        let keys: BTreeSet<&ResourceKey> = before.resources.keys().chain(after.resources.keys()).collect();
        for key in keys {
            let Some(fate) = fate(key, source, before, after, book) else { continue };
            // Where an edge runs is also known from a pass before, if not whether it still does.
            let (old, new) = (before.resources.get(key), after.resources.get(key));
            if key.kind == reading.edge_kind {
                let ends = |value: Option<&Value>| value.and_then(|value| edge_id(key, value));
                let attributes = |value: Option<&Value>| value.and_then(|value| value.get("attributes")).cloned();
                self.add_edges(
                    ends(old).into_iter().map(|id| (id, attributes(old))).collect(),
                    ends(new).into_iter().map(|id| (id, attributes(new))).collect(),
                    &fate,
                );
                continue;
            }
            for link in reading.links.iter().filter(|link| link.kind == key.kind) {
                let edges = |value: Option<&Value>| {
                    let texts = value.map(|value| texts_at(value, link.path)).unwrap_or_default();
                    let edge = |text: &str| EdgeId {
                        from: key.id.clone(),
                        to: (reading.resolve)(key, link, text),
                        kind: link.edge.to_owned(),
                        id: String::new(),
                    };
                    texts.into_iter().map(|text| (edge(text), None)).collect()
                };
                // Whether the resource changed elsewhere says nothing of its links.
                let fate = if let Fate::Changed(_) = fate { &Fate::Same } else { &fate };
                self.add_edges(edges(old), edges(new), fate);
            }
            if (reading.is_node)(key) {
                self.add_node(&key.id, Some(&key.kind), fate);
            }
        }
    }

    /// The edges that one resource stands for, before and after, given what became of the resource.
    fn add_edges(
        &mut self,
        before: BTreeMap<EdgeId, Option<Value>>,
        mut after: BTreeMap<EdgeId, Option<Value>>,
        fate: &Fate,
    ) {
        let gone = if let Fate::NotChecked(_) = fate { fate } else { &Fate::Removed };
        let new = if let Fate::NotChecked(_) = fate { fate } else { &Fate::Added };
        for (id, attributes) in before {
            match after.remove(&id) {
                Some(now) => self.add_edge(id, fate.clone(), now),
                None => self.add_edge(id, gone.clone(), attributes),
            }
        }
        for (id, attributes) in after {
            self.add_edge(id, new.clone(), attributes);
        }
    }

    pub fn add_edge(&mut self, id: EdgeId, fate: Fate, attributes: Option<Value>) {
        match self.edges.entry(id) {
            std::collections::btree_map::Entry::Vacant(slot) => {
                slot.insert(Edge { fate, attributes });
            }
            std::collections::btree_map::Entry::Occupied(mut slot) => {
                let edge = slot.get_mut();
                edge.fate = edge.fate.clone().and(fate);
            }
        }
    }

    pub fn add_node(&mut self, id: &str, kind: Option<&str>, fate: Fate) {
        match self.nodes.get_mut(id) {
            Some(node) => {
                node.fate = node.fate.clone().and(fate);
                node.kind = node.kind.take().or_else(|| kind.map(str::to_owned));
            }
            None => {
                self.nodes.insert(id.to_owned(), Node { kind: kind.map(str::to_owned), fate });
            }
        }
    }

    /// Ends of edges that nobody listed are nodes as well. They are there as long as an edge says so.
    pub fn add_missing_ends(&mut self) {
        let mut ends: BTreeMap<&str, Vec<&Fate>> = BTreeMap::new();
        for (id, edge) in &self.edges {
            for end in [&id.from, &id.to] {
                if !self.nodes.contains_key(end) {
                    ends.entry(end).or_default().push(&edge.fate);
                }
            }
        }
        let told = |fates: &[&Fate]| {
            let all = |is: fn(&Fate) -> bool| fates.iter().all(|fate| is(fate));
            match fates.iter().find(|fate| matches!(fate, Fate::NotChecked(_))) {
                _ if all(|fate| *fate == Fate::Added) => Fate::Added,
                _ if all(|fate| *fate == Fate::Removed) => Fate::Removed,
                // Something else of it was seen on one side only, and this might be the reason.
                Some(not_checked) if !all(|fate| fate.counts() == [true, true]) => (*not_checked).clone(),
                Some(not_checked) if all(|fate| matches!(fate, Fate::NotChecked(_))) => (*not_checked).clone(),
                _ => Fate::Same,
            }
        };
        let missing: Vec<(String, Node)> =
            ends.iter().map(|(id, fates)| ((*id).to_owned(), Node { kind: None, fate: told(fates) })).collect();
        self.nodes.extend(missing);
    }

    /// The degrees of every node, before and after.
    pub fn degrees(&self) -> BTreeMap<&str, Degrees> {
        let mut degrees: BTreeMap<&str, Degrees> =
            self.nodes.keys().map(|id| (id.as_str(), Degrees::default())).collect();
        for (id, edge) in &self.edges {
            let counts = edge.fate.counts().map(u64::from);
            for side in [0, 1] {
                degrees.entry(&id.from).or_default().outgoing[side] += counts[side];
                degrees.entry(&id.to).or_default().incoming[side] += counts[side];
            }
        }
        degrees
    }

    /// The numbers of the graph before, and after.
    pub fn shapes(&self) -> [Shape; 2] {
        let degrees = self.degrees();
        [0, 1].map(|side| {
            let there = |id: &str| self.nodes.get(id).is_some_and(|node| node.fate.counts()[side]);
            let edges = || self.edges.iter().filter(|(_, edge)| edge.fate.counts()[side]);
            let max = |degree: fn(&Degrees) -> [u64; 2]| degrees.values().map(|one| degree(one)[side]).max();
            let alone = |one: &Degrees| one.incoming[side] + one.outgoing[side] == 0;
            Shape {
                nodes: self.nodes.keys().filter(|id| there(id)).count(),
                edges: edges().count(),
                max_in_degree: max(|one| one.incoming).unwrap_or(0),
                max_out_degree: max(|one| one.outgoing).unwrap_or(0),
                connected_components: components(
                    self.nodes.keys().map(String::as_str).filter(|id| there(id)),
                    edges().map(|(id, _)| (id.from.as_str(), id.to.as_str())),
                ),
                isolated_nodes: degrees.iter().filter(|(id, one)| there(id) && alone(one)).count(),
            }
        })
    }

    /// Nodes and edges that changed, and the nodes next to them.
    pub fn neighbourhood(&self) -> BTreeSet<&str> {
        let mut centre: BTreeSet<&str> = BTreeSet::new();
        centre.extend(self.nodes.iter().filter(|(_, node)| node.fate.is_change()).map(|(id, _)| id.as_str()));
        for (id, _) in self.edges.iter().filter(|(_, edge)| edge.fate.is_change()) {
            centre.extend([id.from.as_str(), id.to.as_str()]);
        }
        let mut near = centre.clone();
        for id in self.edges.keys() {
            if centre.contains(id.from.as_str()) || centre.contains(id.to.as_str()) {
                near.extend([id.from.as_str(), id.to.as_str()]);
            }
        }
        near
    }
}

/// How many edges come in and go out, each before and after.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Degrees {
    pub incoming: [u64; 2],
    pub outgoing: [u64; 2],
}

impl Degrees {
    pub fn differ(&self) -> bool {
        self.incoming[0] != self.incoming[1] || self.outgoing[0] != self.outgoing[1]
    }
}

/// A graph in numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Shape {
    pub nodes: usize,
    pub edges: usize,
    pub max_in_degree: u64,
    pub max_out_degree: u64,
    pub connected_components: usize,
    pub isolated_nodes: usize,
}

fn fate(key: &ResourceKey, source: &str, before: Pass<'_>, after: Pass<'_>, book: &RuleBook) -> Option<Fate> {
    let (old, new) = (before.seen(key), after.seen(key));
    let expected = judge::Side { value: old, coverage: before.coverage };
    let live = judge::Side { value: new, coverage: after.coverage };
    let judgement = judge(key.as_ref(), source, &expected, &live, book)?;
    Some(match (judgement.status, old, new) {
        (Status::NotChecked, ..) => {
            Fate::NotChecked(format!("{}: {}", key.place, judgement.reason.unwrap_or_default()))
        }
        // That something is there or not is no difference that a rule could excuse in a graph.
        (_, None, _) => Fate::Added,
        (_, _, None) => Fate::Removed,
        _ if judgement.changes.is_empty() => Fate::Same,
        _ => Fate::Changed(judgement.changes),
    })
}

/// `None` for an edge without ends.
fn edge_id(key: &ResourceKey, value: &Value) -> Option<EdgeId> {
    let text = |name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
    Some(EdgeId { from: text("from")?, to: text("to")?, kind: text("type").unwrap_or_default(), id: key.id.clone() })
}

fn texts_at<'v>(value: &'v Value, path: &str) -> Vec<&'v str> {
    let mut found = vec![value];
    for segment in path.split('/').skip(1) {
        found = found
            .into_iter()
            .flat_map(|value| match (segment, value) {
                ("*", Value::Array(items)) => items.iter().collect(),
                _ => value.get(segment).into_iter().collect::<Vec<_>>(),
            })
            .collect();
    }
    found.into_iter().filter_map(Value::as_str).filter(|text| !text.is_empty()).collect()
}

fn root(parents: &mut [usize], mut at: usize) -> usize {
    while parents[at] != at {
        parents[at] = parents[parents[at]];
        at = parents[at];
    }
    at
}

/// Into how many parts a graph falls, whichever way its edges point.
fn components<'a>(nodes: impl Iterator<Item = &'a str>, edges: impl Iterator<Item = (&'a str, &'a str)>) -> usize {
    let index: BTreeMap<&str, usize> = nodes.enumerate().map(|(at, id)| (id, at)).collect();
    let mut parents: Vec<usize> = (0..index.len()).collect();
    let mut parts = index.len();
    for (from, to) in edges {
        if let (Some(&from), Some(&to)) = (index.get(from), index.get(to)) {
            let (a, b) = (root(&mut parents, from), root(&mut parents, to));
            if a != b {
                parents[a] = b;
                parts -= 1;
            }
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::coverage::{Coverage, Extent, Outcome};
    use crate::key::Place;

    const LINKS: &[Link] = &[Link { kind: "Leaf", path: "/parents/*/name", edge: "in", target: "Tree" }];

    fn key(kind: &str, id: &str) -> ResourceKey {
        ResourceKey { kind: kind.into(), place: Place::new("here"), id: id.into() }
    }

    fn object(members: &[(&str, Value)]) -> Value {
        Value::Object(members.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect())
    }

    fn edge(from: &str, to: &str, size: i64) -> (ResourceKey, Value) {
        let attributes = object(&[("size", size.into())]);
        let ends = [("from", from.into()), ("to", to.into()), ("type", "t".into()), ("attributes", attributes)];
        (key("Edge", &format!("{from} -> {to}")), object(&ends))
    }

    fn node(id: &str) -> (ResourceKey, Value) {
        (key("Node", id), object(&[]))
    }

    fn partial() -> Coverage {
        let mut coverage = Coverage::complete();
        let outcome = Outcome::Partial { reason: "throttled".into() };
        coverage.record(Extent { kind: "Edge".into(), place: "here".into() }, outcome);
        coverage
    }

    /// Nobody looked, twice.
    fn carrying() -> Coverage {
        Coverage::new().on_basis(Some("carrying".into()))
    }

    type Resources = BTreeMap<ResourceKey, Value>;

    fn diff((before, old): (&Resources, &Coverage), (after, new): (&Resources, &Coverage)) -> GraphDiff {
        let mut diff = GraphDiff::default();
        let reading = Reading {
            edge_kind: "Edge",
            is_node: &|_| true,
            links: LINKS,
            resolve: &|_, link, text| format!("{}:{text}", link.target),
        };
        // A pass that did not list the edges carries over those that it knows.
        let carried: BTreeSet<ResourceKey> = if *new == carrying() {
            before.keys().filter(|key| after.contains_key(key)).cloned().collect()
        } else {
            BTreeSet::new()
        };
        let before = Pass { resources: before, unseen: &carried, coverage: old };
        let after = Pass { resources: after, unseen: &carried, coverage: new };
        diff.add("s", before, after, &reading, &RuleBook::default());
        diff.add_missing_ends();
        diff
    }

    fn fates(diff: &GraphDiff) -> Vec<(String, &'static str)> {
        let edges = diff.edges.iter().map(|(id, edge)| (format!("{}>{}", id.from, id.to), edge.fate.name()));
        diff.nodes.iter().map(|(id, node)| (id.clone(), node.fate.name())).chain(edges).collect()
    }

    #[test]
    fn a_new_target_raises_the_degree_of_its_rule() {
        let before = Resources::from([node("rule"), node("f"), edge("rule", "f", 1)]);
        let after = Resources::from([node("rule"), node("f"), node("q"), edge("rule", "f", 2), edge("rule", "q", 1)]);
        let whole = Coverage::complete();
        let diff = diff((&before, &whole), (&after, &whole));
        let told: Vec<_> = fates(&diff);
        let told: Vec<(&str, &str)> = told.iter().map(|(name, fate)| (name.as_str(), *fate)).collect();
        let expected = [("f", "same"), ("q", "added"), ("rule", "same"), ("rule>f", "changed"), ("rule>q", "added")];
        assert_eq!(told, expected);
        assert_eq!(diff.degrees()["rule"].outgoing, [1, 2]);
        assert_eq!(diff.degrees()["q"].incoming, [0, 1]);
        let [was, is] = diff.shapes();
        assert_eq!((was.nodes, was.edges, was.connected_components, was.isolated_nodes), (2, 1, 1, 0));
        assert_eq!((is.nodes, is.edges, is.max_out_degree, is.isolated_nodes), (3, 2, 2, 0));
    }

    #[test]
    fn an_edge_missing_from_a_listing_cut_short_is_not_removed() {
        let before = Resources::from([node("a"), node("b"), edge("a", "b", 1)]);
        let after = Resources::from([node("a"), node("b")]);
        let whole = Coverage::complete();
        for (old, new) in [(&whole, &partial()), (&whole, &Coverage::new()), (&partial(), &whole)] {
            let [(before, old), (after, new)] =
                if new == &whole { [(&after, old), (&before, new)] } else { [(&before, old), (&after, new)] };
            let diff = diff((before, old), (after, new));
            let edge = diff.edges.values().next().map(|edge| edge.fate.name());
            assert_eq!(edge, Some("not_checked"));
            assert!(diff.degrees().values().all(|degrees| !degrees.differ()), "no degree is said to have changed");
        }
        let gone = diff((&before, &whole), (&after, &whole));
        assert_eq!(gone.edges.values().next().map(|edge| edge.fate.name()), Some("removed"));
    }

    #[test]
    fn what_neither_side_looked_at_is_still_in_the_graph_and_not_checked() {
        let known = Resources::from([node("a"), node("b"), edge("a", "b", 1)]);
        let diff = diff((&known, &carrying()), (&known, &carrying()));
        assert!(fates(&diff).iter().all(|(_, fate)| *fate == "not_checked"), "{:?}", fates(&diff));
        assert_eq!(diff.shapes().map(|shape| shape.edges), [1, 1]);
    }

    #[test]
    fn listings_of_two_backends_add_and_remove_nothing() {
        let before = Resources::from([node("a"), node("b"), edge("a", "b", 1)]);
        let after = Resources::from([node("a"), node("c"), edge("a", "c", 1)]);
        let other = Coverage::complete().on_basis(Some("other".into()));
        let diff = diff((&before, &Coverage::complete()), (&after, &other));
        let told = fates(&diff);
        assert!(told.iter().all(|(name, fate)| *fate == if name == "a" { "same" } else { "not_checked" }), "{told:?}");
    }

    #[test]
    fn an_edge_that_points_elsewhere_is_one_gone_and_one_new() {
        let (name, _) = edge("a", "b", 1);
        let before = Resources::from([edge("a", "b", 1)]);
        let after = Resources::from([(name, edge("a", "c", 1).1)]);
        let whole = Coverage::complete();
        let told = fates(&diff((&before, &whole), (&after, &whole)));
        let told: Vec<(&str, &str)> = told.iter().map(|(name, fate)| (name.as_str(), *fate)).collect();
        assert_eq!(
            told,
            [("a", "same"), ("b", "removed"), ("c", "added"), ("a>b", "removed"), ("a>c", "added")],
            "ends that nobody listed live as long as their edges"
        );
    }

    #[test]
    fn a_property_that_names_others_is_an_edge_to_each() {
        let leaf = |parents: &[&str], size: i64| {
            let parents = parents.iter().map(|name| object(&[("name", (*name).into())])).collect();
            (key("Leaf", "l"), object(&[("parents", Value::Array(parents)), ("size", size.into())]))
        };
        let (before, after) = (Resources::from([leaf(&["x", "y"], 1)]), Resources::from([leaf(&["y", "z"], 2)]));
        let whole = Coverage::complete();
        let told = fates(&diff((&before, &whole), (&after, &whole)));
        let edges: Vec<(&str, &str)> =
            told.iter().filter(|(name, _)| name.contains('>')).map(|(name, fate)| (name.as_str(), *fate)).collect();
        assert_eq!(edges, [("l>Tree:x", "removed"), ("l>Tree:y", "same"), ("l>Tree:z", "added")]);
        let unseen = diff((&before, &whole), (&Resources::new(), &Coverage::new()));
        assert!(unseen.edges.values().all(|edge| matches!(edge.fate, Fate::NotChecked(_))), "its owner was not seen");
    }

    #[test]
    fn two_observers_of_one_node_agree_that_it_is_there() {
        let not_checked = || Fate::NotChecked("why".into());
        for (one, other, both) in [
            (Fate::Same, Fate::Removed, Fate::Same),
            (Fate::Added, Fate::Removed, Fate::Same),
            (Fate::Added, Fate::Added, Fate::Added),
            (not_checked(), Fate::Removed, not_checked()),
            (not_checked(), Fate::Same, Fate::Same),
            (Fate::Changed(Vec::new()), Fate::Added, Fate::Changed(Vec::new())),
        ] {
            assert_eq!(one.clone().and(other.clone()), both);
            assert_eq!(other.and(one), both);
        }
    }

    /// Edges between five nodes, each with one attribute.
    fn graphs() -> impl Strategy<Value = BTreeMap<(u8, u8), i64>> {
        proptest::collection::btree_map((0..5u8, 0..5u8), 0..3i64, 0..12)
    }

    fn resources(edges: &BTreeMap<(u8, u8), i64>) -> Resources {
        edges.iter().map(|((from, to), size)| edge(&from.to_string(), &to.to_string(), *size)).collect()
    }

    proptest! {
        #[test]
        fn taking_away_what_was_removed_and_adding_what_was_added_gives_the_later_graph(
            before in graphs(), after in graphs(), cut: bool
        ) {
            let (old, new) = (resources(&before), resources(&after));
            let coverage = if cut { partial() } else { Coverage::complete() };
            let diff = diff((&old, &Coverage::complete()), (&new, &coverage));
            let mut edges: BTreeSet<ResourceKey> = old.keys().cloned().collect();
            for (id, edge) in &diff.edges {
                let name = key("Edge", &id.id);
                match edge.fate {
                    Fate::Added => prop_assert!(edges.insert(name)),
                    Fate::Removed => prop_assert!(edges.remove(&name)),
                    Fate::Changed(_) => prop_assert!(old[&name] != new[&name]),
                    Fate::Same => prop_assert_eq!(&old[&name], &new[&name]),
                    Fate::NotChecked(_) => prop_assert!(cut && !new.contains_key(&name)),
                }
            }
            let unchecked = diff.edges.values().filter(|edge| matches!(edge.fate, Fate::NotChecked(_))).count();
            prop_assert_eq!(edges.len(), new.len() + unchecked);
            prop_assert!(new.keys().all(|name| edges.contains(name)));
            let [was, is] = diff.shapes();
            prop_assert_eq!((was.edges, is.edges), (old.len(), edges.len()));
            let sum = |side: usize| diff.degrees().values().map(|one| one.outgoing[side]).sum::<u64>();
            prop_assert_eq!([sum(0), sum(1)], [was.edges as u64, is.edges as u64]);
        }
    }
}
