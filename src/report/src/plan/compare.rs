//! What the lower bound and simpler ways to buy say about a plan. A sentence about them holds for the costs that are printed.

use std::cmp::Reverse;

use poolwright_catalog::{Usd, UsdPerHour};
use poolwright_core::plan::{Baseline, CostRule};
use poolwright_solver::Proof;

use super::document::{Document, RuleCost};

/// What the lower bound proves.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// No plan for the same pods costs less, if it keeps these rules.
    Cheapest(Vec<Under>),
    /// In each step, no plan costs less, given the steps before, if it keeps these rules.
    CheapestInSteps(Vec<Under>),
    /// A plan that keeps the same rules may cost less, but only by this part of the bound.
    Within(f64),
}

/// A rule under which a bound holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Under {
    /// Some pods have certain places, because of rules about other pods.
    Places,
    /// Preferences of pods are met.
    Preferences,
    /// Pools of a higher weight come first.
    Weights,
    /// Interruptions count besides the price.
    Interruptions,
    /// Pools keep their rules on spot nodes.
    SpotRules,
    /// Nodes leave the cloud the choice that `minValues` of pools asks for.
    MinValues,
    /// Pods keep their topology spread over nodes.
    NodeSpread,
    /// Room on expensive nodes stays free for pods without a cheaper home.
    KeptRoom,
    /// Pods of a higher priority get their first choice before others.
    Priorities,
    /// Nodes are of offerings with known prices, and others that might cost less, or that the plan buys too, have none.
    KnownPrices,
}

/// A simpler way to buy, compared with the plan.
#[derive(Clone, Debug, PartialEq)]
pub enum Against {
    /// It may exceed a limit of a namespace, which the plan keeps, so it is no other way to buy.
    BeyondNamespaceLimits,
    /// It leaves pods or units of buffers without a place, so the costs are not those of the same pods.
    Fewer {
        /// The number of pods.
        pods: usize,
        /// The number of units of buffers.
        units: usize,
    },
    /// It costs more, by this part of the plan's cost.
    Dearer(f64),
    /// It costs as much, or more than a plan that costs nothing.
    NotCheaper,
    /// It costs less.
    Cheaper(UsdPerHour, WhyCheaper),
}

/// Why a simpler way to buy costs less than a plan.
#[derive(Clone, Debug, PartialEq)]
pub enum WhyCheaper {
    /// It costs this much more over time.
    OverTime(Usd),
    /// It is expected to lose this much more by interruptions.
    Interruptions(UsdPerHour),
    /// It breaks these rules, which the plan keeps: those that cost something, the dearest first.
    Breaks(Vec<CostRule>),
    /// The plan serves pods in an order that some rules set, in steps if a limit split it.
    Order {
        /// Whom the plan serves first, and the other way does not.
        serves: Serves,
        /// These rules with their prices, unless they cost nothing; the dearest first.
        by: Vec<(CostRule, Option<UsdPerHour>)>,
    },
    /// The search ended before the best plan.
    Search,
    /// Without this rule the plan would cost less too.
    Rule(CostRule),
    /// The plan keeps this rule, and what that costs is not known.
    Unpriced(CostRule),
    /// No reason is known.
    Unknown,
}

/// The pods that a plan serves first, compared with another way to buy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Serves {
    /// As many pods.
    AsMany,
    /// More pods.
    More,
    /// More pods of a higher priority, but no more in all.
    MoreImportant,
}

impl Document {
    /// Returns the rules under which the bound holds, the most natural order for a sentence.
    pub fn under(&self) -> Vec<Under> {
        let lists = |rule: CostRule| self.rules.iter().any(|of| of.rule == rule);
        // Neither the cost nor the bound counts such a node.
        let buys_unpriced = self.nodes.iter().any(|node| node.usd_per_hour.is_none());
        let all = [
            (Under::Preferences, lists(CostRule::Preferences)),
            (Under::Places, self.pinned_pods > 0),
            (Under::Weights, lists(CostRule::Weights)),
            (Under::Interruptions, lists(CostRule::Interruptions)),
            (Under::SpotRules, lists(CostRule::SpotRules)),
            (Under::MinValues, lists(CostRule::MinValues)),
            (Under::NodeSpread, lists(CostRule::NodeSpread)),
            (Under::KeptRoom, lists(CostRule::KeptRoom)),
            (Under::Priorities, lists(CostRule::Priorities)),
            (Under::KnownPrices, self.unpriced_types > 0 || buys_unpriced),
        ];
        all.into_iter().filter(|(_, holds)| *holds).map(|(under, _)| under).collect()
    }

    /// Returns what the bound proves about the plan's cost: about the cost over time if there is one, or else the cost per hour.
    pub fn verdict(&self) -> Verdict {
        let is_reached = match (&self.over_time, self.lower_bound_usd_per_hour) {
            (Some(over_time), _) => over_time.usd <= over_time.lower_bound_usd,
            (None, Some(bound)) => self.counted() <= bound,
            (None, None) => false,
        };
        match (is_reached && self.proof == Proof::Exact, self.in_steps) {
            (true, false) => Verdict::Cheapest(self.under()),
            (true, true) => Verdict::CheapestInSteps(self.under()),
            (false, _) => Verdict::Within(self.gap),
        }
    }

