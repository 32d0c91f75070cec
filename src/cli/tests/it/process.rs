//! Tests of the behaviour of the program as a process.

use crate::support;

#[cfg(unix)]
#[test]
fn as_a_kubectl_plugin_it_calls_itself_what_was_typed() {
    use std::os::unix::process::CommandExt;
    use std::process::Command;

    let mut command = Command::new(env!("CARGO_BIN_EXE_poolwright"));
    let output =
        command.arg0("/usr/local/bin/kubectl-poolwright").args(["plan", "--nope"]).output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("Usage: kubectl poolwright plan"), "{said}");
    assert_eq!(output.status.code(), Some(2));
}

#[cfg(unix)]
#[test]
fn a_reader_that_goes_away_is_no_failure() {
    use std::process::{Command, Stdio};

    // Writes more than a pipe holds to a reader that closes it at once.
    let script = "\"$0\" crds && \"$0\" crds && \"$0\" crds";
    let mut child = Command::new("sh")
        .args(["-c", script, env!("CARGO_BIN_EXE_poolwright")])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("sh starts");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert!(output.status.success());
}

#[test]
fn the_program_is_of_the_checkout_of_its_tests_and_tells_its_commit() {
    let output = support::poolwright(&["version", "-o", "json"], "");
    let version: serde_json::Value = serde_json::from_slice(&output.stdout).expect("a version is JSON");
    let told = "another checkout shares this build folder: build again, or set CARGO_TARGET_DIR";
    assert_eq!(version["checkout"].as_str(), option_env!("POOLWRIGHT_CHECKOUT"), "{told}");
    let commit = version["commit"].as_str().expect("a commit");
    let is_hash = commit.len() >= 40 && commit.bytes().all(|byte| byte.is_ascii_hexdigit());
    assert!(is_hash || commit == "unknown", "{commit}");
}

#[test]
fn every_shell_gets_a_completion_script() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let output = support::poolwright(&["completions", shell], "");
        assert!(output.status.success());
        assert!(String::from_utf8_lossy(&output.stdout).contains("fail-on-unplaced"), "{shell}");
    }
}

#[test]
fn tables_are_as_wide_as_columns_says_and_names_stay_whole() {
    let args = ["plan", "-f", "fixtures/manifests/zones.yaml"];
    let printed = |columns: &str| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_poolwright"));
        let output = command.args(args).current_dir(support::path(".")).env("COLUMNS", columns).output();
        String::from_utf8_lossy(&output.expect("it runs").stdout).into_owned()
    };
    let notes = |text: &str| text.split_once("Notes:\n").expect("it has notes").1.to_owned();
    let (narrow, broad) = (notes(&printed("50")), notes(&printed("400")));
    assert!(narrow.lines().all(|line| line.chars().count() <= 50), "{narrow}");
    assert!(broad.lines().count() < narrow.lines().count(), "{broad}");
    assert_eq!(narrow.split_whitespace().collect::<Vec<_>>(), broad.split_whitespace().collect::<Vec<_>>());
    assert!(printed("10").contains("INSTANCE TYPE"), "a table of names is not squeezed");
}

#[test]
fn every_command_gets_a_man_page_with_its_flags_and_examples() {
    let directory = std::env::temp_dir().join(format!("poolwright-man-{}", std::process::id()));
    let output = support::poolwright(&["man", "--dir", directory.to_str().expect("a path")], "");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    let read = |name: &str| {
        std::fs::read_to_string(directory.join(name)).unwrap_or_else(|why| panic!("{name}: {why}"))
    };
    let mut pages = vec!["poolwright.1".to_owned()];
    pages.extend(crate::pages::commands().iter().map(|words| format!("poolwright-{}.1", words.join("-"))));
    for page in &pages {
        assert!(read(page).contains(".SH NAME") && printed.contains(page.as_str()), "{page}");
    }
    assert_eq!(printed.lines().count(), pages.len(), "a page without a command: {printed}");
    let plan = read("poolwright-plan.1");
    for part in
        ["\\-\\-fail\\-on\\-unplaced", ".SH \"EXAMPLES AND EXIT CODES\"", "poolwright plan \\-f pool.yaml"]
    {
        assert!(plan.contains(part), "{part}: {plan}");
    }
    std::fs::remove_dir_all(&directory).expect("it is ours");
}

