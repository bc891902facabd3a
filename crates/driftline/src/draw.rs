//! A graph and its changes as Mermaid, DOT and SVG.
//!
//! Names come from outside. Nothing in them can end a text, a tag or a code block, and what cannot be seen is shown
//! as an escape. Every mark is a sign as well as a colour.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use driftline_core::graph::{Fate, GraphDiff};
use driftline_sources::aws::{is_arn, local_id};

use crate::layout::{Layout, NODE_HEIGHT, Point, layout, number};
use crate::output::{count, xml};

/// How much is drawn: of more than this nobody sees anything.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    pub nodes: usize,
    pub edges: usize,
}

pub(crate) const PICTURE: Bounds = Bounds { nodes: 400, edges: 1_200 };
/// Mermaid itself gives up at 500 edges.
pub(crate) const MERMAID: Bounds = Bounds { nodes: 400, edges: 480 };
pub(crate) const IN_A_REPORT: Bounds = Bounds { nodes: 60, edges: 200 };

/// The longest name that is written into a node.
const LONGEST: usize = 36;
/// The same for an edge, which has less room.
const LONGEST_EDGE: usize = 18;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Mark {
    Same,
    Added,
    Removed,
    Changed,
    NotChecked,
}

impl Mark {
    const ALL: [Mark; 5] = [Mark::Same, Mark::Added, Mark::Removed, Mark::Changed, Mark::NotChecked];

    fn of(fate: &Fate) -> Self {
        match fate {
            Fate::Same => Mark::Same,
            Fate::Added => Mark::Added,
            Fate::Removed => Mark::Removed,
            Fate::Changed(_) => Mark::Changed,
            Fate::NotChecked(_) => Mark::NotChecked,
        }
    }

    fn sign(self) -> &'static str {
        match self {
            Mark::Same => "",
            Mark::Added => "+ ",
            Mark::Removed => "- ",
            Mark::Changed => "~ ",
            Mark::NotChecked => "? ",
        }
    }

    fn name(self) -> &'static str {
        match self {
            Mark::Same => "same",
            Mark::Added => "added",
            Mark::Removed => "removed",
            Mark::Changed => "changed",
            Mark::NotChecked => "unchecked",
        }
    }

    fn is_change(self) -> bool {
        matches!(self, Mark::Added | Mark::Removed | Mark::Changed)
    }

    /// For people: `removed`, `not checked`.
    fn words(self) -> &'static str {
        if self == Mark::NotChecked { "not checked" } else { self.name() }
    }

    /// Fill, line and text: dark on light, which can be read on a page of either kind.
    fn colours(self) -> [&'static str; 3] {
        match self {
            Mark::Same => ["#f8fafc", "#64748b", "#0f172a"],
            Mark::Added => ["#dcfce7", "#15803d", "#14532d"],
            Mark::Removed => ["#fee2e2", "#b91c1c", "#7f1d1d"],
            Mark::Changed => ["#fef3c7", "#b45309", "#78350f"],
            Mark::NotChecked => ["#f3f4f6", "#6b7280", "#374151"],
        }
    }

    /// The same for a dark page.
    fn dark_colours(self) -> [&'static str; 3] {
        match self {
            Mark::Same => ["#1e293b", "#94a3b8", "#e2e8f0"],
            Mark::Added => ["#052e16", "#4ade80", "#bbf7d0"],
            Mark::Removed => ["#450a0a", "#f87171", "#fecaca"],
            Mark::Changed => ["#451a03", "#fbbf24", "#fde68a"],
            Mark::NotChecked => ["#1f2937", "#9ca3af", "#d1d5db"],
        }
    }

    fn dashes(self) -> Option<&'static str> {
        match self {
            Mark::Removed => Some("6 3"),
            Mark::NotChecked => Some("2 3"),
            _ => None,
        }
    }
}

