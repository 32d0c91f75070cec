//! The published document of a plan, and the groups that tables show.

mod document;
mod groups;
mod publish;

pub use document::{
    Baselines, CatalogueSummary, CommitmentUse, CostOverTime, Document, ExistingNode, Explained, GpuInstance,
    GpuShare, GpuUse, NewNode, PodCounts, RelaxedPreference, UnplacedPod,
};
pub use groups::{Layout, LeftOut, Purchase, PurchaseSum};
pub use publish::{DocumentContext, PodNames, Refused, document};
