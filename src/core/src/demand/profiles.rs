//! Applies scheduler profiles to pending pods: default topology spread constraints and added node affinity. The rest of a plan
//! sees only the resulting pods.
//!
//! Source: the kube-scheduler's `buildDefaultConstraints` (podtopologyspread/common.go), `DefaultSelector`
//! (plugins/helper/spread.go) and `NodeAffinity.Filter` (nodeaffinity/node_affinity.go), Kubernetes 1.36.

use std::borrow::Cow;
use std::cell::{OnceCell, RefCell};
use std::collections::BTreeMap;

use crate::model::PlanOptions;
use crate::model::{
    ObjectKey, Operator, Pod, PodKey, PodPhase, PodRole, PodSpec, Preferences, Profile, Profiles,
    Requirement, Shared, Snapshot, TopologySpreadConstraint, Uid,
};

/// Kinds of controllers whose selectors the scheduler uses. In manifests, a Deployment stands for its ReplicaSet.
const SELECTING: [&str; 4] = ["ReplicaSet", "StatefulSet", "ReplicationController", "Deployment"];

/// Adds the rules of each pending pod's scheduler to the pod's spec.
pub(crate) fn apply(snapshot: &mut Cow<'_, Snapshot>, options: &PlanOptions) {
    if options.profiles.is_empty() {
        return;
    }
    for (key, spec) in ruled(snapshot, &options.profiles) {
        snapshot.to_mut().pods.change(&key, |pod| pod.spec = spec);
    }
}

/// All that the spec with the rules of a scheduler depends on: the pod's own spec, the scheduler, and the selector.
type Inputs<'a> = (&'a Shared<PodSpec>, &'a str, Option<Vec<Requirement>>);

/// Returns the specs with the rules of schedulers, by pod. Each spec is made once, because thousands of pods may share it.
fn ruled(snapshot: &Snapshot, profiles: &Profiles) -> Vec<(PodKey, Shared<PodSpec>)> {
    let ruler = ProfileRules::new(snapshot, profiles);
    let mut known: BTreeMap<Inputs<'_>, Shared<PodSpec>> = BTreeMap::new();
    let mut all = Vec::new();
    for pod in snapshot.pods.unbound() {
        let Some((profile, selector)) = ruler.rules_of(pod) else { continue };
        let spec = known
            .entry((&pod.spec, pod.scheduler.as_str(), selector))
            .or_insert_with_key(|(spec, _, selector)| with(spec, profile, selector.as_deref()).into());
        all.push((pod.key.clone(), spec.clone()));
    }
    all
}

/// Cached selectors for default constraints, by namespace, labels and controller.
type SelectorCache<'a> =
    BTreeMap<(&'a str, &'a BTreeMap<String, String>, Option<&'a Uid>), Option<Vec<Requirement>>>;

/// Computes the rules that schedulers add to pods.
pub(crate) struct ProfileRules<'a> {
    snapshot: &'a Snapshot,
    profiles: &'a Profiles,
    of_owners: OnceCell<BTreeMap<&'a Uid, &'a [Requirement]>>,
    known: RefCell<SelectorCache<'a>>,
}

impl<'a> ProfileRules<'a> {
    pub fn new(snapshot: &'a Snapshot, profiles: &'a Profiles) -> Self {
        Self { snapshot, profiles, of_owners: OnceCell::new(), known: RefCell::default() }
    }

    /// Returns the spec of a pending pod with the rules of its scheduler; `None` if the scheduler adds none.
    pub fn spec_of(&self, pod: &'a Pod) -> Option<PodSpec> {
        let (profile, selector) = self.rules_of(pod)?;
        Some(with(&pod.spec, profile, selector.as_deref()))
    }

    /// Returns the profile of a pending pod, and the selector for its default constraints; `None` if the scheduler adds no rule.
    fn rules_of(&self, pod: &'a Pod) -> Option<(&'a Profile, Option<Vec<Requirement>>)> {
        let profile = self.profiles.get(&pod.scheduler)?;
        let waits = matches!(pod.phase, PodPhase::Waiting | PodPhase::Unschedulable { .. } | PodPhase::Gated)
            && pod.role == PodRole::Workload
            && pod.deleting_since.is_none();
        if !waits {
            return None;
        }
        let selector =
            if profile.spreads_pods() && !spreads_itself(&pod.spec) { self.selector(pod) } else { None };
        if selector.is_none() && profile.enforced.is_none() && profile.preferred.is_empty() {
            return None;
        }
        Some((profile, selector))
    }

