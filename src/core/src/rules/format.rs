//! Formatting of amounts, counts and lists for messages.

use jiff::{SignedDuration, Timestamp};
use poolwright_catalog::{ResourceList, ResourceName, UsdPerHour};
use poolwright_terms::Taint;

/// The prefix of the volume resources of CSI drivers, as older kubelets named them.
pub(crate) const ATTACHABLE: &str = "attachable-volumes-csi-";

/// Formats the time since then: `1m 5s`.
pub(crate) fn age(since: Timestamp, now: Timestamp) -> String {
    let seconds = now.duration_since(since).as_secs().max(0);
    format!("{:#}", SignedDuration::from_secs(seconds))
}

/// Formats an amount, such as `3.5` for CPU and `16Gi` for memory. Amounts of other resources are counts.
pub(crate) fn quantity(name: &ResourceName, amount: u64) -> String {
    if name.is_cpu() {
        return thousandths(amount);
    }
    if is_in_bytes(name) {
        return bytes(amount);
    }
    amount.to_string()
}

/// The units of bytes: each with its binary logarithm.
const UNITS: [(&str, u32); 4] = [("Ti", 40), ("Gi", 30), ("Mi", 20), ("Ki", 10)];
/// The first number of units that is too long to read.
const TOO_MANY: u64 = 10_000;

/// Formats bytes: exactly if two decimals of a unit suffice, or else rounded.
fn bytes(amount: u64) -> String {
    let fits = UNITS.iter().position(|(_, shift)| amount >> shift > 0);
    let Some(largest) = fits else {
        return match amount {
            0 => "0".to_owned(),
            1 => "1 byte".to_owned(),
            _ => format!("{amount} bytes"),
        };
    };
    let hundredths = u128::from(amount) * 100;
    let exact = UNITS[largest..]
        .iter()
        .find(|(_, shift)| hundredths.trailing_zeros() >= *shift && amount >> shift < TOO_MANY);
    let (suffix, hundredths) = if let Some((suffix, shift)) = exact {
        (*suffix, hundredths >> shift)
    } else {
        let (suffix, shift) = UNITS[largest];
        let tenths = (u128::from(amount) * 10 + (1 << (shift - 1))) >> shift;
        (suffix, tenths * 10)
    };
    let (whole, rest) = (hundredths / 100, hundredths % 100);
    if rest == 0 {
        return format!("{whole}{suffix}");
    }
    format!("{whole}.{}{suffix}", format!("{rest:02}").trim_end_matches('0'))
}

/// Formats the most that a pod may ask for: never more than the amount, also where that is too long to read.
pub(crate) fn at_most(name: &ResourceName, amount: u64) -> String {
    quantity(name, amount - amount % step(name, amount))
}

/// Formats the least that a limit must allow: never less than the amount, also where that is too long to read.
pub(crate) fn at_least(name: &ResourceName, amount: u64) -> String {
    quantity(name, rounded_up(name, amount))
}

/// Returns an amount that is short enough to read, and never less.
pub(crate) fn rounded_up(name: &ResourceName, amount: u64) -> u64 {
    amount.checked_next_multiple_of(step(name, amount)).unwrap_or(amount)
}

/// Returns the amount whose multiples are written exactly, in the unit of an amount of this size.
fn step(name: &ResourceName, amount: u64) -> u64 {
    if !is_in_bytes(name) || amount >> 10 == 0 {
        return 1;
    }
    let unit = UNITS.iter().rev().find(|(_, shift)| amount >> shift < TOO_MANY);
    // A quarter of a unit has two decimals.
    unit.map_or(1_u64 << 38, |(_, shift)| if *shift > 20 { 1_u64 << (*shift - 2) } else { 1_u64 << *shift })
}

/// Formats a price that a limit must allow, for people. It is rounded up, so that the limit is high enough if it is set to what they
/// read.
pub(crate) fn needed_price(amount: UsdPerHour) -> String {
    format!("{:#}", amount.rounded_up())
}

/// Formats a price that a limit counts already, for people. It is rounded up, too, because a higher limit must allow it besides. Where
/// that would be above a limit that allows the price, it is exact.
pub(crate) fn used_price(used: UsdPerHour, most: UsdPerHour) -> String {
    if used <= most && used.rounded_up() > most { format!("${used}/h") } else { needed_price(used) }
}

