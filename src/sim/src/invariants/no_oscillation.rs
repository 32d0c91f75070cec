//! The controller does not buy the same node again and again.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use poolwright_core::{Cause, PodKey};

use super::{Memory, Scene, disruption_budgets};
use crate::cloud::Machine;

pub(super) const RULE: &str = "in each hour, at most this many instances are launched for a Job: its pods to place, times one plus the clock changes, deleted claims and moves for cost, plus its failed and expired nodes, plus four; for a gang, each of these nodes and each failed launch counts as all its pods";

const HOUR: Duration = Duration::from_hours(1);
/// Extra launches: pods may take each other's room, and a new plan may come before an old one is carried out.
const BESIDES: usize = 4;

/// The launches for one Job in the last hour, and the events that justify them.
#[derive(Debug, Default)]
pub(super) struct OfJob {
    /// The number of pods of the Job.
    to_come: usize,
    launched: VecDeque<Duration>,
    pods: VecDeque<Duration>,
    failed: VecDeque<Duration>,
    /// How often consolidation may have moved each pod: once for each start of a controller, which may have failed to store its
    /// moves.
    moves: usize,
    /// The number of pods that start together; 0 if each starts alone.
    gang: usize,
    /// The launches that failed for all their offerings in the last hour. The other nodes of a gang are terminated then.
    unlaunched: usize,
}

/// The memory of this rule.
#[derive(Debug, Default)]
pub(super) struct Seen {
    jobs: BTreeMap<String, OfJob>,
    machines: BTreeMap<String, BTreeSet<String>>,
    pods: BTreeSet<String>,
    failed: BTreeSet<String>,
    /// Expired claims.
    expired: BTreeSet<String>,
}

pub(super) fn check(scene: &Scene<'_>, memory: &mut Memory) -> Option<String> {
    let Seen { jobs, machines, pods, failed, expired } = &mut memory.launches;
    for pod in scene.cluster.view().pods.unbound() {
        if let Some(job) = pod.labels.get("job").filter(|_| pods.insert(pod.uid.0.clone())) {
            jobs.entry(job.clone()).or_default().pods.push_back(scene.now);
        }
    }
    for (key, machine) in scene.machines {
        if !machines.contains_key(key) {
            // A claim exists before its instance and is deleted after it.
            let claim = scene.cluster.claims.get(&machine.instance.claim);
            let planned = claim.map_or(&[][..], |claim| claim.spec.pods.as_slice());
            let of: BTreeSet<String> = planned.iter().filter_map(|pod| job_of(pod)).collect();
            for job in &of {
                jobs.entry(job.clone()).or_default().launched.push_back(scene.now);
            }
            machines.insert(key.clone(), of);
        }
        if has_failed(machine, scene.now) && failed.insert(key.clone()) {
            for job in &machines[key] {
                jobs.entry(job.clone()).or_default().failed.push_back(scene.now);
            }
        }
    }
    for claim in scene.cluster.claims.values() {
        let too_old = disruption_budgets::leaves(claim) == Some(Cause::Expired);
        let name = claim.metadata.name.clone().unwrap_or_default();
        if too_old && expired.insert(name.clone()) {
            let here = scene.cluster.view().pods.on_node(&name).into_iter().flat_map(|here| &here.pods);
            let here = here.filter_map(|pod| pod.labels.get("job").cloned());
            let of: BTreeSet<String> =
                here.chain(claim.spec.pods.iter().filter_map(|pod| job_of(pod))).collect();
            for job in of {
                jobs.entry(job).or_default().failed.push_back(scene.now);
            }
        }
    }
    let within = |at: &&Duration| scene.now.saturating_sub(**at) <= HOUR;
    let set = scene.calendars_set.iter().chain(scene.withdrawn).filter(within).count();
    let moved = scene.cluster.view().pools.values().any(|pool| pool.disruption.consolidates);
    let moves = if moved { scene.started.iter().filter(within).count().max(1) } else { 0 };
    let unlaunched = scene.cluster.cloud.failed_launches().iter().filter(within).count();
    jobs.iter_mut().find_map(|(name, job)| {
        (job.moves, job.unlaunched) = (moves, unlaunched);
        let plan = scene.plan_of(name);
        // Nodes are also bought for expected pods: up to the limits of the pools, if an object asks for more pods than these hold.
        job.to_come = plan.map_or(0, |plan| match plan.asks {
            Some(_) => most_nodes(scene).saturating_mul(job.pods.len().max(1)),
            None => plan.pods as usize,
        });
        job.gang = plan.filter(|plan| plan.gang.is_some()).map_or(0, |plan| plan.pods as usize);
        job.beyond(name, set, scene.now)
    })
}

