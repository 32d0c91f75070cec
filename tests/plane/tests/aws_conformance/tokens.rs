//! Nodes that join with kubeadm. The provider makes bootstrap tokens with the rights of deploy/rbac-kubeadm.yaml, and a real API
//! server accepts them. A launch with another token is still the same launch.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use anyhow::{Context, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures::future::join_all;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use k8s_openapi::api::core::v1::{Namespace, Secret};
use kube::api::{ListParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config, ResourceExt};
use poolwright_plane::{ControlPlane, Options, apply, wait_for};
use poolwright_provider_aws::{Join, KubeTokens, Tokens};
use poolwright_provider_contract::conformance::World;
use poolwright_provider_contract::{
    CloudProvider, LaunchBatch, LaunchError, LaunchRequest, LaunchedInstance, NodeClassStatusSource,
    ProviderError,
};
use serde_json::{Value, json};

use super::bad_input::Log;
use super::world::{AwsWorld, Counted, now, user_data};
use super::{SOON, pool, seeds, two_offerings};

/// Returns join settings for a cluster that cannot be reached.
pub fn cluster() -> Join {
    Join {
        endpoint: "https://10.0.0.1:6443".to_owned(),
        ca: "LS0tLS1CRUdJTg==".to_owned(),
        service_cidr: None,
    }
}

/// Makes a world whose node class is of the Ubuntu family.
async fn world() -> AwsWorld {
    let world = AwsWorld::new().await.unwrap();
    world.merge_class(json!({"amiFamily": "Ubuntu"}));
    world
}

/// Returns the document that a script writes to this path.
fn document(script: &str, path: &str) -> Value {
    let written =
        script.split(&format!("cat > {path} <<'POOLWRIGHT'\n")).nth(1).unwrap_or_else(|| panic!("{script}"));
    serde_json::from_str(written.split("\nPOOLWRIGHT\n").next().unwrap()).unwrap()
}

/// Returns the kubeconfig with which kubeadm joins, from the user data of a node.
fn kubeconfig(user_data: &str) -> Value {
    assert!(user_data.contains("\nkubeadm join --config /run/poolwright/join.json\n"), "{user_data}");
    let join = document(user_data, "/run/poolwright/join.json");
    document(user_data, join["discovery"]["file"]["kubeConfigPath"].as_str().expect("a path"))
}

fn token(user_data: &str) -> String {
    kubeconfig(user_data)["users"][0]["user"]["token"].as_str().expect("a token").to_owned()
}

#[tokio::test]
async fn an_ubuntu_node_joins_with_a_token_that_launches_share_for_half_an_hour() {
    let world = world().await;
    // A provider that does not know the cluster's address makes no token.
    let lost = world.connect().await.unwrap();
    let offerings = two_offerings(&lost, &world).await;
    let error = lost.launch(&world.request(0, &offerings)).await.unwrap_err().to_string();
    assert!(error.contains("--aws-cluster-endpoint"), "{error}");

    let provider = world.connect_with(Some(cluster())).await.unwrap();
    let report = provider.status(&world.node_class()).await.unwrap().expect("the class is there");
    assert!(report.conditions.iter().any(|one| one.reason.name == "Allowed"), "{:?}", report.conditions);
    provider.list().await.unwrap();
    assert_eq!(world.tokens.made(), [], "nothing is ordered");

    let before = now();
    for number in 0..3 {
        provider.launch(&world.request(number, &offerings)).await.unwrap();
    }
    let [expires] = world.tokens.made()[..] else { panic!("one is made") };
    assert!(
        (expires.duration_since(before) - SignedDuration::from_mins(60)).abs() < SignedDuration::from_mins(2)
    );
    let all: Vec<String> = user_data(&world).await.into_values().collect();
    let [first] = &all[..] else { panic!("one launch template: {}", all.len()) };
    let found = kubeconfig(first);
    assert_eq!(found["clusters"][0]["cluster"]["server"], cluster().endpoint);
    assert_eq!(found["clusters"][0]["cluster"]["certificate-authority-data"], cluster().ca);
    assert_eq!(token(first), Counted::text(0));

    world.ahead.store(31 * 60, Ordering::Relaxed);
    provider.launch(&world.request(3, &offerings)).await.unwrap();
    let mut tokens: Vec<String> = user_data(&world).await.values().map(|data| token(data)).collect();
    tokens.sort();
    assert_eq!(tokens, [Counted::text(0), Counted::text(1)]);
    assert_eq!(provider.list().await.unwrap().len(), 4);
}

