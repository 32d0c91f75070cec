//! The main job, for everybody to see: a real control plane on loopback, pods of a real GPU trace in two waves, nodes
//! bought for them, and everything given back. `KEEP=1` leaves it running.

mod cluster;

use std::env;
use std::fmt::Write as _;
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use poolwright_plane::trace::{self, TracePod};
use poolwright_plane::{ControlPlane, Options, Process, install_crds, poolwright_binary};

use crate::cluster::{Cluster, Counts};

/// Pods of each wave.
const WAVES: [usize; 2] = [150, 150];
/// A wave that is not running by then has gone wrong.
const WAVE_LIMIT: Duration = Duration::from_secs(90);
/// Empty nodes go after 10 s (the pool's setting) and a settle time.
const DRAIN_LIMIT: Duration = Duration::from_mins(1);

#[tokio::main]
async fn main() -> ExitCode {
    match demo().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("\nThe demo failed: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

async fn demo() -> anyhow::Result<()> {
    let keep = env::var("KEEP").is_ok_and(|value| !value.is_empty() && value != "0");
    let pods = trace::read(WAVES.iter().sum::<usize>())?;

    say("Starting etcd, kube-apiserver, kube-scheduler, kube-controller-manager and KWOK on loopback ...");
    let plane = ControlPlane::start(Options::everything()).await?;
    let client = plane.client()?;
    install_crds(&client, &repository().join("crds")).await?;
    let pool = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("demo/pool.yaml"))?;
    poolwright_plane::apply(&client, "default", &pool).await?;
    let mut controller = start_controller(&plane)?;
    say("Ready: NodePool `gpu` may buy any on-demand AWS type, at most 2,000 $/h; nothing runs yet.");

    let cluster = Cluster::new(client);
    let mut sent = 0;
    for (number, size) in WAVES.into_iter().enumerate() {
        let wave = &pods[sent..sent + size];
        say(&format!("\nWave {}: {}", number + 1, trace::describe(wave)));
        cluster.create(wave).await?;
        sent += size;
        follow(&cluster, &mut controller, WAVE_LIMIT, |now| now.running == sent && now.opening == 0).await?;
    }

    let paid = cluster.bill().await?;
    let judged = judge(&plane, &pods, &pool)?;
    print_bill(&paid, &judged);

    if keep {
        let kubeconfig = plane.kubeconfig_path();
        let stop = plane.detach(vec![controller])?;
        println!("\nLeft running. To look around:\n  export KUBECONFIG={}", kubeconfig.display());
        println!("  kubectl get nodepools,nodeclaims,nodes,pods\nTo end it:\n  sh {}", stop.display());
        return Ok(());
    }

    say("\nRemoving the workload; empty nodes go after 10 s.");
    cluster.delete_pods().await?;
    follow(&cluster, &mut controller, DRAIN_LIMIT, Counts::nothing_left).await?;
    let ended = controller.terminate(Duration::from_secs(20)).await?;
    ensure!(ended.success(), "the controller ended with {ended}:\n{}", controller.tail(20));
    say("\nDown to zero: no node, no claim, no instance, 0.00 $/h. Everything is cleaned up.");
    plane.stop();
    Ok(())
}

fn say(text: &str) {
    println!("{text}");
}

fn start_controller(plane: &ControlPlane) -> anyhow::Result<Process> {
    let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    plane.poolwright("controller", &["controller", "--bind", &format!("127.0.0.1:{port}")])
}

/// Prints a line for every change, at most one a second, until `done`.
async fn follow(
    cluster: &Cluster,
    controller: &mut Process,
    limit: Duration,
    done: impl Fn(&Counts) -> bool,
) -> anyhow::Result<()> {
    let mut seconds = tokio::time::interval(Duration::from_secs(1));
    let mut last = None;
    for elapsed in 0..limit.as_secs() {
        seconds.tick().await;
        controller.ensure_running()?;
        let now = cluster.counts().await?;
        if last.as_ref() != Some(&now) {
            println!("  {elapsed:>3}s  {now}");
        }
        if done(&now) {
            return Ok(());
        }
        last = Some(now);
    }
    bail!(
        "after {}s it still is: {}\nThe end of the controller's log:\n{}",
        limit.as_secs(),
        last.map(|now| now.to_string()).unwrap_or_default(),
        controller.tail(30)
    )
}

/// What `poolwright plan` says about all the pods at once.
struct Judged {
    cost: f64,
    bound: f64,
    one_pod_per_node: f64,
    first_fit: f64,
}

fn judge(plane: &ControlPlane, pods: &[TracePod], pool: &str) -> anyhow::Result<Judged> {
    let mut manifest = pool.to_owned();
    for pod in pods {
        write!(manifest, "\n---\n{}", serde_json::to_string(&pod.object("default"))?)?;
    }
    let file = plane.dir().join("workload.yaml");
    fs::write(&file, manifest)?;
    let output = Command::new(poolwright_binary()?).args(["plan", "-o", "json", "-f"]).arg(&file).output()?;
    ensure!(output.status.success(), "poolwright plan: {}", String::from_utf8_lossy(&output.stderr));
    let plan: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    let number = |pointer: &str| {
        plan.pointer(pointer)
            .and_then(serde_json::Value::as_f64)
            .with_context(|| format!("the plan has no {pointer}"))
    };
    Ok(Judged {
        cost: number("/costUsdPerHour")?,
        bound: number("/lowerBoundUsdPerHour")?,
        one_pod_per_node: number("/baselines/onePodPerNodeUsdPerHour")?,
        first_fit: number("/baselines/firstFitUsdPerHour")?,
    })
}

fn print_bill(bill: &cluster::Bill, judged: &Judged) {
    println!("\nBought:");
    for line in &bill.lines {
        println!(
            "  {:>4} x {:<18} {:>9.3} $/h each  {:>9.2} $/h",
            line.count,
            line.instance_type,
            line.each,
            line.total()
        );
    }
    let paid = bill.total();
    println!("  {:>4} nodes {:>45.2} $/h\n", bill.nodes(), paid);
    let row = |what: &str, cost: f64| {
        println!("  {what:<44} {cost:>9.2} $/h  {:>+7.1} %", (cost / paid - 1.0) * 100.0);
    };
    row("paid now (two waves, one after the other)", paid);
    row("best plan for both waves at once", judged.cost);
    row("lower bound: nobody can do it for less", judged.bound);
    row("first fit, price-blind", judged.first_fit);
    row("one pod per node", judged.one_pod_per_node);
    println!(
        "  gap of the best plan to the bound: {:.2} %; of what was paid: {:.2} %",
        (judged.cost / judged.bound - 1.0) * 100.0,
        (paid / judged.bound - 1.0) * 100.0
    );
}
