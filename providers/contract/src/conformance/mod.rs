//! The conformance suite: what Poolwright relies on, as cases every provider must pass.
//!
//! A provider's test implements [`Fixture`] (a world of its own for each case) and [`World`] (that world's levers), calls
//! [`run_all`], prints the [`Report`] and fails unless [`Report::passed`]. A new promise of the trait gets a case here
//! first.

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

/// Makes worlds for the cases of the suite.
#[async_trait(?Send)]
pub trait Fixture {
    /// A world without instances, with one usable node class. `case` is the name of the case it is for.
    async fn world(&self, case: &'static str) -> Result<Box<dyn World>, Failure>;
}

/// The world around a provider, with the levers the cases pull.
#[async_trait(?Send)]
pub trait World {
    /// A provider made from nothing but this world, as after a restart of the controller: whatever the one before held in
    /// memory is not in it, and background work of the one before has stopped.
    async fn provider(&self) -> Result<Arc<dyn CloudProvider>, Failure>;

    /// The node class to launch with. It sells at least two offerings with known prices.
    fn node_class(&self) -> NodeClassRef;

    /// A prefix for keys and names that no other world uses: a letter, then lower-case letters, digits and dashes.
    fn prefix(&self) -> String;

    /// From now on exactly these are out of stock.
    async fn set_stock_outs(&self, offerings: &[OfferingId]) -> Result<(), Failure>;

    /// What the cluster shows of the node of this instance.
    async fn node(&self, instance: &Instance) -> Result<NodeView, Failure>;

    /// While held, the instance does not go away when it is terminated, but stays terminating. `false` when this world has
    /// no such lever; the case then ends without having looked.
    async fn hold(&self, instance: &Instance, held: bool) -> Result<bool, Failure>;

    /// Has the cloud say that it takes this instance back, two minutes from now or sooner. `false` when this world has no such
    /// lever; the cases about it then end without having looked.
    async fn interrupt(&self, _instance: &Instance) -> Result<bool, Failure> {
        Ok(false)
    }

    /// Has notices that nobody gave back come again, where that does not happen by itself while time passes.
    async fn redeliver(&self) -> Result<(), Failure> {
        Ok(())
    }

    /// Lets a little time pass, in a way that the provider notices. The suite waits on conditions: it looks, pauses, and
    /// looks again, [`MAX_POLLS`] times at most.
    async fn pause(&self);
}

/// How often the suite looks for a condition before a case fails.
pub const MAX_POLLS: usize = 600;

/// What a cluster shows of an instance's node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeView {
    /// This world has no cluster to look at; what is said about nodes is not checked.
    NotVisible,
    /// There is no such node now.
    Absent,
    /// There is one.
    Present(NodeFacts),
    /// A machine starts with the instruction to join as this. What is written on a node once it has joined, and what its kubelet counts,
    /// cannot be seen here: annotations, labels of the offering, what it has for pods.
    JoinConfig(JoinConfig),
}

/// What a machine is told to join the cluster with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JoinConfig {
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// Taints.
    pub taints: Vec<Taint>,
}

/// A node, as far as the suite looks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeFacts {
    /// `spec.providerID`.
    pub provider_id: String,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// Annotations.
    pub annotations: BTreeMap<String, String>,
    /// Taints.
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

/// Runs every case, each in a world of its own, one after the other.
pub async fn run_all(fixture: &dyn Fixture) -> Report {
    run_concurrently(fixture, 1).await
}

/// Runs every case, so many at a time: for worlds in which most of the time is waiting.
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
