//! Where the nodes of a drawing go: in layers from left to right, so that edges mostly point right.
//!
//! The usual four steps: turn edges that would close a cycle, give each node the layer after its last predecessor,
//! order each layer so that few edges cross, and pull nodes level with their neighbours. Parts of the graph that hang
//! together are laid out on their own and packed in rows. Nothing here is left to chance: the same graph has the same
//! picture.

use std::collections::{BTreeMap, BTreeSet};

pub(crate) const NODE_HEIGHT: f64 = 46.0;
/// Room between two nodes above each other; a loop from a node to itself is drawn in it.
const ROW_GAP: f64 = 26.0;
/// Room between two layers; the names of edges are written in it.
const LAYER_GAP: f64 = 120.0;
/// The height of a lane for an edge that passes a layer.
const LANE: f64 = 16.0;
const PART_GAP: f64 = 36.0;
/// A picture is not made narrower than this for the sake of being square.
const LEAST_WIDTH: f64 = 900.0;
const SWEEPS: usize = 8;

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Point {
    pub x: f64,
    pub y: f64,
}

/// Where everything is.
#[derive(Debug, Default)]
pub(crate) struct Layout {
    /// The top left corner of each node.
    pub nodes: Vec<Point>,
    /// How wide each node is drawn: all of a layer alike, so that no edge passes behind one.
    pub widths: Vec<f64>,
    /// The points that each edge runs through, from its first node to its second; empty for a loop.
    pub edges: Vec<Vec<Point>>,
    pub width: f64,
    pub height: f64,
}

#[expect(clippy::cast_precision_loss, reason = "counts of things that fit on a page")]
pub(crate) fn number(count: usize) -> f64 {
    count as f64
}

/// Lays out nodes of these widths with these edges between them. Parts with a node that matters come first.
pub(crate) fn layout(widths: &[f64], edges: &[(usize, usize)], matters: &[bool]) -> Layout {
    let parts: Vec<(Vec<usize>, Layout, Vec<usize>)> = parts(edges, matters)
        .into_iter()
        .map(|members| {
            let local: BTreeMap<usize, usize> = members.iter().enumerate().map(|(at, node)| (*node, at)).collect();
            let inside: Vec<usize> = (0..edges.len()).filter(|at| local.contains_key(&edges[*at].0)).collect();
            let pairs: Vec<(usize, usize)> =
                inside.iter().map(|at| (local[&edges[*at].0], local[&edges[*at].1])).collect();
            let widths: Vec<f64> = members.iter().map(|node| widths[*node]).collect();
            let laid_out = part(&widths, &pairs);
            (members, laid_out, inside)
        })
        .collect();
    let area: f64 = parts.iter().map(|(_, one, _)| (one.width + PART_GAP) * (one.height + PART_GAP)).sum();
    let widest = parts.iter().map(|(_, one, _)| one.width).fold(LEAST_WIDTH, f64::max);
    let room = widest.max((area * 1.6).sqrt());
    let mut whole = Layout {
        nodes: vec![Point::default(); widths.len()],
        widths: vec![0.0; widths.len()],
        edges: vec![Vec::new(); edges.len()],
        ..Layout::default()
    };
    let (mut x, mut top, mut row_height) = (0.0, 0.0, 0.0_f64);
    for (members, one, inside) in &parts {
        if x > 0.0 && x + one.width > room {
            top += row_height + PART_GAP;
            (x, row_height) = (0.0, 0.0);
        }
        let moved = |point: &Point| Point { x: point.x + x, y: point.y + top };
        for (at, node) in members.iter().enumerate() {
            whole.nodes[*node] = moved(&one.nodes[at]);
            whole.widths[*node] = one.widths[at];
        }
        for (edge, points) in inside.iter().zip(&one.edges) {
            whole.edges[*edge] = points.iter().map(moved).collect();
        }
        whole.width = whole.width.max(x + one.width);
        whole.height = whole.height.max(top + one.height);
        row_height = row_height.max(one.height);
        x += one.width + PART_GAP;
    }
    whole
}

