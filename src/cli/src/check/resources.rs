//! Checks whether the custom resources are installed, in the version of this program.

use std::collections::BTreeSet;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::ResourceExt;
use poolwright_provider_contract::preflight::Verdict;
use serde_json::Value;

const FIX: &str = "poolwright crds | kubectl apply --server-side -f -";

/// Compares the installed definition, if there is one, with ours.
pub fn verdict(
    ours: &CustomResourceDefinition,
    installed: Result<Option<&CustomResourceDefinition>, &String>,
) -> Verdict {
    let installed = match installed {
        Ok(Some(installed)) => installed,
        Ok(None) => return Verdict::wrong("not installed", FIX),
        Err(why) => return Verdict::undetermined(why.clone()),
    };
    let (wanted, has) = (says(ours), says(installed));
    if let Some(lacks) = wanted.difference(&has).next() {
        return Verdict::wrong(
            format!("the cluster has another version than this program: it lacks {lacks}"),
            FIX,
        );
    }
    if let Some(more) = has.difference(&wanted).next() {
        return Verdict::wrong(
            format!("the cluster has another version than this program: this program does not know {more}"),
            "use the version of poolwright that the cluster runs, or: poolwright crds | kubectl apply --server-side -f -",
        );
    }
    let conditions = installed.status.as_ref().and_then(|status| status.conditions.as_ref());
    let refused = conditions
        .into_iter()
        .flatten()
        .find(|one| (one.type_ == "Established" || one.type_ == "NamesAccepted") && one.status == "False");
    match refused {
        Some(condition) => Verdict::wrong(
            format!("not served: {}", condition.message.as_deref().unwrap_or_default()),
            format!("kubectl describe crd {}", installed.name_any()),
        ),
        None => Verdict::fine("installed, of this version"),
    }
}

/// Returns everything in a definition that users notice: versions, fields with their types, and rules. The parts are compared as
/// text, because an API server stores a definition in its own form.
fn says(crd: &CustomResourceDefinition) -> BTreeSet<String> {
    let mut said = BTreeSet::new();
    for version in &crd.spec.versions {
        said.insert(format!("version {}", version.name));
        let schema = version.schema.as_ref().and_then(|schema| schema.open_api_v3_schema.as_ref());
        if let Some(schema) = schema.and_then(|schema| serde_json::to_value(schema).ok()) {
            // The API server itself describes the fields that every object has.
            for part in ["spec", "status"] {
                fields(&schema["properties"][part], part, &mut said);
            }
        }
    }
    said
}

fn fields(schema: &Value, path: &str, said: &mut BTreeSet<String>) {
    if schema.is_null() {
        return;
    }
    let kind = schema["type"].as_str().unwrap_or("any type");
    said.insert(format!("{path} ({kind})"));
    for rule in schema["x-kubernetes-validations"].as_array().into_iter().flatten() {
        said.insert(format!("the rule of {path}: {}", rule["rule"].as_str().unwrap_or_default()));
    }
    for value in schema["enum"].as_array().into_iter().flatten() {
        said.insert(format!("{path} = {value}"));
    }
    for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
        fields(schema, &format!("{path}.{name}"), said);
    }
    fields(&schema["items"], &format!("{path}[]"), said);
    fields(&schema["additionalProperties"], &format!("{path}.*"), said);
}

#[cfg(test)]
mod tests {
    use crate::clouds::crds;

    use super::*;

    fn changed(crd: &CustomResourceDefinition, change: impl Fn(&mut Value)) -> CustomResourceDefinition {
        let mut value = serde_json::to_value(crd).expect("a CRD is JSON");
        change(&mut value["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]);
        serde_json::from_value(value).expect("a CRD")
    }

    #[test]
    fn an_installed_crd_matches_or_the_difference_is_reported() {
        for ours in crds() {
            assert_eq!(verdict(&ours, Ok(Some(&ours))), Verdict::fine("installed, of this version"));
            let Verdict::Wrong { fix, .. } = verdict(&ours, Ok(None)) else { panic!("not installed") };
            assert_eq!(fix, FIX);
            assert!(matches!(verdict(&ours, Err(&"forbidden".to_owned())), Verdict::Undetermined(_)));
            let newer =
                changed(&ours, |spec| spec["properties"]["tomorrow"] = serde_json::json!({"type": "string"}));
            let Verdict::Wrong { why, .. } = verdict(&ours, Ok(Some(&newer))) else { panic!("it is newer") };
            assert!(why.contains("does not know spec.tomorrow (string)"), "{why}");
            let Verdict::Wrong { why, .. } = verdict(&newer, Ok(Some(&ours))) else { panic!("it is older") };
            assert!(why.contains("it lacks spec.tomorrow (string)"), "{why}");
        }
    }
}
