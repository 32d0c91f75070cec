//! Tests of whole replays of a small trace, with access to the internals.

use std::time::Duration;

use clap::Parser;
use poolwright_report::money::Usd;
use poolwright_report::replay::{Cause, End, History, Machine, Report, bounds_over_time};

use super::{Prepared, daemonsets, prepare, prepare_with};
use crate::args::{Cli, Command, ReplayFlags};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

fn prepared(more: &[&str]) -> Prepared {
    prepared_for(&format!("{ROOT}/fixtures/traces/two-hours.csv"), more)
}

fn prepared_for(trace: &str, more: &[&str]) -> Prepared {
    prepare(&flags_for(trace, more)).unwrap_or_else(|failure| panic!("{failure:?}"))
}

fn flags_for(trace: &str, more: &[&str]) -> ReplayFlags {
    let pools = format!("{ROOT}/fixtures/manifests/pool.yaml");
    let fixed = ["poolwright", "simulate", "--trace", trace, "--pools", &pools, "--for", "3h"];
    let cli = Cli::try_parse_from(fixed.iter().chain(more)).expect("flags");
    let Command::Simulate(flags) = cli.command else { panic!("it is simulate") };
    flags.replay
}

fn played(prepared: &Prepared) -> (History, Report) {
    let history = prepared.replay.run(&mut |_| true).expect("it is played");
    let bounds =
        bounds_over_time(&history, &prepared.pools.models, &prepared.daemonsets, &prepared.pools.sold);
    let report = Report::new(&history, bounds, prepared.replay.length, Vec::new());
    (history, report)
}

#[test]
fn all_work_gets_done_and_the_cost_is_never_below_its_limit() {
    let prepared = prepared(&[]);
    let (history, report) = played(&prepared);
    assert_eq!((report.pods.made, report.pods.finished), (8, 8), "{:?}", report.pods);
    assert!(history.pods.iter().all(|pod| matches!(pod.ended, Some((_, End::Finished)))));
    // A pod of the trace that waited for ten minutes ran for twenty, so it runs for twenty here.
    let waited =
        history.pods.iter().find(|pod| pod.model.key.name().starts_with("batch-1")).expect("it is there");
    let (started, ended) = (waited.started.expect("it ran"), waited.ended.expect("it ended").0);
    assert_eq!(ended.saturating_sub(started).as_secs(), 2705 - 1500);
    assert!(
        history.machines.iter().all(|machine| machine.opened.is_some() && !machine.bought_for.is_empty())
    );
    let parts: u128 = Cause::ALL.iter().map(|cause| report.gap.amount(*cause).0).sum();
    assert_eq!(report.bound.0 + parts, report.cost().0);
    let moments: Vec<Duration> = report.cost_steps.moments().chain(report.bound_steps.moments()).collect();
    for moment in moments {
        let (cost, limit) = (report.cost_steps.at(moment), report.bound_steps.at(moment));
        assert!(cost >= limit, "at {moment:?} {cost} is paid, and {limit} is said to be the least");
    }
    assert!(report.bound > Usd(0) && report.cost() >= report.bound, "{} and {}", report.cost(), report.bound);
    // The bound must not be loose: at its maximum it is at least half of the largest cost.
    let most = report.bound_steps.most(Duration::ZERO, report.played);
    assert!(most * 10 >= report.cost_steps.most(Duration::ZERO, report.played) * 5, "{most}");
    assert!(report.idle_gpu_millis() < report.paid_gpu_millis());
}

#[test]
fn the_same_input_comes_to_the_same_and_another_seed_to_something_else() {
    let one = prepared(&[]).replay;
    let first = one.run(&mut |_| true).expect("it is played");
    // Another thread has another random state for hash maps.
    let again = std::thread::spawn(move || one.run(&mut |_| true).expect("it is played"));
    assert_eq!(first, again.join().expect("no panic"));
    let other = prepared(&["--seed", "2"]).replay.run(&mut |_| true).expect("it is played");
    assert_ne!(first, other);
}

