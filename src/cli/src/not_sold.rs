//! What a pool or a pod asks for by name without getting it: instance types that no node class sells by default, such as bare metal,
//! and values of labels that no offering has.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use poolwright_catalog::{Catalogue, InstanceType, InstanceTypeName};
use poolwright_core::{Node, Operator, Pod, PodKey, Pool, PoolName, Requirement};
use poolwright_terms::NodeClassRef;
use poolwright_terms::labels::{GPU_MODEL, INSTANCE_FAMILY, INSTANCE_TYPE, REGION, ZONE};

use crate::near::near;

/// The types of a catalogue that each class does not sell by default, with the reason and how to allow it.
pub type LeftOut = BTreeMap<NodeClassRef, BTreeMap<InstanceTypeName, String>>;

/// The most names of one kind in a note.
pub const NAMED: usize = 3;

/// The most values that one note names of those which no offering has.
const NAMED_UNKNOWN: usize = 10;

/// What a class sells of a catalogue, and what it leaves out.
pub struct Range<'a> {
    /// The class.
    pub class: &'a NodeClassRef,
    /// What it sells.
    pub sold: &'a Catalogue,
    /// What it leaves out.
    pub left_out: Option<&'a BTreeMap<InstanceTypeName, String>>,
}

/// Something that is asked for: a label's key and value.
type Asked<'a> = (&'a str, &'a str);

/// Who asks for what, and with which class; any if `None`. A pool buys with its class, a pod with any.
type Asks<'a> = BTreeMap<(Option<&'a NodeClassRef>, Asked<'a>), BTreeSet<Asker<'a>>>;

/// A pool or a pod that asks.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Asker<'a> {
    Pool(&'a PoolName),
    Pod(&'a PodKey),
}

/// What is told of one class.
#[derive(Default)]
struct Told<'a> {
    what: Vec<&'a str>,
    /// The reason of the first.
    why: &'a str,
    who: BTreeSet<Asker<'a>>,
}

/// Says of each class what it does not sell although a pool of this class, or a pod, asks for it. `catalogue` has all offerings.
pub fn notes<'a>(
    ranges: &[Range<'a>],
    catalogue: &Catalogue,
    pools: impl Iterator<Item = &'a Pool>,
    pods: impl Iterator<Item = &'a Pod>,
) -> Vec<String> {
    let told = told(ranges, catalogue, &asks(pools, pods));
    told.into_iter().map(|(class, told)| format!("{class}: it does not sell {}", told.text())).collect()
}

/// Says which values of labels pools and pods ask for that no offering has. `catalogue` has all offerings. What an existing node has
/// is right for a pod.
pub fn unknown<'a>(
    catalogue: &Catalogue,
    pools: impl Iterator<Item = &'a Pool>,
    pods: impl Iterator<Item = &'a Pod>,
    nodes: impl Iterator<Item = &'a Node>,
) -> Vec<String> {
    let labels = nodes.flat_map(|node| &node.labels).map(|(key, value)| (key.as_str(), value.as_str()));
    let there: BTreeSet<Asked<'_>> = labels.filter(|(key, _)| NAMES.contains(key)).collect();
    let mut asks = asks(pools, pods);
    asks.retain(|(class, asked), _| class.is_some() || !there.contains(asked));
    unknown_to_all(catalogue, &asks)
}

/// Returns the types which pods ask for by name although node classes do not sell them by default, and a note on them. Without a pool
/// there is no class that could name them, so that the plan may buy them all the same.
pub fn without_pool<'a>(
    range: Range<'a>,
    catalogue: &Catalogue,
    pods: impl Iterator<Item = &'a Pod>,
) -> (BTreeSet<InstanceTypeName>, Option<String>) {
    let asks = asks(std::iter::empty(), pods);
    let told = told(&[range], catalogue, &asks);
    let Some(told) = told.into_values().next() else { return (BTreeSet::new(), None) };
    let is_asked = |kind: &&InstanceType| {
        told.what.iter().any(|what| [kind.name.as_str(), kind.family()].contains(what))
    };
    let asked = catalogue.types().values().filter(is_asked).map(|kind| kind.name.clone()).collect();
    (asked, Some(format!("by default, node classes do not sell {}", told.text())))
}

/// Returns the first of these names, and how many others there are.
pub fn first_of(names: &[&str]) -> String {
    first(names, NAMED)
}

