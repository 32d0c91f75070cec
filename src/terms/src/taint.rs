//! Taints of nodes.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

/// The effect of a taint on pods that do not tolerate it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum TaintEffect {
    /// The scheduler does not place them there.
    NoSchedule,
    /// The scheduler places them there only if no other node fits.
    PreferNoSchedule,
    /// The scheduler does not place them there, and running pods are evicted.
    NoExecute,
}

impl TaintEffect {
    /// Every effect.
    pub const ALL: [Self; 3] = [Self::NoSchedule, Self::PreferNoSchedule, Self::NoExecute];

    /// Returns the name in the Kubernetes API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NoSchedule => "NoSchedule",
            Self::PreferNoSchedule => "PreferNoSchedule",
            Self::NoExecute => "NoExecute",
        }
    }

    /// Returns the effect that has this name in the Kubernetes API.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|effect| effect.as_str() == name)
    }
}

impl fmt::Display for TaintEffect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A taint of a node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Taint {
    /// Key.
    #[schemars(
        length(min = 1, max = 316),
        regex(pattern = r"^([a-zA-Z0-9.-]{1,253}/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$")
    )]
    pub key: String,
    /// Value.
    // Kubernetes does not tell an absent value from an empty one, so here it is always a text.
    #[serde(default, deserialize_with = "text_or_null", skip_serializing_if = "String::is_empty")]
    #[schemars(
        with = "Option<String>",
        length(max = 63),
        regex(pattern = r"^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$")
    )]
    pub value: String,
    /// Its effect on pods that do not tolerate it.
    pub effect: TaintEffect,
}

fn text_or_null<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or_default())
}

impl fmt::Display for Taint {
    /// Writes the taint as `kubectl taint` does: `key=value:Effect`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.value.is_empty() {
            write!(f, "{}:{}", self.key, self.effect)
        } else {
            write!(f, "{}={}:{}", self.key, self.value, self.effect)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_taint_without_a_value_is_read_and_written_without_one() {
        let bare = r#"{"key":"gpu","effect":"NoSchedule"}"#;
        let taint = Taint { key: "gpu".into(), value: String::new(), effect: TaintEffect::NoSchedule };
        assert_eq!(serde_json::to_string(&taint).unwrap(), bare);
        for text in [bare, r#"{"key":"gpu","value":null,"effect":"NoSchedule"}"#] {
            assert_eq!(serde_json::from_str::<Taint>(text).unwrap(), taint, "{text}");
        }
        assert_eq!(taint.to_string(), "gpu:NoSchedule");
    }

    #[test]
    fn an_effect_is_found_by_the_name_it_is_written_with() {
        for effect in TaintEffect::ALL {
            assert_eq!(TaintEffect::named(effect.as_str()), Some(effect));
            assert_eq!(serde_json::to_value(effect).unwrap(), effect.as_str());
        }
        assert_eq!(TaintEffect::named("noschedule"), None);
    }
}
