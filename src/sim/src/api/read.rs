//! Reading: single objects, lists in pages, and the start of watches.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::channel::mpsc::{UnboundedReceiver, unbounded};
use serde_json::{Value, json};

use super::answer::{Answer, Refusal};
use super::kinds::Kind;
use super::route::{Query, Target};
use super::select::Filter;
use super::store::{Store, Subject, bookmark, metadata_of};

/// Lists that clients read in pages: the items left, as they were when the list began.
#[derive(Debug, Default)]
pub(super) struct Pages {
    lists: BTreeMap<String, Page>,
    count: u64,
}

#[derive(Debug)]
struct Page {
    kind: usize,
    version: u64,
    rest: Vec<Arc<Value>>,
}

/// The number of paged lists kept. The oldest is dropped first, like compacted history in etcd.
const MOST_LISTS: usize = 1_000;

/// An open watch.
pub(super) struct Watch {
    pub events: UnboundedReceiver<Value>,
    pub kind: Kind,
    pub partial: bool,
    /// Whether the client wants bookmarks.
    pub bookmarks: bool,
    /// The timeout of the watch, in seconds.
    pub seconds: u64,
    /// The delay of events after the initial state.
    pub late: Duration,
    /// Whether the whole initial state was sent.
    pub told_all: bool,
}

/// The staleness of a watch cache.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Behind {
    /// The number of changes that the cache is behind.
    pub changes: u64,
    /// The delay until it receives them.
    pub late: Duration,
}

/// Returns whether the client wants metadata only.
pub(super) fn is_partial(accept: &str) -> bool {
    accept.contains("as=PartialObjectMetadata")
}

pub(super) fn get(store: &Store, target: &Target<'_>, accept: &str) -> Answer {
    let name = target.name()?;
    let object = store.get(&target.key()?).ok_or_else(|| Refusal::not_found(target.kind, name))?;
    Ok((200, if is_partial(accept) { metadata_of(object) } else { object.as_ref().clone() }))
}

pub(super) fn list(
    store: &Store,
    pages: &mut Pages,
    target: &Target<'_>,
    query: &Query,
    accept: &str,
) -> Answer {
    let kind = target.kind;
    let limit = query.text("limit").and_then(|limit| limit.parse::<usize>().ok()).filter(|limit| *limit > 0);
    let filter = Filter::new(kind, target.namespace.clone(), query)?;
    let (version, mut items) = if let Some(token) = query.text("continue") {
        let page = pages.lists.remove(token).filter(|page| page.kind == target.index);
        let page = page.ok_or_else(|| {
            Refusal::expired("The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter.")
        })?;
        (page.version, page.rest)
    } else {
        wait_for(store, query)?;
        let all = store.of_kind(target.index).filter(|(_, object)| filter.takes(object));
        (store.version(), all.map(|(_, object)| object.clone()).collect())
    };
    let mut metadata = json!({"resourceVersion": version.to_string()});
    if let Some(limit) = limit.filter(|limit| *limit < items.len()) {
        let rest = items.split_off(limit);
        if filter.is_plain() {
            metadata["remainingItemCount"] = json!(rest.len());
        }
        pages.count += 1;
        let token = format!("page-{:010}", pages.count);
        metadata["continue"] = json!(token);
        pages.lists.insert(token, Page { kind: target.index, version, rest });
        if pages.lists.len() > MOST_LISTS {
            pages.lists.pop_first();
        }
    }
    let partial = is_partial(accept);
    let shown = |object: &Arc<Value>| if partial { metadata_of(object) } else { in_list(kind, object) };
    let items: Vec<Value> = items.iter().map(shown).collect();
    let (list, of) = if partial {
        ("PartialObjectMetadataList".to_owned(), "meta.k8s.io/v1".to_owned())
    } else {
        (format!("{}List", kind.kind), kind.api_version())
    };
    let mut answer = json!({"kind": list, "apiVersion": of, "metadata": metadata});
    // `json!` would copy all of them once more.
    answer["items"] = Value::Array(items);
    Ok((200, answer))
}

/// Omits kind and version: a list of a built-in kind does not repeat them in its items.
fn in_list(kind: &Kind, object: &Value) -> Value {
    let mut object = object.clone();
    if kind.custom.is_none()
        && let Some(fields) = object.as_object_mut()
    {
        fields.remove("kind");
        fields.remove("apiVersion");
    }
    object
}

/// Returns the resource version of a request. A version that the server has not reached yet is refused.
fn wait_for(store: &Store, query: &Query) -> Result<Option<u64>, Refusal> {
    let Some(text) = query.text("resourceVersion").filter(|text| *text != "0") else { return Ok(None) };
    let version: u64 = text.parse().map_err(|_| {
        Refusal::bad_request(format!("resourceVersion: Invalid value: \"{text}\": strconv.ParseUint: parsing \"{text}\": invalid syntax"))
    })?;
    if version > store.version() {
        return Err(Refusal {
            code: 504,
            reason: "Timeout",
            message: format!("Too large resource version: {version}, current: {}", store.version()),
            details: json!({"causes": [{"reason": "ResourceVersionTooLarge",
                "message": "Too large resource version"}], "retryAfterSeconds": 1}),
        });
    }
    Ok(Some(version))
}

pub(super) fn watch(
    store: &mut Store,
    target: &Target<'_>,
    query: &Query,
    accept: &str,
    behind: Behind,
) -> Result<Watch, Refusal> {
    let kind = target.kind;
    let mut filter = Filter::new(kind, target.namespace.clone(), query)?;
    if let Some(name) = &target.name {
        filter = filter.with_name(name);
    }
    let since = wait_for(store, query)?;
    let bookmarks = query.flag("allowWatchBookmarks");
    let initial = query.flag("sendInitialEvents");
    if initial && query.text("resourceVersionMatch") != Some("NotOlderThan") {
        let what = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
        let field = ("resourceVersionMatch".to_owned(), format!("Forbidden: {what}"));
        let mut refusal = Refusal::invalid(kind, "", &[field]);
        refusal.message =
            format!("ListOptions.meta.k8s.io \"\" is invalid: resourceVersionMatch: Forbidden: {what}");
        return Err(refusal);
    }
    let partial = is_partial(accept);
    // A watch without a version starts with the current state; so does one with version 0.
    let since = since.filter(|_| !initial);
    let subject = Subject { kind: target.index, filter, partial };
    let seconds = query.text("timeoutSeconds").and_then(|text| text.parse().ok()).unwrap_or(1_800);
    // Only a request that accepts any version may see an old state.
    let any = initial && query.text("resourceVersion") == Some("0");
    if any && behind.changes > 0 {
        let version = store.version_before(behind.changes);
        let events = store.watch_from(subject, version, bookmark(kind, version, partial, true));
        return Ok(Watch {
            events,
            kind: kind.clone(),
            partial,
            bookmarks,
            seconds,
            late: behind.late,
            told_all: false,
        });
    }
    let end = initial.then(|| bookmark(kind, store.version(), partial, true));
    // Like Kubernetes, reports an error of the version inside the watch.
    let events = store.watch(subject, since, end).unwrap_or_else(|refusal| {
        let (sender, events) = unbounded();
        let _ = sender.unbounded_send(json!({"type": "ERROR", "object": refusal.object()}));
        events
    });
    Ok(Watch {
        events,
        kind: kind.clone(),
        partial,
        bookmarks,
        seconds,
        late: Duration::ZERO,
        told_all: false,
    })
}
