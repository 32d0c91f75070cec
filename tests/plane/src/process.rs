//! A child process: its output goes to a file, and it is killed when its owner drops it.

use std::env;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use anyhow::{Context, bail, ensure};
use serde_json::Value;

use crate::checkout::checkout;
use crate::wait::wait_for;

/// A running program with its log. Killed (SIGKILL) on drop.
#[derive(Debug)]
pub struct Process {
    name: String,
    child: Child,
    log: PathBuf,
    detached: bool,
}

impl Process {
    /// Starts `command` with its standard output and error appended to `log`.
    pub fn spawn(name: &str, mut command: Command, log: &Path) -> anyhow::Result<Self> {
        let output = File::options()
            .create(true)
            .append(true)
            .open(log)
            .with_context(|| format!("the log {} of {name} cannot be opened", log.display()))?;
        let child =
            command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output).spawn().with_context(
                || format!("{name} ({}) could not be started", command.get_program().display()),
            )?;
        Ok(Self { name: name.to_owned(), child, log: log.to_owned(), detached: false })
    }

    /// Returns the name given at its start.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Returns the path of its log.
    pub fn log_path(&self) -> &Path {
        &self.log
    }

    /// Returns everything written to its log so far, including the output of earlier processes with the same log.
    pub fn log(&self) -> String {
        fs::read(&self.log).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
    }

    /// Returns the last `lines` lines of its log.
    pub fn tail(&self, lines: usize) -> String {
        let log = self.log();
        let all: Vec<&str> = log.lines().collect();
        all[all.len().saturating_sub(lines)..].join("\n")
    }

    /// Returns its exit status, or `None` while it runs.
    pub fn exited(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// Returns an error with the end of its log if it has ended.
    pub fn ensure_running(&mut self) -> anyhow::Result<()> {
        if let Some(status) = self.exited() {
            bail!("{} ended ({status}); the end of {}:\n{}", self.name, self.log.display(), self.tail(20));
        }
        Ok(())
    }

    /// Kills it as `kill -9` does, and returns when it is gone. May be called again.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Suspends it (SIGSTOP) until [`Self::resume`].
    pub fn pause(&self) -> anyhow::Result<()> {
        ensure!(self.signal("STOP")?, "SIGSTOP could not be sent to {}", self.name);
        Ok(())
    }

    /// Lets it continue (SIGCONT).
    pub fn resume(&self) -> anyhow::Result<()> {
        ensure!(self.signal("CONT")?, "SIGCONT could not be sent to {}", self.name);
        Ok(())
    }

    /// Sends a signal. Returns whether that succeeded.
    fn signal(&self, name: &str) -> anyhow::Result<bool> {
        // Uses the shell's builtin, because safe Rust's standard library cannot send a signal.
        let mut shell = Command::new("sh");
        let status =
            shell.args(["-c", "kill -\"$1\" \"$0\""]).arg(self.id().to_string()).arg(name).status()?;
        Ok(status.success())
    }

    /// Sends SIGTERM and waits for the end, at most `limit`. Returns the exit status, or an error with the end of the log.
    pub async fn terminate(&mut self, limit: Duration) -> anyhow::Result<ExitStatus> {
        let asked = self.signal("TERM")?;
        ensure!(asked || self.exited().is_some(), "SIGTERM could not be sent to {}", self.name);
        let ended = wait_for(&format!("{} to end after SIGTERM", self.name), limit, async || {
            self.child.try_wait()?.context("it still runs")
        })
        .await;
        ended.with_context(|| format!("the end of {}:\n{}", self.log.display(), self.tail(20)))
    }

    /// Lets it run on after its owner is dropped.
    pub fn detach(&mut self) {
        self.detached = true;
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if !self.detached {
            self.kill();
        }
    }
}

/// Returns the `poolwright` binary under test: `POOLWRIGHT_BIN`, or the one cargo built beside the running program.
///
/// `cargo test --workspace` builds it. `cargo test -p poolwright-plane` alone does not, and the error says so. Checkouts may share the
/// folder beside, so it is also an error if the binary there is from another one.
pub fn poolwright_binary() -> anyhow::Result<PathBuf> {
    if let Some(path) = env::var_os("POOLWRIGHT_BIN") {
        let path = PathBuf::from(path);
        ensure!(path.is_file(), "POOLWRIGHT_BIN is {}, where there is no file", path.display());
        return Ok(path);
    }
    let this = env::current_exe().context("the running program does not know its own path")?;
    // target/debug/poolwright-demo, or target/debug/deps/some_test-0123.
    let found =
        this.ancestors().skip(1).take(2).map(|folder| folder.join("poolwright")).find(|path| path.is_file());
    let found = found.with_context(|| {
        format!(
            "no poolwright binary beside {}: build it with `cargo build --workspace`, or name one in POOLWRIGHT_BIN",
            this.display()
        )
    })?;
    ensure_own(&found)?;
    Ok(found)
}

