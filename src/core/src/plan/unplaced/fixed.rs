//! Static pools: whether more of their nodes would help pods that no other pool buys nodes for.

use std::sync::Arc;

use poolwright_catalog::{Catalogue, RankedOffering};
use poolwright_terms::Taint;

use crate::demand::is_replica;
use crate::model::Pool;
use crate::plan::order_replicas::{ReplicaLimits, beyond};
use crate::plan::pack::classes::PodClass;
use crate::plan::unplaced::inputs::UnplacedInputs;
use crate::rules::format::{self, ATTACHABLE};
use crate::rules::{self, NewNodeLabels};
use crate::supply::offerings::{as_measured, meeting};

/// Returns the message for pods that only static pools could hold; `None` if there is no such pool.
pub(crate) fn fixed(inputs: &UnplacedInputs<'_, '_>, class: &PodClass<'_>) -> Option<String> {
    let mut first = None;
    for pool in inputs.snapshot.pools.values().filter(|pool| pool.replicas.is_some() && !pool.deleting) {
        match lack(inputs, class, pool) {
            None => return Some(no_more(inputs, pool)),
            Some(lack) => first = first.or(Some((pool, lack))),
        }
    }
    let (pool, lack) = first?;
    Some(format!(
        "no NodePool buys nodes for waiting pods, and more `replicas` of pool `{}` would not help: {lack}; create a NodePool without `replicas` whose nodes hold the pod",
        pool.name
    ))
}

/// Says why a static pool whose next node would hold the pods has no such node.
fn no_more(inputs: &UnplacedInputs<'_, '_>, pool: &Pool) -> String {
    let (snapshot, name) = (inputs.snapshot, &pool.name);
    // The nodes that this plan orders are among these claims.
    let there = snapshot.claims.values().filter(|claim| is_replica(pool, claim)).count() as u64;
    let has_all = pool.replicas.is_none_or(|wanted| wanted <= there);
    let limit = next(inputs, pool).and_then(|(catalogue, index)| {
        let offering = &catalogue.offerings()[index];
        let ranked = RankedOffering {
            offering: offering.id.clone(),
            price: offering.price.known(),
            allocatable: catalogue.types()[&offering.id.instance_type].allocatable.clone(),
        };
        beyond(snapshot, pool, &ranked, inputs.options)
    });
    let because = format!(
        "no NodePool buys nodes for waiting pods, because `replicas` sets how many nodes pool `{name}` has"
    );
    match limit {
        Some(ReplicaLimits { words, count, are_own, .. }) => {
            let limits = if count == 1 { "that limit" } else { "these limits" };
            let raise =
                if has_all { format!("raise {limits} and `replicas`") } else { format!("raise {limits}") };
            let or = if are_own { ", or create a NodePool without `replicas`" } else { "" };
            format!("{because}, and {words}; {raise}{or}")
        }
        None if has_all => format!("{because}; raise it, or create a NodePool without `replicas`"),
        None => {
            let unsold = inputs.supply.findings.get(name).and_then(|found| found.unsold.as_ref());
            let why = unsold.map_or_else(String::new, |(_, why)| format!(": {why}"));
            format!(
                "{because}, and it cannot buy all of them now{why}; see `poolwright explain pool {name}`, or create a NodePool without `replicas`"
            )
        }
    }
}

/// Returns the next node of a static pool, which is its cheapest, as an index into its catalogue.
fn next<'s>(inputs: &UnplacedInputs<'s, '_>, pool: &Pool) -> Option<(&'s Arc<Catalogue>, usize)> {
    let Some(Ok(catalogue)) = inputs.snapshot.catalogues.get(&pool.node_class) else { return None };
    let labels = inputs.snapshot.plan_cache.labels(catalogue);
    let next = meeting(pool, &labels).into_iter().min_by_key(|index| {
        let offering = &catalogue.offerings()[*index];
        (offering.price.known().is_none(), offering.price.known(), &offering.id)
    })?;
    Some((catalogue, next))
}

/// Says what keeps the pods off the next node of a static pool; `None` if it would hold them.
fn lack(inputs: &UnplacedInputs<'_, '_>, class: &PodClass<'_>, pool: &Pool) -> Option<String> {
    let snapshot = inputs.snapshot;
    let untolerated: Vec<&Taint> = rules::untolerated(&class.spec.tolerations, &pool.taints).collect();
    if !untolerated.is_empty() {
        return Some(format!("the pod does not tolerate their {}", format::taints(&untolerated)));
    }
    let (catalogue, next) = next(inputs, pool)?;
    let labels = snapshot.plan_cache.labels(catalogue);
    let kind = &catalogue.types()[&catalogue.offerings()[next].id.instance_type];
    let own = NewNodeLabels { offering: &labels[next], template: &pool.labels, pool: &pool.name };
    if let Err(rejection) = rules::check_labels(class.spec, &own) {
        return Some(format!("the next one is {}, and the pod {rejection}", kind.name));
    }
    let mut room = as_measured(snapshot, &pool.node_class, &kind.allocatable, &kind.name);
    let daemons = inputs.daemons.tolerating(&pool.taints);
    room.saturating_sub(&daemons.requests(&daemons.landing(&own)));
    // Static pools buy nodes with whole GPUs.
    class.on_whole().iter().find_map(|(name, wanted)| {
        let has = room.get(name.as_str());
        (wanted > has && !name.as_str().starts_with(ATTACHABLE)).then(|| {
            format!(
                "the pod needs {} {name}{} in one node, and the next one, {}, has {} for it",
                format::quantity(name, wanted),
                inputs.origin(name),
                kind.name,
                format::quantity(name, has)
            )
        })
    })
}
