//! Plans that fail: finds the pods with which they do, and saves the input for a report. `poolwright debug replan` plans it again.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use poolwright_core::plan::PlanOptions;
use poolwright_core::{PodKey, SavedSnapshot, Snapshot};
use serde::{Deserialize, Serialize};
use tracing::{error, info, warn};

use super::Planner;
use crate::loops::quarantine::{SET_ASIDE, Search};

const KIND: &str = "PlanFailure";
/// The beginning of the names of the files.
const PREFIX: &str = "poolwright-failure-";
/// The most files in a directory. The first failures are kept, because later ones are often the same.
const MOST_FILES: usize = 20;
/// The largest size of a file.
const MOST_BYTES: usize = 32 << 20;

/// The input of a plan that failed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PlanFailure {
    api_version: String,
    kind: String,
    /// The version of Poolwright that saved it.
    pub version: String,
    /// The time of the plan.
    pub now: Timestamp,
    /// Whether a plan of this input fails. Otherwise something is needed that the file does not have.
    pub repeats: bool,
    /// The pods that were set aside.
    pub pods: Vec<PodKey>,
    /// The options of the plan, without options of the solver.
    pub options: PlanOptions,
    /// The snapshot, as far as it is saved.
    pub snapshot: SavedSnapshot,
}

impl PlanFailure {
    /// Creates the content of a file.
    pub fn new(pods: &[PodKey], snapshot: &Snapshot, options: &PlanOptions, now: Timestamp) -> Self {
        Self {
            api_version: poolwright_terms::API_VERSION.to_owned(),
            kind: KIND.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            now,
            repeats: false,
            pods: pods.to_vec(),
            options: PlanOptions { solver: PlanOptions::default().solver, ..options.clone() },
            snapshot: SavedSnapshot::from(snapshot),
        }
    }

    /// Reads a file.
    ///
    /// Errors: it is no such file, or another version of Poolwright wrote it in another format.
    pub fn read(text: &str) -> Result<Self, String> {
        let read: Self = serde_json::from_str(text).map_err(|error| {
            format!("is not an input of a plan that this version of Poolwright can read: {error}")
        })?;
        if (read.api_version.as_str(), read.kind.as_str()) == (poolwright_terms::API_VERSION, KIND) {
            Ok(read)
        } else {
            Err(format!("is a {} of {}, not a {KIND}", read.kind, read.api_version))
        }
    }

    /// Writes it to a new file in a directory, which is made if it does not exist. Returns the path.
    pub fn write(&self, directory: &Path) -> io::Result<PathBuf> {
        let text = serde_json::to_vec(self)?;
        if text.len() > MOST_BYTES {
            return Err(io::Error::other(format!("it is larger than {} MiB", MOST_BYTES >> 20)));
        }
        fs::create_dir_all(directory)?;
        let names = fs::read_dir(directory)?.filter_map(|entry| Some(entry.ok()?.file_name()));
        if names.filter(|name| name.to_string_lossy().starts_with(PREFIX)).count() >= MOST_FILES {
            let why = format!("{} has {MOST_FILES} such files; move them away", directory.display());
            return Err(io::Error::other(why));
        }
        let path = directory.join(format!("{PREFIX}{}.json", self.now.as_millisecond()));
        let written = File::create_new(&path)?.write_all(&text);
        if written.is_err() {
            // Part of an input is of no use.
            let _ = fs::remove_file(&path);
        }
        written.map(|()| path)
    }
}

impl Planner {
    /// Returns whether a plan fails.
    async fn fails(&self, snapshot: Snapshot, options: PlanOptions) -> bool {
        let planned = self.compute_plan(snapshot, options).await;
        planned.is_none_or(|(plan, _)| !plan.refused.is_empty())
    }

    /// Finds waiting pods without which a plan succeeds, and leaves them out of the next plans.
    pub(super) async fn set_aside(&mut self, snapshot: &Snapshot, options: &PlanOptions) {
        let mut search = Search::among(snapshot);
        while let Some(units) = search.next() {
            let mut part = snapshot.clone();
            for key in search.without(units) {
                part.pods.remove(key);
            }
            let fails = self.fails(part, options.clone()).await;
            search.tell(units, fails);
        }
        let Some(pods) = search.found() else {
            error!("plans fail without any waiting pod, too: nothing is bought until the cluster changes");
            return;
        };
        let names = named(pods);
        let report = self.save_failure(pods, snapshot, options).await;
        let example = snapshot.pods.get(&pods[0]);
        error!(
            pods = names, example = ?example.map(|pod| &pod.spec), report,
            "plans with these pods fail, so they are set aside for an hour; please report this"
        );
        let message = format!(
            "a plan with {names} fails, which is a bug of Poolwright: it plans without them for {SET_ASIDE:#}; please report it with \
             {report}"
        );
        self.quarantine.add(pods, snapshot, &message, self.context.clock.now());
    }

