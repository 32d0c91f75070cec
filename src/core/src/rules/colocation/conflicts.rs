//! Conflicts for the solver: the classes that must not share a node, and host ports as numbers.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::HostPort;
use crate::rules::colocation::Colocation;

impl Colocation<'_> {
    /// Returns the pairs of classes that must not share a node, ignoring host ports: because of anti-affinity, or because the
    /// solver has no common ceiling for both. `profiles` has the profile of each class. The pairs ascend, and the smaller class
    /// comes first.
    pub fn conflicts(&self, profiles: &[usize]) -> Vec<(u32, u32)> {
        let mut of_profile: BTreeMap<usize, Vec<u32>> = BTreeMap::new();
        for (class, profile) in (0..).zip(profiles) {
            if *profile > 0 {
                of_profile.entry(*profile).or_default().push(class);
            }
        }
        let mut pairs = Vec::new();
        for (one, first) in &of_profile {
            let profile = &self.profiles[*one];
            // Each excludes the other, so the lower profile of two is enough.
            for other in profile.apart.union(&profile.counted).filter(|other| *other >= one) {
                let Some(second) = of_profile.get(other) else { continue };
                for class in first {
                    let partners = second.iter().filter(|partner| other != one || class < *partner);
                    pairs.extend(partners.map(|partner| (*class.min(partner), *class.max(partner))));
                }
            }
        }
        pairs.sort_unstable();
        pairs
    }

    /// Returns the host ports of a profile as numbers for the solver: equal numbers conflict. A port on all host IPs has the
    /// numbers of every host IP in use.
    pub fn ports(&self, profile: usize) -> Vec<u32> {
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
        numbers.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use poolwright_terms::labels::HOSTNAME;
    use proptest::prelude::*;

    use super::*;
    use crate::model::Pod;
    use crate::rules::{generated, ports};

    fn are_apart(colocation: &Colocation<'_>, one: usize, other: usize) -> bool {
        let one = &colocation.profiles[one];
        one.apart.contains(&other) || one.counted.contains(&other)
    }

    proptest! {
        #[test]
        fn the_conflicts_are_the_pairs_of_classes_whose_profiles_are_apart(pods in generated::pods(HOSTNAME)) {
            let snapshot = generated::snapshot(&pods);
            let mut colocation = Colocation::new(&snapshot);
            let mut profiles: Vec<usize> = pods.iter().map(|pod| colocation.of(&pod.key)).collect();
            for members in profiles.clone().chunks(2) {
                profiles.push(colocation.together(members.to_vec()));
            }
            let mut plain = Vec::new();
            for (one, first) in profiles.iter().enumerate() {
                for (other, second) in profiles.iter().enumerate().skip(one + 1) {
                    if *first > 0 && *second > 0 && are_apart(&colocation, *first, *second) {
                        plain.push((one as u32, other as u32));
                    }
                }
            }
            prop_assert_eq!(colocation.conflicts(&profiles), plain);
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
