//! Names of instance types in which `*` stands for any text.

use std::collections::BTreeSet;

use crate::near::near;

/// The most names in a message.
const NAMED: usize = 8;

/// Returns whether a name is of a pattern.
pub fn fits(pattern: &str, name: &str) -> bool {
    let Some((before, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(left) = name.strip_prefix(before) else { return false };
    // Several stars in a row stand for the same as one.
    let rest = rest.trim_start_matches('*');
    left.char_indices().map(|(at, _)| at).chain([left.len()]).any(|at| match rest.split_once('*') {
        None => left[at..] == *rest,
        Some((next, _)) => left[at..].starts_with(next) && fits(rest, &left[at..]),
    })
}

/// Says what to write instead of a name that is none of these.
pub fn instead(wrong: &str, known: &BTreeSet<&str>) -> String {
    if let Some(meant) = near(wrong, known.iter().copied()) {
        return format!("did you mean {meant}?");
    }
    // The names that begin alike help more than those that come first.
    let begins = wrong.split(['.', '-', '*']).next().unwrap_or_default();
    let alike: Vec<&str> = known.iter().copied().filter(|name| name.starts_with(begins)).collect();
    let shown = if alike.is_empty() { known.iter().copied().collect() } else { alike };
    match shown.len().saturating_sub(NAMED) {
        _ if shown.is_empty() => "there is none".to_owned(),
        0 => format!("choose from {}", shown.join(", ")),
        more => format!("choose from {} and {more} more", shown[..NAMED].join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_text() {
        for (pattern, name) in [
            ("g5.xlarge", "g5.xlarge"),
            ("g5.*", "g5.xlarge"),
            ("*", "a"),
            ("*.metal", "g4dn.metal"),
            ("g*d*.x*", "g4dn.xlarge"),
        ] {
            assert!(fits(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in
            [("g5", "g5.xlarge"), ("g5.*", "g5n.xlarge"), ("*.metal", "g5.metal-24xl"), ("", "a")]
        {
            assert!(!fits(pattern, name), "{pattern} {name}");
        }
    }

    #[test]
    fn a_wrong_name_is_told_with_the_nearest_or_with_those_that_begin_alike() {
        let known = BTreeSet::from(["g5.xlarge", "g5.2xlarge", "p4d.24xlarge"]);
        assert_eq!(instead("g5.xlarg", &known), "did you mean g5.xlarge?");
        assert_eq!(instead("g5.9xlarge", &known), "choose from g5.2xlarge, g5.xlarge");
        assert_eq!(instead("x", &known), "choose from g5.2xlarge, g5.xlarge, p4d.24xlarge");
        assert_eq!(instead("x", &BTreeSet::new()), "there is none");
    }
}
