//! Fit and layout of MIG instances on the GPUs of a node.
//!
//! On empty GPUs of the seven-slice family a closed form decides. A 4g takes the left half. A 3g takes a half, preferably
//! the right one, since the slots on the right are worth less (NVIDIA's MIG user guide, "MIG Device Names and Profiles",
//! has the placements). Instances in use cannot move, so for such GPUs a search goes through their maximal sets of
//! instances.

use std::collections::BTreeMap;

use poolwright_catalog::{MigGeometry, MigProfile};

use super::fit::Misfit;

/// Counts by profile, in the order of [`MigProfile::ALL`].
pub(crate) type Counts = [u64; 6];

const G1: usize = 0;
const DOUBLE: usize = 1;
const G2: usize = 2;
const G3: usize = 3;
const G4: usize = 4;
const G7: usize = 5;

/// The maximum number of states of the search over occupied GPUs. What fits only from a dropped state is undecided.
const MOST_STATES: usize = 4096;

/// Returns the position of a profile in [`Counts`].
pub(crate) fn index(profile: MigProfile) -> usize {
    match profile {
        MigProfile::G1 => G1,
        MigProfile::G1Double => DOUBLE,
        MigProfile::G2 => G2,
        MigProfile::G3 => G3,
        MigProfile::G4 => G4,
        MigProfile::G7 => G7,
    }
}

/// One GPU before anything is placed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Gpu {
    pub geometry: MigGeometry,
    /// Whether one pod may have the whole GPU.
    pub whole: bool,
    /// The memory slices in use.
    used: u16,
    /// The maximal sets of instances, to which no instance can be added.
    options: Vec<Counts>,
}

/// The layout of one GPU.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Placed {
    #[default]
    Nothing,
    Whole,
    /// Profiles with their first memory slices, ascending by slice.
    Instances(Vec<(MigProfile, u8)>),
}

impl Gpu {
    /// Creates a GPU with instances in use. `mixed` means that it may also stay whole.
    pub fn new(geometry: MigGeometry, mixed: bool, in_use: &[(MigProfile, u8)]) -> Self {
        let used = in_use.iter().fold(0, |used, (profile, start)| used | mask(geometry, *profile, *start));
        let mut options = Vec::new();
        contents(geometry, used, 0, &mut [0; 6], &mut options);
        options.sort_unstable_by(|a: &Counts, b| b.cmp(a));
        options.dedup();
        let all = options.clone();
        options.retain(|mine| !all.iter().any(|other| other != mine && covers(other, mine)));
        Self { geometry, whole: mixed && in_use.is_empty(), used, options }
    }

    /// Returns the maximal sets of instances.
    pub fn options(&self) -> &[Counts] {
        &self.options
    }

    /// Returns whether no slice is in use.
    pub fn is_empty(&self) -> bool {
        self.used == 0
    }
}

fn covers(a: &Counts, b: &Counts) -> bool {
    a.iter().zip(b).all(|(a, b)| a >= b)
}

/// Returns the memory slices of an instance; none for a profile that the family lacks.
fn mask(geometry: MigGeometry, profile: MigProfile, start: u8) -> u16 {
    geometry.placements(profile).map_or(0, |placements| ((1 << placements.size) - 1) << start)
}

/// Collects all sets of instances on the free slices from `start` on.
fn contents(geometry: MigGeometry, used: u16, start: u8, counts: &mut Counts, all: &mut Vec<Counts>) {
    if start >= geometry.memory_slices() {
        all.push(*counts);
        return;
    }
    for profile in geometry.profiles() {
        let taken = mask(geometry, profile, start);
        let allowed = geometry.placements(profile).is_some_and(|p| p.starts.contains(&start));
        if allowed && used & taken == 0 {
            counts[index(profile)] += 1;
            contents(geometry, used | taken, start + 1, counts, all);
            counts[index(profile)] -= 1;
        }
    }
    contents(geometry, used, start + 1, counts, all);
}

/// The halves of empty GPUs, after whole GPUs, 7g, 4g and 3g are placed.
struct Slots {
    /// The number of GPUs that are partitioned further.
    cut: u64,
    /// The number of 3g on right halves; the others are on left halves.
    right: u64,
    /// The number of 3g on left halves.
    left: u64,
}

