//! Poolwright's planner against the real kube-scheduler: Poolwright plans random small clusters, and the scheduler binds the
//! pods. `play.rs` has the properties, `generate/` the rules. `simulated.rs` and `evicted.rs` compare the simulated scheduler
//! with the real one.
//!
//! | variable | meaning |
//! |---|---|
//! | `CASES` | the number of cases |
//! | `SEED` | the first seed |
//! | `RULES` | rules that nearly every case has, comma-separated |
//! | `WITHOUT` | rules that no case has |
//! | `STRICT=1` | also fails for tolerated differences |
//! | `FAILURES` | how many failing cases are shrunk, printed and written to a file |
//! | `CASE` | a file with the one case to play |
//!
//! An extender offers each pod only its planned node, and records the nodes that the scheduler allows. In a quarter of the cases,
//! taints hold the pods instead, as a controller could do it. With `nodeTaintsPolicy: Honor`, other nodes then do not count for
//! spreading, so a stricter plan is still bound. Pods that tolerate every taint always use the extender.

mod case;
mod dice;
mod evicted;
mod extender;
mod generate;
mod play;
mod promised;
mod shrink;
mod simulated;
mod stage;

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::LazyLock;

use anyhow::{Context, anyhow};
use case::Case;
use generate::Rule;
use play::{Failure, Outcome, Property, carry_out, planned, play};
use poolwright_core::plan::{PlacedPod, Plan, Target, UnplacedPod, UnplacedReason};
use poolwright_core::{PodKey, Snapshot};
use serde_json::json;
use simulated::Compared;
use stage::{Senseless, Stage};
use tokio::runtime::Runtime;
use tokio::sync::{Mutex, OnceCell};
use tokio::time::Instant;

/// The number of cases if `CASES` is not set.
const CASES: u64 = 100;

/// The number of plays while a failing case is shrunk.
const TRIES: u32 = 600;

/// The percentage of cases that may leave over a pod that the scheduler would place: see [`is_overcareful`].
const OVERCAREFUL_PERCENT: u32 = 2;

/// The folder of kept cases, which once failed.
const KEPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/differential");

/// Runs something on the only stage of this process, exclusively.
fn on_stage<T>(act: impl AsyncFnOnce(&Stage) -> T) -> T {
    // Outlives all tests, because the watch and the extender run in it.
    static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| Runtime::new().expect("a runtime"));
    static STAGE: OnceCell<Mutex<Stage>> = OnceCell::const_new();
    RUNTIME.block_on(async {
        let start = async || anyhow::Ok(Mutex::new(Stage::start().await?));
        let stage = STAGE.get_or_try_init(start).await.expect("a control plane").lock().await;
        act(&stage).await
    })
}

fn variable<T: FromStr<Err: std::fmt::Display>>(name: &str) -> anyhow::Result<Option<T>> {
    let Some(text) = env::var(name).ok().filter(|text| !text.is_empty()) else { return Ok(None) };
    text.parse().map(Some).map_err(|error| anyhow!("{name}={text}: {error}"))
}

/// Returns the rules named by a variable, separated by commas.
fn rules(name: &str) -> anyhow::Result<Vec<Rule>> {
    let names: String = variable(name)?.unwrap_or_default();
    let named = names.split(',').filter(|rule| !rule.is_empty());
    named.map(|rule| rule.parse().map_err(|error: String| anyhow!("{name}: {error}"))).collect()
}

fn read(path: &Path) -> anyhow::Result<Case> {
    let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
    serde_json::from_str(&text).with_context(|| path.display().to_string())
}

#[test]
fn the_scheduler_binds_exactly_the_pods_that_poolwright_plans() {
    on_stage(async |stage| {
        let outcome = match env::var_os("CASE").filter(|path| !path.is_empty()) {
            Some(path) => replay(stage, Path::new(&path)).await,
            None => explore(stage).await,
        };
        if let Err(error) = outcome {
            panic!("{error:#}");
        }
    });
}

