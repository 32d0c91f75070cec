//! GPU layouts: assign the GPUs of a new node to its pods.

use std::collections::BTreeMap;

use poolwright_catalog::{InstanceType, MigModel};
use poolwright_solver::GpuLayout;

use crate::model::plan::{PlannedGpu, PlannedInstance, PlannedShare};
use crate::model::{Pod, PodKey};
use crate::plan::pack::classes::PodClasses;
use crate::rules::gpus::GpuNeed;

/// Assigns pods to the places of a layout. Pods of one class are interchangeable.
struct Places<'p, 'a> {
    pods: &'p BTreeMap<usize, Vec<&'a Pod>>,
    /// The number of assigned places, by class.
    taken: BTreeMap<usize, usize>,
}

impl Places<'_, '_> {
    /// Returns the pod that gets the next place of this class, if each pod has `each` places.
    fn next(&mut self, class: usize, each: u32) -> PodKey {
        let taken = self.taken.entry(class).or_default();
        let at = *taken / each.max(1) as usize;
        *taken += 1;
        self.pods
            .get(&class)
            .and_then(|pods| pods.get(at))
            .map_or_else(|| PodKey::new("", ""), |pod| pod.key.clone())
    }
}

/// Returns the layout of a node's GPUs with its pods. `class` maps the classes of the layout to those of the plan.
pub(crate) fn planned(
    gpus: &[GpuLayout],
    pods: &BTreeMap<usize, Vec<&Pod>>,
    classes: &PodClasses<'_>,
    class: impl Fn(u32) -> usize,
    kind: &InstanceType,
) -> Vec<PlannedGpu> {
    let model = kind.gpu.as_ref().and_then(MigModel::of);
    let mut places = Places { pods, taken: BTreeMap::new() };
    let each = |class: usize| match &classes.classes[class].gpu_need {
        Some(GpuNeed::Whole(count) | GpuNeed::Named { count, .. }) => *count,
        _ => 1,
    };
    gpus.iter()
        .map(|gpu| match gpu {
            GpuLayout::Idle => PlannedGpu::Idle,
            GpuLayout::Whole(of) => {
                let of = class(*of);
                PlannedGpu::Whole(places.next(of, each(of)))
            }
            GpuLayout::Shared(on) => PlannedGpu::Shared(
                on.iter()
                    .flat_map(|(of, count)| std::iter::repeat_n(class(*of), *count as usize))
                    .map(|of| {
                        let milli = match &classes.classes[of].gpu_need {
                            Some(GpuNeed::Share(milli)) => *milli,
                            _ => 0,
                        };
                        PlannedShare { pod: places.next(of, 1), milli }
                    })
                    .collect(),
            ),
            GpuLayout::Mig(instances) => PlannedGpu::Mig(
                instances
                    .iter()
                    .map(|instance| {
                        let of = class(instance.class);
                        // By the table of this board, where a name may stand for another profile.
                        let need = classes.classes[of].gpu_need.as_ref().map(|need| need.on_type(kind));
                        let profile = match need {
                            Some(GpuNeed::Named { profile, .. }) => profile,
                            _ => instance.profile,
                        };
                        let name = model.and_then(|model| model.kind(profile)).map_or("", |kind| kind.name);
                        PlannedInstance {
                            start: instance.start,
                            profile,
                            name: name.to_owned(),
                            pod: places.next(of, each(of)),
                        }
                    })
                    .collect(),
            ),
        })
        .collect()
}
