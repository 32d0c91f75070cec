//! Of the rows about each span, keeps the one that was seen last.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use super::row::{InstanceSpan, PodSpan, Span};

/// A row about a span of something.
pub(super) trait Spanned: Clone {
    fn span(&self) -> &Span;
    fn span_mut(&mut self) -> &mut Span;
    /// Returns what the span is of: the instance, the cluster and the pod.
    fn subject(&self) -> (&str, &str, &str);
}

impl Spanned for InstanceSpan {
    fn span(&self) -> &Span {
        &self.span
    }

    fn span_mut(&mut self) -> &mut Span {
        &mut self.span
    }

    fn subject(&self) -> (&str, &str, &str) {
        (&self.uid, &self.span.cluster, "")
    }
}

impl Spanned for PodSpan {
    fn span(&self) -> &Span {
        &self.span
    }

    fn span_mut(&mut self) -> &mut Span {
        &mut self.span
    }

    fn subject(&self) -> (&str, &str, &str) {
        (&self.instance, &self.span.cluster, &self.uid)
    }
}

/// The latest row of each span. It looks spans up by the hashes of their names, so it copies no name and compares few.
#[derive(Debug)]
pub(super) struct Latest<T> {
    rows: Vec<T>,
    /// For each row, the place of another one whose name has the same hash.
    others: Vec<Option<usize>>,
    /// The place of the last row whose name has this hash.
    places: BTreeMap<u64, usize>,
}

impl<T> Default for Latest<T> {
    fn default() -> Self {
        Self { rows: Vec::new(), others: Vec::new(), places: BTreeMap::new() }
    }
}

impl<T: Spanned> Latest<T> {
    /// Keeps a row, unless a later one about its span is there.
    pub fn keep(&mut self, row: T) {
        let mut hasher = DefaultHasher::new();
        (&row.span().cluster, &row.span().id).hash(&mut hasher);
        self.keep_by(hasher.finish(), row);
    }

    fn keep_by(&mut self, hash: u64, row: T) {
        let span = row.span();
        let last = self.places.get(&hash).copied();
        let mut next = last;
        while let Some(place) = next {
            let old = self.rows[place].span();
            if old.id == span.id && old.cluster == span.cluster {
                if (span.seen, span.to) > (old.seen, old.to) {
                    self.rows[place] = row;
                }
                return;
            }
            next = self.others[place];
        }
        self.places.insert(hash, self.rows.len());
        self.others.push(last);
        self.rows.push(row);
    }

    /// Returns the rows, by instance, cluster, pod, start and id.
    pub fn sorted(self) -> Vec<T> {
        let rows = self.rows;
        let key = |place: usize| (rows[place].subject(), rows[place].span().from, &rows[place].span().id);
        // Rows are large and their names are far apart in memory, so their places are sorted, by the first letters of the instance.
        let mut order: Vec<(u128, usize)> =
            rows.iter().enumerate().map(|(place, row)| (first_letters(row.subject().0), place)).collect();
        order.sort_unstable_by(|(one_letters, one), (other_letters, other)| {
            one_letters.cmp(other_letters).then_with(|| key(*one).cmp(&key(*other)))
        });
        let mut rows: Vec<Option<T>> = rows.into_iter().map(Some).collect();
        order.into_iter().filter_map(|(_, place)| rows[place].take()).collect()
    }
}

/// Returns a number that is never larger for the smaller of two texts.
fn first_letters(text: &str) -> u128 {
    let mut letters = [0; 16];
    for (letter, byte) in letters.iter_mut().zip(text.bytes()) {
        *letter = byte;
    }
    u128::from_be_bytes(letters)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{at, instance};
    use super::*;

    #[test]
    fn spans_whose_names_have_one_hash_stay_apart() {
        let mut latest = Latest::default();
        let mut later = instance("a", "01:00", Some("02:00"));
        later.span.seen = at("03:00");
        for row in [
            instance("a", "01:00", None),
            instance("b", "01:00", None),
            later.clone(),
            instance("a", "01:00", None),
        ] {
            latest.keep_by(7, row);
        }
        assert_eq!(latest.sorted(), [later, instance("b", "01:00", None)]);
    }

    #[test]
    fn rows_are_sorted_by_whole_names() {
        let long = "the-same-sixteen-letters-and-";
        let names = [format!("{long}b"), "b".to_owned(), format!("{long}a"), "ab".to_owned(), "a".to_owned()];
        let mut latest = Latest::default();
        for name in &names {
            latest.keep(instance(name, "01:00", None));
        }
        let sorted: Vec<String> = latest.sorted().into_iter().map(|row| row.uid).collect();
        let mut expected = names.to_vec();
        expected.sort();
        assert_eq!(sorted, expected);
    }
}
