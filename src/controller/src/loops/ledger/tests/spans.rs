use proptest::prelude::*;

use super::*;

const MINUTE: u128 = 60_000;

#[test]
fn a_span_starts_with_its_instance_and_is_cut_at_midnight_and_where_its_phase_changes() {
    let launched = time("2026-11-29T23:50:00Z");
    let mut recorder = new(launched);
    let mut ledger = Ledger::default();
    recorder.observe([instance("a", Some(1_000_000), launched)], [], after(launched, 1));
    ledger.write(&mut recorder);
    let ready = reached(instance("a", Some(1_000_000), launched), after(launched, 5), Phase::Ready);
    recorder.observe([ready.clone()], [], after(launched, 7));
    recorder.observe([ready], [], after(launched, 20));
    recorder.observe([], [], after(launched, 21));
    ledger.write(&mut recorder);
    let expected = [
        "2026-11-29T23:50:00Z..2026-11-29T23:55:00Z",
        "2026-11-29T23:55:00Z..2026-11-30T00:00:00Z",
        "2026-11-30T00:00:00Z..2026-11-30T00:11:00Z",
    ];
    assert_eq!(ledger.times(), expected);
    let continued: Vec<bool> = ledger.spans().values().filter_map(|row| Some(span(row)?.continued)).collect();
    assert_eq!(continued, [false, true, true]);
}

#[test]
fn a_thing_that_is_seen_late_counts_from_its_start_but_not_from_before_the_ledger() {
    let now = time("2026-11-30T08:00:00Z");
    let mut ledger = Ledger::default();
    let mut recorder = new(now);
    recorder.observe([instance("old", Some(60), time("2026-11-01T00:00:00Z"))], [], now);
    let late = instance("new", Some(60), after(now, -30));
    recorder.observe([instance("old", Some(60), time("2026-11-01T00:00:00Z")), late], [], now);
    ledger.write(&mut recorder);
    assert_eq!(ledger.times(), ["2026-11-30T07:30:00Z..", "2026-11-30T00:00:00Z.."]);
}

#[test]
fn the_order_of_sightings_and_repetitions_change_nothing() {
    let now = time("2026-11-30T08:00:00Z");
    let (a, b) = (instance("a", Some(60), now), pod("b", "a", 500, Some(now)));
    let record = |looks: [Vec<Sighting>; 2]| {
        let (mut ledger, mut recorder) = (Ledger::default(), new(now));
        for (minutes, look) in (0..).zip(looks) {
            recorder.observe(look, [], after(now, minutes));
            ledger.write(&mut recorder);
        }
        ledger.0
    };
    let one = record([vec![a.clone(), b.clone()], vec![a.clone(), b.clone()]]);
    let other = record([vec![b.clone(), a.clone(), b.clone()], vec![b, a.clone(), a]]);
    assert_eq!(one, other);
}

#[test]
fn rows_that_are_read_twice_or_in_another_order_change_nothing() {
    let now = time("2026-11-30T08:00:00Z");
    let (mut ledger, mut recorder) = (Ledger::default(), new(now));
    for minutes in 0..5 {
        let price = Some(60 * if minutes < 2 { 1 } else { 2 });
        recorder.observe([instance("a", price, now)], [], after(now, minutes));
        ledger.write(&mut recorder);
    }
    let money = ledger.money();
    ledger.0.extend(ledger.0.clone());
    ledger.0.reverse();
    assert_eq!(ledger.money(), money);
}

#[test]
fn a_thing_that_is_missing_for_a_look_is_paid_for_once_and_without_a_gap() {
    let now = time("2026-11-30T08:00:00Z");
    let (mut ledger, mut recorder) = (Ledger::default(), new(now));
    for (minutes, is_seen) in [(0, true), (1, true), (2, false), (3, true), (10, true)] {
        recorder.observe(is_seen.then(|| instance("a", Some(7), now)), [], after(now, minutes));
        ledger.write(&mut recorder);
    }
    assert_eq!(ledger.money(), 7 * 10 * MINUTE);
}

#[test]
fn time_stands_still_while_the_clock_is_behind() {
    let now = time("2026-11-30T08:00:00Z");
    let (mut ledger, mut recorder) = (Ledger::default(), new(now));
    for minutes in [0, 10, 4, 9, 12] {
        recorder.observe([instance("a", Some(7), now)], [], after(now, minutes));
        ledger.write(&mut recorder);
    }
    assert_eq!(ledger.money(), 7 * 12 * MINUTE);
}

