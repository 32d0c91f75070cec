//! The audit checks a finished plan pod by pod. It shares only the scheduling rules with the code that made the plan. A plan that
//! fails the audit is not carried out.

pub(crate) mod colocation;
pub(crate) mod gpus;
pub(crate) mod over_time;
pub(crate) mod topology;
use std::collections::{BTreeMap, BTreeSet};

use poolwright_catalog::{OfferingId, RankedOffering, ResourceList, ResourceName, UsdPerHour};
use poolwright_terms::NodeClassRef;

use crate::demand::volumes::Volumes;
use crate::model::plan::{PlacedPod, PlannedClaim};
use crate::model::{Claim, Pod, PodKey, PodPhase, PodRole, PoolLimits, PoolName, Snapshot};
use crate::model::{CountOrPercent, PlanOptions, Sharing, SpotRules};
use crate::rules;
use crate::rules::new_node::NewNodeLabels;
use crate::supply::daemonsets::DaemonSets;
use crate::supply::spot_mix::{SpotMix, counted, is_spot};
use crate::supply::unclaimed;
use crate::supply::unclaimed::UnclaimedNode;

/// Returns the violations of a plan, as messages. [`crate::plan::audit::topology`] checks rules over several nodes.
pub(crate) fn audit(
    snapshot: &Snapshot,
    volumes: &Volumes,
    options: &PlanOptions,
    claims: &[PlannedClaim],
    placements: &[PlacedPod],
) -> Vec<String> {
    let mut problems = Vec::new();
    let mut seen: BTreeSet<&PodKey> = BTreeSet::new();
    let planned = claims.iter().flat_map(|claim| &claim.planned_pods);
    for key in planned.chain(placements.iter().map(|placement| &placement.pod)) {
        if !seen.insert(key) {
            problems.push(format!("pod {key} is planned twice"));
        }
    }
    let daemons = DaemonSets::new(snapshot);
    for claim in claims {
        if let Err(problem) = audit_claim(snapshot, volumes, options, &daemons, claim) {
            problems.push(format!("claim {}: {problem}", claim.name));
        }
    }
    audit_limits(snapshot, options, claims, &mut problems);
    problems.extend(below_floor(snapshot, claims));
    problems.extend(colocation::audit(snapshot, &daemons, claims, placements));
    problems
}

fn audit_claim(
    snapshot: &Snapshot,
    volumes: &Volumes,
    options: &PlanOptions,
    daemons: &DaemonSets<'_>,
    claim: &PlannedClaim,
) -> Result<(), String> {
    let sharing = options.sharing;
    let pool = snapshot.pools.get(&claim.pool).ok_or("its pool does not exist")?;
    let Some(Ok(catalogue)) = snapshot.catalogues.get(&claim.node_class) else {
        return Err("its node class cannot be used".to_owned());
    };
    let pods: Vec<&Pod> = claim
        .planned_pods
        .iter()
        .map(|key| {
            snapshot.pods.get(key).map(AsRef::as_ref).ok_or_else(|| format!("pod {key} does not exist"))
        })
        .collect::<Result<_, _>>()?;
    let mut wanted = ResourceList::new();
    for pod in &pods {
        let waits = matches!(pod.phase, PodPhase::Waiting | PodPhase::Unschedulable { .. });
        if !waits || pod.role != PodRole::Workload || !pod.spec.unmodelled.is_empty() {
            return Err(format!("pod {} must not be planned", pod.key));
        }
        wanted.add(&pod.spec.requests);
    }
    for ranked in &claim.offerings {
        let id = &ranked.offering;
        let offering = catalogue.offering(id).ok_or_else(|| format!("{id} is not in the catalogue"))?;
        let kind = &catalogue.types()[&id.instance_type];
        if ranked.allocatable != kind.allocatable || ranked.price != offering.price.known() {
            return Err(format!("{id} does not promise the resources in the catalogue"));
        }
        if ranked.price.is_none() && !options.may_buy_unpriced(pool, &id.instance_type) {
            return Err(format!("the price of {id} is unknown"));
        }
        let offering_labels = catalogue.node_labels(offering);
        let labels = NewNodeLabels { offering: &offering_labels, template: &claim.labels, pool: &claim.pool };
        if let Some(unmet) =
            pool.requirements.iter().find(|requirement| !rules::matches(requirement, &labels))
        {
            return Err(format!("{id} does not meet `{unmet}` of its pool"));
        }
        for pod in &pods {
            rules::admits(&pod.spec, &labels, &claim.taints)
                .map_err(|rejection| format!("pod {} on {id} {rejection}", pod.key))?;
        }
        let tolerating = daemons.tolerating(&claim.taints);
        let mut room = kind.allocatable.clone();
        room.add(&volumes.attachable.of(None, &labels));
        room.saturating_sub(&tolerating.requests(&tolerating.landing(&labels)));
        let mut rest = wanted.clone();
        gpus::audit(sharing, claim, &pods, kind, &mut rest)
            .map_err(|problem| format!("on {id}: {problem}"))?;
        if !claim.gpus.is_empty() && sharing != (Sharing::Mig { mixed: false }) {
            room.set(ResourceName::NVIDIA_GPU, 0);
        } else if !claim.gpus.is_empty() && wanted.get(ResourceName::NVIDIA_GPU) > 0 {
            return Err("pods with whole GPUs are on a node with partitioned GPUs".to_owned());
        }
        rules::check_resources(&rest, &room).map_err(|rejection| format!("its pods on {id}: {rejection}"))?;
    }
    Ok(())
}

