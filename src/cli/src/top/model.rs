//! Converts the lists of the API server to a [`View`], as a plain function.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::Arc;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1 as k8s;
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::ResourceExt;
use poolwright_api::{NodeClaim, NodePool};
use poolwright_catalog::{ResourceName, UsdPerHour};
use poolwright_core::{Claim, ClaimName, Node, PodRole, Snapshot};
use poolwright_terms::keys::REPORTING_CONTROLLER;
use poolwright_terms::{API_VERSION, ConditionType};

use super::doing::doing;
use super::view::{
    Budget, Cost, EventRow, Gpus, Leader, NodeCounts, NodeRow, ObjectKind, PoolRow, Totals, View, WaitingPods,
};
use crate::{lease, price_age};

/// The most events in a view. A busy hour has thousands.
const EVENTS: usize = 100;

/// All objects of a kind, or why they could not be read.
pub type Listed<T> = Result<Vec<T>, String>;

/// The lists of the API server.
#[derive(Clone, Debug)]
pub struct Reading {
    /// The time of the reading.
    pub at: Timestamp,
    /// Pools.
    pub pools: Listed<NodePool>,
    /// Claims.
    pub claims: Listed<NodeClaim>,
    /// Nodes, ours and others.
    pub nodes: Listed<k8s::Node>,
    /// Pods that have not ended.
    pub pods: Listed<k8s::Pod>,
    /// Events of ours.
    pub events: Listed<Event>,
    /// Leases of our name, of any namespace.
    pub leases: Listed<Lease>,
}

/// Builds the view of a cluster with this name. With a namespace, it has only the claims whose nodes have pods of this namespace
/// or were bought for some, the waiting pods of the namespace, and events about these objects. Pools are always whole.
pub fn view(cluster: &str, reading: &Reading, namespace: Option<&str>) -> View {
    let mut known = Known::default();
    let pods = known.converted(ObjectKind::Pods, &reading.pods, poolwright_intake::pod);
    let nodes = known.converted(ObjectKind::Nodes, &reading.nodes, poolwright_intake::node);
    let claims = known.converted(ObjectKind::NodeClaims, &reading.claims, poolwright_intake::node_claim);
    let snapshot = Snapshot {
        pods: pods.into_iter().map(|pod| (pod.key.clone(), Arc::new(pod))).collect(),
        nodes: nodes.into_iter().map(|node| (node.name.clone(), Arc::new(node))).collect(),
        claims: claims.into_iter().map(|claim| (claim.name.clone(), Arc::new(claim))).collect(),
        ..Snapshot::default()
    };
    let sees_pods = reading.pods.is_ok();
    let rows = node_rows(&snapshot, known.listed(ObjectKind::NodeClaims, &reading.claims), sees_pods);
    let sees_nodes = reading.nodes.is_ok() && reading.claims.is_ok() && namespace.is_none();
    let others = || snapshot.nodes.values().filter(|node| snapshot.claims.of_node(node).is_none()).count();
    let pools = known.listed(ObjectKind::NodePools, &reading.pools);
    let pools = if reading.pools.is_ok() { pool_rows(pools, &rows, sees_pods) } else { Vec::new() };
    let (rows, waiting) = match namespace {
        None => (rows, WaitingPods::of(&snapshot)),
        Some(namespace) => narrowed(rows, &snapshot, namespace),
    };
    let is_shown = |event: &Event| namespace.is_none_or(|namespace| is_about(event, namespace, &rows));
    let events = known.listed(ObjectKind::Events, &reading.events).iter().filter(|event| is_shown(event));
    let events = event_rows(events);
    let leases = known.listed(ObjectKind::Leases, &reading.leases);
    known.notes.extend(old_prices(reading));
    View {
        api_version: API_VERSION,
        kind: "Top",
        cluster: cluster.to_owned(),
        namespace: namespace.map(str::to_owned),
        read_at: reading.at,
        leader: reading.leases.is_ok().then(|| leader(leases, reading.at)),
        totals: Totals {
            nodes: counts(rows.iter()),
            other_nodes: sees_nodes.then(others),
            gpus: gpus(rows.iter(), sees_pods),
            cost: cost(rows.iter()),
        },
        pods_waiting: sees_pods.then_some(waiting),
        pools,
        nodes: rows,
        events,
        unreadable: known.unreadable,
        notes: known.notes,
    }
}

