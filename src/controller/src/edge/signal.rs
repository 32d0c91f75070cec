//! A shared value with change notifications, like tokio's `watch`. Several changes may be seen as one.
//!
//! Unlike tokio's `watch`, it wakes tasks in the order in which they began to wait. Tokio's order is random, so simulated runs
//! would differ.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

struct Shared<T> {
    state: Mutex<State<T>>,
    changed: Notify,
}

struct State<T> {
    value: T,
    version: u64,
    closed: bool,
}

impl<T> Shared<T> {
    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The end that changes the value. Receivers are notified when it is dropped.
pub struct Sender<T>(Arc<Shared<T>>);

/// An end that waits for changes.
pub struct Receiver<T> {
    shared: Arc<Shared<T>>,
    seen: u64,
}

/// The sender was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Closed;

/// Creates a sender with an initial value, which counts as seen.
pub fn sender<T>(value: T) -> Sender<T> {
    let state = State { value, version: 0, closed: false };
    Sender(Arc::new(Shared { state: Mutex::new(state), changed: Notify::new() }))
}

impl<T> Sender<T> {
    /// Creates a receiver for which the current value counts as seen.
    pub fn subscribe(&self) -> Receiver<T> {
        Receiver { shared: self.0.clone(), seen: self.0.lock().version }
    }

    /// Reads the value.
    pub fn view<R>(&self, look: impl FnOnce(&T) -> R) -> R {
        look(&self.0.lock().value)
    }

    /// Changes the value, and notifies all receivers if `change` returns true.
    pub fn change_if(&self, change: impl FnOnce(&mut T) -> bool) -> bool {
        let mut state = self.0.lock();
        let did = change(&mut state.value);
        state.version += u64::from(did);
        drop(state);
        if did {
            self.0.changed.notify_waiters();
        }
        did
    }

    /// Replaces the value, notifies all receivers, and returns the old value.
    pub fn replace(&self, value: T) -> T {
        let mut old = value;
        self.change_if(|kept| {
            std::mem::swap(kept, &mut old);
            true
        });
        old
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        self.0.lock().closed = true;
        self.0.changed.notify_waiters();
    }
}

impl<T> Clone for Receiver<T> {
    fn clone(&self) -> Self {
        Self { shared: self.shared.clone(), seen: self.seen }
    }
}

impl<T> Receiver<T> {
    /// Reads the value.
    pub fn view<R>(&self, look: impl FnOnce(&T) -> R) -> R {
        look(&self.shared.lock().value)
    }

    /// Marks the current value as seen.
    pub fn mark_seen(&mut self) {
        self.seen = self.shared.lock().version;
    }

    /// Waits until the value has changed since it was last seen, and marks it as seen. Cancel-safe.
    pub async fn changed(&mut self) -> Result<(), Closed> {
        loop {
            // Before the check, so that no change is missed.
            let changed = self.shared.changed.notified();
            {
                let state = self.shared.lock();
                if state.version != self.seen {
                    self.seen = state.version;
                    return Ok(());
                }
                if state.closed {
                    return Err(Closed);
                }
            }
            changed.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn changes_are_seen_once_and_many_as_one() {
        let sender = sender(0);
        let mut receiver = sender.subscribe();
        for _ in 0..3 {
            sender.change_if(|count| {
                *count += 1;
                true
            });
        }
        assert_eq!(receiver.changed().await, Ok(()));
        assert_eq!(receiver.view(|count| *count), 3);
        sender.change_if(|_| false);
        let nothing = std::future::poll_fn(|context| {
            std::task::Poll::Ready(std::pin::pin!(receiver.changed()).poll(context).is_pending())
        });
        assert!(nothing.await, "what was not changed is not told");
        drop(sender);
        assert_eq!(receiver.changed().await, Err(Closed));
    }

    #[tokio::test]
    async fn those_who_wait_are_woken_in_the_order_in_which_they_began() {
        let sender = sender(());
        let order = Arc::new(Mutex::new(Vec::new()));
        let tasks: Vec<_> = (0..20)
            .map(|who| {
                let (mut receiver, order) = (sender.subscribe(), order.clone());
                tokio::spawn(async move {
                    receiver.changed().await.unwrap();
                    order.lock().unwrap().push(who);
                })
            })
            .collect();
        tokio::task::yield_now().await;
        sender.replace(());
        for task in tasks {
            task.await.unwrap();
        }
        assert_eq!(*order.lock().unwrap(), (0..20).collect::<Vec<_>>());
    }
}
