use proptest::prelude::*;

use super::*;
use crate::meter::Meter;

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
        let mut signal = crate::NeverStop;
        let mut meter = Meter::new(&mut signal, 1);
        let flag = std::sync::atomic::AtomicBool::new(false);
        let mut pulse = Pulse::Owner(&mut meter, &flag);
        let mut held = BTreeSet::new();
        let tools = (&mut Scratch::default(), &mut held, &mut pulse);
        let answer = solve(&classes, (&capacity, None), items, &prices, (0, most.max(1)), effort, tools);
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
