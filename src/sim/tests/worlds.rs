//! Plays worlds from seeds. Tests that equal seeds have equal results, that the rules hold under faults, and that the rules find
//! the bugs they are made for.

use std::num::NonZeroUsize;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, Ordering};

use poolwright_sim::accidents::Rates;
use poolwright_sim::run::{Outcome, Sabotage, Setup, run};
use poolwright_sim::search::{Report, Search};

/// The allocator of the command: simulations allocate and free many small objects.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The number of seeds; `SEEDS` changes it. `make test` plays twenty others with `poolwright debug fuzz`, and `make soak` two
/// thousand.
const SEEDS: u64 = 4;
/// The first of these seeds.
const FROM: u64 = 101;

fn setup(seed: u64, rates: Rates) -> Setup {
    Setup { seed, rates, only: None, keep_record: true, sabotage: None }
}

fn play(seed: u64, rates: Rates) -> Outcome {
    run(&setup(seed, rates)).expect("a runtime")
}

fn search(from: u64, seeds: u64, rates: Rates, sabotage: Option<Sabotage>) -> Report {
    let threads = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    let search = Search { from, seeds, rates, only: None, threads, sabotage };
    // The search for the faults that a bug needs plays hundreds of worlds, and one test looks at its result.
    let stop = AtomicBool::new(false);
    let is_reduced = matches!(sabotage, None | Some(Sabotage::KeysChange));
    let tell = |report: &Report| {
        if report.broken.is_some() && !is_reduced {
            stop.store(true, Ordering::Relaxed);
        }
    };
    search.run(&stop, &tell).expect("runtimes")
}

/// Fails with the report if a rule was broken. `again` makes the command that plays the world of a seed again.
fn assert_unbroken(report: &Report, again: fn(u64) -> String) {
    if let Some(found) = &report.found {
        let outcome = &found.outcome;
        let last = &outcome.record.lines[outcome.record.lines.len().saturating_sub(40)..];
        let needed: Vec<String> = outcome.accidents.iter().map(ToString::to_string).collect();
        panic!(
            "seed {}: {}\naccidents needed: {}\n{}\nagain: {}",
            outcome.seed,
            outcome.violation.as_ref().map(ToString::to_string).unwrap_or_default(),
            needed.join(","),
            last.join("\n"),
            again(outcome.seed)
        );
    }
}

/// Returns the number in this environment variable, if it is set.
fn given(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok().filter(|text| !text.is_empty())?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is not a number: {text}")))
}

#[test]
fn many_bad_days_break_no_rule() {
    let seeds = given("SEEDS").unwrap_or(SEEDS);
    let report = search(FROM, seeds, Rates::USUAL, None);
    assert_unbroken(&report, |seed| format!("poolwright debug fuzz --from {seed} --seeds 1"));
    let Report { accidents, retired, simulated, .. } = report;
    println!("{seeds} worlds, {accidents} accidents, {retired} nodes retired, {simulated:?} in them");
    assert_eq!(report.seeds, seeds);
    assert!(
        report.accidents > seeds * 50,
        "{} accidents in {seeds} worlds are no bad days",
        report.accidents
    );
    assert!(report.retired * 4 > seeds, "only {retired} nodes retired in {seeds} worlds");
}

#[test]
fn the_same_seed_writes_the_same_record_byte_for_byte() {
    for seed in [7, 8] {
        let first = play(seed, Rates::USUAL);
        // Another thread has another random state.
        let second = std::thread::spawn(move || play(seed, Rates::USUAL)).join().expect("no panic");
        for (line, (one, other)) in first.record.lines.iter().zip(&second.record.lines).enumerate() {
            assert_eq!(one, other, "seed {seed}, line {line}");
        }
        assert_eq!(first.record, second.record, "seed {seed}");
        assert_eq!(first.accidents, second.accidents, "seed {seed}");
        assert!(first.record.count > 50, "seed {seed} has only {} lines", first.record.count);
    }
    assert_ne!(play(7, Rates::USUAL).record.digest, play(8, Rates::USUAL).record.digest);
}

#[test]
fn on_a_good_day_all_work_gets_done_and_nothing_is_left() {
    for seed in 1..=3 {
        let outcome = play(seed, Rates::NONE);
        assert_eq!(outcome.violation, None, "seed {seed}");
        assert_eq!((outcome.accidents.len(), outcome.tally.lost), (0, 0), "seed {seed}");
        assert!(outcome.tally.finished > 0 && outcome.tally.joined > 0, "seed {seed}: {:?}", outcome.tally);
    }
}

/// Days with few kinds of faults, which happen often. `make soak` plays 300 worlds of each.
mod frequent_faults {
    use super::*;

