//! The pools and node classes of a replay, in the form that the API server accepts.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use poolwright_api::{NodePool, strict};
use poolwright_catalog::Catalogue;
use poolwright_core::{Pod, Pool, rules};
use poolwright_intake::IntakeError;
use poolwright_intake::manifest::{self, Manifest, WrittenObject};
use poolwright_report::replay::baselines::waits_for_agents;
use poolwright_sim::cloud::NODE_CLASS_KIND;
use poolwright_terms::{API_VERSION, GROUP, NodeClassRef, Taint, TaintEffect};
use serde_json::{Value, json};

use super::policy::Policy;
use super::snapshot::bare;
use crate::args::{ConsolidationChoice, PoolOverrides};
use crate::clouds::is_node_class;
use crate::exit::Failure;
use crate::node_classes::{self, Known};
use crate::not_sold::{self, LeftOut, Range};
use crate::plan::sold_by_missing;
use crate::problems::Problems;
use crate::source::{self, Source};
use crate::{overrides, schema};

/// Pools and their catalogues.
#[derive(Clone, Debug, Default)]
pub struct Pools {
    /// The objects to create: node classes, then pools.
    pub objects: Vec<Value>,
    /// The pools as the core sees them.
    pub models: Vec<Pool>,
    /// The catalogue of each node class.
    pub sold: BTreeMap<NodeClassRef, Arc<Catalogue>>,
    known: Known,
    left_out: LeftOut,
    /// Notes on how the input was understood.
    pub notes: Vec<String>,
}

/// Reads the files and applies the policies and overrides to all pools in them.
pub fn read(
    files: &[PathBuf],
    policies: &[String],
    overrides: &PoolOverrides,
    prices: &Catalogue,
) -> Result<Result<Pools, Problems>, Failure> {
    Ok(of(&source::manifests(files)?, policies, overrides, prices))
}

/// Applies the policies and overrides to all pools of these sources.
pub fn of(
    sources: &[Source],
    policies: &[String],
    overrides: &PoolOverrides,
    prices: &Catalogue,
) -> Result<Pools, Problems> {
    of_sources(sources, policies, overrides).and_then(|pools| pools.selling(prices))
}

fn of_sources(sources: &[Source], policies: &[String], overrides: &PoolOverrides) -> Result<Pools, Problems> {
    let (mut manifest, mut errors) = source::parsed(sources, &[]);
    let (mut classes, mut pools, mut others) = (Vec::new(), Vec::new(), 0);
    let (mut stored, mut foreign) = (Vec::new(), Problems::new());
    for source in sources {
        let objects = manifest::objects(&source.name, &source.text).unwrap_or_default();
        for object in objects {
            let kind = object["kind"].as_str().unwrap_or_default();
            if kind != "NodePool" && !is_node_class(kind) {
                others += 1;
                continue;
            }
            let name = format!("{kind} {}", object["metadata"]["name"].as_str().unwrap_or_default());
            let version = object["apiVersion"].as_str().unwrap_or_default();
            if version.split('/').next() != Some(GROUP) {
                foreign.push(format!(
                    "{}: {name}: apiVersion: `{version}` is not Poolwright's; convert the object with `poolwright convert`, or write \
                     `{API_VERSION}`",
                    source.name
                ));
                continue;
            }
            if manifest.left_out.contains(&name) {
                continue;
            }
            // What the cluster wrote belongs to another cluster.
            let mut written = bare(&object);
            if object["metadata"]["uid"].is_string() || object["metadata"]["resourceVersion"].is_string() {
                // A note names them.
                remove_unknown(&mut written);
                let (file, object) = (source.name.clone(), written.clone());
                stored.push(WrittenObject { file, name, object });
            }
            if kind == "NodePool" { pools.push(written) } else { classes.push(written) }
        }
    }
    // All of them are created anew, and no others.
    manifest.written.retain(|one| one.object["kind"] != "NodeClaim");
    let (known, found) = node_classes::read(&manifest.node_classes, &mut manifest.notes);
    errors.extend(found);
    // A stored class that cannot be read is a problem only of the pools that name it.
    let is_broken = |class: &Value| {
        known.broken.keys().any(|name| class["kind"] == *name.kind && class["metadata"]["name"] == *name.name)
    };
    classes.retain(|class| !is_broken(class));
    manifest.written.extend(stored.into_iter().filter(|one| !is_broken(&one.object)));
    let refused = schema::refused_written(&manifest.written, &errors);
    errors.extend(refused);
    let mut problems = Problems::all(&errors);
    problems.extend(foreign);
    if problems.is_empty() && pools.is_empty() {
        let mut lost = lost(&manifest).peekable();
        if lost.peek().is_none() {
            problems.push(
                "the files of --pools have no NodePool; add one, because Poolwright buys nothing without it",
            );
        }
        for note in lost {
            problems.push(note);
        }
    }
    // Overrides come last, because they count instead of what the pools say.
    let fields = overrides.consolidation.map(ConsolidationChoice::fields).unwrap_or_default();
    let fields = fields.iter().map(|field| (*field).to_owned());
    let policies: Vec<String> = policies.iter().cloned().chain(fields).collect();
    let policies = read_policies(&policies, &mut problems);
    let mut pools: Vec<Value> = pools.iter().map(|pool| lay(pool, &policies, &mut problems)).collect();
    // Only a pool that is right otherwise has a place for them.
    if problems.is_empty() {
        for pool in &mut pools {
            overrides::spot_rules_in_object(overrides, pool);
        }
    }
    if problems.is_empty() && !overrides.min_values.is_empty() {
        for pool in &mut pools {
            overrides::min_values_in_object(overrides, pool);
            for problem in wrong(pool) {
                problems.push(format!("--min-values: {problem}"));
            }
        }
    }
    let mut notes = manifest.notes;
    notes.extend(overrides::notes(overrides));
    if others > 0 {
        notes.push(format!("ignored objects that are neither NodePools nor node classes: {others}"));
    }
    let mut models = Vec::new();
    if problems.is_empty() {
        for pool in &pools {
            match manifest::parse("--pools", &pool.to_string()) {
                Ok(read) => models.extend(read.pools),
                Err(errors) => errors.iter().for_each(|error| problems.push(error)),
            }
        }
    }
    let objects = classes.into_iter().chain(pools).collect();
    problems.or(Pools { objects, models, known, notes, ..Pools::default() })
}

