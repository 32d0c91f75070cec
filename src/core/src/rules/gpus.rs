//! Shared and partitioned GPUs: the requests of pods, and the setup of the GPUs of new nodes.

use std::collections::BTreeSet;

use poolwright_catalog::{Gpu, InstanceType, MigGeometry, MigModel, MigProfile, ResourceList, ResourceName};
use poolwright_solver::problem::{GPU_UNITS, GpuMode, GpuRequest, GpuState, Gpus};

use poolwright_terms::labels::{MIG_CONFIG, MIG_DISABLED};

use crate::model::{PodSpec, Pool, Sharing};

/// The most GPUs of a node that are used.
const MOST_GPUS: usize = 64;

/// A pod's request for GPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum GpuNeed {
    /// A number of whole GPUs.
    Whole(u32),
    /// A share of one GPU, in thousandths.
    Share(u32),
    /// A MIG instance with at least this share of a GPU's compute.
    Part { milli: u32, profile: MigProfile },
    /// A number of MIG instances, requested by resource name.
    Named { resource: ResourceName, profile: MigProfile, count: u32 },
    /// A request that no new node can satisfy, with the reason.
    Impossible(String),
}

impl GpuNeed {
    /// Returns the request in the solver's form; `None` if impossible.
    pub fn request(&self) -> Option<GpuRequest> {
        match self {
            Self::Whole(count) => Some(GpuRequest::Whole(*count)),
            Self::Share(units) => Some(GpuRequest::Share { units: *units, memory_mib: 0 }),
            Self::Part { profile, .. } => Some(GpuRequest::Mig { profile: *profile, count: 1 }),
            Self::Named { profile, count, .. } => Some(GpuRequest::Mig { profile: *profile, count: *count }),
            Self::Impossible(_) => None,
        }
    }

    /// Returns the request as GPUs of this instance type would serve it: a name may stand for another instance there.
    pub fn on_type(&self, kind: &InstanceType) -> Self {
        match (self, kind.gpu.as_ref().and_then(MigModel::of)) {
            (Self::Named { resource, count, .. }, Some(model)) => {
                named(resource, u64::from(*count), &[model])
            }
            _ => self.clone(),
        }
    }

    /// Says what a node lacks that cannot serve the request.
    pub fn lacking(&self) -> String {
        match self {
            Self::Whole(count) => format!("less than {count} nvidia.com/gpu"),
            Self::Share(_) => "no GPU that pods can share".to_owned(),
            Self::Part { milli, .. } => format!("no GPU that can be cut into parts of {milli} thousandths"),
            Self::Named { resource, count, .. } => {
                format!("no GPUs that can be cut into {count} x {resource}")
            }
            Self::Impossible(cause) => cause.clone(),
        }
    }
}

