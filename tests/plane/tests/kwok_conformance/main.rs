//! The KWOK provider on a real API server, with exactly its documented rights: the conformance suite, restarts, crashes between
//! steps, faults, and foreign objects.

mod world;

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Context, ensure};
use async_trait::async_trait;
use futures::FutureExt;
use k8s_openapi::api::core::v1::{Namespace, Pod};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use kube::{Api, ResourceExt};
use poolwright_catalog::ResourceName;
use poolwright_plane::{ControlPlane, Options, apply, unique, wait_for};
use poolwright_provider_contract::conformance::{Failure, Fixture, World, run_all};
use poolwright_provider_contract::{CloudProvider, LaunchError, ProviderError};
use serde_json::json;
use tokio::sync::oneshot;
use world::{KwokWorld, SOON, catalogue, facts, impersonating};

struct Kwok;

#[async_trait(?Send)]
impl Fixture for Kwok {
    async fn world(&self, _case: &'static str) -> Result<Box<dyn World>, Failure> {
        let world = KwokWorld::new().await.map_err(|error| format!("no world: {error:#}"))?;
        Ok(Box::new(world))
    }
}

#[tokio::test]
async fn the_kwok_provider_passes_the_conformance_suite() {
    let report = run_all(&Kwok).await;
    println!("{report}");
    assert!(report.passed(), "{report}");
}

#[tokio::test]
async fn a_node_joins_once_although_the_provider_died_before() {
    let world = KwokWorld::new().await.unwrap();
    let dead = world.idle_provider();
    let instance = dead.launch(&world.request("a")).await.unwrap().instance;
    drop(dead);
    assert!(world.nodes().get_opt(&instance.claim).await.unwrap().is_none());

    let _first = world.running_provider();
    let node = world.wait_for_node(&instance.claim).await.unwrap();
    assert_eq!(facts(node.clone()).unwrap().provider_id, instance.provider_id);

    // A later provider leaves this node alone. Its rounds have passed when another node has joined.
    let second = world.running_provider();
    let other = second.launch(&world.request("b")).await.unwrap().instance;
    world.wait_for_node(&other.claim).await.unwrap();
    let same = world.nodes().get(&instance.claim).await.unwrap();
    assert_eq!(same.uid(), node.uid());
    assert_eq!(second.list().await.unwrap().len(), 2);
}

#[tokio::test]
async fn a_node_does_not_join_before_its_delay_ends() {
    let world = KwokWorld::new().await.unwrap();
    let provider = world.running_provider();
    let late = world.request("late");
    world.patch_class(json!({"registrationDelay": "1h"})).await.unwrap();
    provider.launch(&late).await.unwrap();
    world.patch_class(json!({"registrationDelay": "0s"})).await.unwrap();
    let prompt = provider.launch(&world.request("prompt")).await.unwrap().instance;
    wait_for("the prompt node, while no time passes", SOON, async || {
        Ok(world.nodes().get(&prompt.claim).await?)
    })
    .await
    .unwrap();
    assert!(world.nodes().get_opt(&late.claim).await.unwrap().is_none());
    world.advance(3600);
    world.wait_for_node(&late.claim).await.unwrap();
}

#[tokio::test]
async fn a_crash_after_creating_a_node_does_not_create_a_second_one() {
    let world = KwokWorld::new().await.unwrap();
    let provider = world.running_provider();
    let instance = provider.launch(&world.request("a")).await.unwrap().instance;
    let node = world.wait_for_node(&instance.claim).await.unwrap();
    wait_for_state(&world, &instance.key, "Joined").await.unwrap();
    world.stop_cloud();

    // The state after such a crash: the node exists and the record does not know it.
    let name = format!("i-{}", instance.key);
    let map = world.maps().get(&name).await.unwrap();
    let text = map.data.unwrap()["instance"].replace("\"Joined\"", "\"Launched\"");
    let patch = Patch::Merge(json!({"data": {"instance": text}}));
    world.maps().patch(&name, &PatchParams::default(), &patch).await.unwrap();

    let _restarted = world.running_provider();
    wait_for_state(&world, &instance.key, "Joined").await.unwrap();
    assert_eq!(world.nodes().get(&instance.claim).await.unwrap().uid(), node.uid());
}

