//! Explanations of remaining life: how much longer a pod is expected to run, and why.

use jiff::Timestamp;

use crate::model::{Known, LifeSource, PodKey, PodPhase, PodRole, Snapshot, about};

/// Returns how long a pod is expected to run, with the source of this expectation; `None` if nothing is known about durations, or
/// if the pod has no remaining life, such as a finished one.
pub fn life(snapshot: &Snapshot, now: Timestamp, key: &PodKey) -> Option<String> {
    let pod = snapshot.pods.get(key)?;
    let lives = pod.role == PodRole::Workload && !matches!(pod.phase, PodPhase::Finished);
    if snapshot.lives.is_blank() || !lives {
        return None;
    }
    let Known { life, source } = snapshot.lives.of(pod, now);
    let another = if matches!(pod.phase, PodPhase::Bound { .. }) { "another " } else { "" };
    let time = match life.median() {
        _ if source == LifeSource::Service => "on".to_owned(),
        Some(median) => format!("for {another}{} (the median)", about(median)),
        None => "for weeks or longer".to_owned(),
    };
    let deadline = pod.duration.deadline.map(|deadline| {
        format!("; `activeDeadlineSeconds` ends it {} after its start at the latest", about(deadline))
    });
    Some(format!("It is expected to run {time}: {source}{}.", deadline.unwrap_or_default()))
}
