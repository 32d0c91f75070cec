//! The Lease of the controller: who holds it, since when, and why nobody does.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::ListParams;
use kube::{Api, Client, ResourceExt};
use poolwright_controller::causes;
use poolwright_terms::keys::LEASE;

use crate::top::words::age;

/// The namespace that the manifests of the controller use. It is tried if you may not look into all namespaces.
pub const NAMESPACE: &str = "poolwright";
/// The duration of a Lease that does not specify one.
const LASTS: SignedDuration = SignedDuration::from_secs(15);

/// Reads the Leases with our name in all namespaces. If you may not list these, reads that of the namespace `otherwise`.
pub async fn read(client: &Client, otherwise: &str) -> Result<Vec<Lease>, String> {
    let named = ListParams::default().fields(&format!("metadata.name={LEASE}"));
    match Api::<Lease>::all(client.clone()).list(&named).await {
        Ok(listed) => Ok(listed.items),
        Err(kube::Error::Api(status)) if status.code == 403 => read_in(client, otherwise).await,
        Err(error) => Err(causes(&error)),
    }
}

/// Reads the Lease of a namespace.
pub async fn read_in(client: &Client, namespace: &str) -> Result<Vec<Lease>, String> {
    let lease = Api::<Lease>::namespaced(client.clone(), namespace).get_opt(LEASE).await;
    lease.map(|found| found.into_iter().collect()).map_err(|error| causes(&error))
}

/// Returns the Lease that was renewed last, because each namespace may have one.
pub fn newest(leases: &[Lease]) -> Option<&Lease> {
    leases.iter().max_by_key(|lease| renewed(lease))
}

/// Returns the time of the last renewal.
pub fn renewed(lease: &Lease) -> Option<Timestamp> {
    lease.spec.as_ref()?.renew_time.as_ref().map(|time| time.0)
}

/// Returns the holder. A leader that stops releases the Lease: it writes an empty holder.
pub fn holder(lease: &Lease) -> Option<&str> {
    lease.spec.as_ref()?.holder_identity.as_deref().filter(|holder| !holder.is_empty())
}

fn lasts(lease: &Lease) -> SignedDuration {
    let seconds = lease.spec.as_ref().and_then(|spec| spec.lease_duration_seconds);
    seconds.map_or(LASTS, |seconds| SignedDuration::from_secs(seconds.into()))
}

/// Returns whether a controller holds the Lease now.
pub fn is_held(lease: &Lease, now: Timestamp) -> bool {
    holder(lease).is_some()
        && renewed(lease).is_some_and(|renewed| now.duration_since(renewed) <= lasts(lease))
}

/// Names the Lease: `Lease gpus/poolwright-controller`.
pub fn named(lease: &Lease) -> String {
    format!("Lease {}/{LEASE}", lease.namespace().unwrap_or_default())
}

/// Returns the time since the last renewal, for people.
pub fn renewed_since(lease: &Lease, now: Timestamp) -> String {
    renewed(lease).map_or_else(|| "an unknown time".to_owned(), |renewed| age(renewed, now))
}

/// Says why no controller leads; `None` if one does.
pub fn why_nobody_leads(lease: &Lease, now: Timestamp) -> Option<String> {
    if is_held(lease, now) {
        return None;
    }
    let (named, since) = (named(lease), renewed_since(lease, now));
    Some(match holder(lease) {
        None => format!("the last leader stopped and released the {named} {since} ago"),
        Some(holder) => {
            let lasts = lasts(lease).as_secs();
            format!("{holder} last renewed the {named} {since} ago, and it lasts {lasts} s")
        }
    })
}
