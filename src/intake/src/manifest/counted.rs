//! Numbers of things in words.

/// Returns a number of things: `1 replica`, `3 replicas`.
pub(super) fn counted(number: impl Into<i128>, one: &str) -> String {
    let number: i128 = number.into();
    if number == 1 { format!("1 {one}") } else { format!("{number} {one}s") }
}
