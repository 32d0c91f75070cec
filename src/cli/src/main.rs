//! The poolwright command.
fn main() {}
