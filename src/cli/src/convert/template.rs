//! Converts the template of a NodePool, which describes its nodes.

use std::collections::BTreeMap;

use poolwright_api::{
    Deadlines, DurationText, ExpiryText, NodeTemplate, NodeTemplateMetadata, NodeTemplateSpec, Operator,
};
use poolwright_provider_contract::karpenter::{Fields, LabelMapping, Places, Report};
use poolwright_terms::domains::is_karpenters;
use poolwright_terms::keys::{DO_NOT_DISRUPT_ANNOTATION, KARPENTER_DO_NOT_DISRUPT_ANNOTATION};
use poolwright_terms::{GROUP, NodeClassRef, Taint, TaintEffect, labels};

use super::buffer::Named;
use super::disruption::{duration_text, expiry};
use super::labels::label;
use super::managed_by;
use super::node_class_ref::node_class_ref;
use super::requirements::{KarpenterRequirement, Requirements};
use super::values::ReservedCpu;

/// The conversion of a template.
pub(super) struct Read {
    pub template: NodeTemplate,
    /// The annotations that belong on Poolwright's NodePool, and are in the template in Karpenter.
    pub pool_annotations: BTreeMap<String, String>,
    /// The fields of the source from which fields of the template come.
    pub places: Places,
}

/// What to know of a label that makes NVIDIA's GPU operator cut GPUs.
const CUTS_GPUS: &str = "It stays, but Poolwright buys nodes for whole GPUs, and this label makes NVIDIA's GPU operator cut those that \
                         can be cut. Without `--sharing mig`, plans refuse a pool that can buy such GPUs: remove the label, or keep this pool in Karpenter.";

/// What to know of a label that chooses a configuration of NVIDIA's device plugin.
const MAY_SHARE_GPUS: &str = "It stays, and chooses a configuration of NVIDIA's device plugin. If this configuration shares or cuts GPUs, \
                              new nodes stay closed, because Poolwright buys nodes for whole GPUs: choose one that does neither.";

/// Converts `spec.template`.
pub(super) fn convert(of: &mut Fields<'_>, named: &Named, report: &mut Report) -> Read {
    let mut requirements = Requirements::default();
    let mut metadata = NodeTemplateMetadata::default();
    let mut pool_annotations = BTreeMap::new();
    let mut places = Places::default();
    let mut spec = None;
    match of.take_even_empty("template") {
        None => report.problem("spec.template", "missing", "write it with a spec.nodeClassRef"),
        Some(value) => {
            let class = &value["spec"]["nodeClassRef"];
            let text = |field: &str| class[field].as_str().unwrap_or_default();
            let in_hand = named.of_cluster(text("group"), text("kind"), text("name"));
            requirements.reserved = in_hand.and_then(ReservedCpu::of);
            let group = class["group"].as_str();
            requirements.is_managed = group.is_some_and(|group| managed_by(group).is_some());
            if let Some(mut template) = Fields::of("spec.template", value, report) {
                if let Some(mut fields) = template.object("metadata", report) {
                    labels(&mut fields, &mut metadata, &mut requirements, report);
                    annotations(&mut fields, &mut metadata, &mut pool_annotations, report);
                    fields.finish(report);
                }
                match template.take_even_empty("spec") {
                    None => report.problem("spec.template.spec", "missing", "write it with a nodeClassRef"),
                    Some(value) => spec = Fields::of(template.path("spec"), value, report),
                }
                template.finish(report);
            }
        }
    }
    let mut made = NodeTemplateSpec {
        taints: Vec::new(),
        startup_taints: Vec::new(),
        readiness_gates: Vec::new(),
        requirements: Vec::new(),
        node_class_ref: NodeClassRef { group: GROUP.to_owned(), kind: String::new(), name: String::new() },
        deadlines: Deadlines::default(),
        expire_after: ExpiryText::from("720h"),
    };
    if let Some(mut fields) = spec {
        made.taints = taints("taints", &mut fields, &mut places, report);
        made.startup_taints = taints("startupTaints", &mut fields, &mut places, report);
        node_class_ref(&mut fields, &mut made.node_class_ref, report);
        made.deadlines.termination = termination(&mut fields, report);
        places.add("spec.template.spec.deadlines.termination", fields.path("terminationGracePeriod"));
        made.expire_after = expire_after(&mut fields, report);
        requirements.read(&mut fields, report);
        fields.finish(report);
    }
    let converted = requirements.finish(report);
    places.extend(converted.places);
    made.requirements = converted.requirements;
    for (key, value) in converted.labels {
        metadata.labels.entry(key).or_insert(value);
    }
    Read { template: NodeTemplate { metadata, spec: made }, pool_annotations, places }
}

