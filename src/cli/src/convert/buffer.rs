//! CapacityBuffers (`autoscaling.x-k8s.io`), which keep room free for pods that do not exist yet.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Pod;
use poolwright_catalog::{ResourceName, quantity};
use serde::Deserialize;
use serde_json::{Value, json};

/// The most units of an entry of `buffer`.
const MOST_UNITS: u64 = 100;

/// The objects that a CapacityBuffer can name, by namespace, kind and name.
#[derive(Default)]
pub(super) struct Named(BTreeMap<(String, String, String), Value>);

impl Named {
    /// Adds an object.
    pub fn add(&mut self, object: &Value) {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (kind, name) = (text(&object["kind"]), text(&object["metadata"]["name"]));
        if !name.is_empty() {
            self.0.insert((namespace(object), kind, name), object.clone());
        }
    }

    /// Returns the object of the cluster with this API group, kind and name.
    pub fn of_cluster(&self, group: &str, kind: &str, name: &str) -> Option<&Value> {
        // An object without a namespace is under the default one.
        let object = self.0.get(&("default".to_owned(), kind.to_owned(), name.to_owned()))?;
        let (of, _) = object["apiVersion"].as_str()?.split_once('/')?;
        (of == group).then_some(object)
    }

    /// Says what to write in a NodePool instead of a buffer.
    pub fn instead_of(&self, buffer: &Value) -> String {
        let room = match self.entry(buffer) {
            Ok(Some(entry)) => format!("Write `buffer: [{entry}]` in the NodePool that its pods use"),
            Ok(None) => "Write no `buffer` for this one, because its numbers allow no pod".to_owned(),
            Err(why) => format!("Set `buffer` of the NodePool that its pods use: {why}"),
        };
        format!("Poolwright keeps free room by pool. {room} (docs/nodepool.md).")
    }

    /// Returns the entry to write; `None` if there is no room to keep.
    fn entry(&self, buffer: &Value) -> Result<Option<String>, String> {
        let spec = &buffer["spec"];
        let (kind, name) = match (spec["podTemplateRef"]["name"].as_str(), &spec["scalableRef"]) {
            (Some(name), _) => ("PodTemplate", name),
            (None, of) => (of["kind"].as_str().unwrap_or_default(), of["name"].as_str().unwrap_or_default()),
        };
        let key = (namespace(buffer), kind.to_owned(), name.to_owned());
        let missing = || format!("add {kind} `{name}` to the files, and `convert` writes its requests here");
        let object = self.0.get(&key).ok_or_else(missing)?;
        let template =
            [&object["template"], &object["spec"]["template"]].into_iter().find(|one| one.is_object());
        let template = template.ok_or_else(|| format!("{kind} `{name}` has no pod template"))?;
        let requests = requests(template)?;
        let replicas = object["spec"]["replicas"].as_u64().unwrap_or(1);
        let part = |percent: u64| replicas.saturating_mul(percent).div_ceil(100);
        // A pod template has no replicas of which there could be a part.
        let part = spec["percentage"].as_u64().filter(|_| kind != "PodTemplate").map(part);
        let bounds = [spec["replicas"].as_u64(), part, units_within(&spec["limits"], &requests)?];
        let units = bounds.into_iter().flatten().min().ok_or("give the number of pods as its `units`")?;
        let requests = written(&requests);
        if units > MOST_UNITS {
            return Err(format!(
                "it is for {units} pods of {{{requests}}}, and an entry has at most {MOST_UNITS} `units`, so \
                 write several"
            ));
        }
        Ok((units > 0).then(|| format!("{{units: {units}, requests: {{{requests}}}}}")))
    }
}

/// Returns how many pods with these requests fit into the limits; `None` if no limit is on a resource that
/// they request.
fn units_within(limits: &Value, requests: &[(ResourceName, u64)]) -> Result<Option<u64>, String> {
    let mut most: Option<u64> = None;
    for (name, request) in requests {
        let limit = &limits[name.as_str()];
        if limit.is_null() || *request == 0 {
            continue;
        }
        let text = limit.as_str().map_or_else(|| limit.to_string(), str::to_owned);
        let limit = quantity::amount(name.as_str(), &text)
            .map_err(|error| format!("its limit on {name} is not readable: {error}"))?;
        let units = limit / *request;
        most = Some(most.map_or(units, |most| most.min(units)));
    }
    Ok(most)
}

/// Returns the requests of a pod of a template.
fn requests(template: &Value) -> Result<Vec<(ResourceName, u64)>, String> {
    let pod = json!({"metadata": {"name": "buffer"}, "spec": template["spec"]});
    let pod = Pod::deserialize(&pod).map_err(|error| format!("its pod template is not readable: {error}"))?;
    let pod = poolwright_intake::pod(&pod).map_err(|error| error.to_string())?;
    let amounts = pod.spec.requests.iter().filter(|(name, _)| name.as_str() != ResourceName::PODS);
    let amounts: Vec<_> = amounts.map(|(name, amount)| (name.clone(), amount)).collect();
    if amounts.is_empty() { Err("its pods request nothing".to_owned()) } else { Ok(amounts) }
}

/// Formats requests as in a manifest: `cpu: 4, nvidia.com/gpu: 1`.
fn written(requests: &[(ResourceName, u64)]) -> String {
    let quantity = |name: &ResourceName, amount: u64| match name.as_str() {
        ResourceName::CPU if amount.is_multiple_of(1000) => (amount / 1000).to_string(),
        _ => name.quantity(amount),
    };
    let amounts = requests.iter().map(|(name, amount)| format!("{name}: {}", quantity(name, *amount)));
    amounts.collect::<Vec<_>>().join(", ")
}

fn namespace(object: &Value) -> String {
    object["metadata"]["namespace"].as_str().filter(|name| !name.is_empty()).unwrap_or("default").to_owned()
}
