//! The pools and node classes of a replay, in the form that the API server accepts.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use poolwright_catalog::Catalogue;
use poolwright_core::{Pod, Pool, rules};
use poolwright_intake::manifest;
use poolwright_terms::{NodeClassRef, Taint, TaintEffect};
use serde_json::Value;

use super::policy::Policy;
use super::snapshot::bare;
use crate::args::{ConsolidationChoice, PoolOverrides};
use crate::clouds::of_kind;
use crate::exit::Failure;
use crate::node_classes::{self, Known, refused};
use crate::overrides;
use crate::problems::Problems;
use crate::source::{self, Source};

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
    let sources = source::manifests(files)?;
    Ok(of_sources(&sources, policies, overrides).and_then(|pools| pools.selling(prices)))
}

fn of_sources(sources: &[Source], policies: &[String], overrides: &PoolOverrides) -> Result<Pools, Problems> {
    let (manifest, mut problems) = source::parsed(sources);
    let (mut classes, mut pools, mut others) = (Vec::new(), Vec::new(), 0);
    for source in sources {
        let objects = manifest::objects(&source.name, &source.text).unwrap_or_default();
        for object in objects {
            match object["kind"].as_str() {
                // What the cluster wrote belongs to another cluster.
                Some("NodePool") => pools.push(bare(&object)),
                Some(kind) if of_kind(kind).is_some() => classes.push(bare(&object)),
                _ => others += 1,
            }
        }
    }
    if problems.is_empty() {
        refused(&classes).iter().chain(&refused(&pools)).for_each(|refusal| problems.push(refusal));
    }
    if problems.is_empty() && pools.is_empty() {
        problems.push(
            "the files of --pools have no NodePool; add one, because Poolwright buys nothing without it",
        );
    }
    let problems_of_files = problems.len();
    // Overrides come last, because they count instead of what the pools say.
    let fields = overrides.consolidation.map(ConsolidationChoice::fields).unwrap_or_default();
    let fields = fields.iter().map(|field| (*field).to_owned());
    let policies: Vec<String> = policies.iter().cloned().chain(fields).collect();
    let policies = read_policies(&policies, &mut problems);
    if problems_of_files == 0 {
        let laid: Vec<Value> = pools.iter().map(|pool| lay(pool, &policies, &mut problems)).collect();
        pools = laid;
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
        notes.push(format!("--pools: ignored objects that are neither NodePools nor node classes: {others}"));
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
    let known = node_classes::read(&manifest.node_classes, &mut notes)
        .map_err(|found| problems.extend(found))
        .unwrap_or_default();
    problems.or(Pools { objects, models, sold: BTreeMap::new(), known, notes })
}

fn read_policies(texts: &[String], problems: &mut Problems) -> Vec<Policy> {
    let read = |text: &String| Policy::read(text).map_err(|problem| problems.push(problem)).ok();
    texts.iter().filter_map(read).collect()
}

/// Returns the pool with all policies. Problems are reported for the policy that causes them.
fn lay(pool: &Value, policies: &[Policy], problems: &mut Problems) -> Value {
    let mut with_all = pool.clone();
    for policy in policies {
        let mut with_one = pool.clone();
        if let Err(problem) = policy.apply(&mut with_one) {
            problems.push(problem);
            continue;
        }
        for problem in wrong(&with_one) {
            problems.push(format!("--policy {}: {problem}", policy.text));
        }
        if let Err(problem) = policy.apply(&mut with_all) {
            problems.push(problem);
        }
    }
    // Policies that are right alone may be wrong together.
    if problems.is_empty() {
        for problem in wrong(&with_all) {
            problems.push(format!("--policy: {problem}"));
        }
    }
    with_all
}

/// Returns the objections of the API server to a pool or, if there are none, the parts that have no meaning, such as misspelt
/// fields.
fn wrong(pool: &Value) -> Vec<String> {
    let problems = refused(std::slice::from_ref(pool));
    if !problems.is_empty() {
        return problems;
    }
    let Err(errors) = manifest::parse("", &pool.to_string()) else { return Vec::new() };
    let bare = |error: poolwright_intake::IntakeError| poolwright_intake::IntakeError { file: None, ..error };
    errors.into_iter().map(|error| bare(error).to_string()).collect()
}

/// Says how the nodes of a pool lose their startup taints and pass their readiness gates.
fn agents(pool: &Pool) -> Option<String> {
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
    Some(format!(
        "NodePool {}: its nodes {what} 2 to 20 seconds after they join, as if the agent that does this ran; \
         other methods start nodes without that time",
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
            match class.sells(name, &sells, &mut self.notes) {
                Ok(sells) => {
                    self.sold.insert(name.clone(), Arc::new(sells));
                }
                Err(why) => problems.push(why),
            }
        }
        for pool in &self.models {
            self.notes.extend(agents(pool));
            let class = &pool.node_class;
            if !self.known.classes.contains_key(class) && !self.known.broken.contains_key(class) {
                problems.push(format!(
                    "NodePool {}: spec.template.spec.nodeClassRef: {class} is not in the files of --pools; add it",
                    pool.name
                ));
            }
        }
        problems.or(self)
    }
}
