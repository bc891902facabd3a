//! event-topology: buses, rules and their targets, topics and their subscriptions, queues, and what functions poll.

use std::collections::{BTreeMap, BTreeSet};

use driftline_core::{Problem, SourceName};
use driftline_sources::normalize::{Listing, Model, NormalizeError};
use driftline_sources::topology::EDGE;
use futures_util::stream::{self, StreamExt};
use serde_json::{Value, json};

use crate::pass::{Covered, Here, normalized};
use crate::row::{Given, Operation, Paging, Wire};
use crate::run::{Listed, ask, outcome, pages, reason};
use crate::shape::{all, at, document, number, text_at};

const EVENTS: Wire = Wire::Json { version: "1.1", target: "AWSEvents" };
const SQS: Wire = Wire::Json { version: "1.0", target: "AmazonSQS" };
const SNS: Wire = Wire::Query { version: "2010-03-31" };
const HUNDRED: &[(&str, Given)] = &[("Limit", Given::Number(100))];
const NEXT_TOKEN: Paging = Paging { tokens: &[("NextToken", "NextToken")], more: None };
const MARKER: Paging = Paging { tokens: &[("Marker", "NextMarker")], more: None };

const fn operation(
    service: &'static str,
    name: &'static str,
    wire: Wire,
    given: &'static [(&'static str, Given)],
) -> Operation {
    Operation { service, name, wire, given, action: None, lists: &["Topics", "Subscriptions", "Attributes"] }
}

const BUSES: Operation = operation("events", "ListEventBuses", EVENTS, HUNDRED);
const RULES: Operation = operation("events", "ListRules", EVENTS, HUNDRED);
const TARGETS: Operation = operation("events", "ListTargetsByRule", EVENTS, HUNDRED);
const TOPICS: Operation = operation("sns", "ListTopics", SNS, &[]);
const SUBSCRIPTIONS: Operation = operation("sns", "ListSubscriptions", SNS, &[]);
const QUEUES: Operation = operation("sqs", "ListQueues", SQS, &[("MaxResults", Given::Number(1000))]);
const QUEUE: Operation =
    operation("sqs", "GetQueueAttributes", SQS, &[("AttributeNames", Given::Texts(&["QueueArn", "RedrivePolicy"]))]);
const MAPPINGS: Operation = operation(
    "lambda",
    "ListEventSourceMappings",
    Wire::RestJson { path: "/2015-03-31/event-source-mappings/" },
    &[("MaxItems", Given::Number(100))],
);

/// What a subscription lets through, and where what it cannot deliver goes.
const SUBSCRIPTION: Operation = operation("sns", "GetSubscriptionAttributes", SNS, &[]);
const FUNCTIONS: Operation = operation(
    "lambda",
    "ListFunctions",
    Wire::RestJson { path: "/2015-03-31/functions/" },
    &[("MaxItems", Given::Number(50))],
);
/// Where the results of asynchronous calls go, of a function and of its versions and aliases.
const INVOCATIONS: Operation = operation(
    "lambda",
    "ListFunctionEventInvokeConfigs",
    Wire::RestJson { path: "/2019-09-25/functions/{}/event-invoke-config/list" },
    &[("MaxItems", Given::Number(50))],
);

pub(crate) const OPERATIONS: &[Operation] =
    &[BUSES, RULES, TARGETS, TOPICS, SUBSCRIPTIONS, SUBSCRIPTION, QUEUES, QUEUE, MAPPINGS, FUNCTIONS, INVOCATIONS];

const SIDE_BY_SIDE: usize = 32;

