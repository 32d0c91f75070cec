//! The explanation in plain sentences.

use std::collections::BTreeMap;
use std::fmt;

use poolwright_catalog::UsdPerHour;

use super::exclude::{GpuWhy, Why};
use super::{Basis, Excluded, Explanation, Scarce};
use crate::problem::Problem;
use crate::solution::UnplacedReason;

/// The number of alternatives named one by one.
const ALTERNATIVES: usize = 5;
/// The number of candidates named for one rule.
const NAMES: usize = 3;

/// Returns a reason for leaving pods out, in words.
pub(super) fn reason(problem: &Problem, reason: UnplacedReason) -> String {
    match reason {
        UnplacedReason::NothingFits => "no candidate, even empty, holds one such pod".to_owned(),
        UnplacedReason::LimitReached(at) => {
            format!("limit `{}` is used up", problem.limits[at as usize].name)
        }
        UnplacedReason::NoMoreAvailable => "all available nodes are bought".to_owned(),
        UnplacedReason::GangIncomplete(at) => {
            format!("gang `{}` cannot be placed whole", problem.gangs[at as usize].name)
        }
        UnplacedReason::Unspreadable(at) => {
            format!("they cannot be spread as `{}` asks", problem.spreads[at as usize].name)
        }
        UnplacedReason::Inflexible(at) => {
            format!(
                "no node that holds them could be as many others as `{}` asks",
                problem.flexibility[at as usize].name
            )
        }
        UnplacedReason::ShareReached(at) => {
            format!(
                "node share `{}` allows no more nodes of that kind",
                problem.node_shares[at as usize].name
            )
        }
        UnplacedReason::NoLayout => {
            "the search for the layout of the GPUs ended without a place for them on their node".to_owned()
        }
    }
}

fn pods(count: u64) -> String {
    if count == 1 { "1 pod".to_owned() } else { format!("{count} pods") }
}

fn price(price: Option<UsdPerHour>) -> String {
    price.map_or_else(|| "an unknown price".to_owned(), |price| format!("{price:#}"))
}

/// Formats an amount that may be negative: `$0.1200/h more`.
fn more(micros: i64) -> String {
    let amount = UsdPerHour::from_micros(micros.unsigned_abs());
    if micros < 0 { format!("{amount:#} less") } else { format!("{amount:#} more") }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let out: u64 = self.left_out.iter().map(|left| left.pods).sum();
        writeln!(
            f,
            "class `{}`: {}, {} placed, {out} left out",
            self.name,
            pods(self.pods),
            self.pods.saturating_sub(out)
        )?;
        for placed in &self.placed {
            match (placed.candidate, placed.nodes) {
                (None, _) => writeln!(f, "  {} on existing node `{}`", pods(placed.pods), placed.name)?,
                (Some(_), 1) => {
                    writeln!(
                        f,
                        "  {} on a new {} at {}",
                        pods(placed.pods),
                        placed.name,
                        price(placed.price)
                    )?;
                }
                (Some(_), nodes) => writeln!(
                    f,
                    "  {} on {nodes} new {} at {} each",
                    pods(placed.pods),
                    placed.name,
                    price(placed.price)
                )?,
            }
        }
        for left in &self.left_out {
            writeln!(f, "  {} left out: {}", pods(left.pods), left.because)?;
        }
        self.write_alternatives(f)?;
        for Scarce { name, limit, saves, units } in &self.scarce {
            match (limit, units) {
                (false, _) => writeln!(f, "at the plan's prices, one more {name} would save {saves:#}")?,
                (true, 1) => {
                    writeln!(f, "at the plan's prices, one more of limit `{name}` would save {saves:#}")?;
                }
                (true, _) => writeln!(
                    f,
                    "at the plan's prices, a million more of limit `{name}` would save {saves:#}"
                )?,
            }
        }
        self.write_excluded(f)
    }
}

