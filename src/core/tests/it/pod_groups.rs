//! Tests of PodGroups: nodes are bought for a whole gang or not at all.

use poolwright_core::index::{Change, ClusterIndex};
use poolwright_core::plan::{Plan, PlanOptions, UnplacedReason, plan};
use poolwright_core::*;
use poolwright_solver::NeverStop;
use poolwright_terms::keys::RESERVED_TAINT;
use poolwright_terms::{ConditionStatus, ConditionType};

use crate::kit::*;

impl Put for PodGroup {
    fn put(self, snapshot: &mut Snapshot) {
        snapshot.pod_groups.insert(self.key.clone(), self.into());
    }
}

fn group(name: &str, min_count: Option<u32>) -> PodGroup {
    let (key, uid) = (object_key(name), Uid(format!("group-{name}")));
    PodGroup { key, uid, min_count, roles: vec![], unmodelled: vec![], stands_for: None, held: None }
}

/// Returns a pod of this group that fills a g5.xlarge.
fn member(group: &str, at: usize) -> Pod {
    Pod { group: Some(group.into()), ..pod(&format!("{group}-{at}"), requests(3, 12, 1)) }
}

/// Returns the same pod before the scheduler has tried it. Pods that the scheduler holds back look like this.
fn held(group: &str, at: usize) -> Pod {
    Pod { phase: PodPhase::Waiting, ..member(group, at) }
}

fn members(group: &str, count: usize) -> Vec<Pod> {
    (0..count).map(|at| member(group, at)).collect()
}

/// Returns a cluster that may have at most this many nodes, each of which holds one member.
pub fn nodes(most: u64) -> Snapshot {
    let limits = PoolLimits { nodes: Some(most), ..PoolLimits::default() };
    let kinds = vec![Kind("g5.xlarge", capacity(4, 16, 1), Some("a10g"), &[("a", "1.006"), ("b", "1.006")])];
    cluster(catalogue(kinds), [Pool { limits, ..pool("gpu") }])
}

/// Returns why a pod is left out.
pub fn why(plan: &Plan, name: &str) -> (UnplacedReason, String) {
    let left = plan.unplaced.iter().find(|left| left.pod.name() == name).unwrap();
    (left.reason, left.message.clone())
}

#[test]
fn a_gang_that_fits_is_bought_whole() {
    let snapshot = with(with(nodes(4), [group("train", Some(4))]), members("train", 4));
    let plan = planned(&snapshot);
    assert_eq!(names(&plan), ["train-0", "train-1", "train-2", "train-3"]);
    assert_eq!(plan.unplaced, []);
}

#[test]
fn a_gang_with_an_unplaceable_pod_gets_no_nodes_and_an_explanation() {
    let snapshot = with(with(nodes(3), [group("train", Some(4))]), members("train", 4));
    let plan = planned(&snapshot);
    assert_eq!((plan.claims.len(), plan.unplaced.len()), (0, 4));
    for left in &plan.unplaced {
        assert_eq!(left.reason, UnplacedReason::GangIncomplete);
        assert!(
            left.message.starts_with(
                "4 pods of its PodGroup default/train start together, but a plan with them has room for only 3, so Poolwright buys nothing for any; pod default/train-"
            ),
            "{}",
            left.message
        );
        assert!(left.message.contains("limit"), "{}", left.message);
    }
}

#[test]
fn a_limit_that_leaves_a_gang_out_counts_only_what_is_bought() {
    let said = |others: Vec<Pod>| {
        let pods = members("train", 4).into_iter().chain(others);
        let plan = planned(&with(with(nodes(3), [group("train", Some(4))]), pods));
        (plan.claims.len(), why(&plan, "train-0").1)
    };
    let (bought, alone) = said(vec![]);
    assert_eq!(bought, 0);
    assert!(
        alone.ends_with(
            "limit nodes = 3 of pool `gpu` is too low for its gang (it would take up to 4 at once); raise spec.limits (4 is enough)"
        ),
        "{alone}"
    );
    let (bought, beside) = said(vec![pod("single", requests(3, 12, 1))]);
    assert_eq!(bought, 1);
    assert!(
        beside.ends_with(
            "leaves too little for its gang (in use or on order if nothing is bought for it: 1; left: 2; it would take up to 4 at once); \
             raise spec.limits (5 is enough)"
        ),
        "{beside}"
    );
}