pub(crate) async fn observe(here: &Here, source: &SourceName) -> Result<Listing, NormalizeError> {
    let client = &here.client;
    let ((rules, destinations), topics, subscriptions, queues, mappings) = futures_util::future::join5(
        futures_util::future::join(rules(here), destinations(here)),
        pages(client, &TOPICS, Some(&NEXT_TOKEN), "Topics/*", &[], ""),
        subscriptions(here),
        queues(here),
        pages(client, &MAPPINGS, Some(&MARKER), "EventSourceMappings/*", &[], ""),
    )
    .await;
    let mut graph = Graph::new(here);
    graph.take_rules(&rules);
    for topic in topics.items.iter().filter_map(|topic| text_at(topic, "TopicArn")) {
        graph.node(topic);
    }
    for subscription in &subscriptions.items {
        graph.take_subscription(subscription);
    }
    let read: BTreeSet<&str> = queues.items.iter().filter_map(|queue| text_at(queue, "QueueArn")).collect();
    for queue in &queues.items {
        graph.take_queue(queue);
    }
    for mapping in &mappings.items {
        graph.take_mapping(mapping);
    }
    for destination in &destinations.items {
        graph.take_destinations(destination);
    }
    // A node is what leads out of it, too: one whose edges were not all read would look changed.
    if subscriptions.partial.is_some() {
        graph.nodes.retain(|_, node| node["type"] != "SNSTopic");
    }
    if queues.partial.is_some() {
        graph.nodes.retain(|id, node| node["type"] != "SQSQueue" || read.contains(id.as_str()));
    }
    if mappings.partial.is_some() || destinations.partial.is_some() {
        let untouched = ["EventBridgeRule", "EventBridgeBus", "SNSTopic", "ExternalEndpoint"];
        graph.nodes.retain(|_, node| node["type"].as_str().is_some_and(|kind| untouched.contains(&kind)));
    }
    let first = |reasons: &[&Option<String>]| reasons.iter().find_map(|reason| reason.as_deref().map(str::to_owned));
    let place = here.place("");
    let mut covered = Covered::default();
    let rules_reason = rules.listed.partial.clone();
    let topics_reason = first(&[&topics.partial, &subscriptions.partial]);
    let queues_reason = first(&[&queues.partial, &mappings.partial, &destinations.partial]);
    covered.add("AWS::Events::Rule", &place, outcome(rules_reason.as_deref()));
    covered.add("AWS::Events::EventBus", &place, outcome(rules.buses.as_deref()));
    covered.add("AWS::SNS::Topic", &place, outcome(topics_reason.as_deref()));
    covered.add("AWS::SQS::Queue", &place, outcome(queues_reason.as_deref()));
    let edges = first(&[&rules_reason, &topics_reason, &queues_reason]);
    covered.add(EDGE, &place, outcome(edges.as_deref()));
    let document = here.document(json!({
        "nodes": graph.nodes.into_values().collect::<Vec<_>>(),
        "edges": graph.edges.into_values().collect::<Vec<_>>(),
    }));
    let problems: Vec<Problem> = queues.problems;
    normalized(Model::EventTopology, here, source, &document, &covered, problems)
}

/// Rules with their targets.
struct Rules {
    listed: Listed,
    /// Why not all buses are known, if they are not.
    buses: Option<String>,
    names: Vec<Value>,
}

async fn rules(here: &Here) -> Rules {
    let client = &here.client;
    let buses = pages(client, &BUSES, Some(&NEXT_TOKEN), "EventBuses/*", &[], "").await;
    let mut listed = Listed { partial: buses.partial.clone(), ..Listed::default() };
    let of_buses = stream::iter(buses.items.iter().filter_map(|bus| text_at(bus, "Name")).map(|bus| async move {
        let more = [("EventBusName".to_owned(), Value::from(bus))];
        pages(client, &RULES, Some(&NEXT_TOKEN), "Rules/*", &more, "").await
    }));
    let of_buses: Vec<Listed> = of_buses.buffered(SIDE_BY_SIDE).collect().await;
    let mut rules = Vec::new();
    for found in of_buses {
        rules.extend(found.items);
        if let Some(reason) = found.partial {
            listed.cut(reason);
        }
    }
    let with_targets = stream::iter(rules.into_iter().map(|mut rule| async move {
        let bus = text_at(&rule, "EventBusName").unwrap_or("default").to_owned();
        let name = text_at(&rule, "Name").unwrap_or_default().to_owned();
        let more = [("Rule".to_owned(), Value::from(name)), ("EventBusName".to_owned(), Value::from(bus))];
        let targets = pages(client, &TARGETS, Some(&NEXT_TOKEN), "Targets/*", &more, "").await;
        if let Value::Object(members) = &mut rule {
            members.insert("Targets".into(), Value::Array(targets.items));
        }
        (rule, targets.partial)
    }));
    let mut with_targets = with_targets.buffered(SIDE_BY_SIDE);
    while let Some((rule, partial)) = with_targets.next().await {
        match partial {
            None => listed.items.push(rule),
            Some(reason) => listed.cut(reason),
        }
    }
    Rules { listed, buses: buses.partial, names: buses.items }
}

