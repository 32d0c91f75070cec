//! The CRDs on a real API server: they install, and accept and reject the cases of a table.

#[path = "../../../providers/registry/tests/crds/cases.rs"]
mod cases;

use std::path::Path;

use kube::api::{DeleteParams, DynamicObject, GetParams, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind, Request};
use kube::{Api, Client, Resource, ResourceExt};
use poolwright_api::{NodeClaim, NodePool};
use poolwright_plane::{ControlPlane, Options, install_crds};
use poolwright_provider_aws::node_class::{EC2NodeClass, HttpTokens};
use poolwright_provider_contract::crds;
use poolwright_provider_kwok::KwokNodeClass;
use poolwright_provider_registry::CLOUDS;
use poolwright_terms::{GROUP, VERSION};
use serde_json::Value;

use cases::{Case, Cases};

async fn with_crds() -> (&'static ControlPlane, Client) {
    let plane = ControlPlane::shared(Options::default()).await.unwrap();
    let client = plane.client().unwrap();
    install_crds(&client, &Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crds")).await.unwrap();
    (plane, client)
}

fn api_of(client: &Client, kind: &str) -> Api<DynamicObject> {
    let crd = crds(CLOUDS.iter().map(|cloud| cloud.node_class))
        .into_iter()
        .find(|crd| crd.spec.names.kind == kind)
        .unwrap();
    let gvk = GroupVersionKind::gvk(GROUP, VERSION, kind);
    Api::all_with(client.clone(), &ApiResource::from_gvk_with_plural(&gvk, &crd.spec.names.plural))
}

/// Creates this object in a dry run, and returns the API server's answer.
async fn try_create(api: &Api<DynamicObject>, object: &Value) -> Result<DynamicObject, kube::Error> {
    let object = serde_json::from_value(object.clone()).expect("the case is a Kubernetes object");
    api.create(&PostParams { dry_run: true, ..Default::default() }, &object).await
}

/// Changes `accepted` to `rejected`, and returns the API server's answer.
async fn try_update(
    api: &Api<DynamicObject>,
    accepted: &Value,
    rejected: &Value,
) -> Result<DynamicObject, kube::Error> {
    let old: DynamicObject =
        serde_json::from_value(accepted.clone()).expect("the case is a Kubernetes object");
    let stored = api.create(&PostParams::default(), &old).await.expect("the accepted object can be stored");
    let mut new: DynamicObject =
        serde_json::from_value(rejected.clone()).expect("the case is a Kubernetes object");
    new.metadata.resource_version = stored.resource_version();
    let answer =
        api.replace(&old.name_any(), &PostParams { dry_run: true, ..Default::default() }, &new).await;
    api.delete(&old.name_any(), &DeleteParams::default()).await.expect("the object can be deleted");
    answer
}

async fn check(client: &Client, cases: &Cases, case: &Case) {
    let api = api_of(client, &case.kind);
    let (accepted, rejected) = (cases.accepted(case), cases.rejected(case));
    if let Err(error) = try_create(&api, &accepted).await {
        panic!("`{}`: the accept case is refused: {error}", case.name);
    }
    let answer = if case.update {
        try_update(&api, &accepted, &rejected).await
    } else {
        try_create(&api, &rejected).await
    };
    match answer {
        Ok(_) => panic!("`{}`: the reject case is accepted", case.name),
        Err(kube::Error::Api(status)) if status.code == 422 => {
            assert!(
                status.message.contains(&case.message),
                "`{}`: refused with {:?}",
                case.name,
                status.message
            );
        }
        Err(error) => panic!("`{}`: {error}", case.name),
    }
}

#[tokio::test]
async fn the_api_server_accepts_and_rejects_the_cases_of_the_table() {
    let (_plane, client) = with_crds().await;
    let cases = Cases::load();
    for case in &cases.cases {
        check(&client, &cases, case).await;
    }
}

#[tokio::test]
async fn objects_round_trip_through_the_api_server_with_defaults() {
    let (_plane, client) = with_crds().await;
    let cases = Cases::load();
    let stored = |kind: &str| {
        let (api, base) = (api_of(&client, kind), cases.bases[kind].clone());
        async move { serde_json::to_value(try_create(&api, &base).await.unwrap()).unwrap() }
    };
    let pool: NodePool = serde_json::from_value(stored("NodePool").await).unwrap();
    let claim: NodeClaim = serde_json::from_value(stored("NodeClaim").await).unwrap();
    let class: KwokNodeClass = serde_json::from_value(stored("KwokNodeClass").await).unwrap();
    assert_eq!(
        (pool.meta().name.as_deref(), pool.spec.scale_to_zero.after.0.as_str()),
        (Some("gpu"), "auto")
    );
    assert_eq!(pool.spec.template.spec.deadlines, claim.spec.deadlines);
    assert_eq!(claim.spec.offerings[0].allocatable["pods"].0, "58");
    assert_eq!(class.spec.registration_delay.0, "1s");
    let ec2: EC2NodeClass = serde_json::from_value(stored("EC2NodeClass").await).unwrap();
    assert_eq!(
        (ec2.spec.metadata_options.tokens, ec2.spec.metadata_options.hop_limit),
        (HttpTokens::Required, 1)
    );
}

#[tokio::test]
async fn kubectl_shows_the_cost_and_health_of_pools_and_claims() {
    let (_plane, client) = with_crds().await;
    let cases = Cases::load();
    let ready = |kind: &str| {
        serde_json::json!([{"type": kind, "status": "True", "reason": "Fine", "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z"}])
    };
    let pool = serde_json::json!({"nodes": 3, "plannedUsdPerHour": "2.012", "usdPerHour": "3.018",
        "resources": {"nvidia.com/gpu": "3"}, "conditions": ready("Ready")});
    assert_eq!(
        row(&client, "NodePool", &cases, pool, 7).await,
        ["columns", "default", "3", "3", "2.012", "3.018", "True"],
        "NAME NODECLASS NODES GPUS PLANNED/H USD/H READY"
    );
    let claim = serde_json::json!({"providerID": "kwok://i-1", "nodeName": "n1", "price": {"usdPerHour": "1.006", "source": "x"},
        "offering": {"instanceType": "g5.xlarge", "zone": "us-east-1a", "capacityType": "on-demand"},
        "conditions": ready("Initialized")});
    assert_eq!(
        row(&client, "NodeClaim", &cases, claim, 7).await,
        ["columns", "g5.xlarge", "us-east-1a", "on-demand", "1.006", "n1", "True"],
        "NAME TYPE ZONE CAPACITY USD/H NODE READY"
    );
}

/// Returns the first columns of the row that `kubectl get` prints for an object with this status.
async fn row(client: &Client, kind: &str, cases: &Cases, status: Value, columns: usize) -> Vec<String> {
    let api = api_of(client, kind);
    let mut object: DynamicObject = serde_json::from_value(cases.bases[kind].clone()).unwrap();
    object.metadata.name = Some("columns".to_owned());
    api.create(&PostParams::default(), &object).await.unwrap();
    let patch = Patch::Merge(serde_json::json!({"status": status}));
    api.patch_status("columns", &PatchParams::default(), &patch).await.unwrap();
    let mut request = Request::new(api.resource_url()).get("columns", &GetParams::default()).unwrap();
    let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
    request.headers_mut().insert("accept", table.parse().unwrap());
    let table: Value = client.request(request).await.unwrap();
    api.delete("columns", &DeleteParams::default()).await.unwrap();
    let cells = table["rows"][0]["cells"].as_array().expect("a row").iter().take(columns);
    cells.map(|cell| cell.as_str().map_or_else(|| cell.to_string(), str::to_owned)).collect()
}
