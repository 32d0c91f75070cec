//! Converts requirements, which say which offerings may be bought.
//!
//! A requirement without a counterpart is left out, so the pool may buy more than before; its note says so. A requirement that
//! nothing meets is a problem instead, because leaving it out would allow everything.

use std::collections::BTreeMap;

use poolwright_api::{Operator, Requirement};
use poolwright_provider_contract::karpenter::{Fields, LabelMapping, Places, Report, join};
use poolwright_terms::labels as ours;

use super::labels::{KARPENTER_CATALOGUE, label, meant_label};
use super::of_type::Rewritten;
use super::scope::{Scope, and_others};
use super::values::{
    CORES, CORES_OF_CLASS, MOST_VALUES, ReservedCpu, is_met_by_all, names_among, names_listed,
    values_in_words, whole_cores,
};
use super::{contradictions, of_type, service_of, spelling};

/// A requirement of Karpenter.
#[derive(Clone)]
pub(super) struct KarpenterRequirement {
    /// The path of the requirement.
    pub path: String,
    pub key: String,
    pub operator: Operator,
    pub values: Vec<String>,
    /// The least number of values that a launch leaves the cloud to choose from.
    pub min_values: Option<i32>,
    /// Whether it is a label of the template. Karpenter treats such a label as a requirement with one value.
    pub is_label: bool,
}

/// A requirement of the result.
pub(super) struct Made {
    /// The path in the source.
    pub path: String,
    pub requirement: Requirement,
    /// Whether its values are names that the built-in catalogue has, and not those that the user wrote.
    pub of_catalogue: bool,
}

/// Collects the requirements of a pool.
#[derive(Default)]
pub(super) struct Requirements {
    /// Whether the pool has a node class of a managed service, which labels its nodes.
    pub is_managed: bool,
    /// The CPU that the pool's node class reserves, if the input has the class and it reserves any.
    pub reserved: Option<ReservedCpu>,
    all: Vec<Made>,
    /// The labels of the template that are requirements, until all requirements are known.
    of_labels: Vec<KarpenterRequirement>,
    /// What the requirements leave each other.
    scope: Scope,
    /// The first requirement that no type of the catalogue meets together with the others.
    unmet: Option<String>,
    /// Whether a requirement by itself is a problem.
    is_wrong: bool,
    /// The user's own labels of the nodes: those of the template, and requirements with one value, which
    /// become labels.
    own: BTreeMap<String, String>,
    /// The fields of the source from which labels of the nodes come that were requirements.
    places: Places,
}

/// What requirements become.
pub(super) struct Converted {
    /// The requirements, with each key and operator once.
    pub requirements: Vec<Requirement>,
    /// The labels that nodes get.
    pub labels: BTreeMap<String, String>,
    /// The fields of the source from which both come.
    pub places: Places,
}

impl Requirements {
    /// Adds a label of the template, which decides whether requirements on its key are met.
    pub fn label(&mut self, key: &str, value: &str) {
        self.own.insert(key.to_owned(), value.to_owned());
    }

    /// Adds a label of the template that Karpenter treats as a requirement. [`Self::read`] converts it.
    pub fn of_label(&mut self, wanted: KarpenterRequirement) {
        self.of_labels.push(wanted);
    }

