//! The input of a plan as plain lists, to save it where a plan failed and to repeat the plan elsewhere.
//!
//! The model has no environments, command lines, images or contents of secrets. Annotations are left out too. So are the instances of
//! clouds, and what the last plan decided about nodes that retire and pods that give way.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use poolwright_catalog::{Catalogue, InstanceTypeName, OfferingId, ResourceList};
use poolwright_terms::NodeClassRef;
use serde::{Deserialize, Serialize};

use crate::model::arrivals::{Arrivals, Bursts};
use crate::model::budget::PodDisruptionBudget;
use crate::model::claim::Claim;
use crate::model::claims::Claims;
use crate::model::daemonset::DaemonSet;
use crate::model::disruption::DisruptionBudget;
use crate::model::gang::Gang;
use crate::model::idle::Gaps;
use crate::model::life_table::{AGES, LifeTable};
use crate::model::lives::{KINDS, Lives, SavedLives};
use crate::model::names::{ClaimName, PoolName, Uid};
use crate::model::node::Node;
use crate::model::nodes::Nodes;
use crate::model::persistent_map::PersistentMap;
use crate::model::pod::Pod;
use crate::model::pod_affinity::Namespace;
use crate::model::pod_group::PodGroup;
use crate::model::pod_key::{ObjectKey, PodKey};
use crate::model::pool::Pool;
use crate::model::profile::Service;
use crate::model::quota::Quota;
use crate::model::reclaims::Reclaims;
use crate::model::snapshot::Snapshot;
use crate::model::volumes::{Attachment, NodeDrivers, StorageClass, Volume, VolumeClaim};
use crate::model::workload::Workload;

/// Objects with their keys, in the order of keys.
type Keyed<K, V> = Vec<(K, V)>;

/// The part of a snapshot that can be saved.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SavedSnapshot {
    pods: Keyed<PodKey, Pod>,
    nodes: Keyed<String, Node>,
    claims: Keyed<ClaimName, Claim>,
    pools: Keyed<PoolName, Pool>,
    daemonsets: Keyed<ObjectKey, DaemonSet>,
    namespaces: Vec<Namespace>,
    workloads: Keyed<(String, ObjectKey), Workload>,
    gangs: Keyed<(String, ObjectKey), Gang>,
    pod_groups: Keyed<ObjectKey, PodGroup>,
    services: Keyed<ObjectKey, Service>,
    quotas: Keyed<ObjectKey, Quota>,
    budgets: Keyed<ObjectKey, PodDisruptionBudget>,
    volume_claims: Keyed<ObjectKey, VolumeClaim>,
    volumes: Keyed<String, Volume>,
    storage_classes: Keyed<String, StorageClass>,
    node_drivers: Keyed<String, NodeDrivers>,
    attachments: Keyed<String, Attachment>,
    catalogues: Keyed<NodeClassRef, Result<Catalogue, String>>,
    held_back: Keyed<(NodeClassRef, OfferingId), Timestamp>,
    measured: Keyed<(NodeClassRef, InstanceTypeName), ResourceList>,
    nominations: Keyed<PodKey, (Uid, String)>,
    short_of_capacity: bool,
    unpatchable: BTreeSet<String>,
    disruption_budgets: Vec<DisruptionBudget>,
    #[serde(default)]
    reclaims: Keyed<(NodeClassRef, OfferingId), Reclaims>,
    /// How long pods run; `None` if plans do not count time.
    #[serde(default)]
    lives: Option<SavedLives>,
    #[serde(default)]
    gaps: BTreeMap<String, LifeTable>,
    #[serde(default)]
    arrivals: BTreeMap<String, Bursts>,
}

fn saved<K: Clone, V: Clone>(all: &PersistentMap<K, Arc<V>>) -> Keyed<K, V> {
    all.iter().map(|(key, value)| (key.clone(), V::clone(value))).collect()
}

/// Returns entries of a map of a snapshot.
fn shared<K, V>(all: Keyed<K, V>) -> impl Iterator<Item = (K, Arc<V>)> {
    all.into_iter().map(|(key, value)| (key, Arc::new(value)))
}

