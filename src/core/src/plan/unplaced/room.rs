//! Resources that unplaced pods lack on the offerings of a pool, and a change that helps.

use std::cmp::Reverse;

use poolwright_catalog::reader::EPHEMERAL_STORAGE_COLUMN;
use poolwright_catalog::{InstanceType, ResourceName};
use poolwright_terms::domains;

use crate::model::{PoolLimits, Sharing};
use crate::plan::pack::classes::PodClass;
use crate::plan::unplaced::inputs::UnplacedInputs;
use crate::rules::format;
use crate::rules::gpus::GpuMatch;
use crate::supply::offerings::PoolOffering;
use crate::supply::wider::WiderType;

/// Describes the resource that keeps the pods off every offering of the pool, and a change that helps. If the change is to ask for
/// less, it returns also the limits that keep away the node which would hold them then, with what it uses of each.
pub(crate) fn room_miss(
    inputs: &UnplacedInputs<'_, '_>,
    class: &PodClass<'_>,
    at: usize,
) -> (String, Option<Vec<(u32, u64)>>) {
    let mut limits = None;
    let words = room_words(inputs, class, at, &mut limits);
    (words, limits)
}

fn room_words(
    inputs: &UnplacedInputs<'_, '_>,
    class: &PodClass<'_>,
    at: usize,
    limits: &mut Option<Vec<(u32, u64)>>,
) -> String {
    let supply = inputs.supply;
    let pool = &supply.pools[at];
    let named = pool.pool.in_words();
    let mut admitted: Vec<&PoolOffering> =
        pool.offers.iter().filter(|offer| inputs.meets_labels(at, class, offer)).collect();
    if admitted.is_empty() {
        admitted.extend(&pool.offers);
    }
    let requests = &class.requests;
    let serving = serving(inputs, class, at, &admitted);
    let most = |resource: &ResourceName| {
        // The GPUs and other devices come first, so what else is lacking is judged on nodes that have them.
        let among = if format::is_extended(resource) { &admitted } else { &serving };
        among
            .iter()
            .max_by_key(|offer| {
                (supply.capacities[offer.capacity].get(resource.as_str()), Reverse(offer.offering))
            })
            .map(|offer| {
                let room = supply.capacities[offer.capacity].get(resource.as_str());
                (room, *offer)
            })
    };
    // Extended resources come first, because people think of them first.
    let mut names: Vec<(&ResourceName, u64)> = requests.iter().collect();
    names.sort_by_key(|(name, _)| !format::is_extended(name));
    for (resource, wanted) in names {
        let Some((room, offer)) = most(resource) else { continue };
        if wanted <= room {
            continue;
        }
        let remedy = remedy(inputs, class, at, &serving, (resource, wanted), limits);
        let amount = format::quantity(resource, wanted);
        let origin = inputs.origin(resource);
        let taken = taken(inputs, at, offer, resource, wanted);
        if room == 0 && taken.is_empty() {
            return format!(
                "needs {amount} {resource}{origin}, which no offering of {named} has for it; {remedy}"
            );
        }
        let room_there = &supply.capacities[offer.capacity];
        let also: Vec<String> = requests
            .iter()
            .filter(|(name, wanted)| *name != resource && *wanted > room_there.get(name.as_str()))
            .map(|(name, wanted)| format!(", and less than {}", format::named(name, wanted)))
            .collect();
        let beside = if taken.is_empty() { beside(inputs, at, offer, resource) } else { "" };
        return format!(
            "needs {amount} {resource}{origin} in one node; the largest offering of {named} for it, {}, has {}{beside}{taken}{}; {remedy}",
            supply.offering(at, offer.offering).id.instance_type,
            format::quantity(resource, room),
            also.concat(),
        );
    }
    // Each resource alone fits some offering. The message names the offering with the fewest missing resources.
    let short = |offer: &PoolOffering| {
        let room = &supply.capacities[offer.capacity];
        requests.iter().filter(|(name, wanted)| *wanted > room.get(name.as_str())).count()
    };
    let closest = serving.iter().min_by_key(|offer| (short(offer), offer.offering));
    let Some(offer) = closest else { return format!("{named} has no offering for it") };
    let kind = &supply.offering(at, offer.offering).id.instance_type;
    match requests.first_shortage(&supply.capacities[offer.capacity]) {
        Some(shortage) => format!(
            "no offering of {named} fits all of {}; the nearest is {kind}, which has {} {} of {}{}{}{}",
            format::requests(requests, |_| String::new()),
            format::quantity(&shortage.resource, shortage.available),
            shortage.resource,
            format::quantity(&shortage.resource, shortage.wanted),
            inputs.origin(&shortage.resource),
            taken(inputs, at, offer, &shortage.resource, shortage.wanted),
            inputs.wider(at, class).map_or_else(String::new, |kind| format!("; {}", widen(kind))),
        ),
        None => format!("offerings of {named} fit it, but none may be bought now"),
    }
}

