//! The offerings of an EC2NodeClass from a catalogue, without calls to AWS: for `plan`, `explain` and `simulate`.
//!
//! The settings of nodes and the selection of types are those of [`super::Market`]. Subnets and images come from the status of the
//! class, where the controller has written them. A class without a status allows every zone and every instance type, and a note
//! says so.

use std::collections::{BTreeMap, BTreeSet};

use poolwright_catalog::{Catalogue, InstanceType, InstanceTypeName, Zone};
use poolwright_provider_aws_model::instance::{
    Efa, LocalDisks, Selection, Settings, described, facts_of, under,
};
use poolwright_provider_contract::ClassOffers;
use serde_json::Value;

use super::selection;
use super::settings::{root_disk, settings, with_addable};
use crate::node_class::{
    AmiFamily, EC2NodeClass, EC2NodeClassSpec, Ec2NodeClassStatus, conditions, kubelet_disk,
};
use crate::registration::NAME;
use crate::resolve::{self, image_for, kubelet, nothing_left, user_data};

/// Returns what a class sells of a catalogue.
pub(crate) fn sells(object: &Value, catalogue: &Catalogue) -> ClassOffers {
    let mut told = Told::default();
    let catalogue = serde_json::from_value::<EC2NodeClass>(object.clone())
        .map_err(|error| format!("{}: {error}; correct it", resolve::KIND))
        .and_then(|class| of_class(&class, catalogue, &mut told));
    ClassOffers { catalogue, notes: told.notes, left_out: told.left_out }
}

/// Returns why a class without `alsoInstanceTypes` does not sell a type, and how to allow it.
pub(crate) fn leaves_out(kind: &InstanceType) -> Option<String> {
    Selection::default().leaves_out(&facts_of(kind))
}

/// What is told of the offerings of a class.
#[derive(Default)]
struct Told {
    notes: Vec<String>,
    /// The types that the class sells only if it names them, with the reason.
    left_out: BTreeMap<InstanceTypeName, String>,
}

fn of_class(class: &EC2NodeClass, catalogue: &Catalogue, to_tell: &mut Told) -> Result<Catalogue, String> {
    let notes = &mut to_tell.notes;
    let (spec, name) = (&class.spec, class.metadata.name.as_deref().unwrap_or_default());
    let told = |wrong: resolve::WrongField| wrong.of(name).message().to_owned();
    let status = current_status(class);
    if let Some(why) = not_ready(&status) {
        let class = format!("{} `{name}`", resolve::KIND);
        return Err(if why.starts_with(&class) {
            why.to_owned()
        } else {
            format!("{class} is not ready: {why}")
        });
    }
    let (family, kept) = (resolve::family(spec).map_err(told)?, kubelet::reserved(spec).map_err(told)?);
    if let Some(wrong) = user_data::refusals(spec, family).into_iter().next() {
        return Err(told(wrong));
    }
    let settings = settings(spec, family, kept);
    notes.extend(unread(name, spec, &status));
    notes.extend(disk_note(spec, family));
    let nothing = |why: &str| format!("{} `{name}` sells nothing: {why}", resolve::KIND);
    let ours = catalogue.filtered(|kind, _| kind.provider.as_str() == NAME);
    if ours.offerings().is_empty() {
        return Err(nothing(&format!(
            "the catalogue has no offering of provider `{NAME}` that the flags allow"
        )));
    }
    notes.extend(unknown_types(spec, &ours));
    let of_types = with_types_of(spec, &settings, &ours, to_tell);
    if of_types.offerings().is_empty() {
        return Err(nothing(
            "none of the instance types in the catalogue is left; correct its kubelet settings, its disks or alsoInstanceTypes",
        ));
    }
    let zones: BTreeSet<&str> = status.subnets.iter().map(|subnet| subnet.zone.as_str()).collect();
    let named = zones.iter().copied().collect::<Vec<_>>().join(", ");
    let in_zones = of_types.filtered(|_, offering| zones.is_empty() || is_in(&offering.id.zone, &zones));
    if in_zones.offerings().is_empty() {
        return Err(nothing(&format!(
            "its subnets are in {named}, where the catalogue has no offering; give a catalogue of that region"
        )));
    }
    let images = &status.images;
    let has_image = |kind: &InstanceType| images.is_empty() || image_for(images, kind).is_some();
    let with_image = in_zones.filtered(|kind, _| has_image(kind));
    if with_image.offerings().is_empty() {
        let elsewhere = of_types.filtered(|kind, _| has_image(kind));
        let found: BTreeSet<&str> =
            elsewhere.offerings().iter().map(|offering| offering.id.zone.as_str()).collect();
        return Err(nothing(&if found.is_empty() {
            "its images fit no instance type of the catalogue that its settings leave; correct its amiSelectorTerms".to_owned()
        } else {
            format!(
                "the catalogue sells the instance types that its images fit in {}, but its subnets are in {named}; add subnets in one of \
                 those zones, or correct its amiSelectorTerms",
                Vec::from_iter(found).join(", ")
            )
        }));
    }
    Ok(with_addable(with_image, spec, family))
}

