//! `-n`: which pod the user means, and plans for the pods of one namespace.

use std::collections::BTreeSet;
use std::sync::Arc;

use poolwright_api::meant;
use poolwright_core::{PodKey, PodPhase, Workload};

use super::missing::Origin;
use super::{Input, PodNames};
use crate::args::Explainable;
use crate::exit::Failure;
use crate::market::some;

impl Input {
    /// Returns the key of the pod that the user wrote: NAME or NAMESPACE/NAME. `flag` is the value of -n.
    ///
    /// # Errors
    ///
    /// The name and the flag contradict each other.
    pub fn pod_key(&self, written: &str, flag: Option<&str>) -> Result<PodKey, Failure> {
        if self.names == PodNames::Bare {
            return Ok(PodKey::new("", Explainable::Pod.without_kind(written)));
        }
        let parsed = written.parse::<PodKey>().ok().filter(|_| written.contains('/'));
        // `pod/x` is a pod x, unless a namespace has that name.
        let name = match &parsed {
            Some(key) if self.snapshot.pods.contains_key(key) => written,
            _ => Explainable::Pod.without_kind(written),
        };
        let Some((namespace, bare)) = name.split_once('/') else {
            let key = format!("{}/{name}", self.namespace);
            return Ok(key.parse().unwrap_or_else(|_| PodKey::new(self.namespace.as_str(), name)));
        };
        if let Some(flag) = flag.filter(|flag| *flag != namespace) {
            return Err(Failure::bad_input(format!(
                "-n {flag}: {name} is a pod of the namespace {namespace}; leave out -n, or write {bare} -n {flag}"
            )));
        }
        Ok(name.parse().unwrap_or_else(|_| PodKey::new(namespace, bare)))
    }

    /// Leaves out the pods without a node of all other namespaces, and adds a note about them.
    ///
    /// # Errors
    ///
    /// There is no such namespace.
    pub fn narrow_to(&mut self, namespace: &str) -> Result<(), Failure> {
        let known = self.namespaces();
        if !known.contains(namespace) {
            let next = match meant(namespace, known.iter().map(String::as_str)) {
                Some(known) => format!("did you mean {known}?"),
                None => format!("choose from {}", some(&known.iter().map(String::as_str).collect())),
            };
            let place = match self.origin {
                Origin::Cluster => "the cluster has no namespace",
                Origin::Files | Origin::Trace => "the files have nothing in the namespace",
            };
            return Err(Failure::bad_input(format!("-n {namespace}: {place} `{namespace}`; {next}")));
        }
        let snapshot = &mut self.snapshot;
        let mut others = 0;
        snapshot.pods.retain(|key, pod| {
            let stays = key.namespace() == namespace
                || matches!(pod.phase, PodPhase::Bound { .. } | PodPhase::Finished);
            others += usize::from(!stays);
            stays
        });
        let makers = std::mem::take(&mut snapshot.workloads);
        snapshot.workloads = makers
            .iter()
            .map(|(key, workload)| {
                let theirs = key.1.namespace != namespace;
                let workload = if theirs { Arc::new(without_demand(workload)) } else { workload.clone() };
                (key.clone(), workload)
            })
            .collect();
        snapshot.gangs.retain(|key, _| key.1.namespace == namespace);
        self.refused.retain(|refused| refused.namespace == namespace);
        if others > 0 {
            let pods = if others == 1 { "1 pod".to_owned() } else { format!("{others} pods") };
            self.notes.push(format!(
                "-n {namespace}: {pods} of other namespaces without a node are left out of this plan; the controller plans all pods together"
            ));
        }
        Ok(())
    }

    /// Returns the namespaces of the cluster, and those that objects of files name.
    fn namespaces(&self) -> BTreeSet<String> {
        let snapshot = &self.snapshot;
        let mut all: BTreeSet<String> = snapshot.namespaces.keys().cloned().collect();
        all.extend(snapshot.pods.keys().map(|key| key.namespace().to_owned()));
        all.extend(snapshot.workloads.keys().map(|(_, key)| key.namespace.clone()));
        all.extend(snapshot.gangs.keys().map(|(_, key)| key.namespace.clone()));
        all.extend(self.refused.iter().map(|refused| refused.namespace.clone()));
        all
    }
}

fn without_demand(workload: &Workload) -> Workload {
    workload.clone().without_demand()
}
