//! The graph of things that lead to others, and compliance by rule, for the page.

use driftline_core::graph::GraphDiff;
use driftline_core::posture::Turn;
use driftline_web::model::{Edge, Neighbour, Node, Posture, PostureMoment, PostureRule, Topology, Violation};
use driftline_web::{Answers, Refusal, RefusalKind};
use jiff::Timestamp;

use super::answering::{Answering, Open};
use super::telling::{failed, refused};
use crate::draw::{Bounds, Picture};
use crate::error::CommandError;
use crate::posture::{COURSE, compute};
use crate::report::Expected;
use crate::topology::{self, NETWORK};

/// From how many resources a graph is made; of more nobody sees anything, and reading them takes too long.
const RESOURCES: u64 = 100_000;
const IN_PAGE: Bounds = Bounds { nodes: 80, edges: 150 };
const NODES: usize = 5_000;
const EDGES: usize = 10_000;
const MOMENTS: usize = 200;
const VIOLATIONS: usize = 5_000;
/// How many points the course of compliance has at most.
const POINTS: usize = 60;
/// An id that is longer does not fit into an address.
const LONGEST: usize = 1_500;

/// What is compared unless somebody says otherwise: the baseline, and now.
fn usual(answering: &Answering, open: &Open) -> Result<String, Refusal> {
    let name = answering.name(&open.settings)?;
    match open.store.catalog().baseline(&name) {
        Ok(_) => Ok(format!("baseline:{name}")),
        Err(error) => Err(refused(RefusalKind::NotYet, error)),
    }
}

fn not_yet(message: &str, hint: &str) -> Refusal {
    refused(RefusalKind::NotYet, CommandError::new(message).hint(hint))
}

pub(super) fn topology(
    answering: &Answering,
    open: &Open,
    from: Option<&str>,
    to: Option<&str>,
) -> Result<Topology, Refusal> {
    let usual = from.map_or_else(|| usual(answering, open), |from| Ok(from.to_owned()))?;
    let (question, expected) = answering.points(open, &usual, to.unwrap_or("now"))?;
    let Open { settings, store, .. } = open;
    let size = topology::size(store, &question.pairs, NETWORK).map_err(failed)?;
    if size > RESOURCES {
        return Err(not_yet(
            &format!("the graph is made from {size} resources, which is too much for a page"),
            "`driftline topology --network --source NAME -o svg` draws a part of it",
        ));
    }
    let graph = topology::graph(settings, store, &question.pairs, NETWORK).map_err(failed)?;
    let Some(diff) = graph else {
        return Err(not_yet(
            "no source has edges",
            "edges are resources of the type Driftline::Topology::Edge, or links such as `vpcId`",
        ));
    };
    let title = format!("Topology {}", expected.exact_heading());
    let picture = Picture::new(&diff, &title, false, IN_PAGE);
    // Where nothing changed everything there is room for is shown.
    let changed =
        diff.nodes.values().any(|node| node.fate.is_change()) || diff.edges.values().any(|edge| edge.fate.is_change());
    let picture = if changed { picture } else { Picture::new(&diff, &title, true, IN_PAGE) };
    let mut moments: Vec<Timestamp> = store
        .catalog()
        .streams()
        .flat_map(|(_, stream)| stream.versions().rev().take(MOMENTS).map(|version| version.taken_at))
        .collect();
    moments.sort_unstable();
    moments.dedup();
    let moments = moments.split_off(moments.len().saturating_sub(MOMENTS));
    Ok(told(&diff, moments, &picture, usual, to.unwrap_or("now").to_owned()))
}

fn told(diff: &GraphDiff, moments: Vec<Timestamp>, picture: &Picture, from: String, to: String) -> Topology {
    let degrees = diff.degrees();
    let mut nodes: Vec<_> = diff.nodes.iter().collect();
    nodes.sort_by_key(|(_, node)| !node.fate.is_change());
    let mut edges: Vec<_> = diff.edges.iter().collect();
    edges.sort_by_key(|(_, edge)| !edge.fate.is_change());
    let left_out = nodes.len().saturating_sub(NODES) + edges.len().saturating_sub(EDGES);
    let address = |id: &str| (id.len() <= LONGEST).then(|| format!("/resource?id={}", encoded(id)));
    let node = |(id, node): (&String, &driftline_core::graph::Node)| {
        let [into, out] = degrees.get(id.as_str()).map_or([0, 0], |degrees| [degrees.incoming[1], degrees.outgoing[1]]);
        Node {
            canonical_id: id.clone(),
            resource_type: node.kind.clone().unwrap_or_else(|| "not observed".into()),
            state: node.fate.name(),
            in_degree: into,
            out_degree: out,
        }
    };
    Topology {
        from,
        to,
        nodes: nodes.into_iter().take(NODES).map(node).collect(),
        edges: edges
            .into_iter()
            .take(EDGES)
            .map(|(id, edge)| Edge {
                from: id.from.clone(),
                to: id.to.clone(),
                relation: id.kind.clone(),
                state: edge.fate.name(),
            })
            .collect(),
        moments,
        left_out: left_out as u64,
        svg: Some(picture.svg_in_page(address)),
        note: picture.note(),
    }
}

