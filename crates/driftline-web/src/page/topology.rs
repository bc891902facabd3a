//! *Topology*: what leads where, and what became of it between two points in time.

use jiff::Timestamp;
use maud::{Markup, PreEscaped, html};

use super::frame::document;
use super::words::{breakable, count, more, number, resource_link, shown, shown_long, stamp, table};
use crate::context::{Asked, Context};
use crate::model::{Edge, Node, Topology};

/// How many rows each table has.
const ROWS: usize = 40;
/// How many moments are offered.
const MOMENTS: usize = 100;

const NODE_HEADS: [&str; 5] = ["state", "node", "type", "#in-degree", "#out-degree"];

pub(super) fn topology(context: &Context<'_>, topology: &Topology, asked: &Asked) -> String {
    let headline = headline(topology);
    document(
        context,
        &headline,
        &html! {
            h1 { (headline) }
            p.lead { "From " strong { (shown(&topology.from)) } " to " strong { (shown(&topology.to)) } ": "
                (count(topology.nodes.len(), "node")) ", " (count(topology.edges.len(), "edge"))
                @if topology.left_out > 0 { ", and " (number(topology.left_out)) " more that are not listed" }
                "." }
            (points(topology, asked))
            @if let Some(svg) = &topology.svg {
                // Drawn by the program, which has escaped every name in it; it has no style and no script.
                div.topology role="region" aria-label="The graph" tabindex="0" { (PreEscaped(svg)) }
            }
            @if let Some(note) = &topology.note { p.why { (shown_long(note)) } }
            section aria-labelledby="edges" { h2 #edges { "Edges" } (edges(&topology.edges)) }
            section aria-labelledby="nodes" { h2 #nodes { "Nodes" } (nodes(&topology.nodes)) }
        },
    )
}

fn headline(topology: &Topology) -> String {
    let of = |state: &str| {
        let nodes = topology.nodes.iter().filter(|node| node.state == state).count();
        let edges = topology.edges.iter().filter(|edge| edge.state == state).count();
        match (nodes, edges) {
            (0, 0) => None,
            (nodes, 0) => Some(format!("{} {state}", count(nodes, "node"))),
            (0, edges) => Some(format!("{} {state}", count(edges, "edge"))),
            (nodes, edges) => Some(format!("{} and {} {state}", count(nodes, "node"), count(edges, "edge"))),
        }
    };
    let told: Vec<String> = ["added", "removed", "changed"].into_iter().filter_map(of).collect();
    let unchecked = topology.nodes.iter().map(|node| node.state).chain(topology.edges.iter().map(|edge| edge.state));
    let unchecked = unchecked.filter(|state| !is_known(state)).count();
    let rest = if unchecked > 0 { format!("; {} not checked", number(unchecked)) } else { String::new() };
    match (topology.nodes.is_empty() && topology.edges.is_empty(), told.is_empty()) {
        (true, _) => "No source knows what leads where".to_owned(),
        (false, true) => format!("Nothing changed in the graph{rest}"),
        (false, false) => format!("{}{rest}", told.join("; ")),
    }
}

fn is_known(state: &str) -> bool {
    matches!(state, "added" | "removed" | "changed" | "same")
}

/// Two points in time: two selects and a button, which the script joins to a slider.
fn points(topology: &Topology, asked: &Asked) -> Markup {
    let offered = &topology.moments[topology.moments.len().saturating_sub(MOMENTS)..];
    html! {
        form.points method="get" action="/topology" aria-label="Two points in time" {
            (point("from", "From", "the baseline", asked.from.as_deref(), offered))
            (point("to", "To", "now", asked.to.as_deref(), offered))
            label.slider for="slider" hidden {
                "Until" input #slider type="range" min="0" value="0"; output for="slider" {}
            }
            button type="submit" { "Show" }
        }
    }
}

fn point(name: &str, label: &str, usual: &str, asked: Option<&str>, moments: &[Timestamp]) -> Markup {
    let is_offered = asked.is_none_or(|asked| moments.iter().any(|at| at.to_string() == asked));
    html! {
        div {
            label for=(name) { (label) }
            select id=(name) name=(name) {
                @for at in moments.iter() {
                    @let value = at.to_string();
                    option value=(value) selected[asked == Some(value.as_str())] { (stamp(*at)) }
                }
                @if let Some(asked) = asked.filter(|_| !is_offered) { option value=(asked) selected { (shown(asked)) } }
                option value="" selected[asked.is_none()] { (usual) }
            }
        }
    }
}

/// What changed first, then what was not checked, then the rest.
fn rank(state: &str) -> u8 {
    match state {
        "added" | "removed" | "changed" => 0,
        "same" => 2,
        _ => 1,
    }
}

fn state(state: &'static str) -> Markup {
    let (sign, word) = match state {
        "added" => ("+", "added"),
        "removed" => ("−", "removed"),
        "changed" => ("~", "changed"),
        "same" => ("", "same"),
        _ => ("?", "not checked"),
    };
    let class = if is_known(state) { state } else { "unchecked" };
    html! { span.flag.(class) { span aria-hidden="true" { (sign) } " " (word) } }
}

/// What changed or was not checked is listed; what stayed the same is folded.
fn listed(what: &str, heads: &[&str], rows: &[(&'static str, Markup)]) -> Markup {
    let (same, other): (Vec<_>, Vec<_>) = rows.iter().partition(|(state, _)| *state == "same");
    let part = |caption: &str, rows: &[&(&'static str, Markup)]| {
        html! {
            (table(caption, heads, &html! { @for (_, row) in rows.iter().take(ROWS) { (row) } }))
            (more(rows.len(), ROWS, &format!("{what}; the JSON of this page has them")))
        }
    };
    html! {
        @if rows.is_empty() { p { "There are none." } }
        @else if other.is_empty() { p { "None of them changed." } }
        @else { (part(&format!("{what} that changed"), &other)) }
        @if !same.is_empty() {
            details {
                summary { (number(same.len())) " that stayed the same" }
                (part(&format!("{what} that stayed the same"), &same))
            }
        }
    }
}

fn edges(edges: &[Edge]) -> Markup {
    let mut sorted: Vec<&Edge> = edges.iter().collect();
    sorted.sort_by_key(|edge| rank(edge.state));
    let row = |edge: &&Edge| {
        let row = html! {
            tr {
                td { (state(edge.state)) }
                th.id scope="row" { (breakable(&edge.from)) }
                td { (shown(&edge.relation)) }
                td.id { (breakable(&edge.to)) }
            }
        };
        (edge.state, row)
    };
    listed("edges", &["state", "from", "relation", "to"], &sorted.iter().map(row).collect::<Vec<_>>())
}

fn nodes(nodes: &[Node]) -> Markup {
    let mut sorted: Vec<&Node> = nodes.iter().collect();
    sorted.sort_by_key(|node| rank(node.state));
    let row = |node: &&Node| {
        let row = html! {
            tr {
                td { (state(node.state)) }
                th scope="row" { (resource_link(&node.canonical_id, None)) }
                td { (shown(&node.resource_type)) }
                td.n { (number(node.in_degree)) }
                td.n { (number(node.out_degree)) }
            }
        };
        (node.state, row)
    };
    listed("nodes", &NODE_HEADS, &sorted.iter().map(row).collect::<Vec<_>>())
}
