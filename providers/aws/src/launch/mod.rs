//! The launch of one instance.
//!
//! | crash | why it does no harm |
//! |---|---|
//! | before the CreateFleet call | nothing was ordered |
//! | during the call, or before its answer arrives | the provider sends the same order with the same token, and EC2 answers with the same instance; if the order has changed meanwhile (a changed node class, or another bootstrap token), EC2 reports that the token was used, and the provider finds the instance by its tags; it orders nothing else until EC2 shows all instances of the first order (`recover`) |
//! | after the call | the same, or the provider finds the instance by its tags before it orders anything |
//!
//! The launches of a batch use one call; see `batch`.

mod batch;
mod fleet;
pub(crate) mod order;
mod recover;
pub(crate) mod template;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use poolwright_catalog::{Catalogue, InstanceTypeName, RankedOffering, Zone};
use poolwright_provider_contract::{
    FailedOffering, Instance, InstanceState, LaunchError, LaunchRequest, LaunchedInstance, ProviderError,
};

use crate::instances::OwnInstance;
use crate::provider::AwsProvider;
use crate::resolve::{ResolvedNodeClass, unusable};
pub(crate) use batch::BatchJoiner;
use fleet::Answer;
pub(crate) use fleet::Launched;
use order::{Order, Step};
use template::{TargetReservation, Template};

/// How often, and with which first pause, the provider polls for an instance that EC2 does not show yet.
const MAX_POLLS: u32 = 8;
const POLL_INTERVAL: Duration = Duration::from_millis(250);
/// How often the provider repeats an order whose launch template was deleted, or whose token was used.
const MAX_ATTEMPTS: u32 = 2;

/// The launch templates for the instance types of a request.
struct TemplateSet {
    /// Template names by instance type.
    names: BTreeMap<InstanceTypeName, String>,
    /// Templates by name.
    templates: BTreeMap<String, Template>,
}

impl AwsProvider {
    /// Launches an instance, or returns the one that was launched with this key before.
    pub(crate) async fn launch_instance(
        &self,
        request: &LaunchRequest,
    ) -> Result<LaunchedInstance, LaunchError> {
        crate::resolve::check_kind(&request.node_class)?;
        if request.offerings.is_empty() {
            let message =
                format!("the launch for claim `{}` names no offering: name at least one", request.claim);
            return Err(ProviderError::Invalid(message).into());
        }
        if let Some(found) = self.find(&request.key).await? {
            return existing(self.ensure_claim_tags(request, found).await?);
        }
        if let Some(batch) = &request.batch {
            return self
                .batch_joiner()
                .launch(request, batch, |requests| self.launch_batch(batch, requests))
                .await;
        }
        let class = self.resolved(&request.node_class.name).await?;
        let sold = self.class_catalogue(&class).await?;
        check_offerings(&class, &sold, &request.offerings)?;
        let (steps, mut failed) =
            order::steps(&request.offerings, request.together, |offering| self.lots(&class, offering));
        for (number, step) in steps.into_iter().enumerate() {
            let templates = self.step_templates(&class, &sold, request, &step).await?;
            let (instance, of_round) = self.launch_step(request, &class, &templates, number, &step).await?;
            failed.extend(of_round);
            if let Some(instance) = instance {
                self.delete_unused_templates();
                return Ok(LaunchedInstance { instance, failed });
            }
        }
        Err(LaunchError::AllFailed(failed))
    }

    /// Orders one step. It returns the instance, if there is one, and the offerings that failed.
    async fn launch_step(
        &self,
        request: &LaunchRequest,
        class: &ResolvedNodeClass,
        templates: &TemplateSet,
        number: usize,
        step: &Step<'_>,
    ) -> Result<(Option<Instance>, Vec<FailedOffering>), LaunchError> {
        let capacity_type = step.offerings[0].offering.capacity_type;
        let tags = order::tags_of_one(self.settings(), &class.spec.tags, request, capacity_type);
        let mut order = Order {
            token: order::token(&request.key, number, self.empty_answers(&request.key, number)),
            capacity_type,
            block: step.is_block(),
            count: 1,
            pools: order::pools(step.offerings, &subnets_by_zone(class), &templates.names),
            tags,
        };
        for _ in 0..MAX_ATTEMPTS {
            self.ensure(&order, templates).await?;
            match fleet::create(&self.clients().ec2, &order).await? {
                Answer::Launched { instances, failed, refused } => {
                    if let Some(first) = instances.first() {
                        return Ok((Some(self.launched(request, first, None).instance), failed));
                    }
                    // EC2 would repeat the empty answer for the same token.
                    self.count_empty_answer(&request.key, number);
                    return match (failed.is_empty(), refused) {
                        (_, Some(error)) => Err(error.into()),
                        (false, None) => Ok((None, failed)),
                        (true, None) => Err(ProviderError::Transient(
                            "ec2:CreateFleet launched nothing and gave no reason".to_owned(),
                        )
                        .into()),
                    };
                }
                Answer::TokenUsed => {
                    if let Some(found) = self.find_eventually(&request.key, &order.token).await? {
                        return existing(found).map(|launched| (Some(launched.instance), Vec::new()));
                    }
                    self.count_empty_answer(&request.key, number);
                    order.token =
                        order::token(&request.key, number, self.empty_answers(&request.key, number));
                }
                Answer::TemplateGone => self.forget_templates(),
            }
        }
        let message = "each attempt of the launch failed, because its launch template was deleted or its token was used: trying again";
        Err(ProviderError::Transient(message.to_owned()).into())
    }

