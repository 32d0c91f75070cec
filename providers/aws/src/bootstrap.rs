//! Collects the facts for the user data of new nodes from the node class and the launch request. `aws-model` writes the user
//! data.

use std::collections::BTreeMap;

use poolwright_api::Amount;
use poolwright_provider_aws_model::bootstrap::{
    self, ClusterFacts, Family, KubeadmFacts, Kubelet, NodeFacts, UserData,
};
use poolwright_provider_contract::{LaunchRequest, ProviderError};
use poolwright_terms::keys;

use crate::node_class::{AmiFamily, KubeletSettings};
use crate::resolve::{KIND, ResolvedNodeClass, WrongField, unusable};
use crate::settings::{Join, Settings};
use crate::tokens::SharedToken;

/// How nodes of a class join the cluster.
pub(crate) struct JoinConfig {
    cluster: ClusterFacts,
    family: Family,
}

impl JoinConfig {
    /// Determines how nodes of a class join. It creates a bootstrap token only for the family Ubuntu, and only after all other
    /// facts are known.
    pub async fn of(
        class: &ResolvedNodeClass,
        settings: &Settings,
        tokens: &SharedToken,
    ) -> Result<Self, ProviderError> {
        let cluster = cluster(class, &settings.cluster, settings.join.as_ref())?;
        let family = match class.family {
            AmiFamily::Al2023 => Family::Al2023,
            AmiFamily::Bottlerocket => Family::Bottlerocket { nvidia: None },
            AmiFamily::Custom => Family::Custom,
            AmiFamily::Ubuntu => Family::Ubuntu(KubeadmFacts {
                token: tokens.token().await?,
                external_cloud_provider: settings.cloud_controller,
            }),
        };
        Ok(Self { cluster, family })
    }

    /// Returns the user data of a node. All nodes of a class and pool have the same user data, so that they share a launch
    /// template. Poolwright sets the labels of a single claim when the node registers.
    pub fn user_data(
        &self,
        class: &ResolvedNodeClass,
        request: &LaunchRequest,
    ) -> Result<UserData, ProviderError> {
        let own = class.spec.user_data.as_ref().map(|data| UserData::from(data.as_str().to_owned()));
        let object = format!("{KIND} `{}`", class.name);
        bootstrap::user_data(&object, &self.cluster, &node(class, request)?, &self.family, own.as_ref())
            .map_err(|error| ProviderError::Invalid(error.to_string()))
    }
}

/// Returns the facts about the cluster for nodes of this class.
fn cluster(
    class: &ResolvedNodeClass,
    name: &str,
    join: Option<&Join>,
) -> Result<ClusterFacts, ProviderError> {
    match join {
        Some(Join { endpoint, ca, service_cidr }) => Ok(ClusterFacts {
            name: name.to_owned(),
            endpoint: endpoint.clone(),
            ca: ca.clone(),
            service_cidr: service_cidr.clone(),
        }),
        // The user data of this family contains none of these facts.
        None if class.family == AmiFamily::Custom => Ok(ClusterFacts {
            name: name.to_owned(),
            endpoint: String::new(),
            ca: String::new(),
            service_cidr: None,
        }),
        None => {
            let cause = "nodes of this family need the address of the API server: start the controller with --aws-cluster-endpoint \
                         (and with --aws-cluster-ca if the CA certificate differs from the one of the controller's pod)";
            Err(unusable(&class.name, "amiFamily", cause))
        }
    }
}

fn node(class: &ResolvedNodeClass, request: &LaunchRequest) -> Result<NodeFacts, ProviderError> {
    let mut labels = request.labels.clone();
    labels.remove(keys::NODECLAIM_LABEL);
    Ok(NodeFacts {
        labels,
        taints: request.taints.clone(),
        kubelet: kubelet(&class.spec.kubelet).map_err(|wrong| wrong.of(&class.name))?,
        instance_store_raid: class.spec.instance_store_policy.is_some(),
    })
}

/// Converts the kubelet settings of a class.
pub(crate) fn kubelet(settings: &KubeletSettings) -> Result<Kubelet, WrongField> {
    // The API server rejects negative numbers, and percentages above 100.
    let count = |number: Option<i32>| number.and_then(|number| u32::try_from(number).ok());
    let percent = |number: Option<i32>| number.and_then(|number| u8::try_from(number).ok());
    let quantities = |all: &BTreeMap<String, Amount>| {
        all.iter().map(|(name, amount)| (name.clone(), amount.to_string())).collect()
    };
    let mut cluster_dns = Vec::new();
    for address in &settings.cluster_dns {
        let parsed = address.parse().map_err(|_| {
            WrongField::new("kubelet.clusterDNS", format!("`{address}` is not an IP address; correct it"))
        })?;
        cluster_dns.push(parsed);
    }
    Ok(Kubelet {
        max_pods: count(settings.max_pods),
        pods_per_core: count(settings.pods_per_core),
        system_reserved: quantities(&settings.system_reserved),
        kube_reserved: quantities(&settings.kube_reserved),
        eviction_hard: settings.eviction_hard.clone(),
        eviction_soft: settings.eviction_soft.clone(),
        eviction_soft_grace_period: settings
            .eviction_soft_grace_period
            .iter()
            .map(|(signal, time)| (signal.clone(), time.to_string()))
            .collect(),
        eviction_max_pod_grace_period: count(settings.eviction_max_pod_grace_period),
        cluster_dns,
        cpu_cfs_quota: settings.cpu_cfs_quota,
        image_gc_high_threshold_percent: percent(settings.image_gc_high_threshold_percent),
        image_gc_low_threshold_percent: percent(settings.image_gc_low_threshold_percent),
    })
}

