//! Decides which nodes retire: they admit no newcomers, except pods that a plan wants there, and are terminated when their pods
//! have ended.
//!
//! Free room is not free. A pod that stays longer than the others keeps the whole node, so an expensive node that small pods fill
//! never ends. The planner weighs this for each pod that it plans, but the scheduler does not: it puts a pod on any open node. So
//! a node is open only while a newcomer does no harm there: while none of the recent pods would run much cheaper on a node of its
//! own.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use poolwright_catalog::{Usd, UsdPerHour};

use crate::model::{
    ClaimName, Life, Pod, PodRole, PodSpec, PoolName, PricesElsewhere, Retirement, Retirements,
};
use crate::plan::context::PlanContext;
use crate::plan::pack::horizon;
use crate::plan::pack::room_lives::{self, RoomLife};
use crate::rules;
use crate::rules::pin::Pin;
use crate::supply::offerings::{Admissions, Supply};
use crate::supply::rooms::Room;

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

/// A kind of pod that has come lately.
struct Newcomer<'a> {
    pod: &'a Pod,
    life: Life,
    /// The cost of the cheapest node for it alone, until it has ended.
    elsewhere: Usd,
}

impl PlanContext<'_> {
    /// Returns which nodes retire.
    pub(crate) fn retirements(&self, supply: &Supply<'_>) -> Arc<Retirements> {
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
        let rooms = self.rooms.all.iter().filter_map(|room| {
            let life = room_lives::of_any_room(self.snapshot, room, self.now)?;
            Some((room.as_ref(), life))
        });
        let rooms: Vec<(&Room<'_>, RoomLife)> = rooms.collect();
        let mut retirements = Retirements { decided: Some(self.now), ..Retirements::default() };
        if !rooms.is_empty() {
            let fresh = |since: Timestamp| self.now.duration_since(since).abs() < PRICES_LAST;
            if before.prices.since.is_some_and(fresh) {
                retirements.prices = before.prices.clone();
            }
            let newcomers = self.newcomers(supply, &mut retirements.prices);
            let judged = rooms.iter().filter_map(|(room, life)| {
                let name = room.claim()?;
                Some((name.clone(), self.retirement(room, life, name, &newcomers)?))
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
        let loses = newcomers.iter().filter_map(|newcomer| {
            let spec = &newcomer.pod.spec;
            if !spec.requests.fits(room_for_all) || rules::admits(spec, &room.labels, &room.taints).is_err() {
                return None;
            }
            let extension = life.ends.extension(&newcomer.life);
            let here = cost(life.price, extension);
            (here.0 * 100 > newcomer.elsewhere.0 * percent).then(|| Retirement {
                newcomer: newcomer.pod.key.clone(),
                extension,
                here,
                elsewhere: newcomer.elsewhere,
                ends_in: life.ends.mean(),
            })
        });
        // The one that loses most is the best reason.
        loses.max_by_key(|one| (one.here.0 - one.elsewhere.0.min(one.here.0), Reverse(one.newcomer.clone())))
    }

    /// Returns the kinds of pods that came last.
    fn newcomers(&self, supply: &Supply<'_>, prices: &mut Arc<PricesElsewhere>) -> Vec<Newcomer<'_>> {
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
            kinds.iter().map(|(_, pod)| &pod.spec).filter(|spec| unknown(spec)).collect();
        if !unknown.is_empty() {
            let prices = Arc::make_mut(prices);
            prices.since.get_or_insert(self.now);
            for (spec, found) in unknown.iter().zip(prices_of(supply, &unknown)) {
                prices.by_spec.insert((*spec).clone(), found);
            }
        }
        let newcomers = kinds.into_iter().filter_map(|(_, pod)| {
            let life = self.snapshot.lives.of_new(pod, self.now).life;
            let costs = prices.by_spec.get(&pod.spec)?.iter().filter_map(|(pool, price)| {
                Some(cost(*price, horizon::paid(&life, self.snapshot.pools.get(pool)?)))
            });
            let elsewhere = costs.min()?;
            Some(Newcomer { pod, life, elsewhere })
        });
        newcomers.collect()
    }
}

/// Returns the lowest price of a node for one pod with each of these specs, by pool.
fn prices_of(supply: &Supply<'_>, specs: &[&PodSpec]) -> Vec<Vec<(PoolName, UsdPerHour)>> {
    let pin = Pin::default();
    let signatures: Vec<(&PodSpec, &Pin)> = specs.iter().map(|spec| (*spec, &pin)).collect();
    let admissions = Admissions::new(supply, &signatures);
    let of = |(signature, spec): (usize, &&PodSpec)| {
        let lowest = supply.pools.iter().enumerate().filter_map(|(pool, offered)| {
            let prices = offered.offers.iter().filter_map(|offer| {
                let price = offer.availability.weighed()?;
                let fits = admissions.admits(pool, signature, offer.offering)
                    && spec.requests.fits(&supply.capacities[offer.capacity]);
                fits.then_some(price)
            });
            Some((offered.pool.name.clone(), prices.min()?))
        });
        lowest.collect()
    };
    specs.iter().enumerate().map(of).collect()
}

fn cost(price: UsdPerHour, time: SignedDuration) -> Usd {
    Usd::of(Some(price), Duration::try_from(time).unwrap_or_default())
}