/// Returns a pod's requests without GPUs that may be shared or partitioned, and separately its request for such GPUs.
///
/// `models` are the GPU models that support MIG, those on offer first.
pub(crate) fn wanted(
    sharing: Sharing,
    models: &[&MigModel],
    spec: &PodSpec,
) -> (ResourceList, Option<GpuNeed>) {
    let mut rest = spec.requests.clone();
    let whole = rest.get(ResourceName::NVIDIA_GPU);
    let instances: Vec<(ResourceName, u64)> = rest
        .iter()
        .filter(|(name, _)| name.as_str().starts_with(ResourceName::MIG_PREFIX))
        .map(|(name, count)| (name.clone(), count))
        .collect();
    let mixed = matches!(sharing, Sharing::Mig { mixed: true });
    match sharing {
        Sharing::Whole => {
            if spec.gpu_share.is_some() {
                rest.set(ResourceName::NVIDIA_GPU, whole.saturating_add(1));
            }
            return (rest, None);
        }
        Sharing::Shared | Sharing::Mig { mixed: true } => rest.set(ResourceName::NVIDIA_GPU, 0),
        Sharing::Mig { mixed: false } => {}
    }
    let needs = usize::from(whole > 0) + usize::from(spec.gpu_share.is_some()) + instances.len();
    if needs > 1 {
        let cause = "asks for GPUs in more than one way (whole GPUs, a share, or MIG instances of several kinds), and Poolwright plans only \
                     one of these for a pod";
        return (rest, Some(GpuNeed::Impossible(cause.to_owned())));
    }
    let too_many = |count: u64| GpuNeed::Impossible(format!("asks for {count} GPUs"));
    let need = match (sharing, spec.gpu_share, instances.first()) {
        (Sharing::Shared, Some(milli), _) => Some(GpuNeed::Share(milli.clamp(1, GPU_UNITS))),
        (Sharing::Mig { .. }, Some(milli), _) => Some(part(milli, models)),
        (Sharing::Mig { .. }, _, Some((resource, count))) => {
            rest.set(resource.clone(), 0);
            Some(named(resource, *count, models))
        }
        _ if whole > 0 && (mixed || sharing == Sharing::Shared) => {
            Some(u32::try_from(whole).map_or_else(|_| too_many(whole), GpuNeed::Whole))
        }
        _ => None,
    };
    (rest, need)
}

/// Returns why nodes of a pool, which may be of these types, would never open: a label of its template makes NVIDIA's GPU operator cut
/// their GPUs, and the catalogue promises whole ones. Nodes of static pools are bought for whole GPUs even if others may be cut.
pub(crate) fn cut_by_label<'k>(
    sharing: Sharing,
    pool: &Pool,
    mut kinds: impl Iterator<Item = &'k InstanceType>,
) -> Option<String> {
    let config = pool.labels.get(MIG_CONFIG).filter(|config| config.as_str() != MIG_DISABLED)?;
    if matches!(sharing, Sharing::Mig { .. }) && pool.replicas.is_none() {
        return None;
    }
    let is_cut = |kind: &&InstanceType| {
        kind.gpu.as_ref().is_some_and(|gpu| {
            let promised = kind.allocatable.get(ResourceName::NVIDIA_GPU);
            MigModel::of(gpu).is_some() && promised == u64::from(gpu.count)
        })
    };
    let kind = kinds.find(is_cut)?;
    Some(format!(
        "its template has the label `{MIG_CONFIG}: {config}`, with which NVIDIA's GPU operator cuts the GPUs of {}, but Poolwright buys \
         nodes for whole GPUs, so such a node would never open; remove the label",
        kind.name
    ))
}

/// What is said of a node whose GPUs seem to be shared.
pub(crate) const SHARES_GPUS: &str = "Most likely its device plugin shares GPUs (time slicing, MPS or MIG), and Poolwright buys nodes for \
                                      whole GPUs; turn this off for the nodes of this pool";

/// Returns whether a node seems to share GPUs that were promised whole: it advertises parts of them, or each of them several times.
pub(crate) fn are_shared(promised: &ResourceList, advertised: &ResourceList) -> bool {
    let gpu = ResourceName::NVIDIA_GPU;
    let (whole, there) = (promised.get(gpu), advertised.get(gpu));
    let is_part = |name: &ResourceName| {
        name.as_str() == ResourceName::NVIDIA_GPU_SHARED
            || name.as_str().starts_with(ResourceName::MIG_PREFIX)
    };
    let has_parts = advertised.iter().any(|(name, amount)| amount > 0 && is_part(name));
    whole > 0 && there != whole && (has_parts || there > 0 && there.is_multiple_of(whole))
}

/// Returns the MIG profile in a resource's name.
fn profile_of(resource: &ResourceName) -> Option<MigProfile> {
    match resource.as_str().strip_prefix(ResourceName::MIG_PREFIX)?.split_once('.')?.0 {
        "1g" => Some(MigProfile::G1),
        "2g" => Some(MigProfile::G2),
        "3g" => Some(MigProfile::G3),
        "4g" => Some(MigProfile::G4),
        "7g" => Some(MigProfile::G7),
        _ => None,
    }
}

