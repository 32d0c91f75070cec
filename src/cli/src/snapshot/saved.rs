//! The file of a snapshot: a list of Kubernetes objects with a header, and an API server in memory that answers from it.
//!
//! The commands that read a cluster read such a file through the same client and the same code, so they come to the same results.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::path::Path;
use std::sync::Arc;

use http::{Request, Response};
use jiff::Timestamp;
use kube::Client;
use kube::client::Body;
use poolwright_catalog::Catalogue;
use poolwright_terms::API_VERSION;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tower::service_fn;

use crate::clouds::is_karpenters;
use crate::exit::Failure;
use crate::source::{self, Source};

/// The kind of the header.
const KIND: &str = "Snapshot";
/// The format that this program writes and reads. It changes when an older program would misread a file.
const FORMAT: u64 = 1;
/// What tells how to get a file that this version reads.
const ANEW: &str = "take it again with this version: poolwright snapshot -o FILE";

/// What a file says about itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Header {
    api_version: String,
    kind: String,
    format: u64,
    /// The version of Poolwright that wrote it.
    pub version: String,
    /// When the cluster was read.
    pub taken_at: Timestamp,
    /// The namespace of the context.
    pub namespace: String,
    /// Whether names are aliases.
    pub anonymised: bool,
    /// The kinds that were asked for.
    pub kinds: Vec<Asked>,
    /// Instance types and prices, each with its source and date.
    pub catalogue: Catalogue,
}

impl Header {
    /// Creates the header of a new file.
    pub fn new(taken_at: Timestamp, namespace: &str, kinds: Vec<Asked>, catalogue: Catalogue) -> Self {
        Self {
            api_version: API_VERSION.to_owned(),
            kind: KIND.to_owned(),
            format: FORMAT,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            taken_at,
            namespace: namespace.to_owned(),
            anonymised: false,
            kinds,
            catalogue,
        }
    }

    /// Returns the resources that the API server answered with this HTTP status, each with what it said.
    pub fn refused(&self, code: u16) -> impl Iterator<Item = (String, &str)> {
        self.kinds.iter().filter_map(move |asked| {
            let refused = asked.refused.as_ref().filter(|refused| refused.code == code)?;
            let message = if refused.message.is_empty() { "forbidden" } else { refused.message.as_str() };
            Some((asked.name(), message))
        })
    }

    /// Returns the resources that may not be listed, each with what the API server said.
    pub fn forbidden(&self) -> Vec<String> {
        self.refused(403).map(|(resource, message)| format!("{resource} ({message})")).collect()
    }

    /// Returns whether the kind of an object is one that was asked for.
    fn asks_for(&self, object: &Value) -> bool {
        self.kinds.iter().any(|asked| asked.group == group_of(object) && object["kind"] == asked.kind)
    }
}

/// A kind that was asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Asked {
    /// The API group; empty for the core.
    pub group: String,
    /// The plural name of the resource.
    pub resource: String,
    /// The kind.
    pub kind: String,
    /// Why its objects are not in the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<Refused>,
}

impl Asked {
    /// Names the resource as kubectl does: several groups may have one of this name.
    pub fn name(&self) -> String {
        let Self { group, resource, .. } = self;
        if group.is_empty() { resource.clone() } else { format!("{resource}.{group}") }
    }
}

/// The answer of the API server in place of a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    /// The HTTP status: 403 if the list is forbidden, 404 if the cluster does not have the kind.
    pub code: u16,
    /// What it said.
    pub message: String,
}

/// A cluster in a file.
#[derive(Clone, Debug, PartialEq)]
pub struct SavedCluster {
    /// The name of the file.
    pub name: String,
    /// What the file says about itself.
    pub header: Header,
    /// The objects.
    pub items: Vec<Value>,
}

impl SavedCluster {
    /// Reads a file; `-` is standard input.
    pub fn read(path: &Path) -> Result<Self, Failure> {
        let source =
            source::large_file(path).map_err(|cause| Failure::bad_input(format!("--snapshot: {cause}")))?;
        Self::parse(&source.name, &source.text)
            .map_err(|cause| Failure::bad_input(format!("--snapshot: {}: {cause}", source.name)))
    }

