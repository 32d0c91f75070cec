//! Tests configurations of a kube-scheduler.

use std::fmt::Write as _;

use poolwright_core::{Profile, TopologySpreadConstraint};
use poolwright_intake::{SchedulerConfig, scheduler_config};

const HEAD: &str = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n";

fn read(profiles: &str) -> Result<SchedulerConfig, Vec<String>> {
    let errors = scheduler_config("s.yaml", &format!("{HEAD}{profiles}"));
    errors.map_err(|errors| errors.iter().map(ToString::to_string).collect())
}

/// Returns one profile with these arguments of one plugin, in YAML's flow style.
fn with_args(plugin: &str, args: &str) -> String {
    format!("profiles:\n- pluginConfig:\n  - name: {plugin}\n    args: {args}\n")
}

fn profile(text: &str) -> Profile {
    read(text).expect(text).profiles.remove("default-scheduler").expect("its profile")
}

fn wrong(text: &str) -> Vec<String> {
    read(text).expect_err(text)
}

const ZONES: &str = "{maxSkew: 2, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: DoNotSchedule, minDomains: 3, nodeTaintsPolicy: Honor}";
const HOSTS: &str = "{maxSkew: 1, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: ScheduleAnyway}";

#[test]
fn listed_defaults_are_rules_and_preferences_without_a_selector() {
    let text = with_args(
        "PodTopologySpread",
        &format!("{{defaultingType: List, defaultConstraints: [{ZONES}, {HOSTS}]}}"),
    );
    let found = profile(&text);
    let rule = |key: &str, max_skew| TopologySpreadConstraint {
        topology_key: key.into(),
        max_skew,
        default_of: Some("s.yaml".into()),
        ..TopologySpreadConstraint::default()
    };
    let zones = TopologySpreadConstraint {
        min_domains: Some(3),
        honor_node_taints: true,
        ..rule("topology.kubernetes.io/zone", 2)
    };
    assert_eq!(found.spreads, [zones]);
    assert_eq!(found.preferred_spreads, [rule("kubernetes.io/hostname", 1)]);
}

#[test]
fn the_built_in_default_is_weighed_where_the_file_says_so() {
    let said = profile(&with_args("PodTopologySpread", "{defaultingType: System}"));
    let over: Vec<_> =
        said.preferred_spreads.iter().map(|rule| (rule.topology_key.as_str(), rule.max_skew)).collect();
    assert_eq!(over, [("topology.kubernetes.io/zone", 5)]);
    assert_eq!(profile(""), Profile::default());
    assert_eq!(profile(&with_args("PodTopologySpread", "{}")), Profile::default());
}

#[test]
fn added_affinity_is_required_or_preferred() {
    let term = "{matchExpressions: [{key: team, operator: In, values: [ml]}]}";
    let text = with_args(
        "NodeAffinity",
        &format!(
            "{{addedAffinity: {{requiredDuringSchedulingIgnoredDuringExecution: {{nodeSelectorTerms: [{term}]}}, preferredDuringSchedulingIgnoredDuringExecution: [{{weight: 7, preference: {term}}}]}}}}"
        ),
    );
    let found = profile(&text);
    let enforced = found.enforced.expect("it is required");
    assert_eq!((enforced.source.as_str(), enforced.terms.len()), ("s.yaml", 1));
    assert_eq!(enforced.terms[0].requirements[0].to_string(), "team In [ml]");
    let (preference, source) = &found.preferred[0];
    assert_eq!((preference.weight, source.as_str()), (7, "s.yaml"));
}

#[test]
fn pods_choose_among_profiles_by_name() {
    let found = read(&format!(
        "profiles:\n- schedulerName: packing\n- schedulerName: even\n  pluginConfig:\n  - name: PodTopologySpread\n    args: {{defaultingType: List, defaultConstraints: [{ZONES}]}}\n"
    ))
    .expect("it can be read");
    let spreading: Vec<_> =
        found.profiles.iter().map(|(name, profile)| (name.as_str(), profile.spreads.len())).collect();
    assert_eq!(spreading, [("even", 1), ("packing", 0)]);
    assert_eq!(found.notes, Vec::<String>::new());
}

#[test]
fn a_disabled_plugin_has_no_effect() {
    let plugins = |plugins: &str| {
        let text = format!(
            "profiles:\n- plugins: {plugins}\n  pluginConfig:\n  - name: PodTopologySpread\n    args: {{defaultingType: List, defaultConstraints: [{ZONES}, {HOSTS}]}}\n"
        );
        let found = read(&text).expect("it can be read");
        let profile = &found.profiles["default-scheduler"];
        (profile.spreads.len(), profile.preferred_spreads.len(), found.notes.len())
    };
    assert_eq!(plugins("{filter: {disabled: [{name: PodTopologySpread}]}}"), (0, 1, 1));
    assert_eq!(plugins("{score: {disabled: [{name: '*'}]}}"), (1, 0, 0));
    assert_eq!(plugins("{multiPoint: {disabled: [{name: PodTopologySpread}]}}"), (0, 0, 1));
    assert_eq!(
        plugins(
            "{multiPoint: {disabled: [{name: PodTopologySpread}]}, filter: {enabled: [{name: PodTopologySpread}]}}"
        ),
        (1, 0, 0)
    );
}

