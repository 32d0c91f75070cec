//! Keys of API objects, and of pods that exist or are expected.
//!
//! A NodeClaim lists its pods as text (`ml/train-0`, `ml/Job:train#7`). [`PodKey`] implements `Display` and `FromStr` for this
//! text. Keys sort like their texts.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::names::PoolName;

/// The namespace and name of an object on the API server.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ObjectKey {
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
}

impl ObjectKey {
    /// Creates a key from a namespace and a name.
    pub fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// The owner of expected pods: a controller, or one part of a gang.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OwnerKey {
    /// Its namespace, and that of its pods.
    pub namespace: String,
    /// Its kind: `Job`.
    pub kind: String,
    /// Its name. A part of a gang is named `<gang>.<part>`.
    pub name: String,
}

impl OwnerKey {
    /// Returns its namespace, kind and name.
    pub(crate) fn parts(&self) -> (&str, &str, &str) {
        (&self.namespace, &self.kind, &self.name)
    }
}

impl fmt::Display for OwnerKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}/{}", self.kind, self.namespace, self.name)
    }
}

/// The key of a pod, or of one unit of a pool's buffer.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(into = "Text", try_from = "Text")]
pub enum PodKey {
    /// A pod on the API server.
    Existing(ObjectKey),
    /// A pod that its owner has not created yet: `ml/Job:train#7`.
    Expected {
        /// Its owner.
        owner: Arc<OwnerKey>,
        /// Its number among the expected pods of this owner.
        ordinal: u64,
    },
    /// One unit of a pool's buffer: `poolwright/NodePool:gpu.0#3`. No claim lists one.
    Buffer {
        /// The pool.
        pool: PoolName,
        /// The position in the pool's list of buffers.
        entry: u64,
        /// Its number among the units of that entry.
        ordinal: u64,
    },
}

/// The namespace in the text of a buffer unit.
const BUFFER_NAMESPACE: &str = "poolwright";
/// The prefix of the name of a buffer unit. No controller of pods has the kind NodePool.
const BUFFER_PREFIX: &str = "NodePool:";

impl PodKey {
    /// Creates the key of a pod that exists.
    pub fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self::Existing(ObjectKey::new(namespace, name))
    }

    /// Returns the namespace and name of a pod that exists; `None` for all others.
    pub const fn existing(&self) -> Option<&ObjectKey> {
        match self {
            Self::Existing(key) => Some(key),
            Self::Expected { .. } | Self::Buffer { .. } => None,
        }
    }

    /// Returns the owner of the pod; `None` unless it is expected.
    pub const fn owner(&self) -> Option<&Arc<OwnerKey>> {
        match self {
            Self::Expected { owner, .. } => Some(owner),
            Self::Existing(_) | Self::Buffer { .. } => None,
        }
    }

    /// Returns whether this is one unit of a pool's buffer.
    pub const fn is_buffer(&self) -> bool {
        matches!(self, Self::Buffer { .. })
    }

    /// Returns the namespace.
    pub fn namespace(&self) -> &str {
        match self {
            Self::Existing(key) => &key.namespace,
            Self::Expected { owner, .. } => &owner.namespace,
            Self::Buffer { .. } => BUFFER_NAMESPACE,
        }
    }

    /// Returns the name, as [`Display`](fmt::Display) writes it after the namespace.
    pub fn name(&self) -> Cow<'_, str> {
        match self {
            Self::Existing(key) => Cow::Borrowed(&key.name),
            Self::Expected { owner, ordinal } => format!("{}:{}#{ordinal}", owner.kind, owner.name).into(),
            Self::Buffer { pool, entry, ordinal } => {
                format!("{BUFFER_PREFIX}{pool}.{entry}#{ordinal}").into()
            }
        }
    }

    /// Returns the name in pieces, each a text and the number after it. Comparing pieces allocates nothing, and keys are compared
    /// often.
    fn pieces(&self) -> [(&str, Option<u64>); 4] {
        match self {
            Self::Existing(key) => [(&key.name, None), ("", None), ("", None), ("", None)],
            Self::Expected { owner, ordinal } => {
                [(&owner.kind, None), (":", None), (&owner.name, None), ("#", Some(*ordinal))]
            }
            Self::Buffer { pool, entry, ordinal } => {
                [(BUFFER_PREFIX, None), (&pool.0, None), (".", Some(*entry)), ("#", Some(*ordinal))]
            }
        }
    }
}

impl Ord for PodKey {
    /// Compares the texts of the keys.
    fn cmp(&self, other: &Self) -> Ordering {
        if let (Self::Existing(one), Self::Existing(other)) = (self, other) {
            return one.cmp(other);
        }
        let rank = |key: &Self| (key.owner().is_some(), key.is_buffer());
        (self.namespace().cmp(other.namespace()))
            .then_with(|| bytes(self.pieces()).cmp(bytes(other.pieces())))
            .then_with(|| rank(self).cmp(&rank(other)))
    }
}

impl PartialOrd for PodKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

fn bytes<'a>(pieces: [(&'a str, Option<u64>); 4]) -> impl Iterator<Item = u8> + use<'a> {
    let one =
        |(text, number): (&'a str, Option<u64>)| text.bytes().chain(number.into_iter().flat_map(digits));
    pieces.into_iter().flat_map(one)
}

fn digits(number: u64) -> impl Iterator<Item = u8> {
    let powers = (0..=number.checked_ilog10().unwrap_or(0)).rev();
    powers.map(move |power| b'0' + u8::try_from(number / 10_u64.pow(power) % 10).unwrap_or(0))
}

