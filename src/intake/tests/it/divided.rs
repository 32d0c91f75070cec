//! Tests of Deployments that are scaled in the middle of a rollout: their ReplicaSets have what the controller gives them.

use poolwright_intake::Manifest;
use serde_json::{Value, json};

use crate::json_kit::{OF_WEB, apps, has, read, stored};

/// The Deployment with replicas and a strategy.
fn deployment(replicas: u32, strategy: Value) -> Value {
    let mut deployment = stored(apps("Deployment", "web", replicas), None);
    deployment["spec"]["strategy"] = strategy;
    deployment
}

fn rolling(most: Value) -> Value {
    json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": most}})
}

/// A ReplicaSet of the Deployment as its controller made it when it wanted so many replicas, with at most so many during a rollout.
fn set(name: &str, image: &str, replicas: u32, (desired, most): (u32, u32)) -> Value {
    let mut set = stored(apps("ReplicaSet", name, replicas), OF_WEB);
    set["spec"]["template"]["metadata"]["labels"]["pod-template-hash"] = json!(name);
    set["spec"]["template"]["spec"]["containers"][0]["image"] = json!(image);
    set["metadata"]["annotations"] = json!({
        "deployment.kubernetes.io/desired-replicas": desired.to_string(),
        "deployment.kubernetes.io/max-replicas": most.to_string(),
    });
    set
}

/// The image of the Deployment's template is `x`.
fn old_and_new(replicas: [u32; 2], before: (u32, u32)) -> [Value; 2] {
    [set("web-5d4", "old", replicas[0], before), set("web-77f", "x", replicas[1], before)]
}

/// Returns how many pods of the old and of the new ReplicaSet count.
fn counts(manifest: &Manifest) -> [usize; 2] {
    ["web-5d4-", "web-77f-"]
        .map(|name| manifest.pods.iter().filter(|pod| pod.key.name().starts_with(name)).count())
}

fn together(deployment: Value, sets: [Value; 2]) -> Manifest {
    let [old, new] = sets;
    read(&[deployment, old, new])
}

#[test]
fn a_deployment_with_fewer_replicas_during_its_rollout_shrinks_its_replica_sets_in_proportion() {
    let manifest = together(deployment(4, rolling(json!(3))), old_and_new([8, 5], (10, 13)));
    assert_eq!(counts(&manifest), [4, 3]);
    let why = "because Deployment default/web wants 4 and may have 3 more during its rollout";
    for (name, counted) in [("web-5d4", "4 replicas instead of 8"), ("web-77f", "3 replicas instead of 5")] {
        let note = format!("ReplicaSet default/{name}: it counts with {counted}, {why}");
        assert!(has(&manifest, &note), "{note} is not in {:#?}", manifest.notes);
    }
    let manifest = together(deployment(1, rolling(json!("25%"))), old_and_new([1, 4], (4, 5)));
    assert_eq!(counts(&manifest), [0, 1], "the new one gets no more than the Deployment wants");
}

#[test]
fn a_rollout_within_its_surge_and_one_of_the_same_size_keep_their_replicas() {
    let within = together(deployment(4, rolling(json!(3))), old_and_new([4, 3], (10, 13)));
    assert_eq!((counts(&within), within.notes.iter().any(|note| note.contains("counts"))), ([4, 3], false));
    let same = together(deployment(4, rolling(json!(1))), old_and_new([4, 3], (4, 5)));
    assert_eq!(counts(&same), [4, 3]);
    let note = "Deployment default/web: its 2 ReplicaSets have 7 replicas together, more than the 5 that it may have; all of them \
                count, because its controller scales the old ones down as new pods become available";
    assert!(has(&same, note), "{:#?}", same.notes);
}

#[test]
fn without_the_annotations_of_the_controller_all_replicas_of_a_rollout_count_and_a_note_says_so() {
    let sets = old_and_new([8, 5], (10, 13)).map(|mut set| {
        set["metadata"]["annotations"] = json!({});
        set
    });
    let manifest = together(deployment(4, rolling(json!(3))), sets);
    assert_eq!(counts(&manifest), [8, 5]);
    let note = "Deployment default/web: its 2 ReplicaSets have 13 replicas together, more than the 7 that it may have; all of them \
                count, because the annotations of its controller do not show what they had before";
    assert!(has(&manifest, note), "{:#?}", manifest.notes);
}

