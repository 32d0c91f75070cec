//! What interruptions of spot nodes are expected to cost for the pods of a class.

use crate::model::PlanOptions;
use crate::plan::pack::classes::PodClass;
use crate::supply::interruption_risk::at_risk;

/// What one interruption loses of a pod of this class, and of those that share its node for its sake, in micro-dollars.
pub(crate) fn of_class(options: &PlanOptions, class: &PodClass<'_>) -> u64 {
    let with = class.with.iter().map(|pod| at_risk(options, &pod.spec));
    with.fold(at_risk(options, class.spec), u64::saturating_add)
}
