//! Tests of colocation: host ports and required pod anti-affinity.

use std::collections::BTreeMap;

use poolwright_catalog::UsdPerHour;
use poolwright_core::plan::{CostRule, Plan, UnplacedReason};
use poolwright_core::{
    DaemonSet, HostPort, Namespaces, NodeSelectorTerm, Pod, PodAffinityTerm, PodKey, PodRole, PodSpec, Pool,
    PoolLimits, TopologySpreadConstraint,
};

use crate::kit::*;

fn with_port(name: &str, port: u16, ip: Option<&str>) -> Pod {
    let mut pod = pod(name, requests(1, 1, 0));
    pod.spec.host_ports = [HostPort { port, protocol: "TCP".into(), ip: ip.map(str::to_owned) }].into();
    pod
}

fn labelled(name: &str, app: &str) -> Pod {
    Pod { labels: app_label(app).into(), ..pod(name, requests(1, 1, 0)) }
}

fn app_label(app: &str) -> BTreeMap<String, String> {
    BTreeMap::from([("app".to_owned(), app.to_owned())])
}

fn away_from(app: &str) -> PodAffinityTerm {
    PodAffinityTerm {
        topology_key: "kubernetes.io/hostname".into(),
        namespaces: Namespaces::Named(["default".to_owned()].into()),
        selector: Some(vec![is_in("app", &[app])]),
    }
}

fn keeps_away(mut pod: Pod, from: &str) -> Pod {
    pod.spec.anti_affinity = vec![away_from(from)];
    pod
}

fn buys(pods: impl IntoIterator<Item = Pod>) -> Vec<String> {
    bought(&planned(&with(cluster(aws(), [pool("cpu")]), pods)))
}

/// Returns the number of nodes that are bought beside an open node `n` that has room for three more pods.
fn buys_beside(running: impl IntoIterator<Item = Pod>, waiting: Pod) -> usize {
    let snapshot = with(cluster(aws(), [pool("cpu")]), [node("n", capacity(4, 16, 0))]);
    planned(&with(with(snapshot, running), [waiting])).claims.len()
}

#[test]
fn two_pods_with_one_host_port_get_two_nodes() {
    let two = || ["a", "b"].map(|name| with_port(name, 80, None));
    assert_eq!(buys(two()), ["c7.xlarge: a", "c7.xlarge: b"]);
    assert_eq!(buys([with_port("a", 80, None), with_port("b", 81, None)]), ["c7.xlarge: a b"]);
}

#[test]
fn one_port_on_two_addresses_is_no_conflict_and_on_every_address_it_is() {
    let one = || with_port("a", 80, Some("10.0.0.1"));
    assert_eq!(buys([one(), with_port("b", 80, Some("10.0.0.2"))]), ["c7.xlarge: a b"]);
    assert_eq!(buys([one(), with_port("b", 80, None)]).len(), 2);
}

#[test]
fn a_port_in_use_on_a_node_that_is_there_keeps_pods_off_it() {
    let taken = bound(with_port("r", 80, None), "n");
    assert_eq!(buys_beside([taken.clone()], with_port("a", 80, None)), 1);
    assert_eq!(buys_beside([taken.clone()], with_port("a", 81, None)), 0);
    let leaving = Pod { deleting_since: Some(at(1)), ..taken.clone() };
    assert_eq!(buys_beside([leaving], with_port("a", 80, None)), 1, "until it is gone it has the port");
    let gone = Pod { phase: poolwright_core::PodPhase::Finished, ..taken };
    assert_eq!(buys_beside([gone], with_port("a", 80, None)), 0);
}

#[test]
fn a_port_of_a_pod_that_was_planned_on_a_claim_is_taken() {
    let first = with(cluster(aws(), [pool("cpu")]), [with_port("a", 80, None)]);
    let carried = carried_out(&first, &planned(&first), 1);
    let both = planned(&with(carried.clone(), [with_port("b", 80, None)]));
    assert_eq!(bought(&both), ["c7.xlarge: b"]);
    let other = planned(&with(carried, [with_port("b", 81, None)]));
    assert_eq!(other.claims.len(), 0);
}

fn agent(change: impl FnOnce(&mut DaemonSet)) -> DaemonSet {
    let spec = PodSpec { requests: requests(1, 1, 0), ..PodSpec::default() };
    let mut set = DaemonSet { key: object_key("agent"), labels: app_label("agent"), spec };
    change(&mut set);
    set
}

