//! Limits of each pool and of all pools together, with the amounts left.

pub(crate) mod cut;
mod held;
mod kind;

use std::collections::{BTreeMap, BTreeSet};

use poolwright_catalog::{InstanceType, ResourceName, UsdPerHour};
use poolwright_solver::Limit;

use crate::model::plan::{PlannedClaim, PlannedGpu};
use crate::model::{PlanOptions, Pool, PoolLimits, Sharing, Snapshot};
use crate::rules::gpus::GpuNeed;
pub(crate) use crate::supply::limits::held::held;
pub(crate) use crate::supply::limits::kind::LimitKind;
use crate::supply::offerings::Supply;
use crate::supply::unclaimed;

/// A limit of one pool, or of all pools together.
#[derive(Clone, Debug)]
pub(crate) struct PoolLimit {
    /// Index into [`Supply::pools`]; `None` for all pools together.
    pub pool: Option<usize>,
    pub kind: LimitKind,
    pub ceiling: u64,
    /// Whether it is the default of pools without such a limit.
    is_default: bool,
    /// The amount in use and on order at the start of the plan. It may be more than the limit allows.
    held: u64,
    /// The amount left at the start of the plan.
    before: u64,
    pub left: u64,
}

/// All limits.
#[derive(Clone, Debug, Default)]
pub(crate) struct Limits {
    pub all: Vec<PoolLimit>,
    /// The indices of the limits that apply to each pool, ascending. Limits on all pools together come last in each list.
    by_pool: Vec<Vec<u32>>,
    /// The limit on available instances, by node class and offering.
    scarce: BTreeMap<(usize, usize), u32>,
    /// Whether GPUs of new nodes may be cut into MIG instances.
    cuts_gpus: bool,
}

impl Limits {
    pub fn new(supply: &Supply<'_>, snapshot: &Snapshot, options: &PlanOptions) -> Self {
        let cuts_gpus = matches!(options.sharing, Sharing::Mig { .. });
        let mut all = Self { cuts_gpus, ..Self::default() };
        let unclaimed = unclaimed::nodes(snapshot);
        for (index, offered) in supply.pools.iter().enumerate() {
            let own = all.add(Some(index), &options.limits_of(offered.pool), |kind| {
                held(snapshot, &unclaimed, kind, Some(&offered.pool.name))
            });
            for limit in &own {
                let limit = &mut all.all[*limit as usize];
                limit.is_default = limit.kind.is_default_of(offered.pool);
            }
            all.by_pool.push(own);
        }
        let shared = all.add(None, &options.limits, |kind| held(snapshot, &unclaimed, kind, None));
        for own in &mut all.by_pool {
            own.extend(&shared);
        }
        all.add_scarce(supply, snapshot);
        all
    }

    /// Adds the limits of one pool, or of all pools together, and returns their indices.
    fn add(
        &mut self,
        pool: Option<usize>,
        limits: &PoolLimits,
        used: impl Fn(&LimitKind) -> u64,
    ) -> Vec<u32> {
        let first = self.all.len() as u32;
        for (kind, ceiling) in ceilings(limits) {
            let held = used(&kind);
            self.all.push(PoolLimit::new(pool, kind, ceiling, held));
        }
        (first..self.all.len() as u32).collect()
    }

    /// Adds a limit for every offering with a limited number of instances.
    fn add_scarce(&mut self, supply: &Supply<'_>, snapshot: &Snapshot) {
        for (index, offered) in supply.pools.iter().enumerate() {
            for offer in &offered.offers {
                let offering = supply.offering(index, offer.offering);
                if let Some(available) = offering.available {
                    let at = self.all.len() as u32;
                    if self.is_scarce(offered.table, offer.offering) {
                        continue;
                    }
                    self.scarce.insert((offered.table, offer.offering), at);
                    let kind = LimitKind::Available(offering.id.clone());
                    let ceiling = u64::from(available);
                    // Claims that are not launched yet will use instances that the cloud still reports as available.
                    let on_the_way = snapshot.claims.values().filter(|claim| {
                        claim.launched.is_none()
                            && claim.node_class == offered.pool.node_class
                            && claim.offerings.first().is_some_and(|first| first.offering == offering.id)
                    });
                    self.all.push(PoolLimit::new(None, kind, ceiling, on_the_way.count() as u64));
                }
            }
        }
    }

    /// Returns whether the number of instances of an offering is limited.
    pub fn is_scarce(&self, table: usize, offering: usize) -> bool {
        self.scarce.contains_key(&(table, offering))
    }

    /// Returns whether a limit is on the number of instances of an offering.
    pub fn is_stock(&self, limit: u32) -> bool {
        matches!(self.all[limit as usize].kind, LimitKind::Available(_))
    }

