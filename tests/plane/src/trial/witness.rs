//! A witness of all that is bought: every instance, node and claim there ever was, by watches of the API server.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use futures::{StreamExt, pin_mut};
use k8s_openapi::api::core::v1::{ConfigMap, Node};
use kube::Api;
use kube::api::{ApiResource, DynamicObject, ListParams, PartialObjectMeta, WatchEvent, WatchParams};
use poolwright_api::NodeClaim;
use poolwright_terms::keys::NODECLAIM_LABEL;
use tokio::task::JoinHandle;

use super::WITHIN;
use super::cluster::{Cluster, INSTANCES};
use crate::wait::wait_for;

/// From a watch that was cut off to the next.
const PAUSE: Duration = Duration::from_millis(100);

/// What was seen of one kind of object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// The UIDs of all objects that ever had a name.
    uids: BTreeMap<String, BTreeSet<String>>,
    present: BTreeSet<String>,
    most: usize,
}

impl Seen {
    /// How many there ever were.
    pub fn ever(&self) -> usize {
        self.uids.values().map(BTreeSet::len).sum()
    }

    /// How many there are.
    pub fn now(&self) -> usize {
        self.present.len()
    }

    /// How many there were at a time, at most.
    pub fn most(&self) -> usize {
        self.most
    }

    /// Names that more than one object had.
    pub fn doubled(&self) -> Vec<&str> {
        self.uids.iter().filter(|(_, uids)| uids.len() > 1).map(|(name, _)| name.as_str()).collect()
    }

    fn is_there(&mut self, name: &str, uid: &str) {
        self.uids.entry(name.to_owned()).or_default().insert(uid.to_owned());
        self.present.insert(name.to_owned());
        self.most = self.most.max(self.present.len());
    }

    fn is_gone(&mut self, name: &str) {
        self.present.remove(name);
    }
}

/// All kinds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// Instances, by what they are stored under: one name for each UID of a claim. A name that two had is a claim for
    /// which was bought twice.
    pub instances: Seen,
    /// Their nodes. A name that two had is a machine that joined twice.
    pub nodes: Seen,
    /// Claims.
    pub claims: Seen,
    /// Why it saw no more, should that be so.
    failure: Option<String>,
}

/// See the module. It sees nothing more once it is dropped.
#[derive(Debug)]
pub struct Witness {
    account: Arc<Mutex<Account>>,
    tasks: Vec<JoinHandle<()>>,
}

impl Witness {
    /// Sees everything from now on, and what there is.
    pub async fn start(cluster: &Cluster) -> anyhow::Result<Self> {
        let mut witness = Self { account: Arc::default(), tasks: Vec::new() };
        let client = || cluster.client.clone();
        let stored = ApiResource::erase::<ConfigMap>(&());
        let instances = Api::namespaced_with(client(), INSTANCES, &stored);
        witness.see(instances, NODECLAIM_LABEL, |account| &mut account.instances).await?;
        let nodes = Api::all_with(client(), &ApiResource::erase::<Node>(&()));
        witness.see(nodes, NODECLAIM_LABEL, |account| &mut account.nodes).await?;
        let claims = Api::all_with(client(), &ApiResource::erase::<NodeClaim>(&()));
        witness.see(claims, "", |account| &mut account.claims).await?;
        Ok(witness)
    }

    /// What it has seen so far: watches are late by milliseconds.
    pub fn account(&self) -> anyhow::Result<Account> {
        let account = lock(&self.account).clone();
        match account.failure {
            Some(failure) => bail!("the witness saw no more: {failure}"),
            None => Ok(account),
        }
    }

    /// What it has seen when it sees as many instances, nodes and claims as there are.
    pub async fn account_of(&self, there: [usize; 3]) -> anyhow::Result<Account> {
        wait_for("the witness to see what there is", WITHIN, async || {
            let account = self.account()?;
            let seen = [&account.instances, &account.nodes, &account.claims].map(Seen::now);
            ensure!(seen == there, "it sees {seen:?} of {there:?} instances, nodes and claims");
            Ok(account)
        })
        .await
    }

    async fn see(
        &mut self,
        api: Api<DynamicObject>,
        label: &str,
        of: fn(&mut Account) -> &mut Seen,
    ) -> anyhow::Result<()> {
        let list = api.list_metadata(&ListParams::default().labels(label)).await?;
        for object in &list.items {
            let (name, uid) = names(object)?;
            of(&mut lock(&self.account)).is_there(name, uid);
        }
        let version = list.metadata.resource_version.context("a list without version")?;
        let (account, params) = (self.account.clone(), WatchParams::default().labels(label));
        self.tasks.push(tokio::spawn(async move {
            let Err(error) = follow(&api, &params, version, of, &account).await else { return };
            lock(&account).failure = Some(format!("{error:#}"));
        }));
        Ok(())
    }
}

impl Drop for Witness {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

/// Follows one kind for ever.
async fn follow(
    api: &Api<DynamicObject>,
    params: &WatchParams,
    mut version: String,
    of: fn(&mut Account) -> &mut Seen,
    account: &Mutex<Account>,
) -> anyhow::Result<()> {
    loop {
        let events = api.watch_metadata(params, &version).await?;
        pin_mut!(events);
        // A watch may end at any time; the next goes on where it was, or says that it cannot.
        while let Some(Ok(event)) = events.next().await {
            let object = match &event {
                WatchEvent::Added(object) | WatchEvent::Modified(object) | WatchEvent::Deleted(object) => {
                    object
                }
                WatchEvent::Bookmark(mark) => {
                    version.clone_from(&mark.metadata.resource_version);
                    continue;
                }
                WatchEvent::Error(status) => bail!("{status:?}"),
            };
            let (name, uid) = names(object)?;
            let mut account = lock(account);
            match event {
                WatchEvent::Deleted(_) => of(&mut account).is_gone(name),
                _ => of(&mut account).is_there(name, uid),
            }
            version = object.metadata.resource_version.clone().context("an object without version")?;
        }
        tokio::time::sleep(PAUSE).await;
    }
}

fn names(object: &PartialObjectMeta<DynamicObject>) -> anyhow::Result<(&str, &str)> {
    let metadata = &object.metadata;
    metadata.name.as_deref().zip(metadata.uid.as_deref()).context("an object without name or UID")
}

fn lock(account: &Mutex<Account>) -> MutexGuard<'_, Account> {
    account.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_two_objects_had_is_doubled_also_when_the_first_is_gone() {
        let mut seen = Seen::default();
        seen.is_there("a", "1");
        seen.is_there("b", "2");
        seen.is_there("a", "1");
        assert_eq!((seen.ever(), seen.now(), seen.most(), seen.doubled().len()), (2, 2, 2, 0));
        seen.is_gone("a");
        seen.is_there("a", "3");
        assert_eq!((seen.ever(), seen.now(), seen.most(), seen.doubled()), (3, 2, 2, vec!["a"]));
    }
}
