//! Cases about listing and finding instances.

use super::report::ensure;
use super::setting::same_instance;
use super::{Failure, Setting};
use crate::{InstanceState, LaunchRequest};

pub(super) async fn a_listed_instance_says_what_it_is_for(at: &Setting) -> Result<(), Failure> {
    let request = at.request("a");
    let launched = at.provider.launch(&request).await?.instance;
    let all = at.provider.list().await?;
    let [one] = all.as_slice() else {
        return Err(Failure(format!("one was launched and {all:?} are listed")));
    };
    ensure!(same_instance(one, &launched), "listed as {one:?}, launched as {launched:?}");
    ensure!(one.key == request.key, "its key is {}", one.key);
    ensure!(one.claim == request.claim, "its claim is {}", one.claim);
    ensure!(one.node_class == request.node_class, "its node class is {:?}", one.node_class);
    ensure!(one.offering == at.first.offering, "its offering is {}", one.offering);
    ensure!(one.state == InstanceState::Running, "its state is {:?}", one.state);
    Ok(())
}

pub(super) async fn the_list_is_in_order_of_provider_ids(at: &Setting) -> Result<(), Failure> {
    // Vary both the names and the zones, so that neither order is the order of the provider ids by chance.
    for (name, reverse) in [("c", false), ("a", true), ("d", false), ("b", true)] {
        let mut request: LaunchRequest = at.request(name);
        if reverse {
            request.offerings.reverse();
        }
        at.provider.launch(&request).await?;
    }
    let ids: Vec<_> = at.provider.list().await?.into_iter().map(|one| one.provider_id).collect();
    ensure!(ids.len() == 4, "four were launched and {ids:?} are listed");
    ensure!(ids.is_sorted(), "listed as {ids:?}");
    Ok(())
}

pub(super) async fn an_instance_is_found_by_its_provider_id_until_it_is_gone(
    at: &Setting,
) -> Result<(), Failure> {
    let launched = at.provider.launch(&at.request("a")).await?.instance;
    let other = at.provider.launch(&at.request("b")).await?.instance;
    for one in [&launched, &other] {
        let found = at.provider.get(&one.provider_id).await?;
        ensure!(
            found.as_ref().is_some_and(|found| same_instance(found, one)),
            "launched as {one:?}, found as {found:?}"
        );
    }
    at.terminate(&*at.provider, &launched.key).await?;
    let found = at.provider.get(&launched.provider_id).await?;
    ensure!(found.is_none(), "it is gone and was found as {found:?}");
    Ok(())
}

pub(super) async fn a_restarted_provider_lists_what_was_launched_before(at: &Setting) -> Result<(), Failure> {
    at.provider.launch(&at.request("a")).await?;
    at.provider.launch(&at.request("b")).await?;
    let before = at.provider.list().await?;
    let after = at.restarted().await?.list().await?;
    let same = before.iter().zip(&after).all(|(one, two)| same_instance(one, two));
    ensure!(
        before.len() == 2 && after.len() == 2 && same,
        "before the restart {before:?}, after it {after:?}"
    );
    Ok(())
}