#[test]
fn a_limit_as_high_as_the_message_says_lets_the_gang_start() {
    let beside = |limits: PoolLimits| {
        let kinds = vec![Kind("g5.xlarge", capacity(4, 16, 1), Some("a10g"), &[("a", "1.006")])];
        let snapshot = cluster(catalogue(kinds), [Pool { limits, ..pool("gpu") }]);
        let single = Pod { priority: 1, ..pod("single", requests(3, 12, 1)) };
        let pods = members("train", 6).into_iter().chain([single]);
        planned(&with(with(snapshot, [group("train", Some(4))]), pods))
    };
    let money = |most: &str| PoolLimits { usd_per_hour: Some(usd(most)), ..PoolLimits::default() };
    let short = beside(money("4.5"));
    let (_, said) = why(&short, "train-0");
    assert!(
        said.ends_with(
            "limit usdPerHour = 4.50 of pool `gpu` leaves too little for its gang (in use or on order if nothing is bought for it: $1.01/h; left: $3.49/h; \
             it would take up to $4.03/h at once); raise spec.limits (5.03 is enough)"
        ),
        "{said}"
    );
    let raised = beside(money("5.03"));
    assert_eq!(names(&raised).len(), 5, "{:?}", raised.unplaced);
    assert_eq!(raised.unplaced.len(), 2, "the pods beyond the minimum");
}

#[test]
fn of_several_limits_a_gang_is_told_those_that_help_with_amounts_that_are_enough() {
    let of = |has_large: bool, nodes: u64, money: &str| {
        let mut kinds = vec![Kind("g5.xlarge", capacity(4, 16, 1), Some("a10g"), &[("a", "1.006")])];
        if has_large {
            kinds.push(Kind("g5.12xlarge", capacity(48, 192, 4), Some("a10g"), &[("a", "5.672")]));
        }
        let limits =
            PoolLimits { nodes: Some(nodes), usd_per_hour: Some(usd(money)), ..PoolLimits::default() };
        let snapshot = cluster(catalogue(kinds), [Pool { limits, ..pool("gpu") }]);
        planned(&with(with(snapshot, [group("train", Some(4))]), members("train", 4)))
    };
    // One large node is within the limit on nodes.
    let (_, said) = why(&of(true, 1, "2"), "train-0");
    assert!(
        said.ends_with(
            ": limit usdPerHour = 2.00 of pool `gpu` is too low for its gang (it would take up to $5.68/h at once); raise spec.limits (5.672 is \
             enough)"
        ),
        "{said}"
    );
    assert!(of(true, 1, "5.672").unplaced.is_empty(), "this limit alone helps");
    for money in ["2", "3"] {
        let (_, said) = why(&of(false, 1, money), "train-0");
        let nodes = "limit nodes = 1 of pool `gpu` is too low for its gang (it would take up to 4 at once); raise spec.limits (4 is enough)";
        assert!(
            said.contains(&format!("{nodes}; and limit usdPerHour = {money}.00 of pool `gpu`")),
            "{said}"
        );
        assert!(said.ends_with("raise spec.limits (4.024 is enough)"), "{said}");
        assert_eq!(of(false, 4, money).unplaced.len(), 4, "the other limit keeps it out");
    }
    assert_eq!(of(false, 1, "4.024").unplaced.len(), 4, "the other limit keeps it out");
    assert!(of(false, 4, "4.024").unplaced.is_empty(), "both together help");
}

#[test]
fn a_gang_that_two_limits_leave_out_is_told_of_both() {
    let kinds = vec![Kind("g5.xlarge", capacity(4, 16, 1), Some("a10g"), &[("a", "1.006")])];
    let limits = PoolLimits { nodes: Some(3), usd_per_hour: Some(usd("3.10")), ..PoolLimits::default() };
    let snapshot = cluster(catalogue(kinds), [Pool { limits, ..pool("gpu") }]);
    let plan = planned(&with(with(snapshot, [group("train", Some(4))]), members("train", 4)));
    let (_, said) = why(&plan, "train-0");
    for limit in ["limit nodes = 3 of pool `gpu`", "limit usdPerHour = 3.10 of pool `gpu`"] {
        assert!(said.contains(limit), "{said}");
    }
}

