//! Tests of the batch window.

use std::time::Duration;

use poolwright_core::batch::BatchWindow;
use poolwright_core::index::Change;

fn at(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[test]
fn a_single_pod_waits_one_second() {
    let mut window = BatchWindow::default();
    assert_eq!((window.next_deadline(), window.due(at(100))), (None, false));
    window.on(Change::Demand, at(0));
    assert_eq!(window.next_deadline(), Some(at(1)));
    assert!(!window.due(at(0)) && window.due(at(1)));
    window.close();
    assert_eq!(window.next_deadline(), None);
}

#[test]
fn more_demand_extends_the_window_but_not_beyond_its_ceiling() {
    let mut window = BatchWindow::default();
    for second in 0..20 {
        window.on(Change::Demand, at(second));
    }
    assert_eq!(window.next_deadline(), Some(at(10)));
}

#[test]
fn a_change_without_demand_opens_the_window_but_does_not_extend_it() {
    let mut window = BatchWindow::default();
    window.on(Change::Life, at(0));
    window.on(Change::None, at(0));
    assert_eq!(window.next_deadline(), None);
    window.on(Change::Room, at(1));
    window.on(Change::Room, at(1));
    window.on(Change::Life, at(1));
    assert_eq!(window.next_deadline(), Some(at(2)));
}

#[test]
fn an_urgent_change_closes_the_window_at_once() {
    let mut window = BatchWindow::default();
    window.on(Change::Demand, at(0));
    window.urgent(at(0));
    assert!(window.due(at(0)));
    window.close();
    window.urgent(at(5));
    assert!(window.due(at(5)));
}

#[test]
fn interruptions_wait_briefly_for_the_end_of_a_burst() {
    let ms = Duration::from_millis;
    let mut window = BatchWindow::default();
    window.on(Change::Demand, ms(0));
    window.on(Change::Interrupted, ms(0));
    assert_eq!(window.next_deadline(), Some(ms(150)));
    for at in (10..700).step_by(10) {
        window.on(Change::Interrupted, ms(at));
    }
    assert_eq!(window.next_deadline(), Some(ms(600)));
    window.close();
    assert_eq!(window.next_deadline(), None);
}
