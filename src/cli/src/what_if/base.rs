//! The base: manifests, a cluster, a snapshot of one, or nothing. And the objects of the base with the changes.

use std::path::PathBuf;

use jiff::Timestamp;
use poolwright_catalog::{Catalogue, UsdPerHour};
use poolwright_controller::clock::{Clock, SystemClock};

use super::answer::State;
use super::objects::{Files, is_of_pools};
use super::outcome::Outcome;
use crate::args::{ClusterFlags, NOTHING, WhatIfFlags};
use crate::catalogue;
use crate::exit::Failure;
use crate::plan::{Given, notes_on};
use crate::snapshot::{self, SavedCluster};
use crate::source;

/// Says what the objects of a cluster are, if some of them are to change.
const AS_MANIFESTS: &str = "the objects of the cluster count as manifests, because some change: pods that controllers lack are planned, and \
     what the controller has learned about durations does not count";

/// What the changes are made to, read once for both plans.
pub struct Base {
    /// The objects; `None` if there are none.
    given: Option<Given>,
    /// Instance types and prices.
    pub catalogue: Catalogue,
    /// The time of both plans.
    pub now: Timestamp,
    /// Notes on how the base was read, beside those of the plans.
    pub notes: Vec<String>,
}

impl Base {
    /// Reads the base.
    pub fn read(flags: &WhatIfFlags) -> Result<Self, Failure> {
        let paths =
            flags.base.iter().chain(&flags.cluster.snapshot).chain(&flags.filename).chain(&flags.pool);
        if paths.filter(|path| path.as_os_str() == "-").count() > 1 {
            return Err(Failure::bad_input("-: standard input can be read once; name files for the rest"));
        }
        let is_nothing = |path: &PathBuf| path.as_os_str() == NOTHING;
        match flags.base.as_slice() {
            [] => match &flags.cluster.snapshot {
                Some(path) => Self::of_saved(SavedCluster::read(path)?, flags),
                None if flags.changes_objects() => Self::of_objects(flags),
                None => {
                    let given = Given::cluster(&flags.input(), "--base")?;
                    Self::of(|_| Some(given), flags)
                }
            },
            [only] if is_nothing(only) => Self::of(|_| None, flags),
            several if several.iter().any(is_nothing) => Err(Failure::bad_input(format!(
                "--base {NOTHING}: stands for a base without objects; name no file beside it"
            ))),
            files => {
                let sources = source::manifests(files)?;
                if Files::of(sources.clone(), None)?.is_empty() {
                    return Err(Failure::bad_input(format!(
                        "--base: the files have no object; check the command that writes them, or write --base {NOTHING}"
                    )));
                }
                Self::of(|at| Some(Given::Files { sources, at }), flags)
            }
        }
    }

    /// Returns the base of these objects, with the prices that the flags name.
    fn of(given: impl FnOnce(Timestamp) -> Option<Given>, flags: &WhatIfFlags) -> Result<Self, Failure> {
        let now = SystemClock::new().now();
        Ok(Self {
            given: given(now),
            catalogue: catalogue::load(&flags.prices.catalogue)?,
            now,
            notes: Vec::new(),
        })
    }

    /// Reads the objects of the cluster, which change.
    fn of_objects(flags: &WhatIfFlags) -> Result<Self, Failure> {
        let catalogue = catalogue::load(&flags.prices.catalogue)?;
        let ClusterFlags { kubeconfig, context, .. } = &flags.cluster;
        let taken = snapshot::taken(kubeconfig.as_deref(), context.as_deref(), catalogue)?;
        let elastic = taken.left_out_of_gangs();
        let mut base = Self::of_saved(taken.saved, flags)?;
        base.notes.extend(elastic);
        Ok(base)
    }

    /// Returns the base of a snapshot. If objects change, they count as manifests.
    fn of_saved(saved: SavedCluster, flags: &WhatIfFlags) -> Result<Self, Failure> {
        let catalogue = catalogue::load_or(&flags.prices.catalogue, Some(&saved.header.catalogue))?;
        let now = saved.header.taken_at;
        if !flags.changes_objects() {
            let given = Some(Given::Saved(Box::new(saved)));
            return Ok(Self { given, catalogue, now, notes: Vec::new() });
        }
        let mut notes = notes_on(&saved, &flags.input())?;
        notes.push(AS_MANIFESTS.to_owned());
        let forbidden = saved.header.forbidden();
        if !forbidden.is_empty() {
            notes.push(format!("the base lacks what you may not list: {}", forbidden.join("; ")));
        }
        let given = Some(Given::Files { sources: vec![saved.manifests()], at: now });
        Ok(Self { given, catalogue, now, notes })
    }

    /// Returns the objects to plan for before the change; `None` if there is nothing to plan for.
    pub fn given(&self) -> Option<Given> {
        self.given.clone()
    }

    /// Returns the objects with the changes, and says what changed.
    ///
    /// # Errors
    ///
    /// A change matches nothing.
    pub fn changed(&self, flags: &WhatIfFlags, told: &mut Vec<String>) -> Result<Given, Failure> {
        let sources = match &self.given {
            None => Vec::new(),
            Some(Given::Files { sources, .. }) => sources.clone(),
            // No flag changes objects then.
            Some(given) => return Ok(given.clone()),
        };
        let mut files = Files::of(sources, flags.namespace.as_deref())?;
        let had_pool = files.has_pool();
        for named in &flags.remove {
            told.push(files.remove(named)?);
        }
        if !flags.filename.is_empty() {
            told.extend(files.add("-f", source::manifests(&flags.filename)?, None)?);
        }
        if !flags.pool.is_empty() {
            told.extend(files.add("--pool", source::manifests(&flags.pool)?, Some(is_of_pools))?);
        }
        if had_pool && !files.has_pool() {
            return Err(Failure::bad_input(
                "--remove: would leave no NodePool, and a plan for files without one buys from the whole catalogue; give --pool a \
                 NodePool that may buy what the cluster still may, or nothing",
            ));
        }
        for replicas in &flags.replicas {
            told.push(files.scale(replicas)?);
        }
        Ok(Given::Files { sources: files.sources(), at: self.now })
    }
}

/// Returns the state of a base without objects.
pub fn nothing() -> State {
    let outcome = Outcome { bound: Some(UsdPerHour::ZERO), ..Outcome::default() };
    State { at_half_more: Some(outcome.clone()), outcome, waiting: Vec::new() }
}