#[test]
fn a_limit_that_leaves_a_gang_out_is_a_finding_of_its_pool_as_for_single_pods() {
    let reached = |most: u64, others: Vec<Pod>| {
        let pods = members("train", 4).into_iter().chain(others);
        let plan = planned(&with(with(nodes(most), [group("train", Some(4))]), pods));
        plan.pools[&pool("gpu").name].limit_reached.clone()
    };
    assert_eq!(
        reached(3, vec![]).as_deref(),
        Some("limit nodes = 3 of pool `gpu` is too low for the pods of this plan; raise spec.limits")
    );
    let beside = reached(3, vec![pod("single", requests(3, 12, 1))]);
    assert_eq!(
        beside.as_deref(),
        Some("limit nodes = 3 of pool `gpu` leaves too little (in use or on order: 1); raise spec.limits")
    );
    assert_eq!(reached(4, vec![]), None, "the gang has room");
}

/// Returns the messages for unplaced pods of this group, with cordoned nodes of these names that hold one member each.
fn beside_cordoned(snapshot: Snapshot, of: PodGroup, count: usize, cordoned: &[&str]) -> Vec<String> {
    let name = of.key.name.clone();
    let nodes = cordoned.iter().map(|name| Node { cordoned: true, ..node(name, capacity(4, 16, 1)) });
    let plan = planned(&with(with(with(snapshot, [of]), nodes), members(&name, count)));
    plan.unplaced.into_iter().map(|left| left.message).collect()
}

const OFFER: &str = "; or run `kubectl uncordon n1`: that node has room for it";

#[test]
fn a_cordoned_node_is_offered_to_a_pod_of_a_basic_group_as_to_any_pod() {
    let told = beside_cordoned(nodes(0), group("web", None), 2, &["n1"]);
    assert!(told[0].ends_with(OFFER), "{told:?}");
    assert!(!told[1].contains("uncordon"), "it has one GPU: {told:?}");
}

#[test]
fn a_cordoned_node_is_offered_to_the_pods_beyond_those_that_start_together() {
    let told = beside_cordoned(nodes(2), group("train", Some(2)), 3, &["n1"]);
    let [third] = told.as_slice() else { panic!("{told:?}") };
    assert!(third.starts_with("limit nodes = 2 of pool `gpu`") && third.ends_with(OFFER), "{third}");
}

#[test]
fn cordoned_nodes_are_offered_to_a_gang_only_if_they_hold_all_that_start_together() {
    let told = beside_cordoned(nodes(0), group("train", Some(2)), 2, &["n1", "n2"]);
    let offer =
        "; or run `kubectl uncordon n1 n2`: these nodes have room for 2 pods of its PodGroup default/train";
    assert!(told.len() == 2 && told.iter().all(|told| told.ends_with(offer)), "{told:?}");
    let told = beside_cordoned(nodes(0), group("train", Some(2)), 2, &["n1"]);
    assert!(told.len() == 2 && !told.concat().contains("uncordon"), "{told:?}");
}

#[test]
fn other_pods_use_the_capacity_that_a_gang_cannot_use() {
    let single = pod("single", requests(3, 12, 1));
    let snapshot =
        with(with(nodes(3), [group("train", Some(4))]), members("train", 4).into_iter().chain([single]));
    assert_eq!(names(&planned(&snapshot)), ["single"]);
}

#[test]
fn the_more_important_of_two_gangs_is_bought_and_then_the_older() {
    let later = |pods: Vec<Pod>| pods.into_iter().map(|pod| Pod { created: at(5), ..pod });
    let groups = [group("first", Some(3)), group("second", Some(3))];
    let all: Vec<Pod> = members("first", 3).into_iter().chain(later(members("second", 3))).collect();
    let snapshot = with(with(nodes(5), groups), all.clone());
    assert_eq!(names(&planned(&snapshot)), ["first-0", "first-1", "first-2"]);
    let important =
        all.into_iter().map(|pod| Pod { priority: i32::from(pod.group.as_deref() == Some("second")), ..pod });
    assert_eq!(names(&planned(&with(snapshot, important))), ["second-0", "second-1", "second-2"]);
}

