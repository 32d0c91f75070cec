//! `poolwright crds`.

use std::fs;
use std::io::Write;

use anyhow::Context;

use crate::args::CrdsFlags;
use crate::clouds;
use crate::exit::{ExitStatus, Failure};

/// Prints the custom resource definitions, or writes them to files.
pub fn run(flags: &CrdsFlags, out: &mut impl Write) -> Result<ExitStatus, Failure> {
    let files: Vec<_> = clouds::crds()
        .iter()
        .map(|crd| (format!("{}.yaml", crd.spec.names.plural), poolwright_api::render(crd)))
        .collect();
    let Some(dir) = &flags.dir else {
        let documents: Vec<_> = files.into_iter().map(|(_, text)| text).collect();
        out.write_all(documents.join("---\n").as_bytes()).map_err(Failure::writing)?;
        return Ok(ExitStatus::Done);
    };
    fs::create_dir_all(dir).with_context(|| format!("cannot create {}", dir.display()))?;
    for (name, text) in files {
        let path = dir.join(name);
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
        writeln!(out, "{}", path.display()).map_err(Failure::writing)?;
    }
    Ok(ExitStatus::Done)
}
