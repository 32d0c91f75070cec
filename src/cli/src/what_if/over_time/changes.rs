//! The changes of a replay: of its work, of what may be bought, and of prices.

use std::collections::BTreeSet;
use std::sync::Arc;

use poolwright_core::{Pool, Snapshot};
use poolwright_terms::{CapacityType, NodeClassRef, labels};
use serde_json::{Value, json};

use crate::args::{Replaced, WhatIfFlags};
use crate::exit::Failure;
use crate::print::counted;
use crate::replay::{Work, World};
use crate::what_if::{change_interruptions, change_market, gpu};

/// Changes what a replay is made of, and says what changed.
///
/// # Errors
///
/// A change matches nothing.
pub fn apply(flags: &WhatIfFlags, world: &mut World, told: &mut Vec<String>) -> Result<(), Failure> {
    if let Some(times) = flags.load {
        world.work.multiply(times);
        told.push(format!("--load: {times} times as many pods of the trace"));
    }
    // The whole catalogue has a place of its own, from which no pool buys, so that it changes like the others.
    let whole = NodeClassRef { group: String::new(), kind: String::new(), name: String::new() };
    let mut snapshot = Snapshot::default();
    let pools = world.pools.models.iter();
    snapshot.pools.extend(pools.map(|pool| (pool.name.clone(), Arc::new(pool.clone()))));
    let sold = world.pools.sold.iter();
    snapshot.catalogues.extend(sold.map(|(class, sold)| (class.clone(), Ok(sold.clone()))));
    snapshot.catalogues.insert(whole.clone(), Ok(Arc::new(world.prices.clone())));
    for models in &flags.gpu {
        gpu::check_sold(&snapshot, models)?;
        let pods = in_work(&mut world.work, models)?;
        told.push(format!("--gpu: {} instead of {} for {}", models.to, models.from, counted(pods, "pod")));
    }
    change_market(flags, &mut snapshot, &mut world.prices, told)?;
    change_interruptions(flags, &mut snapshot, told)?;
    if let Some(Ok(changed)) = snapshot.catalogues.remove(&whole) {
        world.prices = Arc::unwrap_or_clone(changed);
    }
    for (class, sold) in &mut world.pools.sold {
        if let Some(Ok(changed)) = snapshot.catalogues.get(class) {
            *sold = changed.clone();
        }
    }
    for pool in &mut world.pools.models {
        if let Some(changed) = snapshot.pools.get(&pool.name) {
            *pool = Pool::clone(changed);
        }
    }
    if flags.spot {
        world.pools.objects.iter_mut().for_each(with_spot);
    }
    Ok(())
}

/// Lets the pods that ask for one GPU model ask for another. Returns their number.
fn in_work(work: &mut Work, models: &Replaced) -> Result<usize, Failure> {
    const VALUES: &str = "/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms/0/matchExpressions/0/values";
    let mut asked = BTreeSet::new();
    let mut changed = 0;
    for job in &mut work.jobs {
        // As the trace is read, a rule about the model is the only one.
        let Some(Value::Array(values)) = job.spec.pointer_mut(VALUES) else { continue };
        asked.extend(values.iter().filter_map(Value::as_str).map(str::to_owned));
        if values.iter().any(|value| *value == *models.from) {
            values.retain(|value| *value != *models.from && *value != *models.to);
            values.push(json!(models.to));
            changed += 1;
        }
    }
    if changed == 0 { Err(gpu::unasked(models, &asked)) } else { Ok(changed) }
}

/// Lets a pool buy spot nodes, as `market::with_spot` does for the planner's view of it.
pub fn with_spot(object: &mut Value) {
    let spot = json!(CapacityType::Spot.as_str());
    let requirements = object.pointer_mut("/spec/template/spec/requirements");
    let Some(Value::Array(requirements)) = requirements else { return };
    for requirement in requirements.iter_mut().filter(|one| one["key"] == labels::CAPACITY_TYPE) {
        let forbids = requirement["operator"] == "NotIn";
        let allows = requirement["operator"] == "In";
        let values = requirement.get_mut("values").and_then(Value::as_array_mut);
        let Some(values) = values else { continue };
        if forbids {
            values.retain(|value| *value != spot);
        } else if allows && !values.contains(&spot) {
            values.push(spot.clone());
        }
    }
    // A rule that forbids nothing any more is none, and the API server refuses it.
    requirements.retain(|one| {
        let is_changed = one["key"] == labels::CAPACITY_TYPE && one["operator"] == "NotIn";
        !(is_changed && one["values"].as_array().is_some_and(Vec::is_empty))
    });
}