#[cfg(test)]
mod tests {
    use poolwright_provider_aws_model::instance::KubeletReserved;
    use poolwright_terms::{GROUP, NodeClassRef};
    use serde_json::{Value, json};

    use super::*;

    /// Returns the user data of a node of a class with these fields besides those that every class has.
    fn made(family: AmiFamily, joins: Family, fields: &Value) -> String {
        let mut spec = json!({"role": "Nodes", "amiFamily": family, "amiSelectorTerms": [{"id": "ami-1"}],
            "subnetSelectorTerms": [], "securityGroupSelectorTerms": []});
        spec.as_object_mut().expect("a map").extend(fields.as_object().expect("a map").clone());
        let class = ResolvedNodeClass {
            name: "gpu".to_owned(),
            spec: serde_json::from_value(spec).expect("a class"),
            family,
            subnets: Vec::new(),
            groups: Vec::new(),
            images: Vec::new(),
            profile: "Nodes".to_owned(),
            placement: None,
            reservations: Vec::new(),
            kept: KubeletReserved::default(),
        };
        let cluster = ClusterFacts {
            name: "blue".to_owned(),
            endpoint: "https://api.example".to_owned(),
            ca: "TFMwdA==".to_owned(),
            service_cidr: Some("10.100.0.0/16".to_owned()),
        };
        let request = LaunchRequest {
            key: "key".to_owned(),
            claim: "gpu-1".to_owned(),
            node_class: NodeClassRef {
                group: GROUP.to_owned(),
                kind: KIND.to_owned(),
                name: "gpu".to_owned(),
            },
            offerings: Vec::new(),
            together: 0,
            labels: BTreeMap::new(),
            annotations: BTreeMap::new(),
            taints: Vec::new(),
            batch: None,
        };
        let made = JoinConfig { cluster, family: joins }.user_data(&class, &request).expect("user data");
        made.as_str().to_owned()
    }

    #[test]
    fn nodes_of_a_class_with_the_policy_for_local_disks_make_one_array_of_them_unless_the_user_data_is_all_they_get()
     {
        let own = "#!/bin/sh\nmake-the-array\n";
        let raid = json!({"instanceStorePolicy": "RAID0"});
        let al2023 = made(AmiFamily::Al2023, Family::Al2023, &raid);
        assert!(al2023.contains("\"localStorage\"") && al2023.contains("RAID0"), "{al2023}");
        let bottlerocket = made(AmiFamily::Bottlerocket, Family::Bottlerocket { nvidia: None }, &raid);
        assert!(
            bottlerocket.contains("ephemeral-storage") && bottlerocket.contains("/var/lib/kubelet"),
            "{bottlerocket}"
        );
        let custom = json!({"instanceStorePolicy": "RAID0", "userData": own});
        assert_eq!(made(AmiFamily::Custom, Family::Custom, &custom), own);
    }

    #[test]
    fn every_kubelet_setting_of_a_class_reaches_its_nodes() {
        let mut kubelet = json!({
            "maxPods": 58, "podsPerCore": 9, "systemReserved": {"cpu": "201m"}, "kubeReserved": {"memory": "703Mi"},
            "evictionHard": {"memory.available": "6%"}, "evictionSoft": {"nodefs.available": "11%"},
            "evictionSoftGracePeriod": {"nodefs.available": "1m31s"}, "evictionMaxPodGracePeriod": 61,
            "clusterDNS": ["10.100.0.10"], "cpuCFSQuota": false,
            "imageGCHighThresholdPercent": 86, "imageGCLowThresholdPercent": 79,
        });
        let al2023 = made(AmiFamily::Al2023, Family::Al2023, &json!({"kubelet": kubelet}));
        let from = al2023.find('{').expect("a document");
        let upto = al2023.rfind('}').expect("a document");
        let config: Value = serde_json::from_str(&al2023[from..=upto]).expect("one document");
        assert_eq!(config["spec"]["kubelet"]["config"], kubelet);

        kubelet.as_object_mut().expect("a map").remove("podsPerCore");
        let family = Family::Bottlerocket { nvidia: None };
        let bottlerocket = made(AmiFamily::Bottlerocket, family, &json!({"kubelet": kubelet}));
        for line in [
            "max-pods = 58",
            "cpu = \"201m\"",
            "memory = \"703Mi\"",
            "\"memory.available\" = \"6%\"",
            "\"nodefs.available\" = \"11%\"",
            "\"nodefs.available\" = \"1m31s\"",
            "eviction-max-pod-grace-period = 61",
            "cluster-dns-ip = \"10.100.0.10\"",
            "cpu-cfs-quota-enforced = false",
            "image-gc-high-threshold-percent = \"86\"",
            "image-gc-low-threshold-percent = \"79\"",
        ] {
            assert!(bottlerocket.lines().any(|told| told == line), "{line} is not in {bottlerocket}");
        }
    }
}
