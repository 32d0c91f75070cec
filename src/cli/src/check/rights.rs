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

/// The most missing rights that are named, unless all are.
const NAMED: usize = 3;

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
    status.map(|status| status.is_some_and(|status| status.allowed)).map_err(|error| match (&error, account) {
        (kube::Error::Api(refused), Some(ServiceAccount { namespace, name })) if refused.code == 403 => format!(
            "you may not ask what {namespace}/{name} may do; somebody who may create subjectaccessreviews has to run this check ({})",
            refused.message
        ),
        _ => causes(&error),
    })
}

/// Evaluates the answers. A person need not have the rights of the controller, so missing ones are wrong only for its service account.
pub fn verdict(
    rights: &BTreeSet<Right>,
    answers: &[Answer],
    account: Option<&ServiceAccount>,
    names_all: bool,
) -> Verdict {
    if let Some(why) = answers.iter().find_map(|answer| answer.as_ref().err()) {
        return Verdict::undetermined(why.clone());
    }
    let all = rights.len();
    let denied: Vec<&Right> = rights
        .iter()
        .zip(answers)
        .filter(|(_, answer)| **answer == Ok(false))
        .map(|(right, _)| right)
        .collect();
    let (lacks, missing) = (denied.len(), named(&denied, names_all));
    match account {
        None if lacks == 0 => Verdict::fine(format!(
            "all {all} rights of deploy/rbac.yaml are granted to you ({TELL} to check the controller)"
        )),
        None => Verdict::undetermined(format!(
            "those of the controller are not checked: {TELL}. You need not have them, and lack {lacks} of {all}: {missing}"
        )),
        Some(ServiceAccount { namespace, name }) if lacks == 0 => {
            Verdict::fine(format!("all {all} rights of deploy/rbac.yaml are granted to {namespace}/{name}"))
        }
        Some(ServiceAccount { namespace, name }) => {
            // The service account may be in another namespace than the Lease.
            let inside = rights.iter().find_map(|right| right.namespace.as_deref()).unwrap_or_default();
            Verdict::wrong(
                format!("{namespace}/{name} lacks {lacks} of {all} rights of deploy/rbac.yaml: {missing}"),
                format!(
                    "kubectl apply -f deploy/rbac.yaml && kubectl create clusterrolebinding poolwright-controller --clusterrole \
                     poolwright-controller --serviceaccount {namespace}:{name} && kubectl create rolebinding -n {inside} \
                     poolwright-controller --role poolwright-controller --serviceaccount {namespace}:{name}"
                ),
            )
        }
    }
}

/// How to check the rights of the controller.
const TELL: &str = "pass --service-account NAMESPACE/NAME";

/// Names rights by what they are for, all or the first few: `create, delete nodes`.
fn named(rights: &[&Right], names_all: bool) -> String {
    let mut verbs: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    for right in rights {
        let of = if right.group.is_empty() { String::new() } else { format!(".{}", right.group) };
        let name = right.name.as_ref().map(|name| format!(" {name}")).unwrap_or_default();
        verbs.entry(format!("{}{of}{name}", right.resource)).or_default().insert(&right.verb);
    }
    let most = if names_all { verbs.len() } else { NAMED };
    let more = match verbs.len().saturating_sub(most) {
        0 => String::new(),
        more => format!("; and those to {more} more resources (-o wide names them)"),
    };
    let first = verbs.into_iter().take(most);
    let first =
        first.map(|(what, verbs)| format!("{} {what}", verbs.into_iter().collect::<Vec<_>>().join(", ")));
    format!("{}{more}", first.collect::<Vec<_>>().join("; "))
}

