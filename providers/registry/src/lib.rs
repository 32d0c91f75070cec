//! The list of clouds.
//!
//! This crate holds one line for each cloud. The rest of Poolwright reads a cloud's [`Registration`] and names no cloud.
//!
//! It must not contain anything else.

use poolwright_provider_contract::Registration;

/// Every cloud. Where several could be meant, the first that fits is.
pub static CLOUDS: [Registration; 2] =
    [poolwright_provider_kwok::REGISTRATION, poolwright_provider_aws::REGISTRATION];
