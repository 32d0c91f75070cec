//! Joining the launches of a batch: concurrent launches wait for each other, and one of them launches for all.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use poolwright_provider_contract::{
    LaunchBatch, LaunchError, LaunchRequest, LaunchedInstance, ProviderError,
};
use poolwright_terms::keys::NODECLAIM_LABEL;
use tokio::sync::{Notify, oneshot};

/// The result of a launch.
pub(crate) type Answer = Result<LaunchedInstance, LaunchError>;

/// How long the first launch of a batch waits for the others. The controller sends them at the same time, and some may never
/// come.
const JOIN_TIMEOUT: Duration = Duration::from_secs(2);

/// The batches that wait for more launches.
#[derive(Debug, Default)]
pub(crate) struct BatchJoiner(Arc<Mutex<Vec<PendingBatch>>>);

#[derive(Debug)]
struct PendingBatch {
    batch: LaunchBatch,
    /// One request for each key. The first belongs to the leader.
    requests: Vec<LaunchRequest>,
    waiting: Vec<(String, oneshot::Sender<Answer>)>,
    full: Arc<Notify>,
}

/// The leader of a batch. If it is dropped, the batch is closed, and the followers get a transient error.
struct BatchLeader {
    groups: Arc<Mutex<Vec<PendingBatch>>>,
    full: Arc<Notify>,
}

enum Role {
    Leader(BatchLeader),
    Follower(oneshot::Receiver<Answer>),
}

impl BatchJoiner {
    /// Launches together with the other launches of the batch. One caller runs `launch` for all requests, and it returns the
    /// result of each key.
    pub async fn launch<F, R>(&self, request: &LaunchRequest, batch: &LaunchBatch, launch: F) -> Answer
    where
        F: FnOnce(Vec<LaunchRequest>) -> R,
        R: Future<Output = BTreeMap<String, Answer>>,
    {
        let leader = match self.join(request, batch) {
            Role::Follower(answer) => return answer.await.unwrap_or_else(|_| Err(no_answer())),
            Role::Leader(leader) => leader,
        };
        tokio::select! {
            () = leader.full.notified() => {}
            () = tokio::time::sleep(JOIN_TIMEOUT) => {}
        }
        let Some(group) = leader.close() else { return Err(no_answer()) };
        let answers = launch(group.requests).await;
        let of = |key: &str| answers.get(key).cloned().unwrap_or_else(|| Err(no_answer()));
        for (key, waiting) in group.waiting {
            // A caller that has given up will retry.
            let _ = waiting.send(of(&key));
        }
        of(&request.key)
    }

    fn join(&self, request: &LaunchRequest, batch: &LaunchBatch) -> Role {
        let mut groups = lock(&self.0);
        let theirs = groups
            .iter_mut()
            .find(|group| group.batch == *batch && can_share_order(&group.requests[0], request));
        let Some(group) = theirs else {
            let full = Arc::new(Notify::new());
            groups.push(PendingBatch {
                batch: batch.clone(),
                requests: vec![request.clone()],
                waiting: Vec::new(),
                full: Arc::clone(&full),
            });
            return Role::Leader(BatchLeader { groups: Arc::clone(&self.0), full });
        };
        if !group.requests.iter().any(|one| one.key == request.key) {
            group.requests.push(request.clone());
        }
        let (sender, receiver) = oneshot::channel();
        group.waiting.push((request.key.clone(), sender));
        if group.requests.len() >= batch.size {
            group.full.notify_one();
        }
        Role::Follower(receiver)
    }
}

impl BatchLeader {
    /// Closes the batch, so that no further launch can join.
    fn close(&self) -> Option<PendingBatch> {
        let mut groups = lock(&self.groups);
        let at = groups.iter().position(|group| Arc::ptr_eq(&group.full, &self.full))?;
        Some(groups.swap_remove(at))
    }
}

impl Drop for BatchLeader {
    fn drop(&mut self) {
        self.close();
    }
}

fn lock(groups: &Mutex<Vec<PendingBatch>>) -> MutexGuard<'_, Vec<PendingBatch>> {
    groups.lock().unwrap_or_else(PoisonError::into_inner)
}

fn no_answer() -> LaunchError {
    ProviderError::Transient("the joint launch of this batch ended without a result: trying again".to_owned())
        .into()
}

