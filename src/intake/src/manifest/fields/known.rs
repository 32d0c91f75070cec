//! The fields of the kinds of other projects, at each level that is read, in all versions of their APIs.

/// The fields of a map, and the levels below it.
pub(super) struct Level {
    /// All its fields; empty if its author chooses their names.
    pub fields: &'static [&'static str],
    /// The levels below its fields. Those of [`ANY`] are below each field.
    below: &'static [(&'static str, Level)],
}

impl Level {
    /// Returns whether a field is listed.
    pub fn has(&self, field: &str) -> bool {
        self.fields.is_empty() || self.fields.contains(&field)
    }

    /// Returns the level below a field; `None` if it is not read, or checked elsewhere.
    pub fn below(&self, field: &str) -> Option<&Level> {
        let found = self.below.iter().find(|(of, _)| *of == field || *of == ANY);
        found.map(|(_, level)| level)
    }
}

/// Each field.
const ANY: &str = "*";

/// A level with no others below that are read.
const fn leaf(fields: &'static [&'static str]) -> Level {
    Level { fields, below: &[] }
}

/// Returns the level of the spec of a kind; `None` if its fields are not listed here.
pub(super) fn spec_of(group: &str, kind: &str) -> Option<&'static Level> {
    let found = SPECS.iter().find(|(of, known, _)| (*of, *known) == (group, kind));
    found.map(|(_, _, level)| level)
}

/// The specs, by group and kind. Templates are checked where their pods are made.
static SPECS: [(&str, &str, Level); 20] = [
    (
        "kubeflow.org",
        "PyTorchJob",
        of_training(&["pytorchReplicaSpecs", "runPolicy", "elasticPolicy", "nprocPerNode"]),
    ),
    (
        "kubeflow.org",
        "TFJob",
        of_training(&["tfReplicaSpecs", "runPolicy", "successPolicy", "enableDynamicWorker"]),
    ),
    (
        "kubeflow.org",
        "MPIJob",
        of_training(&[
            "mpiReplicaSpecs",
            "runPolicy",
            "cleanPodPolicy",
            "slotsPerWorker",
            "mainContainer",
            "sshAuthMountPath",
            "launcherCreationPolicy",
            "mpiImplementation",
            "runLauncherAsWorker",
        ]),
    ),
    ("kubeflow.org", "XGBoostJob", of_training(&["xgbReplicaSpecs", "runPolicy"])),
    ("kubeflow.org", "PaddleJob", of_training(&["paddleReplicaSpecs", "runPolicy", "elasticPolicy"])),
    ("kubeflow.org", "JAXJob", of_training(&["jaxReplicaSpecs", "runPolicy"])),
    ("kubeflow.org", "MXJob", of_training(&["mxReplicaSpecs", "runPolicy", "jobMode"])),
    (
        "trainer.kubeflow.org",
        "TrainJob",
        Level {
            fields: &[
                "runtimeRef",
                "initializer",
                "trainer",
                "labels",
                "annotations",
                "podTemplateOverrides",
                "podSpecOverrides",
                "runtimePatches",
                "suspend",
                "managedBy",
                "activeDeadlineSeconds",
            ],
            below: &[
                ("runtimeRef", leaf(&["name", "apiGroup", "kind"])),
                (
                    "trainer",
                    leaf(&[
                        "image",
                        "command",
                        "args",
                        "env",
                        "numNodes",
                        "resourcesPerNode",
                        "numProcPerNode",
                    ]),
                ),
            ],
        },
    ),
    ("trainer.kubeflow.org", "TrainingRuntime", RUNTIME),
    ("trainer.kubeflow.org", "ClusterTrainingRuntime", RUNTIME),
    (
        "leaderworkerset.x-k8s.io",
        "LeaderWorkerSet",
        Level {
            fields: &[
                "replicas",
                "leaderWorkerTemplate",
                "rolloutStrategy",
                "startupPolicy",
                "networkConfig",
            ],
            below: &[
                ("networkConfig", leaf(&["subdomainPolicy"])),
                (
                    "leaderWorkerTemplate",
                    leaf(&[
                        "leaderTemplate",
                        "workerTemplate",
                        "size",
                        "restartPolicy",
                        "resizePolicy",
                        "subGroupPolicy",
                        "volumeClaimTemplates",
                        "persistentVolumeClaimRetentionPolicy",
                    ]),
                ),
            ],
        },
    ),
    ("ray.io", "RayCluster", RAY_CLUSTER),
    (
        "ray.io",
        "RayJob",
        Level {
            fields: &[
                "activeDeadlineSeconds",
                "preRunningDeadlineSeconds",
                "backoffLimit",
                "rayClusterSpec",
                "submitterPodTemplate",
                "metadata",
                "clusterSelector",
                "submitterConfig",
                "managedBy",
                "deletionStrategy",
                "deletionPolicy",
                "entrypoint",
                "runtimeEnv",
                "runtimeEnvYAML",
                "jobId",
                "submissionMode",
                "entrypointResources",
                "entrypointNumCpus",
                "entrypointNumGpus",
                "ttlSecondsAfterFinished",
                "shutdownAfterJobFinishes",
                "suspend",
            ],
            below: &[("rayClusterSpec", RAY_CLUSTER)],
        },
    ),
    (
        "ray.io",
        "RayService",
        Level {
            fields: &[
                "serveConfig",
                "serveConfigV2",
                "rayClusterConfig",
                "serviceUnhealthySecondThreshold",
                "deploymentUnhealthySecondThreshold",
                "serveService",
                "upgradeStrategy",
                "excludeHeadPodFromServeSvc",
                "rayClusterDeletionDelaySeconds",
                "suspend",
                "managedBy",
            ],
            below: &[("rayClusterConfig", RAY_CLUSTER)],
        },
    ),
    (
        "batch.volcano.sh",
        "Job",
        Level {
            fields: &[
                "schedulerName",
                "minAvailable",
                "volumes",
                "tasks",
                "policies",
                "plugins",
                "runningEstimate",
                "queue",
                "maxRetry",
                "ttlSecondsAfterFinished",
                "priorityClassName",
                "minSuccess",
                "networkTopology",
            ],
            below: &[(
                "tasks",
                leaf(&[
                    "name",
                    "replicas",
                    "minAvailable",
                    "template",
                    "policies",
                    "topologyPolicy",
                    "maxRetry",
                    "dependsOn",
                    "partitionPolicy",
                ]),
            )],
        },
    ),
    (
        "scheduling.volcano.sh",
        "PodGroup",
        leaf(&[
            "minMember",
            "minTaskMember",
            "queue",
            "priorityClassName",
            "minResources",
            "networkTopology",
            "subGroupPolicy",
        ]),
    ),
    ("scheduling.x-k8s.io", "PodGroup", leaf(&["minMember", "minResources", "scheduleTimeoutSeconds"])),
    (
        "argoproj.io",
        "Rollout",
        leaf(&[
            "replicas",
            "selector",
            "template",
            "workloadRef",
            "minReadySeconds",
            "strategy",
            "revisionHistoryLimit",
            "paused",
            "progressDeadlineSeconds",
            "progressDeadlineAbort",
            "restartAt",
            "analysis",
            "rollbackWindow",
        ]),
    ),
    (
        "apps.kruise.io",
        "CloneSet",
        leaf(&[
            "replicas",
            "selector",
            "template",
            "volumeClaimTemplates",
            "scaleStrategy",
            "updateStrategy",
            "revisionHistoryLimit",
            "minReadySeconds",
            "lifecycle",
            "progressDeadlineSeconds",
        ]),
    ),
    (
        "apps.openshift.io",
        "DeploymentConfig",
        leaf(&[
            "strategy",
            "minReadySeconds",
            "triggers",
            "replicas",
            "revisionHistoryLimit",
            "test",
            "paused",
            "selector",
            "template",
        ]),
    ),
];

