//! Reads the conditions of a status, and merges updates into them.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use poolwright_core::{self as core, ConditionUpdate};
use poolwright_terms::{ConditionStatus, ConditionType, Reason};

/// Returns the conditions that core knows. It leaves out others, which another component may have written.
pub fn conditions(from: &[Condition]) -> BTreeMap<ConditionType, core::Condition> {
    let convert = |condition: &Condition| core::Condition {
        status: ConditionStatus::named(&condition.status),
        since: condition.last_transition_time.0,
        reason: Reason::named(&condition.reason),
        message: condition.message.clone(),
    };
    from.iter()
        .filter_map(|condition| Some((ConditionType::named(&condition.type_)?, convert(condition))))
        .collect()
}

/// Merges `updates` into `existing`. The transition time changes only if the status changes. Conditions that
/// are not updated stay, in their order, and new ones follow. The result equals `existing` if there is nothing to write.
pub fn merge_conditions(
    existing: &[Condition],
    updates: &[ConditionUpdate],
    now: Timestamp,
    generation: Option<i64>,
) -> Vec<Condition> {
    let mut merged = existing.to_vec();
    for update in updates {
        let name = update.kind.as_str();
        let old = merged.iter().position(|condition| condition.type_ == name);
        let since = old
            .map(|at| &merged[at])
            .filter(|condition| condition.status == update.status.as_str())
            .map_or(now, |condition| condition.last_transition_time.0);
        let new = Condition {
            type_: name.to_owned(),
            status: update.status.as_str().to_owned(),
            reason: update.reason.to_string(),
            message: update.message.clone(),
            last_transition_time: Time(since),
            observed_generation: generation,
        };
        match old {
            Some(at) => merged[at] = new,
            None => merged.push(new),
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;

    fn update(status: ConditionStatus, message: &str) -> ConditionUpdate {
        ConditionUpdate {
            kind: ConditionType::Launched,
            status,
            reason: Reason::Launched,
            message: message.into(),
        }
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn a_condition_keeps_its_time_until_its_status_changes() {
        let first = merge_conditions(&[], &[update(ConditionStatus::True, "i-1 runs")], at(10), Some(1));
        let same =
            merge_conditions(&first, &[update(ConditionStatus::True, "i-1 still runs")], at(20), Some(2));
        assert_eq!(same[0].last_transition_time.0, at(10));
        assert_eq!((same[0].message.as_str(), same[0].observed_generation), ("i-1 still runs", Some(2)));
        let changed =
            merge_conditions(&same, &[update(ConditionStatus::False, "i-1 is gone")], at(30), Some(2));
        assert_eq!(changed[0].last_transition_time.0, at(30));
    }

    #[test]
    fn an_update_that_says_nothing_new_changes_nothing() {
        let first = merge_conditions(&[], &[update(ConditionStatus::True, "i-1 runs")], at(10), Some(1));
        assert_eq!(
            merge_conditions(&first, &[update(ConditionStatus::True, "i-1 runs")], at(99), Some(1)),
            first
        );
    }

    #[test]
    fn conditions_of_others_stay_where_they_are_and_decisions_do_not_see_them() {
        let foreign = Condition {
            type_: "Backup".into(),
            status: "True".into(),
            reason: "Done".into(),
            message: String::new(),
            last_transition_time: Time(at(1)),
            observed_generation: None,
        };
        let merged = merge_conditions(
            std::slice::from_ref(&foreign),
            &[update(ConditionStatus::True, "")],
            at(2),
            None,
        );
        assert_eq!(merged[0], foreign);
        let seen = conditions(&merged);
        assert_eq!(seen.keys().copied().collect::<Vec<_>>(), [ConditionType::Launched]);
        assert_eq!(seen[&ConditionType::Launched].since, at(2));
    }
}