impl Slots {
    /// Places the large instances of the seven-slice family. Returns `None` when the halves do not suffice.
    fn new(gpus: u64, counts: &Counts, whole: u64) -> Option<Self> {
        let cut = gpus.checked_sub(counts[G7].checked_add(whole)?)?;
        let right = counts[G3].min(cut);
        let left = counts[G3] - right;
        (counts[G4] + left <= cut).then_some(Self { cut, right, left })
    }
}

/// Returns whether these instances, and `whole` GPUs besides, fit `gpus` empty ones.
pub(crate) fn fits_empty(geometry: MigGeometry, gpus: u64, counts: &Counts, whole: u64) -> bool {
    if counts.iter().any(|count| *count > gpus * 8) {
        return false;
    }
    match geometry {
        MigGeometry::Seven => {
            let Some(slots) = Slots::new(gpus, counts, whole) else { return false };
            let (left, right) = (slots.cut - counts[G4] - slots.left, slots.cut - slots.right);
            // A pair of slices holds a 2g, a double or two 1g. The last two slices of a right half hold a double or one
            // 1g.
            let (pairs, ends) = (2 * left + right, right);
            let doubles_in_pairs = counts[DOUBLE].saturating_sub(ends);
            let doubles_at_ends = counts[DOUBLE] - doubles_in_pairs;
            let taken = counts[G2] + doubles_in_pairs;
            taken <= pairs && counts[G1] <= 2 * (pairs - taken) + ends - doubles_at_ends
        }
        MigGeometry::SevenInPairs => {
            // Its 1g are the doubles of the seven-slice family.
            let mut in_seven = *counts;
            in_seven[DOUBLE] = counts[G1];
            in_seven[G1] = 0;
            counts[DOUBLE] == 0 && fits_empty(MigGeometry::Seven, gpus, &in_seven, whole)
        }
        MigGeometry::Four | MigGeometry::FourOfTwelve => {
            let taken = counts[G4].saturating_add(whole);
            counts[DOUBLE] + counts[G3] + counts[G7] == 0
                && taken <= gpus
                && 2 * counts[G2] + counts[G1] <= 4 * (gpus - taken)
        }
    }
}

/// Checks whether these instances, and `whole` GPUs besides, fit these GPUs.
pub(crate) fn check(gpus: &[Gpu], counts: &Counts, whole: u64) -> Result<(), Misfit> {
    let fits = match gpus {
        [] => whole == 0 && counts.iter().all(|count| *count == 0),
        [first, rest @ ..] if first.is_empty() && rest.iter().all(|gpu| gpu == first) => {
            (whole == 0 || first.whole) && fits_empty(first.geometry, gpus.len() as u64, counts, whole)
        }
        _ => return choose(gpus, counts, whole).map(|_| ()),
    };
    if fits { Ok(()) } else { Err(Misfit::Impossible) }
}

/// The instances and whole GPUs still to be placed.
type Need = (Counts, u64);

/// The set of instances for each GPU except the last equal empty ones, and the rest for those.
struct Choice {
    /// (GPU, its instances, whether it is given whole).
    chosen: Vec<(usize, Counts, bool)>,
    /// The equal empty GPUs.
    rest: Vec<usize>,
    /// The needs placed on them.
    need: Need,
}