/// Subscriptions with their attributes. One that nobody has confirmed has neither a name nor attributes yet.
async fn subscriptions(here: &Here) -> Listed {
    let client = &here.client;
    let mut listed = pages(client, &SUBSCRIPTIONS, Some(&NEXT_TOKEN), "Subscriptions/*", &[], "").await;
    let asked = stream::iter(std::mem::take(&mut listed.items).into_iter().map(|mut subscription| async move {
        let arn = text_at(&subscription, "SubscriptionArn").unwrap_or_default().to_owned();
        if !driftline_sources::aws::is_arn(&arn) {
            return Ok(Some(subscription));
        }
        match ask(client, &SUBSCRIPTION, &[("SubscriptionArn".to_owned(), Value::from(arn))], "").await {
            Ok(answer) => {
                subscription["Attributes"] = entries(&answer);
                Ok(Some(subscription))
            }
            // It was deleted after it was listed.
            Err(error) if error.kind == aws_wire::Kind::NotFound => Ok(None),
            Err(error) => Err(reason(&error, &SUBSCRIPTION)),
        }
    }));
    let mut asked = asked.buffered(SIDE_BY_SIDE);
    while let Some(subscription) = asked.next().await {
        match subscription {
            Ok(subscription) => listed.items.extend(subscription),
            Err(reason) => listed.cut(reason),
        }
    }
    listed
}

/// A map as the query protocol writes it: a list of entries with `key` and `value`.
fn entries(answer: &Value) -> Value {
    let pair = |entry: &Value| Some((text_at(entry, "key")?.to_owned(), entry.get("value")?.clone()));
    Value::Object(all(answer, "Attributes/*").into_iter().filter_map(pair).collect())
}

/// Where functions send the results of asynchronous calls.
async fn destinations(here: &Here) -> Listed {
    let client = &here.client;
    let functions = pages(client, &FUNCTIONS, Some(&MARKER), "Functions/*", &[], "").await;
    let mut listed = Listed { partial: functions.partial, ..Listed::default() };
    let names: Vec<&str> = functions.items.iter().filter_map(|function| text_at(function, "FunctionName")).collect();
    let asked = stream::iter(names.into_iter().map(|name| async move {
        pages(client, &INVOCATIONS, Some(&MARKER), "FunctionEventInvokeConfigs/*", &[], name).await
    }));
    let mut asked = asked.buffered(SIDE_BY_SIDE);
    while let Some(found) = asked.next().await {
        listed.items.extend(found.items);
        if let Some(reason) = found.partial {
            listed.cut(reason);
        }
    }
    listed
}

/// Queues with what their attributes say of where they lead.
async fn queues(here: &Here) -> Listed {
    let client = &here.client;
    let mut listed = pages(client, &QUEUES, Some(&NEXT_TOKEN), "QueueUrls/*", &[], "").await;
    let mut urls: Vec<String> = listed.items.iter().filter_map(Value::as_str).map(str::to_owned).collect();
    urls.sort();
    urls.dedup();
    listed.items = Vec::new();
    let attributes = stream::iter(
        urls.into_iter()
            .map(|url| async move { ask(client, &QUEUE, &[("QueueUrl".to_owned(), Value::from(url))], "").await }),
    );
    let mut attributes = attributes.buffered(SIDE_BY_SIDE);
    while let Some(answer) = attributes.next().await {
        match answer {
            Ok(answer) => listed.items.push(answer.get("Attributes").cloned().unwrap_or_default()),
            Err(error) if error.kind == aws_wire::Kind::NotFound => {}
            Err(error) => listed.cut(reason(&error, &QUEUE)),
        }
    }
    listed
}

struct Graph<'a> {
    here: &'a Here,
    nodes: BTreeMap<String, Value>,
    /// By their own text: the same edge twice is one.
    edges: BTreeMap<String, Value>,
}

impl<'a> Graph<'a> {
    fn new(here: &'a Here) -> Self {
        Self { here, nodes: BTreeMap::new(), edges: BTreeMap::new() }
    }

    /// The node of an ARN, made if it is not there. Versions of a function and streams of a table are the thing itself.
    fn node(&mut self, arn: &str) -> String {
        let id = thing(arn);
        let mut parts = id.splitn(6, ':').skip(2);
        let (service, region, account) = (parts.next(), parts.next(), parts.next());
        let rest = parts.next().unwrap_or(&id);
        let account = account.filter(|account| !account.is_empty()).unwrap_or(&self.here.account);
        let region = region.filter(|region| !region.is_empty()).or(self.here.region.as_deref());
        let node = json!({
            "id": id,
            "type": node_type(service.unwrap_or_default(), rest),
            "accountId": account,
            "region": region,
            "name": rest.rsplit(['/', ':']).next(),
            "isBoundary": account != self.here.account,
            "metadata": {},
        });
        self.nodes.entry(id.clone()).or_insert(node);
        id
    }

