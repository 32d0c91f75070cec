//! The catalogue: instance types, GPUs, offerings and prices, as pure data.
//!
//! This crate holds money, resource amounts and quantities, instance types, offerings, prices and rates of interruption
//! with source and age, the sanity rules for prices, the CSV reader, and the catalogue built into the binary.
//!
//! It must not know pods or clusters, decide anything, use a clock, or do I/O. It only parses bytes that it receives.

mod builtin;
pub mod instance;
pub mod interruptions;
mod labels;
pub mod mig;
pub mod money;
pub mod offering;
pub mod price;
pub mod quantity;
pub mod reader;
pub mod resources;
pub mod sanity;

pub use builtin::builtin;
pub use instance::{Arch, Gpu, GpuModel, InstanceType, InstanceTypeName, ProviderName};
pub use interruptions::Interruptions;
pub use labels::labels_of;
pub use mig::{MigGeometry, MigInstanceKind, MigModel, MigProfile};
pub use money::{Usd, UsdPerHour};
pub use offering::{Catalogue, CatalogueOrigin, Offering, OfferingId, RankedOffering, Zone};
pub use price::{Price, PriceSource, Quote, UnknownPrice};
pub use reader::{CsvProblem, CsvProblems, read_csv};
pub use resources::{ResourceList, ResourceName};
