//! Finds the programs of the control plane: given by the user, or built by `make control-plane`.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::bail;

/// The pins the cached programs must have been built from. The build leaves copies of both files beside its programs.
const PINS: [(&str, &[u8]); 2] = [
    ("go.mod", include_bytes!("../../control-plane/go.mod")),
    ("go.sum", include_bytes!("../../control-plane/go.sum")),
];

/// A program of the control plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// The store of the API server.
    Etcd,
    /// The API server.
    ApiServer,
    /// The scheduler.
    Scheduler,
    /// The controllers of workloads, garbage and node conditions.
    ControllerManager,
    /// The simulator of kubelets on fake nodes.
    Kwok,
}

impl Program {
    /// Every program.
    pub const ALL: [Self; 5] =
        [Self::Etcd, Self::ApiServer, Self::Scheduler, Self::ControllerManager, Self::Kwok];

    /// Returns the name of its executable.
    pub fn file_name(self) -> &'static str {
        match self {
            Self::Etcd => "etcd",
            Self::ApiServer => "kube-apiserver",
            Self::Scheduler => "kube-scheduler",
            Self::ControllerManager => "kube-controller-manager",
            Self::Kwok => "kwok",
        }
    }
}

/// The folders searched for programs, best first.
#[derive(Clone, Debug)]
pub struct Assets {
    folders: Vec<PathBuf>,
}

impl Assets {
    /// Searches `KUBEBUILDER_ASSETS`, then `POOLWRIGHT_CONTROL_PLANE`, then the shared cache (`POOLWRIGHT_CACHE`, or
    /// `~/.cache/poolwright`). In the cache only a build of exactly our pins counts.
    pub fn from_env() -> Self {
        let named = ["KUBEBUILDER_ASSETS", "POOLWRIGHT_CONTROL_PLANE"];
        let mut folders: Vec<PathBuf> = named.iter().filter_map(env::var_os).map(PathBuf::from).collect();
        folders.extend(cached());
        Self { folders }
    }

    /// Returns the path of a program, or an error that names the folders searched and how to get the program.
    pub fn find(&self, program: Program) -> anyhow::Result<PathBuf> {
        let name = program.file_name();
        if let Some(path) = self.folders.iter().map(|folder| folder.join(name)).find(|path| path.is_file()) {
            return Ok(path);
        }
        let places: Vec<String> = self.folders.iter().map(|folder| folder.display().to_string()).collect();
        let looked = if places.is_empty() {
            "KUBEBUILDER_ASSETS and POOLWRIGHT_CONTROL_PLANE are unset, and the cache has no build of these pins"
                .to_owned()
        } else {
            format!("looked in {}", places.join(", "))
        };
        bail!(
            "the control plane program {name} was not found ({looked}): run `make control-plane`, which builds it once"
        )
    }
}

/// Returns the cached build of our pins for this machine, if one exists.
fn cached() -> Option<PathBuf> {
    let root = match env::var_os("POOLWRIGHT_CACHE") {
        Some(root) => PathBuf::from(root),
        None => PathBuf::from(env::var_os("HOME")?).join(".cache").join("poolwright"),
    };
    let mut folders: Vec<PathBuf> =
        fs::read_dir(root.join("control-plane")).ok()?.filter_map(|entry| Some(entry.ok()?.path())).collect();
    folders.sort();
    folders.into_iter().find(|folder| is_for_this_machine(folder) && has_our_pins(folder))
}

fn has_our_pins(folder: &Path) -> bool {
    PINS.iter().all(|(name, pinned)| fs::read(folder.join(name)).is_ok_and(|found| found == *pinned))
}

/// Checks the name of the folder, which the build makes as `<sums>-<os>-<arch>` with Go's names of both.
fn is_for_this_machine(folder: &Path) -> bool {
    let os = match env::consts::OS {
        "macos" => "darwin",
        other => other,
    };
    let arch = match env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    folder.file_name().is_some_and(|name| name.to_string_lossy().ends_with(&format!("-{os}-{arch}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_is_nowhere_is_named_with_the_next_step() {
        let assets = Assets { folders: vec![PathBuf::from("/nowhere")] };
        let message = assets.find(Program::Kwok).unwrap_err().to_string();
        assert!(message.contains("kwok") && message.contains("/nowhere"), "{message}");
        assert!(message.contains("make control-plane"), "{message}");
    }

    #[test]
    fn a_folder_of_other_pins_or_another_machine_is_not_ours() {
        assert!(!has_our_pins(Path::new("/nowhere")));
        assert!(!is_for_this_machine(Path::new("/cache/0123456789abcdef-plan9-mips")));
    }
}
