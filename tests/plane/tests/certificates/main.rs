//! The certificate of the API server has expired or is untrusted. The controller reports it with a fix, and gives up nothing. It
//! continues by itself when the certificate is valid.

mod front;

use std::process::Command;

use anyhow::ensure;
use poolwright_plane::trial::{Cluster, Controller, Trial, WITHIN, Witness, node_class, node_pool, pod};
use poolwright_plane::{poolwright_binary, wait_for};
use serde_json::{Value, json};

use front::{Front, Shown};

/// The number of failed connections after which the test concludes that the controller does nothing. They take a few seconds, in
/// which a controller that made a decision would have acted.
const TRIES: usize = 60;

/// Returns pods that need a whole g5.xlarge each.
fn pods(prefix: &str, count: usize) -> Vec<Value> {
    let requests = json!({"cpu": "3", "memory": "8Gi", "nvidia.com/gpu": "1"});
    (0..count).map(|number| pod(&format!("{prefix}-{number}"), "gpu", requests.clone())).collect()
}

/// Returns an error if a taint or a cordon keeps pods from any node.
async fn ensure_open(cluster: &Cluster) -> anyhow::Result<()> {
    for node in cluster.nodes("gpu").await? {
        let spec = node.spec.unwrap_or_default();
        let open = spec.taints.is_none() && spec.unschedulable != Some(true);
        ensure!(open, "{:?}: {:?}, cordoned: {:?}", node.metadata.name, spec.taints, spec.unschedulable);
    }
    Ok(())
}

async fn define_pool(cluster: &Cluster) {
    cluster.apply("", &[node_class("gpu", json!({})), node_pool("gpu", json!({}))]).await.unwrap();
}

fn controller_through(plane: &poolwright_plane::ControlPlane, front: &Front, name: &str) -> Controller {
    let kubeconfig = front.kubeconfig();
    let flags = ["--identity", name, "--batch-idle", "200ms", "--lease-duration", "6s"];
    let flags: Vec<&str> =
        flags.into_iter().chain(["--list-interval", "1s", "--kubeconfig", &kubeconfig]).collect();
    Controller::start(plane, &format!("controller-{name}"), &flags).unwrap()
}

/// Returns the expected texts for each certificate: the problem and the fix.
fn words(shown: Shown) -> [&'static str; 2] {
    match shown {
        Shown::Expired => ["has expired: it was valid until 2021-01-01T00:00:00Z", "renew it"],
        Shown::OfAStranger => ["is not trusted", "certificate-authority"],
        Shown::Good => unreachable!("nothing is said of it"),
    }
}

fn assert_told(text: &str, front: &Front, shown: Shown) {
    let server = format!("the certificate of the API server https://{}", front.address());
    let [what, next] = words(shown);
    let told = text.lines().any(|line| [&server, what, next].iter().all(|part| line.contains(part)));
    assert!(told, "{shown:?} is not told with `{server}`, `{what}` and `{next}`:\n{text}");
}

/// Waits until the controller is not ready and says why.
async fn wait_not_ready(controller: &mut Controller, front: &Front, shown: Shown) {
    let why = wait_for("it to be not ready, and to say why", WITHIN, async || {
        controller.ensure_running()?;
        let (ready, why) = controller.readiness().await?;
        ensure!(!ready && why.contains("certificate"), "ready: {ready}, {why}");
        Ok(why)
    });
    assert_told(&why.await.unwrap(), front, shown);
}