/// Returns the free GPUs of an existing node. Pods get only whole GPUs there.
pub(crate) fn free(room: &ResourceList) -> Vec<GpuState> {
    let idle = GpuState::Shared { units_used: 0, memory_used_mib: 0, memory_mib: 0 };
    vec![idle; usize::try_from(room.get(ResourceName::NVIDIA_GPU)).unwrap_or(0).min(MOST_GPUS)]
}

/// Returns the smallest MIG instance with this share of compute, by the GPU family on offer with the most slices. Other families
/// are used if the profile has as much compute there.
fn part(milli: u32, models: &[&MigModel]) -> GpuNeed {
    let families: BTreeSet<MigGeometry> = models.iter().map(|model| model.geometry).collect();
    match families.first().map(|family| family.smallest(milli)) {
        Some(Some(profile)) => GpuNeed::Part { milli, profile },
        Some(None) => GpuNeed::Impossible(format!("asks for {milli} thousandths of one GPU")),
        None => GpuNeed::Impossible("asks for a share of a GPU, and no GPU on offer can be cut".to_owned()),
    }
}

/// Returns the MIG instance that a resource name requests. The meaning of a profile name depends on the board: `1g.10gb` is the
/// smallest instance of one A100 and the second smallest of another. The first model that has the name decides. The others serve the
/// request, too ([`GpuForm::Paired`]).
fn named(resource: &ResourceName, count: u64, models: &[&MigModel]) -> GpuNeed {
    let profile = models
        .iter()
        .flat_map(|model| model.kinds.iter().map(move |kind| (kind.profile, model.resource(kind.profile))))
        .find(|(_, name)| name.as_deref() == Some(resource.as_str()))
        .map(|(profile, _)| profile);
    match (profile, u32::try_from(count)) {
        (Some(profile), Ok(count)) => GpuNeed::Named { resource: resource.clone(), profile, count },
        (None, _) if has_media_extensions(resource) => GpuNeed::Impossible(format!(
            "asks for {resource}, and Poolwright plans no MIG instances with media extensions"
        )),
        (None, _) => GpuNeed::Impossible(format!(
            "asks for {resource}, and no GPU on offer can be cut into such instances"
        )),
        (_, Err(_)) => GpuNeed::Impossible(format!("asks for {count} {resource}")),
    }
}

/// Returns whether the name is that of a profile such as `1g.10gb+me`, which NVIDIA's device plugin writes as `mig-1g.10gb.me`.
fn has_media_extensions(resource: &ResourceName) -> bool {
    resource.as_str().split('.').any(|part| part == "me")
}

/// Returns the number of GPUs that a pod requests, in thousandths.
pub(crate) fn gpu_milli(spec: &PodSpec) -> u64 {
    let whole = spec.requests.get(ResourceName::NVIDIA_GPU).saturating_mul(1000);
    let cut = cut_milli(MigGeometry::Seven, &spec.requests);
    whole.saturating_add(cut).saturating_add(spec.gpu_share.unwrap_or(0).into())
}

/// Returns how much of GPUs that are cut in this way the MIG instances of a request have, in thousandths of a GPU, by their compute.
pub(crate) fn cut_milli(geometry: MigGeometry, requests: &ResourceList) -> u64 {
    let cut = requests.iter().map(|(name, count)| {
        let of = profile_of(name).and_then(|profile| geometry.placements(profile));
        let compute = of.map_or(0, |one| u64::from(one.compute));
        count.saturating_mul(1000).saturating_mul(compute) / u64::from(geometry.compute_slices())
    });
    cut.sum()
}

/// The GPUs of a node's machine, and how often the node advertises them. Nodes of which nothing is known advertise each GPU once.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct AdvertisedGpus {
    machine: u64,
    /// As `nvidia.com/gpu`.
    plain: u64,
    /// As `nvidia.com/gpu.shared`.
    shared: u64,
}

