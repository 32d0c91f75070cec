//! Builds the solver's problem.

use std::collections::BTreeSet;

use poolwright_catalog::{ResourceList, ResourceName, UsdPerHour};
use poolwright_solver as solver;
use poolwright_solver::{Candidate, ExistingNode, PodClass, Problem};

use crate::model::plan::Target;
use crate::model::{ClaimName, PoolInWords};
use crate::plan::pack::solves::candidates::NodeCandidate;
use crate::plan::pack::solves::columns::{Column, Columns, Source};
use crate::plan::pack::solves::flexible::FlexibleRules;
use crate::plan::pack::solves::inputs::ExistingNodes;
use crate::plan::pack::solves::pass::Run;
use crate::rules::colocation::conflicts::Conflicts;
use crate::rules::gpus;
use crate::rules::gpus::GpuNeed;

/// The prefix of resources that represent spread constraints.
const SPREAD: &str = "poolwright.dev/spread-";

fn with(mut amounts: Vec<u64>, more: impl Iterator<Item = u64>) -> Vec<u64> {
    amounts.extend(more);
    amounts
}

impl Run<'_, '_, '_, '_> {
    /// Returns the cost of a column, with one pod of its group.
    pub(crate) fn price(&self, candidates: &[NodeCandidate], column: Column) -> UsdPerHour {
        let horizons = self.inputs.horizons;
        match column.source {
            Source::New(candidate) => {
                let candidate = &candidates[candidate];
                let pool = self.inputs.supply.pools[candidate.pool].pool;
                horizons.of_new(candidate.price, pool, column.horizon)
            }
            Source::Room(at) => self.lives[at].as_ref().map_or(UsdPerHour::ZERO, |room| {
                horizons.of_existing(room.price, &room.ends, column.horizon)
            }),
        }
    }

    /// Returns the loss of a pod on the columns where it is not the pod's own, as pairs (index of the column, micro-dollars).
    fn losses(
        &self,
        candidates: &[NodeCandidate],
        columns: &Columns,
        homes: &[u32],
        class: usize,
    ) -> Vec<(u32, u64)> {
        let own = self.inputs.classes.classes[class].loss.own();
        let on = |home: &u32| {
            let Source::New(at) = columns.all[*home as usize].source else { return None };
            let NodeCandidate { pool, offer, interruptions, .. } = &candidates[at];
            // There are millions of pairs of a class and a column, and on few of them a loss counts.
            if *interruptions == 0 {
                return None;
            }
            let lost = self.loss_on(class, *pool, offer);
            (lost != own).then_some((*home, lost))
        };
        homes.iter().filter_map(on).collect()
    }

