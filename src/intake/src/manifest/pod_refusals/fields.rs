//! The ports and the environment of containers (`validateContainerPorts` and `ValidateEnv` in Kubernetes), and some fields of the
//! whole pod.

use poolwright_api::FieldProblem;
use serde_json::Value;

use super::{is_missing, items, labels, one_of, required};
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

/// Adds what is wrong with the ports that the containers take from their node (`validatePodHostNetworkDeps` and
/// `checkHostPortConflicts`). With host networking, each port is one of the node.
pub(super) fn host_ports(path: &str, spec: &Value, into: &mut Problems) {
    let is_on_host = spec["hostNetwork"] == true;
    let mut taken = Vec::new();
    for (at, container) in items(&spec["containers"]).iter().enumerate() {
        for (place, port) in items(&container["ports"]).iter().enumerate() {
            let path = format!("{path}.containers[{at}].ports[{place}]");
            let own = port["containerPort"].as_i64();
            let stated = port["hostPort"].as_i64().filter(|host| *host != 0);
            if let Some((own, host)) = own.zip(stated).filter(|(own, host)| is_on_host && own != host) {
                let cause =
                    format!("`{host}` is not the containerPort {own}, as it must be with hostNetwork");
                into.push(FieldProblem::new(format!("{path}.hostPort"), cause, "remove it"));
            }
            let Some(host) = stated.or(own.filter(|_| is_on_host)) else { continue };
            let text = |field: &str, default: &'static str| {
                port[field].as_str().filter(|text| !text.is_empty()).unwrap_or(default)
            };
            let place = (host, text("protocol", "TCP"), text("hostIP", ""));
            if taken.contains(&place) {
                let field = if stated.is_some() { "hostPort" } else { "containerPort" };
                let cause = format!("another port of the pod takes port {host} ({}) of the node", place.1);
                into.push(FieldProblem::new(format!("{path}.{field}"), cause, "change one of them"));
            }
            taken.push(place);
        }
    }
}

/// Checks how long a pod may run. A Job may have a deadline of zero, but a pod may not.
pub(super) fn deadline(path: &str, spec: &Value, into: &mut Problems) {
    let most = i64::from(i32::MAX);
    let seconds = spec["activeDeadlineSeconds"].as_i64();
    if let Some(seconds) = seconds.filter(|seconds| !(1..=most).contains(seconds)) {
        let cause = format!("`{seconds}` is not from 1 to {most}");
        let next = "write such a number, or remove it";
        into.push(FieldProblem::new(format!("{path}.activeDeadlineSeconds"), cause, next));
    }
}

/// Checks the name servers (`validatePodDNSConfig`): without a policy, a pod has only its own.
pub(super) fn dns(path: &str, spec: &Value, into: &mut Problems) {
    if spec["dnsPolicy"] == "None" && items(&spec["dnsConfig"]["nameservers"]).is_empty() {
        let next = "add one, because dnsPolicy is None, or change the policy";
        into.push(FieldProblem::new(format!("{path}.dnsConfig.nameservers"), "missing", next));
    }
}

/// Checks the scheduling gates (`validateSchedulingGates`). A pod with a gate has no node (`ValidatePodCreate`).
pub(super) fn gates(path: &str, spec: &Value, into: &mut Problems) {
    let gates = items(&spec["schedulingGates"]);
    for (at, gate) in gates.iter().enumerate() {
        let (path, name) = (format!("{path}.schedulingGates[{at}].name"), &gate["name"]);
        let is_there = required(&path, name, "add it, such as example.com/quota", into);
        let Some(text) = name.as_str().filter(|_| is_there) else { continue };
        if !labels::is_key(text) {
            let cause = format!("an API server refuses the name `{text}`");
            into.push(FieldProblem::new(path, cause, "write it as `name` or `domain/name`"));
        } else if gates[..at].iter().any(|other| other["name"] == *name) {
            let cause = format!("another gate has the name `{text}`");
            into.push(FieldProblem::new(path, cause, "remove one of them"));
        }
    }
    if !gates.is_empty() && !is_missing(&spec["nodeName"]) {
        let cause = "an API server refuses it with schedulingGates";
        into.push(FieldProblem::new(format!("{path}.nodeName"), cause, "remove one of them"));
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
