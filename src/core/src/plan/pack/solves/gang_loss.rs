//! The losses of gangs on spot nodes. The solver adds up the losses of pods, so it counts shares of the loss of a gang, which may be
//! too low: on nodes that are partly full, or for pods without GPUs on nodes of their own. If they are, another pass counts the whole
//! loss for each pod, and the passes are compared by their exact losses.

use poolwright_catalog::UsdPerHour;
use poolwright_solver::problem::risk;

use crate::plan::pack::solves::candidates::most_of;
use crate::plan::pack::solves::packing::NewNode;
use crate::plan::pack::solves::pass::Run;
use crate::supply::interruption_risk;
use crate::supply::offerings::PoolOffering;

impl Run<'_, '_, '_, '_> {
    /// Returns the loss that the solver counts for a pod on a new node, in micro-dollars.
    pub(crate) fn loss_on(&self, class: usize, pool: usize, offer: &PoolOffering) -> u64 {
        let (class, supply) = (&self.inputs.classes.classes[class], self.inputs.supply);
        if self.counts_whole_gangs {
            return class.loss.whole();
        }
        let fit = most_of(&class.requests, &supply.capacities[offer.capacity]);
        class.loss.on(supply.instance_type(pool, offer.offering), fit)
    }

    /// Returns the loss of new nodes per hour, as the solver counts it and as it is.
    fn losses_of_new(&self) -> (UsdPerHour, UsdPerHour) {
        let of = |node: &NewNode<'_>| {
            let offering = self.inputs.supply.offering(node.pool, node.offer.offering);
            let rate = interruption_risk::interruptions(self.inputs.options, offering);
            let count = |(class, pods): (&usize, &u32)| {
                risk(self.loss_on(*class, node.pool, &node.offer), rate).times(u64::from(*pods))
            };
            let with = node.content.keys().flat_map(|class| self.inputs.classes.classes[*class].with);
            let pods = node.pods.iter().chain(with).copied();
            let lost = self.inputs.losses.together(self.inputs.options, pods);
            (node.content.iter().map(count).sum::<UsdPerHour>(), risk(lost, rate))
        };
        let all = self.outcome.new.iter().map(of);
        all.fold((UsdPerHour::ZERO, UsdPerHour::ZERO), |sum, one| (sum.0 + one.0, sum.1 + one.1))
    }

    /// Returns whether the solver counted less than the new nodes lose. Costs over time count other rates, so they are not compared.
    pub(crate) fn undercounts(&self) -> bool {
        let (counted, lost) = self.losses_of_new();
        // Each pod is rounded.
        let pods: u64 = self.outcome.new.iter().map(|node| node.pods.len() as u64).sum();
        !self.outcome.is_over_time && lost > counted + UsdPerHour::from_micros(pods)
    }

    /// Returns whether this pass serves the same pods as another one and costs less, with the losses as they are.
    pub(crate) fn is_better_than(&self, other: &Self) -> bool {
        let is_same = !self.outcome.is_over_time && self.rank().0 == other.rank().0;
        is_same && self.cost() < other.cost()
    }

    /// Returns the objective, with the losses of gangs as they are. Costs over time count other rates, so they stay as they are.
    pub(crate) fn cost(&self) -> UsdPerHour {
        if self.outcome.is_over_time {
            return self.outcome.objective;
        }
        let (counted, lost) = self.losses_of_new();
        (self.outcome.objective + lost).saturating_sub(counted)
    }
}
