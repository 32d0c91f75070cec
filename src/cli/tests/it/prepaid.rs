//! What is paid for and may not be used, and the age of the prices that an answer uses.

use std::fs;

use crate::support::{notes, plan, poolwright};

const POD: &str = "apiVersion: v1
kind: Pod
metadata: {name: a}
spec: {containers: [{name: c, image: x, resources: {requests: {cpu: 2, memory: 8Gi}, limits: {nvidia.com/gpu: 1}}}]}
---
";

fn pool(requirements: &str) -> String {
    format!(
        "apiVersion: poolwright.dev/v1alpha1
kind: NodePool
metadata: {{name: gpu}}
spec:
  template:
    spec:
      nodeClassRef: {{group: poolwright.dev, kind: KwokNodeClass, name: any}}
      requirements: [{requirements}]
---
apiVersion: poolwright.dev/v1alpha1
kind: KwokNodeClass
metadata: {{name: any}}
spec: {{provider: aws}}
---
"
    )
}

fn capacity(types: &str) -> String {
    format!("{{key: poolwright.dev/capacity-type, operator: In, values: [{types}]}}")
}

/// Returns the notes of a plan for a pod and this pool with prepaid capacity.
fn told(test: &str, pool: &str, prepaid: &str) -> String {
    let file = std::env::temp_dir().join(format!("poolwright-prepaid-{test}-{}.yaml", std::process::id()));
    fs::write(&file, prepaid).expect("a temporary file");
    let name = file.to_str().expect("UTF-8");
    let plan = plan(&["-f", "-", "--commitments", name], &format!("{pool}{POD}"));
    fs::remove_file(&file).expect("it is ours");
    notes(&plan)
}

const RESERVED: &str =
    "reservations: [{name: block-7, instanceType: g5.xlarge, zone: us-east-1a, count: 3}]\n";

#[test]
fn a_reservation_that_no_pool_may_use_is_named_with_what_to_add() {
    let without = told("without", &pool(&capacity("on-demand, spot")), RESERVED);
    let said = "no pool may use the reservation block-7 (3 g5.xlarge in us-east-1a), which is paid for: in NodePool gpu, add \
                `reserved` to the values of poolwright.dev/capacity-type";
    assert!(without.contains(said), "{without}");
    for usable in [pool(&capacity("on-demand, reserved")), pool(""), String::new()] {
        let with = told("with", &usable, RESERVED);
        assert!(!with.contains("no pool may use"), "{with}");
    }
    let of_others = pool("{key: poolwright.dev/instance-family, operator: In, values: [g6]}");
    let others = told("others", &of_others, RESERVED);
    assert!(others.contains("add `g5` to the values of poolwright.dev/instance-family"), "{others}");
}

#[test]
fn a_commitment_for_nodes_that_no_pool_may_buy_is_named() {
    let savings =
        "commitments: [{name: savings, usdPerHour: 2, discountPercent: 40, covers: {families: [g5]}}]\n";
    let spot = told("spot", &pool(&capacity("spot")), savings);
    let said = "no pool may buy what the commitment savings pays for, so the plan does not use it: in NodePool gpu, add \
                `on-demand` to the values";
    assert!(spot.contains(said), "{spot}");
    let both = told("both", &pool(&capacity("spot, on-demand")), savings);
    assert!(!both.contains("no pool may buy"), "{both}");
}

#[test]
fn a_plan_tells_the_age_of_prices_that_its_pools_could_pay() {
    let only = format!(
        "{}, {{key: node.kubernetes.io/instance-type, operator: In, values: [g5.xlarge]}}",
        capacity("on-demand")
    );
    let on_demand = notes(&plan(&["-f", "-"], &format!("{}{POD}", pool(&only))));
    assert!(!on_demand.contains("the oldest price of what may be bought is of 2025-"), "{on_demand}");
    let any = notes(&plan(&["-f", "-"], &format!("{}{POD}", pool(""))));
    assert!(any.contains("the oldest price of what may be bought is of 2025-"), "{any}");
}

#[test]
fn a_list_of_prices_tells_the_age_of_those_that_it_has() {
    let listed = |flags: &[&str]| {
        let output = poolwright(&[&["prices"][..], flags].concat(), "");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let newer = listed(&["--type", "p5.4xlarge"]);
    assert!(newer.contains("oldest price of 2026-07-20") && !newer.contains("2025"), "{newer}");
    let none = listed(&["--type", "m6i.xlarge", "--capacity-type", "spot"]);
    assert!(none.contains("No instance type matches") && !none.contains("oldest price"), "{none}");
}
