//! Cases about requests that can never succeed: they fail with a useful message and have no effect.

use poolwright_catalog::OfferingId;
use poolwright_terms::NodeClassRef;

use super::launching::expect_instances;
use super::report::ensure;
use super::{Failure, Setting};
use crate::{LaunchError, LaunchRequest, ProviderError};

pub(super) async fn an_unknown_node_class_is_invalid_and_says_what_to_do(
    at: &Setting,
) -> Result<(), Failure> {
    let class = NodeClassRef { name: "no-such-class".to_owned(), ..at.world.node_class() };
    let asked = at.provider.catalogue(&class).await;
    let message = match asked {
        Err(ProviderError::Invalid(message)) => message,
        other => return Err(Failure(format!("asking for its catalogue gave {other:?}"))),
    };
    says_what_to_do(&message, &class.name)?;
    let request = LaunchRequest { node_class: class.clone(), ..at.request("a") };
    says_what_to_do(&refusal(at, &request).await?, &class.name)?;
    expect_instances(at, 0).await
}

pub(super) async fn an_unknown_offering_is_invalid_and_nothing_is_launched(
    at: &Setting,
) -> Result<(), Failure> {
    let mut request = at.request("a");
    let unknown = OfferingId { instance_type: "no-such-type".into(), ..at.first.offering.clone() };
    request.offerings[0].offering = unknown;
    request.offerings.truncate(1);
    let message = refusal(at, &request).await?;
    ensure!(message.contains("no-such-type"), "the message does not name the offering: {message}");
    expect_instances(at, 0).await
}

pub(super) async fn a_launch_without_offerings_is_invalid(at: &Setting) -> Result<(), Failure> {
    let request = LaunchRequest { offerings: Vec::new(), ..at.request("a") };
    refusal(at, &request).await?;
    expect_instances(at, 0).await
}

async fn refusal(at: &Setting, request: &LaunchRequest) -> Result<String, Failure> {
    match at.provider.launch(request).await {
        Err(LaunchError::Provider(ProviderError::Invalid(message))) => Ok(message),
        other => Err(Failure(format!("launching gave {other:?} and not that it is invalid"))),
    }
}

fn says_what_to_do(message: &str, name: &str) -> Result<(), Failure> {
    ensure!(message.contains(name), "the message does not name {name}: {message}");
    let next_step = ["create", "correct", "change"].iter().any(|verb| message.contains(verb));
    ensure!(next_step, "the message says not what to do: {message}");
    Ok(())
}