#[test]
fn a_port_of_a_daemonset_is_taken_on_every_node_it_lands_on() {
    let everywhere = agent(|set| set.spec.host_ports = with_port("x", 9100, None).spec.host_ports.clone());
    let snapshot = with(with(cluster(aws(), [pool("cpu")]), [everywhere]), [with_port("a", 9100, None)]);
    let plan = planned(&snapshot);
    assert_eq!(plan.claims.len(), 0);
    assert_eq!(plan.unplaced[0].reason, UnplacedReason::NoOfferingFits);
    assert_eq!(
        plan.unplaced[0].message,
        "needs host port 9100/TCP, which DaemonSet default/agent uses on every node of pool `cpu` that fits it; use another port, or keep the DaemonSet off some nodes"
    );
    let on_l4 = agent(|set| {
        set.spec.host_ports = with_port("x", 9100, None).spec.host_ports.clone();
        set.spec.node_selector.insert("poolwright.dev/gpu-model".into(), "a10g".into());
    });
    let wants_gpu = Pod {
        spec: PodSpec { requests: requests(1, 1, 1), ..PodSpec::clone(&with_port("a", 9100, None).spec) }
            .into(),
        ..pod("a", requests(1, 1, 1))
    };
    let snapshot = with(with(cluster(aws(), [pool("cpu")]), [on_l4]), [wants_gpu]);
    let plan = planned(&snapshot);
    assert_eq!(bought(&plan), ["g6.xlarge: a"], "dearer, but without the agent");
    let types: Vec<_> = plan.claims[0].offerings.iter().map(|o| o.offering.instance_type.as_str()).collect();
    assert_eq!(types, ["g6.xlarge"], "no alternative has the agent");
}

#[test]
fn a_port_of_a_daemonset_pod_counts_once_on_a_node_that_is_there() {
    let set = agent(|set| set.spec.host_ports = with_port("x", 9100, None).spec.host_ports.clone());
    let arrived = Pod { role: PodRole::DaemonSet, ..bound(with_port("agent-x7k2p", 9100, None), "n") };
    let snapshot = with(with(cluster(aws(), [pool("cpu")]), [set]), [node("n", capacity(4, 16, 0))]);
    assert_eq!(planned(&with(with(snapshot, [arrived]), [with_port("a", 80, None)])).claims.len(), 0);
}

#[test]
fn pods_that_keep_away_from_their_like_get_a_node_each() {
    let three = ["a", "b", "c"].map(|name| keeps_away(labelled(name, "web"), "web"));
    assert_eq!(buys(three), ["c7.xlarge: a", "c7.xlarge: b", "c7.xlarge: c"]);
}

#[test]
fn anti_affinity_of_one_keeps_both_apart() {
    assert_eq!(buys([keeps_away(labelled("a", "web"), "batch"), labelled("b", "batch")]).len(), 2);
    assert_eq!(buys([keeps_away(labelled("a", "web"), "batch"), labelled("b", "web")]).len(), 1);
}

#[test]
fn labels_that_no_rule_asks_about_make_no_difference() {
    let mut many = (0..4).map(|at| labelled(&format!("p{at}"), &format!("only-{at}"))).collect::<Vec<_>>();
    many[0] = keeps_away(labelled("p0", "only-0"), "nobody");
    assert_eq!(buys(many), ["c7.xlarge: p0 p1 p2 p3"]);
}

#[test]
fn running_pods_keep_newcomers_away_and_newcomers_keep_away_from_them() {
    let batch = || bound(labelled("r", "batch"), "n");
    assert_eq!(buys_beside([batch()], keeps_away(labelled("a", "web"), "batch")), 1);
    assert_eq!(buys_beside([batch()], keeps_away(labelled("a", "web"), "other")), 0);
    let careful = bound(keeps_away(labelled("r", "batch"), "web"), "n");
    assert_eq!(buys_beside([careful.clone()], labelled("a", "web")), 1);
    assert_eq!(buys_beside([careful], labelled("a", "batch")), 0);
}

