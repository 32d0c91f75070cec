//! What an API server refuses of new Jobs and CronJobs (`pkg/apis/batch/validation` in Kubernetes).

use jiff::tz::TimeZone;
use poolwright_api::{FieldProblem, meant};
use serde_json::Value;

use super::labels;
use super::names::{NameRule, items};
use super::objects::meta;
use super::pod_refusals::{one_of, required};
use super::refusals::Problems;

/// The most pods of an Indexed Job at once, and the most of its indexes that may fail.
const MOST_INDEXED: i64 = 100_000;

/// The same for a Job with more completions than that and with `backoffLimitPerIndex`.
const MOST_OF_MANY: i64 = 10_000;

/// The most rules of a policy.
const MOST_RULES: usize = 20;

/// What a rule about failed pods does.
const ACTIONS: [&str; 4] = ["Count", "FailIndex", "FailJob", "Ignore"];

/// The schedules that have a name. An interval has one of its own.
const SCHEDULES: [&str; 7] =
    ["@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"];

/// The fields of a schedule: least, most, and the names of the numbers from the least.
const PARTS: [(u32, u32, &[&str]); 5] = [
    (0, 59, &[]),
    (0, 23, &[]),
    (1, 31, &[]),
    (1, 12, &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]),
    (0, 6, &["sun", "mon", "tue", "wed", "thu", "fri", "sat"]),
];

/// Checks a Job (`ValidateJob`).
pub(super) fn job(job: &Value) -> Problems {
    let spec = &job["spec"];
    let mut problems = of_spec("spec", spec);
    let last = spec["completions"].as_i64().filter(|all| *all > 0 && spec["completionMode"] == "Indexed");
    if let Some((name, all)) = meta(job, "name").zip(last) {
        // The name of the last pod is also the name of its host.
        problems.extend(NameRule::Label.broken_by("metadata.name", &format!("{name}-{}", all - 1)));
    }
    if spec["manualSelector"] != true && has_foreign_selector(&spec["selector"]) {
        let cause = "an API server refuses a selector that it has not made itself";
        problems.push(FieldProblem::new(
            "spec.selector",
            cause,
            "remove it, or write `manualSelector: true`",
        ));
    }
    problems
}

/// Returns whether a selector asks for more than the name of the Job, which the API server writes into its pods.
fn has_foreign_selector(selector: &Value) -> bool {
    let mut labels = selector["matchLabels"].as_object().into_iter().flatten();
    labels.any(|(key, _)| !["job-name", "batch.kubernetes.io/job-name"].contains(&key.as_str()))
        || !items(&selector["matchExpressions"]).is_empty()
}

/// Checks the spec of a CronJob (`ValidateCronJobSpec`).
pub(super) fn cron_job(spec: &Value) -> Problems {
    let template = "spec.jobTemplate.spec";
    let mut problems = of_spec(template, &spec["jobTemplate"]["spec"]);
    if spec["jobTemplate"]["spec"]["selector"].is_object() {
        let cause = "an API server refuses it, because it makes a selector for each Job";
        problems.push(FieldProblem::new(format!("{template}.selector"), cause, "remove it"));
    }
    problems.extend(time_zone(&spec["timeZone"]));
    let (path, schedule) = ("spec.schedule", &spec["schedule"]);
    required(path, schedule, "add it, such as `0 3 * * *`", &mut problems);
    let Some(text) = schedule.as_str().filter(|text| !text.is_empty()) else { return problems };
    if text.contains("TZ") {
        let cause = "an API server refuses a time zone in a schedule";
        problems.push(FieldProblem::new(path, cause, "write it as spec.timeZone"));
    } else if !is_schedule(text) {
        let cause = format!("`{text}` is no schedule");
        let next =
            "write minute, hour, day of month, month and day of week, such as `0 3 * * *`, or `@daily`";
        problems.push(FieldProblem::new(path, cause, next));
    }
    problems
}

