//! Generates a world from its seed: the catalogue, pools, pods and faults of whole processes.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use poolwright_catalog::{Catalogue, ResourceName, builtin};
use poolwright_terms::{CapacityType, labels};
use serde_json::{Value, json};

use crate::cloud::{NODE_CLASS, NODE_CLASS_KIND, Quotas};
use crate::cluster::{JobPlan, NAMESPACE};
use crate::dice::Dice;
use crate::malformed::SORTS;
use crate::work::{with_lives, with_rules};

/// The instance types: few, so that worlds are quick to play, but of each sort. The price of the last is unknown.
const TYPES: [&str; 7] = [
    "m6i.xlarge",
    "g4dn.xlarge",
    "g4dn.12xlarge",
    "g5.xlarge",
    "g5.12xlarge",
    "p4d.24xlarge",
    "a3-highgpu-1g",
];
/// The zones.
const ZONES: [&str; 3] = ["us-east-1a", "us-east-1b", "us-central1"];

/// The schedule of pools' buffers: it starts just before the world.
const BUFFER_FROM: &str = "26 20 28 5 *";
/// The name of the pool with a fixed number of nodes.
pub(crate) const STATIC_POOL: &str = "fixed";
/// When buffers have ended, even by a controller's wrong calendar.
pub(crate) const BUFFER_UNTIL: Duration = Duration::from_mins(40);

/// A fault of a whole process or of the API server, or an action of a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blow {
    /// A controller crashes. It restarts after a while, with the same or a new identity.
    Crash {
        /// The index of the controller.
        replica: usize,
        /// The downtime.
        away: Duration,
        /// Whether it restarts under a new identity, like a new pod.
        renamed: bool,
    },
    /// A controller is cut off from everything for a while.
    Cut {
        /// The index of the controller.
        replica: usize,
        /// The duration.
        length: Duration,
    },
    /// The calendar of a controller's machine jumps, and is corrected after a while.
    Jump {
        /// The index of the controller.
        replica: usize,
        /// The jump in seconds.
        seconds: i64,
        /// The duration until it is corrected.
        length: Duration,
    },
    /// A user changes a pool, so that all its nodes drift.
    Change {
        /// The number of the change.
        number: usize,
    },
    /// A user deletes a claim.
    Withdraw {
        /// The index among the existing claims.
        number: usize,
    },
    /// The API server forgets its history: interrupted watches must list again.
    Compact,
    /// An unreadable object appears.
    Malformed {
        /// Its sort.
        sort: usize,
        /// Its number.
        number: usize,
    },
}

/// A generated world.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// The offerings.
    pub catalogue: Arc<Catalogue>,
    /// The quotas.
    pub quotas: Quotas,
    /// The initial objects: node classes and pools.
    pub objects: Vec<Value>,
    /// The future work.
    pub jobs: Vec<JobPlan>,
    /// The number of controllers.
    pub replicas: usize,
    /// Faults of whole processes and actions of users, with their times.
    pub blows: Vec<(Duration, Blow)>,
    /// How long faults happen.
    pub chaos: Duration,
}

/// Returns the catalogue of all worlds.
fn catalogue() -> Arc<Catalogue> {
    static SOLD: OnceLock<Arc<Catalogue>> = OnceLock::new();
    let sold = || {
        let keep = |name: &str, zone: &str| TYPES.contains(&name) && ZONES.contains(&zone);
        Arc::new(builtin().filtered(|kind, offering| keep(kind.name.as_str(), offering.id.zone.as_str())))
    };
    SOLD.get_or_init(sold).clone()
}