    /// Returns whether the pool has a limit of its own.
    pub fn has_own(&self, pool: usize) -> bool {
        self.by_pool[pool].iter().any(|limit| self.all[*limit as usize].pool.is_some())
    }

    /// Returns the MIG instances on which limits on a pool are, where its nodes may be cut into some.
    pub fn on_instances(&self, pool: usize) -> BTreeSet<&str> {
        let kinds = self.by_pool[pool].iter().filter(|_| self.cuts_gpus);
        kinds.filter_map(|limit| self.all[*limit as usize].kind.mig()).map(ResourceName::as_str).collect()
    }

    /// Returns the amount that one node uses of each limit, by limit, ascending. Its GPUs are neither shared nor cut.
    pub fn uses(
        &self,
        supply: &Supply<'_>,
        pool: usize,
        offering: usize,
        price: Option<UsdPerHour>,
    ) -> Vec<(u32, u64)> {
        self.uses_for(supply, pool, offering, price, &[])
    }

    /// Does the same for a node whose GPUs are shared or cut for these requests.
    pub fn uses_for(
        &self,
        supply: &Supply<'_>,
        pool: usize,
        offering: usize,
        price: Option<UsdPerHour>,
        needs: &[&GpuNeed],
    ) -> Vec<(u32, u64)> {
        let kind = supply.instance_type(pool, offering);
        let amount = |limit: u32| self.all[limit as usize].kind.of_type(kind, price, needs);
        let scarce = self.scarce.get(&(supply.pools[pool].table, offering));
        let of_pool = self.by_pool[pool].iter().map(|limit| (*limit, amount(*limit)));
        of_pool.chain(scarce.map(|limit| (*limit, 1))).collect()
    }

    /// Lowers what a node of a type uses of limits on MIG instances to what it uses if its GPUs are cut for these requests alone.
    pub fn leave_uncut(&self, uses: &mut [(u32, u64)], kind: &InstanceType, needs: &[&GpuNeed]) {
        for (limit, amount) in uses {
            let of = &self.all[*limit as usize].kind;
            if of.mig().is_some() {
                *amount = (*amount).min(of.of_type(kind, None, needs));
            }
        }
    }

    /// Returns whether one more node with these uses is within all limits.
    pub fn allow(&self, uses: &[(u32, u64)]) -> bool {
        uses.iter().all(|(limit, amount)| *amount <= self.all[*limit as usize].left)
    }

    /// Returns the first limit that one more node with these uses would break, apart from the stock of an offering.
    pub fn first_beyond(&self, uses: &[(u32, u64)]) -> Option<u32> {
        let mut set = uses.iter().filter(|(limit, _)| !self.is_stock(*limit));
        set.find(|(limit, amount)| *amount > self.all[*limit as usize].left).map(|(limit, _)| *limit)
    }

    /// Returns the limits that one more node with these uses would break, apart from the stock of an offering, with what it uses of
    /// each.
    pub fn beyond(&self, uses: &[(u32, u64)]) -> Vec<(u32, u64)> {
        let is_beyond =
            |(limit, amount): &(u32, u64)| !self.is_stock(*limit) && *amount > self.all[*limit as usize].left;
        uses.iter().copied().filter(is_beyond).collect()
    }

    /// Returns whether one node with these uses would break a limit even if this plan bought nothing else.
    pub fn is_beyond_without_others(&self, uses: &[(u32, u64)]) -> bool {
        uses.iter().any(|(limit, amount)| *amount > self.all[*limit as usize].before)
    }

    /// Returns a limit in words: `` limit nodes = 2 of pool `gpu` ``.
    pub fn named(&self, limit: u32, supply: &Supply<'_>) -> String {
        self.all[limit as usize].in_words(supply).0
    }

    /// Returns whether the stock of the offering with these uses has one more node.
    pub fn has_stock(&self, uses: &[(u32, u64)]) -> bool {
        let mut stock = uses.iter().filter(|(limit, _)| self.is_stock(*limit));
        stock.all(|(limit, amount)| *amount <= self.all[*limit as usize].left)
    }

    /// Subtracts the amounts that one node uses.
    pub fn take(&mut self, uses: &[(u32, u64)]) {
        for (limit, amount) in uses {
            let left = &mut self.all[*limit as usize].left;
            *left = left.saturating_sub(*amount);
        }
    }

    /// Subtracts what planned nodes use. Before launch, each counts as the largest of its offerings.
    pub fn take_claims(&mut self, supply: &Supply<'_>, claims: &[PlannedClaim]) {
        for limit in &mut self.all {
            let counts = |claim: &&PlannedClaim| match &limit.kind {
                LimitKind::Available(id) => {
                    claim.offerings.first().is_some_and(|first| first.offering == *id)
                }
                _ => limit.counts(supply, claim),
            };
            let most = |claim: &PlannedClaim| {
                let uses = claim.offerings.iter().map(|one| limit.kind.of(&one.allocatable, one.price));
                uses.max().unwrap_or(0).saturating_add(limit.instances_of(supply, claim))
            };
            let taken = claims.iter().filter(counts).map(most).fold(0, u64::saturating_add);
            limit.left = limit.left.saturating_sub(taken);
        }
    }