impl From<&Snapshot> for SavedSnapshot {
    fn from(from: &Snapshot) -> Self {
        let mut claims = saved(&from.claims);
        let mut pools = saved(&from.pools);
        for (_, claim) in &mut claims {
            claim.annotations.clear();
        }
        for (_, pool) in &mut pools {
            pool.annotations.clear();
        }
        let catalogue = |sold: &Result<Arc<Catalogue>, String>| match sold {
            Ok(catalogue) => Ok(Catalogue::clone(catalogue)),
            Err(why) => Err(why.clone()),
        };
        Self {
            pods: saved(&from.pods),
            nodes: saved(&from.nodes),
            claims,
            pools,
            daemonsets: saved(&from.daemonsets),
            namespaces: from.namespaces.keys().filter_map(|name| from.namespace(name)).collect(),
            workloads: saved(&from.workloads),
            gangs: saved(&from.gangs),
            pod_groups: saved(&from.pod_groups),
            services: saved(&from.services),
            quotas: saved(&from.quotas),
            budgets: saved(&from.budgets),
            volume_claims: saved(&from.volume_claims),
            volumes: saved(&from.volumes),
            storage_classes: saved(&from.storage_classes),
            node_drivers: saved(&from.node_drivers),
            attachments: saved(&from.attachments),
            catalogues: from
                .catalogues
                .iter()
                .map(|(class, sold)| (class.clone(), catalogue(sold)))
                .collect(),
            held_back: from.held_back.iter().map(|(offering, until)| (offering.clone(), *until)).collect(),
            measured: from
                .measured
                .iter()
                .map(|(kind, lacked)| (kind.clone(), ResourceList::clone(lacked)))
                .collect(),
            nominations: from.nominations.iter().map(|(pod, place)| (pod.clone(), place.clone())).collect(),
            short_of_capacity: from.short_of_capacity,
            unpatchable: from.unpatchable.clone(),
            disruption_budgets: from.disruption_budgets.to_vec(),
            reclaims: from
                .reclaims
                .iter()
                .map(|(offering, reclaims)| (offering.clone(), *reclaims))
                .collect(),
            lives: from.lives.saved(),
            gaps: from.gaps.tables().clone(),
            arrivals: from.arrivals.sizes().clone(),
        }
    }
}

impl SavedSnapshot {
    /// Leaves out what was learned, as far as nobody can have learned it: its counts could overflow. Returns what that is, in words.
    pub fn leave_out_unsound(&mut self) -> Vec<String> {
        let mut left_out = Vec::new();
        if let Some(lives) = &mut self.lives {
            keep_sound(&mut lives.tables, "durations of pods of kind", LifeTable::is_sound, &mut left_out);
            let is_sound = |counts: &Vec<u32>| counts.len() <= AGES;
            keep_sound(&mut lives.running, "running pods of kind", is_sound, &mut left_out);
            let more = lives.tables.len().saturating_sub(KINDS);
            if more > 0 {
                left_out.push(format!("the {more} kinds of pods beyond the {KINDS} that ended last"));
            }
        }
        keep_sound(&mut self.gaps, "idle times of nodes of kind", LifeTable::is_sound, &mut left_out);
        keep_sound(&mut self.arrivals, "arrivals of pods of size", Bursts::is_sound, &mut left_out);
        left_out
    }
}

/// Keeps the entries that can have been learned, and names the others.
fn keep_sound<T>(
    entries: &mut BTreeMap<String, T>,
    what: &str,
    is_sound: impl Fn(&T) -> bool,
    left_out: &mut Vec<String>,
) {
    entries.retain(|name, entry| {
        let keeps = is_sound(entry);
        if !keeps {
            left_out.push(format!("{what} `{name}`"));
        }
        keeps
    });
}

