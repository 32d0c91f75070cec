//! Turns a plan into its document.

use std::collections::BTreeMap;
use std::fmt;

use poolwright_catalog::{Arch, RankedOffering, Usd, UsdPerHour};
use poolwright_core::plan::{LabelChoice, Plan, PlannedClaim, PlannedGpu, Target};
use poolwright_core::{ClaimName, PodKey, PoolName, Snapshot};
use poolwright_solver::Proof;
use poolwright_terms::Reason;

use super::document::{
    Baselines, CatalogueSummary, CommitmentUse, CostOverTime, Document, ExistingNode, GpuInstance, GpuShare,
    GpuUse, NewNode, PodCounts, Refusal, RelaxedPreference, RuleCost, UnitCounts, UnplacedPod,
};
use crate::Times;
use crate::money::six_decimals;

/// The form of pod names in a document.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PodNames {
    /// `namespace/name`.
    #[default]
    Qualified,
    /// The name alone, because a trace has no namespaces.
    Bare,
}

impl PodNames {
    /// Returns the name of one pod.
    pub fn name(self, pod: &PodKey) -> String {
        match self {
            Self::Qualified => pod.to_string(),
            Self::Bare => pod.name().into_owned(),
        }
    }
}

/// The content of the document besides the plan.
#[derive(Clone, Debug)]
pub struct DocumentContext<'a> {
    /// The snapshot that the plan is for.
    pub snapshot: &'a Snapshot,
    /// The offerings that the plan could choose.
    pub catalogue: CatalogueSummary,
    /// Objects that make pods, but are not read.
    pub unread: Vec<String>,
    /// Objects whose pods are bound to nodes that the input does not have.
    pub on_unknown_nodes: Vec<String>,
    /// Pods that an API server refuses to create.
    pub refused: Vec<Refusal>,
    /// Notes on how Poolwright understood the input.
    pub notes: Vec<String>,
    /// How to name pods.
    pub names: PodNames,
    /// Whether the plan counts the expected loss from interruptions of spot nodes.
    pub counts_risk: bool,
}

/// The independent check refused the plan. The error names the broken rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused(pub Vec<String>);

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the plan did not pass the independent check, so it is not shown; this is a bug of Poolwright, please \
             report it with your input: {}",
            self.0.join("; ")
        )
    }
}

impl std::error::Error for Refused {}

