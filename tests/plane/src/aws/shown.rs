//! The state of instances that EC2 shows and moto does not: spot interruptions, scheduled events, ends of capacity blocks. The
//! responses have the format of EC2's API reference.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use super::answers::whole;
use super::request::Request;

/// The state to show.
#[derive(Default)]
pub(super) struct Shown {
    /// Instances that are spot, whatever moto launched them as.
    pub spots: BTreeSet<String>,
    /// The status code of the spot request of each instance, and the time of its update.
    pub spot: BTreeMap<String, (String, String)>,
    /// The scheduled events of each instance: code, description, time.
    pub scheduled: BTreeMap<String, Vec<(String, String, String)>>,
    /// The capacity reservation of each instance.
    pub reserved: BTreeMap<String, String>,
    /// The type and end of each capacity reservation.
    pub reservations: BTreeMap<String, (String, String)>,
    /// Placement groups by id.
    pub placement: BTreeMap<String, Group>,
    /// Capacity reservations to launch from, by id.
    pub capacity: BTreeMap<String, Capacity>,
}

/// Reserved capacity of one type in one zone.
#[derive(Clone, Debug)]
pub struct Capacity {
    /// Its instance type.
    pub instance_type: String,
    /// Its zone.
    pub zone: String,
    /// The number of instances it is for.
    pub total: usize,
    /// The number of them that are free.
    pub available: usize,
    /// Whether it is a capacity block.
    pub block: bool,
    /// The account that owns it.
    pub owner: String,
    /// Whether every matching instance may use it. Otherwise only instances that name it may.
    pub open: bool,
    /// Its tags.
    pub tags: BTreeMap<String, String>,
}

impl Capacity {
    /// Checks whether it meets a filter, as EC2 reads the filter.
    fn meets(&self, id: &str, filter: &str, values: &[&str]) -> bool {
        let criteria = if self.open { "open" } else { "targeted" };
        let is = match filter {
            "capacity-reservation-id" => id,
            "state" => "active",
            "owner-id" => &self.owner,
            "instance-match-criteria" => criteria,
            "tag-key" => return values.iter().any(|key| self.tags.contains_key(*key)),
            tag => match tag.strip_prefix("tag:").and_then(|key| self.tags.get(key)) {
                Some(value) => value,
                None => return false,
            },
        };
        values.contains(&is)
    }
}

/// A placement group.
#[derive(Clone, Debug)]
pub struct Group {
    /// Its name.
    pub name: String,
    /// `available`, or a transitional state.
    pub state: String,
    /// `cluster`, `partition`, `spread`.
    pub strategy: String,
    /// The number of its partitions.
    pub partitions: u32,
}

impl Shown {
    /// Answers a query for the state kept here. Returns `None` for other actions.
    pub fn answer(&self, asked: &Request) -> Option<String> {
        match asked.action.as_str() {
            "ec2:DescribeSpotInstanceRequests" => Some(self.requests(asked)),
            "ec2:DescribeInstanceStatus" => Some(self.statuses()),
            "ec2:DescribeCapacityReservations" => Some(self.capacity(asked)),
            "ec2:DescribePlacementGroups" => Some(self.groups(asked)),
            _ => None,
        }
    }

    /// Adds capacity reservations and the spot lifecycle to a listing of instances.
    pub fn completed(&self, listing: &str) -> String {
        let mut listing = listing.to_owned();
        for instance in &self.spots {
            let id = format!("<instanceId>{instance}</instanceId>");
            let both = format!("{id}<instanceLifecycle>spot</instanceLifecycle>");
            listing = listing.replace(&id, &both);
        }
        for (instance, reservation) in &self.reserved {
            let id = format!("<instanceId>{instance}</instanceId>");
            let both = format!("{id}<capacityReservationId>{reservation}</capacityReservationId>");
            listing = listing.replace(&id, &both);
        }
        listing
    }

    /// Answers for the instances that the first filter names, at most 200 of them, as many as a filter may name.
    fn requests(&self, asked: &Request) -> String {
        let mut items = String::new();
        let named = asked.indices("Filter.1.Value.");
        for at in named.into_iter().take(200) {
            let instance = asked.get(&format!("Filter.1.Value.{at}"));
            let fulfilled = ("fulfilled".to_owned(), "2020-01-01T00:00:00Z".to_owned());
            let known = self.spots.contains(instance).then_some(&fulfilled);
            let Some((code, updated)) = self.spot.get(instance).or(known) else { continue };
            let _ = write!(
                items,
                "<item><spotInstanceRequestId>sir-{instance}</spotInstanceRequestId><state>active</state><status><code>{code}</code>\
                 <updateTime>{updated}</updateTime><message>As it is.</message></status><instanceId>{instance}</instanceId></item>"
            );
        }
        whole(
            "DescribeSpotInstanceRequests",
            &format!("<spotInstanceRequestSet>{items}</spotInstanceRequestSet>"),
        )
    }