#[test]
fn the_demand_of_other_methods_is_looked_for_only_where_they_are_played() {
    let too_low = ["--policy", "limits[usdPerHour]=0.01"];
    let flags = flags_for(&format!("{ROOT}/fixtures/traces/two-hours.csv"), &too_low);
    let leaves_out = |prepared: &Prepared| prepared.notes.iter().any(|note| note.contains("the baselines"));
    assert!(leaves_out(&prepared(&too_low)));
    let alone = prepare_with(&flags, None, |_| Ok(())).expect("it can be played");
    assert!(!leaves_out(&alone) && !alone.arrivals.is_empty(), "{:?}", alone.notes);
}

#[test]
fn an_interrupted_replay_reports_and_charges_only_the_played_time() {
    let prepared = prepared(&[]);
    let whole = played(&prepared).1;
    let until = Duration::from_mins(40);
    let history = prepared.replay.run(&mut |now| now < until).expect("it is played");
    let bounds =
        bounds_over_time(&history, &prepared.pools.models, &prepared.daemonsets, &prepared.pools.sold);
    let report = Report::new(&history, bounds, prepared.replay.length, Vec::new());
    assert!(report.played >= until && report.played < prepared.replay.length);
    assert!(report.cost() > Usd(0) && report.cost() < whole.cost());
    assert!(report.bound <= report.cost());
    assert!(report.pods.finished < whole.pods.finished);
}

#[test]
fn a_policy_changes_what_it_costs() {
    let cost = |policy: &str| played(&prepared(&["--policy", policy])).1.cost();
    assert!(cost("scaleToZero.after=30m") > cost("scaleToZero.after=1m"));
}

#[test]
fn without_consolidation_nodes_without_work_stay_and_cost_more() {
    let cost = |choice: &str| played(&prepared(&["--consolidation", choice])).1.cost();
    assert!(cost("Never") > cost("WhenEmpty"));
}

#[test]
fn a_choice_for_the_cloud_can_be_asked_of_all_pools() {
    let choice = "node.kubernetes.io/instance-type=3";
    let prepared = prepared(&["--min-values", choice]);
    let note = format!("--min-values {choice}: counts instead of minValues of this label in the pools");
    assert!(prepared.notes.contains(&note), "{:?}", prepared.notes);
    let pools = &prepared.pools.models;
    assert!(pools.iter().all(|pool| pool.min_values["node.kubernetes.io/instance-type"] == 3), "{pools:?}");
    let (_, report) = played(&prepared);
    assert_eq!((report.pods.made, report.pods.finished), (8, 8), "{:?}", report.pods);
}

#[test]
fn a_service_moves_to_another_node_so_that_a_pod_gets_the_gpu_that_only_its_node_has() {
    // A pod that needs a V100 buys a node with eight. Services fill it, and then another pod needs a V100.
    let path = format!("{ROOT}/fixtures/traces/full-node.csv");
    // The flag counts instead of what the pool says.
    let with_policy = |policy: &str, of_pool: &str| {
        let of_pool = format!("disruption.consolidationPolicy={of_pool}");
        let flags = ["--services", "LS", "--policy", "disruption.retire=Never", "--policy", &of_pool];
        let flags: Vec<&str> = flags.into_iter().chain(["--consolidation", policy]).collect();
        let prepared = prepared_for(&path, &flags);
        let note = format!(
            "--consolidation {policy}: counts instead of disruption.consolidationPolicy of the pools"
        );
        assert!(prepared.notes.contains(&note), "{:?}", prepared.notes);
        let (history, report) = played(&prepared);
        let with_v100 = |machine: &&Machine| machine.offering.instance_type.to_string().starts_with("p3");
        (history.machines.iter().filter(with_v100).count(), report)
    };
    let (nodes, without) = with_policy("WhenEmpty", "WhenEmptyOrUnderutilized");
    assert_eq!((nodes, without.pods.evicted), (2, 0));
    let (nodes, with) = with_policy("WhenEmptyOrUnderutilized", "WhenEmpty");
    assert_eq!((nodes, with.pods.evicted), (1, 1), "{:?}", with.pods);
    assert!(with.cost() < without.cost(), "{} and {}", with.cost(), without.cost());
    assert_eq!(with.pods.finished, without.pods.finished);
}

