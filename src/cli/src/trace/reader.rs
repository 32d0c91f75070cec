//! Reads a pod list.

use std::collections::BTreeMap;
use std::time::Duration;

use super::gpu_map::{GpuChoice, GpuMap};
use super::table::{Column, Row, read as read_table};
use crate::problems::Problems;

const NAME: &str = "name";
const CPU: &str = "cpu_milli";
const MEMORY: &str = "memory_mib";
const GPUS: &str = "num_gpu";
const GPU_MILLI: &str = "gpu_milli";
const GPU_SPEC: &str = "gpu_spec";
const QOS: &str = "qos";

const CREATED: &str = "creation_time";
const SCHEDULED: &str = "scheduled_time";
const DELETED: &str = "deletion_time";

const COLUMNS: [Column; 7] = [
    Column { name: NAME, required: true },
    Column { name: CPU, required: true },
    Column { name: MEMORY, required: true },
    Column { name: GPUS, required: true },
    Column { name: GPU_MILLI, required: false },
    Column { name: GPU_SPEC, required: false },
    Column { name: QOS, required: false },
];

const TIMED_COLUMNS: [Column; 10] = [
    COLUMNS[0],
    COLUMNS[1],
    COLUMNS[2],
    COLUMNS[3],
    COLUMNS[4],
    COLUMNS[5],
    COLUMNS[6],
    Column { name: CREATED, required: true },
    Column { name: SCHEDULED, required: false },
    Column { name: DELETED, required: true },
];

/// A thousand years in seconds. A larger number has another unit, such as milliseconds.
const LATEST: u64 = 1000 * 366 * 86_400;

/// The largest quantity. Kubernetes holds quantities in 63 bits, and CPU in thousandths.
const MOST: u64 = i64::MAX as u64;

/// A pod of the trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TracePod {
    /// Its name, unique in the list.
    pub name: String,
    /// The CPU request, in thousandths of a core.
    pub cpu_milli: u64,
    /// The memory request in MiB.
    pub memory_mib: u64,
    /// The number of whole GPUs.
    pub gpus: u64,
    /// The share of one GPU, in thousandths, for a pod without whole GPUs.
    pub share: Option<u32>,
    /// The models that its GPUs may have.
    pub models: GpuChoice,
    /// Its class of service in the trace, such as `LS` (latency-sensitive) or `BE` (best effort); may be empty.
    pub qos: String,
}

impl TracePod {
    /// Returns whether it is of this class of service. Case does not count.
    pub fn is_of(&self, class: &str) -> bool {
        self.qos.eq_ignore_ascii_case(class)
    }
}

/// The times of a pod in the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// The time of its creation, since the beginning of the trace.
    pub created: Duration,
    /// The time of its start, since the beginning of the trace. For a pod that never ran, the time of its creation.
    pub began: Duration,
    /// The duration of its run. For a pod that never ran, the time that it existed.
    pub length: Duration,
}

impl Times {
    /// Returns the time of its deletion, since the beginning of the trace.
    pub fn deleted(&self) -> Duration {
        self.began + self.length
    }
}

/// A pod list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// The pods, in the order of the file.
    pub pods: Vec<TracePod>,
    /// Notes on how the list was understood.
    pub notes: Vec<String>,
}

/// Reads a pod list from its text. `file` is its name in messages.
///
/// # Errors
///
/// All problems of the list, in the order of its lines.
pub fn read(file: &str, text: &str, map: &GpuMap) -> Result<Trace, Problems> {
    let (pods, notes) = read_rows((file, text), &COLUMNS, |row, problems| pod(row, map, problems))?;
    Ok(Trace { pods, notes })
}

/// Pods with their times, and notes about the list.
pub type Timed = (Vec<(TracePod, Times)>, Vec<String>);

/// Reads a pod list with the times of its pods.
///
/// # Errors
///
/// All problems of the list, in the order of its lines.
pub fn read_timed(file: &str, text: &str, map: &GpuMap) -> Result<Timed, Problems> {
    read_rows((file, text), &TIMED_COLUMNS, |row, problems| {
        let (pod, times) = (pod(row, map, problems), times(row, problems));
        Some((pod?, times?))
    })
}

