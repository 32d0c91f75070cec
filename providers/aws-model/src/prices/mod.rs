//! Prices: AWS's price list, spot price history, how often spot is taken back, what is reserved, and the catalogue that comes
//! of them.
//!
//! The edge asks ([`request`] says what and where) and hands over plain texts and structs. Nothing here guesses: what no
//! source prices has no known price, and what cannot be right is in quarantine by the catalogue's own rules
//! ([`poolwright_catalog::sanity`]).

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
