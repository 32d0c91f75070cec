//! Converts Karpenter's EC2NodeClass (`karpenter.k8s.aws/v1`, <https://karpenter.sh/docs/concepts/nodeclasses/>) and its labels
//! (<https://karpenter.sh/docs/concepts/scheduling/#well-known-labels>).
//!
//! Most fields have the same name and meaning in both. The converter compares all others with the schema of the CRD and reports
//! those that it does not have, at any depth.

use kube::CustomResourceExt;
use poolwright_provider_contract::karpenter::{
    Fields, FromKarpenter, LabelMapping, Report, convert_metadata, is_empty, join, text,
};
use poolwright_terms::labels;
use serde_json::{Map, Value, json};

use crate::node_class::{EC2NodeClass, EC2NodeClassSpec};
use crate::resolve::KIND;

/// Karpenter's provider for AWS.
pub(crate) struct Karpenter;

impl FromKarpenter for Karpenter {
    fn group(&self) -> &'static str {
        "karpenter.k8s.aws"
    }

    fn kind(&self) -> &'static str {
        KIND
    }

    fn node_class(&self, object: &Value, report: &mut Report) -> Option<Value> {
        convert(object, report).and_then(|class| serde_json::to_value(class).ok())
    }

    fn label(&self, key: &str) -> Option<LabelMapping> {
        if key == "topology.k8s.aws/zone-id" {
            return Some(LabelMapping::NoCounterpart(
                "Choose zones by their names with `topology.kubernetes.io/zone`.",
            ));
        }
        key.strip_prefix("karpenter.k8s.aws/").map(label)
    }
}

fn label(name: &str) -> LabelMapping {
    match name {
        "instance-family" => LabelMapping::Renamed(labels::INSTANCE_FAMILY),
        "instance-gpu-name" => LabelMapping::Renamed(labels::GPU_MODEL),
        "instance-gpu-count" => LabelMapping::Renamed(labels::GPU_COUNT),
        "instance-gpu-memory" => LabelMapping::Renamed(labels::GPU_MEMORY),
        "instance-gpu-manufacturer" => LabelMapping::GpuManufacturer,
        "instance-cpu" => LabelMapping::Cpu,
        "instance-category" => LabelMapping::Category,
        "instance-generation" => LabelMapping::Generation,
        "instance-size" => LabelMapping::Size,
        "instance-memory" => LabelMapping::NoCounterpart(
            "Write `poolwright.dev/instance-memory`, which counts allocatable MiB; that is less than the memory of the machine.",
        ),
        "instance-cpu-manufacturer" => LabelMapping::NoCounterpart(
            "Choose processors with `kubernetes.io/arch` or by `poolwright.dev/instance-family`.",
        ),
        _ if name.starts_with("capacity-reservation") => LabelMapping::NoCounterpart(
            "Choose reserved capacity with `poolwright.dev/capacity-type: reserved` and by instance type and zone.",
        ),
        _ => LabelMapping::NoCounterpart(
            "Name the types that have it with `node.kubernetes.io/instance-type` or `poolwright.dev/instance-family`.",
        ),
    }
}

/// Converts an EC2NodeClass. If the report then contains problems, do not use the result.
fn convert(value: &Value, report: &mut Report) -> Option<EC2NodeClass> {
    let mut root = Fields::of("", value, report)?;
    if root.take("apiVersion").is_some() {
        report.changed("apiVersion", "It is `poolwright.dev/v1alpha1`.");
    }
    if root.take("kind").is_some() {
        report.kept("kind", "It is called EC2NodeClass here too.");
    }
    let metadata = convert_metadata(&mut root, report);
    if root.take_even_empty("status").is_some() {
        report.changed("status", "Left out: the cluster writes it.");
    }
    let spec = root.take("spec");
    root.finish(report);
    let Some(spec) = spec else {
        report.problem("spec", "missing", "add it; Karpenter requires it too");
        return None;
    };
    let fields = Fields::of("spec", spec, report)?;
    let mut class = Class { schema: spec_schema(), spec: Map::new() };
    for (key, path, value) in fields.rest() {
        if is_empty(value) {
            report.changed(path, "Left out, because it is empty.");
        } else {
            class.field(&key, path, value, report);
        }
    }
    class.absent(report);
    let metadata = metadata.filter(|_| report.problems.is_empty())?;
    let spec: EC2NodeClassSpec = match serde_json::from_value(Value::Object(class.spec)) {
        Ok(spec) => spec,
        Err(error) => {
            report.problem("spec", error.to_string(), "correct it in the Karpenter manifest");
            return None;
        }
    };
    let mut object = EC2NodeClass::new(&metadata.name, spec);
    object.metadata.annotations = (!metadata.annotations.is_empty()).then_some(metadata.annotations);
    object.metadata.labels = (!metadata.labels.is_empty()).then_some(metadata.labels);
    for error in object.validate_cel().err().into_iter().flatten() {
        report.problem(error.field_path, error.message, "correct it in the Karpenter manifest");
    }
    Some(object)
}