#[test]
fn a_daemonset_that_keeps_away_from_a_pod_is_named() {
    let set = agent(|set| set.spec.anti_affinity = vec![away_from("web")]);
    let plan = planned(&with(with(cluster(aws(), [pool("cpu")]), [set]), [labelled("a", "web")]));
    assert_eq!(plan.unplaced[0].reason, UnplacedReason::NoOfferingFits);
    assert_eq!(
        plan.unplaced[0].message,
        "required pod anti-affinity keeps it apart from DaemonSet default/agent, which runs on every node of pool `cpu` that fits it; change the rule, or keep the DaemonSet off some nodes"
    );
}

#[test]
fn a_pod_in_another_namespace_is_none_of_the_rules_business() {
    let mut elsewhere = labelled("b", "web");
    elsewhere.key = PodKey::new("other", elsewhere.key.name());
    assert_eq!(buys([keeps_away(labelled("a", "web"), "web"), elsewhere]), ["c7.xlarge: a b"]);
}

fn spread(name: &str, max_skew: u32) -> Pod {
    let mut pod = labelled(name, "web");
    let selector = Some(vec![is_in("app", &["web"])]);
    pod.spec.spreads = vec![TopologySpreadConstraint {
        topology_key: "kubernetes.io/hostname".into(),
        max_skew,
        selector,
        ..TopologySpreadConstraint::default()
    }];
    pod
}

#[test]
fn pods_spread_over_nodes_are_at_most_the_skew_on_each_new_node() {
    assert_eq!(buys(["a", "b", "c"].map(|name| spread(name, 1))).len(), 3);
    assert_eq!(buys(["a", "b", "c", "d"].map(|name| spread(name, 2))).len(), 2);
}

/// Returns the rules that a plan lists, with their costs.
fn rules(plan: &Plan) -> Vec<(CostRule, Option<UsdPerHour>)> {
    plan.rules.iter().map(|of| (of.rule, of.cost)).collect()
}

#[test]
fn a_plan_tells_what_a_spread_over_nodes_costs() {
    let of = |names: &[&str]| {
        let plan = planned(&with(cluster(aws(), [pool("cpu")]), names.iter().map(|name| spread(name, 2))));
        (plan.claims.len(), rules(&plan))
    };
    let cost = Some(usd("0.17"));
    assert_eq!(of(&["a", "b", "c", "d", "e", "f"]), (3, vec![(CostRule::NodeSpread, cost)]), "two would do");
    assert_eq!(of(&["a", "b"]), (1, vec![]), "a rule that costs nothing is not listed");
}

#[test]
fn a_plan_that_leaves_a_pod_out_because_of_a_spread_over_nodes_lists_the_rule_without_a_price() {
    let kinds = vec![
        Kind("small", capacity(1, 4, 0), None, &[("a", "0.10")]),
        Kind("large", capacity(4, 4, 0), None, &[("a", "0.30")]),
    ];
    let one = Pool { limits: PoolLimits { nodes: Some(1), ..PoolLimits::default() }, ..pool("cpu") };
    let plan = planned(&with(cluster(catalogue(kinds), [one]), ["a", "b"].map(|name| spread(name, 1))));
    assert_eq!((bought(&plan).len(), plan.unplaced.len()), (1, 1), "each pod asks for a node of its own");
    assert_eq!(rules(&plan), [(CostRule::NodeSpread, None)]);
}

#[test]
fn pods_of_two_templates_count_together_where_one_rule_counts_both() {
    let mut larger = spread("b", 1);
    larger.spec.requests = requests(2, 1, 0);
    assert_eq!(buys([spread("a", 1), larger]).len(), 2);
    assert_eq!(buys([spread("a", 1), labelled("b", "web")]).len(), 2, "the other has no rule and is counted");
    assert_eq!(buys([spread("a", 1), labelled("b", "batch")]).len(), 1);
}

#[test]
fn a_pod_that_its_own_rule_does_not_count_goes_where_none_of_those_are() {
    let stranger = |name: &str| Pod { labels: app_label("other").into(), ..spread(name, 1) };
    assert_eq!(buys(["a", "b"].map(stranger)), ["c7.xlarge: a b"]);
}

#[test]
fn a_pod_with_a_rule_and_one_that_it_only_counts_share_a_node_where_that_is_not_too_many() {
    let stranger = |name: &str| Pod { labels: app_label("other").into(), ..spread(name, 1) };
    assert_eq!(buys([stranger("a"), labelled("b", "web")]), ["c7.xlarge: a b"]);
    // One pod more than may be beside `a` goes to another node, which takes as many as fit.
    let three = ["b", "c", "d"].map(|name| labelled(name, "web"));
    let mut bought = buys([stranger("a")].into_iter().chain(three));
    bought.sort();
    assert_eq!(bought, ["c7.xlarge: a", "c7.xlarge: b c d"]);
}

