//! The change that helps with a label that no node of a pool would have.

use poolwright_terms::keys::NODEPOOL_LABEL;
use poolwright_terms::{domains, labels};

use crate::model::PoolInWords;
use crate::rules;

/// Says how the values of a label differ from those of the label that it replaces, if they do.
pub(super) fn value_of(ours: &str) -> &'static str {
    if [labels::INSTANCE_CPU, labels::INSTANCE_MEMORY].contains(&ours) {
        " with another value, because it counts what pods may use; `poolwright convert` translates it"
    } else {
        ""
    }
}

/// The change for a label of the user's own: the template of the pool gets it.
pub(super) const ADD_IT: &str = "add it";

/// Returns a change that helps with a label that no node of a pool would have, whatever the pool buys.
pub(super) fn hint(key: &str, pool: PoolInWords<'_>) -> String {
    if labels::DECIDED_BY_OFFERING.contains(&key) {
        let of = if pool.is_catalogue() { "" } else { " of its node class" };
        return format!("no offering{of} that fits has it");
    }
    if key == NODEPOOL_LABEL {
        let which =
            if pool.is_catalogue() { "write a NodePool of that name" } else { "name a NodePool that exists" };
        return which.to_owned();
    }
    // Such a label on a pool's template would claim what another program decides.
    if let Some(ours) = domains::counterpart(key) {
        return format!(
            "another program sets it, on its own nodes; select by `{ours}` instead{}",
            value_of(ours)
        );
    }
    if domains::is_karpenters(key) || domains::is_foreign(key) {
        return "another autoscaler or a cloud sets it, and plans do not know its value; select by the labels of docs/nodepool.md instead"
            .to_owned();
    }
    ADD_IT.to_owned()
}

/// Returns whether a label of a pool's template is the change that helps with a label.
pub(crate) fn is_of_template(key: &str) -> bool {
    ![labels::HOSTNAME, rules::NODE_NAME_FIELD].contains(&key) && hint(key, PoolInWords::Catalogue) == ADD_IT
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_that_a_cloud_or_the_planner_decides_are_never_advised_for_a_template() {
        assert!(is_of_template("team"));
        for key in ["topology.k8s.aws/zone-id", labels::ZONE, NODEPOOL_LABEL, labels::HOSTNAME] {
            assert!(!is_of_template(key), "{key}");
        }
    }
}
