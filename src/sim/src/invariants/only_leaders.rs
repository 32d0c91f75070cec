//! Only the leader writes.

use std::sync::{Arc, Mutex, PoisonError};

use axum::http::Method;
use serde_json::Value;

use super::Violation;
use crate::api::ApiServer;
use crate::time::Time;
use crate::wire::{Process, Witness};

pub(super) const RULE: &str = "nothing is written while another process holds the Lease";

/// Checks each mutation before it is carried out.
#[derive(Clone, Debug, Default)]
pub struct Leadership {
    found: Arc<Mutex<Option<Violation>>>,
}

impl Leadership {
    /// Returns the first violation.
    pub fn violation(&self) -> Option<Violation> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Makes a witness that reads the Lease at this path.
    pub fn witness(&self, server: ApiServer, lease: String, time: Time) -> Witness {
        let found = self.found.clone();
        Arc::new(move |process: &Process, method: &Method, path: &str| {
            if path.contains("/leases") {
                return;
            }
            let (code, object) = server.ask(&Method::GET, &lease, "", &Value::Null);
            let holder = object["spec"]["holderIdentity"].as_str().filter(|holder| !holder.is_empty());
            let Some(holder) = holder.filter(|holder| code == 200 && *holder != process.identity) else {
                return;
            };
            let seen = format!(
                "{method} {path} of {}.{} arrives while {holder} holds the lease",
                process.identity, process.incarnation
            );
            let violation = Violation { rule: RULE, seen, at: time.elapsed() };
            found.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(violation);
        })
    }
}