/// Formats an amount with its resource, which may be CPU or memory: `2 cpu`, `4Gi memory`, `16 bytes of memory`.
pub(crate) fn named(name: &ResourceName, amount: u64) -> String {
    let link = if is_in_bytes(name) && amount >> 10 == 0 { " of " } else { " " };
    format!("{}{link}{name}", quantity(name, amount))
}

/// The prefix of the resources for huge pages.
pub(crate) const HUGE_PAGES: &str = "hugepages-";

fn is_in_bytes(name: &ResourceName) -> bool {
    matches!(name.as_str(), ResourceName::MEMORY | ResourceName::EPHEMERAL_STORAGE)
        || name.as_str().starts_with(HUGE_PAGES)
}

/// Formats an amount with its resource, which is neither CPU nor memory: `2 x nvidia.com/gpu`, `60Gi of ephemeral-storage`.
fn amount_of(name: &ResourceName, amount: u64) -> String {
    let link = if is_in_bytes(name) { "of" } else { "x" };
    format!("{} {link} {name}", quantity(name, amount))
}

/// Formats an amount that is counted in thousandths: `3`, `3.5`.
pub(crate) fn thousandths(amount: u64) -> String {
    let (whole, milli) = (amount / 1000, amount % 1000);
    if milli == 0 {
        return whole.to_string();
    }
    format!("{whole}.{}", format!("{milli:03}").trim_end_matches('0'))
}

/// Returns whether a resource is an extended resource, which means any but CPU, memory, ephemeral storage and pods.
pub(crate) fn is_extended(name: &ResourceName) -> bool {
    !matches!(
        name.as_str(),
        ResourceName::CPU | ResourceName::MEMORY | ResourceName::EPHEMERAL_STORAGE | ResourceName::PODS
    )
}

/// Returns a summary of a resource list: its extended resources if it has any, otherwise CPU and memory.
pub(crate) fn gist(list: &ResourceList) -> String {
    let extended: Vec<String> = list
        .iter()
        .filter(|(name, _)| is_extended(name) && !name.as_str().starts_with(ATTACHABLE))
        .map(|(name, amount)| amount_of(name, amount))
        .collect();
    if !extended.is_empty() {
        return extended.join(", ");
    }
    let plain: Vec<String> = list
        .iter()
        .filter(|(name, _)| matches!(name.as_str(), ResourceName::CPU | ResourceName::MEMORY))
        .map(|(name, amount)| named(name, amount))
        .collect();
    if plain.is_empty() { "no requests".to_owned() } else { plain.join(", ") }
}

/// Returns all requests for resources: CPU and memory first, then the others. `origin` says where a request comes from, in words that
/// follow it.
pub(crate) fn requests(list: &ResourceList, origin: impl Fn(&ResourceName) -> String) -> String {
    let is_plain = |name: &ResourceName| matches!(name.as_str(), ResourceName::CPU | ResourceName::MEMORY);
    let is_shown =
        |name: &ResourceName| !name.as_str().starts_with(ATTACHABLE) && name.as_str() != ResourceName::PODS;
    let shown = list.iter().filter(|(name, amount)| *amount > 0 && is_shown(name));
    let (plain, others): (Vec<_>, Vec<_>) = shown.partition(|(name, _)| is_plain(name));
    let plain = plain.into_iter().map(|(name, amount)| (name, named(name, amount)));
    let others = others.into_iter().map(|(name, amount)| (name, amount_of(name, amount)));
    let all: Vec<String> =
        plain.chain(others).map(|(name, words)| format!("{words}{}", origin(name))).collect();
    if all.is_empty() { "no requests".to_owned() } else { all.join(", ") }
}

/// Formats a count with its noun: `1 pod`, `2 pods`.
pub(crate) fn count(count: usize, one: &str) -> String {
    if count == 1 { format!("1 {one}") } else { format!("{count} {one}s") }
}

/// Names taints: ``taint `a:NoSchedule` ``, ``taints `a:NoSchedule`, `b:NoExecute` ``.
pub(crate) fn taints(all: &[&Taint]) -> String {
    format!("{} {}", if all.len() == 1 { "taint" } else { "taints" }, quoted(all))
}