impl AdvertisedGpus {
    /// Compares the resources of a machine with those that its node advertises.
    pub fn new(machine: &ResourceList, advertised: &ResourceList) -> Self {
        let gpu = ResourceName::NVIDIA_GPU;
        let shared = advertised.get(ResourceName::NVIDIA_GPU_SHARED);
        Self { machine: machine.get(gpu), plain: advertised.get(gpu), shared }
    }

    /// Returns how much of the machine's GPUs a pod uses there, in thousandths of a GPU. If each GPU is advertised four times, a pod
    /// that requests one uses a quarter.
    pub fn milli(self, spec: &PodSpec) -> u64 {
        let part = |wanted: u64, gpus: u64, advertised: u64| {
            let milli = (u128::from(wanted) * 1000).saturating_mul(gpus.into());
            milli.checked_div(advertised.into()).map_or(0, |milli| u64::try_from(milli).unwrap_or(u64::MAX))
        };
        let plain = spec.requests.get(ResourceName::NVIDIA_GPU);
        let rest = gpu_milli(spec).saturating_sub(plain.saturating_mul(1000));
        let plain = if self.machine > 0 && self.plain > self.machine {
            part(plain, self.machine, self.plain)
        } else {
            plain.saturating_mul(1000)
        };
        // GPUs that are advertised under the other name are not among the plain ones.
        let shared = spec.requests.get(ResourceName::NVIDIA_GPU_SHARED);
        let shared = part(shared, self.machine.saturating_sub(self.plain), self.shared);
        plain.saturating_add(shared).saturating_add(rest)
    }
}

/// Returns whether GPUs of an instance type can be cut into the MIG instances that a resource name requests.
pub(crate) fn can_be_cut_into(kind: &InstanceType, resource: &ResourceName) -> bool {
    kind.gpu.as_ref().and_then(MigModel::of).is_some_and(|model| {
        let mut names = model.kinds.iter().filter_map(|kind| model.resource(kind.profile));
        names.any(|known| known == resource.as_str())
    })
}

/// How near the GPUs of an instance type come to those that a pod asks for. The nearest is first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum GpuMatch {
    /// It has them, or the pod asks for none.
    Enough,
    /// It has too few GPUs, or its GPUs cannot be cut into such instances.
    Other,
    /// It has no GPUs.
    Missing,
}

impl GpuMatch {
    /// Compares an instance type with what a pod asks for, however GPUs are shared or cut.
    pub fn of(kind: &InstanceType, spec: &PodSpec) -> Self {
        let whole = spec.requests.get(ResourceName::NVIDIA_GPU);
        let whole = whole.saturating_add(u64::from(spec.gpu_share.is_some()));
        let names = spec.requests.iter().map(|(name, _)| name);
        let instances: Vec<&ResourceName> =
            names.filter(|name| name.as_str().starts_with(ResourceName::MIG_PREFIX)).collect();
        if whole == 0 && instances.is_empty() {
            return Self::Enough;
        }
        let Some(gpu) = &kind.gpu else { return Self::Missing };
        if whole <= u64::from(gpu.count) && instances.iter().all(|name| can_be_cut_into(kind, name)) {
            Self::Enough
        } else {
            Self::Other
        }
    }
}

/// The setup of the GPUs of a new node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum GpuForm {
    /// Only whole GPUs.
    Whole,
    /// Shared GPUs.
    Shared,
    /// Partitioned GPUs (MIG).
    Partitioned,
    /// Partitioned GPUs, whose instances of one compute slice all have the memory of two. They serve pods that name such an instance as
    /// larger GPUs name their smallest one.
    Paired,
}

