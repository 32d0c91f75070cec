//! The flags of a cloud, as data. The command line turns them into options, and the cloud reads their values.

use std::collections::BTreeMap;

/// An option of the command line.
#[derive(Clone, Copy, Debug)]
pub struct Flag {
    /// The name without dashes. It starts with the name of the cloud: `mist-region`.
    pub name: &'static str,
    /// The placeholder of the value in the help; `None` for a switch.
    pub value: Option<&'static str>,
    /// The environment variable that also sets the flag.
    pub env: Option<&'static str>,
    /// The flag that must be set together with this one.
    pub requires: Option<&'static str>,
    /// The help, in one line.
    pub help: &'static str,
    /// Further help that `--help` prints. It may be empty.
    pub more: &'static str,
    /// Rejects invalid values.
    pub validate: Option<Validate>,
}

/// A function that validates a value. Its error says what is wrong and what to write instead.
pub type Validate = fn(&str) -> Result<(), String>;

/// The flags that the user set, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlagValues(BTreeMap<&'static str, String>);

impl FlagValues {
    /// Returns the value of a flag if the flag is set.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// Returns an owned copy of the value of a flag if the flag is set.
    pub fn text(&self, name: &str) -> Option<String> {
        self.0.get(name).cloned()
    }

    /// Returns whether a flag or switch is set.
    pub fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// Sets a flag.
    pub fn set(&mut self, name: &'static str, value: impl Into<String>) {
        self.0.insert(name, value.into());
    }
}
