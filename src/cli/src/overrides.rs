//! `--consolidation`, `--min-values`, `--on-demand-floor` and `--max-spot-share`: count instead of fields of all NodePools.

use std::sync::Arc;

use poolwright_core::{CountOrPercent, Pool, ScaleToZero, Snapshot};
use serde_json::{Value, json};

use crate::args::{ConsolidationChoice, LeastValues, PoolOverrides};
use crate::exit::Failure;

/// Puts the overrides into the pools of a snapshot. Returns a note about each.
///
/// # Errors
/// They contradict each other, or the user wrote no pool.
pub fn in_snapshot(overrides: &PoolOverrides, snapshot: &mut Snapshot) -> Result<Vec<String>, Failure> {
    overrides.check().map_err(Failure::bad_input)?;
    let notes = notes(overrides);
    if notes.is_empty() {
        return Ok(notes);
    }
    if let Some(flag) = overrides.first_flag().filter(|_| snapshot.has_implicit_pool()) {
        return Err(Failure::bad_input(format!(
            "{flag}: counts instead of a field of NodePools, and there is none; add a NodePool, or remove {flag}"
        )));
    }
    let mut pools: Vec<Pool> = snapshot.pools.values().map(|pool| Pool::clone(pool)).collect();
    for pool in &mut pools {
        in_pool(overrides, pool);
    }
    snapshot.pools.extend(pools.into_iter().map(|pool| (pool.name.clone(), Arc::new(pool))));
    Ok(notes)
}

fn in_pool(overrides: &PoolOverrides, pool: &mut Pool) {
    if let Some(choice) = overrides.consolidation {
        pool.disruption.consolidates = choice == ConsolidationChoice::WhenEmptyOrUnderutilized;
        if choice == ConsolidationChoice::Never {
            pool.disruption.retires = false;
            pool.scale_to_zero = ScaleToZero::Never;
        }
    }
    for LeastValues { label, at_least } in &overrides.min_values {
        match at_least {
            0 => pool.min_values.remove(label),
            _ => pool.min_values.insert(label.clone(), *at_least),
        };
    }
    // A static pool has no rules on spot nodes.
    if pool.replicas.is_some() {
        return;
    }
    if let Some(floor) = overrides.on_demand_floor {
        pool.spot.set_floor(floor);
    }
    if let Some(most) = overrides.max_spot_share {
        pool.spot.set_max_share(most);
    }
}

/// Puts `--on-demand-floor` and `--max-spot-share` into a NodePool that an API server accepts.
pub fn spot_rules_in_object(overrides: &PoolOverrides, pool: &mut Value) {
    if !pool["spec"]["replicas"].is_null() {
        return;
    }
    if let Some(floor) = overrides.on_demand_floor {
        pool["spec"]["spot"]["onDemandFloor"] = in_words(floor).into();
    }
    if let Some(most) = overrides.max_spot_share {
        pool["spec"]["spot"]["maxShare"] = format!("{most}%").into();
    }
}

fn in_words(floor: CountOrPercent) -> String {
    match floor {
        CountOrPercent::Count(nodes) => nodes.to_string(),
        CountOrPercent::Percent(percent) => format!("{percent}%"),
    }
}

/// Puts `--min-values` into a NodePool that an API server accepts.
pub fn min_values_in_object(overrides: &PoolOverrides, pool: &mut Value) {
    for LeastValues { label, at_least } in &overrides.min_values {
        let requirements = &mut pool["spec"]["template"]["spec"]["requirements"];
        if requirements.is_null() {
            *requirements = json!([]);
        }
        let Some(requirements) = requirements.as_array_mut() else { continue };
        let of_label = |one: &Value| one["key"] == label.as_str();
        for fields in requirements.iter_mut().filter(|one| of_label(one)).filter_map(Value::as_object_mut) {
            fields.remove("minValues");
        }
        if *at_least == 0 {
            continue;
        }
        let exists = requirements.iter_mut().find(|one| of_label(one) && one["operator"] == "Exists");
        match exists {
            Some(requirement) => requirement["minValues"] = (*at_least).into(),
            None => requirements.push(json!({"key": label, "operator": "Exists", "minValues": at_least})),
        }
    }
}

/// Says which fields of the pools do not count.
pub fn notes(overrides: &PoolOverrides) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some(choice) = overrides.consolidation {
        let fields: Vec<&str> =
            choice.fields().iter().filter_map(|field| Some(field.split_once('=')?.0)).collect();
        notes.push(format!("--consolidation {choice}: counts instead of {} of the pools", fields.join(", ")));
    }
    notes.extend(overrides.min_values.iter().map(|LeastValues { label, at_least }| {
        format!("--min-values {label}={at_least}: counts instead of minValues of this label in the pools")
    }));
    notes.extend(overrides.on_demand_floor.map(|floor| {
        format!("--on-demand-floor {}: counts instead of spot.onDemandFloor of the pools", in_words(floor))
    }));
    notes.extend(
        overrides
            .max_spot_share
            .map(|most| format!("--max-spot-share {most}%: counts instead of spot.maxShare of the pools")),
    );
    notes
}

