//! Cases about the Node object of an instance, or about the configuration that it joins with.

use std::collections::BTreeMap;

use poolwright_terms::{Taint, labels};

use super::report::ensure;
use super::{Failure, JoinConfig, NodeFacts, NodeView, Setting};
use crate::{Instance, LaunchRequest};

pub(super) async fn the_node_carries_what_was_asked_for(at: &Setting) -> Result<(), Failure> {
    let request = at.request("a");
    let instance = at.provider.launch(&request).await?.instance;
    check_node(at, &request, &instance).await
}

pub(super) async fn a_node_appears_after_a_restart_between_launch_and_registration(
    at: &Setting,
) -> Result<(), Failure> {
    let request = at.request("a");
    let instance = at.provider.launch(&request).await?.instance;
    let _restarted = at.restarted().await?;
    check_node(at, &request, &instance).await
}

async fn check_node(at: &Setting, request: &LaunchRequest, instance: &Instance) -> Result<(), Failure> {
    match at.node_of(instance).await? {
        Some(NodeView::Present(node)) => check(at, request, instance, &node),
        Some(NodeView::JoinConfig(JoinConfig { labels, taints })) => {
            contains("label", &labels, &request.labels)?;
            tainted(&taints, &request.taints)
        }
        Some(NodeView::Absent | NodeView::NotVisible) | None => Ok(()),
    }
}

fn check(
    at: &Setting,
    request: &LaunchRequest,
    instance: &Instance,
    node: &NodeFacts,
) -> Result<(), Failure> {
    ensure!(node.provider_id == instance.provider_id, "its provider id is {}", node.provider_id);
    let Some(offering) = at.catalogue.offering(&instance.offering) else {
        return Err(Failure(format!("{} is not in the catalogue", instance.offering)));
    };
    contains("label", &node.labels, &at.catalogue.node_labels(offering))?;
    contains("label", &node.labels, &request.labels)?;
    ensure!(node.labels.contains_key(labels::HOSTNAME), "it has no label {}", labels::HOSTNAME);
    contains("annotation", &node.annotations, &request.annotations)?;
    tainted(&node.taints, &request.taints)?;
    let promised = &at.first.allocatable;
    ensure!(node.allocatable == *promised, "it advertises {:?} and not {promised:?}", node.allocatable);
    Ok(())
}

fn tainted(found: &[Taint], wanted: &[Taint]) -> Result<(), Failure> {
    for taint in wanted {
        ensure!(found.contains(taint), "the taint {taint:?} is not among {found:?}");
    }
    Ok(())
}

fn contains(
    map: &str,
    found: &BTreeMap<String, String>,
    wanted: &BTreeMap<String, String>,
) -> Result<(), Failure> {
    for (key, value) in wanted {
        let is = found.get(key);
        ensure!(is == Some(value), "its {map} {key} is {is:?} and not {value:?}");
    }
    Ok(())
}
