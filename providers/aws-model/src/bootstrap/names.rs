//! Checks labels, taints and names by the rules of Kubernetes before they are written to user data, so that no value can break
//! out of the text that contains it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use poolwright_terms::foreign::excerpt;
use poolwright_terms::labels;

use super::facts::{ClusterFacts, NodeFacts};
use super::problem::Problem;

/// Checks all facts except the user's own user data.
pub(super) fn check(cluster: &ClusterFacts, node: &NodeFacts) -> Result<(), Problem> {
    check_cluster(cluster)?;
    for (key, value) in &node.labels {
        if !is_key(key) || !is_value(value) {
            return Err(Problem::Label(excerpt(&format!("{key}={value}"))));
        }
    }
    for taint in &node.taints {
        if !is_key(&taint.key) || !is_value(&taint.value) {
            return Err(Problem::Taint(excerpt(&format!("{}={}", taint.key, taint.value))));
        }
    }
    let kubelet = &node.kubelet;
    let maps = [
        &kubelet.system_reserved,
        &kubelet.kube_reserved,
        &kubelet.eviction_hard,
        &kubelet.eviction_soft,
        &kubelet.eviction_soft_grace_period,
    ];
    for (key, value) in maps.into_iter().flatten() {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-%+".contains(&byte);
        let is_plain = |text: &str| (1..=63).contains(&text.len()) && text.bytes().all(plain);
        if !is_plain(key) || !is_plain(value) {
            return Err(Problem::Kubelet(excerpt(key)));
        }
    }
    Ok(())
}

fn check_cluster(cluster: &ClusterFacts) -> Result<(), Problem> {
    let wrong = |what, expected| Err(Problem::Cluster { what, expected });
    let plain = |text: &str, others: &[u8]| {
        text.bytes().all(|byte| byte.is_ascii_alphanumeric() || others.contains(&byte))
    };
    if !(1..=100).contains(&cluster.name.len()) || !plain(&cluster.name, b"-_.") {
        return wrong("name", "of 1 to 100 letters, digits, `-`, `_` and `.`");
    }
    let host = cluster.endpoint.strip_prefix("https://").unwrap_or_default();
    if !(1..=300).contains(&host.len()) || !plain(host, b"-.:[]") {
        return wrong("endpoint", "a URL of a host such as https://10.0.0.1:6443, without a path");
    }
    if cluster.ca.is_empty() || STANDARD.decode(&cluster.ca).is_err() {
        return wrong("certificate authority", "PEM in base64");
    }
    if let Some(cidr) = &cluster.service_cidr {
        let (address, bits) = cidr.split_once('/').unwrap_or_default();
        if address.parse::<std::net::IpAddr>().is_err() || !bits.parse::<u8>().is_ok_and(|bits| bits <= 128) {
            return wrong("service CIDR", "a range such as 10.100.0.0/16");
        }
    }
    Ok(())
}

/// Returns whether it is a qualified name: an optional DNS prefix with `/`, then at most 63 characters
/// (<https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#syntax-and-character-set>).
fn is_key(key: &str) -> bool {
    let (prefix, name) = match key.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, key),
    };
    let is_prefix = |prefix: &str| {
        let part = |part: &str| {
            let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
            !part.is_empty() && part.bytes().all(inner) && !part.starts_with('-') && !part.ends_with('-')
        };
        prefix.len() <= 253 && prefix.split('.').all(part)
    };
    prefix.is_none_or(is_prefix) && !name.is_empty() && is_value(name)
}

fn is_value(value: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let end = |byte: Option<&u8>| byte.is_none_or(u8::is_ascii_alphanumeric);
    let bytes = value.as_bytes();
    bytes.len() <= 63 && bytes.iter().all(|byte| inner(*byte)) && end(bytes.first()) && end(bytes.last())
}

/// Labels in these domains and their subdomains are reserved for Kubernetes.
const SYSTEM: [&str; 2] = ["kubernetes.io", "k8s.io"];
/// The reserved labels that a kubelet may set nevertheless, by domain and by key.
const KUBELET_DOMAINS: [&str; 2] = ["kubelet.kubernetes.io", "node.kubernetes.io"];
const KUBELET_LABELS: [&str; 10] = [
    labels::HOSTNAME,
    labels::OS,
    labels::ARCH,
    labels::ZONE,
    labels::REGION,
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
    "beta.kubernetes.io/instance-type",
    "beta.kubernetes.io/os",
    "beta.kubernetes.io/arch",
];

/// Returns whether a kubelet may set this label on its own node. A kubelet does not start with other reserved labels
/// (<https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/#noderestriction>).
pub(super) fn kubelet_may_set(key: &str) -> bool {
    let Some((domain, _)) = key.split_once('/') else { return true };
    let under = |other: &str| domain == other || domain.ends_with(&format!(".{other}"));
    !SYSTEM.iter().any(|system| under(system))
        || KUBELET_DOMAINS.iter().any(|domain| under(domain))
        || KUBELET_LABELS.contains(&key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kubelet_gives_itself_no_roles_and_nothing_else_of_the_systems() {
        for key in [
            "team",
            "example.com/a",
            "node.kubernetes.io/instance-type",
            "topology.kubernetes.io/zone",
            "x.node.kubernetes.io/a",
            "mykubernetes.io/a",
            "nvidia.com/gpu.present",
        ] {
            assert!(kubelet_may_set(key), "{key}");
        }
        for key in [
            "node-role.kubernetes.io/gpu",
            "kubernetes.io/role",
            "k8s.io/a",
            "a.k8s.io/b",
            "node-restriction.kubernetes.io/a",
            "notnode.kubernetes.io/a",
        ] {
            assert!(!kubelet_may_set(key), "{key}");
        }
    }

    #[test]
    fn keys_and_values_are_those_of_kubernetes_and_nothing_else() {
        let long = "a".repeat(64);
        for key in ["a", "A_b.c-1", "example.com/a", "a.b-c.d/X"] {
            assert!(is_key(key), "{key}");
        }
        for key in [
            "",
            "/",
            "a/",
            "/a",
            "a/b/c",
            "-a",
            "a-",
            "a b",
            "a=b",
            "a,b",
            "a\nb",
            "Example.com/a",
            "a..b/c",
            "\"",
            "ä",
            &long,
        ] {
            assert!(!is_key(key), "{key:?}");
        }
        assert!(
            is_value("") && is_value("true") && !is_value(&long) && !is_value("a\"") && !is_value("$(id)")
        );
    }
}
