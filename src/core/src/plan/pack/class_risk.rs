//! The loss of an interruption for pods of a class.

use crate::model::PlanOptions;
use crate::plan::pack::classes::PodClass;
use crate::supply::interruption_risk::at_risk;

/// Returns the loss of one interruption for a pod of this class and its bundled pods, in micro-dollars.
pub(crate) fn of_class(options: &PlanOptions, class: &PodClass<'_>) -> u64 {
    let with = class.with.iter().map(|pod| at_risk(options, &pod.spec));
    with.fold(at_risk(options, class.spec), u64::saturating_add)
}
