use proptest::prelude::*;

use super::*;
use crate::NeverStop;
use crate::meter::Meter;

/// Searches patterns, which are worth at most `most`, with nothing that stops the search.
fn searched(
    classes: &[Class],
    room: (&[u64], Option<&mut dyn Guard>),
    all: (&[Item], Vec<Item>),
    prices: &[u64],
    most: u64,
    effort: Effort,
) -> Answer {
    let mut signal = NeverStop;
    let mut meter = Meter::new(&mut signal, 1);
    let flag = std::sync::atomic::AtomicBool::new(false);
    let mut pulse = Pulse::Owner(&mut meter, &flag);
    let tools = (&mut Scratch::default(), &mut BTreeSet::new(), &mut pulse);
    solve_with(classes, room, all, prices, (0, most), effort, tools)
}

/// Returns the worth of the best pattern, by trying all.
fn brute(classes: &[Class], items: &[Item], room: &mut [u64], at: usize) -> u64 {
    let Some(item) = items.get(at) else { return 0 };
    let requests = &classes[item.class as usize].requests;
    let mut best = brute(classes, items, room, at + 1);
    let mut taken = 0;
    while taken < item.most && requests.iter().zip(room.iter()).all(|(request, room)| request <= room) {
        room.iter_mut().zip(requests).for_each(|(room, request)| *room -= request);
        taken += 1;
        best = best.max(item.value * u64::from(taken) + brute(classes, items, room, at + 1));
    }
    room.iter_mut().zip(requests).for_each(|(room, request)| *room += request * u64::from(taken));
    best
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_search_finds_what_trying_all_finds(
        capacity in [5..60u64, 5..1000u64, 1..8u64],
        kinds in proptest::collection::vec(([1..30u64, 0..400u64, 0..4u64], 1..1_000_000_000u64, 1..4u32), 1..7),
        prices in [0..1_000_000_000u64, 0..1_000_000_000u64, 0..1_000_000_000u64],
        nodes in prop_oneof![Just(3), Just(1_000_000)],
    ) {
        let classes: Vec<Class> = kinds
            .iter()
            .map(|(requests, ..)| Class {
                requests: requests.to_vec(),
                demand: 9,
                per_node: u32::MAX,
                ..Class::default()
            })
            .collect();
        let items: Vec<Item> = kinds
            .iter()
            .enumerate()
            .map(|(index, (requests, value, most))| {
                let fits = crate::canonical::fit_count(&capacity, requests);
                let size: u64 = requests.iter().zip(&capacity).zip(&prices).map(|((r, c), p)| of(share(*r, *c), *p)).sum();
                Item { class: index as u32, value: *value, most: fits.min(u64::from(*most)) as u32, loss: size as i64 - *value as i64 }
            })
            .filter(|item| item.most > 0)
            .collect();
        let most: u64 = items.iter().map(|item| item.value * u64::from(item.most)).sum();
        let best = brute(&classes, &items, &mut capacity.to_vec(), 0);
        let effort = Effort { bits: 6, nodes };
        let answer = searched(&classes, (&capacity, None), (&[], items), &prices, most.max(1), effort);
        prop_assert!(answer.upper >= best, "bound {} below {best}", answer.upper);
        if nodes > 3 {
            prop_assert_eq!(answer.upper, best);
            prop_assert_eq!(answer.found.last().map_or(0, |(value, _)| *value), best);
        }
        for (value, content) in &answer.found {
            prop_assert!(*value <= best);
            for (dim, room) in capacity.iter().enumerate() {
                let used: u64 =
                    content.iter().map(|(class, count)| classes[*class as usize].requests[dim] * u64::from(*count)).sum();
                prop_assert!(used <= *room);
            }
        }
    }
}

/// A rule that allows one of each class, and does not know about two more.
struct Unsure(Vec<u32>);

impl Guard for Unsure {
    fn fit(&self, class: u32) -> Fit {
        let taken = u64::from(self.0[class as usize]);
        Fit { least: 1u64.saturating_sub(taken), most: 3u64.saturating_sub(taken) }
    }

    fn add(&mut self, class: u32, count: u32) {
        self.0[class as usize] += count;
    }

    fn remove(&mut self, class: u32, count: u32) {
        self.0[class as usize] -= count;
    }
}

#[test]
fn a_pattern_that_is_undecided_is_not_found_but_counts_in_the_upper_bound() {
    let classes = vec![Class { requests: vec![1], demand: 3, per_node: u32::MAX, ..Class::default() }; 2];
    let item = |class| Item { class, value: 10, most: 3, loss: -10 };
    let mut guard = Unsure(vec![0; 2]);
    let room: (&[u64], Option<&mut dyn Guard>) = (&[6], Some(&mut guard));
    let effort = Effort { bits: 7, nodes: 1_000 };
    let answer = searched(&classes, room, (&[], vec![item(0), item(1)]), &[0], 60, effort);
    assert_eq!(answer.found.last().map(|(value, _)| *value), Some(20));
    assert_eq!(answer.upper, 60);
}

#[test]
fn a_head_that_is_undecided_counts_in_the_upper_bound() {
    let classes = vec![Class { requests: vec![1], demand: 3, per_node: u32::MAX, ..Class::default() }];
    let head = Item { class: 0, value: 10, most: 1, loss: -10 };
    // One is taken already.
    let mut guard = Unsure(vec![1]);
    let room: (&[u64], Option<&mut dyn Guard>) = (&[6], Some(&mut guard));
    let effort = Effort { bits: 7, nodes: 1_000 };
    let answer = searched(&classes, room, (&[head], Vec::new()), &[0], 10, effort);
    assert!(answer.found.is_empty());
    assert_eq!(answer.upper, 10);
}
