//! Invariants that a test checks from outside while it runs: the rules of the simulator, as far as they can be observed on AWS.
//! The front reports the calls to EC2, and the API server is polled.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use poolwright_api::NodeClaim;
use poolwright_plane::aws::Machine;
use poolwright_plane::trial::Cluster;
use poolwright_terms::InterruptionKind;
use tokio::task::JoinHandle;

use super::cloud::Cloud;
use super::scene::{POOL, id_of};

/// The interval between looks.
const PAUSE: Duration = Duration::from_millis(100);

/// What was seen so far.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// Broken rules, each listed once.
    pub broken: BTreeSet<String>,
    /// The interruption recorded by each claim, by provider id.
    pub interrupted: BTreeMap<String, (InterruptionKind, Option<Timestamp>)>,
    /// The largest number of instances that ran at a time.
    pub most: usize,
    /// All claims that ever existed.
    pub claims: BTreeSet<String>,
    /// The number of looks.
    pub looks: usize,
    /// The provider id of each claim that ever had one.
    had: BTreeMap<String, String>,
}

/// A background check of the rules, which stops when it is dropped.
pub struct Rules {
    seen: Arc<Mutex<Seen>>,
    task: JoinHandle<()>,
}

impl Drop for Rules {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Rules {
    /// Starts to check the rules. `limit` is the largest number of instances allowed at a time.
    pub fn watch(cloud: Arc<Cloud>, cluster: &Cluster, namespace: &str, limit: usize) -> Self {
        let (seen, namespace) = (Arc::<Mutex<Seen>>::default(), namespace.to_owned());
        let (shared, cluster) = (Arc::clone(&seen), Cluster::new(cluster.client.clone()));
        let task = tokio::spawn(async move {
            loop {
                // The order matters: a claim missing from the list was gone before the instances were read, and the pods are read
                // last.
                if let Ok(claims) = cluster.claims(POOL).await {
                    let machines = cloud.front.launches();
                    if let Ok(pods) = cluster.pods(&namespace).await {
                        let mut seen = shared.lock().unwrap_or_else(PoisonError::into_inner);
                        seen.look(&claims, &machines, &pods, limit);
                    }
                }
                tokio::time::sleep(PAUSE).await;
            }
        });
        Self { seen, task }
    }

    /// Returns what was seen so far.
    pub fn seen(&self) -> Seen {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Seen {
    fn look(&mut self, claims: &[NodeClaim], machines: &[Machine], pods: &[Pod], limit: usize) {
        self.looks += 1;
        let running = machines.iter().filter(|machine| !machine.ended).count();
        self.most = self.most.max(running);
        if running > limit {
            self.broken.insert(format!("the pool's limit is {limit}, and {running} instances run"));
        }
        self.once(machines);
        self.work_kept(machines, pods);
        let there: BTreeSet<String> = claims.iter().map(ResourceExt::name_any).collect();
        self.claims.extend(there.iter().cloned());
        for (claim, id) in &self.had {
            let runs = machines.iter().any(|machine| machine.id == id_of(id) && !machine.ended);
            if runs && !there.contains(claim) {
                self.broken.insert(format!("claim {claim} is gone, and {id} runs"));
            }
        }
        for claim in claims {
            self.says(claim);
        }
    }

    /// Checks that no claim ever has two instances.
    fn once(&mut self, machines: &[Machine]) {
        let mut by_claim: BTreeMap<&str, &str> = BTreeMap::new();
        for machine in machines {
            let Some(claim) = &machine.claim else { continue };
            if let Some(other) = by_claim.insert(claim, &machine.id) {
                self.broken.insert(format!("claim {claim} has {other} and {}", machine.id));
            }
        }
    }

    /// Checks that no instance is terminated while it has pods that are not being deleted.
    fn work_kept(&mut self, machines: &[Machine], pods: &[Pod]) {
        let ended: BTreeSet<String> = machines
            .iter()
            .filter(|machine| machine.ended)
            .map(|machine| format!("ip-{}", machine.id))
            .collect();
        for pod in pods {
            let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_ref());
            if let Some(node) = node.filter(|node| ended.contains(*node))
                && pod.metadata.deletion_timestamp.is_none()
            {
                self.broken.insert(format!("{node} is given back while {} is on it", pod.name_any()));
            }
        }
    }

    /// Checks that every instance has a known price, and that no deadline is postponed.
    fn says(&mut self, claim: &NodeClaim) {
        let Some(status) = &claim.status else { return };
        let (name, Some(id)) = (claim.name_any(), &status.provider_id) else { return };
        self.had.insert(name.clone(), id.clone());
        if status.price.is_none() {
            self.broken.insert(format!("claim {name} has {id}, and no price"));
        }
        let Some(told) = &status.interruption else { return };
        let now = (told.kind, told.deadline.as_ref().map(|at| at.0));
        if let Some((kind, deadline)) = self.interrupted.insert(id.clone(), now) {
            let put_off = deadline.is_some_and(|before| now.1.is_none_or(|after| after > before));
            if put_off || now.0 < kind {
                self.broken.insert(format!("{name} said {kind:?} by {deadline:?}, and then {now:?}"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn machine(id: &str, claim: &str, ended: bool) -> Machine {
        let (instance_type, zone) = ("g5.xlarge".to_owned(), "us-east-1a".to_owned());
        Machine { id: id.to_owned(), instance_type, zone, claim: Some(claim.to_owned()), ended }
    }

    fn claim(name: &str, id: &str, interruption: Option<&str>) -> NodeClaim {
        let interruption = interruption.map(|deadline| {
            json!({"kind": "Reclaim", "noticed": "2026-11-23T12:00:00Z", "deadline": deadline, "message": "it goes"})
        });
        let status = json!({"providerID": format!("aws:///us-east-1a/{id}"), "interruption": interruption,
            "price": {"usdPerHour": "1", "source": "list"}});
        let spec = json!({"nodePool": "gpu", "nodeClassRef": {"kind": "EC2NodeClass", "name": "gpu", "group": "poolwright.dev"},
            "offerings": [], "pods": [], "reason": "because"});
        let object = json!({"metadata": {"name": name}, "spec": spec, "status": status});
        serde_json::from_value(object).expect("a claim")
    }

    fn pod(node: &str) -> Pod {
        let object = json!({"metadata": {"name": "train"}, "spec": {"nodeName": node, "containers": []}});
        serde_json::from_value(object).expect("a pod")
    }

    #[test]
    fn the_rules_report_every_violation_and_nothing_else() {
        let mut seen = Seen::default();
        let soon = Some("2026-11-23T12:02:00Z");
        seen.look(&[claim("a", "i-1", soon)], &[machine("i-1", "a", false)], &[pod("ip-i-1")], 1);
        assert!(seen.broken.is_empty() && seen.most == 1, "{seen:?}");
        seen.look(&[claim("a", "i-1", Some("2026-11-23T12:03:00Z"))], &[machine("i-1", "a", false)], &[], 1);
        seen.look(
            &[],
            &[machine("i-1", "a", false), machine("i-2", "b", false), machine("i-3", "b", true)],
            &[pod("ip-i-3")],
            1,
        );
        let broken: Vec<&str> = seen.broken.iter().map(String::as_str).collect();
        let words = [
            "said Reclaim by",
            "claim a is gone",
            "claim b has i-2 and i-3",
            "given back while train",
            "limit is 1",
        ];
        for one in words {
            assert!(broken.iter().any(|broken| broken.contains(one)), "{one} is not in {broken:?}");
        }
        assert_eq!(broken.len(), words.len(), "{broken:?}");
    }
}
