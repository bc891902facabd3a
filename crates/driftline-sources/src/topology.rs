//! event topology: who sends events to whom. Nodes are what they are; edges are resources of their own, and a
//! node's out-edges are part of it, so that a new target is a change of the rule, too.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use driftline_core::{Outcome, ResourceKey, Value};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::aws::{Whereabouts, is_arn, resource_key};
use crate::normalize::{
    Context, Document, Listing, NormalizeError, Opened, TRUNCATED, key, open, place_part, read, text, time, value,
};

/// The type of edges.
pub const EDGE: &str = "Driftline::Topology::Edge";
/// An endpoint outside of the cloud, such as an e-mail address or a web hook.
pub const EXTERNAL: &str = "Driftline::Topology::ExternalEndpoint";
/// A node that the observer could not tell the type of.
pub const UNKNOWN: &str = "Driftline::Topology::UnknownNode";

/// What the observer calls a type, the type, and how many of it the observer lists at most without saying that it
/// stopped there. `None`: it lists none, they are only seen as ends of edges.
const NODES: &[(&str, &str, Option<usize>)] = &[
    ("EventBridgeRule", "AWS::Events::Rule", Some(100)),
    ("EventBridgeBus", "AWS::Events::EventBus", None),
    ("SNSTopic", "AWS::SNS::Topic", Some(200)),
    ("SQSQueue", "AWS::SQS::Queue", Some(500)),
    ("Lambda", "AWS::Lambda::Function", None),
    ("StepFunctions", "AWS::StepFunctions::StateMachine", None),
    ("Kinesis", "AWS::Kinesis::Stream", None),
    ("Firehose", "AWS::KinesisFirehose::DeliveryStream", None),
    ("DynamoDB", "AWS::DynamoDB::Table", None),
    ("S3", "AWS::S3::Bucket", None),
    ("MSK", "AWS::MSK::Cluster", None),
    ("AmazonMQ", "AWS::AmazonMQ::Broker", None),
    ("APIGateway", "AWS::ApiGateway::RestApi", None),
    ("CodePipeline", "AWS::CodePipeline::Pipeline", None),
    ("CodeBuild", "AWS::CodeBuild::Project", None),
    ("CloudWatchLogs", "AWS::Logs::LogGroup", None),
    ("ECS", "AWS::ECS::Cluster", None),
    ("ExternalEndpoint", EXTERNAL, None),
    ("Unknown", UNKNOWN, None),
];

/// The types of nodes.
pub fn node_kinds() -> impl Iterator<Item = &'static str> {
    NODES.iter().map(|(_, kind, _)| *kind)
}

const RULE_PREFIX: &str = "eventbridge:rule:";
/// Why a type of node is partial that nobody lists.
pub const ONLY_AS_ENDS: &str = "the observer sees these only where an edge begins or ends";

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Raw<'a> {
    fetched_at: Option<String>,
    account_id: Option<String>,
    region: Option<String>,
    #[serde(default)]
    truncated: bool,
    #[serde(borrow)]
    nodes: Option<Vec<&'a RawValue>>,
    #[serde(borrow)]
    edges: Option<Vec<&'a RawValue>>,
}

/// A node while edges come in.
struct Node {
    key: ResourceKey,
    value: Value,
    out: Vec<Value>,
    document: usize,
}

/// One edge, borrowed where the document has it as it is.
#[derive(Deserialize)]
struct Edge<'a> {
    #[serde(borrow)]
    from: Option<Cow<'a, str>>,
    #[serde(borrow)]
    to: Option<Cow<'a, str>>,
    #[serde(borrow)]
    r#type: Option<Cow<'a, str>>,
    attributes: Option<Value>,
}

/// How the observer calls a node, and where that is a name: an ARN is one everywhere, while rules and endpoints
/// outside have equal names in every region.
type NodeName = (String, String);

fn node_name(id: &str, place: &str) -> NodeName {
    (id.to_owned(), if is_arn(id) { String::new() } else { place.to_owned() })
}