/// Returns whether instance types decide how much of the resource their nodes have for devices of pods, such as GPUs.
fn is_device(name: &ResourceName) -> bool {
    format::is_extended(name) && !name.as_str().starts_with(format::ATTACHABLE)
}

/// Returns those of the offerings that have the GPUs and other devices that the pods ask for, or the nearest to that.
fn serving<'o>(
    inputs: &UnplacedInputs<'_, '_>,
    class: &PodClass<'_>,
    at: usize,
    offers: &[&'o PoolOffering],
) -> Vec<&'o PoolOffering> {
    let supply = inputs.supply;
    let gpus = |offer: &PoolOffering| GpuMatch::of(supply.instance_type(at, offer.offering), class.spec);
    let nearest = offers.iter().map(|offer| gpus(offer)).min();
    let mut serving: Vec<&PoolOffering> =
        offers.iter().copied().filter(|offer| Some(gpus(offer)) == nearest).collect();
    for (name, wanted) in class.requests.iter().filter(|(name, _)| format::is_extended(name)) {
        let has = |offer: &&PoolOffering| supply.capacities[offer.capacity].get(name.as_str()) >= wanted;
        if serving.iter().any(has) {
            serving.retain(has);
        }
    }
    serving
}

/// Says that DaemonSets take a part of the resource on the node; empty if they take none.
fn beside(
    inputs: &UnplacedInputs<'_, '_>,
    at: usize,
    offer: &PoolOffering,
    resource: &ResourceName,
) -> &'static str {
    let daemons = inputs.daemons.tolerating(&inputs.supply.pools[at].pool.taints);
    let landing = daemons.landing(&inputs.supply.labels(at, offer.offering));
    if daemons.requests(&landing).get(resource.as_str()) > 0 { " beside DaemonSets" } else { "" }
}

/// Says how much of the resource the pods may ask for, on a node that holds all else that they ask for. No instance type has more than
/// `most`. If the pool buys no type with the resource, less alone does not help. Nodes within the limits come first. `limits` becomes
/// those that keep the node away all the same, with what it uses of each.
fn ask(
    inputs: &UnplacedInputs<'_, '_>,
    class: &PodClass<'_>,
    at: usize,
    serving: &[&PoolOffering],
    (resource, most): (&ResourceName, u64),
    limits: &mut Option<Vec<(u32, u64)>>,
) -> String {
    let supply = inputs.supply;
    let room = |offer: &PoolOffering| &supply.capacities[offer.capacity];
    let left = |offer: &PoolOffering| room(offer).get(resource.as_str());
    let holds_the_rest = |offer: &&PoolOffering| {
        let mut others = class.requests.iter().filter(|(name, _)| *name != resource);
        left(offer) > 0
            && offer.availability.is_sold_in_time()
            && others.all(|(name, wanted)| wanted <= room(offer).get(name.as_str()))
            && inputs.grants(at, offer, class)
            && inputs.colocation.admits(class.profile, &supply.residents[offer.residents])
    };
    let holding = || serving.iter().copied().filter(holds_the_rest);
    let best = holding().map(|offer| (offer, inputs.beyond_one(at, offer, class)));
    let best =
        best.max_by_key(|(offer, beyond)| (Reverse(beyond.len()), left(offer), Reverse(offer.offering)));
    let lacks = |offer: &&PoolOffering| left(offer) == 0;
    if serving.iter().all(lacks) && !inputs.supply.pools[at].pool.is_implicit {
        let mut fewer = class.requests.clone();
        fewer.set(resource.clone(), most);
        let with_fewer = inputs.wider_asking(at, class, &fewer);
        return match with_fewer {
            Some(kind) => {
                format!("so ask for at most {}, and {}", format::at_most(resource, most), widen(kind))
            }
            None => "so ask for less, and let the pool buy types that have it".to_owned(),
        };
    }
    let Some((offer, beyond)) = best else { return "so ask for less".to_owned() };
    *limits = Some(beyond);
    // A count of devices is in the sentence before.
    if format::is_extended(resource) {
        return "so ask for less".to_owned();
    }
    let is_largest = holding().all(|other| left(other) <= left(offer));
    format!(
        "so ask for at most {}{}{}",
        format::at_most(resource, left(offer)),
        beside(inputs, at, offer, resource),
        if is_largest { "" } else { ", because larger nodes are beyond limits" }
    )
}