    pub(crate) fn problem(
        &self,
        candidates: &[NodeCandidate],
        classes: &[usize],
        columns: &Columns,
        there: &ExistingNodes,
    ) -> Problem {
        let ExistingNodes { nodes, homes: homes_there, .. } = there;
        let further = self.further(candidates, columns);
        let all = &self.inputs.classes.classes;
        let colocation = &*self.colocation;
        let sharing = self.inputs.options.sharing;
        let mut names: BTreeSet<ResourceName> = BTreeSet::new();
        for class in classes {
            names.extend(all[*class].requests.iter().map(|(name, _)| name.clone()));
        }
        let shared = classes.iter().any(|class| all[*class].gpu_need.is_some());
        let project =
            |list: &ResourceList| -> Vec<u64> { names.iter().map(|name| list.get(name.as_str())).collect() };
        // A spread constraint becomes a resource if a maximum per class cannot express it.
        let residents = |column: &Column| match column.source {
            Source::New(at) => &self.inputs.supply.residents[candidates[at].offer.residents],
            Source::Room(at) => self.present(at),
        };
        let present = nodes.iter().map(|at| self.present(*at));
        let present = present.chain(columns.all.iter().map(residents));
        let profiles: Vec<usize> = classes.iter().map(|class| all[*class].profile).collect();
        let tallies = colocation.tallies(profiles.iter().copied(), present);
        let Conflicts { pairs, ports } = colocation.conflicts(&profiles);
        let tallied = (0..tallies.len()).map(|at| ResourceName::new(format!("{SPREAD}{at}")));
        let left = |present| tallies.iter().map(move |tally| colocation.tally_left(*tally, present));
        // A room can be used in one way only.
        let mut limits = self.limits.for_solver(self.inputs.supply);
        let mut room_limit = vec![None; columns.all.len()];
        for (room, columns) in columns.of_one_room() {
            for column in columns {
                room_limit[column] = Some(limits.len() as u32);
            }
            limits.push(solver::Limit { name: format!("uses of {}", self.rooms.all[room].target), bound: 1 });
        }
        let flexible = FlexibleRules::new(self.inputs, candidates, columns);
        let domains = flexible.domains.into_iter().chain(std::iter::repeat(Vec::new()));
        Problem {
            resources: names.iter().cloned().chain(tallied).collect(),
            classes: classes
                .iter()
                .zip(&columns.homes)
                .zip(ports)
                .enumerate()
                .map(|(at, ((class, homes), ports))| PodClass {
                    name: self.queues[*class][0].key.to_string(),
                    requests: with(
                        project(&all[*class].requests),
                        tallies.iter().map(|tally| colocation.tally(*tally, all[*class].profile)),
                    ),
                    count: self.queues[*class].len() as u32,
                    priority: all[*class].priority,
                    value: self.worth.get(*class).copied().unwrap_or(0),
                    preferences: self.besides(*class, columns, homes, &further),
                    max_per_node: colocation.most(all[*class].profile),
                    ports,
                    candidates: homes.clone(),
                    existing: homes_there.get(at).cloned().unwrap_or_default(),
                    gpu: all[*class].gpu_need.as_ref().and_then(GpuNeed::request),
                    at_risk: all[*class].loss.own(),
                    at_risk_on: self.losses(candidates, columns, homes, *class),
                    ..PodClass::default()
                })
                .collect(),
            candidates: columns
                .all
                .iter()
                .zip(room_limit)
                .zip(domains)
                .enumerate()
                .map(|(index, ((column, room_limit), domains))| {
                    // Each pod of the column's group adds what a further one does, so the node counts without one.
                    let one_pod = further.get(index).copied().unwrap_or_default();
                    let price = self.price(candidates, *column).saturating_sub(one_pod);
                    let candidate = match column.source {
                        Source::New(at) => &candidates[at],
                        Source::Room(at) => {
                            return Candidate {
                                name: self.rooms.all[at].target.to_string(),
                                price,
                                capacity: with(project(self.free(at)), left(self.present(at))),
                                max_nodes: Some(1),
                                limit_use: room_limit.into_iter().map(|limit| (limit, 1)).collect(),
                                ..Candidate::default()
                            };
                        }
                    };
                    let supply = self.inputs.supply;
                    let id = &supply.offering(candidate.pool, candidate.offer.offering).id;
                    let capacity = &supply.capacities[candidate.offer.capacity];
                    let form = candidate.form;
                    Candidate {
                        name: match supply.pools[candidate.pool].pool.in_words() {
                            PoolInWords::Named(pool) => format!("{pool}: {id}{}", form.words()),
                            PoolInWords::Catalogue => format!("{id}{}", form.words()),
                        },
                        price,
                        capacity: with(project(&form.room(capacity)), left(residents(column))),
                        gpus: form
                            .gpus(sharing, supply.instance_type(candidate.pool, candidate.offer.offering)),
                        max_nodes: None,
                        limit_use: candidate.uses.clone(),
                        domains,
                        interruptions: self.inputs.horizons.rate(
                            candidate.interruptions,
                            supply.pools[candidate.pool].pool,
                            column.horizon,
                        ),
                    }
                })
                .collect(),
            existing: nodes
                .iter()
                .map(|at| {
                    let room = self.rooms.all.get(*at);
                    ExistingNode {
                        name: match room.map(|room| &room.target) {
                            Some(Target::Claim(ClaimName(name)) | Target::Node(name)) => name.clone(),
                            None => format!("planned node {}", at - self.rooms.all.len()),
                        },
                        free: with(project(self.free(*at)), left(self.present(*at))),
                        gpus: room.filter(|_| shared).map_or_else(Vec::new, |room| gpus::free(&room.free)),
                        ..ExistingNode::default()
                    }
                })
                .collect(),
            limits,
            topologies: flexible.topologies,
            flexibility: flexible.rules,
            conflicts: pairs,
            commitments: self.commitments(candidates, columns),
            ..Problem::default()
        }
    }

    /// Returns the amounts left of commitments, in the solver's form.
    fn commitments(
        &self,
        candidates: &[NodeCandidate],
        columns: &Columns,
    ) -> Vec<solver::problem::Commitment> {
        let terms = self.inputs.options.commitments.iter().zip(&self.outcome.commitments);
        terms
            .map(|(terms, use_of)| solver::problem::Commitment {
                name: terms.name.clone(),
                left: UsdPerHour::from_micros(use_of.left.micros().saturating_sub(use_of.used.micros())),
                rates: columns
                    .all
                    .iter()
                    .enumerate()
                    .filter_map(|(at, column)| {
                        let Source::New(candidate) = column.source else { return None };
                        let candidate = &candidates[candidate];
                        let id = &self.inputs.supply.offering(candidate.pool, candidate.offer.offering).id;
                        Some((at as u32, *terms.rates.get(id)?))
                    })
                    .collect(),
            })
            .collect()
    }
}
