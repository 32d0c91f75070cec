//! Tests of a cloud whose listings are doubted, and of instances that it does not list.

use super::*;

const WHY: &str = "the account is wrong";

fn waits(outcome: &Progress) -> bool {
    matches!(outcome, Progress::Retry(wait, why) if *wait >= Duration::from_mins(1) && why == WHY)
}

impl Scene {
    fn doubt(&self, why: Option<&str>) {
        self.executor.context.providers.all()[0].set_doubt(why.map(str::to_owned));
    }

    /// Creates a scene with a node whose claim is deleted.
    async fn deleted() -> Self {
        let scene = Self::with_node().await;
        assert!(matches!(scene.executor.delete_empty_claim(&scene.claim()).await, Progress::Done));
        scene
    }

    async fn terminate(&self) -> Progress {
        self.executor.terminate(&self.claim(), false).await
    }
}

#[tokio::test]
async fn a_doubted_cloud_launches_nothing() {
    let scene = Scene::created().await;
    scene.doubt(Some(WHY));
    let outcome = scene.executor.launch(&scene.claim()).await;
    assert!(waits(&outcome), "{outcome:?}");
    assert_eq!(scene.cloud.ever_made(), 0);
    scene.doubt(None);
    assert!(matches!(scene.executor.launch(&scene.claim()).await, Progress::Done));
}

#[tokio::test]
async fn a_doubted_cloud_that_does_not_know_an_instance_is_not_believed_to_have_terminated_it() {
    let scene = Scene::deleted().await;
    scene.cloud.lose(&scene.claim().uid.0);
    scene.doubt(Some(WHY));
    let outcome = scene.terminate().await;
    assert!(waits(&outcome), "{outcome:?}");
    assert!(scene.api.get(CLAIM).is_some() && scene.api.get("/api/v1/nodes/n").is_some());
    scene.doubt(None);
    assert!(matches!(scene.terminate().await, Progress::Done));
    assert_eq!((scene.api.get(CLAIM), scene.api.get("/api/v1/nodes/n")), (None, None));
}

#[tokio::test]
async fn an_instance_that_a_doubted_cloud_shows_is_terminated_and_its_claim_stays_until_the_doubt_ends() {
    let scene = Scene::deleted().await;
    scene.doubt(Some(WHY));
    let outcome = scene.terminate().await;
    assert!(waits(&outcome), "{outcome:?}");
    assert!(scene.cloud.instances().is_empty());
    assert!(scene.api.get(CLAIM).is_some());
    scene.doubt(None);
    assert!(matches!(scene.terminate().await, Progress::Done));
    assert_eq!(scene.api.get(CLAIM), None);
}

#[tokio::test]
async fn a_doubted_cloud_loses_no_instance_without_a_claim() {
    let scene = Scene::with_node().await;
    let instance = scene.cloud.instances().remove(0);
    scene.api.remove(CLAIM);
    let reap =
        async || scene.executor.reap(&instance.provider_id, &Uid(instance.key.clone()), &class()).await;
    scene.doubt(Some(WHY));
    let outcome = reap().await;
    assert!(waits(&outcome), "{outcome:?}");
    assert_eq!(scene.cloud.instances().len(), 1);
    scene.doubt(None);
    assert!(matches!(reap().await, Progress::Done));
    assert!(scene.cloud.instances().is_empty());
}

#[tokio::test]
async fn an_instance_without_tags_is_terminated_by_the_id_that_its_claim_records() {
    let scene = Scene::deleted().await;
    scene.cloud.retag(&scene.claim().uid.0, "");
    assert!(matches!(scene.terminate().await, Progress::Done));
    assert!(scene.cloud.instances().is_empty());
    assert_eq!(scene.api.get(CLAIM), None);
}

#[tokio::test]
async fn a_claim_stays_and_says_why_while_its_instance_runs_with_the_tags_of_another() {
    let scene = Scene::deleted().await;
    let key = scene.claim().uid.0.clone();
    scene.cloud.retag(&key, "another");
    for _again in 0..2 {
        let outcome = scene.terminate().await;
        assert!(matches!(outcome, Progress::Retry(wait, _) if wait >= Duration::from_mins(1)), "{outcome:?}");
    }
    assert_eq!(scene.cloud.instances().len(), 1);
    let condition = scene.condition("InstanceUnlisted").expect("the claim says why");
    assert_eq!((&condition["status"], &condition["reason"]), (&json!("True"), &json!("InstanceUnlisted")));
    let message = condition["message"].to_string();
    assert!(
        message.contains("its key is another") && message.contains("Restore the tags of the instance"),
        "{message}"
    );
    scene.cloud.retag("another", &key);
    assert!(matches!(scene.terminate().await, Progress::Done));
    assert_eq!(scene.api.get(CLAIM), None);
}

#[tokio::test]
async fn an_instance_that_got_other_tags_is_not_reaped() {
    let scene = Scene::with_node().await;
    let instance = scene.cloud.instances().remove(0);
    scene.api.remove(CLAIM);
    scene.cloud.retag(&instance.key, "another");
    let outcome = scene.executor.reap(&instance.provider_id, &Uid(instance.key.clone()), &class()).await;
    assert!(matches!(outcome, Progress::Retry(..)), "{outcome:?}");
    assert_eq!(scene.cloud.instances().len(), 1);
    assert!(scene.api.get("/api/v1/nodes/n").is_some());
}