impl Explanation {
    fn write_alternatives(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.alternatives.is_empty() {
            return Ok(());
        }
        match self.basis {
            Basis::ShadowPrices => {
                writeln!(f, "other nodes, filled as well as we can at the plan's prices for pods:")?;
            }
            Basis::Standalone => {
                writeln!(
                    f,
                    "other nodes, for each pod if its node held only such pods (the plan has no shadow prices):"
                )?;
            }
        }
        for other in self.alternatives.iter().take(ALTERNATIVES) {
            writeln!(f, "  {} would cost {}", other.name, more(other.more))?;
        }
        if let Some(next) = self.alternatives.get(ALTERNATIVES) {
            let rest = self.alternatives.len() - ALTERNATIVES;
            writeln!(f, "  and {rest} others, from {}", more(next.more))?;
        }
        Ok(())
    }

    fn write_excluded(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.excluded.is_empty() {
            return Ok(());
        }
        let mut groups: BTreeMap<(u8, String), Vec<&Excluded>> = BTreeMap::new();
        for excluded in &self.excluded {
            groups.entry(group(&excluded.why)).or_default().push(excluded);
        }
        writeln!(f, "not used:")?;
        for ((_, rule), of) in groups {
            let names: Vec<String> = of
                .iter()
                .take(NAMES)
                .map(|excluded| match &excluded.why {
                    Why::DominatedBy(better) => format!("{} by {better}", excluded.name),
                    Why::AllBought(count) => format!("{} of {}", count, excluded.name),
                    _ => excluded.name.clone(),
                })
                .collect();
            let rest = of.len() - names.len();
            let rest = if rest > 0 { format!(" and {rest} more") } else { String::new() };
            writeln!(f, "  {}{}: {}{rest}", rule, most(&of), names.join(", "))?;
        }
        Ok(())
    }
}

/// Returns the text for all candidates that a rule excludes, in the order of [`Why`].
fn group(why: &Why) -> (u8, String) {
    match why {
        Why::NotAllowed => (0, "not allowed for these pods".to_owned()),
        Why::KeptFree => (1, "kept free for pods without a cheaper home".to_owned()),
        Why::DoesNotFit { resource, wants, .. } => {
            (2, format!("too little {resource} for a pod that takes {}", resource.quantity(*wants)))
        }
        Why::Gpus(why) => (3, gpus(*why).to_owned()),
        Why::Ceiling => (4, "the pods allow none of them on any node".to_owned()),
        Why::Domain(topology) => (5, format!("no eligible `{topology}`")),
        Why::OverLimit(limit) => (6, format!("one node alone passes limit `{limit}`")),
        Why::Inflexible(rule) => (7, format!("could not be as many others as `{rule}` asks")),
        Why::NoStock => (8, "none to be had".to_owned()),
        Why::AllBought(_) => (9, "all available nodes are bought".to_owned()),
        Why::LimitReached(limit) => (10, format!("limit `{limit}` has no room for one more")),
        Why::DominatedBy(_) => (11, "never better than another for less or the same".to_owned()),
    }
}

/// Returns the largest capacity among candidates that are too small.
fn most(of: &[&Excluded]) -> String {
    let largest = of
        .iter()
        .filter_map(|excluded| match &excluded.why {
            Why::DoesNotFit { resource, has, .. } => Some((*has, resource)),
            _ => None,
        })
        .max_by_key(|(has, _)| *has);
    largest.map_or_else(String::new, |(has, resource)| format!(", {} at most", resource.quantity(has)))
}

fn gpus(why: GpuWhy) -> &'static str {
    match why {
        GpuWhy::None => "no GPUs that are shared or cut",
        GpuWhy::NotShared => "GPUs are cut, not shared",
        GpuWhy::NotCut => "GPUs are shared, not cut",
        GpuWhy::NotWhole => "no GPU may be given whole",
        GpuWhy::NoProfile => "GPUs have no instance of the profile",
        GpuWhy::TooLittleMemory => "a GPU has too little memory",
        GpuWhy::TooFew => "too few GPUs, or too few places on them",
    }
}