#[test]
fn a_pod_without_a_start_counts_from_the_first_look_and_moves_with_its_instance() {
    let now = time("2026-11-30T08:00:00Z");
    let (mut ledger, mut recorder) = (Ledger::default(), new(now));
    recorder.observe([pod("p", "node", 142, None)], [], now);
    recorder.observe([pod("p", "node", 142, Some(after(now, 1)))], [], after(now, 2));
    // Its node turns out to have a claim.
    recorder.observe([pod("p", "claim", 142, None)], [], after(now, 3));
    recorder.observe([], [], after(now, 4));
    ledger.write(&mut recorder);
    assert_eq!(ledger.held(), 142 * 4 * MINUTE);
    assert_eq!(ledger.spans().len(), 2);
}

#[test]
fn a_node_that_turns_out_to_have_a_claim_is_paid_for_once() {
    let now = time("2026-11-30T08:00:00Z");
    let (mut ledger, mut recorder) = (Ledger::default(), new(now));
    let node = |uid: &str, launched| {
        let mut seen = instance(uid, Some(7), launched);
        let Thing::Instance(row) = &mut seen.thing else { panic!("an instance") };
        row.node = Some("n".into());
        seen
    };
    recorder.observe([node("node", after(now, 1))], [], after(now, 2));
    ledger.write(&mut recorder);
    recorder.observe([node("claim", now)], [(Key::Instance("node".into()), now)], after(now, 3));
    ledger.write(&mut recorder);
    assert_eq!(ledger.money(), 7 * 3 * MINUTE);
    // Somebody deletes the claim, and its node stays.
    recorder.observe([node("node-again", after(now, 1))], [], after(now, 5));
    recorder.observe([node("node-again", after(now, 1))], [], after(now, 6));
    ledger.write(&mut recorder);
    assert_eq!(ledger.money(), 7 * 6 * MINUTE);
}

#[test]
fn an_unknown_price_is_absent_and_one_that_cannot_be_read_now_stays() {
    let now = time("2026-11-30T08:00:00Z");
    let (mut ledger, mut recorder) = (Ledger::default(), new(now));
    recorder.observe([instance("a", None, now), instance("b", Some(7), now)], [], after(now, 1));
    let unread = Sighting { keeps_price: true, ..instance("b", None, now) };
    recorder.observe([instance("a", None, now), unread], [], after(now, 2));
    ledger.write(&mut recorder);
    assert_eq!(ledger.money(), 7 * 2 * MINUTE);
    assert_eq!(ledger.spans().len(), 2);
    assert!(!serde_json::to_string(ledger.spans().values().next().unwrap()).unwrap().contains("priceMicros"));
}

#[test]
fn what_ended_while_nobody_led_ends_at_the_last_sign_of_life_and_says_that_this_is_a_guess() {
    let now = time("2026-11-30T08:00:00Z");
    let (mut ledger, mut recorder) = (Ledger::default(), new(now));
    recorder.observe([instance("a", Some(7), now), pod("p", "a", 500, Some(now))], [], after(now, 3));
    ledger.write(&mut recorder);
    let mut next = ledger.resumed(after(now, 90));
    next.observe([instance("a", Some(7), now)], [], after(now, 90));
    ledger.write(&mut next);
    assert_eq!(ledger.money(), 7 * 90 * MINUTE, "it still runs");
    assert_eq!(ledger.held(), 500 * 3 * MINUTE);
    let guessed = ledger.spans().values().filter(|row| span(row).is_some_and(|span| span.estimated)).count();
    assert_eq!(guessed, 1);
}

#[test]
fn a_span_whose_end_was_never_written_ends_where_the_next_one_begins() {
    let now = time("2026-11-30T08:00:00Z");
    let (mut ledger, mut recorder) = (Ledger::default(), new(now));
    recorder.observe([instance("a", Some(7), now)], [], now);
    ledger.write(&mut recorder);
    recorder.observe([instance("a", Some(9), now)], [], after(now, 1));
    // Only the second half of the rows got through.
    let second = recorder.batch("me").rows.split_off(1);
    ledger.0.extend(second);
    let mut next = ledger.resumed(after(now, 2));
    next.observe([instance("a", Some(9), now)], [], after(now, 2));
    ledger.write(&mut next);
    assert_eq!(ledger.money(), (7 + 9) * MINUTE);
}