#[test]
fn earlier_differences_do_not_return() {
    on_stage(async |stage| {
        let mut paths: Vec<PathBuf> =
            fs::read_dir(KEPT).unwrap().map(|entry| entry.unwrap().path()).collect();
        paths.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
        paths.sort();
        assert!(!paths.is_empty(), "{KEPT} has no case");
        for path in paths {
            let case = read(&path).unwrap();
            let outcome = play(stage, &case).await.unwrap();
            assert_eq!(outcome.failures, [], "{} ({})", case.note, path.display());
        }
    });
}

/// The number of cases for the simulated scheduler if `CASES` is not set.
const COMPARED: u64 = 20;

#[test]
fn the_simulated_scheduler_finds_the_same_nodes_and_writes_the_same_messages() {
    on_stage(async |stage| {
        if let Err(error) = ask_both(async |case| simulated::compare(stage, case).await).await {
            panic!("{error:#}");
        }
    });
}

#[test]
fn the_simulated_scheduler_evicts_the_same_pods_as_the_real_one() {
    on_stage(async |stage| {
        if let Err(error) = ask_both(async |case| evicted::compare(stage, case).await).await {
            panic!("{error:#}");
        }
    });
}

/// Compares both schedulers in random cases.
async fn ask_both(compare: impl AsyncFn(&Case) -> anyhow::Result<Compared>) -> anyhow::Result<()> {
    let cases = variable("CASES")?.unwrap_or(COMPARED);
    let first = variable("SEED")?.unwrap_or(1);
    let (favoured, avoided) = (rules("RULES")?, rules("WITHOUT")?);
    println!("seeds {first} to {}", first + cases - 1);
    let mut tally: BTreeMap<String, u64> = BTreeMap::new();
    let mut differ = Vec::new();
    for seed in first..first + cases {
        let compared = match compare(&generate::case(seed, &favoured, &avoided)).await {
            Ok(compared) => compared,
            Err(error) if error.is::<Senseless>() => {
                *tally.entry("cases that the API server refuses".to_owned()).or_default() += 1;
                continue;
            }
            Err(error) => return Err(error.context(format!("seed {seed}"))),
        };
        for (what, count) in &compared.tally {
            *tally.entry(what.clone()).or_default() += count;
        }
        if !compared.differences.is_empty() {
            differ.push(format!("seed {seed}:\n  {}", compared.differences.join("\n  ")));
        }
    }
    println!("{}", told(&tally));
    anyhow::ensure!(differ.is_empty(), "{} of {cases} cases differ\n{}", differ.len(), differ.join("\n"));
    Ok(())
}

/// Plays a case from a file and prints the plan.
async fn replay(stage: &Stage, path: &Path) -> anyhow::Result<()> {
    let case = read(path)?;
    let plan = planned(&case.snapshot()?);
    for claim in &plan.claims {
        println!("buys {} as {} for {:?}", claim.name, claim.offering(), claim.planned_pods);
    }
    for placement in &plan.placements {
        println!("places {} on {}", placement.pod, placement.target);
    }
    for left in &plan.unplaced {
        println!("leaves {}: {}: {}", left.pod, left.reason.as_str(), left.message);
    }
    let outcome = play(stage, &case).await?;
    println!("{}", told(&outcome.tally));
    anyhow::ensure!(outcome.failures.is_empty(), "{}", words(&outcome));
    Ok(())
}

