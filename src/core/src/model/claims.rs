//! All claims, indexed by node, pod and instance.

use std::ops::Deref;
use std::sync::Arc;

use crate::model::claim::Claim;
use crate::model::names::ClaimName;
use crate::model::node::Node;
use crate::model::persistent_map::{PersistentMap, insert_name, remove_name};
use crate::model::pod_key::{OwnerKey, PodKey};

/// Claims by name. Cloning is cheap.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Claims {
    all: PersistentMap<ClaimName, Arc<Claim>>,
    /// Claim names by the name of their node, ascending.
    by_node: PersistentMap<String, Vec<ClaimName>>,
    /// Claim names by provider id, ascending.
    by_provider_id: PersistentMap<String, Vec<ClaimName>>,
    /// Claim names by planned pod, ascending, without claims that are being deleted.
    by_pod: PersistentMap<PodKey, Vec<ClaimName>>,
    /// The entries of `by_pod` for pods that do not exist yet.
    awaiting: PersistentMap<PodKey, Vec<ClaimName>>,
    /// Claim names by the cloud's own id of the instance, ascending.
    by_instance: PersistentMap<String, Vec<ClaimName>>,
    /// Claims whose nodes are disrupted.
    leaving: PersistentMap<ClaimName, ()>,
    /// Claims with an interruption.
    interrupted: PersistentMap<ClaimName, ()>,
}

/// Returns the cloud's own id of an instance: the last part of its provider id.
fn instance_of(provider_id: &str) -> String {
    provider_id.rsplit('/').next().unwrap_or(provider_id).to_owned()
}

impl Deref for Claims {
    type Target = PersistentMap<ClaimName, Arc<Claim>>;

    fn deref(&self) -> &Self::Target {
        &self.all
    }
}

impl Claims {
    /// Inserts a claim and returns the previous one.
    pub fn insert(&mut self, name: ClaimName, claim: Arc<Claim>) -> Option<Arc<Claim>> {
        let before = self.remove(&name);
        if let Some(node) = &claim.node_name {
            insert_name(&mut self.by_node, node, &name);
        }
        if let Some(launched) = &claim.launched {
            insert_name(&mut self.by_provider_id, &launched.provider_id, &name);
            insert_name(&mut self.by_instance, &instance_of(&launched.provider_id), &name);
        }
        if claim.interruption.is_some() {
            self.interrupted.insert(name.clone(), ());
        }
        if claim.leaving().is_some() {
            self.leaving.insert(name.clone(), ());
        }
        if claim.deleting_since.is_none() {
            for pod in &claim.planned_pods {
                insert_name(&mut self.by_pod, pod, &name);
                if pod.owner().is_some() {
                    insert_name(&mut self.awaiting, pod, &name);
                }
            }
        }
        self.all.insert(name, claim);
        before
    }

    /// Removes a claim.
    pub fn remove(&mut self, name: &ClaimName) -> Option<Arc<Claim>> {
        let claim = self.all.remove(name)?;
        self.leaving.remove(name);
        self.interrupted.remove(name);
        if let Some(node) = &claim.node_name {
            remove_name(&mut self.by_node, node, name);
        }
        if let Some(launched) = &claim.launched {
            remove_name(&mut self.by_provider_id, &launched.provider_id, name);
            remove_name(&mut self.by_instance, &instance_of(&launched.provider_id), name);
        }
        if claim.deleting_since.is_none() {
            for pod in &claim.planned_pods {
                remove_name(&mut self.by_pod, pod, name);
                if pod.owner().is_some() {
                    remove_name(&mut self.awaiting, pod, name);
                }
            }
        }
        Some(claim)
    }

    /// Keeps the claims for which `keep` is true.
    pub fn retain(&mut self, mut keep: impl FnMut(&ClaimName, &Arc<Claim>) -> bool) {
        let gone: Vec<ClaimName> =
            self.iter().filter(|(name, claim)| !keep(name, claim)).map(|(name, _)| name.clone()).collect();
        for name in gone {
            self.remove(&name);
        }
    }

    /// Returns the claim that names this node as its own. If there are several, the first by name.
    pub fn named_node(&self, node: &str) -> Option<&Arc<Claim>> {
        self.all.get(self.by_node.get(node)?.first()?)
    }

    /// Returns the claim of a node, by node name or provider id. If there are several, the first by name.
    pub fn of_node(&self, node: &Node) -> Option<&Arc<Claim>> {
        let by_id = node.provider_id.as_ref().and_then(|id| self.by_provider_id.get(id));
        let names = [self.by_node.get(&node.name), by_id];
        self.all.get(names.into_iter().flatten().filter_map(|names| names.first()).min()?)
    }

    /// Returns the claim that a pod is planned for and that is not being deleted. If there are several, a launched one, because it
    /// is paid for, and the last of them by name.
    pub fn planned_for(&self, pod: &PodKey) -> Option<&ClaimName> {
        let names = self.by_pod.get(pod)?;
        let is_launched =
            |name: &&ClaimName| self.all.get(*name).is_some_and(|claim| claim.launched.is_some());
        names.iter().rev().find(is_launched).or(names.last())
    }

    /// Returns the claims whose nodes are disrupted, by name.
    pub fn leaving(&self) -> impl Iterator<Item = &Arc<Claim>> {
        self.leaving.keys().filter_map(|name| self.all.get(name))
    }

    /// Returns the claims with this instance id, by name. Two clouds may use the same id.
    pub fn of_instance(&self, instance: &str) -> impl Iterator<Item = &Arc<Claim>> {
        let names = self.by_instance.get(instance).map(Vec::as_slice).unwrap_or_default();
        names.iter().filter_map(|name| self.all.get(name))
    }

    /// Returns the claims with an interruption, by name.
    pub fn interrupted(&self) -> impl Iterator<Item = &Arc<Claim>> {
        self.interrupted.keys().filter_map(|name| self.all.get(name))
    }

    /// Returns the expected pods that claims are planned for, and those claims. Claims that are being deleted are left out.
    pub fn awaiting(&self) -> impl Iterator<Item = (&Arc<OwnerKey>, u64, &[ClaimName])> {
        self.awaiting.iter().filter_map(|(pod, names)| match pod {
            PodKey::Expected { owner, ordinal } => Some((owner, *ordinal, names.as_slice())),
            PodKey::Existing(_) | PodKey::Buffer { .. } => None,
        })
    }
}

impl Extend<(ClaimName, Arc<Claim>)> for Claims {
    fn extend<T: IntoIterator<Item = (ClaimName, Arc<Claim>)>>(&mut self, all: T) {
        for (name, claim) in all {
            self.insert(name, claim);
        }
    }
}

impl FromIterator<(ClaimName, Arc<Claim>)> for Claims {
    fn from_iter<T: IntoIterator<Item = (ClaimName, Arc<Claim>)>>(all: T) -> Self {
        let mut claims = Self::default();
        claims.extend(all);
        claims
    }
}

impl<const N: usize> From<[(ClaimName, Arc<Claim>); N]> for Claims {
    fn from(all: [(ClaimName, Arc<Claim>); N]) -> Self {
        all.into_iter().collect()
    }
}
