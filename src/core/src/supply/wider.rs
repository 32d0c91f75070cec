//! Offerings that a pool's node class sells and its requirements exclude: what a pool could buy if they were wider.

use std::collections::BTreeSet;
use std::fmt;

use poolwright_catalog::{Arch, InstanceType, InstanceTypeName, ResourceList, ResourceName, UsdPerHour};
use poolwright_terms::labels::{ARCH, GPU_MODEL, INSTANCE_FAMILY, INSTANCE_TYPE};

use crate::demand::volumes::attach::Attachable;
use crate::model::{Operator, PlanOptions, PodSpec, Requirement, Sharing, Snapshot};
use crate::rules;
use crate::rules::format::ATTACHABLE;
use crate::rules::gpus::{self, GpuForm, GpuNeed};
use crate::supply::daemonsets::DaemonSets;
use crate::supply::limits::{LimitKind, ceilings, owner_in_words};
use crate::supply::offerings::{PoolOffering, Supply, as_measured};

/// What a pod asks of a node.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked<'p> {
    pub spec: &'p PodSpec,
    /// Its requests, without the GPUs in `gpus`.
    pub requests: &'p ResourceList,
    /// Its request for shared or partitioned GPUs.
    pub gpus: Option<&'p GpuNeed>,
}

/// The catalogues of the pools, without their requirements.
#[derive(Clone, Copy)]
pub(crate) struct Wider<'s, 'a> {
    pub snapshot: &'s Snapshot,
    pub supply: &'s Supply<'a>,
    pub daemons: &'s DaemonSets<'a>,
    pub attachable: &'s Attachable,
    pub options: &'s PlanOptions,
}

/// An instance type that a pool could buy if its requirements were wider.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WiderType<'s> {
    kind: &'s InstanceTypeName,
    /// Its offering, as an index into the catalogue of the pool.
    pub offering: usize,
    pub price: UsdPerHour,
    /// The first of the requirements that exclude it.
    broken: Option<&'s Requirement>,
    /// The number of the other requirements that do.
    more: usize,
}

/// A limit that one node would break alone.
struct Beyond {
    kind: LimitKind,
    ceiling: u64,
    /// Whether it is a limit on all pools together.
    is_of_all: bool,
    /// Whether it is the default of pools without such a limit.
    is_default: bool,
}

impl fmt::Display for WiderType<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({:#})", self.kind, self.price)?;
        match (self.broken, self.more) {
            (Some(broken), 0) => write!(f, ", which `{broken}` excludes"),
            (Some(broken), more) => write!(f, ", which `{broken}` and {more} more exclude"),
            (None, _) => Ok(()),
        }
    }
}