    /// Reads the content of a file.
    ///
    /// # Errors
    ///
    /// The text is no snapshot, or one that this version cannot read. The error says what to do.
    pub fn parse(name: &str, text: &str) -> Result<Self, String> {
        let other = "`poolwright snapshot -o FILE` writes one (to plan for manifests, use -f)";
        let mut value: Value = serde_json::from_str(text)
            .map_err(|error| format!("not a snapshot of a cluster: {error}; {other}"))?;
        let header = value.get_mut("snapshot").map(Value::take).unwrap_or_default();
        if header["kind"] != KIND {
            return Err(format!("not a snapshot of a cluster; {other}"));
        }
        if header["apiVersion"] != API_VERSION || header["format"] != FORMAT {
            let by = header["version"].as_str().unwrap_or("another version");
            return Err(format!(
                "a snapshot in format {} of {}, which Poolwright {by} wrote; this is Poolwright {}, which reads format {FORMAT} of \
                 {API_VERSION}; {ANEW}",
                header["format"],
                header["apiVersion"].as_str().unwrap_or_default(),
                env!("CARGO_PKG_VERSION"),
            ));
        }
        let mut header: Header = serde_json::from_value(header)
            .map_err(|error| format!("its header cannot be read: {error}; {ANEW}"))?;
        // A catalogue is sorted, whatever became of the file.
        let catalogue = &header.catalogue;
        let types = catalogue.types().values().cloned().collect();
        header.catalogue = Catalogue::new(catalogue.origin().clone(), types, catalogue.offerings().to_vec());
        let Some(Value::Array(items)) = value.get_mut("items").map(Value::take) else {
            return Err(format!("it has no list `items`; {ANEW}"));
        };
        if let Some(other) = items.iter().find(|item| !header.asks_for(item)) {
            // As JSON, because the file may have been changed by hand.
            return Err(format!(
                "the object with the name {} in `items` has the kind {} of {}, which is none of its `kinds`; {ANEW}",
                other["metadata"]["name"], other["kind"], other["apiVersion"]
            ));
        }
        Ok(Self { name: name.to_owned(), header, items })
    }

    /// Returns the content of the file, with a line for each object.
    pub fn text(&self) -> String {
        let header = json!(self.header);
        let mut text =
            format!("{{\"apiVersion\":\"v1\",\"kind\":\"List\",\"snapshot\":{header},\"items\":[\n");
        for (at, item) in self.items.iter().enumerate() {
            text.push_str(&item.to_string());
            text.push_str(if at + 1 < self.items.len() { ",\n" } else { "\n" });
        }
        text.push_str("]}\n");
        text
    }

    /// Returns the objects as manifests, without those of Karpenter, from which Poolwright buys nothing.
    pub fn manifests(&self) -> Source {
        let name = if self.name.is_empty() { "the cluster" } else { self.name.as_str() };
        let items: Vec<&Value> = self.items.iter().filter(|item| !is_karpenters(group_of(item))).collect();
        let list = json!({"apiVersion": "v1", "kind": "List", "items": items});
        Source { name: name.to_owned(), text: list.to_string() }
    }

    /// Returns a client of an API server that has these objects and allows what was allowed when they were read.
    ///
    /// # Panics
    ///
    /// Outside a Tokio runtime.
    pub fn client(&self) -> Client {
        let answers = Arc::new(self.answers());
        let service = service_fn(move |request: Request<Body>| {
            let (code, body) = answer(&answers, request.uri().path());
            let response = Response::builder().status(code).header("content-type", "application/json");
            let response = response.body(Body::from(body)).expect("the status is one of HTTP");
            std::future::ready(Ok::<_, Infallible>(response))
        });
        Client::new(service, self.header.namespace.as_str())
    }

    fn answers(&self) -> Answers {
        let mut items: BTreeMap<(&str, &str), Vec<&Value>> = BTreeMap::new();
        for item in &self.items {
            items.entry((group_of(item), item["kind"].as_str().unwrap_or_default())).or_default().push(item);
        }
        let answer = |asked: &Asked| {
            let found =
                items.get(&(asked.group.as_str(), asked.kind.as_str())).map_or(&[][..], Vec::as_slice);
            let answer = match &asked.refused {
                Some(refused) => status(if refused.code == 404 { 404 } else { 403 }, &refused.message),
                None => (200, list(&asked.kind, found)),
            };
            ((asked.group.clone(), asked.resource.clone()), answer)
        };
        self.header.kinds.iter().map(answer).collect()
    }
}

/// Returns the API group of an object; empty for the core.
fn group_of(object: &Value) -> &str {
    object["apiVersion"].as_str().and_then(|version| version.split_once('/')).map_or("", |(group, _)| group)
}

/// An HTTP status and a body.
type Answer = (u16, Vec<u8>);

/// The answers to requests for lists, by group and resource.
type Answers = BTreeMap<(String, String), Answer>;

fn list(kind: &str, items: &[&Value]) -> Vec<u8> {
    let list = json!({"apiVersion": "v1", "kind": format!("{kind}List"), "metadata": {"resourceVersion": "0"}, "items": items});
    list.to_string().into_bytes()
}

