//! The plan of the core as the document we publish.

use std::collections::BTreeMap;

use poolwright_catalog::Arch;
use poolwright_core::plan::{Plan, PlannedClaim, PlannedGpu, Target};
use poolwright_core::{PodKey, Snapshot};

use super::{Input, PodNames};
use crate::budget::Times;
use crate::document::{
    Baselines, CommitmentUse, Document, ExistingNode, GpuInstance, GpuShare, GpuUse, NewNode, PodCounts,
    RelaxedPreference, UnplacedPod, gap, six_decimals,
};
use crate::exit::Failure;

/// The document of `plan`.
///
/// # Errors
///
/// When the independent check refused the plan.
pub fn document(plan: Plan, input: Input, times: Times) -> Result<Document, Failure> {
    if !plan.refused.is_empty() {
        return Err(Failure::Other(anyhow::anyhow!(
            "the plan did not pass the independent check, so it is not shown; this is a bug of Poolwright, please \
             report it with your input: {}",
            plan.refused.join("; ")
        )));
    }
    let pod = |key: &PodKey| match input.names {
        PodNames::Qualified => key.to_string(),
        PodNames::Bare => key.name().into_owned(),
    };
    let mut nodes: Vec<NewNode> = plan
        .claims
        .iter()
        .map(|claim| NewNode {
            instance_type: claim.offering().instance_type.to_string(),
            zone: claim.offering().zone.to_string(),
            capacity_type: claim.offering().capacity_type,
            usd_per_hour: claim.price(),
            pool: (!input.implicit_pool).then(|| claim.pool.to_string()),
            pods: claim.planned_pods.iter().map(pod).collect(),
            gpus: claim.gpus.iter().map(|gpu| gpu_use(gpu, &pod)).collect(),
        })
        .collect();
    nodes.sort_by(|a, b| {
        let key = |node: &NewNode| (node.instance_type.clone(), node.zone.clone(), node.capacity_type);
        key(a).cmp(&key(b)).then_with(|| (&a.pool, &a.pods).cmp(&(&b.pool, &b.pods)))
    });
    let mut existing: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for placement in &plan.placements {
        let (Target::Claim(poolwright_core::ClaimName(name)) | Target::Node(name)) = &placement.target;
        existing.entry(name.clone()).or_default().push(pod(&placement.pod));
    }
    let mut notes = input.notes;
    if plan.unknown_price_claims > 0 {
        notes.push(format!(
            "{} nodes have an unknown price, which their pool allows; they are in neither the cost nor the bound",
            plan.unknown_price_claims
        ));
    }
    if plan.pinned_pods > 0 {
        notes.push(format!(
            "rules about other pods decided the places of {} pods (zones, nodes to share) first; the lower bound holds with these",
            plan.pinned_pods
        ));
    }
    if plan.steered_pods > 0 {
        notes.push(format!(
            "preferences of {} pods steered what is bought for them; the lower bound holds with these",
            plan.steered_pods
        ));
    }
    notes.extend(arm(&plan, &input.snapshot).filter(|_| input.implicit_pool));
    // Limits that are reached are told by the pods they leave out.
    for (name, findings) in &plan.pools {
        let problems = [&findings.invalid, &findings.node_class].into_iter().flatten();
        notes.extend(problems.map(|(reason, message)| format!("pool {name}: {reason}: {message}")));
    }
    let counts = plan.counts;
    Ok(Document {
        api_version: poolwright_terms::API_VERSION,
        kind: "Plan",
        cost_usd_per_hour: plan.cost,
        risk_usd_per_hour: input.counts_risk.then_some(plan.risk),
        lower_bound_usd_per_hour: plan.bound,
        gap: gap(plan.cost + plan.risk, plan.bound),
        pinned_pods: plan.pinned_pods,
        steered_pods: plan.steered_pods,
        proof: plan.proof,
        elapsed_seconds: six_decimals(times.elapsed.as_secs_f64()),
        first_plan_seconds: six_decimals(times.first.as_secs_f64()),
        pods: PodCounts {
            total: counts.total,
            placed: counts.on_existing + counts.on_new,
            unplaced: counts.unplaced,
        },
        nodes,
        existing_nodes: existing.into_iter().map(|(name, pods)| ExistingNode { name, pods }).collect(),
        unplaced: plan
            .unplaced
            .iter()
            .map(|left| UnplacedPod {
                pod: pod(&left.pod),
                reason: left.reason.as_str().to_owned(),
                message: left.message.clone(),
            })
            .collect(),
        relaxed_preferences: plan
            .relaxed
            .iter()
            .map(|relaxed| RelaxedPreference {
                preference: relaxed.preference.clone(),
                reason: relaxed.reason.as_str().to_owned(),
                message: relaxed.reason.words().to_owned(),
                pods: relaxed.pods.iter().map(pod).collect(),
            })
            .collect(),
        baselines: Baselines {
            one_pod_per_node_usd_per_hour: plan.baselines.one_pod_per_node,
            first_fit_usd_per_hour: plan.baselines.first_fit,
        },
        commitments: plan
            .commitments
            .iter()
            .map(|of| CommitmentUse {
                name: of.name.clone(),
                usd_per_hour: of.left,
                used_usd_per_hour: of.used,
            })
            .collect(),
        explanation: None,
        catalogue: input.catalogue,
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

/// Pods seldom say which processors their images are for; without a pool nobody else does.
fn arm(plan: &Plan, snapshot: &Snapshot) -> Option<String> {
    let is_arm = |claim: &&PlannedClaim| {
        let kinds =
            snapshot.catalogues.values().flatten().filter_map(|all| all.instance_type(claim.instance_type()));
        kinds.take(1).any(|kind| kind.arch == Arch::Arm64)
    };
    let count = plan.claims.iter().filter(is_arm).count();
    (count > 0).then(|| {
        format!("{count} nodes have arm64 processors, which the pods do not rule out; a NodePool can (kubernetes.io/arch)")
    })
}