#[derive(Debug)]
struct DrawnNode {
    /// As it is.
    #[cfg_attr(not(feature = "web"), expect(dead_code, reason = "only a page has links"))]
    raw: String,
    /// As it can be shown.
    id: String,
    name: String,
    kind: String,
    mark: Mark,
}

#[derive(Debug)]
struct DrawnEdge {
    from: usize,
    to: usize,
    kind: String,
    mark: Mark,
}

/// What is drawn of a graph.
#[derive(Debug)]
pub(crate) struct Picture {
    title: String,
    nodes: Vec<DrawnNode>,
    edges: Vec<DrawnEdge>,
    left_out: (usize, usize),
}

impl Picture {
    /// What changed and what is next to it, or everything; what changed comes first where there is too much.
    pub(crate) fn new(diff: &GraphDiff, title: &str, all: bool, bounds: Bounds) -> Self {
        let near = diff.neighbourhood();
        let wanted = |id: &str| all || near.contains(id);
        let mut touched: BTreeSet<&str> = BTreeSet::new();
        for (id, _) in diff.edges.iter().filter(|(_, edge)| edge.fate.is_change()) {
            touched.extend([id.from.as_str(), id.to.as_str()]);
        }
        let joined: BTreeSet<&str> = diff.edges.keys().flat_map(|id| [id.from.as_str(), id.to.as_str()]).collect();
        let mut ids: Vec<&String> = diff.nodes.keys().filter(|id| wanted(id)).collect();
        ids.sort_by_key(|id| match id.as_str() {
            id if diff.nodes[id].fate.is_change() => 0,
            id if touched.contains(id) => 1,
            id if near.contains(id) => 2,
            id if joined.contains(id) => 3,
            _ => 4,
        });
        let mut left_out = (ids.len().saturating_sub(bounds.nodes), 0);
        ids.truncate(bounds.nodes);
        ids.sort();
        let index: BTreeMap<&str, usize> = ids.iter().enumerate().map(|(at, id)| (id.as_str(), at)).collect();
        let mut lines: Vec<_> = diff
            .edges
            .iter()
            .filter_map(|(id, edge)| Some((*index.get(id.from.as_str())?, *index.get(id.to.as_str())?, id, edge)))
            .collect();
        lines.sort_by_key(|(.., edge)| !edge.fate.is_change());
        lines.truncate(bounds.edges);
        let lines_wanted = diff.edges.keys().filter(|id| wanted(&id.from) && wanted(&id.to)).count();
        left_out.1 = lines_wanted - lines.len();
        lines.sort_by_key(|(from, to, id, _)| (*from, *to, *id));
        let node = |id: &&String| {
            let node = &diff.nodes[*id];
            let kind = node.kind.as_deref();
            DrawnNode {
                raw: (*id).clone(),
                id: shown(id),
                name: middle_out(&shown(short_name(kind.unwrap_or_default(), id)), LONGEST),
                kind: middle_out(&shown(kind.unwrap_or("not observed")), LONGEST),
                mark: Mark::of(&node.fate),
            }
        };
        Self {
            title: shown(title),
            nodes: ids.iter().map(node).collect(),
            edges: lines
                .into_iter()
                .map(|(from, to, id, edge)| DrawnEdge {
                    from,
                    to,
                    kind: middle_out(&shown(&id.kind), LONGEST_EDGE),
                    mark: Mark::of(&edge.fate),
                })
                .collect(),
            left_out,
        }
    }

    /// What is missing from the picture, in words.
    pub(crate) fn note(&self) -> Option<String> {
        match (self.nodes.is_empty(), self.left_out) {
            (true, _) => Some("nothing changed".into()),
            (false, (0, 0)) => None,
            (false, (nodes, 0)) => Some(format!("{} not drawn", count(nodes, "more node"))),
            (false, (0, edges)) => Some(format!("{} not drawn", count(edges, "more edge"))),
            (false, (nodes, edges)) => {
                Some(format!("{} and {} not drawn", count(nodes, "more node"), count(edges, "more edge")))
            }
        }
    }

