//! What the Lease says about its holder: the version, and the date of its prices.

use std::collections::BTreeMap;

use poolwright_core::{Snapshot, why};
use poolwright_terms::keys::{PRICES_AS_OF_ANNOTATION, VERSION_ANNOTATION};

/// Returns the annotations of the Lease. A date that is unknown is empty.
pub fn lease_notes(snapshot: &Snapshot) -> BTreeMap<&'static str, String> {
    let oldest = why::oldest_price(snapshot).map(|date| date.to_string()).unwrap_or_default();
    [(VERSION_ANNOTATION, env!("CARGO_PKG_VERSION").to_owned()), (PRICES_AS_OF_ANNOTATION, oldest)].into()
}

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::Arc;

    use poolwright_catalog::read_csv;
    use poolwright_intake as intake;
    use poolwright_terms::labels::CAPACITY_TYPE;
    use serde_json::json;

    use super::*;

    /// Returns a pool that buys these capacity types. Its node class sells on-demand capacity at prices of March 2026, and spot capacity at
    /// older ones.
    pub(crate) fn buying(capacity_types: &[&str]) -> Snapshot {
        let requirement = json!({"key": CAPACITY_TYPE, "operator": "In", "values": capacity_types});
        let class = json!({"group": "poolwright.dev", "kind": "TestNodeClass", "name": "a"});
        let object = json!({"apiVersion": "poolwright.dev/v1alpha1", "kind": "NodePool", "metadata": {"name": "gpu"},
            "spec": {"template": {"spec": {"nodeClassRef": class, "requirements": [requirement]}}}});
        let pool = intake::node_pool(&serde_json::from_value(object).expect("a pool"));
        let prices = "instance_type,arch,allocatable_cpu_milli,allocatable_memory_mib,allocatable_pods,gpu_model,gpu_count,\
                      gpu_memory_mib_each,on_demand_usd_per_hour,price_as_of,spot_usd_per_hour,spot_as_of,zones\n\
                      g5.xlarge,amd64,3920,14162,58,a10g,1,22888,1.006,2026-03-01,0.4,2025-06-01,a\n";
        let catalogue = Arc::new(read_csv(&[("prices.csv", prices)]).expect("a catalogue"));
        Snapshot {
            catalogues: [(pool.node_class.clone(), Ok(catalogue))].into(),
            pools: [(pool.name.clone(), Arc::new(pool))].into_iter().collect(),
            ..Snapshot::default()
        }
    }

    #[test]
    fn the_oldest_price_of_what_the_pools_may_buy_counts_and_no_other() {
        let told = |snapshot: &Snapshot| lease_notes(snapshot)[PRICES_AS_OF_ANNOTATION].clone();
        assert_eq!(told(&Snapshot::default()), "");
        assert_eq!(told(&buying(&["on-demand"])), "2026-03-01", "nobody buys spot capacity");
        assert_eq!(told(&buying(&["on-demand", "spot"])), "2025-06-01");
        assert_eq!(lease_notes(&Snapshot::default())[VERSION_ANNOTATION], env!("CARGO_PKG_VERSION"));
    }
}