/// Plays random cases.
async fn explore(stage: &Stage) -> anyhow::Result<()> {
    let cases = variable("CASES")?.unwrap_or(CASES);
    let first = variable("SEED")?.unwrap_or(1);
    let wanted = variable("FAILURES")?.unwrap_or(1);
    let (favoured, avoided) = (rules("RULES")?, rules("WITHOUT")?);
    let started = Instant::now();
    let mut tally: BTreeMap<String, u64> = BTreeMap::new();
    let (mut failed, mut careful) = (Vec::new(), 0);
    let mut played = 0;
    for seed in first..first + cases {
        let case = generate::case(seed, &favoured, &avoided);
        let outcome = match play(stage, &case).await {
            Ok(outcome) => outcome,
            Err(error) if error.is::<Senseless>() => {
                println!("seed {seed}: the API server refuses it: {error}");
                *tally.entry("cases that the API server refuses".to_owned()).or_default() += 1;
                continue;
            }
            Err(error) => return Err(error.context(format!("seed {seed}"))),
        };
        played += 1;
        for (what, count) in &outcome.tally {
            *tally.entry(what.clone()).or_default() += count;
        }
        if let Some(failure) = outcome.failures.iter().find(|failure| !is_overcareful(failure)) {
            println!("seed {seed} fails:\n{}", words(&outcome));
            failed.push((seed, case, failure.clone()));
        } else if !outcome.failures.is_empty() {
            println!("seed {seed}: more careful than the scheduler:\n{}", words(&outcome));
            careful += 1;
        }
    }
    let seconds = started.elapsed().as_secs_f64();
    println!(
        "{played} cases in {seconds:.0} s, {:.1} a second\n{}",
        f64::from(played) / seconds,
        told(&tally)
    );
    let refused = tally.get("cases that the API server refuses").copied().unwrap_or(0);
    anyhow::ensure!(refused * 20 <= cases, "{refused} of {cases} cases make no sense: repair the generator");
    println!(
        "{careful} of {played} cases leave a pod over for its rules about other pods that the scheduler would place"
    );
    anyhow::ensure!(
        careful * 100 <= played * OVERCAREFUL_PERCENT,
        "{careful} of {played} cases are more careful than the scheduler; at most {OVERCAREFUL_PERCENT} % may be"
    );
    let mut messages = vec![format!("{} of {played} cases fail", failed.len())];
    for (seed, case, failure) in failed.iter().take(wanted) {
        messages.push(format!("seed {seed}: {}", make_small(stage, case.clone(), failure).await?));
    }
    anyhow::ensure!(failed.is_empty(), "{}", messages.join("\n\n"));
    Ok(())
}

/// Checks whether the failure is only that the planner misses a solution for rules over several pods. It chooses places one after
/// the other and does not try all orders, so a limit may bind in the place chosen. Nothing is bought in vain.
fn is_overcareful(failure: &Failure) -> bool {
    let tolerated = std::env::var_os("STRICT").is_none_or(|value| value.is_empty());
    tolerated
        && matches!(failure.property, Property::NoRoom | Property::Impossible)
        && matches!(failure.reason, Some(UnplacedReason::TopologyRule | UnplacedReason::LimitReached))
}

/// Shrinks a failing case, writes it to a file and describes the failure.
async fn make_small(stage: &Stage, case: Case, failure: &Failure) -> anyhow::Result<String> {
    let fails = async |case: &Case| {
        let like = |one: &Failure| one.property == failure.property && one.reason == failure.reason;
        play(stage, case).await.is_ok_and(|outcome| outcome.failures.iter().any(like))
    };
    let seed = case.seed.unwrap_or_default();
    let small = shrink::shrink(case, TRIES, fails).await;
    let outcome = play(stage, &small).await?;
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("differential-{seed}.json"));
    let text = serde_json::to_string_pretty(&small)?;
    fs::write(&path, format!("{text}\n"))?;
    Ok(format!(
        "{}\n{}\nplay it again: make differential CASE={}",
        words(&outcome),
        serde_json::to_string(&small)?,
        path.display()
    ))
}

fn words(outcome: &Outcome) -> String {
    outcome.failures.iter().map(|failure| format!("  {failure}")).collect::<Vec<_>>().join("\n")
}

