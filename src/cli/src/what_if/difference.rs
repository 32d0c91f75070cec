//! The difference between what two plans lead to.

use std::collections::{BTreeMap, BTreeSet};

use poolwright_catalog::UsdPerHour;

use super::delta::Delta;
use super::outcome::{NodeKind, Nodes, Outcome, Place};

/// The numbers of nodes of a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KindChange {
    /// The kind.
    pub kind: NodeKind,
    /// The number before.
    pub before: usize,
    /// The number after.
    pub after: usize,
    /// The price of each before; `None` if it is unknown or there is no such node.
    pub each_before: Option<UsdPerHour>,
    /// The same after.
    pub each_after: Option<UsdPerHour>,
}

/// A pod with another place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Move {
    /// The pod.
    pub pod: String,
    /// Its place before.
    pub from: Place,
    /// Its place after.
    pub to: Place,
}

/// The difference between what two plans lead to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Difference {
    /// The difference of the costs.
    pub cost: Delta,
    /// All kinds of nodes of both plans.
    pub kinds: Vec<KindChange>,
    /// The pods of both plans that have another place after. What waits or is lost after is not among them.
    pub moves: Vec<Move>,
    /// The pods that wait only after the change.
    pub waits: Vec<String>,
    /// The pods that wait only before the change.
    pub placed: Vec<String>,
    /// The pods that are lost.
    pub lost: Vec<String>,
    /// The pods that are only there after the change.
    pub added: Vec<String>,
    /// The pods that are only there before the change.
    pub removed: Vec<String>,
    /// Whether the expected loss differs.
    other_risk: bool,
    /// Whether the work that is not planned differs.
    other_unplanned: bool,
}

impl Difference {
    /// Compares what two plans lead to.
    pub fn between(before: &Outcome, after: &Outcome) -> Self {
        let mut difference = Self {
            cost: Delta::between(before.cost.usd_per_hour, after.cost.usd_per_hour),
            kinds: kinds(&before.nodes, &after.nodes),
            other_risk: before.risk != after.risk,
            other_unplanned: before.unplanned != after.unplanned,
            ..Self::default()
        };
        let pods: BTreeSet<&String> = before.places.keys().chain(after.places.keys()).collect();
        for pod in pods {
            difference.add(pod, before.places.get(pod), after.places.get(pod));
        }
        difference
    }

    fn add(&mut self, pod: &str, before: Option<&Place>, after: Option<&Place>) {
        let pod = pod.to_owned();
        match (before, after) {
            (None, None) => return,
            (None, Some(_)) => self.added.push(pod.clone()),
            (Some(_), None) => {
                self.removed.push(pod);
                return;
            }
            (Some(_), Some(_)) => {}
        }
        match (before, after) {
            (before, after) if before == after => {}
            (_, Some(Place::Waits)) => self.waits.push(pod),
            (_, Some(Place::Lost)) => self.lost.push(pod),
            (Some(Place::Waits), _) => self.placed.push(pod),
            (Some(from), Some(to)) => self.moves.push(Move { pod, from: from.clone(), to: to.clone() }),
            _ => {}
        }
    }

    /// Returns whether anything differs.
    pub fn is_any(&self) -> bool {
        !self.cost.is_zero()
            || self.other_risk
            || self.other_unplanned
            || self.kinds.iter().any(KindChange::is_any)
            || [&self.waits, &self.placed, &self.lost, &self.added, &self.removed]
                .into_iter()
                .any(|pods| !pods.is_empty())
            || !self.moves.is_empty()
    }
}

impl KindChange {
    /// Returns whether the number or the price differs.
    pub fn is_any(&self) -> bool {
        let is_dearer = self.each_before.zip(self.each_after).is_some_and(|(before, after)| before != after);
        self.before != self.after || is_dearer
    }
}

fn kinds(before: &BTreeMap<NodeKind, Nodes>, after: &BTreeMap<NodeKind, Nodes>) -> Vec<KindChange> {
    let all: BTreeSet<&NodeKind> = before.keys().chain(after.keys()).collect();
    let change = |kind: &NodeKind| {
        let of = |nodes: &BTreeMap<NodeKind, Nodes>| nodes.get(kind).copied().unwrap_or_default();
        let (before, after) = (of(before), of(after));
        KindChange {
            kind: kind.clone(),
            before: before.count,
            after: after.count,
            each_before: before.each,
            each_after: after.each,
        }
    };
    all.into_iter().map(change).collect()
}

