//! The answer as a document. All forms of it are printed from this.

use poolwright_catalog::{Usd, UsdPerHour};
use poolwright_report::money::{amount, maybe_usd, usd};
use poolwright_report::plan::UnplacedPod;
use poolwright_terms::{API_VERSION, CapacityType};
use serde::Serialize;

use super::assumptions::Assumption;
use super::delta::{Delta, monthly};
use super::difference::{Difference, KindChange, Move};
use super::outcome::{Outcome, Unplanned};
use super::verdict::verdict;
use crate::args::Threshold;

/// The answer.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Answer {
    /// `poolwright.dev/v1alpha1`.
    api_version: &'static str,
    /// `WhatIf`.
    kind: &'static str,
    /// The answer in one line.
    pub verdict: String,
    /// Whether anything differs.
    pub differs: bool,
    /// The limits that the cost exceeds, or why this cannot be judged.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub exceeded: Vec<String>,
    /// What was changed.
    pub changes: Vec<String>,
    /// The base.
    pub before: Side,
    /// The base with the changes.
    pub after: Side,
    /// What differs.
    pub difference: Differences,
    /// The next best way to buy after the change, without the type that costs most; absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runner_up: Option<RunnerUp>,
    /// What the figures rest on.
    pub assumptions: Vec<Assumption>,
    /// Notes on how the changed input was understood.
    pub notes: Vec<String>,
}

/// One of the two plans.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Side {
    /// The number of nodes that stay or are bought.
    pub nodes: usize,
    /// Their cost.
    #[serde(serialize_with = "usd")]
    pub usd_per_hour: UsdPerHour,
    /// Their cost in a month of 730 hours.
    #[serde(serialize_with = "amount")]
    pub usd_per_month: Usd,
    /// How many of them have no known price, so that their cost is not counted.
    pub unknown_prices: usize,
    /// The expected loss from interruptions of the nodes to buy.
    #[serde(serialize_with = "usd")]
    pub risk_usd_per_hour: UsdPerHour,
    /// A lower bound for cost and loss; null if the plan was chosen by its cost over time.
    #[serde(serialize_with = "maybe_usd")]
    pub lower_bound_usd_per_hour: Option<UsdPerHour>,
    /// The cost at half as many pods again; null if no such plan is possible.
    #[serde(serialize_with = "maybe_usd")]
    pub usd_per_hour_at_half_more_load: Option<UsdPerHour>,
    /// How many pods wait then; null as the cost.
    pub waiting_at_half_more_load: Option<usize>,
    /// The pods that wait, with the reasons.
    pub waiting: Vec<UnplacedPod>,
    /// The work that is not planned.
    pub unplanned: Unplanned,
}

/// What differs.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Differences {
    /// The difference of the costs.
    pub usd_per_hour: Delta,
    /// The same in a month of 730 hours.
    #[serde(rename = "usdPerMonth", serialize_with = "monthly")]
    pub month: Delta,
    /// The same as a percentage of the cost before, in words: `+12.0 %`; null if that was zero.
    pub percent: Option<String>,
    /// The kinds of nodes of both plans.
    pub nodes: Vec<NodeChange>,
    /// The pods with another place.
    pub moves: Vec<PodMove>,
    /// The pods that wait only after the change.
    pub wait: Vec<String>,
    /// The pods that wait only before the change.
    pub placed: Vec<String>,
    /// The pods that are lost, because no controller makes them anew.
    pub lost: Vec<String>,
    /// The pods that are only there after the change.
    pub added: Vec<String>,
    /// The pods that are only there before the change.
    pub removed: Vec<String>,
}

