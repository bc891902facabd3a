//! `topology`: how the graph of things that lead to others changed.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use driftline_core::graph::{Degrees, Edge, EdgeId, Fate, GraphDiff, Link, Node, Reading, Shape};
use driftline_core::{Coverage, Pass, ResourceKey, StreamId, Value};
use driftline_sources::aws::{self, Whereabouts};
use driftline_sources::place::account_and_region;
use driftline_store::Store;
use driftline_store::detect::Pair;
use jiff::Timestamp;
use serde::Serialize;

use crate::args::TopologyArgs;
use crate::draw::{Bounds, IN_A_REPORT, MERMAID, PICTURE, Picture};
use crate::drift::{ask, parse_sources};
use crate::error::{CommandError, CommandResult};
use crate::output::{BOLD, CYAN, DIM, Format, GREEN, Page, RED, Show, YELLOW, columns, count, markdown_cell, visible};
use crate::report::{Expected, JsonChange, change_line, json_change};
use crate::settings::Settings;

/// The type of resources that are edges.
const EDGE: &str = "Driftline::Topology::Edge";

/// How many of each a table or Markdown lists.
const LISTED: usize = 50;

/// The network: which property of what names what.
pub(crate) const NETWORK: &[Link] = &[
    link("AWS::EC2::Subnet", "/vpcId", "in", "AWS::EC2::VPC"),
    link("AWS::EC2::InternetGateway", "/attachedVpcIds/*", "attached", "AWS::EC2::VPC"),
    link("AWS::EC2::RouteTable", "/vpcId", "in", "AWS::EC2::VPC"),
    link("AWS::EC2::RouteTable", "/associatedSubnets/*", "routes", "AWS::EC2::Subnet"),
    link("AWS::EC2::SecurityGroup", "/vpcId", "in", "AWS::EC2::VPC"),
    link("AWS::EC2::Volume", "/attachments/*/instanceId", "attached", "AWS::EC2::Instance"),
    link("AWS::RDS::DBInstance", "/clusterIdentifier", "member", "AWS::RDS::DBCluster"),
    link("AWS::RDS::DBInstance", "/dbSubnetGroup", "in", "AWS::RDS::DBSubnetGroup"),
    link("AWS::RDS::DBCluster", "/vpcSecurityGroups/*", "guarded by", "AWS::EC2::SecurityGroup"),
    link("AWS::Lambda::Function", "/vpcConfig/subnetIds/*", "in", "AWS::EC2::Subnet"),
    link("AWS::Lambda::Function", "/vpcConfig/securityGroupIds/*", "guarded by", "AWS::EC2::SecurityGroup"),
    // What it names may be a queue or a topic; only its ARN says which.
    link("AWS::Lambda::Function", "/deadLetterConfig/targetArn", "dead letters", ""),
];

const fn link(kind: &'static str, path: &'static str, edge: &'static str, target: &'static str) -> Link {
    Link { kind, path, edge, target }
}

pub(crate) fn run(settings: &Settings, args: &TopologyArgs) -> CommandResult<()> {
    let store = settings.open_store()?;
    let sources = parse_sources(&args.points.source)?;
    let (question, expected) = ask(settings, &store, args.points.points(), &sources)?;
    let links = if args.network { NETWORK } else { &[] };
    let Some(diff) = graph(settings, &store, &question.pairs, links)? else {
        let error = CommandError::new("no source that was asked for has edges");
        return Err(match args.network {
            true => error.hint("edges are resources of the type Driftline::Topology::Edge, or links such as `vpcId`"),
            false => error.hint("edges are resources of the type Driftline::Topology::Edge; --network makes edges of links such as `vpcId`"),
        });
    };
    let topology = Topology { now: settings.now, expected, diff, all: args.all };
    settings.printer.print(&topology)
}