/// Returns the rows of nodes with pods of a namespace or bought for some, and the waiting pods of the namespace.
fn narrowed(rows: Vec<NodeRow>, snapshot: &Snapshot, namespace: &str) -> (Vec<NodeRow>, WaitingPods) {
    let is_for = |row: &NodeRow| {
        let there = row.node.as_ref().and_then(|node| snapshot.pods.on_node(node));
        let runs = there.is_some_and(|there| there.pods.iter().any(|pod| pod.key.namespace() == namespace));
        let claim = snapshot.claims.get(&ClaimName(row.name.clone()));
        runs || claim.is_some_and(|claim| claim.planned_pods.iter().any(|pod| pod.namespace() == namespace))
    };
    let mut theirs = snapshot.clone();
    theirs.pods.retain(|key, _| key.namespace() == namespace);
    (rows.into_iter().filter(is_for).collect(), WaitingPods::of(&theirs))
}

/// Returns whether an event is about an object of the namespace, or about one of these claims or its node.
fn is_about(event: &Event, namespace: &str, rows: &[NodeRow]) -> bool {
    let Some(about) = &event.regarding else { return false };
    match about.namespace.as_deref().filter(|namespace| !namespace.is_empty()) {
        Some(of) => of == namespace,
        None => rows.iter().any(|row| {
            about.name.as_ref().is_some_and(|name| *name == row.name || row.node.as_ref() == Some(name))
        }),
    }
}

/// The kinds that could not be read, and notes on objects that make no sense.
#[derive(Default)]
struct Known {
    unreadable: BTreeMap<ObjectKind, String>,
    notes: Vec<String>,
}

impl Known {
    /// Returns all objects of a kind; none if they may not be read.
    fn listed<'a, T>(&mut self, kind: ObjectKind, listed: &'a Listed<T>) -> &'a [T] {
        match listed {
            Ok(objects) => objects,
            Err(why) => {
                self.unreadable.insert(kind, why.clone());
                &[]
            }
        }
    }

    /// Returns the objects converted to the types of the core.
    fn converted<T, M, E: Display>(
        &mut self,
        kind: ObjectKind,
        listed: &Listed<T>,
        convert: fn(&T) -> Result<M, E>,
    ) -> Vec<M> {
        let mut models = Vec::new();
        for object in self.listed(kind, listed) {
            match convert(object) {
                Ok(model) => models.push(model),
                Err(error) => self.notes.push(format!("left out: {error}")),
            }
        }
        models
    }
}

fn node_rows(snapshot: &Snapshot, objects: &[NodeClaim], sees_pods: bool) -> Vec<NodeRow> {
    let objects: BTreeMap<String, &NodeClaim> =
        objects.iter().map(|claim| (claim.name_any(), claim)).collect();
    let row = |claim: &Arc<Claim>| {
        let object = objects.get(claim.name.0.as_str())?;
        Some(node_row(snapshot, claim, object, sees_pods))
    };
    let mut rows: Vec<NodeRow> = snapshot.claims.values().filter_map(row).collect();
    rows.sort_by(|a, b| (&a.pool, &a.name).cmp(&(&b.pool, &b.name)));
    rows
}

