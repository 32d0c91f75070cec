//! The loop that keeps what is learned from pods in a ConfigMap, so that a new leader knows it too: how long they run, how soon nodes
//! without work get the next one, and how often they come.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Error;
use poolwright_core::{Arrivals, Bursts, Gaps, LifeTable, Lives, Uid};
use serde::{Deserialize, Serialize};
use tracing::{debug, info, warn};

use super::leader_loop::LeaderLoop;
use super::own_config_map::{OwnConfigMap, parse};
use crate::config::Config;
use crate::edge::signal::Receiver;
use crate::executor::context::Context;
use crate::leader::LeaderTerm;

/// The name of the ConfigMap, in the controller's namespace.
pub const NAME: &str = "poolwright-lives";
/// The key of the data.
const KEY: &str = "lives.json";
/// The version of the format that this program writes and reads.
const VERSION: u32 = 1;
/// The pause between two writes.
const PERIOD: Duration = Duration::from_mins(5);
/// The pause before reading again after a failure.
const AGAIN: Duration = Duration::from_secs(30);

/// The data of the ConfigMap.
#[derive(Debug, Serialize, Deserialize)]
struct Stored {
    version: u32,
    /// All pods that ended until then count.
    until: Timestamp,
    /// UIDs of pods that ended shortly before and count already.
    #[serde(default)]
    recent: Vec<Uid>,
    kinds: BTreeMap<String, LifeTable>,
    /// The times until nodes without work got the next pod. Absent in the content of older versions.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    gaps: BTreeMap<String, LifeTable>,
    /// The pods that come for which buffers with `units: auto` keep room. Absent in the content of older versions.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    arrivals: BTreeMap<String, Bursts>,
}

/// Returns the ConfigMap's data for what is known at a time, and the pods that ended shortly before.
pub fn stored(lives: &Lives, gaps: &Gaps, arrivals: &Arrivals, until: Timestamp, recent: Vec<Uid>) -> String {
    let (kinds, gaps, arrivals) = (lives.tables().clone(), gaps.tables().clone(), arrivals.sizes().clone());
    let stored = Stored { version: VERSION, until, recent, kinds, gaps, arrivals };
    serde_json::to_string(&stored).unwrap_or_default()
}

/// What the controller has learned, for programs that only read it.
#[derive(Clone, Debug, Default)]
pub struct Learned {
    /// Durations of pods, by kind.
    pub lives: BTreeMap<String, LifeTable>,
    /// Times until nodes without work got the next pod.
    pub gaps: Gaps,
    /// How often pods come for which buffers keep room.
    pub arrivals: Arrivals,
}

impl Learned {
    /// Reads the ConfigMap.
    ///
    /// # Errors
    ///
    /// The content was written by another version or by somebody else.
    pub fn read(object: &ConfigMap) -> Result<Self, String> {
        let stored = read(object)?;
        let learned = stored.map(|stored| Self {
            lives: stored.kinds,
            gaps: Gaps::of_tables(stored.gaps),
            arrivals: Arrivals::of_sizes(stored.arrivals),
        });
        Ok(learned.unwrap_or_default())
    }
}

/// Reads the ConfigMap's data; `None` if it has none yet.
fn read(object: &ConfigMap) -> Result<Option<Stored>, String> {
    let Some(stored) = parse::<Stored>(object, KEY, VERSION)? else { return Ok(None) };
    let tables = stored.kinds.iter().chain(&stored.gaps).map(|(kind, table)| (kind, table.is_sound()));
    let bursts = stored.arrivals.iter().map(|(size, bursts)| (size, bursts.is_sound()));
    match tables.chain(bursts).find(|(_, is_sound)| !is_sound) {
        Some((kind, _)) => Err(format!("the counts of kind `{kind}` are impossible")),
        None => Ok(Some(stored)),
    }
}

/// The loop.
pub struct KeepLives {
    context: Context,
    object: OwnConfigMap,
    /// The life tables in it.
    kinds: BTreeMap<String, LifeTable>,
    /// The tables of gaps in it.
    gaps: BTreeMap<String, LifeTable>,
    /// The pods that come in it.
    arrivals: BTreeMap<String, Bursts>,
    /// Whether the object must not be written, because it could not be understood.
    is_foreign: bool,
}

impl KeepLives {
    /// Creates the loop.
    pub fn new(config: &Arc<Config>, context: Context) -> Self {
        let object = OwnConfigMap::new(&config.lease.namespace, NAME, KEY, context.clone());
        let (kinds, gaps, arrivals) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Self { context, object, kinds, gaps, arrivals, is_foreign: false }
    }

