//! Tests of the files under `examples/`, which users copy: they are YAML, and the command knows what they type.

use std::fs;

use clap::Parser;
use poolwright_cli::args::{Cli, Command, WhatIfFlags, WhatIfFormat};
use serde_json::{Value, json};

use crate::support::path;

fn workflow(name: &str) -> (String, Value) {
    let text = fs::read_to_string(path("examples/what-if").join(name)).expect("the example");
    let value = serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
    (text, value)
}

/// Returns every text in a document.
fn texts(value: &Value) -> Vec<&str> {
    match value {
        Value::String(text) => vec![text],
        Value::Array(all) => all.iter().flat_map(texts).collect(),
        Value::Object(fields) => fields.values().flat_map(texts).collect(),
        _ => Vec::new(),
    }
}

/// Returns the command lines of `poolwright` in the scripts and in the comments of a workflow, without what the shell adds.
fn typed(text: &str, document: &Value) -> Vec<String> {
    let scripts = texts(document).into_iter().flat_map(str::lines).map(str::trim);
    let comments = text.lines().filter(|line| line.starts_with('#')).flat_map(|line| line.split('`'));
    let typed = scripts.chain(comments).filter(|line| line.starts_with("poolwright "));
    typed.map(|line| line.split(['>', '|', ';']).next().unwrap_or_default().trim().to_owned()).collect()
}

/// Returns the flags of the only `what-if` that a workflow runs. Everything that it types is known.
fn what_if(text: &str, document: &Value) -> Box<WhatIfFlags> {
    let mut found = Vec::new();
    for line in typed(text, document) {
        let cli = Cli::try_parse_from(line.split(' ')).unwrap_or_else(|error| panic!("{line}: {error}"));
        if let Command::WhatIf(flags) = cli.command {
            found.push(flags);
        }
    }
    assert_eq!(found.len(), 1, "{text}");
    found.remove(0)
}

#[test]
fn the_workflows_compare_a_snapshot_with_manifests_and_fail_above_a_limit() {
    for name in ["github.yml", "gitlab.yml"] {
        let (text, document) = workflow(name);
        assert!(typed(&text, &document).len() > 1, "{name}: a comment says how the snapshot is made");
        let flags = what_if(&text, &document);
        assert!(flags.cluster.snapshot.is_some() && !flags.filename.is_empty(), "{name}");
        assert_eq!(flags.output, WhatIfFormat::Markdown, "{name}");
        assert!(!flags.fail_above.is_empty(), "{name}");
        assert!(text.contains("POOLWRIGHT_SHA256"), "{name}: the binary is checked");
    }
}

#[test]
fn the_workflow_for_github_has_few_rights_and_names_actions_by_commit() {
    let (text, document) = workflow("github.yml");
    assert_eq!(document["permissions"], json!({"contents": "read", "pull-requests": "write"}));
    let steps = document["jobs"]["what-if"]["steps"].as_array().expect("steps");
    let actions: Vec<&str> = steps.iter().filter_map(|step| step["uses"].as_str()).collect();
    assert!(!actions.is_empty(), "it checks the repository out");
    for action in actions {
        let (_, commit) = action.split_once('@').expect("a commit");
        assert!(commit.len() == 40 && commit.bytes().all(|byte| byte.is_ascii_hexdigit()), "{action}");
    }
    // What a pull request says is never a part of a script, where the shell would obey it.
    let mut scripts = steps.iter().filter_map(|step| step["run"].as_str());
    assert!(!scripts.any(|script| script.contains("${{")), "{text}");
}
