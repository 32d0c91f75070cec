//! A world that changes: teams with pools and workloads, and what a user changes next. Everything comes from a seed.
//!
//! A cluster has freedom that a plan has not: the scheduler chooses which waiting pods get free room, and on which nodes. So if nodes
//! exist, a change adds pods of one kind only, and a team whose pods wait gets nothing but larger pools. All pods belong to services,
//! because how long other pods run would count for the controller, but not for manifests.

use poolwright_plane::trial::{Random, node_pool, pod};
use serde_json::{Value, json};

/// The node class of all pools.
pub const CLASS: &str = "kwok";
/// The label by which the pods of a team choose its pools.
const TEAM: &str = "example.com/team";
/// Instance families, with the GPU model of each.
const FAMILIES: [(&str, &str); 3] = [("g4dn", "t4"), ("g5", "a10g"), ("g6", "l4")];
/// What a pool may limit, with the least limit and the number of others.
const LIMITS: [(&str, u64, u64); 3] = [("nodes", 1, 4), ("usdPerHour", 2, 12), ("nvidia.com/gpu", 2, 10)];

/// A pool.
#[derive(Debug)]
struct Pool {
    name: String,
    team: String,
    families: Vec<&'static str>,
    /// The families that it may not buy any more.
    without: Vec<&'static str>,
    is_spot: bool,
    weight: u64,
    limit: Option<(&'static str, u64)>,
}

impl Pool {
    fn new(name: String, team: &str, weight: u64, random: &mut Random) -> Self {
        let left_out = random.below(4) as usize;
        let families = FAMILIES.iter().enumerate().filter(|(at, _)| *at != left_out);
        let limit = LIMITS.get(random.below(5) as usize);
        Self {
            name,
            team: team.to_owned(),
            families: families.map(|(_, (family, _))| *family).collect(),
            without: Vec::new(),
            is_spot: random.below(2) == 0,
            weight,
            limit: limit.map(|(what, least, others)| (*what, least + random.below(*others))),
        }
    }

    /// Lets it buy more.
    fn widen(&mut self, random: &mut Random) {
        self.is_spot = true;
        if let Some((_, most)) = &mut self.limit {
            *most += 1 + random.below(4);
        }
    }

    /// Returns the NodePool. It leaves nodes with work alone, because what disruption saves later is not in an answer.
    fn object(&self) -> Value {
        let requirement = |key: &str, operator: &str, values: &[&str]| json!({"key": key, "operator": operator, "values": values});
        let capacity: &[&str] = if self.is_spot { &["on-demand", "spot"] } else { &["on-demand"] };
        let family = "poolwright.dev/instance-family";
        let mut requirements = vec![
            requirement("poolwright.dev/capacity-type", "In", capacity),
            requirement(family, "In", &self.families),
        ];
        if !self.without.is_empty() {
            requirements.push(requirement(family, "NotIn", &self.without));
        }
        let mut object = node_pool(
            &self.name,
            json!({
                "weight": self.weight,
                "template": {
                    "metadata": {"labels": {(TEAM): self.team}},
                    "spec": {"nodeClassRef": {"name": CLASS}, "requirements": requirements},
                },
                "disruption": {
                    "consolidationPolicy": "WhenEmpty",
                    "retire": "Never",
                    "budgets": [{"nodes": "0", "reasons": ["Drifted", "Underutilized"]}],
                },
            }),
        );
        if let Some((what, most)) = self.limit {
            object["spec"]["limits"] = json!({(what): most.to_string()});
        }
        object
    }
}

/// A workload whose pods are all alike.
#[derive(Debug)]
struct Workload {
    name: String,
    team: String,
    kind: &'static str,
    replicas: u64,
    cpu: u64,
    memory: u64,
    gpus: u64,
    model: Option<&'static str>,
}

impl Workload {
    fn new(name: String, team: &str, random: &mut Random) -> Self {
        let gpus = [0, 1, 1, 1, 2, 4][random.below(6) as usize];
        let model = FAMILIES.get(random.below(6) as usize).map(|(_, model)| *model);
        Self {
            name,
            team: team.to_owned(),
            kind: ["Deployment", "StatefulSet"][random.below(2) as usize],
            replicas: 1 + random.below(4),
            cpu: [1, 2, 3, 6][random.below(4) as usize],
            memory: [2, 6, 12, 24][random.below(4) as usize],
            gpus,
            model: model.filter(|_| gpus > 0),
        }
    }