/// Checks the time zone of a schedule (`validateTimeZone`). An API server knows no name in another case.
fn time_zone(zone: &Value) -> Option<FieldProblem> {
    let name = zone.as_str()?;
    if TimeZone::get(name).is_ok_and(|zone| zone.iana_name() == Some(name)) {
        return None;
    }
    let known: Vec<String> = jiff::tz::db().available().map(|zone| zone.to_string()).collect();
    let next = match meant(name, known.iter().map(String::as_str)) {
        Some(near) => format!("did you mean `{near}`?"),
        None => "write a name of the IANA database, such as Europe/Berlin".to_owned(),
    };
    Some(FieldProblem::new("spec.timeZone", format!("`{name}` is not the name of a time zone"), next))
}

/// Returns whether a text is a schedule of cron (`ParseStandard` in robfig/cron).
fn is_schedule(text: &str) -> bool {
    if text.starts_with('@') {
        return SCHEDULES.contains(&text) || text.starts_with("@every ");
    }
    let parts: Vec<&str> = text.split_whitespace().collect();
    let fits = |(part, limits): (&&str, _)| {
        part.split(',').filter(|one| !one.is_empty()).all(|one| is_range(one, limits))
    };
    parts.len() == PARTS.len() && parts.iter().zip(PARTS).all(fits)
}

/// Returns whether a text is one number, a range or all numbers, and perhaps a step.
fn is_range(text: &str, (least, most, names): (u32, u32, &[&str])) -> bool {
    let (range, step) = text.split_once('/').map_or((text, None), |(range, step)| (range, Some(step)));
    if step.is_some_and(|step| step.parse::<u32>().ok().is_none_or(|step| step == 0)) {
        return false;
    }
    let number = |text: &str| {
        let named = names.iter().zip(least..).find(|(name, _)| name.eq_ignore_ascii_case(text));
        let number = named.map(|(_, number)| number).or_else(|| text.parse().ok());
        number.filter(|number| (least..=most).contains(number))
    };
    let (first, last) = range.split_once('-').unwrap_or((range, range));
    ["*", "?"].contains(&first) || number(first).zip(number(last)).is_some_and(|(first, last)| first <= last)
}

