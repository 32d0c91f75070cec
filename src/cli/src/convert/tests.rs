//! Properties of every conversion.

use poolwright_api::{ConsolidationPolicy, DisruptionReason, NodePool, Operator, Requirement};
use serde_json::{Value, json};

use super::{Conversion, Note, Outcome, convert, notes_table, yaml};
use crate::print::TableLayout;
use crate::source::Source;

const FIXTURES: [&str; 4] = [
    include_str!("../../../../fixtures/karpenter/gpu.yaml"),
    include_str!("../../../../fixtures/karpenter/general.yaml"),
    include_str!("../../../../fixtures/karpenter/static-and-overlays.yaml"),
    include_str!("../../../../fixtures/karpenter/eks-auto-mode.yaml"),
];

fn read(text: &str) -> Conversion {
    convert(&[Source { name: "file.yaml".to_owned(), text: text.to_owned() }])
}

pub(super) fn of(value: &Value) -> Conversion {
    read(&value.to_string())
}

/// Returns a minimal pool after `change` has changed it.
pub(super) fn pool(change: impl FnOnce(&mut Value)) -> Value {
    let mut pool = json!({"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "gpu"}, "spec": {"template": {"spec": {
        "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "gpu"}, "expireAfter": "336h"}}}});
    change(&mut pool);
    pool
}

pub(super) fn template(pool: &mut Value) -> &mut Value {
    &mut pool["spec"]["template"]["spec"]
}

pub(super) fn only(converted: &Conversion) -> &NodePool {
    assert_eq!(converted.problems, [], "{:?}", converted.problems);
    let [pool] = converted.manifests.as_slice() else { panic!("{:?}", converted.manifests) };
    pool
}

pub(super) fn requiring(requirements: &Value) -> Conversion {
    of(&pool(|pool| template(pool)["requirements"] = requirements.clone()))
}

fn required(requirements: &Value) -> Vec<Requirement> {
    only(&requiring(requirements)).spec.template.spec.requirements.clone()
}

pub(super) fn note<'a>(converted: &'a Conversion, field: &str) -> &'a Note {
    let mut found = converted.notes.iter().filter(|note| note.field == field);
    let note = found.next().unwrap_or_else(|| panic!("no note on {field}: {:#?}", converted.notes));
    assert!(found.next().is_none(), "two notes on {field}");
    note
}

pub(super) fn problem(converted: &Conversion) -> String {
    assert!(converted.manifests.is_empty() && converted.notes.is_empty(), "{converted:?}");
    let [problem] = converted.problems.as_slice() else { panic!("{:?}", converted.problems) };
    problem.to_string()
}

/// Collects the paths of all leaf fields, which have no fields below them.
fn leaves(value: &Value, path: &str, into: &mut Vec<String>) {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            fields.iter().for_each(|(key, value)| {
                leaves(value, &poolwright_provider_contract::karpenter::join(path, key), into);
            });
        }
        Value::Array(entries) if !entries.is_empty() => {
            entries.iter().enumerate().for_each(|(at, value)| leaves(value, &format!("{path}[{at}]"), into));
        }
        _ => into.push(path.to_owned()),
    }
}

fn covers(note: &str, leaf: &str) -> bool {
    leaf.strip_prefix(note)
        .is_some_and(|rest| note.is_empty() || rest.is_empty() || rest.starts_with(['.', '[']))
}

/// Returns all objects of the fixtures.
fn objects() -> Vec<Value> {
    FIXTURES
        .into_iter()
        .flat_map(super::read::documents)
        .flat_map(|document| document.objects.unwrap())
        .collect()
}

