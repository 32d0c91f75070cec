//! Replays on spot nodes: the cloud takes them back at the rate of their offering.

use std::time::Duration;

use poolwright_report::replay::History;
use poolwright_sim::cluster::JobPlan;
use serde_json::json;

use crate::kit;

/// Plays eight Jobs of 60 hours, each on a node of its own, for three days.
fn played(capacity: &str) -> History {
    let job = |number: u32| JobPlan {
        length: Some(Duration::from_hours(60)),
        kept: Some(Duration::ZERO),
        ..JobPlan::new(format!("train-{number}"), Duration::ZERO, 1, kit::gpu_pod(1))
    };
    let mut replay = kit::replay(&["g4dn.xlarge"], None, Vec::new(), (0..8).map(job).collect());
    replay.objects[1]["spec"]["template"]["spec"]["requirements"][0]["values"] = json!([capacity]);
    replay.length = Duration::from_hours(3 * 24);
    replay.run(&mut |_| true).expect("it is played")
}

#[test]
fn the_cloud_takes_spot_nodes_back_and_their_pods_start_again_on_new_ones() {
    let history = played("spot");
    let taken: Vec<_> = history.machines.iter().filter(|machine| machine.interrupted).collect();
    // At 0.73 % per hour, about four in three days of eight nodes.
    assert!((1..15).contains(&taken.len()), "{} of {}", taken.len(), history.machines.len());
    assert!(taken.iter().all(|machine| machine.gone.is_some_and(|gone| gone > machine.launched)));
    let lost = history.pods.len() - 8;
    assert!(lost * 2 >= taken.len(), "{lost} pods begin again after {} interruptions", taken.len());
    assert!(history.machines.len() > 8, "they get new nodes");
}

#[test]
fn on_demand_nodes_stay() {
    let on_demand = played("on-demand");
    assert_eq!((on_demand.machines.len(), on_demand.pods.len()), (8, 8));
    assert!(on_demand.machines.iter().all(|machine| !machine.interrupted));
}