    fn edge(&mut self, from: &str, to: &str, kind: &str, attributes: &Value) {
        let edge = json!({"from": from, "to": to, "type": kind, "attributes": attributes});
        self.edges.insert(edge.to_string(), edge);
    }

    fn take_rules(&mut self, rules: &Rules) {
        for bus in &rules.names {
            // Every account has the default one.
            if let Some(arn) = text_at(bus, "Arn").filter(|_| text_at(bus, "Name") != Some("default")) {
                self.node(arn);
            }
        }
        for rule in &rules.listed.items {
            let (Some(name), bus) = (text_at(rule, "Name"), text_at(rule, "EventBusName").unwrap_or("default")) else {
                continue;
            };
            let id = format!("eventbridge:rule:{bus}/{name}");
            let pattern = at(rule, "EventPattern");
            let node = json!({
                "id": id,
                "type": "EventBridgeRule",
                "accountId": self.here.account,
                "region": self.here.region,
                "name": name,
                "isBoundary": false,
                "metadata": {
                    "state": text_at(rule, "State"),
                    "scheduleExpression": text_at(rule, "ScheduleExpression"),
                    "hasEventPattern": pattern.is_some(),
                    "eventPattern": pattern.map(document),
                },
            });
            self.nodes.insert(id.clone(), node);
            for target in all(rule, "Targets/*") {
                self.take_target(&id, target);
            }
        }
    }

    fn take_target(&mut self, rule: &str, target: &Value) {
        let Some(arn) = text_at(target, "Arn") else { return };
        let to = self.node(arn);
        let name = text_at(target, "Id");
        let attributes = json!({
            "targetId": name,
            "retryAttempts": at(target, "RetryPolicy/MaximumRetryAttempts"),
            "maxEventAge": at(target, "RetryPolicy/MaximumEventAgeInSeconds"),
        });
        self.edge(rule, &to, "targets", &attributes);
        if let Some(dead) = text_at(target, "DeadLetterConfig/Arn") {
            let to = self.node(dead);
            self.edge(rule, &to, "dlq", &json!({"targetId": name}));
        }
    }

    fn take_subscription(&mut self, subscription: &Value) {
        let (Some(topic), Some(protocol)) = (text_at(subscription, "TopicArn"), text_at(subscription, "Protocol"))
        else {
            return;
        };
        let endpoint = text_at(subscription, "Endpoint").unwrap_or_default();
        let internal = driftline_sources::aws::is_arn(endpoint);
        let to = if internal { self.node(endpoint) } else { self.external(protocol, endpoint) };
        let from = self.node(topic);
        let about = |name: &str| subscription.get("Attributes").and_then(|attributes| at(attributes, name));
        let mut attributes = json!({"protocol": protocol, "isInternal": internal});
        // Only what was decided: a subscription without a filter is as it is in documents.
        if let Some(policy) = about("FilterPolicy") {
            attributes["filterPolicy"] = document(policy);
            attributes["filterPolicyScope"] = about("FilterPolicyScope").cloned().unwrap_or_default();
        }
        if about("RawMessageDelivery").is_some_and(|raw| *raw == "true") {
            attributes["rawMessageDelivery"] = json!(true);
        }
        self.edge(&from, &to, "subscription", &attributes);
        let dead = about("RedrivePolicy").map(document);
        if let Some(dead) = dead.as_ref().and_then(|policy| text_at(policy, "deadLetterTargetArn")) {
            let dead = self.node(dead);
            self.edge(&from, &dead, "dlq", &json!({"subscription": to}));
        }
    }

    fn take_destinations(&mut self, config: &Value) {
        let Some(function) = text_at(config, "FunctionArn") else { return };
        let from = self.node(function);
        // Of a version or an alias it says which; that of the function itself says `$LATEST`, or nothing.
        let qualifier = function.splitn(8, ':').nth(7).filter(|qualifier| *qualifier != "$LATEST");
        for (outcome, kind) in [("OnSuccess", "successDestination"), ("OnFailure", "failureDestination")] {
            if let Some(to) = text_at(config, &format!("DestinationConfig/{outcome}/Destination")) {
                let to = self.node(to);
                let attributes = qualifier.map_or_else(
                    || json!({"invocation": "asynchronous"}),
                    |qualifier| json!({"invocation": "asynchronous", "qualifier": qualifier}),
                );
                self.edge(&from, &to, kind, &attributes);
            }
        }
    }

