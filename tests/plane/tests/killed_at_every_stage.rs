//! The controller is killed at every stage of a claim's life. It buys nothing twice, leaves nothing behind, and all pods run.
//!
//! One scenario buys two nodes, replaces them and ends them. At each point the test kills the controller as soon as the API shows
//! that point, checks the state, and starts the next controller. Short states are held: by refused writes ([`Hold`]), a stopped
//! scheduler or a finalizer. Every run has the same kills.
//!
//! `KILLS=100` repeats the scenario until that many kills happened.

use std::collections::BTreeMap;
use std::fmt;

use anyhow::{Context, ensure};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Node, Pod};
use kube::api::{Patch, PatchParams};
use kube::{Api, ResourceExt};
use poolwright_api::NodeClaim;
use poolwright_plane::trial::{
    Cluster, Controller, Hold, Trial, WITHIN, Witness, Writes, condition, is_running, is_true, node_class,
    node_pool, pod, taint_keys,
};
use poolwright_plane::{ControlPlane, Program, measurement, wait_for};
use poolwright_terms::keys::{DISRUPTED_TAINT, RESERVED_TAINT, TERMINATION_FINALIZER};
use serde_json::{Value, json};

/// The number of nodes the workload needs. Each pod takes one.
const NODES: usize = 2;
/// The name of the pool, the node class and the workload.
const NAME: &str = "kills";
/// A startup taint, which the test itself lifts when a node has started.
const STARTING: &str = "example.com/starting";
/// A finalizer that keeps deleted objects.
const FINALIZER: &str = "example.com/held";

const RECORDING_A_LAUNCH: Writes = Writes {
    operation: "UPDATE",
    group: "poolwright.dev",
    resource: "nodeclaims/status",
    when: "has(object.status) && has(object.status.providerID)",
};
const JOINING: Writes = Writes { operation: "CREATE", group: "", resource: "nodes", when: "true" };
const RECORDING_THAT_IT_IS_OPEN: Writes = Writes {
    operation: "UPDATE",
    group: "poolwright.dev",
    resource: "nodeclaims/status",
    when: "has(object.status) && has(object.status.conditions) && \
           object.status.conditions.exists(c, c.type == 'Initialized' && c.status == 'True')",
};
const BUYING: Writes =
    Writes { operation: "CREATE", group: "poolwright.dev", resource: "nodeclaims", when: "true" };
const DELETING_A_CLAIM: Writes =
    Writes { operation: "DELETE", group: "poolwright.dev", resource: "nodeclaims", when: "true" };
const FORGETTING_A_CLAIM: Writes = Writes {
    operation: "UPDATE",
    group: "poolwright.dev",
    resource: "nodeclaims",
    when: "!has(object.metadata.finalizers) || object.metadata.finalizers.size() == 0",
};

/// The points at which the controller is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Point {
    Created,
    LaunchBegun,
    Launched,
    Registered,
    Opened,
    Initialized,
    Running,
    Leaving,
    SuccessorLaunched,
    SuccessorRegistered,
    SuccessorOpen,
    Draining,
    Terminating,
    GivenBack,
    Replaced,
    Empty,
    Closed,
}

impl Point {
    const ALL: [Self; 17] = [
        Self::Created,
        Self::LaunchBegun,
        Self::Launched,
        Self::Registered,
        Self::Opened,
        Self::Initialized,
        Self::Running,
        Self::Leaving,
        Self::SuccessorLaunched,
        Self::SuccessorRegistered,
        Self::SuccessorOpen,
        Self::Draining,
        Self::Terminating,
        Self::GivenBack,
        Self::Replaced,
        Self::Empty,
        Self::Closed,
    ];