/// Assigns the GPUs one by one, the occupied first, and keeps all minimal needs. The closed form decides the last equal
/// empty GPUs.
fn choose(gpus: &[Gpu], counts: &Counts, whole: u64) -> Result<Choice, Misfit> {
    let mut order: Vec<usize> = (0..gpus.len()).collect();
    let alike = |gpu: &Gpu| gpus.iter().filter(|other| *other == gpu).count();
    order.sort_by_key(|at| (gpus[*at].is_empty(), alike(&gpus[*at]), gpus[*at].clone(), *at));
    let rest = match order.last() {
        Some(last) if gpus[*last].is_empty() => {
            let from = order.iter().position(|at| gpus[*at] == gpus[*last]).unwrap_or(order.len());
            order.split_off(from)
        }
        _ => Vec::new(),
    };
    let suffices = |(counts, whole): &Need| match rest.first().map(|at| &gpus[*at]) {
        None => *whole == 0 && counts.iter().all(|count| *count == 0),
        Some(gpu) => {
            (*whole == 0 || gpu.whole) && fits_empty(gpu.geometry, rest.len() as u64, counts, *whole)
        }
    };
    // By layer: the need, the preceding state, and the chosen option (past the last one: the whole GPU).
    let mut layers: Vec<Vec<(Need, usize, usize)>> = vec![vec![((*counts, whole), 0, 0)]];
    let mut dropped = false;
    for (layer, at) in order.iter().enumerate() {
        let gpu = &gpus[*at];
        let mut next: BTreeMap<Need, (usize, usize)> = BTreeMap::new();
        for (from, ((counts, whole), _, _)) in layers[layer].iter().enumerate() {
            for (option, content) in gpu.options.iter().enumerate() {
                let left = std::array::from_fn(|profile| counts[profile].saturating_sub(content[profile]));
                next.entry((left, *whole)).or_insert((from, option));
            }
            if gpu.whole && *whole > 0 {
                next.entry((*counts, whole - 1)).or_insert((from, gpu.options.len()));
            }
        }
        let mut states: Vec<(Need, usize, usize)> =
            next.into_iter().map(|(need, (from, option))| (need, from, option)).collect();
        if states.len() <= MOST_STATES / 8 {
            let all: Vec<Need> = states.iter().map(|state| state.0).collect();
            let worse = |need: &Need| {
                all.iter().any(|other| other != need && covers(&need.0, &other.0) && need.1 >= other.1)
            };
            states.retain(|(need, _, _)| !worse(need));
        }
        dropped |= states.len() > MOST_STATES;
        states.truncate(MOST_STATES);
        layers.push(states);
    }
    let last = &layers[order.len()];
    let Some(mut state) = last.iter().position(|(need, _, _)| suffices(need)) else {
        return Err(if dropped { Misfit::Undecided } else { Misfit::Impossible });
    };
    let need = last[state].0;
    let mut chosen = Vec::with_capacity(order.len());
    for (layer, at) in order.iter().enumerate().rev() {
        let (after, from, option) = layers[layer + 1][state];
        let before = layers[layer][from].0;
        let taken = std::array::from_fn(|profile| before.0[profile] - after.0[profile]);
        chosen.push((*at, taken, option == gpus[*at].options.len()));
        state = from;
    }
    Ok(Choice { chosen, rest, need })
}

/// Returns the layout, one entry per GPU; `None` when no places are found for the instances. The result is deterministic.
pub(crate) fn place(gpus: &[Gpu], counts: &Counts, whole: u64) -> Option<Vec<Placed>> {
    let choice = choose(gpus, counts, whole).ok()?;
    let mut placed = vec![Placed::Nothing; gpus.len()];
    for (at, counts, is_whole) in choice.chosen {
        placed[at] = if is_whole { Placed::Whole } else { arrange(&gpus[at], &counts)? };
    }
    if let Some(first) = choice.rest.first() {
        let spread = spread(gpus[*first].geometry, choice.rest.len(), &choice.need.0, choice.need.1)?;
        for (at, content) in choice.rest.iter().zip(spread) {
            placed[*at] = content;
        }
    }
    Some(placed)
}

/// Chooses the positions on one GPU that may be partly in use: large instances first, 3g and doubles high, the others
/// low, so that the free slices stay useful.
fn arrange(gpu: &Gpu, counts: &Counts) -> Option<Placed> {
    fn put(
        geometry: MigGeometry,
        used: u16,
        todo: &[MigProfile],
        placed: &mut Vec<(MigProfile, u8)>,
    ) -> bool {
        let [profile, rest @ ..] = todo else { return true };
        let starts = geometry.placements(*profile).map_or(&[][..], |placements| placements.starts);
        let high = matches!(profile, MigProfile::G3 | MigProfile::G1Double);
        for position in 0..starts.len() {
            let start = if high { starts[starts.len() - 1 - position] } else { starts[position] };
            let taken = mask(geometry, *profile, start);
            if used & taken == 0 {
                placed.push((*profile, start));
                if put(geometry, used | taken, rest, placed) {
                    return true;
                }
                placed.pop();
            }
        }
        false
    }
    let order = [
        MigProfile::G7,
        MigProfile::G4,
        MigProfile::G3,
        MigProfile::G2,
        MigProfile::G1Double,
        MigProfile::G1,
    ];
    let todo: Vec<MigProfile> = order
        .into_iter()
        .flat_map(|profile| std::iter::repeat_n(profile, counts[index(profile)] as usize))
        .collect();
    let mut placed = Vec::with_capacity(todo.len());
    put(gpu.geometry, gpu.used, &todo, &mut placed).then(|| instances(placed))
}