/// Returns the status of the class, or an empty one if it describes an earlier spec.
fn current_status(class: &EC2NodeClass) -> Ec2NodeClassStatus {
    let status = class.status.clone().unwrap_or_default();
    let is_current = match (status.observed_generation, class.metadata.generation) {
        (Some(observed), Some(generation)) => observed == generation,
        _ => true,
    };
    if is_current { status } else { Ec2NodeClassStatus::default() }
}

/// Returns the message of the first condition of these types that is false.
fn failed(status: &Ec2NodeClassStatus, is_wanted: impl Fn(&str) -> bool) -> Option<&str> {
    let found = status.conditions.iter().find(|one| one.status == "False" && is_wanted(&one.type_));
    found.map(|one| one.message.as_str())
}

/// Returns why the controller cannot plan with the class. It plans with a class of which only the dry run failed.
fn not_ready(status: &Ec2NodeClassStatus) -> Option<&str> {
    let blocks = |kind: &str| kind != conditions::VALIDATED && conditions::ALL.contains(&kind);
    failed(status, blocks).or_else(|| match failed(status, |kind| kind == conditions::VALIDATED) {
        Some(_) => None,
        None => failed(status, |kind| kind == "Ready"),
    })
}

/// Returns what the offerings leave open about the class: the fields that only AWS can answer, what counts instead, and what the
/// user can do.
fn unread(name: &str, spec: &EC2NodeClassSpec, status: &Ec2NodeClassStatus) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some(why) = failed(status, |kind| kind == conditions::VALIDATED) {
        notes.push(format!("it is not ready, and its launches fail: {why}"));
    }
    notes.extend(unresolved(name, status));
    notes.extend(reservations(spec, status));
    notes.extend(placement_group(spec, status));
    if spec.user_data.is_some() {
        notes.push(
            "its userData is not read: resources that it reserves for the kubelet or the system count as free for pods; repeat such \
             settings in spec.kubelet"
                .to_owned(),
        );
    }
    notes
}

/// Names the selectors that the status does not resolve. Security groups decide about no offering.
fn unresolved(name: &str, status: &Ec2NodeClassStatus) -> Option<String> {
    let selectors = [
        ("subnetSelectorTerms", status.subnets.is_empty(), Some("zone")),
        ("securityGroupSelectorTerms", status.security_groups.is_empty(), None),
        ("amiSelectorTerms", status.images.is_empty(), Some("instance type")),
    ];
    let open: Vec<_> = selectors.into_iter().filter(|(_, is_open, _)| *is_open).collect();
    let fields: Vec<String> = open.iter().map(|(field, ..)| format!("spec.{field}")).collect();
    let assumed: Vec<&str> = open.iter().filter_map(|(_, _, what)| *what).collect();
    let (last, others) = fields.split_last()?;
    let fields = if others.is_empty() { last.clone() } else { format!("{} and {last}", others.join(", ")) };
    let effect = if assumed.is_empty() {
        "which changes nothing about the plan".to_owned()
    } else {
        format!("so every {} of the catalogue counts as allowed", assumed.join(" and "))
    };
    Some(format!(
        "only AWS knows what its {fields} select, and its status does not say it, {effect}; `poolwright check --provider {NAME}` \
         asks AWS, and a plan reads the status that the controller writes (`kubectl get ec2nodeclass {name} -o yaml`)"
    ))
}

/// Says that the strategy of the placement group does not count. It decides about zones only if there are several.
fn placement_group(spec: &EC2NodeClassSpec, status: &Ec2NodeClassStatus) -> Option<String> {
    spec.placement_group.as_ref()?;
    let zones: BTreeSet<&str> = status.subnets.iter().map(|subnet| subnet.zone.as_str()).collect();
    if zones.len() == 1 {
        return None;
    }
    let what = match status.placement_group.as_ref().map(|group| group.strategy.as_str()) {
        None => {
            "only AWS knows the strategy of its spec.placementGroup, and its status does not say it: if it is cluster, all nodes must be"
        }
        Some("cluster") => "its placement group has the strategy cluster, so all nodes must be",
        Some(_) => return None,
    };
    Some(format!(
        "{what} in one zone, and the plan may choose several; select the subnets of one zone if that must not happen"
    ))
}

