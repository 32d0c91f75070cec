use proptest::prelude::*;

use super::*;
use crate::NeverStop;
use crate::problem::{ExistingNode, GpuRequest, GpuState, PodClass, Problem};
use crate::testing::{candidate, class, problem, undecided_on_existing};

/// A signal that always asks to stop.
struct Stop;

impl crate::StopSignal for Stop {
    fn should_stop(&mut self) -> bool {
        true
    }
}

/// Returns the worth of the best pattern, by trying all.
fn brute(model: &Model, pi: &[u64], demand: &[u64], room: &mut [u64], at: usize) -> u64 {
    let Some(class) = model.classes.get(at) else { return 0 };
    let mut best = brute(model, pi, demand, room, at + 1);
    let mut taken = 0;
    while taken < demand[at] && class.requests.iter().zip(room.iter()).all(|(request, room)| request <= room)
    {
        room.iter_mut().zip(&class.requests).for_each(|(room, request)| *room -= request);
        taken += 1;
        best = best.max(pi[at] * taken + brute(model, pi, demand, room, at + 1));
    }
    room.iter_mut().zip(&class.requests).for_each(|(room, request)| *room += request * taken);
    best
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_a_node_can_be_worth_is_never_below_the_best_content(
        capacity in [20..60u64, 20..60u64, 2..8u64],
        kinds in proptest::collection::vec(([1..30u64, 1..30u64, 0..5u64], 1..3u32, 1..1_000_000u64), 5..9),
        part in 0..12u64,
        nodes in prop_oneof![Just(2), Just(1_000_000)],
    ) {
        let classes = kinds.iter().map(|(requests, count, _)| class("class", *requests, *count, &[0])).collect();
        let model = Model::new(&problem(classes, vec![candidate("node", 10, capacity)]));
        prop_assume!(!model.classes.is_empty());
        let pi: Vec<u64> = model.classes.iter().map(|class| kinds[class.members[0].0 as usize].2).collect();
        let demand = model.demand();
        let best = brute(&model, &pi, &demand, &mut model.bins[0].capacity.clone(), 0);
        let threshold = best * part / 10;
        let mut signal = NeverStop;
        let mut meter = Meter::new(&mut signal, 1);
        let tasks = [(threshold, Effort { bits: 6, nodes })];
        let priced = Pricer::new(&model, 1).price_all(&pi, &demand, &tasks, &mut meter).remove(0);
        prop_assert!(priced.upper >= best || priced.upper <= threshold && best <= threshold);
        prop_assert!(threshold < best || priced.found.is_empty());
        let mut stop = Stop;
        let mut stopped = Meter::new(&mut stop, 1);
        for asked in [false, true] {
            if asked {
                stopped.poll();
            }
            let cut = Pricer::new(&model, 1).price_all(&pi, &demand, &tasks, &mut stopped).remove(0);
            prop_assert!(cut.upper >= best || cut.upper <= threshold && best <= threshold);
        }
        if nodes > 2 && threshold < best {
            prop_assert_eq!(priced.upper, best);
            prop_assert_eq!(priced.found.last().map(|(value, _)| *value), Some(best));
        }
        for (value, content) in &priced.found {
            prop_assert_eq!(*value, content.iter().map(|(class, count)| pi[*class as usize] * u64::from(*count)).sum::<u64>());
            for (dim, room) in model.bins[0].capacity.iter().enumerate() {
                let used: u64 =
                    content.iter().map(|(class, count)| model.classes[*class as usize].requests[dim] * u64::from(*count)).sum();
                prop_assert!(used <= *room);
            }
            prop_assert!(content.iter().all(|(class, count)| u64::from(*count) <= demand[*class as usize]));
        }
    }
}

/// Prices one bin with much effort, when a pod of each class is worth `pi`.
fn priced(model: &Model, bin: usize, pi: &[u64]) -> Priced {
    let mut tasks = vec![(NOT_ASKED, Effort { bits: 8, nodes: 1_000_000 }); model.bins.len()];
    tasks[bin].0 = 0;
    let mut signal = NeverStop;
    let mut meter = Meter::new(&mut signal, 1);
    Pricer::new(model, 1).price_all(pi, &model.demand(), &tasks, &mut meter).swap_remove(bin)
}

#[test]
fn a_content_that_is_undecided_counts_in_what_a_node_can_be_worth() {
    let model = Model::new(&undecided_on_existing());
    // Each pod is worth its memory, and the existing node holds all 200 MiB.
    let priced = priced(&model, 0, &[4_000, 9_000, 13_000]);
    assert!(priced.known().is_some_and(|known| known < 200_000), "{priced:?}");
    assert!(priced.upper >= 200_000, "{priced:?}");
}

#[test]
fn pods_that_are_undecided_beside_a_large_one_count_in_what_a_node_can_be_worth() {
    let share = |requests, count, units, memory_mib| PodClass {
        gpu: Some(GpuRequest::Share { units, memory_mib }),
        existing: vec![0],
        ..class("class", requests, count, &[])
    };
    let other = |memory| PodClass { existing: vec![0], ..class("class", [1, memory, 0], 1, &[]) };
    let classes =
        vec![share([0, 1, 0], 2_900, 1, 1), share([60, 1, 0], 1, 400, 10), other(1), other(2), other(3)];
    let gpu = |units_used, memory_mib| GpuState::Shared { units_used, memory_used_mib: 0, memory_mib };
    let node = ExistingNode {
        name: "old".to_owned(),
        free: vec![100, 10_000, 0],
        gpus: vec![gpu(100, 4_000), gpu(0, 10), gpu(0, 4_000), gpu(0, 4_000)],
        ..ExistingNode::default()
    };
    let model = Model::new(&Problem { existing: vec![node], ..problem(classes, Vec::new()) });
    // With the large pod on the GPU of 10 MiB, the other GPUs hold 2,900 small ones.
    let priced = priced(&model, 0, &[1_000, 1_000_000, 10, 10, 10]);
    assert!(priced.known().is_some_and(|known| known < 3_900_000), "{priced:?}");
    assert!(priced.upper >= 3_900_000, "{priced:?}");
}