/// Returns whether one order fits both requests. Claims of one batch may differ if somebody has edited them.
fn can_share_order(one: &LaunchRequest, other: &LaunchRequest) -> bool {
    let labels = |request: &LaunchRequest| {
        let mut labels = request.labels.clone();
        labels.remove(NODECLAIM_LABEL);
        labels
    };
    one.node_class == other.node_class
        && one.offerings == other.offerings
        && one.taints == other.taints
        && one.annotations == other.annotations
        && labels(one) == labels(other)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures::future::join_all;
    use poolwright_terms::NodeClassRef;

    use super::*;

    fn request(key: &str) -> LaunchRequest {
        LaunchRequest {
            key: key.to_owned(),
            claim: key.to_owned(),
            node_class: NodeClassRef { group: String::new(), kind: String::new(), name: String::new() },
            offerings: Vec::new(),
            labels: [(NODECLAIM_LABEL.to_owned(), key.to_owned())].into(),
            annotations: BTreeMap::new(),
            taints: Vec::new(),
            together: 0,
            batch: None,
        }
    }

    fn batch(size: usize) -> LaunchBatch {
        LaunchBatch { id: "a".to_owned(), size }
    }

    /// Fails each request with its own key, so that a test sees whose result it got.
    fn stock_outs(requests: &[LaunchRequest]) -> BTreeMap<String, Answer> {
        requests.iter().map(|one| (one.key.clone(), Err(LaunchError::StockOut(one.key.clone())))).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn a_batch_that_is_whole_is_bought_at_once_and_each_gets_its_own_answer() {
        let (batch_joiner, calls) = (BatchJoiner::default(), AtomicUsize::new(0));
        let begun = tokio::time::Instant::now();
        let requests: Vec<_> = ["a", "b", "c", "b"].map(request).into();
        let batch = batch(3);
        let answers = join_all(requests.iter().map(|one| {
            batch_joiner.launch(one, &batch, |requests| {
                calls.fetch_add(1, Ordering::Relaxed);
                std::future::ready(stock_outs(&requests))
            })
        }))
        .await;
        assert_eq!(calls.load(Ordering::Relaxed), 1);
        assert!(begun.elapsed() < JOIN_TIMEOUT, "nobody was waited for");
        for (one, answer) in requests.iter().zip(answers) {
            assert_eq!(answer, Err(LaunchError::StockOut(one.key.clone())));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_never_comes_is_waited_for_a_moment_only() {
        let batch_joiner = BatchJoiner::default();
        let (a, b) = (request("a"), request("b"));
        let launch = |requests: Vec<LaunchRequest>| async move {
            assert_eq!(requests.len(), 2);
            stock_outs(&requests)
        };
        let (size, other_size) = (batch(3), batch(3));
        let both = futures::join!(
            batch_joiner.launch(&a, &size, launch),
            batch_joiner.launch(&b, &other_size, launch)
        );
        assert_eq!(both.1, Err(LaunchError::StockOut("b".to_owned())));
        assert!(lock(&batch_joiner.0).is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_different_request_does_not_join_the_batch() {
        let batch_joiner = BatchJoiner::default();
        let (a, mut b) = (request("a"), request("b"));
        b.labels.insert("pool".to_owned(), "other".to_owned());
        let launch = |requests: Vec<LaunchRequest>| async move {
            assert_eq!(requests.len(), 1);
            stock_outs(&requests)
        };
        let size = batch(2);
        let _ =
            futures::join!(batch_joiner.launch(&a, &size, launch), batch_joiner.launch(&b, &size, launch));
    }

    #[tokio::test(start_paused = true)]
    async fn when_the_one_who_buys_gives_up_the_others_are_told_to_ask_again() {
        let batch_joiner = BatchJoiner::default();
        let (a, b) = (request("a"), request("b"));
        let never = |_| std::future::pending();
        let size = batch(2);
        let first = tokio::time::timeout(Duration::from_secs(30), batch_joiner.launch(&a, &size, never));
        let (gave_up, told) = futures::join!(first, batch_joiner.launch(&b, &size, never));
        assert!(gave_up.is_err());
        assert!(matches!(told, Err(LaunchError::Provider(ProviderError::Transient(_)))), "{told:?}");
        let early = tokio::time::timeout(Duration::from_secs(1), batch_joiner.launch(&a, &size, never));
        assert!(early.await.is_err());
        assert!(lock(&batch_joiner.0).is_empty(), "nobody waits for one who is gone");
    }
}