    /// Returns the name of the point, and the number of claims, instances and nodes per needed node at it.
    fn about(self) -> (&'static str, [usize; 3]) {
        match self {
            Self::Created => ("claim created, nothing launched", [1, 0, 0]),
            Self::LaunchBegun => ("instance there, launch not recorded", [1, 1, 0]),
            Self::Launched => ("launched, no node yet", [1, 1, 0]),
            Self::Registered => ("registered, still starting", [1, 1, 1]),
            Self::Opened => ("node open, Initialized not recorded", [1, 1, 1]),
            Self::Initialized => ("initialized, its pod not bound", [1, 1, 1]),
            Self::Running => ("pods run", [1, 1, 1]),
            Self::Leaving => ("drift: leaves, nothing bought instead", [1, 1, 1]),
            Self::SuccessorLaunched => ("successor launched, no node yet", [2, 2, 1]),
            Self::SuccessorRegistered => ("successor registered, still starting", [2, 2, 2]),
            Self::SuccessorOpen => ("successor open, old claim not deleted", [2, 2, 2]),
            Self::Draining => ("draining, a pod takes its time", [2, 2, 2]),
            Self::Terminating => ("instance terminating, its node there", [2, 2, 2]),
            Self::GivenBack => ("instance gone, finalizer there", [2, 1, 1]),
            Self::Replaced => ("replaced, pods run", [1, 1, 1]),
            Self::Empty => ("empty", [1, 1, 1]),
            Self::Closed => ("empty and closed by a taint", [1, 1, 1]),
        }
    }

    /// Checks whether all pods must run at this point: no pod is evicted before its new room is ready.
    fn all_run(self) -> bool {
        (Self::Running..Self::Draining).contains(&self) || self == Self::Replaced
    }
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.about().0)
    }
}

/// The state of the API server.
struct View {
    /// The label of claims that match the current pool.
    generation: String,
    claims: Vec<NodeClaim>,
    instances: Vec<ConfigMap>,
    nodes: Vec<Node>,
    pods: Vec<Pod>,
}

impl View {
    fn former(&self) -> impl Iterator<Item = &NodeClaim> {
        self.claims.iter().filter(|claim| claim.spec.labels.get("generation") != Some(&self.generation))
    }

    fn current(&self) -> impl Iterator<Item = &NodeClaim> {
        self.claims.iter().filter(|claim| claim.spec.labels.get("generation") == Some(&self.generation))
    }

    fn is_former(&self, node: &Node) -> bool {
        self.former().any(|claim| node_name(claim) == node.metadata.name.as_deref())
    }

    fn running(&self) -> usize {
        let stays = |pod: &&Pod| is_running(pod) && pod.metadata.deletion_timestamp.is_none();
        self.pods.iter().filter(stays).count()
    }