    pub(crate) fn mermaid(&self) -> String {
        let mut out = String::from("flowchart LR\n");
        for (at, node) in self.nodes.iter().enumerate() {
            let name = mermaid(&format!("{}{}", node.mark.sign(), node.name));
            out += &format!("  n{at}[\"{name}<br/>{}\"]:::{}\n", mermaid(&node.kind), node.mark.name());
        }
        for edge in &self.edges {
            let arrow = if edge.mark.dashes().is_some() { "-.->" } else { "-->" };
            let label = mermaid(&format!("{}{}", edge.mark.sign(), edge.kind));
            let label = if label.is_empty() { String::new() } else { format!("|\"{label}\"|") };
            out += &format!("  n{} {arrow}{label} n{}\n", edge.from, edge.to);
        }
        if let Some(note) = self.note() {
            out += &format!("  note[\"{}\"]\n", mermaid(&note));
        }
        for mark in Mark::ALL {
            let [fill, line, text] = mark.colours();
            let dashes = mark.dashes().map(|dashes| format!(",stroke-dasharray:{dashes}")).unwrap_or_default();
            out += &format!("  classDef {} fill:{fill},stroke:{line},color:{text}{dashes}\n", mark.name());
            let which: Vec<String> = self
                .edges
                .iter()
                .enumerate()
                .filter(|(_, edge)| edge.mark == mark)
                .map(|(at, _)| at.to_string())
                .collect();
            if mark != Mark::Same && !which.is_empty() {
                out += &format!("  linkStyle {} stroke:{line}\n", which.join(","));
            }
        }
        out
    }

    pub(crate) fn dot(&self) -> String {
        let mut out = String::from("digraph topology {\n  rankdir=LR;\n");
        let title = self.note().map_or_else(|| self.title.clone(), |note| format!("{}; {note}", self.title));
        out += &format!("  graph [label={}, labelloc=t, fontname=\"sans-serif\"];\n", dot(&[&title]));
        out += "  node [shape=box, style=\"filled,rounded\", fontname=\"sans-serif\"];\n";
        out += "  edge [fontname=\"sans-serif\", fontsize=10];\n";
        for (at, node) in self.nodes.iter().enumerate() {
            let [fill, line, text] = node.mark.colours();
            let label = dot(&[&format!("{}{}", node.mark.sign(), node.name), &node.kind]);
            let style = if node.mark.dashes().is_some() { ", style=\"filled,rounded,dashed\"" } else { "" };
            out += &format!(
                "  n{at} [label={label}, tooltip={}, fillcolor=\"{fill}\", color=\"{line}\", fontcolor=\"{text}\"{style}];\n",
                dot(&[&node.id])
            );
        }
        for edge in &self.edges {
            let [_, line, _] = edge.mark.colours();
            let label = dot(&[&format!("{}{}", edge.mark.sign(), edge.kind)]);
            let style = if edge.mark.dashes().is_some() { ", style=dashed" } else { "" };
            out += &format!(
                "  n{} -> n{} [label={label}, color=\"{line}\", fontcolor=\"{line}\"{style}];\n",
                edge.from, edge.to
            );
        }
        out + "}\n"
    }

    pub(crate) fn svg(&self) -> String {
        self.svg_with(&style(), |_, node| node)
    }

    /// The same for a page that has the style itself, with every node leading to an address.
    #[cfg(feature = "web")]
    pub(crate) fn svg_in_page(&self, address: impl Fn(&str) -> Option<String>) -> String {
        self.svg_with("", |node, drawn| match address(&node.raw) {
            Some(address) => format!("<a href=\"{}\">{}</a>\n", xml(&address), drawn.trim_end()),
            None => drawn,
        })
    }

