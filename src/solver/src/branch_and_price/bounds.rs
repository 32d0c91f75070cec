//! The lower bound of a solve: what certificates prove, prices for a plan that was proven without any, and the verification of the
//! best prices at the end.

use super::Run;
use crate::canonical::Model;
use crate::column_generation::{self, Goal, Task};
use crate::dual_bound::Certificate;
use crate::meter::Meter;
use crate::open::{self, Open};
use crate::plan::Stock;
use crate::pricing::Pricer;
use crate::solution::Proof;
use crate::stages::SearchStage;
use crate::{resource_bound, verify};

/// The work budget for verifying the best prices is the work so far divided by this, plus [`VERIFYING_LEAST`].
const VERIFYING: u64 = 8;
/// The constant part of that budget: a few milliseconds.
const VERIFYING_LEAST: u64 = 10_000;
/// The number of bins from which prices of resources alone are a good start: with few bins, the first rounds cost little.
const MANY_BINS: usize = 200;

impl Run<'_> {
    /// Takes `bound` if it is higher, or if it is equal with a stronger `proof`.
    pub(super) fn raise(&mut self, bound: u64, proof: Proof) {
        if bound > self.bound {
            (self.bound, self.proof) = (bound, proof);
        } else if bound == self.bound {
            self.proof = self.proof.min(proof);
        }
    }

    /// Returns the bound that a certificate gives for a problem like `model`.
    pub(super) fn proven(&self, model: &Model, certificate: &Certificate) -> u64 {
        if self.open {
            certificate.open_bound(model, &self.totals)
        } else {
            certificate.bound(model, &self.demand)
        }
    }

    pub(super) fn prove(&mut self, certificate: Option<&Certificate>, meter: &mut Meter<'_>) {
        if let Some(certificate) = certificate {
            let bound = self.proven(self.model, certificate);
            let known = self.certificate.as_ref().map(|known| self.proven(self.model, known));
            if known.is_none_or(|known| bound > known || bound == known && certificate.is_complete()) {
                self.certificate = Some(certificate.clone());
            }
            self.raise(bound, certificate.proof());
            meter.bound(self.bound);
            self.watch(meter);
        }
    }

    /// Returns prices of resources alone, with their bound, where there are many bins.
    pub(super) fn resource_prices(&mut self, meter: &mut Meter<'_>) -> Option<Certificate> {
        if self.model.bins.len() < MANY_BINS || !self.has(SearchStage::ResourceStart) {
            return None;
        }
        let certificate = resource_bound::certificate(self.model, &self.demand, self.seed())?;
        self.prove(Some(&certificate), meter);
        Some(certificate)
    }

    /// Repeats, at the best known prices, searches that were cut off.
    pub(super) fn verify(&mut self, pricer: &mut Pricer<'_>, meter: &mut Meter<'_>) {
        let Some(certificate) = self.certificate.clone().filter(|_| self.has(SearchStage::Verify)) else {
            return;
        };
        // Branching has proven more than these prices can.
        if self.proven(self.model, &certificate) < self.bound {
            return;
        }
        let budget = meter.spent() / VERIFYING + VERIFYING_LEAST;
        let better = verify::verify(pricer, &certificate, &self.demand, budget, meter);
        self.prove(better.as_ref(), meter);
    }

    /// Computes prices for a plan that was proven without any.
    pub(super) fn price(&mut self, meter: &mut Meter<'_>) {
        if meter.stopped() || self.demand.iter().all(|count| *count == 0) {
            return;
        }
        let stop = &mut |units| meter.tick(units);
        let mut start = column_generation::plain_columns(self.model, &self.demand, stop);
        start.extend(self.best.nodes.keys().cloned());
        let known = open::taken(self.model, &self.best);
        let task = Task {
            demand: &self.demand,
            stock: &Stock::full(self.model),
            start,
            exchanges: &column_generation::exchanges(self.model, &mut |units| meter.tick(units)),
            center: None,
            seed: self.seed(),
            cutoff: None,
            open: self.open.then_some(Open { totals: &self.totals, known: &known }),
        };
        let goal = Goal { gap: 0.001, rounds: 20, levels: (0, 1), prove: true };
        let stop = &mut |units| meter.tick(units);
        let Some(mut pricer) = Pricer::until(self.model, self.options.threads, stop) else { return };
        let relaxed = column_generation::run(&mut pricer, task, goal, meter);
        self.prove(relaxed.and_then(|relaxed| relaxed.certificate).as_ref(), meter);
    }
}
