//! Divides several classes over several values with a minimum and a maximum per value: a small minimum-cost flow by
//! shortest augmenting paths. Prices are integers, so the division is the cheapest one.

/// Pods by class, no zero counts.
pub(crate) type Split = Vec<(u32, u64)>;

/// The cells of one part by value: class, price and maximum; `None` where no pod can be.
pub(crate) type Row = Vec<Option<(u32, u64, u64)>>;

/// A division of pods over classes, with its cost.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Division {
    /// Pods by class.
    pub split: Split,
    /// The total number of pods.
    pub pods: u64,
    /// The total cost.
    pub cost: u128,
    /// Whether every value reaches its lower bound.
    pub met: bool,
}

/// A number larger than any sum of prices along a path.
const BIG: i128 = 1 << 100;

struct Edge {
    to: usize,
    room: u64,
    cost: i128,
}

struct Network {
    edges: Vec<Edge>,
    from: Vec<Vec<usize>>,
}

impl Network {
    fn new(nodes: usize) -> Self {
        Self { edges: Vec::new(), from: vec![Vec::new(); nodes] }
    }

    /// Adds an edge and its reverse edge. Returns the position of the edge.
    fn join(&mut self, from: usize, to: usize, room: u64, cost: i128) -> usize {
        let at = self.edges.len();
        self.edges.push(Edge { to, room, cost });
        self.edges.push(Edge { to: from, room: 0, cost: -cost });
        self.from[from].push(at);
        self.from[to].push(at + 1);
        at
    }

    /// Computes a maximum flow of minimum cost.
    fn fill(&mut self, source: usize, sink: usize) {
        loop {
            let mut distance: Vec<Option<i128>> = vec![None; self.from.len()];
            let mut through = vec![usize::MAX; self.from.len()];
            distance[source] = Some(0);
            let mut changed = true;
            while changed {
                changed = false;
                for node in 0..self.from.len() {
                    let Some(here) = distance[node] else { continue };
                    for &at in &self.from[node] {
                        let edge = &self.edges[at];
                        let there = here + edge.cost;
                        if edge.room > 0 && distance[edge.to].is_none_or(|known| there < known) {
                            distance[edge.to] = Some(there);
                            through[edge.to] = at;
                            changed = true;
                        }
                    }
                }
            }
            if distance[sink].is_none() {
                return;
            }
            let path: Vec<usize> = std::iter::successors(Some(through[sink]), |at| {
                let node = self.edges[at ^ 1].to;
                (node != source).then(|| through[node])
            })
            .collect();
            let push = path.iter().map(|at| self.edges[*at].room).min().unwrap_or(0);
            for at in path {
                self.edges[at].room -= push;
                self.edges[at ^ 1].room += push;
            }
        }
    }
}

/// Places as many of `counts` pods (by part) as possible in `cells` (by part and value: class, price, maximum), at least
/// cost, with at most `upper` and, as far as possible, at least `lower` pods in each value.
pub(crate) fn divide(counts: &[u64], cells: &[Row], lower: &[u64], upper: &[u64]) -> Division {
    let (parts, values) = (counts.len(), lower.len());
    let (source, sink) = (parts + values, parts + values + 1);
    let mut network = Network::new(parts + values + 2);
    for (part, count) in counts.iter().enumerate() {
        network.join(source, part, *count, 0);
    }
    let mut arcs = Vec::new();
    for (part, row) in cells.iter().enumerate() {
        for (value, cell) in row.iter().enumerate() {
            if let Some((class, price, most)) = cell {
                arcs.push((network.join(part, parts + value, *most, i128::from(*price)), *class, *price));
            }
        }
    }
    let mut least = Vec::new();
    for value in 0..values {
        least.push(network.join(parts + value, sink, lower[value].min(upper[value]), -BIG));
        network.join(parts + value, sink, upper[value].saturating_sub(lower[value]), 0);
    }
    network.fill(source, sink);
    let flow = |network: &Network, at: usize| network.edges[at ^ 1].room;
    let mut division = Division {
        met: least.iter().zip(lower).all(|(at, lower)| flow(&network, *at) == *lower),
        ..Division::default()
    };
    for (at, class, price) in arcs {
        let pods = flow(&network, at);
        if pods > 0 {
            division.split.push((class, pods));
            division.pods += pods;
            division.cost += u128::from(price) * u128::from(pods);
        }
    }
    division.split.sort_unstable();
    division
}