fn node_row(snapshot: &Snapshot, claim: &Claim, object: &NodeClaim, sees_pods: bool) -> NodeRow {
    let node = node_of(snapshot, claim);
    let name = node.map(|node| node.name.clone()).or_else(|| claim.node_name.clone());
    let there = name.as_ref().and_then(|name| snapshot.pods.on_node(name));
    let used = there.map_or(0, |there| there.requests.get(ResourceName::NVIDIA_GPU));
    let work = there.map_or(0, |there| there.pods.iter().filter(|pod| pod.role == PodRole::Workload).count());
    let ranked = claim.current_offering();
    // A starting node advertises less than it will, so the offering counts until the node is initialized.
    let opened = node.filter(|_| claim.since(ConditionType::Initialized).is_some());
    let allocatable = opened.map_or(&ranked.allocatable, |node| &node.allocatable);
    let pods = sees_pods.then_some(work);
    let (doing, why) = doing(claim, node, pods);
    NodeRow {
        name: claim.name.0.clone(),
        node: name,
        pool: claim.pool.0.clone(),
        instance_type: ranked.offering.instance_type.to_string(),
        zone: ranked.offering.zone.to_string(),
        capacity_type: ranked.offering.capacity_type.as_str(),
        stage: claim.stage(),
        node_ready: node.map(|node| node.ready),
        created_at: claim.created,
        gpus: Gpus {
            gpus: allocatable.get(ResourceName::NVIDIA_GPU),
            gpus_in_use: sees_pods.then_some(used),
        },
        pods,
        usd_per_hour: price(claim, object),
        doing,
        why,
    }
}

fn node_of<'a>(snapshot: &'a Snapshot, claim: &Claim) -> Option<&'a Node> {
    let nodes = &snapshot.nodes;
    let by_id = claim.launched.as_ref().and_then(|launched| nodes.with_provider_id(&launched.provider_id));
    by_id.or_else(|| nodes.get(claim.node_name.as_ref()?)).map(Arc::as_ref)
}

/// Returns the recorded price of a launched claim, or the price of its current offering before the launch.
fn price(claim: &Claim, object: &NodeClaim) -> Option<UsdPerHour> {
    if claim.launched.is_none() {
        return claim.current_offering().price;
    }
    object.status.as_ref()?.price.as_ref()?.usd_per_hour.parse().ok()
}

/// Returns a sentence if recorded prices are old.
fn old_prices(reading: &Reading) -> Option<String> {
    let claims = reading.claims.iter().flatten();
    let dates = claims.filter_map(|claim| {
        claim.status.as_ref()?.price.as_ref()?.as_of.as_ref()?.parse::<jiff::civil::Date>().ok()
    });
    let today = reading.at.to_zoned(TimeZone::UTC).date();
    price_age::note(dates.min(), today, "", "a node keeps the price of its launch")
}

fn counts<'a>(rows: impl Iterator<Item = &'a NodeRow>) -> NodeCounts {
    let mut counts = NodeCounts::default();
    for row in rows {
        counts.nodes += 1;
        if row.stage.is_starting() {
            counts.nodes_starting += 1;
        } else if row.stage.is_leaving() {
            counts.nodes_leaving += 1;
        } else if row.node_ready == Some(false) {
            counts.nodes_not_ready += 1;
        } else {
            counts.nodes_ready += 1;
        }
    }
    counts
}

fn gpus<'a>(rows: impl Iterator<Item = &'a NodeRow>, sees_pods: bool) -> Gpus {
    let mut sum = Gpus { gpus: 0, gpus_in_use: sees_pods.then_some(0) };
    for row in rows {
        sum.gpus += row.gpus.gpus;
        sum.gpus_in_use = sum.gpus_in_use.and_then(|used| Some(used + row.gpus.gpus_in_use?));
    }
    sum
}

fn cost<'a>(rows: impl Iterator<Item = &'a NodeRow>) -> Cost {
    rows.map(|row| row.usd_per_hour).collect()
}

/// Returns the rows of the pools, including deleted pools that still have nodes.
fn pool_rows(pools: &[NodePool], nodes: &[NodeRow], sees_pods: bool) -> Vec<PoolRow> {
    let mut rows: BTreeMap<String, PoolRow> =
        pools.iter().map(|pool| (pool.name_any(), pool_row(pool))).collect();
    for node in nodes {
        rows.entry(node.pool.clone()).or_insert_with(|| PoolRow {
            name: node.pool.clone(),
            problem: Some("the pool no longer exists".to_owned()),
            ..PoolRow::default()
        });
    }
    let mut rows: Vec<PoolRow> = rows.into_values().collect();
    for row in &mut rows {
        let name = row.name.clone();
        let theirs = || nodes.iter().filter(|node| node.pool == name);
        row.nodes = counts(theirs());
        row.gpus = gpus(theirs(), sees_pods);
        row.cost = cost(theirs());
    }
    rows
}