/// How many resources a graph is made from: those of sources with edges, and those that links go from or to.
#[cfg(feature = "web")]
pub(crate) fn size(store: &Store, pairs: &[Pair], links: &[Link]) -> CommandResult<u64> {
    let mut size = 0;
    for pair in pairs {
        let types = store.catalog().stream(&pair.stream)?.types(pair.live);
        let has_edges = types.contains_key(EDGE);
        let counted = types.iter().filter(|(kind, _)| has_edges || is_linked(kind, links));
        size += counted.map(|(_, count)| count.rows).sum::<u64>();
    }
    Ok(size)
}

/// The graphs of all streams at two points in time, and what lies between them; nothing if none has edges.
pub(crate) fn graph(
    settings: &Settings,
    store: &Store,
    pairs: &[Pair],
    links: &[Link],
) -> CommandResult<Option<GraphDiff>> {
    let mut streams = Vec::new();
    for pair in pairs {
        streams.extend(load(store, pair, links)?);
    }
    if streams.is_empty() {
        return Ok(None);
    }
    let named = names(&streams, links);
    let mut diff = GraphDiff::default();
    for stream in &streams {
        let is_node = |key: &ResourceKey| stream.has_edges || is_linked(&key.kind, links);
        let resolve = |owner: &ResourceKey, link: &Link, text: &str| resolve(&named, owner, link, text);
        let reading = Reading { edge_kind: EDGE, is_node: &is_node, links, resolve: &resolve };
        let (before, after) = (stream.before.pass(), stream.after.pass());
        diff.add(stream.id.source.as_str(), before, after, &reading, &settings.rules.book);
    }
    diff.add_missing_ends();
    Ok(Some(diff))
}

/// One stream at the two points in time.
struct Loaded {
    id: StreamId,
    has_edges: bool,
    before: Known,
    after: Known,
}

struct Known {
    resources: BTreeMap<ResourceKey, Value>,
    unseen: BTreeSet<ResourceKey>,
    coverage: Coverage,
}

impl Known {
    fn pass(&self) -> Pass<'_> {
        Pass { resources: &self.resources, unseen: &self.unseen, coverage: &self.coverage }
    }
}

/// `None` for a stream that has no part in the graph; nothing of it is read.
fn load(store: &Store, pair: &Pair, links: &[Link]) -> CommandResult<Option<Loaded>> {
    let stream = store.catalog().stream(&pair.stream)?;
    let versions = [pair.expected, Some(pair.live)].into_iter().flatten();
    let kinds: BTreeSet<String> = versions.flat_map(|number| stream.types(number).into_keys()).collect();
    let has_edges = kinds.contains(EDGE);
    if !has_edges && !kinds.iter().any(|kind| is_linked(kind, links)) {
        return Ok(None);
    }
    let known = |number: u64| -> CommandResult<Known> {
        let version = store.catalog().version(&pair.stream, number)?;
        let resources = store.resources(&pair.stream, number, |key| has_edges || is_linked(&key.kind, links))?;
        let unseen = if version.unseen > 0 { store.unseen_keys(&pair.stream, number)? } else { BTreeSet::new() };
        Ok(Known { resources, unseen, coverage: store.coverage(&version.coverage)? })
    };
    let after = known(pair.live)?;
    let before = match pair.expected {
        Some(number) => known(number)?,
        // Nobody looked then. That is the reason for everything, and not that the listing was made in another way.
        None => Known {
            resources: BTreeMap::new(),
            unseen: BTreeSet::new(),
            coverage: Coverage::new().on_basis(after.coverage.basis().map(str::to_owned)),
        },
    };
    Ok(Some(Loaded { id: pair.stream.clone(), has_edges, before, after }))
}

fn is_linked(kind: &str, links: &[Link]) -> bool {
    links.iter().any(|link| link.kind == kind || link.target == kind)
}

/// Ids by type, place and the name within the type.
type Names = BTreeMap<(String, String, String), String>;

