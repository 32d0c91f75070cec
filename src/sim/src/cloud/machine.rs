//! Machines and their defects.

use std::time::Duration;

use poolwright_catalog::{ResourceName, UsdPerHour};
use poolwright_provider_contract::{Instance, LaunchRequest};
use poolwright_terms::CapacityType;

use crate::accidents::{Accidents, Site, one_of, span};
use crate::dice::Dice;

/// From an order to a node that joins.
const JOINS: (u64, u64) = (20_000, 150_000);
/// From a launch to a list that shows it, where it does not at once.
const UNLISTED: (u64, u64) = (5_000, 40_000);
/// From a launch to the end of an instance that ends by itself.
const ENDS: (u64, u64) = (30_000, 1_200_000);

/// A machine.
#[derive(Clone, Debug)]
pub struct Machine {
    /// As it is listed.
    pub instance: Instance,
    /// What its node carries.
    pub request: LaunchRequest,
    /// What it costs.
    pub price: Option<UsdPerHour>,
    /// When its node joins; `None` when it never does.
    pub joins: Option<Duration>,
    /// GPUs that its node does not have.
    pub lacks: u64,
    /// When it ends by itself: it dies, or the cloud takes it back.
    pub dies: Option<Duration>,
    /// When its node is told that it ends, and how.
    pub notice: Option<(Duration, Notice)>,
    /// Not listed before this.
    pub(super) listed_from: Duration,
    /// When it was launched.
    pub launched: Duration,
    /// When it is gone, once it was terminated.
    pub gone: Option<Duration>,
}

/// How a cloud says that it takes a machine back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notice {
    /// Two minutes before, as AWS does: what watches for it there closes the node, and pods go on until they end with it.
    /// <https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/spot-instance-termination-notices.html>
    Closes,
    /// Half a minute before, as Google does: the kubelet ends its pods, and the node is not ready any more.
    /// <https://docs.cloud.google.com/compute/docs/instances/spot>
    ShutsDown,
}

impl Notice {
    /// What clouds do in this zone.
    fn of(zone: &str) -> Self {
        // Google's are not called as AWS's are: `us-central1`, `us-east-1a`.
        if zone.matches('-').count() > 1 { Self::Closes } else { Self::ShutsDown }
    }

    /// How long before the end.
    pub const fn ahead(self) -> Duration {
        match self {
            Self::Closes => Duration::from_mins(2),
            Self::ShutsDown => Duration::from_secs(30),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Flaw {
    NeverJoins,
    LacksGpu,
    Dies,
    Unlisted,
    Interrupted,
}

impl Machine {
    /// One that is launched now, with what is wrong with it. `dice` are its own.
    pub(super) fn launched(
        instance: Instance,
        request: LaunchRequest,
        price: Option<UsdPerHour>,
        now: Duration,
        accidents: &Accidents,
        dice: &mut Dice,
    ) -> Self {
        let spot = instance.offering.capacity_type == CapacityType::Spot;
        let flaw = accidents.at(Site::Instance, |rates, dice| {
            let interrupted = if spot { rates.interrupted } else { 0 };
            let flaw = one_of(
                dice,
                &[
                    (rates.never_joins, Flaw::NeverJoins),
                    (rates.lacks_gpu, Flaw::LacksGpu),
                    (rates.dies, Flaw::Dies),
                    (rates.unlisted, Flaw::Unlisted),
                    (interrupted, Flaw::Interrupted),
                ],
            )?;
            let (ends, listed) = (span(dice, ENDS.0, ENDS.1), span(dice, UNLISTED.0, UNLISTED.1));
            // One in three is taken without a word.
            Some((flaw, now + ends, now + listed, dice.per_mille(667)))
        });
        let is = |kind: Flaw| flaw.filter(|(flaw, ..)| *flaw == kind);
        let gpus = request.offerings[0].allocatable.get(ResourceName::NVIDIA_GPU);
        let interrupted = is(Flaw::Interrupted);
        let notice = interrupted.filter(|(.., told)| *told).map(|(_, ends, ..)| {
            let notice = Notice::of(instance.offering.zone.as_str());
            (ends.saturating_sub(notice.ahead()).max(now), notice)
        });
        Self {
            price,
            joins: is(Flaw::NeverJoins).is_none().then(|| now + span(dice, JOINS.0, JOINS.1)),
            lacks: u64::from(is(Flaw::LacksGpu).is_some()).min(gpus),
            dies: is(Flaw::Dies).or(interrupted).map(|(_, ends, ..)| ends),
            notice,
            listed_from: is(Flaw::Unlisted).map_or(now, |(_, _, listed, _)| listed),
            launched: now,
            gone: None,
            instance,
            request,
        }
    }
}
