//! Tests of GPU layouts.

use poolwright_catalog::{MigGeometry, MigProfile};
use proptest::prelude::*;

use super::*;
use crate::gpu::Room;
use crate::problem::{GpuMode, GpuRequest, GpuState, Gpus};
use crate::solution::{GpuLayout, MigInstance};

fn wants(name: &str, count: u32, gpu: GpuRequest) -> crate::problem::PodClass {
    crate::problem::PodClass { gpu: Some(gpu), ..class(name, [1, 0, 0], count, &[0]) }
}

/// Three shared GPUs: two with pods that share (two and one), one given whole.
fn shared() -> (Problem, Solution) {
    let mut problem = problem(
        vec![
            wants("half", 3, GpuRequest::Share { units: 500, memory_mib: 8_000 }),
            wants("whole", 1, GpuRequest::Whole(1)),
            class("plain", [1, 0, 0], 1, &[0]),
        ],
        vec![candidate("g", 100, [9, 9, 9])],
    );
    problem.candidates[0].gpus = Some(Gpus { count: 3, memory_mib: 16_000, mode: GpuMode::Shared });
    let layout = vec![GpuLayout::Shared(vec![(0, 2)]), GpuLayout::Shared(vec![(0, 1)]), GpuLayout::Whole(1)];
    let solution = Solution {
        new_nodes: vec![NewNodes {
            candidate: 0,
            pods: vec![(0, 3), (1, 1), (2, 1)],
            count: 1,
            gpus: layout,
        }],
        cost: UsdPerHour::from_micros(100),
        ..Solution::default()
    };
    (problem, solution)
}

fn new(sentences: &[&str]) -> Vec<String> {
    sentences.iter().map(|rest| format!("new node `g` (group 0): {rest}")).collect()
}

#[test]
fn shares_add_up_within_one_gpu() {
    let got = spoilt(shared(), |problem, _| {
        problem.classes[0].gpu = Some(GpuRequest::Share { units: 501, memory_mib: 8_001 });
    });
    assert_eq!(
        got,
        new(&[
            "the pods on GPU 0 take 1002 thousandths of it, but 1000 are free",
            "the pods on GPU 0 take 16002 MiB of it, but 16000 are free"
        ])
    );
}

#[test]
fn layouts_hold_what_the_pods_take_and_as_many_gpus_as_there_are() {
    let layout = |solution: &mut Solution, gpu: usize, layout| solution.new_nodes[0].gpus[gpu] = layout;
    let got = spoilt(shared(), |_, solution| layout(solution, 2, GpuLayout::Idle));
    assert_eq!(
        got,
        new(&["0 GPUs, shares or instances are laid out for class `whole`, but its pods take 1"])
    );
    let got = spoilt(shared(), |_, solution| layout(solution, 1, GpuLayout::Whole(1)));
    assert_eq!(
        got,
        new(&[
            "2 GPUs, shares or instances are laid out for class `half`, but its pods take 3",
            "2 GPUs, shares or instances are laid out for class `whole`, but its pods take 1",
        ])
    );
    let got = spoilt(shared(), |_, solution| layout(solution, 1, GpuLayout::Shared(vec![(0, 1), (2, 1)])));
    assert_eq!(
        got,
        new(&[
            "GPU 1 cannot be used by pods of class `plain`: they do not want a share",
            "1 GPUs, shares or instances are laid out for class `plain`, but its pods take 0"
        ])
    );
    let got = spoilt(shared(), |_, solution| solution.new_nodes[0].gpus.push(GpuLayout::Idle));
    assert_eq!(got, new(&["4 GPUs are laid out, but it has 3"]));
    let got = spoilt(shared(), |_, solution| layout(solution, 1, GpuLayout::Shared(Vec::new())));
    assert_eq!(got, ["newNodes entry 0 is empty: nothing may be bought or left out for zero pods"]);
}

#[test]
fn pods_that_want_of_a_gpu_are_not_on_nodes_without() {
    let got = spoilt(shared(), |problem, solution| {
        problem.candidates[0].gpus = None;
        solution.new_nodes[0].gpus.clear();
    });
    assert_eq!(
        got,
        new(&[
            "pods of class `half` want of its GPUs, but it has none that are shared or cut",
            "pods of class `whole` want of its GPUs, but it has none that are shared or cut"
        ])
    );
}

