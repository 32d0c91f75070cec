//! Commitments from a file: read again when it changes, and matched with the catalogues.
//!
//! If the file becomes invalid, the last valid one stays in force, because a plan without commitments would buy other nodes.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use poolwright_catalog::{Catalogue, OfferingId, UsdPerHour};
use poolwright_core::Snapshot;
use poolwright_core::plan::Commitment;
use poolwright_intake::{Commitments, commitments};
use tokio::time::sleep;
use tracing::{info, warn};

use crate::config::{CommittedFile, unfit};
use crate::edge::metrics::Metrics;

/// How often the file is read. A mounted ConfigMap takes about a minute to change anyway, and is replaced atomically.
const EVERY: Duration = Duration::from_secs(30);

/// The commitments in force; clones share them.
#[derive(Clone, Default)]
pub struct Committed {
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    /// The contents of the file; `None` if there is no file.
    file: Option<Commitments>,
    /// The known rates of each commitment, by name and offering.
    known: BTreeMap<String, BTreeMap<OfferingId, UsdPerHour>>,
    /// The computed commitments, and the catalogues that they were computed from.
    terms: Option<(Vec<Arc<Catalogue>>, Vec<Commitment>)>,
    /// The messages that were last logged.
    told: Vec<String>,
    /// Why the current file is invalid, if it is.
    failed: Option<String>,
}

