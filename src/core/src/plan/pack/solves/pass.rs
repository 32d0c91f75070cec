//! One pass through all tiers: what it has placed and bought so far, and the pods that wait.

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};
use std::mem;
use std::sync::Arc;

use poolwright_catalog::UsdPerHour;
use poolwright_solver::{BitSet, Problem, Proof};

use crate::model::Pod;
use crate::model::plan::CommitmentUse;
use crate::plan::pack::room_lives::RoomLife;
use crate::plan::pack::solves::inputs::SolveInputs;
use crate::plan::pack::solves::packing::Packing;
use crate::plan::pack::solves::tiers::WayNode;
use crate::rules;
use crate::rules::colocation::Colocation;
use crate::rules::gpus::GpuNeed;
use crate::supply::limits::Limits;
use crate::supply::rooms::{Room, Rooms};

/// The problem of a tier whose solution would have spot nodes too early, so that others come first.
pub(crate) struct Floored {
    /// The problem, without the floors that make spot nodes wait.
    pub problem: Problem,
    /// The classes of its pods.
    pub classes: Vec<usize>,
    /// A bound for plans that place as many pods as a solution of the problem, and its proof.
    pub bound: (UsdPerHour, Proof),
}

/// A pass through all tiers: what it has placed and bought so far, and the pods that wait.
pub(crate) struct Run<'r, 's, 'a, 'n> {
    pub inputs: &'r SolveInputs<'s, 'a>,
    /// The rules about pods on one node. Least counts of spread constraints may rise at the end.
    pub colocation: Cow<'r, Colocation<'a>>,
    pub rooms: &'r mut Rooms<'n>,
    /// The rooms whose use costs money, with their ends.
    pub lives: Vec<Option<RoomLife>>,
    pub limits: &'r mut Limits,
    /// The signatures that each room admits.
    pub room_admits: Vec<BitSet>,
    /// Pods not placed yet, by class.
    pub queues: Vec<VecDeque<&'a Pod>>,
    /// The value of a pod, by class, if a limit leaves some out; empty if all are worth the same.
    pub worth: Vec<u64>,
    /// The pods that each round placed, by class.
    pub served: Vec<Vec<usize>>,
    /// The pods that the first solve of each round leaves to later rounds, by class, for the rounds to come.
    pub later: VecDeque<Vec<usize>>,
    /// What a pod is charged on its further choices, by class and candidate, if all tiers are solved together; else empty.
    pub charges: Vec<BTreeMap<usize, UsdPerHour>>,
    /// The nodes that the next solver call buys, without a search.
    pub given: Option<Vec<WayNode>>,
    /// Whether another choice of the pods that a round serves might be better.
    pub contested: bool,
    /// Whether each pod of a gang counts with the loss of the whole gang, instead of a share.
    pub counts_whole_gangs: bool,
    /// What replaces the solution of the first round of a tier because of a floor, if something does.
    pub floored: Option<Floored>,
    pub outcome: Packing<'a>,
}

impl<'r, 's, 'a, 'n> Run<'r, 's, 'a, 'n> {
    pub fn new(
        inputs: &'r SolveInputs<'s, 'a>,
        rooms: &'r mut Rooms<'n>,
        lives: Vec<Option<RoomLife>>,
        limits: &'r mut Limits,
    ) -> Self {
        let classes = &inputs.classes.classes;
        let commitments = inputs.options.commitments.iter().map(|terms| CommitmentUse {
            name: terms.name.clone(),
            left: terms.left,
            used: UsdPerHour::ZERO,
        });
        Self {
            inputs,
            colocation: Cow::Borrowed(inputs.colocation),
            rooms,
            lives,
            limits,
            room_admits: Vec::new(),
            queues: classes.iter().map(|class| class.pods.iter().copied().collect()).collect(),
            worth: Vec::new(),
            served: Vec::new(),
            later: VecDeque::new(),
            charges: Vec::new(),
            given: None,
            contested: false,
            counts_whole_gangs: false,
            floored: None,
            outcome: Packing {
                limit: vec![None; classes.len()],
                spot_rule: vec![None; classes.len()],
                commitments: commitments.collect(),
                ..Packing::default()
            },
        }
    }
}

impl<'a, 'n> Run<'_, '_, 'a, 'n> {
    /// Takes over the result of another pass.
    pub fn become_like(&mut self, other: Run<'_, '_, 'a, 'n>) {
        mem::swap(self.rooms, other.rooms);
        mem::swap(self.limits, other.limits);
        (self.lives, self.queues) = (other.lives, other.queues);
        (self.served, self.outcome) = (other.served, other.outcome);
    }
}

impl Run<'_, '_, '_, '_> {
    /// Works out which signatures each room admits.
    pub fn admit_rooms(&mut self) {
        let signatures = self.inputs.classes.signatures.len();
        let admits = |room: &Arc<Room<'_>>| {
            let mut bits = BitSet::new(signatures);
            for signature in (0..signatures).filter(|signature| self.inputs.admits(room, *signature)) {
                bits.insert(signature);
            }
            bits
        };
        self.room_admits = self.rooms.all.iter().map(admits).collect();
    }

    /// Returns the number of unplaced pods.
    pub fn waiting(&self) -> usize {
        self.queues.iter().map(VecDeque::len).sum()
    }

    /// Returns the rooms that fit a pod of the class.
    pub fn on_rooms(&self, number: usize) -> impl Iterator<Item = usize> {
        let class = &self.inputs.classes.classes[number];
        // It is unknown how an existing node could share or repartition its GPUs, so pods get only whole GPUs there.
        let possible = matches!(class.gpu_need, None | Some(GpuNeed::Whole(_)));
        (0..self.rooms.all.len()).filter(move |room| {
            possible
                && self.room_admits[*room].contains(class.signature)
                && self.lives[*room].as_ref().is_none_or(|life| !life.kept_off.contains(&number))
                && rules::is_host(class.spec, &self.rooms.all[*room].labels)
                && class.on_whole().fits(&self.rooms.all[*room].free)
                && self.colocation.admits(class.profile, &self.rooms.all[*room].present)
        })
    }

    /// Returns the nodes bought so far that fit another pod of the class.
    pub fn on_new(&self, class: usize) -> impl Iterator<Item = usize> {
        let class = &self.inputs.classes.classes[class];
        (0..self.outcome.new.len()).filter(move |at| {
            let node = &self.outcome.new[*at];
            class.gpu_need.is_none()
                && !node.leaves_choice
                && self.inputs.admissions.admits(node.pool, class.signature, node.offer.offering)
                && class.requests.fits(&node.free)
                && self.colocation.admits(class.profile, &node.present)
        })
    }
}