/// Lists taints: `` `a:NoSchedule`, `b:NoExecute` ``.
pub(crate) fn quoted(taints: &[&Taint]) -> String {
    taints.iter().map(|taint| format!("`{taint}`")).collect::<Vec<_>>().join(", ")
}

/// Lists names for a message: `a, b, c and 4 more`.
pub(crate) fn list<T: AsRef<str>>(items: &[T], most: usize) -> String {
    let shown: Vec<&str> = items.iter().take(most).map(AsRef::as_ref).collect();
    let more = items.len().saturating_sub(most);
    if more > 0 { format!("{} and {more} more", shown.join(", ")) } else { shown.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_amount_of_memory_is_exact_where_two_decimals_suffice_and_has_a_unit() {
        let memory = ResourceName::new(ResourceName::MEMORY);
        for (amount, words) in [
            (1 << 30, "1Gi"),
            ((1 << 30) + (256 << 20), "1.25Gi"),
            ((1 << 30) + (1 << 29), "1.5Gi"),
            (1290 << 20, "1290Mi"),
            (100 << 40, "100Ti"),
            (512_000_000, "488.3Mi"),
            (14_162 << 20, "13.8Gi"),
            (16, "16 bytes"),
            (1, "1 byte"),
            (0, "0"),
        ] {
            assert_eq!(quantity(&memory, amount), words);
        }
        let list = ResourceList::new().with(ResourceName::CPU, 250_000).with(ResourceName::MEMORY, 16);
        assert_eq!(requests(&list, |_| String::new()), "250 cpu, 16 bytes of memory");
        assert_eq!(gist(&list), "250 cpu, 16 bytes of memory");
    }

    #[test]
    fn the_most_to_ask_for_is_never_rounded_up() {
        let memory = ResourceName::new(ResourceName::MEMORY);
        for (amount, words) in [
            (14_162 << 20, "13.75Gi"),
            ((6_842 << 20) + 1, "6842Mi"),
            ((700 << 30) + (255 << 20), "700Gi"),
            (300, "300 bytes"),
        ] {
            assert_eq!(at_most(&memory, amount), words);
        }
        assert_eq!(at_most(&ResourceName::new(ResourceName::CPU), 191_345), "191.345");
    }

    #[test]
    fn the_least_that_a_limit_must_allow_is_never_rounded_down() {
        let memory = ResourceName::new(ResourceName::MEMORY);
        for (amount, words) in [
            (14_162 << 20, "14Gi"),
            ((6_842 << 20) + 1, "6843Mi"),
            (14 << 30, "14Gi"),
            ((700 << 30) + (255 << 20), "700.25Gi"),
            (1_500, "2Ki"),
            (300, "300 bytes"),
            (0, "0"),
        ] {
            assert_eq!(at_least(&memory, amount), words);
        }
        assert_eq!(at_least(&ResourceName::new(ResourceName::CPU), 191_345), "191.345");
    }

    #[test]
    fn a_price_that_is_used_is_never_shown_as_less_or_as_more_than_a_limit_that_allows_it() {
        let price = UsdPerHour::from_micros;
        for (used, most, words) in [
            (2_014_000, 2_500_000, "$2.02/h"),
            (2_014_000, 2_014_000, "$2.014/h"),
            (2_014_000, 2_020_000, "$2.02/h"),
            (2_014_000, 2_000_000, "$2.02/h"),
            (0, 0, "$0.00/h"),
        ] {
            assert_eq!(used_price(price(used), price(most)), words);
        }
        assert_eq!(needed_price(price(1_006_000)), "$1.01/h");
        assert_eq!(needed_price(price(1_004_000)), "$1.01/h");
    }

    #[test]
    fn bytes_of_a_resource_are_no_count() {
        let list = ResourceList::new()
            .with(ResourceName::NVIDIA_GPU, 2)
            .with(ResourceName::EPHEMERAL_STORAGE, 60 << 30)
            .with("hugepages-2Mi", 100 << 20);
        let words = requests(&list, |_| String::new());
        for part in ["2 x nvidia.com/gpu", "60Gi of ephemeral-storage", "100Mi of hugepages-2Mi"] {
            assert!(words.contains(part), "{words}");
        }
        assert!(gist(&list).contains("100Mi of hugepages-2Mi"), "{}", gist(&list));
    }
}