/// The parts that hang together: those that matter first, and of these the largest.
fn parts(edges: &[(usize, usize)], matters: &[bool]) -> Vec<Vec<usize>> {
    let count = matters.len();
    let mut next = vec![Vec::new(); count];
    for (from, to) in edges {
        next[*from].push(*to);
        next[*to].push(*from);
    }
    let mut found = vec![false; count];
    let mut parts = Vec::new();
    for start in 0..count {
        let (mut members, mut waiting) = (BTreeSet::new(), vec![start]);
        while let Some(node) = waiting.pop() {
            if !std::mem::replace(&mut found[node], true) {
                members.insert(node);
                waiting.extend(&next[node]);
            }
        }
        if !members.is_empty() {
            parts.push(members.into_iter().collect::<Vec<_>>());
        }
    }
    parts.sort_by_key(|members| {
        let matter = members.iter().any(|node| matters[*node]);
        std::cmp::Reverse((matter, members.len()))
    });
    parts
}

/// One part. Beside the nodes, each edge that spans several layers has a lane in every layer it passes.
struct Part {
    /// Items in each layer, top to bottom: nodes first come by number, lanes after them.
    layers: Vec<Vec<usize>>,
    layer_of: Vec<usize>,
    /// For each item, its neighbours in the layer before and in the layer after.
    before: Vec<Vec<usize>>,
    after: Vec<Vec<usize>>,
    heights: Vec<f64>,
}

fn part(widths: &[f64], edges: &[(usize, usize)]) -> Layout {
    let count = widths.len();
    let turned = turned(count, edges);
    let forward: Vec<(usize, usize)> = edges
        .iter()
        .zip(&turned)
        .map(|((from, to), turned)| if *turned { (*to, *from) } else { (*from, *to) })
        .collect();
    let layer_of = layers(count, &forward);
    let mut part = Part {
        layers: vec![Vec::new(); layer_of.iter().max().map_or(0, |last| last + 1)],
        before: vec![Vec::new(); count],
        after: vec![Vec::new(); count],
        heights: vec![NODE_HEIGHT + ROW_GAP; count],
        layer_of,
    };
    for node in 0..count {
        part.layers[part.layer_of[node]].push(node);
    }
    let chains: Vec<Vec<usize>> = forward.iter().map(|(from, to)| part.chain(*from, *to)).collect();
    part.untangle();
    let centres = part.centres();
    part.draw(widths, &chains, &turned, &centres)
}

/// Which edges point back at a node that leads to them.
fn turned(count: usize, edges: &[(usize, usize)]) -> Vec<bool> {
    #[derive(Clone, Copy, PartialEq)]
    enum State {
        New,
        Open,
        Done,
    }
    let mut out = vec![Vec::new(); count];
    for (at, (from, to)) in edges.iter().enumerate() {
        if from != to {
            out[*from].push((at, *to));
        }
    }
    let mut incoming = vec![0_usize; count];
    for (_, to) in edges.iter().filter(|(from, to)| from != to) {
        incoming[*to] += 1;
    }
    // Where something begins is the best place to begin.
    let mut starts: Vec<usize> = (0..count).collect();
    starts.sort_by_key(|node| incoming[*node] > 0);
    let (mut state, mut turned) = (vec![State::New; count], vec![false; edges.len()]);
    for start in starts {
        if state[start] != State::New {
            continue;
        }
        state[start] = State::Open;
        let mut path = vec![(start, 0_usize)];
        while let Some((node, at)) = path.last_mut() {
            let Some((edge, to)) = out[*node].get(*at).copied() else {
                state[*node] = State::Done;
                path.pop();
                continue;
            };
            *at += 1;
            match state[to] {
                State::Open => turned[edge] = true,
                State::New => {
                    state[to] = State::Open;
                    path.push((to, 0));
                }
                State::Done => {}
            }
        }
    }
    turned
}

