//! Splits an amount exactly.

/// Splits an amount by weights, so that the parts add up to it. Each part is rounded down first; what is left goes, one by one, to
/// the largest remainders, and to the first of equal ones. Without any weight, the last part is all.
///
/// The product of the amount and the sum of the weights must fit into 128 bits.
pub fn apportion(amount: u128, weights: &[u128]) -> Vec<u128> {
    let whole: u128 = weights.iter().sum();
    let mut parts = vec![0; weights.len()];
    if whole == 0 {
        if let Some(last) = parts.last_mut() {
            *last = amount;
        }
        return parts;
    }
    let mut remainders = Vec::with_capacity(weights.len());
    let mut left = amount;
    for (at, (part, weight)) in parts.iter_mut().zip(weights).enumerate() {
        let product = amount * weight;
        *part = product / whole;
        left -= *part;
        remainders.push((std::cmp::Reverse(product - *part * whole), at));
    }
    if left > 0 {
        remainders.sort_unstable();
    }
    for (_, at) in remainders.into_iter().take(usize::try_from(left).unwrap_or(usize::MAX)) {
        parts[at] += 1;
    }
    parts
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_largest_remainders_get_what_is_left_and_the_first_of_equal_ones() {
        assert_eq!(apportion(10, &[1, 1, 1]), [4, 3, 3]);
        assert_eq!(apportion(10, &[1, 1, 1, 0]), [4, 3, 3, 0]);
        assert_eq!(apportion(100, &[335, 335, 330]), [34, 33, 33]);
        assert_eq!(apportion(7, &[0, 0]), [0, 7]);
        assert!(apportion(0, &[]).is_empty());
    }

    proptest! {
        #[test]
        fn parts_add_up_and_each_is_within_one_of_its_exact_share(
            amount in 0_u128..1 << 50,
            weights in prop::collection::vec(0_u128..1 << 60, 1..20),
        ) {
            let parts = apportion(amount, &weights);
            prop_assert_eq!(parts.iter().sum::<u128>(), amount);
            let whole: u128 = weights.iter().sum();
            for (part, weight) in parts.iter().zip(&weights).filter(|_| whole > 0) {
                prop_assert!(part.abs_diff(amount * weight / whole) <= 1);
            }
        }
    }
}
