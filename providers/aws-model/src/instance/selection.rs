//! Selects the types of a catalogue: the default types, and those that a node class allows in addition.

use std::collections::BTreeSet;

use super::class::{self, Class};
use super::facts::TypeFacts;

/// The types to allow in addition to the default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// Whether to allow all bare metal types.
    pub metal: bool,
    /// Types (`t3.large`) and families (`t3`) to allow although they are unusual or bare metal.
    pub also: BTreeSet<String>,
}

impl Selection {
    /// Returns why the type is left out and how to allow it; `None` if the catalogue has it.
    ///
    /// The catalogue has types that EC2 sells only in capacity blocks. Their only offerings are those of existing blocks.
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
        class.reason().map(|why| {
            format!(
                "{why}; to allow it, name the type or its family in alsoInstanceTypes of the EC2NodeClass"
            )
        })
    }
}
