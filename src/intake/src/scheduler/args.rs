//! Arguments of the plugins that decide where pods may go.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1 as k8s;
use poolwright_api::FieldProblem;
use poolwright_api::strict::read;
use poolwright_core::{EnforcedAffinity, Profile, TopologySpreadConstraint, UnmodelledRule, Weighted};
use poolwright_terms::labels::ZONE;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::others::ANYWAY;
use crate::rules::{node_term, node_terms};

const DO_NOT: &str = "DoNotSchedule";
/// The built-in spread over zones (`systemDefaultConstraints`). The one over hosts (maxSkew 3) causes no purchase and is left
/// out.
const SYSTEM_ZONE_SKEW: u32 = 5;
const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

/// The arguments, their path, and the list of problems.
pub(super) struct Args<'a> {
    pub source: &'a str,
    pub path: String,
    pub problems: &'a mut Vec<FieldProblem>,
    pub notes: &'a mut Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SpreadArgs {
    #[serde(default)]
    default_constraints: Vec<k8s::TopologySpreadConstraint>,
    defaulting_type: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AffinityArgs {
    added_affinity: Option<k8s::NodeAffinity>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ResourcesArgs {
    #[serde(default)]
    ignored_resources: Vec<String>,
    #[serde(default)]
    ignored_resource_groups: Vec<String>,
    #[serde(rename = "scoringStrategy")]
    _scoring_strategy: Option<Value>,
}

impl Args<'_> {
    fn read<T: DeserializeOwned>(&mut self, value: &Value) -> Option<T> {
        let nothing = Value::Object(serde_json::Map::new());
        match read(if value.is_null() { &nothing } else { value }) {
            Ok(args) => Some(args),
            Err(found) => {
                for problem in found {
                    let dot = if problem.path.is_empty() { "" } else { "." };
                    let path = format!("{}{dot}{}", self.path, problem.path);
                    self.problems.push(FieldProblem { path, ..problem });
                }
                None
            }
        }
    }

    fn wrong(&mut self, field: &str, cause: impl Into<String>, next_step: &str) {
        self.problems.push(FieldProblem::new(format!("{}.{field}", self.path), cause, next_step));
    }

    /// Reads `PodTopologySpreadArgs`.
    pub fn spread(&mut self, value: &Value, profile: &mut Profile) {
        let Some(args) = self.read::<SpreadArgs>(value) else { return };
        let listed = match args.defaulting_type.as_deref() {
            Some("List") => true,
            Some("System") => {
                profile.preferred_spreads = vec![TopologySpreadConstraint {
                    topology_key: ZONE.to_owned(),
                    max_skew: SYSTEM_ZONE_SKEW,
                    default_of: Some(self.source.to_owned()),
                    ..TopologySpreadConstraint::default()
                }];
                false
            }
            None | Some("") => false,
            Some(other) => {
                let cause = format!("`{other}` is not a kind of defaults");
                self.wrong("defaultingType", cause, "use List or System");
                true
            }
        };
        if !listed && !args.default_constraints.is_empty() {
            let cause = "it is System (the default), but defaultConstraints are not empty";
            self.wrong("defaultingType", cause, "write `defaultingType: List`, or remove defaultConstraints");
        }
        let mut seen = BTreeSet::new();
        for (at, constraint) in args.default_constraints.iter().enumerate() {
            let field = format!("defaultConstraints[{at}]");
            self.constraint(&field, constraint);
            if !seen.insert((&constraint.topology_key, &constraint.when_unsatisfiable)) {
                let cause = format!(
                    "`{}` with {} appears twice",
                    constraint.topology_key, constraint.when_unsatisfiable
                );
                self.wrong(&field, cause, "keep one");
            }
            if constraint.match_label_keys.as_ref().is_some_and(|keys| !keys.is_empty()) {
                self.notes.push(format!(
                    "{}: {}.{field}.matchLabelKeys has no effect: kube-scheduler takes the selector of a default constraint from the pod's controller and Services",
                    self.source, self.path
                ));
            }
            let rule = self.rule(constraint);
            match constraint.when_unsatisfiable.as_str() {
                ANYWAY => profile.preferred_spreads.push(rule),
                _ => profile.spreads.push(rule),
            }
        }
    }

    /// Adds the problems for which the kube-scheduler refuses a default constraint.
    fn constraint(&mut self, field: &str, constraint: &k8s::TopologySpreadConstraint) {
        if constraint.max_skew <= 0 {
            let cause = format!("{} is not a valid skew", constraint.max_skew);
            self.wrong(&format!("{field}.maxSkew"), cause, "write 1 or more");
        }
        let key = &constraint.topology_key;
        if key.is_empty() {
            self.wrong(&format!("{field}.topologyKey"), "missing", "name the label to spread over");
        } else if !is_label_key(key) {
            let cause = format!("`{key}` is not the key of a label");
            self.wrong(
                &format!("{field}.topologyKey"),
                cause,
                "write one such as topology.kubernetes.io/zone",
            );
        }
        let action = constraint.when_unsatisfiable.as_str();
        if ![DO_NOT, ANYWAY].contains(&action) {
            let cause =
                if action.is_empty() { "missing".to_owned() } else { format!("`{action}` is not known") };
            self.wrong(&format!("{field}.whenUnsatisfiable"), cause, "use DoNotSchedule or ScheduleAnyway");
        }
        if constraint.label_selector.is_some() {
            let cause = "a default constraint has no selector: kube-scheduler takes it from the controller of the pod";
            self.wrong(&format!("{field}.labelSelector"), cause, "remove it");
        }
        for (name, policy) in [
            ("nodeAffinityPolicy", &constraint.node_affinity_policy),
            ("nodeTaintsPolicy", &constraint.node_taints_policy),
        ] {
            if let Some(policy) = policy.as_deref().filter(|policy| !["Honor", "Ignore"].contains(policy)) {
                let cause = format!("`{policy}` is not known");
                self.wrong(&format!("{field}.{name}"), cause, "use Honor or Ignore");
            }
        }
    }

    fn rule(&self, from: &k8s::TopologySpreadConstraint) -> TopologySpreadConstraint {
        TopologySpreadConstraint {
            topology_key: from.topology_key.clone(),
            max_skew: u32::try_from(from.max_skew).unwrap_or_default(),
            selector: None,
            min_domains: from.min_domains.and_then(|least| u32::try_from(least).ok()),
            ignore_node_affinity: from.node_affinity_policy.as_deref() == Some("Ignore"),
            honor_node_taints: from.node_taints_policy.as_deref() == Some("Honor"),
            match_label_keys: Vec::new(),
            default_of: Some(self.source.to_owned()),
        }
    }

    /// Reads `NodeAffinityArgs`.
    pub fn affinity(&mut self, value: &Value, profile: &mut Profile) {
        let Some(args) = self.read::<AffinityArgs>(value) else { return };
        let Some(added) = args.added_affinity else { return };
        let path = format!("{}.addedAffinity", self.path);
        let mut unread = Vec::new();
        if let Some(required) = &added.required_during_scheduling_ignored_during_execution {
            let path = format!("{path}.{REQUIRED}.nodeSelectorTerms");
            let terms = node_terms(&path, required, &mut unread);
            profile.enforced = Some(EnforcedAffinity { source: self.source.to_owned(), terms });
        }
        let preferred = added.preferred_during_scheduling_ignored_during_execution.iter().flatten();
        for (at, preference) in preferred.enumerate() {
            let path = format!("{path}.{PREFERRED}[{at}]");
            let term = node_term(&format!("{path}.preference"), &preference.preference, &mut unread);
            let weight = u32::try_from(preference.weight).ok().filter(|weight| (1..=100).contains(weight));
            let Some(weight) = weight else {
                let cause = format!("{} is not a weight", preference.weight);
                self.problems.push(FieldProblem::new(format!("{path}.weight"), cause, "write 1 to 100"));
                continue;
            };
            // An empty term is met everywhere.
            if !term.requirements.is_empty() {
                profile.preferred.push((Weighted { weight, term }, self.source.to_owned()));
            }
        }
        let problem = |UnmodelledRule { field, rule }| {
            FieldProblem::new(field, format!("{rule} cannot be evaluated"), "correct or remove it")
        };
        self.problems.extend(unread.into_iter().map(problem));
    }

    /// Reads `NodeResourcesFitArgs`: resources that the scheduler ignores.
    pub fn resources(&mut self, value: &Value, profile: &str) {
        let Some(args) = self.read::<ResourcesArgs>(value) else { return };
        let all: Vec<String> = args
            .ignored_resources
            .into_iter()
            .chain(args.ignored_resource_groups.into_iter().map(|group| format!("{group}/*")))
            .collect();
        if !all.is_empty() {
            self.notes.push(format!(
                "{}: profile `{profile}` ignores {} when it checks whether a pod fits, but Poolwright counts them, so it may buy a node that the pod does not need",
                self.source,
                all.join(", ")
            ));
        }
    }
}

/// Returns whether Kubernetes accepts the key: a name of up to 63 characters, optionally after a DNS subdomain and a slash.
fn is_label_key(key: &str) -> bool {
    let (prefix, name) = key.rsplit_once('/').map_or((None, key), |(prefix, name)| (Some(prefix), name));
    let ends = |part: &str| {
        let bytes = part.as_bytes();
        let inner = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
        inner(bytes.first()) && inner(bytes.last())
    };
    let is_name = |name: &str| {
        name.len() <= 63
            && ends(name)
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
    };
    let is_part = |part: &str| {
        let lower = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        ends(part) && part.bytes().all(lower)
    };
    let is_domain = |prefix: &str| prefix.len() <= 253 && prefix.split('.').all(is_part);
    is_name(name) && prefix.is_none_or(is_domain)
}
