//! A section of a trace as a workload: each pod is a Job of its own, or a service.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use poolwright_catalog::ResourceName;
use poolwright_core::Lives;
use poolwright_sim::cluster::JobPlan;
use poolwright_sim::replay::kept_lives;
use poolwright_terms::keys::QUEUE_LABEL;
use poolwright_terms::labels;
use serde_json::{Value, json};

use super::work::{Names, Work};
use crate::args::{ReplayFlags, Span};
use crate::exit::Failure;
use crate::problems::Problems;
use crate::source;
use crate::trace::{GpuChoice, GpuMap, Times, TracePod, read_timed};

const NAMESPACE: &str = "default";

/// Reads the section that the flags select.
pub fn read(trace: &Path, flags: &ReplayFlags) -> Result<Result<Work, Problems>, Failure> {
    let map = match &flags.gpu_map {
        None => Ok(GpuMap::builtin()),
        Some(path) => {
            let map = source::file(path).map_err(Failure::bad_input)?;
            GpuMap::read(&map.name, &map.text)
        }
    };
    let list = source::file(trace).map_err(Failure::bad_input)?;
    Ok(map.and_then(|map| {
        let (pods, notes) = read_timed(&list.name, &list.text, &map)?;
        stretch(&list.name, &pods, notes, (flags.from.0, flags.length.0), &flags.services)
    }))
}

/// Returns the workload of a section of this length after an offset.
fn stretch(
    file: &str,
    pods: &[(TracePod, Times)],
    mut notes: Vec<String>,
    (from, length): (Duration, Duration),
    services: &[String],
) -> Result<Work, Problems> {
    if let Some(unknown) = services.iter().find(|class| pods.iter().all(|(pod, _)| !pod.is_of(class))) {
        let known: BTreeSet<&str> = pods.iter().map(|(pod, _)| pod.qos.as_str()).collect();
        let known: Vec<&str> = known.into_iter().filter(|class| !class.is_empty()).collect();
        let remedy = if known.is_empty() {
            "it has no column qos: remove --services".to_owned()
        } else {
            format!("use {}", known.join(", "))
        };
        return Err(Problems::one(format!(
            "{file}: no pod has the class `{unknown}` of --services; {remedy}"
        )));
    }
    let mut names = Names::default();
    let until = from.saturating_add(length);
    let mut jobs: Vec<JobPlan> = Vec::new();
    let (mut before, mut shares, mut kept_running) = (0, 0, 0);
    let mut earlier = Vec::new();
    for (pod, times) in pods {
        let is_there = times.created < from && times.deleted() > from;
        if times.deleted() <= from {
            earlier.push((pod, times));
        }
        if !is_there && !(from..until).contains(&times.created) {
            continue;
        }
        before += usize::from(is_there);
        shares += usize::from(pod.share.is_some());
        let is_service = services.iter().any(|class| pod.is_of(class));
        kept_running += usize::from(is_service);
        let (name, arrives) = (names.take(NAMESPACE, &pod.name), times.created.saturating_sub(from));
        jobs.push(JobPlan {
            namespace: NAMESPACE.to_owned(),
            labels: labels_of(pod),
            length: Some(times.length.min(times.deleted().saturating_sub(from))),
            ran_before: from.saturating_sub(times.began),
            kept: Some(Duration::ZERO),
            is_set: is_service,
            ..JobPlan::new(name, arrives, 1, spec(pod, is_service))
        });
    }
    if jobs.is_empty() {
        let first = pods.iter().map(|(_, times)| times.created).min().unwrap_or_default();
        let last = pods.iter().map(|(_, times)| times.deleted()).max().unwrap_or_default();
        return Err(Problems::one(format!(
            "{file}: no pod exists between {} and {}; the first starts at {} and the last ends at {}: change --from or --for",
            Span(from),
            Span(until),
            Span(first),
            Span(last)
        )));
    }
    notes.insert(
        0,
        format!(
            "played {} of the {} pods of the trace, from {} to {}; {before} of them ran before that and run for the rest of their time",
            jobs.len(),
            pods.len(),
            Span(from),
            Span(until),
        ),
    );
    match shares {
        0 => {}
        1 => notes.push("1 pod asks for a share of a GPU; it gets a whole GPU".to_owned()),
        _ => notes.push(format!("{shares} pods ask for a share of a GPU; each gets a whole GPU")),
    }
    if !services.is_empty() {
        notes.push(format!(
            "{} of class {}: services run until they are scaled to zero, and a moved one loses no work",
            if kept_running == 1 {
                "1 pod is a service".to_owned()
            } else {
                format!("{kept_running} pods are services")
            },
            services.join(", ")
        ));
    }
    jobs.sort_by_key(|job| job.arrives);
    let lives = history(&earlier, services);
    let objects = if lives.tables().is_empty() { Vec::new() } else { vec![kept_lives(&lives)] };
    Ok(Work { jobs, objects, lives, notes })
}