    /// Returns its name as flags have it: `statefulset/t1-1`.
    fn named(&self) -> String {
        format!("{}/{}", self.kind.to_lowercase(), self.name)
    }

    fn object(&self, namespace: &str) -> Value {
        let mut requests = json!({"cpu": self.cpu.to_string(), "memory": format!("{}Gi", self.memory)});
        if self.gpus > 0 {
            requests["nvidia.com/gpu"] = json!(self.gpus.to_string());
        }
        let mut spec = pod("-", "", requests)["spec"].take();
        spec["nodeSelector"] = json!({(TEAM): self.team});
        if let Some(model) = self.model {
            spec["nodeSelector"]["poolwright.dev/gpu-model"] = json!(model);
        }
        let labels = json!({"app": self.name});
        let mut object = json!({
            "apiVersion": "apps/v1", "kind": self.kind,
            "metadata": {"name": self.name, "namespace": namespace},
            "spec": {
                "replicas": self.replicas,
                "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": spec},
            },
        });
        if self.kind == "StatefulSet" {
            object["spec"]["serviceName"] = json!(self.name);
            object["spec"]["podManagementPolicy"] = json!("Parallel");
        }
        object
    }
}

#[derive(Debug)]
struct Team {
    name: String,
    pools: Vec<Pool>,
    workloads: Vec<Workload>,
    /// The number of workloads that it ever had.
    named: usize,
    /// Whether pods of it wait.
    waits: bool,
}

impl Team {
    fn new(name: String, random: &mut Random) -> Self {
        // With a second pool, the first one has a higher weight.
        let count = 1 + random.below(2);
        let pools =
            (0..count).map(|at| Pool::new(format!("{name}-pool-{at}"), &name, (count - 1 - at) * 10, random));
        let pools = pools.collect();
        let mut team = Self { name, pools, workloads: Vec::new(), named: 0, waits: false };
        for _ in 0..=random.below(3) {
            team.add(random);
        }
        team
    }

    /// Adds a workload, and returns it.
    fn add(&mut self, random: &mut Random) -> &Workload {
        self.named += 1;
        self.workloads.push(Workload::new(format!("{}-{}", self.name, self.named), &self.name, random));
        &self.workloads[self.workloads.len() - 1]
    }

    fn pool_objects(&self) -> Vec<Value> {
        self.pools.iter().map(Pool::object).collect()
    }
}

/// A change, as flags of `what-if` and as objects.
#[derive(Debug, Default)]
pub struct Change {
    /// Flags without files.
    pub flags: Vec<String>,
    /// The objects for `--pool`.
    pub pools: Vec<Value>,
    /// The objects for `-f`.
    pub work: Vec<Value>,
    /// What to apply besides, because a flag means it.
    pub meant: Vec<Value>,
    /// The kind and the name of what to delete.
    pub deleted: Option<(&'static str, String)>,
}

/// The world.
#[derive(Debug)]
pub struct World {
    namespace: String,
    teams: Vec<Team>,
}

impl World {
    /// Creates a world without teams, whose workloads will be in this namespace.
    pub fn new(namespace: String) -> Self {
        Self { namespace, teams: Vec::new() }
    }

    /// Returns the number of pods that its workloads have.
    pub fn pods(&self) -> usize {
        let workloads = self.teams.iter().flat_map(|team| &team.workloads);
        workloads.map(|workload| workload.replicas as usize).sum()
    }

