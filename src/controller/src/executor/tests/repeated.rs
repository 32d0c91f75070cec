//! Tests of calls to a cloud that fail for a cause that may pass, and are repeated.

use poolwright_provider_contract::ProviderError;

use super::denied::{telling, told};
use super::*;

#[tokio::test]
async fn a_launch_that_is_repeated_says_on_its_claim_why_and_when_the_next_try_is() {
    let scene = Scene::created().await;
    let (executor, mut queue) = telling(&scene);
    let launch = async || {
        let launch = Action::Launch { claim: ClaimName("gpu-1".into()) };
        executor.submit(vec![launch], &scene.world.snapshot());
        while executor.lanes.busy() > 0 {
            tokio::task::yield_now().await;
        }
        scene.condition("Launched").unwrap()
    };
    let wait = || executor.next_retry().unwrap().saturating_sub(executor.context.clock.monotonic());
    let failures = [
        (ProviderError::Throttled("slow down".to_owned()), "throttled: slow down", 5),
        // The second failure in a row waits twice as long as the first would have.
        (ProviderError::Transient("it was reset".to_owned()), "it was reset", 1),
    ];
    for (error, why, seconds) in failures {
        scene.cloud.inject_failure(InjectedFailure::Fails(error));
        let condition = launch().await;
        let next = executor.context.clock.now().checked_add(Duration::from_secs(seconds)).unwrap();
        assert_eq!(
            (condition["status"].as_str(), condition["reason"].as_str()),
            (Some("False"), Some("LaunchRetried"))
        );
        assert_eq!(condition["message"], format!("{why}; the next try is at {next}"));
        assert_eq!(told(&mut queue), Some(("gpu-1".to_owned(), "LaunchRetried")));
        assert_eq!(wait(), Duration::from_secs(seconds), "that is when it is repeated");
        scene.clock.advance(wait());
    }
    let condition = launch().await;
    assert_eq!((condition["status"].as_str(), scene.cloud.ever_made()), (Some("True"), 1));
}

#[tokio::test]
async fn a_termination_that_fails_and_is_repeated_says_why_on_its_claim() {
    let scene = Scene::with_node().await;
    let (executor, mut queue) = telling(&scene);
    assert!(matches!(executor.delete_empty_claim(&scene.claim()).await, Progress::Done));
    scene.cloud.limit_look_ups(0);
    let outcome = executor.terminate(&scene.claim(), false).await;
    assert!(matches!(outcome, Progress::Retry(..)), "{outcome:?}");
    assert_eq!(told(&mut queue), Some(("gpu-1".to_owned(), "TerminationRetried")));
    assert!(scene.api.get(CLAIM).is_some());
}
