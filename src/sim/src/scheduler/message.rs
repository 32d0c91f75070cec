//! The message in the condition of a pod that fits on no node (`FitError` of the kube-scheduler).

use std::collections::BTreeMap;

use super::reason::{Reason, Unfit};

/// Builds `0/3 nodes are available: 1 Insufficient cpu, 2 node(s) had untolerated taint(s).` Nodes that are not listed have the
/// reason `absent`, if there is one.
pub(super) fn no_node<'a>(
    nodes: usize,
    unfit: impl IntoIterator<Item = &'a Unfit>,
    absent: Option<Reason>,
) -> String {
    let mut counts: BTreeMap<Reason, usize> = BTreeMap::new();
    let mut listed = 0;
    for one in unfit {
        listed += 1;
        for reason in &one.reasons {
            *counts.entry(reason.clone()).or_default() += 1;
        }
    }
    if let Some(reason) = absent.filter(|_| listed < nodes) {
        *counts.entry(reason).or_default() += nodes - listed;
    }
    let mut words: Vec<String> = counts.iter().map(|(reason, count)| format!("{count} {reason}")).collect();
    // Sorted as text like the scheduler does, so `10 ...` comes before `2 ...`.
    words.sort();
    let mut message = format!("0/{nodes} nodes are available:");
    if !words.is_empty() {
        message = format!("{message} {}.", words.join(", "));
    }
    message
}

/// Returns the message if no node was checked.
pub(super) fn none_at_all(nodes: usize, why: &str) -> String {
    format!("0/{nodes} nodes are available: {why}.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_counted_and_sorted_as_text() {
        let taint = Unfit::unresolvable(Reason::Taint);
        let short = |resource: &str| Reason::Insufficient(resource.into());
        let room = Unfit { reasons: vec![short("cpu"), short("nvidia.com/gpu")], resolvable: true };
        let mut all = vec![taint; 10];
        all.extend([room.clone(), room]);
        assert_eq!(
            no_node(12, &all, None),
            "0/12 nodes are available: 10 node(s) had untolerated taint(s), 2 Insufficient cpu, 2 Insufficient nvidia.com/gpu."
        );
        assert_eq!(no_node(3, &[], None), "0/3 nodes are available:");
        assert_eq!(
            no_node(3, &[], Some(Reason::PreemptionInVain)),
            "0/3 nodes are available: 3 Preemption is not helpful for scheduling."
        );
    }
}