/// Names the DaemonSets that take so much of the resource on a new node that the pods do not fit; empty if they are not the cause.
fn taken(
    inputs: &UnplacedInputs<'_, '_>,
    at: usize,
    offer: &PoolOffering,
    resource: &ResourceName,
    wanted: u64,
) -> String {
    let supply = inputs.supply;
    let daemons = inputs.daemons.tolerating(&supply.pools[at].pool.taints);
    let landing = daemons.landing(&supply.labels(at, offer.offering));
    let lacking = wanted.saturating_sub(supply.capacities[offer.capacity].get(resource.as_str()));
    daemons
        .in_the_way(&landing, resource, lacking)
        .map_or_else(String::new, |words| format!(", because {words}"))
}

/// Returns what a node class may change about a resource that the catalogue lacks; `None` if nothing.
fn of_node_class(
    inputs: &UnplacedInputs<'_, '_>,
    at: usize,
    resource: &ResourceName,
    most: u64,
) -> Option<String> {
    let pool = inputs.supply.pools[at].pool;
    // A setting of the class itself was told before.
    let other = inputs.supply.catalogue(at).addable_elsewhere(resource.as_str());
    if resource.as_str() == ResourceName::EPHEMERAL_STORAGE {
        let most = format::quantity(resource, most);
        return Some(if pool.is_implicit {
            format!(
                "nodes have at most {most}; give types more in the column `{EPHEMERAL_STORAGE_COLUMN}` of a file of --catalogue, write a NodePool whose node class sets larger disks, or ask for less"
            )
        } else {
            format!(
                "nodes of {class} have at most {most}; {other}give types more in the column `{EPHEMERAL_STORAGE_COLUMN}` of a file of --catalogue, or ask for less",
                class = pool.node_class,
                other = other.map_or_else(String::new, |other| format!("use {other}, ")),
            )
        });
    }
    // A node class adds what its cloud defines, such as network adapters. Nothing adds other devices to the types of a catalogue.
    (most == 0 && domains::is_foreign(resource.as_str())).then(|| {
        let class = if pool.is_implicit { "a node class".to_owned() } else { pool.node_class.to_string() };
        match other {
            Some(other) => format!("no instance type in the catalogue has it; use {other}, which adds it to nodes of the types that support it"),
            None => format!(
                "no instance type in the catalogue has it and no setting of {class} adds it, so no node can be bought for it; correct its name, or add a node that has it yourself"
            ),
        }
    })
}

/// Returns how the node class of the pool gives its nodes more of the resource, if it can. Each pod takes one of the `pods`, so it cannot
/// ask for less.
fn larger(inputs: &UnplacedInputs<'_, '_>, at: usize, resource: &ResourceName) -> Option<String> {
    let less = if resource.as_str() == ResourceName::PODS { "" } else { ", or ask for less" };
    inputs.supply.enlarging(at, resource).map(|change| change + less)
}

fn widen(kind: WiderType<'_>) -> String {
    format!("widen the pool's requirements so that it may buy {kind}")
}