/// Checks the spec of a Job at a path (`validateJobSpec`). What is negative, or does not exist, is told elsewhere.
fn of_spec(path: &str, spec: &Value) -> Problems {
    let mut problems = Vec::new();
    let mut refuse = |field: &str, cause: &str, next: &str| {
        problems.push(FieldProblem::new(format!("{path}.{field}"), cause, next));
    };
    let pods = &spec["template"]["spec"];
    let (policy, failure) = (&pods["restartPolicy"], &spec["podFailurePolicy"]);
    let (at, next) =
        ("template.spec.restartPolicy", "write OnFailure or Never, because the pods of a Job must end");
    // A template that is missing, and a policy that is no text, are told elsewhere.
    if pods.is_object() && (policy.is_null() || *policy == "") {
        refuse(at, "missing", next);
    } else if let Some(other) = policy.as_str().filter(|policy| !["OnFailure", "Never"].contains(policy)) {
        refuse(at, &format!("an API server refuses `{other}` in a Job"), next);
    } else if *policy == "OnFailure" && failure.is_object() {
        refuse(at, "an API server refuses `OnFailure` with podFailurePolicy", "write Never");
    }
    let replaces = spec["podReplacementPolicy"].as_str().unwrap_or("Failed");
    if failure.is_object() && replaces != "Failed" {
        let cause = format!("an API server refuses `{replaces}` with podFailurePolicy");
        refuse("podReplacementPolicy", &cause, "write Failed, or remove it");
    }
    let per_index = !spec["backoffLimitPerIndex"].is_null();
    let (completions, failed) = (spec["completions"].as_i64(), spec["maxFailedIndexes"].as_i64());
    match spec["completionMode"].as_str() {
        Some("Indexed") => {
            if spec["completions"].is_null() {
                let next = "add it, because a Job with completionMode Indexed has one pod for each index";
                refuse("completions", "missing", next);
            }
            if failed.is_some() && !per_index {
                refuse("backoffLimitPerIndex", "missing", "add it, because the Job has maxFailedIndexes");
            }
            let has_many = per_index && completions.is_some_and(|all| all > MOST_INDEXED);
            if has_many && spec["maxFailedIndexes"].is_null() {
                let next = "add it, because the Job has many completions and backoffLimitPerIndex";
                refuse("maxFailedIndexes", "missing", next);
            }
            let most = if has_many { MOST_OF_MANY } else { MOST_INDEXED };
            for field in ["parallelism", "maxFailedIndexes"] {
                if let Some(number) = spec[field].as_i64().filter(|number| *number > most) {
                    let cause = format!("`{number}` is more than {most}, the most of such a Job");
                    refuse(field, &cause, "lower it");
                }
            }
            if let Some((failed, all)) =
                failed.zip(completions).filter(|(failed, all)| failed > all && *failed <= most)
            {
                let cause = format!("`{failed}` is more than completions ({all})");
                refuse("maxFailedIndexes", &cause, "lower it");
            }
        }
        None | Some("NonIndexed") => {
            for field in ["backoffLimitPerIndex", "maxFailedIndexes", "successPolicy"] {
                if !spec[field].is_null() {
                    let cause = "an API server refuses it without completionMode Indexed";
                    refuse(field, cause, "write `completionMode: Indexed`, or remove it");
                }
            }
        }
        Some(_) => {}
    }
    if failure.is_object() {
        failures(&format!("{path}.podFailurePolicy.rules"), spec, &mut problems);
    }
    if spec["successPolicy"].is_object() && spec["completionMode"] == "Indexed" {
        successes(&format!("{path}.successPolicy.rules"), spec, &mut problems);
    }
    problems
}

/// Returns the rules of a policy, and adds a problem if there are too many.
fn rules<'v>(path: &str, rules: &'v Value, into: &mut Problems) -> &'v [Value] {
    let rules = items(rules);
    if rules.len() > MOST_RULES {
        let cause = format!("{} rules are more than {MOST_RULES}", rules.len());
        into.push(FieldProblem::new(path, cause, "remove some"));
    }
    rules
}

/// Checks the rules about failed pods (`validatePodFailurePolicy`).
fn failures(path: &str, spec: &Value, into: &mut Problems) {
    for (at, rule) in rules(path, &spec["podFailurePolicy"]["rules"], into).iter().enumerate() {
        let path = format!("{path}[{at}]");
        let (action, codes, conditions) = (&rule["action"], &rule["onExitCodes"], &rule["onPodConditions"]);
        required(&format!("{path}.action"), action, "add it, such as FailJob", into);
        one_of(&format!("{path}.action"), action, &ACTIONS, into);
        if *action == "FailIndex" && spec["backoffLimitPerIndex"].is_null() {
            let cause = "an API server refuses FailIndex without backoffLimitPerIndex";
            into.push(FieldProblem::new(
                format!("{path}.action"),
                cause,
                "add that to the Job, or write FailJob",
            ));
        }
        match (codes.is_null(), items(conditions).is_empty()) {
            (true, true) => {
                let cause = "it has neither onExitCodes nor onPodConditions";
                into.push(FieldProblem::new(path.as_str(), cause, "add one of them"));
            }
            (false, false) => {
                let cause = "it has both onExitCodes and onPodConditions";
                into.push(FieldProblem::new(path.as_str(), cause, "write a rule for each"));
            }
            _ => {}
        }
        if codes.is_object() {
            exit_codes(&format!("{path}.onExitCodes"), codes, &spec["template"]["spec"], into);
        }
        for (place, condition) in items(conditions).iter().enumerate() {
            let path = format!("{path}.onPodConditions[{place}]");
            required(&format!("{path}.type"), &condition["type"], "add it, such as DisruptionTarget", into);
            labels::key(&format!("{path}.type"), &condition["type"], into);
            one_of(&format!("{path}.status"), &condition["status"], &["True", "False", "Unknown"], into);
        }
    }
}

