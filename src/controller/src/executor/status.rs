//! Changes the status of an object with optimistic concurrency: read, change, write back.
//!
//! The write carries the resource version that was read, so no concurrent write is lost. An object that a watch has shown is
//! read only after a conflict: in a burst of interruptions, reads took as long as writes.

use std::fmt::Debug;
use std::time::Duration;

use kube::Resource;
use kube::api::{PatchParams, PostParams};
use poolwright_api::NodeClaim;
use poolwright_core::{ClaimName, Uid};
use poolwright_terms::keys::FIELD_MANAGER;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::Executor;
use super::progress::{Progress, failed, refused};
use crate::leader::writer::{WriteError, Writer};
use crate::observed::reader::Objects;

/// The timeout of one write.
pub const WRITE_LIMIT: Duration = Duration::from_secs(15);
/// The number of reads after conflicts before the action is retried later.
const ATTEMPTS: u32 = 4;

/// Returns the parameters of a patch by this controller.
pub(super) fn patch_params() -> PatchParams {
    PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..Default::default() }
}

/// The result of changing an object.
pub enum Changed<K> {
    /// Written, with the new object.
    Written(K),
    /// No change was needed, with the object.
    Unchanged(K),
    /// Not written, with the reason.
    NotWritten(Progress),
}

impl Executor {
    /// Changes the status of the claim with this name and UID, starting from the version seen last, and updates the world.
    /// `change` returns whether it changed anything, and may be called several times.
    pub(super) async fn change_claim(
        &self,
        name: &ClaimName,
        uid: Option<&Uid>,
        change: impl FnMut(&mut NodeClaim) -> bool,
    ) -> Changed<NodeClaim> {
        let api = self.context.reader.all::<NodeClaim>();
        let uid = uid.map(|uid| uid.0.as_str());
        let seen = self.context.world.last_seen_claim(name);
        let changed = change_from(&api, &self.context.writer, (&name.0, uid), seen, change).await;
        if let Changed::Written(object) | Changed::Unchanged(object) = &changed {
            self.context.world.claim_seen(object);
        }
        changed
    }
}

/// Changes the status of the object with this name and UID. `change` returns whether it changed anything, and may be called
/// several times.
pub async fn change_status<K>(
    api: &Objects<K>,
    writer: &Writer,
    name: &str,
    uid: Option<&str>,
    change: impl FnMut(&mut K) -> bool,
) -> Changed<K>
where
    K: Resource + Clone + Debug + DeserializeOwned + Serialize,
{
    change_from(api, writer, (name, uid), None, change).await
}

/// Changes the status like [`change_status`], but starts from a version that may be stale.
async fn change_from<K>(
    api: &Objects<K>,
    writer: &Writer,
    (name, uid): (&str, Option<&str>),
    mut seen: Option<K>,
    mut change: impl FnMut(&mut K) -> bool,
) -> Changed<K>
where
    K: Resource + Clone + Debug + DeserializeOwned + Serialize,
{
    let mut last = None;
    for _ in 0..=ATTEMPTS {
        let (mut object, is_from_watch) = match seen.take() {
            Some(object) => (object, true),
            None => match api.get(name).await {
                Ok(Some(object)) => (object, false),
                Ok(None) => return Changed::NotWritten(Progress::NothingToDo),
                Err(error) => return Changed::NotWritten(refused("reading", &error)),
            },
        };
        let is_another = uid.is_some_and(|uid| object.meta().uid.as_deref() != Some(uid));
        let is_changed = !is_another && change(&mut object);
        match (is_changed, is_from_watch) {
            (true, _) => {}
            // Only a fresh read can show that there is nothing to do.
            (false, true) => continue,
            (false, false) if is_another => return Changed::NotWritten(Progress::NothingToDo),
            (false, false) => return Changed::Unchanged(object),
        }
        object.meta_mut().managed_fields = None;
        let params = PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..Default::default() };
        match writer
            .write("status", WRITE_LIMIT, async |permit| {
                api.writable(permit).replace_status(name, &params, &object).await
            })
            .await
        {
            Ok(object) => return Changed::Written(object),
            Err(error) if is_conflict(&error) || is_from_watch && is_not_found(&error) => last = Some(error),
            Err(error) => return Changed::NotWritten(failed("writing the status", error)),
        }
    }
    let why = last.map(|error| error.to_string()).unwrap_or_default();
    Changed::NotWritten(Progress::retry(format!("somebody else keeps changing the status: {why}")))
}

/// Returns whether the object does not exist.
pub fn is_not_found(error: &WriteError<kube::Error>) -> bool {
    matches!(error, WriteError::Failed(kube::Error::Api(status)) if status.is_not_found())
}

/// Returns whether the message of an API server says that an admission policy or a webhook denies a request. A webhook that states no
/// code, such as that of Kyverno, denies with 400 (`ToStatusErr` in k8s.io/apiserver).
pub fn is_of_policy(message: &str) -> bool {
    message.contains("denied the request") || message.contains("denied request")
}

/// Returns whether the API server denies the write for its content: an admission policy or a webhook forbids it.
pub fn is_denied_by_policy(error: &WriteError<kube::Error>) -> bool {
    let WriteError::Failed(kube::Error::Api(status)) = error else { return false };
    status.code == 422 || (matches!(status.code, 400 | 403) && is_of_policy(&status.message))
}

/// Returns whether the API server denies the write for its content or its author: an admission policy or RBAC forbids it.
pub fn is_denied(error: &WriteError<kube::Error>) -> bool {
    is_denied_by_policy(error)
        || matches!(error, WriteError::Failed(kube::Error::Api(status)) if status.code == 403)
}

/// Returns whether the write conflicted with another one, or another object has the name now. The API server answers a patch that
/// names another UID with 422, as if it changed the UID.
pub fn is_conflict(error: &WriteError<kube::Error>) -> bool {
    let WriteError::Failed(kube::Error::Api(status)) = error else { return false };
    status.is_conflict() || status.code == 422 && status.message.contains("metadata.uid: Invalid value")
}
