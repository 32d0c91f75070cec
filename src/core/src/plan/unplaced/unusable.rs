//! Pools that cannot be used now: the one that comes closest to holding unplaced pods, and what would keep them off it even then.

use std::collections::BTreeMap;
use std::sync::Arc;

use poolwright_catalog::{Catalogue, ResourceName};
use poolwright_terms::NodeClassRef;
use poolwright_terms::labels::DECIDED_BY_OFFERING;

use crate::model::{Operator, Pool, Requirement, Snapshot};
use crate::plan::pack::classes::PodClass;
use crate::plan::unplaced::allowed::{Allowed, is_of_type};
use crate::plan::unplaced::inputs::{UnplacedInputs, list};
use crate::plan::unplaced::pools::{may_be_in, problem_of, taint_misses};
use crate::plan::unplaced::wants::{Want, met, wants};
use crate::rules::gpus::GpuForm;
use crate::rules::{self, NewNodeLabels, format};
use crate::supply::offerings::Supply;

/// A pool that cannot be used now. Its offerings are unknown, so it is judged by the instance types in the catalogue that its
/// requirements allow.
pub(crate) struct Unusable {
    /// Its problem, then everything else that keeps the pods off.
    words: Vec<String>,
    /// The number of things that keep the pods off, counted as for other pools.
    pub count: usize,
    /// Whether no type that the pool allows has a resource that the pods ask for, so that the pool is made for other pods.
    pub is_foreign: bool,
    /// Whether only its node class decides if its nodes have a resource that the pods ask for, or are in a zone that nobody is known to
    /// sell.
    pub is_uncertain: bool,
    /// Whether the pods select a label that nodes of this pool have, and those of no pool that can be used.
    pub is_selected: bool,
    /// What its node class decides and no known node class sells; often empty.
    doubts: String,
}

/// Returns the pool that cannot be used now and that the fewest things keep the pods off, of those that their rules allow.
pub(crate) fn closest_unusable(inputs: &UnplacedInputs<'_, '_>, class: &PodClass<'_>) -> Option<Unusable> {
    let candidates = inputs.snapshot.pools.values().filter(|pool| !pool.deleting && pool.replicas.is_none());
    candidates
        .filter(|pool| may_be_in(class.spec, &pool.name))
        .filter_map(|pool| Unusable::of(inputs, class, pool))
        .min_by_key(|pool| (pool.is_foreign, pool.count, pool.is_uncertain))
}

