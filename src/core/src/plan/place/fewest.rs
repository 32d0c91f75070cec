//! The node with fewest: how many pods a spread counts there, whatever else happens.
//!
//! A node that is still to join counts as well, with the pods that DaemonSets put on it and no others. So in most clusters
//! the least is zero: only where such pods are counted, or no node that the rule looks at can be bought, is it more. Where a
//! rule looks at one node only, that one has fewest however many come.

use crate::rules::colocation::UNLIMITED;
use poolwright_terms::Taint;
use poolwright_terms::labels::HOSTNAME;
use std::collections::{BTreeMap, BTreeSet};

use crate::model::{PodSpec, Snapshot};
use crate::rules;
use crate::rules::colocation::{Company, Present, Spread, join};
use crate::rules::labels::Labels;
use crate::supply::daemonsets::Daemons;
use crate::supply::offers::Supply;
use crate::supply::rooms::Rooms;

impl<'a> Spread<'a> {
    /// Pods with such a spec have the rule. What matters of it is which nodes the rule looks at.
    pub(crate) fn owned(&mut self, spec: &'a PodSpec) {
        let asks = |spec: &PodSpec| {
            let over: BTreeSet<&str> = spec.spreads.iter().map(|rule| rule.topology_key.as_str()).collect();
            over.into_iter().map(str::to_owned).collect::<Vec<_>>()
        };
        let like = |other: &PodSpec| {
            (self.rule.any_affinity
                || (&other.node_selector, &other.node_affinity) == (&spec.node_selector, &spec.node_affinity))
                && (!self.rule.honor_taints || other.tolerations == spec.tolerations)
                && (other.spreads == spec.spreads || asks(other) == asks(spec))
        };
        if !self.owners.iter().any(|other| like(other)) {
            self.owners.push(spec);
        }
    }

    /// Whether the rule looks at a node, as one of its owners has it.
    fn looks_at(&self, owner: &PodSpec, labels: &impl Labels, taints: &[Taint]) -> bool {
        let mut over = owner.spreads.iter().map(|rule| rule.topology_key.as_str());
        over.all(|key| key == HOSTNAME || labels.label(key).is_some())
            && (self.rule.any_affinity || rules::check_own_labels(owner, labels).is_ok())
            && (!self.rule.honor_taints || rules::check_taints(&owner.tolerations, taints).is_ok())
    }

    /// How many pods it counts on the node that could be bought with fewest of them; `None` where none could.
    fn least_to_buy(&self, owner: &PodSpec, supply: &Supply<'_>) -> Option<u64> {
        let counts: Vec<u64> = supply.residents.iter().map(|residents| self.count(residents)).collect();
        let mut least = None;
        for (at, pool) in supply.pools.iter().enumerate() {
            for offer in &pool.offers {
                let count = counts[offer.residents];
                if least.is_none_or(|least| count < least)
                    && self.looks_at(owner, &supply.labels(at, offer.offering), &pool.pool.taints)
                {
                    least = Some(count);
                }
                if least == Some(0) {
                    return least;
                }
            }
        }
        least
    }
}

/// A node that is there or on its way: its name as a host, and whom a spread may count there.
struct Host<'s> {
    name: &'s str,
    labels: &'s BTreeMap<String, String>,
    taints: &'s [Taint],
    present: Present,
}

impl<'a> Company<'a> {
    /// Looks at all nodes for the least count of every spread.
    pub fn set_least(
        &mut self,
        snapshot: &'a Snapshot,
        daemons: &Daemons<'_>,
        rooms: &Rooms<'_>,
        supply: &Supply<'_>,
    ) {
        let mut hosts: Option<Vec<Host<'_>>> = None;
        let mut all = Vec::with_capacity(self.spreads.len());
        for spread in &self.spreads {
            let mut least = u64::MAX;
            for owner in &spread.owners {
                let to_buy = spread.least_to_buy(owner, supply);
                least = least.min(to_buy.unwrap_or(u64::MAX));
                if least == 0 {
                    break;
                }
                let hosts = hosts.get_or_insert_with(|| self.hosts(snapshot, daemons, rooms));
                let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
                for host in hosts.iter().filter(|host| spread.looks_at(owner, host.labels, host.taints)) {
                    *counts.entry(host.name).or_default() += spread.count(&host.present);
                }
                let few = spread.rule.min_domains.is_some_and(|wanted| counts.len() < wanted as usize);
                // Where the rule sees no node yet, the first that is bought is the one with fewest.
                let there = counts.values().copied().min().unwrap_or(u64::MAX);
                let alone = to_buy.is_none() && counts.len() == 1;
                least = match (few, alone) {
                    (true, _) => 0,
                    (false, true) => least.min(UNLIMITED),
                    (false, false) => least.min(there),
                };
            }
            all.push(if least == u64::MAX { 0 } else { least });
        }
        for (spread, least) in self.spreads.iter_mut().zip(all) {
            spread.least = least;
        }
        if self.spreads.iter().any(|spread| spread.least > 0) {
            self.set_counted();
        }
    }

    /// All nodes that are hosts, also those that nobody may come to now.
    fn hosts<'s>(
        &self,
        snapshot: &'s Snapshot,
        daemons: &Daemons<'_>,
        rooms: &'s Rooms<'_>,
    ) -> Vec<Host<'s>> {
        let mut hosts = Vec::new();
        let mut by_number: BTreeMap<u32, usize> = BTreeMap::new();
        let mut beside = snapshot.pods.beside();
        for node in snapshot.nodes.values() {
            let there = beside.on(&node.name);
            let Some(name) = node.labels.get(HOSTNAME) else { continue };
            by_number.extend(there.map(|there| (there.number, hosts.len())));
            let outstanding = daemons.outstanding(&node.labels, &node.taints, there.map(AsRef::as_ref));
            let present = daemons.present(&outstanding, self);
            hosts.push(Host { name, labels: &node.labels, taints: &node.taints, present });
        }
        for ((_, nodes), (staying, leaving)) in snapshot.pods.alike().zip(self.of_alike()) {
            for (node, count) in nodes.iter().filter(|_| staying > 0 || leaving > 0) {
                if let Some(at) = by_number.get(node) {
                    join(&mut hosts[*at].present, staying, count.staying);
                    join(&mut hosts[*at].present, leaving, count.all - count.staying);
                }
            }
        }
        for room in rooms.all.iter().filter(|room| room.node.is_none()) {
            let Some(name) = room.labels.get(HOSTNAME) else { continue };
            let present = room.present.clone();
            hosts.push(Host { name, labels: &room.labels, taints: &room.taints, present });
        }
        hosts
    }
}