impl Committed {
    /// Creates the commitments of a file, if there is one.
    pub fn new(file: Option<&CommittedFile>) -> Self {
        let state = State { file: file.map(|file| file.commitments.clone()), ..State::default() };
        Self { state: Arc::new(Mutex::new(state)) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the commitments, with rates for the offerings of the snapshot.
    pub fn resolve(&self, snapshot: &Snapshot) -> Vec<Commitment> {
        let mut state = self.state();
        let Some(file) = &state.file else { return Vec::new() };
        let all: Vec<Arc<Catalogue>> =
            snapshot.catalogues.values().filter_map(|one| one.as_ref().ok()).cloned().collect();
        if let Some((of, terms)) = &state.terms
            && of.len() == all.len()
            && of.iter().zip(&all).all(|(one, other)| Arc::ptr_eq(one, other))
        {
            return terms.clone();
        }
        let (terms, problems) = file.resolve(&all.iter().map(Arc::as_ref).collect::<Vec<_>>());
        let terms = with_what_was_known(terms, file, &state.known, &all);
        // Offerings may be missing because a class has no catalogue yet.
        let is_complete = !all.is_empty() && all.len() == snapshot.catalogues.len();
        if is_complete && problems != state.told {
            for problem in &problems {
                warn!(%problem, "a commitment does not count, or not in full");
            }
            state.told = problems;
        }
        for one in &terms {
            state.known.insert(one.name.clone(), one.rates.clone());
        }
        state.terms = Some((all, terms.clone()));
        terms
    }

    /// Reads the file periodically, for ever.
    pub async fn keep(self, file: CommittedFile, metrics: Metrics) {
        let name = file.path.display().to_string();
        loop {
            sleep(EVERY).await;
            let path = file.path.clone();
            // Reading a mounted file may block.
            let text = match tokio::task::spawn_blocking(move || std::fs::read_to_string(path)).await {
                Ok(text) => text.map_err(|error| error.to_string()),
                Err(error) => Err(error.to_string()),
            };
            self.look(&name, text.as_deref(), &metrics);
        }
    }

    /// Uses the new contents, if valid.
    fn look(&self, name: &str, text: Result<&str, &String>, metrics: &Metrics) {
        let read = match text {
            Ok(text) => commitments(name, text),
            Err(error) => {
                Err(vec![format!("{name}: {error}; restore the file, or start without --commitments")])
            }
        };
        let usable = read.and_then(|read| match unfit(&read) {
            problems if problems.is_empty() => Ok(read),
            problems => Err(problems),
        });
        let mut state = self.state();
        match usable {
            Ok(file) if state.file.as_ref() == Some(&file) => {
                if state.failed.take().is_some() {
                    info!(file = name, "the commitments file is valid again, and unchanged");
                }
            }
            Ok(file) => {
                info!(file = name, "the commitments have changed; the next plan uses them");
                *state = State { file: Some(file), ..State::default() };
            }
            Err(problems) => {
                metrics.commitments_failures.inc();
                let problem = problems.join("; ");
                if state.failed.as_ref() != Some(&problem) {
                    warn!(file = name, %problem, "the commitments file is invalid; its last valid content stays in force");
                }
                state.failed = Some(problem);
            }
        }
    }
}

/// Adds the known rates of offerings that are no longer in a catalogue. Nodes of such offerings may still run and use the
/// commitment, so their part stays taken, and no pods are moved off them.
fn with_what_was_known(
    mut terms: Vec<Commitment>,
    file: &Commitments,
    known: &BTreeMap<String, BTreeMap<OfferingId, UsdPerHour>>,
    sold: &[Arc<Catalogue>],
) -> Vec<Commitment> {
    for (name, left) in file.amounts() {
        let Some(rates) = known.get(&name) else { continue };
        let is_sold = |id: &OfferingId| sold.iter().any(|catalogue| catalogue.offering(id).is_some());
        let gone: Vec<(OfferingId, UsdPerHour)> =
            rates.iter().filter(|(id, _)| !is_sold(id)).map(|(id, rate)| (id.clone(), *rate)).collect();
        if gone.is_empty() {
            continue;
        }
        match terms.iter_mut().find(|one| one.name == name) {
            Some(one) => one.rates.extend(gone),
            None => terms.push(Commitment { name, left, rates: gone.into_iter().collect() }),
        }
    }
    terms.sort_by(|a, b| a.name.cmp(&b.name));
    terms
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use poolwright_catalog::builtin;
    use poolwright_terms::NodeClassRef;
    use tokio::time::timeout;

    use super::*;

    const PLAN: &str = "commitments: [{name: plan, usdPerHour: 5, rates: {g5.xlarge: 0.5}}]";

    fn selling(catalogues: usize) -> Snapshot {
        let mut snapshot = Snapshot::default();
        for at in 0..catalogues {
            let class = NodeClassRef { group: String::new(), kind: String::new(), name: at.to_string() };
            snapshot.catalogues.insert(class, Ok(Arc::new(builtin())));
        }
        snapshot
    }

    fn file(path: PathBuf) -> CommittedFile {
        CommittedFile { path, commitments: commitments("c.yaml", PLAN).expect("it can be read") }
    }

    fn left(committed: &Committed) -> Vec<String> {
        committed.resolve(&selling(1)).iter().map(|terms| terms.left.to_string()).collect()
    }

    #[test]
    fn a_commitment_covers_an_offering_once_it_is_sold() {
        let committed = Committed::new(Some(&file(PathBuf::new())));
        assert_eq!(committed.resolve(&selling(0)), []);
        let terms = committed.resolve(&selling(2));
        let is_covered = |id: &OfferingId| id.instance_type.as_str() == "g5.xlarge";
        assert!(terms.len() == 1 && terms[0].rates.keys().all(is_covered));
        assert_eq!(Committed::default().resolve(&selling(1)), [], "nobody has given a file");
    }

    #[test]
    fn the_use_of_a_commitment_is_kept_while_a_class_has_no_catalogue() {
        let committed = Committed::new(Some(&file(PathBuf::new())));
        let before = committed.resolve(&selling(1));
        let mut broken = selling(1);
        for catalogue in broken.catalogues.values_mut() {
            *catalogue = Err("its subnets are gone".into());
        }
        assert_eq!(committed.resolve(&broken), before);
        assert_eq!(committed.resolve(&selling(1)), before);
    }

    #[test]
    fn an_unsold_type_does_not_affect_the_rest_of_its_commitment() {
        let text = "commitments: [{name: plan, usdPerHour: 5, rates: {g5.xlarge: 0.5, x9.huge: 1}}]";
        let commitments = commitments("c.yaml", text).expect("it can be read");
        let committed = Committed::new(Some(&CommittedFile { path: PathBuf::new(), commitments }));
        assert_eq!(left(&committed), ["5.00"]);
        assert!(committed.state().told[0].contains("x9.huge"), "{:?}", committed.state().told);
    }

    #[test]
    fn reservations_are_not_for_a_controller_to_read() {
        let read = |text| commitments("c.yaml", text).expect("it can be read");
        assert_eq!(unfit(&read(PLAN)), [""; 0]);
        let told = unfit(&read("reservations: [{instanceType: g5.xlarge, count: 1}]"));
        assert!(told[0].contains("capacityReservationSelectorTerms"), "{told:?}");
    }

    #[test]
    fn a_file_that_changes_is_read_again_and_one_that_breaks_leaves_the_last_good_one_in_force() {
        let metrics = Metrics::new().unwrap();
        let failures = || metrics.commitments_failures.get();
        let committed = Committed::new(Some(&file(PathBuf::new())));
        let look = |text: Result<&str, &String>| committed.look("c.yaml", text, &metrics);
        look(Ok(&PLAN.replace("usdPerHour: 5", "usdPerHour: 7")));
        assert_eq!((left(&committed), failures()), (vec!["7.00".to_owned()], 0));
        look(Ok("commitments: ["));
        look(Ok("commitments: [{name: plan, usdPerHour: 5}]"));
        look(Err(&"gone".to_owned()));
        assert_eq!((left(&committed), failures()), (vec!["7.00".to_owned()], 3));
        assert!(committed.state().failed.is_some());
        look(Ok(PLAN));
        assert_eq!((left(&committed), failures()), (vec!["5.00".to_owned()], 3));
        assert!(committed.state().failed.is_none());
    }

    #[cfg(unix)]
    #[tokio::test(start_paused = true)]
    async fn a_mounted_file_is_swapped_by_a_link_and_seen_all_the_same() {
        let folder = std::env::temp_dir().join(format!("poolwright-committed-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let (old, new, link) = (folder.join("old"), folder.join("new"), folder.join("c.yaml"));
        fs::write(&old, PLAN).unwrap();
        fs::write(&new, PLAN.replace("usdPerHour: 5", "usdPerHour: 9")).unwrap();
        let _ = fs::remove_file(&link);
        std::os::unix::fs::symlink(&old, &link).unwrap();
        let file = file(link.clone());
        let committed = Committed::new(Some(&file));
        let keeping = committed.clone().keep(file, Metrics::new().unwrap());
        let swapping = async {
            sleep(EVERY * 2).await;
            assert_eq!(left(&committed), ["5.00"]);
            let next = folder.join("next");
            std::os::unix::fs::symlink(&new, &next).unwrap();
            fs::rename(&next, &link).unwrap();
            while left(&committed) != ["9.00"] {
                sleep(EVERY).await;
            }
        };
        tokio::select! {
            () = keeping => {}
            done = timeout(EVERY * 100, swapping) => done.expect("it is seen"),
        }
        fs::remove_dir_all(&folder).unwrap();
    }
}
