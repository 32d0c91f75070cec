//! The pool that comes closest to holding unplaced pods: the one that the fewest things keep from it.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use poolwright_catalog::ResourceName;
use poolwright_terms::Taint;
use poolwright_terms::labels::DECIDED_BY_OFFERING;

use crate::model::{Pool, Requirement, Toleration};
use crate::plan::pack::classes::PodClass;
use crate::plan::unplaced::beyond::nearest_beyond;
use crate::plan::unplaced::inputs::UnplacedInputs;
use crate::plan::unplaced::labels::{Want, enforced_miss, labels_miss, unmet, wants};
use crate::plan::unplaced::pools::{may_be_in, problem_of};
use crate::plan::unplaced::room::room_miss;
use crate::plan::unplaced::volumes;
use crate::rules::{self, NewNodeLabels, format};
use crate::supply::offerings::PoolOffering;

/// Describes the closest pool and everything that keeps the pods off it. Only the pools at these indices count, or all pools if
/// there are none. A pool that cannot be used now is named too, if not more things keep the pods off it.
pub(crate) fn nearest(
    inputs: &UnplacedInputs<'_, '_>,
    class: &PodClass<'_>,
    mut wanted: Vec<usize>,
) -> String {
    let supply = inputs.supply;
    if wanted.is_empty() {
        wanted.extend(0..supply.pools.len());
    }
    // Of equally close pools, it is the one that fails last, then the one with the highest weight, then the first.
    let closest = wanted.into_iter().map(|at| (misses(inputs, class, at), at)).min_by_key(|(misses, at)| {
        (misses.count(), Reverse(misses.stage()), Reverse(weight(inputs, *at)), *at)
    });
    let unusable = unusable(inputs, class);
    let Some((misses, at)) = closest else {
        return unusable.map_or("no NodePool exists; create one".to_owned(), |(_, problem)| problem);
    };
    match unusable {
        Some((fewer, problem)) if fewer < misses.count() => problem,
        Some((same, problem)) if same == misses.count() => {
            format!("{}; besides, {problem}", misses.sentence(inputs, class, at))
        }
        _ => misses.sentence(inputs, class, at),
    }
}

fn weight(inputs: &UnplacedInputs<'_, '_>, at: usize) -> u32 {
    inputs.supply.pools[at].pool.weight
}

/// The things that keep pods off a pool.
struct Misses {
    /// Whether the pods do not tolerate a taint.
    taint: bool,
    /// The number of requirements on labels that no offering meets, or one if none meets all of them.
    labels: usize,
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
        let mut all = Vec::new();
        if self.taint {
            all.extend(taint_misses(&class.spec.tolerations, inputs.supply.pools[at].pool));
        }
        let mut with_room = false;
        if self.labels > 0 {
            let other =
                volumes::miss(inputs, class, at).or_else(|| enforced_miss(class.spec, at, inputs.supply));
            let (words, room_too) = match other {
                Some(words) => (words, false),
                None => labels_miss(inputs, class, at, inputs.wider(at, class)),
            };
            all.push(words);
            with_room = room_too;
        }
        if (self.room && !with_room) || all.is_empty() {
            all.push(room_miss(inputs, class, at));
        }
        let sentence = |(limit, least): &(u32, u64)| inputs.limits.sentence(*limit, inputs.supply, *least);
        all.extend(self.limits.iter().map(sentence));
        all.join("; besides, ")
    }
}

/// Describes the taints of a pool that the pods do not tolerate: those that stay, and those that an agent removes.
fn taint_misses(tolerations: &[Toleration], pool: &Pool) -> Vec<String> {
    let named = pool.in_words();
    let (of_agents, lasting): (Vec<&Taint>, Vec<&Taint>) =
        rules::untolerated(tolerations, &pool.taints).partition(|taint| rules::is_of_agent(taint));
    let mut all = Vec::new();
    if !lasting.is_empty() {
        let change = if lasting.len() == 1 {
            "add a toleration, or a pool without the taint"
        } else {
            "add a toleration of each, or a pool without these taints"
        };
        all.push(format!("does not tolerate {} of {named}; {change}", format::taints(&lasting)));
    }
    if !of_agents.is_empty() {
        let (agents, them) =
            if of_agents.len() == 1 { ("an agent removes", "it") } else { ("agents remove", "them") };
        all.push(format!(
            "does not tolerate {} of {named}, which {agents}; list {them} under startupTaints of the pool instead of taints",
            format::taints(&of_agents)
        ));
    }
    all
}