/// Each node's layer: after all that lead to it, and, where nothing does, right before what it leads to.
fn layers(count: usize, forward: &[(usize, usize)]) -> Vec<usize> {
    let edges = || forward.iter().filter(|(from, to)| from != to);
    let (mut waiting_for, mut next) = (vec![0_usize; count], vec![Vec::new(); count]);
    for (from, to) in edges() {
        waiting_for[*to] += 1;
        next[*from].push(*to);
    }
    let is_start: Vec<bool> = waiting_for.iter().map(|count| *count == 0).collect();
    let mut ready: Vec<usize> = (0..count).filter(|node| is_start[*node]).collect();
    let mut layer = vec![0_usize; count];
    let mut at = 0;
    while at < ready.len() {
        let node = ready[at];
        at += 1;
        for to in &next[node] {
            layer[*to] = layer[*to].max(layer[node] + 1);
            waiting_for[*to] -= 1;
            if waiting_for[*to] == 0 {
                ready.push(*to);
            }
        }
    }
    for node in (0..count).filter(|node| is_start[*node]) {
        if let Some(first) = next[node].iter().map(|to| layer[*to]).min() {
            layer[node] = first.saturating_sub(1);
        }
    }
    layer
}

impl Part {
    /// The items that an edge runs through, with a new lane in every layer between its ends.
    fn chain(&mut self, from: usize, to: usize) -> Vec<usize> {
        if from == to {
            return Vec::new();
        }
        let mut chain = vec![from];
        for layer in self.layer_of[from] + 1..self.layer_of[to] {
            let lane = self.heights.len();
            self.heights.push(LANE);
            self.layer_of.push(layer);
            self.before.push(Vec::new());
            self.after.push(Vec::new());
            self.layers[layer].push(lane);
            chain.push(lane);
        }
        chain.push(to);
        for pair in chain.windows(2) {
            self.after[pair[0]].push(pair[1]);
            self.before[pair[1]].push(pair[0]);
        }
        chain
    }

    /// Orders every layer by where its neighbours are, to and fro, and keeps the order with the fewest crossings.
    fn untangle(&mut self) {
        let mut places = self.places();
        let mut best = (self.crossings(&places), self.layers.clone());
        for sweep in 0..SWEEPS {
            let to_the_right = sweep % 2 == 0;
            let order: Vec<usize> = match to_the_right {
                true => (0..self.layers.len()).collect(),
                false => (0..self.layers.len()).rev().collect(),
            };
            for layer in order {
                let neighbours = if to_the_right { &self.before } else { &self.after };
                let mean = |item: usize| {
                    let sum: f64 = neighbours[item].iter().map(|one| number(places[*one])).sum();
                    if neighbours[item].is_empty() {
                        number(places[item])
                    } else {
                        sum / number(neighbours[item].len())
                    }
                };
                let mut items: Vec<(f64, usize, usize)> =
                    self.layers[layer].iter().map(|item| (mean(*item), places[*item], *item)).collect();
                items.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
                self.layers[layer] = items.into_iter().map(|(.., item)| item).collect();
                for (at, item) in self.layers[layer].iter().enumerate() {
                    places[*item] = at;
                }
            }
            let crossings = self.crossings(&places);
            if crossings < best.0 {
                best = (crossings, self.layers.clone());
            }
        }
        self.layers = best.1;
    }

    /// Each item's place in its layer.
    fn places(&self) -> Vec<usize> {
        let mut places = vec![0; self.heights.len()];
        for layer in &self.layers {
            for (at, item) in layer.iter().enumerate() {
                places[*item] = at;
            }
        }
        places
    }

    /// How many pairs of edges cross between one layer and the next.
    fn crossings(&self, places: &[usize]) -> usize {
        let mut crossings = 0;
        for (at, layer) in self.layers.iter().enumerate() {
            let mut ends: Vec<(usize, usize)> = Vec::new();
            for item in layer {
                ends.extend(self.after[*item].iter().map(|next| (places[*item], places[*next])));
            }
            ends.sort_unstable();
            // Going down the left side, every edge crosses those before it that end further down on the right. They
            // are counted in a tree of sums, because of a thousand edges there are half a million pairs.
            let size = self.layers.get(at + 1).map_or(0, Vec::len);
            let mut sums = vec![0_usize; size + 1];
            for (drawn, (_, end)) in ends.iter().enumerate() {
                let mut not_further = 0;
                let mut node = end + 1;
                while node > 0 {
                    not_further += sums[node];
                    node &= node - 1;
                }
                crossings += drawn - not_further;
                let mut node = end + 1;
                while node <= size {
                    sums[node] += 1;
                    node += node & node.wrapping_neg();
                }
            }
        }
        crossings
    }

