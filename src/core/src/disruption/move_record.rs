//! The part of the history of moves that the next leader must know, in the form in which it is stored.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::model::{PodKey, Uid};

/// The most times that are stored, of moves and of controllers whose pods gave way. With as many UIDs they take 320 kB each.
const MOST_TIMES: usize = 4_096;
/// The most evicted pods that are stored. With the longest names they take 270 kB.
const MOST_PODS: usize = 512;

/// The number of pods of each controller that moved at each time.
pub(super) type Moved = BTreeMap<Uid, BTreeMap<Timestamp, u32>>;

/// A pod that was evicted to make room.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct GaveWay {
    pub(super) uid: Uid,
    pub(super) owner: Option<Uid>,
    /// The time of the first eviction.
    pub(super) since: Timestamp,
}

/// What the next leader must know about earlier moves, so that it does not move the same pods again. Of more entries than fit
/// into a ConfigMap, it has the newest.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct MoveRecord {
    /// How many pods of each controller moved at each time.
    pub(super) moved: Moved,
    /// When a pod of each controller last gave way to another.
    pub(super) made_room: BTreeMap<Uid, Timestamp>,
    /// Pods that were evicted to make room and may still exist.
    pub(super) gave_way: Vec<(PodKey, GaveWay)>,
}

impl MoveRecord {
    pub(super) fn new(
        times: &Moved,
        made_room: &BTreeMap<Uid, Timestamp>,
        gave_way: &BTreeMap<PodKey, GaveWay>,
    ) -> Self {
        let moves =
            times.iter().flat_map(|(owner, times)| times.iter().map(move |(at, pods)| (at, owner, pods)));
        let mut moved = Moved::new();
        for (at, owner, pods) in newest(moves, MOST_TIMES) {
            moved.entry(owner.clone()).or_default().insert(*at, *pods);
        }
        let made_room = newest(made_room.iter().map(|(owner, at)| (at, owner)), MOST_TIMES);
        let given = newest(gave_way.iter().map(|(key, given)| (given.since, key, given)), MOST_PODS);
        Self {
            moved,
            made_room: made_room.into_iter().map(|(at, owner)| (owner.clone(), *at)).collect(),
            gave_way: given.into_iter().map(|(_, key, given)| (key.clone(), given.clone())).collect(),
        }
    }
}

/// Returns the greatest `most` entries, in order.
fn newest<T: Ord>(entries: impl Iterator<Item = T>, most: usize) -> Vec<T> {
    let mut entries: Vec<T> = entries.collect();
    entries.sort_unstable();
    entries.split_off(entries.len().saturating_sub(most))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disruption::move_history::MoveHistory;

    #[test]
    fn a_record_is_bounded_and_keeps_the_newest_moves() {
        let at = |seconds: usize| Timestamp::from_second(seconds as i64).unwrap();
        let all = MOST_TIMES + 10;
        let times: Moved =
            (0..all).map(|one| (Uid(format!("{one:05}")), [(at(one / 2), 1)].into())).collect();
        let made_room = (0..all).map(|one| (Uid(format!("{one:05}")), at(one / 2))).collect();
        let given = |one: usize| GaveWay { uid: Uid(one.to_string()), owner: None, since: at(one) };
        let gave_way = (0..all).map(|one| (PodKey::new("a", format!("{one:05}")), given(one))).collect();
        let record = MoveRecord::new(&times, &made_room, &gave_way);
        assert_eq!((record.moved.len(), record.made_room.len()), (MOST_TIMES, MOST_TIMES));
        assert_eq!(record.gave_way.len(), MOST_PODS);
        assert_eq!(record.moved.keys().next(), Some(&Uid("00010".to_owned())), "the oldest are missing");
        assert_eq!(
            record.gave_way.last().map(|(key, _)| key.name().into_owned()),
            Some(format!("{:05}", all - 1))
        );
        let mut history = MoveHistory::default();
        history.add(record.clone());
        assert_eq!(history.record_to_keep(), record);
        history.add(record.clone());
        assert_eq!(history.record_to_keep(), record, "nothing counts twice");
    }
}