    /// Reads `requirements` in the spec of the template. Those that label the nodes are added first, because the labels decide
    /// whether the others are met.
    pub fn read(&mut self, of: &mut Fields<'_>, report: &mut Report) {
        let before_all = report.problems.len();
        let mut all = std::mem::take(&mut self.of_labels);
        for (path, value) in of.list("requirements", report) {
            let Some(mut fields) = Fields::of(&path, value, report) else { continue };
            let before = report.problems.len();
            let key = fields.needed_text("key", report);
            let operator = fields.needed_text("operator", report);
            let operator = operator.and_then(|text| operator_of(&fields.path("operator"), &text, report));
            let values = fields.texts("values", report);
            let min_values = fields.number("minValues", report).and_then(|least| {
                let in_range = i32::try_from(least).ok().filter(|least| (1..=50).contains(least));
                if in_range.is_none() {
                    let cause = format!("{least} is not between 1 and 50");
                    report.problem(
                        fields.path("minValues"),
                        cause,
                        "write a number in this range, or remove it",
                    );
                }
                in_range
            });
            fields.finish(report);
            let (Some(key), Some(operator)) = (key, operator) else { continue };
            let wanted = KarpenterRequirement { path, key, operator, values, min_values, is_label: false };
            // Values that cannot be read are missing here.
            if report.problems.len() == before && has_right_values(&wanted, report) {
                all.push(wanted);
            }
        }
        all.sort_by_key(|wanted| !labels_nodes(wanted));
        self.scope = Scope::of(&all);
        for wanted in all {
            self.add(wanted, report);
        }
        self.is_wrong = report.problems.len() > before_all;
    }

    /// Adds one requirement, with a note on its outcome.
    fn add(&mut self, mut wanted: KarpenterRequirement, report: &mut Report) {
        let mapping = label(&wanted.key);
        let has_values = matches!(
            mapping,
            LabelMapping::Renamed(_)
                | LabelMapping::Cpu
                | LabelMapping::Category
                | LabelMapping::Generation
                | LabelMapping::Size
                | LabelMapping::OfType(_)
        );
        match wanted.min_values.take_if(|_| !has_values) {
            None => {}
            Some(1) => report.changed(
                format!("{}.minValues", wanted.path),
                "Left out: a launch always leaves one value, so it is always met.",
            ),
            Some(least) => report.not_possible(
                format!("{}.minValues", wanted.path),
                format!(
                    "Left out: offerings have no values of `{}` in Poolwright, so a launch cannot leave a choice among {least}. Write \
                     minValues on `{}` instead.",
                    wanted.key,
                    ours::INSTANCE_TYPE
                ),
            ),
        }
        match mapping {
            LabelMapping::Renamed(to) => self.renamed(wanted, to, report),
            LabelMapping::Cpu => self.cpu(wanted, report),
            LabelMapping::Category | LabelMapping::Generation => {
                self.named(wanted, ours::INSTANCE_FAMILY, mapping, report);
            }
            LabelMapping::Size => self.named(wanted, ours::INSTANCE_TYPE, mapping, report),
            LabelMapping::OfType(to) => {
                let beside = self.scope.beside(&wanted.path);
                match of_type::convert(&mut wanted, to, &beside, report) {
                    Rewritten::Done => {}
                    Rewritten::Needed => self.push(wanted, to, report),
                    Rewritten::Contradicting => {
                        self.unmet.get_or_insert_with(|| wanted.path.clone());
                        self.push(wanted, to, report);
                    }
                }
            }
            LabelMapping::GpuManufacturer => self.manufacturer(wanted, report),
            LabelMapping::NoCounterpart(instead) => no_counterpart(wanted, instead, report),
            LabelMapping::Unneeded(_, why) if !self.is_managed && service_of(&wanted.key).is_some() => {
                absent(wanted, why, report);
            }
            LabelMapping::Unneeded(value, why) => unneeded(wanted, value, why, report),
            LabelMapping::Only(value, why) => only(&wanted, value, why, report),
            LabelMapping::Absent(instead) => absent(wanted, instead, report),
            LabelMapping::UserDefined => self.own(wanted, report),
        }
    }

    fn renamed(&mut self, wanted: KarpenterRequirement, to: &'static str, report: &mut Report) {
        if !spelling::leaves_any(&wanted, to, report) {
            return;
        }
        let also = spelling::remark(to, wanted.operator, &wanted.values);
        if wanted.is_label {
            report.changed(
                &wanted.path,
                format!("Becomes a requirement on `{to}`: the offering sets this label.{also}"),
            );
        } else if wanted.key == to && also.is_empty() {
            report.kept(&wanted.path, format!("`{to}` has the same name."));
        } else if wanted.key == to {
            // Fields that are kept are not shown by default.
            report.changed(&wanted.path, format!("`{to}` has the same name.{also}"));
        } else {
            report.changed(&wanted.path, format!("Becomes `{to}`, with the same values.{also}"));
        }
        self.push(wanted, to, report);
    }

