//! The loop that keeps what is known about the durations of pods in a ConfigMap, so that a new leader knows it too.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::Error;
use kube::api::PostParams;
use kube::core::ObjectMeta;
use poolwright_core::{LifeTable, Lives};
use serde::{Deserialize, Serialize};
use tracing::{debug, info, warn};

use super::leader_loop::LeaderLoop;
use crate::config::Config;
use crate::edge::signal::Receiver;
use crate::executor::context::Context;
use crate::executor::status::WRITE_LIMIT;
use crate::leader::LeaderTerm;
use crate::observed::reader::Objects;

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
    kinds: BTreeMap<String, LifeTable>,
}

/// Returns the ConfigMap's data for some knowledge.
pub fn stored(lives: &Lives) -> String {
    let stored = Stored { version: VERSION, kinds: lives.tables().clone() };
    serde_json::to_string(&stored).unwrap_or_default()
}

/// Reads the ConfigMap's data.
fn read(object: &ConfigMap) -> Result<BTreeMap<String, LifeTable>, String> {
    let text = object.data.as_ref().and_then(|data| data.get(KEY)).map_or("", String::as_str);
    let stored: Stored = serde_json::from_str(text).map_err(|error| error.to_string())?;
    if stored.version != VERSION {
        return Err(format!("it has version {}, and this program reads version {VERSION}", stored.version));
    }
    Ok(stored.kinds)
}

/// The loop.
pub struct KeepLives {
    context: Context,
    api: Objects<ConfigMap>,
    /// The object as it was last read or written; `None` before it was read in this term.
    last: Option<ConfigMap>,
    written: String,
    /// Whether the object must not be written, because it could not be understood.
    is_foreign: bool,
}

impl KeepLives {
    /// Creates the loop.
    pub fn new(config: &Arc<Config>, context: Context) -> Self {
        let api = context.reader.namespaced(&config.lease.namespace);
        Self { context, api, last: None, written: String::new(), is_foreign: false }
    }

    /// Reads the object and adds what it knows.
    async fn load(&mut self) -> Result<(), Error> {
        let Some(object) = self.api.get(NAME).await? else {
            self.last = Some(ConfigMap {
                metadata: ObjectMeta { name: Some(NAME.to_owned()), ..ObjectMeta::default() },
                ..ConfigMap::default()
            });
            return Ok(());
        };
        match read(&object) {
            Ok(kinds) => {
                debug!(kinds = kinds.len(), "read what is known about the durations of pods");
                self.context.world.remember_lives(kinds);
            }
            Err(why) => {
                warn!(
                    why,
                    "ConfigMap {NAME} cannot be read, so durations of pods are learned anew and not kept; delete the ConfigMap, or run the version of Poolwright that wrote it"
                );
                self.is_foreign = true;
            }
        }
        self.last = Some(object);
        Ok(())
    }

    async fn write(&mut self) -> Option<()> {
        let mut object = self.last.clone().filter(|_| !self.is_foreign)?;
        let text = self.context.world.view(|all| stored(&all.lives));
        if text == self.written {
            return None;
        }
        object.data = Some(BTreeMap::from([(KEY.to_owned(), text.clone())]));
        let exists = object.metadata.resource_version.is_some();
        let api = self.api.clone();
        let call = async |permit: &_| {
            let api = api.writable(permit);
            if exists {
                api.replace(NAME, &PostParams::default(), &object).await
            } else {
                api.create(&PostParams::default(), &object).await
            }
        };
        match self.context.writer.write("keep-lives", WRITE_LIMIT, call).await {
            Ok(object) => {
                self.last = Some(object);
                self.written = text;
            }
            Err(error) => {
                info!(%error, "what is known about the durations of pods was not stored; it is stored with the next attempt");
                // Somebody else may have written it.
                self.last = self.api.get(NAME).await.ok().flatten().or(self.last.take());
            }
        }
        Some(())
    }
}

impl LeaderLoop for KeepLives {
    const NAME: &'static str = "durations of pods";
    const PAUSE: Duration = PERIOD;

    fn changes(&self) -> Receiver<()> {
        self.context.world.changes()
    }

    fn begin(&mut self, _: LeaderTerm) {
        self.last = None;
        self.written.clear();
        self.is_foreign = false;
    }

    async fn look(&mut self) -> Option<Duration> {
        if self.last.is_none() {
            while let Err(error) = self.load().await {
                warn!(%error, "ConfigMap {NAME} cannot be read; tried again in {AGAIN:?}");
                tokio::time::sleep(AGAIN).await;
            }
            self.written = self.context.world.view(|all| stored(&all.lives));
        } else {
            self.write().await;
        }
        None
    }
}