#[tokio::test]
async fn a_repeated_launch_with_another_token_returns_the_same_instance() {
    let world = world().await;
    // The next provider does not see the existing instances at first, and orders with a token of its own.
    world.front.show_late(3);
    let before = world.connect_with(Some(cluster())).await.unwrap();
    let offerings = two_offerings(&before, &world).await;
    let alone = world.request(0, &offerings);
    let batch = LaunchBatch { id: "0123456789abcdef".to_owned(), size: 4 };
    let of_batch = |number| LaunchRequest { batch: Some(batch.clone()), ..world.request(number, &offerings) };
    let requests: Vec<LaunchRequest> = std::iter::once(alone).chain((1..5).map(of_batch)).collect();
    let launch = async |provider: &poolwright_provider_aws::AwsProvider| -> Vec<String> {
        let launched = join_all(requests.iter().map(|one| provider.launch(one))).await;
        launched.into_iter().map(|one| one.unwrap().instance.provider_id).collect()
    };
    let first = launch(&before).await;
    let next = world.connect_with(Some(cluster())).await.unwrap();
    let again = launch(&next).await;
    assert_eq!(first, again);
    assert_eq!(world.tokens.made().len(), 2, "the one who comes next has another token");
    assert_eq!(user_data(&world).await.len(), 2, "and other launch templates");
    assert!(world.front.calls()["ec2:CreateFleet"] >= 4, "both orders were repeated");
    world.front.show_late(0);
    let fresh = world.connect().await.unwrap();
    wait_for("all to show", SOON, async || {
        let listed = fresh.list().await?.len();
        ensure!(listed == requests.len(), "{listed} are listed");
        Ok(())
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn a_launch_with_a_used_client_token_waits_for_its_late_instance() {
    let world = world().await;
    world.front.show_late(1000);
    let before = world.connect_with(Some(cluster())).await.unwrap();
    let offerings = two_offerings(&before, &world).await;
    let alone = world.request(0, &offerings);
    let batch = LaunchBatch { id: "0123456789abcdef".to_owned(), size: 2 };
    let of_batch = |number| LaunchRequest { batch: Some(batch.clone()), ..world.request(number, &offerings) };
    let requests = [alone, of_batch(1), of_batch(2)];
    let launch = async |provider: &poolwright_provider_aws::AwsProvider| {
        join_all(requests.iter().map(|one| provider.launch(one))).await
    };
    let ids = |launched: Vec<Result<LaunchedInstance, LaunchError>>| -> Vec<String> {
        launched.into_iter().map(|one| one.unwrap().instance.provider_id).collect()
    };
    let first = ids(launch(&before).await);
    let next = world.connect_with(Some(cluster())).await.unwrap();
    for answer in launch(&next).await {
        let Err(LaunchError::Provider(ProviderError::Transient(why))) = answer else { panic!("{answer:?}") };
        assert!(why.contains("does not show the result yet") && why.contains("Poolwright waits"), "{why}");
    }
    assert_eq!(world.front.fleets().len(), 2, "each was ordered once");
    world.front.show_late(0);
    assert_eq!(ids(launch(&next).await), first);
    assert_eq!(world.front.fleets().len(), 2);
}

#[tokio::test]
async fn a_launch_without_effect_is_repeated_at_once_after_a_restart() {
    let world = world().await;
    let before = world.connect_with(Some(cluster())).await.unwrap();
    let offerings = two_offerings(&before, &world).await;
    let stock = |first, second| {
        let pools = [pool(&offerings[0].offering), pool(&offerings[1].offering)];
        world.front.set_stock(pools.into_iter().zip([first, second]));
    };
    let alone = world.request(0, &offerings);
    let batch = LaunchBatch { id: "0123456789abcdef".to_owned(), size: 3 };
    let of_batch = |number| LaunchRequest { batch: Some(batch.clone()), ..world.request(number, &offerings) };
    let three = [of_batch(1), of_batch(2), of_batch(3)];
    stock(0, 0);
    assert!(matches!(before.launch(&alone).await, Err(LaunchError::AllFailed(_))));
    stock(1, 0);
    let partly = join_all(three.iter().map(|one| before.launch(one))).await;
    assert_eq!(partly.iter().filter(|one| one.is_ok()).count(), 1, "{partly:?}");

    stock(10, 10);
    let next = world.connect_with(Some(cluster())).await.unwrap();
    let requests = std::iter::once(&alone).chain(&three);
    let launched = join_all(requests.map(|one| next.launch(one))).await;
    let keys: BTreeSet<String> = launched.into_iter().map(|one| one.unwrap().instance.key).collect();
    assert_eq!(keys.len(), 4);
    assert_eq!(next.list().await.unwrap().len(), 4);
    let calls = world.front.calls();
    assert_eq!([calls["ec2:DescribeTags"], calls["ec2:DescribeFleets"]], [2, 2], "one look at each order");
}

/// With half an hour between tries, recent launches are no longer remembered and the token is another.
#[tokio::test]
async fn each_claim_gets_one_instance_although_calls_fail_and_tokens_change() {
    for seed in seeds() {
        let world = world().await;
        let provider = world.connect_with(Some(cluster())).await.unwrap();
        let offerings = two_offerings(&provider, &world).await;
        world.front.show_late(1);
        world.trouble(30, seed);
        let requests: Vec<_> = (0..8).map(|number| world.request(number, &offerings)).collect();
        let mut tries = 0;
        loop {
            let launched = join_all(requests.iter().map(|request| provider.launch(request))).await;
            for error in launched.iter().filter_map(|one| one.as_ref().err()) {
                let passes = matches!(
                    error,
                    LaunchError::Provider(ProviderError::Transient(_) | ProviderError::Throttled(_))
                );
                assert!(passes, "seed {seed}: {error}");
            }
            world.ahead.fetch_add(31 * 60, Ordering::Relaxed);
            tries += 1;
            // One more try when all have an instance: repeated launches return the existing instances.
            if tries > 2 && launched.iter().all(Result::is_ok) {
                break;
            }
            assert!(tries < 100, "seed {seed}: {launched:?}");
        }
        world.trouble(0, 0);
        let fresh = world.connect().await.unwrap();
        wait_for("one for each to show", SOON, async || {
            let mut keys: Vec<String> = fresh.list().await?.into_iter().map(|one| one.key).collect();
            keys.sort();
            let wanted: Vec<_> = requests.iter().map(|one| one.key.clone()).collect();
            ensure!(keys == wanted, "seed {seed}: {keys:?}");
            Ok(())
        })
        .await
        .unwrap();
        assert!(world.tokens.made().len() > 1, "seed {seed}: the token changed");
    }
}

/// The user that deploy/token-policy.yaml restricts.
const CONTROLLER: &str = "system:serviceaccount:poolwright:poolwright";

const BINDING: &str = r"
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: poolwright-bootstrap-tokens, namespace: kube-system}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: poolwright-bootstrap-tokens}
subjects: [{kind: ServiceAccount, name: poolwright, namespace: poolwright}]
";

/// Returns the tokens of this cluster as the controller makes them. If `granted`, it has the documented rights. It never has
/// others.
async fn tokens(plane: &ControlPlane, granted: bool) -> KubeTokens {
    let (limited, config) = as_controller(plane, granted).await;
    KubeTokens::new(limited, config, "blue")
}

/// Returns a client that acts as the controller.
async fn as_controller(plane: &ControlPlane, granted: bool) -> (Client, Config) {
    let client = plane.client().unwrap();
    wait_for("kube-system and its rights", SOON, async || {
        Api::<Namespace>::all(client.clone()).get("kube-system").await?;
        if granted {
            apply(&client, "kube-system", include_str!("../../../../deploy/rbac-kubeadm.yaml")).await?;
            apply(&client, "kube-system", BINDING).await?;
        }
        Ok(())
    })
    .await
    .unwrap();
    let mut config = plane.config().clone();
    config.auth_info.impersonate = Some(CONTROLLER.to_owned());
    (Client::try_from(config.clone()).unwrap(), config)
}

async fn secrets(plane: &ControlPlane) -> Vec<Secret> {
    let api: Api<Secret> = Api::namespaced(plane.client().unwrap(), "kube-system");
    api.list(&ListParams::default()).await.unwrap().items
}

/// Tests the whole chain: from the cluster's rights to what a node can do with its user data, with no secret in any log.
#[tokio::test]
async fn a_real_api_server_accepts_the_bootstrap_token_in_the_user_data() {
    let log = Log::default();
    let _guard = log.listen();
    let plane = ControlPlane::start(Options::api_server_only().with_bootstrap_tokens()).await.unwrap();
    let tokens = tokens(&plane, true).await;
    let world = world().await;
    let join = Join {
        endpoint: plane.config().cluster_url.to_string().trim_end_matches('/').to_owned(),
        // The API server's certificate is self-signed.
        ca: STANDARD.encode(std::fs::read(plane.dir().join("certificates/apiserver.crt")).unwrap()),
        service_cidr: None,
    };
    let provider = world.connect_to(Arc::new(tokens), Some(join)).await.unwrap();
    let offerings = two_offerings(&provider, &world).await;
    let before = now();
    provider.launch(&world.request(0, &offerings)).await.unwrap();

    let all: Vec<String> = user_data(&world).await.into_values().collect();
    let [data] = &all[..] else { panic!("one launch template: {}", all.len()) };
    let file: Kubeconfig = serde_json::from_value(kubeconfig(data)).unwrap();
    let as_node = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await.unwrap();
    let node = Client::try_from(as_node).unwrap();
    let reviews: Api<SelfSubjectReview> = Api::all(node.clone());
    let review = reviews.create(&PostParams::default(), &SelfSubjectReview::default()).await.unwrap();
    let user = review.status.and_then(|status| status.user_info).expect("who it is");
    let token = token(data);
    let (id, secret) = token.split_once('.').unwrap();
    assert_eq!(user.username, Some(format!("system:bootstrap:{id}")));
    let groups = user.groups.unwrap_or_default();
    for group in ["system:bootstrappers", "system:bootstrappers:kubeadm:default-node-token"] {
        assert!(groups.iter().any(|one| one == group), "{groups:?}");
    }

    let made = secrets(&plane).await;
    let [one] = &made[..] else { panic!("{:?}", made.iter().map(ResourceExt::name_any).collect::<Vec<_>>()) };
    assert_eq!(one.name_any(), format!("bootstrap-token-{id}"));
    assert_eq!(one.type_.as_deref(), Some("bootstrap.kubernetes.io/token"));
    let field = |name: &str| {
        let bytes = &one.data.as_ref().and_then(|data| data.get(name)).unwrap_or_else(|| panic!("{name}")).0;
        String::from_utf8(bytes.clone()).unwrap()
    };
    assert_eq!([field("token-id"), field("token-secret")], [id, secret]);
    let expires: Timestamp = field("expiration").parse().unwrap();
    let lives = expires.duration_since(before);
    assert!(lives > SignedDuration::from_mins(59) && lives < SignedDuration::from_mins(65), "{lives}");
    assert!(field("description").contains("Poolwright") && field("description").contains("blue"));
    let fields: Vec<&String> = one.data.iter().flat_map(|data| data.keys()).collect();
    assert!(!fields.iter().any(|name| name.contains("signing")), "{fields:?}");

    let log = log.text();
    assert!(log.contains(&format!("bootstrap-token-{id}")), "something is logged: {log}");
    assert!(!log.contains(secret), "the token is in the log");
}

#[tokio::test]
async fn the_documented_rbac_allows_bootstrap_tokens_and_no_other_secrets() {
    let plane = ControlPlane::start(Options::api_server_only().with_bootstrap_tokens()).await.unwrap();
    let (limited, config) = as_controller(&plane, true).await;
    let policy = include_str!("../../../../deploy/token-policy.yaml");
    apply(&plane.client().unwrap(), "", policy).await.unwrap();
    let api: Api<Secret> = Api::namespaced(limited.clone(), "kube-system");
    let refused = async |name: &str, kind: &str, data: Value| {
        let secret = json!({"metadata": {"name": name}, "type": kind, "stringData": data});
        let made = api.create(&PostParams::default(), &serde_json::from_value(secret)?).await;
        Ok::<_, anyhow::Error>(made.err().context("it is made")?.to_string())
    };
    wait_for("the policy to be in force", SOON, async || {
        // A new name for each try: until the policy is in force, the Secret is created.
        let said = refused(&poolwright_plane::unique("it"), "Opaque", json!({})).await?;
        ensure!(said.contains("no Secrets but bootstrap tokens"), "{said}");
        Ok(())
    })
    .await
    .unwrap();
    let kind = "bootstrap.kubernetes.io/token";
    let token = |changed: Value| {
        let mut data = json!({"token-id": "abcdef", "token-secret": "0123456789abcdef",
            "expiration": "2099-01-01T00:00:00Z", "usage-bootstrap-authentication": "true",
            "auth-extra-groups": "system:bootstrappers:kubeadm:default-node-token"});
        for (key, value) in changed.as_object().unwrap() {
            data[key] = value.clone();
        }
        data.as_object_mut().unwrap().retain(|_, value| !value.is_null());
        data
    };
    for (changed, why) in [
        (json!({"auth-extra-groups": "system:bootstrappers:masters"}), "that join with kubeadm alone"),
        (json!({"auth-extra-groups": null}), "that join with kubeadm alone"),
        (json!({"usage-bootstrap-signing": "true"}), "sign nothing"),
        (json!({"expiration": null}), "expire"),
    ] {
        let said = refused("bootstrap-token-abcdef", kind, token(changed.clone())).await.unwrap();
        assert!(said.contains(why), "{changed}: {said}");
    }
    let said = refused("bootstrap-token-abcdef", "Opaque", token(json!({}))).await.unwrap();
    assert!(said.contains("no Secrets but bootstrap tokens"), "{said}");
    KubeTokens::new(limited, config, "blue").make(now() + SignedDuration::from_mins(60)).await.unwrap();
}

#[tokio::test]
async fn without_usable_tokens_nothing_is_launched_and_the_fix_is_reported() {
    let plane = ControlPlane::start(Options::api_server_only()).await.unwrap();
    let expires = now() + SignedDuration::from_mins(60);
    let told = async |tokens: &KubeTokens, expires| match tokens.make(expires).await {
        Err(ProviderError::Invalid(told)) => told,
        other => panic!("a person must do something: {other:?}"),
    };
    let forbidden = told(&tokens(&plane, false).await, expires).await;
    for words in [
        "Secret `kube-system/bootstrap-token-",
        "deploy/rbac-kubeadm.yaml",
        "verbs: [create]",
        "cannot create",
    ] {
        assert!(forbidden.contains(words), "{forbidden}");
    }
    assert_eq!(secrets(&plane).await.len(), 0);

    let tokens = tokens(&plane, true).await;
    // By a clock this far behind, the token would expire before a node joins.
    let late = told(&tokens, expires - SignedDuration::from_mins(40)).await;
    assert!(late.contains("clock"), "{late}");
    // This API server was started without bootstrap tokens.
    let world = world().await;
    let provider = world.connect_to(Arc::new(tokens), Some(cluster())).await.unwrap();
    let offerings = two_offerings(&provider, &world).await;
    let error = provider.launch(&world.request(0, &offerings)).await.unwrap_err().to_string();
    assert!(error.contains("--enable-bootstrap-token-auth") && error.contains("EKS"), "{error}");
    let made = secrets(&plane).await;
    // While a token exists that the API server does not accept, no other is made.
    world.ahead.store(60, Ordering::Relaxed);
    let again = provider.launch(&world.request(0, &offerings)).await.unwrap_err().to_string();
    assert_eq!(again, error);
    assert_eq!(secrets(&plane).await.len(), made.len());
    let secret = made.into_iter().next_back().context("one was made").unwrap();
    let hidden = String::from_utf8(secret.data.unwrap()["token-secret"].0.clone()).unwrap();
    assert!(!error.contains(&hidden), "the token is in the error");
    assert_eq!(world.front.calls().get("ec2:CreateFleet"), None);
    assert_eq!(user_data(&world).await.len(), 0);
}
