//! Many launches in one call.
//!
//! One order cannot say which of its instances is for which claim. So its instances carry the keys of all of them from their first
//! moment, and each gets the tags of one claim before that claim hears of it. Cut off anywhere between, the order is known by its token,
//! which is that of the batch whoever sends it, and its instances are found by the keys and handed out then.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures::StreamExt;
use poolwright_catalog::Catalogue;
use poolwright_provider_contract::{
    FailedOffering, InstanceState, LaunchBatch, LaunchError, LaunchRequest, LaunchedInstance, ProviderError,
};

use super::fleet::{self, Launched};
use super::mates::Answer;
use super::order::{self, Order, Step};
use super::{Kit, LOOKS, PAUSE, REPEATS, before, by_zone, check_sold, known};
use crate::class::Resolved;
use crate::instances::{self, Found};
use crate::provider::AwsProvider;

/// Instances that are given their tags at a time: EC2 takes some ten such calls a second.
const TAGGED_AT_A_TIME: usize = 8;

/// Launches of one batch, and what came of them.
struct Together {
    /// What stands for the batch in tokens.
    key: String,
    /// Those that nothing has come of yet, by key.
    left: BTreeMap<String, LaunchRequest>,
    answers: BTreeMap<String, Answer>,
}

/// What is ordered with.
struct Means {
    class: Arc<Resolved>,
    kit: Kit,
}

impl AwsProvider {
    /// Launches all of them, or finds what was launched for them before. Says of each key what came of it.
    pub(super) async fn together(
        &self,
        batch: &LaunchBatch,
        requests: Vec<LaunchRequest>,
    ) -> BTreeMap<String, Answer> {
        let mut together = Together {
            key: order::batch_key(self.cluster(), &batch.id),
            left: requests.into_iter().map(|request| (request.key.clone(), request)).collect(),
            answers: BTreeMap::new(),
        };
        let failed = self.buy(&mut together).await;
        for key in std::mem::take(&mut together.left).into_keys() {
            let answer = match &failed {
                Ok(failed) => Err(LaunchError::AllFailed(failed.clone())),
                Err(error) => Err(error.clone()),
            };
            together.answers.insert(key, answer);
        }
        together.answers
    }

    /// Buys for all that are left, round after round. Answers with what could not be had.
    async fn buy(&self, together: &mut Together) -> Result<Vec<FailedOffering>, LaunchError> {
        self.hand_out_what_is_there(together).await?;
        let Some(first) = together.left.values().next().cloned() else { return Ok(Vec::new()) };
        let class = self.resolved(&first.node_class.name).await?;
        let sold: Arc<Catalogue> = self.sold(&class).await?;
        check_sold(&class, &sold, &first.offerings)?;
        let (steps, mut failed) = order::steps(&first.offerings, |offering| self.lots(&class, offering));
        for (number, step) in steps.into_iter().enumerate() {
            let kit = self.kit(&class, &sold, &first, &step).await?;
            let means = Means { class: Arc::clone(&class), kit };
            self.step_together(together, &means, number, &step, &mut failed).await?;
            if together.left.is_empty() {
                break;
            }
        }
        self.tidy();
        Ok(failed)
    }

    async fn step_together(
        &self,
        together: &mut Together,
        means: &Means,
        number: usize,
        step: &Step<'_>,
        failed: &mut Vec<FailedOffering>,
    ) -> Result<(), LaunchError> {
        for _ in 0..REPEATS {
            let order = self.order_for(together, means, number, step);
            self.ensure(&order, &means.kit).await?;
            match fleet::create(&self.clients().ec2, &order).await? {
                fleet::Answer::Launched { instances, failed: of_round, refused } => {
                    // The token stands for this order, which was answered: who is left now is in another.
                    self.answered_empty(&together.key, number);
                    let says_why = !of_round.is_empty();
                    failed.extend(of_round);
                    self.hand_out(together, &instances, failed).await;
                    return match refused {
                        _ if together.left.is_empty() => Ok(()),
                        Some(error) => Err(error.into()),
                        None if says_why => Ok(()),
                        None => Err(ProviderError::Transient(format!(
                            "ec2:CreateFleet launched {} of {} instances and did not say why",
                            instances.len(),
                            order.count
                        ))
                        .into()),
                    };
                }
                fleet::Answer::TokenUsed => {
                    // By an order for others of the batch, or for more or fewer: what it launched for these shows sooner or later.
                    self.hand_out_patiently(together, &order.token).await?;
                    if together.left.is_empty() {
                        return Ok(());
                    }
                    self.answered_empty(&together.key, number);
                }
                fleet::Answer::TemplateGone => self.forget_templates(),
            }
        }
        let message = "the launch was overtaken by others of its batch each time it was tried";
        Err(ProviderError::Transient(message.to_owned()).into())
    }