#[derive(Default)]
struct Graph {
    /// By the observer's id. Looked up only: resources are in order anyway.
    numbers: HashMap<NodeName, usize>,
    nodes: Vec<Node>,
    /// By where and what, how many nodes came.
    counts: BTreeMap<(String, &'static str), usize>,
    rules_by_bus: BTreeMap<(String, String), usize>,
    /// Places that were listed, each with the reason if not wholly.
    places: BTreeMap<String, Option<String>>,
}

pub(crate) fn normalize(documents: &[Document<'_>], context: &Context) -> Result<Vec<Listing>, NormalizeError> {
    let mut listing = Listing::default();
    let mut graph = Graph::default();
    let opened = open(documents)?;
    let mut raws = Vec::new();
    for (number, document) in opened.iter().enumerate() {
        let raw: Raw<'_> = read(document)?;
        let (Some(nodes), Some(edges)) = (raw.nodes.clone(), raw.edges.clone()) else {
            return Err(NormalizeError::new(
                &document.name,
                "this is not a graph of event-topology: it has no `nodes` and `edges`",
            ));
        };
        listing.taken(time(raw.fetched_at.as_deref()).or(document.written_at));
        graph.take_nodes(&mut listing, (number, document), &raw, &nodes, context)?;
        raws.push((document, raw, edges));
    }
    // Edges may lead to nodes of another document.
    for (document, raw, edges) in &raws {
        graph.take_edges(&mut listing, document, raw, edges, context)?;
    }
    graph.finish(&mut listing, &opened)?;
    Ok(vec![listing])
}

fn here<'a>(document: &Opened<'_>, raw: &'a Raw<'_>, context: &'a Context) -> Result<Whereabouts<'a>, NormalizeError> {
    let account = place_part(document, "accountId", raw.account_id.as_deref())?;
    Ok(Whereabouts {
        partition: &context.partition,
        account: account.filter(|account| *account != "unknown").or(context.account.as_deref()),
        region: place_part(document, "region", raw.region.as_deref())?,
    })
}

/// What a node is called by everyone. Rules have no ARN in the graph, but all that one is made of.
fn node_key(id: &str, kind: &str, at: Whereabouts<'_>) -> ResourceKey {
    if let Some(name) = id.strip_prefix(RULE_PREFIX) {
        // The default bus has no part in an ARN.
        return resource_key("AWS::Events::Rule", name.strip_prefix("default/").unwrap_or(name), at);
    }
    if is_arn(id) { resource_key(kind, id, at) } else { key(kind, &at.place(kind), id) }
}

impl Graph {
    fn take_nodes(
        &mut self,
        listing: &mut Listing,
        (number, document): (usize, &Opened<'_>),
        raw: &Raw<'_>,
        nodes: &[&RawValue],
        context: &Context,
    ) -> Result<(), NormalizeError> {
        let at = here(document, raw, context)?;
        let place = at.place("");
        let mut nameless = 0;
        for item in nodes {
            listing.items += 1;
            let mut value = value(document, item)?;
            let Some(id) = text(&value, "id").map(ToOwned::to_owned) else {
                nameless += 1;
                continue;
            };
            let named = text(&value, "type").unwrap_or("Unknown");
            let known = NODES.iter().find(|(name, ..)| *name == named);
            if known.is_none() {
                listing.problem(document.name.as_str(), format!("`{named}` is not a type of node this program knows"));
            }
            let kind = known.map_or(UNKNOWN, |(_, kind, _)| kind);
            *self.counts.entry((place.clone(), kind)).or_default() += 1;
            if let Some(name) = id.strip_prefix(RULE_PREFIX) {
                let bus = name.split('/').next().unwrap_or_default().to_owned();
                *self.rules_by_bus.entry((place.clone(), bus)).or_default() += 1;
            }
            // The observer cannot tell a rule's account, and says so in place of it.
            if let Value::Object(members) = &mut value
                && members.get("accountId").and_then(Value::as_str) == Some("unknown")
            {
                members.insert("accountId".into(), at.account.map_or(Value::Null, Value::from));
            }
            let key = node_key(&id, kind, at);
            let node = Node { key, value, out: Vec::new(), document: number };
            let name = node_name(&id, &place);
            match self.numbers.get(&name) {
                // Two graphs that border on each other both have the node; the one that it belongs to says more.
                Some(&known) => {
                    let known = &mut self.nodes[known];
                    if (size(&node.value), &known.value) > (size(&known.value), &node.value) {
                        *known = node;
                    }
                }
                None => {
                    self.numbers.insert(name, self.nodes.len());
                    self.nodes.push(node);
                }
            }
        }
        let nameless = listing.nameless(&document.name, "of a graph", "id", nameless);
        let reason = raw.truncated.then(|| TRUNCATED.to_owned()).or(nameless);
        let slot = self.places.entry(place).or_default();
        *slot = slot.take().or(reason);
        Ok(())
    }

    fn take_edges(
        &mut self,
        listing: &mut Listing,
        document: &Opened<'_>,
        raw: &Raw<'_>,
        edges: &[&RawValue],
        context: &Context,
    ) -> Result<(), NormalizeError> {
        let at = here(document, raw, context)?;
        let place = at.place("");
        let mut nameless = 0;
        for item in edges {
            listing.items += 1;
            let edge: Edge<'_> =
                serde_json::from_str(item.get()).map_err(|error| NormalizeError::json(&document.name, &error))?;
            let (Some(from), Some(to), Some(kind)) = (filled(edge.from), filled(edge.to), filled(edge.r#type)) else {
                nameless += 1;
                continue;
            };
            let node = |id: &str| self.numbers.get(&node_name(id, &place)).map(|at| &self.nodes[*at]);
            let end = |id: &str| node(id).map_or_else(|| node_key(id, UNKNOWN, at).id, |node| node.key.id.clone());
            let (from_id, to_id) = (end(&from), end(&to));
            let attributes = edge.attributes.unwrap_or_else(|| Value::Object(BTreeMap::new()));
            // Two targets of one rule may be the same queue, and two mappings the same pair: they have names.
            let name = ["targetId", "uuid"].iter().find_map(|name| text(&attributes, name));
            let name = name.map(|name| format!(" {name}")).unwrap_or_default();
            let key = key(EDGE, &place, &format!("{from_id} -[{kind}{name}]-> {to_id}"));
            let is_new = !listing.resources.contains_key(&key);
            let mut edge = Value::from([
                ("from", Value::from(from_id)),
                ("to", Value::from(to_id)),
                ("type", Value::from(&*kind)),
                ("attributes", attributes),
            ]);
            listing.add(key, &edge, Vec::new(), &document.name)?;
            if let Value::Object(members) = &mut edge
                && let Some(node) = self.numbers.get(&node_name(&from, &place)).filter(|_| is_new)
            {
                members.remove("from");
                self.nodes[*node].out.push(edge);
            }
        }
        if let Some(reason) = listing.nameless(&document.name, "of edges", "from, to or type", nameless) {
            self.places.insert(place, Some(reason));
        }
        Ok(())
    }

    fn finish(self, listing: &mut Listing, opened: &[Opened<'_>]) -> Result<(), NormalizeError> {
        for (place, reason) in &self.places {
            for (_, kind, most) in NODES {
                let count = self.counts.get(&(place.clone(), *kind)).copied().unwrap_or_default();
                let count = match *kind {
                    "AWS::Events::Rule" => {
                        let buses = self.rules_by_bus.iter().filter(|((at, _), _)| at == place);
                        buses.map(|(_, count)| *count).max().unwrap_or(count)
                    }
                    _ => count,
                };
                let reason = match most {
                    // Of what is not there nothing has to be said.
                    None if count == 0 => continue,
                    _ if reason.is_some() => reason.clone(),
                    None => Some(ONLY_AS_ENDS.to_owned()),
                    Some(most) if count >= *most => {
                        Some(format!("{count}, as many as the observer lists at most; it does not say that it stopped"))
                    }
                    Some(_) => None,
                };
                listing.cover_unless(kind, place, reason.as_deref());
            }
            // Where the ends of edges were cut, so were the edges.
            let cut = NODES.iter().filter(|(_, _, most)| most.is_some()).find_map(|(_, kind, _)| {
                match listing.coverage.outcome(kind, place) {
                    Some(Outcome::Partial { reason }) => Some(reason.clone()),
                    _ => None,
                }
            });
            listing.cover_unless(EDGE, place, cut.as_deref());
        }
        for node in self.nodes {
            let mut value = node.value;
            if let Value::Object(members) = &mut value {
                let mut out = node.out;
                out.sort();
                members.insert("outDegree".into(), Value::from(out.len() as u64));
                members.insert("out".into(), Value::Array(out));
            }
            listing.add(node.key, &value, Vec::new(), &opened[node.document].name)?;
        }
        Ok(())
    }
}

fn filled(text: Option<Cow<'_, str>>) -> Option<Cow<'_, str>> {
    text.filter(|text| !text.is_empty())
}

fn size(value: &Value) -> usize {
    match value {
        Value::Object(members) => members.values().map(|member| 1 + size(member)).sum(),
        Value::Array(items) => items.iter().map(|item| 1 + size(item)).sum(),
        Value::Null => 0,
        _ => 1,
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use driftline_core::Value;

    use crate::normalize::Model;
    use crate::normalize::testing::{extent, keys, listing, normalize, properties};

    const PLACE: &str = "aws/123456789012/us-east-1";
    const QUEUE: &str = "arn:aws:sqs:us-east-1:123456789012:q";

    fn graph(nodes: &[String], edges: &[String]) -> String {
        format!(
            r#"{{"fetchedAt":"2026-06-29T10:00:00Z","accountId":"123456789012","region":"us-east-1","nodes":[{}],"edges":[{}],"stats":{{}}}}"#,
            nodes.join(","),
            edges.join(",")
        )
    }

    fn node(id: &str, kind: &str, metadata: &str) -> String {
        format!(
            r#"{{"id":"{id}","type":"{kind}","accountId":"unknown","region":"us-east-1","name":"n","isBoundary":false,"metadata":{metadata}}}"#
        )
    }

    fn edge(from: &str, to: &str, target: &str) -> String {
        format!(r#"{{"from":"{from}","to":"{to}","type":"targets","attributes":{{"targetId":"{target}"}}}}"#)
    }

    #[test]
    fn a_rule_has_its_arn_its_account_and_its_out_edges() {
        let rule = "eventbridge:rule:default/r";
        let nodes = [node(rule, "EventBridgeRule", "{}"), node(QUEUE, "SQSQueue", r#"{"approximateMessageCount":7}"#)];
        let found = listing(Model::EventTopology, &[&graph(&nodes, &[edge(rule, QUEUE, "a"), edge(rule, QUEUE, "b")])]);
        let arn = "arn:aws:events:us-east-1:123456789012:rule/r";
        assert_eq!(
            keys(&found),
            [
                format!("AWS::Events::Rule {PLACE} {arn}"),
                format!("AWS::SQS::Queue {PLACE} {QUEUE}"),
                format!("Driftline::Topology::Edge {PLACE} {arn} -[targets a]-> {QUEUE}"),
                format!("Driftline::Topology::Edge {PLACE} {arn} -[targets b]-> {QUEUE}"),
            ]
        );
        let rule = properties(&found, "rule/r");
        assert_eq!(rule.get("outDegree"), Some(&Value::from(2u64)));
        assert_eq!(rule.get("accountId"), Some(&Value::from("123456789012")), "the observer could not tell it");
        assert_eq!(properties(&found, ":q").get("outDegree"), Some(&Value::from(0u64)));
        assert_eq!(extent(&found, super::EDGE, PLACE), "complete");
        assert_eq!(extent(&found, "AWS::Lambda::Function", PLACE), "");
        let function = node("arn:aws:lambda:us-east-1:123456789012:function:f", "Lambda", "{}");
        let found = listing(Model::EventTopology, &[&graph(&[function], &[])]);
        assert!(extent(&found, "AWS::Lambda::Function", PLACE).contains("only where an edge"));
        let custom =
            listing(Model::EventTopology, &[&graph(&[node("eventbridge:rule:bus/r", "EventBridgeRule", "{}")], &[])]);
        assert!(keys(&custom)[0].ends_with(":rule/bus/r"));
    }

    #[test]
    fn a_limit_that_was_reached_without_a_word_makes_the_listing_partial() {
        let queues = |count: usize| {
            let nodes: Vec<String> = (0..count).map(|at| node(&format!("{QUEUE}{at}"), "SQSQueue", "{}")).collect();
            listing(Model::EventTopology, &[&graph(&nodes, &[])])
        };
        assert_eq!(extent(&queues(499), "AWS::SQS::Queue", PLACE), "complete");
        assert!(extent(&queues(500), "AWS::SQS::Queue", PLACE).contains("at most"));
        assert!(extent(&queues(500), super::EDGE, PLACE).contains("at most"), "edges of what was cut are cut");
        assert_eq!(extent(&queues(500), "AWS::SNS::Topic", PLACE), "complete");
    }

    #[test]
    fn of_a_node_in_two_graphs_the_one_that_says_more_is_kept_in_whichever_order() {
        let poor = graph(&[node(QUEUE, "SQSQueue", "{}")], &[]);
        let rich = graph(&[node(QUEUE, "SQSQueue", r#"{"approximateMessageCount":7}"#)], &[]);
        let found = listing(Model::EventTopology, &[&poor, &rich]);
        assert!(properties(&found, ":q").get("metadata").unwrap().get("approximateMessageCount").is_some());
        assert_eq!(found.resources, listing(Model::EventTopology, &[&rich, &poor]).resources);
    }

    #[test]
    fn an_unknown_type_of_node_is_told_and_kept() {
        let found = listing(Model::EventTopology, &[&graph(&[node("x", "Teleporter", "{}")], &[])]);
        assert_eq!(keys(&found), [format!("{} aws/123456789012/us-east-1 x", super::UNKNOWN)]);
        assert!(found.problems[0].message.contains("Teleporter"));
        assert!(normalize(Model::EventTopology, &[r#"{"query":"hubs","results":[]}"#]).is_err());
    }

    /// What the observer calls a rule has neither account nor region in it.
    #[test]
    fn rules_of_one_name_in_two_regions_are_two() {
        let rule = "eventbridge:rule:default/r";
        let here =
            graph(&[node(rule, "EventBridgeRule", "{}"), node(QUEUE, "SQSQueue", "{}")], &[edge(rule, QUEUE, "a")]);
        let there = here.replace("us-east-1", "eu-west-1");
        let found = listing(Model::EventTopology, &[&here, &there]);
        assert_eq!(found.resources.len(), 6);
        for region in ["us-east-1", "eu-west-1"] {
            let found = properties(&found, &format!("events:{region}:123456789012:rule/r"));
            let to = found.get("out").and_then(Value::as_array).unwrap()[0].get("to").and_then(Value::as_str);
            assert_eq!(to, Some(QUEUE.replace("us-east-1", region).as_str()));
        }
    }
}
