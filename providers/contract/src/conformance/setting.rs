//! The starting point of every case: a world, a provider, two offerings, and requests.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::SignedDuration;
use poolwright_catalog::{Catalogue, OfferingId, RankedOffering, ResourceName};
use poolwright_terms::keys::{NODEPOOL_LABEL, UNREGISTERED_TAINT};
use poolwright_terms::{Taint, TaintEffect};

use super::{Failure, MAX_POLLS, NodeView, World};
use crate::{CloudProvider, Instance, LaunchRequest};

/// Returns whether both values describe the same instance. The launch times may differ, because the answer to a launch may use
/// another clock.
pub(super) fn same_instance(one: &Instance, two: &Instance) -> bool {
    let apart = one.launched.duration_since(two.launched).abs();
    Instance { launched: two.launched, ..one.clone() } == *two && apart <= SignedDuration::from_mins(5)
}

pub(super) struct Setting {
    pub world: Box<dyn World>,
    pub provider: Arc<dyn CloudProvider>,
    pub catalogue: Arc<Catalogue>,
    /// Two offerings with known prices. The first has GPUs if any offering has.
    pub first: RankedOffering,
    pub second: RankedOffering,
}

impl Setting {
    pub async fn new(world: Box<dyn World>) -> Result<Self, Failure> {
        let provider = world.provider().await?;
        let catalogue = provider.catalogue(&world.node_class()).await?;
        let mut ranked: Vec<RankedOffering> = catalogue
            .offerings()
            .iter()
            .filter(|offering| offering.price.known().is_some())
            .map(|offering| RankedOffering {
                offering: offering.id.clone(),
                price: offering.price.known(),
                allocatable: catalogue.types()[&offering.id.instance_type].allocatable.clone(),
            })
            .collect();
        // The sort is stable and keeps the order of the catalogue among equals.
        ranked.sort_by_key(|one| one.allocatable.get(ResourceName::NVIDIA_GPU) == 0);
        let mut ranked = ranked.into_iter();
        let (Some(first), Some(second)) = (ranked.next(), ranked.next()) else {
            return Err("the node class sells fewer than two offerings with known prices".into());
        };
        Ok(Self { world, provider, catalogue, first, second })
    }

    /// Makes a new provider for the same world.
    pub async fn restarted(&self) -> Result<Arc<dyn CloudProvider>, Failure> {
        self.world.provider().await
    }

    /// Makes a request for the first offering with the second as fallback. `name` distinguishes the requests of one case.
    pub fn request(&self, name: &str) -> LaunchRequest {
        let prefix = self.world.prefix();
        let text = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        let taint = |key: &str, value: &str, effect| Taint { key: key.into(), value: value.into(), effect };
        LaunchRequest {
            key: format!("{prefix}-key-{name}"),
            claim: format!("{prefix}-{name}"),
            node_class: self.world.node_class(),
            offerings: vec![self.first.clone(), self.second.clone()],
            labels: BTreeMap::from([text(NODEPOOL_LABEL, "gpu"), text("team", "research")]),
            annotations: BTreeMap::from([text("example.com/owner", "the research team")]),
            together: 0,
            batch: None,
            taints: vec![
                taint(UNREGISTERED_TAINT, "", TaintEffect::NoExecute),
                taint("example.com/gpu", "reserved", TaintEffect::NoSchedule),
                taint("example.com/starting", "", TaintEffect::PreferNoSchedule),
            ],
        }
    }

    pub fn ids(&self) -> [OfferingId; 2] {
        [self.first.offering.clone(), self.second.offering.clone()]
    }

    /// Terminates an instance and waits until it is gone.
    pub async fn terminate(&self, provider: &dyn CloudProvider, key: &str) -> Result<(), Failure> {
        for _ in 0..MAX_POLLS {
            if provider.terminate(key).await? {
                return Ok(());
            }
            self.world.pause().await;
        }
        Err(Failure(format!("the instance of {key} is not gone after {MAX_POLLS} times of asking")))
    }

    /// Waits for the node of an instance, or for its join configuration. It returns `None` if the world shows no nodes.
    pub async fn node_of(&self, instance: &Instance) -> Result<Option<NodeView>, Failure> {
        for _ in 0..MAX_POLLS {
            match self.world.node(instance).await? {
                NodeView::NotVisible => return Ok(None),
                NodeView::Absent => self.world.pause().await,
                seen => return Ok(Some(seen)),
            }
        }
        Err(Failure(format!("the node of {} did not appear within {MAX_POLLS} looks", instance.provider_id)))
    }

    /// Removes everything that the case left behind.
    pub async fn clear(&self) -> Result<(), Failure> {
        self.world.set_stock_outs(&[]).await?;
        for instance in self.provider.list().await? {
            self.world.hold(&instance, false).await?;
            self.terminate(&*self.provider, &instance.key).await?;
        }
        Ok(())
    }
}
