//! Texts that are never printed.

use std::fmt;
use std::str::FromStr;

use super::problem::Problem;

/// User data. It may hold secrets: what is printed of it is its length.
#[derive(Clone, PartialEq, Eq)]
pub struct UserData(String);

impl UserData {
    /// The text, as it is before EC2's API wants it in base64.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<String> for UserData {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl From<&str> for UserData {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl fmt::Debug for UserData {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "UserData({} bytes)", self.0.len())
    }
}

/// A bootstrap token: six characters, a dot and sixteen
/// (<https://kubernetes.io/docs/reference/access-authn-authz/bootstrap-tokens/>). Never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct BootstrapToken(String);

impl BootstrapToken {
    /// The token, secret part included.
    pub(super) fn reveal(&self) -> &str {
        &self.0
    }
}

impl FromStr for BootstrapToken {
    type Err = Problem;

    fn from_str(text: &str) -> Result<Self, Problem> {
        let plain = |part: &str| part.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
        match text.split_once('.') {
            Some((id, secret)) if id.len() == 6 && secret.len() == 16 && plain(id) && plain(secret) => {
                Ok(Self(text.to_owned()))
            }
            _ => Err(Problem::Token),
        }
    }
}

impl fmt::Debug for BootstrapToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BootstrapToken(..)")
    }
}
