//! Cases about launches: one instance for each key, from the first offering that is in stock.

use futures::future::join_all;

use super::report::ensure;
use super::setting::same_instance;
use super::{Failure, Setting};
use crate::{InstanceState, LaunchError, LaunchRequest};

pub(super) async fn the_catalogue_lists_offerings_with_prices(at: &Setting) -> Result<(), Failure> {
    ensure!(!at.catalogue.offerings().is_empty(), "the catalogue is empty");
    for offering in at.catalogue.offerings() {
        let kind = &at.catalogue.types()[&offering.id.instance_type];
        ensure!(!kind.allocatable.is_empty(), "{} would give pods nothing", kind.name);
    }
    at.world.set_stock_outs(&at.ids()).await?;
    let catalogue = at.provider.catalogue(&at.world.node_class()).await?;
    for id in at.ids() {
        ensure!(catalogue.offering(&id).is_some(), "{id} is not listed while it is out of stock");
    }
    Ok(())
}

pub(super) async fn a_launch_makes_one_instance_of_the_first_offering(at: &Setting) -> Result<(), Failure> {
    let launched = at.provider.launch(&at.request("a")).await?;
    let got = &launched.instance;
    ensure!(got.offering == at.first.offering, "got {} and not {}", got.offering, at.first.offering);
    ensure!(launched.failed.is_empty(), "failures were reported: {:?}", launched.failed);
    ensure!(got.state == InstanceState::Running, "it is {:?}", got.state);
    expect_instances(at, 1).await
}

pub(super) async fn two_keys_make_two_instances(at: &Setting) -> Result<(), Failure> {
    let a = at.provider.launch(&at.request("a")).await?.instance;
    let b = at.provider.launch(&at.request("b")).await?.instance;
    ensure!(a.provider_id != b.provider_id, "both are {}", a.provider_id);
    expect_instances(at, 2).await
}

pub(super) async fn two_launches_with_one_key_make_one_instance(at: &Setting) -> Result<(), Failure> {
    let request = at.request("a");
    let one = at.provider.launch(&request).await?.instance;
    let two = at.provider.launch(&request).await?.instance;
    ensure!(same_instance(&one, &two), "the first is {one:?}, the second {two:?}");
    expect_instances(at, 1).await
}

pub(super) async fn launches_with_one_key_at_the_same_time_make_one_instance(
    at: &Setting,
) -> Result<(), Failure> {
    // The old provider still sends calls while the new one already does, as when the leader changes.
    let new = at.restarted().await?;
    let same = at.request("a");
    let other = LaunchRequest { offerings: vec![at.second.clone(), at.first.clone()], ..same.clone() };
    let launches = (0..8).map(|turn| {
        let provider = if turn % 2 == 0 { &at.provider } else { &new };
        provider.launch(if turn % 4 < 2 { &same } else { &other })
    });
    let mut ids = Vec::new();
    for launch in join_all(launches).await {
        ids.push(launch?.instance.provider_id);
    }
    ids.sort();
    ids.dedup();
    ensure!(ids.len() == 1, "one key made {ids:?}");
    expect_instances(at, 1).await
}

pub(super) async fn a_key_is_remembered_across_a_restart(at: &Setting) -> Result<(), Failure> {
    let request = at.request("a");
    let before = at.provider.launch(&request).await?.instance;
    let after = at.restarted().await?.launch(&request).await?.instance;
    ensure!(same_instance(&before, &after), "before the restart {before:?}, after it {after:?}");
    expect_instances(at, 1).await
}

pub(super) async fn a_second_launch_with_one_key_gets_the_first_instance_whatever_it_asks_for(
    at: &Setting,
) -> Result<(), Failure> {
    let request = at.request("a");
    let one = at.provider.launch(&request).await?.instance;
    at.world.set_stock_outs(&at.ids()).await?;
    let other = LaunchRequest {
        offerings: vec![at.second.clone()],
        labels: [("team".to_owned(), "sales".to_owned())].into(),
        taints: Vec::new(),
        ..request
    };
    let two = at.provider.launch(&other).await?.instance;
    ensure!(same_instance(&one, &two), "the first is {one:?}, the second {two:?}");
    expect_instances(at, 1).await
}

pub(super) async fn a_stock_out_gets_the_next_offering_and_is_reported(at: &Setting) -> Result<(), Failure> {
    at.world.set_stock_outs(std::slice::from_ref(&at.first.offering)).await?;
    let launched = at.provider.launch(&at.request("a")).await?;
    let got = &launched.instance.offering;
    ensure!(*got == at.second.offering, "got {got} and not {}", at.second.offering);
    let failed: Vec<_> = launched.failed.iter().map(|one| &one.offering).collect();
    ensure!(failed == [&at.first.offering], "reported as failed: {failed:?}");
    ensure!(
        matches!(launched.failed[0].error, LaunchError::StockOut(_)),
        "reported as {:?} and not as a stock-out",
        launched.failed[0].error
    );
    expect_instances(at, 1).await
}

pub(super) async fn when_all_is_out_of_stock_each_offering_is_reported_and_nothing_is_launched(
    at: &Setting,
) -> Result<(), Failure> {
    at.world.set_stock_outs(&at.ids()).await?;
    match at.provider.launch(&at.request("a")).await {
        Err(LaunchError::AllFailed(failed)) => {
            let ids: Vec<_> = failed.iter().map(|one| one.offering.clone()).collect();
            ensure!(ids == at.ids(), "reported as failed: {ids:?}");
            let other = failed.iter().find(|one| !matches!(one.error, LaunchError::StockOut(_)));
            ensure!(other.is_none(), "not reported as a stock-out: {other:?}");
        }
        other => return Err(Failure(format!("expected all to fail, got {other:?}"))),
    }
    expect_instances(at, 0).await
}

pub(super) async fn expect_instances(at: &Setting, wanted: usize) -> Result<(), Failure> {
    let all = at.provider.list().await?;
    ensure!(all.len() == wanted, "there should be {wanted} instances and there are {all:?}");
    Ok(())
}
