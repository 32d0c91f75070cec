//! Objects of the cluster, for tests: applies YAML, installs CRDs, and makes unique names.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context, ensure};
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DynamicObject, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use kube::discovery::{Scope, pinned_kind};
use kube::{Api, Client, ResourceExt};

use crate::wait::wait_for;

/// A CRD is served within a tenth of a second. The rest is for busy machines.
const ESTABLISH_WITHIN: Duration = Duration::from_secs(30);

/// Binds the rights of `deploy/rbac.yaml` in the namespace `poolwright` to a user named `poolwright-controller`.
pub const CONTROLLER_BINDINGS: &str = r"
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: poolwright-controller}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: poolwright-controller}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: poolwright-controller}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: poolwright-controller, namespace: poolwright}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: poolwright-controller}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: poolwright-controller}]
";

/// Returns `prefix` with a number that no other call in this process got: a name for one test's objects.
pub fn unique(prefix: &str) -> String {
    static NEXT: AtomicUsize = AtomicUsize::new(1);
    format!("{prefix}-{}", NEXT.fetch_add(1, Ordering::Relaxed))
}

/// Creates a namespace named by [`unique`], and returns its name.
pub async fn create_namespace(client: &Client, prefix: &str) -> anyhow::Result<String> {
    let name = unique(prefix);
    let namespace = Namespace {
        metadata: kube::api::ObjectMeta { name: Some(name.clone()), ..Default::default() },
        ..Default::default()
    };
    Api::all(client.clone())
        .create(&PostParams::default(), &namespace)
        .await
        .with_context(|| format!("namespace {name} could not be created"))?;
    Ok(name)
}

/// Applies every document of `yaml` in order (server-side, as `kubectl apply --server-side --force-conflicts`). Namespaced
/// objects that name no namespace go to `namespace`. Returns them as the server stored them.
pub async fn apply(client: &Client, namespace: &str, yaml: &str) -> anyhow::Result<Vec<DynamicObject>> {
    let documents: Vec<serde_json::Value> =
        serde_saphyr::from_multiple(yaml).context("the YAML cannot be read")?;
    let mut applied = Vec::with_capacity(documents.len());
    for document in documents {
        let object: DynamicObject = serde_json::from_value(document)
            .context("a document is no Kubernetes object (metadata is missing?)")?;
        applied.push(apply_one(client, namespace, &object).await?);
    }
    Ok(applied)
}

async fn apply_one(
    client: &Client,
    namespace: &str,
    object: &DynamicObject,
) -> anyhow::Result<DynamicObject> {
    let name = object.name_any();
    let types =
        object.types.as_ref().with_context(|| format!("object {name:?} has no apiVersion and kind"))?;
    let kind = &types.kind;
    let gvk = GroupVersionKind::try_from(types).with_context(|| format!("{kind} {name}: bad apiVersion"))?;
    let (resource, capabilities) = pinned_kind(client, &gvk)
        .await
        .with_context(|| format!("{kind} {name}: the API server does not serve {}", types.api_version))?;
    let api: Api<DynamicObject> = match capabilities.scope {
        Scope::Cluster => Api::all_with(client.clone(), &resource),
        Scope::Namespaced => {
            let own = object.namespace();
            Api::namespaced_with(client.clone(), own.as_deref().unwrap_or(namespace), &resource)
        }
    };
    api.patch(&name, &PatchParams::apply("poolwright-plane").force(), &Patch::Apply(object))
        .await
        .with_context(|| format!("{kind} {name} could not be applied"))
}

/// Applies every `*.yaml` of `folder` and waits until the API server serves the CRDs among them.
/// Returns the names of those CRDs.
pub async fn install_crds(client: &Client, folder: &Path) -> anyhow::Result<Vec<String>> {
    let entries = fs::read_dir(folder).with_context(|| format!("the CRD folder {}", folder.display()))?;
    let mut files: Vec<_> = entries.map(|entry| Ok(entry?.path())).collect::<std::io::Result<_>>()?;
    files.retain(|path| path.extension().is_some_and(|extension| extension == "yaml"));
    files.sort();
    ensure!(!files.is_empty(), "{} has no *.yaml: run `make crds`", folder.display());
    let mut names = Vec::new();
    for file in files {
        let yaml = fs::read_to_string(&file)?;
        let applied = apply(client, "default", &yaml).await.with_context(|| file.display().to_string())?;
        names.extend(applied.iter().filter(|object| is_crd(object)).map(ResourceExt::name_any));
    }
    let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
    for name in &names {
        wait_for(&format!("CRD {name} to be served"), ESTABLISH_WITHIN, async || {
            let crd = crds.get(name).await?;
            let conditions = crd.status.unwrap_or_default().conditions.unwrap_or_default();
            let established = conditions.iter().any(|c| c.type_ == "Established" && c.status == "True");
            ensure!(established, "its conditions are {conditions:?}");
            Ok(())
        })
        .await?;
    }
    Ok(names)
}

fn is_crd(object: &DynamicObject) -> bool {
    object.types.as_ref().is_some_and(|types| types.kind == "CustomResourceDefinition")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_calls_get_the_same_name() {
        assert_ne!(unique("a"), unique("a"));
    }
}
