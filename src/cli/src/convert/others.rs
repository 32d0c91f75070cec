//! Objects other than NodePools: node classes, overlays, and objects that are not Karpenter's.

use poolwright_api::meant;
use poolwright_provider_contract::karpenter::{Fields, Managed, Outcome, Report, join};
use poolwright_terms::domains::is_karpenters;
use poolwright_terms::keys::KARPENTER_DO_NOT_DISRUPT_ANNOTATION;
use serde_json::Value;

use super::buffer::Named;

/// Returns whether an API group is Karpenter's or belongs to one of its providers.
pub(super) fn is_karpenter(group: &str) -> bool {
    is_karpenters(&format!("{group}/"))
}

/// The kinds of Karpenter itself.
pub(super) const KINDS: [&str; 3] = ["NodePool", "NodeClaim", "NodeOverlay"];

/// The most paths that one note lists.
const MOST_PATHS: usize = 4;

/// Fields that the cluster writes. Texts of Karpenter in them do not select nodes.
const WRITTEN_BY_THE_CLUSTER: [&str; 4] =
    ["metadata.finalizers", "metadata.managedFields", "metadata.ownerReferences", "status"];

/// Keys of Karpenter that do not select nodes: an annotation that Poolwright reads of pods, and a tag of
/// networks.
const NOT_OF_NODES: [&str; 2] = [KARPENTER_DO_NOT_DISRUPT_ANNOTATION, "karpenter.sh/discovery"];

/// Reports an object of another API.
pub(super) fn foreign(api_version: &str, kind: &str, value: &Value, named: &Named, report: &mut Report) {
    let mut paths = Vec::new();
    labels_of_karpenter(value, "", &mut paths);
    let sentence = if kind == "CapacityBuffer" {
        named.instead_of(value)
    } else if paths.is_empty() {
        format!(
            "{api_version} {kind} is not an object of Karpenter: left out. Apply it unchanged if you need it."
        )
    } else {
        let shown = paths.len().min(MOST_PATHS);
        let more = match paths.len() - shown {
            0 => String::new(),
            more => format!(" (and {more} more)"),
        };
        format!(
            "{api_version} {kind} is not an object of Karpenter: left out. It names labels of Karpenter, \
             which nodes of Poolwright lack, at {}{more}: replace them as in the converted pools before you \
             apply it.",
            paths[..shown].join(", ")
        )
    };
    report.note("", Outcome::NotPossible, sentence);
}

/// Collects the paths of keys and texts of Karpenter in an object.
fn labels_of_karpenter(value: &Value, path: &str, into: &mut Vec<String>) {
    // Without a dot it is no label, but an image or the name of an object in the namespace `karpenter`.
    let has_dot = |text: &str| text.split_once('/').is_some_and(|(domain, _)| domain.contains('.'));
    let is_of_nodes = |text: &str| is_karpenters(text) && has_dot(text) && !NOT_OF_NODES.contains(&text);
    match value {
        Value::Object(fields) => {
            for (key, below) in fields {
                let path = join(path, key);
                // An API version looks like a label.
                if key == "apiVersion" || WRITTEN_BY_THE_CLUSTER.contains(&path.as_str()) {
                    continue;
                }
                if is_of_nodes(key) {
                    into.push(path);
                } else {
                    labels_of_karpenter(below, &path, into);
                }
            }
        }
        Value::Array(entries) => {
            for (at, entry) in entries.iter().enumerate() {
                labels_of_karpenter(entry, &format!("{path}[{at}]"), into);
            }
        }
        Value::String(text) if is_of_nodes(text) => into.push(path.to_owned()),
        _ => {}
    }
}

/// Reports an object of a version that Karpenter itself no longer serves.
pub(super) fn old_version(api_version: &str, kind: &str, report: &mut Report) {
    let (group, version) = api_version.split_once('/').unwrap_or((api_version, ""));
    let next = if version.starts_with("v1alpha") {
        // Karpenter 0.32 was the last version that read these, and the first with their successors.
        "convert it to v1beta1 first, with the tool of Karpenter 0.32 \
         (https://karpenter.sh/v0.32/upgrading/v1beta1-migration/): Karpenter 1.0 converts v1beta1 to v1, and `convert` reads v1"
            .to_owned()
    } else {
        let plural = kind.to_ascii_lowercase() + if kind.ends_with('s') { "es" } else { "s" };
        format!(
            "convert it to v1 with Karpenter's own tools first (https://karpenter.sh/docs/upgrading/v1-migration/): Karpenter 1.0 \
             converts what is in a cluster, and `kubectl get {plural}.v1.{group} -o yaml` then prints it"
        )
    };
    report.problem("apiVersion", format!("`{api_version}` cannot be converted"), next);
}

