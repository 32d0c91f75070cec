//! Read, change, write back: how a status is written when several things change it. The resource version that was read
//! guards the write, so that nothing written in between is lost.

use std::fmt::Debug;
use std::time::Duration;

use kube::api::PostParams;
use kube::{Api, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::outcome::{Outcome, failed, refused};
use crate::reading::answer;
use crate::writer::Writer;

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

/// Changes the status of the object of this name and UID. `change` says whether it changed anything; it may be called
/// several times.
pub async fn change_status<K>(
    api: &Api<K>,
    writer: &Writer,
    name: &str,
    uid: Option<&str>,
    mut change: impl FnMut(&mut K) -> bool,
) -> Changed<K>
where
    K: Resource + Clone + Debug + DeserializeOwned + Serialize,
{
    let mut last = None;
    for _ in 0..ATTEMPTS {
        let mut object = match answer(api.get_opt(name)).await {
            Ok(Some(object)) => object,
            Ok(None) => return Changed::Not(Outcome::NothingToDo),
            Err(error) => return Changed::Not(refused("reading", &error)),
        };
        if uid.is_some_and(|uid| object.meta().uid.as_deref() != Some(uid)) {
            return Changed::Not(Outcome::NothingToDo);
        }
        if !change(&mut object) {
            return Changed::Unchanged(object);
        }
        object.meta_mut().managed_fields = None;
        let params = PostParams {
            field_manager: Some(poolwright_api::names::FIELD_MANAGER.into()),
            ..Default::default()
        };
        match writer.write("status", WRITE_LIMIT, || api.replace_status(name, &params, &object)).await {
            Ok(object) => return Changed::Written(object),
            Err(error) if is_conflict(&error) => last = Some(error),
            Err(error) => return Changed::Not(failed("writing the status", error)),
        }
    }
    let why = last.map(|error| error.to_string()).unwrap_or_default();
    Changed::Not(Outcome::retry(format!("the status is being changed by somebody else all the time: {why}")))
}

/// Whether there is no such object.
pub fn is_not_found(error: &crate::writer::WriteError<kube::Error>) -> bool {
    matches!(error, crate::writer::WriteError::Failed(kube::Error::Api(status)) if status.is_not_found())
}

/// Whether somebody else wrote in between.
pub fn is_conflict(error: &crate::writer::WriteError<kube::Error>) -> bool {
    matches!(error, crate::writer::WriteError::Failed(kube::Error::Api(status)) if status.is_conflict())
}
