//! What all attempts at one plan share.

use jiff::Timestamp;

use crate::demand::volumes::Volumes;
use crate::model::plan::Plan;
use crate::model::{PlanOptions, Snapshot};
use crate::plan::audit::topology::Violation;
use crate::plan::place::{spread_hosts, topology};
use crate::plan::prepare::Prepared;
use crate::plan::wanting::Demand;
use crate::plan::{audit, groups, wanting};
use crate::rules::colocation::Colocation;
use crate::supply::{daemonsets, offers, rooms};

/// What all attempts at a plan share.
pub(crate) struct Scene<'a> {
    pub snapshot: &'a Snapshot,
    pub volumes: &'a Volumes,
    pub now: Timestamp,
    pub options: &'a PlanOptions,
    pub colocation: Colocation<'a>,
    pub relations: topology::Relations<'a>,
    pub daemons: daemonsets::Daemons<'a>,
    pub groups: groups::Groups<'a>,
    pub demand: Demand<'a>,
    pub rooms: rooms::Rooms<'a>,
}

impl<'a> Scene<'a> {
    /// What is there to place, and what may be bought for the rest.
    pub fn new(prepared: &'a Prepared<'a>) -> (Self, offers::Supply<'a>) {
        let Prepared { now, volumes, .. } = prepared;
        let (snapshot, options) = (prepared.snapshot.as_ref(), prepared.options.as_ref());
        let mut colocation = Colocation::new(snapshot);
        let relations = topology::Relations::new(snapshot);
        let daemons = daemonsets::Daemons::new(snapshot);
        let groups = groups::Groups::new(snapshot);
        let demand = wanting::collect::collect(snapshot, options, volumes, &groups);
        let rooms = rooms::collect(snapshot, &daemons, &colocation, &volumes.attachable);
        let supply = offers::collect(snapshot, &daemons, &colocation, &volumes.attachable, options, *now);
        spread_hosts::set_least(&mut colocation, snapshot, &daemons, &rooms, &supply);
        let now = *now;
        let scene =
            Self { snapshot, volumes, now, options, colocation, relations, daemons, groups, demand, rooms };
        (scene, supply)
    }
}

impl Scene<'_> {
    /// Checks the plan, unless an attempt has refused it already.
    pub fn audit(&self, plan: &mut Plan, violations: &[Violation]) {
        if plan.refused.is_empty() {
            plan.refused =
                audit::audit(self.snapshot, self.volumes, self.options, &plan.claims, &plan.placements);
            plan.refused.extend(violations.iter().map(ToString::to_string));
            plan.refused.extend(groups::audit(self.snapshot, plan));
        }
    }
}
