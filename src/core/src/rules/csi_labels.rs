//! Labels that CSI drivers repeat under names of their own.

use std::collections::BTreeMap;

use poolwright_terms::labels::{REGION, ZONE};

/// The label that this one repeats on nodes of a CSI driver.
pub fn repeats(key: &str) -> Option<&'static str> {
    REPEATED.iter().find(|(repeated, _)| *repeated == key).map(|(_, original)| *original)
}

/// Adds the labels that CSI drivers will put on a node with these.
pub fn add_repeated(labels: &mut BTreeMap<String, String>) {
    for (key, original) in REPEATED {
        if let Some(value) = labels.get(original).cloned() {
            labels.entry(key.to_owned()).or_insert(value);
        }
    }
}

/// Labels that CSI drivers and cloud providers put on their nodes, and what of an offering they repeat. A node that is not
/// there yet will have them when its driver runs.
///
/// Facts: topology keys of `aws-ebs-csi-driver`, `gcp-compute-persistent-disk-csi-driver` and `azuredisk-csi-driver`;
/// <https://kubernetes.io/docs/reference/labels-annotations-taints/#failure-domainbetakubernetesiozone>.
pub(crate) const REPEATED: [(&str, &str); 5] = [
    ("topology.ebs.csi.aws.com/zone", ZONE),
    ("topology.gke.io/zone", ZONE),
    ("topology.disk.csi.azure.com/zone", ZONE),
    ("failure-domain.beta.kubernetes.io/zone", ZONE),
    ("failure-domain.beta.kubernetes.io/region", REGION),
];
