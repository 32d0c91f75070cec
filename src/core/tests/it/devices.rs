//! Tests of what is said to pods that ask for GPUs: only instance types with such GPUs are named, and what is advised helps.

use std::collections::BTreeMap;

use poolwright_core::plan::PlanOptions;
use poolwright_core::{DaemonSet, Pod, PodSpec, Snapshot, why};

use crate::kit::*;

/// Returns a cluster with a type with 8 GPUs, a larger type without, and a DaemonSet that takes one core.
fn shop(waiting: Pod) -> Snapshot {
    let kinds = catalogue(vec![
        Kind("gpu8", capacity(190, 500, 8), Some("h100"), &[("a", "10.00")]),
        Kind("huge", capacity(191, 900, 0), None, &[("a", "5.00")]),
    ]);
    let agent = DaemonSet {
        key: object_key("agent"),
        labels: BTreeMap::new(),
        spec: PodSpec { requests: requests(1, 1, 0), ..PodSpec::default() },
    };
    with(with(cluster(kinds, [pool("gpu")]), [agent]), [waiting])
}

fn nearest(snapshot: &Snapshot) -> String {
    let plan = planned(snapshot);
    let lines =
        why::pod(snapshot, at(10), &PlanOptions::default(), &plan, &key("p")).expect("the pod exists");
    lines.into_iter().find(|line| line.starts_with("Nearest")).expect("nothing fits")
}

#[test]
fn a_pod_with_gpus_is_told_of_types_with_gpus_and_of_an_amount_that_fits() {
    let snapshot = shop(pod("p", requests(192, 1, 8)));
    assert_eq!(
        planned(&snapshot).unplaced[0].message,
        "needs 192 cpu in one node; the largest offering of pool `gpu` for it, gpu8, has 189 beside DaemonSets; no instance type in the \
         catalogue with the devices that it asks for has more than 190, so ask for at most 189 beside DaemonSets"
    );
    assert_eq!(bought(&planned(&shop(pod("p", requests(189, 1, 8))))), ["gpu8: p"], "the advice helps");
    assert!(nearest(&snapshot).starts_with("Nearest miss: gpu8/a/on-demand of pool gpu: less than 192 cpu"));
    let plain = planned(&shop(pod("p", requests(200, 1, 0))));
    assert!(plain.unplaced[0].message.contains("huge, has 190"), "{}", plain.unplaced[0].message);
}

#[test]
fn all_that_a_pod_with_gpus_lacks_is_judged_on_types_with_gpus() {
    let snapshot = shop(pod("p", requests(1, 600, 8)));
    let told = &planned(&snapshot).unplaced[0].message;
    assert!(told.contains("for it, gpu8, has 499Gi") && !told.contains("huge"), "{told}");
}

#[test]
fn the_nearest_miss_for_a_part_of_a_gpu_is_a_gpu_that_can_be_cut_into_it() {
    let kinds = catalogue(vec![
        Kind("c7.xlarge", capacity(4, 8, 0), None, &[("a", "0.17")]),
        Kind("g5.xlarge", capacity(4, 16, 1), Some("a10g"), &[("a", "1.00")]),
        Kind("p4d.24xlarge", capacity(96, 1100, 8), Some("a100"), &[("a", "30.00")]),
    ]);
    let part = |name: &str| pod("p", requests(1, 1, 0).with(name, 1));
    let of = |pod: Pod| nearest(&with(cluster(kinds.clone(), [pool("gpu")]), [pod]));
    let cut = of(part("nvidia.com/mig-3g.20gb"));
    assert!(cut.starts_with("Nearest miss: p4d.24xlarge/"), "{cut}");
    assert!(cut.ends_with("To change that: plan with `--sharing mig`."), "{cut}");
    let unknown = of(part("nvidia.com/mig-2g.9gb"));
    assert!(unknown.starts_with("Nearest miss: g5.xlarge/"), "a type with GPUs: {unknown}");
}

#[test]
fn the_nearest_miss_of_a_label_of_another_program_meets_the_label_that_is_advised() {
    let mut wants = pod("p", requests(1, 1, 1));
    wants.spec.node_selector.insert("nvidia.com/gpu.product".into(), "NVIDIA-L4".into());
    assert_eq!(
        nearest(&with(cluster(aws(), [pool("gpu")]), [wants])),
        "Nearest miss: g6.xlarge/a/on-demand of pool gpu: not `nvidia.com/gpu.product=NVIDIA-L4`. To change that: select by \
         `poolwright.dev/gpu-model=l4` instead of `nvidia.com/gpu.product`."
    );
}