/// Reports an object of a kind that its API group does not have.
pub(super) fn unknown_kind(api_version: &str, kind: &str, known: &[&str], report: &mut Report) {
    let next = match meant(kind, known.iter().copied()) {
        Some(kind) => format!("did you mean {kind}?"),
        None => format!("write one of {}, or leave the object out", known.join(", ")),
    };
    report.problem("kind", format!("{api_version} has no kind `{kind}`"), next);
}

/// Reports a NodeClaim, which is Karpenter's record of one node.
pub(super) fn claim(report: &mut Report) {
    report.not_possible(
        "",
        "It is Karpenter's record of one node and is not converted: Poolwright makes its own. Let Karpenter terminate this node when its \
         pods have moved.",
    );
}

/// Reports a node class of a cloud that Poolwright does not convert.
pub(super) fn node_class(kind: &str, value: &Value, report: &mut Report) {
    let whole = format!(
        "Poolwright has no node class for this cloud yet: no {kind} is written. Keep this file until it has one."
    );
    each_field(value, &whole, report, |key| {
        match key {
        "kubelet" => "Kubelet settings have no field yet. Set them in the node's image or user data.".to_owned(),
        "tags" => "Tags have no field yet. Set them with the tag policies of the cloud.".to_owned(),
        "capacityReservationSelectorTerms" => {
            "Reservations cannot be selected yet. To use them in plans, list them in the file of `--commitments` (docs/cli/plan.md).".to_owned()
        }
        _ => format!("`{key}` has no field yet. Keep it for Poolwright's future node class of this cloud."),
    }
    });
}

/// Reports a node class of a managed service. The user writes `ours`, the node class of the same cloud, instead.
pub(super) fn managed(service: &Managed, ours: &str, value: &Value, report: &mut Report) {
    let whole = format!(
        "It belongs to {}, which chooses the image and its user data itself: no {ours} is written. Write one of the same name \
         (docs/{}.md), which the converted pools name in `nodeClassRef`. {}",
        service.name,
        ours.to_ascii_lowercase(),
        service.also
    );
    each_field(value, &whole, report, |key| (service.field)(key).to_owned());
}

/// Reports a NodeOverlay, which sets other prices and resources of instance types.
pub(super) fn overlay(value: &Value, report: &mut Report) {
    let whole = "Poolwright has no NodeOverlay. A catalogue file can change the types and prices that come from `--catalogue`. A node class that \
         asks its cloud for prices ignores the file: list types without a price in `allowUnknownPrices` of the NodePool.";
    each_field(value, whole, report, |key| {
        match key {
            "price" => {
                "If types come from `--catalogue`, write this price in a file (`on_demand_usd_per_hour`, `spot_usd_per_hour`) and pass it \
                 after the others: `--catalogue builtin --catalogue my-prices.csv` (docs/catalogue.md). The \
                 file needs the columns `provider`, `region` and `zones` of the row that it overrides: a row \
                 without `provider` belongs to no cloud, so no node class has its type."
            }
            "priceAdjustment" => {
                "Poolwright has no relative prices. If types come from `--catalogue`, write the resulting prices in a file and pass it after \
                 the others: `--catalogue builtin --catalogue my-prices.csv` (docs/catalogue.md). The file \
                 needs the columns `provider`, `region` and `zones` of the row that it overrides: a row \
                 without `provider` belongs to no cloud, so no node class has its type."
            }
            "capacity" => {
                "GPUs, their number and their memory are columns of a catalogue file (docs/catalogue.md); other extended resources are \
                 not possible. Plans know shares of GPUs by `--sharing`."
            }
            "requirements" => "List the instance types that it selects in the catalogue file, each with its zones.",
            "weight" => "Later catalogue files override earlier ones, type by type: pass the files in this order.",
            _ => "This field does not exist. Leave it out.",
        }
        .to_owned()
    });
}

/// Notes the object, each field of its spec, and each field beside the spec.
fn each_field(value: &Value, whole: &str, report: &mut Report, sentence: impl Fn(&str) -> String) {
    if value
        .get("metadata")
        .and_then(|meta| meta.get("name"))
        .and_then(Value::as_str)
        .is_none_or(str::is_empty)
    {
        report.problem("metadata.name", "missing", "give the object a name");
    }
    let Some(fields) = Fields::of("", value, report) else { return };
    report.not_possible("", whole);
    for (key, path, value) in fields.rest() {
        match key.as_str() {
            "apiVersion" | "kind" | "metadata" => {}
            "status" => report.changed(path, "Left out: the cluster writes it."),
            "spec" => match value.as_object() {
                Some(spec) => {
                    for key in spec.keys() {
                        report.not_possible(join("spec", key), sentence(key));
                    }
                }
                None => report.problem("spec", "not an object", "indent its fields below it"),
            },
            _ => report.not_possible(path, format!("`{key}` is not a field of this object. Leave it out.")),
        }
    }
}