/// The time and size of the binary that was checked last. Another checkout may replace it at any time.
static CHECKED: Mutex<Option<(SystemTime, u64)>> = Mutex::new(None);

/// Returns an error if the binary is from another checkout.
fn ensure_own(binary: &Path) -> anyhow::Result<()> {
    let about = fs::metadata(binary)?;
    let now = Some((about.modified()?, about.len()));
    let mut checked = CHECKED.lock().unwrap_or_else(PoisonError::into_inner);
    if *checked != now {
        let output = Command::new(binary).args(["version", "-o", "json"]).output()?;
        let version: Value = serde_json::from_slice(&output.stdout)
            .with_context(|| format!("{} does not tell its version", binary.display()))?;
        ensure_of(&checkout(env!("CARGO_MANIFEST_DIR")), &version, binary)?;
        if cfg!(debug_assertions) {
            eprintln!(
                "{} is of commit {}",
                binary.display(),
                version["commit"].as_str().unwrap_or("unknown")
            );
        }
        *checked = now;
    }
    Ok(())
}

/// Returns an error if a binary that tells this version is not of a checkout. Only development builds know theirs.
fn ensure_of(own: &str, version: &Value, binary: &Path) -> anyhow::Result<()> {
    let is_own = match version["checkout"].as_str() {
        Some(checkout) => checkout == own,
        None => !cfg!(debug_assertions),
    };
    ensure!(
        is_own,
        "{} is from another checkout (commit {}), which shares this build folder: build this one again with \
         `cargo build --workspace`, or give each checkout a CARGO_TARGET_DIR of its own",
        binary.display(),
        version["commit"].as_str().unwrap_or("unknown")
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(name: &str, script: &str) -> Process {
        let log = env::temp_dir().join(format!("poolwright-process-{name}-{}.log", std::process::id()));
        let mut command = Command::new("sh");
        command.arg("-c").arg(script);
        Process::spawn(name, command, &log).unwrap()
    }

    fn forget(process: Process) {
        fs::remove_file(process.log_path()).unwrap();
    }

    #[tokio::test]
    async fn a_program_that_ended_is_an_error_with_the_end_of_its_log() {
        let mut process = shell("gone", "echo first; echo out of disk >&2; exit 3");
        let error = wait_for("the program to end", Duration::from_secs(30), async || {
            Ok(process.ensure_running().err().context("it runs")?.to_string())
        })
        .await
        .unwrap();
        assert!(error.contains("gone ended") && error.contains("out of disk"), "{error}");
        assert_eq!(process.tail(1), "out of disk");
        forget(process);
    }

    #[tokio::test]
    async fn a_program_asked_to_end_may_end_in_its_own_way() {
        let mut process =
            shell("polite", "trap 'echo bye; exit 7' TERM; echo up; while :; do sleep 0.01; done");
        wait_for("the trap to be set", Duration::from_secs(30), async || {
            ensure!(process.log().contains("up"), "it has not said so");
            Ok(())
        })
        .await
        .unwrap();
        let status = process.terminate(Duration::from_secs(30)).await.unwrap();
        assert_eq!(status.code(), Some(7));
        assert!(process.log().ends_with("bye\n"), "{}", process.log());
        forget(process);
    }

    #[test]
    fn a_binary_of_another_checkout_is_refused_with_its_commit_and_what_to_do() {
        let (own, binary) = (checkout("/a/tests/plane"), Path::new("/shared/debug/poolwright"));
        assert_eq!(own, checkout("/a/src/cli"), "all crates of a checkout agree");
        ensure_of(&own, &serde_json::json!({"checkout": own}), binary).unwrap();
        let other = serde_json::json!({"checkout": checkout("/b/src/cli"), "commit": "5241b39"});
        let error = ensure_of(&own, &other, binary).unwrap_err().to_string();
        assert!(
            error.contains("/shared/debug/poolwright is from another checkout (commit 5241b39)"),
            "{error}"
        );
        assert!(error.contains("`cargo build --workspace`"), "{error}");
        let untold = ensure_of(&own, &serde_json::json!({}), binary);
        assert_eq!(untold.is_err(), cfg!(debug_assertions), "a development build tells its checkout");
    }

    #[test]
    fn a_dropped_program_is_killed_and_a_program_that_is_not_there_is_named() {
        let mut process = shell("long", "sleep 1000");
        process.kill();
        assert!(process.exited().is_some_and(|status| !status.success()));
        let nowhere = Process::spawn("ghost", Command::new("/nowhere/ghost"), process.log_path());
        let error = format!("{:#}", nowhere.unwrap_err());
        assert!(error.contains("ghost") && error.contains("/nowhere/ghost"), "{error}");
        forget(process);
    }
}
