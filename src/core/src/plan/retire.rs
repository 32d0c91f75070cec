//! Decides which nodes retire: they admit no newcomers, except pods that a plan wants there, and are terminated when their pods
//! have ended.
//!
//! Free room is not free. A pod that stays longer than the others keeps the whole node, so an expensive node that small pods fill
//! never ends. The planner weighs this for each pod that it plans, but the scheduler does not: it puts a pod on any open node. So
//! a node is open only while a newcomer does no harm there: while none of the recent pods would run much cheaper on a node of its
//! own.
//!
//! A closed node must not be the reason why a pod waits. The planner itself puts pods there that nothing else serves. For the pods
//! that it does not plan, nodes with room stay open ([`Safety`]).

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use poolwright_catalog::{Usd, UsdPerHour};
use poolwright_terms::keys::RESERVED_TAINT;
use poolwright_terms::{Taint, TaintEffect};

use crate::model::plan::{UnplacedPod, UnplacedReason};
use crate::model::{
    ClaimName, DaemonSet, Life, Pod, PodRole, PodSpec, PricesElsewhere, Retirement, Retirements,
};
use crate::plan::context::PlanContext;
use crate::plan::own_nodes;
use crate::plan::pack::horizon::{self, cost};
use crate::plan::pack::kept_room;
use crate::plan::pack::room_lives::{self, RoomLife};
use crate::rules;
use crate::supply::limits::Limits;
use crate::supply::offerings::Supply;
use crate::supply::rooms::Room;
use crate::supply::spot_mix::{self, SpotMix};

/// The number of recent pods that stand for the pods to come.
const RECENT: usize = 200;
/// The number of kinds of recent pods that are looked at, the most frequent ones.
const KINDS: usize = 32;
/// The time after which the decision is made again.
const RENEWED: SignedDuration = SignedDuration::from_mins(1);
/// The time after which the prices of recent pods' own nodes are worked out again.
const PRICES_LAST: SignedDuration = SignedDuration::from_mins(10);
/// A node closes if a newcomer costs more than this many percent of its own node's cost. It opens again at 100 percent.
const CLOSE_ABOVE: u128 = 110;

/// What keeps nodes open: pods that need their room and get it from nobody else.
struct Safety<'a> {
    /// Recent pods for which no node can be bought now. The next pods like them would wait.
    unsold: Vec<&'a Pod>,
    /// Pods that wait and have no place in the plan. The scheduler may know a place for them.
    unplaced: Vec<&'a Pod>,
}

impl Safety<'_> {
    /// Returns whether a pod may need this room.
    fn needs(&self, room: &Room<'_>) -> bool {
        self.unsold.iter().chain(&self.unplaced).any(|pod| {
            pod.spec.requests.fits(&room.free) && rules::admits(&pod.spec, &room.labels, &room.taints).is_ok()
        })
    }
}

/// A kind of pod that has come lately.
struct Newcomer<'a> {
    pod: &'a Pod,
    life: Life,
    /// The cost of the cheapest node for it alone, until it has ended.
    elsewhere: Usd,
    /// The price of this node.
    price: UsdPerHour,
}