    fn is_held(&self, pod: &Pod) -> bool {
        let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref());
        pod.metadata.deletion_timestamp.is_some() && self.former().any(|claim| node_name(claim) == node)
    }

    /// Returns an error unless everything is at this point.
    fn ensure_at(&self, point: Point) -> anyhow::Result<()> {
        let there = [self.claims.len(), self.instances.len(), self.nodes.len()];
        let wanted = point.about().1.map(|count| count * NODES);
        ensure!(there == wanted, "{there:?} claims, instances and nodes instead of {wanted:?}");
        let of = |claims: Vec<&NodeClaim>, what: &str, is: &dyn Fn(&NodeClaim) -> bool| {
            let not = claims.iter().find(|claim| !is(claim));
            let status = not.map(|claim| json!(claim.status).to_string());
            ensure!(not.is_none() && claims.len() == NODES, "{what}: not {status:?}");
            Ok(())
        };
        let (old, new) = (|| self.former().collect(), || self.current().collect());
        let node_is = |what: &str, is: &dyn Fn(&Node) -> bool| {
            let not = self.nodes.iter().find(|node| !is(node)).map(|node| json!(node.spec).to_string());
            ensure!(not.is_none(), "{what}: not {not:?}");
            Ok(())
        };
        let unbound = || self.pods.iter().all(|pod| !is_bound(pod));
        let all_run = self.running() == NODES && self.pods.len() == NODES;
        ensure!(all_run || !point.all_run(), "{} of {} pods run", self.running(), self.pods.len());
        match point {
            Point::Created | Point::LaunchBegun => of(new(), "not launched", &|claim| {
                claim.status.as_ref().is_none_or(|status| status.provider_id.is_none())
            }),
            Point::Launched | Point::SuccessorLaunched => of(new(), "launched, without a node", &|claim| {
                is_true(claim, "Launched") && node_name(claim).is_none()
            }),
            Point::Registered | Point::SuccessorRegistered => {
                of(new(), "registered, and no more", &|claim| {
                    is_true(claim, "Registered") && !is_true(claim, "Initialized")
                })
            }
            Point::Opened => {
                ensure!(unbound(), "a pod is bound");
                node_is("open, and reserved", &|node| !is_cordoned(node) && has_taint(node, RESERVED_TAINT))?;
                of(new(), "not recorded as initialized", &|claim| !is_true(claim, "Initialized"))
            }
            Point::Initialized => {
                ensure!(unbound(), "a pod is bound");
                of(new(), "initialized", &|claim| is_true(claim, "Initialized"))
            }
            Point::Running => {
                node_is("open to all", &|node| !has_taint(node, RESERVED_TAINT))?;
                of(new(), "initialized", &|claim| is_true(claim, "Initialized"))
            }
            Point::Leaving => of(old(), "leaving", &|claim| leaves(claim, "Drifted")),
            Point::SuccessorOpen => {
                of(old(), "not deleted", &|claim| claim.metadata.deletion_timestamp.is_none())?;
                of(new(), "initialized", &|claim| is_true(claim, "Initialized"))
            }
            Point::Draining => {
                let held = self.pods.iter().filter(|pod| self.is_held(pod)).count();
                ensure!(held == NODES, "{held} pods are asked to go");
                of(old(), "deleted", &|claim| claim.metadata.deletion_timestamp.is_some())
            }
            Point::Terminating => {
                let terminating = self.instances.iter().filter(|one| state(one) == "Terminating").count();
                ensure!(terminating == NODES, "{terminating} instances are terminating");
                of(old(), "terminating", &|claim| is_true(claim, "InstanceTerminating"))
            }
            Point::GivenBack => of(old(), "there, with our finalizer", &|claim| {
                claim.finalizers().iter().any(|one| one == TERMINATION_FINALIZER)
            }),
            Point::Replaced => of(new(), "initialized", &|claim| is_true(claim, "Initialized")),
            Point::Empty => of(new(), "empty, and open", &|claim| {
                is_true(claim, "Empty") && !is_true(claim, "Disrupting")
            }),
            Point::Closed => {
                node_is("closed", &|node| has_taint(node, DISRUPTED_TAINT))?;
                of(new(), "closed for want of work", &|claim| leaves(claim, "Empty"))
            }
        }
    }

    /// Checks what must always hold: each instance has a claim, each node has an instance, and each recorded launch has its own
    /// instance.
    fn assert_sound(&self, point: Point) {
        let uids: Vec<String> = self.claims.iter().filter_map(ResourceExt::uid).collect();
        for instance in self.instances.iter().map(ResourceExt::name_any) {
            let known = uids.iter().any(|uid| instance == format!("i-{uid}"));
            assert!(known, "{point}: instance {instance} is of no claim");
        }
        let instance_of = |id: Option<&str>| {
            let stored = id.and_then(|id| id.rsplit('/').next());
            self.instances.iter().any(|instance| instance.metadata.name.as_deref() == stored)
        };
        for node in &self.nodes {
            let id = node.spec.as_ref().and_then(|spec| spec.provider_id.as_deref());
            assert!(instance_of(id), "{point}: node {} has no instance", node.name_any());
        }
        for claim in &self.claims {
            let Some(id) = claim.status.as_ref().and_then(|status| status.provider_id.as_deref()) else {
                continue;
            };
            let own = id.ends_with(&format!("/i-{}", claim.uid().unwrap_or_default()));
            assert!(own, "{point}: claim {} has the instance {id} of another", claim.name_any());
            let goes = claim.metadata.deletion_timestamp.is_some();
            assert!(goes || instance_of(Some(id)), "{point}: {id} is recorded and not there");
        }
    }
}

