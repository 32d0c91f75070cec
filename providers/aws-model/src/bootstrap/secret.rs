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

/// How many characters of a token are its id, by which it is known to everybody; and how many are secret.
const ID: usize = 6;
const SECRET: usize = 16;

/// What a token may consist of.
const LETTERS: &[u8; 36] = b"abcdefghijklmnopqrstuvwxyz0123456789";

impl BootstrapToken {
    /// A token out of random bytes, every token as likely as any other; `None` where there are too few of them. One byte in
    /// 64 is passed over, on the average: twice as many as a token has letters are always enough.
    pub fn from_random(bytes: &[u8]) -> Option<Self> {
        // The most multiples of 36 that a byte has; above it, some letters would be more likely than others.
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

    /// What it is known by. Not secret.
    pub fn id(&self) -> &str {
        &self.0[..ID]
    }

    /// The token, secret part included: for the cluster and for nodes that join it, and for nobody else.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// The secret part alone, as the cluster wants it.
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
