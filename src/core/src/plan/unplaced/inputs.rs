//! The inputs for explaining unplaced pods.

use poolwright_catalog::{ResourceList, ResourceName};

use crate::demand::volumes::Volumes;
use crate::model::{NodeSelectorTerm, PlanOptions, RequestOrigin, Snapshot};
use crate::plan::pack::classes::PodClass;
use crate::plan::unplaced::allowed::AllowedTypes;
use crate::plan::unplaced::label_hint::is_of_template;
use crate::rules;
use crate::rules::colocation::Colocation;
use crate::rules::requests;
use crate::supply::daemonsets::DaemonSets;
use crate::supply::limits::Limits;
use crate::supply::offerings::{Admissions, PoolOffering, Supply};
use crate::supply::wider::{Asked, Wider, WiderType};

/// The supply that the planner could choose from, with its rules.
#[derive(Clone, Copy)]
pub(crate) struct UnplacedInputs<'s, 'a> {
    pub snapshot: &'s Snapshot,
    pub volumes: &'s Volumes,
    pub supply: &'s Supply<'a>,
    pub admissions: &'s Admissions,
    pub limits: &'s Limits,
    pub colocation: &'s Colocation<'a>,
    pub daemons: &'s DaemonSets<'a>,
    pub options: &'s PlanOptions,
    /// What pools that cannot be used now allow.
    pub allowed: &'s AllowedTypes,
    /// What makes up the requests of the pods that are explained.
    pub origins: &'s [RequestOrigin],
    /// Whether the pods are of a gang whose limits are told for all of its pods together.
    pub is_of_gang: bool,
}

impl<'s, 'a> UnplacedInputs<'s, 'a> {
    /// Returns whether an offering of a pool meets the rules of the pods on labels, whether or not they tolerate the pool's taints.
    pub fn meets_labels(&self, at: usize, class: &PodClass<'_>, offer: &PoolOffering) -> bool {
        if self.admissions.tolerated(at, class.signature) {
            return self.admissions.admits(at, class.signature, offer.offering);
        }
        rules::check_labels(class.spec, &self.supply.labels(at, offer.offering)).is_ok()
    }

    /// Returns whether an offering would have room for the pods if its node class had the settings that add resources to its nodes, as
    /// far as it is known what they add.
    pub fn would_fit(&self, at: usize, class: &PodClass<'_>, offer: &PoolOffering) -> bool {
        let (catalogue, room) = (self.supply.catalogue(at), &self.supply.capacities[offer.capacity]);
        let kind = &self.supply.offering(at, offer.offering).id.instance_type;
        class.requests.iter().all(|(name, wanted)| {
            let added = catalogue.added(name.as_str(), kind).unwrap_or(0);
            wanted <= room.get(name.as_str()).saturating_add(added)
        })
    }

    /// Returns an instance type that would hold a pod of the class if the requirements of the pool allowed it.
    pub fn wider(&self, at: usize, class: &PodClass<'_>) -> Option<WiderType<'s>> {
        self.wider_asking(at, class, &class.requests)
    }

    /// Does the same as if nodes of the pool had all labels of the user's own that the pods want: these are another change.
    pub fn wider_with_labels(&self, at: usize, class: &PodClass<'_>) -> Option<WiderType<'s>> {
        let mut spec = class.spec.clone();
        spec.node_selector.retain(|key, _| !is_of_template(key));
        for term in spec.node_affinity.iter_mut().flatten() {
            term.requirements.retain(|requirement| !is_of_template(&requirement.key));
        }
        // A term without requirements would match nothing.
        let is_met = |terms: &Vec<NodeSelectorTerm>| terms.iter().any(|term| term.requirements.is_empty());
        if spec.node_affinity.as_ref().is_some_and(is_met) {
            spec.node_affinity = None;
        }
        let asked = Asked { spec: &spec, requests: &class.requests, gpus: class.gpu_need.as_ref() };
        self.widened().holds(at, asked)
    }

    /// Does the same as [`Self::wider`] for a pod that asks for these resources instead.
    pub fn wider_asking(
        &self,
        at: usize,
        class: &PodClass<'_>,
        requests: &ResourceList,
    ) -> Option<WiderType<'s>> {
        let asked = Asked { spec: class.spec, requests, gpus: class.gpu_need.as_ref() };
        self.widened().holds(at, asked)
    }

    /// Returns whether a type would hold a pod of the class if the requirements of the pool allowed it, whatever its processors are.
    pub fn is_held_on_any(&self, at: usize, class: &PodClass<'_>) -> bool {
        let asked = Asked { spec: class.spec, requests: &class.requests, gpus: class.gpu_need.as_ref() };
        self.widened().holds_on_any(at, asked)
    }

    /// Returns the limits that would keep a node of this type away if the pool might buy it, with what it uses of each.
    pub fn beyond_of(&self, at: usize, kind: WiderType<'_>, class: &PodClass<'_>) -> Vec<(u32, u64)> {
        self.limits.beyond(&self.uses_of(at, kind.offering, Some(kind.price), class))
    }

    /// Returns the catalogues of the pools without their requirements.
    pub fn widened(&self) -> Wider<'s, 'a> {
        let UnplacedInputs { snapshot, supply, daemons, options, .. } = *self;
        let attachable = &self.volumes.attachable;
        Wider { snapshot, supply, daemons, attachable, options }
    }

    /// Says where the request for a resource comes from, if not from the containers: `` (init container `load` asks for 8 cpu)``.
    pub fn origin(&self, resource: &ResourceName) -> String {
        requests::in_words(self.origins, |name| name == resource)
    }
}

/// Lists names for a message: `a, b, c and 4 more`.
pub(crate) fn list(items: impl IntoIterator<Item = impl AsRef<str>>) -> String {
    let all: Vec<String> = items.into_iter().map(|item| item.as_ref().to_owned()).collect();
    let shown = all.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", ");
    if all.len() > SHOWN { format!("{shown} and {} more", all.len() - SHOWN) } else { shown }
}

/// The most values that a message lists.
pub(crate) const SHOWN: usize = 6;
