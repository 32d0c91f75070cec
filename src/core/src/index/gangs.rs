//! Gangs in the index.

use crate::index::{Change, ClusterIndex, put};
use crate::model::{Gang, ObjectKey};

impl ClusterIndex {
    /// Adds or replaces a gang. Only its existing pods are demand. The gang shows how many further pods to expect.
    pub fn apply_gang(&mut self, gang: Gang) -> Change {
        let key = (gang.kind.clone(), gang.key.clone());
        put(&mut self.state.gangs, key, gang).min(Change::Life)
    }

    /// Removes a gang.
    pub fn delete_gang(&mut self, kind: &str, key: &ObjectKey) -> Change {
        let gone = self.state.gangs.remove(&(kind.to_owned(), key.clone()));
        gone.map_or(Change::None, |_| Change::Life)
    }

    /// Replaces all gangs of a kind.
    pub fn reset_gangs(&mut self, kind: &str, all: impl IntoIterator<Item = Gang>) -> Change {
        self.state.gangs.retain(|(known, _), _| known != kind);
        all.into_iter().map(|gang| self.apply_gang(gang)).fold(Change::Life, Ord::max)
    }
}
