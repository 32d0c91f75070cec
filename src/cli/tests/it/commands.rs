//! Tests what users type and what they see: every case under `cmd/`, and every example of the documentation and of `examples/`.

/// Returns cases whose paths are relative to the root of the checkout, as a user would type them. For the commands, it is this day.
fn cases(today: &str) -> trycmd::TestCases {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    std::env::set_current_dir(root).expect("the root of the checkout");
    let cases = trycmd::TestCases::new();
    cases
        .default_bin_path(env!("CARGO_BIN_EXE_poolwright"))
        .register_bin("poolwright", std::path::Path::new(env!("CARGO_BIN_EXE_poolwright")))
        .env("POOLWRIGHT_TODAY", today)
        .env("COLUMNS", "")
        .env("LC_ALL", "C.UTF-8");
    cases
}

#[test]
fn commands_print_what_is_documented() {
    cases("2026-01-15").case("src/cli/tests/cmd/*.trycmd").case("docs/cli/*.md").run();
}

/// Bills and ages of prices are about days, so the examples have a day of their own: one after the last day of the ledger.
#[test]
fn worked_examples_print_what_their_pages_show() {
    cases("2026-11-30").case("examples/*/README.md").run();
}