fn status(code: u16, message: &str) -> Answer {
    let reason = if code == 403 { "Forbidden" } else { "NotFound" };
    let status = json!({"apiVersion": "v1", "kind": "Status", "metadata": {}, "status": "Failure", "code": code,
        "reason": reason, "message": message});
    (code, status.to_string().into_bytes())
}

/// Answers a request for a list. Its selectors are those with which the file was written.
fn answer(answers: &Answers, path: &str) -> Answer {
    let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
    let (group, rest) = match parts.as_slice() {
        ["api", _, rest @ ..] => ("", rest),
        ["apis", group, _, rest @ ..] => (*group, rest),
        _ => ("", &[][..]),
    };
    let (resource, is_list) = match rest {
        [resource] => (*resource, true),
        ["namespaces", _, resource, ..] | [resource, ..] => (*resource, false),
        [] => ("", false),
    };
    match answers.get(&(group.to_owned(), resource.to_owned())) {
        Some(known) if is_list || known.0 != 200 => known.clone(),
        Some(_) => status(404, "a snapshot has only lists"),
        None => status(403, &format!("a snapshot has no {resource}")),
    }
}

#[cfg(test)]
mod tests {
    use poolwright_catalog::builtin;

    use super::*;

    fn saved(items: Vec<Value>) -> SavedCluster {
        let asked = |resource: &str, kind: &str, refused| Asked {
            group: String::new(),
            resource: resource.to_owned(),
            kind: kind.to_owned(),
            refused,
        };
        let refused = Refused { code: 403, message: "you may not".to_owned() };
        let kinds = vec![asked("pods", "Pod", None), asked("services", "Service", Some(refused))];
        let header = Header::new(Timestamp::UNIX_EPOCH, "ml", kinds, builtin());
        SavedCluster { name: "f".to_owned(), header, items }
    }

    #[test]
    fn what_is_written_is_read_with_every_price() {
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a\n\u{202e}"}});
        for items in [vec![], vec![pod.clone()], vec![pod.clone(), pod]] {
            let written = saved(items);
            assert_eq!(SavedCluster::parse("f", &written.text()), Ok(written));
        }
    }

    #[test]
    fn other_files_and_snapshots_of_other_versions_are_refused_with_the_next_step() {
        let newer = saved(vec![]).text().replace("\"format\":1", "\"format\":2");
        let cut = &saved(vec![]).text()[..100];
        let odd = saved(vec![json!({"apiVersion": "v1", "kind": "Pood", "metadata": {"name": "a"}})]).text();
        let none = saved(vec![json!(1)]).text();
        for (text, said) in [
            (newer.as_str(), "a snapshot in format 2 of poolwright.dev/v1alpha1, which Poolwright "),
            (newer.as_str(), "which reads format 1 of poolwright.dev/v1alpha1; take it again"),
            (
                "{\"kind\":\"List\",\"items\":[]}",
                "not a snapshot of a cluster; `poolwright snapshot -o FILE`",
            ),
            ("kind: Pod", "not a snapshot of a cluster: "),
            (
                odd.as_str(),
                "the object with the name \"a\" in `items` has the kind \"Pood\" of \"v1\", which is none of its",
            ),
            (none.as_str(), "the object with the name null in `items`"),
            (cut, "not a snapshot of a cluster: "),
            ("[]", "not a snapshot of a cluster; "),
        ] {
            let error = SavedCluster::parse("f", text).expect_err("it cannot be read");
            assert!(error.contains(said), "{error}");
        }
    }

    #[test]
    fn lists_are_answered_and_what_was_forbidden_stays_forbidden() {
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}});
        let foreign = json!({"apiVersion": "x.io/v1", "kind": "Pod", "metadata": {"name": "b"}});
        let answers = saved(vec![pod.clone(), foreign]).answers();
        let answered = |path: &str| {
            let (code, body) = answer(&answers, path);
            (code, serde_json::from_slice::<Value>(&body).expect("JSON"))
        };
        let (code, pods) = answered("/api/v1/pods");
        assert_eq!((code, &pods["items"]), (200, &json!([pod])));
        for (path, code, said) in [
            ("/api/v1/services", 403, "you may not"),
            ("/api/v1/namespaces/ml/services/web", 403, "you may not"),
            ("/api/v1/namespaces/ml/pods/a", 404, "a snapshot has only lists"),
            ("/apis/events.k8s.io/v1/events", 403, "a snapshot has no events"),
            ("/version", 403, "a snapshot has no "),
        ] {
            let (found, body) = answered(path);
            assert_eq!((found, &body["message"]), (code, &json!(said)), "{path}");
        }
    }
}