/// Waits until the controller has tried to connect often enough.
async fn wait_tried(controller: &mut Controller, front: &Front) {
    let before = front.refused();
    wait_for("the controller to try again and again", WITHIN, async || {
        controller.ensure_running()?;
        let tries = front.refused() - before;
        ensure!(tries >= TRIES, "{tries} times");
        Ok(())
    })
    .await
    .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_controller_reports_a_bad_certificate_and_works_once_it_is_valid() {
    let plane = Trial::plane_without_controller().await.unwrap();
    let cluster = Cluster::new(plane.client().unwrap());
    let namespace = cluster.namespace("begins").await.unwrap();
    define_pool(&cluster).await;
    for (number, shown) in [Shown::Expired, Shown::OfAStranger].into_iter().enumerate() {
        let front = Front::start(&plane, shown).await.unwrap();
        for command in [["plan"].as_slice(), &["top", "--once"]] {
            let mut process = Command::new(poolwright_binary().unwrap());
            let output = process.args(command).args(["--kubeconfig", &front.kubeconfig()]).output().unwrap();
            let said = String::from_utf8(output.stderr).unwrap();
            println!("{said}");
            assert_eq!(output.status.code(), Some(1), "{command:?}: {said}");
            assert_told(&said, &front, shown);
            assert_eq!(said.matches("certificate of the API server").count(), 1, "said once: {said}");
            assert!(
                said.starts_with("error: cannot read the cluster") && said.lines().count() == 1,
                "{said}"
            );
            assert_eq!(output.stdout, b"");
        }

        cluster.create_pods(&namespace, &pods(&format!("pod-{number}"), 1)).await.unwrap();
        let mut controller = controller_through(&plane, &front, &format!("begins-{number}"));
        wait_not_ready(&mut controller, &front, shown).await;
        wait_tried(&mut controller, &front).await;
        assert_told(&controller.process().log(), &front, shown);
        assert_eq!(cluster.claims("gpu").await.unwrap().len(), number, "nothing is bought in the dark");

        front.show(Shown::Good);
        cluster.wait_running(&namespace, number + 1).await.unwrap();
        controller.ensure_running().unwrap();
        assert_eq!(controller.readiness().await.unwrap(), (true, "ok\n".to_owned()));
        println!("{}", controller.process().log());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_survives_an_expired_certificate_of_the_api_server() {
    let plane = Trial::plane_without_controller().await.unwrap();
    let cluster = Cluster::new(plane.client().unwrap());
    let namespace = cluster.namespace("leads").await.unwrap();
    define_pool(&cluster).await;
    let front = Front::start(&plane, Shown::Good).await.unwrap();
    let mut controller = controller_through(&plane, &front, "leads");
    let witness = Witness::start(&cluster).await.unwrap();
    cluster.create_pods(&namespace, &pods("early", 4)).await.unwrap();
    cluster.wait_running(&namespace, 4).await.unwrap();
    let is_ready = async |controller: &Controller| controller.readiness().await.unwrap().0;
    assert!(is_ready(&controller).await);
    wait_for("the nodes to be open to all", WITHIN, async || ensure_open(&cluster).await).await.unwrap();

    front.show(Shown::Expired);
    wait_not_ready(&mut controller, &front, Shown::Expired).await;
    wait_for("it to lead no more", WITHIN, async || {
        controller.ensure_running()?;
        ensure!(controller.metric("poolwright_leader").await? < 0.5, "it leads");
        Ok(())
    })
    .await
    .unwrap();
    // Work that a controller would react to: a node that becomes empty, and a pod that fits on no node.
    cluster.delete_pod(&namespace, "early-0").await.unwrap();
    let late = pod("late", "gpu", json!({"cpu": "3", "memory": "8Gi", "nvidia.com/gpu": "4"}));
    cluster.create_pods(&namespace, &[late]).await.unwrap();
    wait_tried(&mut controller, &front).await;
    assert_told(&controller.process().log(), &front, Shown::Expired);
    assert!(!is_ready(&controller).await, "it is blind");
    for claim in cluster.claims("gpu").await.unwrap() {
        assert_eq!(claim.metadata.deletion_timestamp, None, "{claim:?}");
    }
    ensure_open(&cluster).await.unwrap();
    let account = witness.account_of([4; 3]).await.unwrap();
    for seen in [&account.instances, &account.nodes, &account.claims] {
        assert_eq!(seen.ever(), 4, "{seen:?}");
    }

    front.show(Shown::Good);
    cluster.wait_running(&namespace, 4).await.unwrap();
    wait_for("the empty node to be given back", WITHIN, async || {
        controller.ensure_running()?;
        let left = (cluster.claims("gpu").await?.len(), cluster.instances("gpu").await?.len());
        ensure!(left == (4, 4), "{left:?} claims and instances");
        Ok(())
    })
    .await
    .unwrap();
    assert!(is_ready(&controller).await);
    let account = witness.account_of([4; 3]).await.unwrap();
    for seen in [&account.instances, &account.nodes, &account.claims] {
        assert_eq!((seen.ever(), seen.doubled()), (5, Vec::new()), "{seen:?}");
    }
    println!("{}", controller.process().log());
}
