//! The sentences that compare a plan with its lower bound, with plans that lack a rule, and with simpler ways to buy.

use poolwright_catalog::UsdPerHour;
use poolwright_core::plan::{Baseline, CostRule};
use poolwright_report::plan::{Against, Document, RuleCost, Serves, Under, Verdict, WhyCheaper};

use super::solved::proof;
use super::table::{percent, pods_and_units};

/// Returns a lower bound, in words, and what it proves.
pub fn bound(plan: &Document, words: &str, is_zero: bool) -> String {
    if is_zero && matches!(plan.verdict(), Verdict::Within(_)) {
        return "none is known, so another plan could cost less".to_owned();
    }
    format!("{words}, {}", verdict(plan))
}

/// Returns what the lower bound proves.
pub fn verdict(plan: &Document) -> String {
    match plan.verdict() {
        Verdict::Cheapest(under) if under.is_empty() => "this plan is as cheap as any can be".to_owned(),
        Verdict::Cheapest(under) => format!("this plan is as cheap as any {}", words(&under)),
        Verdict::CheapestInSteps(under) => {
            let under = if under.is_empty() { "can be".to_owned() } else { words(&under) };
            format!("a limit split this plan into steps, and each step is as cheap as any {under}")
        }
        Verdict::Within(gap) => {
            let steps = if plan.in_steps { " in these steps" } else { "" };
            let gap = percent(gap);
            let mut kept = plan.under();
            kept.retain(|under| {
                matches!(under, Under::SpotRules | Under::NodeSpread | Under::KeptRoom | Under::KnownPrices)
            });
            let which = if kept.is_empty() { String::new() } else { format!(" {}", words(&kept)) };
            if kept.contains(&Under::SpotRules) {
                return format!(
                    "no plan{which} can cost less{steps}; gap {gap}: the bound knows these rules only in part"
                );
            }
            format!("no plan{which} can cost less{steps}; gap {gap}, proof {}", proof(plan.proof))
        }
    }
}

fn words(under: &[Under]) -> String {
    let word = |under: &Under| match under {
        Under::Places => "with these zones",
        Under::Preferences => "that meets these preferences",
        Under::Weights => "under the pools' weights",
        Under::Interruptions => "if interruptions count",
        Under::SpotRules => "under the pools' rules on spot nodes",
        Under::MinValues => "under the pools' minValues",
        Under::NodeSpread => "under the pods' spread over nodes",
        Under::KeptRoom => "that keeps the same room free",
        Under::Priorities => "under the pods' priorities",
        Under::KnownPrices => "of offerings with known prices",
    };
    under.iter().map(word).collect::<Vec<_>>().join(", ")
}

/// Returns a row for each rule by which the plan may cost more.
pub fn rules(plan: &Document) -> Vec<(&'static str, String)> {
    plan.rules.iter().map(|of| (name(of.rule), rule(plan, *of))).collect()
}

fn name(rule: CostRule) -> &'static str {
    match rule {
        CostRule::Weights => "Pool weights",
        CostRule::Preferences => "Preferences",
        CostRule::Interruptions => "Counting loss",
        CostRule::SpotRules => "Spot rules",
        CostRule::MinValues => "minValues",
        CostRule::NodeSpread => "Node spread",
        CostRule::KeptRoom => "Kept room",
        CostRule::Priorities => "Priorities",
    }
}

fn rule(plan: &Document, of: RuleCost) -> String {
    let RuleCost { rule, usd_per_hour, at_least, at_most, risk_without } = of;
    let (without, counted) = match rule {
        CostRule::Weights => ("with equal weights", true),
        CostRule::Preferences => ("without them", true),
        CostRule::Interruptions => ("by price alone", false),
        CostRule::SpotRules => ("without the pools' rules on spot nodes", true),
        CostRule::MinValues => ("without minValues", true),
        CostRule::NodeSpread => ("without spread over nodes", true),
        CostRule::KeptRoom => ("without kept room", true),
        CostRule::Priorities => ("with equal priorities", true),
    };
    let risk = plan.risk_usd_per_hour.filter(|_| counted).unwrap_or_default();
    let with_loss = if risk + risk_without > UsdPerHour::ZERO { ", expected loss included" } else { "" };
    match usd_per_hour {
        Some(cost) if cost > UsdPerHour::ZERO => {
            let other = (plan.cost_usd_per_hour + risk).saturating_sub(cost);
            let how_much = match (at_least, at_most) {
                (false, false) => "",
                (true, false) => "at least ",
                (false, true) => "at most ",
                // Neither of the two plans is proven to be the cheapest of its kind.
                (true, true) => {
                    return format!(
                        "cost {cost:#} as far as is known: {without} a plan for {other:#} was found{with_loss}"
                    );
                }
            };
            format!("cost {how_much}{cost:#}: {without} these pods would cost {other:#}{with_loss}")
        }
        Some(_) if at_least => format!("no cheaper plan {without} was found{with_loss}"),
        Some(_) => format!("cost nothing: {without} these pods would cost the same{with_loss}"),
        None if plan.over_time.is_some() => {
            "no price at this moment, because costs over time decide".to_owned()
        }
        None => format!("no price: a plan {without} would not be for the same pods"),
    }
}

