//! Everything that AWS says of instances, by whichever way it comes: the queue, and looks at what EC2 shows.
//!
//! A question to SQS is answered to whoever asked it, even if he does not wait any more, and the messages in the answer are then
//! hidden from everybody for a while. So what was asked once is waited for by the next caller.

use std::sync::Arc;
use std::time::Duration;

use poolwright_provider_contract::{ClassCondition, Clock, Notice, ProviderError};
use tokio::sync::Mutex;
use tokio::task::JoinSet;

use crate::clients::Clients;
use crate::provider::Settings;
use crate::queue::{self, Heard, Queue};
use crate::reception::Reception;
use crate::watch::Watch;

/// How often EC2 is looked at unless something else is said: a warning is two minutes long.
const LOOK_EVERY: Duration = Duration::from_mins(1);

/// While the queue has more messages than an answer holds, it is asked so many times at once: a zone that is taken back is a burst, and
/// each of its warnings has two minutes.
const AT_A_TIME: usize = 8;

/// The queue and the looks, and what is on its way from either.
pub(crate) struct Hearing {
    clients: Clients,
    cluster: String,
    now: Clock,
    queue: Option<(Arc<Queue>, Arc<Reception>)>,
    watch: Arc<Watch>,
    asked: Mutex<Asked>,
    looking: Mutex<JoinSet<Vec<Notice>>>,
}

/// Questions to the queue whose answers are awaited.
#[derive(Default)]
struct Asked {
    questions: JoinSet<Result<Heard, ProviderError>>,
    /// Whether the last answer had as many messages as one may have, so that there are more.
    more: bool,
}

impl Hearing {
    pub fn new(clients: &Clients, settings: &Settings, now: Clock) -> Self {
        Self {
            clients: clients.clone(),
            cluster: settings.cluster.clone(),
            queue: settings
                .queue
                .as_ref()
                .map(|name| (Arc::new(Queue::new(name.clone())), Arc::new(Reception::new(name.clone())))),
            watch: Arc::new(Watch::new(
                clients.ec2.clone(),
                settings.cluster.clone(),
                Arc::clone(&now),
                LOOK_EVERY,
            )),
            now,
            asked: Mutex::default(),
            looking: Mutex::default(),
        }
    }

    pub fn look_every(&mut self, pause: Duration) {
        self.watch = Arc::new(self.watch.every(pause));
    }

    /// What there is to hear next.
    pub async fn notices(&self) -> Result<Vec<Notice>, ProviderError> {
        tokio::select! {
            biased;
            seen = self.seen() => Ok(seen),
            heard = self.heard() => heard,
        }
    }

    async fn seen(&self) -> Vec<Notice> {
        let mut looking = self.looking.lock().await;
        loop {
            if looking.is_empty() {
                let watch = Arc::clone(&self.watch);
                looking.spawn(async move { watch.next().await });
            }
            match looking.join_next().await {
                Some(Ok(seen)) if !seen.is_empty() => return seen,
                Some(Err(error)) => tracing::error!(%error, "a look at the instances ended early"),
                _ => {}
            }
        }
    }

    async fn heard(&self) -> Result<Vec<Notice>, ProviderError> {
        let Some((queue, reception)) = &self.queue else { return std::future::pending().await };
        let mut asked = self.asked.lock().await;
        let (wanted, wait) = if asked.more { (AT_A_TIME, queue::SHORT) } else { (1, queue::LONG) };
        while asked.questions.len() < wanted {
            let (queue, clients, cluster) = (Arc::clone(queue), self.clients.clone(), self.cluster.clone());
            let (reception, now) = (Arc::clone(reception), Arc::clone(&self.now));
            asked.questions.spawn(async move {
                let came = queue.receive(&clients, &cluster, wait).await;
                reception.asked(&came, now());
                came
            });
        }
        match asked.questions.join_next().await {
            Some(Ok(Ok(heard))) => {
                asked.more = heard.is_full;
                Ok(heard.notices)
            }
            Some(Ok(Err(error))) => {
                asked.more = false;
                Err(error)
            }
            Some(Err(error)) => {
                Err(ProviderError::Transient(format!("sqs:ReceiveMessage ended early: {error}")))
            }
            None => Ok(Vec::new()),
        }
    }

    /// Looks that failed since this was asked last. They go this way and not with what is heard, for whoever hears of an error waits
    /// before he asks again, and the queue would wait with him.
    pub fn failures(&self) -> Vec<ProviderError> {
        self.watch.failures()
    }

    /// Messages that could not be read or believed since this was asked last.
    pub fn unreadable(&self) -> u64 {
        self.queue.as_ref().map_or(0, |(queue, _)| queue.unreadable())
    }

    /// Whether the queue is heard, if there is to be one.
    pub fn condition(&self) -> Option<ClassCondition> {
        self.queue.as_ref().map(|(_, reception)| reception.condition((self.now)()))
    }

    pub async fn acknowledge(&self, receipts: &[String]) -> Result<(), ProviderError> {
        let (seen, heard): (Vec<String>, Vec<String>) =
            receipts.iter().cloned().partition(|receipt| Watch::is_receipt(receipt));
        self.watch.recorded(seen);
        match &self.queue {
            Some((queue, reception)) if !heard.is_empty() => {
                let came = queue.delete(&self.clients, &heard).await;
                reception.deleted(&came);
                came
            }
            _ => Ok(()),
        }
    }
}
