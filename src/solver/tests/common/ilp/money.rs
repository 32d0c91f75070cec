//! The cost of nodes, the charges, and the ceilings over bought nodes.

use good_lp::{Expression, IntoAffineExpression, Variable};
use poolwright_solver::Problem;
use poolwright_solver::problem::risk;

use super::hosts::{Hosts, Kind};
use super::program::{Program, Values};
use crate::reference;

/// The micro-dollars in one unit of the objective, so that amounts are near one and a micro-dollar is above all
/// tolerances.
const UNIT: f64 = 10_000.0;

fn units(micros: u64) -> f64 {
    micros as f64 / UNIT
}

pub struct Money {
    /// In [`UNIT`]s.
    pub objective: Expression,
    /// The objective without prices of bought nodes and savings by commitments: multiples of variables, in micro-dollars.
    charges: Vec<(Variable, i64)>,
    /// The constant part of it.
    always: u64,
}

impl Money {
    pub fn new(problem: &Problem, hosts: &Hosts, program: &mut Program) -> Self {
        let mut bought = vec![Expression::default(); problem.candidates.len()];
        for host in &hosts.all {
            if let (Kind::New(candidate), Some(used)) = (host.kind, host.used) {
                bought[candidate] += used;
            }
        }
        limits(problem, &bought, program);
        shares(problem, &bought, program);
        let mut objective = Expression::default();
        for (candidate, bought) in problem.candidates.iter().zip(&bought) {
            objective.add_mul(units(candidate.price.micros()), bought.clone());
        }
        for saved in savings(problem, &bought, program) {
            objective.add_mul(-units(1), saved);
        }
        let (charges, always) = charges(problem, hosts);
        objective += units(always);
        for (of, micros) in &charges {
            objective.add_mul(*micros as f64 / UNIT, *of);
        }
        Self { objective, charges, always }
    }

    /// Returns the objective of a solution, in integers from its nodes and pods, and as the program computes it.
    pub fn exact(&self, problem: &Problem, hosts: &Hosts, values: &Values) -> (u64, f64) {
        let mut bought = vec![0; problem.candidates.len()];
        for host in &hosts.all {
            if let (Kind::New(candidate), Some(used)) = (host.kind, host.used) {
                bought[candidate] += u64::from(values(used) > 0.5);
            }
        }
        let (paid, _) = reference::paid(problem, &bought);
        let counted: i64 = self.charges.iter().map(|(of, micros)| values(*of).round() as i64 * micros).sum();
        let said: f64 =
            self.objective.clone().linear_coefficients().map(|(of, each)| values(of) * each).sum();
        (
            (paid + self.always).checked_add_signed(counted).expect("no objective is below zero"),
            (said + units(self.always)) * UNIT,
        )
    }
}

/// Returns the cost of kept and emptied removable nodes, and of the risk and preferences of pods.
fn charges(problem: &Problem, hosts: &Hosts) -> (Vec<(Variable, i64)>, u64) {
    let mut charges = Vec::new();
    let mut always = 0;
    for (node, kept) in problem.existing.iter().zip(&hosts.kept) {
        let (Some(removal), Some(kept)) = (&node.removal, kept) else { continue };
        let moved = removal
            .pods
            .iter()
            .map(|(class, count)| problem.classes[*class as usize].disruption.micros() * u64::from(*count));
        let removed = removal.disruption.micros() + moved.sum::<u64>();
        always += removed;
        charges.push((*kept, removal.price.micros() as i64 - removed as i64));
    }
    for host in &hosts.all {
        let Kind::New(candidate) = host.kind else { continue };
        for (class, count) in host.counts() {
            let class = &problem.classes[class];
            let disliked = class.preferences.iter().filter(|(of, _)| *of as usize == candidate);
            let each = risk(class.loss_on(candidate as u32), problem.candidates[candidate].interruptions)
                .micros()
                + disliked.map(|(_, cost)| cost.micros()).sum::<u64>();
            charges.push((count.pods, each as i64));
        }
    }
    (charges, always)
}

fn limits(problem: &Problem, bought: &[Expression], program: &mut Program) {
    for (limit, rule) in problem.limits.iter().enumerate() {
        let uses: Vec<(usize, u64)> = problem
            .candidates
            .iter()
            .enumerate()
            .flat_map(|(at, offered)| offered.limit_use.iter().map(move |used| (at, used)))
            .filter(|(_, (of, _))| *of as usize == limit)
            .map(|(at, (_, amount))| (at, *amount))
            .collect();
        // In the unit of the largest amount, since tolerances are for numbers near one.
        let unit = uses.iter().map(|(_, amount)| *amount).max().unwrap_or(0).max(1) as f64;
        let mut used = Expression::default();
        for (at, amount) in uses {
            used.add_mul(amount as f64 / unit, bought[at].clone());
        }
        program.row(used.leq(rule.bound as f64 / unit));
    }
}

fn shares(problem: &Problem, bought: &[Expression], program: &mut Program) {
    for share in &problem.node_shares {
        let sum = |of: &[u32]| of.iter().map(|at| bought[*at as usize].clone()).sum::<Expression>();
        let rounding = if share.round_up { 999 } else { 0 };
        let may = f64::from(share.at_most_permille) * sum(&share.of);
        let running = u64::from(share.at_most_permille) * u64::from(share.running_of) + rounding;
        let spare = running.saturating_sub(1000 * u64::from(share.running_part));
        program.row((1000.0 * sum(&share.part) - may).leq(spare as f64));
    }
}

/// Returns the savings by each commitment, in whole micro-dollars. Nodes are covered in the order of their discount, the
/// last in part. Among all ways to cover as much, this one saves most, so the program needs no order.
fn savings(problem: &Problem, bought: &[Expression], program: &mut Program) -> Vec<Variable> {
    let mut savings = Vec::new();
    for commitment in &problem.commitments {
        let (mut used, mut worth, mut most) = (Expression::default(), Expression::default(), 0);
        for (candidate, rate) in &commitment.rates {
            let at = *candidate as usize;
            let covered = program.real();
            program.row((covered - bought[at].clone()).leq(0));
            used.add_mul(units(rate.micros()), covered);
            let price = problem.candidates[at].price.micros();
            worth.add_mul(units(price), covered);
            most += price * bought[at].clone().linear_coefficients().count() as u64;
        }
        program.row(used.leq(units(commitment.left.micros())));
        let saved = program.integer(0, most);
        program.row((units(1) * saved - worth).leq(0));
        savings.push(saved);
    }
    savings
}
