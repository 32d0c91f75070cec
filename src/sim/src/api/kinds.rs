//! The kinds of objects that the API server serves.

use std::sync::Arc;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

use super::custom::Custom;

/// A resource: its kind, and where it is served.
#[derive(Clone, Debug)]
#[expect(clippy::struct_field_names, reason = "Kubernetes calls the kind so")]
pub(super) struct Kind {
    pub group: String,
    pub version: String,
    pub plural: String,
    pub kind: String,
    pub namespaced: bool,
    pub traits: Traits,
    /// The schema of a custom resource.
    pub custom: Option<Arc<Custom>>,
}

/// How the API server treats a kind.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Traits {
    /// The status is a subresource.
    pub status: bool,
    /// `metadata.generation` counts changes of the spec.
    pub generation: bool,
    /// An update needs no resource version.
    pub unconditional: bool,
    /// Custom resources are not validated, because their writers are trusted.
    pub trusted: bool,
}

impl Kind {
    /// Returns `group/version`, or the version of the core group.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }

    /// Returns the name in error messages, such as `pods` or `leases.coordination.k8s.io`.
    pub fn resource(&self) -> String {
        if self.group.is_empty() { self.plural.clone() } else { format!("{}.{}", self.plural, self.group) }
    }

    pub fn is_pod(&self) -> bool {
        self.group.is_empty() && self.kind == "Pod"
    }

    pub fn of_definition(definition: &CustomResourceDefinition) -> Vec<Self> {
        let spec = &definition.spec;
        let served = spec.versions.iter().filter(|version| version.served);
        served
            .map(|version| {
                let custom = Custom::new(&spec.group, &spec.names.kind, version);
                let traits = Traits { status: custom.has_status(), generation: true, ..Traits::default() };
                Self {
                    group: spec.group.clone(),
                    version: version.name.clone(),
                    plural: spec.names.plural.clone(),
                    kind: spec.names.kind.clone(),
                    namespaced: spec.scope == "Namespaced",
                    traits,
                    custom: Some(Arc::new(custom)),
                }
            })
            .collect()
    }
}

/// Returns the built-in kinds that Poolwright reads or writes. The traits are those of the strategies in Kubernetes'
/// `pkg/registry`: which kinds count generations, and which allow updates without a resource version.
pub(super) fn built_in() -> Vec<Kind> {
    let none = Traits { unconditional: true, ..Traits::default() };
    let status = Traits { status: true, ..none };
    let counted = Traits { generation: true, ..status };
    let strict = Traits { unconditional: false, ..none };
    let strict_status = Traits { status: true, ..strict };
    let all: [(&str, &str, &str, &str, bool, Traits); 25] = [
        ("", "v1", "pods", "Pod", true, counted),
        ("", "v1", "nodes", "Node", false, status),
        ("", "v1", "namespaces", "Namespace", false, status),
        ("", "v1", "configmaps", "ConfigMap", true, none),
        ("", "v1", "services", "Service", true, status),
        ("", "v1", "persistentvolumes", "PersistentVolume", false, status),
        ("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim", true, status),
        ("", "v1", "limitranges", "LimitRange", true, none),
        ("", "v1", "resourcequotas", "ResourceQuota", true, status),
        ("", "v1", "replicationcontrollers", "ReplicationController", true, counted),
        ("apps", "v1", "deployments", "Deployment", true, counted),
        ("apps", "v1", "replicasets", "ReplicaSet", true, counted),
        ("apps", "v1", "statefulsets", "StatefulSet", true, counted),
        ("apps", "v1", "daemonsets", "DaemonSet", true, counted),
        ("batch", "v1", "jobs", "Job", true, counted),
        ("coordination.k8s.io", "v1", "leases", "Lease", true, strict),
        ("events.k8s.io", "v1", "events", "Event", true, none),
        ("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget", true, counted_strict()),
        ("storage.k8s.io", "v1", "storageclasses", "StorageClass", false, none),
        ("storage.k8s.io", "v1", "csinodes", "CSINode", false, strict),
        ("storage.k8s.io", "v1", "volumeattachments", "VolumeAttachment", false, strict_status),
        ("storage.k8s.io", "v1", "csidrivers", "CSIDriver", false, strict),
        ("storage.k8s.io", "v1", "csistoragecapacities", "CSIStorageCapacity", true, none),
        ("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", false, none),
        ("node.k8s.io", "v1", "runtimeclasses", "RuntimeClass", false, strict),
    ];
    let kind =
        |(group, version, plural, kind, namespaced, traits): (&str, &str, &str, &str, bool, Traits)| Kind {
            group: group.to_owned(),
            version: version.to_owned(),
            plural: plural.to_owned(),
            kind: kind.to_owned(),
            namespaced,
            traits,
            custom: None,
        };
    all.map(kind).into()
}

/// Returns the kind PodGroup of Kubernetes 1.36, which an API server has only with the feature gate `GenericWorkload`.
pub(super) fn pod_group() -> Kind {
    Kind {
        group: "scheduling.k8s.io".to_owned(),
        version: "v1alpha2".to_owned(),
        plural: "podgroups".to_owned(),
        kind: "PodGroup".to_owned(),
        namespaced: true,
        traits: counted_strict(),
        custom: None,
    }
}

fn counted_strict() -> Traits {
    Traits { status: true, generation: true, ..Traits::default() }
}
