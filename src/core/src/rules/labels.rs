//! The interface to labels, for existing and new nodes.

use std::collections::BTreeMap;

use crate::model::Shared;

/// Something that has labels.
pub trait Labels {
    /// Returns the value of a label.
    fn label(&self, key: &str) -> Option<&str>;
}

impl Labels for BTreeMap<String, String> {
    fn label(&self, key: &str) -> Option<&str> {
        self.get(key).map(String::as_str)
    }
}

impl<L: Labels> Labels for Shared<L> {
    fn label(&self, key: &str) -> Option<&str> {
        L::label(self, key)
    }
}
