//! Samples for the tests of user data: a cluster, a node, and user data as users write it.

use std::collections::BTreeMap;

use poolwright_provider_aws_model::bootstrap::{
    ClusterFacts, DeviceSharing, Family, KubeadmFacts, Kubelet, NodeFacts, NvidiaPlugin,
};
use poolwright_terms::{Taint, TaintEffect};

pub fn cluster() -> ClusterFacts {
    ClusterFacts {
        name: "training".to_owned(),
        endpoint: "https://0123456789ABCDEF.gr7.us-east-1.eks.amazonaws.com".to_owned(),
        // "-----BEGIN CERTIFICATE-----\nexample\n-----END CERTIFICATE-----\n"
        ca: "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCmV4YW1wbGUKLS0tLS1FTkQgQ0VSVElGSUNBVEUtLS0tLQo=".to_owned(),
        service_cidr: Some("10.100.0.0/16".to_owned()),
    }
}

pub fn texts(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

pub fn taint(key: &str, value: &str, effect: TaintEffect) -> Taint {
    Taint { key: key.to_owned(), value: value.to_owned(), effect }
}

pub fn node() -> NodeFacts {
    NodeFacts {
        labels: texts(&[
            ("poolwright.dev/nodepool", "gpu"),
            ("team", "vision"),
            ("example.com/quoted", "true"),
            ("node-role.kubernetes.io/gpu", ""),
        ]),
        taints: vec![
            taint("poolwright.dev/unregistered", "", TaintEffect::NoExecute),
            taint("nvidia.com/gpu", "present", TaintEffect::NoSchedule),
            taint("nvidia.com/gpu", "present", TaintEffect::NoExecute),
        ],
        kubelet: Kubelet {
            max_pods: Some(110),
            system_reserved: texts(&[("cpu", "200m"), ("memory", "512Mi")]),
            kube_reserved: texts(&[("cpu", "100m")]),
            eviction_hard: texts(&[("memory.available", "5%")]),
            eviction_soft: texts(&[("nodefs.available", "10%")]),
            eviction_soft_grace_period: texts(&[("nodefs.available", "1m30s")]),
            eviction_max_pod_grace_period: Some(60),
            cluster_dns: vec!["10.100.0.10".parse().unwrap()],
            cpu_cfs_quota: Some(false),
            image_gc_high_threshold_percent: Some(85),
            image_gc_low_threshold_percent: Some(80),
            ..Kubelet::default()
        },
        instance_store_raid: true,
    }
}

pub fn on_ubuntu() -> NodeFacts {
    NodeFacts { instance_store_raid: false, ..node() }
}

pub const TOKEN: &str = "abcdef.0123456789abcdef";

pub fn kubeadm() -> Family {
    Family::Ubuntu(KubeadmFacts { token: TOKEN.parse().unwrap(), external_cloud_provider: true })
}

pub fn nvidia() -> Family {
    Family::Bottlerocket {
        nvidia: Some(NvidiaPlugin {
            sharing: DeviceSharing::TimeSlicing(4),
            mig_profiles: texts(&[("a100.40gb", "1g.5gb")]),
        }),
    }
}

pub const SCRIPT: &str = "#!/bin/bash\necho hello\n";
pub const FOREIGN: &str = "#!/bin/bash\necho 'Grüße, 世界'\n";
pub const ARCHIVE: &str = "Content-Type: multipart/mixed;\n boundary=\"==BOUNDARY==\"\nMIME-Version: 1.0\n\n--==BOUNDARY==\nContent-Type: text/x-shellscript\n\n#!/bin/sh\necho '--poolwright is no boundary here'\n--poolwright\n\n--==BOUNDARY==\r\nContent-Type: application/node.eks.aws\n\napiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec:\n  kubelet:\n    flags: [--v=2]\n--==BOUNDARY==--\nafter the end\n";
pub const SETTINGS: &str = "# the user's\n[settings]\nmotd = \"hello\"\n[settings.kubernetes]\ncluster-name = \"other\"\nmax-pods = 8\nregistry-qps = 10\n[settings.kubernetes.node-labels]\nteam = \"audio\"\nmine = \"yes\"\n[settings.kubernetes.node-taints]\nother = [\":NoSchedule\"]\n[settings.kubelet-device-plugins.nvidia]\npass-device-specs = true\ndevice-sharing-strategy = \"mps\"\n";
pub const CLOUD_CONFIG: &str = "#cloud-config\nruncmd:\n  - echo hello\n";

pub fn cases() -> Vec<(&'static str, NodeFacts, Family, Option<&'static str>)> {
    let plain = || Family::Bottlerocket { nvidia: None };
    vec![
        ("al2023.txt", node(), Family::Al2023, None),
        ("al2023-bare.txt", NodeFacts::default(), Family::Al2023, Some("")),
        ("al2023-with-a-script.txt", node(), Family::Al2023, Some(SCRIPT)),
        ("al2023-with-a-script-in-other-letters.txt", NodeFacts::default(), Family::Al2023, Some(FOREIGN)),
        ("al2023-with-an-archive.txt", node(), Family::Al2023, Some(ARCHIVE)),
        ("bottlerocket.toml", node(), plain(), None),
        ("bottlerocket-bare.toml", NodeFacts::default(), plain(), None),
        ("bottlerocket-merged.toml", node(), nvidia(), Some(SETTINGS)),
        ("ubuntu.txt", on_ubuntu(), kubeadm(), None),
        ("ubuntu-with-cloud-config.txt", on_ubuntu(), kubeadm(), Some(CLOUD_CONFIG)),
        ("custom.txt", node(), Family::Custom, Some(SCRIPT)),
    ]
}