    /// Reads the object. What it knows replaces what is known, except for pods that ended since it was written.
    async fn load(&mut self) -> Result<(), Error> {
        let found = self.object.read().await;
        if let Err(Error::Api(status)) = &found
            && status.code == 403
        {
            self.context.metrics.saved_state_ignored.with_label_values(&[NAME]).set(1);
        }
        let read = read(found?);
        let was_foreign = std::mem::replace(&mut self.is_foreign, read.is_err());
        self.context.metrics.saved_state_ignored.with_label_values(&[NAME]).set(self.is_foreign.into());
        self.kinds.clear();
        self.gaps.clear();
        self.arrivals.clear();
        match read {
            Ok(Some(Stored { until, recent, kinds, gaps, arrivals, .. })) => {
                debug!(kinds = kinds.len(), "read the learned durations of pods");
                self.kinds.clone_from(&kinds);
                self.gaps.clone_from(&gaps);
                let all = kinds.len();
                let forgotten = self.context.world.remember_lives(kinds, until, recent.into_iter().collect());
                if forgotten > 0 {
                    warn!(
                        forgotten,
                        "ConfigMap {NAME} has {all} kinds of pods, and only those that ended last count; durations of the others are learned again from pods that end"
                    );
                }
                if !gaps.is_empty() {
                    self.context.world.remember_gaps(Gaps::of_tables(gaps));
                }
                self.arrivals.clone_from(&arrivals);
                if !arrivals.is_empty() {
                    self.context.world.remember_arrivals(Arrivals::of_sizes(arrivals));
                }
            }
            Err(why) if !was_foreign => warn!(
                why,
                "ConfigMap {NAME} cannot be read, so how long pods run, how soon idle nodes get pods and how often pods come is learned anew and not kept; delete the ConfigMap, or run the version of Poolwright that wrote it"
            ),
            Ok(None) | Err(_) => {}
        }
        Ok(())
    }

    /// Writes the object if it would change.
    async fn write(&mut self) {
        if self.is_foreign || !self.object.is_read() {
            return;
        }
        let (lives, until, recent) = self.context.world.known_lives();
        let (gaps, arrivals) = self.context.world.view(|all| (all.gaps.clone(), all.arrivals.clone()));
        if *lives.tables() == self.kinds && *gaps.tables() == self.gaps && *arrivals.sizes() == self.arrivals
        {
            return;
        }
        match self.object.write("keep-lives", stored(&lives, &gaps, &arrivals, until, recent)).await {
            Ok(()) => {
                (self.kinds, self.gaps) = (lives.tables().clone(), gaps.tables().clone());
                self.arrivals.clone_from(arrivals.sizes());
            }
            Err(error) => {
                info!(%error, "the learned durations of pods were not stored; the next attempt stores them");
            }
        }
    }
}

impl LeaderLoop for KeepLives {
    const NAME: &'static str = "durations of pods";
    const PAUSE: Duration = PERIOD;

    fn changes(&self) -> Receiver<()> {
        self.context.world.changes()
    }

    fn begin(&mut self, _: LeaderTerm) {
        self.object.forget();
    }

    async fn look(&mut self) -> Option<Duration> {
        if self.is_foreign {
            // A user may have deleted it meanwhile.
            self.object.forget();
        }
        while !self.object.is_read()
            && let Err(error) = self.load().await
        {
            warn!(%error, "ConfigMap {NAME} cannot be read; tried again in {AGAIN:?}");
            tokio::time::sleep(AGAIN).await;
        }
        self.write().await;
        None
    }
}

#[cfg(test)]
mod tests {
    use axum::http::Method;
    use jiff::SignedDuration;
    use poolwright_core::index::Change;
    use serde_json::{Value, json};

    use super::*;
    use crate::edge::clock::SharedClock;
    use crate::edge::clock::testing::TestClock;
    use crate::edge::signal::Sender;
    use crate::executor::context::testing::leading;
    use crate::fake_api::{FakeApi, Fault};

    const PATH: &str = "/api/v1/namespaces/poolwright/configmaps/poolwright-lives";

    /// A controller that leads.
    struct Scene {
        keep: KeepLives,
        _leader: Sender<Option<LeaderTerm>>,
    }

    impl Scene {
        fn new(api: &FakeApi, clock: &Arc<TestClock>) -> Self {
            let clock: SharedClock = clock.clone();
            let (context, leader) = leading(api, &clock, Vec::new());
            let config = Arc::new(Config::new("controller", "poolwright"));
            Self { keep: KeepLives::new(&config, context), _leader: leader }
        }