    fn cpu(&mut self, mut wanted: KarpenterRequirement, report: &mut Report) {
        match whole_cores(wanted.operator, &wanted.values, self.reserved.unwrap_or_default()) {
            Ok((operator, cores)) => {
                wanted.operator = operator;
                wanted.values = cores;
            }
            Err(wrong) => {
                for value in wrong {
                    let cause = format!("`{value}` is not a number of vCPUs");
                    report.problem(&wanted.path, cause, "write whole numbers in quotes");
                }
                return;
            }
        }
        if wanted.values.is_empty() && wanted.operator == Operator::In {
            return nothing_meets(wanted.path, report);
        }
        let cores = if self.reserved.is_some() { CORES_OF_CLASS } else { CORES };
        report.changed(&wanted.path, format!("It is `{}`, which {cores}", ours::INSTANCE_CPU));
        if !(wanted.values.is_empty() && wanted.operator == Operator::NotIn) {
            self.push(wanted, ours::INSTANCE_CPU, report);
        }
    }

    /// Converts a requirement that Poolwright can express only with the names of families or types.
    fn named(
        &mut self,
        mut wanted: KarpenterRequirement,
        to: &'static str,
        mapping: LabelMapping,
        report: &mut Report,
    ) {
        let what = values_in_words(to);
        if matches!(wanted.operator, Operator::Exists | Operator::DoesNotExist) {
            report.changed(&wanted.path, format!("It is `{to}`."));
            return self.push(wanted, to, report);
        }
        let mut names = names_listed(mapping, wanted.operator, &wanted.values);
        let excludes = wanted.operator == Operator::NotIn;
        let verb = if excludes { "excludes" } else { "allows" };
        if names.is_empty() && !excludes {
            return nothing_meets(wanted.path, report);
        }
        if names.is_empty() {
            return report.changed(
                wanted.path,
                format!("Left out: the built-in catalogue has no {what} that it excludes. Exclude others by name with `{to}`."),
            );
        }
        let near = names_among(self.scope.beside(&wanted.path), mapping, wanted.operator, &wanted.values);
        if near.is_empty() && !excludes {
            self.unmet.get_or_insert_with(|| wanted.path.clone());
        }
        // A list must have a name. One that excludes may name more than the pool could buy.
        let leave_fewer = near.len() < names.len() && !near.is_empty();
        let also = if leave_fewer && (!excludes || names.len() > MOST_VALUES) {
            names = near;
            and_others(true)
        } else {
            ""
        };
        if names.len() > MOST_VALUES {
            let cause = format!(
                "Poolwright has no label for `{}`, and a requirement cannot list {} {what}",
                wanted.key,
                names.len()
            );
            let next = format!("use `{}` or `{}` instead", ours::INSTANCE_FAMILY, ours::INSTANCE_CPU);
            return report.problem(wanted.path, cause, next);
        }
        let others = if excludes { "It excludes no others" } else { "The pool buys no others" };
        report.changed(
            &wanted.path,
            format!(
                "Becomes `{to}` with the {what} of {} that it {verb} in the built-in catalogue{also}: {}. {others} until you add \
                 them.",
                KARPENTER_CATALOGUE.clouds,
                names.len()
            ),
        );
        wanted.values = names;
        if !excludes {
            wanted.operator = Operator::In;
        }
        self.push(wanted, to, report);
    }

