//! Plans objects with a pool that may buy everything. All tests share one catalogue: `small` (4 cores, 16 GiB) and `large` (16
//! cores, 64 GiB) in zones a, b and c, `gpu` (8 cores, 64 GiB, 4 x A10G) in a and b, and huge pages on `huge` in c.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use poolwright_catalog::offering::CatalogueOrigin;
use poolwright_catalog::{
    Arch, Catalogue, Gpu, InstanceType, Offering, OfferingId, Price, PriceSource, Quote, ResourceList,
};
use poolwright_core::plan::{NeverStop, PlanOptions, plan};
use poolwright_core::{Namespace, PodKey, PodPhase, Snapshot};
use poolwright_intake::manifest::parse;
use poolwright_terms::{CapacityType, NodeClassRef};
use serde_json::{Value, json};

/// Name, cores, GiB of memory, GPUs, GiB of huge pages, zones, dollars per hour.
type Sold = (&'static str, u64, u64, u64, u64, &'static [&'static str], &'static str);

fn catalogue() -> Catalogue {
    let kinds: [Sold; 4] = [
        ("small", 4, 16, 0, 0, &["a", "b", "c"], "0.20"),
        ("large", 16, 64, 0, 0, &["a", "b", "c"], "0.80"),
        ("gpu", 8, 64, 4, 0, &["a", "b"], "4.00"),
        ("huge", 4, 16, 0, 1, &["c"], "0.30"),
    ];
    let (mut types, mut offerings) = (Vec::new(), Vec::new());
    for (name, cpu, memory, gpus, pages, zones, price) in kinds {
        for zone in zones {
            let usd_per_hour = price.parse().expect("an amount");
            offerings.push(Offering {
                id: OfferingId {
                    instance_type: name.into(),
                    zone: (*zone).into(),
                    capacity_type: CapacityType::OnDemand,
                },
                region: Some("r".into()),
                price: Price::Known(Quote { usd_per_hour, source: PriceSource::new("test"), as_of: None }),
                available: None,
                interruptions: None,
                notice: None,
            });
        }
        let allocatable = ResourceList::new()
            .with("cpu", cpu * 1000)
            .with("memory", memory << 30)
            .with("ephemeral-storage", 100 << 30)
            .with("nvidia.com/gpu", gpus)
            .with("hugepages-2Mi", pages << 30)
            .with("pods", 110);
        types.push(InstanceType {
            name: name.into(),
            provider: "test".into(),
            arch: Arch::Amd64,
            gpu: (gpus > 0).then(|| Gpu { model: "a10g".into(), count: gpus as u32, memory_mib: None }),
            allocatable,
        });
    }
    Catalogue::new(CatalogueOrigin { source: "test".into(), as_of: None }, types, offerings)
}

/// Returns the plan for these objects with a pool that may buy everything: `type in zone: pods`, then `left: pod (reason)`.
pub fn answer(objects: &[Value]) -> Vec<String> {
    let pool = json!({"apiVersion": "poolwright.dev/v1alpha1", "kind": "NodePool", "metadata": {"name": "any", "uid": "1"},
        "spec": {"template": {"metadata": {"labels": {"disktype": "ssd"}}, "spec": {"nodeClassRef":
            {"group": "poolwright.dev", "kind": "KwokNodeClass", "name": "default"}}}}});
    let items: Vec<Value> = objects.iter().cloned().chain([pool]).collect();
    let text = json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string();
    let manifest = parse("test", &text).expect("the documentation's objects can be read");
    let mut snapshot =
        Snapshot { namespaces: Namespace::labels_by_name(manifest.namespaces), ..Snapshot::default() };
    let class =
        NodeClassRef { group: "poolwright.dev".into(), kind: "KwokNodeClass".into(), name: "default".into() };
    snapshot.catalogues.insert(class, Ok(Arc::new(catalogue())));
    for pod in manifest.pods {
        snapshot.pods.insert(pod.key.clone(), Arc::new(pod));
    }
    for claim in manifest.made_claims.into_iter().chain(manifest.volume_claims) {
        snapshot.volume_claims.insert(claim.key.clone(), Arc::new(claim));
    }
    for volume in manifest.volumes {
        snapshot.volumes.insert(volume.name.clone(), Arc::new(volume));
    }
    for class in manifest.storage_classes {
        snapshot.storage_classes.insert(class.name.clone(), Arc::new(class));
    }
    for node in manifest.nodes {
        snapshot.nodes.insert(node.name.clone(), Arc::new(node));
    }
    for set in manifest.daemonsets {
        snapshot.daemonsets.insert(set.key.clone(), Arc::new(set));
    }
    for group in manifest.pod_groups {
        snapshot.pod_groups.insert(group.key.clone(), Arc::new(group));
    }
    for pool in manifest.pools {
        snapshot.pools.insert(pool.name.clone(), Arc::new(pool));
    }
    let options = PlanOptions { include_waiting: true, ..PlanOptions::default() };
    let made = plan(&snapshot, jiff::Timestamp::UNIX_EPOCH, &options, &mut NeverStop);
    assert_eq!(made.refused, Vec::<String>::new(), "the plan passes its checks");
    let mut lines: Vec<String> = made
        .claims
        .iter()
        .map(|claim| {
            let pods: Vec<_> = claim.planned_pods.iter().map(PodKey::name).collect();
            format!("{} in {}: {}", claim.instance_type(), claim.offering().zone, pods.join(" "))
        })
        .collect();
    lines.sort();
    let mut there: BTreeMap<String, BTreeSet<Cow<'_, str>>> = BTreeMap::new();
    for placement in &made.placements {
        there.entry(placement.target.to_string()).or_default().insert(placement.pod.name());
    }
    lines.extend(
        there
            .iter()
            .map(|(node, pods)| format!("{node}: {}", pods.iter().cloned().collect::<Vec<_>>().join(" "))),
    );
    let waits = |key| snapshot.pods.get(key).is_some_and(|pod| !matches!(pod.phase, PodPhase::Bound { .. }));
    lines.extend(
        made.unplaced
            .iter()
            .filter(|left| waits(&left.pod))
            .map(|left| format!("left: {} ({})", left.pod.name(), left.reason.as_str())),
    );
    lines
}

pub fn pod(name: &str, spec: Value) -> Value {
    let mut whole = json!({"containers": [{"name": "main", "image": "nginx"}]});
    for (field, value) in spec.as_object().expect("fields of a spec") {
        whole[field] = value.clone();
    }
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"foo": "bar"}}, "spec": whole})
}

pub fn requests(amounts: &Value) -> Value {
    json!([{"name": "main", "image": "nginx", "resources": {"requests": amounts, "limits": amounts}}])
}

pub fn node(name: &str, zone: &str, labels: Value) -> Value {
    let mut all = json!({"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": zone, "zone": zone, "node": name});
    for (key, value) in labels.as_object().expect("labels") {
        all[key] = value.clone();
    }
    json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": all},
        "status": {"allocatable": {"cpu": "2", "memory": "4Gi", "pods": "10"},
            "conditions": [{"type": "Ready", "status": "True"}]}})
}

pub fn running(name: &str, on: &str) -> Value {
    pod(name, json!({"nodeName": on}))
}
