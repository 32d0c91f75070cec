//! Tests of the architecture: which crate may depend on which, what pure crates must not depend on, and that docs/dependencies.md
//! gives a reason for every dependency. They read `cargo metadata`.

mod cloud_names;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::process::Command;

use serde_json::Value;

/// Every dependency between our crates. A new one changes the architecture: document it in docs/architecture.md first, then add
/// it here.
const ARROWS: [(&str, &[&str]); 17] = [
    ("poolwright-terms", &[]),
    ("poolwright-catalog", &["terms"]),
    ("poolwright-solver", &["catalog", "terms"]),
    ("poolwright-core", &["catalog", "solver", "terms"]),
    ("poolwright-report", &["catalog", "core", "solver", "terms"]),
    ("poolwright-ledger", &["report"]),
    ("poolwright-api", &["catalog", "terms"]),
    ("poolwright-intake", &["api", "catalog", "core", "terms"]),
    ("poolwright-provider-contract", &["api", "catalog", "terms"]),
    ("poolwright-provider-aws", &["api", "catalog", "provider-aws-model", "provider-contract", "terms"]),
    ("poolwright-provider-aws-model", &["catalog", "terms"]),
    ("poolwright-provider-kwok", &["api", "catalog", "provider-contract", "terms"]),
    ("poolwright-provider-registry", &["provider-aws", "provider-contract", "provider-kwok"]),
    (
        "poolwright-controller",
        &["api", "catalog", "core", "intake", "ledger", "provider-contract", "report", "solver", "terms"],
    ),
    (
        "poolwright-cli",
        &[
            "api",
            "catalog",
            "controller",
            "core",
            "intake",
            "ledger",
            "provider-contract",
            "provider-registry",
            "report",
            "sim",
            "solver",
            "terms",
        ],
    ),
    (
        "poolwright-sim",
        &["api", "catalog", "controller", "core", "intake", "provider-contract", "report", "terms"],
    ),
    // The demo sells the catalogue in a simulated world, through the KWOK provider's node class, and compares the bill with a plan for
    // all pods at once.
    ("poolwright-plane", &["api", "catalog", "core", "intake", "provider-kwok", "sim", "solver", "terms"]),
];

/// Dependencies that only tests may have, in addition to those above.
const ARROWS_OF_TESTS: [(&str, &[&str]); 5] = [
    // Nothing but the choice of an LP solver, which binaries make otherwise.
    ("poolwright-intake", &["solver"]),
    ("poolwright-sim", &["solver"]),
    // Tests compare the template of the event rules with what the provider reads.
    ("poolwright-cli", &["provider-aws-model"]),
    // Tests compare the definitions of node classes with `crds/`, and their rules with a table of cases.
    ("poolwright-provider-registry", &["api", "terms"]),
    // The conformance tests of the providers run on a real API server. Other tests make plans themselves, which the real
    // scheduler then carries out.
    ("poolwright-plane", &["controller", "provider-aws", "provider-contract", "provider-registry"]),
];

/// The crates that decide or translate. They are pure functions of their arguments and can reach no cluster, clock or cloud.
const PURE: [&str; 6] = [
    "poolwright-report",
    "poolwright-terms",
    "poolwright-catalog",
    "poolwright-solver",
    "poolwright-core",
    "poolwright-provider-aws-model",
];

/// Crates that a pure crate must not depend on, at any depth.
fn is_forbidden_in_pure_crates(name: &str) -> bool {
    ["kube", "k8s-openapi", "tokio"].contains(&name)
        || ["kube-", "tokio-", "aws-", "google-cloud-"].iter().any(|prefix| name.starts_with(prefix))
}

/// The crates that cargo would build, and their dependencies.
#[derive(Default)]
struct Graph {
    /// The crates of the workspace.
    members: BTreeSet<String>,
    /// The direct dependencies of each crate that end up in its build (normal and build dependencies).
    built: BTreeMap<String, BTreeSet<String>>,
    /// The direct dependencies of each workspace crate, of any kind, including those of its tests.
    declared: BTreeMap<String, BTreeSet<String>>,
}

