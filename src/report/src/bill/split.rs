//! Splits the cost of one instance among the pods that it held.

use std::collections::BTreeSet;

use super::shares::apportion;
use super::{Class, Method, Micros, Split};
use crate::ledger::row::{InstanceSpan, Phase, PodSpan};
use crate::ledger::{Day, Known};

/// The parts into which a node is divided at each moment.
pub const PARTS: u128 = 1_000_000_000_000;

/// A part of the cost of one span of an instance.
#[derive(Clone, Copy, Debug)]
pub struct Charge<'a> {
    /// The span.
    pub instance: &'a Known<InstanceSpan>,
    /// The pod that held this part; `None` if nobody did.
    pub pod: Option<&'a PodSpan>,
    /// Who pays.
    pub class: Class,
    /// The time for which it is charged, in milliseconds since 1970.
    pub from: i64,
    /// The end of this time.
    pub to: i64,
    /// The part of the node, in [`PARTS`] times milliseconds. Those of one span add up to all of it.
    pub parts: u128,
    /// The GPUs of this part, in thousandths of GPUs times milliseconds.
    pub gpu_millis: u128,
    /// The cost; `None` if the price is unknown.
    pub cost: Option<Micros>,
    /// The cost by the on-demand list price; `None` if that is unknown.
    pub list: Option<Micros>,
}

/// Splits the costs of a day. Returns how many pods held no instance that the ledger knew then: nothing is charged to them.
pub fn split<'a>(day: &'a Day, by: &Split, each: &mut impl FnMut(&Charge<'a>)) -> usize {
    let mut charged = vec![false; day.pods.len()];
    for instance in &day.instances {
        let name = (instance.row.uid.as_str(), instance.row.span.cluster.as_str());
        let place =
            |pod: &Known<PodSpan>| (pod.row.instance.as_str(), pod.row.span.cluster.as_str()).cmp(&name);
        let begin = day.pods.partition_point(|pod| place(pod).is_lt());
        let length = day.pods[begin..].partition_point(|pod| place(pod).is_eq());
        let these = begin..begin + length;
        of_instance(instance, &day.pods[these.clone()], &mut charged[these], by, each);
    }
    let without = |(pod, charged): &(&Known<PodSpan>, &bool)| !**charged && pod.millis() > 0;
    day.pods.iter().zip(&charged).filter(without).count()
}

/// A pod while it held a part of the instance.
struct Holder<'a> {
    pod: &'a PodSpan,
    from: i64,
    to: i64,
    /// Its share of the node, in [`PARTS`], while nobody holds too much.
    share: u128,
    parts: u128,
}

fn of_instance<'a>(
    instance: &'a Known<InstanceSpan>,
    pods: &'a [Known<PodSpan>],
    charged: &mut [bool],
    by: &Split,
    each: &mut impl FnMut(&Charge<'a>),
) {
    let (start, end) = (instance.from.as_millisecond(), instance.to.as_millisecond());
    let kinds = Kinds::of(&instance.row, by);
    let mut holders: Vec<Holder<'a>> = Vec::with_capacity(pods.len());
    for (known, charged) in pods.iter().zip(charged) {
        let (from, to) = (known.from.as_millisecond().max(start), known.to.as_millisecond().min(end));
        if from < to {
            *charged = true;
            let share = kinds.share(known.row.holds.kinds(), kinds.whole);
            holders.push(Holder { pod: &known.row, from, to, share, parts: 0 });
        }
    }
    // The first of equal remainders gets what is left, so the order must not depend on anything but names.
    holders.sort_by(|one, other| name_of(one).cmp(&name_of(other)));
    let rest = sweep(&kinds, &mut holders, (start, end));

    let weights: Vec<u128> = holders.iter().map(|holder| holder.parts).chain([rest.parts]).collect();
    let of_price = |price: Option<u64>| {
        let amount = Micros::of(price?, instance.millis()).0.unsigned_abs();
        Some(apportion(amount, &weights))
    };
    let (price, list) = (instance.row.price_micros_per_hour, instance.row.list_micros_per_hour);
    let lists = of_price(list);
    let (costs, difference) = match by.method {
        Method::RateCard => on_card(instance, &holders, &rest, by),
        _ if price == list => (lists.clone(), Micros(0)),
        _ => (of_price(price), Micros(0)),
    };
    let at = |all: Option<&Vec<u128>>, index: usize| {
        all.map(|all| Micros(i128::try_from(all[index]).unwrap_or(i128::MAX)))
    };
    for (index, holder) in holders.iter().enumerate() {
        let millis = u128::from((holder.to - holder.from).unsigned_abs());
        each(&Charge {
            instance,
            pod: Some(holder.pod),
            class: if holder.pod.daemon { Class::System } else { Class::Pods },
            from: holder.from,
            to: holder.to,
            parts: holder.parts,
            gpu_millis: u128::from(holder.pod.holds.gpu_millis) * millis,
            cost: at(costs.as_ref(), index),
            list: at(lists.as_ref(), index),
        });
    }
    let closed = instance.row.phase != Phase::Ready;
    let free = Charge {
        instance,
        pod: None,
        class: if closed { Class::StartingOrDraining } else { Class::Unallocated },
        from: start,
        to: end,
        parts: rest.parts,
        gpu_millis: rest.free[0],
        cost: at(costs.as_ref(), holders.len()),
        list: at(lists.as_ref(), holders.len()),
    };
    if free.parts > 0 || free.cost.is_some_and(|cost| cost != Micros(0)) {
        each(&free);
    }
    if difference != Micros(0) {
        let class = Class::Difference;
        each(&Charge { class, parts: 0, gpu_millis: 0, cost: Some(difference), list: None, ..free });
    }
}

