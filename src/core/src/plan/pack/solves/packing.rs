//! The result of packing: the nodes to buy, the pods on existing nodes, and the pods that are left out.

use std::collections::{BTreeMap, BTreeSet};

use poolwright_catalog::{ResourceList, UsdPerHour};
use poolwright_solver::Proof;

use crate::model::Pod;
use crate::model::baseline::Baselines;
use crate::model::plan::{CommitmentUse, PlannedGpu, Solve};
use crate::plan::place::topology::Assigned;
use crate::plan::spot_rule::SpotRule;
use crate::rules::colocation::Present;
use crate::rules::gpus::GpuForm;
use crate::supply::offerings::PoolOffering;

/// One node to buy.
#[derive(Clone, Debug)]
pub(crate) struct NewNode<'a> {
    /// Index into the candidates of its solver call.
    pub candidate: usize,
    /// Index into [`crate::supply::offerings::Supply::pools`].
    pub pool: usize,
    pub offer: PoolOffering,
    /// The number of pods by class.
    pub content: BTreeMap<usize, u32>,
    pub pods: Vec<&'a Pod>,
    pub form: GpuForm,
    pub gpus: Vec<PlannedGpu>,
    /// What it counts with in the limits: at least what it uses, and more if its launch may become a larger node.
    pub uses: Vec<(u32, u64)>,
    /// Whether it leaves the cloud a choice that further pods could take away.
    pub leaves_choice: bool,
    /// The resources that its pods leave.
    pub free: ResourceList,
    /// The pods on it, as colocation rules count them.
    pub present: Present,
}

/// The result of packing.
#[derive(Debug, Default)]
pub(crate) struct Packing<'a> {
    pub new: Vec<NewNode<'a>>,
    /// Pods on existing nodes, with the index into [`crate::supply::rooms::Rooms::all`].
    pub on_rooms: Vec<(usize, &'a Pod)>,
    /// Unplaced pods, by class.
    pub left: Vec<Vec<&'a Pod>>,
    /// The limit that excluded the last unplaced pod, by class.
    pub limit: Vec<Option<u32>>,
    /// The rule on spot nodes that excluded the last unplaced pod, by class.
    pub spot_rule: Vec<Option<SpotRule>>,
    /// The classes with pods that lost their place in the layout of GPUs. They fit another node, so only a limit keeps them from it.
    pub without_layout: BTreeSet<usize>,
    /// Limits that kept a pod out of its preferred pools.
    pub limits_reached: BTreeSet<u32>,
    pub bound: UsdPerHour,
    /// The solver's objective, for offerings with known prices.
    pub objective: UsdPerHour,
    /// Whether objective and bound count costs over time.
    pub is_over_time: bool,
    /// The weakest proof of the solver calls that add to the bound; `None` if there were none.
    pub proof: Option<Proof>,
    pub baselines: Baselines,
    /// Whether a pod on a new node could also use pools of a lower weight.
    pub by_weight: bool,
    /// Whether a pod on a new node could also use offerings whose interruptions count.
    pub by_risk: bool,
    /// Whether new nodes are of a pool with rules on spot nodes.
    pub by_spot_rules: bool,
    /// Whether new nodes are of a pool with `minValues`.
    pub by_min_values: bool,
    /// Whether a pod on a new node, or a pod that is left out, has a topology spread over nodes.
    pub by_node_spread: bool,
    /// Whether pods were kept off nodes, to keep room free for pods without a cheaper home.
    pub by_kept_room: bool,
    /// Whether there are several steps, and pods on new nodes differ in priority.
    pub by_priority: bool,
    /// The number of tiers that bought nodes.
    pub steps: usize,
    /// The number of solver calls that bought nodes of offerings with known prices.
    pub calls: usize,
    /// What the solver counted for pods on their further choices. It is in none of the other figures.
    pub charged: UsdPerHour,
    /// The cost of the room whose use costs money.
    pub room_cost: UsdPerHour,
    /// The least count of each spread constraint over nodes, if it has risen because nothing more can be bought.
    pub least: Option<Vec<u64>>,
    pub refused: Vec<String>,
    pub stopped_early: bool,
    pub solves: Vec<Solve>,
    /// The amount that commitments pay.
    pub covered: UsdPerHour,
    /// The use of each commitment.
    pub commitments: Vec<CommitmentUse>,
}

impl<'a> Packing<'a> {
    /// Places bundled pods on the node of their leader.
    pub fn unite(&mut self, assigned: &Assigned<'a>) {
        if assigned.bundles.is_empty() {
            return;
        }
        let with = |pods: &[&'a Pod]| -> Vec<&'a Pod> {
            pods.iter().flat_map(|pod| assigned.with(&pod.key).iter().copied()).collect()
        };
        for node in &mut self.new {
            let more = with(&node.pods);
            node.pods.extend(more);
        }
        let followed = |(room, pod): &(usize, &'a Pod)| -> Vec<(usize, &'a Pod)> {
            assigned.with(&pod.key).iter().map(|follower| (*room, *follower)).collect()
        };
        let more: Vec<_> = self.on_rooms.iter().flat_map(followed).collect();
        self.on_rooms.extend(more);
        for left in &mut self.left {
            let more = with(left);
            left.extend(more);
        }
    }
}