impl Graph {
    fn of_this_workspace() -> Self {
        let output = Command::new(env!("CARGO"))
            // The dependencies of features that are off by default count too.
            .args(["metadata", "--format-version", "1", "--locked", "--all-features", "--manifest-path"])
            .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/../../Cargo.toml"))
            .output()
            .expect("cargo metadata starts");
        assert!(output.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&output.stderr));
        Self::from_metadata(&serde_json::from_slice(&output.stdout).expect("cargo metadata is JSON"))
    }

    fn from_metadata(metadata: &Value) -> Self {
        let list = |value: &Value| value.as_array().expect("a list in cargo metadata").clone();
        let text = |value: &Value| value.as_str().expect("a string in cargo metadata").to_owned();
        let names: BTreeMap<String, String> =
            list(&metadata["packages"]).iter().map(|p| (text(&p["id"]), text(&p["name"]))).collect();
        let members =
            list(&metadata["workspace_members"]).iter().map(|id| names[&text(id)].clone()).collect();
        let mut graph = Self { members, ..Self::default() };
        for node in list(&metadata["resolve"]["nodes"]) {
            let from = &names[&text(&node["id"])];
            for dependency in list(&node["deps"]) {
                let to = &names[&text(&dependency["pkg"])];
                graph.declared.entry(from.clone()).or_default().insert(to.clone());
                // A null kind is a normal dependency.
                if list(&dependency["dep_kinds"]).iter().any(|kind| kind["kind"] != "dev") {
                    graph.built.entry(from.clone()).or_default().insert(to.clone());
                }
            }
        }
        graph
    }

    /// Returns one sentence for each crate or dependency missing from the lists.
    fn wrong_arrows(&self) -> Vec<String> {
        let may = |list: &[(&str, &[&str])], from: &str, to: &str| {
            let to = to.strip_prefix("poolwright-");
            list.iter().any(|(name, targets)| *name == from && to.is_some_and(|to| targets.contains(&to)))
        };
        let mut wrong = Vec::new();
        for from in &self.members {
            if !ARROWS.iter().any(|(name, _)| name == from) {
                wrong.push(format!("{from} is a new crate: say in ARROWS what it may depend on"));
            }
            let built = self.built.get(from);
            for to in self.declared.get(from).into_iter().flatten().filter(|to| self.members.contains(*to)) {
                let is_built = built.is_some_and(|built| built.contains(to));
                if may(&ARROWS, from, to) || !is_built && may(&ARROWS_OF_TESTS, from, to) {
                    continue;
                }
                let whose =
                    if is_built { "an arrow of the architecture" } else { "an arrow its tests may take" };
                wrong.push(format!("{from} -> {to} is not {whose}"));
            }
        }
        wrong
    }

    /// Returns the shortest path from `pure` to each crate that it must not depend on.
    fn ways_out_of(&self, pure: &str) -> Vec<String> {
        let mut ways: BTreeMap<&str, String> = BTreeMap::from([(pure, pure.to_owned())]);
        let mut queue = VecDeque::from([pure]);
        let mut forbidden = Vec::new();
        while let Some(from) = queue.pop_front() {
            let way = ways[from].clone();
            for to in self.built.get(from).into_iter().flatten() {
                if ways.contains_key(to.as_str()) {
                    continue;
                }
                let way = format!("{way} -> {to}");
                if is_forbidden_in_pure_crates(to) {
                    forbidden.push(way.clone());
                } else {
                    queue.push_back(to);
                }
                ways.insert(to, way);
            }
        }
        forbidden
    }

    /// Returns the external crates that workspace crates depend on directly.
    fn direct_external(&self) -> BTreeSet<&str> {
        let direct = self.members.iter().filter_map(|name| self.declared.get(name)).flatten();
        direct.filter(|name| !self.members.contains(*name)).map(String::as_str).collect()
    }
}

