//! Generates a world from its seed: the catalogue, pools, pods and faults of whole processes.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use poolwright_catalog::{Catalogue, OfferingId, ResourceName, builtin};
use poolwright_terms::{CapacityType, labels};
use serde_json::{Value, json};

use crate::cloud::{NODE_CLASS, NODE_CLASS_KIND, Quotas, Reservation};
use crate::cluster::{JobPlan, NAMESPACE};
use crate::dice::Dice;
use crate::malformed::SORTS;
use crate::poison;
use crate::work::{as_gang, pod_spec, too_large_gang, vast, with_lives, with_rules};

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
pub(crate) const BUFFER_FROM: &str = "26 20 28 5 *";
/// The name of the pool with a fixed number of nodes.
pub(crate) const STATIC_POOL: &str = "fixed";
/// The name of the pool that some worlds have besides the first.
const SECOND_POOL: &str = "second";
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
    /// Instances that are paid for in advance.
    pub reservation: Option<Reservation>,
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
        let (catalogue, mut objects) = (catalogue(), objects(&mut dice, seed));
        let quotas = quotas(&mut Dice::new(seed, "quotas"), &catalogue);
        let jobs = with_gangs(jobs, &mut objects, seed);
        let jobs = with_vast(jobs, &mut objects, &mut Dice::new(seed, "vast"));
        let jobs = with_poison(jobs, &mut Dice::new(seed, "poison"));
        leave_choice(&mut objects, &mut Dice::new(seed, "choices"));
        let reservation = reservation(&mut Dice::new(seed, "prepaid"), &catalogue, &mut objects);
        Self { catalogue, quotas, reservation, objects, jobs, replicas, blows, chaos }
    }
}

/// Returns the pools whose size follows the work.
fn pools(objects: &mut [Value]) -> impl Iterator<Item = &mut Value> {
    objects.iter_mut().filter(|object| object["kind"] == "NodePool" && object["spec"]["replicas"].is_null())
}

/// Makes some Jobs of some worlds gangs, and adds a gang to some that no pool may hold.
fn with_gangs(jobs: Vec<JobPlan>, objects: &mut [Value], seed: u64) -> Vec<JobPlan> {
    let has_gangs = Dice::new(seed, "together").per_mille(300);
    let numbered = (0..).zip(jobs);
    let mut jobs: Vec<JobPlan> = numbered
        .map(|(number, job)| if has_gangs { as_gang(job, &mut Dice::nth(seed, "gang", number)) } else { job })
        .collect();
    // The GPUs that all pools may have; `None` if one of them has no limit.
    let gpus: Option<u32> = pools(objects)
        .map(|pool| pool["spec"]["limits"][ResourceName::NVIDIA_GPU].as_str()?.parse::<u32>().ok())
        .sum();
    let mut of_large = Dice::new(seed, "too large");
    if let Some(gpus) = gpus.filter(|_| of_large.per_mille(400)) {
        jobs.push(too_large_gang(gpus, &mut of_large));
    }
    jobs
}

/// Adds an object to some worlds that asks for a million pods. Its pools have a limit on nodes then.
fn with_vast(mut jobs: Vec<JobPlan>, objects: &mut [Value], dice: &mut Dice) -> Vec<JobPlan> {
    if dice.per_mille(120) {
        for pool in pools(objects) {
            pool["spec"]["limits"]["nodes"] = json!("6");
        }
        jobs.push(vast(dice));
    }
    jobs
}

/// Adds a Job to some worlds with whose pods plans fail.
fn with_poison(mut jobs: Vec<JobPlan>, dice: &mut Dice) -> Vec<JobPlan> {
    if dice.per_mille(120) {
        jobs.push(poison::job(dice));
    }
    jobs
}