impl Scenario {
    /// Generates the world of a seed, with this many faults of whole processes per hour.
    pub fn draw(seed: u64, blows_per_hour: u32) -> Self {
        let mut dice = Dice::new(seed, "scenario");
        let chaos = Duration::from_mins(40);
        let replicas = 1 + dice.below(2);
        // Rules have their own dice, so that a new rule changes nothing else in a world.
        let rules = |number: usize| Dice::nth(seed, "rules", u64::try_from(number).unwrap_or(0));
        let jobs = (0..2 + dice.below(7))
            .map(|number| {
                let job = with_rules(job(&mut dice, number), &mut rules(number));
                with_lives(job, &mut Dice::nth(seed, "lives", u64::try_from(number).unwrap_or(0)))
            })
            .collect();
        let mut blows: Vec<(Duration, Blow)> = Vec::new();
        let most = chaos.as_secs() * u64::from(blows_per_hour) / 3600;
        for number in 0..dice.below(usize::try_from(most * 2).unwrap_or(0) + 1) {
            let at = dice.between(Duration::from_secs(5), chaos);
            blows.push((at, blow(&mut dice, replicas, number)));
        }
        let mut of_change = Dice::new(seed, "changes");
        if most > 0 && of_change.per_mille(250) {
            let at = of_change.between(Duration::from_mins(3), chaos);
            blows.push((at, Blow::Change { number: blows.len() }));
        }
        blows.sort_by_key(|(at, _)| *at);
        let (catalogue, objects) = (catalogue(), objects(&mut dice, seed));
        let quotas = quotas(&mut Dice::new(seed, "quotas"), &catalogue);
        Self { catalogue, quotas, objects, jobs, replicas, blows, chaos }
    }
}

/// Draws quotas for some families: one to three machines of the largest type, so that all work can be done in the end.
fn quotas(dice: &mut Dice, catalogue: &Catalogue) -> Quotas {
    let mut largest: BTreeMap<&str, u64> = BTreeMap::new();
    for kind in catalogue.types().values() {
        let most = largest.entry(kind.family()).or_default();
        *most = (*most).max(kind.allocatable.get(ResourceName::CPU).div_ceil(1_000));
    }
    let mut quotas = Quotas::new();
    for (family, processors) in largest {
        for capacity in [CapacityType::Spot, CapacityType::OnDemand] {
            if dice.per_mille(300) {
                let machines = 1 + u64::try_from(dice.below(3)).unwrap_or(0);
                quotas.insert((family.to_owned(), capacity), processors * machines);
            }
        }
    }
    quotas
}

fn job(dice: &mut Dice, number: usize) -> JobPlan {
    let gpus = *dice.pick(&[0, 1, 1, 1, 2, 4, 8]).unwrap_or(&1);
    let cpu = *dice.pick(&["500m", "1", "2", "3"]).unwrap_or(&"1");
    let memory = *dice.pick(&["512Mi", "2Gi", "8Gi"]).unwrap_or(&"2Gi");
    let mut resources = json!({"cpu": cpu, "memory": memory});
    let mut limits = json!({});
    if gpus > 0 {
        resources[ResourceName::NVIDIA_GPU] = json!(gpus.to_string());
        limits[ResourceName::NVIDIA_GPU] = json!(gpus.to_string());
    }
    let container = json!({"name": "work", "image": "work",
        "resources": {"requests": resources, "limits": limits}});
    let spec = json!({"restartPolicy": "Never", "containers": [container],
        "terminationGracePeriodSeconds": 10,
        "tolerations": [{"key": ResourceName::NVIDIA_GPU, "operator": "Exists"}]});
    JobPlan {
        name: format!("job-{number}"),
        namespace: "default".to_owned(),
        labels: BTreeMap::new(),
        arrives: dice.between(Duration::from_secs(1), Duration::from_mins(25)),
        pods: 1 + u32::try_from(dice.below(if gpus >= 4 { 2 } else { 6 })).unwrap_or(0),
        spec,
        length: Some(dice.between(Duration::from_secs(20), Duration::from_mins(10))),
        declares: None,
        ran_before: Duration::ZERO,
        gated: None,
        protected: false,
        at_least: None,
        kept: None,
        never: false,
        volume_in: None,
        is_set: false,
    }
}