/// Returns the document of `plan`.
///
/// # Errors
///
/// If the independent check refuses the plan.
pub fn document(plan: Plan, context: DocumentContext<'_>, times: Times) -> Result<Document, Refused> {
    if !plan.refused.is_empty() {
        return Err(Refused(plan.refused));
    }
    let is_implicit = context.snapshot.has_implicit_pool();
    let pod = |key: &PodKey| context.names.name(key);
    // Pods wait for the nodes that a static pool buys in any case.
    let in_room_of = |claim: &PlannedClaim| {
        let target = Target::Claim(claim.name.clone());
        let there = plan.placements.iter().filter(move |placement| placement.target == target);
        there.map(|placement| &placement.pod)
    };
    let mut nodes: Vec<NewNode> = plan
        .claims
        .iter()
        .map(|claim| NewNode {
            instance_type: claim.offering().instance_type.to_string(),
            zone: claim.offering().zone.to_string(),
            capacity_type: claim.offering().capacity_type,
            usd_per_hour: claim.price(),
            // The pool that stands for the whole catalogue is not yours.
            pool: (!is_implicit).then(|| claim.pool.to_string()),
            pods: claim.planned_pods.iter().chain(in_room_of(claim)).map(pod).collect(),
            units: plan.units_on.get(&claim.name).copied().unwrap_or(0),
            gpus: claim.gpus.iter().map(|gpu| gpu_use(gpu, &pod)).collect(),
        })
        .collect();
    nodes.sort_by(|a, b| {
        let key = |node: &NewNode| (node.instance_type.clone(), node.zone.clone(), node.capacity_type);
        key(a).cmp(&key(b)).then_with(|| (&a.pool, &a.pods).cmp(&(&b.pool, &b.pods)))
    });
    let mut existing: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for placement in plan.placements.iter().filter(|one| !plan.buys(&one.target)) {
        let (Target::Claim(ClaimName(name)) | Target::Node(name)) = &placement.target;
        existing.entry(name.clone()).or_default().push(pod(&placement.pod));
    }
    let gap = six_decimals(plan.gap());
    let mut notes = context.notes;
    if plan.unknown_price_claims > 0 {
        notes.push(format!(
            "{} an unknown price, which the pool allows; neither the cost nor the bound counts it",
            have(plan.unknown_price_claims)
        ));
    }
    // A bound of zero says nothing about a plan that costs something.
    let is_zero = plan.over_time.map_or(plan.bound == UsdPerHour::ZERO, |all| all.bound == Usd::default());
    let is_unbounded = is_zero && plan.proof != Proof::Exact;
    let holds = if is_unbounded { "" } else { "; the lower bound holds with these" };
    if plan.pinned_pods > 0 {
        notes.push(format!(
            "rules about other pods decided the places of {} (zones, nodes to share) first{holds}",
            pods(plan.pinned_pods)
        ));
    }
    if plan.steered_pods > 0 {
        notes.push(format!(
            "preferences of {} influenced the choice of {}{holds}",
            pods(plan.steered_pods),
            if plan.steered_pods == 1 { "its node" } else { "their nodes" }
        ));
    }
    notes.extend(choices(&plan));
    notes.extend(arm(&plan, context.snapshot).filter(|_| is_implicit));
    for (name, findings) in &plan.pools {
        let problems = [&findings.invalid, &findings.node_class].into_iter().flatten();
        notes.extend(problems.map(|(reason, message)| format!("pool {name}: {reason}: {message}")));
        let shared = findings.shares_gpus.as_ref();
        notes.extend(shared.map(|message| format!("pool {name}: {}: {message}", Reason::GpusShared)));
        notes.extend(findings.units_chosen.iter().map(|chosen| format!("pool {name}: {chosen}")));
        let left = findings.buffer_unmet.iter().chain(&findings.buffer_left);
        notes.extend(left.map(|message| format!("pool {name}: {message}")));
        // Pods and units that a limit leaves out name it. Missing replicas are not listed.
        let is_static = context.snapshot.pools.get(name).is_some_and(|pool| pool.replicas.is_some());
        let limit = findings.limit_reached.as_ref().filter(|_| is_static);
        notes.extend(limit.map(|message| format!("pool {name}: {message}")));
    }
    let counts = plan.counts;
    let pools = &context.snapshot.pools;
    let is_static =
        |claim: &&PlannedClaim| pools.get(&claim.pool).is_some_and(|pool| pool.replicas.is_some());
    Ok(Document {
        api_version: poolwright_terms::API_VERSION,
        kind: "Plan",
        cost_usd_per_hour: plan.cost,
        risk_usd_per_hour: (context.counts_risk || plan.risk > UsdPerHour::ZERO).then_some(plan.risk),
        lower_bound_usd_per_hour: plan.bound_of_moment(),
        over_time: plan.over_time.map(|all| CostOverTime { usd: all.cost, lower_bound_usd: all.bound }),
        gap,
        pinned_pods: plan.pinned_pods,
        steered_pods: plan.steered_pods,
        unpriced_types: 0,
        proof: plan.proof,
        elapsed_seconds: times.elapsed_seconds(),
        first_plan_seconds: times.first_plan_seconds(),
        pods: PodCounts {
            total: counts.total,
            placed: counts.on_existing + counts.on_new,
            unplaced: counts.unplaced,
            expected: counts.expected,
        },
        units: UnitCounts {
            total: counts.units,
            placed: counts.units - counts.units_unplaced,
            unplaced: counts.units_unplaced,
        },
        static_nodes: plan.claims.iter().filter(is_static).count(),
        nodes,
        existing_nodes: existing.into_iter().map(|(name, pods)| ExistingNode { name, pods }).collect(),
        unplaced: plan
            .unplaced
            .iter()
            .map(|left| UnplacedPod {
                pod: pod(&left.pod),
                reason: left.reason.reason(),
                message: left.message.clone(),
            })
            .collect(),
        relaxed_preferences: plan
            .relaxed
            .iter()
            .map(|relaxed| RelaxedPreference {
                preference: relaxed.preference.clone(),
                reason: relaxed.why,
                message: relaxed.why.words().to_owned(),
                pods: relaxed.pods.iter().map(pod).collect(),
            })
            .collect(),
        baselines: Baselines {
            one_pod_per_node: plan.baselines.one_pod_per_node,
            first_fit: plan.baselines.first_fit,
        },
        rules: plan
            .rules
            .iter()
            .map(|of| RuleCost {
                rule: of.rule,
                usd_per_hour: of.cost,
                at_least: of.at_least,
                at_most: of.at_most,
                risk_without: of.risk,
            })
            .collect(),
        in_steps: plan.in_steps,
        commitments: plan
            .commitments
            .iter()
            .map(|of| CommitmentUse {
                name: of.name.clone(),
                usd_per_hour: of.left,
                used_usd_per_hour: of.used,
                existing_usd_per_hour: None,
            })
            .collect(),
        explanation: None,
        unread: context.unread,
        on_unknown_nodes: context.on_unknown_nodes,
        refused: context.refused,
        catalogue: context.catalogue,
        notes,
    })
}

