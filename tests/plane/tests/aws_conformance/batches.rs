//! One fleet call for many claims of one plan: the number of calls, and recovery after an interruption.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

use anyhow::ensure;
use futures::future::join_all;
use poolwright_catalog::{OfferingId, RankedOffering};
use poolwright_plane::wait_for;
use poolwright_provider_aws::AwsProvider;
use poolwright_provider_contract::{
    CloudProvider, Instance, LaunchBatch, LaunchError, LaunchRequest, ProviderError,
};

use super::world::{AwsWorld, pool};
use super::{SOON, seeds, two_offerings, until_launched};

/// Returns requests in batches of at most fifty.
fn requests(world: &AwsWorld, count: usize, offerings: &[RankedOffering]) -> Vec<LaunchRequest> {
    let mut requests: Vec<_> = (0..count).map(|number| world.request(number, offerings)).collect();
    requests.sort_by(|a, b| a.key.cmp(&b.key));
    for (number, chunk) in requests.chunks_mut(50).enumerate() {
        let batch = LaunchBatch { id: format!("{number:016x}"), size: chunk.len() };
        for request in chunk {
            request.batch = Some(batch.clone());
        }
    }
    requests
}

async fn launch_all(
    provider: &AwsProvider,
    requests: &[LaunchRequest],
) -> Vec<Result<Instance, LaunchError>> {
    let launched = join_all(requests.iter().map(|request| provider.launch(request))).await;
    launched.into_iter().map(|one| one.map(|one| one.instance)).collect()
}

/// Checks that each request has its own instance, and that a new provider lists just these, with their keys.
async fn each_has_one(world: &AwsWorld, requests: &[LaunchRequest], instances: &[Instance]) {
    let ids: BTreeSet<_> = instances.iter().map(|instance| &instance.provider_id).collect();
    assert_eq!(ids.len(), requests.len(), "each has its own");
    for (request, instance) in requests.iter().zip(instances) {
        assert_eq!((&instance.key, &instance.claim), (&request.key, &request.claim));
    }
    let fresh = world.connect().await.unwrap();
    wait_for("all to show", SOON, async || {
        let listed = fresh.list().await?;
        ensure!(listed.len() == requests.len(), "{} are listed", listed.len());
        for instance in instances {
            ensure!(
                listed.iter().any(|one| (&one.provider_id, &one.key, &one.claim)
                    == (&instance.provider_id, &instance.key, &instance.claim)),
                "{} does not show as that of {}",
                instance.provider_id,
                instance.claim
            );
        }
        Ok(())
    })
    .await
    .unwrap();
}

fn all(results: Vec<Result<Instance, LaunchError>>) -> Vec<Instance> {
    results.into_iter().map(|one| one.unwrap_or_else(|error| panic!("{error}"))).collect()
}

#[tokio::test]
async fn four_fleet_calls_launch_two_hundred_claims_of_one_plan() {
    let world = AwsWorld::new().await.unwrap();
    let provider = world.connect().await.unwrap();
    let offerings = two_offerings(&provider, &world).await;
    let requests = requests(&world, 200, &offerings);
    let launched = all(launch_all(&provider, &requests).await);
    let calls = world.front.calls();
    assert_eq!(calls["ec2:CreateFleet"], 4);
    each_has_one(&world, &requests, &launched).await;
    // A repeated launch buys nothing.
    each_has_one(&world, &requests, &all(launch_all(&provider, &requests).await)).await;
    assert_eq!(provider.list().await.unwrap().len(), 200);
    assert_eq!(world.front.calls()["ec2:CreateFleet"], 4);
}

#[tokio::test]
async fn the_next_process_finishes_an_interrupted_fleet_call() {
    for shows in [true, false] {
        let world = AwsWorld::new().await.unwrap();
        let provider = world.connect().await.unwrap();
        let offerings = two_offerings(&provider, &world).await;
        let requests = requests(&world, 10, &offerings);
        world.front.forbid(["ec2:CreateTags".to_owned()]);
        world.front.show_late(if shows { 0 } else { 1000 });
        for result in launch_all(&provider, &requests).await {
            let error = result
                .expect_err("no claim hears of an instance that is not known to be its own")
                .to_string();
            assert!(error.contains("add ec2:CreateTags to the policy"), "{error}");
        }
        world.front.forbid([]);
        // If the instances show, they are handed out. If not, the repeated order returns the same instances.
        let next = world.connect().await.unwrap();
        assert_eq!(
            next.list().await.unwrap(),
            [],
            "what some claim is about to take is nobody's instance yet"
        );
        let launched = all(launch_all(&next, &requests).await);
        world.front.show_late(0);
        each_has_one(&world, &requests, &launched).await;
        // The interrupted provider continues and finds what the other has handed out.
        let mut found = all(launch_all(&provider, &requests).await);
        found.iter_mut().zip(&launched).for_each(|(one, other)| one.launched = other.launched);
        assert_eq!(found, launched);
        assert_eq!(world.front.calls()["ec2:CreateFleet"], if shows { 1 } else { 2 });
    }
}

