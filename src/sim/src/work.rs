//! The scheduling rules of generated pods: affinity, priorities, gates, and pods that can never run.

use std::time::Duration;

use poolwright_catalog::ResourceName;
use poolwright_terms::labels;
use serde_json::{Value, json};

use crate::cluster::JobPlan;
use crate::dice::Dice;

/// The priorities of some work.
const PRIORITIES: [i32; 2] = [100, 1_000];

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

fn spread(over: &str, like_it: &Value) -> Value {
    json!({"maxSkew": 1, "topologyKey": over, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": like_it})
}
