//! Launches of a batch in one CreateFleet call.
//!
//! An order cannot assign its instances to claims. Its instances therefore carry the keys of all claims of the batch, and each
//! instance gets the tags of its claim before the launch of that claim returns. After a crash the same order has the same token,
//! and its instances are found by the keys and assigned then.

mod join;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures::StreamExt;
use poolwright_catalog::Catalogue;
use poolwright_provider_contract::{
    FailedOffering, InstanceState, LaunchBatch, LaunchError, LaunchRequest, LaunchedInstance, ProviderError,
};

use super::fleet::{self, Launched};
use super::order::{self, Order, Step};
use super::{
    MAX_ATTEMPTS, MAX_POLLS, POLL_INTERVAL, TemplateSet, check_offerings, existing, recover, subnets_by_zone,
};
use crate::instances::{self, OwnInstance};
use crate::provider::AwsProvider;
use crate::resolve::ResolvedNodeClass;
use join::Answer;
pub(crate) use join::BatchJoiner;

/// The number of concurrent CreateTags calls. EC2 allows about ten per second.
const CONCURRENT_TAG_CALLS: usize = 8;

/// The launches of one batch and their results.
struct BatchLaunch {
    /// The key of the batch in tokens.
    key: String,
    /// The requests without a result, by key.
    left: BTreeMap<String, LaunchRequest>,
    answers: BTreeMap<String, Answer>,
}

/// The node class and the templates of an order.
struct BatchContext {
    class: Arc<ResolvedNodeClass>,
    templates: TemplateSet,
}

impl AwsProvider {
    /// Launches all requests, or finds the instances that were launched for them before. It returns the result of each key.
    pub(super) async fn launch_batch(
        &self,
        batch: &LaunchBatch,
        requests: Vec<LaunchRequest>,
    ) -> BTreeMap<String, Answer> {
        let mut launch = BatchLaunch {
            key: order::batch_key(self.cluster(), &batch.id),
            left: requests.into_iter().map(|request| (request.key.clone(), request)).collect(),
            answers: BTreeMap::new(),
        };
        let failed = self.order(&mut launch).await;
        for key in std::mem::take(&mut launch.left).into_keys() {
            let answer = match &failed {
                Ok(failed) => Err(LaunchError::AllFailed(failed.clone())),
                Err(error) => Err(error.clone()),
            };
            launch.answers.insert(key, answer);
        }
        launch.answers
    }

    /// Orders instances for the remaining requests, step by step. It returns the offerings that failed.
    async fn order(&self, launch: &mut BatchLaunch) -> Result<Vec<FailedOffering>, LaunchError> {
        self.assign_existing(launch).await?;
        let Some(first) = launch.left.values().next().cloned() else { return Ok(Vec::new()) };
        let class = self.resolved(&first.node_class.name).await?;
        let sold: Arc<Catalogue> = self.class_catalogue(&class).await?;
        check_offerings(&class, &sold, &first.offerings)?;
        let (steps, mut failed) =
            order::steps(&first.offerings, first.together, |offering| self.lots(&class, offering));
        for (number, step) in steps.into_iter().enumerate() {
            let templates = self.step_templates(&class, &sold, &first, &step).await?;
            let context = BatchContext { class: Arc::clone(&class), templates };
            self.order_step(launch, &context, number, &step, &mut failed).await?;
            if launch.left.is_empty() {
                break;
            }
        }
        self.delete_unused_templates();
        Ok(failed)
    }

    async fn order_step(
        &self,
        launch: &mut BatchLaunch,
        context: &BatchContext,
        number: usize,
        step: &Step<'_>,
        failed: &mut Vec<FailedOffering>,
    ) -> Result<(), LaunchError> {
        for _ in 0..MAX_ATTEMPTS {
            let order = self.order_for(launch, context, number, step);
            self.ensure(&order, &context.templates).await?;
            match fleet::create(&self.clients().ec2, &order).await? {
                fleet::Answer::Launched { instances, failed: of_round, refused } => {
                    // This order has its answer. The remaining requests need another token.
                    self.count_empty_answer(&launch.key, number);
                    let says_why = !of_round.is_empty();
                    failed.extend(of_round);
                    self.assign_launched(launch, &instances, failed).await;
                    return match refused {
                        _ if launch.left.is_empty() => Ok(()),
                        Some(error) => Err(error.into()),
                        None if says_why => Ok(()),
                        None => Err(ProviderError::Transient(format!(
                            "ec2:CreateFleet launched {} of {} instances and gave no reason",
                            instances.len(),
                            order.count
                        ))
                        .into()),
                    };
                }
                fleet::Answer::TokenUsed => {
                    // Another order used the token, for other claims of the batch. Its instances for these claims will show.
                    self.assign_eventually(launch, &order.token).await?;
                    if launch.left.is_empty() {
                        return Ok(());
                    }
                    self.count_empty_answer(&launch.key, number);
                }
                fleet::Answer::TemplateGone => self.forget_templates(),
            }
        }
        let message = "each attempt of the batch failed, because another order used its token: trying again";
        Err(ProviderError::Transient(message.to_owned()).into())
    }

