//! The kinds that a snapshot has, with the fields of each that plans and views read.

use poolwright_controller::LIVES;
use poolwright_terms::{GROUP, VERSION, keys};
use serde_json::Value;

use super::fields::Shape;
use crate::clouds::clouds;

/// The selector of unfinished pods. Finished pods use no resources, and clusters that run jobs keep many of them.
const UNFINISHED: &str = "status.phase!=Succeeded,status.phase!=Failed";

/// A kind of object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind {
    /// The API group; empty for the core.
    pub group: &'static str,
    /// Its version.
    pub version: &'static str,
    /// The plural name of the resource.
    pub plural: &'static str,
    /// The kind.
    pub kind: &'static str,
    /// The word for aliases of its objects.
    own: &'static str,
    /// What is kept of an object.
    fields: &'static str,
}

impl Kind {
    /// Returns the path of the list of all objects.
    pub fn path(&self) -> String {
        let Self { group, version, plural, .. } = self;
        if group.is_empty() {
            format!("/api/{version}/{plural}")
        } else {
            format!("/apis/{group}/{version}/{plural}")
        }
    }

    /// Returns `apiVersion` of its objects.
    pub fn api_version(&self) -> String {
        let Self { group, version, .. } = self;
        if group.is_empty() { (*version).to_owned() } else { format!("{group}/{version}") }
    }

    /// Returns the field selector of the objects that are read.
    pub fn selector(&self) -> Option<String> {
        match self.plural {
            "pods" => Some(UNFINISHED.to_owned()),
            "configmaps" => Some(format!("metadata.name={LIVES}")),
            "leases" => Some(format!("metadata.name={}", keys::LEASE)),
            _ => None,
        }
    }

    /// Returns what is kept of an object.
    pub fn shape(&self) -> Shape {
        Shape::read(self.fields, self.own)
    }
}

/// Returns all kinds, those of the clouds last.
pub fn kinds() -> Vec<Kind> {
    let kind =
        |(group, version, plural, kind, own, fields)| Kind { group, version, plural, kind, own, fields };
    let classes = clouds().iter().map(|cloud| Kind {
        group: GROUP,
        version: VERSION,
        plural: cloud.node_class.kind.plural,
        kind: cloud.node_class.kind.kind,
        own: "class",
        fields: "@meta spec:whole status:whole",
    });
    KINDS.into_iter().map(kind).chain(classes).collect()
}

