//! The rights that the controller needs in the cluster: the rules of `deploy/rbac.yaml` one by one, and those of
//! `deploy/rbac-kubeadm.yaml` if nodes join with kubeadm.

use std::collections::{BTreeMap, BTreeSet};

use futures::StreamExt;
use futures::stream;
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec, SubjectAccessReview,
    SubjectAccessReviewSpec,
};
use k8s_openapi::api::rbac::v1::{ClusterRole, PolicyRule, Role};
use kube::api::PostParams;
use kube::{Api, Client};
use poolwright_controller::causes;
use poolwright_provider_contract::preflight::Verdict;

use crate::args::ServiceAccount;
use crate::convert::documents;

const RBAC: &str = include_str!("../../../../deploy/rbac.yaml");

const KUBEADM: &str = include_str!("../../../../deploy/rbac-kubeadm.yaml");

/// The number of concurrent reviews.
const TOGETHER: usize = 8;

/// One right.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Right {
    group: String,
    /// The resource with its subresource: `pods/eviction`.
    resource: String,
    verb: String,
    /// The only object that the right is for; `None` for all objects.
    name: Option<String>,
    /// The only namespace that the right is for; `None` for all namespaces.
    namespace: Option<String>,
}

/// Whether the right is granted, or why that is unknown.
pub type Answer = Result<bool, String>;

/// Returns all rights of `deploy/rbac.yaml`. Rights in one namespace are those in the namespace of the controller, if there
/// is one.
pub fn rules(namespace: Option<&str>) -> BTreeSet<Right> {
    read(RBAC, namespace)
}

/// Returns the additional rights for nodes that join with kubeadm.
pub fn of_kubeadm() -> BTreeSet<Right> {
    read(KUBEADM, None)
}

fn read(text: &str, namespace: Option<&str>) -> BTreeSet<Right> {
    let mut all = BTreeSet::new();
    for document in documents(text) {
        for object in document.objects.unwrap_or_default() {
            if object["kind"] == "ClusterRole" {
                let role: Option<ClusterRole> = serde_json::from_value(object).ok();
                add(role.and_then(|role| role.rules), None, &mut all);
            } else {
                let role: Option<Role> = serde_json::from_value(object).ok();
                let own = role.as_ref().and_then(|role| role.metadata.namespace.clone());
                let namespace = namespace.map(str::to_owned).or(own);
                add(role.and_then(|role| role.rules), namespace.as_deref(), &mut all);
            }
        }
    }
    all
}

fn add(rules: Option<Vec<PolicyRule>>, namespace: Option<&str>, all: &mut BTreeSet<Right>) {
    for rule in rules.into_iter().flatten() {
        let names: Vec<Option<String>> = match rule.resource_names {
            Some(names) if !names.is_empty() => names.into_iter().map(Some).collect(),
            _ => vec![None],
        };
        for group in rule.api_groups.iter().flatten() {
            for resource in rule.resources.iter().flatten() {
                for verb in &rule.verbs {
                    all.extend(names.iter().map(|name| Right {
                        group: group.clone(),
                        resource: resource.clone(),
                        verb: verb.clone(),
                        name: name.clone(),
                        namespace: namespace.map(str::to_owned),
                    }));
                }
            }
        }
    }
}

/// Asks the API server for each right, in order.
pub async fn ask(client: &Client, rights: &BTreeSet<Right>, account: Option<&ServiceAccount>) -> Vec<Answer> {
    stream::iter(rights).map(|right| review(client, right, account)).buffered(TOGETHER).collect().await
}