#[test]
fn rows_beyond_the_bound_are_counted_and_the_newest_are_kept() {
    let now = time("2026-11-30T08:00:00Z");
    let mut recorder = Recorder::new(CLUSTER.into(), Resume::new(CLUSTER), 3, now);
    for number in 0..5 {
        recorder.observe([pod(&format!("p{number}"), "a", 1, Some(now))], [], after(now, number));
    }
    // The last pod still runs; of the four others, the first is lost.
    assert_eq!((recorder.waiting(), recorder.take_lost(), recorder.take_lost()), (4, 1, 0));
    let batch = recorder.batch("me");
    let names: Vec<&str> = batch.rows.iter().filter_map(|row| span(row)?.id.split('/').next()).collect();
    assert_eq!(names, ["p1", "p2", "p3", "p4"]);
}

#[test]
fn many_rows_that_have_waited_are_written_bit_by_bit_and_the_sign_of_life_comes_last() {
    let now = time("2026-11-30T08:00:00Z");
    let (mut ledger, mut recorder) = (Ledger::default(), new(now));
    let pods = (0..10_001).map(|number| pod(&format!("p{number}"), "a", 1, Some(now)));
    recorder.observe(pods, [], now);
    recorder.observe([], [], after(now, 1));
    ledger.write(&mut recorder);
    let alive = |ledger: &Ledger| ledger.0.iter().filter(|row| span(row).is_none()).count();
    assert_eq!((ledger.0.len(), alive(&ledger), recorder.waiting()), (10_000, 0, 1));
    ledger.write(&mut recorder);
    assert_eq!((ledger.0.len(), alive(&ledger), recorder.waiting()), (10_002, 1, 0));
}

#[test]
fn the_spans_of_a_large_cluster_are_written_bit_by_bit() {
    let now = time("2026-11-30T08:00:00Z");
    let (mut ledger, mut recorder) = (Ledger::default(), new(now));
    let pods = (0..10_001).map(|number| pod(&format!("p{number}"), "a", 1, Some(now)));
    recorder.observe(pods, [], now);
    ledger.write(&mut recorder);
    assert_eq!((ledger.0.len(), recorder.waiting()), (10_000, 1));
    ledger.write(&mut recorder);
    assert_eq!((ledger.0.len(), ledger.spans().len(), recorder.waiting()), (10_002, 10_001, 0));
}

#[test]
fn a_row_replaces_those_of_a_leader_whose_clock_was_far_ahead() {
    let now = time("2026-11-30T08:00:00Z");
    let (mut ledger, mut recorder) = (Ledger::default(), new(now));
    recorder.observe([instance("a", Some(7), now)], [], after(now, 60));
    ledger.write(&mut recorder);
    let mut next = ledger.resumed(after(now, 2));
    next.observe([], [], after(now, 3));
    ledger.write(&mut next);
    // It believes the other clock for five minutes, but not for an hour.
    assert_eq!(ledger.money(), 7 * 7 * MINUTE);
}

#[test]
fn what_ended_before_the_ledger_could_be_read_is_in_it_to_the_minute() {
    let now = time("2026-11-30T08:00:00Z");
    let (mut ledger, mut recorder) = (Ledger::default(), new(now));
    let a = || instance("a", Some(7), now);
    recorder.observe([a(), pod("p", "a", 500, Some(now))], [], after(now, 1));
    ledger.write(&mut recorder);
    // The next leader does not know that the ledger has `a`.
    let mut meanwhile = new(after(now, 10));
    meanwhile.observe([a(), pod("q", "a", 500, Some(after(now, 10)))], [], after(now, 10));
    meanwhile.observe([a()], [], after(now, 11));
    meanwhile.observe([], [], after(now, 12));
    let mut next = ledger.resumed(after(now, 20));
    next.adopt(meanwhile);
    next.observe([], [], after(now, 20));
    ledger.write(&mut next);
    assert_eq!(ledger.money(), 7 * 12 * MINUTE);
    assert_eq!(ledger.held(), 500 * (1 + 1) * MINUTE, "nobody saw the end of `p`");
}

#[test]
fn what_an_old_leader_did_not_write_does_not_end_what_the_next_one_saw() {
    let now = time("2026-11-30T08:00:00Z");
    let (mut ledger, mut recorder) = (Ledger::default(), new(now));
    let p = || pod("p", "a", 500, Some(now));
    recorder.observe([p()], [], now);
    ledger.write(&mut recorder);
    // It lost the Lease before it wrote this, which was wrong.
    recorder.observe([], [], after(now, 1));
    let mut next = ledger.resumed(after(now, 2));
    next.observe([p()], [], after(now, 30));
    ledger.write(&mut next);
    let mut again = ledger.resumed(after(now, 31));
    again.adopt(recorder);
    again.observe([p()], [], after(now, 40));
    ledger.write(&mut again);
    assert_eq!(ledger.held(), 500 * 40 * MINUTE);
}

