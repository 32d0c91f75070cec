//! The values of requirements: numbers of cores, names of the catalogue, and whether a value meets a requirement.

use std::collections::BTreeSet;

use poolwright_api::Operator;
use poolwright_catalog::{InstanceType, ResourceName, quantity};
use poolwright_provider_contract::karpenter::LabelMapping;
use poolwright_terms::labels as ours;
use serde_json::Value;

use super::labels::{KARPENTER_CATALOGUE, parts};

/// The largest number of values of a requirement.
pub(super) const MOST_VALUES: usize = 100;

/// What to know of a number of vCPUs that became one of whole cores.
pub(super) const CORES: &str = "counts whole cores that pods can have. Each number is lower by the cores that the \
                                system reserves: one for up to 372 vCPUs, and one more for each further 400. If \
                                the node class reserves more, lower the numbers further.";

/// The same, if the node class is in the input.
pub(super) const CORES_OF_CLASS: &str = "counts whole cores that pods can have. Each number is lower by what the \
                                         system and the kubelet settings of the node class in the input reserve.";

/// The CPU that the kubelet of a node class reserves, in thousandths of a core.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ReservedCpu {
    /// `kubeReserved`, which replaces the figures of the image.
    kube: Option<u64>,
    system: u64,
}

impl ReservedCpu {
    /// Reads the settings of a node class of Karpenter; `None` if it reserves no CPU of its own. Amounts that cannot be read are
    /// problems of the class.
    pub fn of(class: &Value) -> Option<Self> {
        let amount = |field: &str| {
            let amount = &class["spec"]["kubelet"][field][ResourceName::CPU];
            let text = amount.as_str().map_or_else(|| amount.to_string(), str::to_owned);
            quantity::amount(ResourceName::CPU, &text).ok()
        };
        let (kube, system) = (amount("kubeReserved"), amount("systemReserved"));
        (kube.is_some() || system.is_some()).then(|| Self { kube, system: system.unwrap_or(0) })
    }

    /// Returns the whole allocatable cores of a machine. The image reserves 6 % of the first core, 1 % of the second, 0.5 % of the
    /// next two, and 0.25 % of the others.
    fn cores(self, vcpus: u64) -> u64 {
        let steps = [(0, 1, 600), (1, 2, 100), (2, 4, 50), (4, u64::MAX, 25)];
        let kept = |(above, upto, ten_thousandths): (u64, u64, u64)| {
            vcpus.min(upto).saturating_sub(above).saturating_mul(ten_thousandths)
        };
        let by_image = || steps.into_iter().map(kept).fold(0, u64::saturating_add) / 10;
        let reserved = self.kube.unwrap_or_else(by_image).saturating_add(self.system);
        vcpus.saturating_sub(reserved.div_ceil(1000))
    }
}

/// Converts numbers of vCPUs. Karpenter counts the vCPUs of the machine. Poolwright's label counts whole
/// allocatable cores. Fails with the values that are no numbers.
pub(super) fn whole_cores(
    mut operator: Operator,
    values: &[String],
    reserved: ReservedCpu,
) -> Result<(Operator, Vec<String>), Vec<String>> {
    let (mut numbers, mut wrong) = (Vec::new(), Vec::new());
    for value in values {
        match value.parse::<u64>() {
            Ok(number) => numbers.push(number),
            Err(_) => wrong.push(value.clone()),
        }
    }
    if !wrong.is_empty() {
        return Err(wrong);
    }
    // No machine has less than one vCPU, so a bound of zero is always or never met.
    if numbers.contains(&0) {
        match operator {
            Operator::Gt => operator = Operator::Gte,
            Operator::Lte => operator = Operator::Lt,
            Operator::In | Operator::NotIn => numbers.retain(|number| *number > 0),
            _ => {}
        }
    }
    let cores = numbers.iter().map(|number| reserved.cores(*number).to_string()).collect();
    Ok((operator, cores))
}

/// Returns what the values of `INSTANCE_FAMILY` or `INSTANCE_TYPE` are, in words.
pub(super) fn values_in_words(key: &str) -> &'static str {
    if key == ours::INSTANCE_FAMILY { "families" } else { "instance types" }
}

/// Returns the families or types of the catalogue that meet a requirement on a part of their name; for `NotIn`, those that do not.
pub(super) fn names_listed(mapping: LabelMapping, operator: Operator, values: &[String]) -> Vec<String> {
    names_among(&KARPENTER_CATALOGUE.kinds, mapping, operator, values)
}

/// Does the same for some types of the catalogue.
pub(super) fn names_among<'k>(
    kinds: impl IntoIterator<Item = &'k InstanceType>,
    mapping: LabelMapping,
    operator: Operator,
    values: &[String],
) -> Vec<String> {
    let part = |name: &'k str| match mapping {
        LabelMapping::Category => Some(parts(name).0),
        LabelMapping::Generation => Some(parts(name).1),
        _ => name.split_once('.').map(|(_, size)| size),
    };
    let is_size = mapping == LabelMapping::Size;
    let name = |kind: &'k InstanceType| if is_size { kind.name.as_str() } else { kind.family() };
    let is_listed = |name: &&'k str| part(name).is_some_and(|part| is_met(operator, values, part));
    // Each family once.
    let names: BTreeSet<&str> = kinds.into_iter().map(name).filter(is_listed).collect();
    names.into_iter().map(str::to_owned).collect()
}

/// Does the same for the selector of a pod; `None` if it cannot list so many, or none.
pub(super) fn names_that_meet(
    mapping: LabelMapping,
    operator: Operator,
    values: &[String],
) -> Option<Vec<String>> {
    let names = names_listed(mapping, operator, values);
    (1..=MOST_VALUES).contains(&names.len()).then_some(names)
}

/// Returns whether all nodes meet a requirement on a label that each of them has with this value, or none of
/// them has.
pub(super) fn is_met_by_all(operator: Operator, values: &[String], value: Option<&str>) -> bool {
    let is_listed = value.is_some_and(|value| values.iter().any(|one| one == value));
    match operator {
        Operator::In => is_listed,
        Operator::NotIn => !is_listed,
        Operator::Exists => value.is_some(),
        Operator::DoesNotExist => value.is_none(),
        _ => value.is_some_and(|value| is_met(operator, values, value)),
    }
}

/// Returns whether `value` meets the operator with these values.
fn is_met(operator: Operator, values: &[String], value: &str) -> bool {
    let number = |text: &str| text.parse::<u64>().ok();
    let bound = values.first().and_then(|text| number(text));
    let (Some(value), Some(bound)) = (number(value), bound) else {
        return matches!(operator, Operator::In | Operator::NotIn) && values.iter().any(|one| one == value);
    };
    match operator {
        Operator::Gt => value > bound,
        Operator::Gte => value >= bound,
        Operator::Lt => value < bound,
        Operator::Lte => value <= bound,
        _ => values.iter().any(|one| number(one) == Some(value)),
    }
}
