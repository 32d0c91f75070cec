//! Controllers that are killed, restarted, run twice, or paused. They buy nothing twice and leave nothing behind.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::time::Duration;

use anyhow::{Context, ensure};
use kube::ResourceExt;
use kube::api::GetParams;
use poolwright_plane::trial::{
    Cluster, Controller, Trial, WITHIN, Witness, is_running, node_class, node_pool, pod, run_plan, sum,
    usd_per_hour,
};
use poolwright_plane::{ControlPlane, Program, measurement, seed, wait_for};
use serde_json::{Value, json};
use tokio::time::Instant;

/// Returns pods that need a whole g5.xlarge each, so that one node per pod is best, however the pods are split over plans.
fn pods(prefix: &str, count: usize) -> Vec<Value> {
    let requests = json!({"cpu": "3", "memory": "8Gi", "nvidia.com/gpu": "1"});
    (0..count).map(|number| pod(&format!("{prefix}-{number}"), "gpu", requests.clone())).collect()
}

fn definitions() -> [Value; 2] {
    let class = node_class("gpu", json!({"registrationDelay": "1s"}));
    [class, node_pool("gpu", json!({}))]
}

/// Checks for one node per pod: as many claims, nodes and instances as pods, each claim with its own, and each pod alone on a
/// node. Which of two equal pods gets which of two equal nodes is up to the scheduler when no controller tells it.
async fn assert_one_node_each(cluster: &Cluster, namespace: &str, count: usize) {
    let claims = cluster.claims("gpu").await.unwrap();
    let planned: Vec<(String, &Vec<String>)> =
        claims.iter().map(|claim| (claim.name_any(), &claim.spec.pods)).collect();
    assert_eq!(claims.len(), count, "a node too many, or too few: {planned:?}");
    assert_eq!(cluster.nodes("gpu").await.unwrap().len(), count);
    assert_eq!(cluster.instances("gpu").await.unwrap().len(), count);
    let pods = cluster.pods(namespace).await.unwrap();
    let used: BTreeSet<Option<String>> =
        pods.iter().map(|pod| pod.spec.as_ref().and_then(|spec| spec.node_name.clone())).collect();
    assert_eq!(used.len(), count, "every node has its pod");
    let mut homes: BTreeMap<String, usize> = BTreeMap::new();
    for (provider_id, node) in claims.iter().filter_map(|claim| {
        let status = claim.status.as_ref()?;
        Some((status.provider_id.clone()?, status.node_name.clone()?))
    }) {
        *homes.entry(format!("{provider_id} {node}")).or_default() += 1;
    }
    assert_eq!(homes.len(), count, "every claim has an instance and a node of its own: {homes:?}");
}

/// A small random generator of our own, so that a seed gives the same kills for ever.
struct Random(u64);

impl Random {
    /// Starts from `POOLWRIGHT_SEED`, or from a random seed, and prints it.
    fn new() -> Self {
        Self(seed("these kills").wrapping_mul(2).wrapping_add(1))
    }

    /// Returns a number below `end`.
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % end
    }
}

const FLAGS: [&str; 6] = ["--identity", "crash", "--batch-idle", "200ms", "--list-interval", "1s"];

/// Starts a controller, and kills it as soon as it has made its first claim. Returns the time until then.
async fn run_to_first_claim(plane: &ControlPlane, cluster: &Cluster) -> Duration {
    let started = Instant::now();
    let mut controller = Controller::start(plane, "controller", &FLAGS).unwrap();
    wait_for("the first claim", WITHIN, async || {
        controller.ensure_running()?;
        ensure!(!cluster.claims("gpu").await?.is_empty(), "no claim yet");
        Ok(())
    })
    .await
    .unwrap();
    controller.kill();
    started.elapsed()
}

/// Starts a controller, and kills it at a random point of the first `within`: mostly while it works, sometimes before it leads.
async fn run_and_kill(plane: &ControlPlane, random: &mut Random, within: Duration) {
    let mut controller = Controller::start(plane, "controller", &FLAGS).unwrap();
    // The crash is set by time, so there is no condition to wait for.
    tokio::time::sleep(within.mul_f64(random.below(1000) as f64 / 1000.0)).await;
    controller.ensure_running().unwrap();
    controller.kill();
}