/// The spec of a training job of Kubeflow with these fields.
const fn of_training(fields: &'static [&'static str]) -> Level {
    Level { fields, below: BELOW_TRAINING }
}

const BELOW_TRAINING: &[(&str, Level)] = &[
    (
        "runPolicy",
        Level {
            fields: &[
                "cleanPodPolicy",
                "ttlSecondsAfterFinished",
                "activeDeadlineSeconds",
                "backoffLimit",
                "schedulingPolicy",
                "suspend",
                "managedBy",
            ],
            below: &[(
                "schedulingPolicy",
                leaf(&["minAvailable", "queue", "minResources", "priorityClass", "scheduleTimeoutSeconds"]),
            )],
        },
    ),
    (
        "elasticPolicy",
        leaf(&[
            "minReplicas",
            "maxReplicas",
            "rdzvBackend",
            "rdzvPort",
            "rdzvHost",
            "rdzvId",
            "rdzvConf",
            "standalone",
            "nProcPerNode",
            "maxRestarts",
            "metrics",
        ]),
    ),
    ("pytorchReplicaSpecs", ROLES),
    ("tfReplicaSpecs", ROLES),
    ("mpiReplicaSpecs", ROLES),
    ("xgbReplicaSpecs", ROLES),
    ("paddleReplicaSpecs", ROLES),
    ("jaxReplicaSpecs", ROLES),
    ("mxReplicaSpecs", ROLES),
];

/// The roles of a training job of Kubeflow, by their names.
const ROLES: Level = Level { fields: &[], below: &[(ANY, leaf(&["replicas", "template", "restartPolicy"]))] };

/// The spec of a runtime of a `TrainJob`. Its template is that of a JobSet, which is checked when it is read.
const RUNTIME: Level = Level {
    fields: &["mlPolicy", "podGroupPolicy", "template"],
    below: &[
        ("template", leaf(&["metadata", "spec"])),
        (
            "mlPolicy",
            Level {
                fields: &["numNodes", "torch", "mpi", "flux", "jax", "xgboost"],
                below: &[(
                    "mpi",
                    leaf(&["numProcPerNode", "mpiImplementation", "sshAuthMountPath", "runLauncherAsNode"]),
                )],
            },
        ),
    ],
};

const RAY_CLUSTER: Level = Level {
    fields: &[
        "suspend",
        "managedBy",
        "autoscalerOptions",
        "headServiceAnnotations",
        "enableInTreeAutoscaling",
        "gcsFaultToleranceOptions",
        "headGroupSpec",
        "rayVersion",
        "workerGroupSpecs",
        "authOptions",
        "upgradeStrategy",
    ],
    below: &[
        (
            "autoscalerOptions",
            leaf(&[
                "resources",
                "image",
                "imagePullPolicy",
                "securityContext",
                "idleTimeoutSeconds",
                "upscalingMode",
                "version",
                "env",
                "envFrom",
                "volumeMounts",
            ]),
        ),
        (
            "headGroupSpec",
            leaf(&[
                "template",
                "headService",
                "enableIngress",
                "resources",
                "labels",
                "rayStartParams",
                "serviceType",
            ]),
        ),
        (
            "workerGroupSpecs",
            leaf(&[
                "suspend",
                "groupName",
                "replicas",
                "minReplicas",
                "maxReplicas",
                "idleTimeoutSeconds",
                "resources",
                "labels",
                "rayStartParams",
                "template",
                "scaleStrategy",
                "numOfHosts",
            ]),
        ),
    ],
};
