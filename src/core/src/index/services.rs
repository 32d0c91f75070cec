//! Services and selectors of controllers: what a scheduler's default spread goes by.

use crate::index::{Change, ClusterIndex, put, reset};
use crate::model::{ObjectKey, Service};

impl ClusterIndex {
    /// Keeps what controllers say their pods are like: for a scheduler that spreads pods by default.
    pub fn keep_selectors(&mut self) {
        self.keeps_selectors = true;
    }

    /// A Service was added or changed. One that chooses no pods is none to us.
    pub fn apply_service(&mut self, service: Service) -> Change {
        if service.selector.is_empty() {
            return self.delete_service(&service.key);
        }
        put(&mut self.state.services, service.key.clone(), service)
    }

    /// A Service is gone.
    pub fn delete_service(&mut self, key: &ObjectKey) -> Change {
        self.state.services.remove(key).map_or(Change::None, |_| Change::Room)
    }

    /// Every Service there is.
    pub fn reset_services(&mut self, all: impl IntoIterator<Item = Service>) -> Change {
        let choosing = all.into_iter().filter(|service| !service.selector.is_empty());
        reset(&mut self.state.services, choosing, |service| service.key.clone())
    }
}
