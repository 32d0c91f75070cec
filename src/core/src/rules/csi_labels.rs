//! Node labels with which CSI drivers, kubelets and cloud providers repeat a standard label under another key.

use std::collections::BTreeMap;

use poolwright_terms::labels::{ARCH, INSTANCE_TYPE, OS, REGION, ZONE};

/// CSI drivers whose volumes are reached only from the zone in which they were made.
///
/// Source: the topology keys of the drivers, as below.
pub(crate) const ZONAL_DRIVERS: [&str; 3] =
    ["ebs.csi.aws.com", "pd.csi.storage.gke.io", "disk.csi.azure.com"];

/// CSI drivers whose volumes are not attached to nodes (`attachRequired: false` of their CSIDriver). Any number of nodes mounts such a
/// volume, whatever its access mode.
///
/// Source: the CSIDriver objects in the charts of the drivers.
const UNATTACHED_DRIVERS: [&str; 4] =
    ["efs.csi.aws.com", "fsx.csi.aws.com", "nfs.csi.k8s.io", "filestore.csi.storage.gke.io"];

/// Returns whether the volumes of a CSI driver are known not to be attached to nodes.
pub fn is_unattached(driver: &str) -> bool {
    UNATTACHED_DRIVERS.contains(&driver)
}

/// Returns the standard label that a label repeats.
pub fn repeats(key: &str) -> Option<&'static str> {
    REPEATED.iter().find(|(repeated, _)| *repeated == key).map(|(_, original)| *original)
}

/// Adds the labels that CSI drivers, kubelets and cloud providers will add to a node with these labels.
pub fn add_repeated(labels: &mut BTreeMap<String, String>) {
    for (key, original) in REPEATED {
        if let Some(value) = labels.get(original).cloned() {
            labels.entry(key.to_owned()).or_insert(value);
        }
    }
}

/// Labels of CSI drivers, kubelets and cloud providers, and the standard label that each repeats. A new node gets them when its
/// driver runs. Kubelets and cloud providers still set the `beta` labels of Kubernetes.
///
/// Source: topology keys of `aws-ebs-csi-driver`, `gcp-compute-persistent-disk-csi-driver` and `azuredisk-csi-driver`;
/// <https://kubernetes.io/docs/reference/labels-annotations-taints/#failure-domainbetakubernetesiozone>.
pub(crate) const REPEATED: [(&str, &str); 8] = [
    ("topology.ebs.csi.aws.com/zone", ZONE),
    ("topology.gke.io/zone", ZONE),
    ("topology.disk.csi.azure.com/zone", ZONE),
    ("failure-domain.beta.kubernetes.io/zone", ZONE),
    ("failure-domain.beta.kubernetes.io/region", REGION),
    ("beta.kubernetes.io/arch", ARCH),
    ("beta.kubernetes.io/os", OS),
    ("beta.kubernetes.io/instance-type", INSTANCE_TYPE),
];