fn objects(dice: &mut Dice, seed: u64) -> Vec<Value> {
    let class = json!({"apiVersion": poolwright_terms::API_VERSION, "kind": NODE_CLASS_KIND,
        "metadata": {"name": NODE_CLASS}, "spec": {}});
    let mut of_money = Dice::new(seed, "money");
    let mut of_time = Dice::new(seed, "termination");
    let mut of_disruption = Dice::new(seed, "disruption");
    let mut of_policy = Dice::new(seed, "policy");
    let mut of_buffer = Dice::new(seed, "buffer");
    let mut of_start = Dice::new(seed, "start");
    let mut of_types = Dice::new(seed, "types");
    let mut of_repair = Dice::new(seed, "repair");
    let mut pool = |name: &str, dice: &mut Dice| {
        let spot = dice.per_mille(500);
        let types: &[&str] = if spot { &["spot", "on-demand"] } else { &["on-demand"] };
        let mut spec = json!({
            "template": {"spec": {
                "nodeClassRef": {"group": "poolwright.dev", "kind": NODE_CLASS_KIND, "name": NODE_CLASS},
                "requirements": [{"key": labels::CAPACITY_TYPE, "operator": "In", "values": types}],
                "deadlines": {"launch": "5m", "registration": "5m", "initialization": "5m"},
            }},
            "scaleToZero": {"after": *dice.pick(&["30s", "1m", "3m", "auto"]).unwrap_or(&"auto")},
            "weight": dice.below(3),
        });
        if of_money.per_mille(250) {
            // More than the most expensive node costs, so that all work can be done in the end.
            spec["limits"] = json!({"usdPerHour": *of_money.pick(&["45", "60", "90"]).unwrap_or(&"60")});
        }
        if of_time.per_mille(300) {
            spec["template"]["spec"]["deadlines"]["termination"] = json!(of_time.pick(&["3m", "15m"]));
        }
        if of_disruption.per_mille(400) {
            spec["disruption"] = json!({
                "consolidationPolicy": "WhenEmptyOrUnderutilized",
                "consolidateAfter": of_disruption.pick(&["10s", "1m", "5m"]),
                "paybackWithin": of_disruption.pick(&["1h", "10h"]),
                "budgets": [{"nodes": of_disruption.pick(&["1", "2", "6"]), "reasons": ["Underutilized", "Drifted", "Expired"]}],
            });
            if of_disruption.per_mille(300) {
                let one = json!({"nodes": "1", "reasons": ["Empty"]});
                spec["disruption"]["budgets"].as_array_mut().unwrap_or(&mut Vec::new()).push(one);
            }
        } else if of_policy.per_mille(500) {
            spec["disruption"] = json!({"consolidationPolicy": "WhenEmpty"});
        }
        if of_buffer.per_mille(150) {
            let requests = match of_buffer.below(3) {
                0 => json!({"cpu": "1", (ResourceName::NVIDIA_GPU): "1"}),
                1 => json!({"cpu": "2", "memory": "4Gi"}),
                _ => json!({(ResourceName::NVIDIA_GPU): "4"}),
            };
            spec["buffer"] = json!([{"units": 1 + of_buffer.below(2), "requests": requests,
                "schedule": BUFFER_FROM, "duration": "30m"}]);
        }
        if of_repair.per_mille(400) {
            spec["disruption"]["repair"] =
                json!([{"condition": "Ready", "status": "Unknown", "after": "5m"}]);
        }
        // Longer than any pod runs: otherwise nodes would expire before their work is done.
        if of_disruption.per_mille(150) {
            spec["template"]["spec"]["expireAfter"] = json!(of_disruption.pick(&["20m", "35m"]));
        }
        if dice.per_mille(400) {
            spec["limits"] = json!({(ResourceName::NVIDIA_GPU): *dice.pick(&["8", "12", "16"]).unwrap_or(&"8"), "nodes": "6"});
        }
        if dice.per_mille(300) {
            spec["template"]["spec"]["taints"] =
                json!([{"key": ResourceName::NVIDIA_GPU, "value": "present", "effect": "NoSchedule"}]);
        }
        // Agents of the node end these taints and set these conditions.
        if of_start.per_mille(200) {
            spec["template"]["spec"]["startupTaints"] =
                json!([{"key": "example.com/agent", "effect": of_start.pick(&["NoSchedule", "NoExecute"])}]);
        }
        if of_start.per_mille(150) {
            spec["template"]["spec"]["readinessGates"] =
                json!([{"conditionType": "example.com/NetworkReady"}]);
        }
        // One type only, which takes all work: if it is out of stock, everything waits for it.
        if of_types.per_mille(100) {
            let only = json!({"key": labels::INSTANCE_TYPE, "operator": "In", "values": ["p4d.24xlarge"]});
            if let Some(all) = spec["template"]["spec"]["requirements"].as_array_mut() {
                all.push(only);
            }
        }
        node_pool(name, &spec)
    };
    let mut objects = vec![class, pool("first", dice)];
    if dice.per_mille(400) {
        objects.push(pool("second", dice));
    }
    objects.extend(static_pool(&mut Dice::new(seed, "static")));
    let mut of_daemons = Dice::new(seed, "daemons");
    objects.extend((0..of_daemons.below(3)).map(|number| daemon_set(&mut of_daemons, number)));
    objects
}