    /// Converts a requirement on the GPU manufacturer. All GPUs of the catalogue are NVIDIA's.
    fn manufacturer(&mut self, mut wanted: KarpenterRequirement, report: &mut Report) {
        let names_nvidia = wanted.values.iter().any(|value| value == "nvidia");
        wanted.operator = match (wanted.operator, names_nvidia) {
            (Operator::In, true) | (Operator::Exists, _) => Operator::Exists,
            (Operator::NotIn, true) | (Operator::DoesNotExist, _) => Operator::DoesNotExist,
            (Operator::NotIn, false) => {
                return report.changed(wanted.path, "Left out: Poolwright only buys NVIDIA GPUs.");
            }
            _ => {
                return report.problem(
                    wanted.path,
                    "no node of Poolwright has such a GPU, so the pool would buy nothing",
                    "keep this pool in Karpenter: Poolwright buys NVIDIA GPUs only",
                );
            }
        };
        wanted.values = Vec::new();
        report.changed(
            &wanted.path,
            format!("Becomes `{}`, present or absent: Poolwright only buys NVIDIA GPUs.", ours::GPU_MODEL),
        );
        self.push(wanted, ours::GPU_MODEL, report);
    }

    /// Converts a requirement on a label that only the user defines. Nodes have it if the template or a requirement with one value
    /// says so; [`Requirements::read`] has added both before.
    fn own(&mut self, wanted: KarpenterRequirement, report: &mut Report) {
        if let Some(value) = self.own.get(&wanted.key) {
            let label = format!("the label `{}: {value}` of the nodes", wanted.key);
            if is_met_by_all(wanted.operator, &wanted.values, Some(value.as_str())) {
                return report.changed(wanted.path, format!("Left out: {label} meets it."));
            }
            let cause = format!("contradicts {label}, so that Karpenter buys nothing");
            return report.problem(wanted.path, cause, "correct one of them");
        }
        match (wanted.operator, wanted.values.as_slice()) {
            (Operator::In, [value]) => {
                report.changed(&wanted.path, format!("Becomes the label `{}: {value}` of the nodes.", wanted.key));
                self.places.add(join("spec.template.metadata.labels", &wanted.key), &wanted.path);
                self.own.insert(wanted.key, value.clone());
            }
            (Operator::DoesNotExist, _) => {
                report.kept(&wanted.path, format!("`{}` is a label of your own; it stays.", wanted.key));
                let key = wanted.key.clone();
                let requirement =
                    Requirement { key, operator: wanted.operator, values: wanted.values, min_values: None };
                self.all.push(Made { path: wanted.path, requirement, of_catalogue: false });
            }
            _ => report.not_possible(
                wanted.path,
                format!(
                    "No offering decides `{}`, and a label of nodes has one value. Write one NodePool for each value, with it under \
                     spec.template.metadata.labels.",
                    wanted.key
                ),
            ),
        }
    }

    fn push(&mut self, wanted: KarpenterRequirement, key: &str, report: &mut Report) {
        let min_values = least_values(&wanted, key, report);
        let of_catalogue = is_derived(&wanted.key);
        let requirement =
            Requirement { key: key.to_owned(), operator: wanted.operator, values: wanted.values, min_values };
        self.all.push(Made { path: wanted.path, requirement, of_catalogue });
    }

    /// Merges the requirements with the same key and operator.
    pub fn finish(self, report: &mut Report) -> Converted {
        let before = report.problems.len();
        contradictions::report(&self.all, report);
        if let Some(path) = self.unmet.filter(|_| !self.is_wrong && report.problems.len() == before) {
            report.problem(
                path,
                "nothing in the built-in catalogue meets it together with the pool's other requirements",
                "correct one of them, or name instance types with node.kubernetes.io/instance-type alone",
            );
        }
        let mut merged: Vec<Requirement> = Vec::new();
        let mut places = self.places;
        for Made { path, requirement: next, .. } in self.all {
            let same = merged.iter_mut().find(|one| one.key == next.key && one.operator == next.operator);
            let Some(same) = same else {
                places.add(format!("spec.template.spec.requirements[{}]", merged.len()), path);
                merged.push(next);
                continue;
            };
            same.min_values = same.min_values.max(next.min_values);
            match next.operator {
                // Without a common value, both contradict each other, which is a problem of its own.
                Operator::In if same.values.iter().any(|value| next.values.contains(value)) => {
                    same.values.retain(|value| next.values.contains(value));
                }
                Operator::In => continue,
                Operator::NotIn => {
                    let more = next
                        .values
                        .into_iter()
                        .filter(|value| !same.values.contains(value))
                        .collect::<Vec<_>>();
                    same.values.extend(more);
                }
                Operator::Gt | Operator::Gte => keep(same, next, |old, new| new > old),
                Operator::Lt | Operator::Lte => keep(same, next, |old, new| new < old),
                Operator::Exists | Operator::DoesNotExist => {}
            }
            if let Some(least) = same.min_values
                && same.operator == Operator::In
                && same.values.len() < usize::try_from(least).unwrap_or(0)
            {
                let cause = format!(
                    "minValues asks for {least} values, but the requirements on its label together leave {}",
                    same.values.len()
                );
                report.problem(path, cause, "allow more values, or lower minValues");
            }
        }
        Converted { requirements: merged, labels: self.own, places }
    }
}

