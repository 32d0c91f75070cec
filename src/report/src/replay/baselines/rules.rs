//! The rules that place one pod at a time.

use std::time::Duration;

use poolwright_core::Ends;

use super::world::World;

/// The expected time from the launch of a node until its pod runs.
const EXPECTED_START: Duration = Duration::from_secs(115);

impl World<'_> {
    /// Returns the smallest node with room, whatever it costs. A pod without GPUs goes to nodes without GPUs first.
    pub(super) fn best_fit(&self, class: usize) -> Option<usize> {
        let market = self.market;
        let gpus = |offer: usize| market.gpus.map_or(0, |at| market.capacities[offer][at]);
        let key = |node: &usize| {
            let offer = self.nodes[*node].offer;
            (gpus(offer), market.capacities[offer][market.cpu], *node)
        };
        self.rooms(class).min_by_key(key)
    }

    /// Returns the node with room whose life the pod is expected to extend at the lowest cost, if that is less than the cost of a
    /// node of its own.
    pub(super) fn cheapest_extension(&mut self, pod: usize, class: usize) -> Option<usize> {
        let rooms: Vec<usize> = self.rooms(class).collect();
        let life = self.life(pod);
        let around = (EXPECTED_START + self.market.idle).as_millis();
        let paid = life.mean().as_millis().unsigned_abs() + around;
        // A pod for which no node can be bought takes any room.
        let own = self.cheapest(class).map(|own| self.market.prices[own].micros());
        let mut least = own.map_or(u128::MAX, |own| u128::from(own) * paid);
        let mut best = None;
        for node in rooms {
            let others: Vec<_> =
                self.nodes[node].pods.clone().into_iter().map(|other| self.life(other)).collect();
            let offer = self.nodes[node].offer;
            // A node that a static pool keeps is paid in any case.
            let extension = if self.market.is_kept(offer) {
                0
            } else {
                Ends::of(&others).extension(&life).as_millis().unsigned_abs()
            };
            let price = self.market.prices[offer];
            // Among nodes whose life stays as it is, the cheapest is taken.
            let cost = u128::from(price.micros()) * (extension + 1);
            if cost < least {
                (best, least) = (Some(node), cost);
            }
        }
        best
    }

    /// Returns a node of a static pool that holds a pod and has none.
    pub(super) fn unused(&self, class: usize) -> Option<usize> {
        self.rooms(class).find(|node| {
            let home = &self.nodes[*node];
            self.market.is_kept(home.offer) && home.pods.is_empty()
        })
    }

    /// Returns the nodes with room for a pod, also those that start.
    fn rooms(&self, class: usize) -> impl Iterator<Item = usize> {
        self.there.iter().copied().filter(move |node| {
            let home = &self.nodes[*node];
            home.is_open() && self.market.holds(home.offer, &home.used, class)
        })
    }
}
