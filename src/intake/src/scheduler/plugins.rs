//! The enabled plugins of a profile, and notes about those that Poolwright cannot follow.

use serde::Deserialize;
use serde_json::Value;

/// Filter plugins of the kube-scheduler that plans follow, enabled or not.
const FILTERS: [&str; 12] = [
    "NodeUnschedulable",
    "NodeName",
    "TaintToleration",
    "NodeAffinity",
    "NodePorts",
    "NodeResourcesFit",
    "VolumeRestrictions",
    "NodeVolumeLimits",
    "VolumeBinding",
    "VolumeZone",
    "PodTopologySpread",
    "InterPodAffinity",
];

/// Other plugins of the kube-scheduler that a profile may list.
const KNOWN: [&str; 11] = [
    "SchedulingGates",
    "PrioritySort",
    "DefaultPreemption",
    "NodeResourcesBalancedAllocation",
    "ImageLocality",
    "DefaultBinder",
    "NodeDeclaredFeatures",
    "DynamicResources",
    "GangScheduling",
    "TopologyPlacementGenerator",
    "PodGroupPodsCount",
];

/// Plugins by extension point. Only extension points that filter or score nodes are read.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Plugins {
    filter: Set,
    score: Set,
    multi_point: Set,
    #[serde(rename = "preEnqueue")]
    _pre_enqueue: Value,
    #[serde(rename = "queueSort")]
    _queue_sort: Value,
    #[serde(rename = "preFilter")]
    _pre_filter: Value,
    #[serde(rename = "postFilter")]
    _post_filter: Value,
    #[serde(rename = "preScore")]
    _pre_score: Value,
    #[serde(rename = "reserve")]
    _reserve: Value,
    #[serde(rename = "permit")]
    _permit: Value,
    #[serde(rename = "preBind")]
    _pre_bind: Value,
    #[serde(rename = "bind")]
    _bind: Value,
    #[serde(rename = "postBind")]
    _post_bind: Value,
    #[serde(rename = "placementGenerate")]
    _placement_generate: Value,
    #[serde(rename = "placementScore")]
    _placement_score: Value,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Set {
    enabled: Vec<Plugin>,
    disabled: Vec<Plugin>,
}

#[derive(Deserialize)]
struct Plugin {
    name: String,
    #[serde(rename = "weight")]
    _weight: Option<i32>,
}

impl Set {
    fn enables(&self, plugin: &str) -> bool {
        self.enabled.iter().any(|one| one.name == plugin)
    }

    fn disables(&self, plugin: &str) -> bool {
        self.disabled.iter().any(|one| one.name == plugin || one.name == "*")
    }
}

impl Plugins {
    /// Returns whether a default plugin is enabled at an extension point.
    fn runs(&self, point: &Set, plugin: &str) -> bool {
        let everywhere = self.multi_point.enables(plugin) || !self.multi_point.disables(plugin);
        point.enables(plugin) || (everywhere && !point.disables(plugin))
    }

    /// Returns whether the plugin filters nodes.
    pub fn filters(&self, plugin: &str) -> bool {
        self.runs(&self.filter, plugin)
    }

    /// Returns whether the plugin scores nodes.
    pub fn scores(&self, plugin: &str) -> bool {
        self.runs(&self.score, plugin)
    }

    /// Adds a note for each plugin of the profile that plans do not follow.
    pub fn tell(&self, source: &str, profile: &str, notes: &mut Vec<String>) {
        let off: Vec<&str> = FILTERS.into_iter().filter(|plugin| !self.filters(plugin)).collect();
        if !off.is_empty() {
            notes.push(format!(
                "{source}: profile `{profile}` does not filter nodes by {}, but Poolwright applies these rules of pods anyway, so it may buy a node that a pod does not need, or none",
                off.join(", ")
            ));
        }
        let mut foreign: Vec<&str> = [&self.filter, &self.multi_point]
            .into_iter()
            .flat_map(|set| &set.enabled)
            .map(|plugin| plugin.name.as_str())
            .filter(|name| !FILTERS.contains(name) && !KNOWN.contains(name))
            .collect();
        foreign.sort_unstable();
        foreign.dedup();
        if !foreign.is_empty() {
            notes.push(format!(
                "{source}: profile `{profile}` runs {}, which Poolwright does not know, so it may buy a node that this plugin refuses",
                foreign.join(", ")
            ));
        }
    }
}