#[tokio::test]
async fn a_batch_uses_the_next_offering_after_a_stock_out_and_reports_unserved_claims() {
    let world = AwsWorld::new().await.unwrap();
    let provider = world.connect().await.unwrap();
    let offerings = two_offerings(&provider, &world).await;
    let [first, second] = [&offerings[0].offering, &offerings[1].offering];
    world.front.set_stock([(pool(first), 5), (pool(second), 3)]);
    let requests = requests(&world, 12, &offerings);
    let results = launch_all(&provider, &requests).await;
    let count = |offering: &OfferingId| {
        results.iter().filter(|one| one.as_ref().is_ok_and(|instance| instance.offering == *offering)).count()
    };
    assert_eq!([count(first), count(second)], [5, 3]);
    let failed: Vec<_> = results.iter().filter_map(|one| one.as_ref().err()).collect();
    assert_eq!(failed.len(), 4);
    for error in failed {
        let LaunchError::AllFailed(failed) = error else { panic!("{error}") };
        assert_eq!(failed.iter().map(|one| &one.offering).collect::<Vec<_>>(), [first, second]);
    }
    assert_eq!(world.front.calls()["ec2:CreateFleet"], 1);
    // There is stock again: the claims without an instance get theirs, and the others keep what they have.
    world.front.set_stock([]);
    let launched = all(launch_all(&provider, &requests).await);
    each_has_one(&world, &requests, &launched).await;
}

#[tokio::test]
async fn a_late_claim_of_a_batch_gets_its_own_instance() {
    let world = AwsWorld::new().await.unwrap();
    let provider = world.connect().await.unwrap();
    let offerings = two_offerings(&provider, &world).await;
    let requests = requests(&world, 4, &offerings);
    let (late, first) = requests.split_last().unwrap();
    let mut launched = all(launch_all(&provider, first).await);
    launched.extend(all(launch_all(&provider, std::slice::from_ref(late)).await));
    each_has_one(&world, &requests, &launched).await;
    // The same with a provider that does not know the first order.
    let world = AwsWorld::new().await.unwrap();
    let provider = world.connect().await.unwrap();
    let requests = self::requests(&world, 4, &offerings);
    let (late, first) = requests.split_last().unwrap();
    let mut launched = all(launch_all(&provider, first).await);
    let next = world.connect().await.unwrap();
    launched.extend(all(launch_all(&next, std::slice::from_ref(late)).await));
    each_has_one(&world, &requests, &launched).await;
}

#[tokio::test]
async fn an_unused_instance_of_a_batch_is_listed_later_and_can_be_terminated() {
    let world = AwsWorld::new().await.unwrap();
    let provider = world.connect().await.unwrap();
    let offerings = two_offerings(&provider, &world).await;
    let requests = requests(&world, 3, &offerings);
    world.front.forbid(["ec2:CreateTags".to_owned()]);
    assert!(launch_all(&provider, &requests).await.iter().all(Result::is_err));
    world.front.forbid([]);
    // Their claims are deleted, and a new process knows nothing of them.
    let next = world.connect().await.unwrap();
    assert_eq!(next.list().await.unwrap(), []);
    world.ahead.store(4 * 60, Ordering::Relaxed);
    let left = next.list().await.unwrap();
    assert_eq!(left.len(), 3);
    for instance in &left {
        assert!(requests.iter().all(|request| request.key != instance.key), "no claim has this key");
        wait_for("its end", SOON, async || {
            ensure!(next.terminate(&instance.key).await?, "it is still going");
            Ok(())
        })
        .await
        .unwrap();
    }
    assert_eq!(next.list().await.unwrap(), []);
}

#[tokio::test]
async fn a_batch_launches_one_instance_per_claim_although_three_of_ten_calls_fail() {
    for seed in seeds() {
        let world = AwsWorld::new().await.unwrap();
        let provider = world.connect().await.unwrap();
        let offerings = two_offerings(&provider, &world).await;
        let requests = requests(&world, 12, &offerings);
        world.front.show_late(1);
        world.trouble(30, seed);
        let launched =
            join_all(requests.iter().map(|request| until_launched(&world, &provider, request))).await;
        world.trouble(0, 0);
        each_has_one(&world, &requests, &launched).await;
    }
}

/// Runs several leaders one after the other, each cut off somewhere. None knows the calls of the others.
#[tokio::test]
async fn a_batch_launches_one_instance_per_claim_although_its_processes_are_killed() {
    for seed in seeds() {
        let world = AwsWorld::new().await.unwrap();
        let first = world.connect().await.unwrap();
        let offerings = two_offerings(&first, &world).await;
        let requests = requests(&world, 8, &offerings);
        world.front.show_late(1);
        world.trouble(20, seed);
        for process in 0..4 {
            let provider = world.connect().await.unwrap();
            let cut_off = std::time::Duration::from_millis(60 + 90 * process * seed);
            let _ = tokio::time::timeout(cut_off, launch_all(&provider, &requests)).await;
        }
        let last = world.connect().await.unwrap();
        let launched = join_all(requests.iter().map(|request| until_launched(&world, &last, request))).await;
        world.trouble(0, 0);
        each_has_one(&world, &requests, &launched).await;
        let transient = |one: &Result<Instance, LaunchError>| {
            matches!(one, Err(LaunchError::Provider(ProviderError::Transient(_))))
        };
        assert!(!launch_all(&last, &requests).await.iter().any(transient));
    }
}