fn node_pool(name: &str, spec: &Value) -> Value {
    json!({"apiVersion": poolwright_terms::API_VERSION, "kind": "NodePool", "metadata": {"name": name}, "spec": spec})
}

/// Draws a pool with a fixed number of nodes in some worlds.
fn static_pool(dice: &mut Dice) -> Option<Value> {
    let types = [dice.pick(&["m6i.xlarge", "g4dn.xlarge"])];
    let spec = json!({
        "replicas": 1 + dice.below(2),
        "template": {"spec": {
            "nodeClassRef": {"group": "poolwright.dev", "kind": NODE_CLASS_KIND, "name": NODE_CLASS},
            "requirements": [
                {"key": labels::CAPACITY_TYPE, "operator": "In", "values": ["on-demand"]},
                {"key": labels::INSTANCE_TYPE, "operator": "In", "values": types},
            ],
            "deadlines": {"launch": "5m", "registration": "5m", "initialization": "5m"},
        }},
    });
    dice.per_mille(200).then(|| node_pool(STATIC_POOL, &spec))
}

/// Draws a DaemonSet. Its pods run on nodes of one capacity type or on all, and either tolerate everything, as agents do, or only
/// the taint of GPU nodes.
fn daemon_set(dice: &mut Dice, number: usize) -> Value {
    let name = format!("agent-{number}");
    let requests = json!({"cpu": dice.pick(&["50m", "200m"]), "memory": dice.pick(&["64Mi", "512Mi"])});
    let tolerations = if dice.per_mille(500) {
        json!([{"operator": "Exists"}])
    } else {
        json!([{"key": ResourceName::NVIDIA_GPU, "operator": "Exists"}])
    };
    let mut spec = json!({"containers": [{"name": "agent", "image": "agent", "resources": {"requests": requests}}],
        "tolerations": tolerations});
    if dice.per_mille(300) {
        spec["nodeSelector"] = json!({(labels::CAPACITY_TYPE): dice.pick(&["spot", "on-demand"])});
    }
    let labels = json!({"agent": name});
    json!({"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": spec}}})
}

fn blow(dice: &mut Dice, replicas: usize, number: usize) -> Blow {
    let replica = dice.below(replicas);
    match dice.below(16) {
        0..=4 => Blow::Crash {
            replica,
            away: dice.between(Duration::from_millis(100), Duration::from_mins(1)),
            renamed: dice.per_mille(400),
        },
        5..=6 => Blow::Cut { replica, length: dice.between(Duration::from_secs(1), Duration::from_secs(90)) },
        7..=8 => {
            let seconds = i64::try_from(dice.below(1200)).unwrap_or(0) - 600;
            let length = dice.between(Duration::from_secs(1), Duration::from_mins(5));
            Blow::Jump { replica, seconds, length }
        }
        9 => Blow::Compact,
        10..=13 => Blow::Withdraw { number: dice.below(100) },
        _ => Blow::Malformed { sort: dice.below(SORTS), number },
    }
}
