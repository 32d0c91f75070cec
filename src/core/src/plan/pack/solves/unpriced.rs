//! A plan that begins with nodes at unknown prices, if a plan that buys at known prices first leaves out pods that it serves.
//!
//! Nodes at known prices may take what a node at an unknown price needs of a limit. A solver call that knows both serves as many pods
//! as it can. There, a node at an unknown price costs as much as many of the dearest nodes. So it buys few of them, but not always the
//! fewest: a node that is paid for longer costs more, and the price is capped. The plan then begins with these nodes, and goes on as usual.

use std::collections::VecDeque;

use poolwright_catalog::UsdPerHour;
use poolwright_solver::{Proof, StopSignal};

use crate::plan::pack::room_lives::RoomLife;
use crate::plan::pack::solves::candidates::NodeCandidate;
use crate::plan::pack::solves::packing::NewNode;
use crate::plan::pack::solves::pass::Run;
use crate::plan::pack::solves::tiers::{Tiers, WayNode};
use crate::supply::limits::Limits;
use crate::supply::rooms::Rooms;

/// The value used for every unknown price, so that the number of nodes is minimized.
pub(crate) const NOMINAL: UsdPerHour = UsdPerHour::from_micros(UsdPerHour::MICROS_PER_USD);
/// A node at an unknown price counts as much as so many of the dearest nodes, or as one for each pod if there are fewer pods. Numbers
/// stay small enough for the solver.
const DEAREST: usize = 1_000;

impl<'n> Run<'_, '_, '_, 'n> {
    /// Serves more pods, the highest priority first, if a plan that begins with nodes at unknown prices does. `rooms`, `lives` and
    /// `limits` are those before the plan.
    pub(crate) fn begin_unpriced(
        &mut self,
        (tiers, unpriced): (&Tiers<'_>, &Tiers<'_>),
        (rooms, lives, limits): (&Rooms<'n>, &[Option<RoomLife>], &Limits),
        stop: &mut dyn StopSignal,
    ) {
        if !self.waits_within(&[tiers, unpriced], limits) {
            return;
        }
        let pods: usize = self.inputs.classes.classes.iter().map(|class| class.pods.len()).sum();
        let dearest = tiers.candidates.iter().map(|one| one.price).max().unwrap_or_default();
        let price = dearest.times(pods.min(DEAREST) as u64) + NOMINAL;
        let dear = unpriced.candidates.iter().map(|one| NodeCandidate { price, ..one.clone() });
        let all: Vec<NodeCandidate> = tiers.candidates.iter().cloned().chain(dear).collect();
        let (mut rooms_left, mut limits_left) = (rooms.clone(), limits.clone());
        let mut search = Run::new(self.inputs, &mut rooms_left, lives.to_vec(), &mut limits_left);
        let is_found = search.pass(&tiers.joined(unpriced, &all), None, false, stop);
        if !is_found || !search.leaves_less_than(self) || stop.is_abandoned() {
            return;
        }
        let first = tiers.candidates.len();
        let of_unpriced = |node: &NewNode<'_>| {
            let candidate = node.candidate.checked_sub(first)?;
            let pods = node.content.iter().map(|(class, count)| (*class, *count)).collect();
            Some(WayNode { candidate, pods })
        };
        let nodes: Vec<WayNode> = search.outcome.new.iter().filter_map(of_unpriced).collect();
        // With several rounds, the bound is for the steps of one plan.
        let is_proven = search.outcome.proof == Some(Proof::Exact) && tiers.rounds() == 1;
        let (mut rooms_left, mut limits_left) = (rooms.clone(), limits.clone());
        let mut other = Run::new(self.inputs, &mut rooms_left, lives.to_vec(), &mut limits_left);
        let is_kept =
            other.buy_unpriced(nodes, unpriced, stop) && other.pass(tiers, Some(unpriced), false, stop);
        if !is_kept || !other.leaves_less_than(self) {
            return;
        }
        if !is_proven {
            // Other nodes at unknown prices may leave less to buy.
            (other.outcome.bound, other.outcome.proof) = (UsdPerHour::ZERO, Some(Proof::Truncated));
        }
        self.become_like(other);
    }
}

impl Run<'_, '_, '_, '_> {
    /// Returns whether the pass leaves out fewer pods of the highest priority in which it differs from another one.
    fn leaves_less_than(&self, other: &Run<'_, '_, '_, '_>) -> bool {
        self.rank().0.0 < other.rank().0.0
    }

    /// Buys nodes at unknown prices. Returns false if that breaks a rule.
    fn buy_unpriced(&mut self, nodes: Vec<WayNode>, unpriced: &Tiers<'_>, stop: &mut dyn StopSignal) -> bool {
        let mut later: Vec<usize> = self.queues.iter().map(VecDeque::len).collect();
        for (class, count) in nodes.iter().flat_map(|node| &node.pods) {
            later[*class] = later[*class].saturating_sub(*count as usize);
        }
        self.admit_rooms();
        let aside = self.set_aside(Some(later));
        self.given = Some(nodes);
        let admitted = |class: usize| unpriced.without_preferences(class);
        let is_kept = self.round(unpriced.candidates, |_| true, admitted, false, false, stop);
        self.given = None;
        self.put_back(aside);
        is_kept
    }
}
