//! Tests of setbacks.

use poolwright_core::Claim;
use poolwright_core::setbacks::Setbacks;

use crate::kit::*;

/// Returns a claim that was created then.
fn claim_of(seconds: i64) -> Claim {
    Claim { created: at(seconds), ..claim() }
}

#[test]
fn each_failure_in_a_row_doubles_the_time_up_to_an_hour() {
    let mut setbacks = Setbacks::default();
    let offering = id("g5.xlarge", "a");
    let mut now = 0;
    let mut minutes = Vec::new();
    for _ in 0..9 {
        let until = setbacks.failed(&claim_of(now), &offering, at(now));
        minutes.push((until.as_second() - at(now).as_second()) / 60);
        now = until.as_second() - at(0).as_second();
    }
    assert_eq!(minutes, [1, 2, 4, 8, 16, 32, 60, 60, 60]);
}

#[test]
fn orders_placed_before_the_failure_do_not_count_again() {
    let mut setbacks = Setbacks::default();
    let offering = id("g5.xlarge", "a");
    setbacks.failed(&claim_of(0), &offering, at(0));
    assert_eq!(setbacks.failed(&claim_of(0), &offering, at(30)), at(60));
}

#[test]
fn an_offering_is_held_back_until_its_time_and_starts_over_after_a_later_claim_got_it() {
    let mut setbacks = Setbacks::default();
    let (a, b) = (id("g5.xlarge", "a"), id("g5.xlarge", "b"));
    setbacks.failed(&claim_of(0), &a, at(0));
    setbacks.failed(&claim_of(20), &b, at(20));
    assert_eq!(setbacks.held_back(at(59)).len(), 2);
    assert_eq!(setbacks.next_release(at(59)), Some(at(60)));
    assert_eq!(setbacks.held_back(at(60)).into_keys().collect::<Vec<_>>(), [(node_class(), b.clone())]);
    setbacks.succeeded(&claim_of(80), &b, at(81));
    assert_eq!((setbacks.held_back(at(81)).len(), setbacks.next_release(at(81))), (0, None));
    assert_eq!(setbacks.failed(&claim_of(100), &b, at(101)), at(161), "it starts over");
}

#[test]
fn a_success_does_not_end_the_setback_of_a_failure_in_the_same_round() {
    let mut setbacks = Setbacks::default();
    let offering = id("g5.xlarge", "a");
    let until = setbacks.failed(&claim_of(0), &offering, at(1));
    setbacks.succeeded(&claim_of(0), &offering, at(2));
    assert_eq!(setbacks.held_back(at(3)), [((node_class(), offering), until)].into());
}

#[test]
fn a_gang_that_gets_a_part_of_its_nodes_each_time_is_bought_ever_more_rarely() {
    // A quota has room for one of the two nodes, and either answer may come first.
    for success_comes_first in [true, false] {
        let mut setbacks = Setbacks::default();
        let offering = id("g5.xlarge", "a");
        let mut now = 0;
        let mut minutes = Vec::new();
        for _ in 0..4 {
            let claim = claim_of(now);
            if success_comes_first {
                setbacks.succeeded(&claim, &offering, at(now + 1));
            }
            let until = setbacks.failed(&claim, &offering, at(now + 2));
            if !success_comes_first {
                setbacks.succeeded(&claim, &offering, at(now + 3));
            }
            assert!(!setbacks.held_back(at(now + 4)).is_empty());
            minutes.push((until.as_second() - at(now + 2).as_second()) / 60);
            now = until.as_second() - at(0).as_second();
        }
        assert_eq!(minutes, [1, 2, 4, 8], "success first: {success_comes_first}");
    }
}