fn pool_row(pool: &NodePool) -> PoolRow {
    let conditions = pool.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    let of = |kind: ConditionType| conditions.iter().find(|condition| condition.type_ == kind.as_str());
    let ready = of(ConditionType::Ready).filter(|condition| condition.status != "Unknown");
    let ready = ready.map(|condition| condition.status == "True");
    let problem = if pool.metadata.deletion_timestamp.is_some() {
        Some("being deleted: buys nothing".to_owned())
    } else if ready.is_none() {
        Some("no controller has checked it yet".to_owned())
    } else if ready == Some(false) {
        of(ConditionType::Ready).map(sentence)
    } else {
        let reached = of(ConditionType::LimitReached).filter(|condition| condition.status == "True");
        let missed = of(ConditionType::BudgetOnTrack).filter(|condition| condition.status == "False");
        reached.or(missed.filter(|_| pool.spec.monthly_budget.is_some())).map(sentence)
    };
    PoolRow {
        name: pool.name_any(),
        weight: Some(pool.spec.weight),
        limits: pool.spec.limits.iter().map(|(key, amount)| (key.clone(), amount.to_string())).collect(),
        monthly_budget: budget(pool),
        ready,
        problem,
        ..PoolRow::default()
    }
}

fn budget(pool: &NodePool) -> Option<Budget> {
    let budget = pool.spec.monthly_budget.as_ref()?;
    let spend = pool.status.as_ref().and_then(|status| status.monthly_spend.as_ref());
    Some(Budget {
        usd: budget.usd.to_string(),
        spent_usd: spend.map(|spend| spend.usd.clone()),
        forecast_usd: spend.map(|spend| spend.forecast_usd.clone()),
    })
}

fn sentence(condition: &Condition) -> String {
    let message = condition.message.trim_end_matches('.');
    if message.is_empty() { condition.reason.clone() } else { message.to_owned() }
}

fn event_rows<'a>(events: impl Iterator<Item = &'a Event>) -> Vec<EventRow> {
    let ours = events.filter(|event| event.reporting_controller.as_deref() == Some(REPORTING_CONTROLLER));
    let mut rows: Vec<EventRow> = ours.map(event_row).collect();
    rows.sort_by(|a, b| (b.at, &a.about, &a.object, &a.reason).cmp(&(a.at, &b.about, &b.object, &b.reason)));
    rows.truncate(EVENTS);
    rows
}

fn event_row(event: &Event) -> EventRow {
    let about = event.regarding.clone().unwrap_or_default();
    let name = about.name.unwrap_or_default();
    let time = event.event_time.as_ref().map(|time| time.0);
    let created = event.metadata.creation_timestamp.as_ref().map(|time| time.0);
    EventRow {
        at: time.or(created).unwrap_or(Timestamp::UNIX_EPOCH),
        severity: event.type_.clone().unwrap_or_default(),
        about: about.kind.unwrap_or_default(),
        object: match about.namespace.filter(|namespace| !namespace.is_empty()) {
            Some(namespace) => format!("{namespace}/{name}"),
            None => name,
        },
        reason: event.reason.clone().unwrap_or_default(),
        message: event.note.clone().unwrap_or_default(),
    }
}

/// Returns the leader, from the Lease that was renewed last, because each namespace may have a Lease.
pub fn leader(leases: &[Lease], now: Timestamp) -> Leader {
    let Some(lease) = lease::newest(leases) else { return Leader::default() };
    Leader {
        holder: lease::holder(lease).map(str::to_owned),
        renewed_at: lease::renewed(lease),
        leads: lease::is_held(lease, now),
    }
}
