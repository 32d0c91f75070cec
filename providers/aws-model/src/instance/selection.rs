//! Which types a catalogue has: those of the default, and what somebody asked for.

use std::collections::BTreeSet;

use super::class::{self, Class};
use super::facts::TypeFacts;

/// What is wanted beside the types that a pool takes by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// Bare metal as well.
    pub metal: bool,
    /// Types (`t3.large`) and families (`t3`) that are wanted though they are unusual or bare metal.
    pub also: BTreeSet<String>,
}

impl Selection {
    /// Why the type is left out, and what to do about it; `None` for what is taken.
    ///
    /// What is sold in capacity blocks only is taken: it has no offering but those of blocks that are there.
    pub fn leaves_out(&self, facts: &TypeFacts) -> Option<String> {
        let class = class::of(facts);
        let by_name = self.also.contains(facts.name.as_str()) || self.also.contains(facts.family());
        let taken = match class {
            Class::Virtual | Class::CapacityBlockOnly => true,
            Class::Metal => self.metal || by_name,
            Class::Unusual(_) => by_name,
            Class::Fractional(_) | Class::Unusable(_) => return class.reason(),
        };
        if taken {
            return None;
        }
        class.reason().map(|why| format!("{why}; name the type or its family in alsoInstanceTypes of the EC2NodeClass to have it all the same"))
    }
}