fn node_name(claim: &NodeClaim) -> Option<&str> {
    claim.status.as_ref()?.node_name.as_deref()
}

fn is_bound(pod: &Pod) -> bool {
    pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_some())
}

fn is_cordoned(node: &Node) -> bool {
    node.spec.as_ref().is_some_and(|spec| spec.unschedulable == Some(true))
}

fn has_taint(node: &Node, key: &str) -> bool {
    taint_keys(node).iter().any(|one| one == key)
}

fn leaves(claim: &NodeClaim, reason: &str) -> bool {
    let conditions = claim.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    condition(conditions, "Disrupting").is_some_and(|one| one.status == "True" && one.reason == reason)
}

fn state(instance: &ConfigMap) -> String {
    let text = instance.data.as_ref().and_then(|data| data.get("instance"));
    let stored: Value = text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    stored["state"].as_str().unwrap_or_default().to_owned()
}

/// How often the controller was killed at a point, and how often it had passed the point before it was dead.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    hit: usize,
    missed: usize,
}

struct Scene {
    plane: ControlPlane,
    cluster: Cluster,
    namespace: String,
    generation: usize,
    tally: BTreeMap<Point, Tally>,
}

impl Scene {
    async fn start() -> anyhow::Result<Self> {
        let plane = Trial::plane_without_controller().await?;
        let cluster = Cluster::new(plane.client()?);
        let namespace = cluster.namespace(NAME).await?;
        let template = pod("-", NAME, json!({"cpu": "3", "memory": "8Gi", "nvidia.com/gpu": "1"}));
        let labels = json!({"app": NAME});
        let work = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": NAME},
            "spec": {"replicas": 0, "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": template["spec"]}}});
        cluster.apply(&namespace, &[work]).await?;
        Ok(Self { plane, cluster, namespace, generation: 0, tally: BTreeMap::new() })
    }

    async fn look(&self) -> anyhow::Result<View> {
        Ok(View {
            generation: self.generation.to_string(),
            claims: self.cluster.claims(NAME).await?,
            instances: self.cluster.instances(NAME).await?,
            nodes: self.cluster.nodes(NAME).await?,
            pods: self.cluster.pods(&self.namespace).await?,
        })
    }

    fn controller(&self) -> anyhow::Result<Controller> {
        let flags = ["--identity", NAME, "--batch-idle", "200ms", "--list-interval", "1s"];
        Controller::start(&self.plane, "controller", &flags)
    }

    /// Runs a controller until this point is reached, and kills it there.
    async fn kill_at(&mut self, point: Point) -> anyhow::Result<()> {
        let mut controller = self.controller()?;
        wait_for(&format!("the point `{point}`"), WITHIN, async || {
            controller.ensure_running()?;
            self.look().await?.ensure_at(point)
        })
        .await?;
        controller.kill();
        let view = self.look().await?;
        view.assert_sound(point);
        let tally = self.tally.entry(point).or_default();
        match view.ensure_at(point) {
            Ok(()) => tally.hit += 1,
            Err(over) => {
                tally.missed += 1;
                println!("`{point}` was over when the controller was dead: {over:#}");
            }
        }
        Ok(())
    }

    async fn hold(&self, writes: Writes) -> anyhow::Result<Hold> {
        Hold::place(&self.cluster.client, writes).await
    }

    /// Applies the node class. If `broken`, it launches nothing.
    async fn class(&self, broken: bool) -> anyhow::Result<()> {
        let mut spec = json!({"registrationDelay": "100ms"});
        if broken {
            spec["faults"] = json!({"launchError": "Transient"});
        }
        let class = node_class(NAME, spec);
        self.cluster.apply("", &[class]).await
    }

    /// Applies the pool, which removes empty nodes `after` this time.
    async fn pool(&self, after: &str) -> anyhow::Result<()> {
        let startup_taints = json!([{"key": STARTING, "effect": "NoSchedule"}]);
        let template = json!({
            "metadata": {"labels": {"generation": self.generation.to_string()}},
            "spec": {"startupTaints": startup_taints},
        });
        let spec = json!({"template": template, "scaleToZero": {"after": after},
            "disruption": {"budgets": [{"nodes": "100%"}]}});
        self.cluster.apply("", &[node_pool(NAME, spec)]).await
    }

    async fn scale(&self, replicas: usize) -> anyhow::Result<()> {
        let api: Api<Deployment> = Api::namespaced(self.cluster.client.clone(), &self.namespace);
        let patch = Patch::Merge(json!({"spec": {"replicas": replicas}}));
        api.patch(NAME, &PatchParams::default(), &patch).await?;
        Ok(())
    }

    /// Lifts the startup taints, like a driver that has started.
    async fn lift_startup_taints(&self) -> anyhow::Result<()> {
        let api: Api<Node> = Api::all(self.cluster.client.clone());
        wait_for("all nodes to have started", WITHIN, async || {
            for node in self.cluster.nodes(NAME).await? {
                let mut taints = node.spec.as_ref().and_then(|spec| spec.taints.clone()).unwrap_or_default();
                if !has_taint(&node, STARTING) {
                    continue;
                }
                taints.retain(|taint| taint.key != STARTING);
                // Others write taints too. The resource version makes sure that none of theirs is lost.
                let patch = json!({"metadata": {"resourceVersion": node.metadata.resource_version},
                    "spec": {"taints": taints}});
                api.patch(&node.name_any(), &PatchParams::default(), &Patch::Merge(patch)).await?;
            }
            Ok(())
        })
        .await
    }

    /// Adds a finalizer to every pod, so that pods take time to end, or removes it.
    async fn hold_pods(&self, finalizer: Option<&str>) -> anyhow::Result<()> {
        let api: Api<Pod> = Api::namespaced(self.cluster.client.clone(), &self.namespace);
        for pod in self.cluster.pods(&self.namespace).await? {
            let patch = json!({"metadata": {"finalizers": finalizer.map(|one| [one])}});
            api.patch(&pod.name_any(), &PatchParams::default(), &Patch::Merge(patch)).await?;
        }
        Ok(())
    }

    /// Does the same for the nodes that are being replaced.
    async fn hold_old_nodes(&self, finalizer: Option<&str>) -> anyhow::Result<()> {
        let api: Api<Node> = Api::all(self.cluster.client.clone());
        let view = self.look().await?;
        for node in view.nodes.iter().filter(|node| view.is_former(node)) {
            let patch = json!({"metadata": {"finalizers": finalizer.map(|one| [one])}});
            api.patch(&node.name_any(), &PatchParams::default(), &Patch::Merge(patch)).await?;
        }
        Ok(())
    }

    /// Goes from nothing to running nodes.
    async fn buy(&mut self) -> anyhow::Result<()> {
        self.class(true).await?;
        self.pool("1h").await?;
        self.scale(NODES).await?;
        self.kill_at(Point::Created).await?;

        let recording = self.hold(RECORDING_A_LAUNCH).await?;
        let joining = self.hold(JOINING).await?;
        self.class(false).await?;
        self.kill_at(Point::LaunchBegun).await?;
        recording.lift().await?;
        self.kill_at(Point::Launched).await?;
        joining.lift().await?;
        self.kill_at(Point::Registered).await?;

        let recording = self.hold(RECORDING_THAT_IT_IS_OPEN).await?;
        self.plane.pause(Program::Scheduler)?;
        self.lift_startup_taints().await?;
        self.kill_at(Point::Opened).await?;
        recording.lift().await?;
        self.kill_at(Point::Initialized).await?;
        self.plane.resume(Program::Scheduler)?;
        // The pods need no controller now: their nodes are open.
        self.cluster.wait_running(&self.namespace, NODES).await.context("without a controller")?;
        self.kill_at(Point::Running).await
    }

    /// Replaces all nodes after a change of the pool.
    async fn replace(&mut self) -> anyhow::Result<()> {
        let buying = self.hold(BUYING).await?;
        self.generation += 1;
        self.pool("1h").await?;
        self.kill_at(Point::Leaving).await?;
        let joining = self.hold(JOINING).await?;
        buying.lift().await?;
        self.kill_at(Point::SuccessorLaunched).await?;
        joining.lift().await?;
        self.kill_at(Point::SuccessorRegistered).await?;

        let deleting = self.hold(DELETING_A_CLAIM).await?;
        self.lift_startup_taints().await?;
        self.kill_at(Point::SuccessorOpen).await?;
        self.hold_pods(Some(FINALIZER)).await?;
        deleting.lift().await?;
        self.kill_at(Point::Draining).await?;
        self.hold_old_nodes(Some(FINALIZER)).await?;
        self.hold_pods(None).await?;
        self.kill_at(Point::Terminating).await?;
        let forgetting = self.hold(FORGETTING_A_CLAIM).await?;
        self.hold_old_nodes(None).await?;
        self.kill_at(Point::GivenBack).await?;
        forgetting.lift().await?;
        self.kill_at(Point::Replaced).await
    }

    /// Goes back to nothing.
    async fn give_back(&mut self) -> anyhow::Result<()> {
        self.scale(0).await?;
        self.kill_at(Point::Empty).await?;
        self.pool("1s").await?;
        self.kill_at(Point::Closed).await?;
        let mut controller = self.controller()?;
        self.cluster.wait_nothing_left(NAME).await?;
        controller.ensure_running()
    }

    fn kills(&self) -> usize {
        self.tally.values().map(|tally| tally.hit + tally.missed).sum()
    }

    /// Prints one line per point.
    fn print(&self) {
        for point in Point::ALL {
            let Tally { hit, missed } = self.tally.get(&point).copied().unwrap_or_default();
            let missed = if missed > 0 { format!(", {missed} times over too soon") } else { String::new() };
            println!("{point:<40} {hit:>4} kills{missed}");
        }
    }
}