    /// Gives back what a node uses that is not bought.
    pub fn give_back(&mut self, uses: &BTreeMap<u32, u64>) {
        for (limit, amount) in uses {
            let limit = &mut self.all[*limit as usize];
            limit.left = limit.left.saturating_add(*amount).min(limit.before);
        }
    }

    /// Returns the limits in the solver's form.
    pub fn for_solver(&self, supply: &Supply<'_>) -> Vec<Limit> {
        let name = |limit: &PoolLimit| match limit.pool {
            Some(pool) => format!("pool {}: {}", supply.pools[pool].pool.name, limit.name()),
            None => format!("all pools: {}", limit.name()),
        };
        self.all.iter().map(|limit| Limit { name: name(limit), bound: limit.left }).collect()
    }

    /// Returns a message about a reached limit. `least` is the least that a node which fits the pods uses of it; zero if no pods are
    /// meant. The advice is only what can help them.
    pub fn sentence(&self, limit: u32, supply: &Supply<'_>, least: u64) -> String {
        self.sentence_about(limit, supply, least, false)
    }

    /// Does the same for pods that have offerings within the limits, which are held back. The amount is that of other offerings.
    pub fn sentence_of_others(&self, limit: u32, supply: &Supply<'_>, least: u64) -> String {
        self.sentence_about(limit, supply, least, true)
    }

    fn sentence_about(&self, limit: u32, supply: &Supply<'_>, least: u64, is_of_others: bool) -> String {
        let limit = &self.all[limit as usize];
        let counted = self.counted(limit);
        if let LimitKind::Available(id) = &limit.kind {
            if limit.left > 0 {
                return format!(
                    "too few available nodes of {id} are left ({} of {}); allow another offering, or add nodes of this one",
                    limit.left, limit.ceiling
                );
            }
            return format!(
                "all {} available nodes of {id} are taken; allow another offering, or add nodes of this one",
                limit.ceiling
            );
        }
        let used = limit.used();
        let (named, raise) = limit.in_words(supply);
        let other = if is_of_others { "other " } else { "" };
        if least > limit.ceiling {
            let least = limit.kind.needed_in_words(least);
            // The limit must allow this besides.
            let besides = if used == 0 {
                String::new()
            } else {
                format!(" (in use or on order besides: {})", limit.kind.used_in_words(used, limit.ceiling))
            };
            return format!(
                "{named} is below the {least} that the smallest {other}node which fits it uses{besides}; {raise}{counted}"
            );
        }
        if used == 0 {
            let too_low = if is_of_others { "other offerings that fit" } else { "the pods of this plan" };
            return format!("{named} is too low for {too_low}; {raise}{counted}");
        }
        let free = limit.or_free_nodes();
        // What changes with each plan is in parentheses, where it is no news to a pod that waits.
        let (is, more) = match limit.kind.needed_in_words(least) {
            _ if used >= limit.ceiling => ("is reached", String::new()),
            _ if least == 0 => ("leaves too little", String::new()),
            more => ("leaves too little", format!("; one more {other}node uses at least {more}")),
        };
        let used = limit.kind.used_in_words(used, limit.ceiling);
        format!("{named} {is} (in use or on order: {used}{more}); {raise}{free}{counted}")
    }

    /// Says how nodes count towards a limit on MIG instances, in parentheses, because it is so for every pod.
    fn counted(&self, limit: &PoolLimit) -> &'static str {
        if self.cuts_gpus && limit.kind.mig().is_some() {
            " (a new node with such instances counts as all of them that its GPUs could be cut into)"
        } else {
            ""
        }
    }

    /// Returns a message about a limit that leaves a gang out which would take up to this amount of it at once.
    pub fn sentence_of_gang(&self, limit: u32, supply: &Supply<'_>, takes: u64) -> String {
        let limit = &self.all[limit as usize];
        let (named, raise) = limit.in_words(supply);
        let used = limit.used();
        let enough = used.saturating_add(takes);
        if enough <= limit.ceiling {
            return format!("a plan with its gang would exceed {named}; {raise}{}", self.counted(limit));
        }
        // What changes with each plan is in parentheses, where it is no news to a pod that waits.
        let (takes, enough) = (limit.kind.needed_in_words(takes), limit.kind.enough(enough));
        if used == 0 {
            return format!(
                "{named} is too low for its gang (it would take up to {takes} at once); {raise} ({enough} is enough){}",
                self.counted(limit)
            );
        }
        format!(
            "{named} leaves too little for its gang (in use or on order if nothing is bought for it: {}; left: {}; it would take up to {takes} at once); {raise} ({enough} is enough){}{}",
            limit.kind.used_in_words(used, limit.ceiling),
            limit.kind.in_words(limit.left),
            limit.or_free_nodes(),
            self.counted(limit)
        )
    }

    /// Returns the amount that planned nodes take of a limit.
    pub fn taken_by(&self, limit: u32, supply: &Supply<'_>, nodes: &[PlannedClaim]) -> u64 {
        let limit = &self.all[limit as usize];
        let taken = |claim: &PlannedClaim| {
            let promised =
                claim.offerings.first().map_or(0, |one| limit.kind.of(&one.allocatable, one.price));
            promised.saturating_add(limit.instances_of(supply, claim))
        };
        let counted = nodes.iter().filter(|claim| limit.counts(supply, claim));
        counted.map(taken).fold(0, u64::saturating_add)
    }
}

