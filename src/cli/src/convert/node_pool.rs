//! Converts Karpenter's NodePools.

use std::collections::BTreeMap;

use poolwright_api::{Amount, NodePool, NodePoolSpec, Spot, meant};
use poolwright_catalog::ResourceName;
use poolwright_provider_contract::karpenter::{Fields, Places, Report, convert_object, text};
use serde_json::Value;

use super::buffer::Named;
use super::labels::KARPENTER_CATALOGUE;
use super::{disruption, template};

/// Settings of Poolwright that Karpenter does not have, and what their defaults mean for a converted pool.
const ABSENT: [(&str, &str); 4] = [
    (
        "spec.limits.usdPerHour",
        "Absent: Karpenter has no limit on money. Poolwright's controller buys no more than its \
         --default-usd-per-hour (500) for a pool without one; write your own.",
    ),
    (
        "spec.disruption.retire",
        "Absent: Karpenter has no nodes that retire; Poolwright's default is `WhenCheaper`: a node admits \
         only pods that Poolwright plans for it while others would run cheaper elsewhere. Write `Never` if \
         nodes are to admit every pod that fits.",
    ),
    (
        "spec.disruption.repair",
        "Absent: Karpenter has no rules of repair in its pools; Poolwright's default is to replace a node \
         whose condition `Ready` is `False` or `Unknown` for 30m. Write `repair: []` if nodes are not to be \
         replaced.",
    ),
    (
        "spec.template.spec.deadlines.initialization",
        "Absent: Karpenter has no deadline for the initialization of a node; Poolwright's default is 15m: a \
         node that is not ready by then is terminated, and its pods are planned again. Write more if your \
         nodes need longer.",
    ),
];

/// The resources of which a node has less for pods than its machine has.
const COUNTED_WHOLE: [&str; 3] = [ResourceName::CPU, ResourceName::MEMORY, ResourceName::EPHEMERAL_STORAGE];

/// What to know of a limit on one of them.
const COUNTS_WHAT_PODS_GET: &str = "It stays, with another meaning: Karpenter counts what machines have, Poolwright only what their pods \
                                    can have (allocatable). So the pool may buy more nodes than before. To keep their number, write \
                                    `limits.nodes`, or lower the amount by what the system reserves on each node.";

/// The name of a pool that has none, which is a problem.
const NAMELESS: &str = "nameless";

/// What a NodePool of Karpenter becomes.
pub(super) struct Converted {
    pub pool: NodePool,
    /// The fields of the source from which fields of the pool come.
    pub places: Places,
}

/// Converts a NodePool of `karpenter.sh/v1`. Its problems are in the report; if there are any, the result only serves to find more
/// of them.
pub(super) fn convert(value: &Value, named: &Named, report: &mut Report) -> Option<Converted> {
    let (kind, remedy) = ("The kind is NodePool here, too.", "write spec.template with a nodeClassRef");
    let (metadata, spec) = convert_object(value, kind, remedy, report)?;
    let mut fields = Fields::of("spec", spec, report)?;
    let read = template::convert(&mut fields, named, report);
    let disruption = disruption::convert(&mut fields, report);
    let spec = NodePoolSpec {
        template: read.template,
        weight: weight(&mut fields, report),
        limits: limits(&mut fields, report),
        monthly_budget: None,
        replicas: replicas(&mut fields, report),
        buffer: Vec::new(),
        scale_to_zero: disruption.scale_to_zero,
        spot: Spot::default(),
        disruption: disruption.disruption,
        allow_unknown_prices: Vec::new(),
    };
    fields.finish(report);
    absent(report);
    let mut places = read.places;
    places.add("spec.scaleToZero.after", "spec.disruption.consolidateAfter");
    let name = if metadata.name.is_empty() { NAMELESS } else { metadata.name.as_str() };
    let mut pool = NodePool::new(name, spec);
    let mut annotations = metadata.annotations;
    annotations.extend(read.pool_annotations);
    pool.metadata.annotations = (!annotations.is_empty()).then_some(annotations);
    pool.metadata.labels = (!metadata.labels.is_empty()).then_some(metadata.labels);
    Some(Converted { pool, places })
}

/// Notes the settings that Karpenter does not have.
fn absent(report: &mut Report) {
    for (field, sentence) in ABSENT {
        // Karpenter ignores a field of this name, and another note says so.
        if !report.notes.iter().any(|note| note.field == field) {
            report.changed(field, sentence);
        }
    }
}

fn weight(fields: &mut Fields<'_>, report: &mut Report) -> i32 {
    let Some(weight) = fields.number("weight", report) else { return 0 };
    if let Some(weight) = i32::try_from(weight).ok().filter(|weight| (0..=100).contains(weight)) {
        report.kept("spec.weight", "Pools with a higher weight are used first, as in Karpenter.");
        weight
    } else {
        report.problem(
            "spec.weight",
            format!("{weight} is not between 1 and 100"),
            "write a number from 1 to 100",
        );
        0
    }
}

fn replicas(fields: &mut Fields<'_>, report: &mut Report) -> Option<i32> {
    let replicas = fields.number("replicas", report)?;
    if let Some(replicas) = i32::try_from(replicas).ok().filter(|replicas| (0..=1000).contains(replicas)) {
        report.kept(
            "spec.replicas",
            "The pool keeps this many nodes, of the cheapest offering that meets the requirements.",
        );
        return Some(replicas);
    }
    report.problem(
        "spec.replicas",
        format!("{replicas} is not between 0 and 1000"),
        "write a number from 0 to 1000",
    );
    None
}

fn limits(fields: &mut Fields<'_>, report: &mut Report) -> BTreeMap<String, Amount> {
    let mut limits = BTreeMap::new();
    for (key, path, value) in fields.object("limits", report).map(Fields::rest).unwrap_or_default() {
        let amount = match value.as_i64() {
            Some(number) => Some(number.to_string()),
            None => text(path.clone(), value, report),
        };
        let Some(amount) = amount else { continue };
        if key == "usdPerHour" {
            report.not_possible(
                path,
                "Left out: Karpenter ignores it, but Poolwright would limit the cost of the pool. Write it again if you want that.",
            );
            continue;
        }
        if key == "nodes" {
            report.kept(path, "At most this many nodes, including nodes that are starting.");
        } else if COUNTED_WHOLE.contains(&key.as_str()) {
            report.changed(path, COUNTS_WHAT_PODS_GET);
        } else if is_of_nodes(&key) {
            report.kept(path, "A limit over all nodes of the pool, including nodes that are starting.");
        } else {
            let hint =
                meant_resource(&key).map_or_else(String::new, |near| format!(" Did you mean `{near}`?"));
            report.not_possible(
                path,
                format!(
                    "It stays, but no instance type of the built-in catalogue has `{key}`, so this limit limits nothing there.{hint}"
                ),
            );
        }
        limits.insert(key, Amount(amount));
    }
    limits
}

/// Returns whether nodes may have a resource, so that a limit on it means something.
fn is_of_nodes(resource: &str) -> bool {
    resource == ResourceName::EPHEMERAL_STORAGE
        || resource.starts_with(ResourceName::MIG_PREFIX)
        || KARPENTER_CATALOGUE.resources.contains(resource)
}

/// Returns the resource that a misspelt one probably means.
fn meant_resource(resource: &str) -> Option<&'static str> {
    // `gpu` is one letter away from `cpu`.
    if resource.ends_with("gpu") {
        return Some(ResourceName::NVIDIA_GPU);
    }
    let known = KARPENTER_CATALOGUE.resources.iter().map(String::as_str);
    meant(resource, known.chain(["nodes"]))
}
