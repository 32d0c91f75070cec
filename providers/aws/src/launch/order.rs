//! The orders of a launch request: which CreateFleet calls to send, and with which pools, token and tags. This file makes no
//! calls.

use std::collections::{BTreeMap, BTreeSet};

use poolwright_catalog::{InstanceTypeName, OfferingId, RankedOffering, Zone};
use poolwright_provider_aws_model::prices::{ReservationKind, ReservationLot};
use poolwright_provider_contract::{FailedOffering, LaunchError, LaunchRequest};
use poolwright_terms::CapacityType;

use sha2::{Digest, Sha256};

use crate::settings::Settings;
use crate::tags::Tags;

/// The longest value of a tag. Source: <https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/Using_Tags.html#tag-restrictions>.
const MOST_OF_A_TAG: usize = 256;

/// How much more a spot offering may cost than the first offering of its call, in percent. Within one call EC2 also chooses by
/// depth (`price-capacity-optimized`), so more expensive offerings go to the next call.
const NEARLY_EQUAL: u64 = 5;

/// The number of pools in one call. CreateFleet allows 300 overrides. Source:
/// <https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/fleet-quotas.html>.
const MOST_POOLS: usize = 300;

/// A pool of capacity: an instance type in a subnet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pool {
    pub instance_type: InstanceTypeName,
    pub zone: Zone,
    pub subnet: String,
    /// The launch template for this instance type.
    pub template: String,
    /// The priority. 0 is the highest.
    pub rank: usize,
}

/// A CreateFleet call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Order {
    /// The idempotency token.
    pub token: String,
    pub capacity_type: CapacityType,
    /// Whether the capacity comes from a capacity block.
    pub block: bool,
    /// The number of instances.
    pub count: usize,
    /// The pools, best first. The list is never empty.
    pub pools: Vec<Pool>,
    /// The tags of the instances from the moment they are launched.
    pub tags: Tags,
}

/// Splits the offerings of a request into rounds, one for each CreateFleet call. A round has one capacity type. A spot round
/// contains only offerings of nearly the same price, so that EC2 does not change the ranking of the request. The exception is the
/// first round, with at least the offerings that the request wants together.
pub(crate) fn rounds(offerings: &[RankedOffering], together: usize) -> Vec<&[RankedOffering]> {
    let Some(first) = offerings.first() else { return Vec::new() };
    let kind = first.offering.capacity_type;
    let is_same =
        |one: &&RankedOffering| one.offering.capacity_type == kind && kind != CapacityType::Reserved;
    let wanted = offerings.iter().take(together).take_while(is_same).count();
    let natural = offerings.iter().take_while(|one| belongs(first, one)).count();
    let (round, rest) = offerings.split_at(wanted.max(natural).max(1));
    let mut rounds = vec![round];
    rounds.extend(rest.chunk_by_first(belongs));
    rounds
}

fn belongs(first: &RankedOffering, other: &RankedOffering) -> bool {
    if first.offering.capacity_type != other.offering.capacity_type {
        return false;
    }
    match (first.offering.capacity_type, first.price, other.price) {
        // EC2 follows the priorities.
        (CapacityType::OnDemand, ..) => true,
        (CapacityType::Spot, Some(first), Some(other)) => {
            // A cheaper offering that ranks lower has a higher interruption rate. EC2 would prefer it.
            let (price, most) = (u128::from(other.micros()) * 100, u128::from(100 + NEARLY_EQUAL));
            first <= other && price <= u128::from(first.micros()) * most
        }
        // Spot offerings without a price are never grouped. Each reserved offering has its own reservations.
        (CapacityType::Spot | CapacityType::Reserved, ..) => false,
    }
}

/// The offerings of one call, and the reservation that the call uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Step<'a> {
    /// The offerings. The list is never empty.
    pub offerings: &'a [RankedOffering],
    /// The reservation; `None` for capacity without one.
    pub lot: Option<ReservationLot>,
}

