//! Link options of the release binary.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let is = |name: &str, value: &str| std::env::var(name).is_ok_and(|found| found == value);
    let has_lld = is("CARGO_CFG_TARGET_OS", "linux")
        && is("CARGO_CFG_TARGET_ARCH", "x86_64")
        && is("CARGO_CFG_TARGET_ENV", "gnu");
    // Rust links with LLD for this target. It can merge functions with equal code, of which generated clients of clouds have many.
    if has_lld && is("PROFILE", "release") {
        println!("cargo::rustc-link-arg-bins=-Wl,--icf=all");
    }
}
