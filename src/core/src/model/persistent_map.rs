//! Persistent ordered maps: clones share all entries that have not changed since.

use std::borrow::Borrow;
use std::fmt;
use std::ops::Index;
use std::sync::Arc;

/// The number of entries in a part. A part with twice as many is split.
const PART: usize = 64;

type Part<K, V> = Arc<Vec<(K, V)>>;

/// A persistent ordered map, stored in parts. Cloning is cheap, and a change copies at most one part. Lookups cost as much as
/// in a `BTreeMap`.
pub struct PersistentMap<K, V> {
    /// The parts in ascending order of keys; no part is empty.
    parts: Arc<Vec<Part<K, V>>>,
    len: usize,
}

impl<K, V> Clone for PersistentMap<K, V> {
    fn clone(&self) -> Self {
        Self { parts: self.parts.clone(), len: self.len }
    }
}

impl<K, V> Default for PersistentMap<K, V> {
    fn default() -> Self {
        Self { parts: Arc::default(), len: 0 }
    }
}

impl<K, V> PersistentMap<K, V> {
    /// Creates an empty map.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether the map is empty.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns all entries, by key.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&K, &V)> + Clone {
        self.parts.iter().flat_map(|part| part.iter()).map(|(key, value)| (key, value))
    }

    /// Returns all keys, ascending.
    pub fn keys(&self) -> impl DoubleEndedIterator<Item = &K> + Clone {
        self.iter().map(|(key, _)| key)
    }

    /// Returns all values, by key.
    pub fn values(&self) -> impl DoubleEndedIterator<Item = &V> + Clone {
        self.iter().map(|(_, value)| value)
    }

    /// Returns whether neither map has changed since one was cloned from the other.
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.parts, &other.parts)
    }

    /// Returns the part that holds a key, or would hold it.
    fn part<Q: Ord + ?Sized>(&self, key: &Q) -> usize
    where
        K: Borrow<Q>,
    {
        self.parts.partition_point(|part| part[0].0.borrow() <= key).saturating_sub(1)
    }

    /// Returns the value of a key.
    pub fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        let part = self.parts.get(self.part(key))?;
        let at = part.binary_search_by(|(known, _)| known.borrow().cmp(key)).ok()?;
        Some(&part[at].1)
    }

    /// Returns whether the map contains a key.
    pub fn contains_key<Q: Ord + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.get(key).is_some()
    }

    /// Returns the entries from this key on, in ascending order.
    pub fn range_from<'a, Q: Ord + ?Sized>(
        &'a self,
        key: &Q,
    ) -> impl Iterator<Item = (&'a K, &'a V)> + use<'a, K, V, Q>
    where
        K: Borrow<Q>,
    {
        let first = self.part(key);
        let skipped =
            self.parts.get(first).map_or(0, |part| part.partition_point(|(known, _)| known.borrow() < key));
        let parts = self.parts.get(first..).unwrap_or_default();
        parts.iter().flat_map(|part| part.iter()).skip(skipped).map(|(key, value)| (key, value))
    }
}

impl<K: Ord + Clone, V: Clone> PersistentMap<K, V> {
    /// Inserts a value and returns the previous one.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        let at = self.part(&key);
        let parts = Arc::make_mut(&mut self.parts);
        let Some(part) = parts.get_mut(at) else {
            parts.push(Arc::new(vec![(key, value)]));
            self.len = 1;
            return None;
        };
        let part = Arc::make_mut(part);
        match part.binary_search_by(|(known, _)| known.cmp(&key)) {
            Ok(found) => Some(std::mem::replace(&mut part[found].1, value)),
            Err(place) => {
                part.insert(place, (key, value));
                if part.len() > 2 * PART {
                    let rest = part.split_off(PART);
                    part.shrink_to_fit();
                    parts.insert(at + 1, Arc::new(rest));
                }
                self.len += 1;
                None
            }
        }
    }

    /// Removes a value.
    pub fn remove<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        let at = self.part(key);
        let found = self.parts.get(at)?.binary_search_by(|(known, _)| known.borrow().cmp(key)).ok()?;
        let parts = Arc::make_mut(&mut self.parts);
        let part = Arc::make_mut(&mut parts[at]);
        let (_, value) = part.remove(found);
        self.len -= 1;
        if part.is_empty() {
            parts.remove(at);
        } else if let [one, next, ..] = &mut parts[at..]
            && one.len() + next.len() <= PART
        {
            Arc::make_mut(one).extend(next.iter().cloned());
            parts.remove(at + 1);
        }
        Some(value)
    }

    /// Returns a mutable reference to a value.
    pub fn get_mut<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
    {
        let at = self.part(key);
        let found = self.parts.get(at)?.binary_search_by(|(known, _)| known.borrow().cmp(key)).ok()?;
        let parts = Arc::make_mut(&mut self.parts);
        Some(&mut Arc::make_mut(&mut parts[at])[found].1)
    }

    /// Keeps the entries for which `keep` is true.
    pub fn retain(&mut self, mut keep: impl FnMut(&K, &V) -> bool) {
        let gone: Vec<K> =
            self.iter().filter(|(key, value)| !keep(key, value)).map(|(key, _)| key.clone()).collect();
        for key in gone {
            self.remove(&key);
        }
    }
}

