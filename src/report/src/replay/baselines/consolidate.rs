//! Consolidation as Karpenter does it by default (`WhenEmptyOrUnderutilized`): it deletes nodes whose pods fit elsewhere, or
//! replaces several nodes by one cheaper node, or one node by a cheaper one.

use std::cmp::Reverse;
use std::time::Duration;

use poolwright_catalog::UsdPerHour;

use super::karpenter::POLL;
use super::world::{Event, World};

/// A decision waits for this time, and then counts only if it is still right.
const CHECKED_AFTER: Duration = Duration::from_secs(15);
/// The most nodes that are replaced by one.
const MOST: usize = 100;
/// The percentage of nodes that may be disrupted at a time, rounded up.
const BUDGET: usize = 10;

/// What becomes of nodes.
enum Verdict {
    /// Their pods fit elsewhere.
    Delete,
    /// A node of this type takes the pods that fit nowhere else.
    Replace(usize),
}

impl World<'_> {
    /// Looks for nodes to consolidate: several at once first, then single ones.
    pub(super) fn poll(&mut self) {
        // While a decision waits, no other is made.
        let mut next = POLL;
        if std::mem::take(&mut self.changed)
            && let Some(nodes) = self.several().or_else(|| self.single())
        {
            self.at(self.now + CHECKED_AFTER, Event::Act { nodes });
            self.changed = true;
            next = CHECKED_AFTER + Duration::from_millis(1);
        }
        self.at(self.now + next, Event::Poll);
    }

    /// Carries out a decision that is still right.
    pub(super) fn act(&mut self, nodes: Vec<usize>) {
        if nodes.iter().any(|node| !self.nodes[*node].is_open()) || nodes.len() > self.allowed() {
            return;
        }
        let Some(verdict) = self.verdict(&nodes) else { return };
        for node in &nodes {
            self.nodes[*node].closed = true;
        }
        match verdict {
            Verdict::Delete => self.drain(&nodes),
            Verdict::Replace(offer) => {
                let node = self.launch(offer);
                let ready = self.nodes[node].ready;
                self.at(ready, Event::Drain { nodes });
                // If no pod comes, the replacement is removed like any empty node.
                self.at(ready + self.idle(), Event::Empty { node, had: 0 });
            }
        }
    }

    /// Evicts all pods of these nodes, and terminates the nodes.
    pub(super) fn drain(&mut self, nodes: &[usize]) {
        for node in nodes {
            let pods = self.nodes[*node].pods.clone();
            for pod in &pods {
                self.evict(*pod);
            }
            self.terminate(*node);
            for pod in pods {
                self.schedule(pod);
            }
        }
    }

    /// Returns how many more nodes may be disrupted now.
    fn allowed(&self) -> usize {
        // Karpenter does not consolidate nodes of static pools, so they do not count.
        let nodes = self.there.iter().map(|node| &self.nodes[*node]);
        let own: Vec<_> = nodes.filter(|node| !self.market.is_kept(node.offer)).collect();
        let closed = own.iter().filter(|node| node.closed).count();
        (own.len() * BUDGET).div_ceil(100).saturating_sub(closed)
    }

    /// Returns the nodes that may be consolidated: those that cost much and have few pods first.
    fn candidates(&self) -> Vec<usize> {
        let ready = |node: &usize| {
            let home = &self.nodes[*node];
            let is_used = home.ready <= self.now && !home.pods.is_empty();
            home.is_open() && is_used && !self.market.is_kept(home.offer)
        };
        let mut nodes: Vec<usize> = self.there.iter().copied().filter(ready).collect();
        let worth = |node: usize| self.price(node).micros() / (1 + self.nodes[node].pods.len() as u64);
        nodes.sort_by_key(|node| (Reverse(worth(*node)), *node));
        nodes
    }

    fn price(&self, node: usize) -> UsdPerHour {
        self.market.prices[self.nodes[node].offer]
    }

    /// Returns the longest prefix of the candidates, as a binary search finds it, that one node or none can replace.
    fn several(&self) -> Option<Vec<usize>> {
        let nodes = self.candidates();
        let most = nodes.len().min(MOST).min(self.allowed());
        let (mut low, mut high, mut best) = (2, most, None);
        while low <= high {
            let count = usize::midpoint(low, high);
            if self.verdict(&nodes[..count]).is_some() {
                best = Some(nodes[..count].to_vec());
                low = count + 1;
            } else {
                high = count - 1;
            }
        }
        best
    }

    fn single(&self) -> Option<Vec<usize>> {
        if self.allowed() == 0 {
            return None;
        }
        let found = self.candidates().into_iter().find(|node| self.verdict(&[*node]).is_some());
        found.map(|node| vec![node])
    }

    /// Returns what may become of nodes: all their pods must fit other ready nodes and one cheaper node at most.
    fn verdict(&self, nodes: &[usize]) -> Option<Verdict> {
        let mut pods: Vec<usize> = nodes.iter().flat_map(|node| self.nodes[*node].pods.clone()).collect();
        pods.sort_by_key(|pod| (self.works[*pod].class.map(|class| self.market.size(class)), *pod));
        let others = self.there.iter().copied().filter(|node| {
            let home = &self.nodes[*node];
            home.is_open() && home.ready <= self.now && !nodes.contains(node)
        });
        let mut rooms: Vec<(usize, Vec<u64>)> =
            others.map(|node| (self.nodes[node].offer, self.nodes[node].used.clone())).collect();
        let mut claims = Vec::new();
        for pod in pods {
            let class = self.works[pod].class?;
            let holds = |room: &&mut (usize, Vec<u64>)| self.market.holds(room.0, &room.1, class);
            if let Some((_, used)) = rooms.iter_mut().find(holds) {
                self.market.add(used, class);
                continue;
            }
            self.claim(&mut claims, pod, class);
            if claims.len() > 1 {
                return None;
            }
        }
        let Some(claim) = claims.first() else { return Some(Verdict::Delete) };
        let paid: UsdPerHour = nodes.iter().map(|node| self.price(*node)).sum();
        // The replacement is there before the others are gone.
        let cheapest = claim.types.iter().copied().find(|offer| self.allows(*offer))?;
        (self.market.prices[cheapest] < paid).then_some(Verdict::Replace(cheapest))
    }
}
