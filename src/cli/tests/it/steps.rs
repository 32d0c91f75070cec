//! Tests of plans that are chosen in steps.

use crate::support::plan;

#[test]
fn an_explanation_has_every_step_of_a_plan_whose_first_choice_has_a_limit() {
    let pool = |name: &str, model: &str, more: &str| {
        format!(
            "{{apiVersion: poolwright.dev/v1alpha1, kind: NodePool, metadata: {{name: {name}}}, spec: {{{more}template: {{spec: {{\
             nodeClassRef: {{group: poolwright.dev, kind: KwokNodeClass, name: k}}, requirements: [\
             {{key: poolwright.dev/gpu-model, operator: In, values: [{model}]}}]}}}}}}}}\n---\n"
        )
    };
    let pools = pool("a", "a10g", "weight: 10, limits: {nvidia.com/gpu: 1}, ") + &pool("b", "l4", "");
    let text = pools
        + "{apiVersion: poolwright.dev/v1alpha1, kind: KwokNodeClass, metadata: {name: k}, spec: {provider: aws}}\n---\n"
        + "{apiVersion: batch/v1, kind: Job, metadata: {name: j}, spec: {parallelism: 3, completions: 3, template: {spec: {\
           restartPolicy: Never, containers: [{image: x, name: c, resources: {requests: {cpu: 3}, limits: {nvidia.com/gpu: 1}}}]}}}}\n";
    let plan = plan(&["-f", "-", "--explain", "default/j-0"], &text);
    assert_eq!((plan["pods"]["placed"].as_u64(), plan["pods"]["unplaced"].as_u64()), (Some(3), Some(0)));
    let told = plan["explanation"]["text"].as_str().expect("a text");
    let (first, second) =
        told.split_once("step 2 of 2, for the 2 pods that step 1 left out").expect("two steps");
    assert!(first.contains("step 1 of 2") && first.contains("1 pod on a new a: "), "{told}");
    assert!(second.contains("b: g6.") && !second.contains("left out: limit"), "{told}");
}
