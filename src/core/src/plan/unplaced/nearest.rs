//! The pool that comes closest to holding unplaced pods: the one that the fewest things keep from it.

use std::cmp::Reverse;

use crate::plan::gang_takes::HoldingNode;
use crate::plan::pack::classes::PodClass;
use crate::plan::unplaced::advised::advised;
use crate::plan::unplaced::beyond::nearest_beyond;
use crate::plan::unplaced::inputs::UnplacedInputs;
use crate::plan::unplaced::labels::{enforced_miss, labels_miss};
use crate::plan::unplaced::pools::taint_misses;
use crate::plan::unplaced::relaxed::{Relaxed, without_own_labels};
use crate::plan::unplaced::room::room_miss;
use crate::plan::unplaced::unusable::{Unusable, closest_unusable};
use crate::plan::unplaced::volumes;
use crate::plan::unplaced::wants::unmet;
use crate::rules;
use crate::supply::offerings::PoolOffering;
use crate::supply::wider::WiderType;

/// Describes the closest pool and everything that keeps the pods off it. Only the pools at these indices count, or all pools if
/// there are none. A pool that cannot be used now is named instead if the pods select a label that only its nodes have, or if fewer
/// things keep the pods off it, and besides if its problem is the only one of as many. It is never named first because of fewer things
/// if nobody is known to sell what the pods ask for.
pub(crate) fn nearest(inputs: &UnplacedInputs<'_, '_>, class: &PodClass<'_>, wanted: Vec<usize>) -> String {
    // A pool that is made for other pods would not help even if it could be used.
    let unusable = closest_unusable(inputs, class).filter(|pool| !pool.is_foreign);
    let Some((misses, at)) = closest(inputs, class, wanted) else {
        return unusable.map_or("no NodePool exists; create one".to_owned(), |pool| pool.sentence());
    };
    match unusable {
        Some(pool) if pool.is_selected => pool.sentence(),
        Some(pool) if pool.count < misses.count() && !pool.is_uncertain => pool.sentence(),
        Some(pool) if pool.count <= misses.count() && pool.would_help() => {
            format!("{}; besides, {}", misses.sentence(inputs, class, at), pool.words_without_doubts())
        }
        _ => misses.sentence(inputs, class, at),
    }
}

/// Returns the closest of these pools, or of all pools if there are none, with what keeps the pods off it.
fn closest(
    inputs: &UnplacedInputs<'_, '_>,
    class: &PodClass<'_>,
    mut wanted: Vec<usize>,
) -> Option<(Misses, usize)> {
    if wanted.is_empty() {
        wanted.extend(0..inputs.supply.pools.len());
    }
    // Of equally close pools, it is the one that fails last, then the one with the highest weight, then the first.
    wanted.into_iter().map(|at| (misses(inputs, class, at), at)).min_by_key(|(misses, at)| {
        (misses.count(), Reverse(misses.stage()), Reverse(weight(inputs, *at)), *at)
    })
}

impl UnplacedInputs<'_, '_> {
    /// Returns the nodes that would hold the pods once the advice of [`nearest`] about their rules on taints and labels is followed.
    /// Empty if it advises something else too, or leaves a choice between rules.
    pub(crate) fn after_advice(&self, class: &PodClass<'_>, wanted: Vec<usize>) -> Vec<HoldingNode> {
        let Some((misses, at)) = closest(self, class, wanted) else { return Vec::new() };
        let is_told = |pool: Unusable| !pool.is_foreign && (pool.is_selected || pool.count <= misses.count());
        if closest_unusable(self, class).is_some_and(is_told) {
            return Vec::new();
        }
        let (words, _) = misses.words(self, class, at);
        if let Some(kind) = named_type(self, class, at, &words) {
            let room = self.widened().room(at, kind.offering);
            return vec![HoldingNode { at, offering: kind.offering, price: kind.price, room }];
        }
        let is_of_other = misses.labels > 0 && other_miss(self, class, at).is_some();
        if misses.room || misses.foreign > 0 || is_of_other {
            return Vec::new();
        }
        let alternatives = misses.relaxed.as_ref().map_or(&[][..], |relaxed| relaxed.alternatives.as_slice());
        let (advised, others) = (advised(class.spec, at, self.supply), without_own_labels(class.spec));
        let is_open = |offer: &&PoolOffering| match alternatives {
            _ if misses.labels == 0 => self.meets_labels(at, class, offer),
            [] => {
                let labels = self.supply.labels(at, offer.offering);
                rules::check_labels(&others, &labels).is_ok()
                    && advised.iter().all(|wanted| rules::matches(wanted, &labels))
            }
            [only] => self.breaks(at, class, offer).as_ref() == Some(only),
            _ => false,
        };
        let offers = self.supply.pools[at].offers.iter().filter(|offer| self.would_hold(at, offer, class));
        offers.filter(is_open).filter_map(|offer| HoldingNode::of(self.supply, at, offer)).collect()
    }
}

