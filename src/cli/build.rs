//! Link options of the release binary.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
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
}