/// Returns the notes on objects that are left out.
fn lost(manifest: &Manifest) -> impl Iterator<Item = &String> {
    let is_lost = move |note: &&String| {
        note.split_once(": ").is_some_and(|(object, _)| manifest.left_out.contains(object))
    };
    manifest.notes.iter().filter(is_lost)
}

/// Removes the fields of a stored pool that this version does not know. The simulated API server removes those of node classes.
fn remove_unknown(pool: &mut Value) {
    if pool["kind"] != "NodePool" {
        return;
    }
    for problem in strict::read::<NodePool>(pool).err().unwrap_or_default() {
        if problem.cause == strict::UNKNOWN_FIELD {
            strict::remove(pool, &problem.path);
        }
    }
}

fn read_policies(texts: &[String], problems: &mut Problems) -> Vec<Policy> {
    let read = |text: &String| Policy::read(text).map_err(|problem| problems.push(problem)).ok();
    texts.iter().filter_map(read).collect()
}

/// Returns the pool with all policies. Problems that the pool does not have without them are reported for the policy that causes
/// them.
fn lay(pool: &Value, policies: &[Policy], problems: &mut Problems) -> Value {
    let mut with_all = pool.clone();
    if policies.is_empty() {
        return with_all;
    }
    let own = wrong(pool);
    let caused = |pool: &Value| wrong(pool).into_iter().filter(|problem| !own.contains(problem));
    let before = problems.len();
    for policy in policies {
        let mut with_one = pool.clone();
        if let Err(problem) = policy.apply(&mut with_one) {
            problems.push(problem);
            continue;
        }
        for problem in caused(&with_one) {
            problems.push(format!("--policy {}: {problem}", policy.text));
        }
        if let Err(problem) = policy.apply(&mut with_all) {
            problems.push(problem);
        }
    }
    // Policies that are right alone may be wrong together.
    if problems.len() == before {
        for problem in caused(&with_all) {
            problems.push(format!("--policy: {problem}"));
        }
    }
    with_all
}

/// Returns what is wrong with a pool: what an API server refuses, and the parts that have no meaning, such as misspelt fields.
fn wrong(pool: &Value) -> Vec<String> {
    let text = pool.to_string();
    let (manifest, mut errors) = manifest::read_files([("", text.as_str())], &[]);
    let refused = schema::refused_written(&manifest.written, &errors);
    errors.extend(refused);
    let bare = |error: IntakeError| IntakeError { file: None, ..error };
    errors.into_iter().map(|error| bare(error).to_string()).collect()
}

/// Says how the nodes of a pool lose their startup taints and pass their readiness gates. Other methods play that if it is so
/// in all pools.
fn agents(pool: &Pool, in_all: bool) -> Option<String> {
    let mut what: Vec<String> = Vec::new();
    let taints: Vec<String> = pool.startup_taints.iter().map(|taint| format!("`{taint}`")).collect();
    if !taints.is_empty() {
        what.push(format!("lose their startup taints ({})", taints.join(", ")));
    }
    let gates: Vec<&str> =
        pool.readiness_gates.iter().map(String::as_str).filter(|gate| *gate != "Ready").collect();
    if !gates.is_empty() {
        what.push(format!("pass their readiness gates ({})", gates.join(", ")));
    }
    let what = (!what.is_empty()).then(|| what.join(" and "))?;
    let others = if in_all {
        "nodes of other methods wait as long"
    } else {
        "other methods start nodes without that time, because not all pools have it"
    };
    Some(format!(
        "NodePool {}: its nodes {what} 2 to 20 seconds after they join, as if the agent that does this ran; {others}",
        pool.name
    ))
}

