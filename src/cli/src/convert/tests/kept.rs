//! What the report calls kept, Poolwright does: each place that says so names a test that shows it.

use std::path::Path;

const BUDGETS: &str = "src/core/tests/it/disruption/budgets.rs";
const CORE_DISRUPTION: &str = "src/core/src/model/disruption.rs";
const EXPLAIN: &str = "src/cli/tests/it/explain.rs";
const KEPT: &str = "src/core/tests/it/disruption/kept.rs";
const LIMITS: &str = "src/core/tests/it/limits.rs";
const MIN_VALUES: &str = "src/core/tests/it/min_values.rs";
const POOLS: &str = "src/core/tests/it/pools.rs";
const REGISTER: &str = "src/core/tests/it/register.rs";
const REQUIRED: &str = "src/core/tests/it/disruption/required.rs";
const STATIC: &str = "src/core/tests/it/replicas_and_buffers.rs";

/// What is written in one call of `report.kept`, and a test that shows it.
const SHOWN: &[(&str, (&str, &str))] = &[
    (
        "Absent: WhenEmptyOrUnderutilized",
        (KEPT, "a_node_without_a_reason_to_stay_is_said_to_leave_and_what_that_saves"),
    ),
    ("Empty nodes are removed; pods are not moved.", (KEPT, "the_policy_of_the_pool_keeps_a_node")),
    (
        "{ NEVER } else { usual }",
        (KEPT, "a_node_without_a_reason_to_stay_is_said_to_leave_and_what_that_saves"),
    ),
    (
        "At most this many nodes at a time; a percentage is rounded up",
        (CORE_DISRUPTION, "a_percentage_is_rounded_up_and_a_number_is_itself"),
    ),
    ("At most this many nodes at a time", (BUDGETS, "a_budget_bounds_how_many_nodes_leave_at_a_time")),
    ("The reasons have the same names.", (BUDGETS, "an_explicit_budget_bounds_empty_nodes_too")),
    (
        "active for this long from each time of the schedule",
        (CORE_DISRUPTION, "a_window_is_open_from_each_time_of_its_schedule_on_for_its_length"),
    ),
    ("Its times are in UTC", (CORE_DISRUPTION, "a_schedule_goes_by_its_time_zone_through_summer_and_winter")),
    ("The name stays.", (EXPLAIN, "a_pool_whose_class_does_not_exist_names_those_that_do")),
    ("The kind stays.", (EXPLAIN, "a_pool_whose_class_does_not_exist_names_those_that_do")),
    ("Pools with a higher weight are used first", (POOLS, "pods_go_to_the_heaviest_pool_that_can_hold_them")),
    (
        "The pool keeps this many nodes",
        (STATIC, "a_static_pool_gets_as_many_of_the_cheapest_nodes_as_it_says_and_no_more_the_second_time"),
    ),
    (
        "At most this many nodes, including nodes that are starting.",
        (LIMITS, "limits_on_nodes_and_on_money_hold_too"),
    ),
    (
        "A limit over all nodes of the pool, including nodes that are starting.",
        (LIMITS, "a_claim_that_is_not_launched_counts_as_the_most_it_may_become"),
    ),
    ("has the same name.", (POOLS, "requirements_choose_among_offerings")),
    (
        "is a label of your own; it stays.",
        ("src/core/src/rules/requirement.rs", "an_absent_label_satisfies_not_in_and_does_not_exist_alone"),
    ),
    (
        "{what} {policy}",
        (MIN_VALUES, "only_offerings_of_the_same_capacity_type_count_since_a_launch_call_has_one"),
    ),
    (
        "{what} {policy}",
        (
            MIN_VALUES,
            "a_pod_that_too_few_types_hold_is_left_out_with_both_numbers_or_bought_for_with_best_effort",
        ),
    ),
    (
        "A label of the nodes; it stays.",
        (POOLS, "a_template_label_selects_the_pool_and_travels_with_the_claim"),
    ),
    (
        "An annotation of the nodes; it stays.",
        (REGISTER, "a_node_that_joined_gets_what_was_promised_loses_the_guard_and_is_gated"),
    ),
    ("The taint `{key}` stays.", (POOLS, "taints_keep_pods_away_and_startup_taints_do_not")),
    (
        "Nodes expire at the same age as in Karpenter.",
        (REQUIRED, "a_node_that_is_too_old_is_replaced_by_one_of_its_kind"),
    ),
    (
        "It uses nothing of Karpenter.",
        (
            "src/cli/src/convert/tests/workload.rs",
            "a_label_without_counterpart_stays_and_its_note_says_what_to_do",
        ),
    ),
    (
        "Poolwright reads this annotation of pods, too.",
        (
            "src/intake/src/ending.rs",
            "annotations_of_other_autoscalers_are_read_and_the_longest_protection_counts",
        ),
    ),
];

fn source(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Returns the text of each call of `report.kept` in the converter.
fn calls() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/convert");
    let mut all = Vec::new();
    for entry in std::fs::read_dir(folder).expect("the converter") {
        let path = entry.expect("it can be listed").path();
        if path.extension().is_some_and(|extension| extension == "rs") {
            let text = source(&path);
            let after = text.split("report.kept(").skip(1);
            // A call in one line may be the arm of a `match`.
            all.extend(after.map(|rest| {
                let is_long = rest.starts_with('\n');
                let end = if is_long { rest.find(");\n") } else { rest.find('\n') };
                rest[..end.unwrap_or(rest.len())].to_owned()
            }));
        }
    }
    all
}

#[test]
fn each_sentence_about_a_kept_field_names_a_test_that_exists() {
    let calls = calls();
    assert!(calls.len() > 15, "{calls:?}");
    for call in &calls {
        let shown = SHOWN.iter().any(|(written, _)| call.contains(*written));
        assert!(shown, "no test shows that Poolwright does it: {call}");
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for (written, (file, test)) in SHOWN {
        assert!(calls.iter().any(|call| call.contains(*written)), "nothing says: {written}");
        let text = source(&root.join(file));
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        let is_it = |pair: &[&str]| pair[0] == "#[test]" && pair[1].contains(&format!("fn {test}("));
        assert!(lines.windows(2).any(is_it), "{file} has no test {test}");
    }
}
