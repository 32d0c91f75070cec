//! LimitRanges: default requests of a namespace's containers, and the least and most that pods may ask for (admission plugin
//! `LimitRanger`).

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{self as k8s, Container, PodSpec};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use poolwright_api::{FieldProblem, key_segment};
use poolwright_catalog::{ResourceList, quantity};
use poolwright_core::rules::requests::{InitContainer, effective};

use super::limit_range_rules;
use super::resources::{Defaults, is_whole_only};
use crate::convert::readable;
use crate::error::{add_untold, quantity_problem};

type Quantities = BTreeMap<String, Quantity>;

/// The type of entries about PersistentVolumeClaims. These have requests only.
const CLAIM: &str = "PersistentVolumeClaim";

/// A LimitRange with the defaults that the API server adds to it.
pub(super) struct LimitRange {
    name: String,
    items: Vec<Item>,
}

/// One entry of a LimitRange.
struct Item {
    kind: String,
    /// Default limits of containers.
    limits: Quantities,
    /// Default requests of containers.
    requests: Quantities,
    min: Bound,
    max: Bound,
    /// The most that a limit may be of its request, in thousandths.
    ratio: BTreeMap<String, i128>,
}

/// Amounts, and how they are written.
struct Bound {
    amounts: ResourceList,
    written: Quantities,
}

impl Bound {
    /// Returns each resource with its amount, and how that is written.
    fn iter(&self) -> impl Iterator<Item = (&str, u64, &str)> {
        let all = self.written.iter();
        all.map(|(name, written)| (name.as_str(), self.amounts.get(name), written.0.as_str()))
    }
}

/// Reads a LimitRange, with the defaults of the API server: a limit is that of `max`, a request that of the limit, else of `min`.
/// Also returns its problems: each quantity that an API server would refuse, which is left out, and, in a LimitRange that none has
/// stored, amounts that contradict each other.
pub(super) fn read(name: &str, from: &k8s::LimitRange) -> (LimitRange, Vec<FieldProblem>) {
    let is_new = super::is_new(&from.metadata);
    let (mut items, mut problems) = (Vec::new(), Vec::new());
    for (at, item) in from.spec.iter().flat_map(|spec| &spec.limits).enumerate() {
        let path = |field: &str| format!("spec.limits[{at}].{field}");
        // Each amount is judged where it is written, because the defaults below copy it.
        let mut bound = |field: &str, written: Option<&Quantities>| {
            let (amounts, wrong) = readable(&path(field), written);
            problems.extend(wrong);
            let mut written = written.cloned().unwrap_or_default();
            written.retain(|name, text| quantity::amount(name, &text.0).is_ok());
            Bound { amounts, written }
        };
        let (min, max) = (bound("min", item.min.as_ref()), bound("max", item.max.as_ref()));
        let mut limits = bound("default", item.default.as_ref()).written;
        let mut requests = bound("defaultRequest", item.default_request.as_ref()).written;
        if item.type_ == "Container" {
            let add = |to: &mut Quantities, from: &Quantities| {
                for (name, amount) in from {
                    to.entry(name.clone()).or_insert_with(|| amount.clone());
                }
            };
            add(&mut limits, &max.written);
            add(&mut requests, &limits);
            add(&mut requests, &min.written);
        } else {
            (limits, requests) = (Quantities::new(), Quantities::new());
        }
        if is_new {
            problems.extend(contradictions(path, [&min.written, &max.written, &limits, &requests]));
        }
        let mut ratio = BTreeMap::new();
        for (name, most) in item.max_limit_request_ratio.iter().flatten() {
            let at = || format!("{}{}", path("maxLimitRequestRatio"), key_segment(name));
            match quantity::parse(&most.0) {
                Ok(most) => {
                    ratio.insert(name.clone(), most.milli_ceil());
                }
                Err(error) => problems.push(quantity_problem(at(), &error)),
            }
        }
        items.push(Item { kind: item.type_.clone(), limits, requests, min, max, ratio });
    }
    if is_new {
        add_untold(limit_range_rules::problems(from), &mut problems);
    }
    (LimitRange { name: name.to_owned(), items }, problems)
}

