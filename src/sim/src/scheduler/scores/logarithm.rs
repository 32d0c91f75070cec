//! Natural logarithms in integers.

/// The number of fractional bits.
pub(super) const BITS: u32 = 40;

/// ln 2 with [`BITS`] fractional bits.
const LN_2: u128 = 762_123_384_786;

/// Returns the natural logarithm of a number from 1 on, with [`BITS`] fractional bits. Its error is below one millionth.
pub(super) fn ln(number: u64) -> u64 {
    let number = number.max(1);
    let whole = number.ilog2();
    // The number as 1.x, with 60 fractional bits.
    let mut rest = (u128::from(number) << 60) >> whole;
    let mut log_2 = u128::from(whole);
    for _ in 0..BITS {
        rest = (rest * rest) >> 60;
        log_2 <<= 1;
        if rest >= 2 << 60 {
            rest >>= 1;
            log_2 |= 1;
        }
    }
    ((log_2 * LN_2) >> BITS) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_logarithms_come_out_to_six_digits() {
        let millionths = |number| ((u128::from(ln(number)) * 1_000_000) >> BITS) as u64;
        let known = [(1, 0), (2, 693_147), (3, 1_098_612), (10, 2_302_585), (5002, 8_517_593)];
        for (number, expected) in known {
            assert!(millionths(number).abs_diff(expected) <= 1, "ln {number} is {}", millionths(number));
        }
    }
}