#[tokio::test]
async fn a_deleted_node_does_not_join_again() {
    let world = KwokWorld::new().await.unwrap();
    let provider = world.running_provider();
    let instance = provider.launch(&world.request("a")).await.unwrap().instance;
    world.wait_for_node(&instance.claim).await.unwrap();
    wait_for_state(&world, &instance.key, "Joined").await.unwrap();
    world.nodes().delete(&instance.claim, &DeleteParams::default()).await.unwrap();

    let other = provider.launch(&world.request("b")).await.unwrap().instance;
    world.wait_for_node(&other.claim).await.unwrap();
    assert!(world.nodes().get_opt(&instance.claim).await.unwrap().is_none());
    assert_eq!(provider.get(&instance.provider_id).await.unwrap(), Some(instance));
}

#[tokio::test]
async fn a_foreign_node_of_the_same_name_is_not_adopted_or_changed() {
    let world = KwokWorld::new().await.unwrap();
    let request = world.request("a");
    let foreign = format!(
        "apiVersion: v1\nkind: Node\nmetadata: {{name: {}}}\nspec: {{providerID: \"aws:///us-east-1a/i-1\"}}",
        request.claim
    );
    apply(&world.admin, "default", &foreign).await.unwrap();
    let before = world.nodes().get(&request.claim).await.unwrap();

    let provider = world.running_provider();
    let instance = provider.launch(&request).await.unwrap().instance;
    let other = provider.launch(&world.request("b")).await.unwrap().instance;
    world.wait_for_node(&other.claim).await.unwrap();
    assert!(provider.terminate(&instance.key).await.unwrap());

    let after = world.nodes().get(&request.claim).await.unwrap();
    assert_eq!(after.uid(), before.uid());
    assert_eq!(after.resource_version(), before.resource_version());
    assert!(provider.get(&instance.provider_id).await.unwrap().is_none());
}

#[tokio::test]
async fn a_node_without_an_instance_is_deleted() {
    let world = KwokWorld::new().await.unwrap();
    let provider = world.running_provider();
    let instance = provider.launch(&world.request("a")).await.unwrap().instance;
    world.wait_for_node(&instance.claim).await.unwrap();
    world.maps().delete(&format!("i-{}", instance.key), &DeleteParams::default()).await.unwrap();
    world.wait_for_no_node(&instance.claim).await.unwrap();
    assert!(provider.list().await.unwrap().is_empty());
}

#[tokio::test]
async fn an_unreadable_record_is_reported_and_deletes_no_node() {
    let world = KwokWorld::new().await.unwrap();
    let provider = world.running_provider();
    let instance = provider.launch(&world.request("a")).await.unwrap().instance;
    world.wait_for_node(&instance.claim).await.unwrap();
    let name = format!("i-{}", instance.key);
    let patch = Patch::Merge(json!({"data": {"instance": "not a record"}}));
    wait_for("the record to be damaged for good", SOON, async || {
        world.maps().patch(&name, &PatchParams::default(), &patch).await?;
        let Err(ProviderError::Invalid(message)) = provider.list().await else {
            anyhow::bail!("the list says nothing")
        };
        ensure!(message.contains(&name) && message.contains("restore it"), "{message}");
        Ok(())
    })
    .await
    .unwrap();

    let other = provider.launch(&world.request("b")).await.unwrap().instance;
    world.wait_for_node(&other.claim).await.unwrap();
    world.nodes().get(&instance.claim).await.expect("the node of the damaged record stays");
}