/// Returns where the amounts of an entry contradict each other (`ValidateLimitRange` in Kubernetes), once for each resource.
/// `limits` and `requests` are the defaults of containers, filled in.
fn contradictions(
    path: impl Fn(&str) -> String,
    [min, max, limits, requests]: [&Quantities; 4],
) -> Vec<FieldProblem> {
    let (mut problems, mut told) = (Vec::new(), BTreeSet::new());
    // Each field, whether it must not be above or below the other, and the other field. Defaults that are
    // filled in contradict nothing unless the fields that they come from do, and these are compared first.
    let rules = [
        ("min", min, true, "max", max),
        ("default", limits, true, "max", max),
        ("default", limits, false, "min", min),
        ("defaultRequest", requests, true, "max", max),
        ("defaultRequest", requests, true, "default", limits),
        ("defaultRequest", requests, false, "min", min),
    ];
    for (field, amounts, must_not_be_above, other, bounds) in rules {
        for (name, Quantity(written)) in amounts {
            let Some(Quantity(bound)) = bounds.get(name) else { continue };
            let (Ok(amount), Ok(most)) = (quantity::parse(written), quantity::parse(bound)) else { continue };
            let (is_wrong, relation, next) = if must_not_be_above {
                (amount > most, "above", "lower")
            } else {
                (amount < most, "below", "raise")
            };
            if is_wrong && told.insert(name) {
                problems.push(FieldProblem::new(
                    format!("{}{}", path(field), key_segment(name)),
                    format!("`{written}` is {relation} `{other}` ({bound}), which an API server refuses"),
                    format!("{next} it, or change `{other}`"),
                ));
            }
        }
    }
    let amount = |written: &Quantity| quantity::parse(&written.0).map(quantity::Quantity::milli_ceil).ok();
    for (name, request) in requests.iter().filter(|(name, _)| is_whole_only(name)) {
        let Some(limit) = limits.get(name) else { continue };
        if amount(request) != amount(limit) && told.insert(name) {
            problems.push(FieldProblem::new(
                format!("{}{}", path("defaultRequest"), key_segment(name)),
                format!("it differs from `default` ({}), and {name} cannot be shared", limit.0),
                "write the same amount in both",
            ));
        }
    }
    problems
}

impl LimitRange {
    /// Writes the default requests and limits into containers that state none, and notes them in
    /// `defaults`. A stated limit is the request before that.
    pub fn fill_in(&self, spec: &mut PodSpec, defaults: &mut Defaults) {
        for item in self.items.iter().filter(|item| item.kind == "Container") {
            if item.limits.is_empty() && item.requests.is_empty() {
                continue;
            }
            let lists = [
                ("containers", Some(&mut spec.containers)),
                ("initContainers", spec.init_containers.as_mut()),
            ];
            for (list, containers) in lists {
                for (at, container) in containers.into_iter().flatten().enumerate() {
                    let stated = container.resources.get_or_insert_default();
                    let limits = stated.limits.get_or_insert_default();
                    let requests = stated.requests.get_or_insert_default();
                    for (name, amount) in limits.iter() {
                        requests.entry(name.clone()).or_insert_with(|| amount.clone());
                    }
                    let place = format!("{list}[{at}]");
                    let fields = [
                        (limits, &item.limits, &mut defaults.limits),
                        (requests, &item.requests, &mut defaults.requests),
                    ];
                    for (stated, amounts, notes) in fields {
                        for (name, amount) in amounts {
                            if let Entry::Vacant(free) = stated.entry(name.clone()) {
                                free.insert(amount.clone());
                                let words = format!("LimitRange `{}` ({})", self.name, amount.0);
                                notes.entry(place.clone()).or_default().insert(name.clone(), words);
                            }
                        }
                    }
                }
            }
        }
    }

    /// Returns a problem for each reason to refuse a pod with this spec, whose defaults are filled in. Resources with a quantity that
    /// cannot be read are not judged: the conversion of the pod names the quantity.
    pub fn refusals(&self, path: &str, spec: &PodSpec) -> Vec<FieldProblem> {
        let mut problems = Vec::new();
        for item in &self.items {
            match item.kind.as_str() {
                "Container" => {
                    let lists = [
                        ("containers", Some(&spec.containers)),
                        ("initContainers", spec.init_containers.as_ref()),
                    ];
                    for (list, containers) in lists {
                        for (at, container) in containers.into_iter().flatten().enumerate() {
                            let path = format!("{path}.{list}[{at}].resources");
                            problems.extend(self.judge(&path, item, "a container", &Asked::of(container)));
                        }
                    }
                }
                "Pod" => problems.extend(self.judge(path, item, "a pod", &Asked::of_pod(spec))),
                _ => {}
            }
        }
        problems
    }

    /// Returns a problem for each reason to refuse a PersistentVolumeClaim.
    pub fn refusals_of_claim(&self, path: &str, claim: &k8s::PersistentVolumeClaim) -> Vec<FieldProblem> {
        let asked = claim.spec.as_ref().and_then(|spec| spec.resources.as_ref()?.requests.as_ref());
        let at = format!("{path}.resources.requests");
        let mut unread = BTreeSet::new();
        let requests = amounts(asked, &mut unread);
        let items = self.items.iter().filter(|item| item.kind == CLAIM);
        let limited = asked.into_iter().flatten().map(|(name, _)| name.clone()).collect();
        let asked = Asked { limits: requests.clone(), limited, requests, unread };
        items.flat_map(|item| self.judge(&at, item, "a PersistentVolumeClaim", &asked)).collect()
    }