#[cfg(test)]
pub mod tests {
    use poolwright_report::Cost;
    use poolwright_report::plan::Refusal;
    use poolwright_terms::CapacityType;

    use super::*;

    pub fn kind(name: &str) -> NodeKind {
        NodeKind {
            instance_type: name.to_owned(),
            zone: "us-east-1a".to_owned(),
            capacity_type: CapacityType::OnDemand,
        }
    }

    /// Returns an outcome of this cost per hour, with nodes of these numbers at a dollar, and these places.
    pub fn outcome(cost: &str, nodes: &[(&str, usize)], places: &[(&str, Place)]) -> Outcome {
        let each = Some(UsdPerHour::from_micros(1_000_000));
        Outcome {
            nodes: nodes.iter().map(|(name, count)| (kind(name), Nodes { count: *count, each })).collect(),
            cost: Cost { usd_per_hour: cost.parse().expect("an amount"), unknown_prices: 0 },
            places: places.iter().map(|(pod, place)| ((*pod).to_owned(), place.clone())).collect(),
            ..Outcome::default()
        }
    }

    #[test]
    fn pods_move_wait_get_a_place_come_and_go() {
        let node = |name: &str| Place::Node(name.to_owned());
        let before = outcome(
            "1",
            &[("g5.xlarge", 1)],
            &[
                ("gone", node("a")),
                ("late", Place::Waits),
                ("lost", node("a")),
                ("moves", node("a")),
                ("shut", node("a")),
                ("stays", node("a")),
            ],
        );
        let after = outcome(
            "2",
            &[("g6.xlarge", 2)],
            &[
                ("late", node("a")),
                ("lost", Place::Lost),
                ("moves", Place::New(kind("g6.xlarge"))),
                ("new", Place::Waits),
                ("shut", Place::Waits),
                ("stays", node("a")),
            ],
        );
        let found = Difference::between(&before, &after);
        assert_eq!(found.moves.iter().map(|one| one.pod.as_str()).collect::<Vec<_>>(), ["moves"]);
        assert_eq!(
            (found.waits, found.placed),
            (vec!["new".to_owned(), "shut".to_owned()], vec!["late".to_owned()])
        );
        assert_eq!((found.lost, found.added), (vec!["lost".to_owned()], vec!["new".to_owned()]));
        assert_eq!(found.removed, ["gone"]);
        let counts: Vec<_> = found.kinds.iter().map(|one| (one.before, one.after)).collect();
        assert_eq!(counts, [(1, 0), (0, 2)]);
    }

    #[test]
    fn work_that_is_planned_on_one_side_only_is_a_difference() {
        let before = outcome("1", &[], &[]);
        let mut refused = before.clone();
        refused.unplanned.refused.push(Refusal { object: "Job ml/a".to_owned(), pods: 2 });
        let (mut unread, mut on_unknown_nodes) = (before.clone(), before.clone());
        unread.unplanned.unread.push("Trainer ml/a".to_owned());
        on_unknown_nodes.unplanned.on_unknown_nodes.push("Pod ml/a".to_owned());
        for other in [refused, unread, on_unknown_nodes] {
            assert!(
                Difference::between(&before, &other).is_any()
                    && Difference::between(&other, &before).is_any()
            );
            assert!(!Difference::between(&other, &other).is_any());
        }
    }

    #[test]
    fn equal_outcomes_have_no_difference_and_another_price_is_one() {
        let before = outcome("1", &[("g5.xlarge", 1)], &[("p", Place::New(kind("g5.xlarge")))]);
        assert!(!Difference::between(&before, &before).is_any());
        let mut dearer = before.clone();
        for nodes in dearer.nodes.values_mut() {
            nodes.each = Some(UsdPerHour::from_micros(2));
        }
        assert!(Difference::between(&before, &dearer).is_any());
    }
}
