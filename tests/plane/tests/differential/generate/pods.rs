//! Generates pod templates.

use serde_json::{Value, json};

use super::{Maker, Rule, ZONES};
use crate::case::NAMESPACES;

const HOST: &str = "kubernetes.io/hostname";
const ZONE: &str = "topology.kubernetes.io/zone";
const APPS: [&str; 3] = ["web", "db", "batch"];

impl Maker {
    /// Returns a pod without a name.
    pub(super) fn template(&mut self) -> Value {
        self.app = self.dice.pick(&APPS);
        let mut labels = json!({"app": self.app});
        if self.dice.chance(50) {
            labels["version"] = json!(self.dice.pick(&["v1", "v2"]));
        }
        let mut container = self.container();
        if self.applies(Rule::HostPorts, 35) {
            container["ports"] = self.ports();
        }
        let mut spec = json!({"containers": [container]});
        if self.applies(Rule::InitContainers, 40) {
            spec["initContainers"] = self.init_containers();
        }
        if self.applies(Rule::Overhead, 40) {
            spec["runtimeClassName"] = json!("sandboxed");
            spec["overhead"] = json!({"cpu": "250m", "memory": "64Mi"});
        }
        if self.applies(Rule::NodeSelector, 35) {
            spec["nodeSelector"] = self.node_selector();
        }
        if self.applies(Rule::Taints, 55) {
            spec["tolerations"] = self.tolerations();
        }
        let affinity = self.affinity();
        if affinity != json!({}) {
            spec["affinity"] = affinity;
        }
        let spreads = self.spreads();
        if !spreads.is_empty() {
            spec["topologySpreadConstraints"] = json!(spreads);
        }
        let namespace = self.dice.pick(&[NAMESPACES[0], NAMESPACES[0], NAMESPACES[1]]);
        json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"namespace": namespace, "labels": labels},
            "spec": spec,
        })
    }

    fn container(&mut self) -> Value {
        let cpu = self.dice.pick(&["100m", "250m", "0.5", "1", "1500m", "3"]);
        let memory = self.dice.pick(&["128Mi", "512Mi", "1Gi", "1e9", "6Gi"]);
        let mut resources = json!({"requests": {"cpu": cpu, "memory": memory}});
        match self.dice.number(0, 9) {
            0 => resources = json!({"limits": {"cpu": cpu, "memory": memory}}),
            1 => resources = json!({}),
            _ => {}
        }
        if self.applies(Rule::Gpus, 45) {
            resources["limits"]["nvidia.com/gpu"] = json!(self.dice.pick(&["1", "1", "2", "4"]));
        }
        json!({"name": "main", "image": "none", "resources": resources})
    }

    fn init_containers(&mut self) -> Value {
        let mut all = Vec::new();
        for at in 0..self.dice.number(1, 3) {
            let cpu = self.dice.pick(&["50m", "1", "2"]);
            let mut one = json!({
                "name": format!("init{at}"), "image": "none", "resources": {"requests": {"cpu": cpu, "memory": "256Mi"}},
            });
            if self.dice.chance(50) {
                one["restartPolicy"] = json!("Always");
            }
            if self.applies(Rule::HostPorts, 20) {
                one["ports"] = json!([{"containerPort": 9090, "hostPort": 9090}]);
            }
            all.push(one);
        }
        json!(all)
    }

    fn ports(&mut self) -> Value {
        let number = self.dice.pick(&[8080, 8080, 9090]);
        let mut port = json!({"containerPort": number, "hostPort": number});
        if self.dice.chance(30) {
            port["protocol"] = json!(self.dice.pick(&["UDP", "TCP"]));
        }
        if self.dice.chance(40) {
            port["hostIP"] =
                json!(self.dice.pick(&["10.0.0.1", "10.0.0.2", "0.0.0.0", "127.0.0.1", "::", "::1"]));
        }
        json!([port])
    }

    fn node_selector(&mut self) -> Value {
        match self.dice.number(0, 4) {
            0 => json!({ZONE: self.dice.pick(&ZONES)}),
            1 => json!({"disk": self.dice.pick(&["ssd", "hdd"])}),
            2 => json!({"poolwright.dev/nodepool": self.dice.pick(&["pool0", "pool1"])}),
            3 => {
                json!({"node.kubernetes.io/instance-type": self.dice.pick(&["c1.small", "c1.large", "g1.small"])})
            }
            _ => json!({"kubernetes.io/arch": "amd64"}),
        }
    }

    fn tolerations(&mut self) -> Value {
        let mut all = Vec::new();
        for _ in 0..self.dice.number(1, 2) {
            let mut one = match self.dice.number(0, 5) {
                0 => json!({"operator": "Exists"}),
                1 | 2 => json!({"key": "gpu", "operator": "Exists"}),
                3 => json!({"key": "team", "operator": "Exists"}),
                4 => json!({"key": "team", "value": self.dice.pick(&["red", "blue"])}),
                _ => json!({"key": "gpu", "operator": "Equal", "value": "present"}),
            };
            if self.dice.chance(30) {
                one["effect"] = json!(self.dice.pick(&["NoSchedule", "NoExecute"]));
            }
            all.push(one);
        }
        json!(all)
    }

    fn affinity(&mut self) -> Value {
        let mut affinity = json!({});
        if self.applies(Rule::NodeAffinity, 40) {
            let terms: Vec<Value> = (0..self.dice.number(1, 2)).map(|_| self.node_term()).collect();
            affinity["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"] =
                json!({"nodeSelectorTerms": terms});
        }
        if self.applies(Rule::Preferences, 40) {
            let preference = self.node_term();
            affinity["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"] =
                json!([{"weight": 10, "preference": preference}]);
        }
        let mut away = Vec::new();
        if self.applies(Rule::HostAntiAffinity, 40) {
            away.push(self.pod_term(HOST));
        }
        if self.applies(Rule::WideAntiAffinity, 40) {
            let key = self.wide_key();
            away.push(self.pod_term(key));
        }
        if !away.is_empty() {
            affinity["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"] = json!(away);
        }
        if self.applies(Rule::PodAffinity, 40) {
            let mut near = Vec::new();
            for _ in 0..self.dice.pick(&[1, 1, 1, 2]) {
                let key = if self.dice.chance(35) { HOST } else { self.wide_key() };
                near.push(self.pod_term(key));
            }
            affinity["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"] = json!(near);
        }
        if self.applies(Rule::Preferences, 40) {
            let (kind, term) = (self.dice.pick(&["podAffinity", "podAntiAffinity"]), self.pod_term(ZONE));
            affinity[kind]["preferredDuringSchedulingIgnoredDuringExecution"] =
                json!([{"weight": 10, "podAffinityTerm": term}]);
        }
        affinity
    }

    fn wide_key(&mut self) -> &'static str {
        self.dice.pick(&[ZONE, ZONE, ZONE, "rack"])
    }

    fn node_term(&mut self) -> Value {
        let expression = |maker: &mut Self| match maker.dice.number(0, 6) {
            0 => json!({"key": ZONE, "operator": "In", "values": maker.dice.some(&ZONES)}),
            1 => json!({"key": ZONE, "operator": "NotIn", "values": [maker.dice.pick(&ZONES)]}),
            2 => json!({"key": "disk", "operator": maker.dice.pick(&["Exists", "DoesNotExist"])}),
            3 => {
                json!({"key": "poolwright.dev/instance-cpu", "operator": maker.dice.pick(&["Gt", "Lt"]), "values": ["4"]})
            }
            4 => json!({"key": "disk", "operator": maker.dice.pick(&["In", "NotIn"]), "values": ["ssd"]}),
            5 => json!({"key": HOST, "operator": maker.dice.pick(&["In", "NotIn"]), "values": ["n0", "n1"]}),
            _ => {
                json!({"key": "node.kubernetes.io/instance-type", "operator": "NotIn", "values": ["c1.small"]})
            }
        };
        let expressions: Vec<Value> = (0..self.dice.pick(&[1, 1, 2])).map(|_| expression(self)).collect();
        json!({"matchExpressions": expressions})
    }

    /// Returns a selector of pods: mostly of one application.
    fn selector(&mut self) -> Value {
        match self.dice.number(0, 11) {
            0 => json!({}),
            1 => {
                json!({"matchExpressions": [{"key": "app", "operator": "NotIn", "values": [self.dice.pick(&APPS)]}]})
            }
            2 => {
                json!({"matchExpressions": [{"key": "version", "operator": self.dice.pick(&["Exists", "DoesNotExist"])}]})
            }
            3 => {
                json!({"matchExpressions": [{"key": "app", "operator": "In", "values": self.dice.some(&APPS)}]})
            }
            4..=6 => json!({"matchLabels": {"app": self.dice.pick(&APPS)}}),
            _ => json!({"matchLabels": {"app": self.app}}),
        }
    }

    fn pod_term(&mut self, key: &str) -> Value {
        let mut term = json!({"topologyKey": key, "labelSelector": self.selector()});
        if self.applies(Rule::Namespaces, 60) {
            match self.dice.number(0, 3) {
                0 => term["namespaceSelector"] = json!({}),
                1 => {
                    let team = self.dice.pick(&NAMESPACES);
                    term["namespaceSelector"] = json!({"matchLabels": {"team": team}});
                }
                2 => term["namespaces"] = json!(self.dice.some(&NAMESPACES)),
                _ => {
                    term["namespaces"] = json!(["red"]);
                    term["namespaceSelector"] = json!({"matchLabels": {"team": "blue"}});
                }
            }
        }
        if !names_version(&term) && self.applies(Rule::LabelKeys, 30) {
            let keys = self.dice.pick(&["matchLabelKeys", "mismatchLabelKeys"]);
            term[keys] = json!(["version"]);
        }
        term
    }

    fn spreads(&mut self) -> Vec<Value> {
        let mut keys = Vec::new();
        if self.applies(Rule::HostSpread, 40) {
            keys.push(HOST);
        }
        if self.applies(Rule::WideSpread, 45) {
            keys.push(self.wide_key());
        }
        let mut spreads: Vec<Value> = keys.into_iter().map(|key| self.spread(key)).collect();
        if self.applies(Rule::Preferences, 30) {
            let mut wish = self.spread(ZONE);
            wish["whenUnsatisfiable"] = json!("ScheduleAnyway");
            wish.as_object_mut().map(|wish| wish.remove("minDomains"));
            spreads.push(wish);
        }
        spreads
    }

    fn spread(&mut self, key: &str) -> Value {
        let mut spread = json!({
            "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule", "maxSkew": self.dice.pick(&[1, 1, 2, 3]),
            "labelSelector": self.selector(),
        });
        if self.applies(Rule::SpreadPolicies, 40) {
            spread["minDomains"] = json!(self.dice.number(1, 4));
        }
        for field in ["nodeAffinityPolicy", "nodeTaintsPolicy"] {
            if self.applies(Rule::SpreadPolicies, 35) {
                spread[field] = json!(self.dice.pick(&["Honor", "Ignore"]));
            }
        }
        if !names_version(&spread) && self.applies(Rule::LabelKeys, 30) {
            spread["matchLabelKeys"] = json!(["version"]);
        }
        spread
    }
}

/// Checks whether a selector uses the label `version`, which then must not also be in the rule's label keys.
fn names_version(rule: &Value) -> bool {
    rule["labelSelector"].to_string().contains("version")
}