/// What is kept of the objects of all kinds.
pub struct Shapes(Vec<(String, &'static str, Shape)>);

impl Shapes {
    /// Reads the notation of all kinds.
    pub fn new() -> Self {
        Self(kinds().iter().map(|kind| (kind.api_version(), kind.kind, kind.shape())).collect())
    }

    /// Returns what is kept of an object; `None` if its kind is not in snapshots.
    pub fn of(&self, object: &Value) -> Option<&Shape> {
        let found = self.0.iter().find(|(version, kind, _)| {
            object["kind"].as_str() == Some(*kind) && object["apiVersion"].as_str() == Some(version.as_str())
        });
        found.map(|(.., shape)| shape)
    }
}

type Row = (&'static str, &'static str, &'static str, &'static str, &'static str, &'static str);

/// Group, version, resource, kind, word for aliases, fields.
const KINDS: [Row; 27] = [
    (
        "",
        "v1",
        "namespaces",
        "Namespace",
        "namespace",
        "@meta metadata { annotations { poolwright.dev/limit-nodes poolwright.dev/limit-gpus poolwright.dev/limit-usd-per-hour \
         scheduler.alpha.kubernetes.io/node-selector:text scheduler.alpha.kubernetes.io/defaultTolerations:text } }",
    ),
    (
        "",
        "v1",
        "nodes",
        "Node",
        "node",
        "@meta metadata { annotations { poolwright.dev/cordoned-until:mark poolwright.dev/do-not-disrupt } } \
         spec { providerID:machine unschedulable taints:@taint } \
         status { allocatable:amounts capacity:amounts conditions:@condition }",
    ),
    (
        "",
        "v1",
        "pods",
        "Pod",
        "pod",
        "@meta metadata { annotations:@pod-annotations } spec:@pod \
         status { phase startTime nominatedNodeName:node conditions:@condition containerStatuses:@container-status \
         initContainerStatuses:@container-status resources:@resources allocatedResources:amounts }",
    ),
    (
        GROUP,
        VERSION,
        "nodepools",
        "NodePool",
        "pool",
        "@meta metadata { annotations { poolwright.dev/do-not-disrupt } } \
         spec { weight replicas allowUnknownPrices limits:amounts \
         buffer { units maxUnits requests:amounts schedule timeZone duration } scaleToZero { after } \
         spot { onDemandFloor maxShare } \
         disruption { consolidationPolicy consolidateAfter paybackWithin retire \
         budgets { nodes reasons schedule timeZone duration } repair { condition status after } } \
         template { metadata { labels:labels } spec { taints:@taint startupTaints:@taint readinessGates { conditionType } \
         requirements { key:key operator values:values minValues } nodeClassRef { group kind name:class } \
         deadlines { launch registration initialization termination } expireAfter } } } \
         status { nodes resources:amounts usdPerHour plannedUsdPerHour observedGeneration conditions:@own-condition }",
    ),
    (
        GROUP,
        VERSION,
        "nodeclaims",
        "NodeClaim",
        "claim",
        "@meta metadata { annotations { poolwright.dev/reason:text poolwright.dev/bought-again:mark \
         poolwright.dev/do-not-disrupt } } \
         spec { nodeClassRef { group kind name:class } together labels:labels taints:@taint startupTaints:@taint \
         offerings { instanceType zone capacityType usdPerHour allocatable:amounts } readinessGates { conditionType } \
         pods:podkey deadlines { launch registration initialization termination } } \
         status { providerID:machine nodeName:node offering { instanceType zone capacityType } \
         price { usdPerHour source asOf } allocatable:amounts interruption { kind noticed deadline message:text } \
         conditions:@own-condition }",
    ),
    ("apps", "v1", "daemonsets", "DaemonSet", "daemonset", "@meta spec { template:@template }"),
    (
        "apps",
        "v1",
        "replicasets",
        "ReplicaSet",
        "replicaset",
        "@meta spec { replicas selector:@selector template:@gates } status { replicas conditions:@condition }",
    ),
    (
        "apps",
        "v1",
        "statefulsets",
        "StatefulSet",
        "statefulset",
        "@meta spec { replicas podManagementPolicy selector:@selector template:@gates } status { replicas }",
    ),
    (
        "",
        "v1",
        "replicationcontrollers",
        "ReplicationController",
        "controller",
        "@meta spec { replicas selector:labels template:@gates } status { replicas conditions:@condition }",
    ),
    (
        "batch",
        "v1",
        "jobs",
        "Job",
        "job",
        "@meta spec { parallelism completions completionMode suspend managedBy template:@gates } \
         status { active terminating succeeded failed ready completedIndexes failedIndexes conditions:@condition \
         uncountedTerminatedPods { succeeded:uid failed:uid } }",
    ),
    (
        "jobset.x-k8s.io",
        "v1alpha2",
        "jobsets",
        "JobSet",
        "jobset",
        "@meta metadata { annotations { alpha.jobset.sigs.k8s.io/exclusive-topology:mark } } \
         spec { suspend managedBy startupPolicy { startupPolicyOrder } \
         replicatedJobs { name:part replicas dependsOn { name:part status } \
         template { metadata { annotations { alpha.jobset.sigs.k8s.io/exclusive-topology:mark } } \
         spec { parallelism completions template:@template } } } } \
         status { conditions:@condition replicatedJobsStatus { name:part ready succeeded failed } }",
    ),
    (
        "leaderworkerset.x-k8s.io",
        "v1",
        "leaderworkersets",
        "LeaderWorkerSet",
        "leaderworkerset",
        "@meta metadata { annotations { leaderworkerset.sigs.k8s.io/exclusive-topology:mark } } \
         spec { replicas startupPolicy leaderWorkerTemplate { size leaderTemplate:@template workerTemplate:@template \
         volumeClaimTemplates:mark } }",
    ),
    (
        "",
        "v1",
        "persistentvolumeclaims",
        "PersistentVolumeClaim",
        "volumeclaim",
        "@meta metadata { annotations { pv.kubernetes.io/bind-completed volume.kubernetes.io/selected-node:node \
         volume.beta.kubernetes.io/storage-class:storage } } \
         spec { accessModes volumeName:volume storageClassName:storage volumeMode volumeAttributesClassName:attributes \
         resources:@resources selector:@selector } status { phase }",
    ),
    (
        "",
        "v1",
        "persistentvolumes",
        "PersistentVolume",
        "volume",
        "@meta metadata { annotations { volume.beta.kubernetes.io/storage-class:storage } } \
         spec { capacity:amounts accessModes storageClassName:storage volumeMode volumeAttributesClassName:attributes \
         claimRef { namespace:namespace name:volumeclaim } nodeAffinity { required { nodeSelectorTerms:@term } } \
         csi { driver volumeHandle:disk } awsElasticBlockStore { volumeID:disk } gcePersistentDisk { pdName:disk } \
         azureDisk { diskName:disk diskURI:disk } cinder { volumeID:disk } vsphereVolume { volumePath:disk } \
         portworxVolume { volumeID:disk } } status { phase }",
    ),
    (
        "storage.k8s.io",
        "v1",
        "storageclasses",
        "StorageClass",
        "storage",
        "@meta metadata { annotations { storageclass.kubernetes.io/is-default-class \
         storageclass.beta.kubernetes.io/is-default-class } } \
         provisioner volumeBindingMode allowedTopologies { matchLabelExpressions { key:key values:values } }",
    ),
    (
        "storage.k8s.io",
        "v1",
        "csinodes",
        "CSINode",
        "node",
        "@meta spec { drivers { name nodeID:mark allocatable { count } } }",
    ),
    // The name of a driver is a word of its software.
    (
        "storage.k8s.io",
        "v1",
        "csidrivers",
        "CSIDriver",
        "driver",
        "metadata { name uid:uid } spec { attachRequired storageCapacity }",
    ),
    (
        "policy",
        "v1",
        "poddisruptionbudgets",
        "PodDisruptionBudget",
        "budget",
        "@meta spec { minAvailable maxUnavailable unhealthyPodEvictionPolicy selector:@selector } \
         status { observedGeneration expectedPods disruptionsAllowed currentHealthy desiredHealthy conditions:@condition }",
    ),
    (
        "scheduling.k8s.io",
        "v1alpha2",
        "podgroups",
        "PodGroup",
        "group",
        "@meta spec { schedulingPolicy { gang { minCount } basic:mark } \
         schedulingConstraints { topology { key:key } } }",
    ),
    (
        "scheduling.volcano.sh",
        "v1beta1",
        "podgroups",
        "PodGroup",
        "group",
        "@meta spec { minMember minTaskMember:tasks queue:queue networkTopology { mode } subGroupPolicy:mark } \
         status { phase }",
    ),
    ("scheduling.x-k8s.io", "v1alpha1", "podgroups", "PodGroup", "group", "@meta spec { minMember }"),
    ("", "v1", "services", "Service", "service", "@meta spec { selector:labels }"),
    (
        "",
        "v1",
        "limitranges",
        "LimitRange",
        "limitrange",
        "@meta spec { limits { type default:amounts defaultRequest:amounts min:amounts max:amounts \
         maxLimitRequestRatio:amounts } }",
    ),
    (
        "node.k8s.io",
        "v1",
        "runtimeclasses",
        "RuntimeClass",
        "runtime",
        "@meta overhead { podFixed:amounts } scheduling { nodeSelector:labels tolerations:@toleration }",
    ),
    (
        "scheduling.k8s.io",
        "v1",
        "priorityclasses",
        "PriorityClass",
        "priority",
        "@meta value globalDefault preemptionPolicy",
    ),
    // What the controller has learned about the durations of pods.
    (
        "",
        "v1",
        "configmaps",
        "ConfigMap",
        "configmap",
        "metadata { name namespace:namespace uid:uid } data { lives.json }",
    ),
    (
        "coordination.k8s.io",
        "v1",
        "leases",
        "Lease",
        "lease",
        "metadata { name namespace:namespace uid:uid annotations { poolwright.dev/version poolwright.dev/prices-as-of } } \
         spec { holderIdentity:holder leaseDurationSeconds acquireTime renewTime leaseTransitions }",
    ),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Returns the fields of a schema that a shape lacks. Fields of a node class are kept whole.
    fn lacking(schema: &Value, shape: &Shape, path: &str, found: &mut BTreeSet<String>) {
        let schema = if schema["items"].is_object() { &schema["items"] } else { schema };
        for (name, below) in schema["properties"].as_object().into_iter().flatten() {
            let path = format!("{path}.{name}");
            match shape {
                Shape::Value(_) => {}
                Shape::Object(fields) => match fields.get(name.as_str()) {
                    Some(shape) => lacking(below, shape, &path, found),
                    None => {
                        found.insert(path);
                    }
                },
            }
        }
    }

    #[test]
    fn all_fields_of_pools_and_claims_are_kept_but_the_annotations_of_nodes() {
        let mut found = BTreeSet::new();
        for definition in crate::clouds::crds() {
            let plural = definition.spec.names.plural.clone();
            let kind =
                kinds().into_iter().find(|kind| kind.plural == plural).expect("each kind is in a snapshot");
            let definition = serde_json::to_value(&definition).expect("JSON");
            let schema = &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"];
            let Shape::Object(fields) = kind.shape() else { panic!("an object") };
            for part in ["spec", "status"] {
                lacking(&schema[part], &fields[part], &format!("{plural}.{part}"), &mut found);
            }
        }
        let expected = ["nodeclaims.spec.annotations", "nodepools.spec.template.metadata.annotations"];
        assert_eq!(found, BTreeSet::from(expected.map(str::to_owned)));
    }

    #[test]
    fn every_kind_can_be_told_from_the_others_and_its_fields_can_be_read() {
        let all = kinds();
        let names: BTreeSet<_> = all.iter().map(|kind| (kind.group, kind.plural)).collect();
        assert_eq!(names.len(), all.len());
        for kind in all {
            let Shape::Object(fields) = kind.shape() else { panic!("an object") };
            assert!(fields.contains_key("metadata"), "{}", kind.kind);
        }
        let pods = kinds().into_iter().find(|kind| kind.plural == "pods").expect("pods");
        assert_eq!((pods.path(), pods.api_version()), ("/api/v1/pods".to_owned(), "v1".to_owned()));
    }
}
