//! Calls that take effect, but whose response is lost.

use anyhow::ensure;
use poolwright_plane::wait_for;
use poolwright_provider_contract::CloudProvider;

use crate::world::AwsWorld;
use crate::{SOON, two_offerings};

/// Slow: the caller waits for the full timeout of an AWS call, and then repeats it.
#[tokio::test]
async fn an_unanswered_launch_makes_one_instance_and_an_unanswered_termination_ends_it() {
    let world = AwsWorld::new().await.unwrap();
    let provider = world.connect().await.unwrap();
    let offerings = two_offerings(&provider, &world).await;
    let [first, second] = [0, 1].map(|number| world.request(number, &offerings));
    provider.launch(&second).await.unwrap();
    world.front.keep_silent("ec2:CreateFleet", 1);
    world.front.keep_silent("ec2:TerminateInstances", 1);
    let (launched, ended) = tokio::join!(provider.launch(&first), provider.terminate(&second.key));
    let launched = launched.unwrap().instance;
    assert!(launched.key == first.key && ended.is_ok(), "{launched:?}, {ended:?}");
    let calls = world.front.calls();
    assert_eq!((calls["ec2:CreateFleet"], calls["ec2:TerminateInstances"]), (3, 2), "{calls:?}");
    let anew = world.connect().await.unwrap();
    wait_for("one instance to be left", SOON, async || {
        let listed = anew.list().await?;
        ensure!(
            matches!(&listed[..], [one] if one.provider_id == launched.provider_id),
            "listed are {listed:?}"
        );
        Ok(())
    })
    .await
    .unwrap();
}
