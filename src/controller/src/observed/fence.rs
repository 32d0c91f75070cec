//! The fence: keeps a late watch from undoing our own writes in the index, and a late response from undoing what a watch has shown.

use std::collections::{BTreeMap, BTreeSet};

/// The most deleted objects that are remembered.
const BURIED: usize = 10_000;

/// The version of our last write of each object, until a watch has shown it.
///
/// Resource versions of one kind are compared as numbers. Kubernetes guarantees that since 1.35, and earlier versions with etcd
/// behave the same. A version that is not a number is never considered late.
#[derive(Debug, Default)]
pub struct Fence {
    written: BTreeMap<String, u64>,
    /// Objects that the API server says are deleted, until a watch has shown that.
    buried: BTreeSet<String>,
    /// The newest version that a watch has shown, by kind. A watch shows all changes of its kind in order.
    shown: BTreeMap<&'static str, u64>,
    /// The newest version in a list that is not complete yet, by kind.
    listing: BTreeMap<&'static str, u64>,
}

fn number(version: Option<&str>) -> Option<u64> {
    version?.parse().ok()
}

impl Fence {
    /// Registers our write of an object, with its new version.
    pub fn wrote(&mut self, uid: &str, version: Option<&str>) {
        if let Some(version) = number(version) {
            let known = self.written.entry(uid.to_owned()).or_default();
            *known = version.max(*known);
        }
    }

    /// Returns whether a watch shows an older version than our write. Once it shows ours or a newer one, the object is forgotten
    /// here.
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

    /// Registers that the watch of a kind has shown this version of an object.
    pub fn shows(&mut self, kind: &'static str, version: Option<&str>) {
        if let Some(version) = number(version) {
            let known = self.shown.entry(kind).or_default();
            *known = version.max(*known);
        }
    }

    /// Registers that the watch of a kind starts again, perhaps on an API server that was restored from a backup.
    pub fn starts_again(&mut self, kind: &str) {
        self.shown.remove(kind);
        self.listing.remove(kind);
    }

    /// Registers that the list of a kind has this version of an object.
    pub fn lists(&mut self, kind: &'static str, version: Option<&str>) {
        if let Some(version) = number(version) {
            let known = self.listing.entry(kind).or_default();
            *known = version.max(*known);
        }
    }

    /// Registers that the list of a kind is complete. It shows all changes up to its newest object.
    pub fn listed(&mut self, kind: &'static str) {
        if let Some(version) = self.listing.remove(kind) {
            let known = self.shown.entry(kind).or_default();
            *known = version.max(*known);
        }
    }

    /// Returns whether the watch of a kind has already shown this version of an object, or a later change. A response with it brings
    /// nothing new, and may be older than what is known of the object.
    pub fn has_shown(&self, kind: &str, version: Option<&str>) -> bool {
        number(version).zip(self.shown.get(kind)).is_some_and(|(version, shown)| version <= *shown)
    }

    /// Registers that the API server says an object is deleted. A late watch may still show it, but nothing may be planned for
    /// it.
    pub fn bury(&mut self, uid: &str) {
        self.written.remove(uid);
        if self.buried.len() >= BURIED {
            self.buried.clear();
        }
        self.buried.insert(uid.to_owned());
    }

    /// Returns whether the object is deleted, even if a watch or a list still shows it.
    pub fn is_buried(&self, uid: &str) -> bool {
        self.buried.contains(uid)
    }

    /// Registers that a watch has shown the deletion of an object.
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
    fn a_lagging_watch_does_not_bring_back_deleted_objects() {
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
    fn a_response_is_known_once_the_watch_of_its_kind_has_shown_it_or_a_later_change() {
        let mut fence = Fence::default();
        fence.shows("Node", Some("120"));
        fence.shows("Node", Some("110"));
        assert!(fence.has_shown("Node", Some("110")));
        assert!(fence.has_shown("Node", Some("120")));
        assert!(!fence.has_shown("Node", Some("121")));
        assert!(!fence.has_shown("Node", Some("x")));
        assert!(!fence.has_shown("Pod", Some("110")), "another kind has its own watch");
        fence.starts_again("Node");
        assert!(!fence.has_shown("Node", Some("110")));
    }

    #[test]
    fn a_complete_list_shows_all_changes_up_to_its_newest_object() {
        let mut fence = Fence::default();
        fence.starts_again("Node");
        fence.lists("Node", Some("120"));
        fence.lists("Node", Some("100"));
        assert!(!fence.has_shown("Node", Some("110")), "the list is not in the index yet");
        fence.listed("Node");
        assert!(fence.has_shown("Node", Some("110")), "an object with that version is in the list or gone");
        assert!(!fence.has_shown("Node", Some("121")));
    }

    #[test]
    fn a_version_that_is_no_number_is_never_late() {
        let mut fence = Fence::default();
        fence.wrote("a", Some("110"));
        assert!(!fence.is_late("a", Some("x")));
    }
}
