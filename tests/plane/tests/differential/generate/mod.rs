//! Random cases. Each draws a few rules, so that all pairs of rules occur and most cases stay small.

mod pods;
mod rules;

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::case::{Case, Kind, NAMESPACES, PROFILES};
use crate::dice::Dice;
pub use rules::Rule;

/// The zones of the region.
const ZONES: [&str; 3] = ["a", "b", "c"];

/// The instance types: name, cores, GiB, GPUs, cents per hour.
const KINDS: [(&str, u64, u64, u32, u64); 5] = [
    ("c1.small", 2, 8, 0, 10),
    ("c1.large", 8, 32, 0, 37),
    ("m1.medium", 4, 32, 0, 25),
    ("g1.small", 4, 16, 1, 100),
    ("g1.large", 16, 64, 4, 390),
];

/// The state of generating a case.
pub struct Maker {
    dice: Dice,
    rules: BTreeSet<Rule>,
    /// The application of the current pod. Most rules select pods of the same application.
    app: &'static str,
}

/// Returns the case of a seed. `favoured` rules are in nearly every case and `avoided` ones in none. The others are drawn with
/// the probability [`Rule::share`].
pub fn case(seed: u64, favoured: &[Rule], avoided: &[Rule]) -> Case {
    let mut dice = Dice::new(seed);
    let share = |rule: &Rule| if favoured.contains(rule) { 90 } else { rule.share() };
    // Profiles have a generator of their own, so that old seeds still make their old cases apart from profiles.
    let mut profiles = Dice::new(!seed);
    let mut drawn = |rule: &Rule| {
        let dice = if *rule == Rule::Profiles { &mut profiles } else { &mut dice };
        dice.chance(share(rule)) && !avoided.contains(rule)
    };
    let rules: BTreeSet<Rule> = Rule::ALL.into_iter().filter(|rule| drawn(rule)).collect();
    let has_profiles = rules.contains(&Rule::Profiles);
    let mut maker = Maker { dice, rules, app: "" };
    let kinds = maker.kinds();
    let pools = maker.pools();
    let nodes = maker.nodes();
    let daemonsets = maker.daemonsets();
    let running = maker.running(&nodes);
    let mut waiting = maker.waiting();
    for pod in waiting.iter_mut().filter(|_| has_profiles) {
        if profiles.chance(70) {
            pod["spec"]["schedulerName"] = json!(profiles.pick(&PROFILES));
        }
    }
    let (reserved, last_offering) = (maker.dice.chance(25), maker.dice.chance(25));
    let (note, seed) = (String::new(), Some(seed));
    Case { note, seed, reserved, last_offering, kinds, pools, nodes, daemonsets, running, waiting }
}

impl Maker {
    /// Draws whether an object gets a rule, which it never gets if the case does not have the rule.
    fn applies(&mut self, rule: Rule, percent: u64) -> bool {
        self.rules.contains(&rule) && self.dice.chance(percent)
    }

    fn kinds(&mut self) -> Vec<Kind> {
        let all = self.dice.some(&KINDS);
        let mut kinds = Vec::new();
        for (name, cores, memory_gib, gpus, cents) in all {
            let mut prices = std::collections::BTreeMap::new();
            for zone in self.dice.some(&ZONES) {
                let cents = cents + self.dice.number(0, 1) * cents / 10;
                prices.insert(zone.to_owned(), format!("{}.{:02}", cents / 100, cents % 100));
            }
            let pods = self.dice.pick(&[4, 110, 110]);
            kinds.push(Kind { name: name.to_owned(), cores, memory_gib, gpus, pods, prices });
        }
        kinds
    }

    fn pools(&mut self) -> Vec<Value> {
        let count = self.dice.pick(&[1, 1, 2, 3]);
        (0..count).map(|at| self.pool(at)).collect()
    }

    fn pool(&mut self, at: usize) -> Value {
        let mut spec = json!({
            "nodeClassRef": {"group": "poolwright.dev", "kind": "KwokNodeClass", "name": "default"},
        });
        if self.applies(Rule::Taints, 40) {
            spec["taints"] = json!(self.taints());
        }
        let mut requirements = Vec::new();
        if self.dice.chance(25) {
            let zones = self.dice.some(&ZONES);
            requirements
                .push(json!({"key": "topology.kubernetes.io/zone", "operator": "In", "values": zones}));
        }
        if self.dice.chance(15) {
            requirements
                .push(json!({"key": "poolwright.dev/instance-cpu", "operator": "Gt", "values": ["2"]}));
        }
        spec["requirements"] = json!(requirements);
        let mut labels = json!({});
        if self.dice.chance(50) {
            labels["disk"] = json!(self.dice.pick(&["ssd", "hdd"]));
        }
        if self.dice.chance(40) {
            labels["rack"] = json!(self.dice.pick(&["r1", "r2"]));
        }
        let mut pool = json!({
            "apiVersion": "poolwright.dev/v1alpha1", "kind": "NodePool",
            "metadata": {"name": format!("pool{at}")},
            "spec": {"template": {"metadata": {"labels": labels}, "spec": spec}},
        });
        if self.applies(Rule::Weights, 70) {
            pool["spec"]["weight"] = json!(self.dice.number(0, 2));
        }
        if self.applies(Rule::Limits, 60) {
            pool["spec"]["limits"] = json!({"nodes": self.dice.number(0, 2).to_string()});
        }
        pool
    }

