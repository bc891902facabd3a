//! The demo's documents that tell who points at whom: names and their targets, events and their ways.

use std::collections::{BTreeMap, BTreeSet};

use driftline_core::Value;

use crate::demo_data::{
    ACCOUNT, ADDED_TARGET, BALANCER, DANGLING, FLOW, FLOWS, GLOBAL, KEY, Kind, Now, PRIVATE_ZONE, Pass, QUEUE, REGIONS,
    RULE, STACK, STACK_FLOW, STACK_ZONE, Step, TOPIC, Thing, VPC, ZONE, service_name, things_in,
};
use crate::demo_documents::{fetched, number, object, tally};

/// A zone, and what is in it.
pub(crate) struct Zone {
    thing: Thing,
    records: Vec<Record>,
}

/// A record: name, type, what it points at, and whether as an alias.
struct Record(String, &'static str, Vec<String>, bool);

/// Names that point at what is gone: the zone, the name, the target, and what the observer says of it. It does not
/// know instances, and so it never speaks of the name in the stack's zone.
const LEGACY: [(&str, &str, &str, &str); 2] = [
    ("example.com", "old-api", "legacy-alb-1203948576.us-east-1.elb.amazonaws.com", "cname_target_elb_not_found"),
    ("example.net", "downloads", "legacy-downloads.s3.amazonaws.com", "cname_target_s3_bucket_not_found"),
];

impl Zone {
    pub(crate) fn new(name: &str, hosts: usize, now: Now) -> Self {
        let thing = Thing::new(ZONE, GLOBAL, name, now);
        let at = |host: &str| format!("{host}.{name}");
        let servers = (1..=4).map(|number| format!("ns-{number}.awsdns-0{number}.org."));
        let authority = "ns-1.awsdns-01.org. awsdns-hostmaster.amazon.com. 1 7200 900 1209600 86400";
        let mut records = vec![
            Record(name.to_owned(), "NS", servers.collect(), false),
            Record(name.to_owned(), "SOA", vec![authority.into()], false),
        ];
        for number in 0..hosts {
            let host = at(&service_name(number, &["api", "www", "admin"]));
            let region = REGIONS[number % REGIONS.len()];
            let balancers = things_in(BALANCER, region, now);
            let mut dice = thing.dice(&host);
            let digits = 1_000_000_000 + dice.below(1 << 30);
            let balancer = format!("{}-{digits}.{region}.elb.amazonaws.com", balancers[number % balancers.len()].name);
            records.push(match (name == PRIVATE_ZONE, number % 2) {
                (true, _) => Record(host, "A", vec![format!("10.0.{}.{}", number / 200, 1 + number % 200)], false),
                (false, 0) => Record(host, "CNAME", vec![balancer], false),
                (false, _) => Record(host, "A", vec![format!("dualstack.{balancer}")], true),
            });
        }
        for (_, host, target, _) in LEGACY.iter().filter(|(zone, ..)| *zone == name) {
            records.push(Record(at(host), "CNAME", vec![(*target).to_owned()], false));
        }
        if name == STACK_ZONE {
            records.push(Record(at("app"), "CNAME", vec![DANGLING.to_owned()], false));
            // Weighted: two sets with one name and one type, and nothing that tells them apart but their targets.
            for region in [REGIONS[0], REGIONS[1]] {
                let balancer = &things_in(BALANCER, region, now)[0].name;
                let target = format!("{balancer}-1000000001.{region}.elb.amazonaws.com");
                records.push(Record(at("shop"), "CNAME", vec![target], false));
            }
        }
        Self { thing, records }
    }

    fn is_private(&self) -> bool {
        self.thing.name == PRIVATE_ZONE
    }
}

/// dns-observation, spec `zones`.
pub(crate) fn zones_document(zones: &[Zone], now: Now) -> Value {
    let networks = REGIONS.map(|region| {
        object! { vpcId: things_in(VPC, region, now)[0].short_id(), vpcRegion: region }
    });
    let item = |zone: &Zone| {
        object! {
            id: zone.thing.short_id(), name: zone.thing.name.as_str(), isPrivate: zone.is_private(),
            recordCount: number(zone.records.len()), comment: Value::Null,
            vpcAssociations: if zone.is_private() { networks.to_vec() } else { Vec::new() },
        }
    };
    let private = zones.iter().filter(|zone| zone.is_private()).count();
    object! {
        fetchedAt: fetched(now), accountId: ACCOUNT, truncated: false, zones: zones.iter().map(item).collect::<Vec<_>>(),
        summary: object! {
            totalZones: number(zones.len()), publicZones: number(zones.len() - private), privateZones: number(private),
            totalRecords: number(zones.iter().map(|zone| zone.records.len()).sum()),
        },
    }
}

/// dns-observation, spec `records`.
pub(crate) fn records_document(zones: &[Zone], now: Now) -> Value {
    let records: Vec<(&Zone, &Record)> =
        zones.iter().flat_map(|zone| zone.records.iter().map(move |record| (zone, record))).collect();
    let item = |(zone, Record(name, kind, values, is_alias)): &(&Zone, &Record)| {
        let alias =
            || object! { dnsName: values[0].as_str(), hostedZoneId: "Z35SXDOTRQ7X7K", evaluateTargetHealth: false };
        object! {
            zoneId: zone.thing.short_id(), zoneName: zone.thing.name.as_str(), name: name.as_str(), type: *kind,
            ttl: if *is_alias { Value::Null } else { 300_u64.into() },
            values: if *is_alias { Vec::new() } else { values.clone() },
            aliasTarget: if *is_alias { alias() } else { Value::Null },
        }
    };
    object! {
        fetchedAt: fetched(now), accountId: ACCOUNT, truncated: false,
        records: records.iter().map(item).collect::<Vec<_>>(),
        summary: object! {
            totalRecords: number(records.len()), zonesScanned: number(zones.len()),
            byType: tally(records.iter().map(|(_, record)| record.1)),
        },
    }
}

/// dns-observation, spec `orphans`. In the last pass someone has made the missing bucket again.
pub(crate) fn orphans_document(zones: &[Zone], now: Now) -> Value {
    let left = if now.pass == Pass::Drifted { &LEGACY[..1] } else { &LEGACY[..] };
    let item = |(zone, host, target, reason): &(&str, &str, &str, &str)| {
        let zone_id = Thing::new(ZONE, GLOBAL, *zone, now).short_id();
        object! {
            zoneId: zone_id, zoneName: *zone, recordName: format!("{host}.{zone}"), recordType: "CNAME",
            target: *target, reason: *reason,
        }
    };
    object! {
        fetchedAt: fetched(now), accountId: ACCOUNT, truncated: false,
        orphans: left.iter().map(item).collect::<Vec<_>>(),
        summary: object! {
            totalOrphans: number(left.len()), byReason: tally(left.iter().map(|(.., reason)| *reason)),
            zonesScanned: number(zones.len()), recordsAnalyzed: number(zones.iter().map(|it| it.records.len()).sum()),
        },
    }
}

/// A graph while the observer walks from service to service. Who adds a node first decides what is said of it.
struct Graph {
    region: &'static str,
    nodes: Vec<Value>,
    types: BTreeMap<String, &'static str>,
    edges: Vec<Value>,
    ends: Vec<(String, String)>,
}

impl Graph {
    fn node(&mut self, thing: &Thing, metadata: Value) -> String {
        let id = match thing.kind {
            // The observer does not make up an ARN for a rule, and then finds no account in what it has made up.
            RULE => format!("eventbridge:rule:default/{}", thing.name),
            _ => thing.id(),
        };
        let kind = match thing.kind {
            RULE => "EventBridgeRule",
            TOPIC => "SNSTopic",
            QUEUE => "SQSQueue",
            _ => "Lambda",
        };
        self.add(&id, kind, &thing.name, false, metadata);
        id
    }

    fn add(&mut self, id: &str, kind: &'static str, name: &str, is_boundary: bool, metadata: Value) {
        if self.types.insert(id.to_owned(), kind).is_none() {
            let account = if kind == "EventBridgeRule" { "unknown" } else { ACCOUNT };
            self.nodes.push(object! {
                id: id, type: kind, accountId: account, region: self.region, name: name, isBoundary: is_boundary,
                metadata: metadata,
            });
        }
    }

    fn edge(&mut self, from: &str, to: &str, how: &str, attributes: Value) {
        self.edges.push(object! { from: from, to: to, type: how, attributes: attributes });
        self.ends.push((from.to_owned(), to.to_owned()));
    }

    fn stats(&self) -> Value {
        let degree = |end: fn(&(String, String)) -> &String| {
            let mut degrees: BTreeMap<&String, u64> = BTreeMap::new();
            self.ends.iter().for_each(|ends| *degrees.entry(end(ends)).or_default() += 1);
            degrees.into_values().max().unwrap_or_default()
        };
        // Every node begins as a component of its own; an edge makes two of them one.
        let mut component: BTreeMap<&String, usize> = self.types.keys().zip(0..).collect();
        for (from, to) in &self.ends {
            let (kept, gone) = (component[from], component[to]);
            component.values_mut().filter(|it| **it == gone).for_each(|it| *it = kept);
        }
        let touched: BTreeSet<&String> = self.ends.iter().flat_map(|(from, to)| [from, to]).collect();
        let how = |edge: &Value| edge.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
        let how: Vec<String> = self.edges.iter().map(how).collect();
        object! {
            totalNodes: number(self.nodes.len()), totalEdges: number(self.edges.len()),
            nodesByType: tally(self.types.values().copied()), edgesByType: tally(how.iter().map(String::as_str)),
            maxInDegree: degree(|(_, to)| to), maxOutDegree: degree(|(from, _)| from),
            connectedComponents: number(component.values().collect::<BTreeSet<_>>().len()),
            boundaryNodes: number(self.types.values().filter(|kind| **kind == "ExternalEndpoint").count()),
            isolatedNodes: number(self.types.len() - touched.len()),
        }
    }
}

/// event-topology, spec `graph`: rules with their targets, topics with their subscriptions, queues with where they
/// redrive to, and what functions are fed from, one after the other.
pub(crate) fn graph(region: &'static str, now: Now) -> Value {
    let mut steps: Vec<(Thing, &str, Thing)> = Vec::new();
    let mut follow = |service: &str, flow: &[Step]| {
        let end = |(kind, word): (Kind, &str)| Thing::new(kind, region, format!("{service}-{word}"), now);
        steps.extend(flow.iter().map(|Step(from, how, to)| (end(*from), *how, end(*to))));
    };
    let at = REGIONS.iter().position(|known| *known == region).unwrap_or_default();
    FLOWS[at].iter().for_each(|service| follow(service, FLOW));
    if at == 0 {
        follow(STACK, STACK_FLOW);
        if now.pass == Pass::Drifted {
            follow(STACK, ADDED_TARGET);
        }
    }
    let of = |how: &str| steps.iter().filter(|(_, it, _)| *it == how).cloned().collect::<Vec<_>>();
    let nothing = || Value::Object(BTreeMap::new());
    let mut graph = Graph { region, nodes: vec![], types: BTreeMap::new(), edges: vec![], ends: vec![] };
    for (rule, how, target) in of("targets") {
        let state = object! { state: "ENABLED", scheduleExpression: Value::Null, hasEventPattern: true };
        let (rule, is_queue) = (graph.node(&rule, state), target.kind == QUEUE);
        let target = graph.node(&target, nothing());
        let name = if is_queue { "sqs-target" } else { "lambda-target" };
        let attributes = object! { targetId: name, retryAttempts: Value::Null, maxEventAge: Value::Null };
        graph.edge(&rule, &target, how, attributes);
    }
    for topic in things_in(TOPIC, region, now) {
        let id = graph.node(&topic, nothing());
        for (_, how, queue) in of("subscription").iter().filter(|(from, ..)| from.name == topic.name) {
            let queue = graph.node(queue, nothing());
            graph.edge(&id, &queue, how, object! { protocol: "sqs", isInternal: true });
        }
        if topic.name.contains("alarms") {
            let mail = "external:email:oncall@example.com";
            graph.add(mail, "ExternalEndpoint", "oncall@example.com", true, object! { protocol: "email" });
            graph.edge(&id, mail, "subscription", object! { protocol: "email", isInternal: false });
        }
    }
    let mut queues = things_in(QUEUE, region, now);
    // A dead-letter queue that is listed before what redrives to it has a count, and one that comes after has none.
    if now.pass == Pass::Unchanged {
        queues.reverse();
    }
    for queue in queues {
        let waiting = queue.dice("messages").below(200) + queue.moving("messages").below(20);
        let id = graph.node(&queue, object! { approximateMessageCount: waiting });
        for (_, how, dead) in of("redrive").iter().filter(|(from, ..)| from.name == queue.name) {
            let dead = graph.node(dead, nothing());
            graph.edge(&id, &dead, how, object! { maxReceiveCount: 5_u64 });
        }
    }
    for (queue, how, function) in of("eventSource") {
        let uuid = Thing { kind: KEY, ..function.clone() }.short_id();
        let (from, to) = (queue.id(), graph.node(&function, nothing()));
        let attributes = object! { uuid: uuid, state: "Enabled", batchSize: 10_u64, bisectOnError: Value::Null };
        graph.edge(&from, &to, how, attributes);
    }
    let stats = graph.stats();
    object! {
        fetchedAt: fetched(now), accountId: ACCOUNT, region: region, nodes: graph.nodes, edges: graph.edges,
        stats: stats, truncated: false,
    }
}
