//! The ports and the environment of containers (`validateContainerPorts` and `ValidateEnv` in Kubernetes).

use poolwright_api::FieldProblem;
use serde_json::Value;

use super::{is_missing, one_of, required};
use crate::manifest::refusals::Problems;

/// The most characters in the name of a port.
const MOST: usize = 15;

/// Where a variable may get its value from.
const SOURCES: [&str; 5] = ["fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef"];

/// Adds what is wrong with the ports of a container.
pub(super) fn ports(path: &str, ports: &[Value], into: &mut Problems) {
    for (at, port) in ports.iter().enumerate() {
        let path = format!("{path}[{at}]");
        port_name(&format!("{path}.name"), &port["name"], &ports[..at], into);
        let place = format!("{path}.containerPort");
        if required(&place, &port["containerPort"], "write the number of the port", into) {
            port_number(place, &port["containerPort"], into);
        }
        // Zero stands for none.
        if port["hostPort"] != 0 {
            port_number(format!("{path}.hostPort"), &port["hostPort"], into);
        }
        one_of(&format!("{path}.protocol"), &port["protocol"], &["TCP", "UDP", "SCTP"], into);
    }
}

/// Checks the name of a port, which is not that of a port before it.
fn port_name(path: &str, name: &Value, before: &[Value], into: &mut Problems) {
    let Some(name) = name.as_str().filter(|name| !name.is_empty()) else { return };
    if !is_port_name(name) {
        let cause = format!("an API server refuses the name `{name}`");
        let next = "write at most 15 lower-case letters, digits and single `-`, with a letter among them and no `-` at an end";
        into.push(FieldProblem::new(path, cause, next));
    } else if before.iter().any(|other| other["name"] == *name) {
        let cause = format!("another port of the container has the name `{name}`");
        into.push(FieldProblem::new(path, cause, "rename one of them"));
    }
}

fn is_port_name(name: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    name.len() <= MOST
        && name.bytes().all(is_allowed)
        && name.bytes().any(|byte| byte.is_ascii_lowercase())
        && !name.contains("--")
        && !name.starts_with('-')
        && !name.ends_with('-')
}

/// Checks the number of a port. One of a wrong type is told elsewhere.
fn port_number(path: String, number: &Value, into: &mut Problems) {
    if let Some(number) = number.as_i64().filter(|number| !(1..=65_535).contains(number)) {
        let cause = format!("{number} is not a port");
        into.push(FieldProblem::new(path, cause, "use a number from 1 to 65535"));
    }
}

/// Adds what is wrong with the variables of a container.
pub(super) fn env(path: &str, variables: &[Value], into: &mut Problems) {
    for (at, variable) in variables.iter().enumerate() {
        let (path, place) = (format!("{path}[{at}].valueFrom"), format!("{path}[{at}].name"));
        let name = &variable["name"];
        let is_there = required(&place, name, "name the variable", into);
        if let Some(name) = name.as_str().filter(|name| is_there && !is_variable(name)) {
            let cause = format!("an API server refuses the name `{name}`");
            into.push(FieldProblem::new(place, cause, "write printable ASCII characters without `=`"));
        }
        let from = &variable["valueFrom"];
        if !from.is_object() {
            continue;
        }
        let sources: Vec<&str> = SOURCES.into_iter().filter(|source| !from[*source].is_null()).collect();
        if !is_missing(&variable["value"]) {
            into.push(FieldProblem::new(path, "the variable also has a value", "remove one of them"));
        } else if sources.is_empty() {
            let next = format!("add one of {}, or remove it", SOURCES.join(", "));
            into.push(FieldProblem::new(path, "it names no source", next));
        } else if sources.len() > 1 {
            let cause = format!("a variable has one source, and this has {}", sources.join(" and "));
            into.push(FieldProblem::new(path, cause, "keep one of them"));
        }
    }
}

/// Returns whether a text may be the name of a variable (`IsRelaxedEnvVarName`).
fn is_variable(name: &str) -> bool {
    name.bytes().all(|byte| (b' '..=b'~').contains(&byte) && byte != b'=')
}
