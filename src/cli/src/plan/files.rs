//! Reads manifests: pods, and what may be bought for them, without a cluster.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use poolwright_api::NodePool;
use poolwright_core::{Namespace, Pod, PodKey, PodPhase, Snapshot};
use poolwright_intake::IntakeError;
use poolwright_intake::manifest::Manifest;
use poolwright_report::plan::CatalogueSummary;

use super::existing::Existing;
use super::missing::Origin;
use super::narrowed::Uncut;
use super::{Input, Offers, PodNames, assumed_volumes, lost, makers, pool, told};
use crate::exit::Failure;
use crate::node_classes;
use crate::not_sold::first_of;
use crate::problems::Problems;
use crate::source::{self, Source};

/// The namespace of objects in files that name none.
const DEFAULT_NAMESPACE: &str = "default";

/// What to do if the controller of a pod is not among the files.
const MAKERS: &str = "The files may lack the controllers of its pods: add those that `kubectl get \
     replicasets,statefulsets,replicationcontrollers,jobs -A -o yaml` prints";

/// Reads the files. Also returns the problems of those that cannot be read. What was read of `existing` counts to the most that is
/// read.
pub fn read(paths: &[PathBuf], existing: &Existing) -> Result<(Vec<Source>, Vec<IntakeError>), Failure> {
    let (sources, unreadable) = source::readable(paths, existing.sources());
    if sources.is_empty() && !unreadable.is_empty() {
        return Err(source::cannot_read(&unreadable));
    }
    // A command that fails writes nothing into a pipe, and "nothing to buy" would hide that.
    if unreadable.is_empty() && sources.iter().all(|source| says_nothing(&source.text)) {
        let names: Vec<&str> = sources.iter().map(|source| source.name.as_str()).collect();
        return Err(Failure::bad_input(format!(
            "{}: empty; name files with objects, or check the command that writes them",
            names.join(", ")
        )));
    }
    Ok((sources, unreadable))
}

/// Reads all manifests of the files. Also returns their problems, first those of files that cannot be read. Objects that name no
/// namespace are in `namespace`. The objects of `existing` count to quotas, and its pods as those of the controllers of the files.
fn parsed(
    sources: Vec<Source>,
    unreadable: Vec<IntakeError>,
    namespace: Option<&str>,
    existing: &Existing,
) -> (Manifest, Vec<IntakeError>) {
    let there = existing.objects();
    let parsed = source::parsed(&sources, &there);
    let (manifest, errors) = match namespace {
        // Problems are those of the text that the user wrote.
        Some(namespace) if parsed.1.is_empty() => {
            source::parsed(&source::in_namespace(sources, namespace), &there)
        }
        _ => parsed,
    };
    (manifest, unreadable.into_iter().chain(errors).collect())
}

/// Returns whether a text has only comments and marks between documents.
fn says_nothing(text: &str) -> bool {
    let mut lines = text.lines().map(str::trim);
    lines.all(|line| line.is_empty() || line.starts_with('#') || line == "---")
}

