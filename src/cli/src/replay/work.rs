//! The workload of a replay.

use std::collections::BTreeSet;

use poolwright_core::Lives;
use poolwright_sim::cluster::JobPlan;
use serde_json::Value;

use crate::args::Factor;

/// A workload, and the objects that it needs.
#[derive(Clone, Debug, Default)]
pub struct Work {
    /// The pods that will arrive.
    pub jobs: Vec<JobPlan>,
    /// The objects that exist from the beginning.
    pub objects: Vec<Value>,
    /// What was known about durations before the beginning.
    pub lives: Lives,
    /// Notes on how the input was understood.
    pub notes: Vec<String>,
}

impl Work {
    /// Multiplies the pods, in the order of their arrival: of 1.5 times as many, every second one comes twice. The number is rounded up.
    pub fn multiply(&mut self, times: Factor) {
        let mut names = Names::default();
        for job in &self.jobs {
            names.take(&job.namespace, &job.name);
        }
        let mut made = 0;
        let mut jobs = Vec::new();
        for (before, job) in (1..).zip(std::mem::take(&mut self.jobs)) {
            let wanted = times.of(before);
            for copy in 0..wanted - made {
                let name = if copy == 0 { job.name.clone() } else { names.take(&job.namespace, &job.name) };
                jobs.push(JobPlan { name, ..job.clone() });
            }
            made = wanted;
        }
        self.jobs = jobs;
    }
}

/// The longest name of a Job. With the suffix for its pods, it must fit into a label.
const LONGEST: usize = 48;

/// The names of Jobs, each used once in its namespace.
#[derive(Debug, Default)]
pub struct Names(BTreeSet<(String, String)>);

impl Names {
    /// Returns the wanted name if Kubernetes accepts it and it is free, otherwise a similar name.
    pub fn take(&mut self, namespace: &str, wanted: &str) -> String {
        let allowed = |one: char| one.is_ascii_lowercase() || one.is_ascii_digit() || one == '-';
        let name: String = wanted
            .to_lowercase()
            .chars()
            .map(|one| if allowed(one) { one } else { '-' })
            .take(LONGEST)
            .collect();
        let name = match name.trim_matches('-') {
            "" => "work".to_owned(),
            name => name.to_owned(),
        };
        let numbered = (2..).map(|number| format!("{name}-x{number}"));
        let mut tried = std::iter::once(name.clone()).chain(numbered);
        tried.find(|name| self.0.insert((namespace.to_owned(), name.clone()))).unwrap_or(name)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn more_pods_are_spread_over_those_that_there_are_and_fewer_leave_gaps() {
        let of = |factor: &str| {
            let job =
                |number: u64| JobPlan::new(format!("j{number}"), Duration::from_secs(number), 1, Value::Null);
            let mut work = Work { jobs: (1..=4).map(job).collect(), ..Work::default() };
            work.multiply(factor.parse().expect("a factor"));
            work.jobs.iter().map(|job| job.name.clone()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(of("1"), "j1 j2 j3 j4");
        assert_eq!(of("1.5"), "j1 j1-x2 j2 j3 j3-x2 j4");
        assert_eq!(of("0.5"), "j1 j3");
    }

    #[test]
    fn names_are_kept_where_they_can_be_and_never_given_twice() {
        let mut names = Names::default();
        let mut take = |namespace: &str, name: &str| names.take(namespace, name);
        assert_eq!(take("a", "openb-pod-0001"), "openb-pod-0001");
        assert_eq!(take("a", "openb-pod-0001"), "openb-pod-0001-x2");
        assert_eq!(take("b", "openb-pod-0001"), "openb-pod-0001");
        assert_eq!(take("a", "Pod_1"), "pod-1");
        assert_eq!(take("a", "Pod.1"), "pod-1-x2");
        assert_eq!(take("a", "--"), "work");
        assert!(take("a", &"x".repeat(300)).len() <= LONGEST);
    }
}
