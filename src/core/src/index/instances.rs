//! Instances in the index, as the providers list them.

use jiff::{SignedDuration, Timestamp};

use crate::index::{Change, ClusterIndex};
use crate::model::ListedInstance;

/// A listing that takes longer than this has failed.
const LISTING_ENDS: SignedDuration = SignedDuration::from_secs(120);

impl ClusterIndex {
    /// Sets the instances of these kinds of node classes, which are those of one cloud, to a listing that began at `at`.
    pub fn set_instances(&mut self, kinds: &[&str], at: Timestamp, instances: Vec<ListedInstance>) -> Change {
        let gone = &self.instances_gone;
        let is_there =
            |instance: &ListedInstance| gone.get(&instance.provider_id).is_none_or(|since| *since < at);
        let listed = self.state.instances.get_or_insert_default();
        listed.replace(kinds, at, instances.into_iter().filter(is_there));
        // A listing that began after they terminated does not contain them, so they need not be remembered. A listing of another
        // cloud may still be under way, perhaps its first.
        if let Some(oldest) = listed.oldest() {
            let from = oldest.min(at.checked_sub(LISTING_ENDS).unwrap_or(Timestamp::MIN));
            self.instances_gone.retain(|_, since| *since >= from);
        }
        Change::Life
    }

    /// Records that an instance has terminated, even if a listing that began before `now` still contains it.
    pub fn instance_gone(&mut self, provider_id: &str, now: Timestamp) -> Change {
        self.instances_gone.insert(provider_id.to_owned(), now);
        let was_listed = self.state.instances.as_mut().is_some_and(|listed| listed.remove(provider_id));
        if was_listed { Change::Life } else { Change::None }
    }
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;
    use poolwright_terms::NodeClassRef;

    use super::*;
    use crate::model::{Instances, Uid};

    fn at(second: i64) -> Timestamp {
        Timestamp::UNIX_EPOCH + SignedDuration::from_secs(second)
    }

    fn instance(id: &str) -> ListedInstance {
        ListedInstance {
            provider_id: id.into(),
            claim_uid: Uid(format!("uid-{id}")),
            node_class: NodeClassRef { group: String::new(), kind: "A".into(), name: String::new() },
            launched: at(0),
        }
    }

    fn listed(index: &ClusterIndex) -> Vec<String> {
        let listed = index.view().instances.iter().flat_map(Instances::iter);
        listed.map(|instance| instance.provider_id.clone()).collect()
    }

    #[test]
    fn an_instance_that_has_gone_is_in_no_listing_that_began_before() {
        let mut index = ClusterIndex::new();
        assert_eq!(index.instance_gone("i-1", at(5)), Change::None, "nothing was listed yet");
        index.set_instances(&["A"], at(4), vec![instance("i-1"), instance("i-2")]);
        assert_eq!(listed(&index), ["i-2"]);
        assert_eq!(index.instance_gone("i-2", at(6)), Change::Life);
        assert_eq!(listed(&index), [""; 0]);
        index.set_instances(&["A"], at(6), vec![instance("i-2"), instance("i-3")]);
        assert_eq!(listed(&index), ["i-3"], "it began in the same moment");
        index.set_instances(&["A"], at(7), vec![instance("i-2")]);
        assert_eq!(listed(&index), ["i-2"], "what a later listing shows is there");
    }

    #[test]
    fn a_listing_of_one_cloud_replaces_no_instance_of_another() {
        let mut index = ClusterIndex::new();
        let node_class = NodeClassRef { group: String::new(), kind: "B".into(), name: String::new() };
        let other = || ListedInstance { node_class: node_class.clone(), ..instance("i-b") };
        index.set_instances(&["B"], at(1), vec![other()]);
        index.set_instances(&["A"], at(3), vec![instance("i-1")]);
        assert_eq!(listed(&index), ["i-1", "i-b"]);
        let began = |kind| index.view().instances.as_ref().and_then(|all| all.listed_at(kind));
        assert_eq!([began("A"), began("B"), began("C")], [Some(at(3)), Some(at(1)), None]);
        index.set_instances(&["A"], at(5), vec![]);
        assert_eq!(listed(&index), ["i-b"]);
    }

    #[test]
    fn a_late_listing_of_one_cloud_does_not_bring_back_what_has_gone_since_it_began() {
        let mut index = ClusterIndex::new();
        index.set_instances(&["A"], at(1), vec![instance("i-1")]);
        index.instance_gone("i-1", at(5));
        index.set_instances(&["B"], at(10), vec![]);
        index.set_instances(&["A"], at(4), vec![instance("i-1")]);
        assert_eq!(listed(&index), [""; 0]);
    }
}
