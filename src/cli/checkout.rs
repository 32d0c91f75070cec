//! The identity of a checkout. Checkouts share build folders, so a program there may be from another one than the tests that start it.

use std::path::Path;

/// Returns a number for the checkout of a crate whose folder is two levels below the root. It does not tell the path.
pub fn checkout(crate_folder: &str) -> String {
    let root = Path::new(crate_folder).ancestors().nth(2).unwrap_or(Path::new(crate_folder));
    // FNV-1a, as in tests/run.py.
    let add = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    let hash = root.as_os_str().as_encoded_bytes().iter().fold(0xcbf2_9ce4_8422_2325, add);
    format!("{hash:016x}")
}
