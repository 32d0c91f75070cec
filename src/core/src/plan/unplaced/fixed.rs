//! Static pools: whether more of their nodes would help pods that no other pool buys nodes for.

use poolwright_terms::Taint;

use crate::model::Pool;
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
            None => {
                return Some(format!(
                    "no NodePool buys nodes for waiting pods, because `replicas` sets how many nodes pool `{}` has; raise it, or create a NodePool without `replicas`",
                    pool.name
                ));
            }
            Some(lack) => first = first.or(Some((pool, lack))),
        }
    }
    let (pool, lack) = first?;
    Some(format!(
        "no NodePool buys nodes for waiting pods, and more `replicas` of pool `{}` would not help: {lack}; create a NodePool without `replicas` whose nodes hold the pod",
        pool.name
    ))
}

/// Says what keeps the pods off the next node of a static pool, which is its cheapest; `None` if it would hold them.
fn lack(inputs: &UnplacedInputs<'_, '_>, class: &PodClass<'_>, pool: &Pool) -> Option<String> {
    let snapshot = inputs.snapshot;
    let untolerated: Vec<&Taint> = rules::untolerated(&class.spec.tolerations, &pool.taints).collect();
    if !untolerated.is_empty() {
        return Some(format!("the pod does not tolerate their {}", format::taints(&untolerated)));
    }
    let Some(Ok(catalogue)) = snapshot.catalogues.get(&pool.node_class) else { return None };
    let labels = snapshot.plan_cache.labels(catalogue);
    let next = meeting(pool, &labels).into_iter().min_by_key(|index| {
        let offering = &catalogue.offerings()[*index];
        (offering.price.known().is_none(), offering.price.known(), &offering.id)
    })?;
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
