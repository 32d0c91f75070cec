//! Keeps a watch that lags from undoing what we wrote.

use std::collections::{BTreeMap, BTreeSet};

/// More are not remembered of what is gone; what no watch has shown by then it will hardly show any more.
const BURIED: usize = 10_000;

/// What was written last, per object, until a watch has shown it.
///
/// Resource versions of one kind of object are compared as numbers, which Kubernetes promises since 1.35 and has kept
/// since it stores its objects in etcd. A version that is no number is never considered late.
#[derive(Debug, Default)]
pub struct Fence {
    written: BTreeMap<String, u64>,
    /// What the API server says is gone, until a watch has shown that.
    buried: BTreeSet<String>,
}

fn number(version: Option<&str>) -> Option<u64> {
    version?.parse().ok()
}

impl Fence {
    /// We wrote the object with this UID, and this is its version since.
    pub fn wrote(&mut self, uid: &str, version: Option<&str>) {
        if let Some(version) = number(version) {
            let known = self.written.entry(uid.to_owned()).or_default();
            *known = version.max(*known);
        }
    }

    /// Whether a watch shows less than what we wrote. Once it shows that or more, the object is forgotten here.
    pub fn is_late(&mut self, uid: &str, version: Option<&str>) -> bool {
        if self.is_buried(uid) {
            return true;
        }
        let Some(written) = self.written.get(uid) else { return false };
        if number(version).is_some_and(|version| version < *written) {
            return true;
        }
        self.written.remove(uid);
        false
    }

    /// The API server itself says that the object is gone: a watch that is minutes behind may still show it as alive, and nothing
    /// may be planned for a node that will never be.
    pub fn bury(&mut self, uid: &str) {
        self.written.remove(uid);
        if self.buried.len() >= BURIED {
            self.buried.clear();
        }
        self.buried.insert(uid.to_owned());
    }

    /// Whether the object is gone, whatever a watch or a list still shows.
    pub fn is_buried(&self, uid: &str) -> bool {
        self.buried.contains(uid)
    }

    /// A watch has shown that the object is gone.
    pub fn gone(&mut self, uid: &str) {
        self.written.remove(uid);
        self.buried.remove(uid);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_watch_that_lags_does_not_undo_our_write() {
        let mut fence = Fence::default();
        fence.wrote("a", Some("110"));
        assert!(fence.is_late("a", Some("100")));
        assert!(!fence.is_late("b", Some("100")), "not written by us");
        assert!(!fence.is_late("a", Some("110")));
        assert!(!fence.is_late("a", Some("100")), "forgotten: the watch has caught up");
    }

    #[test]
    fn what_is_gone_does_not_come_back_by_a_watch_that_lags() {
        let mut fence = Fence::default();
        fence.wrote("a", Some("110"));
        fence.bury("a");
        assert!(fence.is_late("a", Some("100")));
        assert!(fence.is_late("a", Some("120")), "it was changed once more before it went");
        assert!(fence.is_late("a", Some("x")));
        fence.gone("a");
        assert!(!fence.is_buried("a"), "forgotten: the watch has caught up");
    }

    #[test]
    fn a_version_that_is_no_number_is_never_late() {
        let mut fence = Fence::default();
        fence.wrote("a", Some("110"));
        assert!(!fence.is_late("a", Some("x")));
    }
}