    /// An endpoint outside of AWS, named as the original observer names it.
    fn external(&mut self, protocol: &str, endpoint: &str) -> String {
        let short: String = endpoint.chars().take(80).collect();
        let id = format!("external:{protocol}:{short}");
        let node = json!({
            "id": id,
            "type": "ExternalEndpoint",
            "accountId": self.here.account,
            "region": self.here.region,
            "name": short,
            "isBoundary": true,
            "metadata": {"protocol": protocol},
        });
        self.nodes.entry(id.clone()).or_insert(node);
        id
    }

    fn take_queue(&mut self, attributes: &Value) {
        let Some(arn) = text_at(attributes, "QueueArn") else { return };
        let from = self.node(arn);
        let Some(policy) = at(attributes, "RedrivePolicy").map(document) else { return };
        if let Some(dead) = text_at(&policy, "deadLetterTargetArn") {
            let to = self.node(dead);
            let count = at(&policy, "maxReceiveCount").map(number);
            self.edge(&from, &to, "redrive", &json!({"maxReceiveCount": count}));
        }
    }

    fn take_mapping(&mut self, mapping: &Value) {
        let (Some(from), Some(to)) = (text_at(mapping, "EventSourceArn"), text_at(mapping, "FunctionArn")) else {
            return;
        };
        let (from, to) = (self.node(from), self.node(to));
        let attributes = json!({
            "uuid": text_at(mapping, "UUID"),
            "state": text_at(mapping, "State"),
            "batchSize": at(mapping, "BatchSize"),
            "bisectOnError": at(mapping, "BisectBatchOnFunctionError"),
        });
        self.edge(&from, &to, "eventSource", &attributes);
        if let Some(failed) = text_at(mapping, "DestinationConfig/OnFailure/Destination") {
            let failed = self.node(failed);
            self.edge(&to, &failed, "failureDestination", &json!({"uuid": text_at(mapping, "UUID")}));
        }
    }
}

/// What an ARN is of, without the version, alias, stream or wildcard that it may end in.
fn thing(arn: &str) -> String {
    let parts: Vec<&str> = arn.splitn(6, ':').collect();
    let [_, _, service, _, _, rest] = parts.as_slice() else { return arn.to_owned() };
    let kept = match *service {
        "lambda" => rest.splitn(3, ':').take(2).collect::<Vec<_>>().join(":"),
        "dynamodb" => rest.split("/stream/").next().unwrap_or(rest).to_owned(),
        "kinesis" => rest.split("/consumer/").next().unwrap_or(rest).to_owned(),
        "logs" => rest.strip_suffix(":*").unwrap_or(rest).to_owned(),
        _ => (*rest).to_owned(),
    };
    format!("{}:{kept}", parts[..5].join(":"))
}

fn node_type(service: &str, rest: &str) -> &'static str {
    match service {
        "lambda" => "Lambda",
        "sqs" => "SQSQueue",
        "sns" => "SNSTopic",
        "states" => "StepFunctions",
        "kinesis" => "Kinesis",
        "firehose" => "Firehose",
        "dynamodb" => "DynamoDB",
        "s3" => "S3",
        "kafka" => "MSK",
        "mq" => "AmazonMQ",
        "apigateway" | "execute-api" => "APIGateway",
        "codepipeline" => "CodePipeline",
        "codebuild" => "CodeBuild",
        "logs" => "CloudWatchLogs",
        "ecs" => "ECS",
        "events" if rest.starts_with("event-bus/") => "EventBridgeBus",
        _ => "Unknown",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_streams_and_wildcards_are_the_thing_itself() {
        for (arn, expected) in [
            ("arn:aws:lambda:r:1:function:f:PROD", "arn:aws:lambda:r:1:function:f"),
            ("arn:aws:dynamodb:r:1:table/t/stream/2020", "arn:aws:dynamodb:r:1:table/t"),
            ("arn:aws:logs:r:1:log-group:/a/b:*", "arn:aws:logs:r:1:log-group:/a/b"),
            ("arn:aws:sqs:r:1:q", "arn:aws:sqs:r:1:q"),
            ("no arn", "no arn"),
        ] {
            assert_eq!(thing(arn), expected);
        }
        let attributes = json!({"Attributes": [{"key": "a", "value": "1"}, {"key": "b", "value": "2"}, {"key": "c"}]});
        assert_eq!(entries(&attributes), json!({"a": "1", "b": "2"}));
        assert_eq!(node_type("events", "event-bus/b"), "EventBridgeBus");
        assert_eq!(node_type("events", "rule/b"), "Unknown");
    }
}