#[test]
fn many_gangs_under_one_limit_leave_none_in_part() {
    let names_of: Vec<String> = (0..9).map(|at| format!("gang{at}")).collect();
    let groups = names_of.iter().map(|name| group(name, Some(3)));
    let pods = names_of.iter().flat_map(|name| members(name, 3));
    let plan = planned(&with(with(nodes(14), groups), pods));
    for name in &names_of {
        let placed = names(&plan).iter().filter(|pod| pod.starts_with(name.as_str())).count();
        assert!(placed == 0 || placed == 3, "{placed} of {name}");
    }
    assert!(names(&plan).len() >= 6, "some of them fit: {:?}", names(&plan));
}

#[test]
fn pods_beyond_the_least_count_are_bought_as_far_as_there_is_room() {
    let snapshot = with(with(nodes(5), [group("train", Some(4))]), members("train", 7));
    let plan = planned(&snapshot);
    assert_eq!(names(&plan).len(), 5);
    assert!(
        plan.unplaced.iter().all(|left| left.reason == UnplacedReason::LimitReached),
        "{:?}",
        plan.unplaced
    );
}

#[test]
fn a_gang_that_is_not_all_there_waits_and_says_for_how_many() {
    let pods = (0..3).map(|at| held("train", at));
    let snapshot = with(with(nodes(9), [group("train", Some(8))]), pods);
    let plan = planned(&snapshot);
    assert_eq!(plan.claims, []);
    let (reason, message) = why(&plan, "train-0");
    assert_eq!(reason, UnplacedReason::PodGroupPending);
    assert_eq!(
        message,
        "waits for 5 of 8 pods of its PodGroup default/train: 3 are there, and the scheduler tries none before all 8 are"
    );
    let all = (0..8).map(|at| member("train", at));
    assert_eq!(names(&planned(&with(snapshot, all))).len(), 8);
}

#[test]
fn a_gang_waits_until_the_scheduler_has_tried_all_its_pods() {
    let snapshot = with(with(nodes(4), [group("train", Some(3))]), members("train", 2));
    let plan = planned(&with(snapshot, [held("train", 2)]));
    assert_eq!(plan.claims, []);
    let (reason, message) = why(&plan, "train-0");
    assert_eq!(reason, UnplacedReason::PodGroupPending);
    assert_eq!(
        message,
        "waits for 1 of 3 pods of its PodGroup default/train that cannot be planned yet; \
         pod default/train-2: the scheduler has not tried it yet"
    );
    assert_eq!(why(&plan, "train-2").0, UnplacedReason::NotYetTried);
}

#[test]
fn pods_that_run_count_and_only_the_missing_ones_are_bought() {
    let pods = (0..4).map(|at| match at {
        3 => member("train", at),
        _ => bound(member("train", at), "n"),
    });
    let plan = planned(&with(with(nodes(4), [group("train", Some(4))]), pods));
    assert_eq!(names(&plan), ["train-3"]);
}

#[test]
fn pods_of_a_basic_group_are_planned_like_any() {
    let plan = planned(&with(with(nodes(3), [group("train", None)]), members("train", 4)));
    assert_eq!((names(&plan).len(), plan.unplaced.len()), (3, 1));
    assert_eq!(plan.unplaced[0].reason, UnplacedReason::LimitReached);
}

#[test]
fn a_group_that_is_not_there_is_named_and_nothing_is_bought() {
    let snapshot = with(nodes(9), [held("train", 0), member("train", 1)]);
    let plan = planned(&snapshot);
    assert_eq!(plan.claims, []);
    for name in ["train-0", "train-1"] {
        let (reason, message) = why(&plan, name);
        assert_eq!(reason, UnplacedReason::PodGroupMissing);
        assert!(reason.is_unmet_demand() && message.contains("PodGroup default/train"), "{message}");
    }
    let mut index = ClusterIndex::new();
    assert_eq!(index.apply_pod(held("train", 0)), Change::Demand, "somebody has to say so");
    let there = group("train", Some(2));
    assert_eq!(index.apply_pod_group(there.clone()), Change::Room, "planned anew once it comes");
    assert_eq!(index.apply_pod_group(there.clone()), Change::None);
    assert_eq!(index.apply_pod(held("train", 1)), Change::Life);
    assert_eq!(index.reset_pod_groups(None, [there]), Change::None);
    assert_eq!(index.delete_pod_group(&object_key("train")), Change::Room);
}

