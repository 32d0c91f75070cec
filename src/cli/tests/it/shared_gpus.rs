//! Plans for buffers and static pools where GPUs may be shared or cut: what they get, and what the notes say.

use serde_json::Value;

use crate::support::plan;

/// Returns a pool that buys types with one A100, and has this label on its template and this field in its spec.
fn pool(label: &str, field: &str) -> String {
    format!(
        r"
apiVersion: poolwright.dev/v1alpha1
kind: KwokNodeClass
metadata: {{name: any}}
spec: {{provider: gcp}}
---
apiVersion: poolwright.dev/v1alpha1
kind: NodePool
metadata: {{name: warm}}
spec:
  {field}
  template:
    metadata: {{labels: {{{label}}}}}
    spec:
      nodeClassRef: {{group: poolwright.dev, kind: KwokNodeClass, name: any}}
      requirements:
      - {{key: poolwright.dev/capacity-type, operator: In, values: [on-demand]}}
      - {{key: poolwright.dev/gpu-model, operator: In, values: [a100]}}
"
    )
}

const UNITS: &str = "buffer: [{units: 3, requests: {nvidia.com/gpu: 1, cpu: 1}}]";
const INSTANCES: &str = "buffer: [{units: 3, requests: {nvidia.com/mig-1g.5gb: 1, cpu: 1}}]";
const REPLICAS: &str = "replicas: 2";
const CUT: &str = "nvidia.com/mig.config: all-1g.5gb";

/// Returns the number of bought nodes, and the notes about the pool and the flag.
fn planned(label: &str, field: &str, flags: &[&str]) -> (usize, String) {
    let plan = plan(&[&["-f", "-"][..], flags].concat(), &pool(label, field));
    let notes = plan["notes"].as_array().expect("notes").iter().filter_map(Value::as_str);
    let notes: Vec<&str> = notes.filter(|note| note.contains("warm") || note.contains("--sharing")).collect();
    (plan["nodes"].as_array().expect("nodes").len(), notes.join("\n"))
}

#[test]
fn units_of_a_buffer_and_replicas_get_whole_gpus_unless_they_ask_for_instances_that_may_be_cut() {
    for sharing in ["time-slicing", "mps", "mig"] {
        let (nodes, said) = planned("", UNITS, &["--sharing", sharing]);
        assert_eq!(nodes, 3, "{sharing}");
        assert!(
            said.contains(&format!("--sharing {sharing}: nothing here asks for a part of a GPU")),
            "{said}"
        );
        let (nodes, said) = planned("", REPLICAS, &["--sharing", sharing]);
        assert_eq!(nodes, 2, "{sharing}");
        assert!(
            said.contains("pool warm: --sharing does not count for the nodes of a static pool"),
            "{said}"
        );
    }
    assert_eq!(planned("", UNITS, &[]), (3, String::new()));
    assert_eq!(planned("", INSTANCES, &["--sharing", "mig"]), (1, String::new()));
    for flags in [&[][..], &["--sharing", "mps"][..]] {
        let (nodes, said) = planned("", INSTANCES, flags);
        assert_eq!(nodes, 0);
        assert!(
            said.contains(
                "pool warm: spec.buffer[0]: no room is kept for 3 units: needs 1 nvidia.com/mig-1g.5gb"
            ),
            "{said}"
        );
    }
}

#[test]
fn a_label_that_cuts_or_may_share_gpus_is_told() {
    for (field, flags) in [(UNITS, &[][..]), (REPLICAS, &[][..]), (REPLICAS, &["--sharing", "mig"][..])] {
        let (nodes, said) = planned(CUT, field, flags);
        assert_eq!(nodes, 0, "{field}");
        assert!(
            said.contains("pool warm: GpusCut: its template has the label `nvidia.com/mig.config"),
            "{said}"
        );
    }
    let (nodes, said) = planned(CUT, INSTANCES, &["--sharing", "mig"]);
    assert_eq!(nodes, 1);
    assert!(said.contains("--sharing mig chooses the instances itself, whatever the label"), "{said}");
    for field in [UNITS, REPLICAS] {
        let (nodes, said) = planned("nvidia.com/device-plugin.config: sliced", field, &[]);
        assert!(nodes > 0);
        assert!(said.contains("if this configuration shares or cuts GPUs, new nodes stay closed"), "{said}");
    }
}

#[test]
fn a_limit_that_leaves_units_or_replicas_out_is_told() {
    let limited = |field: &str| format!("limits: {{nvidia.com/gpu: 1}}\n  {field}");
    let (nodes, said) = planned("", &limited(UNITS), &[]);
    assert_eq!(nodes, 1);
    let by_limit = "pool warm: spec.buffer[0]: no room is kept for 2 units: limit nvidia.com/gpu = 1 of pool `warm` is reached";
    assert!(said.contains(by_limit), "{said}");
    let (nodes, said) = planned("", &limited(REPLICAS), &[]);
    assert_eq!(nodes, 1);
    assert!(
        said.contains("pool warm: limit nvidia.com/gpu = 1 of pool `warm` allows no more of its replicas"),
        "{said}"
    );
}
