//! `poolwright open`: removes the reservation taint of nodes by hand, for clusters whose controller is gone.

use std::io::Write;

use anyhow::{Context, anyhow};
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Node, Taint};
use kube::api::{ListParams, Patch, PatchParams};
use kube::{Api, Client, Error, ResourceExt};
use poolwright_api::meant;
use poolwright_controller::causes;
use poolwright_controller::clock::{Clock, SystemClock};
use poolwright_terms::keys::{LEASE, RESERVED_TAINT};
use serde_json::json;

use crate::args::{Explainable, OpenFlags};
use crate::connect::{self, Patience};
use crate::exit::{ExitStatus, Failure};
use crate::print::TableLayout;
use crate::top::leader;

/// How often a node is read again after somebody else has changed it.
const ATTEMPTS: usize = 5;

/// Opens the nodes that the flags name.
pub fn run(flags: &OpenFlags, out: &mut impl Write) -> Result<ExitStatus, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime for network calls")?;
    runtime.block_on(open(flags, out))
}

async fn open(flags: &OpenFlags, out: &mut impl Write) -> Result<ExitStatus, Failure> {
    let client =
        connect::client(flags.kubeconfig.as_deref(), flags.context.as_deref(), Patience::Retries).await?;
    let layout = TableLayout::list(false);
    match leads(&client, SystemClock::new().now()).await {
        Ok(None) => {}
        Ok(Some(holder)) => {
            return Err(Failure::Other(anyhow!(
                "a controller runs ({holder} leads) and would close the nodes again; to keep the nodes of a pool open, set `spec.disruption.retire: Never` in the NodePool"
            )));
        }
        Err(error) if !matches!(error, Error::Api(_)) => {
            return Err(Failure::Other(anyhow::Error::new(error).context("cannot read the cluster")));
        }
        Err(error) => {
            let why = causes(&error);
            let said = format!(
                "Whether a controller runs is not known ({why}). If one does, it closes the nodes again."
            );
            writeln!(out, "{}", layout.fit(&said, 0)).map_err(Failure::writing)?;
        }
    }
    let api = Api::<Node>::all(client);
    let nodes = find(&api, flags).await?;
    if flags.all && !nodes.iter().any(is_closed) {
        writeln!(out, "No node is closed: none has the taint {RESERVED_TAINT}.").map_err(Failure::writing)?;
    }
    let mut failed = Vec::new();
    for node in nodes {
        let name = node.name_any();
        let said = if !is_closed(&node) {
            if flags.all {
                continue;
            }
            format!("Node {name} is open: it does not have the taint {RESERVED_TAINT}.")
        } else if flags.dry_run {
            format!("Node {name} would be opened.")
        } else {
            match unreserve(&api, node).await {
                Ok(()) => format!("Node {name} is open now."),
                Err(error) => {
                    failed.push(format!("{name}: {}", causes(&error)));
                    continue;
                }
            }
        };
        writeln!(out, "{}", layout.fit(&said, 0)).map_err(Failure::writing)?;
    }
    if failed.is_empty() {
        return Ok(ExitStatus::Done);
    }
    Err(Failure::Other(anyhow!("these nodes could not be opened: {}", failed.join("; "))))
}

/// Returns the holder of the Lease if a controller leads.
///
/// # Errors
///
/// The Lease cannot be read.
async fn leads(client: &Client, now: Timestamp) -> Result<Option<String>, Error> {
    // The controller may run in any namespace.
    let by_name = ListParams::default().fields(&format!("metadata.name={LEASE}"));
    let leases = Api::<Lease>::all(client.clone()).list(&by_name).await;
    let leader = leader(&leases?.items, now);
    Ok(leader.holder.filter(|_| leader.leads))
}

/// Returns the nodes that the flags name.
async fn find(api: &Api<Node>, flags: &OpenFlags) -> Result<Vec<Node>, Failure> {
    if flags.all {
        return Ok(api.list(&ListParams::default()).await.context("cannot list nodes")?.items);
    }
    let mut nodes = Vec::new();
    for name in &flags.nodes {
        let name = Explainable::Node.without_kind(name);
        let node = api.get_opt(name).await.with_context(|| format!("cannot read node {name}"))?;
        let Some(node) = node else {
            // The names only help, so an error is of no interest.
            let all = api.list(&ListParams::default()).await.map(|all| all.items).unwrap_or_default();
            let names: Vec<String> = all.iter().map(ResourceExt::name_any).collect();
            let next = match meant(name, names.iter().map(String::as_str)) {
                Some(known) => format!("did you mean {known}?"),
                None => "`kubectl get nodes` lists them".to_owned(),
            };
            return Err(Failure::bad_input(format!("the cluster has no node `{name}`; {next}")));
        };
        nodes.push(node);
    }
    Ok(nodes)
}

fn is_closed(node: &Node) -> bool {
    taints(node).iter().any(|taint| taint.key == RESERVED_TAINT)
}

fn taints(node: &Node) -> &[Taint] {
    node.spec.as_ref().and_then(|spec| spec.taints.as_deref()).unwrap_or_default()
}

/// Removes the reservation of a node, and no other taint. If the node has changed since it was read, it is read again.
async fn unreserve(api: &Api<Node>, mut node: Node) -> Result<(), Error> {
    let name = node.name_any();
    for left in (0..ATTEMPTS).rev() {
        let kept: Vec<&Taint> = taints(&node).iter().filter(|taint| taint.key != RESERVED_TAINT).collect();
        let patch = json!({"metadata": {"resourceVersion": node.metadata.resource_version}, "spec": {"taints": kept}});
        match api.patch(&name, &PatchParams::default(), &Patch::Merge(&patch)).await {
            Err(Error::Api(status)) if status.code == 409 && left > 0 => node = api.get(&name).await?,
            answer => return answer.map(drop),
        }
    }
    Ok(())
}
