//! Parts that several kinds have, in the notation of `fields`.

/// Fragments by name.
pub const FRAGMENTS: &[(&str, &str)] = &[
    (
        "meta",
        "metadata { name:own namespace:namespace uid:uid creationTimestamp deletionTimestamp generation labels:labels \
         ownerReferences { apiVersion kind name:owner uid:uid controller } }",
    ),
    // Sentences of others may quote anything, so only that there is one is kept.
    ("condition", "type status reason observedGeneration lastTransitionTime message:mark"),
    ("own-condition", "type status reason observedGeneration lastTransitionTime message:text"),
    ("expression", "key:key operator values:values"),
    ("term", "matchExpressions:@expression matchFields:@expression"),
    ("selector", "matchLabels:labels matchExpressions:@expression"),
    ("taint", "key:key value:values effect timeAdded"),
    ("toleration", "key:key operator value:values effect tolerationSeconds"),
    ("resources", "requests:amounts limits:amounts"),
    (
        "container",
        "name:container restartPolicy resources:@resources ports { hostPort containerPort protocol hostIP:address }",
    ),
    ("container-status", "name:container resources:@resources allocatedResources:amounts"),
    (
        "pod-term",
        "labelSelector:@selector namespaceSelector:@selector namespaces:namespace topologyKey:key \
         matchLabelKeys:key mismatchLabelKeys:key",
    ),
    (
        "pod-affinity",
        "requiredDuringSchedulingIgnoredDuringExecution:@pod-term \
         preferredDuringSchedulingIgnoredDuringExecution { weight podAffinityTerm:@pod-term }",
    ),
    (
        "node-affinity",
        "requiredDuringSchedulingIgnoredDuringExecution { nodeSelectorTerms:@term } \
         preferredDuringSchedulingIgnoredDuringExecution { weight preference:@term }",
    ),
    (
        "volume",
        "name:volumename persistentVolumeClaim { claimName:claim } ephemeral:mark \
         azureDisk { diskName:disk diskURI:disk } azureFile { secretName:disk shareName:disk } cinder { volumeID:disk } \
         portworxVolume { volumeID:disk } vsphereVolume { volumePath:disk } \
         awsElasticBlockStore:mark gcePersistentDisk:mark iscsi:mark rbd:mark",
    ),
    (
        "pod",
        "nodeName:node nodeSelector:labels schedulerName priority priorityClassName:priority preemptionPolicy \
         runtimeClassName:runtime hostNetwork activeDeadlineSeconds terminationGracePeriodSeconds restartPolicy \
         overhead:amounts resources:@resources containers:@container initContainers:@container tolerations:@toleration \
         affinity { nodeAffinity:@node-affinity podAffinity:@pod-affinity podAntiAffinity:@pod-affinity } \
         topologySpreadConstraints { maxSkew topologyKey:key whenUnsatisfiable labelSelector:@selector matchLabelKeys:key \
         minDomains nodeAffinityPolicy nodeTaintsPolicy } \
         schedulingGates { name:gate } schedulingGroup { podGroupName:group } resourceClaims { name:resourceclaim } \
         os { name } volumes:@volume",
    ),
    // What Poolwright and others read of a pod's annotations.
    (
        "pod-annotations",
        "kubernetes.io/config.mirror:mark poolwright.dev/expected-duration poolwright.dev/ran-for \
         poolwright.dev/do-not-disrupt karpenter.sh/do-not-disrupt cluster-autoscaler.kubernetes.io/safe-to-evict \
         leaderworkerset.sigs.k8s.io/size scheduling.k8s.io/group-name:group scheduling.volcano.sh/group-name:group \
         scheduling.x-k8s.io/pod-group:group pod-group.scheduling.sigs.k8s.io:group \
         pod-group.scheduling.sigs.k8s.io/name:group",
    ),
    ("template", "metadata { labels:labels annotations:@pod-annotations } spec:@pod"),
    // The specification of a node class of Karpenter, without its tags. Of its user data, only that there is one is kept.
    (
        "karpenter-class",
        "amiFamily amiSelectorTerms { alias id:resource name:resource owner:resource ssmParameter:resource tags:labels } \
         associatePublicIPAddress \
         blockDeviceMappings { deviceName rootVolume ebs { deleteOnTermination encrypted iops kmsKeyID:resource \
         snapshotID:resource throughput volumeInitializationRate volumeSize volumeType } } \
         capacityReservationSelectorTerms { id:resource instanceMatchCriteria ownerID:resource tags:labels } detailedMonitoring \
         ephemeralStorage { size iops throughput kmsKeyID:resource } instanceProfile:resource instanceStorePolicy ipPrefixCount \
         kubelet { clusterDNS:address cpuCFSQuota evictionHard:amounts evictionMaxPodGracePeriod evictionSoft:amounts \
         evictionSoftGracePeriod:amounts imageGCHighThresholdPercent imageGCLowThresholdPercent kubeReserved:amounts maxPods \
         podsPerCore systemReserved:amounts } \
         metadataOptions { httpEndpoint httpProtocolIPv6 httpPutResponseHopLimit httpTokens } \
         networkInterfaces { networkCardIndex deviceIndex interfaceType } placementGroupSelector { id:resource name:resource \
         partition } role:resource securityGroupSelectorTerms { id:resource name:resource tags:labels } \
         subnetSelectorTerms { id:resource tags:labels } userData:script",
    ),
];
