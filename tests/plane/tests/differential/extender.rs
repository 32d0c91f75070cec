//! A scheduler extender. It records the nodes that the kube-scheduler allows for each pod, and offers the pod only those of the
//! case. Thus a pod is held to its node without a change of any rule.

use std::collections::{BTreeMap, BTreeSet};
use std::net::TcpListener;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::Context;
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::routing::post;
use serde::Deserialize;
use serde_json::{Value, json};

/// The nodes that the extender offers a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Allowed {
    /// All nodes that the scheduler's own rules allow, except those of [fences](crate::stage::Stage::fence).
    All,
    /// Only this one.
    Only(String),
    /// None: the scheduler is only asked what it would do.
    Nothing,
}

/// How the names of fences begin.
pub const FENCE: &str = "fence";

/// A scheduler extender.
#[derive(Clone, Debug, Default)]
pub struct Extender(Arc<Mutex<Known>>);

#[derive(Debug, Default)]
struct Known {
    allowed: BTreeMap<String, Allowed>,
    /// The nodes that the scheduler's own rules allowed each pod at its last try.
    feasible: BTreeMap<String, BTreeSet<String>>,
}

/// The scheduler's request: `ExtenderArgs` of `k8s.io/kube-scheduler/extender/v1`, for extenders that cache nodes.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Question {
    pod: Value,
    node_names: Vec<String>,
}

impl Extender {
    /// Starts an extender on a free port of loopback and returns the port. It runs as long as this runtime.
    pub fn serve() -> anyhow::Result<(Self, u16)> {
        let extender = Self::default();
        let listener = TcpListener::bind("127.0.0.1:0")?;
        listener.set_nonblocking(true)?;
        let port = listener.local_addr()?.port();
        let listener = tokio::net::TcpListener::from_std(listener)?;
        let router = Router::new().route("/filter", post(filter)).with_state(extender.clone());
        tokio::spawn(async move { axum::serve(listener, router).await.context("the extender") });
        Ok((extender, port))
    }

    /// Sets the nodes offered to a pod (`namespace/name`).
    pub fn allow(&self, pod: String, nodes: Allowed) {
        self.known().allowed.insert(pod, nodes);
    }

    /// Returns the nodes that the scheduler's own rules allowed a pod at its last try.
    pub fn feasible(&self, pod: &str) -> BTreeSet<String> {
        self.known().feasible.get(pod).cloned().unwrap_or_default()
    }

    /// Forgets everything.
    pub fn clear(&self) {
        *self.known() = Known::default();
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn answer(&self, question: Question) -> Value {
        let meta = &question.pod["metadata"];
        let text = |field: &str| meta[field].as_str().unwrap_or_default();
        let pod = format!("{}/{}", text("namespace"), text("name"));
        let mut known = self.known();
        let names = match known.allowed.get(&pod) {
            Some(Allowed::All) => {
                question.node_names.iter().filter(|node| !node.starts_with(FENCE)).cloned().collect()
            }
            Some(Allowed::Only(node)) if question.node_names.contains(node) => vec![node.clone()],
            _ => Vec::new(),
        };
        known.feasible.insert(pod, question.node_names.into_iter().collect());
        json!({"NodeNames": names})
    }
}

async fn filter(State(extender): State<Extender>, body: Bytes) -> axum::body::Body {
    let answer = match serde_json::from_slice::<Question>(&body) {
        Ok(question) => extender.answer(question),
        Err(error) => json!({"Error": error.to_string()}),
    };
    answer.to_string().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_extender_offers_a_pod_only_its_own_node() {
        let extender = Extender::default();
        extender.allow("red/p".into(), Allowed::Only("n1".into()));
        let ask = |nodes: &[&str]| {
            let question =
                json!({"Pod": {"metadata": {"namespace": "red", "name": "p"}}, "NodeNames": nodes});
            extender.answer(serde_json::from_value(question).unwrap())["NodeNames"].clone()
        };
        assert_eq!(ask(&["n0", "n1"]), json!(["n1"]));
        assert_eq!(ask(&["n0"]), json!([]));
        assert_eq!(extender.feasible("red/p"), BTreeSet::from(["n0".to_owned()]));
        extender.allow("red/p".into(), Allowed::All);
        assert_eq!(ask(&["n0", "fence7"]), json!(["n0"]));
    }
}