impl PlanContext<'_> {
    /// Returns which nodes retire. `unplaced` are the pods to which the plan gives no place.
    pub(crate) fn retirements(&self, supply: &Supply<'_>, unplaced: &[UnplacedPod]) -> Arc<Retirements> {
        let before = &self.snapshot.retirements;
        if !self.horizons.is_known() {
            return Arc::default();
        }
        if before
            .decided
            .is_some_and(|at| !before.inherited && self.now.duration_since(at).abs() < RENEWED / 2)
        {
            return before.clone();
        }
        // A node that somebody has cordoned takes no more pods already.
        let rooms = self.rooms.all.iter().filter(|room| !room.is_cordoned()).filter_map(|room| {
            let life = room_lives::of_any_room(self.snapshot, room, self.now)?;
            Some((room.as_ref(), life))
        });
        let mut rooms: Vec<(&Room<'_>, RoomLife)> = rooms.collect();
        let mut retirements = Retirements { decided: Some(self.now), ..Retirements::default() };
        if !rooms.is_empty() {
            let limits = Limits::new(supply, self.snapshot, self.options);
            let terms =
                (self.snapshot.held_back.clone(), limits.all.iter().map(|limit| limit.left).collect());
            let fresh = |since: Timestamp| self.now.duration_since(since).abs() < PRICES_LAST;
            if before.prices.since.is_some_and(fresh) && before.prices.terms == terms {
                retirements.prices = before.prices.clone();
            } else {
                retirements.prices = Arc::new(PricesElsewhere { terms, ..PricesElsewhere::default() });
            }
            let (newcomers, unsold) = self.newcomers(supply, &limits, &mut retirements.prices);
            if self.keeps_room {
                let with_lives = rooms.iter_mut().map(|(room, life)| (0, *room, life));
                self.note_captives(supply, &limits, with_lives, &[]);
            }
            let unplaced = unplaced.iter().filter(|left| may_be_bound(left.reason));
            let unplaced = unplaced.filter_map(|left| Some(self.snapshot.pods.get(&left.pod)?.as_ref()));
            let safety = Safety { unsold, unplaced: unplaced.collect() };
            let mixes = spot_mix::of_pools(supply, self.snapshot);
            let judged = rooms.iter().filter_map(|(room, life)| {
                let name = room.claim()?;
                let found = self.retirement(room, life, name, &newcomers)?;
                let is_safe = !safety.needs(room)
                    && !self.lacks_daemon(room)
                    && !self.holds_floor(name, supply, &mixes);
                is_safe.then(|| (name.clone(), found))
            });
            retirements.claims = judged.collect();
        }
        Arc::new(retirements)
    }

    /// Returns the time at which to decide again which nodes retire, even if nothing changes: pods age.
    pub(crate) fn retirements_expire(&self) -> Option<Timestamp> {
        let nodes = !self.snapshot.claims.is_empty();
        (self.horizons.is_known() && nodes).then(|| self.now.checked_add(RENEWED).unwrap_or(Timestamp::MAX))
    }

    fn retirement(
        &self,
        room: &Room<'_>,
        life: &RoomLife,
        name: &ClaimName,
        newcomers: &[Newcomer<'_>],
    ) -> Option<Retirement> {
        let claim = self.snapshot.claims.get(name)?;
        let retires = self.snapshot.retirements.of(name, self.now).is_some();
        let percent = if retires { 100 } else { CLOSE_ABOVE };
        let room_for_all = &claim.current_offering().allocatable;
        let kept = life.captives.as_ref().and_then(|captives| captives.kept(life.price, &room.free));
        let loses = newcomers.iter().filter_map(|newcomer| {
            let spec = &newcomer.pod.spec;
            if !spec.requests.fits(room_for_all) || rules::admits(spec, &room.labels, &room.taints).is_err() {
                return None;
            }
            let extension = life.ends.extension(&newcomer.life);
            let here = cost(life.price, extension);
            let takes = |kept: &&kept_room::Kept<'_>| {
                spec.requests.fits(&room.free)
                    && !kept.spares(&spec.requests)
                    && !kept_room::needs(Some(newcomer.price), life.price)
            };
            let displaced = kept.as_ref().filter(takes).map_or(Usd::default(), |kept| {
                kept.worth(&spec.requests, kept_room::taken(&life.ends, &newcomer.life))
            });
            ((here.0 + displaced.0) * 100 > newcomer.elsewhere.0 * percent).then(|| Retirement {
                newcomer: newcomer.pod.key.clone(),
                extension,
                here,
                displaced,
                elsewhere: newcomer.elsewhere,
                ends_in: life.ends.mean(),
            })
        });
        // The one that loses most is the best reason.
        let lost = |one: &Retirement| (one.here.0 + one.displaced.0).saturating_sub(one.elsewhere.0);
        loses.max_by_key(|one| (lost(one), Reverse(one.newcomer.clone())))
    }

    /// Returns whether the pool of an on-demand node could have no more spot nodes without it. Newcomers would need such a node again.
    fn holds_floor(&self, name: &ClaimName, supply: &Supply<'_>, mixes: &BTreeMap<usize, SpotMix>) -> bool {
        if mixes.is_empty() {
            return false;
        }
        let Some(claim) = self.snapshot.claims.get(name) else { return false };
        let at = supply.pools.iter().position(|offered| offered.pool.name == claim.pool);
        let floor = at.and_then(|at| supply.pools[at].pool.spot.on_demand_floor);
        let mix = at.and_then(|at| mixes.get(&at));
        let Some((floor, mix)) = floor.zip(mix) else { return false };
        let without = SpotMix { on_demand: mix.on_demand.saturating_sub(1), ..mix.clone() };
        !spot_mix::is_spot(&claim.current_offering().offering) && without.lacks(floor) > 0
    }

    /// Returns whether a DaemonSet has no pod on the node yet, and its pods cannot come while the node is closed.
    fn lacks_daemon(&self, room: &Room<'_>) -> bool {
        let there = room.node.and_then(|node| self.snapshot.pods.on_node(node)).map(AsRef::as_ref);
        let lacking = self.daemons.outstanding(&room.labels, &room.taints, there);
        let closed =
            Taint { key: RESERVED_TAINT.to_owned(), value: String::new(), effect: TaintEffect::NoSchedule };
        let kept_out = |set: &DaemonSet| {
            rules::check_daemonset_taints(&set.spec.tolerations, std::slice::from_ref(&closed)).is_err()
        };
        self.daemons.sets(&lacking).any(kept_out)
    }

    /// Returns the kinds of pods that came last, and those of them for which no node can be bought now.
    fn newcomers(
        &self,
        supply: &Supply<'_>,
        limits: &Limits,
        prices: &mut Arc<PricesElsewhere>,
    ) -> (Vec<Newcomer<'_>>, Vec<&Pod>) {
        let bound = self.snapshot.pods.bound();
        let all = bound.chain(self.demand.pending.iter().map(|want| want.pod));
        let mut recent: Vec<&Pod> = all.filter(|pod| pod.role == PodRole::Workload).collect();
        if recent.len() > RECENT {
            recent.select_nth_unstable_by(RECENT, |a, b| (b.created, &a.key).cmp(&(a.created, &b.key)));
            recent.truncate(RECENT);
        }
        recent.sort_unstable_by(|a, b| (b.created, &a.key).cmp(&(a.created, &b.key)));
        let mut kinds: BTreeMap<&PodSpec, (usize, &Pod)> = BTreeMap::new();
        for pod in recent {
            kinds.entry(&pod.spec).or_insert((0, pod)).0 += 1;
        }
        let mut kinds: Vec<(usize, &Pod)> = kinds.into_values().collect();
        kinds.sort_by_key(|(count, pod)| (Reverse(*count), &pod.key));
        kinds.truncate(KINDS);
        let unknown = |spec: &PodSpec| !prices.by_spec.contains_key(spec);
        let unknown: Vec<&PodSpec> =
            kinds.iter().map(|(_, pod)| &*pod.spec).filter(|spec| unknown(spec)).collect();
        if !unknown.is_empty() {
            let prices = Arc::make_mut(prices);
            prices.since.get_or_insert(self.now);
            for (spec, found) in unknown.iter().zip(own_nodes::by_pool(supply, limits, &unknown)) {
                prices.by_spec.insert((*spec).clone(), found);
            }
        }
        let (mut newcomers, mut unsold) = (Vec::new(), Vec::new());
        for (_, pod) in kinds {
            let life = self.snapshot.lives.of_new(pod, self.now).life;
            let offers = prices.by_spec.get(&*pod.spec).into_iter().flatten();
            let costs = offers.filter_map(|(pool, price)| {
                let paid = horizon::paid(&life, self.snapshot.pools.get(pool)?);
                Some((cost(*price, paid), *price))
            });
            match costs.min() {
                Some((elsewhere, price)) => newcomers.push(Newcomer { pod, life, elsewhere, price }),
                None => unsold.push(pod),
            }
        }
        (newcomers, unsold)
    }
}

/// Returns whether the scheduler may bind a pod that the plan leaves out for this reason. It binds no pod that waits for
/// something else than room.
fn may_be_bound(reason: UnplacedReason) -> bool {
    match reason {
        UnplacedReason::NoUsablePool
        | UnplacedReason::NoOfferingFits
        | UnplacedReason::LimitReached
        | UnplacedReason::NamespaceLimitReached
        | UnplacedReason::OfferingsHeldBack
        | UnplacedReason::PriceUnknown
        | UnplacedReason::UnmodelledRule
        | UnplacedReason::TopologyRule
        | UnplacedReason::LowPriority
        | UnplacedReason::OtherScheduler => true,
        UnplacedReason::PodGroupMissing
        | UnplacedReason::GangIncomplete
        | UnplacedReason::PodGroupPending
        | UnplacedReason::VolumeUnusable
        | UnplacedReason::VolumePending
        | UnplacedReason::PreemptionInProgress
        | UnplacedReason::SchedulingGated
        | UnplacedReason::NotYetTried => false,
    }
}