/// Returns the calls of a launch: one for each round, and for reserved capacity one for each reservation. It also returns the
/// reserved offerings without room.
pub(crate) fn steps(
    offerings: &[RankedOffering],
    together: usize,
    lots: impl Fn(&OfferingId) -> Vec<ReservationLot>,
) -> (Vec<Step<'_>>, Vec<FailedOffering>) {
    let (mut steps, mut failed) = (Vec::new(), Vec::new());
    for round in rounds(offerings, together) {
        let first = &round[0].offering;
        if first.capacity_type != CapacityType::Reserved {
            steps.push(Step { offerings: round, lot: None });
            continue;
        }
        let with_room: Vec<ReservationLot> =
            lots(first).into_iter().filter(|lot| lot.available > 0).collect();
        if with_room.is_empty() {
            let told = "no reservation of the node class has room for it".to_owned();
            failed.push(FailedOffering { offering: first.clone(), error: LaunchError::StockOut(told) });
        }
        steps.extend(with_room.into_iter().map(|lot| Step { offerings: round, lot: Some(lot) }));
    }
    (steps, failed)
}

trait ChunkByFirst<T> {
    /// Splits the slice into runs whose elements all belong to the first element of the run.
    fn chunk_by_first(&self, belongs: impl Fn(&T, &T) -> bool) -> Vec<&[T]>;
}

impl Step<'_> {
    /// Returns whether the capacity comes from a capacity block.
    pub fn is_block(&self) -> bool {
        self.lot.as_ref().is_some_and(|lot| lot.kind == ReservationKind::CapacityBlock)
    }
}

impl<T> ChunkByFirst<T> for [T] {
    fn chunk_by_first(&self, belongs: impl Fn(&T, &T) -> bool) -> Vec<&[T]> {
        let mut rest = self;
        let mut runs = Vec::new();
        while let Some(first) = rest.first() {
            let length = rest.iter().take_while(|one| belongs(first, one)).count().max(1);
            let (run, after) = rest.split_at(length);
            runs.push(run);
            rest = after;
        }
        runs
    }
}

/// Returns the pools of a round: each offering in each subnet of its zone, with the most free addresses first. If there are too many
/// for one call, every offering keeps its first subnets.
pub(crate) fn pools(
    round: &[RankedOffering],
    subnets: &BTreeMap<Zone, Vec<String>>,
    templates: &BTreeMap<InstanceTypeName, String>,
) -> Vec<Pool> {
    // Each pool has the position of its subnet.
    let mut pools: Vec<(usize, Pool)> = Vec::new();
    for (rank, ranked) in round.iter().enumerate() {
        let OfferingId { instance_type, zone, .. } = &ranked.offering;
        let Some(template) = templates.get(instance_type) else { continue };
        for (position, subnet) in subnets.get(zone).into_iter().flatten().enumerate() {
            let pool = Pool {
                instance_type: instance_type.clone(),
                zone: zone.clone(),
                subnet: subnet.clone(),
                template: template.clone(),
                rank,
            };
            pools.push((position, pool));
        }
    }
    if pools.len() > MOST_POOLS {
        pools.sort_by_key(|(position, _)| *position);
        pools.truncate(MOST_POOLS);
        pools.sort_by_key(|(position, pool)| (pool.rank, *position));
    }
    pools.into_iter().map(|(_, pool)| pool).collect()
}

/// Returns the key of a batch for tokens. It is short, and unique in the account.
pub(crate) fn batch_key(cluster: &str, batch: &str) -> String {
    let digest = Sha256::digest(format!("{cluster}\n{batch}"));
    digest.iter().take(18).fold("batch-".to_owned(), |text, byte| text + &format!("{byte:02x}"))
}

/// Returns the token of one round of a launch after the given number of empty answers. EC2 allows 64 characters; the key of a
/// claim is a UID of 36 characters, and the key of a batch has 42.
pub(crate) fn token(key: &str, round: usize, empty_answers: u32) -> String {
    format!("{key}-{round}-{empty_answers}")
}

/// Returns the tags of an instance that is ordered for one claim. `of_class` are the tags of its node class.
pub(crate) fn tags_of_one(
    settings: &Settings,
    of_class: &Tags,
    request: &LaunchRequest,
    capacity_type: CapacityType,
) -> Tags {
    let mut tags = shared_tags(settings, of_class, request, capacity_type);
    tags.extend(own_tags(request));
    tags
}

/// Returns the tags of the instances that are ordered with this token for several claims.
pub(crate) fn tags_of_batch(
    settings: &Settings,
    of_class: &Tags,
    token: &str,
    requests: &[&LaunchRequest],
    capacity_type: CapacityType,
) -> Tags {
    let mut tags = shared_tags(settings, of_class, requests[0], capacity_type);
    tags.extend(order_tags(token, requests));
    tags
}