/// Evaluates the answers for nodes that join with kubeadm. `class` is a node class that needs the rights.
pub fn verdict_of_kubeadm(answers: &[Answer], class: &str, account: Option<&ServiceAccount>) -> Verdict {
    if let Some(why) = answers.iter().find_map(|answer| answer.as_ref().err()) {
        return Verdict::undetermined(why.clone());
    }
    let is_granted = answers.iter().all(|answer| *answer == Ok(true));
    match account {
        None if is_granted => {
            Verdict::fine(format!("you may create bootstrap tokens, which nodes of {class} need to join"))
        }
        None => Verdict::undetermined(format!(
            "nodes of {class} need bootstrap tokens to join. You may not create secrets in kube-system, and only the controller must: \
             {TELL} to check it"
        )),
        Some(ServiceAccount { namespace, name }) if is_granted => Verdict::fine(format!(
            "{namespace}/{name} may create bootstrap tokens, which nodes of {class} need to join"
        )),
        Some(ServiceAccount { namespace, name }) => Verdict::wrong(
            format!(
                "{namespace}/{name} may not create secrets in kube-system; nodes of {class} need bootstrap tokens to join"
            ),
            format!(
                "kubectl apply -f deploy/rbac-kubeadm.yaml && kubectl create rolebinding -n kube-system poolwright-bootstrap-tokens \
                 --role poolwright-bootstrap-tokens --serviceaccount {namespace}:{name}"
            ),
        ),
    }
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
        let mine = verdict_of_kubeadm(&[Ok(false)], "gpu", None);
        assert!(
            matches!(&mine, Verdict::Undetermined(why) if why.contains("only the controller must")),
            "{mine:?}"
        );
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
            7,
            "the ConfigMaps poolwright-moves and poolwright-spend too, and no other"
        );
        let elsewhere = rules(Some("gpus"));
        assert!(
            elsewhere.iter().any(|one| one.resource == "leases" && one.namespace.as_deref() == Some("gpus"))
        );
    }

    fn account() -> ServiceAccount {
        ServiceAccount { namespace: "gpus".to_owned(), name: "pw".to_owned() }
    }

    #[test]
    fn missing_rights_of_the_service_account_are_told_once_with_one_fix() {
        let all = rules(None);
        let told = |answer: &dyn Fn(&Right) -> Answer, names_all| {
            let answers: Vec<Answer> = all.iter().map(answer).collect();
            verdict(&all, &answers, Some(&account()), names_all)
        };
        assert!(matches!(told(&|_| Ok(true), false), Verdict::Fine(_)), "all is given");
        let Verdict::Wrong { why, fix } = told(&|one| Ok(one.resource != "pods/eviction"), false) else {
            panic!("one is missing")
        };
        assert_eq!(
            why,
            format!("gpus/pw lacks 1 of {} rights of deploy/rbac.yaml: create pods/eviction", all.len())
        );
        assert!(fix.contains("--serviceaccount gpus:pw"), "{fix}");
        assert!(fix.contains("rolebinding -n poolwright "), "the Lease is there: {fix}");
        let Verdict::Wrong { why, .. } = told(&|_| Ok(false), false) else { panic!("all are missing") };
        let lives = "get, update configmaps poolwright-lives";
        assert!(why.contains("create configmaps; ") && why.contains(lives), "no verb comes twice: {why}");
        assert!(why.ends_with(" more resources (-o wide names them)") && !why.contains("nodepools"), "{why}");
        let Verdict::Wrong { why, .. } = told(&|_| Ok(false), true) else { panic!("all are missing") };
        assert!(why.contains("get, list, watch nodepools.poolwright.dev") && !why.contains("more"), "{why}");
        let unknown = told(&|_| Err("forbidden".to_owned()), false);
        assert_eq!(unknown, Verdict::undetermined("forbidden"));
    }

    #[test]
    fn a_person_need_not_have_the_rights_of_the_controller() {
        let all = rules(None);
        let told = |allowed| {
            let answers: Vec<Answer> = all.iter().map(|_| Ok(allowed)).collect();
            verdict(&all, &answers, None, false)
        };
        assert!(matches!(told(true), Verdict::Fine(_)));
        let mine = told(false);
        let Verdict::Undetermined(why) = &mine else { panic!("{mine:?}") };
        assert!(why.contains("pass --service-account NAMESPACE/NAME. You need not have them"), "{why}");
    }
}
