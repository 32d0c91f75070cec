//! The kinds of objects that are read, and what is said of the others.

use std::collections::BTreeMap;

use poolwright_api::{FieldProblem, meant};
use poolwright_terms::API_VERSION;
use serde_json::Value;

use super::Manifest;
use super::objects::{Object, group, meta};
use super::operators::{always_makes_pods, never_makes_pods};
use crate::error::{IntakeError, OfObject, object_name};
use crate::pod_sets;

/// The supported kinds with their version, and whether they are namespaced.
pub(super) const KINDS: [(&str, &str, bool); 25] = [
    ("Pod", "v1", true),
    ("Node", "v1", false),
    ("Namespace", "v1", false),
    ("Deployment", "apps/v1", true),
    ("ReplicaSet", "apps/v1", true),
    ("StatefulSet", "apps/v1", true),
    ("DaemonSet", "apps/v1", true),
    ("ReplicationController", "v1", true),
    ("Service", "v1", true),
    ("Job", "batch/v1", true),
    ("JobSet", "jobset.x-k8s.io/v1alpha2", true),
    ("RuntimeClass", "node.k8s.io/v1", false),
    ("PriorityClass", "scheduling.k8s.io/v1", false),
    ("LimitRange", "v1", true),
    ("ResourceQuota", "v1", true),
    ("PersistentVolumeClaim", "v1", true),
    ("PersistentVolume", "v1", false),
    ("StorageClass", "storage.k8s.io/v1", false),
    ("CSINode", "storage.k8s.io/v1", false),
    ("PodDisruptionBudget", "policy/v1", true),
    ("PodGroup", "scheduling.k8s.io/v1alpha2", true),
    ("PodGroup", "scheduling.volcano.sh/v1beta1", true),
    ("PodGroup", "scheduling.x-k8s.io/v1alpha1", true),
    ("NodePool", API_VERSION, false),
    ("NodeClaim", API_VERSION, false),
];

/// Further kinds without a namespace. Custom resources of others may have more, which count as namespaced.
const CLUSTER_SCOPED: [&str; 48] = [
    "APIService",
    "AdmissionCheck",
    "CSIDriver",
    "CertificateSigningRequest",
    "CiliumClusterwideNetworkPolicy",
    "ClusterAnalysisTemplate",
    "ClusterExternalSecret",
    "ClusterImageCatalog",
    "ClusterIssuer",
    "ClusterPolicy",
    "ClusterPushSecret",
    "ClusterQueue",
    "ClusterRole",
    "ClusterRoleBinding",
    "ClusterSecretStore",
    "ClusterServingRuntime",
    "ClusterTrainingRuntime",
    "ClusterTriggerAuthentication",
    "ClusterTrustBundle",
    "ClusterWorkflowTemplate",
    "Cohort",
    "CustomResourceDefinition",
    "DeviceClass",
    "DeviceTaintRule",
    "FlowSchema",
    "GatewayClass",
    "GlobalNetworkPolicy",
    "IPAddress",
    "IngressClass",
    "MultiKueueCluster",
    "MultiKueueConfig",
    "MutatingAdmissionPolicy",
    "MutatingAdmissionPolicyBinding",
    "MutatingWebhookConfiguration",
    "NVIDIADriver",
    "NodeFeatureRule",
    "PriorityLevelConfiguration",
    "ProvisioningRequestConfig",
    "ResourceFlavor",
    "ResourceSlice",
    "ServiceCIDR",
    "Topology",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
    "ValidatingWebhookConfiguration",
    "VolumeAttachment",
    "VolumeAttributesClass",
    "WorkloadPriorityClass",
];

/// Returns whether objects of a kind have no namespace, as far as this is known. Node classes have none either; their clouds know
/// their kinds.
pub fn is_cluster_scoped(api_version: &str, kind: &str) -> bool {
    let is_listed = KINDS.iter().any(|(known, _, namespaced)| *known == kind && !*namespaced);
    is_listed || CLUSTER_SCOPED.contains(&kind) || is_of_karpenter(group(api_version))
}

/// Returns whether a group is of Karpenter, of a provider of it, or of the service that runs it. No kind of them has a namespace.
fn is_of_karpenter(group: &str) -> bool {
    group.starts_with("karpenter.") || group == "eks.amazonaws.com"
}

