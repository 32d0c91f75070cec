//! What becomes of a requirement of pods on one label of Karpenter.

use poolwright_api::Operator;
use poolwright_provider_contract::karpenter::LabelMapping;
use poolwright_terms::{keys, labels as ours};

use super::labels::{KARPENTER_CATALOGUE, label, meant_label, names_pool};
use super::of_type::Names;
use super::values::{
    CORES, MOST_VALUES, ReservedCpu, is_met_by_all, names_that_meet, values_in_words, whole_cores,
};
use super::{service_of, spelling};

/// The result for a requirement on a label of Karpenter.
pub(super) enum Mapped {
    /// The user's own label, or one that Poolwright's nodes have too.
    Same,
    /// Another label, with these values. `also` is what else to know of them: empty, or sentences after a
    /// space.
    To { key: &'static str, operator: Operator, values: Vec<String>, also: String },
    /// The expression stays: only nodes that a managed service buys have the label with this value. The sentence says what to do if pods
    /// are to stay off nodes of Poolwright, too.
    OfService(String),
    /// No requirement is needed, because all nodes of Poolwright meet it. The sentence says why.
    Met(String),
    /// No counterpart. The sentence says what to do.
    None(String),
}

/// Converts a requirement of pods on one label.
pub(super) fn mapped(key: &str, operator: Operator, values: Vec<String>) -> Mapped {
    let to = |key, operator, values| Mapped::To { key, operator, values, also: String::new() };
    if key == ours::HOSTNAME || key.starts_with("poolwright.dev/") {
        return Mapped::Same;
    }
    if names_pool(key) {
        return to(keys::NODEPOOL_LABEL, operator, values);
    }
    let names = |key: &'static str, mapping, operator: Operator, values: &[String]| {
        match operator {
            // Other nodes have a type, too.
            Operator::Exists if key == ours::INSTANCE_TYPE => return of_all_nodes(operator),
            Operator::DoesNotExist if key == ours::INSTANCE_TYPE => return of_no_node(),
            Operator::Exists | Operator::DoesNotExist => return to(key, operator, Vec::new()),
            _ => {}
        }
        let Some(names) = names_that_meet(mapping, operator, values) else {
            return Mapped::None(format!("Name the types that you want with `{}`.", ours::INSTANCE_TYPE));
        };
        let also = of_the_catalogue(key, operator, names.len());
        let operator = if operator == Operator::NotIn { operator } else { Operator::In };
        Mapped::To { key, operator, values: names, also }
    };
    match label(key) {
        LabelMapping::Renamed(same) if same == key => Mapped::Same,
        LabelMapping::UserDefined => Mapped::Same,
        LabelMapping::Renamed(other) => {
            let also = spelling::remark(other, operator, &values);
            Mapped::To { key: other, operator, values, also }
        }
        LabelMapping::OfType(to) => of_type((key, to), operator, &values),
        LabelMapping::Cpu => match whole_cores(operator, &values, ReservedCpu::default()) {
            Ok((Operator::In, cores)) if cores.is_empty() => {
                Mapped::None("No machine has zero vCPUs.".to_owned())
            }
            Ok((Operator::NotIn, cores)) if cores.is_empty() => {
                Mapped::Met("No machine has zero vCPUs.".to_owned())
            }
            // Pods have no operator Gte, and any number of cores is zero or more.
            Ok((Operator::Gte, _)) if operator == Operator::Gt => {
                to(ours::INSTANCE_CPU, Operator::Exists, Vec::new())
            }
            Ok((operator, cores)) => {
                let also = if cores.is_empty() { String::new() } else { format!(" It {CORES}") };
                Mapped::To { key: ours::INSTANCE_CPU, operator, values: cores, also }
            }
            Err(_) => Mapped::None("Write whole numbers of vCPUs.".to_owned()),
        },
        mapping @ (LabelMapping::Category | LabelMapping::Generation) => {
            names(ours::INSTANCE_FAMILY, mapping, operator, &values)
        }
        mapping @ LabelMapping::Size => names(ours::INSTANCE_TYPE, mapping, operator, &values),
        LabelMapping::GpuManufacturer => {
            let is_nvidia = values.iter().any(|value| value == "nvidia");
            match (operator, is_nvidia) {
                (Operator::In, true) | (Operator::Exists, _) => {
                    to(ours::GPU_MODEL, Operator::Exists, Vec::new())
                }
                (Operator::NotIn, true) | (Operator::DoesNotExist, _) => {
                    to(ours::GPU_MODEL, Operator::DoesNotExist, Vec::new())
                }
                (Operator::NotIn, false) => Mapped::Met("Poolwright buys NVIDIA GPUs only.".to_owned()),
                _ => Mapped::None("Poolwright buys NVIDIA GPUs only.".to_owned()),
            }
        }
        LabelMapping::Only(None, _) if matches!(operator, Operator::NotIn | Operator::DoesNotExist) => {
            Mapped::Same
        }
        LabelMapping::Only(Some(value), _) if is_met_by_all(operator, &values, Some(value)) => {
            of_all_nodes(operator)
        }
        LabelMapping::Unneeded(value, _) if stays_off_a_service(key, operator, &values, value) => {
            of_service(key)
        }
        LabelMapping::Only(Some(value), _) | LabelMapping::Unneeded(value, _)
            if matches!(operator, Operator::NotIn | Operator::DoesNotExist)
                && !is_met_by_all(operator, &values, Some(value)) =>
        {
            of_no_node()
        }
        LabelMapping::Only(_, instead) => Mapped::None(instead.to_owned()),
        LabelMapping::Unneeded(value, _) if is_met_by_all(operator, &values, Some(value)) => {
            of_all_nodes(operator)
        }
        // Pods kept off such nodes in Karpenter, and still do.
        LabelMapping::Absent(_) if is_met_by_all(operator, &values, None) => Mapped::Same,
        LabelMapping::Unneeded(_, instead) | LabelMapping::Absent(instead) => {
            Mapped::None(excluding(operator) + instead)
        }
        LabelMapping::NoCounterpart(instead) => {
            let hint = meant_label(key).map_or_else(String::new, |near| format!(" Did you mean `{near}`?"));
            Mapped::None(excluding(operator) + instead + &hint)
        }
    }
}

