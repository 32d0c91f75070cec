//! The ReplicaSets of a Deployment that is scaled in the middle of a rollout, or while it is paused: how its controller divides the
//! replicas among them (`scale` and `GetReplicaSetProportion` in Kubernetes).

use std::cmp::Reverse;

use serde_json::Value;

use super::counted::counted;
use super::family::Family;
use super::objects::{Object, group, meta};
use super::rolled::{Bounds, Rolling, rolled};
use super::rollouts::is_newest;
use super::scale_down::replicas;

/// The annotation of a ReplicaSet with the replicas that its Deployment wanted when the controller last scaled the set.
const DESIRED: &str = "deployment.kubernetes.io/desired-replicas";

/// The annotation of a ReplicaSet with the most replicas that its Deployment could have then.
const MOST: &str = "deployment.kubernetes.io/max-replicas";

/// What a Deployment may have more or fewer than its replicas during a rollout, unless it says otherwise.
const USUAL: &str = "25%";

/// What the controller of a Deployment makes of its ReplicaSets.
pub(super) struct Divided {
    /// The sets, each with its replicas.
    pub sizes: Vec<(usize, u64)>,
    /// Why they have as many.
    pub why: String,
}

/// Returns what the controller of a Deployment gives these ReplicaSets, which all have replicas; `None` if they may keep what they have.
/// If nobody can know it, the error says so.
pub(super) fn divided(
    family: &Family<'_>,
    at: usize,
    sets: &[usize],
    wanted: u64,
) -> Result<Option<Divided>, String> {
    let object = family.all[at];
    if (group(&object.api_version), object.kind.as_str()) != ("apps", "Deployment") {
        return Ok(None);
    }
    let spec = &object.value["spec"];
    let is_paused = spec["paused"] == true;
    if let [only] = sets {
        return Ok(if is_paused { alone(family, at, *only, wanted) } else { None });
    }
    let recreates = spec["strategy"]["type"] == "Recreate";
    let surge =
        if recreates { Some(0) } else { surge(&spec["strategy"]["rollingUpdate"]["maxSurge"], wanted) };
    // What is no number is a problem of the Deployment.
    let Some(surge) = surge else { return Ok(None) };
    let most = wanted.saturating_add(surge);
    let stand = sets.iter().map(|set| replicas(family.all[*set])).fold(0, u64::saturating_add);
    let number = |set: usize, key: &str| number(family.all[set], key);
    let is_scaled = sets.iter().filter_map(|set| number(*set, DESIRED)).any(|desired| desired != wanted);
    let grows = stand < most;
    // Without a change of its number, a rollout goes on, and what it lacks has the new template.
    if sets.len() < 2 || stand == most || (grows && (recreates || (!is_paused && !is_scaled))) {
        return Ok(None);
    }
    let unknown = |why: &str| {
        let (count, stand) = (sets.len(), counted(stand, "replica"));
        Err(if grows {
            format!(
                "its {count} ReplicaSets have {stand} together, and it may have {most}; only the pods that it lacks are planned, with the \
                 new template, because {why}"
            )
        } else {
            format!(
                "its {count} ReplicaSets have {stand} together, more than the {most} that it may have; all of them count, because {why}"
            )
        })
    };
    if !family.of_absent_sets(at).is_empty() {
        return unknown("it has pods of ReplicaSets that are not in the files");
    }
    let mut alike = sets.iter().copied().filter(|set| is_newest(object, family.all[*set]));
    let newest = alike.next().filter(|_| alike.next().is_none());
    let only = |newest: usize, why: String| {
        let size = |set: usize| if set == newest { wanted } else { 0 };
        Ok(Some(Divided { sizes: sets.iter().map(|set| (*set, size(*set))).collect(), why }))
    };
    if recreates {
        // A controller that sees another number of replicas, or a pause, leaves several sets as they are with this strategy.
        return match newest.filter(|_| !is_paused && !is_scaled) {
            Some(newest) => only(
                newest,
                format!("{} deletes its old pods before it makes new ones (Recreate)", object.name()),
            ),
            None => unknown("it is not certain which of them its controller scales down (Recreate)"),
        };
    }
    if !is_paused && !is_scaled {
        return unknown(if sets.iter().any(|set| number(*set, DESIRED).is_none()) {
            "the annotations of its controller do not show what they had before"
        } else {
            "its controller scales the old ones down as new pods become available"
        });
    }
    let is_full = |set: usize| {
        replicas(family.all[set]) == wanted
            && number(set, DESIRED) == Some(wanted)
            && family.all[set].value["status"]["availableReplicas"] == wanted
    };
    if let Some(newest) = newest.filter(|set| is_full(*set)) {
        return only(newest, format!("the newest ReplicaSet of {} has all {wanted}", object.name()));
    }
    let status = &object.replaced.as_ref().unwrap_or(&object.value)["status"]["replicas"];
    let before = |set: usize| number(set, MOST).filter(|most| *most > 0).or(status.as_u64());
    let mut order: Vec<(usize, u64)> = Vec::new();
    for set in sets {
        let Some(before) = before(*set) else {
            return unknown("the annotations of its controller do not show what they had before");
        };
        order.push((*set, before));
    }
    // Of equal sets, the newest comes first if they grow, and the oldest if they shrink.
    order.sort_by_key(|(set, _)| created(family.all[*set]));
    if grows {
        order.reverse();
    }
    order.sort_by_key(|(set, _)| Reverse(replicas(family.all[*set])));
    let standing: Vec<(u64, u64)> =
        order.iter().map(|(set, before)| (replicas(family.all[*set]), *before)).collect();
    let mut sizes: Vec<(usize, u64)> =
        order.iter().map(|(set, _)| *set).zip(shared(&standing, stand, most)).collect();
    if let Some(newest) = newest.filter(|_| !is_paused) {
        // The next step of the rollout.
        for (_, size) in sizes.iter_mut().filter(|(set, _)| *set == newest) {
            *size = (*size).min(wanted);
        }
        let unavailable = unavailable(&spec["strategy"]["rollingUpdate"]["maxUnavailable"], surge, wanted);
        if let Some(unavailable) = unavailable {
            go_on(family, newest, &mut sizes, &Bounds { wanted, surge, unavailable });
        }
    }
    let more = if surge == 0 { "no".to_owned() } else { surge.to_string() };
    let why = format!("{} wants {wanted} and may have {more} more during its rollout", object.name());
    Ok(Some(Divided { sizes, why }))
}