impl From<SavedSnapshot> for Snapshot {
    /// Makes the snapshot that was saved, without what [`SavedSnapshot::leave_out_unsound`] leaves out.
    fn from(mut from: SavedSnapshot) -> Self {
        from.leave_out_unsound();
        let mut snapshot = Self {
            pods: shared(from.pods).collect(),
            nodes: shared(from.nodes).collect(),
            claims: shared(from.claims).collect(),
            pools: shared(from.pools).collect(),
            daemonsets: shared(from.daemonsets).collect(),
            workloads: shared(from.workloads).collect(),
            gangs: shared(from.gangs).collect(),
            pod_groups: shared(from.pod_groups).collect(),
            services: shared(from.services).collect(),
            quotas: shared(from.quotas).collect(),
            budgets: shared(from.budgets).collect(),
            volume_claims: shared(from.volume_claims).collect(),
            volumes: shared(from.volumes).collect(),
            storage_classes: shared(from.storage_classes).collect(),
            node_drivers: shared(from.node_drivers).collect(),
            attachments: shared(from.attachments).collect(),
            catalogues: from
                .catalogues
                .into_iter()
                .map(|(class, sold)| (class, sold.map(Arc::new)))
                .collect(),
            held_back: from.held_back.into_iter().collect(),
            measured: shared(from.measured).collect(),
            nominations: from.nominations.into_iter().collect(),
            short_of_capacity: from.short_of_capacity,
            unpatchable: from.unpatchable,
            disruption_budgets: from.disruption_budgets.into(),
            reclaims: from.reclaims.into_iter().collect(),
            lives: Arc::new(from.lives.as_ref().map_or_else(Lives::default, Lives::of_saved)),
            gaps: Arc::new(Gaps::of_tables(from.gaps)),
            arrivals: Arc::new(Arrivals::of_sizes(from.arrivals)),
            ..Self::default()
        };
        for namespace in from.namespaces {
            snapshot.put_namespace(namespace);
        }
        snapshot
    }
}

impl Snapshot {
    /// Returns what a plan for these pods alone needs: no other pods, no nodes, no claims, and only objects of their namespaces.
    pub fn reduced_to(&self, pods: &[PodKey]) -> Self {
        let keys: BTreeSet<&PodKey> = pods.iter().collect();
        let namespaces: BTreeSet<&str> = pods.iter().map(PodKey::namespace).collect();
        let is_theirs = |key: &ObjectKey| namespaces.contains(key.namespace.as_str());
        let mut part = Self {
            nodes: Nodes::default(),
            claims: Claims::default(),
            node_drivers: PersistentMap::new(),
            attachments: PersistentMap::new(),
            ..self.clone()
        };
        part.pods.retain(|key, _| keys.contains(key));
        part.workloads.retain(|(_, key), _| is_theirs(key));
        part.gangs.retain(|(_, key), _| is_theirs(key));
        part.pod_groups.retain(|key, _| is_theirs(key));
        part.services.retain(|key, _| is_theirs(key));
        part.quotas.retain(|key, _| is_theirs(key));
        part.budgets.retain(|key, _| is_theirs(key));
        part.volume_claims.retain(|key, _| is_theirs(key));
        part.volumes.retain(|_, volume| volume.claim.as_ref().is_none_or(is_theirs));
        part.nominations.retain(|key, _| keys.contains(key));
        part
    }
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use crate::model::pod::PodSpec;

    use super::*;

    #[test]
    fn a_reduced_snapshot_has_only_its_pods_and_is_the_same_after_it_was_saved() {
        let pod =
            |namespace: &str, name: &str| Pod::waiting(PodKey::new(namespace, name), PodSpec::default());
        let pods = [pod("ml", "bad"), pod("ml", "good"), pod("web", "other")];
        let mut snapshot = Snapshot {
            pods: pods.into_iter().map(|pod| (pod.key.clone(), Arc::new(pod))).collect(),
            unpatchable: ["web".to_owned()].into(),
            ..Snapshot::default()
        };
        let labels = [("team".to_owned(), "a".to_owned())].into();
        snapshot.put_namespace(Namespace { name: "ml".into(), labels, limits: [].into() });
        for namespace in ["ml", "web"] {
            let service = Service { key: ObjectKey::new(namespace, "s"), selector: [].into() };
            snapshot.services.insert(service.key.clone(), Arc::new(service));
        }
        let class = NodeClassRef { group: "g".into(), kind: "K".into(), name: "n".into() };
        snapshot.catalogues.insert(class.clone(), Ok(Arc::new(poolwright_catalog::builtin())));
        snapshot.catalogues.insert(NodeClassRef { name: "m".into(), ..class }, Err("no such class".into()));
        let reduced = snapshot.reduced_to(&[PodKey::new("ml", "bad")]);
        assert_eq!((reduced.pods.len(), reduced.services.len()), (1, 1));
        for one in [snapshot, reduced] {
            assert_eq!(Snapshot::from(SavedSnapshot::from(&one)), one);
        }
    }

