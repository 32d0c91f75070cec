//! Conflicts for the solver: the classes that must not share a node, and host ports as numbers.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use crate::model::HostPort;
use crate::rules::colocation::Colocation;

/// The most pairs of classes that the solver gets. Sets of classes with more pairs become one set whose pods all exclude each other.
const MOST_PAIRS: u64 = 1 << 23;

/// What keeps classes from sharing a node, in the solver's form.
#[derive(Debug, Default)]
pub(crate) struct Conflicts {
    /// Pairs of classes that must not share a node. They ascend, and the smaller class comes first.
    pub pairs: Vec<(u32, u32)>,
    /// By class, ascending: the numbers of host ports, and of sets of pods that exclude each other. Pods with a common number must
    /// not share a node.
    pub ports: Vec<Vec<u32>>,
}

impl Colocation<'_> {
    /// Returns what keeps classes from sharing a node: host ports, anti-affinity, or that the solver has no common ceiling for both.
    /// `profiles` has the profile of each class.
    ///
    /// There are never more than [`MOST_PAIRS`] pairs. Beyond that, the classes with the most pairs exclude each other altogether,
    /// so each node gets at most one of their pods. That breaks no rule, but a plan may cost several times as much.
    pub fn conflicts(&self, profiles: &[usize]) -> Conflicts {
        let mut of_profile: BTreeMap<usize, Vec<u32>> = BTreeMap::new();
        for (class, profile) in (0..).zip(profiles) {
            if *profile > 0 {
                of_profile.entry(*profile).or_default().push(class);
            }
        }
        let mut ports: Vec<BTreeSet<u32>> = profiles.iter().map(|profile| self.ports(*profile)).collect();
        let mut sets = self.exclusive_sets(&of_profile);
        let mut blocks = self.blocks(&of_profile);
        let mut left: u64 = blocks.iter().map(|(size, ..)| size).sum();
        blocks.sort_by_key(|(size, one, other)| (Reverse(*size), *one, *other));
        let mut pairs = Vec::new();
        for (size, one, other) in blocks {
            let (first, second) = (&of_profile[&one], &of_profile[&other]);
            if left > MOST_PAIRS {
                left -= size;
                sets.push(first.iter().chain(second).copied().collect());
                continue;
            }
            for class in first {
                let partners = second.iter().filter(|partner| other != one || class < *partner);
                pairs.extend(partners.map(|partner| (*class.min(partner), *class.max(partner))));
            }
        }
        pairs.sort_unstable();
        for (number, set) in (self.numbers.len() as u32..).zip(sets) {
            for class in set {
                ports[class as usize].insert(number);
            }
        }
        Conflicts { pairs, ports: ports.into_iter().map(|ports| ports.into_iter().collect()).collect() }
    }

    /// Returns the sets of at least two classes that exclude each other by a common anti-affinity term. A single class has a maximum
    /// on each node instead ([`Self::most`]).
    fn exclusive_sets(&self, of_profile: &BTreeMap<usize, Vec<u32>>) -> Vec<Vec<u32>> {
        let mut of_term: BTreeMap<usize, Vec<u32>> = BTreeMap::new();
        for (profile, classes) in of_profile {
            for term in &self.profiles[*profile].exclusive {
                of_term.entry(*term).or_default().extend(classes);
            }
        }
        of_term.into_values().filter(|classes| classes.len() > 1).collect()
    }

    /// Returns the pairs of profiles with classes that must not share a node, and the number of pairs of classes of each. Pairs with
    /// a common exclusive term are left out.
    fn blocks(&self, of_profile: &BTreeMap<usize, Vec<u32>>) -> Vec<(u64, usize, usize)> {
        let mut blocks = Vec::new();
        for (one, first) in of_profile {
            let profile = &self.profiles[*one];
            // Each excludes the other, so the lower profile of two is enough.
            for other in profile.apart.union(&profile.counted).filter(|other| *other >= one) {
                let Some(second) = of_profile.get(other) else { continue };
                let (first, second) = (first.len() as u64, second.len() as u64);
                let size = if one == other { first * (first - 1) / 2 } else { first * second };
                if size > 0 && profile.exclusive.is_disjoint(&self.profiles[*other].exclusive) {
                    blocks.push((size, *one, *other));
                }
            }
        }
        blocks
    }

    /// Returns the host ports of a profile as numbers for the solver: equal numbers conflict. A port on all host IPs has the
    /// numbers of every host IP in use.
    fn ports(&self, profile: usize) -> BTreeSet<u32> {
        let mut numbers = BTreeSet::new();
        for port in self.profiles[profile].ports.iter().copied().flatten() {
            // The ports of one number and protocol follow each other, and the one on all host IPs is the first.
            let first = HostPort { ip: None, ..port.clone() };
            let like = self.numbers.range::<HostPort, _>(&first..);
            let like =
                like.take_while(|(other, _)| other.port == port.port && other.protocol == port.protocol);
            let like = like.filter(|(other, _)| port.ip.is_none() || port.ip == other.ip);
            numbers.extend(like.map(|(_, number)| *number));
        }
        numbers
    }
}

#[cfg(test)]
mod tests {
    use poolwright_terms::labels::HOSTNAME;
    use proptest::prelude::*;

    use super::*;
    use crate::model::{Namespaces, Operator, Pod, PodAffinityTerm, PodKey, PodSpec, Requirement};
    use crate::rules::{generated, ports};

    fn must_be_apart(colocation: &Colocation<'_>, one: usize, other: usize) -> bool {
        colocation.are_apart(one, other)
            || colocation.profiles[one].counted.contains(&other)
            || !colocation.ports(one).is_disjoint(&colocation.ports(other))
    }