/// Returns the labels of a pod: its class of service in the trace stands for the queue that it waits in.
fn labels_of(pod: &TracePod) -> BTreeMap<String, String> {
    let queue = pod.qos.to_lowercase();
    if queue.is_empty() { BTreeMap::new() } else { BTreeMap::from([(QUEUE_LABEL.to_owned(), queue)]) }
}

/// Returns what a controller had learned before the section: the durations of the pods that ended before it.
fn history(earlier: &[(&TracePod, &Times)], services: &[String]) -> Lives {
    let mut lives = Lives::prior();
    for (pod, times) in earlier {
        let is_service = services.iter().any(|class| pod.is_of(class));
        let (group, kind) = if is_service { ("apps/v1", "ReplicaSet") } else { ("batch/v1", "Job") };
        let owner = json!([{"apiVersion": group, "kind": kind, "name": pod.name, "uid": pod.name,
            "controller": true}]);
        let object = json!({"metadata": {"name": pod.name, "namespace": NAMESPACE, "labels": labels_of(pod),
            "ownerReferences": owner}, "spec": spec(pod, is_service)});
        let Ok(object) = serde_json::from_value(object) else { continue };
        let Ok(model) = poolwright_intake::pod(&object) else { continue };
        let length = SignedDuration::try_from(times.length).unwrap_or_default();
        lives.observe(&model.duration.kinds, length, true, Timestamp::UNIX_EPOCH);
    }
    lives
}

