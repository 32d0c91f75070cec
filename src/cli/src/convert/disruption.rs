//! Converts the settings of disruption: when nodes are removed, and how many at a time.
//!
//! Karpenter's defaults: consolidationPolicy WhenEmptyOrUnderutilized, consolidateAfter 0s, one budget of 10% of the nodes
//! (<https://karpenter.sh/docs/concepts/disruption/>).

use poolwright_api::{
    ConsolidationPolicy, Disruption, DisruptionBudget, DisruptionReason, DurationText, ExpiryText, IdleText,
    ScaleToZero,
};
use poolwright_provider_contract::karpenter::{Fields, Report, is_empty, text};
use serde_json::Value;

const PATH: &str = "spec.disruption";

/// What every policy means with this setting.
const NEVER: &str = "With `consolidateAfter: Never`, no node is removed because it is empty, and no pods are moved to save money.";

/// The conversion of Karpenter's `spec.disruption`.
pub(super) struct Read {
    pub disruption: Disruption,
    pub scale_to_zero: ScaleToZero,
}

/// Converts `spec.disruption`. Absent fields get Karpenter's defaults.
pub(super) fn convert(of: &mut Fields<'_>, report: &mut Report) -> Read {
    let value = of.take("disruption");
    let mut fields = value.and_then(|value| Fields::of(PATH, value, report));
    let is_never = value.is_some_and(|value| value["consolidateAfter"] == "Never");
    let policy = policy(fields.as_mut(), is_never, report);
    let after = consolidate_after(fields.as_mut(), report);
    let budgets = budgets(fields.as_mut(), report);
    if let Some(fields) = fields {
        fields.finish(report);
    }
    Read {
        disruption: Disruption {
            consolidation_policy: policy,
            consolidate_after: after.clone(),
            budgets,
            ..Disruption::default()
        },
        scale_to_zero: ScaleToZero { after: IdleText(after.0) },
    }
}

fn policy(of: Option<&mut Fields<'_>>, is_never: bool, report: &mut Report) -> ConsolidationPolicy {
    let path = format!("{PATH}.consolidationPolicy");
    let Some(text) = of.and_then(|fields| fields.text("consolidationPolicy", report)) else {
        report.kept(path, "Absent: WhenEmptyOrUnderutilized is the default of both. Writes it.");
        return ConsolidationPolicy::WhenEmptyOrUnderutilized;
    };
    match text.as_str() {
        "WhenEmpty" => {
            report.kept(path, if is_never { NEVER } else { "Empty nodes are removed; pods are not moved." });
        }
        "WhenEmptyOrUnderutilized" => {
            let usual = "Pods are moved if it saves money; `paybackWithin` says how soon it must pay back.";
            report.kept(path, if is_never { NEVER } else { usual });
            return ConsolidationPolicy::WhenEmptyOrUnderutilized;
        }
        "Balanced" => {
            let usual = "`paybackWithin` weighs the saving of a move against its cost.";
            let said = if is_never { NEVER } else { usual };
            report.changed(path, format!("Becomes WhenEmptyOrUnderutilized. {said}"));
            return ConsolidationPolicy::WhenEmptyOrUnderutilized;
        }
        _ => report.problem(
            path,
            format!("`{text}` is not a policy of karpenter.sh/v1"),
            "write WhenEmpty or WhenEmptyOrUnderutilized",
        ),
    }
    ConsolidationPolicy::WhenEmpty
}

fn consolidate_after(of: Option<&mut Fields<'_>>, report: &mut Report) -> ExpiryText {
    let path = format!("{PATH}.consolidateAfter");
    let Some(text) = of.and_then(|fields| duration_text(fields, "consolidateAfter", report)) else {
        report.changed(
            path,
            "Absent: Karpenter's default is 0s, Poolwright's is 5m. Writes 0s and, for empty nodes, `scaleToZero.after: 0s`.",
        );
        return ExpiryText::from("0s");
    };
    report.changed(
        path.clone(),
        format!(
            "It stays. Empty nodes get `scaleToZero.after: {text}` as well: Karpenter has one field for both."
        ),
    );
    expiry(path, text, "0s", report)
}

/// Takes a field that holds a duration. A number is a problem of its own, because quotes would not make it a
/// duration.
pub(super) fn duration_text(of: &mut Fields<'_>, key: &str, report: &mut Report) -> Option<String> {
    let value = of.take(key)?;
    let path = of.path(key);
    if value.is_number() {
        report.problem(path, format!("{value} has no unit"), "write a duration such as \"30s\" or \"720h\"");
        return None;
    }
    text(path, value, report)
}

