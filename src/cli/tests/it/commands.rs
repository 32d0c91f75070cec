//! Tests what users type and what they see: every case under `cmd/`, and every example of the documentation.

/// The paths in the cases are relative to the root of the checkout, as a user would type them.
#[test]
fn commands_print_what_is_documented() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    std::env::set_current_dir(root).expect("the root of the checkout");
    trycmd::TestCases::new()
        .default_bin_path(env!("CARGO_BIN_EXE_poolwright"))
        .register_bin("poolwright", std::path::Path::new(env!("CARGO_BIN_EXE_poolwright")))
        .env("POOLWRIGHT_TODAY", "2026-01-15")
        .env("COLUMNS", "")
        .env("LC_ALL", "C.UTF-8")
        .case("src/cli/tests/cmd/*.trycmd")
        .case("docs/cli/*.md")
        .run();
}