/// Returns what a paused Deployment with more replicas than its only ReplicaSet gives it: pods of the old template. Without a pause, what
/// it lacks has the new one.
fn alone(family: &Family<'_>, at: usize, only: usize, wanted: u64) -> Option<Divided> {
    let (object, set) = (family.all[at], family.all[only]);
    let grows = replicas(set) < wanted && !is_newest(object, set) && family.of_absent_sets(at).is_empty();
    let why = format!("{} is paused and wants {wanted}", object.name());
    grows.then(|| Divided { sizes: vec![(only, wanted)], why })
}

/// Lets the rollout go on until it waits for pods. Without the status of each set, nobody knows how far it goes. Pods that a set gets now
/// are not available, whatever an older status says.
fn go_on(family: &Family<'_>, newest: usize, sizes: &mut [(usize, u64)], bounds: &Bounds) {
    let status = |set: usize| &family.all[set].value["status"];
    if sizes.iter().any(|(set, _)| !status(*set).is_object()) {
        return;
    }
    sizes.sort_by_key(|(set, _)| (*set != newest, created(family.all[*set])));
    let rolling = |(set, size): &(usize, u64)| {
        let available = status(*set)["availableReplicas"].as_u64().unwrap_or(0);
        Rolling { size: *size, available: available.min(replicas(family.all[*set])).min(*size) }
    };
    let mut all: Vec<Rolling> = sizes.iter().map(rolling).collect();
    if let Some((new, old)) = all.split_first_mut() {
        rolled(new, old, bounds);
    }
    for ((_, size), set) in sizes.iter_mut().zip(all) {
        *size = set.size;
    }
}