    /// Plays this number of worlds from the first seed on, and fails if a rule is broken. `SEEDS` and `SEED` change both.
    fn worlds(seeds: u64, rates: Rates) -> Report {
        let (from, seeds) = (given("SEED").unwrap_or(1), given("SEEDS").unwrap_or(seeds));
        let report = search(from, seeds, rates, None);
        assert_unbroken(&report, |seed| {
            format!("SEED={seed} SEEDS=1 cargo test -p poolwright-sim --test worlds frequent_faults::")
        });
        let Report { accidents, simulated, .. } = report;
        println!("{seeds} worlds from seed {from}, {accidents} accidents, {simulated:?} in them");
        assert_eq!(report.seeds, seeds);
        report
    }

    #[test]
    fn requests_that_are_never_answered_hold_nothing_up_for_ever() {
        let rates = Rates { swallowed: 100, cloud_swallowed: 100, ..Rates::NONE };
        let report = worlds(3, rates);
        assert!(report.accidents > 17 * report.seeds, "{} accidents", report.accidents);
    }

    #[test]
    fn controllers_recover_after_network_partitions() {
        worlds(2, Rates { lost: 50, swallowed: 20, watch_ends: 50, events_per_hour: 60, ..Rates::NONE });
    }

    #[test]
    fn machines_that_are_taken_back_all_the_time_leave_nothing_undone() {
        let rates =
            Rates { interrupted: 500, slow: 30, refused: 15, conflict: 15, answer_lost: 15, ..Rates::NONE };
        worlds(3, rates);
    }
}

/// Returns the rule that this bug breaks within this many worlds.
/// `from` is a world shortly before the first that shows it.
fn broken_by(sabotage: Sabotage, (from, seeds): (u64, u64)) -> (&'static str, Report) {
    let report = search(from, seeds, Rates::USUAL, Some(sabotage));
    let found =
        report.found.as_ref().unwrap_or_else(|| panic!("{sabotage:?} is not found within {seeds} worlds"));
    println!("{sabotage:?} is found in world {} of {}", found.outcome.seed, report.seeds);
    let violation =
        found.outcome.violation.as_ref().expect("it is still broken with the accidents that are needed");
    (violation.rule, report)
}

#[test]
fn a_controller_that_orders_under_another_key_each_time_is_found_to_buy_twice() {
    let (rule, report) = broken_by(Sabotage::KeysChange, (1, 200));
    assert_eq!(rule, "no claim ever has two instances");
    let found = report.found.expect("it was found");
    assert!(found.outcome.accidents.len() <= 5, "{:?} are needed", found.outcome.accidents);
    assert!(found.accidents_before > found.outcome.accidents.len());
}

#[test]
fn claims_without_a_finalizer_are_found_to_be_gone_before_their_instances() {
    let (rule, _) = broken_by(Sabotage::FinalizersVanish, (1, 50));
    assert_eq!(rule, "no claim is gone while its instance is there");
}

#[test]
fn a_replica_that_takes_a_refused_lease_for_its_own_is_found_to_write_beside_the_leader() {
    let (rule, _) = broken_by(Sabotage::LeaseConflictsSwallowed, (1, 200));
    assert_eq!(rule, "nothing is written while another process holds the Lease");
}

#[test]
fn a_replica_whose_calls_of_the_cloud_go_on_after_it_led_is_found_to_act_beside_the_leader() {
    let (rule, report) = broken_by(Sabotage::CloudCallsGoOn, (1, 200));
    assert_eq!(rule, "nothing is written while another process holds the Lease");
    let violation = report.found.and_then(|found| found.outcome.violation).expect("it was found");
    let calls = ["POST launch ", "POST terminate ", "POST acknowledge "];
    assert!(calls.iter().any(|call| violation.seen.starts_with(call)), "{}", violation.seen);
}

#[test]
fn an_instance_that_cannot_be_terminated_is_reported_as_leaked() {
    let rule = broken_without_accidents(Sabotage::NothingTerminates, 1..=5);
    assert_eq!(rule, "after the last fault, all work completes and then nothing is left");
}

/// Returns the rule that this bug breaks without faults, in one of these worlds.
fn broken_without_accidents(sabotage: Sabotage, mut worlds: RangeInclusive<u64>) -> &'static str {
    let broken = |seed| {
        let setup = Setup { sabotage: Some(sabotage), keep_record: false, ..setup(seed, Rates::NONE) };
        run(&setup).expect("a runtime").violation
    };
    worlds.find_map(broken).unwrap_or_else(|| panic!("{sabotage:?} is not found")).rule
}

#[test]
fn a_controller_that_orders_nothing_is_found_to_let_work_wait() {
    let rule = broken_without_accidents(Sabotage::NothingIsOrdered, 2..=9);
    assert!(rule.starts_with("no pod for which a node can be bought waits"), "{rule}");
}

