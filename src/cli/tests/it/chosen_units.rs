//! Plans for buffers with `units: auto`: without history they buy nothing, and say why.

use crate::support::{notes, plan, poolwright};

fn pool(buffer: &str) -> String {
    format!(
        r"
apiVersion: poolwright.dev/v1alpha1
kind: KwokNodeClass
metadata: {{name: any}}
spec: {{provider: aws}}
---
apiVersion: poolwright.dev/v1alpha1
kind: NodePool
metadata: {{name: warm}}
spec:
  buffer: [{buffer}]
  template: {{spec: {{nodeClassRef: {{group: poolwright.dev, kind: KwokNodeClass, name: any}}}}}}
"
    )
}

#[test]
fn a_plan_from_files_keeps_no_unit_and_says_that_nothing_is_known() {
    let plan = plan(&["-f", "-"], &pool("{units: auto, requests: {nvidia.com/gpu: 1, cpu: 1}}"));
    assert_eq!(plan["nodes"].as_array().expect("nodes").len(), 0);
    let said = notes(&plan);
    let wanted = "pool warm: spec.buffer[0]: auto keeps 0 units, because nothing is known yet about how often pods of this size come";
    assert!(said.contains(wanted), "{said}");
    let explained = poolwright(
        &["explain", "pool", "warm", "-f", "-"],
        &pool("{units: auto, maxUnits: 2, requests: {nvidia.com/gpu: 1}}"),
    );
    let said = String::from_utf8_lossy(&explained.stdout);
    assert!(
        said.contains("Poolwright chooses how much room it keeps: spec.buffer[0]: auto keeps 0 units"),
        "{said}"
    );
}

#[test]
fn units_that_are_no_number_and_not_auto_are_refused_once() {
    for (buffer, why) in [
        ("{units: many, requests: {cpu: 1}}", "spec.buffer[0].units: `many` is neither a number nor `auto`"),
        (
            "{units: auto, maxUnits: 21, requests: {cpu: 1}}",
            "spec.buffer[0].maxUnits: 21 is greater than the maximum of 20",
        ),
        (
            "{units: 3, maxUnits: 4, requests: {cpu: 1}}",
            "maxUnits is the most that auto keeps; write auto for units, or remove maxUnits",
        ),
    ] {
        let output = poolwright(&["plan", "-f", "-"], &pool(buffer));
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{buffer}: {said}");
        assert_eq!(said.matches(why).count(), 1, "{said}");
    }
}
