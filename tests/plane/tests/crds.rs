//! The CRDs on a real API server: they install, and their rules accept and reject what the table says.

#[path = "../../../src/api/tests/cases/mod.rs"]
mod cases;

use std::path::Path;

use cases::{Case, Cases};
use kube::api::{DeleteParams, DynamicObject, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Api, Client, Resource, ResourceExt};
use poolwright_api::{GROUP, KwokNodeClass, NodeClaim, NodePool, VERSION, crds};
use poolwright_plane::{ControlPlane, Options, install_crds};
use serde_json::Value;

async fn with_crds() -> (&'static ControlPlane, Client) {
    let plane = ControlPlane::shared(Options::default()).await.unwrap();
    let client = plane.client().unwrap();
    install_crds(&client, &Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crds")).await.unwrap();
    (plane, client)
}

fn api_of(client: &Client, kind: &str) -> Api<DynamicObject> {
    let crd = crds().into_iter().find(|crd| crd.spec.names.kind == kind).unwrap();
    let gvk = GroupVersionKind::gvk(GROUP, VERSION, kind);
    Api::all_with(client.clone(), &ApiResource::from_gvk_with_plural(&gvk, &crd.spec.names.plural))
}

/// What the API server says about creating this object, without keeping it.
async fn try_create(api: &Api<DynamicObject>, object: &Value) -> Result<DynamicObject, kube::Error> {
    let object = serde_json::from_value(object.clone()).expect("the case is a Kubernetes object");
    api.create(&PostParams { dry_run: true, ..Default::default() }, &object).await
}

/// What the API server says about changing `accepted` to `rejected`.
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
async fn the_api_server_accepts_and_rejects_as_the_table_says() {
    let (_plane, client) = with_crds().await;
    let cases = Cases::load();
    for case in &cases.cases {
        check(&client, &cases, case).await;
    }
}

#[tokio::test]
async fn objects_come_back_from_the_api_server_as_the_types_say_with_defaults_filled_in() {
    let (_plane, client) = with_crds().await;
    let cases = Cases::load();
    let stored = |kind: &str| {
        let (api, base) = (api_of(&client, kind), cases.bases[kind].clone());
        async move { serde_json::to_value(try_create(&api, &base).await.unwrap()).unwrap() }
    };
    let pool: NodePool = serde_json::from_value(stored("NodePool").await).unwrap();
    let claim: NodeClaim = serde_json::from_value(stored("NodeClaim").await).unwrap();
    let class: KwokNodeClass = serde_json::from_value(stored("KwokNodeClass").await).unwrap();
    assert_eq!((pool.meta().name.as_deref(), pool.spec.scale_to_zero.after.0.as_str()), (Some("gpu"), "5m"));
    assert_eq!(pool.spec.template.spec.deadlines, claim.spec.deadlines);
    assert_eq!(claim.spec.offerings[0].allocatable["pods"].0, "58");
    assert_eq!(class.spec.registration_delay.0, "1s");
}