#[test]
fn developers_find_their_old_commands_and_users_do_not_see_them() {
    let help = |args: &[&str]| {
        let output = support::poolwright(args, "");
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    assert!(help(&["solve", "--help"]).contains("--work-limit"));
    assert!(help(&["simulate", "fuzz", "--help"]).contains("--seeds"));
    for visible in [help(&["--help"]), help(&["simulate", "--help"]), help(&["plan", "--help"])] {
        for old in ["solve a", "  solve ", "  fuzz ", "--work-limit", "--save-problem"] {
            assert!(!visible.contains(old), "{old}: {visible}");
        }
    }
    assert!(help(&["debug", "--help"]).contains("--save-problem"));
}

#[test]
fn the_custom_resources_are_written_as_the_files_in_the_repository() {
    let directory = std::env::temp_dir().join(format!("poolwright-crds-{}", std::process::id()));
    let output = support::poolwright(&["crds", "--dir", directory.to_str().expect("a path")], "");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut written = 0;
    for entry in std::fs::read_dir(&directory).expect("the directory was made") {
        let file = entry.expect("a file");
        let kept = support::path("crds").join(file.file_name());
        let read = |path: std::path::PathBuf| std::fs::read_to_string(path).expect("a manifest");
        assert_eq!(read(file.path()), read(kept));
        written += 1;
    }
    std::fs::remove_dir_all(&directory).expect("it is ours");
    let kept = std::fs::read_dir(support::path("crds")).expect("the repository has them").count();
    assert_eq!(written, kept);
}

#[test]
fn a_controller_does_not_start_with_a_wrong_file_of_commitments() {
    let text =
        "commitments:\n- {name: a, usdPerHour: 1}\nreservations:\n- {instanceType: g5.xlarge, count: 1}\n";
    let file = std::env::temp_dir().join(format!("poolwright-wrong-{}.yaml", std::process::id()));
    std::fs::write(&file, text).expect("a file");
    let name = file.to_str().expect("a path");
    let started = |path: &str| {
        let output = support::poolwright(&["controller", "--commitments", path], "");
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let said = started(name);
    std::fs::remove_file(&file).expect("it is ours");
    for part in [
        &format!("{name}: commitments[0] (a): does not say how much a node uses of it; give discountPercent"),
        &format!("{name}: reservations[0]: the controller reads reservations from node classes"),
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(started(name).contains("there is no such file"), "it is gone");
    assert!(started("-").contains("pass the path of a file"));
}

#[test]
fn help_as_a_word_prints_the_help_of_the_command_after_it() {
    for (words, flags) in [
        (&["help"][..], &["--help"][..]),
        (&["help", "plan"], &["plan", "--help"]),
        (&["help", "debug", "solve"], &["debug", "solve", "--help"]),
    ] {
        let (by_word, by_flag) = (support::poolwright(words, ""), support::poolwright(flags, ""));
        assert!(by_word.status.success(), "{words:?}");
        assert_eq!(String::from_utf8_lossy(&by_word.stdout), String::from_utf8_lossy(&by_flag.stdout));
    }
    assert_eq!(support::poolwright(&["help", "nosuch"], "").status.code(), Some(2));
}

#[test]
fn empty_input_is_an_error_from_a_file_as_from_a_pipe() {
    let empty = "src/cli/tests/bad/empty.yaml";
    for command in [&["plan"][..], &["explain", "pod", "web"], &["convert"]] {
        for (file, name, text) in
            [("-", "stdin", ""), ("-", "stdin", "# nothing\n---\n# still\n"), (empty, empty, "")]
        {
            let output = support::poolwright(&[command, &["-f", file]].concat(), text);
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(output.status.code(), Some(2), "{command:?} {file}: {said}");
            assert!(said.starts_with(&format!("error: {name}: ")), "{command:?}: {said}");
            assert!(said.contains("check the command that writes them"), "{command:?}: {said}");
        }
    }
}
