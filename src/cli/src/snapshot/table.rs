//! The kinds of Kubernetes, of Poolwright and of operators that a snapshot has, with the fields that are kept, in the notation of
//! `fields`.
//!
//! Templates of controllers are kept for `what-if`, which makes the pods that these lack.

use poolwright_terms::{GROUP, VERSION};

type Row = (&'static str, &'static str, &'static str, &'static str, &'static str, &'static str);

/// Group, version, resource, kind, word for aliases, fields.
pub const KINDS: [Row; 29] = [
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
         spec { weight replicas allowUnknownPrices limits:amounts monthlyBudget { usd action } \
         buffer { units maxUnits requests:amounts schedule timeZone duration } scaleToZero { after } \
         spot { onDemandFloor maxShare } \
         disruption { consolidationPolicy consolidateAfter paybackWithin retire \
         budgets { nodes reasons schedule timeZone duration } repair { condition status after } } \
         template { metadata { labels:labels } spec { taints:@taint startupTaints:@taint readinessGates { conditionType } \
         requirements { key:key operator values:values minValues } nodeClassRef { group kind name:class } \
         deadlines { launch registration initialization termination } expireAfter } } } \
         status { nodes resources:amounts usdPerHour plannedUsdPerHour monthlySpend { month usd forecastUsd countedFrom countedUntil } \
         observedGeneration conditions:@own-condition }",
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
         price { usdPerHour source:text asOf } allocatable:amounts interruption { kind noticed deadline message:text } \
         conditions:@own-condition }",
    ),
    ("apps", "v1", "daemonsets", "DaemonSet", "daemonset", "@meta spec { template:@template }"),
    (
        "apps",
        "v1",
        "deployments",
        "Deployment",
        "deployment",
        "@meta metadata { annotations { deployment.kubernetes.io/revision } } \
         spec { replicas paused selector:@selector strategy { type rollingUpdate { maxSurge maxUnavailable } } template:@template } \
         status { replicas observedGeneration conditions:@condition }",
    ),
    (
        "apps",
        "v1",
        "replicasets",
        "ReplicaSet",
        "replicaset",
        "@meta metadata { annotations { deployment.kubernetes.io/revision deployment.kubernetes.io/desired-replicas \
         deployment.kubernetes.io/max-replicas } } \
         spec { replicas selector:@selector template:@template } status { replicas availableReplicas conditions:@condition }",
    ),
    (
        "apps",
        "v1",
        "statefulsets",
        "StatefulSet",
        "statefulset",
        "@meta spec { replicas podManagementPolicy ordinals { start } updateStrategy { rollingUpdate { partition } } \
         volumeClaimTemplates { metadata { name:volumename } \
         spec { accessModes volumeMode storageClassName:storage resources:@resources selector:@selector } } \
         selector:@selector template:@template } \
         status { replicas observedGeneration currentRevision:revision updateRevision:revision }",
    ),
    (
        "",
        "v1",
        "replicationcontrollers",
        "ReplicationController",
        "controller",
        "@meta spec { replicas selector:labels template:@template } status { replicas conditions:@condition }",
    ),
    (
        "batch",
        "v1",
        "jobs",
        "Job",
        "job",
        "@meta spec { parallelism completions completionMode suspend managedBy template:@template } \
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
         volumeClaimTemplates:mark } } status { replicas }",
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
         status { phase succeeded }",
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
    // What `savings` converts.
    (
        "karpenter.sh",
        "v1",
        "nodepools",
        "NodePool",
        "pool",
        "@meta spec { weight replicas limits:amounts \
         disruption { consolidationPolicy consolidateAfter budgets { nodes reasons schedule duration } } \
         template { metadata { labels:labels annotations { karpenter.sh/do-not-disrupt } } \
         spec { taints:@taint startupTaints:@taint nodeClassRef { group kind name:class } \
         requirements { key:key operator values:values minValues } expireAfter terminationGracePeriod } } }",
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
