//! Computes the layout of each GPU of a node, given the pods of the node.

use std::collections::BTreeMap;

use poolwright_catalog::MigProfile;

use super::{Load, Room, STEPS_TO_WRITE, Slot, mig, share};
use crate::problem::GpuRequest;
use crate::solution::{GpuLayout, MigInstance};

/// A queue of pods' claims, class by class in ascending order.
struct Queue(Vec<(u32, u64)>);

impl Queue {
    fn next(&mut self) -> Option<u32> {
        let (class, left) = self.0.first_mut()?;
        let class = *class;
        *left -= 1;
        if *left == 0 {
            self.0.remove(0);
        }
        Some(class)
    }
}

/// Returns one entry per GPU of the node; `None` when no places are found for the pods. `content` is by class of the problem,
/// ascending: the request of one pod, and the number of pods. The result is deterministic.
pub(crate) fn layout(room: &Room, content: &[(u32, GpuRequest, u32)]) -> Option<Vec<GpuLayout>> {
    let load = Load::new(content.iter().map(|(_, request, pods)| (*request, u64::from(*pods))));
    let from_shared = room.split(&load, STEPS_TO_WRITE).ok()?;
    let packing = share::pack(&room.shared, &load.kinds, from_shared, STEPS_TO_WRITE).ok()?;
    let placed = mig::place(&room.mig, &load.mig, load.whole - from_shared)?;

    let mut whole = Vec::new();
    let mut shares: BTreeMap<(u32, u64), Vec<(u32, u64)>> = BTreeMap::new();
    let mut instances: BTreeMap<MigProfile, Vec<(u32, u64)>> = BTreeMap::new();
    for (class, request, pods) in content.iter().filter(|(_, _, pods)| *pods > 0) {
        let pods = u64::from(*pods);
        match request {
            GpuRequest::Whole(count) => whole.push((*class, u64::from(*count) * pods)),
            GpuRequest::Share { units, memory_mib } => {
                shares.entry((*units, *memory_mib)).or_default().push((*class, pods));
            }
            GpuRequest::Mig { profile, count } => {
                instances.entry(*profile).or_default().push((*class, u64::from(*count) * pods));
            }
        }
    }
    let mut whole = Queue(whole);
    let mut shares: BTreeMap<_, Queue> = shares.into_iter().map(|(kind, pods)| (kind, Queue(pods))).collect();
    let mut instances: BTreeMap<_, Queue> =
        instances.into_iter().map(|(profile, pods)| (profile, Queue(pods))).collect();

    let mut layouts = Vec::with_capacity(room.slots.len());
    for slot in &room.slots {
        layouts.push(match slot {
            Slot::Busy => GpuLayout::Idle,
            Slot::Shared(at) if packing.whole.contains(at) => GpuLayout::Whole(whole.next()?),
            Slot::Shared(at) => {
                let mut pods: BTreeMap<u32, u32> = BTreeMap::new();
                for (kind, count) in &packing.pods[*at] {
                    let kind = &load.kinds[*kind];
                    let queue = shares.get_mut(&(kind.units, kind.memory))?;
                    for _ in 0..*count {
                        *pods.entry(queue.next()?).or_default() += 1;
                    }
                }
                if pods.is_empty() { GpuLayout::Idle } else { GpuLayout::Shared(pods.into_iter().collect()) }
            }
            Slot::Mig(at) => match &placed[*at] {
                mig::Placed::Nothing => GpuLayout::Idle,
                mig::Placed::Whole => GpuLayout::Whole(whole.next()?),
                mig::Placed::Instances(placed) => GpuLayout::Mig(
                    placed
                        .iter()
                        .map(|(profile, start)| {
                            let class = instances.get_mut(profile)?.next()?;
                            Some(MigInstance { start: *start, profile: *profile, class })
                        })
                        .collect::<Option<_>>()?,
                ),
            },
        });
    }
    Some(layouts)
}

#[cfg(test)]
mod tests {
    use poolwright_catalog::MigGeometry;
    use proptest::prelude::*;