#[test]
fn every_leaf_field_of_the_fixtures_has_exactly_one_note_that_is_about_it() {
    for object in objects() {
        let converted = of(&object);
        assert_eq!(converted.problems, []);
        let mut all = Vec::new();
        leaves(&object, "", &mut all);
        assert!(!all.is_empty());
        for leaf in all {
            let about: Vec<_> = converted.notes.iter().filter(|note| covers(&note.field, &leaf)).collect();
            let longest = about.iter().map(|note| note.field.len()).max();
            let nearest = about.iter().filter(|note| Some(note.field.len()) == longest).count();
            assert_eq!(nearest, 1, "{leaf}: {about:#?}");
            // A note on a whole object covers the fields that identify it, and no field of a spec.
            let is_karpenters = object["apiVersion"].as_str().unwrap().starts_with("karpenter");
            let wholly = longest == Some(0) && is_karpenters;
            assert!(!wholly || !leaf.starts_with("spec"), "{leaf}");
        }
    }
}

/// Collects the pointers of all objects inside a value.
fn inner_objects(value: &Value, pointer: &str, into: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            into.push(pointer.to_owned());
            for (key, value) in fields {
                let key = key.replace('~', "~0").replace('/', "~1");
                inner_objects(value, &format!("{pointer}/{key}"), into);
            }
        }
        Value::Array(entries) => {
            entries
                .iter()
                .enumerate()
                .for_each(|(at, value)| inner_objects(value, &format!("{pointer}/{at}"), into));
        }
        _ => {}
    }
}

#[test]
fn an_unknown_field_anywhere_in_a_pool_is_not_possible_and_is_named() {
    let mut tried = 0;
    for object in objects().into_iter().filter(|object| object["kind"] == "NodePool") {
        let mut pointers = Vec::new();
        inner_objects(&object, "", &mut pointers);
        // The keys of these objects are the user's own.
        pointers.retain(|pointer| {
            !["/labels", "/annotations", "/limits"].iter().any(|end| pointer.ends_with(end))
        });
        for pointer in pointers {
            let mut changed = object.clone();
            changed.pointer_mut(&pointer).unwrap()["unheardOf"] = json!("x");
            let converted = of(&changed);
            let found: Vec<_> =
                converted.notes.iter().filter(|note| note.field.ends_with("unheardOf")).collect();
            let [note] = found.as_slice() else { panic!("{pointer}: {:?} {:?}", found, converted.problems) };
            assert_eq!(note.outcome, Outcome::NotPossible);
            assert!(note.sentence.contains("`unheardOf`"), "{}", note.sentence);
            tried += 1;
        }
    }
    assert!(tried > 20, "{tried}");
}

#[test]
fn no_value_of_a_wrong_type_panics_or_leaves_half_a_pool() {
    for object in objects().into_iter().filter(|object| object["kind"] == "NodePool") {
        let mut pointers = Vec::new();
        inner_objects(&object, "", &mut pointers);
        for pointer in pointers {
            for wrong in [json!([1]), json!("text"), json!({"a": {"b": 1}}), json!(true), json!(null)] {
                let mut changed = object.clone();
                *changed.pointer_mut(&pointer).unwrap() = wrong;
                let converted = of(&changed);
                assert!(
                    converted.problems.is_empty()
                        || converted.manifests.is_empty() && converted.notes.is_empty()
                );
            }
        }
    }
}

#[test]
fn converted_pools_read_back_unchanged_and_valid() {
    let sources = FIXTURES.map(|text| Source { name: "f".to_owned(), text: text.to_owned() });
    let converted = convert(&sources);
    assert_eq!(converted.problems, []);
    let names: Vec<_> =
        converted.manifests.iter().map(|pool| pool.metadata.name.as_deref().unwrap()).collect();
    assert_eq!(names, ["gpu", "general", "held", "auto"]);
    let text = yaml(&converted.manifests).unwrap();
    let again: Vec<NodePool> = serde_saphyr::from_multiple(&text).unwrap();
    assert_eq!(again, converted.manifests);
    assert_eq!(poolwright_intake::manifest::parse("f", &text).unwrap().pools.len(), 4);
}