/// Reads the input of a plan from manifests. Problems of all manifests are reported together, with those of `existing`, and with
/// those of files that are `unreadable`.
pub fn input(
    (sources, unreadable): (Vec<Source>, Vec<IntakeError>),
    namespace: Option<&str>,
    existing: &Existing,
    offers: &Offers,
) -> Result<Input, Failure> {
    let (mut manifest, mut errors) = parsed(sources, unreadable, namespace, existing);
    let classes = node_classes::read_and_check(&mut manifest, &mut errors);
    errors.extend(existing.errors.iter().cloned());
    errors.extend(unconverted(&manifest));
    // A misspelt kind is a note beside what can be planned. Alone, it is most likely what the user wanted to plan.
    let asks_for_nodes = manifest.asks_for_nodes();
    if !errors.is_empty() || !asks_for_nodes {
        let told: BTreeSet<&IntakeError> = errors.iter().collect();
        let untold = manifest.mistaken.iter().filter(|one| !told.contains(one));
        let untold: Vec<IntakeError> = untold.cloned().collect();
        errors.extend(untold);
    }
    if !errors.is_empty() {
        let mut problems = Problems::all(&errors);
        let nodes: BTreeSet<&str> = manifest.nodes.iter().map(|node| node.name.as_str()).collect();
        let pods: BTreeSet<&PodKey> = manifest.pods.iter().map(|pod| &pod.key).collect();
        problems.extend(existing.clashes(|node| nodes.contains(node), |pod| pods.contains(pod)));
        return Err(Failure::bad_input(format!("the manifests cannot be used: {problems}")));
    }
    let Manifest {
        pods,
        pools,
        written: _,
        stored_pools,
        node_classes: _,
        nodes,
        namespaces,
        daemonsets,
        claims,
        volume_claims,
        made_claims,
        volumes,
        storage_classes,
        node_drivers,
        services,
        workloads,
        budgets,
        pod_groups,
        mut notes,
        missing: _,
        unread,
        left_out,
        mistaken: _,
        karpenter_pools: _,
        on_unknown_nodes,
        bound_elsewhere,
        refused,
        not_created: _,
        polite,
    } = manifest;
    notes.splice(0..0, bound_elsewhere);
    // A workload without pods has a note of its own, and some pools buy nodes without pods.
    if !asks_for_nodes && notes.is_empty() {
        notes.push("no object in the files asks for a pod".to_owned());
    }
    let mut snapshot = Snapshot {
        pods: keyed(pods, |pod| pod.key.clone()),
        nodes: keyed(nodes, |node| node.name.clone()),
        namespace_limits: Namespace::limits_by_name(&namespaces),
        namespaces: Namespace::labels_by_name(namespaces),
        daemonsets: keyed(daemonsets, |daemonset| daemonset.key.clone()),
        claims: keyed(claims, |claim| claim.name.clone()),
        pools: keyed(pools, |pool| pool.name.clone()),
        // An existing volume claim takes precedence over the claim that its controller would create.
        volume_claims: keyed(made_claims.into_iter().chain(volume_claims).collect(), |claim| {
            claim.key.clone()
        }),
        volumes: keyed(volumes, |volume| volume.name.clone()),
        storage_classes: keyed(storage_classes, |class| class.name.clone()),
        node_drivers: keyed(node_drivers, |drivers| drivers.node.clone()),
        services: keyed(services, |service| service.key.clone()),
        workloads: keyed(workloads, |workload| (workload.kind.clone(), workload.key.clone())),
        budgets: keyed(budgets, |budget| budget.key.clone()),
        pod_groups: keyed(pod_groups, |group| group.key.clone()),
        ..Snapshot::default()
    };
    makers::want_own_pods(&mut snapshot);
    assumed_volumes::assume(&mut snapshot, &left_out, &mut notes);
    let lacks_pools = lost::pools(&left_out).next().is_some();
    let unused = classes
        .classes
        .keys()
        // A pool that is left out may name it.
        .filter(|_| !lacks_pools)
        .filter(|class| !snapshot.pools.values().any(|pool| pool.node_class == **class));
    notes.extend(unused.map(|class| format!("{class}: no NodePool names it, so it does not count")));
    // A pool that is left out buys nothing. Without any, a plan would use the whole catalogue.
    let catalogue = if lacks_pools && snapshot.pools.is_empty() {
        offers.catalogue.filtered(|_, _| false)
    } else {
        pool::set_catalogues(&mut snapshot, &classes, false, offers, &mut notes)?
    };
    Ok(Input {
        snapshot,
        catalogue: CatalogueSummary::of(&catalogue),
        notes,
        unread,
        left_out,
        on_unknown_nodes,
        refused,
        polite,
        preempting: Vec::new(),
        names: PodNames::Qualified,
        namespace: DEFAULT_NAMESPACE.to_owned(),
        include_waiting: true,
        lives_unread: None,
        makers_unread: Some(MAKERS.to_owned()),
        told_of_pools: stored_pools
            .iter()
            .filter(|pool| has_been_judged(pool))
            .filter_map(told::of_pool)
            .collect(),
        leadership: None,
        gangs: Vec::new(),
        time: None,
        uncut: Uncut { offers: offers.clone(), classes, strict: false },
        origin: Origin::Files,
    })
}

/// Returns a problem for each file with NodePools of Karpenter, if pods wait and no file has a pool of Poolwright. The plan would buy
/// from the whole catalogue, as if these pools limited nothing.
fn unconverted(manifest: &Manifest) -> Vec<IntakeError> {
    let is_pool = |object: &str| object.starts_with("NodePool ");
    let has_own = !manifest.pools.is_empty()
        || manifest.written.iter().any(|object| is_pool(&object.name))
        || manifest.left_out.iter().any(|object| is_pool(object));
    let waits = |pod: &Pod| !matches!(pod.phase, PodPhase::Bound { .. } | PodPhase::Finished);
    if has_own || !manifest.pods.iter().any(waits) {
        return Vec::new();
    }
    let problem = |(file, names): (&String, &Vec<String>)| {
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let (pools, they_are, them) = match names.len() {
            1 => ("NodePool", "it is", "it"),
            _ => ("NodePools", "they are", "them"),
        };
        let path = if file == "stdin" { "-" } else { file.as_str() };
        IntakeError {
            file: Some(file.clone()),
            object: format!("{pools} {}", first_of(&names)),
            path: String::new(),
            cause: format!("{they_are} Karpenter's, so the plan would not keep to {them}"),
            next_step: format!(
                "convert {them} with `poolwright convert -f {path}`, and give the result to -f"
            ),
        }
    };
    manifest.karpenter_pools.iter().map(problem).collect()
}

/// Returns whether a controller has looked at a pool of a dump.
fn has_been_judged(pool: &NodePool) -> bool {
    pool.status.iter().flat_map(|status| &status.conditions).any(|one| one.type_ == "Ready")
}

fn keyed<K, M, A: FromIterator<(K, Arc<M>)>>(models: Vec<M>, key: fn(&M) -> K) -> A {
    models.into_iter().map(|model| (key(&model), Arc::new(model))).collect()
}