/// Returns the schema of Poolwright's `spec`.
fn spec_schema() -> Value {
    let crd = serde_json::to_value(EC2NodeClass::crd()).unwrap_or_default();
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"].clone()
}

/// The converted class.
struct Class {
    schema: Value,
    spec: Map<String, Value>,
}

impl Class {
    fn field(&mut self, key: &str, path: String, value: &Value, report: &mut Report) {
        match key {
            "amiFamily" => self.family(path, value, report),
            "amiSelectorTerms" => self.images(path, value, report),
            "blockDeviceMappings" => self.disks(path, value, report),
            "metadataOptions" => self.metadata_service(path, value, report),
            "placementGroupSelector" => {
                report.changed(path.clone(), "It is `placementGroup` here.");
                let group = known(value, &self.schema["properties"]["placementGroup"], &path, report);
                self.spec.insert("placementGroup".to_owned(), group);
            }
            "networkInterfaces" => self.interfaces(path, value, report),
            _ => match kept(key) {
                Some(sentence) => self.keep(key, path, value, sentence, report),
                None => report.not_possible(path, instead(key)),
            },
        }
    }

    fn keep(&mut self, key: &str, path: String, value: &Value, sentence: &str, report: &mut Report) {
        report.kept(path.clone(), sentence);
        let value = known(value, &self.schema["properties"][key], &path, report);
        self.spec.insert(key.to_owned(), value);
    }

    fn family(&mut self, path: String, value: &Value, report: &mut Report) {
        let Some(family) = text(path.clone(), value, report) else { return };
        if ["AL2023", "Bottlerocket", "Custom"].contains(&family.as_str()) {
            self.keep(
                "amiFamily",
                path,
                value,
                "Nodes of this family join the cluster as in Karpenter.",
                report,
            );
        } else {
            report.problem(path, format!("Poolwright does not support the image family `{family}`"), MOVE);
        }
    }

    fn images(&mut self, path: String, value: &Value, report: &mut Report) {
        let value = known(value, &self.schema["properties"]["amiSelectorTerms"], &path, report);
        let mut terms = Vec::new();
        let mut anybodys = false;
        for (at, term) in value.as_array().into_iter().flatten().enumerate() {
            let alias = term["alias"].as_str().unwrap_or_default();
            let family = alias.split('@').next().unwrap_or_default();
            if !alias.is_empty() && !["al2023", "bottlerocket"].contains(&family) {
                let cause = format!("Poolwright does not support the image family `{family}`");
                report.problem(format!("{path}[{at}].alias"), cause, MOVE);
            }
            let chosen = term.get("name").is_some() || term.get("tags").is_some();
            if chosen && term.get("owner").is_none() {
                anybodys = true;
                for owner in ["self", "amazon"] {
                    let mut term = term.clone();
                    term["owner"] = json!(owner);
                    terms.push(term);
                }
            } else {
                terms.push(term.clone());
            }
        }
        if anybodys {
            report.changed(
                path,
                "Poolwright requires an owner for images selected by name or tags. The result has a term for `self` and one for \
                 `amazon`, Karpenter's defaults. Remove the one that you do not need.",
            );
        } else {
            report.kept(path, "It selects the same images.");
        }
        let terms = if value.is_array() { Value::Array(terms) } else { value };
        self.spec.insert("amiSelectorTerms".to_owned(), terms);
    }

    fn disks(&mut self, path: String, value: &Value, report: &mut Report) {
        let value = known(value, &self.schema["properties"]["blockDeviceMappings"], &path, report);
        let says_all = |disk: &Value| {
            let ebs = &disk["ebs"];
            let encrypted = ebs.get("encrypted").is_some() || ebs.get("snapshotID").is_some();
            encrypted && ["volumeType", "deleteOnTermination"].iter().all(|key| ebs.get(*key).is_some())
        };
        if value.as_array().into_iter().flatten().all(says_all) {
            report.kept(path, "The same disks.");
        } else {
            report.changed(
                path,
                "The same disks, with other defaults: in Poolwright a new disk is `gp3`, encrypted, and deleted with its instance; \
                 Karpenter leaves absent fields to EC2.",
            );
        }
        self.spec.insert("blockDeviceMappings".to_owned(), value);
    }

    fn metadata_service(&mut self, path: String, value: &Value, report: &mut Report) {
        let mut value = known(value, &self.schema["properties"]["metadataOptions"], &path, report);
        if value["httpTokens"] == "optional" {
            report.changed(
                join(&path, "httpTokens"),
                "Changed to `required`, the only value that Poolwright allows: with IMDSv1, a pod that can make the node send an HTTP \
                 request can get the node's credentials. Make sure that no program on your nodes uses IMDSv1.",
            );
            value["httpTokens"] = json!("required");
        }
        report.kept(path, "The metadata service has the same settings.");
        self.spec.insert("metadataOptions".to_owned(), value);
    }

