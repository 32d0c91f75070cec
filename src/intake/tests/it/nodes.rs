//! Tests of the conversion of nodes.

use serde_json::json;

#[test]
fn a_condition_of_a_node_keeps_its_reason_and_message_for_people() {
    let conditions = json!([
        {"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown", "message": "Kubelet stopped posting node status."},
        {"type": "GpuHealthy", "status": "False", "message": "fell off the bus"},
        {"type": "Bare", "status": "True", "reason": ""},
        {"type": "DiskPressure", "status": "False", "reason": "KubeletHasNoDiskPressure"},
    ]);
    let node = json!({"metadata": {"name": "n"}, "status": {"conditions": conditions}});
    let node = poolwright_intake::node(&serde_json::from_value(node).unwrap()).unwrap();
    let causes: Vec<&str> = node.unhealthy_conditions.iter().map(|one| one.cause.as_str()).collect();
    assert_eq!(causes, ["NodeStatusUnknown: Kubelet stopped posting node status.", "fell off the bus", ""]);
}
