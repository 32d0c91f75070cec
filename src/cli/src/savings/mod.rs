//! `poolwright savings`: what a cluster costs now, what the best plan for its pods would cost, and what no plan can go below.
//!
//! `read` keeps the objects of what runs, and `market` says what may be bought. `running` prices the nodes. `best` and `limit` plan
//! with the code that the controller runs, for a cluster without the nodes whose pods can move. Nothing is written.

mod answer;
mod best;
mod converted;
mod fixed;
mod limit;
mod markdown;
mod market;
mod page;
mod planner;
pub mod price;
mod read;
mod reasons;
mod running;
mod sections;
mod table;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod verdict;

use std::collections::BTreeSet;
use std::io::{self, Write};

use poolwright_catalog::Catalogue;
use poolwright_core::{ObjectKey, PodRole, Snapshot};
use poolwright_terms::CapacityType;

use crate::args::{SavingsFlags, SavingsFormat};
use crate::exit::{ExitStatus, Failure};
use crate::plan::{Given, prepare_given};
use crate::price_age;
use crate::print::{Progress, TableLayout, counted};

use answer::{Answer, FixedPod, Found};
use best::{Best, Stays, best};
use market::{Market, market};
use planner::Planner;
use running::{Running, cost};

/// Notes of a plan that are not true here: the pods run already, and the answer itself says what may be bought.
const NOT_HERE: [&str; 2] =
    ["no object in the files asks for a pod", "no NodePool is given; the plan may use"];

/// Answers, and prints the answer.
pub fn run(flags: &SavingsFlags, out: &mut impl Write) -> Result<ExitStatus, Failure> {
    let answer = answered(flags)?;
    print(&answer, flags.output, out).map_err(Failure::writing)?;
    Ok(ExitStatus::Done)
}

fn print(answer: &Answer, format: SavingsFormat, out: &mut impl Write) -> io::Result<()> {
    match format {
        SavingsFormat::Table => table::print(answer, TableLayout::page(false), out),
        SavingsFormat::Json => {
            serde_json::to_writer_pretty(&mut *out, answer)?;
            writeln!(out)
        }
        SavingsFormat::Markdown => markdown::print(answer, out),
        SavingsFormat::Html => page::print(answer, out),
    }
}

fn answered(flags: &SavingsFlags) -> Result<Answer, Failure> {
    let mut objects = read::read(flags)?;
    let Market { sources, catalogue, spot, said, convert } = market(&mut objects, flags)?;
    let (prices, now) = (&objects.catalogue, objects.now);
    let given = Given::Files { sources, at: now };
    let (input, mut options) =
        prepare_given(&flags.input(spot), None, &flags.search, catalogue, Some(given))?;
    let (running, unpriced) = running::of(&input.snapshot, prices);
    if running.is_empty() {
        let why = unpriced.first().map_or("no Node can be read", |one| one.why.as_str());
        return Err(Failure::bad_input(format!(
            "no node has a known price, for instance because {why}; --catalogue takes types and prices (docs/catalogue.md)"
        )));
    }
    // Whoever schedules a pod, it needs a place.
    let schedulers: BTreeSet<String> = input.snapshot.pods.bound().map(|pod| pod.scheduler.clone()).collect();
    options.schedulers.extend(schedulers);
    options.baselines = false;
    let mut planner = Planner { input, options, search: &flags.search, now };
    let fixed = fixed_pods(&planner, &running);
    let stays = staying(&running, &fixed);
    let progress = Progress::begin("planning the best nodes for all pods");
    let found = best(&mut planner, &running, stays)?;
    progress.say("looking for the cost that no plan can go below");
    let limit = limit::limit(&mut planner, &running, prices)?;
    drop(progress);
    let (best, dearer) = cheaper(&running, found);
    // Nodes that stay may hold more than the catalogue knows of, and then the bound is none for them.
    let limit = limit.filter(|limit| *limit <= best.cost);
    let mut notes = objects.notes.clone();
    notes.extend(dearer);
    notes.extend(waiting(objects.waiting));
    notes.extend(price::assumed(running.iter().filter(|node| node.priced.is_assumed).count()));
    notes.extend(unknown_daemons(&planner.input.snapshot));
    let mut answer = Answer::of(Found { running, unpriced, fixed, best, limit, may_buy: said, convert });
    answer.notes.retain(|note| !NOT_HERE.iter().any(|not| note.starts_with(not)));
    answer.notes.splice(0..0, notes);
    answer.assumptions = assumptions(&answer, prices);
    Ok(answer)
}