/// The numbers of nodes of a kind.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeChange {
    /// Instance type.
    pub instance_type: String,
    /// Zone.
    pub zone: String,
    /// Capacity type.
    pub capacity_type: CapacityType,
    /// The number before.
    pub before: usize,
    /// The number after.
    pub after: usize,
    /// The price of each before; null if it is unknown or there is no such node.
    #[serde(serialize_with = "maybe_usd")]
    pub usd_per_hour_before: Option<UsdPerHour>,
    /// The price of each after; null as before.
    #[serde(serialize_with = "maybe_usd")]
    pub usd_per_hour_after: Option<UsdPerHour>,
}

/// A pod with another place.
#[derive(Clone, Debug, Serialize)]
pub struct PodMove {
    /// The pod.
    pub pod: String,
    /// Its place before, in words.
    pub from: String,
    /// Its place after, in words.
    pub to: String,
}

/// The next best way to buy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RunnerUp {
    /// The type that it does without.
    pub without: String,
    /// Its difference from the plan after the change.
    pub usd_per_hour_more: Delta,
    /// How many more pods wait than after the change.
    pub waits_more: usize,
    /// The nodes that it buys: `2 x g6.4xlarge in us-east-1a (on-demand)`.
    pub buys: Vec<String>,
}

/// The base, or the base with the changes, as planned.
#[derive(Clone, Debug, Default)]
pub struct State {
    /// What the plan leads to.
    pub outcome: Outcome,
    /// The pods that wait.
    pub waiting: Vec<UnplacedPod>,
    /// What the plan for half as many pods again leads to; `None` if it is not possible.
    pub at_half_more: Option<Outcome>,
}

impl State {
    fn side(&self) -> Side {
        let outcome = &self.outcome;
        Side {
            nodes: outcome.node_count(),
            usd_per_hour: outcome.cost.usd_per_hour,
            usd_per_month: outcome.cost.usd_per_hour.per_month(),
            unknown_prices: outcome.cost.unknown_prices,
            risk_usd_per_hour: outcome.risk,
            lower_bound_usd_per_hour: outcome.bound,
            usd_per_hour_at_half_more_load: self.at_half_more.as_ref().map(|more| more.cost.usd_per_hour),
            waiting_at_half_more_load: self.at_half_more.as_ref().map(Outcome::waiting),
            waiting: self.waiting.clone(),
            unplanned: outcome.unplanned.clone(),
        }
    }
}