    fn svg_with(&self, style: &str, wrap: impl Fn(&DrawnNode, String) -> String) -> String {
        const EDGE: f64 = 24.0;
        const HEAD: f64 = 44.0;
        let widths: Vec<f64> = self.nodes.iter().map(node_width).collect();
        let pairs: Vec<(usize, usize)> = self.edges.iter().map(|edge| (edge.from, edge.to)).collect();
        // Things that changed are looked for first; what they hang together with is there, too.
        let mut matters: Vec<bool> = self.nodes.iter().map(|node| node.mark.is_change()).collect();
        for edge in self.edges.iter().filter(|edge| edge.mark.is_change()) {
            matters[edge.from] = true;
        }
        let found = layout(&widths, &pairs, &matters);
        let caption = self.note().map_or_else(|| self.title.clone(), |note| format!("{}; {note}", self.title));
        let legend = "+ added   - removed   ~ changed   ? not checked";
        let least = text_width(&caption, 10.4).max(text_width(legend, 7.4));
        let (width, height) = (found.width.max(least) + 2.0 * EDGE, found.height + 2.0 * EDGE + HEAD);
        // An image is one thing to those who do not see it; in a page there are links in it that must be reached.
        let role = if style.is_empty() { "group" } else { "img" };
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" \
             viewBox=\"0 0 {width:.0} {height:.0}\" role=\"{role}\" aria-label=\"{0}\">\n<title>{0}</title>\n{style}{1}",
            xml(&caption),
            markers()
        );
        out += "<rect class=\"page\" width=\"100%\" height=\"100%\"/>\n";
        out += &format!("<text class=\"title\" x=\"{EDGE}\" y=\"30\">{}</text>\n", xml(&caption));
        out += &format!("<text class=\"legend\" x=\"{EDGE}\" y=\"50\" xml:space=\"preserve\">{legend}</text>\n");
        out += &format!("<g transform=\"translate({EDGE},{:.0})\">\n", EDGE + HEAD);
        let (lines, names): (Vec<String>, Vec<String>) =
            (0..self.edges.len()).map(|at| self.svg_edge(at, &found)).unzip();
        // Names lie on the lines, whichever they belong to, and nodes on both.
        out.extend(lines);
        out.extend(names);
        for (at, node) in self.nodes.iter().enumerate() {
            out += &wrap(node, svg_node(node, found.nodes[at], found.widths[at]));
        }
        out + "</g>\n</svg>\n"
    }

    /// An edge's line, and its name.
    fn svg_edge(&self, at: usize, found: &Layout) -> (String, String) {
        let edge = &self.edges[at];
        // At the end that fewer others share there is room for a name.
        let others = |end: fn(&DrawnEdge) -> usize| self.edges.iter().filter(|one| end(one) == end(edge)).count();
        let place = others(|one| one.to).cmp(&others(|one| one.from));
        let (path, name) = match found.edges[at].as_slice() {
            [] => loop_at(found.nodes[edge.from], found.widths[edge.from]),
            points => curve(points, place),
        };
        let mark = edge.mark.name();
        let ends = format!("{} to {}", self.nodes[edge.from].id, self.nodes[edge.to].id);
        let title = xml(&format!("{ends}: {} ({})", edge.kind, edge.mark.words()));
        let line = format!(
            "<g class=\"edge {mark}\"><title>{title}</title><path d=\"{path}\" marker-end=\"url(#{mark})\"/></g>\n"
        );
        let text = xml(&format!("{}{}", edge.mark.sign(), edge.kind));
        let name = format!("<text class=\"on {mark}\" x=\"{:.1}\" y=\"{:.1}\">{text}</text>\n", name.x, name.y + 3.5);
        (line, name)
    }
}

fn svg_node(node: &DrawnNode, Point { x, y }: Point, width: f64) -> String {
    let middle = x + width / 2.0;
    format!(
        "<g class=\"node {}\"><title>{}</title><rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" \
         height=\"{NODE_HEIGHT:.0}\" rx=\"6\"/><text class=\"name\" x=\"{middle:.1}\" y=\"{:.1}\">{}{}</text>\
         <text class=\"kind\" x=\"{middle:.1}\" y=\"{:.1}\">{}</text></g>\n",
        node.mark.name(),
        xml(&format!("{} ({})", node.id, node.mark.words())),
        y + 19.0,
        node.mark.sign(),
        xml(&node.name),
        y + 36.0,
        xml(&node.kind)
    )
}