fn told(tally: &BTreeMap<String, u64>) -> String {
    tally.iter().map(|(what, count)| format!("  {count:>6} {what}")).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_seed_always_generates_the_same_readable_case() {
    for seed in 0..500 {
        let case = generate::case(seed, &Rule::ALL, &[]);
        assert_eq!(case, generate::case(seed, &Rule::ALL, &[]));
        case.snapshot().unwrap();
        let text = serde_json::to_string(&case).unwrap();
        assert_eq!(serde_json::from_str::<Case>(&text).unwrap(), case);
    }
}

/// Returns a case with room for one of two pods. The other pod needs a new node.
fn small_case() -> Case {
    let pod = |name: &str| {
        let container = json!({"name": "main", "image": "none", "resources": {"requests": {"cpu": "1500m"}}});
        json!({"metadata": {"name": name, "namespace": "red"}, "spec": {"containers": [container]}})
    };
    let room = json!({"cpu": "2", "memory": "8Gi", "pods": "110"});
    let ready = json!([{"type": "Ready", "status": "True"}]);
    serde_json::from_value(json!({
        "kinds": [{
            "name": "c1.small", "cores": 2, "memoryGib": 8, "gpus": 0, "pods": 110, "prices": {"a": "0.10"},
        }],
        "pools": [{
            "apiVersion": "poolwright.dev/v1alpha1", "kind": "NodePool", "metadata": {"name": "pool"},
            "spec": {"template": {"spec": {
                "nodeClassRef": {"group": "poolwright.dev", "kind": "KwokNodeClass", "name": "default"},
            }}},
        }],
        "nodes": [{
            "metadata": {"name": "n0", "labels": {"kubernetes.io/hostname": "n0"}},
            "status": {"allocatable": room, "capacity": room, "conditions": ready},
        }],
        "waiting": [pod("one"), pod("two")],
    }))
    .unwrap()
}

/// Returns the properties that fail for the small case after its plan was changed by `spoil`.
fn spoilt(spoil: impl Fn(&Snapshot, &mut Plan)) -> Vec<Property> {
    let case = small_case();
    let snapshot = case.snapshot().unwrap();
    let mut plan = planned(&snapshot);
    assert_eq!((plan.placements.len(), plan.claims.len(), plan.unplaced.len()), (1, 1, 0), "{plan:?}");
    spoil(&snapshot, &mut plan);
    let outcome = on_stage(async |stage| carry_out(stage, &case, &snapshot, &plan).await);
    let mut found: Vec<Property> = outcome.unwrap().failures.iter().map(|failure| failure.property).collect();
    found.dedup();
    found
}

fn impossible(pod: PodKey) -> UnplacedPod {
    UnplacedPod { pod, reason: UnplacedReason::NoOfferingFits, message: "as the test has it".to_owned() }
}

#[test]
fn a_correct_plan_passes() {
    assert_eq!(spoilt(|_, _| {}), []);
}

#[test]
fn a_pod_planned_on_a_node_that_it_does_not_fit_is_reported() {
    let both_on_one = |_: &Snapshot, plan: &mut Plan| {
        let pod = plan.claims[0].planned_pods.pop().unwrap();
        plan.placements.push(PlacedPod { pod, target: Target::Node("n0".to_owned()) });
        plan.claims.clear();
        plan.cost = poolwright_catalog::UsdPerHour::ZERO;
    };
    assert_eq!(spoilt(both_on_one), [Property::Bound]);
}

#[test]
fn a_fitting_pod_that_is_called_impossible_is_reported() {
    let there = |_: &Snapshot, plan: &mut Plan| {
        let pod = plan.placements.remove(0).pod;
        plan.unplaced.push(impossible(pod));
    };
    assert_eq!(spoilt(there), [Property::NoRoom]);
    let new = |_: &Snapshot, plan: &mut Plan| {
        let pod = plan.claims.remove(0).planned_pods.remove(0);
        plan.unplaced.push(impossible(pod));
        plan.cost = poolwright_catalog::UsdPerHour::ZERO;
    };
    assert_eq!(spoilt(new), [Property::Impossible]);
}

#[test]
fn an_unused_new_node_and_a_wrong_sum_are_reported() {
    let twice = |_: &Snapshot, plan: &mut Plan| {
        let mut idle = plan.claims[0].clone();
        idle.name.0.push('2');
        idle.planned_pods.clear();
        plan.claims.push(idle);
    };
    assert_eq!(spoilt(twice), [Property::Used]);
    let cheap = |_: &Snapshot, plan: &mut Plan| plan.cost = poolwright_catalog::UsdPerHour::ZERO;
    assert_eq!(spoilt(cheap), [Property::Cost]);
}
