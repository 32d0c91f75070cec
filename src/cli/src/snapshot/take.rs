//! Reads a cluster, and keeps of its objects what plans and views read.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use jiff::Timestamp;
use kube::api::{GetParams, ListParams};
use kube::core::Request;
use kube::{Client, Error};
use poolwright_catalog::{Catalogue, Price, PriceSource};
use poolwright_controller::LIVES;
use serde_json::Value;

use super::aliases::Aliases;
use super::fields::kept;
use super::kinds::{Kind, Shapes, kinds};
use super::saved::{Asked, Header, Refused, SavedCluster};
use crate::clouds::is_karpenters;
use crate::print::counted;

/// The namespace of the controller in its manifests. What it has learned is read there if you may not look into all namespaces.
const NAMESPACE: &str = "poolwright";
/// The variable by which the operator of elastic PyTorchJobs says how many workers a job needs at least.
const LEAST_WORKERS: &str = "PET_NNODES";

/// What an anonymous snapshot names as the source of prices and rates.
const NO_SOURCE: &str = "catalogue of the snapshot";

/// A snapshot, and what it lacks.
pub struct Taken {
    /// The snapshot.
    pub saved: SavedCluster,
    /// The number of pods whose gang may have fewer members than its object says, by a variable that is left out.
    elastic: usize,
}

/// Reads the cluster of a client.
///
/// # Errors
///
/// The API server does not answer, or answers with another error than that a list is forbidden or a kind is not there.
pub async fn take(client: &Client, catalogue: Catalogue, now: Timestamp) -> Result<Taken> {
    let (mut all_asked, mut items, mut elastic) = (Vec::new(), Vec::new(), 0);
    for kind in kinds() {
        let refused = match list(client, &kind).await {
            Ok(objects) => {
                elastic +=
                    objects.iter().filter(|object| kind.name == "Pod" && names_least_workers(object)).count();
                let shape = kind.shape();
                items.extend(objects.iter().filter(|object| object.is_object()).filter_map(|object| {
                    let mut object = kept(object, &shape)?;
                    // Objects in a list do not have these fields.
                    object["apiVersion"] = kind.api_version().into();
                    object["kind"] = kind.name.into();
                    Some(object)
                }));
                None
            }
            Err(Error::Api(status)) if matches!(status.code, 403 | 404) => {
                Some(Refused { code: status.code, message: status.message.clone() })
            }
            Err(error) => return Err(error).with_context(|| format!("cannot list {}", kind.plural)),
        };
        all_asked.push(Asked {
            group: kind.group.to_owned(),
            resource: kind.plural.to_owned(),
            kind: kind.name.to_owned(),
            refused,
        });
    }
    let header = Header::new(now, client.default_namespace(), all_asked, catalogue);
    Ok(Taken { saved: SavedCluster { name: String::new(), header, items }, elastic })
}

/// Lists the objects of a kind as they are.
async fn list(client: &Client, kind: &Kind) -> kube::Result<Vec<Value>> {
    let wanted = ListParams { field_selector: kind.selector(), ..ListParams::default() };
    let request = Request::new(kind.path()).list(&wanted).map_err(Error::BuildRequest)?;
    match client.request::<Value>(request).await {
        Ok(mut answer) => Ok(match answer.get_mut("items").map(Value::take) {
            Some(Value::Array(items)) => items,
            _ => Vec::new(),
        }),
        Err(Error::Api(status)) if status.code == 403 && kind.name == "ConfigMap" => learned(client).await,
        Err(error) => Err(error),
    }
}

