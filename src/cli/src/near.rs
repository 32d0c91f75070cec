//! The value of a catalogue that a misspelt one probably means.

use poolwright_api::meant;

/// Returns the known value that `value` probably means. Their digits are the same: with other digits, a short name is that of another
/// product, as `g5` and `t3`. The letters before them differ by typing errors alone: `m5` is no misspelt `g5`.
pub fn near<'k>(value: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    let same =
        |known: &&str| digits(known).eq(digits(value)) && meant(letters(value), [letters(known)]).is_some();
    meant(value, known.into_iter().filter(same))
}

/// Returns what is before the first digit.
fn letters(name: &str) -> &str {
    name.split(|one: char| one.is_ascii_digit()).next().unwrap_or_default()
}

fn digits(name: &str) -> impl Iterator<Item = char> {
    name.chars().filter(char::is_ascii_digit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_value_is_recognized_and_another_product_is_not() {
        let known = ["m6id", "g5.large", "g5.xlarge", "a100-80gb", "rtx-pro-6000"];
        for (written, meant) in [
            ("m6idd", "m6id"),
            ("g5.larg", "g5.large"),
            ("A100-80GB", "a100-80gb"),
            ("rtxpro-6000", "rtx-pro-6000"),
        ] {
            assert_eq!(near(written, known), Some(meant));
        }
        for other in ["t3.large", "m7id", "a100-40gb", "m5.large", "h100-80gb"] {
            assert_eq!(near(other, known), None, "{other}");
        }
    }
}