#[test]
fn a_pod_group_of_another_scheduler_is_named_while_it_is_missing_or_waits_in_a_queue() {
    let name = GangScheduler::Volcano.model_name("train");
    let pods = [0, 1].map(|at| Pod { group: Some(name.clone()), ..member("train", at) });
    let (reason, message) = why(&planned(&with(nodes(4), pods.clone())), "train-0");
    assert_eq!(reason, UnplacedReason::PodGroupMissing);
    assert!(message.starts_with("belongs to PodGroup default/train of scheduling.volcano.sh ("), "{message}");
    assert!(message.contains("list podgroups of scheduling.volcano.sh/v1beta1"), "{message}");
    let with_group = |group: PodGroup| planned(&with(with(nodes(4), [group]), pods.clone()));
    let held = PodGroup { held: Some("is Pending".into()), ..group(&name, Some(2)) };
    let (reason, message) = why(&with_group(held), "train-0");
    assert_eq!(reason, UnplacedReason::PodGroupPending);
    assert_eq!(message, "its PodGroup default/train of scheduling.volcano.sh is Pending");
    assert_eq!(names(&with_group(group(&name, Some(2)))), ["train-0", "train-1"]);
}

#[test]
fn a_list_of_the_pod_groups_of_one_scheduler_leaves_those_of_the_others() {
    let [volcano, other] = GangScheduler::ALL.map(|scheduler| scheduler.model_name("train"));
    let mut index = ClusterIndex::new();
    for name in ["train", &volcano, &other] {
        index.apply_pod_group(group(name, Some(2)));
    }
    let left = |index: &ClusterIndex| {
        index.view().pod_groups.keys().map(|key| key.name.clone()).collect::<Vec<String>>()
    };
    assert_eq!(index.reset_pod_groups(Some(GangScheduler::Volcano), []), Change::Room);
    assert_eq!(left(&index), ["train".to_owned(), other.clone()]);
    assert_eq!(index.reset_pod_groups(None, []), Change::Room);
    assert_eq!(left(&index), [other]);
}

#[test]
fn an_unmodelled_field_of_a_pod_group_is_reported() {
    let rule = UnmodelledRule {
        field: "spec.schedulingConstraints.topology".into(),
        rule: "all pods in one topology domain".into(),
    };
    let group = PodGroup { unmodelled: vec![rule], ..group("train", Some(1)) };
    let plan = planned(&with(with(nodes(9), [group]), members("train", 1)));
    let (reason, message) = why(&plan, "train-0");
    assert_eq!((reason, plan.claims.len()), (UnplacedReason::UnmodelledRule, 0));
    assert!(message.contains("`spec.schedulingConstraints.topology`") && message.contains("default/train"));
}

#[test]
fn groups_of_the_same_name_in_two_namespaces_are_two() {
    let elsewhere = |pod: Pod| Pod { key: PodKey::new("other", pod.key.name()), ..pod };
    let mut pods = members("train", 2);
    pods.extend((0..2).map(|at| elsewhere(member("train", at))));
    let plan = planned(&with(with(nodes(9), [group("train", Some(3))]), pods));
    assert_eq!(plan.claims, []);
    assert_eq!(plan.unplaced[0].reason, UnplacedReason::PodGroupPending);
    assert_eq!(plan.unplaced[3].reason, UnplacedReason::PodGroupMissing);
}

#[test]
fn manifests_of_a_gang_are_planned_whole_before_any_scheduler_saw_them() {
    let pods = (0..4).map(|at| held("train", at));
    let snapshot = with(with(nodes(4), [group("train", Some(4))]), pods);
    let options = PlanOptions { include_waiting: true, ..PlanOptions::default() };
    assert_eq!(plan(&snapshot, at(10), &options, &mut NeverStop).claims.len(), 4);
}

