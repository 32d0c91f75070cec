//! Preparation: from the cluster as it is to the cluster that is planned for.

use std::borrow::Cow;

use jiff::Timestamp;

use crate::demand::volumes::Volumes;
use crate::demand::{self, ForecastOptions, NodesWanted, Successor, profiles, volumes};
use crate::model::{PlanOptions, Snapshot};
use crate::plan::order_replicas::{self, Ordered};
use crate::supply::commitments;

/// The steps of preparation.
///
/// Each step sees what the steps before it did, so their order matters:
///
/// 1. Foreseen pods come first: all later steps treat them as they treat pods that exist.
/// 2. Nodes of static pools are ordered before anything is placed, so that pods find them as room on its way. Their claims use
///    commitments, so this comes before commitments are counted.
/// 3. Commitments are counted once all claims are known. No later step adds a claim.
/// 4. Profiles add the rules of a pod's scheduler. Foreseen pods need those rules too.
/// 5. Volumes come last: they narrow the pod's spec as the other steps left it, and no step may replace the spec after that.
const STEPS: [fn(&mut Prepared<'_>); 5] =
    [foresee_demand, order_replicas, subtract_commitments, apply_profiles, resolve_volumes];

/// What a plan is made from.
pub(crate) struct Prepared<'a> {
    pub now: Timestamp,
    /// The cluster that is planned for.
    pub snapshot: Cow<'a, Snapshot>,
    /// The options, with what is left of commitments.
    pub options: Cow<'a, PlanOptions>,
    /// Until when the sources of demand believe what they foresaw.
    pub believed_until: Option<Timestamp>,
    /// Pods whose nodes are emptied, and what is made in their place.
    pub successors: Vec<Successor>,
    /// Nodes that static pools lack.
    nodes: Vec<NodesWanted>,
    /// What is ordered for static pools.
    pub ordered: Ordered,
    /// What the volumes of waiting pods mean.
    pub volumes: Volumes,
}

/// Takes all steps.
pub(crate) fn prepare<'a>(snapshot: &'a Snapshot, now: Timestamp, options: &'a PlanOptions) -> Prepared<'a> {
    let mut prepared = Prepared {
        now,
        snapshot: Cow::Borrowed(snapshot),
        options: Cow::Borrowed(options),
        believed_until: None,
        successors: Vec::new(),
        nodes: Vec::new(),
        ordered: Ordered::default(),
        volumes: Volumes::default(),
    };
    for step in STEPS {
        step(&mut prepared);
    }
    prepared
}

fn foresee_demand(prepared: &mut Prepared<'_>) {
    let options = &prepared.options;
    let outlook = ForecastOptions {
        now: prepared.now,
        lowest_priority: options.min_priority.unwrap_or(i32::MIN),
        scheduler: options.schedulers.first().map_or("", String::as_str),
    };
    let foreseen = demand::foresee(&prepared.snapshot, &outlook);
    prepared.believed_until = foreseen.believed_until;
    prepared.successors = foreseen.successors;
    prepared.nodes = foreseen.nodes;
    if let Cow::Owned(snapshot) = foreseen.snapshot {
        prepared.snapshot = Cow::Owned(snapshot);
    }
}

fn order_replicas(prepared: &mut Prepared<'_>) {
    let Prepared { now, snapshot, options, nodes, .. } = prepared;
    prepared.ordered = order_replicas::order(snapshot, nodes, *now, options);
}

fn subtract_commitments(prepared: &mut Prepared<'_>) {
    commitments::subtract_used(&prepared.snapshot, &mut prepared.options);
}

fn apply_profiles(prepared: &mut Prepared<'_>) {
    profiles::apply(&mut prepared.snapshot, &prepared.options);
}

fn resolve_volumes(prepared: &mut Prepared<'_>) {
    prepared.volumes = volumes::resolve(&mut prepared.snapshot);
}