/// Groups without kinds that create pods. Their objects are skipped without a note.
const QUIET_GROUPS: [&str; 19] = [
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "apiregistration.k8s.io",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "autoscaling",
    "certificates.k8s.io",
    "coordination.k8s.io",
    "discovery.k8s.io",
    "events.k8s.io",
    "flowcontrol.apiserver.k8s.io",
    "internal.apiserver.k8s.io",
    "networking.k8s.io",
    "node.k8s.io",
    "policy",
    "rbac.authorization.k8s.io",
    "scheduling.k8s.io",
    "storage.k8s.io",
    "storagemigration.k8s.io",
];

/// Kinds of the core group that are skipped without a note.
const QUIET_KINDS: [&str; 7] =
    ["Binding", "ComponentStatus", "ConfigMap", "Endpoints", "Event", "Secret", "ServiceAccount"];

/// Kinds beside autoscalers of other projects that are skipped without a note.
const QUIET_PARTS: [(&str, &str); 3] = [
    ("autoscaling.k8s.io", "VerticalPodAutoscalerCheckpoint"),
    ("keda.sh", "ClusterTriggerAuthentication"),
    ("keda.sh", "TriggerAuthentication"),
];

/// The API group of Karpenter that is the same for all clouds, and its kinds.
const KARPENTER: &str = "karpenter.sh";
const KARPENTER_KINDS: [&str; 2] = ["NodeClaim", "NodePool"];

/// Groups of Kubernetes that are read or that contain workloads, besides the core group and [`QUIET_GROUPS`].
const WORKLOAD_GROUPS: [&str; 3] = ["apps", "batch", FORMER];

/// The group that had kinds of other groups in old clusters.
const FORMER: &str = "extensions";

/// The version of CronJobs. They make Jobs, which are read, but are not read themselves.
const CRON_VERSION: &str = "batch/v1";

/// Kinds that make pods although their objects need not contain a list of containers.
pub(super) const MAKERS: [(&str, &str); 9] = [
    ("argoproj.io", "CronWorkflow"),
    ("argoproj.io", "Workflow"),
    ("batch", "CronJob"),
    ("flink.apache.org", "FlinkDeployment"),
    ("serving.kserve.io", "InferenceService"),
    ("serving.kserve.io", "LLMInferenceService"),
    ("sparkoperator.k8s.io", "ScheduledSparkApplication"),
    ("sparkoperator.k8s.io", "SparkApplication"),
    ("trainer.kubeflow.org", "TrainJob"),
];

/// Kinds of Kubernetes and of JobSet that are read and make pods.
const CONTROLLERS: [(&str, &str); 7] = [
    ("", "ReplicationController"),
    ("apps", "DaemonSet"),
    ("apps", "Deployment"),
    ("apps", "ReplicaSet"),
    ("apps", "StatefulSet"),
    ("batch", "Job"),
    ("jobset.x-k8s.io", "JobSet"),
];

/// Kinds that hold pod templates for other objects, or name their pods, and make no pods themselves.
const TEMPLATES: [&str; 12] = [
    "ClusterServingRuntime",
    "ClusterTrainingRuntime",
    "ClusterWorkflowTemplate",
    "ControllerRevision",
    "InstanceSet",
    "LLMInferenceServiceConfig",
    "PodGroup",
    "PodTemplate",
    "ServingRuntime",
    "TrainingRuntime",
    "Workload",
    "WorkflowTemplate",
];

/// Kinds that stand for the objects that a program renders from them, with the program's command.
const RENDERED: [(&str, &str, &str); 9] = [
    ("argoproj.io", "Application", "`helm template`, `kubectl kustomize` or `argocd app manifests`"),
    ("argoproj.io", "ApplicationSet", "`helm template`, `kubectl kustomize` or `argocd app manifests`"),
    ("helm.cattle.io", "HelmChart", "`helm template`"),
    ("helm.cattle.io", "HelmChartConfig", "`helm template`"),
    ("helm.toolkit.fluxcd.io", "HelmRelease", "`helm template`"),
    ("kustomize.config.k8s.io", "Component", "`kubectl kustomize`"),
    ("kustomize.config.k8s.io", "Kustomization", "`kubectl kustomize`"),
    ("kustomize.toolkit.fluxcd.io", "Kustomization", "`kubectl kustomize`"),
    ("source.toolkit.fluxcd.io", "HelmChart", "`helm template`"),
];

/// The endings of groups whose objects are rules about pods of others.
const POLICIES: [&str; 3] = ["gatekeeper.sh", "kyverno.io", "policies.kubewarden.io"];