/// Names the taints of pools that no pod tolerates, so that the pool's nodes would get no pod.
pub fn intolerable<'a>(pools: &[Pool], pods: impl Iterator<Item = &'a Pod> + Clone) -> Vec<String> {
    let mut notes = Vec::new();
    for pool in pools {
        let keeps_off = |taint: &&Taint| taint.effect != TaintEffect::PreferNoSchedule;
        for taint in pool.taints.iter().filter(keeps_off) {
            let tolerates =
                |pod: &Pod| pod.spec.tolerations.iter().any(|toleration| rules::tolerates(toleration, taint));
            if pods.clone().next().is_some() && !pods.clone().any(tolerates) {
                notes.push(format!(
                    "NodePool {}: no pod tolerates its taint `{taint}`, so none of them can run on its nodes. If an agent removes this taint \
                     when it runs (as Cilium does), move it from spec.template.spec.taints to startupTaints; else add a toleration to pods",
                    pool.name
                ));
            }
        }
    }
    notes
}

impl Pools {
    /// Says which types pools and pods ask for by name although no class sells them by default, and which values no offering has.
    pub fn not_sold<'a>(
        &'a self,
        prices: &Catalogue,
        pods: impl Iterator<Item = &'a Pod> + Clone,
    ) -> Vec<String> {
        let range = |(class, sold): (&'a NodeClassRef, &'a Arc<Catalogue>)| Range {
            class,
            sold,
            left_out: self.left_out.get(class),
        };
        let ranges: Vec<Range<'_>> = self.sold.iter().map(range).collect();
        let mut notes = not_sold::notes(&ranges, prices, self.models.iter(), pods.clone());
        // A replay begins without nodes.
        notes.extend(not_sold::unknown(prices, self.models.iter(), pods, std::iter::empty()));
        notes
    }

    /// Returns whether the nodes of all pools wait for agents, so that those of other methods do too.
    pub fn all_wait_for_agents(&self) -> bool {
        self.models.iter().all(waits_for_agents)
    }

    /// Adds the catalogue of each class.
    fn selling(mut self, prices: &Catalogue) -> Result<Self, Problems> {
        let mut problems = Problems::new();
        for (name, why) in &self.known.broken {
            if self.models.iter().any(|pool| pool.node_class == *name) {
                problems.push(why);
            } else {
                self.notes.push(format!("left out: {why}"));
            }
        }
        for (name, class) in &self.known.classes {
            let provider = class.facts.provider.as_deref();
            let sells =
                prices.filtered(|kind, _| provider.is_none_or(|wanted| kind.provider.as_str() == wanted));
            if sells.offerings().is_empty() {
                let provider = provider.unwrap_or_default();
                problems.push(format!(
                    "{name}: --prices have no offering of `{provider}`; correct the node class, or pass prices of `{provider}`"
                ));
                continue;
            }
            match class.sells(name, &sells, &mut self.notes, &mut self.left_out) {
                Ok(sells) => {
                    self.sold.insert(name.clone(), Arc::new(sells));
                }
                Err(why) => problems.push(why),
            }
        }
        let in_all = self.all_wait_for_agents();
        for pool in &self.models {
            self.notes.extend(agents(pool, in_all));
        }
        let used: BTreeSet<NodeClassRef> = self.models.iter().map(|pool| pool.node_class.clone()).collect();
        for class in used {
            if self.known.classes.contains_key(&class) || self.known.broken.contains_key(&class) {
                continue;
            }
            match sold_by_missing(&class, &self.known, prices, &mut self.notes) {
                Ok(sells) => self.stand_in(&class, sells),
                Err(why) => {
                    for pool in self.models.iter().filter(|pool| pool.node_class == class) {
                        problems
                            .push(format!("NodePool {}: spec.template.spec.nodeClassRef: {why}", pool.name));
                    }
                }
            }
        }
        problems.or(self)
    }

    /// Puts a class of the simulated cloud in the place of a class that the files do not have.
    fn stand_in(&mut self, class: &NodeClassRef, sells: Catalogue) {
        let (kind, name) = (NODE_CLASS_KIND, format!("{}-{}", class.kind.to_lowercase(), class.name));
        for object in &mut self.objects {
            let written = &object["spec"]["template"]["spec"]["nodeClassRef"];
            if object["kind"] == "NodePool"
                && written["kind"] == *class.kind
                && written["name"] == *class.name
            {
                object["spec"]["template"]["spec"]["nodeClassRef"] =
                    json!({"group": GROUP, "kind": kind, "name": name});
            }
        }
        let object = json!({"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": name}, "spec": {}});
        self.objects.insert(0, object);
        let other = NodeClassRef { group: GROUP.to_owned(), kind: kind.to_owned(), name };
        for pool in self.models.iter_mut().filter(|pool| pool.node_class == *class) {
            pool.node_class = other.clone();
        }
        self.sold.insert(other, Arc::new(sells));
    }
}