impl Unusable {
    /// Judges a pool; `None` if it can be used.
    fn of(inputs: &UnplacedInputs<'_, '_>, class: &PodClass<'_>, pool: &Pool) -> Option<Self> {
        let (snapshot, sharing) = (inputs.snapshot, inputs.options.sharing);
        let mut words = vec![problem_of(inputs.supply, &pool.name)?];
        let taints = taint_misses(&class.spec.tolerations, pool);
        let is_tainted = !taints.is_empty();
        words.extend(taints);

        let allowed = inputs.allowed.of(snapshot, pool);
        let alternatives = wants(class.spec);
        let own = snapshot.catalogues.get(&pool.node_class).and_then(|own| own.as_ref().ok());
        let is_refused = |want: &&Want<'_>| {
            let is_unsold = own.is_some_and(|own| !is_sold(snapshot, own, want));
            is_unsold || !may_meet(pool, want, &allowed)
        };
        let refused = |wants: &[Want<'_>]| -> Vec<String> {
            wants.iter().filter(is_refused).map(Want::in_words).collect()
        };
        let best = alternatives.iter().map(|wants| (refused(wants), wants.as_slice()));
        // A required node affinity without terms matches no node.
        let (refused, wanted): (Vec<String>, &[Want<'_>]) = best
            .min_by_key(|(refused, _)| refused.len())
            .unwrap_or_else(|| (vec!["one of the terms of its node affinity".to_owned()], &[]));
        if !refused.is_empty() {
            words.push(format!("wants {}, which nodes of the pool would not have", refused.join(", ")));
        }

        let doubts: Vec<String> = wanted
            .iter()
            .filter(|want| own.is_none() && !is_refused(want) && is_sold_nowhere(snapshot, want))
            .map(Want::in_words)
            .collect();

        let has = |name: &ResourceName| {
            allowed.is_empty() || allowed.iter().any(|one| one.kind().allocatable.get(name.as_str()) > 0)
        };
        let asked = class.requests.iter().filter(|(name, wanted)| *wanted > 0 && !is_of_class(name));
        let (there, lacking): (Vec<_>, Vec<_>) = asked.partition(|(name, _)| has(name));
        let (uncertain, foreign): (Vec<_>, Vec<_>) =
            lacking.into_iter().partition(|(name, _)| may_be_added(snapshot, &pool.node_class, name));
        let holds = |one: &Allowed| {
            let kind = one.kind();
            let need = class.gpu_need.as_ref().map(|need| need.on_type(kind));
            let grants = |form: &GpuForm| form.grants(sharing, kind, need.as_ref());
            let mut of_type = wanted.iter().filter(|want| is_of_type(want.key));
            // Types that the labels exclude do not help.
            (!refused.is_empty() || of_type.all(|want| rules::matches(&want.requirement, one.labels())))
                && there.iter().all(|(name, wanted)| *wanted <= kind.allocatable.get(name.as_str()))
                && GpuForm::all(sharing, kind).iter().any(grants)
        };
        let room = !foreign.is_empty() || (!allowed.is_empty() && !allowed.iter().any(holds));
        if !foreign.is_empty() {
            let names = list(foreign.iter().map(|(name, _)| name.as_str()));
            words.push(format!("no instance type in the catalogue that the pool allows has {names}"));
        } else if room {
            words.push(
                "no instance type in the catalogue that the pool allows holds all that it asks for"
                    .to_owned(),
            );
        }
        Some(Self {
            words,
            count: 1 + usize::from(is_tainted) + refused.len() + usize::from(room) + 2 * foreign.len(),
            is_foreign: !foreign.is_empty(),
            is_uncertain: !uncertain.is_empty() || !doubts.is_empty(),
            is_selected: refused.is_empty() && wanted.iter().any(|want| selects(inputs.supply, pool, want)),
            doubts: doubts.join(", "),
        })
    }

    /// Returns whether the pods would get a node of the pool if it could be used, as far as is known.
    pub fn would_help(&self) -> bool {
        self.words.len() == 1
    }

    /// Describes its problem, and everything else that keeps the pods off, because mending the pool alone would not help then.
    pub fn sentence(&self) -> String {
        let words = self.words_without_doubts();
        if self.doubts.is_empty() {
            return words;
        }
        format!("{words}; besides, no offering of a node class that is ready has {}", self.doubts)
    }

    /// Does the same for pods that are told besides what no node class sells.
    pub fn words_without_doubts(&self) -> String {
        self.words.join("; besides, ")
    }
}

/// Returns whether a node class, and not the instance type, decides about a label of nodes.
fn is_decided_by_class(key: &str) -> bool {
    DECIDED_BY_OFFERING.contains(&key) && !is_of_type(key)
}

/// Returns whether an offering of a catalogue meets a requirement, as far as the node class decides about it.
fn is_sold(snapshot: &Snapshot, catalogue: &Arc<Catalogue>, want: &Want<'_>) -> bool {
    let labels = snapshot.plan_cache.labels(catalogue);
    !is_decided_by_class(want.key) || labels.iter().any(|labels| rules::matches(&want.requirement, labels))
}

/// Returns whether some catalogues are known and none of them meets a requirement, as far as node classes decide about it.
fn is_sold_nowhere(snapshot: &Snapshot, want: &Want<'_>) -> bool {
    let mut known = snapshot.catalogues.values().flatten().peekable();
    known.peek().is_some() && !known.any(|catalogue| is_sold(snapshot, catalogue, want))
}

/// Returns whether pods select a label that nodes of a pool have by its template, and nodes of no pool that can be used.
fn selects(supply: &Supply<'_>, pool: &Pool, want: &Want<'_>) -> bool {
    let is_absent = matches!(want.requirement.operator, Operator::NotIn(_) | Operator::DoesNotExist);
    !is_absent
        && !DECIDED_BY_OFFERING.contains(&want.key)
        && pool.labels.contains_key(want.key)
        && (0..supply.pools.len()).all(|at| !met(want, at, supply))
}

/// Returns whether the node class decides how much of a resource its nodes have, whatever their type.
fn is_of_class(resource: &ResourceName) -> bool {
    let name = resource.as_str();
    name.starts_with(format::ATTACHABLE)
        || [ResourceName::EPHEMERAL_STORAGE, ResourceName::PODS].contains(&name)
}

/// Returns whether a setting of the node class, which is unknown, may add a resource to its nodes.
fn may_be_added(snapshot: &Snapshot, class: &NodeClassRef, resource: &ResourceName) -> bool {
    let known = || snapshot.catalogues.iter().filter_map(|(of, one)| Some((of, one.as_ref().ok()?)));
    if known().any(|(of, _)| of == class) {
        return false;
    }
    let name = resource.as_str();
    let mut alike = known().filter(|(of, _)| of.kind == class.kind).peekable();
    if alike.peek().is_some() {
        return alike.any(|(_, catalogue)| catalogue.addable(name).is_some());
    }
    known().any(|(_, catalogue)| catalogue.addable_elsewhere(name).is_some())
}

/// Returns whether some offering could meet the requirement at a pool whose offerings are unknown.
fn may_meet(pool: &Pool, want: &Want<'_>, allowed: &[Allowed]) -> bool {
    if DECIDED_BY_OFFERING.contains(&want.key) {
        let own = pool.requirements.iter().filter(|own| own.key == want.key).cloned();
        let both: Vec<Requirement> = own.chain([want.requirement.clone()]).collect();
        let mut types = allowed.iter();
        let is_open = allowed.is_empty() || !is_of_type(want.key);
        return rules::contradiction(&both).is_none()
            && (is_open || types.any(|one| rules::matches(&want.requirement, one.labels())));
    }
    let none = BTreeMap::new();
    let labels = NewNodeLabels { offering: &none, template: &pool.labels, pool: &pool.name };
    rules::matches(&want.requirement, &labels)
}
