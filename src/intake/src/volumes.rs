//! Volumes of pods, PersistentVolumeClaims, PersistentVolumes, StorageClasses, and the volume limits of nodes.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use k8s_openapi::api::core::v1 as k8s;
use k8s_openapi::api::storage::v1 as storage;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use poolwright_api::FieldProblem;
use poolwright_catalog::quantity;
use poolwright_core::{
    Attachment, NodeDrivers, NodeSelectorTerm, Operator, PodVolume, Requirement, StorageClass, Uid,
    UnmodelledRule, Volume, VolumeClaim, VolumeShape,
};
use poolwright_terms::labels;

use crate::error::{IntakeError, Keep, first_of, object_name, quantity_problem};
use crate::others::requirements;
use crate::pod::key_of;
use crate::rules::node_terms;

/// The annotation with which the volume controller marks a bound claim.
pub const BIND_COMPLETED: &str = "pv.kubernetes.io/bind-completed";
/// The annotation with which the scheduler names the chosen node on a claim that waits for its first pod.
pub const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";
/// The annotation that named a StorageClass before `storageClassName` existed.
const OLD_CLASS: &str = "volume.beta.kubernetes.io/storage-class";
/// The annotation that marks the default class; the second one is its older name.
pub const DEFAULT_CLASS: [&str; 2] =
    ["storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"];
/// The provisioner of classes without dynamic provisioning.
const NO_PROVISIONER: &str = "kubernetes.io/no-provisioner";

/// Zone labels of nodes and of volumes: today's names, then the older ones.
const ZONES: [(&str, &str); 2] = [
    (labels::ZONE, "failure-domain.beta.kubernetes.io/zone"),
    (labels::REGION, "failure-domain.beta.kubernetes.io/region"),
];

/// Returns the CSI driver that serves an in-tree volume today, and the volume's handle (`k8s.io/csi-translation-lib`).
fn in_tree(of: &k8s::Volume) -> Option<(&'static str, String)> {
    let found = [
        of.azure_disk.as_ref().map(|disk| ("disk.csi.azure.com", disk.disk_uri.clone())),
        of.cinder.as_ref().map(|disk| ("cinder.csi.openstack.org", disk.volume_id.clone())),
        of.vsphere_volume.as_ref().map(|disk| ("csi.vsphere.vmware.com", disk.volume_path.clone())),
        of.portworx_volume.as_ref().map(|disk| ("pxd.portworx.com", disk.volume_id.clone())),
        of.azure_file
            .as_ref()
            .map(|share| ("file.csi.azure.com", format!("{}#{}", share.secret_name, share.share_name))),
    ];
    found.into_iter().flatten().next()
}

/// Returns the volumes of a pod that a node may not be able to provide. `pod` is its name.
pub(crate) fn of_pod(pod: &str, spec: &k8s::PodSpec) -> Vec<PodVolume> {
    let convert = |volume: &k8s::Volume| {
        if let Some(claim) = &volume.persistent_volume_claim {
            return Some(PodVolume::Claim { name: claim.claim_name.clone(), ephemeral: false });
        }
        if volume.ephemeral.is_some() {
            return Some(PodVolume::Claim { name: format!("{pod}-{}", volume.name), ephemeral: true });
        }
        let (driver, handle) = in_tree(volume)?;
        Some(PodVolume::Attached { driver: driver.to_owned(), handle })
    };
    spec.volumes.iter().flatten().filter_map(convert).collect()
}

/// Converts a PersistentVolumeClaim.
pub fn volume_claim(from: &k8s::PersistentVolumeClaim) -> Result<VolumeClaim, IntakeError> {
    let name = || named("PersistentVolumeClaim", &from.metadata, true);
    stored_claim(from).map_err(|problems| first_of(problems, name()))
}

/// Converts a PersistentVolume.
pub fn volume(from: &k8s::PersistentVolume) -> Result<Volume, IntakeError> {
    let name = || named("PersistentVolume", &from.metadata, false);
    convert_volume(from).map_err(|problems| first_of(problems, name()))
}