fn style() -> String {
    let mut out = String::from(
        "<style>\n.page{fill:#fff}\ntext{font-family:ui-sans-serif,system-ui,\"Segoe UI\",\"DejaVu Sans\",sans-serif}\n\
         .title{font-size:15px;font-weight:600;fill:#0f172a}\n.legend{font-size:11px;fill:#475569}\n\
         .node text{text-anchor:middle}\n.node rect{stroke-width:1.5}\n.name{font-size:12px;font-weight:600}\n\
         .kind{font-size:10px}\n.edge path{fill:none;stroke-width:1.5}\n\
         .on{font-size:10px;text-anchor:middle;paint-order:stroke;stroke:#fff;stroke-width:5px;stroke-linejoin:round}\n",
    );
    let rules = |mark: Mark, [fill, line, text]: [&str; 3]| {
        let name = mark.name();
        format!(
            ".node.{name} rect{{fill:{fill};stroke:{line}}}\n.node.{name} text{{fill:{text}}}\n\
             .edge.{name} path{{stroke:{line}}}\n.on.{name}{{fill:{line}}}\n#{name} path{{fill:{line}}}\n"
        )
    };
    for mark in Mark::ALL {
        out += &rules(mark, mark.colours());
        let name = mark.name();
        if let Some(dashes) = mark.dashes() {
            out += &format!(".node.{name} rect,.edge.{name} path{{stroke-dasharray:{dashes}}}\n");
        }
        if mark.is_change() {
            out += &format!(".node.{name} rect,.edge.{name} path{{stroke-width:2.5}}\n");
        }
    }
    out += "@media (prefers-color-scheme: dark){\n.page{fill:#0f172a}\n.title{fill:#f1f5f9}\n.legend{fill:#94a3b8}\n\
            .on{stroke:#0f172a}\n";
    for mark in Mark::ALL {
        out += &rules(mark, mark.dark_colours());
    }
    out + "}\n</style>\n"
}

/// The heads of arrows.
fn markers() -> String {
    let mut out = String::from("<defs>\n");
    for mark in Mark::ALL {
        out += &format!(
            "<marker id=\"{}\" viewBox=\"0 0 10 10\" refX=\"9\" refY=\"5\" markerWidth=\"9\" markerHeight=\"9\" \
             markerUnits=\"userSpaceOnUse\" orient=\"auto\"><path d=\"M0 0L10 5L0 10z\"/></marker>\n",
            mark.name()
        );
    }
    out + "</defs>\n"
}

/// A curve through the points, level at each of them, and where its name goes.
fn curve(points: &[Point], place: Ordering) -> (String, Point) {
    let mut path = format!("M{:.1} {:.1}", points[0].x, points[0].y);
    for pair in points.windows(2) {
        let (from, to) = (pair[0], pair[1]);
        let bend = f64::midpoint(from.x, to.x);
        path += &format!("C{bend:.1} {:.1} {bend:.1} {:.1} {:.1} {:.1}", from.y, to.y, to.x, to.y);
    }
    // The first two points and the last two have the gap between two layers between them, where names are written.
    let (from, to, share): (Point, Point, f64) = match place {
        Ordering::Less => (points[points.len() - 2], points[points.len() - 1], 0.65),
        Ordering::Equal => (points[0], points[1], 0.5),
        Ordering::Greater => (points[0], points[1], 0.35),
    };
    let left = 1.0 - share;
    let (first, last) = (left.powi(3), share.powi(3));
    let (second, third) = (3.0 * share * left * left, 3.0 * share * share * left);
    let x = first * from.x + (second + third) * f64::midpoint(from.x, to.x) + last * to.x;
    (path, Point { x, y: (first + second) * from.y + (third + last) * to.y })
}