impl PoolLimit {
    fn new(pool: Option<usize>, kind: LimitKind, ceiling: u64, held: u64) -> Self {
        let left = ceiling.saturating_sub(held);
        Self { pool, kind, ceiling, is_default: false, held, before: left, left }
    }

    pub fn name(&self) -> String {
        self.kind.name()
    }

    fn quantity(&self, amount: u64) -> String {
        self.kind.quantity(amount)
    }

    /// Returns whether the nodes of a claim's pool count towards it.
    fn counts(&self, supply: &Supply<'_>, claim: &PlannedClaim) -> bool {
        self.pool.is_none_or(|pool| supply.pools[pool].pool.name == claim.pool)
    }

    /// Returns all MIG instances of its kind that the GPUs of a planned node could be cut into, if they are cut into some.
    fn instances_of(&self, supply: &Supply<'_>, claim: &PlannedClaim) -> u64 {
        let Some(resource) = self.kind.mig().map(ResourceName::as_str) else { return 0 };
        let name = resource.strip_prefix(ResourceName::MIG_PREFIX);
        let is_cut = |gpu: &PlannedGpu| match gpu {
            PlannedGpu::Mig(instances) => instances.iter().any(|one| Some(one.name.as_str()) == name),
            _ => false,
        };
        let of_pool = supply.pools.iter().find(|of| of.pool.name == claim.pool);
        let catalogue = of_pool.map(|of| supply.tables[of.table].catalogue);
        let catalogue = catalogue.filter(|_| claim.gpus.iter().any(is_cut));
        let kind = catalogue.and_then(|all| all.instance_type(&claim.offering().instance_type));
        kind.map_or(0, |kind| cut::most(kind, resource))
    }

    /// Returns the amount in use and on order, with what this plan buys. It may be more than the limit allows.
    fn used(&self) -> u64 {
        self.held.saturating_add(self.before.saturating_sub(self.left))
    }

    /// Returns the limit and its remedy in words.
    fn in_words(&self, supply: &Supply<'_>) -> (String, &'static str) {
        let pool = self.pool.map(|pool| supply.pools[pool].pool);
        let (of, raise) = owner_in_words(pool, self.is_default);
        (format!("limit {} = {} {of}", self.name(), self.quantity(self.ceiling)), raise)
    }

    /// Offers to free nodes. Nodes that this plan buys are not there to be freed.
    fn or_free_nodes(&self) -> &'static str {
        if self.before < self.ceiling { " or free nodes" } else { "" }
    }
}

/// Returns whose limit it is, and its remedy, in words. A limit without a pool is on all pools together.
pub(crate) fn owner_in_words(pool: Option<&Pool>, is_default: bool) -> (String, &'static str) {
    match pool {
        Some(pool) if is_default => {
            let raise = if pool.allow_unknown_price.is_empty() {
                "set spec.limits.usdPerHour of the pool"
            } else {
                "raise --default-usd-per-hour (a limit of the pool's own would end allowUnknownPrices) or create a NodePool with its own limit"
            };
            (format!("(default) of pool `{}`", pool.name), raise)
        }
        Some(pool) => (format!("of pool `{}`", pool.name), "raise spec.limits"),
        None => ("over all pools".to_owned(), "raise it"),
    }
}

pub(crate) fn ceilings(limits: &PoolLimits) -> Vec<(LimitKind, u64)> {
    let mut all: Vec<(LimitKind, u64)> = limits
        .resources
        .iter()
        .map(|(name, ceiling)| (LimitKind::Resource(name.clone()), *ceiling))
        .collect();
    all.extend(limits.nodes.map(|ceiling| (LimitKind::Nodes, ceiling)));
    all.extend(limits.usd_per_hour.map(|ceiling| (LimitKind::UsdPerHour, ceiling.micros())));
    all
}