/// Returns the tags that all instances of a batch share.
fn shared_tags(
    settings: &Settings,
    of_class: &Tags,
    request: &LaunchRequest,
    capacity_type: CapacityType,
) -> Tags {
    use crate::tags::{CAPACITY_TYPE, CLASS, CLUSTER, POOL, of_kubernetes};
    let cluster = settings.cluster.as_str();
    let mut tags = of_class.clone();
    tags.extend(settings.cluster_tag());
    tags.extend([
        (CLUSTER.to_owned(), cluster.to_owned()),
        (of_kubernetes(cluster), "owned".to_owned()),
        (CLASS.to_owned(), request.node_class.name.clone()),
        (CAPACITY_TYPE.to_owned(), capacity_type.as_str().to_owned()),
    ]);
    if let Some(pool) = request.labels.get(poolwright_terms::keys::NODEPOOL_LABEL) {
        tags.insert(POOL.to_owned(), pool.clone());
    }
    tags
}

/// Returns the tags that identify the claim of an instance.
pub(crate) fn own_tags(request: &LaunchRequest) -> Tags {
    use crate::tags::{CLAIM, CLAIM_UID, NAME};
    Tags::from([
        (CLAIM_UID.to_owned(), request.key.clone()),
        (CLAIM.to_owned(), request.claim.clone()),
        (NAME.to_owned(), request.claim.clone()),
    ])
}

/// Returns the tags of an instance that may belong to any of these requests: the order and the keys.
fn order_tags(token: &str, requests: &[&LaunchRequest]) -> Tags {
    use crate::tags::{NAME, ORDER, ORDER_KEYS};
    let mut tags = Tags::from([(ORDER.to_owned(), token.to_owned())]);
    if let Some(pool) =
        requests.first().and_then(|first| first.labels.get(poolwright_terms::keys::NODEPOOL_LABEL))
    {
        tags.insert(NAME.to_owned(), pool.clone());
    }
    let mut values: Vec<String> = Vec::new();
    let keys: BTreeSet<&str> = requests.iter().map(|request| request.key.as_str()).collect();
    for key in keys {
        match values.last_mut() {
            Some(value) if value.len() + 1 + key.len() <= MOST_OF_A_TAG => {
                value.push(' ');
                value.push_str(key);
            }
            _ => values.push(key.to_owned()),
        }
    }
    tags.extend(values.into_iter().enumerate().map(|(at, value)| (format!("{ORDER_KEYS}{at}"), value)));
    tags
}

