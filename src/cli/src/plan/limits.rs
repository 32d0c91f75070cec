//! `--limit`: limits over all pools together. `--namespace-limit`: limits of each namespace. `--namespace-budget`: their monthly budgets.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use poolwright_api::meant;
use poolwright_catalog::{Catalogue, InstanceType, MigModel, ResourceName, Usd, UsdPerHour, quantity};
use poolwright_core::plan::Sharing;
use poolwright_core::{MonthlyBudget, NamespaceLimit, NamespaceLimits, Pool, PoolLimits};

use crate::exit::Failure;
use crate::problems::Problems;

/// The resources whose names have no domain in Kubernetes.
const NATIVE: [&str; 4] =
    [ResourceName::CPU, ResourceName::MEMORY, ResourceName::EPHEMERAL_STORAGE, ResourceName::PODS];

/// Parses limits from `KEY=AMOUNT` texts, with the keys of `spec.limits` of a NodePool. All problems are reported together.
pub fn limits(texts: &[String]) -> Result<PoolLimits, Failure> {
    let mut limits = PoolLimits::default();
    let mut problems = Problems::new();
    for text in texts {
        if let Err(problem) = add(&mut limits, text) {
            problems.push(format!("--limit {text}: {problem}"));
        }
    }
    problems.or(limits).map_err(refused)
}

/// Parses limits of each namespace from `KEY=AMOUNT` texts. All problems are reported together.
pub fn namespace_limits(texts: &[String]) -> Result<NamespaceLimits, Failure> {
    let mut limits = NamespaceLimits::new();
    let mut problems = Problems::new();
    for text in texts {
        if let Err(problem) = add_of_namespace(&mut limits, text) {
            problems.push(format!("--namespace-limit {text}: {problem}"));
        }
    }
    problems.or(limits).map_err(refused)
}

fn add_of_namespace(limits: &mut NamespaceLimits, text: &str) -> Result<(), String> {
    let (key, amount) =
        text.split_once('=').ok_or("has no `=`; write KEY=AMOUNT, like nodes=10, gpus=8 or usdPerHour=40")?;
    let key = key.trim();
    let limit = NamespaceLimit::ALL.into_iter().find(|limit| limit.name() == key);
    let limit = limit
        .ok_or_else(|| format!("`{key}` is not a limit of a namespace; use nodes, gpus or usdPerHour"))?;
    if limits.insert(limit, limit.read(amount)?).is_some() {
        return Err(format!("`{key}` is limited twice; keep one"));
    }
    Ok(())
}

/// Parses monthly budgets of namespaces from `NAMESPACE=USD` texts. All problems are reported together.
pub fn namespace_budgets(texts: &[String]) -> Result<BTreeMap<String, MonthlyBudget>, Failure> {
    let mut budgets = BTreeMap::new();
    let mut problems = Problems::new();
    for text in texts {
        if let Err(problem) = add_budget(&mut budgets, text) {
            problems.push(format!("--namespace-budget {text}: {problem}"));
        }
    }
    let refused = |problems| Failure::bad_input(format!("the budgets cannot be used: {problems}"));
    problems.or(budgets).map_err(refused)
}

fn add_budget(budgets: &mut BTreeMap<String, MonthlyBudget>, text: &str) -> Result<(), String> {
    let (name, rest) = text.split_once('=').ok_or("has no `=`; write NAMESPACE=USD, like team-a=5000")?;
    let (amount, action) = rest.split_once(',').unwrap_or((rest, "Warn"));
    let usd = Usd::read(amount)
        .ok_or_else(|| format!("`{amount}` is not an amount of US dollars; write such as 5000 or 1250.50"))?;
    let stops_buying = match action {
        "Warn" => false,
        "StopBuying" => true,
        _ => return Err(format!("`{action}` is neither Warn nor StopBuying; write one of these words")),
    };
    let budget = MonthlyBudget { usd, stops_buying, spend: None };
    if name.is_empty() {
        return Err("names no namespace; write NAMESPACE=USD, like team-a=5000".to_owned());
    }
    if budgets.insert(name.to_owned(), budget).is_some() {
        return Err(format!("`{name}` has two budgets; keep one"));
    }
    Ok(())
}

fn refused(problems: Problems) -> Failure {
    Failure::bad_input(format!("the limits cannot be used: {problems}"))
}

/// The names of the resources that instance types have, or get if their GPUs are cut into MIG instances. A limit on any other resource
/// limits nothing.
pub struct Sold {
    names: BTreeSet<String>,
}

