//! Writes a file whole or not at all, for the eyes of its owner.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

/// Writes a file with these bytes, which only its owner may read. If that fails, the file that was there stays as it was.
pub fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if fs::metadata(path).is_ok_and(|there| !there.is_file()) {
        return Err(io::Error::other("something else than a file has this name"));
    }
    let name = path.file_name().ok_or_else(|| io::Error::other("it does not end in the name of a file"))?;
    let next = path.with_file_name(format!(".{}.{}", name.to_string_lossy(), std::process::id()));
    let written = fill(&next, bytes).and_then(|()| fs::rename(&next, path));
    if written.is_err() {
        // It may not be there at all.
        let _ = fs::remove_file(&next);
    }
    written
}

fn fill(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = private(path)?;
    file.write_all(bytes)?;
    // A name must not stand for bytes that are lost with the power.
    file.sync_all()
}

fn private(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_whole_and_private_or_stays_as_it_was() {
        let folder = std::env::temp_dir().join(format!("poolwright-whole-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        let file = folder.join("cluster.json");
        fs::write(&file, "old").expect("a file");
        write(&file, b"new").expect("it can be replaced");
        assert_eq!(fs::read_to_string(&file).expect("a file"), "new");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = fs::metadata(&file).expect("a file").permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
        let taken = folder.join("folder");
        fs::create_dir_all(taken.join("inside")).expect("a folder");
        write(&taken, b"new").expect_err("a folder is there");
        let left = fs::read_dir(&folder).expect("a folder").count();
        fs::remove_dir_all(&folder).expect("the folder is there");
        assert_eq!(left, 2, "nothing half written is left");
    }
}