/// Converts a StorageClass.
pub fn storage_class(from: &storage::StorageClass) -> StorageClass {
    let meta = &from.metadata;
    let is_true = |key: &&str| annotation(meta, key) == Some("true");
    let created = meta.creation_timestamp.as_ref().map_or(Timestamp::UNIX_EPOCH, |time| time.0);
    let provisioner = Some(from.provisioner.clone());
    let allowed = from.allowed_topologies.as_deref().unwrap_or_default();
    let term = |term: &k8s::TopologySelectorTerm| {
        let one = |one: &k8s::TopologySelectorLabelRequirement| Requirement {
            key: one.key.clone(),
            operator: Operator::In(one.values.iter().cloned().collect()),
        };
        NodeSelectorTerm { requirements: term.match_label_expressions.iter().flatten().map(one).collect() }
    };
    StorageClass {
        name: meta.name.clone().unwrap_or_default(),
        provisioner: provisioner.filter(|name| !name.is_empty() && name != NO_PROVISIONER),
        waits_for_pod: from.volume_binding_mode.as_deref() == Some("WaitForFirstConsumer"),
        allowed: (!allowed.is_empty()).then(|| allowed.iter().map(term).collect()),
        default_since: DEFAULT_CLASS.iter().any(is_true).then_some(created),
    }
}

/// Converts a VolumeAttachment: a volume that is attached to a node.
pub fn attachment(from: &storage::VolumeAttachment) -> Attachment {
    Attachment {
        name: from.metadata.name.clone().unwrap_or_default(),
        node: from.spec.node_name.clone(),
        volume: from.spec.source.persistent_volume_name.clone(),
    }
}

/// Converts a CSINode: the number of volumes that a node can attach.
pub fn node_drivers(from: &storage::CSINode) -> NodeDrivers {
    let mut drivers =
        NodeDrivers { node: from.metadata.name.clone().unwrap_or_default(), ..NodeDrivers::default() };
    for driver in &from.spec.drivers {
        match driver.allocatable.as_ref().and_then(|allocatable| allocatable.count) {
            Some(count) => {
                drivers.limits.insert(driver.name.clone(), u64::try_from(count).unwrap_or(0));
            }
            // Kubernetes counts no volumes of such a driver.
            None => {
                drivers.unlimited.insert(driver.name.clone());
            }
        }
    }
    drivers
}

/// Converts a claim of a manifest. One that no API server has stored counts as bound if the volume controller
/// binds it as soon as it and its volume are there, without waiting for a pod: it names a volume, or it wants
/// one without a StorageClass. The binder of core chooses the volume for one that names none.
pub(crate) fn convert_claim(from: &k8s::PersistentVolumeClaim) -> Result<VolumeClaim, Vec<FieldProblem>> {
    let claim = stored_claim(from)?;
    let meta = &from.metadata;
    let phase = from.status.as_ref().and_then(|status| status.phase.as_deref());
    let texts = [meta.uid.as_deref(), meta.resource_version.as_deref(), phase];
    let is_new = texts.into_iter().flatten().all(str::is_empty);
    let binds_at_once = is_new && (claim.volume.is_some() || claim.class.as_deref() == Some(""));
    Ok(VolumeClaim { bound: claim.bound || binds_at_once, ..claim })
}

/// Converts a claim, or returns all problems.
fn stored_claim(from: &k8s::PersistentVolumeClaim) -> Result<VolumeClaim, Vec<FieldProblem>> {
    let meta = &from.metadata;
    let nothing = k8s::PersistentVolumeClaimSpec::default();
    let spec = from.spec.as_ref().unwrap_or(&nothing);
    let requests = spec.resources.as_ref().and_then(|resources| resources.requests.as_ref());
    let volume = spec.volume_name.clone().filter(|name| !name.is_empty());
    let selector = match &spec.selector {
        None => Ok(Vec::new()),
        Some(selector) => requirements(selector).ok_or_else(|| {
            FieldProblem::new(
                "spec.selector",
                "it has an invalid expression",
                "use In, NotIn, Exists or DoesNotExist with values that fit",
            )
        }),
    };
    let mut problems = Vec::new();
    let selector = selector.keep(&mut problems);
    let size = size("spec.resources.requests.storage", requests).keep(&mut problems);
    let (Some(selector), Some(size)) = (selector, size) else { return Err(problems) };
    let owner = meta.owner_references.iter().flatten().find(|owner| owner.controller == Some(true));
    Ok(VolumeClaim {
        key: key_of(meta),
        class: annotation(meta, OLD_CLASS).map(str::to_owned).or_else(|| spec.storage_class_name.clone()),
        bound: volume.is_some() && annotation(meta, BIND_COMPLETED).is_some(),
        volume,
        lost: from.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Lost"),
        selected_node: annotation(meta, SELECTED_NODE).filter(|node| !node.is_empty()).map(str::to_owned),
        shape: VolumeShape {
            size,
            access_modes: spec.access_modes.iter().flatten().cloned().collect(),
            block: spec.volume_mode.as_deref() == Some("Block"),
            attributes_class: spec.volume_attributes_class_name.clone().unwrap_or_default(),
        },
        selector,
        ephemeral_for: owner.filter(|owner| owner.kind == "Pod").map(|owner| Uid(owner.uid.clone())),
        deleting: meta.deletion_timestamp.is_some(),
        over_quota: None,
    })
}