#[test]
fn the_last_writer_is_known_only_if_no_other_was_alive_as_late() {
    let now = time("2026-11-30T08:00:00Z");
    let (mut ledger, mut recorder) = (Ledger::default(), new(now));
    recorder.observe([], [], now);
    ledger.write(&mut recorder);
    let is_last = |rows: &[Row]| {
        let mut resume = Resume::new(CLUSTER);
        for row in rows {
            resume.add(row.clone());
        }
        (resume.is_last("me"), resume.is_last("another"))
    };
    assert_eq!(is_last(&ledger.0), (true, false));
    ledger.0.extend(recorder.batch("another").rows);
    assert_eq!(is_last(&ledger.0), (false, false));
}

#[test]
fn a_node_whose_name_was_used_before_is_paid_for_once_by_the_next_leader_too() {
    let now = time("2026-11-30T08:00:00Z");
    let (mut ledger, mut recorder) = (Ledger::default(), new(now));
    let node = |uid: &str, launched| {
        let mut seen = instance(uid, Some(7), launched);
        let Thing::Instance(row) = &mut seen.thing else { panic!("an instance") };
        row.node = Some("n".into());
        seen
    };
    recorder.observe([node("z", now)], [], after(now, 10));
    recorder.observe([], [], after(now, 11));
    recorder.observe([node("a", after(now, 20))], [], after(now, 21));
    recorder.observe([], [], after(now, 22));
    ledger.write(&mut recorder);
    assert_eq!(ledger.money(), 7 * (11 + 2) * MINUTE);
    // The claim of `a` is gone, and its node stays.
    let mut next = ledger.resumed(after(now, 23));
    next.observe([node("node", after(now, 20))], [], after(now, 24));
    ledger.write(&mut next);
    assert_eq!(ledger.money(), 7 * (11 + 4) * MINUTE);
}

#[test]
fn rows_of_other_clusters_do_not_count() {
    let now = time("2026-11-30T08:00:00Z");
    let (mut ledger, mut recorder) = (Ledger::default(), new(now));
    recorder.observe([instance("a", Some(7), now)], [], now);
    ledger.write(&mut recorder);
    let mut resume = Resume::new("another");
    for row in &ledger.0 {
        resume.add(row.clone());
    }
    assert_eq!((resume.alive(), resume.seen(), resume.last_spans().count()), (None, None, 0));
}

proptest! {
    #[test]
    fn money_is_price_times_time_however_often_one_looks_and_whoever_leads(
        looks in prop::collection::vec((1_i64..=400, any::<bool>(), 1_u64..4), 1..30),
    ) {
        let launched = time("2026-11-29T22:10:00.250Z");
        let (mut ledger, mut recorder) = (Ledger::default(), new(launched));
        let (mut now, mut price, mut expected) = (launched, 1, 0);
        recorder.observe([instance("a", Some(price), launched)], [], now);
        ledger.write(&mut recorder);
        for (minutes, restarts, next) in looks {
            now = after(now, minutes);
            expected += u128::from(price) * u128::from(minutes.unsigned_abs()) * MINUTE;
            price = next;
            if restarts {
                recorder = ledger.resumed(now);
            }
            let seen = reached(instance("a", Some(price), launched), after(launched, 100), Phase::Ready);
            recorder.observe([if now < after(launched, 100) { instance("a", Some(price), launched) } else { seen }], [], now);
            ledger.write(&mut recorder);
        }
        prop_assert_eq!(ledger.money(), expected);
    }

    #[test]
    fn a_crash_loses_at_most_what_happened_since_the_last_batch(
        crash in 1_i64..30, gone in 1_i64..30, starts in 0_i64..30,
    ) {
        // A pod starts and ends, and a leader that writes each minute crashes at some time and comes back at once.
        let begun = time("2026-11-29T23:45:00Z");
        let (mut ledger, mut recorder) = (Ledger::default(), new(begun));
        let ends = starts + gone;
        for minute in 0..70 {
            let now = after(begun, minute);
            if minute == crash {
                recorder = ledger.resumed(now);
            }
            let runs = (starts..ends).contains(&minute);
            recorder.observe(runs.then(|| pod("p", "a", 1000, Some(after(begun, starts)))), [], now);
            // What is seen in the minute of the crash is not written.
            if minute + 1 != crash {
                ledger.write(&mut recorder);
            }
        }
        let exact = u128::from(gone.unsigned_abs()) * 1000 * MINUTE;
        let lost = exact.abs_diff(ledger.held());
        prop_assert!(lost <= 2 * 1000 * MINUTE, "{lost} of {exact}");
    }
}