    /// The middle of each item, top to bottom: as near to its neighbours as the others in its layer allow.
    fn centres(&self) -> Vec<f64> {
        let mut centres = vec![0.0; self.heights.len()];
        for layer in &self.layers {
            let mut y = 0.0;
            for item in layer {
                centres[*item] = y + self.heights[*item] / 2.0;
                y += self.heights[*item];
            }
        }
        for sweep in 0..SWEEPS {
            let forward = sweep % 2 == 0;
            let mut order: Vec<&Vec<usize>> = self.layers.iter().collect();
            if !forward {
                order.reverse();
            }
            for layer in order {
                let wanted = |item: usize| {
                    let near = if forward { &self.before[item] } else { &self.after[item] };
                    let near = if near.is_empty() { &self.after[item] } else { near };
                    let sum: f64 = near.iter().map(|one| centres[*one]).sum();
                    if near.is_empty() { centres[item] } else { sum / number(near.len()) }
                };
                let wanted: Vec<f64> = layer.iter().map(|item| wanted(*item)).collect();
                let room = |a: usize, b: usize| f64::midpoint(self.heights[layer[a]], self.heights[layer[b]]);
                let (mut down, mut up) = (wanted.clone(), wanted);
                for at in 1..layer.len() {
                    down[at] = down[at].max(down[at - 1] + room(at - 1, at));
                }
                for at in (1..layer.len()).rev() {
                    up[at - 1] = up[at - 1].min(up[at] - room(at - 1, at));
                }
                // Both keep their distances, so what lies between them does, too.
                for (at, item) in layer.iter().enumerate() {
                    centres[*item] = f64::midpoint(down[at], up[at]);
                }
            }
        }
        centres
    }

