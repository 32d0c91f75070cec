//! From Karpenter: how a cloud converts the node class and the labels of Karpenter's provider for the same cloud, and the
//! words in which it says what became of each field.

mod fields;
mod metadata;
mod report;

use serde_json::Value;

pub use fields::{Fields, is_empty, join, text};
pub use metadata::{Metadata, convert_metadata, is_karpenters};
pub use report::{Note, Outcome, Problem, Report};

/// Converts what Karpenter's provider for this cloud has.
pub trait FromKarpenter: Sync {
    /// The API group of Karpenter's node class.
    fn group(&self) -> &'static str;

    /// The kind of Karpenter's node class, which is also the kind of ours.
    fn kind(&self) -> &'static str;

    /// Our node class for Karpenter's. What is wrong with it is in the report, and then the result means nothing.
    fn node_class(&self, object: &Value, report: &mut Report) -> Option<Value>;

    /// Our counterpart of a label that Karpenter's provider has; `None` where the label is not one of these.
    fn label(&self, key: &str) -> Option<Label>;
}

/// Our counterpart of a label of Karpenter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Label {
    /// This label, with the same values.
    Same(&'static str),
    /// vCPUs of the machine; ours counts whole allocatable cores.
    Cpu,
    /// The letters that a family's name begins with: `g` of `g5`.
    Category,
    /// The number in a family's name: `5` of `g5`.
    Generation,
    /// The part of an instance type behind the dot: `xlarge`.
    Size,
    /// The maker of the GPUs. Poolwright knows those of NVIDIA only.
    GpuManufacturer,
    /// None; the sentence says what to do instead.
    Nothing(&'static str),
    /// A label that the user made up.
    Own,
}
