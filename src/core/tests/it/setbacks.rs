//! Tests of setbacks.

use poolwright_core::setbacks::Setbacks;

use crate::kit::*;

#[test]
fn each_failure_in_a_row_doubles_the_time_up_to_an_hour() {
    let mut setbacks = Setbacks::default();
    let offering = id("g5.xlarge", "a");
    let mut now = 0;
    let mut minutes = Vec::new();
    for _ in 0..9 {
        let until = setbacks.failed(&node_class(), &offering, at(now));
        minutes.push((until.as_second() - at(now).as_second()) / 60);
        now = until.as_second() - at(0).as_second();
    }
    assert_eq!(minutes, [1, 2, 4, 8, 16, 32, 60, 60, 60]);
}

#[test]
fn orders_placed_before_the_failure_do_not_count_again() {
    let mut setbacks = Setbacks::default();
    let offering = id("g5.xlarge", "a");
    setbacks.failed(&node_class(), &offering, at(0));
    assert_eq!(setbacks.failed(&node_class(), &offering, at(30)), at(60));
}

#[test]
fn an_offering_is_held_back_until_its_time_and_forgotten_after_a_success() {
    let mut setbacks = Setbacks::default();
    let (a, b) = (id("g5.xlarge", "a"), id("g5.xlarge", "b"));
    setbacks.failed(&node_class(), &a, at(0));
    setbacks.failed(&node_class(), &b, at(20));
    assert_eq!(setbacks.held_back(at(59)).len(), 2);
    assert_eq!(setbacks.next_release(at(59)), Some(at(60)));
    assert_eq!(setbacks.held_back(at(60)).into_keys().collect::<Vec<_>>(), [(node_class(), b.clone())]);
    setbacks.succeeded(&node_class(), &b);
    assert_eq!((setbacks.held_back(at(60)).len(), setbacks.next_release(at(60))), (0, None));
    assert_eq!(setbacks.failed(&node_class(), &b, at(100)), at(160), "it starts over");
}