#[test]
fn crates_depend_only_along_the_arrows_of_the_architecture() {
    let wrong = Graph::of_this_workspace().wrong_arrows();
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn pure_crates_depend_on_no_cluster_runtime_or_cloud() {
    let graph = Graph::of_this_workspace();
    for name in PURE {
        assert!(graph.members.contains(name), "{name} is gone: PURE must name the crates that decide");
        let ways = graph.ways_out_of(name);
        assert!(ways.is_empty(), "\n{}", ways.join("\n"));
    }
}

#[test]
fn dependencies_md_gives_a_reason_for_every_dependency_and_for_no_other() {
    let page = include_str!("../../../../docs/dependencies.md");
    let rows: Vec<(&str, &str)> = page
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once("` | "))
        .map(|(name, why)| (name, why.trim_end_matches('|').trim()))
        .collect();
    let listed: BTreeSet<&str> = rows.iter().map(|(name, _)| *name).collect();
    assert_eq!(listed.len(), rows.len(), "docs/dependencies.md lists a crate twice");
    let graph = Graph::of_this_workspace();
    let used = graph.direct_external();
    let missing: Vec<_> = used.difference(&listed).collect();
    assert!(missing.is_empty(), "docs/dependencies.md does not say why we depend on {missing:?}");
    let left_over: Vec<_> = listed.difference(&used).collect();
    assert!(left_over.is_empty(), "docs/dependencies.md lists {left_over:?}, which no crate depends on");
    let silent: Vec<_> = rows.iter().filter(|(_, why)| why.len() < 20).collect();
    assert!(silent.is_empty(), "docs/dependencies.md gives no reason for {silent:?}");
}

/// Makes up a workspace from dependencies (from, to, kind), where kind is null, "build" or "dev".
fn made_up(members: &[&str], dependencies: &[(&str, &str, Value)]) -> Graph {
    let names: BTreeSet<&str> =
        members.iter().copied().chain(dependencies.iter().flat_map(|(from, to, _)| [*from, *to])).collect();
    let node = |from: &&str| {
        let of_this = dependencies.iter().filter(|(name, ..)| name == from);
        let deps: Vec<Value> = of_this
            .map(|(_, to, kind)| serde_json::json!({"pkg": to, "dep_kinds": [{"kind": kind}]}))
            .collect();
        serde_json::json!({"id": from, "deps": deps})
    };
    Graph::from_metadata(&serde_json::json!({
        "packages": names.iter().map(|name| serde_json::json!({"id": name, "name": name})).collect::<Vec<_>>(),
        "workspace_members": members,
        "resolve": {"nodes": names.iter().map(node).collect::<Vec<_>>()},
    }))
}

#[test]
fn an_arrow_against_the_direction_is_reported() {
    let graph = made_up(
        &["poolwright-catalog", "poolwright-core"],
        &[
            ("poolwright-core", "poolwright-catalog", Value::Null),
            ("poolwright-catalog", "poolwright-core", "dev".into()),
        ],
    );
    assert_eq!(
        graph.wrong_arrows(),
        ["poolwright-catalog -> poolwright-core is not an arrow its tests may take"]
    );
}

#[test]
fn an_arrow_for_tests_does_not_allow_a_built_dependency() {
    let members = ["poolwright-plane", "poolwright-provider-registry"];
    let arrow = |kind: Value| made_up(&members, &[(members[0], members[1], kind)]).wrong_arrows();
    assert_eq!(arrow("dev".into()), Vec::<String>::new());
    let built = ["poolwright-plane -> poolwright-provider-registry is not an arrow of the architecture"];
    assert_eq!(arrow(Value::Null), built);
}

#[test]
fn an_unlisted_crate_is_reported() {
    let wrong = made_up(&["poolwright-attic"], &[]).wrong_arrows();
    assert_eq!(wrong, ["poolwright-attic is a new crate: say in ARROWS what it may depend on"]);
}

#[test]
fn the_path_to_a_forbidden_crate_includes_build_dependencies_but_not_tests() {
    let graph = made_up(
        &["poolwright-core"],
        &[
            ("poolwright-core", "innocent", Value::Null),
            ("poolwright-core", "tokio", "dev".into()),
            ("innocent", "kube-client", "build".into()),
            ("innocent", "kubernetes-less", Value::Null),
        ],
    );
    assert_eq!(graph.ways_out_of("poolwright-core"), ["poolwright-core -> innocent -> kube-client"]);
}
