//! The kubelet settings that change the allocatable resources of nodes.

use poolwright_provider_aws_model::instance::{KubeletReserved, ThresholdDefaults};
use poolwright_provider_contract::ProviderError;

use super::WrongField;
use crate::bootstrap;
use crate::node_class::{AmiFamily, EC2NodeClassSpec};

/// Returns the resources that the kubelet of this class reserves, if the image family supports the settings.
pub(crate) fn find(class: &str, spec: &EC2NodeClassSpec) -> Result<KubeletReserved, ProviderError> {
    reserved(spec).map_err(|wrong| wrong.of(class))
}

/// Returns the resources that the kubelet reserves, or the wrong setting.
pub(crate) fn reserved(spec: &EC2NodeClassSpec) -> Result<KubeletReserved, WrongField> {
    let kubelet = bootstrap::kubelet(&spec.kubelet)?;
    let bottlerocket = spec.family() == Some(AmiFamily::Bottlerocket);
    if bottlerocket && kubelet.pods_per_core.is_some() {
        let cause = "Bottlerocket has no such setting; use kubelet.maxPods, or another amiFamily";
        return Err(WrongField::new("kubelet.podsPerCore", cause));
    }
    let unnamed = if bottlerocket { ThresholdDefaults::None } else { ThresholdDefaults::AsTheImage };
    KubeletReserved::of(&kubelet, unnamed)
        .map_err(|wrong| WrongField::new(format!("kubelet.{}", wrong.field), wrong.cause.to_string()))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn kept(family: &str, kubelet: &Value) -> Result<KubeletReserved, String> {
        let spec = json!({
            "role": "Nodes", "amiFamily": family, "kubelet": kubelet,
            "subnetSelectorTerms": [], "securityGroupSelectorTerms": [],
            "amiSelectorTerms": [{"id": "ami-1"}],
        });
        let spec: EC2NodeClassSpec = serde_json::from_value(spec).expect("a class");
        find("gpu", &spec).map_err(|error| match error {
            ProviderError::Invalid(told) => told,
            other => panic!("a person must do something: {other}"),
        })
    }

    #[test]
    fn a_wrong_setting_is_told_with_the_class_and_the_field_and_what_to_write() {
        for (family, kubelet, told) in [
            (
                "AL2023",
                json!({"kubeReserved": {"memory": "1Gib"}}),
                "spec.kubelet.kubeReserved.memory: `1Gib`",
            ),
            (
                "AL2023",
                json!({"systemReserved": {"cpu": "-1"}}),
                "spec.kubelet.systemReserved.cpu: `-1` is negative",
            ),
            (
                "Custom",
                json!({"evictionHard": {"memory.available": "0"}}),
                "spec.kubelet.evictionHard[memory.available]: `0` is not a valid threshold",
            ),
            (
                "AL2023",
                json!({"evictionHard": {"nodefs.available": "101%"}}),
                "spec.kubelet.evictionHard[nodefs.available]: `101%` is not a percentage",
            ),
            (
                "Bottlerocket",
                json!({"podsPerCore": 10}),
                "spec.kubelet.podsPerCore: Bottlerocket has no such setting",
            ),
            (
                "AL2023",
                json!({"clusterDNS": ["1.2.3"]}),
                "spec.kubelet.clusterDNS: `1.2.3` is not an IP address",
            ),
        ] {
            let error = kept(family, &kubelet).expect_err("it is wrong");
            assert!(error.starts_with("EC2NodeClass `gpu`: ") && error.contains(told), "{error}");
        }
    }

    #[test]
    fn signals_that_are_not_named_stay_as_the_image_has_them_but_on_bottlerocket() {
        let only_disk = json!({"evictionHard": {"nodefs.available": "5%"}});
        let default = KubeletReserved::default();
        let al2023 = kept("AL2023", &only_disk).expect("fine");
        let bottlerocket = kept("Bottlerocket", &only_disk).expect("fine");
        assert_eq!(al2023.memory_left.of(1 << 34), default.memory_left.of(1 << 34));
        assert_eq!(bottlerocket.memory_left.of(1 << 34), 0);
        assert_eq!((al2023.disk_left.of(2000), bottlerocket.disk_left.of(2000)), (100, 100));
        assert_eq!(kept("Bottlerocket", &json!({})), Ok(default));
    }
}