/// Reads what the controller has learned where the manifests put it.
async fn learned(client: &Client) -> kube::Result<Vec<Value>> {
    let path = format!("/api/v1/namespaces/{NAMESPACE}/configmaps");
    let request = Request::new(path).get(LIVES, &GetParams::default()).map_err(Error::BuildRequest)?;
    match client.request::<Value>(request).await {
        Ok(object) => Ok(vec![object]),
        Err(Error::Api(status)) if status.code == 404 => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// Returns the catalogue without the origins of its content, which may be the paths of files.
fn without_sources(catalogue: &Catalogue) -> Catalogue {
    let source = PriceSource::from(NO_SOURCE);
    let mut offerings = catalogue.offerings().to_vec();
    for offering in &mut offerings {
        if let Price::Known(quote) = &mut offering.price {
            quote.source = source.clone();
        }
        if let Some(interruptions) = &mut offering.interruptions {
            interruptions.source = source.clone();
        }
    }
    let types = catalogue.types().values().cloned().collect();
    Catalogue::new(catalogue.origin().clone(), types, offerings).named(NO_SOURCE)
}

/// Names the kind of an object, with its group if it is of Karpenter, which has kinds of the same names as Poolwright.
fn kind_of(item: &Value) -> String {
    let text = |field: &str| item[field].as_str().unwrap_or_default();
    match text("apiVersion").split_once('/') {
        Some((group, _)) if is_karpenters(group) => format!("{}.{group}", text("kind")),
        _ => text("kind").to_owned(),
    }
}

fn names_least_workers(pod: &Value) -> bool {
    let containers = pod["spec"]["containers"].as_array().into_iter().flatten();
    let mut variables = containers.flat_map(|one| one["env"].as_array().into_iter().flatten());
    variables.any(|one| one["name"] == LEAST_WORKERS)
}

impl Taken {
    /// Replaces names by aliases, and drops what may contain names: sentences, and what the controller has learned about workloads.
    pub fn anonymise(&mut self) {
        let SavedCluster { header, items, .. } = &mut self.saved;
        items.retain(|item| item["kind"] != "ConfigMap");
        let shapes = Shapes::new();
        let aliases = Aliases::of(items, &shapes, &header.namespace);
        for item in items.iter_mut() {
            aliases.rename(item, &shapes);
        }
        header.namespace = aliases.name(&header.namespace);
        header.anonymised = true;
        for refused in header.kinds.iter_mut().filter_map(|asked| asked.refused.as_mut()) {
            refused.message.clear();
        }
        header.catalogue = without_sources(&header.catalogue);
    }

    /// Says that gangs may need fewer members than their objects say; `None` if that is not so.
    pub fn left_out_of_gangs(&self) -> Option<String> {
        (self.elastic > 0).then(|| {
            format!(
                "The variable {LEAST_WORKERS} of {} is left out, too, so elastic PyTorchJobs count as jobs that need all their workers.",
                counted(self.elastic, "pod")
            )
        })
    }

    /// Says what was written to `place`, what it lacks, and what could not be listed.
    pub fn summary(&self, place: &str) -> Vec<String> {
        let header = &self.saved.header;
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for item in &self.saved.items {
            *counts.entry(kind_of(item)).or_default() += 1;
        }
        let counts: Vec<String> = counts.iter().map(|(kind, count)| format!("{kind} {count}")).collect();
        let counts = if counts.is_empty() { "no objects".to_owned() } else { counts.join(", ") };
        let origin = header.catalogue.origin();
        let age =
            origin.as_of.map_or_else(|| "without dates".to_owned(), |date| format!("the oldest of {date}"));
        let mut lines = vec![
            format!("Wrote {place}: {counts}; prices of {}, {age}.", origin.source),
            "Left out: Secrets, events and ended pods; environment variables, commands, arguments, probes and images of containers; \
             userData and tags of node classes; all fields and annotations that no plan reads."
                .to_owned(),
        ];
        let forbidden = header.forbidden();
        if !forbidden.is_empty() {
            lines.push(format!(
                "You may not list {}, so the snapshot lacks them; ask for the right (`kubectl auth can-i --list` shows yours), and take it \
                 again. A command that needs them says so.",
                forbidden.join("; ")
            ));
        }
        let absent: Vec<String> = header.refused(404).map(|(resource, _)| resource).collect();
        if !absent.is_empty() {
            lines.push(format!("The cluster has no {}.", absent.join(", ")));
        }
        lines.extend(self.left_out_of_gangs());
        if header.anonymised {
            lines.push(
                "Names are aliases. Learned durations of pods and sentences of Poolwright are left out, too."
                    .to_owned(),
            );
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use poolwright_catalog::{Interruptions, builtin};

    use super::*;

    #[test]
    fn a_catalogue_without_sources_names_no_file_and_has_the_same_prices() {
        let path = "/home/jo/prices.csv";
        let catalogue = builtin().named(path);
        let mut offerings = catalogue.offerings().to_vec();
        for offering in &mut offerings {
            let source = PriceSource::from(path);
            if let Price::Known(quote) = &mut offering.price {
                quote.source = source.clone();
            }
            offering.interruptions = Some(Interruptions { per_million_hours: 1, source, as_of: None });
        }
        let anonymous = without_sources(&catalogue.with_offerings(offerings));
        assert!(!serde_json::to_string(&anonymous).expect("JSON").contains(path));
        let prices = |of: &Catalogue| {
            let prices = of.offerings().iter().map(|one| (one.id.clone(), one.price.known()));
            prices.collect::<Vec<_>>()
        };
        assert_eq!(prices(&anonymous), prices(&catalogue));
    }
}
