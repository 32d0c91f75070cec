//! Resource prices of one node: the dual of the knapsack's linear relaxation, by a small bounded simplex.
//!
//! The caller turns any non-negative result into a valid bound in integers, so rounding only costs tightness.

/// One item of the relaxation.
pub(crate) struct LpItem<'a> {
    /// The worth of one unit.
    pub value: f64,
    /// The most units.
    pub most: f64,
    /// The shares of the node, one per resource.
    pub shares: &'a [f64],
}

const TOLERANCE: f64 = 1e-9;

/// Solves `max value.x`, `sum shares.x <= 1` per resource, `0 <= x <= most`. Returns the dual price of each whole
/// resource.
pub(crate) fn solve(items: &[LpItem<'_>], dims: usize) -> Vec<f64> {
    let n = items.len();
    let scale = items.iter().map(|item| item.value).fold(0.0, f64::max);
    if n == 0 || scale <= 0.0 {
        return vec![0.0; dims];
    }
    let upper = |column: usize| if column < n { items[column].most } else { f64::INFINITY };
    let cost = |column: usize| if column < n { items[column].value } else { 0.0 };
    let mut inverse: Vec<f64> = vec![0.0; dims * dims];
    for row in 0..dims {
        inverse[row * dims + row] = 1.0;
    }
    let mut basis: Vec<usize> = (n..n + dims).collect();
    let mut level: Vec<f64> = vec![1.0; dims];
    let mut at_upper = vec![false; n + dims];
    let mut in_basis = vec![false; n + dims];
    for column in &basis {
        in_basis[*column] = true;
    }
    let mut prices: Vec<f64> = vec![0.0; dims];
    let mut direction: Vec<f64> = vec![0.0; dims];
    for _ in 0..20 * (dims + 2) + n {
        for (row, price) in prices.iter_mut().enumerate() {
            *price = (0..dims).map(|k| cost(basis[k]) * inverse[k * dims + row]).sum();
        }
        let mut entering = None;
        let mut most = TOLERANCE * scale;
        for (column, item) in items.iter().enumerate() {
            if in_basis[column] {
                continue;
            }
            let reduced =
                item.value - item.shares.iter().zip(&prices).map(|(share, price)| share * price).sum::<f64>();
            let gain = if at_upper[column] { -reduced } else { reduced } * item.most.min(8.0);
            if gain > most {
                most = gain;
                entering = Some(column);
            }
        }
        for row in 0..dims {
            if !in_basis[n + row] && -prices[row] > most {
                most = -prices[row];
                entering = Some(n + row);
            }
        }
        let Some(entering) = entering else { break };
        for (k, slot) in direction.iter_mut().enumerate() {
            *slot = if entering < n {
                (0..dims).map(|row| inverse[k * dims + row] * items[entering].shares[row]).sum()
            } else {
                inverse[k * dims + entering - n]
            };
        }
        let sign = if at_upper[entering] { -1.0 } else { 1.0 };
        let mut step = upper(entering);
        let mut leaving: Option<(usize, bool)> = None;
        for k in 0..dims {
            let slope = sign * direction[k];
            let (limit, to_upper) = if slope > TOLERANCE {
                (level[k].max(0.0) / slope, false)
            } else if slope < -TOLERANCE {
                ((upper(basis[k]) - level[k]).max(0.0) / -slope, true)
            } else {
                continue;
            };
            if limit < step {
                step = limit;
                leaving = Some((k, to_upper));
            }
        }
        if !step.is_finite() {
            break;
        }
        for (level, slope) in level.iter_mut().zip(&direction) {
            *level -= sign * slope * step;
        }
        let Some((row, to_upper)) = leaving else {
            at_upper[entering] = !at_upper[entering];
            continue;
        };
        let out = basis[row];
        in_basis[out] = false;
        at_upper[out] = to_upper;
        let start = if at_upper[entering] { upper(entering) } else { 0.0 };
        at_upper[entering] = false;
        in_basis[entering] = true;
        basis[row] = entering;
        level[row] = start + sign * step;
        let pivot = direction[row];
        for column in 0..dims {
            inverse[row * dims + column] /= pivot;
        }
        for k in 0..dims {
            if k != row && direction[k] != 0.0 {
                for column in 0..dims {
                    inverse[k * dims + column] -= direction[k] * inverse[row * dims + column];
                }
            }
        }
    }
    for price in &mut prices {
        *price = price.max(0.0);
    }
    prices
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scarce_resource_carries_the_price() {
        let shares = [[0.5, 0.1], [0.25, 0.3]];
        let items = [
            LpItem { value: 10.0, most: 10.0, shares: &shares[0] },
            LpItem { value: 1.0, most: 10.0, shares: &shares[1] },
        ];
        let prices = solve(&items, 2);
        assert!((prices[0] - 20.0).abs() < 1e-6 && prices[1].abs() < 1e-6, "{prices:?}");
    }

    #[test]
    fn items_that_all_fit_leave_resources_free() {
        let shares = [[0.1], [0.2]];
        let items = [
            LpItem { value: 10.0, most: 2.0, shares: &shares[0] },
            LpItem { value: 1.0, most: 1.0, shares: &shares[1] },
        ];
        assert_eq!(solve(&items, 1), [0.0]);
    }
}
