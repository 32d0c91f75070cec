//! Converts the reference of a pool to its node class.

use poolwright_api::meant;
use poolwright_provider_contract::Registration;
use poolwright_provider_contract::karpenter::{Fields, Report};
use poolwright_terms::{GROUP, NodeClassRef};

use super::managed_by;
use crate::clouds::clouds;

/// Converts `nodeClassRef`.
pub(super) fn node_class_ref(of: &mut Fields<'_>, into: &mut NodeClassRef, report: &mut Report) {
    let path = of.path("nodeClassRef");
    let Some(value) = of.take_even_empty("nodeClassRef") else {
        return report.problem(path, "missing", "write it with group, kind and name");
    };
    let Some(mut fields) = Fields::of(path, value, report) else { return };
    let group = fields.text("group", report).unwrap_or_default();
    let kind = fields.needed_text("kind", report);
    let (written, cloud) = counterpart(&group, kind.as_deref().unwrap_or_default());
    if !group.is_empty() {
        let buys = cloud.map_or_else(String::new, who_buys);
        report.changed(fields.path("group"), format!("It is `{GROUP}`.{buys}"));
    }
    if let Some(kind) = kind {
        say_kind(fields.path("kind"), &group, &kind, &written, cloud, report);
        into.kind = written;
    }
    if let Some(name) = fields.needed_text("name", report) {
        report.kept(fields.path("name"), "The name stays.");
        into.name = name;
    }
    fields.finish(report);
}

/// Returns the kind to write, and the cloud that buys for it; no cloud buys for a kind that Poolwright does not have.
fn counterpart(group: &str, kind: &str) -> (String, Option<&'static Registration>) {
    if let Some((cloud, _)) = managed_by(group).filter(|(_, service)| service.kind == kind) {
        return (cloud.node_class.kind.kind.to_owned(), Some(cloud));
    }
    let is_karpenters =
        |cloud: &&Registration| cloud.karpenter.is_some_and(|one| one.group() == group && one.kind() == kind);
    // A reference without a group is one to the only class of this kind.
    let is_ours = |cloud: &&Registration| [GROUP, ""].contains(&group) && cloud.node_class.kind.kind == kind;
    (kind.to_owned(), clouds().iter().find(|cloud| is_karpenters(cloud) || is_ours(cloud)))
}

/// Says what happens to the kind.
fn say_kind(
    path: String,
    group: &str,
    kind: &str,
    written: &str,
    cloud: Option<&Registration>,
    report: &mut Report,
) {
    match managed_by(group).filter(|_| written != kind) {
        Some((_, service)) => report.changed(
            path,
            format!(
                "Becomes `{written}`: Poolwright has no {kind} of {}. Write an {written} of this name (docs/{}.md).",
                service.name,
                written.to_ascii_lowercase()
            ),
        ),
        None if cloud.is_some() => report.kept(path, "The kind stays."),
        None => {
            let is_near = |cloud: &&Registration| {
                [GROUP, ""].contains(&group) || cloud.karpenter.is_some_and(|one| one.group() == group)
            };
            let known = clouds().iter().filter(is_near).map(|cloud| cloud.node_class.kind.kind);
            let hint = meant(kind, known).map_or_else(String::new, |near| format!(" Did you mean {near}?"));
            report.not_possible(
                path,
                format!(
                    "Poolwright has no {kind} and buys nothing for this pool until `nodeClassRef` names a node class of its \
                     own.{hint}{}",
                    trial(None)
                ),
            );
        }
    }
}

/// Says when the controller buys for pools of this cloud, and how to try them without it.
fn who_buys(cloud: &Registration) -> String {
    cloud.enabled_by.map_or_else(String::new, |flag| {
        format!(" The controller buys for this pool when it runs with `--{flag}`.{}", trial(Some(cloud)))
    })
}

/// Says how to try a pool without a cloud, with the offerings of `cloud` in the catalogue.
fn trial(cloud: Option<&Registration>) -> String {
    let Some(trial) = clouds().iter().find(|cloud| cloud.enabled_by.is_none()) else { return String::new() };
    let kind = trial.node_class.kind.kind;
    let sells = cloud.map_or_else(String::new, |cloud| format!(" with `provider: {}`", cloud.name));
    format!(
        " To try the pool without a cloud, create a {kind}{sells} (docs/nodepool.md), and write its kind and name here."
    )
}