/// From a node's top back to its side.
fn loop_at(corner: Point, width: f64) -> (String, Point) {
    let (x, y) = (corner.x + width, corner.y);
    let path = format!(
        "M{:.1} {y:.1}C{:.1} {:.1} {:.1} {:.1} {x:.1} {:.1}",
        x - 24.0,
        x - 20.0,
        y - 26.0,
        x + 34.0,
        y - 14.0,
        y + 12.0
    );
    (path, Point { x: x + 12.0, y: y - 10.0 })
}

fn node_width(node: &DrawnNode) -> f64 {
    let name = text_width(&format!("{}{}", node.mark.sign(), node.name), 8.2);
    (name.max(text_width(&node.kind, 6.2)) + 20.0).max(80.0)
}

/// About how wide a text is; wide letters are taken for two.
fn text_width(text: &str, letter: f64) -> f64 {
    let letters: usize = text.chars().map(|char| if char > '\u{10ff}' { 2 } else { 1 }).sum();
    number(letters) * letter
}

/// What people call a thing: the last part of its ARN, or its id.
pub(crate) fn short_name<'i>(kind: &str, id: &'i str) -> &'i str {
    let name = local_id(kind, id);
    let last = if is_arn(id) { name.rsplit([':', '/']).next().unwrap_or(name) } else { name };
    if last.is_empty() { id } else { last }
}

/// A long text keeps its beginning and its end: they tell names apart.
fn middle_out(text: &str, longest: usize) -> String {
    let chars: Vec<char> = text.chars().collect();
    if chars.len() <= longest {
        return text.to_owned();
    }
    let (start, end) = (&chars[..longest / 2], &chars[chars.len() - (longest / 2 - 1)..]);
    start.iter().chain(&['…']).chain(end).collect()
}

/// What cannot be seen, or would turn the text around it, is shown as an escape.
fn shown(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for char in text.chars() {
        if is_unseen(char) { out.extend(char.escape_unicode()) } else { out.push(char) }
    }
    out
}

