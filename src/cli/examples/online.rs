//! Compares the cost of nodes that are bought for pods as they arrive with their cost after consolidation. The pods arrive in the
//! order of a trace, a given number at a time:
//! `cargo run --release -p poolwright-cli --example online -- fixtures/traces/openb_pod_list_gpuspec33.csv 100`.
//! A third argument names a catalogue to use instead of AWS's on-demand offerings. With `first-fit` instead of the number, all
//! pods arrive at once and are placed as by an autoscaler that packs without regard to prices.
//!
//! Nothing else changes between two batches, no pod ends, and each pod belongs to a ReplicaSet of its own. Moves are made as the
//! controller makes them, one proposal after the other under the budgets of a pool with default settings, and each completes at
//! once.

#![expect(clippy::disallowed_methods, reason = "how long it takes is a part of what it tells")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;
use std::{env, fs};

use jiff::{SignedDuration, Timestamp};
use poolwright_catalog::{Catalogue, RankedOffering, ResourceName, UsdPerHour, builtin, read_csv};
use poolwright_cli::trace::{GpuMap, read};
use poolwright_core::disruption::{MoveHistory, propose};
use poolwright_core::plan::{MovedTo, Plan, PlanOptions, PlannedClaim, plan};
use poolwright_core::{
    Claim, ClaimName, Condition, Deadlines, Disruption, Launched, Node, ObjectKey, Pod, PodKey, PodPhase,
    Pool, PoolLimits, PoolName, ScaleToZero, Snapshot, SpotRules, Uid, Workload,
};
use poolwright_solver::NeverStop;
use poolwright_solver::baseline::first_fit_nodes;
use poolwright_terms::{CapacityType, ConditionStatus, ConditionType, NodeClassRef, labels};

const START: Timestamp = Timestamp::UNIX_EPOCH;

fn main() {
    let mut arguments = env::args().skip(1);
    let file = arguments.next().expect("which trace");
    let text = fs::read_to_string(&file).expect("the trace can be read");
    let trace = read(&file, &text, &GpuMap::builtin()).map_err(|_| "it is no trace").expect("a trace");
    let how = arguments.next().unwrap_or_else(|| "100".to_owned());
    let at_a_time: Option<usize> =
        (how != "first-fit").then(|| how.parse().expect("how many at a time, or first-fit"));
    let catalogue = match arguments.next() {
        Some(file) => {
            let text = fs::read_to_string(&file).expect("the catalogue can be read");
            read_csv(&[(&file, &text)]).map_err(|_| "it is no catalogue").expect("a catalogue")
        }
        None => builtin().filtered(|kind, offering| {
            kind.provider.as_str() == "aws" && offering.id.capacity_type == CapacityType::OnDemand
        }),
    };
    let mut world = World::new(catalogue);
    for (number, pod) in trace.pods.iter().enumerate() {
        let mut spec = pod.spec();
        // A pod with a share of a GPU gets a whole GPU, which it also requests on its node.
        if spec.gpu_share.take().is_some() {
            spec.requests.set(ResourceName::NVIDIA_GPU, spec.requests.get(ResourceName::NVIDIA_GPU) + 1);
        }
        world.wanted.push(waiting(number, spec));
    }
    let whole = world.at_once();
    println!("{} pods, all at once: {:#}, bound {:#}", trace.pods.len(), whole.cost, whole.bound);
    let began = Instant::now();
    let all = std::mem::take(&mut world.wanted);
    match at_a_time {
        Some(at_a_time) => {
            for batch in all.chunks(at_a_time) {
                world.come(batch);
            }
        }
        None => world.first_fit(&all),
    }
    let took = began.elapsed().as_secs_f64();
    let (nodes, cost) = (world.snapshot.claims.len(), world.cost());
    println!("{how} at a time: {cost:#} on {nodes} nodes, {}, {took:.0} s", above(cost, whole.bound));
    let began = Instant::now();
    let (mut moves, mut evictions, mut gone, mut gpus) = (0, 0, 0, 0);
    for day in 1.. {
        // A moved pod stays for a day, because a move must pay back within that time.
        world.now += SignedDuration::from_hours(25);
        let before = moves;
        while let Some(done) = world.step() {
            (moves, evictions) = (moves + 1, evictions + done.evicted);
            (gone, gpus) = (gone + done.left, gpus + done.milli_gpus);
        }
        let (cost, took) = (world.cost(), began.elapsed().as_secs_f64());
        println!(
            "  day {day}: {moves} moves, {evictions} evictions, {gone} nodes: {cost:#}, {}, {took:.0} s",
            above(cost, whole.bound)
        );
        if moves == before {
            break;
        }
    }
    world.audit();
    let (nodes, cost, took) = (world.snapshot.claims.len(), world.cost(), began.elapsed().as_secs_f64());
    println!(
        "moved: {cost:#} on {nodes} nodes, {}, {moves} moves, {evictions} evictions, {gone} nodes emptied, {took:.0} s",
        above(cost, whole.bound)
    );
    let lost = gpus * RESTART_MINUTES / 60;
    println!(
        "lost: {}.{:03} GPU-hours, at {RESTART_MINUTES} minutes of its GPUs for each pod that starts again",
        lost / 1000,
        lost % 1000
    );
}