    /// Saves the input of a plan that fails with these pods: only what they need if a plan of that fails too, else everything.
    /// Returns what to report, for a message.
    async fn save_failure(&self, pods: &[PodKey], snapshot: &Snapshot, options: &PlanOptions) -> String {
        let log = "the log of the controller".to_owned();
        let Some(directory) = self.config.save_failures.clone() else {
            return format!("{log}; with --save-failures DIR, it also saves the input for a report");
        };
        let now = self.context.clock.now();
        let mut failure = PlanFailure::new(pods, &snapshot.reduced_to(pods), options, now);
        failure.repeats = self.fails_again(&failure).await;
        if !failure.repeats {
            let mut all = PlanFailure::new(pods, snapshot, options, now);
            all.repeats = self.fails_again(&all).await;
            if all.repeats {
                failure = all;
            }
        }
        // Writing may block.
        let written = tokio::task::spawn_blocking(move || failure.write(&directory)).await;
        match written.unwrap_or_else(|panic| Err(io::Error::other(panic))) {
            Ok(path) => {
                info!(path = %path.display(), "the input of the plan is saved");
                format!("{log} and its file {}", path.display())
            }
            Err(error) => {
                warn!(%error, "the input of the plan could not be saved");
                format!("{log}; the input could not be saved: {error}")
            }
        }
    }

    /// Returns whether a plan of a saved input fails.
    async fn fails_again(&self, failure: &PlanFailure) -> bool {
        self.fails(failure.snapshot.clone().into(), failure.options.clone()).await
    }
}

/// Names pods: `default/a, default/b and 3 more pods`.
fn named(pods: &[PodKey]) -> String {
    const SHOWN: usize = 3;
    let names: Vec<String> = pods.iter().take(SHOWN).map(ToString::to_string).collect();
    match pods.len().saturating_sub(SHOWN) {
        0 => names.join(", "),
        more => format!("{} and {more} more pods", names.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;
    use poolwright_catalog::UsdPerHour;
    use poolwright_core::Lives;
    use poolwright_core::plan::Commitment;

    use super::*;

    #[test]
    fn a_saved_input_is_read_as_it_was_and_a_directory_takes_only_so_many() {
        let directory = std::env::temp_dir().join(format!("poolwright-failures-{}", std::process::id()));
        let _ = fs::remove_dir_all(&directory);
        let mut snapshot = Snapshot::default();
        let class = poolwright_terms::NodeClassRef { group: "g".into(), kind: "K".into(), name: "n".into() };
        let catalogue = poolwright_catalog::builtin();
        let covered = catalogue.offerings()[0].id.clone();
        snapshot.catalogues.insert(class, Ok(std::sync::Arc::new(catalogue)));
        let mut lives = Lives::prior();
        lives.observe(&["1 GPUs".to_owned()], SignedDuration::from_mins(7), true, Timestamp::UNIX_EPOCH);
        snapshot.lives = std::sync::Arc::new(lives);
        let pods = [PodKey::new("ml", "bad")];
        let options = PlanOptions {
            spot_risk: Some(poolwright_core::plan::SpotRisk::default()),
            namespace_limits: [(poolwright_core::NamespaceLimit::Nodes, 3)].into(),
            commitments: vec![Commitment {
                name: "savings".to_owned(),
                left: UsdPerHour::from_micros(5_000_000),
                rates: [(covered, UsdPerHour::from_micros(700_001))].into(),
            }],
            ..PlanOptions::default()
        };
        let failure = PlanFailure::new(&pods, &snapshot, &options, Timestamp::UNIX_EPOCH);
        let path = failure.write(&directory).unwrap();
        let read = PlanFailure::read(&fs::read_to_string(path).unwrap());
        assert_eq!(read.as_ref(), Ok(&failure));
        let (read, learned) = (Snapshot::from(read.unwrap().snapshot), snapshot.lives.tables());
        assert_eq!((read.lives.tables(), read.lives.is_blank()), (learned, false));
        for other in 1..MOST_FILES {
            fs::write(directory.join(format!("{PREFIX}{other}")), "").unwrap();
        }
        let one_more = PlanFailure::new(&pods, &snapshot, &options, Timestamp::MAX).write(&directory);
        assert!(one_more.unwrap_err().to_string().ends_with("has 20 such files; move them away"));
        fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn a_file_of_something_else_is_refused() {
        let said = PlanFailure::read("{}").unwrap_err();
        assert!(
            said.starts_with("is not an input of a plan that this version of Poolwright can read"),
            "{said}"
        );
        let mut other = PlanFailure::new(&[], &Snapshot::default(), &PlanOptions::default(), Timestamp::MAX);
        other.kind = "Plan".to_owned();
        let said = PlanFailure::read(&serde_json::to_string(&other).unwrap()).unwrap_err();
        assert_eq!(said, format!("is a Plan of {}, not a {KIND}", poolwright_terms::API_VERSION));
    }
}