/// A DaemonSet whose pods take 8 processors of each node.
fn agent() -> serde_json::Value {
    serde_json::json!({
        "apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "agent", "namespace": "kube-system"},
        "spec": {"selector": {"matchLabels": {"app": "agent"}}, "template": {
            "metadata": {"labels": {"app": "agent"}},
            "spec": {"containers": [{"name": "agent", "image": "agent", "resources": {"requests": {"cpu": "8"}}}]},
        }},
    })
}

#[test]
fn the_limit_counts_the_room_that_nodes_keep_for_daemonsets_and_stays_below_the_cost() {
    let mut prepared = prepared(&[]);
    prepared.replay.objects.push(agent());
    let without = played(&prepared).1;
    prepared.daemonsets = daemonsets(&[agent()]);
    let with = played(&prepared).1;
    assert_eq!(with.cost(), without.cost());
    assert!(with.bound > without.bound, "{} and {}", with.bound, without.bound);
    let parts: u128 = Cause::ALL.iter().map(|cause| with.gap.amount(*cause).0).sum();
    assert_eq!(with.bound.0 + parts, with.cost().0);
}

#[test]
fn a_replay_with_rules_on_spot_nodes_says_that_the_limit_ignores_them() {
    let told = |more: &[&str]| {
        let note = poolwright_report::replay::ignored_by_limit(&prepared(more).pools.models);
        note.is_some_and(|note| note.contains("ignores the rules on spot nodes"))
    };
    assert!(told(&["--on-demand-floor", "2"]));
    assert!(!told(&[]));
}

#[test]
fn simpler_methods_leave_room_for_daemonsets_too() {
    let mut prepared = prepared(&[]);
    let cost = |prepared: &Prepared| prepared.baselines(prepared.replay.length)[0].cost;
    let without = cost(&prepared);
    prepared.daemonsets = daemonsets(&[agent()]);
    assert_eq!(prepared.daemonsets.len(), 1);
    assert!(cost(&prepared) > without, "each node has 8 processors fewer for pods");
}

/// Returns a replay with a static pool of two nodes besides.
fn with_static_pool(name: &str, more: &[&str]) -> Prepared {
    let standing = format!("{ROOT}/fixtures/manifests/standing.yaml");
    let text = std::fs::read_to_string(standing).expect("the fixture");
    let objects: Vec<&str> = text.split("\n---\n").take(2).collect();
    let file = std::env::temp_dir().join(format!("poolwright-static-{}-{name}.yaml", std::process::id()));
    std::fs::write(&file, objects.join("\n---\n")).expect("a temporary file");
    let path = file.to_str().expect("UTF-8");
    let flags: Vec<&str> = ["--pools", path].iter().chain(more).copied().collect();
    let prepared = prepared(&flags);
    std::fs::remove_file(&file).expect("it is ours");
    prepared
}

