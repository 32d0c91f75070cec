//! Secrets that are never printed.

use std::fmt;
use std::str::FromStr;

use super::problem::Problem;

/// User data. It may contain secrets, so its debug output shows only the length.
#[derive(Clone, PartialEq, Eq)]
pub struct UserData(String);

impl UserData {
    /// Returns the text, without base64 encoding.
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

/// A bootstrap token: six characters, a dot and sixteen characters
/// (<https://kubernetes.io/docs/reference/access-authn-authz/bootstrap-tokens/>). It is never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct BootstrapToken(String);

/// The lengths of the id, which is public, and of the secret.
const ID: usize = 6;
const SECRET: usize = 16;

/// The characters of a token.
const LETTERS: &[u8; 36] = b"abcdefghijklmnopqrstuvwxyz0123456789";

impl BootstrapToken {
    /// Makes a uniformly distributed token from random bytes; `None` if there are too few bytes. On average one byte in 64 is
    /// rejected, so twice as many bytes as characters are enough.
    pub fn from_random(bytes: &[u8]) -> Option<Self> {
        // Reject bytes above the largest multiple of 36, so that all characters are equally likely.
        let even = u8::MAX - u8::MAX % 36;
        let mut letters =
            bytes.iter().filter(|byte| **byte < even).map(|byte| LETTERS[usize::from(byte % 36)]);
        let mut take = |count| {
            let taken: String = letters.by_ref().take(count).map(char::from).collect();
            (taken.len() == count).then_some(taken)
        };
        let (id, secret) = (take(ID)?, take(SECRET)?);
        Some(Self(format!("{id}.{secret}")))
    }

    /// Returns the public id.
    pub fn id(&self) -> &str {
        &self.0[..ID]
    }

    /// Returns the token with its secret. Pass it only to the cluster and to nodes that join it.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Returns the secret part.
    pub fn reveal_secret(&self) -> &str {
        &self.0[ID + 1..]
    }
}

impl FromStr for BootstrapToken {
    type Err = Problem;

    fn from_str(text: &str) -> Result<Self, Problem> {
        let plain = |part: &str| part.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
        match text.split_once('.') {
            Some((id, secret)) if id.len() == ID && secret.len() == SECRET && plain(id) && plain(secret) => {
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