    #[test]
    fn what_was_learned_is_the_same_after_it_was_saved() {
        let at = |minutes| Timestamp::UNIX_EPOCH + SignedDuration::from_mins(minutes);
        let mut lives = Lives::prior();
        lives.observe(&["1 GPUs".to_owned()], SignedDuration::from_mins(7), true, at(0));
        let mut running = Pod::waiting(PodKey::new("ml", "runs"), PodSpec::default());
        running.duration.kinds = vec!["1 GPUs".to_owned()];
        running.duration.started = Some(at(0));
        lives.refresh([&running].into_iter(), at(60));
        let (mut gaps, mut arrivals) = (Gaps::default(), Arrivals::default());
        gaps.observe("g5.xlarge/gpu", SignedDuration::from_mins(3), true, at(0));
        arrivals.came("1 nvidia.com/gpu/gpu", (at(0), at(0)), None, 20);
        let class = NodeClassRef { group: "g".into(), kind: "K".into(), name: "n".into() };
        let offering = poolwright_catalog::builtin().offerings()[0].id.clone();
        let snapshot = Snapshot {
            lives: Arc::new(lives),
            gaps: Arc::new(gaps),
            arrivals: Arc::new(arrivals),
            reclaims: [((class, offering), Reclaims { until: at(90), consecutive: 2 })].into(),
            ..Snapshot::default()
        };
        assert_eq!(Snapshot::from(SavedSnapshot::from(&snapshot)), snapshot);
    }

    #[test]
    fn counts_that_nobody_can_have_learned_are_left_out() {
        let kinds = ["1 GPUs".to_owned()];
        let (mut lives, mut gaps) = (Lives::prior(), Gaps::default());
        lives.observe(&kinds, SignedDuration::from_mins(7), true, Timestamp::UNIX_EPOCH);
        gaps.observe("g5.xlarge/gpu", SignedDuration::from_mins(3), true, Timestamp::UNIX_EPOCH);
        lives.refresh(std::iter::empty(), Timestamp::UNIX_EPOCH);
        let snapshot = Snapshot { lives: Arc::new(lives), gaps: Arc::new(gaps), ..Snapshot::default() };
        let mut saved = SavedSnapshot::from(&snapshot);
        assert!(saved.leave_out_unsound().is_empty(), "all of it was learned");
        let lives = saved.lives.as_mut().expect("they are saved");
        // The sum of these counts overflows.
        for tables in [&mut lives.tables, &mut saved.gaps] {
            tables.entry("forged".to_owned()).or_default().ended = vec![u32::MAX, 1];
        }
        lives.running.insert("endless".to_owned(), vec![1; AGES + 1]);
        // More units pay than were counted.
        saved.arrivals.entry("1 nvidia.com/gpu/gpu".to_owned()).or_default().paying = 1;
        assert_eq!(Snapshot::from(saved.clone()), snapshot);
        let told = [
            "durations of pods of kind `forged`",
            "running pods of kind `endless`",
            "idle times of nodes of kind `forged`",
            "arrivals of pods of size `1 nvidia.com/gpu/gpu`",
        ];
        assert_eq!(saved.leave_out_unsound(), told);
        assert!(saved.leave_out_unsound().is_empty(), "they are gone");
    }
}