/// One GPU: a 3g on the right, a 2g and two 1g of one pod on the left; another whole.
fn cut() -> (Problem, Solution) {
    let (mut problem, mut solution) = shared();
    let mig = |profile, count| GpuRequest::Mig { profile, count };
    problem.classes = vec![
        wants("three", 1, mig(MigProfile::G3, 1)),
        wants("two", 1, mig(MigProfile::G2, 1)),
        wants("ones", 1, mig(MigProfile::G1, 2)),
        wants("whole", 1, GpuRequest::Whole(1)),
    ];
    let geometry = MigGeometry::Seven;
    problem.candidates[0].gpus =
        Some(Gpus { count: 2, memory_mib: 80_000, mode: GpuMode::Mig { geometry, mixed: true } });
    let at = |start, profile, class| MigInstance { start, profile, class };
    solution.new_nodes[0].pods = vec![(0, 1), (1, 1), (2, 1), (3, 1)];
    solution.new_nodes[0].gpus = vec![
        GpuLayout::Mig(vec![
            at(0, MigProfile::G2, 1),
            at(2, MigProfile::G1, 2),
            at(3, MigProfile::G1, 2),
            at(4, MigProfile::G3, 0),
        ]),
        GpuLayout::Whole(3),
    ];
    (problem, solution)
}

fn instances(solution: &mut Solution) -> &mut Vec<MigInstance> {
    let GpuLayout::Mig(instances) = &mut solution.new_nodes[0].gpus[0] else { panic!("GPU 0 is cut") };
    instances
}

#[test]
fn instances_start_where_the_table_allows_them_and_do_not_overlap() {
    let got = spoilt(cut(), |_, solution| instances(solution)[3].start = 5);
    assert_eq!(got, new(&["no instance of 3g can start at memory slice 5 of GPU 0"]));
    let got = spoilt(cut(), |_, solution| instances(solution)[2].start = 5);
    assert_eq!(got, ["newNodes entry 0 is out of order or a duplicate"]);
    let got = spoilt(cut(), |_, solution| {
        instances(solution)[2].start = 5;
        instances(solution).swap(2, 3);
    });
    assert_eq!(got, new(&["the instance at memory slice 5 of GPU 0 lies over another"]));
    let got = spoilt(cut(), |_, solution| instances(solution)[0].profile = MigProfile::G1Double);
    assert_eq!(
        got,
        new(&["GPU 0 cannot be used by pods of class `two`: they want no instance of that profile"])
    );
}

#[test]
fn a_gpu_is_given_whole_only_where_gpus_may_differ() {
    let got = spoilt(cut(), |problem, _| {
        let mode = GpuMode::Mig { geometry: MigGeometry::Seven, mixed: false };
        problem.candidates[0].gpus = Some(Gpus { count: 2, memory_mib: 80_000, mode });
    });
    assert_eq!(
        got,
        new(&["GPU 1 cannot be used by pods of class `whole`: it is cut, and may not be given whole"])
    );
    let got = spoilt(cut(), |problem, _| {
        problem.candidates[0].gpus = Some(Gpus { count: 2, memory_mib: 80_000, mode: GpuMode::Shared });
    });
    assert_eq!(got.len(), 4, "each instance: {got:?}");
    assert_eq!(got[0], new(&["GPU 0 cannot be used by pods of class `two`: it is not cut"])[0]);
}

/// The same pods on an existing node where the right half of GPU 0 is free, and GPU 2 is busy.
fn occupied() -> (Problem, Solution) {
    let (mut problem, mut solution) = cut();
    let mut group = solution.new_nodes.remove(0);
    solution.cost = UsdPerHour::ZERO;
    let GpuLayout::Mig(instances) = &mut group.gpus[0] else { panic!("GPU 0 is cut") };
    instances.remove(0);
    group.gpus.push(GpuLayout::Idle);
    problem.classes[1].count = 0;
    group.pods.remove(1);
    problem.classes.iter_mut().for_each(|class| class.existing = vec![0]);
    let geometry = MigGeometry::Seven;
    problem.existing = vec![ExistingNode {
        name: "old".into(),
        free: vec![9, 9, 9],
        gpus: vec![
            GpuState::Mig { geometry, mixed: true, in_use: vec![(MigProfile::G2, 0)] },
            GpuState::Mig { geometry, mixed: true, in_use: Vec::new() },
            GpuState::Busy,
        ],
        ..ExistingNode::default()
    }];
    solution.on_existing = vec![ExistingUse { node: 0, pods: group.pods, gpus: group.gpus }];
    (problem, solution)
}

#[test]
fn instances_in_use_stay_where_they_are() {
    let used = |problem: &mut Problem, state| problem.existing[0].gpus[0] = state;
    let geometry = MigGeometry::Seven;
    let got = spoilt(occupied(), |problem, _| {
        used(problem, GpuState::Mig { geometry, mixed: true, in_use: vec![(MigProfile::G2, 2)] });
    });
    assert_eq!(
        got,
        [
            "existing node `old`: the instance at memory slice 2 of GPU 0 lies over another",
            "existing node `old`: the instance at memory slice 3 of GPU 0 lies over another"
        ]
    );
    let got = spoilt(occupied(), |problem, solution| {
        solution.on_existing[0].gpus.swap(0, 1);
        problem.existing[0].gpus[1] = GpuState::Busy;
    });
    assert_eq!(
        got,
        [
            "existing node `old`: GPU 0 cannot be used by pods of class `whole`: instances on it are in use",
            "existing node `old`: GPU 1 cannot be used by pods of class `ones`: it is not cut",
            "existing node `old`: GPU 1 cannot be used by pods of class `ones`: it is not cut",
            "existing node `old`: GPU 1 cannot be used by pods of class `three`: it is not cut",
        ]
    );
}