fn instances(mut placed: Vec<(MigProfile, u8)>) -> Placed {
    placed.sort_by_key(|(_, start)| *start);
    if placed.is_empty() { Placed::Nothing } else { Placed::Instances(placed) }
}

/// Chooses the positions on empty GPUs, as [`fits_empty`] counts them: whole GPUs first, then the partitioned ones in
/// order.
fn spread(geometry: MigGeometry, gpus: usize, counts: &Counts, whole: u64) -> Option<Vec<Placed>> {
    if !fits_empty(geometry, gpus as u64, counts, whole) {
        return None;
    }
    let mut used = vec![0u16; gpus];
    let mut placed: Vec<Vec<(MigProfile, u8)>> = vec![Vec::new(); gpus];
    let whole = whole as usize;
    let mut put = |profile: MigProfile, count: u64, places: &mut dyn Iterator<Item = (usize, u8)>| {
        let mut left = count;
        while left > 0 {
            let Some((gpu, start)) = places.next() else { return false };
            let taken = mask(geometry, profile, start);
            if used[gpu] & taken == 0 {
                used[gpu] |= taken;
                placed[gpu].push((profile, start));
                left -= 1;
            }
        }
        true
    };
    let cut = whole + counts[G7] as usize;
    let all = |starts: &'static [u8], from: usize| {
        (from..gpus).flat_map(move |gpu| starts.iter().map(move |start| (gpu, *start)))
    };
    let starts = |profile| geometry.placements(profile).map_or(&[][..], |placements| placements.starts);
    let good = put(MigProfile::G7, counts[G7], &mut all(starts(MigProfile::G7), whole))
        && put(MigProfile::G4, counts[G4], &mut all(starts(MigProfile::G4), cut))
        && put(MigProfile::G3, counts[G3], &mut all(&[4], cut).chain(all(&[0], cut)))
        && put(MigProfile::G2, counts[G2], &mut all(starts(MigProfile::G2), cut))
        && put(MigProfile::G1Double, counts[DOUBLE], &mut all(&[6], cut).chain(all(&[4, 2, 0], cut)))
        && put(MigProfile::G1, counts[G1], &mut all(starts(MigProfile::G1), cut));
    let whole = std::iter::repeat_n(Placed::Whole, whole);
    good.then(|| whole.chain(placed.into_iter().skip(cut - counts[G7] as usize).map(instances)).collect())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    const FAMILIES: [MigGeometry; 4] =
        [MigGeometry::Seven, MigGeometry::Four, MigGeometry::FourOfTwelve, MigGeometry::SevenInPairs];

    /// Returns every set of instances on one GPU with some slices in use, by trying every instance at every start of the
    /// table.
    fn contents_of_one(geometry: MigGeometry, used: u16) -> BTreeSet<Counts> {
        let mut known: BTreeSet<(u16, Counts)> = BTreeSet::from([(used, [0; 6])]);
        let mut open = vec![(used, [0; 6])];
        while let Some((used, counts)) = open.pop() {
            for profile in MigProfile::ALL {
                let Some(placements) = geometry.placements(profile) else { continue };
                for start in placements.starts {
                    let slices = ((1u16 << placements.size) - 1) << start;
                    let mut more: Counts = counts;
                    more[index(profile)] += 1;
                    if used & slices == 0
                        && more[index(profile)] <= u64::from(placements.most)
                        && known.insert((used | slices, more))
                    {
                        open.push((used | slices, more));
                    }
                }
            }
        }
        known.into_iter().map(|(_, counts)| counts).collect()
    }

    fn sums(one: &BTreeSet<(Counts, u64)>, other: &BTreeSet<(Counts, u64)>) -> BTreeSet<(Counts, u64)> {
        one.iter()
            .flat_map(|a| {
                other.iter().map(|b| (std::array::from_fn(|profile| a.0[profile] + b.0[profile]), a.1 + b.1))
            })
            .collect()
    }

    /// Adds the GPUs that are given whole.
    fn with_whole(contents: BTreeSet<Counts>, whole: bool) -> BTreeSet<(Counts, u64)> {
        contents.into_iter().map(|counts| (counts, 0)).chain(whole.then_some(([0; 6], 1))).collect()
    }

    /// Returns every vector of counts up to one above the maximum, with whole GPUs likewise.
    fn box_of(feasible: &BTreeSet<(Counts, u64)>) -> Vec<(Counts, u64)> {
        let mut all = vec![([0; 6], 0)];
        let most_whole = feasible.iter().map(|(_, whole)| whole + 1).max().unwrap_or(0);
        all =
            (0..=most_whole).flat_map(|whole| all.iter().map(move |(counts, _)| (*counts, whole))).collect();
        for profile in 0..6 {
            let most = feasible.iter().map(|(counts, _)| counts[profile] + 1).max().unwrap_or(0);
            all = all
                .into_iter()
                .flat_map(|(counts, whole): (Counts, u64)| {
                    (0..=most).map(move |count| {
                        let mut counts = counts;
                        counts[profile] = count;
                        (counts, whole)
                    })
                })
                .collect();
        }
        all
    }

    #[test]
    fn the_closed_form_is_what_trying_every_placement_finds_on_one_to_three_gpus_of_every_family() {
        for geometry in FAMILIES {
            let one = with_whole(contents_of_one(geometry, 0), true);
            let mut feasible = BTreeSet::from([([0; 6], 0)]);
            for gpus in 1..=3 {
                feasible = sums(&feasible, &one);
                for (counts, whole) in box_of(&feasible) {
                    assert_eq!(
                        fits_empty(geometry, gpus, &counts, whole),
                        feasible.contains(&(counts, whole)),
                        "{geometry:?} {gpus} {counts:?} {whole}"
                    );
                }
            }
        }
    }

    #[test]
    fn on_one_empty_gpu_the_sums_of_slices_and_the_ceilings_of_the_table_decide() {
        for geometry in FAMILIES {
            let feasible = with_whole(contents_of_one(geometry, 0), false);
            for (counts, whole) in box_of(&feasible).into_iter().filter(|(_, whole)| *whole == 0) {
                let (mut compute, mut memory, mut ceilings) = (0, 0, true);
                for profile in MigProfile::ALL {
                    let count = counts[index(profile)];
                    match geometry.placements(profile) {
                        Some(placements) => {
                            compute += count * u64::from(placements.compute);
                            memory += count * u64::from(placements.size);
                            ceilings &= count <= u64::from(placements.most);
                        }
                        None => ceilings &= count == 0,
                    }
                }
                let by_sums = ceilings
                    && compute <= u64::from(geometry.compute_slices())
                    && memory <= u64::from(geometry.memory_slices());
                assert_eq!(fits_empty(geometry, 1, &counts, whole), by_sums, "{geometry:?} {counts:?}");
            }
        }
    }

    #[test]
    fn the_seven_slice_family_has_as_many_contents_as_the_reference_counts() {
        let contents = contents_of_one(MigGeometry::Seven, 0);
        assert_eq!(contents.len() - 1, 77);
        assert_eq!(contents.iter().filter(|counts| counts[DOUBLE] == 0).count() - 1, 37);
    }

    #[test]
    fn a_3g_goes_high_so_that_four_1g_stay_possible() {
        let gpu = Gpu::new(MigGeometry::Seven, false, &[]);
        let placed = place(std::slice::from_ref(&gpu), &[0, 0, 0, 1, 0, 0], 0);
        assert_eq!(placed, Some(vec![Placed::Instances(vec![(MigProfile::G3, 4)])]));
        // A 3g at the low position costs a slice.
        let low = Gpu::new(MigGeometry::Seven, false, &[(MigProfile::G3, 0)]);
        let low = std::slice::from_ref(&low);
        assert_eq!(check(low, &[3, 0, 0, 0, 0, 0], 0), Ok(()));
        assert_eq!(check(low, &[4, 0, 0, 0, 0, 0], 0), Err(Misfit::Impossible));
    }

    #[test]
    fn instances_for_which_the_search_drops_the_right_state_are_not_said_to_be_impossible() {
        let double = Gpu::new(MigGeometry::Seven, false, &[(MigProfile::G1Double, 6)]);
        let ones = [0, 2, 4].map(|start| (MigProfile::G1, start));
        let mut gpus = vec![double; 10];
        gpus.extend(std::iter::repeat_n(Gpu::new(MigGeometry::Seven, false, &ones), 11));
        // One possible set of instances on each GPU, so that all of them fit together.
        let mut counts: Counts = [0; 6];
        for (at, gpu) in gpus.iter().enumerate() {
            let option = gpu.options()[at * 3 % gpu.options().len()];
            counts = std::array::from_fn(|profile| counts[profile] + option[profile]);
        }
        assert_ne!(check(&gpus, &counts, 0), Err(Misfit::Impossible));
    }

    /// Checks a layout by the table alone.
    fn is_layout(gpus: &[Gpu], counts: &Counts, whole: u64, placed: &[Placed]) -> bool {
        let (mut seen, mut seen_whole) = ([0; 6], 0);
        for (gpu, placed) in gpus.iter().zip(placed) {
            match placed {
                Placed::Nothing => {}
                Placed::Whole => {
                    seen_whole += 1;
                    if !gpu.whole {
                        return false;
                    }
                }
                Placed::Instances(instances) => {
                    let mut used = gpu.used;
                    for (profile, start) in instances {
                        let Some(placements) = gpu.geometry.placements(*profile) else { return false };
                        let slices = ((1u16 << placements.size) - 1) << start;
                        if !placements.starts.contains(start) || used & slices != 0 {
                            return false;
                        }
                        used |= slices;
                        seen[index(*profile)] += 1;
                    }
                }
            }
        }
        seen == *counts && seen_whole == whole && placed.len() == gpus.len()
    }

    /// Creates a GPU with some instances in use where the table allows them.
    fn any_gpu(seed: &[u8], mixed: bool, geometry: MigGeometry) -> Gpu {
        let (mut in_use, mut used) = (Vec::new(), 0u16);
        for pick in seed {
            let profile = MigProfile::ALL[usize::from(pick % 6)];
            if let Some(placements) = geometry.placements(profile) {
                let start = placements.starts[usize::from(pick / 6) % placements.starts.len()];
                let slices = mask(geometry, profile, start);
                if used & slices == 0 {
                    used |= slices;
                    in_use.push((profile, start));
                }
            }
        }
        Gpu::new(geometry, mixed, &in_use)
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn on_occupied_gpus_the_search_finds_what_trying_every_placement_finds(
            gpus in proptest::collection::vec(
                (proptest::collection::vec(any::<u8>(), 0..4), any::<bool>(), 0..9usize), 1..4),
            picks in proptest::collection::vec(0..7usize, 0..9),
        ) {
            let gpus: Vec<Gpu> = gpus
                .iter()
                .map(|(seed, mixed, family)| any_gpu(seed, *mixed, FAMILIES[family.saturating_sub(5)]))
                .collect();
            let (mut counts, mut whole) = ([0; 6], 0);
            for pick in picks {
                if pick < 6 { counts[pick] += 1 } else { whole += 1 }
            }
            let feasible = gpus.iter().fold(BTreeSet::from([([0; 6], 0)]), |known, gpu| {
                sums(&known, &with_whole(contents_of_one(gpu.geometry, gpu.used), gpu.whole))
            });
            let expected = feasible.contains(&(counts, whole));
            prop_assert_eq!(check(&gpus, &counts, whole), if expected { Ok(()) } else { Err(Misfit::Impossible) });
            let placed = place(&gpus, &counts, whole);
            prop_assert_eq!(placed.is_some(), expected);
            if let Some(placed) = placed {
                prop_assert!(is_layout(&gpus, &counts, whole, &placed), "{:?}", placed);
            }
        }

        #[test]
        fn on_empty_gpus_every_content_that_fits_has_a_layout(
            gpus in 1..9usize,
            family in 0..FAMILIES.len(),
            counts in [0..20u64, 0..8u64, 0..10u64, 0..6u64, 0..4u64, 0..3u64],
            whole in 0..3u64,
        ) {
            let geometry = FAMILIES[family];
            let all = vec![Gpu::new(geometry, true, &[]); gpus];
            let placed = place(&all, &counts, whole);
            prop_assert_eq!(placed.is_some(), fits_empty(geometry, gpus as u64, &counts, whole));
            if let Some(placed) = placed {
                prop_assert!(is_layout(&all, &counts, whole, &placed), "{:?}", placed);
            }
        }
    }
}