fn first(names: &[&str], most: usize) -> String {
    let shown = names[..names.len().min(most)].join(", ");
    match names.len().saturating_sub(most) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

fn asks<'a>(pools: impl Iterator<Item = &'a Pool>, pods: impl Iterator<Item = &'a Pod>) -> Asks<'a> {
    let mut asks = Asks::new();
    for pool in pools {
        for asked in pool.requirements.iter().flat_map(asked) {
            asks.entry((Some(&pool.node_class), asked)).or_default().insert(Asker::Pool(&pool.name));
        }
    }
    for pod in pods {
        let selected = pod.spec.node_selector.iter().map(|(key, value)| (key.as_str(), value.as_str()));
        let terms = pod.spec.node_affinity.iter().flatten();
        let in_terms = terms.flat_map(|term| &term.requirements).flat_map(asked);
        for asked in selected.filter(|(key, _)| NAMES.contains(key)).chain(in_terms) {
            asks.entry((None, asked)).or_default().insert(Asker::Pod(&pod.key));
        }
    }
    asks
}

fn told<'a>(
    ranges: &[Range<'a>],
    catalogue: &Catalogue,
    asks: &Asks<'a>,
) -> BTreeMap<&'a NodeClassRef, Told<'a>> {
    let mut told: BTreeMap<&NodeClassRef, Told<'_>> = BTreeMap::new();
    for (&(class, asked), askers) in asks.iter().filter(|((_, (key, _)), _)| is_of_types(key)) {
        let mut able = ranges.iter().filter(|range| class.is_none_or(|class| range.class == class));
        if able.clone().any(|range| range.sells(asked)) {
            continue;
        }
        let found = able.find_map(|range| Some((range.class, range.why_not(asked, catalogue)?)));
        let Some((class, why)) = found else { continue };
        let told = told.entry(class).or_default();
        if told.what.is_empty() {
            told.why = why;
        }
        if !told.what.contains(&asked.1) {
            told.what.push(asked.1);
        }
        told.who.extend(askers);
    }
    told
}

/// Says which of the values that are asked for no offering has. Values of the same label that the same pools and pods ask for share
/// a note.
fn unknown_to_all(catalogue: &Catalogue, asks: &Asks<'_>) -> Vec<String> {
    let mut askers_of: BTreeMap<Asked<'_>, BTreeSet<Asker<'_>>> = BTreeMap::new();
    for (&(_, asked), askers) in asks {
        askers_of.entry(asked).or_default().extend(askers);
    }
    let mut notes = Vec::new();
    for key in NAMES {
        let known = values(catalogue, key);
        let mut strange: BTreeMap<&BTreeSet<Asker<'_>>, Vec<String>> = BTreeMap::new();
        for (&(_, value), askers) in
            askers_of.iter().filter(|((of, value), _)| *of == key && !known.contains(value))
        {
            // Names of zones and regions differ by single letters, so the nearest one means nothing.
            let near = if [ZONE, REGION].contains(&key) { None } else { near(value, known.iter().copied()) };
            let also = near.map_or_else(String::new, |near| format!(" (did you mean {near}?)"));
            strange.entry(askers).or_default().push(format!("{value}{also}"));
        }
        for (askers, values) in strange {
            let values: Vec<&str> = values.iter().map(String::as_str).collect();
            notes.push(format!(
                "no offering in the catalogue has these values of `{key}`: {}, asked for by {}; correct what is misspelt, or take a \
                 catalogue that has them (docs/catalogue.md)",
                first(&values, NAMED_UNKNOWN),
                named(askers)
            ));
        }
    }
    notes
}

/// Returns the values of a label in a catalogue.
fn values<'c>(catalogue: &'c Catalogue, key: &str) -> BTreeSet<&'c str> {
    let kinds = catalogue.types().values();
    match key {
        INSTANCE_TYPE => kinds.map(|kind| kind.name.as_str()).collect(),
        INSTANCE_FAMILY => kinds.map(InstanceType::family).collect(),
        GPU_MODEL => kinds.filter_map(|kind| Some(kind.gpu.as_ref()?.model.as_str())).collect(),
        ZONE => catalogue.offerings().iter().map(|offering| offering.id.zone.as_str()).collect(),
        REGION => catalogue.offerings().iter().filter_map(|offering| offering.region.as_deref()).collect(),
        _ => BTreeSet::new(),
    }
}