impl Sold {
    /// Returns the names of a catalogue, and of what node classes sell.
    pub fn of<'c>(
        catalogue: &'c Catalogue,
        sold: impl IntoIterator<Item = &'c Arc<Catalogue>>,
        sharing: Sharing,
    ) -> Self {
        let mut names = BTreeSet::new();
        for catalogue in std::iter::once(catalogue).chain(sold.into_iter().map(AsRef::as_ref)) {
            for (name, _) in catalogue.types().values().flat_map(|kind| kind.allocatable.iter()) {
                if !names.contains(name.as_str()) {
                    names.insert(name.to_string());
                }
            }
            if matches!(sharing, Sharing::Mig { .. }) {
                names.extend(catalogue.types().values().flat_map(instances));
            }
        }
        Self { names }
    }

    /// Judges the limits of `--limit`. Returns a note about each that limits nothing.
    ///
    /// # Errors
    ///
    /// The name of a resource that no instance type has is like that of another resource, so it is probably
    /// misspelt.
    pub fn judge(&self, limits: &PoolLimits) -> Result<Vec<String>, Failure> {
        let (mut notes, mut problems) = (Vec::new(), Problems::new());
        for (name, meant) in self.lacks(limits) {
            match meant {
                Some(meant) => {
                    problems
                        .push(format!("--limit {name}: no instance type has {name}; did you mean {meant}?"));
                }
                None => notes.push(format!("--limit {name}: {}", limits_nothing(name))),
            }
        }
        problems.or(notes).map_err(refused)
    }

    /// Returns a note about each limit of a NodePool that limits nothing.
    pub fn notes<'p>(&self, pools: impl IntoIterator<Item = &'p Pool>) -> Vec<String> {
        let mut notes = Vec::new();
        for pool in pools {
            for (name, meant) in self.lacks(&pool.limits) {
                let hint = meant.map_or_else(String::new, |meant| format!("; did you mean {meant}?"));
                notes.push(format!("NodePool {}: {}{hint}", pool.name, limits_nothing(name)));
            }
        }
        notes
    }

    /// Returns the limited resources that no instance type has, each with the one that is probably meant.
    fn lacks<'l>(&'l self, limits: &'l PoolLimits) -> Vec<(&'l str, Option<&'l str>)> {
        let names = limits.resources.keys().map(ResourceName::as_str);
        let unsold = names.filter(|name| !self.names.contains(*name));
        let with_meant = unsold.map(|name| {
            // A catalogue without GPUs does not have this name either.
            let known = self.names.iter().map(String::as_str).chain([ResourceName::NVIDIA_GPU]);
            (name, meant(name, known).filter(|meant| *meant != name))
        });
        with_meant.collect()
    }
}

/// Returns the resources of the MIG instances that GPUs of a type can be cut into.
fn instances(kind: &InstanceType) -> impl Iterator<Item = String> {
    let model = kind.gpu.as_ref().and_then(MigModel::of);
    model.into_iter().flat_map(|model| model.kinds.iter().filter_map(move |one| model.resource(one.profile)))
}

fn limits_nothing(name: &str) -> String {
    format!("no instance type has {name}, so this limit limits nothing")
}