/// Names the flag instead of the field in a message about a pod without a node, where the flag set the rule.
pub fn in_message(overrides: &PoolOverrides, message: &mut String) {
    let rules = [
        ("spec.spot.onDemandFloor", "--on-demand-floor", overrides.on_demand_floor.is_some()),
        ("spec.spot.maxShare", "--max-spot-share", overrides.max_spot_share.is_some()),
    ];
    for (field, flag, is_set) in rules {
        if is_set && message.contains(field) {
            *message = message.replace(field, flag).replace("raise maxShare", &format!("raise {flag}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use poolwright_core::Disruption;
    use poolwright_intake::manifest;

    use super::*;

    const ZONE: &str = "topology.kubernetes.io/zone";
    const TYPE: &str = "node.kubernetes.io/instance-type";

    fn object(requirements: &Value) -> Value {
        json!({"apiVersion": "poolwright.dev/v1alpha1", "kind": "NodePool", "metadata": {"name": "gpu"}, "spec": {
            "template": {"spec": {
                "nodeClassRef": {"group": "poolwright.dev", "kind": "KwokNodeClass", "name": "aws"},
                "requirements": requirements,
            }},
        }})
    }

    fn pool(object: &Value) -> Pool {
        let mut read = manifest::parse("pool.yaml", &object.to_string()).expect("a pool");
        read.pools.remove(0)
    }

    fn asking(least: &[(&str, u32)]) -> PoolOverrides {
        let values = least
            .iter()
            .map(|(label, at_least)| LeastValues { label: (*label).to_owned(), at_least: *at_least });
        PoolOverrides { min_values: values.collect(), ..PoolOverrides::default() }
    }

    #[test]
    fn plan_and_simulate_ask_for_the_same_choice() {
        let all = [
            json!([]),
            json!([{"key": TYPE, "operator": "Exists", "minValues": 5}]),
            json!([{"key": TYPE, "operator": "In", "values": ["a", "b", "c"], "minValues": 3}]),
            json!([{"key": TYPE, "operator": "Exists"}, {"key": ZONE, "operator": "Exists", "minValues": 2}]),
        ];
        for requirements in &all {
            for overrides in [asking(&[]), asking(&[(TYPE, 2)]), asking(&[(TYPE, 0), (ZONE, 3)])] {
                let mut changed = object(requirements);
                min_values_in_object(&overrides, &mut changed);
                let mut planned = pool(&object(requirements));
                in_pool(&overrides, &mut planned);
                assert_eq!(pool(&changed).min_values, planned.min_values, "{overrides:?}: {changed}");
            }
        }
        let mut changed = object(&all[2]);
        min_values_in_object(&asking(&[(TYPE, 2)]), &mut changed);
        assert_eq!(
            pool(&changed).min_values,
            BTreeMap::from([(TYPE.to_owned(), 2)]),
            "it counts instead of 3"
        );
    }

    #[test]
    fn plan_and_simulate_keep_the_same_rules_on_spot_nodes() {
        let mut with_rules = object(&json!([]));
        with_rules["spec"]["spot"] = json!({"onDemandFloor": "3", "maxShare": "50%"});
        let mut with_replicas = object(&json!([]));
        with_replicas["spec"]["replicas"] = 2.into();
        let floor = |floor| PoolOverrides { on_demand_floor: Some(floor), ..PoolOverrides::default() };
        let both = PoolOverrides { max_spot_share: Some(40), ..floor(CountOrPercent::Percent(20)) };
        let neither = PoolOverrides { max_spot_share: Some(100), ..floor(CountOrPercent::Count(0)) };
        for given in [&object(&json!([])), &with_rules, &with_replicas] {
            for overrides in [&PoolOverrides::default(), &floor(CountOrPercent::Count(1)), &both, &neither] {
                let mut changed = given.clone();
                spot_rules_in_object(overrides, &mut changed);
                let mut planned = pool(given);
                in_pool(overrides, &mut planned);
                assert_eq!(pool(&changed).spot, planned.spot, "{overrides:?}: {changed}");
            }
        }
        let mut planned = pool(&with_rules);
        in_pool(&both, &mut planned);
        assert_eq!(planned.spot.on_demand_floor, Some(CountOrPercent::Percent(20)));
        assert_eq!(planned.spot.max_share, Some(40));
        in_pool(&neither, &mut planned);
        assert!(planned.spot.is_empty());
    }

    #[test]
    fn a_message_names_the_flag_if_a_flag_set_the_rule() {
        let written = "pool `a` keeps a rule (spec.spot.maxShare); raise maxShare";
        let told = |overrides: &PoolOverrides| {
            let mut message = written.to_owned();
            in_message(overrides, &mut message);
            message
        };
        assert_eq!(told(&PoolOverrides::default()), written);
        let share = PoolOverrides { max_spot_share: Some(40), ..PoolOverrides::default() };
        assert_eq!(told(&share), "pool `a` keeps a rule (--max-spot-share); raise --max-spot-share");
    }

    #[test]
    fn each_consolidation_is_what_its_fields_say() {
        for choice in [
            ConsolidationChoice::Never,
            ConsolidationChoice::WhenEmpty,
            ConsolidationChoice::WhenEmptyOrUnderutilized,
        ] {
            let mut with_fields = object(&json!([]));
            for field in choice.fields() {
                let (path, value) = field.split_once('=').expect("a field and its value");
                let (group, name) = path.split_once('.').expect("a field of a field");
                with_fields["spec"][group][name] = value.into();
            }
            let fields = pool(&with_fields);
            let mut planned = pool(&object(&json!([])));
            in_pool(&PoolOverrides { consolidation: Some(choice), ..PoolOverrides::default() }, &mut planned);
            let of = |pool: &Pool| {
                let Disruption { consolidates, retires, .. } = pool.disruption;
                (consolidates, retires, pool.scale_to_zero)
            };
            assert_eq!(of(&fields), of(&planned), "{choice}");
        }
    }
}
