//! The nodes and limits that are still available.

use std::collections::BTreeMap;

use super::Plan;
use crate::canonical::{Model, UNLIMITED};

/// The nodes that can still be bought or used, and the rest of each row. Rows may be overdrawn temporarily, until nodes
/// are added that make room.
#[derive(Clone, Debug)]
pub(crate) struct Stock {
    bins: Vec<u64>,
    limits: Vec<i128>,
}

impl Stock {
    /// Returns the full stock.
    pub fn full(model: &Model) -> Self {
        Self { bins: model.bins.iter().map(|bin| bin.available).collect(), limits: model.limits.clone() }
    }

    /// Returns the stock that `plan` leaves.
    pub fn after(model: &Model, plan: &Plan) -> Self {
        let mut stock = Self::full(model);
        for (pattern, count) in &plan.nodes {
            stock.take(model, pattern.bin, *count);
        }
        stock
    }

    /// Returns the nodes left by bin, regardless of limits.
    pub fn bins(&self) -> &[u64] {
        &self.bins
    }

    /// Returns the rest of each limit.
    pub fn limits(&self) -> &[i128] {
        &self.limits
    }

    /// Returns the first overdrawn row.
    pub fn overdrawn(&self) -> Option<u32> {
        self.limits.iter().position(|left| *left < 0).map(|row| row as u32)
    }

    /// Returns how many nodes of `bin` are still available.
    pub fn left(&self, model: &Model, bin: u32) -> u64 {
        model.bins[bin as usize].limit_use.iter().fold(self.bins[bin as usize], |most, (row, amount)| {
            most.min(quotient(self.limits[*row as usize], *amount))
        })
    }

    /// Returns how many taken nodes of `from` can be replaced by nodes of `to`.
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

    /// Returns the first row that blocks one more node of `bin`.
    pub fn blocking_row(&self, model: &Model, bin: u32) -> Option<u32> {
        let uses = &model.bins[bin as usize].limit_use;
        uses.iter()
            .find(|(row, amount)| quotient(self.limits[*row as usize], *amount) == 0)
            .map(|(row, _)| *row)
    }

    /// Takes `count` nodes of `bin`. The stock of a bin never falls below zero. Rows may, if the caller repairs them.
    pub fn take(&mut self, model: &Model, bin: u32, count: u64) {
        let left = &mut self.bins[bin as usize];
        if *left != UNLIMITED {
            *left = left.saturating_sub(count);
        }
        for (row, amount) in &model.bins[bin as usize].limit_use {
            self.limits[*row as usize] -= amount * i128::from(count);
        }
    }

    /// Returns `count` nodes of `bin` to the stock.
    pub fn put_back(&mut self, model: &Model, bin: u32, count: u64) {
        if self.bins[bin as usize] != UNLIMITED {
            self.bins[bin as usize] += count;
        }
        for (row, amount) in &model.bins[bin as usize].limit_use {
            self.limits[*row as usize] += amount * i128::from(count);
        }
    }
}

/// Returns how often `amount` can be taken from `left`.
fn quotient(left: i128, amount: i128) -> u64 {
    if amount <= 0 { UNLIMITED } else { u64::try_from(left.max(0) / amount).unwrap_or(UNLIMITED) }
}

impl Plan {
    /// Returns whether the stock of every bin suffices, and no row is overdrawn.
    pub fn is_payable(&self, model: &Model) -> bool {
        let mut bought: BTreeMap<u32, u64> = BTreeMap::new();
        for (pattern, count) in &self.nodes {
            *bought.entry(pattern.bin).or_default() += count;
        }
        bought.iter().all(|(bin, count)| *count <= model.bins[*bin as usize].available)
            && Stock::after(model, self).overdrawn().is_none()
    }
}
