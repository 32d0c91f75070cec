//! Tests that names and values of others begin no line of the output and reach the terminal without control characters.

use poolwright_terms::foreign::is_hidden;
use serde_json::{Value, json};

use crate::support::poolwright;

/// What somebody writes into a manifest.
const FORGED: &str = "x\n  FORGED \u{1b}[2J\u{9b}\u{202e}\u{2066}\u{200b}\u{2028}";
/// How its beginning is printed.
const SHOWN: &str = r"x\n  FORGED ";

/// Objects with the forged text in one place each.
fn forged() -> Vec<Value> {
    let mut objects: Vec<Value> = Vec::new();
    for place in 0..14 {
        let mut pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": format!("p{place}")},
            "spec": {"containers": [{"name": "c", "image": "x", "resources": {"requests": {"cpu": "1"}}}]}});
        match place {
            0 => pod["metadata"]["name"] = FORGED.into(),
            1 => pod["metadata"]["namespace"] = FORGED.into(),
            2 => pod["metadata"]["labels"] = json!({"app": FORGED}),
            3 => pod["metadata"]["labels"] = json!({FORGED: "a"}),
            4 => pod["metadata"]["annotations"] = json!({FORGED: FORGED}),
            5 => pod["spec"]["nodeSelector"] = json!({"zone": FORGED}),
            6 => pod["spec"]["nodeSelector"] = json!({FORGED: "a"}),
            7 => pod["spec"][FORGED] = json!(1),
            8 => pod["spec"]["tolerations"] = json!([{"key": FORGED, "value": FORGED, "effect": FORGED}]),
            9 => pod["spec"]["priorityClassName"] = FORGED.into(),
            10 => pod["spec"]["containers"][0]["resources"]["requests"] = json!({FORGED: "1"}),
            11 => pod["spec"]["containers"][0]["resources"]["requests"] = json!({"cpu": FORGED}),
            12 => pod["apiVersion"] = FORGED.into(),
            _ => pod["kind"] = FORGED.into(),
        }
        objects.push(pod);
    }
    objects.push(json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "spec": {"taints":
        [{"key": FORGED, "value": FORGED, "effect": "NoSchedule"}]}, "status": {"allocatable": {"cpu": "4"}}}));
    objects
}

/// Runs a plan. Returns its exit code and all that it prints, after checking every line of it.
fn checked(args: &[&str], objects: &[Value]) -> (Option<i32>, String) {
    let input = objects.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
    let output = poolwright(&[&["plan"][..], args].concat(), &input);
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8(said).expect("UTF-8");
    for line in said.split('\n') {
        assert!(!line.trim_start().starts_with("FORGED"), "{line:?} in {said}");
        assert!(!line.contains(is_hidden), "{line:?}");
    }
    (output.status.code(), said)
}

#[test]
fn a_forged_text_in_a_written_object_stays_in_the_line_of_its_problem() {
    let (code, said) = checked(&["-f", "-"], &forged());
    assert_eq!(code, Some(2), "{said}");
    for told in
        ["an API server refuses the name `", "an API server refuses the key `", "an API server refuses `"]
    {
        assert!(said.contains(&format!("{told}{SHOWN}")), "{told}: {said}");
    }
}

#[test]
fn a_forged_text_in_an_object_that_claims_to_be_stored_stays_in_the_line_of_its_note() {
    let mut objects = forged();
    for (at, object) in objects.iter_mut().enumerate() {
        object["metadata"]["uid"] = format!("uid-{at}").into();
    }
    let (_, said) = checked(&["-f", "-", "-o", "wide"], &objects);
    let left_out = format!("Pod default/{SHOWN}");
    assert!(said.contains(&left_out) && said.contains("no API server stores a name"), "{said}");
}

#[test]
fn a_forged_name_of_a_file_stays_in_the_line_of_its_problem() {
    let (code, said) = checked(&["-f", FORGED], &[]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains(&format!("\n  {SHOWN}")) && said.contains("there is no such file"), "{said}");
}
