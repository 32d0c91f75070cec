//! Flags of a cloud, as data: the command line makes options of them, and a cloud reads their values.

use std::collections::BTreeMap;

/// An option of the command line.
#[derive(Clone, Copy, Debug)]
pub struct Flag {
    /// Its name without dashes, which begins with the name of the cloud: `mist-region`.
    pub name: &'static str,
    /// What stands for its value in the help; `None` for a switch.
    pub value: Option<&'static str>,
    /// The environment variable that sets it, too.
    pub env: Option<&'static str>,
    /// The flag without which it means nothing.
    pub requires: Option<&'static str>,
    /// One line of help.
    pub help: &'static str,
    /// More help, for `--help`; may be empty.
    pub more: &'static str,
    /// Refuses values that can never be right, with a sentence.
    pub check: Option<Check>,
}

/// Checks a value. The error is a sentence that says what is wrong and what to write instead.
pub type Check = fn(&str) -> Result<(), String>;

/// The flags that were set, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlagValues(BTreeMap<&'static str, String>);

impl FlagValues {
    /// The value of a flag, if it was set.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// The same, owned.
    pub fn text(&self, name: &str) -> Option<String> {
        self.0.get(name).cloned()
    }

    /// Whether a switch, or any flag, was set.
    pub fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// Sets a flag.
    pub fn set(&mut self, name: &'static str, value: impl Into<String>) {
        self.0.insert(name, value.into());
    }
}