fn names(streams: &[Loaded], links: &[Link]) -> Names {
    let known = streams.iter().flat_map(|stream| stream.before.resources.keys().chain(stream.after.resources.keys()));
    known
        .filter(|key| links.iter().any(|link| link.target == key.kind))
        .map(|key| {
            let name = aws::local_id(&key.kind, &key.id).to_owned();
            ((key.kind.clone(), key.place.to_string(), name), key.id.clone())
        })
        .collect()
}

/// The id of what a link names: as it is known, or else as it would be.
fn resolve(named: &Names, owner: &ResourceKey, link: &Link, text: &str) -> String {
    if aws::is_arn(text) {
        return text.to_owned();
    }
    let name = (link.target.to_owned(), owner.place.to_string(), text.to_owned());
    if let Some(id) = named.get(&name) {
        return id.clone();
    }
    let (account, region) = account_and_region(owner.place.as_str());
    let partition = if aws::is_arn(&owner.id) { owner.id.split(':').nth(1).unwrap_or("aws") } else { "aws" };
    aws::resource_key(link.target, text, Whereabouts { partition, account, region }).id
}

struct Topology {
    now: Timestamp,
    expected: Expected,
    diff: GraphDiff,
    all: bool,
}

#[derive(Serialize)]
struct Sides {
    before: u64,
    after: u64,
}

impl From<[u64; 2]> for Sides {
    fn from([before, after]: [u64; 2]) -> Self {
        Self { before, after }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct JsonNode<'a> {
    id: &'a str,
    #[serde(rename = "type")]
    kind: Option<&'a str>,
    /// `degree` where only its edges are other ones.
    change: &'static str,
    in_degree: Sides,
    out_degree: Sides,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    changes: Vec<JsonChange<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
}

#[derive(Serialize)]
struct JsonEdge<'a> {
    from: &'a str,
    to: &'a str,
    #[serde(rename = "type")]
    kind: &'a str,
    change: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    attributes: Option<&'a Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    changes: Vec<JsonChange<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
}

#[derive(Default, Serialize)]
struct NotChecked<'a> {
    nodes: usize,
    edges: usize,
    reasons: Vec<NotCheckedFor<'a>>,
}

#[derive(Serialize)]
struct NotCheckedFor<'a> {
    reason: &'a str,
    nodes: usize,
    edges: usize,
}

fn changes(fate: &Fate) -> Vec<JsonChange<'_>> {
    if let Fate::Changed(changes) = fate { changes.iter().map(json_change).collect() } else { Vec::new() }
}

fn reason(fate: &Fate) -> Option<&str> {
    if let Fate::NotChecked(reason) = fate { Some(reason) } else { None }
}

fn json_edge<'a>(id: &'a EdgeId, edge: &'a Edge) -> JsonEdge<'a> {
    JsonEdge {
        from: &id.from,
        to: &id.to,
        kind: &id.kind,
        change: edge.fate.name(),
        attributes: edge.attributes.as_ref(),
        changes: changes(&edge.fate),
        reason: reason(&edge.fate),
    }
}

/// Added, removed, changed: how many.
fn tally<'a>(fates: impl Iterator<Item = &'a Fate>) -> String {
    let mut counts = [0_usize; 3];
    for fate in fates {
        match fate {
            Fate::Added => counts[0] += 1,
            Fate::Removed => counts[1] += 1,
            Fate::Changed(_) => counts[2] += 1,
            Fate::Same | Fate::NotChecked(_) => {}
        }
    }
    format!("{} added, {} removed, {} changed", counts[0], counts[1], counts[2])
}

