//! What is known about moves, and the ConfigMap that tells it to the next leader: when pods moved, and what that saved.
//!
//! The planning loop owns the ConfigMap. A move is stored before it begins, so a new leader does not move the same pods back. If
//! the ConfigMap cannot be written, moves go on, and a restart forgets them.

use std::time::Duration;

use kube::Error;
use poolwright_catalog::UsdPerHour;
use poolwright_core::disruption::{MoveHistory, MoveRecord};
use serde::{Deserialize, Serialize};
use tracing::{info, warn};

use super::own_config_map::{OwnConfigMap, parse};
use crate::executor::context::Context;

/// The name of the ConfigMap, in the controller's namespace.
pub const NAME: &str = "poolwright-moves";
/// The key of the data.
const KEY: &str = "moves.json";
/// The version of the format that this program writes and reads.
const VERSION: u32 = 1;

/// The time after a failed read in which no other is tried.
const READ_AGAIN: Duration = Duration::from_secs(30);

/// The data of the ConfigMap.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Stored {
    version: u32,
    #[serde(default)]
    history: MoveRecord,
    /// What completed moves saved, in micro-dollars per hour.
    #[serde(default)]
    saved_micros_per_hour: UsdPerHour,
}

impl Default for Stored {
    fn default() -> Self {
        Self { version: VERSION, history: MoveRecord::default(), saved_micros_per_hour: UsdPerHour::ZERO }
    }
}

/// The moves of this leader and of its predecessors.
pub struct Moves {
    context: Context,
    object: OwnConfigMap,
    /// When pods moved.
    pub history: MoveHistory,
    /// The data of the object.
    stored: Stored,
    /// What moves saved since that was written.
    saved_since: UsdPerHour,
    /// The data of a write that failed. It may have had an effect.
    attempted: Option<Stored>,
    /// Whether the object must not be written, because it could not be understood or read.
    is_foreign: bool,
    /// When it could not be read, on the monotonic clock, if the last read failed.
    read_failed: Option<Duration>,
    /// When it was last tried.
    read_at: Option<Duration>,
}

impl Moves {
    /// Creates a memory without moves. The ConfigMap is in this namespace.
    pub fn new(namespace: &str, context: Context) -> Self {
        Self {
            object: OwnConfigMap::new(namespace, NAME, KEY, context.clone()),
            context,
            history: MoveHistory::default(),
            stored: Stored::default(),
            saved_since: UsdPerHour::ZERO,
            attempted: None,
            is_foreign: false,
            read_failed: None,
            read_at: None,
        }
    }

    /// Prepares for a new term: another leader may have written meanwhile.
    pub fn begin(&mut self) {
        self.object.forget();
        self.set_foreign(false);
        self.read_failed = None;
    }

    /// Sets whether the object must not be written. Returns whether it must not have been before.
    fn set_foreign(&mut self, is_foreign: bool) -> bool {
        self.context.metrics.saved_state_ignored.with_label_values(&[NAME]).set(is_foreign.into());
        std::mem::replace(&mut self.is_foreign, is_foreign)
    }

    /// Reads what earlier leaders stored, once in each term. Returns whether pods may move: not before it was read.
    pub async fn are_known(&mut self) -> bool {
        if self.is_foreign {
            // A user may have deleted it meanwhile, or granted the right to read it.
            if !self.has_just_read() {
                self.object.forget();
                let _failed = self.load().await;
            }
            return true;
        }
        if self.object.is_read() {
            return true;
        }
        if self.has_just_failed() {
            return false;
        }
        match self.load().await {
            Ok(()) => true,
            Err(Error::Api(status)) if status.code == 403 => {
                self.set_foreign(true);
                warn!(
                    why = status.message,
                    "ConfigMap {NAME} may not be read, so pods may move once more after a restart; apply deploy/rbac.yaml"
                );
                true
            }
            Err(error) => {
                warn!(%error, "ConfigMap {NAME} cannot be read, so no pod moves to save money until it can");
                false
            }
        }
    }

    /// Adds what completed moves saved, and stores it.
    pub async fn count(&mut self, saved: UsdPerHour) {
        if saved == UsdPerHour::ZERO {
            return;
        }
        self.context.metrics.saving_realised.inc_by(saved.as_f64());
        self.saved_since += saved;
        self.store().await;
    }

    /// Stores what is not stored yet. After a failure, the next call stores it too.
    pub async fn store(&mut self) {
        self.show();
        if self.to_store() == self.stored {
            return;
        }
        if self.is_foreign {
            // A user may have deleted it meanwhile.
            self.object.forget();
        }
        if !self.object.is_read() && self.has_just_failed() {
            return;
        }
        if !self.object.is_read()
            && let Err(error) = self.load().await
        {
            info!(%error, "moves were not stored; they are stored with the next one");
            return;
        }
        if self.is_foreign {
            return;
        }
        let next = self.to_store();
        match self.object.write("keep-moves", serde_json::to_string(&next).unwrap_or_default()).await {
            Ok(()) => {
                self.stored = next;
                self.saved_since = UsdPerHour::ZERO;
            }
            Err(error) => {
                info!(%error, "moves were not stored; they are stored with the next one");
                self.attempted = Some(next);
            }
        }
    }