impl<'s> Wider<'s, '_> {
    /// Returns an instance type that would hold the pod if the requirements of the pool at this index allowed every offering of its
    /// node class: of those that break the fewest requirements, the cheapest. A type with GPUs comes last for pods without. Taints
    /// are not checked. The pool that stands for the whole catalogue has no requirements to widen. Images seldom run on Arm unless
    /// somebody saw to it, so a type with such processors counts only if the pod names it or the pool buys others.
    pub fn holds(&self, at: usize, asked: Asked<'_>) -> Option<WiderType<'s>> {
        let pool = &self.supply.pools[at];
        let is_arm = |offer: &PoolOffering| self.supply.instance_type(at, offer.offering).arch == Arch::Arm64;
        let may_be_arm = names_type(asked.spec)
            || pool.pool.requirements.iter().any(allows_arm)
            || pool.offers.iter().any(is_arm);
        self.holds_on(at, asked, |arch| arch == Arch::Amd64 || may_be_arm)
    }

    /// Returns whether a type would hold the pod whatever its processors are.
    pub fn holds_on_any(&self, at: usize, asked: Asked<'_>) -> bool {
        self.holds_on(at, asked, |_| true).is_some()
    }

    /// Returns the room for pods on a new node of an offering of the pool's node class.
    pub fn room(&self, at: usize, offering: usize) -> ResourceList {
        let daemons = self.daemons.tolerating(&self.supply.pools[at].pool.taints);
        self.room_beside(&daemons, at, offering)
    }

    fn room_beside(&self, daemons: &DaemonSets<'_>, at: usize, offering: usize) -> ResourceList {
        let (pool, labels) = (self.supply.pools[at].pool, self.supply.labels(at, offering));
        let kind = self.supply.instance_type(at, offering);
        let mut room = as_measured(self.snapshot, &pool.node_class, &kind.allocatable, &kind.name);
        room.add(&self.attachable.of(None, &labels));
        room.saturating_sub(&daemons.requests(&daemons.landing(&labels)));
        room
    }

    fn holds_on(&self, at: usize, asked: Asked<'_>, suits: impl Fn(Arch) -> bool) -> Option<WiderType<'s>> {
        let pool = &self.supply.pools[at];
        if pool.pool.is_implicit {
            return None;
        }
        let catalogue = self.supply.tables[pool.table].catalogue;
        let daemons = self.daemons.tolerating(&pool.pool.taints);
        let holds = |index: usize| {
            let offering = &catalogue.offerings()[index];
            let kind = &catalogue.types()[&offering.id.instance_type];
            if !suits(kind.arch) {
                return None;
            }
            let fits = |(name, wanted): (&ResourceName, u64)| {
                name.as_str().starts_with(ATTACHABLE) || wanted <= kind.allocatable.get(name.as_str())
            };
            if !asked.requests.iter().all(fits) {
                return None;
            }
            let labels = self.supply.labels(at, index);
            rules::check_labels(asked.spec, &labels).ok()?;
            let room = self.room_beside(&daemons, at, index);
            let need = asked.gpus.map(|need| need.on_type(kind));
            let sharing = self.options.sharing;
            let grants = |form: &GpuForm| form.grants(sharing, kind, need.as_ref());
            let has_gpus = asked.gpus.is_none() || GpuForm::all(sharing, kind).iter().any(grants);
            let price: UsdPerHour = offering.price.known()?;
            let broken = pool.pool.requirements.iter().filter(|one| !rules::matches(one, &labels)).count();
            let wastes_gpus = kind.gpu.is_some()
                && asked.gpus.is_none()
                && asked.requests.get(ResourceName::NVIDIA_GPU) == 0;
            let is_within = || self.all_beyond(at, kind, price, need.as_ref()).next().is_none();
            let fits = has_gpus && is_within() && asked.requests.fits(&room);
            fits.then_some((wastes_gpus, broken, price, index, &kind.name))
        };
        let best = (0..catalogue.offerings().len()).filter_map(holds).min()?;
        let (_, broken, price, index, kind) = best;
        let labels = self.supply.labels(at, index);
        let first = pool.pool.requirements.iter().find(|one| !rules::matches(one, &labels));
        Some(WiderType { kind, offering: index, price, broken: first, more: broken.saturating_sub(1) })
    }

    /// Returns the pod's request for GPUs if these were cut into MIG instances.
    fn need_if_cut(&self, spec: &PodSpec) -> Option<GpuNeed> {
        gpus::wanted(Sharing::Mig { mixed: false }, &self.supply.mig_models(), spec).1
    }

    /// Returns why the pod would get no node even if GPUs were cut into MIG instances, where that lies in its request alone.
    pub fn refusal_if_cut(&self, spec: &PodSpec) -> Option<String> {
        match self.need_if_cut(spec) {
            Some(GpuNeed::Impossible(cause)) => Some(cause),
            _ => None,
        }
    }

    /// Returns whether a pool could buy a node for the pod if GPUs were cut into MIG instances.
    pub fn holds_if_cut(&self, spec: &PodSpec) -> bool {
        let need = self.need_if_cut(spec);
        let mut holding = self.holding_if_cut(spec).into_iter();
        holding.any(|(at, offer)| self.beyond(at, offer, need.as_ref()).is_none())
    }

    /// Returns the limits that keep away the cheapest node which would hold the pod if GPUs were cut into MIG instances, and their
    /// remedy, in words; `None` if no node would, or if limits allow that one. Raising one of several limits would not help.
    pub fn limit_if_cut(&self, spec: &PodSpec) -> Option<(String, &'static str)> {
        let (need, holding) = (self.need_if_cut(spec), self.holding_if_cut(spec));
        let need = need.as_ref();
        let (at, offer) = holding.iter().min_by_key(|(at, offer)| {
            let price = offer.availability.price();
            (price.is_none(), price, *at, offer.offering)
        })?;
        let kind = self.supply.instance_type(*at, offer.offering);
        let price = offer.availability.price()?;
        let pool = self.supply.pools[*at].pool;
        let words = |Beyond { kind: limit, ceiling, is_of_all, is_default }: Beyond| {
            let uses = limit.needed_in_words(limit.of_type(kind, Some(price), need.as_slice()));
            let (of, raise) = owner_in_words((!is_of_all).then_some(pool), is_default);
            let (name, most) = (limit.name(), limit.quantity(ceiling));
            (format!("limit {name} = {most} {of} is below the {uses} that such a node uses"), raise)
        };
        let (limits, raise): (Vec<String>, Vec<&'static str>) =
            self.all_beyond(*at, kind, price, need).map(words).unzip();
        let raise = match raise.as_slice() {
            [only] => *only,
            _ => "raise these limits",
        };
        (!limits.is_empty()).then(|| (limits.join(" and "), raise))
    }

    /// Returns the first limit that a node of an offering would break alone if its GPUs were cut for this request.
    fn beyond(&self, at: usize, offer: &PoolOffering, need: Option<&GpuNeed>) -> Option<Beyond> {
        let kind = self.supply.instance_type(at, offer.offering);
        self.all_beyond(at, kind, offer.availability.price()?, need).next()
    }

    /// Returns the limits of a pool, and those of all pools together, that one node of a type would break alone.
    fn all_beyond(
        &self,
        at: usize,
        kind: &InstanceType,
        price: UsdPerHour,
        need: Option<&GpuNeed>,
    ) -> impl Iterator<Item = Beyond> {
        let pool = self.supply.pools[at].pool;
        let own = ceilings(&self.options.limits_of(pool)).into_iter().map(|limit| (false, limit));
        let of_all = ceilings(&self.options.limits).into_iter().map(|limit| (true, limit));
        let broken = own.chain(of_all).filter(move |(_, (limit, ceiling))| {
            limit.of_type(kind, Some(price), need.as_slice()) > *ceiling
        });
        broken.map(move |(is_of_all, (kind, ceiling))| {
            let is_default = !is_of_all && kind.is_default_of(pool);
            Beyond { kind, ceiling, is_of_all, is_default }
        })
    }

    /// Returns the offerings that may be bought and would hold the pod if GPUs were cut into MIG instances, whatever limits say.
    fn holding_if_cut(&self, spec: &PodSpec) -> Vec<(usize, &'s PoolOffering)> {
        let supply = self.supply;
        let mig = Sharing::Mig { mixed: false };
        let (requests, need) = gpus::wanted(mig, &supply.mig_models(), spec);
        let mut holding = Vec::new();
        if need.is_none() {
            return holding;
        }
        for (at, offered) in supply.pools.iter().enumerate() {
            if rules::check_taints(&spec.tolerations, &offered.pool.taints).is_err() {
                continue;
            }
            holding.extend(offered.offers.iter().map(|offer| (at, offer)).filter(|(at, offer)| {
                let kind = supply.instance_type(*at, offer.offering);
                let room = &supply.capacities[offer.capacity];
                let grants =
                    |form: &GpuForm| form.grants(mig, kind, need.as_ref()) && requests.fits(&form.room(room));
                offer.availability.is_sold()
                    && rules::check_labels(spec, &supply.labels(*at, offer.offering)).is_ok()
                    && GpuForm::all(mig, kind).iter().any(grants)
            }));
        }
        holding
    }
}

/// Returns whether a pool names Arm processors among those of its nodes.
fn allows_arm(wanted: &Requirement) -> bool {
    let arm = |values: &BTreeSet<String>| values.contains(Arch::Arm64.as_str());
    wanted.key == ARCH && matches!(&wanted.operator, Operator::In(values) if arm(values))
}

/// Returns whether a pod names the processors of its node, or a type, a family or a GPU model that decides about them.
fn names_type(spec: &PodSpec) -> bool {
    let decides = |key: &str| [ARCH, INSTANCE_TYPE, INSTANCE_FAMILY, GPU_MODEL].contains(&key);
    let mut required = spec.node_affinity.iter().flatten().flat_map(|term| &term.requirements);
    spec.node_selector.keys().any(|key| decides(key))
        || required.any(|one| decides(&one.key) && matches!(one.operator, Operator::In(_)))
}