#[tokio::test]
async fn a_controller_killed_at_random_times_buys_each_node_once() {
    const WAVES: usize = 8;
    const PODS: usize = 40;
    // `KILLS` sets a larger number.
    let kills = measurement::variable("KILLS", 10).unwrap().max(WAVES);
    let mut random = Random::new();
    let plane = Trial::plane_without_controller().await.unwrap();
    let cluster = Cluster::new(plane.client().unwrap());
    let namespace = cluster.namespace("crash").await.unwrap();
    cluster.apply("", &definitions()).await.unwrap();
    let all = pods("train", PODS);
    let mut waves = all.chunks(PODS / WAVES);
    let mut within = Duration::ZERO;
    for kill in 0..kills {
        if kill * WAVES % kills < WAVES
            && let Some(wave) = waves.next()
        {
            cluster.create_pods(&namespace, wave).await.unwrap();
        }
        if kill == 0 {
            // The other kills come at random times of twice this time, however fast the machine is.
            within = run_to_first_claim(&plane, &cluster).await * 2;
        } else {
            run_and_kill(&plane, &mut random, within).await;
        }
    }
    assert!(waves.next().is_none(), "every wave was sent");
    let meanwhile = cluster.claims("gpu").await.unwrap().len();
    println!("{meanwhile} of {PODS} claims were made between the kills, each within {within:?} of a start");

    let mut controller = Controller::start(&plane, "controller", &FLAGS).unwrap();
    cluster.wait_running(&namespace, PODS).await.unwrap();
    controller.ensure_running().unwrap();
    assert_one_node_each(&cluster, &namespace, PODS).await;

    // The cost without any crash.
    let documents: Vec<String> = definitions().iter().chain(&all).map(Value::to_string).collect();
    let file = plane.dir().join("workload.yaml");
    fs::write(&file, documents.join("\n---\n")).unwrap();
    let plan = run_plan(&["-f", &file.display().to_string()], &[]).unwrap();
    let cost = (plan["costUsdPerHour"].as_f64().unwrap() * 1e6).round() as u64;
    assert_eq!(usd_per_hour(&cluster.claims("gpu").await.unwrap()).unwrap(), cost);

    // The controller is also killed while it gives everything back.
    controller.kill();
    cluster.delete_pods(&namespace).await.unwrap();
    for _ in 0..5 {
        run_and_kill(&plane, &mut random, within).await;
    }
    let mut controller = Controller::start(&plane, "controller", &FLAGS).unwrap();
    cluster.wait_nothing_left("gpu").await.unwrap();
    controller.ensure_running().unwrap();
}