/// Returns the `spec` of a pod of the trace.
fn spec(pod: &TracePod, is_service: bool) -> Value {
    let gpus = if pod.share.is_some() { 1 } else { pod.gpus };
    let mut requests =
        json!({"cpu": format!("{}m", pod.cpu_milli), "memory": format!("{}Mi", pod.memory_mib)});
    let mut limits = json!({});
    let mut spec = json!({"restartPolicy": if is_service { "Always" } else { "Never" },
        "terminationGracePeriodSeconds": 10});
    if gpus > 0 {
        requests[ResourceName::NVIDIA_GPU] = json!(gpus.to_string());
        limits[ResourceName::NVIDIA_GPU] = json!(gpus.to_string());
        // The admission plugin ExtendedResourceToleration adds this toleration in clusters with GPUs.
        spec["tolerations"] = json!([{"key": ResourceName::NVIDIA_GPU, "operator": "Exists"}]);
        if let GpuChoice::OneOf(models) = &pod.models {
            let models: Vec<String> = models.iter().map(ToString::to_string).collect();
            let rule = json!({"key": labels::GPU_MODEL, "operator": "In", "values": models});
            spec["affinity"] = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
                {"nodeSelectorTerms": [{"matchExpressions": [rule]}]}}});
        }
    }
    spec["containers"] = json!([{"name": "work", "image": "work",
        "resources": {"requests": requests, "limits": limits}}]);
    spec
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = "name,cpu_milli,memory_mib,num_gpu,creation_time,deletion_time,scheduled_time\n";

    fn work(rows: &str, from: u64, length: u64) -> Result<Work, String> {
        let (pods, notes) = read_timed("pods.csv", &format!("{HEADER}{rows}"), &GpuMap::builtin())
            .map_err(|problems| problems.to_string())?;
        let stretch_of = (Duration::from_secs(from), Duration::from_secs(length));
        stretch("pods.csv", &pods, notes, stretch_of, &[]).map_err(|problems| problems.to_string())
    }

    fn with_services(classes: &[&str]) -> Result<Work, String> {
        let rows = "web,1000,1024,0,100,500,200,LS\nbatch,1000,1024,0,100,500,200,BE\n";
        let header = HEADER.replace("scheduled_time\n", "scheduled_time,qos\n");
        let (pods, notes) = read_timed("pods.csv", &format!("{header}{rows}"), &GpuMap::builtin())
            .map_err(|e| e.to_string())?;
        let services: Vec<String> = classes.iter().map(|class| (*class).to_owned()).collect();
        let all = (Duration::ZERO, Duration::from_secs(1000));
        stretch("pods.csv", &pods, notes, all, &services).map_err(|problems| problems.to_string())
    }

    #[test]
    fn pods_of_the_classes_that_are_services_become_replica_sets() {
        let work = with_services(&["ls"]).unwrap();
        let kinds: Vec<(&str, bool)> = work.jobs.iter().map(|job| (job.name.as_str(), job.is_set)).collect();
        assert_eq!(kinds, [("web", true), ("batch", false)]);
        assert_eq!(work.jobs[0].spec["restartPolicy"], "Always");
        assert_eq!(
            times(&work),
            [("web", 100, 300), ("batch", 100, 300)],
            "both run as long as in the trace"
        );
    }

    #[test]
    fn a_class_that_no_pod_has_is_an_error_that_lists_the_classes() {
        let said = with_services(&["LS", "gold"]).err().unwrap();
        assert!(said.contains("no pod has the class `gold` of --services; use BE, LS"), "{said}");
    }

    fn times(work: &Work) -> Vec<(&str, u64, u64)> {
        let seconds = |job: &JobPlan| job.length.unwrap_or_default().as_secs();
        work.jobs.iter().map(|job| (job.name.as_str(), job.arrives.as_secs(), seconds(job))).collect()
    }

    #[test]
    fn a_pod_works_for_as_long_as_it_ran_in_the_trace_and_not_for_as_long_as_it_waited() {
        let work = work("a,1000,1024,0,100,500,200\nnever-ran,1000,1024,0,100,500,\n", 0, 1000).unwrap();
        assert_eq!(times(&work), [("a", 100, 300), ("never-ran", 100, 400)]);
    }

    #[test]
    fn pods_from_before_the_replayed_period_run_for_their_remaining_time() {
        let rows = "over,1,1,0,0,900,0\nthere,1,1,0,0,1500,0\nstarts,1,1,0,900,1500,1200\nlater,1,1,0,2000,2500,2000\n\
                    in,1,1,0,1999,3000,1999\n";
        let work = work(rows, 1000, 1000).unwrap();
        assert_eq!(times(&work), [("there", 0, 500), ("starts", 0, 300), ("in", 999, 1001)]);
    }

    #[test]
    fn a_stretch_without_pods_says_where_they_are() {
        let said = work("a,1,1,0,100,500,100\n", 86_400, 3600).unwrap_err();
        assert_eq!(
            said,
            "1 problem\n  pods.csv: no pod exists between 1d and 1d1h; the first starts at 1m40s and the last ends at \
             8m20s: change --from or --for"
        );
    }

    #[test]
    fn invalid_times_are_reported_with_line_and_column() {
        let rows = "a,1,1,0,-5,10,\nb,1,1,0,10,5,\nc,1,1,0,10,20,30\nd,1,1,0,10,20,5\ne,1,1,0,soon,,\n";
        let said = work(rows, 0, 10).unwrap_err();
        let order = "a pod is created, then scheduled, then deleted: correct the order";
        let number = "use a whole number, 0 or more";
        let expected = [
            format!("pods.csv:2:creation_time: \"-5\" is negative; {number}"),
            format!("pods.csv:3:deletion_time: 5 is before creation_time, which is 10; {order}"),
            format!("pods.csv:4:scheduled_time: 30 is after deletion_time, which is 20; {order}"),
            format!("pods.csv:5:scheduled_time: 5 is before creation_time, which is 10; {order}"),
            format!("pods.csv:6:creation_time: \"soon\" is not a whole number; {number}"),
            format!("pods.csv:6:deletion_time: the cell is empty; {number}"),
        ];
        assert_eq!(said, format!("6 problems\n  {}", expected.join("\n  ")));
    }
}