/// What two pods are ordered by.
fn name_of<'a>(holder: &Holder<'a>) -> (&'a str, &'a str, &'a str, i64) {
    (&holder.pod.namespace, &holder.pod.name, &holder.pod.uid, holder.from)
}

/// What no pod held of an instance.
#[derive(Default)]
struct Rest {
    parts: u128,
    /// GPUs, CPU and memory, each times milliseconds.
    free: [u128; 3],
}

/// What an instance offers, and what each kind of it weighs.
struct Kinds {
    whole: [u128; 3],
    weights: [u128; 3],
    sum: u128,
}

impl Kinds {
    fn of(instance: &InstanceSpan, by: &Split) -> Self {
        let weights = by.weights(instance);
        Self { whole: instance.offers.kinds(), weights, sum: weights.iter().sum() }
    }

    /// Returns the share of who holds this much, of so much in all.
    fn share(&self, holds: [u128; 3], all: [u128; 3]) -> u128 {
        let weighed = (0..3).filter(|kind| self.weights[*kind] > 0 && all[*kind] > 0);
        weighed.map(|kind| PARTS * self.weights[kind] * holds[kind] / (all[kind] * self.sum)).sum()
    }

    /// Returns whether a condition holds of each kind that counts.
    fn all(&self, condition: impl Fn(usize) -> bool) -> bool {
        (0..3).all(|kind| self.weights[kind] == 0 || condition(kind))
    }
}

/// Goes through the times at which pods came and went, and divides the instance among those on it.
fn sweep(kinds: &Kinds, holders: &mut [Holder<'_>], (start, end): (i64, i64)) -> Rest {
    let mut changes: Vec<(i64, bool, usize)> = Vec::with_capacity(2 * holders.len() + 1);
    for (at, holder) in holders.iter().enumerate() {
        changes.push((holder.from, true, at));
        changes.push((holder.to, false, at));
    }
    changes.push((end, false, usize::MAX));
    changes.sort_unstable();
    let mut rest = Rest::default();
    let mut on: BTreeSet<usize> = BTreeSet::new();
    let mut now = start;
    for (time, comes, at) in changes {
        if time > now {
            let millis = u128::from((time - now).unsigned_abs());
            divide(kinds, holders, &on, millis, &mut rest);
            now = time;
        }
        if comes {
            on.insert(at);
        } else {
            on.remove(&at);
        }
    }
    rest
}

/// Divides an instance among the pods on it for a time.
fn divide(kinds: &Kinds, holders: &mut [Holder<'_>], on: &BTreeSet<usize>, millis: u128, rest: &mut Rest) {
    let mut held = [0_u128; 3];
    for at in on {
        let holds = holders[*at].pod.holds.kinds();
        held = std::array::from_fn(|kind| held[kind] + holds[kind]);
    }
    for ((free, whole), held) in rest.free.iter_mut().zip(kinds.whole).zip(held) {
        *free += whole.saturating_sub(held) * millis;
    }
    // Pods that hold more than there is share all of it.
    let fits = kinds.all(|kind| held[kind] <= kinds.whole[kind]);
    let all: [u128; 3] = std::array::from_fn(|kind| held[kind].max(kinds.whole[kind]));
    let mut left = PARTS;
    let mut last = None;
    for at in on {
        let holder = &mut holders[*at];
        let share = if fits { holder.share } else { kinds.share(holder.pod.holds.kinds(), all) };
        holder.parts += share * millis;
        left -= share;
        last = if share > 0 { Some(*at) } else { last };
    }
    // Of a full instance, what rounding left is no free room.
    let full = kinds.all(|kind| held[kind] >= kinds.whole[kind].max(1));
    match last.filter(|_| full) {
        Some(at) => holders[at].parts += left * millis,
        None => rest.parts += left * millis,
    }
}

/// Returns the costs on the rate card, those of the free part last, and what the instance cost beyond them.
fn on_card(
    instance: &Known<InstanceSpan>,
    holders: &[Holder<'_>],
    rest: &Rest,
    by: &Split,
) -> (Option<Vec<u128>>, Micros) {
    let Some(price) = instance.row.price_micros_per_hour else { return (None, Micros(0)) };
    // Without a price of its GPUs, the whole cost is a difference.
    let has_rates = by.has_rates(&instance.row);
    let cost = |held: [u128; 3]| {
        let kinds = by.card(&instance.row.instance_type, held);
        if has_rates { kinds.iter().sum::<u128>() } else { 0 }
    };
    let held = holders.iter().map(|holder| {
        let millis = u128::from((holder.to - holder.from).unsigned_abs());
        holder.pod.holds.kinds().map(|amount| amount * millis)
    });
    let costs: Vec<u128> = held.chain([rest.free]).map(cost).collect();
    let sum = i128::try_from(costs.iter().sum::<u128>()).unwrap_or(i128::MAX);
    let difference = Micros::of(price, instance.millis()).0 - sum;
    (Some(costs), Micros(difference))
}
