//! From Karpenter's EC2NodeClass (`karpenter.k8s.aws/v1`, <https://karpenter.sh/docs/concepts/nodeclasses/>) and its labels
//! (<https://karpenter.sh/docs/concepts/scheduling/#well-known-labels>).
//!
//! Most of its fields are ours by name and meaning. A field that ours does not have is found by the schema of the CRD, wherever
//! it stands.

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
/// Converts an EC2NodeClass. What is wrong with it is in the report, and then the result means nothing.
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
        report.problem("spec", "missing", "write it, as Karpenter needs it too");
        return None;
    };
    let fields = Fields::of("spec", spec, report)?;
    let mut class = Class { schema: spec_schema(), spec: Map::new() };
    for (key, path, value) in fields.rest() {
        if is_empty(value) {
            report.changed(path, "It is empty and says nothing: left out.");
        } else {
            class.field(&key, path, value, report);
        }
    }
    class.absent(report);
    let metadata = metadata.filter(|_| report.problems.is_empty())?;
    let spec: EC2NodeClassSpec = match serde_json::from_value(Value::Object(class.spec)) {
        Ok(spec) => spec,
        Err(error) => {
            report.problem("spec", error.to_string(), "correct it in the source");
            return None;
        }
    };
    let mut object = EC2NodeClass::new(&metadata.name, spec);
    object.metadata.annotations = (!metadata.annotations.is_empty()).then_some(metadata.annotations);
    object.metadata.labels = (!metadata.labels.is_empty()).then_some(metadata.labels);
    for error in object.validate_cel().err().into_iter().flatten() {
        report.problem(error.field_path, error.message, "correct it in the source");
    }
    Some(object)
}

/// The schema of our `spec`.
fn spec_schema() -> Value {
    let crd = serde_json::to_value(EC2NodeClass::crd()).unwrap_or_default();
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"].clone()
}

/// What a class becomes.
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
            self.keep("amiFamily", path, value, "Nodes of this family join as in Karpenter.", report);
        } else {
            report.problem(
                path,
                format!("`{family}` is a family that Poolwright has no user data for"),
                MOVE,
            );
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
                let cause = format!("`{family}` is a family that Poolwright has no user data for");
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
                "Images by name or tags need an owner here; `self` and `amazon` are written, which Karpenter takes without one. Remove \
                 the one that you do not mean.",
            );
        } else {
            report.kept(path, "The same images are chosen.");
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
                "The same disks. What a new one does not say: it is encrypted, `gp3`, and goes with its instance; in Karpenter it is as \
                 EC2 has it.",
            );
        }
        self.spec.insert("blockDeviceMappings".to_owned(), value);
    }

    fn metadata_service(&mut self, path: String, value: &Value, report: &mut Report) {
        let mut value = known(value, &self.schema["properties"]["metadataOptions"], &path, report);
        if value["httpTokens"] == "optional" {
            report.changed(
                join(&path, "httpTokens"),
                "It is `required` here, always: without a session token (IMDSv1) any pod that can make a node ask for a page gets the \
                 node's credentials. See that nothing on your nodes asks without.",
            );
            value["httpTokens"] = json!("required");
        }
        report.kept(path, "The metadata service answers as in Karpenter.");
        self.spec.insert("metadataOptions".to_owned(), value);
    }

    fn interfaces(&mut self, path: String, value: &Value, report: &mut Report) {
        let is_efa = |interface: &Value| {
            interface["interfaceType"].as_str().is_some_and(|kind| kind.starts_with("efa"))
        };
        if value.as_array().into_iter().flatten().any(is_efa) {
            report.changed(
                path,
                "It is `efa: Auto` here: an Elastic Fabric Adapter on every network card of the instance type that can have one.",
            );
            self.spec.insert("efa".to_owned(), json!("Auto"));
        } else {
            report.not_possible(
                path,
                "Network interfaces cannot be listed one by one; nodes have one, and `efa: Auto` adds fabric adapters. Leave it out.",
            );
        }
    }

    /// What is absent and means something else here is written as Karpenter takes it, or said.
    fn absent(&mut self, report: &mut Report) {
        if !self.spec.contains_key("associatePublicIPAddress") {
            report.changed(
                "spec.associatePublicIPAddress",
                "It is absent: Karpenter leaves it to the subnet, here nodes have no public address. Write `true` if they need one.",
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
            "It is absent, which is disks of 20Gi in Karpenter and those of the image here: Karpenter's are written.",
        );
        self.spec.insert("blockDeviceMappings".to_owned(), disks.into());
    }
}

/// What to do about images of families that are not supported.
const MOVE: &str = "move to al2023 or bottlerocket, or name the image by its id and write `amiFamily: Custom` with user data that joins the cluster";

/// What is said of fields that have our names and meanings.
fn kept(key: &str) -> Option<&'static str> {
    Some(match key {
        "subnetSelectorTerms" => "The same subnets are chosen.",
        "securityGroupSelectorTerms" => "The same security groups are chosen.",
        "capacityReservationSelectorTerms" => "The same reservations are chosen.",
        "role" => "Nodes have this role.",
        "instanceProfile" => "Nodes have this instance profile.",
        "userData" => "It is merged with what nodes must be told; that wins.",
        "kubelet" => "The kubelet is told the same.",
        "instanceStorePolicy" => "The disks of an instance are one, as in Karpenter.",
        "detailedMonitoring" => "It is the same here.",
        "associatePublicIPAddress" => "Nodes have public addresses or not, as in Karpenter.",
        "tags" => "Instances have these tags.",
        _ => return None,
    })
}

/// What to do instead of a field that there is not.
fn instead(key: &str) -> String {
    match key {
        "ipPrefixCount" => "Prefixes cannot be asked for at the launch. Let the network plugin attach them (ENABLE_PREFIX_DELEGATION of the VPC CNI).",
        "context" => "The reserved field of EC2's API cannot be set. Leave it out.",
        "connectionTracking" => "Times of connection tracking cannot be set at the launch. Set them in the user data, or on the network interfaces.",
        "cpuOptions" => "Options of processors cannot be set. Choose other instance types, or keep this pool in Karpenter.",
        "enclaveOptions" => "Nitro Enclaves cannot be enabled. Keep this pool in Karpenter.",
        _ => return format!("Poolwright has no field for `{key}`. Check its spelling; if Karpenter has it, do without it or keep this class in Karpenter."),
    }
    .to_owned()
}

/// A value without the fields that its schema does not have, each of which is named, and without what is null.
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
