//! The stories of pods, claims, nodes and pools, for people: what was asked, what was considered, what decided. Plain text,
//! a few lines each, from the same snapshot and the same plan that decisions are made from.

mod claim;
mod note;
mod pod;
mod pool;

pub use claim::{claim, node};
pub use note::note;
pub use pod::{MOST_LINES, pod, pods};
pub use pool::pool;

/// `a, b, c and 4 more`.
fn list<T: AsRef<str>>(items: &[T], most: usize) -> String {
    let shown: Vec<&str> = items.iter().take(most).map(AsRef::as_ref).collect();
    let more = items.len().saturating_sub(most);
    if more > 0 { format!("{} and {more} more", shown.join(", ")) } else { shown.join(", ") }
}