    /// Makes the templates for the instance types of a step.
    async fn step_templates(
        &self,
        class: &ResolvedNodeClass,
        sold: &Catalogue,
        request: &LaunchRequest,
        step: &Step<'_>,
    ) -> Result<TemplateSet, ProviderError> {
        let mut templates = TemplateSet { names: BTreeMap::new(), templates: BTreeMap::new() };
        // The user data may change over time. Use the same for the whole order.
        let user_data = self.user_data(class, request).await?;
        let held =
            step.lot.as_ref().map(|lot| TargetReservation { id: lot.id.clone(), block: step.is_block() });
        for ranked in step.offerings {
            let name = &ranked.offering.instance_type;
            let Some(kind) = sold.instance_type(name) else { continue };
            if templates.names.contains_key(name) {
                continue;
            }
            let template = self.template(class, kind, &user_data, held.clone())?;
            let template_name = template.name(self.cluster())?;
            templates.names.insert(name.clone(), template_name.clone());
            templates.templates.insert(template_name, template);
        }
        Ok(templates)
    }

    async fn ensure(&self, order: &Order, templates: &TemplateSet) -> Result<(), ProviderError> {
        let names: BTreeSet<&String> = order.pools.iter().map(|pool| &pool.template).collect();
        for name in names {
            if let Some(template) = templates.templates.get(name) {
                self.ensure_template(name, template).await?;
            }
        }
        Ok(())
    }

    /// Waits for the instance of this key that an order with this token may have launched. It returns `None` if the order
    /// launched none.
    async fn find_eventually(&self, key: &str, token: &str) -> Result<Option<OwnInstance>, ProviderError> {
        for look in 0..MAX_POLLS {
            // Ask this first, so that the listing below contains all instances of the order.
            let shows_all = self.lists_all_of(token).await?;
            let found = self.find(key).await?;
            if shows_all || found.is_some() {
                return Ok(found);
            }
            tokio::time::sleep(POLL_INTERVAL * 2_u32.saturating_pow(look.min(4))).await;
        }
        Err(recover::outcome_unknown(token))
    }
}

/// Returns the instance that was launched with the key before, unless it is terminating.
fn existing(found: OwnInstance) -> Result<LaunchedInstance, LaunchError> {
    let Instance { provider_id, key, state, .. } = &found.instance;
    if *state == InstanceState::Terminating {
        let message = format!(
            "instance {provider_id} was launched with key {key} and is terminating: launch with a new key, from a new claim"
        );
        return Err(ProviderError::Invalid(message).into());
    }
    Ok(LaunchedInstance { instance: found.instance, failed: Vec::new() })
}

fn check_offerings(
    class: &ResolvedNodeClass,
    sold: &Catalogue,
    offerings: &[RankedOffering],
) -> Result<(), ProviderError> {
    match offerings.iter().find(|ranked| sold.offering(&ranked.offering).is_none()) {
        None => Ok(()),
        Some(ranked) => Err(unusable(
            &class.name,
            "subnetSelectorTerms",
            format!(
                "this class cannot launch {}: the type is not sold in a zone of its subnets, no image fits the type, or the kubelet \
                 reserves all resources. Correct the class, or wait for a new plan",
                ranked.offering
            ),
        )),
    }
}

/// Returns the subnets of each zone, with the most free addresses first.
fn subnets_by_zone(class: &ResolvedNodeClass) -> BTreeMap<Zone, Vec<String>> {
    let mut subnets: Vec<_> = class.subnets.iter().collect();
    subnets.sort_by(|a, b| b.available_addresses.cmp(&a.available_addresses).then_with(|| a.id.cmp(&b.id)));
    let mut zones: BTreeMap<Zone, Vec<String>> = BTreeMap::new();
    for subnet in subnets {
        zones.entry(Zone::from(subnet.zone.as_str())).or_default().push(subnet.id.clone());
    }
    zones
}
