//! Linear programs, solved by HiGHS or, without a C++ compiler, by microlp.
//!
//! No result depends on a correct LP solution. Prices become bounds only through integers ([`crate::dual_bound`]), and
//! values become plans only through counted patterns. So a wrong LP makes a worse plan, never an invalid one.

#[cfg(feature = "highs")]
mod highs;
#[cfg(feature = "microlp")]
mod microlp;

use std::fmt::Debug;

#[cfg(not(any(feature = "highs", feature = "microlp")))]
compile_error!("the solver needs an LP solver: feature `highs` (the default) or `microlp`");

/// The solver of the linear programs. Both give plans with valid bounds, but not always the same plans.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    /// HiGHS, in C++. It continues from its last basis and suits problems of any size.
    #[cfg(feature = "highs")]
    Highs,
    /// microlp, in pure Rust. It starts from scratch every time and suits small problems.
    #[cfg(feature = "microlp")]
    Microlp,
}

impl Default for Backend {
    #[cfg(feature = "highs")]
    fn default() -> Self {
        Self::Highs
    }

    #[cfg(not(feature = "highs"))]
    fn default() -> Self {
        Self::Microlp
    }
}

/// The LP backend and its seed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Seed {
    /// The backend.
    pub backend: Backend,
    /// The seed, not negative.
    pub number: i32,
}

/// The constraint of a row on its sum.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Ask {
    /// At least this.
    AtLeast(f64),
    /// At most this.
    AtMost(f64),
    /// Exactly this. Only tests use it.
    #[cfg_attr(not(test), allow(dead_code))]
    Exactly(f64),
}

/// An optimal point.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Point {
    /// The total cost of the columns.
    pub objective: f64,
    /// By column.
    pub columns: Vec<f64>,
    /// By row, the dual: the cost of one more unit on the right-hand side. It is not negative for `AtLeast`, and not
    /// positive for `AtMost`.
    pub duals: Vec<f64>,
}

/// A linear program that minimises the cost of non-negative columns. Rows come first, since a column may only have
/// entries in known rows.
pub(crate) trait Lp: Debug {
    /// Adds a row without entries. Rows are numbered from zero.
    fn add_row(&mut self, ask: Ask);

    /// Adds a column. Returns `false` if the numbers are invalid.
    fn add_column(&mut self, cost: f64, entries: &[(usize, f64)]) -> bool;

    /// Solves to optimality. `go_on` gets the simplex iterations since its last call, at least every few milliseconds
    /// where the backend can be interrupted. Returns `None` when `go_on` returns `false`, when no point satisfies the
    /// rows, or when the backend fails.
    fn solve(&mut self, go_on: &mut dyn FnMut(u64) -> bool) -> Option<Point>;
}