/// Converts a volume, or returns all problems.
pub(crate) fn convert_volume(from: &k8s::PersistentVolume) -> Result<Volume, Vec<FieldProblem>> {
    let meta = &from.metadata;
    let nothing = k8s::PersistentVolumeSpec::default();
    let spec = from.spec.as_ref().unwrap_or(&nothing);
    let labels = meta.labels.clone().unwrap_or_default();
    let claim = spec.claim_ref.as_ref().map(|claim| {
        poolwright_core::ObjectKey::new(
            claim.namespace.clone().unwrap_or_default(),
            claim.name.clone().unwrap_or_default(),
        )
    });
    let (mut topology, mut problems) = (Vec::new(), Vec::new());
    if let Some(required) = spec.node_affinity.as_ref().and_then(|affinity| affinity.required.as_ref()) {
        let mut senseless = Vec::new();
        topology.push(node_terms("spec.nodeAffinity.required.nodeSelectorTerms", required, &mut senseless));
        let problem =
            |rule: UnmodelledRule| FieldProblem::new(rule.field, rule.rule, "correct the expression");
        problems.extend(senseless.into_iter().map(problem));
    }
    let size = size("spec.capacity.storage", spec.capacity.as_ref()).keep(&mut problems);
    let Some(size) = size.filter(|_| problems.is_empty()) else { return Err(problems) };
    topology.extend(zones(&labels));
    let phase = from.status.as_ref().and_then(|status| status.phase.as_deref());
    Ok(Volume {
        name: meta.name.clone().unwrap_or_default(),
        class: annotation(meta, OLD_CLASS)
            .map(str::to_owned)
            .or_else(|| spec.storage_class_name.clone())
            .unwrap_or_default(),
        shape: VolumeShape {
            size,
            access_modes: spec.access_modes.iter().flatten().cloned().collect(),
            block: spec.volume_mode.as_deref() == Some("Block"),
            attributes_class: spec.volume_attributes_class_name.clone().unwrap_or_default(),
        },
        labels,
        claim,
        // A volume of a file without a phase is free.
        available: matches!(phase, None | Some("" | "Available")),
        deleting: meta.deletion_timestamp.is_some(),
        topology,
        attached: attached(spec),
    })
}

/// Returns the driver that attaches a volume, and its handle there.
fn attached(spec: &k8s::PersistentVolumeSpec) -> Option<(String, String)> {
    if let Some(csi) = &spec.csi {
        return Some((csi.driver.clone(), csi.volume_handle.clone()));
    }
    let found = [
        spec.aws_elastic_block_store.as_ref().map(|disk| ("ebs.csi.aws.com", &disk.volume_id)),
        spec.gce_persistent_disk.as_ref().map(|disk| ("pd.csi.storage.gke.io", &disk.pd_name)),
        spec.azure_disk.as_ref().map(|disk| ("disk.csi.azure.com", &disk.disk_uri)),
        spec.cinder.as_ref().map(|disk| ("cinder.csi.openstack.org", &disk.volume_id)),
        spec.vsphere_volume.as_ref().map(|disk| ("csi.vsphere.vmware.com", &disk.volume_path)),
        spec.portworx_volume.as_ref().map(|disk| ("pxd.portworx.com", &disk.volume_id)),
    ];
    let (driver, handle) = found.into_iter().flatten().next()?;
    Some((driver.to_owned(), handle.clone()))
}