/// Converts the rows with `each`. Also returns notes about the list.
fn read_rows<T>(
    (file, text): (&str, &str),
    columns: &[Column],
    each: impl Fn(&Row<'_>, &mut Problems) -> Option<T>,
) -> Result<(Vec<T>, Vec<String>), Problems> {
    let mut problems = Problems::new();
    let mut rows = Vec::new();
    let mut asks_for_gpus = false;
    let mut lines: BTreeMap<String, u64> = BTreeMap::new();
    let absent = read_table(file, text, columns, &mut problems, |row, problems| {
        if let Some(name) = row.cell(NAME).filter(|name| !name.is_empty()) {
            if let Some(first) = lines.get(name) {
                let cause = format!("\"{name}\" is already listed at line {first}");
                row.problem(problems, NAME, cause, "give every pod a name of its own");
            } else {
                lines.insert(name.to_owned(), row.line);
            }
        } else {
            row.problem(problems, NAME, "the cell is empty".to_owned(), "give every pod a name of its own");
        }
        rows.extend(each(row, problems));
        asks_for_gpus |= row.cell(GPUS).is_some_and(|gpus| gpus != "0");
    });
    let mut notes = Vec::new();
    if absent.contains(&GPU_SPEC) && asks_for_gpus {
        notes.push(format!("{file} has no column {GPU_SPEC}: pods with GPUs may run on any model"));
    }
    problems.or((rows, notes))
}

/// Reads the times of a row; `None` if they have a problem.
fn times(row: &Row<'_>, problems: &mut Problems) -> Option<Times> {
    let created = row.number(problems, CREATED, LATEST);
    let deleted = row.number(problems, DELETED, LATEST);
    let scheduled = match row.cell(SCHEDULED) {
        None | Some("") => Some(None),
        Some(_) => row.number(problems, SCHEDULED, LATEST).map(Some),
    };
    let (created, deleted, scheduled) = (created?, deleted?, scheduled?);
    let mut is_right = true;
    let mut wrong = |column: &str, cause: String| {
        row.problem(
            problems,
            column,
            cause,
            "a pod is created, then scheduled, then deleted: correct the order",
        );
        is_right = false;
    };
    if deleted < created {
        wrong(DELETED, format!("{deleted} is before {CREATED}, which is {created}"));
    }
    if let Some(at) = scheduled.filter(|at| *at < created) {
        wrong(SCHEDULED, format!("{at} is before {CREATED}, which is {created}"));
    }
    if let Some(at) = scheduled.filter(|at| *at > deleted && deleted >= created) {
        wrong(SCHEDULED, format!("{at} is after {DELETED}, which is {deleted}"));
    }
    let begin = scheduled.unwrap_or(created);
    is_right.then(|| Times {
        created: Duration::from_secs(created),
        began: Duration::from_secs(begin),
        length: Duration::from_secs(deleted - begin),
    })
}

/// Reads the pod of a row; `None` if the row has a problem.
fn pod(row: &Row<'_>, map: &GpuMap, problems: &mut Problems) -> Option<TracePod> {
    // All cells are read before the first `?`, so that all their problems are found.
    let cpu_milli = row.number(problems, CPU, MOST);
    let memory_mib = row.number(problems, MEMORY, MOST >> 20);
    let gpus = row.number(problems, GPUS, u32::MAX.into());
    let gpu_milli = match row.cell(GPU_MILLI) {
        None | Some("") => Some(None),
        Some(_) => row.number(problems, GPU_MILLI, 1000).map(Some),
    };
    if let (Some(0), Some(Some(share @ 1..))) = (gpus, gpu_milli) {
        let cause = format!("{share} thousandths of a GPU, but {GPUS} is 0");
        row.problem(
            problems,
            GPU_MILLI,
            cause,
            format!("set {GPUS} to 1 for a share of one GPU, or this to 0"),
        );
        return None;
    }
    let spec = row.cell(GPU_SPEC).unwrap_or_default();
    let models = match map.choice(spec) {
        _ if gpus == Some(0) => Some(GpuChoice::Any),
        Ok(choice) => Some(choice),
        Err(missing) => {
            let cause = format!("no GPU models are known for \"{}\"", missing.join("\", \""));
            row.problem(problems, GPU_SPEC, cause, map.remedy());
            None
        }
    };
    let gpus = gpus?;
    // A share is a part of one GPU. A row with another number of GPUs has no share.
    let share = gpu_milli?.filter(|milli| gpus == 1 && (1..1000).contains(milli));
    Some(TracePod {
        name: row.cell(NAME).unwrap_or_default().to_owned(),
        cpu_milli: cpu_milli?,
        memory_mib: memory_mib?,
        gpus: if share.is_some() { 0 } else { gpus },
        share: share.map(|milli| milli as u32),
        models: models?,
        qos: row.cell(QOS).unwrap_or_default().to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const HEADER: &str = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n";

    fn read_text(text: &str) -> Result<Trace, Problems> {
        read("pods.csv", text, &GpuMap::builtin())
    }

    #[test]
    fn a_share_of_a_gpu_is_kept_and_none_is_none() {
        let text =
            format!("{HEADER}a,6000,12288,1,460,,LS,Running,1,2,3\nb,8000,30517,0,0,T4,BE,Failed,1,2,\n");
        let trace = read_text(&text).unwrap();
        let gpus = trace.pods.iter().map(|pod| (pod.gpus, pod.share));
        assert_eq!(gpus.collect::<Vec<_>>(), [(0, Some(460)), (0, None)]);
        assert_eq!(trace.pods[1].models, GpuChoice::Any, "a pod without GPUs runs on any node");
        assert!(trace.notes.is_empty(), "{:?}", trace.notes);
        assert_eq!(trace.pods[0].spec().gpu_share, Some(460));
        assert_eq!(trace.pods[0].spec().requests.get("memory"), 12288 << 20);
    }

    #[test]
    fn the_real_lists_are_read_in_full() {
        for (file, pods) in [
            (include_str!("../../../../fixtures/traces/openb_pod_list_gpuspec33.csv"), 8152),
            (include_str!("../../../../fixtures/traces/openb_pod_list_default.csv"), 8152),
            (include_str!("../../../../fixtures/traces/openb_pod_list_gpushare100.csv"), 8152),
            (include_str!("../../../../fixtures/traces/openb_pod_list_multigpu50.csv"), 9061),
        ] {
            assert_eq!(read_text(file).unwrap().pods.len(), pods);
        }
    }

    #[test]
    fn every_problem_is_listed_with_its_line_and_column() {
        let text = format!(
            "{HEADER}\na,-1,12288,1,1000,,LS,Running,1,2,3\na,6000,many,1,1000,B300|T4,LS,Running,1,2,3\n\
             ,6000,,0,500,,LS,Running,1,2,3\nshort,1\nd,1,1,99999999999,2000,,,,,,\n"
        );
        let said = read_text(&text).unwrap_err().to_string();
        let expected = [
            "pods.csv:3:cpu_milli: \"-1\" is negative; use a whole number, 0 or more",
            "pods.csv:4:name: \"a\" is already listed at line 3; give every pod a name of its own",
            "pods.csv:4:memory_mib: \"many\" is not a whole number; use a whole number, 0 or more",
            "pods.csv:4:gpu_spec: no GPU models are known for \"B300\"; known are A10, G2, G3, P100, T4, V100M16, \
             V100M32; pass a map that has it with --gpu-map FILE (docs/cli/plan.md)",
            "pods.csv:5:name: the cell is empty; give every pod a name of its own",
            "pods.csv:5:memory_mib: the cell is empty; use a whole number, 0 or more",
            "pods.csv:5:gpu_milli: 500 thousandths of a GPU, but num_gpu is 0; set num_gpu to 1 for a share of one \
             GPU, or this to 0",
            "pods.csv:6: the row has 2 cells and the header 11; give every column a cell; quote a cell that holds a \
             comma",
            "pods.csv:7:num_gpu: \"99999999999\" is too large; use a whole number, 4294967295 or less",
            "pods.csv:7:gpu_milli: \"2000\" is too large; use a whole number, 1000 or less",
        ];
        assert_eq!(said, format!("10 problems\n  {}", expected.join("\n  ")));
    }

    #[test]
    fn a_missing_column_is_named_once_and_not_for_every_row() {
        let said = read_text("name,memory_mib,num_gpu\na,1,0\nb,-1,0\n").unwrap_err().to_string();
        assert_eq!(
            said,
            "2 problems\n  pods.csv:1:cpu_milli: the column is missing; add it to the header, which has \
             name,memory_mib,num_gpu\n  pods.csv:3:memory_mib: \"-1\" is negative; use a whole number, 0 or more"
        );
        assert!(read_text("").unwrap_err().to_string().contains("the file is empty"));
    }

    #[test]
    fn a_list_without_pods_is_fine() {
        assert_eq!(read_text(HEADER), Ok(Trace { pods: vec![], notes: vec![] }));
    }

    proptest! {
        #[test]
        fn no_text_makes_the_reader_panic(text in "\\PC*", rows in proptest::collection::vec("[-a-z0-9,|\"\r\n. ]*", 0..8)) {
            let _ = read_text(&text);
            let _ = read_text(&format!("{HEADER}{}", rows.join("\n")));
            let _ = GpuMap::read("map.csv", &text);
            let _ = GpuMap::read("map.csv", &format!("gpu_spec,gpu_models\n{}", rows.join("\n")));
        }

        #[test]
        fn a_pod_that_is_read_asks_for_what_its_row_says(cpu in 0u64..1_000_000, memory in 0u64..10_000_000, gpus in 0u64..16) {
            let trace = read_text(&format!("name,cpu_milli,memory_mib,num_gpu\np,{cpu},{memory},{gpus}\n")).unwrap();
            let requests = trace.pods[0].spec().requests;
            prop_assert_eq!(requests.get("cpu"), cpu);
            prop_assert_eq!(requests.get("memory"), memory << 20);
            prop_assert_eq!(requests.get("nvidia.com/gpu"), gpus);
            prop_assert_eq!(requests.get("pods"), 1);
        }
    }
}