fn misses(inputs: &UnplacedInputs<'_, '_>, class: &PodClass<'_>, at: usize) -> Misses {
    let UnplacedInputs { supply, admissions, .. } = *inputs;
    let pool = &supply.pools[at];
    let room = |offer: &PoolOffering| &supply.capacities[offer.capacity];
    let admits = |offer: &PoolOffering| inputs.meets_labels(at, class, offer);
    let lacks = |name: &ResourceName| pool.offers.iter().all(|offer| room(offer).get(name.as_str()) == 0);
    let is_admitted = pool.offers.iter().any(admits);
    let has_room = |offer: &&PoolOffering| class.requests.fits(room(offer));
    Misses {
        taint: !admissions.tolerated(at, class.signature),
        labels: if is_admitted { 0 } else { unmet(class.spec, at, supply).max(1) },
        // Offerings that the labels exclude do not help.
        room: !pool.offers.iter().filter(|offer| !is_admitted || admits(offer)).any(|offer| has_room(&offer)),
        foreign: class.requests.iter().filter(|(name, wanted)| *wanted > 0 && lacks(name)).count(),
        limits: beyond_limits(inputs, class, at).unwrap_or_default(),
    }
}

/// Returns the limits that would keep the pods off a pool even without what does now, if each of its offerings that come closest to
/// holding them is beyond one. Returns also what a node with room for them uses of each; zero if there is none.
fn beyond_limits(
    inputs: &UnplacedInputs<'_, '_>,
    class: &PodClass<'_>,
    at: usize,
) -> Option<Vec<(u32, u64)>> {
    let UnplacedInputs { supply, limits, .. } = *inputs;
    let sold: Vec<&PoolOffering> =
        supply.pools[at].offers.iter().filter(|offer| offer.availability.is_sold()).collect();
    let fits = |offer: &&PoolOffering| class.requests.fits(&supply.capacities[offer.capacity]);
    let admits = |offer: &&PoolOffering| inputs.meets_labels(at, class, offer);
    let fitting: Vec<&PoolOffering> = sold.iter().copied().filter(fits).collect();
    let holding: Vec<&PoolOffering> = fitting.iter().copied().filter(admits).collect();
    let has_room = !fitting.is_empty();
    let closest = [holding, fitting, sold].into_iter().find(|offers| !offers.is_empty())?;
    let beyond = |offer: &PoolOffering| {
        let price = offer.availability.price();
        (price, limits.beyond(&limits.uses(supply, at, offer.offering, price)))
    };
    let nearest = nearest_beyond(&closest.into_iter().map(beyond).collect::<Vec<_>>(), None)?;
    Some(nearest.into_iter().map(|(limit, uses)| (limit, if has_room { uses } else { 0 })).collect())
}

/// Returns the pool that cannot be used now and that the fewest things besides keep the pods off, with their number and its
/// problem. Its offerings are unknown, so only its taints, labels and requirements are compared.
fn unusable(inputs: &UnplacedInputs<'_, '_>, class: &PodClass<'_>) -> Option<(usize, String)> {
    let wants = wants(class.spec);
    let candidates = inputs.snapshot.pools.values().filter(|pool| !pool.deleting && pool.replicas.is_none());
    candidates
        .filter(|pool| may_be_in(class.spec, &pool.name))
        .filter_map(|pool| {
            let problem = problem_of(inputs.supply, &pool.name)?;
            let taint = rules::check_taints(&class.spec.tolerations, &pool.taints).is_err();
            let refused = |wants: &Vec<Want<'_>>| wants.iter().filter(|want| !may_meet(pool, want)).count();
            let labels = wants.iter().map(refused).min().unwrap_or(1);
            Some((1 + usize::from(taint) + labels, problem))
        })
        .min_by_key(|(count, _)| *count)
}

/// Returns whether some offering could meet the requirement at a pool whose offerings are unknown.
fn may_meet(pool: &Pool, want: &Want<'_>) -> bool {
    if DECIDED_BY_OFFERING.contains(&want.key) {
        let own = pool.requirements.iter().filter(|own| own.key == want.key).cloned();
        let both: Vec<Requirement> = own.chain([want.requirement.clone()]).collect();
        return rules::contradiction(&both).is_none();
    }
    let none = BTreeMap::new();
    let labels = NewNodeLabels { offering: &none, template: &pool.labels, pool: &pool.name };
    rules::matches(&want.requirement, &labels)
}
