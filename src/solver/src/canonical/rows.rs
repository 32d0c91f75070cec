//! Rows: sums over the nodes of a plan that have a ceiling.

use std::collections::BTreeMap;

use poolwright_catalog::UsdPerHour;

use super::{Bin, Origin};
use crate::problem::Problem;

/// The meaning of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Row {
    /// A limit of the problem.
    Limit(u32),
    /// A share of nodes of the problem.
    Share(u32),
    /// The rest of a commitment of the problem.
    Commitment(u32),
    /// The available nodes of a candidate, where its twin uses them too.
    Stock(u32),
}

/// The nodes that a commitment covers, and its rest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Covering {
    /// The rest of the commitment, in micro-dollars.
    pub left: u64,
    /// (candidate of the problem, rate, price), the best discount first.
    pub rates: Vec<(u32, u64, u64)>,
}

impl Covering {
    /// Returns whether it covers nodes of `bin`.
    pub fn covers(&self, bin: &Bin) -> bool {
        matches!(bin.origin, Origin::Candidate(candidate) if self.rates.iter().any(|(covered, ..)| *covered == candidate))
    }

    /// Returns the saving on the nodes in `bought` (by candidate), and their use of the commitment. The last node may be
    /// covered in part; its saving is rounded down.
    pub fn saving(&self, bought: &BTreeMap<u32, u64>) -> (u64, u64) {
        let (mut left, mut saved) = (self.left, 0u64);
        for (candidate, rate, price) in &self.rates {
            let count = bought.get(candidate).copied().unwrap_or(0);
            let whole = (left / rate).min(count);
            saved = saved.saturating_add(price.saturating_mul(whole));
            left -= rate * whole;
            if whole < count {
                let part = u128::from(*price) * u128::from(left) / u128::from(*rate);
                saved = saved.saturating_add(u64::try_from(part).unwrap_or(u64::MAX));
                left = 0;
            }
        }
        (saved, self.left - left)
    }
}

/// The amount that one node takes of each row, or gives to it: (row, amount), ascending.
type Uses = Vec<(u32, i128)>;

/// All rows of a problem.
pub(super) struct Rows {
    pub limits: Vec<i128>,
    /// The meaning of each row.
    pub kinds: Vec<Row>,
    /// The uses of one node of each candidate.
    pub uses: Vec<Uses>,
    /// The commitment that covers a candidate, and the uses of a covered node.
    pub twins: Vec<Option<(u32, Uses)>>,
    pub commitments: Vec<Covering>,
}

impl Rows {
    pub fn new(problem: &Problem) -> Self {
        let mut made = Self {
            limits: problem.limits.iter().map(|limit| i128::from(limit.bound)).collect(),
            kinds: (0..problem.limits.len() as u32).map(Row::Limit).collect(),
            uses: problem
                .candidates
                .iter()
                .map(|candidate| {
                    let uses = candidate.limit_use.iter().filter(|(_, amount)| *amount > 0);
                    uses.map(|(limit, amount)| (*limit, i128::from(*amount))).collect()
                })
                .collect(),
            twins: vec![None; problem.candidates.len()],
            commitments: Vec::new(),
        };
        for (index, share) in problem.node_shares.iter().enumerate() {
            // part <= permille/1000 x of, in thousandths of a node. Running nodes and rounding are on the other side.
            let row = made.row(Row::Share(index as u32), share.spare());
            let permille = i128::from(share.at_most_permille);
            for candidate in &share.of {
                let part = share.part.binary_search(candidate).is_ok();
                let amount = if part { 1000 - permille } else { -permille };
                if amount != 0 {
                    made.uses[*candidate as usize].push((row, amount));
                }
            }
        }
        for (index, commitment) in problem.commitments.iter().enumerate() {
            made.cover(problem, index as u32, commitment.left.micros(), &commitment.rates);
        }
        made
    }

    fn row(&mut self, row: Row, limit: i128) -> u32 {
        self.kinds.push(row);
        self.limits.push(limit);
        self.kinds.len() as u32 - 1
    }

    fn cover(&mut self, problem: &Problem, index: u32, left: u64, rates: &[(u32, UsdPerHour)]) {
        let row = self.row(Row::Commitment(index), i128::from(left));
        let price = |candidate: u32| problem.candidates[candidate as usize].price.micros();
        let mut covering = Covering {
            left,
            rates: rates.iter().map(|(at, rate)| (*at, rate.micros(), price(*at))).collect(),
        };
        // The highest saving per dollar of the commitment first: price / rate, descending.
        covering.rates.sort_by(|(first, rate, price), (second, other_rate, other_price)| {
            let (one, other) =
                (u128::from(*price) * u128::from(*other_rate), u128::from(*other_price) * u128::from(*rate));
            other.cmp(&one).then(first.cmp(second))
        });
        for (candidate, rate, price) in &covering.rates {
            let at = *candidate as usize;
            if left == 0 || *price == 0 {
                continue;
            }
            if let Some(most) = problem.candidates[at].max_nodes {
                let stock = self.row(Row::Stock(*candidate), i128::from(most));
                self.uses[at].push((stock, 1));
            }
            let mut uses = self.uses[at].clone();
            uses.push((row, i128::from(*rate)));
            uses.sort_unstable();
            self.twins[at] = Some((index, uses));
        }
        self.commitments.push(covering);
    }
}