/// Reads a duration or `Never`. Returns `default` instead of a text that is neither.
pub(super) fn expiry(path: String, text: String, default: &str, report: &mut Report) -> ExpiryText {
    let written = ExpiryText(text);
    match written.parse() {
        Ok(_) => written,
        Err(error) => {
            report.problem(path, error.to_string(), "correct it in the source, or write Never");
            ExpiryText::from(default)
        }
    }
}

fn budgets(of: Option<&mut Fields<'_>>, report: &mut Report) -> Vec<DisruptionBudget> {
    let path = format!("{PATH}.budgets");
    let Some(value) = of.and_then(|fields| fields.take_even_empty("budgets")) else {
        report.changed(
            path,
            "Absent: Karpenter's default is one budget of 10%. Writes this budget, for the reasons to which Karpenter applies it.",
        );
        return vec![plain("10%")];
    };
    let Some(entries) = value.as_array() else {
        report.problem(path, "not a list", "begin each budget with `- `");
        return Vec::new();
    };
    if entries.is_empty() {
        report.changed(
            path,
            "The list is empty, so that Karpenter disrupts any number of nodes at a time: one budget of 100% is written. Without any, \
             Poolwright would take a tenth.",
        );
        return vec![plain("100%")];
    }
    let entries = entries.iter().enumerate();
    entries.map(|(at, entry)| budget(&format!("{path}[{at}]"), entry, report)).collect()
}

/// Returns the reasons to which Karpenter applies its budgets. It lets nodes expire regardless of them.
fn karpenters_reasons() -> Vec<DisruptionReason> {
    vec![DisruptionReason::Empty, DisruptionReason::Underutilized, DisruptionReason::Drifted]
}

fn plain(nodes: &str) -> DisruptionBudget {
    DisruptionBudget {
        nodes: nodes.to_owned(),
        reasons: karpenters_reasons(),
        schedule: None,
        time_zone: None,
        duration: None,
    }
}

/// Converts a budget. What cannot be read has a problem, and something readable in its place, so that the rest is checked too.
fn budget(path: &str, value: &Value, report: &mut Report) -> DisruptionBudget {
    let Some(mut fields) = Fields::of(path, value, report) else { return plain("0") };
    let mut budget = plain(&fields.needed_text("nodes", report).unwrap_or_else(|| "0".to_owned()));
    report.kept(
        fields.path("nodes"),
        "At most this many nodes at a time; a percentage is rounded up, as in Karpenter.",
    );
    let reasons = fields.texts("reasons", report);
    if reasons.is_empty() {
        report.changed(
            fields.path("reasons"),
            "They are absent: the three of Karpenter are written. Its budgets do not hold back nodes that expire; add `Expired` if \
             this one is to do so.",
        );
    } else {
        budget.reasons =
            reasons.iter().filter_map(|text| reason(&fields.path("reasons"), text, report)).collect();
        report.kept(fields.path("reasons"), "The reasons have the same names.");
    }
    let has = |key: &str| value.get(key).is_some_and(|value| !is_empty(value));
    if let Some(text) = fields.text("schedule", report) {
        budget.schedule = Some(schedule(fields.path("schedule"), text, report));
    }
    if let Some(text) = duration_text(&mut fields, "duration", report) {
        let written = DurationText(text);
        budget.duration = Some(match written.parse() {
            Ok(_) => {
                report.kept(
                    fields.path("duration"),
                    "The budget is active for this long from each time of the schedule.",
                );
                written
            }
            Err(error) => {
                report.problem(fields.path("duration"), error.to_string(), "correct it in the source");
                DurationText::from("1h")
            }
        });
    }
    if has("schedule") {
        budget.schedule.get_or_insert_with(|| "@daily".to_owned());
    }
    if has("duration") {
        budget.duration.get_or_insert_with(|| DurationText::from("1h"));
    }
    fields.finish(report);
    budget
}

fn reason(path: &str, text: &str, report: &mut Report) -> Option<DisruptionReason> {
    match text {
        "Empty" => Some(DisruptionReason::Empty),
        "Underutilized" => Some(DisruptionReason::Underutilized),
        "Drifted" => Some(DisruptionReason::Drifted),
        _ => {
            let cause = format!("`{text}` is not a reason of karpenter.sh/v1");
            report.problem(path, cause, "write Empty, Underutilized or Drifted");
            None
        }
    }
}

fn schedule(path: String, text: String, report: &mut Report) -> String {
    let ours = match text.as_str() {
        "@annually" => "@yearly",
        "@midnight" => "@daily",
        _ => {
            report.kept(path, "Its times are in UTC, as in Karpenter; `timeZone` can name another zone.");
            return text;
        }
    };
    report
        .changed(path, format!("Becomes `{ours}`, the same time in UTC; `timeZone` can name another zone."));
    ours.to_owned()
}