#[test]
fn those_that_a_rule_counts_come_to_where_a_pod_with_it_is_planned_up_to_its_skew() {
    let stranger = |name: &str| Pod { labels: app_label("other").into(), ..spread(name, 2) };
    let web = ["b", "c", "d"].map(|name| labelled(name, "web"));
    // One node has room for all pods, the other has no room, and nothing can be bought.
    let snapshot = with(cluster(aws(), []), [node("n", capacity(8, 32, 0)), node("full", capacity(0, 0, 0))]);
    let plan = planned(&with(snapshot.clone(), [stranger("a"), labelled("b", "web"), labelled("c", "web")]));
    assert_eq!(plan.placements.len(), 3, "{plan:?}");
    let plan = planned(&with(snapshot, [stranger("a")].into_iter().chain(web)));
    assert_eq!(plan.placements.len(), 3, "the rule allows three beside none that has it, or two: {plan:?}");
}

#[test]
fn running_pods_count_on_their_node() {
    let running = bound(labelled("r", "web"), "n");
    assert_eq!(buys_beside([running], spread("a", 1)), 1);
    let other = bound(labelled("r", "batch"), "n");
    assert_eq!(buys_beside([other], spread("a", 1)), 0);
    let has_a_rule = bound(spread("r", 1), "n");
    assert_eq!(buys_beside([has_a_rule], labelled("a", "web")), 0, "what runs is not asked again");
}

#[test]
fn pods_of_two_templates_share_a_node_up_to_the_skew_of_their_rule() {
    let larger = |name: &str| {
        let mut pod = spread(name, 2);
        pod.spec.requests = requests(2, 1, 0);
        pod
    };
    assert_eq!(buys([spread("a", 2), larger("b")]), ["c7.xlarge: a b"]);
    assert_eq!(buys([spread("a", 2), larger("b"), spread("c", 2)]).len(), 2);
}

#[test]
fn a_node_where_some_run_takes_as_many_more_as_the_skew_leaves() {
    let running = || bound(labelled("r", "web"), "n");
    assert_eq!(buys_beside([running()], spread("a", 2)), 0);
    let another = bound(labelled("s", "web"), "n");
    assert_eq!(buys_beside([running(), another], spread("a", 2)), 1);
    let leaving = Pod { deleting_since: Some(at(5)), ..running() };
    assert_eq!(buys_beside([leaving], spread("a", 1)), 0, "who is leaving does not count");
}

#[test]
fn a_daemonset_pod_on_every_node_raises_the_least_count() {
    let web = agent(|set| set.labels = app_label("web"));
    let snapshot = with(with(cluster(aws(), [pool("cpu")]), [web]), [node("n", capacity(4, 16, 0))]);
    let plan = planned(&with(snapshot.clone(), [spread("a", 1)]));
    assert_eq!((plan.claims.len(), plan.placements.len()), (0, 1));
    let plan = planned(&with(snapshot.clone(), ["a", "b"].map(|name| spread(name, 1))));
    assert_eq!((plan.claims.len(), plan.placements.len()), (1, 1), "two of them are too many on one node");
    let stranger = Pod { labels: app_label("other").into(), ..spread("a", 1) };
    let plan = planned(&with(snapshot, [stranger]));
    assert_eq!((plan.claims.len(), plan.placements.len()), (0, 1), "its own rule does not count it");
}

#[test]
fn a_daemonset_pod_on_the_first_node_blocks_no_pod() {
    let web = || agent(|set| set.labels = app_label("web"));
    let empty = || with(cluster(aws(), [pool("cpu")]), [web()]);
    assert_eq!(planned(&with(empty(), [spread("a", 1)])).claims.len(), 1);
    assert_eq!(planned(&with(empty(), ["a", "b"].map(|name| spread(name, 1)))).claims.len(), 2);
}