    /// Returns whether a read failed so shortly ago that none is tried, because plans wait for it.
    fn has_just_failed(&self) -> bool {
        let now = self.context.clock.monotonic();
        self.read_failed.is_some_and(|failed| now.saturating_sub(failed) < READ_AGAIN)
    }

    /// Returns whether the last read was so shortly ago that no other is tried.
    fn has_just_read(&self) -> bool {
        let now = self.context.clock.monotonic();
        self.read_at.is_some_and(|read| now.saturating_sub(read) < READ_AGAIN)
    }

    /// Reads the object, and adds what is in it to what is known.
    async fn load(&mut self) -> Result<(), Error> {
        self.read_at = Some(self.context.clock.monotonic());
        let found = self.object.read().await;
        // Without permission, pods move all the same.
        let is_failure = |error: &Error| !matches!(error, Error::Api(status) if status.code == 403);
        let has_failed = found.as_ref().is_err_and(is_failure);
        self.read_failed = has_failed.then(|| self.context.clock.monotonic());
        let read = parse::<Stored>(found?, KEY, VERSION);
        let was_foreign = self.set_foreign(read.is_err());
        self.stored = match read {
            Ok(stored) => stored.unwrap_or_default(),
            Err(why) => {
                if !was_foreign {
                    warn!(
                        why,
                        "ConfigMap {NAME} cannot be understood, so it stays as it is and pods may move once more after a restart; delete the ConfigMap, or run the version of Poolwright that wrote it"
                    );
                }
                Stored::default()
            }
        };
        if self.attempted.take().is_some_and(|attempted| attempted == self.stored) {
            self.saved_since = UsdPerHour::ZERO;
        }
        self.history.add(self.stored.history.clone());
        self.show();
        Ok(())
    }

    fn saved(&self) -> UsdPerHour {
        self.stored.saved_micros_per_hour + self.saved_since
    }

    fn to_store(&self) -> Stored {
        Stored {
            version: VERSION,
            history: self.history.record_to_keep(),
            saved_micros_per_hour: self.saved(),
        }
    }

    fn show(&self) {
        self.context.metrics.moves_saved.set(self.saved().as_f64());
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use axum::http::Method;
    use poolwright_core::{PodKey, Uid};
    use serde_json::{Value, json};

    use super::*;
    use crate::edge::clock::testing::TestClock;
    use crate::edge::clock::{Clock, SharedClock};
    use crate::edge::signal::Sender;
    use crate::executor::context::testing::leading;
    use crate::fake_api::{FakeApi, Fault};
    use crate::leader::LeaderTerm;

    const PATH: &str = "/api/v1/namespaces/poolwright/configmaps/poolwright-moves";

    /// A controller that leads.
    struct Scene {
        moves: Moves,
        clock: Arc<TestClock>,
        _leader: Sender<Option<LeaderTerm>>,
    }

    impl Scene {
        fn new(api: &FakeApi) -> Self {
            let clock = Arc::new(TestClock::new());
            let shared: SharedClock = clock.clone();
            let (context, leader) = leading(api, &shared, Vec::new());
            Self { moves: Moves::new("poolwright", context), clock, _leader: leader }
        }

        /// Lets a pod of the controller `web` give way, and stores that.
        async fn move_pod(&mut self, name: &str) {
            let pod = json!({"metadata": {"name": name, "namespace": "ml", "uid": name,
                    "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "web",
                        "controller": true}]},
                "spec": {"containers": [{"name": "main"}]}});
            let pod = poolwright_intake::pod(&serde_json::from_value(pod).unwrap()).unwrap();
            let world = self.moves.context.world.clone();
            world.change(|state| state.index.apply_pod(pod));
            let given = [(PodKey::new("ml", name), Uid(name.to_owned()))];
            self.moves.history.record_evictions(&world.snapshot(), &given, self.clock.now());
            self.moves.store().await;
        }

        /// Returns the dollars that all leaders saved, and those that this one did.
        fn saved(&self) -> (u64, u64) {
            let metrics = &self.moves.context.metrics;
            (metrics.moves_saved.get() as u64, metrics.saving_realised.get() as u64)
        }

