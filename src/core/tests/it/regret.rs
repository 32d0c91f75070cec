//! What wrong expectations of durations cost, for one plan: the bill of its nodes until their pods have ended.

use std::sync::Arc;

use jiff::SignedDuration;
use poolwright_catalog::Usd;
use poolwright_core::plan::Plan;
use poolwright_core::*;

use crate::kit::*;

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const WEEK: i64 = 7 * 24 * HOUR;

/// A template of which every pod runs equally long, in seconds.
#[derive(Clone, Copy)]
struct Kind(&'static str, i64);

const SHORT: Kind = Kind("short", 10 * MINUTE);
const LONG: Kind = Kind("long", 20 * HOUR);

impl Kind {
    fn kinds(self) -> Vec<String> {
        vec![format!("{}/1 GPUs", self.0), "1 GPUs".to_owned()]
    }

    fn pods(self, count: usize) -> impl Iterator<Item = Pod> {
        (0..count).map(move |number| {
            let pod = pod(&format!("{}-{number}", self.0), requests(2, 8, 1));
            Pod { duration: PodDuration { kinds: self.kinds(), ..pod.duration }, ..pod }
        })
    }

    /// Lets pods end that began at the beginning, while the clock shows this time.
    fn end(self, lives: &mut Lives, count: usize, seconds: i64) {
        for mut pod in self.pods(count) {
            pod.duration.started = Some(at(0));
            lives.observe(&self.kinds(), pod.duration.age(at(seconds)), true, at(seconds));
        }
    }
}

fn learned() -> Lives {
    let mut lives = Lives::prior();
    SHORT.end(&mut lives, 40, SHORT.1);
    LONG.end(&mut lives, 40, LONG.1);
    lives
}

/// Returns the plan for these pods.
fn plan_for(pods: impl IntoIterator<Item = Pod>, mut lives: Lives, seconds: i64) -> Plan {
    lives.refresh([].into_iter(), at(seconds));
    let mut snapshot = with(cluster(aws(), [pool("gpu")]), pods);
    snapshot.lives = Arc::new(lives);
    planned_at(&snapshot, seconds)
}

/// Returns what the nodes of a plan cost until their last pods have ended.
fn bill(plan: &Plan) -> u128 {
    assert_eq!(plan.unplaced, []);
    let length = |pod: &PodKey| if pod.name().starts_with(SHORT.0) { SHORT.1 } else { LONG.1 };
    let cost = |claim: &plan::PlannedClaim| {
        let until = claim.planned_pods.iter().map(length).max().unwrap_or_default();
        Usd::of(claim.offerings[0].price, std::time::Duration::from_secs(until as u64)).0
    };
    plan.claims.iter().map(cost).sum()
}

fn mixed() -> impl Iterator<Item = Pod> {
    SHORT.pods(14).chain(LONG.pods(6))
}

#[test]
fn a_clock_that_jumped_while_pods_ended_costs_at_most_a_tenth_more() {
    let known = bill(&plan_for(mixed(), learned(), WEEK));
    for jump in [4 * WEEK, -4 * WEEK] {
        let mut lives = learned();
        SHORT.end(&mut lives, 10, jump);
        LONG.end(&mut lives, 10, jump);
        let jumped = bill(&plan_for(mixed(), lives.clone(), WEEK));
        assert!(jumped * 100 <= known * 110, "{jumped} and {known}");
        // The clock is still wrong.
        let jumped = bill(&plan_for(mixed(), lives, jump));
        assert!(jumped * 100 <= known * 110, "{jumped} and {known}");
    }
}

#[test]
fn five_thousand_pods_after_a_week_of_silence_cost_no_more_than_with_durations_known() {
    let pods = || SHORT.pods(4_000).chain(LONG.pods(1_000));
    let declared = pods().map(|pod| {
        let seconds = if pod.key.name().starts_with(SHORT.0) { SHORT.1 } else { LONG.1 };
        let expected = Some(SignedDuration::from_secs(seconds));
        Pod { duration: PodDuration { expected, ..pod.duration }, ..pod }
    });
    let known = bill(&plan_for(declared, Lives::prior(), WEEK));
    let after = bill(&plan_for(pods(), learned(), WEEK));
    let blank = bill(&plan_for(pods(), Lives::default(), WEEK));
    assert!(after * 100 <= known * 101 && after <= blank, "{after}, {known} and {blank}");
}

#[test]
fn pods_without_an_end_are_planned_by_the_price_of_the_moment() {
    let services = || {
        mixed().map(|mut pod| {
            pod.duration.make_service();
            pod
        })
    };
    let moment = plan_for(services(), Lives::default(), WEEK);
    let unbounded = plan_for(services(), learned(), WEEK);
    assert_eq!((unbounded.claims, unbounded.cost), (moment.claims, moment.cost));
}

#[test]
fn a_kind_never_seen_and_a_lost_history_cost_no_more_than_the_price_of_the_moment() {
    let moment = bill(&plan_for(mixed(), Lives::default(), WEEK));
    let lost = bill(&plan_for(mixed(), Lives::prior(), WEEK));
    let mut others = Lives::prior();
    for minutes in 1..200 {
        let age = SignedDuration::from_mins(minutes * minutes);
        others.observe(&["other/1 GPUs".to_owned(), "1 GPUs".to_owned()], age, true, at(0));
    }
    let unseen = bill(&plan_for(mixed(), others, WEEK));
    assert!(lost <= moment && unseen <= moment, "{lost}, {unseen} and {moment}");
}