#[test]
fn nodes_that_are_given_back_before_their_pods_come_are_found_to_be_bought_again_and_again() {
    let rule = broken_without_accidents(Sabotage::GivesBackAtOnce, 1..=10);
    assert!(rule.starts_with("in each hour, at most this many instances are launched for a Job"), "{rule}");
}

#[test]
fn claims_without_a_reason_are_found() {
    assert_eq!(
        broken_without_accidents(Sabotage::ReasonsMissing, 1..=5),
        "every claim records why it was bought"
    );
}

#[test]
fn pods_without_an_explanation_are_reported() {
    let rule = broken_without_accidents(Sabotage::NothingIsSaid, 1..=20);
    assert!(rule.starts_with("a pod that waits longer than ten minutes"), "{rule}");
}

#[test]
fn a_controller_that_sees_no_selectors_and_no_gates_is_found_to_buy_in_vain() {
    let rule = broken_without_accidents(Sabotage::SelectorsUnseen, 7..=30);
    assert!(rule.starts_with("no node is bought without pods, for a gated pod"), "{rule}");
}

#[test]
fn nodes_that_are_drained_before_there_is_room_elsewhere_are_found() {
    let (rule, _) = broken_by(Sabotage::RoomNotAwaited, (26, 200));
    assert!(rule.starts_with("no healthy node is drained before each of its pods had room"), "{rule}");
}

#[test]
fn nodes_without_work_that_are_not_given_back_are_found() {
    // In the first world, their pool's limit keeps work waiting while these nodes exist.
    let report = search(2, 1, Rates::NONE, Some(Sabotage::NothingIsGivenBack));
    let rule = report.found.and_then(|found| found.outcome.violation).expect("it is found").rule;
    assert!(rule.starts_with("an empty node is terminated within 30 minutes"), "{rule}");
}

#[test]
fn a_controller_that_forgets_what_the_cloud_said_is_found() {
    let rates = Rates { interrupted: 500, ..Rates::NONE };
    let report = search(1, 30, rates, Some(Sabotage::NoticesForgotten));
    let found = report.found.expect("machines are taken back in some of these worlds");
    let rule = found.outcome.violation.expect("it is broken again").rule;
    assert!(rule.starts_with("an interruption is recorded on its NodeClaim"), "{rule}");
}

#[test]
fn a_controller_that_lets_pods_end_with_their_machines_is_found() {
    let rates = Rates { interrupted: 500, ..Rates::NONE };
    // Nodes are also not emptied for other reasons, which other rules find.
    let rule = "every pod is evicted from an interrupted machine";
    assert_found(Sabotage::NobodyIsAsked, rates, 1..=40, rule);
}

/// Checks that this bug breaks, in one of these worlds, a rule that begins so. In other worlds, it may break other rules.
fn assert_found(sabotage: Sabotage, rates: Rates, mut worlds: RangeInclusive<u64>, rule: &str) {
    let breaks = |seed: &u64| {
        let setup = Setup { sabotage: Some(sabotage), keep_record: false, ..setup(*seed, rates) };
        let violation = run(&setup).expect("a runtime").violation;
        violation.is_some_and(|violation| violation.rule.starts_with(rule))
    };
    let found = worlds.find(breaks);
    println!("{sabotage:?} is found in world {found:?}");
    assert!(found.is_some(), "{sabotage:?} is not found");
}

#[test]
fn a_controller_that_believes_a_listing_without_its_instances_is_found_to_give_them_up() {
    // Two listings in a row must lack the instance before any node is ready.
    let rates = Rates { empty_listing: 700, never_joins: 300, ..Rates::NONE };
    let rule = "no claim is deleted because its instance is gone while that instance runs";
    assert_found(Sabotage::ListingsBelieved, rates, 1..=20, rule);
}

#[test]
fn a_controller_that_goes_on_in_the_wrong_account_is_found() {
    let rates = Rates { wrong_account: 40, ..Rates::NONE };
    let rule = "while a cloud shows another account";
    assert_found(Sabotage::DoubtsIgnored, rates, 1..=3, rule);
}

#[test]
fn a_controller_that_goes_on_without_one_of_its_loops_is_found() {
    let rates = Rates { cloud_panics: 200, ..Rates::NONE };
    let rule = "15 minutes after a panic in a controller, all its loops";
    assert_found(Sabotage::PanicsUnnoticed, rates, 1..=5, rule);
}

#[test]
fn a_controller_that_replaces_unhealthy_nodes_of_a_pool_all_at_once_is_found() {
    let rates = Rates { freezes: 1_000, ..Rates::NONE };
    let rule = "no unhealthy node is replaced while more than a fifth";
    assert_found(Sabotage::BreakerIgnored, rates, 1..=3, rule);
}