/// Names the first of those that ask, and how many others there are.
fn named(askers: &BTreeSet<Asker<'_>>) -> String {
    let first = askers.first().map(ToString::to_string).unwrap_or_default();
    if askers.len() > 1 { format!("{first} and {} more", askers.len() - 1) } else { first }
}

/// The labels whose values are names of things that a catalogue has or lacks.
const NAMES: [&str; 5] = [INSTANCE_TYPE, INSTANCE_FAMILY, GPU_MODEL, ZONE, REGION];

/// Returns the values that a requirement names.
fn asked(requirement: &Requirement) -> impl Iterator<Item = Asked<'_>> {
    let key = requirement.key.as_str();
    let values = match &requirement.operator {
        Operator::In(values) if NAMES.contains(&key) => Some(values),
        _ => None,
    };
    values.into_iter().flatten().map(move |value| (key, value.as_str()))
}

fn is_of_types(key: &str) -> bool {
    [INSTANCE_TYPE, INSTANCE_FAMILY].contains(&key)
}

/// Returns whether a type is what is asked for, or one of its family.
fn is_meant(kind: &InstanceType, (key, value): Asked<'_>) -> bool {
    let own = if key == INSTANCE_TYPE { kind.name.as_str() } else { kind.family() };
    own == value
}

impl<'a> Range<'a> {
    fn sells(&self, asked: Asked<'_>) -> bool {
        self.sold.types().values().any(|kind| is_meant(kind, asked))
    }

    /// Returns why the class leaves out what is asked for; `None` if it does not.
    fn why_not(&self, asked: Asked<'_>, catalogue: &Catalogue) -> Option<&'a str> {
        let kind = |name: &InstanceTypeName| catalogue.types().get(name);
        let left_out = self.left_out?;
        let found = left_out.iter().find(|(name, _)| kind(name).is_some_and(|kind| is_meant(kind, asked)));
        found.map(|(_, why)| why.as_str())
    }
}

impl fmt::Display for Asker<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pool(name) => write!(f, "NodePool {name}"),
            Self::Pod(key) => write!(f, "Pod {key}"),
        }
    }
}

impl Told<'_> {
    fn text(&self) -> String {
        let (what, who) = (first_of(&self.what), named(&self.who));
        let why = match self.what[..] {
            [_] => self.why.to_owned(),
            _ => format!("{}: {}", self.what[0], self.why),
        };
        format!("{what}, asked for by {who}: {why}")
    }
}

#[cfg(test)]
mod tests {
    use poolwright_intake::manifest;

    use super::*;

    const CATALOGUE: &str = "instance_type,provider,arch,allocatable_cpu_milli,allocatable_memory_mib,allocatable_pods,gpu_model,gpu_count,\
         gpu_memory_mib_each,on_demand_usd_per_hour\nm6i.large,aws,amd64,1930,6903,35,,0,,0.1\n\
         m6i.metal,aws,amd64,1930,6903,35,,0,,0.1\nt3.large,aws,amd64,1930,6903,35,,0,,0.1\n";

    fn pool(name: &str, key: &str, values: &str) -> String {
        format!(
            "apiVersion: poolwright.dev/v1alpha1\nkind: NodePool\nmetadata: {{name: {name}}}\nspec: {{template: {{spec: {{nodeClassRef: \
             {{group: poolwright.dev, kind: KwokNodeClass, name: a}}, requirements: [{{key: {key}, operator: In, values: [{values}]}}]}}}}}}\n---\n"
        )
    }

    fn pod(name: &str, selector: &str) -> String {
        format!(
            "apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}}}\nspec: {{nodeSelector: {{{selector}}}, containers: [{{name: c, image: x}}]}}\n---\n"
        )
    }