impl Object {
    /// Whether it is of a kind that is read.
    pub(super) fn is_read(&self) -> bool {
        let group = group(&self.api_version);
        let is_listed = KINDS
            .iter()
            .any(|(kind, version, _)| *kind == self.kind && super::objects::group(version) == group);
        is_listed || self.is_node_class() || pod_sets::is_read(group, &self.kind)
    }

    /// Whether it is of a kind that is read and makes pods, whatever it says itself.
    pub(super) fn is_controller(&self) -> bool {
        let group = group(&self.api_version);
        CONTROLLERS.contains(&(group, self.kind.as_str())) || pod_sets::is_read(group, &self.kind)
    }

    /// Notes that the object is not read. If it makes pods that are in the input in no other form, they are missing in the plan.
    pub(super) fn note_unread(&self, is_shown_otherwise: bool, manifest: &mut Manifest) {
        let group = group(&self.api_version);
        if QUIET_PARTS.contains(&(group, &self.kind)) {
            return;
        }
        let scaling = self.scaling();
        let what = || format!("{} {} is not read", self.api_version, self.kind);
        let lacks_pods = self.makes_pods() && !is_shown_otherwise;
        let is_quiet = QUIET_GROUPS.contains(&group)
            || never_makes_pods(group, &self.kind)
            || (group == FORMER && !self.makes_pods());
        // A runtime that a quota refuses was read before.
        let runtime = || {
            let (kind, name) = pod_sets::train_job::runtime_of(&self.value);
            let namespace = pod_sets::train_job::is_namespaced(kind).then(|| self.namespace());
            object_name(kind, namespace, Some(name))
        };
        let rendered = RENDERED.iter().find(|(of, kind, _)| (*of, *kind) == (group, self.kind.as_str()));
        let note = if let Some((_, _, command)) = rendered.filter(|_| !is_shown_otherwise) {
            format!(
                "{}; it stands for other objects, which are planned only if the files have them: render them with {command}, and give the \
                 result to -f",
                what()
            )
        } else if is_shown_otherwise && (self.makes_pods() || scaling.is_some()) {
            format!("{}; its objects in the manifest count instead", what())
        } else if let Some(scaling) = scaling {
            format!("{}; {scaling}", what())
        } else if lacks_pods && self.is_over() {
            "it has ended or is suspended, and has no pods now".to_owned()
        } else if self.asks_for_none() {
            "its replicas are 0, so that it has no pods now".to_owned()
        } else if self.kind == "CronJob" && group == "batch" && !self.is_removed_cron_job() {
            let name = meta(&self.value, "name").unwrap_or("NAME");
            format!(
                "it makes jobs by the clock and has no pods now; to plan one run, give its Job (`kubectl create job {name} --from=cronjob/{name} --dry-run=client -o yaml`)"
            )
        } else if let Some(hint) = self.mistaken_kind().filter(|_| !self.is_stored()) {
            format!("{}; {hint}", what())
        } else if group.is_empty() && self.kind != "PodTemplate" {
            if QUIET_KINDS.contains(&self.kind.as_str()) {
                return;
            }
            format!("{}, because there is no such kind; correct apiVersion or kind", what())
        } else if is_quiet || (group == "apps" && self.kind == "ControllerRevision") {
            return;
        } else if is_of_karpenter(group) {
            format!("{}; convert it with `poolwright convert`", what())
        } else if self.kind == "PodGroup" {
            format!("{}; its pods are planned one by one, not as a gang", what())
        } else if TEMPLATES.contains(&self.kind.as_str()) && self.kind != "PodTemplate" {
            format!("{}; it is a template of other objects, and makes no pods itself", what())
        } else if lacks_pods && self.kind == "TrainJob" && manifest.not_created.contains(&runtime()) {
            format!(
                "{} cannot be created, so the pods that it makes from that runtime are not planned; raise the quota to plan them",
                runtime()
            )
        } else if lacks_pods && self.kind == "TrainJob" {
            let (kind, name) = pod_sets::train_job::runtime_of(&self.value);
            format!(
                "{}, because {kind} `{name}` is not in the files, so the pods that it makes are not planned; add that object, or give these pods too (`kubectl get pods -o yaml`)",
                what()
            )
        } else if lacks_pods {
            format!(
                "{}, so the pods that it makes are not planned; give these pods too (`kubectl get pods -o yaml`), or a Job or Deployment like them",
                what()
            )
        } else {
            format!("{}; pods it may make are not planned", what())
        };
        if self.lacks_pods(is_shown_otherwise) {
            manifest.unread.push(self.name());
        }
        manifest.notes.push(format!("{}: {note}", self.name()));
    }

