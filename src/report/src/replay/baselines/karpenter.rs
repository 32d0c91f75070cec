//! Provisioning as Karpenter does it: batches, and packing without regard to prices.

use std::cmp::Reverse;
use std::time::Duration;

use super::world::{Event, World};

/// A batch closes after this time without a new pod.
const BATCH_IDLE: Duration = Duration::from_secs(1);
/// A batch closes after this time.
const BATCH_MAX: Duration = Duration::from_secs(10);
/// An empty node is removed after this time: it is found within ten seconds, and checked again after fifteen.
pub(super) const EMPTY_AFTER: Duration = Duration::from_secs(30);
/// The time between two searches for nodes to consolidate.
pub(super) const POLL: Duration = Duration::from_secs(10);

/// A node to launch: it stands for all types that hold its pods.
#[derive(Default)]
pub(super) struct Claim {
    used: Vec<u64>,
    /// The types, cheapest first.
    pub types: Vec<usize>,
    pods: Vec<usize>,
}

impl World<'_> {
    /// Binds a pod as kube-scheduler does: to the node with the most room (LeastAllocated). Without room, it joins the batch.
    pub(super) fn schedule(&mut self, pod: usize) {
        let Some(class) = self.works[pod].class else { return };
        let ready = |node: &usize| self.nodes[*node].ready <= self.now;
        let rooms = self.there.iter().copied().filter(ready).filter(|node| self.has_room(*node, class));
        let best = rooms.max_by_key(|node| (self.free_score(*node, class), Reverse(*node)));
        if let Some(node) = best {
            self.place(pod, node);
            return;
        }
        if self.pending.is_empty() {
            self.batch.0 = self.now;
        }
        self.pending.push(pod);
        self.batch.1 += 1;
        let closes = (self.now + BATCH_IDLE).min(self.batch.0 + BATCH_MAX).max(self.now);
        self.at(closes, Event::Close { batch: self.batch.1 });
    }

    fn has_room(&self, node: usize, class: usize) -> bool {
        let home = &self.nodes[node];
        home.is_open() && self.market.holds(home.offer, &home.used, class)
    }

    /// Returns how much of a node's CPU and memory would be free with the pod, in percent of each.
    fn free_score(&self, node: usize, class: usize) -> u64 {
        let (home, market) = (&self.nodes[node], self.market);
        let free = |at: usize| {
            let all = market.capacities[home.offer][at];
            all.saturating_sub(home.used[at] + market.requests[class][at]) * 100 / all.max(1)
        };
        u64::midpoint(free(market.cpu), free(market.memory))
    }

    /// Closes a batch, unless pods joined it since or its time is over already.
    pub(super) fn close(&mut self, batch: u64) {
        let is_last = batch == self.batch.1;
        if self.pending.is_empty() || !is_last && self.now < self.batch.0 + BATCH_MAX {
            return;
        }
        let mut pods = std::mem::take(&mut self.pending);
        pods.sort_by_key(|pod| (self.works[*pod].class.map(|class| self.market.size(class)), *pod));
        let mut claims: Vec<Claim> = Vec::new();
        for pod in pods {
            let Some(class) = self.works[pod].class else { continue };
            let ready = |node: &&usize| self.nodes[**node].ready <= self.now;
            let existing = self.there.iter().filter(ready).find(|node| self.has_room(**node, class));
            let starting = || {
                let starts = self.there.iter().filter(|node| !ready(node));
                let rooms = starts.filter(|node| self.has_room(**node, class));
                rooms.min_by_key(|node| (self.nodes[**node].pods.len(), **node))
            };
            if let Some(node) = existing.or_else(starting).copied() {
                self.place(pod, node);
            } else if self.cheapest(class).is_none() {
                self.waiting.push(class, pod);
            } else {
                self.claim(&mut claims, pod, class);
            }
        }
        let before = self.nodes.len();
        for claim in claims {
            match claim.types.iter().copied().find(|offer| self.allows(*offer)) {
                Some(offer) => {
                    let node = self.launch(offer);
                    claim.pods.into_iter().for_each(|pod| self.place(pod, node));
                }
                None => self.squeeze(claim.pods),
            }
        }
        if self.nodes.len() > before {
            self.give_room_from(before);
            self.try_again();
        }
    }

    /// Gives pods, for which limits allow no node together, room on nodes that start or a node of their own. The others wait.
    fn squeeze(&mut self, pods: Vec<usize>) {
        for pod in pods {
            let Some(class) = self.works[pod].class else { continue };
            match self.there.iter().copied().find(|node| self.has_room(*node, class)) {
                Some(node) => self.place(pod, node),
                None => self.own(pod, class),
            }
        }
    }

    /// Adds a pod to the claim with the fewest pods that can hold it, or else to a new one.
    pub(super) fn claim(&self, claims: &mut Vec<Claim>, pod: usize, class: usize) {
        let market = self.market;
        let mut order: Vec<usize> = (0..claims.len()).collect();
        order.sort_by_key(|at| (claims[*at].pods.len(), *at));
        for at in order {
            let claim = &mut claims[at];
            let holds = |offer: &usize| market.holds(*offer, &claim.used, class);
            let types: Vec<usize> = claim.types.iter().copied().filter(holds).collect();
            if !types.is_empty() {
                market.add(&mut claim.used, class);
                claim.types = types;
                claim.pods.push(pod);
                return;
            }
        }
        claims.push(Claim {
            used: market.requests[class].clone(),
            types: market.types[class].clone(),
            pods: vec![pod],
        });
    }
}