fn encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => out.push(char::from(byte)),
            byte => out += &format!("%{byte:02X}"),
        }
    }
    out
}

/// What a resource leads to, and what leads to it.
pub(super) fn neighbours(answering: &Answering, id: &str) -> Result<(Vec<Neighbour>, Option<String>), Refusal> {
    let graph = answering.topology(None, None)?;
    let note =
        (graph.left_out > 0).then(|| "the graph is larger than what is kept of it; there may be more".to_owned());
    let kind = |id: &str| {
        let found = graph.nodes.iter().find(|node| node.canonical_id == id)?;
        Some(found.resource_type.clone()).filter(|kind| kind != "not observed")
    };
    let beside = graph.edges.iter().filter(|edge| edge.from == id || edge.to == id);
    let told = beside
        .map(|edge| {
            let (direction, other) = if edge.from == id { ("to", &edge.to) } else { ("from", &edge.from) };
            Neighbour {
                canonical_id: other.clone(),
                resource_type: kind(other),
                direction,
                relation: edge.relation.clone(),
                state: edge.state,
            }
        })
        .collect();
    Ok((told, note))
}

pub(super) fn posture(answering: &Answering, open: &Open) -> Result<Posture, Refusal> {
    let usual = usual(answering, open)?;
    let (question, expected) = answering.points(open, &usual, "now")?;
    let Open { settings, store, .. } = open;
    let from = settings.now.checked_sub(COURSE).unwrap_or(Timestamp::MIN);
    let against = match &expected {
        Expected::Baseline { name, .. } => format!("baseline {name}"),
        Expected::Versions { text } => text.clone(),
    };
    let answer =
        compute(settings, store, &question.pairs, expected, &|_| true, [from, settings.now]).map_err(failed)?;
    let Some(answer) = answer else {
        return Err(not_yet(
            "no source has evaluated resources",
            "`driftline observe config` asks AWS Config; any resource with an object `rules` of texts such as \
             NON_COMPLIANT will do",
        ));
    };
    let rules = answer.posture.rules.iter().map(|(rule, tally)| PostureRule {
        rule: rule.clone(),
        compliant: tally.now.compliant,
        non_compliant: tally.now.non_compliant,
        newly_non_compliant: tally.newly_non_compliant,
        resolved: tally.newly_fixed,
        not_checked: tally.not_checked,
    });
    let mut violations: Vec<_> = answer.posture.violations.iter().collect();
    violations.sort_by_key(|(_, (turn, _))| match turn {
        Turn::New => 0,
        Turn::Still => 1,
        Turn::NotChecked => 2,
        Turn::Fixed => 3,
    });
    let left_out = violations.len().saturating_sub(VIOLATIONS);
    let violation = |(violation, (turn, _)): (&driftline_core::posture::Violation, &(Turn, Option<String>))| {
        let turn = match turn {
            Turn::New => "new",
            Turn::Still => "lasting",
            Turn::Fixed => "resolved",
            Turn::NotChecked => "not_checked",
        };
        Violation {
            rule: violation.rule.clone(),
            canonical_id: violation.key.id.clone(),
            source: violation.stream.to_string(),
            turn: turn.to_owned(),
            since: answer.since.get(violation).copied(),
        }
    };
    let skipped = answer.course.len().div_ceil(POINTS).max(1);
    let mut course: Vec<PostureMoment> = answer
        .course
        .iter()
        .rev()
        .step_by(skipped)
        .map(|moment| PostureMoment { at: moment.at, non_compliant: moment.total as u64 })
        .collect();
    course.reverse();
    Ok(Posture {
        against,
        rules: rules.collect(),
        violations: violations.into_iter().take(VIOLATIONS).map(violation).collect(),
        left_out: left_out as u64,
        course,
    })
}