async fn review(client: &Client, right: &Right, account: Option<&ServiceAccount>) -> Answer {
    let (resource, subresource) = match right.resource.split_once('/') {
        Some((resource, subresource)) => (resource, Some(subresource.to_owned())),
        None => (right.resource.as_str(), None),
    };
    let attributes = ResourceAttributes {
        group: Some(right.group.clone()),
        resource: Some(resource.to_owned()),
        subresource,
        verb: Some(right.verb.clone()),
        name: right.name.clone(),
        namespace: right.namespace.clone(),
        ..ResourceAttributes::default()
    };
    let parameters = PostParams::default();
    let status = match account {
        None => {
            let spec =
                SelfSubjectAccessReviewSpec { resource_attributes: Some(attributes), ..Default::default() };
            let review = SelfSubjectAccessReview { spec, ..Default::default() };
            Api::all(client.clone()).create(&parameters, &review).await.map(|review| review.status)
        }
        Some(ServiceAccount { namespace, name }) => {
            let of_namespace = format!("system:serviceaccounts:{namespace}");
            let groups = ["system:serviceaccounts", of_namespace.as_str(), "system:authenticated"];
            let spec = SubjectAccessReviewSpec {
                resource_attributes: Some(attributes),
                user: Some(format!("system:serviceaccount:{namespace}:{name}")),
                groups: Some(groups.map(str::to_owned).to_vec()),
                ..Default::default()
            };
            let review = SubjectAccessReview { spec, ..Default::default() };
            Api::all(client.clone()).create(&parameters, &review).await.map(|review| review.status)
        }
    };
    status.map(|status| status.is_some_and(|status| status.allowed)).map_err(|error| causes(&error))
}

/// Evaluates the answers: one result if all rights are granted, otherwise one for each resource with a missing right.
pub fn verdicts(
    rights: &BTreeSet<Right>,
    answers: &[Answer],
    account: Option<&ServiceAccount>,
) -> Vec<(String, Verdict)> {
    // The service account may be in another namespace than the Lease.
    let inside = rights.iter().find_map(|right| right.namespace.as_deref()).unwrap_or_default();
    let (who, fix) = match account {
        Some(ServiceAccount { namespace, name }) => (
            format!("{namespace}/{name}"),
            format!(
                "kubectl apply -f deploy/rbac.yaml && kubectl create clusterrolebinding poolwright-controller --clusterrole \
                 poolwright-controller --serviceaccount {namespace}:{name} && kubectl create rolebinding -n {inside} \
                 poolwright-controller --role poolwright-controller --serviceaccount {namespace}:{name}"
            ),
        ),
        None => (
            "you (pass --service-account NAMESPACE/NAME to check the controller)".to_owned(),
            "kubectl apply -f deploy/rbac.yaml, and bind both of its roles".to_owned(),
        ),
    };
    if let Some(why) = answers.iter().find_map(|answer| answer.as_ref().err()) {
        return vec![("rights".to_owned(), Verdict::undetermined(why.clone()))];
    }
    let mut missing: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for (right, _) in rights.iter().zip(answers).filter(|(_, answer)| **answer == Ok(false)) {
        let of = if right.group.is_empty() { String::new() } else { format!(".{}", right.group) };
        missing.entry(format!("{}{of}", right.resource)).or_default().push(&right.verb);
    }
    if missing.is_empty() {
        let all = format!("all {} rights of deploy/rbac.yaml are granted to {who}", rights.len());
        return vec![("rights".to_owned(), Verdict::fine(all))];
    }
    let wrong = |(resource, verbs): (String, Vec<&str>)| {
        let why = format!("{who} may not {}", verbs.join(", "));
        (format!("right to {resource}"), Verdict::wrong(why, fix.clone()))
    };
    missing.into_iter().map(wrong).collect()
}

