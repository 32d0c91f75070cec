//! The leash: a shell that briefly outlives its owner and kills the processes the owner left behind.
//!
//! `Drop` does not run for a static, nor in a process that is killed. The leash waits on a pipe that only its owner holds.
//! However the owner ends, the pipe closes, and the leash kills the processes it was told of and removes their directory.

use std::io::Write;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Mutex;

use anyhow::Context;

/// The environment variable that marks a process as belonging to a directory. The leash kills no process without it, so it is
/// safe if the system has reused a process id meanwhile.
pub const MARK: &str = "POOLWRIGHT_PLANE";

/// `$0` is the directory. The shell ignores the terminal's signals, because it exists for owners that were interrupted.
const WAIT: &str = r#"
trap '' INT TERM HUP
held= ; keep=
while read -r verb value; do
  case $verb in
    hold) held="$held $value" ;;
    keep) keep=yes ;;
    release) exit 0 ;;
  esac
done
directory=$0
"#;

/// Kills the processes in `$held` that belong to `$directory`, and removes the directory unless `$keep` is set.
const END: &str = r#"
for pid in $held; do
  if tr '\0' '\n' <"/proc/$pid/environ" 2>/dev/null | grep -qxF "POOLWRIGHT_PLANE=$directory"; then kill -9 "$pid"; fi
done
if [ -z "$keep" ]; then rm -rf -- "$directory" 2>/dev/null || { sleep 1; rm -rf -- "$directory"; }; fi
"#;

/// Returns a script that does what a leash does when its owner ends.
pub fn stop_script(directory: &Path, processes: &[String]) -> String {
    format!(
        "#!/bin/sh\n# Ends this control plane and removes its directory.\nheld='{}' keep= directory='{}'\n{}",
        processes.join(" "),
        directory.display(),
        END.trim_start()
    )
}

/// The shell and the pipe to it. See the module.
#[derive(Debug)]
pub struct Leash {
    shell: Child,
    pipe: Mutex<Option<ChildStdin>>,
}

impl Leash {
    /// Starts a leash for the processes of `directory`, which it removes at the end.
    pub fn new(directory: &Path) -> anyhow::Result<Self> {
        let mut shell = Command::new("sh")
            .arg("-c")
            .arg(format!("{WAIT}{END}"))
            .arg(directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .context("no `sh` could be started to look after the control plane")?;
        let pipe = Mutex::new(shell.stdin.take());
        Ok(Self { shell, pipe })
    }

    /// Makes the process `id`, marked with [`MARK`], end with the owner.
    pub fn hold(&self, id: u32) {
        self.tell(&format!("hold {id}\n"));
    }

    /// Keeps the directory when the owner ends. Its processes still end.
    pub fn keep(&self) {
        self.tell("keep\n");
    }

    /// Lets the processes run on and keeps the directory when the owner ends.
    pub fn release(&self) {
        self.tell("release\n");
    }

    /// Sends a line to the shell. A shell that has ended has nothing left to look after, so a closed pipe is no error.
    fn tell(&self, line: &str) {
        let mut pipe = self.pipe.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(pipe) = pipe.as_mut() {
            let _ = pipe.write_all(line.as_bytes());
        }
    }
}

impl Drop for Leash {
    fn drop(&mut self) {
        self.pipe.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
        let _ = self.shell.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn directory(name: &str) -> std::path::PathBuf {
        let path = std::env::temp_dir().join(format!("poolwright-leash-{name}-{}", std::process::id()));
        std::fs::create_dir(&path).unwrap();
        path
    }

    fn sleeper(mark: &Path) -> Child {
        Command::new("sleep").arg("1000").env(MARK, mark).spawn().unwrap()
    }

    #[test]
    fn what_an_owner_left_behind_is_killed_and_removed_and_nothing_else() {
        let ours = directory("ours");
        let (mut left_behind, mut stranger) = (sleeper(&ours), sleeper(Path::new("/elsewhere")));
        let leash = Leash::new(&ours).unwrap();
        leash.hold(left_behind.id());
        leash.hold(stranger.id());
        drop(leash);
        assert!(!left_behind.wait().unwrap().success(), "a sleeper that was not killed sleeps on");
        assert!(stranger.try_wait().unwrap().is_none(), "a process without our mark is none of ours");
        assert!(!ours.exists());
        stranger.kill().unwrap();
        stranger.wait().unwrap();
    }

    #[test]
    fn a_kept_directory_stays_and_its_processes_go() {
        let ours = directory("kept");
        let mut left_behind = sleeper(&ours);
        let leash = Leash::new(&ours).unwrap();
        leash.hold(left_behind.id());
        leash.keep();
        drop(leash);
        assert!(!left_behind.wait().unwrap().success());
        assert!(ours.exists(), "the logs of a failure are worth keeping");
        std::fs::remove_dir(ours).unwrap();
    }

    #[test]
    fn a_released_leash_touches_nothing() {
        let ours = directory("released");
        let mut running = sleeper(&ours);
        let leash = Leash::new(&ours).unwrap();
        leash.hold(running.id());
        leash.release();
        drop(leash);
        assert!(running.try_wait().unwrap().is_none() && ours.exists());
        running.kill().unwrap();
        running.wait().unwrap();
        std::fs::remove_dir(ours).unwrap();
    }
}