/// Lets the cloud choose the type or zone of nodes of some second pools. The first pool takes all work, whatever there is to choose.
fn leave_choice(objects: &mut [Value], dice: &mut Dice) {
    let (wanted, of_types) = (dice.per_mille(500), dice.per_mille(600));
    let (key, least) = if of_types { (labels::INSTANCE_TYPE, 2 + dice.below(2)) } else { (labels::ZONE, 2) };
    let second = pools(objects).find(|pool| pool["metadata"]["name"] == SECOND_POOL);
    let Some(spec) = second.filter(|_| wanted).map(|pool| &mut pool["spec"]) else { return };
    if let Some(all) = spec["template"]["spec"]["requirements"].as_array_mut() {
        all.push(json!({"key": key, "operator": "Exists", "minValues": least}));
    }
}

/// Draws a reservation of some worlds, and lets all pools use it.
fn reservation(dice: &mut Dice, catalogue: &Catalogue, objects: &mut [Value]) -> Option<Reservation> {
    let all = catalogue.offerings().iter().map(|offering| &offering.id);
    // No on-demand price is known in the last zone.
    let sold: Vec<&OfferingId> =
        all.filter(|id| id.capacity_type == CapacityType::OnDemand && id.zone.as_str() != ZONES[2]).collect();
    let wanted = dice.per_mille(180);
    let id = (*dice.pick(&sold).filter(|_| wanted)?).clone();
    let instances = 1 + u32::try_from(dice.below(3)).unwrap_or(0);
    let ends = dice.between(Duration::from_mins(20), Duration::from_hours(1));
    for pool in pools(objects) {
        if let Some(types) = pool["spec"]["template"]["spec"]["requirements"][0]["values"].as_array_mut() {
            types.push(json!(CapacityType::Reserved.as_str()));
        }
    }
    let offering = OfferingId { capacity_type: CapacityType::Reserved, ..id };
    Some(Reservation { offering, instances, ends: dice.per_mille(500).then_some(ends) })
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
    let arrives = dice.between(Duration::from_secs(1), Duration::from_mins(25));
    let pods = 1 + u32::try_from(dice.below(if gpus >= 4 { 2 } else { 6 })).unwrap_or(0);
    let length = Some(dice.between(Duration::from_secs(20), Duration::from_mins(10)));
    JobPlan { length, ..JobPlan::new(format!("job-{number}"), arrives, pods, pod_spec(cpu, memory, gpus)) }
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
        objects.push(pool(SECOND_POOL, dice));
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns how many of eighty worlds are so.
    fn count(is: impl Fn(&Scenario) -> bool) -> usize {
        (1..=80).filter(|seed| is(&Scenario::draw(*seed, 0))).count()
    }

    #[test]
    fn some_worlds_have_each_rare_kind_of_work_pool_and_reservation() {
        let has_job = |world: &Scenario, is: fn(&JobPlan) -> bool| world.jobs.iter().any(is);
        let gangs = count(|world| has_job(world, |job| job.gang.is_some() && !job.never));
        let too_large = count(|world| has_job(world, |job| job.gang.is_some() && job.never));
        let vast = count(|world| has_job(world, |job| job.asks == Some(1_000_000)));
        let chosen = count(|world| world.objects.iter().any(|one| one.to_string().contains("minValues")));
        let reserved = count(|world| world.reservation.is_some());
        let poisoned = count(|world| has_job(world, |job| job.is_withdrawn));
        for number in [gangs, too_large, vast, chosen, reserved, poisoned] {
            assert!(number >= 3, "{:?}", [gangs, too_large, vast, chosen, reserved, poisoned]);
        }
    }

    #[test]
    fn an_object_that_asks_for_a_million_pods_meets_limits_on_nodes() {
        let is_limited = |object: &Value| object["spec"]["limits"]["nodes"] == "6";
        let is_vast = |world: &Scenario| world.jobs.iter().any(|job| job.asks.is_some());
        let without =
            count(|world| is_vast(world) && !pools(&mut world.objects.clone()).all(|pool| is_limited(pool)));
        assert_eq!(without, 0);
    }
}