fn labels(
    of: &mut Fields<'_>,
    metadata: &mut NodeTemplateMetadata,
    requirements: &mut Requirements,
    report: &mut Report,
) {
    for (key, path, value) in of.object("labels", report).map(Fields::rest).unwrap_or_default() {
        let Some(value) = poolwright_provider_contract::karpenter::text(path.clone(), value, report) else {
            continue;
        };
        if label(&key) == LabelMapping::UserDefined && !labels::RESERVED.contains(&key.as_str()) {
            if key == labels::MIG_CONFIG && value != labels::MIG_DISABLED {
                report.not_possible(path, CUTS_GPUS);
            } else if key == labels::DEVICE_PLUGIN_CONFIG {
                report.changed(path, MAY_SHARE_GPUS);
            } else {
                report.kept(path, "A label of the nodes; it stays.");
            }
            requirements.label(&key, &value);
            metadata.labels.insert(key, value);
        } else {
            // Karpenter treats such a label as a requirement with one value.
            requirements.of_label(KarpenterRequirement {
                path,
                key,
                operator: Operator::In,
                values: vec![value],
                min_values: None,
                is_label: true,
            });
        }
    }
}

fn annotations(
    of: &mut Fields<'_>,
    metadata: &mut NodeTemplateMetadata,
    pool_annotations: &mut BTreeMap<String, String>,
    report: &mut Report,
) {
    for (key, path, value) in of.object("annotations", report).map(Fields::rest).unwrap_or_default() {
        let Some(value) = poolwright_provider_contract::karpenter::text(path.clone(), value, report) else {
            continue;
        };
        if key == KARPENTER_DO_NOT_DISRUPT_ANNOTATION && value == "true" {
            report.changed(
                path,
                format!(
                    "Becomes `{DO_NOT_DISRUPT_ANNOTATION}: \"true\"` on the NodePool itself. It keeps its nodes also when they are \
                     empty or older than expireAfter; in Karpenter they still expire."
                ),
            );
            pool_annotations.insert(DO_NOT_DISRUPT_ANNOTATION.to_owned(), value);
        } else if key == KARPENTER_DO_NOT_DISRUPT_ANNOTATION {
            report.changed(path, "Left out: Karpenter only reads \"true\" on a node.");
        } else if is_karpenters(&key) || key.starts_with("poolwright.dev/") {
            report.not_possible(
                path,
                "Left out: Poolwright cannot set it on nodes. Check whether you need it.",
            );
        } else {
            report.kept(path, "An annotation of the nodes; it stays.");
            metadata.annotations.insert(key, value);
        }
    }
}

fn taints(field: &str, of: &mut Fields<'_>, places: &mut Places, report: &mut Report) -> Vec<Taint> {
    let mut taints = Vec::new();
    for (path, value) in of.list(field, report) {
        let Some(mut fields) = Fields::of(&path, value, report) else { continue };
        let key = fields.needed_text("key", report);
        let value = fields.text("value", report);
        let effect = fields.needed_text("effect", report);
        let effect = effect.and_then(|name| {
            let effect = TaintEffect::named(&name);
            if effect.is_none() {
                report.problem(
                    fields.path("effect"),
                    format!("`{name}` is not an effect of a taint"),
                    "write NoSchedule, PreferNoSchedule or NoExecute",
                );
            }
            effect
        });
        fields.finish(report);
        let (Some(key), Some(effect)) = (key, effect) else { continue };
        if is_karpenters(&key) {
            report.not_possible(
                path,
                format!(
                    "Left out: only Karpenter sets and removes the taint `{key}`. Poolwright has its own."
                ),
            );
        } else {
            places.add(format!("{}[{}]", of.path(field), taints.len()), &path);
            report.kept(path, format!("The taint `{key}` stays."));
            taints.push(Taint { key, value: value.unwrap_or_default(), effect });
        }
    }
    taints
}

fn termination(of: &mut Fields<'_>, report: &mut Report) -> Option<DurationText> {
    let text = duration_text(of, "terminationGracePeriod", report)?;
    let path = of.path("terminationGracePeriod");
    let written = DurationText(text);
    match written.parse() {
        Err(error) => {
            report.problem(path, error.to_string(), "correct it in the source");
            return None;
        }
        Ok(length) if length.is_zero() => {
            report.changed(path, "Becomes `deadlines.termination: 1s`: zero is not allowed.");
            return Some(DurationText::from("1s"));
        }
        Ok(_) => report.changed(path, "Becomes `deadlines.termination`, with the same meaning."),
    }
    Some(written)
}

fn expire_after(of: &mut Fields<'_>, report: &mut Report) -> ExpiryText {
    let path = of.path("expireAfter");
    if let Some(text) = duration_text(of, "expireAfter", report) {
        report.kept(
            path.clone(),
            "Nodes expire at the same age as in Karpenter. Before eviction, Poolwright makes sure that their pods have room elsewhere.",
        );
        expiry(path, text, "720h", report)
    } else {
        report.changed(path, "Absent: Karpenter's default is 720h, Poolwright's is `Never`. Writes 720h.");
        ExpiryText::from("720h")
    }
}
