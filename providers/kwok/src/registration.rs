//! KWOK, as the rest of Poolwright knows it.

use poolwright_provider_contract::Registration;

use crate::class;

/// Nodes without machines.
pub const REGISTRATION: Registration = Registration {
    name: "kwok",
    title: "KWOK: nodes without machines",
    node_class: class::NODE_CLASS,
    market: None,
};
