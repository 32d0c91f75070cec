//! Recent launches: instances and empty answers that EC2 does not show yet.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use poolwright_provider_aws_model::InstanceId;
use poolwright_provider_contract::InstanceState;

use crate::instances::{Listing, OwnInstance, is_unassigned};

/// How long a launched instance counts as running although no listing shows it. EC2 shows new instances within seconds.
const ASSUMED_RUNNING_FOR: SignedDuration = SignedDuration::from_mins(2);

/// The recent launches.
#[derive(Debug, Default)]
pub(crate) struct RecentLaunches {
    launched: BTreeMap<String, (OwnInstance, Timestamp)>,
    /// Unassigned instances that were terminated. A listing that began before shows them as running.
    ended: BTreeMap<InstanceId, Timestamp>,
    /// Empty answers of CreateFleet, by key and round.
    empty: BTreeMap<(String, usize), (u32, Timestamp)>,
}

impl RecentLaunches {
    /// Records a launch.
    pub fn launched(&mut self, found: OwnInstance, now: Timestamp) {
        self.empty.retain(|(key, _), _| *key != found.instance.key);
        self.launched.insert(found.instance.key.clone(), (found, now));
    }

    /// Returns the key of the launch of this instance.
    pub fn key_of(&self, id: &InstanceId) -> Option<&String> {
        self.launched.iter().find(|(_, (found, _))| found.id == *id).map(|(key, _)| key)
    }

    /// Records that the instance has the tags of its claim.
    pub fn note_tagged(&mut self, key: &str) {
        if let Some((found, _)) = self.launched.get_mut(key) {
            found.open = None;
        }
    }

    /// Records that the instance is being terminated.
    pub fn ending(&mut self, key: &str, id: &InstanceId, now: Timestamp) {
        self.launched.remove(key);
        if is_unassigned(key) {
            self.ended.insert(id.clone(), now);
        }
    }

    /// Returns the number of empty answers for this key and round.
    pub fn empty_answers(&self, key: &str, round: usize) -> u32 {
        self.empty.get(&(key.to_owned(), round)).map_or(0, |(count, _)| *count)
    }

    /// Counts an empty answer.
    pub fn count_empty_answer(&mut self, key: &str, round: usize, now: Timestamp) {
        // A claim without an instance is deleted much earlier.
        self.empty.retain(|_, (_, at)| now.duration_since(*at).abs() < SignedDuration::from_hours(1));
        let known = self.empty.entry((key.to_owned(), round)).or_insert((0, now));
        *known = (known.0.saturating_add(1), now);
    }

    /// Returns the instances of a listing together with the recent launches.
    pub fn merge(&mut self, listing: &Listing, now: Timestamp) -> Vec<OwnInstance> {
        self.launched.retain(|_, (found, at)| {
            // Use the absolute difference, because the clock may be set back.
            now.duration_since(*at).abs() < ASSUMED_RUNNING_FOR && !listing.gone.contains(&found.id)
        });
        self.ended.retain(|_, at| now.duration_since(*at).abs() < ASSUMED_RUNNING_FOR);
        let mut listed = listing.found.clone();
        for one in &mut listed {
            if self.ended.contains_key(&one.id) {
                one.instance.state = InstanceState::Terminating;
            }
        }
        for (found, _) in self.launched.values() {
            match listed.iter_mut().find(|one| one.id == found.id) {
                // EC2 shows the tags of an instance later than the instance.
                Some(one) if one.open.is_some() => {
                    let (key, claim) = (found.instance.key.clone(), found.instance.claim.clone());
                    one.open.clone_from(&found.open);
                    (one.instance.key, one.instance.claim) = (key, claim);
                }
                Some(_) => {}
                None => listed.push(found.clone()),
            }
        }
        listed.sort_by(|a, b| a.instance.provider_id.cmp(&b.instance.provider_id));
        listed
    }
}

#[cfg(test)]
mod tests {
    use poolwright_catalog::OfferingId;
    use poolwright_provider_contract::Instance;
    use poolwright_terms::{CapacityType, NodeClassRef};

    use super::*;

    fn found(key: &str) -> OwnInstance {
        let id = format!("i-{:0>8}", key.len());
        OwnInstance {
            id: id.parse().expect("an id"),
            instance: Instance {
                provider_id: format!("aws:///us-east-1a/{id}"),
                key: key.to_owned(),
                claim: key.to_owned(),
                offering: OfferingId {
                    instance_type: "g5.xlarge".into(),
                    zone: "us-east-1a".into(),
                    capacity_type: CapacityType::Spot,
                },
                node_class: NodeClassRef { group: String::new(), kind: String::new(), name: String::new() },
                launched: Timestamp::UNIX_EPOCH,
                state: InstanceState::Running,
            },
            open: None,
        }
    }

    #[test]
    fn a_launched_instance_is_remembered_for_two_minutes_without_a_listing() {
        let at = |second| Timestamp::from_second(second).expect("a time");
        let mut recent = RecentLaunches::default();
        let nothing = Listing::default();
        let with_a = Listing { found: vec![found("a")], ..Listing::default() };
        recent.launched(found("a"), at(100));
        recent.launched(found("bb"), at(100));
        recent.launched(found("ccc"), at(100));
        assert_eq!(recent.merge(&nothing, at(101)).len(), 3);
        assert_eq!(recent.merge(&with_a, at(101)), [found("a"), found("bb"), found("ccc")], "and not twice");
        recent.ending("a", &found("a").id, at(101));
        assert_eq!(recent.merge(&nothing, at(102)), [found("bb"), found("ccc")], "instance is terminating");
        let without_bb = Listing { gone: [found("bb").id].into(), ..Listing::default() };
        assert_eq!(recent.merge(&without_bb, at(103)), [found("ccc")], "EC2 says that it is gone");
        assert_eq!(recent.merge(&nothing, at(221)), []);
    }

    #[test]
    fn an_old_listing_does_not_bring_back_a_terminated_spare_instance() {
        let at = |seconds| Timestamp::UNIX_EPOCH + SignedDuration::from_secs(seconds);
        let mut recent = RecentLaunches::default();
        let before = Listing { found: vec![found("open-1")], ..Listing::default() };
        recent.ending("open-1", &found("open-1").id, at(100));
        assert_eq!(recent.merge(&before, at(101))[0].instance.state, InstanceState::Terminating);
        assert_eq!(
            recent.merge(&before, at(300))[0].instance.state,
            InstanceState::Running,
            "EC2 shows it still"
        );
    }

    #[test]
    fn orders_that_came_to_nothing_are_counted_until_one_does_not() {
        let mut recent = RecentLaunches::default();
        recent.count_empty_answer("a", 0, Timestamp::UNIX_EPOCH);
        recent.count_empty_answer("a", 0, Timestamp::UNIX_EPOCH);
        assert_eq!([recent.empty_answers("a", 0), recent.empty_answers("a", 1)], [2, 0]);
        recent.launched(found("a"), Timestamp::UNIX_EPOCH);
        assert_eq!(recent.empty_answers("a", 0), 0);
    }
}