#[tokio::test]
async fn a_second_controller_takes_over_when_the_leader_is_killed() {
    let plane = Trial::plane_without_controller().await.unwrap();
    let cluster = Cluster::new(plane.client().unwrap());
    let namespace = cluster.namespace("pair").await.unwrap();
    cluster.apply("", &definitions()).await.unwrap();
    let start = |name: &str| {
        let flags =
            ["--identity", name, "--batch-idle", "200ms", "--lease-duration", "6s", "--list-interval", "1s"];
        Controller::start(&plane, &format!("controller-{name}"), &flags).unwrap()
    };
    let mut first = start("first");
    wait_leads(&mut first, true).await;
    let mut second = start("second");
    cluster.create_pods(&namespace, &pods("early", 4)).await.unwrap();
    cluster.wait_running(&namespace, 4).await.unwrap();
    assert_one_node_each(&cluster, &namespace, 4).await;
    second.ensure_running().unwrap();
    assert!(second.metric("poolwright_leader").await.unwrap() < 0.5, "two lead");
    let bought = second.metric(r#"poolwright_plans_total{outcome="bought"}"#).await.unwrap();
    let launched =
        second.metric(r#"poolwright_launches_total{provider="kwok",result="launched"}"#).await.unwrap();
    assert!(bought + launched < 0.5, "the one that does not lead bought {bought}, launched {launched}");

    // Killed in the middle of the work: plans are made, claims created, some launched.
    cluster.create_pods(&namespace, &pods("late", 8)).await.unwrap();
    wait_for("the first to have begun", WITHIN, async || {
        let claims = cluster.claims("gpu").await?.len();
        ensure!(claims > 4, "{claims} claims");
        Ok(())
    })
    .await
    .unwrap();
    first.kill();
    wait_leads(&mut second, true).await;
    cluster.wait_running(&namespace, 12).await.unwrap();
    assert_one_node_each(&cluster, &namespace, 12).await;

    // A controller that is asked to end releases the lease, so the next one need not wait until it expires.
    let status = second.process().terminate(WITHIN).await.unwrap();
    assert!(status.success(), "{status}");
    let mut third = start("third");
    cluster.delete_pods(&namespace).await.unwrap();
    wait_for("the pods to be gone", WITHIN, async || {
        let left = cluster.pods(&namespace).await?;
        let running = left.iter().filter(|pod| is_running(pod)).count();
        left.is_empty().then_some(()).with_context(|| format!("{running} still run"))
    })
    .await
    .unwrap();
    cluster.wait_nothing_left("gpu").await.unwrap();
    third.ensure_running().unwrap();
}

/// Waits until a controller leads, or knows that it does not.
async fn wait_leads(controller: &mut Controller, leads: bool) {
    let what = if leads { "it to lead" } else { "it to see that it leads no more" };
    wait_for(what, WITHIN, async || {
        controller.ensure_running()?;
        ensure!((controller.metric("poolwright_leader").await? > 0.5) == leads, "not yet");
        Ok(())
    })
    .await
    .unwrap();
}

/// Waits until a controller has sent its writes and waits for responses, which do not come. It serves its metrics itself, so it
/// also made progress between two looks.
async fn wait_sent(controller: &Controller) {
    const LOOKS: usize = 3;
    let (mut before, mut same) = (0.0, 0);
    wait_for("as many writes to be on their way at each of a few looks", WITHIN, async || {
        let now = controller.metric("poolwright_writes_in_flight").await?;
        same = if now > 0.5 && (now - before).abs() < 0.5 { same + 1 } else { 0 };
        before = now;
        ensure!(same >= LOOKS, "{now} are on their way, at {same} looks in a row");
        Ok(())
    })
    .await
    .unwrap();
}

/// Makes the API server count a user's writes and let them through. It does not count the lease, which both controllers compete
/// for, nor the writes of the KWOK provider's simulated cloud, which runs in every controller, leading or not: nodes that are
/// created and deleted, and the state of instances.
async fn count_writes_of(cluster: &Cluster, user: &str) {
    let is_counted = format!(
        "request.userInfo.username == '{user}' && request.resource.resource != 'leases' && \
         !(request.resource.resource == 'nodes' && request.operation in ['CREATE', 'DELETE']) && \
         !(request.resource.resource == 'configmaps' && request.operation in ['UPDATE', 'DELETE'])"
    );
    let rule = json!({"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["CREATE", "UPDATE", "DELETE"],
        "resources": ["*/*"]});
    let policy = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": user},
        "spec": {
            "failurePolicy": "Ignore",
            "matchConstraints": {"resourceRules": [rule]},
            "matchConditions": [{"name": "counted", "expression": is_counted}],
            "validations": [{"expression": "false"}],
        },
    });
    let binding = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": user},
        "spec": {"policyName": user, "validationActions": ["Audit"]},
    });
    cluster.apply("", &[policy, binding]).await.unwrap();
}

/// Returns the number of writes the API server has counted.
async fn writes_of(cluster: &Cluster, user: &str) -> anyhow::Result<f64> {
    let request = kube::core::Request::new("").get("metrics", &GetParams::default())?;
    let metrics = cluster.client.request_text(request).await?;
    let policy = format!("policy=\"{user}\"");
    sum(&metrics, "apiserver_validating_admission_policy_check_total", &policy)
}

