//! Link options of the release binary, and the commit that `poolwright version` prints.

use std::path::{Path, PathBuf};
use std::process::Command;

mod checkout;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=checkout.rs");
    let is = |name: &str, value: &str| std::env::var(name).is_ok_and(|found| found == value);
    let is_linux = is("CARGO_CFG_TARGET_OS", "linux")
        && is("CARGO_CFG_TARGET_ARCH", "x86_64")
        && is("CARGO_CFG_TARGET_ENV", "gnu");
    // The demo's profile is a release too, but it must link soon.
    if is_linux && is("PROFILE", "release") && !is("OPT_LEVEL", "0") {
        // LLD, with which Rust links for this target, keeps the exception tables of all functions that it leaves out: six megabytes
        // for generated clients of clouds.
        println!("cargo::rustc-link-arg-bins=-fuse-ld=bfd");
        // `make build` compiles for calls without a table of addresses (`relro-level=partial`). What remains of it stays read-only.
        println!("cargo::rustc-link-arg-bins=-Wl,-z,relro,-z,now");
    }
    let folder = std::env::var("CARGO_MANIFEST_DIR").unwrap_or_default();
    let commit = commit(&Path::new(&folder).join("../..")).unwrap_or_else(|| "unknown".to_owned());
    println!("cargo::rustc-env=POOLWRIGHT_COMMIT={commit}");
    // A release must be the same wherever it is built.
    if is("PROFILE", "debug") {
        println!("cargo::rustc-env=POOLWRIGHT_CHECKOUT={}", checkout::checkout(&folder));
    }
}

/// Returns the commit of the checkout with this root, and asks cargo to come again when it changes; `None` without git.
fn commit(root: &Path) -> Option<String> {
    // A copy without git may be in a folder of another repository.
    if !root.join(".git").exists() {
        return None;
    }
    let git = |arguments: &[&str]| {
        // A hook of git sets these, perhaps for another repository.
        let mut command = Command::new("git");
        command.env_remove("GIT_DIR").env_remove("GIT_WORK_TREE");
        let output = command.arg("-C").arg(root).args(arguments).output().ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        output.status.success().then(|| text.trim().to_owned())
    };
    let place = |name: &str| -> Option<PathBuf> { Some(root.join(git(&["rev-parse", "--git-path", name])?)) };
    let branch = git(&["symbolic-ref", "--quiet", "HEAD"]);
    // A branch that is packed gets a file of its own with the next commit, so its folder is watched until then.
    let branch = branch.and_then(|branch| nearest(place(&branch)?));
    let others = ["HEAD", "packed-refs"].map(|name| place(name).filter(|path| path.exists()));
    for path in others.into_iter().chain([branch]).flatten() {
        println!("cargo::rerun-if-changed={}", path.display());
    }
    git(&["rev-parse", "--verify", "HEAD"])
}

/// Returns the path, or the nearest folder above it that is there. Cargo would come again each time for a path that is not.
fn nearest(path: PathBuf) -> Option<PathBuf> {
    path.ancestors().find(|path| path.exists()).map(Path::to_owned)
}
