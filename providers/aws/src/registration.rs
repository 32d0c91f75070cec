//! AWS, as the rest of Poolwright knows it.

use poolwright_provider_contract::Registration;

use crate::{class, survey};

/// Nodes on EC2.
pub const REGISTRATION: Registration = Registration {
    name: "aws",
    title: "Amazon Web Services: EC2",
    node_class: class::NODE_CLASS,
    market: Some(&survey::Reader),
};