#[test]
fn a_gpu_that_is_shared_already_has_what_is_left() {
    let (mut problem, mut solution) = shared();
    let mut group = solution.new_nodes.remove(0);
    problem.classes.iter_mut().for_each(|class| class.existing = vec![0]);
    solution.cost = UsdPerHour::ZERO;
    let state =
        |units_used, memory_used_mib| GpuState::Shared { units_used, memory_used_mib, memory_mib: 16_000 };
    problem.existing = vec![ExistingNode {
        name: "old".into(),
        free: vec![9, 9, 9],
        gpus: vec![state(0, 0), state(500, 8_000), state(0, 0)],
        ..ExistingNode::default()
    }];
    solution.on_existing =
        vec![ExistingUse { node: 0, pods: group.pods, gpus: std::mem::take(&mut group.gpus) }];
    let got = spoilt((problem, solution), |problem, _| {
        problem.existing[0].gpus[1] = state(501, 8_001);
        problem.existing[0].gpus[2] = state(1, 0);
    });
    assert_eq!(
        got,
        [
            "existing node `old`: the pods on GPU 1 take 500 thousandths of it, but 499 are free",
            "existing node `old`: the pods on GPU 1 take 8000 MiB of it, but 7999 are free",
            "existing node `old`: GPU 2 cannot be used by pods of class `whole`: a part of it is in use"
        ]
    );
}

#[test]
fn a_node_could_be_another_only_if_its_gpu_pods_can_be_laid_out_there() {
    let packs = |problem: &Problem, solution: &Solution, count, mode| {
        let gpus = Gpus { count, memory_mib: 16_000, mode };
        packing::packs(problem, &solution.new_nodes[0].pods, Some(&gpus))
    };
    let (problem, solution) = shared();
    assert!(packs(&problem, &solution, 3, GpuMode::Shared));
    assert!(!packs(&problem, &solution, 2, GpuMode::Shared));
    assert!(!packing::packs(&problem, &solution.new_nodes[0].pods, None));
    let (problem, solution) = cut();
    let mig = |geometry, mixed| GpuMode::Mig { geometry, mixed };
    assert!(packs(&problem, &solution, 2, mig(MigGeometry::Seven, true)));
    assert!(!packs(&problem, &solution, 1, mig(MigGeometry::Seven, true)));
    assert!(!packs(&problem, &solution, 2, mig(MigGeometry::Seven, false)));
    assert!(!packs(&problem, &solution, 2, mig(MigGeometry::Four, true)));
    assert!(!packs(&problem, &solution, 2, GpuMode::Shared));
}

#[test]
fn pods_that_the_own_search_of_the_checker_gives_up_on_are_believed_to_fit_only_with_a_layout() {
    let share = |pod: u32| wants("pod", 1, GpuRequest::Share { units: 20 + pod * 211 % 361, memory_mib: 0 });
    let problem = problem((0..36).map(share).collect(), Vec::new());
    let pods: Vec<(u32, u32)> = (0..36).map(|class| (class, 1)).collect();
    let packs = |count| packing::packs(&problem, &pods, Some(&memory(count, 0)));
    // The checker's own search does not find the places on seven GPUs. The solver's does.
    assert!(packs(7));
    assert!(!packs(6));
}

/// Shared GPUs with this memory.
fn memory(count: u32, memory_mib: u64) -> Gpus {
    Gpus { count, memory_mib, mode: GpuMode::Shared }
}

/// A pod for each of these sizes, and 2,050 without memory. These are more pods than the solver searches a layout for.
fn with_many_others(sizes: &[u64]) -> (Problem, Vec<(u32, u32)>) {
    let share = |memory_mib, count| wants("pods", count, GpuRequest::Share { units: 1, memory_mib });
    let mut classes: Vec<_> = sizes.iter().map(|size| share(*size, 1)).collect();
    classes.push(share(0, 2050));
    let pods = classes.iter().enumerate().map(|(at, class)| (at as u32, class.count)).collect();
    (problem(classes, Vec::new()), pods)
}

#[test]
fn the_checker_needs_no_layout_to_decide_where_its_first_tries_lead_nowhere() {
    let packing = |small: usize, gpus| {
        let (problem, pods) = with_many_others(&[vec![280; 7], vec![220; small]].concat());
        packing::packing(&problem, &pods, Some(&memory(gpus, 1000)), &[])
    };
    assert_eq!(packing(21, 7), packing::Packing::Fits);
    assert_eq!(packing(22, 7), packing::Packing::Exceeds);
    assert_eq!(packing(21, 6), packing::Packing::Exceeds);
}

