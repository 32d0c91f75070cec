//! Runs the checks of the cluster: queries the API server. Other modules evaluate the responses.

use anyhow::Result;
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::ListParams;
use kube::{Api, Client, Config, ResourceExt};
use poolwright_api::NodePool;
use poolwright_controller::causes;
use poolwright_controller::clock::Clock;
use poolwright_provider_contract::preflight::{CheckResult, Verdict};

use super::{controller, readiness, resources, rights};
use crate::args::CheckFlags;
use crate::clouds;
use crate::connect::{self, Patience};
use crate::credentials::Credentials;
use crate::node_classes::{self, Known, NodeClasses};
use crate::reach;

/// The group of the checks.
const CLUSTER: &str = "Cluster";

/// The group of the checks of the running controller.
const CONTROLLER: &str = "Controller";

/// What is said of checks that need the API server, if it cannot be used.
pub const NOT_CHECKED: &str = "not checked, because the API server cannot be used";

/// The selector of unfinished pods.
const UNFINISHED: &str = "status.phase!=Succeeded,status.phase!=Failed";

/// The results of the checks of the cluster, and facts that later checks need.
#[derive(Default)]
pub struct Cluster {
    /// The results.
    pub results: Vec<CheckResult>,
    /// The minor version of the cluster's Kubernetes: `1.36`. `None` if the API server cannot be used.
    pub kubernetes: Option<String>,
    /// Its node classes.
    pub classes: NodeClasses,
    /// The time of its API server, or of this machine if the server does not tell.
    pub now: Timestamp,
}

/// Runs all checks of the cluster. `from_files` are the node classes of manifests; they replace the node classes of the cluster.
pub async fn check(flags: &CheckFlags, from_files: &NodeClasses, clock: &dyn Clock) -> Cluster {
    let result = |name: &str, verdict| CheckResult::new(CLUSTER, name, verdict);
    let mut credentials = Vec::new();
    let connected =
        connect::configured(flags.kubeconfig.as_deref(), flags.context.as_deref(), Patience::Retries).await;
    let reached = match connected {
        Ok((client, config)) => {
            let all = Credentials::of(&config).all();
            credentials.extend(all.iter().map(|one| result(one.kind(), one.verdict(clock.now()))));
            version(&client, &config).await.map(|version| (client, version))
        }
        Err(error) => Err(error),
    };
    let (client, version) = match reached {
        Ok(reached) => reached,
        Err(error) => {
            let (why, fix) = (causes(error.as_ref()), reach::fix(error.as_ref()));
            let mut results = vec![result("API server", Verdict::wrong(why, fix))];
            results.extend(credentials);
            results.extend(
                ["clock", "custom resources", "rights", "device plugin"]
                    .map(|name| result(name, Verdict::undetermined(NOT_CHECKED))),
            );
            return Cluster { results, ..Cluster::default() };
        }
    };
    let mut results = vec![result("API server", Verdict::fine(format!("Kubernetes {version}")))];
    results.extend(credentials);
    let date = connect::date(&client).await;
    results.push(result("clock", readiness::clock(date, clock.now())));
    let now = date.unwrap_or_else(|| clock.now());
    for crd in clouds::crds() {
        let name = crd.name_any();
        let installed = Api::<CustomResourceDefinition>::all(client.clone()).get_opt(&name).await;
        let installed = installed.map_err(|error| causes(&error));
        results.push(result(&name, resources::verdict(&crd, installed.as_ref().map(Option::as_ref))));
    }
    let rules = rights::rules(flags.controller_namespace());
    let answers = rights::ask(&client, &rules, flags.service_account.as_ref()).await;
    let of_rights = rights::verdict(&rules, &answers, flags.service_account.as_ref(), flags.names_all());
    results.push(result("rights", of_rights));
    let mut notes = Vec::new();
    let listed = node_classes::list(&client, &mut notes).await;
    let Known { classes, broken } = listed.unwrap_or_else(|(kind, error)| {
        notes.push(format!("cannot list {kind}: {}", causes(&error)));
        Known::default()
    });
    results.extend(notes.into_iter().map(|note| result("node classes", Verdict::undetermined(note))));
    for (class, why) in broken {
        let fix = format!("kubectl edit {} {}", class.kind.to_lowercase(), class.name);
        results.push(result(&class.to_string(), Verdict::wrong(why, fix)));
    }
    let meant = if flags.filename.is_empty() { &classes } else { from_files };
    if let Some((class, _)) = meant.iter().find(|(_, class)| class.facts.needs_bootstrap_tokens) {
        let answers = rights::ask(&client, &rights::of_kubeadm(), flags.service_account.as_ref()).await;
        let verdict =
            rights::verdict_of_kubeadm(&answers, &class.to_string(), flags.service_account.as_ref());
        results.push(result("right to make bootstrap tokens", verdict));
    }
    results.push(result("device plugin", plugin(&client, &classes).await));
    let pods = Api::<Pod>::all(client.clone()).list(&ListParams::default().fields(UNFINISHED)).await;
    let durations = match pods {
        Ok(pods) => readiness::durations(&pods.items, flags.names_all()),
        Err(error) => Some(Verdict::undetermined(format!("cannot list pods: {}", causes(&error)))),
    };
    results.extend(durations.map(|verdict| result("durations of pods", verdict)));
    let seen = controller::Seen {
        leases: &controller::leases(&client, flags).await,
        namespace: flags.namespace.as_deref(),
        pools: &controller::pools(&client).await,
        classes: &classes,
        now,
        names_all: flags.names_all(),
    };
    let verdicts = controller::verdicts(&seen).into_iter();
    // The controller comes first: most people who run this check ask whether it works.
    let results =
        verdicts.map(|(name, verdict)| CheckResult::new(CONTROLLER, &name, verdict)).chain(results).collect();
    Cluster { results, kubernetes: Some(version), classes, now }
}

async fn version(client: &Client, config: &Config) -> Result<String> {
    connect::answers(config).await?;
    let version = client.apiserver_version().await?;
    // Managed clusters append a `+`: `36+`.
    let minor: String = version.minor.chars().take_while(char::is_ascii_digit).collect();
    Ok(format!("{}.{minor}", version.major))
}

async fn plugin(client: &Client, classes: &NodeClasses) -> Verdict {
    let nodes = Api::<Node>::all(client.clone()).list(&ListParams::default()).await;
    let daemonsets = Api::<DaemonSet>::all(client.clone()).list(&ListParams::default()).await;
    let (nodes, daemonsets) = match (nodes, daemonsets) {
        (Ok(nodes), Ok(daemonsets)) => (nodes.items, daemonsets.items),
        (Err(error), _) | (_, Err(error)) => return Verdict::undetermined(causes(&error)),
    };
    // Without the custom resource there are no pools.
    let pools = Api::<NodePool>::all(client.clone()).list(&ListParams::default()).await;
    let mut pools = pools.map(|all| all.items).unwrap_or_default();
    let real: Vec<_> = classes.iter().filter(|(_, class)| class.cloud.enabled_by.is_some()).collect();
    // Some images contain the device plugin, and nodes without machines need none.
    pools.retain(|pool| {
        let of_pool = &pool.spec.template.spec.node_class_ref;
        real.iter().any(|(name, class)| *name == of_pool && !class.facts.has_device_plugin)
    });
    let in_images = !real.is_empty() && real.iter().all(|(_, class)| class.facts.has_device_plugin);
    readiness::device_plugin(&nodes, &daemonsets, &pools, in_images)
}