/// Reports a requirement on a label that Poolwright does not know. Without it, the pool would buy more than before.
fn no_counterpart(wanted: KarpenterRequirement, instead: &str, report: &mut Report) {
    let KarpenterRequirement { path, key, is_label, .. } = wanted;
    let near = meant_label(&key);
    if is_label {
        let hint = near.map_or_else(String::new, |near| format!(" Did you mean `{near}`?"));
        let sentence = format!("`{key}` cannot be a label of the nodes: left out. {instead}{hint}");
        return report.not_possible(path, sentence);
    }
    let cause = format!(
        "Poolwright has no label for `{key}`, and without the requirement the pool may buy more than before"
    );
    let next = near.map_or_else(
        || format!("replace it or remove it. {}", instead.trim_end_matches('.')),
        |near| format!("did you mean `{near}`?"),
    );
    report.problem(path, cause, next);
}

/// Notes a requirement on a label that nodes have with this value, or do not have. It is a problem if no node
/// meets it.
fn only(wanted: &KarpenterRequirement, value: Option<&str>, why: &str, report: &mut Report) {
    if is_met_by_all(wanted.operator, &wanted.values, value) {
        report.changed(&wanted.path, format!("Left out: all nodes of Poolwright meet it. {why}"));
    } else {
        let cause = format!("no node of Poolwright meets it: {}", why.trim_end_matches('.'));
        report.problem(&wanted.path, cause, "correct it, or keep this pool in Karpenter");
    }
}

/// Notes a requirement on a label that all nodes of Karpenter have with this value, and no node of Poolwright has.
fn unneeded(wanted: KarpenterRequirement, value: &str, why: &str, report: &mut Report) {
    let KarpenterRequirement { path, key, operator, values, .. } = wanted;
    if is_met_by_all(operator, &values, Some(value)) {
        report.changed(path, format!("Left out: Poolwright has no `{key}`. {why}"));
    } else {
        report.not_possible(
            path,
            format!(
                "Left out, although it excludes all nodes with the value `{value}`: Poolwright has no `{key}`. {why} {}",
                may_buy_more()
            ),
        );
    }
}

/// Notes a requirement on a label that neither nodes of Karpenter nor nodes of Poolwright have by themselves. Karpenter adds such
/// a label to the nodes of a pool that requires it.
fn absent(wanted: KarpenterRequirement, instead: &str, report: &mut Report) {
    let KarpenterRequirement { path, key, operator, values, .. } = wanted;
    if is_met_by_all(operator, &values, None) {
        report.changed(path, format!("Left out: no node of Poolwright has `{key}`, so all of them meet it."));
    } else {
        let sentence = format!("Left out: Poolwright does not add `{key}` to nodes. {instead}");
        report.not_possible(path, sentence);
    }
}

/// Returns whether the requirement becomes a label of the nodes.
fn labels_nodes(wanted: &KarpenterRequirement) -> bool {
    let has_one_value = wanted.operator == Operator::In && wanted.values.len() == 1;
    has_one_value && label(&wanted.key) == LabelMapping::UserDefined
}