    /// Returns whether a lower bound is known. A bound of zero says nothing about a plan that costs something.
    pub fn is_bounded(&self) -> bool {
        match (&self.over_time, self.lower_bound_usd_per_hour) {
            (Some(over_time), _) => over_time.lower_bound_usd > Usd::default(),
            (None, Some(bound)) => bound > UsdPerHour::ZERO,
            (None, None) => false,
        }
    }

    /// Returns the cost and the expected loss.
    fn counted(&self) -> UsdPerHour {
        self.cost_usd_per_hour + self.risk_usd_per_hour.unwrap_or_default()
    }

    /// Compares a simpler way to buy with the plan.
    pub fn against(&self, other: &Baseline) -> Against {
        let (mine, theirs) = (self.cost_usd_per_hour, other.cost);
        if other.ignores_namespace_limits {
            Against::BeyondNamespaceLimits
        } else if other.unplaced + other.units_unplaced > 0 {
            Against::Fewer { pods: other.unplaced, units: other.units_unplaced }
        } else if theirs < mine {
            Against::Cheaper(mine.saturating_sub(theirs), self.why_cheaper(other))
        } else if theirs > mine && mine > UsdPerHour::ZERO {
            Against::Dearer((theirs.micros() - mine.micros()) as f64 / mine.micros() as f64)
        } else {
            Against::NotCheaper
        }
    }

    /// Returns why another way to buy costs less than the plan.
    fn why_cheaper(&self, other: &Baseline) -> WhyCheaper {
        let later = self.over_time.zip(other.over_time).map(|(mine, theirs)| (mine.usd, theirs));
        if let Some((mine, theirs)) = later.filter(|(mine, theirs)| mine <= theirs) {
            return WhyCheaper::OverTime(Usd(theirs.0 - mine.0));
        }
        let loses = other.risk.saturating_sub(self.risk_usd_per_hour.unwrap_or_default());
        if self.over_time.is_none() && loses > UsdPerHour::ZERO && other.cost + other.risk >= self.counted() {
            return WhyCheaper::Interruptions(loses);
        }
        let mut broken = self.broken(other);
        broken.sort_by_key(|(_, price)| Reverse(*price));
        let costs = |(_, price): &&(CostRule, Option<UsdPerHour>)| *price != Some(UsdPerHour::ZERO);
        let that_cost: Vec<CostRule> = broken.iter().filter(costs).map(|(rule, _)| *rule).collect();
        let others = || self.rules.iter().filter(|of| of.rule != CostRule::Interruptions);
        let serves = match (other.serves_later, other.defers_priorities) {
            (false, _) => Serves::AsMany,
            (true, false) => Serves::More,
            (true, true) => Serves::MoreImportant,
        };
        let by = self.orders(serves);
        if !that_cost.is_empty() {
            WhyCheaper::Breaks(that_cost)
        } else if self.in_steps || (other.serves_later && !by.is_empty()) {
            WhyCheaper::Order { serves, by }
        } else if matches!(self.verdict(), Verdict::Within(_)) {
            WhyCheaper::Search
        } else if !broken.is_empty() {
            // Each of two rules may cost nothing as long as the other is there.
            WhyCheaper::Breaks(broken.into_iter().map(|(rule, _)| rule).collect())
        } else if let Some(of) = others().find(|of| of.usd_per_hour > Some(UsdPerHour::ZERO)) {
            WhyCheaper::Rule(of.rule)
        } else if let Some(of) = others().find(|of| of.usd_per_hour.is_none() || of.at_least) {
            WhyCheaper::Unpriced(of.rule)
        } else {
            WhyCheaper::Unknown
        }
    }

    /// Returns the rules that set the order in which the plan serves pods, with their prices, unless they cost nothing; the dearest first.
    /// Priorities are among them only if the plan serves pods of a higher priority for their sake.
    fn orders(&self, serves: Serves) -> Vec<(CostRule, Option<UsdPerHour>)> {
        let orders = |of: &&RuleCost| {
            let is_order = match of.rule {
                CostRule::Weights | CostRule::Preferences => true,
                CostRule::Priorities => serves == Serves::MoreImportant,
                _ => false,
            };
            is_order && (of.at_least || of.usd_per_hour != Some(UsdPerHour::ZERO))
        };
        let mut all: Vec<_> = self.rules.iter().filter(orders).map(|of| (of.rule, of.usd_per_hour)).collect();
        all.sort_by_key(|(_, price)| Reverse(*price));
        all
    }

    /// Returns the rules of the plan that another way to buy breaks, with their prices. A rule that no node of the plan concerns
    /// has no price.
    fn broken(&self, other: &Baseline) -> Vec<(CostRule, Option<UsdPerHour>)> {
        let all =
            [(CostRule::SpotRules, other.breaks_spot_rules), (CostRule::MinValues, other.breaks_min_values)];
        let price =
            |rule: CostRule| self.rules.iter().find(|of| of.rule == rule).and_then(|of| of.usd_per_hour);
        let broken = all.into_iter().filter(|(_, is_broken)| *is_broken);
        broken.map(|(rule, _)| (rule, price(rule))).collect()
    }
}