/// Describes the volume or the affinity of the scheduler that keeps the pods off the pool, if their own rules do not.
fn other_miss(inputs: &UnplacedInputs<'_, '_>, class: &PodClass<'_>, at: usize) -> Option<String> {
    volumes::miss(inputs, class, at).or_else(|| enforced_miss(class.spec, at, inputs.supply))
}

fn weight(inputs: &UnplacedInputs<'_, '_>, at: usize) -> u32 {
    inputs.supply.pools[at].pool.weight
}

/// The things that keep pods off a pool.
struct Misses {
    /// Whether the pods do not tolerate a taint.
    taint: bool,
    /// The number of requirements on labels that no offering meets, or of those to relax if none meets all of them.
    labels: usize,
    /// What to relax, if offerings meet each requirement but none meets all of them.
    relaxed: Option<Relaxed>,
    /// Whether no offering is large enough.
    room: bool,
    /// The number of resources that no offering has. A pool that lacks one is made for other pods, so each counts twice.
    foreign: usize,
    /// The limits that no node which holds the pods is within, and what one uses of each; zero if no node holds them.
    limits: Vec<(u32, u64)>,
}

impl Misses {
    fn count(&self) -> usize {
        let single = [self.taint, self.room, !self.limits.is_empty()];
        single.into_iter().map(usize::from).sum::<usize>() + self.labels + 2 * self.foreign
    }

    /// The first stage that fails: taints, labels or room.
    fn stage(&self) -> usize {
        match self {
            Self { taint: true, .. } => 0,
            Self { labels: 1.., .. } => 1,
            _ => 2,
        }
    }

    /// Describes each of them, because a change that leaves another in place does not help.
    fn sentence(&self, inputs: &UnplacedInputs<'_, '_>, class: &PodClass<'_>, at: usize) -> String {
        let (mut all, with_less) = self.words(inputs, class, at);
        if !inputs.is_of_gang {
            let widened = beyond_if_wider(inputs, class, at, &all).or(with_less);
            let limits = widened.as_ref().unwrap_or(&self.limits);
            let sentence =
                |(limit, least): &(u32, u64)| inputs.limits.sentence(*limit, inputs.supply, *least);
            all.extend(limits.iter().map(sentence));
        }
        all.join("; besides, ")
    }

    /// Describes all but the limits. Returns also the limits that stay if the pods ask for less, if they are advised to.
    fn words(
        &self,
        inputs: &UnplacedInputs<'_, '_>,
        class: &PodClass<'_>,
        at: usize,
    ) -> (Vec<String>, Option<Vec<(u32, u64)>>) {
        let mut all = Vec::new();
        if self.taint {
            all.extend(taint_misses(&class.spec.tolerations, inputs.supply.pools[at].pool));
        }
        let mut with_room = false;
        if self.labels > 0 {
            let (words, room_too) = match other_miss(inputs, class, at) {
                Some(words) => (words, false),
                None => labels_miss(inputs, class, at, inputs.wider(at, class), self.relaxed.as_ref()),
            };
            all.push(words);
            with_room = room_too;
        }
        let mut with_less = None;
        if (self.room && !with_room) || all.is_empty() {
            let (words, limits) = room_miss(inputs, class, at);
            all.push(words);
            with_less = limits;
        }
        (all, with_less)
    }
}