/// Returns the requirements of a volume's zone labels: a node that has such a label must have one of the values. Several values
/// are written `a__b`.
fn zones(labels: &BTreeMap<String, String>) -> Vec<Vec<NodeSelectorTerm>> {
    let all = ZONES.iter().flat_map(|(new, old)| [*new, *old]);
    let absent = |key: &str| Requirement { key: key.to_owned(), operator: Operator::DoesNotExist };
    let nowhere = NodeSelectorTerm { requirements: all.clone().map(absent).collect() };
    let of = |key: &str| {
        let values: BTreeSet<String> = labels.get(key)?.split("__").map(str::to_owned).collect();
        let today = ZONES.iter().find(|(_, old)| *old == key).map(|(new, _)| *new);
        let within = |key: &str| NodeSelectorTerm {
            requirements: vec![Requirement { key: key.to_owned(), operator: Operator::In(values.clone()) }],
        };
        let mut terms = vec![within(key)];
        terms.extend(today.map(|today| {
            let mut term = within(today);
            term.requirements.push(absent(key));
            term
        }));
        terms.push(nowhere.clone());
        Some(terms)
    };
    all.clone().filter_map(of).collect()
}

fn size(
    path: &str,
    from: Option<&BTreeMap<String, k8s_openapi::apimachinery::pkg::api::resource::Quantity>>,
) -> Result<u64, FieldProblem> {
    let Some(text) = from.and_then(|amounts| amounts.get("storage")) else { return Ok(0) };
    quantity::amount("storage", &text.0).map_err(|error| quantity_problem(path, &error))
}

fn annotation<'a>(meta: &'a ObjectMeta, key: &str) -> Option<&'a str> {
    meta.annotations.as_ref()?.get(key).map(String::as_str)
}

fn named(kind: &str, meta: &ObjectMeta, namespaced: bool) -> String {
    let namespace = namespaced.then(|| meta.namespace.as_deref().unwrap_or("default"));
    object_name(kind, namespace, meta.name.as_deref())
}

/// Returns the claims that controllers create for a pod of a workload: for its ephemeral volumes, and from a StatefulSet's
/// templates. `pod` is the pod's name, and `path` that of its spec. Errors: all problems.
pub(crate) fn ephemeral_claims(
    path: &str,
    namespace: Option<&str>,
    pod: &str,
    spec: &k8s::PodSpec,
    templates: &[k8s::PersistentVolumeClaim],
) -> Result<Vec<VolumeClaim>, Vec<FieldProblem>> {
    let meta = |name: String| ObjectMeta {
        name: Some(name),
        namespace: namespace.map(str::to_owned),
        ..ObjectMeta::default()
    };
    let (mut made, mut problems) = (Vec::new(), Vec::new());
    // Problems of a claim have the path in the claim.
    let mut convert = |object: &k8s::PersistentVolumeClaim, path: &str| {
        let place =
            |problem: FieldProblem| FieldProblem { path: format!("{path}.{}", problem.path), ..problem };
        let found = convert_claim(object);
        found.map_err(|found| found.into_iter().map(place).collect::<Vec<_>>()).keep(&mut problems)
    };
    for (at, volume) in spec.volumes.iter().flatten().enumerate() {
        let Some(template) =
            volume.ephemeral.as_ref().and_then(|source| source.volume_claim_template.as_ref())
        else {
            continue;
        };
        let name = format!("{pod}-{}", volume.name);
        let object = k8s::PersistentVolumeClaim {
            metadata: meta(name),
            spec: Some(template.spec.clone()),
            status: None,
        };
        let key = poolwright_core::ObjectKey::new(namespace.unwrap_or("default"), pod);
        let claim = convert(&object, &format!("{path}.volumes[{at}].ephemeral.volumeClaimTemplate"));
        let ephemeral_for = Some(Uid(key.to_string()));
        made.extend(claim.map(|claim| VolumeClaim { ephemeral_for, ..claim }));
    }
    for (at, template) in templates.iter().enumerate() {
        let name = format!("{}-{pod}", template.metadata.name.as_deref().unwrap_or_default());
        let object = k8s::PersistentVolumeClaim { metadata: meta(name), ..template.clone() };
        made.extend(convert(&object, &format!("spec.volumeClaimTemplates[{at}]")));
    }
    if problems.is_empty() { Ok(made) } else { Err(problems) }
}