/// Checks a rule about exit codes (`validatePodFailurePolicyRuleOnExitCodes`).
fn exit_codes(path: &str, codes: &Value, pods: &Value, into: &mut Problems) {
    let operator = &codes["operator"];
    required(&format!("{path}.operator"), operator, "write In or NotIn", into);
    one_of(&format!("{path}.operator"), operator, &["In", "NotIn"], into);
    let mut containers = ["initContainers", "containers"].into_iter().flat_map(|list| items(&pods[list]));
    if let Some(name) = codes["containerName"].as_str()
        && !containers.any(|container| container["name"] == name)
    {
        let cause = format!("the pod has no container `{name}`");
        into.push(FieldProblem::new(format!("{path}.containerName"), cause, "name one of its containers"));
    }
    let numbers: Vec<i64> = items(&codes["values"]).iter().filter_map(Value::as_i64).collect();
    let (cause, next) = if codes["values"].is_null() || codes["values"].as_array().is_some_and(Vec::is_empty)
    {
        ("missing", "add at least one exit code")
    } else if *operator == "In" && numbers.contains(&0) {
        ("an API server refuses 0 with the operator In", "remove it, because 0 is no failure")
    } else if !numbers.is_sorted_by(|one, next| one < next) {
        ("the exit codes do not rise from one to the next", "sort them, and write each once")
    } else {
        return;
    };
    into.push(FieldProblem::new(format!("{path}.values"), cause, next));
}

/// Checks the rules of when an Indexed Job is complete (`validateSuccessPolicy`).
fn successes(path: &str, spec: &Value, into: &mut Problems) {
    let list = &spec["successPolicy"]["rules"];
    if list.is_null() || list.as_array().is_some_and(Vec::is_empty) {
        into.push(FieldProblem::new(path, "missing", "add a rule"));
    }
    // Without completions, nothing is known of the indexes.
    let Some(completions) = spec["completions"].as_i64() else { return };
    for (at, rule) in rules(path, list, into).iter().enumerate() {
        let path = format!("{path}[{at}]");
        let (indexes, count) = (rule["succeededIndexes"].as_str(), rule["succeededCount"].as_i64());
        if rule["succeededIndexes"].is_null() && rule["succeededCount"].is_null() {
            let cause = "it has neither succeededIndexes nor succeededCount";
            into.push(FieldProblem::new(path.as_str(), cause, "add one of them"));
        }
        let named = indexes.and_then(|text| number_of_indexes(text, completions));
        if let Some(text) = indexes.filter(|_| named.is_none()) {
            let cause = format!("`{text}` is no list of indexes below {completions} that rise");
            let next = "write numbers and ranges, such as `0,2-4`";
            into.push(FieldProblem::new(format!("{path}.succeededIndexes"), cause, next));
        }
        let most = named.unwrap_or(completions);
        if let Some(count) = count.filter(|count| *count < 0 || *count > most) {
            let cause = format!("`{count}` is not from 0 to {most}, the number of indexes");
            into.push(FieldProblem::new(format!("{path}.succeededCount"), cause, "write such a number"));
        }
    }
}

/// Returns how many indexes a text such as `0,2-4` names; `None` if they do not rise, or are too high (`validateIndexesFormat`).
fn number_of_indexes(text: &str, completions: i64) -> Option<i64> {
    let (mut next, mut all) = (0, 0);
    for part in text.split(',').filter(|_| !text.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (i64, i64) = (first.parse().ok()?, last.parse().ok()?);
        let is_range = part.contains('-');
        if first < next || last >= completions || last < first || (is_range && last == first) {
            return None;
        }
        all += last - first + 1;
        next = last + 1;
    }
    Some(all)
}
