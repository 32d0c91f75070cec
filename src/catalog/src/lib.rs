//! What can be bought, and for how much: instance types, GPUs, offerings and prices, as pure data.
//!
//! Lives here: money, resource amounts and quantities, instance types, offerings, prices and rates of interruption with source
//! and age, the sanity rules for prices, the CSV reader, and the catalogue built into the binary.
//!
//! May not live here: anything about pods or clusters, any decision, any I/O but reading bytes it is handed, any clock.

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
pub use money::UsdPerHour;
pub use offering::{Catalogue, CatalogueOrigin, Offering, OfferingId, RankedOffering, Zone};
pub use price::{Price, PriceSource, Quote, UnknownPrice};
pub use reader::{CsvProblem, CsvProblems, read_csv};
pub use resources::{ResourceList, ResourceName};