    fn taints(&mut self) -> Vec<Value> {
        let effects = ["NoSchedule", "NoSchedule", "NoExecute", "PreferNoSchedule"];
        let kinds = [("gpu", "present"), ("team", "red"), ("team", "blue")];
        let mut taints: Vec<Value> = Vec::new();
        for _ in 0..self.dice.number(1, 2) {
            let ((key, value), effect) = (self.dice.pick(&kinds), self.dice.pick(&effects));
            // A node has at most one taint of a key and an effect.
            if !taints.iter().any(|taint| taint["key"] == key && taint["effect"] == effect) {
                taints.push(json!({"key": key, "value": value, "effect": effect}));
            }
        }
        taints
    }

    fn nodes(&mut self) -> Vec<Value> {
        let count = self.dice.number(0, 7);
        (0..count).map(|at| self.node(&format!("n{at}"))).collect()
    }

    fn node(&mut self, name: &str) -> Value {
        let (kind, cores, memory, gpus, _) = self.dice.pick(&KINDS);
        let odd = self.applies(Rule::OddNodes, 30);
        let mut labels = json!({
            "kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux",
            "node.kubernetes.io/instance-type": kind, "poolwright.dev/instance-cpu": cores.to_string(),
        });
        if !odd || self.dice.chance(50) {
            labels["kubernetes.io/hostname"] = json!(name);
        } else if self.dice.chance(50) {
            // Several nodes may share this host name.
            labels["kubernetes.io/hostname"] = json!("host");
        }
        if !odd || self.dice.chance(50) {
            labels["topology.kubernetes.io/zone"] = json!(self.dice.pick(&ZONES));
        }
        if self.dice.chance(50) {
            labels["disk"] = json!(self.dice.pick(&["ssd", "hdd"]));
        }
        if self.dice.chance(50) {
            labels["rack"] = json!(self.dice.pick(&["r1", "r2", "r3"]));
        }
        let mut spec = json!({});
        let mut taints = if self.applies(Rule::Taints, 40) { self.taints() } else { Vec::new() };
        let mut ready = "True";
        if self.applies(Rule::Cordons, 20) {
            if self.dice.chance(50) {
                spec["unschedulable"] = json!(true);
                taints.push(json!({"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}));
            } else {
                ready = "False";
                taints.push(json!({"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}));
            }
        }
        spec["taints"] = json!(taints);
        let pods = self.dice.pick(&["3", "110", "110"]);
        let mut room = json!({"cpu": format!("{cores}"), "memory": format!("{memory}Gi"), "pods": pods});
        if gpus > 0 {
            room["nvidia.com/gpu"] = json!(gpus.to_string());
        }
        json!({
            "apiVersion": "v1", "kind": "Node",
            "metadata": {"name": name, "labels": labels},
            "spec": spec,
            "status": {
                "allocatable": room, "capacity": room,
                "conditions": [{"type": "Ready", "status": ready, "reason": "Case", "message": "as the case has it"}],
            },
        })
    }

    fn daemonsets(&mut self) -> Vec<Value> {
        let count = if self.rules.contains(&Rule::DaemonSets) { self.dice.number(1, 2) } else { 0 };
        (0..count)
            .map(|at| {
                let mut template = self.template();
                // DaemonSets get no rules about other pods: their controller creates a pod on every node regardless of such
                // rules, and the scheduler then leaves it waiting.
                for field in ["affinity", "topologySpreadConstraints", "schedulingGates"] {
                    if let Some(spec) = template["spec"].as_object_mut() {
                        spec.remove(field);
                    }
                }
                template["spec"]["containers"][0]["resources"]["requests"] = json!({"cpu": "200m"});
                template["spec"]["containers"][0]["resources"]["limits"] = json!({});
                template["metadata"].as_object_mut().map(|meta| meta.remove("namespace"));
                json!({
                    "apiVersion": "apps/v1", "kind": "DaemonSet",
                    "metadata": {"name": format!("agent{at}"), "namespace": self.dice.pick(&NAMESPACES)},
                    "spec": {"selector": {"matchLabels": {}}, "template": template},
                })
            })
            .collect()
    }

    fn running(&mut self, nodes: &[Value]) -> Vec<Value> {
        let mut running = Vec::new();
        for node in nodes {
            for _ in 0..self.dice.pick(&[0, 0, 1, 1, 2, 3]) {
                let mut pod = self.template();
                let spec = &mut pod["spec"];
                spec["nodeName"] = node["metadata"]["name"].clone();
                // The pod is already on the node, so these rules must not contradict its place.
                for field in ["nodeSelector", "schedulingGates"] {
                    spec.as_object_mut().map(|spec| spec.remove(field));
                }
                pod["metadata"]["name"] = json!(format!("run{}", running.len()));
                if self.applies(Rule::Leaving, 30) {
                    pod["metadata"]["deletionTimestamp"] = json!("2027-01-15T08:00:00Z");
                    pod["metadata"]["deletionGracePeriodSeconds"] = json!(3600);
                }
                running.push(pod);
            }
        }
        running
    }

    /// Makes a few workloads of equal pods, and single pods.
    fn waiting(&mut self) -> Vec<Value> {
        let mut waiting = Vec::new();
        for group in 0..self.dice.number(1, 4) {
            let template = self.template();
            for at in 0..self.dice.pick(&[1, 1, 2, 3, 4, 5]) {
                let mut pod = template.clone();
                pod["metadata"]["name"] = json!(format!("w{group}-{at}"));
                waiting.push(pod);
            }
        }
        waiting
    }
}