/// Returns four members, each with a node on its way, in a cluster that may have at most `most` nodes.
fn under_way(most: u64) -> Snapshot {
    let first = with(with(nodes(4), [group("train", Some(4))]), members("train", 4));
    let after = carried_out(&first, &planned(&first), 11);
    let pools = nodes(most).pools;
    Snapshot { pools, ..after }
}

#[test]
fn a_gang_with_starting_nodes_is_not_bought_again() {
    let plan = planned_at(&under_way(4), 20);
    assert_eq!((plan.claims.len(), plan.placements.len()), (0, 4));
}

#[test]
fn a_node_that_is_lost_is_bought_again_for_the_gang_that_waits() {
    let mut after = under_way(4);
    let lost = after.claims.values().next().unwrap().name.clone();
    after.claims.remove(&lost);
    let plan = planned_at(&after, 20);
    assert_eq!((plan.claims.len(), plan.placements.len(), plan.unplaced.len()), (1, 3, 0));
}

#[test]
fn the_remaining_nodes_of_an_unplaceable_gang_count_as_empty() {
    let mut after = under_way(3);
    let lost = after.claims.values().next().unwrap().name.clone();
    after.claims.remove(&lost);
    let plan = planned_at(&after, 20);
    assert_eq!((plan.claims.len(), plan.placements.len()), (0, 3));
    assert_eq!(plan.unplaced[0].reason, UnplacedReason::GangIncomplete);
    after.nominations.clone_from(&plan.nominations);
    let claim = after.claims.values().next().unwrap().as_ref().clone();
    let (name, id) = (claim.name.clone(), format!("kwok://{}", claim.name));
    let ready = true_since(launched(claim), ConditionType::Launched, 12);
    let ready = true_since(true_since(ready, ConditionType::Registered, 13), ConditionType::Initialized, 14);
    let there = Node { provider_id: Some(id), ..node("n", capacity(4, 16, 1)) };
    let open = with(with(after, [Claim { node_name: Some("n".into()), ..ready }]), [there]);
    let empties = |snapshot: &Snapshot| {
        let is_empty = |action: &Action| {
            matches!(action, Action::SetConditions { subject: Subject::Claim(claim), conditions }
                if *claim == name && conditions.iter().any(|one| one.kind == ConditionType::Empty
                    && one.status == ConditionStatus::True))
        };
        decide(snapshot, at(30)).actions.iter().any(is_empty)
    };
    assert!(empties(&open), "it waits for a gang that is not whole");
    let mut whole = open;
    whole.nominations.insert(
        plan.unplaced[0].pod.clone(),
        (Uid(format!("pod-{}", plan.unplaced[0].pod.name())), "new".into()),
    );
    assert!(!empties(&whole), "it waits for its pod");
}

/// Returns a gang of four for which one node failed and cannot be bought again.
fn without_one() -> Snapshot {
    let mut after = under_way(3);
    let lost = after.claims.values().next().unwrap().name.clone();
    after.claims.remove(&lost);
    let plan = planned_at(&after, 20);
    assert_eq!((plan.claims.len(), plan.unplaced[0].reason), (0, UnplacedReason::GangIncomplete));
    after.nominations.clone_from(&plan.nominations);
    after
}

/// Returns the claims that are marked as empty, and the claims that are deleted.
fn given_back(snapshot: &Snapshot, seconds: i64) -> (Vec<ClaimName>, Vec<ClaimName>) {
    let (mut empty, mut deleted) = (Vec::new(), Vec::new());
    for action in decide(snapshot, at(seconds)).actions {
        match action {
            Action::SetConditions { subject: Subject::Claim(claim), conditions }
                if conditions
                    .iter()
                    .any(|one| one.kind == ConditionType::Empty && one.status == ConditionStatus::True) =>
            {
                empty.push(claim);
            }
            Action::DeleteClaim { claim, only_if_empty: true, .. } => deleted.push(claim),
            _ => {}
        }
    }
    (empty, deleted)
}

