//! Topology spread over nodes: computes the least count of each constraint over existing and new nodes.

use std::cell::OnceCell;
use std::collections::BTreeMap;

use poolwright_terms::labels::HOSTNAME;

use crate::model::Snapshot;
use crate::rules::colocation::{Colocation, Present, join};
use crate::rules::spread::hosts::{Host, HostSpread, HostToBuy};
use crate::supply::daemonsets::DaemonSets;
use crate::supply::offerings::Supply;
use crate::supply::rooms::Rooms;

/// Sets the least count of every constraint over nodes.
pub(crate) fn set_least(
    colocation: &mut Colocation<'_>,
    snapshot: &Snapshot,
    daemons: &DaemonSets<'_>,
    rooms: &Rooms<'_>,
    supply: &Supply<'_>,
) {
    let to_buy = supply.pools.iter().enumerate().flat_map(|(at, pool)| {
        pool.offers.iter().map(move |offer| HostToBuy {
            labels: supply.labels(at, offer.offering),
            taints: &pool.pool.taints,
            residents: offer.residents,
        })
    });
    let known = OnceCell::new();
    let there = || known.get_or_init(|| Hosts::new(colocation, snapshot, daemons, rooms)).0.as_slice();
    let least =
        colocation.spreads.iter().map(|spread| spread.find_least(to_buy.clone(), &supply.residents, there));
    let least = least.collect();
    colocation.set_least(least);
}

/// The nodes and claims with a host name, including those that are closed to pods.
pub(crate) struct Hosts<'s>(Vec<Host<'s>>);

impl<'s> Hosts<'s> {
    pub fn new(
        colocation: &Colocation<'_>,
        snapshot: &'s Snapshot,
        daemons: &DaemonSets<'_>,
        rooms: &'s Rooms<'_>,
    ) -> Self {
        let mut hosts = Vec::new();
        let mut by_number: BTreeMap<u32, usize> = BTreeMap::new();
        let mut beside = snapshot.pods.beside();
        for node in snapshot.nodes.values() {
            let there = beside.on(&node.name);
            let Some(name) = node.labels.get(HOSTNAME) else { continue };
            by_number.extend(there.map(|there| (there.number, hosts.len())));
            let outstanding = daemons.outstanding(&node.labels, &node.taints, there.map(AsRef::as_ref));
            let present = daemons.present(&outstanding, colocation);
            let room = rooms.of_node(&node.name);
            hosts.push(Host { name, room, labels: &node.labels, taints: &node.taints, present });
        }
        for ((_, nodes), (staying, leaving)) in snapshot.pods.alike().zip(colocation.of_alike()) {
            for (node, count) in nodes.iter().filter(|_| staying > 0 || leaving > 0) {
                if let Some(at) = by_number.get(node) {
                    join(&mut hosts[*at].present, staying, count.staying);
                    join(&mut hosts[*at].present, leaving, count.all - count.staying);
                }
            }
        }
        for (at, room) in rooms.all.iter().enumerate().filter(|(_, room)| room.node.is_none()) {
            let Some(name) = room.labels.get(HOSTNAME) else { continue };
            let present = room.present.clone();
            hosts.push(Host { name, room: Some(at), labels: &room.labels, taints: &room.taints, present });
        }
        Self(hosts)
    }

    /// Returns the least count of each constraint if nothing more can be bought, as the kube-scheduler counts: over these hosts, with
    /// the pods that `rooms` hold now, and over nodes that are `bought`, each with one of `residents`. Returns `None` if no least
    /// count rises.
    pub fn raised<'b>(
        &mut self,
        colocation: &Colocation<'_>,
        rooms: &Rooms<'_>,
        bought: impl Iterator<Item = HostToBuy<'b>> + Clone,
        residents: &[Present],
    ) -> Option<Vec<u64>> {
        for host in &mut self.0 {
            if let Some(at) = host.room {
                host.present.clone_from(&rooms.all[at].present);
            }
        }
        let hosts = || self.0.as_slice();
        let spreads = &colocation.spreads;
        let now = |spread: &HostSpread<'_>| spread.find_least(bought.clone(), residents, hosts);
        let least: Vec<u64> = spreads.iter().map(|spread| now(spread).max(spread.least)).collect();
        let rises = spreads.iter().zip(&least).any(|(spread, least)| *least > spread.least);
        rises.then_some(least)
    }
}