    use super::super::tests::{any_request, any_state};
    use super::*;
    use crate::problem::{GpuMode, Gpus};

    #[test]
    fn the_layout_of_an_empty_node_names_every_gpu_and_start() {
        let mode = GpuMode::Mig { geometry: MigGeometry::Seven, mixed: true };
        let room = Room::of_new(&Gpus { count: 3, memory_mib: 40960, mode });
        let mig = |profile| GpuRequest::Mig { profile, count: 1 };
        let content = [
            (0, mig(MigProfile::G1), 4),
            (1, GpuRequest::Whole(1), 1),
            (4, mig(MigProfile::G3), 1),
            (7, mig(MigProfile::G1), 1),
        ];
        let instance = |start, profile, class| MigInstance { start, profile, class };
        let expected = vec![
            GpuLayout::Whole(1),
            GpuLayout::Mig(vec![
                instance(0, MigProfile::G1, 0),
                instance(1, MigProfile::G1, 0),
                instance(2, MigProfile::G1, 0),
                instance(3, MigProfile::G1, 0),
                instance(4, MigProfile::G3, 4),
            ]),
            GpuLayout::Mig(vec![instance(0, MigProfile::G1, 7)]),
        ];
        assert_eq!(layout(&room, &content), Some(expected));
    }

    #[test]
    fn pods_that_share_gpus_are_named_by_class_on_each() {
        let room = Room::of_new(&Gpus { count: 2, memory_mib: 0, mode: GpuMode::Shared });
        let share = |units| GpuRequest::Share { units, memory_mib: 0 };
        let content = [(2, share(300), 3), (3, share(400), 1), (5, share(350), 2)];
        let expected = vec![GpuLayout::Shared(vec![(2, 2), (3, 1)]), GpuLayout::Shared(vec![(2, 1), (5, 2)])];
        assert_eq!(layout(&room, &content), Some(expected));
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn every_content_that_fits_has_a_layout_with_each_pod_on_it(
            states in proptest::collection::vec(any_state(), 1..4),
            wishes in proptest::collection::vec((any_request(), 1..3u32), 1..5),
        ) {
            let room = Room::of_existing(&states);
            let content: Vec<(u32, GpuRequest, u32)> =
                wishes.iter().enumerate().map(|(class, (request, pods))| (class as u32, *request, *pods)).collect();
            let load: Vec<(GpuRequest, u64)> = content.iter().map(|(_, request, pods)| (*request, u64::from(*pods))).collect();
            let Some(layouts) = layout(&room, &content) else {
                prop_assert!(!room.holds(&load));
                return Ok(());
            };
            prop_assert!(room.holds(&load));
            prop_assert_eq!(layouts.len(), states.len());
            let mut seen = vec![0; content.len()];
            for (gpu, state) in layouts.iter().zip(&states) {
                match gpu {
                    GpuLayout::Idle => {}
                    GpuLayout::Whole(class) => seen[*class as usize] += 1,
                    GpuLayout::Shared(pods) => {
                        let is_shared = matches!(state, crate::problem::GpuState::Shared { .. });
                        prop_assert!(is_shared);
                        for (class, count) in pods {
                            seen[*class as usize] += count;
                        }
                    }
                    GpuLayout::Mig(placed) => {
                        let is_mig = matches!(state, crate::problem::GpuState::Mig { .. });
                        prop_assert!(is_mig && placed.windows(2).all(|pair| pair[0].start < pair[1].start));
                        for instance in placed {
                            let wish = content[instance.class as usize].1;
                            let is_wish = matches!(wish, GpuRequest::Mig { profile, .. } if profile == instance.profile);
                            prop_assert!(is_wish);
                            seen[instance.class as usize] += 1;
                        }
                    }
                }
            }
            for (class, request, pods) in &content {
                let each = match request {
                    GpuRequest::Whole(count) | GpuRequest::Mig { count, .. } => *count,
                    GpuRequest::Share { .. } => 1,
                };
                prop_assert_eq!(seen[*class as usize], each * pods);
            }
        }
    }
}