impl Answer {
    /// Compares two states. The other fields are empty, and the caller fills them.
    pub fn of(before: &State, after: &State) -> Self {
        let difference = Difference::between(&before.outcome, &after.outcome);
        Self {
            api_version: API_VERSION,
            kind: "WhatIf",
            verdict: verdict(&before.outcome, &after.outcome, &difference),
            differs: difference.is_any(),
            exceeded: Vec::new(),
            changes: Vec::new(),
            before: before.side(),
            after: after.side(),
            difference: differences(difference, before.outcome.cost.usd_per_hour),
            runner_up: None,
            assumptions: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Records the limits that the rise of the cost exceeds.
    pub fn judge(&mut self, limits: &[Threshold]) {
        // Other nodes of unknown price may replace as many that cost less.
        let of_kinds: usize = self.difference.nodes.iter().map(NodeChange::unpriced_more).sum();
        let unpriced = self.after.unknown_prices.saturating_sub(self.before.unknown_prices).max(of_kinds);
        self.exceeded = self.difference.usd_per_hour.exceeded(limits, self.before.usd_per_hour, unpriced);
    }
}

fn differences(difference: Difference, before: UsdPerHour) -> Differences {
    let Difference { cost, kinds, moves, waits, placed, lost, added, removed, .. } = difference;
    let node = |KindChange { kind, before, after, each_before, each_after }| NodeChange {
        instance_type: kind.instance_type,
        zone: kind.zone,
        capacity_type: kind.capacity_type,
        before,
        after,
        usd_per_hour_before: each_before,
        usd_per_hour_after: each_after,
    };
    let pod = |Move { pod, from, to }| PodMove { pod, from: from.to_string(), to: to.to_string() };
    Differences {
        usd_per_hour: cost,
        month: cost,
        percent: cost.percent_of(before),
        nodes: kinds.into_iter().map(node).collect(),
        moves: moves.into_iter().map(pod).collect(),
        wait: waits,
        placed,
        lost,
        added,
        removed,
    }
}

impl NodeChange {
    /// Returns whether the number or the price differs.
    pub fn is_any(&self) -> bool {
        let prices = self.usd_per_hour_before.zip(self.usd_per_hour_after);
        self.before != self.after || prices.is_some_and(|(before, after)| before != after)
    }

    /// Returns how many more of these nodes have no known price.
    fn unpriced_more(&self) -> usize {
        match (self.usd_per_hour_before, self.usd_per_hour_after) {
            (_, Some(_)) => 0,
            (Some(_), None) => self.after,
            (None, None) => self.after.saturating_sub(self.before),
        }
    }
}

#[cfg(test)]
pub mod tests {
    use super::super::difference::tests::{kind, outcome};
    use super::super::outcome::Place;
    use super::*;

    /// Returns an answer in which a pod moves from a node to a dearer one.
    pub fn answer() -> Answer {
        let state = |cost, name, place| State {
            outcome: outcome(cost, &[(name, 1)], &[("ml/a", place)]),
            waiting: Vec::new(),
            at_half_more: Some(outcome("3", &[(name, 2)], &[])),
        };
        let before = state("1", "g5.xlarge", Place::Node("gpu-1".to_owned()));
        let after = state("1.5", "g6.xlarge", Place::New(kind("g6.xlarge")));
        let mut answer = Answer::of(&before, &after);
        answer.changes.push("--without: no g5.*".to_owned());
        answer
    }

    #[test]
    fn the_document_has_money_as_numbers_and_signed_differences() {
        let json = serde_json::to_value(answer()).expect("JSON");
        assert_eq!(json["kind"], "WhatIf");
        assert_eq!(json["differs"], true);
        assert_eq!(json["before"]["usdPerHour"], 1.0);
        assert_eq!(json["after"]["usdPerMonth"], 1095.0);
        assert_eq!(json["after"]["usdPerHourAtHalfMoreLoad"], 3.0);
        assert_eq!(json["difference"]["usdPerHour"], 0.5);
        assert_eq!(json["difference"]["usdPerMonth"], 365.0);
        assert_eq!(json["difference"]["percent"], "+50.0 %");
        assert_eq!(
            json["difference"]["moves"][0],
            serde_json::json!({"pod": "ml/a", "from": "node gpu-1", "to": "a new g6.xlarge in us-east-1a (on-demand)"})
        );
    }

    #[test]
    fn limits_that_the_cost_exceeds_are_recorded() {
        let mut answer = answer();
        answer.judge(&[Threshold::Percent(60_000_000), Threshold::Monthly(Usd(100_000_000))]);
        assert_eq!(answer.exceeded, ["the cost rises by more than $100.00/month"]);
    }

    #[test]
    fn a_limit_cannot_be_judged_if_other_nodes_of_unknown_price_come_for_those_of_before() {
        let state = |name: &str| {
            let mut outcome = outcome("1", &[(name, 1)], &[]);
            outcome.cost.unknown_prices = 1;
            for nodes in outcome.nodes.values_mut() {
                nodes.each = None;
            }
            State { outcome, ..State::default() }
        };
        let exceeded = |before: &State, after: &State| {
            let mut answer = Answer::of(before, after);
            answer.judge(&[Threshold::Percent(60_000_000)]);
            answer.exceeded
        };
        let (old, new) = (state("old"), state("new"));
        assert!(exceeded(&old, &old).is_empty(), "the change adds none");
        for before in [&old, &State::default()] {
            let said = exceeded(before, &new);
            assert!(said.iter().any(|one| one.contains("adds 1 node of unknown price")), "{said:?}");
        }
    }
}
