//! The quantities of pods beside requests and limits. An API server reads them before it checks anything else.

use poolwright_api::FieldProblem;
use poolwright_catalog::quantity;
use serde_json::Value;

use super::items;
use crate::error::quantity_problem;
use crate::manifest::refusals::{Problems, written_amount};

/// Adds what is wrong with the quantities in the volumes and the variables of a pod.
pub(super) fn check(path: &str, spec: &Value, into: &mut Problems) {
    for (at, volume) in items(&spec["volumes"]).iter().enumerate() {
        let path = format!("{path}.volumes[{at}]");
        amount(&format!("{path}.emptyDir.sizeLimit"), &volume["emptyDir"]["sizeLimit"], into);
        files(&format!("{path}.downwardAPI"), &volume["downwardAPI"], into);
        for (place, source) in items(&volume["projected"]["sources"]).iter().enumerate() {
            files(&format!("{path}.projected.sources[{place}].downwardAPI"), &source["downwardAPI"], into);
        }
    }
    for list in ["initContainers", "containers"] {
        for (at, container) in items(&spec[list]).iter().enumerate() {
            for (place, variable) in items(&container["env"]).iter().enumerate() {
                let path = format!("{path}.{list}[{at}].env[{place}].valueFrom");
                divisor(&path, &variable["valueFrom"], into);
            }
        }
    }
}

/// Checks the files that have resources of containers in them.
fn files(path: &str, source: &Value, into: &mut Problems) {
    for (at, file) in items(&source["items"]).iter().enumerate() {
        divisor(&format!("{path}.items[{at}]"), file, into);
    }
}

fn divisor(path: &str, from: &Value, into: &mut Problems) {
    amount(&format!("{path}.resourceFieldRef.divisor"), &from["resourceFieldRef"]["divisor"], into);
}

fn amount(path: &str, stated: &Value, into: &mut Problems) {
    let Some(text) = written_amount(stated) else { return };
    match quantity::parse(&text) {
        Err(error) => into.push(quantity_problem(path, &error)),
        Ok(amount) if amount.is_negative() => {
            into.push(FieldProblem::new(path, format!("`{text}` is negative"), "write zero or more"));
        }
        Ok(_) => {}
    }
}
