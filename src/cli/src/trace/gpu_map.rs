//! Maps a `gpu_spec` of the trace to GPU models.

use std::collections::{BTreeMap, BTreeSet};

use poolwright_catalog::GpuModel;
use poolwright_terms::labels;

use super::table::{Column, read};
use crate::problems::Problems;

const BUILTIN: &str = include_str!("../../../../fixtures/traces/gpu-spec-map.csv");
const SPEC: &str = "gpu_spec";
const MODELS: &str = "gpu_models";
const COLUMNS: [Column; 2] = [Column { name: SPEC, required: true }, Column { name: MODELS, required: true }];
/// The word that stands for every model.
const ANY: &str = "any";

/// The GPU models that a pod may use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GpuChoice {
    /// Every model.
    Any,
    /// These models; never empty.
    OneOf(BTreeSet<GpuModel>),
}

impl GpuChoice {
    fn or(self, other: &Self) -> Self {
        match (self, other) {
            (Self::OneOf(mut models), Self::OneOf(more)) => {
                models.extend(more.iter().cloned());
                Self::OneOf(models)
            }
            _ => Self::Any,
        }
    }
}

/// GPU models by `gpu_spec`.
#[derive(Clone, Debug)]
pub struct GpuMap {
    file: String,
    choices: BTreeMap<String, GpuChoice>,
}

impl GpuMap {
    /// Returns the map that is built into the binary, `fixtures/traces/gpu-spec-map.csv`.
    pub fn builtin() -> Self {
        Self::read("builtin", BUILTIN).expect("the map in the binary is the one the tests read")
    }

    /// Reads a map from CSV with the columns `gpu_spec` and `gpu_models`. Alternatives are separated by `|`, and `any` stands for
    /// every model.
    ///
    /// # Errors
    ///
    /// All problems of the file.
    pub fn read(file: &str, text: &str) -> Result<Self, Problems> {
        let mut problems = Problems::new();
        let mut choices = BTreeMap::new();
        read(file, text, &COLUMNS, &mut problems, |row, problems| {
            let spec = row.cell(SPEC).unwrap_or_default();
            if spec.contains('|') {
                let remedy = "give each alternative its own row; the trace may join them with `|`";
                row.problem(problems, SPEC, format!("\"{spec}\" is a list of alternatives"), remedy);
            }
            let Some(choice) = models(row.cell(MODELS).unwrap_or_default()) else {
                let cause =
                    format!("\"{}\" is not a list of GPU models", row.cell(MODELS).unwrap_or_default());
                let remedy = "write models as the catalogue does, separated by `|`, like a10g|l4; or any";
                return row.problem(problems, MODELS, cause, remedy);
            };
            if choices.insert(spec.to_owned(), choice).is_some() {
                row.problem(
                    problems,
                    SPEC,
                    format!("\"{spec}\" is listed twice"),
                    "keep one row for each gpu_spec",
                );
            }
        });
        problems.or(Self { file: file.to_owned(), choices })
    }

    /// Returns the models of a `gpu_spec`: the union of its alternatives. An empty `gpu_spec` means every model unless the map
    /// says otherwise.
    ///
    /// # Errors
    ///
    /// The alternatives that are not in the map.
    pub fn choice(&self, spec: &str) -> Result<GpuChoice, Vec<String>> {
        if let Some(choice) = self.choices.get(spec) {
            return Ok(choice.clone());
        }
        if spec.is_empty() || spec == ANY {
            return Ok(GpuChoice::Any);
        }
        let mut union: Option<GpuChoice> = None;
        let mut missing = Vec::new();
        for alternative in spec.split('|').map(str::trim) {
            match self.choices.get(alternative) {
                Some(choice) => {
                    union = Some(union.map_or_else(|| choice.clone(), |models| models.or(choice)));
                }
                None if !missing.contains(&alternative.to_owned()) => missing.push(alternative.to_owned()),
                None => {}
            }
        }
        match union {
            Some(union) if missing.is_empty() => Ok(union),
            _ => Err(missing),
        }
    }

    /// Returns the remedy for a `gpu_spec` that is not in this map.
    pub(super) fn remedy(&self) -> String {
        let known: Vec<_> = self.choices.keys().filter(|spec| !spec.is_empty()).map(String::as_str).collect();
        let known = known.join(", ");
        if self.file == "builtin" {
            format!("known are {known}; pass a map that has it with --gpu-map FILE (docs/cli/plan.md)")
        } else {
            format!("known are {known}; add it to {}", self.file)
        }
    }
}

/// Parses models separated by `|`; `None` if one of them is empty or cannot be a model.
fn models(text: &str) -> Option<GpuChoice> {
    let mut choice = GpuChoice::OneOf(BTreeSet::new());
    for model in text.split('|').map(str::trim) {
        let model = model.to_lowercase();
        if model.is_empty() || !labels::is_value(&model) {
            return None;
        }
        let this =
            if model == ANY { GpuChoice::Any } else { GpuChoice::OneOf([GpuModel::new(model)].into()) };
        choice = choice.or(&this);
    }
    Some(choice)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one_of(models: &[&str]) -> GpuChoice {
        GpuChoice::OneOf(models.iter().map(|model| GpuModel::from(*model)).collect())
    }

    #[test]
    fn alternatives_in_the_trace_are_the_union_of_their_models() {
        let map = GpuMap::builtin();
        assert_eq!(map.choice("V100M16|V100M32"), Ok(one_of(&["v100"])));
        assert_eq!(map.choice("A10|T4"), Ok(one_of(&["a10g", "t4"])));
        assert_eq!(map.choice("P100"), Ok(one_of(&["v100", "a10g", "l4"])));
        assert_eq!(map.choice(""), Ok(GpuChoice::Any));
    }

    #[test]
    fn a_spec_the_map_does_not_list_is_named_even_beside_known_ones() {
        assert_eq!(GpuMap::builtin().choice("T4|B300|B300"), Err(vec!["B300".to_owned()]));
        assert_eq!(GpuMap::builtin().choice("|"), Ok(GpuChoice::Any), "two times no model at all");
    }

    #[test]
    fn a_map_of_ones_own_replaces_the_built_in_one() {
        let map = GpuMap::read("map.csv", "gpu_models,gpu_spec\nany,T4\nH100|h200,X\n").unwrap();
        assert_eq!(map.choice("T4"), Ok(GpuChoice::Any));
        assert_eq!(map.choice("X"), Ok(one_of(&["h100", "h200"])));
        assert_eq!(map.choice("G2"), Err(vec!["G2".to_owned()]));
    }

    #[test]
    fn all_problems_of_a_gpu_map_are_reported_together() {
        let problems =
            GpuMap::read("map.csv", "gpu_spec,gpu_models\nT4,\nT4,t4\nT4,t4\nA|B,a b\n").unwrap_err();
        let text = problems.to_string();
        for expected in
            ["map.csv:2:gpu_models:", "map.csv:4:gpu_spec:", "map.csv:5:gpu_spec:", "map.csv:5:gpu_models:"]
        {
            assert!(text.contains(expected), "{expected} is not in\n{text}");
        }
        assert_eq!(problems.len(), 4);
    }
}