#[tokio::test]
async fn an_interrupted_termination_continues_by_itself() {
    let world = KwokWorld::new().await.unwrap();
    let provider = world.running_provider();
    let instance = provider.launch(&world.request("a")).await.unwrap().instance;
    world.wait_for_node(&instance.claim).await.unwrap();
    assert!(world.hold(&instance, true).await.unwrap());
    assert!(!provider.terminate(&instance.key).await.unwrap());
    world.hold(&instance, false).await.unwrap();
    let restarted = world.running_provider();
    wait_for("the instance to go although nobody asks again", SOON, async || {
        let left = restarted.list().await?;
        ensure!(left.is_empty(), "left are {left:?}");
        Ok(())
    })
    .await
    .unwrap();
    world.wait_for_no_node(&instance.claim).await.unwrap();
}

#[tokio::test]
async fn terminations_that_race_with_joins_leave_nothing_behind() {
    let world = KwokWorld::new().await.unwrap();
    world.patch_class(json!({"registrationDelay": "0s"})).await.unwrap();
    let provider = world.running_provider();
    let requests: Vec<_> = (0..60).map(|number| world.request(&format!("n{number}"))).collect();
    let fleeting = requests.iter().map(async |request| {
        provider.launch(request).await.unwrap();
        while !provider.terminate(&request.key).await.unwrap() {}
    });
    futures::future::join_all(fleeting).await;
    assert!(provider.list().await.unwrap().is_empty());
    // Once a later instance has joined, the rounds that still saw these as launched are over.
    let last = provider.launch(&world.request("last")).await.unwrap().instance;
    world.wait_for_node(&last.claim).await.unwrap();
    let ours = ListParams::default().labels(&format!("kwok.poolwright.dev/instances={}", world.name));
    wait_for("only the last node to be there", SOON, async || {
        let names: Vec<_> = world.nodes().list(&ours).await?.iter().map(ResourceExt::name_any).collect();
        ensure!(names == [last.claim.clone()], "there are {names:?}");
        Ok(())
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn two_concurrent_clouds_let_every_node_join_once() {
    let world = KwokWorld::new().await.unwrap();
    let provider = world.running_provider();
    let second = Arc::new(world.idle_provider());
    let (stop, stopped) = oneshot::channel::<()>();
    let cloud = tokio::spawn({
        let second = Arc::clone(&second);
        async move { second.run(stopped.map(|_| ())).await }
    });
    let requests: Vec<_> = (0..40).map(|number| world.request(&format!("n{number}"))).collect();
    futures::future::join_all(requests.iter().map(|request| provider.launch(request))).await;
    for request in &requests {
        world.wait_for_node(&request.claim).await.unwrap();
        wait_for_state(&world, &request.key, "Joined").await.unwrap();
    }
    assert_eq!(provider.list().await.unwrap(), second.list().await.unwrap());
    for request in &requests {
        assert!(provider.terminate(&request.key).await.unwrap());
        world.wait_for_no_node(&request.claim).await.unwrap();
    }
    drop(stop);
    cloud.await.expect("the cloud ends when it is told to");
}

/// With the rest of the cluster: the not-ready taint is removed, and a pod is bound and runs.
#[tokio::test]
async fn a_gpu_pod_runs_on_a_joined_node() {
    let plane = ControlPlane::start(Options::everything()).await.unwrap();
    let world = KwokWorld::on(&plane).await.unwrap();
    let provider = world.running_provider();
    let instance = provider.launch(&world.request("a")).await.unwrap().instance;
    let pod = r#"
apiVersion: v1
kind: Pod
metadata: {name: trainer}
spec:
  nodeSelector: {poolwright.dev/gpu-model: a10g}
  containers: [{name: main, image: none, resources: {limits: {nvidia.com/gpu: "1"}}}]
"#;
    apply(&world.admin, &world.name, pod).await.unwrap();
    world.wait_for_node(&instance.claim).await.unwrap();
    let pods: Api<Pod> = Api::namespaced(world.admin.clone(), &world.name);
    wait_for("the pod to run", SOON, async || {
        let pod = pods.get("trainer").await?;
        let phase = pod.status.unwrap_or_default().phase;
        ensure!(phase.as_deref() == Some("Running"), "it is {phase:?}");
        let node = pod.spec.unwrap_or_default().node_name;
        ensure!(node.as_ref() == Some(&instance.claim), "it is on {node:?}");
        Ok(())
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn a_launch_draws_the_faults_of_its_node() {
    let world = KwokWorld::new().await.unwrap();
    let provider = world.running_provider();
    world.set_faults(json!({"neverRegister": [{"instanceType": "g5.xlarge"}]})).await.unwrap();
    let silent = provider.launch(&world.request("silent")).await.unwrap().instance;
    world.set_faults(json!({"neverRegister": null, "missingGpus": 1})).await.unwrap();
    let poor = provider.launch(&world.request("poor")).await.unwrap().instance;
    world.set_faults(json!({"missingGpus": null})).await.unwrap();
    let sound = provider.launch(&world.request("sound")).await.unwrap().instance;

    let poor = facts(world.wait_for_node(&poor.claim).await.unwrap()).unwrap();
    let sound = facts(world.wait_for_node(&sound.claim).await.unwrap()).unwrap();
    assert_eq!(poor.allocatable.get(ResourceName::NVIDIA_GPU), 0);
    assert_eq!(sound.allocatable.get(ResourceName::NVIDIA_GPU), 1);
    assert_eq!(poor.allocatable.get(ResourceName::CPU), sound.allocatable.get(ResourceName::CPU));
    assert!(world.nodes().get_opt(&silent.claim).await.unwrap().is_none());
    assert!(provider.list().await.unwrap().contains(&silent), "it costs money all the same");

    for (fault, wanted) in [("Throttled", "throttled"), ("Transient", "transient"), ("Invalid", "invalid")] {
        world.set_faults(json!({"launchError": fault})).await.unwrap();
        let error = provider.launch(&world.request("none")).await.unwrap_err().to_string();
        assert!(error.starts_with(wanted), "{error}");
    }
    world.set_faults(json!({"launchError": "Quota"})).await.unwrap();
    let error = provider.launch(&world.request("none")).await.unwrap_err();
    let LaunchError::AllFailed(failed) = error else { panic!("{error}") };
    assert!(matches!(failed[0].error, LaunchError::Quota(_)), "{failed:?}");
}

#[tokio::test]
async fn a_repeated_launch_with_the_same_key_gets_the_same_refusal() {
    let world = KwokWorld::new().await.unwrap();
    let mut request = world.request("a");
    let wanted = request.offerings[0].clone();
    let mut scarce = wanted.clone();
    scarce.offering = catalogue()
        .offerings()
        .iter()
        .find(|one| one.id.instance_type.as_str() == "g5.2xlarge")
        .expect("the built-in catalogue sells g5.2xlarge")
        .id
        .clone();
    request.offerings = vec![scarce.clone(), wanted.clone()];
    world.set_faults(json!({"stockOuts": [{"instanceType": "g5.2xlarge"}]})).await.unwrap();
    let told = world.idle_provider().launch(&request).await.unwrap();
    world.set_faults(json!({"stockOuts": null})).await.unwrap();
    let again = world.idle_provider().launch(&request).await.unwrap();
    assert_eq!(told.failed[0].offering, scarce.offering);
    assert_eq!(again, told);
}

#[tokio::test]
async fn a_class_offers_the_catalogue_of_its_provider() {
    let world = KwokWorld::new().await.unwrap();
    let provider = world.idle_provider();
    let aws = provider.catalogue(&world.node_class()).await.unwrap();
    let sellers = |catalogue: &poolwright_catalog::Catalogue| -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        for kind in catalogue.types().values() {
            *counts.entry(kind.provider.to_string()).or_default() += 1;
        }
        counts
    };
    assert_eq!(sellers(&aws).into_keys().collect::<Vec<_>>(), ["aws"]);
    world.patch_class(json!({"provider": null})).await.unwrap();
    let all = provider.catalogue(&world.node_class()).await.unwrap();
    assert_eq!(sellers(&all).into_keys().collect::<Vec<_>>(), ["aws", "gcp"]);
    world.patch_class(json!({"provider": "azure"})).await.unwrap();
    let error = provider.catalogue(&world.node_class()).await.unwrap_err().to_string();
    assert!(error.contains("azure") && error.contains("aws, gcp"), "{error}");
}

#[tokio::test]
async fn the_first_launch_creates_the_namespace() {
    let world = KwokWorld::new().await.unwrap();
    let namespace = unique("kwok-home");
    let provider = world.provider_in(&namespace, world.admin.clone());
    assert!(provider.list().await.unwrap().is_empty());
    assert!(provider.terminate("never-launched").await.unwrap());
    let launches = [world.request("a"), world.request("b"), world.request("c")];
    let launched = futures::future::join_all(launches.iter().map(|request| provider.launch(request))).await;
    assert!(launched.iter().all(Result::is_ok), "{launched:?}");
    Api::<Namespace>::all(world.admin.clone()).get(&namespace).await.unwrap();
    assert_eq!(provider.list().await.unwrap().len(), 3);
}

#[tokio::test]
async fn a_missing_permission_is_reported_with_the_fix() {
    let world = KwokWorld::new().await.unwrap();
    let plane = ControlPlane::shared(Options::default()).await.unwrap();
    let provider = world.provider_in(&world.name, impersonating(plane, "nobody-in-particular").unwrap());
    let Err(ProviderError::Invalid(message)) = provider.list().await else { panic!("it may not list") };
    assert!(message.contains("grant the verb `list` on `configmaps`"), "{message}");
}

#[tokio::test]
async fn an_unanswered_call_is_a_transient_error() {
    let world = KwokWorld::new().await.unwrap();
    // Nothing listens on port 1.
    let config = kube::Config::new("http://127.0.0.1:1".parse().unwrap());
    let provider = world.provider_in(&world.name, kube::Client::try_from(config).unwrap());
    let error = provider.launch(&world.request("a")).await.unwrap_err();
    assert!(matches!(error, LaunchError::Provider(ProviderError::Transient(_))), "{error}");
}

#[tokio::test]
async fn two_hundred_nodes_join_and_are_terminated() {
    let world = KwokWorld::new().await.unwrap();
    let provider = world.running_provider();
    let requests: Vec<_> = (0..200).map(|number| world.request(&format!("n{number}"))).collect();
    for wave in requests.chunks(50) {
        let launched = futures::future::join_all(wave.iter().map(|request| provider.launch(request))).await;
        assert!(launched.iter().all(Result::is_ok), "{launched:?}");
    }
    let ours = ListParams::default().labels(&format!("kwok.poolwright.dev/instances={}", world.name));
    wait_for("200 nodes", SOON, async || {
        world.advance(1);
        let joined = world.nodes().list(&ours).await?.items.len();
        ensure!(joined == 200, "{joined} have joined");
        Ok(())
    })
    .await
    .unwrap();
    let mut left: Vec<_> = requests.iter().map(|request| request.key.clone()).collect();
    wait_for("200 nodes to go", SOON, async || {
        let mut still = Vec::new();
        for wave in left.chunks(50) {
            let gone = futures::future::try_join_all(wave.iter().map(|key| provider.terminate(key))).await?;
            still.extend(wave.iter().zip(gone).filter(|(_, gone)| !gone).map(|(key, _)| key.clone()));
        }
        left = still;
        ensure!(left.is_empty(), "{} still go", left.len());
        let nodes = world.nodes().list(&ours).await?.items.len();
        ensure!(nodes == 0, "{nodes} are still there");
        Ok(())
    })
    .await
    .unwrap();
    assert!(provider.list().await.unwrap().is_empty());
}

/// Waits until the record of this key has this state.
async fn wait_for_state(world: &KwokWorld, key: &str, state: &str) -> anyhow::Result<()> {
    let name = format!("i-{key}");
    wait_for(&format!("the record of {key} to be {state}"), SOON, async || {
        let data = world.maps().get(&name).await?.data.context("it has no data")?;
        let record: serde_json::Value = serde_json::from_str(&data["instance"])?;
        ensure!(record["state"] == state, "it is {}", record["state"]);
        Ok(())
    })
    .await
}