/// Returns the number of nodes that the limits of all pools allow.
fn most_nodes(scene: &Scene<'_>) -> usize {
    let pools = scene.cluster.view().pools.values().filter(|pool| pool.replicas.is_none());
    let nodes = pools.map(|pool| pool.limits.nodes.unwrap_or(u64::MAX)).fold(0, u64::saturating_add);
    usize::try_from(nodes).unwrap_or(usize::MAX)
}

impl OfJob {
    /// Returns the violation if more instances were launched than justified. A calendar jump can make all running deadlines look
    /// overdue.
    fn beyond(&mut self, name: &str, calendars_set: usize, now: Duration) -> Option<String> {
        for times in [&mut self.launched, &mut self.pods, &mut self.failed] {
            while times.front().is_some_and(|at| now.saturating_sub(*at) > HOUR) {
                times.pop_front();
            }
        }
        let (launched, pods, failed) =
            (self.launched.len(), self.pods.len().max(self.to_come), self.failed.len());
        let again = if self.gang == 0 { failed } else { failed.saturating_add(self.unlaunched) * self.gang };
        let most = pods.saturating_mul(1 + calendars_set + self.moves).saturating_add(again + BESIDES);
        (launched > most)
            .then(|| format!("{launched} instances for {name} of {pods} pods, {failed} of them failed"))
    }
}

/// Returns whether the cloud broke the machine, which justifies a replacement.
fn has_failed(machine: &Machine, now: Duration) -> bool {
    let told = machine.notice.is_some_and(|(at, _)| at <= now)
        || machine.reserved_until.is_some_and(|(at, _)| at <= now);
    machine.joins.is_none() || machine.lacks > 0 || told || machine.dies.is_some_and(|dies| dies <= now)
}

/// Returns the Job of a planned pod: `default/job-3-0-1`, or `default/Job:job-3#0` for an expected pod.
pub(super) fn job_of(planned: &str) -> Option<String> {
    match planned.parse().ok()? {
        PodKey::Existing(pod) => Some(pod.name.rsplitn(3, '-').nth(2)?.to_owned()),
        PodKey::Expected { owner, .. } => Some(owner.name.clone()),
        PodKey::Buffer { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pods_that_are_there_and_pods_to_come_are_of_their_job() {
        assert_eq!(job_of("default/job-3-0-12").as_deref(), Some("job-3"));
        assert_eq!(job_of("default/Job:job-3#0").as_deref(), Some("job-3"));
        assert_eq!(job_of("job-3"), None);
    }

    #[test]
    fn launches_beyond_pods_and_failures_are_seen_for_an_hour() {
        let at = |minute: u64| Duration::from_mins(minute);
        let mut job = OfJob::default();
        job.pods.extend([at(0), at(0)]);
        job.launched.extend((0..7).map(at));
        assert!(job.beyond("job-1", 0, at(6)).is_some_and(|seen| seen.contains("7 instances")));
        assert_eq!(job.beyond("job-1", 1, at(6)), None);
        job.to_come = 3;
        assert_eq!(job.beyond("job-1", 0, at(6)), None);
        job.to_come = 2;
        job.failed.push_back(at(5));
        assert_eq!(job.beyond("job-1", 0, at(6)), None);
        job.launched.extend([at(58), at(58), at(58)]);
        job.moves = 2;
        assert_eq!(job.beyond("job-1", 0, at(59)), None);
        job.moves = 0;
        assert!(job.beyond("job-1", 0, at(59)).is_some());
        // Launches and their justifications count for one hour.
        assert_eq!(job.beyond("job-1", 0, at(70)), None);
    }

    #[test]
    fn a_gang_may_be_bought_again_after_a_node_or_a_launch_of_it_failed() {
        let at = |minute: u64| Duration::from_mins(minute);
        let mut job = OfJob { gang: 3, ..OfJob::default() };
        job.pods.extend([at(0), at(0), at(0)]);
        job.launched.extend((0..10).map(at));
        assert!(job.beyond("job-1", 0, at(10)).is_some());
        job.unlaunched = 1;
        assert_eq!(job.beyond("job-1", 0, at(10)), None);
        job.launched.push_back(at(10));
        assert!(job.beyond("job-1", 0, at(10)).is_some());
        job.failed.push_back(at(9));
        assert_eq!(job.beyond("job-1", 0, at(10)), None);
    }
}