/// Returns the keys of the claims that an instance may belong to, from its tags.
pub(crate) fn keys(tags: &Tags) -> BTreeSet<String> {
    let of_keys = tags.iter().filter(|(name, _)| name.starts_with(crate::tags::ORDER_KEYS));
    of_keys.flat_map(|(_, value)| value.split(' ')).filter(|key| !key.is_empty()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use poolwright_catalog::{ResourceList, UsdPerHour};

    use super::*;

    fn ranked(name: &str, capacity_type: CapacityType, price: Option<i64>) -> RankedOffering {
        RankedOffering {
            offering: OfferingId { instance_type: name.into(), zone: "us-east-1a".into(), capacity_type },
            price: price.map(|micros| UsdPerHour::from_micros(micros as _)),
            allocatable: ResourceList::new(),
        }
    }

    fn names(offerings: &[RankedOffering], together: usize) -> Vec<Vec<&str>> {
        let name = |one: &RankedOffering| -> &'static str {
            Box::leak(one.offering.instance_type.to_string().into())
        };
        rounds(offerings, together).into_iter().map(|round| round.iter().map(name).collect()).collect()
    }

    #[test]
    fn a_round_has_one_capacity_type_and_of_spot_what_costs_nearly_the_same() {
        use CapacityType::{OnDemand, Reserved, Spot};
        let offerings = [
            ranked("reserved-1", Reserved, None),
            ranked("reserved-2", Reserved, None),
            ranked("spot-1", Spot, Some(1_000_000)),
            ranked("spot-2", Spot, Some(1_050_000)),
            ranked("spot-3", Spot, Some(1_050_001)),
            ranked("spot-unknown", Spot, None),
            ranked("demand-1", OnDemand, Some(2_000_000)),
            ranked("demand-2", OnDemand, Some(9_000_000)),
        ];
        let wanted: [&[&str]; 6] = [
            &["reserved-1"],
            &["reserved-2"],
            &["spot-1", "spot-2"],
            &["spot-3"],
            &["spot-unknown"],
            &["demand-1", "demand-2"],
        ];
        assert_eq!(names(&offerings, 0), wanted);
    }

    #[test]
    fn offerings_that_are_wanted_together_go_into_one_call_at_any_price_and_without_a_limit_on_subnets() {
        use CapacityType::{OnDemand, Spot};
        let mut offerings: Vec<RankedOffering> = (1..=50)
            .map(|dollars| ranked(&format!("spot-{dollars}"), Spot, Some(dollars * 1_000_000)))
            .collect();
        offerings.push(ranked("demand", OnDemand, Some(1)));
        let lengths = |together| rounds(&offerings, together).iter().map(|one| one.len()).collect::<Vec<_>>();
        assert_eq!(lengths(50), [50, 1]);
        assert_eq!(lengths(51), [50, 1], "one call has one capacity type");
        assert_eq!(lengths(48), [48, 2, 1], "the rest goes by price");
        let subnets = (0..8).map(|number| format!("subnet-{number}")).collect();
        let subnets = BTreeMap::from([("us-east-1a".into(), subnets)]);
        let templates = offerings.iter().map(|one| (one.offering.instance_type.clone(), "t".to_owned()));
        let pools = pools(rounds(&offerings, 50)[0], &subnets, &templates.collect());
        let types: BTreeSet<_> = pools.iter().map(|pool| &pool.instance_type).collect();
        assert_eq!((types.len(), pools.len()), (50, MOST_POOLS));
        assert!(pools.is_sorted_by_key(|pool| pool.rank));
    }

    #[test]
    fn spot_that_is_cheaper_and_ranked_behind_is_not_left_to_ec2_to_choose() {
        let spot = |name, price| ranked(name, CapacityType::Spot, Some(price));
        let offerings = [spot("seldom-lost", 405_000), spot("dearer", 410_000), spot("often-lost", 400_000)];
        let wanted: [&[&str]; 2] = [&["seldom-lost", "dearer"], &["often-lost"]];
        assert_eq!(names(&offerings, 0), wanted);
    }

    #[test]
    fn reserved_launches_use_one_reservation_after_another_while_they_have_capacity() {
        use CapacityType::{OnDemand, Reserved};
        let offerings = [
            ranked("held", Reserved, None),
            ranked("used-up", Reserved, None),
            ranked("bought", OnDemand, Some(1_000_000)),
        ];
        let lot = |id: &str, available| ReservationLot {
            id: id.to_owned(),
            kind: ReservationKind::CapacityBlock,
            available,
        };
        let lots = |offering: &OfferingId| match offering.instance_type.as_str() {
            "held" => vec![lot("cr-1", 2), lot("cr-2", 0), lot("cr-3", 1)],
            _ => vec![lot("cr-4", 0)],
        };
        let (steps, failed) = steps(&offerings, 0, lots);
        let found: Vec<_> = steps
            .iter()
            .map(|step| (step.lot.as_ref().map(|lot| lot.id.as_str()), step.is_block()))
            .collect();
        assert_eq!(found, [(Some("cr-1"), true), (Some("cr-3"), true), (None, false)]);
        let [failed] = &failed[..] else { panic!("{failed:?}") };
        assert_eq!(failed.offering, offerings[1].offering);
        assert!(matches!(failed.error, LaunchError::StockOut(_)));
    }

    #[test]
    fn an_offering_is_ordered_in_every_subnet_of_its_zone() {
        let subnets =
            BTreeMap::from([("us-east-1a".into(), vec!["subnet-2".to_owned(), "subnet-1".to_owned()])]);
        let templates = BTreeMap::from([("g5.xlarge".into(), "t".to_owned())]);
        let offerings = [
            ranked("g5.xlarge", CapacityType::Spot, None),
            ranked("without-template", CapacityType::Spot, None),
        ];
        let pools = pools(&offerings, &subnets, &templates);
        let found: Vec<_> =
            pools.iter().map(|pool| (pool.instance_type.as_str(), pool.subnet.as_str())).collect();
        assert_eq!(found, [("g5.xlarge", "subnet-2"), ("g5.xlarge", "subnet-1")]);
    }
}