    /// Returns the selector for the default constraints of a pod. Returns `None` if no Service or controller selects it, because
    /// the constraints do not apply then.
    fn selector(&self, pod: &'a Pod) -> Option<Vec<Requirement>> {
        let key = (pod.key.namespace(), &*pod.labels, pod.owner.as_ref());
        if let Some(known) = self.known.borrow().get(&key) {
            return known.clone();
        }
        let mut all = self.of_services(pod);
        let owner = pod.owner.as_ref().and_then(|owner| self.of_owners().get(owner).copied());
        all.extend_from_slice(owner.unwrap_or_default());
        all.sort();
        all.dedup();
        let selector = Some(all).filter(|all| !all.is_empty());
        self.known.borrow_mut().insert(key, selector.clone());
        selector
    }

    /// Returns the selectors of all Services that select the pod.
    fn of_services(&self, pod: &Pod) -> Vec<Requirement> {
        let namespace = pod.key.namespace();
        let services = self.snapshot.services.range_from(&ObjectKey::new(namespace, ""));
        let services = services.take_while(|(key, _)| key.namespace == namespace);
        let mut all = Vec::new();
        for (_, service) in services {
            if service.selector.iter().all(|(key, value)| pod.labels.get(key) == Some(value)) {
                all.extend(service.selector.iter().map(|(key, value)| Requirement {
                    key: key.clone(),
                    operator: Operator::In([value.clone()].into()),
                }));
            }
        }
        all
    }

    fn of_owners(&self) -> &BTreeMap<&'a Uid, &'a [Requirement]> {
        self.of_owners.get_or_init(|| {
            let all = self.snapshot.workloads.values();
            let selecting = all.filter(|workload| SELECTING.contains(&workload.kind.as_str()));
            selecting.filter_map(|workload| Some((&workload.uid, workload.selector.as_deref()?))).collect()
        })
    }
}

/// Returns whether the pod has topology spread constraints of its own, so that default constraints do not apply.
fn spreads_itself(spec: &PodSpec) -> bool {
    let preferences = spec.preferences.as_deref();
    !spec.spreads.is_empty()
        || preferences.is_some_and(|preferences| {
            let unread =
                |rule: &crate::model::UnmodelledRule| rule.field.contains("topologySpreadConstraints");
            !preferences.spreads.is_empty() || preferences.unread.iter().any(unread)
        })
}

fn with(spec: &PodSpec, profile: &Profile, selector: Option<&[Requirement]>) -> PodSpec {
    let mut spec = spec.clone();
    spec.enforced = profile.enforced.clone().map(Box::new);
    let selecting = |rule: &TopologySpreadConstraint| TopologySpreadConstraint {
        selector: selector.map(<[_]>::to_vec),
        ..rule.clone()
    };
    let mut preferences =
        spec.preferences.take().map_or_else(Preferences::default, |preferences| *preferences);
    preferences.added.clone_from(&profile.preferred);
    if selector.is_some() {
        spec.spreads.extend(profile.spreads.iter().map(selecting));
        preferences.spreads.extend(profile.preferred_spreads.iter().map(selecting));
    }
    spec.preferences = preferences.some();
    spec
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::EnforcedAffinity;

    #[test]
    fn pods_that_share_a_spec_share_the_one_with_the_rules_of_their_scheduler() {
        let mut snapshot = Snapshot::default();
        let spec = Shared::<PodSpec>::default();
        for name in ["a", "b"] {
            let pod = Pod::waiting(PodKey::new("default", name), spec.clone());
            snapshot.pods.insert(pod.key.clone(), pod.into());
        }
        let enforced = EnforcedAffinity { source: "scheduler.yaml".to_owned(), terms: Vec::new() };
        let profile = Profile { enforced: Some(enforced), ..Profile::default() };
        let ruled = ruled(&snapshot, &[("default-scheduler".to_owned(), profile)].into());
        let [(_, one), (_, other)] = ruled.as_slice() else { panic!("{ruled:?}") };
        assert!(one.is_same(other) && one.enforced.is_some() && spec.enforced.is_none());
    }
}
