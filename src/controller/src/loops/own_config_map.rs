//! A ConfigMap that keeps what the next leader must know. One loop owns each, so that no two write the same object.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::Error;
use kube::api::PostParams;
use kube::core::ObjectMeta;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::executor::context::Context;
use crate::executor::status::WRITE_LIMIT;
use crate::leader::writer::WriteError;
use crate::observed::reader::Objects;

/// A ConfigMap of the controller, with data under one key.
pub struct OwnConfigMap {
    context: Context,
    api: Objects<ConfigMap>,
    name: &'static str,
    key: &'static str,
    /// The object as it was last read or written; `None` if it must be read.
    last: Option<ConfigMap>,
}

impl OwnConfigMap {
    /// Creates access to the ConfigMap of this name.
    pub fn new(namespace: &str, name: &'static str, key: &'static str, context: Context) -> Self {
        let api = context.reader.namespaced(namespace);
        Self { context, api, name, key, last: None }
    }

    /// Returns whether the object was read, and no write has failed since.
    pub const fn is_read(&self) -> bool {
        self.last.is_some()
    }

    /// Requires that the object is read before it is written again.
    pub fn forget(&mut self) {
        self.last = None;
    }

    /// Reads the object. Returns an empty one if there is none.
    pub async fn read(&mut self) -> Result<&ConfigMap, Error> {
        let object = self.api.get(self.name).await?.unwrap_or_else(|| self.absent());
        Ok(self.last.insert(object))
    }

    /// Writes the data, and keeps other keys. After a failure the object must be read again: somebody else may have written or
    /// deleted it.
    pub async fn write(&mut self, kind: &'static str, data: String) -> Result<(), WriteError<Error>> {
        let mut object = self.last.take().unwrap_or_else(|| self.absent());
        object.data.get_or_insert_default().insert(self.key.to_owned(), data);
        let exists = object.metadata.resource_version.is_some();
        let (api, name) = (self.api.clone(), self.name);
        let call = async |permit: &_| {
            let api = api.writable(permit);
            if exists {
                api.replace(name, &PostParams::default(), &object).await
            } else {
                api.create(&PostParams::default(), &object).await
            }
        };
        self.last = Some(self.context.writer.write(kind, WRITE_LIMIT, call).await?);
        Ok(())
    }

    fn absent(&self) -> ConfigMap {
        ConfigMap {
            metadata: ObjectMeta { name: Some(self.name.to_owned()), ..ObjectMeta::default() },
            ..ConfigMap::default()
        }
    }
}

/// The part of the data that every version has.
#[derive(Deserialize)]
struct Versioned {
    version: u32,
}

/// Reads the data under a key; `None` if the object has none yet.
///
/// # Errors
///
/// The data was written by another version or by somebody else.
pub fn parse<T: DeserializeOwned>(object: &ConfigMap, key: &str, version: u32) -> Result<Option<T>, String> {
    let Some(text) = object.data.as_ref().and_then(|data| data.get(key)) else { return Ok(None) };
    let found: Versioned = serde_json::from_str(text).map_err(|error| error.to_string())?;
    if found.version != version {
        return Err(format!("it has version {}, and this program reads version {version}", found.version));
    }
    serde_json::from_str(text).map(Some).map_err(|error| error.to_string())
}