/// Evaluates the answers for nodes that join with kubeadm. `class` is a node class that needs the rights.
pub fn verdict_of_kubeadm(answers: &[Answer], class: &str, account: Option<&ServiceAccount>) -> Verdict {
    let (who, subject) = match account {
        Some(ServiceAccount { namespace, name }) => {
            (format!("{namespace}/{name}"), format!("{namespace}:{name}"))
        }
        None => ("you".to_owned(), "NAMESPACE:NAME".to_owned()),
    };
    if let Some(why) = answers.iter().find_map(|answer| answer.as_ref().err()) {
        return Verdict::undetermined(why.clone());
    }
    if answers.iter().all(|answer| *answer == Ok(true)) {
        return Verdict::fine(format!(
            "{who} may create bootstrap tokens, which nodes of {class} need to join"
        ));
    }
    Verdict::wrong(
        format!(
            "{who} may not create secrets in kube-system; nodes of {class} need bootstrap tokens to join"
        ),
        format!(
            "kubectl apply -f deploy/rbac-kubeadm.yaml && kubectl create rolebinding -n kube-system poolwright-bootstrap-tokens --role \
             poolwright-bootstrap-tokens --serviceaccount {subject}"
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn for_kubeadm_secrets_may_be_made_in_one_namespace_and_nothing_else_is_asked_for() {
        let only = Right {
            group: String::new(),
            resource: "secrets".to_owned(),
            verb: "create".to_owned(),
            name: None,
            namespace: Some("kube-system".to_owned()),
        };
        assert_eq!(of_kubeadm(), BTreeSet::from([only]));
        assert!(rules(None).iter().all(|right| right.resource != "secrets"));
        let account = ServiceAccount { namespace: "gpus".to_owned(), name: "pw".to_owned() };
        let verdict = |answer| verdict_of_kubeadm(&[answer], "gpu", Some(&account));
        assert!(matches!(verdict(Ok(true)), Verdict::Fine(_)));
        let Verdict::Wrong { why, fix } = verdict(Ok(false)) else { panic!("it is missing") };
        assert!(
            why.contains("gpus/pw may not create secrets in kube-system")
                && why.contains("nodes of gpu need bootstrap tokens"),
            "{why}"
        );
        assert!(
            fix.contains("deploy/rbac-kubeadm.yaml") && fix.contains("--serviceaccount gpus:pw"),
            "{fix}"
        );
        assert_eq!(verdict(Err("gone".to_owned())), Verdict::undetermined("gone"));
    }

    fn right(resource: &str, verb: &str) -> Right {
        let all = rules(None);
        let found = all.iter().find(|one| one.resource == resource && one.verb == verb);
        found.unwrap_or_else(|| panic!("{resource} {verb} is not in deploy/rbac.yaml")).clone()
    }

    #[test]
    fn every_rule_of_the_documented_roles_is_asked_for() {
        let all = rules(None);
        assert!(all.len() > 60, "{}", all.len());
        assert_eq!(right("pods/eviction", "create").group, "");
        assert_eq!(right("nodeclaims", "create").group, "poolwright.dev");
        let lease = right("leases", "update");
        assert_eq!(
            (lease.name.as_deref(), lease.namespace.as_deref()),
            (Some("poolwright-controller"), Some("poolwright"))
        );
        assert!(right("nodes", "list").namespace.is_none());
        for (verb, name) in
            [("create", None), ("get", Some("poolwright-lives")), ("update", Some("poolwright-lives"))]
        {
            let lives = right("configmaps", verb);
            assert_eq!((lives.name.as_deref(), lives.namespace.as_deref()), (name, Some("poolwright")));
        }
        assert_eq!(
            all.iter().filter(|one| one.resource == "configmaps").count(),
            5,
            "the ConfigMap poolwright-moves too, and no other"
        );
        let elsewhere = rules(Some("gpus"));
        assert!(
            elsewhere.iter().any(|one| one.resource == "leases" && one.namespace.as_deref() == Some("gpus"))
        );
    }

    #[test]
    fn missing_rights_are_reported_by_resource_and_granted_ones_in_one_line() {
        let all = rules(None);
        let given: Vec<Answer> = all.iter().map(|_| Ok(true)).collect();
        let [(_, Verdict::Fine(_))] = &verdicts(&all, &given, None)[..] else { panic!("all is given") };
        let account = ServiceAccount { namespace: "gpus".to_owned(), name: "pw".to_owned() };
        let some: Vec<Answer> = all.iter().map(|one| Ok(one.resource != "pods/eviction")).collect();
        let [(name, Verdict::Wrong { why, fix })] = &verdicts(&all, &some, Some(&account))[..] else {
            panic!("one is missing")
        };
        assert_eq!((name.as_str(), why.as_str()), ("right to pods/eviction", "gpus/pw may not create"));
        assert!(fix.contains("--serviceaccount gpus:pw"), "{fix}");
        assert!(fix.contains("rolebinding -n poolwright "), "the Lease is there: {fix}");
        let unknown: Vec<Answer> = all.iter().map(|_| Err("forbidden".to_owned())).collect();
        assert_eq!(
            verdicts(&all, &unknown, None),
            [("rights".to_owned(), Verdict::undetermined("forbidden"))]
        );
    }
}