/// Returns a row for each simpler way to buy.
pub fn baselines(plan: &Document) -> Vec<(&'static str, String)> {
    let (alone, first_fit) = (&plan.baselines.one_pod_per_node, &plan.baselines.first_fit);
    // A way that a plan with equal weights would match is not said to have the same weights.
    let by_weights = |other: &Baseline| {
        matches!(plan.against(other), Against::Cheaper(_, WhyCheaper::Rule(CostRule::Weights)))
    };
    let same = if by_weights(alone) || by_weights(first_fit) {
        "prices, limits and commitments"
    } else {
        "prices, limits, commitments and weights"
    };
    let note = format!("with the same {same}, at this moment; `simulate` compares costs over time");
    let is_compared = |other: &Baseline| plan.against(other) != Against::BeyondNamespaceLimits;
    let mut rows = vec![
        // Nobody buys a node for each pod, so what that costs more is no saving.
        ("One pod per node", against(plan, alone, false)),
        ("First fit", against(plan, first_fit, true)),
    ];
    match (is_compared(alone), is_compared(first_fit)) {
        (true, true) => rows.push(("", format!("both {note}"))),
        (false, false) => {}
        _ => rows.push(("", note)),
    }
    rows
}

fn against(plan: &Document, other: &Baseline, is_saving: bool) -> String {
    let text = if other.risk > UsdPerHour::ZERO {
        format!("{:#} and {:#} expected loss", other.cost, other.risk)
    } else {
        format!("{:#}", other.cost)
    };
    match plan.against(other) {
        Against::BeyondNamespaceLimits => {
            "not compared: it may exceed a limit of a namespace, which this plan keeps".to_owned()
        }
        Against::Fewer { pods, units } => {
            let them = if pods + units == 1 { "it" } else { "them" };
            let left = pods_and_units(pods, units);
            text + &format!(", without {left}: within the limits it finds no node for {them}")
        }
        Against::Dearer(more) if is_saving => text + &format!(", {} more", percent(more)),
        Against::Dearer(_) | Against::NotCheaper => text,
        Against::Cheaper(by, why) => text + &format!(", {by:#} less: {}", cheaper(plan, why)),
    }
}

fn cheaper(plan: &Document, why: WhyCheaper) -> String {
    match why {
        WhyCheaper::OverTime(more) => format!("over time it costs {more:#} more"),
        WhyCheaper::Interruptions(more) => {
            format!("its expected loss by interruptions is {more:#} higher")
        }
        WhyCheaper::Breaks(rules) => {
            let rules: Vec<&str> = rules.into_iter().map(kept).collect();
            format!("it does not keep {}, and the plan does", rules.join(" or "))
        }
        WhyCheaper::Order { serves, by } => order(serves, by, plan.in_steps),
        WhyCheaper::Search if plan.under().contains(&Under::SpotRules) => {
            "the plan is not proven to be the cheapest under the pools' rules on spot nodes".to_owned()
        }
        WhyCheaper::Search if !plan.is_bounded() => {
            "no lower bound is known, so the search may have missed it; a longer --time-limit may find it"
                .to_owned()
        }
        WhyCheaper::Search => {
            format!(
                "the search ended {} above the bound; --gap and --time-limit extend it",
                percent(plan.gap)
            )
        }
        WhyCheaper::Rule(CostRule::Weights) => "with equal weights, the plan would cost less too".to_owned(),
        WhyCheaper::Rule(CostRule::Preferences) => {
            "without the pods' preferences, the plan would cost less too".to_owned()
        }
        WhyCheaper::Rule(CostRule::Interruptions) => "interruptions count for the plan".to_owned(),
        WhyCheaper::Rule(CostRule::SpotRules) => {
            "without the pools' rules on spot nodes, the plan would cost less too".to_owned()
        }
        WhyCheaper::Rule(CostRule::MinValues) => {
            "without the pools' minValues, the plan would cost less too".to_owned()
        }
        WhyCheaper::Rule(CostRule::NodeSpread) => {
            "without the pods' spread over nodes, the plan would cost less too".to_owned()
        }
        WhyCheaper::Rule(CostRule::KeptRoom) => "without kept room, the plan would cost less too".to_owned(),
        WhyCheaper::Rule(CostRule::Priorities) => {
            "with equal priorities, the plan would cost less too".to_owned()
        }
        WhyCheaper::Unpriced(rule) => {
            format!("the reason may be that the plan keeps {}; what that costs is not known", kept(rule))
        }
        WhyCheaper::Unknown => {
            "no rule explains that; please report it, with the file that --save-problem writes".to_owned()
        }
    }
}

