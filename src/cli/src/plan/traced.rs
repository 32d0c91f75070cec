//! The pods of a trace, which may use any offering of the catalogue.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use poolwright_core::{Pod, PodKey, Snapshot};
use poolwright_report::plan::CatalogueSummary;

use super::missing::Origin;
use super::narrowed::Uncut;
use super::{Input, Offers, PodNames, pool};
use crate::args::SharingMode;
use crate::exit::Failure;
use crate::node_classes::Known;
use crate::problems::Problems;
use crate::source;
use crate::trace::{self, GpuMap, TracePod};

/// Reads the trace and the map of its GPU models.
pub fn input(
    trace: &Path,
    gpu_map: Option<&Path>,
    sharing: SharingMode,
    offers: &Offers,
) -> Result<Input, Failure> {
    let map = match gpu_map {
        None => GpuMap::builtin(),
        Some(path) => {
            let map = source::file(path).map_err(Failure::bad_input)?;
            GpuMap::read(&map.name, &map.text).map_err(|problems| unusable("the GPU map", &problems))?
        }
    };
    let list = source::file(trace).map_err(Failure::bad_input)?;
    let trace::Trace { pods, mut notes } =
        trace::read(&list.name, &list.text, &map).map_err(|problems| unusable("the trace", &problems))?;
    let shares = pods.iter().filter(|pod| pod.share.is_some()).count();
    if shares > 0 {
        notes.insert(0, shared(shares, sharing));
    }
    let mut snapshot = Snapshot {
        pods: pods.into_iter().map(waiting).map(|pod| (pod.key.clone(), Arc::new(pod))).collect(),
        ..Snapshot::default()
    };
    let chosen = pool::without_pool(&mut snapshot, offers, &mut notes)?.catalogue;
    Ok(Input {
        snapshot,
        catalogue: CatalogueSummary::of(&chosen),
        notes,
        unread: Vec::new(),
        left_out: BTreeSet::new(),
        on_unknown_nodes: Vec::new(),
        refused: Vec::new(),
        polite: BTreeSet::new(),
        preempting: Vec::new(),
        names: PodNames::Bare,
        namespace: String::new(),
        include_waiting: true,
        lives_unread: None,
        makers_unread: None,
        told_of_pools: BTreeMap::new(),
        leadership: None,
        gangs: Vec::new(),
        time: None,
        uncut: Uncut { offers: offers.clone(), classes: Known::default(), strict: false },
        origin: Origin::Trace,
    })
}

/// Says how the plan treats shares of GPUs.
fn shared(shares: usize, sharing: SharingMode) -> String {
    let pods = if shares == 1 { "1 pod asks".to_owned() } else { format!("{shares} pods ask") };
    let become_of = match sharing {
        SharingMode::None => "each gets a whole GPU",
        SharingMode::TimeSlicing | SharingMode::Mps => {
            "the trace does not have their GPU memory, so only the shares are added up"
        }
        SharingMode::Mig => "each gets the smallest GPU instance with enough compute",
    };
    format!("{pods} for a share of a GPU; {become_of}")
}

fn unusable(what: &str, problems: &Problems) -> Failure {
    Failure::bad_input(format!("{what} cannot be used: {problems}"))
}

fn waiting(pod: TracePod) -> Pod {
    let spec = pod.spec();
    Pod::waiting(PodKey::new("", pod.name), spec)
}
