//! Values that no node has: what to say of misspelt and unknown ones.

use std::collections::BTreeSet;

use poolwright_api::Operator;
use poolwright_provider_contract::karpenter::Report;
use poolwright_terms::labels as ours;

use super::labels::KARPENTER_CATALOGUE;
use super::requirements::KarpenterRequirement;
use crate::near::near;

/// Returns all values of a label that has few: system, architecture, capacity type.
fn choices(to: &str) -> Option<&'static [&'static str]> {
    match to {
        ours::OS => Some(&["linux"]),
        ours::ARCH => Some(&["amd64", "arm64"]),
        ours::CAPACITY_TYPE => Some(&["on-demand", "reserved", "spot"]),
        _ => None,
    }
}

/// Returns the values of a label in the built-in catalogue, if a value that it lacks may be misspelt.
fn of_catalogue(to: &str) -> Option<&'static BTreeSet<String>> {
    let known = &*KARPENTER_CATALOGUE;
    match to {
        ours::INSTANCE_TYPE => Some(&known.types),
        ours::INSTANCE_FAMILY => Some(&known.families),
        ours::GPU_MODEL => Some(&known.gpu_models),
        ours::ZONE => Some(&known.zones),
        ours::REGION => Some(&known.regions),
        _ => None,
    }
}

/// Returns whether a value of the label meets a requirement. If none does, it reports that.
pub(super) fn leaves_any(wanted: &KarpenterRequirement, to: &str, report: &mut Report) -> bool {
    let Some(all) = choices(to) else { return true };
    let is_listed = |value: &&str| wanted.values.iter().any(|one| one == value);
    let is_met = match wanted.operator {
        Operator::In => all.iter().any(is_listed),
        Operator::NotIn => !all.iter().all(is_listed),
        Operator::DoesNotExist => false,
        _ => true,
    };
    if is_met {
        return true;
    }
    let one_of = quoted(all.iter().copied()).join(", ");
    let (cause, next) = match (to, wanted.operator) {
        (ours::OS, _) => (
            "Poolwright buys Linux nodes only, so the pool would buy nothing".to_owned(),
            "correct it, or keep this pool in Karpenter".to_owned(),
        ),
        (_, Operator::In) => (
            format!(
                "no node has the value {}, so the pool would buy nothing",
                quoted(wanted.values.iter().map(String::as_str)).join(" or ")
            ),
            format!("write one or more of {one_of}"),
        ),
        (_, Operator::NotIn) => (
            format!("all nodes have one of the values {one_of}, so the pool would buy nothing"),
            "exclude fewer of them".to_owned(),
        ),
        _ => (
            format!("all nodes have `{to}`, so the pool would buy nothing"),
            "remove the requirement".to_owned(),
        ),
    };
    report.problem(&wanted.path, cause, next);
    false
}

/// Says which values no node has, as sentences after a space; empty if there are none.
pub(super) fn remark(to: &str, operator: Operator, values: &[String]) -> String {
    if !matches!(operator, Operator::In | Operator::NotIn) {
        return String::new();
    }
    if let Some(all) = choices(to) {
        let strange: Vec<&str> =
            values.iter().map(String::as_str).filter(|value| !all.contains(value)).collect();
        if strange.is_empty() {
            return String::new();
        }
        let names = quoted(strange.iter().copied()).join(" or ");
        let one_of = quoted(all.iter().copied()).join(", ");
        return format!(" No node has the value {names}: the values are {one_of}.");
    }
    let Some(known) = of_catalogue(to) else { return String::new() };
    let strange: Vec<&str> =
        values.iter().map(String::as_str).filter(|value| !known.contains(*value)).collect();
    if strange.is_empty() {
        return String::new();
    }
    let mut said = format!(
        " The built-in catalogue has no {} of {}: check the spelling, and that the cloud and the node class sell it.",
        quoted(strange.iter().copied()).join(", "),
        KARPENTER_CATALOGUE.clouds
    );
    // Names of zones and regions differ by single letters, so the nearest one means nothing.
    if ![ours::ZONE, ours::REGION].contains(&to) {
        for value in strange {
            if let Some(near) = near(value, known.iter().map(String::as_str)) {
                said = format!("{said} For `{value}`, did you mean `{near}`?");
            }
        }
    }
    said
}

fn quoted<'v>(values: impl Iterator<Item = &'v str>) -> Vec<String> {
    values.map(|value| format!("`{value}`")).collect()
}