impl GpuForm {
    /// Returns the possible forms for this instance type; never empty.
    pub fn all(sharing: Sharing, kind: &InstanceType) -> &'static [Self] {
        let Some(gpu) = &kind.gpu else { return &[Self::Whole] };
        match (sharing, MigModel::of(gpu)) {
            (Sharing::Whole, _) | (Sharing::Mig { mixed: false }, None) => &[Self::Whole],
            (Sharing::Shared, _) | (Sharing::Mig { mixed: true }, None) => &[Self::Shared],
            (Sharing::Mig { mixed }, Some(model)) => match (mixed, model.is_double_named_as_a_smallest()) {
                (true, false) => &[Self::Partitioned],
                (true, true) => &[Self::Partitioned, Self::Paired],
                (false, false) => &[Self::Whole, Self::Partitioned],
                (false, true) => &[Self::Whole, Self::Partitioned, Self::Paired],
            },
        }
    }

    /// Returns a suffix for the names of candidates with this setup.
    pub fn words(self) -> &'static str {
        match self {
            Self::Whole => "",
            Self::Shared => ", GPUs shared",
            Self::Partitioned | Self::Paired => ", GPUs cut",
        }
    }

    /// Returns the node's GPUs in the solver's form.
    pub fn gpus(self, sharing: Sharing, kind: &InstanceType) -> Option<Gpus> {
        let gpu = kind.gpu.as_ref()?;
        let mixed = matches!(sharing, Sharing::Mig { mixed: true });
        let mode = match self {
            Self::Whole => return None,
            Self::Shared => GpuMode::Shared,
            Self::Partitioned => GpuMode::Mig { geometry: MigModel::of(gpu)?.geometry, mixed },
            Self::Paired => GpuMode::Mig { geometry: MigGeometry::SevenInPairs, mixed },
        };
        Some(Gpus { count: gpu.count, memory_mib: gpu.memory_mib.unwrap_or(0), mode })
    }

    /// Returns the node's capacity without shared or partitioned GPUs.
    pub fn room(self, capacity: &ResourceList) -> ResourceList {
        let mut room = capacity.clone();
        if self != Self::Whole {
            room.set(ResourceName::NVIDIA_GPU, 0);
        }
        room
    }

    /// Returns whether the GPUs of an empty node of this form satisfy a request.
    pub fn grants(self, sharing: Sharing, kind: &InstanceType, need: Option<&GpuNeed>) -> bool {
        let Some(need) = need else { return true };
        let Some(gpu) = &kind.gpu else { return false };
        let whole_too = self == Self::Shared || matches!(sharing, Sharing::Mig { mixed: true });
        match need {
            GpuNeed::Whole(count) => whole_too && self != Self::Whole && *count <= gpu.count,
            GpuNeed::Share(_) => self == Self::Shared && sharing == Sharing::Shared,
            GpuNeed::Part { milli, profile } => {
                self == Self::Partitioned
                    && MigModel::of(gpu).is_some_and(|model| model.geometry.computes(*profile, *milli))
            }
            GpuNeed::Named { resource, profile, count } => {
                self.on_board(*profile).is_some_and(|profile| has(gpu, resource, profile, *count))
            }
            GpuNeed::Impossible(_) => false,
        }
    }

    /// Returns the profile in the table of the board for one of the solver; `None` if GPUs of this form are not cut into it.
    fn on_board(self, profile: MigProfile) -> Option<MigProfile> {
        match (self, profile) {
            (Self::Whole | Self::Shared, _) | (Self::Paired, MigProfile::G1Double) => None,
            (Self::Paired, MigProfile::G1) => Some(MigProfile::G1Double),
            (Self::Partitioned | Self::Paired, profile) => Some(profile),
        }
    }
}

fn has(gpu: &Gpu, resource: &ResourceName, profile: MigProfile, count: u32) -> bool {
    MigModel::of(gpu).is_some_and(|model| {
        let each = model.geometry.placements(profile).map_or(0, |placements| u32::from(placements.most));
        model.resource(profile).as_deref() == Some(resource.as_str())
            && count <= gpu.count.saturating_mul(each)
    })
}
