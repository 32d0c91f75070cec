//! The conversion of Karpenter's manifests. A cloud converts the node class and the labels of Karpenter's provider for the same
//! cloud, and reports what happened to each field.

mod fields;
mod metadata;
mod places;
mod report;

use poolwright_catalog::InstanceType;
use serde_json::Value;

pub use fields::{Fields, below, is_empty, join, plain, text};
pub use metadata::{Metadata, convert_object};
pub use places::Places;
pub use report::{Note, Outcome, Problem, Report};

/// Converts the node class and the labels of Karpenter's provider for one cloud.
pub trait FromKarpenter: Sync {
    /// Returns the API group of Karpenter's node class.
    fn group(&self) -> &'static str;

    /// Returns the kind of the node class, which is the same in Karpenter and Poolwright.
    fn kind(&self) -> &'static str;

    /// Returns the managed service of this cloud that runs Karpenter with a node class of its own; `None` if there is none.
    fn managed(&self) -> Option<Managed> {
        None
    }

    /// Converts a node class of Karpenter. Problems are in the report; if there are any, the result only serves to find more of
    /// them.
    fn node_class(&self, object: &Value, report: &mut Report) -> Option<Value>;

    /// Returns Poolwright's counterpart of a label of Karpenter's provider; `None` if the provider does not define the label.
    fn label(&self, key: &str) -> Option<LabelMapping>;

    /// Returns the names, without the domain, of the labels that the provider defines. Misspelt ones are compared with them.
    fn label_names(&self) -> &'static [&'static str] {
        &[]
    }

    /// Returns the value that nodes of an instance type have for a label that is [`LabelMapping::OfType`]; `None` if they lack it.
    fn value_of(&self, _key: &str, _kind: &InstanceType) -> Option<String> {
        None
    }
}

/// A managed service that runs Karpenter with a node class of its own. Poolwright does not convert that node class.
#[derive(Clone, Copy)]
pub struct Managed {
    /// The name of the service.
    pub name: &'static str,
    /// The API group of its node class.
    pub group: &'static str,
    /// The kind of its node class.
    pub kind: &'static str,
    /// The plural name of this resource.
    pub plural: &'static str,
    /// Says what else the cluster needs for nodes of a node class of Poolwright's, as sentences.
    pub also: &'static str,
    /// Says what to do about a field of its node class.
    pub field: fn(&str) -> &'static str,
}

/// Poolwright's counterpart of a Karpenter label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LabelMapping {
    /// A label with the same values.
    Renamed(&'static str),
    /// The vCPUs of the instance type. Poolwright's label counts whole allocatable cores.
    Cpu,
    /// The letters at the start of the family name: `g` in `g5`.
    Category,
    /// The number in the family name: `5` in `g5`.
    Generation,
    /// The part of the instance type after the dot: `xlarge`.
    Size,
    /// Another fact about the instance type. [`FromKarpenter::value_of`] knows it for the types of the built-in catalogue. The label is
    /// the one by which Poolwright lists the types with a value: by name, or by family if the types of a family never differ in it.
    OfType(&'static str),
    /// The manufacturer of the GPUs. Poolwright supports NVIDIA only.
    GpuManufacturer,
    /// All nodes that Karpenter buys have the label with this value, and Poolwright's nodes do not have it. A requirement that the
    /// value meets is not needed; any other one excludes all of those nodes. The sentence says why.
    Unneeded(&'static str, &'static str),
    /// Poolwright's nodes have no other value than this one, or do not have the label at all. The sentence says why.
    Only(Option<&'static str>, &'static str),
    /// Other nodes have the label: neither Karpenter's nor Poolwright's. The sentence says what to do instead.
    Absent(&'static str),
    /// Nodes may have the label, but Poolwright does not know it. The sentence says what to do instead.
    NoCounterpart(&'static str),
    /// A label of the user.
    UserDefined,
}
