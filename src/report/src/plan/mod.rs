//! The published document of a plan, the groups that tables show, and what the bound and simpler plans say about it.

mod compare;
mod document;
mod groups;
mod publish;

pub use compare::{Against, Serves, Under, Verdict, WhyCheaper};
pub use document::{
    Baselines, CatalogueSummary, CommitmentUse, CostOverTime, Document, ExistingNode, Explained, GpuInstance,
    GpuShare, GpuUse, NewNode, PodCounts, Refusal, RelaxedPreference, RuleCost, UnitCounts, UnplacedPod,
};
pub use groups::{Layout, LeftOut, Purchase, PurchaseSum};
pub use publish::{DocumentContext, PodNames, Refused, document};