    /// Assigns the instances of the order with this token, until no request is left or the order has no more instances.
    async fn assign_eventually(&self, launch: &mut BatchLaunch, token: &str) -> Result<(), ProviderError> {
        for look in 0..MAX_POLLS {
            // Ask this first, so that the listing below contains all instances of the order.
            let shows_all = self.lists_all_of(token).await?;
            self.assign_existing(launch).await?;
            if shows_all || launch.left.is_empty() {
                return Ok(());
            }
            tokio::time::sleep(POLL_INTERVAL * 2_u32.saturating_pow(look.min(4))).await;
        }
        Err(recover::outcome_unknown(token))
    }

    fn order_for(
        &self,
        launch: &BatchLaunch,
        context: &BatchContext,
        number: usize,
        step: &Step<'_>,
    ) -> Order {
        let requests: Vec<&LaunchRequest> = launch.left.values().collect();
        let capacity_type = step.offerings[0].offering.capacity_type;
        let token = order::token(&launch.key, number, self.empty_answers(&launch.key, number));
        let of_class = &context.class.spec.tags;
        let tags = order::tags_of_batch(self.settings(), of_class, &token, &requests, capacity_type);
        Order {
            token,
            capacity_type,
            block: step.is_block(),
            count: requests.len(),
            pools: order::pools(step.offerings, &subnets_by_zone(&context.class), &context.templates.names),
            tags,
        }
    }

    /// Assigns launched instances to the remaining requests in the order of ids and keys, so that the same answer is always
    /// assigned in the same way.
    async fn assign_launched(
        &self,
        launch: &mut BatchLaunch,
        launched: &[Launched],
        failed: &[FailedOffering],
    ) {
        let keys: BTreeSet<String> = launch.left.keys().cloned().collect();
        let mut given = Vec::new();
        for one in launched.iter().filter(|one| !self.belongs_to_another(&one.id, &keys)) {
            let Some((_, request)) = launch.left.pop_first() else { break };
            let found = self.launched(&request, one, Some(keys.clone()));
            given.push((request, found));
        }
        self.tag_with_claims(launch, given, failed).await;
    }

    /// Assigns existing instances to the remaining requests: their own, and unassigned instances of orders for them.
    async fn assign_existing(&self, launch: &mut BatchLaunch) -> Result<(), ProviderError> {
        let mut given = Vec::new();
        // List before taking the lock, so that concurrent callers share a listing. Assignments since then are known locally.
        let listed = self.list_instances().await?;
        let turn = self.assignment().await;
        let mut all = self.with_recent(&listed);
        all.retain(|found| match launch.left.remove(&found.instance.key) {
            Some(request) => {
                given.push((request, found.clone()));
                false
            }
            None => found.is_unassigned() && found.instance.state == InstanceState::Running,
        });
        for found in all {
            let for_whom = found.open.iter().flatten().find(|key| launch.left.contains_key(*key));
            let Some(request) = for_whom.and_then(|key| launch.left.remove(key)) else { continue };
            let found = found.assigned_to(&request);
            self.remember(&found);
            given.push((request, found));
        }
        drop(turn);
        self.tag_with_claims(launch, given, &[]).await;
        Ok(())
    }

    /// Adds the tags of the claim to each instance that lacks them. Only then the launch of the claim returns.
    async fn tag_with_claims(
        &self,
        launch: &mut BatchLaunch,
        given: Vec<(LaunchRequest, OwnInstance)>,
        failed: &[FailedOffering],
    ) {
        let tagged = futures::stream::iter(given).map(|(request, found)| async move {
            let answer = match self.ensure_claim_tags(&request, found).await {
                Ok(found) => {
                    existing(found).map(|launched| LaunchedInstance { failed: failed.to_vec(), ..launched })
                }
                Err(error) => Err(error.into()),
            };
            (request.key, answer)
        });
        let answers: Vec<_> = tagged.buffer_unordered(CONCURRENT_TAG_CALLS).collect().await;
        launch.answers.extend(answers);
    }

    /// Returns the instance with the tags of its claim, which an instance of a batch may lack.
    pub(super) async fn ensure_claim_tags(
        &self,
        request: &LaunchRequest,
        found: OwnInstance,
    ) -> Result<OwnInstance, ProviderError> {
        if found.open.is_none() {
            return Ok(found);
        }
        let tags = order::own_tags(request);
        for look in 0..MAX_POLLS {
            if instances::tag(&self.clients().ec2, &found.id, &tags).await? {
                self.note_tagged(&request.key);
                return Ok(OwnInstance { open: None, ..found });
            }
            // EC2 does not know the new instance yet.
            tokio::time::sleep(POLL_INTERVAL * 2_u32.saturating_pow(look.min(4))).await;
        }
        let message =
            format!("ec2:CreateTags does not find instance {}, which was launched a moment ago", found.id);
        Err(ProviderError::Transient(message))
    }
}