    fn statuses(&self) -> String {
        let mut items = String::new();
        for (instance, events) in &self.scheduled {
            let mut set = String::new();
            for (code, description, at) in events {
                let _ = write!(
                    set,
                    "<item><instanceEventId>instance-event-1</instanceEventId><code>{code}</code><description>{description}</description>\
                     <notBefore>{at}</notBefore></item>"
                );
            }
            let _ = write!(
                items,
                "<item><instanceId>{instance}</instanceId><eventsSet>{set}</eventsSet><instanceState><code>16</code><name>running</name>\
                 </instanceState></item>"
            );
        }
        whole("DescribeInstanceStatus", &format!("<instanceStatusSet>{items}</instanceStatusSet>"))
    }

    /// Answers for the group name in the first filter, or for the requested ids.
    fn groups(&self, asked: &Request) -> String {
        let by_name = asked.get("Filter.1.Name") == "group-name";
        let ids = asked.indices("GroupId.");
        let is_asked_for = |id: &str, group: &Group| {
            (by_name && asked.get("Filter.1.Value.1") == group.name)
                || ids.iter().any(|at| asked.get(&format!("GroupId.{at}")) == id)
        };
        let mut items = String::new();
        for (id, group) in self.placement.iter().filter(|(id, group)| is_asked_for(id, group)) {
            let Group { name, state, strategy, partitions } = group;
            let _ = write!(
                items,
                "<item><groupName>{name}</groupName><groupId>{id}</groupId><state>{state}</state><strategy>{strategy}</strategy>\
                 <partitionCount>{partitions}</partitionCount></item>"
            );
        }
        whole("DescribePlacementGroups", &format!("<placementGroupSet>{items}</placementGroupSet>"))
    }

    fn capacity(&self, asked: &Request) -> String {
        let mut items = String::new();
        let filters: Vec<(&str, Vec<&str>)> = asked
            .indices("Filter.")
            .into_iter()
            .map(|at| {
                let prefix = format!("Filter.{at}.Value.");
                let values =
                    asked.indices(&prefix).iter().map(|at| asked.get(&format!("{prefix}{at}"))).collect();
                (asked.get(&format!("Filter.{at}.Name")), values)
            })
            .collect();
        let met = self.capacity.iter().filter(|(id, one)| {
            !filters.is_empty() && filters.iter().all(|(filter, values)| one.meets(id, filter, values))
        });
        for (id, capacity) in met {
            let kind = if capacity.block { "capacity-block" } else { "default" };
            let criteria = if capacity.open { "open" } else { "targeted" };
            let _ = write!(
                items,
                "<item><capacityReservationId>{id}</capacityReservationId><ownerId>{}</ownerId>\
                 <instanceType>{}</instanceType><instancePlatform>Linux/UNIX</instancePlatform>\
                 <availabilityZone>{}</availabilityZone><tenancy>default</tenancy><totalInstanceCount>{}</totalInstanceCount>\
                 <availableInstanceCount>{}</availableInstanceCount><state>active</state><endDateType>unlimited</endDateType>\
                 <instanceMatchCriteria>{criteria}</instanceMatchCriteria><reservationType>{kind}</reservationType></item>",
                capacity.owner, capacity.instance_type, capacity.zone, capacity.total, capacity.available
            );
        }
        for at in asked.indices("CapacityReservationId.") {
            let id = asked.get(&format!("CapacityReservationId.{at}"));
            let Some((kind, end)) = self.reservations.get(id) else { continue };
            let _ = write!(
                items,
                "<item><capacityReservationId>{id}</capacityReservationId><reservationType>{kind}</reservationType>\
                 <endDateType>limited</endDateType><endDate>{end}</endDate><state>active</state></item>"
            );
        }
        whole(
            "DescribeCapacityReservations",
            &format!("<capacityReservationSet>{items}</capacityReservationSet>"),
        )
    }
}
