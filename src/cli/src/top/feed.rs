//! Reads the cluster with lists from the API server's cache, all kinds concurrently.

use std::fmt::Debug;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use kube::api::ListParams;
use kube::{Api, Client, Resource};
use poolwright_controller::clock::Clock;
use poolwright_terms::keys;
use poolwright_terms::keys::REPORTING_CONTROLLER;
use serde::de::DeserializeOwned;
use tokio::time::timeout;

use super::model::{Listed, Reading};
use crate::reach::SILENT;

/// The selector of unfinished pods. Finished pods use no resources, and clusters that run jobs keep many of them.
const UNFINISHED: &str = "status.phase!=Succeeded,status.phase!=Failed";
/// The timeout of a reading.
const WITHIN: Duration = Duration::from_secs(30);

/// Reads everything once. A kind that may not be read has the error in its place.
///
/// # Errors
///
/// The cluster does not answer, or rejects us.
pub async fn read(client: &Client, clock: &dyn Clock) -> Result<Reading> {
    // Any version is enough, so the API server answers from memory.
    let all = ListParams::default().match_any();
    let unfinished = all.clone().fields(UNFINISHED);
    let ours = all.clone().fields(&format!("reportingController={REPORTING_CONTROLLER}"));
    let lease = all.clone().fields(&format!("metadata.name={}", keys::LEASE));
    let lists = async {
        tokio::try_join!(
            list(client, &all),
            list(client, &all),
            list(client, &all),
            list(client, &unfinished),
            list(client, &ours),
            list(client, &lease),
        )
    };
    let lists = timeout(WITHIN, lists)
        .await
        .map_err(|_| anyhow!("the API server did not answer within {} s; {SILENT}", WITHIN.as_secs()))?;
    let (pools, claims, nodes, pods, events, leases) = lists?;
    Ok(Reading { at: clock.now(), pools, claims, nodes, pods, events, leases })
}

async fn list<K>(client: &Client, parameters: &ListParams) -> Result<Listed<K>>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned,
{
    let plural = K::plural(&());
    match Api::<K>::all(client.clone()).list(parameters).await {
        Ok(listed) => Ok(Ok(listed.items)),
        Err(kube::Error::Api(status)) if status.code == 403 => {
            Ok(Err(format!("you may not list {plural}: {}", status.message)))
        }
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(Err(format!(
            "the cluster has no {plural}; install the custom resources: poolwright crds | kubectl apply -f -"
        ))),
        Err(error) => Err(error).with_context(|| format!("cannot list {plural}")),
    }
}
