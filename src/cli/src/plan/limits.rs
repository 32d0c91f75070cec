//! `--limit`: limits over all pools together.

use poolwright_catalog::{ResourceName, UsdPerHour, quantity};
use poolwright_core::PoolLimits;

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
    problems
        .or(limits)
        .map_err(|problems| Failure::bad_input(format!("the limits cannot be used: {problems}")))
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