/// Says that the reservations of the class do not count.
fn reservations(spec: &EC2NodeClassSpec, status: &Ec2NodeClassStatus) -> Option<String> {
    if spec.capacity_reservation_selector_terms.is_empty() {
        return None;
    }
    let known = &status.capacity_reservations;
    let is_resolved = status
        .conditions
        .iter()
        .any(|one| one.type_ == conditions::CAPACITY_RESERVATIONS_READY && one.status == "True");
    if known.is_empty() && is_resolved {
        return None;
    }
    let which = if known.is_empty() {
        "only AWS knows the reservations that its spec.capacityReservationSelectorTerms select, and none of them counts".to_owned()
    } else {
        let named =
            known.iter().take(NAMED).map(|one| format!("{} ({} in {})", one.id, one.instance_type, one.zone));
        let more = match known.len().saturating_sub(NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        format!(
            "the reservations in its status.capacityReservations do not count, because only AWS knows how many of their instances are free: {}{more}",
            named.collect::<Vec<_>>().join(", ")
        )
    };
    Some(format!(
        "{which}; the controller buys in them at no price, so list the free ones under `reservations` of a file for --commitments \
         (docs/cli/plan.md)"
    ))
}

/// The most reservations that a note names.
const NAMED: usize = 3;

/// Says which disk size counts, if the class does not say it.
fn disk_note(spec: &EC2NodeClassSpec, family: AmiFamily) -> Option<String> {
    let disks = &spec.block_device_mappings;
    if root_disk(family, disks).is_some() {
        return None;
    }
    let size = Settings::default().root_disk_gib;
    // On the others, the array of local disks counts.
    let types = if spec.instance_store_policy.is_some() { " on types without local disks" } else { "" };
    match kubelet_disk(family, disks) {
        Some(disk) => Some(format!(
            "its disk {} has the size of a snapshot, which is not read; {size} GiB count{types}; set volumeSize",
            disk.device_name
        )),
        None if !disks.is_empty() => Some(format!(
            "none of its blockDeviceMappings is the disk of the kubelet, so {size} GiB count{types}; set rootVolume on that disk"
        )),
        // The images of an alias have a disk of this size.
        None if spec.ami_selector_terms.iter().any(|term| term.alias.is_some()) => None,
        None => Some(format!(
            "the size of the disk of its images is not read, so {size} GiB count{types}; list that disk in blockDeviceMappings, with \
             volumeSize and rootVolume"
        )),
    }
}

/// Names the types and families of `alsoInstanceTypes` that the catalogue lacks.
fn unknown_types(spec: &EC2NodeClassSpec, catalogue: &Catalogue) -> Option<String> {
    let has = |wanted: &str| {
        catalogue.types().values().any(|kind| kind.name.as_str() == wanted || kind.family() == wanted)
    };
    let missing: Vec<&str> =
        spec.also_instance_types.iter().map(String::as_str).filter(|wanted| !has(wanted)).collect();
    (!missing.is_empty()).then(|| {
        format!("the catalogue has no offering of {}, which its alsoInstanceTypes name", missing.join(", "))
    })
}

/// Returns the offerings of the types that the class sells, with the resources of its nodes.
fn with_types_of(
    spec: &EC2NodeClassSpec,
    settings: &Settings,
    catalogue: &Catalogue,
    Told { notes, left_out }: &mut Told,
) -> Catalogue {
    let selection = selection(spec);
    let (mut sold, mut too_small): (Vec<InstanceType>, Vec<InstanceTypeName>) = Default::default();
    let mut unknown = Vec::new();
    for kind in catalogue.types().values() {
        if let Some(why) = selection.leaves_out(&facts_of(kind)) {
            left_out.insert(kind.name.clone(), why);
        } else if let Some(kind) = under(kind, settings) {
            if described(&kind.name).is_none() {
                unknown.push(kind.name.to_string());
            }
            sold.push(kind);
        } else {
            too_small.push(kind.name.clone());
        }
    }
    if !too_small.is_empty() {
        notes.push(nothing_left(&too_small));
    }
    if !unknown.is_empty() && (settings.local_disks == LocalDisks::Raid0 || settings.efa == Efa::All) {
        notes.push(format!(
            "local disks and EFA of {} of the catalogue are not known and do not count: {}",
            count(&unknown),
            unknown[0]
        ));
    }
    Catalogue::new(catalogue.origin().clone(), sold, catalogue.offerings().to_vec())
}

fn count(types: &[String]) -> String {
    format!("{} instance type{}", types.len(), if types.len() == 1 { "" } else { "s" })
}

/// Returns whether an offering is in one of the zones. The offerings of a whole region are, if one zone is of that region, and those
/// of a catalogue without zones are, too.
fn is_in(zone: &Zone, zones: &BTreeSet<&str>) -> bool {
    let zone = zone.as_str();
    zone == Zone::ANY || zones.contains(zone) || zones.iter().any(|one| is_zone_of(one, zone))
}

/// Returns whether a zone such as `us-east-1a` is of this region.
fn is_zone_of(zone: &str, region: &str) -> bool {
    zone.strip_prefix(region).is_some_and(|letter| matches!(letter.as_bytes(), [b'a'..=b'z']))
}

#[cfg(test)]
mod tests;