#[test]
fn unsupported_scheduler_settings_are_reported() {
    let found = read(
        "profiles:\n- plugins:\n    filter: {disabled: [{name: InterPodAffinity}], enabled: [{name: Coscheduling}]}\n  pluginConfig:\n  - name: NodeResourcesFit\n    args: {ignoredResources: [example.com/foo], ignoredResourceGroups: [example.org]}\nextenders:\n- {urlPrefix: 'http://x', filterVerb: filter, nodeCacheCapable: true}\n- {urlPrefix: 'http://y', prioritizeVerb: p, weight: 1}\n",
    )
    .expect("it can be read");
    assert_eq!(
        found.notes,
        [
            "s.yaml: profile `default-scheduler` ignores example.com/foo, example.org/* when it checks whether a pod fits, but Poolwright counts them, so it may buy a node that the pod does not need",
            "s.yaml: profile `default-scheduler` does not filter nodes by InterPodAffinity, but Poolwright applies these rules of pods anyway, so it may buy a node that a pod does not need, or none",
            "s.yaml: profile `default-scheduler` runs Coscheduling, which Poolwright does not know, so it may buy a node that this plugin refuses",
            "s.yaml: the extender http://x can refuse nodes, but Poolwright does not call it, so it may buy a node that the extender refuses",
        ]
    );
}

#[test]
fn everything_that_the_scheduler_would_refuse_is_listed_at_once() {
    let mut text =
        "profiles:\n- pluginConfig:\n  - name: PodTopologySpread\n    args:\n      defaultConstraints:\n"
            .to_owned();
    for constraint in [
        "{maxSkew: 0, topologyKey: zone, whenUnsatisfiable: DoNotSchedule}",
        "{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule, labelSelector: {}}",
        "{maxSkew: 1, topologyKey: 'a b', whenUnsatisfiable: Never}",
        "{maxSkew: 1}",
    ] {
        writeln!(text, "      - {constraint}").expect("a string takes it");
    }
    text.push_str("- pluginConfig:\n  - name: NodeAffinity\n    args: {addedAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 0, preference: {matchExpressions: [{key: a, operator: Near}]}}]}}\n");
    let spread = "s.yaml: profiles[0].pluginConfig[0].args.";
    let listed = format!("{spread}defaultConstraints");
    assert_eq!(
        wrong(&text),
        [
            "s.yaml: profiles[0].schedulerName: missing; write the schedulerName of its pods".to_owned(),
            format!("{spread}defaultingType: it is System (the default), but defaultConstraints are not empty; write `defaultingType: List`, or remove defaultConstraints"),
            format!("{listed}[0].maxSkew: 0 is not a valid skew; write 1 or more"),
            format!("{listed}[1].labelSelector: a default constraint has no selector: kube-scheduler takes it from the controller of the pod; remove it"),
            format!("{listed}[1]: `zone` with DoNotSchedule appears twice; keep one"),
            format!("{listed}[2].topologyKey: `a b` is not the key of a label; write one such as topology.kubernetes.io/zone"),
            format!("{listed}[2].whenUnsatisfiable: `Never` is not known; use DoNotSchedule or ScheduleAnyway"),
            format!("{listed}[3].topologyKey: missing; name the label to spread over"),
            format!("{listed}[3].whenUnsatisfiable: missing; use DoNotSchedule or ScheduleAnyway"),
            "s.yaml: profiles[1].schedulerName: missing; write the schedulerName of its pods".to_owned(),
            "s.yaml: profiles[1].pluginConfig[0].args.addedAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight: 0 is not a weight; write 1 to 100".to_owned(),
            "s.yaml: profiles[1].pluginConfig[0].args.addedAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].preference.matchExpressions[0]: node affinity with the operator `Near` and these values cannot be evaluated; correct or remove it".to_owned(),
        ]
    );
}

#[test]
fn two_profiles_of_one_name_are_one_too_many() {
    assert_eq!(
        wrong("profiles:\n- schedulerName: a\n- schedulerName: a\n"),
        ["s.yaml: profiles[1].schedulerName: `a` has a profile already; make one profile of both"]
    );
}

#[test]
fn a_file_that_is_something_else_is_told_from_one() {
    let error = |text: &str| scheduler_config("s.yaml", text).expect_err(text)[0].to_string();
    assert_eq!(
        error("apiVersion: kubescheduler.config.k8s.io/v1beta3\nkind: KubeSchedulerConfiguration\n"),
        "s.yaml: apiVersion: `kubescheduler.config.k8s.io/v1beta3` is not a scheduler's configuration; use `kubescheduler.config.k8s.io/v1`"
    );
    assert!(error("").contains("it has 0 documents"), "{}", error(""));
    assert!(error("[]").contains("it is not an object"));
    assert!(error("a: b: c").contains("not readable as YAML"));
    assert_eq!(wrong("profile: []\n"), ["s.yaml: profile: unknown field; did you mean `profiles`?"]);
    assert_eq!(
        wrong(&with_args("PodTopologySpread", "{defaultConstraint: []}")),
        [
            "s.yaml: profiles[0].pluginConfig[0].args.defaultConstraint: unknown field; did you mean `defaultConstraints`?"
        ]
    );
    assert_eq!(
        wrong(&with_args("PodTopologySpread", "{defaultingType: Cluster}")),
        [
            "s.yaml: profiles[0].pluginConfig[0].args.defaultingType: `Cluster` is not a kind of defaults; use List or System"
        ]
    );
}
