//! Amounts that an API server accepts, but that their author hardly had in mind: memory without its unit.

use poolwright_catalog::{ResourceName, quantity};

/// The least number of bytes that somebody may write without a unit on purpose.
const LEAST: i128 = 1 << 20;

/// Says what an amount of a resource means, and what was probably meant; `None` if it may be right.
pub(super) fn slip(resource: &str, text: &str) -> Option<String> {
    let is_in_bytes = [ResourceName::MEMORY, ResourceName::EPHEMERAL_STORAGE].contains(&resource)
        || resource.starts_with("hugepages-");
    let amount = quantity::parse(text).ok().filter(|amount| is_in_bytes && amount.milli_ceil() > 0)?;
    let bytes = amount.units_ceil();
    let unit = if bytes == 1 { "byte" } else { "bytes" };
    if let Some(number) = text.strip_suffix('m') {
        return Some(format!(
            "`{text}` is {bytes} {unit}, because `m` stands for thousandths; did you mean {number}Mi?"
        ));
    }
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
    (is_plain && bytes < LEAST).then(|| {
        let (less, more) = if bytes < 1024 { ("Mi", "Gi") } else { ("Ki", "Mi") };
        format!("`{text}` is {bytes} {unit}; did you mean {text}{more} or {text}{less}?")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_without_its_unit_is_told_with_what_it_means() {
        for (resource, text, words) in [
            ("memory", "16", "`16` is 16 bytes; did you mean 16Gi or 16Mi?"),
            ("memory", "400m", "`400m` is 1 byte, because `m` stands for thousandths; did you mean 400Mi?"),
            ("ephemeral-storage", "20000", "`20000` is 20000 bytes; did you mean 20000Mi or 20000Ki?"),
        ] {
            assert_eq!(slip(resource, text).as_deref(), Some(words));
        }
    }

    #[test]
    fn amounts_that_may_be_meant_are_left_alone() {
        for (resource, text) in [
            ("memory", "512M"),
            ("memory", "16Gi"),
            ("memory", "1073741824"),
            ("memory", "0"),
            ("memory", "much"),
            ("cpu", "400m"),
            ("cpu", "16"),
            ("nvidia.com/gpu", "1"),
        ] {
            assert_eq!(slip(resource, text), None, "{resource}: {text}");
        }
    }
}