fn add(limits: &mut PoolLimits, text: &str) -> Result<(), String> {
    let (key, amount) = text
        .split_once('=')
        .ok_or("has no `=`; write KEY=AMOUNT, like usdPerHour=40, nodes=10 or nvidia.com/gpu=16")?;
    let (key, amount) = (key.trim(), amount.trim());
    let is_again = match key {
        "usdPerHour" => {
            let money: UsdPerHour = amount
                .parse()
                .map_err(|error| format!("{error}; write a plain decimal number, such as 40"))?;
            limits.usd_per_hour.replace(money).is_some()
        }
        "nodes" => {
            let nodes = amount
                .parse()
                .map_err(|_| format!("`{amount}` is not a number of nodes; write a whole number"))?;
            limits.nodes.replace(nodes).is_some()
        }
        _ if NATIVE.contains(&key) || key.contains('/') || key.starts_with("hugepages-") => {
            let amount = quantity::amount(key, amount).map_err(|error| error.to_string())?;
            limits.resources.insert(ResourceName::new(key), amount).is_some()
        }
        _ => {
            return Err(format!(
                "`{key}` is not a limit; use usdPerHour, nodes, {} or an extended resource like nvidia.com/gpu",
                NATIVE.join(", ")
            ));
        }
    };
    if is_again { Err(format!("`{key}` is limited twice; keep one")) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(texts: &[&str]) -> Result<PoolLimits, String> {
        let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
        limits(&texts).map_err(|failure| match failure {
            Failure::BadInput(message) => message,
            other => panic!("{other:?}"),
        })
    }

    #[test]
    fn money_nodes_and_resources_can_be_limited() {
        let limits = of(&["usdPerHour=40.5", "nodes=10", "nvidia.com/gpu=16", "memory=1Ti"]).unwrap();
        assert_eq!(limits.usd_per_hour, Some("40.5".parse().unwrap()));
        assert_eq!(limits.nodes, Some(10));
        assert_eq!(limits.resources[&ResourceName::new("nvidia.com/gpu")], 16);
        assert_eq!(limits.resources[&ResourceName::new("memory")], 1 << 40);
    }

    #[test]
    fn a_limit_on_a_resource_that_nobody_sells_is_refused_if_it_is_misspelt_and_noted_otherwise() {
        let sold = Sold::of(&poolwright_catalog::builtin(), [], Sharing::Whole);
        assert_eq!(sold.judge(&of(&["nvidia.com/gpu=2", "cpu=4"]).unwrap()).unwrap(), [""; 0]);
        let Err(Failure::BadInput(said)) = sold.judge(&of(&["nvidia.com/gpus=2"]).unwrap()) else {
            panic!("it is refused")
        };
        let expected =
            "--limit nvidia.com/gpus: no instance type has nvidia.com/gpus; did you mean nvidia.com/gpu?";
        assert!(said.contains(expected), "{said}");
        assert_eq!(
            sold.judge(&of(&["example.com/dongle=2"]).unwrap()).unwrap(),
            [
                "--limit example.com/dongle: no instance type has example.com/dongle, so this limit limits nothing"
            ]
        );
    }

    #[test]
    fn a_limit_on_mig_instances_is_noted_only_if_no_gpu_is_cut_into_them() {
        let limits = of(&["nvidia.com/mig-1g.5gb=2"]).unwrap();
        let told = |sharing| Sold::of(&poolwright_catalog::builtin(), [], sharing).judge(&limits).unwrap();
        assert_eq!(told(Sharing::Mig { mixed: false }), [""; 0]);
        let whole = "--limit nvidia.com/mig-1g.5gb: no instance type has nvidia.com/mig-1g.5gb, so this limit limits nothing";
        assert_eq!(told(Sharing::Whole), [whole]);
    }

    #[test]
    fn limits_of_namespaces_are_read_and_wrong_ones_are_reported_together() {
        let read = |texts: &[&str]| {
            let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
            namespace_limits(&texts)
        };
        let limits = read(&["nodes=10", "gpus=8", "usdPerHour=40.5"]).unwrap();
        let all = NamespaceLimit::ALL.map(|limit| limits[&limit]);
        assert_eq!(all, [10, 8000, 40_500_000]);
        let Err(Failure::BadInput(said)) = read(&["8", "cpu=4", "gpus=few", "nodes=1", "nodes=2"]) else {
            panic!("they are refused")
        };
        for part in [
            "4 problems",
            "--namespace-limit 8: has no `=`",
            "--namespace-limit cpu=4: `cpu` is not a limit of a namespace",
            "--namespace-limit gpus=few: `few` is not a whole number",
            "--namespace-limit nodes=2: `nodes` is limited twice",
        ] {
            assert!(said.contains(part), "{part}: {said}");
        }
    }

    #[test]
    fn budgets_of_namespaces_are_read_and_all_invalid_ones_are_reported_together() {
        let read = |texts: &[&str]| {
            let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
            namespace_budgets(&texts)
        };
        let budgets = read(&["team-a=5000", "team-b=12.5,StopBuying"]).unwrap();
        let seen = |name: &str| (budgets[name].usd, budgets[name].stops_buying);
        assert_eq!((seen("team-a"), seen("team-b")), ((Usd(5_000_000_000), false), (Usd(12_500_000), true)));
        let Err(Failure::BadInput(said)) = read(&["a", "=5", "a=5k", "a=5,Stop", "a=5", "a=6"]) else {
            panic!("they are refused")
        };
        for part in [
            "5 problems",
            "--namespace-budget a: has no `=`",
            "--namespace-budget =5: names no namespace",
            "--namespace-budget a=5k: `5k` is not an amount of US dollars",
            "--namespace-budget a=5,Stop: `Stop` is neither Warn nor StopBuying",
            "--namespace-budget a=6: `a` has two budgets",
        ] {
            assert!(said.contains(part), "{part}: {said}");
        }
    }

    #[test]
    fn all_invalid_limits_are_reported_together() {
        let said =
            of(&["40", "usdperhour=40", "usdPerHour=-1", "nodes=many", "cpu=1,5", "nodes=1", "nodes=2"])
                .unwrap_err();
        for part in [
            "6 problems",
            "--limit 40: has no `=`",
            "--limit usdperhour=40: `usdperhour` is not a limit",
            "--limit usdPerHour=-1: ",
            "--limit nodes=many: `many` is not a number of nodes",
            "--limit cpu=1,5: ",
            "--limit nodes=2: `nodes` is limited twice",
        ] {
            assert!(said.contains(part), "{part}: {said}");
        }
    }
}