/// Returns the pods of nodes with a price that cannot move.
fn fixed_pods(planner: &Planner<'_>, running: &[Running]) -> Vec<FixedPod> {
    let snapshot = &planner.input.snapshot;
    let mut all = Vec::new();
    for node in running {
        let Some(on) = snapshot.nodes.get(&node.name) else { continue };
        for pod in node.pods.iter().filter_map(|key| snapshot.pods.get(key)) {
            if let Some(why) = fixed::why(pod, on, snapshot, planner.now) {
                all.push(FixedPod { pod: planner.input.name_of(&pod.key), node: node.name.clone(), why });
            }
        }
    }
    all
}

/// Returns the nodes that stay in every plan: those of the control plane, and those with pods that cannot move.
fn staying(running: &[Running], fixed: &[FixedPod]) -> Stays {
    let of_pods = fixed.iter().rev();
    let of_pods =
        of_pods.map(|one| (one.node.clone(), format!("pod {} cannot move, because {}", one.pod, one.why)));
    let of_cluster = running.iter().filter(|node| node.is_control_plane);
    let of_cluster = of_cluster.map(|node| (node.name.clone(), "it is of the control plane".to_owned()));
    of_pods.chain(of_cluster).collect()
}

/// Returns the plan in which all nodes stay if the best plan does not cost less, with a note.
fn cheaper(running: &[Running], found: Best) -> (Best, Option<String>) {
    let now = cost(running);
    if found.cost < now {
        return (found, None);
    }
    let note = (found.cost > now).then(|| {
        format!("the cheapest plan that was found costs {:#}/month, which is more", found.cost.per_month())
    });
    (Best::as_it_is(running, found.notes), note)
}

fn waiting(pods: usize) -> Option<String> {
    (pods > 0).then(|| {
        format!(
            "{} without a node count{} nowhere; see `poolwright plan`",
            counted(pods, "pod"),
            if pods == 1 { "s" } else { "" }
        )
    })
}

/// Says that the objects of DaemonSets are missing, so that new nodes have no room for their pods.
fn unknown_daemons(snapshot: &Snapshot) -> Option<String> {
    let daemons = snapshot.pods.bound().filter(|pod| pod.role == PodRole::DaemonSet);
    let names: BTreeSet<ObjectKey> = daemons
        .filter_map(|pod| Some(ObjectKey::new(pod.key.namespace(), pod.daemonset.as_ref()?)))
        .filter(|key| !snapshot.daemonsets.contains_key(key))
        .collect();
    let first = names.first()?;
    Some(format!(
        "{} with pods, such as {first}, {} not among the objects, so new nodes have no room for these pods and the best plan may cost \
         more; add what `kubectl get daemonsets -A -o yaml` prints",
        counted(names.len(), "DaemonSet"),
        if names.len() == 1 { "is" } else { "are" }
    ))
}

/// Returns what the figures rest on.
fn assumptions(answer: &Answer, prices: &Catalogue) -> Vec<String> {
    let today = price_age::today();
    let oldest = price_age::oldest(prices.offerings());
    let age = oldest.map_or_else(String::new, |date| {
        let days = (today - date).get_days().max(0);
        format!(" The oldest is of {date}, {} ago.", counted(days.unsigned_abs() as usize, "day"))
    });
    let source = prices.origin().source.trim_end_matches('.');
    let mut all = vec![
        format!("Prices are list prices of the catalogue: {source}.{age}"),
        "Discounts, reservations and commitments count on no side. Nor do volumes, traffic and control planes.".to_owned(),
        "A month has 730 hours, in which all nodes run and all pods stay as many and as large as now.".to_owned(),
    ];
    let is_spot = |kind: &answer::KindRow| kind.best > 0 && kind.capacity_type == CapacityType::Spot;
    if answer.kinds.iter().any(is_spot) {
        all.push(
            "The plan weighs the interruptions of spot nodes, but no amount contains what they lose."
                .to_owned(),
        );
    }
    if answer.limit.is_some() {
        all.push(
            "The lower limit lets every pod move. It ignores rules of pods about each other and about labels of users, preferences, \
             volumes, DaemonSets and limits of pools. It is for what may be bought and what runs, and for known prices."
                .to_owned(),
        );
    }
    all
}
