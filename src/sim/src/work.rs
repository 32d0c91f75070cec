//! Generated work: the scheduling rules of pods (affinity, priorities, gates, gangs, and pods that can never run), and objects that
//! ask for more than any cluster can hold.

use std::time::Duration;

use poolwright_catalog::ResourceName;
use poolwright_terms::labels;
use serde_json::{Value, json};

use crate::cluster::JobPlan;
use crate::dice::Dice;

/// The priorities of some work.
const PRIORITIES: [i32; 2] = [100, 1_000];

/// Returns the spec of pods that request this much.
pub(crate) fn pod_spec(cpu: &str, memory: &str, gpus: u32) -> Value {
    let mut requests = json!({"cpu": cpu, "memory": memory});
    let mut limits = json!({});
    if gpus > 0 {
        requests[ResourceName::NVIDIA_GPU] = json!(gpus.to_string());
        limits[ResourceName::NVIDIA_GPU] = json!(gpus.to_string());
    }
    let container = json!({"name": "work", "image": "work",
        "resources": {"requests": requests, "limits": limits}});
    json!({"restartPolicy": "Never", "containers": [container],
        "terminationGracePeriodSeconds": 10,
        "tolerations": [{"key": ResourceName::NVIDIA_GPU, "operator": "Exists"}]})
}

/// Adds random rules to a Job.
pub(crate) fn with_rules(mut plan: JobPlan, dice: &mut Dice) -> JobPlan {
    let like_it = json!({"matchLabels": {"job": plan.name}});
    if dice.per_mille(200) {
        plan.spec["priority"] = json!(dice.pick(&PRIORITIES));
    }
    match dice.below(20) {
        // One pod per node, by one of three different rules.
        0 => plan.spec["topologySpreadConstraints"] = json!([spread("kubernetes.io/hostname", &like_it)]),
        1 | 2 => {
            let term = json!({"topologyKey": "kubernetes.io/hostname", "labelSelector": like_it});
            plan.spec["affinity"] =
                json!({"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}});
        }
        3 => plan.spec["containers"][0]["ports"] = json!([{"containerPort": 80, "hostPort": 8_080}]),
        4 => {
            plan.spec["topologySpreadConstraints"] = json!([spread(labels::ZONE, &like_it)]);
        }
        5 | 6 => plan.gated = Some(dice.between(Duration::from_secs(1), Duration::from_mins(15))),
        7 if dice.per_mille(500) => {
            plan.spec["nodeSelector"] = json!({(labels::ZONE): "nowhere"});
            plan.never = true;
        }
        7 => {
            for part in ["requests", "limits"] {
                plan.spec["containers"][0]["resources"][part][ResourceName::NVIDIA_GPU] = json!("64");
            }
            plan.never = true;
        }
        8..=10 => {
            plan.is_set = true;
            plan.length = plan.length.map(|length| length * 2);
        }
        _ => {}
    }
    if dice.per_mille(120) {
        plan.volume_in = dice.pick(&["us-east-1a", "us-east-1b"]).map(|zone| (*zone).to_owned());
    }
    plan.protected = dice.per_mille(150);
    if dice.per_mille(250) {
        plan.at_least = Some(plan.pods - u32::from(dice.per_mille(700)));
    }
    if dice.per_mille(300) {
        plan.kept = Some(dice.between(Duration::ZERO, Duration::from_mins(5)));
    }
    if plan.gated.is_some() || (plan.never && dice.per_mille(200)) {
        plan.spec["schedulingGates"] = json!([{"name": "example.com/held"}]);
    }
    plan
}

/// Makes some pods run longer, and lets some declare how long they run: about right, or wrong by a factor of a hundred.
pub(crate) fn with_lives(mut plan: JobPlan, dice: &mut Dice) -> JobPlan {
    let Some(length) = plan.length else { return plan };
    if dice.per_mille(250) {
        // Shorter than nodes live that expire.
        plan.length = Some((length * 3).min(Duration::from_mins(18)));
    }
    plan.declares = match dice.below(6) {
        0 => plan.length,
        1 => Some(length * 100),
        2 => Some(length / 100),
        _ => None,
    };
    plan
}

/// The most GPUs of a gang: those of the largest type, so that it can be had even where a quota or limit leaves one machine.
const GANG_GPUS: u32 = 8;

/// Makes half of the Jobs gangs whose pods can share a node and are not held by gates.
pub(crate) fn as_gang(plan: JobPlan, dice: &mut Dice) -> JobPlan {
    let is_gang = dice.per_mille(500);
    let some = 1 + u32::try_from(dice.below(plan.pods as usize)).unwrap_or(0);
    let least = if dice.per_mille(600) { plan.pods } else { some };
    let container = &plan.spec["containers"][0];
    let gpus = container["resources"]["limits"][ResourceName::NVIDIA_GPU].as_str();
    let gpus: u32 = gpus.and_then(|gpus| gpus.parse().ok()).unwrap_or(0);
    let spec = &plan.spec;
    let rules = [&spec["topologySpreadConstraints"], &spec["affinity"], &spec["schedulingGates"]];
    let is_alone = rules.iter().all(|rule| rule.is_null()) && container["ports"].is_null();
    let fits = plan.pods > 1 && gpus * plan.pods <= GANG_GPUS;
    if is_gang && is_alone && fits && !plan.is_set { in_group(plan, least) } else { plan }
}

/// Returns a gang of pods with four GPUs each, for which this many GPUs are not enough.
pub(crate) fn too_large_gang(gpus: u32, dice: &mut Dice) -> JobPlan {
    let arrives = dice.between(Duration::from_secs(1), Duration::from_mins(25));
    let pods = gpus / 4 + 1;
    let plan = JobPlan::new("large", arrives, pods, pod_spec("1", "2Gi", 4));
    in_group(JobPlan { length: Some(Duration::from_mins(1)), never: true, ..plan }, pods)
}

/// Puts the pods of a Job into a PodGroup of its name.
fn in_group(mut plan: JobPlan, least: u32) -> JobPlan {
    plan.spec["schedulingGroup"] = json!({"podGroupName": plan.name});
    JobPlan { gang: Some(least), ..plan }
}

/// Returns an object that asks for a million pods, of which something like a ResourceQuota allows only one.
pub(crate) fn vast(dice: &mut Dice) -> JobPlan {
    let arrives = dice.between(Duration::from_secs(1), Duration::from_mins(25));
    let gpus = u32::from(dice.per_mille(500));
    let plan = JobPlan::new("vast", arrives, 1, pod_spec("1", "2Gi", gpus));
    let kept = dice.between(Duration::from_mins(2), Duration::from_mins(20));
    JobPlan { kept: Some(kept), is_set: dice.per_mille(500), asks: Some(1_000_000), ..plan }
}

fn spread(over: &str, like_it: &Value) -> Value {
    json!({"maxSkew": 1, "topologyKey": over, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": like_it})
}
