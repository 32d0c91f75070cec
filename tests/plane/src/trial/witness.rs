//! A witness of all purchases: records every instance, node and claim that ever existed, from watches of the API server.

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

/// The pause between the end of a watch and the next one.
const PAUSE: Duration = Duration::from_millis(100);

/// The objects seen of one kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// The UIDs of all objects that ever had a name.
    uids: BTreeMap<String, BTreeSet<String>>,
    present: BTreeSet<String>,
    most: usize,
}

impl Seen {
    /// Returns the number of objects that ever existed.
    pub fn ever(&self) -> usize {
        self.uids.values().map(BTreeSet::len).sum()
    }

    /// Returns the number of objects that exist.
    pub fn now(&self) -> usize {
        self.present.len()
    }

    /// Returns the largest number of objects that existed at a time.
    pub fn most(&self) -> usize {
        self.most
    }

    /// Returns the names that more than one object had.
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

/// The objects seen of all kinds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// Instances, by the name they are stored under, one name per claim UID. A name that two objects had means that two instances
    /// were bought for one claim.
    pub instances: Seen,
    /// Nodes. A name that two objects had means that a machine joined twice.
    pub nodes: Seen,
    /// Claims.
    pub claims: Seen,
    /// The error that ended a watch.
    failure: Option<String>,
}

/// Records objects in the background until it is dropped. See the module.
#[derive(Debug)]
pub struct Witness {
    account: Arc<Mutex<Account>>,
    tasks: Vec<JoinHandle<()>>,
}

impl Witness {
    /// Starts to record, beginning with all existing objects.
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

    /// Returns what it has seen so far. Watches are late by milliseconds.
    pub fn account(&self) -> anyhow::Result<Account> {
        let account = lock(&self.account).clone();
        match account.failure {
            Some(failure) => bail!("the witness saw no more: {failure}"),
            None => Ok(account),
        }
    }

    /// Waits until it sees `there` instances, nodes and claims, and returns what it has seen.
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

/// Follows one kind until an error.
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
        // A watch may end at any time. The next continues at the last version, or fails if it cannot.
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
