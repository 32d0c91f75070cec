//! Instances in the index, as the providers list them.

use jiff::Timestamp;

use crate::index::{Change, ClusterIndex};
use crate::model::{Instances, ListedInstance};

impl ClusterIndex {
    /// Sets the instances of a listing that began at `at`.
    pub fn set_instances(&mut self, at: Timestamp, instances: Vec<ListedInstance>) -> Change {
        let gone = &mut self.instances_gone;
        // A listing that began after they terminated does not contain them, so they need not be remembered.
        gone.retain(|_, since| *since >= at);
        let there = instances.into_iter().filter(|instance| !gone.contains_key(&instance.provider_id));
        self.state.instances = Some(Instances::new(at, there));
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
    use crate::model::Uid;

    fn at(second: i64) -> Timestamp {
        Timestamp::UNIX_EPOCH + SignedDuration::from_secs(second)
    }

    fn instance(id: &str) -> ListedInstance {
        ListedInstance {
            provider_id: id.into(),
            claim_uid: Uid(format!("uid-{id}")),
            node_class: NodeClassRef { group: String::new(), kind: String::new(), name: String::new() },
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
        index.set_instances(at(4), vec![instance("i-1"), instance("i-2")]);
        assert_eq!(listed(&index), ["i-2"]);
        assert_eq!(index.instance_gone("i-2", at(6)), Change::Life);
        assert_eq!(listed(&index), [""; 0]);
        index.set_instances(at(6), vec![instance("i-2"), instance("i-3")]);
        assert_eq!(listed(&index), ["i-3"], "it began in the same moment");
        index.set_instances(at(7), vec![instance("i-2")]);
        assert_eq!(listed(&index), ["i-2"], "what a later listing shows is there");
    }
}
