//! Finds the name that a misspelt one probably means.

/// Returns the known name with the fewest typing errors in `name`: at most two, and at most one for each three letters. Case does
/// not count.
pub fn meant<'k>(name: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    let name = name.to_lowercase();
    let errors = |known: &&str| strsim::damerau_levenshtein(&name, &known.to_lowercase());
    let close = |known: &&str| errors(known) <= (known.chars().count() / 3).min(2);
    known.into_iter().filter(close).min_by_key(errors)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_few_typing_errors_is_recognized_and_another_name_is_not() {
        let kinds = ["Pod", "PodGroup", "CSINode", "EC2NodeClass"];
        for (written, kind) in
            [("Podd", "Pod"), ("pod", "Pod"), ("CSINodes", "CSINode"), ("Ec2NodeClas", "EC2NodeClass")]
        {
            assert_eq!(meant(written, kinds), Some(kind));
        }
        for other in ["ConfigMap", "CSIDriver", "KwokNodeClass", ""] {
            assert_eq!(meant(other, kinds), None, "{other}");
        }
    }
}
