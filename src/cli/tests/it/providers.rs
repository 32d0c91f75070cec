//! Tests of `--provider` of `gpus` and `prices`, which selects as in `plan`.

use serde_json::Value;

use crate::support::poolwright;

/// Returns the document that a command prints.
fn list(args: &[&str]) -> Value {
    let output = poolwright(&[args, &["-o", "json"]].concat(), "");
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("a document")
}

fn providers(rows: &Value) -> Vec<&str> {
    let rows = rows.as_array().expect("rows").iter();
    let mut all: Vec<&str> = rows.map(|row| row["provider"].as_str().expect("a name")).collect();
    all.dedup();
    all
}

#[test]
fn a_provider_that_cannot_be_asked_is_selected_from_the_catalogue_and_that_is_said() {
    let prices = list(&["prices", "--provider", "gcp"]);
    assert_eq!(providers(&prices["offerings"]), ["gcp"]);
    let note = "Poolwright cannot ask gcp for its prices, so these are of the catalogue";
    assert!(prices["notes"].as_array().expect("notes").iter().any(|one| one == note), "{}", prices["notes"]);
    assert_eq!(providers(&list(&["gpus", "--provider", "gcp"])["types"]), ["gcp"]);
}

#[test]
fn a_catalogue_and_a_provider_together_ask_no_cloud() {
    let prices = list(&["prices", "--catalogue", "builtin", "--provider", "aws"]);
    assert_eq!(providers(&prices["offerings"]), ["aws"]);
}

#[test]
fn a_provider_that_the_catalogue_lacks_is_told_with_those_that_it_has_as_in_a_plan() {
    for command in ["prices", "gpus"] {
        let output = poolwright(&[command, "--provider", "azure"], "");
        assert_eq!(output.status.code(), Some(2), "{command}");
        assert_eq!(
            String::from_utf8_lossy(&output.stderr),
            "error: --provider azure: the catalogue has no offering of this provider; it has aws, gcp\n",
            "{command}"
        );
    }
}
