//! moto, the AWS simulator, as a process.

use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use std::{env, fs};

use anyhow::{Context, ensure};
use tokio::net::TcpStream;

use crate::wait::wait_for;

/// The version that `tests/tools.py` installs.
const VERSION: &str = "5.2.5";
/// Long compared with its start on a busy machine.
const SOON: Duration = Duration::from_mins(2);

/// A running moto with an account of its own. It ends however its owner ends: a shell beside it waits on a pipe that only the
/// owner holds.
#[derive(Debug)]
pub struct Moto {
    shell: Child,
    url: String,
}

/// `$1` is the log, the other arguments are the command.
const LEASH: &str = r#"
trap '' INT TERM HUP
log=$1; shift
"$@" >"$log" 2>&1 </dev/null &
pid=$!
cat >/dev/null
kill -9 "$pid" 2>/dev/null
rm -f -- "$log"
"#;

impl Moto {
    /// Starts moto on a free port.
    pub async fn start() -> anyhow::Result<Self> {
        let program = program()?;
        let mut last = String::new();
        // Two that start at once may get the same port. The second fails to bind and is started again.
        for _ in 0..5 {
            let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
            let log = env::temp_dir().join(format!("poolwright-moto-{}-{port}.log", std::process::id()));
            let shell = Command::new("sh")
                .args(["-c", LEASH, "sh"])
                .arg(&log)
                .arg(&program)
                .args(["-H", "127.0.0.1", "-p", &port.to_string()])
                .stdin(Stdio::piped())
                .spawn()
                .context("no shell to start moto with")?;
            let moto = Self { shell, url: format!("http://127.0.0.1:{port}") };
            let said = async || fs::read_to_string(&log).unwrap_or_default();
            let up = wait_for("moto to listen", SOON, async || {
                last = said().await;
                if last.contains("Address already in use") {
                    return Ok(false);
                }
                ensure!(last.contains("Running on"), "it has not said that it runs");
                TcpStream::connect(("127.0.0.1", port)).await?;
                Ok(true)
            });
            if up.await? {
                return Ok(moto);
            }
        }
        anyhow::bail!("moto does not start; its log:\n{last}")
    }

    /// Returns its address: `http://127.0.0.1:5000`.
    pub fn url(&self) -> &str {
        &self.url
    }
}

impl Drop for Moto {
    fn drop(&mut self) {
        drop(self.shell.stdin.take());
        let _ = self.shell.wait();
    }
}

/// Returns the program: `MOTO_SERVER`, or the pinned version in the shared cache.
fn program() -> anyhow::Result<PathBuf> {
    if let Some(named) = env::var_os("MOTO_SERVER") {
        let path = PathBuf::from(named);
        ensure!(path.is_file(), "MOTO_SERVER is {}, where there is no file", path.display());
        return Ok(path);
    }
    let cache = match env::var_os("POOLWRIGHT_CACHE") {
        Some(cache) => PathBuf::from(cache),
        None => {
            PathBuf::from(env::var_os("HOME").context("HOME is not set")?).join(".cache").join("poolwright")
        }
    };
    let path = cache.join("tools").join(format!("moto-{VERSION}")).join("bin").join("moto_server");
    ensure!(
        path.is_file(),
        "moto {VERSION} was not found (no {}): run `python3 tests/tools.py moto`, which installs it once",
        path.display()
    );
    Ok(path)
}