fn gpu_use(gpu: &PlannedGpu, name: &impl Fn(&PodKey) -> String) -> GpuUse {
    match gpu {
        PlannedGpu::Idle => GpuUse::Idle,
        PlannedGpu::Whole(pod) => GpuUse::Whole { pod: name(pod) },
        PlannedGpu::Shared(on) => GpuUse::Shared {
            pods: on.iter().map(|share| GpuShare { pod: name(&share.pod), milli: share.milli }).collect(),
        },
        PlannedGpu::Mig(instances) => GpuUse::Mig {
            instances: instances
                .iter()
                .map(|one| GpuInstance { start: one.start, profile: one.name.clone(), pod: name(&one.pod) })
                .collect(),
        },
    }
}

/// Returns a note if nodes to buy have arm64 processors. Pods seldom say which processors their images support, and without a
/// pool nothing else restricts them.
fn arm(plan: &Plan, snapshot: &Snapshot) -> Option<String> {
    let is_arm = |claim: &&PlannedClaim| {
        let kinds =
            snapshot.catalogues.values().flatten().filter_map(|all| all.instance_type(claim.instance_type()));
        kinds.take(1).any(|kind| kind.arch == Arch::Arm64)
    };
    let count = plan.claims.iter().filter(is_arm).count();
    (count > 0).then(|| {
        format!(
            "{} arm64 processors, which the pods do not rule out; a NodePool can (kubernetes.io/arch)",
            have(count)
        )
    })
}

/// Formats a number of pods: `1 pod`, `2 pods`.
fn pods(count: usize) -> String {
    if count == 1 { "1 pod".to_owned() } else { format!("{count} pods") }
}

/// Returns the subject of a sentence about new nodes: `1 node has`, `2 nodes have`.
fn have(nodes: usize) -> String {
    if nodes == 1 { "1 node has".to_owned() } else { format!("{nodes} nodes have") }
}

/// The most instance types of a choice that a note names.
const TYPES_SHOWN: usize = 6;

/// Describes the choice that launches leave to the cloud (`minValues`), once for each kind of node.
fn choices(plan: &Plan) -> Vec<String> {
    let mut nodes: BTreeMap<(&PoolName, &[LabelChoice], &[RankedOffering]), usize> = BTreeMap::new();
    for claim in plan.claims.iter().filter(|claim| !claim.choice.is_empty()) {
        let called = &claim.offerings[..claim.together.max(1)];
        *nodes.entry((&claim.pool, &claim.choice, called)).or_default() += 1;
    }
    let sentence =
        |((pool, choice, called), count): ((&PoolName, &[LabelChoice], &[RankedOffering]), usize)| {
            let choice: Vec<String> = choice.iter().map(ToString::to_string).collect();
            let mut types: Vec<&str> = Vec::new();
            for one in called {
                let name = one.offering.instance_type.as_str();
                if !types.contains(&name) {
                    types.push(name);
                }
            }
            let more = types.len().saturating_sub(TYPES_SHOWN);
            types.truncate(TYPES_SHOWN);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            let dearest = called.iter().filter_map(|one| one.price).max();
            let dearest = dearest.filter(|most| called[0].price.is_some_and(|price| *most > price));
            let dearest = dearest.map_or_else(String::new, |price| format!("; the dearest costs {price:#}"));
            let nodes = if count == 1 { "1 node".to_owned() } else { format!("{count} nodes") };
            format!(
                "{nodes} of pool `{pool}`: the cloud may choose among {} ({}{more}{dearest})",
                choice.join(", and "),
                types.join(", ")
            )
        };
    nodes.into_iter().map(sentence).collect()
}
