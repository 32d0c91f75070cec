//! The limits of pools, as the methods keep them: a node is bought only if all limits have enough left, and counts until it is gone.

use super::world::World;

/// The most waiting pods that join a batch at a time. A batch that buys a node is followed by the next.
const MOST_PER_BATCH: usize = 100;

impl World<'_> {
    /// Returns whether the limits allow one more node of a type.
    pub(super) fn allows(&self, offer: usize) -> bool {
        self.market.uses[offer].iter().all(|(limit, amount)| *amount <= self.left[*limit])
    }

    /// Returns the cheapest type that holds a pod of the class and that limits allow.
    pub(super) fn cheapest(&self, class: usize) -> Option<usize> {
        self.market.types[class].iter().copied().find(|offer| self.allows(*offer))
    }

    /// Counts a new node to the limits.
    pub(super) fn use_limits(&mut self, offer: usize) {
        for (limit, amount) in &self.market.uses[offer] {
            self.left[*limit] = self.left[*limit].saturating_sub(*amount);
        }
    }

    /// Counts a node off that is gone, and tries the waiting pods again.
    pub(super) fn free_limits(&mut self, node: usize) {
        for (limit, amount) in &self.market.uses[self.nodes[node].offer] {
            self.left[*limit] += amount;
        }
        self.try_again();
    }

    /// Tries the pods again that wait for a limit. If one of a class has to wait again, so do the others of that class.
    pub(super) fn try_again(&mut self) {
        let before = self.nodes.len();
        let (mut turns, mut batched) = (self.waiting.turns(), 0);
        while batched < MOST_PER_BATCH
            && let Some(class) = turns.next_class()
        {
            if self.cheapest(class).is_none() {
                continue;
            }
            let Some(pod) = self.waiting.take(class, &mut turns) else { continue };
            let pending = self.pending.len();
            self.arrive(pod);
            batched += self.pending.len() - pending;
        }
        self.give_room_from(before);
    }

    /// Gives the room of the nodes from this number on, which are new, to pods for which limits allow no further node.
    pub(super) fn give_room_from(&mut self, first: usize) {
        for node in first..self.nodes.len() {
            if self.waiting.is_empty() {
                return;
            }
            self.give_room(node);
        }
    }
}
