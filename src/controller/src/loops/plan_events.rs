//! Events and conditions of a plan: events on pods and claims, conditions of pools.

use std::sync::Arc;
use std::time::Duration;

use poolwright_core::plan::{Plan, PlanOptions};
use poolwright_core::why::events::{add_launch_problems, of_plan};
use poolwright_core::{Action, Event, PodKey, Snapshot, Subject, why};
use tracing::error;

use super::compute::Compute;
use crate::edge::events::{NOTE_BYTES, QueuedEvent};
use crate::executor::Executor;
use crate::executor::context::Context;

/// Records the events and conditions of plans.
pub struct PlanEvents {
    /// The shared context.
    pub context: Context,
    /// The executor.
    pub executor: Arc<Executor>,
    /// Computes explanations.
    pub compute: Compute,
}

impl PlanEvents {
    /// Records the events and conditions of a plan.
    pub async fn record(&self, plan: Plan, snapshot: Snapshot, options: &PlanOptions) {
        let mut actions = of_plan(&plan);
        add_launch_problems(&mut actions, &snapshot, &self.context.world.launch_problems());
        let (on_pods, others): (Vec<Action>, Vec<Action>) = actions.into_iter().partition(|action| {
            matches!(action, Action::RecordEvent(Event { subject: Subject::Pod(_), .. }))
        });
        self.executor.submit(others, &snapshot);
        self.tell_stories(on_pods, plan, snapshot, options).await;
    }

    /// Adds explanations to events on pods, computed only for new events.
    async fn tell_stories(
        &self,
        on_pods: Vec<Action>,
        plan: Plan,
        snapshot: Snapshot,
        options: &PlanOptions,
    ) {
        let on_pod = |action| match action {
            Action::RecordEvent(event) => match event.subject.clone() {
                Subject::Pod(key) => Some((PodKey::Existing(key), self.executor.to_queue(event)?)),
                _ => None,
            },
            _ => None,
        };
        let (keys, mut events): (Vec<PodKey>, Vec<QueuedEvent>) =
            on_pods.into_iter().filter_map(on_pod).unzip();
        let news = self.context.events.news(&events);
        let told = |at: &usize| (keys[*at].clone(), events[*at].message.clone());
        let (keys, sentences): (Vec<PodKey>, Vec<String>) = news.iter().map(told).unzip();
        if !keys.is_empty() {
            let (options, now) = (options.clone(), self.context.clock.now());
            let told = self.compute.run(Duration::MAX, move |_| {
                let told = why::pods(&snapshot, now, &options, &plan, &keys.iter().collect::<Vec<_>>());
                let note = |((key, sentence), lines): ((&PodKey, &String), Option<Vec<String>>)| {
                    Some(why::event_note(key, sentence, &lines?, NOTE_BYTES))
                };
                keys.iter().zip(&sentences).zip(told).map(note).collect::<Vec<_>>()
            });
            if let Some(stories) = told.await {
                for (at, story) in news.into_iter().zip(stories) {
                    events[at].story = story;
                }
            } else {
                // The messages are correct without explanations.
                error!("explaining pods panicked; this is a bug");
            }
        }
        for event in events {
            self.context.events.record(event);
        }
    }
}