        /// Lets some pods of a kind end.
        fn learn(&self, kind: &str, pods: u32) {
            self.keep.context.world.change(|state| {
                let mut lives = (*state.index.view().lives).clone();
                for _ in 0..pods {
                    lives.observe(
                        &[kind.to_owned()],
                        SignedDuration::from_mins(7),
                        true,
                        Timestamp::UNIX_EPOCH,
                    );
                }
                state.index.set_lives(lives);
                Change::None
            });
        }

        fn known(&self) -> Lives {
            self.keep.context.world.view(|all| (*all.lives).clone())
        }

        /// Returns what the metric says of the ConfigMap.
        fn ignored(&self) -> i64 {
            self.keep.context.metrics.saved_state_ignored.with_label_values(&[NAME]).get()
        }
    }

    fn text(api: &FakeApi) -> String {
        api.get(PATH).unwrap()["data"][KEY].as_str().unwrap().to_owned()
    }

    fn foreign(text: &str) -> Value {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": NAME}, "data": {KEY: text}})
    }

    #[tokio::test]
    async fn the_next_leader_knows_what_the_last_one_learned() {
        let (api, clock) = (FakeApi::default(), Arc::new(TestClock::new()));
        let mut old = Scene::new(&api, &clock);
        old.keep.look().await;
        assert!(api.writes().is_empty(), "nothing is known yet");
        old.learn("1 GPUs", 3);
        old.keep.look().await;
        old.keep.look().await;
        assert_eq!(api.writes().len(), 1, "it is written only after a change");
        old.learn("2 GPUs", 1);
        old.keep.look().await;
        assert_eq!(api.writes().len(), 2);
        let mut new = Scene::new(&api, &clock);
        new.keep.look().await;
        assert_eq!(new.known().tables(), old.known().tables());
        assert_eq!(api.writes().len(), 2, "reading is no change");
    }

    #[tokio::test]
    async fn the_next_leader_knows_how_soon_nodes_without_work_got_pods() {
        let (api, clock) = (FakeApi::default(), Arc::new(TestClock::new()));
        let mut old = Scene::new(&api, &clock);
        let mut gaps = Gaps::default();
        gaps.observe("g5.xlarge/gpu", SignedDuration::from_secs(70), true, Timestamp::UNIX_EPOCH);
        old.keep.context.world.remember_gaps(gaps.clone());
        old.keep.look().await;
        let mut new = Scene::new(&api, &clock);
        new.keep.look().await;
        assert_eq!(new.keep.context.world.view(|all| (*all.gaps).clone()), gaps);
        // Content without this part is read as before.
        let mut older: Value = serde_json::from_str(&text(&api)).unwrap();
        older.as_object_mut().unwrap().remove("gaps");
        api.put(PATH, foreign(&older.to_string()));
        let mut new = Scene::new(&api, &clock);
        new.keep.look().await;
        assert!(!new.keep.is_foreign && new.keep.context.world.view(|all| all.gaps.tables().is_empty()));
    }

    /// The history of some pools to which pods of several sizes come.
    fn arrivals(sizes: usize, pods: i64) -> Arrivals {
        let mut arrivals = Arrivals::default();
        for number in 0..sizes {
            let size = format!("96000m cpu, 1099511627776 memory, 8 nvidia.com/gpu/pool-{number:045}");
            for pod in 0..pods {
                let at = Timestamp::from_second(1_800_000_000 + pod).unwrap();
                arrivals.came(&size, (at, at), None, 20);
            }
            for _ in 0..pods {
                arrivals.left(&size, Timestamp::from_second(1_800_000_000).unwrap());
            }
        }
        arrivals
    }

    #[tokio::test]
    async fn the_next_leader_knows_how_often_pods_came_and_keeps_a_history_that_it_cannot_read() {
        let (api, clock) = (FakeApi::default(), Arc::new(TestClock::new()));
        let mut old = Scene::new(&api, &clock);
        let known = arrivals(2, 5);
        old.keep.context.world.remember_arrivals(known.clone());
        old.keep.look().await;
        let mut new = Scene::new(&api, &clock);
        new.keep.look().await;
        assert_eq!(new.keep.context.world.view(|all| (*all.arrivals).clone()), known);
        new.keep.look().await;
        assert_eq!(api.writes().len(), 1, "reading is no change");
        let impossible = json!({"needed": [4_000_000_000_u64], "taken": [], "left": [], "paying": 1, "last": 0, "seen": 1});
        for wrong in [json!({ "gpu": impossible }), json!({"gpu": {"needed": "many"}}), json!("many")] {
            let mut other: Value = serde_json::from_str(&text(&api)).unwrap();
            other["arrivals"] = wrong;
            api.put(PATH, foreign(&other.to_string()));
            let mut new = Scene::new(&api, &clock);
            new.keep.look().await;
            assert!(new.keep.context.world.view(|all| all.arrivals.sizes().is_empty()), "it learns anew");
            new.keep.context.world.remember_arrivals(known.clone());
            new.keep.look().await;
            assert_eq!(text(&api), other.to_string());
        }
    }