#[test]
fn karpenters_labels_are_ours() {
    let requirements = json!([
        {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot", "reserved"]},
        {"key": "karpenter.k8s.aws/instance-gpu-count", "operator": "Lt", "values": ["5"]},
        {"key": "karpenter.k8s.aws/instance-gpu-manufacturer", "operator": "In", "values": ["nvidia"]},
    ]);
    let keys: Vec<_> =
        required(&requirements).into_iter().map(|one| (one.key, one.operator, one.values)).collect();
    let text = |text: &str| text.to_owned();
    assert_eq!(
        keys,
        [
            (text("poolwright.dev/capacity-type"), Operator::In, vec![text("spot"), text("reserved")]),
            (text("poolwright.dev/gpu-count"), Operator::Lt, vec![text("5")]),
            (text("poolwright.dev/gpu-model"), Operator::Exists, vec![]),
        ]
    );
}

#[test]
fn category_and_generation_together_are_the_families_that_both_allow() {
    let all = required(&json!([
        {"key": "karpenter.k8s.aws/instance-category", "operator": "In", "values": ["p"]},
        {"key": "karpenter.k8s.aws/instance-generation", "operator": "Gt", "values": ["5"]},
        {"key": "karpenter.k8s.aws/instance-family", "operator": "In", "values": ["p6-b200", "g5"]},
    ]));
    assert_eq!(all.len(), 1, "{all:?}");
    assert_eq!(
        (all[0].key.as_str(), all[0].values.as_slice()),
        ("poolwright.dev/instance-family", &["p6-b200".to_owned()][..])
    );
}

#[test]
fn requirements_that_nothing_meets_are_a_problem_and_not_left_out() {
    let said = problem(&requiring(&json!([
        {"key": "karpenter.k8s.aws/instance-category", "operator": "In", "values": ["zz"]},
    ])));
    assert!(
        said.starts_with("file.yaml: document 1: NodePool/gpu: spec.template.spec.requirements[0]: nothing"),
        "{said}"
    );
}

#[test]
fn a_requirement_without_a_label_is_not_possible_and_says_that_the_pool_may_buy_more() {
    let converted = requiring(&json!([
        {"key": "karpenter.k8s.aws/instance-memory", "operator": "Gt", "values": ["8191"]},
    ]));
    let note = note(&converted, "spec.template.spec.requirements[0]");
    assert_eq!(note.outcome, Outcome::NotPossible);
    assert!(note.sentence.contains("may buy more types"), "{}", note.sentence);
    assert_eq!(only(&converted).spec.template.spec.requirements, []);
}

#[test]
fn vcpus_of_every_type_of_the_built_in_catalogue_are_one_more_than_its_label() {
    let catalogue = poolwright_catalog::builtin();
    let mut tried = 0;
    for kind in catalogue.types().values().filter(|kind| kind.provider.as_str() == "aws") {
        let Some(size) = kind.name.as_str().split_once('.').and_then(|(_, size)| size.strip_suffix("xlarge"))
        else {
            continue;
        };
        let Some(vcpus) =
            (if size.is_empty() { Some(4) } else { size.parse::<u64>().ok().map(|number| number * 4) })
        else {
            continue;
        };
        let cores = kind.allocatable.get(poolwright_catalog::ResourceName::CPU) / 1000;
        assert_eq!(cores + 1, vcpus, "{}", kind.name);
        tried += 1;
    }
    assert!(tried > 100, "{tried}");
    let bound = |operator: &str, value: &str| {
        let all = required(
            &json!([{"key": "karpenter.k8s.aws/instance-cpu", "operator": operator, "values": [value]}]),
        );
        (all[0].operator, all[0].values[0].clone())
    };
    assert_eq!(bound("Gt", "4"), (Operator::Gt, "3".to_owned()));
    assert_eq!(bound("Gt", "0"), (Operator::Gte, "0".to_owned()));
    assert_eq!(bound("In", "8"), (Operator::In, "7".to_owned()));
}

#[test]
fn a_static_pool_stays_one() {
    let of_size = |replicas: Value| of(&pool(|pool| pool["spec"]["replicas"] = replicas));
    let converted = of_size(json!(3));
    assert_eq!(only(&converted).spec.replicas, Some(3));
    assert_eq!(note(&converted, "spec.replicas").outcome, Outcome::Kept);
    assert!(problem(&of_size(json!(-1))).contains("-1 is not between 0 and 1000"));
}

#[test]
fn min_values_stay_and_their_policy_is_named() {
    let converted = requiring(&json!([
        {"key": "node.kubernetes.io/instance-type", "operator": "Exists", "minValues": 5},
        {"key": "karpenter.k8s.aws/instance-category", "operator": "In", "values": ["c", "m", "r"], "minValues": 2},
        {"key": "karpenter.k8s.aws/instance-gpu-manufacturer", "operator": "Exists", "minValues": 1},
    ]));
    let outcome =
        |at: usize| note(&converted, &format!("spec.template.spec.requirements[{at}].minValues")).outcome;
    assert_eq!([outcome(0), outcome(1), outcome(2)], [Outcome::Kept, Outcome::Changed, Outcome::NotPossible]);
    let kept = note(&converted, "spec.template.spec.requirements[0].minValues");
    assert!(kept.sentence.contains("--min-values-policy BestEffort"), "{}", kept.sentence);
    let least = |key: &str| {
        let all = &only(&converted).spec.template.spec.requirements;
        all.iter().find(|one| one.key == key).and_then(|one| one.min_values)
    };
    assert_eq!(least("node.kubernetes.io/instance-type"), Some(5));
    assert_eq!(least("poolwright.dev/instance-family"), Some(2));
    assert_eq!(least("poolwright.dev/gpu-model"), None);
}

#[test]
fn min_values_that_no_launch_could_meet_are_a_problem() {
    let asking = |least: i32| {
        requiring(&json!([
            {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["us-east-1a", "us-east-1b"], "minValues": least},
        ]))
    };
    assert!(problem(&asking(3)).contains("minValues asks for 3 values"));
    assert!(problem(&asking(51)).contains("51 is not between 1 and 50"));
}

#[test]
fn absent_fields_get_the_defaults_of_karpenter() {
    let converted = of(&pool(|pool| {
        template(pool).as_object_mut().unwrap().remove("expireAfter");
    }));
    let spec = &only(&converted).spec;
    assert_eq!(spec.template.spec.expire_after.0, "720h");
    assert_eq!(spec.disruption.consolidation_policy, ConsolidationPolicy::WhenEmptyOrUnderutilized);
    assert_eq!(
        (spec.disruption.consolidate_after.0.as_str(), spec.scale_to_zero.after.0.as_str()),
        ("0s", "0s")
    );
    assert_eq!(spec.disruption.budgets[0].nodes, "10%");
    assert!(!spec.disruption.budgets[0].reasons.contains(&DisruptionReason::Expired));
    for field in ["spec.template.spec.expireAfter", "spec.disruption.budgets"] {
        assert_eq!(note(&converted, field).outcome, Outcome::Changed);
    }
    assert_eq!(note(&converted, "spec.disruption.consolidationPolicy").outcome, Outcome::Kept);
}

#[test]
fn never_consolidating_keeps_empty_nodes_too() {
    let converted = of(&pool(|pool| pool["spec"]["disruption"] = json!({"consolidateAfter": "Never"})));
    let spec = &only(&converted).spec;
    assert_eq!(
        (spec.disruption.consolidate_after.0.as_str(), spec.scale_to_zero.after.0.as_str()),
        ("Never", "Never")
    );
}

#[test]
fn a_budget_with_a_schedule_keeps_its_schedule_and_says_that_it_is_in_utc() {
    let converted = of(&pool(|pool| {
        pool["spec"]["disruption"] =
            json!({"budgets": [{"nodes": "0", "schedule": "0 9 * * mon-fri", "duration": "8h"}]});
    }));
    let budget = &only(&converted).spec.disruption.budgets[0];
    assert_eq!((budget.schedule.as_deref(), budget.time_zone.as_deref()), (Some("0 9 * * mon-fri"), None));
    let note = note(&converted, "spec.disruption.budgets[0].schedule");
    assert_eq!(note.outcome, Outcome::Kept);
    assert!(note.sentence.contains("UTC"), "{}", note.sentence);
}

#[test]
fn an_empty_list_of_budgets_allows_everything_as_it_does_in_karpenter() {
    let converted = of(&pool(|pool| pool["spec"]["disruption"] = json!({"budgets": []})));
    let spec = &only(&converted).spec;
    assert_eq!(spec.disruption.budgets[0].nodes, "100%");
}

#[test]
fn a_schedule_that_cannot_be_read_is_a_problem() {
    let said = problem(&of(&pool(|pool| {
        pool["spec"]["disruption"] =
            json!({"budgets": [{"nodes": "0", "schedule": "often", "duration": "8h"}]});
    })));
    assert!(said.contains("spec.disruption.budgets[0].schedule"), "{said}");
}

#[test]
fn the_termination_grace_period_is_a_deadline() {
    let pool = pool(|pool| template(pool)["terminationGracePeriod"] = json!("48h"));
    let deadline = only(&of(&pool)).spec.template.spec.deadlines.termination.clone();
    assert_eq!(deadline.unwrap().0, "48h");
}

#[test]
fn do_not_disrupt_in_the_template_is_an_annotation_of_the_pool() {
    let converted = of(&pool(|pool| {
        pool["spec"]["template"]["metadata"] =
            json!({"annotations": {"karpenter.sh/do-not-disrupt": "true"}});
    }));
    let pool = only(&converted);
    let annotations = pool.metadata.annotations.as_ref().unwrap();
    assert_eq!(annotations["poolwright.dev/do-not-disrupt"], "true");
    assert!(pool.spec.template.metadata.annotations.is_empty());
}

#[test]
fn a_template_label_that_an_offering_decides_is_a_requirement() {
    let converted = of(&pool(|pool| {
        pool["spec"]["template"]["metadata"] =
            json!({"labels": {"karpenter.sh/capacity-type": "spot", "team": "a"}});
    }));
    let template = &only(&converted).spec.template;
    assert_eq!(template.spec.requirements[0].key, "poolwright.dev/capacity-type");
    assert_eq!(template.metadata.labels.keys().collect::<Vec<_>>(), ["team"]);
}

#[test]
fn old_versions_are_sent_to_karpenters_own_tools() {
    let said = problem(&of(&pool(|pool| pool["apiVersion"] = json!("karpenter.sh/v1beta1"))));
    assert!(
        said.contains("`karpenter.sh/v1beta1` cannot be converted") && said.contains("v1-migration"),
        "{said}"
    );
}

#[test]
fn a_malformed_document_is_a_problem_and_the_others_are_converted() {
    let text = format!(
        "{}\n---\na: [1\n---\n# nothing\n---\n{}\n",
        pool(|_| {}),
        pool(|pool| pool["metadata"]["name"] = json!("b"))
    );
    let converted = read(&text);
    assert_eq!(converted.manifests.len(), 2);
    let [problem] = converted.problems.as_slice() else { panic!("{:?}", converted.problems) };
    assert_eq!((problem.document, problem.file.as_str()), (2, "file.yaml"));
    assert_eq!(problem.next_step, "correct the syntax");
}

#[test]
fn a_list_where_a_text_belongs_a_missing_name_and_a_second_pool_of_a_name_are_problems() {
    let said = problem(&of(&pool(|pool| template(pool)["expireAfter"] = json!(["1h"]))));
    assert!(
        said.contains(
            "NodePool/gpu: spec.template.spec.expireAfter: a list where a text belongs; write one text"
        ),
        "{said}"
    );
    let said = problem(&of(&pool(|pool| pool["metadata"] = json!({}))));
    assert!(said.contains("document 1: NodePool: metadata.name: missing"), "{said}");
    let converted = read(&format!("{0}\n---\n{0}\n", pool(|_| {})));
    assert_eq!((converted.manifests.len(), converted.problems.len()), (1, 1));
}

#[test]
fn lists_are_taken_apart_and_what_the_cluster_writes_is_left_out() {
    let one = pool(|pool| {
        pool["status"] = json!({"nodes": 1});
        pool["metadata"]["uid"] = json!("1-2");
    });
    let converted = of(&json!({"apiVersion": "v1", "kind": "List", "items": [one]}));
    only(&converted);
    assert_eq!(note(&converted, "status").outcome, Outcome::Changed);
    assert_eq!(note(&converted, "metadata.uid").outcome, Outcome::Changed);
}

#[test]
fn the_table_is_at_most_80_columns_wide_and_counts_what_it_does_not_show() {
    let notes = read(FIXTURES[0]).notes;
    let layout = TableLayout { width: Some(80), wide: false };
    let short = notes_table(&notes, false, layout);
    assert!(short.starts_with("NodePool/gpu: "), "{short}");
    assert!(!short.contains("\nkept "), "{short}");
    for line in short.lines().chain(notes_table(&notes, true, layout).lines()) {
        assert!(line.chars().count() <= 80, "{line}");
    }
}

/// Returns the requirements on labels of EKS Auto Mode, or of Karpenter's provider.
fn requirements_under(domain: &str) -> Value {
    let one = |name: &str, operator: &str, values: &[&str]| json!({"key": format!("{domain}/{name}"), "operator": operator, "values": values});
    json!([
        one("instance-category", "In", &["g"]),
        one("instance-family", "In", &["g6", "g5"]),
        one("instance-size", "In", &["2xlarge", "4xlarge"]),
        one("instance-generation", "Gt", &["4"]),
        one("instance-cpu", "Lt", &["65"]),
        one("instance-gpu-manufacturer", "In", &["nvidia"]),
        one("instance-gpu-name", "In", &["l4", "a10g"]),
        one("instance-gpu-count", "In", &["1"]),
        one("instance-gpu-memory", "Gt", &["20000"]),
        one("instance-memory", "Gt", &["8191"]),
        one("instance-hypervisor", "In", &["nitro"]),
        one("instance-local-nvme", "Gt", &["100"]),
        one("instance-ebs-bandwidth", "Gt", &["100"]),
        one("instance-network-bandwidth", "Gt", &["100"]),
        one("instance-cpu-manufacturer", "In", &["intel"]),
        one("instance-encryption-in-transit-supported", "In", &["true"]),
        one("instance-tomorrow", "In", &["true"]),
    ])
}

#[test]
fn requirements_of_eks_auto_mode_become_what_those_of_karpenter_become() {
    let (eks, karpenter) = (
        requiring(&requirements_under("eks.amazonaws.com")),
        requiring(&requirements_under("karpenter.k8s.aws")),
    );
    assert_eq!(only(&eks).spec.template, only(&karpenter).spec.template);
    assert_eq!(only(&eks).spec.template.metadata.labels.len(), 0);
    let outcomes = |of: &Conversion| -> Vec<_> {
        of.notes.iter().map(|note| (note.field.clone(), note.outcome)).collect()
    };
    assert_eq!(outcomes(&eks), outcomes(&karpenter));
}

#[test]
fn keys_of_other_autoscalers_and_clouds_are_not_possible_and_label_no_node() {
    for key in [
        "karpenter.sh/registered",
        "compatibility.karpenter.k8s.aws/x",
        "karpenter.k8s.gcp/instance-size",
        "karpenter.azure.com/sku-family",
        "eks.amazonaws.com/compute-type",
        "eks.amazonaws.com/nodegroup",
        "eks.amazonaws.com/capacityType",
        "k8s.amazonaws.com/accelerator",
        "topology.k8s.aws/network-node-layer-1",
        "cloud.google.com/gke-accelerator",
        "topology.gke.io/zone",
        "kubernetes.azure.com/mode",
        "cluster-autoscaler.kubernetes.io/x",
    ] {
        let required = requiring(&json!([{"key": key, "operator": "In", "values": ["x"]}]));
        let labelled = of(&pool(|pool| pool["spec"]["template"]["metadata"] = json!({"labels": {key: "x"}})));
        let field = format!("spec.template.metadata.labels[\"{key}\"]");
        for (converted, field) in [(required, "spec.template.spec.requirements[0]"), (labelled, &field)] {
            let note = note(&converted, field);
            assert!(note.outcome == Outcome::NotPossible && note.sentence.contains(key), "{note:?}");
            let template = &only(&converted).spec.template;
            assert!(template.metadata.labels.is_empty() && template.spec.requirements.is_empty(), "{key}");
        }
    }
    let own = requiring(&json!([{"key": "example.com/karpenter-pool", "operator": "In", "values": ["x"]}]));
    assert_eq!(only(&own).spec.template.metadata.labels["example.com/karpenter-pool"], "x");
}

#[test]
fn a_requirement_that_no_node_meets_stops_the_conversion_of_its_pool() {
    for (key, value) in [("instance-tenancy", "dedicated"), ("instance-accelerator-manufacturer", "habana")] {
        let key = format!("karpenter.k8s.aws/{key}");
        let said = problem(&requiring(&json!([{"key": key, "operator": "In", "values": [value]}])));
        assert!(said.contains("no node of Poolwright meets it"), "{said}");
    }
}

#[test]
fn a_restriction_that_all_nodes_of_a_service_meet_does_not_let_a_pool_buy_more() {
    let converted =
        requiring(&json!([{"key": "eks.amazonaws.com/compute-type", "operator": "In", "values": ["auto"]}]));
    let sentence = &note(&converted, "spec.template.spec.requirements[0]").sentence;
    assert!(sentence.contains("Auto Mode") && !sentence.contains("buy more"), "{sentence}");
}

fn referring(group: &str, kind: &str) -> Conversion {
    of(&pool(|pool| {
        template(pool)["nodeClassRef"] = json!({"group": group, "kind": kind, "name": "default"});
    }))
}

#[test]
fn a_pool_of_a_managed_service_names_the_node_class_to_write() {
    let converted = referring("eks.amazonaws.com", "NodeClass");
    let class = &only(&converted).spec.template.spec.node_class_ref;
    assert_eq!((class.kind.as_str(), class.name.as_str()), ("EC2NodeClass", "default"));
    let kind = note(&converted, "spec.template.spec.nodeClassRef.kind");
    assert_eq!(kind.outcome, Outcome::Changed);
    assert!(kind.sentence.contains("Write an EC2NodeClass of this name"), "{}", kind.sentence);
    let group = &note(&converted, "spec.template.spec.nodeClassRef.group").sentence;
    assert!(
        group.contains("--aws-cluster") && group.contains("a KwokNodeClass with `provider: aws`"),
        "{group}"
    );
}

#[test]
fn a_node_class_that_poolwright_does_not_have_is_not_called_kept() {
    let converted = referring("karpenter.azure.com", "AKSNodeClass");
    let kind = note(&converted, "spec.template.spec.nodeClassRef.kind");
    assert_eq!(kind.outcome, Outcome::NotPossible);
    assert!(
        kind.sentence.contains("no AKSNodeClass") && kind.sentence.contains("KwokNodeClass"),
        "{}",
        kind.sentence
    );
    let known = referring("karpenter.k8s.aws", "EC2NodeClass");
    assert_eq!(note(&known, "spec.template.spec.nodeClassRef.kind").outcome, Outcome::Kept);
}

#[test]
fn a_node_class_of_a_managed_service_is_reported_field_by_field_and_says_what_to_write() {
    let converted = of(
        &json!({"apiVersion": "eks.amazonaws.com/v1", "kind": "NodeClass", "metadata": {"name": "default"},
        "spec": {"role": "node", "subnetSelectorTerms": [{"id": "subnet-1"}], "ephemeralStorage": {"size": "80Gi"}}}),
    );
    assert_eq!((converted.problems.as_slice(), converted.node_classes.len()), (&[][..], 0));
    let whole = &note(&converted, "").sentence;
    assert!(whole.contains("EKS Auto Mode") && whole.contains("(docs/ec2nodeclass.md)"), "{whole}");
    assert!(note(&converted, "spec.role").sentence.contains("Copy it"));
    assert!(note(&converted, "spec.ephemeralStorage").sentence.contains("blockDeviceMappings"));
    assert_eq!(converted.notes.len(), 4);
}
