//! The metrics of nodes by the names that OpenCost gives them, so that its dashboards show Poolwright's nodes.
//!
//! Only these have a label for nodes. They have none for pods or namespaces, and there are none beyond [`MOST_NODES`].

use prometheus::{GaugeVec, Registry};

use super::metrics::gauges;

/// The most nodes that are shown one by one. Of a larger cluster, none is.
pub const MOST_NODES: usize = 1_000;

/// The labels: the type, the name, and the cloud's id.
const LABELS: [&str; 3] = ["instance_type", "node", "provider_id"];

/// A node with a known price.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PricedNode<'a> {
    /// Its instance type.
    pub instance_type: &'a str,
    /// Its name.
    pub node: &'a str,
    /// The cloud's id of its instance.
    pub provider_id: &'a str,
    /// Its price in US dollars per hour.
    pub usd_per_hour: f64,
    /// Its whole GPUs.
    pub gpus: u32,
    /// Its vCPUs.
    pub cpus: f64,
    /// Its memory in GiB.
    pub memory_gib: f64,
    /// Whether it is a spot node.
    pub is_spot: bool,
}

/// The gauges.
#[derive(Clone, Debug)]
pub struct OpenCost {
    total: GaugeVec,
    gpu: GaugeVec,
    cpu: GaugeVec,
    ram: GaugeVec,
    gpus: GaugeVec,
    spot: GaugeVec,
}

impl OpenCost {
    /// Creates the gauges in a registry.
    pub fn new(r: &Registry) -> prometheus::Result<Self> {
        Ok(Self {
            total: gauges(r, "node_total_hourly_cost", "Price of the node per hour.", &LABELS)?,
            gpu: gauges(r, "node_gpu_hourly_cost", "Price of one GPU of the node per hour.", &LABELS)?,
            cpu: gauges(r, "node_cpu_hourly_cost", "Price of one vCPU of the node per hour.", &LABELS)?,
            ram: gauges(
                r,
                "node_ram_hourly_cost",
                "Price of one GiB of memory of the node per hour.",
                &LABELS,
            )?,
            gpus: gauges(r, "node_gpu_count", "Whole GPUs of the node.", &LABELS)?,
            spot: gauges(r, "kubecost_node_is_spot", "1 if the node is a spot node.", &LABELS)?,
        })
    }

    /// Shows these nodes and no others.
    ///
    /// The parts of a node add up to its price. As in the report's method `weights`, GPUs are 95 % of it, CPU 3 % and memory 2 %; of a
    /// node without GPUs, CPU is 60 % and memory 40 %.
    pub fn show(&self, nodes: &[PricedNode<'_>]) {
        for one in [&self.total, &self.gpu, &self.cpu, &self.ram, &self.gpus, &self.spot] {
            one.reset();
        }
        for node in nodes.iter().filter(|_| nodes.len() <= MOST_NODES) {
            let labels = [node.instance_type, node.node, node.provider_id];
            let set = |gauge: &GaugeVec, value: f64| gauge.with_label_values(&labels).set(value);
            let [gpu, cpu, ram] = if node.gpus > 0 { [0.95, 0.03, 0.02] } else { [0.0, 0.6, 0.4] };
            let each = |part: f64, of: f64| if of > 0.0 { node.usd_per_hour * part / of } else { 0.0 };
            set(&self.total, node.usd_per_hour);
            set(&self.gpu, each(gpu, node.gpus.into()));
            set(&self.cpu, each(cpu, node.cpus));
            set(&self.ram, each(ram, node.memory_gib));
            set(&self.gpus, node.gpus.into());
            set(&self.spot, f64::from(u8::from(node.is_spot)));
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use prometheus::{Encoder, TextEncoder};

    use super::*;

    /// A node with four GPUs.
    pub const NODE: PricedNode<'static> = PricedNode {
        instance_type: "g5.12xlarge",
        node: "node-a",
        provider_id: "cloud://i-1",
        usd_per_hour: 4.0,
        gpus: 4,
        cpus: 8.0,
        memory_gib: 64.0,
        is_spot: true,
    };

    fn text(nodes: &[PricedNode<'_>]) -> String {
        let registry = Registry::new();
        let open_cost = OpenCost::new(&registry).unwrap();
        open_cost.show(&[PricedNode { node: "gone", ..NODE }]);
        open_cost.show(nodes);
        let mut text = Vec::new();
        TextEncoder::new().encode(&registry.gather(), &mut text).unwrap();
        String::from_utf8(text).unwrap()
    }

    fn value(text: &str, name: &str) -> f64 {
        let line = text.lines().find(|line| line.starts_with(&format!("{name}{{"))).expect(name);
        line.rsplit(' ').next().unwrap().parse().unwrap()
    }

    #[test]
    fn the_parts_of_a_node_add_up_to_its_price() {
        for node in [NODE, PricedNode { gpus: 0, ..NODE }] {
            let text = text(&[node]);
            assert!(!text.contains("gone"), "{text}");
            let sum = value(&text, "node_gpu_hourly_cost") * f64::from(node.gpus)
                + value(&text, "node_cpu_hourly_cost") * node.cpus
                + value(&text, "node_ram_hourly_cost") * node.memory_gib;
            assert!((sum - value(&text, "node_total_hourly_cost")).abs() < 1e-9, "{text}");
            assert!((sum - 4.0).abs() < 1e-9, "{text}");
        }
    }

    #[test]
    fn a_cluster_with_too_many_nodes_shows_none_of_them() {
        assert!(text(&vec![NODE; MOST_NODES + 1]).is_empty());
    }
}