impl<K: Ord + Clone, V: Clone> Extend<(K, V)> for PersistentMap<K, V> {
    fn extend<T: IntoIterator<Item = (K, V)>>(&mut self, all: T) {
        for (key, value) in all {
            self.insert(key, value);
        }
    }
}

impl<K: Ord + Clone, V: Clone> FromIterator<(K, V)> for PersistentMap<K, V> {
    fn from_iter<T: IntoIterator<Item = (K, V)>>(all: T) -> Self {
        let mut map = Self::new();
        map.extend(all);
        map
    }
}

impl<K: Ord + Clone, V: Clone, const N: usize> From<[(K, V); N]> for PersistentMap<K, V> {
    fn from(all: [(K, V); N]) -> Self {
        all.into_iter().collect()
    }
}

impl<K, V, Q: Ord + ?Sized> Index<&Q> for PersistentMap<K, V>
where
    K: Borrow<Q>,
{
    type Output = V;

    fn index(&self, key: &Q) -> &V {
        self.get(key).expect("no entry found for key")
    }
}

impl<K: PartialEq, V: PartialEq> PartialEq for PersistentMap<K, V> {
    fn eq(&self, other: &Self) -> bool {
        self.is_same(other) || (self.len == other.len && self.iter().eq(other.iter()))
    }
}

impl<K: fmt::Debug, V: fmt::Debug> fmt::Debug for PersistentMap<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

/// Adds a name to the sorted list of a key.
pub(crate) fn insert_name<K: Ord + Clone, N: Ord + Clone>(
    map: &mut PersistentMap<K, Vec<N>>,
    key: &K,
    name: &N,
) {
    let mut names = map.get(key).cloned().unwrap_or_default();
    if let Err(at) = names.binary_search(name) {
        names.insert(at, name.clone());
        map.insert(key.clone(), names);
    }
}

/// Removes a name from the list of a key.
pub(crate) fn remove_name<K, N, Q>(map: &mut PersistentMap<K, Vec<N>>, key: &K, name: &Q)
where
    K: Ord + Clone,
    N: Clone + Borrow<Q>,
    Q: Eq + ?Sized,
{
    let Some(mut names) = map.remove(key) else { return };
    names.retain(|other| other.borrow() != name);
    if !names.is_empty() {
        map.insert(key.clone(), names);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_map_keeps_its_entries_and_clones_do_not_change(
            changes in prop::collection::vec((0u16..400, prop::option::weighted(0.6, any::<u8>())), 0..1500)
        ) {
            let (mut shared, mut plain) = (PersistentMap::new(), BTreeMap::new());
            let mut kept = Vec::new();
            for (number, (key, value)) in changes.into_iter().enumerate() {
                if let Some(value) = value {
                    prop_assert_eq!(shared.insert(key, value), plain.insert(key, value));
                } else {
                    prop_assert_eq!(shared.remove(&key), plain.remove(&key));
                }
                prop_assert_eq!(shared.len(), plain.len());
                prop_assert_eq!(shared.get(&key), plain.get(&key));
                if number % 100 == 0 {
                    kept.push((shared.clone(), plain.clone()));
                    let from = |key: &u16| plain.range(*key..).map(|(k, v)| (*k, *v)).collect::<Vec<_>>();
                    let ours: Vec<_> = shared.range_from(&key).map(|(k, v)| (*k, *v)).collect();
                    prop_assert_eq!(ours, from(&key));
                }
            }
            kept.push((shared, plain));
            for (shared, plain) in kept {
                prop_assert!(shared.iter().eq(plain.iter()));
                prop_assert!(shared.iter().rev().eq(plain.iter().rev()));
                prop_assert_eq!(shared, plain.into_iter().collect::<PersistentMap<_, _>>());
            }
        }
    }
}