#[test]
fn claims_of_an_unplaceable_gang_end_at_every_stage() {
    let mut there = without_one();
    let claims: Vec<Claim> = there.claims.values().map(|claim| claim.as_ref().clone()).collect();
    let [ordered, launched_one, joined] = claims.try_into().unwrap();
    let launched_one = true_since(launched(launched_one), ConditionType::Launched, 12);
    let joined = true_since(launched(joined), ConditionType::Launched, 12);
    let joined = Claim { node_name: Some("n".into()), ..true_since(joined, ConditionType::Registered, 13) };
    let id = joined.launched.as_ref().map(|launched| launched.provider_id.clone());
    let node = Node { provider_id: id, ready: false, ..node("n", capacity(4, 16, 1)) };
    let names = [&ordered, &launched_one, &joined].map(|claim| claim.name.clone()).to_vec();
    there = with(with(there, [ordered, launched_one, joined]), [node]);
    // The claims were created at 11 s. For 15 s, the remaining claims may still be written or planned again.
    assert_eq!(given_back(&there, 25), (vec![], vec![]));
    assert_eq!(given_back(&there, 26), (names.clone(), vec![]));
    let recorded =
        there.claims.values().map(|claim| true_since(claim.as_ref().clone(), ConditionType::Empty, 26));
    let recorded: Vec<Claim> = recorded.collect();
    let there = with(there, recorded);
    assert_eq!(given_back(&there, 40).1, []);
    assert_eq!(given_back(&there, 41).1, names);
}

#[test]
fn claims_of_a_gang_stay_if_the_missing_ones_are_bought_in_time() {
    let there = without_one();
    let recorded: Vec<Claim> = there
        .claims
        .values()
        .map(|claim| true_since(claim.as_ref().clone(), ConditionType::Empty, 26))
        .collect();
    let mut there = with(there, recorded);
    let waiting = there.claims.values().flat_map(|claim| &claim.planned_pods).collect::<Vec<_>>();
    let missing = (0..4).map(|at| key(&format!("train-{at}"))).find(|pod| !waiting.contains(&pod)).unwrap();
    there.nominations.insert(missing.clone(), (Uid(format!("pod-{}", missing.name())), "elsewhere".into()));
    assert_eq!(given_back(&there, 300), (vec![], vec![]));
    let no_longer_empty = decide(&there, at(300)).actions.iter().any(|action| {
        matches!(action, Action::SetConditions { conditions, .. }
            if conditions.iter().any(|one| one.kind == ConditionType::Empty && one.status == ConditionStatus::False))
    });
    assert!(no_longer_empty, "and it is said that they are of use");
}

#[test]
fn a_gang_keeps_its_claims_if_its_pool_never_scales_down() {
    let mut there = without_one();
    let kept = Pool { scale_to_zero: ScaleToZero::Never, ..pool("gpu") };
    there.pools.insert(kept.name.clone(), kept.into());
    assert_eq!(given_back(&there, 300), (vec![], vec![]));
}

#[test]
fn a_node_stays_reserved_until_the_last_one_of_its_gang_has_been_open_for_a_minute() {
    let pods = ["p", "q"].map(|name| Pod { group: Some("train".into()), ..pod(name, requests(1, 1, 1)) });
    let reserved = Node { taints: vec![taint(RESERVED_TAINT, "c")], ..claimed_node() };
    let other = Claim { name: ClaimName("d".into()), planned_pods: vec![key("q")], ..claim() };
    let base = with(with(with(cluster(aws(), [pool("gpu")]), [group("train", Some(2))]), pods), [reserved]);
    let lifted = |other: Claim, seconds| {
        let snapshot = with(base.clone(), [initialized(), other]);
        let is_lifted = |action: &Action| matches!(action, Action::SetTaints { node, taints } if node == "n" && taints.is_empty());
        let actions = decide(&snapshot, at(seconds)).actions;
        let complains = |action: &Action| matches!(action, Action::RecordEvent(one) if one.reason == "NotScheduledAsPlanned");
        (actions.iter().any(is_lifted), actions.iter().any(complains))
    };
    assert_eq!(lifted(other.clone(), 200), (false, false), "the other node is still on its way");
    let open = Claim { node_name: Some("m".into()), ..true_since(other, ConditionType::Initialized, 180) };
    assert_eq!(lifted(open.clone(), 239), (false, false));
    assert_eq!(lifted(open, 240), (true, true));
}