/// The loss of an evicted pod without known checkpoints: the time of a start.
const RESTART_MINUTES: u64 = 5;

/// The effects of a move.
struct Done {
    /// The number of evicted pods.
    evicted: usize,
    /// The number of removed nodes.
    left: usize,
    /// The GPUs of the evicted pods, in thousandths.
    milli_gpus: u64,
}

fn above(cost: UsdPerHour, bound: UsdPerHour) -> String {
    format!("{:.2} % above the bound", (cost.as_f64() / bound.as_f64() - 1.0) * 100.0)
}

fn waiting(number: usize, spec: poolwright_core::PodSpec) -> Pod {
    let name = format!("pod-{number:05}");
    let owner = Some(Uid(format!("set-{number:05}")));
    let phase = PodPhase::Unschedulable { since: START, message: String::new() };
    Pod { owner, phase, created: START, ..Pod::waiting(PodKey::new("default", name), spec) }
}

struct World {
    snapshot: Snapshot,
    wanted: Vec<Pod>,
    move_history: MoveHistory,
    options: PlanOptions,
    now: Timestamp,
}

impl World {
    fn new(catalogue: Catalogue) -> Self {
        let node_class = NodeClassRef {
            group: "poolwright.dev".to_owned(),
            kind: "KwokNodeClass".to_owned(),
            name: "aws".to_owned(),
        };
        // The payback ignores the loss of evicted pods, because the example measures the costs that moves lead to.
        let disruption = Disruption {
            consolidates: true,
            consolidate_after: Some(SignedDuration::ZERO),
            payback: SignedDuration::from_hours(24),
            ..Disruption::default()
        };
        let pool = Pool {
            name: PoolName("gpu".to_owned()),
            uid: Uid("gpu".to_owned()),
            labels: BTreeMap::new(),
            annotations: BTreeMap::new(),
            taints: Vec::new(),
            startup_taints: Vec::new(),
            readiness_gates: Vec::new(),
            requirements: Vec::new(),
            node_class: node_class.clone(),
            weight: 1,
            limits: PoolLimits::default(),
            monthly_budget: None,
            min_values: [].into(),
            spot: SpotRules::default(),
            allow_unknown_price: [].into(),
            scale_to_zero: ScaleToZero::Never,
            replicas: None,
            buffer: Vec::new(),
            disruption,
            deadlines: Deadlines::default(),
            deleting: false,
            problem: None,
            is_implicit: false,
        };
        let mut snapshot = Snapshot::default();
        snapshot.catalogues.insert(node_class, Ok(Arc::new(catalogue)));
        snapshot.pools.insert(pool.name.clone(), Arc::new(pool));
        // A limited search is enough, because there are hundreds of searches.
        let solver = poolwright_solver::Options { work: 1_000_000, ..poolwright_solver::Options::default() };
        let options = PlanOptions { baselines: false, solver, ..PlanOptions::default() };
        Self { snapshot, wanted: Vec::new(), move_history: MoveHistory::default(), options, now: START }
    }