#[test]
fn the_layout_of_a_node_tells_that_its_pods_fit_another_with_the_same_gpus() {
    // Three pods fill each GPU. No search finds which.
    let three = |gpu: u64| {
        let (one, other) = (8_000 + gpu * 7919 % 4001, 8_000 + gpu * 6101 % 3989);
        [one, other, 30_000 - one - other]
    };
    let (problem, pods) = with_many_others(&(0..64).flat_map(three).collect::<Vec<_>>());
    let others = |gpu: u32| if gpu == 0 { 34 } else { 32 };
    let stated = |gpu: u32| {
        GpuLayout::Shared(vec![(3 * gpu, 1), (3 * gpu + 1, 1), (3 * gpu + 2, 1), (192, others(gpu))])
    };
    let stated: Vec<GpuLayout> = (0..64).map(stated).collect();
    let packing = |gpus: Gpus, stated: &[GpuLayout]| packing::packing(&problem, &pods, Some(&gpus), stated);
    assert_eq!(packing(memory(64, 30_000), &[]), packing::Packing::Undecided);
    assert_eq!(packing(memory(64, 30_000), &stated), packing::Packing::Fits);
    assert_eq!(packing(memory(64, 29_999), &stated), packing::Packing::Exceeds, "it holds there no more");
    assert_eq!(packing(memory(63, 30_000), &stated), packing::Packing::Exceeds);
}

#[test]
fn a_checker_that_gives_up_says_so_and_does_not_call_the_plan_wrong() {
    // Three odd sizes take at most 199 of 200. So the pods do not fit ten GPUs, but only their sum would show it.
    let sizes: Vec<u64> = (53..80).step_by(2).chain((53..80).step_by(2)).chain([71, 73]).collect();
    let (mut problem, pods) = with_many_others(&sizes);
    problem.classes.iter_mut().for_each(|class| class.candidates = vec![0, 1]);
    problem.candidates = vec![candidate("g", 100, [9_999; 3]), candidate("h", 200, [9_999; 3])];
    for (value, candidate) in problem.candidates.iter_mut().enumerate() {
        candidate.gpus = Some(memory(10, 300));
        candidate.domains = vec![(0, value as u32)];
    }
    problem.topologies =
        vec![crate::problem::Topology { name: "type".into(), values: vec!["g".into(), "h".into()] }];
    problem.flexibility = vec![crate::problem::Flexibility {
        name: "two types".into(),
        candidates: vec![0, 1],
        topology: 0,
        at_least: 2,
    }];
    let on = |gpu: u32| GpuLayout::Shared(vec![(3 * gpu, 1), (3 * gpu + 1, 1), (3 * gpu + 2, 1), (30, 205)]);
    let gpus = (0..10).map(on).collect();
    let solution = Solution {
        new_nodes: vec![NewNodes { candidate: 0, pods, count: 1, gpus }],
        cost: UsdPerHour::from_micros(100),
        ..Solution::default()
    };
    let got = spoilt((problem, solution), |problem, _| problem.candidates[1].gpus = Some(memory(10, 200)));
    assert_eq!(
        got,
        [
            "the checker could not decide in its steps whether new node `g` (group 0) could be of the 2 values of `type` that flexibility \
             `two types` asks for: 1 are known, and the GPUs of 1 more may hold its pods"
        ]
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_checker_and_the_solver_agree_on_the_instances_that_fit(
        counts in proptest::collection::vec(0..5u32, 6),
        count in 1..5u32,
        seven in any::<bool>(),
    ) {
        let geometry = if seven { MigGeometry::Seven } else { MigGeometry::SevenInPairs };
        let gpus = Gpus { count, memory_mib: 0, mode: GpuMode::Mig { geometry, mixed: true } };
        let mig = |profile| GpuRequest::Mig { profile, count: 1 };
        let wished: Vec<(MigProfile, u32)> = MigProfile::ALL.into_iter().zip(counts).filter(|(_, count)| *count > 0).collect();
        let classes = wished.iter().map(|(profile, count)| wants("pods", *count, mig(*profile))).collect();
        let pods: Vec<(u32, u32)> = wished.iter().enumerate().map(|(at, (_, count))| (at as u32, *count)).collect();
        let content: Vec<(GpuRequest, u64)> = wished.iter().map(|(profile, count)| (mig(*profile), u64::from(*count))).collect();
        let expected = if Room::of_new(&gpus).holds(&content) { packing::Packing::Fits } else { packing::Packing::Exceeds };
        prop_assert_eq!(packing::packing(&problem(classes, Vec::new()), &pods, Some(&gpus), &[]), expected);
    }
}
