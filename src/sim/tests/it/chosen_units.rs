//! What `units: auto` of a buffer does in the simulated world: where pods come often it keeps room for them, and where they come
//! rarely it buys nothing.

use std::time::Duration;

use poolwright_catalog::ResourceName;
use poolwright_core::BREAK_EVEN;
use poolwright_report::replay::History;
use poolwright_sim::cluster::JobPlan;
use poolwright_sim::replay::Replay;
use serde_json::json;

use crate::kit;

const MINUTE: Duration = Duration::from_mins(1);

/// Plays pods of half a minute that come at equal distances. Nodes without work go at once, so that no pod finds one. `auto` says
/// whether the pool chooses how much room it keeps free; otherwise it keeps none.
fn played(every: Duration, length: Duration, auto: bool) -> History {
    let mut jobs = Vec::new();
    let mut arrives = Duration::ZERO;
    while arrives < length {
        let job = JobPlan::new(format!("job-{}", jobs.len()), arrives, 1, kit::gpu_pod(1));
        jobs.push(JobPlan { length: Some(MINUTE / 2), kept: Some(Duration::ZERO), ..job });
        arrives += every;
    }
    let mut replay = Replay { length, ..kit::replay(&["g4dn.xlarge"], Some("1s"), Vec::new(), jobs) };
    if auto {
        let unit = json!({"cpu": "2", "memory": "8Gi", (ResourceName::NVIDIA_GPU): "1"});
        replay.objects[1]["spec"]["buffer"] = json!([{"units": "auto", "requests": unit}]);
    }
    replay.run(&mut |_| true).expect("it is played")
}

/// The 95th percentile of the time that pods wait which were created after some time.
fn wait_of_most(history: &History, after: Duration) -> Duration {
    let late = history.pods.iter().filter(|pod| pod.made >= after);
    let mut waits: Vec<Duration> = late.map(|pod| pod.waited(history.played)).collect();
    waits.sort_unstable();
    waits[waits.len() * 95 / 100]
}

/// The cost in micro-dollars.
fn cost(history: &History) -> u128 {
    history.machines.iter().map(|machine| machine.cost(history.played).0).sum()
}

/// How many machines were bought for no pod.
fn for_room(history: &History) -> usize {
    history.machines.iter().filter(|machine| machine.bought_for.is_empty()).count()
}

#[test]
fn where_pods_come_often_they_wait_less_and_cost_no_more_than_a_start_for_each() {
    let (every, length) = (Duration::from_secs(40), MINUTE * 150);
    let [none, auto] = [false, true].map(|auto| played(every, length, auto));
    let [long, short] = [&none, &auto].map(|history| wait_of_most(history, MINUTE * 110));
    println!("{long:?} without and {short:?} with auto; {} and {} micro-dollars", cost(&none), cost(&auto));
    assert!(short * 2 < long, "{long:?} without and {short:?} with auto");
    assert!(for_room(&auto) > for_room(&none));
    let price = auto.machines[0].price.expect("it is known").micros();
    let starts = BREAK_EVEN.as_secs().unsigned_abs() * auto.pods.len() as u64;
    assert!(cost(&auto) <= cost(&none) + u128::from(price) * u128::from(starts) / 3_600);
}

#[test]
fn where_pods_come_rarely_auto_buys_nothing() {
    let [none, auto] = [false, true].map(|auto| played(MINUTE * 10, MINUTE * 180, auto));
    let machines = |history: &History| (for_room(history), history.machines.len());
    assert_eq!(machines(&auto), machines(&none));
}
