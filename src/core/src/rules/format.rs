//! Formatting of amounts, counts and lists for messages.

use jiff::{SignedDuration, Timestamp};
use poolwright_catalog::{ResourceList, ResourceName};
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
        for (suffix, shift) in [("Ti", 40u32), ("Gi", 30), ("Mi", 20), ("Ki", 10)] {
            let unit = 1u64 << shift;
            if amount >= unit {
                let tenths = (u128::from(amount) * 10 + u128::from(unit) / 2) / u128::from(unit);
                let (whole, tenth) = (tenths / 10, tenths % 10);
                return if tenth == 0 {
                    format!("{whole}{suffix}")
                } else {
                    format!("{whole}.{tenth}{suffix}")
                };
            }
        }
    }
    amount.to_string()
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
        .map(|(name, amount)| format!("{} {name}", quantity(name, amount)))
        .collect();
    if plain.is_empty() { "no requests".to_owned() } else { plain.join(", ") }
}

/// Returns all requests for resources: CPU and memory first, then the others. `origin` says where a request comes from, in words that
/// follow it.
pub(crate) fn requests(list: &ResourceList, origin: impl Fn(&ResourceName) -> String) -> String {
    let is_plain = |name: &ResourceName| matches!(name.as_str(), ResourceName::CPU | ResourceName::MEMORY);
    let named =
        |name: &ResourceName| !name.as_str().starts_with(ATTACHABLE) && name.as_str() != ResourceName::PODS;
    let shown = list.iter().filter(|(name, amount)| *amount > 0 && named(name));
    let (plain, others): (Vec<_>, Vec<_>) = shown.partition(|(name, _)| is_plain(name));
    let plain = plain.into_iter().map(|(name, amount)| (name, format!("{} {name}", quantity(name, amount))));
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