#[tokio::test]
async fn a_controller_killed_at_every_stage_buys_nothing_twice_and_leaves_nothing_behind() {
    let wanted: usize = measurement::variable("KILLS", 0).unwrap();
    let mut scene = Scene::start().await.unwrap();
    let witness = Witness::start(&scene.cluster).await.unwrap();
    let mut passes = 0;
    while passes == 0 || scene.kills() < wanted {
        scene.buy().await.unwrap();
        scene.replace().await.unwrap();
        scene.give_back().await.unwrap();
        passes += 1;
        let account = witness.account_of([0, 0, 0]).await.unwrap();
        // The nodes bought first, and their replacements.
        let needed = 2 * NODES * passes;
        for (what, seen) in
            [("instances", &account.instances), ("nodes", &account.nodes), ("claims", &account.claims)]
        {
            assert!(seen.doubled().is_empty(), "pass {passes}: {what} doubled: {:?}", seen.doubled());
            assert_eq!(seen.ever(), needed, "pass {passes}: {what} there ever were");
            assert!(seen.most() <= 2 * NODES, "pass {passes}: {} {what} at a time", seen.most());
        }
    }
    scene.print();
    let bought = witness.account().unwrap().instances.ever();
    println!(
        "{} kills; passes: {passes}; {bought} instances bought for {} that were needed; none doubled, none left behind",
        scene.kills(),
        2 * NODES * passes
    );
    let never: Vec<String> = Point::ALL
        .iter()
        .filter(|point| scene.tally.get(point).is_none_or(|tally| tally.hit == 0))
        .map(ToString::to_string)
        .collect();
    assert!(never.is_empty(), "never hit: {never:?}");
}