    /// The notes if class `a` sells only `m6i.large`, and class `b` also sells these types.
    fn told(objects: &str, of_b: &[&str]) -> Vec<String> {
        let manifest = manifest::parse("f", objects).expect("good manifests");
        let all = poolwright_catalog::read_csv(&[("own.csv", CATALOGUE)]).expect("a catalogue");
        let only = |names: &[&str]| all.filtered(|kind, _| names.contains(&kind.name.as_str()));
        let (of_a, of_b) = (only(&["m6i.large"]), only(of_b));
        let why = |name: &str| (InstanceTypeName::from(name), format!("{name} is special"));
        let left_out = BTreeMap::from([why("m6i.metal"), why("t3.large")]);
        let class = |name: &str| NodeClassRef {
            group: "poolwright.dev".to_owned(),
            kind: "KwokNodeClass".to_owned(),
            name: name.to_owned(),
        };
        let (a, b) = (class("a"), class("b"));
        let ranges = [
            Range { class: &a, sold: &of_a, left_out: Some(&left_out) },
            Range { class: &b, sold: &of_b, left_out: None },
        ];
        let (pools, pods) = (manifest.pools.iter(), manifest.pods.iter());
        let mut all_notes = notes(&ranges, &all, pools.clone(), pods.clone());
        all_notes.extend(unknown(&all, pools, pods, manifest.nodes.iter()));
        all_notes
    }

    const TYPE: &str = "node.kubernetes.io/instance-type";
    const FAMILY: &str = "poolwright.dev/instance-family";

    #[test]
    fn a_type_that_nobody_asks_for_by_name_is_not_mentioned() {
        let by_family = pool("p", FAMILY, "m6i");
        assert_eq!(told(&(by_family + &pod("w", "")), &[]), [""; 0], "the family has a type that is sold");
    }

    #[test]
    fn values_that_no_offering_has_are_told_once_with_a_near_one_and_known_values_are_not() {
        assert_eq!(
            told(&pool("p", FAMILY, "m6i, m6iq, x9"), &[]),
            [
                "no offering in the catalogue has these values of `poolwright.dev/instance-family`: m6iq (did you mean m6i?), x9, \
                 asked for by NodePool p; correct what is misspelt, or take a catalogue that has them (docs/catalogue.md)"
            ]
        );
        let wants = |name: &str| pod(name, &format!("{TYPE}: t4.large"));
        let other = told(&(wants("v") + &wants("w")), &[]).join("; ");
        assert!(other.contains(": t4.large, asked for by Pod default/v and 1 more;"), "not near: {other}");
        let by_both =
            told(&(pool("p", TYPE, "x9.huge") + &pod("w", "topology.kubernetes.io/zone: mars-1a")), &[]);
        assert_eq!(by_both.len(), 2, "{by_both:?}");
    }

    #[test]
    fn what_an_existing_node_has_is_not_said_to_be_misspelt_by_a_pod_but_a_pool_cannot_buy_it() {
        let node = "apiVersion: v1\nkind: Node\nmetadata: {name: rack, labels: {topology.kubernetes.io/zone: cellar}}\n---\n";
        let zone = "topology.kubernetes.io/zone";
        let wants = pod("w", &format!("{zone}: cellar"));
        assert_eq!(told(&wants, &[]).len(), 1);
        assert_eq!(told(&(wants + node), &[]), [""; 0]);
        let buys = told(&(pool("p", zone, "cellar") + node), &[]).join("; ");
        assert!(buys.contains(": cellar, asked for by NodePool p;"), "{buys}");
    }

    #[test]
    fn what_a_pool_or_a_pod_asks_for_by_name_is_told_once_with_the_reason() {
        assert_eq!(
            told(&pool("p", TYPE, "m6i.metal"), &[]),
            ["KwokNodeClass `a`: it does not sell m6i.metal, asked for by NodePool p: m6i.metal is special"]
        );
        let pods: String = (0..3).map(|at| pod(&format!("w{at}"), &format!("{FAMILY}: t3"))).collect();
        assert_eq!(
            told(&pods, &[]),
            [
                "KwokNodeClass `a`: it does not sell t3, asked for by Pod default/w0 and 2 more: t3.large is special"
            ]
        );
        assert_eq!(
            told(&(pool("p", TYPE, "m6i.metal, t3.large") + &pods), &[]).len(),
            1,
            "one note for each class"
        );
    }

    #[test]
    fn what_another_class_sells_is_told_to_pools_of_this_class_and_not_to_pods() {
        let metal = ["m6i.metal"];
        assert_eq!(told(&pod("w", &format!("{TYPE}: m6i.metal")), &metal), [""; 0]);
        assert_eq!(told(&pool("p", TYPE, "m6i.metal"), &metal).len(), 1);
    }
}
