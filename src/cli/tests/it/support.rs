//! Runs the command in tests.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// Returns a path in the checkout.
pub fn path(relative: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(relative)
}

/// Runs `poolwright` in the root of the checkout with this standard input.
pub fn poolwright(args: &[&str], stdin: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_poolwright"))
        .args(args)
        .current_dir(path("."))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("poolwright starts");
    let mut input = child.stdin.take().expect("its standard input is a pipe");
    let stdin = stdin.to_owned();
    // A separate thread writes the input, because a command that fails early does not read it.
    let writer = std::thread::spawn(move || {
        let _ = input.write_all(stdin.as_bytes());
    });
    let output = child.wait_with_output().expect("poolwright ends");
    writer.join().expect("the writer does not panic");
    output
}

/// Plans with these arguments, and returns the plan as JSON.
pub fn plan(args: &[&str], stdin: &str) -> Value {
    let args: Vec<_> = ["plan", "-o", "json"].iter().chain(args).copied().collect();
    let output = poolwright(&args, stdin);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("a plan is JSON")
}

/// Converts dollars to whole micro-dollars.
pub fn micros(number: &Value) -> u64 {
    let dollars = number.as_f64().expect("money is a number");
    let micros = (dollars * 1e6).round();
    assert!(
        (micros / 1e6 - dollars).abs() < 1e-12 * dollars.max(1.0),
        "{dollars} has more than six decimals"
    );
    micros as u64
}

/// Returns the notes of a plan, one in each line.
pub fn notes(plan: &Value) -> String {
    let notes = plan["notes"].as_array().expect("notes");
    notes.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("\n")
}
