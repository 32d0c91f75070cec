//! CapacityBuffers (`autoscaling.x-k8s.io`), which keep room free for pods that do not exist yet.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Pod;
use poolwright_catalog::ResourceName;
use serde::Deserialize;
use serde_json::{Value, json};

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

    /// Says what to write in a NodePool instead of a buffer.
    pub fn instead_of(&self, buffer: &Value) -> String {
        let room = match self.entry(buffer) {
            Ok(entry) => format!("Write `buffer: [{entry}]` in the NodePool that its pods use"),
            Err(why) => format!("Set `buffer` of the NodePool that its pods use: {why}"),
        };
        format!("Poolwright keeps free room by pool. {room} (docs/nodepool.md).")
    }

    fn entry(&self, buffer: &Value) -> Result<String, String> {
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
        let replicas = object["spec"]["replicas"].as_u64().unwrap_or(1);
        let part = spec["percentage"].as_u64().map(|percent| (replicas * percent).div_ceil(100));
        let units = spec["replicas"].as_u64().or(part).ok_or("give the number of pods as its `units`")?;
        Ok(format!("{{units: {units}, requests: {{{}}}}}", requests(template)?))
    }
}

/// Returns the requests of a pod of a template: `cpu: 4, nvidia.com/gpu: 1`.
fn requests(template: &Value) -> Result<String, String> {
    let pod = json!({"metadata": {"name": "buffer"}, "spec": template["spec"]});
    let pod = Pod::deserialize(&pod).map_err(|error| format!("its pod template is not readable: {error}"))?;
    let pod = poolwright_intake::pod(&pod).map_err(|error| error.to_string())?;
    let amounts = pod.spec.requests.iter().filter(|(name, _)| name.as_str() != ResourceName::PODS);
    let quantity = |name: &ResourceName, amount: u64| match name.as_str() {
        ResourceName::CPU if amount.is_multiple_of(1000) => (amount / 1000).to_string(),
        _ => name.quantity(amount),
    };
    let amounts: Vec<String> =
        amounts.map(|(name, amount)| format!("{name}: {}", quantity(name, amount))).collect();
    if amounts.is_empty() { Err("its pods request nothing".to_owned()) } else { Ok(amounts.join(", ")) }
}

fn namespace(object: &Value) -> String {
    object["metadata"]["namespace"].as_str().filter(|name| !name.is_empty()).unwrap_or("default").to_owned()
}