/// Returns a change that gets the pods a node with so much of the resource. Each was tried, or is said to be none. `serving` are the
/// offerings that have the devices which the pods ask for. `limits` is for [`ask`].
fn remedy(
    inputs: &UnplacedInputs<'_, '_>,
    class: &PodClass<'_>,
    at: usize,
    serving: &[&PoolOffering],
    (resource, wanted): (&ResourceName, u64),
    limits: &mut Option<Vec<(u32, u64)>>,
) -> String {
    if let Some(change) = larger(inputs, at, resource) {
        return change;
    }
    if let Some(kind) = inputs.wider_with_labels(at, class) {
        return widen(kind);
    }
    let is_cut = matches!(inputs.options.sharing, Sharing::Mig { .. });
    if resource.as_str().starts_with(ResourceName::MIG_PREFIX) && !is_cut {
        if let Some(cause) = inputs.widened().refusal_if_cut(class.spec) {
            return format!("it {cause}");
        }
        if !inputs.widened().holds_if_cut(class.spec) {
            return inputs.widened().limit_if_cut(class.spec).map_or_else(
                || "no node that it may use would hold it with GPUs cut into such instances".to_owned(),
                |(limit, raise)| {
                    format!(
                        "`poolwright plan --sharing mig` plans GPUs that are cut into such instances, but {limit}; {raise} too"
                    )
                },
            );
        }
        let here =
            if inputs.options.sharing == Sharing::Whole { "bought whole" } else { "shared and not cut" };
        return format!(
            "GPUs are {here} here; `poolwright plan --sharing mig` plans GPUs that are cut into such instances"
        );
    }
    if let Some(setting) = inputs.supply.catalogue(at).addable(resource.as_str()) {
        let (supply, pool) = (inputs.supply, &inputs.supply.pools[at]);
        let change = format!(
            "write `{setting}` in {}, which adds it to nodes of the types that support it",
            pool.pool.node_class
        );
        let would_hold = |offer: &PoolOffering| {
            inputs.meets_labels(at, class, offer) && inputs.would_fit(at, class, offer)
        };
        let is_known = |offer: &PoolOffering| {
            let kind = &supply.offering(at, offer.offering).id.instance_type;
            supply.catalogue(at).added(resource.as_str(), kind).is_some()
        };
        if pool.offers.iter().all(is_known) && !pool.offers.iter().any(would_hold) {
            return format!(
                "{change}; besides, no type that the pool may buy would hold all that it asks for even then"
            );
        }
        return change;
    }
    let has_devices = |kind: &InstanceType| {
        let mut devices = class.requests.iter().filter(|(name, _)| is_device(name));
        GpuMatch::of(kind, class.spec) == GpuMatch::Enough
            && devices.all(|(name, wanted)| wanted <= kind.allocatable.get(name.as_str()))
    };
    let most_of = |is_meant: &dyn Fn(&InstanceType) -> bool| {
        let catalogues = inputs.snapshot.catalogues.values().flatten();
        let kinds = catalogues.flat_map(|all| all.types().values()).filter(|kind| is_meant(kind));
        kinds.map(|kind| kind.allocatable.get(resource.as_str())).max()
    };
    let with_devices = most_of(&has_devices).filter(|_| !format::is_extended(resource));
    let most = with_devices.or_else(|| most_of(&|_| true)).unwrap_or(0);
    if most == 0 && resource.as_str().starts_with(format::HUGE_PAGES) {
        return "nodes have huge pages only if their image or boot parameters reserve them, and no instance type in the catalogue promises them, so no node can be bought for it; add a node that has them yourself".to_owned();
    }
    if most == 0 && resource.as_str() == ResourceName::NVIDIA_GPU_SHARED {
        return "device plugins advertise it for GPUs that pods share, and Poolwright buys nodes for whole GPUs; ask for nvidia.com/gpu, or add a node that shares its GPUs yourself".to_owned();
    }
    if let Some(advice) = of_node_class(inputs, at, resource, most).filter(|_| most < wanted) {
        return advice;
    }
    if most == 0 {
        return "no instance type in the catalogue has it, so no node can be bought for it; correct its name, or add a node that has it yourself".to_owned();
    }
    if most < wanted {
        let among = if inputs.supply.pools[at].pool.is_implicit {
            "that this plan may buy"
        } else {
            "in the catalogue"
        };
        let asks_for_devices = class.spec.requests.iter().any(|(name, _)| is_device(name));
        let such = if with_devices.is_some() && asks_for_devices {
            " with the devices that it asks for"
        } else {
            ""
        };
        let ask = ask(inputs, class, at, serving, (resource, most), limits);
        let most = format::quantity(resource, most);
        return format!("no instance type {among}{such} has more than {most}, {ask}");
    }
    let sells = if inputs.supply.pools[at].pool.is_implicit {
        "may be bought"
    } else {
        "the node class of the pool sells"
    };
    let own = inputs.options.limits_of(inputs.supply.pools[at].pool);
    let within = match [&own, &inputs.options.limits].map(|limits| *limits == PoolLimits::default()) {
        [false, _] => " within the limits of the pool",
        [true, false] => " within the limits over all pools",
        [true, true] => "",
    };
    let beside = if inputs.snapshot.daemonsets.is_empty() { "" } else { ", beside DaemonSets" };
    // Advice names no types with Arm processors to a pod that may not run there.
    let arm = if inputs.is_held_on_any(at, class) {
        " without Arm processors; if its images run on Arm, select `kubernetes.io/arch: arm64`, and let the pool buy such types"
    } else {
        ""
    };
    format!("no instance type that {sells} holds all that it asks for{within}{beside}{arm}")
}
