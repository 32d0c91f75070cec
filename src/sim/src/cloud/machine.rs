//! Machines and their faults.

use std::sync::Arc;
use std::time::Duration;

use poolwright_catalog::{OfferingId, ResourceName, UsdPerHour};
use poolwright_provider_contract::{Instance, LaunchRequest};
use poolwright_terms::CapacityType;

use crate::accidents::{Accidents, Site, one_of, span};
use crate::dice::Dice;

/// Milliseconds from the launch until the node joins.
pub(crate) const JOINS: (u64, u64) = (20_000, 150_000);
/// Milliseconds from the launch until listings contain an instance that they omit at first.
const UNLISTED: (u64, u64) = (5_000, 40_000);
/// Milliseconds from the launch until an instance with a fault ends.
const ENDS: (u64, u64) = (30_000, 1_200_000);

/// How long a kubelet does not report: longer than the repair rules of some pools wait.
const FROZEN: Duration = Duration::from_mins(20);
/// The least time from the notice of maintenance until it happens.
const MAINTAINED_AFTER: Duration = Duration::from_mins(5);

/// A machine.
#[derive(Clone, Debug)]
pub struct Machine {
    /// The instance in listings.
    pub instance: Instance,
    /// The launch request, with only the launched offering.
    pub request: Arc<LaunchRequest>,
    /// The offerings among which the cloud could choose.
    pub offered: Vec<OfferingId>,
    /// The price per hour.
    pub price: Option<UsdPerHour>,
    /// When its node joins, in world time; `None` if it never does.
    pub joins: Option<Duration>,
    /// The number of GPUs that its node lacks.
    pub lacks: u64,
    /// When it fails or the cloud interrupts it, in world time.
    pub dies: Option<Duration>,
    /// When the cloud gives notice on the node, and how.
    pub notice: Option<(Duration, Notice)>,
    /// When the cloud takes it back at the rate of its offering, if it has not ended by then.
    pub reclaimed: Option<Duration>,
    /// When its kubelet stops to report, and when it reports again.
    pub freezes: Option<(Duration, Duration)>,
    /// When the cloud says that it maintains the machine, and when that ends it.
    pub maintained: Option<(Duration, Duration)>,
    /// When the cloud says that the machine's reservation ends, and when it ends the machine with it.
    pub reserved_until: Option<(Duration, Duration)>,
    /// Listings omit it before this time.
    pub(super) listed_from: Duration,
    /// When it was launched, in world time.
    pub launched: Duration,
    /// When it is gone, after its termination began.
    pub gone: Option<Duration>,
}

/// The time between notice and end, for offerings that do not say theirs.
pub(super) const USUAL_NOTICE: Duration = Duration::from_mins(2);
/// With less time between notice and end, the node shuts down at once.
const SHUTS_DOWN_BELOW: Duration = Duration::from_mins(1);

/// How a cloud gives notice of an interruption on the node, and how long before its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notice {
    /// A termination handler taints the node, and pods run until the instance ends.
    Closes(Duration),
    /// The kubelet ends its pods, and the node is no longer ready.
    ShutsDown(Duration),
}

impl Notice {
    /// Returns the notice of an offering that says this time between notice and end.
    fn of(said: Option<Duration>) -> Self {
        let ahead = said.unwrap_or(USUAL_NOTICE);
        if ahead < SHUTS_DOWN_BELOW { Self::ShutsDown(ahead) } else { Self::Closes(ahead) }
    }

    /// Returns the time between notice and end.
    pub const fn ahead(self) -> Duration {
        match self {
            Self::Closes(ahead) | Self::ShutsDown(ahead) => ahead,
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
    Freezes,
    Maintained,
}

impl Machine {
    /// Returns whether it is not gone yet.
    pub(super) fn is_there(&self, now: Duration) -> bool {
        self.gone.is_none_or(|gone| gone > now)
    }

    /// Makes a newly launched machine, perhaps with a fault. Its offering says its price and the time of notice. `dice` are its own.
    pub(super) fn launched(
        instance: Instance,
        (request, offered): (LaunchRequest, Vec<OfferingId>),
        (price, said): (Option<UsdPerHour>, Option<Duration>),
        (reserved_until, reclaimed): (Option<(Duration, Duration)>, Option<Duration>),
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
                    (rates.freezes, Flaw::Freezes),
                    (rates.maintained, Flaw::Maintained),
                ],
            )?;
            let (ends, listed) = (span(dice, ENDS.0, ENDS.1), span(dice, UNLISTED.0, UNLISTED.1));
            // One interruption in three comes without notice.
            Some((flaw, now + ends, now + listed, dice.per_mille(667)))
        });
        // A machine with a fault has one end.
        let reclaimed = reclaimed.filter(|_| flaw.is_none());
        let is = |kind: Flaw| flaw.filter(|(flaw, ..)| *flaw == kind);
        let gpus = request.offerings[0].allocatable.get(ResourceName::NVIDIA_GPU);
        let interrupted = is(Flaw::Interrupted);
        let notice = interrupted.filter(|(.., told)| *told).map(|(_, ends, ..)| {
            let notice = Notice::of(said);
            (ends.saturating_sub(notice.ahead()).max(now), notice)
        });
        let notice = notice.or_else(|| {
            // In a replay, pods have the whole notice to leave.
            let notice = Notice::Closes(said.unwrap_or(USUAL_NOTICE));
            reclaimed.map(|ends| (ends.saturating_sub(notice.ahead()).max(now), notice))
        });
        let maintained = is(Flaw::Maintained).map(|(_, ends, ..)| (now, ends + MAINTAINED_AFTER));
        Self {
            price,
            freezes: is(Flaw::Freezes).map(|(_, ends, ..)| (ends, ends + FROZEN)),
            maintained,
            joins: is(Flaw::NeverJoins).is_none().then(|| now + span(dice, JOINS.0, JOINS.1)),
            lacks: u64::from(is(Flaw::LacksGpu).is_some()).min(gpus),
            dies: is(Flaw::Dies)
                .or(interrupted)
                .map(|(_, ends, ..)| ends)
                .or(maintained.map(|(_, ends)| ends))
                .into_iter()
                .chain(reserved_until.map(|(_, ends)| ends))
                .chain(reclaimed)
                .min(),
            reserved_until,
            notice,
            reclaimed,
            listed_from: is(Flaw::Unlisted).map_or(now, |(_, _, listed, _)| listed),
            launched: now,
            gone: None,
            instance,
            request: Arc::new(request),
            offered,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_shuts_down_at_once_after_a_short_notice_and_has_two_minutes_if_its_offering_says_nothing() {
        let seconds = Duration::from_secs;
        assert_eq!(Notice::of(Some(seconds(30))), Notice::ShutsDown(seconds(30)));
        assert_eq!(Notice::of(Some(seconds(300))), Notice::Closes(seconds(300)));
        assert_eq!(Notice::of(None), Notice::Closes(seconds(120)));
    }
}