    /// Remembers whose pods wait. `waiting` has their names, with their namespaces.
    pub fn remember_waiting(&mut self, waiting: &[String]) {
        for team in &mut self.teams {
            let prefix = format!("{}/{}-", self.namespace, team.name);
            team.waits = waiting.iter().any(|pod| pod.starts_with(&prefix));
        }
    }

    /// Changes something.
    pub fn change(&mut self, random: &mut Random) -> Change {
        let which = random.below(6);
        let at = random.below(self.teams.len().max(1) as u64) as usize;
        let change = self.teams.get_mut(at).and_then(|team| match (which, team.waits) {
            (1, false) => grow(team, &self.namespace, random),
            (2, false) => shrink(team, &self.namespace, random),
            (3, false) => remove(team, random),
            (4, _) => Some(widen(team, &self.namespace, random)),
            (5, false) => leave_out(team, &self.namespace, random),
            _ => None,
        });
        change.unwrap_or_else(|| self.found(random))
    }

    /// Adds a team. No node of it exists, so its workloads may differ.
    fn found(&mut self, random: &mut Random) -> Change {
        let team = Team::new(format!("t{}", self.teams.len() + 1), random);
        let work = team.workloads.iter().map(|workload| workload.object(&self.namespace)).collect();
        let change = Change { pools: team.pool_objects(), work, ..Change::default() };
        self.teams.push(team);
        change
    }
}

/// Gives a workload more replicas.
fn grow(team: &mut Team, namespace: &str, random: &mut Random) -> Option<Change> {
    let workload = team.workloads.first_mut()?;
    workload.replicas += 1 + random.below(3);
    Some(scaled(workload, namespace))
}

/// Gives a workload fewer replicas. Which pods go then, only a StatefulSet says in advance.
fn shrink(team: &mut Team, namespace: &str, random: &mut Random) -> Option<Change> {
    let can = |one: &&mut Workload| one.kind == "StatefulSet" && one.replicas > 1;
    let workload = team.workloads.iter_mut().find(can)?;
    workload.replicas -= 1 + random.below(workload.replicas - 1);
    Some(scaled(workload, namespace))
}

fn scaled(workload: &Workload, namespace: &str) -> Change {
    let flags = vec!["--replicas".to_owned(), format!("{}={}", workload.named(), workload.replicas)];
    Change { flags, meant: vec![workload.object(namespace)], ..Change::default() }
}

/// Removes a workload.
fn remove(team: &mut Team, random: &mut Random) -> Option<Change> {
    if team.workloads.is_empty() {
        return None;
    }
    let at = random.below(team.workloads.len() as u64) as usize;
    let gone = team.workloads.remove(at);
    let flags = vec!["--remove".to_owned(), gone.named()];
    Some(Change { flags, deleted: Some((gone.kind, gone.name)), ..Change::default() })
}

/// Lets the pools of a team buy more, and adds pods if none wait.
fn widen(team: &mut Team, namespace: &str, random: &mut Random) -> Change {
    for pool in &mut team.pools {
        pool.widen(random);
    }
    let pools = team.pool_objects();
    let work = if team.waits { Vec::new() } else { vec![team.add(random).object(namespace)] };
    Change { pools, work, ..Change::default() }
}

/// Takes a family away from a team, and adds pods. What waits elsewhere waits with fewer types, too.
fn leave_out(team: &mut Team, namespace: &str, random: &mut Random) -> Option<Change> {
    let first = team.pools.first()?;
    let sold: Vec<&'static str> =
        first.families.iter().filter(|family| !first.without.contains(family)).copied().collect();
    if sold.is_empty() {
        return None;
    }
    let family = sold[random.below(sold.len() as u64) as usize];
    for pool in &mut team.pools {
        pool.without.push(family);
    }
    let flags = vec!["--without".to_owned(), format!("{family}.*")];
    let (meant, work) = (team.pool_objects(), vec![team.add(random).object(namespace)]);
    Some(Change { flags, work, meant, ..Change::default() })
}