#[test]
fn a_spread_that_counts_one_node_limits_pods_on_that_node() {
    let on_n = |name: &str| {
        let mut pod = spread(name, 1);
        pod.spec.node_selector.insert("kubernetes.io/hostname".into(), "n".into());
        pod
    };
    let snapshot =
        with(cluster(aws(), [pool("cpu")]), [node("n", capacity(8, 32, 0)), node("m", capacity(8, 32, 0))]);
    let plan = planned(&with(snapshot.clone(), ["a", "b", "c"].map(on_n)));
    assert_eq!((plan.placements.len(), plan.unplaced.len()), (3, 0), "{plan:?}");
    // If the pods may go to both nodes, no node holds more than one pod more than the other.
    let on_both = |name: &str| {
        let mut pod = spread(name, 1);
        let both = [is_in("kubernetes.io/hostname", &["n", "m"])];
        pod.spec.node_affinity = Some(vec![NodeSelectorTerm { requirements: both.into() }]);
        pod
    };
    let plan = planned(&with(snapshot, ["a", "b"].map(on_both)));
    let nodes: std::collections::BTreeSet<_> = plan.placements.iter().map(|placed| &placed.target).collect();
    assert_eq!(nodes.len(), 2, "{plan:?}");
}

#[test]
fn a_pod_learns_that_rules_about_other_pods_keep_it_off_a_node() {
    let mut wants = with_port("a", 80, None);
    wants.spec.node_selector.insert("kubernetes.io/hostname".into(), "n".into());
    let running = bound(with_port("r", 80, None), "n");
    let snapshot = with(cluster(aws(), [pool("cpu")]), [node("n", capacity(4, 16, 0))]);
    let plan = planned(&with(with(snapshot, [running]), [wants]));
    assert_eq!(plan.unplaced[0].reason, UnplacedReason::TopologyRule);
    let message = &plan.unplaced[0].message;
    assert!(
        message.starts_with("node `n` has room for it, but a host port that it needs is taken there; "),
        "{message}"
    );
}

#[test]
fn the_least_count_is_positive_if_every_counted_node_has_a_pod() {
    let ours = |name: &str| {
        let mut node = node(name, capacity(4, 16, 0));
        node.labels.insert("team".into(), "ours".into());
        node
    };
    let waiting = |name: &str, selected: bool| {
        let mut pod = spread(name, 1);
        if selected {
            pod.spec.node_selector.insert("team".into(), "ours".into());
        }
        pod
    };
    let running = [bound(labelled("r", "web"), "n"), bound(labelled("s", "web"), "m")];
    let snapshot = with(with(cluster(aws(), [pool("cpu")]), ["n", "m"].map(ours)), running);
    let plan = planned(&with(snapshot.clone(), ["a", "b", "c"].map(|name| waiting(name, true))));
    assert_eq!((plan.claims.len(), plan.placements.len()), (0, 3), "they fill up evenly");
    let plan = planned(&with(snapshot, [waiting("a", false)]));
    assert_eq!(plan.claims.len(), 1, "a node that could be bought would be empty");
}

#[test]
fn nodes_with_one_host_name_are_one_host() {
    let twin = |name: &str| {
        let mut node = node(name, capacity(4, 16, 0));
        node.labels.insert("kubernetes.io/hostname".into(), "twin".into());
        node
    };
    let full = node("full", capacity(0, 0, 0));
    let snapshot = with(cluster(aws(), [pool("cpu")]), [twin("n"), twin("m"), full]);
    let plan = planned(&with(snapshot.clone(), ["a", "b"].map(|name| spread(name, 1))));
    assert!(plan.placements.len() <= 1, "{:?}", plan.placements);
    let apart = ["a", "b"].map(|name| keeps_away(labelled(name, "web"), "web"));
    let plan = planned(&with(snapshot, apart));
    assert!(plan.placements.len() <= 1, "{:?}", plan.placements);
}

#[test]
fn pods_that_were_planned_together_within_the_skew_stay_together() {
    let first = with(cluster(aws(), [pool("cpu")]), ["a", "b"].map(|name| spread(name, 2)));
    let plan = planned(&first);
    assert_eq!(bought(&plan), ["c7.xlarge: a b"]);
    let again = planned(&carried_out(&first, &plan, 1));
    assert_eq!((again.claims.len(), again.placements.len()), (0, 2));
    let more = planned(&with(carried_out(&first, &plan, 1), [spread("c", 2)]));
    assert_eq!(bought(&more), ["c7.xlarge: c"], "a third would be too many there");
}
