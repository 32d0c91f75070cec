//! What a pod says about how long it runs.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

/// What is known about the duration of one pod.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PodDuration {
    /// When the kubelet took it on (`status.startTime`); `None` if none has.
    pub started: Option<Timestamp>,
    /// How long its work ran before, in pods that it continues ([`poolwright_terms::keys::RAN_FOR_ANNOTATION`]).
    pub ran_before: SignedDuration,
    /// The duration that its author expects ([`poolwright_terms::keys::EXPECTED_DURATION_ANNOTATION`]).
    pub expected: Option<SignedDuration>,
    /// What its trainer reports. [`Self::expected`] comes before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reported: Option<Reported>,
    /// `activeDeadlineSeconds`: the time after its start at which the kubelet ends it.
    pub deadline: Option<SignedDuration>,
    /// Whether a controller keeps it running, such as a Deployment ([`Self::make_service`]).
    pub is_service: bool,
    /// Whether it is evicted, preempted or lost with its node (condition `DisruptionTarget`).
    #[serde(default)]
    pub is_evicted: bool,
    /// The kinds of work that it belongs to, from the narrowest to the widest. Pods of one kind are expected to run for similar
    /// times.
    pub kinds: Vec<String>,
}

/// How much longer the work of a pod runs, as its trainer measured (`status.trainerStatus` of a TrainJob).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reported {
    /// When that was reported.
    pub at: Timestamp,
    /// How much longer it ran from then on.
    pub left: SignedDuration,
}

/// Separates the parts of a kind's name.
pub const SEPARATOR: char = '/';

/// Begins the name of the widest kind of services.
pub(crate) const OF_SERVICES: &str = "services with ";

impl PodDuration {
    /// Makes it the duration of a pod that a controller keeps running. Such pods have kinds of their own: they end if somebody
    /// scales down, rolls out a new version, or deletes them, and not because their work is done.
    pub fn make_service(&mut self) {
        if std::mem::replace(&mut self.is_service, true) {
            return;
        }
        for kind in &mut self.kinds {
            let widest = kind.rfind(SEPARATOR).map_or(0, |at| at + SEPARATOR.len_utf8());
            kind.insert_str(widest, OF_SERVICES);
        }
    }

    /// Returns the time that its work has run.
    pub fn age(&self, now: Timestamp) -> SignedDuration {
        // A start in the future, because a clock differs, is a start now.
        let running = self.started.map_or(SignedDuration::ZERO, |started| now.duration_since(started));
        self.ran_before.saturating_add(running.max(SignedDuration::ZERO))
    }

    /// Returns the time that its work has run since a report. While the pod does not run, nor does its work.
    pub fn since(&self, reported: Reported, now: Timestamp) -> SignedDuration {
        let since = self.started.map(|started| now.duration_since(started.max(reported.at)));
        since.unwrap_or_default().max(SignedDuration::ZERO)
    }

    /// Returns whether its author or its work says how long it runs.
    pub fn is_declared(&self) -> bool {
        self.expected.is_some() || self.reported.is_some() || self.deadline.is_some()
    }
}

/// Returns the name of a controller without the parts that are generated for each of its instances, such as the hash of a
/// ReplicaSet, the time of a CronJob's Job, or a number.
pub fn template(name: &str) -> &str {
    let mut rest = name;
    while let Some((before, last)) = rest.rsplit_once('-') {
        let digits = last.chars().filter(char::is_ascii_digit).count();
        let lower = last.chars().all(|c| c.is_ascii_digit() || c.is_ascii_lowercase());
        let generated = digits == last.len() || lower && digits > 0 && (5..=10).contains(&last.len());
        if !generated || before.is_empty() {
            break;
        }
        rest = before;
    }
    rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_instances_lead_to_one_template() {
        assert_eq!(template("train-resnet-28471200"), "train-resnet");
        assert_eq!(template("web-6d4cf56db6"), "web");
        assert_eq!(template("sweep-3-17"), "sweep");
        assert_eq!(template("bert-base"), "bert-base");
        assert_eq!(template("2024"), "2024");
    }

    #[test]
    fn a_start_in_the_future_is_an_age_of_zero() {
        let pod =
            PodDuration { started: Some(Timestamp::from_second(100).unwrap()), ..PodDuration::default() };
        assert_eq!(pod.age(Timestamp::from_second(40).unwrap()), SignedDuration::ZERO);
        assert_eq!(pod.age(Timestamp::from_second(160).unwrap()), SignedDuration::from_mins(1));
    }

    #[test]
    fn work_that_continues_keeps_its_age_and_no_time_overflows() {
        let started = Some(Timestamp::from_second(100).unwrap());
        let pod =
            PodDuration { started, ran_before: SignedDuration::from_hours(35), ..PodDuration::default() };
        assert_eq!(pod.age(Timestamp::from_second(100).unwrap()), SignedDuration::from_hours(35));
        let pod = PodDuration { started: Some(Timestamp::MIN), ran_before: SignedDuration::MAX, ..pod };
        assert_eq!(pod.age(Timestamp::MAX), SignedDuration::MAX);
        assert_eq!(PodDuration::default().age(Timestamp::MAX), SignedDuration::ZERO, "it has not started");
    }
}