/// Checks that no purchase exceeds a limit, whichever alternative is launched. A limit that is already exceeded, because it was
/// lowered, is no violation if the plan buys nothing.
fn audit_limits(
    snapshot: &Snapshot,
    options: &PlanOptions,
    claims: &[PlannedClaim],
    problems: &mut Vec<String>,
) {
    let mut by_pool: BTreeMap<&PoolName, Vec<&PlannedClaim>> = BTreeMap::new();
    let unclaimed = unclaimed::nodes(snapshot);
    for claim in claims {
        by_pool.entry(&claim.pool).or_default().push(claim);
    }
    for (name, planned) in by_pool {
        let Some(pool) = snapshot.pools.get(name) else { continue };
        let theirs: Vec<_> =
            snapshot.claims.values().map(AsRef::as_ref).filter(|claim| claim.pool == *name).collect();
        let beside: Vec<_> = unclaimed.iter().filter(|node| node.pool == *name).collect();
        problems.extend(passed(
            &format!("pool {name}"),
            &options.limits_of(pool),
            (snapshot, &theirs, &beside),
            &planned,
        ));
    }
    let all: Vec<_> = snapshot.claims.values().map(AsRef::as_ref).collect();
    problems.extend(out_of_stock(snapshot, claims));
    let beside: Vec<_> = unclaimed.iter().collect();
    let planned: Vec<_> = claims.iter().collect();
    problems.extend(passed("all pools", &options.limits, (snapshot, &all, &beside), &planned));
}

/// Returns a message for each pool that gets spot nodes although fewer of its nodes are on demand than must be, whichever alternative
/// is launched.
fn below_floor(snapshot: &Snapshot, claims: &[PlannedClaim]) -> Vec<String> {
    let mut problems = Vec::new();
    for pool in snapshot.pools.values() {
        let Some(floor) = pool.spot.on_demand_floor else { continue };
        let planned = claims.iter().filter(|claim| claim.pool == pool.name);
        let planned: Vec<&OfferingId> = planned.map(|claim| counted(None, &claim.offerings)).collect();
        if !planned.iter().any(|offering| is_spot(offering)) {
            continue;
        }
        let mut mix = SpotMix::of(snapshot, &pool.name);
        for offering in planned {
            mix.add(offering, 1);
        }
        let (on_demand, spot) = (mix.on_demand, mix.all_spot());
        let is_kept = match floor {
            CountOrPercent::Count(nodes) => on_demand >= nodes,
            CountOrPercent::Percent(percent) => on_demand * 100 >= (on_demand + spot) * percent,
        };
        if !is_kept {
            let least = SpotRules::floor_in_words(floor);
            problems.push(format!(
                "pool {}: {on_demand} nodes would be on demand and {spot} spot, but at least {least} must be on demand",
                pool.name
            ));
        }
    }
    problems
}

/// Returns a message for each offering that is planned more often than it is available.
fn out_of_stock(snapshot: &Snapshot, claims: &[PlannedClaim]) -> Vec<String> {
    let mut planned: BTreeMap<_, u64> = BTreeMap::new();
    for claim in claims {
        *planned.entry((&claim.node_class, claim.offering())).or_default() += 1;
    }
    let too_many = |((class, id), count): ((&NodeClassRef, &OfferingId), u64)| {
        let Some(Ok(catalogue)) = snapshot.catalogues.get(class) else { return None };
        let available = catalogue.offering(id)?.available?;
        (count > u64::from(available)).then(|| format!("{count} x {id}, but only {available} are available"))
    };
    planned.into_iter().filter_map(too_many).collect()
}

/// Returns a message for each limit that existing and planned claims, and nodes without a claim, exceed.
fn passed(
    whose: &str,
    limits: &PoolLimits,
    (snapshot, there, beside): (&Snapshot, &[&Claim], &[&UnclaimedNode]),
    planned: &[&PlannedClaim],
) -> Vec<String> {
    let mut problems = Vec::new();
    let mut check = |what: &str, ceiling: u64, of: &dyn Fn(&RankedOffering) -> u64| {
        let old = there.iter().map(|claim| match &claim.launched {
            Some(_) => of(claim.current_offering()).max(gpus::advertised(snapshot, claim, what)),
            None => claim.offerings.iter().map(of).max().unwrap_or(0),
        });
        let old = old.chain(beside.iter().map(|node| of(&node.offering)));
        let new = planned.iter().map(|claim| {
            let promised = claim.offerings.iter().map(of).max().unwrap_or(0);
            promised.saturating_add(gpus::instances(claim, what))
        });
        let (old, new): (u128, u128) = (old.map(u128::from).sum(), new.map(u128::from).sum());
        if new > 0 && old + new > u128::from(ceiling) {
            problems.push(format!("{whose}: limit {what} = {ceiling} would be exceeded: {old} + {new}"));
        }
    };
    for (resource, ceiling) in &limits.resources {
        check(resource.as_str(), *ceiling, &|ranked| ranked.allocatable.get(resource.as_str()));
    }
    if let Some(ceiling) = limits.nodes {
        check("nodes", ceiling, &|_| 1);
    }
    if let Some(ceiling) = limits.usd_per_hour {
        let of = |ranked: &RankedOffering| ranked.price.map_or(0, UsdPerHour::micros);
        check("usdPerHour (micro-dollars)", ceiling.micros(), &of);
    }
    problems
}