#[test]
fn a_controller_that_keeps_no_room_free_is_found() {
    assert_found(Sabotage::BuffersUnseen, Rates::NONE, 4..=6, "the room that a pool keeps free");
}

#[test]
fn a_controller_that_believes_the_latest_of_two_deadlines_is_found() {
    let rates = Rates { interrupted: 1_000, ..Rates::NONE };
    let rule = "an interruption is recorded on its NodeClaim, with the earliest deadline";
    assert_found(Sabotage::LatestDeadlineKept, rates, 2..=4, rule);
}

#[test]
fn a_controller_that_buys_beyond_the_limits_of_a_pool_is_found() {
    assert_found(Sabotage::LimitsUnseen, Rates::NONE, 1..=3, "the claims of a pool never exceed its limits");
}

#[test]
fn a_controller_that_lets_no_pod_onto_closed_nodes_is_found() {
    let sabotage = Some(Sabotage::NobodyIsLetIn);
    let outcome = run(&Setup { sabotage, ..setup(7, Rates::NONE) }).expect("a runtime");
    let rule = outcome.violation.expect("it is found").rule;
    assert!(rule.starts_with("no pod waits longer than 12 minutes"), "{rule}");
}

#[test]
fn a_controller_that_takes_a_terminating_instance_for_gone_is_found() {
    // A ready node is evidence that its instance still runs, so only claims whose nodes never join show it.
    let rates = Rates { never_joins: 500, ..Rates::NONE };
    assert_found(Sabotage::EndsNotAwaited, rates, 1..=5, "no claim is gone while its instance is there");
}

#[test]
fn a_controller_that_terminates_instances_with_attached_volumes_is_found() {
    let (rule, _) = broken_by(Sabotage::AttachmentsUnseen, (1, 200));
    assert!(rule.starts_with("no instance is terminated while a volume that its pods have left"), "{rule}");
}

#[test]
fn a_controller_that_moves_pods_to_dearer_nodes_is_found() {
    let rule = broken_without_accidents(Sabotage::PricesMisread, 1..=60);
    assert!(rule.starts_with("nodes that are emptied to save money cost more"), "{rule}");
}

#[test]
fn a_controller_that_ignores_a_budget_for_empty_nodes_is_found() {
    let rule = broken_without_accidents(Sabotage::EmptyBudgetsUnseen, 1..=60);
    assert!(rule.starts_with("no more healthy nodes are disrupted at a time"), "{rule}");
}

#[test]
fn a_pool_without_the_nodes_that_it_wants_is_found() {
    let rule = broken_without_accidents(Sabotage::ReplicasUnseen, 1..=20);
    assert!(rule.starts_with("a pool with replicas has that many claims"), "{rule}");
}

#[test]
fn a_controller_that_buys_nodes_for_a_part_of_a_gang_is_found() {
    // In world 1, the work that is never done breaks another rule.
    let rule = broken_without_accidents(Sabotage::GangsUnseen, 45..=80);
    assert!(rule.starts_with("nodes are bought for a gang only if enough of its pods"), "{rule}");
}

#[test]
fn a_controller_that_leaves_the_cloud_no_choice_is_found() {
    let rule = broken_without_accidents(Sabotage::ChoiceUnseen, 1..=60);
    assert!(rule.starts_with("each launch lets the cloud choose"), "{rule}");
}

#[test]
fn a_controller_that_pays_for_nodes_beside_a_free_reservation_is_found() {
    let rule = broken_without_accidents(Sabotage::ReservationUnseen, 22..=120);
    assert!(rule.starts_with("no node is paid for if its only pod"), "{rule}");
}

#[test]
fn a_controller_that_sets_no_pod_aside_is_found() {
    let rule = broken_without_accidents(Sabotage::NothingIsSetAside, 16..=60);
    assert!(rule.starts_with("plans fail for a pod only until it is set aside"), "{rule}");
}

#[test]
fn a_pod_with_which_plans_fail_keeps_no_other_pod_from_its_node() {
    // A Job in each of these worlds makes plans panic, or the independent check refuse them.
    for seed in [16, 17, 23, 35] {
        let outcome = play(seed, Rates::NONE);
        assert_eq!(outcome.violation, None, "seed {seed}");
        let lines = &outcome.record.lines;
        let poison =
            |line: &&String| line.contains("Job panics arrives") || line.contains("Job refused arrives");
        assert!(lines.iter().any(|line| poison(&line)), "seed {seed} has no such Job");
        assert!(outcome.tally.finished > 0, "seed {seed}: {:?}", outcome.tally);
    }
}
