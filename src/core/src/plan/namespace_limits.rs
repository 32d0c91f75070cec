//! Limits of namespaces: holds back pods for which a plan would buy more than their namespace may use.
//!
//! Pods of several namespaces may share a node, and the share in its price depends on all of them. So the solver cannot keep these
//! limits. Instead, a plan is made, what each namespace would use is counted, pods beyond a limit are held back, and the plan is made
//! again without them. Each round holds back more pods, so the rounds end. A namespace whose monthly budget is spent counts as one that may
//! have no further node.
//!
//! The limits are on buying. Pods keep places of earlier plans, and the scheduler may bind held pods wherever there is room.

mod baselines;
mod besides;
mod fewer_nodes;
mod gangs;
mod units;

use std::collections::{BTreeMap, BTreeSet};

use jiff::SignedDuration;
use poolwright_catalog::{OfferingId, RankedOffering, ResourceList, UsdPerHour};
use poolwright_solver::{FirstHalf, StopSignal};
use poolwright_terms::CapacityType;

use crate::demand::{Successor, planned_at};
use crate::model::plan::{Plan, UnplacedPod, UnplacedReason};
use crate::model::{CeilingOrigin, NamespaceCeiling, NamespaceLimit, ObjectKey, Pod, PodKey, PodSpec};
use crate::plan::attempt::Attempt;
use crate::plan::context::PlanContext;
use crate::plan::namespace_limits::units::{Place, Unit};
use crate::plan::pack::horizon::Horizons;
use crate::plan::pending::PendingPod;
use crate::rules::format;
use crate::supply::namespace_use::{NamespaceUse, Part, SharedNode, counts, of_standing};
use crate::supply::offerings::Supply;

/// The number of rounds after which nothing more is bought for a namespace that is still beyond a limit.
const ROUNDS: usize = 8;

/// The longest time until the next plan while pods are held back. The end of another pod of the namespace makes a plan at once, unless
/// it comes while this plan is made.
const AGAIN: SignedDuration = SignedDuration::from_secs(300);

/// The pods that are held back.
type Held = BTreeMap<PodKey, Excess>;

/// The limits of each namespace with pods to plan for.
type Ceilings<'a> = BTreeMap<&'a str, Vec<NamespaceCeiling>>;

/// The limit that a pod exceeds.
#[derive(Clone, Copy, Debug)]
struct Excess {
    ceiling: NamespaceCeiling,
    /// The amount that the pod or the minimum of its gang would add; `None` if a price is unknown.
    asked: Option<u64>,
    /// Whether its whole gang is held back.
    of_gang: bool,
    /// The other limits that it exceeds, each with the amount that it would add. There are three kinds of limits.
    more: [Option<(NamespaceCeiling, u64)>; 2],
}

/// What namespaces use of nodes that stand or are on their way, and the nodes that a plan buys.
struct Accounts<'p> {
    standing: BTreeMap<&'p str, NamespaceUse>,
    new: Vec<SharedNode<'p, 'p>>,
}

impl<'a> PlanContext<'a> {
    /// Makes a plan as [`PlanContext::weigh`] does, and keeps the limits of namespaces.
    pub(crate) fn weigh_within_namespaces(
        &mut self,
        successors: &[Successor],
        supply: &Supply<'_>,
        stop: &mut dyn StopSignal,
    ) -> Attempt {
        let ceilings = self.namespace_ceilings();
        if ceilings.is_empty() {
            return self.weigh(supply, stop);
        }
        // Kept room may make a plan buy more. Then a limit holds pods back that the kept room would hold.
        self.keeps_room = false;
        let mut held = Held::new();
        let mut attempt = self.weigh_with_fewer_nodes(&ceilings, (successors, supply), &mut held, stop);
        self.tell(&held, successors, &mut attempt.plan);
        let told = self.tell_gangs(&ceilings, (successors, supply), &held, &mut attempt.plan);
        self.tell_rules(&held, &told, supply, &mut attempt.plan);
        self.judge_baselines(&ceilings, successors, &mut attempt.plan);
        attempt
    }

