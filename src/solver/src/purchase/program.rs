//! The integer program of a purchase. Its numbers are dollars and node-hours as doubles; [`super::bill`] counts what they cost.

use good_lp::{Constraint, Expression, ProblemVariables, SolverModel, Variable, variable};
use poolwright_catalog::UsdPerHour;

use super::{MILLION, Market, STEP, Terms, Unsolved};

/// The seconds after which the search ends with what it has.
const PATIENCE: f64 = 60.0;

/// The numbers that were found.
pub(super) struct Found {
    /// By offer.
    pub counts: Vec<u64>,
    /// The bound on the cost less the cost on demand, in micro-dollars, rounded down; `None` if it is not known.
    pub bound_micros: Option<i128>,
}

/// The program.
struct Program {
    variables: ProblemVariables,
    rows: Vec<Constraint>,
    /// The cost less the cost on demand, in dollars.
    cost: Expression,
    /// The number of each offer. They are the first variables.
    counts: Vec<Variable>,
}

/// The values of the variables, and the bound on the cost in US dollars if the solver told one.
type Values = (Vec<f64>, Option<f64>);

/// Returns the numbers of the lowest cost.
pub(super) fn least(market: &Market) -> Result<Found, Unsolved> {
    let most: Vec<u64> = (0..market.offers.len()).map(|at| market.most(at)).collect();
    let program = Program::of(market, &most);
    let (values, bound) = solved(&program).map_err(Unsolved)?;
    let counts = values.iter().zip(&most).zip(&market.offers);
    let counts = counts.map(|((value, most), offer)| allowed(*value, offer.least, *most));
    let bound_micros = bound.filter(|bound| bound.is_finite()).map(|bound| (bound * 1e6).floor() as i128);
    Ok(Found { counts: counts.collect(), bound_micros })
}

/// Returns the number that a value stands for. A large limit lets the tolerance of the solver buy less than the least that is sold.
pub(super) fn allowed(value: f64, least: u64, most: u64) -> u64 {
    let count = (value.round().max(0.0) as u64).min(most);
    if count < least { 0 } else { count }
}

impl Program {
    fn of(market: &Market, most: &[u64]) -> Self {
        let mut variables = ProblemVariables::new();
        let counts: Vec<Variable> =
            most.iter().map(|most| variables.add(variable().integer().min(0).max(*most as f64))).collect();
        let mut program = Self { variables, rows: Vec::new(), cost: Expression::default(), counts };
        for (at, (offer, most)) in market.offers.iter().zip(most).enumerate() {
            let count = program.counts[at];
            program.limit(offer.least, *most, count);
            let hours: u64 =
                market.slices.iter().filter(|slice| slice.active[at]).map(|slice| slice.hours).sum();
            program.cost.add_mul(hours as f64 * dollars(unit_price(&offer.terms)), count);
        }
        for at in 0..market.slices.len() {
            program.slice(market, at);
        }
        program
    }

    /// Has the number at zero, or at `least` or more.
    fn limit(&mut self, least: u64, most: u64, count: Variable) {
        if least < 2 {
            return;
        }
        let any = self.variables.add(variable().binary());
        let mut too_few = Expression::from(any) * least as f64;
        too_few.add_mul(-1.0, count);
        self.rows.push(too_few.leq(0.0));
        let mut without = Expression::from(count);
        without.add_mul(-(most as f64), any);
        self.rows.push(without.leq(0.0));
    }

    /// Lets the offers pay for the nodes of one slice.
    fn slice(&mut self, market: &Market, at: usize) {
        let slice = &market.slices[at];
        let mut paid: Vec<Vec<Variable>> = vec![Vec::new(); market.prices.len()];
        for (offer, one) in market.offers.iter().enumerate().filter(|(offer, _)| slice.active[*offer]) {
            let mut used = Expression::default();
            for (kind, rate) in rates(&one.terms) {
                let nodes = slice.nodes[kind];
                if nodes == 0 {
                    continue;
                }
                let pays = self.variables.add(variable().min(0).max(node_hours(nodes)));
                self.cost.add_mul(-(slice.hours as f64) * dollars(market.prices[kind]), pays);
                used.add_mul(rate, pays);
                paid[kind].push(pays);
            }
            used.add_mul(-unit(&one.terms), self.counts[offer]);
            self.rows.push(used.leq(0.0));
        }
        for (kind, pays) in paid.iter().enumerate().filter(|(_, pays)| pays.len() > 1) {
            let all: Expression = pays.iter().sum();
            self.rows.push(all.leq(node_hours(slice.nodes[kind])));
        }
    }
}

