//! Taints of nodes: those at launch, and those to write to an existing node.

use k8s_openapi::api::core::v1::Taint as NodeTaint;
use poolwright_core::Claim;
use poolwright_intake::node_taint;
use poolwright_terms::keys::{DOMAIN, UNREGISTERED_TAINT};
use poolwright_terms::{Taint, TaintEffect};

/// Returns the taints of a new node.
pub fn at_launch(claim: &Claim) -> Vec<Taint> {
    let unregistered =
        Taint { key: UNREGISTERED_TAINT.to_owned(), value: String::new(), effect: TaintEffect::NoExecute };
    let all = claim.taints.iter().chain(&claim.startup_taints).chain([&unregistered]);
    all.cloned().collect()
}

/// Returns whether a taint is one of Poolwright's own.
fn ours(key: &str) -> bool {
    key.strip_prefix(DOMAIN).is_some_and(|rest| rest.starts_with('/'))
}

fn same(one: &NodeTaint, other: &Taint) -> bool {
    one.key == other.key && one.effect == other.effect.as_str()
}

/// Returns the taints to write. Our own taints become exactly those in `wanted`. Other taints stay as they are on the node:
/// `wanted` may be stale, and writing back a startup taint that was just removed would close the node for good. Taints in
/// `promised` are added if missing.
pub fn merged(live: &[NodeTaint], wanted: &[Taint], promised: &[Taint]) -> Vec<NodeTaint> {
    let mut list: Vec<NodeTaint> = live
        .iter()
        .filter(|taint| !ours(&taint.key) || wanted.iter().any(|want| same(taint, want)))
        .cloned()
        .collect();
    for want in wanted.iter().filter(|want| ours(&want.key)).chain(promised) {
        if !list.iter().any(|taint| same(taint, want)) {
            list.push(node_taint(want));
        }
    }
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taint(key: &str, effect: TaintEffect) -> Taint {
        Taint { key: key.into(), value: String::new(), effect }
    }

    fn keys(list: &[NodeTaint]) -> Vec<&str> {
        list.iter().map(|taint| taint.key.as_str()).collect()
    }

    #[test]
    fn a_startup_taint_lifted_in_between_is_not_written_back() {
        let live = [node_taint(&taint("node.kubernetes.io/not-ready", TaintEffect::NoExecute))];
        let wanted = [
            taint("cilium/not-ready", TaintEffect::NoSchedule),
            taint("poolwright.dev/disrupted", TaintEffect::NoSchedule),
        ];
        let list = merged(&live, &wanted, &[]);
        assert_eq!(keys(&list), ["node.kubernetes.io/not-ready", "poolwright.dev/disrupted"]);
    }

    #[test]
    fn our_own_taint_goes_when_it_is_not_wanted() {
        let live = [
            taint("poolwright.dev/unregistered", TaintEffect::NoExecute),
            taint("team", TaintEffect::NoSchedule),
        ]
        .map(|t| node_taint(&t));
        assert_eq!(keys(&merged(&live, &[], &[])), ["team"]);
    }

    #[test]
    fn a_node_gets_the_taints_of_its_pool_that_it_lacks() {
        let promised = [taint("team", TaintEffect::NoSchedule)];
        assert_eq!(keys(&merged(&[], &[], &promised)), ["team"]);
        let live = promised.clone().map(|one| node_taint(&one));
        assert_eq!(merged(&live, &[], &promised).len(), 1);
    }
}