    /// Makes a plan, and holds pods back until it is within the limits.
    fn weigh_and_hold(
        &mut self,
        ceilings: &Ceilings<'_>,
        (successors, supply): (&[Successor], &Supply<'_>),
        held: &mut Held,
        stop: &mut dyn StopSignal,
    ) -> Attempt {
        let beyond = self.beyond_at_once(ceilings, successors);
        self.hold(beyond, held);
        // Later rounds need time, too.
        let mut attempt = self.weigh(supply, &mut FirstHalf(&mut *stop));
        for round in 1.. {
            self.leave_out_dearer(ceilings, successors, &mut attempt.plan);
            let beyond = self.beyond_in(ceilings, successors, &attempt.plan, round > ROUNDS);
            if beyond.is_empty() || stop.is_abandoned() {
                break;
            }
            self.hold(beyond, held);
            attempt = self.weigh(supply, stop);
        }
        attempt
    }

    /// Checks that no purchase exceeds a limit of a namespace, whichever alternatives are launched.
    pub(crate) fn audit_namespaces(&self, successors: &[Successor], plan: &mut Plan) {
        let ceilings = self.namespace_ceilings();
        if ceilings.is_empty() || !plan.refused.is_empty() {
            return;
        }
        let accounts = self.accounts(successors, Some(&*plan));
        let mut problems = Vec::new();
        for (namespace, ceilings) in &ceilings {
            let (standing, bought) = (accounts.standing(namespace), accounts.bought(namespace));
            for ceiling in ceilings {
                if excess(*ceiling, standing, bought, false).is_some() {
                    let NamespaceCeiling { kind, most, .. } = *ceiling;
                    problems.push(format!(
                        "namespace {namespace}: limit {} = {} would be exceeded: {} + {}",
                        kind.name(),
                        quantity(kind, most),
                        quantity(kind, standing.of(kind)),
                        quantity(kind, bought.of(kind)),
                    ));
                }
            }
        }
        drop(accounts);
        plan.refused.extend(problems);
    }

    fn namespace_ceilings(&self) -> Ceilings<'a> {
        let (stated, spent) = (&self.snapshot.namespace_limits, &self.snapshot.spent_namespaces);
        if stated.is_empty() && self.options.namespace_limits.is_empty() && spent.is_empty() {
            return Ceilings::new();
        }
        let waiting = self.demand.pending.iter().filter(|want| counts(want.pod));
        let names: BTreeSet<&'a str> = waiting.map(|want| want.pod.key.namespace()).collect();
        let of = |name: &'a str| {
            let spent = spent.get(name).and_then(|spent| spent.ceiling(self.now));
            let limits = self.options.limits_of_namespace(stated.get(name));
            (name, spent.into_iter().chain(limits).collect::<Vec<_>>())
        };
        names.into_iter().map(of).filter(|(_, ceilings)| !ceilings.is_empty()).collect()
    }

    /// Returns what namespaces use, now or after a plan.
    fn accounts<'p>(&'p self, successors: &'p [Successor], plan: Option<&'p Plan>) -> Accounts<'p> {
        let pod_of = |key: &PodKey| -> Option<&'p Pod> { Some(self.snapshot.pods.get(key)?.as_ref()) };
        let mut places: BTreeMap<&str, Vec<&'p Pod>> = BTreeMap::new();
        // Pods that wait for something else than a node keep the place of an earlier plan.
        let unplaced = plan.map_or(&self.demand.unplaced, |plan| &plan.unplaced);
        for left in unplaced.iter().filter(|left| !left.reason.is_unmet_demand()) {
            if let Some(pod) = pod_of(&left.pod)
                && let Some(target) = planned_at(self.snapshot, pod)
            {
                places.entry(target).or_default().push(pod);
            }
        }
        let Some(plan) = plan else {
            for want in &self.demand.pending {
                if let Some(target) = want.planned_at {
                    places.entry(target).or_default().push(want.pod);
                }
            }
            return Accounts { standing: of_standing(self.snapshot, &places), new: Vec::new() };
        };
        for placement in &plan.placements {
            if let Some(pod) = pod_of(&placement.pod) {
                places.entry(placement.target.name()).or_default().push(pod);
            }
        }
        // Until its successor has a place, a pod stays where it is.
        let without: BTreeSet<&PodKey> = plan.unplaced.iter().map(|left| &left.pod).collect();
        for successor in successors {
            if let Some(key) = successor.key.as_ref().filter(|key| without.contains(key))
                && let Some(pod) = pod_of(key)
            {
                places.entry(successor.from.0.as_str()).or_default().push(pod);
            }
        }
        let new = plan.claims.iter().map(|claim| {
            SharedNode::new(&claim.offerings, claim.planned_pods.iter().filter_map(pod_of), true)
        });
        Accounts { standing: of_standing(self.snapshot, &places), new: new.collect() }
    }

    /// Returns the pods for which nothing can be bought within the limits, whatever else is bought: a pod without a place needs at
    /// least one node at some price.
    fn beyond_at_once(&self, ceilings: &Ceilings<'_>, successors: &[Successor]) -> Vec<(PodKey, Excess)> {
        let node = some_node();
        let new = vec![SharedNode::new([&node], None::<&Pod>, true)];
        let accounts = Accounts { new, ..self.accounts(successors, None) };
        let place = |want: &PendingPod<'_>| want.planned_at.is_none().then_some(0_usize);
        self.beyond(ceilings, (&place, None), |namespace, ceilings, units| {
            let alone = |unit| excesses(namespace, ceilings, &accounts, std::slice::from_ref(unit));
            let mut found = units.iter().flat_map(alone).collect::<Vec<_>>();
            let mut held = BTreeMap::new();
            for (unit, found) in units.iter().zip(&mut found) {
                follow_minimum(unit, found, &mut held);
            }
            found
        })
    }

    /// Returns the pods for which a plan buys nodes beyond a limit. If it `gives_up`, these are all pods on new nodes of namespaces
    /// that are beyond one.
    fn beyond_in(
        &self,
        ceilings: &Ceilings<'_>,
        successors: &[Successor],
        plan: &Plan,
        gives_up: bool,
    ) -> Vec<(PodKey, Excess)> {
        let claims = plan.claims.iter().enumerate();
        let on_new = claims.flat_map(|(at, claim)| claim.planned_pods.iter().map(move |key| (key, at)));
        let on_new: BTreeMap<&PodKey, usize> = on_new.collect();
        let accounts = self.accounts(successors, Some(plan));
        let place = |want: &PendingPod<'_>| on_new.get(&want.pod.key).copied();
        self.beyond(ceilings, (&place, Some(plan)), |namespace, ceilings, units| {
            let mut found = excesses(namespace, ceilings, &accounts, units);
            let first = found.iter().flatten().next().copied();
            if gives_up && first.is_some() {
                found.fill(first);
            }
            found
        })
    }

    /// Returns the pods that are beyond a limit, as `judge` finds for the units of each namespace.
    fn beyond(
        &self,
        ceilings: &Ceilings<'_>,
        (place, plan): (&Place<'_>, Option<&Plan>),
        judge: impl Fn(&str, &[NamespaceCeiling], &[Unit<'a>]) -> Vec<Option<Excess>>,
    ) -> Vec<(PodKey, Excess)> {
        let mut beyond = Vec::new();
        for (namespace, ceilings) in ceilings {
            let mut units = self.units(namespace, place, plan);
            if ceilings.iter().any(|ceiling| ceiling.kind == NamespaceLimit::Nodes) {
                Unit::fuller_first(&mut units);
            }
            for (unit, excess) in units.iter().zip(judge(namespace, ceilings, &units)) {
                let Some(excess) = excess else { continue };
                beyond.extend(unit.pods.iter().map(|pod| (pod.key.clone(), excess)));
            }
        }
        beyond
    }

    /// Holds pods back: no node is bought for them.
    fn hold(&mut self, beyond: Vec<(PodKey, Excess)>, held: &mut Held) {
        if beyond.is_empty() {
            return;
        }
        for (pod, excess) in beyond {
            let (reason, message) =
                (UnplacedReason::NamespaceLimitReached, excess.sentence(pod.namespace(), None));
            self.demand.unplaced.push(UnplacedPod { pod: pod.clone(), reason, message });
            held.insert(pod, excess);
        }
        self.demand.pending.retain(|want| !held.contains_key(&want.pod.key));
        self.renew_horizons();
    }

    fn renew_horizons(&mut self) {
        self.horizons = Horizons::new(self.snapshot, self.options, &self.demand.pending, self.now);
    }

    /// Leaves out alternatives of new nodes whose shares are larger than those of the planned offerings, for namespaces that are
    /// beyond their limit on money. They give up the choice rather than nodes.
    fn leave_out_dearer(&self, ceilings: &Ceilings<'_>, successors: &[Successor], plan: &mut Plan) {
        let accounts = self.accounts(successors, Some(&*plan));
        let is_beyond = |namespace: &str, ceiling: &NamespaceCeiling| {
            let used = accounts.standing(namespace).plus(accounts.bought(namespace));
            ceiling.kind == NamespaceLimit::UsdPerHour && used.of(ceiling.kind) > ceiling.most
        };
        let beyond = ceilings.iter().filter(|(name, all)| all.iter().any(|one| is_beyond(name, one)));
        let beyond: BTreeSet<&str> = beyond.map(|(name, _)| *name).collect();
        if beyond.is_empty() {
            return;
        }
        let kept: Vec<Vec<bool>> = accounts.new.iter().map(|node| kept_offerings(node, &beyond)).collect();
        drop(accounts);
        for (claim, kept) in plan.claims.iter_mut().zip(kept) {
            // What `minValues` asks for stays.
            if claim.together == 0 && claim.choice.is_empty() {
                let mut kept = kept.into_iter();
                claim.offerings.retain(|_| kept.next().unwrap_or(true));
            }
        }
    }

    /// Tells of held pods what their namespaces use after the plan, and says when to plan again.
    fn tell(&self, held: &Held, successors: &[Successor], plan: &mut Plan) {
        if held.is_empty() {
            return;
        }
        let accounts = self.accounts(successors, Some(&*plan));
        let namespaces: BTreeSet<&str> = held.keys().map(PodKey::namespace).collect();
        let used = |name: &str| accounts.standing(name).plus(accounts.bought(name));
        let used: BTreeMap<&str, NamespaceUse> =
            namespaces.into_iter().map(|name| (name, used(name))).collect();
        drop(accounts);
        for left in &mut plan.unplaced {
            if left.reason == UnplacedReason::NamespaceLimitReached
                && let Some(excess) = held.get(&left.pod)
            {
                let namespace = left.pod.namespace();
                left.message = excess.sentence(namespace, used.get(namespace).copied());
            }
        }
        let again = self.now.checked_add(AGAIN).ok();
        plan.again_at = [plan.again_at, again].into_iter().flatten().min();
    }
}

impl Accounts<'_> {
    fn standing(&self, namespace: &str) -> NamespaceUse {
        self.standing.get(namespace).copied().unwrap_or_default()
    }

    fn bought(&self, namespace: &str) -> NamespaceUse {
        let uses = self.new.iter().map(|node| node.use_of(namespace));
        uses.fold(NamespaceUse::default(), NamespaceUse::plus)
    }
}

impl Excess {
    /// Returns a message. `used` is what the namespace uses after the plan, if that is known. It names all limits that the pod exceeds,
    /// because raising one of them would not help.
    fn sentence(self, namespace: &str, used: Option<NamespaceUse>) -> String {
        let all = self.each(used).map(|one| one.sentence_of_first(namespace, used));
        all.collect::<Vec<_>>().join("; besides, ")
    }

    /// Returns each limit that the pod exceeds. Of the others than the first, these are those that it still exceeds besides what is used.
    fn each(self, used: Option<NamespaceUse>) -> impl Iterator<Item = Self> {
        let others = self.more.into_iter().flatten().filter(move |(ceiling, asked)| {
            used.is_none_or(|used| used.of(ceiling.kind).saturating_add(*asked) > ceiling.most)
        });
        let others = others.map(move |(ceiling, asked)| Self { ceiling, asked: Some(asked), ..self });
        std::iter::once(self).chain(others)
    }

    /// Returns a message about the first limit.
    fn sentence_of_first(self, namespace: &str, used: Option<NamespaceUse>) -> String {
        let NamespaceCeiling { kind, most, origin } = self.ceiling;
        if let CeilingOrigin::Spent(spent) = origin {
            return spent.sentence(namespace);
        }
        let (limit, remedy) = in_words(self.ceiling, namespace);
        let it = if self.of_gang { "its gang" } else { "it" };
        let Some(asked) = self.asked else {
            return format!(
                "{it} would get a node with an unknown price, so Poolwright could not keep {limit}; remove the limit, or, if prices come from --catalogue, add the price there"
            );
        };
        // Before nodes are chosen, a price is at least one micro-dollar.
        let asked = Some(asked).filter(|asked| kind != NamespaceLimit::UsdPerHour || *asked > 1);
        let used = used.map(|used| used.of(kind));
        if let Some(asked) = asked.filter(|asked| *asked > most) {
            // Pods need their GPUs. Other nodes, or fewer pods on a node, might cost less.
            let needs =
                if kind == NamespaceLimit::Gpus { "needs" } else { "would take in the best plan found" };
            // The limit must allow what is in use, too.
            let besides = used.filter(|used| *used > 0).map_or_else(String::new, |used| {
                format!(" (in use or on order besides: {})", used_in_words(kind, used, most))
            });
            let asked = needed_in_words(kind, asked);
            return format!("{limit} is below the {asked} that {it} {needs}{besides}; {remedy}");
        }
        // Pods that the namespace was beyond the limit with may have no place after all.
        let Some(used) = used.filter(|used| used.saturating_add(asked.unwrap_or(1)) > most) else {
            return format!("a plan with {it} would exceed {limit}; {remedy}");
        };
        let is = if used >= most { "is reached" } else { "leaves too little" };
        // What changes with each plan is in parentheses, where it is no news to a pod that waits.
        let more = asked
            .map_or_else(String::new, |asked| format!("; {it} would add {}", needed_in_words(kind, asked)));
        let used_up = used_in_words(kind, used, most);
        let end = if used > 0 { ", or end pods of the namespace" } else { "" };
        format!("{limit} {is} (in use or on order: {used_up}{more}); {remedy}{end}")
    }
}

/// Returns a limit of a namespace and its remedy in words.
fn in_words(ceiling: NamespaceCeiling, namespace: &str) -> (String, String) {
    let NamespaceCeiling { kind, most, origin } = ceiling;
    let (by_default, remedy) = match origin {
        CeilingOrigin::Stated | CeilingOrigin::Spent(_) => ("", "raise"),
        CeilingOrigin::Default => (" (default)", "set"),
        CeilingOrigin::Unreadable => ("", "correct"),
    };
    let (name, amount) = (kind.name(), quantity(kind, most));
    (
        format!("limit {name} = {amount}{by_default} of namespace `{namespace}`"),
        format!("{remedy} {} of the Namespace", kind.annotation()),
    )
}

/// Returns the least that a pod without a place needs, before nodes are chosen: a node at some price.
fn some_node() -> RankedOffering {
    let (instance_type, zone) = ("some".into(), "some".into());
    let offering = OfferingId { instance_type, zone, capacity_type: CapacityType::OnDemand };
    RankedOffering { offering, price: Some(UsdPerHour::from_micros(1)), allocatable: ResourceList::new() }
}

/// Returns for each unit the limit that it exceeds; `None` if it is within all. A unit that exceeds a limit does not count for later
/// units, so smaller ones and those that share a node with earlier ones may still be within it.
fn excesses(
    namespace: &str,
    ceilings: &[NamespaceCeiling],
    accounts: &Accounts<'_>,
    units: &[Unit<'_>],
) -> Vec<Option<Excess>> {
    let nodes = &accounts.new;
    let mut used = accounts.standing(namespace);
    let mut kept: BTreeMap<usize, Part> = BTreeMap::new();
    let mut found: Vec<Option<Excess>> = Vec::with_capacity(units.len());
    let mut held = BTreeMap::new();
    for unit in units {
        let mut parts: BTreeMap<usize, Part> = BTreeMap::new();
        for (at, pod) in &unit.on_new {
            let part = parts.entry(*at).or_insert_with(|| kept.get(at).cloned().unwrap_or_default());
            nodes[*at].add(part, pod);
        }
        let added = parts.iter().map(|(at, part)| {
            let before = kept.get(at).map(|part| nodes[*at].use_with(namespace, part));
            nodes[*at].use_with(namespace, part).since(before.unwrap_or_default())
        });
        let added = added.fold(NamespaceUse::default(), NamespaceUse::plus);
        let mut beyond = first_excess(ceilings, used, added, unit.is_gang);
        follow_minimum(unit, &mut beyond, &mut held);
        if beyond.is_none() {
            used = used.plus(added);
            kept.extend(parts);
        }
        found.push(beyond);
    }
    keep_some((namespace, ceilings), accounts, used, units, &mut found);
    first_come(units, &mut found);
    found
}

/// Holds further pods of a gang back if its minimum is held back, because none of them starts without it. `held` are the gangs whose
/// minimum is held back.
fn follow_minimum<'u>(
    unit: &'u Unit<'_>,
    found: &mut Option<Excess>,
    held: &mut BTreeMap<&'u ObjectKey, Excess>,
) {
    let Some(gang) = &unit.gang else { return };
    match *found {
        Some(excess) if unit.is_gang => {
            held.insert(gang, excess);
        }
        _ => *found = held.get(gang).copied().or(*found),
    }
}

/// Keeps some of the pods that share a node beyond the limit on money: fewer pods may fit a cheaper node, so the next plan tries as
/// many as would pay for their part of this one.
fn keep_some(
    (namespace, ceilings): (&str, &[NamespaceCeiling]),
    accounts: &Accounts<'_>,
    used: NamespaceUse,
    units: &[Unit<'_>],
    found: &mut [Option<Excess>],
) {
    let kind = NamespaceLimit::UsdPerHour;
    let Some(ceiling) = ceilings.iter().find(|one| one.kind == kind) else { return };
    let mut left = ceiling.most.saturating_sub(used.of(kind));
    for (at, node) in accounts.new.iter().enumerate() {
        let is_on = |unit: &Unit<'_>| unit.on_new.iter().any(|(on, _)| *on == at);
        let on_node: Vec<usize> = (0..units.len()).filter(|index| is_on(&units[*index])).collect();
        let is_beyond = |index: &usize| {
            found[*index].is_some_and(|excess| {
                excess.ceiling.kind == kind && excess.asked.is_some() && !excess.of_gang
            })
        };
        if on_node.len() < 2 || !on_node.iter().all(is_beyond) {
            continue;
        }
        let mut part = Part::default();
        for (_, pod) in on_node.iter().flat_map(|index| &units[*index].on_new) {
            node.add(&mut part, pod);
        }
        let price = node.use_with(namespace, &part).of(kind).max(1);
        let count = on_node.len() as u64;
        let pays = u128::from(count) * u128::from(left) / u128::from(price);
        // An eighth at least is held back, so that the rounds suffice.
        let most = count - 1 - count / 8;
        let keeps = u64::try_from(pays).unwrap_or(u64::MAX).clamp(u64::from(left > 0), most);
        left = left.saturating_sub(price.saturating_mul(keeps) / count);
        for (number, index) in (0..).zip(&on_node) {
            // The price is that of a node for all of them, so no amount is told of the others.
            found[*index] =
                found[*index].filter(|_| number >= keeps).map(|excess| Excess { asked: Some(1), ..excess });
        }
    }
}

/// Returns the first limit that these additions exceed, with the others.
fn first_excess(
    ceilings: &[NamespaceCeiling],
    used: NamespaceUse,
    added: NamespaceUse,
    of_gang: bool,
) -> Option<Excess> {
    let mut all = ceilings.iter().filter_map(|ceiling| excess(*ceiling, used, added, of_gang));
    let first = all.next()?;
    let mut more = all.filter_map(|other| Some((other.ceiling, other.asked?)));
    Some(Excess { more: [more.next(), more.next()], ..first })
}

/// Returns the limit that these additions exceed, if they do. What is used already may be beyond it.
fn excess(
    ceiling: NamespaceCeiling,
    used: NamespaceUse,
    added: NamespaceUse,
    of_gang: bool,
) -> Option<Excess> {
    let NamespaceCeiling { kind, most, .. } = ceiling;
    if kind == NamespaceLimit::UsdPerHour && added.has_unknown_price {
        return Some(Excess { ceiling, asked: None, of_gang, more: [None; 2] });
    }
    let asked = added.of(kind);
    let is_beyond = asked > 0 && used.of(kind).saturating_add(asked) > most;
    is_beyond.then_some(Excess { ceiling, asked: Some(asked), of_gang, more: [None; 2] })
}

/// Gives the places of pods that ask for the same to the first of them, because these pods can take each other's places.
fn first_come(units: &[Unit<'_>], found: &mut [Option<Excess>]) {
    let mut places: BTreeMap<&PodSpec, usize> = BTreeMap::new();
    let mut excesses: BTreeMap<&PodSpec, Excess> = BTreeMap::new();
    let is_single =
        |at: usize, unit: &Unit<'_>| !unit.is_gang && found[at].is_none_or(|excess| !excess.of_gang);
    let singles = units.iter().enumerate().filter(|&(at, unit)| is_single(at, unit));
    let singles = singles.filter_map(|(at, unit)| Some((at, &*unit.pods.first()?.spec)));
    let singles: Vec<(usize, &PodSpec)> = singles.collect();
    for &(at, spec) in &singles {
        match found[at] {
            None => *places.entry(spec).or_default() += 1,
            Some(excess) => {
                excesses.entry(spec).or_insert(excess);
            }
        }
    }
    for (at, spec) in singles {
        let Some(excess) = excesses.get(spec) else { continue };
        let left = places.entry(spec).or_default();
        found[at] = if *left > 0 { None } else { Some(*excess) };
        *left = left.saturating_sub(1);
    }
}

/// Returns which offerings of a node stay: those that cost none of these namespaces more than the planned one.
fn kept_offerings(node: &SharedNode<'_, '_>, beyond: &BTreeSet<&str>) -> Vec<bool> {
    let mut kept = Vec::new();
    for namespace in node.namespaces().filter(|name| beyond.contains(name)) {
        let shares = node.shares(namespace);
        kept.resize(shares.len(), true);
        let Some(planned) = shares.first().copied().flatten() else { continue };
        for (kept, share) in kept.iter_mut().zip(&shares) {
            *kept &= share.is_some_and(|share| share <= planned);
        }
    }
    kept
}

/// Formats an amount that a limit must allow, for people.
fn needed_in_words(kind: NamespaceLimit, amount: u64) -> String {
    match kind {
        NamespaceLimit::UsdPerHour => format::needed_price(UsdPerHour::from_micros(amount)),
        _ => quantity(kind, amount),
    }
}

/// Formats an amount that is used of a limit, for people.
pub(crate) fn used_in_words(kind: NamespaceLimit, used: u64, most: u64) -> String {
    match kind {
        NamespaceLimit::UsdPerHour => {
            format::used_price(UsdPerHour::from_micros(used), UsdPerHour::from_micros(most))
        }
        _ => quantity(kind, used),
    }
}

/// Formats an amount as limits are written.
pub(crate) fn quantity(kind: NamespaceLimit, amount: u64) -> String {
    match kind {
        NamespaceLimit::Nodes => amount.to_string(),
        NamespaceLimit::Gpus => format::thousandths(amount),
        NamespaceLimit::UsdPerHour => UsdPerHour::from_micros(amount).to_string(),
    }
}
