//! What is still available to buy or use.

use std::collections::BTreeMap;

use super::Plan;
use crate::canonical::{Model, UNLIMITED};

/// What can still be bought or used. Rows may be overdrawn for a while, where nodes that make room for others are not
/// there yet.
#[derive(Clone, Debug)]
pub(crate) struct Stock {
    bins: Vec<u64>,
    limits: Vec<i128>,
}

impl Stock {
    /// Everything is still there.
    pub fn full(model: &Model) -> Self {
        Self { bins: model.bins.iter().map(|bin| bin.available).collect(), limits: model.limits.clone() }
    }

    /// What `plan` leaves.
    pub fn after(model: &Model, plan: &Plan) -> Self {
        let mut stock = Self::full(model);
        for (pattern, count) in &plan.nodes {
            stock.take(model, pattern.bin, *count);
        }
        stock
    }

    /// Nodes left by bin, limits aside.
    pub fn bins(&self) -> &[u64] {
        &self.bins
    }

    /// What is left of each limit.
    pub fn limits(&self) -> &[i128] {
        &self.limits
    }

    /// The first row of which more is taken than there is.
    pub fn overdrawn(&self) -> Option<u32> {
        self.limits.iter().position(|left| *left < 0).map(|row| row as u32)
    }

    /// How many nodes of `bin` can still be had.
    pub fn left(&self, model: &Model, bin: u32) -> u64 {
        model.bins[bin as usize].limit_use.iter().fold(self.bins[bin as usize], |most, (row, amount)| {
            most.min(quotient(self.limits[*row as usize], *amount))
        })
    }

    /// How many nodes of `from` that are taken can be nodes of `to` instead.
    pub fn exchangeable(&self, model: &Model, from: u32, to: u32) -> u64 {
        let (from, most) = (&model.bins[from as usize].limit_use, self.bins[to as usize]);
        let to = &model.bins[to as usize].limit_use;
        let amount = |uses: &[(u32, i128)], row: u32| {
            uses.iter().find(|(at, _)| *at == row).map_or(0, |(_, amount)| *amount)
        };
        from.iter().chain(to).fold(most, |most, (row, _)| {
            most.min(quotient(self.limits[*row as usize], amount(to, *row) - amount(from, *row)))
        })
    }

    /// The first row that keeps one more node of `bin` from being bought.
    pub fn blocking_row(&self, model: &Model, bin: u32) -> Option<u32> {
        let uses = &model.bins[bin as usize].limit_use;
        uses.iter()
            .find(|(row, amount)| quotient(self.limits[*row as usize], *amount) == 0)
            .map(|(row, _)| *row)
    }

    /// Takes `count` nodes of `bin`. Bins run below zero never, rows only where the caller looks after them.
    pub fn take(&mut self, model: &Model, bin: u32, count: u64) {
        let left = &mut self.bins[bin as usize];
        if *left != UNLIMITED {
            *left = left.saturating_sub(count);
        }
        for (row, amount) in &model.bins[bin as usize].limit_use {
            self.limits[*row as usize] -= amount * i128::from(count);
        }
    }

    /// Puts `count` nodes of `bin` back.
    pub fn put_back(&mut self, model: &Model, bin: u32, count: u64) {
        if self.bins[bin as usize] != UNLIMITED {
            self.bins[bin as usize] += count;
        }
        for (row, amount) in &model.bins[bin as usize].limit_use {
            self.limits[*row as usize] += amount * i128::from(count);
        }
    }
}

/// How often `amount` can be taken of `left`.
fn quotient(left: i128, amount: i128) -> u64 {
    if amount <= 0 { UNLIMITED } else { u64::try_from(left.max(0) / amount).unwrap_or(UNLIMITED) }
}

impl Plan {
    /// Whether there are as many nodes of every bin, and whether no row is overdrawn.
    pub fn is_payable(&self, model: &Model) -> bool {
        let mut bought: BTreeMap<u32, u64> = BTreeMap::new();
        for (pattern, count) in &self.nodes {
            *bought.entry(pattern.bin).or_default() += count;
        }
        bought.iter().all(|(bin, count)| *count <= model.bins[*bin as usize].available)
            && Stock::after(model, self).overdrawn().is_none()
    }
}