    /// Hands out what an order with this token launched, until nobody is left or nothing more came of it.
    async fn hand_out_patiently(&self, together: &mut Together, token: &str) -> Result<(), ProviderError> {
        for look in 0..LOOKS {
            // First: what shows by now is handed out after it.
            let shows_all = self.shows_all_of(token).await?;
            self.hand_out_what_is_there(together).await?;
            if shows_all || together.left.is_empty() {
                return Ok(());
            }
            tokio::time::sleep(PAUSE * 2_u32.saturating_pow(look.min(4))).await;
        }
        Err(before::unexplained(token))
    }

    fn order_for(&self, together: &Together, means: &Means, number: usize, step: &Step<'_>) -> Order {
        let requests: Vec<&LaunchRequest> = together.left.values().collect();
        let capacity_type = step.offerings[0].offering.capacity_type;
        let token = order::token(&together.key, number, self.empty_answers(&together.key, number));
        let mut tags = means.class.spec.tags.clone();
        tags.extend(order::shared_tags(self.cluster(), requests[0], capacity_type));
        tags.extend(order::order_tags(&token, &requests));
        Order {
            token,
            capacity_type,
            block: step.is_block(),
            count: requests.len(),
            pools: order::pools(step.offerings, &by_zone(&means.class), &means.kit.names),
            tags,
        }
    }

    /// Gives what an order launched to those who are left: by id and key, so that the same answer is handed out the same way.
    async fn hand_out(&self, together: &mut Together, launched: &[Launched], failed: &[FailedOffering]) {
        let keys: BTreeSet<String> = together.left.keys().cloned().collect();
        let mut given = Vec::new();
        for one in launched.iter().filter(|one| !self.is_anothers(&one.id, &keys)) {
            let Some((_, request)) = together.left.pop_first() else { break };
            let found = self.launched(&request, one, Some(keys.clone()));
            given.push((request, found));
        }
        self.say_whose(together, given, failed).await;
    }

    /// Hands out what is there for those who are left: instances of theirs, and of orders for them that nobody has taken.
    async fn hand_out_what_is_there(&self, together: &mut Together) -> Result<(), ProviderError> {
        let mut given = Vec::new();
        // Before the turn, so that all who look at the same time share a listing: what others take or give back after it is known here.
        let listed = self.listed().await?;
        let turn = self.handing_out().await;
        let mut all = self.with_recent(&listed);
        all.retain(|found| match together.left.remove(&found.instance.key) {
            Some(request) => {
                given.push((request, found.clone()));
                false
            }
            None => found.is_untaken() && found.instance.state == InstanceState::Running,
        });
        for found in all {
            let for_whom = found.open.iter().flatten().find(|key| together.left.contains_key(*key));
            let Some(request) = for_whom.and_then(|key| together.left.remove(key)) else { continue };
            let found = found.given_to(&request);
            self.remember(&found);
            given.push((request, found));
        }
        drop(turn);
        self.say_whose(together, given, &[]).await;
        Ok(())
    }

    /// Puts the tags of its claim on each instance that lacks them. Only then the claim hears of it.
    async fn say_whose(
        &self,
        together: &mut Together,
        given: Vec<(LaunchRequest, Found)>,
        failed: &[FailedOffering],
    ) {
        let tagged = futures::stream::iter(given).map(|(request, found)| async move {
            let answer = match self.settle(&request, found).await {
                Ok(found) => {
                    known(found).map(|launched| LaunchedInstance { failed: failed.to_vec(), ..launched })
                }
                Err(error) => Err(error.into()),
            };
            (request.key, answer)
        });
        let answers: Vec<_> = tagged.buffer_unordered(TAGGED_AT_A_TIME).collect().await;
        together.answers.extend(answers);
    }

    /// The instance with the tags of its claim, which it may lack if it was launched together with others.
    pub(super) async fn settle(&self, request: &LaunchRequest, found: Found) -> Result<Found, ProviderError> {
        if found.open.is_none() {
            return Ok(found);
        }
        let tags = order::own_tags(request);
        for look in 0..LOOKS {
            if instances::tag(&self.clients().ec2, &found.id, &tags).await? {
                self.tagged(&request.key);
                return Ok(Found { open: None, ..found });
            }
            // EC2 does not know yet what it launched a moment ago.
            tokio::time::sleep(PAUSE * 2_u32.saturating_pow(look.min(4))).await;
        }
        let message =
            format!("ec2:CreateTags does not find instance {}, which was launched a moment ago", found.id);
        Err(ProviderError::Transient(message))
    }
}
