//! Shrinks cases that fail.

use serde_json::Value;

use crate::case::{Case, name};

/// Returns every case that is one step smaller, the largest steps first.
pub fn smaller(case: &Case) -> Vec<Case> {
    let mut cases = Vec::new();
    let mut push = |change: &dyn Fn(&mut Case)| {
        let mut smaller = case.clone();
        change(&mut smaller);
        if smaller != *case {
            cases.push(smaller);
        }
    };
    // The largest steps remove half of the pods.
    let half = case.waiting.len() / 2;
    push(&|case| drop(case.waiting.drain(..half)));
    push(&|case| drop(case.waiting.drain(half..)));
    push(&|case| case.running.clear());
    push(&|case| case.daemonsets.clear());
    push(&|case| {
        case.nodes.clear();
        case.running.clear();
    });
    push(&|case| case.reserved = false);
    push(&|case| case.last_offering = false);
    for at in 0..case.waiting.len() {
        push(&|case| drop(case.waiting.remove(at)));
    }
    for at in 0..case.nodes.len() {
        push(&|case| {
            let node = case.nodes.remove(at);
            case.running.retain(|pod| pod["spec"]["nodeName"] != name(&node));
        });
    }
    for at in 0..case.running.len() {
        push(&|case| drop(case.running.remove(at)));
    }
    for at in 0..case.daemonsets.len() {
        push(&|case| drop(case.daemonsets.remove(at)));
    }
    for at in 0..case.pools.len() {
        push(&|case| drop(case.pools.remove(at)));
    }
    for at in 0..case.kinds.len() {
        push(&|case| drop(case.kinds.remove(at)));
        for zone in case.kinds[at].prices.keys() {
            push(&|case| drop(case.kinds[at].prices.remove(zone)));
        }
    }
    let lists: [fn(&mut Case) -> &mut Vec<Value>; 5] = [
        |case| &mut case.waiting,
        |case| &mut case.running,
        |case| &mut case.daemonsets,
        |case| &mut case.pools,
        |case| &mut case.nodes,
    ];
    for list in lists {
        let objects = list(&mut case.clone()).clone();
        for (at, object) in objects.iter().enumerate() {
            for path in removable(object) {
                push(&|case| remove(&mut list(case)[at], &path));
            }
        }
    }
    cases
}

/// The path to a part of an object.
type Path = Vec<String>;

/// Returns the paths of all removable parts of an object, outermost first.
fn removable(object: &Value) -> Vec<Path> {
    /// Fields without which an object is invalid or a different object.
    const NEEDED: [&str; 20] = [
        "apiVersion",
        "kind",
        "metadata",
        "spec",
        "name",
        "namespace",
        "nodeName",
        "image",
        "containers",
        "selector",
        "template",
        "nodeClassRef",
        "status",
        "topologyKey",
        "maxSkew",
        "whenUnsatisfiable",
        "operator",
        "key",
        "kubernetes.io/hostname",
        "allocatable",
    ];
    fn walk(value: &Value, path: &mut Path, found: &mut Vec<Path>) {
        let fields: Vec<(String, &Value)> = match value {
            Value::Object(fields) => fields.iter().map(|(key, value)| (key.clone(), value)).collect(),
            Value::Array(items) => {
                items.iter().enumerate().map(|(at, value)| (at.to_string(), value)).collect()
            }
            _ => Vec::new(),
        };
        for (key, value) in fields {
            path.push(key.clone());
            let in_status = path.first().is_some_and(|first| first == "status");
            // A pod needs a container.
            let needed = path.iter().rev().nth(1).is_some_and(|parent| parent == "containers");
            if !NEEDED.contains(&key.as_str()) && !in_status && !needed {
                found.push(path.clone());
            }
            if !in_status {
                walk(value, path, found);
            }
            path.pop();
        }
    }
    let mut found = Vec::new();
    walk(object, &mut Vec::new(), &mut found);
    found.sort_by_key(Vec::len);
    found
}

fn remove(object: &mut Value, path: &[String]) {
    let Some((last, way)) = path.split_last() else { return };
    let mut at = object;
    for step in way {
        at = match at {
            Value::Array(items) => match step.parse::<usize>().ok().and_then(|index| items.get_mut(index)) {
                Some(item) => item,
                None => return,
            },
            other => &mut other[step.as_str()],
        };
    }
    match at {
        Value::Array(items) => {
            if let Ok(index) = last.parse::<usize>()
                && index < items.len()
            {
                items.remove(index);
            }
        }
        Value::Object(fields) => drop(fields.remove(last)),
        _ => {}
    }
}

/// Returns the smallest case found for which `fails` still holds, after at most `tries` tries.
pub async fn shrink(case: Case, tries: u32, mut fails: impl AsyncFnMut(&Case) -> bool) -> Case {
    let mut best = case;
    let mut left = tries;
    loop {
        let mut at = 0;
        let mut found = false;
        let mut candidates = smaller(&best);
        while at < candidates.len() && left > 0 {
            left -= 1;
            if fails(&candidates[at]).await {
                best = candidates.swap_remove(at);
                // The earlier candidates were already tried, on a case that was hardly larger.
                candidates = smaller(&best);
                found = true;
            } else {
                at += 1;
            }
        }
        if !found || left == 0 {
            return best;
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(name: &str, cpu: &str) -> Value {
        let requests = json!({"cpu": cpu, "memory": "1Gi"});
        json!({
            "metadata": {"name": name, "namespace": "red", "labels": {"app": "web"}},
            "spec": {"containers": [{"name": "main", "image": "none", "resources": {"requests": requests}}]},
        })
    }

    #[tokio::test]
    async fn a_failing_case_shrinks_to_its_cause() {
        let waiting = vec![pod("a", "1"), pod("b", "2"), pod("c", "3"), pod("d", "1")];
        let nodes = vec![json!({"metadata": {"name": "n0"}})];
        let case = Case { waiting, nodes, reserved: true, ..Case::default() };
        let smallest = shrink(case, 1000, async |case| {
            case.waiting
                .iter()
                .any(|pod| pod.pointer("/spec/containers/0/resources/requests/cpu") == Some(&json!("3")))
        })
        .await;
        assert_eq!((smallest.nodes.len(), smallest.reserved), (0, false));
        let only = json!({
            "metadata": {"name": "c", "namespace": "red"},
            "spec": {"containers": [{"name": "main", "image": "none", "resources": {"requests": {"cpu": "3"}}}]},
        });
        assert_eq!(smallest.waiting, [only]);
    }
}
