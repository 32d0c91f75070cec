//! Makes the catalogue of a region from AWS's price list, the spot price history, interruption rates and capacity reservations.
//!
//! `providers/aws` makes the calls ([`request`] has their parameters) and passes plain texts and structs. Nothing here guesses:
//! an offering without a price in any source has an unknown price, and the rules of [`poolwright_catalog::sanity`] quarantine
//! implausible prices.

mod entry;
mod interruptions;
mod market;
mod on_demand;
pub mod request;
mod reservation;
mod spot;

pub use entry::{Listed, Refusal, read_entry};
pub use interruptions::{INTERRUPTIONS_AS_OF, InterruptionRates};
pub use market::{LeftOut, Market, MarketCatalogue, catalogue, offerings};
pub use on_demand::{BUILTIN_AS_OF, BUILTIN_REGION, OnDemandPrices};
pub use reservation::{
    BLOCK_STOPS_BEFORE_END, Matching, Reservation, ReservationKind, ReservationLot, ReservationUnusable,
    Reserved,
};
pub use spot::{DEFAULT_MAX_AGE, SpotEntry, SpotPrice, SpotPrices, SpotRefusal};
