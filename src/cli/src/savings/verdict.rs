//! The answer in one line.

use poolwright_catalog::UsdPerHour;

use super::answer::{Side, part_saved};
use crate::print::{count, counted};

/// Says what the cluster costs now, what it could cost, and what nobody can go below:
/// `Now $3,285.00/month on 3 nodes; the best plan costs $1,825.00/month (-44.4 %); nobody can go below $1,460.00/month.`
pub fn verdict(now: Side, best: Side, limit: Option<UsdPerHour>, left_out: usize) -> String {
    let saves = best.usd_per_month < now.usd_per_month;
    let plan = match part_saved(now, best).filter(|_| saves) {
        Some(part) => format!("the best plan costs {:#}/month (-{part})", best.usd_per_month),
        None => "no cheaper plan was found".to_owned(),
    };
    let limit = match limit {
        Some(limit) => format!("nobody can go below {:#}/month", limit.per_month()),
        None => "how low anybody can go is not known".to_owned(),
    };
    let left_out = match left_out {
        0 => String::new(),
        1 => " 1 node of unknown price is in none of these.".to_owned(),
        more => format!(" {} nodes of unknown price are in none of these.", count(more)),
    };
    format!("Now {:#}/month on {}; {plan}; {limit}.{left_out}", now.usd_per_month, counted(now.nodes, "node"))
}

#[cfg(test)]
mod tests {
    use super::super::answer::Answer;
    use super::super::answer::tests::found;
    use super::super::testing::usd;
    use super::*;

    #[test]
    fn the_verdict_tells_the_cost_now_the_best_plan_and_the_limit() {
        assert_eq!(
            Answer::of(found()).verdict,
            "Now $3,285.00/month on 3 nodes; the best plan costs $1,825.00/month (-44.4 %); nobody can go below $1,460.00/month."
        );
        let side = Side { nodes: 1, usd_per_hour: usd("1"), usd_per_month: usd("1").per_month() };
        assert_eq!(
            verdict(side, side, None, 2),
            "Now $730.00/month on 1 node; no cheaper plan was found; how low anybody can go is not known. \
             2 nodes of unknown price are in none of these."
        );
    }
}