    fn cost(&self) -> UsdPerHour {
        self.snapshot.claims.values().filter_map(|claim| claim.current_offering().price).sum()
    }

    fn plan(&self) -> Plan {
        plan(&self.snapshot, self.now, &self.options, &mut NeverStop)
    }

    /// Plans all pods at once.
    fn at_once(&self) -> Plan {
        let mut snapshot = self.snapshot.clone();
        for pod in &self.wanted {
            snapshot.pods.insert(pod.key.clone(), Arc::new(pod.clone()));
        }
        plan(&snapshot, self.now, &self.options, &mut NeverStop)
    }

    /// Adds pending pods.
    fn arrive(&mut self, pods: &[Pod]) {
        self.now += SignedDuration::from_mins(1);
        for pod in pods {
            let uid = pod.owner.clone().expect("each has one");
            let key = ObjectKey::new("default", uid.0.clone());
            let kind = "ReplicaSet".to_owned();
            let set = Workload {
                kind,
                key,
                uid,
                owner: None,
                total: 1,
                wanted: 1,
                current: 1,
                scheduling_gated: false,
                selector: None,
            };
            self.snapshot.workloads.insert((set.kind.clone(), set.key.clone()), Arc::new(set));
            self.snapshot.pods.insert(pod.key.clone(), Arc::new(pod.clone()));
        }
    }

    /// Adds pods all at once, and places them by first fit.
    fn first_fit(&mut self, pods: &[Pod]) {
        self.arrive(pods);
        let options = PlanOptions { keep_solves: true, ..self.options.clone() };
        let plan = plan(&self.snapshot, self.now, &options, &mut NeverStop);
        let [solve] = plan.solves.as_slice() else { panic!("{} solves", plan.solves.len()) };
        let mut pods = solve.pods.clone();
        let example = plan.claims.first().expect("something is bought").clone();
        for (number, node) in first_fit_nodes(&solve.problem).iter().enumerate() {
            let candidate = &solve.problem.candidates[node.candidate as usize];
            let planned = self.ordered(&example, number, &candidate.name);
            self.open(&planned);
            for (class, count) in &node.pods {
                for _ in 0..*count {
                    let pod = pods[*class as usize].pop().expect("as many as the class has");
                    self.bind(&pod, &planned.name.0);
                }
            }
        }
        assert!(pods.iter().all(Vec::is_empty), "each has its place");
    }

    /// Returns a claim for a node of this offering.
    fn ordered(&self, example: &PlannedClaim, number: usize, offering: &str) -> PlannedClaim {
        let Ok(catalogue) = &self.snapshot.catalogues[&example.node_class] else { panic!("it sells") };
        let sold = catalogue.offerings().iter().find(|sold| offering.ends_with(&sold.id.to_string()));
        let sold = sold.unwrap_or_else(|| panic!("{offering} is not sold"));
        let ranked = RankedOffering {
            offering: sold.id.clone(),
            price: sold.price.known(),
            allocatable: catalogue.types()[&sold.id.instance_type].allocatable.clone(),
        };
        let name = ClaimName(format!("fit-{number:05}"));
        PlannedClaim { name, offerings: vec![ranked], ..example.clone() }
    }

    /// Adds pods, and carries out the plan for them.
    fn come(&mut self, pods: &[Pod]) {
        self.arrive(pods);
        let plan = self.plan();
        assert!(plan.refused.is_empty() && plan.unplaced.is_empty(), "{:?}", plan.unplaced.first());
        for claim in &plan.claims {
            self.open(claim);
            for pod in &claim.planned_pods {
                self.bind(pod, &claim.name.0);
            }
        }
        for placement in &plan.placements {
            self.bind(&placement.pod, placement.target.name());
        }
    }

    fn bind(&mut self, pod: &PodKey, node: &str) {
        let phase = PodPhase::Bound { node: node.to_owned() };
        let pod = Pod { phase, ..self.snapshot.pods[pod].as_ref().clone() };
        self.snapshot.pods.insert(pod.key.clone(), Arc::new(pod));
    }