fn misses(inputs: &UnplacedInputs<'_, '_>, class: &PodClass<'_>, at: usize) -> Misses {
    let UnplacedInputs { supply, admissions, .. } = *inputs;
    let pool = &supply.pools[at];
    let room = |offer: &PoolOffering| &supply.capacities[offer.capacity];
    let admits = |offer: &PoolOffering| inputs.meets_labels(at, class, offer);
    let is_admitted = pool.offers.iter().any(admits);
    let has_room = |offer: &&PoolOffering| class.requests.fits(room(offer));
    let relaxed = if is_admitted { None } else { inputs.relaxed(at, class) };
    let labels = match &relaxed {
        _ if is_admitted => 0,
        Some(relaxed) => relaxed.alternatives.first().map_or(1, Vec::len),
        None => unmet(class.spec, at, supply).max(1),
    };
    let limits = match &relaxed {
        Some(relaxed) if !relaxed.alternatives.is_empty() => relaxed.limits.clone(),
        _ => beyond_limits(inputs, class, at).unwrap_or_default(),
    };
    Misses {
        taint: !admissions.tolerated(at, class.signature),
        labels,
        relaxed,
        // Offerings that the labels exclude do not help.
        room: !pool.offers.iter().filter(|offer| !is_admitted || admits(offer)).any(|offer| has_room(&offer)),
        foreign: class.requests.iter().filter(|(name, wanted)| *wanted > 0 && supply.lacks(at, name)).count(),
        limits,
    }
}

/// Returns the limits that would keep the pods off the type that a pool is advised to buy, with what one node uses of each; `None` if
/// the advice names no such type.
fn beyond_if_wider(
    inputs: &UnplacedInputs<'_, '_>,
    class: &PodClass<'_>,
    at: usize,
    advice: &[String],
) -> Option<Vec<(u32, u64)>> {
    Some(inputs.beyond_of(at, named_type(inputs, class, at, advice)?, class))
}

/// Returns the type that a pool is advised to buy.
fn named_type<'s>(
    inputs: &UnplacedInputs<'s, '_>,
    class: &PodClass<'_>,
    at: usize,
    advice: &[String],
) -> Option<WiderType<'s>> {
    let is_named = |kind: &WiderType<'_>| {
        let words = format!("may buy {kind}");
        advice.iter().any(|one| one.contains(&words))
    };
    inputs.wider(at, class).or_else(|| inputs.wider_with_labels(at, class)).filter(is_named)
}

/// Returns the limits that would keep the pods off a pool even without what does now, if each of its offerings that come closest to
/// holding them is beyond one. Returns also what a node with room for them uses of each; zero if there is none.
fn beyond_limits(
    inputs: &UnplacedInputs<'_, '_>,
    class: &PodClass<'_>,
    at: usize,
) -> Option<Vec<(u32, u64)>> {
    let supply = inputs.supply;
    let sold: Vec<&PoolOffering> =
        supply.pools[at].offers.iter().filter(|offer| offer.availability.is_sold_in_time()).collect();
    let fits = |offer: &&PoolOffering| inputs.would_fit(at, class, offer);
    let admits = |offer: &&PoolOffering| inputs.meets_labels(at, class, offer);
    let fitting: Vec<&PoolOffering> = sold.iter().copied().filter(fits).collect();
    let holding: Vec<&PoolOffering> = fitting.iter().copied().filter(admits).collect();
    let advised = advised(class.spec, at, supply);
    let would_hold: Vec<&PoolOffering> = fitting
        .iter()
        .copied()
        .filter(|offer| {
            let labels = supply.labels(at, offer.offering);
            advised.iter().all(|wanted| rules::matches(wanted, &labels))
        })
        .collect();
    let has_room = !fitting.is_empty();
    let closest = [holding, would_hold, fitting, sold].into_iter().find(|offers| !offers.is_empty())?;
    let beyond =
        |offer: &PoolOffering| (supply.price_in_time(at, offer), inputs.beyond_one(at, offer, class));
    let nearest = nearest_beyond(&closest.into_iter().map(beyond).collect::<Vec<_>>(), None)?;
    Some(nearest.into_iter().map(|(limit, uses)| (limit, if has_room { uses } else { 0 })).collect())
}