#[tokio::test]
async fn a_leader_paused_for_longer_than_its_lease_starts_no_write_and_buys_nothing_afterwards() {
    const FIRST: &str = "first";
    const LATE: usize = 24;
    let plane = Trial::plane_without_controller().await.unwrap();
    let cluster = Cluster::new(plane.client().unwrap());
    let namespace = cluster.namespace("paused").await.unwrap();
    cluster.apply("", &definitions()).await.unwrap();
    count_writes_of(&cluster, FIRST).await;
    let start = |name: &str| {
        let kubeconfig = plane.kubeconfig_as(name).unwrap().display().to_string();
        let flags =
            ["--identity", name, "--batch-idle", "200ms", "--lease-duration", "6s", "--list-interval", "1s"];
        let flags: Vec<&str> = flags.into_iter().chain(["--kubeconfig", &kubeconfig]).collect();
        Controller::start(&plane, &format!("controller-{name}"), &flags).unwrap()
    };
    let mut first = start(FIRST);
    wait_leads(&mut first, true).await;
    let mut second = start("second");
    cluster.create_pods(&namespace, &pods("early", 4)).await.unwrap();
    cluster.wait_running(&namespace, 4).await.unwrap();
    let seen = writes_of(&cluster, FIRST).await.unwrap();
    assert!(seen >= 8.0, "four claims were made and launched, and only {seen} writes were counted");

    // The first is paused in the middle of its work. The API server is paused for a moment before, so that calls of the first are
    // then in flight, and their responses are waiting when it continues.
    let witness = Witness::start(&cluster).await.unwrap();
    cluster.create_pods(&namespace, &pods("late", LATE)).await.unwrap();
    let some_launched = async {
        while witness.account().unwrap().instances.now() < 6 {
            first.ensure_running().unwrap();
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(WITHIN, some_launched).await.expect("it launches");
    plane.pause(Program::ApiServer).unwrap();
    wait_sent(&first).await;
    first.process().pause().unwrap();
    plane.resume(Program::ApiServer).unwrap();
    let begun = cluster.instances("gpu").await.unwrap().len();
    wait_leads(&mut second, true).await;
    cluster.wait_running(&namespace, 4 + LATE).await.unwrap();
    assert_one_node_each(&cluster, &namespace, 4 + LATE).await;
    // The state that the first knows becomes wrong: nodes that it has seen running are gone.
    for number in 0..4 {
        cluster.delete_pod(&namespace, &format!("early-{number}")).await.unwrap();
    }
    wait_for("the nodes of the early ones to be given back", WITHIN, async || {
        let left = (cluster.claims("gpu").await?.len(), cluster.instances("gpu").await?.len());
        ensure!(left == (LATE, LATE), "{left:?} claims and instances");
        Ok(())
    })
    .await
    .unwrap();

    let written = writes_of(&cluster, FIRST).await.unwrap();
    first.process().resume().unwrap();
    wait_leads(&mut first, false).await;
    cluster.create_pods(&namespace, &pods("more", 2)).await.unwrap();
    cluster.wait_running(&namespace, LATE + 2).await.unwrap();
    assert_one_node_each(&cluster, &namespace, LATE + 2).await;
    assert!(second.metric("poolwright_leader").await.unwrap() > 0.5, "the second leads all along");
    let written_since = writes_of(&cluster, FIRST).await.unwrap() - written;
    let dropped = first.metric_sum("poolwright_writes_dropped_total", "").await.unwrap();
    println!(
        "stopped when {begun} of {} instances were there: {written} writes of the first were counted until it went on, and \
         {written_since} since; it dropped {dropped}",
        4 + LATE
    );
    assert!(dropped > 0.5, "it had nothing on its way when it was stopped, so nothing is shown");
    // A request that the connection had already taken cannot be called back. Its writer gave it up, so it counts as dropped.
    assert!(
        written_since <= dropped,
        "it wrote {written_since} times after it was stopped, and gave up {dropped}"
    );
    let account = witness.account_of([LATE + 2; 3]).await.unwrap();
    for seen in [&account.instances, &account.nodes] {
        assert_eq!((seen.ever(), seen.doubled()), (4 + LATE + 2, Vec::new()), "{seen:?}");
    }
    let late = account.claims.ever() - (4 + LATE + 2);
    assert!(late as f64 <= written_since && account.claims.doubled().is_empty(), "{:?}", account.claims);

    // The first was never restarted, and leads again when the other is gone.
    second.kill();
    cluster.delete_pods(&namespace).await.unwrap();
    wait_leads(&mut first, true).await;
    cluster.wait_nothing_left("gpu").await.unwrap();
    first.ensure_running().unwrap();
}