    fn are_apart(conflicts: &Conflicts, one: u32, other: u32) -> bool {
        conflicts.pairs.binary_search(&(one, other)).is_ok()
            || conflicts.ports[one as usize].iter().any(|port| conflicts.ports[other as usize].contains(port))
    }

    /// Returns a term over nodes that selects pods of this app.
    fn away_from(app: &str) -> PodAffinityTerm {
        let operator = Operator::In([app.to_owned()].into());
        PodAffinityTerm {
            topology_key: HOSTNAME.to_owned(),
            namespaces: Namespaces::All,
            selector: Some(vec![Requirement { key: "app".to_owned(), operator }]),
        }
    }

    fn named(name: &str, app: &str, terms: Vec<PodAffinityTerm>) -> Pod {
        let spec = PodSpec { anti_affinity: terms, ..PodSpec::default() };
        let labels = BTreeMap::from([("app".to_owned(), app.to_owned()), ("of".to_owned(), name.to_owned())]);
        Pod { labels: labels.into(), ..Pod::waiting(PodKey::new("default", name), spec) }
    }

    #[test]
    fn ten_thousand_classes_that_exclude_each_other_are_one_set_and_no_pairs() {
        let snapshot = generated::snapshot(&[named("a", "web", vec![away_from("web")])]);
        let colocation = Colocation::new(&snapshot);
        let profile = colocation.of(&PodKey::new("default", "a"));
        let conflicts = colocation.conflicts(&vec![profile; 10_000]);
        assert!(conflicts.pairs.is_empty());
        assert!(conflicts.ports.iter().all(|ports| *ports == [0_u32]));
        let single = colocation.conflicts(&[profile]);
        assert_eq!(single.ports, [[0_u32; 0]], "a class that is alone needs no set");
        assert_eq!(colocation.most(profile), Some(1));
    }

    #[test]
    fn many_profiles_that_exclude_each_other_by_one_term_are_no_pairs_of_profiles() {
        // Each pod also keeps away from pods with its own label, so each has a profile of its own.
        let of_its_own = |name: &str| {
            let operator = Operator::In([name.to_owned()].into());
            let selector = Some(vec![Requirement { key: "of".to_owned(), operator }]);
            PodAffinityTerm { selector, ..away_from("web") }
        };
        let names: Vec<String> = (0..300).map(|at| format!("p{at}")).collect();
        let pod = |name: &String| named(name, "web", vec![away_from("web"), of_its_own(name)]);
        let pods: Vec<Pod> = names.iter().map(pod).collect();
        let snapshot = generated::snapshot(&pods);
        let colocation = Colocation::new(&snapshot);
        assert_eq!(colocation.profiles.len(), 301);
        assert!(colocation.profiles.iter().all(|profile| profile.apart.is_empty()));
        let profiles: Vec<usize> = pods.iter().map(|pod| colocation.of(&pod.key)).collect();
        let conflicts = colocation.conflicts(&profiles);
        assert!(conflicts.pairs.is_empty());
        assert!(conflicts.ports.iter().all(|ports| *ports == [0_u32]));
    }

    #[test]
    fn too_many_pairs_become_a_set_that_keeps_every_rule() {
        // The guards keep away from web pods, but not from each other.
        let pods = [named("guard", "guard", vec![away_from("web")]), named("web", "web", Vec::new())];
        let snapshot = generated::snapshot(&pods);
        let colocation = Colocation::new(&snapshot);
        let [guard, web] = pods.each_ref().map(|pod| colocation.of(&pod.key));
        let both = |count: usize| [vec![guard; count], vec![web; count]].concat();
        let few = colocation.conflicts(&both(2000));
        assert_eq!(few.pairs.len(), 4_000_000);
        assert!(few.ports.iter().all(Vec::is_empty));
        let many = colocation.conflicts(&both(3000));
        assert!(many.pairs.is_empty());
        assert!((0..3000).all(|one| are_apart(&many, one, one + 3000)));
    }

    proptest! {
        #[test]
        fn classes_are_in_conflict_if_their_profiles_must_be_apart(pods in generated::pods(HOSTNAME)) {
            let snapshot = generated::snapshot(&pods);
            let mut colocation = Colocation::new(&snapshot);
            let mut profiles: Vec<usize> = pods.iter().map(|pod| colocation.of(&pod.key)).collect();
            for members in profiles.clone().chunks(2) {
                profiles.push(colocation.together(members.to_vec()));
            }
            let conflicts = colocation.conflicts(&profiles);
            prop_assert!(conflicts.pairs.is_sorted());
            for (one, first) in profiles.iter().enumerate() {
                for (other, second) in profiles.iter().enumerate().skip(one + 1) {
                    let must = *first > 0 && *second > 0 && must_be_apart(&colocation, *first, *second);
                    prop_assert_eq!(are_apart(&conflicts, one as u32, other as u32), must);
                }
                // A number allows one pod of the class on a node.
                let (ports, own) = (&conflicts.ports[one], colocation.ports(*first));
                prop_assert!(ports.len() == own.len() || colocation.most(*first).is_some_and(|most| most <= 1));
            }
        }

        #[test]
        fn two_pods_have_a_port_number_in_common_exactly_if_their_host_ports_conflict(
            pods in generated::pods(HOSTNAME),
        ) {
            let snapshot = generated::snapshot(&pods);
            let colocation = Colocation::new(&snapshot);
            let numbers = |pod: &Pod| colocation.ports(colocation.of(&pod.key));
            for one in &pods {
                for other in &pods {
                    let (mine, theirs) = (numbers(one), numbers(other));
                    let conflict = ports::check(&one.spec.host_ports, &other.spec.host_ports).is_err();
                    prop_assert_eq!(mine.iter().any(|number| theirs.contains(number)), conflict);
                }
            }
        }
    }
}
