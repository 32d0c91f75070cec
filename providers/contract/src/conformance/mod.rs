//! The conformance suite: the behaviour that Poolwright relies on, as cases that every provider must pass.
//!
//! The test of a provider implements [`Fixture`], which makes a separate world for each case, and [`World`], which lets a case
//! control that world. It calls [`run_all`], prints the [`Report`], and fails unless [`Report::passed`]. When you add a promise
//! to the trait, add a case here first.

mod interruptions;
mod invalid;
mod inventory;
mod launching;
mod node;
mod report;
mod setting;
mod terminating;

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use futures::future::LocalBoxFuture;
use futures::stream::{self, StreamExt};
use poolwright_catalog::{OfferingId, ResourceList};
use poolwright_terms::{NodeClassRef, Taint};

use crate::{CloudProvider, Instance};

pub use report::{CaseResult, Failure, Report};
use setting::Setting;

/// Makes the worlds in which the cases run.
#[async_trait(?Send)]
pub trait Fixture {
    /// Makes a world without instances and with one usable node class. `case` is the name of the case.
    async fn world(&self, case: &'static str) -> Result<Box<dyn World>, Failure>;
}

/// The world around a provider, with controls for the cases.
#[async_trait(?Send)]
pub trait World {
    /// Makes a new provider for this world, as after a restart of the controller. It has none of the memory of earlier providers,
    /// and the background work of earlier providers has stopped.
    async fn provider(&self) -> Result<Arc<dyn CloudProvider>, Failure>;

    /// Returns the node class to launch with. It sells at least two offerings with known prices.
    fn node_class(&self) -> NodeClassRef;

    /// Returns a prefix for keys and names that no other world uses: a letter, followed by lower-case letters, digits and dashes.
    fn prefix(&self) -> String;

    /// Sets the offerings that are out of stock. The other offerings are in stock.
    async fn set_stock_outs(&self, offerings: &[OfferingId]) -> Result<(), Failure>;

    /// Returns the cluster's view of the node of an instance.
    async fn node(&self, instance: &Instance) -> Result<NodeView, Failure>;

    /// Holds a terminated instance in the terminating state, or stops holding it. It returns `false` if this world cannot do
    /// that; the case then ends early.
    async fn hold(&self, instance: &Instance, held: bool) -> Result<bool, Failure>;

    /// Interrupts an instance with a deadline of at most two minutes. It returns `false` if this world cannot do that; the cases
    /// about interruptions then end early.
    async fn interrupt(&self, _instance: &Instance) -> Result<bool, Failure> {
        Ok(false)
    }

    /// Makes the cloud redeliver unacknowledged messages, if that does not happen by itself.
    async fn redeliver(&self) -> Result<(), Failure> {
        Ok(())
    }

    /// Lets a little time pass for the provider. The suite polls a condition with this pause in between, at most [`MAX_POLLS`]
    /// times.
    async fn pause(&self);
}

/// The number of times that the suite polls a condition before a case fails.
pub const MAX_POLLS: usize = 600;

/// The cluster's view of the node of an instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeView {
    /// This world has no cluster. The suite does not check nodes.
    NotVisible,
    /// There is no such node now.
    Absent,
    /// The node exists.
    Present(NodeFacts),
    /// The instance starts with this configuration. The world cannot show annotations, labels of the offering, or allocatable
    /// resources, because the node gets them only after it has joined.
    JoinConfig(JoinConfig),
}

/// The labels and taints that an instance registers its node with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JoinConfig {
    /// The labels.
    pub labels: BTreeMap<String, String>,
    /// The taints.
    pub taints: Vec<Taint>,
}

/// The fields of a node that the suite checks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeFacts {
    /// `spec.providerID`.
    pub provider_id: String,
    /// The labels.
    pub labels: BTreeMap<String, String>,
    /// The annotations.
    pub annotations: BTreeMap<String, String>,
    /// The taints.
    pub taints: Vec<Taint>,
    /// `status.allocatable`.
    pub allocatable: ResourceList,
}

struct Case {
    name: &'static str,
    run: for<'a> fn(&'a Setting) -> LocalBoxFuture<'a, Result<(), Failure>>,
}

macro_rules! cases {
    ($($module:ident :: $name:ident),* $(,)?) => {
        const CASES: &[Case] = &[
            $(Case { name: stringify!($name), run: |setting| Box::pin($module::$name(setting)) }),*
        ];
    };
}

cases![
    launching::the_catalogue_lists_offerings_with_prices,
    launching::a_launch_makes_one_instance_of_the_first_offering,
    launching::two_keys_make_two_instances,
    launching::two_launches_with_one_key_make_one_instance,
    launching::launches_with_one_key_at_the_same_time_make_one_instance,
    launching::a_key_is_remembered_across_a_restart,
    launching::a_second_launch_with_one_key_gets_the_first_instance_whatever_it_asks_for,
    launching::a_stock_out_gets_the_next_offering_and_is_reported,
    launching::when_all_is_out_of_stock_each_offering_is_reported_and_nothing_is_launched,
    inventory::a_listed_instance_says_what_it_is_for,
    inventory::the_list_is_in_order_of_provider_ids,
    inventory::an_instance_is_found_by_its_provider_id_until_it_is_gone,
    inventory::a_restarted_provider_lists_what_was_launched_before,
    terminating::a_terminated_instance_is_gone_with_its_node,
    terminating::terminating_twice_is_fine,
    terminating::terminating_an_unknown_key_says_gone,
    terminating::terminating_one_instance_leaves_the_others,
    terminating::an_instance_is_terminated_by_a_provider_that_did_not_launch_it,
    terminating::a_terminating_instance_is_listed_as_such_and_its_key_cannot_be_launched,
    terminating::a_termination_that_was_begun_is_finished_after_a_restart,
    invalid::an_unknown_node_class_is_invalid_and_says_what_to_do,
    invalid::an_unknown_offering_is_invalid_and_nothing_is_launched,
    invalid::a_launch_without_offerings_is_invalid,
    node::the_node_carries_what_was_asked_for,
    node::a_node_appears_after_a_restart_between_launch_and_registration,
    interruptions::an_interruption_names_the_instance_and_its_deadline,
    interruptions::an_unacknowledged_message_is_redelivered_also_after_a_restart,
    interruptions::an_acknowledged_message_is_not_redelivered,
    interruptions::acknowledging_an_unknown_receipt_is_no_error,
];

/// Runs all cases one after the other, each in its own world.
pub async fn run_all(fixture: &dyn Fixture) -> Report {
    run_concurrently(fixture, 1).await
}

/// Runs all cases, `concurrency` of them at a time. Use it for worlds that mostly wait.
pub async fn run_concurrently(fixture: &dyn Fixture, concurrency: usize) -> Report {
    let cases = stream::iter(CASES)
        .map(async |case| CaseResult { name: case.name, outcome: run(fixture, case).await });
    Report { cases: cases.buffered(concurrency).collect().await }
}

async fn run(fixture: &dyn Fixture, case: &Case) -> Result<(), Failure> {
    let world = fixture.world(case.name).await?;
    let setting = Setting::new(world).await?;
    let outcome = (case.run)(&setting).await;
    let cleared = setting.clear().await;
    outcome.and(cleared)
}
