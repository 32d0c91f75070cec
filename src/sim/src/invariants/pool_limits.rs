//! Pools stay within their limits.

use std::collections::BTreeMap;

use poolwright_catalog::{RankedOffering, ResourceList, UsdPerHour};
use poolwright_core::{Pool, PoolName};
use poolwright_terms::keys::NODEPOOL_LABEL;

use super::{Memory, Scene};

pub(super) const RULE: &str = "the claims of a pool never exceed its limits on cost and resources";

pub(super) fn check(scene: &Scene<'_>, _: &mut Memory) -> Option<String> {
    scene.cluster.view().pools.values().find_map(|pool| held(scene, pool).passed(pool))
}

/// The maximum cost and resources of a pool's claims.
#[derive(Clone, Debug, Default)]
pub(super) struct Held {
    nodes: u64,
    cost: UsdPerHour,
    resources: BTreeMap<String, u64>,
}

pub(super) fn held(scene: &Scene<'_>, pool: &Pool) -> Held {
    let PoolName(name) = &pool.name;
    let mut held = Held::default();
    for claim in scene.cluster.claims.values() {
        let labels = claim.metadata.labels.as_ref();
        if labels.and_then(|labels| labels.get(NODEPOOL_LABEL)) != Some(name) {
            continue;
        }
        held.nodes += 1;
        let Ok(model) = poolwright_intake::node_claim(claim) else { continue };
        held.cost += match &model.launched {
            Some(_) => model.current_offering().price.unwrap_or_default(),
            None => model.offerings.iter().filter_map(|ranked| ranked.price).max().unwrap_or_default(),
        };
        for resource in pool.limits.resources.keys() {
            let of = |ranked: &RankedOffering| ranked.allocatable.get(resource.as_str());
            let most = match &model.launched {
                Some(_) => of(model.current_offering()),
                None => model.offerings.iter().map(of).max().unwrap_or(0),
            };
            *held.resources.entry(resource.to_string()).or_default() += most;
        }
    }
    held
}

impl Held {
    /// Adds one more node.
    pub fn with(mut self, price: UsdPerHour, allocatable: &ResourceList) -> Self {
        self.nodes += 1;
        self.cost += price;
        for (resource, amount) in allocatable.iter() {
            *self.resources.entry(resource.to_string()).or_default() += amount;
        }
        self
    }

    /// Returns the limit of the pool that this exceeds, if any.
    pub fn passed(&self, pool: &Pool) -> Option<String> {
        let (PoolName(name), Self { nodes, cost, resources }) = (&pool.name, self);
        if let Some(limit) = pool.limits.nodes.filter(|limit| nodes > limit) {
            return Some(format!("pool {name} has {nodes} claims, and may have {limit}"));
        }
        if let Some(limit) = pool.limits.usd_per_hour.filter(|limit| cost > limit) {
            return Some(format!("pool {name} may cost {cost:#}, and its limit is {limit}"));
        }
        pool.limits.resources.iter().find_map(|(resource, limit)| {
            let held = resources.get(resource.as_str()).copied().unwrap_or(0);
            (held > *limit).then(|| format!("pool {name} holds {held} {resource}, and may hold {limit}"))
        })
    }
}