#[test]
fn old_replica_sets_get_no_replicas_once_the_newest_has_all_and_with_the_strategy_recreate() {
    let [old, mut new] = old_and_new([3, 2], (2, 3));
    new["status"] = json!({"replicas": 2, "availableReplicas": 2});
    let mut before = old.clone();
    before["metadata"]["annotations"]["deployment.kubernetes.io/desired-replicas"] = json!("5");
    let full = together(deployment(2, rolling(json!(1))), [before, new.clone()]);
    assert_eq!(counts(&full), [0, 2]);
    let note = "ReplicaSet default/web-5d4: it counts with 0 replicas instead of 3, because the newest ReplicaSet of Deployment \
                default/web has all 2";
    assert!(has(&full, note), "{:#?}", full.notes);
    let recreated = together(deployment(2, json!({"type": "Recreate"})), [old, new]);
    assert_eq!(counts(&recreated), [0, 2]);
    let midway = together(deployment(10, json!({"type": "Recreate"})), old_and_new([8, 3], (10, 13)));
    assert_eq!(counts(&midway), [0, 10]);
}

#[test]
fn a_deployment_with_more_replicas_during_its_rollout_grows_its_replica_sets_in_proportion_and_with_its_surge()
 {
    for paused in [false, true] {
        let mut larger = deployment(15, rolling(json!(3)));
        larger["spec"]["paused"] = json!(paused);
        let manifest = together(larger, old_and_new([8, 5], (10, 13)));
        assert_eq!(counts(&manifest), [11, 7]);
        assert_eq!(manifest.pods.len(), 18, "the pods of the ReplicaSets, and no others");
        let why = "because Deployment default/web wants 15 and may have 3 more during its rollout";
        for (name, counted) in
            [("web-5d4", "11 replicas instead of 8"), ("web-77f", "7 replicas instead of 5")]
        {
            let note = format!("ReplicaSet default/{name}: it counts with {counted}, {why}");
            assert!(has(&manifest, &note), "{note} is not in {:#?}", manifest.notes);
        }
    }
}

#[test]
fn a_rollout_of_known_status_goes_on_after_its_replica_sets_have_grown_unless_it_is_paused() {
    let sets = old_and_new([8, 5], (10, 13)).map(|mut set| {
        let replicas = set["spec"]["replicas"].clone();
        set["status"] = json!({"replicas": replicas, "availableReplicas": replicas});
        set
    });
    let strategy = json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 3, "maxUnavailable": 2}});
    let mut larger = deployment(15, strategy);
    let manifest = together(larger.clone(), sets.clone());
    assert_eq!(counts(&manifest), [8, 10], "old pods that have no node make room for new ones");
    larger["spec"]["paused"] = json!(true);
    assert_eq!(counts(&together(larger, sets)), [11, 7]);
}

#[test]
fn a_rollout_of_known_status_goes_on_after_its_replica_sets_have_shrunk() {
    let sets = old_and_new([8, 5], (10, 13)).map(|mut set| {
        let replicas = set["spec"]["replicas"].clone();
        set["status"] = json!({"replicas": replicas, "availableReplicas": replicas});
        set
    });
    let strategy = json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 3, "maxUnavailable": 1}});
    let manifest = together(deployment(4, strategy), sets);
    assert_eq!(counts(&manifest), [0, 4], "three of the new ones are available, and that is enough");
}

#[test]
fn no_more_pods_of_a_replica_set_are_available_than_it_had_before_it_grew() {
    let [mut old, mut new] = old_and_new([8, 5], (10, 13));
    old["status"] = json!({"replicas": 8, "availableReplicas": 8});
    new["status"] = json!({"replicas": 50, "availableReplicas": 50});
    let strategy = json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 3, "maxUnavailable": 2}});
    assert_eq!(counts(&together(deployment(15, strategy), [old, new])), [8, 10]);
}

#[test]
fn a_paused_deployment_with_more_replicas_gives_them_its_old_template_if_all_its_pods_have_that() {
    let [old, _] = old_and_new([3, 0], (3, 4));
    let mut larger = deployment(5, rolling(json!(1)));
    larger["spec"]["paused"] = json!(true);
    let manifest = read(&[larger, old]);
    assert_eq!((counts(&manifest), manifest.pods.len()), ([5, 0], 5));
    let note = "ReplicaSet default/web-5d4: it counts with 5 replicas instead of 3, because Deployment default/web is paused and wants 5";
    assert!(has(&manifest, note), "{:#?}", manifest.notes);
}

#[test]
fn without_the_annotations_of_the_controller_what_a_rollout_lacks_has_the_new_template_and_a_note_says_so() {
    let mut sets = old_and_new([8, 5], (10, 13));
    sets[0]["metadata"]["annotations"] = json!({});
    let manifest = together(deployment(15, rolling(json!(3))), sets);
    assert_eq!(counts(&manifest), [8, 5]);
    assert_eq!(manifest.pods.len(), 15);
    let note = "Deployment default/web: its 2 ReplicaSets have 13 replicas together, and it may have 18; only the pods that it lacks \
                are planned, with the new template, because the annotations of its controller do not show what they had before";
    assert!(has(&manifest, note), "{:#?}", manifest.notes);
}
