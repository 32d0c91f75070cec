//! The context of a plan: the inputs that all attempts share.

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::demand::volumes::Volumes;
use crate::model::plan::Plan;
use crate::model::{PlanOptions, Snapshot};
use crate::plan::audit::topology::Violation;
use crate::plan::pack::horizon::Horizons;
use crate::plan::pending::Demand;
use crate::plan::place::spread_hosts::Hosts;
use crate::plan::place::{spread_hosts, topology};
use crate::plan::prepare::Prepared;
use crate::plan::{audit, groups, pending};
use crate::rules::colocation::Colocation;
use crate::supply::interruption_risk::Losses;
use crate::supply::{daemonsets, offerings, rooms};

/// The inputs that all attempts at a plan share.
pub(crate) struct PlanContext<'a> {
    pub snapshot: &'a Snapshot,
    pub volumes: &'a Volumes,
    pub now: Timestamp,
    pub options: &'a PlanOptions,
    pub colocation: Colocation<'a>,
    pub relations: topology::Relations<'a>,
    pub daemons: daemonsets::DaemonSets<'a>,
    pub groups: groups::Groups<'a>,
    pub demand: Demand<'a>,
    pub rooms: rooms::Rooms<'a>,
    pub horizons: Horizons,
    /// Whether room is kept free for pods without a cheaper home.
    pub keeps_room: bool,
    pub losses: Losses,
    /// By namespace: how many of its pods a new node must hold, if any node holds as many. Without an entry, one is enough.
    pub crowds: BTreeMap<String, u64>,
}

impl<'a> PlanContext<'a> {
    /// Creates the context and the supply for prepared inputs.
    pub fn new(prepared: &'a Prepared<'a>) -> (Self, offerings::Supply<'a>) {
        let Prepared { now, volumes, .. } = prepared;
        let (snapshot, options) = (prepared.snapshot.as_ref(), prepared.options.as_ref());
        let mut colocation = Colocation::new(snapshot);
        let relations = topology::Relations::new(snapshot);
        let daemons = daemonsets::DaemonSets::new(snapshot);
        let groups = groups::Groups::new(snapshot);
        let demand = pending::collect::collect(snapshot, options, volumes, &groups);
        let rooms = rooms::collect(snapshot, &daemons, &colocation, &volumes.attachable);
        let supply = offerings::collect(snapshot, &daemons, &colocation, &volumes.attachable, options, *now);
        spread_hosts::set_least(&mut colocation, snapshot, &daemons, &rooms, &supply);
        let now = *now;
        let horizons = Horizons::new(snapshot, options, &demand.pending, now);
        let keeps_room = horizons.keeps_room();
        let losses = Losses::new(snapshot, options, demand.pending.iter().map(|want| want.pod));
        let context = Self {
            snapshot,
            volumes,
            now,
            options,
            colocation,
            relations,
            daemons,
            groups,
            demand,
            rooms,
            horizons,
            keeps_room,
            losses,
            crowds: BTreeMap::new(),
        };
        (context, supply)
    }
}

impl PlanContext<'_> {
    /// Returns the nodes and claims that exist.
    pub fn hosts(&self) -> Hosts<'_> {
        Hosts::new(&self.colocation, self.snapshot, &self.daemons, &self.rooms)
    }

    /// Audits the plan, unless an attempt has refused it already.
    pub fn audit(&self, plan: &mut Plan, violations: &[Violation]) {
        if plan.refused.is_empty() {
            plan.refused =
                audit::audit(self.snapshot, self.volumes, self.options, &plan.claims, &plan.placements);
            plan.refused.extend(violations.iter().map(ToString::to_string));
            plan.refused.extend(groups::audit(self.snapshot, plan));
            plan.refused.extend(audit::over_time::audit(self.snapshot, self.options, self.now, plan));
        }
    }
}