/// Creates an empty program.
pub(crate) fn new(seed: Seed) -> Box<dyn Lp> {
    match seed.backend {
        #[cfg(feature = "highs")]
        Backend::Highs => Box::new(highs::Highs::new(seed.number)),
        #[cfg(feature = "microlp")]
        Backend::Microlp => Box::new(microlp::Microlp::default()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const BACKENDS: &[Backend] = &[
        #[cfg(feature = "highs")]
        Backend::Highs,
        #[cfg(feature = "microlp")]
        Backend::Microlp,
    ];

    fn solved(backend: Backend, rows: &[Ask], columns: &[(f64, Vec<(usize, f64)>)]) -> Option<Point> {
        let mut lp = new(Seed { backend, number: 0 });
        for ask in rows {
            lp.add_row(*ask);
        }
        for (cost, entries) in columns {
            assert!(lp.add_column(*cost, entries));
        }
        lp.solve(&mut |_| true)
    }

    /// Two nodes for three pods, at most one of the expensive one, and a required choice between two options.
    fn columns() -> Vec<(f64, Vec<(usize, f64)>)> {
        vec![
            (3.0, vec![(0, 2.0), (1, 1.0)]),
            (2.0, vec![(0, 1.0)]),
            (0.5, vec![(2, 1.0)]),
            (0.7, vec![(2, 1.0)]),
        ]
    }

    const ROWS: [Ask; 3] = [Ask::AtLeast(3.0), Ask::AtMost(1.0), Ask::Exactly(1.0)];

    #[test]
    fn every_backend_finds_the_point_and_the_prices_of_the_rows() {
        for backend in BACKENDS {
            let point = solved(*backend, &ROWS, &columns()).expect("there is a point");
            let near = |a: f64, b: f64| (a - b).abs() < 1e-6;
            assert!(near(point.objective, 5.5), "{backend:?} {point:?}");
            for (got, want) in point.columns.iter().zip([1.0, 1.0, 1.0, 0.0]) {
                assert!(near(*got, want), "{backend:?} {point:?}");
            }
            for (got, want) in point.duals.iter().zip([2.0, -1.0, 0.5]) {
                assert!(near(*got, want), "{backend:?} {point:?}");
            }
        }
    }

    #[test]
    fn every_backend_goes_on_after_columns_are_added() {
        for backend in BACKENDS {
            let mut lp = new(Seed { backend: *backend, number: 0 });
            lp.add_row(Ask::AtLeast(3.0));
            assert!(lp.add_column(2.0, &[(0, 1.0)]));
            let first = lp.solve(&mut |_| true).expect("there is a point");
            assert!(lp.add_column(3.0, &[(0, 2.0)]));
            let second = lp.solve(&mut |_| true).expect("there is a point");
            assert!((first.objective - 6.0).abs() < 1e-6 && (second.objective - 4.5).abs() < 1e-6);
            assert_eq!(second.columns.len(), 2);
        }
    }

    #[test]
    fn every_backend_stops_when_told_and_says_so_when_nothing_satisfies_the_rows() {
        for backend in BACKENDS {
            let mut lp = new(Seed { backend: *backend, number: 0 });
            lp.add_row(Ask::AtLeast(1.0));
            assert!(lp.add_column(2.0, &[(0, 1.0)]));
            assert_eq!(lp.solve(&mut |_| false), None, "{backend:?}");
            let impossible = [Ask::AtLeast(2.0), Ask::AtMost(1.0)];
            assert_eq!(
                solved(*backend, &impossible, &[(1.0, vec![(0, 1.0), (1, 1.0)])]),
                None,
                "{backend:?}"
            );
        }
    }

    /// Covering rows, a ceiling, and a column of its own for each covering row, so that the program is feasible.
    type Columns = Vec<(f64, Vec<(usize, f64)>)>;

    fn programs() -> impl Strategy<Value = (Vec<Ask>, Columns)> {
        let column = (1..=50u32, proptest::collection::vec(0..=4u32, 4));
        (proptest::collection::vec(0..=9u32, 4), 0..=6u32, proptest::collection::vec(column, 0..12)).prop_map(
            |(needs, ceiling, columns)| {
                let mut rows: Vec<Ask> = needs.iter().map(|need| Ask::AtLeast(f64::from(*need))).collect();
                rows.push(Ask::AtMost(f64::from(ceiling)));
                let mut made: Vec<(f64, Vec<(usize, f64)>)> =
                    (0..needs.len()).map(|row| (40.0 + row as f64, vec![(row, 1.0)])).collect();
                made.extend(columns.into_iter().map(|(cost, entries)| {
                    let covered = entries.into_iter().enumerate().filter(|(_, entry)| *entry > 0);
                    let mut entries: Vec<(usize, f64)> =
                        covered.map(|(row, entry)| (row, f64::from(entry))).collect();
                    entries.push((needs.len(), 1.0));
                    (f64::from(cost), entries)
                }));
                (rows, made)
            },
        )
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn the_values_and_the_prices_of_every_backend_prove_each_other((rows, columns) in programs()) {
            for backend in BACKENDS {
                let point = solved(*backend, &rows, &columns).expect("every row has a column of its own");
                let mut sums = vec![0.0; rows.len()];
                for ((cost, entries), value) in columns.iter().zip(&point.columns) {
                    prop_assert!(*value >= -1e-6);
                    let worth: f64 = entries.iter().map(|(row, entry)| point.duals[*row] * entry).sum();
                    prop_assert!(worth <= cost + 1e-6, "{backend:?}: worth {worth}, cost {cost}");
                    for (row, entry) in entries {
                        sums[*row] += value * entry;
                    }
                }
                let mut worth = 0.0;
                for ((ask, dual), sum) in rows.iter().zip(&point.duals).zip(sums) {
                    let (right, kept) = match ask {
                        Ask::AtLeast(right) => (right, sum >= right - 1e-6 && *dual >= -1e-6),
                        Ask::AtMost(right) => (right, sum <= right + 1e-6 && *dual <= 1e-6),
                        Ask::Exactly(right) => (right, (sum - right).abs() <= 1e-6),
                    };
                    prop_assert!(kept, "{backend:?}: {ask:?} {dual} {sum}");
                    worth += right * dual;
                }
                prop_assert!((worth - point.objective).abs() < 1e-5, "{backend:?}: {worth} {}", point.objective);
            }
        }
    }
}
