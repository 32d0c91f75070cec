//! Read, change, write back: how a status is written when several things change it. The resource version that was read
//! guards the write, so that nothing written in between is lost. Where a watch has shown the object it is not read first,
//! but when that write is refused: in a burst of interruptions reading took as long as writing.

use std::fmt::Debug;
use std::time::Duration;

use kube::api::PostParams;
use kube::{Api, Resource};
use poolwright_api::NodeClaim;
use poolwright_core::{ClaimName, Uid};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::Executor;
use super::outcome::{Outcome, failed, refused};
use crate::leader::writer::Writer;
use crate::sees::reader::answer;

/// How long one write may take.
pub const WRITE_LIMIT: Duration = Duration::from_secs(15);
/// How often a conflict is answered by reading again before the whole action waits.
const ATTEMPTS: u32 = 4;

/// What a change of an object came to.
pub enum Changed<K> {
    /// Written; the object as it is now.
    Written(K),
    /// It was so already.
    Unchanged(K),
    /// Not written.
    Not(Outcome),
}

impl Executor {
    /// Changes the status of the claim of this name and UID, beginning with the version that was seen last, and makes known
    /// what it is now. `change` says whether it changed anything; it may be called several times.
    pub(super) async fn change_claim(
        &self,
        name: &ClaimName,
        uid: Option<&Uid>,
        change: impl FnMut(&mut NodeClaim) -> bool,
    ) -> Changed<NodeClaim> {
        let api: Api<NodeClaim> = Api::all(self.client.clone());
        let uid = uid.map(|uid| uid.0.as_str());
        let draft = self.world.claim_draft(name);
        let changed = change_from(&api, &self.writer, (&name.0, uid), draft, change).await;
        if let Changed::Written(object) | Changed::Unchanged(object) = &changed {
            self.world.claim_seen(object);
        }
        changed
    }
}

/// Changes the status of the object of this name and UID. `change` says whether it changed anything; it may be called
/// several times.
pub async fn change_status<K>(
    api: &Api<K>,
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

/// The same, from a version that may be late.
async fn change_from<K>(
    api: &Api<K>,
    writer: &Writer,
    (name, uid): (&str, Option<&str>),
    mut draft: Option<K>,
    mut change: impl FnMut(&mut K) -> bool,
) -> Changed<K>
where
    K: Resource + Clone + Debug + DeserializeOwned + Serialize,
{
    let mut last = None;
    for _ in 0..=ATTEMPTS {
        let (mut object, is_draft) = match draft.take() {
            Some(object) => (object, true),
            None => match answer(api.get_opt(name)).await {
                Ok(Some(object)) => (object, false),
                Ok(None) => return Changed::Not(Outcome::NothingToDo),
                Err(error) => return Changed::Not(refused("reading", &error)),
            },
        };
        let is_another = uid.is_some_and(|uid| object.meta().uid.as_deref() != Some(uid));
        let is_changed = !is_another && change(&mut object);
        match (is_changed, is_draft) {
            (true, _) => {}
            // That there is nothing to do is believed of what the API server says now.
            (false, true) => continue,
            (false, false) if is_another => return Changed::Not(Outcome::NothingToDo),
            (false, false) => return Changed::Unchanged(object),
        }
        object.meta_mut().managed_fields = None;
        let params = PostParams {
            field_manager: Some(poolwright_api::names::FIELD_MANAGER.into()),
            ..Default::default()
        };
        match writer.write("status", WRITE_LIMIT, || api.replace_status(name, &params, &object)).await {
            Ok(object) => return Changed::Written(object),
            Err(error) if is_conflict(&error) || is_draft && is_not_found(&error) => last = Some(error),
            Err(error) => return Changed::Not(failed("writing the status", error)),
        }
    }
    let why = last.map(|error| error.to_string()).unwrap_or_default();
    Changed::Not(Outcome::retry(format!("the status is being changed by somebody else all the time: {why}")))
}

/// Whether there is no such object.
pub fn is_not_found(error: &crate::leader::writer::WriteError<kube::Error>) -> bool {
    matches!(error, crate::leader::writer::WriteError::Failed(kube::Error::Api(status)) if status.is_not_found())
}

/// Whether somebody else wrote in between.
pub fn is_conflict(error: &crate::leader::writer::WriteError<kube::Error>) -> bool {
    matches!(error, crate::leader::writer::WriteError::Failed(kube::Error::Api(status)) if status.is_conflict())
}
