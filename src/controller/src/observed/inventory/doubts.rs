//! What a listing lacks, and whether a listing that lacks so much can be right.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use poolwright_core::{ListedInstance, Snapshot, Uid};
use poolwright_terms::{ConditionType, NodeClassRef};

/// An instance that a listing lacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Absent {
    pub(super) provider_id: String,
    pub(super) claim_uid: Uid,
    pub(super) node_class: NodeClassRef,
    /// Whether nothing confirms that it is gone: its cloud announced nothing, and its node is ready, or has not joined yet.
    pub(super) is_unconfirmed: bool,
    /// Whether its node is ready.
    pub(super) is_ready: bool,
    /// Whether it was launched a short time ago, and its node has not joined.
    pub(super) is_new: bool,
    /// Whether its node has been ready for longer than a node can be without its instance.
    pub(super) runs_on: bool,
}

impl Absent {
    /// Returns the instance as listed: it is there, although the listing lacks it.
    pub(super) fn there(self, launched: Timestamp) -> ListedInstance {
        let Self { provider_id, claim_uid, node_class, .. } = self;
        ListedInstance { provider_id, claim_uid, node_class, launched }
    }
}

/// The fewest instances that make a listing doubtful when it lacks them, unless it lacks all.
const DOUBTFUL: usize = 3;
/// How long a cloud may take to list a new instance.
const UNTIL_LISTED: SignedDuration = SignedDuration::from_secs(30);
/// How long one failed search does not prove that an instance is gone whose node has not joined. Most nodes join sooner.
const NEW: SignedDuration = SignedDuration::from_mins(5);
/// How long a node may seem ready without its instance. The node lifecycle controller notices within 40 to 50 seconds.
const SEEMS_READY: SignedDuration = SignedDuration::from_mins(2);

/// Returns the instances that a listing of a provider at `at` lacks, and how many it should have at least.
///
/// It may lack those that Poolwright terminates. But a claim says so before the cloud has answered. So a doubt would end by the
/// deletion of claims. While `is_doubted`, an instance therefore counts until its node is not ready.
pub(super) fn absent(
    snapshot: &Snapshot,
    is_ours: impl Fn(&NodeClassRef) -> bool,
    listed: &[ListedInstance],
    is_doubted: bool,
    at: Timestamp,
) -> (Vec<Absent>, usize) {
    let ids: BTreeSet<&str> = listed.iter().map(|one| one.provider_id.as_str()).collect();
    let uids: BTreeSet<&Uid> = listed.iter().map(|one| &one.claim_uid).collect();
    let (mut absent, mut known) = (Vec::new(), 0);
    for claim in snapshot.claims.values().filter(|claim| is_ours(&claim.node_class)) {
        let Some(launched) = &claim.launched else { continue };
        let since = claim.since(ConditionType::Launched).unwrap_or(claim.created);
        let is_within = |limit: SignedDuration| since.checked_add(limit).is_ok_and(|end| end > at);
        let node = claim.node_name.as_ref().map(|name| snapshot.nodes.get(name));
        let is_ready = node.flatten().is_some_and(|node| node.ready);
        let is_terminated = claim.since(ConditionType::InstanceTerminating).is_some();
        if is_within(UNTIL_LISTED) || is_terminated && !(is_doubted && is_ready) {
            continue;
        }
        known += 1;
        if ids.contains(launched.provider_id.as_str()) || uids.contains(&claim.uid) {
            continue;
        }
        let unlisted = claim.since(ConditionType::InstanceUnlisted);
        let has_lasted = |since: Timestamp| since.checked_add(SEEMS_READY).is_ok_and(|until| until <= at);
        absent.push(Absent {
            provider_id: launched.provider_id.clone(),
            claim_uid: claim.uid.clone(),
            node_class: claim.node_class.clone(),
            is_unconfirmed: (is_ready || node.is_none()) && !claim.ends_soon(at),
            is_ready,
            is_new: node.is_none() && !claim.ends_soon(at) && is_within(NEW),
            runs_on: is_ready && unlisted.is_some_and(has_lasted),
        });
    }
    (absent, known)
}

/// Returns why a listing cannot be right, if most instances vanished at once although nothing in the cluster confirms it.
///
/// A small cluster has no three instances, so there all of them count, at least two. One of them must have a ready node: those
/// that never joined may have failed to start, for instance by a limit of their volumes. A single instance that vanishes is
/// normal: somebody terminated it, and its node stays ready for most of a minute. A doubt would only delay its replacement. So a
/// single one counts once its node has stayed ready for longer, by the condition `InstanceUnlisted` of its claim.
pub(super) fn doubt(gone: &[Absent], known: usize) -> Option<String> {
    let unconfirmed = || gone.iter().filter(|one| one.is_unconfirmed);
    let count = unconfirmed().count();
    let are_most = count >= DOUBTFUL && count * 2 > known;
    let are_all = count == known && (count >= 2 || unconfirmed().any(|one| one.runs_on));
    ((are_most || are_all) && unconfirmed().any(|one| one.is_ready)).then(|| {
        format!(
            "the cloud knows {count} of {known} instances neither by their tags nor by their ids, although nothing in the cluster \
             shows that they are gone; check the credentials, the account and the region of the controller. Until then it launches \
             nothing with this cloud, and terminates only instances that the cloud shows by their ids"
        )
    })
}
