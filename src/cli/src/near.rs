//! The value of a catalogue that a misspelt one probably means.

use poolwright_api::meant;

/// Returns the known value that `value` probably means. Their digits are the same: with other digits, a short name is that of another
/// product, as `g5` and `t3`.
pub fn near<'k>(value: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    let same = |known: &&str| digits(known).eq(digits(value));
    meant(value, known.into_iter().filter(same))
}

fn digits(name: &str) -> impl Iterator<Item = char> {
    name.chars().filter(char::is_ascii_digit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_value_is_recognized_and_another_product_is_not() {
        let known = ["m6id", "g5.large", "a100-80gb"];
        for (written, meant) in [("m6idd", "m6id"), ("g5.larg", "g5.large"), ("A100-80GB", "a100-80gb")] {
            assert_eq!(near(written, known), Some(meant));
        }
        for other in ["t3.large", "m7id", "a100-40gb"] {
            assert_eq!(near(other, known), None, "{other}");
        }
    }
}