    fn interfaces(&mut self, path: String, value: &Value, report: &mut Report) {
        let is_efa = |interface: &Value| {
            interface["interfaceType"].as_str().is_some_and(|kind| kind.starts_with("efa"))
        };
        if value.as_array().into_iter().flatten().any(is_efa) {
            report.changed(
                path,
                "It is `efa: Auto` in Poolwright: one Elastic Fabric Adapter on every network card of the instance type that supports it.",
            );
            self.spec.insert("efa".to_owned(), json!("Auto"));
        } else {
            report.not_possible(
                path,
                "You cannot list network interfaces in Poolwright. A node has one, and `efa: Auto` adds fabric adapters. Leave it out.",
            );
        }
    }

    /// Handles absent fields whose default differs: it writes Karpenter's default or reports the difference.
    fn absent(&mut self, report: &mut Report) {
        if !self.spec.contains_key("associatePublicIPAddress") {
            report.changed(
                "spec.associatePublicIPAddress",
                "It is absent. Karpenter then uses the setting of the subnet; Poolwright gives nodes no public address. Write `true` \
                 if they need one.",
            );
        }
        if self.spec.contains_key("blockDeviceMappings") {
            return;
        }
        let alias = self.spec.get("amiSelectorTerms").and_then(|terms| terms[0]["alias"].as_str());
        let family = self.spec.get("amiFamily").and_then(Value::as_str);
        let disk = |device: &str, size: &str| json!({"deviceName": device, "ebs": {"volumeSize": size, "encrypted": true}});
        let disks = match (family, alias.and_then(|alias| alias.split('@').next())) {
            (Some("AL2023"), _) | (None, Some("al2023")) => vec![disk("/dev/xvda", "20Gi")],
            (Some("Bottlerocket"), _) | (None, Some("bottlerocket")) => {
                vec![disk("/dev/xvda", "4Gi"), disk("/dev/xvdb", "20Gi")]
            }
            _ => return,
        };
        report.changed(
            "spec.blockDeviceMappings",
            "It is absent. Karpenter then makes a data disk of 20Gi; Poolwright uses the disks of the image. The result has Karpenter's \
             disks.",
        );
        self.spec.insert("blockDeviceMappings".to_owned(), disks.into());
    }
}

/// The next step for images of unsupported families.
const MOVE: &str = "move to al2023 or bottlerocket, or name the image by its id and write `amiFamily: Custom` with user data that joins the cluster";

/// Returns the sentence for a field that has the same name and meaning in both; `None` for other fields.
fn kept(key: &str) -> Option<&'static str> {
    Some(match key {
        "subnetSelectorTerms" => "It selects the same subnets.",
        "securityGroupSelectorTerms" => "It selects the same security groups.",
        "capacityReservationSelectorTerms" => "It selects the same reservations.",
        "role" => "Nodes get this role.",
        "instanceProfile" => "Nodes get this instance profile.",
        "userData" => "Poolwright merges it with its own user data. Poolwright's settings win.",
        "kubelet" => "The kubelet gets the same settings.",
        "instanceStorePolicy" => "The local disks become one RAID 0, as in Karpenter.",
        "detailedMonitoring" | "associatePublicIPAddress" => "It has the same meaning.",
        "tags" => "Instances get these tags.",
        _ => return None,
    })
}

/// Returns the alternative to a field that Poolwright does not have.
fn instead(key: &str) -> String {
    match key {
        "ipPrefixCount" => "Poolwright cannot request prefixes at launch. Let the VPC CNI attach them (ENABLE_PREFIX_DELEGATION).",
        "context" => "Poolwright does not set this field, which EC2 reserves. Leave it out.",
        "connectionTracking" => "Poolwright does not set the timeouts of connection tracking. Set them in the user data, or on the network interfaces.",
        "cpuOptions" => "Poolwright does not set CPU options. Choose other instance types, or keep this pool in Karpenter.",
        "enclaveOptions" => "Poolwright does not support Nitro Enclaves. Keep this pool in Karpenter.",
        _ => return format!("Poolwright has no field `{key}`. Check the spelling. If Karpenter has the field, leave it out or keep this class in Karpenter."),
    }
    .to_owned()
}

/// Returns the value without null fields and without fields that the schema does not have. It reports each unknown field.
fn known(value: &Value, schema: &Value, path: &str, report: &mut Report) -> Value {
    match value {
        Value::Object(fields) if schema.get("properties").is_some() => {
            let mut found = Map::new();
            for (key, value) in fields {
                let path = join(path, key);
                match schema["properties"].get(key) {
                    None => report.not_possible(path, instead(key)),
                    Some(_) if value.is_null() => {}
                    Some(inner) => drop(found.insert(key.clone(), known(value, inner, &path, report))),
                }
            }
            Value::Object(found)
        }
        Value::Array(items) => {
            let item = |(at, item)| known(item, &schema["items"], &format!("{path}[{at}]"), report);
            Value::Array(items.iter().enumerate().map(item).collect())
        }
        _ => value.clone(),
    }
}