fn degree_words(degrees: &Degrees) -> String {
    let word = |name: &str, [before, after]: [u64; 2]| (before != after).then(|| format!("{name} {before} -> {after}"));
    let words = [word("inDegree", degrees.incoming), word("outDegree", degrees.outgoing)];
    words.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

impl Topology {
    /// Nodes that were there before and still are, and have other degrees now.
    fn degree_changes(&self) -> Vec<(&str, Degrees)> {
        let stays =
            |id: &str| !matches!(self.diff.nodes.get(id).map(|node| &node.fate), Some(Fate::Added | Fate::Removed));
        self.diff.degrees().into_iter().filter(|(id, degrees)| degrees.differ() && stays(id)).collect()
    }

    fn kind(&self, id: &str) -> &str {
        self.diff.nodes.get(id).and_then(|node| node.kind.as_deref()).unwrap_or("not observed")
    }

    fn shows(&self, fate: &Fate) -> bool {
        self.all || fate.is_change()
    }

    fn nodes(&self) -> impl Iterator<Item = (&String, &Node)> {
        self.diff.nodes.iter().filter(|(_, node)| self.shows(&node.fate))
    }

    fn edges(&self) -> impl Iterator<Item = (&EdgeId, &Edge)> {
        self.diff.edges.iter().filter(|(_, edge)| self.shows(&edge.fate))
    }

    fn json_nodes(&self) -> Vec<JsonNode<'_>> {
        let degrees = self.diff.degrees();
        let wanted = |(id, node): &(&String, &Node)| self.shows(&node.fate) || degrees[id.as_str()].differ();
        let told = |(id, node): (&'_ String, &'_ Node)| -> (&'static str, Degrees) {
            let degrees = degrees[id.as_str()];
            let change = if node.fate == Fate::Same && degrees.differ() { "degree" } else { node.fate.name() };
            (change, degrees)
        };
        self.diff
            .nodes
            .iter()
            .filter(wanted)
            .map(|(id, node)| {
                let (change, degrees) = told((id, node));
                JsonNode {
                    id,
                    kind: node.kind.as_deref(),
                    change,
                    in_degree: degrees.incoming.into(),
                    out_degree: degrees.outgoing.into(),
                    changes: changes(&node.fate),
                    reason: reason(&node.fate),
                }
            })
            .collect()
    }

    fn not_checked(&self) -> NotChecked<'_> {
        let mut reasons: BTreeMap<&str, [usize; 2]> = BTreeMap::new();
        for reason in self.diff.nodes.values().filter_map(|node| reason(&node.fate)) {
            reasons.entry(reason).or_default()[0] += 1;
        }
        for reason in self.diff.edges.values().filter_map(|edge| reason(&edge.fate)) {
            reasons.entry(reason).or_default()[1] += 1;
        }
        let mut all = NotChecked::default();
        for (reason, [nodes, edges]) in reasons {
            all.nodes += nodes;
            all.edges += edges;
            all.reasons.push(NotCheckedFor { reason, nodes, edges });
        }
        all
    }

    fn title(&self) -> String {
        format!("Topology {}", self.expected.heading(self.now))
    }

    fn picture(&self, bounds: Bounds) -> Picture {
        Picture::new(&self.diff, &format!("Topology {}", self.expected.exact_heading()), self.all, bounds)
    }

    fn totals(&self) -> Vec<Vec<String>> {
        let [before, after] = self.diff.shapes();
        let row =
            |name: &str, of: fn(&Shape) -> u64| vec![name.to_owned(), of(&before).to_string(), of(&after).to_string()];
        vec![
            vec![String::new(), "before".into(), "after".into()],
            row("nodes", |shape| shape.nodes as u64),
            row("edges", |shape| shape.edges as u64),
            row("connected components", |shape| shape.connected_components as u64),
            row("isolated nodes", |shape| shape.isolated_nodes as u64),
            row("largest in-degree", |shape| shape.max_in_degree),
            row("largest out-degree", |shape| shape.max_out_degree),
        ]
    }

    fn result_line(&self) -> String {
        let [nodes, edges] = [
            tally(self.diff.nodes.values().map(|node| &node.fate)),
            tally(self.diff.edges.values().map(|edge| &edge.fate)),
        ];
        let not_checked = self.not_checked();
        format!(
            "result: edges {edges}; nodes {nodes}; not checked {} and {}",
            count(not_checked.edges, "edge"),
            count(not_checked.nodes, "node")
        )
    }
}

