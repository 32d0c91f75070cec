//! The pods that controllers lack, as a plan counts them.

use std::collections::BTreeMap;

use poolwright_intake::manifest::MissingPods;
use serde_json::Value;

use super::template::Template;
use super::{name_of, namespace_of};

/// The names of these pods.
pub(super) struct Missing {
    /// By kind, namespace and name of the controller, and then by the beginning of their names.
    all: BTreeMap<(String, String, String), BTreeMap<String, Vec<String>>>,
}

impl Missing {
    pub fn of(all: &[MissingPods]) -> Self {
        let mut missing = Self { all: BTreeMap::new() };
        for pods in all {
            let key = (pods.kind.clone(), pods.namespace.clone(), pods.controller.clone());
            let names = missing.all.entry(key).or_default().entry(pods.name.clone()).or_default();
            names.extend(pods.pods.iter().cloned());
        }
        missing
    }

    /// Gives the templates of a controller the pods that it lacks. Pods that it has are objects of their own.
    pub fn give(&mut self, object: &Value, templates: &mut [Template]) {
        let Some(key) = self.key_of(object) else { return };
        let Some(left) = self.all.get_mut(&key) else { return };
        match templates {
            [only] if only.spec.is_object() => {
                only.pods = std::mem::take(left).into_values().flatten().collect();
            }
            more => {
                for template in more {
                    template.pods = left.remove(&template.name).unwrap_or_default();
                }
            }
        }
        if left.is_empty() {
            self.all.remove(&key);
        }
    }

    /// Returns the key of a controller. Of one whose name an API server would make up, only the beginning is known.
    fn key_of(&self, object: &Value) -> Option<(String, String, String)> {
        let kind = object["kind"].as_str()?.to_owned();
        if let Some((namespace, name)) = name_of(object) {
            return Some((kind, namespace, name));
        }
        let namespace = namespace_of(object).unwrap_or_else(|| "default".to_owned());
        let begin = object["metadata"]["generateName"].as_str()?;
        let is_it = |key: &&(String, String, String)| {
            (key.0.as_str(), key.1.as_str()) == (kind.as_str(), namespace.as_str())
                && key.2.starts_with(begin)
        };
        self.all.keys().find(is_it).cloned()
    }

    /// Names the controllers with missing pods whose templates are not read here.
    pub fn tell(&self, notes: &mut Vec<String>) {
        for ((kind, namespace, name), pods) in &self.all {
            let count: usize = pods.values().map(Vec::len).sum();
            notes.push(format!("{kind} {namespace}/{name}: {count} of its pods are not simulated, because their template is not read"));
        }
    }
}
