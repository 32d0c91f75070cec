//! Compares deploy/deployment.yaml with the controller's flags, its time to end, and its measured memory.

use std::fs;

use clap::Parser;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Container, PodSpec};
use poolwright_cli::args::{Cli, Command, ControllerFlags};
use poolwright_controller::Config;

use crate::support::path;

fn pods() -> PodSpec {
    let text = fs::read_to_string(path("deploy/deployment.yaml")).expect("the deployment");
    let value: serde_json::Value = serde_saphyr::from_str(&text).expect("plain YAML");
    let deployment: Deployment = serde_json::from_value(value).expect("a Deployment");
    let spec = deployment.spec.expect("its spec");
    assert_eq!(spec.replicas, Some(2), "one leads, and one takes over");
    spec.template.spec.expect("the spec of its pods")
}

fn container(pods: &PodSpec) -> &Container {
    let [only] = pods.containers.as_slice() else { panic!("one container") };
    only
}

fn flags(container: &Container) -> Box<ControllerFlags> {
    let typed = container.command.iter().chain(&container.args).flatten();
    match Cli::try_parse_from(typed).expect("flags that the command knows").command {
        Command::Controller(flags) => flags,
        other => panic!("another command: {other:?}"),
    }
}

/// Returns the variables of the container with the fields of the pod that they come from.
fn from_fields(container: &Container) -> Vec<(&str, &str)> {
    let variables = container.env.iter().flatten();
    let with_field = variables.filter_map(|variable| {
        let field = variable.value_from.as_ref()?.field_ref.as_ref()?;
        Some((variable.name.as_str(), field.field_path.as_str()))
    });
    with_field.collect()
}

#[test]
fn the_deployment_starts_a_controller_that_leads_under_its_own_name_in_its_own_namespace() {
    let pods = pods();
    let container = container(&pods);
    let flags = flags(container);
    assert_eq!(flags.lease_namespace.as_deref(), Some("$(POD_NAMESPACE)"));
    assert_eq!(flags.identity, None, "POD_NAME counts");
    let expected = [("POD_NAME", "metadata.name"), ("POD_NAMESPACE", "metadata.namespace")];
    assert_eq!(from_fields(container), expected);
    let [port] = container.ports.as_deref().expect("ports") else { panic!("one port") };
    assert_eq!(port.container_port, i32::from(flags.bind.port()));
    assert_eq!(pods.service_account_name.as_deref(), Some("poolwright"));
}

#[test]
fn the_pods_of_the_deployment_have_more_memory_than_was_measured_and_time_to_end() {
    let pods = pods();
    let resources = container(&pods).resources.as_ref().expect("resources");
    let limit = &resources.limits.as_ref().expect("limits")["memory"].0;
    let limit: u64 = limit.strip_suffix("Gi").expect("GiB").parse().expect("a whole number");
    let measured = fs::read_to_string(path("docs/design/measurements.md")).expect("the measurements");
    let row = measured.lines().find(|line| line.starts_with("| memory of the real controller there"));
    let used = row.and_then(|row| row.split("at most ").nth(1)?.split(" MiB").next()?.parse::<u64>().ok());
    assert!(limit * 1024 > 2 * used.expect("the memory at 5,000 nodes"), "twice as much at least");
    // The controller opens retiring nodes, then finishes running calls.
    let most = 2 * Config::new("it", "poolwright").drain.as_secs();
    let grace = pods.termination_grace_period_seconds.and_then(|seconds| u64::try_from(seconds).ok());
    assert!(grace.expect("a grace period") > most, "{grace:?} s");
}
