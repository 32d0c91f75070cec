//! Completion tables: upper bounds on the value of the remaining items.

use crate::meter::Pulse;

/// The fixed-point bits of a mix of resources.
pub(super) const MIX_BITS: u32 = 30;
/// The table cells filled in one unit of work.
pub(super) const CELLS_PER_UNIT: u64 = 1_000;

/// A kind of item.
#[derive(Clone, Debug)]
pub(crate) struct Item {
    /// The caller's index of it.
    pub class: u32,
    /// The value of one.
    pub value: u64,
    /// The most items of this kind; as many must fit the empty node.
    pub most: u32,
    /// The worth of the resources it takes, minus its value; negative when it is worth more.
    pub loss: i64,
}

/// A completion table: the most that items `j..` add to a node with the given slots and rest of the mix.
pub(super) struct Table {
    bits: u32,
    row: usize,
    level: usize,
    pub cells: Vec<f32>,
    /// The items' weights in the mix.
    pub weights: Vec<u64>,
}

impl Table {
    pub fn at(&self, item: usize, slots: u64, mix: u64) -> f32 {
        self.cells[item * self.level + slots as usize * self.row + (mix >> (MIX_BITS - self.bits)) as usize]
    }
}

/// Memory for tables, kept because allocating it takes longer than filling it.
#[derive(Default)]
pub(crate) struct Scratch(pub(super) Vec<Vec<f32>>);

/// Builds the suffix tables of one mix.
pub(super) fn table(
    items: &[Item],
    values: &[f32],
    (slot_weights, slots): (&[u64], u64),
    weights: Vec<u64>,
    bits: u32,
    (mut cells, pulse): (Vec<f32>, &mut Pulse<'_, '_>),
) -> Table {
    let row = (1usize << bits) + 1;
    let rows = slots as usize + 1;
    let level = row * rows;
    let size = level * (items.len() + 1);
    if cells.len() < size {
        // The old values do not count, so they are not copied.
        drop(std::mem::take(&mut cells));
        cells = vec![0.0; size.next_power_of_two()];
    }
    cells[level * items.len()..size].fill(0.0);
    for item in (0..items.len()).rev() {
        if pulse.tick(level as u64 / CELLS_PER_UNIT) {
            break;
        }
        let (head, tail) = cells.split_at_mut((item + 1) * level);
        let target = &mut head[item * level..(item + 1) * level];
        let cost = ((weights[item] >> (MIX_BITS - bits)) as usize).min(row);
        let slot = (slot_weights[item] as usize).min(rows);
        let mut left = items[item].most as usize;
        if left == 0 {
            target.copy_from_slice(&tail[..level]);
            continue;
        }
        add_first(target, &tail[..level], row, (slot, cost), values[item]);
        left -= 1;
        // Copies in powers of two reach every count up to the maximum.
        let mut copies = 2;
        while left > 0 {
            let now = copies.min(left);
            let value = values[item] * now as f32;
            add_copy(target, row, rows, slot * now, cost * now, value);
            left -= now;
            copies *= 2;
        }
    }
    Table { bits, row, level, cells, weights }
}

/// `to = max(to, from + value)`.
fn raise(to: &mut [f32], from: &[f32], value: f32) {
    for (to, from) in to.iter_mut().zip(from) {
        let sum = *from + value;
        *to = if sum > *to { sum } else { *to };
    }
}

/// `target[s][c] = max(from[s][c], from[s - slot][c - cost] + value)`.
fn add_first(target: &mut [f32], from: &[f32], row: usize, (slot, cost): (usize, usize), value: f32) {
    let (without, with) = target.split_at_mut(slot * row);
    without.copy_from_slice(&from[..slot * row]);
    let lines =
        with.chunks_exact_mut(row).zip(from[slot * row..].chunks_exact(row)).zip(from.chunks_exact(row));
    for ((to, same), less) in lines {
        to[..cost].copy_from_slice(&same[..cost]);
        for ((to, same), less) in to[cost..].iter_mut().zip(&same[cost..]).zip(less) {
            let sum = *less + value;
            *to = if sum > *same { sum } else { *same };
        }
    }
}

/// `target[s][c] = max(target[s][c], target[s - slot][c - cost] + value)`, with the old values on the right.
fn add_copy(target: &mut [f32], row: usize, rows: usize, slot: usize, cost: usize, value: f32) {
    for s in (slot..rows).rev() {
        if slot > 0 {
            let (head, tail) = target.split_at_mut(s * row);
            raise(&mut tail[cost..row], &head[(s - slot) * row..(s - slot + 1) * row], value);
            continue;
        }
        let line = &mut target[s * row..(s + 1) * row];
        if cost == 0 {
            for cell in line {
                *cell += value;
            }
            continue;
        }
        let mut end = row;
        while end > cost {
            let start = end.saturating_sub(cost).max(cost);
            let (head, tail) = line.split_at_mut(start);
            raise(&mut tail[..end - start], &head[start - cost..end - cost], value);
            end = start;
        }
    }
}
