//! Services and selectors of controllers in the index. Default spread constraints of schedulers need them.

use crate::index::{Change, ClusterIndex, put, reset};
use crate::model::{ObjectKey, Service};

impl ClusterIndex {
    /// Keeps selectors of controllers from now on, because a scheduler has default spread constraints.
    pub fn keep_selectors(&mut self) {
        self.keeps_selectors = true;
    }

    /// Adds or replaces a Service. A Service without a selector is ignored.
    pub fn apply_service(&mut self, service: Service) -> Change {
        if service.selector.is_empty() {
            return self.delete_service(&service.key);
        }
        put(&mut self.state.services, service.key.clone(), service)
    }

    /// Removes a Service.
    pub fn delete_service(&mut self, key: &ObjectKey) -> Change {
        self.state.services.remove(key).map_or(Change::None, |_| Change::Room)
    }

    /// Replaces all Services.
    pub fn reset_services(&mut self, all: impl IntoIterator<Item = Service>) -> Change {
        let choosing = all.into_iter().filter(|service| !service.selector.is_empty());
        reset(&mut self.state.services, choosing, |service| service.key.clone())
    }
}
