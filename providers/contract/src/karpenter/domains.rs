//! Who defines a key: Karpenter, another autoscaler, a cloud, or the user.

/// The domains under which other autoscalers and clouds define labels of nodes. Users give nodes no labels under them.
const OTHERS: [&str; 15] = [
    "alibabacloud.com",
    "aliyun.com",
    "azure.com",
    "cast.ai",
    "cloud.google.com",
    "cluster-autoscaler.kubernetes.io",
    "digitalocean.com",
    "gke.io",
    "ibm-cloud.kubernetes.io",
    "linode.com",
    "oraclecloud.com",
    "ovhcloud.com",
    "scaleway.com",
    "spot.io",
    "spotinst.io",
];

/// Returns whether Karpenter or one of its providers defines the key.
pub fn is_karpenters(key: &str) -> bool {
    domain(key).is_some_and(|domain| domain.split('.').any(|part| part == "karpenter"))
}

/// Returns whether another autoscaler or a cloud defines the key.
pub fn is_foreign(key: &str) -> bool {
    let is_under = |domain: &str, parent: &str| {
        domain.strip_suffix(parent).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    };
    domain(key).is_some_and(|domain| OTHERS.iter().any(|parent| is_under(domain, parent)))
}

fn domain(key: &str) -> Option<&str> {
    key.split_once('/').map(|(domain, _)| domain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_told_by_its_domain_and_not_by_its_name() {
        for key in
            ["karpenter.sh/nodepool", "karpenter.k8s.gcp/instance-size", "compatibility.karpenter.k8s.aws/x"]
        {
            assert!(is_karpenters(key), "{key}");
        }
        for key in ["cloud.google.com/gke-spot", "topology.gke.io/zone", "kubernetes.azure.com/mode"] {
            assert!(is_foreign(key) && !is_karpenters(key), "{key}");
        }
        for key in [
            "example.com/karpenter-pool",
            "team",
            "mycloud.google.community/x",
            "notazure.com/x",
            "karpenter",
        ] {
            assert!(!is_foreign(key) && !is_karpenters(key), "{key}");
        }
    }
}
