//! Kinds of other projects of which it is known whether their operators make pods for each of their objects, or never do.

/// Kinds whose operators always make pods, whatever the spec says, by group.
const ALWAYS: [(&str, &[&str]); 49] = [
    ("acid.zalan.do", &["postgresql"]),
    ("agent.k8s.elastic.co", &["Agent"]),
    ("apm.k8s.elastic.co", &["ApmServer"]),
    ("apps.nvidia.com", &["NIMService"]),
    ("argoproj.io", &["ArgoCD"]),
    ("beat.k8s.elastic.co", &["Beat"]),
    ("cassandra.datastax.com", &["CassandraDatacenter"]),
    ("clickhouse-keeper.altinity.com", &["ClickHouseKeeperInstallation"]),
    ("clickhouse.altinity.com", &["ClickHouseInstallation"]),
    ("crdb.cockroachlabs.com", &["CrdbCluster"]),
    ("databases.spotahome.com", &["RedisFailover"]),
    ("elasticsearch.k8s.elastic.co", &["Elasticsearch"]),
    ("enterprisesearch.k8s.elastic.co", &["EnterpriseSearch"]),
    ("grafana.integreatly.org", &["Grafana"]),
    ("hazelcast.com", &["Hazelcast"]),
    ("jaegertracing.io", &["Jaeger"]),
    ("jenkins.io", &["Jenkins"]),
    ("k8s.keycloak.org", &["Keycloak"]),
    ("k8s.mariadb.com", &["MariaDB", "MaxScale"]),
    ("k8ssandra.io", &["K8ssandraCluster"]),
    (
        "kafka.strimzi.io",
        &["Kafka", "KafkaBridge", "KafkaConnect", "KafkaMirrorMaker", "KafkaMirrorMaker2", "KafkaNodePool"],
    ),
    ("kibana.k8s.elastic.co", &["Kibana"]),
    ("logstash.k8s.elastic.co", &["Logstash"]),
    ("loki.grafana.com", &["LokiStack"]),
    ("maps.k8s.elastic.co", &["ElasticMapsServer"]),
    ("milvus.io", &["Milvus"]),
    ("minio.min.io", &["Tenant"]),
    ("mongodb.com", &["MongoDB", "MongoDBMultiCluster"]),
    ("mongodbcommunity.mongodb.com", &["MongoDBCommunity"]),
    ("monitoring.coreos.com", &["Alertmanager", "Prometheus", "PrometheusAgent", "ThanosRuler"]),
    ("mysql.oracle.com", &["InnoDBCluster"]),
    ("opensearch.opster.io", &["OpenSearchCluster"]),
    (
        "operator.victoriametrics.com",
        &["VMAgent", "VMAlert", "VMAlertmanager", "VMAuth", "VMCluster", "VMSingle"],
    ),
    ("pgv2.percona.com", &["PerconaPGCluster"]),
    ("pingcap.com", &["TidbCluster"]),
    ("postgres-operator.crunchydata.com", &["PostgresCluster"]),
    ("postgresql.cnpg.io", &["Cluster", "Pooler"]),
    ("ps.percona.com", &["PerconaServerMySQL"]),
    ("psmdb.percona.com", &["PerconaServerMongoDB"]),
    ("pxc.percona.com", &["PerconaXtraDBCluster"]),
    ("rabbitmq.com", &["RabbitmqCluster"]),
    ("redis.redis.opstreelabs.in", &["Redis", "RedisCluster", "RedisReplication", "RedisSentinel"]),
    ("redhatcop.redhat.io", &["Quay"]),
    ("scylla.scylladb.com", &["ScyllaCluster"]),
    ("solr.apache.org", &["SolrCloud"]),
    ("tempo.grafana.com", &["TempoMonolithic", "TempoStack"]),
    ("trino.stackable.tech", &["TrinoCluster"]),
    ("weblogic.oracle", &["Domain"]),
    ("zookeeper.pravega.io", &["ZookeeperCluster"]),
];

/// Groups of which no kind makes pods.
const NEVER_GROUPS: [&str; 16] = [
    "bitnami.com",
    "cert-manager.io",
    "cilium.io",
    "crd.projectcalico.org",
    "external-secrets.io",
    "generators.external-secrets.io",
    "metrics.k8s.io",
    "networking.istio.io",
    "nfd.k8s-sigs.io",
    "projectcalico.org",
    "resource.k8s.io",
    "secrets-store.csi.x-k8s.io",
    "security.istio.io",
    "snapshot.storage.k8s.io",
    "telemetry.istio.io",
    "traefik.io",
];

/// Kinds that never make pods, of groups that have others too.
const NEVER: [(&str, &[&str]); 8] = [
    ("argoproj.io", &["AnalysisTemplate", "AppProject", "ClusterAnalysisTemplate"]),
    (
        "gateway.networking.k8s.io",
        &["GRPCRoute", "GatewayClass", "HTTPRoute", "ReferenceGrant", "TCPRoute", "TLSRoute", "UDPRoute"],
    ),
    ("grafana.integreatly.org", &["GrafanaDashboard", "GrafanaDatasource", "GrafanaFolder"]),
    ("kafka.strimzi.io", &["KafkaConnector", "KafkaRebalance", "KafkaTopic", "KafkaUser"]),
    (
        "kueue.x-k8s.io",
        &[
            "AdmissionCheck",
            "ClusterQueue",
            "Cohort",
            "LocalQueue",
            "MultiKueueCluster",
            "MultiKueueConfig",
            "ProvisioningRequestConfig",
            "ResourceFlavor",
            "Topology",
            "WorkloadPriorityClass",
        ],
    ),
    (
        "monitoring.coreos.com",
        &["AlertmanagerConfig", "PodMonitor", "Probe", "PrometheusRule", "ScrapeConfig", "ServiceMonitor"],
    ),
    (
        "postgresql.cnpg.io",
        &[
            "Backup",
            "ClusterImageCatalog",
            "Database",
            "ImageCatalog",
            "Publication",
            "ScheduledBackup",
            "Subscription",
        ],
    ),
    ("rabbitmq.com", &["Binding", "Exchange", "Permission", "Policy", "Queue", "User", "Vhost"]),
];

/// Returns whether an operator always makes pods for objects of a kind.
pub(super) fn always_makes_pods(group: &str, kind: &str) -> bool {
    has(&ALWAYS, group, kind)
}

/// Returns whether nothing ever makes pods for objects of a kind.
pub(super) fn never_makes_pods(group: &str, kind: &str) -> bool {
    NEVER_GROUPS.contains(&group) || has(&NEVER, group, kind)
}

fn has(list: &[(&str, &[&str])], group: &str, kind: &str) -> bool {
    list.iter().any(|(of, kinds)| *of == group && kinds.contains(&kind))
}