/// Converts a requirement on a label that all nodes of Karpenter have with the same value, and other nodes lack. All nodes of
/// Poolwright have the label with the name of their pool. Without any label, pods of a DaemonSet would run on the other nodes, too.
fn of_all_nodes(operator: Operator) -> Mapped {
    // Nodes without the label meet it, too.
    if operator == Operator::NotIn {
        return Mapped::Same;
    }
    let also = " All nodes that Poolwright buys have it, and no others.".to_owned();
    Mapped::To { key: keys::NODEPOOL_LABEL, operator: Operator::Exists, values: Vec::new(), also }
}

/// Converts a requirement that keeps pods off all nodes of Karpenter. Nodes of Poolwright lack the label, so they would meet it.
fn of_no_node() -> Mapped {
    let also = " All nodes that Poolwright buys have it, so this keeps the pods off them.".to_owned();
    Mapped::To { key: keys::NODEPOOL_LABEL, operator: Operator::DoesNotExist, values: Vec::new(), also }
}

/// Returns whether a requirement keeps pods off the nodes of a managed service alone: they have the label with this value, and other
/// nodes of Karpenter lack it.
fn stays_off_a_service(key: &str, operator: Operator, values: &[String], value: &str) -> bool {
    matches!(operator, Operator::NotIn | Operator::DoesNotExist)
        && !is_met_by_all(operator, values, Some(value))
        && service_of(key).is_some()
}

/// Leaves such a requirement as it is. Nodes of Poolwright are no nodes of the service, and need the DaemonSets that such nodes do not.
fn of_service(key: &str) -> Mapped {
    let service = service_of(key).map_or("the service", |service| service.name);
    Mapped::OfService(format!(
        "It stays as it is: nodes of Poolwright lack `{key}`, so they meet it. If these pods are to stay off them as they stay off nodes of \
         {service}, add `{}` with `DoesNotExist`.",
        keys::NODEPOOL_LABEL
    ))
}

/// Converts a requirement on a fact about instance types to one on their names, or on those of their families: those that meet it, or all
/// but the others.
fn of_type((key, to): (&str, &'static str), operator: Operator, values: &[String]) -> Mapped {
    let Names { met, unmet } = Names::by(key, to, operator, values);
    let excludes = matches!(operator, Operator::NotIn | Operator::DoesNotExist);
    if unmet.is_empty() && excludes {
        return Mapped::Met("All instance types of the built-in catalogue meet it.".to_owned());
    }
    if unmet.is_empty() {
        return of_all_nodes(operator);
    }
    if met.is_empty() && operator == Operator::DoesNotExist {
        return of_no_node();
    }
    let is_possible = excludes || !met.is_empty();
    let (listed, others) = ((Operator::In, met), (Operator::NotIn, unmet));
    let choices = if excludes { [others, listed] } else { [listed, others] };
    let fits = |choice: &(Operator, Vec<String>)| (1..=MOST_VALUES).contains(&choice.1.len());
    let Some((operator, names)) = choices.into_iter().find(fits).filter(|_| is_possible) else {
        return Mapped::None(format!("Name the types that you want with `{}`.", ours::INSTANCE_TYPE));
    };
    let also = of_the_catalogue(to, operator, names.len());
    Mapped::To { key: to, operator, values: names, also }
}

/// Says what becomes of a requirement that excludes nodes by a label that Poolwright does not know.
fn excluding(operator: Operator) -> String {
    if matches!(operator, Operator::NotIn | Operator::DoesNotExist) {
        "Plans count the label as absent, so this rule excludes no node of Poolwright. ".to_owned()
    } else {
        String::new()
    }
}

/// Says of a list of families or types that it is of the built-in catalogue, and what follows from that.
fn of_the_catalogue(key: &str, operator: Operator, number: usize) -> String {
    let what = values_in_words(key);
    let (verb, others) = if operator == Operator::NotIn {
        ("excludes", "It excludes no others")
    } else {
        ("allows", "No others match")
    };
    format!(
        " It lists the {what} of {} that it {verb} in the built-in catalogue: {number}. {others} until you \
         add them.",
        KARPENTER_CATALOGUE.clouds
    )
}