fn sign(page: &Page<'_>, fate: &Fate) -> String {
    match fate {
        Fate::Same => " ".into(),
        Fate::Added => page.paint(GREEN, "+"),
        Fate::Removed => page.paint(RED, "-"),
        Fate::Changed(_) => page.paint(YELLOW, "~"),
        Fate::NotChecked(_) => page.paint(CYAN, "?"),
    }
}

fn plain_sign(fate: &Fate) -> &'static str {
    match fate {
        Fate::Same => "",
        Fate::Added => "+",
        Fate::Removed => "-",
        Fate::Changed(_) => "~",
        Fate::NotChecked(_) => "?",
    }
}

fn change_lines(page: &mut Page<'_>, fate: &Fate) -> io::Result<()> {
    if let Fate::Changed(changes) = fate {
        for change in changes {
            writeln!(page, "      {}", visible(&change_line(change)))?;
        }
    }
    Ok(())
}

/// What a list leaves out, if it does.
fn rest(page: &mut Page<'_>, total: usize) -> io::Result<()> {
    match total.checked_sub(LISTED) {
        None | Some(0) => Ok(()),
        Some(more) => writeln!(page, "  … and {more} more; -o json lists all"),
    }
}

impl Show for Topology {
    fn table(&self, page: &mut Page<'_>) -> io::Result<()> {
        writeln!(page, "{}", page.paint(BOLD, &self.title()))?;
        let degrees = self.degree_changes();
        if !degrees.is_empty() {
            writeln!(page, "\n{} {}", page.paint(BOLD, "DEGREES"), degrees.len())?;
            for (id, degrees) in degrees.iter().take(LISTED) {
                let kind = page.paint(DIM, self.kind(id));
                writeln!(
                    page,
                    "  {} {}  {kind}\n      {}",
                    page.paint(YELLOW, "~"),
                    visible(id),
                    degree_words(degrees)
                )?;
            }
            rest(page, degrees.len())?;
        }
        let edges: Vec<_> = self.edges().collect();
        if !edges.is_empty() {
            let tally = tally(self.diff.edges.values().map(|edge| &edge.fate));
            writeln!(page, "\n{} {tally}", page.paint(BOLD, "EDGES"))?;
            for (id, edge) in edges.iter().take(LISTED) {
                let kind = page.paint(DIM, &id.kind);
                let ends = format!("{} -> {}", id.from, id.to);
                writeln!(page, "  {} {}  {kind}", sign(page, &edge.fate), visible(&ends))?;
                change_lines(page, &edge.fate)?;
            }
            rest(page, edges.len())?;
        }
        let nodes: Vec<_> = self.nodes().collect();
        if !nodes.is_empty() {
            let tally = tally(self.diff.nodes.values().map(|node| &node.fate));
            writeln!(page, "\n{} {tally}", page.paint(BOLD, "NODES"))?;
            for (id, node) in nodes.iter().take(LISTED) {
                writeln!(page, "  {} {}  {}", sign(page, &node.fate), visible(id), page.paint(DIM, self.kind(id)))?;
                change_lines(page, &node.fate)?;
            }
            rest(page, nodes.len())?;
        }
        writeln!(page)?;
        for line in columns(&self.totals(), 0) {
            writeln!(page, "{line}")?;
        }
        let not_checked = self.not_checked();
        if !not_checked.reasons.is_empty() {
            writeln!(page, "\n{}  one of the two sides did not look", page.paint(YELLOW, "NOT CHECKED"))?;
            for one in &not_checked.reasons {
                let counts = format!("{}, {}", count(one.edges, "edge"), count(one.nodes, "node"));
                writeln!(page, "  {counts}  {}", visible(one.reason))?;
            }
        }
        writeln!(page, "\n{}", self.result_line())
    }

