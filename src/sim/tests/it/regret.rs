//! What wrong expectations cost: the same small workload, played with durations that are declared, false, shuffled, unknown, or learned
//! from other work.

use std::sync::OnceLock;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use poolwright_catalog::Usd;
use poolwright_core::Lives;
use poolwright_sim::cluster::JobPlan;
use poolwright_sim::replay::{Replay, kept_lives};

use crate::kit;

const MINUTE: Duration = Duration::from_mins(1);
/// The length of a replay: all work ends within it.
const LENGTH: Duration = Duration::from_mins(150);

/// A Job with one pod.
fn job(name: String, arrives: Duration, gpus: u64, length: Duration) -> JobPlan {
    JobPlan {
        length: Some(length),
        kept: Some(Duration::ZERO),
        ..JobPlan::new(name, arrives, 1, kit::gpu_pod(gpus))
    }
}

/// Short pods, long pods, and pods with four GPUs, mixed.
fn jobs() -> Vec<JobPlan> {
    let mut jobs = Vec::new();
    for number in 0..24 {
        let (arrives, more) = (MINUTE * number * 3, MINUTE * (number % 3));
        jobs.push(match number % 6 {
            0 => job(format!("large-{number}"), arrives, 4, MINUTE * 20 + more * 4),
            3 => job(format!("long-{number}"), arrives, 1, MINUTE * 50 + more * 5),
            _ => job(format!("short-{number}"), arrives, 1, MINUTE * 2 + more),
        });
    }
    jobs
}

/// Plays the jobs, and returns what they cost. All of them must have ended.
fn cost(jobs: Vec<JobPlan>, declares: impl Fn(&JobPlan) -> Option<Duration>, learned: Option<&Lives>) -> Usd {
    cost_on(&["g4dn.xlarge", "g4dn.12xlarge"], LENGTH, jobs, declares, learned)
}

/// Does the same on nodes of these types, for another time.
fn cost_on(
    kinds: &[&str],
    length: Duration,
    mut jobs: Vec<JobPlan>,
    declares: impl Fn(&JobPlan) -> Option<Duration>,
    learned: Option<&Lives>,
) -> Usd {
    for job in &mut jobs {
        job.declares = declares(job);
    }
    let learned = learned.map(kept_lives).into_iter().collect();
    let replay = Replay { length, ..kit::replay(kinds, Some("1m"), learned, jobs) };
    let history = replay.run(&mut |_| true).expect("it is played");
    assert!(history.pods.iter().all(|pod| pod.ended.is_some()), "all work ends");
    Usd(history.machines.iter().map(|machine| machine.cost(history.played).0).sum())
}

/// The cost with true declarations.
fn known() -> Usd {
    static KNOWN: OnceLock<Usd> = OnceLock::new();
    *KNOWN.get_or_init(|| cost(jobs(), |job| job.length, None))
}

/// Fails if a cost is more than this percentage of the cost with durations known.
fn assert_within(cost: Usd, percent: u128) {
    let known = known();
    println!("${cost}, {} % of ${known} with durations known", cost.0 * 100 / known.0);
    assert!(cost.0 * 100 <= known.0 * percent, "${cost} is more than {percent} % of ${known}");
}

#[test]
fn pods_that_run_a_hundred_times_as_long_as_declared_cost_little_more() {
    assert_within(cost(jobs(), |job| Some(job.length? / 100), None), 110);
}

#[test]
fn pods_that_run_a_hundredth_of_what_they_declare_cost_little_more() {
    assert_within(cost(jobs(), |job| Some(job.length? * 100), None), 110);
}

#[test]
fn pods_that_declare_the_durations_of_others_cost_little_more() {
    let lengths: Vec<Option<Duration>> = jobs().iter().map(|job| job.length).collect();
    let number = |job: &JobPlan| job.name.rsplit('-').next().and_then(|number| number.parse::<usize>().ok());
    let shuffled = |job: &JobPlan| lengths[(number(job).unwrap_or_default() * 7 + 5) % lengths.len()];
    assert_within(cost(jobs(), shuffled, None), 110);
}

#[test]
fn without_any_history_the_prior_costs_little_more() {
    assert_within(cost(jobs(), |_| None, None), 110);
}

#[test]
fn a_history_of_other_kinds_costs_little_more_than_durations_known() {
    let mut lives = Lives::prior();
    let kinds = ["train with 2 CPUs/namespace elsewhere/1 GPUs", "namespace elsewhere/1 GPUs", "1 GPUs"];
    for _ in 0..200 {
        let length = SignedDuration::from_hours(30);
        lives.observe(&kinds.map(str::to_owned), length, true, Timestamp::UNIX_EPOCH);
    }
    assert_within(cost(jobs(), |_| None, Some(&lives)), 110);
}

// Nobody knows when they end, until the first ones have been scaled to zero.
#[test]
fn services_of_which_none_declares_an_end_cost_little_more() {
    let services = jobs().into_iter().map(|job| JobPlan { is_set: true, ..job });
    assert_within(cost(services.collect(), |_| None, None), 110);
}

// They share nodes with four GPUs, so it matters which of them are together.
#[test]
fn five_hundred_pods_after_two_days_of_silence_cost_little_more_than_with_durations_known() {
    let (silence, short, long) = (Duration::from_hours(48), MINUTE * 5, MINUTE * 60);
    let work = || {
        let of = |name: &str, pods, length| JobPlan { pods, ..job(name.to_owned(), silence, 1, length) };
        vec![of("short-1", 400, short), of("long-1", 100, long)]
    };
    let mut lives = Lives::prior();
    for (name, length) in [("short", short), ("long", long)] {
        let middle = "namespace default/1 GPUs";
        let template = format!("{name} with 2 CPUs, 8 GiB/{middle}");
        let kinds = [template.as_str(), middle, "1 GPUs"].map(str::to_owned);
        let length = SignedDuration::try_from(length).expect("it is short");
        for _ in 0..400 {
            lives.observe(&kinds, length, true, Timestamp::UNIX_EPOCH);
        }
    }
    let play = |declares: fn(&JobPlan) -> Option<Duration>, learned| {
        cost_on(&["g4dn.12xlarge"], silence + LENGTH, work(), declares, learned)
    };
    let (known, learned) = (play(|job| job.length, None), play(|_| None, Some(&lives)));
    assert!(learned.0 * 100 <= known.0 * 110, "${learned} is more than 110 % of ${known}");
}
