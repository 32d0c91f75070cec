//! A running `poolwright controller`.

use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::Command;

use anyhow::{Context, ensure};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::plane::ControlPlane;
use crate::process::{Process, poolwright_binary};

/// A running controller. Dropping it kills it as `kill -9` does.
#[derive(Debug)]
pub struct Controller {
    process: Process,
    address: SocketAddr,
}

impl Controller {
    /// Starts a controller on a free port. `name` names its log. A second controller of the same name appends to it.
    pub fn start(plane: &ControlPlane, name: &str, flags: &[&str]) -> anyhow::Result<Self> {
        Self::start_with(plane, name, flags, |_| {})
    }

    /// Starts a controller like [`Controller::start`]. `prepare` may change the command before it starts, for example its
    /// environment.
    pub fn start_with(
        plane: &ControlPlane,
        name: &str,
        flags: &[&str],
        prepare: impl FnOnce(&mut Command),
    ) -> anyhow::Result<Self> {
        Self::start_program(plane, name, &poolwright_binary()?, flags, prepare)
    }

    /// Starts this program like [`Controller::start_with`], instead of `poolwright`.
    pub fn start_program(
        plane: &ControlPlane,
        name: &str,
        program: &Path,
        flags: &[&str],
        prepare: impl FnOnce(&mut Command),
    ) -> anyhow::Result<Self> {
        let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        let mut command = Command::new(program);
        command.args(["controller", "--bind", &address.to_string()]).args(flags);
        prepare(&mut command);
        Ok(Self { process: plane.spawn(name, command)?, address })
    }

    /// Returns the address of its health and metrics endpoints.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Kills it as `kill -9` does.
    pub fn kill(&mut self) {
        self.process.kill();
    }

    /// Returns the process.
    pub fn process(&mut self) -> &mut Process {
        &mut self.process
    }

    /// Returns an error with the end of its log if it has ended.
    pub fn ensure_running(&mut self) -> anyhow::Result<()> {
        self.process.ensure_running()
    }

    /// Returns whether it is ready, and the body of its answer.
    pub async fn readiness(&self) -> anyhow::Result<(bool, String)> {
        let (status, said) = ask(self.address, "/readyz").await?;
        Ok((status.contains(" 200 "), said))
    }

    /// Returns a metric, by name and labels as `/metrics` writes them, or 0 if it does not exist yet.
    pub async fn metric(&self, series: &str) -> anyhow::Result<f64> {
        metric(self.address, series).await
    }

    /// Returns the sum of all series of this name whose labels contain this text.
    pub async fn metric_sum(&self, name: &str, labels: &str) -> anyhow::Result<f64> {
        sum(&get(self.address, "/metrics").await?, name, labels)
    }
}

/// Returns the sum of all series of this name whose labels contain this text, in metrics as Kubernetes programs write them.
pub fn sum(metrics: &str, name: &str, labels: &str) -> anyhow::Result<f64> {
    let series =
        metrics.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix('{')?.rsplit_once("} "));
    let ours = series.filter(|(its_labels, _)| its_labels.contains(labels));
    ours.map(|(_, value)| value.parse::<f64>().with_context(|| format!("{name} is `{value}`")))
        .try_fold(0.0, |sum, value| Ok(sum + value?))
}

pub(super) async fn metric(address: SocketAddr, series: &str) -> anyhow::Result<f64> {
    let text = get(address, "/metrics").await?;
    let line = text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    line.map_or(Ok(0.0), |value| value.parse().with_context(|| format!("{series} is `{value}`")))
}

/// Returns the body of a GET that must succeed.
async fn get(address: SocketAddr, path: &str) -> anyhow::Result<String> {
    let (status, body) = ask(address, path).await?;
    ensure!(status.contains(" 200 "), "GET {path}: {status}");
    Ok(body)
}

/// Sends one GET and reads until the server closes the connection. Returns the status line and the body.
async fn ask(address: SocketAddr, path: &str) -> anyhow::Result<(String, String)> {
    let mut stream = TcpStream::connect(address).await.with_context(|| format!("connecting to {address}"))?;
    stream.write_all(format!("GET {path} HTTP/1.0\r\nHost: {address}\r\n\r\n").as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    let (head, body) = answer.split_once("\r\n\r\n").context("an answer without end of header")?;
    Ok((head.lines().next().unwrap_or_default().to_owned(), body.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn series_of_one_name_are_added_up_as_far_as_their_labels_say_so() {
        let text =
            "# HELP a_total x\na_total{k=\"1\",v=\"x\"} 2\na_total{k=\"2\",v=\"x\"} 3\na_totals{k=\"1\"} 9\n";
        assert!((sum(text, "a_total", "v=\"x\"").unwrap() - 5.0).abs() < 1e-9);
        assert!((sum(text, "a_total", "k=\"1\"").unwrap() - 2.0).abs() < 1e-9);
        assert!(sum("a_total{} x\n", "a_total", "").is_err());
    }
}