    fn json(&self, out: &mut dyn Write) -> io::Result<()> {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct All<'a> {
            schema: &'a str,
            computed_at: Timestamp,
            compared: String,
            before: Shape,
            after: Shape,
            nodes: Vec<JsonNode<'a>>,
            edges: Vec<JsonEdge<'a>>,
            not_checked: NotChecked<'a>,
        }
        let [before, after] = self.diff.shapes();
        let all = All {
            schema: "driftline.topology/v1",
            computed_at: self.now,
            compared: self.expected.exact_heading(),
            before,
            after,
            nodes: self.json_nodes(),
            edges: self.edges().map(|(id, edge)| json_edge(id, edge)).collect(),
            not_checked: self.not_checked(),
        };
        Ok(serde_json::to_writer_pretty(out, &all)?)
    }

    fn ndjson(&self, out: &mut dyn Write) -> io::Result<()> {
        #[derive(Serialize)]
        struct Line<'a, T> {
            what: &'a str,
            #[serde(flatten)]
            one: T,
        }
        for one in self.json_nodes() {
            serde_json::to_writer(&mut *out, &Line { what: "node", one })?;
            writeln!(out)?;
        }
        for (id, edge) in self.edges() {
            serde_json::to_writer(&mut *out, &Line { what: "edge", one: json_edge(id, edge) })?;
            writeln!(out)?;
        }
        Ok(())
    }

    fn markdown(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "### {}\n", markdown_cell(&self.title()))?;
        let degrees = self.degree_changes();
        let (edges, nodes): (Vec<_>, Vec<_>) = (self.edges().collect(), self.nodes().collect());
        if !degrees.is_empty() || !edges.is_empty() || !nodes.is_empty() {
            writeln!(out, "| | what | type | change |\n|---|---|---|---|")?;
        }
        for (id, degrees) in degrees.iter().take(LISTED) {
            let (id, kind) = (markdown_cell(id), markdown_cell(self.kind(id)));
            writeln!(out, "| degree | {id} | {kind} | {} |", markdown_cell(&degree_words(degrees)))?;
        }
        let told = |fate: &Fate| match fate {
            Fate::Changed(changes) => {
                changes.iter().map(|change| markdown_cell(&change_line(change))).collect::<Vec<_>>().join("<br>")
            }
            fate => fate.name().replace('_', " "),
        };
        for (id, edge) in edges.iter().take(LISTED) {
            let ends = markdown_cell(&format!("{} -> {}", id.from, id.to));
            let sign = markdown_cell(plain_sign(&edge.fate));
            writeln!(out, "| {sign} edge | {ends} | {} | {} |", markdown_cell(&id.kind), told(&edge.fate))?;
        }
        for (id, node) in nodes.iter().take(LISTED) {
            let (id, kind) = (markdown_cell(id), markdown_cell(self.kind(id)));
            writeln!(out, "| {} node | {id} | {kind} | {} |", markdown_cell(plain_sign(&node.fate)), told(&node.fate))?;
        }
        let more = [degrees.len(), edges.len(), nodes.len()].map(|total| total.saturating_sub(LISTED));
        if more.iter().sum::<usize>() > 0 {
            let [degrees, edges, nodes] = more;
            writeln!(out, "\nNot listed: {degrees} more degrees, {edges} more edges, {nodes} more nodes.")?;
        }
        writeln!(out, "\n```mermaid\n{}```\n", self.picture(IN_A_REPORT).mermaid())?;
        for (at, row) in self.totals().iter().enumerate() {
            writeln!(out, "| {} |", row.join(" | "))?;
            if at == 0 {
                writeln!(out, "|---|---|---|")?;
            }
        }
        for one in &self.not_checked().reasons {
            let counts = format!("{}, {}", count(one.edges, "edge"), count(one.nodes, "node"));
            writeln!(out, "\nNot checked: {counts}: {}", markdown_cell(one.reason))?;
        }
        writeln!(out, "\n{}", self.result_line())
    }

    fn draw(&self, format: Format) -> Option<String> {
        match format {
            Format::Mermaid => Some(self.picture(MERMAID).mermaid()),
            Format::Dot => Some(self.picture(PICTURE).dot()),
            Format::Svg => Some(self.picture(PICTURE).svg()),
            _ => None,
        }
    }
}