/// Returns whether requirements on the label become names of the catalogue.
fn is_derived(key: &str) -> bool {
    matches!(
        label(key),
        LabelMapping::Category | LabelMapping::Generation | LabelMapping::Size | LabelMapping::OfType(_)
    )
}

/// Returns `minValues` of a requirement whose label is now `key`, and notes it.
fn least_values(wanted: &KarpenterRequirement, key: &str, report: &mut Report) -> Option<i32> {
    let least = wanted.min_values?;
    let path = format!("{}.minValues", wanted.path);
    if wanted.operator == Operator::DoesNotExist {
        report.not_possible(path, "Left out: a label that must be absent has no values to choose from.");
        return None;
    }
    let most = if wanted.operator == Operator::In { wanted.values.len() } else { usize::MAX };
    if usize::try_from(least).is_ok_and(|least| least > most) {
        let cause =
            format!("minValues asks for {least} values, but the requirement leaves {most} of `{key}`");
        report.problem(path, cause, "allow more values, or lower minValues");
        return None;
    }
    let policy = "If no such choice is left, nothing is bought, as with Karpenter's default. If you run Karpenter with its \
                  min-values-policy BestEffort (`settings.minValuesPolicy` of its chart), run `poolwright controller` with \
                  `--min-values-policy BestEffort`.";
    if is_derived(&wanted.key) {
        report.changed(
            path,
            format!(
                "It counts values of `{key}`, which is less strict: {least} values of `{}` are at least as many of `{key}`, but not \
                 always the other way round. {policy}",
                wanted.key
            ),
        );
    } else {
        let what = if key == ours::CAPACITY_TYPE {
            "The offerings of a NodeClaim have at least this many capacity types; one launch call has one."
        } else {
            "One launch call names at least this many values, all of the node's capacity type."
        };
        report.kept(path, format!("{what} {policy}"));
    }
    Some(least)
}

/// Keeps the stricter of two bounds.
fn keep(same: &mut Requirement, next: Requirement, is_stricter: fn(u64, u64) -> bool) {
    let number = |of: &Requirement| of.values.first().and_then(|text| text.parse::<u64>().ok());
    if let (Some(old), Some(new)) = (number(same), number(&next))
        && is_stricter(old, new)
    {
        same.values = next.values;
    }
}

fn may_buy_more() -> &'static str {
    "Without it the pool may buy more than before."
}

pub(super) fn nothing_meets(path: String, report: &mut Report) {
    report.problem(
        path,
        "nothing in the built-in catalogue meets this requirement",
        "choose instance types or families by name with node.kubernetes.io/instance-type or an instance-family instead",
    );
}

fn operator_of(path: &str, text: &str, report: &mut Report) -> Option<Operator> {
    let operator = match text {
        "In" => Operator::In,
        "NotIn" => Operator::NotIn,
        "Exists" => Operator::Exists,
        "DoesNotExist" => Operator::DoesNotExist,
        "Gt" => Operator::Gt,
        "Gte" => Operator::Gte,
        "Lt" => Operator::Lt,
        "Lte" => Operator::Lte,
        _ => {
            let next = "write In, NotIn, Exists, DoesNotExist, Gt, Gte, Lt or Lte";
            report.problem(path, format!("`{text}` is not an operator"), next);
            return None;
        }
    };
    Some(operator)
}

fn has_right_values(wanted: &KarpenterRequirement, report: &mut Report) -> bool {
    let path = format!("{}.values", wanted.path);
    let (is_right, next) = match (wanted.operator, wanted.values.as_slice()) {
        (Operator::In | Operator::NotIn, values) => (!values.is_empty(), "give it one value or more"),
        (Operator::Exists | Operator::DoesNotExist, values) => (values.is_empty(), "remove the values"),
        (_, [one]) => (one.parse::<u64>().is_ok(), "give it one whole number, in quotes"),
        _ => (false, "give it one whole number, in quotes"),
    };
    if !is_right {
        report.problem(path, "these values do not fit the operator", next);
    }
    is_right
}