/// Returns the sizes of sets that grow or shrink in proportion, from `stand` replicas in all to `most`. Each has its size, and the most
/// that all could have when it was last scaled. The first, which is the largest, gives or takes what rounding leaves.
fn shared(sets: &[(u64, u64)], stand: u64, most: u64) -> Vec<u64> {
    let signed = i128::from;
    let change = signed(most) - signed(stand);
    let mut changed = 0;
    let mut sizes: Vec<i128> = Vec::new();
    for (size, before) in sets {
        let (size, before) = (signed(*size), signed(*before));
        let doubled = size.saturating_mul(signed(most)).saturating_mul(2);
        // Half is rounded up. Without pods before, there is no proportion.
        let share = doubled.saturating_add(before).checked_div(2 * before).map_or(0, |share| share - size);
        let left = change - changed;
        let own = if size == 0 || left == 0 {
            0
        } else if change > 0 {
            share.min(left)
        } else {
            share.max(left)
        };
        changed += own;
        sizes.push(size + own);
    }
    if let Some(first) = sizes.first_mut() {
        *first = (*first + change - changed).max(0);
    }
    sizes.into_iter().map(|size| u64::try_from(size).unwrap_or(0)).collect()
}

/// Returns how many more pods than its replicas a Deployment may have during a rollout; `None` if what it says is no number.
fn surge(stated: &Value, wanted: u64) -> Option<u64> {
    Some(hundredths(stated, wanted)?.div_ceil(100))
}

/// Returns how many of its replicas may be unavailable during a rollout; `None` if what it says is no number.
fn unavailable(stated: &Value, surge: u64, wanted: u64) -> Option<u64> {
    let most = hundredths(stated, wanted)? / 100;
    // Without either, a rollout would never go on.
    Some(most.max(u64::from(surge == 0)).min(wanted))
}

/// Returns a hundred times what a number, or a percentage of the replicas, comes to.
fn hundredths(stated: &Value, wanted: u64) -> Option<u64> {
    let text = match stated {
        Value::Null => USUAL,
        Value::String(text) => text.as_str(),
        number => return Some(number.as_u64()?.saturating_mul(100)),
    };
    let percent: u64 = text.strip_suffix('%')?.parse().ok()?;
    Some(percent.saturating_mul(wanted))
}

/// Returns what orders ReplicaSets by age.
fn created(set: &Object) -> (Option<&str>, Option<&str>) {
    (meta(&set.value, "creationTimestamp"), meta(&set.value, "name"))
}

/// Returns the number in an annotation of a ReplicaSet.
fn number(set: &Object, key: &str) -> Option<u64> {
    set.value["metadata"]["annotations"][key].as_str()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_shrink_in_proportion_and_the_largest_takes_what_rounding_leaves() {
        assert_eq!(shared(&[(8, 13), (5, 13)], 13, 7), [4, 3]);
        assert_eq!(shared(&[(5, 9), (4, 9)], 9, 7), [4, 3]);
        assert_eq!(shared(&[(2, 6), (2, 6), (2, 6)], 6, 4), [1, 1, 2], "the last loses none");
        assert_eq!(shared(&[(3, 0), (2, 0)], 5, 3), [1, 2], "nobody knows a proportion");
    }

    #[test]
    fn sets_grow_in_proportion_and_the_largest_takes_what_rounding_leaves() {
        assert_eq!(shared(&[(8, 13), (5, 13)], 13, 18), [11, 7]);
        assert_eq!(shared(&[(7, 10), (2, 10), (1, 10)], 10, 13), [9, 3, 1]);
        assert_eq!(shared(&[(2, 6), (2, 6), (2, 6)], 6, 10), [4, 3, 3], "a third is rounded down");
        assert_eq!(shared(&[(3, 0), (2, 0)], 5, 8), [6, 2], "nobody knows a proportion");
        assert_eq!(shared(&[(6, 13), (3, 13)], 9, 11), [8, 3], "it was larger when it was last scaled");
    }

    #[test]
    fn a_surge_in_percent_is_rounded_up_and_what_may_be_unavailable_is_rounded_down() {
        let of = |stated: Value| surge(&stated, 5);
        assert_eq!([of(Value::Null), of("50%".into()), of(2.into())], [Some(2), Some(3), Some(2)]);
        assert_eq!(of("many".into()), None);
        let of = |stated: Value, surge: u64| unavailable(&stated, surge, 5);
        assert_eq!([of(Value::Null, 2), of("50%".into(), 2), of(9.into(), 2)], [Some(1), Some(2), Some(5)]);
        assert_eq!([of(0.into(), 2), of(0.into(), 0)], [Some(0), Some(1)]);
    }
}