fn is_unseen(char: char) -> bool {
    char.is_control()
        || matches!(char,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{fff0}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
        // Characters that Unicode says are none; XML does not allow them.
        || u32::from(char) & 0xfffe == 0xfffe
}

/// Text inside a quoted Mermaid label, which Mermaid takes for Markdown. Only what is known to be harmless is written
/// as it is: letters, digits, and signs between them.
fn mermaid(text: &str) -> String {
    let mut out = String::new();
    let mut before = ' ';
    let mut chars = text.chars().peekable();
    while let Some(char) = chars.next() {
        let joins = |char: char| char.is_alphanumeric() || char == ':';
        let inside = joins(before) && chars.peek().copied().is_some_and(joins);
        match char {
            '"' => out.push_str("#quot;"),
            ' ' | '…' => out.push(char),
            '-' | '_' | '.' | '/' | ':' | ',' | '+' | '=' if inside => out.push(char),
            _ if char.is_alphanumeric() => out.push(char),
            _ => out += &format!("#{};", u32::from(char)),
        }
        before = char;
    }
    out
}

/// Lines as one quoted DOT text.
fn dot(lines: &[&str]) -> String {
    let lines: Vec<String> = lines.iter().map(|line| line.replace('\\', "\\\\").replace('"', "\\\"")).collect();
    format!("\"{}\"", lines.join("\\n"))
}

#[cfg(test)]
mod tests {
    use driftline_core::graph::EdgeId;

    use super::*;

    fn graph(names: &[&str]) -> GraphDiff {
        let mut diff = GraphDiff::default();
        for (at, name) in names.iter().enumerate() {
            let fate = [Fate::Added, Fate::Removed, Fate::Changed(Vec::new()), Fate::Same][at % 4].clone();
            diff.add_node(name, Some(name), fate.clone());
            let to = names[(at + 1) % names.len()].to_owned();
            diff.add_edge(
                EdgeId { from: (*name).to_owned(), to, kind: (*name).to_owned(), id: String::new() },
                fate,
                None,
            );
        }
        diff
    }

    const HOSTILE: [&str; 9] = [
        "\"]; n0 --> evil[\"",
        "</text></svg><script>alert(1)</script>",
        "--> ```\n```html",
        "a\nb\r\u{1b}[31m\0",
        "%%{init: {}}%%",
        "#quot; &amp; &#60;",
        "\u{202e}txt.exe\u{2066}\u{200b}",
        "x\\\" -> y [label=\\\"z",
        "]]> <!-- \u{ffff} 名前",
    ];

    #[test]
    fn no_name_breaks_out_of_any_format() {
        let picture = Picture::new(&graph(&HOSTILE), HOSTILE[1], true, PICTURE);
        let svg = picture.svg();
        assert!(!svg.contains("<script") && svg.matches("</svg>").count() == 1 && !svg.contains("<!--"));
        assert_eq!(svg.matches("class=\"node ").count(), HOSTILE.len());
        for text in [&svg, &picture.mermaid(), &picture.dot()] {
            assert!(!text.chars().any(|char| char != '\n' && is_unseen(char)), "{text}");
        }
        for line in picture.mermaid().lines().filter(|line| line.contains('"')) {
            assert_eq!(line.matches('"').count(), 2, "{line}");
            let inside = line.split('"').nth(1).unwrap_or_default().replacen("<br/>", "", 1);
            assert!(!inside.contains(['<', '>', '`', '%', '{', '[', ']', '&', '|', '\\']), "{line}");
        }
        for line in picture.dot().lines().filter(|line| line.contains("label=")) {
            // Without what is escaped, each quote opens or closes a text; between them are only our own words.
            let bare = line.replace("\\\\", "").replace("\\\"", "");
            assert_eq!(bare.matches('"').count() % 2, 0, "{line}");
            let outside: String = bare.split('"').step_by(2).collect();
            assert!(!outside.contains("evil") && outside.matches("->").count() <= 1, "{line}");
        }
    }

    #[test]
    fn changes_are_marked_by_signs_and_not_only_by_colour() {
        let diff = graph(&["new", "old", "other", "same"]);
        let picture = Picture::new(&diff, "t", false, PICTURE);
        for text in [picture.dot(), picture.svg()] {
            for sign in ["+ new", "- old", "~ other"] {
                assert!(text.contains(sign), "{sign} is not in {text}");
            }
        }
        for sign in ["#43; new", "#45; old", "#126; other"] {
            assert!(picture.mermaid().contains(sign), "a bare sign would begin a Markdown list");
        }
        assert_eq!(picture.svg(), Picture::new(&diff, "t", false, PICTURE).svg(), "the same graph, the same bytes");
    }

    #[test]
    fn what_is_too_much_to_draw_is_left_out_and_counted() {
        let names: Vec<String> = (0..500).map(|at| format!("n{at:03}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let picture = Picture::new(&graph(&names), "t", true, PICTURE);
        assert_eq!(picture.nodes.len(), 400);
        assert!(picture.svg().contains("100 more nodes and 200 more edges not drawn"));
        assert!(picture.mermaid().contains("100 more nodes and 200 more edges not drawn"));
        assert!(picture.nodes.iter().filter(|node| node.mark == Mark::Same).count() < 125, "what changed comes first");
    }

    #[test]
    fn a_thing_is_called_by_the_last_part_of_its_arn() {
        for (kind, id, name) in [
            ("AWS::Events::Rule", "arn:aws:events:us-east-1:1:rule/bus/r", "r"),
            ("AWS::Lambda::Function", "arn:aws:lambda:us-east-1:1:function:f", "f"),
            ("Thing", "some/path", "some/path"),
            ("Thing", "arn:aws:x:y:1:name/", "arn:aws:x:y:1:name/"),
        ] {
            assert_eq!(short_name(kind, id), name);
        }
    }
}
