//! Resolves the placement group of a node class.

use aws_sdk_ec2::types::{Filter, PlacementGroup as Described, PlacementGroupState, PlacementStrategy};
use poolwright_provider_contract::ProviderError;

use super::unusable;
use crate::error::{code, provider_error};
use crate::node_class::{PlacementGroup, ResolvedPlacementGroup};

const FIELD: &str = "placementGroup";

/// Returns the placement group that a class names, if nodes can be launched into it.
pub(super) async fn find(
    ec2: &aws_sdk_ec2::Client,
    class: &str,
    wanted: &PlacementGroup,
) -> Result<ResolvedPlacementGroup, ProviderError> {
    let ask = ec2.describe_placement_groups();
    let asked = match (&wanted.id, &wanted.name) {
        // A group that another account shares can only be found by its id. Source:
        // <https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribePlacementGroups.html>.
        (Some(id), _) => ask.group_ids(id),
        // Use a filter, because a missing name in the parameter is an error.
        (None, Some(name)) => ask.filters(Filter::builder().name("group-name").values(escaped(name)).build()),
        (None, None) => return Err(unusable(class, FIELD, "give a name or an id")),
    };
    let found = match asked.send().await {
        Ok(found) => found.placement_groups.unwrap_or_default(),
        Err(error) if code(&error).is_some_and(|code| code.starts_with("InvalidPlacementGroup")) => {
            Vec::new()
        }
        Err(error) => return Err(provider_error("ec2:DescribePlacementGroups", error)),
    };
    let of_group = |one: &&Described| one.state() != Some(&PlacementGroupState::Deleted);
    usable(wanted, found.iter().find(of_group)).map_err(|why| unusable(class, FIELD, why))
}

/// Returns the placement group if nodes can be launched into it, else the cause and the next step.
fn usable(wanted: &PlacementGroup, found: Option<&Described>) -> Result<ResolvedPlacementGroup, String> {
    let name = wanted.id.as_deref().or(wanted.name.as_deref()).unwrap_or_default();
    let Some(found) = found else {
        return Err(format!(
            "there is no placement group `{name}` in this region: correct it, or create one (aws ec2 create-placement-group \
             --group-name NAME --strategy cluster)"
        ));
    };
    let state = found.state().map_or("unknown", PlacementGroupState::as_str);
    if state != PlacementGroupState::Available.as_str() {
        return Err(format!(
            "the placement group `{name}` is {state} and not available: wait until it is, or name another one"
        ));
    }
    let strategy = found.strategy().map_or("unknown", PlacementStrategy::as_str);
    let partitions = found.partition_count().unwrap_or(0);
    match wanted.partition {
        Some(partition) if strategy != PlacementStrategy::Partition.as_str() => {
            return Err(format!(
                "the placement group `{name}` has no partition {partition}, because its strategy is {strategy}: remove \
                 placementGroup.partition, or name a group with the strategy partition"
            ));
        }
        Some(partition) if partition > partitions => {
            return Err(format!(
                "the placement group `{name}` has no partition {partition}, only 1 to {partitions}: correct placementGroup.partition, \
                 or remove it"
            ));
        }
        _ => {}
    }
    Ok(ResolvedPlacementGroup {
        id: found.group_id().unwrap_or(name).to_owned(),
        strategy: strategy.to_owned(),
    })
}

/// Escapes a name, because `*` and `?` are wildcards in EC2's filters, and a class names exactly one group.
/// Source: <https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/Using_Filtering.html>.
fn escaped(value: &str) -> String {
    let mut escaped = String::with_capacity(value.len());
    for c in value.chars() {
        if matches!(c, '*' | '?' | '\\') {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_placement_group_is_exact() {
        assert_eq!(escaped(r"train*-?\x"), r"train\*-\?\\x");
    }

    fn described(state: PlacementGroupState, strategy: PlacementStrategy, partitions: i32) -> Described {
        Described::builder()
            .group_id("pg-1")
            .group_name("training")
            .state(state)
            .strategy(strategy)
            .partition_count(partitions)
            .build()
    }

    fn named(partition: Option<i32>) -> PlacementGroup {
        PlacementGroup { name: Some("training".to_owned()), id: None, partition }
    }

    #[test]
    fn a_group_that_nodes_cannot_be_launched_into_is_told_with_what_to_do() {
        let available = |strategy| described(PlacementGroupState::Available, strategy, 0);
        let three = described(PlacementGroupState::Available, PlacementStrategy::Partition, 3);
        for (wanted, found, words) in [
            (named(None), None, "no placement group `training` in this region: correct it, or create one"),
            (
                named(None),
                Some(described(PlacementGroupState::Deleting, PlacementStrategy::Cluster, 0)),
                "is deleting and not available: wait",
            ),
            (
                named(Some(1)),
                Some(available(PlacementStrategy::Cluster)),
                "its strategy is cluster: remove placementGroup.partition",
            ),
            (named(Some(4)), Some(three.clone()), "has no partition 4, only 1 to 3"),
        ] {
            let why = usable(&wanted, found.as_ref()).expect_err(words);
            assert!(why.contains(words), "{why}");
        }
        let resolved = |strategy: &str| {
            Ok(ResolvedPlacementGroup { id: "pg-1".to_owned(), strategy: strategy.to_owned() })
        };
        assert_eq!(usable(&named(Some(3)), Some(&three)), resolved("partition"));
        assert_eq!(usable(&named(None), Some(&available(PlacementStrategy::Spread))), resolved("spread"));
    }
}
