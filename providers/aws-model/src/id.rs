//! Ids of instances: the instance id of EC2 and the provider id of a node.

use std::fmt;
use std::str::FromStr;

/// The id of an EC2 instance: `i-` and 8 or 17 hexadecimal digits.
///
/// Source: <https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/resource-ids.html>.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InstanceId(String);

/// The provider id of a node: `aws:///us-east-1a/i-0123456789abcdef0`. The AWS cloud controller manager and the kubelet's
/// `--provider-id` write it to `spec.providerID`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ProviderId {
    /// The name of the availability zone.
    pub zone: String,
    /// The id of the instance.
    pub instance: InstanceId,
}

/// The error of parsing an id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidId {
    /// The text is not an instance id.
    #[error("`{0}` is not the id of an EC2 instance, which is i- and 8 or 17 hexadecimal digits")]
    Instance(String),
    /// The text is not a provider id of AWS.
    #[error("`{0}` is not a provider id of AWS, which looks like aws:///us-east-1a/i-0123456789abcdef0")]
    Provider(String),
}

/// The number of characters of untrusted text in an error.
const SHOWN: usize = 80;

/// Returns the start of untrusted text for an error.
pub(crate) fn shown(text: &str) -> String {
    text.chars().take(SHOWN).collect()
}

impl InstanceId {
    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for InstanceId {
    type Err = InvalidId;

    fn from_str(text: &str) -> Result<Self, InvalidId> {
        let digits = text.strip_prefix("i-").unwrap_or_default();
        let is_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        if matches!(digits.len(), 8 | 17) && digits.bytes().all(is_hex) {
            return Ok(Self(text.to_owned()));
        }
        Err(InvalidId::Instance(shown(text)))
    }
}

impl fmt::Display for InstanceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl FromStr for ProviderId {
    type Err = InvalidId;

    fn from_str(text: &str) -> Result<Self, InvalidId> {
        let (zone, instance) = text
            .strip_prefix("aws:///")
            .and_then(|rest| rest.split_once('/'))
            .filter(|(zone, _)| !zone.is_empty())
            .ok_or_else(|| InvalidId::Provider(shown(text)))?;
        Ok(Self { zone: zone.to_owned(), instance: instance.parse()? })
    }
}

impl fmt::Display for ProviderId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "aws:///{}/{}", self.zone, self.instance)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_both_lengths_are_read_and_written_as_they_are() {
        for text in ["aws:///us-east-1a/i-0123456789abcdef0", "aws:///us-west-2-lax-1a/i-1a2b3c4d"] {
            let id: ProviderId = text.parse().expect("an id");
            assert_eq!(id.to_string(), text);
        }
    }

    #[test]
    fn an_invalid_id_is_rejected_and_a_long_one_is_shortened_in_the_message() {
        let long = "i-".repeat(10_000);
        for text in [
            "",
            "i-",
            "i-0123456789ABCDEF0",
            "i-0123456789abcdeg0",
            "i-0123456789abcdef01",
            "i-1234567\n",
            &long,
        ] {
            let error = text.parse::<InstanceId>().expect_err("no id");
            assert!(error.to_string().len() < 300, "{error}");
        }
        for text in
            ["", "kwok:///a/b", "aws:///", "aws:////i-1a2b3c4d", "aws:///zone/x/i-1a2b3c4d", "aws:///zone"]
        {
            assert!(text.parse::<ProviderId>().is_err(), "{text}");
        }
    }
}
