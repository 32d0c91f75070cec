//! The master LP over patterns: the meaning of its rows and columns. [`crate::lp`] solves it.

use crate::canonical::{Model, Pattern, UNLIMITED};
use crate::flow::Split;
use crate::lp::{self, Ask, Lp, Seed};
use crate::meter::Meter;

/// The meaning of a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Column {
    /// A node with this pattern.
    Node(Pattern),
    /// A pod of the first class that takes the place of one of the second.
    Exchange,
    /// An option of a choice.
    Option(u32, Split),
    /// A pod that is left out. It keeps the master of a branch feasible.
    Missing,
}

/// Primal and dual values of a solved master.
#[derive(Clone, Debug, Default)]
pub(crate) struct Values {
    /// The objective in micro-dollars.
    pub objective: f64,
    /// By column.
    pub columns: Vec<f64>,
    /// The dual price of each class: the cost of one more pod.
    pub pods: Vec<f64>,
    /// The dual price of each bin: the saving by one more node.
    pub bins: Vec<f64>,
    /// The dual price of each limit: the saving by one more unit.
    pub limits: Vec<f64>,
    /// The dual price of each choice: the cost of its option.
    pub choices: Vec<f64>,
}

/// The master problem for a demand.
pub(crate) struct Master<'m> {
    model: &'m Model,
    lp: Box<dyn Lp>,
    /// The row numbers in the LP.
    rows: Vec<Option<usize>>,
    bin_rows: Vec<Option<usize>>,
    /// The same, with the divisor of the row.
    limit_rows: Vec<Option<(usize, f64)>>,
    choice_rows: Vec<Option<usize>>,
    /// All columns, in the order of the LP.
    pub columns: Vec<Column>,
}

/// The cost of an exchange, in dollars: almost zero. Among equal points the LP then prefers one with few exchanges, which
/// is closer to an integer plan.
const EXCHANGE: f64 = 2e-5;

impl<'m> Master<'m> {
    /// Creates rows for `demand`, and for the rest of `bins` and `limits`. With `all_rows`, classes without demand also
    /// get a row, so that exchanges can pass through them. One option is taken of each choice marked in `choices`.
    pub fn new(
        model: &'m Model,
        demand: &[u64],
        bins: &[u64],
        limits: &[i128],
        all_rows: bool,
        choices: &[bool],
        seed: Seed,
    ) -> Self {
        let mut lp = lp::new(seed);
        let mut position = 0;
        let mut add = |ask: Ask| {
            lp.add_row(ask);
            position += 1;
            position - 1
        };
        let rows = demand
            .iter()
            .map(|count| (all_rows || *count > 0).then(|| add(Ask::AtLeast(*count as f64))))
            .collect();
        let bin_rows =
            bins.iter().map(|count| (*count != UNLIMITED).then(|| add(Ask::AtMost(*count as f64)))).collect();
        // Some limits count bytes and some nodes, so each row is scaled to a right-hand side near one hundred.
        let mut most: Vec<Option<i128>> = vec![None; limits.len()];
        for (limit, amount) in model.bins.iter().flat_map(|bin| &bin.limit_use) {
            let slot = &mut most[*limit as usize];
            *slot = (*slot).max(Some(amount.abs()));
        }
        let limit_rows = limits
            .iter()
            .enumerate()
            .map(|(limit, bound)| {
                most[limit].map(|most| {
                    // A row whose amounts have both signs may have a right-hand side of zero.
                    let scale = (*bound as f64 / 100.0).max(most as f64 / 1_000.0).max(1e-3);
                    (add(Ask::AtMost(*bound as f64 / scale)), scale)
                })
            })
            .collect();
        let choice_rows = choices.iter().map(|asked| asked.then(|| add(Ask::AtLeast(1.0)))).collect();
        Self { model, lp, rows, bin_rows, limit_rows, choice_rows, columns: Vec::new() }
    }

    fn add(&mut self, column: Column, cost: f64, entries: &[(usize, f64)]) {
        if self.lp.add_column(cost, entries) {
            self.columns.push(column);
        }
    }

    /// Adds a node. Its pods of classes without a row are ignored.
    pub fn add_node(&mut self, pattern: Pattern) {
        let bin = &self.model.bins[pattern.bin as usize];
        let mut entries: Vec<(usize, f64)> = pattern
            .pods
            .iter()
            .filter_map(|(class, count)| self.rows[*class as usize].map(|row| (row, f64::from(*count))))
            .collect();
        entries.extend(self.bin_rows[pattern.bin as usize].map(|row| (row, 1.0)));
        entries.extend(bin.limit_use.iter().filter_map(|(limit, amount)| {
            self.limit_rows[*limit as usize].map(|(row, scale)| (row, *amount as f64 / scale))
        }));
        let cost = bin.cost(&pattern.pods) as f64 / 1e6;
        self.add(Column::Node(pattern), cost, &entries);
    }

    /// Adds an option of a choice, which demands pods of its classes.
    pub fn add_option(&mut self, choice: u32, split: Split) {
        let Some(row) = self.choice_rows.get(choice as usize).copied().flatten() else { return };
        let asks = split
            .iter()
            .filter_map(|(class, count)| self.rows[*class as usize].map(|row| (row, -(*count as f64))));
        let entries: Vec<(usize, f64)> = asks.chain([(row, 1.0)]).collect();
        self.add(Column::Option(choice, split), 0.0, &entries);
    }

    /// Adds a column that lets a pod of `small` take the place of one of `large`.
    pub fn add_exchange(&mut self, small: u32, large: u32) {
        if let (Some(to), Some(from)) = (self.rows[small as usize], self.rows[large as usize]) {
            self.add(Column::Exchange, EXCHANGE, &[(to, 1.0), (from, -1.0)]);
        }
    }

    /// Adds columns that leave out pods at `costs` micro-dollars each, by class.
    pub fn add_missing(&mut self, costs: &[f64]) {
        for (class, cost) in costs.iter().enumerate() {
            if let Some(row) = self.rows[class] {
                self.add(Column::Missing, cost / 1e6, &[(row, 1.0)]);
            }
        }
    }

    /// Solves to optimality. Returns `None` when asked to stop, or when the LP fails.
    pub fn solve(&mut self, meter: &mut Meter<'_>) -> Option<Values> {
        let each = 20 + self.rows.len() as u64 / 10;
        let point = self.lp.solve(&mut |iterations| {
            if iterations > 0 {
                meter.spend(100 + iterations * each);
            }
            !meter.poll()
        })?;
        let dual = |row: usize| point.duals.get(row).copied().unwrap_or(0.0);
        let price = |row: Option<usize>, sign: f64| row.map_or(0.0, |row| (sign * dual(row)).max(0.0) * 1e6);
        let limits = self.limit_rows.iter();
        Some(Values {
            objective: point.objective * 1e6,
            pods: self.rows.iter().map(|row| price(*row, 1.0)).collect(),
            bins: self.bin_rows.iter().map(|row| price(*row, -1.0)).collect(),
            limits: limits
                .map(|row| row.map_or(0.0, |(row, scale)| price(Some(row), -1.0) / scale))
                .collect(),
            choices: self.choice_rows.iter().map(|row| price(*row, 1.0)).collect(),
            columns: point.columns,
        })
    }
}