    fn draw(&self, widths: &[f64], chains: &[Vec<usize>], turned: &[bool], centres: &[f64]) -> Layout {
        let columns: Vec<f64> = self
            .layers
            .iter()
            .map(|layer| layer.iter().filter_map(|item| widths.get(*item)).copied().fold(0.0, f64::max))
            .collect();
        let mut lefts = Vec::new();
        let mut width = 0.0;
        for column in &columns {
            lefts.push(width);
            width += column + LAYER_GAP;
        }
        let top = (0..self.heights.len()).map(|item| centres[item] - self.heights[item] / 2.0).fold(f64::MAX, f64::min);
        let bottom =
            (0..self.heights.len()).map(|item| centres[item] + self.heights[item] / 2.0).fold(f64::MIN, f64::max);
        let centre = |item: usize| centres[item] - top;
        // Edges leave and reach a node side by side, in the order of where they come from and go to.
        let mut ports: BTreeMap<(usize, bool, usize), f64> = BTreeMap::new();
        for node in 0..widths.len() {
            for right in [false, true] {
                let neighbour = |chain: &[usize]| if right { chain[1] } else { chain[chain.len() - 2] };
                let touches = |chain: &[usize]| {
                    let end = if right { chain.first() } else { chain.last() };
                    end == Some(&node)
                };
                let mut here: Vec<usize> = (0..chains.len()).filter(|at| touches(&chains[*at])).collect();
                here.sort_by(|a, b| {
                    let at = |chain: &usize| centre(neighbour(&chains[*chain]));
                    at(a).total_cmp(&at(b)).then(a.cmp(b))
                });
                for (at, edge) in here.iter().enumerate() {
                    let share = number(at + 1) / number(here.len() + 1) - 0.5;
                    ports.insert((*edge, right, node), centre(node) + share * (NODE_HEIGHT - 8.0));
                }
            }
        }
        let points = |at: usize| {
            let chain = &chains[at];
            let mut points = Vec::new();
            for (place, item) in chain.iter().enumerate() {
                let left = lefts[self.layer_of[*item]];
                if place == 0 {
                    points.push(Point { x: left + columns[self.layer_of[*item]], y: ports[&(at, true, *item)] });
                } else if place + 1 == chain.len() {
                    points.push(Point { x: left, y: ports[&(at, false, *item)] });
                } else {
                    let right = left + columns[self.layer_of[*item]];
                    points.extend([Point { x: left, y: centre(*item) }, Point { x: right, y: centre(*item) }]);
                }
            }
            if turned[at] {
                points.reverse();
            }
            points
        };
        Layout {
            nodes: (0..widths.len())
                .map(|node| Point { x: lefts[self.layer_of[node]], y: centre(node) - NODE_HEIGHT / 2.0 })
                .collect(),
            widths: (0..widths.len()).map(|node| columns[self.layer_of[node]]).collect(),
            edges: (0..chains.len()).map(points).collect(),
            width: (width - LAYER_GAP).max(0.0),
            height: (bottom - top).max(0.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No two nodes lie on each other, nothing lies outside, every edge has its ends.
    fn check(count: usize, edges: &[(usize, usize)]) -> Layout {
        let least: Vec<f64> = (0..count).map(|at| 80.0 + number(at % 7) * 20.0).collect();
        let found = layout(&least, edges, &vec![false; count]);
        let widths = &found.widths;
        assert!(widths.iter().zip(&least).all(|(width, least)| width >= least));
        for (at, node) in found.nodes.iter().enumerate() {
            assert!(node.x >= 0.0 && node.y >= 0.0 && node.x + widths[at] <= found.width + 0.01);
            assert!(node.y + NODE_HEIGHT <= found.height + 0.01);
            for (other, point) in found.nodes.iter().enumerate().skip(at + 1) {
                let apart = node.x + widths[at] <= point.x
                    || point.x + widths[other] <= node.x
                    || (node.y - point.y).abs() >= NODE_HEIGHT;
                assert!(apart, "{at} lies on {other}");
            }
        }
        for ((from, to), points) in edges.iter().zip(&found.edges) {
            assert_eq!(points.is_empty(), from == to);
        }
        found
    }

    #[test]
    fn edges_point_right_unless_they_close_a_cycle() {
        let found = check(4, &[(0, 1), (1, 2), (2, 0), (3, 0)]);
        let x = |node: usize| found.nodes[node].x;
        assert!(x(3) < x(0) && x(0) < x(1) && x(1) < x(2), "a cycle begins where it is entered");
        let back = &found.edges[2];
        assert!(back[0].x > back[back.len() - 1].x, "it runs back to where the cycle began");
    }

    #[test]
    fn crossings_are_counted_and_untangled() {
        // Two edges that cross as the nodes are numbered, and need not.
        let mut crossed = Part {
            layers: vec![vec![0, 1], vec![2, 3]],
            layer_of: vec![0, 0, 1, 1],
            before: vec![vec![], vec![], vec![1], vec![0]],
            after: vec![vec![3], vec![2], vec![], vec![]],
            heights: vec![1.0; 4],
        };
        assert_eq!(crossed.crossings(&crossed.places()), 1);
        crossed.untangle();
        assert_eq!(crossed.crossings(&crossed.places()), 0);
        // All of one side with all of the other: that many crossings there are, however it is drawn.
        let all = Part {
            layers: vec![vec![0, 1, 2], vec![3, 4, 5]],
            layer_of: vec![0, 0, 0, 1, 1, 1],
            before: vec![vec![], vec![], vec![], vec![0, 1, 2], vec![0, 1, 2], vec![0, 1, 2]],
            after: vec![vec![3, 4, 5], vec![3, 4, 5], vec![3, 4, 5], vec![], vec![], vec![]],
            heights: vec![1.0; 6],
        };
        assert_eq!(all.crossings(&all.places()), 9);
    }

    #[test]
    fn any_graph_is_laid_out_and_always_the_same_way() {
        for edges in [&[][..], &[(0, 0)], &[(0, 1), (0, 1), (1, 0), (1, 1)], &[(2, 0), (1, 0), (0, 3), (2, 3)]] {
            check(5, edges);
        }
        check(0, &[]);
        let mut random: usize = 1;
        let mut below = |end: usize| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 33) % end
        };
        let tangled: Vec<(usize, usize)> = (0..600).map(|_| (below(400), below(400))).collect();
        let (one, other) = (check(400, &tangled), check(400, &tangled));
        assert_eq!(one.nodes, other.nodes);
        let star: Vec<(usize, usize)> = (1..400).map(|leaf| (0, leaf)).collect();
        check(400, &star);
        let line: Vec<(usize, usize)> = (1..400).map(|node| (node - 1, node)).chain([(399, 0), (0, 399)]).collect();
        check(400, &line);
    }
}