    #[test]
    fn the_history_of_pods_that_come_is_small_also_if_everything_is_full() {
        let arrivals = arrivals(200, 100);
        let text = stored(&Lives::prior(), &Gaps::default(), &arrivals, Timestamp::UNIX_EPOCH, Vec::new());
        assert!(arrivals.sizes().len() == 50 && text.len() < 50_000, "{} bytes", text.len());
    }

    #[tokio::test]
    async fn content_of_a_newer_version_or_of_somebody_else_is_never_overwritten() {
        let impossible = r#"{"version": 1, "until": "2026-01-01T00:00:00Z", "kinds": {"a": {"ended": [4000000000], "lost": [], "used": 0}}}"#;
        for content in [r#"{"version": 2, "curves": 7}"#, "hello", impossible] {
            let (api, clock) = (FakeApi::default(), Arc::new(TestClock::new()));
            api.put(PATH, foreign(content));
            let mut scene = Scene::new(&api, &clock);
            scene.learn("1 GPUs", 3);
            scene.keep.look().await;
            scene.keep.look().await;
            assert_eq!((text(&api).as_str(), api.writes().len()), (content, 0));
            assert_eq!(scene.known().tables().len(), 1, "it learns anew");
            assert_eq!(scene.ignored(), 1, "a metric says so");
        }
    }

    #[tokio::test]
    async fn an_empty_config_map_of_the_user_is_filled_and_keeps_its_other_keys() {
        let (api, clock) = (FakeApi::default(), Arc::new(TestClock::new()));
        api.put(PATH, json!({"metadata": {"name": NAME, "labels": {"a": "b"}}, "data": {"note": "kept"}}));
        let mut scene = Scene::new(&api, &clock);
        scene.learn("1 GPUs", 3);
        scene.keep.look().await;
        let object = api.get(PATH).unwrap();
        assert_eq!(
            (&object["data"]["note"], &object["metadata"]["labels"]["a"]),
            (&json!("kept"), &json!("b"))
        );
        assert!(text(&api).contains("1 GPUs"));
    }

    #[tokio::test]
    async fn after_a_failed_write_it_reads_again_and_writes_again() {
        let (api, clock) = (FakeApi::default(), Arc::new(TestClock::new()));
        let mut scene = Scene::new(&api, &clock);
        scene.learn("1 GPUs", 3);
        api.fault(Method::POST, "/configmaps", Fault::AnswerLost);
        scene.keep.look().await;
        scene.learn("2 GPUs", 1);
        scene.keep.look().await;
        scene.learn("2 GPUs", 1);
        api.remove(PATH);
        scene.keep.look().await;
        scene.keep.look().await;
        assert!(text(&api).contains("2 GPUs"), "it is created again after it was deleted");
    }

