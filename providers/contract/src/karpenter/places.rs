//! The fields of a source document from which the fields of the result come. Problems of the result name the field that the user
//! wrote.

use super::fields::below;

/// Pairs of a field of the result and the field of the source that it comes from.
#[derive(Debug, Default)]
pub struct Places(Vec<(String, String)>);

impl Places {
    /// Adds a pair.
    pub fn add(&mut self, result: impl Into<String>, source: impl Into<String>) {
        self.0.push((result.into(), source.into()));
    }

    /// Adds all pairs of another list.
    pub fn extend(&mut self, others: Self) {
        self.0.extend(others.0);
    }

    /// Returns the field of the source from which a field of the result comes. Most have the same path.
    pub fn source_of(&self, field: &str) -> String {
        let found = self.0.iter().filter_map(|(result, source)| Some((below(field, result)?, source)));
        // The nearest pair is the one that leaves least of the path.
        match found.min_by_key(|(rest, _)| rest.len()) {
            Some((rest, source)) => format!("{source}{rest}"),
            None => field.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_of_the_result_leads_to_the_one_that_the_user_wrote() {
        let mut places = Places::default();
        places.add("spec.requirements[0]", "spec.requirements[2]");
        places.add("spec.scaleToZero.after", "spec.disruption.consolidateAfter");
        assert_eq!(places.source_of("spec.requirements[0].values[1]"), "spec.requirements[2].values[1]");
        assert_eq!(places.source_of("spec.requirements[0]"), "spec.requirements[2]");
        assert_eq!(places.source_of("spec.requirements[1]"), "spec.requirements[1]");
        assert_eq!(places.source_of("spec.scaleToZero.after"), "spec.disruption.consolidateAfter");
    }
}