/// Says whom the plan serves first, other than a cheaper way, because of these rules.
fn order(serves: Serves, by: Vec<(CostRule, Option<UsdPerHour>)>, in_steps: bool) -> String {
    let mut rules: Vec<CostRule> = by.iter().map(|(rule, _)| *rule).collect();
    rules.retain(|rule| *rule != CostRule::Priorities);
    let whose = if serves == Serves::MoreImportant { " of a higher priority" } else { "" };
    let (what, limits) = match (serves, rules.as_slice()) {
        (Serves::AsMany, _) => (
            "a limit split this plan into steps, and the first ones took what later ones lack".to_owned(),
            "",
        ),
        (_, [CostRule::Weights]) => {
            (format!("it leaves more pods{whose} to pools of a lower weight"), " than the limits ask for")
        }
        (_, [CostRule::Preferences]) => {
            (format!("it meets the preferences of fewer pods{whose}"), " than the limits allow")
        }
        _ => (format!("it gives fewer pods{whose} their first choice"), " than the limits allow"),
    };
    let than = if in_steps { limits } else { "" };
    let rows: String = by.into_iter().map(see).collect();
    format!("{what}{than}{rows}")
}

/// Refers to the row of a rule, with its price if that is known.
fn see((rule, price): (CostRule, Option<UsdPerHour>)) -> String {
    let price = price.filter(|price| *price > UsdPerHour::ZERO);
    let price = price.map_or_else(String::new, |price| format!(", {price:#}"));
    format!("; see `{}`{price}", name(rule))
}

/// Returns a rule as the object of `keep`.
fn kept(rule: CostRule) -> &'static str {
    match rule {
        CostRule::Weights => "the pools' weights",
        CostRule::Preferences => "the pods' preferences",
        CostRule::Interruptions => "its count of interruptions",
        CostRule::SpotRules => "the pools' rules on spot nodes",
        CostRule::MinValues => "the pools' minValues",
        CostRule::NodeSpread => "the pods' spread over nodes",
        CostRule::KeptRoom => "room free for pods without a cheaper home",
        CostRule::Priorities => "the pods' priorities",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_way_that_is_cheaper_because_it_serves_others_first_names_the_rule_that_asks_for_the_order() {
        let price = Some("0.07".parse().unwrap());
        let weights = |serves, in_steps| order(serves, vec![(CostRule::Weights, price)], in_steps);
        let see = "; see `Pool weights`, $0.0700/h";
        let later = "it leaves more pods to pools of a lower weight";
        assert_eq!(weights(Serves::More, false), format!("{later}{see}"));
        assert_eq!(weights(Serves::More, true), format!("{later} than the limits ask for{see}"));
        assert_eq!(
            weights(Serves::MoreImportant, true),
            format!(
                "it leaves more pods of a higher priority to pools of a lower weight than the limits ask for{see}"
            )
        );
        let two = vec![(CostRule::Weights, None), (CostRule::Preferences, None)];
        assert_eq!(
            order(Serves::More, two, true),
            "it gives fewer pods their first choice than the limits allow; see `Pool weights`; see `Preferences`"
        );
    }
}