/// Returns what a unit costs in an hour.
fn unit_price(terms: &Terms) -> UsdPerHour {
    match terms {
        Terms::Nodes { price, .. } => *price,
        Terms::Money(_) => STEP,
    }
}

/// Returns how much a unit gives to an hour: one node, or its dollars.
fn unit(terms: &Terms) -> f64 {
    match terms {
        Terms::Nodes { .. } => 1.0,
        Terms::Money(_) => dollars(STEP),
    }
}

/// Returns the instance types that an offer covers, each with what a node of it uses.
fn rates(terms: &Terms) -> Vec<(usize, f64)> {
    match terms {
        Terms::Nodes { kind, .. } => vec![(*kind, 1.0)],
        Terms::Money(rates) => {
            rates.iter().enumerate().filter_map(|(kind, rate)| Some((kind, dollars((*rate)?)))).collect()
        }
    }
}

fn dollars(price: UsdPerHour) -> f64 {
    price.micros() as f64 / 1e6
}

fn node_hours(millionths: u64) -> f64 {
    millionths as f64 / MILLION as f64
}

/// Returns the numbers of the offers, and the bound.
#[cfg(feature = "highs")]
fn solved(program: &Program) -> Result<Values, String> {
    // Buying nothing is always possible. The presolve of HiGHS 1.15 has called such programs infeasible.
    let found = with_highs(program, "on").or_else(|_| with_highs(program, "off"))?;
    found.ok_or_else(|| format!("HiGHS found no numbers in {PATIENCE} seconds; give fewer hours or offers"))
}

/// Returns nothing if the time was too short to find any numbers.
#[cfg(feature = "highs")]
fn with_highs(program: &Program, presolve: &str) -> Result<Option<Values>, String> {
    use ::highs::{HighsModelStatus, HighsSolutionStatus};

    let mut stated = program.variables.clone().minimise(program.cost.clone()).using(good_lp::highs);
    for row in &program.rows {
        stated.add_constraint(row.clone());
    }
    // `good_lp` does not tell the bound, so HiGHS is asked.
    let mut model = stated.try_into_inner().map_err(|error| error.to_string())?;
    model.set_option("threads", 1);
    model.set_option("presolve", presolve);
    model.set_option("time_limit", PATIENCE);
    // Below one micro-dollar.
    model.set_option("mip_rel_gap", 0.0);
    model.set_option("mip_abs_gap", 1e-6);
    model.set_option("mip_feasibility_tolerance", 1e-7);
    let solved = model.try_solve().map_err(|status| format!("HiGHS says {status:?}"))?;
    let status = solved.status();
    if !matches!(status, HighsModelStatus::Optimal | HighsModelStatus::ReachedTimeLimit) {
        return Err(format!("HiGHS says {status:?}"));
    }
    if solved.primal_solution_status() != HighsSolutionStatus::Feasible {
        return Ok(None);
    }
    let values = solved.get_solution().columns()[..program.counts.len()].to_vec();
    Ok(Some((values, solved.double_info_value(c"mip_dual_bound").ok())))
}

#[cfg(not(feature = "highs"))]
fn solved(program: &Program) -> Result<Values, String> {
    use good_lp::{Solution, SolutionStatus, WithTimeLimit};

    let stated = program.variables.clone().minimise(program.cost.clone()).using(good_lp::microlp);
    let mut stated = stated.with_time_limit(PATIENCE);
    for row in &program.rows {
        stated.add_constraint(row.clone());
    }
    let solved = stated.solve().map_err(|error| error.to_string())?;
    let values = program.counts.iter().map(|count| solved.value(*count)).collect();
    let is_proven = matches!(solved.status(), SolutionStatus::Optimal);
    Ok((values, is_proven.then(|| solved.eval(&program.cost))))
}