    fn judge(&self, path: &str, item: &Item, who: &str, asked: &Asked) -> Vec<FieldProblem> {
        let mut problems = Vec::new();
        let mut refuse = |name: &str, cause: String, next: &str| {
            let cause = format!("LimitRange `{}` refuses {who} with {cause} of {name}", self.name);
            problems.push(FieldProblem::new(path, cause, next));
        };
        let is_read = |name: &str| !asked.unread.contains(name);
        for (name, least, written) in item.min.iter().filter(|(name, ..)| is_read(name)) {
            if asked.requests.get(name) < least {
                let cause = format!("less than {written}");
                refuse(name, cause, "request more, or change the LimitRange");
            }
        }
        for (name, most, written) in item.max.iter().filter(|(name, ..)| is_read(name)) {
            let (request, limit) = (asked.requests.get(name), asked.limits.get(name));
            if !asked.limited.contains(name) && item.kind == CLAIM {
                refuse(name, "no request".to_owned(), &format!("write `resources.requests.{name}`"));
            } else if !asked.limited.contains(name) {
                refuse(name, "no limit".to_owned(), "write a limit");
            } else if request > most {
                let cause = format!("more than {written}");
                refuse(name, cause, "request less, or change the LimitRange");
            } else if limit > most {
                let cause = format!("a limit of more than {written}");
                refuse(name, cause, "lower the limit, or change the LimitRange");
            }
        }
        for (name, most) in item.ratio.iter().filter(|(name, _)| is_read(name)) {
            let (request, limit) = (asked.requests.get(name), asked.limits.get(name));
            if request == 0 || limit == 0 {
                let cause = "no request and limit".to_owned();
                refuse(name, cause, "write both, because the LimitRange bounds their ratio");
            } else if i128::from(limit).saturating_mul(1000) > i128::from(request).saturating_mul(*most) {
                let cause = "a limit too large for its request".to_owned();
                refuse(name, cause, "lower the limit or raise the request");
            }
        }
        problems
    }
}

/// The requests and limits of a container or pod.
#[derive(Default)]
struct Asked {
    requests: ResourceList,
    limits: ResourceList,
    /// The resources that have a limit, even one of zero.
    limited: BTreeSet<String>,
    /// The resources with a quantity that cannot be read.
    unread: BTreeSet<String>,
}

impl Asked {
    fn of(container: &Container) -> Self {
        let mut asked = Self::default();
        let stated = container.resources.as_ref();
        asked.limits = amounts(stated.and_then(|stated| stated.limits.as_ref()), &mut asked.unread);
        asked.requests = asked.limits.clone();
        let requests = amounts(stated.and_then(|stated| stated.requests.as_ref()), &mut asked.unread);
        for (name, amount) in requests.iter() {
            asked.requests.set(name.clone(), amount);
        }
        let limited = stated.and_then(|stated| stated.limits.as_ref()).into_iter().flatten();
        asked.limited = limited.map(|(name, _)| name.clone()).collect();
        asked
    }

    /// Returns what the scheduler would count for the pod without its overhead, of requests and of limits.
    fn of_pod(spec: &PodSpec) -> Self {
        let containers: Vec<Self> = spec.containers.iter().map(Self::of).collect();
        let init = spec.init_containers.iter().flatten();
        let init: Vec<(bool, Self)> = init
            .map(|container| (container.restart_policy.as_deref() == Some("Always"), Self::of(container)))
            .collect();
        let whole = spec.resources.as_ref();
        let all = || containers.iter().chain(init.iter().map(|(_, asked)| asked));
        let mut unread: BTreeSet<String> = all().flat_map(|asked| &asked.unread).cloned().collect();
        let limits = Some(amounts(whole.and_then(|whole| whole.limits.as_ref()), &mut unread));
        let requests = whole.and_then(|whole| whole.requests.as_ref().or(whole.limits.as_ref()));
        let requests = Some(amounts(requests, &mut unread));
        let sum = |pick: fn(&Self) -> &ResourceList, whole: Option<ResourceList>| {
            let containers: Vec<ResourceList> = containers.iter().map(|asked| pick(asked).clone()).collect();
            let init = init
                .iter()
                .map(|(sidecar, asked)| InitContainer { requests: pick(asked).clone(), sidecar: *sidecar });
            effective(&containers, &init.collect::<Vec<_>>(), &ResourceList::new(), whole.as_ref())
        };
        let stated =
            whole.and_then(|whole| whole.limits.as_ref()).into_iter().flatten().map(|(name, _)| name);
        Self {
            requests: sum(|asked| &asked.requests, requests),
            limits: sum(|asked| &asked.limits, limits),
            limited: all().flat_map(|asked| &asked.limited).chain(stated).cloned().collect(),
            unread,
        }
    }
}

/// Returns the amounts that can be read. The names of the others go to `unread`.
fn amounts(from: Option<&Quantities>, unread: &mut BTreeSet<String>) -> ResourceList {
    let is_wrong = |(name, text): &(&String, &Quantity)| quantity::amount(name, &text.0).is_err();
    unread.extend(from.into_iter().flatten().filter(is_wrong).map(|(name, _)| name.clone()));
    readable("", from).0
}
