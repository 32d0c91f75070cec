//! The demo on a real control plane on loopback.

use std::net::TcpListener;
use std::time::Duration;

use anyhow::ensure;
use poolwright_plane::{ControlPlane, Options, Process, install_crds};

use crate::cluster::Cluster;
use crate::{Pace, Place, end, pool_file, repository, waves};

struct Real {
    controller: Process,
}

impl Place for Real {
    // Empty nodes go 10 s after they become empty (the pool's setting), plus the settle time.
    const PACE: Pace = Pace { look_every: 1, wave: 90, drain: 60 };

    fn check(&mut self) -> anyhow::Result<()> {
        self.controller.ensure_running()
    }

    fn tail(&self) -> String {
        format!("The end of the controller's log:\n{}", self.controller.tail(30))
    }
}

/// Runs the demo.
#[tokio::main]
pub async fn demo() -> anyhow::Result<()> {
    let keep = std::env::var("KEEP").is_ok_and(|value| !value.is_empty() && value != "0");
    println!(
        "Starting etcd, kube-apiserver, kube-scheduler, kube-controller-manager and KWOK on loopback ..."
    );
    let plane = ControlPlane::start(Options::everything()).await?;
    let client = plane.client()?;
    install_crds(&client, &repository().join("crds")).await?;
    poolwright_plane::apply(&client, "default", &pool_file()?).await?;
    let mut place = Real { controller: start_controller(&plane)? };
    let cluster = Cluster::new(client);
    waves(&cluster, &mut place).await?;

    if keep {
        let kubeconfig = plane.kubeconfig_path();
        let stop = plane.detach(vec![place.controller])?;
        println!("\nLeft running. To look around:\n  export KUBECONFIG={}", kubeconfig.display());
        println!("  kubectl get nodepools,nodeclaims,nodes,pods\nTo end it:\n  sh {}", stop.display());
        return Ok(());
    }

    end(&cluster, &mut place).await?;
    let ended = place.controller.terminate(Duration::from_secs(20)).await?;
    ensure!(ended.success(), "the controller ended with {ended}:\n{}", place.controller.tail(20));
    println!("\nDown to zero: no node, no claim, no instance, $0.00/h. Everything is cleaned up.");
    plane.stop();
    Ok(())
}

fn start_controller(plane: &ControlPlane) -> anyhow::Result<Process> {
    let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    plane.poolwright("controller", &["controller", "--bind", &format!("127.0.0.1:{port}")])
}