    /// Checks that every node holds its pods, and that every pod has a node.
    fn audit(&self) {
        for node in self.snapshot.nodes.values() {
            let there = self.snapshot.pods.on_node(&node.name);
            let fits = there.is_none_or(|there| there.requests.fits(&node.allocatable));
            assert!(fits, "node {} has more than it holds", node.name);
        }
        assert_eq!(self.snapshot.pods.unbound().count(), 0, "everybody has a place");
    }

    /// Adds the claim and its open node.
    fn open(&mut self, planned: &PlannedClaim) {
        let id = planned.offerings[0].offering.clone();
        let name = planned.name.0.clone();
        let mut of_node = match &self.snapshot.catalogues[&planned.node_class] {
            Ok(catalogue) => {
                catalogue.offering(&id).map(|one| catalogue.node_labels(one)).unwrap_or_default()
            }
            Err(_) => BTreeMap::new(),
        };
        of_node.insert(labels::HOSTNAME.to_owned(), name.clone());
        let provider_id = format!("online://{name}");
        let node = Node {
            name: name.clone(),
            provider_id: Some(provider_id.clone()),
            labels: of_node,
            taints: Vec::new(),
            allocatable: planned.offerings[0].allocatable.clone(),
            ready: true,
            cordoned: false,
            cordoned_until_initialized: false,
            do_not_disrupt: false,
            deleting_since: None,
            unhealthy_conditions: Vec::new(),
        };
        let opened = Condition {
            status: ConditionStatus::True,
            since: self.now,
            reason: None,
            message: String::new(),
        };
        let claim = Claim {
            name: ClaimName(name.clone()),
            uid: Uid(name.clone()),
            pool: planned.pool.clone(),
            node_class: planned.node_class.clone(),
            offerings: planned.offerings.clone(),
            labels: planned.labels.clone(),
            annotations: planned.annotations.clone(),
            taints: Vec::new(),
            startup_taints: Vec::new(),
            readiness_gates: Vec::new(),
            planned_pods: Vec::new(),
            reason: planned.reason.clone(),
            do_not_disrupt: false,
            bought_again: false,
            deadlines: planned.deadlines,
            created: self.now,
            interruption: None,
            deleting_since: None,
            launched: Some(Launched { provider_id, offering: id }),
            node_name: Some(name.clone()),
            conditions: [(ConditionType::Initialized, opened)].into(),
        };
        self.snapshot.claims.insert(claim.name.clone(), Arc::new(claim));
        self.snapshot.nodes.insert(name, Arc::new(node));
    }

    /// Carries out the next proposal.
    fn step(&mut self) -> Option<Done> {
        // New nodes start and old ones are drained meanwhile.
        self.now += SignedDuration::from_mins(10);
        let current = self.plan();
        let found = loop {
            let outlook = propose(
                &self.snapshot,
                &current,
                &self.move_history,
                self.now,
                &self.options,
                &mut NeverStop,
            );
            self.move_history.record_search(&outlook);
            match outlook.proposal {
                Some(proposal) => break proposal,
                None if outlook.has_untried => {}
                None => return None,
            }
        };
        self.move_history.record(&self.snapshot, &found, self.now);
        for claim in &found.plan.claims {
            self.open(claim);
        }
        let mut milli_gpus = 0;
        for moved in &found.plan.moved {
            if let Some(pod) = self.snapshot.pods.get(&moved.pod) {
                let whole = pod.spec.requests.get(ResourceName::NVIDIA_GPU);
                milli_gpus += whole * 1000 + pod.spec.gpu_share.map_or(0, u64::from);
            }
            match &moved.to {
                MovedTo::Existing(target) => self.bind(&moved.pod, target.name()),
                MovedTo::New(name) => self.bind(&moved.pod, &name.0),
                MovedTo::Unplaced(_) | MovedTo::NoSuccessor => unreachable!("such a proposal is none"),
            }
        }
        for leave in &found.nodes_to_empty {
            self.snapshot.claims.remove(&leave.claim);
            self.snapshot.nodes.remove(&leave.claim.0);
        }
        Some(Done { evicted: found.plan.moved.len(), left: found.nodes_to_empty.len(), milli_gpus })
    }
}