    #[tokio::test]
    async fn a_foreign_content_that_appears_during_the_term_stays() {
        let (api, clock) = (FakeApi::default(), Arc::new(TestClock::new()));
        let mut scene = Scene::new(&api, &clock);
        scene.learn("1 GPUs", 3);
        scene.keep.look().await;
        api.put(PATH, foreign(r#"{"version": 2}"#));
        for _ in 0..3 {
            scene.learn("1 GPUs", 1);
            scene.keep.look().await;
        }
        assert_eq!(text(&api), r#"{"version": 2}"#);
    }

    #[test]
    fn the_stored_state_is_small_also_if_everything_is_full() {
        let mut lives = Lives::prior();
        for at in 0..400_000_u64 {
            let kind = format!(
                "a-job-with-a-usual-name-{:03} with 16 CPUs, 128 GiB/namespace research, queue night/8 GPUs",
                at % 400
            );
            let age = SignedDuration::from_secs(10 * 11_i64.pow(u32::try_from(at / 400 % 7).unwrap()));
            let age = age + SignedDuration::from_secs(i64::try_from(at).unwrap() * age.as_secs() / 40_000);
            lives.observe(&[kind], age, at % 2 == 0, Timestamp::UNIX_EPOCH);
        }
        let mut gaps = Gaps::default();
        for at in 0..200_000_u32 {
            let gap = SignedDuration::from_secs(i64::from(at / 200 % 500));
            gaps.observe(&format!("g5.{:03}xlarge/gpu", at % 200), gap, at % 2 == 0, Timestamp::UNIX_EPOCH);
        }
        let text = stored(&lives, &gaps, &Arrivals::default(), Timestamp::UNIX_EPOCH, Vec::new());
        assert_eq!(lives.tables().len(), 400);
        assert!(text.len() < 500_000, "{} bytes", text.len());
        println!("{} bytes", text.len());
    }

    #[test]
    fn the_stored_state_fits_into_a_config_map_with_the_longest_names_and_the_most_ends() {
        let mut lives = Lives::prior();
        for at in 0..400 {
            let middle = format!("namespace {}, queue {}", "n".repeat(63), "q".repeat(63));
            let kind = format!("{}{at:03} with 64 CPUs, 1024 GiB/{middle}/8 GPUs", "t".repeat(250));
            let mut age = 5_000;
            for _ in 0..150 {
                for pod in 0..6 {
                    lives.observe(
                        std::slice::from_ref(&kind),
                        SignedDuration::from_millis(age),
                        pod % 2 == 0,
                        Timestamp::UNIX_EPOCH,
                    );
                }
                age += age / 10;
            }
        }
        let uid = |at: u32| Uid(format!("01234567-89ab-cdef-0123-{at:012}"));
        let recent = (0..1_000).map(uid).collect();
        let text = stored(&lives, &Gaps::default(), &Arrivals::default(), Timestamp::UNIX_EPOCH, recent);
        assert_eq!(lives.tables().len(), 400);
        assert!(text.len() < 1_000_000, "{} bytes", text.len());
    }

    #[tokio::test]
    async fn after_a_user_deletes_foreign_content_it_keeps_what_it_learned_meanwhile() {
        let (api, clock) = (FakeApi::default(), Arc::new(TestClock::new()));
        api.put(PATH, foreign("hello"));
        let mut scene = Scene::new(&api, &clock);
        scene.learn("1 GPUs", 3);
        scene.keep.look().await;
        assert_eq!(scene.ignored(), 1);
        api.remove(PATH);
        scene.keep.look().await;
        assert!(text(&api).contains("1 GPUs"));
        assert_eq!(scene.ignored(), 0);
    }

    #[tokio::test]
    async fn what_another_leader_wrote_meanwhile_is_added_to() {
        let (api, clock) = (FakeApi::default(), Arc::new(TestClock::new()));
        let mut old = Scene::new(&api, &clock);
        old.learn("1 GPUs", 3);
        old.keep.look().await;
        let mut new = Scene::new(&api, &clock);
        new.keep.look().await;
        new.learn("2 GPUs", 1);
        new.keep.look().await;
        // The old one has not noticed yet that it does not lead. The API server refuses its write.
        old.learn("3 GPUs", 1);
        old.keep.look().await;
        assert!(text(&api).contains("2 GPUs") && !text(&api).contains("3 GPUs"));
        old.keep.look().await;
        assert!(old.known().tables().contains_key("2 GPUs"), "it reads before it writes again");
        assert_eq!(old.known().tables()["1 GPUs"], new.known().tables()["1 GPUs"], "nothing counts twice");
    }

    #[tokio::test]
    async fn too_many_kinds_and_a_time_in_the_future_do_no_harm() {
        let (api, clock) = (FakeApi::default(), Arc::new(TestClock::new()));
        let one = r#"{"ended": [1], "lost": [], "used": 9223372036854775807}"#;
        let kinds: Vec<String> = (0..20_000).map(|at| format!(r#""{at} GPUs": {one}"#)).collect();
        let until = "9999-12-30T00:00:00Z";
        api.put(
            PATH,
            foreign(&format!(r#"{{"version": 1, "until": "{until}", "kinds": {{{}}}}}"#, kinds.join(","))),
        );
        let mut scene = Scene::new(&api, &clock);
        scene.keep.look().await;
        assert_eq!(scene.known().tables().len(), 400);
        scene.learn("8 GPUs", 3);
        scene.keep.look().await;
        assert!(text(&api).len() < 100_000 && !text(&api).contains(until));
    }
}