    /// Returns whether it makes pods that the manifest has in no other form, and that its author wants now.
    pub(super) fn lacks_pods(&self, is_shown_otherwise: bool) -> bool {
        // A stored CronJob has no pods but those of its Jobs, which are objects of their own.
        let is_clock = (self.kind == "CronJob" || self.kind == "ScaledJob") && self.is_stored();
        self.makes_pods() && !is_shown_otherwise && !self.is_over() && !is_clock
    }

    /// Returns whether it is of a kind that always makes pods, but asks for none now.
    fn asks_for_none(&self) -> bool {
        always_makes_pods(group(&self.api_version), &self.kind) && self.value["spec"]["replicas"] == 0
    }

    /// Returns whether it makes pods: its kind is known for that, or its spec has a list of containers or asks for GPUs.
    pub(super) fn makes_pods(&self) -> bool {
        let group = group(&self.api_version);
        if always_makes_pods(group, &self.kind) {
            return !self.asks_for_none();
        }
        if never_makes_pods(group, &self.kind) {
            return false;
        }
        let is_rule = POLICIES.iter().any(|end| group.ends_with(end)) || QUIET_GROUPS.contains(&group);
        let is_template = TEMPLATES.contains(&self.kind.as_str());
        // Limits of autoscalers and of their buffers are about nodes.
        let is_autoscaler = group.starts_with("karpenter.") || group.starts_with("autoscaling.");
        let asks = || !is_autoscaler && asks_for_gpus(&self.value["spec"]);
        // A misspelt kind is probably the one that was meant.
        let is_maker = |(of, kind): &(&str, &str)| *of == group && meant(&self.kind, [*kind]).is_some();
        MAKERS.iter().any(is_maker)
            || (!is_rule && !is_template && (has_containers(&self.value["spec"]) || asks()))
    }

    /// Returns what does not count because an autoscaler is not read; `None` for other objects.
    fn scaling(&self) -> Option<String> {
        let spec = &self.value["spec"];
        let least = spec.get("minReplicaCount").map_or_else(|| "0".to_owned(), Value::to_string);
        match (group(&self.api_version), self.kind.as_str()) {
            ("keda.sh", "ScaledObject") => {
                let target = &spec["scaleTargetRef"];
                let kind = target["kind"].as_str().unwrap_or("Deployment");
                let name = target["name"].as_str().unwrap_or_default();
                Some(format!(
                    "the replicas that it sets for {kind} `{name}` do not count (minReplicaCount: {least})"
                ))
            }
            ("keda.sh", "ScaledJob") => Some(format!(
                "the Jobs that it makes while there is work do not count (minReplicaCount: {least}); to plan some, give Jobs like them"
            )),
            ("autoscaling.k8s.io", "VerticalPodAutoscaler") => {
                Some("pods are planned with the requests of their template".to_owned())
            }
            _ => None,
        }
    }

    /// Returns whether the object says that it has ended or is suspended.
    fn is_over(&self) -> bool {
        let (spec, status) = (&self.value["spec"], &self.value["status"]);
        let ends = ["Succeeded", "Failed", "Error", "Completed", "Complete", "COMPLETED", "FAILED"];
        let ended = |state: &Value| state.as_str().is_some_and(|state| ends.contains(&state));
        let conditions = status["conditions"].as_array().into_iter().flatten();
        let mut conditions = conditions.filter(|one| one["status"] == "True");
        spec["suspend"] == true
            || ended(&status["phase"])
            || ended(&status["applicationState"]["state"])
            || conditions.any(|one| ["Complete", "Failed", "Succeeded"].iter().any(|end| one["type"] == *end))
    }

    /// Returns the problem of a written object whose kind does not exist, if there is one that its author probably meant. It is told
    /// with the problems of others. If there are none, it is a note, and [`Manifest::mistaken`] has it.
    pub(super) fn mistaken(&self) -> Option<IntakeError> {
        let is_cron = self.kind == "CronJob" && group(&self.api_version) == "batch";
        let is_unknown = !self.is_read() && (!is_cron || self.is_removed_cron_job());
        let hint = self.mistaken_kind().filter(|_| is_unknown && !self.is_stored())?;
        let cause = format!("{} {} is not read", self.api_version, self.kind);
        let problem = FieldProblem::new("", cause, hint).of(self.name());
        Some(IntakeError { file: Some(self.file.clone()), ..problem })
    }

    /// Returns whether it is a written CronJob of a version that no API server has any more.
    fn is_removed_cron_job(&self) -> bool {
        self.kind == "CronJob" && self.api_version != CRON_VERSION && !self.is_stored()
    }