#[test]
fn other_methods_pay_for_as_many_nodes_of_static_pools_as_the_controller_buys() {
    let bought = |prepared: &Prepared| {
        played(prepared).0.machines.iter().filter(|machine| machine.pool == "always").count()
    };
    let of_methods = |prepared: &Prepared| -> Vec<u128> {
        prepared.baselines(prepared.replay.length).iter().map(|one| one.cost.0).collect()
    };
    let alone = of_methods(&prepared(&[]));
    assert!(!alone.is_empty());
    // No pod fits such a node. It costs $0.8048 per hour, which is $2.4144 in three hours.
    for (limit, nodes) in [("100", 2), ("1", 1)] {
        let with = with_static_pool(limit, &["--default-usd-per-hour", limit]);
        assert_eq!(bought(&with), nodes);
        for (with, alone) in of_methods(&with).into_iter().zip(&alone) {
            // The other nodes start after other delays, so their cost differs a little.
            let difference = with.saturating_sub(*alone).abs_diff(nodes as u128 * 2_414_400);
            assert!(difference < 1_000_000, "{nodes} nodes: {with} instead of {alone}");
        }
    }
}

#[test]
fn what_other_methods_ignore_of_pools_that_grow_with_their_pods_is_named() {
    let told = |prepared: &Prepared| prepared.ignored.join("; ");
    let standing = format!("{ROOT}/fixtures/manifests/standing.yaml");
    let kinds = "node.kubernetes.io/instance-type=3";
    let flags = ["--pools", &standing, "--on-demand-floor", "1", "--min-values", kinds];
    assert_eq!(told(&prepared(&flags)), "rules on spot nodes, minValues, room kept free of the pools");
    let same = told(&with_static_pool("note", &[]));
    assert_eq!(same, "", "the limits and the nodes of static pools are the same");
}

const CILIUM: &str = "[{key: node.cilium.io/agent-not-ready, value: 'true', effect: NoExecute}]";

#[test]
fn nodes_with_startup_taints_and_readiness_gates_open_as_if_their_agents_ran_and_a_note_says_so() {
    let taints = format!("template.spec.startupTaints={CILIUM}");
    let gates = "template.spec.readinessGates=[{conditionType: example.com/NetworkReady}]";
    let prepared = prepared(&["--policy", &taints, "--policy", gates]);
    let note = prepared.notes.iter().find(|note| note.contains("startup taints")).expect("a note");
    assert!(note.contains("`node.cilium.io/agent-not-ready=true:NoExecute`"), "{note}");
    assert!(note.contains("example.com/NetworkReady"), "{note}");
    assert!(note.ends_with("; nodes of other methods wait as long") && prepared.delays().agents, "{note}");
    let (history, report) = played(&prepared);
    assert_eq!((report.pods.finished, report.node_starts()), (8, 8), "{:?}", report.pods);
    assert_eq!((history.in_vain, history.waiting), (vec![], vec![]));
}

#[test]
fn a_taint_that_no_pod_tolerates_is_named_and_the_waiting_pods_say_why_they_wait() {
    let prepared = prepared(&["--policy", &format!("template.spec.taints={CILIUM}")]);
    let note = prepared.notes.iter().find(|note| note.contains("no pod tolerates")).expect("a note");
    assert!(note.contains("`node.cilium.io/agent-not-ready=true:NoExecute`"), "{note}");
    assert!(note.contains("startupTaints"), "{note}");
    let (_, report) = played(&prepared);
    assert_eq!(report.node_starts(), 0);
    let [told] = &report.why_waiting[..] else { panic!("{:?}", report.why_waiting) };
    assert_eq!((told.reason.as_deref(), told.count), (Some("NoOfferingFits"), report.pods.waiting));
    assert!(told.example.contains("node.cilium.io/agent-not-ready"), "{}", told.example);
}

#[test]
fn a_limit_of_a_pool_or_a_policy_that_limits_nothing_is_named_with_the_resource_that_was_probably_meant() {
    let told = |more: &[&str]| prepared(more).notes.join("\n");
    let misspelt = told(&["--policy", "limits[nvidia.com/gpus]=56"]);
    let note =
        "no instance type has nvidia.com/gpus, so this limit limits nothing; did you mean nvidia.com/gpu?";
    assert!(misspelt.contains(note), "{misspelt}");
    let right = told(&["--policy", "limits[nvidia.com/gpu]=56"]);
    assert!(!right.contains("limits nothing"), "{right}");
}
