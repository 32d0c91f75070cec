//! Preparation: turns the current cluster into the cluster to plan for.

use std::borrow::Cow;

use jiff::Timestamp;

use crate::demand::volumes::Volumes;
use crate::demand::{self, ForecastOptions, NodesWanted, Successor, profiles, volumes};
use crate::model::plan::DeferredPods;
use crate::model::{PlanOptions, Snapshot};
use crate::plan::order_replicas::{self, Ordered};
use crate::supply::commitments;

/// The steps of preparation.
///
/// Each step sees the results of earlier steps, so their order matters:
///
/// 1. Expected pods come first, because all later steps treat them like existing pods.
/// 2. Claims of static pools are created before pods are placed, so that pods can use their room. These claims use commitments,
///    so this step comes before the next.
/// 3. Commitments are reduced by the amounts that nodes and claims use. No later step adds a claim.
/// 4. Profiles add the rules of each pod's scheduler, and do so for expected pods too.
/// 5. Volumes come last, because they add requirements to the pod's final spec.
const STEPS: [fn(&mut Prepared<'_>); 5] =
    [foresee_demand, order_replicas, subtract_commitments, apply_profiles, resolve_volumes];

/// The inputs of a plan after preparation.
pub(crate) struct Prepared<'a> {
    pub now: Timestamp,
    /// The cluster to plan for.
    pub snapshot: Cow<'a, Snapshot>,
    /// The options, with the amounts left of commitments.
    pub options: Cow<'a, PlanOptions>,
    /// The time at which the first expectation of a demand source ends.
    pub believed_until: Option<Timestamp>,
    /// Pods on disrupted nodes, and their successors.
    pub successors: Vec<Successor>,
    /// The expected pods that are too many to plan for now.
    pub deferred: Vec<DeferredPods>,
    /// Nodes that static pools lack.
    nodes: Vec<NodesWanted>,
    /// The claims for static pools.
    pub ordered: Ordered,
    /// Volumes of pending pods.
    pub volumes: Volumes,
}

/// Runs all steps.
pub(crate) fn prepare<'a>(snapshot: &'a Snapshot, now: Timestamp, options: &'a PlanOptions) -> Prepared<'a> {
    let mut prepared = Prepared {
        now,
        snapshot: Cow::Borrowed(snapshot),
        options: Cow::Borrowed(options),
        believed_until: None,
        successors: Vec::new(),
        deferred: Vec::new(),
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
    prepared.deferred = foreseen.deferred;
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