    /// What the author of an unknown kind probably meant.
    fn mistaken_kind(&self) -> Option<String> {
        let own = group(&self.api_version);
        if own == KARPENTER {
            let kind = meant(&self.kind, KARPENTER_KINDS).filter(|kind| *kind != self.kind)?;
            return Some(format!("did you mean {kind}?"));
        }
        let is_kubernetes = own.is_empty() || WORKLOAD_GROUPS.contains(&own) || QUIET_GROUPS.contains(&own);
        if own.is_empty() && QUIET_KINDS.contains(&self.kind.as_str()) {
            return None;
        }
        if !is_kubernetes {
            return self.mistaken_of_others(own);
        }
        let elsewhere = KINDS.iter().find(|(kind, ..)| *kind == self.kind);
        let elsewhere = elsewhere.map(|(kind, version, _)| (*kind, *version));
        let removed = self.is_removed_cron_job().then_some(("CronJob", CRON_VERSION));
        if let Some((kind, version)) = elsewhere.or(removed) {
            return Some(format!("{kind} belongs to {version}; correct apiVersion"));
        }
        let ours = KINDS.iter().filter(|(_, version, _)| group(version) == own).map(|(kind, ..)| *kind);
        let kind = meant(&self.kind, ours.chain((own == "batch").then_some("CronJob")))?;
        Some(format!("did you mean {kind}?"))
    }

    /// What the author of an unknown kind in a group that is not Kubernetes' own probably meant: another kind of that group, or a
    /// group that is written almost like it.
    fn mistaken_of_others(&self, own: &str) -> Option<String> {
        let mut of_own = known_kinds().filter(|(of, _)| *of == own).map(|(_, kind)| kind).peekable();
        if of_own.peek().is_some() {
            let kind = meant(&self.kind, of_own).filter(|kind| *kind != self.kind)?;
            return Some(format!("did you mean {kind}?"));
        }
        // Projects beside Kubernetes have groups that differ from its own in nothing else.
        let is_beside = |group: &str| group.ends_with(".x-k8s.io");
        let alike = known_kinds().filter(|(of, kind)| *kind == self.kind && is_beside(of) == is_beside(own));
        let of = meant(own, alike.map(|(of, _)| of))?;
        Some(format!("{} belongs to the group {of}; correct apiVersion", self.kind))
    }
}

/// Returns the names of the NodePools of Karpenter, by file.
pub(super) fn karpenter_pools(objects: &[Object]) -> BTreeMap<String, Vec<String>> {
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let is_pool = |object: &&Object| group(&object.api_version) == KARPENTER && object.kind == "NodePool";
    for pool in objects.iter().filter(is_pool) {
        let name = meta(&pool.value, "name").unwrap_or_default();
        found.entry(pool.file.clone()).or_default().push(name.to_owned());
    }
    found
}

/// Returns the kinds that are read or known to make pods, with their groups.
fn known_kinds() -> impl Iterator<Item = (&'static str, &'static str)> {
    let read = KINDS.into_iter().map(|(kind, version, _)| (group(version), kind));
    read.chain(pod_sets::kinds()).chain(MAKERS)
}

/// Returns whether something at any depth requests GPUs, as the pods of an operator's own kinds do.
fn asks_for_gpus(value: &Value) -> bool {
    match value {
        Value::Object(fields) => {
            let lists = ["limits", "requests", "resources"].map(|field| fields.get(field));
            // Some operators have a short name of their own.
            let is_gpu = |name: &str| {
                name == "gpu" || name.starts_with("nvidia.com/") || name.starts_with("amd.com/gpu")
            };
            let is_some =
                |amount: &Value| (amount.is_number() || amount.is_string()) && *amount != 0 && *amount != "0";
            let asks = |list: &Value| {
                let mut amounts = list.as_object().into_iter().flatten();
                amounts.any(|(name, amount)| is_gpu(name.as_str()) && is_some(amount))
            };
            lists.into_iter().flatten().any(asks) || fields.values().any(asks_for_gpus)
        }
        Value::Array(items) => items.iter().any(asks_for_gpus),
        _ => false,
    }
}

/// Returns whether there is a list of containers at any depth.
fn has_containers(value: &Value) -> bool {
    match value {
        Value::Object(fields) => {
            let own = fields.get("containers").and_then(Value::as_array);
            own.is_some_and(|list| list.iter().any(Value::is_object)) || fields.values().any(has_containers)
        }
        Value::Array(items) => items.iter().any(has_containers),
        _ => false,
    }
}
