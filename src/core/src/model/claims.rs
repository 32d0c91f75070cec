//! All claims, and which of them a pod or a node belongs to.

use std::ops::Deref;
use std::sync::Arc;

use crate::model::claim::Claim;
use crate::model::names::ClaimName;
use crate::model::node::Node;
use crate::model::pod_key::{OwnerKey, PodKey};
use crate::model::shared::{Shared, file, unfile};

/// Claims by name; a clone costs nothing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Claims {
    all: Shared<ClaimName, Arc<Claim>>,
    /// By the node that they say is theirs: names, ascending.
    by_node: Shared<String, Vec<ClaimName>>,
    /// By the provider id of what was launched: names, ascending.
    by_provider_id: Shared<String, Vec<ClaimName>>,
    /// By the pods that they were bought for: names, ascending. Without claims that are being deleted.
    by_pod: Shared<PodKey, Vec<ClaimName>>,
    /// Those of them that are kept for pods which are still to come.
    awaiting: Shared<PodKey, Vec<ClaimName>>,
    /// By the cloud's own id of what was launched: names, ascending.
    by_instance: Shared<String, Vec<ClaimName>>,
    /// Those whose nodes are emptied although they are well.
    leaving: Shared<ClaimName, ()>,
    /// Those of whose instances their clouds have said something.
    interrupted: Shared<ClaimName, ()>,
}

/// The cloud's own id of an instance: the last part of its provider id.
fn instance_of(provider_id: &str) -> String {
    provider_id.rsplit('/').next().unwrap_or(provider_id).to_owned()
}

impl Deref for Claims {
    type Target = Shared<ClaimName, Arc<Claim>>;

    fn deref(&self) -> &Self::Target {
        &self.all
    }
}

impl Claims {
    /// Puts a claim in; returns the one before.
    pub fn insert(&mut self, name: ClaimName, claim: Arc<Claim>) -> Option<Arc<Claim>> {
        let before = self.remove(&name);
        if let Some(node) = &claim.node_name {
            file(&mut self.by_node, node, &name);
        }
        if let Some(launched) = &claim.launched {
            file(&mut self.by_provider_id, &launched.provider_id, &name);
            file(&mut self.by_instance, &instance_of(&launched.provider_id), &name);
        }
        if claim.interruption.is_some() {
            self.interrupted.insert(name.clone(), ());
        }
        if claim.leaving().is_some() {
            self.leaving.insert(name.clone(), ());
        }
        if claim.deleting_since.is_none() {
            for pod in &claim.planned_pods {
                file(&mut self.by_pod, pod, &name);
                if pod.owner().is_some() {
                    file(&mut self.awaiting, pod, &name);
                }
            }
        }
        self.all.insert(name, claim);
        before
    }

    /// Takes a claim out.
    pub fn remove(&mut self, name: &ClaimName) -> Option<Arc<Claim>> {
        let claim = self.all.remove(name)?;
        self.leaving.remove(name);
        self.interrupted.remove(name);
        if let Some(node) = &claim.node_name {
            unfile(&mut self.by_node, node, name);
        }
        if let Some(launched) = &claim.launched {
            unfile(&mut self.by_provider_id, &launched.provider_id, name);
            unfile(&mut self.by_instance, &instance_of(&launched.provider_id), name);
        }
        if claim.deleting_since.is_none() {
            for pod in &claim.planned_pods {
                unfile(&mut self.by_pod, pod, name);
                if pod.owner().is_some() {
                    unfile(&mut self.awaiting, pod, name);
                }
            }
        }
        Some(claim)
    }

    /// Keeps some claims.
    pub fn retain(&mut self, mut keep: impl FnMut(&ClaimName, &Arc<Claim>) -> bool) {
        let gone: Vec<ClaimName> =
            self.iter().filter(|(name, claim)| !keep(name, claim)).map(|(name, _)| name.clone()).collect();
        for name in gone {
            self.remove(&name);
        }
    }

    /// The claim that says a node of this name is its own; of several, the first by name.
    pub fn named_node(&self, node: &str) -> Option<&Arc<Claim>> {
        self.all.get(self.by_node.get(node)?.first()?)
    }

    /// The claim that a node belongs to, by its name or its provider id; of several, the first by name.
    pub fn of_node(&self, node: &Node) -> Option<&Arc<Claim>> {
        let by_id = node.provider_id.as_ref().and_then(|id| self.by_provider_id.get(id));
        let names = [self.by_node.get(&node.name), by_id];
        self.all.get(names.into_iter().flatten().filter_map(|names| names.first()).min()?)
    }

    /// The claim that was bought for a pod and is not being deleted; of several, the last by name.
    pub fn planned_for(&self, pod: &PodKey) -> Option<&ClaimName> {
        self.by_pod.get(pod)?.last()
    }

    /// Claims whose nodes are emptied although they are well, by name.
    pub fn leaving(&self) -> impl Iterator<Item = &Arc<Claim>> {
        self.leaving.keys().filter_map(|name| self.all.get(name))
    }

    /// The claims whose instance its cloud calls so, by name: two clouds may call theirs alike.
    pub fn of_instance(&self, instance: &str) -> impl Iterator<Item = &Arc<Claim>> {
        let names = self.by_instance.get(instance).map(Vec::as_slice).unwrap_or_default();
        names.iter().filter_map(|name| self.all.get(name))
    }

    /// Claims of whose instances their clouds have said something, by name.
    pub fn interrupted(&self) -> impl Iterator<Item = &Arc<Claim>> {
        self.interrupted.keys().filter_map(|name| self.all.get(name))
    }

    /// Expected pods that claims are kept for which are not being deleted, and those claims.
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