impl fmt::Display for PodKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace(), self.name())
    }
}

/// A text that is not a [`PodKey`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotAPodKey(String);

impl fmt::Display for NotAPodKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is neither NAMESPACE/NAME nor NAMESPACE/KIND:NAME#NUMBER", self.0)
    }
}

impl std::error::Error for NotAPodKey {}

impl FromStr for PodKey {
    type Err = NotAPodKey;

    fn from_str(text: &str) -> Result<Self, NotAPodKey> {
        let key = text.split_once('/').and_then(|(namespace, name)| read(namespace, name));
        key.ok_or_else(|| NotAPodKey(text.to_owned()))
    }
}

fn read(namespace: &str, name: &str) -> Option<PodKey> {
    // No object name contains a `#`.
    let Some((maker, number)) = name.split_once('#') else {
        return Some(PodKey::new(namespace, name));
    };
    let ordinal = read_number(number)?;
    if namespace == BUFFER_NAMESPACE
        && let Some(unit) = maker.strip_prefix(BUFFER_PREFIX)
    {
        let (pool, entry) = unit.rsplit_once('.')?;
        return Some(PodKey::Buffer { pool: PoolName(pool.to_owned()), entry: read_number(entry)?, ordinal });
    }
    let (kind, name) = maker.split_once(':')?;
    let owner = OwnerKey { namespace: namespace.to_owned(), kind: kind.to_owned(), name: name.to_owned() };
    Some(PodKey::Expected { owner: Arc::new(owner), ordinal })
}

/// Returns a number as `Display` writes it: without a sign or leading zeros.
fn read_number(text: &str) -> Option<u64> {
    text.parse().ok().filter(|number: &u64| number.to_string() == text)
}

/// The serialized form of a key: the two parts of its text.
#[derive(Serialize, Deserialize)]
struct Text {
    namespace: String,
    name: String,
}

impl From<PodKey> for Text {
    fn from(key: PodKey) -> Self {
        Self { namespace: key.namespace().to_owned(), name: key.name().into_owned() }
    }
}

impl TryFrom<Text> for PodKey {
    type Error = NotAPodKey;

    fn try_from(Text { namespace, name }: Text) -> Result<Self, NotAPodKey> {
        read(&namespace, &name).ok_or_else(|| NotAPodKey(format!("{namespace}/{name}")))
    }
}

/// The length of the random suffix in the names of a DaemonSet's pods.
pub(crate) const DAEMON_SUFFIX: usize = 5;

/// Returns the prefix of the name of a DaemonSet's pod: the name without its random suffix.
pub(crate) fn prefix_of(pod: &str) -> Option<&str> {
    let (prefix, suffix) = pod.split_at_checked(pod.len().checked_sub(DAEMON_SUFFIX)?)?;
    (!suffix.contains('-')).then_some(prefix)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn keys() -> impl Strategy<Value = PodKey> {
        let name = || "[a-c][a-c.-]{0,4}";
        let number = || prop_oneof![0_u64..200, any::<u64>()];
        let namespace =
            || prop_oneof![Just("ml".to_owned()), Just(BUFFER_NAMESPACE.to_owned()), "[a-c]{1,2}"];
        let expected = (namespace(), "(Job|JobSet|ReplicaSet)", name(), number());
        prop_oneof![
            (namespace(), name()).prop_map(|(namespace, name)| PodKey::new(namespace, name)),
            expected.prop_map(|(namespace, kind, name, ordinal)| PodKey::Expected {
                owner: Arc::new(OwnerKey { namespace, kind, name }),
                ordinal
            }),
            (name(), number(), number()).prop_map(|(pool, entry, ordinal)| PodKey::Buffer {
                pool: PoolName(pool),
                entry,
                ordinal
            }),
        ]
    }

    proptest! {
        #[test]
        fn a_key_is_read_as_it_was_written(key in keys()) {
            prop_assert_eq!(key.to_string().parse(), Ok(key.clone()));
            prop_assert_eq!(PodKey::try_from(Text::from(key.clone())), Ok(key));
        }

        #[test]
        fn keys_sort_as_their_texts_do(one in keys(), other in keys()) {
            let text = |key: &PodKey| (key.namespace().to_owned(), key.name().into_owned());
            prop_assert_eq!(one.cmp(&other), text(&one).cmp(&text(&other)));
        }
    }

    #[test]
    fn claims_of_earlier_versions_are_read() {
        let owner = |kind: &str, name: &str| {
            Arc::new(OwnerKey { namespace: "ml".into(), kind: kind.into(), name: name.into() })
        };
        assert_eq!("ml/train-0".parse(), Ok(PodKey::new("ml", "train-0")));
        let job = PodKey::Expected { owner: owner("Job", "train"), ordinal: 7 };
        assert_eq!("ml/Job:train#7".parse(), Ok(job));
        let part = PodKey::Expected { owner: owner("JobSet", "train.worker"), ordinal: 12 };
        assert_eq!("ml/JobSet:train.worker#12".parse(), Ok(part));
    }

    #[test]
    fn other_texts_are_no_keys() {
        for text in [
            "train",
            "ml/train#1",
            "ml/Job:train#",
            "ml/Job:train#-1",
            "ml/Job:train#01",
            "poolwright/NodePool:gpu#1",
        ] {
            assert_eq!(text.parse::<PodKey>(), Err(NotAPodKey(text.to_owned())));
        }
    }
}
