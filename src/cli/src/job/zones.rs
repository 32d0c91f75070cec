//! Whether the zone of an offering matters to a job. If not, offerings that differ in their zone alone share one plan.

use poolwright_catalog::Offering;
use poolwright_core::plan::PlanOptions;
use poolwright_core::{PodSpec, Snapshot};

/// Returns whether plans for a job may differ by zone: rules name zones, pods have volumes, or only some zones have a commitment or
/// node class. Preferences count, too, although most are about something else.
pub fn matter(job: &Snapshot, options: &PlanOptions) -> bool {
    let of_pods = job
        .pods
        .unbound()
        .any(|pod| names_zone(&pod.spec) || pod.spec.preferences.is_some() || !pod.volumes.is_empty());
    let of_daemons = job.daemonsets.values().any(|daemons| names_zone(&daemons.spec));
    let of_pools =
        job.pools.values().any(|pool| pool.requirements.iter().any(|one| is_about_zones(&one.key)));
    of_pods || of_daemons || of_pools || job.catalogues.len() > 1 || !options.commitments.is_empty()
}

/// Returns whether two offerings differ in their zone alone, if at all.
pub fn are_alike(one: &Offering, other: &Offering) -> bool {
    one.id.instance_type == other.id.instance_type
        && one.id.capacity_type == other.id.capacity_type
        && *one == Offering { id: one.id.clone(), ..other.clone() }
}

fn names_zone(spec: &PodSpec) -> bool {
    let mut required = spec.node_affinity.iter().flatten().flat_map(|term| &term.requirements);
    spec.node_selector.keys().any(|key| is_about_zones(key)) || required.any(|one| is_about_zones(&one.key))
}

/// Returns whether a label may tell a zone. Clouds have keys of their own for it.
fn is_about_zones(key: &str) -> bool {
    key.contains("zone")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use poolwright_catalog::builtin;
    use poolwright_core::{NodeSelectorTerm, Operator, Pod, PodKey, PodVolume, Requirement};
    use poolwright_terms::labels;

    use super::*;

    #[test]
    fn zones_matter_to_pods_that_name_one_or_have_a_volume() {
        let matters = |change: &dyn Fn(&mut Pod)| {
            let mut pod = Pod::waiting(PodKey::new("ml", "p"), PodSpec::default());
            change(&mut pod);
            let mut job = Snapshot::default();
            job.pods.insert(pod.key.clone(), Arc::new(pod));
            matter(&job, &PlanOptions::default())
        };
        assert!(!matters(&|_| {}));
        assert!(!matters(&|pod| {
            pod.spec.node_selector.insert(labels::REGION.to_owned(), "z".to_owned());
        }));
        assert!(matters(&|pod| {
            pod.spec.node_selector.insert("topology.gke.io/zone".to_owned(), "za".to_owned());
        }));
        assert!(matters(&|pod| {
            let operator = Operator::In(["za".to_owned()].into());
            let requirements = vec![Requirement { key: labels::ZONE.to_owned(), operator }];
            pod.spec.node_affinity = Some(vec![NodeSelectorTerm { requirements }]);
        }));
        assert!(matters(&|pod| {
            pod.volumes.push(PodVolume::Claim { name: "data".to_owned(), ephemeral: false });
        }));
    }

    #[test]
    fn offerings_are_alike_if_only_their_zones_differ() {
        let catalogue = builtin();
        let first = catalogue.offerings()[0].clone();
        let mut other = first.clone();
        other.id.zone = "elsewhere".into();
        assert!(are_alike(&first, &other));
        other.available = Some(1);
        assert!(!are_alike(&first, &other), "there are fewer of the other");
    }
}
