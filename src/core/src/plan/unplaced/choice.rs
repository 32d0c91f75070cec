//! Pods that are left out because too few offerings hold them for `minValues` of their pools.

use crate::model::MinValuesPolicy;
use crate::plan::pack::classes::PodClass;
use crate::plan::unplaced::inputs::UnplacedInputs;
use crate::supply::flexibility;
use crate::supply::offerings::{Availability, PoolOffering};

impl UnplacedInputs<'_, '_> {
    /// Returns the message if a limit has room for a node that holds the pods, but not for the choice that its pool asks for.
    pub(crate) fn choice_beyond_limits(&self, class: &PodClass<'_>) -> Option<String> {
        let asks = self.supply.pools.iter().any(|supplied| !supplied.pool.min_values.is_empty());
        if self.options.min_values == MinValuesPolicy::BestEffort || !asks {
            return None;
        }
        let mut first = None;
        for (at, supplied) in self.supply.pools.iter().enumerate() {
            let is_within = |offer: &&PoolOffering| {
                let uses = self.uses_of(at, offer.offering, offer.availability.price(), class);
                self.limits.allow(&uses)
            };
            let holds = |offer: &&PoolOffering| self.holds(at, offer, class);
            let offerings = supplied.offers.iter().filter(holds).filter(is_within).map(|offer| {
                (&self.supply.offering(at, offer.offering).id, self.supply.labels(at, offer.offering))
            });
            let offerings: Vec<_> = offerings.collect();
            if offerings.is_empty() {
                continue;
            }
            if offerings.iter().any(|(id, _)| !flexibility::applies(supplied.pool, id)) {
                return None;
            }
            // If one capacity type leaves the choice, another rule keeps the pods off it.
            let key = flexibility::lacking(supplied.pool, &offerings).first().copied()?;
            first.get_or_insert_with(|| key.beyond_limits(supplied.pool, self.options));
        }
        first
    }

    /// Returns whether an offering of a pool can be bought and holds the pods.
    pub(crate) fn holds(&self, at: usize, offer: &PoolOffering, class: &PodClass<'_>) -> bool {
        offer.availability.is_sold() && self.suits(at, offer, class)
    }

    /// Returns whether an offering of a pool would hold the pods, whether or not it can be bought.
    pub(crate) fn suits(&self, at: usize, offer: &PoolOffering, class: &PodClass<'_>) -> bool {
        self.admissions.admits(at, class.signature, offer.offering)
            && class.requests.fits(&self.supply.capacities[offer.capacity])
            && self.grants(at, offer, class)
            && self.colocation.admits(class.profile, &self.supply.residents[offer.residents])
    }

    /// Returns the message if offerings hold the pods, but each of their pools asks for more choice than they leave. Only offerings with
    /// such an availability count.
    pub(crate) fn lacks_choice(
        &self,
        class: &PodClass<'_>,
        counts: fn(Availability) -> bool,
    ) -> Option<String> {
        if self.options.min_values == MinValuesPolicy::BestEffort {
            return None;
        }
        let mut nearest: Option<(usize, String)> = None;
        for (at, supplied) in self.supply.pools.iter().enumerate() {
            let pool = supplied.pool;
            let holds = |offer: &&PoolOffering| counts(offer.availability) && self.suits(at, offer, class);
            let mut holding = supplied.offers.iter().filter(holds).peekable();
            if holding.peek().is_none() {
                continue;
            }
            let offerings = holding.map(|offer| {
                (&self.supply.offering(at, offer.offering).id, self.supply.labels(at, offer.offering))
            });
            let offerings: Vec<_> = offerings.collect();
            if offerings.iter().any(|(id, _)| !flexibility::applies(pool, id)) {
                return None;
            }
            if class.gpu_need.is_some() {
                let message = format!(
                    "pool `{}` has minValues, but parts of GPUs are planned for one instance type; remove minValues, \
                     or set --min-values-policy BestEffort",
                    pool.name
                );
                nearest.get_or_insert((usize::MAX, message));
                continue;
            }
            let lacks = flexibility::lacking(pool, &offerings);
            let key = lacks.first()?;
            let missing = key.at_least - key.found;
            let offering = if key.found == 1 { "offerings with only 1 value" } else { "offerings with only" };
            let values = if key.found == 1 { String::new() } else { format!(" {} values", key.found) };
            // Pods need the choice of every key.
            let others = lacks[1..].iter().map(|key| {
                format!(" (they have {} of {} values of `{}`, too)", key.found, key.at_least, key.key)
            });
            let message = format!(
                "pool `{}` asks for {} values of `{}` to choose from (minValues), but {offering}{values} can hold it{}; widen the pool's \
                 requirements, lower minValues, or set --min-values-policy BestEffort",
                pool.name,
                key.at_least,
                key.key,
                others.collect::<Vec<String>>().concat()
            );
            if nearest.as_ref().is_none_or(|(least, _)| missing < *least) {
                nearest = Some((missing, message));
            }
        }
        nearest.map(|(_, message)| message)
    }
}