        /// Returns what the metric says of the ConfigMap.
        fn ignored(&self) -> i64 {
            self.moves.context.metrics.saved_state_ignored.with_label_values(&[NAME]).get()
        }
    }

    fn usd(dollars: u64) -> UsdPerHour {
        UsdPerHour::from_micros(dollars * UsdPerHour::MICROS_PER_USD)
    }

    fn text(api: &FakeApi) -> String {
        api.get(PATH).unwrap()["data"][KEY].as_str().unwrap().to_owned()
    }

    fn content(text: &str) -> Value {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": NAME}, "data": {KEY: text}})
    }

    #[tokio::test]
    async fn the_next_leader_knows_the_moves_and_what_they_saved() {
        let api = FakeApi::default();
        let mut old = Scene::new(&api);
        assert!(old.moves.are_known().await);
        old.moves.store().await;
        assert!(api.writes().is_empty(), "nothing has moved");
        old.move_pod("a").await;
        old.moves.count(usd(5)).await;
        old.moves.count(usd(2)).await;
        old.moves.store().await;
        assert_eq!(api.writes().len(), 3, "it is written only after a change");
        let mut new = Scene::new(&api);
        assert!(new.moves.are_known().await);
        assert_eq!(new.moves.history, old.moves.history);
        assert_ne!(new.moves.history, MoveHistory::default());
        assert_eq!((old.saved(), new.saved()), ((7, 7), (7, 0)));
        new.moves.count(usd(1)).await;
        // The old one leads again, and counts nothing twice.
        old.moves.begin();
        assert!(old.moves.are_known().await);
        assert_eq!(old.saved(), (8, 7));
        assert_eq!(new.moves.history, old.moves.history);
    }

    #[tokio::test]
    async fn a_write_counts_once_whether_it_took_effect_or_not() {
        for fault in [Fault::AnswerLost, Fault::Fails(500)] {
            let api = FakeApi::default();
            let mut scene = Scene::new(&api);
            assert!(scene.moves.are_known().await);
            api.fault(Method::POST, "/configmaps", fault);
            scene.moves.count(usd(5)).await;
            scene.move_pod("a").await;
            assert_eq!((scene.saved().0, api.writes().len()), (5, 2), "{fault:?}");
            let mut next = Scene::new(&api);
            assert!(next.moves.are_known().await);
            assert_eq!(next.saved().0, 5, "{fault:?}");
            assert_eq!(next.moves.history, scene.moves.history, "{fault:?}");
        }
    }

    #[tokio::test]
    async fn no_pod_moves_before_the_moves_of_the_last_leader_are_known() {
        let api = FakeApi::default();
        Scene::new(&api).move_pod("a").await;
        let mut new = Scene::new(&api);
        api.fault(Method::GET, "/configmaps", Fault::Fails(500));
        assert!(!new.moves.are_known().await);
        new.clock.advance(Duration::from_secs(29));
        assert!(!new.moves.are_known().await, "plans do not wait for another read so soon");
        new.clock.advance(Duration::from_secs(1));
        assert!(new.moves.are_known().await);
        assert_ne!(new.moves.history, MoveHistory::default());
    }

    #[tokio::test]
    async fn without_the_right_to_read_it_pods_move_and_nothing_is_stored() {
        let api = FakeApi::default();
        let mut scene = Scene::new(&api);
        api.fault(Method::GET, "/configmaps", Fault::Fails(403));
        assert!(scene.moves.are_known().await);
        api.fault(Method::GET, "/configmaps", Fault::Fails(403));
        scene.move_pod("a").await;
        assert!(api.writes().is_empty());
        // The right is granted.
        scene.move_pod("b").await;
        assert!(text(&api).contains("\"a\"") && text(&api).contains("\"b\""), "{}", text(&api));
    }

    #[tokio::test]
    async fn content_of_a_newer_version_or_of_somebody_else_is_never_overwritten() {
        let impossible = r#"{"version": 1, "history": {"moved": {"a": {"yesterday": 1}}}}"#;
        for foreign in [r#"{"version": 2, "moves": 7}"#, "hello", impossible] {
            let api = FakeApi::default();
            api.put(PATH, content(foreign));
            let mut scene = Scene::new(&api);
            assert!(scene.moves.are_known().await, "pods may move");
            scene.move_pod("a").await;
            scene.moves.count(usd(5)).await;
            assert_eq!((text(&api).as_str(), api.writes().len()), (foreign, 0));
            assert_eq!(scene.ignored(), 1, "a metric says so");
            api.remove(PATH);
            scene.move_pod("b").await;
            assert!(text(&api).contains("\"a\""), "after a user has deleted it, all is stored");
            assert_eq!(scene.ignored(), 0);
        }
    }

    #[tokio::test]
    async fn impossible_counts_and_times_in_the_future_do_no_harm() {
        let api = FakeApi::default();
        api.put(
            PATH,
            content(
                r#"{"version": 1, "savedMicrosPerHour": 18446744073709551615, "history":
                    {"moved": {"web": {"9999-01-01T00:00:00Z": 4294967295, "1970-01-01T00:00:00Z": 4294967295}}}}"#,
            ),
        );
        let mut scene = Scene::new(&api);
        assert!(scene.moves.are_known().await);
        scene.move_pod("a").await;
        scene.moves.count(usd(5)).await;
        assert!(
            !text(&api).contains("9999-01-01") && !text(&api).contains("1970-01-01T00:00:00Z"),
            "{}",
            text(&api)
        );
    }
}
