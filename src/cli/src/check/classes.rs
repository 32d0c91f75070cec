//! Node classes of manifests.

use std::path::PathBuf;

use poolwright_api::EC2NodeClass;
use poolwright_terms::GROUP;
use serde_json::Value;

use crate::convert::documents;
use crate::exit::Failure;
use crate::problems::Problems;
use crate::source;

/// A class: its name, and what it says.
pub type Class = (String, poolwright_api::EC2NodeClassSpec);

/// The EC2NodeClasses of these files; other objects are passed over.
pub fn read(paths: &[PathBuf]) -> Result<Vec<Class>, Failure> {
    let (mut classes, mut problems) = (Vec::new(), Problems::new());
    for source in source::manifests(paths)? {
        for document in documents(&source.text) {
            let place = format!("{}, document {}", source.name, document.number);
            match document.objects {
                Err(error) => problems.push(format!("{place}: {error}")),
                Ok(objects) => {
                    for object in objects.into_iter().filter(is_class) {
                        match class(object) {
                            Ok(class) => classes.push(class),
                            Err(error) => problems.push(format!("{place}: {error}")),
                        }
                    }
                }
            }
        }
    }
    if problems.is_empty() && classes.is_empty() && !paths.is_empty() {
        problems.push(format!("there is no EC2NodeClass of {GROUP} in these files"));
    }
    problems
        .or(classes)
        .map_err(|problems| Failure::bad_input(format!("the node classes cannot be used: {problems}")))
}

fn is_class(object: &Value) -> bool {
    let group = object["apiVersion"].as_str().and_then(|version| version.split('/').next());
    object["kind"] == "EC2NodeClass" && group == Some(GROUP)
}

fn class(object: Value) -> Result<Class, String> {
    let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    if name.is_empty() {
        return Err("an EC2NodeClass has no name: set metadata.name".to_owned());
    }
    let class: EC2NodeClass =
        serde_json::from_value(object).map_err(|error| format!("EC2NodeClass `{name}`: {error}"))?;
    Ok((name, class.spec))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_class_is_told_from_karpenters_and_one_that_cannot_be_read_is_named() {
        let ours = json!({"apiVersion": "poolwright.dev/v1alpha1", "kind": "EC2NodeClass", "metadata": {"name": "gpu"},
            "spec": {"role": "r", "amiFamily": "AL2023", "amiSelectorTerms": [{"id": "ami-1"}],
                "subnetSelectorTerms": [{"id": "subnet-1"}], "securityGroupSelectorTerms": [{"id": "sg-1"}]}});
        assert!(is_class(&ours));
        assert_eq!(class(ours.clone()).expect("a class").0, "gpu");
        let mut wrong = ours.clone();
        wrong["spec"]["subnetSelectorTerms"] = json!(7);
        assert!(class(wrong).expect_err("it is no list").contains("EC2NodeClass `gpu`"));
        let mut nameless = ours.clone();
        nameless["metadata"] = json!({});
        assert!(class(nameless).expect_err("it has no name").contains("metadata.name"));
        let mut other = ours;
        other["apiVersion"] = json!("karpenter.k8s.aws/v1");
        assert!(!is_class(&other));
    }
}
